//! Point series: acknowledged samples come back bit for bit through flushes, merges, kills, power cuts and full disks; old
//! samples become rows.

use crate::common::{Bench, SECOND, START};
use kymo_base::label_set::Labels;
use kymo_base::random::next_random;
use kymo_store::{
    Files, LookRange, Point, PointRefusal, PointSeries, PointsKind, PointsSchema, SeriesName,
    Settings, Store, Tier, TierDefinition, Writer, status, verify,
};
use kymo_sys::clock::{Clock, Stamp};
use kymo_sys::disk::{Disk, RealDisk};
use kymo_sys::sim_clock::SimClock;
use kymo_sys::sim_disk::{Fate, Faults};
use kymo_sys::skipped::skipped;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

const STALE: u64 = 0x7ff0_0000_0000_0002;
pub(crate) const ALL: (i64, i64) = (i64::MIN, i64::MAX);

pub(crate) fn labels(name: &str) -> Labels {
    Labels::new([("__name__", name.as_bytes()), ("job", b"test")]).unwrap()
}

/// Samples by series and time in milliseconds, as bits.
type Model = BTreeMap<usize, BTreeMap<i64, u64>>;

struct Points {
    bench: Bench,
    schemas: Vec<PointsSchema>,
    /// Acknowledged samples with their series.
    acked: Vec<(usize, Point)>,
    /// Number of acknowledged samples before the last successful sync.
    synced: usize,
    newest: BTreeMap<usize, i64>,
    refused: u64,
}

impl Points {
    fn new(seed: u64, series: usize) -> Points {
        let kinds = [PointsKind::Gauge, PointsKind::Counter];
        let schemas = (0..series).map(|at| PointsSchema::new(kinds[at % 2], 10, 60));
        Points {
            bench: Bench::new(seed, 0),
            schemas: schemas.collect(),
            acked: Vec::new(),
            synced: 0,
            newest: BTreeMap::new(),
            refused: 0,
        }
    }

    fn fork(&self) -> Points {
        Points {
            bench: self.bench.fork(),
            schemas: self.schemas.clone(),
            acked: self.acked.clone(),
            synced: self.synced,
            newest: self.newest.clone(),
            refused: self.refused,
        }
    }

    fn define(&self) -> Option<Vec<PointSeries>> {
        let named = self.schemas.iter().enumerate();
        let all: Vec<(Labels, PointsSchema)> = named
            .map(|(at, schema)| (labels(&format!("m{at}")), schema.clone()))
            .collect();
        let store = self.bench.store();
        let defined = store.define_points(&all).into_iter();
        defined.map(Result::ok).collect()
    }

    /// Appends a random batch: most samples are of the current time, some late, some duplicate, some stale or infinite.
    fn append(&mut self) {
        let Some(series) = self.define() else { return };
        let now_ms = self.bench.clock.now().real_ns / 1_000_000;
        let mut samples = Vec::new();
        for at in 0..series.len() {
            let count = [1, 1, 1, 0, 3][self.bench.random(5) as usize];
            for _ in 0..count {
                let late = [0, 0, 0, 5_000, 70_000, 700_000][self.bench.random(6) as usize];
                let value = self.bench.random(1000) as f64 / 8.0;
                let value = match self.bench.random(30) {
                    0 => f64::from_bits(STALE),
                    1 => -0.0,
                    2 => f64::INFINITY,
                    3 => 1.0 / 3.0,
                    _ => value,
                };
                let t_ms = now_ms - late + self.bench.random(3) as i64;
                samples.push((at, Point { t_ms, v: value }));
            }
        }
        let store = self.bench.store().clone();
        let mut batch = store.write_batch();
        let mut refused = BTreeMap::new();
        let wanted: Vec<(PointSeries, Point)> = samples
            .iter()
            .map(|(at, point)| (series[*at], *point))
            .collect();
        batch.append_points(&wanted, &mut |at, why| {
            refused.insert(at, why);
        });
        if batch.commit().is_err() {
            return;
        }
        for (number, (at, point)) in samples.into_iter().enumerate() {
            let newest = self.newest.entry(at).or_insert(i64::MIN);
            let is_old = point.t_ms < newest.saturating_sub(600_000);
            match refused.get(&number) {
                Some(PointRefusal::TooOld) => assert!(is_old, "{point:?} {newest}"),
                Some(PointRefusal::Duplicate) => {
                    let model = model(&self.acked);
                    assert!(model[&at].contains_key(&point.t_ms));
                }
                Some(other) => panic!("{other:?}"),
                None => {
                    assert!(!is_old, "{point:?} {newest}");
                    *newest = (*newest).max(point.t_ms);
                    self.acked.push((at, point));
                }
            }
            self.refused += u64::from(refused.contains_key(&number));
        }
    }

