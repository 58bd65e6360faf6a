//! Requests into a store in memory, and what becomes of their samples.

use std::path::Path;

use kymo_base::label_set::Labels;
use kymo_store::{Files, Settings};
use kymo_sys::sim_disk::SimDisk;
use kymo_wire::remote_write::{
    FamilyMetadata, MetricType, SeriesMetadata, WriteEncoder, WriteLabel, WriteSample, compress,
};

use super::*;

const STALE: f64 = f64::from_bits(0x7ff0_0000_0000_0002);

struct Bench {
    disk: Arc<SimDisk>,
    store: Store,
    pushes: Pushes,
    now_ms: i64,
}

fn opened(disk: &Arc<SimDisk>) -> Store {
    let mut settings = Settings::new("/kept", "/base");
    settings.files = Files::Never;
    settings.points = Some(Default::default());
    let opened = Store::open(settings, disk.clone(), Arc::new(RealClock));
    opened.unwrap().0
}

impl Bench {
    fn new() -> Bench {
        let disk = Arc::new(SimDisk::new(1));
        disk.create_dir_all(Path::new("/base")).unwrap();
        Bench {
            store: opened(&disk),
            disk,
            pushes: Pushes::default(),
            now_ms: RealClock.now().real_ns / 1_000_000,
        }
    }

    fn send(&self, version: WriteVersion, fill: impl FnOnce(&mut WriteEncoder)) -> PushResult {
        let mut encoder = WriteEncoder::new(version);
        fill(&mut encoder);
        let (mut message, mut body) = (Vec::new(), Vec::new());
        encoder.finish(&mut message);
        compress(&message, &mut body).unwrap();
        let format = match version {
            WriteVersion::V1 => PushFormat::RemoteWriteV1,
            WriteVersion::V2 => PushFormat::RemoteWriteV2,
        };
        self.push(format, body)
    }

    fn push(&self, format: PushFormat, body: Vec<u8>) -> PushResult {
        let sender = "192.0.2.7".into();
        let push = Push {
            format,
            sender,
            body,
        };
        let log: Log = Arc::new(|_, _| {});
        self.pushes.take(&self.store, &push, &log)
    }

    /// Sends samples of one series, by their age in seconds.
    fn write(&self, labels: &[(&str, &str)], samples: &[(i64, f64)]) -> PushResult {
        self.send(WriteVersion::V1, |encoder| {
            encoder.push(&labels_of(labels), &self.samples(samples), None);
        })
    }

    fn samples(&self, samples: &[(i64, f64)]) -> Vec<WriteSample> {
        let samples = samples.iter().map(|&(age_s, value)| WriteSample {
            t_ms: self.now_ms - age_s * 1000,
            value,
            created_ms: None,
        });
        samples.collect()
    }

    /// Stored samples, as the age in seconds and the bits of the value.
    fn stored(&self, labels: &str) -> Vec<(i64, u64)> {
        let labels = Labels::parse(labels.as_bytes()).unwrap();
        let Some(series) = self.store.find_points(&labels) else {
            return Vec::new();
        };
        let read = self.store.samples(series, (i64::MIN, i64::MAX)).unwrap();
        let points = read.points.iter();
        points
            .map(|point| ((self.now_ms - point.t_ms) / 1000, point.v.to_bits()))
            .collect()
    }
}

fn labels_of<'a>(labels: &[(&'a str, &'a str)]) -> Vec<WriteLabel<'a>> {
    let labels = labels.iter();
    labels
        .map(|&(name, value)| WriteLabel { name, value })
        .collect()
}

fn bits(samples: &[(i64, f64)]) -> Vec<(i64, u64)> {
    samples.iter().map(|(age, v)| (*age, v.to_bits())).collect()
}

