//! Series named by label sets have no files. While their points are kept, these series answer with rows finer than their
//! archives, as do files with a long retention of points.

use crate::common::{Bench, MODES, SECOND, START, base};
use kymo_base::label_set::Labels;
use kymo_rrd::Header;
use kymo_rrd::create::{Create, define};
use kymo_store::{
    Definition, FetchError, Files, LookRange, Redefinition, Refusal, RowsWithExtremes, SeriesName,
    Store, keep_points,
};
use kymo_sys::clock::Clock;
use kymo_sys::disk::Disk;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const CELLS_MAX: u64 = 1 << 20;

fn labels(field: &str) -> Labels {
    Labels::new([("field", field.as_bytes()), ("host", b"a/b")]).unwrap()
}

/// A gauge with a step of 10 seconds, archives of 50 rows of 100 seconds, and points kept for `kept_s`.
fn header(start: i64, kept_s: u32) -> Header {
    let request = Create {
        file_name: b"",
        step: 10,
        start: Some(start),
        definitions: &[
            b"DS:value:GAUGE:60:U:U",
            b"RRA:AVERAGE:0.5:10:50",
            b"RRA:MAX:0.5:10:50",
        ],
    };
    let mut header = define(&request, start, &mut 1, None, false).unwrap().0;
    keep_points(&mut header, kept_s);
    header
}

struct Labelled {
    bench: Bench,
    labels: Labels,
    /// Accepted values, one for each interval of 10 seconds.
    values: Vec<f64>,
}

impl Labelled {
    fn new(files: Files, kept_s: u32) -> Labelled {
        let mut bench = Bench::new(7, 0);
        bench.settings.files = files;
        bench.open();
        let labels = labels("cpu.user");
        let define = |labels: &Labels| {
            let definition = Definition {
                name: SeriesName::Labels(labels),
                header: header(START, kept_s),
            };
            bench.store().define(vec![definition]).remove(0).unwrap()
        };
        assert!(define(&labels));
        assert!(!define(&labels));
        Labelled {
            bench,
            labels,
            values: Vec::new(),
        }
    }

    fn append(&mut self, count: usize) {
        for _ in 0..count {
            let at = self.values.len() as i64 + 1;
            let value = (at * 37 % 101) as f64 + 0.125;
            self.bench.clock.advance_ns(10 * SECOND);
            let mut batch = self.bench.store().write_batch();
            let stamp_ms = (START + at * 10) * 1000;
            assert_eq!(batch.append(&self.labels, stamp_ms, &[value]), Ok(1));
            batch.commit().unwrap();
            self.values.push(value);
            self.bench.store().maintain();
        }
    }

    fn look(&self, first: i64, last: i64, step: u64) -> RowsWithExtremes {
        let range = LookRange {
            from: START + first * 10,
            thru: START + last * 10,
            step,
            cells_max: CELLS_MAX,
        };
        let name = SeriesName::Labels(&self.labels);
        let found = self.bench.store().look(name, &range);
        found.unwrap_or_else(|error| panic!("{error:?}, {:?}", self.bench.replayed))
    }

    /// Names of the files in a folder.
    fn names(&self, folder: &Path) -> Vec<String> {
        let mut names = Vec::new();
        let mut each = |name: &str, _| names.push(name.to_string());
        self.bench.disk.list(folder, &mut each).unwrap();
        names
    }

    /// Checks that rows from interval `first` on equal the sent values.
    fn check(&self, first: usize, story: &str) {
        let last = self.values.len() as i64;
        let found = self.look(first as i64, last, 10).mean;
        assert_eq!(found.step, 10, "{story}");
        let wanted = found.rows.iter().zip(&self.values[first..]);
        assert!(found.rows.len() >= self.values.len() - first, "{story}");
        for (at, (found, sent)) in wanted.enumerate() {
            assert!(
                (found - sent).abs() < 1e-9,
                "{story}: row {at}: {found} {sent}"
            );
        }
    }
}

