//! The stages of a device's cycle.

use kymo_sys::clock::Stamp;
use kymo_wire::mrtg_cfg::{Magic, Source};
use kymo_wire::snmp::{Ask, Oid};

use super::decimal::Decimal;
use super::device::{Account, Cycle, DEAD_CYCLES, Stage};
use super::exchanges::Purpose;
use super::interfaces::Found;
use super::pdu;
use super::plan::{NAMES_MAX, Planner};
use super::walk::{Walk, Walked};
use super::{Due, Engine, Happening, Link, seconds};

impl Engine {
    pub(super) fn begin_cycle(&mut self, number: usize, now: Stamp, link: &mut dyn Link) {
        let due_ns = self.devices[number].due_ns;
        if due_ns > now.mono_ns {
            return self.timers.set(due_ns, Due::Cycle(number));
        }
        let next_ns = self.next_of_phase(self.devices[number].phase_ns, now.mono_ns);
        self.timers.set(next_ns, Due::Cycle(number));
        let device = &mut self.devices[number];
        if device.cycle.stage != Stage::Idle {
            return;
        }
        let late_ns = now.mono_ns.saturating_sub(device.due_ns);
        device.due_ns = next_ns;
        device.cycle = Cycle {
            began_ns: now.mono_ns,
            names_before: device.names_max,
            account: Account {
                session: device.session,
                late_ns,
                ..Account::default()
            },
            ..Cycle::default()
        };
        device.refusal = None;
        device.pdus.truncate(device.planned);
        device.count_down();
        self.hosts.begin(number);
        let end_ns = now.mono_ns + self.interval_ns / 10 * 8;
        self.timers
            .set(end_ns, Due::CycleEnd(number, device.cycles));
        let is_dead = device.dead_cycles >= DEAD_CYCLES;
        device.cycle.stage = Stage::Probing;
        self.begin_readings(number, now);
        if self.devices[number].address.is_none() {
            self.end_cycle(number, now);
        } else if is_dead {
            self.probe(number, now, link);
        } else {
            self.look_up(number, now, link);
        }
    }

    /// Begins all readings of a device. Those that need no request get their values at once.
    fn begin_readings(&mut self, number: usize, now: Stamp) {
        let readings = std::mem::take(&mut self.devices[number].readings);
        for &reading in &readings {
            self.outcomes.begin(reading);
            self.sides.begin(reading);
            for side in 0..2 {
                let constant: &[u8] = match self.magic(reading, side) {
                    Magic::PseudoZero => b"0",
                    Magic::PseudoOne => b"1",
                    _ => continue,
                };
                let given = self.outcomes.given(reading);
                given.values[usize::from(side)] = Decimal::of(constant);
            }
            if !self.sides.is_any_open(reading) {
                self.complete(reading, now);
            }
        }
        self.devices[number].readings = readings;
    }

    /// Walks the columns of interfaces with unknown keys, then sends PDUs.
    pub(super) fn look_up(&mut self, number: usize, now: Stamp, link: &mut dyn Link) {
        let device = &mut self.devices[number];
        device.cycle.stage = Stage::Walking;
        device.cycle.to_walk = device.columns_wanted();
        self.walk_on(number, now, link);
    }

    fn walk_on(&mut self, number: usize, now: Stamp, link: &mut dyn Link) {
        let device = &mut self.devices[number];
        let Some(column) = device.cycle.to_walk.pop() else {
            return self.poll(number, now, link);
        };
        device.cycle.walked.push(column);
        device.cycle.rows.clear();
        let repetitions = self.repetitions(number);
        if let Some(oid) = Oid::of_arcs(column.oid()) {
            self.devices[number].cycle.walk = Some(Walk::new(oid, repetitions));
            self.ask_rows(number, now, link);
        }
    }

    /// Rows of a GETBULK: the number of SnmpOptions (12, as in MRTG, by default), limited by the device.
    pub(super) fn repetitions(&self, number: usize) -> u16 {
        let wanted = self.session(number).max_repetitions;
        let most = self.devices[number].rows_max;
        u16::try_from(wanted).unwrap_or(u16::MAX).min(most)
    }

    /// Halves the rows of the current walk, as the device did not answer; a walk by GETNEXT has failed.
    pub(super) fn walk_smaller(&mut self, number: usize, now: Stamp, link: &mut dyn Link) {
        let device = &mut self.devices[number];
        let walk = device.cycle.walk.as_mut();
        let Some(walk) = walk.filter(|walk| walk.repetitions > 0) else {
            return self.walk_failed(number, now, link);
        };
        walk.repetitions /= 2;
        device.rows_max = walk.repetitions;
        self.ask_rows(number, now, link);
    }

