//! The connection to the keeper, made again when the keeper was away.

use crate::sink::give_up_if_silent;
use kymo_sys::clock::Clock;
use kymo_wire::keeper::{ANSWER_MAX, Answer, HEAD, KeeperRequest, body_bytes};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Timeout for an answer: the keeper may have to make files for it.
const PATIENCE: Duration = Duration::from_secs(60);
/// Least time between two attempts to connect.
const PAUSE_NS: u64 = 1_000_000_000;

/// The connection that all configurations of a process share, as the keeper accepts few clients.
#[derive(Clone)]
pub struct KeeperConnection(Arc<Mutex<Connection>>);

pub(super) struct Connection {
    socket: PathBuf,
    clock: Arc<dyn Clock>,
    stream: Option<UnixStream>,
    /// Time before which the connection is not tried again.
    not_before_ns: Option<u64>,
    connected: u64,
    is_told: bool,
}

impl KeeperConnection {
    /// A connection to the keeper at this socket, `keeper-write.sock`. The first request connects.
    pub fn to(socket: PathBuf, clock: Arc<dyn Clock>) -> KeeperConnection {
        KeeperConnection(Arc::new(Mutex::new(Connection {
            socket,
            clock,
            stream: None,
            not_before_ns: None,
            connected: 0,
            is_told: false,
        })))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Connection> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connection {
    /// Uses a connection that is open already.
    #[cfg(any(test, feature = "testing"))]
    pub(super) fn use_stream(&mut self, stream: UnixStream) {
        self.stream = Some(stream);
    }

    /// Number of reconnections.
    pub(super) fn reconnected(&self) -> u64 {
        self.connected.saturating_sub(1)
    }

    /// The message about a failure; `None`: it was logged already and has not ended since.
    pub(super) fn failed(&mut self, error: &io::Error) -> Option<String> {
        let socket = self.socket.display();
        let text =
            format!("cannot ask the keeper at {socket}: {error}; values wait until it is back");
        (!std::mem::replace(&mut self.is_told, true)).then_some(text)
    }

    /// Sends a request and reads this number of answers. If that fails on an old connection, whose keeper may have ended, tries
    /// again with a new one. Sets `may_be_heard` if a request went out without an answer.
    pub(super) fn ask(
        &mut self,
        request: &KeeperRequest,
        answers: usize,
        may_be_heard: &mut bool,
    ) -> io::Result<Vec<Answer>> {
        let frame = request.frame();
        if let Some(mut stream) = self.stream.take() {
            match exchange(&mut stream, &frame, answers) {
                Ok(answers) => {
                    self.stream = Some(stream);
                    return Ok(answers);
                }
                Err(error) => {
                    *may_be_heard = true;
                    give_up_if_silent(error)?;
                }
            }
        }
        let mut stream = self.connect()?;
        let answers = exchange(&mut stream, &frame, answers).inspect_err(|_| {
            *may_be_heard = true;
            // Other configurations that share the connection need not wait for the same timeout.
            self.not_before_ns = Some(self.clock.mono_ns() + PAUSE_NS);
        })?;
        self.stream = Some(stream);
        self.is_told = false;
        Ok(answers)
    }

    fn connect(&mut self) -> io::Result<UnixStream> {
        let now_ns = self.clock.mono_ns();
        if self.not_before_ns.is_some_and(|moment| now_ns < moment) {
            return Err(io::ErrorKind::NotConnected.into());
        }
        self.not_before_ns = Some(now_ns + PAUSE_NS);
        let stream = UnixStream::connect(&self.socket)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        self.not_before_ns = None;
        self.connected += 1;
        Ok(stream)
    }
}

fn exchange(stream: &mut UnixStream, frame: &[u8], answers: usize) -> io::Result<Vec<Answer>> {
    stream.write_all(frame)?;
    (0..answers).map(|_| read_answer(stream)).collect()
}

fn read_answer(stream: &mut UnixStream) -> io::Result<Answer> {
    let strange = |why| io::Error::other(format!("its answer {why}"));
    let mut head = [0; HEAD];
    stream.read_exact(&mut head)?;
    let mut frame = vec![0; body_bytes(head, ANSWER_MAX).map_err(strange)?];
    stream.read_exact(&mut frame)?;
    Answer::read(&frame).map_err(strange)
}
