//! Programs that publish beside a running `kymo serve`: nothing is lost or counted twice, and a liar harms only itself.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use kymo_shm::{Description, Kind, Publisher, Schema, Slot};
use kymo_tests::served::{Served, ask, eventually, get, kill};
use kymo_tests::{Scratch, is_root, kymo, machine};
use serde_json::Value;

#[allow(dead_code, unreachable_pub)]
#[path = "../../crates/shm/examples/publish.rs"]
mod publish;

const LOCAL: [&str; 2] = ["--listen", "127.0.0.1:0"];

/// A `kymo serve`, and the folder where programs publish.
pub(crate) struct Place {
    pub(crate) served: Served,
    pub(crate) address: String,
    pub(crate) data: String,
    scratch: Scratch,
}

impl Place {
    pub(crate) fn start(name: &str) -> Place {
        let scratch = Scratch::new(name);
        let data = scratch.text("data");
        let mut served = Served::start(&["--data", &data, LOCAL[0], LOCAL[1]]);
        let address = served.address();
        served.has_said("keeper: user");
        Place {
            served,
            address,
            data,
            scratch,
        }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.served.published
    }

    /// A path for a test's own file.
    pub(crate) fn scratch(&self, name: &str) -> PathBuf {
        self.scratch.path(name)
    }

    /// A compiled C program of `crates/shm`.
    fn compiled(&self, source: &str) -> PathBuf {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let source = root.join("crates/shm").join(source);
        let program = self.scratch.path("programs");
        fs::create_dir_all(&program).expect("a folder");
        let program = program.join(source.file_stem().expect("a name"));
        if !program.exists() {
            let compiled = Command::new("cc")
                .args(["-std=gnu11", "-O2", "-I"])
                .arg(root.join("include"))
                .arg(source)
                .arg("-o")
                .arg(&program)
                .status();
            assert!(compiled.expect("a C compiler").success());
        }
        program
    }

    /// The running example in C, after this many commands.
    pub(crate) fn in_c(&self, commands: u32) -> Example {
        let mut command = Command::new(self.compiled("examples/publish.c"));
        command.arg(commands.to_string());
        command.env("KYMO_DIR", self.folder());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the example");
        let mut path = String::new();
        let stdout = child.stdout.take().expect("its output");
        BufReader::new(stdout).read_line(&mut path).expect("a path");
        Example {
            child,
            path: path.trim().into(),
        }
    }

    fn in_rust(&self, commands: u32) -> (Publisher, Slot) {
        publish::publish(commands, |schema| schema.folder(self.folder()))
    }

    /// The output of `kymo programs --json`.
    pub(crate) fn listing(&self) -> Value {
        let output = Command::new(kymo())
            .args(["programs", "--json", "--data", &self.data])
            .output()
            .expect("kymo runs");
        let [text, said] =
            [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
        serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}{said}"))
    }

    /// Publishers with that name and life.
    fn publishers(&self, name: &str, life: &str) -> Vec<Value> {
        let asked = self.listing();
        let all = asked["publishers"].as_array().expect("a list");
        let picked = all
            .iter()
            .filter(|each| each["name"] == name && each["life"] == life);
        picked.cloned().collect()
    }

    /// Waits until there are `count` publishers with that name and life.
    fn wait(&self, name: &str, life: &str, count: usize) -> Vec<Value> {
        let found = eventually(|| {
            let found = self.publishers(name, life);
            (found.len() == count).then_some(found)
        });
        found.unwrap_or_else(|| panic!("{count} {name} {life}: {}", self.listing()))
    }
}

/// A running example.
pub(crate) struct Example {
    child: Child,
    path: PathBuf,
}

impl Example {
    fn kill(&mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("its end");
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _ended = self.child.wait();
    }
}

/// Counts of commands that read and of commands that wrote.
fn counts(publisher: &Value) -> [f64; 2] {
    let metrics = publisher["metrics"].as_array().expect("metrics");
    ["read", "write"].map(|kind| {
        let metric = metrics
            .iter()
            .find(|each| each["name"] == "commands_total" && each["labels"]["kind"] == kind);
        metric.expect("a counter")["value"]
            .as_f64()
            .expect("a number")
    })
}

