//! `kymo why` on this machine: planted incidents are in the first three lines. Incidents that look alike beside whatever else runs
//! are planted in generated recordings, by the tests of `kymo_query::why`.

use std::cell::Cell;
use std::fs;
use std::io::Write as _;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kymo_tests::collectd_packet::users;
use kymo_tests::machine::{must_skip, skipped};
use kymo_tests::served::{ask, eventually, eventually_if_busy, get};
use kymo_tests::{Running, Scratch, is_root, kymo, stdout_of};
use serde_json::Value;

use crate::postgres_asked::{Asked, text_of};
use crate::serve_collectd::Hub;

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.expect("a clock after 1970").as_secs()
}

/// Records into the folder `rec` until drop.
pub(crate) fn record(scratch: &Scratch, letters: &str) -> Running {
    let mut command = Command::new(kymo());
    command.args(["record", "-i.5:.5", "-s", letters, "-f"]);
    recorder(command.arg(scratch.path("rec")), scratch)
}

pub(crate) fn recorder(command: &mut Command, scratch: &Scratch) -> Running {
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let running = Running(child.expect("kymo runs"));
    let begun = eventually(|| scratch.path("rec").read_dir().ok()?.next().map(|_| ()));
    assert!(begun.is_some(), "nothing is recorded");
    running
}

/// Findings of a span, and the lines of all of them, in order.
pub(crate) fn why(span: &str, scratch: &Scratch) -> (Vec<Value>, Vec<String>) {
    let json = stdout_of(&["why", span, &scratch.text("rec"), "--json"]);
    let answer: Value = serde_json::from_str(&json).expect("JSON");
    let findings = answer["findings"].as_array().expect("a list").clone();
    let lines = findings.iter().flat_map(lines).collect();
    (findings, lines)
}

pub(crate) fn lines(finding: &Value) -> Vec<String> {
    let own = finding["text"].as_str().expect("a text").to_string();
    let parts = finding["parts"].as_array().expect("a list");
    std::iter::once(own)
        .chain(parts.iter().flat_map(lines))
        .collect()
}

/// A control group of memory with a limit; removed at drop.
pub(crate) struct Limited(pub(crate) PathBuf);

impl Limited {
    pub(crate) fn new(name: &str, bytes: u64) -> Option<Limited> {
        let version_1 = Path::new("/sys/fs/cgroup/memory");
        let (mount, limit) = match version_1.join("memory.limit_in_bytes").exists() {
            true => (version_1, "memory.limit_in_bytes"),
            false => (Path::new("/sys/fs/cgroup"), "memory.max"),
        };
        let group = mount.join(format!("{name}-{}", std::process::id()));
        fs::create_dir(&group).ok()?;
        let limited = Limited(group);
        fs::write(limited.0.join(limit), bytes.to_string()).ok()?;
        Some(limited)
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        // The last process may need a moment to leave it.
        let removed = eventually(|| fs::remove_dir(&self.0).ok());
        if removed.is_none() {
            eprintln!("cannot remove {}", self.0.display());
        }
    }
}

#[test]
fn a_leak_that_is_killed_in_its_group() {
    if must_skip(&["tail"]) {
        return;
    }
    let Some(limited) = Limited::new("kymo-why", 96 << 20) else {
        return skipped("no control group with a limit of memory can be made");
    };
    let scratch = Scratch::new("why-leak");
    let recorder = record(&scratch, "cmgZ");
    sleep(Duration::from_secs(4));
    let group = limited.0.join("cgroup.procs");
    // tail keeps a line that does not end.
    let script = format!("echo $$ > {}; exec tail -n 1", group.display());
    let mut leak = Running(
        Command::new("sh")
            .args(["-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("sh"),
    );
    let mut pipe = leak.0.stdin.take().expect("a pipe");
    let kilobytes = vec![0_u8; 4 << 20];
    while pipe.write_all(&kilobytes).is_ok() {
        sleep(Duration::from_millis(150));
    }
    assert!(!leak.0.wait().expect("an end").success());
    sleep(Duration::from_secs(2));
    drop(recorder);
    let (findings, lines) = why("now", &scratch);
    // Processes of others end beside it.
    let group = limited.0.file_name().expect("a name").to_string_lossy();
    let is_named = |line: &String| line.starts_with("tail (") || line.contains(&*group);
    assert_eq!(findings[0]["cause"], "oom-kill", "{lines:#?}");
    assert!(lines.iter().take(3).any(is_named), "{lines:#?}");
}

/// A process in state D: it asks a FUSE mount in a name space of its own, whose daemon never answers.
const HUNG: &str = "exec 9<>/dev/fuse && mount -i -t fuse -o fd=9,rootmode=40000,user_id=0,group_id=0 hung /mnt && exec stat /mnt";

#[test]
fn a_hung_mount_is_named_by_who_waits_for_it() {
    if must_skip(&["stat", "unshare", "mount"]) {
        return;
    }
    let scratch = Scratch::new("why-hung");
    let recorder = record(&scratch, "cZ");
    sleep(Duration::from_secs(3));
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", HUNG]).stdout(Stdio::null());
    let mut hung = Running(command.spawn().expect("unshare"));
    let pid = hung.0.id();
    sleep(Duration::from_secs(13));
    if hung.0.try_wait().expect("a state").is_some() {
        return skipped("FUSE cannot be mounted");
    }
    drop((recorder, hung));
    let (findings, lines) = why("now", &scratch);
    assert_eq!(findings[0]["cause"], "stuck", "{lines:#?}");
    let named = format!("stat ({pid}) waits in the kernel");
    assert!(
        lines.iter().take(3).any(|line| line.starts_with(&named)),
        "{lines:#?}"
    );
}

/// A name space of networks; removed at drop.
struct Net(String);

impl Net {
    fn new() -> Option<Net> {
        let net = Net(format!("kymo-why-{}", std::process::id()));
        let add = Command::new("ip").args(["netns", "add", &net.0]).status();
        add.is_ok_and(|status| status.success()).then_some(net)
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.0]).arg(program);
        command
    }

    fn shell(&self, script: &str) -> Command {
        let mut command = self.command(Path::new("bash"));
        command
            .args(["-c", script])
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.0]).status();
    }
}

