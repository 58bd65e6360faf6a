//! All metrics, by the bytes of their names and tags.

use std::collections::HashMap;
use std::time::Duration;

use kymo_store::Store;
use kymo_wire::statsd::Tags;

use super::aggregate::{Aggregate, Family};
use crate::common::keyed_hash::KeyedHash;
use crate::common::sender_lots::SenderLot;
use crate::common::series_limit::{HELD_MAX, SHARE_IS_FULL, SeriesLimit};

/// Most spellings of metrics in memory: tags may come in any order. Further spellings are
/// found more slowly.
const SPELLINGS_MAX: usize = 2 * HELD_MAX;

/// A tag's key and its value.
type OwnedTag = (Box<[u8]>, Box<[u8]>);

/// A metric.
#[derive(Debug)]
pub(super) struct Metric {
    pub(super) name: Box<[u8]>,
    /// Tags as the first line spelled them.
    tags: Vec<OwnedTag>,
    pub(super) aggregate: Aggregate,
    /// Time of the last line, by the monotonic clock.
    pub(super) received_ns: u64,
    /// Number of series that the limits count for this metric, and the sender that they count them for.
    series: usize,
    sender: SenderLot,
}

impl Metric {
    /// Tags as keys and values.
    pub(super) fn tags(&self) -> Vec<(&[u8], &[u8])> {
        let tags = self.tags.iter();
        tags.map(|(key, value)| (&**key, &**value)).collect()
    }
}

/// All metrics.
pub(super) struct Metrics {
    /// Index of a metric by the spellings of its family, name and tags.
    places: HashMap<Box<[u8]>, usize, KeyedHash>,
    pub(super) metrics: Vec<Option<Metric>>,
    vacant: Vec<usize>,
    limit: SeriesLimit,
    key: Vec<u8>,
}

/// Reason for refusing a metric.
pub(super) type WhyNot = &'static str;

pub(super) const NEW_NAMES: WhyNot = "a sample of a new name beyond the limit of new ones";

impl Metrics {
    /// No metrics yet.
    pub(super) fn new() -> Metrics {
        Metrics {
            places: HashMap::default(),
            metrics: Vec::new(),
            vacant: Vec::new(),
            limit: SeriesLimit::default(),
            key: Vec::new(),
        }
    }

    /// True if there are no metrics.
    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Index of a metric. Begins the metric if it is new.
    pub(super) fn find(
        &mut self,
        (family, name, tags): (Family, &[u8], &Tags),
        sender: SenderLot,
        store: &Store,
        now_ns: u64,
    ) -> Result<usize, WhyNot> {
        self.key.clear();
        self.key.push(family.byte());
        self.key.extend_from_slice(name);
        self.key.push(b'|');
        self.key.extend_from_slice(tags.raw());
        match self.places.get(&*self.key) {
            Some(place) => Ok(*place),
            None => self.arrive((family, name, tags), sender, store, now_ns),
        }
    }

    /// Finds a metric by another spelling, or begins a new one.
    fn arrive(
        &mut self,
        (family, name, tags): (Family, &[u8], &Tags),
        sender: SenderLot,
        store: &Store,
        now_ns: u64,
    ) -> Result<usize, WhyNot> {
        let mut pairs: Vec<(&[u8], &[u8])> = tags.iter().collect();
        pairs.sort_unstable();
        let spelling: Box<[u8]> = self.key.as_slice().into();
        let sorted = sorted_spelling((family, name), &pairs);
        let place = match self.places.get(&*sorted) {
            Some(place) => *place,
            None => {
                self.admit((family, name), &pairs, sender, store, now_ns)?;
                let place = self.begin((family, name), &pairs, sender, now_ns);
                self.places.insert(sorted, place);
                place
            }
        };
        if self.places.len() < SPELLINGS_MAX {
            self.places.insert(spelling, place);
        }
        Ok(place)
    }

