//! rrdtool's own test scripts, from Debian's source package, with stock rrdtool as the client and kymo's daemon in the
//! place of src/rrdcached, over a unix socket (as the scripts start it themselves) and over TCP. Each script first
//! runs with stock's daemon: if it passes there, it has to pass with kymo's. Scripts that exit with 0 may still have
//! printed FAIL, so their output is checked, too. Needs Debian's rrdtool, rrdcached, dc; bash, perl and tar.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use kymo_tests::rrd_daemon::Side;
use kymo_tests::source_package::source_package;
use kymo_tests::{Scratch, free_port};

/// The transport between client and daemon.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Style {
    Unix,
    Tcp,
}

/// Longest that a script may take; a minute is far more than stock needs.
const PATIENCE: Duration = Duration::from_secs(90);

/// Least number of scripts that pass with stock; with fewer, the harness is broken, not the daemon.
const PASSED_AT_LEAST: [(Style, usize); 2] = [(Style::Unix, 23), (Style::Tcp, 23)];

#[test]
fn what_passes_with_stock_passes_with_ours_over_a_unix_socket() {
    compare(Style::Unix);
}

#[test]
fn what_passes_with_stock_passes_with_ours_over_tcp() {
    compare(Style::Tcp);
}

/// The scripts in one build tree, one after the other: each starts a daemon of the same folder as soon as the previous
/// one has sent its daemon a signal to end. Eleven of twelve such starts were refused.
#[test]
fn they_pass_right_after_one_another() {
    let scratch = Scratch::new("scripts-in-turn");
    let top = scratch.path("top");
    lay_out(&scratch, &top, Side::Ours);
    let (mut passed, mut failed) = (0, Vec::new());
    let scripts = scripts();
    for round in 1..=3 {
        for script in &scripts {
            let said = scratch.path("log");
            let ended = wait(script_command(script, &top, Style::Unix, &said));
            match outcome(ended, &said) {
                Ok(()) => passed += 1,
                // The script needs something that this machine lacks, or is itself broken.
                Err(_) if run(script, Style::Unix, Side::Stock).is_err() => {}
                Err(said) => failed.push(format!("== {script}, round {round}\n{said}")),
            }
        }
    }
    stop_left_over(&top.join("tests"));
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert!(passed >= 3 * 22, "only {passed} passed");
}

fn compare(style: Style) {
    let scripts = scripts();
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(Vec::new());
    // Scripts sleep most of the time.
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(script) = scripts.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = with_both(script, style);
                    outcomes.lock().expect("no panic").push((script, outcome));
                }
            });
        }
    });
    let outcomes = outcomes.into_inner().expect("no panic");
    let of = |wanted: fn(&Outcome) -> bool| {
        let chosen = outcomes.iter().filter(|(_, outcome)| wanted(outcome));
        chosen
            .map(|(script, _)| script.as_str())
            .collect::<Vec<&str>>()
    };
    let passed = of(|outcome| matches!(outcome, Outcome::Passed));
    let not_with_stock = of(|outcome| matches!(outcome, Outcome::NotWithStock));
    eprintln!("{style:?}: passed with both: {passed:?}; not with stock: {not_with_stock:?}");
    let failed = outcomes
        .iter()
        .filter_map(|(script, outcome)| match outcome {
            Outcome::Failed(said) => Some(format!("== {script}\n{said}")),
            _ => None,
        });
    let failed: Vec<String> = failed.collect();
    assert!(failed.is_empty(), "with our daemon: {}", failed.join("\n"));
    let enough = PASSED_AT_LEAST.iter().find(|(of, _)| *of == style);
    let enough = enough.map_or(0, |(_, count)| *count);
    assert!(passed.len() >= enough, "only {passed:?} passed with stock");
}

/// Result of a script with both daemons.
enum Outcome {
    Passed,
    NotWithStock,
    /// The output of the script.
    Failed(String),
}

fn with_both(script: &str, style: Style) -> Outcome {
    if run(script, style, Side::Stock).is_err() {
        return Outcome::NotWithStock;
    }
    match run(script, style, Side::Ours) {
        Ok(()) => Outcome::Passed,
        Err(said) => Outcome::Failed(said),
    }
}

/// Scripts in `tests/Makefile.am`, and one that is missing there.
fn scripts() -> Vec<String> {
    let makefile = source_package("rrdtool").join("tests/Makefile.am");
    let text = fs::read_to_string(makefile).expect("rrdtool's list of tests");
    let text = text.replace("\\\n", " ");
    let line = text.lines().find_map(|line| line.strip_prefix("TESTS = "));
    let names = line.expect("TESTS = in rrdtool's list").split_whitespace();
    names
        .map(String::from)
        .chain(["create-no-overwrite".to_string()])
        .collect()
}

