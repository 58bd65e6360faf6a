//! Answers to requests about programs. Texts leave the collector without their literals.

use std::collections::{BTreeMap, HashSet};

use kymo_base::label_set;
use kymo_base::statement::{first_word, without_literals};
use kymo_shm::{Activity, Command, Header, Kind, MetricKind, StampClock, State};
use kymo_wire::keeper::{self, ActiveSlot, Blockers, Latency, Life, Programs, Publisher};

use super::answer_bytes::{
    PUBLISHER_BYTES, SLOTS_MAX, TEXT_MAX, labels_bytes, metric_bytes, slot_bytes,
};
use super::publisher::{Moment, cut, number};
use super::retired::{Retired, Total};
use super::servers::Sessions;
use crate::shares::shares;

/// Most bytes of an answer, approximately.
const ROOM: usize = 16 << 20;
/// An answer that is being made.
pub(super) struct Answering<'a> {
    pub(super) programs: Programs,
    pub(super) texts: bool,
    pub(super) now: Moment,
    sessions: Sessions<'a>,
    /// Bytes left for each user. So the number in a file's name, which its owner chooses, does not decide which
    /// publishers are left out.
    rooms: BTreeMap<u32, usize>,
}

impl<'a> Answering<'a> {
    /// Begins an answer. `wanted`: bytes that a complete answer would have for each user.
    pub(super) fn new(
        texts: bool,
        now: Moment,
        sessions: Sessions<'a>,
        wanted: &BTreeMap<u32, usize>,
    ) -> Answering<'a> {
        let bytes: Vec<usize> = wanted.values().copied().collect();
        let rooms = wanted.keys().copied().zip(shares(&bytes, ROOM));
        Answering {
            programs: Programs::default(),
            texts,
            now,
            sessions,
            rooms: rooms.collect(),
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
        let mut found = Vec::new();
        for (place, activity, since_ns) in slots {
            let mut slot = self.slot(header, place, activity, since_ns);
            let sessions = &mut self.sessions;
            let session = sessions.complete(&mut slot, publisher.uid, header, activity, self.texts);
            servers.extend(session);
            next = slot.number.saturating_add(1);
            found.push(slot);
        }
        found.extend(self.sessions.others(&servers, next, self.texts));
        self.sessions.name(&mut publisher.labels, &servers);
        // If there is no room for all slots, those that others wait for come first.
        let blockers = Blockers::of(&found);
        found.sort_by_key(|slot| !blockers.have(slot.pid, slot.xid));
        for slot in found {
            self.push_slot(&mut publisher, slot);
        }
        publisher.slots.sort_by_key(|slot| slot.number);
        self.push(publisher);
    }

    fn push_slot(&mut self, publisher: &mut Publisher, slot: ActiveSlot) {
        if publisher.slots.len() >= SLOTS_MAX || !self.takes(publisher.uid, slot_bytes(&slot)) {
            publisher.slots_left_out += 1;
            return;
        }
        publisher.slots.push(slot);
    }

    /// Takes room from a user's share; `false`: there is too little.
    fn takes(&mut self, uid: u32, bytes: usize) -> bool {
        let left = self.rooms.get_mut(&uid);
        let left = left.filter(|left| **left >= bytes);
        left.map(|left| *left -= bytes).is_some()
    }

    /// Database servers that do not publish themselves, without those that were added; each with an id in place
    /// of its file's epoch.
    pub(super) fn servers(&self, user: impl Fn(u32) -> Vec<u8>) -> Vec<([u8; 16], Publisher)> {
        self.sessions.publishers(self.texts, user)
    }

    /// Adds database servers that do not publish themselves, after all publishers.
    pub(super) fn add_servers(&mut self, user: impl Fn(u32) -> Vec<u8>) {
        for (_, mut publisher) in self.servers(user) {
            for slot in std::mem::take(&mut publisher.slots) {
                self.push_slot(&mut publisher, slot);
            }
            self.push(publisher);
        }
    }

    fn push(&mut self, publisher: Publisher) {
        let metrics = publisher.metrics.iter().map(metric_bytes);
        let bytes = PUBLISHER_BYTES + labels_bytes(&publisher.labels) + metrics.sum::<usize>();
        match self.takes(publisher.uid, bytes) {
            true => self.programs.publishers.push(publisher),
            false => self.programs.left_out += 1,
        }
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
            ..ActiveSlot::default()
        }
    }

    fn stamp(&self, clock: StampClock, stamp: u64) -> Option<u64> {
        let now_ns = u64::try_from(self.now.real_ns).ok()?;
        let boot_ns = now_ns.saturating_sub(self.now.mono_ns);
        // A time after now is of another clock.
        clock.unix_ns(stamp, boot_ns).filter(|&ns| ns <= now_ns)
    }

    /// Adds totals of ended programs, by publisher and owner.
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
            // A metric has a total for each form of its cells.
            let metrics = group.chunk_by(|a, b| a.1 == b.1).filter_map(|forms| {
                let mut forms = forms.iter().map(|(_, text, total)| metric(text, total));
                let first = forms.next()?;
                let value = first.value + forms.map(|form| form.value).sum::<f64>();
                Some(keeper::Metric { value, ..first })
            });
            self.push(Publisher {
                name: name.clone(),
                user: user.clone(),
                uid: first.uid,
                life: Life::Retired,
                metrics: metrics.collect(),
                ..Publisher::default()
            });
        }
    }
}

/// Shown text of a command, and true if it is cut: SQL without its literals, of other texts the first word, of
/// secrets nothing.
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

fn kind(kind: Kind) -> u8 {
    match kind {
        Kind::Sql => 1,
        Kind::Plain => 2,
        Kind::Secret => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::servers::Servers;

    /// Publishers of one user once filled a whole answer: their file names, which the owner chooses, came
    /// first.
    #[test]
    fn each_user_has_a_share_of_an_answer() {
        let publisher = |uid| Publisher {
            name: b"example".to_vec(),
            user: b"ada".to_vec(),
            uid,
            pid: 1,
            metrics: vec![keeper::Metric {
                name: vec![b'x'; 1024],
                unit: Vec::new(),
                help: Vec::new(),
                labels: Vec::new(),
                kind: keeper::MetricKind::Counter,
                value: 0.0,
                rate: 0.0,
                latency: Latency::NONE,
            }],
            ..Publisher::default()
        };
        let each = PUBLISHER_BYTES + metric_bytes(&publisher(1).metrics[0]);
        let (greedy, modest) = (2 * ROOM / each, 10);
        let wanted = BTreeMap::from([(1, greedy * each), (2, modest * each)]);
        let now = Moment::default();
        let servers = Servers::default();
        let mut answering = Answering::new(true, now, servers.current(now), &wanted);
        (0..greedy).for_each(|_| answering.push(publisher(1)));
        (0..modest).for_each(|_| answering.push(publisher(2)));
        let shown = |uid| {
            let publishers = answering.programs.publishers.iter();
            publishers.filter(|each| each.uid == uid).count()
        };
        assert_eq!(shown(2), modest);
        assert!(shown(1) > greedy / 3, "{} shown", shown(1));
        let left_out = answering.programs.left_out;
        assert_eq!(shown(1) + left_out as usize, greedy);
    }
}
