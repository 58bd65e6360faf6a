//! `kymo why` beside real load: the culprit is in the first three lines about its resource. Load of others may be worse at the
//! same time, so these tests look at the finding of one cause. One incident of all test programs is planted at a time, as
//! each needs a time without the others before it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{available_parallelism, scope, sleep};
use std::time::Duration;

use kymo_tests::machine::{LoopDevice, copy_program, must_skip, skipped};
use kymo_tests::{Running, Scratch, put};
use serde_json::Value;

use crate::why::{Limited, lines, now, record, recorder, why};

/// Time before an incident, and of it.
const BEFORE: Duration = Duration::from_secs(12);
const DURING: Duration = Duration::from_secs(9);
/// Seconds of the span that is asked about.
const SPAN_S: u64 = 6;

/// Waits until no other test program has this file.
fn alone() -> File {
    let lock = File::create(std::env::temp_dir().join("kymo-tests-why.lock"));
    let lock = lock.expect("a file");
    lock.lock().expect("a lock");
    lock
}

/// Starts a script of `sh` in its own process.
fn start(script: &str) -> Running {
    let mut command = Command::new("sh");
    command.args(["-c", script]).stdin(Stdio::null());
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    Running(child.expect("sh"))
}

/// Records a time without the incident and with it. `None`: a process of the incident ended early, so it cannot be planted.
fn planted(letters: &str, begin: impl FnOnce(&Scratch) -> Vec<Running>) -> Option<Vec<Value>> {
    let scratch = Scratch::new("why-planted");
    let recorder = record(&scratch, letters);
    sleep(BEFORE);
    // The incident begins within the span.
    let from = now() + 1;
    sleep(Duration::from_secs(1));
    let mut culprits = begin(&scratch);
    sleep(DURING);
    let ended = culprits
        .iter_mut()
        .any(|culprit| culprit.0.try_wait().expect("a state").is_some());
    drop((culprits, recorder));
    let (findings, _) = why(&format!("{from}-{}", from + SPAN_S), &scratch);
    (!ended).then_some(findings)
}

/// Checks that the first three lines of a cause's finding have a word.
fn is_named(findings: &[Value], cause: &str, word: &str) {
    let finding = findings.iter().find(|finding| finding["cause"] == cause);
    let lines = finding.map(lines).unwrap_or_default();
    let is_there = lines.iter().take(3).any(|line| line.contains(word));
    assert!(is_there, "no {word} in {lines:#?} of {findings:#?}");
}

/// True if others ran out of memory at the same time: then all of memory is told below that.
fn others_were_killed(findings: &[Value]) -> bool {
    findings
        .iter()
        .any(|finding| finding["cause"] == "oom-kill")
}

/// Number of a loop device that no other test has.
fn device_number(n: i32) -> i32 {
    let process = i32::try_from(std::process::id() % 10_000).unwrap_or(0);
    10_000 + 10 * process + n
}

/// A copy of a program under its own name, which no other test has.
fn named(scratch: &Scratch, program: &str, name: &str) -> String {
    let copy = scratch.path(name);
    let found = std::env::var_os("PATH").expect("a path");
    let mut folders = std::env::split_paths(&found).map(|folder| folder.join(program));
    let program = folders.find(|path| path.is_file()).expect("a program");
    copy_program(&program.canonicalize().expect("a path"), &copy);
    copy.display().to_string()
}

/// A control group without limits, which counts what its processes do; removed at drop.
struct Group(Limited);

impl Group {
    fn new(controller: &str) -> Option<Group> {
        let version_1 = Path::new("/sys/fs/cgroup").join(controller);
        let mount = match version_1.join("cgroup.procs").exists() {
            true => version_1,
            false => PathBuf::from("/sys/fs/cgroup"),
        };
        let group = mount.join(format!("kymo-why-{}", std::process::id()));
        fs::create_dir(&group).ok()?;
        Some(Group(Limited(group)))
    }

    /// Words of a script that enter the group.
    fn enter(&self) -> String {
        format!("echo $$ > {}/cgroup.procs && ", self.0.0.display())
    }

    fn name(&self) -> String {
        let name = self.0.0.file_name().expect("a name");
        name.to_string_lossy().into_owned()
    }
}

