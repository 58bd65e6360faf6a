//! Unusual values, processes and marks as findings: one for each cause, with its processes below it.

use std::collections::BTreeMap;

use kymo_base::field::Unit;

use super::actors::{Cast, Ranked};
use super::finding::{Cause, Finding, Share, Subject};
use super::gather::Track;
use super::judge::Verdict;
use crate::marks::{Kind, Mark};

/// Most lines below a finding: those who did it, and other fields.
const ACTORS_MAX: usize = 3;
const FIELDS_MAX: usize = 4;
/// Most processes that are named where the killed one is not certain.
const GONE_MAX: usize = 3;
/// Most findings of the recording itself.
const MARKS_MAX: usize = 4;
/// Scores beyond this make nothing worse.
const SCORE_MAX: f64 = 10.0;
/// Seconds that a process has to wait in state D.
const STUCK_S: f64 = 8.0;
/// Seconds that a process has to be old for its end to be worth a line.
const OLD_S: f64 = 21_600.0;
/// Share of what a group has that one below it has, so that the group itself is not named.
const MOST: f64 = 0.7;

/// An unusual field.
pub(super) struct Unusual<'a> {
    pub track: &'a Track,
    pub verdict: Verdict,
}

impl Unusual<'_> {
    /// How bad it is.
    pub(super) fn severity(&self) -> f64 {
        self.track.signal.weight * self.verdict.score.min(SCORE_MAX).ln_1p()
    }

    fn finding(&self) -> Finding {
        Finding {
            cause: self.track.signal.cause,
            subject: Subject::Field {
                id: self.track.id.clone(),
                help: self.track.help,
                private: self.track.private,
            },
            value: self.verdict.value,
            usual: self.verdict.usual,
            unit: self.track.unit,
            score: self.verdict.score,
            severity: self.severity(),
            since_ns: self.verdict.since_ns,
            parts: Vec::new(),
        }
    }

    fn is(&self, field: &str) -> bool {
        self.track.id == field
    }
}

/// All findings, worst first; `memory_kb` of the machine.
pub(super) fn fold(
    unusual: Vec<Unusual>,
    cast: &Cast,
    marks: &[Mark],
    memory_kb: f64,
) -> Vec<Finding> {
    let unusual = without_outer_groups(unusual);
    let has = |field: &str| unusual.iter().any(|one| one.is(field));
    let is_swapping = has("memory.swap_in") || has("memory.swap_out");
    let forks = has("cpu.forks");
    let mut by_cause: BTreeMap<Cause, Vec<&Unusual>> = BTreeMap::new();
    for one in &unusual {
        by_cause
            .entry(one.track.signal.cause)
            .or_default()
            .push(one);
    }
    let mut findings = recorded(marks);
    for (cause, mut fields) in by_cause {
        fields.sort_by(|a, b| b.severity().total_cmp(&a.severity()));
        let Some((head, rest)) = fields.split_first() else {
            continue;
        };
        let mut finding = head.finding();
        if cause == Cause::OomKill {
            finding.severity = 4.0;
        }
        finding.parts = actors(cause, &fields, cast, memory_kb, forks);
        let rest = rest.iter().take(FIELDS_MAX).map(|one| one.finding());
        match cause {
            // The group is known for certain, the process is not.
            Cause::OomKill => drop(finding.parts.splice(0..0, rest)),
            _ => finding.parts.extend(rest),
        }
        finding.since_ns = fields.iter().filter_map(|one| one.verdict.since_ns).min();
        findings.push(finding);
    }
    findings.extend(stuck(cast));
    findings.extend(ended(cast));
    fold_into(&mut findings, Cause::OomKill, Cause::Memory, FIELDS_MAX);
    if is_swapping {
        fold_into(&mut findings, Cause::Memory, Cause::Disk, 2);
    }
    fold_into(&mut findings, Cause::Network, Cause::Interrupt, 1);
    fold_into(&mut findings, Cause::Cpu, Cause::Interrupt, 1);
    findings
}

/// Puts the finding of one cause below that of another, if there are both.
fn fold_into(findings: &mut Vec<Finding>, cause: Cause, effect: Cause, most: usize) {
    let place = |findings: &[Finding], cause| findings.iter().position(|each| each.cause == cause);
    let (Some(_), Some(below)) = (place(findings, cause), place(findings, effect)) else {
        return;
    };
    let mut folded = findings.remove(below);
    let Some(above) = place(findings, cause) else {
        return;
    };
    let above = &mut findings[above];
    above.severity = above.severity.max(folded.severity);
    let parts = std::mem::take(&mut folded.parts);
    let known = |part: &Finding| above.parts.iter().any(|each| each.subject == part.subject);
    let parts: Vec<Finding> = parts.into_iter().filter(|part| !known(part)).collect();
    above.parts.push(folded);
    above.parts.extend(parts.into_iter().take(most));
}

