//! `kymo import` into the store of a `kymo serve` that runs, and of one that does not: series come with all rows, to the last
//! bit; samples bit for bit; what cannot come is named; a run that ended early goes on with the next one. Needs Debian's rrdtool and prometheus.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use kymo_store::Store;
use kymo_sys::clock::{Clock, RealClock};
use kymo_sys::disk::{Disk, RealDisk};
use kymo_tests::rrd_file::files_below;
use kymo_tests::rrdtool::rrdtool;
use kymo_tests::served::{Served, eventually, is_killed};
use kymo_tests::{Running, Scratch, free_port, run};

use crate::import_mrtg;

const CONFIG: &str =
    "user = \"\"\n[listen]\npage = \"127.0.0.1:0\"\ncollectd = []\n[record]\nsubsystems = \"cm\"\n";
const START: u64 = 1_700_000_000;
const ARCHIVES: [&str; 3] = [
    "RRA:AVERAGE:0.1:1:1200",
    "RRA:MIN:0.1:1:1200",
    "RRA:MAX:0.1:7:1235",
];

/// A `kymo serve` that has just begun, and folders for sources.
pub(crate) struct Place {
    pub(crate) scratch: Scratch,
    served: Option<Served>,
}

impl Place {
    pub(crate) fn new(name: &str) -> Place {
        let mut place = Place {
            scratch: Scratch::new(name),
            served: None,
        };
        place.start();
        place
    }

    pub(crate) fn start(&mut self) {
        self.start_with("");
    }

    /// Starts it again with more in its configuration.
    pub(crate) fn restart_with(&mut self, tables: &str) {
        self.stop();
        self.start_with(tables);
    }

    fn start_with(&mut self, tables: &str) {
        let config = format!("{CONFIG}{tables}");
        let mut served = Served::configured(&self.scratch, &self.scratch.path("data"), &config);
        served.address();
        let socket = self.scratch.path("data/keeper-admin.sock");
        eventually(|| UnixStream::connect(&socket).ok()).expect("a keeper");
        self.served = Some(served);
    }

    pub(crate) fn stop(&mut self) {
        self.served = None;
    }

    /// Exit code, stdout and the lines of stderr of an import into the data folder.
    pub(crate) fn import(&self, words: &[&str]) -> (i32, String, Vec<String>) {
        let data = self.scratch.text("data");
        let output = run(&[&["import", "--data", &data], words].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let mut lines: Vec<String> = said.lines().map(str::to_string).collect();
        lines.sort_unstable();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.code().expect("a code"), text, lines)
    }

    /// All files that the store would write, by their names.
    pub(crate) fn exported(&self, to: &str) -> BTreeMap<PathBuf, Vec<u8>> {
        let (data, to) = (self.scratch.text("data"), self.scratch.path(to));
        let out = to.to_string_lossy();
        let output = run(&["rrd", "export", "--all", "--store", &data, "-o", &out]);
        assert!(output.status.success(), "{output:?}");
        contents(&to)
    }
}

fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = files_below(folder).into_iter();
    let files = files.map(|path| {
        let bytes = fs::read(&path).expect("a file");
        let name = path.strip_prefix(folder).expect("a file below");
        (name.to_path_buf(), bytes)
    });
    files.collect()
}

fn make(dir: &Path, name: &str, sources: &[&str], values: u64) {
    let path = dir.join(name);
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    let start = (START - 10).to_string();
    let begin = ["create", name, "--step", "10", "--start", &start];
    let words = [&begin[..], sources, &ARCHIVES[..]].concat();
    let output = rrdtool(dir, &words);
    assert!(output.status.success(), "{output:?}");
    let values: Vec<String> = (0..values)
        .map(|at| {
            let column = |column: usize| format!(":{}", at * (at % 17) + 3 * column as u64);
            let cells: String = (0..sources.len()).map(column).collect();
            format!("{}{cells}", START + 10 * at + at % 3)
        })
        .collect();
    let values: Vec<&str> = values.iter().map(String::as_str).collect();
    let output = rrdtool(dir, &[&["update", name], &values[..]].concat());
    assert!(output.status.success(), "{output:?}");
}

