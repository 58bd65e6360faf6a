//! The poller's engine decides what each device is asked and when, and what answers and silence mean. It has no socket and no
//! clock: callers pass in the time and the received packets, and get the packets to send. So tests can simulate years and lost
//! packets.
//!
//! Each device is a [`Device`]. Its cycle begins when it is due, walks columns of interfaces that it does not know (`Walking`),
//! sends its PDUs (`Polling`), then walks for readings that need a walk (`Chores`). The cycle ends when each reading has its
//! outcome, after 0.8 of the interval at the latest. The id of an answer names the attempt it belongs to; its OIDs name the
//! readings.

mod agents;
mod chores;
mod cycle;
mod decimal;
mod device;
mod empty;
mod exchanges;
mod hosts;
pub(crate) mod ids;
mod interfaces;
mod lane;
mod narrow;
mod outcome;
mod pdu;
mod phases;
mod plan;
mod receive;
pub(crate) mod security;
mod sides;
#[cfg(test)]
mod tests;
mod timers;
mod transmit;
mod usm;
pub(crate) mod walk;

pub use device::Account;
pub use empty::{Empty, Missing};
pub use hosts::device_names;
pub(crate) use ids::Ids;
pub use ids::Random;
pub use interfaces::{Cache, Column};
pub use narrow::{outrunning, outruns_32_bits};
pub use outcome::Stamps;
pub(crate) use security::{Envelope, Opened, Security};
pub use transmit::GAP_NS;
pub(crate) use walk::place_of;

use std::collections::{BTreeSet, HashSet};
use std::net::SocketAddr;
use std::sync::Arc;

use kymo_sys::clock::Stamp;
use kymo_wire::mrtg_cfg::{Config, Keyring, Magic, Session, Source};

use crate::batch::{About, Batch};
use agents::Agents;
use decimal::Decimal;
use device::{Device, Stage};
use exchanges::Exchanges;
use hosts::Hosts;
use lane::Lane;
use outcome::Outcomes;
use phases::Phases;
use plan::Asked;
use sides::Sides;
use timers::Timers;

const SECOND_NS: u64 = 1_000_000_000;

/// Distribution of polls over an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Polls all devices at once, as MRTG does.
    Burst,
    /// Polls each device at its own moment.
    Spread,
}

/// Settings of the engine besides the configuration.
#[derive(Clone, Copy)]
pub struct Settings {
    /// When devices are polled.
    pub pace: Pace,
    /// Format of the stamps of values.
    pub stamps: Stamps,
    /// Shortest interval between two polls, seconds; a shorter one of the configuration is lengthened.
    pub least_interval_s: u32,
    /// True if pages show the names of devices, which are asked for then.
    pub asks_names: bool,
    /// Receive buffer of a socket, bytes.
    pub queue_bytes: usize,
    /// Source of random request ids.
    pub random: Random,
}

/// Sends packets.
pub trait Link {
    /// Sends a packet to the device of a session.
    fn send(&mut self, session: usize, to: SocketAddr, packet: &[u8]);
}

/// An event for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happening {
    /// No session of a device gets an answer any more.
    Silent {
        /// Index into the configuration's sessions: the first one of the device.
        session: usize,
    },
    /// A device answers again.
    Back {
        /// Index into the configuration's sessions.
        session: usize,
    },
    /// A device was started again.
    Restarted {
        /// Index into the configuration's sessions.
        session: usize,
    },
    /// The agent of a device was started again: its uptime began again, and no counter did.
    AgentRestarted {
        /// Index into the configuration's sessions.
        session: usize,
    },
    /// Targets have no value for a new reason.
    Empty {
        /// Index into the configuration's sessions.
        session: usize,
        /// The reason.
        why: Empty,
        /// Indices into the configuration's targets.
        targets: Vec<usize>,
    },
    /// Counters of interfaces have 32 bits, as the device has none of 64; once for each reading.
    Narrow {
        /// Index into the configuration's sessions.
        session: usize,
        /// Indices into the configuration's targets.
        targets: Vec<usize>,
    },
    /// A value is a text of which the first number counts; once for each reading.
    FirstNumber {
        /// Index into the configuration's sessions.
        session: usize,
        /// The text, cut off: it is untrusted.
        text: Arc<[u8]>,
        /// Indices into the configuration's targets.
        targets: Vec<usize>,
    },
}

impl Happening {
    /// True if the event is a notice about values that are there.
    pub fn is_notice(&self) -> bool {
        match self {
            Happening::Narrow { .. } | Happening::FirstNumber { .. } => true,
            Happening::Silent { .. }
            | Happening::Back { .. }
            | Happening::Restarted { .. }
            | Happening::AgentRestarted { .. }
            | Happening::Empty { .. } => false,
        }
    }

