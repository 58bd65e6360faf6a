//! Control groups: generated trees of version 2 and version 1, since a kernel has each controller in one version only.
//! The trees are small and hostile, or have thousands of groups. A last test uses groups of the live machine.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kymo_tests::machine::{must_skip, skipped};
use kymo_tests::{Dumped, Running, Scratch, parse_dump, run, stdout_of};
use serde_json::Value;

const MOUNT: &str = "sys/fs/cgroup";

fn put(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    // A reader meanwhile gets the old text or the new one.
    let new = path.with_extension("new");
    fs::write(&new, text).expect("a file");
    fs::rename(new, path).expect("a file");
}

/// A generated root with one mount of version 2.
fn version_2(scratch: &Scratch) -> PathBuf {
    let root = scratch.path("root");
    put(&root, "proc/stat", "cpu  1 2 3 4\ncpu0 1 2 3 4\n");
    let mount = format!("31 23 0:28 / /{MOUNT} rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n");
    put(&root, "proc/self/mountinfo", &mount);
    root
}

/// Writes a group's files in the format of the kernel's documents of version 2. All numbers are derived from `n`.
fn put_group(root: &Path, path: &str, n: u64) {
    let file = |name: &str, text: &str| put(root, &format!("{MOUNT}{path}/{name}"), text);
    let us = n * 1000;
    file(
        "cpu.stat",
        &format!(
            "usage_usec {us}\nuser_usec {}\nsystem_usec {}\nnr_periods 9\nnr_throttled {n}\nthrottled_usec {n}\n",
            us - n,
            n
        ),
    );
    file("memory.current", &format!("{}\n", n * 4096));
    file("memory.max", "max\n");
    file(
        "memory.stat",
        &format!("anon {}\nfile 2048\npgfault {n}\n", n * 1024),
    );
    file(
        "memory.events",
        &format!("low 0\nhigh 0\nmax {n}\noom 0\noom_kill 0\noom_group_kill 0\n"),
    );
    file(
        "io.stat",
        &format!(
            "8:0 rbytes={us} wbytes=2048 rios={n} wios=1 dbytes=0 dios=0\n8:16 rbytes={us} wbytes=0 rios={n} wios=1 dbytes=0 dios=0\n"
        ),
    );
    for resource in ["cpu", "memory", "io"] {
        file(
            &format!("{resource}.pressure"),
            &format!(
                "some avg10=0.00 avg60=0.00 avg300=0.00 total={us}\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
            ),
        );
    }
    file("pids.current", &format!("{n}\n"));
    file("pids.max", "max\n");
}

fn rows(dir: &str, letter: &str) -> Vec<Value> {
    let json = stdout_of(&["play", dir, "-s", letter, "--json"]);
    let row = |line: &str| serde_json::from_str(line).expect("JSON");
    let rows = json.lines().map(row);
    // Lines of events stand between the rows.
    rows.filter(|row: &Value| row.get("event").is_none())
        .collect()
}

fn name(row: &Value) -> &str {
    row["cgroups.group"].as_str().expect("a name")
}

fn number(row: &Value, column: &str) -> Option<f64> {
    row.get(format!("cgroups.{column}"))?.as_f64()
}

/// The lines of a recording's plot file of groups.
fn plotted(dir: &Path) -> Vec<String> {
    let files = fs::read_dir(dir).expect("a folder").flatten();
    let mut files = files.filter(|file| file.file_name().to_string_lossy().ends_with(".cg"));
    let text = fs::read(files.next().expect("a plot file").path()).expect("a text");
    let text = String::from_utf8_lossy(&text).into_owned();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(str::to_string).collect()
}

/// Records a tree while another thread changes it: counters grow, one group goes, another comes.
fn recorded_while_it_changes(root: &Path, dir: &Path) {
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0.. {
                if ended.load(Ordering::Relaxed) {
                    break;
                }
                put_group(root, "/app.slice/web", 100 + round);
                if round == 20 {
                    fs::remove_dir_all(root.join(MOUNT).join("app.slice/goes")).expect("a group");
                    put_group(root, "/app.slice/comes", 7);
                }
                std::thread::sleep(Duration::from_millis(50));
            }
        });
        let (root, dir) = (root.to_string_lossy(), dir.to_string_lossy());
        let arguments = [
            "-sgG", "-P", "--rawtoo", "-oz", "-i", ".2", "-c", "20", "--root", &root, "-f", &dir,
        ];
        let output = run(&arguments);
        ended.store(true, Ordering::Relaxed);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && said.is_empty(), "{said}");
    });
}

