//! Flips one bit of a segment or of the journal: each number keeps its value or becomes unknown, also when the series
//! continue, and `verify` reports damage wherever a number is missing.
//!
//! With more effort than `make test`, the tests flip every bit of the small store and 2,000 bits of the large one.

use crate::common::{Bench, SECOND, START, base, folder, oracle};
use kymo_base::random::next_random;
use kymo_rrd::create::{Create, create};
use kymo_rrd::{Rows, Rrd};
use kymo_store::verify::verify;
use kymo_store::{Files, Fresh};
use kymo_sys::disk::Disk;
use kymo_sys::effort::effort;
use kymo_sys::sim_disk::SimDisk;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

fn is_soak() -> bool {
    effort(1) > 1
}

/// An empty file whose sources and archives treat unknown values in different ways.
fn file(rows: u32) -> Vec<u8> {
    let mut definitions: Vec<String> = ["GAUGE", "COUNTER"]
        .iter()
        .map(|kind| format!("DS:{kind}:{kind}:60:U:U"))
        .collect();
    definitions.push("DS:sum:COMPUTE:GAUGE,UN,7,GAUGE,IF".to_string());
    for (cf, xff, points) in [("AVERAGE", 0.5, 1), ("AVERAGE", 0.99, 7), ("MAX", 0.5, 3)] {
        definitions.push(format!("RRA:{cf}:{xff}:{points}:{}", rows / points));
    }
    let definitions: Vec<&[u8]> = definitions.iter().map(|text| text.as_bytes()).collect();
    let request = Create {
        file_name: b"",
        step: 10,
        start: Some(START),
        definitions: &definitions,
    };
    let made = create(&request, START, &mut 1, None, &[]).unwrap();
    made.to_bytes()
}

/// Rows of a file: archive, stamp, cells.
fn rows(rrd: &Rrd) -> Vec<(usize, i64, &[f64])> {
    let (header, width) = (&rrd.header, rrd.header.ds.len());
    let mut all = Vec::new();
    for (archive, about) in header.rra.iter().enumerate() {
        let step = (header.pdp_step * about.pdp_cnt) as i64;
        let newest = header.last_up / step;
        for back in 0..about.row_cnt {
            let row = (header.cur_row[archive] + about.row_cnt - back) % about.row_cnt;
            let at = header.cell(archive, row) as usize;
            let end = (newest - back as i64) * step;
            all.push((archive, end, &rrd.cells[at..at + width]));
        }
    }
    all
}

/// Counts the numbers that became unknown; fails if a number differs or is new.
fn compare(was: &Rrd, is: &Rrd) -> Result<u64, String> {
    let key = |(archive, end, _): &(usize, i64, &[f64])| (*archive, -*end);
    let (was, is) = (rows(was), rows(is));
    let mut missing = 0;
    for row in &was {
        let found = is.binary_search_by_key(&key(row), key).ok();
        let numbers = row.2.iter().enumerate();
        for (source, number) in numbers.filter(|(_, number)| !number.is_nan()) {
            let now = found.map_or(f64::NAN, |at| is[at].2[source]);
            missing += u64::from(now.is_nan());
            if !now.is_nan() && now.to_bits() != number.to_bits() {
                let (archive, end, _) = row;
                return Err(format!(
                    "archive {archive}, source {source}, {end}: {number} was, {now} is"
                ));
            }
        }
    }
    for row in &is {
        let known = was.binary_search_by_key(&key(row), key);
        if known.is_err_and(|_| row.2.iter().any(|number| !number.is_nan())) {
            return Err(format!("archive {}, {} is new", row.0, row.1));
        }
    }
    Ok(missing)
}

/// A store that was killed after it had synced everything and recorded that.
struct Ended {
    bench: Bench,
    /// All series at the kill; `later` has them after the values of [`more`].
    then: Vec<Rrd>,
    later: Vec<Rrd>,
}

/// Sends a value to each of some series, all with the same stamp.
fn round(bench: &mut Bench, number: u64, series: impl Iterator<Item = usize>) {
    bench.now_s += [10, 7, 10, 13, 10, 41][number as usize % 6];
    let at = bench.now_s;
    for of in series {
        let level = bench.random(1000);
        let count = number * 1000 + bench.random(900);
        let text = format!("{at}:{level}.5:{count}");
        let name = bench.files[of].0.clone();
        bench.update(&name, &[&text]).unwrap();
    }
    bench.clock.advance_ns(SECOND);
}

fn more(bench: &mut Bench) {
    bench.random = 77;
    for number in 1000..1004 {
        let count = bench.files.len();
        round(bench, number, 0..count);
    }
}

