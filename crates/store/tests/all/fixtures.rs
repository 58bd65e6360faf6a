//! A store as an earlier build left it, kept for ever: a journal and a segment. `tests/fixtures/store-3-2` is of the first
//! build with version 3 of the journal and version 2 of segments; KYMO_BLESS=1 writes it again.

use crate::common::{Bench, base, folder};
use kymo_sys::disk::Disk;
use std::path::Path;

const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/store-3-2");

/// A store that was killed: some values are in blocks, some only in the journal.
fn lived() -> Bench {
    let mut bench = Bench::new(9, 3);
    bench.open();
    for _ in 0..60 {
        bench.any_update().unwrap();
    }
    bench.store().maintain();
    bench.store().checkpoint();
    for _ in 0..5 {
        bench.any_update().unwrap();
    }
    bench.store = None;
    bench.disk.kill();
    bench
}

fn bless(lived: &Bench) {
    let _new = std::fs::create_dir_all(FIXTURE);
    for (path, _) in lived.disk.files() {
        let Ok(name) = path.strip_prefix(folder()) else {
            continue;
        };
        if name == Path::new("lock") {
            continue;
        }
        let bytes = lived.disk.bytes(&path).unwrap();
        let used = bytes
            .iter()
            .rposition(|&byte| byte != 0)
            .map_or(0, |at| at + 1);
        std::fs::write(
            Path::new(FIXTURE).join(name),
            &bytes[..used.next_multiple_of(8).min(bytes.len())],
        )
        .unwrap();
    }
}

#[test]
fn a_store_of_journal_3_and_segments_2_is_read_for_ever() {
    let lived = lived();
    if std::env::var_os("KYMO_BLESS").is_some() {
        return bless(&lived);
    }
    let mut bench = Bench::new(9, 3);
    bench.disk.create_dir_all(&folder()).unwrap();
    let mut names = Vec::new();
    for entry in std::fs::read_dir(FIXTURE).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        bench
            .disk
            .set_bytes(&folder().join(&name), std::fs::read(entry.path()).unwrap());
        names.push(name);
    }
    for kind in ["journal-", "segment-"] {
        assert!(names.iter().any(|name| name.starts_with(kind)), "{names:?}");
    }
    for (name, _) in &bench.files {
        bench.disk.set_bytes(&base().join(name), lived.bytes(name));
    }
    bench.acked = lived.acked.clone();
    bench.open();
    assert_eq!(bench.replayed.notices, Vec::<String>::new());
    bench.judge(lived.acked.len(), "the fixture");
}
