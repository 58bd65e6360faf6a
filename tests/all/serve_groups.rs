//! Users name control groups, so `kymo serve` shows their names only to clients with the token.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use kymo_tests::served::{Served, eventually};
use kymo_tests::{Running, Scratch, kymo, put, run};

const GROUP: &str = "/secret-7 <b>\".slice";

/// Starts a recorder of a generated machine with one group.
fn record(scratch: &Scratch, dir: &str) -> Running {
    let root = scratch.path("root");
    put(&root, "proc/stat", "cpu  1 2 3 4\ncpu0 1 2 3 4\n");
    let mount = "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
    put(&root, "proc/self/mountinfo", mount);
    for (file, text) in [
        ("cpu.stat", "usage_usec 5\nuser_usec 3\nsystem_usec 2\n"),
        ("memory.current", "4096\n"),
        ("pids.current", "3\n"),
        (
            "io.pressure",
            "some avg10=0.00 avg60=0.00 avg300=0.00 total=7\n",
        ),
    ] {
        put(&root, &format!("sys/fs/cgroup{GROUP}/{file}"), text);
    }
    put(
        &root,
        "proc/1/mountstats",
        "device a:/b mounted on /c with fstype nfs4 statvers=1.1\n\tage:\t7\n",
    );
    let recorder = Command::new(kymo())
        .args(["record", "-scgGV", "-i", ".2:1", "-f", dir, "--root"])
        .arg(&root)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn();
    Running(recorder.expect("a recorder"))
}

/// Status of an answer, and its text within a second or two, since some answers are endless.
fn ask(address: &str, path: &str, head: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).expect("a connection");
    let patience = Duration::from_millis(1500);
    stream.set_read_timeout(Some(patience)).expect("a limit");
    write!(
        stream,
        "GET {path} HTTP/1.0\r\nHost: {address}\r\n{head}\r\n"
    )
    .expect("asked");
    let (mut answer, mut part) = (Vec::new(), [0; 4096]);
    while let Ok(count @ 1..) = stream.read(&mut part) {
        answer.extend_from_slice(&part[..count]);
        // One sample of a stream is enough.
        if path.contains("/live") && answer.windows(13).any(|part| part == b"event: sample") {
            break;
        }
    }
    let text = String::from_utf8_lossy(&answer).into_owned();
    let status = text
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    (status.unwrap_or_else(|| panic!("{path}: {text:?}")), text)
}

/// Requests; true if each is answered without the token, and true if its answer has the group's name with the token.
const QUESTIONS: &[(&str, bool, bool)] = &[
    ("/kymo/v1/status", true, false),
    ("/kymo/v1/cost", true, false),
    ("/kymo/v1/fields", true, true),
    ("/kymo/v1/events?from=-60", true, false),
    ("/kymo/v1/sources?at=now", true, true),
    (
        "/kymo/v1/series?from=-20&fields=cgroups.cpu,cgroups.pressed",
        true,
        false,
    ),
    (
        "/kymo/v1/series?from=-20&fields=cgroups.memory_kb:*",
        false,
        true,
    ),
    (
        "/kymo/v1/series?from=-20&fields=cpu.user,cgroups.cpu:/secret-7%20%3Cb%3E%22.slice",
        false,
        true,
    ),
    (
        "/kymo/v1/graph.svg?from=-20&fields=cgroups.pids:*",
        false,
        true,
    ),
    (
        "/kymo/v1/graph.svg?from=-20&fields=cgroups.pids",
        true,
        false,
    ),
    (
        "/kymo/v1/live?fields=cgroups.pids,cgroups.pressed",
        true,
        false,
    ),
    ("/kymo/v1/live?fields=cgroups.pids:*", false, true),
    ("/kymo/v1/groups", false, true),
    ("/kymo/v1/groups?sort=cpu&filter=secret", false, true),
    (
        "/kymo/v1/text?source=cgroup/secret-7%20%3Cb%3E%22.slice",
        false,
        false,
    ),
    ("/metrics", true, true),
];

#[test]
fn names_of_groups_need_the_token() {
    let scratch = Scratch::new("serve-groups");
    let dir = scratch.text("data");
    let recorder = record(&scratch, &dir);
    // This recorder starts first, so that the folder is its own.
    let records = || (!run(&["dump", &dir]).stdout.is_empty()).then_some(());
    eventually(records).expect("a sample");
    let mut served = Served::start(&["--data", &dir, "--listen", "127.0.0.1:0"]);
    let address = served.address();
    let token = fs::read_to_string(scratch.path("data/token")).expect("the token");
    let token = format!("Authorization: Bearer {}\r\n", token.trim());
    let is_there = || {
        // Rates need two samples.
        let path = "/kymo/v1/series?from=-20&fields=cgroups.cpu:*";
        let (_, said) = ask(&address, path, &token);
        said.contains("secret-7").then_some(())
    };
    eventually(is_there).expect("samples with the group");
    for (path, is_open, names) in QUESTIONS {
        let (status, said) = ask(&address, path, "");
        assert_eq!(status, if *is_open { 200 } else { 401 }, "{path}: {said}");
        assert!(!said.contains("secret-7"), "{path}: {said}");
        // A client behind a proxy does not count as one of this machine.
        let (status, said) = ask(&address, path, "X-Forwarded-For: 192.0.2.7\r\n");
        assert_eq!(status, 401, "{path}: {said}");
        assert!(!said.contains("secret-7"), "{path}: {said}");
        let (status, said) = ask(&address, path, &token);
        assert_eq!(status, 200, "{path}: {said}");
        assert_eq!(said.contains("secret-7"), *names, "{path}: {said}");
        assert!(
            !path.contains("svg") || !said.contains("<b>"),
            "{path}: {said}"
        );
    }
    let (_, metrics) = ask(&address, "/metrics", &token);
    let series = "container_memory_usage_bytes{id=\"/secret-7 <b>\\\".slice\",name=\"secret-7 <b>\\\".slice\"} 4096";
    assert!(metrics.lines().any(|line| line == series), "{metrics}");
    // The newest sample also has sources that are read at scans and have no summary. On a busy machine the thread that reads
    // them may be late, so that a sample goes without.
    let series =
        "node_mountstats_nfs_age_seconds_total{export=\"a:/b\",mountaddr=\"\",protocol=\"\"} 7";
    let is_there = || {
        let (_, open) = ask(&address, "/metrics", "");
        open.lines().any(|line| line == series).then_some(())
    };
    eventually(is_there).expect("an NFS mount");
    let (status, said) = ask(&address, "/kymo/v1/groups?sort=nothing", &token);
    assert_eq!(status, 400, "{said}");
    drop(recorder);
}
