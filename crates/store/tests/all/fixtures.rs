//! Stores of earlier builds, kept for ever: a journal and segments. `tests/fixtures/store-3-2` is of the first build with version
//! 3 of the journal and version 2 of segments, whose names are absolute; `store-4-3` of the first with versions 4 and 3;
//! `store-5-4` of the first with samples.
//! KYMO_BLESS=1 rewrites the newest.

use crate::common::{Bench, START, base, folder, settings};
use kymo_base::label_set::Labels;
use kymo_store::{Point, PointSeries, PointsKind, PointsSchema, Settings, Store};
use kymo_sys::disk::Disk;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const FIXTURES: [&str; 3] = ["store-3-2", "store-4-3", "store-5-4"];

fn path_of(fixture: &str) -> PathBuf {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    all.join(fixture)
}

/// Copies the fixture into the store's folder.
fn put(bench: &Bench, fixture: &str) {
    bench.disk.create_dir_all(&folder()).unwrap();
    let mut names = Vec::new();
    for entry in std::fs::read_dir(path_of(fixture)).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let bytes = std::fs::read(entry.path()).unwrap();
        bench.disk.set_bytes(&folder().join(&name), bytes);
        names.push(name);
    }
    for kind in ["journal-", "segment-"] {
        assert!(names.iter().any(|name| name.starts_with(kind)), "{names:?}");
    }
}

/// Samples of three series, some of them NaN.
fn samples() -> impl Iterator<Item = (usize, Point)> {
    (0..50_i64).map(|n| {
        let v = match n % 7 {
            0 => f64::from_bits(0x7ff0_0000_0000_0002),
            1 => 1.0 / (n + 2) as f64,
            _ => (n * n) as f64 / 4.0,
        };
        let t_ms = (START + n * 10) * 1000 + n % 3;
        ((n % 3) as usize, Point { t_ms, v })
    })
}

fn point_series(bench: &Bench) -> Vec<PointSeries> {
    let kinds = [PointsKind::Gauge, PointsKind::Counter, PointsKind::Untyped];
    let definitions = kinds.iter().enumerate().map(|(at, kind)| {
        let name = format!("m{at}");
        let labels = Labels::new([("__name__", name.as_bytes()), ("job", b"a")]);
        (labels.unwrap(), PointsSchema::new(*kind, 30, 60))
    });
    let definitions: Vec<_> = definitions.collect();
    let defined = bench.store().define_points(&definitions).into_iter();
    defined.map(Result::unwrap).collect()
}

fn append(bench: &Bench, samples: impl Iterator<Item = (usize, Point)>) {
    let series = point_series(bench);
    let samples: Vec<(PointSeries, Point)> = samples.map(|(at, it)| (series[at], it)).collect();
    let store = bench.store();
    let mut batch = store.write_batch();
    batch.append_points(&samples, &mut |_, why| panic!("{why:?}"));
    batch.commit().unwrap();
}

fn has_samples(bench: &Bench) {
    for (at, series) in point_series(bench).into_iter().enumerate() {
        let read = bench.store().samples(series, (i64::MIN, i64::MAX)).unwrap();
        let bits = |point: &Point| (point.t_ms, point.v.to_bits());
        let mine = samples().filter(|(series, _)| *series == at);
        let mine: Vec<(i64, u64)> = mine.map(|(_, point)| bits(&point)).collect();
        let found: Vec<(i64, u64)> = read.points.iter().map(bits).collect();
        assert_eq!(found, mine, "{at}");
    }
}

/// A killed store with some values in blocks and some only in the journal.
fn lived() -> Bench {
    let mut bench = Bench::new(9, 3);
    bench.open();
    for _ in 0..60 {
        bench.any_update().unwrap();
    }
    let mut samples = samples();
    append(&bench, samples.by_ref().take(40));
    bench.store().maintain();
    bench.store().checkpoint();
    append(&bench, samples);
    for _ in 0..5 {
        bench.any_update().unwrap();
    }
    bench.store = None;
    bench.disk.kill();
    bench
}

