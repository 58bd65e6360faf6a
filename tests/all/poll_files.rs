//! .rrd files that the poller writes have the same bytes as those of stock rrdtool and of MRTG itself.

use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::Arc;

use kymo_poll::batch::Batch;
use kymo_poll::sink::{
    Files, Kind, Layout, Layouts, POINTS_KEPT_S, Report, Series, Sink, Spans, heartbeat_s, step_s,
};
use kymo_sys::disk::RealDisk;
use kymo_tests::rrd_file::{difference, turned};
use kymo_tests::rrd_stream::Random;
use kymo_tests::rrdtool::Pipe;
use kymo_tests::served::eventually;
use kymo_tests::{Scratch, machine};

const BEGIN_S: u64 = 1_700_000_000;

/// Settings of a target in a configuration.
struct Target {
    interval_s: u32,
    kind: Kind,
    max: [Option<u64>; 2],
    seasonal: &'static str,
}

const TARGETS: &[Target] = &[
    Target {
        interval_s: 300,
        kind: Kind::Counter,
        max: [Some(1_250_000_000), Some(125_000)],
        seasonal: "",
    },
    Target {
        interval_s: 60,
        kind: Kind::Gauge,
        max: [None, Some(100)],
        seasonal: "",
    },
    Target {
        interval_s: 10,
        kind: Kind::Absolute,
        max: [Some(u64::MAX), None],
        seasonal: "",
    },
    Target {
        interval_s: 1800,
        kind: Kind::Derive,
        max: [Some(5), Some(12_345_678_901)],
        seasonal: "",
    },
    Target {
        interval_s: 300,
        kind: Kind::Counter,
        max: [Some(1_000_000); 2],
        seasonal: "RRA:HWPREDICT:20:0.1:0.0035:5",
    },
];

fn series(folder: &Path, at: usize) -> Series {
    let target = &TARGETS[at % TARGETS.len()];
    let words = target.seasonal.split_whitespace();
    Series {
        path: folder.join(format!("t{at}.rrd")),
        folder_bytes: 0,
        name: Vec::new(),
        step_s: step_s(target.interval_s),
        heartbeat_s: heartbeat_s(target.interval_s),
        kind: target.kind,
        max: target.max,
        archives: Layouts::default().archives(Layout {
            interval_s: target.interval_s,
            spans: Spans::Rrd,
            rows: [Some(40), None, Some(7), Some(3)],
            seasonal: words.map(|word| word.as_bytes().to_vec()).collect(),
        }),
        points_kept_s: POINTS_KEPT_S,
        log: Default::default(),
        max_age_s: None,
    }
}

fn sink(series: Vec<Series>) -> Sink {
    let files = Files::new(Arc::new(RealDisk), 1).expect("files");
    let mut sink = Sink::Files(files);
    sink.begin(series, &[]);
    sink
}

fn words(words: &[Vec<u8>]) -> String {
    let words: Vec<_> = words
        .iter()
        .map(|word| String::from_utf8_lossy(word))
        .collect();
    words.join(" ")
}

/// A random value, mostly one that a device would send.
fn value(random: &mut Random, kind: Kind, last: &mut u128) -> String {
    *last += u128::from(random.below(1 << 30));
    match random.below(20) {
        0 => "U".into(),
        1 => {
            *last = u128::from(random.below(1000));
            last.to_string()
        }
        2 if kind == Kind::Counter => {
            // A sum of counters that exceeds 64 bits.
            (*last + u128::from(u64::MAX) * 3).to_string()
        }
        3 => "-5".into(),
        4 => "12.5".into(),
        _ => last.to_string(),
    }
}

