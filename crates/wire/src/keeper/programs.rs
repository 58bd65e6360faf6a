//! PROGRAMS: the publishers of activity, and their present activity.

use std::collections::HashSet;

use super::body::{Put, Take};

/// The state of a prepared transaction, which is a slot without a process.
pub const PREPARED: u8 = 6;

/// All publishers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Programs {
    /// Publishers, by name and owner.
    pub publishers: Vec<Publisher>,
    /// Users whose files the keeper did not read completely, or less often than those of others.
    pub limited: Vec<Limited>,
    /// Number of publishers for which the answer had no room.
    pub left_out: u32,
    /// Samples of activity that are missing in this machine's recording, because the recorder did not take them.
    pub dropped: u64,
}

/// State of the processes of a publisher.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Life {
    /// All processes have ended; their numbers are about to be kept.
    Ended,
    /// A process has the file open.
    #[default]
    Alive,
    /// All publishers of this name and user that ended before, together.
    Retired,
}

/// A publisher.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Publisher {
    /// Name of the publisher.
    pub name: Vec<u8>,
    /// Names and values of the labels of all metrics; `server` and `port` for a database server.
    pub labels: Vec<(Vec<u8>, Vec<u8>)>,
    /// Name of the user that owns the file, or the files.
    pub user: Vec<u8>,
    /// Number of the user.
    pub uid: u32,
    /// Pid of the first process, in its own namespace; 0: several.
    pub pid: u32,
    /// Start of the publisher, nanoseconds since 1970; 0: not known.
    pub started_ns: u64,
    /// State of the processes.
    pub life: Life,
    /// Number of slots that were ever taken.
    pub slots_used: u32,
    /// Cells of a slot.
    pub cells: u32,
    /// Metrics that are no series: their labels are invalid or reserved, or the owner has reached his limit.
    pub refused: u32,
    /// Metrics, in the order of the publisher's table.
    pub metrics: Vec<Metric>,
    /// Slots that have an owner, by their numbers.
    pub slots: Vec<ActiveSlot>,
    /// Number of slots for which the answer had no room.
    pub slots_left_out: u32,
}

/// Kind of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// A counter: only grows.
    Counter,
    /// A gauge: goes up and down.
    Gauge,
    /// Counts values by their size.
    Histogram,
}

/// A metric over all slots.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// Name, without the publisher's name.
    pub name: Vec<u8>,
    /// `seconds`, `bytes`, or nothing.
    pub unit: Vec<u8>,
    /// Description: one sentence.
    pub help: Vec<u8>,
    /// Keys and values of labels.
    pub labels: Vec<(Vec<u8>, Vec<u8>)>,
    /// Kind of the metric.
    pub kind: MetricKind,
    /// Total in the unit of the metric; for a histogram the number of values.
    pub value: f64,
    /// Growth a second, since the scan before; NaN: not known, or a gauge.
    pub rate: f64,
    /// Quantiles of a histogram.
    pub latency: Latency,
}

/// Quantiles of the values of a histogram since the scan before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Latency {
    /// Number of values that the estimate rests on.
    pub samples: u64,
    /// Bounds below which half, nine of ten, 99 of 100 values are; NaN: there were no values.
    pub quantiles: [f64; 3],
}

impl Latency {
    /// The latency of a metric that is no histogram.
    pub const NONE: Latency = Latency {
        samples: 0,
        quantiles: [f64::NAN; 3],
    };
}

/// Present activity of a process or a thread.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ActiveSlot {
    /// Number of the slot.
    pub number: u32,
    /// Pid in the process's own namespace; 0: a prepared transaction has none.
    pub pid: u32,
    /// Number of a prepared transaction; 0: the slot is a session's.
    pub xid: u32,
    /// The leader of processes that work together; 0: none.
    pub leader: u32,
    /// State: 0 not known, 1 idle, 2 active, 3 idle in a transaction, 4 idle in a failed one, 5 gone, [`PREPARED`].
    pub state: u8,
    /// Kind of the text: 0 no command, 1 SQL, 2 plain, 3 secret.
    pub kind: u8,
    /// Begin of the state, nanoseconds since 1970; 0: not known.
    pub since_ns: u64,
    /// Commands that ever began in this slot.
    pub commands: u64,
    /// Names and values of labels.
    pub labels: Vec<(Vec<u8>, Vec<u8>)>,
    /// SQL without its literals, or a plain text up to its first blank; empty for clients that may not see it.
    pub text: Vec<u8>,
    /// True if the text was longer.
    pub is_cut: bool,
    /// Event that the process waits for, in the words of its server, such as `Lock:relation`; empty: none, or not known.
    pub wait: Vec<u8>,
    /// Pids of the processes that block this one.
    pub blocked_by: Vec<u32>,
    /// Numbers of the prepared transactions that block this process.
    pub blocked_by_xids: Vec<u32>,
}