#[test]
fn counters_are_exact_and_those_of_the_dead_are_kept_once() {
    let place = Place::start("programs-exact");
    let mut first = place.in_c(1000);
    let (rust, slot) = place.in_rust(400);
    let alive = place.wait("example", "alive", 2);
    let mut found: Vec<[f64; 2]> = alive.iter().map(counts).collect();
    found.sort_by(f64_order);
    assert_eq!(found, [[300.0, 100.0], [750.0, 250.0]]);
    let copy = fs::read(&first.path).expect("its file");
    first.kill();
    let dead = place.wait("example", "retired", 1);
    assert_eq!(counts(&dead[0]), [750.0, 250.0]);
    assert!(!first.path.exists(), "its file goes");
    // A file that comes back, and several kills of the keeper, change nothing.
    for commands in [40, 80] {
        fs::write(&first.path, &copy).expect("the same file again");
        let mut another = place.in_c(commands);
        place.wait("example", "alive", 2);
        let keeper = place.served.child("keeper").expect("a keeper");
        another.kill();
        kill("-KILL", keeper);
        place.served.next_child("keeper", keeper);
        assert!(
            eventually(|| (!first.path.exists() && !another.path.exists()).then_some(())).is_some()
        );
    }
    let dead = place.wait("example", "retired", 1);
    assert_eq!(counts(&dead[0]), [750.0 + 30.0 + 60.0, 250.0 + 10.0 + 20.0]);
    let alive = place.wait("example", "alive", 1);
    assert_eq!(counts(&alive[0]), [300.0, 100.0]);
    drop((slot, rust));
    let ended = eventually(|| {
        let dead = place.publishers("example", "retired");
        (counts(dead.first()?)[0] > 840.0).then_some(dead)
    });
    assert_eq!(counts(&ended.expect("the last one")[0]), [1140.0, 380.0]);
    let series = Command::new(kymo())
        .args([
            "series",
            "ls",
            "--data",
            &place.data,
            "field=commands_total",
        ])
        .output()
        .expect("kymo runs");
    let series = String::from_utf8_lossy(&series.stdout).into_owned();
    assert!(
        series.contains(r#"kind="read",publisher="example",user=""#),
        "{series}"
    );
}

/// The collector once missed 29 of a thousand programs in quick succession.
#[test]
fn what_short_programs_counted_is_counted_exactly() {
    const PROGRAMS: u32 = 300;
    let place = Place::start("short-programs");
    let program = place.compiled("tests/all/programs/writer.c");
    for _ in 0..PROGRAMS {
        let mut command = Command::new(&program);
        command.arg("once").arg(place.folder());
        let status = command.stdout(Stdio::null()).status();
        assert!(status.expect("writer.c").success());
    }
    let counted = || {
        let retired = place.publishers("writer", "retired");
        let count: f64 = retired
            .iter()
            .map(|each| number(each, "commands_total"))
            .sum();
        (count == f64::from(PROGRAMS)).then_some(())
    };
    assert!(eventually(counted).is_some(), "{}", place.listing());
}

/// The message had the cause, but not what to do.
#[test]
fn a_folder_that_is_read_only_is_said_with_what_to_do() {
    if machine::must_skip(&["unshare", "mount"]) {
        return;
    }
    let scratch = Scratch::new("programs-read-only");
    let data = scratch.text("data");
    let script = "unset KYMO_DIR && mount -t tmpfs none /run && mkdir -p /run/kymo/pub && \
                  mount -t tmpfs -o ro none /run/kymo/pub && exec \"$0\" \"$@\"";
    let program = kymo();
    let program = program.to_str().expect("a path");
    let words = ["-m", "sh", "-c", script, program, "serve", "--data", &data];
    let mut served = Served::start_as("unshare", &[&words[..], &LOCAL].concat());
    served.has_said(
        "cannot collect what programs publish in /run/kymo/pub: it is read-only; `mount -o remount,rw` on it",
    );
}

/// The value of a publisher's metric.
fn number(publisher: &Value, metric: &str) -> f64 {
    let metrics = publisher["metrics"].as_array().expect("metrics");
    let found = metrics.iter().find(|each| each["name"] == metric);
    found.expect("a metric")["value"]
        .as_f64()
        .expect("a number")
}

/// Eight workers were killed 20 times each at work and replaced: 168 stood there at work, with as many open requests.
#[test]
fn killed_workers_are_at_work_no_more() {
    let place = Place::start("programs-killed");
    let program = place.compiled("tests/all/programs/owners.c");
    let mut command = Command::new(program);
    command.args(["plain".as_ref(), place.folder(), "20".as_ref()]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut master = command.spawn().expect("a master");
    let mut line = String::new();
    let mut said = BufReader::new(master.stdout.take().expect("its output"));
    said.read_line(&mut line).expect("a line");
    let as_expected = |at_work: usize| {
        let found = place.publishers("owners", "alive");
        let publisher = found.first()?;
        let slots = publisher["slots"].as_array()?;
        let active = slots.iter().filter(|slot| slot["state"] == "active");
        let is_so = slots.len() == at_work
            && active.count() == at_work
            && number(publisher, "requests_total") == 168.0
            && number(publisher, "open_requests") == at_work as f64;
        is_so.then_some(())
    };
    assert!(
        eventually(|| as_expected(8)).is_some(),
        "{}",
        place.listing()
    );
    std::io::Write::write_all(master.stdin.as_mut().expect("its input"), b"\n").expect("an order");
    assert!(
        eventually(|| as_expected(0)).is_some(),
        "{}",
        place.listing()
    );
    let _ended = (master.kill(), master.wait());
    let retired = place.wait("owners", "retired", 1);
    assert_eq!(number(&retired[0], "requests_total"), 168.0);
}

fn f64_order(one: &[f64; 2], other: &[f64; 2]) -> std::cmp::Ordering {
    one[0].total_cmp(&other[0])
}

/// A file name in the form of publishers.
fn name(number: usize) -> String {
    format!("kymo.{number:032x}")
}

#[test]
fn who_lies_harms_nobody_else() {
    let place = Place::start("programs-hostile");
    let (_publisher, _slot) = place.in_rust(400);
    let example = place.in_c(1000);
    let whole = fs::read(&example.path).expect("a file");
    let keeper = place.served.child("keeper");
    let put = |number: usize, bytes: &[u8]| {
        fs::write(place.folder().join(name(number)), bytes).expect("a hostile file");
    };
    put(1, b"");
    put(2, &whole[..1024]);
    put(3, &whole);
    put(4, &vec![0xff; 1 << 20]);
    symlink("/etc/passwd", place.folder().join(name(5))).expect("a link");
    fs::create_dir(place.folder().join(name(6))).expect("a folder");
    // Lies in each number of the header, in files whose names match their headers.
    for at in (8..1024).step_by(8) {
        let mut lie = whole.clone();
        lie[at..at + 8].fill(0xff);
        let number = 1000 + at;
        lie[56..72].copy_from_slice(&(number as u128).to_be_bytes());
        put(number, &lie);
    }
    for number in 10_000..20_000 {
        put(number, &whole[..1024]);
    }
    for round in 0..30 {
        let mut shrinking = whole.clone();
        let number = 50_000 + round;
        shrinking[56..72].copy_from_slice(&(number as u128).to_be_bytes());
        put(number, &shrinking);
        let file = fs::File::options()
            .write(true)
            .open(place.folder().join(name(number)));
        let file = file.expect("the file");
        place.listing();
        file.set_len(2048 + 64 * round as u64).expect("shorter");
        place.listing();
    }
    let alive = place.wait("example", "alive", 2);
    let mut found: Vec<[f64; 2]> = alive.iter().map(counts).collect();
    found.sort_by(f64_order);
    assert_eq!(found, [[300.0, 100.0], [750.0, 250.0]]);
    assert_eq!(place.served.child("keeper"), keeper, "the same keeper");
    let bad = eventually(|| {
        let asked = place.listing();
        asked["limited"][0]["bad"]
            .as_u64()
            .filter(|bad| *bad > 10_000)
    });
    assert!(bad.is_some(), "{}", place.listing()["limited"]);
}

#[test]
fn nobody_names_the_series_of_another_user() {
    if !is_root() {
        kymo_tests::machine::skipped("only root has files of two users");
        return;
    }
    let place = Place::start("programs-users");
    let mut schema = Schema::new("example", 1).folder(place.folder());
    let plain = schema.counter(Description::new("plain_total", ""));
    for reserved in ["user", "publisher", "job", "field", "host"] {
        schema.counter(Description::new("forged_total", "").label(reserved, "root"));
    }
    let publisher = Publisher::create(&schema).expect("a publisher");
    let mut slot = publisher.take();
    slot.add(plain, 7);
    let path = publisher.path().expect("a file").to_path_buf();
    // The file's owner is taken from the file system: here another user owns it when the keeper finds it.
    let aside = place.folder().join("aside");
    fs::rename(&path, &aside).expect("aside");
    std::os::unix::fs::chown(&aside, Some(65_534), None).expect("another user's");
    fs::rename(&aside, &path).expect("back");
    let of_nobody =
        |publishers: Vec<Value>| publishers.into_iter().find(|each| each["uid"] == 65_534);
    let found = eventually(|| of_nobody(place.publishers("example", "alive")));
    let found = found.expect("a publisher of another user");
    assert_eq!(
        (&found["user"], &found["refused"]),
        (&"nobody".into(), &5.into())
    );
    let listed = || {
        let output = Command::new(kymo())
            .args(["series", "ls", "--data", &place.data, "job=programs"])
            .output();
        let output = output.expect("kymo runs").stdout;
        Some(String::from_utf8_lossy(&output).into_owned()).filter(|text| text.contains("plain"))
    };
    let listed = eventually(listed).expect("series");
    assert!(
        listed.contains(r#"publisher="example",user="nobody""#),
        "{listed}"
    );
    assert!(!listed.contains("forged"), "{listed}");
}

#[test]
fn no_secret_leaves_the_file_of_its_publisher() {
    let place = Place::start("programs-secret");
    let schema = Schema::new("example", 3)
        .folder(place.folder())
        .slot_labels(&["application"]);
    let publisher = Publisher::create(&schema).expect("a publisher");
    let commands: [(Kind, &[u8]); 3] = [
        (
            Kind::Sql,
            b"ALTER ROLE a PASSWORD 'SEKRET' /* SEKRET */ VALID UNTIL $$SEKRET",
        ),
        (Kind::Plain, b"AUTH SEKRET"),
        (Kind::Secret, b"SEKRET"),
    ];
    let mut slots = Vec::new();
    for (kind, text) in commands {
        let mut slot = publisher.take();
        slot.identify(None, 0, &[b"label-of-a-user"]);
        slot.begin(kind, text, 0, 0);
        slots.push(slot);
    }
    let found = eventually(|| {
        let found = place.publishers("example", "alive");
        let count = found.first()?["slots"].as_array()?.len();
        (count == slots.len()).then_some(found)
    });
    let found = found.expect("its slots");
    let texts = found[0]["slots"].as_array().expect("slots").iter();
    let texts: Vec<(&str, &str)> = texts
        .map(|slot| {
            (
                slot["text"].as_str().unwrap_or("?"),
                slot["state"].as_str().unwrap_or("?"),
            )
        })
        .collect();
    assert_eq!(
        texts,
        [
            ("ALTER ROLE a PASSWORD ? VALID UNTIL ?", "active"),
            ("AUTH", "active"),
            ("", "active"),
        ]
    );
    let token = fs::read_to_string(format!("{}/token", place.data)).expect("a token");
    let with_token = get(&place.address, "/kymo/v1/programs", token.trim()).to_string();
    assert!(with_token.contains("ALTER ROLE") && with_token.contains("label-of-a-user"));
    let without = ask(&place.address, "GET", "/kymo/v1/programs", "", "");
    let (_, without) = without.expect("an answer");
    assert!(without.contains(r#""name":"example""#), "{without}");
    for hidden in ["SEKRET", "ALTER", "AUTH", "label-of-a-user"] {
        assert!(!without.contains(hidden), "{hidden} in {without}");
    }
    assert!(!with_token.contains("SEKRET") && !place.listing().to_string().contains("SEKRET"));
    for file in files_below(Path::new(&place.data)) {
        let bytes = fs::read(&file).unwrap_or_default();
        let is_there = bytes.windows(6).any(|part| part == b"SEKRET");
        assert!(!is_there, "in {}", file.display());
    }
}

pub(crate) fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.flat_map(|entry| match entry.path() {
        path if path.is_dir() => files_below(&path),
        path if path.is_file() => vec![path],
        _ => Vec::new(),
    });
    paths.collect()
}
