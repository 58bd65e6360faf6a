//! The poller's values through an rrdcached, stock's and kymo's, over a unix socket and TCP: the files equal those that the
//! poller would have written itself.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kymo_poll::batch::Batch;
use kymo_poll::sink::{
    Cached, Files, Kind, Layout, Layouts, POINTS_KEPT_S, Report, Series, Sink, Spans, heartbeat_s,
};
use kymo_sys::clock::RealClock;
use kymo_sys::disk::RealDisk;
use kymo_tests::rrd_daemon::{BOTH, Daemon, Side};
use kymo_tests::rrd_file::{difference, turned};
use kymo_tests::served::eventually;
use kymo_tests::{Scratch, free_port, machine};

const BEGIN_S: u64 = 1_700_000_100;
const TARGETS: usize = 7;

fn series(folder: &Path, at: usize) -> Series {
    let file = format!("r {at}.rrd");
    let path = folder.join(&file);
    Series {
        folder_bytes: path.as_os_str().len() - file.len(),
        path,
        name: file.into_bytes(),
        step_s: 300,
        heartbeat_s: heartbeat_s(300),
        kind: Kind::Counter,
        max: [Some(1_000_000), None],
        archives: Layouts::default().archives(Layout {
            interval_s: 300,
            spans: Spans::Rrd,
            rows: [Some(40); 4],
            seasonal: Vec::new(),
        }),
        points_kept_s: POINTS_KEPT_S,
        log: Default::default(),
        max_age_s: None,
    }
}

fn files() -> Files {
    Files::new(Arc::new(RealDisk), 1).expect("files")
}

fn write(sink: &mut Sink, number: u64) -> Report {
    let (mut batch, mut report) = (Batch::default(), Report::default());
    for at in 0..TARGETS {
        let stamp = BEGIN_S + number * 300;
        let (taken, sent) = (number * number * 1000, number * 7);
        batch.push(at, |out| {
            write!(out, "{stamp}.5:{taken}:{sent}").expect("memory")
        });
    }
    sink.write(&batch, &mut report);
    report
}

fn all(folder: &Path) -> Vec<Series> {
    (0..TARGETS).map(|at| series(folder, at)).collect()
}

fn compare(ours: &Path, theirs: &Path, story: &str) {
    let read = |path: &Path| turned(&std::fs::read(path).expect("a file"));
    assert_eq!(difference(&read(ours), &read(theirs)), None, "{story}");
}

/// Files with the same values, written by the poller itself.
fn expected(scratch: &Scratch, numbers: u64) -> PathBuf {
    let beside = scratch.path("beside");
    let mut sink = Sink::Files(files());
    sink.begin(all(&beside), &[]);
    for number in 0..numbers {
        assert!(write(&mut sink, number).refused.is_empty());
    }
    beside
}

fn exercise(side: Side, is_tcp: bool) {
    let story = format!("{side:?} tcp {is_tcp}");
    let scratch = Scratch::new("poll-rrdcached");
    let base = scratch.path("db");
    std::fs::create_dir(&base).expect("a folder");
    let port = free_port();
    let listen = format!("127.0.0.1:{port}");
    let options: &[&str] = match is_tcp {
        true => &["-l", &listen, "-B"],
        false => &["-B"],
    };
    let start = || Daemon::start(side, &scratch.path(""), &base, options);
    let daemon = start();
    let address = match is_tcp {
        true => listen.clone(),
        false => daemon.address(),
    };
    let cached = Cached::at(address.into_bytes(), files(), Arc::new(RealClock));
    let mut sink = Sink::Cached(cached);
    sink.begin(all(&base), &[2]);
    let mut rates = 0;
    for number in 0..6 {
        let report = write(&mut sink, number);
        assert!(
            report.refused.is_empty() && report.troubles.is_empty(),
            "{story}: {report:?}"
        );
        rates += report.rates.len();
    }
    assert_eq!(
        (rates, sink.counts().created),
        (6, TARGETS as u64),
        "{story}"
    );
    // The daemon stops and returns; meanwhile values wait.
    daemon.stop("-TERM");
    let report = write(&mut sink, 6);
    assert_eq!(
        (report.refused.len(), report.troubles.len()),
        (0, 1),
        "{story}: {report:?}"
    );
    assert_eq!(sink.counts().waiting, TARGETS as u64, "{story}");
    let daemon = start();
    let mut number = 7;
    let back = eventually(|| {
        let report = write(&mut sink, number);
        assert!(report.refused.is_empty(), "{story}: {report:?}");
        number += 1;
        (sink.counts().waiting == 0).then_some(())
    });
    back.expect("the daemon is back");
    daemon.connect().text("FLUSHALL");
    daemon.stop("-TERM");
    let beside = expected(&scratch, number);
    for at in 0..TARGETS {
        let name = format!("r {at}.rrd");
        compare(&base.join(&name), &beside.join(&name), &story);
    }
}

#[test]
fn files_are_the_same_through_a_daemon() {
    if machine::must_skip(&["rrdcached"]) {
        return;
    }
    for side in BOTH {
        for is_tcp in [false, true] {
            exercise(side, is_tcp);
        }
    }
}

/// With a `unix:` address the poller tunes files, and makes a removed one again. With TCP it only reports another maximum.
#[test]
fn files_follow_the_configuration_as_far_as_mrtgs_do() {
    if machine::must_skip(&["rrdcached"]) {
        return;
    }
    let scratch = Scratch::new("poll-rrdcached-tuned");
    let base = scratch.path("db");
    std::fs::create_dir(&base).expect("a folder");
    let listen = format!("127.0.0.1:{}", free_port());
    let daemon = Daemon::start(
        Side::Stock,
        &scratch.path(""),
        &base,
        &["-l", &listen, "-B"],
    );
    let sink = |address: &str| {
        let cached = Cached::at(address.into(), files(), Arc::new(RealClock));
        Sink::Cached(cached)
    };
    let mut local = sink(&daemon.address());
    local.begin(all(&base), &[]);
    assert!(write(&mut local, 0).refused.is_empty());
    let mut changed = all(&base);
    changed
        .iter_mut()
        .for_each(|series| series.max = [Some(5), Some(6)]);
    local.begin(changed.clone(), &[]);
    assert!(write(&mut local, 1).refused.is_empty());
    assert_eq!(local.counts().tuned, TARGETS as u64);
    let mut remote = sink(&listen);
    remote.begin(changed, &[]);
    assert!(write(&mut remote, 2).refused.is_empty());
    remote.begin(all(&base), &[]);
    let report = write(&mut remote, 3);
    assert_eq!(report.refused.len(), TARGETS, "{report:?}");
    assert!(
        report.refused[0].cause.starts_with("cannot tune r 0.rrd: "),
        "{report:?}"
    );
    assert_eq!(remote.counts().kept, 2 * TARGETS as u64);
    // A stamp that is not newer is reported for its target.
    let report = write(&mut remote, 3);
    assert_eq!(report.refused.len(), TARGETS, "{report:?}");
    assert!(
        report.refused[0]
            .cause
            .contains("illegal attempt to update"),
        "{report:?}"
    );
    // A user removes a file.
    daemon.connect().text("FLUSHALL");
    let gone = base.join("r 3.rrd");
    let is_written = eventually(|| std::fs::remove_file(&gone).ok());
    is_written.expect("a file");
    daemon.connect().text("FORGET r\\ 3.rrd");
    assert!(write(&mut local, 9).refused.is_empty());
    assert!(gone.exists() && local.counts().created == TARGETS as u64 + 1);
}
