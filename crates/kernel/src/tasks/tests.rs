//! Tables of made-up processes, and of real ones that sleep.

use super::*;

use kymo_sys::kernel_file::Root;

use crate::backoff::Allowance;
use crate::tests::MadeRoot;

#[test]
fn marks_are_found_by_their_numbers_in_proc_5() {
    let fields: Vec<String> = (4..=52)
        .map(|n| {
            if n == 8 {
                "-1".into()
            } else {
                (n * 100).to_string()
            }
        })
        .collect();
    let text = format!("7 (a b) S {}\n", fields.join(" "));
    let mut track = TrackWriter::new(Grammar::Stat);
    track.begin(true);
    track.add(0, b"7");
    track.read(0, text.as_bytes());
    let Marks { size, exec, state } = PlacesCache::default().marks(&track, 0).expect("a template");
    assert_eq!((state, size), (b'S', [2000, 2300, 2400]));
    assert_eq!(
        (exec[0], track.word(exec[1]), &exec[2..]),
        (2200, &b"a b"[..], &[2800, 4800, 4900][..])
    );
}

/// A made-up proc with one process, whose files have the test's content.
struct Proc {
    made: MadeRoot,
    source: ProcTasks,
    tasks: Tasks<ProcTasks>,
    scans: u64,
}

impl Proc {
    fn new() -> Proc {
        let plan = TaskPlan {
            io: true,
            ..TaskPlan::default()
        };
        let made = MadeRoot::new();
        let proc = Proc {
            source: ProcTasks::new(&made.root),
            made,
            tasks: Tasks::new(Scope::Process, plan),
            scans: 0,
        };
        proc.say("7/io", "rchar: 1\n");
        proc.say("7/status", "Name:\ta\n");
        proc
    }

    fn say(&self, file: &str, text: &str) {
        self.made.write(&format!("proc/{file}"), text);
    }

    /// Scans a second after the last scan; returns the recorded ticks of stat.
    fn scan(&mut self, state: &str, threads: u32, ticks: u32, account: &str) -> Option<u64> {
        self.scans += 1;
        self.say("thread-self/schedstat", &format!("{} 1 1\n", self.scans));
        self.say("7/schedstat", account);
        let zeros = "0 ".repeat(32);
        let stat =
            format!("7 (a) {state} 1 1 1 0 -1 0 0 0 0 0 {ticks} 0 0 0 20 0 {threads} {zeros}0\n");
        self.say("7/stat", &stat);
        let mut budget = Budget { left: 10 };
        let mut scan = Scan {
            root: &self.made.root,
            clock: &kymo_sys::clock::RealClock,
            age_ns: self.scans * 1_000_000_000,
            allowance: Allowance {
                slow_ns: u64::MAX,
                interval_ns: 0,
                longest_ns: 0,
                backoff: false,
            },
            budget: &mut budget,
        };
        self.tasks.begin(self.scans == 1);
        self.tasks.update(&vec![(7, 0)], scan.budget);
        self.tasks
            .read(&mut self.source, &mut scan, &mut SlowReads::default());
        let _sections = self.tasks.sections();
        // Field 14 of proc(5); -1 before it is no value.
        self.tasks.stat.value(0, 12)
    }
}

/// Children that sleep until the end of the test, each with a row in a table of the real `/proc`.
struct Sleepers {
    children: Vec<std::process::Child>,
    root: Root,
    source: ProcTasks,
    tasks: Tasks<ProcTasks>,
    scans: u64,
}

impl Drop for Sleepers {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Sleepers {
    fn new(count: usize) -> Sleepers {
        let sleeper = || {
            let mut command = std::process::Command::new("sleep");
            command.arg("3600").spawn().expect("a sleeper")
        };
        let plan = TaskPlan {
            io: true,
            ..TaskPlan::default()
        };
        let root = Root::open(std::path::Path::new("/")).expect("a root");
        Sleepers {
            children: std::iter::repeat_with(sleeper).take(count).collect(),
            source: ProcTasks::new(&root),
            root,
            tasks: Tasks::new(Scope::Process, plan),
            scans: 0,
        }
    }

