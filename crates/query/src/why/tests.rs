//! Generated machines, as files of collectl: quiet hours with a daily rhythm and jobs of cron, and planted incidents.

use std::fmt::Write as _;
use std::path::PathBuf;

use super::*;

const DAY_S: i64 = 86_400;
/// 2026-11-16 00:00:00 UTC, a Monday.
const MONDAY_S: i64 = 1_794_787_200;
const EACH_S: i64 = 10;
const CPUS: f64 = 4.0;
const MEMORY_KB: f64 = 16_000_000.0;
const HZ: f64 = 100.0;

/// Incident that is planted in the last minute.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Plant {
    Nothing,
    CpuHog,
    DiskHog,
    Leak,
    Swap,
    Steal,
    Flood,
    Silence,
    Retransmits,
    Drops,
    Forks,
    OomKill,
    SlowDisk,
    SoftIrqs,
    FullTable,
    ReadHog,
    KernelHog,
    Errors,
    Tasks,
    Switches,
    Interrupts,
    Faults,
    Blocked,
}

/// Numbers at random, the same in each run.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// About normal, with deviation 1.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.next()).sum::<f64>() - 6.0
    }

    /// Most are small and some are large, 1 in the middle.
    fn burst(&mut self, deviation: f64) -> f64 {
        (self.normal() * deviation).exp()
    }
}

/// A planted change of a rate or an amount.
#[derive(Clone, Copy)]
enum Change {
    To(f64),
    By(f64),
    Times(f64),
}

/// Changes that incidents make; CPU in percent, of the hog of one, all else a second.
const CHANGES: &[(Plant, &[(&str, Change)])] = &[
    (
        Plant::CpuHog,
        &[("hog_ticks", Change::To(200.0)), ("user", Change::By(50.0))],
    ),
    (
        Plant::DiskHog,
        &[
            ("hog_written", Change::To(150_000.0)),
            ("written", Change::By(150_000.0)),
        ],
    ),
    (Plant::Leak, &[("free", Change::By(-0.25 * MEMORY_KB))]),
    (
        Plant::Swap,
        &[
            ("swapped", Change::To(5_000.0)),
            ("read", Change::By(20_000.0)),
        ],
    ),
    (Plant::Steal, &[("steal", Change::To(40.0))]),
    (
        Plant::Flood,
        &[
            ("rx", Change::To(60_000.0)),
            ("hog_calls", Change::To(60_000.0)),
        ],
    ),
    (Plant::Silence, &[("rx", Change::To(0.0))]),
    (Plant::Retransmits, &[("resent", Change::To(300.0))]),
    (Plant::Drops, &[("drops", Change::To(200.0))]),
    (
        Plant::Forks,
        &[("forks", Change::To(900.0)), ("user", Change::By(20.0))],
    ),
    (
        Plant::OomKill,
        &[("kills", Change::To(1.0 / EACH_S as f64))],
    ),
    (Plant::SlowDisk, &[("slow", Change::To(1.0))]),
    (Plant::SoftIrqs, &[("soft", Change::To(40.0))]),
    (Plant::FullTable, &[("sockets", Change::To(9_000.0))]),
    (
        Plant::ReadHog,
        &[
            ("hog_read", Change::To(120_000.0)),
            ("read", Change::By(120_000.0)),
        ],
    ),
    (
        Plant::KernelHog,
        &[
            ("hog_ticks", Change::To(160.0)),
            ("kernel", Change::To(40.0)),
        ],
    ),
    (Plant::Errors, &[("errors", Change::To(50.0))]),
    (Plant::Tasks, &[("tasks", Change::To(2_500.0))]),
    (Plant::Switches, &[("context", Change::Times(30.0))]),
    (Plant::Interrupts, &[("intr", Change::Times(40.0))]),
    (Plant::Faults, &[("faults", Change::To(4_000.0))]),
    (Plant::Blocked, &[("blocked", Change::To(20.0))]),
];

/// Amounts, which are no counters.
const AMOUNTS: [&str; 4] = ["tasks", "blocked", "free", "sockets"];

