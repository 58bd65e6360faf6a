//! What is answered to who asks what programs do. Texts leave the collector without their literals.

use std::collections::HashSet;

use kymo_base::label_set;
use kymo_base::statement::{first_word, without_literals};
use kymo_shm::{Activity, Command, Header, Kind, MetricKind, StampClock, State};
use kymo_wire::keeper::{self, ActiveSlot, Latency, Life, Programs, Publisher};

use super::publisher::{Moment, cut, number};
use super::retired::{Retired, Total};
use super::servers::Sessions;

/// Bytes of an answer, about.
const ROOM: usize = 16 << 20;
/// Slots of a publisher.
const SLOTS_MAX: usize = 1024;
/// Bytes of a text.
const TEXT_MAX: usize = 4096;

/// An answer that is being made.
pub(super) struct Answering<'a> {
    pub(super) programs: Programs,
    pub(super) texts: bool,
    pub(super) now: Moment,
    sessions: Sessions<'a>,
    room: usize,
}

impl<'a> Answering<'a> {
    pub(super) fn new(texts: bool, now: Moment, sessions: Sessions<'a>) -> Answering<'a> {
        Answering {
            programs: Programs::default(),
            texts,
            now,
            sessions,
            room: ROOM,
        }
    }

    /// Adds a publisher, if there is room.
    pub(super) fn add<'b>(
        &mut self,
        mut publisher: Publisher,
        header: &Header,
        slots: impl Iterator<Item = (usize, &'b Activity, u64)>,
    ) {
        let (mut servers, mut next) = (HashSet::new(), 0);
        for (place, activity, since_ns) in slots {
            let mut slot = self.slot(header, place, activity, since_ns);
            let sessions = &mut self.sessions;
            servers.extend(sessions.complete(&mut slot, header, activity, self.texts));
            next = slot.number.saturating_add(1);
            self.push_slot(&mut publisher, slot);
        }
        for slot in self.sessions.others(&servers, next, self.texts) {
            self.push_slot(&mut publisher, slot);
        }
        self.push(publisher);
    }

    fn push_slot(&mut self, publisher: &mut Publisher, slot: ActiveSlot) {
        let bytes = slot_bytes(&slot);
        if publisher.slots.len() >= SLOTS_MAX || bytes > self.room {
            publisher.slots_left_out += 1;
            return;
        }
        self.room -= bytes;
        publisher.slots.push(slot);
    }

    /// Servers that do not publish themselves, after all that do; with what stands for the epoch of their file.
    pub(super) fn servers(&self, user: impl Fn(u32) -> Vec<u8>) -> Vec<([u8; 16], Publisher)> {
        self.sessions.publishers(self.texts, user)
    }

    /// Adds them.
    pub(super) fn add_servers(&mut self, user: impl Fn(u32) -> Vec<u8>) {
        for (_, mut publisher) in self.servers(user) {
            for slot in std::mem::take(&mut publisher.slots) {
                self.push_slot(&mut publisher, slot);
            }
            self.push(publisher);
        }
    }

    fn push(&mut self, publisher: Publisher) {
        let bytes = 200 + publisher.metrics.iter().map(metric_bytes).sum::<usize>();
        if bytes > self.room {
            self.programs.left_out += 1;
            return;
        }
        self.room -= bytes;
        self.programs.publishers.push(publisher);
    }

    fn slot(&self, header: &Header, at: usize, slot: &Activity, since_ns: u64) -> ActiveSlot {
        let command = slot.command.as_ref();
        let identity = slot.identity.as_ref();
        let values = identity
            .map(|identity| &identity.labels[..])
            .unwrap_or_default();
        let labels = header.label_names.iter().zip(values);
        let stamp = command.filter(|_| slot.state == State::Active);
        let stamp = stamp.and_then(|command| self.stamp(header.stamp_clock, command.stamp));
        let (text, is_cut) = match command.filter(|_| self.texts) {
            Some(command) => shown(command),
            None => (Vec::new(), false),
        };
        ActiveSlot {
            number: number(at),
            pid: slot.owner.map_or(0, |owner| owner.pid),
            leader: identity.and_then(|identity| identity.leader).unwrap_or(0),
            state: slot.state.byte(),
            kind: command.map_or(0, |command| kind(command.kind)),
            since_ns: stamp.unwrap_or(since_ns),
            commands: slot.commands,
            labels: labels
                .filter(|_| self.texts)
                .map(|(name, label)| (name.clone(), label.text.clone()))
                .collect(),
            text,
            is_cut,
            wait: Vec::new(),
            blocked_by: Vec::new(),
        }
    }

    fn stamp(&self, clock: StampClock, stamp: u64) -> Option<u64> {
        let now_ns = u64::try_from(self.now.real_ns).ok()?;
        let boot_ns = now_ns.saturating_sub(self.now.mono_ns);
        // Who begins later than now has another clock.
        clock.unix_ns(stamp, boot_ns).filter(|&ns| ns <= now_ns)
    }

    /// Adds what programs that have ended counted, by publisher and owner.
    pub(super) fn add_retired(&mut self, retired: &Retired) {
        let mut totals: Vec<_> = retired
            .totals()
            .map(|(labels, total)| {
                let of = |label| label_set::value(labels.text(), label).into_owned();
                ((of("publisher"), of("user")), labels.text(), total)
            })
            .collect();
        totals.sort_by(|a, b| (&a.0, a.1).cmp(&(&b.0, b.1)));
        for group in totals.chunk_by(|a, b| a.0 == b.0) {
            let Some(((name, user), _, first)) = group.first() else {
                continue;
            };
            let metrics = group.iter().map(|(_, text, total)| metric(text, total));
            self.push(Publisher {
                name: name.clone(),
                user: user.clone(),
                uid: first.uid,
                pid: 0,
                started_ns: 0,
                life: Life::Retired,
                slots_used: 0,
                cells: 0,
                refused: 0,
                metrics: metrics.collect(),
                slots: Vec::new(),
                slots_left_out: 0,
            });
        }
    }
}

/// Whether something is under way in a slot of that state: a command, or a transaction.
pub(super) fn is_at_work(state: u8) -> bool {
    [
        State::Active,
        State::IdleInTransaction,
        State::IdleInAbortedTransaction,
    ]
    .iter()
    .any(|each| each.byte() == state)
}

/// SQL without its literals, other texts up to their first blank, of secrets nothing.
fn shown(command: &Command) -> (Vec<u8>, bool) {
    let text = match command.kind {
        Kind::Sql => without_literals(&command.text),
        Kind::Plain => first_word(&command.text).to_vec(),
        Kind::Secret => Vec::new(),
    };
    let shown = cut(&text, TEXT_MAX).to_vec();
    let is_cut = command.is_truncated() || shown.len() < text.len();
    (shown, is_cut && command.kind != Kind::Secret)
}

fn metric(text: &[u8], total: &Total) -> keeper::Metric {
    let (kind, value) = match total.kind {
        MetricKind::Histogram(_) => {
            let weights = total.cells.iter().skip(super::quantile::BEFORE);
            let count = weights.fold(0_u64, |sum, weight| sum.saturating_add(*weight));
            (keeper::MetricKind::Histogram, count as f64)
        }
        MetricKind::Counter | MetricKind::Gauge(_) => {
            let cell = total.cells.first().copied().unwrap_or(0);
            (keeper::MetricKind::Counter, cell as f64 * total.scale)
        }
    };
    let is_own = |name: &[u8]| !super::labels::is_reserved(name);
    keeper::Metric {
        name: label_set::value(text, "field").into_owned(),
        unit: Vec::new(),
        help: Vec::new(),
        labels: label_set::each(text)
            .filter(|(name, _)| is_own(name))
            .map(|(name, value)| (name.to_vec(), value.into_owned()))
            .collect(),
        kind,
        value,
        rate: f64::NAN,
        latency: Latency::NONE,
    }
}

fn slot_bytes(slot: &ActiveSlot) -> usize {
    let labels = slot
        .labels
        .iter()
        .map(|(name, value)| name.len() + value.len() + 4);
    let waits = slot.wait.len() + 4 * slot.blocked_by.len();
    64 + slot.text.len() + waits + labels.sum::<usize>()
}

fn metric_bytes(metric: &keeper::Metric) -> usize {
    let labels = metric
        .labels
        .iter()
        .map(|(name, value)| name.len() + value.len() + 4);
    100 + metric.name.len() + metric.unit.len() + metric.help.len() + labels.sum::<usize>()
}

fn kind(kind: Kind) -> u8 {
    match kind {
        Kind::Sql => 1,
        Kind::Plain => 2,
        Kind::Secret => 3,
    }
}
