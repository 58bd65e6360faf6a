//! Sends requests and handles timeouts. A device has at most three pending PDUs, ten milliseconds apart, or one after a loss.

use kymo_sys::clock::Stamp;
use kymo_wire::snmp::{Ask, Oid};

use super::device::Stage;
use super::exchanges::Purpose;
use super::ids::Attempt;
use super::pdu::UPTIME;
use super::security::{Sealed, id_width};
use super::walk::Walk;
use super::{Due, Engine, Link, SECOND_NS};

/// Pending PDUs of a device.
pub(super) const WINDOW: u32 = 3;
/// Least time between two PDUs of a device.
pub const GAP_NS: u64 = 10_000_000;
/// Attempts of a probe at the beginning of a cycle.
const PROBES: u32 = 2;
/// Attempts of a PDU that is larger than any answered one, if the device answers to others.
const ATTEMPTS_LARGE: u32 = 2;

/// Part of the timeout by which jitter shortens it, at most, if another attempt follows.
const JITTER_PART: u64 = 8;

/// Reasons to ask the names of a PDU again in smaller PDUs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// The PDU had too many names for the device.
    Size,
    /// The device refuses one of the names, or is silent because of it.
    Name,
}

impl Engine {
    /// Sends PDUs of a device's queue as far as window and gap allow.
    pub(super) fn pump(&mut self, number: usize, now: Stamp, link: &mut dyn Link) {
        let is_single = self.config.globals().single_request;
        loop {
            let device = &mut self.devices[number];
            let cycle = &mut device.cycle;
            if cycle.stage != Stage::Polling {
                return;
            }
            if cycle.queue.is_empty() {
                if cycle.in_flight == 0 && cycle.suspects.is_empty() {
                    self.proceed(number, now, link);
                }
                return;
            }
            // With PDUs this small a value and its check may be in two of them, and the check has to be answered first.
            let has_parts = device.names_max < 3;
            let window = if cycle.is_lossy || is_single || has_parts {
                1
            } else {
                WINDOW
            };
            if cycle.in_flight >= window || cycle.is_paced || cycle.is_waiting {
                return;
            }
            let free_ns = cycle.last_sent_ns.map_or(0, |sent_ns| sent_ns + GAP_NS);
            if now.mono_ns < free_ns && !is_single {
                cycle.is_paced = true;
                let due = Due::Send(number, device.cycles);
                return self.timers.set(free_ns, due);
            }
            if !self.lane.has_room() {
                cycle.is_waiting = true;
                return self.lane.waiting.push_back(number);
            }
            let Some(pdu) = cycle.queue.pop_front() else {
                return;
            };
            cycle.in_flight += 1;
            cycle.last_sent_ns = Some(now.mono_ns);
            let exchange = self.exchanges.add(number, Purpose::Pdu(pdu));
            self.send(exchange, now, link);
        }
    }

    /// Sends requests of agents and devices that waited for room, as far as there is room.
    pub(super) fn use_room(&mut self, now: Stamp, link: &mut dyn Link) {
        self.use_agents(now, link);
        while let Some((exchange, serial)) = self.lane.take_stale(now.mono_ns) {
            if let Some(exchange) = self.exchanges.same(exchange, serial)
                && std::mem::take(&mut exchange.is_fresh)
            {
                self.lane.leave();
            }
        }
        while self.lane.has_room() {
            let Some(number) = self.lane.waiting.pop_front() else {
                return;
            };
            self.devices[number].cycle.is_waiting = false;
            self.pump(number, now, link);
        }
    }

