//! The listener for collectd's network plugin. One thread receives many datagrams by one system call, and gives the
//! values of such a round to the store in one write batch. UDP has no answers and no acknowledgements: the listener
//! counts values that are lost, damaged or refused.
//!
//! `intake` turns datagrams into updates, `index` finds the series of an identifier, `define` makes new series,
//! `accounts` counts for each sender, `hosts` for each host, `senders` answers requests about both.
//! `notifications` logs notifications, `waiting_events` limits their rate, `kept_events` keeps them in memory, `event_files` on the disk. `newcomers` decides on names that the store
//! does not have: `probation` holds names that came once, `budgets` limits the number of new series. `streaks`
//! notices when values come otherwise than before, `kinds` what their kinds are to be, and the thread `redefine` then changes
//! definitions. `unixsock` answers commands of collectd's unixsock plugin, with rates of `value_cache`.

mod accounts;
mod budgets;
mod define;
pub(crate) mod event_files;
mod fifo;
mod hosts;
mod in_force;
mod index;
mod intake;
mod kept_event;
mod kept_events;
mod kinds;
mod new_names;
mod newcomers;
pub(crate) mod notifications;
mod odd_types;
mod probation;
mod recent;
mod redefine;
mod senders;
mod streaks;
mod unixsock;
mod value_cache;
mod waiting_events;

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::thread;
use std::time::Duration;

use kymo_store::Store;
use kymo_sys::clock::{Clock as _, RealClock};
use kymo_sys::datagrams::Datagrams;
use kymo_sys::machine;
use kymo_wire::collectd::{Cdtime, RrdSettings, SecurityLevel, TypesDb, Users, Values};

use crate::common::Reported;
use crate::common::rhythm::Rhythm;
use crate::listener::{Listener, StopSignal};
use crate::log::Log;
use crate::prefix::Prefix;
pub use in_force::InForce;
use intake::{Intake, Registry};
pub use kept_events::EventKeeper;
use redefine::{Requests, redefiner};
pub use senders::Senders;
pub use unixsock::{CommandQueue, CommandSender, UnixSock, command_queue};
use value_cache::ValueCache;

/// Datagrams of one round.
const ROUND: usize = 64;
/// Rounds of one socket in a row, so that no other socket waits for long.
const ROUNDS: usize = 16;
/// How often lost and refused values are reported.
const TELL_EVERY: Duration = Duration::from_secs(60);
/// How often notifications are logged and saved.
const NOTIFY_EVERY: Duration = Duration::from_secs(1);
/// Time between two removals of new names that no sender repeated.
const SWEEP_EVERY: Duration = Duration::from_secs(10);
/// Longest sleep while no timer is due. Its length matters for nothing else.
const NAP: Duration = Duration::from_secs(3600);

/// Settings of the listener.
#[derive(Clone, Debug)]
pub struct CollectdSettings {
    /// Security level that datagrams need.
    pub level: SecurityLevel,
    /// Users of the AuthFile; `None`: there is no AuthFile.
    pub users: Option<InForce<Users>>,
    /// Networks from which datagrams are accepted; empty: all networks.
    pub allow: Vec<Prefix>,
    /// Trusted networks: new names of their senders count at once.
    pub trusted: Vec<Prefix>,
    /// Patterns of the hosts whose values a user may send. A user without an entry may send values of all hosts.
    pub hosts: HashMap<Vec<u8>, Vec<Vec<u8>>>,
    /// Types of types.db.
    pub types: InForce<TypesDb>,
    /// Settings of new .rrd files.
    pub rrd: RrdSettings,
    /// Default interval of values that have none.
    pub interval: Cdtime,
}

impl CollectdSettings {
    /// Interval of these values: their own or the default.
    fn interval_of(&self, values: &Values) -> Cdtime {
        match values.interval {
            Cdtime::ZERO => self.interval,
            interval => interval,
        }
    }
}

/// The listener.
pub struct Collectd {
    /// Settings.
    pub settings: CollectdSettings,
    /// Nonblocking sockets for datagrams, each with its name for the log.
    pub sockets: Vec<(OwnedFd, String)>,
    /// Dropped datagrams that were reported before a restart, for each socket.
    pub reported: Reported,
    /// Accounts of senders and hosts, from which requests are answered.
    pub senders: Senders,
    /// Kept notifications.
    pub events: EventKeeper,
    /// Commands of clients of the unix socket; `None`: there is none.
    pub commands: Option<CommandQueue>,
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
    /// Receives datagrams until the end.
    fn listen(self, requests: Requests, store: &Store, stop: &StopSignal) -> io::Result<()> {
        let Collectd {
            settings,
            sockets,
            reported,
            senders,
            events,
            commands,
            log,
        } = self;
        let mut datagrams = Datagrams::new(ROUND);
        let mut intakes = intakes(&sockets, commands.as_ref(), &reported);
        senders.begin(intakes.iter().map(|intake| intake.name().into()));
        let mut registry = Registry::new(settings, requests, senders, events);
        registry.newest = commands.as_ref().map(|_| ValueCache::default());
        let mut files = vec![stop.as_fd()];
        files.extend(sockets.iter().map(|(socket, _)| socket.as_fd()));
        files.extend(commands.iter().map(AsFd::as_fd));
        let mut reports = Rhythm::of(TELL_EVERY);
        let mut notices = Rhythm::of(NOTIFY_EVERY);
        let mut sweeps = Rhythm::of(SWEEP_EVERY);
        loop {
            let wait = [
                (intakes.iter().any(Intake::has_trouble), &reports),
                (registry.has_events(), &notices),
                (registry.has_newcomers(), &sweeps),
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
            if let (Some(commands), Some(intake)) = (&commands, intakes.get_mut(sockets.len())) {
                commands.carry_out(intake, &mut registry, store);
            }
            let ends = ready.first() == Some(&true);
            if registry.has_newcomers() && (sweeps.is_due() || ends) {
                // At the end nothing can repeat the waiting names.
                registry.sweep(if ends { u64::MAX } else { RealClock.mono_ns() });
                sweeps.begin_again();
            }
            intakes.iter_mut().for_each(|it| it.lose(&mut registry));
            registry.report(&log);
            if intakes.iter().any(Intake::has_trouble) && (reports.is_due() || ends) {
                let troubled = intakes.iter_mut().enumerate();
                for (at, intake) in troubled.filter(|(_, intake)| intake.has_trouble()) {
                    intake.report(&log);
                    // The kernel drops no commands.
                    if at < sockets.len() {
                        reported.note(at, intake.dropped());
                    }
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

/// An intake for each socket, and one for commands.
fn intakes(
    sockets: &[(OwnedFd, String)],
    commands: Option<&CommandQueue>,
    reported: &Reported,
) -> Vec<Intake> {
    let of_sockets = sockets.iter().enumerate();
    let of_sockets =
        of_sockets.map(|(at, (_, name))| Intake::new(name.clone(), at, reported.of(at)));
    let of_commands = commands.map(|queue| Intake::new(queue.name.clone(), sockets.len(), 0));
    of_sockets.chain(of_commands).collect()
}