/// A DataDir of two hosts.
fn data_dir(dir: &Path) {
    fs::create_dir_all(dir).expect("a folder");
    let values = 1500;
    for host in ["web1", "db-2.example.org"] {
        for kind in ["idle", "user"] {
            let name = format!("{host}/cpu-0/cpu-{kind}.rrd");
            make(dir, &name, &["DS:value:DERIVE:20:0:U"], values);
        }
        let load = ["shortterm", "midterm", "longterm"];
        let load = load.map(|name| format!("DS:{name}:GAUGE:20:0:5000"));
        let load: Vec<&str> = load.iter().map(String::as_str).collect();
        make(dir, &format!("{host}/load/load.rrd"), &load, values);
        let octets = ["DS:rx:DERIVE:20:0:U", "DS:tx:DERIVE:20:0:U"];
        let name = format!("{host}/interface-eth0/if_octets.rrd");
        make(dir, &name, &octets, values);
    }
    // A type that types.db does not have.
    let name = "web1/own/own_type-a.rrd";
    make(dir, name, &["DS:what:GAUGE:20:U:U"], 10);
}

#[test]
fn a_data_dir_comes_to_the_last_bit() {
    let mut place = Place::new("import-collectd");
    let dir = place.scratch.path("collectd");
    data_dir(&dir);
    let from = dir.to_string_lossy().into_owned();
    let (code, text, said) = place.import(&["--collectd", &from, "--dry-run"]);
    assert_eq!((code, said), (0, Vec::new()), "{text}");
    assert!(text.starts_with("would import "), "{text}");
    let counts = "series: 9 new, 0 extended, 0 complete before, 0 left out\n";
    assert!(text.ends_with(counts), "{text}");
    assert!(place.exported("dry").is_empty());
    let (code, text, said) = place.import(&["--collectd", &from]);
    assert_eq!((code, said), (0, Vec::new()), "{text}");
    assert!(text.starts_with("imported "), "{text}");
    assert!(text.ends_with(counts), "{text}");
    let sources = contents(&dir);
    assert!(place.exported("first") == sources, "not the same files");
    for is_running in [true, false] {
        if !is_running {
            place.stop();
        }
        let (code, text, said) = place.import(&["--collectd", &from]);
        assert_eq!((code, said), (0, Vec::new()), "{text}");
        let expected = "imported 0 rows and samples; series: 0 new, 0 extended, 9 complete before, 0 left out\n";
        assert_eq!(text, expected, "running {is_running}");
    }
    // Rows that rrdtool wrote since come as well, also without a keeper.
    make_newer(&dir, "web1/load/load.rrd");
    let (code, text, said) = place.import(&["--collectd", &from]);
    assert_eq!((code, said), (0, Vec::new()), "{text}");
    assert!(
        text.starts_with("imported 9 rows and samples; series: 0 new, 1 extended,"),
        "{text}"
    );
    assert!(
        place.exported("again") == contents(&dir),
        "not the same files"
    );
    place.start();
    assert!(
        place.exported("served") == contents(&dir),
        "not the same files"
    );
}

