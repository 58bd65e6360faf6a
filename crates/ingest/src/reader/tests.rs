use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use kymo_rrd::create::{Create, define};
use kymo_series::{Op, Selector};
use kymo_store::{Definition, Files, Point, PointsSchema, Settings};
use kymo_sys::clock::Stamp;
use kymo_sys::disk::Disk as _;
use kymo_sys::sim_clock::SimClock;
use kymo_sys::sim_disk::SimDisk;

use super::*;

const START: i64 = 1_000_000_000;
const LAST: RowsAs = RowsAs::values(RowValue::Last);

fn store() -> Store {
    let disk = SimDisk::new(1);
    for folder in ["/j", "/db"] {
        disk.create_dir_all(Path::new(folder)).unwrap();
    }
    let clock = SimClock::new(Stamp {
        real_ns: START * 1_000_000_000,
        mono_ns: 1,
        boot_ns: 1,
    });
    let settings = Settings {
        files: Files::Never,
        ..Settings::new("/j", "/db")
    };
    let opened = Store::open(settings, Arc::new(disk), Arc::new(clock));
    opened.unwrap().0
}

/// Adds a file of rrdtool's with these sources, or a label set with archives.
fn add(store: &Store, name: SeriesName<'_>, sources: &[&[u8]], value: &str) {
    let archives: [&[u8]; 1] = [b"RRA:AVERAGE:0.5:1:100"];
    let words: Vec<&[u8]> = sources.iter().chain(&archives).copied().collect();
    let request = Create {
        step: 10,
        start: Some(START),
        definitions: &words,
        ..Create::default()
    };
    let (header, _) = define(&request, START, &mut 1, None, false).unwrap();
    let defined = store.define(vec![Definition { name, header }]);
    assert!(matches!(defined[..], [Ok(true)]));
    let mut batch = store.write_batch();
    for n in 1..=3 {
        match name {
            SeriesName::File(name) => {
                let text = format!("{}:{value}", START + n * 10);
                batch.update(name, [text.as_bytes()]).unwrap();
            }
            SeriesName::Labels(labels) => {
                let cells = [value.parse().unwrap()];
                batch
                    .append(labels, (START + n * 10) * 1000, &cells)
                    .unwrap();
            }
        }
    }
    batch.commit().unwrap();
}

fn add_points(store: &Store, labels: &[(&str, &str)], kind: PointsKind) {
    let labels = labels.iter().map(|(name, value)| (*name, value.as_bytes()));
    let labels = Labels::new(labels).unwrap();
    let series = store.define_points(&[(labels, PointsSchema::new(kind, 10, 60))]);
    let series = *series[0].as_ref().unwrap();
    let samples = (1..=3).map(|n| {
        let point = Point {
            t_ms: (START + n * 10) * 1000 + 250,
            v: n as f64,
        };
        (series, point)
    });
    let mut batch = store.write_batch();
    let samples: Vec<_> = samples.collect();
    batch.append_points(&samples, &mut |_, why| panic!("{why:?}"));
    batch.commit().unwrap();
}

fn filled() -> StoreReader {
    let store = store();
    let gauge: &[u8] = b"DS:value:GAUGE:60:U:U";
    let rates: [&[u8]; 2] = [b"DS:rx:DERIVE:60:U:U", b"DS:tx:DERIVE:60:U:U"];
    let file = |name: &'static str| SeriesName::File(name.as_bytes());
    add(&store, file("web1/load/load.rrd"), &[gauge], "5");
    add(
        &store,
        file("web1/interface-eth0/if_octets.rrd"),
        &rates,
        "7:9",
    );
    add(&store, file("router.rrd"), &[gauge], "1");
    let earlier = [
        ("field", &b"cpu.user"[..]),
        ("host", b"web1"),
        ("job", b"kymo"),
    ];
    let earlier = Labels::new(earlier).unwrap();
    add(&store, SeriesName::Labels(&earlier), &[gauge], "42.5");
    for (method, kind) in [("get", PointsKind::Counter), ("put", PointsKind::Counter)] {
        let labels = [
            ("__name__", "http_requests_total"),
            ("job", "web"),
            ("method", method),
        ];
        add_points(&store, &labels, kind);
    }
    add_points(
        &store,
        &[("__name__", "temperature_celsius")],
        PointsKind::Gauge,
    );
    StoreReader::new(store)
}

/// No series is missing because it began while another thread looked for series.
#[test]
fn series_that_begin_during_a_search_are_found() {
    let store = store();
    let reader = StoreReader::new(store.clone());
    let is_ended = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_ended.load(Ordering::Relaxed) {
                drop(reader.index());
            }
        });
        for number in 0..20_000 {
            let number = number.to_string();
            add_points(
                &store,
                &[("__name__", "up"), ("instance", &number)],
                PointsKind::Gauge,
            );
        }
        is_ended.store(true, Ordering::Relaxed);
    });
    assert_eq!(selected(&reader, "up").len(), 20_000);
}

