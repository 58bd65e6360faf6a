//! Publishing programs and their sessions as text: `kymo programs`, and the table of `kymo top`.

use std::fmt::Write as _;

use kymo_base::name::DisplayName;
use kymo_wire::keeper::{
    ActiveSlot, Blockers, Life, Metric, MetricKind, PREPARED, Programs, Publisher,
};

const ACTIVE: u8 = 2;

/// The text for a terminal: each publisher with its activity and its metrics.
pub fn text(programs: &Programs, now_ns: i64) -> String {
    let mut out = String::new();
    for publisher in &programs.publishers {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{}", head(publisher, now_ns));
        put_slots(&mut out, publisher, now_ns);
        put_metrics(&mut out, publisher);
        out.push('\n');
    }
    if programs.dropped > 0 {
        let _ = writeln!(
            out,
            "{} samples of what programs did are not recorded: the recorder did not take them",
            programs.dropped
        );
    }
    if programs.left_out > 0 {
        let _ = writeln!(out, "{} more publishers", programs.left_out);
    }
    for limited in &programs.limited {
        let [files, cells, series, texts, bad] = limited.counts;
        let _ = writeln!(
            out,
            "user {} wants more than a user has; left out so far: {files} files, {cells} for their cells, {series} series, {texts} samples of texts, {bad} that are no publisher's",
            shown(&limited.user)
        );
    }
    out
}

fn head(publisher: &Publisher, now_ns: i64) -> String {
    let name = shown(&publisher.name);
    let labels = label_words(&publisher.labels);
    let name = format!("{name}{labels} of {}", shown(&publisher.user));
    let life = match publisher.life {
        Life::Alive => "alive",
        Life::Ended => "ended",
        Life::Retired => return format!("{name}, all that have ended"),
    };
    let active = publisher.slots.iter().filter(|slot| slot.state == ACTIVE);
    let left_out = usize::try_from(publisher.slots_left_out).unwrap_or(0);
    let mut head = format!(
        "{name}, pid {}, {life}, for {}, {} active of {}",
        publisher.pid,
        since(publisher.started_ns, now_ns),
        active.count(),
        publisher.slots.len() + left_out
    );
    if publisher.refused > 0 {
        let _ = write!(head, ", {} metrics left out", publisher.refused);
    }
    head
}

fn put_slots(out: &mut String, publisher: &Publisher, now_ns: i64) {
    if publisher.slots.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "  {:>8} {:>10} {:>8}  {:<26}  COMMAND",
        "PID", "COMMANDS", "FOR", "STATE"
    );
    let mut slots: Vec<&ActiveSlot> = publisher.slots.iter().collect();
    let blockers = Blockers::of(&publisher.slots);
    // Working slots and those that hold others up come first, the oldest activity before newer ones.
    let rests = |slot: &ActiveSlot| slot.state != ACTIVE && !blockers.have(slot.pid, slot.xid);
    slots.sort_by_key(|slot| (rests(slot), slot.since_ns, slot.number));
    for slot in slots {
        let text = match (slot.xid, slot.kind, slot.is_cut) {
            (1.., _, _) => transaction_words(slot.xid),
            (_, 3, _) => "(secret)".to_string(),
            (_, _, true) => format!("{}...", shown(&slot.text)),
            (_, _, false) => shown(&slot.text),
        };
        let pid = match slot.xid {
            0 => slot.pid.to_string(),
            _ => "-".into(),
        };
        let _ = writeln!(
            out,
            "  {pid:>8} {:>10} {:>8}  {:<26}  {text}{}{}",
            slot.commands,
            since(slot.since_ns, now_ns),
            state_words(slot.state),
            match &*label_words(&slot.labels) {
                "" => String::new(),
                labels => format!(" {labels}"),
            },
            waits(slot)
        );
    }
    if publisher.slots_left_out > 0 {
        let _ = writeln!(out, "  {} more", publisher.slots_left_out);
    }
}

/// Labels with a value, each after a blank.
fn label_words(labels: &[(Vec<u8>, Vec<u8>)]) -> String {
    let labels = labels.iter().filter(|(_, value)| !value.is_empty());
    let words = labels.map(|(name, value)| format!(" {}={}", shown(name), shown(value)));
    words.collect()
}

/// The slot's wait, and the sessions that it waits for.
fn waits(slot: &ActiveSlot) -> String {
    let mut words = String::new();
    if !slot.wait.is_empty() {
        let _ = write!(words, "  waits for {}", shown(&slot.wait));
    }
    let pids = slot.blocked_by.iter().map(u32::to_string);
    let transactions = slot.blocked_by_xids.iter().copied().map(transaction_words);
    let blockers: Vec<String> = pids.chain(transactions).collect();
    if !blockers.is_empty() {
        let _ = write!(words, "  blocked by {}", blockers.join(", "));
    }
    words
}

fn transaction_words(xid: u32) -> String {
    format!("transaction {xid}")
}

