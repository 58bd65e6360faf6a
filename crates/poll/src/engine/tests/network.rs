//! Simulated agents, and the network between them and the engine, on a simulated clock.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use kymo_sys::clock::{Clock as _, Stamp};
use kymo_sys::sim_clock::SimClock;
use kymo_wire::mrtg_cfg::{Config, MemoryFiles, read};
use kymo_wire::snmp::{
    ErrorStatus, Message, MessageHead, ObjectValue, Oid, PduKind, Version, put_message, put_varbind,
};

use super::users::UsmAgent;
use crate::batch::Batch;
use crate::engine::{
    Account, Cache, Column, Empty, Engine, Happening, Link, Pace, Settings, Stamps,
};

pub(super) const MS: u64 = 1_000_000;
pub(super) const S: u64 = 1000 * MS;
/// Start of all simulations, seconds since 1970.
pub(super) const BEGIN_S: u64 = 1_800_000_000;

/// Behaviour of an object.
#[derive(Clone, Debug)]
pub(super) enum Object {
    Count(u64),
    /// Counts up by this each second.
    Rate(u64),
    Text(&'static [u8]),
    Number(i64),
}

/// A simulated device.
#[derive(Clone, Debug)]
pub(super) struct Agent {
    /// Objects by their sub-identifiers.
    pub objects: BTreeMap<Vec<u32>, Object>,
    /// Largest number of names in a reply.
    pub names_max: usize,
    pub is_dead: bool,
    pub delay_ns: u64,
    /// Start of the device, in simulated nanoseconds.
    pub started_ns: u64,
    pub has_uptime: bool,
    /// Start of the agent, if it was later than that of the device.
    pub agent_started_ns: Option<u64>,
    /// One packet of this number is not answered.
    pub loses: u64,
    /// Kind and number of names of each received packet.
    pub requests: Vec<(PduKind, usize)>,
    /// Sends each answer twice.
    pub is_double: bool,
    /// Drops GETs with more names than this.
    pub drops_over: usize,
    /// Answers only this number of names of a GET, from the first one on.
    pub answers_first: usize,
    /// Refuses GETs with more names than this, with an error that names none of them.
    pub refuses_over: usize,
    /// Drops GETBULKs.
    pub is_without_bulk: bool,
    /// Drops GETs with this name.
    pub drops_name: Option<Vec<u32>>,
    /// Sends errors without the place of the name.
    pub hides_index: bool,
    /// Order of rows in each column, by index. The last row leads to the row of the second number, or out of the column.
    pub order: Option<(Vec<u32>, Option<u32>)>,
    /// Changes an answer before it is sent.
    pub spoil: Option<fn(&mut Vec<u8>)>,
    /// Time the agent needs for an answer; requests that arrive meanwhile are lost.
    pub serial_ns: u64,
    pub busy_until_ns: u64,
    /// Number of packets lost in that way.
    pub lost: usize,
    /// Communities that get answers; if empty, all do.
    pub communities: Vec<Vec<u8>>,
    /// Address that answers come from.
    pub from: Option<SocketAddr>,
    /// SNMPv3 in place of the other versions.
    pub usm: Option<UsmAgent>,
}

impl Agent {
    /// A device with interfaces `if1`, `if2` ... of ifIndex 1, 2 ...
    pub(super) fn new(interfaces: u32) -> Agent {
        let mut objects = BTreeMap::new();
        for n in 1..=interfaces {
            let name: &'static [u8] = format!("if{n}").leak().as_bytes();
            objects.insert(column(&[31, 1, 1, 1, 1], n), Object::Text(name));
            objects.insert(column(&[2, 2, 1, 2], n), Object::Text(name));
            let rate = u64::from(n) * 100;
            objects.insert(column(&[31, 1, 1, 1, 6], n), Object::Rate(rate));
            objects.insert(column(&[31, 1, 1, 1, 10], n), Object::Rate(rate + 1));
            objects.insert(column(&[2, 2, 1, 10], n), Object::Rate(rate));
            objects.insert(column(&[2, 2, 1, 16], n), Object::Rate(rate + 1));
        }
        Agent {
            objects,
            names_max: 1000,
            is_dead: false,
            delay_ns: 5 * MS,
            started_ns: 0,
            has_uptime: true,
            agent_started_ns: None,
            loses: u64::MAX,
            requests: Vec::new(),
            is_double: false,
            drops_over: usize::MAX,
            answers_first: usize::MAX,
            refuses_over: usize::MAX,
            is_without_bulk: false,
            drops_name: None,
            hides_index: false,
            order: None,
            spoil: None,
            serial_ns: 0,
            busy_until_ns: 0,
            lost: 0,
            communities: Vec::new(),
            from: None,
            usm: None,
        }
    }