/// A tree with a group whose name is hostile, and links that lead out of it.
fn hostile_tree(scratch: &Scratch) -> PathBuf {
    let root = version_2(scratch);
    put(&root, &format!("{MOUNT}/cpu.stat"), "usage_usec 5\n");
    put_group(&root, "/app.slice", 500);
    put_group(&root, "/app.slice/web", 100);
    put_group(&root, "/app.slice/goes", 1);
    let hostile = "/app.slice/\u{1b}]0;x\u{7}\n..\u{202e}";
    put_group(&root, hostile, 3);
    put_group(&root, "/app-other", 4);
    fs::create_dir_all(root.join("secret/deep")).expect("a folder");
    put(&root, "secret/cpu.stat", "usage_usec 99\n");
    for (link, to) in [("link", "../../../secret"), ("app.slice/up", "..")] {
        let link = root.join(MOUNT).join(link);
        std::os::unix::fs::symlink(to, link).expect("a link");
    }
    let linked = root.join(MOUNT).join("app-other/memory.swap.current");
    std::os::unix::fs::symlink("../../../../secret/cpu.stat", linked).expect("a link");
    root
}

/// Rows have the numbers of the files, playback equals live output, a group that goes is an absent row, and no name leads
/// out of the tree or into the terminal.
#[test]
fn version_2_live_is_playback_while_groups_come_and_go() {
    let scratch = Scratch::new("cgroups-2");
    let root = hostile_tree(&scratch);
    let dir = scratch.path("ring");
    recorded_while_it_changes(&root, &dir);
    let (ring, played) = (scratch.text("ring"), scratch.text("played"));
    stdout_of(&["play", &ring, "-sgG", "-P", "-oz", "-f", &played]);
    let live = plotted(&dir);
    assert_eq!(live, plotted(Path::new(&played)));
    assert!(
        live.iter().any(|line| line.contains("/app.slice/comes")),
        "{live:?}"
    );
    let rows = rows(&ring, "G");
    let of =
        |group: &str| -> Vec<&Value> { rows.iter().filter(|row| name(row) == group).collect() };
    let web = of("/app.slice/web");
    assert_eq!(web.len(), 20);
    let (gone, come) = (of("/app.slice/goes").len(), of("/app.slice/comes").len());
    assert!(
        (1..20).contains(&gone) && (1..20).contains(&come),
        "{gone} {come}"
    );
    within_their_tree(&rows.iter().map(name).collect::<Vec<_>>());
    as_their_files_say(of("/app-other")[0]);
    grow_as_their_files_say(&ring, &web);
    let text = stdout_of(&["play", &ring, "-sG"]);
    let raw = text
        .chars()
        .find(|&c| c.is_control() && c != '\n' || c == '\u{202e}');
    assert_eq!(raw, None, "{text:?}");
    let tree: Vec<&str> = text.lines().filter(|line| line.ends_with("web")).collect();
    assert!(tree[0].ends_with("     web"), "{tree:?}");
}

/// No link was followed, and groups stand in the order of a tree, though `-` and `.` are less than `/`.
fn within_their_tree(all: &[&str]) {
    let is_outside = |name: &&str| {
        ["link", "up", "deep"]
            .iter()
            .any(|part| name.contains(part))
    };
    assert!(!all.iter().any(is_outside), "{all:?}");
    let mut later = all.iter().skip(1);
    let sample = 1 + later
        .position(|&name| name == "/")
        .expect("a second sample");
    let places = [
        "/",
        "/app-other",
        "/app.slice",
        "/app.slice/goes",
        "/app.slice/web",
    ];
    let places = places.map(|place| all[..sample].iter().position(|&name| name == place));
    assert!(places.is_sorted() && places[0] == Some(0), "{all:?}");
}

