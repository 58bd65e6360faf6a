//! Matches answers with requests and takes their values.

use std::net::SocketAddr;

use kymo_sys::clock::Stamp;
use kymo_wire::mrtg_cfg::Magic;
use kymo_wire::snmp::{ErrorStatus, ObjectValue, RequestMessage, Response};

use super::decimal::Decimal;
use super::empty::Empty;
use super::exchanges::Purpose;
use super::ids::Attempt;
use super::interfaces::{self, Column};
use super::outcome::ABOUT_BYTES;
use super::pdu::Use;
use super::plan::NAMES_MAX;
use super::security::{Envelope, Opened};
use super::transmit::Cause;
use super::walk::{Next, Walked, place_of};
use super::{Engine, Happening, Link};

/// Hundredths of a second by which the uptime may lag behind the clock without a restart.
const UPTIME_SLACK: i64 = 1000;
/// Most bytes of a text in an event.
const TEXT_SHOWN: usize = 60;

/// Purpose of the request that was answered.
enum Answered {
    Pdu(usize),
    Walk,
    Probe,
}

impl Engine {
    /// Takes a packet that arrived at `came`.
    pub fn receive(
        &mut self,
        packet: &[u8],
        from: SocketAddr,
        came: Stamp,
        now: Stamp,
        link: &mut dyn Link,
    ) {
        let Ok(envelope) = Envelope::decode(packet) else {
            self.strays.malformed += 1;
            return;
        };
        let Some(attempt) = self.ids.find(envelope.id()) else {
            self.strays.unknown += 1;
            return;
        };
        let mut plain = std::mem::take(&mut self.plain);
        self.receive_for(attempt, &envelope, &mut plain, from, (came, now), link);
        self.plain = plain;
    }

