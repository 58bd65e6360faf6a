//! Faults around a recorder, on the live machine: full disks, devices that come and go, too
//! few files, kernel files and names made by an enemy, damaged blocks.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use kymo_query::recorded::Recorded;
use kymo_query::source::{Source as _, Step};
use kymo_recording::reader::{Kinds, TimeRange};
use kymo_tests::machine::{
    Interface, LoopDevice, OfflineCpu, Tmpfs, copy_program, hold_devices, must_skip, skipped,
};
use kymo_tests::served::Served;
use kymo_tests::{Dumped, Running, Scratch, kymo, parse_dump, run, stdout_of};

/// A recorder at work; its stderr goes to a file.
struct Recorder {
    running: Running,
    said: PathBuf,
}

impl Recorder {
    fn start(scratch: &Scratch, dir: &str, arguments: &[&str]) -> Recorder {
        let said = scratch.path("stderr");
        let stderr = fs::File::create(&said).expect("a file");
        let child = Command::new(kymo())
            .args(["record", "-f", dir])
            .args(arguments)
            .stdin(Stdio::null())
            .stderr(stderr)
            .spawn();
        Recorder {
            running: Running(child.expect("kymo starts")),
            said,
        }
    }

    fn output_text(&self) -> String {
        fs::read_to_string(&self.said).expect("stderr")
    }

    /// Ends the recorder by a signal; returns its messages.
    fn stop(mut self) -> String {
        self.running.signal("-TERM");
        let end = self.running.0.wait().expect("its end");
        assert!(end.success(), "{end}: {}", self.output_text());
        self.output_text()
    }
}

fn pause(ms: u64) {
    std::thread::sleep(Duration::from_millis(ms));
}

/// Waits until `is_so` is true, for a minute at most.
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(60), "never {what}");
        pause(20);
    }
}

fn dump(dir: &str, source: &str) -> Vec<Dumped> {
    parse_dump(&run(&["dump", dir, "--source", source]).stdout)
}

/// Every format, each with all its columns.
const FORMATS: [&[&str]; 13] = [
    &["-scdnmp"],
    &["-scdnmp", "--verbose"],
    &["-sCDNPZ"],
    &["-sZ", "--procopts", "imtwx"],
    &["--top"],
    &["-scdnmpCDNP", "-P"],
    &["-sZ", "-P"],
    &["-scdnmp", "--csv"],
    &["-sC", "--csv"],
    &["-sD", "--csv"],
    &["-sN", "--csv"],
    &["-sZ", "--csv"],
    &["-scdnmpCDNPZ", "--json"],
];

/// The program ended by itself, and no byte of its output acts on a terminal.
fn assert_harmless(output: &Output, what: &str) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        matches!(output.status.code(), Some(0 | 1)) && !stderr.contains("panicked"),
        "{what}: {}: {stderr}",
        output.status
    );
    assert_no_escape(&output.stdout, what);
    assert_no_escape(&output.stderr, what);
}

fn assert_no_escape(bytes: &[u8], what: &str) {
    let text = std::str::from_utf8(bytes).unwrap_or_else(|_| panic!("{what}: not UTF-8"));
    let raw = text
        .chars()
        .find(|&c| c.is_control() && c != '\n' || c == '\u{202e}');
    assert_eq!(raw, None, "{what}");
}

/// The objects of `play --json`. Panics if a number is absurd.
fn played(dir: &str, arguments: &[&str]) -> Vec<serde_json::Value> {
    let text = stdout_of(&[&["play", dir, "--json"], arguments].concat());
    let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
    let objects: Vec<serde_json::Value> = text.lines().map(parse).collect();
    for object in &objects {
        for (key, value) in object.as_object().expect("an object") {
            let sound = value.as_f64().is_none_or(|n| (0.0..=1e12).contains(&n));
            assert!(sound, "{key} is absurd in {object}");
        }
    }
    objects
}

/// The numbers of one column of one instance, by interval.
fn column(objects: &[serde_json::Value], name: (&str, &str), column: &str) -> Vec<f64> {
    let of_it = objects.iter().filter(|object| object[name.0] == name.1);
    of_it.filter_map(|object| object[column].as_f64()).collect()
}