#[test]
fn files_are_rrdtools_to_the_last_bit() {
    if machine::must_skip(&["rrdtool"]) {
        return;
    }
    let scratch = Scratch::new("poll-files-rrdtool");
    let (ours, theirs) = (scratch.path("ours"), scratch.path("theirs"));
    std::fs::create_dir_all(&theirs).expect("a folder");
    std::fs::create_dir_all(&ours).expect("a folder");
    let all: Vec<Series> = (0..40).map(|at| series(&ours, at)).collect();
    let mut sink = sink(all.clone());
    let mut pipe = Pipe::start(&theirs);
    let mut random = Random(1);
    let (mut batch, mut report) = (Batch::default(), Report::default());
    let mut stamps = vec![BEGIN_S; all.len()];
    let mut last = vec![[0; 2]; all.len()];
    let mut refused = 0;
    for cycle in 0..60 {
        batch.clear();
        report.clear();
        let mut said = 0;
        for (at, series) in all.iter().enumerate() {
            let step = u64::from(series.step_s);
            stamps[at] += match random.below(30) {
                0 => step * 4,
                1 => 0,
                2 => step * 100,
                _ => step,
            };
            let stamp = format!("{}.{:06}", stamps[at], random.below(1_000_000));
            let [taken, sent] = [0, 1].map(|i| value(&mut random, series.kind, &mut last[at][i]));
            let argument = format!("{stamp}:{taken}:{sent}");
            let file = format!("t{at}.rrd");
            if cycle == 0 {
                create(&mut pipe, series, stamps[at]);
                // Created under the path of kymo's file: archives of Holt-Winters depend on the name.
                std::fs::rename(&series.path, theirs.join(&file)).expect("a file");
            }
            let done = pipe.ask(&format!("update {file} {argument}"));
            said += usize::from(done.is_err());
            batch.push(at, |out| out.extend(argument.as_bytes()));
        }
        sink.write(&batch, &mut report);
        assert_eq!(report.refused.len(), said, "{:?}", report.refused);
        refused += said;
    }
    assert!(refused > 0, "nothing was refused");
    for (at, series) in all.iter().enumerate() {
        compare(&series.path, &theirs.join(format!("t{at}.rrd")));
    }
}

/// Creates a file with rrdtool as MRTG does for a first value at `first_s`.
fn create(pipe: &mut Pipe, series: &Series, first_s: u64) {
    pipe.must(&format!(
        "create {} -b {} -s {} {} {}",
        series.path.display(),
        first_s - 10,
        series.step_s,
        words(&series.sources()),
        words(&series.archives)
    ));
}

/// Panics unless the files are equal, except for the random start of each archive's rows.
fn compare(ours: &Path, theirs: &Path) {
    let read = |path: &Path| std::fs::read(path).expect("a file");
    let (ours_bytes, theirs_bytes) = (turned(&read(ours)), turned(&read(theirs)));
    if let Some(difference) = difference(&ours_bytes, &theirs_bytes) {
        panic!("{}: {difference}", ours.display());
    }
    let mode = |path: &Path| {
        std::fs::metadata(path)
            .expect("a file")
            .permissions()
            .mode()
    };
    assert_eq!(mode(ours), mode(theirs), "{}", ours.display());
}

#[test]
fn files_are_tuned_as_rrdtool_does() {
    if machine::must_skip(&["rrdtool"]) {
        return;
    }
    let scratch = Scratch::new("poll-files-tuned");
    let theirs = scratch.path("theirs");
    std::fs::create_dir_all(&theirs).expect("a folder");
    let mut one = series(&scratch.path("ours"), 0);
    let mut pipe = Pipe::start(&theirs);
    let mut sink = sink(vec![one.clone()]);
    let (sources, archives) = (words(&one.sources()), words(&one.archives));
    pipe.must(&format!(
        "create t0.rrd -b {} -s 300 {sources} {archives}",
        BEGIN_S - 10
    ));
    let mut stamp = BEGIN_S;
    let changes: [(Kind, [Option<u64>; 2]); 5] = [
        (Kind::Counter, [Some(1_250_000_000), Some(125_000)]),
        (Kind::Gauge, [None, Some(3)]),
        (Kind::Gauge, [None, Some(3)]),
        (Kind::Absolute, [Some(1 << 60), None]),
        (Kind::Derive, [Some(17), None]),
    ];
    for (kind, max) in changes {
        (one.kind, one.max) = (kind, max);
        sink.begin(vec![one.clone()], &[]);
        let [first, second] = [0, 1].map(|at| one.max_word(at));
        let kind = kind.word();
        pipe.must(&format!(
            "tune t0.rrd -a ds0:{first} -a ds1:{second} -d ds0:{kind} -d ds1:{kind}"
        ));
        for _ in 0..3 {
            let argument = format!("{stamp}:{}:7", stamp % 1000);
            pipe.must(&format!("update t0.rrd {argument}"));
            let (mut batch, mut report) = (Batch::default(), Report::default());
            batch.push(0, |out| out.extend(argument.as_bytes()));
            sink.write(&batch, &mut report);
            assert!(report.refused.is_empty(), "{:?}", report.refused);
            stamp += 300;
        }
        compare(&one.path, &theirs.join("t0.rrd"));
    }
    assert_eq!(sink.counts().tuned, 3);
}