    fn value(&self, name: &[u32], now_ns: u64) -> Option<ObjectValue<'_>> {
        if name == [1, 3, 6, 1, 2, 1, 1, 3, 0] && self.has_uptime {
            let started_ns = self.agent_started_ns.unwrap_or(self.started_ns);
            let ticks = (now_ns - started_ns) / (10 * MS);
            return Some(ObjectValue::TimeTicks(ticks & 0xffff_ffff));
        }
        Some(match self.objects.get(name)? {
            Object::Count(count) => ObjectValue::Counter64(*count),
            Object::Rate(rate) => {
                ObjectValue::Counter64((now_ns - self.started_ns) / MS * rate / 1000)
            }
            Object::Text(text) => ObjectValue::OctetString(text),
            Object::Number(number) => ObjectValue::Integer(*number),
        })
    }

    fn after(&self, name: &[u32]) -> Option<Vec<u32>> {
        if let Some((order, last)) = &self.order {
            let is_column = |name: &[u32]| Column::ALL.iter().any(|of| of.oid() == name);
            let row = |column: &[u32], index: u32| Some([column, &[index]].concat());
            if is_column(name) {
                return row(name, order[0]);
            }
            if let [column @ .., index] = name
                && is_column(column)
                && let Some(place) = order.iter().position(|of| of == index)
                && let Some(next) = order.get(place + 1).copied().or(*last)
            {
                return row(column, next);
            }
        }
        let mut behind = self
            .objects
            .range::<[u32], _>((std::ops::Bound::Excluded(name), std::ops::Bound::Unbounded));
        behind.next().map(|(name, _)| name.clone())
    }

    fn answers(&self, head: &MessageHead<'_>, names: &[Vec<u32>], now_ns: u64) -> Answers<'_> {
        let times = match head.kind {
            PduKind::Get => {
                let answer = |name: &Vec<u32>| (name.clone(), self.value(name, now_ns));
                return names.iter().map(answer).collect();
            }
            PduKind::GetNext => 1,
            PduKind::GetBulk => head.index,
            PduKind::Response | PduKind::Report | PduKind::Inform | PduKind::Trap => unreachable!(),
        };
        let mut answers = Vec::new();
        let mut at = names[0].clone();
        for _ in 0..times {
            let Some(next) = self.after(&at) else {
                answers.push((at, None));
                break;
            };
            answers.push((next.clone(), self.value(&next, now_ns)));
            at = next;
        }
        answers
    }

    fn answer(&mut self, packet: &[u8], now_ns: u64) -> Option<Vec<u8>> {
        if let Some(mut usm) = self.usm.take() {
            let answer = |request: &[u8]| self.answer(request, now_ns);
            let answer = usm.answer(packet, now_ns, answer);
            self.usm = Some(usm);
            return answer;
        }
        let request = Message::decode(packet).unwrap();
        let names: Vec<Vec<u32>> = request
            .varbinds
            .map(|one| kymo_wire::snmp::arcs(one.unwrap().0).collect())
            .collect();
        self.requests.push((request.head.kind, names.len()));
        if self.is_dead || (self.requests.len() as u64).is_multiple_of(self.loses) {
            return None;
        }
        if now_ns < self.busy_until_ns {
            self.lost += 1;
            return None;
        }
        let community = request.head.community;
        if !self.communities.is_empty() && !self.communities.iter().any(|one| one == community) {
            return None;
        }
        if self.serial_ns > 0 {
            self.busy_until_ns = now_ns + self.serial_ns;
        }
        let is_get = request.head.kind == PduKind::Get;
        let has_hole = self
            .drops_name
            .as_ref()
            .is_some_and(|name| names.contains(name));
        if is_get && (names.len() > self.drops_over || has_hole)
            || request.head.kind == PduKind::GetBulk && self.is_without_bulk
        {
            return None;
        }
        let mut answers = self.answers(&request.head, &names, now_ns);
        let is_v1 = request.head.version == Version::V1;
        let missing = answers.iter().position(|(_, value)| value.is_none());
        let (status, index) = match (answers.len() > self.names_max, missing) {
            (true, _) => (ErrorStatus::TOO_BIG, 0),
            _ if is_get && names.len() > self.refuses_over => (ErrorStatus::GEN_ERR, 0),
            (_, Some(_)) if is_v1 && self.hides_index => (ErrorStatus::NO_SUCH_NAME, 0),
            (_, Some(at)) if is_v1 => (ErrorStatus::NO_SUCH_NAME, at as i32 + 1),
            _ => (ErrorStatus::NO_ERROR, 0),
        };
        if is_get {
            answers.truncate(self.answers_first);
        }
        let varbinds = match status {
            ErrorStatus::TOO_BIG => Vec::new(),
            _ => varbinds(request.head.kind, &answers),
        };
        let head = MessageHead {
            kind: PduKind::Response,
            status: status.0,
            index,
            ..request.head
        };
        let mut out = Vec::new();
        put_message(&mut out, &head, &varbinds);
        if let Some(spoil) = self.spoil {
            spoil(&mut out);
        }
        Some(out)
    }
}

/// Names and their values; `None`: the device lacks the name.
type Answers<'a> = Vec<(Vec<u32>, Option<ObjectValue<'a>>)>;

