//! The newest sample: a follower reads the recording from its last position on, and passes samples to listeners.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use kymo_base::context::Context;
use kymo_base::reading::Reading;
use kymo_kernel::subsystem::Subsystem;
use kymo_query::marks::{Mark, Marker};
use kymo_query::recorded::Recorded;
use kymo_query::sheet::{Cell, Line, Pick, Sheet};
use kymo_query::source::{Moment, Source, Step};
use kymo_recording::reader::TimeRange;
use kymo_sys::clock::{Clock as _, RealClock};
use tokio::sync::{Notify, broadcast};

use kymo_query::archive::{Archive, RECORDED_MAX, own};

/// A follower that has not read for this long begins again, at the end.
const STALE: Duration = Duration::from_secs(150);
/// Time before now at which a follower begins: rates need a past.
const BACK_NS: i64 = 3_000_000_000;
/// News that a slow listener may miss before it gets an event about that.
const BACKLOG: usize = 256;
/// Time after a sample's time at which it can be read.
const DELAY: Duration = Duration::from_millis(15);
/// Pause before another look for a sample that is not there yet.
const AGAIN: Duration = Duration::from_millis(50);
/// Pause when a sample is long overdue.
const LATE: Duration = Duration::from_secs(1);
const PATIENCE_NS: i64 = 2_000_000_000;
/// Longest pause.
const LONGEST_NS: i64 = 5_000_000_000;

/// News for listeners.
#[derive(Clone)]
pub(crate) enum News {
    /// A sample's values.
    Sample(Arc<Sample>),
    /// An event.
    Mark(Mark),
}

/// The values of one sample.
pub(crate) struct Sample {
    /// Time of the sample.
    pub moment: Moment,
    /// Lines; cells refer to them by index.
    pub lines: Arc<Vec<Line>>,
    /// Values of the lines.
    pub cells: Vec<Cell>,
}

/// The follower and its listeners.
pub(crate) struct Now {
    archive: Arc<Archive>,
    follower: Mutex<Option<Follower>>,
    news: broadcast::Sender<News>,
    wanted: Notify,
}

struct Follower {
    source: Recorded,
    sheet: Sheet,
    marker: Marker,
    lines: Arc<Vec<Line>>,
    last: Option<Moment>,
    /// Nanoseconds between the last two samples.
    interval_ns: i64,
    read_at: Instant,
}

impl Now {
    /// Follows nothing before the first question.
    pub(crate) fn new(archive: Arc<Archive>) -> Now {
        Now {
            archive,
            follower: Mutex::new(None),
            news: broadcast::channel(BACKLOG).0,
            wanted: Notify::new(),
        }
    }

    /// Listens from now on. First reads the samples since the last listener, which may need a while.
    pub(crate) fn listen(&self) -> broadcast::Receiver<News> {
        self.catch_up();
        let receiver = self.news.subscribe();
        self.wanted.notify_one();
        receiver
    }

    /// Reads each sample as soon as it is there, as long as there are listeners. Does not return.
    pub(crate) async fn follow(self: Arc<Now>) {
        loop {
            if self.news.receiver_count() == 0 {
                self.wanted.notified().await;
                continue;
            }
            let now = self.clone();
            let due = tokio::task::spawn_blocking(move || now.catch_up()).await;
            tokio::time::sleep(due.unwrap_or(AGAIN)).await;
        }
    }

    /// Reads all new samples. Returns the time until the next look.
    fn catch_up(&self) -> Duration {
        let Ok(mut follower) = self.follower.lock() else {
            return Duration::from_secs(1);
        };
        let read = self.read_on(&mut follower);
        match (&*follower, read) {
            (Some(follower), Ok(())) => follower.due(),
            _ => Duration::from_millis(200),
        }
    }