fn make_newer(dir: &Path, name: &str) {
    let values = (1501..1504).map(|at| format!("{}:1:2:3", START + 10 * at));
    let values: Vec<String> = values.collect();
    let values: Vec<&str> = values.iter().map(String::as_str).collect();
    let output = rrdtool(dir, &[&["update", name], &values[..]].concat());
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn what_cannot_come_is_named() {
    let place = Place::new("import-hostile");
    let dir = place.scratch.path("collectd");
    make(&dir, "web1/load/load.rrd", &["DS:value:GAUGE:20:0:U"], 5);
    make(&dir, "loose.rrd", &["DS:value:GAUGE:20:0:U"], 5);
    make(
        &dir,
        "web1/cpu-0/cpu-idle.rrd",
        &["DS:value:DERIVE:20:0:U"],
        5,
    );
    make(&dir, "web1/a/b/gauge.rrd", &["DS:value:GAUGE:20:0:U"], 5);
    make(
        &dir,
        "web1/\u{1b}[31m/gauge.rrd",
        &["DS:value:GAUGE:20:0:U"],
        5,
    );
    make(&dir, "web1/p-/gauge.rrd", &["DS:value:GAUGE:20:0:U"], 5);
    fs::write(
        dir.join("web1/cpu-0/cpu-user.rrd"),
        b"no archive ".repeat(20),
    )
    .expect("a file");
    let whole = fs::read(dir.join("web1/cpu-0/cpu-idle.rrd")).expect("a file");
    fs::write(
        dir.join("web1/cpu-0/cpu-wait.rrd"),
        &whole[..whole.len() - 8],
    )
    .expect("a file");
    fs::write(dir.join("web1/cpu-0/cpu-nice.rrd"), b"").expect("a placeholder");
    symlink("/", dir.join("web1/root")).expect("a link");
    symlink("/dev/zero", dir.join("web1/cpu-0/cpu-steal.rrd")).expect("a link");
    let fifo = dir.join("web1/cpu-0/cpu-irq.rrd");
    let made = Command::new("mkfifo").arg(&fifo).status();
    assert!(made.expect("mkfifo").success());
    let from = dir.to_string_lossy().into_owned();
    let (code, text, said) = place.import(&["--collectd", &from]);
    assert_eq!(code, 1, "{text}");
    let expected = [
        "kymo: cannot import loose.rrd: its name is not HOST/PLUGIN-INSTANCE/TYPE-INSTANCE.rrd of a DataDir",
        "kymo: cannot import web1/\\x1b[31m/gauge.rrd: its name is not HOST/PLUGIN-INSTANCE/TYPE-INSTANCE.rrd of a DataDir",
        "kymo: cannot import web1/a/b: no folder of collectd lies so deep",
        "kymo: cannot import web1/cpu-0/cpu-irq.rrd: it is no regular file",
        "kymo: cannot import web1/cpu-0/cpu-steal.rrd: it is no regular file",
        "kymo: cannot import web1/cpu-0/cpu-user.rrd: is not an RRD file",
        "kymo: cannot import web1/cpu-0/cpu-wait.rrd: is too small (should be 30080 bytes)",
        "kymo: cannot import web1/load/load.rrd: it has value:GAUGE, and the type load has shortterm:GAUGE midterm:GAUGE \
         longterm:GAUGE; --types-db FILE names another types.db",
        "kymo: cannot import web1/p-/gauge.rrd: its name is not HOST/PLUGIN-INSTANCE/TYPE-INSTANCE.rrd of a DataDir",
    ];
    assert_eq!(said, expected, "{text}");
    assert!(text.contains("series: 1 new,"), "{text}");
    assert!(text.ends_with(" 9 left out\n"), "{text}");
    // Another types.db has other sources, and a series with other definitions is a conflict.
    let types = place.scratch.text("types.db");
    fs::write(&types, "load value:GAUGE:0:U\ncpu value:DERIVE:0:U\n").expect("types.db");
    let words = ["--collectd", &from, "--types-db", &types];
    fs::remove_file(dir.join("web1/cpu-0/cpu-idle.rrd")).expect("a file");
    make(
        &dir,
        "web1/cpu-0/cpu-idle.rrd",
        &["DS:value:DERIVE:20:0:U"],
        5,
    );
    let output = rrdtool(
        &dir,
        &["tune", "web1/cpu-0/cpu-idle.rrd", "-d", "value:GAUGE"],
    );
    assert!(output.status.success(), "{output:?}");
    let types_text = "load value:GAUGE:0:U\ncpu value:GAUGE:0:U\n";
    fs::write(&types, types_text).expect("types.db");
    let (_, text, said) = place.import(&words);
    let conflict = "kymo: cannot import web1/cpu-0/cpu-idle.rrd: there is a series of this name, and its data sources are others";
    assert!(said.contains(&conflict.to_string()), "{said:?}");
    assert!(text.contains("series: 1 new,"), "{text}");
}

/// An import that is killed goes on with the next one.
#[test]
fn a_killed_import_goes_on() {
    let mut place = Place::new("import-killed");
    let dir = place.scratch.path("collectd");
    make(
        &dir,
        "web/cpu-0/cpu-idle.rrd",
        &["DS:value:DERIVE:20:0:U"],
        100,
    );
    let bytes = fs::read(dir.join("web/cpu-0/cpu-idle.rrd")).expect("a file");
    for number in 1..1200 {
        let folder = dir.join(format!("web/cpu-{number}"));
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("cpu-idle.rrd"), &bytes).expect("a file");
    }
    let (from, data) = (
        dir.to_string_lossy().into_owned(),
        place.scratch.text("data"),
    );
    let base = place.scratch.path("data/rrd/web");
    let series = || fs::read_dir(&base).map_or(0, Iterator::count);
    for is_running in [true, false] {
        if !is_running {
            place.stop();
        }
        let before = series();
        let mut command = Command::new(kymo_tests::kymo());
        let command = command.args(["import", "--data", &data, "--collectd", &from]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut running = Running(child.expect("kymo starts"));
        // Killed as soon as more series are there.
        eventually(|| {
            (series() > before || matches!(running.0.try_wait(), Ok(Some(_)))).then_some(())
        })
        .expect("a series");
        running.signal("-KILL");
        drop(running);
    }
    let (code, text, said) = place.import(&["--collectd", &from]);
    assert_eq!((code, said), (0, Vec::new()), "{text}");
    assert!(text.ends_with(" 0 left out\n"), "{text}");
    assert!(
        place.exported("out") == contents(&dir),
        "not the same files"
    );
}

/// `kymo serve` ends within a second, and its keeper may still write then. An import waits for the keeper's end.
#[test]
fn a_keeper_that_still_ends_is_waited_for() {
    let mut place = Place::new("import-ending");
    let dir = place.scratch.path("collectd");
    let name = "web/cpu-0/cpu-idle.rrd";
    make(&dir, name, &["DS:value:DERIVE:20:0:U"], 100);
    let served = place.served.as_ref().expect("kymo serve");
    let keeper = served.child("keeper").expect("a keeper");
    assert!(is_killed("-STOP", keeper));
    place.stop();
    let (data, from) = (place.scratch.text("data"), dir.to_string_lossy());
    let mut command = Command::new(kymo_tests::kymo());
    command.args(["import", "--data", &data, "--collectd", &from]);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut import = Running(command.spawn().expect("kymo starts"));
    let mut said = BufReader::new(import.0.stderr.take().expect("its stderr"));
    let mut line = String::new();
    said.read_line(&mut line).expect("a line");
    let waits = format!("process {keeper} has it; waiting up to 30 s for it to end\n");
    assert!(line.ends_with(&waits), "{line}");
    assert!(is_killed("-CONT", keeper));
    let mut more = String::new();
    said.read_to_string(&mut more).expect("its lines");
    let ended = import.0.wait().expect("an end");
    assert_eq!((ended.code(), &more[..]), (Some(0), ""));
    assert!(place.exported("out") == contents(&dir));
}

#[test]
fn wrong_command_lines() {
    let scratch = Scratch::new("import-words");
    let (empty, file) = (scratch.text("empty"), scratch.text("file"));
    fs::create_dir_all(&empty).expect("a folder");
    fs::write(&file, "x").expect("a file");
    for (words, expected) in [
        (
            &["import", "--data", &empty, "--collectd", &empty, "--from", "-1d"][..],
            "cannot use --collectd <DIR>: not together with --from <TIME>".to_string(),
        ),
        (
            &["import", "--data", &empty, "--prometheus", &file, "--from", "-1d"],
            "cannot use --from with a dump: it is for the URL of a server".to_string(),
        ),
        (
            &["import", "--data", &empty],
            "cannot run kymo: <--collectd <DIR>|--mrtg <CFG|FILE.log>...|--prometheus <URL|DUMP>|--store <DIR>> is missing; see kymo import --help".to_string(),
        ),
        (
            &["import", "--data", &empty, "--store", &empty],
            format!("cannot import {empty}: it is the folder that is imported into"),
        ),
        (
            &["import", "--data", &empty, "--collectd", &file],
            format!("cannot import {file}: it is no folder"),
        ),
        (
            &["import", "--data", &empty, "--collectd", &empty],
            format!(
                "cannot import into {empty}: start kymo serve --data {empty} once, which makes its store: cannot open {empty}: \
                 there is no store in it"
            ),
        ),
    ] {
        let output = run(words);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(&expected), "{words:?}: {said}");
    }
}

