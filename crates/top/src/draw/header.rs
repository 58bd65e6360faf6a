//! The header: the machine and the moment, then a line for each meter: its name, its line over time, and numbers.

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;

use super::{cells, greatest, put_until};
use crate::app::App;
use crate::meters::{COUNT, Full, METERS, Meter, bytes, percent, short};
use crate::readings::Readings;

/// Lines of the header.
pub(super) const HEIGHT: u16 = 7;
/// Widest line over time.
const LINE_MAX: u16 = 120;
/// A number with its name, and whether it is high.
type Number = (String, bool);

/// Share at which a value is high.
const HIGH: f64 = 0.8;

/// Draws the header.
pub(super) fn draw(app: &App, readings: &Readings, buffer: &mut Buffer, area: Rect) {
    title(app, readings, buffer, area);
    let width = (area.width / 4).min(LINE_MAX);
    for (at, (meter, y)) in METERS
        .iter()
        .zip(area.y + 1..area.y + area.height)
        .enumerate()
    {
        let end = area.x + area.width;
        let x = put_until(buffer, (area.x, y), end, meter.name, app.palette.name());
        line(
            app,
            readings,
            buffer,
            (at, meter),
            Rect::new(x + 1, y, width, 1),
        );
        let mut x = x + 1 + width;
        let then = app.held.as_ref().map(|held| held.meters[at]);
        let compared = then.map(|then| (format!("  then {}", value(meter, then)), false));
        let numbers = compared.into_iter().chain(numbers(at, readings));
        for (number, is_high) in numbers {
            let style = match is_high {
                true => app.palette.high(),
                false => app.palette.quiet(),
            };
            // A number that is cut would be another one.
            if usize::from(end.saturating_sub(x)) < number.len() {
                break;
            }
            x = put_until(buffer, (x, y), end, &number, style);
        }
    }
}

fn title(app: &App, readings: &Readings, buffer: &mut Buffer, area: Rect) {
    let context = &readings.context;
    let host = context.get("host").unwrap_or("this machine");
    let at_ns = app.at_ns();
    let (day, time) = app.local(context, at_ns);
    let end = area.x + area.width;
    let at = (area.x, area.y);
    let x = put_until(
        buffer,
        at,
        end,
        &app.palette.fit(&safe(host)),
        app.palette.name(),
    );
    let moment = format!("  {day} {time}  ");
    let x = put_until(buffer, (x, area.y), end, &moment, app.palette.bold());
    let age = match (app.is_live(), app.screen.paused) {
        (true, true) => "standing still".into(),
        (true, false) => "live".into(),
        (false, _) => format!("{} ago", length(app.now_ns.saturating_sub(at_ns))),
    };
    let x = put_until(buffer, (x, area.y), end, &age, app.palette.high());
    let mut rest = String::new();
    if let Some(held) = &app.held {
        let (_, then) = app.local(context, held.at_ns);
        rest += &format!("  against {then}");
    }
    let mut more = Vec::new();
    if !app.is_live() {
        let span_ns = app.screen.span_s().saturating_mul(1_000_000_000);
        more.push(format!("  lines of {}", whole_length(span_ns)));
    }
    let loads = ["cpu.load1", "cpu.load5", "cpu.load15"].map(|field| readings.number(field));
    if !loads[0].is_nan() {
        let [one, five, fifteen] = loads;
        more.push(format!("  load {one:.2} {five:.2} {fifteen:.2}"));
    }
    let counts = [
        ("cpu.tasks", "tasks"),
        ("cpu.running", "running"),
        ("cpu.blocked", "blocked"),
    ];
    for (field, name) in counts {
        let count = readings.number(field);
        if !count.is_nan() {
            more.push(format!("  {count:.0} {name}"));
        }
    }
    let room = usize::from(end.saturating_sub(x));
    for part in more {
        if rest.len() + part.len() > room {
            break;
        }
        rest += &part;
    }
    put_until(buffer, (x, area.y), end, &rest, app.palette.quiet());
}

