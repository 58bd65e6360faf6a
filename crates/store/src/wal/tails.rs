//! Registered tails: the acknowledged position of each, and the values that it missed. All of it is in the file `tails`, on the
//! disk before it takes effect. Layout: docs/formats/store.md, "Tails".

use kymo_sys::disk::Disk;
use kymo_sys::kept_file::{KeptFile, Kind, Old, Records, Sync};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Name of the file in the store's folder.
pub const TAILS_NAME: &str = "tails";
/// Format of the file.
pub const TAILS_FILE: Kind = Kind {
    magic: *b"KYMOTAIL",
    version: 1,
    bytes_max: 4 << 20,
    old: Old {
        magic: *b"KYMOTLS",
        newest: 0,
        has_generation: false,
    },
};
/// Most tails of a store.
pub(crate) const TAILS_MAX: usize = 16;
/// Most bytes of a name.
pub(crate) const NAME_MAX: usize = 64;
/// Size at which the file is rewritten.
const FILE_MAX: usize = 64 << 10;

/// A part of the journal that a tail did not get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missed {
    /// First position of the part.
    pub from: u64,
    /// Position behind the part.
    pub to: u64,
    /// Number of values in the part; `None`: not known.
    pub values: Option<u64>,
}

impl Missed {
    /// Merges two parts that overlap or follow one another.
    fn with(self, later: Missed) -> Missed {
        let values = self.values.zip(later.values);
        Missed {
            from: self.from.min(later.from),
            to: self.to.max(later.to),
            values: values.map(|(one, other)| one.saturating_add(other)),
        }
    }
}

/// A registered tail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tail {
    /// Position before which everything is acknowledged or missed.
    pub(crate) position: u64,
    /// The missed part that the sink has not got yet.
    pub(crate) missed: Option<Missed>,
    /// Values that the tail has missed since it was registered.
    pub(crate) missed_values: u64,
}

/// All registered tails.
pub(crate) struct Tails {
    file: Option<KeptFile>,
    list: BTreeMap<String, Tail>,
}

/// True if a tail may have this name.
pub(crate) fn is_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=NAME_MAX).contains(&name.len()) && name.bytes().all(is_plain)
}

/// True if a record of the file can be read.
pub fn is_tails(_version: u32, body: &[u8]) -> bool {
    take(body).is_some()
}

impl Tails {
    /// No tails, for a store that is opened for reading: none can be registered.
    pub(crate) fn none() -> Tails {
        Tails {
            file: None,
            list: BTreeMap::new(),
        }
    }

