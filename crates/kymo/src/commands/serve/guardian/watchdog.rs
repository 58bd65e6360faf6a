//! The watchdog of the keeper: asks it the smallest request now and then, so that a keeper that hangs is replaced.

use std::io::{self, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use kymo_sys::{listen, procs};
use kymo_wire::keeper::KeeperRequest;

/// Longest pause between two requests.
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// Number of requests up to the limit, and up to the report of a silence.
const ROUNDS: u32 = 12;
const REPORTED_ROUNDS: u32 = 3;

/// Asks the keeper, and measures its silence.
pub(super) struct Watchdog {
    socket: PathBuf,
    /// Silence after which the keeper is ended; zero: never.
    limit: Duration,
    /// The connection of a request without an answer.
    asked: Option<UnixStream>,
    /// Time of the last look.
    looked: Instant,
    silence: Duration,
    is_reported: bool,
}

/// A watchdog's finding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Finding {
    /// Nothing to report.
    Nothing,
    /// The keeper has not answered for this long; the guardian has not reported it yet.
    Silent(Duration),
    /// The keeper has not answered for longer than it may.
    TooLong(Duration),
    /// The keeper answers again, after a silence that was reported.
    Answers(Duration),
}

impl Watchdog {
    /// A watchdog of the keeper that answers on `socket`.
    pub(super) fn new(socket: PathBuf, limit: Duration, now: Instant) -> Watchdog {
        Watchdog {
            socket,
            limit,
            asked: None,
            looked: now,
            silence: Duration::ZERO,
            is_reported: false,
        }
    }

    /// Forgets the silence of a keeper that has ended.
    pub(super) fn restart(&mut self, now: Instant) {
        let socket = std::mem::take(&mut self.socket);
        *self = Watchdog::new(socket, self.limit, now);
    }

    /// Time of the next look.
    pub(super) fn due(&self) -> Instant {
        self.looked + self.pause()
    }

    /// Readable once the keeper has answered or closed the connection; either counts as an answer.
    pub(super) fn file(&self) -> Option<BorrowedFd<'_>> {
        self.asked.as_ref().map(AsFd::as_fd)
    }

    /// Time left to the keeper.
    pub(super) fn left(&self) -> Duration {
        self.limit.saturating_sub(self.silence)
    }

    /// Checks if the request was answered, and asks again if it was.
    pub(super) fn look(&mut self, now: Instant, has_answered: bool) -> Finding {
        if has_answered {
            self.asked = None;
            self.looked = now;
            let silence = std::mem::take(&mut self.silence);
            return match std::mem::take(&mut self.is_reported) {
                true => Finding::Answers(silence),
                false => Finding::Nothing,
            };
        }
        if now < self.due() {
            return Finding::Nothing;
        }
        // Only the pause counts: after a suspend, or a stop of the guardian, the keeper had no more time than that.
        let passed = now.duration_since(self.looked).min(self.pause());
        self.looked = now;
        if self.asked.is_some() {
            self.silence += passed;
        } else {
            match self.ask() {
                Ok(stream) => self.asked = Some(stream),
                // The queue of the socket is full.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.silence += passed,
                // If somebody has removed the socket, for example, that is no silence of the keeper.
                Err(_) => {}
            }
        }
        if self.silence >= self.limit {
            return Finding::TooLong(self.silence);
        }
        if self.silence < self.pause() * REPORTED_ROUNDS || self.is_reported {
            return Finding::Nothing;
        }
        self.is_reported = true;
        Finding::Silent(self.silence)
    }

    fn pause(&self) -> Duration {
        (self.limit / ROUNDS).min(PAUSE_MAX)
    }

    /// Sends a request without waiting.
    fn ask(&self) -> io::Result<UnixStream> {
        let mut stream = listen::connect_at_once(&self.socket)?;
        stream.write_all(&KeeperRequest::Watched.frame())?;
        Ok(stream)
    }
}

/// Cause of a silence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Cause {
    /// The process has not reported yet that it is ready.
    Opening,
    /// The kernel lets it wait for a disk.
    Disk,
    /// A signal has stopped it.
    Stopped,
    /// A debugger holds it.
    Debugged,
    /// The kernel shows no cause.
    Unknown,
}

impl Cause {
    /// Cause of the silence of process `pid`.
    pub(super) fn of(pid: u32, is_ready: bool) -> Cause {
        let states = procs::thread_states(pid);
        match () {
            () if states.contains(&b't') => Cause::Debugged,
            () if states.contains(&b'T') => Cause::Stopped,
            () if states.contains(&b'D') => Cause::Disk,
            () if !is_ready => Cause::Opening,
            () => Cause::Unknown,
        }
    }

    /// True if a new keeper would do better.
    pub(super) fn is_mended_by_a_restart(self) -> bool {
        match self {
            Cause::Stopped | Cause::Unknown => true,
            Cause::Opening | Cause::Disk | Cause::Debugged => false,
        }
    }

