//! Commands, thresholds and the command line of `kymo poll`, compared with those of MRTG.

use std::fs::{self, File};
use std::os::fd::AsFd;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use kymo_poll::runner::{Runner, RunnerMessage};
use kymo_tests::served::eventually;
use kymo_tests::{Scratch, kymo, machine, run};

/// Longest wait for any event.
const PATIENCE: Duration = Duration::from_secs(120);

/// A folder that is removed at drop. For root it belongs to root alone, since kymo runs no commands otherwise.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Folder {
        let top = match kymo_sys::machine::is_root() {
            true => PathBuf::from("/run"),
            false => std::env::temp_dir(),
        };
        let folder = top.join(format!("kymo-poll-{}-{name}", std::process::id()));
        fs::create_dir(&folder).expect("a folder");
        Folder(folder)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Writes a configuration with a WorkDir below the folder; `FOLDER` in it stands for the folder.
    pub(crate) fn config(&self, name: &str, text: &str) -> PathBuf {
        let work = self.path("work");
        fs::create_dir_all(&work).expect("a folder");
        let text = text.replace("FOLDER", &self.0.display().to_string());
        let work = work.display();
        fs::write(
            self.path(name),
            format!("WorkDir: {work}\nLogFormat: rrdtool\n{text}"),
        )
        .expect("a configuration");
        self.path(name)
    }

    fn script(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("a script");
        fs::set_permissions(self.path(name), PermissionsExt::from_mode(0o755)).expect("its mode");
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder below /run or the temporary folder may stay behind.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Mrtg,
    Kymo,
}

impl Side {
    pub(crate) fn run(self, options: &[&str], config: &Path) -> Output {
        let mut command = match self {
            Side::Mrtg => Command::new("/usr/bin/mrtg"),
            Side::Kymo => {
                let mut command = Command::new(kymo());
                command.args(["poll", "--integer-stamps"]);
                command
            }
        };
        let command = command.args(options).arg(config).env("LANG", "C");
        command
            .stdin(Stdio::null())
            .output()
            .expect("it is started")
    }

    fn code(self, options: &[&str], config: &Path) -> Option<i32> {
        self.run(options, config).status.code()
    }
}