/// A sample of collectl: numbers by their names, divided or multiplied.
const SAMPLE: &str = "\
>>> {at}.001 <<<
cpu  {user} 0 {sys} {idle} {wait} 0 {soft} {steal} 0 0
cpu0 {user/4} 0 {sys/4} {idle/4} {wait/4} 0 {soft/4} {steal/4} 0 0
cpu1 {user/4} 0 {sys/4} {idle/4} {wait/4} 0 {soft/4} {steal/4} 0 0
cpu2 {user/4} 0 {sys/4} {idle/4} {wait/4} 0 {soft/4} {steal/4} 0 0
cpu3 {user/4} 0 {sys/4} {idle/4} {wait/4} 0 {soft/4} {steal/4} 0 0
intr {intr}
ctxt {context}
btime 1793787200
processes {forks}
procs_running 1
procs_blocked {blocked}
disk  254       0 vda {read/16} 0 {read*2} {read/16} {written/64} 0 {written*2} {written/64} 0 {busy_ms} {busy_ms*2}
load 0.5 0.4 0.3 1/{tasks} {at}
MemTotal:  16000000 kB
MemFree:  {free} kB
MemAvailable:  {available} kB
SwapTotal:  2000000 kB
SwapFree:  2000000 kB
pgpgin {read}
pgpgout {written}
pswpin {swapped}
pswpout {swapped}
pgfault 1
pgmajfault {major}
oom_kill {kills}
tcp-Tcp: RtoAlgorithm RetransSegs
tcp-Tcp: 1 {resent}
sock used {used}
sock TCP: inuse 50 orphan 0 tw 10 alloc {sockets} mem 4
Net   eth0: {rx*1024} {rx*1.2} {errors} {drops} 0 0 0 0 {tx*1024} {tx*1.2} 0 0 0 0 0 0
";

/// Rates a second, amounts and counters, by name.
type Numbers = BTreeMap<&'static str, f64>;

/// Puts numbers into a text where it names them.
fn fill(text: &str, numbers: &Numbers, out: &mut String) {
    for piece in text.split('}') {
        let (plain, field) = piece.split_once('{').unwrap_or((piece, ""));
        out.push_str(plain);
        let (name, factor) = match (field.split_once('*'), field.split_once('/')) {
            (Some((name, by)), _) => (name, by.parse().unwrap()),
            (_, Some((name, by))) => (name, 1.0 / by.parse::<f64>().unwrap()),
            (None, None) => (field, 1.0),
        };
        if !name.is_empty() {
            let _ = write!(out, "{:.0}", numbers[name] * factor);
        }
    }
}

/// Share of an interval that a job takes which runs each `each_s` seconds for `lasts_s`.
fn job(at_s: i64, each_s: i64, offset_s: i64, lasts_s: i64) -> f64 {
    let seconds = (at_s - EACH_S..at_s).filter(|s| (s - offset_s).rem_euclid(each_s) < lasts_s);
    seconds.count() as f64 / EACH_S as f64
}

/// Rates and amounts of a quiet machine with jobs of cron.
fn quiet(at_s: i64, chance: &mut Chance) -> Numbers {
    let hour = at_s.rem_euclid(DAY_S) as f64 / 3600.0;
    let rhythm = 1.0 - (hour / 24.0 * std::f64::consts::TAU).cos();
    let cron = [
        (job(at_s, 60, 1, 2), 25.0, 500.0),
        (job(at_s, 300, 3, 12), 35.0, 12_000.0),
        (job(at_s, 3_600, 17 * 60, 70), 45.0, 30_000.0),
        (job(at_s, DAY_S, 6 * 3600 + 25 * 60, 300), 70.0, 60_000.0),
    ];
    let cpu: f64 = cron.iter().map(|(share, cpu, _)| share * cpu).sum();
    let kb: f64 = cron.iter().map(|(share, _, kb)| share * kb).sum();
    // The flush of dirty pages.
    let flush = job(at_s, 30, 0, 1) * 9_000.0;
    Numbers::from([
        ("user", 5.0 + 12.0 * rhythm + 2.0 * chance.normal() + cpu),
        (
            "written",
            300.0 * chance.burst(0.8) + kb + flush * chance.burst(0.5),
        ),
        ("read", 200.0 * chance.burst(1.0)),
        ("rx", 4_000.0 * (0.3 + rhythm) * chance.burst(0.5)),
        ("steal", 0.1 * chance.next()),
        ("forks", 4.0 + 10.0 * chance.next()),
        ("tasks", 200.0 + 5.0 * chance.normal()),
        (
            "free",
            MEMORY_KB * (0.5 - 0.1 * rhythm) + 40_000.0 * chance.normal(),
        ),
        ("sockets", 120.0 + 20.0 * chance.normal()),
        ("context", 3_000.0 * (1.0 + rhythm) * chance.burst(0.2)),
        ("intr", 2_000.0 * (1.0 + rhythm) * chance.burst(0.2)),
        ("soft", 0.5),
        ("resent", 0.2),
        ("faults", 3.0),
    ])
}

