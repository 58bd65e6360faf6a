//! A roll-up: minimum, mean and maximum of every field for each minute of one block, and what happened in it.
//! A cache: it is derived from its block, and made again when it is missing, damaged or of other columns.
//! Layout: docs/formats/rollup.md.

use std::cell::RefCell;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::LazyLock;

use kymo_base::column::{self, Value};
use kymo_base::field::{Field, Rule};
use kymo_kernel::subsystem;

use crate::marks::{Kind, Mark, Origin};
use crate::series::{Grid, Point, Series};
use crate::sheet::{Line, Of, Pick};

/// Length of its points.
pub const STEP_NS: i64 = 60_000_000_000;

const MAGIC: &[u8; 8] = b"KYMOROL0";
/// To be raised when a column is reckoned otherwise than before, or others are in it.
const REVISION: u32 = 2;
/// Points of one roll-up; a block is of hours at most.
const POINTS_MAX: usize = 100_000;
/// Bytes of one subsystem's part before it is compressed.
const PART_MAX: usize = 64 << 20;
/// zstd's level.
const LEVEL: i32 = 3;

/// The columns there are and the rules that make their values, as a number: roll-ups of other columns are of no use.
pub fn columns_hash() -> u64 {
    static HASH: LazyLock<u64> = LazyLock::new(hash_columns);
    *HASH
}

fn hash_columns() -> u64 {
    let mut hasher = DefaultHasher::new();
    // Another version may reckon otherwise.
    env!("CARGO_PKG_VERSION").hash(&mut hasher);
    REVISION.hash(&mut hasher);
    for subsystem in subsystem::ALL {
        subsystem.name.hash(&mut hasher);
        for field in subsystem.globals.iter().chain(subsystem.fields) {
            hash_field(field, &mut hasher);
        }
        for column in subsystem.columns.iter().chain(subsystem.detail) {
            hash_column(column, &mut hasher);
        }
    }
    hasher.finish()
}

/// Hashes a field without its help: other words change no value.
fn hash_field(field: &Field, hasher: &mut DefaultHasher) {
    let rule: u8 = match field.rule {
        Rule::Gauge => 0,
        Rule::Counter64 => 1,
        Rule::Counter32 => 2,
        Rule::CounterMayStepBack => 3,
    };
    (field.name, rule, field.unit.symbol()).hash(hasher);
}

/// Hashes a column without its help.
fn hash_column(column: &column::Column, hasher: &mut DefaultHasher) {
    let is_number = matches!(column.value, Value::Number(_));
    (column.name, column.unit.symbol(), is_number).hash(hasher);
}

/// Appends the roll-up of a series of all fields: a part for each subsystem, compressed on its own, since
/// a graph needs one or two of them.
pub fn encode(series: &Series, out: &mut Vec<u8>) -> std::io::Result<()> {
    let start = out.len();
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&columns_hash().to_le_bytes());
    out.extend_from_slice(&series.grid.from_ns.to_le_bytes());
    out.extend_from_slice(&(series.grid.count as u32).to_le_bytes());
    out.push(subsystem::ALL.len() as u8);
    for subsystem in subsystem::ALL {
        let mut part = Vec::new();
        for (line, points) in series.lines.iter().zip(&series.points) {
            if subsystem_of(&line.id) == subsystem.name {
                encode_line(&line.id, points, &mut part);
            }
        }
        let packed = zstd::bulk::compress(&part, LEVEL)?;
        push_text(subsystem.name, out);
        out.extend_from_slice(&(part.len() as u32).to_le_bytes());
        out.extend_from_slice(&(packed.len() as u32).to_le_bytes());
        out.extend_from_slice(&packed);
    }
    out.extend_from_slice(&(series.marks.len() as u32).to_le_bytes());
    for mark in &series.marks {
        out.extend_from_slice(&mark.from_ns.to_le_bytes());
        out.extend_from_slice(&mark.until_ns.to_le_bytes());
        out.push(code(mark.kind));
        push_text(&mark.text, out);
    }
    let checksum = crc32c::crc32c(&out[start..]);
    out.extend_from_slice(&checksum.to_le_bytes());
    Ok(())
}

fn subsystem_of(id: &str) -> &str {
    id.split('.').next().unwrap_or_default()
}

/// A value that all points share is written once.
fn encode_line(id: &str, points: &[Point], out: &mut Vec<u8>) {
    push_text(id, out);
    let values = |point: &Point| [point.min, point.mean(), point.max, point.seconds];
    let mut body = Vec::with_capacity(points.len() * 16);
    for n in 0..4 {
        let mut column = points.iter().map(|point| values(point)[n] as f32);
        let first = column.next().unwrap_or(f32::NAN);
        let same = column.all(|value| value.to_bits() == first.to_bits());
        body.push(u8::from(same));
        match same {
            true => body.extend_from_slice(&first.to_le_bytes()),
            false => {
                for point in points {
                    body.extend_from_slice(&(values(point)[n] as f32).to_le_bytes());
                }
            }
        }
    }
    out.extend_from_slice(&(body.len() as u32).to_le_bytes());
    out.extend_from_slice(&body);
}

