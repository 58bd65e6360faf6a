//! The way to one host: a program such as ssh runs `kymo feed --stdio` there, and a thread of its own reads what that sends. A host
//! that hangs, ends or sends garbage costs its own row alone.

use std::io::{self, PipeReader, Read};
use std::os::fd::AsFd as _;
use std::process::{ChildStderr, ChildStdout, Command};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use kymo_query::feed::Feed;
use kymo_query::marks::Marker;
use kymo_query::sheet::{Pick, Sheet};
use kymo_query::source::{Source as _, Step};
use kymo_recording::reader::{Kinds, TimeRange};
use kymo_sys::clock::RealClock;
use kymo_sys::machine::wait_readable;
use kymo_sys::program::{Program, Talk};
use kymo_wire::feed::GOES_ON;

use super::table::{FIELDS, HostRow, LinkState, Values};

/// Names the program in place of ssh.
const PROGRAM: &str = "KYMO_SSH";
/// A host that sends nothing for this long hangs: it says the time more often.
const SILENCE_MAX: Duration = Duration::from_secs(15);
/// Time to the hello of a host, beyond ssh's own limit.
const HELLO_MAX: Duration = Duration::from_secs(8);
/// Pause before a host is tried again.
const PAUSE: Duration = Duration::from_secs(5);
/// Longest frame: a sample of a machine with its disks and interfaces, some hundred times.
const FRAME_MAX: usize = 1 << 20;
/// Most of what the program says on stderr that is kept.
const SAID_MAX: usize = 1024;
/// Time before the last sample from which samples are read: rates need a past.
const BACK_NS: i64 = 3_000_000_000;

/// Time before a moment in which its sample lies.
const AT_BACK_NS: i64 = 120_000_000_000;

/// A row that the thread of its host writes.
pub(super) type SharedRow = Arc<Mutex<HostRow>>;

/// A host's row, and the wish to end, as threads share them.
#[derive(Clone)]
pub(super) struct Link {
    pub(super) row: SharedRow,
    pub(super) stop: Arc<Stop>,
    /// The moment of the row; `None`: now, again and again.
    pub(super) at_ns: Option<i64>,
}

/// The output of the program, with a limit of time for each read.
struct Patient {
    output: ChildStdout,
    at_most: Duration,
    /// Whatever comes, no read lasts beyond this.
    until: Arc<Mutex<Option<Instant>>>,
    stop: Arc<Stop>,
}

impl Read for Patient {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut latest = Instant::now() + self.at_most;
        if let Some(until) = *self.until.lock().unwrap_or_else(PoisonError::into_inner) {
            latest = latest.min(until);
        }
        loop {
            let left = latest.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::Error::other("it does not answer"));
            }
            let files = [self.output.as_fd(), self.stop.0.as_fd()];
            match wait_readable(&files, left)[..] {
                [_, true] => return Ok(0),
                [true, false] => match self.output.read(into) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    done => return done,
                },
                _ => {}
            }
        }
    }
}

/// The reading end of a pipe: readable once all is to end.
pub(super) struct Stop(pub(super) PipeReader);

impl Stop {
    /// Waits at most so long; true: all is to end.
    fn wait(&self, at_most: Duration) -> bool {
        wait_readable(&[self.0.as_fd()], at_most) == [true]
    }
}

impl Link {
    pub(super) fn new(name: &str, stop: &Arc<Stop>, at_ns: Option<i64>) -> Link {
        Link {
            row: Arc::new(Mutex::new(HostRow::new(name))),
            stop: stop.clone(),
            at_ns,
        }
    }

    /// Follows the host until all is to end; or reads its row of a moment, once.
    pub(super) fn follow(&self) {
        while !self.stop.wait(Duration::ZERO) {
            let done = self.follow_once();
            if let Err(why) = done {
                self.change(|row| {
                    *row = HostRow {
                        state: LinkState::Down(why),
                        ..HostRow::new(&row.name)
                    }
                });
            }
            if self.at_ns.is_some() {
                return;
            }
            self.stop.wait(PAUSE);
        }
    }