/// Counters of the machine, and its amounts.
#[derive(Default)]
struct Machine {
    numbers: Numbers,
    is_hog_there: bool,
}

impl Machine {
    fn step(&mut self, at_s: i64, chance: &mut Chance, plant: Plant) {
        self.is_hog_there |= plant != Plant::Nothing;
        let mut now = quiet(at_s, chance);
        let planted = CHANGES.iter().filter(|(of, _)| *of == plant);
        for (name, change) in planted.flat_map(|(_, changes)| *changes) {
            let number = now.entry(*name).or_default();
            *number = match change {
                Change::To(to) => *to,
                Change::By(by) => *number + by,
                Change::Times(times) => *number * times,
            };
        }
        let of = |name: &str| now.get(name).copied().unwrap_or(0.0);
        let (read, written) = (of("read"), of("written"));
        let (user, sys) = (of("user").clamp(0.5, 95.0), 0.3 * of("user") + of("kernel"));
        let (soft, steal, wait) = (of("soft"), of("steal"), (written / 20_000.0).min(20.0));
        let idle = (100.0 - user - sys - soft - steal - wait).max(0.0);
        let busy = ((written + read) / 200_000.0).min(1.0).max(of("slow"));
        let (tx, major) = (0.7 * of("rx"), of("swapped") + of("faults"));
        let amounts = AMOUNTS.map(|name| (name, of(name)));
        now.extend([("busy_ms", busy * 1000.0), ("tx", tx), ("major", major)]);
        // Ticks of all CPUs.
        let cpu = [
            ("user", user),
            ("sys", sys),
            ("idle", idle),
            ("wait", wait),
            ("soft", soft),
            ("steal", steal),
        ];
        now.extend(cpu.map(|(name, percent)| (name, percent / 100.0 * CPUS * HZ)));
        for (name, rate) in now {
            *self.numbers.entry(name).or_default() += rate * EACH_S as f64;
        }
        self.numbers.extend(amounts);
    }

    /// A counter or an amount; 0 before there was any.
    fn of(&self, name: &str) -> f64 {
        self.numbers.get(name).copied().unwrap_or(0.0)
    }

    fn put(&self, at_s: i64, plant: Plant, out: &mut String) {
        let mut numbers = self.numbers.clone();
        for name in ["swapped", "kills", "errors", "drops"] {
            numbers.entry(name).or_default();
        }
        numbers.extend([
            ("at", at_s as f64),
            ("available", self.of("free") + 1_000_000.0),
            ("used", self.of("sockets") + 80.0),
        ]);
        fill(SAMPLE, &numbers, out);
        let bytes = |name: &str| 1024.0 * self.of(name);
        let rss = |is_leak: bool| match is_leak && plant == Plant::Leak {
            true => 1_000_000,
            false => 2_000,
        };
        let server = (self.of("user") / 3.0, rss(false), 0.0, 0.0, 0.0);
        put_process(out, (300, "server"), server, 0.0);
        // An old process ends beside the storm: the kernel adds its CPU to its parent.
        let (idle, life) = ((0.0, 100, 0.0, 0.0, 0.0), 1_000_000.0);
        match plant {
            Plant::Forks => put_process(out, (800, "make"), idle, life),
            _ => {
                put_process(out, (800, "make"), idle, 0.0);
                put_process(out, (900, "worker"), (life, 100, 0.0, 0.0, 0.0), 0.0);
            }
        }
        if self.is_hog_there {
            let io = (bytes("hog_written"), bytes("hog_calls"));
            let hog = (
                self.of("hog_ticks"),
                rss(true),
                io.0,
                io.1,
                bytes("hog_read"),
            );
            put_process(out, (4711, "hog"), hog, 0.0);
        }
        if plant == Plant::Forks {
            for n in 0..20 {
                let pid = u32::try_from(10_000 + at_s % 10_000 * 20 + n).unwrap();
                put_process(out, (pid, "child"), (1.0, 100, 0.0, 0.0, 0.0), 0.0);
            }
        }
    }
}

