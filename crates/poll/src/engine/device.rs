//! One device: what stays from cycle to cycle, and where its present cycle has come to.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;

use super::interfaces::{Column, Found, Interfaces};
use super::pdu::Pdu;
use super::walk::Walk;

/// Names of a PDU at first.
const NAMES_FIRST: usize = 24;
/// Cycles without a fault after which PDUs grow, at first.
const GROWTH_FIRST: u32 = 10;
/// And at most, after many faults.
const GROWTH_MAX: u32 = 640;
/// Cycles for which a key that is not there is not looked for, one time after the other.
const ABSENT_CYCLES: [u8; 5] = [1, 2, 4, 8, 12];
/// Cycles without an answer after which only one question is asked at first.
pub(crate) const DEAD_CYCLES: u32 = 2;

/// The interface that some readings are of.
#[derive(Clone, Debug)]
pub(crate) struct Reference {
    pub column: Column,
    /// Clean.
    pub key: Box<[u8]>,
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
    /// So does a walk.
    pub walk_waits: bool,
    pub was_probed: bool,
    /// Readings were asked for.
    pub has_polled: bool,
    /// What is out.
    pub exchanges: Vec<usize>,
    pub was_reset: bool,
    /// Interfaces came or went.
    pub has_moved: bool,
    /// An answer was too big, or there was none to a large question.
    pub is_limited: bool,
    pub had_error: bool,
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
    /// The device was started since the cycle before.
    pub was_reset: bool,
}

/// A device. It is one session of the configuration.
pub(crate) struct Device {
    pub session: usize,
    pub readings: Vec<usize>,
    pub references: Vec<Reference>,
    /// Names that v1 said are not there, and until when they are not asked for.
    pub dropped: HashMap<(usize, u8), u64>,
    pub address: Option<SocketAddr>,
    pub due_ns: u64,
    pub phase_ns: u64,
    pub names_max: usize,
    pub growth: (u32, u32),
    pub interfaces: Interfaces,
    /// Rows of a GETBULK at most, where the device did not answer to more.
    pub rows_max: u16,
    /// sysUpTime in hundredths of a second, and when that was.
    pub uptime: Option<(u32, u64)>,
    pub has_uptime: bool,
    /// When it answered last, nanoseconds since 1970; 0: never.
    pub seen_ns: i64,
    pub has_table: bool,
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
    /// Of a session, without readings.
    pub(crate) fn new(session: usize) -> Device {
        Device {
            session,
            readings: Vec::new(),
            references: Vec::new(),
            dropped: HashMap::new(),
            address: None,
            due_ns: 0,
            phase_ns: 0,
            names_max: NAMES_FIRST,
            growth: (0, GROWTH_FIRST),
            interfaces: Interfaces::default(),
            rows_max: u16::MAX,
            uptime: None,
            has_uptime: true,
            seen_ns: 0,
            has_table: true,
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
        self.growth = before.growth;
        self.interfaces = before.interfaces;
        self.rows_max = before.rows_max;
        self.uptime = before.uptime;
        self.has_uptime = before.has_uptime;
        self.seen_ns = before.seen_ns;
        self.has_table = before.has_table;
        self.table = before.table;
        self.dead_cycles = before.dead_cycles;
        self.cycles = before.cycles;
    }

    /// Whether some interface is missing, so that it is worth knowing when interfaces come and go.
    pub(crate) fn watches_table(&self) -> bool {
        let mut all = self.references.iter();
        self.has_table && all.any(|reference| reference.index.is_none())
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

    /// PDUs become smaller.
    pub(crate) fn shrink(&mut self, names: usize) {
        self.names_max = (names / 2).clamp(1, self.names_max);
        self.growth = (0, (self.growth.1 * 2).min(GROWTH_MAX));
        self.is_plan_stale = true;
        self.cycle.is_limited = true;
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
