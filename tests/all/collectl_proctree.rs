//! `--export proctree`: a file in collectl's format with a small tree of processes,
//! whose sums are known, and this machine's own processes. The expected values were
//! compared with the output of collectl's proctree, which Debian does not have.

use std::fmt::Write as _;
use std::fs;
use std::process::{Command, Stdio};

use kymo_tests::{Scratch, run};

/// A process: pid, parent, name; ticks of user and system time, kB read, and memory, at both ends of the interval.
struct Process {
    pid: u32,
    parent: u32,
    name: &'static str,
    ticks: [u32; 2],
    read_kb: [u32; 2],
    memory_kb: u32,
}

const fn process(
    pid: u32,
    parent: u32,
    name: &'static str,
    ticks: [u32; 2],
    read_kb: [u32; 2],
    memory_kb: u32,
) -> Process {
    Process {
        pid,
        parent,
        name,
        ticks,
        read_kb,
        memory_kb,
    }
}

const PROCESSES: &[Process] = &[
    process(1, 0, "init", [100, 100], [0, 0], 100),
    process(10, 1, "sh", [7, 7], [10, 10], 20),
    process(20, 10, "make", [10, 20], [0, 100], 30),
    process(21, 20, "cc", [0, 30], [0, 28], 40),
    process(30, 1, "idle", [1, 1], [0, 0], 50),
    // The parent is not in the file.
    process(90, 80, "lost", [5, 15], [0, 0], 60),
];

const HEAD: &str = "\
################################################################################
# Collectl:   V4.3.1-1  HiRes: 1  Options: -sZ -i1:1 -c2
# Host:       vm  DaemonOpts: 
# Booted:     1795294179.4 [20261121-20:49:39]
# Distro:     debian 12.11  Platform: Unknown
# Date:       20261121-215607  Secs: 1795298167 TZ: +0000
# SubSys:     Z Options:  Interval: 1:1 NumCPUs: 2  NumBud: 0 Flags: ix
# Filters:    NfsFilt:  EnvFilt:  TcpFilt: ituc
# HZ:         100  Arch: x86_64-linux-gnu-thread-multi PageSize: 4096
# Cpu:        GenuineIntel Speed(MHz): 2599.998 Cores: 2  Siblings: 2 Nodes: 1
# Kernel:     6.18.44-fc-v669  Memory: 24684084 kB  Swap: 0 kB
# NumDisks:   0 DiskNames: 
# NumNets:    0 NetNames: 
################################################################################
";

/// The text of a raw file with two samples, a second apart.
fn raw(processes: &[Process]) -> String {
    let mut text = HEAD.to_string();
    for at in 0..2 {
        let _ = writeln!(text, ">>> {}.000 <<<", 1_795_298_168 + at);
        for one in processes {
            let (pid, parent, name) = (one.pid, one.parent, one.name);
            let (ticks, kb, memory) = (one.ticks[at], one.read_kb[at], one.memory_kb);
            let _ = writeln!(
                text,
                "proc:{pid} stat {pid} ({name}) S {parent} 1 1 0 -1 4194560 0 0 0 0 {ticks} 0 0 0 20 0 1 0 100 {} {} 0 0 0 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0",
                u64::from(memory) * 1024,
                memory / 4,
            );
            let _ = writeln!(text, "proc:{pid} Tgid:\t{pid}\nproc:{pid} Uid:\t0\t0\t0\t0");
            for field in ["VmSize", "VmRSS"] {
                let _ = writeln!(text, "proc:{pid} {field}:\t{memory} kB");
            }
            for field in ["VmLck", "VmData", "VmStk", "VmExe", "VmLib"] {
                let _ = writeln!(text, "proc:{pid} {field}:\t0 kB");
            }
            let _ = writeln!(text, "proc:{pid} cmd /bin/{name} -x ");
            for (field, value) in [
                ("rchar", 0),
                ("wchar", 0),
                ("syscr", 0),
                ("syscw", 0),
                ("read_bytes", u64::from(kb) * 1024),
                ("write_bytes", 0),
                ("cancelled_write_bytes", 0),
            ] {
                let _ = writeln!(text, "proc:{pid} io {field}: {value}");
            }
        }
    }
    text
}

/// The lines of a tree, without blank ones.
fn shown(words: &[&str]) -> Vec<String> {
    let output = run(words);
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{words:?}: {output:?}"
    );
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines()
        .filter(|line| !line.is_empty())
        .map(str::to_string)
        .collect()
}

