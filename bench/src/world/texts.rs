//! The texts of the machine as a whole: read once, then their numbers change: counters by their mean
//! slope since boot, gauges around their first value.

use kymo_base::track_writer::TrackWriter;
use kymo_kernel::reader::Reader;
use kymo_kernel::source::{self, Scope, Source, kind};
use kymo_sys::kernel_file::Root;
use std::io::Write as _;

use super::chance::Chance;
use crate::fault::{Cannot, Fault, Result};

/// Largest relative distance of a gauge from its first value.
const SWING: f64 = 0.02;
/// Share of numbers in /proc/vmstat and /proc/meminfo that change in a second.
const GAUGES_MOVING: f64 = 0.4;

/// All texts.
pub(super) struct Texts {
    moving: Vec<Moving>,
    chance: Chance,
}

struct Moving {
    kind: u8,
    track: TrackWriter,
    pieces: Vec<Piece>,
    text: Vec<u8>,
}

enum Piece {
    Fixed(Vec<u8>),
    Number(Number),
}

struct Number {
    value: f64,
    motion: Motion,
    /// Least number of digits: those after a point keep their number.
    width: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Motion {
    /// Growth a second.
    Counter(f64),
    /// Changes around this value.
    Gauge(f64),
}

impl Texts {
    /// The texts that exist on this machine.
    pub(super) fn of(root: &Root) -> Result<Texts> {
        let uptime = std::fs::read_to_string("/proc/uptime").cannot("read /proc/uptime")?;
        let up_s = uptime.split('.').next().and_then(|s| s.parse().ok());
        let up_s: f64 = up_s.ok_or_else(|| Fault::new("cannot understand /proc/uptime"))?;
        let mut moving = Vec::new();
        let machine = source::ALL.iter().filter(|s| s.scope == Scope::Machine);
        for source in machine {
            let mut text = Vec::new();
            // A kernel without pressure has no such file.
            let mut reader = Reader::new(source, source.path.to_string());
            if reader.read(root, 0, &mut text).is_err() || text.is_empty() {
                continue;
            }
            let mut track = TrackWriter::new(source.grammar);
            track.add(0, b"");
            moving.push(Moving {
                kind: source.kind,
                track,
                pieces: pieces(source.kind, &text, up_s),
                text,
            });
        }
        let chance = Chance::new(0x6b79_6d6f);
        Ok(Texts { moving, chance })
    }

    /// Writes the next second's sections.
    pub(super) fn sample(&mut self, key: bool, put: &mut impl FnMut(u8, &[u8])) {
        for moving in &mut self.moving {
            moving.go_on(&mut self.chance);
            moving.track.begin(key);
            moving.track.read(0, &moving.text);
            put(moving.kind, moving.track.end());
        }
    }
}

impl Moving {
    fn go_on(&mut self, chance: &mut Chance) {
        self.text.clear();
        for piece in &mut self.pieces {
            match piece {
                Piece::Fixed(bytes) => self.text.extend_from_slice(bytes),
                Piece::Number(number) => {
                    number.go_on(chance);
                    let (value, width) = (number.value as u64, number.width);
                    // Writing to a Vec cannot fail.
                    let _ = write!(self.text, "{value:0width$}");
                }
            }
        }
    }
}

impl Number {
    fn go_on(&mut self, chance: &mut Chance) {
        match self.motion {
            Motion::Counter(slope) => self.value += chance.burst(slope) as f64,
            Motion::Gauge(middle) if chance.is(GAUGES_MOVING) => {
                self.value = middle * (1.0 + SWING * (2.0 * chance.part() - 1.0));
            }
            Motion::Gauge(_) => {}
        }
    }
}

/// Splits a text at its changing numbers.
fn pieces(kind: u8, text: &[u8], up_s: f64) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut fixed = Vec::new();
    for line in text.split_inclusive(|&byte| byte == b'\n') {
        let mut at = 0;
        let mut column = 0;
        while at < line.len() {
            let digits = line[at..].iter().take_while(|b| b.is_ascii_digit()).count();
            let begins = at == 0 || matches!(line[at - 1], b' ' | b'\t' | b'=' | b'.' | b':');
            let ends = line
                .get(at + digits)
                .is_none_or(|b| !b.is_ascii_alphabetic());
            if digits == 0 || digits > 15 || !begins || !ends {
                fixed.extend_from_slice(&line[at..at + digits.max(1)]);
                at += digits.max(1);
                continue;
            }
            let decimals = at > 0 && line[at - 1] == b'.';
            let digits_text = &line[at..at + digits];
            let value = digits_text
                .iter()
                .fold(0.0, |sum, digit| sum * 10.0 + f64::from(digit - b'0'));
            match motion(kind, line, column, value, up_s) {
                Some(motion) => {
                    pieces.push(Piece::Fixed(std::mem::take(&mut fixed)));
                    let width = if decimals { digits } else { 1 };
                    pieces.push(Piece::Number(Number {
                        value,
                        motion,
                        width,
                    }));
                }
                None => fixed.extend_from_slice(digits_text),
            }
            at += digits;
            column += 1;
        }
    }
    pieces.push(Piece::Fixed(fixed));
    pieces
}