pub(crate) fn stderr_of(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn lines(runner: &mut Runner, numbers: &[u32]) -> Vec<String> {
    numbers.iter().for_each(|&number| runner.ask(number));
    let mut heard = Vec::new();
    let mut answers = 0;
    while answers < numbers.len() {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        match runner.take() {
            None => drop(kymo_sys::machine::wait_readable(
                &[runner.as_fd()],
                PATIENCE,
            )),
            Some(RunnerMessage::Answer { number, answer }) => {
                answers += 1;
                let [first, second] = answer.values.map(|value| value.map_or("-".into(), text));
                heard.push(format!("{number}: {first} {second}"));
            }
            Some(RunnerMessage::Line(line)) => heard.push(text(line)),
            Some(RunnerMessage::Loaded { .. }) => {}
            Some(RunnerMessage::Gone) => panic!("the runner has ended: {heard:?}"),
        }
    }
    heard.sort();
    heard
}

fn runner(config: &Path) -> Runner {
    let mut command = Command::new(kymo());
    command.arg("poll-runner").arg(config);
    Runner::start(command).expect("a runner")
}

#[test]
fn the_runner_reads_the_configuration_itself() {
    let folder = Folder::new("itself");
    folder.config(
        "more.inc",
        "Target[c]: `cat FOLDER/value; echo \\`echo 3\\``\nTitle[c]: c\nMaxBytes[c]: 9\n",
    );
    let config = folder.config(
        "a.cfg",
        "PathAdd: FOLDER\nTarget[a]: `echo 1; helper`\nTitle[a]: a\nMaxBytes[a]: 9\n\
         Target[b]: 1:public@127.0.15.1\nTitle[b]: b\nMaxBytes[b]: 9\ninclude: FOLDER/more.inc\n",
    );
    folder.script("helper", "#!/bin/sh\necho 2\n");
    fs::write(folder.path("value"), "5\n").expect("a value");
    let mut runner = runner(&config);
    assert_eq!(
        lines(&mut runner, &[0, 1, 2, 7]),
        ["0: 1 2", "1: - -", "2: 5 3", "7: - -"]
    );
    let others = folder.text("a.cfg").replace("echo 1", "echo 8");
    fs::write(&config, others).expect("another configuration");
    runner.load();
    assert_eq!(lines(&mut runner, &[0]), ["0: 8 2"]);
    fs::write(&config, "Nonsense: 1\n").expect("a wrong configuration");
    runner.load();
    let expected = [
        "0: - -",
        "cannot run commands: the configuration cannot be read",
    ];
    assert_eq!(lines(&mut runner, &[0]), expected);
}

/// A user who can write the configuration, or replace it, would be root.
#[test]
fn root_runs_only_what_is_roots_alone() {
    if !kymo_sys::machine::is_root() {
        kymo_tests::machine::skipped("not root");
        return;
    }
    let folder = Folder::new("root");
    folder.config(
        "b.inc",
        "Target[b]: `echo 1; echo 2`\nTitle[b]: b\nMaxBytes[b]: 9\n",
    );
    let config = folder.config("a.cfg", "include: FOLDER/b.inc\n");
    let others = Scratch::new("root");
    symlink(&config, others.path("a.cfg")).expect("a link");
    let asked = |config: &Path| lines(&mut runner(config), &[0]);
    assert_eq!(asked(&config), ["0: 1 2"]);
    for (changed, mode) in [("b.inc", 0o664), ("a.cfg", 0o646), (".", 0o777)] {
        let changed = folder.path(changed);
        let before = fs::metadata(&changed).expect("it is there").permissions();
        fs::set_permissions(&changed, PermissionsExt::from_mode(mode)).expect("a mode");
        let heard = asked(&config);
        assert_eq!(heard[0], "0: - -");
        let why = "cannot run the commands of the configuration as root: others may write /run/";
        assert!(heard[1].starts_with(why), "{heard:?}");
        fs::set_permissions(&changed, before).expect("the mode before");
    }
    let heard = asked(&others.path("a.cfg"));
    assert!(heard[1].contains("root: others may write"), "{heard:?}");
    assert_eq!(asked(&config), ["0: 1 2"]);
}

/// A folder of another user early in the PATH would choose the meaning of `seq`, and a script of another user would run as root.
#[test]
fn root_runs_no_program_of_another_user() {
    if !kymo_sys::machine::is_root() {
        kymo_tests::machine::skipped("not root");
        return;
    }
    let folder = Folder::new("programs");
    let foreign = folder.path("foreign");
    fs::create_dir(&foreign).expect("a folder");
    folder.script("foreign/seq", "#!/bin/sh\nprintf '666\\n666\\n'\n");
    folder.script("own", "#!/bin/sh\nprintf '3\\n4\\n'\n");
    let config = folder.config(
        "a.cfg",
        "PathAdd: FOLDER/foreign\nTitle[_]: t\nMaxBytes[_]: 9\n\
         Target[a]: `seq 1 2`\nTarget[b]: `FOLDER/foreign/seq`\nTarget[c]: `sh FOLDER/foreign/seq`\n\
         Target[d]: `FOLDER/own`\n",
    );
    let asked = || lines(&mut runner(&config), &[0, 1, 2, 3]);
    let spoken =
        |heard: &[String], part: &str| heard.iter().filter(|line| line.contains(part)).count();
    let trusted = asked();
    assert_eq!(spoken(&trusted, "666 666"), 3, "{trusted:?}");
    std::os::unix::fs::chown(&foreign, Some(65534), None).expect("another owner");
    let heard = asked();
    assert_eq!(spoken(&heard, "666"), 0, "{heard:?}");
    assert!(
        heard.contains(&"0: 1 2".to_string()) && heard.contains(&"3: 3 4".to_string()),
        "{heard:?}"
    );
    assert_eq!(
        spoken(&heard, "cannot look for programs as root: "),
        1,
        "{heard:?}"
    );
    assert_eq!(spoken(&heard, "it is not run as root: "), 2, "{heard:?}");
}

fn second() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.expect("after 1970").as_secs()
}

