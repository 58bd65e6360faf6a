use std::path::Path;
use std::sync::Arc;

use kymo_base::label_set::Labels;
use kymo_sys::disk::Disk as _;
use kymo_sys::sim_disk::SimDisk;

use super::*;

/// Begin of the tests, in seconds since 1970.
const BEGIN_S: i64 = 1_800_000_000;
const STALE: u64 = 0x7ff0_0000_0000_0002;

/// A listener, its store, and a clock that advances ten seconds at each flush.
struct Rig {
    intake: StatsdIntake,
    store: Store,
    now: Stamp,
}

impl Rig {
    fn new() -> Rig {
        let disk = Arc::new(SimDisk::new(1));
        let mut settings = kymo_store::Settings::new("/kept", "/base");
        settings.files = kymo_store::Files::Never;
        disk.create_dir_all(Path::new("/base")).unwrap();
        let now = Stamp {
            real_ns: BEGIN_S * 1_000_000_000,
            mono_ns: 1_000_000_000_000,
            boot_ns: 0,
        };
        let clock = kymo_sys::sim_clock::SimClock::new(now);
        Rig {
            intake: StatsdIntake::new(10),
            store: Store::open(settings, disk, Arc::new(clock)).unwrap().0,
            now,
        }
    }

    fn send(&mut self, lines: &str) {
        self.send_as(SenderLot(0), lines);
    }

    fn send_as(&mut self, sender: SenderLot, lines: &str) {
        self.intake
            .take_lines(lines.as_bytes(), sender, &self.store, self.now);
        self.intake.end_round(&self.store);
    }

    fn flush(&mut self) {
        self.now.real_ns += 10_000_000_000;
        self.now.mono_ns += 10_000_000_000;
        self.intake.on_time(&self.store, self.now, false);
    }

    /// Values of a series, to whose labels `job` is added; a stale marker is -99. `None`: there is no
    /// such series.
    fn values(&self, labels: &str) -> Option<Vec<f64>> {
        let (name, rest) = labels.split_once('{').unwrap_or((labels, "}"));
        let mut pairs = vec![("__name__", name), ("job", "statsd")];
        let rest = rest.trim_end_matches('}');
        let others = rest.split(',').filter(|pair| !pair.is_empty());
        pairs.extend(others.map(|pair| pair.split_once('=').unwrap()));
        let pairs = pairs
            .into_iter()
            .map(|(key, value)| (key, value.as_bytes()));
        let series = self.store.find_points(&Labels::new(pairs).unwrap())?;
        let read = self.store.samples(series, (i64::MIN, i64::MAX)).unwrap();
        let plain = |v: f64| if v.to_bits() == STALE { -99.0 } else { v };
        Some(read.points.iter().map(|point| plain(point.v)).collect())
    }

    fn troubles(&mut self) -> String {
        self.intake.troubles().take().unwrap_or_default()
    }
}

/// Lines of each flush, a series, and its values after the flushes.
const TABLE: &[(&[&str], &str, &[f64])] = &[
    (&["a:1|c\na:2|c", "", "a:4|c"], "a_total", &[3.0, 3.0, 7.0]),
    (&["a:1|c|@0.1\na:1.5|c"], "a_total", &[11.5]),
    (&["a:5|c\na:-2|c"], "a_total", &[3.0]),
    (&["a:3|wrong"], "a_total", &[3.0]),
    (&["a.b-c/d:1|c"], "a_b_c_d_total", &[1.0]),
    (&["a_total:1|c"], "a_total", &[1.0]),
    (
        &["a:1|c|#x:1,y:2\na:1|c|#y:2,x:1"],
        "a_total{x=1,y=2}",
        &[2.0],
    ),
    (&["a:1|c|#job:z"], "a_total{exported_job=z}", &[1.0]),
    (&["a:7|g", "", "a:8|g"], "a", &[7.0, 7.0, 8.0]),
    (&["a:7|g\na:+3|g", "a:-4|g"], "a", &[10.0, 6.0]),
    // A signed number is the new value of a gauge that is unknown or 0.
    (&["a:-4|g", "a:0|g\na:-2|g"], "a", &[-4.0, -2.0]),
    (&["a:+3|g|#x:1", "a:+3|g|#x:1"], "a{x=1}", &[3.0, 6.0]),
    (&["a:x|s\na:y|s\na:x|s", "", "a:z|s"], "a", &[2.0, 0.0, 1.0]),
    (&["a:5|ms\na:7|h\na:9|d", "a:1|ms"], "a_count", &[3.0, 4.0]),
    (&["a:5|ms\na:7|ms", "a:1|ms"], "a_sum", &[12.0, 13.0]),
    (&["a:5|ms\na:7|ms", "", "a:1|ms"], "a_min", &[5.0, 1.0]),
    (&["a:5|ms\na:7|ms", "", "a:1|ms"], "a_max", &[7.0, 1.0]),
    (&["a:5|ms|@0.5"], "a_count", &[2.0]),
    (&["a:5|ms|@0.5"], "a_sum", &[10.0]),
    (&["a:5|ms", "a:6|ms"], "a_bucket{le=5}", &[1.0, 1.0]),
    (&["a:5|ms", "a:6|ms"], "a_bucket{le=4}", &[0.0, 0.0]),
    // A bucket begins with its first value, and counts smaller values from then on, too.
    (&["a:5|ms", "a:6|ms"], "a_bucket{le=6}", &[2.0]),
    (&["a:5|ms", "a:1e30|ms"], "a_bucket{le=+Inf}", &[1.0, 2.0]),
    (&["a:0|ms"], "a_bucket{le=0}", &[1.0]),
    (&["a:-3.1|h"], "a_bucket{le=-3}", &[1.0]),
    (
        &["a:0.3|ms|#le:x"],
        "a_bucket{exported_le=x,le=0.3125}",
        &[1.0],
    ),
];