/// 5 % of a small file system were less than the minimum of a ring: nothing was recorded there.
#[test]
fn small_file_systems_have_small_recordings() {
    if must_skip(&["mount", "umount"]) {
        return;
    }
    for (size, cap) in [("32m", "4 MiB"), ("64m", "8 MiB"), ("150m", "8 MiB")] {
        let scratch = Scratch::new("small");
        let Some(_mounted) = Tmpfs::mount(&scratch.path("disk"), size) else {
            return skipped("tmpfs cannot be mounted");
        };
        let dir = scratch.text("disk/ring");
        let recorder = Recorder::start(&scratch, &dir, &["-s", "cdnmZ", "-i", ".01:.01"]);
        wait_until("recorded", || dump(&dir, "proc/loadavg").len() > 100);
        let said = recorder.stop();
        assert!(
            said.contains(&format!("take {cap} at most")),
            "{size}: {said}"
        );
        let data = scratch.text("disk/data");
        let mut served = Served::start(&["--data", &data, "--listen", "127.0.0.1:0"]);
        served.has_said(&format!("(cap {cap})"));
        wait_until("recorded by kymo serve", || {
            dump(&data, "proc/loadavg").len() > 3
        });
    }
}

#[test]
fn a_full_disk_costs_only_the_time_it_is_full() {
    if must_skip(&["mount", "umount"]) {
        return;
    }
    let scratch = Scratch::new("full");
    let Some(_mounted) = Tmpfs::mount(&scratch.path("disk"), "1m") else {
        return skipped("tmpfs cannot be mounted");
    };
    let dir = scratch.text("disk/ring");
    let options = [
        "-s",
        "cdnmZ",
        "-i",
        ".01:.01",
        "--cap",
        "50M",
        "--sync",
        "0",
        "--seal-bytes",
        "32K",
    ];
    let mut recorder = Recorder::start(&scratch, &dir, &options);
    let newest = || {
        dump(&dir, "proc/loadavg")
            .last()
            .map_or(0, |frame| frame.seq)
    };
    wait_until("recorded", || newest() > 40);
    let before = newest();
    // Fills the rest of the disk.
    let filler = scratch.path("disk/filler");
    let full = fs::write(&filler, vec![1; 1 << 20]);
    assert!(full.is_err(), "the disk is not full");
    wait_until("said", || {
        recorder.output_text().contains("records are dropped")
    });
    pause(500);
    let at_full = newest();
    assert!(at_full >= before, "what was recorded is readable");
    pause(1000);
    assert_eq!(newest(), at_full, "nothing more is recorded");
    assert!(recorder.running.0.try_wait().expect("its state").is_none());
    fs::remove_file(&filler).expect("the filler");
    wait_until("went on", || newest() > at_full + 50);
    let output = run(&["dump", &dir, "--source", "proc/loadavg"]);
    let seqs: Vec<u64> = parse_dump(&output.stdout)
        .iter()
        .map(|frame| frame.seq)
        .collect();
    assert!(
        // Record 1 is the recorder's start.
        seqs.contains(&2) && seqs.contains(&before),
        "old samples stay"
    );
    assert!(seqs.is_sorted() && seqs.iter().all(|&seq| seq <= at_full || seq > at_full + 5));
    let gaps = String::from_utf8_lossy(&output.stderr);
    assert!(gaps.contains("gap: ") && !gaps.contains("damage"), "{gaps}");
    let said = recorder.stop();
    let lost: Vec<_> = said
        .lines()
        .filter(|line| line.contains("dropped"))
        .collect();
    assert_eq!(
        lost.len(),
        2,
        "one line for the loss, one for its end: {said}"
    );
    assert!(
        lost[0].ends_with("No space left on device; records are dropped"),
        "{said}"
    );
    assert!(lost[1].contains("recording goes on; "), "{said}");
}

/// The value of a fact at each sample; none if the fact is absent.
fn facts(dir: &str, fact: &str) -> Vec<Option<String>> {
    let mut recorded =
        Recorded::open(Path::new(dir), TimeRange::ALL, Kinds::ALL).expect("a recording");
    let mut facts = Vec::new();
    while let Some(step) = recorded.next().expect("a step") {
        if matches!(step, Step::Sample(_)) {
            facts.push(recorded.context().get(fact).map(str::to_string));
        }
    }
    facts.dedup();
    facts
}