#[test]
fn rows_are_as_fine_as_the_points_and_survive() {
    for files in MODES {
        let mut all = Labelled::new(files, 15 * 86_400);
        all.append(90);
        all.check(0, "in memory and in blocks");
        all.bench.disk.kill();
        all.bench.reopen();
        all.check(0, "after a kill");
        all.append(30);
        let mut batch = all.bench.store().write_batch();
        batch.flush_all();
        batch.commit().unwrap();
        all.bench.store().maintain();
        all.bench.store().shutdown(true).unwrap();
        all.bench.reopen();
        all.check(0, "after an end that writes all files");
        let listed = all.names(&base());
        assert!(listed.is_empty(), "{files:?}: {listed:?}");
        // Archives answer where they are fine enough.
        let RowsWithExtremes {
            mean: coarse,
            min,
            max,
        } = all.look(0, 100, 100);
        assert_eq!(coarse.step, 100);
        let mean: f64 = all.values[0..10].iter().sum::<f64>() / 10.0;
        assert!((coarse.rows[0] - mean).abs() < 1e-9);
        // No archive has minima.
        assert_eq!(min, None);
        let peaks = max.unwrap();
        let peak = all.values[0..10].iter().copied().fold(0.0, f64::max);
        assert!((peaks.rows[0] - peak).abs() < 1e-9);
    }
}

/// After a start, a resent old value is refused and a newer one is taken.
#[test]
fn old_values_are_old_after_a_start() {
    let mut all = Labelled::new(Files::OnDemand, 86_400);
    all.append(9);
    all.bench.store().shutdown(true).unwrap();
    all.bench.reopen();
    let mut batch = all.bench.store().write_batch();
    let old = batch.append(&all.labels, (START + 80) * 1000, &[1.0]);
    assert!(matches!(old, Err(Refusal::Past { .. })), "{old:?}");
    drop(batch);
    all.append(1);
    all.check(0, "the next one");
}

/// A read-only store sees the acknowledged values, beside a daemon and after its death, and changes no file.
#[test]
fn who_looks_changes_nothing() {
    let mut all = Labelled::new(Files::OnDemand, 15 * 86_400);
    all.append(90);
    for story in ["beside", "after a kill"] {
        let folder = all.bench.settings.folder.clone();
        let bytes = |all: &Labelled| {
            let names = all.names(&folder).into_iter();
            let files = names.map(|name| (all.bench.disk.bytes(&folder.join(&name)), name));
            files.collect::<Vec<_>>()
        };
        let before = bytes(&all);
        let disk: Arc<dyn Disk> = Arc::new(all.bench.disk.clone());
        let clock: Arc<dyn Clock> = all.bench.clock.clone();
        let looking = Store::open_to_look(&folder, &base(), &disk, &clock).unwrap();
        let known = looking.known(0).series;
        assert_eq!(known.len(), 1, "{story}");
        let range = LookRange {
            from: START,
            thru: START + 900,
            step: 10,
            cells_max: CELLS_MAX,
        };
        let looked = looking
            .look(SeriesName::Labels(&all.labels), &range)
            .unwrap();
        for (found, sent) in looked.mean.rows.iter().zip(&all.values) {
            assert!((found - sent).abs() < 1e-9, "{story}: {found} {sent}");
        }
        drop(looking);
        assert!(bytes(&all) == before, "{story}");
        all.bench.disk.kill();
        all.bench.store = None;
    }
}

#[test]
fn points_are_kept_as_long_as_the_schema_says() {
    // 2,000 s have 200 values.
    let mut all = Labelled::new(Files::OnDemand, 2000);
    all.append(500);
    all.check(320, "what is young enough");
    // Archives answer for older values.
    assert_eq!(all.look(100, 500, 10).mean.step, 100);
    let kept = |all: &Labelled| {
        let folder = all.bench.settings.folder.clone();
        let names = all.names(&folder);
        let segments = names.iter().filter(|name| name.contains("segment"));
        let bytes = segments.filter_map(|name| all.bench.disk.bytes(&folder.join(name)));
        bytes.map(|bytes| bytes.len()).sum::<usize>()
    };
    let mut long = Labelled::new(Files::OnDemand, 15 * 86_400);
    long.append(500);
    long.check(0, "all of it");
    assert!(kept(&long) > kept(&all), "{} {}", kept(&long), kept(&all));
}

/// Fills a file with archives of 20 rows of 10 seconds and 50 of 60, and looks at it; returns the values and the answer.
fn look_at_file(kept_s: u32, first: i64, step: u64) -> (Vec<f64>, RowsWithExtremes) {
    let mut bench = Bench::new(7, 0);
    bench.open();
    let request = Create {
        file_name: b"",
        step: 10,
        start: Some(START),
        definitions: &[
            b"DS:value:GAUGE:60:U:U",
            b"RRA:AVERAGE:0.5:1:20",
            b"RRA:AVERAGE:0.5:6:50",
        ],
    };
    let mut header = define(&request, START, &mut 1, None, false).unwrap().0;
    keep_points(&mut header, kept_s);
    let name = b"mrtg/a/b.rrd";
    let definition = Definition {
        name: SeriesName::File(name),
        header,
    };
    assert!(bench.store().define(vec![definition]).remove(0).unwrap());
    let values: Vec<f64> = (1..=200)
        .map(|at| f64::from(at * 37 % 101) + 0.125)
        .collect();
    for (at, value) in (1..).zip(&values) {
        bench.clock.advance_ns(10 * SECOND);
        let value = format!("{}:{value}", START + at * 10);
        bench.update("mrtg/a/b.rrd", &[&value]).unwrap();
        bench.store().maintain();
    }
    let range = LookRange {
        from: START + first * 10,
        thru: START + 2000,
        step,
        cells_max: CELLS_MAX,
    };
    let looked = bench.store().look(SeriesName::File(name), &range).unwrap();
    (values, looked)
}

