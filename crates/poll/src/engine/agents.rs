//! SNMP agents: what sessions have in common whose requests go to one address and port, such as the VLAN communities of a switch.
//! An agent has one window and one gap for all of them, and while it answers to none of them, few ask it again.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;

use kymo_sys::clock::Stamp;

use super::device::Stage;
use super::transmit::{GAP_NS, WINDOW};
use super::{Due, Engine, Link};

/// A request that waits, and its serial number.
type Waiting = (usize, u32);

/// A request that is not answered keeps others waiting for so long, where it is not known how fast the agent is. A guess.
const PATIENCE_FIRST_NS: u64 = 250_000_000;
/// Otherwise for this number of round trips, at least.
const PATIENCE_ROUND_TRIPS: u64 = 4;
const PATIENCE_LEAST_NS: u64 = 100_000_000;

/// Sessions that go on asking an agent that does not answer.
const SEEKERS: usize = 3;

/// An agent.
#[derive(Default)]
struct Agent {
    /// Devices of the engine: a session each.
    sessions: Vec<usize>,
    /// Requests for whose answers the next ones wait.
    in_flight: u32,
    /// Something was lost: one request at a time from now on, until all sessions are at rest.
    is_lossy: bool,
    sent_ns: Option<u64>,
    /// A timer is set for the next request.
    is_paced: bool,
    answered_ns: Option<u64>,
    round_trip_ns: Option<u64>,
    waiting: VecDeque<Waiting>,
    /// Sessions that ask again although none has an answer.
    seekers: Vec<usize>,
    /// Requests that the other sessions would send again.
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

/// All of them.
#[derive(Default)]
pub(crate) struct Agents {
    by_address: HashMap<SocketAddr, usize>,
    all: Vec<Agent>,
    /// By device.
    of: Vec<Option<usize>>,
    /// Agents that may have room for requests that wait.
    ready: Vec<usize>,
    /// Requests that wait, of all agents; too many where some are not wanted any more.
    waiting: usize,
}

impl Agents {
    /// Without an address of any device.
    pub(crate) fn new(devices: usize) -> Agents {
        Agents {
            of: vec![None; devices],
            ..Agents::default()
        }
    }

    /// A device has this address now.
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

    /// The agent of a device, if it has other sessions, too.
    fn shared(&self, device: usize) -> Option<usize> {
        self.of[device].filter(|&agent| self.all[agent].sessions.len() > 1)
    }

    /// True if an agent has answered to another session since that moment.
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

    /// The answer to a request is there, or is not waited for by others any more.
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

    /// The agent of a device has answered after so long.
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

    /// Decides on a request without an answer: it is sent again, or held back until the agent answers to some session. `first_ns`
    /// is the moment of its first sending.
    pub(crate) fn may_ask_again(&mut self, device: usize, first_ns: u64, waiting: Waiting) -> bool {
        let Some(agent) = self.shared(device) else {
            return true;
        };
        let of = &mut self.all[agent];
        let is_silent = of.answered_ns.is_none_or(|at_ns| at_ns < first_ns);
        // An agent that answers to others loses requests: the number at once matters.
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

    /// A device's cycle is over. If it asked again and again and its agent answered to none: the other sessions, which wait for
    /// that.
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
    /// Sends an attempt of an exchange as soon as its agent may be asked.
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

    /// Agents that have room are asked what waits.
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

    /// An answer has not come for a while: others need not wait for it. It is lost if the agent has answered something meanwhile.
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

    /// A cycle of a device is over: where its agent was silent, so are those of its other sessions.
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
