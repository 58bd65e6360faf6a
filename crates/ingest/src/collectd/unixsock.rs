//! Commands of collectd's unixsock plugin. Each client has a thread that reads its lines and writes the answers. Values and
//! notifications are the datagrams' business, so the thread that receives those carries out commands that need them; FLUSH, which
//! waits for files, is the client's own.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::time::Duration;

use kymo_base::printf::{put_exp, put_fixed};
use kymo_store::{FileError, Store, Writer};
use kymo_sys::clock::{Clock as _, RealClock};
use kymo_sys::listen::{self, Peer};
use kymo_sys::machine;
use kymo_wire::collectd::{
    COMMAND_MAX, Cdtime, Changed, Command, CommandRefusal, FlushOrder, Identifier, ListedValues,
    Notification, PutNotif, PutVal, Values, put_source_name,
};
use kymo_wire::line_stream::{LineStream, LineTooLong};
use rustix::event::{EventfdFlags, eventfd};

use super::budgets::Trusted;
use super::intake::{Intake, Registry, Round, Source};
use super::value_cache::ListedSeries;
use crate::common::seats::{Seat, SeatedService, serve_seated};
use crate::listener::{Listener, StopSignal};
use crate::log::Log;

/// Bytes that are read at once.
const READ_SIZE: usize = 16 << 10;
/// Bytes of a list that are written at once.
const WRITE_SIZE: usize = 64 << 10;
/// Longest time in which a client takes nothing of an answer.
const STALL: Duration = Duration::from_secs(10);
/// Longest sleep. Its length matters for nothing else.
const NAP: Duration = Duration::from_secs(3600);
/// Commands that are carried out before datagrams are received again.
const COMMANDS_AT_ONCE: usize = 64;
/// Address of all clients in the accounts of senders.
const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// The listener.
pub struct UnixSock {
    /// Socket that clients connect to.
    pub socket: OwnedFd,
    /// The way to the listener for datagrams.
    pub commands: CommandSender,
    /// Messages for the administrator.
    pub log: Log,
}

/// Makes the way by which clients' threads have commands carried out; `name`: where clients connect, for people.
pub fn command_queue(name: String) -> io::Result<(CommandSender, CommandQueue)> {
    let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
    let bell = Arc::new(eventfd(0, flags)?);
    let (jobs, waiting) = channel();
    let sender = CommandSender {
        jobs,
        bell: Arc::clone(&bell),
    };
    Ok((
        sender,
        CommandQueue {
            name,
            waiting,
            bell,
        },
    ))
}

/// The end of clients' threads.
pub struct CommandSender {
    jobs: Sender<Job>,
    bell: Arc<OwnedFd>,
}

/// The end of the thread that receives datagrams.
pub struct CommandQueue {
    /// Where clients connect, for people.
    pub(super) name: String,
    waiting: Receiver<Job>,
    /// Readable when a command may wait.
    bell: Arc<OwnedFd>,
}

/// A command, the user who gives it, and where the answer goes.
struct Job {
    command: Command,
    uid: u32,
    answer: SyncSender<CommandAnswer>,
}

/// The answer to a command.
enum CommandAnswer {
    /// Whole lines.
    Lines(Vec<u8>),
    /// The series of LISTVAL.
    List(ListedSeries),
}

fn ring(bell: &OwnedFd) {
    // The write fails if the counter is full, and then the file is readable already.
    let _ = rustix::io::write(bell, &1u64.to_ne_bytes());
}

impl Listener for UnixSock {
    fn name(&self) -> &'static str {
        "unixsock"
    }

    fn run(self: Box<Self>, store: &Store, stop: &StopSignal) -> io::Result<()> {
        let service = CommandService {
            commands: &self.commands,
            store,
            stop,
        };
        serve_seated(&service, &self.socket, stop, &self.log)
    }
}

/// Answers clients.
struct CommandService<'a> {
    commands: &'a CommandSender,
    store: &'a Store,
    stop: &'a StopSignal,
}

impl SeatedService for CommandService<'_> {
    fn admits(&self, _client: &OwnedFd) -> bool {
        // The mode of the socket decides.
        true
    }

    fn answer(&self, mut stream: UnixStream, seat: &Seat) {
        let limits = [
            stream.set_nonblocking(false),
            stream.set_write_timeout(Some(STALL)),
        ];
        if let (Some(Peer::User(uid)), true) =
            (listen::peer(&stream), limits.iter().all(Result::is_ok))
        {
            // The client is gone, does not take its answers, or all ends: then its connection is closed.
            let _ = self.answer_lines(&mut stream, uid, seat);
        }
    }

    fn end(&self) {}
}

