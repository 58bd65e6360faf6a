//! One host of the table: a thread of its own reads the numbers that the screen wants of it.

use std::io::{PipeReader, PipeWriter, Write as _};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use kymo_query::marks::Marker;
use kymo_query::sheet::{Pick, Sheet};
use kymo_query::source::{Source as _, Step};
use kymo_recording::reader::TimeRange;
use kymo_sys::machine::wait_readable;
use kymo_top::hosts::{FIELDS, HostRow, LinkState, Strip, StripRange, Values, Wanted};
use kymo_top::meters::METERS;
use kymo_top::window::Window;

use super::super::happening::Happening;
use super::call::{Call, Stop, lock};

/// Pause before a host is tried again.
const PAUSE: Duration = Duration::from_secs(5);
/// Longest frame: a sample of a machine with its disks and interfaces, some hundred times.
const FRAME_MAX: usize = 1 << 20;
/// Time before a moment in which its sample lies.
const AT_BACK_NS: i64 = 120_000_000_000;
/// Time for the numbers of a moment, and for a meter over a range.
const MOMENT_MAX: Duration = Duration::from_secs(5);
const STRIP_MAX: Duration = Duration::from_secs(10);
/// Wait for another wish at a moment of the past.
const LONG: Duration = Duration::from_secs(3600);

/// Tells the screen that there are new numbers, once between two pictures.
#[derive(Default)]
pub(super) struct News {
    is_sent: AtomicBool,
    pub(super) sender: OnceLock<Sender<Happening>>,
}

impl News {
    fn tell(&self) {
        if let Some(sender) = self.sender.get()
            && !self.is_sent.swap(true, Ordering::Relaxed)
        {
            // There is no screen any more where that fails.
            let _ = sender.send(Happening::Row);
        }
    }

    /// The present numbers are about to be looked at.
    pub(super) fn heard(&self) {
        self.is_sent.store(false, Ordering::Relaxed);
    }
}

/// A host's row and the wishes for it, as threads share them.
#[derive(Clone)]
pub(super) struct Link {
    pub(super) row: Arc<Mutex<HostRow>>,
    wanted: Arc<Mutex<Wanted>>,
    wake: Arc<PipeWriter>,
    woken: Arc<PipeReader>,
    stop: Arc<Stop>,
    news: Arc<News>,
}

/// The fields of a row as they come.
struct Fields {
    picks: Vec<Pick>,
    sheet: Sheet,
    marker: Marker,
    values: Values,
}

impl Fields {
    fn new() -> Result<Fields, String> {
        let picks: Result<Vec<Pick>, String> = FIELDS.iter().map(|id| Pick::parse(id)).collect();
        let picks = picks?;
        Ok(Fields {
            sheet: Sheet::new(&picks, FIELDS.len()),
            picks,
            marker: Marker::default(),
            values: [f64::NAN; FIELDS.len()],
        })
    }

    /// Takes in the next step of the feed. `None`: it has ended; else the time of its sample, 0 where that is for rates alone.
    fn next(&mut self, call: &mut Call) -> Result<Option<i64>, String> {
        while let Some(step) = call.feed.next()? {
            if self.marker.step(&step, call.feed.context(), &mut |_| {}) {
                self.sheet.restart();
            }
            let Step::Sample(moment) = step else { continue };
            let values = &mut self.values;
            self.sheet.advance(&call.feed, &moment, &mut |cell| {
                // Each field is of the machine, so that it has one line, in its order.
                if let Some(value) = values.get_mut(cell.line) {
                    *value = cell.value;
                }
            });
            return Ok(Some(if moment.warmup { 0 } else { moment.real_ns }));
        }
        Ok(None)
    }
}

impl Link {
    pub(super) fn new(
        name: &str,
        stop: &Arc<Stop>,
        news: &Arc<News>,
        wanted: Wanted,
    ) -> std::io::Result<Link> {
        let (woken, wake) = std::io::pipe()?;
        Ok(Link {
            row: Arc::new(Mutex::new(HostRow::new(name))),
            wanted: Arc::new(Mutex::new(wanted)),
            wake: Arc::new(wake),
            woken: Arc::new(woken),
            stop: stop.clone(),
            news: news.clone(),
        })
    }

    /// Wants these numbers from now on.
    pub(super) fn want(&self, wanted: Wanted) {
        let before = std::mem::replace(&mut *lock(&self.wanted), wanted);
        if before != wanted {
            // The thread reads each byte; a wish a second fills no pipe.
            let _ = (&*self.wake).write_all(&[0]);
        }
    }

    /// Follows the host until all is to end.
    pub(super) fn follow(&self) {
        while !self.stop.wait(Duration::ZERO) {
            let done = self.follow_once();
            if let Err(why) = done {
                self.change(|row| {
                    let strips = std::mem::take(&mut row.strips);
                    *row = HostRow {
                        state: LinkState::Down(why),
                        strips,
                        ..HostRow::new(&row.name)
                    }
                });
                self.news.tell();
            }
            self.stop.wait(PAUSE);
        }
    }

    fn change(&self, change: impl FnOnce(&mut HostRow)) {
        change(&mut lock(&self.row));
    }

    /// Follows the host up to a fault.
    fn follow_once(&self) -> Result<(), String> {
        let name = lock(&self.row).name.clone();
        let mut call = Call::dial(&name, &self.stop, FRAME_MAX)?;
        let done = self.serve(&mut call);
        done.map_err(|why| call.fault(&why))
    }

