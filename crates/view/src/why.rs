//! The words of "why?": a line a finding, with the command that proves it, and the same as JSON.

use kymo_base::field::Unit;
use kymo_base::name::DisplayName;
use kymo_kernel::subsystem;
use kymo_query::marks::Kind;
use kymo_query::why::{Cause, Finding, Share, Subject, Why};

use crate::form;
use crate::format::put_epoch;
use crate::json::put_string;
use crate::svg::shown;
use crate::time::Zone;

const SECOND_NS: i64 = 1_000_000_000;
/// Samples farther apart than this hide short spikes.
const COARSE_NS: i64 = 10 * SECOND_NS;
/// Characters of a command of a session.
const COMMAND_MAX: usize = 60;
/// Names of senders that fell silent together.
const NAMES_MAX: usize = 3;
/// Begin of the rest of a broken line.
const BROKEN: &str = "         ";
/// Begin of the line about a store that does not answer.
const UNSEEN: &str = "hosts, devices and programs are not looked at";

/// Writes an answer: a line about the question, then the findings. `place`: the paths, as a shell wants them.
pub fn text(why: &Why, place: &str) -> String {
    let mut zone = Zone::of(&why.context);
    let mut out = head(why, &mut zone);
    for (n, finding) in (1..).zip(&why.findings) {
        put(
            &mut out,
            &format!("{n:>2} "),
            finding,
            why,
            &mut zone,
            place,
        );
    }
    for &(from_ns, thru_ns) in &why.others {
        let [from, thru] = [from_ns, thru_ns].map(|ns| clock(&mut zone, ns));
        let command = others_command((from_ns, thru_ns), &mut zone, place);
        out.push_str(&format!("   also unusual: {from}-{thru}  | {command}\n"));
    }
    if !why.problem.is_empty() {
        let problem = DisplayName(why.problem.as_bytes());
        out.push_str(&format!("   {UNSEEN}: {problem}\n"));
    }
    out
}

/// The command that asks about another minute.
fn others_command((from_ns, thru_ns): (i64, i64), zone: &mut Zone, place: &str) -> String {
    let [from, thru] = [from_ns, thru_ns].map(|ns| moment(zone, ns));
    format!("kymo why {from}-{thru} {place}")
}

/// A text for a terminal of this width: where a line is longer, its command is below it, and both are broken at blanks.
pub fn broken(text: &str, columns: usize) -> String {
    let mut out = String::new();
    for line in text.lines() {
        match line.split_once("  | ") {
            Some((line, command)) if fits(line, columns, command.chars().count() + 4) => {
                out.push_str(&format!("{line}  | {command}\n"));
            }
            Some((line, command)) => {
                put_broken(&mut out, line, columns, "");
                put_broken(&mut out, &format!("       $ {command}"), columns, " \\");
            }
            None => put_broken(&mut out, line, columns, ""),
        }
    }
    out
}

/// True if a text fits together with more columns at its end.
fn fits(text: &str, columns: usize, more: usize) -> bool {
    text.chars().count() + more <= columns
}

/// Puts a text in lines of this width; `end`: behind each but the last.
fn put_broken(out: &mut String, text: &str, columns: usize, end: &str) {
    let (mut line, mut held) = (String::new(), String::new());
    for word in text.split_inclusive(' ') {
        held.push_str(word);
        // A switch stays with its value.
        if word.starts_with("--") && word.ends_with(' ') {
            continue;
        }
        let more = held.trim_end().chars().count() + end.len();
        if !line.trim().is_empty() && !fits(&line, columns, more) {
            out.push_str(line.trim_end());
            out.push_str(end);
            out.push('\n');
            line = BROKEN.into();
        }
        line.push_str(&std::mem::take(&mut held));
    }
    out.push_str(line.trim_end());
    out.push('\n');
}

