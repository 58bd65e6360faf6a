//! Programs that publish, such as PostgreSQL: sessions that others waited for, commands that took long, and programs that ended.

use std::collections::BTreeMap;

use kymo_base::field::Unit;
use kymo_base::name::DisplayName;
use kymo_wire::activity::Recorded;
use kymo_wire::keeper::{ActiveSlot, Life, Publisher};

use super::finding::{Actor, Cause, Finding, Share, Subject};
use crate::activity;
use crate::open::Recordings;

/// Least seconds of a wait, and of a slow command, that are worth a line.
const WAIT_S: f64 = 1.0;
const SLOW_S: f64 = 10.0;
const WAIT_SEVERITY: f64 = 3.0;
const SLOW_SEVERITY: f64 = 0.6;
/// Least seconds that a program has published for, so that its end is worth a line.
const OLD_S: f64 = 600.0;
const ENDED_SEVERITY: f64 = 1.5;
/// Most lines below a blocker, and most slow commands.
const WAITERS_MAX: usize = 3;
/// Steps from a session to the one at the end of its chain.
const CHAIN_MAX: usize = 64;
const ACTIVE: u8 = 2;

/// Findings about sessions at the end of a span, or else in its middle.
pub(super) fn findings(
    recordings: &Recordings,
    (from_ns, thru_ns): (i64, i64),
) -> Result<Vec<Finding>, String> {
    let after = activity::at(recordings, thru_ns)?;
    let middle = activity::at(recordings, from_ns + (thru_ns - from_ns) / 2)?;
    let mut found = Vec::new();
    for recorded in after.iter().chain(&middle) {
        let waited_for = blockers(recorded);
        if !waited_for.is_empty() {
            found = waited_for;
            break;
        }
        if found.is_empty() {
            found = commands(recorded);
        }
    }
    if let Some(after) = after
        && let Some(before) = activity::at(recordings, from_ns)?
    {
        found.extend(ended(&before, &after));
    }
    Ok(found)
}

/// Programs that published at the begin of a span and not at its end.
fn ended(before: &Recorded, after: &Recorded) -> Vec<Finding> {
    fn who(publisher: &Publisher) -> (&[u8], u32, u64) {
        (&publisher.name, publisher.uid, publisher.started_ns)
    }
    fn alive(recorded: &Recorded) -> impl Iterator<Item = &Publisher> {
        let publishers = recorded.programs.publishers.iter();
        publishers.filter(|publisher| publisher.life == Life::Alive)
    }
    let is_gone = |one: &&Publisher| alive(after).all(|other| who(other) != who(one));
    let gone = alive(before).filter(is_gone).map(|publisher| {
        let actor = Actor {
            pid: publisher.pid,
            comm: DisplayName(&publisher.name).text().into_owned(),
            count: 1,
            ..Actor::default()
        };
        Finding {
            cause: Cause::Program,
            subject: Subject::Process(actor, Share::Age),
            ..of(
                publisher,
                &ActiveSlot::default(),
                seconds(after.at_ns, publisher.started_ns),
                ENDED_SEVERITY,
            )
        }
    });
    gone.filter(|finding| finding.value >= OLD_S).collect()
}

fn seconds(at_ns: u64, since_ns: u64) -> f64 {
    match since_ns {
        0 => 0.0,
        since_ns => at_ns.saturating_sub(since_ns) as f64 / 1e9,
    }
}

fn is_blocked(slot: &ActiveSlot) -> bool {
    !slot.blocked_by.is_empty() || !slot.blocked_by_xids.is_empty()
}

/// Sessions at the ends of chains of waiting sessions.
fn blockers(recorded: &Recorded) -> Vec<Finding> {
    let mut found = Vec::new();
    for publisher in &recorded.programs.publishers {
        let mut waiters: BTreeMap<(u32, u32), Vec<&ActiveSlot>> = BTreeMap::new();
        for slot in publisher.slots.iter().filter(|slot| is_blocked(slot)) {
            waiters.entry(root(publisher, slot)).or_default().push(slot);
        }
        for ((pid, xid), mut slots) in waiters {
            let waited = |slot: &ActiveSlot| seconds(recorded.at_ns, slot.since_ns);
            slots.sort_by(|a, b| waited(b).total_cmp(&waited(a)));
            let longest = slots.first().map_or(0.0, |slot| waited(slot));
            if longest < WAIT_S {
                continue;
            }
            let holder = publisher
                .slots
                .iter()
                .find(|slot| (slot.pid, slot.xid) == (pid, xid));
            let none = ActiveSlot {
                pid,
                ..ActiveSlot::default()
            };
            let mut finding = of(publisher, holder.unwrap_or(&none), longest, WAIT_SEVERITY);
            if let Subject::Session { waiters, .. } = &mut finding.subject {
                *waiters = slots.len();
            }
            let parts = slots.iter().take(WAITERS_MAX);
            finding.parts = parts
                .map(|slot| of(publisher, slot, waited(slot), SLOW_SEVERITY))
                .collect();
            found.push(finding);
        }
    }
    found
}