/// Presence of a device in a recorded text, without repetitions.
fn presence(dir: &str, source: &str, name: &str) -> Vec<bool> {
    let names = |frame: &Dumped| {
        let text = String::from_utf8_lossy(&frame.text).into_owned();
        text.split([' ', ':', '\n']).any(|word| word == name)
    };
    let mut presence: Vec<bool> = dump(dir, source).iter().map(names).collect();
    presence.dedup();
    presence
}

#[test]
fn devices_come_and_go() {
    if must_skip(&["ip", "losetup"]) {
        return;
    }
    let _devices = hold_devices();
    let scratch = Scratch::new("plug");
    let (dir, image) = (scratch.text("ring"), scratch.path("image"));
    fs::write(&image, vec![0; 1 << 20]).expect("an image");
    let recorder = Recorder::start(&scratch, &dir, &["-s", "cDN", "-i", ".05"]);
    let shows = |source: &str, name: &str, there: bool| {
        wait_until(&format!("{name}: {there}"), || {
            presence(&dir, source, name).last() == Some(&there)
        });
    };
    shows("proc/diskstats", "loop77", false);
    shows("proc/net/dev", "kymo-a", false);
    let (Some(disk), Some(mut interface)) =
        (LoopDevice::attach(77, &image), Interface::add("kymo-a"))
    else {
        return skipped("neither a loop device nor an interface can be added");
    };
    shows("proc/diskstats", "loop77", true);
    shows("proc/net/dev", "kymo-a", true);
    fs::write(disk.path(), vec![7; 64 << 10]).expect("a write to the device");
    assert!(interface.rename("kymo-b"));
    shows("proc/net/dev", "kymo-b", true);
    // A rate needs two samples.
    pause(400);
    drop((disk, interface));
    shows("proc/diskstats", "loop77", false);
    shows("proc/net/dev", "kymo-b", false);
    // /sys follows /proc within a second, and the facts follow /sys.
    for fact in ["disk.loop77", "net.kymo-b"] {
        wait_until(&format!("{fact} is gone"), || {
            facts(&dir, fact).last() == Some(&None)
        });
    }
    recorder.stop();
    let came_and_went = [false, true, false];
    assert_eq!(presence(&dir, "proc/diskstats", "loop77"), came_and_went);
    assert_eq!(presence(&dir, "proc/net/dev", "kymo-a"), came_and_went);
    assert_eq!(presence(&dir, "proc/net/dev", "kymo-b"), came_and_went);
    let fact = |text: &str| vec![None, Some(text.to_string()), None];
    assert_eq!(facts(&dir, "disk.loop77"), fact("loop"));
    assert_eq!(facts(&dir, "net.kymo-a"), fact("virtual"));
    assert_eq!(facts(&dir, "net.kymo-b"), fact("virtual"));
    let objects = played(&dir, &["-sDN", "-on"]);
    let written: f64 = column(&objects, ("disk.disk", "loop77"), "disk.write_kb")
        .iter()
        .sum();
    assert_eq!(written, 64.0, "what was written while it was there");
    assert!(!column(&objects, ("net.interface", "kymo-b"), "net.rx_kb").is_empty());
    assert!(
        objects
            .last()
            .is_some_and(|last| last["net.interface"] != "kymo-b")
    );
    played(&dir, &["-scdnCDN"]);
}

