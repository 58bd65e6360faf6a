//! "Why?": unusual values of a span, against the hour before it and the same time on earlier days, and the processes behind them.
//!
//! The choice of lines is described in docs/why.md.

mod actors;
mod finding;
mod fold;
mod gather;
mod judge;
#[cfg(feature = "store")]
mod senders;
mod sessions;
mod signals;

use std::collections::{BTreeMap, BTreeSet};

use kymo_recording::reader::{Kinds, TimeRange};
#[cfg(feature = "store")]
use kymo_series::Reader;

use crate::marks::Kind;
use crate::open::Recordings;
use crate::source::Step;

use actors::Cast;
use finding::worst_first;
use fold::Unusual;
use gather::{Gathered, Track, gather};
use judge::Question;
use signals::{Floor, Signal, Way};

pub use finding::{Actor, Cause, Finding, Share, Subject, Why};

const SECOND_NS: i64 = 1_000_000_000;
const MINUTE_NS: i64 = 60 * SECOND_NS;
const HOUR_NS: i64 = 60 * MINUTE_NS;
const DAY_NS: i64 = 24 * HOUR_NS;
/// Jobs of each hour come a little early or late.
const EARLY_NS: i64 = 3 * MINUTE_NS;
/// Days before on which the same time is looked at.
const DAYS: [i64; 3] = [1, 2, 7];
/// Most lines of an answer.
const LINES_MAX: usize = 38;

/// Span that is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// From and up to these moments, in nanoseconds since 1970.
    Between(i64, i64),
    /// The worst minute of the hour that ends at this moment.
    WorstMinuteBefore(i64),
}

impl When {
    /// The minute around a moment.
    pub fn around(at_ns: i64) -> When {
        When::Between(at_ns - MINUTE_NS / 2, at_ns + MINUTE_NS / 2)
    }
}

/// Finds the unusual values of a span. Without a sample in it there are only the findings of the recording itself.
pub fn why(recordings: &Recordings, when: When) -> Result<Why, String> {
    let (from_ns, thru_ns) = match when {
        When::Between(from_ns, thru_ns) => (from_ns, thru_ns.max(from_ns + SECOND_NS)),
        When::WorstMinuteBefore(end_ns) => worst(recordings, end_ns)?,
    };
    let span = (from_ns, thru_ns);
    let before_ns = from_ns - HOUR_NS.max(thru_ns - from_ns) - EARLY_NS;
    let gathered = gather(recordings, (before_ns, from_ns, thru_ns), &|_| true)?;
    let mut why = Why {
        from_ns,
        thru_ns,
        before_ns: before_ns.max(gathered.moments.first().copied().unwrap_or(before_ns)),
        samples: counts(&gathered, span),
        days: 0,
        interval_ns: gathered.interval_ns(),
        context: gathered.context.clone(),
        findings: Vec::new(),
        problem: String::new(),
    };
    let mut unusual = unusual(&gathered, span);
    if !unusual.is_empty() {
        let (days, usual) = earlier(recordings, span, &unusual)?;
        why.days = days;
        unusual.retain(|one| !usual.contains(&one.track.id));
    }
    let since_ns = unusual.iter().filter_map(|one| one.verdict.since_ns).min();
    let cast = Cast::read(recordings, span, since_ns.unwrap_or(from_ns))?;
    let marks: Vec<_> = gathered
        .marks
        .iter()
        .filter(|mark| mark.until_ns >= from_ns && mark.from_ns <= thru_ns)
        .filter(|mark| {
            let is_common = matches!(mark.kind, Kind::Slow | Kind::Missed);
            !is_common || is_rare(&gathered, mark.kind, span)
        })
        .cloned()
        .collect();
    let mut findings = fold::fold(unusual, &cast, &marks, gathered.bases[0]);
    findings.extend(sessions::findings(recordings, span)?);
    why.findings = findings;
    why.put_in_order();
    Ok(why)
}

