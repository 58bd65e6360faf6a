//! Journals that are cut, flipped or made up, and one of each version that every build must read.

use crate::common::{Bench, folder};
use kymo_base::random::next_random;
use kymo_store::fuzz::fuzz_journal;
use kymo_sys::disk::Disk;
use kymo_sys::sim_disk::Faults;
use std::path::PathBuf;

const FRAMES: usize = 4096;

fn journal() -> PathBuf {
    folder().join("journal-000000000001")
}

/// A killed store with this number of pending values, and its journal up to the last frame.
fn killed(count: usize) -> (Bench, Vec<u8>) {
    let mut bench = Bench::new(3, 3);
    bench.open();
    for _ in 0..count {
        bench.any_update().unwrap();
    }
    bench.disk.kill();
    let bytes = bench.disk.bytes(&journal()).unwrap();
    let used = bytes.iter().rposition(|&byte| byte != 0).unwrap() + 1;
    let mut bytes = bytes;
    bytes.truncate(used);
    (bench, bytes)
}

#[test]
fn cut_at_each_byte() {
    let (bench, bytes) = killed(40);
    let mut most = 0;
    for len in (0..FRAMES).step_by(97).chain(FRAMES..bytes.len()) {
        bench.disk.set_bytes(&journal(), bytes[..len].to_vec());
        let mut cut = bench.fork();
        cut.reopen();
        most = most.max(cut.replayed.values);
        cut.judge(0, &format!("cut at {len}"));
    }
    assert_eq!(most, 39);
}

#[test]
fn a_flipped_bit_costs_one_frame() {
    let (bench, bytes) = killed(40);
    for at in FRAMES..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << (at % 8);
        bench.disk.set_bytes(&journal(), flipped);
        let mut found = bench.fork();
        found.reopen();
        // Without a sync, frames behind a gap do not count.
        found.judge(0, &format!("byte {at}"));
    }
    let (mut bench, _) = killed(20);
    bench.reopen();
    bench.sync();
    for _ in 0..20 {
        bench.any_update().unwrap();
        bench.sync();
    }
    bench.disk.kill();
    let path = folder().join("journal-000000000002");
    let bytes = bench.disk.bytes(&path).unwrap();
    let used = bytes.iter().rposition(|&byte| byte != 0).unwrap();
    let mut damaged = 0;
    for at in FRAMES..used {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << (at % 8);
        bench.disk.set_bytes(&path, flipped);
        let mut found = bench.fork();
        found.reopen();
        assert!(
            found.replayed.values >= 39,
            "byte {at}: {:?}",
            found.replayed
        );
        damaged += found.replayed.notices.len();
    }
    assert!(damaged > 20, "{damaged}");
}

/// A block's position proves that the journal before it was on the disk. A flipped bit there is damage, and frames
/// behind it count, although no later frame records a sync.
#[test]
fn a_block_proves_what_was_on_the_disk() {
    let mut bench = Bench::new(3, 2);
    bench.open();
    let used = |bench: &Bench| {
        let bytes = bench.disk.bytes(&journal()).unwrap();
        bytes.iter().rposition(|&byte| byte != 0).unwrap() + 1
    };
    bench.update("f1.rrd", &["1000000010:1"]).unwrap();
    let (begin, second) = (used(&bench), "1000000020:2");
    bench.update("f1.rrd", &[second]).unwrap();
    bench.update("f1.rrd", &["1000000030:3"]).unwrap();
    for at in 1..=4 {
        let text = format!("{}:7", 1_000_000_000 + 10 * at);
        bench.update("f0.rrd", &[&text]).unwrap();
    }
    bench.store().maintain();
    bench.disk.kill();
    let mut bytes = bench.disk.bytes(&journal()).unwrap();
    bytes[begin + 3] ^= 1;
    bench.disk.set_bytes(&journal(), bytes);
    let summary = kymo_store::verify::verify(
        std::sync::Arc::new(bench.disk.clone()),
        &folder(),
        &mut |_| {},
    );
    assert_eq!(summary.unwrap().damaged, 1);
    bench.reopen();
    assert_eq!(bench.replayed.notices.len(), 1, "{:?}", bench.replayed);
    // Rows around the damaged frame are unknown.
    bench.flush("f1.rrd").unwrap();
    let rrd = kymo_rrd::Rrd::parse(&bench.bytes("f1.rrd")).unwrap();
    assert_eq!(rrd.header.last_up, 1_000_000_030);
    assert!(rrd.cells.iter().all(|cell| cell.is_nan()));
    bench.files.retain(|(name, _)| name != "f1.rrd");
    bench.acked.retain(|acked| acked.name != "f1.rrd");
    bench.judge(bench.acked.len(), "the rest");
}

