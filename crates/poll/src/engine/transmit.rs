//! Sending: three PDUs of a device on their way at most, ten milliseconds apart, one after something was lost; and what
//! silence means.

use kymo_sys::clock::Stamp;
use kymo_wire::snmp::{Ask, Oid};

use super::decimal::Decimal;
use super::device::Stage;
use super::exchanges::Purpose;
use super::ids::Attempt;
use super::pdu::{self, UPTIME, Use};
use super::{Due, Engine, Link, SECOND_NS};

/// PDUs of a device that are on their way.
const WINDOW: u32 = 3;
/// Between two of them.
pub const GAP_NS: u64 = 10_000_000;
/// Attempts to hear from a device that was silent.
const PROBES: u32 = 2;

impl Engine {
    /// Sends what may be sent of a device's queue.
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
            let window = if cycle.is_lossy || is_single {
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

    /// Who waited for room goes on as far as there is some.
    pub(super) fn use_room(&mut self, now: Stamp, link: &mut dyn Link) {
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

    /// Sends the next attempt of an exchange.
    pub(super) fn send(&mut self, exchange: usize, now: Stamp, link: &mut dyn Link) {
        let Some(of) = self.exchanges.get(exchange) else {
            return;
        };
        let number = of.device;
        let device = &mut self.devices[number];
        let session = &self.config.sessions()[device.session];
        let attempt = of.attempts.len() as u8;
        if attempt == 0 {
            device.cycle.exchanges.push(exchange);
        }
        let width = pdu::width(session);
        let known = Attempt {
            exchange,
            number: attempt,
        };
        let (Some(random), Some(address)) = (self.ids.give(width, known), device.address) else {
            return self.forget(exchange);
        };
        let request = match &mut of.purpose {
            Purpose::Pdu(at) => &mut device.pdus[*at].request,
            Purpose::Walk(request) | Purpose::Probe(request) => request,
        };
        let id = request.set_id(random);
        link.send(device.session, address, request.bytes());
        of.attempts.push((id, now.mono_ns));
        let serial = of.serial;
        device.cycle.account.retries += u32::from(attempt > 0);
        // Who was silent once hardly answers together with all others.
        if attempt == 0 {
            of.is_fresh = true;
            self.lane.enter(now.mono_ns, exchange, serial);
        }
        let patience_s = session.timeout_s * session.backoff.powi(i32::from(attempt));
        // A day is as long as for ever.
        let patience_ns = (patience_s.clamp(0.001, 86_400.0) * SECOND_NS as f64) as u64;
        let due = Due::Answer(exchange, serial, attempt);
        self.timers.set(now.mono_ns + patience_ns, due);
    }

    /// An exchange is over: its ids are not answered any more.
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
        let own = &mut self.devices[of.device].cycle.exchanges;
        own.retain(|&other| other != exchange);
        self.exchanges.done_with(of);
    }

    /// Asks whether anybody is there.
    pub(super) fn probe(&mut self, number: usize, now: Stamp, link: &mut dyn Link) {
        let Some(name) = Oid::of_arcs(&UPTIME) else {
            return;
        };
        let cycle = &mut self.devices[number].cycle;
        (cycle.is_probing, cycle.was_probed) = (true, true);
        let request = pdu::request(self.session(number), Ask::Get, &[name]);
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
        let (number, made) = (of.device, u32::from(attempt) + 1);
        let is_probe = matches!(of.purpose, Purpose::Probe(_));
        let device = &mut self.devices[number];
        device.cycle.account.losses += 1;
        device.cycle.is_lossy = true;
        let allowed = self.config.sessions()[device.session].attempts;
        let is_first_word = device.cycle.stage == Stage::Probing;
        let allowed = match (is_probe, is_first_word) {
            (true, true) => PROBES.min(allowed),
            (true, false) => 1,
            (false, _) => allowed,
        };
        if made >= allowed.max(1) {
            return self.silent(exchange, now, link);
        }
        // With the last attempt it is asked whether anybody is there at all. Its silence is known first.
        if !is_probe && made + 1 == allowed && !device.cycle.was_probed {
            self.probe(number, now, link);
        }
        self.send(exchange, now, link);
    }

    /// All attempts of an exchange were in vain.
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
        match pdu {
            Some(pdu) => {
                cycle.in_flight -= 1;
                match (is_alive, cycle.is_probing, cycle.was_probed) {
                    (true, ..) => self.halve(number, pdu, now),
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
                let is_last = !cycle.suspects.is_empty() || cycle.walk_waits;
                if cycle.answered_ns.is_none() || is_last {
                    self.end_cycle(number, now);
                }
            }
            None if is_alive => self.walk_smaller(number, now, link),
            None if cycle.is_probing => cycle.walk_waits = true,
            None if cycle.answered_ns.is_none() => self.end_cycle(number, now),
            None => self.walk_failed(number, now, link),
        }
    }

    /// A PDU was too large for the device: its readings are asked in smaller ones, from now on. One reading alone is given up.
    pub(super) fn halve(&mut self, number: usize, pdu: usize, now: Stamp) {
        let device = &mut self.devices[number];
        let of = &device.pdus[pdu];
        let (names, readings) = (usize::from(of.names), of.readings());
        if of.is_least() {
            let values: Vec<(usize, u8)> = values_of(of).collect();
            for (reading, side) in values {
                self.settle(reading, side, Decimal::Unknown, now);
            }
            return;
        }
        device.shrink(names);
        self.ask_again(number, readings);
    }

    /// What is open of these readings is asked in PDUs of their own, next.
    pub(super) fn ask_again(&mut self, number: usize, readings: Vec<usize>) {
        let pdus = self.plan(number, readings);
        let device = &mut self.devices[number];
        let from = device.pdus.len();
        device.pdus.extend(pdus);
        for pdu in (from..device.pdus.len()).rev() {
            device.cycle.queue.push_front(pdu);
        }
    }
}

/// The numbers that a PDU asks for: reading and side.
pub(super) fn values_of(pdu: &pdu::Pdu) -> impl Iterator<Item = (usize, u8)> {
    pdu.uses.iter().filter_map(|&(_, what)| match what {
        Use::Value { reading, side } => Some((reading, side)),
        _ => None,
    })
}