fn push_text(text: &str, out: &mut Vec<u8>) {
    // Ids and events are short; a name is a few kilobytes at worst.
    let end = text.floor_char_boundary(usize::from(u16::MAX));
    out.extend_from_slice(&(end as u16).to_le_bytes());
    out.extend_from_slice(&text.as_bytes()[..end]);
}

fn code(kind: Kind) -> u8 {
    let known = Kind::ALL.iter().position(|&known| known == kind);
    known.unwrap_or(Kind::ALL.len()) as u8
}

/// Adds what a roll-up has of `picks` to a series whose points are of whole minutes. `false`: it is
/// damaged or of other columns, and nothing of it can be used.
pub fn merge(bytes: &[u8], picks: &[Pick], series: &mut Series) -> bool {
    let Some((body, checksum)) = bytes.split_last_chunk() else {
        return false;
    };
    crc32c::crc32c(body) == u32::from_le_bytes(*checksum)
        && merge_checked(body, picks, series).is_some()
}

/// True if these are the bytes of a roll-up, by this kymo or another one.
pub fn is_whole(bytes: &[u8]) -> bool {
    let checked = bytes
        .split_last_chunk()
        .filter(|_| bytes.starts_with(MAGIC));
    checked.is_some_and(|(body, checksum)| crc32c::crc32c(body) == u32::from_le_bytes(*checksum))
}

fn merge_checked(body: &[u8], picks: &[Pick], series: &mut Series) -> Option<()> {
    let mut input = Input(body);
    if input.take(8)? != MAGIC || input.u64()? != columns_hash() {
        return None;
    }
    let grid = Grid {
        from_ns: input.u64()? as i64,
        step_ns: STEP_NS,
        count: input.u32().filter(|&count| count <= POINTS_MAX)?,
    };
    for _ in 0..input.take(1)?[0] {
        let name = input.text()?;
        let (length, packed) = (input.u32()?, input.u32()?);
        let packed = input.take(packed)?;
        if length <= PART_MAX && picks.iter().any(|pick| pick.subsystem.name == name) {
            let part = unpack(packed, length)?;
            merge_part(&part, &grid, picks, series)?;
        }
    }
    for _ in 0..input.u32()? {
        let mark = Mark {
            from_ns: input.u64()? as i64,
            until_ns: input.u64()? as i64,
            kind: *Kind::ALL.get(usize::from(input.take(1)?[0]))?,
            text: input.text()?.to_string(),
            origin: Origin::Machine,
        };
        if mark.until_ns >= series.grid.from_ns && mark.from_ns < series.grid.thru_ns() {
            series.marks.push(mark);
        }
    }
    Some(())
}

/// Keeps zstd's context: making it for each of a hundred roll-ups took a quarter of the time of a day's graph.
fn unpack(packed: &[u8], length: usize) -> Option<Vec<u8>> {
    thread_local! {
        static UNPACKER: RefCell<Option<zstd::bulk::Decompressor<'static>>> = const { RefCell::new(None) };
    }
    UNPACKER.with_borrow_mut(|unpacker| {
        if unpacker.is_none() {
            *unpacker = zstd::bulk::Decompressor::new().ok();
        }
        unpacker.as_mut()?.decompress(packed, length).ok()
    })
}

/// Adds the lines of one subsystem.
fn merge_part(part: &[u8], grid: &Grid, picks: &[Pick], series: &mut Series) -> Option<()> {
    let mut input = Input(part);
    while !input.0.is_empty() {
        let id = input.text()?;
        let length = input.u32()?;
        let columns = input.take(length)?;
        for (n, pick) in picks.iter().enumerate().filter(|(_, pick)| is_of(id, pick)) {
            let line = Line {
                id: id.to_string(),
                unit: pick.column.unit,
                help: pick.column.help,
                pick: n,
            };
            merge_line(columns, grid, &line, series)?;
        }
    }
    Some(())
}

fn merge_line(columns: &[u8], grid: &Grid, line: &Line, series: &mut Series) -> Option<()> {
    let mut input = Input(columns);
    let mut values: [Column; 4] = [Column::Same(0.0); 4];
    for value in &mut values {
        *value = match input.take(1)?[0] {
            0 => Column::Each(input.take(grid.count * 4)?),
            _ => Column::Same(f32::from_le_bytes(*input.take(4)?.first_chunk()?)),
        };
    }
    let Some(place) = series.place(line) else {
        return Some(());
    };
    let to = series.grid;
    for n in 0..grid.count {
        let at_ns = grid.from_ns.checked_add(grid.step_ns * n as i64)?;
        let point = at_ns.saturating_sub(to.from_ns).div_euclid(to.step_ns);
        let Some(point) = usize::try_from(point)
            .ok()
            .filter(|&point| point < to.count)
        else {
            continue;
        };
        let [min, mean, max, seconds] = values.map(|value| f64::from(value.get(n)));
        if seconds > 0.0 && min <= max {
            series.points[place][point].merge(&Point {
                min,
                max,
                sum: mean * seconds,
                seconds,
            });
        }
    }
    Some(())
}