/// A fact of the machine, safe to show.
fn safe(text: &str) -> String {
    kymo_base::name::DisplayName(text.as_bytes())
        .text()
        .into_owned()
}

/// A length of time: `12s`, `5m12s`, `3h05m`, `2d04h`.
pub(super) fn length(ns: i64) -> String {
    let seconds = ns.max(0) / 1_000_000_000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds / 3600 % 24),
    }
}

/// A length of time in its greatest unit: `15m`, `1h`.
fn whole_length(ns: i64) -> String {
    let text = length(ns);
    let end = text.find(|one: char| one.is_ascii_alphabetic());
    end.map_or(text.clone(), |end| text[..=end].to_string())
}

/// A meter over time. In the past the moment is marked; live it is the last cell.
fn line(
    app: &App,
    readings: &Readings,
    buffer: &mut Buffer,
    (at, meter): (usize, &Meter),
    area: Rect,
) {
    let (values, moment) = match app.is_live() {
        true => (app.trail.last(at, usize::from(area.width)), None),
        false => {
            let window = app.around();
            let line = window.and_then(|window| window.lines.get(at));
            let values = cells(line.map_or(&[][..], Vec::as_slice), area.width);
            let count = line.map_or(0, Vec::len).max(1);
            let point = window.and_then(|window| window.point(app.at_ns()));
            (
                values,
                point.map(|point| point * usize::from(area.width) / count),
            )
        }
    };
    let full = meter
        .full(readings)
        .unwrap_or_else(|| greatest(&values))
        .max(f64::MIN_POSITIVE);
    // Live values come in from the right.
    let offset = usize::from(area.width).saturating_sub(values.len());
    let places = (area.x..area.x + area.width).skip(offset);
    for (cell, (x, value)) in places.zip(&values).enumerate() {
        let share = value / full;
        let mut style = match share >= HIGH && meter.full != Full::Most {
            true => app.palette.high(),
            false => app.palette.line(),
        };
        if moment == Some(cell) {
            style = style.patch(app.palette.turned());
        }
        let bar = app.palette.bar(share);
        buffer[(x, area.y)].set_symbol(bar).set_style(style);
    }
}

/// A value of a meter in its unit.
fn value(meter: &Meter, value: f64) -> String {
    match meter.full {
        Full::Percent => percent(value) + "%",
        Full::Field(_) | Full::Most => bytes(value),
    }
}

/// The numbers of a meter, each with whether it is high.
fn numbers(meter: usize, readings: &Readings) -> Vec<Number> {
    let numbers: [fn(&Readings) -> Vec<Number>; COUNT] =
        [cpu, memory, swap, pressure, disks, network];
    numbers[meter](readings)
}

fn percents(readings: &Readings, fields: &[(&str, &str)], high: f64) -> Vec<Number> {
    let number = |(field, name): &(&str, &str)| {
        let value = readings.number(field);
        (format!("  {name} {}", percent(value)), value >= high)
    };
    fields.iter().map(number).collect()
}

fn cpu(readings: &Readings) -> Vec<Number> {
    let total = readings.number("cpu.total");
    let mut numbers = vec![(format!(" {:>5}%", percent(total)), total >= 100.0 * HIGH)];
    let kinds = [
        ("cpu.user", "user"),
        ("cpu.sys", "sys"),
        ("cpu.wait", "wait"),
        ("cpu.steal", "steal"),
        ("cpu.nice", "nice"),
        ("cpu.irq", "irq"),
        ("cpu.soft", "soft"),
        ("cpu.guest", "guest"),
    ];
    numbers.extend(percents(readings, &kinds, 50.0));
    let more = [
        ("cpu.ctxsw", "switches/s"),
        ("cpu.forks", "forks/s"),
        ("cpu.cpus", "CPUs"),
    ];
    numbers.extend(counts(readings, &more));
    numbers
}

