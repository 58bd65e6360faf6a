//! One receiver: the tail is read, the samples go out, and the next reading acknowledges them.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use kymo_base::errno::strerror;
use kymo_keeper_client::{Tail, TailSink};
use kymo_wire::keeper::{DefinedSeries, MissedPart, NumberedSample, TailPlace};

use super::collectd::CollectdReceiver;
use super::counts::Counts;
use super::ledger::Ledger;
use super::order::{ForwardOrder, ForwardTarget, ForwardWay, tail_name};
use super::receiver::Receiver;
use super::remote_write::RemoteWrite;
use super::report::Report;
use super::rrdcached::RrdcachedReceiver;

/// Longest wait of a request to the keeper.
const WAIT: Duration = Duration::from_secs(30);
/// Time in which samples gather for the next request.
const GATHER: Duration = Duration::from_secs(2);
/// Pause before a keeper that did not answer is asked again.
const PAUSE: Duration = Duration::from_secs(1);
/// Bytes of the journal in a reading: with many series there are more, so that each has several samples.
const READ_MIN: u32 = 256 << 10;
const READ_MAX: u32 = 4 << 20;
/// Bytes of the journal for a series in a reading: about ten samples.
const SERIES_BYTES: u32 = 100;
/// Failures of the keeper after which the tail begins where the keeper knows that it stands.
const FAILURES_MAX: u32 = 60;

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
    receiver: Box<dyn Receiver>,
    ledger: Ledger,
    delivered: Delivered,
    /// Failures of the keeper in a row.
    failures: u32,
}

impl Forwarder {
    fn new(keeper: &Path, target: ForwardTarget, counts: Arc<Counts>) -> Result<Forwarder, String> {
        let selectors = &target.selectors;
        let receiver: Box<dyn Receiver> = match target.way {
            ForwardWay::RemoteWrite(way) => Box::new(RemoteWrite::new(way, selectors)?),
            ForwardWay::Rrdcached(way) => Box::new(RrdcachedReceiver::new(way, selectors)?),
            ForwardWay::Collectd(way) => Box::new(CollectdReceiver::new(way, selectors, keeper)?),
        };
        Ok(Forwarder {
            tail: open(keeper, &target.name),
            socket: keeper.into(),
            receiver,
            ledger: Ledger::new(target.name.clone(), counts),
            name: target.name,
            delivered: Delivered::default(),
            failures: 0,
        })
    }

    fn run(mut self) {
        loop {
            let from = self.tail.position();
            self.receiver.begin();
            let bytes = self.reading_bytes();
            let mut reading = Reading::of(self.receiver.sink());
            let read = self.tail.next_within(bytes, WAIT, &mut reading);
            let (values, missed) = (reading.values, reading.missed);
            match read {
                Ok(()) => self.deliver(from, values, &missed),
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
        let series = u32::try_from(self.receiver.series()).unwrap_or(u32::MAX);
        series
            .saturating_mul(SERIES_BYTES)
            .clamp(READ_MIN, READ_MAX)
    }

    fn keeper_failed(&mut self, why: &str) {
        if self.failures == 0 {
            self.ledger.keeper_failed(why);
        }
        self.failures += 1;
        if self.failures >= FAILURES_MAX {
            self.failures = 1;
            self.tail = open(&self.socket, &self.name);
            self.receiver.sink().restarted();
        }
        thread::sleep(PAUSE);
    }

    /// Sends the samples of a reading.
    fn deliver(&mut self, from: Option<u64>, values: u64, missed: &[MissedPart]) {
        self.failures = 0;
        for missed in missed {
            self.ledger.missed(missed_values(missed, self.delivered));
        }
        self.receiver.deliver(&mut self.ledger);
        let to = self.tail.position().unwrap_or(0);
        self.delivered = Delivered {
            from: from.unwrap_or(to),
            to,
            values,
        };
        if values > 0 {
            self.acknowledge();
        }
    }

    /// Acknowledges a reading at once: after a death of this process it would come again, and receivers such as
    /// Prometheus refuse a whole request that has an old sample among new ones.
    fn acknowledge(&mut self) {
        self.receiver.begin();
        if let Err(why) = self.tail.acknowledge(self.receiver.sink()) {
            self.keeper_failed(&why);
        }
    }
}

/// Counts the events of a reading on their way to a receiver.
struct Reading<'a> {
    sink: &'a mut dyn TailSink,
    /// Values, also of series that stay here.
    values: u64,
    /// Parts of the journal that are lost.
    missed: Vec<MissedPart>,
}

impl Reading<'_> {
    fn of(sink: &mut dyn TailSink) -> Reading<'_> {
        Reading {
            sink,
            values: 0,
            missed: Vec::new(),
        }
    }
}

impl TailSink for Reading<'_> {
    fn restarted(&mut self) {
        self.values = 0;
        self.missed.clear();
        self.sink.restarted();
    }

    fn defined(&mut self, series: DefinedSeries) {
        self.sink.defined(series);
    }

    fn gone(&mut self, series: u32) {
        self.sink.gone(series);
    }

    fn missed(&mut self, missed: MissedPart) {
        self.missed.push(missed);
    }

    fn samples(&mut self, samples: &[NumberedSample]) {
        self.values += u64::try_from(samples.len()).unwrap_or(0);
        self.sink.samples(samples);
    }
}

/// Values of a part that is missed, without those that went out before they were acknowledged.
fn missed_values(missed: &MissedPart, delivered: Delivered) -> Option<u64> {
    let values = missed.values?;
    let has_gone_out = delivered.from <= missed.from && missed.from < delivered.to;
    Some(match (has_gone_out, missed.to <= delivered.to) {
        (false, _) => values,
        (true, true) => 0,
        (true, false) => values.saturating_sub(delivered.values),
    })
}

/// The tail of a receiver. It goes on behind the last acknowledged position; a new one begins with future values.
fn open(keeper: &Path, name: &str) -> Tail {
    Tail::open(keeper.into(), Some(&tail_name(name)), TailPlace::Now)
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
            assert_eq!(
                missed_values(&missed, delivered),
                Some(expected),
                "{from} {to}"
            );
        }
    }
}