/// Samples by the text of their labels: times in milliseconds, and bits of values.
type Samples = BTreeMap<String, Vec<(i64, u64)>>;

/// Samples of the store of a data folder, of all series with this part in their names.
fn samples_of(place: &Place, data: &str, part: &str) -> Samples {
    let (disk, clock): (Arc<dyn Disk>, Arc<dyn Clock>) = (Arc::new(RealDisk), Arc::new(RealClock));
    let dir = place.scratch.path(data);
    let (folder, base) = (dir.join("store"), dir.join("rrd"));
    let folder = kymo_store::store_folder(&RealDisk, &folder).expect("a store");
    let folder = folder.expect("a store");
    let store = Store::open_to_look(&folder, &base, &disk, &clock).expect("a store");
    let (mut all, mut from) = (Samples::new(), Some(0));
    while let Some(first) = from {
        let known = store.known(first);
        from = known.next();
        for series in known.series {
            let name = String::from_utf8_lossy(&series.name).into_owned();
            let Some((points, _)) = series.points.filter(|_| name.contains(part)) else {
                continue;
            };
            let read = store
                .samples(points, (i64::MIN, i64::MAX))
                .expect("samples");
            let bits = read.points.iter();
            let bits = bits.map(|point| (point.t_ms, point.v.to_bits()));
            all.insert(name, bits.collect());
        }
    }
    all
}

