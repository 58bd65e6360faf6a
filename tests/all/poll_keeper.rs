//! The poller's values with the keeper of `kymo serve`: files equal
//! MRTG's, points reach back for months, a killed keeper loses none.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use kymo_poll::batch::Batch;
use kymo_poll::sink::{
    DeviceReading, Files, Keeper, KeeperConnection, Kind, Layout, Layouts, POINTS_KEPT_S, Report,
    Series, Sink, Spans, heartbeat_s,
};
use kymo_sys::clock::RealClock;
use kymo_sys::disk::RealDisk;
use kymo_tests::Scratch;
use kymo_tests::rrd_client::Client;
use kymo_tests::rrd_file::{difference, turned};
use kymo_tests::served::{Served, eventually, kill};
use kymo_wire::keeper::{Range, Rows};

const INTERVAL_S: u64 = 300;
/// Sum of three full 64-bit counters.
const BEYOND: u128 = 3 * u64::MAX as u128;

struct Serving {
    served: Served,
    data: PathBuf,
    base: PathBuf,
}

impl Serving {
    fn start(scratch: &Scratch) -> Serving {
        let (data, base) = (scratch.path("data"), scratch.path("rrd"));
        let text = format!(
            "user = \"\"\n[listen]\ncollectd = []\n[store]\nbase = \"{}\"\n",
            base.display()
        );
        let mut served = Served::configured(scratch, &data, &text);
        served.address();
        served.has_said("rrdcached's protocol on");
        Serving { served, data, base }
    }

    fn connection(&self) -> KeeperConnection {
        let socket = self.data.join("keeper-write.sock");
        KeeperConnection::to(socket, Arc::new(RealClock))
    }

    fn sink(&self) -> Sink {
        Sink::Keeper(Keeper::on(self.connection()))
    }

    fn rows(&self, name: &[u8], from: u64, thru: u64) -> Result<Rows, String> {
        let keeper = kymo_keeper_client::Keeper::at(self.data.join("keeper.sock"));
        let range = Range {
            names: vec![name.to_vec()],
            from: from as i64,
            thru: thru as i64,
            rows_max: 100_000,
        };
        keeper.range(&range)?.remove(0)
    }
}

fn series(log_dir: &Path, at: usize) -> Series {
    let name = format!("r{at}.rrd");
    Series {
        path: log_dir.join(&name),
        folder_bytes: 0,
        name: format!("mrtg/{name}").into_bytes(),
        step_s: INTERVAL_S as u32,
        heartbeat_s: heartbeat_s(INTERVAL_S as u32),
        kind: Kind::Counter,
        max: [None; 2],
        archives: Layouts::default().archives(Layout {
            interval_s: INTERVAL_S as u32,
            spans: Spans::Rrd,
            rows: [None; 4],
            seasonal: Vec::new(),
        }),
        points_kept_s: POINTS_KEPT_S,
        log: Default::default(),
        max_age_s: None,
    }
}

/// Counters at a moment, in and out: each target has another rate, and rates are exact.
fn counted(at: usize, number: u64) -> (u128, u128) {
    let (at, number) = (at as u128, u128::from(number));
    let taken = BEYOND + number * number * 150 + number * at * 300;
    (taken, number * 3_000_000)
}

fn write(sink: &mut Sink, targets: usize, begin: u64, numbers: std::ops::Range<u64>) -> Report {
    let (mut batch, mut report) = (Batch::default(), Report::default());
    for number in numbers {
        for at in 0..targets {
            let (taken, sent) = counted(at, number);
            let stamp = begin + number * INTERVAL_S;
            batch.push(at, |out| {
                write!(out, "{stamp}:{taken}:{sent}").expect("memory")
            });
        }
    }
    sink.write(&batch, &mut report);
    report
}

fn check(rows: &Rows, at: usize, begin: u64) {
    assert_eq!(u64::from(rows.step), INTERVAL_S);
    for (row, cells) in rows.mean.chunks(2).enumerate() {
        let end = (rows.start as u64 - begin) / INTERVAL_S + row as u64 + 1;
        let (after, before) = (counted(at, end), counted(at, end - 1));
        let rate = (after.0 - before.0) as f64 / INTERVAL_S as f64;
        let is_last = row + 1 == rows.mean.len() / 2;
        let is_right = (cells[0] - rate).abs() < 1e-6 && (cells[1] - 10_000.0).abs() < 1e-6;
        assert!(
            is_right || is_last && cells[0].is_nan(),
            "{at} {end}: {cells:?}, not {rate}"
        );
    }
}

