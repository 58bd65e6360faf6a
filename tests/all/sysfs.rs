//! Folders of small files with one value each: sensors, fabric ports and NUMA nodes. This machine has few of them; the
//! trees are generated, with names and values from the kernel's documents.

use std::fs;

use kymo_tests::{Scratch, put, run, stdout_of};
use serde_json::Value;

/// Paths below a root, and their texts.
const TREE: &[(&str, &str)] = &[
    ("proc/stat", "cpu  1 2 3 4\ncpu0 1 2 3 4\n"),
    ("sys/class/hwmon/hwmon0/name", "coretemp\n"),
    ("sys/class/hwmon/hwmon0/temp1_label", "Package id 0\n"),
    ("sys/class/hwmon/hwmon0/temp1_input", "45000\n"),
    ("sys/class/hwmon/hwmon0/temp2_input", "-1500\n"),
    ("sys/class/hwmon/hwmon0/temp2_crit", "99000\n"),
    ("sys/class/hwmon/hwmon0/fan1_input", "1200\n"),
    ("sys/class/hwmon/hwmon0/uevent", "NOTHING=1\n"),
    ("sys/class/hwmon/hwmon3/name", "bmc\n"),
    ("sys/class/hwmon/hwmon3/in0_input", "12040\n"),
    ("sys/class/hwmon/hwmon3/power1_average", "35500000\n"),
    ("sys/class/thermal/thermal_zone0/type", "x86_pkg_temp\n"),
    ("sys/class/thermal/thermal_zone0/temp", "46000\n"),
    ("sys/class/thermal/thermal_zone1/type", "x86_pkg_temp\n"),
    ("sys/class/thermal/thermal_zone1/temp", "51000\n"),
    ("sys/class/thermal/cooling_device0/type", "Processor\n"),
    ("sys/class/powercap/intel-rapl:0/name", "package-0\n"),
    (
        "sys/class/powercap/intel-rapl:0/energy_uj",
        "262143328850\n",
    ),
    (
        "sys/devices/system/cpu/cpufreq/policy0/scaling_cur_freq",
        "2100000\n",
    ),
    (
        "sys/class/infiniband/rocep1s0/ports/2/link_layer",
        "Ethernet\n",
    ),
    ("sys/class/infiniband/rocep1s0/ports/2/state", "4: ACTIVE\n"),
    (
        "sys/class/infiniband/rocep1s0/ports/2/counters/port_rcv_data",
        "1000000\n",
    ),
    (
        "sys/class/infiniband/rocep1s0/ports/2/counters/port_xmit_data",
        "5\n",
    ),
    (
        "sys/class/infiniband/rocep1s0/ports/2/counters/port_rcv_packets",
        "7\n",
    ),
    (
        "sys/class/infiniband/rocep1s0/ports/2/counters/port_xmit_packets",
        "8\n",
    ),
    (
        "sys/class/infiniband/rocep1s0/ports/2/counters/symbol_error",
        "3\n",
    ),
    (
        "sys/devices/system/node/node0/meminfo",
        "Node 0 MemFree:  1000 kB\nNode 0 MemUsed:  3000 kB\n",
    ),
    (
        "sys/devices/system/node/node0/numastat",
        "numa_hit 5\nnuma_miss 0\nnuma_foreign 0\n",
    ),
    (
        "sys/devices/system/node/node17/meminfo",
        "Node 17 MemFree:  5000 kB\nNode 17 MemUsed:  7000 kB\n",
    ),
    (
        "sys/devices/system/node/node17/numastat",
        "numa_hit 5\nnuma_miss 0\nnuma_foreign 0\n",
    ),
    ("sys/devices/system/node/online", "0,17\n"),
];

fn rows(dir: &str, letter: &str) -> Vec<Value> {
    let json = stdout_of(&["play", dir, "-s", letter, "--json"]);
    let row = |line: &str| serde_json::from_str(line).expect("JSON");
    json.lines().map(row).collect()
}

/// Counters change during the recording; recorded values are those in the files.
#[test]
fn small_files_are_read_as_they_are() {
    let scratch = Scratch::new("sysfs");
    for (path, text) in TREE {
        put(&scratch.path("root"), path, text);
    }
    let (root, dir) = (scratch.text("root"), scratch.text("ring"));
    let record = [
        "record", "-s", "cEXM", "-i", "0:1", "-c", "2", "--root", &root, "-f", &dir,
    ];
    stdout_of(&record);
    let sensors = rows(&dir, "E");
    let of = |sensor: &str| {
        let found = sensors.iter().find(|row| row["sensors.sensor"] == sensor);
        found.unwrap_or_else(|| panic!("no {sensor} in {sensors:?}"))
    };
    for (sensor, chip, column, expect) in [
        ("0/temp1", "coretemp", "celsius", 45.0),
        ("0/temp2", "coretemp", "celsius", -1.5),
        ("0/fan1", "coretemp", "rpm", 1200.0),
        ("3/in0", "bmc", "volts", 12.04),
        ("3/power1", "bmc", "watts", 35.5),
        ("0/thermal", "x86_pkg_temp", "celsius", 46.0),
        ("1/thermal", "x86_pkg_temp", "celsius", 51.0),
        ("intel-rapl:0/energy", "package-0", "watts", 0.0),
        ("0/frequency", "cpufreq", "mhz", 2100.0),
    ] {
        let row = of(sensor);
        assert_eq!(row["sensors.chip"], chip);
        assert_eq!(
            row[format!("sensors.{column}")].as_f64(),
            Some(expect),
            "{row}"
        );
    }
    assert_eq!(of("0/temp1")["sensors.label"], "Package id 0");
    // Two sockets have zones of the same type, which the terminal distinguishes.
    let shown = stdout_of(&["play", &dir, "-s", "E"]);
    for (zone, celsius) in [("x86_pkg_temp@0", "46.0"), ("x86_pkg_temp@1", "51.0")] {
        let row = shown.lines().find(|row| row.starts_with(zone));
        let row = row.unwrap_or_else(|| panic!("no {zone}: {shown}"));
        assert_eq!(row.split_whitespace().nth(2), Some(celsius), "{shown}");
    }
    let ports = rows(&dir, "X");
    assert_eq!(ports.len(), 2, "{ports:?}");
    assert_eq!(ports[0]["infiniband.port"], "rocep1s0:2");
    assert_eq!(ports[0]["infiniband.link_layer"], "Ethernet");
    assert_eq!(ports[0]["infiniband.state"].as_f64(), Some(4.0));
    let nodes: Vec<_> = rows(&dir, "M")
        .iter()
        .map(|row| row["numa.total"].as_f64())
        .collect();
    assert_eq!(
        nodes,
        [Some(4000.0), Some(12000.0), Some(4000.0), Some(12000.0)]
    );
    // Each file is a line, with the kernel's own text.
    let dump = run(&["dump", &dir, "--source", "sys/class/hwmon/hwmon0"]).stdout;
    let dump = String::from_utf8_lossy(&dump);
    assert!(
        dump.contains("name coretemp\ntemp1_label Package id 0\ntemp1_input 45000\ntemp2_input -1500\nfan1_input 1200\n"),
        "{dump}"
    );
}