/// Leaves out groups if one below has most of the unusual value.
fn without_outer_groups(unusual: Vec<Unusual>) -> Vec<Unusual> {
    let amount = |one: &Unusual| (one.verdict.value - one.verdict.usual).abs();
    let is_outer = |one: &Unusual| {
        let Some((field, group)) = one.track.id.split_once(':') else {
            return false;
        };
        one.track.private
            && unusual.iter().any(|other| {
                let inner = other.track.id.split_once(':');
                let below = inner
                    .filter(|(of, _)| *of == field)
                    .and_then(|(_, inner)| inner.strip_prefix(group.trim_end_matches('/')));
                below.is_some_and(|rest| rest.len() > 1 && rest.starts_with('/'))
                    && amount(other) >= MOST * amount(one)
            })
    };
    let keeps: Vec<bool> = unusual.iter().map(|one| !is_outer(one)).collect();
    let kept = unusual.into_iter().zip(keeps);
    kept.filter_map(|(one, keep)| keep.then_some(one)).collect()
}

/// The process that was killed for want of memory, or those that it may be. Others end, too; the killed one was in a group that
/// had a kill.
fn killed(fields: &[&Unusual], cast: &Cast) -> Vec<Ranked> {
    let ids = fields.iter().map(|one| one.track.id.split_once(':'));
    let groups: Vec<&str> = ids.flatten().map(|(_, group)| group).collect();
    let is_known = |ranked: &Ranked| groups.contains(&ranked.actor.group.as_str());
    let mut gone = cast.gone();
    gone.sort_by_key(|ranked| !is_known(ranked));
    let is_certain = gone.first().is_some_and(is_known);
    gone.truncate(if is_certain { 1 } else { GONE_MAX });
    gone
}

/// Processes behind a finding, most first.
fn actors(
    cause: Cause,
    fields: &[&Unusual],
    cast: &Cast,
    memory_kb: f64,
    forks: bool,
) -> Vec<Finding> {
    let by = |share: Share, least: f64| said(cause, share, cast.most(share), least);
    let mut found = match cause {
        Cause::Cpu | Cause::Interrupt => {
            let mut found = match forks {
                true => forked(cause, cast),
                false => Vec::new(),
            };
            found.extend(by(Share::Cpu, 10.0));
            found
        }
        Cause::Memory => by(Share::Memory, (0.005 * memory_kb).max(16_384.0)),
        Cause::OomKill => {
            let mut found = said(cause, Share::Memory, killed(fields, cast), 8_192.0);
            found.extend(by(Share::Memory, (0.01 * memory_kb).max(16_384.0)));
            found
        }
        Cause::Disk | Cause::FileSystem => {
            let mut found = by(Share::Written, 500.0);
            let read = by(Share::Read, 500.0);
            let most =
                |found: &[Finding]| found.first().map_or(0.0, |most| most.value - most.usual);
            match most(&read) > most(&found) {
                true => drop(found.splice(0..0, read)),
                false => found.extend(read),
            }
            if found.is_empty() {
                found = by(Share::Calls, 2_000.0);
            }
            found
        }
        Cause::Network => {
            let mut found = by(Share::Calls, 500.0);
            if found.is_empty() {
                found = by(Share::Cpu, 3.0);
            }
            found
        }
        Cause::Numa => by(Share::Memory, (0.01 * memory_kb).max(65_536.0)),
        Cause::Recording
        | Cause::Lock
        | Cause::Stuck
        | Cause::Steal
        | Cause::Sensor
        | Cause::Ended
        | Cause::Silent
        | Cause::Program => Vec::new(),
    };
    // A fall has no one who did it.
    let is_fall = |one: &&Unusual| one.verdict.value < one.verdict.usual;
    if cause == Cause::Network && fields.first().is_some_and(is_fall) {
        found.clear();
    }
    found.truncate(ACTORS_MAX);
    found
}