#[test]
fn points_of_a_file_are_read_where_they_are_kept_for_that() {
    const LONG: u32 = 93 * 86_400;
    let (values, looked) = look_at_file(LONG, 0, 10);
    assert_eq!(looked.mean.step, 10);
    for (at, (found, sent)) in looked.mean.rows.iter().zip(&values).enumerate() {
        assert!((found - sent).abs() < 1e-9, "row {at}: {found} {sent}");
    }
    for (kept_s, first, step, expect) in [
        // Points kept for 48 hours do not serve looks at files.
        (48 * 3600, 0, 10, 60),
        // An archive suffices if it is nearly as fine, or if it is as fine and reaches back far enough.
        (LONG, 0, 55, 60),
        (LONG, 185, 10, 10),
    ] {
        let (_, looked) = look_at_file(kept_s, first, step);
        assert_eq!(looked.mean.step, expect, "{kept_s} {first} {step}");
    }
}

#[test]
fn a_label_set_is_no_file_and_a_file_is_no_label_set() {
    let mut all = Labelled::new(Files::After(Duration::from_secs(300)), 86_400);
    all.append(3);
    let text = String::from_utf8(all.labels.text().to_vec()).unwrap();
    // Clients of rrdcached can only name files.
    let mut batch = all.bench.store().write_batch();
    let taken = batch.update(text.as_bytes(), [&b"1000009000:1"[..]]);
    assert_eq!(taken, Err(Refusal::Untouched));
    drop(batch);
    assert!(all.bench.update(&text, &["1000009000:1"]).is_err());
    assert!(all.bench.flush(&text).is_err());
    // A file whose name looks like a label set is listed by its path.
    let name = "{x}.rrd";
    let bytes = crate::common::rrd(b"GAUGE").to_bytes();
    all.bench.disk.set_bytes(&base().join(name), bytes);
    all.bench.update(name, &["1000000010:1"]).unwrap();
    let known = all.bench.store().known(0).series;
    let names: Vec<String> = known
        .into_iter()
        .map(|series| String::from_utf8(series.name).unwrap())
        .collect();
    assert_eq!(names, [text.as_str(), "./{x}.rrd"]);
    let look = |name: SeriesName<'_>| {
        let range = LookRange {
            from: START,
            thru: START + 100,
            step: 10,
            cells_max: CELLS_MAX,
        };
        all.bench.store().look(name, &range)
    };
    assert!(look(SeriesName::File(b"./{x}.rrd")).is_ok());
    let unknown = labels("nothing");
    let found = look(SeriesName::Labels(&unknown));
    assert!(matches!(found, Err(FetchError::File(_))));
    all.check(0, "beside a file");
}

#[test]
fn numbers_are_taken_exactly() {
    let mut all = Labelled::new(Files::Never, 86_400);
    let cells = [
        0.1 + 0.2,
        -0.0,
        1e300,
        5e-324,
        -123456789.125,
        1e17,
        2f64.powi(60),
    ];
    for value in cells {
        let at = all.values.len() as i64 + 1;
        let mut batch = all.bench.store().write_batch();
        let taken = batch.append(&all.labels, (START + at * 10) * 1000, &[value]);
        assert_eq!(taken, Ok(1));
        batch.commit().unwrap();
        all.values.push(value);
    }
    let found = all.look(0, cells.len() as i64, 10).mean;
    for (found, sent) in found.rows.iter().zip(cells) {
        assert!((found - sent).abs() <= sent.abs() * 1e-15, "{found} {sent}");
    }
    let mut batch = all.bench.store().write_batch();
    let stamp_ms = (START + 80) * 1000;
    assert_eq!(
        batch.append(&all.labels, stamp_ms + 250, &[f64::NAN]),
        Ok(1)
    );
    let late = batch.append(&all.labels, stamp_ms, &[1.0]);
    assert!(matches!(late, Err(Refusal::Past { .. })), "{late:?}");
}

