//! The loop of a listener whose protocol is lines, by UDP and TCP. One thread receives many datagrams by one system call and
//! reads available bytes from connections; after each round the protocol gives its samples to the store. Clients get no answers.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use kymo_store::Store;
use kymo_sys::clock::{Clock as _, RealClock, Stamp};
use kymo_sys::datagrams::Datagrams;
use kymo_sys::machine;
use kymo_wire::keeper::LineAccount;
use kymo_wire::line_stream::LineTooLong;

use super::line_accounts::LineAccounts;
use super::line_clients::LineClients;
use super::reported::Reported;
use super::rhythm::Rhythm;
use super::sender_lots::{SenderLot, SenderLots};
use super::troubles::Troubles;
use crate::listener::StopSignal;
use crate::log::{Log, Severity};
use crate::sender_group::SenderGroup;

/// Datagrams of one round.
const ROUND: usize = 64;
/// Rounds of one socket in a row, so that no other socket waits for long.
const ROUNDS: usize = 16;
/// How often lost and refused values are reported.
const REPORT_EVERY: Duration = Duration::from_secs(60);
/// Least time between two publications of counts.
const PUBLISH_EVERY_NS: u64 = 1_000_000_000;
/// Longest sleep; nothing depends on it.
const NAP: Duration = Duration::from_secs(3600);

/// Sockets of one protocol.
pub struct LineSockets {
    /// Nonblocking sockets for datagrams, each with its name for the log.
    pub datagrams: Vec<(OwnedFd, String)>,
    /// Nonblocking sockets that accept clients.
    pub streams: Vec<OwnedFd>,
    /// Losses of the datagram sockets that were reported before.
    pub reported: Reported,
    /// Receives the counts of the listener.
    pub accounts: LineAccounts,
}

/// A protocol of lines.
pub(crate) trait LineIntake {
    /// Most bytes of a line in a stream.
    const LINE_MAX: usize;

    /// Takes the lines of a datagram, or one line of a stream. `sender` has shares of the limits.
    fn take_lines(&mut self, lines: &[u8], sender: SenderLot, store: &Store, now: Stamp);

    /// Counts a line of a stream that is too long.
    fn refuse_long_line(&mut self);

    /// Gives the store the samples of this round.
    fn end_round(&mut self, store: &Store);

    /// The next moment at which [`LineIntake::on_time`] has something to do, by the monotonic clock.
    fn due_ns(&self) -> Option<u64>;

    /// Does the work that is due; `ends`: this is the last call.
    fn on_time(&mut self, store: &Store, now: Stamp, ends: bool);

    /// Number of samples accepted since the start.
    fn samples(&self) -> u64;

    /// Counts of lines and samples that were not taken.
    fn troubles(&mut self) -> &mut Troubles;
}

/// A protocol and its sockets.
pub(crate) struct LineServer<I> {
    name: &'static str,
    intake: I,
    sockets: LineSockets,
    /// Dropped datagrams of each socket by the kernel's count, as of the last round.
    dropped: Vec<u32>,
    clients: LineClients,
    lots: SenderLots,
    datagrams: Datagrams,
    /// Datagrams received since the start.
    received: u64,
    /// Time of the last publication of counts; `None`: those that are published are the newest.
    published_ns: u64,
    is_published: bool,
    log: Log,
}

/// Files that can be read.
struct Ready {
    ends: bool,
    /// True for each socket with clients to accept.
    streams: Vec<bool>,
    clients: Vec<bool>,
}

impl<I: LineIntake> LineServer<I> {
    /// A server without clients yet; `name` is for the log.
    pub(crate) fn new(name: &'static str, intake: I, sockets: LineSockets, log: Log) -> Self {
        let known = (0..sockets.datagrams.len()).map(|at| sockets.reported.of(at));
        LineServer {
            name,
            intake,
            dropped: known.collect(),
            sockets,
            clients: LineClients::new(I::LINE_MAX),
            lots: SenderLots::default(),
            datagrams: Datagrams::new(ROUND),
            received: 0,
            published_ns: 0,
            is_published: false,
            log,
        }
    }

    /// Serves until `stop`.
    pub(crate) fn run(mut self, store: &Store, stop: &StopSignal) -> io::Result<()> {
        let mut reports = Rhythm::of(REPORT_EVERY);
        loop {
            let ready = self.wait(stop, &reports);
            self.receive(store)?;
            self.read_clients(&ready, store);
            let now = RealClock.now();
            self.publish(now.mono_ns);
            if ready.ends || self.intake.due_ns().is_some_and(|due| due <= now.mono_ns) {
                self.intake.on_time(store, now, ready.ends);
            }
            if !self.intake.troubles().is_empty() && (reports.is_due() || ready.ends) {
                self.report();
                reports.begin_again();
            }
            if ready.ends {
                return Ok(());
            }
        }
    }

