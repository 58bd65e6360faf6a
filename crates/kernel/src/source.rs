//! The table of the kernel's files: where each is, how it is read and how it is cut.
//! What the numbers mean is not here but in `subsystem/`.

use kymo_base::template::Grammar;

/// Numbers of the kinds of source; they are on disk and never change.
pub mod kind {
    /// /proc/stat
    pub const STAT: u8 = 1;
    /// /proc/loadavg
    pub const LOADAVG: u8 = 2;
    /// /proc/meminfo
    pub const MEMINFO: u8 = 3;
    /// /proc/vmstat
    pub const VMSTAT: u8 = 4;
    /// /proc/diskstats
    pub const DISKSTATS: u8 = 5;
    /// /proc/net/dev
    pub const NET_DEV: u8 = 6;
    /// /proc/pressure/cpu
    pub const PRESSURE_CPU: u8 = 7;
    /// /proc/pressure/memory
    pub const PRESSURE_MEMORY: u8 = 8;
    /// /proc/pressure/io
    pub const PRESSURE_IO: u8 = 9;
    /// /proc/pressure/irq
    pub const PRESSURE_IRQ: u8 = 10;
    /// /proc/slabinfo
    pub const SLABINFO: u8 = 11;
    /// /proc/PID/stat
    pub const PID_STAT: u8 = 32;
    /// /proc/PID/io
    pub const PID_IO: u8 = 33;
    /// /proc/PID/status
    pub const PID_STATUS: u8 = 34;
    /// /proc/PID/cmdline
    pub const PID_CMDLINE: u8 = 35;
    /// /proc/PID/cgroup
    pub const PID_CGROUP: u8 = 36;
    /// The link /proc/PID/exe
    pub const PID_EXE: u8 = 37;
    /// /proc/PID/task/TID/stat
    pub const TID_STAT: u8 = 40;
    /// /proc/PID/task/TID/io
    pub const TID_IO: u8 = 41;
    /// /proc/PID/task/TID/status
    pub const TID_STATUS: u8 = 42;
    /// No file: what programs that publish do, as the keeper says it.
    pub const ACTIVITY: u8 = 64;
}

/// How many reads a text takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reads {
    /// One pread gives all of it.
    Whole,
    /// The kernel hands out whole records, about a page a read; read on until nothing comes.
    Records,
}

/// How often a source is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pace {
    /// At each sample.
    EachSample,
    /// When processes are scanned: it is dear, and moves slowly.
    EachScan,
}

/// How many instances a source has. Who adds one says in [`is_instance`] what its instances are called, and reads them in
/// the sampler; what is read is understood as it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// One for the machine.
    Machine,
    /// One a process; the instance's name is the pid.
    Process,
    /// One a thread; the instance's name is `PID/task/TID`.
    Thread,
    /// What the keeper says of programs that publish: one instance for all of them, `now`, one for each, its epoch in 32
    /// hexadecimal digits, and one for each of its slots that is at work, `EPOCH/SLOT`.
    Program,
}

impl Scope {
    /// Every scope, in the order of the rows that its sources make.
    pub const ALL: &[Scope] = &[
        Scope::Machine,
        Scope::Process,
        Scope::Thread,
        Scope::Program,
    ];

    /// Whether its instances are processes or threads, which are scanned at an interval of their own.
    pub fn is_of_tasks(self) -> bool {
        matches!(self, Scope::Process | Scope::Thread)
    }
}

/// One kind of source.
#[derive(Debug)]
pub struct Source {
    /// Its number on disk.
    pub kind: u8,
    /// Its path under the root; `{}` stands for the instance's name.
    pub path: &'static str,
    /// How it is read.
    pub reads: Reads,
    /// How its text is cut into template and values.
    pub grammar: Grammar,
    /// How many instances it has.
    pub scope: Scope,
    /// How often it is read.
    pub pace: Pace,
}

impl Source {
    /// The path under the root of one instance; `proc/net` becomes `net_path` (`proc/1/net`, say).
    pub fn path_of(&self, instance: &str) -> String {
        self.path.replace("{}", instance)
    }
}

const fn machine(kind: u8, path: &'static str, reads: Reads, grammar: Grammar) -> Source {
    Source {
        kind,
        path,
        reads,
        grammar,
        scope: Scope::Machine,
        pace: Pace::EachSample,
    }
}

const fn process(kind: u8, path: &'static str, grammar: Grammar) -> Source {
    Source {
        kind,
        path,
        reads: Reads::Whole,
        grammar,
        scope: Scope::Process,
        pace: Pace::EachScan,
    }
}

