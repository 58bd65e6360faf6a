//! Machines with odd values: counters that restart or run backwards, zeros for a moment,
//! disks and interfaces whose bytes appear twice or only in unusual places, a CPU that
//! is offline. Played from raw files, and live on a generated root, in every format.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use kymo_tests::{Running, Scratch, kymo, put, run, stdout_of};
use serde_json::Value;

const HEADER: &str =
    "################################################################################
# Collectl:   V4.3.1-1  HiRes: 1  Options: -scdn -i1 -f x
# Host:       odd  DaemonOpts:
# Booted:     1782800000.00 [20260630-06:13:20]
# Date:       20260701-100000  Secs: 1782900000 TZ: +0000
# SubSys:     cdnjJZ Options:  Interval: 1 NumCPUs: 2  NumBud: 0 Flags: ix
# HZ:         100  Arch: x86_64-linux-gnu-thread-multi PageSize: 4096
# Kernel:     6.1.0  Memory: 8000000 kB  Swap: 0 kB
# NumDisks:   1 DiskNames: sda
# NumNets:    2 NetNames: lo:?? eth0:1000
################################################################################
";

/// Path of a raw file with these texts as samples, a second apart.
fn raw(scratch: &Scratch, texts: &[String]) -> String {
    let mut file = HEADER.to_string();
    for (n, text) in texts.iter().enumerate() {
        file += &format!(">>> {}.000 <<<\n{text}", 1_782_900_000 + n);
    }
    file += &format!(">>> {}.000 <<<\n", 1_782_900_000 + texts.len());
    let path = scratch.path("odd-20260701-100000.raw");
    fs::write(&path, file).expect("a file");
    path.to_str().expect("a name").to_string()
}

/// The value of `key` in each interval, and in each row where there are several; `None`: unknown.
fn numbers(path: &str, switches: &[&str], key: &str) -> Vec<Option<f64>> {
    let arguments = [&["play", path, "--json"], switches].concat();
    let output = Command::new(kymo())
        .args(&arguments)
        .output()
        .expect("kymo");
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    let lines = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let intervals = lines.filter(|line| line.get("event").is_none());
    let table = key.split('.').next().unwrap_or_default();
    intervals
        .filter(|line| {
            let mut keys = line.as_object().expect("an object").keys();
            // An interval without known values has its time only.
            keys.len() == 1 || keys.any(|key| key.starts_with(table))
        })
        .map(|line| line[key].as_f64().map(|number| number.round()))
        .collect()
}

fn cpu(user: u64, sys: u64, idle: u64, wait: u64, steal: u64) -> String {
    let line = |name: &str, times: [u64; 5]| {
        let [user, sys, idle, wait, steal] = times;
        format!("{name} {user} 0 {sys} {idle} {wait} 0 0 {steal} 0 0\n")
    };
    let half = [user / 2, sys / 2, idle / 2, wait / 2, steal / 2];
    let whole = line("cpu ", [user, sys, idle, wait, steal]);
    whole
        + &line("cpu0", half)
        + &line("cpu1", half)
        + "intr 5\nctxt 5\nload 0.10 0.20 0.30 1/100 999\n"
}