    /// Refuses a metric beyond the limits. A metric that the store has costs no budget.
    fn admit(
        &mut self,
        (family, name): (Family, &[u8]),
        tags: &[(&[u8], &[u8])],
        sender: SenderLot,
        store: &Store,
        now_ns: u64,
    ) -> Result<(), WhyNot> {
        let now_s = Duration::from_nanos(now_ns).as_secs_f64();
        let limit = &mut self.limit;
        if limit.room(sender) == 0 {
            return Err(SHARE_IS_FULL);
        }
        if !limit.may_look(sender, now_s) {
            return Err(NEW_NAMES);
        }
        let labels = family.first().labels(name, tags);
        let labels = labels.map_err(|_| "a name whose labels are too long or too many")?;
        let is_known = store.find_points(&labels).is_some();
        match is_known || limit.may_begin(sender, family.series(), now_s) {
            true => Ok(()),
            false => Err(NEW_NAMES),
        }
    }

    /// Pays for a new bucket. False: the budget has none left.
    pub(super) fn may_begin_bucket(&mut self, place: usize, now_ns: u64) -> bool {
        let now_s = Duration::from_nanos(now_ns).as_secs_f64();
        let metric = self.metrics.get(place).and_then(Option::as_ref);
        metric.is_some_and(|metric| self.limit.may_begin(metric.sender, 1, now_s))
    }

    /// The metric at `place`, and the number of series that its sender may add.
    pub(super) fn metric(&mut self, place: usize) -> Option<(&mut Metric, usize)> {
        let metric = self.metrics.get_mut(place)?.as_mut()?;
        let room = self.limit.room(metric.sender);
        Some((metric, room))
    }

    /// Counts series that a metric has made.
    pub(super) fn add_series(&mut self, place: usize, made: usize) {
        if let Some(metric) = self.metrics.get_mut(place).and_then(Option::as_mut) {
            metric.series += made;
            self.limit.hold(metric.sender, made);
        }
    }

    fn begin(
        &mut self,
        (family, name): (Family, &[u8]),
        tags: &[(&[u8], &[u8])],
        sender: SenderLot,
        now_ns: u64,
    ) -> usize {
        let series = usize::try_from(family.series()).unwrap_or(usize::MAX);
        let tags = tags.iter();
        let metric = Metric {
            name: name.into(),
            tags: tags
                .map(|&(key, value)| (key.into(), value.into()))
                .collect(),
            aggregate: family.empty(),
            received_ns: now_ns,
            series,
            sender,
        };
        self.limit.hold(sender, series);
        let place = self.vacant.pop().unwrap_or(self.metrics.len());
        match self.metrics.get_mut(place) {
            Some(vacant) => *vacant = Some(metric),
            None => self.metrics.push(Some(metric)),
        }
        place
    }

    /// Forgets metrics without lines since this time, and calls `gone` with each.
    pub(super) fn forget_silent(&mut self, since_ns: u64, mut gone: impl FnMut(&mut Metric)) {
        let before = self.vacant.len();
        for (place, held) in self.metrics.iter_mut().enumerate() {
            if let Some(metric) = held.as_mut().filter(|metric| metric.received_ns < since_ns) {
                gone(metric);
                self.limit.release(metric.sender, metric.series);
                *held = None;
                self.vacant.push(place);
            }
        }
        if self.vacant.len() > before {
            let metrics = &self.metrics;
            let is_there = |place: usize| metrics.get(place).is_some_and(Option::is_some);
            self.places.retain(|_, place| is_there(*place));
        }
    }
}

/// A metric's spelling with sorted tags.
fn sorted_spelling((family, name): (Family, &[u8]), tags: &[(&[u8], &[u8])]) -> Box<[u8]> {
    let mut key = vec![family.byte()];
    key.extend_from_slice(name);
    let mut mark = b'|';
    for (tag, value) in tags {
        key.push(mark);
        key.extend_from_slice(tag);
        if !value.is_empty() {
            key.push(b':');
            key.extend_from_slice(value);
        }
        mark = b',';
    }
    if tags.is_empty() {
        key.push(mark);
    }
    key.into()
}
