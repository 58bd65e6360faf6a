//! PostgreSQL asked by SQL. Every ten seconds a server's numbers go to the keeper, which makes series of them, and every second
//! what its sessions do, while one works or somebody looks.

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

/// Bytes of a line for people.
const LINE_MAX: usize = 1000;

/// A server, as the configuration has it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Server {
    /// What it is called.
    pub name: String,
    /// The folder of its socket.
    pub socket: PathBuf,
    /// Its port.
    pub port: u16,
    /// The role to log in as.
    pub role: String,
    /// The database to log in to.
    pub database: String,
    /// Patterns of databases that have series.
    pub databases: Vec<String>,
}

impl Server {
    /// The path of its socket.
    fn path(&self) -> PathBuf {
        self.socket.join(format!(".s.PGSQL.{}", self.port))
    }

    /// A line for people about it.
    fn say(&self, line: &str) {
        let name = DisplayName(self.name.as_bytes());
        // Some words of the line are the server's.
        let line = line
            .get(..line.floor_char_boundary(LINE_MAX))
            .unwrap_or(line);
        let line = DisplayName(line.as_bytes());
        talk::say(format_args!("kymo: postgres {name}: {line}"));
    }
}
