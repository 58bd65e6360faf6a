//! The listener that collectd's network plugin sends to. One thread takes what has come, many datagrams by one system call,
//! and gives all of a round to the store in one write batch. UDP is never answered and never acknowledged: what is lost,
//! damaged or refused is counted instead.
//!
//! `intake` goes from datagrams to updates, `index` finds the series of an identifier, `define` makes new ones, `accounts`
//! counts, `reported` knows what was reported before this process.

mod accounts;
mod define;
mod index;
mod intake;
mod reported;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use kymo_store::Store;
use kymo_sys::clock::{Clock as _, RealClock};
use kymo_sys::datagrams::Datagrams;
use kymo_sys::machine;
use kymo_wire::collectd::{Cdtime, RrdSettings, SecurityLevel, TypesDb, Users};

use crate::listener::{Listener, StopSignal};
use crate::log::{Log, Severity};
use crate::prefix::Prefix;
use intake::{Intake, Registry};
pub use reported::Reported;

/// Datagrams of one round.
const ROUND: usize = 64;
/// Rounds of one socket before the others, so that none waits for long.
const ROUNDS: usize = 16;
/// How often lost and refused values are reported.
const TELL_EVERY: Duration = Duration::from_secs(60);
/// No longer asleep than this; nothing depends on it.
const NAP: Duration = Duration::from_secs(3600);

/// How datagrams are taken.
#[derive(Clone, Debug)]
pub struct CollectdSettings {
    /// What is taken.
    pub level: SecurityLevel,
    /// Of the AuthFile; `None`: there is none.
    pub users: Option<Arc<Users>>,
    /// Networks that senders may be of; empty: any.
    pub allow: Vec<Prefix>,
    /// What types are made of.
    pub types: TypesDb,
    /// How .rrd files are made.
    pub rrd: RrdSettings,
    /// Of values that do not say their own.
    pub interval: Cdtime,
}

/// The listener.
pub struct Collectd {
    /// How datagrams are taken.
    pub settings: CollectdSettings,
    /// Where datagrams come, never waiting, and what each is called.
    pub sockets: Vec<(OwnedFd, String)>,
    /// What was reported of them before.
    pub reported: Reported,
    /// Messages for the administrator.
    pub log: Log,
}

impl Listener for Collectd {
    fn name(&self) -> &'static str {
        "collectd"
    }

    fn run(self: Box<Self>, store: &Store, stop: &StopSignal) -> io::Result<()> {
        let Collectd {
            settings,
            sockets,
            reported,
            log,
        } = *self;
        let mut datagrams = Datagrams::new(ROUND);
        let mut registry = Registry::new(settings);
        let intake = |(at, (_, name)): (usize, &(OwnedFd, String))| {
            Intake::new(name.clone(), reported.of(at))
        };
        let mut intakes: Vec<Intake> = sockets.iter().enumerate().map(intake).collect();
        let mut files = vec![stop.as_fd()];
        files.extend(sockets.iter().map(|(socket, _)| socket.as_fd()));
        let mut tell_from_ns = RealClock.mono_ns();
        loop {
            let has_news = intakes.iter().any(Intake::has_trouble);
            let wait = match has_news {
                true => Duration::from_nanos(tell_from_ns.saturating_sub(RealClock.mono_ns())),
                false => NAP,
            };
            let ready = machine::wait_readable(&files, wait);
            for ((socket, _), intake) in sockets.iter().zip(&mut intakes) {
                for _ in 0..ROUNDS {
                    if intake.round(&mut registry, &mut datagrams, socket, store)? < ROUND {
                        break;
                    }
                }
            }
            let ends = ready.first() == Some(&true);
            let now_ns = RealClock.mono_ns();
            if ends || now_ns >= tell_from_ns {
                let troubled = intakes.iter_mut().enumerate();
                for (at, intake) in troubled.filter(|(_, intake)| intake.has_trouble()) {
                    intake.tell(&log);
                    reported.note(at, intake.dropped());
                    tell_from_ns = now_ns + TELL_EVERY.as_nanos() as u64;
                }
            }
            if ends {
                return Ok(());
            }
        }
    }
}

/// A line for the administrator.
fn warn(log: &Log, text: &str) {
    log(Severity::Warning, text);
}