#[test]
fn an_interface_that_is_limited() {
    if must_skip(&["ip", "tc", "bash"]) {
        return;
    }
    let Some(net) = Net::new() else {
        return skipped("no name space of networks can be made");
    };
    let set_up = "ip link add d0 type veth peer name d1 && ip addr add 10.9.0.1/24 dev d0 && ip link set d0 arp off up && ip link set d1 up";
    if !net.shell(set_up).status().expect("bash").success() {
        return skipped("there is no pair of interfaces");
    }
    let scratch = Scratch::new("why-limited");
    let mut command = net.command(&kymo());
    command.args(["record", "-i.5", "-s", "cnt", "-f"]);
    let recorder = recorder(command.arg(scratch.path("rec")), &scratch);
    // A datagram a write, as fast as it goes.
    let fast = "exec 3>/dev/udp/10.9.0.2/9; exec dd if=/dev/zero bs=1400 >&3";
    let mut sender = Running(net.shell(fast).spawn().expect("bash"));
    sleep(Duration::from_secs(10));
    let limit = "tc qdisc add dev d0 root tbf rate 1mbit burst 4kb latency 50ms";
    if !net.shell(limit).status().expect("bash").success() {
        return skipped("there is no tbf");
    }
    let from = now() + 1;
    sleep(Duration::from_secs(6));
    drop(recorder);
    assert!(
        sender.0.try_wait().expect("a state").is_none(),
        "nobody sends"
    );
    let (_, lines) = why(&format!("{from}-{}", from + 4), &scratch);
    let is_named = |line: &String| line.starts_with("network d0: sent");
    assert!(lines.iter().any(is_named), "{lines:#?}");
}

#[test]
fn a_lock_in_postgresql_and_who_may_see_its_text() {
    if !is_root() {
        return skipped("needs root");
    }
    let (asked, cluster) = Asked::without_library("why-lock", "");
    let (mut holder, mut waiter) = (cluster.session(), cluster.session());
    holder.send("SELECT pg_advisory_lock(71);");
    asked.slots("the lock is taken", |slots| {
        let mut slots = slots.iter();
        slots.any(|slot| slot["state"] == "idle" && text_of(slot).contains("pg_advisory_lock"))
    });
    waiter.send("SELECT 'marker', pg_advisory_lock(71);");
    let mut last = String::new();
    let look = |token: &str, last: &mut String| {
        let (status, body) = ask(&asked.address, "GET", "/kymo/v1/why?at=now", token, "")?;
        *last = body;
        let answer: Value = serde_json::from_str(last).ok().filter(|_| status == 200)?;
        let findings = answer["findings"].as_array()?.clone();
        // Others may run out of memory beside it.
        let heads = findings
            .iter()
            .take(3)
            .filter_map(|each| each["text"].as_str());
        let mut named = heads.filter(|text| text.contains("holds up another one"));
        named.next().map(str::to_string)
    };
    let token = asked.token();
    let told = eventually(|| look(&token, &mut last)).unwrap_or_else(|| panic!("{last}"));
    assert!(told.contains("SELECT pg_advisory_lock"), "{told}");
    let told = eventually(|| look("", &mut last)).unwrap_or_else(|| panic!("{last}"));
    assert!(
        !told.contains("SELECT") && !last.contains("pg_advisory"),
        "{last}"
    );
    assert!(!last.contains(&asked.data), "{last}");
}