fn put(out: &mut String, before: &str, finding: &Finding, why: &Why, zone: &mut Zone, place: &str) {
    let line = line(finding, zone);
    let proof = proof(finding, why, zone, place);
    out.push_str(&format!("{before}{line}  | {proof}\n"));
    for part in &finding.parts {
        put(out, "     ", part, why, zone, place);
    }
}

/// The line above the findings.
fn head(why: &Why, zone: &mut Zone) -> String {
    let host = why.context.get("host").unwrap_or_default();
    let host = DisplayName(host.as_bytes());
    let (from, thru) = (date(zone, why.from_ns), clock(zone, why.thru_ns));
    let mut out = format!("{host} {from}-{thru}");
    let seconds = (why.from_ns - why.before_ns) / SECOND_NS;
    let before = match seconds >= 120 {
        true => format!("{} min", seconds / 60),
        false => format!("{seconds} s"),
    };
    match why.samples {
        (0, _) => out.push_str(": nothing was recorded then"),
        (_, 0) => out.push_str(": nothing was recorded before it, so nothing is known to be usual"),
        _ => out.push_str(&format!(" against {before} before it")),
    }
    match why.days {
        0 => {}
        1 => out.push_str(" and an earlier day"),
        days => out.push_str(&format!(" and {days} earlier days")),
    }
    if why.interval_ns > COARSE_NS {
        let seconds = why.interval_ns / SECOND_NS;
        out.push_str(&format!(
            "; samples are {seconds} s apart: what was shorter is not seen"
        ));
    }
    if why.findings.is_empty() && why.samples.0 > 0 && why.samples.1 > 0 {
        out.push_str(": nothing unusual");
    }
    out.push('\n');
    out
}

/// A finding in words.
pub fn line(finding: &Finding, zone: &mut Zone) -> String {
    let mut out = match &finding.subject {
        Subject::Field { id, help, .. } => field(id, help, finding),
        Subject::Process(actor, share) => {
            let who = match actor.count {
                0 | 1 => format!("{} ({})", actor.comm, actor.pid),
                count => format!("{} x {count}", actor.comm),
            };
            process(&who, *share, finding, actor.is_new)
        }
        Subject::Mark(kind, text) => mark(*kind, text, finding),
        Subject::Session {
            publisher,
            pid,
            waiters,
            text,
            ..
        } => session(publisher, *pid, *waiters, text, finding),
        Subject::Silence {
            kind,
            names,
            back_ns,
        } => silence(kind, names, *back_ns, finding, zone),
        Subject::Metric { publisher, name } => {
            let value = amount(finding.unit, finding.value);
            format!("program {publisher}: {name} {value}{}", usually(finding))
        }
    };
    let since_ns = finding
        .since_ns
        .filter(|_| !matches!(finding.subject, Subject::Mark(..) | Subject::Silence { .. }));
    if let Some(since_ns) = since_ns {
        out.push_str(&format!(", since {}", clock(zone, since_ns)));
    }
    out
}

/// A value with three digits and its unit.
fn amount(unit: Unit, value: f64) -> String {
    if value == 0.0 {
        return "0".into();
    }
    let shown = shown(unit, value);
    let value = value / shown.size;
    let number = match value.abs() {
        large if large >= 100.0 => format!("{value:.0}"),
        middle if middle >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    };
    let number = match number.contains('.') {
        true => number
            .trim_end_matches('0')
            .trim_end_matches('.')
            .to_string(),
        false => number,
    };
    match shown.name {
        "" => number,
        unit if unit.starts_with('/') => format!("{number}{unit}"),
        unit => format!("{number} {unit}"),
    }
}

/// `, usually 3 %`; nothing where that is not known.
fn usually(finding: &Finding) -> String {
    match finding.usual.is_nan() {
        true => String::new(),
        false => format!(", usually {}", amount(finding.unit, finding.usual)),
    }
}

