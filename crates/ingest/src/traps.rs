//! The listener for SNMP traps and informs. Each that may come becomes an event of its device (`event`), with the names of standard
//! traps (`object_names`); informs are answered when their event is saved (`informs`). `usm` says who sent a message of SNMPv3,
//! `engines` and `replays` whether it is new. Refused datagrams are counted by their reasons,
//! and logged once a minute. The thread has no part in the intake of values.

pub(crate) mod engines;
pub(crate) mod event;
mod informs;
mod intake;
mod object_names;
mod replays;
#[cfg(test)]
mod tests;
mod usm;

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kymo_store::Store;
use kymo_sys::clock::{Clock as _, RealClock};
use kymo_sys::datagrams::{Datagrams, Outbox};
use kymo_sys::disk::Disk;
use kymo_sys::machine;
use kymo_wire::keeper::LineAccount;
use kymo_wire::trap_access::TrapAccess;

use crate::collectd::{EventKeeper, InForce};
use crate::common::rhythm::Rhythm;
use crate::common::{LineAccounts, Reported};
use crate::listener::{Listener, StopSignal};
use crate::log::{Log, Severity};
use crate::prefix::Prefix;
use engines::Engines;
use intake::TrapIntake;
use usm::Usm;

/// Datagrams of one round.
const ROUND: usize = 64;
/// Rounds of one socket in a row, so that no other socket waits for long.
const ROUNDS: usize = 16;
/// How often refused traps are reported.
const REPORT_EVERY: Duration = Duration::from_secs(60);
/// How often traps are saved and logged, and counts published.
const NOTIFY_EVERY: Duration = Duration::from_secs(1);
/// How often events of informs are saved: their senders wait for that, mostly for a second before they send again.
const SAVE_EVERY: Duration = Duration::from_millis(200);
/// Longest sleep; nothing depends on it.
const NAP: Duration = Duration::from_secs(3600);

/// Accepted senders, and names of devices.
#[derive(Clone, Debug)]
pub struct TrapSettings {
    /// Communities and users; `None`: any community, and no user.
    pub access: Option<InForce<TrapAccess>>,
    /// Networks from which datagrams are accepted; empty: all networks.
    pub allow: Vec<Prefix>,
    /// Names of devices by address; the others are called by their address.
    pub hosts: HashMap<IpAddr, String>,
}

/// The listener.
pub struct Traps {
    /// Settings.
    pub settings: TrapSettings,
    /// Nonblocking sockets for datagrams, each with its name for the log.
    pub sockets: Vec<(OwnedFd, String)>,
    /// Losses of the sockets that were reported before.
    pub reported: Reported,
    /// Receives the counts of the listener.
    pub accounts: LineAccounts,
    /// Keeps the events.
    pub events: EventKeeper,
    /// The disk and the folder of the file with engines of SNMPv3.
    pub kept: (Arc<dyn Disk>, PathBuf),
    /// Messages for the administrator.
    pub log: Log,
}

impl Listener for Traps {
    fn name(&self) -> &'static str {
        "traps"
    }

    fn run(self: Box<Self>, _store: &Store, stop: &StopSignal) -> io::Result<()> {
        TrapServer::new(*self).run(stop)
    }
}

/// The sockets, and the intake of their datagrams.
struct TrapServer {
    sockets: Vec<(OwnedFd, String)>,
    /// Dropped datagrams of each socket by the kernel's count, as of the last round.
    dropped: Vec<u32>,
    reported: Reported,
    accounts: LineAccounts,
    events: EventKeeper,
    log: Log,
    intake: TrapIntake,
    datagrams: Datagrams,
    outbox: Outbox,
    received: u64,
    /// True if counts have changed since they were published.
    has_news: bool,
}

impl TrapServer {
    fn new(traps: Traps) -> TrapServer {
        let known = (0..traps.sockets.len()).map(|at| traps.reported.of(at));
        let (disk, folder) = traps.kept;
        let usm = Usm::new(Engines::open(disk, &folder, &traps.log));
        TrapServer {
            dropped: known.collect(),
            intake: TrapIntake::new(traps.settings, traps.events.clone(), usm),
            sockets: traps.sockets,
            reported: traps.reported,
            accounts: traps.accounts,
            events: traps.events,
            log: traps.log,
            datagrams: Datagrams::new(ROUND),
            outbox: Outbox::default(),
            received: 0,
            has_news: true,
        }
    }

