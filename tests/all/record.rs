//! The recorder and dump from a user's side, on the live machine.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use kymo_tests::machine::{copy_program, hold_devices};
use kymo_tests::{Running, Scratch, kymo, parse_dump, run, stdout_of};

#[test]
fn what_is_dumped_is_what_the_kernel_said() {
    let (scratch, _devices) = (Scratch::new("dump"), hold_devices());
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
    let play = |command: &[&str]| stdout_of(&[command, &[&dir, "-scd"]].concat());
    assert_eq!(play(&[]), play(&["play"]), "a folder alone is played");
    let one = stdout_of(&["dump", &dir, "--source", "proc/1/stat"]);
    assert!(
        one.lines()
            .filter(|line| line.starts_with(">>> proc/1/stat "))
            .count()
            == 6
            && !one.contains("proc/2/")
    );
}

/// Slabs are costly to read and change slowly, so they are read only when processes are scanned.
#[test]
fn slabs_are_read_at_each_scan() {
    if kymo_tests::machine::must_skip(&[]) {
        return;
    }
    let scratch = Scratch::new("slabs");
    let dir = scratch.text("ring");
    stdout_of(&["record", "-s", "cy", "-i", "0:3", "-c", "6", "-f", &dir]);
    let samples = |source: &str| {
        let frames = parse_dump(&run(&["dump", &dir, "--source", source]).stdout);
        frames.iter().map(|frame| frame.seq).collect::<Vec<_>>()
    };
    let all = samples("proc/stat");
    assert_eq!(all.len(), 7);
    assert_eq!(samples("proc/slabinfo"), [all[0], all[3], all[6]]);
}

/// A program may give its process any name, also one with escape sequences.
#[test]
fn a_dump_on_a_terminal_spells_what_it_would_obey() {
    if Command::new("script").arg("--version").output().is_err() {
        return kymo_tests::machine::skipped("script is missing");
    }
    const NAME: &str = "\x1b[31mEVIL";
    let scratch = Scratch::new("escapes");
    let program = scratch.path(NAME);
    copy_program(Path::new("/bin/sleep"), &program);
    let child = Command::new(&program).arg("1000").spawn().expect("sleep");
    let child = Running(child);
    let source = format!("proc/{}/stat", child.0.id());
    let dir = scratch.text("ring");
    stdout_of(&["record", "-s", "Z", "-i", ".05:.05", "-c", "2", "-f", &dir]);
    let on_a_terminal = |more: &str| {
        let line = format!("{} dump {dir} --source {source} {more}", kymo().display());
        let output = Command::new("script")
            .args(["-qec", &line, "/dev/null"])
            .stdin(std::process::Stdio::null())
            .output();
        String::from_utf8_lossy(&output.expect("script").stdout).replace("\r\n", "\n")
    };
    let (piped, shown) = (
        stdout_of(&["dump", &dir, "--source", &source]),
        on_a_terminal(""),
    );
    assert!(piped.contains(&format!("({NAME})")), "{piped:?}");
    assert_eq!(on_a_terminal("--raw"), piped);
    assert_eq!(shown, piped.replace('\x1b', "\\x1b"));
}

/// A recorder that has written its first sample.
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
        let mut child = recorder(&["-s", "cd", "-i", "2"], &dir);
        let asked = Instant::now();
        child.signal(signal);
        assert!(child.0.wait().expect("its end").success(), "{signal}");
        took.push(asked.elapsed());
    }
    // A busy disk may take longer, but not each time.
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

/// Monotonic nanoseconds of the samples in a folder.
fn sampled_at_ns(dir: &str) -> Vec<u64> {
    let text = stdout_of(&["dump", dir, "--source", "proc/stat"]);
    text.lines()
        .filter(|line| line.starts_with(">>> "))
        .map(|line| {
            let at = line.split(' ').nth(4).expect("a monotonic time");
            at.replace('.', "")
                .parse()
                .expect("seconds with nine decimals")
        })
        .collect()
}

/// The first interval ended at the next multiple of the clock: half of all recorders had a first one of
/// less than half an interval. A busy machine delays a sample, but not most of them.
#[test]
fn the_first_interval_is_a_whole_one() {
    let rounds = (0..10).any(|round| {
        let scratch = Scratch::new("first");
        let dirs: Vec<_> = (0..7)
            .map(|n| scratch.text(&format!("{round}-{n}")))
            .collect();
        let recorders: Vec<_> = dirs
            .iter()
            .map(|dir| {
                std::thread::sleep(Duration::from_millis(2000 / 7));
                let child = Command::new(kymo())
                    .args(["record", "-s", "c", "-i", "2", "-c", "1", "-f", dir])
                    .spawn();
                Running(child.expect("kymo starts"))
            })
            .collect();
        for mut recorder in recorders {
            assert!(recorder.0.wait().expect("its end").success());
        }
        let mut lengths: Vec<u64> = dirs
            .iter()
            .map(|dir| match sampled_at_ns(dir)[..] {
                [baseline, first] => first - baseline,
                ref other => panic!("not two samples: {other:?}"),
            })
            .collect();
        lengths.sort_unstable();
        lengths[3] > 1_500_000_000
    });
    assert!(rounds, "the first interval is cut");
}

