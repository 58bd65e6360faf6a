//! The poller's loop: one thread drives the engine, its sockets, commands and sinks. Name lookups and disk writes have threads of
//! their own.

mod resolver;
mod sockets;
mod writer;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use kymo_sys::clock::{Clock, Stamp};
use kymo_sys::datagrams::Datagrams;
use kymo_sys::machine;
use kymo_wire::mrtg_cfg::Config;

use crate::batch::About;
pub use crate::engine::device_names;
use crate::engine::{Cache, Empty, Engine, GAP_NS, Happening, Pace, Settings, Stamps, Strays};
use crate::sink::{Counts, Report, Sink};
use resolver::Resolver;
use sockets::Sockets;
pub use writer::Keeping;
use writer::{Cycles, Writer};

/// Bytes of the stack of each of the three threads of a configuration. A process polls hundreds of configurations within its limit
/// of memory, which counts stacks whole; the usual 2 MiB reached it at 790 (2026-11-26).
pub const STACK_BYTES: usize = 512 << 10;
/// Longest wait of the first cycle for host names.
const NAMES: Duration = Duration::from_secs(10);
/// Interval between two lookups of all host names.
const NAMES_AGAIN_NS: u64 = 300_000_000_000;
/// Part of the interval for which values wait for others, so that one batch has them all; GATHER_MAX_NS limits the wait.
const GATHER_PART: u64 = 10;
const GATHER_MAX_NS: u64 = 5_000_000_000;
/// Number of values that makes a batch due at once.
const GATHER_COUNT: usize = 4096;
/// Longest time of a packet in a socket's queue. A kernel stamp that is older comes from before a change of the clock.
const LIES_MAX_NS: i64 = 1_000_000_000;
/// Datagrams that one system call receives.
const TAKEN: usize = 64;
/// Shortest interval of a single run.
const SINGLE_RUN_S: u32 = 40;
/// Longest wait while idle.
const NAP_NS: u64 = 60_000_000_000;

/// Settings of the poller besides the configuration.
#[derive(Clone, Copy, Debug)]
pub struct PollerSettings {
    /// When devices are polled.
    pub pace: Pace,
    /// Format of the stamps of values.
    pub stamps: Stamps,
    /// True for a single run: it stores no event of a device, as every event is new to it, gives no notices about values, and waits for slow devices and commands
    /// though its interval is over, as MRTG does.
    pub polls_once: bool,
    /// True if pages show the names of devices.
    pub asks_names: bool,
}

/// Results of one [`Poller::turn`].
#[derive(Debug, Default)]
pub struct Turn {
    /// Events of devices and targets, to be logged.
    pub happenings: Vec<Happening>,
    /// Readings whose commands are to be started.
    pub commands: Vec<u32>,
    /// Reports of the sinks.
    pub reports: Vec<Report>,
    /// The new state of the interface cache; `None`: it did not change.
    pub cache: Option<Cache>,
    /// True if one of the caller's files is readable.
    pub is_called: bool,
    /// One line for each socket that could not be opened.
    pub complaints: Vec<String>,
}

/// The poller.
pub struct Poller {
    config: Arc<Config>,
    settings: PollerSettings,
    clock: Arc<dyn Clock>,
    engine: Engine,
    sockets: Sockets,
    received: Datagrams,
    /// Until this time answers may stay in the sockets if none leads to a new request, so that one wake-up serves several.
    lie_until_ns: u64,
    resolver: Resolver,
    writer: Writer,
    /// Time since which the oldest value waits to be written.
    gathering_ns: Option<u64>,
    cycles: Cycles,
    names_ns: u64,
    counts: Vec<Counts>,
}

impl Poller {
    /// Starts to poll a configuration; `sinks` store the values. Looks up host names, for which [`Poller::await_names`] waits.
    pub fn start(
        config: Arc<Config>,
        settings: PollerSettings,
        cache: &Cache,
        sinks: Vec<Sink>,
        keeping: Keeping,
        clock: Arc<dyn Clock>,
    ) -> io::Result<Poller> {
        let sockets = Sockets::open(&config)?;
        let mut resolver = Resolver::start()?;
        let now = clock.now();
        let engine_settings = engine_settings(settings, &sockets);
        let mut engine = Engine::new(config.clone(), engine_settings, cache, now);
        resolver.use_for(&config, |session, address| {
            engine.resolved(session, Some(address));
        });
        resolver.ask();
        let mut writer = Writer::start(sinks)?;
        writer.begin(keeping);
        Ok(Poller {
            names_ns: now.mono_ns + NAMES_AGAIN_NS,
            config,
            settings,
            clock,
            engine,
            sockets,
            received: Datagrams::new(TAKEN),
            lie_until_ns: 0,
            resolver,
            writer,
            gathering_ns: None,
            cycles: Cycles::default(),
            counts: Vec::new(),
        })
    }