    fn step(&mut self, number: u64) {
        self.bench.clock.advance_ns(7 * SECOND);
        match number % 8 {
            3 => drop(self.bench.store().maintain()),
            5 => {
                let count = self.acked.len();
                let everything = kymo_store::Position(u64::MAX);
                if self.bench.store().durable(everything).is_ok() {
                    self.synced = count;
                }
            }
            7 if number % 32 == 7 => self.bench.store().checkpoint(),
            _ => self.append(),
        }
    }

    fn read(&self) -> Model {
        let store = self.bench.store();
        let mut found = Model::new();
        for at in 0..self.schemas.len() {
            let Some(series) = store.find_points(&labels(&format!("m{at}"))) else {
                continue;
            };
            let read = store.samples(series, ALL).unwrap();
            assert_eq!(read.damaged, 0);
            let points = read.points.iter();
            let points: BTreeMap<i64, u64> = points.map(|it| (it.t_ms, it.v.to_bits())).collect();
            assert_eq!(points.len(), read.points.len());
            if !points.is_empty() {
                found.insert(at, points);
            }
        }
        found
    }

    /// Checks that the store has the first n acknowledged samples, for some n of at least `least`; returns n.
    fn judge(&self, least: usize, story: &str) -> usize {
        let found = self.read();
        let counts = (least..=self.acked.len()).rev();
        let fits = counts
            .into_iter()
            .find(|&count| model(&self.acked[..count]) == found);
        fits.unwrap_or_else(|| {
            let all = model(&self.acked);
            let differs = all
                .iter()
                .find(|(at, points)| found.get(at) != Some(points));
            panic!(
                "{story}: none of the first {least} to {} samples fit; {:?}; {differs:?} {:?}",
                self.acked.len(),
                self.bench.replayed,
                differs.and_then(|(at, _)| found.get(at)),
            )
        })
    }

    fn verify(&self, story: &str) {
        let disk: Arc<dyn Disk> = Arc::new(self.bench.disk.clone());
        let folder = Path::new("/j/kymo");
        let mut findings = Vec::new();
        let mut say = |event: verify::Event| match event {
            verify::Event::Found(finding) if finding.weight != verify::Weight::Note => {
                findings.push(format!("{finding:?}"));
            }
            _ => {}
        };
        let checked = verify::verify(disk, folder, &mut say);
        assert!(
            checked.is_ok() && findings.is_empty(),
            "{story}: {findings:?}"
        );
    }
}

fn model(acked: &[(usize, Point)]) -> Model {
    let mut model = Model::new();
    for (at, point) in acked {
        let points = model.entry(*at).or_default();
        points.entry(point.t_ms).or_insert(point.v.to_bits());
    }
    model
}

#[test]
fn samples_come_back_through_kills_at_every_step() {
    let mut refused = 0;
    for seed in 0..4 {
        let mut points = Points::new(seed, 5);
        points.bench.open();
        for number in 0..120 {
            points.step(number);
            let story = format!("seed {seed}, step {number}");
            points.judge(points.acked.len(), &story);
            let mut killed = points.fork();
            killed.bench.disk.kill();
            killed.bench.reopen();
            killed.judge(killed.acked.len(), &story);
            assert!(killed.bench.replayed.notices.is_empty(), "{story}");
        }
        refused += points.refused;
    }
    assert!(refused > 20, "{refused}");
}