    fn change(&self, change: impl FnOnce(&mut HostRow)) {
        change(&mut self.row.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Follows the host up to a fault.
    fn follow_once(&self) -> Result<(), String> {
        let name = self
            .row
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .name
            .clone();
        let mut command = command(&name);
        let (mut program, talk) = match Program::start_talk(&mut command) {
            Ok(started) => started,
            Err(error) => {
                let program = command.get_program().to_string_lossy().into_owned();
                return Err(format!("cannot run {program}: {error}"));
            }
        };
        let Talk {
            input,
            output,
            mut errors,
        } = talk;
        let until = Arc::new(Mutex::new(Some(Instant::now() + HELLO_MAX)));
        let patient = Patient {
            output,
            at_most: SILENCE_MAX,
            until: until.clone(),
            stop: self.stop.clone(),
        };
        let feed = Feed::open(
            Box::new(patient),
            Box::new(input),
            Arc::new(RealClock),
            FRAME_MAX,
        );
        let done = feed.and_then(|feed| {
            *until.lock().unwrap_or_else(PoisonError::into_inner) = None;
            self.read(feed)
        });
        let said = last_line(&mut errors);
        program.kill();
        // The program was killed, so that its end is near.
        wait_readable(&[program.end()], Duration::from_secs(1));
        let _ended = program.ended();
        done.map_err(|why| match said.is_empty() {
            true => why,
            false => format!("{why}: {said}"),
        })
    }

    /// The samples to read: those that come, or the last ones before the moment, by the host's clock.
    fn range(&self, feed: &mut Feed) -> Result<TimeRange, String> {
        let Some(at_ns) = self.at_ns else {
            return Ok(TimeRange {
                from_ns: feed.hello().last_ns.saturating_sub(BACK_NS),
                thru_ns: GOES_ON,
            });
        };
        let none = TimeRange {
            from_ns: at_ns,
            thru_ns: at_ns,
        };
        // The end comes after the answer to the question for the clock.
        feed.read(none, Kinds::NONE)?;
        while feed.next()?.is_some() {}
        let ahead_ns = feed.offset().map_or(0, |offset| offset.ahead_ns);
        let there_ns = at_ns.saturating_add(ahead_ns);
        Ok(TimeRange {
            from_ns: there_ns.saturating_sub(AT_BACK_NS),
            thru_ns: there_ns,
        })
    }

    /// Reads samples as they come.
    fn read(&self, mut feed: Feed) -> Result<(), String> {
        let picks: Result<Vec<Pick>, String> = FIELDS.iter().map(|id| Pick::parse(id)).collect();
        let picks = picks?;
        let range = self.range(&mut feed)?;
        feed.read(range, Pick::kinds(&picks))?;
        let (mut sheet, mut has_row) = (Sheet::new(&picks, FIELDS.len()), false);
        let (mut marker, mut values): (Marker, Values) =
            (Marker::default(), [f64::NAN; FIELDS.len()]);
        while let Some(step) = feed.next()? {
            if marker.step(&step, feed.context(), &mut |_| {}) {
                sheet.restart();
            }
            let Step::Sample(moment) = step else { continue };
            has_row |= !moment.warmup;
            sheet.advance(&feed, &moment, &mut |cell| {
                // Each field is of the machine, so that it has one line, in its order.
                if let Some(value) = values.get_mut(cell.line) {
                    *value = cell.value;
                }
            });
            let offset = feed.offset();
            self.change(|row| {
                (row.state, row.values) = (LinkState::Up, values);
                (row.sample_ns, row.offset) = (moment.real_ns, offset);
            });
        }
        match self.at_ns {
            None => Err("it has ended".into()),
            Some(_) if has_row => Ok(()),
            Some(_) => Err("nothing was recorded then".into()),
        }
    }
}

/// The command that leads to a host.
fn command(host: &str) -> Command {
    let program = std::env::var_os(PROGRAM).filter(|program| !program.is_empty());
    let mut command = Command::new(program.unwrap_or_else(|| "ssh".into()));
    command.args([
        "-T",
        "-oBatchMode=yes",
        "-oConnectTimeout=5",
        "-oClearAllForwardings=yes",
        "--",
        host,
        "kymo",
        "feed",
        "--stdio",
    ]);
    command
}

/// The last line of what the program has said on stderr.
fn last_line(errors: &mut ChildStderr) -> String {
    let mut said = vec![0; SAID_MAX];
    let mut length = 0;
    while length < said.len()
        && let Ok(count @ 1..) = errors.read(&mut said[length..])
    {
        length += count;
    }
    let text = String::from_utf8_lossy(&said[..length]).into_owned();
    let last = text.lines().rfind(|line| !line.trim().is_empty());
    last.unwrap_or_default().trim().to_string()
}
