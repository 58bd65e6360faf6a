//! Users, command lines and control groups need the token. The test asks every path of the router, new ones included,
//! and looks for markers in the answers.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::client::{LONG, Served, eventually};
use kymo_tests::machine::{must_skip, skipped};
use kymo_tests::{Running, Scratch, is_root};

/// A user id that this machine does not use, and that resembles no other number.
const USER: &str = "3917604821";
/// A word in the arguments of a process of that user.
const COMMAND: &str = "marker-of-a-command-5d20";
/// A control group of that process, where one can be made.
const GROUP: &str = "marker-of-a-group-5d20";
/// Queries for the fullest answers. The test sends each of them to every path.
const QUERIES: [&str; 14] = [
    "",
    "?at=now",
    "?from=-600&thru=now",
    "?over=60",
    "?sort=user",
    "?sort=uid",
    "?filter=USER",
    "?filter=COMMAND",
    "?match=user=USER",
    "?q=USER",
    "?fields=process.uid:*&from=-60",
    "?fields=cgroups.cpu:*&from=-60",
    "?fields=STORED&from=-600",
    "?source=proc/PID/cmdline",
];

/// All paths in the router's source.
fn paths() -> Vec<&'static str> {
    let source = include_str!("../../../crates/serve/src/api.rs");
    let routes = source.split(".route(\"").skip(1);
    let paths: Vec<&str> = routes.filter_map(|rest| rest.split('"').next()).collect();
    assert!(paths.len() > 15 && paths.contains(&"/metrics"), "{paths:?}");
    paths
}