/// Unknown times do not distort the known shares: idle and iowait restart after a suspend, steal runs backwards or jumps
/// to an impossible value, idle steps back a little in an idle interval.
#[test]
fn the_known_times_do_not_pass_for_the_whole() {
    let scratch = Scratch::new("odd-cpu");
    let at = |n: u64| (1000 + 10 * n, 500 + 10 * n, 600_000 + 180 * n);
    let texts = |idle_and_steal: &dyn Fn(u64, u64) -> (u64, u64, u64)| -> Vec<String> {
        let of = |n| {
            let (user, sys, idle) = at(n);
            let (idle, wait, steal) = idle_and_steal(n, idle);
            cpu(user, sys, idle, wait, steal)
        };
        (0..5).map(of).collect()
    };
    let suspended = texts(&|n, idle| match n {
        0 | 1 => (idle, 7998, 0),
        _ => (idle - 348_460, 7624, 0),
    });
    let backwards = texts(&|n, idle| (idle, 5, u64::MAX - 9_000 - 800_000_000 * n));
    let jumps = texts(&|n, idle| (idle, 5, if n < 2 { 4 } else { u64::MAX - 7 }));
    let steps = texts(&|n, idle| (if n == 2 { at(1).2 - 4 } else { idle }, 5, 0));
    for (what, texts, user, total, steal) in [
        ("suspended", suspended, [5.0; 4], [10.0; 4], [Some(0.0); 4]),
        ("backwards", backwards, [5.0; 4], [10.0; 4], [None; 4]),
        (
            "jumps",
            jumps,
            [5.0; 4],
            [10.0; 4],
            [Some(0.0), None, Some(0.0), Some(0.0)],
        ),
        (
            "steps",
            steps,
            [5.0, 5.0, 3.0, 5.0],
            [10.0, 10.0, 5.0, 10.0],
            [Some(0.0); 4],
        ),
    ] {
        let path = raw(&scratch, &texts);
        for (key, expect) in [
            ("cpu.user", user.map(Some)),
            ("cpu.total", total.map(Some)),
            ("cpu.steal", steal),
        ] {
            assert_eq!(numbers(&path, &["-sc"], key), expect, "{what} {key}");
        }
    }
}

/// A driver reports zeros once. A rate beyond a link of 1,000 Mbit/s is unknown, with one message.
#[test]
fn a_link_carries_what_it_can() {
    let scratch = Scratch::new("odd-net");
    let net = |bytes: u64| {
        format!(
            "Net   eth0: {bytes} {} 0 0 0 0 0 0 7 7 0 0 0 0 0 0\n",
            bytes / 1024
        )
    };
    let texts = |all: &[u64]| all.iter().map(|&bytes| net(bytes)).collect::<Vec<_>>();
    const MB: u64 = 1_024_000;
    const BASE: u64 = 182_018_452_734;
    for (bytes, expect, said) in [
        (
            [BASE, BASE + MB, 0, BASE + 3 * MB, BASE + 4 * MB],
            [Some(1000.0), None, Some(1000.0), Some(1000.0)],
            0,
        ),
        (
            [
                BASE,
                BASE + MB,
                BASE + 999 * MB,
                BASE + 1998 * MB,
                BASE + 1999 * MB,
            ],
            [Some(1000.0), None, None, Some(1000.0)],
            1,
        ),
        (
            [BASE, 0, MB, 2 * MB, 3 * MB],
            [None, Some(1000.0), Some(1000.0), Some(1000.0)],
            0,
        ),
    ] {
        let path = raw(&scratch, &texts(&bytes));
        assert_eq!(numbers(&path, &["-sn"], "net.rx_kb"), expect, "{bytes:?}");
        let output = Command::new(kymo())
            .args(["play", &path, "-sn"])
            .output()
            .expect("kymo");
        let shown = String::from_utf8_lossy(&output.stdout)
            .matches("cannot believe")
            .count();
        assert_eq!(shown, said, "{bytes:?}");
    }
}

/// If the head of an nvme counts nothing, its paths are counted. A device that `--dskfilt` names is counted.
#[test]
fn each_byte_of_a_disk_counts_once() {
    let scratch = Scratch::new("odd-disk");
    let disk = |number: &str, name: &str, sectors: u64| {
        let reads = u64::from(sectors > 0);
        format!("disk {number} {name} {reads} 0 {sectors} 0 0 0 0 0 0 0 0 0 0 0 0\n")
    };
    let texts = |disks: &[(&str, &str, u64)]| -> Vec<String> {
        let at = |n| {
            disks
                .iter()
                .map(move |&(number, name, kb)| disk(number, name, 2 * kb * n))
        };
        (1..3).map(|n| at(n).collect()).collect()
    };
    let nvme = [("259 13", "nvme3n1", 0), ("0 0", "nvme3c33n1", 64_000)];
    let both = [("259 13", "nvme3n1", 64_000), ("0 0", "nvme3c33n1", 64_000)];
    let folder = [
        ("104 0", "cciss/c0d0", 1000),
        ("104 1", "cciss/c0d0p1", 1000),
        ("8 0", "sda", 500),
    ];
    let mapped = [("8 0", "sda", 500), ("253 0", "dm-0", 400)];
    for (disks, switches, expect) in [
        (&nvme[..], &["-sd"][..], 64_000.0),
        (&both, &["-sd"], 64_000.0),
        (&folder, &["-sd"], 1500.0),
        (&mapped, &["-sd"], 500.0),
        (&mapped, &["-sd", "--dskfilt", "dm-0"], 400.0),
        (&mapped, &["-sd", "--dskfilt", "dm-0,sda"], 500.0),
        (&mapped, &["-sd", "--dskfilt", "^sda"], 0.0),
    ] {
        let path = raw(&scratch, &texts(disks));
        let got = numbers(&path, switches, "disk.read_kb");
        let expect = (expect > 0.0).then_some(expect);
        assert_eq!(got, [expect], "{disks:?} {switches:?}");
    }
}

