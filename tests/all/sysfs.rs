//! What the kernel says in folders of small files, one value each: sensors, fabric ports and NUMA nodes. This machine has
//! few of them; the trees are generated, with the names and values that the kernel's documents give.

use std::fs;

use kymo_tests::{Scratch, run, stdout_of};
use serde_json::Value;

/// Files below a root, and what is in them.
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

fn put(scratch: &Scratch, path: &str, text: &str) {
    let path = scratch.path(&format!("root/{path}"));
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(path, text).expect("a file");
}

fn rows(dir: &str, letter: &str) -> Vec<Value> {
    let json = stdout_of(&["play", dir, "-s", letter, "--json"]);
    let row = |line: &str| serde_json::from_str(line).expect("JSON");
    json.lines().map(row).collect()
}

/// Counters move while it is recorded; what is read is what is in the files.
#[test]
fn small_files_are_read_as_they_are() {
    let scratch = Scratch::new("sysfs");
    for (path, text) in TREE {
        put(&scratch, path, text);
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
    // Each file is a line, in the kernel's own words.
    let dump = run(&["dump", &dir, "--source", "sys/class/hwmon/hwmon0"]).stdout;
    let dump = String::from_utf8_lossy(&dump);
    assert!(
        dump.contains("name coretemp\ntemp1_label Package id 0\ntemp1_input 45000\ntemp2_input -1500\nfan1_input 1200\n"),
        "{dump}"
    );
}

/// What kymo itself takes is what /proc says of a process.
#[test]
fn kymo_sees_itself() {
    let text = stdout_of(&["-sK", "-i.2", "-c3", "--json"]);
    let row: Value = serde_json::from_str(text.lines().last().expect("a row")).expect("JSON");
    let number = |column: &str| row[format!("kymo.{column}")].as_f64().unwrap_or(-1.0);
    assert!((0.0..400.0).contains(&number("cpu")), "{row}");
    assert!((500.0..200_000.0).contains(&number("rss_kb")), "{row}");
    // Two files of its own a sample, five samples a second.
    assert!(number("reads") >= 9.0 && number("read_kb") > 0.0, "{row}");
}
