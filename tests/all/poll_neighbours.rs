//! `kymo poll --neighbours` beside Debian's snmpd, whose configuration gives it the tables of LLDP-MIB.

use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use kymo_tests::snmpd::Snmpd;
use kymo_tests::{Scratch, kymo, machine};

pub(crate) const HOSTILE: &str = "<script>alert(1)</script>";

/// Lines that give an agent its name, two ports, and their neighbours: one with a name, one with a hardware address alone.
pub(crate) fn tables(name: &str, neighbour: &str) -> String {
    let mut lines = format!("sysName {name}\n");
    let mut put = |column: &str, value: &str| {
        writeln!(lines, "override .1.0.8802.1.1.2.1.{column} {value}").expect("a line");
    };
    // The first is named by its ifIndex alone, as Juniper does it; the second is no interface.
    for (number, subtype, port) in [(1, 7, "1"), (2, 5, "xe-0/0/2")] {
        put(&format!("3.7.1.2.{number}"), &format!("integer {subtype}"));
        put(&format!("3.7.1.3.{number}"), &format!("octet_str {port}"));
    }
    for (number, column, value) in [
        (1, 4, "integer 7"),
        (1, 5, "octet_str chassis-1"),
        (1, 6, "integer 5"),
        (1, 7, "octet_str lo"),
        (1, 8, "octet_str uplink"),
        (1, 9, &*format!("octet_str {neighbour}")),
        (2, 4, "integer 4"),
        (2, 5, "octet_str 0x001b2c030405"),
        (2, 6, "integer 7"),
        (2, 7, "octet_str 9"),
        (2, 8, &*format!("octet_str {HOSTILE}")),
    ] {
        put(&format!("4.1.1.{column}.17.{number}.1"), value);
    }
    lines
}

/// Output and messages of the command with these words, and its exit code.
fn neighbours(words: &[&str]) -> (String, String, Option<i32>) {
    let mut command = Command::new(kymo());
    command.args(["poll", "--neighbours"]).args(words);
    let output = command.output().expect("kymo runs");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (
        text(output.stdout),
        text(output.stderr),
        output.status.code(),
    )
}

#[test]
fn neighbours_are_a_list_and_a_map() {
    if machine::must_skip(&["snmpd"]) {
        return;
    }
    let one = Snmpd::start("127.0.12.30", &tables("core-1", "core-2"));
    let user = "createUser known SHA-256 \"s3cr3t-signing\"\nrouser known auth\n";
    let two = Snmpd::start(
        "127.0.12.31",
        &format!("{user}{}", tables("core-2", "core-1")),
    );
    let without = Snmpd::start("127.0.12.32", "sysName edge");
    let scratch = Scratch::new("neighbours");
    let target = |name: &str, agent: &Snmpd, community: &str, version: &str| {
        let (ip, port) = (agent.address.ip(), agent.address.port());
        format!(
            "Target[{name}]: ifInOctets.1&ifOutOctets.1:{community}@{ip}:{port}:1:1::{version}\n\
             MaxBytes[{name}]: 1\nTitle[{name}]: t\n"
        )
    };
    let config = format!(
        "WorkDir: {}\nLogFormat: rrdtool\nEnableSnmpV3: yes\n{}{}{}{}\
         SnmpOptions[b]: username => 'known', authprotocol => 'sha256', authpassword => 's3cr3t-signing', timeout => 2\n",
        scratch.text(""),
        target("a", &one, "public", "2"),
        target("a2", &one, "public", "2"),
        target("b", &two, "x", "3"),
        target("c", &without, "public", "1"),
    );
    fs::write(scratch.path("a.cfg"), config).expect("a file");
    let file = scratch.text("a.cfg");
    let (list, said, code) = neighbours(&[&file]);
    assert_eq!((&*said, code), ("", Some(0)), "{list}");
    let (one, two) = (one.address.to_string(), two.address.to_string());
    let rows: Vec<Vec<&str>> = list
        .lines()
        .map(|line| {
            line.split("  ")
                .map(str::trim)
                .filter(|cell| !cell.is_empty())
                .collect()
        })
        .collect();
    let rows: Vec<&[&str]> = rows.iter().map(Vec::as_slice).collect();
    let expected: [&[&str]; 5] = [
        &[
            "device",
            "port",
            "neighbour",
            "its port",
            "description",
            "traffic, b/s",
        ],
        &[&one, "lo", "core-2", "lo", "uplink"],
        &[&one, "xe-0/0/2", "00:1b:2c:03:04:05", "9", HOSTILE],
        &[&two, "lo", "core-1", "lo", "uplink"],
        &[&two, "xe-0/0/2", "00:1b:2c:03:04:05", "9", HOSTILE],
    ];
    assert_eq!(rows, expected, "{list}");
    // The interface lo has traffic, that of these questions at least. snmpd renews its counters each 15 s.
    let (lines, _, code) = neighbours(&["--format", "json", "--traffic", "20", &file]);
    assert_eq!(code, Some(0));
    let objects: Vec<serde_json::Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(objects.len(), 4);
    assert_eq!(objects[0]["neighbour"], "core-2");
    assert!(
        objects[0]["in_bits_per_second"].as_u64() > Some(0),
        "{lines}"
    );
    assert!(objects[1]["in_bits_per_second"].is_null(), "{lines}");
    let (map, _, _) = neighbours(&["--format", "svg", &file]);
    // Both ends of the line between core-1 and core-2 tell of it; it is drawn once.
    assert_eq!(map.matches("<line").count(), 3, "{map}");
    for name in [">core-1<", ">core-2<", ">edge<", ">00:1b:2c:03:04:05<"] {
        assert_eq!(map.matches(name).count(), 1, "{name}: {map}");
    }
    assert!(!map.contains("<script"));
    // A device that is away is named, and the others are listed.
    let port = without.address.port();
    drop(without);
    let (list, said, code) = neighbours(&[&file]);
    assert_eq!((list.lines().count(), code), (5, Some(1)));
    assert!(
        said.contains(&format!("127.0.12.32:{port} does not answer")),
        "{said}"
    );
    let (_, said, code) = neighbours(&["/nonexistent.cfg"]);
    assert!(
        code == Some(2) && said.contains("/nonexistent.cfg"),
        "{said}"
    );
}