/// Waits for a second later than that of any value. MRTG's stamps are whole seconds, and a stamp no newer than the last one is
/// refused. A clock may be set back by a second after a value was stamped.
pub(crate) fn next_second(latest: &mut u64) {
    *latest = second().max(*latest);
    wait_until("the clock goes on", || second() > *latest + 2);
}

/// The target with a SetEnv comes last, since MRTG passes its variables on to later targets.
const THRESHOLDS: &str = "Interval: 0:01\nThreshDir: FOLDER/states
Target[c]: `cat FOLDER/../value`\nTitle[c]: t\nMaxBytes[c]: 10000\nOptions[c]: gauge
ThreshMinI[c]: 1.5e3\nThreshProgI[c]: FOLDER/prog\nThreshMaxO[c]: 4000\nThreshProgO[c]: FOLDER/prog
Target[A_b]: `cat FOLDER/../value`\nTitle[A_b]: t\nMaxBytes[A_b]: 10000\nOptions[A_b]: gauge
ThreshMaxI[A_b]: 15%\nThreshProgI[A_b]: FOLDER/prog\nThreshProgOKI[A_b]: FOLDER/ok
ThreshMinO[A_b]: 100\nThreshProgO[A_b]: FOLDER/prog\nThreshProgOKO[A_b]: FOLDER/ok
ThreshDesc[A_b]: a \"text\"\nSetEnv[A_b]: PORT=\"ge 1\" X=\"\"\n";

/// Rates are far from the bounds: near a bound, MRTG does not follow its manual.
#[test]
fn thresholds_turn_as_those_of_mrtg() {
    if machine::must_skip(&["mrtg"]) {
        return;
    }
    let top = Folder::new("thresholds");
    let place = |side: Side| {
        let folder = Folder(top.path(&format!("{side:?}")));
        fs::create_dir_all(folder.path("states")).expect("a folder");
        for name in ["prog", "ok"] {
            // Programs run at the same time, so a line has to be a single write.
            let line = "$(printf '[%s]' \"${0##*/}\" \"$@\" \"$THRESH_DESC\" \"$PORT\" \"$X\")";
            folder.script(
                name,
                &format!("#!/bin/sh\nprintf '%s\\n' \"{line}\" >> \"${{0%/*}}/log\"\n"),
            );
        }
        folder.config("m.cfg", THRESHOLDS);
        folder
    };
    let both = [
        (Side::Mrtg, place(Side::Mrtg)),
        (Side::Kymo, place(Side::Kymo)),
    ];
    let mut latest = 0;
    for value in [
        "1000\n200",
        "2000\n50",
        "2500.5\n10",
        "100\n5000",
        "UNKNOWN\n3",
        "3000\n7000",
    ] {
        fs::write(top.path("value"), format!("{value}\n")).expect("values");
        next_second(&mut latest);
        let mut seen: Vec<(Vec<String>, _, _)> = Vec::new();
        for (side, folder) in &both {
            let output = side.run(&[], &folder.path("m.cfg"));
            // Programs may go on when kymo has ended.
            let of_mrtg = seen.first().map_or(0, |(log, ..)| log.len());
            eventually(|| (folder.text("log").lines().count() >= of_mrtg).then_some(()));
            let mut states: Vec<_> = fs::read_dir(folder.path("states"))
                .expect("a folder")
                .map(|entry| entry.expect("an entry").path())
                .map(|path| {
                    format!(
                        "{:?} {}",
                        path.file_name(),
                        fs::read(&path).map_or(9, |b| b.len())
                    )
                })
                .collect();
            states.sort();
            let mut log: Vec<_> = folder.text("log").lines().map(String::from).collect();
            log.sort();
            seen.push((log, states, output.status.code()));
        }
        assert_eq!(seen[0], seen[1], "{value:?}");
    }
    assert_eq!(
        both[1].1.text("log").lines().count(),
        11,
        "{}",
        both[1].1.text("log")
    );
}

