//! The generator: hosts of 70 values each, a value each 10 s, in packets of at most 25 as collectd makes them. Of ten
//! values five are DERIVE, two COUNTER and three GAUGE, with random increments. Each host has its own moment within
//! the 10 s, and is up to 50 ms off it.

use crate::fault::{Fault, Result};
use crate::world::Chance;
use kymo_wire::collectd::{
    Cdtime, Encoder, Identifier, PACKET_DEFAULT, Pushed, Value, ValueList, put_update,
};
use std::collections::BTreeMap;

pub(super) const VALUES_A_HOST: usize = 70;
/// Values that one instance of a plugin reads together.
const VALUES_A_PLUGIN: usize = 10;
const VALUES_A_PACKET: usize = 25;
/// Seconds between two values of a series.
pub(crate) const STEP_S: u64 = 10;
const STEP_NS: u64 = STEP_S * 1_000_000_000;
const JITTER_NS: u64 = 50_000_000;
/// Types of one plugin's values, with the number of each.
const TYPES: [(&str, usize); 3] = [("derive", 5), ("counter", 2), ("gauge", 3)];

/// All hosts, in the order of their moments.
pub(crate) struct Fleet {
    chance: Chance,
    hosts: Vec<Host>,
    /// Begin of the first step, since 1970.
    base_ns: u64,
    steps: u64,
    encoder: Encoder,
    /// Sent values of the series to be compared: arguments of `rrdtool update`.
    kept: BTreeMap<usize, Vec<String>>,
    /// Stamp of each series' last value, in whole seconds.
    last: Vec<u64>,
}

struct Host {
    name: String,
    /// Moment within a step.
    phase_ns: u64,
    values: [u64; VALUES_A_HOST],
}

impl Fleet {
    /// Whole hosts with `series` values or more; values begin `back_s` seconds ago.
    pub(crate) fn new(series: usize, back_s: u64) -> Fleet {
        let mut chance = Chance::new(290);
        let count = series.div_ceil(VALUES_A_HOST);
        let host = |index| Host {
            name: format!("web{index:03}.example.org"),
            phase_ns: JITTER_NS + (STEP_NS - 2 * JITTER_NS) / count as u64 * index as u64,
            values: std::array::from_fn(|_| chance.below(1 << 30)),
        };
        let hosts = (0..count).map(host).collect();
        let base_ns = now_ns() - back_s * 1_000_000_000;
        Fleet {
            chance,
            hosts,
            base_ns,
            steps: 0,
            encoder: Encoder::new(PACKET_DEFAULT),
            kept: BTreeMap::new(),
            last: vec![0; count * VALUES_A_HOST],
        }
    }

    /// Number of series.
    pub(crate) fn len(&self) -> usize {
        self.last.len()
    }

    pub(super) fn hosts(&self) -> usize {
        self.hosts.len()
    }

    /// Keeps a copy of the values sent from now on, for `count` random series.
    pub(super) fn keep(&mut self, count: usize) {
        let count = count.min(self.len());
        while self.kept.len() < count {
            let series = self.chance.below(self.len() as u64) as usize;
            self.kept.entry(series).or_default();
        }
    }

    pub(super) fn kept(&self) -> &BTreeMap<usize, Vec<String>> {
        &self.kept
    }

    /// Stamp of a series' last value, in whole seconds.
    pub(super) fn last(&self, series: usize) -> u64 {
        self.last[series]
    }

    /// Moment of a host within a step, in nanoseconds.
    pub(super) fn phase_ns(&self, host: usize) -> u64 {
        self.hosts[host].phase_ns
    }

    /// Moves the stamps so that the next step begins now.
    pub(super) fn go_on_from_now(&mut self) {
        self.base_ns = now_ns() - self.steps * STEP_NS;
    }

    /// The next value of each series of a host, packet by packet with its count; `step` counts from 0.
    pub(super) fn next(
        &mut self,
        host: usize,
        step: u64,
        mut send: impl FnMut(&[u8], usize) -> Result<()>,
    ) -> Result<()> {
        self.steps = self.steps.max(step + 1);
        let mut count = 0;
        self.encoder.clear();
        let mut time = Cdtime::ZERO;
        for index in 0..VALUES_A_HOST {
            if index % VALUES_A_PLUGIN == 0 {
                time = self.time(host, step);
            }
            self.push(host, index, time)?;
            count += 1;
            if count == VALUES_A_PACKET || index + 1 == VALUES_A_HOST {
                send(self.encoder.payload(), count)?;
                self.encoder.clear();
                count = 0;
            }
        }
        Ok(())
    }

