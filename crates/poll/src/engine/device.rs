//! One device: what stays from cycle to cycle, and where its present cycle has come to.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;

use kymo_wire::mrtg_cfg::Session;

use super::interfaces::{Column, Found, Interfaces, Limits};
use super::pdu::Pdu;
use super::security::Security;
use super::walk::{Walk, Walked};

/// Names of a PDU at first.
const NAMES_FIRST: usize = 24;
/// Names in each PDU of MRTG: fewer are never too many.
const NAMES_PLAIN: usize = 4;
/// Cycles without a fault after which PDUs grow, at first.
const GROWTH_FIRST: u32 = 10;
/// And at most, after many faults.
const GROWTH_MAX: u32 = 640;
/// After these seconds a run tries whether a device answers to more than an earlier run found: a day.
const LIMITS_AGAIN_S: u32 = 86_400;
/// Rows of a GETBULK beyond which no limit is to be found.
const ROWS_USUAL: u16 = 128;
/// Cycles for which a key that is not there is not looked for, one time after the other.
const ABSENT_CYCLES: [u8; 5] = [1, 2, 4, 8, 12];
/// Cycles without an answer after which only one question is asked at first.
pub(crate) const DEAD_CYCLES: u32 = 2;

/// The interface that some readings are of.
#[derive(Clone, Debug)]
pub(crate) struct Reference {
    pub column: Column,
    /// Clean.
    pub key: Arc<[u8]>,
    /// Its ifIndex, as far as it is known.
    pub index: Option<u32>,
    /// How often it was not there, and for how many cycles it is not looked for.
    pub absent: (u8, u8),
    /// In this cycle the device said that the index is another one's.
    pub is_refuted: bool,
}

impl Reference {
    /// One whose index is not known.
    pub(crate) fn new(column: Column, key: &[u8]) -> Reference {
        Reference {
            column,
            key: key.into(),
            index: None,
            absent: (0, 0),
            is_refuted: false,
        }
    }

    /// It is not there: for a while it is not looked for.
    pub(crate) fn is_missed(&mut self) {
        let times = usize::from(self.absent.0).min(ABSENT_CYCLES.len() - 1);
        self.absent = (times as u8 + 1, ABSENT_CYCLES[times]);
        self.index = None;
    }

    /// It may be there again.
    pub(crate) fn hope(&mut self) {
        self.absent = (0, 0);
    }

    /// Whether it is to be looked for.
    pub(crate) fn is_wanted(&self) -> bool {
        self.index.is_none() && self.absent.1 == 0
    }
}

/// Where a cycle has come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Between two cycles.
    #[default]
    Idle,
    /// Is anybody there?
    Probing,
    /// Columns of the interfaces.
    Walking,
    /// PDUs with readings.
    Polling,
    /// Readings that take walks of their own.
    Chores,
}

/// One cycle of a device.
#[derive(Debug, Default)]
pub(crate) struct Cycle {
    pub stage: Stage,
    pub began_ns: u64,
    /// PDUs that are to be sent.
    pub queue: VecDeque<usize>,
    pub in_flight: u32,
    pub last_sent_ns: Option<u64>,
    /// Something was lost: from now on one at a time.
    pub is_lossy: bool,
    /// A timer is set for the next one.
    pub is_paced: bool,
    /// It waits until the queue of the socket has room.
    pub is_waiting: bool,
    pub to_walk: Vec<Column>,
    pub walked: Vec<Column>,
    pub walk: Option<Walk>,
    pub rows: Vec<(Vec<u8>, u32)>,
    /// Readings that take walks of their own, with the side.
    pub chores: VecDeque<(usize, u8)>,
    /// Rows that the walk at hand has seen.
    pub counted: u32,
    /// When the last answer came.
    pub answered_ns: Option<u64>,
    /// PDUs whose attempts are used up while it is asked whether anybody is there.
    pub suspects: Vec<usize>,
    pub is_probing: bool,
    /// The agent was silent to other sessions for so long that this one is not asked any more.
    pub is_given_up: bool,
    /// So does a walk.
    pub walk_waits: bool,
    /// When it was asked last whether anybody is there.
    pub probed_ns: Option<u64>,
    /// Names of a PDU at most when it began.
    pub names_before: usize,
    /// Readings were asked for.
    pub has_polled: bool,
    /// What is out.
    pub exchanges: Vec<usize>,
    /// The uptime began again.
    pub was_restarted: bool,
    /// And so did a counter.
    pub was_reset: bool,
    /// Interfaces came or went.
    pub has_moved: bool,
    /// An answer was too big, or there was none to a large question.
    pub is_limited: bool,
    pub had_error: bool,
    /// Readings with a name for which the device refused a whole PDU in this cycle.
    pub spoilt: BTreeSet<usize>,
    pub account: Account,
}

