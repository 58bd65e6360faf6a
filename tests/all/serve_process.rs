//! `kymo serve` from the side of a user and of a service manager: its processes and their users, the
//! death of a process, and refused command lines.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use kymo_tests::served::{
    LONG, Served, ask, children_of, eventually, files_of, get, is_alive, kill, status_of,
};
use kymo_tests::{Running, Scratch, is_root, kymo, machine, parse_dump, run, stdout_of};
use serde_json::Value;

/// Waits for the recorder, which may be slower to start than the hub.
fn is_recording(address: &str) {
    let alive = || {
        let status = get(address, "/kymo/v1/status", "");
        (status["recorder"]["alive"] == true).then_some(())
    };
    eventually(alive).expect("a recorder");
}

/// Sequence numbers of the samples on disk.
fn samples(dir: &str) -> BTreeSet<u64> {
    let frames = parse_dump(&run(&["dump", dir, "--source", "proc/loadavg"]).stdout);
    frames.iter().map(|frame| frame.seq).collect()
}

const LOCAL: [&str; 2] = ["--listen", "127.0.0.1:0"];

#[test]
fn it_records_answers_and_ends_within_a_second() {
    let scratch = Scratch::new("serve");
    let dir = scratch.text("data");
    let mut served = Served::start(&["--data", &dir, LOCAL[0], LOCAL[1]]);
    let address = served.address();
    served.has_said("recorder: user ");
    for part in [
        format!("recording to {dir} (cap "),
        "recorder: user ".into(),
        "hub: user ".into(),
    ] {
        let lines = served.said.iter().filter(|line| line.contains(&part));
        assert_eq!(lines.count(), 1, "{part}: {:#?}", served.said);
    }
    let status = get(&address, "/kymo/v1/status", "");
    assert_eq!(status["mode"], "live");
    is_recording(&address);
    let processes = [
        served.pid(),
        served.child("record").expect("a recorder"),
        served.child("hub").expect("a hub"),
    ];
    for pid in processes {
        let name = fs::read_to_string(format!("/proc/{pid}/comm"));
        assert_eq!(name.expect("its name").trim(), "kymo");
    }
    let mut took = Vec::new();
    for (signal, name) in [("-TERM", "data"), ("-INT", "second"), ("-TERM", "third")] {
        let dir = &scratch.text(name);
        if name != "data" {
            served = Served::start(&["--data", dir, LOCAL[0], LOCAL[1]]);
            served.address();
        }
        let asked = Instant::now();
        served.guardian.signal(signal);
        let status = served.guardian.0.wait().expect("its end");
        took.push(asked.elapsed());
        assert!(status.success(), "{status}");
        let sealed = || kymo_tests::tail_first_seqs(dir).is_empty().then_some(());
        assert!(eventually(sealed).is_some(), "the recorder seals its tails");
    }
    // On a slow disk the service does not wait for the recorder.
    assert!(
        took.iter().min() < Some(&Duration::from_secs(1)),
        "{took:?}"
    );
    let ended = || processes.iter().all(|&pid| !is_alive(pid)).then_some(());
    assert!(eventually(ended).is_some(), "all of them end");
}