/// The session that a session waits for in the end: its pid, and its number if it is a prepared transaction.
fn root(publisher: &Publisher, slot: &ActiveSlot) -> (u32, u32) {
    let mut now = slot;
    for _ in 0..CHAIN_MAX {
        let next = match (now.blocked_by.first(), now.blocked_by_xids.first()) {
            (Some(&pid), _) => (pid, 0),
            (None, Some(&xid)) => (0, xid),
            (None, None) => break,
        };
        let is_next = |slot: &&ActiveSlot| (slot.pid, slot.xid) == next;
        match publisher.slots.iter().find(is_next) {
            Some(slot) if is_blocked(slot) => now = slot,
            _ => return next,
        }
    }
    (now.pid, now.xid)
}

/// Commands that took long, the longest first.
fn commands(recorded: &Recorded) -> Vec<Finding> {
    let mut found = Vec::new();
    for publisher in &recorded.programs.publishers {
        for slot in publisher.slots.iter().filter(|slot| slot.state == ACTIVE) {
            let taken = seconds(recorded.at_ns, slot.since_ns);
            if taken >= SLOW_S {
                found.push(of(publisher, slot, taken, SLOW_SEVERITY));
            }
        }
    }
    found.sort_by(|a, b| b.value.total_cmp(&a.value));
    found.truncate(WAITERS_MAX);
    found
}

fn of(publisher: &Publisher, slot: &ActiveSlot, value: f64, severity: f64) -> Finding {
    Finding {
        cause: Cause::Lock,
        subject: Subject::Session {
            publisher: DisplayName(&publisher.name).text().into_owned(),
            pid: slot.pid,
            waiters: 0,
            state: slot.state,
            text: DisplayName(&slot.text).text().into_owned(),
        },
        value,
        usual: f64::NAN,
        unit: Unit::Seconds,
        score: f64::NAN,
        severity,
        since_ns: None,
        parts: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use kymo_wire::keeper::Programs;

    use super::*;

    #[test]
    fn programs_that_ended() {
        let program = |name: &str, started_s: u64, life| Publisher {
            name: name.into(),
            pid: 4711,
            started_ns: started_s * 1_000_000_000,
            life,
            ..Publisher::default()
        };
        let recorded = |at_s: u64, publishers: &[Publisher]| Recorded {
            at_ns: at_s * 1_000_000_000,
            programs: Programs {
                publishers: publishers.to_vec(),
                ..Programs::default()
            },
        };
        let (old, young) = (1_000, 9_900);
        let before = [
            program("goes on", old, Life::Alive),
            program("is gone", old, Life::Alive),
            program("says so", old, Life::Alive),
            program("began again", old, Life::Alive),
            program("is young", young, Life::Alive),
            program("was gone", old, Life::Ended),
        ];
        let after = [
            before[0].clone(),
            program("says so", old, Life::Ended),
            program("began again", young, Life::Alive),
        ];
        let found = ended(&recorded(10_000, &before), &recorded(10_060, &after));
        let told = found.iter().map(|finding| match &finding.subject {
            Subject::Process(actor, Share::Age) => format!("{} {}", actor.comm, finding.value),
            other => format!("{other:?}"),
        });
        let expected = ["is gone 9060", "says so 9060", "began again 9060"];
        assert_eq!(told.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn the_end_of_a_chain_is_blamed() {
        let slot = |pid, blocked_by: &[u32], since_s: u64| ActiveSlot {
            pid,
            state: ACTIVE,
            blocked_by: blocked_by.to_vec(),
            since_ns: since_s * 1_000_000_000,
            text: format!("command {pid}").into_bytes(),
            ..ActiveSlot::default()
        };
        let recorded = Recorded {
            at_ns: 100_000_000_000,
            programs: Programs {
                publishers: vec![Publisher {
                    name: b"postgresql".to_vec(),
                    slots: vec![
                        slot(1, &[], 50),
                        slot(2, &[1], 60),
                        slot(3, &[2], 70),
                        slot(4, &[5], 99),
                        // A circle ends too.
                        slot(5, &[4], 99),
                    ],
                    ..Publisher::default()
                }],
                ..Programs::default()
            },
        };
        let found = blockers(&recorded);
        let told: Vec<(u32, usize, f64, usize)> = found
            .iter()
            .filter_map(|finding| match &finding.subject {
                Subject::Session { pid, waiters, .. } => {
                    Some((*pid, *waiters, finding.value, finding.parts.len()))
                }
                _ => None,
            })
            .collect();
        assert_eq!(told[0], (1, 2, 40.0, 2));
        assert_eq!(commands(&recorded).len(), 3);
    }
}
