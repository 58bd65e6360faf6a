//! `[[forward]]`: the process of `kymo serve` that sends values to receivers of remote write. It reads no file: the
//! guardian hands it passwords, tokens and certificates.

use std::path::Path;

use anyhow::{Context as _, Result};
use kymo_forward::{ForwardOrder, ForwardTarget};
use kymo_scrape::{Scheme, ScrapeUrl};
use kymo_sys::privilege::{Account, Memory};

use super::{access, poller, sockets};
use crate::commands::serve::guardian::Forwarder;
use crate::config::{Config, Forward};

/// Plans the process; `None`: no receiver is configured.
pub(super) fn plan(
    config: &Config,
    dir: &Path,
    hub: Option<&Account>,
) -> Result<Option<Forwarder>> {
    if config.forward.is_empty() {
        return Ok(None);
    }
    let configured = config.forward.clone();
    Ok(Some(Forwarder {
        order: ForwardOrder {
            keeper: dir.join(sockets::WRITES),
            targets: targets(&config.forward)?,
        },
        targets: Box::new(move || targets(&configured)),
        role: poller::role(hub.cloned(), hub, Memory::Unlimited),
    }))
}

/// The receivers, with the contents of their files.
fn targets(configured: &[Forward]) -> Result<Vec<ForwardTarget>> {
    let targets = configured.iter().map(|receiver| {
        let name = receiver.full_name();
        target(receiver).with_context(|| format!("cannot forward to {name}"))
    });
    targets.collect()
}

fn target(receiver: &Forward) -> Result<ForwardTarget> {
    let words = anyhow::Error::msg::<String>;
    let url = ScrapeUrl::of_server(&receiver.url).map_err(words)?;
    let access = receiver.access();
    Ok(ForwardTarget {
        name: receiver.full_name(),
        url: receiver.url.clone(),
        timeout_ms: receiver.timeout_ms().map_err(words)?,
        selectors: receiver.selectors.clone(),
        labels: receiver.labels.clone(),
        drop_labels: receiver.drop_labels.clone(),
        credentials: access::credentials(access)?,
        tls: access::tls(access, url.scheme() == Scheme::Https)?,
    })
}