#[test]
fn a_cpu_goes_and_comes_back() {
    if must_skip(&[]) {
        return;
    }
    let _devices = hold_devices();
    let scratch = Scratch::new("cpu");
    let dir = scratch.text("ring");
    let recorder = Recorder::start(&scratch, &dir, &["-s", "C", "-i", ".05"]);
    let shows = |there: bool| {
        wait_until(&format!("cpu1: {there}"), || {
            presence(&dir, "proc/stat", "cpu1").last() == Some(&there)
        });
    };
    shows(true);
    let Some(offline) = OfflineCpu::take(1) else {
        return skipped("CPU 1 cannot be taken offline");
    };
    shows(false);
    drop(offline);
    shows(true);
    pause(400);
    recorder.stop();
    assert_eq!(presence(&dir, "proc/stat", "cpu1"), [true, false, true]);
    let objects = played(&dir, &["-scC"]);
    for object in &objects {
        for (key, value) in object.as_object().expect("an object") {
            let percent =
                key.starts_with("cpu.") && ["user", "sys", "idle", "total"].contains(&&key[4..]);
            assert!(
                !percent || value.as_f64().is_some_and(|n| n <= 100.01),
                "{key} in {object}"
            );
        }
    }
}

#[test]
fn more_processes_than_files_to_keep() {
    if must_skip(&["prlimit"]) {
        return;
    }
    let scratch = Scratch::new("budget");
    let dir = scratch.text("ring");
    let sleep = || Running(Command::new("sleep").arg("600").spawn().expect("sleep"));
    let sleepers: Vec<Running> = (0..400).map(|_| sleep()).collect();
    let output = Command::new("prlimit")
        .arg("--nofile=300")
        .arg(kymo())
        .args(["record", "-s", "cZ", "-i", ".2:.2", "-c", "3", "-f", &dir])
        .output();
    let output = output.expect("prlimit");
    assert_harmless(&output, "record");
    assert!(
        output.status.success() && !String::from_utf8_lossy(&output.stderr).contains("open files")
    );
    let mut read: BTreeMap<String, usize> = BTreeMap::new();
    for frame in parse_dump(&run(&["dump", &dir]).stdout) {
        assert!(
            !frame.state.starts_with("failed:too-many-open-files"),
            "{frame:?}"
        );
        *read.entry(frame.source).or_default() += usize::from(!frame.text.is_empty());
    }
    for sleeper in &sleepers {
        let pid = sleeper.0.id();
        for file in ["stat", "io"] {
            let times = read.get(&format!("proc/{pid}/{file}")).copied();
            assert_eq!(times, Some(4), "proc/{pid}/{file}");
        }
        assert!(read.contains_key(&format!("proc/{pid}/cmdline")), "{pid}");
    }
}

/// A tree of kernel files on an ordinary disk.
struct Tree(Scratch);

/// Files of the tree, and captured texts of other machines for them.
const TREE: [(&str, &str); 14] = [
    ("proc/stat", "stat_4.18_offline.txt"),
    ("proc/loadavg", "loadavg_busy.txt"),
    ("proc/meminfo", "meminfo_3.10.txt"),
    ("proc/vmstat", "vmstat_2.6.32.txt"),
    ("proc/diskstats", "diskstats_4.18.txt"),
    ("proc/1/net/dev", "net_dev_containers.txt"),
    ("proc/pressure/cpu", "pressure_cpu_5.4.txt"),
    ("proc/pressure/io", "pressure_io.txt"),
    ("proc/pressure/irq", "pressure_irq.txt"),
    ("proc/4711/stat", "kthread_stat.txt"),
    ("proc/4711/status", "kthread_status.txt"),
    ("proc/1/stat", "pid1_stat.txt"),
    ("proc/1/status", "pid1_status.txt"),
    ("proc/1/io", "io_pid.txt"),
];

fn corpus(file: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(file);
    fs::read(&path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()))
}

impl Tree {
    fn new(name: &str) -> Tree {
        let tree = Tree(Scratch::new(name));
        for (path, file) in TREE {
            tree.put(path, &corpus(file));
        }
        tree.put("proc/1/cmdline", b"/sbin/init\0splash\0");
        tree.put("proc/sys/kernel/hostname", b"elsewhere\n");
        tree
    }

    /// Replaces a file by rename, so that a reader never sees half of it.
    fn put(&self, path: &str, text: &[u8]) {
        let (path, new) = (self.0.path(&format!("root/{path}")), self.0.path("new"));
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(&new, text).expect("a file");
        fs::rename(new, path).expect("its name");
    }

    fn root(&self) -> String {
        self.0.text("root")
    }
}

