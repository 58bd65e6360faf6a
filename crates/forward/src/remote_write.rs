//! A receiver of Prometheus' remote write: groups of a reading become requests, and each goes until it is answered.

use std::ops::Range;

use kymo_base::errno::strerror;
use kymo_keeper_client::TailSink;
use kymo_wire::remote_write::WriteVersion;
use tokio::runtime::{Builder, Runtime};

use super::answer::{Verdict, judge};
use super::batch::{ALL_TIMES, Batch, Times};
use super::delay::Delay;
use super::ledger::Ledger;
use super::message::{Messages, Part};
use super::order::RemoteWriteWay;
use super::picker::Picker;
use super::receiver::Receiver;
use super::sender::Sender;

/// Threads of a receiver that look up its name.
const THREADS_MAX: usize = 2;
/// Refused requests that are cut in halves, as they may have samples that the receiver has.
const HALVED_MAX: usize = 4096;

/// The receiver, and the samples for it.
pub(crate) struct RemoteWrite {
    batch: Batch,
    messages: Messages,
    sender: Sender,
    runtime: Runtime,
    /// Refused requests that may still be cut in halves. After a start the first samples may be known to the receiver: their
    /// answer was lost with the process that waited for it. Prometheus 2 then refuses new samples of the same request, too.
    halved_left: usize,
}

impl RemoteWrite {
    /// A receiver of series that one of the selectors matches.
    pub(crate) fn new(way: RemoteWriteWay, selectors: &[String]) -> Result<RemoteWrite, String> {
        let picker = Picker::new(selectors, &way.labels, &way.drop_labels)?;
        let runtime = Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(THREADS_MAX)
            .build()
            .map_err(|error| format!("cannot start a thread: {}", strerror(&error)))?;
        Ok(RemoteWrite {
            batch: Batch::new(picker),
            messages: Messages::new(WriteVersion::V2),
            sender: Sender::new(&way)?,
            runtime,
            halved_left: HALVED_MAX,
        })
    }

    /// Sends samples of one time after the other until the receiver takes all of one time. Returns the times that are left.
    fn send_repeated(&mut self, ledger: &mut Ledger) -> Option<Times> {
        for t_ms in self.batch.times() {
            if self.halved_left == 0 {
                return Some(t_ms..=i64::MAX);
            }
            if self.send_groups(0..self.batch.groups.len(), &(t_ms..=t_ms), ledger) {
                self.halved_left = 0;
            }
        }
        None
    }

    /// Sends the samples of these groups at these times. Returns true if the receiver took all of them.
    fn send_groups(&mut self, groups: Range<usize>, times: &Times, ledger: &mut Ledger) -> bool {
        let (mut from, mut is_taken) = (groups.start, true);
        while from < groups.end {
            let part = self.messages.make(&self.batch, from..groups.end, times);
            if part.samples == 0 {
                break;
            }
            let middle = from + (part.end - from) / 2;
            let may_halve = self.halved_left > 0 && from < middle;
            match self.send(part, may_halve, ledger) {
                Sent::Taken => from = part.end,
                Sent::Refused => (from, is_taken) = (part.end, false),
                Sent::Again => {}
                Sent::Halved => {
                    self.halved_left -= 1;
                    is_taken = false;
                    self.send_groups(from..middle, times, ledger);
                    self.send_groups(middle..part.end, times, ledger);
                    from = part.end;
                }
            }
        }
        is_taken
    }

    /// Sends a request until the receiver has it or refuses it.
    fn send(&mut self, part: Part, may_halve: bool, ledger: &mut Ledger) -> Sent {
        let mut delay = Delay::default();
        loop {
            let version = self.messages.version();
            let packed = self.messages.packed();
            let answer = self.runtime.block_on(self.sender.post(version, packed));
            ledger.request();
            let is_of_samples =
                matches!(&answer, Ok(answer) if [400, 409, 422].contains(&answer.status));
            let verdict = match answer {
                Ok(answer) => judge(version, answer),
                Err(why) => Verdict::Later { why, after: None },
            };
            match verdict {
                Verdict::Taken => {
                    ledger.sent(part.samples, packed.len());
                    return Sent::Taken;
                }
                Verdict::Older => {
                    self.messages = Messages::new(WriteVersion::V1);
                    return Sent::Again;
                }
                Verdict::Refused { written: 0, .. } if may_halve && is_of_samples => {
                    return Sent::Halved;
                }
                Verdict::Refused { written, why } => {
                    let written = written.min(part.samples);
                    ledger.sent(written, 0);
                    ledger.refused(part.samples - written, &why);
                    return Sent::Refused;
                }
                Verdict::Later { why, after } => ledger.failed(&why, &mut delay, after),
            }
        }
    }
}

impl Receiver for RemoteWrite {
    fn begin(&mut self) {
        self.batch.begin();
    }

    fn sink(&mut self) -> &mut dyn TailSink {
        &mut self.batch
    }

    fn series(&self) -> usize {
        self.batch.catalog.len()
    }

    fn deliver(&mut self, ledger: &mut Ledger) {
        self.batch.group();
        let times = match self.halved_left {
            0 => Some(ALL_TIMES),
            _ => self.send_repeated(ledger),
        };
        if let Some(times) = times {
            self.send_groups(0..self.batch.groups.len(), &times, ledger);
        }
    }
}

/// Fate of a part of a batch.
enum Sent {
    /// The receiver has it.
    Taken,
    /// The receiver never takes it.
    Refused,
    /// The receiver refuses the whole, and its halves are to be sent.
    Halved,
    /// The part has to be made again, in another version.
    Again,
}
