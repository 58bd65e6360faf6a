//! collectl's names for exported values, and the columns that they belong to.

/// Names of a subsystem's values.
pub(super) struct ValueNames {
    /// Name of the subsystem.
    pub(super) name: &'static str,
    /// Group of the values in Ganglia.
    pub(super) group: &'static str,
    pub(super) values: &'static [Named],
}

/// A value: name, column, decimals, the dialects that use the name, and Ganglia's unit.
pub(super) struct Named {
    pub(super) name: &'static str,
    pub(super) column: &'static str,
    pub(super) decimals: usize,
    pub(super) by: u8,
    pub(super) units: &'static str,
}

/// Sets of names: lexpr's; graphite's; gexpr's without `g`; gexpr's with neither `g` nor `G`; Ganglia's own, for `g` and `G`.
pub(super) const LEXPR: u8 = 1;
pub(super) const GRAPHITE: u8 = 2;
pub(super) const GANGLIA: u8 = 4;
pub(super) const OWN: u8 = 8;
pub(super) const STANDARD: u8 = 16;
/// Names that lexpr, graphite and gexpr share.
const ALL: u8 = LEXPR | GRAPHITE | GANGLIA;
/// Names that graphite and gexpr share.
const SENT: u8 = GRAPHITE | GANGLIA;

const fn named(
    name: &'static str,
    column: &'static str,
    decimals: usize,
    by: u8,
    units: &'static str,
) -> Named {
    Named {
        name,
        column,
        decimals,
        by,
        units,
    }
}

/// The letters of `--tcpfilt`, each with the value that it selects.
pub(super) const OF_PROTOCOLS: &[(char, &str)] = &[
    ('i', "tcpinfo.iperrs"),
    ('t', "tcpinfo.tcperrs"),
    ('u', "tcpinfo.udperrs"),
    ('c', "tcpinfo.icmperrs"),
    ('T', "tcpinfo.tcpxerrs"),
];
/// collectl's default of `--tcpfilt`.
pub(super) const PROTOCOLS: &str = "ituc";