#[test]
fn check_names_counters_that_lose_values() {
    let folder = Scratch::new("check-narrow");
    for (version, is_lossy) in [("", true), (":::::2", false)] {
        let text = format!(
            "WorkDir: {}\nTarget[a]: 1:public@127.0.0.1{version}\nTitle[a]: t\nMaxBytes[a]: 125000000\n",
            folder.path("").display()
        );
        std::fs::write(folder.path("a.cfg"), &text).expect("a configuration");
        let mut check = Command::new(kymo());
        check.args(["poll", "--check"]).arg(folder.path("a.cfg"));
        let output = check.output().expect("kymo runs");
        assert!(output.status.success(), "{output:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(said.contains("lose values"), is_lossy, "{said}");
    }
}

/// `--check` returned 0 for a configuration that a run refuses.
#[test]
fn what_a_run_refuses_is_refused_by_check() {
    let folder = Scratch::new("check");
    let text = format!(
        "WorkDir: {}\nTarget[a]: 1:public@127.0.0.1\nTitle[a]: t\nMaxBytes[a]: 9\n",
        folder.path("").display()
    );
    std::fs::write(folder.path("a.cfg"), &text).expect("a configuration");
    for (more, options, code) in [
        ("", &[][..], 0),
        ("", &["--files=ask"], 2),
        ("LogFormat: rrdtool\n", &[], 0),
        ("LogFormat: rrdtool\n", &["--files=ask"], 2),
        ("", &["--keeper=/none"], 0),
    ] {
        std::fs::write(folder.path("a.cfg"), format!("{text}{more}")).expect("written");
        let output = Command::new(kymo())
            .args(["poll", "--check"])
            .args(options)
            .arg(folder.path("a.cfg"))
            .output();
        let output = output.expect("kymo");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            output.status.code(),
            Some(code),
            "{more} {options:?} {said}"
        );
        assert_eq!(code == 2, said.contains("cannot keep the values"), "{said}");
    }
}

/// `--check` returned 0 where each run returned 91.
#[test]
fn check_has_the_exit_code_of_a_run_that_leaves_targets_out() {
    let folder = Folder::new("check-left-out");
    let target =
        |name, of| format!("Target[{name}]: {of}\nTitle[{name}]: t\nMaxBytes[{name}]: 9\n");
    let good = target("a", "`echo 1; echo 2`");
    // MRTG's library refuses this backoff.
    let left_out = target("b", "1:public@127.0.0.1::::1.5:2");
    for (text, code) in [
        (good.clone(), 0),
        (format!("{good}{left_out}"), 91),
        (left_out, 92),
    ] {
        let config = folder.config("a.cfg", &text);
        let [check, run] = [&["--check"][..], &["--log-only"]].map(|options| {
            let mut command = Command::new(kymo());
            let output = command.arg("poll").args(options).arg(&config).output();
            let output = output.expect("kymo");
            (
                output.status.code(),
                String::from_utf8(output.stderr).expect("a text"),
            )
        });
        assert_eq!(check, run);
        assert_eq!(check.0, Some(code), "{}", check.1);
    }
}