impl CommandService<'_> {
    fn answer_lines(&self, stream: &mut UnixStream, uid: u32, seat: &Seat) -> io::Result<()> {
        let mut lines = LineStream::new(COMMAND_MAX);
        let mut room = Vec::new();
        loop {
            let ready = machine::wait_readable(&[self.stop.as_fd(), stream.as_fd()], NAP);
            if ready.first() == Some(&true) {
                return Ok(());
            }
            if ready.get(1) != Some(&true) {
                continue;
            }
            let _busy = seat.busy();
            let from = room.len();
            room.resize(from + READ_SIZE, 0);
            let count = stream.read(&mut room[from..])?;
            room.truncate(from + count);
            if count == 0 && from > 0 {
                // The last line needs no end.
                room.push(b'\n');
            }
            let mut rest = room.as_slice();
            while let Some(line) = lines.take(&mut rest) {
                self.answer_line(line, uid, stream)?;
            }
            if count == 0 {
                return Ok(());
            }
            let read = room.len() - rest.len();
            room.drain(..read);
        }
    }

    fn answer_line(
        &self,
        line: Result<&[u8], LineTooLong>,
        uid: u32,
        stream: &mut UnixStream,
    ) -> io::Result<()> {
        let answer = match line {
            Ok(b"") => return Ok(()),
            Ok(line) => match Command::parse(line) {
                Ok(Command::Flush(order)) => self.flush(&order),
                Ok(command) => self.commands.carry_out(command, uid)?,
                Err(refusal) => refused(&refusal),
            },
            Err(LineTooLong) => refused(&format!("Line has more than {COMMAND_MAX} bytes.")),
        };
        match answer {
            CommandAnswer::Lines(lines) => stream.write_all(&lines),
            CommandAnswer::List(list) => write_list(list, stream),
        }
    }

    /// Brings .rrd files up to date.
    fn flush(&self, order: &FlushOrder) -> CommandAnswer {
        let mut outcomes: Vec<bool> = order
            .names
            .iter()
            .map(|name| self.flush_one(name))
            .collect();
        if order.names.is_empty() {
            let mut batch = self.store.write_batch();
            batch.flush_all();
            outcomes.push(batch.commit().is_ok());
        }
        // collectd counts each pair of a plugin and a series.
        let plugins = order.plugins.max(1);
        let done = plugins * outcomes.iter().filter(|is_done| **is_done).count();
        let errors = plugins * outcomes.len() - done;
        lines(format!("0 Done: {done} successful, {errors} errors\n"))
    }

    /// True if nothing of a series waits for its file any more.
    fn flush_one(&self, name: &[u8]) -> bool {
        let mut path = Vec::new();
        let identifier = Identifier::parse(name).unwrap_or_default();
        identifier.put_rrd_path(&mut path).is_ok()
            && matches!(self.store.flush(&path), Ok(_) | Err(FileError::NoSuchFile))
    }
}

fn lines(text: impl Into<Vec<u8>>) -> CommandAnswer {
    CommandAnswer::Lines(text.into())
}

fn refused(refusal: &str) -> CommandAnswer {
    lines(format!("-1 {refusal}\n"))
}

/// The first line of an answer with values.
fn found(count: usize) -> Vec<u8> {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} Value{plural} found\n").into_bytes()
}

fn write_list(mut list: ListedSeries, stream: &mut UnixStream) -> io::Result<()> {
    list.sort_unstable();
    let mut out = found(list.len());
    for (name, time) in &list {
        put_fixed(&mut out, time.seconds_f64(), 3);
        out.push(b' ');
        out.extend_from_slice(name);
        out.push(b'\n');
        if out.len() >= WRITE_SIZE {
            stream.write_all(&out)?;
            out.clear();
        }
    }
    stream.write_all(&out)
}

impl CommandSender {
    /// Has a command carried out. An error: the listener for datagrams has ended.
    fn carry_out(&self, command: Command, uid: u32) -> io::Result<CommandAnswer> {
        let ended = || io::Error::from(io::ErrorKind::BrokenPipe);
        let (answer, receiver) = sync_channel(1);
        let job = Job {
            command,
            uid,
            answer,
        };
        self.jobs.send(job).map_err(|_| ended())?;
        ring(&self.bell);
        receiver.recv().map_err(|_| ended())
    }
}

impl AsFd for CommandQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

impl CommandQueue {
    /// Carries out waiting commands.
    pub(super) fn carry_out(&self, intake: &mut Intake, registry: &mut Registry, store: &Store) {
        // The count does not matter: commands are taken until there is none.
        let _ = rustix::io::read(&self.bell, &mut [0; 8]);
        for _ in 0..COMMANDS_AT_ONCE {
            let Ok(job) = self.waiting.try_recv() else {
                return;
            };
            let answer = intake.carry_out(&job.command, job.uid, registry, store);
            // The client may be gone.
            let _ = job.answer.send(answer);
        }
        ring(&self.bell);
    }
}

