//! `/metrics` beside its model, on the live machine: promtool has no complaint that it does not have about node_exporter's
//! own output; series that both have are the same and have the same values; Debian's Prometheus scrapes both.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use kymo_base::reading::Reading;
use kymo_kernel::exposition::Floor;
use kymo_kernel::interpret::Interpreter;
use kymo_kernel::subsystem;
use kymo_query::recorded::Recorded;
use kymo_query::source::{Source, Step};
use kymo_recording::reader::{Kinds, TimeRange};
use kymo_tests::machine::{self, Interface, Tmpfs};
use kymo_tests::{Running, Scratch, free_port, stdout_of};
use kymo_view::prometheus::{self, Cost};
use serde_json::Value;

/// Names that node_exporter has only in later versions than Debian's, or for other kernels.
const ONLY_OURS: &[&str] = &[
    "node_kernel_hung_tasks",
    "node_pressure_irq_stalled_seconds_total",
    "node_softirqs_functions_total",
    "node_softnet_flow_limit_count_total",
    "node_softnet_received_rps_total",
    // Their collectors are off by default.
    "node_netstat_TcpExt_TCPOFOQueue",
    "node_netstat_TcpExt_TCPRcvQDrop",
    "node_netstat_Tcp_MaxConn",
    "node_processes_pids",
    "node_processes_state",
    "node_processes_threads",
    "node_tcp_connection_states",
    "node_processes_max_processes",
    "node_processes_max_threads",
];

/// Operations of an NFS server that node_exporter leaves out.
const ONLY_OUR_METHODS: &[&str] = &[
    "method=\"Null\"",
    "method=\"PutPubFH\"",
    "method=\"PutRootFH\"",
    "method=\"SetClientID\"",
    "method=\"SetClientIDConfirm\"",
];

/// Operations of version 4 that node_exporter has wrong: it skips SETCLIENTID and its confirmation, and so gives these the
/// numbers of operations two places before them.
const MISTAKEN: &[&str] = &[
    "node_nfsd_requests_total{method=\"Verify\",proto=\"4\"}",
    "node_nfsd_requests_total{method=\"Write\",proto=\"4\"}",
    "node_nfsd_requests_total{method=\"RelLockOwner\",proto=\"4\"}",
];

/// Gauges of a moment, which the reader itself changes: on a live machine their values cannot be compared.
const MOMENTARY: &[&str] = &[
    "node_procs_running",
    "node_procs_blocked",
    "node_disk_io_now",
    // Each reader has a connection of its own.
    "node_netstat_Tcp_CurrEstab",
    "node_sockstat_sockets_used",
    "node_sockstat_TCP_alloc",
    "node_sockstat_TCP_inuse",
    "node_filefd_allocated",
    // kymo reads these each ten seconds or less often.
    "node_arp_entries",
    "node_udp_queues",
    "node_timex_estimated_error_seconds",
    "node_timex_frequency_adjustment_ratio",
    "node_timex_loop_time_constant",
    "node_timex_maxerror_seconds",
    "node_timex_offset_seconds",
    "node_timex_status",
];

/// Rounds, each with a scrape of node_exporter, of kymo, and of node_exporter again.
const ROUNDS: usize = 5;

/// Name and sorted labels of a series, as written.
type Series = String;

/// A parsed exposition.
struct Exposition {
    text: String,
    values: BTreeMap<Series, f64>,
    /// Type by name.
    types: BTreeMap<String, String>,
}

/// Files of /proc and the corpus file for each, by kernel.
const MACHINES: &[(&str, &[(&str, &str)])] = &[
    (
        "6.18",
        &[
            ("stat", "stat"),
            ("loadavg", "loadavg"),
            ("meminfo", "meminfo"),
            ("vmstat", "vmstat"),
            ("diskstats", "diskstats_nvme_multipath"),
            ("net/dev", "net_dev_containers"),
            ("pressure/cpu", "pressure_cpu"),
            ("pressure/memory", "pressure_io"),
            ("pressure/io", "pressure_io"),
            ("net/sockstat", "sockstat"),
            ("net/sockstat6", "sockstat6"),
            ("net/snmp", "snmp"),
            ("net/netstat", "netstat"),
            ("net/snmp6", "snmp6"),
            ("sys/fs/file-nr", "file_nr"),
        ],
    ),
    (
        "3.10 to 5.4, 48 CPUs",
        &[
            ("stat", "stat_3.10_48cpu"),
            ("loadavg", "loadavg_busy"),
            ("meminfo", "meminfo_3.10"),
            ("vmstat", "vmstat"),
            ("diskstats", "diskstats_4.18"),
            ("net/dev", "net_dev"),
            ("pressure/cpu", "pressure_cpu_5.4"),
            ("pressure/memory", "pressure_io"),
            ("pressure/io", "pressure_io"),
        ],
    ),
    (
        "4.18, a CPU offline",
        &[("stat", "stat_4.18_offline"), ("diskstats", "diskstats")],
    ),
    (
        "2.6.32",
        &[
            ("stat", "stat_2.6.32"),
            ("loadavg", "loadavg_busy"),
            ("meminfo", "meminfo_2.6.32"),
            ("vmstat", "vmstat_2.6.32"),
            ("diskstats", "diskstats_2.6.32"),
            ("net/dev", "net_dev_2.6.32"),
        ],
    ),
];

