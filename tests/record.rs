//! The recorder and dump as a user sees them, on the live machine.

use std::process::Command;
use std::time::{Duration, Instant};

use kymo_tests::{Running, Scratch, kymo, parse_dump, run, stdout_of};

#[test]
fn what_is_dumped_is_what_the_kernel_said() {
    let scratch = Scratch::new("dump");
    let dir = scratch.text("ring");
    stdout_of(&[
        "record", "-s", "cdnmpZ", "-i", ".05:.05", "-c", "5", "-f", &dir,
    ]);
    let frames = parse_dump(&run(&["dump", &dir]).stdout);
    let of = |source: &str| {
        frames
            .iter()
            .filter(|frame| frame.source == source)
            .collect::<Vec<_>>()
    };
    assert_eq!(of("proc/stat").len(), 6, "one baseline and five samples");
    for (source, file) in [
        ("proc/meminfo", "/proc/meminfo"),
        ("proc/vmstat", "/proc/vmstat"),
        ("proc/net/dev", "/proc/net/dev"),
    ] {
        let now = std::fs::read(file).expect(file);
        let then = &of(source)[0].text;
        let shape = |text: &[u8]| {
            text.iter()
                .filter(|b| !b.is_ascii_digit() && **b != b' ')
                .copied()
                .collect::<Vec<_>>()
        };
        assert_eq!(
            String::from_utf8_lossy(&shape(then)),
            String::from_utf8_lossy(&shape(&now)),
            "{source}"
        );
    }
    let own = of("proc/1/cmdline")
        .last()
        .expect("identity of process 1")
        .text
        .clone();
    assert_eq!(own, std::fs::read("/proc/1/cmdline").expect("cmdline"));
    let one = stdout_of(&["dump", &dir, "--source", "proc/1/stat"]);
    assert!(
        one.lines()
            .filter(|line| line.starts_with(">>> proc/1/stat "))
            .count()
            == 6
            && !one.contains("proc/2/")
    );
}

/// A recorder that has begun: there is another sample.
fn recorder(arguments: &[&str], dir: &str) -> Running {
    let samples = || parse_dump(&run(&["dump", dir, "--source", "proc/stat"]).stdout).len();
    let before = samples();
    let child = Command::new(kymo())
        .args(["record", "-f", dir])
        .args(arguments)
        .spawn();
    let child = Running(child.expect("kymo starts"));
    let begun = Instant::now();
    while samples() <= before {
        assert!(begun.elapsed() < Duration::from_secs(60), "it never began");
        std::thread::sleep(Duration::from_millis(20));
    }
    child
}

#[test]
fn sigterm_flushes_and_ends_well() {
    let scratch = Scratch::new("sigterm");
    let dir = scratch.text("ring");
    let mut took = Vec::new();
    for signal in ["-TERM", "-INT", "-TERM"] {
        let mut child = recorder(&["-s", "cd", "-i", "10"], &dir);
        let asked = Instant::now();
        child.signal(signal);
        assert!(child.0.wait().expect("its end").success(), "{signal}");
        took.push(asked.elapsed());
    }
    // A disk that is busy may take longer, but not each time.
    assert!(
        took.iter().min() < Some(&Duration::from_secs(1)),
        "{took:?}"
    );
    assert!(parse_dump(&run(&["dump", &dir]).stdout).len() >= 2);
    let left = std::fs::read_dir(scratch.path("ring"))
        .expect("the ring")
        .flatten()
        .flat_map(|f| std::fs::read_dir(f.path()))
        .flatten();
    assert!(
        left.flatten()
            .all(|file| file.file_name().to_string_lossy().ends_with(".blk")),
        "a clean exit seals its tails"
    );
}

#[test]
fn a_second_recorder_names_the_first() {
    let scratch = Scratch::new("second");
    let dir = scratch.text("ring");
    let first = recorder(&["-s", "c", "-i", "1"], &dir);
    let second = run(&["record", "-s", "c", "-i", "1", "-c", "1", "-f", &dir]);
    let stderr = String::from_utf8_lossy(&second.stderr);
    assert_eq!(second.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains(&first.0.id().to_string()), "{stderr}");
}

#[test]
fn bad_input_is_one_clear_line_and_exit_2() {
    let scratch = Scratch::new("bad");
    let missing = scratch.text("missing");
    for arguments in [
        &["record", "-s", "cq", "-f", &missing][..],
        &["record", "-s", "c", "-i", "abc", "-f", &missing],
        &["record", "-s", "c", "-c", "0", "-f", &missing],
        &["record", "-s", "c", "-c", "1"],
        &[
            "record", "-s", "c", "-c", "1", "-f", &missing, "--cap", "20K",
        ],
        &[
            "record",
            "-s",
            "c",
            "-c",
            "1",
            "-f",
            &missing,
            "--root",
            "/no/such/root",
        ],
        &["record", "-s", "c", "-c", "1", "-f", "/proc/nowhere"],
        &["play", &missing],
        &["dump", &missing],
        &["dump", &missing, "--source", "proc/nothing"],
        &["-scd", "--daemon"],
        &["-scd", "--export", "x"],
        &["--no-such-switch"],
        &["no-such-command"],
    ] {
        let output = run(arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
        assert_eq!(
            stderr.trim_end().lines().count(),
            1,
            "{arguments:?}: {stderr}"
        );
        assert!(stderr.starts_with("cannot "), "{arguments:?}: {stderr}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}

#[test]
fn processes_come_and_go() {
    let scratch = Scratch::new("churn");
    let dir = scratch.text("ring");
    let churn = Running::shell("while :; do sh -c 'sleep .01; exec true'; done");
    stdout_of(&[
        "record", "-s", "Z", "-i", ".02:.02", "-c", "100", "-f", &dir,
    ]);
    drop(churn);
    let output = run(&["dump", &dir]);
    assert!(
        output.stderr.is_empty(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let frames = parse_dump(&output.stdout);
    for frame in frames
        .iter()
        .filter(|frame| frame.source.ends_with("/stat") && !frame.text.is_empty())
    {
        let pid = frame.source.split('/').nth(1).unwrap_or_default();
        assert!(
            frame.text.starts_with(format!("{pid} (").as_bytes()),
            "{frame:?}"
        );
    }
    let pids: std::collections::BTreeSet<_> = frames
        .iter()
        .map(|frame| &frame.source)
        .filter(|s| s.ends_with("/stat"))
        .collect();
    assert!(pids.len() > 100, "only {} processes were seen", pids.len());
}

#[test]
fn without_root_it_still_records() {
    if !kymo_tests::is_root() {
        return;
    }
    let scratch = Scratch::new("nobody");
    std::fs::set_permissions(
        scratch.path(""),
        std::os::unix::fs::PermissionsExt::from_mode(0o777),
    )
    .expect("chmod");
    let program = scratch.text("kymo");
    std::fs::copy(kymo(), &program).expect("a copy");
    let dir = scratch.text("ring");
    let script = format!(
        "{program} record -s cdnmZ -i .05:.05 -c 3 -f {dir} && {program} dump {dir} --source proc/1/io"
    );
    let output = Command::new("setpriv")
        .args([
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            "sh",
            "-c",
            &script,
        ])
        .output();
    let output = output.expect("setpriv");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        stderr.contains("CAP_SYS_PTRACE"),
        "one line names the capability: {stderr}"
    );
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("failed:13"),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
}