#[test]
fn a_tree_of_known_sums() {
    let scratch = Scratch::new("proctree");
    let file = scratch.text("vm-20261121-215607.raw");
    fs::write(&file, raw(PROCESSES)).expect("a file");
    let tree =
        |export: &str, more: &[&str]| shown(&[&["-p", &file, "--export", export], more].concat());
    assert_eq!(
        tree("proctree", &[]),
        [
            "Process Tree 21:56:09 [skip when 'time'<=0 is 'off' aggr: 'on' x1024: 'off' depth 5]",
            "#  PID       PPID User     PR S   VSZ   RSS CP  SysT  UsrT Pct  AccuTime  RKB  WKB MajF MinF Command",
            "00001           0 root     20 S  240K  240K  1  0.00  0.40  40  00:01.58  128    0    0    0 /bin/init",
            " 00010          1 root     20 S   90K   90K  1  0.00  0.40  40  00:00.57  128    0    0    0  /bin/sh",
            "  00020        10 root     20 S   70K   70K  1  0.00  0.40  40  00:00.50  128    0    0    0   /bin/make",
            "   00021       20 root     20 S   40K   40K  1  0.00  0.30  30  00:00.30   28    0    0    0    /bin/cc",
            " 00030          1 root     20 S   50K   50K  1  0.00  0.00   0  00:00.01    0    0    0    0  /bin/idle",
            "00090          80 root     20 S   60K   60K  1  0.00  0.10  10  00:00.15    0    0    0    0 /bin/lost",
        ]
    );
    assert_eq!(
        tree("proctree,rkb,zkd3", &["--procopts", "irw"]),
        [
            "Process Tree 21:56:09 [skip when 'rkb'<=0 is 'on' aggr: 'on' x1024: 'on' depth 3]",
            "#  PID     PPID User     S  SysT  UsrT  AccuTime   RKB   WKB  RKBC  WKBC  RSys  WSys  Cncl Command",
            "00001         0 root     S  0.00  0.40  00:01.58  128K     0     0     0     0     0     0 init -x",
            " 00010        1 root     S  0.00  0.40  00:00.57  128K     0     0     0     0     0     0  sh -x",
            "  00020      10 root     S  0.00  0.40  00:00.50  128K     0     0     0     0     0     0   make -x",
        ]
    );
    let ids = |export: &str, more: &[&str]| -> Vec<String> {
        let lines = tree(export, more);
        let ids = lines[2..].iter().map(|line| line.trim_start()[..5].into());
        ids.collect()
    };
    for (export, more, expect) in [
        ("proctree,A", &[] as &[&str], "1 10 20 21 30 90"),
        ("proctree,Az", &[], "20 21 90"),
        ("proctree,z", &["--procopts", "m"], "1 10 20 21 90"),
        ("proctree,rkb,Z28", &[], "1 10 20"),
        ("proctree,rkb,AZ28", &[], "20"),
        ("proctree,d1", &[], "1 90"),
        ("proctree,pid,z", &["--procopts", "x"], "1 10 20 21 30 90"),
        ("proctree", &["--top", "rkb"], "1 10 20 21"),
        ("proctree", &["--top", "2"], "1 10"),
        ("proctree", &["--procopts", "z"], "1 10 20 21 90"),
        ("proctree", &["--procfilt", "P20,Cma"], "20 21"),
    ] {
        let expect: Vec<String> = expect
            .split(' ')
            .map(|id| format!("{:05}", id.parse::<u32>().expect("an id")))
            .collect();
        assert_eq!(ids(export, more), expect, "{export} {more:?}");
    }
}

/// Processes that are each other's parents are each shown once.
#[test]
fn a_circle_ends() {
    let scratch = Scratch::new("proctree-circle");
    let file = scratch.text("vm-20261121-215607.raw");
    let circle = [
        process(5, 6, "a", [0, 1], [0, 0], 4),
        process(6, 5, "b", [0, 2], [0, 0], 4),
        process(7, 7, "c", [0, 3], [0, 0], 4),
    ];
    fs::write(&file, raw(&circle)).expect("a file");
    let lines = shown(&["-p", &file, "--export", "proctree"]);
    let ids: Vec<&str> = lines[2..].iter().map(|line| line.trim_end()).collect();
    assert_eq!(ids.len(), 3, "{ids:#?}");
    assert!(ids[0].starts_with("00007") && ids[1].starts_with("00005"));
    assert!(ids[2].starts_with(" 00006"), "{ids:#?}");
}

#[test]
fn this_machine() {
    let mut parent = Command::new("sh")
        .args(["-c", "sleep 600 & echo $!; wait"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("sh");
    let mut said = String::new();
    let stdout = parent.stdout.take().expect("its output");
    std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut said).expect("a line");
    let (shell, sleep) = (parent.id(), said.trim().to_string());
    let lines = shown(&["-i.2:.2", "-c1", "--export", "proctree,d100"]);
    let _ = Command::new("kill").arg(&sleep).status();
    let _ = parent.wait();
    let of = |id: &str| {
        let found = lines.iter().find(|line| line.trim_start().starts_with(id));
        found.unwrap_or_else(|| panic!("no {id} in {lines:#?}"))
    };
    let level = |line: &str| line.len() - line.trim_start().len();
    let (shell, sleep) = (format!("{shell:05}"), format!("{:0>5}", sleep));
    let (above, below) = (of(&shell), of(&sleep));
    assert_eq!(level(below), level(above) + 1, "{above}\n{below}");
    assert!(level(above) > 0 && below.ends_with(" sleep"), "{below}");
}

#[test]
fn what_is_refused() {
    for (words, cause) in [
        (&["--export", "proctree,best"] as &[&str], "no such field"),
        (&["--export", "proctree,time,Z5"], "kilobytes"),
        (&["--export", "proctree,d0"], "options are"),
        (&["--export", "proctree", "-sc"], "no -s but -sZ"),
        (
            &["--export", "proctree,rss", "--top", "vsz"],
            "another field",
        ),
        (
            &["--export", "proctree", "--json"],
            "not together with --json",
        ),
    ] {
        let output = run(&[words, &["-c1"]].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.contains(cause), "{words:?}: {said}");
    }
}
