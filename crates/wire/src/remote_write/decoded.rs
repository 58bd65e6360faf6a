//! The series that is being read, in buffers that are used again, and the rules that its labels keep.

use std::cmp::Ordering;

use super::model::{SeriesMetadata, WriteLabel, WriteLimits, WriteSample};
use super::refusal::{BadSeries, BadWrite};

const METRIC_NAME: &str = "__name__";

/// A series as far as it has been read.
#[derive(Debug)]
pub(super) struct Decoded<'a> {
    pub(super) labels: Vec<WriteLabel<'a>>,
    pub(super) samples: Vec<WriteSample>,
    pub(super) metadata: Option<SeriesMetadata<'a>>,
    pub(super) exemplars: u64,
    pub(super) histograms: u64,
    pub(super) bad: Option<BadSeries>,
    pub(super) unsorted: bool,
    label_bytes: usize,
    limits: WriteLimits,
    /// How many samples of the message's limit are left.
    room: usize,
}

impl<'a> Decoded<'a> {
    pub(super) fn new(limits: WriteLimits) -> Decoded<'a> {
        Decoded {
            labels: Vec::new(),
            samples: Vec::new(),
            metadata: None,
            exemplars: 0,
            histograms: 0,
            bad: None,
            unsorted: false,
            label_bytes: 0,
            limits,
            room: limits.samples,
        }
    }

    /// Begins the next series.
    pub(super) fn clear(&mut self) {
        self.labels.clear();
        self.samples.clear();
        self.metadata = None;
        (self.exemplars, self.histograms) = (0, 0);
        self.bad = None;
        self.unsorted = false;
        self.label_bytes = 0;
    }

    /// The first rule that is broken counts.
    pub(super) fn refuse(&mut self, why: BadSeries) {
        self.bad.get_or_insert(why);
    }

    /// An empty value is as good as no label.
    #[inline]
    pub(super) fn push_label(&mut self, name: &'a str, value: &'a str) {
        self.label_bytes += name.len() + value.len();
        let last = self.labels.last();
        let order = last.map_or(Ordering::Greater, |last| compare(name, last.name));
        let is_whole = !name.is_empty() && !value.is_empty();
        if order == Ordering::Greater && is_whole && self.labels.len() < self.limits.labels {
            self.labels.push(WriteLabel { name, value });
        } else {
            self.push_odd_label(name, value, order);
        }
    }

    /// A label that is out of order, or breaks a rule.
    #[cold]
    fn push_odd_label(&mut self, name: &'a str, value: &'a str, order: Ordering) {
        let refusal = match order {
            _ if name.is_empty() => BadSeries::EmptyLabelName,
            _ if value.is_empty() => return,
            _ if self.labels.len() >= self.limits.labels => BadSeries::LabelCount,
            Ordering::Equal => BadSeries::Twice,
            Ordering::Less | Ordering::Greater => {
                self.unsorted = true;
                self.labels.push(WriteLabel { name, value });
                return;
            }
        };
        self.refuse(refusal);
    }

    #[inline]
    pub(super) fn push_sample(&mut self, sample: WriteSample) -> Result<(), BadWrite> {
        self.room = self.room.checked_sub(1).ok_or(BadWrite::Samples)?;
        self.samples.push(sample);
        Ok(())
    }

    /// Sorts labels that are not, and checks the rules that concern all of them.
    pub(super) fn finish(&mut self) {
        if self.bad.is_some() {
            return;
        }
        if self.unsorted {
            self.labels.sort_unstable();
            let twice =
                |pair: &[WriteLabel]| pair.first().map(|l| l.name) == pair.last().map(|l| l.name);
            if self.labels.windows(2).any(twice) {
                self.refuse(BadSeries::Twice);
            }
        }
        if self.label_bytes > self.limits.label_bytes {
            self.refuse(BadSeries::LabelBytes);
        }
        if !self.labels.iter().any(|label| label.name == METRIC_NAME) {
            self.refuse(BadSeries::NoName);
        }
    }
}

/// The order of two names, most of which differ in their first byte.
#[inline]
fn compare(name: &str, last: &str) -> Ordering {
    let first = name.as_bytes().first().cmp(&last.as_bytes().first());
    first.then_with(|| name.cmp(last))
}