/// Both read the same files: all values are equal, to the last bit.
#[test]
fn the_same_of_the_same_files() {
    if let Some(tool) = missing(&["prometheus-node-exporter"]) {
        return machine::skipped(&format!("{tool} is missing"));
    }
    for (machine, files) in MACHINES {
        let tree = Scratch::new("proc");
        for (file, text) in *files {
            // With a root other than the machine's, kymo reads the network of its own process.
            for path in [format!("proc/{file}"), format!("proc/self/{file}")] {
                let path = tree.path(&path);
                let text = format!("{}/corpus/{text}.txt", env!("CARGO_MANIFEST_DIR"));
                std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
                std::fs::copy(text, path).expect("a file");
            }
        }
        let (root, dir) = (tree.text(""), tree.text("ring"));
        stdout_of(&[
            "record", "-s", "cdnmpist", "-i", ".1", "-c", "1", "-f", &dir, "--root", &root,
        ]);
        let ours = parse(newest(&dir).expect("a sample"));
        let node = NodeExporter::start(&[
            format!("--path.procfs={}", tree.text("proc")),
            "--no-collector.netdev.netlink".into(),
        ]);
        let theirs = node.scrape();
        // Values that the kernel lacks (for a CPU that is offline, or
        // an unknown time) are 0 in node_exporter and absent in kymo.
        let mut lacking = lacking(&ours, &theirs, &theirs);
        lacking.retain(|series| theirs.values[series] != 0.0);
        // An alias interface of an old kernel. Later kernels have no colon in an interface's name.
        lacking.retain(|series| !series.contains("eth0:1"));
        assert!(lacking.is_empty(), "{machine}: {lacking:?}");
        same_types(&ours, &theirs);
        let of_node = ours
            .values
            .iter()
            .filter(|(series, _)| series.starts_with("node_") && *series != "node_time_seconds");
        for (series, value) in of_node {
            let other = theirs.values.get(series);
            assert!(
                other.is_none_or(|other| other == value),
                "{machine}: {series}: {value}, not {other:?}"
            );
        }
    }
}

/// Kernel files of a well-equipped machine: chips, zones, clocks, fabric, NUMA nodes, NFS.
const RICH: &[(&str, &str)] = &[
    ("proc/stat", "cpu  1 2 3 4\ncpu0 1 2 3 4\n"),
    (
        "proc/net/rpc/nfs",
        "net 18628 0 18628 6\nrpc 4329785 5 4338291\nproc2 18 2 69 0 1 4410 3 0 4 5 6 7 8 9 10 11 12 99 2\n\
         proc3 22 1 4084749 29200 94754 32580 186 47747 7981 8639 0 6356 0 6962 0 7958 0 0 241 4 4 2 39\n\
         proc4 59 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 \
         39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59\n",
    ),
    (
        "proc/net/rpc/nfsd",
        "rc 0 6 18622\nfh 0 0 0 0 0\nio 157286400 72864\nth 8 0 0.000 0.000\nra 32 0 0 0 0 0 0 0 0 0 0 0\n\
         net 18628 0 18628 6\nrpc 18628 6 1 2 3\nproc2 18 2 69 0 1 4410 3 0 4 5 6 7 8 9 10 11 12 99 2\n\
         proc3 22 2 112 0 2719 111 0 0 0 0 0 0 0 0 0 0 0 27 216 0 2 1 0\nproc4 2 2 10853\n\
         proc4ops 40 0 0 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 \
         35 36 37\n",
    ),
    (
        "proc/slabinfo",
        "slabinfo - version: 2.1\n# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> : \
         tunables <limit> <batchcount> <sharedfactor> : slabdata <active_slabs> <num_slabs> <sharedavail>\n\
         ext4_inode  1200   1300   1024   32    8 : tunables    0    0    0 : slabdata     41     42      0\n\
         kmalloc-64     0      0     64   64    1 : tunables    0    0    0 : slabdata      0      0      0\n",
    ),
    ("sys/class/hwmon/hwmon1/name", "BM C-2\n"),
    ("sys/class/hwmon/hwmon1/power1_input", "99000000\n"),
    ("sys/class/hwmon/hwmon2/temp1_input", "1234\n"),
    ("sys/class/thermal/thermal_zone0/type", "x86_pkg_temp\n"),
    ("sys/class/thermal/thermal_zone0/temp", "46123\n"),
    ("sys/class/thermal/thermal_zone0/policy", "step_wise\n"),
];

/// A chip whose folder is a link, as on a real machine: it is named after its device.
const CHIP: &[(&str, &str)] = &[
    ("name", "coretemp"),
    ("temp1_label", "Package id 0"),
    ("temp1_input", "45000"),
    ("temp2_input", "-1500"),
    ("temp2_label", "Core \"0\" \\"),
    ("fan1_input", "1200"),
    ("in0_input", "12040"),
    ("curr1_input", "1503"),
    ("power1_average", "35500001"),
    ("power1_input", "35500003"),
    ("energy1_input", "123456789"),
    ("humidity1_input", "45123"),
];

const ZONES: &[(&str, &str, &str)] = &[
    ("intel-rapl:0", "package-0", "262143328850"),
    ("intel-rapl:0:0", "core", "118821284257"),
    ("intel-rapl:0:1", "dram", "18821284257"),
    ("intel-rapl:1", "package-1", "7"),
    ("intel-rapl:1:0", "core", "8"),
    ("intel-rapl:2", "psys", "78"),
];

const PORT: &[&str] = &[
    "port_rcv_data",
    "port_xmit_data",
    "port_rcv_packets",
    "port_xmit_packets",
    "symbol_error",
    "link_error_recovery",
    "link_downed",
    "port_rcv_errors",
    "port_rcv_remote_physical_errors",
    "port_rcv_switch_relay_errors",
    "port_xmit_discards",
    "port_xmit_constraint_errors",
    "port_rcv_constraint_errors",
    "local_link_integrity_errors",
    "excessive_buffer_overrun_errors",
    "VL15_dropped",
    "port_xmit_wait",
];

fn put(tree: &Scratch, path: &str, text: &str) {
    let path = tree.path(path);
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    std::fs::write(path, text).expect("a file");
}