#[test]
fn a_removed_one_begins_again() {
    let mut all = Labelled::new(Files::OnDemand, 86_400);
    all.append(90);
    let text = all.labels.text().to_vec();
    all.bench
        .store()
        .remove(std::slice::from_ref(&text))
        .remove(0)
        .unwrap();
    for _life in 0..2 {
        let again = all
            .bench
            .store()
            .remove(std::slice::from_ref(&text))
            .remove(0);
        assert!(matches!(again, Err(kymo_store::FileError::NoSuchFile)));
        all.bench.disk.kill();
        all.bench.reopen();
    }
    let definition = Definition {
        name: SeriesName::Labels(&all.labels),
        header: header(START, 86_400),
    };
    assert!(
        all.bench
            .store()
            .define(vec![definition])
            .remove(0)
            .unwrap()
    );
    all.values.clear();
    all.append(9);
    all.check(0, "the next one");
}

/// Start of the first row of five minutes.
const BEGIN: i64 = START + 200;

/// A counter every 300 seconds in the layout of an MRTG file: 8 rows of 300 seconds, 40 of half an hour.
#[test]
fn points_of_a_file_reach_where_its_fine_rows_do_not() {
    let name = SeriesName::File(b"mrtg/r1.rrd");
    for files in [Files::Never, Files::OnDemand] {
        let mut bench = Bench::new(11, 0);
        bench.settings.files = files;
        bench.open();
        let mut made = header_of_mrtg(BEGIN);
        keep_points(&mut made, 93 * 86_400);
        let header = made.clone();
        let defined = bench.store().define(vec![Definition { name, header }]);
        assert!(matches!(defined[..], [Ok(true)]));
        let update = |bench: &Bench, at: i64| {
            bench.clock.advance_ns(300 * SECOND);
            let mut batch = bench.store().write_batch();
            // A count beyond 64 bits, and a rate that changes with each value.
            let counted = 3 * u128::from(u64::MAX) + u128::from((at * at) as u64) * 150;
            let value = format!("{}:{counted}:0", BEGIN + at * 300);
            assert_eq!(batch.update(b"mrtg/r1.rrd", [value.as_bytes()]), Ok(1));
            batch.commit().unwrap();
            bench.store().maintain();
        };
        (0..200).for_each(|at| update(&bench, at));
        let look = |bench: &Bench, first: i64, last: i64, step| {
            let range = LookRange {
                from: BEGIN + first * 300,
                thru: BEGIN + last * 300,
                step,
                cells_max: CELLS_MAX,
            };
            bench.store().look(name, &range).unwrap().mean
        };
        let check = |bench: &Bench, first: i64| {
            let found = look(bench, first, 199, 300);
            assert_eq!(found.step, 300, "{files:?}");
            for (row, cells) in (first..)
                .zip(found.rows.chunks(2))
                .take(199 - first as usize)
            {
                let end = row + 1;
                let rate = (end * end - row * row) as f64 / 2.0;
                assert!((cells[0] - rate).abs() < 1e-6, "{files:?} {row} {cells:?}");
            }
        };
        check(&bench, 20);
        bench.disk.kill();
        bench.reopen();
        check(&bench, 20);
        // Archives close enough to the wanted step answer.
        assert_eq!(look(&bench, 160, 199, 1500).step, 1800);
        assert_eq!(look(&bench, 195, 199, 300).step, 300);
        // After a redefinition, only archives know the time before it.
        let mut wider = made.clone();
        wider.ds[0].par[2] = 5.0f64.to_bits();
        let change = Redefinition {
            name: b"mrtg/r1.rrd",
            from: &made,
            to: &wider,
            since: (BEGIN + 199 * 300 + 10) as f64,
        };
        assert!(matches!(bench.store().redefine(&[change])[..], [Ok(true)]));
        (200..203).for_each(|at| update(&bench, at));
        assert_eq!(look(&bench, 160, 203, 300).step, 1800);
        assert_eq!(look(&bench, 198, 203, 300).step, 300);
    }
}

fn header_of_mrtg(start: i64) -> Header {
    let request = Create {
        file_name: b"",
        step: 300,
        start: Some(start - 10),
        definitions: &[
            b"DS:ds0:COUNTER:600:0:U",
            b"DS:ds1:COUNTER:600:0:U",
            b"RRA:AVERAGE:0.5:1:8",
            b"RRA:AVERAGE:0.5:6:40",
            b"RRA:MAX:0.5:1:8",
            b"RRA:MAX:0.5:6:40",
        ],
    };
    define(&request, start, &mut 1, None, false).unwrap().0
}