#[test]
fn the_token_is_in_a_file_and_nowhere_else() {
    let scratch = Scratch::new("token");
    let dir = scratch.text("data");
    let mut served = Served::start(&["--data", &dir, LOCAL[0], LOCAL[1]]);
    let address = served.address();
    let path = scratch.path("data/token");
    assert_eq!(
        fs::metadata(&path).expect("the token").mode() & 0o7777,
        0o600
    );
    assert_eq!(
        fs::metadata(&dir).expect("the folder").mode() & 0o7777,
        0o750
    );
    let text = fs::read_to_string(&path).expect("the token");
    let token = text.trim();
    assert!(
        served
            .said
            .iter()
            .all(|line| !line.contains(token) && !line.contains("code="))
    );
    for pid in [
        served.pid(),
        served.child("record").expect("a recorder"),
        served.child("hub").expect("a hub"),
    ] {
        for file in ["cmdline", "environ"] {
            let text = fs::read(format!("/proc/{pid}/{file}")).expect("its arguments");
            assert!(!String::from_utf8_lossy(&text).contains(token), "{file}");
        }
    }
    assert_eq!(
        get(&address, "/kymo/v1/status", "")["scopes"].to_string(),
        r#"["read"]"#
    );
    let scopes = get(&address, "/kymo/v1/status", token)["scopes"].to_string();
    assert!(scopes.contains("texts"), "{scopes}");
    drop(served);
    let mut served = Served::start(&["--data", &dir, LOCAL[0], LOCAL[1]]);
    let address = served.address();
    let scopes = get(&address, "/kymo/v1/status", token)["scopes"].to_string();
    assert!(scopes.contains("texts"), "the token is kept: {scopes}");
}

/// CAP_DAC_READ_SEARCH and CAP_SYS_PTRACE.
const READING: u64 = 1 << 2 | 1 << 19;

#[test]
fn each_process_has_what_it_needs_and_no_more() {
    let scratch = Scratch::new("rights");
    let open = fs::Permissions::from_mode(0o755);
    fs::set_permissions(scratch.path(""), open).expect("chmod");
    let dir = scratch.text("data");
    let config = scratch.text("kymo.toml");
    let backups = scratch.text("backups");
    fs::create_dir(&backups).expect("a folder");
    fs::set_permissions(&backups, fs::Permissions::from_mode(0o777)).expect("chmod");
    let text = format!("user = \"nobody\"\n[backup]\nto = \"{backups}\"\n");
    fs::write(&config, text).expect("a file");
    let mut served = Served::start(&["--config", &config, "--data", &dir, LOCAL[0], LOCAL[1]]);
    let address = served.address();
    let (recorder, hub) = (
        served.child("record").expect("a recorder"),
        served.child("hub").expect("a hub"),
    );
    served.has_said("backup: user ");
    let backup = served.child("backup-every").expect("a process");
    let set = |pid, field| u64::from_str_radix(&status_of(pid, field)[0], 16).expect("a set");
    for field in ["CapPrm", "CapEff", "CapInh", "CapAmb", "CapBnd"] {
        // Without CAP_SETPCAP the bounding set stays; no_new_privs alone protects then.
        if field != "CapBnd" || is_root() {
            for pid in [hub, backup] {
                assert_eq!(set(pid, field), 0, "{field}");
            }
            assert_eq!(
                set(recorder, field) & !READING,
                0,
                "{field} of the recorder"
            );
        }
    }
    for pid in [recorder, hub, backup] {
        assert_eq!(status_of(pid, "NoNewPrivs"), ["1"]);
        assert_eq!(status_of(pid, "SigBlk").len(), 1);
    }
    if is_root() {
        assert_eq!(set(recorder, "CapEff"), READING);
        let owner = fs::metadata(&dir).expect("the folder");
        assert_eq!(status_of(backup, "Uid"), vec![owner.uid().to_string(); 4]);
        for pid in [recorder, hub] {
            assert_eq!(status_of(pid, "Uid"), vec![owner.uid().to_string(); 4]);
            assert_eq!(status_of(pid, "Groups"), [owner.gid().to_string()]);
        }
        assert_ne!(owner.uid(), 0, "a new folder is given to the user");
        served.has_said(
            "recorder: user nobody, CAP_DAC_READ_SEARCH CAP_SYS_PTRACE, no_new_privs, seccomp (",
        );
        let said = |part: &str| served.said.iter().any(|line| line.contains(part));
        assert!(
            said("hub: user nobody, no capabilities, no_new_privs"),
            "{:#?}",
            served.said
        );
    }
    sockets_are_the_hubs(&served, recorder, hub);
    is_recording(&address);
}

