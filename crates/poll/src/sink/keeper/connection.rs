//! The way to the keeper: it is looked for again when it was away.

use kymo_sys::clock::Clock;
use kymo_wire::keeper::{ANSWER_MAX, Answer, HEAD, Question, body_bytes};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long an answer may take: files may be made for it.
const PATIENCE: Duration = Duration::from_secs(60);
/// It is not looked for more often than this.
const PAUSE_NS: u64 = 1_000_000_000;

/// The connection of all configurations of a process: the keeper has few seats for its clients.
#[derive(Clone)]
pub struct KeeperConnection(Arc<Mutex<Connection>>);

pub(super) struct Connection {
    socket: PathBuf,
    clock: Arc<dyn Clock>,
    stream: Option<UnixStream>,
    /// It is away: not to be looked for before this moment.
    not_before_ns: Option<u64>,
    connected: u64,
    is_told: bool,
}

impl KeeperConnection {
    /// To the keeper that answers on this socket, `keeper-write.sock`. Nothing is connected yet.
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

    /// How often it was found again.
    pub(super) fn reconnected(&self) -> u64 {
        self.connected.saturating_sub(1)
    }

    /// What is said of a failure: once, until it is over.
    pub(super) fn failed(&mut self, error: &io::Error) -> Option<String> {
        let socket = self.socket.display();
        let text =
            format!("cannot ask the keeper at {socket}: {error}; values wait until it is back");
        (!std::mem::replace(&mut self.is_told, true)).then_some(text)
    }

    /// Asks, and takes as many answers; on a new connection where the old one is of a keeper that has ended. `may_be_heard` says
    /// afterwards whether a question went out that was not answered.
    pub(super) fn ask(
        &mut self,
        question: &Question,
        answers: usize,
        may_be_heard: &mut bool,
    ) -> io::Result<Vec<Answer>> {
        let frame = question.frame();
        if let Some(mut stream) = self.stream.take() {
            if let Ok(answers) = exchange(&mut stream, &frame, answers) {
                self.stream = Some(stream);
                return Ok(answers);
            }
            *may_be_heard = true;
        }
        let mut stream = self.connect()?;
        let answers = exchange(&mut stream, &frame, answers).inspect_err(|_| {
            *may_be_heard = true;
            // The other configurations do not wait as long for the same answer.
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