fn field(id: &str, help: &str, finding: &Finding) -> String {
    let (field, instance) = id.split_once(':').unwrap_or((id, ""));
    let subsystem = field.split('.').next().unwrap_or_default();
    let help = match field {
        "cpu.user_and_nice" => "user mode",
        "cpu.forks" => "processes and threads born",
        "memory.oom_kills" | "cgroups.oom_kills" => "processes killed for want of memory",
        _ => help,
    };
    let what = match subsystem {
        "cpu" => "CPU",
        "net" => "network",
        "cgroups" => "group",
        "filesystems" => "file system",
        "inodes" => "files",
        "nfs_mounts" => "NFS",
        "numa" => "NUMA node",
        "tcp" => "network",
        other => other,
    };
    let mut small = help.chars();
    let help: String = match (small.next(), small.clone().next()) {
        (Some(first), Some(second)) if !second.is_uppercase() => {
            first.to_lowercase().chain(small).collect()
        }
        _ => help.into(),
    };
    let unit = match finding.cause {
        Cause::OomKill => Unit::Count,
        _ => finding.unit,
    };
    let value = amount(unit, finding.value);
    let instance = match instance {
        "" => String::new(),
        instance => format!(" {instance}"),
    };
    match finding.cause {
        Cause::OomKill => format!("{what}{instance}: {help}: {value}"),
        _ => format!("{what}{instance}: {help} {value}{}", usually(finding)),
    }
}

fn process(who: &str, share: Share, finding: &Finding, is_new: bool) -> String {
    let value = amount(finding.unit, finding.value);
    let usual = match is_new {
        true => ", new".into(),
        false => usually(finding),
    };
    match share {
        Share::Cpu => format!("{who} takes {value} of a CPU on average{usual}"),
        Share::Read => format!("{who} reads {value} on average{usual}"),
        Share::Written => format!("{who} writes {value} on average{usual}"),
        Share::Calls => format!("{who} reads and writes {value} by system calls on average{usual}"),
        Share::Memory if finding.cause == Cause::OomKill && finding.usual == 0.0 && !is_new => {
            format!("{who} had {value} and is gone")
        }
        Share::Memory => {
            let before = match is_new || finding.usual.is_nan() {
                true => usual,
                false => format!(", {} before that", amount(finding.unit, finding.usual)),
            };
            format!("{who} has {value} of memory{before}")
        }
        Share::Born if finding.usual.is_nan() => format!("{who} started {value} of them"),
        Share::Born => format!("{value} of the new processes were {}", comm(finding)),
        Share::Children => format!("{who}: its children took {value} of a CPU on average{usual}"),
        Share::Waiting => {
            format!("{who} waits in the kernel and does nothing for {value}, state D")
        }
        Share::Age => format!("{who} ended after {}", hours(finding.value)),
    }
}

fn comm(finding: &Finding) -> &str {
    match &finding.subject {
        Subject::Process(actor, _) => &actor.comm,
        _ => "",
    }
}

fn hours(seconds: f64) -> String {
    match seconds / 3600.0 {
        hours if hours < 2.0 => format!("{:.0} min", seconds / 60.0),
        hours if hours < 48.0 => format!("{hours:.0} h"),
        hours => format!("{:.0} days", hours / 24.0),
    }
}

fn mark(kind: Kind, text: &str, finding: &Finding) -> String {
    let text = DisplayName(text.as_bytes());
    let more = match finding.value > 1.5 {
        true => format!(", {} times", finding.value),
        false => String::new(),
    };
    format!("recording: {}: {text}{more}", kind.name())
}

fn session(publisher: &str, pid: u32, waiters: usize, text: &str, finding: &Finding) -> String {
    let value = amount(finding.unit, finding.value);
    let who = match pid {
        0 => format!("{publisher}: a prepared transaction"),
        pid => format!("{publisher}: session {pid}"),
    };
    let command: String = text.chars().take(COMMAND_MAX).collect();
    let command = match command.is_empty() {
        true => String::new(),
        false => format!(": {command}"),
    };
    match waiters {
        0 => format!("{who} for {value}{command}"),
        1 => format!("{who} holds up another one for {value}{command}"),
        waiters => format!("{who} holds up {waiters} others for {value}{command}"),
    }
}

