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
use gather::{Gathered, Track, gather, gather_each};
use judge::Question;
use signals::{Floor, Signal};

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
const LINES_MAX: usize = 35;
/// Part of the worst minute's score that another one needs to be named, and how far it is from worse ones of the same cause.
const OTHER_SHARE: f64 = 0.5;
const APART_NS: i64 = 5 * MINUTE_NS;
/// Most of them that are named beside the worst one.
const OTHERS_MAX: usize = 3;

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
    let mut spans = match when {
        When::Between(from_ns, thru_ns) => vec![(from_ns, thru_ns.max(from_ns + SECOND_NS))],
        When::WorstMinuteBefore(end_ns) => worst(recordings, end_ns)?,
    };
    loop {
        let mut answer = of_span(recordings, spans.remove(0))?;
        if !answer.findings.is_empty() || spans.is_empty() {
            answer.others = spans;
            return Ok(answer);
        }
    }
}

fn of_span(recordings: &Recordings, span: MinuteSpan) -> Result<Why, String> {
    let (from_ns, thru_ns) = span;
    let before_ns = before_ns(span);
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
        others: Vec::new(),
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

/// Where the values begin that are usual.
fn before_ns((from_ns, thru_ns): (i64, i64)) -> i64 {
    from_ns - HOUR_NS.max(thru_ns - from_ns) - EARLY_NS
}

/// The unusual values of a span.
fn unusual(gathered: &Gathered, span: (i64, i64)) -> Vec<Unusual<'_>> {
    let [memory_kb, cpus] = gathered.bases;
    let before_ns = before_ns(span);
    let judged = gathered.tracks.iter().filter_map(|track| {
        let verdict = match track.signal.floor {
            Floor::Any => any(track, span),
            Floor::Of(_) | Floor::OfMemory(_) | Floor::OfCpus(..) => Question {
                values: {
                    let is_old = |value: &gather::Value| value.thru_ns < before_ns;
                    &track.values[track.values.partition_point(is_old)..]
                },
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

/// A span, from a moment to another one.
type MinuteSpan = (i64, i64);

/// The minute of an hour in which the most was the most unusual, and behind it others that were bad, too.
fn worst(recordings: &Recordings, end_ns: i64) -> Result<Vec<MinuteSpan>, String> {
    let begin_ns = end_ns - 2 * HOUR_NS - EARLY_NS;
    let is_cheap = |signal: &Signal| !signal.id.starts_with("cgroups.");
    let times = (begin_ns, end_ns - MINUTE_NS, end_ns);
    let gathered = gather_each(recordings, times, &is_cheap)?;
    let minutes = (0..60).map(|n| {
        let thru_ns = end_ns - n * MINUTE_NS;
        let span = (thru_ns - MINUTE_NS, thru_ns);
        let mut by_cause: BTreeMap<finding::Cause, f64> = BTreeMap::new();
        for one in unusual(&gathered, span) {
            let entry = by_cause.entry(one.track.signal.cause).or_default();
            *entry = entry.max(one.severity());
        }
        let main = by_cause.iter().max_by(|a, b| a.1.total_cmp(b.1));
        BadMinute {
            score: by_cause.values().sum(),
            cause: main.map(|(cause, _)| *cause),
            span,
        }
    });
    Ok(pick_worst(minutes.collect()))
}

/// How bad a minute is, and its main cause.
struct BadMinute {
    score: f64,
    cause: Option<finding::Cause>,
    span: MinuteSpan,
}

/// The worst of these minutes, the first where none is bad; and others that are nearly as bad and no part of the same incident.
fn pick_worst(mut minutes: Vec<BadMinute>) -> Vec<MinuteSpan> {
    let last = minutes.first().map_or((0, 0), |minute| minute.span);
    minutes.sort_by(|a, b| b.score.total_cmp(&a.score));
    let most = minutes.first().map_or(0.0, |minute| minute.score);
    let mut picked: Vec<BadMinute> = Vec::new();
    for minute in minutes {
        let is_apart = |known: &BadMinute| {
            let apart_ns = (known.span.0 - minute.span.0).abs();
            let is_other = known.cause != minute.cause && apart_ns > MINUTE_NS;
            is_other || apart_ns > APART_NS
        };
        let is_bad = minute.score > 0.0 && minute.score >= OTHER_SHARE * most;
        if is_bad && picked.len() <= OTHERS_MAX && picked.iter().all(is_apart) {
            picked.push(minute);
        }
    }
    match picked.is_empty() {
        true => vec![last],
        false => picked.into_iter().map(|minute| minute.span).collect(),
    }
}

#[cfg(test)]
mod tests;