    /// Serves until `stop`.
    fn run(mut self, stop: &StopSignal) -> io::Result<()> {
        let mut reports = Rhythm::of(REPORT_EVERY);
        let mut notices = Rhythm::of(NOTIFY_EVERY);
        let mut saves = Rhythm::of(SAVE_EVERY);
        loop {
            let waits = [
                (!self.intake.troubles.is_empty(), &reports),
                (self.has_news || self.events.has_new(), &notices),
                (self.intake.informs.has_waiting(), &saves),
            ];
            let waits = waits.into_iter().filter(|(has_work, _)| *has_work);
            let wait = waits.map(|(_, rhythm)| rhythm.wait()).min();
            let mut files: Vec<BorrowedFd> = vec![stop.as_fd()];
            files.extend(self.sockets.iter().map(|(socket, _)| socket.as_fd()));
            let ready = machine::wait_readable(&files, wait.unwrap_or(NAP));
            for at in 0..self.sockets.len() {
                self.receive(at)?;
            }
            let ends = ready.first() == Some(&true);
            if self.intake.informs.has_waiting() && (saves.is_due() || ends) {
                self.save();
                saves.begin_again();
            }
            if (self.has_news || self.events.has_new()) && (notices.is_due() || ends) {
                self.save();
                self.publish();
                notices.begin_again();
            }
            if !self.intake.troubles.is_empty() && (reports.is_due() || ends) {
                self.report();
                reports.begin_again();
            }
            if ends {
                return Ok(());
            }
        }
    }

    /// Receives what waits in a socket.
    fn receive(&mut self, at: usize) -> io::Result<()> {
        let (Some((socket, _)), Some(known)) = (self.sockets.get(at), self.dropped.get_mut(at))
        else {
            return Ok(());
        };
        for _ in 0..ROUNDS {
            let count = self.datagrams.receive(socket)?;
            if count > 0 {
                self.received += u64::try_from(count).unwrap_or(u64::MAX);
                self.has_news = true;
            }
            if let Some(dropped) = self.datagrams.dropped() {
                let more = dropped.wrapping_sub(*known);
                *known = dropped;
                let troubles = &mut self.intake.troubles;
                troubles.count("a datagram that the kernel dropped", more.into());
            }
            for datagram in self.datagrams.iter_mut() {
                self.intake.take(&datagram, at, &mut self.outbox);
            }
            // A response that the kernel does not take is lost as on its way: the sender asks again.
            let _ = self.outbox.send(socket);
            if count < ROUND {
                break;
            }
        }
        Ok(())
    }

    /// Saves events, and answers the informs among them.
    fn save(&mut self) {
        self.intake.usm.engines().save(&self.log);
        self.events.save(RealClock.mono_ns(), &self.log);
        let answers = self
            .intake
            .informs
            .take(|event| self.events.is_saved(event));
        for (at, (socket, _)) in self.sockets.iter().enumerate() {
            for inform in answers.iter().filter(|inform| inform.socket == at) {
                let response = |out: &mut Vec<u8>| out.extend_from_slice(&inform.response);
                self.outbox.push(inform.key.sender, response);
            }
            let _ = self.outbox.send(socket);
        }
    }

    /// Publishes the counts, and logs the newest trap.
    fn publish(&mut self) {
        self.has_news = false;
        if let Some(news) = self.intake.notifications.take() {
            (self.log)(Severity::Notice, &format!("traps: {news}"));
        }
        let refused = self.intake.troubles.totals().iter();
        self.accounts.publish(LineAccount {
            protocol: b"traps".into(),
            clients: 0,
            datagrams: self.received,
            refused: refused
                .map(|(why, count)| (why.as_bytes().to_vec(), *count))
                .collect(),
            samples: self.intake.taken,
        });
    }

    /// Logs losses and refusals since the last report.
    fn report(&mut self) {
        if let Some(news) = self.intake.troubles.take() {
            (self.log)(Severity::Warning, &format!("traps: not taken: {news}"));
        }
        for (at, dropped) in self.dropped.iter().enumerate() {
            self.reported.note(at, *dropped);
        }
    }
}