fn all(bench: &Bench) -> Vec<Rrd> {
    let names = bench.files.iter();
    let read = |name: &String| {
        let mut opened = bench.store().read(name.as_bytes(), Fresh::Flushed).unwrap();
        let mut cells = vec![0.0; opened.header.cell_count() as usize];
        opened.rows.read(0, &mut cells).unwrap();
        Rrd {
            header: opened.header,
            cells,
        }
    };
    names.map(|(name, _)| read(name)).collect()
}

fn begin(series: usize, rows: u32) -> Bench {
    let mut bench = Bench::new(1, 0);
    for at in 0..series {
        let (name, bytes) = (format!("f{at}.rrd"), file(rows));
        bench.disk.set_bytes(&base().join(&name), bytes.clone());
        bench.files.push((name, bytes));
    }
    bench.settings.sync_every = Duration::from_secs(1);
    bench.settings.files = Files::After(Duration::from_secs(3600));
    bench
}

fn end(mut bench: Bench) -> Ended {
    bench.clock.advance_ns(2 * SECOND);
    bench.store().shutdown(false).unwrap();
    bench.disk.kill();
    let mut whole = bench.fork();
    whole.reopen();
    assert_eq!(whole.replayed.notices, Vec::<String>::new());
    let then = all(&whole);
    for ((name, before), then) in bench.files.iter().zip(&then).take(4) {
        let mine = bench.acked.iter().filter(|acked| acked.name == *name);
        let values: Vec<&[u8]> = mine.map(|acked| &acked.text[..]).collect();
        assert_eq!(oracle(before, &values), then.to_bytes(), "{name}");
    }
    more(&mut whole);
    let later = all(&whole);
    bench.acked.clear();
    bench.store = None;
    Ended { bench, then, later }
}

/// Effect of a flipped bit: how many numbers are missing, and whether the start had notices.
#[derive(Default)]
struct Outcome {
    missing: u64,
    told: bool,
}

impl Ended {
    fn files(&self) -> Vec<(PathBuf, u64)> {
        let mut files = self.bench.disk.files();
        files.retain(|(path, _)| {
            let name = path.file_name().unwrap().to_string_lossy();
            let ours = name.starts_with("segment-") || name.starts_with("journal-");
            path.starts_with(folder()) && ours
        });
        files
    }

    fn flip(&self, path: &Path, at: usize, bit: u8) -> Outcome {
        let story = format!("{} byte {at} bit {bit}", path.display());
        let bench = self.bench.fork();
        let mut bytes = bench.disk.bytes(path).unwrap();
        bytes[at] ^= 1 << bit;
        bench.disk.set_bytes(path, bytes);
        self.look(bench, &story, at.is_multiple_of(3))
    }

    /// Opens the changed store and compares its rows with the original ones.
    fn look(&self, mut bench: Bench, story: &str, twice: bool) -> Outcome {
        let found = damaged(&bench.disk);
        bench.reopen();
        let notices = bench.replayed.notices.clone();
        let now = all(&bench);
        let mut missing = self.judge(&bench, &self.then, &now, story);
        more(&mut bench);
        let now = all(&bench);
        missing += self.judge(&bench, &self.later, &now, &format!("{story}, later"));
        assert!(missing == 0 || found > 0, "{story}: silent, {notices:?}");
        if !twice {
            return Outcome {
                missing,
                told: !notices.is_empty(),
            };
        }
        // Another start has the same holes, and flushed files agree with the store.
        bench.store().maintain();
        bench.disk.kill();
        bench.reopen();
        let now = all(&bench);
        self.judge(&bench, &self.later, &now, &format!("{story}, another life"));
        for (name, _) in &bench.files {
            bench.flush(name).unwrap();
        }
        let files = bench.files.iter();
        let files: Vec<Rrd> = files
            .map(|(name, _)| Rrd::parse(&bench.bytes(name)).unwrap())
            .collect();
        self.judge(&bench, &self.later, &files, &format!("{story}, files"));
        Outcome {
            missing,
            told: !notices.is_empty(),
        }
    }

    fn judge(&self, bench: &Bench, was: &[Rrd], is: &[Rrd], story: &str) -> u64 {
        let mut missing = 0;
        for (at, (was, is)) in was.iter().zip(is).enumerate() {
            missing += compare(was, is).unwrap_or_else(|error| {
                panic!("{story}: f{at}: {error}; {:?}", bench.replayed.notices)
            });
        }
        missing
    }
}

fn damaged(disk: &SimDisk) -> u64 {
    let disk = Arc::new(disk.clone());
    verify(disk, &folder(), &mut |_| {}).unwrap().damaged
}

