//! MRTG and `kymo poll` at the same time, on one configuration that stock cfgmaker wrote for Debian's snmpd and for the farm: the
//! stored values agree, within the whole seconds of MRTG's stamps.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use kymo_agentfarm::{Farm, Settings};
use kymo_rrd::Header;
use kymo_tests::rrd_file::files_below;
use kymo_tests::snmpd::Snmpd;
use kymo_tests::{Running, Scratch, kymo, machine};

/// Seconds of a cycle: the shortest one that MRTG's daemon keeps on a busy machine.
const INTERVAL_S: u64 = 10;
/// Samples that each file needs, and least number of compared pairs.
const VALUES: usize = 6;
const PATIENCE: Duration = Duration::from_secs(240);
const LOOK: Duration = Duration::from_millis(200);
/// A rate may differ by a second of MRTG's stamps, and by this part.
const NEAR: f64 = 1.0 / INTERVAL_S as f64 + 0.0005;
/// MRTG stamps with a whole second some time after the answer: seconds later on a busy machine, but within the cycle.
const STAMP_OFF_S: f64 = INTERVAL_S as f64;
/// Rows that both files must have. Over this many rows a stamp that is seconds late changes the mean rate by less than [`NEAR`].
const ROWS: usize = 5;

/// The newest values in a file, in and out, with their stamp.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Sample {
    stamp_s: f64,
    values: [u64; 2],
}

/// Samples of each file, by the file's name.
type Samples = BTreeMap<PathBuf, Vec<Sample>>;

/// One poller, its folder, and the samples seen in its files.
struct Side {
    folder: PathBuf,
    log: PathBuf,
    running: Running,
    samples: Samples,
}

impl Side {
    fn start(scratch: &Scratch, name: &str, command: &mut Command) -> Side {
        let log = scratch.path(&format!("{name}.log"));
        let file = File::create(&log).expect("a file");
        let child = command
            .env("LANG", "C")
            .stdin(Stdio::null())
            .stdout(file.try_clone().expect("a file"))
            .stderr(file)
            .spawn();
        Side {
            folder: scratch.path(name),
            log,
            running: Running(child.unwrap_or_else(|why| panic!("cannot start {name}: {why}"))),
            samples: Samples::new(),
        }
    }

    fn output_text(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Reads the newest sample of each file.
    fn look(&mut self) {
        let ended = self.running.0.try_wait().expect("a child");
        assert!(
            ended.is_none(),
            "it ended: {ended:?}: {}",
            self.output_text()
        );
        for path in rrd_files(&self.folder) {
            let name = path
                .strip_prefix(&self.folder)
                .expect("below")
                .to_path_buf();
            let samples = self.samples.entry(name).or_default();
            if let Some(sample) = newest(&path).filter(|sample| samples.last() != Some(sample)) {
                samples.push(sample);
            }
        }
    }

    fn has_values(&self, files: usize) -> bool {
        let all = self.samples.values();
        all.clone().count() >= files && all.clone().all(|samples| samples.len() >= VALUES)
    }

    /// True if each picked file has at least [`ROWS`] rows that both pollers know.
    fn has_rows_with(&self, other: &Side, is_picked: impl Fn(&Path) -> bool) -> bool {
        let mut names = self.samples.keys().filter(|name| is_picked(name));
        names.all(|name| common(&self.folder.join(name), &other.folder.join(name)).len() >= ROWS)
    }
}

fn rrd_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = files_below(folder);
    files.retain(|path| path.extension().is_some_and(|end| end == "rrd"));
    files
}

/// The newest value of a file, if it is known.
fn newest(path: &Path) -> Option<Sample> {
    // The poller may be writing: two equal reads show that the file is whole.
    let bytes = std::fs::read(path).ok()?;
    let is_whole = std::fs::read(path).is_ok_and(|again| again == bytes);
    let header = Header::parse(&bytes).ok().filter(|_| is_whole)?;
    let value = |n: usize| -> Option<u64> {
        let text = header.pdp_prep[n].last_ds.split(|&byte| byte == 0).next()?;
        std::str::from_utf8(text).ok()?.parse().ok()
    };
    Some(Sample {
        stamp_s: header.last_up as f64 + header.last_up_usec as f64 / 1e6,
        values: [value(0)?, value(1)?],
    })
}

/// In and out of each known primary data point, by the end of its interval.
fn rows(file: &Path) -> BTreeMap<u64, [f64; 2]> {
    let length = format!("-{}", 60 * INTERVAL_S);
    let output = Command::new("rrdtool")
        .arg("fetch")
        .arg(file)
        .args(["AVERAGE", "-r", &INTERVAL_S.to_string(), "-s", &length])
        .output();
    let output = output.expect("rrdtool");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let row = |line: &str| {
        let (stamp, values) = line.split_once(": ")?;
        let mut values = values.split(' ').map(str::parse::<f64>);
        let row = [values.next()?.ok()?, values.next()?.ok()?];
        let is_known = row.iter().all(|value| !value.is_nan());
        is_known.then_some((stamp.parse().ok()?, row))
    };
    text.lines().filter_map(row).collect()
}

/// Rows known in both files, without the first one, in which rrdtool counts the unknown part in whole seconds.
fn common(ours: &Path, theirs: &Path) -> Vec<[[f64; 2]; 2]> {
    let (ours, theirs) = (rows(ours), rows(theirs));
    let first = [&ours, &theirs].map(|rows| rows.keys().next().copied().unwrap_or(u64::MAX));
    let later = ours
        .iter()
        .filter(|(stamp, _)| **stamp > first[0].max(first[1]));
    later
        .filter_map(|(stamp, row)| Some([*row, *theirs.get(stamp)?]))
        .collect()
}

