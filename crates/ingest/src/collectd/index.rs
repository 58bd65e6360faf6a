//! From an identifier in a packet to what is known of its series. Senders send the same series in the same order, so the one
//! that followed last time is tried before anything is hashed.

use std::collections::HashMap;
use std::sync::Arc;

use kymo_wire::collectd::{Cdtime, Identifier, PathRefusal, escape};

use super::hosts::Hosts;

/// What is known of one series.
#[derive(Debug)]
pub(super) struct Entry {
    key: Arc<[u8]>,
    /// Of its .rrd file, below the base.
    pub path: Box<[u8]>,
    /// The kinds of its values, as packets spell them.
    pub codes: Box<[u8]>,
    /// The number of its host in [`super::hosts::Hosts`].
    pub host: u16,
    /// The one that came next, last time.
    next: u32,
    /// Whether the store has it.
    pub standing: Standing,
    /// How often its values come that its definitions are for; zero: that is not known.
    pub interval: Cdtime,
}

impl Entry {
    /// The type of its values.
    pub(super) fn type_name(&self) -> &[u8] {
        let mut fields = self.key.split(|&byte| byte == 0);
        fields.nth(3).unwrap_or_default()
    }
}

/// How a series stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// The store does not have it, or has it no more.
    Undefined,
    /// The store is to define it in this round.
    Announced,
    /// The store has it.
    Defined,
    /// It could not be made.
    Refused {
        /// Of a clock that does not go back.
        since_ms: u64,
    },
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Index {
    entries: Vec<Entry>,
    by_key: HashMap<Arc<[u8]>, u32>,
    /// The one found last.
    last: u32,
    key: Vec<u8>,
}

impl Index {
    /// The entry of that number.
    pub(super) fn get(&self, number: u32) -> Option<&Entry> {
        self.entries.get(number as usize)
    }

    /// The same, to be changed.
    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut Entry> {
        self.entries.get_mut(number as usize)
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The number of the series of that name, if it was there before.
    pub(super) fn find(&mut self, identifier: &Identifier) -> Option<u32> {
        put_key(&mut self.key, identifier);
        let last = self.entries.get(self.last as usize);
        let guess = last.map_or(0, |last| last.next);
        let guessed = self.entries.get(guess as usize);
        let found = match guessed.filter(|entry| *entry.key == *self.key) {
            Some(_) => guess,
            None => {
                let found = *self.by_key.get(self.key.as_slice())?;
                if let Some(last) = self.entries.get_mut(self.last as usize) {
                    last.next = found;
                }
                found
            }
        };
        self.last = found;
        Some(found)
    }

    /// Adds a series that [`Index::find`] has just not found.
    pub(super) fn add(
        &mut self,
        identifier: &Identifier,
        codes: &[u8],
        hosts: &mut Hosts,
    ) -> Result<u32, PathRefusal> {
        let mut path = Vec::with_capacity(64);
        identifier.put_rrd_path(&mut path)?;
        let host = hosts.number(&escape(identifier.host));
        put_key(&mut self.key, identifier);
        let (number, key) = (self.entries.len() as u32, Arc::from(self.key.as_slice()));
        self.by_key.insert(Arc::clone(&key), number);
        if let Some(last) = self.entries.get_mut(self.last as usize) {
            last.next = number;
        }
        self.entries.push(Entry {
            key,
            path: path.into(),
            codes: codes.into(),
            host,
            next: number + 1,
            standing: Standing::Undefined,
            interval: Cdtime::ZERO,
        });
        self.last = number;
        Ok(number)
    }
}

/// No field has a NUL.
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
            index.add(name, &[2], &mut hosts).unwrap();
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
        // Where a field ends is part of the name.
        assert_eq!(index.find(&named("ac", "0")), None);
        assert!(index.add(&named("..", "0"), &[1], &mut hosts).is_err());
        assert_eq!(index.len(), 8);
    }
}
