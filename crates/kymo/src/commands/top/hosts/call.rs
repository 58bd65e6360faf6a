//! The way to a host: a program such as ssh runs `kymo feed --stdio` there, and its output is read with a limit of time. A host that
//! hangs, ends or sends garbage costs its reader alone.

use std::io::{self, PipeReader, Read};
use std::os::fd::AsFd as _;
use std::process::{ChildStderr, ChildStdout, Command};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kymo_query::feed::Feed;
use kymo_recording::reader::{Kinds, TimeRange};
use kymo_sys::clock::RealClock;
use kymo_sys::machine::wait_readable;
use kymo_sys::program::{Program, Talk};
use kymo_wire::feed::GOES_ON;

/// Names the program in place of ssh.
const PROGRAM: &str = "KYMO_SSH";
/// A host that sends nothing for this long hangs: it says the time more often.
const SILENCE_MAX: Duration = Duration::from_secs(15);
/// Time to the hello of a host, beyond ssh's own limit.
const HELLO_MAX: Duration = Duration::from_secs(8);
/// Time before the last sample from which samples are read.
const BACK_NS: i64 = 3_000_000_000;
/// Most of what the program says on stderr that is kept.
const SAID_MAX: usize = 1024;

/// The reading end of a pipe: readable once all is to end.
pub(super) struct Stop(pub(super) PipeReader);

impl Stop {
    /// Waits at most so long; true: all is to end.
    pub(super) fn wait(&self, at_most: Duration) -> bool {
        wait_readable(&[self.0.as_fd()], at_most) == [true]
    }
}

/// Limits of the wait for output.
#[derive(Default)]
struct Patience {
    /// Whatever comes, no read lasts beyond this.
    until: Option<Instant>,
    /// A pipe whose bytes end a read early: each is a new wish.
    wake: Option<Arc<PipeReader>>,
}

/// The output of the program, with a limit of time for each read.
struct Patient {
    output: ChildStdout,
    patience: Arc<Mutex<Patience>>,
    stop: Arc<Stop>,
}

impl Read for Patient {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let (until, wake) = {
            let patience = lock(&self.patience);
            (patience.until, patience.wake.clone())
        };
        let silent = Instant::now() + SILENCE_MAX;
        let latest = until.map_or(silent, |until| until.min(silent));
        loop {
            let left = latest.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::Error::other("it does not answer"));
            }
            let mut files = vec![self.stop.0.as_fd(), self.output.as_fd()];
            files.extend(wake.as_ref().map(|wake| wake.as_fd()));
            match wait_readable(&files, left)[..] {
                [true, ..] => return Ok(0),
                [_, _, true] => {
                    if let Some(wake) = &wake {
                        (&**wake).read(&mut [0; 64])?;
                    }
                    return Err(io::ErrorKind::WouldBlock.into());
                }
                [_, true, ..] => match self.output.read(into) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    done => return done,
                },
                _ => {}
            }
        }
    }
}

/// A program that was started, and its words on stderr.
struct Started {
    program: Program,
    errors: ChildStderr,
}

impl Started {
    /// The fault, with the last words of the program.
    fn fault(&mut self, why: &str) -> String {
        match last_line(&mut self.errors) {
            said if said.is_empty() => why.into(),
            said => format!("{why}: {said}"),
        }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        self.program.kill();
        // The program was killed, so that its end is near.
        wait_readable(&[self.program.end()], Duration::from_secs(1));
        let _ended = self.program.ended();
    }
}

/// A host that is talked with.
pub(super) struct Call {
    pub(super) feed: Feed,
    patience: Arc<Mutex<Patience>>,
    started: Started,
}

impl Call {
    /// Begins, and waits for the host's hello.
    pub(super) fn dial(host: &str, stop: &Arc<Stop>, frame_max: usize) -> Result<Call, String> {
        let mut command = command(host);
        let (program, talk) = match Program::start_talk(&mut command) {
            Ok(started) => started,
            Err(error) => {
                let program = command.get_program().to_string_lossy().into_owned();
                return Err(format!("cannot run {program}: {error}"));
            }
        };
        let Talk {
            input,
            output,
            errors,
        } = talk;
        let mut started = Started { program, errors };
        let patience = Arc::new(Mutex::new(Patience {
            until: Some(Instant::now() + HELLO_MAX),
            wake: None,
        }));
        let patient = Patient {
            output,
            patience: patience.clone(),
            stop: stop.clone(),
        };
        let clock = Arc::new(RealClock);
        let feed = Feed::open(Box::new(patient), Box::new(input), clock, frame_max);
        let feed = feed.map_err(|why| started.fault(&why))?;
        lock(&patience).until = None;
        Ok(Call {
            feed,
            patience,
            started,
        })
    }

    /// Asks for samples as they come, from a little before the last one on: rates need a past.
    pub(super) fn follow(&mut self, kinds: Kinds) -> Result<(), String> {
        let last_ns = match self.feed.extent() {
            Ok(extent) => extent.thru_ns,
            Err(why) if self.feed.is_broken() => return Err(why),
            // Nothing is recorded there.
            Err(_) => 0,
        };
        let range = TimeRange {
            from_ns: last_ns.saturating_sub(BACK_NS),
            thru_ns: GOES_ON,
        };
        self.feed.read(range, kinds)
    }

    /// Waits for all answers together at most so long; `None`: as long as the host lives.
    pub(super) fn within(&self, at_most: Option<Duration>) {
        lock(&self.patience).until = at_most.map(|at_most| Instant::now() + at_most);
    }

    /// From now on reads end early when there is a new wish.
    pub(super) fn wake_by(&self, wake: &Arc<PipeReader>) {
        lock(&self.patience).wake = Some(wake.clone());
    }

    /// The fault, with the last words of the program.
    pub(super) fn fault(&mut self, why: &str) -> String {
        self.started.fault(why)
    }
}

/// Locks, also behind a thread that failed.
pub(super) fn lock<T>(locked: &Mutex<T>) -> MutexGuard<'_, T> {
    locked.lock().unwrap_or_else(PoisonError::into_inner)
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
