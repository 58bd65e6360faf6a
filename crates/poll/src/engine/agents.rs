//! SNMP agents: state that sessions share whose requests go to one address and port, such as the VLAN communities of a switch.
//! All sessions of an agent share one window and one gap between requests. While the agent answers to none of them, few ask it
//! again.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;

use kymo_sys::clock::Stamp;

use super::device::Stage;
use super::transmit::{GAP_NS, WINDOW};
use super::{Due, Engine, Link};

/// A queued request: number and serial number of its exchange.
type Waiting = (usize, u32);

/// Time for which an unanswered request keeps others waiting while the agent's round-trip time is unknown. A guess.
const PATIENCE_FIRST_NS: u64 = 250_000_000;
/// Afterwards it is this number of round trips, but at least PATIENCE_LEAST_NS.
const PATIENCE_ROUND_TRIPS: u64 = 4;
const PATIENCE_LEAST_NS: u64 = 100_000_000;

/// Number of sessions that go on asking an agent that does not answer.
const SEEKERS: usize = 3;

/// An agent and the requests to it.
#[derive(Default)]
struct Agent {
    /// Devices of the engine, each a session of this agent.
    sessions: Vec<usize>,
    /// Number of requests that the next ones wait for.
    in_flight: u32,
    /// True after a loss: requests are sent one at a time until all sessions are idle.
    is_lossy: bool,
    sent_ns: Option<u64>,
    /// True if a timer is set for the next request.
    is_paced: bool,
    answered_ns: Option<u64>,
    round_trip_ns: Option<u64>,
    waiting: VecDeque<Waiting>,
    /// Sessions that repeat requests although the agent answers to none.
    seekers: Vec<usize>,
    /// Repeated requests of the other sessions, held back until the agent answers.
    held_back: Vec<Waiting>,
}

impl Agent {
    fn has_room(&self) -> bool {
        let window = if self.is_lossy { 1 } else { WINDOW };
        self.in_flight < window
    }

    fn patience_ns(&self) -> u64 {
        match self.round_trip_ns {
            None => PATIENCE_FIRST_NS,
            Some(ns) => (ns * PATIENCE_ROUND_TRIPS).max(PATIENCE_LEAST_NS),
        }
    }
}

/// All agents.
#[derive(Default)]
pub(crate) struct Agents {
    by_address: HashMap<SocketAddr, usize>,
    all: Vec<Agent>,
    /// Agents by device.
    of: Vec<Option<usize>>,
    /// Agents that may have room for queued requests.
    ready: Vec<usize>,
    /// Number of queued requests of all agents, including those that are no longer wanted.
    waiting: usize,
}

impl Agents {
    /// No agents, as no device has an address yet.
    pub(crate) fn new(devices: usize) -> Agents {
        Agents {
            of: vec![None; devices],
            ..Agents::default()
        }
    }

    /// Sets the address of a device.
    pub(crate) fn place(&mut self, device: usize, address: Option<SocketAddr>) {
        let new = address.map(|address| {
            *self.by_address.entry(address).or_insert_with(|| {
                self.all.push(Agent::default());
                self.all.len() - 1
            })
        });
        let before = std::mem::replace(&mut self.of[device], new);
        if before == new {
            return;
        }
        if let Some(before) = before {
            let agent = &mut self.all[before];
            agent.sessions.retain(|&session| session != device);
            agent.seekers.retain(|&session| session != device);
            if agent.seekers.is_empty() {
                let held_back = std::mem::take(&mut agent.held_back);
                self.wait(before, held_back.into_iter());
            }
        }
        if let Some(new) = new {
            self.all[new].sessions.push(device);
        }
    }

    /// The agent of a device; `None`: the device is its only session.
    fn shared(&self, device: usize) -> Option<usize> {
        self.of[device].filter(|&agent| self.all[agent].sessions.len() > 1)
    }

    /// True if the agent of a device has answered to any of its sessions since this time. False if it has only one.
    pub(crate) fn has_answered(&self, device: usize, since_ns: u64) -> bool {
        let answered_ns = self
            .shared(device)
            .and_then(|agent| self.all[agent].answered_ns);
        answered_ns.is_some_and(|at_ns| at_ns >= since_ns)
    }

    /// True if a request waits until its agent may be asked.
    pub(crate) fn has_waiting(&self) -> bool {
        self.waiting > 0
    }

    /// A request was answered, or others need not wait for it any longer.
    pub(crate) fn leave(&mut self, agent: usize) {
        let of = &mut self.all[agent];
        of.in_flight = of.in_flight.saturating_sub(1);
        self.ready.push(agent);
    }

    fn wait(&mut self, agent: usize, waiting: impl Iterator<Item = Waiting>) {
        let of = &mut self.all[agent];
        let before = of.waiting.len();
        of.waiting.extend(waiting);
        self.waiting += of.waiting.len() - before;
        self.ready.push(agent);
    }

    /// Notes an answer to a device, and its round-trip time.
    pub(crate) fn answered(&mut self, device: usize, now_ns: u64, round_trip_ns: u64) {
        let Some(agent) = self.shared(device) else {
            return;
        };
        let of = &mut self.all[agent];
        of.answered_ns = Some(now_ns);
        of.round_trip_ns = Some(match of.round_trip_ns {
            None => round_trip_ns,
            Some(before_ns) => (before_ns * 7 + round_trip_ns) / 8,
        });
        of.seekers.clear();
        let held_back = std::mem::take(&mut of.held_back);
        self.wait(agent, held_back.into_iter());
    }