/// Motion of the number in a column of a line; `None`: constant.
fn motion(kind: u8, line: &[u8], column: usize, value: f64, up_s: f64) -> Option<Motion> {
    let starts = |word: &str| line.starts_with(word.as_bytes());
    let is_gauge = match kind {
        kind::STAT => starts("procs_"),
        kind::LOADAVG => column + 1 < 8 && value < 100.0,
        kind::MEMINFO => true,
        kind::VMSTAT => starts("nr_"),
        kind::PRESSURE_CPU | kind::PRESSURE_MEMORY | kind::PRESSURE_IO | kind::PRESSURE_IRQ => {
            value < 100.0
        }
        _ => false,
    };
    let still = value == 0.0
        || starts("btime")
        || starts("MemTotal")
        || starts("Swap")
        || kind == kind::DISKSTATS && column < 2
        || kind == kind::SOFTNET && column == 0
        || kind != kind::SOFTNET && source::of(kind).is_some_and(Source::adds_to_rows);
    match (still, is_gauge) {
        (true, _) => None,
        (false, true) => Some(Motion::Gauge(value)),
        (false, false) => Some(Motion::Counter(value / up_s)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(kind: u8, text: &str, seconds: usize) -> String {
        let mut moving = Moving {
            kind,
            track: TrackWriter::new(kymo_base::template::Grammar::Plain),
            pieces: pieces(kind, text.as_bytes(), 100.0),
            text: Vec::new(),
        };
        let mut chance = Chance::new(1);
        for _ in 0..seconds {
            moving.go_on(&mut chance);
        }
        String::from_utf8(moving.text).unwrap()
    }

    #[test]
    fn names_stay_and_counters_grow() {
        let text = "cpu0 1000 0 500\nbtime 1795300000\nintr 77 0 0\n";
        let later = rendered(kind::STAT, text, 1000);
        assert!(
            later.starts_with("cpu0 ") && later.contains("\nbtime 1795300000\n"),
            "{later}"
        );
        let user: u64 = later.split(' ').nth(1).unwrap().parse().unwrap();
        assert!((6_000..30_000).contains(&user), "{later}");
    }

    #[test]
    fn disks_keep_their_numbers_and_loads_their_digits() {
        let disk = rendered(kind::DISKSTATS, " 254       0 vda 100 0 9 0\n", 50);
        assert!(disk.starts_with(" 254       0 vda "), "{disk}");
        let load = rendered(kind::LOADAVG, "0.15 0.20 12.30 1/200 12345\n", 1);
        assert_eq!(load.split(' ').next().map(str::len), Some(4), "{load}");
    }
}
