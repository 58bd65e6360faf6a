//! One receiver: the tail is read, the samples go out, and the next reading acknowledges them.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use kymo_base::errno::strerror;
use kymo_keeper_client::{Tail, TailSink as _};
use kymo_sys::clock::{Clock as _, RealClock};
use kymo_sys::{machine, talk};
use kymo_wire::keeper::{MissedPart, TailPlace};
use kymo_wire::remote_write::WriteVersion;
use tokio::runtime::{Builder, Runtime};

use super::answer::{Verdict, judge};
use super::batch::Batch;
use super::counts::{Counts, add};
use super::delay::Delay;
use super::message::{Messages, Part};
use super::order::{ForwardOrder, ForwardTarget, tail_name};
use super::picker::Picker;
use super::report::Report;
use super::sender::Sender;

/// Longest wait of a request to the keeper.
const WAIT: Duration = Duration::from_secs(30);
/// Time in which samples gather for the next request.
const GATHER: Duration = Duration::from_secs(2);
/// Pause before a keeper that did not answer is asked again.
const PAUSE: Duration = Duration::from_secs(1);
/// Interval of messages about samples that a receiver refuses.
const SAY_EVERY: Duration = Duration::from_secs(60);
/// Bytes of the journal in a reading: with many series there are more, so that each has several samples.
const READ_MIN: u32 = 256 << 10;
const READ_MAX: u32 = 4 << 20;
/// Bytes of the journal for a series in a reading: about ten samples.
const SERIES_BYTES: u32 = 100;
/// Failures of the keeper after which the tail begins where the keeper knows that it stands.
const FAILURES_MAX: u32 = 60;
/// Threads of a receiver that look up its name.
const THREADS_MAX: usize = 2;

/// Forwards for ever. An error means that it cannot begin.
pub fn forward(order: ForwardOrder) -> Result<(), String> {
    let mut report = Report::new(&order.keeper);
    for target in order.targets {
        let name = target.name.clone();
        let cannot = |why: String| format!("cannot forward to {name}: {why}");
        let counts = Arc::new(Counts::default());
        report.add(&target, counts.clone());
        let forwarder = Forwarder::new(&order.keeper, target, counts).map_err(cannot)?;
        let named = thread::Builder::new().name("forward".into());
        let started = named.spawn(move || forwarder.run());
        started.map_err(|error| cannot(no_thread(&error)))?;
    }
    report.run()
}

fn no_thread(error: &io::Error) -> String {
    format!("cannot start a thread: {}", strerror(error))
}

/// The last reading. The keeper counts it as missed until it is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Delivered {
    from: u64,
    to: u64,
    values: u64,
}

struct Forwarder {
    name: String,
    socket: std::path::PathBuf,
    tail: Tail,
    batch: Batch,
    messages: Messages,
    sender: Sender,
    runtime: Runtime,
    counts: Arc<Counts>,
    delivered: Delivered,
    /// Failures of the keeper in a row.
    failures: u32,
    /// The last message about refused samples.
    refused_said_ns: Option<u64>,
}

impl Forwarder {
    fn new(keeper: &Path, target: ForwardTarget, counts: Arc<Counts>) -> Result<Forwarder, String> {
        let picker = Picker::new(&target.selectors, &target.labels, &target.drop_labels)?;
        let runtime = Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(THREADS_MAX)
            .build()
            .map_err(|error| no_thread(&error))?;
        Ok(Forwarder {
            tail: open(keeper, &target.name),
            socket: keeper.into(),
            batch: Batch::new(picker),
            messages: Messages::new(WriteVersion::V2),
            sender: Sender::new(&target)?,
            name: target.name,
            runtime,
            counts,
            delivered: Delivered::default(),
            failures: 0,
            refused_said_ns: None,
        })
    }

    fn run(mut self) {
        loop {
            let from = self.tail.position();
            self.batch.begin();
            let bytes = self.reading_bytes();
            let read = self.tail.next_within(bytes, WAIT, &mut self.batch);
            match read {
                Ok(()) => self.deliver(from),
                Err(why) => {
                    self.keeper_failed(&why);
                    continue;
                }
            }
            let to = self.tail.position();
            let passed = to.unwrap_or(0).saturating_sub(from.or(to).unwrap_or(0));
            if passed < u64::from(bytes / 4 * 3) {
                thread::sleep(GATHER);
            }
        }
    }

    /// Bytes of the journal for the next reading.
    fn reading_bytes(&self) -> u32 {
        let series = u32::try_from(self.batch.catalog.len()).unwrap_or(u32::MAX);
        series
            .saturating_mul(SERIES_BYTES)
            .clamp(READ_MIN, READ_MAX)
    }

    fn keeper_failed(&mut self, why: &str) {
        if self.failures == 0 {
            let name = &self.name;
            talk::say(format_args!(
                "kymo: forward {name}: {why}; the keeper is asked again"
            ));
        }
        self.failures += 1;
        if self.failures >= FAILURES_MAX {
            self.failures = 1;
            self.tail = open(&self.socket, &self.name);
            self.batch.restarted();
        }
        thread::sleep(PAUSE);
    }

