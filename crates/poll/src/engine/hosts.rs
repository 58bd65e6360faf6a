//! Hosts of the configuration: sessions of one host and port are one device to people, whatever communities it has.

use std::collections::HashMap;

use kymo_wire::mrtg_cfg::{Config, Host};

/// Names of devices, by session: never with a community.
pub fn device_names(config: &Config) -> Vec<String> {
    let sessions = config.sessions().iter();
    sessions
        .map(|session| {
            let host = match &session.host {
                Host::V6(Some(address)) => address.to_string(),
                Host::V6(None) => "[]".into(),
                Host::Name(name) => name.to_string(),
            };
            match session.port {
                161 => host,
                port => format!("{host}:{port}"),
            }
        })
        .collect()
}

/// By session the first one of the same host.
pub(crate) fn firsts(config: &Config) -> Vec<usize> {
    let mut known = HashMap::new();
    let names = device_names(config).into_iter().enumerate();
    names
        .map(|(session, name)| *known.entry(name.to_ascii_lowercase()).or_insert(session))
        .collect()
}

/// All of them; each is called by its first session.
pub(crate) struct Hosts {
    firsts: Vec<usize>,
    /// By first session.
    of: Vec<HostRound>,
    /// Whose sessions have come to rest, and of which nothing was said since.
    over: Vec<usize>,
}

#[derive(Clone, Default)]
struct HostRound {
    sessions: Vec<usize>,
    /// Sessions whose cycle is not over.
    active: usize,
    /// True once a line has said that the device does not answer.
    is_silent: bool,
}

impl Hosts {
    /// Devices of a configuration.
    pub(crate) fn new(config: &Config) -> Hosts {
        let firsts = firsts(config);
        let mut of = vec![HostRound::default(); firsts.len()];
        for (session, &first) in firsts.iter().enumerate() {
            of[first].sessions.push(session);
        }
        Hosts {
            firsts,
            of,
            over: Vec::new(),
        }
    }

    /// The first session of this one's host.
    pub(crate) fn first(&self, session: usize) -> usize {
        self.firsts[session]
    }

    /// Sessions of the host with this first one.
    pub(crate) fn sessions(&self, first: usize) -> &[usize] {
        &self.of[first].sessions
    }

    /// A cycle of a session begins.
    pub(crate) fn begin(&mut self, session: usize) {
        self.of[self.firsts[session]].active += 1;
    }

    /// A cycle of a session is over.
    pub(crate) fn end(&mut self, session: usize) {
        let first = self.firsts[session];
        let of = &mut self.of[first];
        of.active = of.active.saturating_sub(1);
        if of.active == 0 {
            self.over.push(first);
        }
    }

    /// Takes the devices whose sessions have all come to rest since the last call, in order.
    pub(crate) fn take_over(&mut self) -> Vec<usize> {
        let mut over = std::mem::take(&mut self.over);
        over.retain(|&first| self.of[first].active == 0);
        over.sort_unstable();
        over.dedup();
        over
    }

    /// A host does not answer, or does; returns what was said of it before.
    pub(crate) fn replace_silence(&mut self, first: usize, is_silent: bool) -> bool {
        std::mem::replace(&mut self.of[first].is_silent, is_silent)
    }
}