#[test]
fn another_root_is_read_anew_each_time() {
    let tree = Tree::new("tree");
    let (root, dir) = (tree.root(), tree.0.text("ring"));
    let recorder = Recorder::start(
        &tree.0,
        &dir,
        &["--root", &root, "-s", "cdnmpZ", "-i", ".05:.05"],
    );
    wait_until("recorded", || dump(&dir, "proc/stat").len() > 3);
    let text = |file| String::from_utf8(corpus(file)).expect("text");
    let disks = text("diskstats_4.18.txt").replace(" sda 88231 ", " sda 88331 ");
    let memory = text("meminfo_3.10.txt").replace("98123404", "97000000");
    let nets = text("net_dev_containers.txt")
        .replace("   123:    1234      12", "   123:   11474      22");
    let process = text("kthread_stat.txt").replace(" 3917 ", " 3927 ");
    tree.put("proc/diskstats", disks.as_bytes());
    tree.put("proc/meminfo", memory.as_bytes());
    tree.put("proc/1/net/dev", nets.as_bytes());
    tree.put("proc/4711/stat", process.as_bytes());
    wait_until("read anew", || {
        dump(&dir, "proc/4711/stat")
            .last()
            .is_some_and(|f| f.text == process.as_bytes())
    });
    pause(200);
    let said = recorder.stop();
    assert!(!said.contains("panicked"), "{said}");
    for (source, old, new) in [
        ("proc/diskstats", "diskstats_4.18.txt", &disks),
        ("proc/meminfo", "meminfo_3.10.txt", &memory),
        ("proc/net/dev", "net_dev_containers.txt", &nets),
        ("proc/4711/stat", "kthread_stat.txt", &process),
    ] {
        let frames = dump(&dir, source);
        let (first, last) = (&frames[0].text, &frames[frames.len() - 1].text);
        assert!(*first == corpus(old) && last == new.as_bytes(), "{source}");
    }
    assert_eq!(
        dump(&dir, "proc/1/cmdline")
            .last()
            .map(|frame| frame.text.clone()),
        Some(b"/sbin/init\0splash\0".to_vec())
    );
    let objects = played(&dir, &["-smDNZ", "-on"]);
    let sum = |name, key| column(&objects, name, key).iter().sum::<f64>();
    assert_eq!(sum(("disk.disk", "sda"), "disk.reads"), 100.0);
    assert_eq!(sum(("net.interface", "123"), "net.rx_kb"), 10.0);
    let free: Vec<_> = objects
        .iter()
        .filter_map(|object| object["memory.free"].as_f64())
        .collect();
    assert!(
        free.first() > free.last() && free.last() == Some(&97_000_000.0),
        "{free:?}"
    );
    assert!(
        tree.0.path("ring/elsewhere.lock").exists(),
        "the host is the tree's"
    );
}

/// Texts that no kernel gives. Each one replaces every file.
fn hostile() -> Vec<(&'static str, Vec<u8>)> {
    let mut binary: Vec<u8> = (0..20_000u32).map(|n| ((n * n) >> 7) as u8).collect();
    binary.extend(b"\n\0\xff\xfe cpu 1 2\n");
    let numbers = "cpu 99999999999999999999999 -5 1e9 0x10 18446744073709551615\n8 0 sda 18446744073709551616 -1 99999999999999999999 1 1 1 1 1 1 1 1\n lo:18446744073709551615 18446744073709551615 1 1 1 1 1 1 1 1 1 1 1 1 1 1\nMemTotal: -1 kB\n1 (x) R -1 18446744073709551615 99999999999999999999\nrchar: 18446744073709551616\nsome avg10=-1.999 total=99999999999999999999\n";
    vec![
        ("empty", Vec::new()),
        ("a newline", b"\n".to_vec()),
        ("binary", binary),
        ("absurd numbers", numbers.into()),
        ("one line of 5 MB", vec![b'7'; 5 << 20]),
        (
            "5 MB of lines",
            b"cpu 1 2 3 4 5 6 7 8 9 10\n".repeat(5 << 20 >> 5),
        ),
        ("another file", corpus("hostile_net_dev.txt")),
    ]
}