    /// Takes a message with the id of a pending attempt. `plain` takes a decrypted text.
    fn receive_for<'p>(
        &mut self,
        attempt: Attempt,
        envelope: &Envelope<'p>,
        plain: &'p mut Vec<u8>,
        from: SocketAddr,
        (came, now): (Stamp, Stamp),
        link: &mut dyn Link,
    ) {
        let Some(exchange) = self.exchanges.get(attempt.exchange) else {
            return;
        };
        let number = exchange.device;
        let sent_ns = exchange.attempts[usize::from(attempt.number)].1;
        let answered = match exchange.purpose {
            Purpose::Pdu(pdu) => Answered::Pdu(pdu),
            Purpose::Walk(_) => Answered::Walk,
            Purpose::Probe(_) => Answered::Probe,
        };
        let reply = match self.open(number, envelope, plain, from, came) {
            Opened::Response(reply) => reply,
            Opened::Again(_) if self.send_anew(attempt.exchange, now, link) => {
                return self.use_room(now, link);
            }
            Opened::Report(report) | Opened::Again(report) => {
                self.strays.refused += 1;
                self.devices[number].refusal = Some(report);
                return;
            }
            Opened::Refused => {
                self.strays.refused += 1;
                return;
            }
        };
        self.forget(attempt.exchange);
        self.devices[number].seen_ns = came.real_ns;
        let cycle = &mut self.devices[number].cycle;
        cycle.answered_ns = Some(came.mono_ns);
        cycle.account.answers += 1;
        let round_trip_ns = came.mono_ns.saturating_sub(sent_ns);
        cycle.account.round_trip_ns += round_trip_ns;
        self.agents.answered(number, came.mono_ns, round_trip_ns);
        // The device read its counters about halfway between sending and receiving.
        let stamp_ns = came.real_ns - (round_trip_ns / 2) as i64;
        match answered {
            Answered::Pdu(pdu) => self.pdu_answered(number, pdu, &reply, stamp_ns, now, link),
            Answered::Walk => self.rows_came(number, &reply, stamp_ns, now, link),
            Answered::Probe => self.probe_answered(number, now, link),
        }
        self.use_room(now, link);
    }

    /// Unwraps a message from the device's address. As in MRTG, SnmpOptions may allow another address.
    fn open<'p>(
        &mut self,
        number: usize,
        envelope: &Envelope<'p>,
        plain: &'p mut Vec<u8>,
        from: SocketAddr,
        came: Stamp,
    ) -> Opened<'p> {
        let device = &mut self.devices[number];
        let session = &self.config.sessions()[device.session];
        let Some(address) = device.address else {
            return Opened::Refused;
        };
        if (address.ip() != from.ip() && !session.lenient_address)
            || (address.port() != from.port() && !session.lenient_port)
        {
            return Opened::Refused;
        }
        let security = &mut device.security;
        let opened = security.open(session, envelope, plain, &mut self.keyring, came);
        if let Opened::Response(_) = opened {
            self.strays.foreign += u64::from(address != from);
        }
        opened
    }

    fn probe_answered(&mut self, number: usize, now: Stamp, link: &mut dyn Link) {
        let cycle = &mut self.devices[number].cycle;
        cycle.is_probing = false;
        if cycle.stage == super::Stage::Probing {
            return self.look_up(number, now, link);
        }
        if std::mem::take(&mut cycle.walk_waits) {
            return self.walk_smaller(number, now, link);
        }
        for pdu in std::mem::take(&mut cycle.suspects) {
            self.split_silent(number, pdu, now);
        }
        self.pump(number, now, link);
    }

    fn rows_came(
        &mut self,
        number: usize,
        reply: &Response<'_>,
        stamp_ns: i64,
        now: Stamp,
        link: &mut dyn Link,
    ) {
        let cycle = &mut self.devices[number].cycle;
        if cycle.stage != super::Stage::Walking {
            return self.chore_rows(number, reply, stamp_ns, now, link);
        }
        let (Some(walk), Some(&column)) = (&mut cycle.walk, cycle.walked.last()) else {
            return;
        };
        let rows = &mut cycle.rows;
        let repetitions = walk.repetitions;
        let next = walk.take(reply, |behind, value| {
            rows.extend(row_of(column, behind, value));
            true
        });
        if walk.repetitions < repetitions {
            self.devices[number].rows_max = walk.repetitions;
        }
        match next {
            Next::More => self.ask_rows(number, now, link),
            Next::End => self.walked(number, Walked::Whole, now, link),
            Next::Looped => self.walked(number, Walked::Looped, now, link),
            Next::Broken => self.walked(number, Walked::Broken, now, link),
        }
    }

    fn pdu_answered(
        &mut self,
        number: usize,
        pdu: usize,
        reply: &Response<'_>,
        stamp_ns: i64,
        now: Stamp,
        link: &mut dyn Link,
    ) {
        self.devices[number].cycle.in_flight -= 1;
        match reply.status {
            ErrorStatus::NO_ERROR => {
                self.take_values(number, pdu, reply, stamp_ns, now);
                self.rejoin(number, pdu);
            }
            ErrorStatus::TOO_BIG => self.split(number, pdu, Cause::Size, now),
            status => self.take_error(number, pdu, status, reply.index, now),
        }
        self.pump(number, now, link);
    }

    /// Handles an error: asks again without the name that caused it, or in halves if the error does not say which name did.
    fn take_error(
        &mut self,
        number: usize,
        pdu: usize,
        status: ErrorStatus,
        index: i32,
        now: Stamp,
    ) {
        let device = &mut self.devices[number];
        let of = &device.pdus[pdu];
        device.cycle.had_error |= of.names > 1;
        let place = usize::try_from(index).ok().and_then(|at| at.checked_sub(1));
        let Some(place) = place.filter(|&place| place < usize::from(of.names)) else {
            let cause = match status {
                ErrorStatus::NO_SUCH_NAME => Cause::Name,
                _ => Cause::Size,
            };
            device.is_uptime_alone |= of.asks_for_uptime();
            return self.split(number, pdu, cause, now);
        };
        let names = usize::from(of.names);
        let spoilt = of.uses.iter().filter(|(at, _)| usize::from(*at) == place);
        let spoilt: Vec<Use> = spoilt.map(|&(_, what)| what).collect();
        let readings = of.readings();
        device.names_proven = device.names_proven.max(names);
        for what in spoilt {
            self.without(number, what, now);
        }
        let names_max = self.devices[number].names_max;
        self.ask_again(number, names_max, readings);
    }

    /// Removes a name for which the device refused a PDU: from the next cycle on it is alone in its PDU.
    pub(super) fn without(&mut self, number: usize, what: Use, now: Stamp) {
        let device = &mut self.devices[number];
        match what {
            Use::Uptime => {
                device.is_plan_stale |= !std::mem::replace(&mut device.is_uptime_alone, true);
            }
            Use::Name => device.is_plan_stale |= !std::mem::replace(&mut device.is_nameless, true),
            Use::Table(which) => {
                let has_it = &mut device.has_table[usize::from(which)];
                device.is_plan_stale |= std::mem::replace(has_it, false);
            }
            Use::Check(reference) => self.refute(number, reference),
            Use::Value { reading, side } => {
                device.cycle.spoilt.insert(reading);
                if device.alone.insert(reading) {
                    // The name was the cause, not the number of names.
                    device.names_max = device.names_max.max(device.cycle.names_before);
                    device.is_plan_stale = true;
                }
                self.blame(number, reading, Empty::NoObject);
                self.settle(reading, side, Decimal::Unknown, now);
            }
        }
    }

    /// Lets names that had a PDU of their own share PDUs again, as the device has answered to them.
    fn rejoin(&mut self, number: usize, pdu: usize) {
        let device = &mut self.devices[number];
        if device.pdus[pdu].asks_for_uptime() {
            device.is_plan_stale |= std::mem::take(&mut device.is_uptime_alone);
        }
        if device.alone.is_empty() {
            return;
        }
        for reading in device.pdus[pdu].readings() {
            if !device.cycle.spoilt.contains(&reading) {
                device.is_plan_stale |= device.alone.remove(&reading);
            }
        }
    }

    fn take_values(
        &mut self,
        number: usize,
        pdu: usize,
        reply: &Response<'_>,
        stamp_ns: i64,
        now: Stamp,
    ) {
        let of = &self.devices[number].pdus[pdu];
        let session = &self.config.sessions()[self.devices[number].session];
        let mut values = [None; NAMES_MAX + 8];
        gather(&of.request, reply, session.oid_by_place, &mut values);
        let (uses, names) = (of.uses.len(), usize::from(of.names));
        let came = values.iter().take(names).flatten().count();
        if reply.varbinds.clone().next().is_none() {
            return self.split(number, pdu, Cause::Size, now);
        }
        let is_part = (1..names).contains(&came);
        let mut narrowed = Vec::new();
        for at in 0..uses {
            let (place, what) = self.devices[number].pdus[pdu].uses[at];
            let value = values.get(usize::from(place)).copied().flatten();
            if let Use::Value { reading, side } = what
                && value.is_some_and(|value| value.is_exception())
                && self.narrows(number, reading, side)
            {
                narrowed.push(reading);
                continue;
            }
            if value.is_some() || !is_part {
                self.take_value(number, what, value, stamp_ns, now);
            }
        }
        self.note_narrow(number, pdu);
        if !narrowed.is_empty() {
            let names_max = self.devices[number].names_max;
            self.ask_again(number, names_max, narrowed);
        }
        let device = &mut self.devices[number];
        if !is_part {
            device.names_proven = device.names_proven.max(names);
            return;
        }
        if names > device.names_proven {
            device.shrink_to(came);
        }
        let readings = device.pdus[pdu].readings();
        self.ask_again(number, came, readings);
    }

    fn take_value(
        &mut self,
        number: usize,
        what: Use,
        value: Option<ObjectValue<'_>>,
        stamp_ns: i64,
        now: Stamp,
    ) {
        match (what, value) {
            (Use::Uptime, Some(ObjectValue::TimeTicks(ticks))) => {
                self.take_uptime(number, ticks as u32, now);
            }
            (Use::Name, Some(ObjectValue::OctetString(name))) => {
                let name = &name[..name.len().min(ABOUT_BYTES)];
                self.devices[number].name = Some(name.into());
            }
            (Use::Uptime | Use::Name, _) => {}
            (Use::Table(which), value) => self.take_table(number, which, value),
            (Use::Check(reference), value) => {
                let of = &self.devices[number].references[reference];
                if !proves(of.column, &of.key, of.index, value) {
                    self.refute(number, reference);
                }
            }
            (Use::Value { reading, side }, value) if self.config.is_about(reading) => {
                self.outcomes.given(reading).tell(side, value);
                self.settle(reading, side, Decimal::Unknown, now);
            }
            (Use::Value { reading, side }, value) => {
                let reference = self.sides.reference(reading, side);
                let references = &self.devices[number].references;
                if reference.is_some_and(|of| references[of].is_refuted) {
                    return;
                }
                let decimal = self.decimal(reading, side, value);
                if decimal == Decimal::Unknown {
                    let is_there = value.is_some_and(|value| !value.is_exception());
                    let why = if is_there {
                        Empty::NoNumber
                    } else {
                        Empty::NoObject
                    };
                    self.blame(number, reading, why);
                }
                match value {
                    Some(ObjectValue::OctetString(text)) => self.note_text(number, reading, text),
                    Some(ObjectValue::Counter64(_)) => self.sides.note_wide(reading, side),
                    _ => {}
                }
                self.outcomes.given(reading).real_ns = stamp_ns;
                self.settle(reading, side, decimal, now);
            }
        }
    }

    /// Makes an event, once for a reading, if the PDU had counters of 32 bits in the place of those of 64.
    fn note_narrow(&mut self, number: usize, pdu: usize) {
        let device = &self.devices[number];
        if device.narrow.is_empty() {
            return;
        }
        let is_narrow = |&reading: &usize| {
            let mut sides = 0..2;
            sides.any(|side| {
                device.narrow.contains(&(reading, side)) && !self.sides.is_open(reading, side)
            })
        };
        let readings = device.pdus[pdu].readings().into_iter().filter(is_narrow);
        let readings: Vec<usize> = readings.collect();
        let new = readings
            .into_iter()
            .filter(|&reading| self.narrow_read.insert(reading));
        let targets = new.flat_map(|reading| self.outcomes.targets_of(reading).to_vec());
        let targets: Vec<usize> = targets.collect();
        if !targets.is_empty() {
            let session = device.session;
            self.happenings.push(Happening::Narrow { session, targets });
        }
    }

    /// Makes an event, once for a reading, if only a part of a text counts.
    fn note_text(&mut self, number: usize, reading: usize, text: &[u8]) {
        if ObjectValue::OctetString(text).is_part_of_text() && self.partly_read.insert(reading) {
            self.happenings.push(Happening::FirstNumber {
                session: self.devices[number].session,
                text: text[..text.len().min(TEXT_SHOWN)].into(),
                targets: self.outcomes.targets_of(reading).to_vec(),
            });
        }
    }

    /// Converts a value to the text of a reading.
    fn decimal(&mut self, reading: usize, side: u8, value: Option<ObjectValue<'_>>) -> Decimal {
        let Some(value) = value else {
            return Decimal::Unknown;
        };
        if self.magic(reading, side) == Magic::IsOne {
            return match value.number() {
                Some(1) => Decimal::of(b"1"),
                Some(_) => Decimal::of(b"0"),
                None => Decimal::Unknown,
            };
        }
        self.text.clear();
        match value.put_reading(&mut self.text) {
            true => Decimal::of(&self.text),
            false => Decimal::Unknown,
        }
    }

    /// Detects a restart of the device or its agent, after which counters are checked. sysUpTime also begins again after 497
    /// days, without a restart.
    fn take_uptime(&mut self, number: usize, ticks: u32, now: Stamp) {
        let device = &mut self.devices[number];
        let before = device.uptime.replace((ticks, now.mono_ns));
        let Some((earlier, at_ns)) = before else {
            return;
        };
        let passed = (now.mono_ns.saturating_sub(at_ns) / 10_000_000) as i64;
        let expected = i64::from(earlier) + passed;
        let is_back = i64::from(ticks) + UPTIME_SLACK < i64::from(earlier);
        let wrapped = expected - (1 << 32);
        let is_wrap = (wrapped - i64::from(ticks)).abs() <= passed / 10 + UPTIME_SLACK;
        if is_back && !is_wrap {
            device.cycle.was_restarted = true;
            device.cycle.has_moved = true;
            device.is_plan_stale |= device.has_table.contains(&false);
            device.has_table = [true; 2];
            device.is_nameless = false;
        }
    }

    /// Detects that interfaces came or went.
    fn take_table(&mut self, number: usize, which: u8, value: Option<ObjectValue<'_>>) {
        let device = &mut self.devices[number];
        let new = value.and_then(|value| match value {
            ObjectValue::TimeTicks(ticks) => Some(i128::from(ticks)),
            value => value.number(),
        });
        let known = &mut device.table[usize::from(which)];
        let before = std::mem::replace(known, new);
        if before.is_some() && new.is_some() && before != new {
            device.cycle.has_moved = true;
        }
    }
}