/// The recorder has no socket, and neither child has a file of the guardian's only.
fn sockets_are_the_hubs(served: &Served, recorder: u32, hub: u32) {
    let sockets = |pid| {
        let files = files_of(pid).into_iter();
        files
            .filter(|file| file.starts_with("socket:"))
            .collect::<BTreeSet<_>>()
    };
    let held = sockets(served.pid());
    let listening = held.intersection(&sockets(hub)).count();
    assert_eq!(
        listening, 1,
        "the hub listens, and has none of the keeper's"
    );
    if is_root() || !files_of(recorder).is_empty() {
        assert_eq!(sockets(recorder), BTreeSet::new(), "the recorder does not");
    }
}

#[test]
fn a_killed_recorder_is_a_gap_and_starts_again() {
    let scratch = Scratch::new("killrec");
    let dir = scratch.text("data");
    let mut served = Served::start(&["--data", &dir, LOCAL[0], LOCAL[1]]);
    let address = served.address();
    let first = served.child("record").expect("a recorder");
    eventually(|| (samples(&dir).len() >= 2).then_some(())).expect("two samples");
    kill("-KILL", first);
    let line = served.hears("the recorder was ended by signal 9");
    assert!(line.ends_with("it is started again in 1 s"), "{line}");
    let hub = served.child("hub");
    served.next_child("record", first);
    let kinds = eventually(|| {
        let events = get(&address, "/kymo/v1/events?from=-600&thru=now", "");
        let marks = events["marks"].as_array()?.clone();
        let kinds: Vec<_> = marks
            .iter()
            .map(|mark| mark["kind"].as_str().unwrap_or_default().to_string())
            .collect();
        (kinds.iter().filter(|kind| *kind == "start").count() == 2).then_some(kinds)
    });
    let kinds = kinds.expect("the second start is marked");
    assert!(kinds.contains(&"gap".to_string()), "{kinds:?}");
    assert_eq!(served.child("hub"), hub, "the hub has gone on");
}

#[test]
fn a_killed_hub_answers_again_and_nothing_recorded_is_missing() {
    let scratch = Scratch::new("killhub");
    let dir = scratch.text("data");
    let mut served = Served::start(&["--data", &dir, LOCAL[0], LOCAL[1]]);
    let address = served.address();
    let (recorder, hub) = (
        served.child("record").expect("a recorder"),
        served.child("hub").expect("a hub"),
    );
    kill("-KILL", hub);
    served.hears("the hub was ended by signal 9");
    assert_eq!(served.address(), address);
    assert_eq!(get(&address, "/kymo/v1/status", "")["mode"], "live");
    assert_eq!(served.child("record"), Some(recorder));
    eventually(|| (samples(&dir).len() >= 4).then_some(())).expect("four samples");
    let events = get(&address, "/kymo/v1/events?from=-600&thru=now", "");
    let marks = events["marks"].as_array().expect("marks");
    let of = |kind: &str| marks.iter().filter(|mark| mark["kind"] == kind).count();
    assert_eq!((of("gap"), of("start")), (0, 1), "{events}");
}

#[test]
fn a_killed_guardian_takes_hub_and_keeper_along_and_the_recorder_goes_on() {
    let scratch = Scratch::new("killguard");
    let dir = scratch.text("data");
    let mut served = Served::start(&["--data", &dir, LOCAL[0], LOCAL[1]]);
    let address = served.address();
    let (recorder, hub, keeper) = (
        served.child("record").expect("a recorder"),
        served.child("hub").expect("a hub"),
        served.child("keeper").expect("a keeper"),
    );
    kill("-KILL", served.pid());
    for (pid, name) in [(hub, "hub"), (keeper, "keeper")] {
        eventually(|| (!is_alive(pid)).then_some(())).expect(name);
    }
    assert!(is_alive(recorder));
    // A second service on the same folder and address only reads, until the recorder ends.
    let mut second = Served::start(&["--data", &dir, "--listen", &address]);
    assert_eq!(second.address(), address);
    let line = second.has_said("is recording there already");
    assert!(line.contains(&recorder.to_string()), "{line}");
    is_recording(&address);
    assert_eq!(second.child("record"), None);
    kill("-TERM", recorder);
    second.next_child("record", recorder);
}