/// Sets of earlier builds get the names and units of today, and each column of a set gets a name of its
/// own.
#[test]
fn sets_of_earlier_builds_have_names_and_units() {
    let store = store();
    let set = |labels: &[(&str, &str)]| {
        let labels = labels.iter().map(|(name, value)| (*name, value.as_bytes()));
        Labels::new(labels).unwrap()
    };
    let gauge: &[u8] = b"DS:value:GAUGE:60:U:U";
    let active = set(&[
        ("field", "active_time"),
        ("job", "postgres"),
        ("server", "main"),
    ]);
    add(&store, SeriesName::Labels(&active), &[gauge], "2500");
    let device = set(&[("device", "sw1"), ("job", "poll")]);
    let columns: [&[u8]; 2] = [b"DS:losses:GAUGE:60:U:U", b"DS:late_s:GAUGE:60:U:U"];
    let words = [columns[0], columns[1], b"RRA:AVERAGE:0.5:1:100"];
    let request = Create {
        step: 10,
        start: Some(START),
        definitions: &words,
        ..Create::default()
    };
    let (header, _) = define(&request, START, &mut 1, None, false).unwrap();
    let name = SeriesName::Labels(&device);
    assert!(store.define(vec![Definition { name, header }])[0].is_ok());
    let reader = StoreReader::new(store);
    let all = selected(&reader, r#"{job=~".+"}"#);
    let seconds = "pg_stat_database_active_time_seconds_total";
    assert_eq!(
        all,
        [
            r#"{__name__="kymo_poll_late_s",device="sw1",job="poll"}"#.to_string(),
            r#"{__name__="kymo_poll_losses",device="sw1",job="poll"}"#.to_string(),
            format!(r#"{{__name__="{seconds}",job="postgres",server="main"}}"#),
        ]
    );
    let matchers = [Matcher::of_metric(seconds)];
    let (all, mut budget, mut taken) = (TimeRange::ALL, Budget::UNLIMITED, Taken::default());
    let ids = reader.select(&matchers, all, &mut budget).unwrap();
    reader
        .samples(&ids, all, LAST, &mut budget, &mut taken)
        .unwrap();
    assert_eq!(taken.samples[0], (10_000, 2.5, 10));
}

fn selected(reader: &StoreReader, selector: &str) -> Vec<String> {
    let matchers = Selector::parse(selector).unwrap().0;
    let mut budget = Budget::UNLIMITED;
    let ids = reader
        .select(&matchers, TimeRange::ALL, &mut budget)
        .unwrap();
    let labels = ids.iter().map(|id| reader.labels(*id).unwrap());
    let mut labels: Vec<String> = labels
        .map(|labels| String::from_utf8_lossy(labels.text()).into_owned())
        .collect();
    labels.sort();
    labels
}

#[test]
fn series_are_selected_by_their_labels() {
    let reader = filled();
    let get = r#"{__name__="http_requests_total",job="web",method="get"}"#;
    let put = r#"{__name__="http_requests_total",job="web",method="put"}"#;
    let load = r#"{__name__="rrd",ds="value",path="web1/load/load"}"#;
    let rx = r#"{__name__="rrd",ds="rx",path="web1/interface-eth0/if_octets"}"#;
    let user = r#"{__name__="kymo_cpu_user",instance="web1",job="kymo"}"#;
    for (selector, expected) in [
        ("http_requests_total", vec![get, put]),
        (r#"http_requests_total{method="get"}"#, vec![get]),
        (r#"http_requests_total{method!="get"}"#, vec![put]),
        (r#"http_requests_total{method=~"g.*|x"}"#, vec![get]),
        (r#"{method=~"get|put",job="web"}"#, vec![get, put]),
        (r#"{method="delete"}"#, vec![]),
        (r#"{nothing="x"}"#, vec![]),
        (r#"rrd{path="web1/load/load"}"#, vec![load]),
        ("collectd_load", vec![load]),
        (r#"collectd_load{instance="web2"}"#, vec![]),
        (
            r#"collectd_interface_if_octets_rx_total{interface="eth0"}"#,
            vec![rx],
        ),
        (r#"{__name__=~"collectd_l.+"}"#, vec![]),
        ("kymo_cpu_user", vec![user]),
        (r#"{__name__=~"kymo_.*",instance="web1"}"#, vec![user]),
    ] {
        assert_eq!(selected(&reader, selector), expected, "{selector}");
    }
    assert_eq!(selected(&reader, r#"{__name__=~".+"}"#).len(), 8);
}

#[derive(Default)]
struct Taken {
    samples: Vec<(i64, f64, u32)>,
    rows: Vec<Row>,
}

impl SampleSink for Taken {
    fn samples(&mut self, _id: SeriesId, samples: &[Sample], resolution_s: u32) {
        let samples = samples.iter();
        let samples = samples.map(|sample| (sample.t_ms - START * 1000, sample.v, resolution_s));
        self.samples.extend(samples);
    }
}

impl RowSink for Taken {
    fn rows(&mut self, _id: SeriesId, rows: &[Row], _step_s: u32) {
        self.rows.extend_from_slice(rows);
    }
}

#[test]
fn samples_are_those_that_were_sent_and_rows_elsewhere() {
    let reader = filled();
    for (selector, expected) in [
        (
            r#"http_requests_total{method="get"}"#,
            vec![(10_250, 1.0, 0), (20_250, 2.0, 0), (30_250, 3.0, 0)],
        ),
        (
            "collectd_load",
            vec![(10_000, 5.0, 10), (20_000, 5.0, 10), (30_000, 5.0, 10)],
        ),
        (
            "kymo_cpu_user",
            vec![(10_000, 42.5, 10), (20_000, 42.5, 10), (30_000, 42.5, 10)],
        ),
    ] {
        let matchers = Selector::parse(selector).unwrap().0;
        let mut budget = Budget::UNLIMITED;
        let range = TimeRange {
            from_ms: START * 1000,
            thru_ms: START * 1000 + 60_000,
        };
        let ids = reader.select(&matchers, range, &mut budget).unwrap();
        let mut taken = Taken::default();
        reader
            .samples(&ids, range, LAST, &mut budget, &mut taken)
            .unwrap();
        assert_eq!(taken.samples, expected, "{selector}");
        reader
            .rows(&ids, range, 20, &mut budget, &mut taken)
            .unwrap();
        assert!(!taken.rows.is_empty(), "{selector}");
        let mut few = Budget {
            samples: 2,
            ..Budget::UNLIMITED
        };
        let refused = reader.samples(&ids, range, LAST, &mut few, &mut taken);
        assert_eq!(refused, Err(ReadError::TooMuch { things: "samples" }));
    }
    // A series that ended before the range is not selected.
    let matchers = [Matcher::of_metric("http_requests_total")];
    let later = TimeRange {
        from_ms: START * 1000 + 60_000,
        thru_ms: i64::MAX,
    };
    let ids = reader.select(&matchers, later, &mut Budget::UNLIMITED.clone());
    assert_eq!(ids, Ok(vec![]));
}

/// Rows of a counter are rates, of which `RowValue::Growth` makes a counter again.
#[test]
fn rows_of_counters_grow() {
    let store = store();
    let columns: [&[u8]; 2] = [b"DS:rx:DERIVE:60:U:U", b"DS:load:GAUGE:60:U:U"];
    let archives: [&[u8]; 2] = [b"RRA:AVERAGE:0.5:1:100", b"RRA:AVERAGE:0.5:6:100"];
    let words: Vec<&[u8]> = columns.iter().chain(&archives).copied().collect();
    let request = Create {
        step: 10,
        start: Some(START),
        definitions: &words,
        ..Create::default()
    };
    let (header, _) = define(&request, START, &mut 1, None, false).unwrap();
    let name = SeriesName::File(b"a.rrd");
    assert!(store.define(vec![Definition { name, header }])[0].is_ok());
    let mut batch = store.write_batch();
    for n in 1..=180_i64 {
        let text = format!("{}:{}:{n}", START + n * 10, n * 70);
        batch.update(b"a.rrd", [text.as_bytes()]).unwrap();
    }
    batch.commit().unwrap();
    let reader = StoreReader::new(store);
    let read = |column: &str, from_s: i64, value: RowValue, before: u8| {
        let selector = format!("rrd{{ds=\"{column}\"}}");
        let matchers = Selector::parse(&selector).unwrap().0;
        let mut budget = Budget::UNLIMITED;
        let range = TimeRange {
            from_ms: (START + from_s) * 1000,
            thru_ms: (START + 1800) * 1000,
        };
        let ids = reader.select(&matchers, range, &mut budget).unwrap();
        let (mut taken, rows) = (Taken::default(), RowsAs { value, before });
        reader
            .samples(&ids, range, rows, &mut budget, &mut taken)
            .unwrap();
        taken.samples
    };
    let grown = read("rx", 1700, RowValue::Growth, 0);
    for pair in grown.windows(2) {
        assert_eq!(
            (pair[1].0 - pair[0].0, pair[1].1 - pair[0].1),
            (10_000, 70.0)
        );
    }
    assert_eq!(read("rx", 1700, RowValue::Mean, 0)[0], (1_700_000, 7.0, 10));
    assert_eq!(read("load", 1700, RowValue::Growth, 0)[0].1, 170.0);
    // Rows before the range are of the archive that reaches so far.
    assert_eq!(read("rx", 1700, RowValue::Last, 2)[0], (1_680_000, 7.0, 10));
    let coarse = read("rx", 300, RowValue::Growth, 2);
    assert_eq!((coarse[0].0, coarse[0].2), (200_000, 60));
    assert_eq!(coarse[1].1 - coarse[0].1, 420.0);
}

#[test]
fn labels_values_and_kinds_are_listed() {
    let reader = filled();
    let all = TimeRange::ALL;
    let names = reader.label_names(&[], all).unwrap();
    assert_eq!(
        names,
        ["__name__", "ds", "instance", "job", "method", "path"]
    );
    let matchers = [Matcher::of_metric("http_requests_total")];
    let names = reader.label_names(&matchers, all).unwrap();
    assert_eq!(names, ["__name__", "job", "method"]);
    let values = reader.label_values("method", &[], all).unwrap();
    assert_eq!(values, ["get", "put"]);
    let values = reader.label_values("__name__", &[], all).unwrap();
    let metrics = [
        "http_requests_total",
        "kymo_cpu_user",
        "rrd",
        "temperature_celsius",
    ];
    assert_eq!(values, metrics);
    let metadata = reader.metadata(Some("http_requests_total")).unwrap();
    assert_eq!(metadata[0].kind, Kind::Counter);
    assert_eq!(reader.metadata(None).unwrap().len(), 4);
}

/// The index finds series that began later, and finds no removed series.
#[test]
fn the_index_follows_the_store() {
    let reader = filled();
    assert_eq!(selected(&reader, "later_total").len(), 0);
    add_points(
        &reader.store,
        &[("__name__", "later_total")],
        PointsKind::Counter,
    );
    assert_eq!(selected(&reader, "later_total").len(), 1);
    let name = Labels::new([("__name__", &b"later_total"[..])]).unwrap();
    let removed = reader.store.remove(&[name.text().to_vec()]);
    assert!(removed[0].is_ok());
    assert_eq!(selected(&reader, "later_total").len(), 0);
}

/// An index of many series needs little memory, and a request looks at a few of them only.
#[test]
fn an_index_takes_few_bytes() {
    let store = store();
    let definitions = (0..20_000).map(|n| {
        let instance = format!("host{}", n / 100);
        let cpu = (n % 100).to_string();
        let labels = [
            ("__name__", &b"node_cpu_seconds_total"[..]),
            ("cpu", cpu.as_bytes()),
            ("instance", instance.as_bytes()),
            ("job", b"node"),
            ("mode", b"idle"),
        ];
        let schema = PointsSchema::new(PointsKind::Counter, 10, 60);
        (Labels::new(labels).unwrap(), schema)
    });
    let definitions: Vec<(Labels, PointsSchema)> = definitions.collect();
    for part in definitions.chunks(1000) {
        assert!(store.define_points(part).iter().all(Result::is_ok));
    }
    let reader = StoreReader::new(store);
    let equal = |label: &str, value: &str| Matcher::new(label, Op::Equal, value).unwrap();
    let matchers = [
        equal("instance", "host7"),
        equal("cpu", "3"),
        equal("job", "node"),
    ];
    let index = reader.index();
    assert_eq!(index.candidates(&matchers).len(), 1);
    let bytes = index.bytes() as f64 / 20_000.0;
    assert!(bytes <= 60.0, "{bytes} bytes a series");
}

/// Prints the time of a selection by equality among many series.
#[test]
#[ignore = "a measurement"]
fn selections_are_quick() {
    for count in [20_300, 1_000_000] {
        let store = store();
        let definitions = (0..count).map(|n| {
            let (instance, cpu) = (format!("host{}", n / 100), (n % 100).to_string());
            let labels = [
                ("__name__", &b"node_cpu_seconds_total"[..]),
                ("cpu", cpu.as_bytes()),
                ("instance", instance.as_bytes()),
                ("mode", b"idle"),
            ];
            let schema = PointsSchema::new(PointsKind::Counter, 10, 60);
            (Labels::new(labels).unwrap(), schema)
        });
        let definitions: Vec<(Labels, PointsSchema)> = definitions.collect();
        for part in definitions.chunks(1000) {
            assert!(store.define_points(part).iter().all(Result::is_ok));
        }
        let reader = StoreReader::new(store);
        drop(reader.index());
        let equal = |label: &str, value: &str| Matcher::new(label, Op::Equal, value).unwrap();
        for matchers in [
            vec![equal("instance", "host7"), equal("cpu", "3")],
            vec![equal("instance", "host7")],
        ] {
            let begun = std::time::Instant::now();
            let range = TimeRange::ALL;
            let ids = reader.select(&matchers, range, &mut Budget::UNLIMITED.clone());
            let took = begun.elapsed();
            eprintln!("{} of {count} series in {took:?}", ids.unwrap().len());
        }
    }
}
