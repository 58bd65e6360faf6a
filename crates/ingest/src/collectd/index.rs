//! From an identifier in a packet to its series. Senders repeat series in the same order, so the index first tries the
//! series that followed last time, and hashes only when that guess is wrong.

use std::collections::HashMap;
use std::sync::Arc;

use kymo_wire::collectd::{Cdtime, Identifier, PathRefusal, escape};

use super::fifo::at;
use super::hosts::{HostId, Hosts};

/// A series.
#[derive(Debug)]
pub(super) struct Entry {
    key: Arc<[u8]>,
    /// Path of the .rrd file, below the base.
    pub path: Box<[u8]>,
    /// Kinds of the values, as packets spell them.
    pub codes: Box<[u8]>,
    /// Account of the host.
    pub host: HostId,
    /// Number of the series that came next, last time.
    next: u32,
    /// State of the series in the store.
    pub standing: Standing,
    /// Interval that the series' definition is for; zero: unknown.
    pub interval: Cdtime,
}

impl Entry {
    /// True for a series, false for a free entry: a key has bytes between its fields, so no key is empty.
    fn is_used(&self) -> bool {
        !self.key.is_empty()
    }

    /// Type of the values.
    pub(super) fn type_name(&self) -> &[u8] {
        let mut fields = self.key.split(|&byte| byte == 0);
        fields.nth(3).unwrap_or_default()
    }
}

/// State of a series in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// The store does not have it, or has it no more.
    Undefined,
    /// The store is to define it in this round.
    Announced,
    /// The store has it.
    Defined,
    /// The series is being defined again, for values of other kinds.
    Changing,
    /// The series could not be made.
    Refused {
        /// Time of the failure, by a clock that does not go back.
        since_ms: u64,
    },
}

/// All series.
#[derive(Debug, Default)]
pub(super) struct Index {
    entries: Vec<Entry>,
    by_key: HashMap<Arc<[u8]>, u32>,
    /// Numbers of forgotten series.
    free: Vec<u32>,
    /// Number of the series found last.
    last: u32,
    key: Vec<u8>,
}

impl Index {
    /// The entry with this number.
    pub(super) fn get(&self, number: u32) -> Option<&Entry> {
        self.entries.get(at(number)).filter(|it| it.is_used())
    }

    /// The entry with this number, mutable.
    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut Entry> {
        let entry = self.entries.get_mut(at(number));
        entry.filter(|it| it.is_used())
    }

    /// Looks at series of these types again when their next values come.
    pub(super) fn look_again(&mut self, picks: impl Fn(&[u8]) -> bool) {
        let defined = self.entries.iter_mut();
        let defined = defined.filter(|entry| entry.standing == Standing::Defined);
        for entry in defined.filter(|entry| entry.is_used() && picks(entry.type_name())) {
            entry.standing = Standing::Undefined;
        }
    }

    /// Forgets a series; a later series gets its number.
    pub(super) fn forget(&mut self, number: u32) {
        let Some(entry) = self.get_mut(number) else {
            return;
        };
        let key = std::mem::take(&mut entry.key);
        (entry.path, entry.codes) = Default::default();
        self.by_key.remove(&key);
        self.free.push(number);
    }

    /// Number of the series with this identifier; `None`: it is not here.
    pub(super) fn find(&mut self, identifier: &Identifier) -> Option<u32> {
        put_key(&mut self.key, identifier);
        let last = self.entries.get(at(self.last));
        let guess = last.map_or(0, |last| last.next);
        let guessed = self.entries.get(at(guess));
        let found = match guessed.filter(|entry| *entry.key == *self.key) {
            Some(_) => guess,
            None => {
                let found = *self.by_key.get(self.key.as_slice())?;
                if let Some(last) = self.entries.get_mut(at(self.last)) {
                    last.next = found;
                }
                found
            }
        };
        self.last = found;
        Some(found)
    }

    /// Adds a series that [`Index::find`] did not find.
    pub(super) fn add(
        &mut self,
        identifier: &Identifier,
        codes: &[u8],
        (hosts, now_ns): (&mut Hosts, u64),
    ) -> Result<u32, PathRefusal> {
        let mut path = Vec::with_capacity(64);
        identifier.put_rrd_path(&mut path)?;
        let host = hosts.find(&escape(identifier.host), now_ns);
        put_key(&mut self.key, identifier);
        let key: Arc<[u8]> = Arc::from(self.key.as_slice());
        let next = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        let number = self.free.pop().unwrap_or(next);
        self.by_key.insert(Arc::clone(&key), number);
        if let Some(last) = self.entries.get_mut(at(self.last)) {
            last.next = number;
        }
        let entry = Entry {
            key,
            path: path.into(),
            codes: codes.into(),
            host,
            next: number + 1,
            standing: Standing::Undefined,
            interval: Cdtime::ZERO,
        };
        match self.entries.get_mut(at(number)) {
            Some(place) => *place = entry,
            None => self.entries.push(entry),
        }
        self.last = number;
        Ok(number)
    }
}

/// Makes a key: the fields with NULs between them. No field contains a NUL.
fn put_key(key: &mut Vec<u8>, identifier: &Identifier) {
    key.clear();
    let Identifier {
        host,
        plugin,
        plugin_instance,
        type_name,
        type_instance,
    } = identifier;
    for field in [host, plugin, plugin_instance, type_name] {
        key.extend_from_slice(field);
        key.push(0);
    }
    key.extend_from_slice(type_instance);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named<'a>(host: &'a str, instance: &'a str) -> Identifier<'a> {
        Identifier {
            host: host.as_bytes(),
            plugin: b"cpu",
            plugin_instance: instance.as_bytes(),
            type_name: b"cpu",
            type_instance: b"idle",
        }
    }

    #[test]
    fn a_series_is_found_in_any_order() {
        let (mut index, mut hosts) = (Index::default(), Hosts::default());
        let names = ["a", "b", "c", "d"].map(|host| [named(host, "0"), named(host, "1")]);
        for name in names.iter().flatten() {
            assert_eq!(index.find(name), None);
            index.add(name, &[2], (&mut hosts, 0)).unwrap();
        }
        for order in [[0, 1, 2, 3], [3, 1, 0, 2], [2, 2, 0, 1]] {
            for host in order {
                for (at, name) in names[host].iter().enumerate() {
                    let found = index.find(name).unwrap();
                    assert_eq!(found as usize, 2 * host + at);
                    let path = format!("{}/cpu-{at}/cpu-idle.rrd", ["a", "b", "c", "d"][host]);
                    assert_eq!(*index.get(found).unwrap().path, *path.as_bytes());
                }
            }
        }
        assert_eq!(index.get(0).unwrap().type_name(), b"cpu");
        assert_eq!(index.find(&named("a", "2")), None);
        // The fields' boundaries are part of the name.
        assert_eq!(index.find(&named("ac", "0")), None);
        assert!(index.add(&named("..", "0"), &[1], (&mut hosts, 0)).is_err());
        // The next new series gets the number of a forgotten one.
        index.forget(3);
        assert_eq!(
            (index.find(&names[1][1]), index.get(3).is_none()),
            (None, true)
        );
        assert_eq!(index.add(&named("e", "0"), &[1], (&mut hosts, 0)), Ok(3));
        assert_eq!(index.find(&named("e", "0")), Some(3));
    }
}
