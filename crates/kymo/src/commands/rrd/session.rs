//! What commands of one run share: the streams, the daemon's connection, the clock, memory that is used again.

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
    /// What commands print.
    pub out: BufWriter<Stdout>,
    /// The daemon of `--daemon` or of the environment.
    pub client: Client,
    /// An error that does not stop a command, and fails it at its end.
    pub error: Option<Message>,
    /// Pipe mode or not.
    pub mode: Mode,
    /// State of the generator that says where rows begin.
    pub random: u64,
    /// What updates work with.
    pub scratch: Scratch,
    /// Bytes of the header of the last file.
    pub bytes: Vec<u8>,
    /// Made when a time is first asked for.
    pub calendar: Lazy,
}

impl Session {
    /// A fresh one.
    pub(super) fn new() -> Session {
        let mut seed = [0; 8];
        // Without the kernel's generator rows begin where the clock says.
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

    /// Tries the daemon that a command names, else the environment's. What goes wrong is kept and fails
    /// the command at its end; whether there is a connection is the answer.
    pub(super) fn try_connect(&mut self, daemon: Option<&[u8]>) -> bool {
        if let Err(message) = self.client.connect(daemon) {
            self.error = Some(message);
        }
        self.client.is_connected(daemon)
    }

    /// As [`Session::try_connect`]; then has the daemon write a file.
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

/// A calendar of the machine's zone, once it is needed: reading the zone takes longer than an update.
#[derive(Default)]
pub(super) struct Lazy(RefCell<Option<Calendar>>);

impl Lazy {
    /// Does something with it.
    pub(super) fn with<T>(&self, work: impl FnOnce(&mut Calendar) -> T) -> T {
        work(self.0.borrow_mut().get_or_insert_with(Calendar::system))
    }

    /// A time as told, from now.
    pub(super) fn parse(&self, text: &[u8]) -> Result<at_time::AtTime, kymo_rrd::Error> {
        self.with(|calendar| at_time::parse(text, now().sec, calendar))
    }

    /// What stands before an `@`: seconds, or `None` if it is counted from "start" or "end".
    pub(super) fn stamp(&self, text: &[u8]) -> Result<Option<i64>, String> {
        let time = self.parse(text).map_err(|error| error.text)?;
        let seconds = || self.with(|calendar| time.seconds(calendar));
        Ok((!time.is_relative()).then(seconds))
    }
}