/// What a cycle of a device was like.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Account {
    /// Of the configuration's sessions.
    pub session: usize,
    /// When it ended, nanoseconds since 1970.
    pub real_ns: i64,
    /// Whether the device answered at all.
    pub answered: bool,
    /// When it answered last, in any cycle, nanoseconds since 1970; 0: never.
    pub seen_ns: i64,
    /// Sum of the round-trip times of all answers.
    pub round_trip_ns: u64,
    /// Answers that were waited for.
    pub answers: u32,
    /// Attempts without an answer.
    pub losses: u32,
    /// Attempts after the first one.
    pub retries: u32,
    /// How much later than it should it began.
    pub late_ns: u64,
    /// The device was started since the cycle before: a counter is less than it was.
    pub was_reset: bool,
}

/// A device. It is one session of the configuration.
pub(crate) struct Device {
    pub session: usize,
    pub security: Security,
    pub readings: Vec<usize>,
    pub references: Vec<Reference>,
    /// Readings with a name for which the device refused a whole PDU: each is asked in a PDU of its own, until it is answered.
    pub alone: BTreeSet<usize>,
    pub address: Option<SocketAddr>,
    pub due_ns: u64,
    pub phase_ns: u64,
    pub names_max: usize,
    /// Most names of one PDU that were answered. Silence after as many is a loss, after more it may be a limit.
    pub names_proven: usize,
    pub growth: (u32, u32),
    pub interfaces: Interfaces,
    /// How the last walk of each column ended.
    pub columns: BTreeMap<Column, Walked>,
    /// Rows of a GETBULK at most, where the device did not answer to more; 0: it is asked by GETNEXT.
    pub rows_max: u16,
    /// The limits are larger than those that an earlier run found.
    pub tries_more: bool,
    /// sysUpTime in hundredths of a second, and when that was.
    pub uptime: Option<(u32, u64)>,
    /// The device refused a whole PDU for its sysUpTime, which is asked in a PDU of its own.
    pub is_uptime_alone: bool,
    /// When it answered last, nanoseconds since 1970; 0: never.
    pub seen_ns: i64,
    /// Whether the device answers ifTableLastChange, and ifNumber, without refusing a whole PDU.
    pub has_table: [bool; 2],
    /// ifTableLastChange and ifNumber.
    pub table: [Option<i128>; 2],
    pub dead_cycles: u32,
    pub pdus: Vec<Pdu>,
    /// The first of them are for each cycle, the others for this one.
    pub planned: usize,
    pub is_plan_stale: bool,
    pub cycle: Cycle,
    /// Cycles that have ended.
    pub cycles: u64,
}

impl Device {
    /// Of a session and its index, without readings.
    pub(crate) fn new(session: usize, of: &Session) -> Device {
        Device {
            session,
            security: Security::new(of),
            readings: Vec::new(),
            references: Vec::new(),
            alone: BTreeSet::new(),
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
            seen_ns: 0,
            has_table: [true; 2],
            table: [None; 2],
            dead_cycles: 0,
            pdus: Vec::new(),
            planned: 0,
            is_plan_stale: true,
            cycle: Cycle::default(),
            cycles: 0,
        }
    }

    /// Takes what is known of the device in an earlier state of the configuration.
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
        self.seen_ns = before.seen_ns;
        self.has_table = before.has_table;
        self.table = before.table;
        self.dead_cycles = before.dead_cycles;
        self.cycles = before.cycles;
    }

    /// Whether some interface is missing, so that it is worth knowing when interfaces come and go.
    pub(crate) fn watches_table(&self) -> bool {
        let mut all = self.references.iter();
        self.has_table.contains(&true) && all.any(|reference| reference.index.is_none())
    }

    /// A new cycle counts down how long missing interfaces are not looked for. A device that cannot say when interfaces come
    /// and go is looked through each time.
    pub(crate) fn count_down(&mut self) {
        let announces = self.table.iter().any(Option::is_some);
        for reference in &mut self.references {
            reference.is_refuted = false;
            let left = reference.absent.1.saturating_sub(1);
            reference.absent.1 = if announces { left } else { 0 };
        }
    }

    /// Columns in which something is looked for that is not known.
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

    /// Gives references their index, as far as the interfaces are known; those that a walk has not shown are missing.
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

    /// Takes over the interfaces that an earlier run found, and its limits. Runs of one cycle try more once a day.
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

    /// Whether the limits are others than a later run would know.
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

    /// PDUs have no more names than that from now on.
    pub(crate) fn shrink_to(&mut self, names: usize) {
        self.names_max = names.clamp(1, self.names_max);
        self.growth = (0, (self.growth.1 * 2).min(GROWTH_MAX));
        self.is_plan_stale = true;
        self.cycle.is_limited = true;
    }

    /// Whether a PDU has more names than the device ever answered to at once.
    pub(crate) fn is_large(&self, pdu: usize) -> bool {
        usize::from(self.pdus[pdu].names) > self.names_proven.max(NAMES_PLAIN)
    }

    /// The readings of queued PDUs that have too many names by now; these are not sent.
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

    /// After a cycle: PDUs may grow.
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
