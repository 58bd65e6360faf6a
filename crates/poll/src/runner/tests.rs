//! Tests with a runner in its own process, which is this test program again.

use super::*;
use crate::threshold::{Bound, Direction, Event, Value};
use kymo_sys::privilege::is_alive;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Environment variable with the folder of the other process.
const FOLDER: &str = "KYMO_RUNNER_TEST";

/// A runner with a folder that has a file of commands, a line each.
struct Case {
    folder: Folder,
    runner: Runner,
}

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Case {
    fn new(name: &str, commands: &[&str]) -> Case {
        // Root runs only programs that no other user can change.
        let top = match kymo_sys::machine::is_root() {
            true => "/run".into(),
            false => std::env::temp_dir(),
        };
        let folder = top.join(format!("kymo-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("commands"), commands.join("\n")).unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "--ignored", "runner::tests::the_other_process"])
            .env(FOLDER, &folder)
            .stdout(std::process::Stdio::null());
        let runner = Runner::start(command).unwrap();
        let folder = Folder(folder);
        let mut case = Case { folder, runner };
        assert!(matches!(case.next(), RunnerMessage::Loaded { .. }));
        case
    }

    /// The runner's next message.
    fn next(&mut self) -> RunnerMessage {
        loop {
            match self.runner.take() {
                Some(event) => return event,
                None => drop(wait_readable(
                    &[self.runner.as_fd()],
                    Duration::from_secs(60),
                )),
            }
        }
    }

    /// Requests all numbers and waits for as many answers: lines `NUMBER IN OUT UPTIME NAME`, and
    /// messages.
    fn answers(&mut self, numbers: &[u32]) -> Vec<String> {
        numbers.iter().for_each(|&number| self.runner.ask(number));
        let mut lines = Vec::new();
        let mut count = 0;
        while count < numbers.len() {
            match self.next() {
                RunnerMessage::Answer { number, answer } => {
                    count += 1;
                    let [first, second] = answer.values;
                    let texts = [first, second, answer.uptime, answer.name].map(|text| {
                        text.map_or("-".into(), |text| String::from_utf8(text).unwrap())
                    });
                    lines.push(format!("{number} {}", texts.join(" ")));
                }
                RunnerMessage::Line(line) => lines.push(String::from_utf8(line).unwrap()),
                other => panic!("{other:?}"),
            }
        }
        lines.sort();
        lines
    }

    fn file(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.0.join(name)
    }

    fn script(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
        fs::set_permissions(self.path(name), PermissionsExt::from_mode(0o755)).unwrap();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Waits for the end of a process, 60 seconds at most, as the machine may be busy.
fn gone(pid: &str) {
    let pid = pid.trim().parse().unwrap();
    for _ in 0..6000 {
        if !is_alive(pid) {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{pid} is still there");
}

/// The process that [`Case::new`] starts; no test by itself.
/// Rate above a bound, of the target with programs.
const BROKEN: Action = Action {
    target: 5,
    event: Event::Broken,
    direction: Direction::In,
    bound: Bound::Max,
    value: Value::Percent(12.34),
};

#[test]
#[ignore = "the other process of the tests beside it"]
fn the_other_process() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    std::env::set_current_dir(&folder).unwrap();
    serve(&mut || {
        let text = fs::read_to_string("commands").map_err(|error| error.to_string())?;
        let commands = (0..).zip(text.lines()).map(|(number, line)| {
            let command = commands::ShellCommand {
                text: line.into(),
                name: format!("t{number}").into(),
            };
            (number, command)
        });
        Ok(Commands {
            commands: commands.collect(),
            programs: BTreeMap::from([(5, programs(Path::new(&folder)))]),
            limit: Duration::from_millis(match text.contains("slow") {
                true => 300,
                false => 60_000,
            }),
            path_add: Some(folder.as_encoded_bytes().to_vec()),
            files: Vec::new(),
        })
    })
    .unwrap();
}

fn programs(folder: &Path) -> Programs {
    let program = |name| Some(folder.join(name));
    Programs {
        target: b"a_b".to_vec(),
        programs: [
            [[program("broken"), None], [program("mended"), None]],
            Default::default(),
        ],
        bounds: [
            [None, None],
            [Some(b"10%".to_vec()), Some(b"1".to_vec())],
            [None, None],
            [None, None],
        ],
        descriptions: [Some(b"too much".to_vec()), None],
        environment: vec![(b"PORT".to_vec(), b"ge 1".to_vec())],
    }
}

#[test]
fn commands_run_at_once_and_say_four_lines() {
    // Each of the first two waits for the other.
    let mut case = Case::new(
        "runner-lines",
        &[
            ": > a; until [ -e b ]; do sleep 0.01; done; printf '12\\n34\\n1 day\\nbox\\n'",
            ": > b; until [ -e a ]; do sleep 0.01; done; echo UNKNOWN; echo -3.5",
            "false",
            "printf 'x\\n1\\n'; exit 3",
            "echo `echo 5`; readlink /proc/self/fd/0 >&2; test /dev/null -ef /proc/self/fd/0 && echo 1",
            "echo 5; yes 2",
            "helper",
            "printf 1; head -c 1000000 /dev/zero | tr '\\0' 0; echo; echo 2",
        ],
    );
    case.script("helper", "#!/bin/sh\necho 6\necho 7\n");
    let expected = [
        "0 12 34 1 day box",
        "1 - -3.5 - -",
        "2 - - - -",
        "3 - 1 - -",
        "4 5 1 - -",
        "5 5 2 2 2",
        "6 6 7 - -",
        "7 - - - -",
        "8 - - - -",
        "command of t2: it prints nothing (exit status: 1)",
        "command of t3: no number in its first line (exit status: 3)",
        "command of t7: no number in its first line (signal: 13 (SIGPIPE))",
    ];
    assert_eq!(case.answers(&[0, 1, 2, 3, 4, 5, 6, 7, 8]), expected);
    // The runner does not repeat a message about a command.
    assert_eq!(case.answers(&[2, 3]), ["2 - - - -", "3 - 1 - -"]);
}

#[test]
fn a_command_has_no_file_of_the_poller() {
    // A file that every program inherits, as a careless caller leaves one.
    let forgotten = fs::File::open("/proc/self/exe").unwrap();
    let forgotten = rustix::io::dup(&forgotten).unwrap();
    let mut case = Case::new("runner-files", &["ls /proc/self/fd | wc -l; echo 0"]);
    // Three files of its own, and the folder that it lists.
    assert_eq!(case.answers(&[0]), ["0 4 0 - -"]);
    drop(forgotten);
}

#[test]
fn what_takes_too_long_is_killed_with_all_it_started() {
    let mut case = Case::new(
        "runner-slow",
        &[
            "echo $$ > shell; sleep 1000 & echo $! > slow; echo 1; wait",
            "exec 2>&1 >&-; trap '' TERM INT HUP; echo $$ > deaf; while :; do sleep 0.01; done",
            "echo 1; echo 2",
        ],
    );
    let late = "it took more than 0.3 s and was killed";
    assert_eq!(
        case.answers(&[0, 1, 2]),
        [
            "0 - - - -".to_string(),
            "1 - - - -".into(),
            "2 1 2 - -".into(),
            format!("command of t0: {late}"),
            format!("command of t1: {late}"),
        ]
    );
    for name in ["shell", "slow", "deaf"] {
        gone(&case.file(name));
    }
}

#[test]
fn a_configuration_that_is_read_again_takes_the_place_of_the_one_before() {
    let mut case = Case::new(
        "runner-reload",
        &["echo $$ > pid; sleep 1000", "echo 1; echo 1"],
    );
    case.runner.ask(0);
    while case.file("pid").is_empty() {
        std::thread::yield_now();
    }
    let pid = case.file("pid");
    fs::write(case.path("commands"), "echo 2; echo 2").unwrap();
    case.runner.load();
    let RunnerMessage::Loaded { fingerprint } = case.next() else {
        panic!("not loaded");
    };
    gone(&pid);
    assert_eq!(case.answers(&[0, 1]), ["0 2 2 - -", "1 - - - -"]);
    case.runner.load();
    assert_eq!(case.next(), RunnerMessage::Loaded { fingerprint });
    fs::write(case.path("commands"), "echo 2; echo 3").unwrap();
    case.runner.load();
    assert!(
        matches!(case.next(), RunnerMessage::Loaded { fingerprint: other } if other != fingerprint)
    );
}

#[test]
fn more_is_asked_than_the_socket_holds() {
    let count: u32 = 3000;
    let lines: Vec<String> = (0..count).map(|n| format!("echo {n}; echo {n}")).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let mut case = Case::new("runner-many", &lines);
    let numbers: Vec<u32> = (0..count).collect();
    let mut expected: Vec<String> = numbers.iter().map(|n| format!("{n} {n} {n} - -")).collect();
    expected.sort();
    assert_eq!(case.answers(&numbers), expected);
}

#[test]
fn programs_of_thresholds_have_their_arguments_and_may_finish() {
    let mut case = Case::new("runner-programs", &["echo $$ > pid; sleep 1000"]);
    let script = "#!/bin/sh\nsleep 0.1\nprintf '[%s]' \"${0##*/}\" \"$@\" \"$THRESH_DESC\" \"$PORT\" >> \"${0%/*}/log\"\n";
    case.script("broken", script);
    case.script("mended", script);
    case.runner.ask(0);
    while case.file("pid").is_empty() {
        std::thread::yield_now();
    }
    let pid = case.file("pid");
    let broken = BROKEN;
    case.runner.act(broken);
    // One request lacks a program, the other names an unknown target.
    case.runner.act(Action {
        direction: Direction::Out,
        ..broken
    });
    case.runner.act(Action {
        target: 6,
        ..broken
    });
    while case.file("log").is_empty() {
        std::thread::yield_now();
    }
    case.runner.act(Action {
        event: Event::Mended,
        ..broken
    });
    let Case { folder, runner } = case;
    runner.finish(Duration::from_secs(60), &mut |_| {});
    gone(&pid);
    assert_eq!(
        fs::read_to_string(folder.0.join("log")).unwrap(),
        "[broken][a_b][10%][12.3][too much][too much][ge 1][mended][a_b][10%][12.3][too much][ge 1]"
    );
}

/// A poller that cron runs ends behind its last request, with an answer that it has not read.
#[test]
fn programs_run_for_a_poller_that_has_ended() {
    let mut case = Case::new("runner-cron", &["echo 1; echo 2"]);
    case.script("broken", "#!/bin/sh\necho $2 > log\n");
    case.runner.ask(0);
    assert_eq!(
        wait_readable(&[case.runner.as_fd()], Duration::from_secs(60)),
        [true]
    );
    let pid = rustix::process::Pid::from_child(&case.runner.child);
    let signal = |signal| rustix::process::kill_process(pid, signal).unwrap();
    signal(rustix::process::Signal::STOP);
    case.runner.act(BROKEN);
    let Case { folder, runner } = case;
    drop(runner);
    signal(rustix::process::Signal::CONT);
    let log = || fs::read_to_string(folder.0.join("log")).unwrap_or_default();
    for _ in 0..6000 {
        if !log().is_empty() {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(log(), "10%\n");
}

/// The runner of a poller that had ended waited an hour for a program that could not be started.
#[test]
fn a_program_that_cannot_be_started_is_said_and_holds_up_nothing() {
    let mut case = Case::new("runner-unstartable", &["true"]);
    case.script("broken", "#!/nonexistent/shell\r\n");
    case.runner.act(BROKEN);
    let Case {
        folder: _folder,
        runner,
    } = case;
    let (own, mut lines) = (runner.child.id(), Vec::new());
    runner.finish(Duration::from_secs(60), &mut |line| {
        lines.push(String::from_utf8_lossy(line).into_owned());
    });
    gone(&own.to_string());
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(
        lines[0].starts_with("cannot run the threshold program of"),
        "{lines:?}"
    );
}

#[test]
fn a_runner_that_was_killed_is_seen_and_one_without_a_poller_ends() {
    let mut case = Case::new("runner-killed", &["echo $$ > pid; sleep 1000"]);
    case.runner.child.kill().unwrap();
    while case.next() != RunnerMessage::Gone {}
    let mut case = Case::new("runner-alone", &["echo $$ > pid; sleep 1000"]);
    case.runner.ask(0);
    while case.file("pid").is_empty() {
        std::thread::yield_now();
    }
    let (pid, own) = (case.file("pid"), case.runner.child.id());
    drop(case);
    gone(&pid);
    // The runner is a zombie of this process by then.
    gone(&own.to_string());
}