/// The values of a reply in the order of the request's names, which mostly is the order of the reply.
fn gather<'a>(
    request: &RequestMessage,
    reply: &Response<'a>,
    by_place: bool,
    values: &mut [Option<ObjectValue<'a>>],
) {
    let mut answers = reply.varbinds;
    for (place, varbind) in request.varbinds().enumerate() {
        let (Ok((requested, _)), Some(value)) = (varbind, values.get_mut(place)) else {
            return;
        };
        let next = answers.next().and_then(Result::ok);
        *value = match next {
            Some((name, value)) if by_place || name == requested => Some(value),
            // The reply has another order or other names, so search it for this name.
            _ => {
                let mut all = reply.varbinds.into_iter().map_while(Result::ok);
                all.find(|(name, _)| *name == requested)
                    .map(|found| found.1)
            }
        };
    }
}

/// True if a value confirms the index of a key.
fn proves(column: Column, key: &[u8], index: Option<u32>, value: Option<ObjectValue<'_>>) -> bool {
    let Some(value) = value else {
        return false;
    };
    match (column, value) {
        (Column::Ip, value) => value.number() == index.map(i128::from),
        (Column::Eth, ObjectValue::OctetString(bytes)) => *interfaces::eth_text(bytes) == *key,
        (Column::Name | Column::Descr, ObjectValue::OctetString(text)) => {
            interfaces::is_key(text, key)
        }
        (_, value) => {
            let mut text = Vec::new();
            value.put_text(&mut text) && interfaces::is_key(&text, key)
        }
    }
}

/// Key and index of a row of a column.
fn row_of(column: Column, behind: &[u8], value: ObjectValue<'_>) -> Option<(Vec<u8>, u32)> {
    if column == Column::Ip {
        let parts = place_of(behind)?;
        let parts: Vec<String> = parts.iter().map(u32::to_string).collect();
        let key = parts.join(".").into_bytes();
        return Some((key, u32::try_from(value.number()?).ok()?));
    }
    let place = place_of(behind)?;
    let &[index] = place.as_slice() else {
        return None;
    };
    let key = match (column, value) {
        (Column::Eth, ObjectValue::OctetString(bytes)) => interfaces::eth_text(bytes),
        (Column::Eth, _) => return None,
        (_, value) => {
            let mut text = Vec::new();
            value.put_text(&mut text).then_some(())?;
            interfaces::clean(&text)
        }
    };
    Some((key, index))
}