    /// Decides on a request without an answer: true to send it again; otherwise it is held back until the agent answers to some
    /// session. `first_ns` is the time of its first attempt.
    pub(crate) fn may_ask_again(&mut self, device: usize, first_ns: u64, waiting: Waiting) -> bool {
        let Some(agent) = self.shared(device) else {
            return true;
        };
        let of = &mut self.all[agent];
        let is_silent = of.answered_ns.is_none_or(|at_ns| at_ns < first_ns);
        // An agent that answers other requests loses some because they come too fast.
        of.is_lossy |= !is_silent;
        if !is_silent || of.seekers.contains(&device) {
            return true;
        }
        if of.seekers.len() < SEEKERS {
            of.seekers.push(device);
            return true;
        }
        of.held_back.push(waiting);
        false
    }

    /// Gives up a silent agent after the cycle of a device that kept asking it. Returns the agent's other sessions, whose cycles
    /// have to end, too.
    fn given_up(&mut self, device: usize) -> Vec<usize> {
        let Some(agent) = self.shared(device) else {
            return Vec::new();
        };
        let of = &mut self.all[agent];
        if !of.seekers.contains(&device) {
            return Vec::new();
        }
        of.seekers.clear();
        of.held_back.clear();
        let others = of.sessions.iter().copied();
        others.filter(|&session| session != device).collect()
    }
}

impl Engine {
    /// Sends an attempt of an exchange as soon as its agent has room.
    pub(super) fn send(&mut self, exchange: usize, now: Stamp, link: &mut dyn Link) {
        let Some(of) = self.exchanges.get(exchange) else {
            return;
        };
        let Some(agent) = self.agents.shared(of.device) else {
            return self.transmit(exchange, now, link);
        };
        of.is_queued = true;
        let waiting = (exchange, of.serial);
        let own = &mut self.devices[of.device].cycle.exchanges;
        if !own.contains(&exchange) {
            own.push(exchange);
        }
        self.agents.wait(agent, std::iter::once(waiting));
    }

    /// Sends queued requests of all agents with room.
    pub(super) fn use_agents(&mut self, now: Stamp, link: &mut dyn Link) {
        while let Some(agent) = self.agents.ready.pop() {
            self.use_agent(agent, now, link);
        }
    }

    /// The gap between two requests to an agent is over.
    pub(super) fn agent_is_free(&mut self, agent: usize, now: Stamp, link: &mut dyn Link) {
        self.agents.all[agent].is_paced = false;
        self.use_agent(agent, now, link);
    }

    fn use_agent(&mut self, agent: usize, now: Stamp, link: &mut dyn Link) {
        loop {
            let of = &mut self.agents.all[agent];
            let Some(&(exchange, serial)) = of.waiting.front() else {
                return;
            };
            let is_wanted = self.exchanges.is_out(exchange, serial);
            if is_wanted {
                if !of.has_room() || of.is_paced {
                    return;
                }
                let free_ns = of.sent_ns.map_or(0, |sent_ns| sent_ns + GAP_NS);
                if now.mono_ns < free_ns {
                    of.is_paced = true;
                    return self.timers.set(free_ns, Due::Agent(agent));
                }
            }
            of.waiting.pop_front();
            self.agents.waiting -= 1;
            if is_wanted {
                self.transmit_of(agent, exchange, now, link);
            }
        }
    }

    fn transmit_of(&mut self, agent: usize, exchange: usize, now: Stamp, link: &mut dyn Link) {
        let of = &mut self.agents.all[agent];
        of.in_flight += 1;
        of.sent_ns = Some(now.mono_ns);
        let patience_ns = of.patience_ns();
        if let Some(of) = self.exchanges.get(exchange) {
            (of.is_queued, of.agent) = (false, Some(agent));
            let due = Due::Impatience(exchange, of.serial, of.attempts.len());
            self.timers.set(now.mono_ns + patience_ns, due);
        }
        self.transmit(exchange, now, link);
    }

    /// Others need not wait any longer for an attempt without an answer. It counts as lost if the agent has answered since.
    pub(super) fn wait_no_longer(&mut self, exchange: usize, serial: u32, attempt: usize) {
        if let Some(of) = self.exchanges.same(exchange, serial)
            && of.attempts.len() == attempt + 1
            && let Some(agent) = of.agent.take()
        {
            let sent_ns = of.attempts.last().map_or(0, |attempt| attempt.1);
            let known = &mut self.agents.all[agent];
            known.is_lossy |= known.answered_ns.is_some_and(|at_ns| at_ns >= sent_ns);
            self.agents.leave(agent);
        }
    }

    /// Ends the cycles of an agent's other sessions if the ended cycle of this device found the agent silent.
    pub(super) fn end_with(&mut self, number: usize, now: Stamp) {
        for other in self.agents.given_up(number) {
            let cycle = &mut self.devices[other].cycle;
            if cycle.stage != Stage::Idle {
                cycle.is_given_up = true;
                self.end_cycle(other, now);
            }
        }
        let Some(agent) = self.agents.shared(number) else {
            return;
        };
        let agent = &mut self.agents.all[agent];
        let devices = &self.devices;
        let is_idle = |&of: &usize| devices[of].cycle.stage == Stage::Idle;
        agent.is_lossy &= !agent.sessions.iter().all(is_idle);
    }
}