/// `--check` said nothing of commands that root does not run, and returned 0.
#[test]
fn check_names_commands_that_root_does_not_run() {
    if machine::must_skip(&[]) {
        return;
    }
    let theirs = Scratch::new("check-root");
    let program = theirs.path("probe");
    fs::write(&program, "#!/bin/sh\necho 1; echo 2\n").expect("a script");
    fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).expect("its mode");
    let folder = Folder::new("check-root");
    let target = |name: &str, of: &str| {
        format!("Target[{name}]: {of}\nTitle[{name}]: t\nMaxBytes[{name}]: 9\n")
    };
    let (program, good) = (program.display(), target("a", "`echo 1; echo 2`"));
    let others = "others may write /tmp";
    let whole = "cannot run the commands of the configuration as root";
    let one = "command of b: it is not run as root";
    let cases = [
        (folder.path("a.cfg"), good.clone(), &[][..], 0),
        (
            folder.path("a.cfg"),
            format!("{good}{}", target("b", &format!("`{program}`"))),
            &[one],
            91,
        ),
        (
            folder.path("a.cfg"),
            target("b", &format!("`sh {program}` + `echo 3; echo 4`")),
            &[one],
            92,
        ),
        (
            folder.path("a.cfg"),
            format!("{good}PathAdd: {}\n", theirs.path("").display()),
            &["cannot look for programs as root"],
            0,
        ),
        (theirs.path("a.cfg"), good.clone(), &[whole], 92),
    ];
    for (path, text, expected, code) in cases {
        let work = folder.path("work");
        fs::create_dir_all(&work).expect("a folder");
        fs::write(&path, format!("WorkDir: {}\n{text}", work.display())).expect("written");
        let [check, run] = [&["--check"][..], &["--log-only"]].map(|options| {
            let mut command = Command::new(kymo());
            let output = command.arg("poll").args(options).arg(&path).output();
            let output = output.expect("kymo");
            let said = String::from_utf8(output.stderr).expect("a text");
            (output.status.code(), said)
        });
        assert_eq!(
            (check.0, run.0),
            (Some(code), Some(code)),
            "{check:?} {run:?}"
        );
        let refusals = |said: &str| -> Vec<String> {
            let lines = said.lines().filter(|line| line.contains(others));
            lines.map(String::from).collect()
        };
        let [of_check, of_run] = [&check.1, &run.1].map(|said| refusals(said));
        assert_eq!(of_check, of_run, "{text}");
        assert_eq!(of_check.len(), expected.len(), "{of_check:?}");
        for (line, expected) in of_check.iter().zip(expected) {
            assert!(line.contains(expected), "{line}");
        }
    }
    // The program of a threshold is refused when the rate passes the bound; `--check` names it before.
    let program = format!("ThreshMaxI[a]: 1\nThreshProgI[a]: {program}\n");
    let config = folder.config("a.cfg", &format!("{good}{program}"));
    let mut check = Command::new(kymo());
    let output = check.args(["poll", "--check"]).arg(config).output();
    let output = output.expect("kymo");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("cannot run the threshold program of a as root: others may write /tmp"),
        "{said}"
    );
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn exit_codes_are_those_of_mrtg() {
    if machine::must_skip(&["mrtg"]) {
        return;
    }
    let good = "Target[a]: `echo 1; echo 2`\nTitle[a]: t\nMaxBytes[a]: 9\n";
    let half = "Target[b]: `echo 1; echo UNKNOWN`\nTitle[b]: t\nMaxBytes[b]: 9\n";
    for (options, text, code) in [
        (&[][..], good.to_string(), 0),
        (&["--check"], half.to_string(), 0),
        (&[], half.to_string(), 92),
        (&[], format!("{good}{half}"), 91),
        (&["--log-only", "--debug=none"], good.to_string(), 0),
        // A single run has no next cycle, so a command may take longer than the interval.
        (
            &[],
            format!(
                "Interval: 0:01\n{}",
                good.replace("`echo", "`sleep 1.5; echo")
            ),
            0,
        ),
        // MRTG's exit code is the present value of errno.
        (&[], format!("{good}Title[a]: t\n"), 2),
        (&["--check"], format!("{good}Nonsense[a]: t\n"), 2),
        (&["--check"], "Target[a]: x\n".into(), 2),
        (&["--gibberish"], good.to_string(), 2),
        (&["--user=no-such-user"], good.to_string(), 2),
    ] {
        let codes = [Side::Mrtg, Side::Kymo].map(|side| {
            let folder = Folder::new("codes");
            let config = folder.config("a.cfg", &text);
            let code = side.code(options, &config);
            let left = ["a.cfg_l", "a.pid"].map(|name| folder.path(name).exists());
            assert_eq!(left, [false, false], "{side:?} {options:?} {text}");
            code
        });
        assert_eq!(codes[1], Some(code), "{options:?} {text}");
        match code {
            2 => assert_ne!(codes[0], Some(0), "{options:?} {text}"),
            _ => assert_eq!(codes[0], Some(code), "{options:?} {text}"),
        }
    }
}