/// Checks the row of a group that `put_group` wrote with `n` = 4.
fn as_their_files_say(row: &Value) {
    for (column, expect) in [
        ("groups", Some(1.0)),
        ("memory_kb", Some(16.0)),
        ("anon_kb", Some(4.0)),
        ("pids", Some(4.0)),
        ("cpu", Some(0.0)),
        // An absent file, a link, or no limit is a missing value.
        ("swap_kb", None),
        ("kernel_kb", None),
        ("memory_max_kb", None),
    ] {
        assert_eq!(number(row, column), expect, "{column}: {row}");
    }
}

/// The rates of a group are the differences of its recorded texts.
fn grow_as_their_files_say(ring: &str, web: &[&Value]) {
    let frames = parse_dump(&run(&["dump", ring]).stdout);
    let usage: Vec<f64> = values(&frames, "cgroup/app.slice/web", "usage_usec");
    assert!(usage.last() > usage.first(), "{usage:?}");
    let grown: f64 = usage.windows(2).map(|pair| pair[1] - pair[0]).sum();
    let times: Vec<f64> = web.iter().filter_map(|row| row["time"].as_f64()).collect();
    let interval_us = (times[times.len() - 1] - times[0]) / (times.len() - 1) as f64 * 1e6;
    let shown: f64 = web.iter().filter_map(|row| number(row, "cpu")).sum();
    let shown = shown / 100.0 * interval_us;
    assert!((shown - grown).abs() < grown * 0.05, "{shown} {grown}");
}

/// The numbers behind a key in the texts of a source.
fn values(frames: &[Dumped], source: &str, key: &str) -> Vec<f64> {
    let of = |frame: &Dumped| {
        let text = String::from_utf8_lossy(&frame.text).into_owned();
        let mut words = text.split([' ', '\n']).skip_while(|word| *word != key);
        words.nth(1)?.parse().ok()
    };
    let mine = frames.iter().filter(|frame| frame.source == source);
    mine.filter_map(of).collect()
}

/// Each controller of version 1 has its own hierarchy; a group is one row, whichever hierarchies it is in.
#[test]
fn version_1_in_the_same_columns() {
    let scratch = Scratch::new("cgroups-1");
    let root = scratch.path("root");
    put(&root, "proc/stat", "cpu  1 2 3 4\ncpu0 1 2 3 4\n");
    put(
        &root,
        "proc/1/mountinfo",
        "1 0 8:1 / / rw - ext4 /dev/a rw\n\
         32 31 0:29 / /cg/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
         33 31 0:30 / /cg/memory rw - cgroup cgroup rw,memory\n\
         34 31 0:31 / /cg/blkio rw - cgroup cgroup rw,blkio\n",
    );
    for (path, text) in [
        ("cpu,cpuacct/box/cpuacct.usage", "7000\n"),
        ("cpu,cpuacct/box/cpuacct.stat", "user 3\nsystem 4\n"),
        (
            "cpu,cpuacct/box/cpu.stat",
            "nr_periods 5\nnr_throttled 2\nthrottled_time 9000\n",
        ),
        ("memory/box/memory.usage_in_bytes", "8192\n"),
        ("memory/box/memory.limit_in_bytes", "9223372036854771712\n"),
        (
            "memory/box/memory.stat",
            "rss 1\ntotal_rss 4096\ntotal_cache 2048\n",
        ),
        ("memory/only/memory.usage_in_bytes", "1024\n"),
        ("memory/only/memory.limit_in_bytes", "2048\n"),
        (
            "blkio/box/blkio.throttle.io_service_bytes",
            "8:0 Read 1\nTotal 1\n",
        ),
        (
            "blkio/box/blkio.throttle.io_service_bytes_recursive",
            "8:0 Read 1024\n8:0 Write 5\n8:16 Write 7\nTotal 9\n",
        ),
    ] {
        put(&root, &format!("cg/{path}"), text);
    }
    let (root, dir) = (scratch.text("root"), scratch.text("ring"));
    stdout_of(&[
        "record", "-sG", "-i0", "-c", "2", "--root", &root, "-f", &dir,
    ]);
    let said: BTreeMap<String, Value> = rows(&dir, "G")
        .into_iter()
        .map(|row| (name(&row).to_string(), row))
        .collect();
    assert_eq!(said.keys().collect::<Vec<_>>(), ["/box", "/only"]);
    for (group, column, expect) in [
        ("/box", "groups", Some(1.0)),
        ("/box", "memory_kb", Some(8.0)),
        ("/box", "anon_kb", Some(4.0)),
        ("/box", "memory_max_kb", None),
        ("/box", "cpu", Some(0.0)),
        ("/box", "throttled", Some(0.0)),
        ("/box", "read_kb", Some(0.0)),
        ("/box", "pids", None),
        ("/box", "cpu_some", None),
        ("/only", "memory_percent", Some(50.0)),
        ("/only", "cpu", None),
    ] {
        assert_eq!(number(&said[group], column), expect, "{group} {column}");
    }
    let sum = &rows(&dir, "g")[0];
    assert_eq!(
        (number(sum, "groups"), number(sum, "memory_kb")),
        (Some(2.0), Some(9.0))
    );
    let frames = parse_dump(&run(&["dump", &dir]).stdout);
    assert_eq!(
        values(&frames, "cgroup/box", "Read"),
        [1024.0, 1024.0, 1024.0]
    );
}