fn put_metrics(out: &mut String, publisher: &Publisher) {
    if publisher.metrics.is_empty() {
        return;
    }
    let names: Vec<String> = publisher.metrics.iter().map(metric_name).collect();
    let longest = names.iter().map(|name| name.chars().count()).max();
    let width = longest.unwrap_or(0).clamp(6, 60);
    let _ = writeln!(
        out,
        "  {:<width$} {:>14} {:>10} {:>9} {:>9} {:>9} {:>8}  UNIT",
        "METRIC", "TOTAL", "PER SECOND", "50 %", "90 %", "99 %", "SAMPLES"
    );
    for (name, metric) in names.iter().zip(&publisher.metrics) {
        let [half, nine, most] = metric.latency.quantiles.map(number);
        let samples = match metric.kind {
            MetricKind::Histogram => metric.latency.samples.to_string(),
            MetricKind::Counter | MetricKind::Gauge => String::new(),
        };
        let _ = writeln!(
            out,
            "  {name:<width$} {:>14} {:>10} {half:>9} {nine:>9} {most:>9} {samples:>8}  {}",
            number(metric.value),
            number(metric.rate),
            shown(&metric.unit)
        );
    }
}

fn metric_name(metric: &Metric) -> String {
    let labels = metric.labels.iter();
    let labels: Vec<String> = labels
        .map(|(key, value)| format!("{}={}", shown(key), shown(value)))
        .collect();
    match labels.is_empty() {
        true => shown(&metric.name),
        false => format!("{}{{{}}}", shown(&metric.name), labels.join(",")),
    }
}

/// A number as text: whole ones without decimals, unknown ones empty.
fn number(value: f64) -> String {
    match value {
        value if value.is_nan() => String::new(),
        value if value == value.trunc() && value.abs() < 1e15 => format!("{value:.0}"),
        value if value.abs() >= 100.0 => format!("{value:.1}"),
        value if value.abs() >= 0.01 => format!("{value:.3}"),
        value => format!("{value:.2e}"),
    }
}

fn since(ns: u64, now_ns: i64) -> String {
    if ns == 0 {
        return "-".into();
    }
    let age_ns = u64::try_from(now_ns).unwrap_or(0).saturating_sub(ns);
    let seconds = age_ns as f64 / 1e9;
    match seconds {
        _ if seconds < 10.0 => format!("{seconds:.3}s"),
        _ if seconds < 600.0 => format!("{seconds:.0}s"),
        _ if seconds < 36_000.0 => format!("{:.0}min", seconds / 60.0),
        _ if seconds < 864_000.0 => format!("{:.0}h", seconds / 3600.0),
        _ => format!("{:.0}d", seconds / 86_400.0),
    }
}

fn shown(name: &[u8]) -> String {
    DisplayName(name).to_string()
}

/// Words of a state.
pub fn state_words(state: u8) -> &'static str {
    match state {
        1 => "idle",
        2 => "active",
        3 => "idle in transaction",
        4 => "idle in failed transaction",
        PREPARED => "prepared",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kymo_wire::keeper::Latency;

    #[test]
    fn a_page_is_safe_to_show_and_has_what_is_known() {
        let metric = Metric {
            name: b"commands_total".to_vec(),
            unit: b"seconds".to_vec(),
            help: Vec::new(),
            labels: vec![(b"kind".to_vec(), b"\x1b[2J".to_vec())],
            kind: MetricKind::Histogram,
            value: 12.0,
            rate: f64::NAN,
            latency: Latency {
                samples: 3,
                quantiles: [0.25, 1.0, f64::NAN],
            },
        };
        let slot = |kind, state, text: &[u8]| ActiveSlot {
            pid: 7,
            state,
            kind,
            since_ns: 1_000_000_000,
            commands: 9,
            text: text.to_vec(),
            is_cut: true,
            wait: b"Lock:relation".to_vec(),
            blocked_by: vec![5, 6],
            blocked_by_xids: vec![731],
            ..ActiveSlot::default()
        };
        let prepared = ActiveSlot {
            xid: 731,
            state: PREPARED,
            ..ActiveSlot::default()
        };
        let publisher = Publisher {
            name: b"example".to_vec(),
            labels: vec![(b"port".to_vec(), b"5432".to_vec())],
            user: b"ada".to_vec(),
            pid: 7,
            started_ns: 1_000_000_000,
            refused: 1,
            metrics: vec![metric],
            slots: vec![
                slot(3, 1, b""),
                slot(1, ACTIVE, b"SELECT \x1b[2J"),
                prepared,
            ],
            ..Publisher::default()
        };
        let programs = Programs {
            publishers: vec![publisher],
            ..Programs::default()
        };
        let page = text(&programs, 3_500_000_000);
        let lines: Vec<&str> = page.lines().collect();
        assert_eq!(
            lines[0],
            "example port=5432 of ada, pid 7, alive, for 2.500s, 1 active of 3, 1 metrics left out"
        );
        assert!(
            lines[3].contains("active")
                && lines[3].ends_with(
                    "SELECT \\x1b[2J...  waits for Lock:relation  blocked by 5, 6, transaction 731"
                )
        );
        assert!(lines[2].contains("prepared") && lines[2].ends_with("transaction 731"));
        assert!(lines[4].contains("(secret)"));
        assert!(lines[6].contains("commands_total{kind=\\x1b[2J}"), "{page}");
        assert!(lines[6].contains(" 0.250 ") && !page.contains('\x1b'));
    }
}