/// The farm's rates are steady, so both pollers have the same mean, and no row is off by more than late stamps explain.
fn have_same_rates(name: &Path, rows: &[[[f64; 2]; 2]]) {
    assert!(rows.len() >= ROWS, "{}: {rows:?}", name.display());
    for way in [0, 1] {
        let parts: Vec<f64> = rows
            .iter()
            .map(|[ours, theirs]| ours[way] / theirs[way])
            .collect();
        let mean = parts.iter().sum::<f64>() / parts.len() as f64;
        assert!((mean - 1.0).abs() <= NEAR, "{}: {parts:?}", name.display());
        let is_near = |part: &f64| (part - 1.0).abs() < 5.0 * NEAR;
        assert!(parts.iter().all(is_near), "{}: {parts:?}", name.display());
    }
}

/// Counters only grow: if one stamp is later than another by more than stamps can be off, its value is no less.
fn are_of_one_counter(name: &Path, ours: &[Sample], theirs: &[Sample]) {
    let mut compared = 0;
    for mine in ours {
        for other in theirs {
            let (early, late) = match mine.stamp_s < other.stamp_s {
                true => (mine, other),
                false => (other, mine),
            };
            if late.stamp_s - early.stamp_s > STAMP_OFF_S {
                let grows = (0..2).all(|way| early.values[way] <= late.values[way]);
                assert!(grows, "{}: {early:?} {late:?}", name.display());
                compared += 1;
            }
        }
    }
    assert!(
        compared >= VALUES,
        "{}: {ours:?} {theirs:?}",
        name.display()
    );
}

/// Lets cfgmaker write a configuration for both; returns the number of targets.
fn configure(scratch: &Scratch, snmpd: &Snmpd, farm: &Farm) -> usize {
    let global = |text: String| ["--global".to_string(), text];
    let agents = (0..farm.settings().devices).map(|device| {
        let (address, port) = (farm.address(device), farm.settings().port);
        format!("public@{address}:{port}::::2")
    });
    let output = Command::new("cfgmaker")
        // All interfaces of this machine, including lo and those without a known speed.
        .args(["--noreversedns", "--if-filter=1", "--zero-speed=1000000000"])
        .args(global(format!("WorkDir: {}", scratch.text("mrtg"))))
        .args(global("LogFormat: rrdtool".into()))
        .args(global(format!("Interval: 0:{INTERVAL_S}")))
        .args(global("RunAsDaemon: yes".into()))
        .args(global("NoDetach: yes".into()))
        .args(["--output", &scratch.text("mrtg.cfg")])
        .arg(format!("public@{}::::2", snmpd.address))
        .args(agents)
        .env("LANG", "C")
        .output();
    let output = output.unwrap_or_else(|why| panic!("cannot run cfgmaker: {why}"));
    let written = std::fs::read_to_string(scratch.path("mrtg.cfg")).expect("a configuration");
    let targets = written.lines().filter(|line| line.starts_with("Target["));
    let targets = targets.count();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(targets > farm.settings().interfaces as usize, "{said}");
    targets
}

#[test]
fn what_mrtg_and_kymo_store_at_once_agrees() {
    if machine::must_skip(&["mrtg", "cfgmaker", "snmpd", "rrdtool"]) {
        return;
    }
    let scratch = Scratch::new("poll-beside-mrtg");
    for name in ["mrtg", "kymo"] {
        std::fs::create_dir(scratch.path(name)).expect("a folder");
    }
    let snmpd = Snmpd::start("127.0.21.5", "interface lo 24 4000000000\n");
    let farm = Farm::start(Settings {
        first: [127, 0, 21, 40].into(),
        port: 0,
        devices: 2,
        interfaces: 12,
        community: b"public".to_vec(),
    });
    let farm = farm.expect("a farm");
    let targets = configure(&scratch, &snmpd, &farm);
    let config = scratch.path("mrtg.cfg");
    let mut theirs = Side::start(&scratch, "mrtg", Command::new("mrtg").arg(&config));
    let mut poll = Command::new(kymo());
    poll.arg("poll").arg("--log-dir").arg(scratch.path("kymo"));
    let mut ours = Side::start(&scratch, "kymo", poll.arg(&config));
    let until = Instant::now() + PATIENCE;
    let of_snmpd = snmpd.address.ip().to_string();
    let is_steady = |name: &Path| !name.to_string_lossy().contains(&of_snmpd);
    while !(theirs.has_values(targets)
        && ours.has_values(targets)
        && ours.has_rows_with(&theirs, is_steady))
    {
        let said = || {
            format!(
                "MRTG: {}\nkymo: {}",
                theirs.output_text(),
                ours.output_text()
            )
        };
        assert!(Instant::now() < until, "{}", said());
        sleep(LOOK);
        theirs.look();
        ours.look();
    }
    let names = |side: &Side| side.samples.keys().cloned().collect::<Vec<PathBuf>>();
    assert_eq!(names(&ours), names(&theirs));
    let mut counts = [0, 0];
    for name in names(&ours) {
        let (mine, other) = (ours.folder.join(&name), theirs.folder.join(&name));
        are_of_one_counter(&name, &ours.samples[&name], &theirs.samples[&name]);
        if is_steady(&name) {
            have_same_rates(&name, &common(&mine, &other));
        }
        counts[usize::from(is_steady(&name))] += 1;
    }
    assert!(counts[0] >= 1 && counts[1] == 12, "{counts:?}");
}