#[test]
fn what_is_wrong_is_said_before_anything_is_started() {
    let scratch = Scratch::new("refused");
    let dir = scratch.text("data");
    let busy = TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = busy.local_addr().expect("its address").to_string();
    let file = scratch.text("plain");
    fs::write(&file, "").expect("a file");
    for (arguments, line) in [
        (&["--listen", &taken][..], format!("cannot listen on {taken}: address in use")),
        (
            &["--listen", "0.0.0.0:4280"],
            "cannot listen on 0.0.0.0:4280: anybody could reach it; give tls_cert and tls_key, or insecure = true".into(),
        ),
        (&["--listen", "[::]:4280", "--check"], "cannot listen on [::]:4280: anybody could reach it".into()),
        (&["--listen", "4280"], "cannot listen on 4280: not an address and a port".into()),
        (&["--config", "/no/such/file"], "cannot read /no/such/file: ".into()),
        (&["--data", "/proc/nowhere", LOCAL[0], LOCAL[1]], "cannot make /proc/nowhere: ".into()),
        (&["--data", &file, LOCAL[0], LOCAL[1]], format!("cannot make {file}: ")),
        (&["--open", "/no/such/file", LOCAL[0], LOCAL[1]], "cannot open /no/such/file: ".into()),
        (&["--gibberish"], "cannot use --gibberish: no such switch".into()),
    ] {
        refuses(&[&["--data", &dir], arguments].concat(), &line);
    }
    assert!(!scratch.path("data").exists());
    drop(busy);
}

/// The service ends with code 2 and this one line. A second `--data` overrides the first.
fn refuses(arguments: &[&str], line: &str) {
    let arguments = match arguments.iter().filter(|word| **word == "--data").count() {
        2 => &arguments[2..],
        _ => arguments,
    };
    let output = run(&[&["serve"], arguments].concat());
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
    assert!(
        stderr.starts_with(&format!("kymo: {line}")),
        "{arguments:?}: {stderr}, not {line}"
    );
    assert_eq!(stderr.trim_end().lines().count(), 1, "{stderr}");
    assert!(output.stdout.is_empty());
}

#[test]
fn configuration_files_are_checked_with_their_lines() {
    let scratch = Scratch::new("config");
    let path = scratch.text("kymo.toml");
    for (text, line) in [
        ("\nlistn = \"127.0.0.1:1\"\n", "line 2: unknown key `listn`"),
        (
            "[record]\ncap = \"lots\"\n",
            "line 2: not a size such as 100M or 1G",
        ),
        ("listen = [\n", "line "),
    ] {
        fs::write(&path, text).expect("a file");
        for check in [&[][..], &["--check"]] {
            refuses(
                &[&["--config", &path], check].concat(),
                &format!("cannot use {path} {line}"),
            );
        }
    }
    fs::write(&path, "tls_cert = \"/c\"\ntls_key = \"/k\"\n").expect("a file");
    refuses(&["--config", &path, "--check"], "cannot read /c: ");
    let tls = format!("tls_cert = \"{path}\"\ntls_key = \"{path}\"\n");
    fs::write(&path, tls).expect("a file");
    refuses(
        &["--config", &path, "--check"],
        "cannot use tls_cert: it holds no certificate",
    );

    let default = stdout_of(&["config"]);
    fs::write(&path, &default).expect("a file");
    let dir = scratch.text("data");
    let check = [
        "serve",
        "--check",
        "--config",
        &path,
        "--data",
        &dir,
        "--listen",
        "127.0.0.1:81",
    ];
    let effective = stdout_of(&check);
    assert!(
        effective.contains(&format!("data = \"{dir}\"")),
        "{effective}"
    );
    assert!(
        effective.contains("page = \"127.0.0.1:81\""),
        "switches win: {effective}"
    );
    fs::write(&path, &effective).expect("a file");
    assert_eq!(
        stdout_of(&["serve", "--check", "--config", &path]),
        effective
    );
    assert!(!scratch.path("data").exists(), "a check makes nothing");
}