/// Runs one script in a copy of its folder; the error is its output.
fn run(script: &str, style: Style, side: Side) -> Result<(), String> {
    let scratch = Scratch::new("scripts");
    let (top, tests) = (scratch.path("top"), scratch.path("top/tests"));
    lay_out(&scratch, &top, side);
    let log = scratch.path("log");
    let mut command = script_command(script, &top, style, &log);
    let daemon = match style {
        Style::Unix => None,
        Style::Tcp => Some(OwnDaemon::start(&top, &tests, &mut command)),
    };
    let ended = wait(command);
    drop(daemon);
    stop_left_over(&tests);
    outcome(ended, &log)
}

/// Passes a script that ended with 0 and printed no FAIL; the error is its output.
fn outcome(ended: Option<i32>, log: &Path) -> Result<(), String> {
    let said = fs::read(log).unwrap_or_default();
    let said = String::from_utf8_lossy(&said).into_owned();
    let failed = said.lines().any(|line| line.starts_with("FAIL"));
    match ended {
        Some(0) if !failed => Ok(()),
        code => Err(format!("{said}\nended with {code:?}")),
    }
}

/// The command for a script in the build tree `top`.
fn script_command(script: &str, top: &Path, style: Style, log: &Path) -> Command {
    let (tests, log) = (top.join("tests"), fs::File::create(log).expect("a log"));
    let mut command = Command::new("bash");
    command
        .arg(script)
        .current_dir(&tests)
        .env("BASEDIR", &tests)
        .env("BUILDDIR", &tests)
        .env("TOP_BUILDDIR", top)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(log.try_clone().expect("a log"))
        .stderr(log);
    if style == Style::Unix {
        command.env("TESTS_STYLE", "rrdcached");
    }
    command
}

/// Makes `top/src/{rrdtool,rrdcached}` and `top/tests`, as in a build tree.
fn lay_out(scratch: &Scratch, top: &Path, side: Side) {
    fs::create_dir_all(top.join("src")).expect("a folder");
    let rrdcached = side.program(&scratch.path(""));
    symlink("/usr/bin/rrdtool", top.join("src/rrdtool")).expect("a link");
    symlink(rrdcached, top.join("src/rrdcached")).expect("a link");
    let mut copy = Command::new("cp");
    let copied = copy
        .arg("-a")
        .arg(source_package("rrdtool").join("tests"))
        .arg(top)
        .status();
    assert!(copied.is_ok_and(|status| status.success()), "cp");
    for entry in fs::read_dir(top.join("tests"))
        .expect("the tests")
        .flatten()
    {
        // Some scripts write to names that all users of a machine share.
        if let Ok(text) = fs::read_to_string(entry.path())
            && text.contains("/tmp/test.")
        {
            let own = text.replace("/tmp/test.", "$BUILDDIR/test.");
            fs::write(entry.path(), own).expect("a script");
        }
    }
}

fn wait(mut command: Command) -> Option<i32> {
    let mut child = command.spawn().expect("bash");
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        if let Ok(Some(status)) = child.try_wait() {
            return status.code();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let _ = child.kill();
    let _ = child.wait();
    None
}

/// A daemon for a script over TCP, since scripts of this version start none; the environment has its address.
struct OwnDaemon(PathBuf);

impl OwnDaemon {
    fn start(top: &Path, tests: &Path, script: &mut Command) -> OwnDaemon {
        let pid_file = tests.join("own.pid");
        let address = format!("localhost:{}", free_port());
        let mut daemon = Command::new(top.join("src/rrdcached"));
        daemon.arg("-p").arg(&pid_file).args(["-l", &address]);
        let started = daemon.arg("-b").arg(tests).args(["-F", "-B"]).status();
        assert!(started.is_ok_and(|status| status.success()), "{daemon:?}");
        script
            .env("RRDTOOL", top.join("src/rrdtool"))
            .env("RRDCACHED_ADDRESS", &address)
            .env("RRDCACHED_STRIPPATH", tests);
        OwnDaemon(pid_file)
    }
}

impl Drop for OwnDaemon {
    fn drop(&mut self) {
        stop(&self.0);
    }
}

/// Ends daemons that a failed script has left.
fn stop_left_over(tests: &Path) {
    for entry in fs::read_dir(tests).expect("the tests").flatten() {
        if entry
            .path()
            .extension()
            .is_some_and(|extension| extension == "pid")
        {
            stop(&entry.path());
        }
    }
}

/// Ends the process of a pid file and waits until it is gone.
fn stop(pid_file: &Path) {
    let Ok(pid) = fs::read_to_string(pid_file) else {
        return;
    };
    let pid = pid.trim();
    let _ = Command::new("kill").arg(pid).stderr(Stdio::null()).status();
    let start = Instant::now();
    while Path::new("/proc").join(pid).exists() && start.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(10));
    }
}