fn now_s() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.expect("after 1970").as_secs() / INTERVAL_S * INTERVAL_S
}

/// With a connection for each configuration, more of them than the keeper has seats displaced each other in every cycle.
#[test]
fn many_configurations_share_a_connection_to_the_keeper() {
    let scratch = Scratch::new("poll-keeper-shared");
    let serving = Serving::start(&scratch);
    let log_dir = serving.base.join("mrtg");
    let connection = serving.connection();
    let begin = now_s() - 10 * INTERVAL_S;
    let mut sinks: Vec<Sink> = (0..40)
        .map(|at| {
            let mut sink = Sink::Keeper(Keeper::on(connection.clone()));
            sink.begin(vec![series(&log_dir, at)], &[]);
            sink
        })
        .collect();
    for cycle in 0..3 {
        std::thread::scope(|scope| {
            for sink in &mut sinks {
                scope.spawn(move || {
                    let report = write(sink, 1, begin, cycle..cycle + 1);
                    assert!(report.refused.is_empty(), "{:?}", report.refused);
                    assert!(report.troubles.is_empty(), "{:?}", report.troubles);
                });
            }
        });
    }
    for sink in &sinks {
        let counts = sink.counts();
        assert_eq!((counts.kept, counts.delayed, counts.reconnected), (3, 0, 0));
    }
}

#[test]
fn series_are_files_of_mrtg_and_reach_back_for_months() {
    let scratch = Scratch::new("poll-keeper");
    let serving = Serving::start(&scratch);
    let log_dir = serving.base.join("mrtg");
    let all: Vec<Series> = (0..20).map(|at| series(&log_dir, at)).collect();
    let mut sink = serving.sink();
    sink.begin(all.clone(), &[3]);
    // 40 days of one target and a few values of the others.
    let days: u64 = 40 * 288;
    let begin = now_s() - days * INTERVAL_S;
    let report = write(&mut sink, 1, begin, 0..days - 10);
    assert!(
        report.refused.is_empty() && report.troubles.is_empty(),
        "{report:?}"
    );
    let report = write(&mut sink, 20, begin, days - 10..days);
    assert!(report.refused.is_empty(), "{:?}", report.refused);
    assert_eq!(report.rates.len(), 10);
    assert_eq!(
        report.rates[9].rates,
        [(2 * days - 3) as f64 / 2.0 + 3.0, 10_000.0]
    );
    let counts = sink.counts();
    assert_eq!((counts.created, counts.waiting), (20, 0));
    assert_eq!(counts.kept, days - 10 + 200);
    let end = begin + (days - 1) * INTERVAL_S;
    check(
        &serving.rows(b"mrtg/r0.rrd", begin, end).expect("rows"),
        0,
        begin,
    );
    // The keeper is killed: values wait until it is back.
    let keeper = serving.served.child("keeper").expect("a keeper");
    kill("-KILL", keeper);
    let mut after = days;
    let waited = eventually(|| {
        let report = write(&mut sink, 20, begin, after..after + 1);
        assert!(report.refused.is_empty(), "{:?}", report.refused);
        after += 1;
        let counts = sink.counts();
        (counts.reconnected > 0 && counts.waiting == 0).then_some(counts.delayed)
    });
    waited.expect("the keeper is back");
    assert_eq!(sink.counts().dropped, 0);
    let end = begin + (after - 1) * INTERVAL_S;
    let from = begin + (days - 9) * INTERVAL_S;
    let all_there = eventually(|| serving.rows(b"mrtg/r7.rrd", from, end).ok());
    check(&all_there.expect("rows"), 7, begin);
    // The file that the keeper writes on FLUSH equals a file that had each value written at once.
    let mut files = Sink::Files(Files::new(Arc::new(RealDisk), 1).expect("files"));
    let beside = scratch.path("beside");
    files.begin((0..20).map(|at| series(&beside, at)).collect(), &[]);
    let report = write(&mut files, 20, begin, days - 10..after);
    assert!(report.refused.is_empty(), "{:?}", report.refused);
    let mut client = Client::unix(&serving.data.join("rrdcached.sock")).expect("a client");
    client.text("FLUSH mrtg/r7.rrd");
    let read = |path: &Path| {
        let mut bytes = turned(&std::fs::read(path).expect("a file"));
        // This word holds kymo's retention of points; rrdtool does not use it.
        bytes[120..128].fill(0);
        bytes
    };
    let (ours, theirs) = (read(&log_dir.join("r7.rrd")), read(&beside.join("r7.rrd")));
    assert_eq!(difference(&ours, &theirs), None);
    changed_maxima(&serving, &mut sink, all, (begin, after));
}

