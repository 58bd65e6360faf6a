//! One device: its state between cycles, and its current cycle.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;

use kymo_wire::mrtg_cfg::Session;
use kymo_wire::snmp::usm::UsmReport;

use crate::batch::{About, Uptime};

use super::interfaces::{Column, Found, Interfaces, Limits};
use super::pdu::Pdu;
use super::security::Security;
use super::walk::{Walk, Walked};

/// Names of a PDU until a limit is known.
const NAMES_FIRST: usize = 24;
/// Names in a PDU of MRTG. A PDU of at most this size does not count as large.
const NAMES_PLAIN: usize = 4;
/// Cycles without a fault after which PDUs grow the first time.
const GROWTH_FIRST: u32 = 10;
/// The most that faults raise this number to.
const GROWTH_MAX: u32 = 640;
/// Seconds, a day, after which a run tries larger requests than an earlier run found to work.
const LIMITS_AGAIN_S: u32 = 86_400;
/// From this number of rows of a GETBULK on, a limit is lifted and not doubled when larger requests are tried.
const ROWS_USUAL: u16 = 128;
/// Cycles for which a missing key is not looked up, by the number of failures in a row.
const ABSENT_CYCLES: [u8; 5] = [1, 2, 4, 8, 12];
/// Cycles without an answer after which a cycle begins with a probe.
pub(crate) const DEAD_CYCLES: u32 = 2;

/// An interface that readings refer to by a key.
#[derive(Clone, Debug)]
pub(crate) struct Reference {
    pub column: Column,
    /// The key as [`super::interfaces::clean`] makes it.
    pub key: Arc<[u8]>,
    /// The ifIndex, if it is known.
    pub index: Option<u32>,
    /// Number of failed lookups in a row, and cycles until the next lookup.
    pub absent: (u8, u8),
    /// True if the device said in this cycle that the index has another key.
    pub is_refuted: bool,
}

impl Reference {
    /// A reference with an unknown index.
    pub(crate) fn new(column: Column, key: &[u8]) -> Reference {
        Reference {
            column,
            key: key.into(),
            index: None,
            absent: (0, 0),
            is_refuted: false,
        }
    }

    /// The key is missing: it is not looked up for some cycles.
    pub(crate) fn is_missed(&mut self) {
        let times = usize::from(self.absent.0).min(ABSENT_CYCLES.len() - 1);
        self.absent = (times as u8 + 1, ABSENT_CYCLES[times]);
        self.index = None;
    }

    /// The key may exist again, so it is looked up at once.
    pub(crate) fn hope(&mut self) {
        self.absent = (0, 0);
    }

    /// True if the key is to be looked up.
    pub(crate) fn is_wanted(&self) -> bool {
        self.index.is_none() && self.absent.1 == 0
    }
}

/// Stages of a cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Between two cycles.
    #[default]
    Idle,
    /// A probe is sent to a device that did not answer in the last cycles.
    Probing,
    /// Columns of interfaces are walked.
    Walking,
    /// PDUs with readings are sent.
    Polling,
    /// Readings that need walks of their own are served.
    Chores,
}