    /// Sends the next attempt of an exchange now.
    pub(super) fn transmit(&mut self, exchange: usize, now: Stamp, link: &mut dyn Link) {
        let Some(of) = self.exchanges.get(exchange) else {
            return;
        };
        let number = of.device;
        let device = &mut self.devices[number];
        let session = &self.config.sessions()[device.session];
        let attempt = of.attempts.len() as u8;
        if !device.cycle.exchanges.contains(&exchange) {
            device.cycle.exchanges.push(exchange);
        }
        let known = Attempt {
            exchange,
            number: attempt,
        };
        let (Some(random), Some(address)) =
            (self.ids.give(id_width(session), known), device.address)
        else {
            return self.forget(exchange);
        };
        let request = match &mut of.purpose {
            Purpose::Pdu(at) => &mut device.pdus[*at].request,
            Purpose::Walk(request) | Purpose::Probe(request) => request,
        };
        let sealed = device.security.seal(request, random, &mut self.ids, now);
        let Sealed { id, bytes } = sealed;
        link.send(device.session, address, bytes);
        of.attempts.push((id, now.mono_ns));
        let serial = of.serial;
        device.cycle.account.retries += u32::from(attempt > 0);
        // A repeated attempt does not count: its device hardly answers at the same time as all others.
        if attempt == 0 {
            of.is_fresh = true;
            self.lane.enter(now.mono_ns, exchange, serial);
        }
        let patience_s = session.timeout_s * session.backoff.powi(i32::from(attempt));
        // A timeout of a day is as good as none.
        let mut patience_ns = (patience_s.clamp(0.001, 86_400.0) * SECOND_NS as f64) as u64;
        // Jitter: requests that were lost together are not sent again together.
        if u32::from(attempt) + 1 < session.attempts {
            patience_ns -= patience_ns / JITTER_PART * u64::from(id.unsigned_abs() % 256) / 256;
        }
        let due = Due::Answer(exchange, serial, attempt);
        self.timers.set(now.mono_ns + patience_ns, due);
    }

    /// Sends an exchange as if it were new, since its attempts so far have only said what its packet has to contain. False: that
    /// has happened to it too often.
    pub(super) fn send_anew(&mut self, exchange: usize, now: Stamp, link: &mut dyn Link) -> bool {
        let Some(of) = self.exchanges.renew(exchange) else {
            return false;
        };
        for (id, _) in of.attempts.drain(..) {
            self.ids.take_back(id);
        }
        if std::mem::take(&mut of.is_fresh) {
            self.lane.leave();
        }
        if let Some(agent) = of.agent.take() {
            self.agents.leave(agent);
        }
        self.send(exchange, now, link);
        true
    }

    /// Ends an exchange and frees its ids.
    pub(super) fn forget(&mut self, exchange: usize) {
        let Some(of) = self.exchanges.take(exchange) else {
            return;
        };
        for &(id, _) in &of.attempts {
            self.ids.take_back(id);
        }
        if of.is_fresh {
            self.lane.leave();
        }
        if let Some(agent) = of.agent {
            self.agents.leave(agent);
        }
        let own = &mut self.devices[of.device].cycle.exchanges;
        own.retain(|&other| other != exchange);
        self.exchanges.done_with(of);
    }

    /// Sends a probe, a request for sysUpTime, to find out whether the device is alive.
    pub(super) fn probe(&mut self, number: usize, now: Stamp, link: &mut dyn Link) {
        let Some(name) = Oid::of_arcs(&UPTIME) else {
            return;
        };
        let device = &mut self.devices[number];
        (device.cycle.is_probing, device.cycle.probed_ns) = (true, Some(now.mono_ns));
        let session = &self.config.sessions()[device.session];
        let request = device.security.prepare(session, Ask::Get, &[name]);
        let exchange = self.exchanges.add(number, Purpose::Probe(request));
        self.send(exchange, now, link);
    }

    /// An attempt was not answered in time.
    pub(super) fn missed(
        &mut self,
        exchange: usize,
        serial: u32,
        attempt: u8,
        now: Stamp,
        link: &mut dyn Link,
    ) {
        let Some(of) = self.exchanges.same(exchange, serial) else {
            return;
        };
        if of.attempts.len() != usize::from(attempt) + 1 {
            return;
        }
        if let Some(agent) = of.agent.take() {
            self.agents.leave(agent);
        }
        let (number, made) = (of.device, u32::from(attempt) + 1);
        let is_probe = matches!(of.purpose, Purpose::Probe(_));
        let first_ns = of.attempts.first().map_or(0, |attempt| attempt.1);
        let device = &mut self.devices[number];
        let is_large = match of.purpose {
            Purpose::Pdu(pdu) => device.is_large(pdu),
            Purpose::Walk(_) => device.cycle.walk.as_ref().is_some_and(Walk::is_large),
            Purpose::Probe(_) => false,
        };
        let cycle = &device.cycle;
        let is_alive = cycle.answered_ns.is_some_and(|at_ns| at_ns >= first_ns);
        let was_probed = cycle.probed_ns.is_some_and(|at_ns| at_ns >= first_ns);
        device.cycle.account.losses += 1;
        device.cycle.is_lossy = true;
        let allowed = self.config.sessions()[device.session].attempts;
        let is_first_word = device.cycle.stage == Stage::Probing;
        let allowed = match (is_probe, is_first_word) {
            (true, true) => PROBES.min(allowed),
            (true, false) => 1,
            (false, _) if is_large && is_alive => ATTEMPTS_LARGE.min(allowed),
            (false, _) => allowed,
        };
        if made >= allowed.max(1) {
            return self.silent(exchange, now, link);
        }
        let waiting = (exchange, serial);
        if !self.agents.may_ask_again(number, first_ns, waiting) {
            return self.exchanges.queue(exchange);
        }
        // A probe goes out with the last attempt, so that both have timed out at the same time. A large PDU, which may hit a
        // limit, gets it with the second attempt.
        let asks = made + 1 == allowed || is_large && !was_probed;
        if !is_probe && !is_alive && asks && !device.cycle.is_probing {
            self.probe(number, now, link);
        }
        self.send(exchange, now, link);
    }

