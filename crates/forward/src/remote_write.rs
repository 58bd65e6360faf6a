//! A receiver of Prometheus' remote write: groups of a reading become requests, and each goes until it is answered.

use kymo_base::errno::strerror;
use kymo_keeper_client::TailSink;
use kymo_wire::remote_write::WriteVersion;
use tokio::runtime::{Builder, Runtime};

use super::answer::{Verdict, judge};
use super::batch::Batch;
use super::delay::Delay;
use super::ledger::Ledger;
use super::message::{Messages, Part};
use super::order::RemoteWriteWay;
use super::picker::Picker;
use super::receiver::Receiver;
use super::sender::Sender;

/// Threads of a receiver that look up its name.
const THREADS_MAX: usize = 2;

/// The receiver, and the samples for it.
pub(crate) struct RemoteWrite {
    batch: Batch,
    messages: Messages,
    sender: Sender,
    runtime: Runtime,
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
        })
    }

    /// Sends a request until the receiver has it or refuses it.
    fn send(&mut self, part: Part, ledger: &mut Ledger) -> Sent {
        let mut delay = Delay::default();
        loop {
            let version = self.messages.version();
            let packed = self.messages.packed();
            let answer = self.runtime.block_on(self.sender.post(version, packed));
            ledger.request();
            let verdict = match answer {
                Ok(answer) => judge(version, answer),
                Err(why) => Verdict::Later { why, after: None },
            };
            match verdict {
                Verdict::Taken => {
                    ledger.sent(part.samples, packed.len());
                    return Sent::Done;
                }
                Verdict::Older => {
                    self.messages = Messages::new(WriteVersion::V1);
                    return Sent::Again;
                }
                Verdict::Refused { written, why } => {
                    let written = written.min(part.samples);
                    ledger.sent(written, 0);
                    ledger.refused(part.samples - written, &why);
                    return Sent::Done;
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
        let mut at = 0;
        while at < self.batch.groups.len() {
            let part = self.messages.make(&self.batch, at);
            at = match self.send(part, ledger) {
                Sent::Done => part.end,
                Sent::Again => at,
            };
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