/// Writes a batch of one value for each of these targets; returns the causes of refusals.
fn write(sink: &mut Sink, targets: &[usize], stamp: u64) -> Vec<String> {
    let (mut batch, mut report) = (Batch::default(), Report::default());
    for &target in targets {
        batch.push(target, |out| write!(out, "{stamp}:1:2").expect("memory"));
    }
    sink.write(&batch, &mut report);
    let causes = report.refused.into_iter();
    causes.map(|refusal| refusal.cause).collect()
}

#[test]
fn a_file_that_rrdtool_has_locked_is_updated_later() {
    if machine::must_skip(&["rrdtool"]) {
        return;
    }
    let scratch = Scratch::new("poll-files-locked");
    let folder = scratch.path("");
    let mut sink = sink(vec![series(&folder, 0), series(&folder, 1)]);
    assert!(write(&mut sink, &[0, 1], BEGIN_S).is_empty());
    let path = folder.join("t0.rrd");
    // A lock of librrd's kind.
    let holder = kymo_tests::Running::shell(&format!(
        "exec perl -e 'use Fcntl; open(F, \"+<\", \"{}\"); my $lock = pack(\"s s x4 l! l! i x4\", F_WRLCK, 0, 0, 0, 0); fcntl(F, F_SETLK, $lock) or die; \
         $| = 1; print \"locked\\n\"; sleep 60'",
        path.display()
    ));
    let is_locked = || {
        let tried = Pipe::start(&folder).ask(&format!("update t0.rrd {}:1:1", BEGIN_S - 1));
        tried.is_err_and(|error| error.contains("lock"))
    };
    let locked = eventually(|| is_locked().then_some(()));
    locked.expect("a lock");
    assert!(write(&mut sink, &[0, 1], BEGIN_S + 300).is_empty());
    assert_eq!((sink.counts().waiting, sink.counts().kept), (1, 3));
    drop(holder);
    let done = eventually(|| {
        assert!(write(&mut sink, &[], 0).is_empty());
        (sink.counts().waiting == 0).then_some(())
    });
    done.expect("an update");
    // An update by hand between two batches.
    let mut pipe = Pipe::start(&folder);
    assert_eq!(pipe.must("last t0.rrd").trim(), (BEGIN_S + 300).to_string());
    pipe.must(&format!("update t0.rrd {}:7:7", BEGIN_S + 400));
    assert!(write(&mut sink, &[0], BEGIN_S + 600).is_empty());
    assert_eq!(pipe.must("last t0.rrd").trim(), (BEGIN_S + 600).to_string());
}

#[test]
fn what_cannot_be_written_is_said_for_each_target() {
    let scratch = Scratch::new("poll-files-refused");
    let folder = scratch.path("");
    let mut all: Vec<Series> = (0..3).map(|at| series(&folder, at)).collect();
    let closed = folder.join("closed");
    std::fs::create_dir(&closed).expect("a folder");
    std::fs::write(closed.join("file"), b"").expect("a file");
    // A path below a plain file cannot be opened, not even by root.
    all[1].path = closed.join("file/t1.rrd");
    let mut sink = sink(all);
    let said = write(&mut sink, &[0, 1, 2], BEGIN_S);
    assert_eq!(said.len(), 1, "{said:?}");
    let expected = format!(
        "cannot open {}/file/t1.rrd: Not a directory",
        closed.display()
    );
    assert!(said[0].starts_with(&expected), "{said:?}");
    assert_eq!(sink.counts().kept, 2);
    assert_eq!(
        std::fs::metadata(folder.join("t2.rrd"))
            .expect("a file")
            .nlink(),
        1
    );
}

#[test]
fn a_full_disk_is_said_and_passes() {
    let scratch = Scratch::new("poll-files-full");
    let folder = scratch.path("small");
    std::fs::create_dir(&folder).expect("a folder");
    let Some(_mounted) = machine::Tmpfs::mount(&folder, "256k") else {
        return;
    };
    let all: Vec<Series> = (0..60).map(|at| series(&folder, at)).collect();
    let mut sink = sink(all);
    let targets: Vec<usize> = (0..60).collect();
    let said = write(&mut sink, &targets, BEGIN_S);
    assert!(!said.is_empty() && said.len() < 60, "{}", said.len());
    assert!(
        said.iter().all(|cause| cause.contains("No space left")),
        "{said:?}"
    );
    let made = sink.counts().created;
    assert_eq!(said.len() as u64 + made, 60);
    // No partial files stay, and the complete ones take further values.
    let entries = std::fs::read_dir(&folder).expect("a folder").count();
    assert_eq!(entries as u64, made);
    let again = write(&mut sink, &targets, BEGIN_S + 300);
    assert_eq!(again.len(), said.len());
}