fn bless(lived: &Bench) {
    let newest = path_of(FIXTURES[2]);
    let _new = std::fs::create_dir_all(&newest);
    for (path, _) in lived.disk.files() {
        let Ok(name) = path.strip_prefix(folder()) else {
            continue;
        };
        if [Path::new("lock"), Path::new("place")].contains(&name) {
            continue;
        }
        let bytes = lived.disk.bytes(&path).unwrap();
        let used = bytes
            .iter()
            .rposition(|&byte| byte != 0)
            .map_or(0, |at| at + 1);
        std::fs::write(
            newest.join(name),
            &bytes[..used.next_multiple_of(8).min(bytes.len())],
        )
        .unwrap();
    }
}

#[test]
fn stores_of_all_versions_are_read_for_ever() {
    let lived = lived();
    if std::env::var_os("KYMO_BLESS").is_some() {
        return bless(&lived);
    }
    for fixture in FIXTURES {
        let mut bench = Bench::new(9, 3);
        put(&bench, fixture);
        for (name, _) in &bench.files {
            bench.disk.set_bytes(&base().join(name), lived.bytes(name));
        }
        bench.acked = lived.acked.clone();
        bench.open();
        assert_eq!(bench.replayed.notices, Vec::<String>::new(), "{fixture}");
        bench.judge(lived.acked.len(), fixture);
        if fixture == FIXTURES[2] {
            has_samples(&bench);
        }
    }
}

/// Opens the store with this base; returns the names of all series, and the notices.
fn names(bench: &Bench, base: &str) -> (Vec<String>, Vec<String>) {
    bench.disk.create_dir_all(Path::new(base)).unwrap();
    let settings = Settings {
        base: base.into(),
        beneath: true,
        ..settings()
    };
    let disk: Arc<dyn Disk> = Arc::new(bench.disk.clone());
    let (store, replayed) = Store::open(settings, disk, bench.clock.clone()).unwrap();
    let known = store.known(0).series;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let mut names: Vec<String> = known.into_iter().map(|series| text(series.name)).collect();
    names.sort();
    store.shutdown(false).unwrap();
    drop(store);
    bench.disk.kill();
    (names, replayed.notices)
}

/// A store restored elsewhere once listed series by absolute paths, beside new empty ones.
#[test]
fn names_follow_a_store_that_is_moved() {
    let series = ["f0.rrd", "f1.rrd", "f2.rrd"];
    let absolute = ["/db/f0.rrd", "/db/f1.rrd", "/db/f2.rrd"];
    let in_place = [("/db", &series, "")];
    let moved = [(
        "/moved/files",
        &series,
        "the base was /moved/db and is /moved/files now",
    )];
    let after = |first: (&'static str, &'static str)| [(first.0, &series, first.1)];
    for (fixture, starts) in [
        ("store-4-3", [after(("/moved/db", "")), moved].concat()),
        // Started once in its old place.
        (
            "store-3-2",
            [
                in_place,
                after(("/moved/db", "the base was /db and is /moved/db now")),
                moved,
            ]
            .concat(),
        ),
        // Moved before any start: only one folder can have been the base.
        (
            "store-3-2",
            [
                after((
                    "/moved/db",
                    "3 series were below /db and are below /moved/db now",
                )),
                moved,
            ]
            .concat(),
        ),
        // The old place is unknown.
        (
            "store-3-2",
            vec![(
                "/moved/files",
                &absolute,
                "if the store was moved, start kymo once where it was",
            )],
        ),
    ] {
        let bench = Bench::new(9, 3);
        put(&bench, fixture);
        for (base, wanted, said) in starts {
            let (found, notices) = names(&bench, base);
            assert_eq!(&found[..], wanted, "{fixture} at {base}: {notices:?}");
            let is_said = notices.iter().any(|line| line.contains(said));
            assert!(
                is_said || said.is_empty(),
                "{fixture} at {base}: {notices:?}"
            );
        }
    }
}
