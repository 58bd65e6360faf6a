//! A keeper's silence, which all threads that ask it share: after one request without an answer the next ones fail at
//! once, until the keeper has answered the smallest request there is.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kymo_sys::clock::{Clock as _, RealClock};
use kymo_wire::keeper::KeeperRequest;

use super::connections::{Connections, Exchange, Patience};
use super::read_answer;

/// Time that the keeper has for the smallest request before other requests fail at once: a slow request alone is no
/// silence.
const GRACE: Duration = Duration::from_millis(250);
/// The thread that waits for the end of the silence has nothing else to do.
const PROBED: Duration = Duration::from_secs(3600);

/// One keeper, as far as its askers know.
pub(super) struct Silence {
    path: PathBuf,
    since: Mutex<Option<Since>>,
    ended: Condvar,
}

#[derive(Clone, Copy)]
struct Since {
    /// When the first request without an answer was asked, in monotonic nanoseconds.
    asked_ns: u64,
    /// When its asker gave up.
    found_ns: u64,
}

impl Silence {
    /// Nothing is known of the keeper at `path`: it is not silent.
    pub(super) fn new(path: &Path) -> Arc<Silence> {
        Arc::new(Silence {
            path: path.into(),
            since: Mutex::new(None),
            ended: Condvar::new(),
        })
    }

    fn since(&self) -> MutexGuard<'_, Option<Since>> {
        self.since.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Time without an answer, if the keeper is silent now.
    pub(super) fn lasts(&self) -> Option<Duration> {
        let since = self.since();
        let at = *since.as_ref()?;
        let left = GRACE.saturating_sub(elapsed(at.found_ns));
        let waited = self
            .ended
            .wait_timeout_while(since, left, |since| since.is_some());
        let since = waited.unwrap_or_else(PoisonError::into_inner).0;
        Some(elapsed(since.as_ref()?.asked_ns))
    }

    /// Begins, after a request had no answer for `patience`; a thread waits for the end.
    pub(super) fn begin(self: &Arc<Silence>, patience: Duration) {
        let mut since = self.since();
        if since.is_some() {
            return;
        }
        let silence = self.clone();
        let named = std::thread::Builder::new().name("silence".into());
        // Without a thread each request finds out for itself.
        if named.spawn(move || silence.outlast()).is_ok() {
            let found_ns = RealClock.mono_ns();
            let patience_ns = u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX);
            *since = Some(Since {
                asked_ns: found_ns.saturating_sub(patience_ns),
                found_ns,
            });
        }
    }

    /// Waits for an answer. Anything but silence ends it: the next request finds out the rest.
    fn outlast(&self) {
        while self.probe().is_err_and(|error| super::is_timeout(&error)) {}
        *self.since() = None;
        self.ended.notify_all();
    }

    fn probe(&self) -> io::Result<()> {
        let patience = Patience {
            piece: PROBED,
            until_ns: None,
        };
        let connections = Connections::new(self.path.clone(), 1);
        let place = Arc::new(connections)
            .place(patience)
            .ok_or(io::ErrorKind::TimedOut)?;
        let stream = place.connect(patience)?;
        let mut exchange = Exchange { stream, patience };
        exchange.write_all(&KeeperRequest::Watched.frame())?;
        read_answer(&mut exchange).map(drop)
    }
}

fn elapsed(since_ns: u64) -> Duration {
    Duration::from_nanos(RealClock.mono_ns().saturating_sub(since_ns))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::time::Instant;

    use kymo_wire::keeper::Answer;

    use super::*;
    use crate::Keeper;

    /// Answers whatever comes on a connection.
    fn answer(stream: UnixStream) {
        let patience = Patience {
            piece: PROBED,
            until_ns: None,
        };
        let mut exchange = Exchange { stream, patience };
        let mut request = vec![0; KeeperRequest::Watched.frame().len()];
        while io::Read::read_exact(&mut exchange, &mut request).is_ok() {
            let answer = Answer::Watched(true).frame();
            if exchange.write_all(&answer).is_err() {
                return;
            }
        }
    }

    #[test]
    fn a_keeper_that_hangs_is_waited_for_once_and_asked_again_when_it_answers() {
        let name = format!("kymo-silence-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path).expect("a socket");
        let patience = Duration::from_millis(300);
        let keeper = Keeper::shared(path.clone(), 2, patience);
        let refused = |keeper: &Keeper| keeper.is_watched().expect_err("nobody answers");
        let first = refused(&keeper);
        assert!(
            first.ends_with("the keeper did not answer in 0.3 s"),
            "{first}"
        );
        for keeper in [
            &keeper,
            &keeper.apart(1),
            &keeper.within(Duration::from_secs(9)),
        ] {
            let next = refused(keeper);
            assert!(
                next.contains("the keeper has not answered for 0 s"),
                "{next}"
            );
        }
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                std::thread::spawn(move || answer(stream));
            }
        });
        let begun = Instant::now();
        while keeper.is_watched() != Ok(true) {
            assert!(begun.elapsed() < Duration::from_secs(60), "never again");
            std::thread::sleep(Duration::from_millis(10));
        }
        std::fs::remove_file(&path).expect("the socket's name");
    }

    #[test]
    fn requests_together_end_in_the_time_that_they_were_given() {
        let name = format!("kymo-within-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_file(&path);
        let _listener = UnixListener::bind(&path).expect("a socket");
        let keeper = Keeper::at(path.clone()).within(Duration::from_millis(200));
        for _ in 0..3 {
            let why = keeper.is_watched().expect_err("nobody answers");
            assert!(why.contains("in 0.2 s"), "{why}");
        }
        std::fs::remove_file(&path).expect("the socket's name");
    }
}