/// A few series in several segments; one series is silent for long, and the journal before the last checkpoint is gone.
fn small() -> Ended {
    let mut bench = begin(3, 200);
    bench.settings.chunk_values = 8;
    bench.settings.journal_file_bytes = 5000;
    bench.settings.segment_bytes = 6000;
    bench.settings.journal_files = 2;
    bench.open();
    for number in 0..45 {
        let silent = number % 20 > 3;
        round(&mut bench, number, 0..if silent { 2 } else { 3 });
        if number % 3 == 1 && number < 42 {
            bench.store().maintain();
        }
    }
    let ended = end(bench);
    let segments = ended.files();
    let names: Vec<String> = segments
        .iter()
        .map(|(path, size)| format!("{} {size}", path.display()))
        .collect();
    eprintln!("{names:?}");
    assert!(
        !names
            .iter()
            .any(|name| name.contains("journal-000000000001"))
    );
    ended
}

#[test]
fn any_bit_of_a_small_store() {
    let ended = small();
    let (mut flips, mut lost, mut told) = (0, 0, 0);
    for (path, _) in ended.files() {
        let bytes = ended.bench.disk.bytes(&path).unwrap();
        let used = bytes.iter().rposition(|&byte| byte != 0).unwrap() + 2;
        let bits = if is_soak() { 0..8 } else { 0..1 };
        for at in (0..64).chain(2048..2112).chain(4096..used.min(bytes.len())) {
            for bit in bits.clone() {
                let bit = (at as u8).wrapping_add(bit) % 8;
                let outcome = ended.flip(&path, at, bit);
                flips += 1;
                lost += u64::from(outcome.missing > 0);
                told += u64::from(outcome.told);
                assert!(at >= 4096 || outcome.missing == 0, "{}", path.display());
            }
        }
    }
    eprintln!("{flips} {lost} {told}");
    assert!(lost > 500 && told > 100, "{flips} {lost} {told}");
}

/// Removes the newest segment, or truncates it where a block ends. Older segments are left out: no other file says what
/// they held.
#[test]
fn segments_that_are_gone_or_end_too_early() {
    let ended = small();
    let mut lost = 0;
    for (path, _) in ended.files().into_iter().rev().take(1) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        assert!(name.starts_with("segment-"));
        let bytes = ended.bench.disk.bytes(&path).unwrap();
        let blocks = bytes.windows(8).enumerate();
        let blocks = blocks.filter(|(_, word)| *word == b"KYMOBLCK");
        for end in blocks.map(|(at, _)| at) {
            let bench = ended.bench.fork();
            bench.disk.set_bytes(&path, bytes[..end].to_vec());
            let outcome = ended.look(bench, &format!("{name} ends at {end}"), true);
            lost += u64::from(outcome.missing > 0 && outcome.told);
        }
        let bench = ended.bench.fork();
        bench.disk.unlink(&path).unwrap();
        let outcome = ended.look(bench, &format!("{name} is gone"), true);
        lost += u64::from(outcome.missing > 0 && outcome.told);
    }
    assert!(lost > 2, "{lost}");
}

#[test]
fn some_bits_of_a_large_store() {
    let (rounds, flips) = if is_soak() { (12_000, 2000) } else { (150, 20) };
    let mut bench = begin(300, (rounds * 2).min(3000));
    bench.settings.chunk_values = 64;
    bench.settings.journal_file_bytes = 256 << 10;
    bench.settings.segment_bytes = 1 << 20;
    bench.open();
    for number in 0..u64::from(rounds) {
        // A seventh of the series is silent at a time.
        let silent = number / 50 % 7;
        round(
            &mut bench,
            number,
            (0..300).filter(|at| at % 7 != silent as usize),
        );
        if number % 4 == 3 {
            bench.store().maintain();
        }
    }
    let ended = end(bench);
    let files = ended.files();
    let sum: u64 = files.iter().map(|(_, size)| size).sum();
    let (mut random, mut lost) = (5, 0);
    for _ in 0..flips {
        let mut at = next_random(&mut random) % sum;
        let (path, _) = files
            .iter()
            .find(|(_, size)| {
                let here = at < *size;
                at -= if here { 0 } else { *size };
                here
            })
            .unwrap();
        let bit = (next_random(&mut random) % 8) as u8;
        lost += u64::from(ended.flip(path, at as usize, bit).missing > 0);
    }
    eprintln!("{} bytes, {flips} flips, {lost} lost something", sum);
    assert!(lost * 4 > flips, "{lost}");
}