fn corpus(name: &str) -> String {
    let path = format!("{}/corpus/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).expect("a text")
}

fn link(tree: &Scratch, target: &str, path: &str) {
    std::os::unix::fs::symlink(target, tree.path(path)).expect("a link");
}

fn put_rich(tree: &Scratch) {
    for (path, text) in RICH {
        put(tree, path, text);
        put(tree, &path.replace("proc/net", "proc/self/net"), text);
    }
    for name in ["interrupts", "softirqs", "buddyinfo"] {
        put(tree, &format!("proc/{name}"), &corpus(name));
    }
    put_chip(tree);
    for (zone, name, energy) in ZONES {
        let zone = format!("sys/class/powercap/{zone}");
        put(tree, &format!("{zone}/name"), name);
        put(tree, &format!("{zone}/energy_uj"), energy);
        put(tree, &format!("{zone}/max_energy_range_uj"), "262143328850");
    }
    for cpu in ["0", "1"] {
        put_clock(tree, cpu);
    }
    put_fabric(tree);
    for node in ["0", "1"] {
        let folder = format!("sys/devices/system/node/node{node}");
        let meminfo = corpus("node_meminfo").replace("Node 0", &format!("Node {node}"));
        put(tree, &format!("{folder}/meminfo"), &meminfo);
        put(
            tree,
            &format!("{folder}/numastat"),
            &corpus("node_numastat"),
        );
    }
}

fn put_chip(tree: &Scratch) {
    const DEVICE: &str = "sys/devices/platform/coretemp.0";
    for (file, text) in CHIP {
        put(
            tree,
            &format!("{DEVICE}/hwmon/hwmon0/{file}"),
            &format!("{text}\n"),
        );
    }
    link(
        tree,
        "../../../coretemp.0",
        &format!("{DEVICE}/hwmon/hwmon0/device"),
    );
    link(
        tree,
        "../../devices/platform/coretemp.0/hwmon/hwmon0",
        "sys/class/hwmon/hwmon0",
    );
}

fn put_clock(tree: &Scratch, cpu: &str) {
    let policy = format!("sys/devices/system/cpu/cpufreq/policy{cpu}");
    for (file, khz) in [
        ("scaling_cur_freq", "2100001"),
        ("scaling_min_freq", "800000"),
        ("scaling_max_freq", "3000000"),
        // Without these files node_exporter exports none of the frequencies.
        ("cpuinfo_min_freq", "800000"),
        ("cpuinfo_max_freq", "3000000"),
        ("cpuinfo_transition_latency", "0"),
        ("scaling_available_governors", "a b"),
        ("scaling_driver", "x"),
        ("scaling_governor", "a"),
        ("scaling_setspeed", "<unsupported>"),
        ("related_cpus", cpu),
    ] {
        put(tree, &format!("{policy}/{file}"), khz);
    }
    let folder = format!("sys/devices/system/cpu/cpu{cpu}");
    std::fs::create_dir_all(tree.path(&folder)).expect("a folder");
    link(
        tree,
        &format!("../cpufreq/policy{cpu}"),
        &format!("{folder}/cpufreq"),
    );
}

fn put_fabric(tree: &Scratch) {
    const FABRIC: &str = "sys/class/infiniband/mlx4_0";
    for port in [1, 2] {
        let port = format!("{FABRIC}/ports/{port}");
        for (at, counter) in PORT.iter().enumerate() {
            put(
                tree,
                &format!("{port}/counters/{counter}"),
                &format!("{}", 1000 + at),
            );
        }
        for (file, text) in [
            ("state", "4: ACTIVE"),
            ("phys_state", "5: LinkUp"),
            ("rate", "40 Gb/sec (4X QDR)"),
            ("link_layer", "InfiniBand"),
        ] {
            put(tree, &format!("{port}/{file}"), text);
        }
    }
    for (file, text) in [
        ("board_id", "SM"),
        ("fw_ver", "2.31"),
        ("hca_type", "MT4099"),
    ] {
        put(tree, &format!("{FABRIC}/{file}"), text);
    }
}

/// Subsystems with several labels: all values are equal, to the last bit, and promtool has no complaint that it does not
/// have about node_exporter.
#[test]
fn the_same_of_chips_and_ports() {
    if let Some(tool) = missing(&["promtool", "prometheus-node-exporter"]) {
        return machine::skipped(&format!("{tool} is missing"));
    }
    let tree = Scratch::new("rich");
    put_rich(&tree);
    let (root, dir) = (tree.text(""), tree.text("ring"));
    stdout_of(&[
        "record", "-s", "jbMfxEyK", "-i", ".1", "-c", "1", "-f", &dir, "--root", &root,
    ]);
    let mut ours = parse(newest(&dir).expect("a sample"));
    let more = |series: &str| {
        series.starts_with("node_nfsd_requests")
            && ONLY_OUR_METHODS.iter().any(|m| series.contains(m))
    };
    ours.values.retain(|series, _| !more(series));
    let node = NodeExporter::start(&[
        format!("--path.procfs={}", tree.text("proc")),
        format!("--path.sysfs={}", tree.text("sys")),
        "--collector.buddyinfo".into(),
        "--collector.interrupts".into(),
        "--collector.meminfo_numa".into(),
        "--collector.slabinfo".into(),
    ]);
    let mut theirs = node.scrape();
    // node_exporter's label of a zone begins with the path of /sys.
    let sys = format!("\"{}/sys/", root.trim_end_matches('/'));
    theirs.values = std::mem::take(&mut theirs.values)
        .into_iter()
        .map(|(series, value)| (series.replace(&sys, "\"/sys/"), value))
        .collect();
    assert_eq!(lacking(&ours, &theirs, &theirs), [""; 0]);
    same_types(&ours, &theirs);
    let mut families = BTreeSet::new();
    let alike = |series: &Series| !MISTAKEN.contains(&&series[..]);
    for (series, value) in ours.values.iter().filter(|(series, _)| alike(series)) {
        if let Some(other) = theirs.values.get(series) {
            assert_eq!(
                value.to_bits(),
                other.to_bits(),
                "{series}: {value}, not {other}"
            );
            families.insert(name_of(series));
        }
    }
    assert_eq!(families.len(), 78, "{families:#?}");
    let more = promtool(&ours.text);
    let more: Vec<_> = more.difference(&promtool(&theirs.text)).cloned().collect();
    assert_eq!(more, [""; 0]);
}

/// RAID arrays and bonds: files of the kernel's formats, with invented numbers.
const ARRAYS_AND_BONDS: &[(&str, &str)] = &[
    ("proc/stat", "cpu  1 2 3 4\ncpu0 1 2 3 4\n"),
    (
        "proc/diskstats",
        "   9       0 md0 1 2 3 4 5 6 7 8 9 10 11\n   9       1 md1 1 2 3 4 5 6 7 8 9 10 11\n",
    ),
    (
        "proc/mdstat",
        "Personalities : [raid1] [raid6] [raid5]\nmd0 : active raid1 sdc1[2](S) sdb1[1](F) sda1[0]\n      \
         1024 blocks super 1.2 [2/1] [U_]\n\nmd1 : active raid6 sdd1[3] sdc1[2] sdb1[1] sda1[0]\n      \
         2048 blocks super 1.2 level 6, 64k chunk, algorithm 2 [4/4] [UUUU]\n\nunused devices: <none>\n",
    ),
    (
        "proc/net/dev",
        "Inter-|   Receive    |  Transmit\n face |bytes    packets|bytes\n bond0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n",
    ),
    ("sys/class/net/bonding_masters", "bond0\n"),
    ("sys/class/net/bond0/operstate", "up\n"),
    ("sys/class/net/bond0/mtu", "1500\n"),
    ("sys/class/net/bond0/bonding/slaves", "eth0 eth1\n"),
    (
        "sys/class/net/bond0/lower_eth0/bonding_slave/mii_status",
        "up\n",
    ),
    (
        "sys/class/net/bond0/lower_eth1/bonding_slave/mii_status",
        "down\n",
    ),
];

/// The series that the mixin's alerts about arrays and bonds ask for.
#[test]
fn the_same_of_arrays_and_bonds() {
    if let Some(tool) = missing(&["prometheus-node-exporter"]) {
        return machine::skipped(&format!("{tool} is missing"));
    }
    let tree = Scratch::new("arrays");
    for (path, text) in ARRAYS_AND_BONDS {
        put(&tree, path, text);
        put(&tree, &path.replace("proc/net", "proc/self/net"), text);
    }
    let (root, dir) = (tree.text(""), tree.text("ring"));
    stdout_of(&[
        "record", "-s", "dn", "-i", ".1", "-c", "1", "-f", &dir, "--root", &root,
    ]);
    let ours = parse(newest(&dir).expect("a sample"));
    let node = NodeExporter::start(&[
        "--collector.disable-defaults".into(),
        "--collector.mdadm".into(),
        "--collector.bonding".into(),
        format!("--path.procfs={}", tree.text("proc")),
        format!("--path.sysfs={}", tree.text("sys")),
    ]);
    let theirs = node.scrape();
    let mut seen = 0;
    for (series, value) in &theirs.values {
        let asked = ["node_md_disks", "node_bonding_"];
        if asked.iter().any(|start| series.starts_with(start)) {
            assert_eq!(ours.values.get(series), Some(value), "{series}");
            seen += 1;
        }
    }
    assert!(seen >= 10, "{:?}", theirs.values);
    same_types(&ours, &theirs);
}

/// File systems of this machine, one of them with a name that needs escapes. Only this test writes to that one.
#[test]
fn the_same_of_file_systems() {
    if let Some(tool) = missing(&["mount", "promtool", "prometheus-node-exporter"]) {
        return machine::skipped(&format!("{tool} is missing"));
    }
    let scratch = Scratch::new("mounted");
    let Some(_mounted) = Tmpfs::mount(&scratch.path("a \"full\" {one}, é"), "1m") else {
        return machine::skipped("nothing can be mounted");
    };
    let dir = scratch.text("ring");
    stdout_of(&["record", "-s", "W", "-i", ".1", "-c", "1", "-f", &dir]);
    let ours = parse(newest(&dir).expect("a sample"));
    let node = NodeExporter::start(&[
        "--collector.disable-defaults".into(),
        "--collector.filesystem".into(),
        "--collector.filesystem.mount-points-exclude=^$".into(),
        format!(
            "--collector.filesystem.fs-types-exclude=^({})$",
            "autofs|binfmt_misc|bpf|cgroup2?|configfs|debugfs|devpts|devtmpfs|efivarfs|fusectl|hugetlbfs|mqueue|nsfs|proc|\
             pstore|rpc_pipefs|securityfs|selinuxfs|squashfs|sysfs|tracefs"
        ),
    ]);
    let theirs = node.scrape();
    same_types(&ours, &theirs);
    let own = scratch.text("a ");
    let full = |series: &&Series| series.contains(&own);
    let of_full: Vec<_> = ours.values.keys().filter(full).collect();
    assert_eq!(of_full.len(), 6, "{of_full:?}");
    for series in of_full {
        assert_eq!(ours.values[series], theirs.values[series], "{series}");
    }
    // Other tests may mount and unmount meanwhile.
    let common = ours
        .values
        .keys()
        .filter(|series| theirs.values.contains_key(*series));
    assert!(common.count() > 6, "{:?}", ours.values);
    let (more, allowed) = (promtool(&ours.text), promtool(&theirs.text));
    assert_eq!(more.difference(&allowed).next(), None);
}

/// Statistics of NFS mounts, in the format of the kernel's `nfs_show_stats`, with invented numbers. The second export has
/// names that need escapes; the third line of the list is the second export mounted again.
fn put_nfs_mounts(tree: &Scratch) {
    let mount = |server: &str, on: &str, versions: &str, said: &str| {
        format!(
            "device {server} mounted on {on} with fstype {versions}\n\topts:\trw,vers=4.2\n\tage:\t77\n\
             \tbytes:\t11 12 13 14 15 16 17 18 \n{said}\n\n"
        )
    };
    let of_4 = "\tRPC iostats version: 1.1  p/v: 100003/4 (nfs)\n\txprt:\ttcp 875 1 2 0 6 7 7 0 7 0 2 0 0\n\
         \tper-op statistics\n\t        NULL: 1 1 0 44 24 0 0 0 0\n\t        READ: 5 6 1 700 800 3 10 20 2\n\
         \t       WRITE: 70000000000 8 2 900 1000 4 1234567 21 3\n\t     GETATTR: 9 10 1 11 12 13 14 15 1";
    let of_3 = "\tRPC iostats version: 1.0  p/v: 100003/3 (nfs)\n\txprt:\tudp 875 1 2 0 6 7 7 0 2 0\n\
         \tper-op statistics\n\t        NULL: 2 2 0 88 48 0 0 0\n\t        READ: 5 6 1 700 800 3 10 20";
    let mountstats = [
        "device proc mounted on /proc with fstype proc\n".to_string(),
        mount("10.0.0.1:/export", "/a\\040b", "nfs4 statvers=1.1", of_4),
        mount("old:/\"x\\\"", "/x", "nfs statvers=1.1", of_3),
        mount("old:/\"x\\\"", "/y", "nfs statvers=1.1", of_3),
        "device tmp mounted on /tmp with fstype tmpfs\n".to_string(),
    ]
    .concat();
    put(tree, "proc/1/mountstats", &mountstats);
    put(
        tree,
        "proc/1/mountinfo",
        "30 23 0:27 / /proc rw - proc proc rw\n\
         31 23 0:28 / /a\\040b rw,relatime shared:1 - nfs4 10.0.0.1:/export rw,vers=4.2,clientaddr=10.0.0.9,addr=10.0.0.1\n\
         32 23 0:29 / /x rw,relatime - nfs old:/\"x\\\" rw,vers=3,addr=fe80::2%eth0\n\
         33 23 0:29 / /y rw,relatime - nfs old:/\"x\\\" rw,vers=3,addr=fe80::2%eth0\n\
         34 23 0:30 / /tmp rw,relatime - tmpfs tmp rw\n",
    );
    put(tree, "proc/stat", "cpu  1 2 3 4\ncpu0 1 2 3 4\n");
    std::os::unix::fs::symlink("1", tree.path("proc/self")).expect("a link");
}

/// The operation in a series' labels, if it has one, and the series without it.
fn by_operation(series: &str) -> (Option<&str>, String) {
    let Some((before, after)) = series.split_once(",operation=\"") else {
        return (None, series.into());
    };
    let (operation, after) = after.split_once('"').expect("a label");
    (Some(operation), format!("{before}{after}"))
}

/// Series of mounts equal node_exporter's, except that operations other than READ and WRITE are added up: a mount has 36
/// series, whatever the server supports.
#[test]
fn the_same_of_nfs_mounts() {
    if let Some(tool) = missing(&["promtool", "prometheus-node-exporter"]) {
        return machine::skipped(&format!("{tool} is missing"));
    }
    let tree = Scratch::new("nfs-mounts");
    put_nfs_mounts(&tree);
    let (root, dir) = (tree.text(""), tree.text("ring"));
    stdout_of(&[
        "record", "-s", "V", "-i", ".1:.1", "-c", "3", "-f", &dir, "--root", &root,
    ]);
    let ours = parse(newest(&dir).expect("a sample"));
    let node = NodeExporter::start(&[
        "--collector.disable-defaults".into(),
        "--collector.mountstats".into(),
        format!("--path.procfs={}", tree.text("proc")),
    ]);
    let theirs = node.scrape();
    same_types(&ours, &theirs);
    let mut added_up = theirs.values.clone();
    added_up.retain(|series, _| !series.contains("operation="));
    for (series, value) in &theirs.values {
        if let (Some(operation), rest) = by_operation(series) {
            let others = match operation {
                "READ" | "WRITE" => operation,
                _ => "others",
            };
            *added_up.entry(format!("{rest}/{others}")).or_default() += value;
        }
    }
    let mine = ours.values.iter().filter_map(|(series, value)| {
        let place = match by_operation(series) {
            (Some(operation), rest) => format!("{rest}/{operation}"),
            (None, rest) => rest,
        };
        let is_known = series.starts_with("node_") && !series.contains("_errors_total");
        is_known.then_some((place, *value))
    });
    let mine: BTreeMap<String, f64> = mine.collect();
    assert_eq!(mine.len(), (9 + 3 * 8) + (9 + 2 * 8), "{mine:#?}");
    for (place, value) in &mine {
        let other = added_up.get(place);
        let other = other.unwrap_or_else(|| panic!("no {place} in {added_up:#?}"));
        assert!(
            (value - other).abs() <= 1e-9 * value.abs(),
            "{place}: {value}, not {other}"
        );
    }
    let errors = ours
        .values
        .iter()
        .filter(|(series, _)| series.contains("_errors_total"));
    assert_eq!(
        errors.map(|(_, errors)| *errors).collect::<Vec<_>>(),
        [2.0, 3.0, 1.0]
    );
    let (more, allowed) = (promtool(&ours.text), promtool(&theirs.text));
    assert_eq!(more.difference(&allowed).next(), None);
}

/// File systems are read each minute, and other tests mount and unmount some: [`the_same_of_file_systems`] compares them.
fn is_of_file_system(series: &str) -> bool {
    series.starts_with("node_filesystem_")
}

#[test]
fn as_node_exporter_has_it() {
    if let Some(tool) = missing(&["promtool", "prometheus-node-exporter"]) {
        return machine::skipped(&format!("{tool} is missing"));
    }
    let _devices = machine::hold_devices();
    // Only root can add an interface; without it the names are tamer.
    let _hostile = Interface::add("q\"{\\}=,");
    let (node, kymo) = (NodeExporter::start(&[]), Kymo::start());
    let mut verdicts = BTreeMap::new();
    for _ in 0..ROUNDS {
        let before = node.scrape();
        let mut ours = kymo.scrape_after(now());
        ours.values.retain(|series, _| !is_of_file_system(series));
        ours.types.retain(|name, _| !is_of_file_system(name));
        let after = node.scrape();
        assert_eq!(lacking(&ours, &before, &after), [""; 0]);
        same_types(&ours, &before);
        compare(&ours, &before, &after, &mut verdicts);
        let complaints = promtool(&ours.text);
        let allowed = promtool(&before.text);
        let more = complaints.difference(&allowed);
        // Names of the kernel in node_exporter's spelling, which it has behind switches alone.
        let is_ours = |said: &&String| ONLY_OURS.iter().any(|name| said.starts_with(name));
        let more: Vec<_> = more.filter(|said| !is_ours(said)).collect();
        assert!(more.is_empty(), "promtool: {more:?}");
    }
    let equal = verdicts
        .values()
        .filter(|verdict| verdict.equal > 0)
        .count();
    let wrong: Vec<_> = verdicts
        .iter()
        .filter(|(_, verdict)| verdict.is_wrong())
        .collect();
    eprintln!(
        "{} series, {equal} of them equal while neither moved",
        verdicts.len()
    );
    assert!(wrong.is_empty(), "not as node_exporter has it: {wrong:#?}");
    assert!(equal > 50, "too few were seen at rest: {equal}");
}

#[test]
fn prometheus_scrapes_both() {
    if let Some(tool) = missing(&["prometheus", "prometheus-node-exporter"]) {
        return machine::skipped(&format!("{tool} is missing"));
    }
    let _devices = machine::hold_devices();
    let (node, kymo) = (NodeExporter::start(&[]), Kymo::start());
    let prometheus = Prometheus::start(&[("kymo", kymo.port), ("node", node.port)]);
    prometheus.wait_until("min(count_over_time(up[10s])) >= 9 and min(min_over_time(up[5s])) == 1");
    let moment = now() - 3.0;

    let ours = prometheus.values("{__name__=~\"node_.*\",job=\"kymo\"}", moment);
    let theirs = prometheus.ranges("{__name__=~\"node_.*\",job=\"node\"}[8s]", now());
    let (mut still, mut moving) = (0, 0);
    for (series, value) in ours.iter().filter(|(series, _)| !is_of_file_system(series)) {
        let Some(range) = theirs.get(series) else {
            assert!(ONLY_OURS.contains(&name_of(series)), "{series}");
            continue;
        };
        let (first, last) = (range[0], range[range.len() - 1]);
        let is_total = name_of(series).ends_with("_total");
        if is_total && range.iter().all(|v| *v == first) {
            assert_eq!(*value, first, "{series}");
            still += 1;
        } else if is_total && !may_step_back(series) {
            assert!(
                first <= *value && *value <= last,
                "{series}: {value} is not in {range:?}"
            );
            moving += 1;
        }
    }
    eprintln!("{still} counters at rest, {moving} moving");
    assert!(still > 20 && moving > 10, "too little to compare");

    let own = prometheus.values("{__name__=~\"kymo_.*\",job=\"kymo\"}", moment);
    let newest = own["kymo_last_sample_timestamp_seconds"];
    assert!(
        (moment - newest).abs() < 5.0,
        "{newest} is not now, {moment}"
    );
    for (name, least) in [
        ("kymo_cpu_seconds_total{process=\"recorder\"}", 0.0),
        ("kymo_memory_bytes{process=\"recorder\"}", 100_000.0),
        ("kymo_memory_bytes{process=\"hub\"}", 100_000.0),
        ("kymo_samples_total", 3.0),
        ("kymo_samples_missed_total", 0.0),
        ("kymo_ring_bytes", 1.0),
    ] {
        let value = own
            .get(name)
            .unwrap_or_else(|| panic!("no {name} in {own:?}"));
        assert!(*value >= least, "{name}: {value}");
    }
    assert_eq!(prometheus.complaints(), "");
}

/// Results of the rounds for one series.
#[derive(Default, Debug)]
struct Verdict {
    /// Rounds in which node_exporter's value did not change and kymo's was equal.
    equal: usize,
    /// Rounds in which node_exporter's value did not change and kymo's differed: node_exporter's value, and kymo's.
    unequal: Vec<(f64, f64)>,
    /// Rounds in which a counter was not between node_exporter's values: before, kymo's, after.
    outside: Vec<(f64, f64, f64)>,
    is_counter: bool,
}

impl Verdict {
    /// A counter that is equal before and after did not change. A gauge may have come back, but not in most rounds.
    fn is_wrong(&self) -> bool {
        let unequal = match self.is_counter {
            true => !self.unequal.is_empty(),
            false => self.equal == 0 && self.unequal.len() > ROUNDS / 2,
        };
        unequal || !self.outside.is_empty()
    }
}

fn compare(
    ours: &Exposition,
    before: &Exposition,
    after: &Exposition,
    verdicts: &mut BTreeMap<Series, Verdict>,
) {
    for (series, &value) in &ours.values {
        let (Some(&first), Some(&last)) = (before.values.get(series), after.values.get(series))
        else {
            continue;
        };
        // Each is about its own process.
        let is_own = series.starts_with("process_");
        if is_own || MOMENTARY.contains(&name_of(series)) {
            continue;
        }
        let verdict = verdicts.entry(series.clone()).or_default();
        let is_vmstat = series.starts_with("node_vmstat_");
        verdict.is_counter = is_vmstat || before.types[name_of(series)] == "counter";
        // node_exporter does not let these series decrease; they step back by a tick or two.
        let slack = if may_step_back(series) { 0.05 } else { 0.0 };
        if first == last && (value - first).abs() <= slack {
            verdict.equal += 1;
        } else if first == last {
            verdict.unequal.push((first, value));
        } else if verdict.is_counter && !(first - slack <= value && value <= last + slack) {
            verdict.outside.push((first, value, last));
        }
    }
}

fn may_step_back(series: &str) -> bool {
    series.contains("mode=\"idle\"")
        || series.contains("mode=\"iowait\"")
        || series.starts_with("node_disk_io_time_weighted")
}

/// Series of node_exporter that kymo lacks, among names that both have. Panics if kymo has one that node_exporter lacks.
fn lacking(ours: &Exposition, before: &Exposition, after: &Exposition) -> Vec<Series> {
    let of = |exposition: &Exposition| -> BTreeSet<Series> {
        let named = exposition.values.keys().filter(|series| {
            let name = name_of(series);
            name.starts_with("node_") && ours.types.contains_key(name) && !ONLY_OURS.contains(&name)
        });
        named.cloned().collect()
    };
    // Now and then a device comes or goes between the scrapes.
    let (ours, before, after) = (of(ours), of(before), of(after));
    let either: BTreeSet<_> = before.union(&after).cloned().collect();
    let more: Vec<_> = ours.difference(&either).collect();
    assert!(more.is_empty(), "not of node_exporter: {more:?}");
    assert!(ours.len() > 40, "too few: {ours:?}");
    before
        .intersection(&after)
        .filter(|series| !ours.contains(*series))
        .cloned()
        .collect()
}

fn same_types(ours: &Exposition, theirs: &Exposition) {
    for (name, kind) in &ours.types {
        if let Some(other) = theirs.types.get(name) {
            assert_eq!(kind, other, "{name}");
        }
    }
}

fn name_of(series: &str) -> &str {
    series.split('{').next().unwrap_or_default()
}

/// Parses an exposition. Labels are sorted, since both programs write them in different orders.
fn parse(text: String) -> Exposition {
    let (mut values, mut types) = (BTreeMap::new(), BTreeMap::new());
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("a type");
            types.insert(name.to_string(), kind.to_string());
        } else if !line.starts_with('#') {
            let (series, value) = line.rsplit_once(' ').expect("a value");
            let value = value.parse().expect("a number");
            assert!(
                values.insert(sorted(series), value).is_none(),
                "twice: {series}"
            );
        }
    }
    Exposition {
        text,
        values,
        types,
    }
}

