//! Counts of the recorder since its start: samples taken, missed, lost. They come from the heads of its
//! records, read on from the end of the last count.

use std::sync::Mutex;

use kymo_query::marks::{self, Marker};
use kymo_query::recorded::Recorded;
use kymo_query::source::{Source as _, Step};
use kymo_recording::reader::{Kinds, TimeRange};
use kymo_sys::clock::{Clock as _, RealClock};
use kymo_sys::procs;

use crate::cost;
use kymo_query::archive::{Archive, own};

/// Counts since a recorder started.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Tally {
    /// Samples recorded.
    pub samples: u64,
    /// Samples not taken in time.
    pub missed: u64,
    /// Times that records were lost on their way to the disk.
    pub dropped: u64,
}

/// Counts samples.
#[derive(Default)]
pub(crate) struct Counter(Mutex<Option<Counting>>);

struct Counting {
    recorder: u32,
    source: Recorded,
    marker: Marker,
    /// Start of the recorder. Gaps before it do not count.
    from_ns: i64,
    tally: Tally,
}

impl Counter {
    /// Counts up to now. Without a recorder the counts are zero.
    pub(crate) fn count(&self, archive: &Archive) -> Tally {
        let Ok(mut counting) = self.0.lock() else {
            return Tally::default();
        };
        let recorder = archive
            .what
            .ring()
            .and_then(|ring| cost::recorder_pid(ring));
        if counting.as_ref().map(|counting| counting.recorder) != recorder {
            *counting = recorder.and_then(|pid| Counting::begin(archive, pid));
        }
        let Some(at_work) = counting.as_mut() else {
            return Tally::default();
        };
        if at_work.go_on().is_err() {
            *counting = None;
            return Tally::default();
        }
        at_work.tally
    }
}

impl Counting {
    fn begin(archive: &Archive, recorder: u32) -> Option<Counting> {
        let age_s = procs::age_of(recorder)?;
        let range = TimeRange {
            from_ns: RealClock.now().real_ns - (age_s * 1e9) as i64,
            thru_ns: i64::MAX,
        };
        Some(Counting {
            recorder,
            source: Recorded::open(&own(archive.what.ring()?), range, Kinds::NONE).ok()?,
            marker: Marker::default(),
            from_ns: range.from_ns,
            tally: Tally::default(),
        })
    }

    fn go_on(&mut self) -> Result<(), String> {
        while let Some(step) = self.source.next()? {
            let (dropped, from_ns) = (&mut self.tally.dropped, self.from_ns);
            let context = self.source.context();
            self.marker.step(&step, context, &mut |mark| {
                let is_loss = mark.kind == marks::Kind::Gap && mark.from_ns >= from_ns;
                *dropped += u64::from(is_loss);
            });
            if let Step::Sample(moment) = step
                && !moment.warmup
            {
                self.tally.samples += 1;
                self.tally.missed += u64::from(moment.missed);
            }
        }
        Ok(())
    }
}
