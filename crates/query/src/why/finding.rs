//! Findings: unusual values and the processes behind them, as data; the words are `kymo_view::why`'s.

use kymo_base::context::Context;
use kymo_base::field::Unit;

use crate::marks::Kind;

/// Resource that a finding is about. Values of one resource are one finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// Boots, gaps, clock steps: what the recording itself knows.
    Recording,
    /// Processes killed for want of memory.
    OomKill,
    /// Sessions of programs that others wait for.
    Lock,
    /// Processes that wait without an end.
    Stuck,
    /// Memory and swap.
    Memory,
    /// CPU time, and waiting for it.
    Cpu,
    /// CPU time that the hypervisor took.
    Steal,
    /// Disks, and waiting for them.
    Disk,
    /// Network interfaces and protocols.
    Network,
    /// File systems, NFS mounts and open files.
    FileSystem,
    /// Memory of NUMA nodes.
    Numa,
    /// Interrupts.
    Interrupt,
    /// Temperatures.
    Sensor,
    /// Long-lived processes that ended.
    Ended,
    /// Hosts, devices and programs whose values stopped.
    Silent,
    /// Values that programs publish.
    Program,
}

impl Cause {
    /// Name in answers.
    pub fn name(self) -> &'static str {
        match self {
            Cause::Recording => "recording",
            Cause::OomKill => "oom-kill",
            Cause::Lock => "lock",
            Cause::Stuck => "stuck",
            Cause::Memory => "memory",
            Cause::Cpu => "cpu",
            Cause::Steal => "steal",
            Cause::Disk => "disk",
            Cause::Network => "network",
            Cause::FileSystem => "filesystem",
            Cause::Numa => "numa",
            Cause::Interrupt => "interrupt",
            Cause::Sensor => "sensor",
            Cause::Ended => "ended",
            Cause::Silent => "silent",
            Cause::Program => "program",
        }
    }
}

/// Number of a process that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// CPU, percent of one.
    Cpu,
    /// Read from disks, KiB a second.
    Read,
    /// Written to disks, KiB a second.
    Written,
    /// Resident memory, KiB.
    Memory,
    /// Read and written by system calls, KiB a second.
    Calls,
    /// Processes born.
    Born,
    /// CPU of children that ended, percent of one.
    Children,
    /// Seconds in state D.
    Waiting,
    /// Age in seconds.
    Age,
}

impl Share {
    /// Name in answers.
    pub fn name(self) -> &'static str {
        match self {
            Share::Cpu => "cpu",
            Share::Read => "read",
            Share::Written => "written",
            Share::Memory => "memory",
            Share::Calls => "calls",
            Share::Born => "born",
            Share::Children => "children",
            Share::Waiting => "waiting",
            Share::Age => "age",
        }
    }

    /// Unit of the values.
    pub fn unit(self) -> Unit {
        match self {
            Share::Cpu | Share::Children => Unit::Percent,
            Share::Read | Share::Written | Share::Calls => Unit::KilobytesPerSecond,
            Share::Memory => Unit::Kilobytes,
            Share::Born => Unit::Count,
            Share::Waiting | Share::Age => Unit::Seconds,
        }
    }
}

/// One process, or several of one name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Actor {
    /// The pid of the one with the greatest share.
    pub pid: u32,
    /// Name of the program.
    pub comm: String,
    /// Command line, for those who may see it.
    pub command: String,
    /// Control group, for those who may see it.
    pub group: String,
    /// Processes of this name that took part.
    pub count: usize,
    /// True: none of them was there before.
    pub is_new: bool,
}

/// Subject of a finding.
#[derive(Clone, Debug, PartialEq)]
pub enum Subject {
    /// A field of a subsystem, by its id: `disk.util:sda`.
    Field {
        /// The id.
        id: String,
        /// Meaning of the field.
        help: &'static str,
        /// True: its instances tell of people.
        private: bool,
    },
    /// A process.
    Process(Actor, Share),
    /// Something that the recording knows, as often as `Finding::value` says.
    Mark(Kind, String),
    /// A session that others wait for, or a slow command.
    Session {
        /// Name of the publisher.
        publisher: String,
        /// Pid of the session; 0: a prepared transaction.
        pid: u32,
        /// Sessions that wait for it.
        waiters: usize,
        /// State of the session, in words of `kymo programs`.
        state: u8,
        /// The command, for those who may see it.
        text: String,
    },
    /// Senders whose values stopped at the same time; the usual value is the time between two of them.
    Silence {
        /// Kind of the senders: `host`, `device`, `target` or `program`.
        kind: &'static str,
        /// Their names.
        names: Vec<String>,
        /// When all of them had come back, in nanoseconds since 1970.
        back_ns: Option<i64>,
    },
    /// A value that a program publishes.
    Metric {
        /// Name of the publisher.
        publisher: String,
        /// The metric and its labels.
        name: String,
    },
}

/// One finding.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The resource.
    pub cause: Cause,
    /// The subject.
    pub subject: Subject,
    /// The value; NaN: there is none.
    pub value: f64,
    /// The usual value; NaN: not known.
    pub usual: f64,
    /// Unit of both.
    pub unit: Unit,
    /// Distances from the usual value, in usual distances.
    pub score: f64,
    /// How bad it is: the order of findings.
    pub severity: f64,
    /// Since when, if it began before the window, in nanoseconds since 1970.
    pub since_ns: Option<i64>,
    /// Parts of it, most important first.
    pub parts: Vec<Finding>,
}

impl Finding {
    /// Removes what tells of people: command lines, control groups, commands of sessions.
    fn forget_people(&mut self) {
        match &mut self.subject {
            Subject::Field { id, private, .. } if *private => {
                id.truncate(id.find(':').unwrap_or(id.len()));
            }
            Subject::Process(actor, _) => {
                actor.command.clear();
                actor.group.clear();
            }
            Subject::Session { text, .. } => text.clear(),
            Subject::Metric { name, .. } => name.truncate(name.find(' ').unwrap_or(name.len())),
            Subject::Field { .. } | Subject::Mark(..) | Subject::Silence { .. } => {}
        }
        self.parts.iter_mut().for_each(Finding::forget_people);
    }

    /// Findings of this one and below it.
    pub fn lines(&self) -> usize {
        1 + self.parts.iter().map(Finding::lines).sum::<usize>()
    }
}

/// Sorts by how bad findings are.
pub(super) fn worst_first(findings: &mut [Finding]) {
    findings.sort_by(|a, b| b.severity.total_cmp(&a.severity));
}

impl Why {
    /// The answer for those who may not see what tells of people.
    pub fn without_people(mut self) -> Why {
        self.findings.iter_mut().for_each(Finding::forget_people);
        self
    }
}

/// The answer: the findings of a span.
#[derive(Clone, Debug, Default)]
pub struct Why {
    /// Begin of the span, in nanoseconds since 1970.
    pub from_ns: i64,
    /// End of the span.
    pub thru_ns: i64,
    /// Where the values begin that are usual.
    pub before_ns: i64,
    /// Samples in the span, and before it.
    pub samples: (usize, usize),
    /// Earlier days of which the same time was looked at.
    pub days: usize,
    /// Nanoseconds between samples; 0: not known.
    pub interval_ns: i64,
    /// Facts of the machine.
    pub context: Context,
    /// The findings, worst first.
    pub findings: Vec<Finding>,
    /// Other bad minutes of the hour, worst first, where the worst one was asked for.
    pub others: Vec<(i64, i64)>,
    /// Why hosts, devices and programs are missing, for people; empty: they are not, or there is no store.
    pub problem: String,
}