/// Sessions and prepared transactions that block others of the same server.
#[derive(Clone, Debug, Default)]
pub struct Blockers {
    pids: HashSet<u32>,
    xids: HashSet<u32>,
}

impl Blockers {
    /// The blockers of these slots.
    pub fn of(slots: &[ActiveSlot]) -> Blockers {
        let mut blockers = Blockers::default();
        for slot in slots {
            blockers.add(&slot.blocked_by, &slot.blocked_by_xids);
        }
        blockers
    }

    /// Adds the blockers of a session.
    pub fn add(&mut self, pids: &[u32], xids: &[u32]) {
        self.pids.extend(pids);
        self.xids.extend(xids);
    }

    /// True if a session waits for this process or this prepared transaction.
    pub fn have(&self, pid: u32, xid: u32) -> bool {
        match xid {
            0 => self.pids.contains(&pid),
            xid => self.xids.contains(&xid),
        }
    }
}

/// A user whose files exceed a limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Limited {
    /// Name of the user.
    pub user: Vec<u8>,
    /// Number of the user.
    pub uid: u32,
    /// Parts that the keeper left out since its start: files, files for their cells, label sets, samples of texts, files that
    /// are no publisher's.
    pub counts: [u64; 5],
}

impl Programs {
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        out.length(self.publishers.len());
        for publisher in &self.publishers {
            publisher.put(out);
        }
        out.length(self.limited.len());
        for limited in &self.limited {
            out.text(&limited.user);
            out.u32(limited.uid);
            limited.counts.iter().for_each(|count| out.u64(*count));
        }
        out.u32(self.left_out);
        out.u64(self.dropped);
    }

    pub(super) fn take(body: &mut Take) -> Option<Programs> {
        let publishers = list(body, Publisher::take)?;
        let limited = list(body, |body| {
            let (user, uid) = (body.text()?.to_vec(), body.u32()?);
            let mut counts = [0; 5];
            for count in &mut counts {
                *count = body.u64()?;
            }
            Some(Limited { user, uid, counts })
        })?;
        Some(Programs {
            publishers,
            limited,
            left_out: body.u32()?,
            dropped: body.u64()?,
        })
    }
}

impl Publisher {
    fn put(&self, out: &mut Vec<u8>) {
        out.text(&self.name);
        put_labels(out, &self.labels);
        out.text(&self.user);
        out.u32(self.uid);
        out.u32(self.pid);
        out.u64(self.started_ns);
        out.u8(match self.life {
            Life::Ended => 0,
            Life::Alive => 1,
            Life::Retired => 2,
        });
        for number in [self.slots_used, self.cells, self.refused] {
            out.u32(number);
        }
        out.length(self.metrics.len());
        self.metrics.iter().for_each(|metric| metric.put(out));
        out.length(self.slots.len());
        self.slots.iter().for_each(|slot| slot.put(out));
        out.u32(self.slots_left_out);
    }

    fn take(body: &mut Take) -> Option<Publisher> {
        Some(Publisher {
            name: body.text()?.to_vec(),
            labels: take_labels(body)?,
            user: body.text()?.to_vec(),
            uid: body.u32()?,
            pid: body.u32()?,
            started_ns: body.u64()?,
            life: match body.u8()? {
                0 => Life::Ended,
                1 => Life::Alive,
                2 => Life::Retired,
                _ => return None,
            },
            slots_used: body.u32()?,
            cells: body.u32()?,
            refused: body.u32()?,
            metrics: list(body, Metric::take)?,
            slots: list(body, ActiveSlot::take)?,
            slots_left_out: body.u32()?,
        })
    }
}

impl Metric {
    fn put(&self, out: &mut Vec<u8>) {
        out.text(&self.name);
        out.text(&self.unit);
        out.text(&self.help);
        put_labels(out, &self.labels);
        out.u8(match self.kind {
            MetricKind::Counter => 1,
            MetricKind::Gauge => 2,
            MetricKind::Histogram => 3,
        });
        out.f64(self.value);
        out.f64(self.rate);
        out.u64(self.latency.samples);
        out.cells(self.latency.quantiles.iter().copied());
    }

    fn take(body: &mut Take) -> Option<Metric> {
        Some(Metric {
            name: body.text()?.to_vec(),
            unit: body.text()?.to_vec(),
            help: body.text()?.to_vec(),
            labels: take_labels(body)?,
            kind: match body.u8()? {
                1 => MetricKind::Counter,
                2 => MetricKind::Gauge,
                3 => MetricKind::Histogram,
                _ => return None,
            },
            value: body.f64()?,
            rate: body.f64()?,
            latency: Latency {
                samples: body.u64()?,
                quantiles: [body.f64()?, body.f64()?, body.f64()?],
            },
        })
    }
}

