//! Labels of the series that were found lately, by their numbers. A number is made of the labels, so that it is the same for
//! all clients. There are two generations: when the newer one is full, the older one goes.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use kymo_series::Labels;

/// Series of a generation.
const GENERATION: usize = 200_000;

/// Series that were found.
#[derive(Default)]
pub(crate) struct KnownSeries {
    newer: HashMap<u64, Labels>,
    older: HashMap<u64, Labels>,
}

impl KnownSeries {
    /// The number of a series.
    pub(crate) fn id(labels: &Labels) -> u64 {
        let mut hasher = DefaultHasher::new();
        labels.text().hash(&mut hasher);
        hasher.finish()
    }

    /// Keeps a series; its number.
    pub(crate) fn add(&mut self, labels: &Labels) -> u64 {
        if self.newer.len() >= GENERATION {
            self.older = std::mem::take(&mut self.newer);
        }
        let id = KnownSeries::id(labels);
        self.newer.insert(id, labels.clone());
        id
    }

    /// The labels of a series; `None`: it was found too long ago.
    pub(crate) fn labels(&self, id: u64) -> Option<&Labels> {
        self.newer.get(&id).or_else(|| self.older.get(&id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_older_generation_goes() {
        let labels = |n: usize| {
            let value = n.to_string();
            Labels::new([("a", value.as_bytes())]).unwrap()
        };
        let mut known = KnownSeries::default();
        let first = known.add(&labels(0));
        for n in 1..GENERATION * 2 {
            known.add(&labels(n));
        }
        assert_eq!(known.labels(first), Some(&labels(0)));
        known.add(&labels(GENERATION * 2));
        assert_eq!(known.labels(first), None);
        let id = KnownSeries::id(&labels(GENERATION));
        assert_eq!(known.labels(id), Some(&labels(GENERATION)));
    }
}