    /// Number of open files after a scan, and the total length of the three sections.
    fn scan(&mut self) -> (usize, usize) {
        self.scans += 1;
        let mut budget = Budget { left: 1000 };
        let mut scan = Scan {
            root: &self.root,
            clock: &kymo_sys::clock::RealClock,
            // Time passes so slowly that no row grows old.
            age_ns: self.scans,
            allowance: Allowance {
                slow_ns: u64::MAX,
                interval_ns: 0,
                longest_ns: 0,
                backoff: false,
            },
            budget: &mut budget,
        };
        let listing = self.children.iter().map(|child| (child.id(), 0)).collect();
        self.tasks.begin(self.scans == 1);
        self.tasks.update(&listing, scan.budget);
        self.tasks
            .read(&mut self.source, &mut scan, &mut SlowReads::default());
        let sections = self.tasks.sections();
        let bytes = sections.iter().map(|(_, section)| section.len()).sum();
        (self.tasks.kept(), bytes)
    }

    /// Returns true if all texts are kept as packed values.
    fn are_packed(&self) -> bool {
        let tracks = [&self.tasks.stat, &self.tasks.io, &self.tasks.status];
        let mut slots = 0..self.children.len();
        slots.all(|slot| tracks.iter().all(|track| track.is_packed(slot)))
    }

    /// Returns true if the last scan read no row; false for the first three scans.
    fn all_rest(&self) -> bool {
        let tasks = self.tasks.tasks.iter().flatten();
        let mut ages = tasks.map(|task| task.rest.age_ns(self.scans));
        self.scans > 3 && ages.all(|age| age > 0)
    }
}

/// Regression test: 5,000 sleeping processes held 4,096 open files, 5 kB of the kernel's memory each; the files of the
/// others were opened, read and closed at each scan. Their texts needed 5 kB for each process.
#[test]
fn a_sleeping_process_has_no_open_file_and_no_text_and_is_not_read() {
    let mut sleepers = Sleepers::new(8);
    if !sleepers.root.has_own_pids() {
        return kymo_sys::skipped::skipped("/proc has the pids of another namespace");
    }
    sleepers.tasks.texts_max = 7;
    let settled = (0..1000).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        let scans = [sleepers.scan(), sleepers.scan()];
        // Stat and io have one run each, since all processes are unchanged.
        scans.iter().all(|&(open, bytes)| open == 0 && bytes <= 8)
            && sleepers.all_rest()
            && sleepers.are_packed()
    });
    assert!(settled, "{:?}", sleepers.scan());
}

#[test]
fn a_process_that_has_not_run_is_not_read_and_one_that_has_is() {
    let mut proc = Proc::new();
    for _ in 0..4 {
        assert_eq!(proc.scan("S", 1, 5, "9 1 1\n"), Some(5));
    }
    // A real kernel would not give these ticks; they show that stat was not read.
    assert_eq!(proc.scan("S", 1, 6, "9 1 1\n"), Some(5));
    assert_eq!(proc.scan("S", 1, 6, "9 1 2\n"), Some(6));
    for scan in 0..4 {
        assert_eq!(proc.scan("S", 1, 6, "9 1 2\n"), Some(6), "{scan}");
    }
    // A row is read again within a minute in any case.
    let stale = (0..70).take_while(|_| proc.scan("S", 1, 7, "9 1 2\n") == Some(6));
    let stale = stale.count();
    assert!((25..60).contains(&stale), "{stale} s");
}

#[test]
fn only_what_the_scheduler_tells_of_is_skipped() {
    for (state, threads, account) in [
        ("R", 1, "9 1 1\n"),
        ("S", 2, "9 1 1\n"),
        ("S", 1, "0 0 0\n"),
        ("S", 1, ""),
    ] {
        let mut proc = Proc::new();
        for _ in 0..4 {
            proc.scan(state, threads, 5, account);
        }
        let ticks = proc.scan(state, threads, 6, account);
        assert_eq!(ticks, Some(6), "{state} {threads} {account:?}");
    }
}