#[test]
fn samples_are_stored_bit_for_bit_and_once() {
    let bench = Bench::new();
    let other_nan = f64::from_bits(0x7ff8_0000_0000_0001);
    let samples = [(40, 1.5), (30, -0.0), (20, other_nan), (10, STALE)];
    for _ in 0..2 {
        let pushed = bench.write(&[("__name__", "up"), ("job", "a")], &samples);
        let all = PushResult {
            status: 204,
            samples: 4,
            ..PushResult::default()
        };
        assert_eq!(pushed, all);
        assert_eq!(bench.stored(r#"{__name__="up",job="a"}"#), bits(&samples));
    }
    let later = bench.write(&[("__name__", "up"), ("job", "a")], &[(5, 2.0)]);
    assert_eq!(later.status, 204);
    let accounts = bench.pushes.pushers();
    let [account] = &accounts[..] else {
        panic!("{accounts:?}")
    };
    assert_eq!(
        (account.protocol.as_str(), account.sender.as_str()),
        ("remote_write", "192.0.2.7")
    );
    assert_eq!(
        (account.requests, account.samples, account.series),
        (3, 9, 1)
    );
}

/// An acknowledged sample is there although the keeper was killed at once.
#[test]
fn what_was_answered_is_in_the_journal() {
    let bench = Bench::new();
    let samples = [(20, 1.0), (10, 2.0)];
    let pushed = bench.write(&[("__name__", "up")], &samples);
    assert_eq!(pushed.status, 204);
    // Nothing of the store is saved or ended in order.
    let disk = Arc::new(bench.disk.fork());
    disk.kill();
    let again = Bench {
        store: opened(&disk),
        disk,
        pushes: Pushes::default(),
        now_ms: bench.now_ms,
    };
    assert_eq!(again.stored(r#"{__name__="up"}"#), bits(&samples));
}

#[test]
fn each_refusal_has_a_reason_and_costs_itself_alone() {
    let good = ("__name__", "up");
    let bench = Bench::new();
    assert_eq!(bench.write(&[good], &[(5, 1.0)]).status, 204);
    let own = machine::host();
    let long = "x".repeat(3000);
    let days_16 = 16 * 86_400;
    for (labels, sample, why) in [
        (&[good][..], (-700, 1.0), "more than 10 minutes ahead"),
        (&[good], (days_16, 1.0), "older than samples are kept"),
        (
            &[good],
            (1000, 1.0),
            "more than 10 minutes older than the newest",
        ),
        (&[good], (5, 2.0), "another value of this moment"),
        (&[good, ("a.b", "c")], (5, 1.0), "not letters, digits and _"),
        (&[good, ("long", &long)], (5, 1.0), "too long or too many"),
        (&[("a", "b")], (5, 1.0), "without a metric's name"),
        (&[good, ("job", "statsd")], (5, 1.0), "kymo's own"),
        (
            &[good, ("instance", &own), ("job", "node")],
            (5, 1.0),
            "kymo's own",
        ),
    ] {
        let pushed = bench.send(WriteVersion::V1, |encoder| {
            encoder.push(&labels_of(labels), &bench.samples(&[sample]), None);
            let other = [("__name__", "other")];
            encoder.push(&labels_of(&other), &bench.samples(&[(5, 7.0)]), None);
        });
        assert_eq!((pushed.status, pushed.refused), (400, 1), "{why}");
        assert_eq!(pushed.samples, 1, "{why}");
        assert!(pushed.why.contains(why), "{why}: {}", pushed.why);
    }
    let reasons = bench.pushes.pushers().remove(0).refused;
    assert_eq!(reasons.iter().map(|(_, count)| count).sum::<u64>(), 9);
    assert_eq!(bench.stored(r#"{__name__="up"}"#), bits(&[(5, 1.0)]));
}

#[test]
fn what_is_no_request_is_refused() {
    let bench = Bench::new();
    for (format, body, status) in [
        (PushFormat::RemoteWriteV1, &b"\xff\xff"[..], 400),
        (PushFormat::RemoteWriteV1, b"\xff\xff\xff\x7f", 413),
        (PushFormat::RemoteWriteV1, b"\x02\x04\x0a\x09", 400),
        (PushFormat::RemoteWriteV2, b"\x02\x04\x2a\x09", 400),
        (PushFormat::Otlp, b"\x0a\x09", 400),
        (PushFormat::Otlp, b"", 200),
        (PushFormat::RemoteWriteV1, b"\0", 204),
    ] {
        let pushed = bench.push(format, body.to_vec());
        assert_eq!(pushed.status, status, "{body:?}: {pushed:?}");
        assert_eq!(pushed.why.is_empty(), status < 300, "{pushed:?}");
    }
}

/// More series than one batch has, and more samples of one of them.
#[test]
fn requests_of_many_series_and_of_many_samples() {
    let bench = Bench::new();
    let names: Vec<String> = (0..5000).map(|number| number.to_string()).collect();
    let pushed = bench.send(WriteVersion::V2, |encoder| {
        for name in &names {
            let labels = [("__name__", "many"), ("n", name)];
            encoder.push(
                &labels_of(&labels),
                &bench.samples(&[(2, 1.0), (1, 2.0)]),
                None,
            );
        }
    });
    assert_eq!((pushed.status, pushed.samples), (204, 10_000));
    let long: Vec<(i64, f64)> = (0..9000).map(|at| (9000 - at, 0.5)).collect();
    let pushed = bench.write(&[("__name__", "long")], &long);
    assert_eq!((pushed.status, pushed.samples), (204, 9000));
    assert_eq!(bench.stored(r#"{__name__="long"}"#), bits(&long));
    let one = bench.stored(r#"{__name__="many",n="4999"}"#);
    assert_eq!(one, bits(&[(2, 1.0), (1, 2.0)]));
}

#[test]
fn new_series_have_a_budget() {
    let bench = Bench::new();
    let pushed = bench.send(WriteVersion::V1, |encoder| {
        for number in 0..50_100 {
            let name = number.to_string();
            let labels = [("__name__", "flood"), ("n", &*name)];
            encoder.push(&labels_of(&labels), &bench.samples(&[(1, 1.0)]), None);
        }
    });
    assert_eq!(pushed.status, 400);
    assert!((50_000..50_100).contains(&pushed.samples), "{pushed:?}");
    assert!(pushed.why.contains("beyond the limit of new ones"));
    // Known series go on.
    assert_eq!(
        bench
            .write(&[("__name__", "flood"), ("n", "7")], &[(0, 2.0)])
            .status,
        204
    );
}

#[test]
fn a_series_that_was_removed_begins_again() {
    let bench = Bench::new();
    let labels = [("__name__", "up")];
    assert_eq!(bench.write(&labels, &[(9, 1.0)]).status, 204);
    let removed = bench.store.remove(&[br#"{__name__="up"}"#.to_vec()]);
    assert!(removed[0].is_ok());
    let pushed = bench.write(&labels, &[(5, 2.0)]);
    assert_eq!(pushed.status, 503, "{pushed:?}");
    assert_eq!(bench.write(&labels, &[(5, 2.0)]).status, 204);
    assert_eq!(bench.stored(r#"{__name__="up"}"#), bits(&[(5, 2.0)]));
}

#[test]
fn descriptions_decide_the_kind_and_are_kept() {
    let bench = Bench::new();
    let metadata_of = |metric_type, help| SeriesMetadata {
        metric_type,
        help,
        unit: "seconds",
    };
    let pushed = bench.send(WriteVersion::V1, |encoder| {
        encoder.push_family(&FamilyMetadata {
            family: "old",
            metadata: metadata_of(MetricType::Counter, "Old ones."),
        });
    });
    assert_eq!(pushed.status, 204);
    bench.write(&[("__name__", "old")], &[(5, 1.0)]);
    bench.send(WriteVersion::V2, |encoder| {
        let wait = metadata_of(MetricType::Histogram, "Waits.");
        let labels = [("__name__", "wait_count"), ("job", "a")];
        encoder.push(
            &labels_of(&labels),
            &bench.samples(&[(5, 1.0)]),
            Some(&wait),
        );
    });
    let kinds = |labels: &str| {
        let known = bench.store.known(0).series;
        let of = known
            .into_iter()
            .find(|known| known.name == labels.as_bytes());
        of.and_then(|of| of.points).map(|(_, kind)| kind)
    };
    use kymo_store::PointsKind;
    assert_eq!(kinds(r#"{__name__="old"}"#), Some(PointsKind::Counter));
    assert_eq!(
        kinds(r#"{__name__="wait_count",job="a"}"#),
        Some(PointsKind::Histogram)
    );
    let families = bench.pushes.families("");
    let shown = families
        .iter()
        .map(|of| (&*of.metric, &*of.kind, &*of.help));
    let shown: Vec<_> = shown.collect();
    assert_eq!(
        shown,
        [
            ("old", "counter", "Old ones."),
            ("wait", "histogram", "Waits.")
        ]
    );
}