/// One cycle of a device.
#[derive(Debug, Default)]
pub(crate) struct Cycle {
    pub stage: Stage,
    pub began_ns: u64,
    /// PDUs to be sent.
    pub queue: VecDeque<usize>,
    pub in_flight: u32,
    pub last_sent_ns: Option<u64>,
    /// True after a loss: PDUs are sent one at a time.
    pub is_lossy: bool,
    /// True if a timer is set for the next PDU.
    pub is_paced: bool,
    /// True if the device waits for room in the socket's queue.
    pub is_waiting: bool,
    pub to_walk: Vec<Column>,
    pub walked: Vec<Column>,
    pub walk: Option<Walk>,
    pub rows: Vec<(Vec<u8>, u32)>,
    /// Readings that need walks of their own, with the side.
    pub chores: VecDeque<(usize, u8)>,
    /// Number of rows in the current walk so far.
    pub counted: u32,
    /// Arrival of the last answer.
    pub answered_ns: Option<u64>,
    /// PDUs that had all their attempts and wait for the outcome of a probe.
    pub suspects: Vec<usize>,
    pub is_probing: bool,
    /// True if other sessions found the agent silent for so long that this one stops asking.
    pub is_given_up: bool,
    /// True if a walk waits for the outcome of a probe.
    pub walk_waits: bool,
    /// Time of the last probe.
    pub probed_ns: Option<u64>,
    /// Largest number of names of a PDU when the cycle began.
    pub names_before: usize,
    /// True once PDUs with readings were sent.
    pub has_polled: bool,
    /// Pending requests.
    pub exchanges: Vec<usize>,
    /// True if the uptime began again.
    pub was_restarted: bool,
    /// True if a counter began again, too.
    pub was_reset: bool,
    /// True if interfaces came or went.
    pub has_moved: bool,
    /// True if an answer was too big, or a large request got none.
    pub is_limited: bool,
    pub had_error: bool,
    /// Readings with a name that the device refused in this cycle together with the whole PDU.
    pub spoilt: BTreeSet<usize>,
    pub account: Account,
}

/// Statistics of a device's cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Account {
    /// Index into the configuration's sessions.
    pub session: usize,
    /// End of the cycle, nanoseconds since 1970.
    pub real_ns: i64,
    /// True if the device answered at least once.
    pub answered: bool,
    /// Time of its last answer in any cycle, nanoseconds since 1970; 0: never.
    pub seen_ns: i64,
    /// Sum of the round-trip times of all answers, nanoseconds.
    pub round_trip_ns: u64,
    /// Number of answers to pending requests.
    pub answers: u32,
    /// Number of attempts without an answer.
    pub losses: u32,
    /// Number of repeated attempts.
    pub retries: u32,
    /// Delay of the cycle's beginning, nanoseconds.
    pub late_ns: u64,
    /// True if the device was started since the last cycle: a counter is less than it was.
    pub was_reset: bool,
}

/// A device, which is one session of the configuration.
pub(crate) struct Device {
    pub session: usize,
    pub security: Security,
    pub readings: Vec<usize>,
    pub references: Vec<Reference>,
    /// Readings for which the device refused a whole PDU. Each has a PDU of its own until the device answers to it.
    pub alone: BTreeSet<usize>,
    /// Sides of readings that have no counter of 64 bits: one of 32 bits is asked for.
    pub narrow: BTreeSet<(usize, u8)>,
    pub address: Option<SocketAddr>,
    pub due_ns: u64,
    pub phase_ns: u64,
    pub names_max: usize,
    /// Largest number of names in an answered PDU. Silence after a PDU of at most this size is a loss; after a larger one it
    /// may be a limit.
    pub names_proven: usize,
    pub growth: (u32, u32),
    pub interfaces: Interfaces,
    /// How the last walk of each column ended.
    pub columns: BTreeMap<Column, Walked>,
    /// Largest number of rows of a GETBULK that the device answers; 0: use GETNEXT.
    pub rows_max: u16,
    /// True if this run tries larger requests than an earlier run found to work.
    pub tries_more: bool,
    /// sysUpTime in hundredths of a second, and the time of its answer.
    pub uptime: Option<(u32, u64)>,
    /// True if the device refused a whole PDU for its sysUpTime, which then has a PDU of its own.
    pub is_uptime_alone: bool,
    /// sysName, if pages show it.
    pub name: Option<Arc<[u8]>>,
    /// True if the device refuses a whole PDU for its sysName.
    pub is_nameless: bool,
    /// Time of the last answer, nanoseconds since 1970; 0: never.
    pub seen_ns: i64,
    /// For ifTableLastChange and ifNumber: false if the device refuses a whole PDU for it.
    pub has_table: [bool; 2],
    /// Last values of ifTableLastChange and ifNumber.
    pub table: [Option<i128>; 2],
    pub dead_cycles: u32,
    /// Why the device did not answer the user of SNMPv3 in this cycle.
    pub refusal: Option<UsmReport>,
    pub pdus: Vec<Pdu>,
    /// Number of PDUs at the start of `pdus` that each cycle sends; the others are for this cycle alone.
    pub planned: usize,
    pub is_plan_stale: bool,
    pub cycle: Cycle,
    /// Number of cycles that have ended.
    pub cycles: u64,
}