/// Blocks of Prometheus with samples each 15 s up to a while ago, and the samples.
fn blocks(place: &Place) -> (PathBuf, Samples) {
    let now_s = RealClock.now().real_ns / 1_000_000_000;
    let begin_s = now_s - 7 * 3600;
    let mut text = String::from("# TYPE app_requests counter\n");
    let mut expected = Samples::new();
    let mut add = |text: &mut String, labels: &str, metric: &str, value: &dyn Fn(i64) -> f64| {
        let mut samples = Vec::new();
        for at in 0..1600 {
            let (second, value) = (begin_s + 15 * at, value(at));
            *text += &format!("{metric}{{{labels}}} {value:?} {second}.25\n");
            samples.push((second * 1000 + 250, value.to_bits()));
        }
        let sorted = format!("{{__name__=\"{metric}\",{labels}}}");
        expected.insert(sorted, samples);
    };
    let path = "job=\"app\",path=\"/a b\\\\c\\\"d\"";
    add(&mut text, path, "app_requests_total", &|at| (at * 3) as f64);
    add(&mut text, "job=\"node\"", "app_requests_total", &|at| {
        at as f64
    });
    text += "# TYPE app_open gauge\n";
    add(
        &mut text,
        "instance=\"x:1\",job=\"app\"",
        "app_open",
        &|at| (at as f64).sin(),
    );
    text += "# EOF\n";
    expected.retain(|name, _| !name.contains("node"));
    let (file, dir) = (place.scratch.path("in.txt"), place.scratch.path("tsdb"));
    fs::write(&file, text).expect("a text");
    let mut command = Command::new("promtool");
    let command = command.args(["tsdb", "create-blocks-from", "openmetrics"]);
    let output = command.args([&file, &dir]).output().expect("promtool");
    assert!(output.status.success(), "{output:?}");
    // promtool wants the folder of a write-ahead log, too.
    fs::create_dir_all(dir.join("wal")).expect("a folder");
    (dir, expected)
}