fn as_user(program: &str) -> Command {
    let mut command = Command::new("setpriv");
    let user = [format!("--reuid={USER}"), format!("--regid={USER}")];
    command.args(user).args(["--clear-groups", program]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

/// The example in C, which publishes as that user until drop.
fn publisher(scratch: &Scratch, folder: &str) -> Running {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let program = scratch.text("publish");
    let compiled = Command::new("cc")
        .args(["-std=c11", "-O2", "-o", &program, "-I"])
        .arg(root.join("include"))
        .arg(root.join("crates/shm/examples/publish.c"))
        .status();
    assert!(compiled.expect("a C compiler").success());
    let mut command = as_user(&program);
    let child = command.arg("100").env("KYMO_DIR", folder).spawn();
    let mut child: Child = child.expect("the example");
    let stdout = child.stdout.take().expect("its output");
    let mut path = String::new();
    BufReader::new(stdout).read_line(&mut path).expect("a path");
    Running(child)
}

/// A control group that is removed at drop.
struct Group(String);

impl Group {
    fn of(pid: u32) -> Option<Group> {
        // Beside hierarchies of version 1, version 2 is mounted in its own folder.
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        let mount = mounts.lines().find(|line| line.contains(" - cgroup2 "))?;
        let path = format!("{}/{GROUP}", mount.split(' ').nth(4)?);
        fs::create_dir(&path).ok()?;
        let group = Group(path);
        fs::write(format!("{}/cgroup.procs", group.0), pid.to_string()).ok()?;
        Some(group)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _gone = fs::remove_dir(&self.0);
    }
}

/// A series of the publisher, as a field: `@NAME:COLUMN`, encoded for a URL.
fn stored_field(served: &Served, token: &str) -> String {
    let field = eventually("a series of the publisher", || {
        let listed = served.get_with("/kymo/v1/stored", token).json();
        let series = listed["series"].as_array()?.iter();
        let mut named =
            series.filter(|each| each[0].as_str().is_some_and(|name| name.contains(USER)));
        let one = named.next()?;
        let definition = usize::try_from(one[1].as_u64()?).ok()?;
        let column = listed["definitions"][definition]["columns"][0]["name"].as_str()?;
        Some(format!("@{}:{column}", one[0].as_str()?))
    });
    let encoded = field.bytes().map(|byte| match byte {
        b',' => "%252C".to_string(),
        byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    });
    encoded.collect()
}

/// Status and text of an answer; of an endless answer up to its first event.
fn answer_of(served: &Served, target: &str, token: &str) -> (u16, String) {
    if !target.starts_with("/kymo/v1/live") {
        let answer = match token {
            "" => served.get(target),
            token => served.get_with(target, token),
        };
        return (answer.status, answer.text());
    }
    let mut stream = TcpStream::connect(&served.address).expect("a connection");
    stream.set_read_timeout(Some(LONG)).expect("a limit");
    let bearer = match token {
        "" => String::new(),
        token => format!("Authorization: Bearer {token}\r\n"),
    };
    let request =
        format!("GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{bearer}\r\n");
    stream.write_all(request.as_bytes()).expect("sent");
    let (mut said, mut bytes) = (String::new(), [0; 4096]);
    while !said.contains("event: sample") {
        match stream.read(&mut bytes).expect("an answer") {
            0 => break,
            read => said.push_str(&String::from_utf8_lossy(&bytes[..read])),
        }
    }
    let status = said
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    (status.expect("a status"), said)
}

/// Waits until the token shows every marker, so that their absence without it means something. Returns them.
fn shown_with(served: &Served, token: &str, group: Option<&Group>) -> Vec<&'static str> {
    let mut markers = vec![USER, COMMAND];
    for (target, marker) in [
        ("/kymo/v1/programs", USER),
        ("/kymo/v1/processes", COMMAND),
        ("/kymo/v1/processes", USER),
    ] {
        eventually(&format!("{marker} in {target}"), || {
            answer_of(served, target, token)
                .1
                .contains(marker)
                .then_some(())
        });
    }
    if group.is_some() {
        eventually("the group", || {
            let (_, groups) = answer_of(served, "/kymo/v1/groups", token);
            groups.contains(GROUP).then_some(())
        });
        markers.push(GROUP);
    } else {
        eprintln!("no control group can be made here: groups are not asked for");
    }
    markers
}

/// Every path with every query, and the state of programs in the recording.
fn targets(served: &Served, token: &str, fill: &dyn Fn(&str) -> String) -> Vec<String> {
    let recorded = format!(
        "/kymo/v1/programs?at={}",
        served.json("/kymo/v1/status")["now"]
    );
    eventually("the publisher in the recording", || {
        answer_of(served, &recorded, token)
            .1
            .contains(USER)
            .then_some(())
    });
    let mut targets: Vec<String> = vec![recorded];
    for path in paths() {
        targets.extend(QUERIES.iter().map(|query| format!("{path}{}", fill(query))));
    }
    targets
}

#[test]
fn no_answer_tells_of_people_without_the_token() {
    if !is_root() {
        return skipped("only root can become another user");
    }
    if must_skip(&["setpriv", "cc"]) {
        return;
    }
    let scratch = Scratch::new("people");
    let all = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(scratch.path(""), all).expect("chmod");
    let (config, dir) = (scratch.text("kymo.toml"), scratch.text("data"));
    fs::write(&config, "[record]\nsubsystems = \"+g\"\n").expect("a configuration");
    let served = Served::start(&["--config", &config, "--data", &dir]);
    served.is_recording();
    let token = fs::read_to_string(scratch.path("data/token")).expect("a token");
    let token = token.trim();
    let waiting = as_user("sh").args(["-c", "read line", COMMAND]).spawn();
    let waiting = Running(waiting.expect("sh"));
    let pid = waiting.0.id();
    let group = Group::of(pid);
    let _publisher = publisher(&scratch, &served.published);

    let markers = shown_with(&served, token, group.as_ref());
    let stored = stored_field(&served, token);
    let fill = |query: &str| {
        let query = query
            .replace("STORED", &stored)
            .replace("PID", &pid.to_string());
        query.replace("USER", USER).replace("COMMAND", COMMAND)
    };
    let targets = targets(&served, token, &fill);
    let rows = format!("/kymo/v1/series{}", fill("?fields=STORED&from=-600"));
    assert_eq!(answer_of(&served, &rows, token).0, 200);
    assert_eq!(
        answer_of(&served, &rows, "").0,
        401,
        "a name that tells of people"
    );
    for target in targets {
        let (status, text) = answer_of(&served, &target, "");
        for marker in &markers {
            let is_echo = status >= 400 && target.contains(marker);
            assert!(
                is_echo || !text.contains(marker),
                "{target}: {status}: {text}"
            );
        }
    }
}