/// Records the tree and shows it in every format.
fn record_and_show(tree: &Tree, what: &str) {
    let (root, dir) = (tree.root(), tree.0.text("ring"));
    // Removes the recording of the previous text.
    let _ = fs::remove_dir_all(&dir);
    let sampling = ["--root", &root, "-i", ".02:.02", "-c", "3"];
    let record = run(&[&["record", "-s", "cdnmpZ", "-f", &dir], &sampling[..]].concat());
    assert_harmless(&record, &format!("record: {what}"));
    assert!(record.status.success(), "{what}");
    let dump = run(&["dump", &dir]);
    assert!(matches!(dump.status.code(), Some(0)), "dump: {what}");
    for frame in parse_dump(&dump.stdout)
        .iter()
        .filter(|frame| frame.source == "proc/stat")
    {
        let text = fs::read(tree.0.path("root/proc/stat")).expect("the text");
        assert!(
            frame.text == text || frame.state == "failed:file-too-large",
            "{what}"
        );
    }
    for format in FORMATS {
        assert_harmless(
            &run(&[&["play", &dir], format].concat()),
            &format!("play {format:?}: {what}"),
        );
    }
    let plots = tree.0.text("plots");
    let files = run(&["play", &dir, "-scdnmpCDNPZ", "-P", "-oz", "-f", &plots]);
    assert_harmless(&files, &format!("plot files: {what}"));
    for file in fs::read_dir(&plots).into_iter().flatten().flatten() {
        assert_no_escape(
            &fs::read(file.path()).expect("a file"),
            &format!("plot files: {what}"),
        );
    }
    let _ = fs::remove_dir_all(&plots);
    let live = run(&[&["-scdnmpCDNPZ"], &sampling[..]].concat());
    assert_harmless(&live, &format!("live: {what}"));
}

#[test]
fn hostile_kernel_texts() {
    let tree = Tree::new("hostile");
    for (what, text) in hostile() {
        let large = text.len() > 1 << 20;
        for (path, _) in TREE
            .iter()
            .filter(|(path, _)| !large || LARGE.contains(path))
        {
            tree.put(path, &text);
        }
        tree.put("proc/1/cmdline", &text[..text.len().min(1 << 20)]);
        record_and_show(&tree, what);
    }
}

/// With the rest of the tree these files make a sample that can still be recorded.
const LARGE: [&str; 3] = ["proc/stat", "proc/1/net/dev", "proc/4711/stat"];

/// A process can make its command line as long as its memory. This once stopped the recorder.
#[test]
fn long_command_lines_are_cut() {
    let tree = Tree::new("cmdline");
    tree.put("proc/4711/cmdline", &vec![b'a'; 40 << 20]);
    let (root, dir) = (tree.root(), tree.0.text("ring"));
    let record = run(&[
        "record", "-s", "cZ", "--root", &root, "-i", ".1:.1", "-c", "4", "-f", &dir,
    ]);
    assert!(record.status.success());
    let frames = parse_dump(&run(&["dump", &dir]).stdout);
    let of = |source: &str| {
        frames
            .iter()
            .filter(|frame| frame.source == source)
            .collect::<Vec<_>>()
    };
    assert_eq!(of("proc/stat").len(), 5, "all samples are recorded");
    assert_eq!(
        of("proc/4711/cmdline")
            .first()
            .map(|frame| frame.text.len()),
        Some(64 << 10)
    );
}

/// A sample of 65 MB was once dropped without a message, and so were all samples after it.
#[test]
fn samples_too_large_are_said() {
    for (bytes, expected) in [
        (4_000_000, "sample too large"),
        (9_000_000, "failed:file-too-large"),
    ] {
        let tree = Tree::new("large");
        for (path, _) in TREE {
            tree.put(path, &vec![b'7'; bytes]);
        }
        let (root, dir) = (tree.root(), tree.0.text("ring"));
        let record = run(&[
            "record", "-s", "cdnmpZ", "--root", &root, "-i", ".1:.1", "-c", "2", "-f", &dir,
        ]);
        let said = String::from_utf8_lossy(&record.stderr).into_owned();
        assert!(record.status.success(), "{said}");
        let dumped = run(&["dump", &dir, "--source", "proc/meminfo"]);
        let dumped = String::from_utf8_lossy(&dumped.stdout).into_owned();
        assert!(
            said.contains(expected) || dumped.contains(expected),
            "{bytes}: {said}"
        );
        let samples = dumped.matches(">>> ").count();
        let told =
            samples == 3 || said.contains("cannot keep samples") || said.contains("cannot record");
        assert!(samples >= 1 && told, "{bytes}: {samples} samples: {said}");
    }
}

