//! Shared state of the commands of one run: streams, the daemon's connection, the calendar, and buffers.

use std::cell::RefCell;
use std::io::{self, BufReader, BufWriter, Stdin, Stdout};

use kymo_rrd::at_time;
use kymo_rrd::calendar::Calendar;
use kymo_rrd::update::Scratch;

use super::client::Client;
use super::clock::now;
use super::message::Message;
use super::usage::Mode;

/// Bytes of the streams' buffers.
const BUFFER: usize = 64 << 10;

/// One run of the program.
pub(super) struct Session {
    /// Commands in pipe mode, and XML to restore.
    pub input: BufReader<Stdin>,
    /// Output of commands.
    pub out: BufWriter<Stdout>,
    /// The daemon of `--daemon` or of the environment.
    pub client: Client,
    /// An error that does not stop a command, and is its failure at the end.
    pub error: Option<Message>,
    /// Way in which commands arrive.
    pub mode: Mode,
    /// State of the random generator that chooses where rows begin.
    pub random: u64,
    /// Buffers of updates.
    pub scratch: Scratch,
    /// Buffer with the header of the last file.
    pub bytes: Vec<u8>,
    /// The calendar, made when the first time is read.
    pub calendar: Lazy,
}

impl Session {
    /// A new session.
    pub(super) fn new() -> Session {
        let mut seed = [0; 8];
        // If the kernel has no random bytes, the clock's microseconds choose where rows begin.
        let random = match kymo_sys::machine::random(&mut seed) {
            Ok(()) => u64::from_le_bytes(seed),
            Err(_) => now().usec as u64,
        };
        Session {
            input: BufReader::with_capacity(BUFFER, io::stdin()),
            out: BufWriter::with_capacity(BUFFER, io::stdout()),
            client: Client::from_environment(),
            error: None,
            mode: Mode::Plain,
            random,
            scratch: Scratch::default(),
            bytes: Vec::new(),
            calendar: Lazy::default(),
        }
    }

    /// Connects to the daemon that a command names, or else to the environment's. An error is kept, and is the
    /// command's failure at its end. True if there is a connection.
    pub(super) fn try_connect(&mut self, daemon: Option<&[u8]>) -> bool {
        if let Err(message) = self.client.connect(daemon) {
            self.error = Some(message);
        }
        self.client.is_connected(daemon)
    }

    /// Connects as [`Session::try_connect`], then lets the daemon write a file.
    pub(super) fn flush_if_connected(
        &mut self,
        daemon: Option<&[u8]>,
        name: &[u8],
    ) -> Result<(), Message> {
        if self.try_connect(daemon) {
            self.error = None;
            self.client.flush(name)?;
        }
        Ok(())
    }
}

/// A calendar of the machine's zone, made on demand, because reading the zone needs longer than an update.
#[derive(Default)]
pub(super) struct Lazy(RefCell<Option<Calendar>>);

impl Lazy {
    /// Runs `work` with the calendar.
    pub(super) fn with<T>(&self, work: impl FnOnce(&mut Calendar) -> T) -> T {
        work(self.0.borrow_mut().get_or_insert_with(Calendar::system))
    }

    /// Reads a time, relative to now.
    pub(super) fn parse(&self, text: &[u8]) -> Result<at_time::AtTime, kymo_rrd::Error> {
        self.with(|calendar| at_time::parse(text, now().sec, calendar))
    }

    /// Reads a time before an `@`: seconds, or `None` if it is relative to "start" or "end".
    pub(super) fn stamp(&self, text: &[u8]) -> Result<Option<i64>, String> {
        let time = self.parse(text).map_err(|error| error.text)?;
        let seconds = || self.with(|calendar| time.seconds(calendar));
        Ok((!time.is_relative()).then(seconds))
    }
}