    fn read_on(&self, follower: &mut Option<Follower>) -> Result<(), String> {
        let stale = |follower: &Follower| follower.read_at.elapsed() > STALE;
        if follower.as_ref().is_none_or(stale) {
            *follower = Some(Follower::open(&self.archive)?);
        }
        let Some(at_work) = follower else {
            return Ok(());
        };
        let read = at_work.read(&self.news);
        if read.is_err() {
            *follower = None;
        }
        read
    }

    /// Calls `then` with the raw numbers of the newest sample.
    pub(crate) fn newest<T>(&self, then: impl FnOnce(&Newest<'_>) -> T) -> Result<T, String> {
        let mut follower = self
            .follower
            .lock()
            .map_err(|_| "cannot go on: reading failed")?;
        self.read_on(&mut follower)?;
        let Some(Follower {
            source,
            sheet,
            last: Some(moment),
            ..
        }) = &*follower
        else {
            return Err("cannot answer: nothing is recorded yet".into());
        };
        Ok(then(&Newest {
            moment,
            context: source.context(),
            readings: sheet.readings().collect(),
            costs: source.costs(),
        }))
    }
}

/// The newest sample.
pub(crate) struct Newest<'a> {
    /// Time of the sample.
    pub moment: &'a Moment,
    /// Facts of the machine.
    pub context: &'a Context,
    /// Raw numbers.
    pub readings: Vec<(&'static Subsystem, &'a Reading)>,
    /// Cost of reading each kind, as codes of `kymo_base::cost`.
    pub costs: &'a [(u8, u8)],
}

impl Follower {
    fn open(archive: &Archive) -> Result<Follower, String> {
        let dir = own(archive.what.ring().ok_or("cannot follow a file")?);
        let picks = Pick::all();
        let range = TimeRange {
            from_ns: RealClock.now().real_ns - BACK_NS,
            thru_ns: i64::MAX,
        };
        Ok(Follower {
            source: Recorded::open(&dir, range, Pick::kinds(&picks))?,
            sheet: Sheet::new(&picks, RECORDED_MAX),
            marker: Marker::default(),
            lines: Arc::default(),
            last: None,
            interval_ns: 0,
            read_at: Instant::now(),
        })
    }

    fn read(&mut self, news: &broadcast::Sender<News>) -> Result<(), String> {
        self.read_at = Instant::now();
        while let Some(step) = self.source.next()? {
            let mut tell = |mark| drop(news.send(News::Mark(mark)));
            if self.marker.step(&step, self.source.context(), &mut tell) {
                self.sheet.restart();
            }
            let Step::Sample(moment) = step else { continue };
            let mut cells = Vec::new();
            self.sheet
                .advance(&self.source, &moment, &mut |cell| cells.push(cell));
            if self.sheet.lines().len() != self.lines.len() {
                self.lines = Arc::new(self.sheet.lines().to_vec());
            }
            if let Some(last) = self.last.replace(moment) {
                self.interval_ns = moment.real_ns.saturating_sub(last.real_ns);
            }
            if !cells.is_empty() && news.receiver_count() > 0 {
                // The send fails if all listeners are gone.
                let _ = news.send(News::Sample(Arc::new(Sample {
                    moment,
                    lines: self.lines.clone(),
                    cells,
                })));
            }
        }
        Ok(())
    }

    /// Time until the next sample should be there: the last interval after the last sample. A late sample is looked
    /// for often, and less often when it is long overdue.
    fn due(&self) -> Duration {
        let now_ns = RealClock.now().real_ns;
        let Some(last) = self.last else {
            return AGAIN;
        };
        let since_ns = now_ns.saturating_sub(last.real_ns);
        let interval_ns = self.interval_ns.clamp(0, LONGEST_NS);
        let left_ns = interval_ns.saturating_sub(since_ns);
        match left_ns {
            _ if since_ns < 0 => LATE,
            1.. => (Duration::from_nanos(left_ns as u64) + DELAY).max(AGAIN),
            _ if left_ns > -PATIENCE_NS => AGAIN,
            _ => LATE,
        }
    }
}