/// Thousands of groups are rows. Beyond the limit, the groups farthest from the root are left out, with one event.
#[test]
fn thousands_of_groups_within_a_limit() {
    let scratch = Scratch::new("cgroups-many");
    let root = version_2(&scratch);
    let add = |range: std::ops::Range<u32>| {
        for n in range {
            let folder = format!("{MOUNT}/s{}.slice/box{n}", n % 30);
            put(
                &root,
                &format!("{folder}/cpu.stat"),
                &format!("usage_usec {n}\n"),
            );
        }
    };
    add(0..3000);
    let record = |dir: &str| {
        let root = root.to_string_lossy();
        stdout_of(&[
            "record",
            "-sG",
            "-i",
            ".5",
            "-c",
            "3",
            "--no-backoff",
            "--root",
            &root,
            "-f",
            dir,
        ]);
        let dump = String::from_utf8_lossy(&run(&["dump", dir]).stdout).into_owned();
        let events = stdout_of(&["play", dir, "-sg", "--json"]);
        (
            rows(dir, "G").len(),
            dump.contains("box2999"),
            events.matches("control groups: those farthest").count(),
        )
    };
    // Groups without a file have no row: here the slices and the root.
    assert_eq!(record(&scratch.text("ring")), (3 * 3000, true, 0));
    add(3000..4500);
    let (count, _, said) = record(&scratch.text("ring of more"));
    assert_eq!((count, said), (3 * (4096 - 31), 1));
}

/// Groups of this machine, made for a test and removed with all that runs in them.
struct Made(Vec<PathBuf>);