/// Parts of the names of samples: of the test, and of this machine's history.
const APP: &str = "app_";
const OWN_JOB: &str = "job=\"node\"";
const LEFT_OUT: &str = "kymo: cannot import {__name__=\"app_requests_total\",job=\"node\"}: series of this name are those of this machine";

#[test]
fn a_dump_of_prometheus_comes_bit_for_bit() {
    let mut place = Place::new("import-dump");
    let (dir, expected) = blocks(&place);
    let dump = place.scratch.path("dump.txt");
    let mut command = Command::new("promtool");
    let output = command.args(["tsdb", "dump"]).arg(&dir).output();
    let output = output.expect("promtool");
    assert!(output.status.success(), "{output:?}");
    fs::write(&dump, &output.stdout).expect("a dump");
    let from = dump.to_string_lossy().into_owned();
    let (code, text, said) = place.import(&["--prometheus", &from, "--dry-run"]);
    assert_eq!((code, said), (1, vec![LEFT_OUT.to_string()]), "{text}");
    assert!(text.contains("series: 2 new,"), "{text}");
    let (_, text, said) = place.import(&["--prometheus", &from]);
    assert_eq!(said, [LEFT_OUT], "{text}");
    let all = "imported 3200 rows and samples; series: 2 new, 0 extended, 0 complete before, 1 left out\n";
    assert_eq!(text, all);
    let (_, text, _) = place.import(&["--prometheus", &from]);
    let known =
        "imported 0 rows and samples; series: 0 new, 0 extended, 2 complete before, 1 left out\n";
    assert_eq!(text, known);
    place.stop();
    assert!(
        samples_of(&place, "data", APP) == expected,
        "not the same samples"
    );
    // Lines that are none are counted, and a cut one is the last.
    fs::write(&dump, "what\n\n{a=\"b\"} 1 2\n{a=\"b\" 1 3\n{x=\"y\"} 1 ").expect("a dump");
    let (code, text, said) = place.import(&["--prometheus", &from]);
    assert_eq!(code, 1, "{text}");
    assert!(
        said.iter()
            .any(|line| line.contains(": it does not begin with labels in braces; as 1 more lines")),
        "{said:?}"
    );
    assert!(text.contains("series: 1 new,"), "{text}");
}

#[test]
fn a_prometheus_is_read_and_older_samples_join() {
    let mut place = Place::new("import-remote-read");
    let (dir, expected) = blocks(&place);
    let (running, url) = prometheus(&place, &dir);
    // First the second half, as if it had been sent before, then all of it.
    let half = expected.values().next().expect("samples")[800].0 / 1000;
    let (_, text, said) = place.import(&["--prometheus", &url, "--from", &half.to_string()]);
    assert_eq!(said, [LEFT_OUT], "{text}");
    assert!(
        text.starts_with("imported 16") && text.contains("series: 2 new, 0 extended,"),
        "{text}"
    );
    for (is_running, extended) in [(true, 2), (false, 0)] {
        if !is_running {
            place.stop();
        }
        let (_, text, said) = place.import(&["--prometheus", &url, "--from", "-8h"]);
        assert_eq!(said, [LEFT_OUT], "{text}");
        let expected = format!("series: 0 new, {extended} extended,");
        assert!(text.contains(&expected), "{text}");
    }
    assert!(
        samples_of(&place, "data", APP) == expected,
        "not the same samples"
    );
    drop(running);
    let (code, _, said) = place.import(&["--prometheus", &url]);
    let expected = format!("cannot read {url}/api/v1/read: ");
    assert!(code == 2 && said[0].contains(&expected), "{said:?}");
}

/// A Prometheus with these blocks, and its URL.
fn prometheus(place: &Place, blocks: &Path) -> (Running, String) {
    let (config, port) = (place.scratch.path("prometheus.yml"), free_port());
    fs::write(&config, "global: {scrape_interval: 1h}\n").expect("a configuration");
    let address = format!("127.0.0.1:{port}");
    let mut command = Command::new("prometheus");
    let command = command.arg(format!("--config.file={}", config.display()));
    let command = command.arg(format!("--storage.tsdb.path={}", blocks.display()));
    let command = command.arg(format!("--web.listen-address={address}"));
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let running = Running(child.expect("prometheus starts"));
    let is_ready = || get_text(&address, "/-/ready").filter(|text| text.contains("200 OK"));
    eventually(is_ready).expect("a Prometheus");
    (running, format!("http://{address}"))
}

