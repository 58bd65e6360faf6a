//! Phases: the moment of the interval at which a device is polled, the same in each interval. Devices whose values are summed,
//! and all sessions of a host, share a phase.

use std::hash::{DefaultHasher, Hash, Hasher};

use kymo_wire::mrtg_cfg::{Config, Source};

use super::hosts;
use super::outcome::index;

/// Phases in nanoseconds after the interval's beginning.
pub(crate) struct Phases {
    /// By session.
    pub devices: Vec<u64>,
    /// By reading; only those of commands are used.
    pub readings: Vec<u64>,
}

impl Phases {
    /// All phases are 0.
    pub(crate) fn burst(config: &Config) -> Phases {
        Phases {
            devices: vec![0; config.sessions().len()],
            readings: vec![0; config.readings().len()],
        }
    }

    /// Spreads phases over an interval of this length.
    pub(crate) fn spread(config: &Config, interval_ns: u64) -> Phases {
        let sessions = config.sessions().len();
        let node = |reading: u32| match config.readings()[reading as usize].source {
            Source::Snmp(source) => source.session as usize,
            Source::Command(_) => sessions + reading as usize,
        };
        let mut groups = Groups::new(sessions + config.readings().len());
        let hosts = hosts::firsts(config);
        for (session, &first) in hosts.iter().enumerate() {
            groups.join(session, first);
        }
        for target in config.targets() {
            let readings = config.readings_of(target.expression());
            for pair in readings.windows(2) {
                groups.join(node(pair[0]), node(pair[1]));
            }
        }
        for &(target, about) in config.abouts() {
            let target = config.target(index(target));
            for &reading in config.readings_of(target.expression()).iter() {
                groups.join(node(reading), node(about));
            }
        }
        let names = hosts::device_names(config);
        let phase = |of: usize| {
            // The group's lowest number represents it, so that its phase stays when others come or go.
            let mut hasher = DefaultHasher::new();
            match of.checked_sub(sessions) {
                None => names[of].hash(&mut hasher),
                Some(reading) => config
                    .text(config.readings()[reading].text)
                    .hash(&mut hasher),
            }
            ((u128::from(hasher.finish()) * u128::from(interval_ns)) >> 64) as u64
        };
        let all: Vec<u64> = (0..sessions + config.readings().len())
            .map(|node| phase(groups.find(node)))
            .collect();
        Phases {
            devices: all[..sessions].to_vec(),
            readings: all[sessions..].to_vec(),
        }
    }
}

/// Groups of nodes with one phase, as a union-find forest.
struct Groups(Vec<usize>);

impl Groups {
    fn new(count: usize) -> Groups {
        Groups((0..count).collect())
    }

    fn find(&mut self, node: usize) -> usize {
        let (mut root, mut at) = (node, node);
        while self.0[root] != root {
            root = self.0[root];
        }
        while self.0[at] != root {
            at = std::mem::replace(&mut self.0[at], root);
        }
        root
    }

    fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.find(one), self.find(other));
        self.0[one.max(other)] = one.min(other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_joined_is_one_group() {
        let mut groups = Groups::new(6);
        for (one, other) in [(4, 5), (1, 2), (5, 2)] {
            groups.join(one, other);
        }
        let found: Vec<usize> = (0..6).map(|node| groups.find(node)).collect();
        assert_eq!(found, [0, 1, 1, 3, 1, 1]);
    }
}