#[derive(Clone, Copy)]
enum Column<'a> {
    Same(f32),
    Each(&'a [u8]),
}

impl Column<'_> {
    fn get(&self, n: usize) -> f32 {
        match self {
            Column::Same(value) => *value,
            Column::Each(bytes) => bytes[n * 4..]
                .first_chunk()
                .map_or(f32::NAN, |chunk| f32::from_le_bytes(*chunk)),
        }
    }
}

/// True if a pick asks for the line of this id; allocates nothing, since most lines are not asked for.
fn is_of(line: &str, pick: &Pick) -> bool {
    let field = line
        .strip_prefix(pick.subsystem.name)
        .and_then(|rest| rest.strip_prefix('.'))
        .and_then(|rest| rest.strip_prefix(pick.column.name));
    match (field, &pick.of) {
        (Some(rest), Of::Machine) => rest.is_empty(),
        (Some(rest), Of::Each) => rest.starts_with(':'),
        (Some(rest), Of::One(name)) => rest.strip_prefix(':') == Some(name),
        (None, _) => false,
    }
}

/// Bytes to be read; a read beyond the end is `None`.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(*self.take(8)?.first_chunk()?))
    }

    fn u32(&mut self) -> Option<usize> {
        Some(u32::from_le_bytes(*self.take(4)?.first_chunk()?) as usize)
    }

    fn text(&mut self) -> Option<&'a str> {
        let length = u16::from_le_bytes(*self.take(2)?.first_chunk()?);
        std::str::from_utf8(self.take(usize::from(length))?).ok()
    }
}

/// Any bytes as a roll-up, for fuzzing: as they are, as the body of a sound file, and as the values of a line.
#[cfg(feature = "testing")]
pub fn fuzz_rollup(input: &[u8]) {
    let picks = Pick::all();
    let grid = Grid {
        from_ns: STEP_NS,
        step_ns: 2 * STEP_NS,
        count: 10,
    };
    for bytes in [input, &sound_file(input), &sound_file(&one_line(input))] {
        let mut series = Series::new(grid, 100);
        merge(bytes, &picks, &mut series);
        assert!(series.lines.len() <= 100, "more lines than allowed");
        for point in series.points.iter().flatten() {
            let mean = point.mean();
            assert!(
                mean.is_nan() || (point.min..=point.max).contains(&mean),
                "a mean out of its bounds"
            );
        }
    }
}

/// A file with that after its head, and a checksum that fits.
#[cfg(feature = "testing")]
fn sound_file(body: &[u8]) -> Vec<u8> {
    let mut file = [&MAGIC[..], &columns_hash().to_le_bytes(), body].concat();
    let checksum = crc32c::crc32c(&file);
    file.extend_from_slice(&checksum.to_le_bytes());
    file
}