/// A generated root, which the test changes while kymo runs on it.
struct Made(PathBuf);

impl Made {
    fn new(scratch: &Scratch) -> Made {
        let made = Made(scratch.path("root"));
        for (path, text) in [
            ("proc/stat", "cpu  1 2 3 4\ncpu0 1 2 3 4\n"),
            ("proc/loadavg", "0.00 0.00 0.00 1/10 99\n"),
            ("proc/diskstats", ""),
            ("proc/sys/kernel/hostname", "made\n"),
            ("proc/sys/kernel/random/boot_id", "aaaa\n"),
        ] {
            made.put(path, text);
        }
        made
    }

    fn put(&self, path: &str, text: &str) {
        put(&self.0, path, text);
    }

    fn root(&self) -> &Path {
        &self.0
    }

    /// Rates of `keys`, summed over the intervals in which `step` changes the machine from its state 0 to its state 1.
    /// If a sample falls into the middle of the change, the next interval has the rest.
    fn moved<const N: usize>(
        &self,
        switches: &[&str],
        step: &dyn Fn(&Made, u64),
        keys: [&str; N],
    ) -> [f64; N] {
        step(self, 0);
        let child = Command::new(kymo())
            .arg("--root")
            .arg(self.root())
            .args(["-i.5", "-c100", "--json"])
            .args(switches)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn();
        let mut child = Running(child.expect("kymo"));
        let shown = BufReader::new(child.0.stdout.take().expect("a pipe"));
        let mut rows = shown
            .lines()
            .map(|line| -> Value { serde_json::from_str(&line.expect("a line")).expect("JSON") });
        let mut interval = || -> [f64; N] {
            let row = rows.next().expect("an interval");
            keys.map(|key| row[key].as_f64().unwrap_or_else(|| panic!("{key}: {row}")))
        };
        assert_eq!(interval(), [0.0; N], "nothing has changed");
        step(self, 1);
        let seen = loop {
            let rates = interval();
            if rates != [0.0; N] {
                break rates;
            }
        };
        let rest = interval();
        std::array::from_fn(|key| seen[key] + rest[key])
    }
}