/// Adds what a store knows of the same span: hosts, devices and programs that fell silent, and unusual values of programs.
#[cfg(feature = "store")]
pub fn add_stored(why: &mut Why, reader: &dyn Reader) {
    match senders::findings(reader, (why.from_ns, why.thru_ns)) {
        Ok(found) => {
            why.findings.extend(found);
            why.put_in_order();
        }
        Err(error) => why.problem = error.to_string(),
    }
}

impl Why {
    /// Sorts the findings, and drops those for which there is no room.
    fn put_in_order(&mut self) {
        worst_first(&mut self.findings);
        let mut lines = 0;
        self.findings.retain(|finding| {
            lines += finding.lines();
            lines <= LINES_MAX
        });
    }
}

/// The moment of the last sample, in nanoseconds since 1970. `None`: there is none.
pub fn last_ns(recordings: &Recordings) -> Result<Option<i64>, String> {
    let mut source = recordings.open(TimeRange::ALL, Kinds::NONE)?;
    let mut last = None;
    while let Some(step) = source.next()? {
        if let Step::Sample(moment) = step {
            last = Some(moment.real_ns);
        }
    }
    Ok(last)
}

/// Samples in a span, and before it.
fn counts(gathered: &Gathered, (from_ns, thru_ns): (i64, i64)) -> (usize, usize) {
    let moments = || gathered.moments.iter();
    let within = moments().filter(|ns| (from_ns..=thru_ns).contains(ns));
    (
        within.count(),
        moments().filter(|ns| **ns < from_ns).count(),
    )
}

/// True if a mark of this kind comes at least three times as often in the span as before it.
fn is_rare(gathered: &Gathered, kind: Kind, (from_ns, thru_ns): (i64, i64)) -> bool {
    let all = || gathered.marks.iter().filter(|mark| mark.kind == kind);
    let within = all().filter(|mark| (from_ns..=thru_ns).contains(&mark.from_ns));
    let before = all().filter(|mark| mark.from_ns < from_ns).count();
    let spans = HOUR_NS / (thru_ns - from_ns).max(1);
    let within = i64::try_from(within.count()).unwrap_or(0);
    within * spans > 3 * i64::try_from(before).unwrap_or(i64::MAX)
}

/// The unusual values of a span.
fn unusual(gathered: &Gathered, span: (i64, i64)) -> Vec<Unusual<'_>> {
    let [memory_kb, cpus] = gathered.bases;
    let judged = gathered.tracks.iter().filter_map(|track| {
        let verdict = match track.signal.floor {
            Floor::Any => any(track, span),
            Floor::Of(_) | Floor::OfMemory(_) | Floor::OfCpus(..) => Question {
                values: &track.values,
                span,
                floor: floor(track.signal, memory_kb, cpus)?,
                way: track.signal.way,
                is_stock: is_stock(track.signal),
            }
            .verdict(),
        };
        Some(Unusual {
            track,
            verdict: verdict?,
        })
    });
    judged.collect()
}

/// Least usual distance of a signal; `None`: it cannot be known.
fn floor(signal: &Signal, memory_kb: f64, cpus: f64) -> Option<f64> {
    match signal.floor {
        Floor::Of(floor) => Some(floor),
        Floor::OfMemory(share) => (memory_kb > 0.0).then_some(share * memory_kb),
        Floor::OfCpus(percent, least) => Some(least.max(percent * cpus)),
        Floor::Any => None,
    }
}

/// True for an amount that only adds up.
fn is_stock(signal: &Signal) -> bool {
    matches!(signal.floor, Floor::OfMemory(_)) || signal.id.ends_with("_percent:*")
}

/// Events of which each is news: how many there were in the span.
fn any(track: &Track, (from_ns, thru_ns): (i64, i64)) -> Option<judge::Verdict> {
    let within = track
        .values
        .iter()
        .filter(|value| value.thru_ns > from_ns && value.thru_ns <= thru_ns + 2 * SECOND_NS);
    let events = within.map(|value| {
        let seconds = (value.thru_ns - value.from_ns) as f64 / 1e9;
        value.value.max(0.0) * seconds
    });
    let count = events.sum::<f64>().round();
    (count >= 1.0).then_some(judge::Verdict {
        value: count,
        usual: 0.0,
        score: 10.0,
        since_ns: None,
    })
}