impl Intake {
    fn carry_out(
        &mut self,
        command: &Command,
        uid: u32,
        registry: &mut Registry,
        store: &Store,
    ) -> CommandAnswer {
        let answer = match command {
            Command::GetVal(name) => get_val(name, registry),
            Command::ListVal => {
                let cache = registry.newest.as_mut();
                let list = cache.map(|cache| cache.list(RealClock.mono_ns()));
                return CommandAnswer::List(list.unwrap_or_default());
            }
            Command::PutVal(put) => self.put_val(put, uid, registry, store),
            Command::PutNotif(put) => self.put_notif(put, uid, registry, store),
            Command::Flush(_) => unreachable!("BUG: FLUSH is not for this thread"),
        };
        match answer {
            Ok(answer) => CommandAnswer::Lines(answer),
            Err(refusal) => refused(&refusal),
        }
    }

    fn put_val(
        &mut self,
        put: &PutVal,
        uid: u32,
        registry: &mut Registry,
        store: &Store,
    ) -> Result<Vec<u8>, CommandRefusal> {
        let identifier = put.identifier();
        registry.take_types();
        let sources = registry.types.sources(identifier.type_name);
        let sources = sources.ok_or_else(|| {
            let type_name = String::from_utf8_lossy(identifier.type_name);
            format!("1 Type `{type_name}' isn't defined.")
        })?;
        let now = u64::try_from(RealClock.now().real_ns).unwrap_or(0);
        let now = Cdtime::from_nanoseconds(now);
        let lists = put.lists.iter().map(|(interval, text)| {
            let (time, values) = ListedValues::parse(text, sources, now)?;
            Some((*interval, time, values))
        });
        let lists: Option<Vec<_>> = lists.collect();
        let lists = lists.ok_or("Parsing the values string failed.")?;
        self.put(uid, registry, store, |intake, round, source| {
            for (interval, time, listed) in &lists {
                let values = Values {
                    identifier: &identifier,
                    time: *time,
                    interval: *interval,
                    values: listed.raw(),
                    changed: Changed::default(),
                };
                intake.values(round, &values, source, None);
            }
        })?;
        let (count, are) = match lists.len() {
            1 => (1, "value has"),
            count => (count, "values have"),
        };
        Ok(format!("0 Success: {count} {are} been dispatched.\n").into_bytes())
    }

    fn put_notif(
        &mut self,
        put: &PutNotif,
        uid: u32,
        registry: &mut Registry,
        store: &Store,
    ) -> Result<Vec<u8>, CommandRefusal> {
        let notification = Notification {
            identifier: &put.identifier(),
            time: put.time,
            severity: put.severity,
            message: &put.message,
        };
        self.put(uid, registry, store, |intake, round, source| {
            intake.notification(round, &notification, source, None);
        })?;
        Ok(b"0 Success\n".to_vec())
    }

    /// Puts something into the store, in a round of its own. Refuses if something was not taken, other than values that are not
    /// newer than the last: collectd, too, passes over those in silence.
    fn put(
        &mut self,
        uid: u32,
        registry: &mut Registry,
        store: &Store,
        work: impl FnOnce(&mut Intake, &mut Round<'_>, Source),
    ) -> Result<(), CommandRefusal> {
        let source = Source {
            address: ADDRESS,
            sender: self.accounts.number(ADDRESS),
            writer: Writer::uid(uid),
            trusted: Some(Trusted::User(uid)),
        };
        let before = self.accounts.all;
        self.in_round(registry, store, |intake, round| work(intake, round, source));
        match self.accounts.refused_since(&before) {
            Some(words) => Err(format!("cannot store: {words}")),
            None => Ok(()),
        }
    }
}

/// The answer to GETVAL.
fn get_val(name: &[u8], registry: &Registry) -> Result<Vec<u8>, CommandRefusal> {
    let cache = registry.newest.as_ref();
    let rates = cache.and_then(|cache| cache.rates(name, RealClock.mono_ns()));
    let identifier = Identifier::parse(name).unwrap_or_default();
    let sources = registry.types.sources(identifier.type_name);
    let rates = rates.ok_or_else(|| match sources {
        Some(_) => "No such value.".into(),
        None => {
            let type_name = String::from_utf8_lossy(identifier.type_name);
            format!("Type `{type_name}' is unknown.")
        }
    })?;
    let sources = sources.filter(|sources| sources.len() == rates.len());
    let mut out = found(rates.len());
    for (at, rate) in rates.iter().enumerate() {
        match sources.and_then(|sources| sources.get(at)) {
            Some(source) => out.extend_from_slice(source.name.as_bytes()),
            None => put_source_name(&mut out, at, rates.len()),
        }
        out.push(b'=');
        put_rate(&mut out, *rate);
        out.push(b'\n');
    }
    Ok(out)
}

/// A rate as collectd prints it: C's `%12e`, but `NaN`.
fn put_rate(out: &mut Vec<u8>, rate: f64) {
    if rate.is_nan() {
        return out.extend_from_slice(b"NaN");
    }
    let mut text = Vec::new();
    put_exp(&mut text, rate, 6);
    let blanks = 12usize.saturating_sub(text.len());
    out.resize(out.len() + blanks, b' ');
    out.extend_from_slice(&text);
}