/// A new interface changes the facts of the machine. Comment and interval of the recording stay as they were.
#[test]
fn facts_that_change_keep_what_was_asked_for() {
    let scratch = Scratch::new("odd-facts");
    let made = Made::new(&scratch);
    let interfaces = |names: &[&str]| {
        let lines = names
            .iter()
            .map(|name| format!("{name}: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n"));
        let text = format!("Inter-|\n face |\n{}", lines.collect::<String>());
        for name in names {
            made.put(&format!("sys/class/net/{name}/device/vendor"), "made\n");
        }
        made.put("proc/1/net/dev", &text);
        made.put("proc/self/net/dev", &text);
        made.put("proc/net/dev", &text);
    };
    interfaces(&["eth0"]);
    let dir = scratch.text("ring");
    let child = Command::new(kymo())
        .arg("--root")
        .arg(made.root())
        .args(["-sn", "-i.1", "-f", &dir, "--comment", "of a test"])
        .stdin(Stdio::null())
        .spawn();
    let _recorder = Running(child.expect("kymo"));
    let rows = |of: &str| -> Vec<f64> {
        let shown = run(&["play", &dir, "-sN", "--json"]).stdout;
        let shown = String::from_utf8_lossy(&shown).into_owned();
        let rows = shown
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let rows = rows.filter(|row| row["net.interface"] == of);
        rows.filter_map(|row| row["time"].as_f64()).collect()
    };
    let some = |of: &str| loop {
        if let [first, .., _] = rows(of)[..] {
            return first;
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    some("eth0");
    interfaces(&["eth0", "eth1"]);
    // The seconds after the change are played alone.
    let second = some("eth1").ceil() + 1.0;
    while rows("eth1").last().is_none_or(|&last| last < second + 1.0) {
        std::thread::sleep(Duration::from_millis(50));
    }
    let (plots, from) = (scratch.text("plots"), format!("{second}"));
    stdout_of(&[
        "play", &dir, "-sn", "-P", "-oz", "-f", &plots, "--from", &from,
    ]);
    let mut files = fs::read_dir(&plots).expect("a folder");
    let file = files.next().expect("a plot file").expect("an entry");
    let header = fs::read_to_string(file.path()).expect("a text");
    for part in ["Comment:    of a test", "Interval: 0.1", "eth1"] {
        assert!(header.contains(part), "no {part}: {header}");
    }
}

/// sysfs spells `cciss/c0d0` with a `!`. A control group reports the I/O of a stacked disk twice.
#[test]
fn a_group_has_the_io_of_its_disks() {
    let scratch = Scratch::new("odd-groups");
    let made = Made::new(&scratch);
    made.put(
        "proc/1/mountinfo",
        "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
    );
    for (path, text) in [
        ("sys/block/cciss!c0d0/dev", "104:0\n"),
        ("sys/block/cciss!c0d0/cciss!c0d0p1/partition", "1\n"),
        ("sys/block/dm-0/dev", "253:0\n"),
        ("sys/block/dm-0/slaves/cciss!c0d0p1/partition", "1\n"),
        ("sys/block/loop0/dev", "7:0\n"),
    ] {
        made.put(path, text);
    }
    let step = |made: &Made, n: u64| {
        let bytes = 10_240 * n;
        for group in ["", "/web.slice"] {
            let folder = format!("sys/fs/cgroup{group}");
            made.put(&format!("{folder}/cpu.stat"), "usage_usec 1\n");
            let said = format!("wbytes={bytes} rios=0 wios={n}\n");
            let text = format!(
                "104:0 rbytes=0 {said}253:0 rbytes=0 {said}7:7 7:0 rbytes=5 {said}(unknown) rbytes=0 wbytes=0\n252:0 "
            );
            made.put(&format!("{folder}/io.stat"), &text);
        }
        let disk = |number: &str, name: &str| {
            format!(" {number} {name} 0 0 0 0 {n} 0 {} 0 0 0 0\n", bytes / 512)
        };
        let disks = [
            disk("104 0", "cciss/c0d0"),
            disk("104 1", "cciss/c0d0p1"),
            disk("253 0", "dm-0"),
        ];
        made.put("proc/diskstats", &disks.concat());
    };
    let keys = ["cgroups.write_kb", "disk.write_kb"];
    let [groups, disks] = made.moved(&["-sdg"], &step, keys);
    // Counted once. A sample may split the change into two intervals, which differ in length on a busy machine.
    assert!(
        (0.6..1.6).contains(&(groups / disks)),
        "{groups} and {disks}"
    );
}

/// Where no interface is hardware, the outermost one counts: a container's veth, not the bridge or the bridge's members.
#[test]
fn a_container_has_traffic() {
    let scratch = Scratch::new("odd-veth");
    for (name, others) in [("eth0", true), ("net1", false), ("tap0", true)] {
        let made = Made::new(&scratch);
        let folder = |name: &str| format!("sys/class/net/{name}");
        for (name, kind) in [(name, "1"), ("lo", "772"), ("sit0", "776")] {
            made.put(&format!("{}/type", folder(name)), kind);
        }
        if others {
            made.put(&format!("{}/type", folder("docker0")), "1");
            made.put(&format!("{}/bridge/x", folder("docker0")), "1");
            made.put(&format!("{}/lower_veth9/type", folder("docker0")), "1");
            made.put(&format!("{}/type", folder("veth9")), "1");
            made.put(&format!("{}/master/type", folder("veth9")), "1");
        }
        // Bytes of an interface that counts by mistake would show at once.
        let step = |made: &Made, n: u64| {
            let line = |name: &str, bytes: u64| {
                format!("{name}: {} {n} 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n", bytes * n)
            };
            let other = |name| line(name, 10_240_000);
            let all = [
                line(name, 1024),
                other("lo"),
                other("sit0"),
                other("docker0"),
                other("veth9"),
            ];
            made.put(
                "proc/self/net/dev",
                &format!("Inter-|\n face |\n{}", all.concat()),
            );
        };
        let [kb] = made.moved(&["-sn"], &step, ["net.rx_kb"]);
        assert!((0.5..4.0).contains(&kb), "{name}: {kb}");
        fs::remove_dir_all(made.root()).expect("a folder");
    }
}

/// CPU 1 is offline. collectl leaves out the header of the table, so the CPUs' times tell the CPU of each column.
#[test]
fn a_column_is_of_the_cpu_that_it_is_of() {
    let scratch = Scratch::new("odd-offline");
    let text = |n: u64| {
        let times = format!(
            "cpu 9 0 9 {} 0 0 0 0 0 0\ncpu0 5 0 5 {} 0 0 0 0 0 0\ncpu2 4 0 4 {} 0 0 0 0 0 0\n",
            200 * n,
            100 * n,
            100 * n
        );
        format!(
            "{times}intr 5\nctxt 5\nint   24: {n} {}  PCI-MSI 1-edge      eth0\n",
            70 * n
        )
    };
    let path = raw(&scratch, &[text(1), text(2)]);
    for (key, expect) in [
        ("interrupts.cpu0", Some(1.0)),
        ("interrupts.cpu1", None),
        ("interrupts.cpu2", Some(70.0)),
    ] {
        assert_eq!(numbers(&path, &["-sJ"], key), [expect], "{key}");
    }
}

/// collectl puts its prefix before each line, also before the second line of a name with a newline.
#[test]
fn a_name_with_a_newline_is_a_name() {
    let scratch = Scratch::new("odd-names");
    let text = |n: u64| {
        format!(
            "proc:6000 stat 6000 (a\nproc:6000 stat b) S 1 6000 6000 0 -1 4194304 100 0 0 0 {n}0 0 0 0 20 0 1 0 9000000 10000000 250 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0\nproc:6000 VmRSS:\t    1000 kB\n"
        )
    };
    let path = raw(&scratch, &[text(1), text(2)]);
    for ending in ["\n", "\r\n"] {
        let file = fs::read_to_string(&path).expect("a file");
        fs::write(&path, file.replace("\r\n", "\n").replace('\n', ending)).expect("a file");
        let output = Command::new(kymo())
            .args(["play", &path, "-sZ"])
            .output()
            .expect("kymo");
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            shown.contains("6000") && shown.contains("a\\x0ab"),
            "{ending:?}: {shown}"
        );
    }
}

/// lxcfs reports 2^64 - 128 of free swap where there is none. If more is free than the total, the value is unknown.
#[test]
fn more_swap_than_there_is_cannot_be_free() {
    let scratch = Scratch::new("odd-swap");
    for (total, free, expect) in [
        ("0", "18446744073709551488", Some(0.0)),
        ("1000", "18446744073709551488", None),
        ("1000", "1001", None),
        ("1000", "400", Some(600.0)),
    ] {
        let text = format!("MemTotal: 8000 kB\nSwapTotal: {total} kB\nSwapFree: {free} kB\n");
        let path = raw(&scratch, &[text.clone(), text]);
        let used = numbers(&path, &["-sm"], "memory.swap_used");
        assert_eq!(used.last(), Some(&expect), "{free} of {total}");
    }
}

/// A container's memory comes from several sources, so that a part may exceed the whole, or be below 0.
#[test]
fn memory_is_never_below_0() {
    let scratch = Scratch::new("odd-memory");
    let buffers = "18446744073709551611";
    let text =
        format!("MemTotal: 8000 kB\nMemFree: 9000 kB\nBuffers: {buffers} kB\nCached: 70 kB\n");
    let path = raw(&scratch, &[text.clone(), text]);
    for (key, expect) in [
        ("memory.total", Some(8000.0)),
        ("memory.free", Some(9000.0)),
        ("memory.used", None),
        ("memory.buffers", None),
        ("memory.cached", Some(70.0)),
    ] {
        let found = numbers(&path, &["-sm"], key);
        assert_eq!(found.last(), Some(&expect), "{key}");
    }
}

/// Every command with bounds accepts every form of them.
#[test]
fn bounds_are_the_same_everywhere() {
    let scratch = Scratch::new("odd-bounds");
    let folder = scratch.path("recording");
    let recorded = Command::new(kymo())
        .args(["record", "-sc", "-i.05", "-c6", "-f"])
        .arg(&folder)
        .output()
        .expect("kymo");
    assert!(recorded.status.success(), "{recorded:?}");
    let run = |command: &[&str], form: &[&str], n: usize| {
        let named = |word: &&str| match *word {
            "FOLDER" => folder.clone(),
            "SVG" => scratch.path(&format!("{n}.svg")),
            "FILE" => scratch.path(&format!("{n}.kymo")),
            "SERIES" => scratch.path("none"),
            word => word.into(),
        };
        Command::new(kymo())
            .args(command.iter().map(named))
            .args(form)
            .output()
            .expect("kymo")
    };
    let commands: [&[&str]; 7] = [
        &["play", "FOLDER", "-sc", "--json"],
        &["graph", "FOLDER", "-sc", "-o", "SVG"],
        &["export", "FOLDER", "FILE"],
        &["dump", "FOLDER"],
        &["play", "FOLDER", "--grep", "cpu0"],
        &["programs", "--open", "FOLDER"],
        &["series", "show", "none", "--data", "SERIES"],
    ];
    let forms: [&[&str]; 7] = [
        &["--from", "-1h"],
        &["--from", "-1h30m", "--thru", "now"],
        &["--from", "2026-01-01"],
        &["--from", "2026-01-01T10:00"],
        &["--from", "2026-01-01 10:00:00"],
        &["--from", "2026-01-01T10:00:00Z"],
        &["--from", "20260101:10:00"],
    ];
    for (c, command) in commands.iter().enumerate() {
        for (f, form) in [&["--from", "then"][..]].iter().chain(&forms).enumerate() {
            let at = ["--at", form[1]];
            let form = match command[0] {
                "programs" => &at[..],
                _ => form,
            };
            let output = run(command, form, 10 * c + f);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            let is_refused = said.contains("cannot use --") || said.contains("no such switch");
            assert_eq!(is_refused, f == 0, "{command:?} {form:?}: {said}");
        }
    }
    // The recording was made now: within the last hour, and not in the hour before.
    for (form, is_within) in [("-1h", true), ("-2h--1h", false), ("now", false)] {
        let output = run(commands[0], &["--from", form], 0);
        assert_eq!(!output.stdout.is_empty(), is_within, "{form}: {output:?}");
    }
}

/// Raw files packed by xz and zstd, and one on standard input: 10 % user, as in the unpacked file.
#[test]
fn packed_files_and_standard_input_are_played() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let users = |arguments: &[&str], input: Stdio| {
        let output = Command::new(kymo())
            .args(arguments)
            .args(["-sc", "--json"])
            .stdin(input)
            .output()
            .expect("kymo");
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let user =
            |line: &str| serde_json::from_str::<Value>(line).expect("JSON")["cpu.user"].as_f64();
        text.lines().map(user).collect::<Vec<_>>()
    };
    for packed in [
        "packed-20260701-100000.raw.xz",
        "packed-20260701-100000.raw.zst",
    ] {
        let path = fixtures.join(packed);
        let file = || Stdio::from(fs::File::open(&path).expect(packed));
        let path = path.to_str().expect("a name");
        for arguments in [["-p", path], ["play", path]] {
            assert_eq!(
                users(&arguments, Stdio::null()),
                [Some(10.0); 2],
                "{packed}"
            );
        }
        for arguments in [["-p", "-"], ["play", "-"]] {
            assert_eq!(users(&arguments, file()), [Some(10.0); 2], "{packed}");
        }
    }
}

