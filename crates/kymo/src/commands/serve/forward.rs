//! `[[forward]]`: the process of `kymo serve` that sends values to receivers. It reads no file: the guardian
//! hands it passwords, tokens and certificates.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;

use anyhow::{Context as _, Result};
use kymo_forward::{
    CollectdWay, ForwardOrder, ForwardTarget, ForwardWay, HostPort, PacketProtection,
    RemoteWriteWay, RrdcachedAddress, RrdcachedWay, tail_name,
};
use kymo_scrape::{Credentials, Scheme, ScrapeUrl};
use kymo_sys::privilege::{Account, Memory};

use super::{access, poller, sockets};
use crate::commands::serve::guardian::Forwarder;
use crate::config::{Config, Forward, ForwardAddress, ListenAddress, Security};

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
    let own = own_rrdcached(config, dir);
    let first = targets(&config.forward, own.as_ref())?;
    Ok(Some(Forwarder {
        order: ForwardOrder {
            keeper: dir.join(sockets::WRITES),
            targets: first,
        },
        targets: Box::new(move || targets(&configured, own.as_ref())),
        role: poller::role(hub.cloned(), hub, Memory::Unlimited),
    }))
}

/// Tails of the configured receivers, and the seconds that each may be behind if it has a limit of its own.
pub(super) fn tails(config: &Config) -> Result<Vec<(String, Option<u64>)>> {
    let receivers = config.forward.iter().map(|receiver| {
        let backlog_s = receiver.backlog_s().map_err(anyhow::Error::msg)?;
        Ok((tail_name(&receiver.full_name()), backlog_s))
    });
    receivers.collect()
}

/// Where kymo speaks rrdcached's protocol itself: its unix socket, or else a port.
fn own_rrdcached(config: &Config, dir: &Path) -> Option<RrdcachedAddress> {
    let Some(places) = &config.listen.rrdcached else {
        return Some(RrdcachedAddress::Unix(dir.join(sockets::RRDCACHED)));
    };
    let own = places.iter().map(|place| match place {
        ListenAddress::Path(path) => RrdcachedAddress::Unix(path.clone()),
        ListenAddress::Address(address) => RrdcachedAddress::Tcp(HostPort {
            host: match (address.ip().is_unspecified(), address.is_ipv4()) {
                (false, _) => address.ip().to_string(),
                (true, true) => Ipv4Addr::LOCALHOST.to_string(),
                (true, false) => Ipv6Addr::LOCALHOST.to_string(),
            },
            port: address.port(),
        }),
    });
    own.min_by_key(|place| matches!(place, RrdcachedAddress::Tcp(_)))
}

/// The receivers, with the contents of their files.
fn targets(configured: &[Forward], own: Option<&RrdcachedAddress>) -> Result<Vec<ForwardTarget>> {
    let targets = configured.iter().map(|receiver| {
        let name = receiver.full_name();
        target(receiver, own).with_context(|| format!("cannot forward to {name}"))
    });
    targets.collect()
}

fn target(receiver: &Forward, own: Option<&RrdcachedAddress>) -> Result<ForwardTarget> {
    let address = receiver.address().map_err(anyhow::Error::msg)?;
    Ok(ForwardTarget {
        name: receiver.full_name(),
        way: match address {
            ForwardAddress::RemoteWrite(url) => {
                ForwardWay::RemoteWrite(remote_write(receiver, &url)?)
            }
            ForwardAddress::Collectd(address) => ForwardWay::Collectd(CollectdWay {
                address,
                protection: protection(receiver)?,
                packets_per_second: receiver.packets_per_second,
            }),
            ForwardAddress::Rrdcached(address) => ForwardWay::Rrdcached(RrdcachedWay {
                address,
                timeout_ms: receiver.timeout_ms().map_err(anyhow::Error::msg)?,
                own: own.cloned(),
            }),
        },
        selectors: receiver.selectors.clone(),
    })
}

fn remote_write(receiver: &Forward, url: &ScrapeUrl) -> Result<RemoteWriteWay> {
    let access = receiver.access();
    Ok(RemoteWriteWay {
        url: receiver.url.clone().unwrap_or_default(),
        timeout_ms: receiver.timeout_ms().map_err(anyhow::Error::msg)?,
        labels: receiver.labels.clone(),
        drop_labels: receiver.drop_labels.clone(),
        credentials: access::credentials(access)?,
        tls: access::tls(access, url.scheme() == Scheme::Https)?,
    })
}

fn protection(receiver: &Forward) -> Result<PacketProtection> {
    let credentials = access::credentials(receiver.access())?;
    Ok(match (receiver.security, credentials) {
        (Security::Sign, Credentials::Basic { user, password }) => {
            PacketProtection::Signed { user, password }
        }
        (Security::Encrypt, Credentials::Basic { user, password }) => {
            PacketProtection::Encrypted { user, password }
        }
        (Security::None | Security::Sign | Security::Encrypt, _) => PacketProtection::Plain,
    })
}