/// kymo's own use is that in /proc.
#[test]
fn kymo_sees_itself() {
    let text = stdout_of(&["-sK", "-i.2", "-c3", "--json"]);
    let row: Value = serde_json::from_str(text.lines().last().expect("a row")).expect("JSON");
    let number = |column: &str| row[format!("kymo.{column}")].as_f64().unwrap_or(-1.0);
    assert!((0.0..400.0).contains(&number("cpu")), "{row}");
    assert!((500.0..200_000.0).contains(&number("rss_kb")), "{row}");
    // Two reads of kymo's own files in each sample, five samples a second.
    assert!(number("reads") >= 9.0 && number("read_kb") > 0.0, "{row}");
}

/// Statistics of an NFS mount after `n` READs, in the format of the kernel's `nfs_show_stats`, with invented numbers.
fn mountstats(n: u64) -> String {
    format!(
        "device proc mounted on /proc with fstype proc\n\
         device 10.0.0.1:/export mounted on /a\\040b with fstype nfs4 statvers=1.1\n\
         \topts:\trw,vers=4.2,rsize=1048576\n\tage:\t77\n\tbytes:\t{0} 2 3 4 5 6 7 8 \n\
         \tRPC iostats version: 1.1  p/v: 100003/4 (nfs)\n\txprt:\ttcp 875 1 2 0 6 7 7 0 7 0 2 0 0\n\
         \tper-op statistics\n\t        NULL: 1 1 0 44 24 0 0 0 0\n\
         \t        READ: {n} {1} 0 {0} {0} {n} {2} {3} 0\n",
        n * 1024,
        n + n / 2,
        n * 4,
        n * 6
    )
}

/// Each READ takes 4 ms on the way and 6 ms in all, and every second one is sent again.
#[test]
fn nfs_mounts_say_what_their_operations_take() {
    let scratch = Scratch::new("mountstats");
    put(
        &scratch.path("root"),
        "proc/stat",
        "cpu  1 2 3 4\ncpu0 1 2 3 4\n",
    );
    put(
        &scratch.path("root"),
        "proc/1/mountstats",
        &mountstats(1000),
    );
    let (root, dir) = (scratch.text("root"), scratch.text("ring"));
    let ended = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 501.. {
                if ended.load(std::sync::atomic::Ordering::Relaxed) {
                    break;
                }
                put(&scratch.path("root"), "proc/1/new", &mountstats(2 * n));
                let at = |name: &str| scratch.path(&format!("root/proc/1/{name}"));
                fs::rename(at("new"), at("mountstats")).expect("a file");
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
        });
        let record = [
            "record", "-s", "V", "-i", ".2:.2", "-c", "8", "--root", &root, "-f", &dir,
        ];
        let output = run(&record);
        ended.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(output.status.success(), "{output:?}");
    });
    let said = rows(&dir, "V");
    // A sample for which a busy machine was late has no numbers.
    let known = |row: &&Value| {
        row.get("nfs_mounts.reads")
            .is_some_and(|n| n.as_f64() > Some(0.0))
    };
    let moved: Vec<&Value> = said.iter().filter(known).collect();
    assert!(moved.len() >= 2, "{said:?}");
    for row in moved {
        let number = |column: &str| row[format!("nfs_mounts.{column}")].as_f64().expect(column);
        assert_eq!(row["nfs_mounts.mount"], "/a\\040b");
        assert_eq!(row["nfs_mounts.server"], "10.0.0.1:/export");
        assert_eq!((number("read_rtt_ms"), number("read_exe_ms")), (4.0, 6.0));
        assert_eq!((number("rtt_ms"), number("queue_ms")), (4.0, 1.0));
        let (reads, kb) = (number("reads"), number("read_kb"));
        assert!((kb - 2.0 * reads).abs() < 0.01 * kb, "{row}");
        let again = number("read_retransmits");
        assert!((again - reads / 2.0).abs() < 0.01 * reads, "{row}");
        assert!(
            (number("program_read_kb") - reads).abs() < 0.01 * reads,
            "{row}"
        );
        assert!(row.get("nfs_mounts.writes").is_none(), "{row}");
    }
}
