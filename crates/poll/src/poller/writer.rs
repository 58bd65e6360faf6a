//! The thread that has values kept: a slow disk delays no packet. What it is given waits in a short queue, and then with the engine.

use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, channel, sync_channel};
use std::thread::{self, JoinHandle};

use crate::batch::Batch;
use crate::engine::Account;
use crate::sink::{Counts, Report, Series, Sink};

/// Batches on their way to the thread.
const QUEUE: usize = 2;

/// What the thread is to do.
pub(super) enum Order {
    /// Keep these.
    Write(Batch, Vec<Account>),
    /// Other series from now on, and those of them whose rates are wanted.
    Begin(Vec<Vec<Series>>, Vec<u32>, Vec<String>),
}

/// What became of a batch.
pub(super) struct Written {
    /// Its memory, to be filled again.
    pub batch: Batch,
    /// What the first sink that tells rates reports, and what all refuse.
    pub report: Report,
    /// Of each sink.
    pub counts: Vec<Counts>,
}

/// The thread's end of the engine.
pub(super) struct Writer {
    orders: Option<SyncSender<Order>>,
    written: Receiver<Written>,
    woken: PipeReader,
    thread: Option<JoinHandle<()>>,
    spare: Vec<Batch>,
    under_way: usize,
}

impl Writer {
    /// Starts the thread.
    pub(super) fn start(sinks: Vec<Sink>) -> io::Result<Writer> {
        let (orders, ordered) = sync_channel(QUEUE);
        let (answers, written) = channel();
        let (woken, wakes) = io::pipe()?;
        let named = thread::Builder::new().name("writer".into());
        let work = move || {
            let mut thread = Thread {
                sinks,
                devices: Vec::new(),
                wakes,
            };
            while let Ok(order) = ordered.recv() {
                let Some(written) = thread.obey(order) else {
                    continue;
                };
                // Who does not want to hear of it any more, waits for the end.
                let _ = answers.send(written);
                let _ = thread.wakes.write_all(&[0]);
            }
        };
        Ok(Writer {
            orders: Some(orders),
            written,
            woken,
            thread: Some(named.spawn(work)?),
            spare: Vec::new(),
            under_way: 0,
        })
    }

    /// Whether there is room for another batch.
    pub(super) fn has_room(&self) -> bool {
        self.under_way < QUEUE
    }

    /// Whether it has nothing to do.
    pub(super) fn is_idle(&self) -> bool {
        self.under_way == 0
    }

    /// An empty batch.
    pub(super) fn batch(&mut self) -> Batch {
        self.spare.pop().unwrap_or_default()
    }

    /// Other series from now on. Waits until what came before is kept.
    pub(super) fn begin(
        &mut self,
        series: Vec<Vec<Series>>,
        watched: Vec<u32>,
        names: Vec<String>,
    ) {
        if let Some(orders) = &self.orders {
            // It is there as long as this is.
            let _ = orders.send(Order::Begin(series, watched, names));
        }
    }

    /// Has values kept; only where there is room.
    pub(super) fn write(&mut self, batch: Batch, accounts: Vec<Account>) {
        let Some(orders) = &self.orders else { return };
        match orders.try_send(Order::Write(batch, accounts)) {
            Ok(()) => self.under_way += 1,
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                unreachable!("BUG: written without room")
            }
        }
    }

    /// The next batch that was kept.
    pub(super) fn take(&mut self) -> Option<Written> {
        let written = self.written.try_recv().ok()?;
        self.under_way -= 1;
        // One byte for each.
        let _ = self.woken.read(&mut [0]);
        Some(written)
    }

    /// Its memory is used again.
    pub(super) fn done_with(&mut self, batch: Batch) {
        self.spare.push(batch);
    }
}

impl AsFd for Writer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.woken.as_fd()
    }
}

impl Drop for Writer {
    /// What was ordered is done before.
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has ended as well.
            let _ = thread.join();
        }
    }
}

struct Thread {
    sinks: Vec<Sink>,
    /// What devices are called, by session.
    devices: Vec<String>,
    wakes: PipeWriter,
}

impl Thread {
    fn obey(&mut self, order: Order) -> Option<Written> {
        match order {
            Order::Begin(series, watched, names) => {
                self.devices = names;
                for (at, (sink, series)) in self.sinks.iter_mut().zip(series).enumerate() {
                    // Rates are the same wherever values go: the first one tells them.
                    let watched: &[u32] = if at == 0 { &watched } else { &[] };
                    sink.begin(series, watched);
                }
                None
            }
            Order::Write(batch, _accounts) => {
                let mut report = Report::default();
                for sink in &mut self.sinks {
                    sink.write(&batch, &mut report);
                }
                let counts = self.sinks.iter().map(Sink::counts).collect();
                Some(Written {
                    batch,
                    report,
                    counts,
                })
            }
        }
    }
}
