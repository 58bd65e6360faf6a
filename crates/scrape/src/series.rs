//! Series of a target, by the texts in which it exposes them, so that labels are made once for each. A series that is
//! missing in a scrape has ended.

use std::collections::{HashMap, HashSet};

/// Labels of a series, sorted by their names.
pub(crate) type PlainLabels = Box<[(Box<str>, Box<str>)]>;

/// A series as a target exposes it.
pub(crate) struct ExposedSeries {
    /// Labels under which samples are kept; `None`: they are dropped.
    pub(crate) labels: Option<PlainLabels>,
    /// Number of the last scrape that had it.
    seen: u64,
    /// True if the sample of that scrape had a time of its own.
    has_own_time: bool,
    /// True if a scrape that succeeded had a sample of it, with the time of the scrape.
    is_live: bool,
}

/// Part that a series has in a scrape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// First sample of the series in this scrape.
    First,
    /// A further one.
    Again,
}

impl ExposedSeries {
    /// A series that is not in any scrape yet.
    pub(crate) fn new(labels: Option<PlainLabels>) -> ExposedSeries {
        ExposedSeries {
            labels,
            seen: 0,
            has_own_time: false,
            is_live: false,
        }
    }
}

/// All series of the last scrape.
#[derive(Default)]
pub(crate) struct TargetSeries {
    known: HashMap<Box<str>, ExposedSeries>,
    scrape: u64,
}

impl TargetSeries {
    /// Begins a scrape.
    pub(crate) fn begin(&mut self) {
        self.scrape += 1;
    }

    /// Number of the scrape.
    pub(crate) fn scrape(&self) -> u64 {
        self.scrape
    }

    /// True if the series with this text is known.
    pub(crate) fn has(&self, text: &str) -> bool {
        self.known.contains_key(text)
    }

    /// Adds a series.
    pub(crate) fn add(&mut self, text: &str, series: ExposedSeries) {
        self.known.insert(text.into(), series);
    }

    /// Notes a sample of a known series. Returns its labels, and whether this scrape had one before.
    pub(crate) fn note(
        &mut self,
        text: &str,
        has_own_time: bool,
    ) -> Option<(Turn, Option<&PlainLabels>)> {
        let series = self.known.get_mut(text)?;
        let turn = match series.seen == self.scrape {
            true => Turn::Again,
            false => Turn::First,
        };
        series.seen = self.scrape;
        series.has_own_time = has_own_time;
        Some((turn, series.labels.as_ref()))
    }

    /// Ends a scrape that succeeded: series without a sample are forgotten, and given to `ended` if they were live.
    pub(crate) fn succeed(&mut self, mut ended: impl FnMut(&PlainLabels)) {
        let scrape = self.scrape;
        let gone = self.known.extract_if(|_, series| series.seen != scrape);
        let gone: Vec<ExposedSeries> = gone.map(|(_, series)| series).collect();
        for series in self.known.values_mut() {
            series.is_live = !series.has_own_time;
        }
        if gone.is_empty() {
            return;
        }
        // A target may spell a series in another way from now on.
        let spelled = self.known.values().filter_map(|of| of.labels.as_ref());
        let spelled: HashSet<&PlainLabels> = spelled.collect();
        let gone = gone.iter().filter(|series| series.is_live);
        let gone = gone.filter_map(|series| series.labels.as_ref());
        gone.filter(|labels| !spelled.contains(labels))
            .for_each(&mut ended);
    }

    /// Ends a scrape that failed: all series are forgotten, and given to `ended` if they were live before.
    pub(crate) fn fail(&mut self, ended: impl FnMut(&PlainLabels)) {
        let known = std::mem::take(&mut self.known);
        let live = known.values().filter(|series| series.is_live);
        live.filter_map(|series| series.labels.as_ref())
            .for_each(ended);
    }
}