#[test]
fn samples_that_were_synced_come_back_through_power_cuts() {
    let (mut cuts, mut lost) = (0, 0);
    for seed in 0..3 {
        let mut points = Points::new(seed, 3);
        points.bench.open();
        for number in 0..60 {
            points.step(number);
            let pending = points.bench.disk.pending_len() as u32;
            for combination in 0..3_usize.pow(pending.min(4)) {
                let mut cut = points.fork();
                cut.bench.disk.crash(&mut |number| match combination
                    / 3_usize.pow(number.min(8) as u32)
                    % 3
                {
                    0 => Fate::Keep,
                    1 => Fate::Drop,
                    _ => Fate::Torn(combination as u64),
                });
                cuts += 1;
                cut.bench.reopen();
                let story = format!("seed {seed}, step {number}, fates {combination}");
                cut.judge(cut.synced, &story);
                lost += cut.bench.disk.counts().lost_at_cut;
            }
        }
    }
    assert!(cuts > 300 && lost > 100, "{cuts} {lost}");
}

#[test]
fn a_full_disk_refuses_batches_whole() {
    let mut faults = 0;
    for (at, length) in (1..60).flat_map(|at| [(at, 1), (at, 3), (at, 30)]) {
        let mut points = Points::new(at, 3);
        points.bench.open();
        let before = points.bench.disk.counts();
        let from = before.writes + at;
        points.bench.disk.set_faults(Faults {
            full_writes: Some((from, from + length)),
            ..Faults::default()
        });
        let story = format!("full for writes {at} to {}", at + length);
        for number in 0..60 {
            points.step(number);
            points.judge(points.acked.len(), &story);
        }
        faults += points.bench.disk.counts().faults - before.faults;
        points.bench.disk.set_faults(Faults::default());
        points.append();
        points.bench.disk.kill();
        points.bench.reopen();
        points.judge(points.acked.len(), &format!("{story}, killed"));
        points.verify(&story);
    }
    assert!(faults > 300, "{faults}");
}

/// Three series that keep samples for 200 seconds, 40 rows of 50 seconds and 1,000 rows of 200 seconds.
fn short(seed: u64) -> Points {
    let mut points = Points::new(seed, 3);
    let tier = |step_s, rows| TierDefinition { step_s, rows };
    for schema in &mut points.schemas {
        schema.kept_s = 200;
        schema.tiers = vec![tier(50, 40), tier(200, 1000)];
    }
    points
}

/// Rows of `step_s` seconds that the samples of a series make, by the end of the row.
pub(crate) fn rows(samples: &[(usize, Point)], series: usize, step_s: i64) -> BTreeMap<i64, Tier> {
    let mut rows: BTreeMap<i64, Tier> = BTreeMap::new();
    let mine = samples.iter().filter(|(at, _)| *at == series);
    let mut before: Option<f64> = None;
    for (_, point) in mine {
        let grown = match before {
            Some(before) if point.v >= before => point.v - before,
            Some(_) => point.v,
            None => 0.0,
        };
        before = Some(point.v);
        let end = (point.t_ms + step_s * 1000 - 1) / (step_s * 1000) * step_s;
        let row = rows.entry(end).or_insert(Tier {
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
            sum: 0.0,
            count: 0.0,
            last: 0.0,
            increase: 0.0,
        });
        row.min = row.min.min(point.v);
        row.max = row.max.max(point.v);
        row.sum += point.v;
        row.count += 1.0;
        row.last = point.v;
        row.increase += grown;
    }
    rows
}