fn put_process(
    out: &mut String,
    (pid, comm): (u32, &str),
    (ticks, rss, written, calls, read): (f64, u32, f64, f64, f64),
    children: f64,
) {
    let parent = match comm {
        "child" => 4711,
        "worker" => 800,
        _ => 1,
    };
    let _ = writeln!(
        out,
        "proc:{pid} stat {pid} ({comm}) S {parent} 1 1 0 -1 0 0 0 0 0 {ticks:.0} 0 {children:.0} 0 20 0 1 0 100 9000000 {rss} 0 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0"
    );
    let _ = writeln!(
        out,
        "proc:{pid} Tgid:\t{pid}\nproc:{pid} VmRSS:\t {} kB",
        rss * 4
    );
    let _ = writeln!(
        out,
        "proc:{pid} io rchar: {calls:.0}\nproc:{pid} io wchar: 0\nproc:{pid} io read_bytes: {read:.0}\nproc:{pid} io write_bytes: {written:.0}"
    );
}

/// A file of collectl with the hour before a minute and that minute, and some minutes of the day before.
fn recorded(name: &str, minute_s: i64, seed: u64, plant: Plant) -> PathBuf {
    let mut text = String::from(
        "################################################################################\n# Collectl:   V4.3.1-1  HiRes: 1  Options: -scdn\n# Host:       vm  DaemonOpts: \n# Date:       20261116-000000  Secs: 1794787200 TZ: +0000\n# SubSys:     cdmnstZ Options:  Interval: 10:10 NumCPUs: 4  NumBud: 0 Flags: ix\n# HZ:         100  Arch: x86_64 PageSize: 4096\n# Kernel:     6.18.44  Memory: 16000000 kB  Swap: 0 kB\n# NumNets:    1 NetNames: eth0:-1\n################################################################################\n",
    );
    let (mut machine, mut chance) = (Machine::default(), Chance(seed | 1));
    let span = |from_s: i64, thru_s: i64| (from_s / EACH_S..=thru_s / EACH_S).map(|n| n * EACH_S);
    let before = span(minute_s - DAY_S - 300, minute_s - DAY_S + 360);
    for at_s in before.chain(span(minute_s - 4_000, minute_s + 60)) {
        let now = if at_s > minute_s {
            plant
        } else {
            Plant::Nothing
        };
        machine.step(at_s, &mut chance, now);
        machine.put(at_s, now, &mut text);
    }
    let path = std::env::temp_dir().join(format!(
        "kymo-why-{}-{name}-20261116-000000.raw",
        std::process::id()
    ));
    std::fs::write(&path, text).unwrap();
    path
}

fn answer(name: &str, minute_s: i64, seed: u64, plant: Plant) -> Why {
    let path = recorded(name, minute_s, seed, plant);
    let recordings = Recordings::find(std::slice::from_ref(&path)).unwrap();
    let span = When::Between(minute_s * SECOND_NS, (minute_s + 60) * SECOND_NS);
    let answer = why(&recordings, span).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(
        answer.samples.0 >= 6 && answer.samples.1 >= 300,
        "{answer:?}"
    );
    answer
}

#[test]
fn a_hundred_quiet_hours_have_two_false_alarms_at_most() {
    let mut alarms = Vec::new();
    let mut chance = Chance(7);
    for n in 0..100 {
        let minute_s = MONDAY_S + 2 * DAY_S + (chance.next() * 1_440.0) as i64 * 60;
        let found = answer(&format!("quiet{n}"), minute_s, 1_000 + n, Plant::Nothing).findings;
        if !found.is_empty() {
            alarms.push((n, (minute_s % DAY_S) / 60, found));
        }
    }
    assert!(alarms.len() <= 2, "{} {alarms:#?}", alarms.len());
}

/// Texts of the first three lines: ids of fields and names of processes.
fn first_lines(why: &Why) -> Vec<String> {
    fn put(finding: &Finding, out: &mut Vec<String>) {
        out.push(match &finding.subject {
            Subject::Field { id, .. } => id.clone(),
            Subject::Process(actor, _) => actor.comm.clone(),
            Subject::Mark(kind, _) => kind.name().into(),
            Subject::Session { publisher, .. } => publisher.clone(),
            Subject::Silence { .. } | Subject::Metric { .. } => String::new(),
        });
        finding.parts.iter().for_each(|part| put(part, out));
    }
    let mut lines = Vec::new();
    why.findings
        .iter()
        .for_each(|finding| put(finding, &mut lines));
    lines.truncate(3);
    lines
}