/// The answer to a request by HTTP, with its head.
fn get_text(address: &str, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    let request = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    Some(text)
}

#[test]
fn two_stores_become_one() {
    let mut place = Place::new("import-store");
    let (dir, mut expected) = blocks(&place);
    let dump = place.scratch.path("dump.txt");
    let output = Command::new("promtool")
        .args(["tsdb", "dump"])
        .arg(&dir)
        .output();
    fs::write(&dump, &output.expect("promtool").stdout).expect("a dump");
    let rrd = place.scratch.path("collectd");
    data_dir(&rrd);
    place.import(&["--prometheus", &dump.to_string_lossy()]);
    place.import(&["--collectd", &rrd.to_string_lossy()]);
    // The hub hands over this machine's history each 30 s.
    let own = || samples_of(&place, "data", OWN_JOB);
    eventually(|| (!own().is_empty()).then_some(())).expect("this machine's history");
    place.stop();
    // The first folder becomes the other kymo's.
    fs::rename(place.scratch.path("data"), place.scratch.path("other")).expect("a move");
    place.start();
    make_newer(&rrd, "web1/load/load.rrd");
    let first = rrd.join("web1");
    fs::rename(first, place.scratch.path("some")).expect("a move");
    fs::create_dir_all(place.scratch.path("one/web1")).expect("a folder");
    fs::rename(
        place.scratch.path("some/load"),
        place.scratch.path("one/web1/load"),
    )
    .expect("a move");
    let one = place.scratch.text("one");
    place.import(&["--collectd", &one]);
    // A sample of which the two have other values.
    let open = "{__name__=\"app_open\",instance=\"x:1\",job=\"app\"}";
    let sample = &mut expected.get_mut(open).expect("a series")[5];
    sample.1 = 99.0_f64.to_bits();
    let spaced = open.replace(',', ", ");
    fs::write(&dump, format!("{spaced} 99 {}\n", sample.0)).expect("a dump");
    place.import(&["--prometheus", &dump.to_string_lossy()]);
    let conflict =
        format!("kymo: conflict in {open}: 1 rows or samples differ; those of the store stay");
    let from = place.scratch.text("other");
    // Both have a sample of this machine's history of the same ten seconds if one began as soon as the other had ended.
    let conflicts = |mut said: Vec<String>| {
        said.retain(|line| !(line.contains(": conflict in ") && line.contains(OWN_JOB)));
        said
    };
    let (code, text, said) = place.import(&["--store", &from, "--dry-run"]);
    assert_eq!((code, &conflicts(said)[..]), (0, &[conflict.clone()][..]));
    assert!(text.starts_with("would import "), "{text}");
    let (_, _, said) = place.import(&["--store", &from]);
    assert_eq!(conflicts(said), [&*conflict]);
    let (code, text, said) = place.import(&["--store", &from]);
    assert_eq!((code, &conflicts(said)[..]), (0, &[conflict][..]));
    assert!(
        text.starts_with("imported 0 rows and samples; series: 0 new, 0 extended,"),
        "{text}"
    );
    place.stop();
    assert!(
        samples_of(&place, "data", APP) == expected,
        "not the same samples"
    );
    let (own, all) = (
        samples_of(&place, "other", OWN_JOB),
        samples_of(&place, "data", OWN_JOB),
    );
    for (name, samples) in &own {
        let stamps =
            |samples: &[(i64, u64)]| BTreeSet::from_iter(samples.iter().map(|sample| sample.0));
        assert!(stamps(&all[name]).is_superset(&stamps(samples)), "{name}");
    }
    let all = place.exported("all");
    fs::rename(place.scratch.path("some"), rrd.join("web1")).expect("a move");
    fs::rename(place.scratch.path("one/web1/load"), rrd.join("web1/load")).expect("a move");
    let sources = contents(&rrd);
    assert_eq!(
        all.keys().collect::<Vec<_>>(),
        sources.keys().collect::<Vec<_>>()
    );
    assert!(all == sources, "not the same files");
}