#[test]
fn samples_become_rows_when_they_are_old() {
    let mut points = short(3);
    points.bench.open();
    let (mut random, mut values) = (5, [0.0; 3]);
    for number in 0..400 {
        points.bench.clock.advance_ns(10 * SECOND);
        let series = points.define().unwrap();
        let t_ms = points.bench.clock.now().real_ns / 1_000_000;
        let samples: Vec<(PointSeries, Point)> = (0..3)
            .map(|at| {
                values[at] += (next_random(&mut random) % 9) as f64;
                if next_random(&mut random).is_multiple_of(40) {
                    values[at] = 1.0;
                }
                points.acked.push((
                    at,
                    Point {
                        t_ms,
                        v: values[at],
                    },
                ));
                (
                    series[at],
                    Point {
                        t_ms,
                        v: values[at],
                    },
                )
            })
            .collect();
        let store = points.bench.store().clone();
        let mut batch = store.write_batch();
        assert_eq!(
            batch.append_points(&samples, &mut |_, why| panic!("{why:?}")),
            3
        );
        batch.commit().unwrap();
        store.maintain();
        if number % 40 == 39 {
            store.checkpoint();
        }
        if number == 250 {
            points.bench.disk.kill();
            points.bench.reopen();
        }
    }
    points.verify("rows");
    let store = points.bench.store();
    let now_s = points.bench.clock.now().real_ns / 1_000_000_000;
    let mut fewer = false;
    for at in 0..3 {
        let series = store.find_points(&labels(&format!("m{at}"))).unwrap();
        let left = store.samples(series, ALL).unwrap().points.len();
        fewer |= left < 200;
        for (step_s, kept) in [(50, 40), (200, 1000)] {
            let expected = rows(&points.acked, at, step_s);
            let from = (now_s - step_s * kept).max(START);
            let found = store.tier_rows(series, step_s as u32, (from + step_s, now_s + step_s));
            let found: BTreeMap<i64, Tier> = found
                .unwrap()
                .into_iter()
                .map(|row| (row.end_s, row.tier))
                .collect();
            let expected: BTreeMap<i64, Tier> = expected
                .into_iter()
                .filter(|(end, _)| *end >= from + step_s)
                .collect();
            assert_eq!(found, expected, "series {at}, rows of {step_s} s");
        }
    }
    assert!(fewer, "no sample has left");
}

#[test]
fn who_looks_sees_means_of_gauges_and_rates_of_counters() {
    let mut points = Points::new(1, 2);
    points.bench.open();
    let series = points.define().unwrap();
    let store = points.bench.store().clone();
    for n in 1..=60 {
        points.bench.clock.advance_ns(10 * SECOND);
        let t_ms = (START + n * 10) * 1000;
        let point = |v| Point { t_ms, v };
        let mut batch = store.write_batch();
        let samples = [
            (series[0], point(n as f64)),
            (series[1], point((n * 20) as f64)),
        ];
        batch.append_points(&samples, &mut |_, why| panic!("{why:?}"));
        batch.commit().unwrap();
        store.maintain();
    }
    let range = LookRange {
        from: START + 100,
        thru: START + 500,
        step: 100,
        cells_max: 100,
    };
    for (name, mean, peak) in [("m0", 15.5, Some(20.0)), ("m1", 2.0, Some(2.0))] {
        let labels = labels(name);
        let looked = store.look(SeriesName::Labels(&labels), &range).unwrap();
        assert_eq!((looked.mean.start, looked.mean.step), (START + 100, 100));
        assert_eq!(looked.mean.rows[0], mean, "{name}");
        assert_eq!(looked.max.map(|max| max.rows[0]), peak, "{name}");
    }
}