/// The header of a recording has the machine's boot, which was before the first sample.
#[test]
fn a_machine_was_booted_before_its_first_sample() {
    let scratch = Scratch::new("odd-booted");
    let folder = scratch.path("recording");
    let folder = folder.to_str().expect("a name");
    kymo_tests::stdout_of(&["record", "-sc", "-i.05", "-c2", "-f", folder]);
    let stat = fs::read_to_string("/proc/stat").expect("a file");
    let booted = stat.lines().find_map(|line| line.strip_prefix("btime "));
    let booted: f64 = booted.expect("btime").parse().expect("a number");
    for arguments in [&["-p", folder, "--showheader"][..], &["--showheader"]] {
        let header = kymo_tests::stdout_of(arguments);
        let line = header
            .lines()
            .find_map(|line| line.strip_prefix("# Booted:"));
        let said = line.and_then(|line| line.split_whitespace().next());
        let said: f64 = said.expect("a time").parse().expect("a number");
        // The clock may have been set since the kernel started.
        assert!((said - booted).abs() < 60.0, "{said} for {booted}");
    }
}

/// An unknown time zone is named once, and its times are in UTC.
#[test]
fn a_zone_that_is_not_found_is_named() {
    let scratch = Scratch::new("odd-zone");
    let file = HEADER.replace("TZ: +0000", "TZ: Nowhere/Town");
    let sample = |n: u64| {
        format!(
            ">>> {}.000 <<<\n{}",
            1_782_900_000 + n,
            cpu(10 * n, 5, 90 * n, 0, 0)
        )
    };
    let path = scratch.path("zone-20260701-100000.raw");
    fs::write(&path, [file, sample(0), sample(1), sample(2)].concat()).expect("a file");
    let output = Command::new(kymo())
        .arg("play")
        .arg(&path)
        .args(["-sc", "-oT"])
        .output()
        .expect("kymo");
    let shown = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    let remark = "cannot find the time zone Nowhere/Town: times are in UTC";
    assert_eq!(shown.matches(remark).count(), 1, "{shown}");
    assert!(shown.contains("10:00:01"), "{shown}");
}

