//! Flips one bit of a file with samples: each sample keeps its value or is missing, rows are of the samples that are left,
//! and `verify` names the file and the place.

use crate::common::{Bench, folder};
use crate::points::{ALL, labels};
use crate::points_kept::{Counters, HOUR, retention};
use kymo_store::verify::{Event, Finding, verify};
use kymo_store::{Store, Tier};
use kymo_sys::disk::Disk;
use kymo_sys::effort::effort;
use kymo_sys::sim_disk::SimDisk;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A store's samples by series and time, and rows by series, length and end.
#[derive(Default)]
struct Known {
    samples: BTreeMap<(usize, i64), u64>,
    rows: BTreeMap<(usize, u32, i64), Tier>,
}

fn known(store: &Store) -> Known {
    let mut known = Known::default();
    for at in 0..2 {
        let Some(series) = store.find_points(&labels(&format!("m{at}"))) else {
            continue;
        };
        for point in store.samples(series, ALL).unwrap().points {
            known.samples.insert((at, point.t_ms), point.v.to_bits());
        }
        for step_s in [300, 3600] {
            for row in store.tier_rows(series, step_s, (0, i64::MAX / 2)).unwrap() {
                known.rows.insert((at, step_s, row.end_s), row.tier);
            }
        }
    }
    known
}

/// A killed store: some samples are rows, some are in blocks, the last ones in the journal alone.
fn ended() -> (Counters, Known) {
    let mut all = Counters::new(5, 2, retention(HOUR, 100 * HOUR, 200 * HOUR));
    all.run(150);
    all.bench.settings.chunk_values = 1000;
    all.bench.reopen();
    all.run(10);
    let everything = kymo_store::Position(u64::MAX);
    all.bench.store().durable(everything).unwrap();
    let known = known(all.bench.store());
    assert!(known.samples.len() > 120 && known.rows.len() > 40);
    all.bench.store = None;
    (all, known)
}

fn files(disk: &SimDisk, prefix: &str) -> Vec<PathBuf> {
    let files = disk.files().into_iter().map(|(path, _)| path);
    let ours = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        path.starts_with(folder()) && name.starts_with(prefix)
    };
    files.filter(ours).collect()
}

/// Flips a bit and opens the store. Returns the findings of `verify`, and the number of missing samples, plus one if rows
/// lack samples.
fn flipped(bench: &Bench, known: &Known, path: &Path, bit: usize) -> (Vec<Finding>, usize) {
    let mut after = bench.fork();
    let mut bytes = after.disk.bytes(path).unwrap();
    bytes[bit / 8] ^= 1 << (bit % 8);
    after.disk.set_bytes(path, bytes);
    let disk: Arc<dyn Disk> = Arc::new(after.disk.clone());
    let mut findings = Vec::new();
    let checked = verify(disk, &folder(), &mut |event| {
        if let Event::Found(finding) = event {
            findings.push(finding);
        }
    });
    let story = format!("{} bit {bit}", path.display());
    // The store refuses a changed version.
    if after.try_open().is_err() {
        assert!(checked.is_err() || !findings.is_empty(), "{story}");
        return (findings, 1);
    }
    let found = self::known(after.store());
    for (key, bits) in &found.samples {
        assert_eq!(known.samples.get(key), Some(bits), "{story}: {key:?}");
    }
    for (key, row) in &found.rows {
        let was = &known.rows[key];
        // A row that lacks samples is made of those that are left.
        let is_part = row.count < was.count && row.min >= was.min && row.max <= was.max;
        assert!(is_part || row == was, "{story}: {key:?} {row:?} {was:?}");
    }
    let count = |known: &Known| -> f64 { known.rows.values().map(|row| row.count).sum() };
    let is_less = count(&found) < count(known);
    let samples = known.samples.len() - found.samples.len();
    (findings, samples + usize::from(is_less))
}

/// Bits of the heads and of everything behind their page; the rest of that page is unused zeros.
fn bits(bytes: &[u8]) -> impl Iterator<Item = usize> {
    let end = bytes.iter().rposition(|&byte| byte != 0).unwrap() + 1;
    let places = (0..64).chain(2048..2112).chain(4096..end);
    let (step, all) = (if effort(1) > 1 { 1 } else { 7 }, 0..8);
    let bits = places.flat_map(move |at| all.clone().map(move |bit| at * 8 + bit));
    bits.step_by(step)
}

#[test]
fn a_bit_of_a_segment_with_samples() {
    let (all, known) = ended();
    let (mut missing, mut told) = (0, 0);
    for path in files(&all.bench.disk, "segment-") {
        let bytes = all.bench.disk.bytes(&path).unwrap();
        for bit in bits(&bytes) {
            let (findings, lost) = flipped(&all.bench, &known, &path, bit);
            let here = findings.iter().filter(|it| it.path == path);
            let here: Vec<u64> = here.map(|it| it.offset).collect();
            let at = (bit / 8) as u64;
            // `verify` reports a damaged block at its beginning.
            let is_near = |place: &u64| *place <= at + 8;
            assert!(
                lost == 0 || here.iter().any(is_near),
                "{} bit {bit}: {findings:?}",
                path.display()
            );
            assert!(lost == 0 || at >= 4096, "a head is there twice");
            missing += usize::from(lost > 0);
            told += usize::from(!here.is_empty());
        }
    }
    assert!(missing > 200 && told >= missing, "{missing} {told}");
}

#[test]
fn a_bit_of_a_journal_with_samples() {
    let (all, known) = ended();
    let mut missing = 0;
    for path in files(&all.bench.disk, "journal-") {
        let bytes = all.bench.disk.bytes(&path).unwrap();
        let mut is_told = Vec::new();
        for bit in bits(&bytes) {
            let (findings, lost) = flipped(&all.bench, &known, &path, bit);
            is_told.push(findings.iter().any(|it| it.path == path));
            missing += usize::from(lost > 0);
        }
        // `verify` does not report the last frames, which may not have been synced.
        let heads = bits(&bytes).take_while(|bit| bit / 8 < 4096).count();
        let last = is_told
            .iter()
            .rposition(|&is_told| is_told)
            .unwrap_or(heads);
        assert!(
            is_told[heads..last.max(heads)].iter().all(|&it| it),
            "{}",
            path.display()
        );
    }
    assert!(missing > 40, "{missing}");
}