/// Bytes kept and written per sample: 1,000 series with 720 samples each, ten seconds apart.
#[test]
fn samples_take_few_bytes() {
    for (kind, kept_max, written_max) in [
        ("counters", 2.0, 6.0),
        ("gauges of two digits", 2.1, 6.0),
        ("constants", 0.2, 4.0),
        ("a mix", 2.0, 6.0),
        ("any doubles", 9.0, 20.0),
    ] {
        let mut points = Points::new(1, 1000);
        points.bench.settings.chunk_values = 64;
        points.bench.settings.journal_file_bytes = 16 << 20;
        points.bench.settings.segment_bytes = 64 << 20;
        points.bench.open();
        let series = points.define().unwrap();
        let (mut random, mut values) = (7, vec![1000.0; 1000]);
        let store = points.bench.store().clone();
        for n in 1..=720 {
            points.bench.clock.advance_ns(10 * SECOND);
            let t_ms = (START + n * 10) * 1000;
            let samples: Vec<(PointSeries, Point)> = series
                .iter()
                .zip(&mut values)
                .enumerate()
                .map(|(at, (&series, value))| {
                    let chance = next_random(&mut random);
                    let of = match (kind, at % 10) {
                        ("a mix", 0..4) => "constants",
                        ("a mix", 4..8) => "counters",
                        ("a mix", 8) => "gauges of two digits",
                        ("a mix", _) => "any doubles",
                        (kind, _) => kind,
                    };
                    match of {
                        "counters" => *value += (chance % 5000) as f64,
                        "gauges of two digits" => *value = (chance % 10_000) as f64 / 100.0,
                        "any doubles" => *value = (chance % 1_000_003) as f64 / 7.0,
                        _ => {}
                    }
                    (series, Point { t_ms, v: *value })
                })
                .collect();
            let mut batch = store.write_batch();
            batch.append_points(&samples, &mut |_, why| panic!("{why:?}"));
            batch.commit().unwrap();
            store.maintain();
        }
        let journal = store.write_batch().stats().journal_bytes as f64;
        store.shutdown(true).unwrap();
        let disk: Arc<dyn Disk> = Arc::new(points.bench.disk.clone());
        let status = status::status(disk, &*points.bench.clock, Path::new("/j/kymo")).unwrap();
        let bytes = &status.bytes;
        let kept = (bytes.points + bytes.rows + bytes.states + bytes.names + bytes.heads) as f64;
        // Each block is written once here, and zeros ahead of records do not count.
        let (kept, written) = (kept / 720e3, (journal + kept) / 720e3);
        eprintln!("{kind}: {kept:.2} B kept, {written:.2} B written a sample");
        assert!(
            kept <= kept_max && written <= written_max,
            "{kind}: {kept} {written}"
        );
    }
}

/// A series belongs to its writer, is listed with its kind and interval, and is removed with its samples.
#[test]
fn series_are_held_listed_and_removed() {
    let mut points = Points::new(1, 2);
    points.bench.open();
    points.append();
    let store = points.bench.store().clone();
    let series = points.define().unwrap();
    let now_ms = points.bench.clock.now().real_ns / 1_000_000;
    let by = |uid, t_ms| {
        let mut batch = store.write_batch();
        batch.by(Writer::uid(uid));
        let mut why = None;
        let point = Point { t_ms, v: 1.0 };
        batch.append_points(&[(series[0], point)], &mut |_, refusal| why = Some(refusal));
        batch.commit().unwrap();
        why
    };
    assert_eq!(by(1, now_ms + 1000), None);
    assert_eq!(by(2, now_ms + 2000), Some(PointRefusal::Held));
    let known = store.known(0).series;
    assert_eq!(known.len(), 2);
    assert_eq!(
        known[1].columns.columns,
        [(b"value".to_vec(), b"DERIVE".to_vec())]
    );
    assert_eq!(known[0].columns.step, 10);
    let names: Vec<Vec<u8>> = vec![labels("m0").text().to_vec()];
    assert!(store.remove(&names)[0].is_ok());
    assert!(store.find_points(&labels("m0")).is_none());
    let disk: Arc<dyn Disk> = Arc::new(points.bench.disk.clone());
    let clock = points.bench.clock.clone();
    let status = status::status(disk, &*clock, Path::new("/j/kymo")).unwrap();
    assert_eq!(status.series, 1);
    points.bench.disk.kill();
    points.bench.reopen();
    let store = points.bench.store();
    assert!(store.find_points(&labels("m0")).is_none());
    assert!(store.find_points(&labels("m1")).is_some());
}