    /// The cause in words, for after a colon.
    pub(super) fn text(self) -> &'static str {
        match self {
            Cause::Opening => "it is opening its store",
            Cause::Disk => "it waits for a disk",
            Cause::Stopped => "a signal has stopped it",
            Cause::Debugged => "a debugger holds it",
            Cause::Unknown => "the kernel shows no cause",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    const SECOND: Duration = Duration::from_secs(1);

    /// A socket without answers; its name is removed with it.
    struct Socket {
        path: PathBuf,
        listener: UnixListener,
    }

    impl Socket {
        fn new(name: &str) -> Socket {
            let name = format!("kymo-{name}-{}", std::process::id());
            let path = std::env::temp_dir().join(name);
            let _ = std::fs::remove_file(&path);
            let listener = UnixListener::bind(&path).expect("a socket");
            Socket { path, listener }
        }

        /// A watchdog with a limit of two minutes.
        fn watchdog(&self, now: Instant) -> Watchdog {
            Watchdog::new(self.path.clone(), 120 * SECOND, now)
        }
    }

    impl Drop for Socket {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.path);
        }
    }

    #[test]
    fn silence_is_reported_once_and_too_long_for_as_long_as_it_lasts() {
        let start = Instant::now();
        let socket = Socket::new("silence");
        let mut watchdog = socket.watchdog(start);
        let findings: Vec<Finding> = (1..=15)
            .map(|round| watchdog.look(start + round * 10 * SECOND, false))
            .collect();
        // The first look asks.
        let mut expected = [Finding::Nothing; 15];
        expected[3] = Finding::Silent(30 * SECOND);
        for (at, finding) in expected.iter_mut().enumerate().skip(12) {
            *finding = Finding::TooLong(at as u32 * 10 * SECOND);
        }
        assert_eq!(findings, expected);
        assert_eq!(watchdog.left(), Duration::ZERO);
        let end = start + 160 * SECOND;
        assert_eq!(watchdog.look(end, true), Finding::Answers(140 * SECOND));
        assert_eq!(watchdog.look(end + 10 * SECOND, false), Finding::Nothing);
        assert_eq!(watchdog.look(end + 11 * SECOND, true), Finding::Nothing);
    }

    #[test]
    fn an_answer_can_be_read() {
        let start = Instant::now();
        let socket = Socket::new("answer");
        let mut watchdog = socket.watchdog(start);
        assert!(watchdog.file().is_none());
        watchdog.look(start + 10 * SECOND, false);
        let (mut keeper, _) = socket.listener.accept().expect("a connection");
        let mut request = vec![0; KeeperRequest::Watched.frame().len()];
        std::io::Read::read_exact(&mut keeper, &mut request).expect("a request");
        assert_eq!(request, KeeperRequest::Watched.frame());
        let is_answered = |watchdog: &Watchdog| {
            let files = [watchdog.file().expect("a connection")];
            kymo_sys::machine::wait_readable(&files, Duration::ZERO) == [true]
        };
        assert!(!is_answered(&watchdog));
        // A process that another test forks holds a copy of a closed socket until it runs its program.
        keeper.shutdown(std::net::Shutdown::Both).expect("an end");
        assert!(is_answered(&watchdog));
    }

    #[test]
    fn a_socket_without_a_name_tells_nothing_and_one_that_is_full_is_silent() {
        let start = Instant::now();
        let socket = Socket::new("full");
        let (mut full, mut nameless) = (socket.watchdog(start), socket.watchdog(start));
        rustix::net::listen(&socket.listener, 1).expect("a short queue");
        let mut waiting = Vec::new();
        while let Ok(stream) = listen::connect_at_once(&socket.path) {
            waiting.push(stream);
        }
        assert_eq!(full.look(start + 10 * SECOND, false), Finding::Nothing);
        assert_eq!(full.left(), 110 * SECOND);
        std::fs::remove_file(&socket.path).expect("the socket's name");
        nameless.look(start + 10 * SECOND, false);
        assert_eq!(nameless.left(), 120 * SECOND);
    }

    #[test]
    fn time_that_the_guardian_itself_did_not_run_is_no_silence() {
        let start = Instant::now();
        let socket = Socket::new("pause");
        let mut watchdog = socket.watchdog(start);
        watchdog.look(start + 10 * SECOND, false);
        let late = start + 10_000 * SECOND;
        assert_eq!(watchdog.look(late, false), Finding::Nothing);
        assert_eq!(watchdog.left(), 110 * SECOND);
        // A new keeper has the full limit.
        watchdog.restart(late);
        assert_eq!(watchdog.left(), 120 * SECOND);
        assert_eq!(watchdog.due(), late + 10 * SECOND);
    }

    #[test]
    fn a_keeper_that_nobody_can_mend_by_a_restart_is_left_alone() {
        let left_alone = [Cause::Opening, Cause::Disk, Cause::Debugged];
        assert!(
            !left_alone
                .iter()
                .any(|cause| cause.is_mended_by_a_restart())
        );
    }

    #[test]
    fn what_a_process_waits_for_is_told_by_its_threads() {
        let mut sleeper = std::process::Command::new("sleep").arg("600").spawn();
        let sleeper = sleeper.as_mut().expect("a process");
        let pid = sleeper.id();
        let is_at_last = |cause: Cause, is_ready| {
            let start = Instant::now();
            while Cause::of(pid, is_ready) != cause {
                assert!(start.elapsed() < 60 * SECOND, "never {cause:?}");
                std::thread::sleep(Duration::from_millis(10));
            }
        };
        let send = |signal: &str| {
            let mut kill = std::process::Command::new("kill");
            let status = kill.arg(signal).arg(pid.to_string()).status();
            assert!(status.expect("kill runs").success());
        };
        is_at_last(Cause::Unknown, true);
        is_at_last(Cause::Opening, false);
        send("-STOP");
        is_at_last(Cause::Stopped, false);
        send("-KILL");
        sleeper.wait().expect("its end");
    }
}