/// Names of summary values.
pub(super) const SUMS: &[ValueNames] = &[
    ValueNames {
        name: "cpu",
        group: "cpu",
        values: &[
            named("cputotals.num", "cpus", 0, LEXPR, "percent"),
            named(
                "cputotals.user",
                "user",
                0,
                LEXPR | GRAPHITE | OWN,
                "percent",
            ),
            named(
                "cputotals.nice",
                "nice",
                0,
                LEXPR | GRAPHITE | OWN,
                "percent",
            ),
            named("cputotals.sys", "sys", 0, LEXPR | GRAPHITE | OWN, "percent"),
            named(
                "cputotals.wait",
                "wait",
                0,
                LEXPR | GRAPHITE | OWN,
                "percent",
            ),
            named(
                "cputotals.irq",
                "irq",
                0,
                LEXPR | GRAPHITE | GANGLIA,
                "percent",
            ),
            named(
                "cputotals.soft",
                "soft",
                0,
                LEXPR | GRAPHITE | GANGLIA,
                "percent",
            ),
            named(
                "cputotals.steal",
                "steal",
                0,
                LEXPR | GRAPHITE | GANGLIA,
                "percent",
            ),
            named(
                "cputotals.idle",
                "idle",
                0,
                LEXPR | GRAPHITE | OWN,
                "percent",
            ),
            named("cputotals.systot", "kernel", 0, LEXPR, "percent"),
            named("cputotals.usertot", "user_and_nice", 0, LEXPR, "percent"),
            named("cputotals.total", "total", 0, LEXPR, "percent"),
            named(
                "ctxint.ctx",
                "ctxsw",
                0,
                LEXPR | GRAPHITE | GANGLIA,
                "switches/sec",
            ),
            named(
                "ctxint.int",
                "intr",
                0,
                LEXPR | GRAPHITE | GANGLIA,
                "intrpts/sec",
            ),
            named("proc.creates", "forks", 0, LEXPR, ""),
            named("proc.runq", "tasks", 0, LEXPR, ""),
            named("proc.run", "runnable", 0, LEXPR, ""),
            named(
                "cpuload.avg1",
                "load1",
                2,
                LEXPR | GRAPHITE | OWN,
                "loadAvg1",
            ),
            named(
                "cpuload.avg5",
                "load5",
                2,
                LEXPR | GRAPHITE | OWN,
                "loadAvg5",
            ),
            named(
                "cpuload.avg15",
                "load15",
                2,
                LEXPR | GRAPHITE | OWN,
                "loadAvg15",
            ),
            named(
                "ctxint.proc",
                "forks",
                0,
                GRAPHITE | GANGLIA,
                "pcreates/sec",
            ),
            named("ctxint.runq", "tasks", 0, GRAPHITE | GANGLIA, "runqSize"),
            named("cpu_user", "user", 0, STANDARD, "percent"),
            named("cpu_nice", "nice", 0, STANDARD, "percent"),
            named("cpu_system", "sys", 0, STANDARD, "percent"),
            named("cpu_wio", "wait", 0, STANDARD, "percent"),
            named("cpu_idle", "idle", 0, STANDARD, "percent"),
            named("cpu_num", "cpus", 0, STANDARD, "CPUs"),
            named("proc_total", "tasks", 0, STANDARD, "Load/Procs"),
            named("proc_run", "runnable", 0, STANDARD, "Load/Procs"),
            named("load_one", "load1", 0, STANDARD, "Load/Procs"),
            named("load_five", "load5", 0, STANDARD, "Load/Procs"),
            named("load_fifteen", "load15", 0, STANDARD, "Load/Procs"),
        ],
    },
    ValueNames {
        name: "disk",
        group: "disk",
        values: &[
            named(
                "disktotals.reads",
                "reads",
                0,
                LEXPR | GRAPHITE | GANGLIA,
                "reads/sec",
            ),
            named(
                "disktotals.readkbs",
                "read_kb",
                0,
                LEXPR | GRAPHITE | GANGLIA,
                "readkbs/sec",
            ),
            named(
                "disktotals.writes",
                "writes",
                0,
                LEXPR | GRAPHITE | GANGLIA,
                "writes/sec",
            ),
            named(
                "disktotals.writekbs",
                "write_kb",
                0,
                LEXPR | GRAPHITE | GANGLIA,
                "writekbs/sec",
            ),
        ],
    },
    ValueNames {
        name: "memory",
        group: "memory",
        values: &[
            named("meminfo.tot", "total", 0, LEXPR | GRAPHITE | OWN, "kb"),
            named("meminfo.used", "used", 0, LEXPR | GRAPHITE | GANGLIA, "kb"),
            named("meminfo.free", "free", 0, LEXPR | GRAPHITE | OWN, "kb"),
            named("meminfo.shared", "shared", 0, LEXPR | GRAPHITE | OWN, "kb"),
            named("meminfo.buf", "buffers", 0, LEXPR | GRAPHITE | OWN, "kb"),
            named("meminfo.cached", "cached", 0, LEXPR | GRAPHITE | OWN, "kb"),
            named("meminfo.slab", "slab", 0, LEXPR | GRAPHITE | GANGLIA, "kb"),
            named("meminfo.map", "mapped", 0, LEXPR | GRAPHITE | GANGLIA, "kb"),
            named("meminfo.anon", "anon", 0, LEXPR, "kb"),
            named("meminfo.anonH", "anon_huge", 0, LEXPR, "kb"),
            named("meminfo.dirty", "dirty", 0, LEXPR, "kb"),
            named("meminfo.locked", "locked", 0, LEXPR, "kb"),
            named("meminfo.inactive", "inactive", 0, LEXPR, "kb"),
            named(
                "meminfo.hugetot",
                "huge_total",
                0,
                LEXPR | GRAPHITE | GANGLIA,
                "kb",
            ),
            named(
                "meminfo.hugefree",
                "huge_free",
                0,
                LEXPR | GRAPHITE | GANGLIA,
                "kb",
            ),
            named(
                "meminfo.hugersvd",
                "huge_reserved",
                0,
                LEXPR | GRAPHITE | GANGLIA,
                "kb",
            ),
            named("meminfo.sunreclaim", "unreclaimable", 0, LEXPR, "kb"),
            named(
                "swapinfo.total",
                "swap_total",
                0,
                LEXPR | GRAPHITE | OWN,
                "kb",
            ),
            named(
                "swapinfo.free",
                "swap_free",
                0,
                LEXPR | GRAPHITE | OWN,
                "kb",
            ),
            named(
                "swapinfo.used",
                "swap_used",
                0,
                LEXPR | GRAPHITE | GANGLIA,
                "kb",
            ),
            named(
                "swapinfo.in",
                "swap_in",
                0,
                LEXPR | GRAPHITE | GANGLIA,
                "swaps/sec",
            ),
            named(
                "swapinfo.out",
                "swap_out",
                0,
                LEXPR | GRAPHITE | GANGLIA,
                "swaps/sec",
            ),
            named(
                "pageinfo.fault",
                "faults",
                0,
                LEXPR | GRAPHITE | GANGLIA,
                "faults/sec",
            ),
            named(
                "pageinfo.majfault",
                "major_faults",
                0,
                LEXPR | GRAPHITE | GANGLIA,
                "majflt/sec",
            ),
            named(
                "pageinfo.in",
                "page_in",
                0,
                LEXPR | GRAPHITE | GANGLIA,
                "pages/sec",
            ),
            named(
                "pageinfo.out",
                "page_out",
                0,
                LEXPR | GRAPHITE | GANGLIA,
                "pages/sec",
            ),
            named("mem_total", "total", 0, STANDARD, "Bytes"),
            named("mem_free", "free", 0, STANDARD, "Bytes"),
            named("mem_shared", "shared", 0, STANDARD, "Bytes"),
            named("mem_buffers", "buffers", 0, STANDARD, "Bytes"),
            named("mem_cached", "cached", 0, STANDARD, "Bytes"),
            named("swap_total", "swap_total", 0, STANDARD, "Bytes"),
            named("swap_free", "swap_free", 0, STANDARD, "Bytes"),
        ],
    },
    ValueNames {
        name: "net",
        group: "network",
        values: &[
            named(
                "nettotals.kbin",
                "rx_kb",
                0,
                LEXPR | GRAPHITE | OWN,
                "kb/sec",
            ),
            named(
                "nettotals.pktin",
                "rx_packets",
                0,
                LEXPR | GRAPHITE | OWN,
                "pkts/sec",
            ),
            named(
                "nettotals.kbout",
                "tx_kb",
                0,
                LEXPR | GRAPHITE | OWN,
                "kb/sec",
            ),
            named(
                "nettotals.pktout",
                "tx_packets",
                0,
                LEXPR | GRAPHITE | OWN,
                "pkts/sec",
            ),
            named("bytes_in", "rx_kb", 0, STANDARD, "Bytes/sec"),
            named("bytes_out", "tx_kb", 0, STANDARD, "Bytes/sec"),
            named("pkts_in", "rx_packets", 0, STANDARD, "pkts/sec"),
            named("pkts_out", "tx_packets", 0, STANDARD, "pkts/sec"),
        ],
    },
    ValueNames {
        name: "nfs",
        group: "NFS server",
        values: &[
            named("nfsinfo.Sread", "server_reads", 0, LEXPR, "SvrReads/sec"),
            named("nfsinfo.Swrite", "server_writes", 0, LEXPR, "SvrWrites/sec"),
            named("nfsinfo.SRead", "server_reads", 0, SENT, "SvrReads/sec"),
            named("nfsinfo.SWrite", "server_writes", 0, SENT, "SvrWrites/sec"),
            named("nfsinfo.Smeta", "server_meta", 0, ALL, "SvrMeta/sec"),
            named("nfsinfo.Scommit", "server_commits", 0, ALL, "SvrCommt/sec"),
        ],
    },
    ValueNames {
        name: "nfs",
        group: "NFS client",
        values: &[
            named("nfsinfo.Cread", "client_reads", 0, LEXPR, "CltReads/sec"),
            named("nfsinfo.Cwrite", "client_writes", 0, LEXPR, "CltWrites/sec"),
            named("nfsinfo.CRead", "client_reads", 0, SENT, "CltReads/sec"),
            named("nfsinfo.CWrite", "client_writes", 0, SENT, "CltWrites/sec"),
            named("nfsinfo.Cmeta", "client_meta", 0, ALL, "CltMeta/sec"),
            named("nfsinfo.Ccommit", "client_commits", 0, ALL, "CltCommt/sec"),
        ],
    },
    ValueNames {
        name: "inodes",
        group: "inode",
        values: &[
            named("inodeinfo.dentrynum", "dentries", 0, LEXPR, "dentrynum"),
            named(
                "inodeinfo.dentryunused",
                "dentries_unused",
                0,
                LEXPR,
                "dentryunused",
            ),
            named("inodeinfo.filesalloc", "files", 0, LEXPR, "filesalloc"),
            named("inodeinfo.filesmax", "files_most", 0, LEXPR, "filesmax"),
            named("inodeinfo.inodeused", "inodes", 0, LEXPR, "inodeused"),
            named("inodeinfo.dentnum", "dentries", 0, SENT, "dentrynum"),
            named(
                "inodeinfo.dentunused",
                "dentries_unused",
                0,
                SENT,
                "dentryunused",
            ),
            named("inodeinfo.fhandalloc", "files", 0, SENT, "filesalloc"),
            named("inodeinfo.fhandmpct", "files_most", 0, SENT, "filesmax"),
            named("inodeinfo.inodenum", "inodes", 0, SENT, "inodeused"),
        ],
    },
    ValueNames {
        name: "sockets",
        group: "socket",
        values: &[
            named("sockinfo.used", "used", 0, ALL, "sockets"),
            named("sockinfo.tcp", "tcp", 0, ALL, "sockets"),
            named("sockinfo.orphan", "orphans", 0, ALL, "sockets"),
            named("sockinfo.tw", "time_wait", 0, ALL, "sockets"),
            named("sockinfo.alloc", "tcp_allocated", 0, ALL, "sockets"),
            named("sockinfo.mem", "tcp_memory", 0, ALL, "sockets"),
            named("sockinfo.udp", "udp", 0, ALL, "sockets"),
            named("sockinfo.raw", "raw", 0, ALL, "sockets"),
            named("sockinfo.frag", "fragmented", 0, ALL, "sockets"),
            named("sockinfo.fragm", "fragment_memory", 0, ALL, "sockets"),
        ],
    },
    ValueNames {
        name: "tcp",
        group: "tcp",
        values: &[
            named("tcpinfo.iperrs", "ip_errors", 0, ALL, "num/sec"),
            named("tcpinfo.tcperrs", "tcp_errors", 0, ALL, "num/sec"),
            named("tcpinfo.udperrs", "udp_errors", 0, ALL, "num/sec"),
            named("tcpinfo.icmperrs", "icmp_errors", 0, ALL, "num/sec"),
            named("tcpinfo.tcpxerrs", "tcp_lost", 0, ALL, "num/sec"),
        ],
    },
    ValueNames {
        name: "infiniband",
        group: "infiniband",
        values: &[
            named("iconnect.kbin", "rx_kb", 0, ALL, "kb/sec"),
            named("iconnect.pktin", "rx_packets", 0, ALL, "pkt/sec"),
            named("iconnect.kbout", "tx_kb", 0, ALL, "kb/sec"),
            named("iconnect.pktout", "tx_packets", 0, ALL, "pkt/sec"),
        ],
    },
];

