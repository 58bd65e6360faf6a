//! The table of the kernel's files: path, way of reading and grammar
//! of each. `subsystem/` defines the meaning of their numbers.

use kymo_base::template::Grammar;

use crate::digest::Digest;

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
    /// /proc/net/sockstat
    pub const SOCKSTAT: u8 = 12;
    /// /proc/net/sockstat6
    pub const SOCKSTAT6: u8 = 13;
    /// /proc/net/snmp
    pub const SNMP: u8 = 14;
    /// /proc/net/netstat
    pub const NETSTAT: u8 = 15;
    /// /proc/net/snmp6
    pub const SNMP6: u8 = 16;
    /// /proc/sys/fs/dentry-state
    pub const DENTRY_STATE: u8 = 17;
    /// /proc/sys/fs/inode-nr
    pub const INODE_NR: u8 = 18;
    /// /proc/sys/fs/file-nr
    pub const FILE_NR: u8 = 19;
    /// /proc/interrupts
    pub const INTERRUPTS: u8 = 20;
    /// /proc/softirqs
    pub const SOFTIRQS: u8 = 21;
    /// /proc/buddyinfo
    pub const BUDDYINFO: u8 = 22;
    /// /sys/devices/system/node/nodeN/meminfo
    pub const NODE_MEMINFO: u8 = 23;
    /// /sys/devices/system/node/nodeN/numastat
    pub const NODE_NUMASTAT: u8 = 24;
    /// /proc/net/rpc/nfs
    pub const NFS: u8 = 25;
    /// /proc/net/rpc/nfsd
    pub const NFSD: u8 = 26;
    /// The files of /sys/class/hwmon/hwmonN
    pub const HWMON: u8 = 27;
    /// The files of /sys/class/thermal/thermal_zoneN
    pub const THERMAL: u8 = 28;
    /// The files of /sys/class/powercap/ZONE
    pub const POWERCAP: u8 = 29;
    /// The files of /sys/devices/system/cpu/cpufreq/policyN
    pub const CPUFREQ: u8 = 30;
    /// The counters of /sys/class/infiniband/DEVICE/ports/N
    pub const INFINIBAND: u8 = 31;
    /// Result of statvfs of each mounted file system
    pub const FILESYSTEM: u8 = 50;
    /// The part of /proc/PID/mountstats of an NFS mount
    pub const MOUNTSTATS: u8 = 52;
    /// /sys/class/net, as a digest
    pub const INTERFACES: u8 = 54;
    /// /proc/net/softnet_stat, as a digest
    pub const SOFTNET: u8 = 55;
    /// The counts of /proc/sys/net/netfilter
    pub const CONNTRACK: u8 = 56;
    /// Limits and entropy in /proc/sys/kernel
    pub const LIMITS: u8 = 57;
    /// /proc/net/tcp and tcp6, as a digest
    pub const TCP_STATES: u8 = 58;
    /// /proc/net/udp and udp6, as a digest
    pub const UDP_QUEUES: u8 = 59;
    /// /proc/net/arp, as a digest
    pub const NEIGHBOURS: u8 = 60;
    /// /proc/mdstat, as a digest
    pub const ARRAYS: u8 = 61;
    /// The answer of adjtimex, as a digest
    pub const CLOCK: u8 = 62;
    /// The recorder's own process, as a digest
    pub const RECORDER: u8 = 63;
    /// The files of a control group
    pub const CGROUP: u8 = 51;
    /// Name, image, pod and namespace of a control group, by the files of its runtime; not a file
    pub const CGROUP_NAME: u8 = 53;
    /// /proc/self/stat
    pub const SELF_STAT: u8 = 48;
    /// /proc/self/io
    pub const SELF_IO: u8 = 49;
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
    /// The container around a process, as [`CGROUP_NAME`] has it; not a file
    pub const PID_CONTAINER: u8 = 38;
    /// /proc/PID/task/TID/stat
    pub const TID_STAT: u8 = 40;
    /// /proc/PID/task/TID/io
    pub const TID_IO: u8 = 41;
    /// /proc/PID/task/TID/status
    pub const TID_STATUS: u8 = 42;
    /// Activity of publishing programs, which the keeper sends; not a file
    pub const ACTIVITY: u8 = 64;
    /// Processes by state, counted at their scan; not a file
    pub const TASK_STATES: u8 = 65;
}