    /// Reads all wanted numbers, again and again.
    fn serve(&self, call: &mut Call) -> Result<(), String> {
        call.within(Some(MOMENT_MAX));
        // The answer comes after the one to the question for the clock.
        let extent = call.feed.extent();
        if call.feed.is_broken() {
            extent?;
        }
        let (first_ns, offset) = (call.feed.hello().first_ns, call.feed.offset());
        self.change(|row| (row.first_ns, row.offset) = (first_ns, offset));
        call.wake_by(&self.woken);
        let mut followed = None;
        loop {
            let wanted = *lock(&self.wanted);
            for (at, what) in wanted.strips.into_iter().enumerate() {
                if let Some(what) = what {
                    self.read_strip(call, at, what)?;
                }
            }
            if call.feed.take_woken() {
                continue;
            }
            match wanted.at_ns {
                None => {
                    call.within(None);
                    let fields = match &mut followed {
                        Some(fields) => fields,
                        None => followed.insert(begin_live(call)?),
                    };
                    match fields.next(call) {
                        Ok(Some(sample_ns)) => self.keep(call, fields.values, sample_ns, None),
                        Ok(None) => return Err("it has ended".into()),
                        Err(_) if call.feed.take_woken() => {}
                        Err(why) => return Err(why),
                    }
                }
                Some(at_ns) => {
                    followed = None;
                    let is_known = lock(&self.row).at_ns == Some(at_ns);
                    if !is_known {
                        self.read_moment(call, at_ns)?;
                    } else if self.wait_for_a_wish() {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Waits for another wish; true: all is to end.
    fn wait_for_a_wish(&self) -> bool {
        let files = [self.stop.0.as_fd(), self.woken.as_fd()];
        let ready = wait_readable(&files, LONG);
        if ready[..] == [false, true] {
            let _ = std::io::Read::read(&mut &*self.woken, &mut [0; 64]);
        }
        ready.first() == Some(&true)
    }

    fn keep(&self, call: &Call, values: Values, sample_ns: i64, at_ns: Option<i64>) {
        let offset = call.feed.offset();
        self.change(|row| {
            row.state = match at_ns {
                Some(_) if sample_ns == 0 => LinkState::Unrecorded,
                _ => LinkState::Up,
            };
            (row.values, row.offset) = (values, offset);
            (row.sample_ns, row.at_ns) = (sample_ns, at_ns);
        });
    }

    /// Reads the last sample up to a moment, by the host's clock; gives up when there is another wish.
    fn read_moment(&self, call: &mut Call, at_ns: i64) -> Result<(), String> {
        let ahead_ns = call.feed.offset().map_or(0, |offset| offset.ahead_ns);
        let there_ns = at_ns.saturating_add(ahead_ns);
        let mut fields = Fields::new()?;
        let range = TimeRange {
            from_ns: there_ns.saturating_sub(AT_BACK_NS),
            thru_ns: there_ns,
        };
        call.within(Some(MOMENT_MAX));
        call.feed.read(range, Pick::kinds(&fields.picks))?;
        let (mut sample_ns, mut values) = (0, fields.values);
        let done = loop {
            match fields.next(call) {
                // A reader of seconds goes a little beyond.
                Ok(Some(later_ns)) if later_ns > there_ns => break Ok(()),
                Ok(Some(later_ns)) => {
                    sample_ns = later_ns.max(sample_ns);
                    values = fields.values;
                }
                Ok(None) => break Ok(()),
                Err(_) if call.feed.take_woken() => {
                    call.feed.let_go();
                    return Ok(());
                }
                Err(why) => break Err(why),
            }
        };
        call.feed.let_go();
        done?;
        self.keep(call, values, sample_ns, Some(at_ns));
        self.news.tell();
        Ok(())
    }

    /// Reads a meter over a range, if it is not known yet. A host that has none has an empty one.
    fn read_strip(&self, call: &mut Call, at: usize, what: StripRange) -> Result<(), String> {
        let is_known = |row: &HostRow| {
            let known = row.strips[at].as_ref();
            known.is_some_and(|strip| strip.what == what)
        };
        if is_known(&lock(&self.row)) {
            return Ok(());
        }
        let ahead_ns = call.feed.offset().map_or(0, |offset| offset.ahead_ns);
        let range = TimeRange {
            from_ns: what.range.from_ns.saturating_add(ahead_ns),
            thru_ns: what.range.thru_ns.saturating_add(ahead_ns),
        };
        call.within(Some(STRIP_MAX));
        let meter = METERS.get(what.meter).ok_or("BUG: no such meter")?;
        let series = call.feed.series(meter.fields, range, what.range.points);
        if call.feed.is_broken() {
            series?;
            return Ok(());
        }
        let mut window = series.map_or_else(
            |_refused| Window::default(),
            |series| Window::of_meter(series, meter),
        );
        window.from_ns = window.from_ns.saturating_sub(ahead_ns);
        for mark in &mut window.marks {
            mark.from_ns = mark.from_ns.saturating_sub(ahead_ns);
            mark.until_ns = mark.until_ns.saturating_sub(ahead_ns);
        }
        let strip = Some(Arc::new(Strip { what, window }));
        self.change(|row| row.strips[at] = strip);
        self.news.tell();
        Ok(())
    }
}

/// Asks for samples as they come.
fn begin_live(call: &mut Call) -> Result<Fields, String> {
    let fields = Fields::new()?;
    call.follow(Pick::kinds(&fields.picks))?;
    Ok(fields)
}