    /// The current walk has no result.
    pub(super) fn walk_failed(&mut self, number: usize, now: Stamp, link: &mut dyn Link) {
        match self.devices[number].cycle.stage {
            Stage::Walking => self.walked(number, Walked::Broken, now, link),
            _ => self.chore_done(number, Decimal::Unknown, now, link),
        }
    }

    /// Sends the next request of the device's walk.
    pub(super) fn ask_rows(&mut self, number: usize, now: Stamp, link: &mut dyn Link) {
        let session = self.session(number);
        let device = &self.devices[number];
        let Some(walk) = &device.cycle.walk else {
            return;
        };
        let ask = match device.security.has_bulk(session) && walk.repetitions > 0 {
            true => Ask::GetBulk {
                non_repeaters: 0,
                max_repetitions: walk.repetitions,
            },
            false => Ask::GetNext,
        };
        let name = std::slice::from_ref(walk.at());
        let request = device.security.prepare(session, ask, name);
        let exchange = self.exchanges.add(number, Purpose::Walk(request));
        self.send(exchange, now, link);
    }

    /// Ends the walk of a column. Rows that came before a break count.
    pub(super) fn walked(&mut self, number: usize, how: Walked, now: Stamp, link: &mut dyn Link) {
        let device = &mut self.devices[number];
        device.cycle.walk = None;
        if let Some(&column) = device.cycle.walked.last() {
            let rows = std::mem::take(&mut device.cycle.rows);
            self.is_cache_changed |= how == Walked::Whole || !rows.is_empty();
            device.interfaces.learn(column, rows, how);
            device.columns.insert(column, how);
        }
        self.walk_on(number, now, link);
    }

    /// Sends PDUs for all open readings with known interfaces.
    fn poll(&mut self, number: usize, now: Stamp, link: &mut dyn Link) {
        let device = &mut self.devices[number];
        device.resolve();
        device.cycle.stage = Stage::Polling;
        let is_first = !std::mem::replace(&mut device.cycle.has_polled, true);
        if device.is_plan_stale || !is_first {
            let open = self.open_readings(number);
            let names_max = self.devices[number].names_max;
            let mut pdus = self.plan(number, names_max, open);
            let (device, session) = (&self.devices[number], self.session(number));
            let is_single = self.config.globals().single_request;
            let is_needed = match pdus.is_empty() {
                true => self.asks_names,
                false => is_single || !Planner::shares_about(device),
            };
            if is_first && is_needed {
                let alone = Planner::about_alone(session, device, self.asked());
                pdus.splice(0..0, alone);
            }
            let device = &mut self.devices[number];
            if is_first {
                device.pdus.clear();
            }
            let from = device.pdus.len();
            device.pdus.extend(pdus);
            device.is_plan_stale = !is_first;
            if is_first {
                device.planned = device.pdus.len();
            }
            device.cycle.queue.extend(from..device.pdus.len());
        } else {
            device.cycle.queue.extend(0..device.planned);
        }
        self.pump(number, now, link);
    }

    pub(super) fn plan(
        &self,
        number: usize,
        names_max: usize,
        readings: Vec<usize>,
    ) -> Vec<pdu::Pdu> {
        let settings = (self.config.globals().single_request, self.asked());
        let device = &self.devices[number];
        Planner::plan(
            &self.config,
            device,
            &self.sides,
            settings,
            names_max,
            readings.into_iter(),
        )
    }

    fn open_readings(&self, number: usize) -> Vec<usize> {
        let readings = self.devices[number].readings.iter().copied();
        readings
            .filter(|&reading| self.sides.is_any_open(reading))
            .collect()
    }

    /// Goes to the next stage when nothing is pending and nothing is to be sent.
    pub(super) fn proceed(&mut self, number: usize, now: Stamp, link: &mut dyn Link) {
        let device = &mut self.devices[number];
        if device.cycle.stage == Stage::Polling {
            if std::mem::take(&mut device.cycle.has_moved) {
                let missing = device.references.iter_mut();
                missing
                    .filter(|reference| reference.index.is_none())
                    .for_each(|reference| reference.hope());
            }
            if !device.columns_wanted().is_empty() {
                return self.look_up(number, now, link);
            }
            self.begin_chores(number);
        }
        self.next_chore(number, now, link);
    }

    fn begin_chores(&mut self, number: usize) {
        let mut chores = std::collections::VecDeque::new();
        for &reading in &self.devices[number].readings {
            for side in 0..2 {
                let takes_walk = matches!(
                    self.magic(reading, side),
                    Magic::Walk(_) | Magic::CountWalk | Magic::GetNext
                );
                if takes_walk && self.sides.is_open(reading, side) {
                    chores.push_back((reading, side));
                }
            }
        }
        let cycle = &mut self.devices[number].cycle;
        cycle.stage = Stage::Chores;
        cycle.chores = chores;
    }