/// Way of reading a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reads {
    /// One pread returns the whole text.
    Whole,
    /// Each read returns whole records, about a page; read until nothing is left.
    Records,
    /// The path is a folder of files with one value each; the text has a
    /// line `NAME VALUE` for each readable file. `*` stands for a number.
    Bundle(&'static [&'static str]),
    /// A short text is made of the file or folder. Its lines add numbers to the rows that another source of the machine has.
    Digest(Digest),
}

/// How often a source is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pace {
    /// At each sample.
    EachSample,
    /// At each scan of processes, for sources that are costly and change slowly.
    EachScan,
    /// At scans of processes, each ten seconds at most, and as seldom as it takes for reads to cost at most 0.005 % of
    /// a CPU, up to five minutes. All numbers of such a source are gauges, which keep their values between reads.
    Thrifty,
}

/// Kind of instances of a source. A new scope needs the names of
/// its instances in [`is_instance`], and a reader in the sampler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// A single instance, the machine.
    Machine,
    /// An instance for each NUMA node; its name is the node's number.
    Node,
    /// An instance for each chip of sensors; its name is the chip's number.
    Chip,
    /// An instance for each thermal zone; its name is the zone's number.
    ThermalZone,
    /// An instance for each zone with a counter of energy; its name is the folder's, such as `intel-rapl:0`.
    PowerZone,
    /// An instance for each group of CPUs with one frequency; its name is the group's number.
    FrequencyPolicy,
    /// An instance for each port of an InfiniBand, RoCE or Omni-Path device; its name is `DEVICE/ports/N`.
    FabricPort,
    /// An instance for each mounted file system; its name is the mount point.
    Mount,
    /// An instance for each control group; its name is the path below the mount point of the hierarchy: `/system.slice`.
    Cgroup,
    /// An instance for each process; its name is the pid.
    Process,
    /// An instance for each thread; its name is `PID/task/TID`.
    Thread,
    /// Publishing programs: an instance `now` for all of them, one for each, named by its epoch in 32 hexadecimal
    /// digits, and one for each of its active slots, `EPOCH/SLOT`.
    Program,
}

impl Scope {
    /// Every scope, in the order of the rows that its sources make.
    pub const ALL: &[Scope] = &[
        Scope::Machine,
        Scope::Node,
        Scope::Chip,
        Scope::ThermalZone,
        Scope::PowerZone,
        Scope::FrequencyPolicy,
        Scope::FabricPort,
        Scope::Mount,
        Scope::Cgroup,
        Scope::Process,
        Scope::Thread,
        Scope::Program,
    ];

    /// Returns true if the instances are processes or threads, which have an interval of their own.
    pub fn is_of_tasks(self) -> bool {
        matches!(self, Scope::Process | Scope::Thread)
    }
}

/// One kind of source.
#[derive(Debug)]
pub struct Source {
    /// Number of the kind on disk.
    pub kind: u8,
    /// Path under the root; `{}` stands for the instance's name.
    pub path: &'static str,
    /// Way of reading a text.
    pub reads: Reads,
    /// Grammar that divides the text into template and values.
    pub grammar: Grammar,
    /// Kind of instances.
    pub scope: Scope,
    /// How often the source is read.
    pub pace: Pace,
}

impl Source {
    /// The path of one instance under the root.
    pub fn path_of(&self, instance: &str) -> String {
        self.path.replace("{}", instance)
    }

    /// True if its lines add numbers to rows of another source.
    pub fn adds_to_rows(&self) -> bool {
        matches!(self.reads, Reads::Digest(_))
    }

    /// A source that is read at each scan of processes.
    const fn scanned(mut self) -> Source {
        self.pace = Pace::EachScan;
        self
    }

    const fn bundle(mut self, files: &'static [&'static str]) -> Source {
        self.reads = Reads::Bundle(files);
        self
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

/// A digest that is read as seldom as its cost demands.
const fn digest(kind: u8, path: &'static str, digest: Digest) -> Source {
    Source {
        pace: Pace::Thrifty,
        ..machine(kind, path, Reads::Digest(digest), Grammar::Named(0))
    }
}

const fn several(scope: Scope, kind: u8, path: &'static str, grammar: Grammar) -> Source {
    Source {
        scope,
        ..machine(kind, path, Reads::Whole, grammar)
    }
}

/// A source of sensors. It is read at scans of processes, as a chip on a slow bus may need milliseconds.
const fn sensors(
    scope: Scope,
    kind: u8,
    path: &'static str,
    files: &'static [&'static str],
) -> Source {
    Source {
        pace: Pace::EachScan,
        ..several(scope, kind, path, Grammar::Counts).bundle(files)
    }
}