impl ActiveSlot {
    fn put(&self, out: &mut Vec<u8>) {
        for number in [self.number, self.pid, self.xid, self.leader] {
            out.u32(number);
        }
        out.u8(self.state);
        out.u8(self.kind);
        out.u64(self.since_ns);
        out.u64(self.commands);
        put_labels(out, &self.labels);
        out.text(&self.text);
        out.u8(self.is_cut.into());
        out.text(&self.wait);
        put_numbers(out, &self.blocked_by);
        put_numbers(out, &self.blocked_by_xids);
    }

    fn take(body: &mut Take) -> Option<ActiveSlot> {
        Some(ActiveSlot {
            number: body.u32()?,
            pid: body.u32()?,
            xid: body.u32()?,
            leader: body.u32()?,
            state: body.u8()?,
            kind: body.u8()?,
            since_ns: body.u64()?,
            commands: body.u64()?,
            labels: take_labels(body)?,
            text: body.text()?.to_vec(),
            is_cut: body.flag()?,
            wait: body.text()?.to_vec(),
            blocked_by: numbers(body)?,
            blocked_by_xids: numbers(body)?,
        })
    }
}

pub(super) fn put_numbers(out: &mut Vec<u8>, numbers: &[u32]) {
    out.u16(numbers.len());
    numbers.iter().for_each(|number| out.u32(*number));
}

pub(super) fn numbers(body: &mut Take) -> Option<Vec<u32>> {
    let count = body.count(usize::from(u16::MAX))?;
    (0..count).map(|_| body.u32()).collect()
}

/// Reads a list; a false count allocates nothing.
pub(super) fn list<T>(
    body: &mut Take,
    mut each: impl FnMut(&mut Take) -> Option<T>,
) -> Option<Vec<T>> {
    let count = body.u32()?;
    (0..count).map(|_| each(body)).collect()
}

pub(super) fn put_labels(out: &mut Vec<u8>, labels: &[(Vec<u8>, Vec<u8>)]) {
    out.u16(labels.len());
    for (key, value) in labels {
        out.text(key);
        out.text(value);
    }
}

pub(super) fn take_labels(body: &mut Take) -> Option<Vec<(Vec<u8>, Vec<u8>)>> {
    let count = body.count(usize::from(u16::MAX))?;
    let labels = (0..count).map(|_| Some((body.text()?.to_vec(), body.text()?.to_vec())));
    labels.collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Answer, HEAD, KeeperRequest};
    use super::*;

    fn programs() -> Programs {
        let labels = vec![(b"kind".to_vec(), b"read".to_vec())];
        let metric = |kind| Metric {
            name: b"commands_total".to_vec(),
            unit: Vec::new(),
            help: b"Commands.".to_vec(),
            labels: labels.clone(),
            kind,
            value: 7.5,
            rate: 0.5,
            latency: Latency {
                samples: 3,
                quantiles: [1.0, 2.0, 3.0],
            },
        };
        let slot = ActiveSlot {
            number: 1,
            pid: 2,
            xid: 9,
            leader: 3,
            state: 2,
            kind: 1,
            since_ns: 4,
            commands: 5,
            labels: labels.clone(),
            text: b"SELECT ?".to_vec(),
            is_cut: true,
            wait: b"Lock:relation".to_vec(),
            blocked_by: vec![6, 7],
            blocked_by_xids: vec![8],
        };
        Programs {
            publishers: [Life::Ended, Life::Alive, Life::Retired]
                .into_iter()
                .map(|life| Publisher {
                    name: b"example".to_vec(),
                    labels: vec![(b"port".to_vec(), b"5432".to_vec())],
                    user: b"ada".to_vec(),
                    uid: 1000,
                    pid: 8,
                    started_ns: 9,
                    life,
                    slots_used: 10,
                    cells: 11,
                    refused: 12,
                    metrics: [
                        MetricKind::Counter,
                        MetricKind::Gauge,
                        MetricKind::Histogram,
                    ]
                    .map(metric)
                    .to_vec(),
                    slots: vec![slot.clone()],
                    slots_left_out: 13,
                })
                .collect(),
            limited: vec![Limited {
                user: b"ada".to_vec(),
                uid: 1000,
                counts: [1, 2, 3, 4, 5],
            }],
            left_out: 14,
            dropped: 15,
        }
    }

    #[test]
    fn what_is_written_is_read_and_cut_short_it_is_not() {
        let answer = Answer::Programs(programs());
        let frame = &answer.frame()[HEAD..];
        assert_eq!(Answer::read(frame), Ok(answer));
        for end in 2..frame.len() {
            assert!(Answer::read(&frame[..end]).is_err(), "{end} bytes");
        }
        for texts in [true, false] {
            let request = KeeperRequest::Programs { texts };
            assert_eq!(KeeperRequest::read(&request.frame()[HEAD..]), Ok(request));
        }
    }
}
