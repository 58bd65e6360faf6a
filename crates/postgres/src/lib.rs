//! Queries PostgreSQL by SQL. Every ten seconds the keeper gets a server's numbers, which it stores as series. Every second,
//! while a session works or a client watches, it gets the server's sessions.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod ask;
mod columns;
mod counted;
mod follow;
mod numbers;
mod prepared;
mod series;
mod sessions;

pub use follow::follow;

use std::path::PathBuf;

use kymo_base::name::DisplayName;
use kymo_sys::talk;
use serde::{Deserialize, Serialize};

/// Longest line of a message, bytes.
const LINE_MAX: usize = 1000;

/// A server in the configuration.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Server {
    /// Name of the server.
    pub name: String,
    /// The folder of its socket.
    pub socket: PathBuf,
    /// Port of the server, which is a part of its socket's name.
    pub port: u16,
    /// The role to log in as.
    pub role: String,
    /// The database to log in to.
    pub database: String,
    /// Patterns of the names of databases that have series.
    pub databases: Vec<String>,
}

impl Server {
    /// The path of the server's socket.
    fn path(&self) -> PathBuf {
        self.socket.join(format!(".s.PGSQL.{}", self.port))
    }

    /// Logs a message about the server.
    fn say(&self, line: &str) {
        let name = DisplayName(self.name.as_bytes());
        // A part of the line may come from the server.
        let line = line
            .get(..line.floor_char_boundary(LINE_MAX))
            .unwrap_or(line);
        let line = DisplayName(line.as_bytes());
        talk::say(format_args!("kymo: postgres {name}: {line}"));
    }
}