    /// Opens the tails of a store's folder; with a line for the log.
    pub(crate) fn open(disk: Arc<dyn Disk>, folder: &Path) -> (Tails, Option<String>) {
        let path = folder.join(TAILS_NAME);
        match KeptFile::open(disk, path.clone(), TAILS_FILE) {
            Ok((file, contents)) => {
                let notice = file.notice(&contents);
                let list = list_of(contents.bodies());
                let file = Some(file);
                (Tails { file, list }, notice)
            }
            Err(error) => {
                let notice = format!("cannot read {}: {error}; no tail goes on", path.display());
                (Tails::none(), Some(notice))
            }
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<Tail> {
        self.list.get(name).copied()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, Tail)> {
        self.list.iter().map(|(name, tail)| (&**name, *tail))
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// The lowest position of all tails.
    pub(crate) fn needed_from(&self) -> Option<u64> {
        self.list.values().map(|tail| tail.position).min()
    }

    /// Sets tails, and removes those without a state. After an error nothing has changed.
    pub(crate) fn put(&mut self, changes: &[(String, Option<Tail>)]) -> io::Result<()> {
        let before = self.list.clone();
        for (name, tail) in changes {
            match tail {
                Some(tail) => self.list.insert(name.clone(), *tail),
                None => self.list.remove(name),
            };
        }
        let written = self.write(changes);
        if written.is_err() {
            self.list = before;
        }
        written
    }

    /// As [`Tails::put`] for tails with a state, without the disk: a start finds the state before.
    pub(crate) fn put_in_memory(&mut self, changes: &[(String, Option<Tail>)]) {
        for (name, tail) in changes {
            if let Some(tail) = tail {
                self.list.insert(name.clone(), *tail);
            }
        }
    }

    fn write(&mut self, changes: &[(String, Option<Tail>)]) -> io::Result<()> {
        let Some(file) = &mut self.file else {
            return Err(io::Error::other("the store is only looked at"));
        };
        if file.size().is_some_and(|(bytes, _)| bytes < FILE_MAX) {
            let mut records = file.records();
            for (name, tail) in changes {
                records.put(|out| put(out, name, *tail));
            }
            return file.append(&records, Sync::Now);
        }
        let list = &self.list;
        let mut fill = |records: &mut Records| {
            for (name, tail) in list {
                records.put(|out| put(out, name, Some(*tail)));
            }
        };
        file.replace(file.generation() + 1, &mut fill, Sync::Now)
    }
}

/// Tails by the newest record of each name.
pub(crate) fn list_of<'a>(bodies: impl Iterator<Item = &'a [u8]>) -> BTreeMap<String, Tail> {
    let mut list = BTreeMap::new();
    for (name, tail) in bodies.filter_map(take) {
        match tail {
            Some(tail) => list.insert(name, tail),
            None => list.remove(&name),
        };
        if list.len() > TAILS_MAX {
            list.pop_last();
        }
    }
    list
}

impl Tail {
    /// Adds a missed part: it was removed before the tail acknowledged it.
    pub(crate) fn lose(&mut self, missed: Missed) {
        self.missed_values = self
            .missed_values
            .saturating_add(missed.values.unwrap_or(0));
        self.missed = Some(match self.missed {
            Some(before) => before.with(missed),
            None => missed,
        });
        self.position = self.position.max(missed.to);
    }

    /// Acknowledges everything before a position. `is_told`: the sink has got the missed parts up to there. `false`: nothing has
    /// changed.
    pub(crate) fn acknowledge(&mut self, position: u64, is_told: bool) -> bool {
        let before = *self;
        let is_news = |missed: &Missed| position < missed.to || (position == missed.to && !is_told);
        self.missed = self.missed.filter(is_news);
        self.position = self.position.max(position);
        before != *self
    }
}

/// States of a tail in a record: it was ended; it exists; it exists and has missed a known number of values, or an unknown one.
const ENDED: u8 = 0;
const THERE: u8 = 1;
const MISSED: u8 = 2;
const MISSED_UNKNOWN: u8 = 3;

fn put(out: &mut Vec<u8>, name: &str, tail: Option<Tail>) {
    let missed = tail.and_then(|tail| tail.missed);
    let state = match (tail, missed.map(|missed| missed.values)) {
        (None, _) => ENDED,
        (_, None) => THERE,
        (_, Some(Some(_))) => MISSED,
        (_, Some(None)) => MISSED_UNKNOWN,
    };
    out.push(state);
    let tail = tail.unwrap_or_default();
    let (from, to) = missed.map_or((0, 0), |missed| (missed.from, missed.to));
    let values = missed.and_then(|missed| missed.values).unwrap_or(0);
    for number in [tail.position, tail.missed_values, from, to, values] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    out.extend_from_slice(name.as_bytes());
}

fn take(body: &[u8]) -> Option<(String, Option<Tail>)> {
    let (&state, rest) = body.split_first()?;
    let (numbers, name) = rest.split_at_checked(40)?;
    let [position, missed_values, from, to, values] =
        std::array::from_fn(|at| u64_at(numbers, 8 * at));
    let missed = |values| Some(Missed { from, to, values });
    let missed = match state {
        ENDED | THERE => None,
        MISSED => missed(Some(values)),
        MISSED_UNKNOWN => missed(None),
        _ => return None,
    };
    let tail = (state != ENDED).then_some(Tail {
        position,
        missed,
        missed_values,
    });
    let name = std::str::from_utf8(name)
        .ok()
        .filter(|name| is_name(name))?;
    Some((name.into(), tail))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_and_odd_ones_are_refused() {
        let missed = |values| {
            Some(Missed {
                from: 1,
                to: 2,
                values,
            })
        };
        for tail in [
            None,
            Some(Tail::default()),
            Some(Tail {
                position: 7,
                missed: missed(Some(5)),
                missed_values: 9,
            }),
            Some(Tail {
                position: u64::MAX,
                missed: missed(None),
                missed_values: 0,
            }),
        ] {
            let mut out = Vec::new();
            put(&mut out, "forward.1", tail);
            assert_eq!(take(&out), Some(("forward.1".into(), tail)));
            for len in 0..42 {
                assert_eq!(take(&out[..len.min(41)]), None, "{len}");
            }
            assert_eq!(take(&[&out[..], b"/"].concat()), None);
            out[0] = 9;
            assert_eq!(take(&out), None);
        }
        assert!(!is_name("") && !is_name(&"a".repeat(65)) && !is_name("a b"));
    }
}