#[test]
fn a_lock_that_somebody_holds_keeps_both_out() {
    if machine::must_skip(&["mrtg"]) {
        return;
    }
    let folder = Folder::new("lock");
    let config = folder.config(
        "a.cfg",
        "Target[a]: `echo 1; echo 2`\nTitle[a]: t\nMaxBytes[a]: 9\n",
    );
    let lock = folder.path("a.cfg_l");
    let own = std::process::id().to_string();
    for (holder, links, age_s, code) in [
        (own.as_str(), 2, 60, false),
        (&own, 1, 60, true),
        (&own, 2, 1801, true),
        ("2147483646", 2, 60, true),
    ] {
        for side in [Side::Mrtg, Side::Kymo] {
            fs::write(&lock, holder).expect("a lock");
            let then = SystemTime::now() - Duration::from_secs(age_s);
            let file = File::options().write(true).open(&lock).expect("a lock");
            file.set_modified(then).expect("its age");
            let other = folder.path("other");
            if links == 2 {
                fs::hard_link(&lock, &other).expect("a second name");
            }
            let output = side.run(&[], &config);
            let what = format!("{side:?} {holder} {links} {age_s}: {}", stderr_of(&output));
            assert_eq!(output.status.success(), code, "{what}");
            // MRTG removes the lock that it has respected.
            if side == Side::Kymo {
                assert_eq!(lock.exists(), !code, "{what}");
            }
            for name in [&lock, &other] {
                let _ = fs::remove_file(name);
            }
        }
    }
}

fn number_in(file: &Path) -> Option<u32> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Kills the process that a test left in the background.
struct Background(PathBuf);

impl Drop for Background {
    fn drop(&mut self) {
        if let Some(pid) = number_in(&self.0) {
            let _ = Command::new("kill").args(["-9", &pid.to_string()]).status();
        }
    }
}

#[test]
fn a_daemon_is_there_once_and_leaves_nothing() {
    let folder = Folder::new("daemon");
    let text = "Interval: 0:01\nTarget[a]: `echo 1; echo 2`\nTitle[a]: t\nMaxBytes[a]: 9\n";
    let config = folder.config("a.cfg", text);
    let (config, log) = (
        config.display().to_string(),
        folder.path("log").display().to_string(),
    );
    let pid_file = folder.path("a.pid");
    let background = Background(pid_file.clone());
    let started = run(&["poll", "--daemon", "--logging", &log, &config]);
    assert_eq!(started.status.code(), Some(0), "{}", stderr_of(&started));
    let pid = number_in(&pid_file).expect("the daemon's number");
    assert_eq!(
        number_in(&folder.path("a.cfg_l")),
        Some(pid),
        "the lock is the daemon's"
    );
    wait_until("it stores values", || folder.path("work/a.rrd").exists());
    let second = run(&["poll", "--daemon", &config]);
    assert_eq!(second.status.code(), Some(2));
    assert!(
        stderr_of(&second).contains(&format!("process {pid}")),
        "{}",
        stderr_of(&second)
    );
    assert_eq!(
        number_in(&pid_file),
        Some(pid),
        "the second one left it alone"
    );
    // Ends the daemon: its pid file and its lock go.
    let sent = Command::new("kill").arg(pid.to_string()).status();
    assert!(sent.is_ok_and(|status| status.success()));
    wait_until("it ends", || !kymo_sys::privilege::is_alive(pid));
    drop(background);
    let left: Vec<_> = ["a.pid", "a.cfg_l"]
        .iter()
        .filter(|name| folder.path(name).exists())
        .collect();
    assert!(left.is_empty(), "{left:?}; {}", folder.text("log"));
}

#[test]
fn beside_mrtg_it_has_its_own_files_and_any_language_will_do() {
    let folder = Folder::new("beside");
    let config = folder.config(
        "a.cfg",
        "Target[a]: `echo 1; echo 2`\nTitle[a]: t\nMaxBytes[a]: 9\n",
    );
    // MRTG's own lock, held by a living process.
    fs::write(folder.path("a.cfg_l"), std::process::id().to_string()).expect("a lock");
    fs::hard_link(folder.path("a.cfg_l"), folder.path("other")).expect("a second name");
    fs::create_dir(folder.path("mine")).expect("a folder");
    symlink(kymo(), folder.path("mrtg")).expect("a link");
    let mut command = Command::new(folder.path("mrtg"));
    let command = command
        .arg("--log-dir")
        .arg(folder.path("mine"))
        .arg(&config);
    let output = command
        .env("LANG", "en_US.UTF-8")
        .output()
        .expect("it is started");
    assert_eq!(output.status.code(), Some(0), "{}", stderr_of(&output));
    assert!(folder.path("mine/a.rrd").exists());
    assert!(!folder.path("work/a.rrd").exists());
    assert_eq!(folder.text("a.cfg_l"), std::process::id().to_string());
}

