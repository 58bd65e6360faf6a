//! `verify` finds no damage in a whole store, also beside a store at work, and reports each changed byte.

use crate::common::{Bench, folder};
use kymo_store::verify::{Event, Finding, Summary, Weight, verify};
use kymo_sys::sim_disk::SimDisk;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn look(disk: &SimDisk) -> (Summary, Vec<Finding>) {
    let mut findings = Vec::new();
    let summary = verify(Arc::new(disk.clone()), &folder(), &mut |event| {
        if let Event::Found(finding) = event {
            findings.push(finding);
        }
    });
    (summary.unwrap(), findings)
}

/// A store with several segments, and the last values in the journal alone.
fn bench() -> Bench {
    let mut bench = Bench::new(4, 5);
    bench.settings.journal_file_bytes = 8 << 10;
    bench.open();
    for number in 0..430 {
        bench.any_update().unwrap();
        if number % 7 == 0 {
            bench.store().maintain();
            let (summary, findings) = look(&bench.disk);
            assert_eq!((summary.damaged, findings), (0, vec![]), "{number}");
        }
    }
    bench.sync();
    bench.any_update().unwrap();
    bench.sync();
    bench.any_update().unwrap();
    bench
}

fn files(disk: &SimDisk, prefix: &str) -> Vec<PathBuf> {
    let files = disk.files().into_iter().map(|(path, _)| path);
    let ours = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        path.starts_with(folder()) && name.starts_with(prefix)
    };
    files.filter(ours).collect()
}

/// Flips a bit of one byte and returns the findings of `verify`.
fn flipped(disk: &SimDisk, path: &Path, at: usize) -> Vec<Finding> {
    let disk = disk.fork();
    let mut bytes = disk.bytes(path).unwrap();
    bytes[at] ^= 1 << (at % 8);
    disk.set_bytes(path, bytes);
    let before = disk.counts();
    let (summary, findings) = look(&disk);
    let damage = |finding: &&Finding| finding.weight == Weight::Damage;
    assert_eq!(
        findings.iter().filter(damage).count() as u64,
        summary.damaged
    );
    assert_eq!(disk.counts(), before, "something was written");
    findings
}

#[test]
fn a_byte_of_any_frame_that_is_another_one_is_told() {
    let bench = bench();
    let (summary, findings) = look(&bench.disk);
    assert_eq!(findings, vec![]);
    assert!(
        summary.segments > 2 && summary.blocks > 9 && summary.frames > 30,
        "{summary:?}"
    );
    assert!(
        summary.journal_files > 0 && summary.journal_frames > 20,
        "{summary:?}"
    );
    let mut kinds = BTreeMap::new();
    for path in files(&bench.disk, "segment-") {
        let bytes = bench.disk.bytes(&path).unwrap();
        for at in (4096..bytes.len()).step_by(3) {
            let findings = flipped(&bench.disk, &path, at);
            // Zeros behind a block's frames fill up to a multiple of eight.
            assert!(
                !findings.is_empty() || bytes[at] == 0,
                "{} {at}",
                path.display()
            );
            for finding in findings {
                // The place of a missing block is unknown, so the finding names the folder.
                let missing = finding.what.contains("is missing");
                assert!(finding.path == if missing { folder() } else { path.clone() });
                let end = finding.what.find([' ', ':']).unwrap();
                let kind = finding.what[..end].to_string();
                *kinds
                    .entry((finding.weight == Weight::Damage, kind))
                    .or_insert(0) += 1;
            }
        }
    }
    for kind in ["names", "states", "points", "rows", "a"] {
        let count = kinds.get(&(true, kind.to_string()));
        assert!(count.is_some_and(|&count| count > 20), "{kind}: {kinds:?}");
    }
}

#[test]
fn a_byte_of_the_journal_that_is_another_one_is_told() {
    let bench = bench();
    let mut damaged = 0;
    for path in files(&bench.disk, "journal-") {
        let bytes = bench.disk.bytes(&path).unwrap();
        let end = bytes.iter().rposition(|&byte| byte != 0).unwrap();
        assert!(end > 4096);
        for at in 0..64 {
            // Each head has a copy.
            assert_eq!(flipped(&bench.disk, &path, at), vec![]);
        }
        let offsets = (4096..end + 1).step_by(3);
        let told: Vec<bool> = offsets
            .map(|at| !flipped(&bench.disk, &path, at).is_empty())
            .collect();
        // `verify` does not report damage in frames without a sync; behind them lie bytes of an earlier use of the file.
        let last = told.iter().rposition(|&told| told);
        let last = last.unwrap_or_else(|| panic!("{}", path.display()));
        assert!(told[..last].iter().all(|&told| told), "{}", path.display());
        damaged += last;
        let disk = bench.disk.fork();
        let mut headless = bytes.clone();
        headless[..4096].fill(0);
        disk.set_bytes(&path, headless);
        assert!(look(&disk).0.damaged > 0);
    }
    assert!(damaged > 100, "{damaged}");
}

#[test]
fn a_segment_that_has_lost_its_head_or_its_end_is_told() {
    let bench = bench();
    let paths = files(&bench.disk, "segment-");
    for path in &paths {
        let bytes = bench.disk.bytes(path).unwrap();
        let disk = bench.disk.fork();
        let mut headless = bytes.clone();
        headless[..4096].fill(0);
        disk.set_bytes(path, headless);
        let (summary, findings) = look(&disk);
        assert!(summary.damaged > 0, "{findings:?}");
        for end in (4096..bytes.len()).step_by(40) {
            disk.set_bytes(path, bytes[..end].to_vec());
            // A segment that ends where a block ends is not known to be cut, so findings are not checked.
            look(&disk);
        }
    }
}