/// Name in a bundle that is no file but the device of the folder: KIND/NAME.
pub const DEVICE: &str = "device/";

/// Measurements of a chip, by the names of the kernel's hwmon interface.
const HWMON: &[&str] = &[
    "name",
    DEVICE,
    "temp*_label",
    "temp*_input",
    "fan*_label",
    "fan*_input",
    "in*_label",
    "in*_input",
    "curr*_label",
    "curr*_input",
    "power*_label",
    "power*_average",
    "power*_input",
    "energy*_label",
    "energy*_input",
    "humidity*_label",
    "humidity*_input",
];

/// Counters of a port: traffic and errors. The data counters have a unit of four bytes.
const INFINIBAND: &[&str] = &[
    "link_layer",
    "state",
    "counters/port_rcv_data",
    "counters/port_xmit_data",
    "counters/port_rcv_packets",
    "counters/port_xmit_packets",
    "counters/symbol_error",
    "counters/link_error_recovery",
    "counters/link_downed",
    "counters/port_rcv_errors",
    "counters/port_rcv_remote_physical_errors",
    "counters/port_rcv_switch_relay_errors",
    "counters/port_xmit_discards",
    "counters/port_xmit_constraint_errors",
    "counters/port_rcv_constraint_errors",
    "counters/local_link_integrity_errors",
    "counters/excessive_buffer_overrun_errors",
    "counters/VL15_dropped",
    "counters/port_xmit_wait",
];

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