fn varbinds(kind: PduKind, answers: &[(Vec<u32>, Option<ObjectValue<'_>>)]) -> Vec<u8> {
    let missing = match kind {
        PduKind::Get => ObjectValue::NoSuchInstance,
        _ => ObjectValue::EndOfMibView,
    };
    let mut out = Vec::new();
    for (name, value) in answers {
        let name = Oid::of_arcs(name).unwrap();
        put_varbind(&mut out, &name, value.unwrap_or(missing));
    }
    out
}

fn column(behind: &[u32], index: u32) -> Vec<u32> {
    [&[1, 3, 6, 1, 2, 1], behind, &[index]].concat()
}

/// Packets on their way to the engine, by arrival time and order of sending: sender and bytes.
type Flying = BTreeMap<(u64, u64), (SocketAddr, Vec<u8>)>;

/// Agents by address, and packets on their way.
pub(super) struct Network {
    pub agents: BTreeMap<SocketAddr, Agent>,
    flying: Flying,
    sent: u64,
    now_ns: u64,
    /// The session of each packet that was sent.
    pub packets: Vec<usize>,
}

impl Link for Network {
    fn send(&mut self, session: usize, to: SocketAddr, packet: &[u8]) {
        self.packets.push(session);
        let Some(agent) = self.agents.get_mut(&to) else {
            return;
        };
        let Some(answer) = agent.answer(packet, self.now_ns) else {
            return;
        };
        let from = agent.from.unwrap_or(to);
        let forged = agent.usm.as_mut().map(UsmAgent::take_forged);
        for forged in forged.into_iter().flatten() {
            self.sent += 1;
            let when = (self.now_ns + agent.delay_ns, self.sent);
            self.flying.insert(when, (from, forged));
        }
        for _ in 0..=u32::from(agent.is_double) {
            self.sent += 1;
            let when = (self.now_ns + agent.delay_ns, self.sent);
            self.flying.insert(when, (from, answer.clone()));
        }
    }
}

/// A whole simulation.
pub(super) struct Simulation {
    pub clock: SimClock,
    pub network: Network,
    pub engine: Engine,
    pub config: Arc<Config>,
    pub values: Vec<(u32, String)>,
    pub accounts: Vec<Account>,
    pub happenings: Vec<Happening>,
    /// Reasons without a value, with their targets.
    pub reasons: Vec<(Empty, Vec<usize>)>,
}

fn random(bytes: &mut [u8]) {
    use std::sync::atomic::{AtomicU64, Ordering};
    static STATE: AtomicU64 = AtomicU64::new(0x1234_5678_9abc_def1);
    for byte in bytes {
        let mut state = STATE.load(Ordering::Relaxed);
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        STATE.store(state, Ordering::Relaxed);
        *byte = (state >> 24) as u8;
    }
}

pub(super) fn settings(pace: Pace) -> Settings {
    Settings {
        pace,
        stamps: Stamps::Exact,
        least_interval_s: 1,
        asks_names: false,
        queue_bytes: 1 << 20,
        random,
    }
}

/// The address of agent `n`.
pub(super) fn address(n: u8) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, n], 161))
}

pub(super) fn config_of(text: &str) -> Arc<Config> {
    let mut files = MemoryFiles::default();
    let whole = format!("LogFormat: rrdtool\nWorkDir: /tmp\n{text}");
    files.add("mrtg.cfg", whole.as_bytes());
    Arc::new(read(b"mrtg.cfg", &mut files).unwrap())
}