impl Made {
    /// Makes a group in the hierarchy of each mounted controller of version 1, and of version 2.
    fn new() -> Option<Made> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        let mut made = Made(Vec::new());
        for line in mounts.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let (Some(point), Some((_, after))) = (words.get(4), line.split_once(" - ")) else {
                continue;
            };
            let known = ["memory", "cpuacct", "pids"];
            let is_known = |option: &str| known.contains(&option);
            let is_hierarchy = after.starts_with("cgroup2 ")
                || after.starts_with("cgroup ") && after.split([',', ' ']).any(is_known);
            if !is_hierarchy {
                continue;
            }
            let group = Path::new(point).join(format!("kymo-test-{}", std::process::id()));
            if fs::create_dir(&group).is_ok() {
                made.0.push(group);
            }
        }
        (!made.0.is_empty()).then_some(made)
    }

    /// The number behind `key` in a file; with an empty key, the only number. The first group that has the file answers.
    fn number(&self, file: &str, key: &str) -> Option<f64> {
        let found = self
            .0
            .iter()
            .find_map(|group| fs::read_to_string(group.join(file)).ok());
        let text = found?;
        let mut words = text.split_whitespace();
        match key {
            "" => words.next()?.parse().ok(),
            key => words.skip_while(|word| *word != key).nth(1)?.parse().ok(),
        }
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        for group in &self.0 {
            let members = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
            for pid in members.split_whitespace() {
                let _status = std::process::Command::new("kill")
                    .args(["-9", pid])
                    .status();
            }
            // The kernel takes a killed process out of its group a little later.
            for _ in 0..100 {
                if fs::remove_dir(group).is_ok() {
                    break;
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
}

/// A process with a loop and 50 MB in the memory of `tail`, in its own group.
fn busy_process(made: &Made) -> Running {
    let moves: Vec<String> = made
        .0
        .iter()
        .map(|group| format!("echo $$ > {}/cgroup.procs", group.display()))
        .collect();
    // tail holds the output of head until the sleep is over.
    let script = format!(
        "{}; {{ head -c 50000000 /dev/zero; exec sleep 600; }} | tail > /dev/null & while :; do :; done",
        moves.join("; ")
    );
    let running = Running::shell(&script);
    for _ in 0..600 {
        let is_there = anon(made).is_none_or(|bytes| bytes > 45e6);
        if is_there && usage_us(made).is_none_or(|us| us > 100e3) {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    running
}

fn anon(made: &Made) -> Option<f64> {
    made.number("memory.stat", "total_rss")
        .or_else(|| made.number("memory.stat", "anon"))
}

fn usage_us(made: &Made) -> Option<f64> {
    let ns = || Some(made.number("cpuacct.usage", "")? / 1000.0);
    made.number("cpu.stat", "usage_usec").or_else(ns)
}

/// A group's row shows the work of its process: a value between those of the group's files before and after.
#[test]
fn numbers_of_a_group_are_its_files() {
    if must_skip(&["sh", "head", "tail", "kill"]) {
        return;
    }
    let Some(made) = Made::new() else {
        return skipped("no control group can be made here");
    };
    let running = busy_process(&made);
    let scratch = Scratch::new("cgroups-live");
    let dir = scratch.text("ring");
    let before_us = usage_us(&made);
    stdout_of(&["record", "-sG", "-i", ".5", "-c", "4", "-f", &dir]);
    let (after_us, after_bytes) = (usage_us(&made), anon(&made));
    // The shell of `head` becomes the sleep only now and then before the first sample, but long before the last.
    let after_pids = made.number("pids.current", "");
    let group = format!("/kymo-test-{}", std::process::id());
    let said: Vec<Value> = rows(&dir, "G")
        .into_iter()
        .filter(|row| name(row) == group)
        .collect();
    assert_eq!(said.len(), 4, "{:?}", made.0);
    if let (Some(before_us), Some(after_us)) = (before_us, after_us) {
        used_between(&dir, &group, &said, (before_us, after_us));
    }
    let last = &said[3];
    if let Some(bytes) = after_bytes {
        let shown = number(last, "anon_kb").expect("memory") * 1024.0;
        assert!(
            shown > 45e6 && (shown - bytes).abs() < 4e6,
            "{shown} {bytes}"
        );
    }
    if let Some(pids) = after_pids {
        assert_eq!(number(last, "pids"), Some(pids), "{last}");
    }
    drop(running);
}

/// The CPU time in four rows of a group and in its recorded texts lies between the values of its files before and after.
fn used_between(dir: &str, group: &str, said: &[Value], (before_us, after_us): (f64, f64)) {
    let shares: Vec<f64> = said.iter().filter_map(|row| number(row, "cpu")).collect();
    let shown_us = shares.iter().sum::<f64>() / 100.0 * 0.5e6;
    assert_eq!(shares.len(), 4, "{said:?}");
    assert!(
        shown_us > 0.0 && shown_us <= (after_us - before_us) * 1.1,
        "{shown_us} {before_us} {after_us}"
    );
    let frames = parse_dump(&run(&["dump", dir]).stdout);
    let source = format!("cgroup{group}");
    let recorded = match values(&frames, &source, "usage_usec") {
        none if none.is_empty() => values(&frames, &source, "cpuacct.usage")
            .iter()
            .map(|ns| ns / 1000.0)
            .collect(),
        recorded => recorded,
    };
    assert!(recorded.is_sorted() && recorded.len() == 5, "{recorded:?}");
    assert!(
        before_us <= recorded[0] && recorded[4] <= after_us,
        "{before_us} {recorded:?} {after_us}"
    );
}
