//! Finds series by the value of a label. An entry costs eight bytes a label, and eight of its own. Hits are compared with the
//! label itself afterwards, so two values of one hash do no harm.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};

use kymo_base::label_set;
use kymo_series::{Matcher, SeriesId, names};
use kymo_store::KnownSeries;

use super::labelled::{alias_of, labels_of};

/// Most entries that wait to be sorted in: this part of the sorted ones, or this number.
const RECENT_PART: usize = 8;
const RECENT_LEAST: usize = 1024;

/// A column of a series of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct StoredColumn {
    pub(super) id: u32,
    pub(super) column: u16,
}

impl StoredColumn {
    pub(super) fn series_id(self) -> SeriesId {
        SeriesId(u64::from(self.id) << 16 | u64::from(self.column))
    }

    pub(super) fn of(SeriesId(id): SeriesId) -> StoredColumn {
        StoredColumn {
            id: u32::try_from(id >> 16).unwrap_or(u32::MAX),
            column: u16::try_from(id & 0xffff).unwrap_or(u16::MAX),
        }
    }
}

/// All entries, and those of each value of each label.
#[derive(Default)]
pub(super) struct LabelIndex {
    /// Series below this number are in the index.
    pub(super) next_id: u32,
    /// Number of renamed series in the store when the index was begun.
    pub(super) renamed: u64,
    entries: Vec<StoredColumn>,
    postings: BTreeMap<Box<str>, Postings>,
    hasher: RandomState,
}

/// Pairs of a value's hash and the number of an entry with this value.
#[derive(Default)]
struct Postings {
    sorted: Vec<(u32, u32)>,
    recent: Vec<(u32, u32)>,
}

impl Postings {
    fn add(&mut self, hash: u32, entry: u32) {
        self.recent.push((hash, entry));
        if self.recent.len() > RECENT_LEAST.max(self.sorted.len() / RECENT_PART) {
            // Exactly as much memory as needed: doubled capacity would be half empty.
            self.sorted.reserve_exact(self.recent.len());
            self.sorted.extend(std::mem::take(&mut self.recent));
            self.sorted.sort_unstable();
        }
    }

    fn of_hash(&self, hash: u32) -> impl Iterator<Item = u32> + '_ {
        let from = self.sorted.partition_point(|(other, _)| *other < hash);
        let sorted = self.sorted[from..].iter();
        let sorted = sorted.take_while(move |(other, _)| *other == hash);
        let recent = self.recent.iter().filter(move |(other, _)| *other == hash);
        sorted.chain(recent).map(|(_, entry)| *entry)
    }
}

impl LabelIndex {
    fn hash(&self, value: &[u8]) -> u32 {
        let hash = self.hasher.hash_one(value);
        // Half of the hash is enough: labels are compared afterwards.
        u32::try_from(hash >> 32).unwrap_or(0)
    }

    /// Adds the columns of a series.
    pub(super) fn add(&mut self, series: &KnownSeries) {
        let columns = u16::try_from(series.columns.columns.len()).unwrap_or(u16::MAX);
        for column in 0..columns {
            let Some(labels) = labels_of(series, column) else {
                continue;
            };
            let Ok(number) = u32::try_from(self.entries.len()) else {
                return;
            };
            if self.entries.len() == self.entries.capacity() {
                self.entries
                    .reserve_exact(RECENT_LEAST.max(self.entries.len() / RECENT_PART));
            }
            self.entries.push(StoredColumn {
                id: series.id,
                column,
            });
            for (name, value) in label_set::each(labels.text()) {
                let name = String::from_utf8_lossy(name);
                self.post(&name, &value, number);
            }
            if let Some(alias) = alias_of(series, column) {
                let metric = names::metric_of(&alias);
                self.post(names::METRIC, metric.as_bytes(), number);
            }
        }
    }

    fn post(&mut self, label: &str, value: &[u8], number: u32) {
        let hash = self.hash(value);
        if let Some(postings) = self.postings.get_mut(label) {
            return postings.add(hash, number);
        }
        let postings = self.postings.entry(label.into()).or_default();
        postings.add(hash, number);
    }

    /// Entries that the matchers may pick, each once.
    pub(super) fn candidates(&self, matchers: &[Matcher]) -> Vec<StoredColumn> {
        let mut best: Option<Vec<u32>> = None;
        for matcher in matchers {
            let Some(values) = matcher.only().filter(|_| !matcher.matches_empty()) else {
                continue;
            };
            // The index has only the name of an alias: the other labels of an alias differ from those of its series.
            if matcher.label() != names::METRIC && has_alias(matchers) {
                continue;
            }
            let postings = self.postings.get(matcher.label());
            let mut found: Vec<u32> = postings
                .into_iter()
                .flat_map(|postings| {
                    let hashes = values.iter().map(|value| self.hash(value.as_bytes()));
                    hashes.flat_map(|hash| postings.of_hash(hash))
                })
                .collect();
            found.sort_unstable();
            found.dedup();
            best = Some(match best {
                None => found,
                Some(before) => both(&before, &found),
            });
        }
        match best {
            Some(numbers) => {
                let entries = numbers
                    .iter()
                    .filter_map(|&number| self.entries.get(usize::try_from(number).ok()?).copied());
                entries.collect()
            }
            None => self.entries.clone(),
        }
    }

    /// Names of all labels.
    pub(super) fn label_names(&self) -> Vec<String> {
        self.postings.keys().map(|name| name.to_string()).collect()
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        let postings = self.postings.values();
        let postings = postings.map(|it| 8 * (it.sorted.capacity() + it.recent.capacity()));
        postings.sum::<usize>() + 8 * self.entries.capacity()
    }
}

/// True if matchers may name an alias.
fn has_alias(matchers: &[Matcher]) -> bool {
    let names_one = |matcher: &&Matcher| matcher.label() == names::METRIC;
    let mut names = matchers
        .iter()
        .filter(names_one)
        .filter_map(Matcher::only)
        .flatten();
    names.any(|name| name.starts_with("collectd_"))
}

/// Numbers that are in both sorted lists.
fn both(one: &[u32], other: &[u32]) -> Vec<u32> {
    let (few, many) = if one.len() < other.len() {
        (one, other)
    } else {
        (other, one)
    };
    let common = few
        .iter()
        .filter(|number| many.binary_search(number).is_ok());
    common.copied().collect()
}