/// Times on a day of change follow the viewer's zone if its offset
/// equals the file's. `--from` accepts every form that date(1) does.
#[test]
fn times_are_those_of_the_clock_on_the_wall() {
    let scratch = Scratch::new("odd-times");
    let mut file = HEADER.replace(
        "20260701-100000  Secs: 1782900000 TZ: +0000",
        "20260329-000000  Secs: 1774738800 TZ: +0100",
    );
    for n in 0..9u64 {
        file += &format!(
            ">>> {}.000 <<<\n{}",
            1_774_738_800 + 1800 * n,
            cpu(10 * n, 5, 3000 * n, 0, 0)
        );
    }
    let path = scratch.path("spring-20260329-000000.raw");
    fs::write(&path, &file).expect("a file");
    let berlin = "00:30:00 01:00:00 01:30:00 03:00:00 03:30:00 04:00:00 04:30:00";
    let as_it_was = "00:30:00 01:00:00 01:30:00 02:00:00 02:30:00 03:00:00 03:30:00";
    for (zone, expect) in [
        ("Europe/Berlin", berlin),
        (":Europe/Berlin", berlin),
        ("/usr/share/zoneinfo/Europe/Berlin", berlin),
        (":/usr/share/zoneinfo/Europe/Berlin", berlin),
        ("CET-1CEST,M3.5.0,M10.5.0/3", berlin),
        ("Africa/Lagos", as_it_was),
        ("Asia/Tokyo", as_it_was),
        ("", as_it_was),
    ] {
        let output = Command::new(kymo())
            .env("TZ", zone)
            .arg("play")
            .arg(&path)
            .args(["-sc", "-oT"])
            .output()
            .expect("kymo");
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        let times: Vec<&str> = shown
            .lines()
            .filter_map(|line| line.split_whitespace().next())
            .filter(|word| word.starts_with('0'))
            .take(7)
            .collect();
        assert_eq!(times.join(" "), expect, "{zone}: {shown}");
    }
    // Rows from that time on, given as an ISO date.
    let from = [
        "play",
        path.to_str().expect("a name"),
        "-sc",
        "--json",
        "--from",
        "2026-03-29T04:00",
    ];
    let output = Command::new(kymo())
        .env("TZ", "Europe/Berlin")
        .args(from)
        .output()
        .expect("kymo");
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    let intervals = shown.lines().filter(|line| !line.contains("\"event\""));
    assert_eq!(intervals.count(), 3, "{shown}");
}