/// After a failed sync the store gives up the journal file, and the next one repeats all that memory held. A sync of
/// the next file proves nothing about the first one, whose end may have reached the disk in part.
#[test]
fn what_carries_over_proves_nothing_about_a_file_that_was_given_up() {
    let mut bench = Bench::new(3, 2);
    bench.open();
    bench.update("f1.rrd", &["1000000010:1"]).unwrap();
    bench.sync();
    let bytes = bench.disk.bytes(&journal()).unwrap();
    let synced = bytes.iter().rposition(|&byte| byte != 0).unwrap() + 1;
    for at in 2..9 {
        let text = format!("{}:{at}", 1_000_000_000 + 10 * at);
        bench.update("f1.rrd", &[&text]).unwrap();
    }
    bench.disk.set_faults(Faults {
        broken_sync: Some(bench.disk.counts().syncs + 1),
        ..Faults::default()
    });
    bench.sync();
    assert_eq!(bench.store().write_batch().stats().journals_given_up, 1);
    for at in 9..40 {
        let text = format!("{}:{at}", 1_000_000_000 + 10 * at);
        bench.update("f1.rrd", &[&text]).unwrap();
        bench.sync();
    }
    bench.disk.kill();
    assert!(
        bench
            .disk
            .bytes(&folder().join("journal-000000000002"))
            .is_some()
    );
    let mut bytes = bench.disk.bytes(&journal()).unwrap();
    bytes[synced + 5] ^= 1;
    bench.disk.set_bytes(&journal(), bytes);
    let disk = std::sync::Arc::new(bench.disk.clone());
    let summary = kymo_store::verify::verify(disk, &folder(), &mut |_| {});
    assert_eq!(summary.unwrap().damaged, 0);
    bench.reopen();
    assert_eq!(bench.replayed.notices, Vec::<String>::new());
    bench.judge(bench.acked.len(), "all of it");
}

#[test]
fn made_up_journals_do_no_harm() {
    let mut bench = Bench::new(5, 1);
    bench.open();
    for _ in 0..9 {
        bench.any_update().unwrap();
    }
    bench.flush("f0.rrd").unwrap();
    let bytes = bench.disk.bytes(&journal()).unwrap();
    let used = bytes.iter().rposition(|&byte| byte != 0).unwrap() + 1;
    let mut random = 11;
    fuzz_journal(&[]);
    for _ in 0..1500 {
        let mut whole = bytes[..used].to_vec();
        let mut entries = whole[FRAMES..].to_vec();
        for _ in 0..1 + next_random(&mut random) % 6 {
            let at = next_random(&mut random) as usize;
            let byte = next_random(&mut random) as u8;
            let (whole_len, entries_len) = (whole.len(), entries.len());
            whole[at % whole_len] = byte;
            entries[at % entries_len] = byte;
        }
        fuzz_journal(&whole);
        fuzz_journal(&entries[next_random(&mut random) as usize % 40..]);
    }
}

/// Many long candidates for a frame must not make the search quadratic.
#[test]
fn a_journal_made_to_be_slow_is_not() {
    let (_, bytes) = killed(3);
    let mut random = 3;
    // A length of two MiB, a checksum and the right mark, every eight bytes.
    let number_at = |at| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
    let (generation, base) = (number_at(24), number_at(32));
    let marked = (0..1 << 19).flat_map(|at: u64| {
        let mixed = (base + 8 * at).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mark = (generation.wrapping_add(mixed) >> 57) as u8;
        [0xff, 0xff, 0x7f, 0, 0, 0, 0, mark | 0x80]
    });
    // Random bytes, like the rest of an earlier use of the file.
    let used = (0..16 << 20).map(|_| next_random(&mut random) as u8);
    for slow in [marked.collect::<Vec<u8>>(), used.collect()] {
        let mut journal = bytes[..FRAMES].to_vec();
        journal.extend(slow);
        let start = std::time::Instant::now();
        fuzz_journal(&journal);
        assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
    }
}

/// The first build that knew version N wrote `tests/fixtures/journal-N`; KYMO_BLESS=1 rewrites the newest.
#[test]
fn all_versions_are_read_for_ever() {
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures");
    if std::env::var_os("KYMO_BLESS").is_some() {
        let mut bench = Bench::new(3, 2);
        bench.open();
        script(&mut bench);
        bench.disk.kill();
        let bytes = bench.disk.bytes(&journal()).unwrap();
        let used = bytes.iter().rposition(|&byte| byte != 0).unwrap() + 1;
        std::fs::write(format!("{fixtures}/journal-4"), &bytes[..used]).unwrap();
        return;
    }
    // Values that the script acknowledges, and the files that it leaves.
    let mut written = Bench::new(3, 2);
    written.open();
    script(&mut written);
    for version in 3..=4 {
        let mut bench = Bench::new(3, 2);
        bench.disk.create_dir_all(&folder()).unwrap();
        let bytes = std::fs::read(format!("{fixtures}/journal-{version}")).unwrap();
        bench.disk.set_bytes(&journal(), bytes);
        for (name, _) in &bench.files {
            bench
                .disk
                .set_bytes(&crate::common::base().join(name), written.bytes(name));
        }
        bench.acked = written.acked.clone();
        bench.open();
        assert_eq!(bench.replayed.notices, Vec::<String>::new());
        assert!(bench.replayed.values > 5, "{:?}", bench.replayed);
        bench.judge(written.acked.len(), &format!("version {version}"));
    }
}

fn script(bench: &mut Bench) {
    bench
        .update(
            "f0.rrd",
            &["1000000010:1", "1000000020.500000:2.25", "1000000030:U"],
        )
        .unwrap();
    bench
        .update(
            "f1.rrd",
            &["1000000010:17", "1000000020:18446744073709551615"],
        )
        .unwrap();
    bench.flush("f0.rrd").unwrap();
    bench.store().checkpoint();
    bench.update("f0.rrd", &["1000000040:1e3"]).unwrap();
    bench.flush("f0.rrd").unwrap();
    bench
        .update("f0.rrd", &["1000000050:nan", "1000000060.123456:-0.000001"])
        .unwrap();
    bench.flush("f0.rrd").unwrap();
    bench.update("f0.rrd", &["1000000070:3"]).unwrap();
}