#[test]
fn hostile_names_in_the_tree() {
    let tree = Tree::new("names");
    const NASTY: &str = "\x1b]0;x\x07";
    for (path, file) in [
        ("proc/diskstats", "hostile_diskstats.txt"),
        ("proc/1/net/dev", "hostile_net_dev.txt"),
        ("proc/66/stat", "hostile_pid_stat.txt"),
    ] {
        tree.put(path, &corpus(file));
    }
    tree.put(
        "proc/66/status",
        b"Name:\t\x1b[2J\nUid:\t5\t5\t5\t5\nVmRSS:\t 9 kB\n",
    );
    tree.put("proc/66/cmdline", b"\x1b[31m\0\xff\n\x1b]52;c;QQ==\x07\0");
    tree.put("proc/sys/kernel/hostname", b"h\x1b[2J\xe2\x80\xae\n");
    tree.put("proc/sys/kernel/osrelease", NASTY.as_bytes());
    tree.put(
        "etc/passwd",
        format!("{NASTY}:x:5:5::/:/bin/sh\n").as_bytes(),
    );
    tree.put(&format!("sys/block/{NASTY}/dev"), b"8:0\n");
    tree.put(&format!("sys/class/net/{NASTY}/speed"), b"\x1b[1m\n");
    record_and_show(&tree, "names");
    let shown = stdout_of(&["play", &tree.0.text("ring"), "-sDNZ"]);
    for name in ["\\x1b]52;c;QQ==\\x07", "\\x1b[31m", "123"] {
        assert!(shown.contains(name), "{name} is not in {shown}");
    }
}

/// Shows a process in every format; its name appears, but never raw.
fn shows_safely(dir: &str, pid: u32, name: &str) {
    let only = format!("p{pid}");
    for format in [
        &["-sZ"][..],
        &["-sZ", "--procopts", "w"],
        &["--top"],
        &["-sZ", "-P"],
        &["-sZ", "--csv"],
        &["-sZ", "--json"],
    ] {
        let output = run(&[&["play", dir, "--procfilt", &only], format].concat());
        assert_harmless(&output, &format!("{format:?}"));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.contains(name), "{format:?}: {text}");
    }
}

#[test]
fn processes_with_names_that_act_on_a_terminal() {
    let scratch = Scratch::new("escape");
    let dir = scratch.text("ring");
    let comm = b"\x1b]0;x\x07";
    let program = scratch.path("").join(OsStr::from_bytes(comm));
    copy_program(Path::new("/bin/sleep"), &program);
    let copied = Running(Command::new(&program).arg("600").spawn().expect("it runs"));
    let renamed = Command::new("/bin/sleep")
        .arg0("\x1b]52;c;QQ==\x07")
        .arg("600")
        .spawn();
    let renamed = Running(renamed.expect("it runs"));
    pause(100);
    stdout_of(&["record", "-s", "Z", "-i", ".1:.1", "-c", "4", "-f", &dir]);
    let (copied, renamed) = (copied.0.id(), renamed.0.id());
    let stat = dump(&dir, &format!("proc/{copied}/stat")).remove(0).text;
    assert!(stat.starts_with(&[format!("{copied} (").as_bytes(), comm, b") "].concat()));
    for (pid, first) in [
        (copied, program.as_os_str().as_bytes()),
        (renamed, b"\x1b]52;c;QQ==\x07"),
    ] {
        let frames = dump(&dir, &format!("proc/{pid}/cmdline"));
        let cmdline = &frames.last().expect("a command line").text;
        assert_eq!(*cmdline, [first, b"\x00600\x00"].concat());
    }
    shows_safely(&dir, copied, "]0;x");
    shows_safely(&dir, renamed, "]52;c;QQ==");
}