fn counts(readings: &Readings, fields: &[(&str, &str)]) -> Vec<Number> {
    let number = |(field, name): &(&str, &str)| {
        (
            format!("  {} {name}", short(readings.number(field), 1000.0)),
            false,
        )
    };
    fields.iter().map(number).collect()
}

fn sizes(readings: &Readings, fields: &[(&str, &str)]) -> Vec<Number> {
    let number = |(field, name): &(&str, &str)| {
        (format!("  {name} {}", bytes(readings.number(field))), false)
    };
    fields.iter().map(number).collect()
}

fn memory(readings: &Readings) -> Vec<Number> {
    let (total, free) = (
        readings.number("memory.total"),
        readings.number("memory.available"),
    );
    let used = total - free;
    let mut numbers = vec![
        (format!(" {:>6}", bytes(used)), used >= HIGH * total),
        (format!(" of {}", bytes(total)), false),
    ];
    let fields = [
        ("memory.available", "available"),
        ("memory.cached", "cached"),
        ("memory.dirty", "dirty"),
        ("memory.slab", "slab"),
        ("memory.shared", "shared"),
        ("memory.anon", "anon"),
        ("memory.mapped", "mapped"),
    ];
    numbers.extend(sizes(readings, &fields));
    numbers
}

fn swap(readings: &Readings) -> Vec<Number> {
    let (total, used) = (
        readings.number("memory.swap_total"),
        readings.number("memory.swap_used"),
    );
    let mut numbers = vec![
        (
            format!(" {:>6}", bytes(used)),
            total > 0.0 && used >= HIGH * total,
        ),
        (format!(" of {}", bytes(total)), false),
    ];
    let rates = [
        ("memory.swap_in", "in/s"),
        ("memory.swap_out", "out/s"),
        ("memory.faults", "faults/s"),
        ("memory.major_faults", "major/s"),
        ("memory.oom_kills", "OOM kills/s"),
    ];
    numbers.extend(counts(readings, &rates));
    numbers
}

fn pressure(readings: &Readings) -> Vec<Number> {
    let value = METERS[3].value(readings);
    let mut numbers = vec![(format!(" {:>5}%", percent(value)), value >= 20.0)];
    let some = [
        ("pressure.cpu_some", "cpu"),
        ("pressure.memory_some", "memory"),
        ("pressure.io_some", "io"),
        ("pressure.memory_full", "memory full"),
        ("pressure.io_full", "io full"),
        ("pressure.irq_full", "irq"),
    ];
    numbers.extend(percents(readings, &some, 20.0));
    numbers
}

fn disks(readings: &Readings) -> Vec<Number> {
    let value = METERS[4].value(readings);
    let mut numbers = vec![(format!(" {:>6}", bytes(value)), false)];
    numbers.extend(sizes(
        readings,
        &[("disk.read_kb", "read/s"), ("disk.write_kb", "write/s")],
    ));
    numbers.extend(counts(
        readings,
        &[("disk.reads", "reads/s"), ("disk.writes", "writes/s")],
    ));
    numbers
}

fn network(readings: &Readings) -> Vec<Number> {
    let value = METERS[5].value(readings);
    let mut numbers = vec![(format!(" {:>6}", bytes(value)), false)];
    numbers.extend(sizes(
        readings,
        &[("net.rx_kb", "in/s"), ("net.tx_kb", "out/s")],
    ));
    numbers.extend(counts(
        readings,
        &[
            ("net.rx_packets", "packets in/s"),
            ("net.tx_packets", "out/s"),
        ],
    ));
    let trouble = readings.number("net.trouble");
    numbers.push((
        format!("  errors/s {}", short(trouble, 1000.0)),
        trouble > 0.0,
    ));
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time() {
        for (seconds, expect) in [
            (-5, "0s"),
            (12, "12s"),
            (312, "5m12s"),
            (11_100, "3h05m"),
            (187_200, "2d04h"),
        ] {
            assert_eq!(length(seconds * 1_000_000_000), expect);
        }
        assert_eq!(whole_length(900 * 1_000_000_000), "15m");
    }
}
