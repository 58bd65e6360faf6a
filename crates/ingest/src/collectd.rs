//! The listener that collectd's network plugin sends to. One thread takes what has come, many datagrams by one system call,
//! and gives all of a round to the store in one write batch. UDP is never answered and never acknowledged: what is lost,
//! damaged or refused is counted instead.
//!
//! `intake` goes from datagrams to updates, `index` finds the series of an identifier, `define` makes new ones, `accounts`
//! counts for each sender, `hosts` for each host, `senders` has both for who asks, `reported` knows what was reported before this
//! process. `notifications` makes lines of what senders want to be heard, `kept_events` keeps it in memory, `event_files` on the disk.
//! `intervals` sees when values come at another interval than before, and `redefine`, a thread, makes other definitions then.

mod accounts;
mod define;
pub(crate) mod event_files;
mod hosts;
mod index;
mod intake;
mod intervals;
mod kept_events;
mod notifications;
mod recent;
mod redefine;
mod reported;
mod senders;
mod users_in_force;

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::thread;
use std::time::Duration;

use kymo_store::Store;
use kymo_sys::clock::{Clock as _, RealClock};
use kymo_sys::datagrams::Datagrams;
use kymo_sys::machine;
use kymo_wire::collectd::{Cdtime, RrdSettings, SecurityLevel, TypesDb, Values};

use crate::listener::{Listener, StopSignal};
use crate::log::Log;
use crate::prefix::Prefix;
use intake::{Intake, Registry};
pub use kept_events::EventKeeper;
use redefine::{Requests, redefiner};
pub use reported::Reported;
pub use senders::Senders;
pub use users_in_force::UsersInForce;

/// Datagrams of one round.
const ROUND: usize = 64;
/// Rounds of one socket before the others, so that none waits for long.
const ROUNDS: usize = 16;
/// How often lost and refused values are reported.
const TELL_EVERY: Duration = Duration::from_secs(60);
/// How often notifications become a line, and are saved.
const NOTIFY_EVERY: Duration = Duration::from_secs(1);
/// No longer asleep than this; nothing depends on it.
const NAP: Duration = Duration::from_secs(3600);

/// How datagrams are taken.
#[derive(Clone, Debug)]
pub struct CollectdSettings {
    /// What is taken.
    pub level: SecurityLevel,
    /// Of the AuthFile; `None`: there is none.
    pub users: Option<UsersInForce>,
    /// Networks that senders may be of; empty: any.
    pub allow: Vec<Prefix>,
    /// Patterns of the hosts whose values a user may send; one who is not here may send those of all.
    pub hosts: HashMap<Vec<u8>, Vec<Vec<u8>>>,
    /// What types are made of.
    pub types: TypesDb,
    /// How .rrd files are made.
    pub rrd: RrdSettings,
    /// Of values that do not say their own.
    pub interval: Cdtime,
}

impl CollectdSettings {
    /// How often values like these come.
    fn interval_of(&self, values: &Values) -> Cdtime {
        match values.interval {
            Cdtime::ZERO => self.interval,
            interval => interval,
        }
    }
}

/// The listener.
pub struct Collectd {
    /// How datagrams are taken.
    pub settings: CollectdSettings,
    /// Where datagrams come, never waiting, and what each is called.
    pub sockets: Vec<(OwnedFd, String)>,
    /// What was reported of them before.
    pub reported: Reported,
    /// What is known of who sends goes there.
    pub senders: Senders,
    /// Notifications go there.
    pub events: EventKeeper,
    /// Messages for the administrator.
    pub log: Log,
}

impl Listener for Collectd {
    fn name(&self) -> &'static str {
        "collectd"
    }

    fn run(self: Box<Self>, store: &Store, stop: &StopSignal) -> io::Result<()> {
        let (requests, redefiner) = redefiner();
        let log = self.log.clone();
        thread::scope(|scope| {
            let named = thread::Builder::new().name("redefine".into());
            named.spawn_scoped(scope, || redefiner.run(store, stop, &log))?;
            self.listen(requests, store, stop)
        })
    }
}

impl Collectd {
    /// Takes what comes.
    fn listen(self, requests: Requests, store: &Store, stop: &StopSignal) -> io::Result<()> {
        let Collectd {
            settings,
            sockets,
            reported,
            senders,
            events,
            log,
        } = self;
        let mut datagrams = Datagrams::new(ROUND);
        senders.begin(sockets.iter().map(|(_, name)| name.clone()));
        let mut registry = Registry::new(settings, requests, senders, events);
        let intake = |(at, (_, name)): (usize, &(OwnedFd, String))| {
            Intake::new(name.clone(), at, reported.of(at))
        };
        let mut intakes: Vec<Intake> = sockets.iter().enumerate().map(intake).collect();
        let mut files = vec![stop.as_fd()];
        files.extend(sockets.iter().map(|(socket, _)| socket.as_fd()));
        let mut reports = Rhythm::of(TELL_EVERY);
        let mut notices = Rhythm::of(NOTIFY_EVERY);
        loop {
            let wait = [
                (intakes.iter().any(Intake::has_trouble), &reports),
                (registry.has_events(), &notices),
            ];
            let wait = wait.into_iter().filter(|(has_news, _)| *has_news);
            let wait = wait.map(|(_, rhythm)| rhythm.wait()).min();
            let ready = machine::wait_readable(&files, wait.unwrap_or(NAP));
            for ((socket, _), intake) in sockets.iter().zip(&mut intakes) {
                for _ in 0..ROUNDS {
                    if intake.round(&mut registry, &mut datagrams, socket, store)? < ROUND {
                        break;
                    }
                }
            }
            let ends = ready.first() == Some(&true);
            if intakes.iter().any(Intake::has_trouble) && (reports.is_due() || ends) {
                let troubled = intakes.iter_mut().enumerate();
                for (at, intake) in troubled.filter(|(_, intake)| intake.has_trouble()) {
                    intake.tell(&log);
                    reported.note(at, intake.dropped());
                }
                reports.begin_again();
            }
            if registry.has_events() && (notices.is_due() || ends) {
                intakes.iter_mut().for_each(|intake| intake.notify(&log));
                registry.save_events(&log);
                notices.begin_again();
            }
            if ends {
                return Ok(());
            }
        }
    }
}

/// What is not done more often than that; the first time at once.
struct Rhythm {
    every: Duration,
    /// Not before.
    from_ns: u64,
}

impl Rhythm {
    fn of(every: Duration) -> Rhythm {
        Rhythm { every, from_ns: 0 }
    }

    fn wait(&self) -> Duration {
        Duration::from_nanos(self.from_ns.saturating_sub(RealClock.mono_ns()))
    }

    fn is_due(&self) -> bool {
        RealClock.mono_ns() >= self.from_ns
    }

    fn begin_again(&mut self) {
        self.from_ns = RealClock.mono_ns() + self.every.as_nanos() as u64;
    }
}