    fn wait(&mut self, stop: &StopSignal, reports: &Rhythm) -> Ready {
        let has_troubles = !self.intake.troubles().is_empty();
        let now_ns = RealClock.mono_ns();
        let until = |due_ns: u64| Duration::from_nanos(due_ns.saturating_sub(now_ns));
        let waits = [
            has_troubles.then(|| reports.wait()),
            self.intake.due_ns().map(until),
            self.clients.idle_end_ns().map(until),
            (!self.is_published).then(|| until(self.published_ns + PUBLISH_EVERY_NS)),
        ];
        let wait = waits.into_iter().flatten().min().unwrap_or(NAP);
        let sockets = &self.sockets;
        let mut files: Vec<BorrowedFd> = vec![stop.as_fd()];
        files.extend(sockets.datagrams.iter().map(|(socket, _)| socket.as_fd()));
        files.extend(sockets.streams.iter().map(AsFd::as_fd));
        files.extend(self.clients.files());
        let ready = machine::wait_readable(&files, wait);
        let mut ready = ready.into_iter();
        let ends = ready.next() == Some(true);
        let mut ready = ready.skip(sockets.datagrams.len());
        Ready {
            ends,
            streams: ready.by_ref().take(sockets.streams.len()).collect(),
            clients: ready.collect(),
        }
    }

    /// Receives waiting datagrams.
    fn receive(&mut self, store: &Store) -> io::Result<()> {
        for at in 0..self.sockets.datagrams.len() {
            for _ in 0..ROUNDS {
                if self.round(at, store)? < ROUND {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Receives once. Returns the number of datagrams.
    fn round(&mut self, at: usize, store: &Store) -> io::Result<usize> {
        let (Some((socket, _)), Some(known)) =
            (self.sockets.datagrams.get(at), self.dropped.get_mut(at))
        else {
            return Ok(0);
        };
        let count = self.datagrams.receive(socket)?;
        if count == 0 {
            return Ok(0);
        }
        if let Some(dropped) = self.datagrams.dropped() {
            let more = dropped.wrapping_sub(*known);
            *known = dropped;
            let troubles = self.intake.troubles();
            troubles.count("a datagram that the kernel dropped", more.into());
        }
        let now = RealClock.now();
        for datagram in self.datagrams.iter_mut() {
            let sender = self.lots.of(SenderGroup::of(datagram.sender.ip()));
            self.intake.take_lines(datagram.bytes, sender, store, now);
        }
        self.intake.end_round(store);
        self.received += u64::try_from(count).unwrap_or(u64::MAX);
        self.is_published = false;
        Ok(count)
    }

    /// Publishes the counts, once a second at most.
    fn publish(&mut self, now_ns: u64) {
        if self.is_published || now_ns < self.published_ns + PUBLISH_EVERY_NS {
            return;
        }
        let refused = self.intake.troubles().totals().iter();
        self.sockets.accounts.publish(LineAccount {
            protocol: self.name.into(),
            clients: self.clients.count(),
            datagrams: self.received,
            refused: refused
                .map(|(why, count)| (why.as_bytes().to_vec(), *count))
                .collect(),
            samples: self.intake.samples(),
        });
        (self.published_ns, self.is_published) = (now_ns, true);
    }

    /// Takes clients, and the lines that they have sent.
    fn read_clients(&mut self, ready: &Ready, store: &Store) {
        if ready.clients.is_empty() && !ready.streams.contains(&true) {
            return;
        }
        self.is_published = false;
        let now = RealClock.now();
        let (intake, lots) = (&mut self.intake, &self.lots);
        let mut came = false;
        let mut take = |group: SenderGroup, line: Result<&[u8], LineTooLong>| {
            came = true;
            match line {
                Ok(line) => intake.take_lines(line, lots.of(group), store, now),
                Err(LineTooLong) => intake.refuse_long_line(),
            }
        };
        self.clients.read(&ready.clients, now.mono_ns, &mut take);
        let streams = self.sockets.streams.iter().zip(&ready.streams);
        for (socket, _) in streams.filter(|(_, is_ready)| **is_ready) {
            self.clients.accept(socket, now.mono_ns, &mut take);
        }
        if came {
            intake.end_round(store);
        }
        self.clients.take_counts(self.intake.troubles());
    }

    /// Logs losses and refusals since the last report.
    fn report(&mut self) {
        if let Some(news) = self.intake.troubles().take() {
            (self.log)(
                Severity::Warning,
                &format!("{}: not taken: {news}", self.name),
            );
        }
        for (at, dropped) in self.dropped.iter().enumerate() {
            self.sockets.reported.note(at, *dropped);
        }
    }
}
