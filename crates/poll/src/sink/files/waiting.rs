//! Values that wait until another process unlocks their file.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::PathBuf;

/// Limit of waiting values of a target: a day of five minutes.
const VALUES_MAX: usize = 288;
/// Limit of waiting values of all targets.
const ALL_MAX: usize = 1 << 18;

/// Waiting values by target, oldest first.
#[derive(Default)]
pub(super) struct Waiting {
    values: BTreeMap<u32, Values>,
    count: usize,
}

/// Arguments of updates.
pub(super) type Values = VecDeque<Box<[u8]>>;

impl Waiting {
    /// Number of waiting values.
    pub(super) fn len(&self) -> u64 {
        self.count as u64
    }

    /// Targets with values that wait.
    pub(super) fn targets(&self) -> Vec<u32> {
        self.values.keys().copied().collect()
    }

    /// True if values of this target wait.
    pub(super) fn has(&self, target: u32) -> bool {
        self.values.contains_key(&target)
    }

    /// Adds a value. False if one was dropped for it: the oldest of the target, or the new
    /// one.
    pub(super) fn push(&mut self, target: u32, argument: &[u8]) -> bool {
        if self.count >= ALL_MAX {
            return false;
        }
        let values = self.values.entry(target).or_default();
        values.push_back(argument.into());
        if values.len() > VALUES_MAX {
            values.pop_front();
            return false;
        }
        self.count += 1;
        true
    }

    /// Takes the values of a target.
    pub(super) fn take(&mut self, target: u32) -> Values {
        let values = self.values.remove(&target).unwrap_or_default();
        self.count -= values.len();
        values
    }

    /// Returns values that have to wait longer.
    pub(super) fn put_back(&mut self, target: u32, values: Values) {
        self.count += values.len();
        self.values.insert(target, values);
    }

    /// Renumbers the targets after a change of the configuration: `before` gives the old
    /// path of a target, `now` the new paths.
    pub(super) fn follow<'a>(
        &mut self,
        before: impl Fn(u32) -> Option<&'a PathBuf>,
        now: impl Iterator<Item = &'a PathBuf>,
    ) {
        let values = std::mem::take(&mut self.values);
        self.count = 0;
        if values.is_empty() {
            return;
        }
        let mut by_path: HashMap<&PathBuf, Values> = HashMap::new();
        for (target, values) in values {
            if let Some(path) = before(target) {
                by_path.insert(path, values);
            }
        }
        for (target, path) in (0..).zip(now) {
            if let Some(values) = by_path.remove(path) {
                self.put_back(target, values);
            }
        }
    }
}