#[test]
fn values_add_up_as_their_kinds_do() {
    for (flushes, series, expected) in TABLE {
        let mut rig = Rig::new();
        for lines in *flushes {
            rig.send(lines);
            rig.flush();
        }
        let values = rig.values(series);
        assert_eq!(values.as_deref(), Some(*expected), "{flushes:?} {series}");
    }
}

#[test]
fn a_silent_metric_ends_with_a_mark_and_begins_again() {
    let mut rig = Rig::new();
    rig.send("a:1|c\nb:2|ms");
    (0..32).for_each(|_| rig.flush());
    let mut expected = vec![1.0; 30];
    expected.push(-99.0);
    assert_eq!(rig.values("a_total"), Some(expected.clone()));
    assert_eq!(rig.values("b_count"), Some(expected));
    assert_eq!(rig.values("b_min"), Some(vec![2.0, -99.0]));
    assert!(rig.intake.metrics.is_empty());
    assert!(rig.intake.metrics.is_empty());
    assert_eq!(rig.intake.due_ns(), None);
    rig.send("a:5|c");
    rig.flush();
    assert_eq!(rig.values("a_total").unwrap().last(), Some(&5.0));
    assert_eq!(rig.troubles(), "");
}

#[test]
fn lines_that_are_not_used_are_counted() {
    let mut rig = Rig::new();
    rig.send("a\n:1|c\na:x|c\na:1|ms|@2\n_e{1,1}:a|b\n_sc|a|0\na:-1|ms\nb:1|?\n");
    rig.intake.refuse_long_line();
    let report = rig.troubles();
    for part in [
        "1 x a value without a type",
        "1 x no name",
        "1 x a value that is not a decimal number",
        "1 x a sample rate",
        "1 x an event",
        "1 x a service check",
        "1 x a time below 0",
        "1 x a type that is not known",
        "1 x a line of more than 8192 bytes",
    ] {
        assert!(report.contains(part), "{part} is missing in {report}");
    }
    assert!(report.ends_with("; such as: a"), "{report}");
}

#[test]
fn two_metrics_do_not_write_one_series() {
    let mut rig = Rig::new();
    rig.send("a.b:1|c");
    rig.flush();
    rig.send("a/b:5|c\nt:1|ms\nt_count:9|g");
    rig.flush();
    assert_eq!(rig.values("a_b_total"), Some(vec![1.0, 1.0]));
    let count = rig.values("t_count").unwrap();
    assert!(count == [1.0] || count == [9.0], "{count:?}");
    let report = rig.troubles();
    assert!(
        report.contains("2 x a series whose name another metric has"),
        "{report}"
    );
}

#[test]
fn a_flood_of_names_costs_no_more_than_the_limit() {
    let mut rig = Rig::new();
    for name in 0..20_000 {
        rig.send(&format!("f{name}:1|c"));
    }
    rig.send("f0:1|c");
    rig.flush();
    let stored = (0..20_000).filter(|name| rig.values(&format!("f{name}_total")).is_some());
    assert_eq!(stored.count(), 10_000);
    assert_eq!(rig.values("f0_total"), Some(vec![2.0]));
    let report = rig.troubles();
    let refused = "10000 x a sample of a new name beyond the limit of new ones; such as: f10000";
    assert_eq!(report, refused);
    // Another sender has a share of its own.
    for name in 0..8_000 {
        rig.send_as(SenderLot(1), &format!("g{name}:1|c"));
    }
    rig.flush();
    let stored = (0..8_000).filter(|name| rig.values(&format!("g{name}_total")).is_some());
    // Half of the rest of a minute's budget, which grew by ten seconds.
    assert!((6_600..6_700).contains(&stored.count()));
}

#[test]
fn series_that_somebody_removed_begin_again() {
    let mut rig = Rig::new();
    rig.send("a:1|c");
    rig.flush();
    let labels = Labels::new([("__name__", &b"a_total"[..]), ("job", b"statsd")]).unwrap();
    let removed = rig.store.remove(&[labels.text().to_vec()]);
    assert!(removed.iter().all(Result::is_ok), "{removed:?}");
    (0..2).for_each(|_| rig.flush());
    assert_eq!(rig.values("a_total"), Some(vec![1.0]));
}