    /// An exchange has timed out after all its attempts.
    fn silent(&mut self, exchange: usize, now: Stamp, link: &mut dyn Link) {
        let Some(of) = self.exchanges.get(exchange) else {
            return;
        };
        let number = of.device;
        let first_ns = of.attempts.first().map_or(0, |attempt| attempt.1);
        let pdu = match of.purpose {
            Purpose::Pdu(pdu) => Some(pdu),
            _ => None,
        };
        let is_probe = matches!(of.purpose, Purpose::Probe(_));
        self.forget(exchange);
        let cycle = &mut self.devices[number].cycle;
        let is_alive = cycle.answered_ns.is_some_and(|at_ns| at_ns >= first_ns);
        let was_probed = cycle.probed_ns.is_some_and(|at_ns| at_ns >= first_ns);
        match pdu {
            Some(pdu) => {
                cycle.in_flight -= 1;
                match (is_alive, cycle.is_probing, was_probed) {
                    (true, ..) => self.split_silent(number, pdu, now),
                    (false, true, _) => cycle.suspects.push(pdu),
                    (false, false, true) => return self.end_cycle(number, now),
                    (false, false, false) => {
                        cycle.suspects.push(pdu);
                        return self.probe(number, now, link);
                    }
                }
                self.pump(number, now, link);
            }
            None if is_probe => {
                cycle.is_probing = false;
                let is_waited_for = !cycle.suspects.is_empty() || cycle.walk_waits;
                if cycle.stage == Stage::Probing || is_waited_for {
                    self.end_cycle(number, now);
                }
            }
            None if is_alive => self.walk_smaller(number, now, link),
            None if cycle.is_probing => cycle.walk_waits = true,
            None if !was_probed => {
                cycle.walk_waits = true;
                self.probe(number, now, link);
            }
            None if cycle.answered_ns.is_none() => self.end_cycle(number, now),
            None => self.walk_failed(number, now, link),
        }
    }

    /// Splits a PDU without an answer from a device that answers to others.
    pub(super) fn split_silent(&mut self, number: usize, pdu: usize, now: Stamp) {
        let device = &self.devices[number];
        let is_new = usize::from(device.pdus[pdu].names) > device.names_proven;
        let cause = if is_new { Cause::Size } else { Cause::Name };
        self.split(number, pdu, cause, now);
    }

    /// Asks for the names of a PDU in halves, down to a single name, which is given up. If the size was the cause, later PDUs
    /// are no larger.
    pub(super) fn split(&mut self, number: usize, pdu: usize, cause: Cause, now: Stamp) {
        let device = &mut self.devices[number];
        let names = usize::from(device.pdus[pdu].names);
        if names <= 1 {
            for (_, what) in device.pdus[pdu].uses.clone() {
                self.without(number, what, now);
            }
            return;
        }
        let mut readings = device.pdus[pdu].readings();
        if cause == Cause::Size {
            device.shrink_to(names / 2);
            readings.extend(device.take_larger());
        }
        self.ask_again(number, names / 2, readings);
    }

    /// Puts PDUs for the open sides of these readings at the head of the queue.
    pub(super) fn ask_again(&mut self, number: usize, names_max: usize, mut readings: Vec<usize>) {
        readings.sort_unstable();
        readings.dedup();
        readings.retain(|&reading| self.sides.is_any_open(reading));
        let names_max = self.devices[number].names_max.min(names_max).max(1);
        let pdus = self.plan(number, names_max, readings);
        let device = &mut self.devices[number];
        let from = device.pdus.len();
        device.pdus.extend(pdus);
        for pdu in (from..device.pdus.len()).rev() {
            device.cycle.queue.push_front(pdu);
        }
    }
}
