//! The keeper owns the store: it takes the store's locks, opens it, runs its threads and the listeners until a signal, and
//! ends it in order.

use std::io;
use std::os::fd::AsFd;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use kymo_store::{Claim, Error, Settings, Store};
use kymo_sys::clock::{Clock as _, RealClock};
use kymo_sys::disk::RealDisk;
use kymo_sys::machine::{self, DaemonSignal, DaemonSignals};
use kymo_sys::privilege;

use crate::listener::{Listener, StopSignal};
use crate::log::{Log, Severity};

/// Longest wait of a starting keeper, or of a command that needs the store, for the end of the keeper before it.
const ENDS_WITHIN: Duration = Duration::from_secs(30);
/// Longest sleep. Its length matters for nothing else.
const NAP: Duration = Duration::from_secs(3600);

/// An open store.
pub struct Keeper {
    store: Store,
    log: Log,
}

/// Effects of signals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnSignal {
    /// As rrdcached: SIGUSR1 writes all files and ends the keeper; SIGTERM and SIGINT do the same with `-F`.
    AsRrdcached {
        /// `-F`.
        flush_at_end: bool,
    },
    /// As a service: SIGUSR1 writes all files, SIGHUP reads the configuration again, and the keeper goes on.
    AsService,
}

impl OnSignal {
    /// Severity of a signal's line in the log. rrdcached's log has each signal; a service's signals come from its guardian.
    fn severity(self) -> Severity {
        match self {
            OnSignal::AsRrdcached { .. } => Severity::Notice,
            OnSignal::AsService => Severity::Info,
        }
    }

    /// `Some`: the signal ends the keeper, with true after writing all files.
    fn ends(self, signal: DaemonSignal) -> Option<bool> {
        match (self, signal) {
            (_, DaemonSignal::HangUp) | (OnSignal::AsService, DaemonSignal::FlushAndEnd) => None,
            (_, DaemonSignal::EndAtOnce) | (OnSignal::AsService, DaemonSignal::End) => Some(false),
            (OnSignal::AsRrdcached { .. }, DaemonSignal::FlushAndEnd) => Some(true),
            (OnSignal::AsRrdcached { flush_at_end }, DaemonSignal::End) => Some(flush_at_end),
        }
    }
}

/// Takes the store's locks. Their holder may be about to end, as in `kill $pid; rrdcached ...`: then this waits for its end,
/// for 30 s at most, and calls `waits` once with a message.
pub fn claim(settings: &Settings, waits: &mut dyn FnMut(&str)) -> Result<Claim, Error> {
    claim_within(ENDS_WITHIN, settings, waits)
}

/// As [`claim`], with another limit of the wait.
pub fn claim_within(
    within: Duration,
    settings: &Settings,
    waits: &mut dyn FnMut(&str),
) -> Result<Claim, Error> {
    let begun_ns = RealClock.mono_ns();
    let is_early = || RealClock.mono_ns() - begun_ns < within.as_nanos() as u64;
    let mut before = None;
    loop {
        let taken = Claim::take(settings, &RealDisk);
        let holder = match &taken {
            Ok(_) => before.filter(|&pid| privilege::is_alive(pid)),
            Err(error) => error.holder(),
        };
        // A former holder that has released the locks is waited for, too: its pid file may still be there.
        let Some(pid) = holder.filter(|_| is_early()) else {
            return taken;
        };
        if let (None, Err(error)) = (before, &taken) {
            let seconds = within.as_secs();
            waits(&format!("{error}; waiting up to {seconds} s for it to end"));
        }
        before = Some(pid);
        thread::sleep(Duration::from_millis(20));
    }
}

impl Keeper {
    /// Opens the store and logs what the journal replayed.
    pub fn open(settings: Settings, claim: Claim, log: Log) -> Result<Keeper, Error> {
        let opened = Store::open_claimed(settings, claim, Arc::new(RealDisk), Arc::new(RealClock));
        let (store, replayed) = opened?;
        for notice in &replayed.notices {
            log(Severity::Notice, notice);
        }
        let found = format!(
            "replayed {} values of {} files, {} files written again",
            replayed.values, replayed.files, replayed.redone
        );
        log(Severity::Info, &found);
        Ok(Keeper { store, log })
    }