impl Device {
    /// The device of a session, without readings.
    pub(crate) fn new(session: usize, of: &Session) -> Device {
        Device {
            session,
            security: Security::new(of),
            readings: Vec::new(),
            references: Vec::new(),
            alone: BTreeSet::new(),
            narrow: BTreeSet::new(),
            address: None,
            due_ns: 0,
            phase_ns: 0,
            names_max: NAMES_FIRST,
            names_proven: 0,
            growth: (0, GROWTH_FIRST),
            interfaces: Interfaces::default(),
            columns: BTreeMap::new(),
            rows_max: u16::MAX,
            tries_more: false,
            uptime: None,
            is_uptime_alone: false,
            name: None,
            is_nameless: false,
            seen_ns: 0,
            has_table: [true; 2],
            table: [None; 2],
            dead_cycles: 0,
            refusal: None,
            pdus: Vec::new(),
            planned: 0,
            is_plan_stale: true,
            cycle: Cycle::default(),
            cycles: 0,
        }
    }

    /// Takes over the state of the same device from an engine with an earlier state of the configuration.
    pub(crate) fn inherit(&mut self, before: Device) {
        self.address = before.address;
        self.due_ns = before.due_ns;
        self.names_max = before.names_max;
        self.names_proven = before.names_proven;
        self.growth = before.growth;
        self.interfaces = before.interfaces;
        self.columns = before.columns;
        self.rows_max = before.rows_max;
        self.uptime = before.uptime;
        self.is_uptime_alone = before.is_uptime_alone;
        self.is_nameless = before.is_nameless;
        self.seen_ns = before.seen_ns;
        self.has_table = before.has_table;
        self.table = before.table;
        self.dead_cycles = before.dead_cycles;
        self.refusal = before.refusal;
        self.cycles = before.cycles;
    }

    /// The device's words about itself in this cycle.
    pub(crate) fn about(&self) -> Option<About> {
        let (ticks, at_ns) = self.uptime?;
        (at_ns >= self.cycle.began_ns).then(|| About {
            uptime: Uptime::Ticks(ticks),
            name: self.name.clone(),
        })
    }

    /// True if the last cycle got no word from the device.
    pub(crate) fn is_silent(&self) -> bool {
        self.dead_cycles > 0 && self.refusal.is_none()
    }

    /// True if an interface is missing, so that it matters when interfaces come and go.
    pub(crate) fn watches_table(&self) -> bool {
        let mut all = self.references.iter();
        self.has_table.contains(&true) && all.any(|reference| reference.index.is_none())
    }

    /// Counts down the cycles for which missing interfaces are not looked up. A device that does not report changes of its
    /// interfaces is searched in each cycle.
    pub(crate) fn count_down(&mut self) {
        let announces = self.table.iter().any(Option::is_some);
        for reference in &mut self.references {
            reference.is_refuted = false;
            let left = reference.absent.1.saturating_sub(1);
            reference.absent.1 = if announces { left } else { 0 };
        }
    }

    /// Columns that have to be walked for keys without a known index.
    pub(crate) fn columns_wanted(&self) -> Vec<Column> {
        let mut columns: Vec<Column> = Vec::new();
        for reference in &self.references {
            let walked = &self.cycle.walked;
            if reference.is_wanted()
                && !columns.contains(&reference.column)
                && !walked.contains(&reference.column)
                && self
                    .interfaces
                    .find(reference.column, &reference.key)
                    .is_none()
            {
                columns.push(reference.column);
            }
        }
        columns
    }