#[test]
fn files_from_elsewhere_are_shown_without_a_recorder() {
    let scratch = Scratch::new("open");
    let dir = scratch.text("ring");
    stdout_of(&["record", "-s", "cd", "-i", ".05", "-c", "5", "-f", &dir]);
    let mut served = Served::start(&["--open", &dir, LOCAL[0], LOCAL[1]]);
    let address = served.address();
    assert_eq!(get(&address, "/kymo/v1/status", "")["mode"], "file");
    assert_eq!(children_of(served.pid()).len(), 1, "the hub is alone");
    assert!(!scratch.path("ring/token").exists());
}

#[test]
fn a_service_manager_is_told() {
    let scratch = Scratch::new("notify");
    let (dir, path) = (scratch.text("data"), scratch.path("socket"));
    let socket = UnixDatagram::bind(&path).expect("a socket");
    socket.set_read_timeout(Some(LONG)).expect("a timeout");
    let told = || {
        let mut text = [0; 100];
        let length = socket.recv(&mut text).expect("a message");
        String::from_utf8_lossy(&text[..length]).into_owned()
    };
    let mut served = Served::start_with(&[&["--data", &dir][..], &LOCAL].concat(), |command| {
        command
            .env("NOTIFY_SOCKET", &path)
            .env("WATCHDOG_USEC", "200000")
    });
    let address = served.address();
    let before_ready: Vec<_> = std::iter::repeat_with(told)
        .take_while(|told| told != "READY=1")
        .collect();
    assert!(
        before_ready.iter().all(|told| told == "WATCHDOG=1"),
        "{before_ready:?}"
    );
    assert_eq!(told(), "WATCHDOG=1");
    assert_eq!(get(&address, "/kymo/v1/status", "")["mode"], "live");
    served.guardian.signal("-TERM");
    let rest: Vec<_> = std::iter::repeat_with(told)
        .take_while(|told| told != "STOPPING=1")
        .collect();
    assert!(rest.iter().all(|told| told == "WATCHDOG=1"), "{rest:?}");
}

#[test]
fn on_a_terminal_the_url_opens_everything_once() {
    let scratch = Scratch::new("terminal");
    if Command::new("script").arg("--version").output().is_err() {
        return machine::skipped("script is missing");
    }
    let line = format!(
        "exec {} serve --data {} --listen 127.0.0.1:0",
        kymo().display(),
        scratch.text("data")
    );
    let published = format!("/dev/shm/kymo-tests-terminal-{}", std::process::id());
    let mut script = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .env("KYMO_DIR", &published)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("script");
    let mut lines = BufReader::new(script.stdout.take().expect("its output")).lines();
    let script = Running(script);
    let url = lines.find_map(|line| Some(line.ok()?.split_once("http://")?.1.to_string()));
    let url = url.expect("a URL");
    let (address, rest) = url.split_once("/#code=").expect("a code");
    let code = rest.split(' ').next().expect("a code");
    let body = format!("{{\"code\": \"{code}\"}}");
    let (status, answer) = ask(address, "POST", "/kymo/v1/session", "", &body).expect("an answer");
    assert_eq!(status, 200, "{answer}");
    let session: Value = serde_json::from_str(&answer).expect("JSON");
    let scopes = get(
        address,
        "/kymo/v1/status",
        session["token"].as_str().expect("a token"),
    );
    assert!(scopes["scopes"].to_string().contains("texts"));
    let again = ask(address, "POST", "/kymo/v1/session", "", &body).expect("an answer");
    assert_eq!(again.0, 401, "{}", again.1);
    for guardian in children_of(script.0.id()) {
        kill("-TERM", guardian);
        eventually(|| (!is_alive(guardian)).then_some(())).expect("its end");
    }
    let _left = fs::remove_dir_all(published);
}