/// Names of values per CPU, disk, interface, node and port.
pub(super) const EACH: &[ValueNames] = &[
    ValueNames {
        name: "cpu",
        group: "cpu",
        values: &[
            named(
                "cpuinfo.user.cpu{}",
                "user",
                0,
                LEXPR | GRAPHITE | GANGLIA,
                "percent",
            ),
            named(
                "cpuinfo.nice.cpu{}",
                "nice",
                0,
                LEXPR | GRAPHITE | GANGLIA,
                "percent",
            ),
            named(
                "cpuinfo.sys.cpu{}",
                "sys",
                0,
                LEXPR | GRAPHITE | GANGLIA,
                "percent",
            ),
            named(
                "cpuinfo.wait.cpu{}",
                "wait",
                0,
                LEXPR | GRAPHITE | GANGLIA,
                "percent",
            ),
            named(
                "cpuinfo.irq.cpu{}",
                "irq",
                0,
                LEXPR | GRAPHITE | GANGLIA,
                "percent",
            ),
            named(
                "cpuinfo.soft.cpu{}",
                "soft",
                0,
                LEXPR | GRAPHITE | GANGLIA,
                "percent",
            ),
            named(
                "cpuinfo.steal.cpu{}",
                "steal",
                0,
                LEXPR | GRAPHITE | GANGLIA,
                "percent",
            ),
            named(
                "cpuinfo.idle.cpu{}",
                "idle",
                0,
                LEXPR | GRAPHITE | GANGLIA,
                "percent",
            ),
            named("cputotals.systot.cpu{}", "kernel", 0, LEXPR, "percent"),
        ],
    },
    ValueNames {
        name: "disk",
        group: "disk",
        values: &[
            named(
                "diskinfo.reads.{}",
                "reads",
                0,
                LEXPR | GRAPHITE | GANGLIA,
                "reads/sec",
            ),
            named(
                "diskinfo.readkbs.{}",
                "read_kb",
                0,
                LEXPR | GRAPHITE | GANGLIA,
                "readkbs/sec",
            ),
            named("diskinfo.readw.{}", "read_wait", 0, LEXPR, ""),
            named(
                "diskinfo.writes.{}",
                "writes",
                0,
                LEXPR | GRAPHITE | GANGLIA,
                "writes/sec",
            ),
            named(
                "diskinfo.writekbs.{}",
                "write_kb",
                0,
                LEXPR | GRAPHITE | GANGLIA,
                "writekbs/sec",
            ),
            named("diskinfo.writew.{}", "write_wait", 0, LEXPR, ""),
            named("diskinfo.quelen.{}", "queue", 0, LEXPR, ""),
            named("diskinfo.wait.{}", "wait", 0, LEXPR | GRAPHITE, ""),
            named("diskinfo.svctime.{}", "service", 0, LEXPR, ""),
            named("diskinfo.util.{}", "util", 0, LEXPR | GRAPHITE, ""),
            named("diskinfo.rqst.{}", "size", 0, GRAPHITE, ""),
            named("diskinfo.qlen.{}", "queue", 0, GRAPHITE, ""),
            named("diskinfo.time.{}", "service", 0, GRAPHITE, ""),
        ],
    },
    ValueNames {
        name: "net",
        group: "network",
        values: &[
            named("netinfo.kbin.{}", "rx_kb", 0, LEXPR, "kb/sec"),
            named("netinfo.pktin.{}", "rx_packets", 0, LEXPR, "pkts/sec"),
            named("netinfo.kbout.{}", "tx_kb", 0, LEXPR, "kb/sec"),
            named("netinfo.pktout.{}", "tx_packets", 0, LEXPR, "pkts/sec"),
            named(
                "nettotals.kbin.{}",
                "rx_kb",
                0,
                GRAPHITE | GANGLIA,
                "kb/sec",
            ),
            named(
                "nettotals.pktin.{}",
                "rx_packets",
                0,
                GRAPHITE | GANGLIA,
                "pkts/sec",
            ),
            named(
                "nettotals.kbout.{}",
                "tx_kb",
                0,
                GRAPHITE | GANGLIA,
                "kb/sec",
            ),
            named(
                "nettotals.pktout.{}",
                "tx_packets",
                0,
                GRAPHITE | GANGLIA,
                "pkts/sec",
            ),
        ],
    },
    ValueNames {
        name: "numa",
        group: "memory",
        values: &[
            named("numainfo.used.{}", "used", 0, ALL | STANDARD, "kb"),
            named("numainfo.free.{}", "free", 0, ALL | STANDARD, "kb"),
            named("numainfo.slab.{}", "slab", 0, ALL | STANDARD, "kb"),
            named("numainfo.map.{}", "mapped", 0, ALL | STANDARD, "kb"),
            named("numainfo.anon.{}", "anon", 0, ALL | STANDARD, "kb"),
            named("numainfo.anonH.{}", "anon_huge", 0, LEXPR, "kb"),
            named("numainfo.lock.{}", "locked", 0, ALL | STANDARD, "kb"),
            named("numainfo.act.{}", "active", 0, ALL | STANDARD, "kb"),
            named("numainfo.inact.{}", "inactive", 0, ALL | STANDARD, "kb"),
        ],
    },
    ValueNames {
        name: "infiniband",
        group: "infiniband",
        values: &[
            named("iconnect.{}.kbin", "rx_kb", 0, LEXPR, "kb/sec"),
            named("iconnect.{}.pktin", "rx_packets", 0, LEXPR, "pkt/sec"),
            named("iconnect.{}.kbout", "tx_kb", 0, LEXPR, "kb/sec"),
            named("iconnect.{}.pktout", "tx_packets", 0, LEXPR, "pkt/sec"),
        ],
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use kymo_kernel::subsystem;

    #[test]
    fn every_name_has_its_column() {
        for (names, detail) in [(SUMS, false), (EACH, true)] {
            for names in names {
                let of = subsystem::ALL
                    .iter()
                    .find(|one| one.name == names.name)
                    .expect("a subsystem");
                let columns = if detail { of.detail } else { of.columns };
                for named in names.values {
                    assert!(
                        columns.iter().any(|c| c.name == named.column),
                        "{}: {}",
                        named.name,
                        named.column
                    );
                    assert_eq!(named.name.contains("{}"), detail, "{}", named.name);
                    assert!(named.by & (GANGLIA | OWN | STANDARD) == 0 || !named.units.is_empty());
                }
            }
        }
    }
}
