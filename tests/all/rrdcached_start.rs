//! Starts of a daemon beside a running or ending one, and with a file in the place of its socket: the running
//! daemon stays reachable, and only the daemon's own files are removed.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, symlink};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use kymo_tests::Scratch;
use kymo_tests::rrd_client::Client;
use kymo_tests::rrd_daemon::{Daemon, Side};
use kymo_tests::served::kill;

/// Longest wait for any event.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs the daemon's command to its end: the daemon serves in the background, or could not start.
fn start(scratch: &Scratch, options: &[&str]) -> Output {
    let mut command = Command::new(Side::Ours.program(&scratch.path("")));
    let output = command.args(options).stdin(Stdio::null()).output();
    output.expect("it is started")
}

fn stderr_of(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn pid_in(file: &Path) -> u32 {
    let text = fs::read_to_string(file).expect("a pid file");
    text.trim().parse().expect("a number")
}

/// True if a process exists and is no zombie.
fn is_running(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(") ").next().unwrap_or_default();
    !state.is_empty() && !state.starts_with('Z')
}

fn wait_for_end(pid: u32) {
    let begun = Instant::now();
    while is_running(pid) {
        assert!(begun.elapsed() < PATIENCE, "process {pid} does not end");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn pong(socket: &Path) {
    let mut client = Client::unix(socket).expect("somebody listens");
    assert_eq!(client.text("PING"), "0 PONG");
}

/// Kills the daemon that a test left in the background.
struct Background<'a>(&'a Path);

impl Drop for Background<'_> {
    fn drop(&mut self) {
        if self.0.exists() {
            let _ = Command::new("kill")
                .args(["-9", &pid_in(self.0).to_string()])
                .status();
        }
    }
}

/// A second start with the same `-l` once removed the socket and then failed: the first daemon ran on, unreachable.
#[test]
fn a_second_start_leaves_the_first_reachable() {
    let scratch = Scratch::new("second");
    for folder in ["db", "other"] {
        fs::create_dir(scratch.path(folder)).expect("a folder");
    }
    let daemon = Daemon::start(Side::Ours, &scratch.path(""), &scratch.path("db"), &[]);
    let inode = fs::metadata(daemon.socket()).expect("a socket").ino();
    // Another store, the same socket: there is no owner to wait for.
    let (pid, address) = (scratch.text("pid2"), daemon.address());
    for folder in ["other", "db"] {
        let base = scratch.text(folder);
        let output = start(&scratch, &["-g", "-p", &pid, "-l", &address, "-b", &base]);
        let said = stderr_of(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        let expected = match folder {
            "other" => "sock) failed: somebody listens there.\n",
            _ => &format!("process {} has it; waiting up to 30 s", daemon.pid()),
        };
        assert_eq!(said.matches(expected).count(), 1, "{said}");
        assert!(said.ends_with("rrdcached: daemonize failed, exiting.\n"));
        assert!(!scratch.path("pid2").exists());
        assert_eq!(
            fs::metadata(daemon.socket()).expect("a socket").ino(),
            inode
        );
        pong(daemon.socket());
    }
    assert!(daemon.stop("-TERM").success());
}

#[test]
fn what_lies_in_the_place_of_a_socket_stays() {
    let scratch = Scratch::new("precious");
    let base = scratch.text("db");
    let (pid, place) = (scratch.text("pid"), scratch.path("precious"));
    let address = format!("unix:{}", place.display());
    let options = ["-p", &pid, "-l", &address, "-b", &base];
    let refused = |what: &str| {
        let output = start(&scratch, &options);
        let said = stderr_of(&output);
        let expected = format!(
            "rrdcached: bind({}) failed: something is there that is no socket.\n",
            place.display()
        );
        assert_eq!(output.status.code(), Some(1), "{what}: {said}");
        assert!(said.contains(&expected), "{what}: {said}");
        assert!(!scratch.path("pid").exists(), "{what}");
    };
    fs::write(&place, "precious").expect("a file");
    refused("a file");
    assert_eq!(fs::read_to_string(&place).expect("the file"), "precious");
    fs::remove_file(&place).expect("the file");
    symlink("nowhere", &place).expect("a link");
    refused("a link");
    fs::remove_file(&place).expect("the link");
    fs::create_dir(&place).expect("a folder");
    refused("a folder");
    fs::remove_dir(&place).expect("the folder");
    // A socket as a killed daemon leaves it.
    drop(std::os::unix::net::UnixListener::bind(&place).expect("a socket"));
    let pid_file = scratch.path("pid");
    let _background = Background(&pid_file);
    let output = start(&scratch, &options);
    assert!(output.status.success(), "{}", stderr_of(&output));
    pong(&place);
    kill("-TERM", pid_in(&pid_file));
}

/// `kill $pid; rrdcached ...`: eleven of twelve such starts were refused.
#[test]
fn a_start_waits_for_the_one_before_to_end() {
    let scratch = Scratch::new("restart");
    let (base, socket, pid) = (
        scratch.text("db"),
        scratch.path("sock"),
        scratch.path("pid"),
    );
    let address = format!("unix:{}", socket.display());
    let pid_text = scratch.text("pid");
    let options = ["-p", &pid_text, "-l", &address, "-b", &base, "-B"];
    let _background = Background(&pid);
    let first = start(&scratch, &options);
    assert_eq!(
        (first.status.code(), stderr_of(&first)),
        (Some(0), String::new())
    );
    let mut client = Client::unix(&socket).expect("it serves");
    let create = "CREATE a.rrd -b 1000000000 -s 1 DS:x:GAUGE:60:U:U RRA:LAST:0.5:1:100";
    assert_eq!(client.text(create), "0 RRD created OK");
    for round in 1..=12 {
        let before = pid_in(&pid);
        let update = format!("UPDATE a.rrd {}:{round}", 1_000_000_000 + round);
        assert!(client.text(&update).starts_with("0 errors"));
        // This client does not read its answers: the ending daemon waits for it a while.
        let mut idle = UnixStream::connect(&socket).expect("it serves");
        if round % 3 == 0 {
            idle.write_all(&b"HELP\n".repeat(1000)).expect("sent");
            client.text("PING");
        }
        kill("-TERM", before);
        let next = start(&scratch, &options);
        assert!(next.status.success(), "round {round}: {}", stderr_of(&next));
        let told = stderr_of(&next).matches("; waiting up to 30 s").count();
        assert!(
            told <= 1 && (round % 3 > 0 || told == 1),
            "{}",
            stderr_of(&next)
        );
        // The new daemon also runs after the one before is gone.
        wait_for_end(before);
        assert!(pid_in(&pid) != before && is_running(pid_in(&pid)));
        client = Client::unix(&socket).expect("it serves");
        let last = client.text("LAST a.rrd");
        assert_eq!(last, format!("0 {}", 1_000_000_000 + round));
    }
    let last = pid_in(&pid);
    kill("-TERM", last);
    wait_for_end(last);
    assert!(!pid.exists() && !socket.exists());
}