/// Programs of real-time priority, so that the kernel gives them CPU beside whatever else runs; half of the CPUs stays free.
fn hogs(enter: &str, program: &str, script: &str) -> Vec<Running> {
    let count = available_parallelism().map_or(1, usize::from) / 2;
    let hog = |_| start(&format!("{enter}exec chrt -f 10 {program} -c '{script}'"));
    (0..count.max(1)).map(hog).collect()
}

#[test]
fn a_cpu_hog_in_a_chatty_group() {
    if must_skip(&["chrt", "sh"]) {
        return;
    }
    let _alone = alone();
    let Some(group) = Group::new("cpuacct") else {
        return skipped("no control group can be made");
    };
    let found = planted("cgZ", |scratch| {
        let program = named(scratch, "sh", "kymo-cpu-hog");
        hogs(&group.enter(), &program, "while :; do :; done")
    });
    let Some(found) = found else {
        return skipped("no real-time priority");
    };
    // CPU of the machine may have been used up before; that of the group was not.
    is_named(&found, "cpu", "kymo-cpu-hog");
    let cpu = found.iter().find(|finding| finding["cause"] == "cpu");
    let lines = cpu.map(lines).unwrap_or_default();
    let name = format!("group /{}", group.name());
    let is_there = lines.iter().any(|line| line.starts_with(&name));
    assert!(is_there, "no {name} in {lines:#?}");
}

#[test]
fn a_fork_storm() {
    if must_skip(&["chrt", "sh"]) {
        return;
    }
    let _alone = alone();
    let found = planted("cZ", |scratch| {
        let program = named(scratch, "sh", "kymo-storm");
        // Each child counts a little, so that most of the CPU is that of children.
        let child = "i=0; while [ $i -lt 40 ]; do i=$((i + 1)); done";
        hogs("", &program, &format!("while :; do ({child}); done"))
    });
    match found {
        Some(found) => is_named(&found, "cpu", "kymo-storm"),
        None => skipped("no real-time priority"),
    }
}

/// Reads the holes of a file as fast as the kernel gives them, by a loop device: a disk that nobody else uses.
#[test]
fn a_disk_hog() {
    if must_skip(&["dd", "losetup", "sh"]) {
        return;
    }
    let _alone = alone();
    let scratch = Scratch::new("why-disk");
    let file = scratch.path("holes");
    let made = File::create(&file).and_then(|file| file.set_len(1 << 40));
    made.expect("a file of holes");
    let Some(device) = LoopDevice::attach(device_number(0), &file) else {
        return skipped("no loop device can be made");
    };
    let found = planted("cdZ", |scratch| {
        let program = named(scratch, "dd", "kymo-reader");
        let device = device.path();
        vec![start(&format!(
            "exec {program} if={device} of=/dev/null bs=1M iflag=direct"
        ))]
    });
    match found {
        Some(found) => is_named(&found, "disk", "kymo-reader"),
        None => skipped("the loop device cannot be read directly"),
    }
}

/// A swap on a loop device; removed at drop.
struct Swap(LoopDevice);

impl Swap {
    fn begin(scratch: &Scratch, bytes: u64) -> Option<Swap> {
        let file = scratch.path("swap");
        let made = File::create(&file).and_then(|file| file.set_len(bytes));
        made.ok()?;
        let device = LoopDevice::attach(device_number(1), &file)?;
        let path = device.path();
        let run = |words: &[&str]| {
            let status = Command::new(words[0]).args(&words[1..]).output();
            status.is_ok_and(|output| output.status.success())
        };
        (run(&["mkswap", &path]) && run(&["swapon", "-p", "100", &path])).then_some(Swap(device))
    }
}

impl Drop for Swap {
    fn drop(&mut self) {
        let status = Command::new("swapoff").arg(self.0.path()).status();
        if !status.is_ok_and(|status| status.success()) {
            eprintln!("cannot end the swap on {}", self.0.path());
        }
    }
}

/// Memory of the machine in bytes.
fn memory() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").expect("a file");
    let kilobytes = text
        .split_whitespace()
        .nth(1)
        .and_then(|kb| kb.parse().ok());
    kilobytes.map_or(0, |kb: u64| kb * 1024)
}

