//! The thread that hands values to the sinks, so that a slow disk delays no packet. While its short queue is full, values wait in
//! the engine.

use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, channel, sync_channel};
use std::thread::{self, JoinHandle};

use crate::batch::Batch;
use crate::engine::{Account, Happening};
use crate::graphite::Graphite;
use crate::news::News;
use crate::pages::TargetPage;
use crate::sink::{Counts, DeviceReading, Report, Series, Sink, TargetClone};
use kymo_wire::keeper::Event;

/// Batches in the thread's queue.
const QUEUE: usize = 2;

/// Where and how the values of a configuration are stored.
pub struct Keeping {
    /// Series of all targets, for each sink.
    pub series: Vec<Vec<Series>>,
    /// Pages of all targets, for the sink of MRTG's own logs or of .rrd files; empty: none are written.
    pub pages: Vec<TargetPage>,
    /// Copies of targets' files, for the sink of MRTG's own logs.
    pub clones: Vec<Option<TargetClone>>,
    /// Targets whose rates the sinks report, because they have thresholds.
    pub watched: Vec<u32>,
    /// The carbon server that gets a copy of all values.
    pub graphite: Option<Graphite>,
    /// Seconds between values.
    pub interval_s: u32,
    /// Names of devices by session.
    pub devices: Vec<String>,
}

/// Commands to the thread.
enum Order {
    /// Store these values.
    Write(Batch, Cycles),
    /// Use another configuration from now on.
    Begin(Box<Keeping>),
}

/// State and events of devices, stored beside the values.
#[derive(Default)]
pub(super) struct Cycles {
    /// Statistics of the cycles that have ended.
    pub accounts: Vec<Account>,
    /// Events with their times, nanoseconds since 1970.
    pub happenings: Vec<(Happening, i64)>,
}

/// Result of a batch.
pub(super) struct Written {
    /// The batch itself, as its memory is reused.
    pub batch: Batch,
    /// Rates of the first sink, and refusals of all sinks.
    pub report: Report,
    /// Counters of each sink.
    pub counts: Vec<Counts>,
}

/// The engine's end of the thread.
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
        let named = thread::Builder::new()
            .name("writer".into())
            .stack_size(super::STACK_BYTES);
        let work = move || {
            let mut thread = Thread {
                sinks,
                keeping: None,
                news: News::default(),
                wakes,
            };
            while let Ok(order) = ordered.recv() {
                let Some(written) = thread.obey(order) else {
                    continue;
                };
                // A receiver that is gone is the poller on its way out, which waits for the thread's end.
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

    pub(super) fn has_room(&self) -> bool {
        self.under_way < QUEUE
    }

    pub(super) fn is_idle(&self) -> bool {
        self.under_way == 0
    }

    /// An empty batch, whose memory may be reused.
    pub(super) fn batch(&mut self) -> Batch {
        self.spare.pop().unwrap_or_default()
    }

    /// Replaces the configuration. Blocks while the queue is full.
    pub(super) fn begin(&mut self, keeping: Keeping) {
        if let Some(orders) = &self.orders {
            // The thread lives as long as this sender.
            let _ = orders.send(Order::Begin(Box::new(keeping)));
        }
    }

    /// Queues values; the caller has checked [`Writer::has_room`].
    pub(super) fn write(&mut self, batch: Batch, cycles: Cycles) {
        let Some(orders) = &self.orders else { return };
        match orders.try_send(Order::Write(batch, cycles)) {
            Ok(()) => self.under_way += 1,
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                unreachable!("BUG: written without room")
            }
        }
    }

    /// Takes the result of the next batch that was written.
    pub(super) fn take(&mut self) -> Option<Written> {
        let written = self.written.try_recv().ok()?;
        self.under_way -= 1;
        // The thread writes one byte for each result.
        let _ = self.woken.read(&mut [0]);
        Some(written)
    }

    /// Returns a batch so that its memory is reused.
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
    /// Waits until the thread has done all that is queued.
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            // The result is an error only if the thread panicked, and then it has ended as well.
            let _ = thread.join();
        }
    }
}

struct Thread {
    sinks: Vec<Sink>,
    keeping: Option<Box<Keeping>>,
    news: News,
    wakes: PipeWriter,
}

impl Thread {
    fn obey(&mut self, order: Order) -> Option<Written> {
        match order {
            Order::Begin(mut keeping) => {
                let series = std::mem::take(&mut keeping.series);
                let mut pages = std::mem::take(&mut keeping.pages);
                let mut clones = std::mem::take(&mut keeping.clones);
                for (at, (sink, series)) in self.sinks.iter_mut().zip(series).enumerate() {
                    // Rates are the same wherever values go, so the first sink alone reports them.
                    let watched: &[u32] = if at == 0 { &keeping.watched } else { &[] };
                    sink.begin(series, watched);
                    match sink {
                        Sink::Logs(logs) => {
                            logs.set_pages(std::mem::take(&mut pages), std::mem::take(&mut clones));
                        }
                        Sink::Files(files) => files.set_pages(std::mem::take(&mut pages)),
                        Sink::Keeper(_) | Sink::Cached(_) => {}
                    }
                }
                self.keeping = Some(keeping);
                None
            }
            Order::Write(batch, cycles) => Some(self.write(batch, &cycles)),
        }
    }

    fn write(&mut self, batch: Batch, cycles: &Cycles) -> Written {
        let mut report = Report::default();
        if let Some(keeping) = &self.keeping {
            if let Some(graphite) = &keeping.graphite {
                graphite.send(&batch);
            }
            let readings: Vec<DeviceReading<'_>> = cycles
                .accounts
                .iter()
                .filter_map(|account| reading(account, &keeping.devices))
                .collect();
            let happenings = cycles.happenings.iter();
            let events = happenings.filter_map(|(happening, real_ns)| {
                let (devices, interval_s) = (&keeping.devices, keeping.interval_s);
                self.news.event(happening, *real_ns, devices, interval_s)
            });
            let events: Vec<Event> = events.collect();
            for sink in &mut self.sinks {
                sink.write(&batch, &mut report);
                sink.write_devices(&readings, keeping.interval_s, &mut report);
                sink.write_events(&events, &mut report);
            }
        }
        Written {
            batch,
            report,
            counts: self.sinks.iter().map(Sink::counts).collect(),
        }
    }
}

fn reading<'a>(account: &Account, devices: &'a [String]) -> Option<DeviceReading<'a>> {
    let seconds = |ns: f64| ns / 1e9;
    let unseen_ns = match account.seen_ns {
        0 => f64::NAN,
        seen_ns => account.real_ns.saturating_sub(seen_ns).max(0) as f64,
    };
    Some(DeviceReading {
        device: devices.get(account.session)?.as_bytes(),
        stamp_ms: account.real_ns / 1_000_000,
        round_trip_s: seconds(account.round_trip_ns as f64 / f64::from(account.answers)),
        losses: account.losses.into(),
        retries: account.retries.into(),
        unseen_s: seconds(unseen_ns),
        late_s: seconds(account.late_ns as f64),
    })
}