/// A body with one line: first its count of points, then its values as they are given.
#[cfg(feature = "testing")]
fn one_line(input: &[u8]) -> Vec<u8> {
    let (&count, values) = input.split_first().unwrap_or((&0, &[]));
    let mut part = Vec::new();
    push_text("cpu.user", &mut part);
    part.extend_from_slice(&(values.len() as u32).to_le_bytes());
    part.extend_from_slice(values);
    let packed = zstd::bulk::compress(&part, LEVEL).unwrap_or_default();
    let mut body = STEP_NS.to_le_bytes().to_vec();
    body.extend_from_slice(&u32::from(count).to_le_bytes());
    body.push(1);
    push_text("cpu", &mut body);
    body.extend_from_slice(&(part.len() as u32).to_le_bytes());
    body.extend_from_slice(&(packed.len() as u32).to_le_bytes());
    body.extend_from_slice(&packed);
    body.extend_from_slice(&0u32.to_le_bytes());
    body
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sheet::id;

    const MINUTE: i64 = STEP_NS;

    fn rolled() -> (Vec<Pick>, Series) {
        let ids = [
            "cpu.user",
            "disk.read_kb:sda",
            "disk.read_kb:sdb",
            "net.rx_kb:*",
        ];
        let picks: Vec<Pick> = ids
            .iter()
            .map(|id| Pick::parse(id).expect("known"))
            .collect();
        let mut series = Series::new(
            Grid {
                from_ns: 10 * MINUTE,
                step_ns: MINUTE,
                count: 3,
            },
            9,
        );
        for (n, value) in [(0, 1.5), (1, 7.0), (2, 0.0)] {
            let instance = match &picks[n].of {
                Of::One(name) => Some(name.as_str()),
                _ => None,
            };
            let place = series.place(&Line {
                id: id(picks[n].subsystem, picks[n].column, instance),
                unit: picks[n].column.unit,
                help: picks[n].column.help,
                pick: n,
            });
            let place = place.expect("room");
            series.points[place][0].add(value, 30.0);
            series.points[place][0].add(value + 2.0, 30.0);
            series.points[place][2].add(value, 60.0);
        }
        series.marks.push(Mark {
            from_ns: 11 * MINUTE,
            until_ns: 12 * MINUTE,
            kind: Kind::Slow,
            text: "slow read: proc/stat".into(),
            origin: Origin::Machine,
        });
        (picks, series)
    }

    #[test]
    fn what_is_rolled_up_comes_back() {
        let (picks, series) = rolled();
        let mut bytes = Vec::new();
        encode(&series, &mut bytes).expect("encoded");
        let mut back = Series::new(
            Grid {
                from_ns: 0,
                step_ns: 2 * MINUTE,
                count: 10,
            },
            9,
        );
        assert!(merge(&bytes, &picks[..2], &mut back));
        assert_eq!(back.lines.len(), 2);
        assert_eq!(back.marks, series.marks);
        let cpu = &back.points[0];
        assert_eq!((cpu[5].min, cpu[5].mean(), cpu[5].max), (1.5, 2.5, 3.5));
        assert_eq!((cpu[6].min, cpu[6].seconds), (1.5, 60.0));
        assert_eq!(cpu[4], Point::NONE);
    }

    #[test]
    fn damage_is_noticed_and_harmless() {
        let (picks, series) = rolled();
        let mut bytes = Vec::new();
        encode(&series, &mut bytes).expect("encoded");
        for end in 0..bytes.len() {
            let mut back = Series::new(series.grid, 9);
            assert!(!merge(&bytes[..end], &picks, &mut back), "cut at {end}");
            // Even a matching checksum makes no harm of it.
            let _ = merge_checked(&bytes[..end], &picks, &mut back);
        }
        for at in 0..bytes.len() {
            let mut wrong = bytes.clone();
            wrong[at] ^= 0x81;
            assert!(
                !merge(&wrong, &picks, &mut Series::new(series.grid, 9)),
                "byte {at}"
            );
            let _ = merge_checked(
                &wrong[..wrong.len() - 4],
                &picks,
                &mut Series::new(series.grid, 9),
            );
        }
    }

    /// A reworded help threw all roll-ups away.
    #[test]
    fn other_words_leave_roll_ups_as_they_are_and_other_values_do_not() {
        use kymo_base::field::Unit;

        let of_field = |field: &Field| {
            let mut hasher = DefaultHasher::new();
            hash_field(field, &mut hasher);
            hasher.finish()
        };
        let of_column = |column: &column::Column| {
            let mut hasher = DefaultHasher::new();
            hash_column(column, &mut hasher);
            hasher.finish()
        };
        let field = Field {
            name: "user",
            rule: Rule::Counter64,
            unit: Unit::Ticks,
            help: "Time in user mode",
        };
        let (name, rule, unit, help) = ("nice", Rule::Gauge, Unit::Seconds, "Other words");
        assert_eq!(of_field(&Field { help, ..field }), of_field(&field));
        for other in [
            Field { name, ..field },
            Field { rule, ..field },
            Field { unit, ..field },
        ] {
            assert_ne!(of_field(&other), of_field(&field), "{other:?}");
        }
        let column = column::Column {
            name: "user",
            unit: Unit::Percent,
            help: "Time in user mode",
            value: Value::Number(|_| 0.0),
            private: false,
        };
        let value = Value::Text(|_, _| {});
        let worded = column::Column { help, ..column };
        assert_eq!(of_column(&worded), of_column(&column));
        for other in [
            column::Column { name, ..column },
            column::Column { unit, ..column },
            column::Column { value, ..column },
        ] {
            assert_ne!(of_column(&other), of_column(&column), "{}", other.name);
        }
    }

    #[test]
    fn ids_match_picks() {
        let pick = |id| Pick::parse(id).expect("known");
        for (line, id, expect) in [
            ("cpu.user", "cpu.user", true),
            ("cpu.user:0", "cpu.user", false),
            ("cpu.user:0", "cpu.user:*", true),
            ("cpu.user:0", "cpu.user:0", true),
            ("cpu.user:10", "cpu.user:1", false),
            ("cpu.user_time", "cpu.user", false),
        ] {
            assert_eq!(is_of(line, &pick(id)), expect, "{line} {id}");
        }
    }
}
