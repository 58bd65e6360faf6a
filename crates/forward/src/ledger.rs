//! Accounts of one receiver: counts of its values, and lines of the log about it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use kymo_sys::clock::{Clock as _, RealClock};
use kymo_sys::{machine, talk};

use super::counts::{Counts, add};
use super::delay::Delay;

/// Interval of messages about samples that a receiver refuses.
const SAY_EVERY: Duration = Duration::from_secs(60);

/// Accounts of a receiver.
pub(crate) struct Ledger {
    name: String,
    counts: Arc<Counts>,
    /// The last message about refused samples.
    refused_said_ns: Option<u64>,
}

impl Ledger {
    /// Accounts of the receiver with this name.
    pub(crate) fn new(name: String, counts: Arc<Counts>) -> Ledger {
        Ledger {
            name,
            counts,
            refused_said_ns: None,
        }
    }

    /// Counts a request or packet.
    pub(crate) fn request(&self) {
        add(&self.counts.requests, 1);
    }

    /// The receiver has these samples.
    pub(crate) fn sent(&self, samples: u64, bytes: usize) {
        add(&self.counts.bytes, u64::try_from(bytes).unwrap_or(0));
        add(&self.counts.sent, samples);
        self.note_up();
    }

    /// The receiver never takes these samples.
    pub(crate) fn refused(&mut self, samples: u64, why: &str) {
        self.note_up();
        add(&self.counts.refused, samples);
        let now_ns = RealClock.mono_ns();
        let since = |said_ns: u64| Duration::from_nanos(now_ns.saturating_sub(said_ns));
        if self
            .refused_said_ns
            .is_none_or(|said_ns| since(said_ns) >= SAY_EVERY)
        {
            self.refused_said_ns = Some(now_ns);
            let name = &self.name;
            talk::say(format_args!(
                "kymo: forward {name}: {samples} samples are refused and dropped: {why}"
            ));
        }
    }

    /// A request failed: waits until it may go again, and not shorter than the receiver asked for.
    pub(crate) fn failed(&self, why: &str, delay: &mut Delay, after: Option<Duration>) {
        add(&self.counts.failed, 1);
        if !self.counts.is_down.swap(true, Ordering::Relaxed) {
            let name = &self.name;
            talk::say(format_args!(
                "kymo: cannot forward to {name}: {why}; the values wait in the journal"
            ));
        }
        thread::sleep(delay.next(after, random()));
    }

    fn note_up(&self) {
        if self.counts.is_down.swap(false, Ordering::Relaxed) {
            let name = &self.name;
            talk::say(format_args!("kymo: forward {name}: it takes values again"));
        }
    }

    /// The journal had these values no more; `None`: their number is not known.
    pub(crate) fn missed(&self, values: Option<u64>) {
        let name = &self.name;
        match values {
            Some(values) => {
                add(&self.counts.missed, values);
                talk::say(format_args!(
                    "kymo: forward {name}: {values} values are missed: the journal has them no more"
                ));
            }
            None => talk::say(format_args!(
                "kymo: forward {name}: values are missed, how many is not known: the journal has them no more"
            )),
        }
    }

    /// The keeper failed for the first time in a row.
    pub(crate) fn keeper_failed(&self, why: &str) {
        let name = &self.name;
        talk::say(format_args!(
            "kymo: forward {name}: {why}; the keeper is asked again"
        ));
    }
}

/// A random number; without one pauses are long.
fn random() -> u32 {
    let mut bytes = [0xff; 4];
    let _all_alike = machine::random(&mut bytes);
    u32::from_le_bytes(bytes)
}
