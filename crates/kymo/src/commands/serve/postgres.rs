//! `[postgres]`: the process of `kymo serve` that asks PostgreSQL servers by SQL, and writes through the keeper.

use std::path::Path;

use anyhow::Result;
use kymo_postgres::Server;
use kymo_sys::privilege::{Account, Memory};

use super::{poller, sockets};
use crate::commands::postgres::PostgresOrder;
use crate::commands::serve::guardian::SqlAsker;
use crate::config::Config;

/// User to ask as; `None`: the user of this process.
pub(super) fn user(config: &Config, hub: Option<&Account>) -> Result<Option<Account>> {
    poller::account("ask PostgreSQL", &config.postgres.user, hub)
}

/// Plans the process; `None`: no server is configured.
pub(super) fn plan(config: &Config, dir: &Path, hub: Option<&Account>) -> Result<Option<SqlAsker>> {
    let account = user(config, hub)?;
    if config.postgres.servers.is_empty() {
        return Ok(None);
    }
    let servers = config.postgres.servers.iter();
    let servers = servers.map(|(name, server)| Server {
        name: name.clone(),
        socket: server.socket.clone(),
        port: server.port,
        role: server.role.clone(),
        database: server.database.clone(),
        databases: server.databases.clone(),
    });
    Ok(Some(SqlAsker {
        order: PostgresOrder {
            keeper: dir.join(sockets::WRITES),
            servers: servers.collect(),
        },
        role: poller::role(account, hub, Memory::Unlimited),
    }))
}