/// A script that follows the format's document alone reads the same samples.
#[test]
fn a_script_reads_the_same_samples() {
    let has = |tool: &str| Command::new(tool).arg("--version").output().is_ok();
    if !has("python3") || !has("zstd") {
        return skipped("a_script_reads_the_same_samples: python3 or zstd is missing");
    }
    let mut points = Points::new(11, 20);
    points.bench.open();
    for number in 0..40 {
        points.step(number);
    }
    points.bench.store().shutdown(true).unwrap();
    let found = points.read();
    let place = std::env::temp_dir().join(format!("kymo-samples-{}", std::process::id()));
    let mut seen = BTreeMap::new();
    for (path, _) in points.bench.disk.files() {
        let name = path.file_name().unwrap().to_string_lossy();
        if !name.starts_with("segment-") {
            continue;
        }
        std::fs::write(&place, points.bench.disk.bytes(&path).unwrap()).unwrap();
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/recover_block.py");
        let output = Command::new("python3")
            .arg(script)
            .arg(&place)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let words: Vec<&str> = line.split(' ').collect();
            if let ["sample", chunk, slot, moment, value] = words[..] {
                let samples: &mut BTreeMap<i64, u64> =
                    seen.entry(format!("{chunk} {slot}")).or_default();
                let value = u64::from_str_radix(value, 16).unwrap();
                samples.entry(moment.parse().unwrap()).or_insert(value);
            }
        }
    }
    std::fs::remove_file(&place).unwrap();
    let mut seen: Vec<BTreeMap<i64, u64>> = seen.into_values().collect();
    let mut found: Vec<BTreeMap<i64, u64>> = found.into_values().collect();
    seen.sort();
    found.sort();
    assert!(found.len() == 20 && found.iter().all(|samples| samples.len() > 5));
    assert_eq!(seen, found);
}

/// CPU time of this thread up to its last switch to another thread, microseconds.
fn cpu_us() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    let first = text.split(' ').next().unwrap();
    first.parse::<f64>().unwrap() / 1000.0
}

/// Prints the CPU time per sample from the batch into a block on a real disk, all in this thread.
#[test]
#[ignore = "a measurement"]
fn samples_cost_little() {
    let folder = std::env::temp_dir().join(format!("kymo-points-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("db")).unwrap();
    let settings = Settings {
        files: Files::Never,
        ..Settings::new(folder.join("j"), folder.join("db"))
    };
    std::fs::create_dir_all(folder.join("j")).unwrap();
    let clock = SimClock::new(Stamp {
        real_ns: START * 1_000_000_000,
        mono_ns: 1,
        boot_ns: 1,
    });
    let clock = Arc::new(clock);
    let (store, _) = Store::open(settings, Arc::new(RealDisk), clock.clone()).unwrap();
    let definitions: Vec<(Labels, PointsSchema)> = (0..1000)
        .map(|at| {
            let schema = PointsSchema::new(PointsKind::Counter, 10, 60);
            (labels(&format!("m{at}_total")), schema)
        })
        .collect();
    let series: Vec<PointSeries> = store
        .define_points(&definitions)
        .into_iter()
        .map(Result::unwrap)
        .collect();
    let (mut random, mut values) = (7, vec![1000.0; 1000]);
    let mut made = 0.0;
    let begun = cpu_us();
    for n in 1..=720 {
        clock.advance_ns(10 * SECOND);
        let t_ms = (START + n * 10) * 1000;
        let making = std::time::Instant::now();
        let samples: Vec<(PointSeries, Point)> = series
            .iter()
            .zip(&mut values)
            .map(|(&series, value)| {
                *value += (next_random(&mut random) % 5000) as f64;
                (series, Point { t_ms, v: *value })
            })
            .collect();
        made += making.elapsed().as_secs_f64() * 1e6;
        let mut batch = store.write_batch();
        batch.append_points(&samples, &mut |_, why| panic!("{why:?}"));
        batch.commit().unwrap();
        store.maintain();
    }
    std::thread::yield_now();
    let kept = cpu_us() - begun - made;
    let begun = cpu_us();
    let read: usize = series
        .iter()
        .map(|series| store.samples(*series, ALL).unwrap().points.len())
        .sum();
    std::thread::yield_now();
    let reading = cpu_us() - begun;
    assert_eq!(read, 720_000);
    eprintln!(
        "{:.3} us a sample taken and saved, {:.3} us read",
        kept / 720e3,
        reading / 720e3
    );
    drop(store);
    std::fs::remove_dir_all(folder).unwrap();
}