/// A rack stops five minutes ago, one host a minute later; the others go on.
#[test]
fn hosts_that_fell_silent() {
    let hub = Hub::start("why-silent", "trusted = [\"127.0.0.0/8\"]\n");
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let send = |host: &str, stamp: u64| {
        let sent = socket.send_to(&users(host, stamp, 1.0), ("127.0.0.1", hub.port));
        sent.expect("sent");
    };
    let is_back = Cell::new(false);
    let ask = || {
        send("web8", now());
        if is_back.get() {
            send("web7", now());
        }
        get(&hub.address, "/kymo/v1/why?at=now", "")
    };
    let found = |text: &str, last: &mut String| {
        let answer = ask();
        *last = answer.to_string();
        let findings = answer["findings"].as_array()?.clone();
        let is_it = |each: &Value| {
            each["text"]
                .as_str()
                .is_some_and(|line| line.starts_with(text))
        };
        findings.into_iter().find(is_it)
    };
    let wait = |text: &str| {
        let mut last = String::new();
        let finding = eventually_if_busy(|| found(text, &mut last));
        finding.unwrap_or_else(|| panic!("no {text}: {last}"))
    };
    let begin = now() / 10 * 10;
    for stamp in (begin - 900..begin).step_by(10) {
        for host in ["rack1", "rack2", "rack3", "rack4", "web7", "web8"] {
            let is_sent = match host {
                "web7" => stamp <= begin - 240,
                "web8" => true,
                _ => stamp <= begin - 300,
            };
            if is_sent {
                send(host, stamp);
            }
        }
        sleep(Duration::from_millis(10));
    }
    let rack = wait("4 hosts (rack1, rack2, rack3 ...) sent nothing since ");
    assert_eq!(rack["cause"], "silent");
    assert_eq!(rack["usual"], 10.0, "{rack}");
    assert_eq!(rack["since"].as_f64(), Some((begin - 300) as f64), "{rack}");
    assert_eq!(rack["names"].as_array().map(Vec::len), Some(4), "{rack}");
    wait("host web7 sent nothing since ");
    let goes_on = || (!ask().to_string().contains("web8")).then_some(());
    assert!(eventually_if_busy(goes_on).is_some(), "{}", ask());
    // The terminal says the same, and which command lists the series.
    let text = stdout_of(&["why", "now", &hub.dir.to_string_lossy()]);
    let line = text.lines().find(|line| line.contains("host web7"));
    let line = line.unwrap_or_else(|| panic!("{text}"));
    let command = line.split_once("| kymo ").expect("a command").1;
    let words: Vec<&str> = command.split(' ').collect();
    assert!(stdout_of(&words).contains("web7/users/users"), "{line}");
    // So does the screen, of this machine and of the folder as a recording.
    let dir = hub.dir.to_string_lossy();
    for words in [&["--data", &*dir][..], &[&*dir]] {
        let screen = stdout_of(&[&["top", "--once", "--keys", "w"][..], words].concat());
        assert!(screen.contains("host web7 sent nothing"), "{screen}");
    }
    is_back.set(true);
    wait("host web7 sent nothing from ");
}

#[test]
fn times_and_what_is_no_time() {
    let scratch = Scratch::new("why-times");
    let dir = scratch.text("rec");
    let output = Command::new(kymo())
        .args(["record", "-i.1", "-c12", "-s", "cdmn", "-f", &dir])
        .output()
        .expect("kymo runs");
    assert!(output.status.success(), "{output:?}");
    let exported = scratch.text("x.kymo");
    stdout_of(&["export", &dir, &exported]);
    for path in [&dir, &exported] {
        for words in [&["now"][..], &["-2s"], &[]] {
            let text = stdout_of(&[&["why"][..], words, &[path]].concat());
            assert!(
                text.contains("against") || text.contains("nothing was recorded before"),
                "{words:?} {text}"
            );
        }
    }
    for (words, code, said) in [
        (
            &["yesterday", "3pm", &dir][..],
            1,
            "nothing was recorded then",
        ),
        (&["25:00", &dir], 2, "cannot use 25:00: neither a time"),
        (&["now", "/no/such/rec"], 2, "cannot open /no/such/rec"),
    ] {
        let output = Command::new(kymo())
            .arg("why")
            .args(words)
            .output()
            .expect("kymo runs");
        let all = [output.stdout, output.stderr].concat();
        let all = String::from_utf8_lossy(&all);
        assert_eq!(output.status.code(), Some(code), "{words:?} {all}");
        assert!(all.contains(said), "{words:?} {all}");
    }
}