    /// Ends registered tails of these names: nothing is kept for them any more. Logs each.
    pub fn end_tails(&self, is_one: &dyn Fn(&str) -> bool) {
        for tail in self.store.tails() {
            if !is_one(&tail.name) {
                continue;
            }
            let line = match self.store.end_tail(&tail.name) {
                Ok(_) => format!("the tail {} has ended: it is configured no more", tail.name),
                Err(error) => format!("cannot end the tail {}: {error}", tail.name),
            };
            (self.log)(Severity::Notice, &line);
        }
    }

    /// Runs the store's threads and the listeners until a signal, then ends the store; `hang_up` runs at SIGHUP. Returns true
    /// if all files were written first, or a message about the failure.
    pub fn run(
        self,
        writers: usize,
        listeners: Vec<Box<dyn Listener>>,
        signals: &DaemonSignals,
        on_signal: OnSignal,
        hang_up: &(dyn Fn() + Sync),
    ) -> Result<bool, String> {
        let log = self.log.clone();
        let threads = self.store.start(
            writers,
            Arc::new(move |line: &str| log(Severity::Error, line)),
        );
        let ended = self.listen(listeners, signals, on_signal, hang_up);
        threads.stop();
        let flush = ended.map_err(|error| format!("cannot serve: {error}"))?;
        let done = self.store.shutdown(flush);
        for line in self.store.take_notices() {
            (self.log)(Severity::Error, &line);
        }
        done.map_err(|error| format!("cannot end in order: {error}"))?;
        Ok(flush)
    }

    /// Runs the listeners, the first one in this thread, until a signal ends all or one fails. Returns true if all files are
    /// to be written.
    fn listen(
        &self,
        listeners: Vec<Box<dyn Listener>>,
        signals: &DaemonSignals,
        on_signal: OnSignal,
        hang_up: &(dyn Fn() + Sync),
    ) -> io::Result<bool> {
        let stop = StopSignal::new()?;
        thread::scope(|scope| {
            let stop = &stop;
            let spawn = |name: &str| thread::Builder::new().name(name.into());
            let waits = move || self.wait_for_the_end(signals, on_signal, hang_up, stop);
            let waiting = spawn("signals").spawn_scoped(scope, waits)?;
            let mut own = None;
            let mut running = Vec::new();
            let mut served = Ok(());
            for listener in listeners {
                let name = listener.name();
                let run = move || {
                    let served = listener.run(&self.store, stop);
                    stop.request();
                    served
                };
                if own.is_none() {
                    own = Some(run);
                    continue;
                }
                match spawn(name).spawn_scoped(scope, run) {
                    Ok(thread) => running.push(thread),
                    Err(error) => served = Err(error),
                }
            }
            if served.is_err() {
                stop.request();
            }
            if let Some(run) = own {
                served = served.and(run());
            }
            for thread in running {
                let ended = thread.join().unwrap_or_else(|panic| resume_unwind(panic));
                served = served.and(ended);
            }
            let flush = waiting.join().unwrap_or_else(|panic| resume_unwind(panic));
            served.map(|()| flush)
        })
    }

    /// Waits until a signal ends all, or a listener ends. Returns true if all files are to be written.
    fn wait_for_the_end(
        &self,
        signals: &DaemonSignals,
        on_signal: OnSignal,
        hang_up: &(dyn Fn() + Sync),
        stop: &StopSignal,
    ) -> bool {
        loop {
            let ready = machine::wait_readable(&[stop.as_fd(), signals.as_fd()], NAP);
            if ready.first() == Some(&true) {
                return false;
            }
            let Some((signal, name)) = signals.take() else {
                continue;
            };
            (self.log)(on_signal.severity(), &format!("caught SIG{name}"));
            if let Some(flush) = on_signal.ends(signal) {
                (self.log)(Severity::Info, "starting shutdown");
                stop.request();
                return flush;
            }
            match signal {
                DaemonSignal::FlushAndEnd => self.flush_all(),
                DaemonSignal::HangUp => hang_up(),
                DaemonSignal::End | DaemonSignal::EndAtOnce => {}
            }
        }
    }

    /// Lets the store's threads bring all files up to date.
    fn flush_all(&self) {
        let mut batch = self.store.write_batch();
        batch.flush_all();
        if let Err(error) = batch.commit() {
            let text = format!("cannot write all files: {error}");
            (self.log)(Severity::Error, &text);
        }
    }
}