/// Commands of both guides, one after the other as a reader types them, in folders and of a server of the test.
#[test]
fn the_guides_are_as_written() {
    let mut place = Place::new("import-guides");
    let (blocks, _) = blocks(&place);
    let (files, types) = (place.scratch.path("collectd"), place.scratch.path("types"));
    data_dir(&files);
    let sources = "cpu value:DERIVE:0:U\nload shortterm:GAUGE:0:5000, midterm:GAUGE:0:5000, longterm:GAUGE:0:5000\n\
                   if_octets rx:DERIVE:0:U, tx:DERIVE:0:U\n";
    fs::write(&types, sources).expect("types.db");
    // Another kymo.
    place.import(&["--collectd", &files.to_string_lossy()]);
    place.stop();
    fs::rename(place.scratch.path("data"), place.scratch.path("other")).expect("a move");
    place.start();
    let data = place.scratch.text("data");
    let recorded = ["play", &data, "-s", "c", "--csv"];
    eventually(|| run(&recorded).status.success().then_some(())).expect("a recording");
    let (_running, url) = prometheus(&place, &blocks);
    let mrtg = place.scratch.text("mrtg.cfg");
    let text = import_mrtg::logged(&place.scratch.path("www"), "5", 1);
    fs::write(&mrtg, text).expect("a configuration");
    let named = [
        ("/etc/mrtg/mrtg.cfg", mrtg),
        ("/var/lib/collectd/rrd", place.scratch.text("collectd")),
        ("/etc/collectd/types.db", place.scratch.text("types")),
        ("http://127.0.0.1:9090", url),
        (
            "/var/lib/prometheus/metrics2",
            blocks.to_string_lossy().into(),
        ),
        ("/mnt/old/kymo", place.scratch.text("other")),
        ("/var/lib/kymo-restored", place.scratch.text("restored")),
        ("/var/lib/kymo", data.clone()),
        ("/backup/kymo", place.scratch.text("backup")),
        ("/tmp/rrd", place.scratch.text("rrd")),
        ("up{job=\"node\"}", "app_open".into()),
        (
            "node_disk_read_bytes_total[5m]",
            "app_requests_total[9h]".into(),
        ),
        ("kymo import", format!("kymo import --data {data}")),
        ("kymo series ls", format!("kymo series ls --data {data}")),
        (
            "kymo series samples",
            format!("kymo series samples --data {data}"),
        ),
        ("kymo query", format!("kymo query --data {data}")),
    ];
    let program = kymo_tests::kymo();
    let folder = program.parent().expect("a folder");
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", folder.display());
    for (guide, count) in [("moving-in", 9), ("moving-out", 7)] {
        let text = fs::read_to_string(format!("../docs/guides/{guide}.md")).expect("a guide");
        let lines = text
            .lines()
            .filter_map(|line| line.trim_start().strip_prefix("$ "));
        let lines: Vec<&str> = lines.collect();
        assert_eq!(lines.len(), count, "{guide}");
        for line in lines {
            let mut typed = line.to_string();
            for (written, here) in &named {
                typed = typed.replace(written, here);
            }
            let mut command = Command::new("sh");
            let command = command.args(["-c", &typed]).env("PATH", &path);
            let command = command.current_dir(place.scratch.path(""));
            let output = command.stdin(Stdio::null()).output().expect("sh");
            let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
            // Prometheus has a series that nobody may import.
            let is_left_out = output.status.code() == Some(1) && stderr.trim() == LEFT_OUT;
            assert!(output.status.success() || is_left_out, "{typed}: {stderr}");
        }
    }
    let mut again = place.exported("again");
    again.retain(|name, _| !name.starts_with("mrtg"));
    assert!(again == contents(&files));
}
