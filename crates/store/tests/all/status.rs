//! Status numbers agree with the contents of a store, beside a store at work.

use crate::common::{Bench, START, folder};
use kymo_store::status::{Status, status};
use kymo_sys::sim_disk::Faults;
use std::path::PathBuf;
use std::sync::Arc;

fn look(bench: &Bench) -> Status {
    let before = bench.disk.counts();
    let found = status(Arc::new(bench.disk.clone()), &*bench.clock, &folder()).unwrap();
    assert_eq!(bench.disk.counts(), before, "something was written");
    let bytes = found.bytes;
    let files = bench.disk.files().into_iter();
    let ours = files.filter(|(path, _)| path.starts_with(folder()));
    let sum = bytes.rows + bytes.states + bytes.points + bytes.names + bytes.heads;
    assert_eq!(
        sum + bytes.journal + bytes.free,
        ours.map(|(_, size_bytes)| size_bytes).sum::<u64>()
    );
    assert_eq!(found.notices, Vec::<String>::new());
    found
}

#[test]
fn numbers() {
    let mut bench = Bench::new(7, 3);
    bench.open();
    let found = look(&bench);
    assert_eq!((found.series, found.blocks, found.rows), (0, 0, None));
    for second in [10, 20, 30] {
        bench
            .update("f0.rrd", &[&format!("{}:1", START + second)])
            .unwrap();
    }
    bench
        .update("f1.rrd", &[&format!("{}:1", START + 40)])
        .unwrap();
    let found = look(&bench);
    assert_eq!(
        (found.series, found.forgotten, found.without_files),
        (2, 0, 0)
    );
    assert_eq!((found.unsaved.values, found.unsaved.series), (4, 2));
    assert_eq!(found.unsaved.oldest, Some(START as f64 + 10.0));
    assert!(found.bytes.journal > 4096);
    for number in 0..60 {
        let text = format!("{}:{number}", START + 50 + 10 * number);
        bench.update("f0.rrd", &[&text]).unwrap();
        bench.store().maintain();
    }
    bench.store().checkpoint();
    let found = look(&bench);
    assert!(
        found.segments > 0 && found.blocks >= found.chunks && found.chunks == 1,
        "{found:?}"
    );
    for bytes in [
        found.bytes.rows,
        found.bytes.states,
        found.bytes.points,
        found.bytes.names,
    ] {
        assert!(bytes > 20, "{found:?}");
    }
    let (from, to) = found.rows.unwrap();
    let newest = START as f64 + 640.0;
    // The oldest rows are of an archive of four rows of thirty seconds; the newest values wait for a block.
    assert!(
        from >= newest - 180.0 && from < newest && to <= newest && to > newest - 60.0,
        "{found:?}"
    );
    let (from, to) = found.points.unwrap();
    assert!(
        from == START as f64 + 10.0 && to <= newest && to > newest - 60.0,
        "{found:?}"
    );
}

/// A journal file that a daemon dropped between listing and reading was once reported as unreadable.
#[test]
fn a_journal_file_dropped_meanwhile_is_no_notice() {
    let mut bench = Bench::new(8, 3);
    bench.open();
    bench
        .update("f0.rrd", &[&format!("{}:1", START + 10)])
        .unwrap();
    let journal = |(path, _): &(PathBuf, u64)| path.to_string_lossy().contains("/journal-");
    let (path, _) = bench.disk.files().into_iter().find(journal).unwrap();
    bench.disk.set_faults(Faults {
        gone_once_listed: Some(path),
        ..Faults::default()
    });
    assert_eq!(look(&bench).unsaved.values, 0);
}