/// Senders that fell silent: the name of one, or how many and the first of them.
fn silence(
    kind: &str,
    names: &[String],
    back_ns: Option<i64>,
    finding: &Finding,
    zone: &mut Zone,
) -> String {
    let did = match kind {
        "host" => "sent",
        "program" => "counted",
        _ => "answered",
    };
    let who = match names {
        [name] => format!("{kind} {name}"),
        names => {
            let more = if names.len() > NAMES_MAX { " ..." } else { "" };
            let first = names[..names.len().min(NAMES_MAX)].join(", ");
            format!("{} {kind}s ({first}{more})", names.len())
        }
    };
    let since = clock(zone, finding.since_ns.unwrap_or(0));
    let when = match back_ns {
        None => format!("since {since}"),
        Some(back_ns) => format!("from {since} to {}", clock(zone, back_ns)),
    };
    let usual = amount(finding.unit, finding.usual);
    format!("{who} {did} nothing {when}, before that each {usual}")
}

/// The command that lists the series of a sender; of all, if its name is no plain word of a shell.
fn series_of(name: &str, place: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._:@".contains(c);
    let name = if name.chars().all(is_plain) { name } else { "" };
    let command = format!("kymo series ls --open {place} {name}");
    command.trim_end().into()
}

/// The command that shows the numbers of a finding.
fn proof(finding: &Finding, why: &Why, zone: &mut Zone, place: &str) -> String {
    let span = |zone: &mut Zone| {
        let mut times = [why.from_ns, why.thru_ns].map(|ns| moment(zone, ns));
        let thru = std::mem::take(&mut times[1]);
        format!("--from {} --thru {thru}", times[0])
    };
    match &finding.subject {
        Subject::Field { id, .. } => {
            let letter = letter(id);
            format!("kymo play {place} -s{letter} {}", span(zone))
        }
        Subject::Process(_, share) => {
            let sort = match share {
                Share::Cpu | Share::Born | Share::Children | Share::Waiting | Share::Age => "time",
                Share::Read | Share::Written => "iokb",
                Share::Calls => "iokbc",
                Share::Memory => "rss",
            };
            format!("kymo play {place} --top {sort},5 {}", span(zone))
        }
        Subject::Mark(..) => format!("kymo play {place} {}", span(zone)),
        Subject::Session { .. } => {
            format!(
                "kymo programs --at {} --open {place}",
                moment(zone, why.thru_ns)
            )
        }
        Subject::Silence { names, .. } => series_of(names.first().map_or("", |name| name), place),
        Subject::Metric { publisher, .. } => series_of(publisher, place),
    }
}

/// The letter that shows a field.
fn letter(id: &str) -> char {
    let name = id.split('.').next().unwrap_or_default();
    let known = subsystem::ALL.iter().find(|known| known.name == name);
    let letter = known.map_or('c', |known| known.letter);
    match id.contains(':') {
        true => letter.to_ascii_uppercase(),
        false => letter,
    }
}