/// Names of which many were born, each with its parent.
fn forked(cause: Cause, cast: &Cast) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    for born in cast
        .born()
        .into_iter()
        .take(1)
        .filter(|born| born.value > 5.0)
    {
        let parent = cast.parent_of_most(&born.actor.comm);
        found.extend(parent.map(|parent| person(cause, Share::Born, parent)));
        found.push(person(cause, Share::Born, born));
    }
    let children = cast.most(Share::Children);
    let most = said(cause, Share::Children, children, 10.0);
    let is_known = |part: &Finding| found.iter().any(|known| comm(known) == comm(part));
    let most: Vec<Finding> = most
        .into_iter()
        .take(2)
        .filter(|part| !is_known(part))
        .collect();
    found.splice(0..0, most);
    found
}

fn comm(finding: &Finding) -> Option<&str> {
    match &finding.subject {
        Subject::Process(actor, _) => Some(&actor.comm),
        _ => None,
    }
}

/// Processes that took at least so much more than usual, and not a small part of what the first took.
fn said(cause: Cause, share: Share, ranked: Vec<Ranked>, least: f64) -> Vec<Finding> {
    let more = |ranked: &Ranked| ranked.value - ranked.usual;
    let first = ranked.first().map_or(0.0, &more);
    let ranked = ranked
        .into_iter()
        .filter(|ranked| more(ranked) >= least.max(0.15 * first));
    let ranked = ranked.take(ACTORS_MAX);
    ranked.map(|ranked| person(cause, share, ranked)).collect()
}

fn person(cause: Cause, share: Share, ranked: Ranked) -> Finding {
    Finding {
        cause,
        subject: Subject::Process(ranked.actor, share),
        value: ranked.value,
        usual: ranked.usual,
        unit: share.unit(),
        score: f64::NAN,
        severity: 0.0,
        since_ns: None,
        parts: Vec::new(),
    }
}

/// Processes that wait without an end, as one finding.
fn stuck(cast: &Cast) -> Option<Finding> {
    let mut all = cast.stuck(STUCK_S).into_iter();
    let mut one = |severity: f64| {
        let ranked = all.next()?;
        Some(Finding {
            severity,
            ..person(Cause::Stuck, Share::Waiting, each(ranked))
        })
    };
    let head = one(2.7)?;
    let parts = std::iter::from_fn(|| one(0.0)).take(ACTORS_MAX).collect();
    Some(Finding { parts, ..head })
}

/// Processes of one name with the mean of their values, where a sum has no meaning.
fn each(ranked: Ranked) -> Ranked {
    let count = u32::try_from(ranked.actor.count.max(1)).unwrap_or(1);
    Ranked {
        value: ranked.value / f64::from(count),
        usual: f64::NAN,
        ..ranked
    }
}

/// Long-lived processes that ended, as one finding.
fn ended(cast: &Cast) -> Option<Finding> {
    let ended = cast.ended(OLD_S).into_iter().take(ACTORS_MAX);
    let mut found = ended.map(|ranked| person(Cause::Ended, Share::Age, each(ranked)));
    let head = found.next()?;
    Some(Finding {
        severity: 0.5,
        parts: found.collect(),
        ..head
    })
}

/// Marks of the recording: a finding of each kind.
fn recorded(marks: &[Mark]) -> Vec<Finding> {
    let severity = |kind: Kind| match kind {
        Kind::Boot => Some(5.0),
        Kind::Gap => Some(3.0),
        Kind::Clock | Kind::Suspend => Some(2.5),
        Kind::Missed => Some(1.2),
        Kind::Slow => Some(1.0),
        Kind::Failure => Some(2.0),
        Kind::Warning => Some(1.2),
        Kind::Start | Kind::Note | Kind::Okay => None,
    };
    let mut found: Vec<Finding> = Vec::new();
    for mark in marks {
        let Some(severity) = severity(mark.kind) else {
            continue;
        };
        let is_same = |known: &&mut Finding| match &known.subject {
            Subject::Mark(kind, _) => *kind == mark.kind,
            _ => false,
        };
        if let Some(known) = found.iter_mut().find(is_same) {
            known.value += 1.0;
            continue;
        }
        found.push(Finding {
            cause: Cause::Recording,
            subject: Subject::Mark(mark.kind, mark.text.clone()),
            value: 1.0,
            usual: f64::NAN,
            unit: Unit::Count,
            score: f64::NAN,
            severity,
            since_ns: Some(mark.from_ns),
            parts: Vec::new(),
        });
    }
    found.truncate(MARKS_MAX);
    found
}