    /// Waits for the addresses of host names, 10 seconds at most, so that the first cycle has them.
    pub fn await_names(&mut self) {
        let until_ns = self.clock.mono_ns() + NAMES.as_nanos() as u64;
        while self.resolver.is_busy() && self.clock.mono_ns() < until_ns {
            machine::wait_readable(&[self.resolver.as_fd()], Duration::from_millis(100));
            self.resolver
                .take(|session, address| self.engine.resolved(session, address));
        }
    }

    /// Replaces the configuration. State of devices that both configurations have stays; requests under way give no value.
    pub fn reload(&mut self, config: Arc<Config>, keeping: Keeping) {
        self.keep(true);
        let engine_settings = engine_settings(self.settings, &self.sockets);
        let cache = Cache::default();
        let mut engine = Engine::new(config.clone(), engine_settings, &cache, self.clock.now());
        self.sockets.use_for(&config);
        self.resolver.use_for(&config, |session, address| {
            engine.resolved(session, Some(address));
        });
        self.writer.begin(keeping);
        let before = std::mem::replace(&mut self.engine, engine);
        self.engine.take_over(before);
        self.resolver.ask();
        self.config = config;
    }

    /// Waits for packets, timers, names, finished writes or the caller's files `others`, then handles all that is due.
    pub fn turn(&mut self, others: &[BorrowedFd<'_>], at_most: Duration) -> io::Result<Turn> {
        let readable = self.wait(others, at_most);
        for number in 0..self.sockets.len() {
            if readable.sockets.get(number) != Some(&false) {
                self.take_packets(number)?;
            }
        }
        let now = self.clock.now();
        if readable.resolver {
            self.resolver
                .take(|session, address| self.engine.resolved(session, address));
        }
        if now.mono_ns >= self.names_ns {
            self.names_ns = now.mono_ns + NAMES_AGAIN_NS;
            self.resolver.ask();
        }
        self.engine.advance(now, &mut self.sockets);
        if self.sockets.flush() {
            self.lie_until_ns = now.mono_ns + GAP_NS;
        }
        let mut turn = Turn {
            happenings: self.engine.take_happenings(),
            commands: self
                .engine
                .take_commands()
                .into_iter()
                .map(number)
                .collect(),
            cache: self.engine.changed_cache(),
            is_called: readable.others,
            complaints: self.sockets.take_complaints(),
            reports: Vec::new(),
        };
        if self.settings.polls_once {
            turn.happenings.retain(|happening| !happening.is_notice());
        } else {
            let happened = turn.happenings.iter().cloned();
            let happened = happened.map(|happening| (happening, now.real_ns));
            self.cycles.happenings.extend(happened);
        }
        while let Some(written) = self.writer.take() {
            turn.reports.push(written.report);
            self.counts = written.counts;
            self.writer.done_with(written.batch);
        }
        self.keep(false);
        Ok(turn)
    }

    fn wait(&self, others: &[BorrowedFd<'_>], at_most: Duration) -> Readable {
        let now_ns = self.clock.mono_ns();
        let lies = self.engine.answers_may_wait() && now_ns < self.lie_until_ns;
        let mut files = vec![self.resolver.as_fd(), self.writer.as_fd()];
        files.extend(others);
        let first = files.len();
        if !lies {
            files.extend(self.sockets.files());
        }
        let gathered = self.gathering_ns.filter(|_| self.writer.has_room());
        let due_ns = [
            self.engine.next_ns(),
            gathered.map(|since_ns| since_ns + self.gather_ns()),
            lies.then_some(self.lie_until_ns),
            Some(now_ns + NAP_NS),
        ];
        let due_ns = due_ns.into_iter().flatten().min().unwrap_or(now_ns);
        let wait = Duration::from_nanos(due_ns.saturating_sub(now_ns)).min(at_most);
        let mut readable = machine::wait_readable(&files, wait);
        Readable {
            sockets: readable.split_off(first),
            resolver: readable[0],
            others: readable[2..].contains(&true),
        }
    }

    /// Receives all packets of a socket. After each batch the requests that its answers caused are sent.
    fn take_packets(&mut self, number: usize) -> io::Result<()> {
        loop {
            let count = self.received.receive(&self.sockets.file(number))?;
            let now = self.clock.now();
            if count > 0 {
                self.lie_until_ns = now.mono_ns + GAP_NS;
            }
            for datagram in self.received.iter_mut().filter(|one| !one.truncated) {
                let (packet, from) = (&*datagram.bytes, datagram.sender);
                let came = came(now, datagram.came_ns);
                self.engine
                    .receive(packet, from, came, now, &mut self.sockets);
            }
            self.sockets.flush();
            if count < TAKEN {
                return Ok(());
            }
        }
    }

    /// Longest wait of a value for others, nanoseconds.
    fn gather_ns(&self) -> u64 {
        let interval_ns = u64::from(self.config.globals().interval_s) * 1_000_000_000;
        (interval_ns / GATHER_PART).min(GATHER_MAX_NS)
    }

    /// Hands values to the writer thread if they have waited long enough, or with `all` in any case.
    fn keep(&mut self, all: bool) {
        let now_ns = self.clock.mono_ns();
        self.cycles.accounts.extend(self.engine.take_accounts());
        let count = self.engine.values();
        if count == 0 && self.cycles.happenings.is_empty() {
            return;
        }
        let since_ns = *self.gathering_ns.get_or_insert(now_ns);
        let is_due = all || count >= GATHER_COUNT || now_ns >= since_ns + self.gather_ns();
        if !is_due || !self.writer.has_room() {
            return;
        }
        let mut batch = self.writer.batch();
        self.engine.take_batch(&mut batch);
        self.writer.write(batch, std::mem::take(&mut self.cycles));
        self.gathering_ns = None;
    }

    /// Takes the values of a command that has ended.
    pub fn command_done(&mut self, reading: u32, values: [Option<&[u8]>; 2], about: Option<About>) {
        let now: Stamp = self.clock.now();
        let reading = usize::try_from(reading).unwrap_or(usize::MAX);
        self.engine.command_done(reading, values, about, now);
    }

    /// True once every target was polled and every value is stored.
    pub fn is_round_over(&mut self) -> bool {
        if !self.engine.is_round_over() {
            return false;
        }
        self.keep(true);
        self.engine.values() == 0 && self.writer.is_idle()
    }

    /// True if no device and no command is being asked and the writer has room: [`Poller::reload`] loses nothing.
    pub fn is_idle(&self) -> bool {
        self.engine.is_idle() && self.has_room()
    }

    /// True if the writer has room, which [`Poller::reload`] needs.
    pub fn has_room(&self) -> bool {
        self.writer.has_room()
    }

    /// Numbers of targets polled and of targets that lacked a value, since the start.
    pub fn targets_done(&self) -> (usize, usize) {
        self.engine.targets_done()
    }

    /// Packets that were rejected, and packets that the kernel did not send.
    pub fn strays(&self) -> (Strays, u64) {
        (self.engine.strays(), self.sockets.unsent)
    }

    /// Number of changes of targets' reasons so far; see [`Engine::reasons_changed`].
    pub fn reasons_changed(&self) -> u64 {
        self.engine.reasons_changed()
    }

    /// Targets without a value: target, session, reason.
    pub fn reasons(&self) -> impl Iterator<Item = (usize, usize, &Empty)> {
        self.engine.reasons()
    }

    /// Counters of each sink.
    pub fn counts(&self) -> &[Counts] {
        &self.counts
    }

    /// The polled configuration.
    pub fn config(&self) -> &Arc<Config> {
        &self.config
    }
}

/// Files that were found readable.
struct Readable {
    /// Sockets by number; empty if the sockets were not waited for.
    sockets: Vec<bool>,
    resolver: bool,
    others: bool,
}

/// Time at which a packet arrived by the kernel's stamp; `now` if the clock was set since, or without a stamp.
fn came(now: Stamp, stamped_ns: Option<i64>) -> Stamp {
    let ago_ns = stamped_ns.map_or(0, |stamped_ns| now.real_ns - stamped_ns);
    if !(0..=LIES_MAX_NS).contains(&ago_ns) {
        return now;
    }
    Stamp {
        real_ns: now.real_ns - ago_ns,
        mono_ns: now.mono_ns.saturating_sub(ago_ns.unsigned_abs()),
        boot_ns: now.boot_ns.saturating_sub(ago_ns.unsigned_abs()),
    }
}

/// Converts a reading's number to the type that the configuration uses.
fn number(reading: usize) -> u32 {
    u32::try_from(reading).unwrap_or(u32::MAX)
}

fn engine_settings(settings: PollerSettings, sockets: &Sockets) -> Settings {
    Settings {
        pace: settings.pace,
        stamps: settings.stamps,
        asks_names: settings.asks_names,
        least_interval_s: match settings.polls_once {
            true => SINGLE_RUN_S,
            false => 1,
        },
        queue_bytes: sockets.queue_bytes(),
        random,
    }
}

/// Fills `bytes` with random bytes. If the kernel has none, they derive from the time: predictable ids are better than no poll.
pub(crate) fn random(bytes: &mut [u8]) {
    if machine::random(bytes).is_err() {
        let mut state = kymo_sys::clock::RealClock.mono_ns() | 1;
        for byte in bytes {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            *byte = state as u8;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_came_when_the_kernel_says() {
        let now = Stamp {
            real_ns: 5_000_000_000,
            mono_ns: 3_000_000_000,
            boot_ns: 4_000_000_000,
        };
        let of = |stamped_ns| came(now, stamped_ns);
        assert_eq!(of(Some(4_993_000_000)).real_ns, 4_993_000_000);
        assert_eq!(of(Some(4_993_000_000)).mono_ns, 2_993_000_000);
        // No stamp, a stamp in the future, and one from before the clock was set.
        for stamped_ns in [None, Some(5_000_000_001), Some(3_900_000_000)] {
            assert_eq!(of(stamped_ns).mono_ns, now.mono_ns);
        }
    }
}