    /// The session that the event is about: an index into the configuration's sessions.
    pub fn session(&self) -> usize {
        match *self {
            Happening::Silent { session }
            | Happening::Back { session }
            | Happening::Restarted { session }
            | Happening::AgentRestarted { session }
            | Happening::Empty { session, .. }
            | Happening::Narrow { session, .. }
            | Happening::FirstNumber { session, .. } => session,
        }
    }
}

/// Numbers of rejected or odd packets since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Strays {
    /// Packets that are not SNMP, or are damaged.
    pub malformed: u64,
    /// Packets that answer no pending request: late, duplicate or forged ones.
    pub unknown: u64,
    /// Packets with another community, user, signature or version, or from an address that may not answer; reports why a user is
    /// refused.
    pub refused: u64,
    /// Packets accepted although another address was asked.
    pub foreign: u64,
}

/// Events that timers start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    /// The cycle of a device begins.
    Cycle(usize),
    /// The cycle of a device with this count ends.
    CycleEnd(usize, u64),
    /// A device may get its next PDU if its cycle still has this count.
    Send(usize, u64),
    /// An attempt of the exchange with this serial number has timed out.
    Answer(usize, u32, u8),
    /// Other requests need not wait for this attempt any longer.
    Impatience(usize, u32, usize),
    /// An agent may get its next request.
    Agent(usize),
    /// The command of a reading starts.
    Command(usize),
    /// Targets without readings get their values.
    Constants,
}

/// The engine.
pub struct Engine {
    config: Arc<Config>,
    interval_ns: u64,
    devices: Vec<Device>,
    agents: Agents,
    hosts: Hosts,
    sides: Sides,
    outcomes: Outcomes,
    exchanges: Exchanges,
    ids: Ids,
    timers: Timers<Due>,
    lane: Lane,
    /// Readings whose commands run.
    running: BTreeSet<usize>,
    /// Readings whose commands have not ended once yet.
    new_commands: BTreeSet<usize>,
    command_phases: Vec<u64>,
    started_ns: u64,
    /// Number of devices and commands whose first cycle is not over.
    unpolled: usize,
    commands: Vec<usize>,
    batch: Batch,
    accounts: Vec<Account>,
    happenings: Vec<Happening>,
    /// Readings of texts, and of counters of 32 bits, that have had their event.
    partly_read: HashSet<usize>,
    narrow_read: HashSet<usize>,
    strays: Strays,
    is_cache_changed: bool,
    /// True if pages show the names of devices.
    asks_names: bool,
    /// Buffer for the text of a value.
    text: Vec<u8>,
    /// Buffer for a decrypted message.
    plain: Vec<u8>,
    keyring: Keyring,
}

impl Engine {
    /// An engine for a configuration. Polls everything at once the first time.
    pub fn new(config: Arc<Config>, settings: Settings, cache: &Cache, now: Stamp) -> Engine {
        let interval_s = config.globals().interval_s.max(settings.least_interval_s);
        let interval_ns = u64::from(interval_s) * SECOND_NS;
        let phases = match settings.pace {
            Pace::Burst => Phases::burst(&config),
            Pace::Spread => Phases::spread(&config, interval_ns),
        };
        let (sides, mut devices) = Sides::new(&config);
        let hosts = Hosts::new(&config);
        let mut timers = Timers::new();
        let (mut unpolled, mut new_commands) = (0, BTreeSet::new());
        for (number, device) in devices.iter_mut().enumerate() {
            let session = &config.sessions()[number];
            if let Some(known) = cache.0.get(&session.cache_key()) {
                device.remember(known, seconds(now.real_ns));
            }
            device.phase_ns = phases.devices[number];
            device.due_ns = now.mono_ns;
            unpolled += 1;
            timers.set(now.mono_ns, Due::Cycle(number));
        }
        for (reading, of) in config.readings().iter().enumerate() {
            if matches!(of.source, Source::Command(_)) {
                unpolled += 1;
                new_commands.insert(reading);
                timers.set(now.mono_ns, Due::Command(reading));
            }
        }
        timers.set(now.mono_ns, Due::Constants);
        Engine {
            outcomes: Outcomes::new(&config, settings.stamps),
            ids: Ids::new(settings.random),
            lane: Lane::new(settings.queue_bytes),
            exchanges: Exchanges::default(),
            running: BTreeSet::new(),
            new_commands,
            commands: Vec::new(),
            batch: Batch::default(),
            accounts: Vec::new(),
            happenings: Vec::new(),
            partly_read: HashSet::new(),
            narrow_read: HashSet::new(),
            strays: Strays::default(),
            is_cache_changed: false,
            asks_names: settings.asks_names,
            text: Vec::new(),
            plain: Vec::new(),
            keyring: Keyring::default(),
            command_phases: phases.readings,
            started_ns: now.mono_ns,
            config,
            interval_ns,
            agents: Agents::new(devices.len()),
            hosts,
            devices,
            sides,
            timers,
            unpolled,
        }
    }