/// Three blocks, each of its own run.
fn three_blocks(dir: &str) -> Vec<PathBuf> {
    for _ in 0..3 {
        stdout_of(&["record", "-s", "cdnm", "-i", ".01", "-c", "20", "-f", dir]);
    }
    let folders = fs::read_dir(dir).expect("the ring").flatten();
    let files = folders
        .flat_map(|folder| fs::read_dir(folder.path()))
        .flatten();
    let mut blocks: Vec<_> = files.flatten().map(|file| file.path()).collect();
    blocks.sort();
    assert_eq!(blocks.len(), 3, "{blocks:?}");
    blocks
}

/// The first sequence number, with which a block's name begins.
fn first_seq(block: &Path) -> u64 {
    let name = block.file_name().expect("a name").to_string_lossy();
    let number = name.split('-').next().and_then(|n| n.parse().ok());
    number.expect("a number")
}

/// Ways to damage a file.
fn damages(whole: &[u8]) -> Vec<(String, Vec<u8>)> {
    let len = whole.len();
    let places = [
        0,
        20,
        60,
        len / 4,
        len / 2,
        3 * len / 4,
        len - 200,
        len - 20,
        len - 1,
    ];
    let flipped = places.map(|at| {
        let mut bytes = whole.to_vec();
        bytes[at] ^= 0x10;
        (format!("byte {at} of {len} flipped"), bytes)
    });
    let cut =
        [0, 10, len / 2, len - 1].map(|at| (format!("cut to {at} of {len}"), whole[..at].to_vec()));
    let mut zeros = whole.to_vec();
    zeros[len / 3..2 * len / 3].fill(0);
    let mut all = Vec::from(flipped);
    all.extend(cut);
    all.push(("a third is zeros".into(), zeros));
    all
}

#[test]
fn damaged_blocks_are_gaps() {
    let scratch = Scratch::new("damage");
    let dir = scratch.text("ring");
    let blocks = three_blocks(&dir);
    let sound = parse_dump(&run(&["dump", &dir]).stdout);
    let third_begins = first_seq(&blocks[2]);
    let wholes: Vec<Vec<u8>> = blocks
        .iter()
        .map(|block| fs::read(block).expect("a block"))
        .collect();
    for ((what, first), (_, second)) in damages(&wholes[0]).into_iter().zip(damages(&wholes[1])) {
        fs::write(&blocks[0], first).expect("a block");
        fs::write(&blocks[1], second).expect("a block");
        let output = run(&["dump", &dir]);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{what}: {stderr}");
        let frames = parse_dump(&output.stdout);
        let third = |frames: &[Dumped]| {
            frames
                .iter()
                .filter(|f| f.seq >= third_begins)
                .cloned()
                .collect::<Vec<_>>()
        };
        assert_eq!(
            third(&frames),
            third(&sound),
            "{what}: the third block is whole"
        );
        let mut rest = sound.iter();
        let wrong = frames.iter().find(|frame| {
            !rest.any(|f| f.source == frame.source && f.seq == frame.seq && f.text == frame.text)
        });
        assert_eq!(wrong, None, "{what}");
        // A block without its context still has its samples.
        let whole = frames.len() == sound.len();
        assert!(
            stderr.contains(if whole { "the context" } else { "gap: " }),
            "{what}: {} of {}: {stderr}",
            frames.len(),
            sound.len()
        );
        assert!(stderr.lines().count() < 20, "{what}: {stderr}");
        for format in FORMATS {
            assert_harmless(
                &run(&[&["play", &dir], format].concat()),
                &format!("{what}: {format:?}"),
            );
        }
        played(&dir, &["-scdnm"]);
    }
    for block in &blocks {
        fs::write(block, b"KYMO").expect("a block");
    }
    let output = run(&["play", &dir, "-sc"]);
    assert_eq!(
        (output.status.code(), output.stdout.len()),
        (Some(1), 0),
        "nothing is left to show"
    );
    stdout_of(&["record", "-s", "cdnm", "-i", ".01", "-c", "5", "-f", &dir]);
    assert_eq!(
        dump(&dir, "proc/stat").len(),
        6,
        "a recorder starts on such a folder"
    );
}