fn clock(zone: &mut Zone, ns: i64) -> String {
    let mut out = Vec::new();
    zone.local(ns).put_time(&mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// `2026-11-29 03:12:00`
fn date(zone: &mut Zone, ns: i64) -> String {
    let day = zone.local(ns).day;
    let (year, month, day) = (day / 10_000, day / 100 % 100, day % 100);
    format!("{year}-{month:02}-{day:02} {}", clock(zone, ns))
}

/// `20261129:03:12:00`
fn moment(zone: &mut Zone, ns: i64) -> String {
    format!("{}:{}", zone.local(ns).day, clock(zone, ns))
}

/// Writes an answer as JSON, on one line. The fields are listed in docs/why.md.
pub fn json(why: &Why, place: &str) -> String {
    let mut zone = Zone::of(&why.context);
    let mut out = Vec::new();
    out.extend_from_slice(b"{\"from\":");
    put_epoch(&mut out, why.from_ns, true);
    out.extend_from_slice(b",\"thru\":");
    put_epoch(&mut out, why.thru_ns, true);
    out.extend_from_slice(b",\"before\":");
    put_epoch(&mut out, why.before_ns, true);
    let (samples, before) = why.samples;
    let rest = format!(
        ",\"samples\":{samples},\"samples_before\":{before},\"days\":{},\"coarse\":{},\"text\":",
        why.days,
        why.interval_ns > COARSE_NS
    );
    out.extend_from_slice(rest.as_bytes());
    put_string(&mut out, head(why, &mut zone).trim_end().as_bytes());
    out.extend_from_slice(b",\"findings\":");
    put_findings(&mut out, &why.findings, why, &mut zone, place);
    out.extend_from_slice(b",\"others\":[");
    for (n, &(from_ns, thru_ns)) in why.others.iter().enumerate() {
        out.extend_from_slice(if n > 0 { b",{\"from\":" } else { b"{\"from\":" });
        put_epoch(&mut out, from_ns, true);
        out.extend_from_slice(b",\"thru\":");
        put_epoch(&mut out, thru_ns, true);
        out.push(b'}');
    }
    out.push(b']');
    if !why.problem.is_empty() {
        put_text(
            &mut out,
            ",\"problem\":",
            &format!("{UNSEEN}: {}", why.problem),
        );
    }
    out.push(b'}');
    String::from_utf8_lossy(&out).into_owned()
}

fn put_findings(out: &mut Vec<u8>, findings: &[Finding], why: &Why, zone: &mut Zone, place: &str) {
    out.push(b'[');
    for (n, finding) in findings.iter().enumerate() {
        if n > 0 {
            out.push(b',');
        }
        put_text(out, "{\"cause\":", finding.cause.name());
        put_text(out, ",\"text\":", &line(finding, zone));
        put_text(out, ",\"command\":", &proof(finding, why, zone, place));
        put_subject(out, &finding.subject);
        for (key, value) in [
            (",\"value\":", finding.value),
            (",\"usual\":", finding.usual),
            (",\"score\":", finding.score),
            (",\"severity\":", finding.severity),
        ] {
            if value.is_finite() {
                out.extend_from_slice(key.as_bytes());
                form::plain(out, value);
            }
        }
        put_text(out, ",\"unit\":", finding.unit.symbol());
        if let Some(since_ns) = finding.since_ns {
            out.extend_from_slice(b",\"since\":");
            put_epoch(out, since_ns, true);
        }
        out.extend_from_slice(b",\"parts\":");
        put_findings(out, &finding.parts, why, zone, place);
        out.push(b'}');
    }
    out.push(b']');
}

fn put_text(out: &mut Vec<u8>, key: &str, text: &str) {
    out.extend_from_slice(key.as_bytes());
    put_string(out, text.as_bytes());
}

fn put_subject(out: &mut Vec<u8>, subject: &Subject) {
    match subject {
        Subject::Field { id, .. } => put_text(out, ",\"field\":", id),
        Subject::Process(actor, share) => {
            put_text(out, ",\"comm\":", &actor.comm);
            let numbers = format!(
                ",\"pid\":{},\"count\":{},\"new\":{}",
                actor.pid, actor.count, actor.is_new
            );
            out.extend_from_slice(numbers.as_bytes());
            put_text(out, ",\"share\":", share.name());
            for (key, text) in [
                (",\"cmdline\":", &actor.command),
                (",\"group\":", &actor.group),
            ] {
                if !text.is_empty() {
                    put_text(out, key, text);
                }
            }
        }
        Subject::Mark(kind, text) => {
            put_text(out, ",\"mark\":", kind.name());
            put_text(out, ",\"event\":", text);
        }
        Subject::Session {
            publisher,
            pid,
            waiters,
            text,
            ..
        } => {
            put_text(out, ",\"publisher\":", publisher);
            out.extend_from_slice(format!(",\"pid\":{pid},\"waiters\":{waiters}").as_bytes());
            if !text.is_empty() {
                put_text(out, ",\"command_text\":", text);
            }
        }
        Subject::Silence {
            kind,
            names,
            back_ns,
        } => {
            put_text(out, ",\"silent\":", kind);
            for (n, name) in names.iter().enumerate() {
                put_text(out, if n == 0 { ",\"names\":[" } else { "," }, name);
            }
            out.push(b']');
            if let Some(back_ns) = back_ns {
                out.extend_from_slice(b",\"back\":");
                put_epoch(out, *back_ns, true);
            }
        }
        Subject::Metric { publisher, name } => {
            put_text(out, ",\"publisher\":", publisher);
            put_text(out, ",\"metric\":", name);
        }
    }
}

#[cfg(test)]
mod tests {
    use kymo_query::why::Actor;

    use super::*;

    fn finding(cause: Cause, subject: Subject, value: f64, usual: f64, unit: Unit) -> Finding {
        Finding {
            cause,
            subject,
            value,
            usual,
            unit,
            score: 9.0,
            severity: 2.0,
            since_ns: None,
            parts: Vec::new(),
        }
    }

    fn person(share: Share, count: usize, value: f64, usual: f64) -> Finding {
        let actor = Actor {
            pid: 4711,
            comm: "dd".into(),
            command: "dd if=secret".into(),
            count,
            ..Actor::default()
        };
        finding(
            Cause::Disk,
            Subject::Process(actor, share),
            value,
            usual,
            share.unit(),
        )
    }

    fn field(cause: Cause, id: &str, help: &'static str, value: f64, unit: Unit) -> Finding {
        let subject = Subject::Field {
            id: id.into(),
            help,
            private: false,
        };
        finding(cause, subject, value, 1.4, unit)
    }

    /// 2026-11-21 19:00:47 UTC.
    const AT_NS: i64 = 1_795_287_647 * SECOND_NS;

    fn example() -> Why {
        let help = "Time with requests under way";
        let mut disk = field(Cause::Disk, "disk.util:sda", help, 98.234, Unit::Percent);
        disk.since_ns = Some(AT_NS - 90 * SECOND_NS);
        disk.parts = vec![
            person(Share::Written, 1, 186_368.0, 0.0),
            person(Share::Cpu, 3, 12.0, f64::NAN),
        ];
        let mut leap = finding(
            Cause::Recording,
            Subject::Mark(Kind::Clock, "clock step \u{1b}[2J 3.000 s".into()),
            1.0,
            f64::NAN,
            Unit::Count,
        );
        leap.since_ns = Some(AT_NS);
        Why {
            from_ns: AT_NS,
            thru_ns: AT_NS + 60 * SECOND_NS,
            before_ns: AT_NS - 3_780 * SECOND_NS,
            samples: (4, 250),
            days: 1,
            interval_ns: 15 * SECOND_NS,
            findings: vec![disk, leap],
            ..Why::default()
        }
    }

    #[test]
    fn a_line_a_finding_with_its_proof() {
        let text = text(&example(), "rec");
        let span = "--from 20261121:19:00:47 --thru 20261121:19:01:47";
        let expected = [
            " 2026-11-21 19:00:47-19:01:47 against 63 min before it and an earlier day; samples are 15 s apart: what was shorter is not seen".to_string(),
            format!(" 1 disk sda: time with requests under way 98.2 %, usually 1.4 %, since 18:59:17  | kymo play rec -sD {span}"),
            format!("     dd (4711) writes 182 MiB/s on average, usually 0  | kymo play rec --top iokb,5 {span}"),
            format!("     dd x 3 takes 12 % of a CPU on average  | kymo play rec --top time,5 {span}"),
            format!(" 2 recording: clock: clock step \\x1b[2J 3.000 s  | kymo play rec {span}"),
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn lines_are_broken_at_blanks_for_a_terminal() {
        let text = text(&example(), "rec");
        assert_eq!(broken(&text, 400), text);
        let narrow = broken(&text, 60);
        let expected = [
            " 2026-11-21 19:00:47-19:01:47 against 63 min before it and",
            "         an earlier day; samples are 15 s apart: what was",
            "         shorter is not seen",
            " 1 disk sda: time with requests under way 98.2 %, usually",
            "         1.4 %, since 18:59:17",
            "       $ kymo play rec -sD --from 20261121:19:00:47 \\",
            "         --thru 20261121:19:01:47",
            "     dd (4711) writes 182 MiB/s on average, usually 0",
        ];
        let lines: Vec<&str> = narrow.lines().take(expected.len()).collect();
        assert_eq!(lines, expected);
        assert!(narrow.lines().all(|line| line.chars().count() <= 60));
    }

    #[test]
    fn senders_that_fell_silent() {
        let silent = |kind, names: &[&str], back_s: Option<i64>| {
            let subject = Subject::Silence {
                kind,
                names: names.iter().map(|name| name.to_string()).collect(),
                back_ns: back_s.map(|back_s| AT_NS + back_s * SECOND_NS),
            };
            let silent = finding(Cause::Silent, subject, 300.0, 10.0, Unit::Seconds);
            Finding {
                since_ns: Some(AT_NS),
                ..silent
            }
        };
        let metric = Subject::Metric {
            publisher: "shop".into(),
            name: "orders_total kind=new".into(),
        };
        let metric = finding(Cause::Program, metric, 0.0, 12.5, Unit::PerSecond);
        for (finding, line, proof) in [
            (
                silent("host", &["web7"], None),
                "host web7 sent nothing since 19:00:47, before that each 10 s",
                "kymo series ls --open rec web7",
            ),
            (
                silent("device", &["a; rm"], Some(300)),
                "device a; rm answered nothing from 19:00:47 to 19:05:47, before that each 10 s",
                "kymo series ls --open rec",
            ),
            (
                silent("host", &["a", "b", "c", "d"], None),
                "4 hosts (a, b, c ...) sent nothing since 19:00:47, before that each 10 s",
                "kymo series ls --open rec a",
            ),
            (
                metric,
                "program shop: orders_total kind=new 0, usually 12.5/s",
                "kymo series ls --open rec shop",
            ),
        ] {
            let why = Why {
                findings: vec![finding],
                ..example()
            };
            let text = text(&why, "rec");
            let said = text.lines().nth(1).unwrap_or_default();
            assert_eq!(said, format!(" 1 {line}  | {proof}"));
            let json = json(&why, "rec");
            assert!(
                json.contains("\"silent\":") || json.contains("\"metric\":\"orders"),
                "{json}"
            );
        }
    }

    #[test]
    fn json_has_the_same_and_no_control_bytes() {
        let json = json(&example(), "a \"b\"");
        assert!(
            json.starts_with("{\"from\":1795287647.000,\"thru\":1795287707.000,"),
            "{json}"
        );
        assert!(
            json.contains("\"field\":\"disk.util:sda\",\"value\":98.234,"),
            "{json}"
        );
        assert!(
            json.contains("\"comm\":\"dd\",\"pid\":4711,\"count\":1,\"new\":false"),
            "{json}"
        );
        assert!(json.contains("kymo play a \\\"b\\\" -sD"), "{json}");
        assert!(
            !json.contains("NaN") && !json.contains(char::is_control),
            "{json}"
        );
    }

    #[test]
    fn nothing_unusual_and_nothing_recorded() {
        let quiet = Why {
            samples: (60, 3_600),
            ..Why::default()
        };
        assert!(text(&quiet, "rec").ends_with("against 0 s before it: nothing unusual\n"));
        assert!(text(&Why::default(), "rec").ends_with(": nothing was recorded then\n"));
    }
}