fn sorted(series: &str) -> Series {
    let Some((name, labels)) = series.strip_suffix('}').and_then(|s| s.split_once('{')) else {
        return series.into();
    };
    // Names of labels are words. `",` and `="` separate labels as long as no value contains both.
    let mut labels: Vec<&str> = labels
        .split("\",")
        .map(|label| label.trim_end_matches('"'))
        .collect();
    labels.sort_unstable();
    let labels: Vec<String> = labels.iter().map(|label| format!("{label}\"")).collect();
    format!("{name}{{{}}}", labels.join(","))
}

/// Lines of `promtool check metrics`.
fn promtool(text: &str) -> BTreeSet<String> {
    let child = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.expect("promtool");
    let mut stdin = child.stdin.take().expect("its stdin");
    stdin.write_all(text.as_bytes()).expect("promtool reads");
    drop(stdin);
    let output = child.wait_with_output().expect("promtool");
    let said = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&said)
        .lines()
        .map(str::to_string)
        .collect()
}

/// The first tool that is missing.
fn missing<'a>(tools: &[&'a str]) -> Option<&'a str> {
    tools.iter().copied().find(|tool| !runs(tool))
}

fn runs(tool: &str) -> bool {
    let quiet = Command::new(tool)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    quiet.is_ok_and(|status| status.success())
}