/// A recorder that waits for its baseline ends at once on SIGTERM.
#[test]
fn a_recorder_ends_while_it_waits_for_its_beat() {
    let scratch = Scratch::new("early");
    let dir = scratch.text("ring");
    let child = Command::new(kymo())
        .args(["record", "-s", "c", "-i", "1000000", "-f", &dir])
        .spawn();
    let mut child = Running(child.expect("kymo starts"));
    let begun = Instant::now();
    while !scratch.path("ring").exists() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it never began");
        std::thread::sleep(Duration::from_millis(10));
    }
    child.signal("-TERM");
    assert!(child.0.wait().expect("its end").success());
}

/// SIGUSR1, on which collectl flushes, ended a recorder; so did SIGHUP without a terminal.
#[test]
fn usr1_and_a_daemons_hup_flush() {
    for signal in ["-USR1", "-HUP"] {
        let scratch = Scratch::new("flush");
        let dir = scratch.text("ring");
        // The environment of the tests may ignore SIGHUP.
        let child = Command::new("env")
            .args(["--default-signal=HUP", "setsid"])
            .arg(kymo())
            .args([
                "record", "-s", "c", "-i", ".1", "--sync", "1h", "--cost", "-f", &dir,
            ])
            .stdout(std::process::Stdio::piped())
            .spawn();
        let mut child = Running(child.expect("kymo starts"));
        let until_samples = |many: usize| {
            let begun = Instant::now();
            while parse_dump(&run(&["dump", &dir, "--source", "proc/stat"]).stdout).len() < many {
                assert!(
                    begun.elapsed() < Duration::from_secs(60),
                    "{signal}: no {many} samples"
                );
                std::thread::sleep(Duration::from_millis(20));
            }
        };
        for many in [1, 5, 10] {
            until_samples(many);
            child.signal(signal);
        }
        until_samples(15);
        child.signal("-TERM");
        let mut said = String::new();
        let stdout = child.0.stdout.as_mut().expect("stdout");
        std::io::Read::read_to_string(stdout, &mut said).expect("text");
        assert!(child.0.wait().expect("its end").success(), "{signal}");
        let syncs = said
            .split(", ")
            .find_map(|part| part.strip_suffix(" syncs")?.parse::<u32>().ok());
        assert!(syncs.is_some_and(|syncs| syncs >= 3), "{signal}: {said}");
        let peak_mb = said.lines().find_map(|line| {
            line.strip_prefix("memory")?
                .trim()
                .split(' ')
                .next()?
                .parse()
                .ok()
        });
        assert!(peak_mb.is_some_and(|mb: f64| mb < 100.0), "{said}");
    }
}

/// Closing a terminal ends its programs, except those started with nohup(1) or `--nohup`.
#[test]
fn a_closed_terminal_ends_a_recorder() {
    for (prefix, switch, ends) in [
        ("", "", true),
        ("nohup ", "", false),
        ("", "--nohup", false),
    ] {
        let scratch = Scratch::new("hangup");
        let (dir, pid) = (scratch.text("ring"), scratch.text("pid"));
        let command = format!(
            "echo $$ > {pid}; exec env --default-signal=HUP {prefix}{} -sc -i.1 -c40 -f {dir} {switch} > /dev/null",
            kymo().display()
        );
        let mut terminal = Running(
            Command::new("script")
                .args(["-qec", &command, "/dev/null"])
                .stdout(std::process::Stdio::null())
                .spawn()
                .expect("script"),
        );
        let begun = Instant::now();
        while parse_dump(&run(&["dump", &dir, "--source", "proc/stat"]).stdout).is_empty() {
            assert!(begun.elapsed() < Duration::from_secs(60), "it never began");
            std::thread::sleep(Duration::from_millis(20));
        }
        let pid = std::fs::read_to_string(&pid).expect("its number");
        let sent = Command::new("kill").args(["-HUP", pid.trim()]).status();
        assert!(sent.expect("kill").success());
        assert!(terminal.0.wait().expect("its end").success());
        let samples = sampled_at_ns(&dir).len();
        assert_eq!(samples < 41, ends, "{prefix}{switch}: {samples} samples");
    }
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
        assert!(
            stderr.starts_with("kymo: cannot "),
            "{arguments:?}: {stderr}"
        );
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
    copy_program(&kymo(), Path::new(&program));
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
        String::from_utf8_lossy(&output.stdout).contains("failed:permission-denied"),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
}
