//! `[query] upstream`: the process of `kymo serve` that asks another engine for series. It reads no file: the guardian hands it
//! the socket of its clients, passwords, tokens and certificates.

use std::os::fd::AsRawFd as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use kymo_scrape::{Scheme, ScrapeUrl};
use kymo_sys::listen;
use kymo_sys::own_name::OwnName;
use kymo_sys::privilege::{Account, Memory};
use kymo_upstream::{UpstreamOrder, UpstreamTarget};

use super::{access, poller};
use crate::commands::serve::guardian::Upstream;
use crate::config::{Config, Query};

/// Name of its socket, in the data folder.
pub(crate) const UPSTREAM_SOCKET: &str = "upstream.sock";

/// Plans the process, and opens its socket; `None`: no engine is configured.
pub(super) fn plan(config: &Config, dir: &Path, hub: Option<&Account>) -> Result<Option<Upstream>> {
    if config.query.upstream.is_empty() {
        return Ok(None);
    }
    let path = dir.join(UPSTREAM_SOCKET);
    let cannot = || format!("cannot listen on {}", path.display());
    let socket = listen::bind_unix_for_group(&path, hub.map(|hub| hub.gid)).with_context(cannot)?;
    let name = OwnName::of(&path).with_context(cannot)?;
    listen::listen(&socket).with_context(cannot)?;
    let configured = config.query.clone();
    let mut role = poller::role(hub.cloned(), hub, Memory::Unlimited);
    role.inherits.push(socket.as_raw_fd());
    Ok(Some(Upstream {
        order: UpstreamOrder {
            listener: socket.as_raw_fd(),
            target: target(&config.query)?,
        },
        target: Box::new(move || target(&configured)),
        role,
        _socket: socket,
        name,
    }))
}

/// The engine, with the contents of the files.
fn target(query: &Query) -> Result<UpstreamTarget> {
    let words = anyhow::Error::msg::<String>;
    let url = ScrapeUrl::of_server(&query.upstream).map_err(words)?;
    let access = query.access();
    let cannot = "cannot ask the upstream of [query]";
    Ok(UpstreamTarget {
        url: query.upstream.clone(),
        timeout_ms: query.timeout_ms().map_err(words)?,
        drop_labels: query.drop_labels.clone(),
        credentials: access::credentials(access).context(cannot)?,
        tls: access::tls(access, url.scheme() == Scheme::Https).context(cannot)?,
    })
}