#[test]
fn a_swap_storm_in_a_limited_group() {
    if must_skip(&["perl", "losetup", "mkswap", "swapon", "sh"]) {
        return;
    }
    let _alone = alone();
    let limit = (memory() / 80).max(64 << 20);
    let scratch = Scratch::new("why-swap");
    let Some(limited) = Limited::new("kymo-why-swap", limit) else {
        return skipped("no control group with a limit of memory can be made");
    };
    let Some(_swap) = Swap::begin(&scratch, 3 * limit) else {
        return skipped("no swap can be used");
    };
    let group = limited.0.join("cgroup.procs").display().to_string();
    let found = planted("cdmgpZ", |scratch| {
        let program = named(scratch, "perl", "kymo-swapper");
        // Pages of its memory one after the other, twice as many as it may have.
        let script = format!(
            "vec($x, {0} - 1, 8) = 1; while (1) {{ for ($i = 0; $i < {0}; $i += 4096) {{ vec($x, $i, 8) = 1 }} }}",
            2 * limit
        );
        vec![start(&format!(
            "echo $$ > {group} && exec {program} -e '{script}'"
        ))]
    });
    match found {
        None => skipped("the program was killed"),
        Some(found) if others_were_killed(&found) => skipped("others ran out of memory"),
        Some(found) => is_named(&found, "memory", "kymo-swapper"),
    }
}

/// Statistics of an NFS mount: calls that were answered, how often one was sent, and how often it was given up waiting.
fn mountstats(answered: u64, sent: u64, timeouts: u64) -> String {
    format!(
        "device 10.0.0.1:/export mounted on /a with fstype nfs4 statvers=1.1\n\
         \topts:\trw,vers=4.2\n\tage:\t77\n\tbytes:\t1 2 3 4 5 6 7 8 \n\
         \tRPC iostats version: 1.1  p/v: 100003/4 (nfs)\n\txprt:\ttcp 875 1 2 0 6 7 7 0 7 0 2 0 0\n\
         \tper-op statistics\n\t        READ: {answered} {sent} {timeouts} 1 1 {answered} {0} {0} 0\n",
        answered * 6
    )
}

/// A server that answers no more: calls are sent again and again, and the process that reads waits in state D.
#[test]
fn a_stuck_nfs_mount() {
    let scratch = Scratch::new("why-nfs");
    let root = scratch.path("root");
    let (is_stuck, has_ended) = (AtomicBool::new(false), AtomicBool::new(false));
    let process = |state: &str, ticks: u64| {
        let zeros = "0 ".repeat(31);
        format!("4711 (backup) {state} 1 1 1 0 -1 0 0 0 0 0 {ticks} 0 0 0 20 0 1 0 100 {zeros}0\n")
    };
    let write = |tick: u64, stuck: u64| {
        let goes_on = 100 + tick - stuck;
        put(&root, "proc/stat", &format!("cpu  {tick} 2 3 {tick}4\n"));
        put(
            &root,
            "proc/1/mountstats",
            &mountstats(goes_on, 100 + tick, stuck),
        );
        let state = if stuck > 0 { "D" } else { "S" };
        put(&root, "proc/4711/stat", &process(state, goes_on));
    };
    write(0, 0);
    put(&root, "proc/loadavg", "0.00 0.00 0.00 1/10 8\n");
    let mut command = Command::new(kymo_tests::kymo());
    command.args(["record", "-i.2:.2", "-s", "cVZ", "--root"]);
    command.arg(&root).arg("-f").arg(scratch.path("rec"));
    let recorder = recorder(&mut command, &scratch);
    let mut from = 0;
    scope(|scope| {
        scope.spawn(|| {
            let (mut tick, mut stuck) = (0, 0);
            while !has_ended.load(Ordering::Relaxed) {
                tick += 1;
                stuck += u64::from(is_stuck.load(Ordering::Relaxed));
                write(tick, stuck);
                sleep(Duration::from_millis(100));
            }
        });
        sleep(Duration::from_secs(24));
        is_stuck.store(true, Ordering::Relaxed);
        from = now() + 1;
        sleep(Duration::from_secs(13));
        has_ended.store(true, Ordering::Relaxed);
    });
    drop(recorder);
    let (findings, lines) = why(&format!("{from}-{}", from + 9), &scratch);
    let heads: Vec<&str> = findings
        .iter()
        .filter_map(|each| each["cause"].as_str())
        .collect();
    assert!(heads.contains(&"filesystem"), "{lines:#?}");
    let first: Vec<&String> = lines.iter().take(3).collect();
    let has = |text: &str| first.iter().any(|line| line.starts_with(text));
    assert!(has("backup (4711) waits in the kernel"), "{lines:#?}");
    assert!(has("NFS /a: "), "{lines:#?}");
}