/// Days that could be looked at, and the fields that were as unusual at the same time on most of them.
fn earlier(
    recordings: &Recordings,
    (from_ns, thru_ns): (i64, i64),
    unusual: &[Unusual],
) -> Result<(usize, BTreeSet<String>), String> {
    let ids: BTreeSet<&str> = unusual.iter().map(|one| one.track.signal.id).collect();
    let (mut days, mut seen) = (0, BTreeMap::<String, usize>::new());
    for day in DAYS {
        let (from_ns, thru_ns) = (from_ns - day * DAY_NS, thru_ns - day * DAY_NS);
        let span = (from_ns - EARLY_NS, from_ns - EARLY_NS, thru_ns + EARLY_NS);
        let then = gather(recordings, span, &|signal| ids.contains(signal.id))?;
        // Files of collectl give everything, and recordings one sample before the range.
        if then
            .moments
            .iter()
            .filter(|ns| **ns >= span.0 && **ns <= span.2)
            .count()
            < 3
        {
            continue;
        }
        days += 1;
        for one in unusual {
            let same = then.tracks.iter().find(|track| track.id == one.track.id);
            let half = (one.verdict.value + one.verdict.usual) / 2.0;
            let is_up = one.verdict.value > one.verdict.usual;
            let was_so = same.is_some_and(|track| {
                let values = track.values.iter().filter(|value| value.thru_ns >= span.0);
                let alike: Vec<bool> = values.map(|value| (value.value >= half) == is_up).collect();
                match is_up {
                    true => alike.contains(&true),
                    false => !alike.is_empty() && !alike.contains(&false),
                }
            });
            if was_so && one.track.signal.floor != Floor::Any {
                *seen.entry(one.track.id.clone()).or_default() += 1;
            }
        }
    }
    let most = seen.into_iter().filter(|(_, count)| count * 2 > days);
    Ok((days, most.map(|(id, _)| id).collect()))
}

/// The minute of an hour in which the most was the most unusual.
fn worst(recordings: &Recordings, end_ns: i64) -> Result<(i64, i64), String> {
    let begin_ns = end_ns - HOUR_NS;
    let is_cheap = |signal: &Signal| !signal.id.starts_with("cgroups.") && signal.way != Way::Both;
    let gathered = gather(recordings, (begin_ns, begin_ns, end_ns), &is_cheap)?;
    let [memory_kb, cpus] = gathered.bases;
    let last = (end_ns - MINUTE_NS, end_ns);
    let mut best = (0.0, last);
    let minutes = (0..60).map(|n| end_ns - n * MINUTE_NS);
    let scores: Vec<(&Track, f64, f64)> = gathered
        .tracks
        .iter()
        .filter_map(|track| {
            let floor = match track.signal.floor {
                Floor::Any => 0.1,
                _ => floor(track.signal, memory_kb, cpus)?,
            };
            Some((track, judge::median(&track.values), floor))
        })
        .collect();
    for thru_ns in minutes {
        let span = (thru_ns - MINUTE_NS, thru_ns);
        let mut by_cause: BTreeMap<finding::Cause, f64> = BTreeMap::new();
        for (track, median, floor) in &scores {
            let sign = if track.signal.way == Way::Down {
                -1.0
            } else {
                1.0
            };
            let values = track.values.iter();
            let within = values.filter(|value| value.thru_ns > span.0 && value.thru_ns <= span.1);
            let most = within.map(|value| sign * (value.value - median) / floor);
            let most = most.fold(0.0, f64::max).min(10.0);
            let entry = by_cause.entry(track.signal.cause).or_default();
            *entry = entry.max(track.signal.weight * most.ln_1p());
        }
        let all: f64 = by_cause.values().sum();
        if all > best.0 {
            best = (all, span);
        }
    }
    Ok(match best.0 > 1.0 {
        true => best.1,
        false => last,
    })
}

#[cfg(test)]
mod tests;