    /// Continues the work of an engine with an earlier state of the configuration: keeps the state of devices that both have, and
    /// polls each when the other engine would have.
    pub fn take_over(&mut self, before: Engine) {
        let mut known: std::collections::HashMap<Vec<u8>, Device> = Default::default();
        let old_sessions = before.config.sessions();
        for device in before.devices {
            known.insert(key_of(&old_sessions[device.session]), device);
        }
        self.strays = before.strays;
        if self.interval_ns == before.interval_ns {
            self.started_ns = before.started_ns;
        }
        for (number, device) in self.devices.iter_mut().enumerate() {
            let session = &self.config.sessions()[number];
            let Some(mut old) = known.remove(&key_of(session)) else {
                continue;
            };
            // The key does not tell passwords apart.
            if old_sessions[old.session] == *session {
                std::mem::swap(&mut device.security, &mut old.security);
            }
            device.inherit(old);
            self.agents.place(number, device.address);
        }
        for number in 0..self.devices.len() {
            let first = self.hosts.first(number);
            let mut sessions = self.hosts.sessions(first).iter();
            let is_silent = sessions.all(|&session| self.devices[session].is_silent());
            self.hosts.replace_silence(first, is_silent);
        }
    }

    /// Handles all that is due by now.
    pub fn advance(&mut self, now: Stamp, link: &mut dyn Link) {
        while let Some(due) = self.timers.take(now.mono_ns) {
            match due {
                Due::Cycle(device) => self.begin_cycle(device, now, link),
                Due::CycleEnd(device, count) => {
                    let of = &self.devices[device];
                    if of.cycles == count && of.cycle.stage != Stage::Idle {
                        self.end_cycle(device, now);
                    }
                }
                Due::Send(device, count) => {
                    if self.devices[device].cycles == count {
                        self.devices[device].cycle.is_paced = false;
                        self.pump(device, now, link);
                    }
                }
                Due::Answer(exchange, serial, attempt) => {
                    self.missed(exchange, serial, attempt, now, link);
                }
                Due::Impatience(exchange, serial, attempt) => {
                    self.wait_no_longer(exchange, serial, attempt);
                }
                Due::Agent(agent) => self.agent_is_free(agent, now, link),
                Due::Command(reading) => self.begin_command(reading, now),
                Due::Constants => {
                    self.outcomes
                        .put_constants(now.real_ns, &self.config, &mut self.batch);
                    let next_ns = now.mono_ns + self.interval_ns;
                    self.timers.set(next_ns, Due::Constants);
                }
            }
        }
        self.use_room(now, link);
        let (exchanges, devices) = (&self.exchanges, &self.devices);
        self.timers.forget_next(|due| match due {
            Due::Answer(exchange, serial, _) | Due::Impatience(exchange, serial, _) => {
                !exchanges.is_out(exchange, serial)
            }
            Due::CycleEnd(device, count) | Due::Send(device, count) => {
                devices[device].cycles != count
            }
            Due::Cycle(_) | Due::Agent(_) | Due::Command(_) | Due::Constants => false,
        });
    }

    /// Time at which [`Engine::advance`] has to be called at the latest.
    pub fn next_ns(&self) -> Option<u64> {
        let times = [self.timers.next_ns(), self.lane.next_ns()];
        times.into_iter().flatten().min()
    }

    /// True if answers may stay in the socket's queue for the gap between two PDUs, as none of them leads to a request.
    pub fn answers_may_wait(&self) -> bool {
        let is_single = self.config.globals().single_request;
        let waits = self.agents.has_waiting() || !self.lane.waiting.is_empty();
        self.exchanges.has_no_step() && !waits && !is_single
    }

    fn begin_command(&mut self, reading: usize, now: Stamp) {
        if self.running.contains(&reading) {
            self.command_done(reading, [None; 2], None, now);
        }
        self.outcomes.begin(reading);
        self.running.insert(reading);
        self.commands.push(reading);
        let phase_ns = self.command_phases[reading];
        let next_ns = self.next_of_phase(phase_ns, now.mono_ns);
        self.timers.set(next_ns, Due::Command(reading));
    }