fn now() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.expect("after 1970").as_secs_f64()
}

/// The body of an answer; `None`: no listener, or an error.
fn get(port: u16, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .ok()?;
    write!(
        stream,
        "GET {path} HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\n\r\n"
    )
    .ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    let answer = String::from_utf8(answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    head.split(' ').nth(1).filter(|status| *status == "200")?;
    Some(body.to_string())
}

/// Repeats `ask` for up to half a minute.
fn wait_for<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < end, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn spawn(command: &mut Command) -> Running {
    let child: std::io::Result<Child> = command.stdin(Stdio::null()).spawn();
    Running(child.unwrap_or_else(|error| panic!("cannot run {command:?}: {error}")))
}

/// node_exporter with its defaults, except for `lo`, which Debian's leaves out.
struct NodeExporter {
    port: u16,
    _running: Running,
}

impl NodeExporter {
    fn start(arguments: &[String]) -> NodeExporter {
        let port = free_port();
        let running = spawn(
            Command::new("prometheus-node-exporter")
                .arg(format!("--web.listen-address=127.0.0.1:{port}"))
                .arg("--collector.netdev.device-exclude=^$")
                .args(arguments)
                .stderr(Stdio::null()),
        );
        wait_for("node_exporter", || get(port, "/"));
        NodeExporter {
            port,
            _running: running,
        }
    }

    fn scrape(&self) -> Exposition {
        parse(get(self.port, "/metrics").expect("node_exporter's metrics"))
    }
}

/// Debian's Prometheus, scraping each second.
struct Prometheus {
    port: u16,
    scratch: Scratch,
    _running: Running,
}

impl Prometheus {
    fn start(jobs: &[(&str, u16)]) -> Prometheus {
        let (scratch, port) = (Scratch::new("prometheus"), free_port());
        let mut config =
            "global: {scrape_interval: 1s, scrape_timeout: 1s}\nscrape_configs:\n".to_string();
        for (job, port) in jobs {
            config += &format!(
                "- job_name: {job}\n  static_configs: [{{targets: ['127.0.0.1:{port}']}}]\n"
            );
        }
        std::fs::write(scratch.path("prometheus.yml"), config).expect("its configuration");
        let log = File::create(scratch.path("log")).expect("its log");
        let running = spawn(
            Command::new("prometheus")
                .arg(format!("--config.file={}", scratch.text("prometheus.yml")))
                .arg(format!("--storage.tsdb.path={}", scratch.text("tsdb")))
                .arg(format!("--web.listen-address=127.0.0.1:{port}"))
                .arg("--log.level=warn")
                .stdout(Stdio::null())
                .stderr(log),
        );
        wait_for("Prometheus", || get(port, "/-/ready"));
        Prometheus {
            port,
            scratch,
            _running: running,
        }
    }

    fn query(&self, query: &str, time: f64) -> Vec<Value> {
        let encoded: String = query.bytes().map(|b| format!("%{b:02x}")).collect();
        let path = format!("/api/v1/query?query={encoded}&time={time:.3}");
        let answer = get(self.port, &path).unwrap_or_else(|| panic!("no answer to {query}"));
        let answer: Value = serde_json::from_str(&answer).expect("JSON");
        answer["data"]["result"]
            .as_array()
            .expect("a result")
            .clone()
    }

    fn wait_until(&self, query: &str) {
        wait_for(query, || {
            (!self.query(query, now()).is_empty()).then_some(())
        });
    }

    fn values(&self, query: &str, time: f64) -> BTreeMap<Series, f64> {
        let results = self.query(query, time);
        let pairs = results
            .iter()
            .map(|result| (series_of(result), number(&result["value"])));
        pairs.collect()
    }

    fn ranges(&self, query: &str, time: f64) -> BTreeMap<Series, Vec<f64>> {
        let results = self.query(query, time);
        let pairs = results.iter().map(|result| {
            let points = result["values"].as_array().expect("points");
            (series_of(result), points.iter().map(number).collect())
        });
        pairs.collect()
    }

    /// Warnings and errors in the log.
    fn complaints(&self) -> String {
        std::fs::read_to_string(self.scratch.path("log")).expect("its log")
    }
}

fn number(point: &Value) -> f64 {
    let text = point[1].as_str().expect("a value");
    text.parse().expect("a number")
}

/// The series without the labels that Prometheus adds.
fn series_of(result: &Value) -> Series {
    let labels = result["metric"].as_object().expect("labels");
    let added = ["__name__", "job", "instance"];
    let own = labels
        .iter()
        .filter(|(key, _)| !added.contains(&key.as_str()));
    let own: Vec<String> = own
        .filter_map(|(key, value)| Some(format!("{key}=\"{}\"", value.as_str()?)))
        .collect();
    let name = labels["__name__"].as_str().expect("a name");
    match own.is_empty() {
        true => name.into(),
        false => format!("{name}{{{}}}", own.join(",")),
    }
}

/// kymo's exposition of the newest sample in a recording.
fn newest(dir: &str) -> Option<String> {
    let mut recorded = Recorded::open(dir.as_ref(), TimeRange::ALL, Kinds::ALL).ok()?;
    let all = subsystem::ALL.iter();
    let mut states: Vec<_> = all
        .map(|&subsystem| (subsystem, Interpreter::new(subsystem), Reading::default()))
        .collect();
    let mut cost = Cost::UNKNOWN;
    while let Some(step) = recorded.next().ok()? {
        if let Step::Sample(moment) = step {
            cost.newest = moment.real_ns as f64 / 1e9;
            for (_, interpreter, reading) in &mut states {
                interpreter.read(recorded.tracks(), recorded.context(), reading);
            }
        }
    }
    let readings = states
        .iter()
        .map(|(subsystem, _, reading)| (*subsystem, reading));
    let mut out = Vec::new();
    let floor = &mut Floor::default();
    prometheus::write(&mut out, floor, readings, recorded.context(), &cost);
    String::from_utf8(out).ok()
}

/// `kymo serve`, recording each second.
struct Kymo {
    port: u16,
    running: Running,
    _scratch: Scratch,
}

impl Kymo {
    fn start() -> Kymo {
        let (scratch, port) = (Scratch::new("metrics"), free_port());
        let running = spawn(
            Command::new(kymo_tests::kymo())
                .args(["serve", "--data", &scratch.text("kymo")])
                .args(["--listen", &format!("127.0.0.1:{port}")])
                .stdout(Stdio::null())
                .stderr(Stdio::null()),
        );
        let kymo = Kymo {
            port,
            running,
            _scratch: scratch,
        };
        kymo.scrape_after(0.0);
        kymo
    }

    /// The newest sample that began after `time`.
    fn scrape_after(&self, time: f64) -> Exposition {
        wait_for("a sample", || {
            let exposition = parse(get(self.port, "/metrics")?);
            let newest = *exposition
                .values
                .get("kymo_last_sample_timestamp_seconds")?;
            (newest > time).then_some(exposition)
        })
    }
}

impl Drop for Kymo {
    /// SIGTERM lets `kymo serve` end its children; SIGKILL would not.
    fn drop(&mut self) {
        self.running.signal("-TERM");
        let end = Instant::now() + Duration::from_secs(10);
        while matches!(self.running.0.try_wait(), Ok(None)) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