    fn time(&mut self, host: usize, step: u64) -> Cdtime {
        let moment = self.base_ns + step * STEP_NS + self.hosts[host].phase_ns;
        Cdtime::from_nanoseconds(moment - JITTER_NS + self.chance.below(2 * JITTER_NS))
    }

    fn push(&mut self, host: usize, index: usize, time: Cdtime) -> Result<()> {
        let name = Name::of(index);
        let number = &mut self.hosts[host].values[index];
        let value = match name.type_name {
            "derive" => {
                *number += self.chance.below(5_000);
                Value::Derive(*number as i64)
            }
            "counter" => {
                *number += self.chance.below(1_000_000);
                Value::Counter(*number)
            }
            _ => {
                *number = (*number + self.chance.below(41)).saturating_sub(20);
                Value::Gauge(*number as f64 / 100.0)
            }
        };
        let list = ValueList {
            identifier: Identifier {
                host: self.hosts[host].name.as_bytes(),
                plugin: b"cpu",
                plugin_instance: name.plugin_instance.as_bytes(),
                type_name: name.type_name.as_bytes(),
                type_instance: name.type_instance.as_bytes(),
            },
            time,
            interval: Cdtime::from_seconds(STEP_S),
            values: &[value],
        };
        if self.encoder.push(&list) != Pushed::Added {
            return Err(Fault::new("a packet has no room for 25 values"));
        }
        let series = host * VALUES_A_HOST + index;
        self.last[series] = time.seconds();
        if let Some(sent) = self.kept.get_mut(&series) {
            let mut text = Vec::new();
            put_update(&mut text, time, [value].into_iter());
            sent.push(String::from_utf8_lossy(&text).into_owned());
        }
        Ok(())
    }

    /// The path of a series' .rrd file.
    pub(super) fn path(&self, series: usize) -> String {
        let (host, name) = (
            &self.hosts[series / VALUES_A_HOST].name,
            Name::of(series % VALUES_A_HOST),
        );
        format!(
            "{host}/cpu-{}/{}-{}.rrd",
            name.plugin_instance, name.type_name, name.type_instance
        )
    }
}

/// The name of a host's value.
pub(super) struct Name {
    plugin_instance: String,
    /// Type in types.db.
    pub type_name: &'static str,
    type_instance: String,
}

impl Name {
    pub(super) fn of(series: usize) -> Name {
        let (plugin, mut at) = (
            series % VALUES_A_HOST / VALUES_A_PLUGIN,
            series % VALUES_A_PLUGIN,
        );
        let mut type_name = TYPES[0].0;
        for (name, count) in TYPES {
            type_name = name;
            if at < count {
                break;
            }
            at -= count;
        }
        Name {
            plugin_instance: plugin.to_string(),
            type_name,
            type_instance: at.to_string(),
        }
    }
}

fn now_ns() -> u64 {
    let since = std::time::UNIX_EPOCH.elapsed();
    // A clock before 1970 would break everything else, too.
    since.map_or(0, |since| since.as_nanos() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_step_has_a_value_of_each_series_in_packets_of_25() {
        let mut fleet = Fleet::new(100, 86_400);
        assert_eq!((fleet.len(), fleet.hosts()), (140, 2));
        fleet.keep(140);
        let mut counts = Vec::new();
        for step in 0..3 {
            for host in 0..2 {
                let send = |packet: &[u8], count| {
                    assert!(packet.len() <= PACKET_DEFAULT);
                    counts.push(count);
                    Ok(())
                };
                fleet.next(host, step, send).unwrap();
            }
        }
        assert_eq!(counts[..3], [25, 25, 20]);
        assert_eq!(counts.len(), 18);
        for (&series, sent) in fleet.kept() {
            let stamps: Vec<u64> = sent
                .iter()
                .map(|text| text.split_once(':').unwrap().0.parse().unwrap())
                .collect();
            assert_eq!(stamps.len(), 3);
            let apart = |pair: &[u64]| (9..=11).contains(&(pair[1] - pair[0]));
            assert!(stamps.windows(2).all(apart), "{stamps:?}");
            assert_eq!(fleet.last(series), stamps[2]);
        }
    }

    #[test]
    fn each_series_has_a_name_of_its_own() {
        let fleet = Fleet::new(140, 0);
        let paths: BTreeSet<String> = (0..140).map(|series| fleet.path(series)).collect();
        assert_eq!(paths.len(), 140);
        assert!(paths.contains("web001.example.org/cpu-6/gauge-2.rrd"));
        assert_eq!(Name::of(5).type_name, "counter");
    }
}