    /// Takes the result of a command that has ended: decimal texts of its two values; `None`: unknown.
    pub fn command_done(
        &mut self,
        reading: usize,
        values: [Option<&[u8]>; 2],
        about: Option<About>,
        now: Stamp,
    ) {
        if !self.running.remove(&reading) {
            return;
        }
        let given = self.outcomes.given(reading);
        given.values = values.map(|text| text.map_or(Decimal::Unknown, Decimal::of));
        given.real_ns = now.real_ns;
        given.about = about;
        if self.new_commands.remove(&reading) {
            self.unpolled = self.unpolled.saturating_sub(1);
        }
        self.outcomes
            .complete(reading, now.real_ns, &self.config, &mut self.batch);
    }

    /// Time at which a phase comes next, after `now_ns`.
    fn next_of_phase(&self, phase_ns: u64, now_ns: u64) -> u64 {
        let since = now_ns.saturating_sub(self.started_ns);
        // A second poll right after the first one has no use.
        let least = since + self.interval_ns / 20 + 1;
        let turns = (least.saturating_sub(phase_ns)).div_ceil(self.interval_ns);
        self.started_ns + phase_ns + turns * self.interval_ns
    }

    /// Sets the address of a session's device. Without one the device keeps its address.
    pub fn resolved(&mut self, session: usize, address: Option<SocketAddr>) {
        let device = &mut self.devices[session];
        device.address = address.or(device.address);
        self.agents.place(session, device.address);
    }

    /// Takes the readings whose commands are to be started now.
    pub fn take_commands(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.commands)
    }

    /// Replaces the content of `batch` by the values since the last call.
    pub fn take_batch(&mut self, batch: &mut Batch) {
        batch.clear();
        std::mem::swap(&mut self.batch, batch);
    }

    /// Number of values that [`Engine::take_batch`] would return.
    pub fn values(&self) -> usize {
        self.batch.len()
    }

    /// Takes the statistics of cycles that have ended.
    pub fn take_accounts(&mut self) -> Vec<Account> {
        std::mem::take(&mut self.accounts)
    }

    /// Takes the events since the last call.
    pub fn take_happenings(&mut self) -> Vec<Happening> {
        self.tell_hosts();
        std::mem::take(&mut self.happenings)
    }

    /// Number of changes of targets' reasons so far.
    pub fn reasons_changed(&self) -> u64 {
        self.outcomes.blames.changes
    }

    /// Targets without a value: target, session, reason.
    pub fn reasons(&self) -> impl Iterator<Item = (usize, usize, &Empty)> {
        self.outcomes.blames.all()
    }

    /// Numbers of rejected or odd packets.
    pub fn strays(&self) -> Strays {
        self.strays
    }

    /// Numbers of targets polled and of targets that lacked a value, since the start.
    pub fn targets_done(&self) -> (usize, usize) {
        (self.outcomes.done, self.outcomes.unknown)
    }

    /// True once everything was polled.
    pub fn is_round_over(&self) -> bool {
        self.unpolled == 0
    }

    /// True if no cycle and no command is under way, so that another configuration can be taken.
    pub fn is_idle(&self) -> bool {
        let idle = |device: &Device| device.cycle.stage == Stage::Idle;
        self.devices.iter().all(idle) && self.running.is_empty()
    }

    /// The cache of interfaces; `None`: it has not changed since the last call.
    pub fn changed_cache(&mut self) -> Option<Cache> {
        if !std::mem::take(&mut self.is_cache_changed) {
            return None;
        }
        let mut cache = Cache::default();
        for device in &self.devices {
            let session = &self.config.sessions()[device.session];
            let known = cache.0.entry(session.cache_key()).or_default();
            known.add(&device.interfaces);
        }
        Some(cache)
    }

    fn session(&self, device: usize) -> &Session {
        &self.config.sessions()[self.devices[device].session]
    }

    fn asked(&self) -> Asked {
        let globals = self.config.globals();
        match () {
            () if globals.no_mib2 => Asked::Nothing,
            () if self.asks_names => Asked::UptimeAndName,
            () if globals.single_request => Asked::Nothing,
            () => Asked::Uptime,
        }
    }

    /// The kind of request that a side of a reading needs.
    fn magic(&self, reading: usize, side: u8) -> Magic {
        match self.config.readings()[reading].source {
            Source::Snmp(source) => source.objects[usize::from(side)].magic,
            Source::Command(_) => Magic::Get,
        }
    }
}

/// Seconds since 1970.
fn seconds(real_ns: i64) -> u32 {
    u32::try_from(real_ns / 1_000_000_000).unwrap_or(0)
}

/// A key that is equal for the same session in two states of the configuration.
fn key_of(session: &Session) -> Vec<u8> {
    let mut key = session.mrtg_key.reveal().to_vec();
    // The debug text masks secrets, so it alone would not do as a key.
    key.extend(format!(" {session:?}").bytes());
    key
}
