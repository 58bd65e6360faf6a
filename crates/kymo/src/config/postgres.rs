//! `[postgres]`: the PostgreSQL servers to ask by SQL, and the user to
//! ask as.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::{File, quoted};

/// Commands that a superuser runs once in each server.
const GRANTS: &str = "CREATE ROLE kymo LOGIN; GRANT pg_monitor TO kymo;";

/// Keys of `[postgres]`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Postgres {
    /// User to ask as when started by root; empty: the user of serve.
    pub user: String,
    /// Servers by name; empty: no server is asked.
    pub servers: BTreeMap<String, PostgresServer>,
}

/// A server.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct PostgresServer {
    /// Folder of its unix socket.
    #[serde(deserialize_with = "folder")]
    pub socket: PathBuf,
    /// Port, which is the end of the socket's name.
    pub port: u16,
    /// Role to log in as.
    pub role: String,
    /// Database to log in to.
    pub database: String,
    /// Patterns of databases that get series of their own.
    pub databases: Vec<String>,
}

impl Default for PostgresServer {
    fn default() -> PostgresServer {
        PostgresServer {
            socket: "/var/run/postgresql".into(),
            port: 5432,
            role: "kymo".into(),
            database: "postgres".into(),
            databases: vec!["*".into()],
        }
    }
}

fn folder<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
    let path = PathBuf::deserialize(from)?;
    match path.is_absolute() {
        true => Ok(path),
        false => Err(D::Error::custom(format!(
            "{:?} is not the absolute path of a folder",
            path.display().to_string()
        ))),
    }
}

/// Writes all keys with their help.
pub(super) fn text(file: &mut File, postgres: &Postgres) {
    file.0.push_str("\n[postgres]\n");
    file.key(
        "user",
        "User of the system to ask PostgreSQL as, whom `peer` of its pg_hba.conf lets in; empty: the one of all.",
        Ok(quoted(&postgres.user)),
    );
    file.0.push_str(&format!(
        "\n# A table for each server that is asked, with a name of your choice. A superuser runs there once:\n# {GRANTS}\n"
    ));
    if postgres.servers.is_empty() {
        file.0.push_str("#[postgres.servers.main]\n");
        server_text(file, &PostgresServer::default(), |value| Err(value));
    }
    for (name, server) in &postgres.servers {
        file.0
            .push_str(&format!("[postgres.servers.{}]\n", quoted(name)));
        server_text(file, server, |value| Ok(value.to_string()));
    }
}

/// Writes the keys of a server. `shown`: marks a text as the value in
/// force, or as an example.
fn server_text(
    file: &mut File,
    server: &PostgresServer,
    shown: impl for<'a> Fn(&'a str) -> Result<String, &'a str>,
) {
    let patterns: Vec<_> = server.databases.iter().map(|text| quoted(text)).collect();
    let keys = [
        (
            "socket",
            "Folder of its unix socket.",
            quoted(&server.socket.to_string_lossy()),
        ),
        ("port", "Its port.", server.port.to_string()),
        ("role", "Role to log in as.", quoted(&server.role)),
        (
            "database",
            "Database to log in to; one connection sees all of them.",
            quoted(&server.database),
        ),
        (
            "databases",
            "Databases that have numbers of their own, with * and ?.",
            format!("[{}]", patterns.join(", ")),
        ),
    ];
    for (name, help, value) in &keys {
        file.key(name, help, shown(value));
    }
}