/// `Target[name]: spec` with the options that MRTG requires.
pub(super) fn target(name: &str, spec: &str) -> String {
    format!("Target[{name}]: {spec}\nMaxBytes[{name}]: 1000000\nTitle[{name}]: t\n")
}

impl Simulation {
    pub(super) fn new(text: &str, agents: Vec<Agent>, pace: Pace) -> Simulation {
        let clock = SimClock::new(Stamp {
            real_ns: (BEGIN_S * S) as i64,
            mono_ns: 1000 * S,
            boot_ns: 1000 * S,
        });
        let config = config_of(text);
        let agents = agents.into_iter().enumerate();
        let network = Network {
            agents: agents
                .map(|(n, agent)| (address(n as u8 + 1), agent))
                .collect(),
            flying: Flying::new(),
            sent: 0,
            now_ns: 1000 * S,
            packets: Vec::new(),
        };
        let cache = Cache::default();
        let mut engine = Engine::new(config.clone(), settings(pace), &cache, clock.now());
        resolve(&mut engine, &config);
        Simulation {
            clock,
            network,
            engine,
            config,
            values: Vec::new(),
            accounts: Vec::new(),
            happenings: Vec::new(),
            reasons: Vec::new(),
        }
    }

    /// Starts another run that reads the cache file.
    pub(super) fn run_again(&mut self, cache: &Cache) {
        let (config, now) = (self.config.clone(), self.clock.now());
        self.engine = Engine::new(config, settings(Pace::Burst), cache, now);
        resolve(&mut self.engine, &self.config);
    }

    /// Loads another state of the configuration.
    pub(super) fn reload(&mut self, text: &str) {
        let config = config_of(text);
        let cache = Cache::default();
        let engine = Engine::new(
            config.clone(),
            settings(Pace::Burst),
            &cache,
            self.clock.now(),
        );
        let before = std::mem::replace(&mut self.engine, engine);
        resolve(&mut self.engine, &config);
        self.engine.take_over(before);
        self.config = config;
    }

    /// Runs for this time.
    pub(super) fn run(&mut self, ns: u64) {
        let end_ns = self.clock.mono_ns() + ns;
        loop {
            let now = self.clock.now();
            self.network.now_ns = now.mono_ns;
            self.engine.advance(now, &mut self.network);
            while let Some(first) = self.network.flying.first_entry() {
                if first.key().0 > now.mono_ns {
                    break;
                }
                let (from, packet) = first.remove();
                self.engine
                    .receive(&packet, from, now, now, &mut self.network);
            }
            self.collect();
            let next = [
                self.engine.next_ns(),
                self.network.flying.keys().next().map(|key| key.0),
            ];
            let next_ns = next.into_iter().flatten().min().unwrap_or(end_ns);
            if next_ns >= end_ns {
                return self.clock.advance_ns(end_ns - now.mono_ns);
            }
            self.clock.advance_ns(next_ns.saturating_sub(now.mono_ns));
        }
    }

    fn collect(&mut self) {
        let mut batch = Batch::default();
        self.engine.take_batch(&mut batch);
        for update in batch.iter() {
            let text = String::from_utf8(update.argument.to_vec()).unwrap();
            self.values.push((update.target, text));
        }
        self.accounts.extend(self.engine.take_accounts());
        for happening in self.engine.take_happenings() {
            match happening {
                Happening::Empty { why, targets, .. } => self.reasons.push((why, targets)),
                other => self.happenings.push(other),
            }
        }
    }

    /// Takes the values of a target since the last call: in and out, without stamps.
    pub(super) fn take(&mut self, target: u32) -> Vec<String> {
        let (own, others) = self.values.drain(..).partition(|value| value.0 == target);
        self.values = others;
        let own: Vec<(u32, String)> = own;
        let behind = |text: String| text.split_once(':').unwrap().1.to_string();
        own.into_iter().map(|(_, text)| behind(text)).collect()
    }

    pub(super) fn agent(&mut self, n: u8) -> &mut Agent {
        self.network.agents.get_mut(&address(n)).unwrap()
    }
}

fn resolve(engine: &mut Engine, config: &Config) {
    for (number, session) in config.sessions().iter().enumerate() {
        let kymo_wire::mrtg_cfg::Host::Name(name) = &session.host else {
            continue;
        };
        let address = SocketAddr::new(name.parse().unwrap(), session.port);
        engine.resolved(number, Some(address));
    }
}