#[test]
fn with_a_certificate_it_answers_by_tls_alone() {
    let scratch = Scratch::new("tls");
    let (cert, key) = (scratch.text("cert.pem"), scratch.text("key.pem"));
    let request = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1";
    let made = Command::new("openssl")
        .args(request.split(' '))
        .args(["-keyout", &key, "-out", &cert])
        .stderr(Stdio::null())
        .status();
    let has_curl = Command::new("curl").arg("--version").output().is_ok();
    if !has_curl || !made.is_ok_and(|status| status.success()) {
        return machine::skipped("openssl or curl is missing");
    }
    // No other user may read the key, and so not the hub.
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).expect("chmod");
    let config = scratch.text("kymo.toml");
    let text = format!("user = \"nobody\"\ntls_cert = \"{cert}\"\ntls_key = \"{key}\"\n");
    fs::write(&config, text).expect("a file");
    stdout_of(&["serve", "--check", "--config", &config]);
    let dir = scratch.text("data");
    let mut served = Served::start(&["--config", &config, "--data", &dir, LOCAL[0], LOCAL[1]]);
    let address = served.address();
    assert!(
        served
            .said
            .iter()
            .any(|line| line.contains("open https://"))
    );
    let url = format!("https://{address}/kymo/v1/status");
    for (more, code) in [
        (&["--cacert", &cert][..], Some(0)),
        (&["--cacert", &cert, "--tls-max", "1.2"], Some(0)),
        // A certificate without an issuer that curl trusts.
        (&[], Some(60)),
    ] {
        let output = Command::new("curl").args(["-sS", &url]).args(more).output();
        let output = output.expect("curl");
        assert_eq!(output.status.code(), code, "{more:?}: {output:?}");
        let answer = String::from_utf8_lossy(&output.stdout);
        assert_eq!(answer.contains("\"live\""), code == Some(0), "{answer}");
    }
    assert_eq!(ask(&address, "GET", "/kymo/v1/status", "", ""), None);
    // A client that connects and stays silent does not hinder others.
    let _silent = TcpStream::connect(&address).expect("a connection");
    let again = Command::new("curl")
        .args(["-sS", "-o", "/dev/null", "--cacert", &cert, &url])
        .status();
    assert!(again.expect("curl").success());
}

/// A signal to flush, sent to every process named kymo, ends none of them.
#[test]
fn flushing_ends_nothing() {
    let scratch = Scratch::new("flush");
    let dir = scratch.text("data");
    let config = "[record]\ninterval = 0.1\nprocess_interval = 1\n";
    // To the guardian, SIGHUP may mean that the test's terminal was closed; its children have none.
    let mut served = Served::configured(&scratch, dir.as_ref(), config);
    is_recording(&served.address());
    let before = ["record", "hub"].map(|word| served.next_child(word, 0));
    for signal in ["-USR1", "-HUP"] {
        for pid in before {
            kill(signal, pid);
        }
        if signal == "-USR1" {
            served.guardian.signal(signal);
        }
        let had = samples(&dir).len();
        let more = eventually(|| (samples(&dir).len() > had + 3).then_some(()));
        assert!(more.is_some(), "{signal}: it records no longer");
    }
    let after = ["record", "hub"].map(|word| served.child(word));
    assert_eq!(after, before.map(Some), "{:#?}", served.said);
    assert!(served.guardian.0.try_wait().expect("its state").is_none());
}

#[test]
fn a_hub_started_by_hand_says_who_starts_it() {
    let output = run(&["hub"]);
    assert_eq!(output.status.code(), Some(2));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        stderr.starts_with("kymo: cannot run the hub: it is started by kymo serve"),
        "{stderr}"
    );
}