    /// Sets the index of each reference whose interface is known; keys that a walk has not found are missing.
    pub(crate) fn resolve(&mut self) {
        for reference in &mut self.references {
            if !reference.is_wanted() {
                continue;
            }
            let found = self.interfaces.find(reference.column, &reference.key);
            if let Some(Found::Index(index)) = found {
                reference.index = Some(index);
                reference.is_refuted = false;
                reference.hope();
                self.is_plan_stale = true;
            } else if self.cycle.walked.contains(&reference.column) || found.is_some() {
                reference.is_missed();
            }
        }
    }

    /// Takes over interfaces and limits that an earlier run found. Once a day larger requests are tried.
    pub(crate) fn remember(&mut self, known: &Interfaces, now_s: u32) {
        self.interfaces = known.clone();
        let limits = known.limits;
        let tried_s = limits.tried_s.unwrap_or(0);
        let is_due = !(tried_s..tried_s.saturating_add(LIMITS_AGAIN_S)).contains(&now_s);
        self.tries_more = is_due && limits != Limits::default();
        if let Some(names) = limits.names {
            let names = usize::from(names) << u32::from(is_due);
            self.names_max = names.clamp(1, NAMES_FIRST);
        }
        self.rows_max = match (limits.rows, is_due) {
            (Some(0), true) => 1,
            (Some(rows), true) if rows < ROWS_USUAL => rows * 2,
            (Some(rows), false) => rows,
            _ => u16::MAX,
        };
    }

    /// Updates the limits for later runs; true if they have changed.
    pub(crate) fn note_limits(&mut self, now_s: u32) -> bool {
        let names = u16::try_from(self.names_max).ok();
        let before = self.interfaces.limits;
        let mut limits = Limits {
            names: names.filter(|_| self.names_max < NAMES_FIRST),
            rows: Some(self.rows_max).filter(|&rows| rows < u16::MAX),
            tried_s: None,
        };
        if limits != Limits::default() {
            let is_same = (limits.names, limits.rows) == (before.names, before.rows);
            let is_known = is_same && !std::mem::take(&mut self.tries_more);
            limits.tried_s = before.tried_s.filter(|_| is_known).or(Some(now_s));
        }
        std::mem::replace(&mut self.interfaces.limits, limits) != limits
    }

    /// Limits PDUs to this number of names from now on.
    pub(crate) fn shrink_to(&mut self, names: usize) {
        self.names_max = names.clamp(1, self.names_max);
        self.growth = (0, (self.growth.1 * 2).min(GROWTH_MAX));
        self.is_plan_stale = true;
        self.cycle.is_limited = true;
    }

    /// True if a PDU has more names than any that the device has answered.
    pub(crate) fn is_large(&self, pdu: usize) -> bool {
        usize::from(self.pdus[pdu].names) > self.names_proven.max(NAMES_PLAIN)
    }

    /// Removes PDUs with too many names from the queue, and returns their readings.
    pub(crate) fn take_larger(&mut self) -> Vec<usize> {
        let (pdus, names_max) = (&self.pdus, self.names_max);
        let mut readings = Vec::new();
        self.cycle.queue.retain(|&pdu| {
            let is_larger = usize::from(pdus[pdu].names) > names_max;
            if is_larger {
                readings.extend(pdus[pdu].readings());
            }
            !is_larger
        });
        readings
    }

    /// Lets PDUs grow after enough cycles without a fault.
    pub(crate) fn grow(&mut self, limit: usize) {
        if self.cycle.is_limited || self.cycle.is_lossy || self.cycle.had_error {
            self.growth.0 = 0;
            return;
        }
        self.growth.0 += 1;
        if self.growth.0 >= self.growth.1 && self.names_max < limit {
            self.names_max = (self.names_max * 2).min(limit);
            self.growth.0 = 0;
            self.is_plan_stale = true;
        }
    }
}