/// A reload waited for a moment without a command, which a daemon with many slow ones never has.
#[test]
fn a_daemon_whose_commands_always_run_reads_again() {
    let folder = Folder::new("busy");
    let slow = |number: usize| {
        format!(
            "Target[t{number}]: `sleep 5.{number}`\nTitle[t{number}]: t\nMaxBytes[t{number}]: 9\n"
        )
    };
    let many: String = (0..12).map(slow).collect();
    let config = folder.config("a.cfg", &format!("Interval: 0:01\n{many}"));
    let background = Background(folder.path("a.pid"));
    let log = folder.path("log").display().to_string();
    let config = config.display().to_string();
    let started = run(&["poll", "--daemon", "--logging", &log, &config]);
    assert_eq!(started.status.code(), Some(0), "{}", stderr_of(&started));
    wait_until("a command is killed", || {
        folder.text("log").contains("was killed")
    });
    // From the second interval on each command has a moment of its own.
    std::thread::sleep(Duration::from_secs(3));
    let quick = "Target[b]: `touch FOLDER/ran; echo 1; echo 2`\nTitle[b]: t\nMaxBytes[b]: 9\n";
    folder.config("a.cfg", &format!("Interval: 0:10\n{quick}"));
    let pid = number_in(&background.0).expect("the daemon's number");
    let hang_up = Command::new("kill")
        .args(["-HUP", &pid.to_string()])
        .status();
    assert!(hang_up.is_ok_and(|status| status.success()));
    wait_until("the new command runs", || folder.path("ran").exists());
    drop(background);
}

/// A command's number is its place in the configuration. A process that has read another configuration would run another command.
#[test]
fn a_daemon_reads_again_and_runs_what_is_there_then() {
    // A command may take 4 of 5 seconds, so that a busy machine has time for it, and for a moment without one. Files of an interval
    // of a second have 7.8 MB each.
    const SLOW: &str = "Interval: 0:05\n";
    let folder = Folder::new("again");
    let target = |name: &str, word: &str| {
        format!(
            "Target[{name}]: `echo {word} >> FOLDER/ran; echo 1; echo 2`\nTitle[{name}]: t\nMaxBytes[{name}]: 9\n"
        )
    };
    let config = folder.config("a.cfg", &format!("{SLOW}{}", target("a", "first")));
    let pid_file = folder.path("a.pid");
    let background = Background(pid_file.clone());
    let log = folder.path("log").display().to_string();
    let started = run(&[
        "poll",
        "--daemon",
        "--logging",
        &log,
        &config.display().to_string(),
    ]);
    assert_eq!(started.status.code(), Some(0), "{}", stderr_of(&started));
    let pid = number_in(&pid_file)
        .expect("the daemon's number")
        .to_string();
    wait_until("the command runs", || folder.text("ran").contains("first"));
    let other = format!("{SLOW}{}{}", target("b", "second"), target("a", "third"));
    folder.config("a.cfg", &other);
    let hang_up = Command::new("kill").args(["-HUP", &pid]).status();
    assert!(hang_up.is_ok_and(|status| status.success()));
    wait_until("the new ones run", || {
        let ran = folder.text("ran");
        ran.contains("second") && ran.contains("third")
    });
    fs::write(folder.path("ran"), "").expect("nothing");
    wait_until("they go on", || folder.text("ran").lines().count() > 4);
    let first = folder
        .text("ran")
        .lines()
        .filter(|line| *line == "first")
        .count();
    assert!(
        first <= 1,
        "the one before is run still: {}",
        folder.text("ran")
    );
    drop(background);
}