#[test]
fn planted_incidents_are_in_the_first_three_lines() {
    let mut missed = Vec::new();
    for (plant, expected) in [
        (Plant::CpuHog, "hog"),
        (Plant::DiskHog, "hog"),
        (Plant::Leak, "hog"),
        (Plant::Swap, "memory.swap_in"),
        (Plant::Steal, "cpu.steal"),
        (Plant::Flood, "hog"),
        (Plant::Silence, "net.rx_kb:eth0"),
        (Plant::Retransmits, "tcp.tcp_retransmitted"),
        (Plant::Drops, "net.rx_drop:eth0"),
        (Plant::Forks, "hog"),
        (Plant::OomKill, "memory.oom_kills"),
        (Plant::SlowDisk, "disk.util:vda"),
        (Plant::SoftIrqs, "cpu.soft"),
        (Plant::FullTable, "sockets.tcp_allocated"),
    ] {
        let at_s = MONDAY_S + 2 * DAY_S + 14 * 3_600 + 31 * 60;
        let why = answer(&format!("{plant:?}"), at_s, 99, plant);
        let lines = first_lines(&why);
        if !lines.iter().any(|line| line == expected) || lines.contains(&"make".into()) {
            missed.push((plant, lines));
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

/// These kinds were written last; nothing was tuned to them.
#[test]
fn incidents_of_other_kinds_are_in_the_first_three_lines() {
    let mut missed = Vec::new();
    for (plant, expected) in [
        (Plant::ReadHog, "hog"),
        (Plant::KernelHog, "hog"),
        (Plant::Errors, "net.rx_errs:eth0"),
        (Plant::Tasks, "cpu.tasks"),
        (Plant::Switches, "cpu.ctxsw"),
        (Plant::Interrupts, "cpu.intr"),
        (Plant::Faults, "memory.major_faults"),
        (Plant::Blocked, "cpu.blocked"),
    ] {
        let at_s = MONDAY_S + 2 * DAY_S + 9 * 3_600 + 8 * 60;
        let lines = first_lines(&answer(&format!("{plant:?}"), at_s, 4_242, plant));
        if !lines.iter().any(|line| line == expected) {
            missed.push((plant, lines));
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn people_are_left_out() {
    let at_s = MONDAY_S + 2 * DAY_S + 14 * 3_600;
    let mut why = answer("people", at_s, 5, Plant::CpuHog);
    fn fill(finding: &mut Finding) {
        if let Subject::Process(actor, _) = &mut finding.subject {
            actor.command = "marker".into();
            actor.group = "marker".into();
        }
        finding.parts.iter_mut().for_each(fill);
    }
    why.findings.iter_mut().for_each(fill);
    let group = Finding {
        subject: Subject::Field {
            id: "cgroups.cpu:/marker".into(),
            help: "",
            private: true,
        },
        ..why.findings[0].clone()
    };
    why.findings[0].parts.push(group);
    assert!(format!("{why:?}").contains("marker"));
    assert!(!format!("{:?}", why.without_people()).contains("marker"));
}

/// The worst minute of an hour, and others: neither a quiet one, nor one beside a worse one of the same cause.
#[test]
fn other_bad_minutes_are_named() {
    let minute = |n: i64| (-n * MINUTE_NS, (1 - n) * MINUTE_NS);
    let picked = |bad: &[(i64, f64, Cause)]| {
        let minutes = (0..60).map(|n| {
            let one = bad.iter().find(|(at, ..)| *at == n);
            BadMinute {
                score: one.map_or(0.0, |(_, score, _)| *score),
                cause: one.map(|(.., cause)| *cause),
                span: minute(n),
            }
        });
        pick_worst(minutes.collect())
    };
    assert_eq!(picked(&[]), [minute(0)]);
    let (disk, cpu, memory) = (Cause::Disk, Cause::Cpu, Cause::Memory);
    let bad = [
        (20, 4.0, memory),
        (21, 3.5, disk),
        (22, 3.0, disk),
        (30, 2.0, cpu),
        (31, 2.1, cpu),
        (33, 2.1, cpu),
        (50, 1.9, cpu),
    ];
    // The first minute of the disk touches the worst one.
    assert_eq!(picked(&bad), [20, 22, 31].map(minute));
}