    /// Sends the samples of a reading.
    fn deliver(&mut self, from: Option<u64>) {
        self.failures = 0;
        for missed in std::mem::take(&mut self.batch.missed) {
            self.note_missed(&missed);
        }
        self.batch.group();
        let mut at = 0;
        while at < self.batch.groups.len() {
            let part = self.messages.make(&self.batch, at);
            at = match self.send(part) {
                Sent::Done => part.end,
                Sent::Again => at,
            };
        }
        let to = self.tail.position().unwrap_or(0);
        self.delivered = Delivered {
            from: from.unwrap_or(to),
            to,
            values: self.batch.values,
        };
        if at > 0 {
            self.acknowledge();
        }
    }

    /// Acknowledges a reading at once: after a death of this process it would come again, and receivers such as
    /// Prometheus refuse a whole request that has an old sample among new ones.
    fn acknowledge(&mut self) {
        self.batch.begin();
        if let Err(why) = self.tail.acknowledge(&mut self.batch) {
            self.keeper_failed(&why);
        }
    }

    /// Sends a request until the receiver has it or refuses it.
    fn send(&mut self, part: Part) -> Sent {
        let mut delay = Delay::default();
        loop {
            let version = self.messages.version();
            let packed = self.messages.packed();
            let answer = self.runtime.block_on(self.sender.post(version, packed));
            add(&self.counts.requests, 1);
            let verdict = match answer {
                Ok(answer) => judge(version, answer),
                Err(why) => Verdict::Later { why, after: None },
            };
            match verdict {
                Verdict::Taken => {
                    let bytes = u64::try_from(packed.len()).unwrap_or(0);
                    add(&self.counts.bytes, bytes);
                    add(&self.counts.sent, part.samples);
                    self.note_up();
                    return Sent::Done;
                }
                Verdict::Older => {
                    self.messages = Messages::new(WriteVersion::V1);
                    return Sent::Again;
                }
                Verdict::Refused { written, why } => {
                    self.note_refused(part.samples, written, &why);
                    return Sent::Done;
                }
                Verdict::Later { why, after } => {
                    add(&self.counts.failed, 1);
                    self.note_down(&why);
                    thread::sleep(delay.next(after, random()));
                }
            }
        }
    }

    fn note_down(&self, why: &str) {
        if !self.counts.is_down.swap(true, Ordering::Relaxed) {
            let name = &self.name;
            talk::say(format_args!(
                "kymo: cannot forward to {name}: {why}; the values wait in the journal"
            ));
        }
    }

    fn note_up(&self) {
        if self.counts.is_down.swap(false, Ordering::Relaxed) {
            let name = &self.name;
            talk::say(format_args!("kymo: forward {name}: it takes values again"));
        }
    }

    fn note_refused(&mut self, samples: u64, written: u64, why: &str) {
        self.note_up();
        let refused = samples.saturating_sub(written);
        add(&self.counts.refused, refused);
        add(&self.counts.sent, samples.min(written));
        let now_ns = RealClock.mono_ns();
        let since = |said_ns: u64| Duration::from_nanos(now_ns.saturating_sub(said_ns));
        if self
            .refused_said_ns
            .is_none_or(|said_ns| since(said_ns) >= SAY_EVERY)
        {
            self.refused_said_ns = Some(now_ns);
            let name = &self.name;
            talk::say(format_args!(
                "kymo: forward {name}: {refused} samples are refused and dropped: {why}"
            ));
        }
    }

    fn note_missed(&mut self, missed: &MissedPart) {
        let name = &self.name;
        match missed.values {
            Some(_) => {
                let values = missed_values(missed, self.delivered);
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
}

/// Fate of a part of a batch.
enum Sent {
    /// The receiver has it, or never takes it.
    Done,
    /// The part has to be made again, in another version.
    Again,
}

/// Values of a part that is missed, without those that went out before they were acknowledged.
fn missed_values(missed: &MissedPart, delivered: Delivered) -> u64 {
    let values = missed.values.unwrap_or(0);
    let has_gone_out = delivered.from <= missed.from && missed.from < delivered.to;
    match (has_gone_out, missed.to <= delivered.to) {
        (false, _) => values,
        (true, true) => 0,
        (true, false) => values.saturating_sub(delivered.values),
    }
}

/// The tail of a receiver. It goes on behind the last acknowledged position; a new one begins with future values.
fn open(keeper: &Path, name: &str) -> Tail {
    Tail::open(keeper.into(), Some(&tail_name(name)), TailPlace::Now)
}

/// A random number; without one pauses are long.
fn random() -> u32 {
    let mut bytes = [0xff; 4];
    let _all_alike = machine::random(&mut bytes);
    u32::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The keeper counts a reading as missed that was in memory while its file went, and was sent then.
    #[test]
    fn values_that_went_out_are_not_missed() {
        let delivered = Delivered {
            from: 100,
            to: 200,
            values: 30,
        };
        for (from, to, expected) in [
            (100, 500, 70),
            (100, 200, 0),
            (100, 150, 0),
            (200, 500, 100),
            (50, 500, 100),
        ] {
            let values = Some(100);
            let missed = MissedPart { from, to, values };
            assert_eq!(missed_values(&missed, delivered), expected, "{from} {to}");
        }
    }
}