    /// Ends the cycle; readings without an outcome are unknown.
    pub(super) fn end_cycle(&mut self, number: usize, now: Stamp) {
        // With a short interval the cycle ends before requests time out.
        let cycle = &mut self.devices[number].cycle;
        let open = cycle
            .exchanges
            .iter()
            .filter(|&&of| self.exchanges.is_asked(of));
        cycle.account.losses += u32::try_from(open.count()).unwrap_or(u32::MAX);
        while let Some(&exchange) = self.devices[number].cycle.exchanges.last() {
            self.forget(exchange);
        }
        let readings = std::mem::take(&mut self.devices[number].readings);
        for &reading in &readings {
            if self.sides.is_any_open(reading) {
                self.blame_open(number, reading);
                for side in 0..2 {
                    self.sides.close(reading, side);
                }
                self.complete(reading, now);
            }
        }
        let limit = NAMES_MAX;
        let device = &mut self.devices[number];
        device.readings = readings;
        let cycle = &mut device.cycle;
        cycle.stage = Stage::Idle;
        cycle.account.real_ns = now.real_ns;
        cycle.account.answered = cycle.answered_ns.is_some();
        cycle.account.seen_ns = device.seen_ns;
        cycle.account.was_reset = cycle.was_reset;
        let (was_restarted, was_reset) = (cycle.was_restarted, cycle.was_reset);
        let answered = cycle.account.answered;
        let was_asked = answered || cycle.account.losses > 0 || cycle.is_given_up;
        device.dead_cycles = match (answered, was_asked) {
            (true, _) => 0,
            (false, true) => device.dead_cycles.saturating_add(1),
            (false, false) => device.dead_cycles,
        };
        if answered {
            device.grow(limit);
        }
        self.is_cache_changed |= device.note_limits(seconds(now.real_ns));
        if device.cycles == 0 {
            self.unpolled = self.unpolled.saturating_sub(1);
        }
        device.cycles += 1;
        self.accounts.push(device.cycle.account);
        let session = device.session;
        match (was_restarted, was_reset) {
            (true, true) => self.happenings.push(Happening::Restarted { session }),
            (true, false) => self.happenings.push(Happening::AgentRestarted { session }),
            (false, _) => {}
        }
        self.hosts.end(number);
        self.end_with(number, now);
    }

    /// Sets the outcome of one side of a reading.
    pub(super) fn settle(&mut self, reading: usize, side: u8, value: Decimal, now: Stamp) {
        if !self.sides.is_open(reading, side) {
            return;
        }
        self.outcomes.given(reading).values[usize::from(side)] = value;
        if self.sides.close(reading, side) {
            self.complete(reading, now);
        }
    }

    /// A reading has both of its outcomes.
    fn complete(&mut self, reading: usize, now: Stamp) {
        if let Some(device) = self.sides.device(reading) {
            if self.asks_names && !self.config.is_about(reading) {
                self.outcomes.given(reading).about = self.devices[device].about();
            }
            let cycle = &mut self.devices[device].cycle;
            if cycle.was_restarted {
                cycle.was_reset |= self.outcomes.note_restart(reading);
            }
        }
        self.outcomes
            .complete(reading, now.real_ns, &self.config, &mut self.batch);
    }

    /// Forgets the index of an interface, as the device has another name for it. The key is looked up again, and
    /// its readings are asked again.
    pub(super) fn refute(&mut self, number: usize, reference: usize) {
        let device = &mut self.devices[number];
        let reference = &mut device.references[reference];
        if reference.is_refuted {
            return;
        }
        reference.is_refuted = true;
        reference.index = None;
        device.interfaces.forget(reference.column, &reference.key);
        self.is_cache_changed = true;
        device.is_plan_stale = true;
        if device.cycle.walked.contains(&reference.column) {
            reference.is_missed();
        } else {
            reference.hope();
        }
    }

    /// The OID of a chore: the column to walk, or the name before the value.
    pub(super) fn chore_oid(&self, number: usize, reading: usize, side: u8) -> Option<Oid> {
        let Source::Snmp(source) = self.config.readings()[reading].source else {
            return None;
        };
        let object = source.objects[usize::from(side)];
        let mut arcs = self.config.oid(object.oid).to_vec();
        match object.index {
            kymo_wire::mrtg_cfg::Index::None => {}
            kymo_wire::mrtg_cfg::Index::Number(index) => arcs.push(index),
            kymo_wire::mrtg_cfg::Index::Reference(..) => {
                let device = &self.devices[number];
                let reference = self.sides.reference(reading, side)?;
                let reference = &device.references[reference];
                let found = device.interfaces.find(reference.column, &reference.key);
                match (reference.index, found) {
                    (Some(index), _) | (None, Some(Found::Index(index))) => arcs.push(index),
                    _ => return None,
                }
            }
        }
        Oid::of_arcs(&arcs)
    }
}