const fn thread(kind: u8, path: &'static str, grammar: Grammar) -> Source {
    Source {
        kind,
        path,
        reads: Reads::Whole,
        grammar,
        scope: Scope::Thread,
        pace: Pace::EachScan,
    }
}

/// Every kind of source there is.
pub const ALL: &[Source] = &[
    Source {
        pace: Pace::EachScan,
        ..machine(
            kind::SLABINFO,
            "proc/slabinfo",
            Reads::Records,
            Grammar::Named(0),
        )
    },
    machine(kind::STAT, "proc/stat", Reads::Whole, Grammar::Plain),
    machine(kind::LOADAVG, "proc/loadavg", Reads::Whole, Grammar::Plain),
    machine(kind::MEMINFO, "proc/meminfo", Reads::Whole, Grammar::Plain),
    machine(kind::VMSTAT, "proc/vmstat", Reads::Records, Grammar::Plain),
    machine(
        kind::DISKSTATS,
        "proc/diskstats",
        Reads::Records,
        Grammar::Named(2),
    ),
    machine(
        kind::NET_DEV,
        "proc/net/dev",
        Reads::Records,
        Grammar::Named(0),
    ),
    machine(
        kind::PRESSURE_CPU,
        "proc/pressure/cpu",
        Reads::Whole,
        Grammar::Plain,
    ),
    machine(
        kind::PRESSURE_MEMORY,
        "proc/pressure/memory",
        Reads::Whole,
        Grammar::Plain,
    ),
    machine(
        kind::PRESSURE_IO,
        "proc/pressure/io",
        Reads::Whole,
        Grammar::Plain,
    ),
    machine(
        kind::PRESSURE_IRQ,
        "proc/pressure/irq",
        Reads::Whole,
        Grammar::Plain,
    ),
    process(kind::PID_STAT, "proc/{}/stat", Grammar::Stat),
    process(kind::PID_IO, "proc/{}/io", Grammar::Plain),
    process(kind::PID_STATUS, "proc/{}/status", Grammar::Keyed),
    process(kind::PID_CMDLINE, "proc/{}/cmdline", Grammar::Word),
    process(kind::PID_CGROUP, "proc/{}/cgroup", Grammar::Word),
    process(kind::PID_EXE, "proc/{}/exe", Grammar::Word),
    thread(kind::TID_STAT, "proc/{}/stat", Grammar::Stat),
    thread(kind::TID_IO, "proc/{}/io", Grammar::Plain),
    thread(kind::TID_STATUS, "proc/{}/status", Grammar::Keyed),
    Source {
        kind: kind::ACTIVITY,
        path: "programs/{}",
        reads: Reads::Records,
        grammar: Grammar::Plain,
        scope: Scope::Program,
        pace: Pace::EachSample,
    },
];

/// The instance of [`Scope::Program`] that speaks of all.
pub const ALL_PROGRAMS: &str = "now";

/// The source of a kind.
pub fn of(kind: u8) -> Option<&'static Source> {
    ALL.iter().find(|source| source.kind == kind)
}

/// Kinds by the paths of their sources, for a line that people read: `proc/stat, proc/{}/io`.
pub fn names(kinds: &[u8]) -> String {
    let path = |&kind: &u8| of(kind).map_or("an unknown source", |source| source.path);
    kinds.iter().map(path).collect::<Vec<_>>().join(", ")
}

/// Whether `name` can be the name of an instance of such a source.
pub fn is_instance(scope: Scope, name: &str) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    match scope {
        Scope::Machine => name.is_empty(),
        Scope::Process => number(name),
        Scope::Thread => name
            .split_once("/task/")
            .is_some_and(|(pid, tid)| number(pid) && number(tid)),
        Scope::Program => {
            let (program, slot) = match name.split_once('/') {
                Some((program, slot)) => (program, Some(slot)),
                None => (name, None),
            };
            let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
            let is_epoch = program.len() == 32 && program.bytes().all(is_hex);
            name == ALL_PROGRAMS || (is_epoch && slot.is_none_or(number))
        }
    }
}

/// The source and the instance that a path under the root names: `proc/1/stat` is instance `1` of
/// `proc/{}/stat`.
pub fn find(path: &str) -> Option<(&'static Source, &str)> {
    ALL.iter().find_map(|source| {
        let instance = match source.path.split_once("{}") {
            None => (source.path == path).then_some("")?,
            Some((before, after)) => path
                .strip_prefix(before)?
                .strip_suffix(after)
                .filter(|middle| is_instance(source.scope, middle))?,
        };
        Some((source, instance))
    })
}