/// A configuration with another maximum: stored values stay, later ones are judged by the new maximum.
fn changed_maxima(
    serving: &Serving,
    sink: &mut Sink,
    mut all: Vec<Series>,
    (begin, next): (u64, u64),
) {
    all.iter_mut()
        .for_each(|series| series.max = [Some(5), None]);
    sink.begin(all, &[]);
    let report = write(sink, 20, begin, next..next + 3);
    assert!(report.refused.is_empty(), "{:?}", report.refused);
    assert_eq!(sink.counts().tuned, 20);
    let end = begin + (next + 2) * INTERVAL_S;
    let rows = serving
        .rows(b"mrtg/r7.rrd", end - 6 * INTERVAL_S, end)
        .expect("rows");
    let taken: Vec<bool> = rows.mean.chunks(2).map(|cells| cells[0].is_nan()).collect();
    assert!(!taken[0] && taken[4], "{rows:?}");
    assert!(
        rows.mean
            .chunks(2)
            .take(5)
            .all(|cells| cells[1] == 10_000.0),
        "{rows:?}"
    );
}

#[test]
fn devices_have_series_of_their_own() {
    let scratch = Scratch::new("poll-keeper-devices");
    let serving = Serving::start(&scratch);
    let mut sink = serving.sink();
    let mut report = Report::default();
    let begin = now_s() - 3000;
    for at in 0..10u64 {
        let readings = ["192.0.2.1", "192.0.2.2:1161"].map(|device| DeviceReading {
            device: device.as_bytes(),
            stamp_ms: ((begin + at * 300) * 1000) as i64,
            round_trip_s: 0.0025,
            losses: 3.0,
            retries: 0.0,
            unseen_s: f64::NAN,
            late_s: 0.5,
        });
        sink.write_devices(&readings, 300, &mut report);
    }
    assert!(report.troubles.is_empty(), "{report:?}");
    let name = b"{device=\"192.0.2.2:1161\",job=\"poll\"}";
    let rows = serving.rows(name, begin, begin + 2700).expect("rows");
    let row = &rows.mean[5..10];
    assert_eq!((row[0], row[1], row[4]), (0.0025, 3.0, 0.5));
    assert!(row[3].is_nan());
    let _ = rows
        .columns
        .iter()
        .map(|name| String::from_utf8_lossy(name));
    assert_eq!(rows.columns[0], b"round_trip_s");
}

#[test]
fn what_cannot_be_defined_is_said_for_its_target() {
    let scratch = Scratch::new("poll-keeper-refused");
    let serving = Serving::start(&scratch);
    let log_dir = serving.base.join("mrtg");
    let mut all: Vec<Series> = (0..3).map(|at| series(&log_dir, at)).collect();
    all[1].name = b"../outside.rrd".to_vec();
    let mut sink = serving.sink();
    sink.begin(all, &[]);
    let begin = now_s() - 3000;
    let report = write(&mut sink, 3, begin, 0..1);
    assert_eq!(report.refused.len(), 1, "{:?}", report.refused);
    assert_eq!(report.refused[0].target, 1);
    assert!(
        report.refused[0]
            .cause
            .starts_with("cannot define ../outside.rrd: "),
        "{report:?}"
    );
    assert_eq!((sink.counts().kept, sink.counts().refused), (2, 1));
    let again = write(&mut sink, 3, begin, 0..1);
    assert_eq!(again.refused.len(), 3, "{:?}", again.refused);
    assert!(
        again.refused[0].cause.contains("illegal attempt to update"),
        "{again:?}"
    );
}