/// All kinds of sources.
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
        kind::INTERFACES,
        "sys/class/net",
        Reads::Digest(Digest::Interfaces),
        Grammar::Named(0),
    )
    .scanned(),
    machine(
        kind::SOFTNET,
        "proc/net/softnet_stat",
        Reads::Digest(Digest::Softnet),
        Grammar::Named(0),
    ),
    machine(
        kind::CONNTRACK,
        "proc/sys/net/netfilter",
        Reads::Bundle(&["nf_conntrack_count", "nf_conntrack_max"]),
        Grammar::Counts,
    )
    .scanned(),
    machine(
        kind::LIMITS,
        "proc/sys/kernel",
        Reads::Bundle(&[
            "threads-max",
            "pid_max",
            "random/entropy_avail",
            "random/poolsize",
            "hung_task_detect_count",
        ]),
        Grammar::Counts,
    )
    .scanned(),
    digest(kind::TCP_STATES, "proc/net/tcp", Digest::TcpStates),
    digest(kind::UDP_QUEUES, "proc/net/udp", Digest::UdpQueues),
    digest(kind::NEIGHBOURS, "proc/net/arp", Digest::Neighbours),
    digest(kind::ARRAYS, "proc/mdstat", Digest::Arrays),
    digest(kind::CLOCK, "adjtimex", Digest::Clock),
    digest(kind::RECORDER, "recorder", Digest::Recorder),
    // The sampler counts what its table of processes has.
    machine(
        kind::TASK_STATES,
        "task_states",
        Reads::Whole,
        Grammar::Counts,
    )
    .scanned(),
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
    machine(
        kind::SOCKSTAT,
        "proc/net/sockstat",
        Reads::Whole,
        Grammar::Plain,
    ),
    machine(
        kind::SOCKSTAT6,
        "proc/net/sockstat6",
        Reads::Whole,
        Grammar::Plain,
    ),
    machine(kind::SNMP, "proc/net/snmp", Reads::Whole, Grammar::Plain),
    machine(
        kind::NETSTAT,
        "proc/net/netstat",
        Reads::Whole,
        Grammar::Plain,
    ),
    machine(kind::SNMP6, "proc/net/snmp6", Reads::Whole, Grammar::Plain),
    machine(
        kind::DENTRY_STATE,
        "proc/sys/fs/dentry-state",
        Reads::Whole,
        Grammar::Plain,
    ),
    machine(
        kind::INODE_NR,
        "proc/sys/fs/inode-nr",
        Reads::Whole,
        Grammar::Plain,
    ),
    machine(
        kind::FILE_NR,
        "proc/sys/fs/file-nr",
        Reads::Whole,
        Grammar::Plain,
    ),
    machine(
        kind::INTERRUPTS,
        "proc/interrupts",
        Reads::Records,
        Grammar::Counts,
    ),
    machine(
        kind::SOFTIRQS,
        "proc/softirqs",
        Reads::Whole,
        Grammar::Counts,
    ),
    machine(
        kind::BUDDYINFO,
        "proc/buddyinfo",
        Reads::Records,
        Grammar::Named(1),
    ),
    machine(kind::NFS, "proc/net/rpc/nfs", Reads::Whole, Grammar::Plain),
    machine(
        kind::NFSD,
        "proc/net/rpc/nfsd",
        Reads::Whole,
        Grammar::Plain,
    ),
    several(
        Scope::Node,
        kind::NODE_MEMINFO,
        "sys/devices/system/node/node{}/meminfo",
        Grammar::Plain,
    ),
    several(
        Scope::Node,
        kind::NODE_NUMASTAT,
        "sys/devices/system/node/node{}/numastat",
        Grammar::Plain,
    ),
    sensors(Scope::Chip, kind::HWMON, "sys/class/hwmon/hwmon{}", HWMON),
    sensors(
        Scope::ThermalZone,
        kind::THERMAL,
        "sys/class/thermal/thermal_zone{}",
        &["type", "temp"],
    ),
    sensors(
        Scope::PowerZone,
        kind::POWERCAP,
        "sys/class/powercap/{}",
        &["name", "energy_uj"],
    ),
    sensors(
        Scope::FrequencyPolicy,
        kind::CPUFREQ,
        "sys/devices/system/cpu/cpufreq/policy{}",
        &["scaling_cur_freq", "scaling_min_freq", "scaling_max_freq"],
    ),
    several(
        Scope::FabricPort,
        kind::INFINIBAND,
        "sys/class/infiniband/{}",
        Grammar::Counts,
    )
    .bundle(INFINIBAND),
    Source {
        pace: Pace::EachScan,
        ..several(Scope::Mount, kind::FILESYSTEM, "statvfs{}", Grammar::Counts)
    },
    Source {
        pace: Pace::EachScan,
        ..several(
            Scope::Mount,
            kind::MOUNTSTATS,
            "mountstats{}",
            Grammar::Counts,
        )
    },
    // `groups.rs` has the files and their kept parts.
    several(Scope::Cgroup, kind::CGROUP, "cgroup{}", Grammar::Plain).bundle(&[]),
    several(
        Scope::Cgroup,
        kind::CGROUP_NAME,
        "cgroup_name{}",
        Grammar::Keyed,
    )
    .bundle(&[]),
    machine(
        kind::SELF_STAT,
        "proc/self/stat",
        Reads::Whole,
        Grammar::Stat,
    ),
    machine(kind::SELF_IO, "proc/self/io", Reads::Whole, Grammar::Plain),
    process(kind::PID_STAT, "proc/{}/stat", Grammar::Stat),
    process(kind::PID_IO, "proc/{}/io", Grammar::Plain),
    process(kind::PID_STATUS, "proc/{}/status", Grammar::Keyed),
    process(kind::PID_CMDLINE, "proc/{}/cmdline", Grammar::Word),
    process(kind::PID_CGROUP, "proc/{}/cgroup", Grammar::Word),
    process(kind::PID_EXE, "proc/{}/exe", Grammar::Word),
    process(kind::PID_CONTAINER, "container/{}", Grammar::Word),
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

/// The instance of [`Scope::Program`] for all programs together.
pub const ALL_PROGRAMS: &str = "now";

/// The source of a kind.
pub fn of(kind: u8) -> Option<&'static Source> {
    ALL.iter().find(|source| source.kind == kind)
}

/// The paths of the sources of `kinds`, for users: `proc/stat, proc/{}/io`.
pub fn names(kinds: &[u8]) -> String {
    let path = |&kind: &u8| of(kind).map_or("an unknown source", |source| source.path);
    kinds.iter().map(path).collect::<Vec<_>>().join(", ")
}

/// Returns true if `name` is a valid name of an instance of this scope.
pub fn is_instance(scope: Scope, name: &str) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    match scope {
        Scope::Machine => name.is_empty(),
        Scope::Node
        | Scope::Chip
        | Scope::ThermalZone
        | Scope::FrequencyPolicy
        | Scope::Process => number(name),
        Scope::PowerZone => is_file_name(name),
        Scope::Mount | Scope::Cgroup => name.starts_with('/'),
        Scope::FabricPort => name
            .split_once("/ports/")
            .is_some_and(|(device, port)| is_file_name(device) && number(port)),
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

/// Returns true if this is a file name, without folders.
fn is_file_name(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && !name.contains('/')
}

/// The source and the instance of a path under the root: `proc/1/stat` is instance `1` of `proc/{}/stat`.
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
