//! Hosts of the configuration: all sessions of one host and port are one device to people, as communities do not
//! matter to them.

use std::collections::HashMap;

use kymo_wire::mrtg_cfg::{Config, Host};

/// Names of devices by session. They do not contain communities.
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

/// For each session the first session of the same host.
pub(crate) fn firsts(config: &Config) -> Vec<usize> {
    let mut known = HashMap::new();
    let names = device_names(config).into_iter().enumerate();
    names
        .map(|(session, name)| *known.entry(name.to_ascii_lowercase()).or_insert(session))
        .collect()
}

/// All hosts, each known by its first session.
pub(crate) struct Hosts {
    firsts: Vec<usize>,
    /// Hosts by first session.
    of: Vec<HostRound>,
    /// Hosts whose sessions have all become idle since the last [`Hosts::take_over`].
    over: Vec<usize>,
}

#[derive(Clone, Default)]
struct HostRound {
    sessions: Vec<usize>,
    /// Number of sessions with a running cycle.
    active: usize,
    /// True once an event has reported that the device does not answer.
    is_silent: bool,
}

impl Hosts {
    /// The hosts of a configuration.
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

    /// The first session of a session's host.
    pub(crate) fn first(&self, session: usize) -> usize {
        self.firsts[session]
    }

    /// All sessions of the host with this first session.
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

    /// Takes the hosts whose sessions have all become idle since the last call, in order.
    pub(crate) fn take_over(&mut self) -> Vec<usize> {
        let mut over = std::mem::take(&mut self.over);
        over.retain(|&first| self.of[first].active == 0);
        over.sort_unstable();
        over.dedup();
        over
    }

    /// Sets the silence of a host; returns the state before.
    pub(crate) fn replace_silence(&mut self, first: usize, is_silent: bool) -> bool {
        std::mem::replace(&mut self.of[first].is_silent, is_silent)
    }
}
