//! Refused actions of each process of `kymo serve`, as docs/serve.md lists them. The test makes the system calls
//! inside the running processes, as an attacker inside them would.
#![cfg(target_arch = "x86_64")]

use std::fs;
use std::io::{ErrorKind, Read};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::Duration;

use kymo_tests::injected::Stopped;
use kymo_tests::served::{Served, eventually, status_of};
use kymo_tests::{Scratch, kymo, machine, stdout_of};

const ALL_ONES: u64 = u64::MAX;
const UNIX: u64 = libc::AF_UNIX as u64;
const INET: u64 = libc::AF_INET as u64;
const STREAM: u64 = libc::SOCK_STREAM as u64;
const DATAGRAM: u64 = libc::SOCK_DGRAM as u64;
/// A bit that is set in the numbers of x32's system calls.
const X32: i64 = 0x4000_0000;
/// A pid that no process has.
const NO_PROCESS: u64 = i32::MAX as u64;

/// Calls that would succeed, or fail with another error, if they were not refused.
const REFUSED: &[(&str, i64, &[u64])] = &[
    ("make a ring of calls", libc::SYS_io_uring_setup, &[0, 0]),
    ("use a ring of calls", libc::SYS_io_uring_enter, &[ALL_ONES]),
    (
        "trace",
        libc::SYS_ptrace,
        &[libc::PTRACE_CONT as u64, NO_PROCESS],
    ),
    (
        "read others' memory",
        libc::SYS_process_vm_readv,
        &[NO_PROCESS],
    ),
    (
        "write others' memory",
        libc::SYS_process_vm_writev,
        &[NO_PROCESS],
    ),
    ("take others' files", libc::SYS_pidfd_getfd, &[ALL_ONES]),
    ("mount", libc::SYS_mount, &[]),
    ("open a tree to mount", libc::SYS_open_tree, &[ALL_ONES]),
    ("load a program of the kernel", libc::SYS_bpf, &[0xffff]),
    (
        "count events of the processor",
        libc::SYS_perf_event_open,
        &[],
    ),
    ("handle faults", libc::SYS_userfaultfd, &[ALL_ONES]),
    ("use keys", libc::SYS_keyctl, &[ALL_ONES]),
    ("leave a name space", libc::SYS_unshare, &[0]),
    ("enter a name space", libc::SYS_setns, &[ALL_ONES]),
    ("open by handle", libc::SYS_open_by_handle_at, &[ALL_ONES]),
    (
        "change its personality",
        libc::SYS_personality,
        &[0xffff_ffff],
    ),
    ("load a module", libc::SYS_finit_module, &[ALL_ONES]),
    ("start a program", libc::SYS_execve, &[]),
    (
        "make a process",
        libc::SYS_clone,
        &[(libc::CLONE_SIGHAND | libc::SIGCHLD) as u64],
    ),
    ("make a process in another way", libc::SYS_clone3, &[0, 0]),
    ("call as x32", libc::SYS_getpid | X32, &[]),
    (
        "outlive its parent",
        libc::SYS_prctl,
        &[libc::PR_SET_PDEATHSIG as u64, 0],
    ),
    (
        "have signals sent",
        libc::SYS_fcntl,
        &[2, libc::F_SETOWN as u64, NO_PROCESS],
    ),
    ("type into a terminal", libc::SYS_ioctl, &[2, libc::TIOCSTI]),
    ("listen", libc::SYS_listen, &[ALL_ONES]),
    (
        "make a pair of sockets",
        libc::SYS_socketpair,
        &[UNIX, STREAM],
    ),
    (
        "talk past protocols",
        libc::SYS_socket,
        &[INET, libc::SOCK_RAW as u64],
    ),
];
/// Further calls, which the poller and the processes that scrape, forward and back up alone may make.
const REFUSED_BUT_TO_POLLERS: &[(&str, i64, &[u64])] = &[
    ("bind", libc::SYS_bind, &[ALL_ONES]),
    ("talk by UDP", libc::SYS_socket, &[INET, DATAGRAM]),
    ("talk by TCP", libc::SYS_socket, &[INET, STREAM]),
    (
        "talk to unix sockets by datagrams",
        libc::SYS_socket,
        &[UNIX, DATAGRAM],
    ),
    (
        "talk to the kernel",
        libc::SYS_socket,
        &[libc::AF_NETLINK as u64, STREAM],
    ),
    (
        "make code",
        libc::SYS_mmap,
        &[
            0,
            4096,
            (libc::PROT_READ | libc::PROT_EXEC) as u64,
            (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64,
            ALL_ONES,
        ],
    ),
];
/// Further calls, which the hub and the process that queries PostgreSQL may make.
const NO_CONNECTIONS: &[(&str, i64, &[u64])] = &[
    ("talk to unix sockets", libc::SYS_socket, &[UNIX, STREAM]),
    ("connect", libc::SYS_connect, &[ALL_ONES]),
];

/// Words of the processes.
const ALL: [&str; 9] = [
    "record",
    "keeper",
    "hub",
    "postgres",
    "poll",
    "scrape",
    "forward",
    "upstream",
    "backup-every",
];

/// All processes of `kymo serve` under one user, as with the shipped unit.
struct Confined {
    served: Served,
    scratch: Scratch,
}

impl Confined {
    fn start() -> Confined {
        let scratch = Scratch::new("confined");
        // The poller reads the folder of its configuration.
        fs::create_dir(scratch.path("devices")).expect("a folder");
        fs::create_dir(scratch.path("values")).expect("a folder");
        fs::create_dir(scratch.path("backups")).expect("a folder");
        let mrtg = format!(
            "LogFormat: rrdtool\nWorkDir: {}\nTarget[a]: 1.3.6.1.2.1.1.3.0&1.3.6.1.2.1.1.3.0:public@127.0.0.1:9\n\
             MaxBytes[a]: 100\nTitle[a]: a\n",
            scratch.text("values")
        );
        fs::write(scratch.path("devices/mrtg.cfg"), mrtg).expect("a file");
        let text = format!(
            "user = \"\"\n[listen]\ncollectd = []\n[poll]\nmrtg = [\"{}\"]\n[postgres.servers.none]\nsocket = \"{}\"\n[[scrape]]\njob = \"none\"\nurls = [\"http://127.0.0.1:9\"]\n[[forward]]\nurl = \"http://127.0.0.1:9\"\n[query]\nupstream = \"http://127.0.0.1:9\"\n[backup]\nto = \"{}\"\n",
            scratch.text("devices/mrtg.cfg"),
            scratch.text("no-server"),
            scratch.text("backups")
        );
        let mut served = Served::configured(&scratch, &scratch.path("data"), &text);
        served.address();
        for line in [
            "recorder: user ",
            "keeper: user ",
            "postgres: user ",
            "polling with ",
            "scrape: user ",
            "forward: user ",
            "upstream: user ",
            "backup: user ",
        ] {
            let line = served.has_said(line);
            assert!(line.contains("seccomp ("), "{line}");
        }
        Confined { served, scratch }
    }

    fn stop(&self, word: &str) -> Option<Stopped> {
        stopped(self.served.child(word).expect(word))
    }
}

/// The process, stopped; `None`: this user may not.
fn stopped(pid: u32) -> Option<Stopped> {
    eventually(|| match Stopped::stop(pid) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => None,
        stopped => Some(stopped),
    })
    .expect("a moment of rest")
    .ok()
}

fn is_refused(process: &mut Stopped, word: &str, calls: &[(&str, i64, &[u64])]) {
    for (what, number, arguments) in calls {
        let answer = process.call(*number, arguments);
        let refused = matches!(answer, Err(libc::EPERM | libc::ENOSYS));
        assert!(refused, "{word} may {what}: {answer:?}");
    }
}

fn path_bytes(path: &str) -> Vec<u8> {
    [path.as_bytes(), b"\0"].concat()
}

/// Address of a unix socket; a name that begins with a zero byte is abstract.
fn unix_address(name: &[u8]) -> Vec<u8> {
    [&(UNIX as u16).to_ne_bytes()[..], name].concat()
}

/// Opens a file inside the process with these flags.
fn open(process: &mut Stopped, path: &str, flags: i32) -> Result<u64, i32> {
    let path = process.put(&path_bytes(path));
    let folder = libc::AT_FDCWD as u64;
    process.call(libc::SYS_openat, &[folder, path, flags as u64, 0o600])
}

#[test]
fn refused_calls_fail_inside_each_process() {
    let confined = Confined::start();
    let guardian = u64::from(confined.served.pid());
    for word in ALL {
        let Some(mut process) = confined.stop(word) else {
            return machine::skipped("this user may not trace");
        };
        is_refused(&mut process, word, REFUSED);
        let connects = ["poll", "scrape", "forward", "upstream", "backup-every"];
        if !connects.contains(&word) {
            is_refused(&mut process, word, REFUSED_BUT_TO_POLLERS);
        }
        if word == "record" || word == "keeper" {
            is_refused(&mut process, word, NO_CONNECTIONS);
        }
        let signal = [guardian, libc::SIGCONT as u64];
        is_refused(
            &mut process,
            word,
            &[("send signals", libc::SYS_kill, &signal)],
        );
        let own = process.call(libc::SYS_getpid, &[]);
        assert!(own.is_ok(), "{word} goes on: {own:?}");
    }
    files_are_out_of_reach(&confined);
    the_hub_reaches_the_keeper_alone(&confined);
    for word in ALL {
        let pid = confined.served.child(word).expect(word);
        assert_eq!(status_of(pid, "Seccomp"), ["2"], "{word}");
    }
}

/// True if the kernel has Landlock.
#[allow(unsafe_code)]
fn has_landlock() -> bool {
    let (no_rules, version) = (std::ptr::null::<u8>(), 1);
    // SAFETY: with this flag the call reads no memory, and returns a number.
    let answer = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, no_rules, 0, version) };
    answer > 0
}

/// `kymo feed` reads the recording that is asked for, and the kernel's files.
#[test]
fn a_feed_reaches_its_recording_alone() {
    let scratch = Scratch::new("confined-feed");
    let rec = scratch.text("rec");
    stdout_of(&["record", "-f", &rec, "-sc", "-i0.1", "-c3"]);
    fs::write(scratch.path("outside"), "text").expect("a file");
    let mut command = std::process::Command::new(kymo());
    command.args(["feed", "--stdio", "--data", &rec]);
    let piped = std::process::Stdio::piped;
    let child = command.stdin(piped()).stdout(piped()).spawn();
    let mut child = child.expect("kymo starts");
    // The hello comes once it is confined.
    let output = child.stdout.as_mut().expect("its output");
    output.read_exact(&mut [0; 20]).expect("a hello");
    let Some(mut process) = stopped(child.id()) else {
        child.kill().expect("killed");
        child.wait().expect("its end");
        return machine::skipped("this user may not trace");
    };
    is_refused(&mut process, "feed", REFUSED);
    is_refused(&mut process, "feed", NO_CONNECTIONS);
    let (read, write) = (libc::O_RDONLY, libc::O_RDWR);
    let new = scratch.text("rec/new");
    for (path, flags, may) in [
        (rec.as_str(), read, true),
        ("/proc/stat", read, true),
        ("/etc/shadow", read, false),
        (&scratch.text("outside"), read, false),
        (&scratch.text("outside"), write, false),
        (&new, write | libc::O_CREAT, false),
    ] {
        let answer = open(&mut process, path, flags);
        match may {
            true => assert!(answer.is_ok(), "{path}: {answer:?}"),
            false => assert!(
                answer == Err(libc::EACCES) || !has_landlock(),
                "{path}: {answer:?}"
            ),
        }
    }
    drop(process);
    child.kill().expect("killed");
    child.wait().expect("its end");
}

/// The recorder asks how the kernel's clock is kept, and cannot change it; no other process may ask.
#[test]
fn the_clock_is_out_of_reach() {
    let confined = Confined::start();
    const SYS_TIME: u64 = 1 << 25;
    for capabilities in ["CapEff", "CapPrm", "CapInh", "CapBnd"] {
        let had = status_of(confined.served.pid(), capabilities);
        let had = u64::from_str_radix(&had[0], 16).expect("a number");
        assert_eq!(
            had & SYS_TIME,
            0,
            "the guardian has the right to change it: {capabilities}"
        );
    }
    for word in ["record", "keeper", "hub"] {
        let Some(mut process) = confined.stop(word) else {
            return machine::skipped("this user may not trace");
        };
        for (modes, may) in [(0, word == "record"), (libc::ADJ_FREQUENCY, false)] {
            // `modes` is the first word of the struct.
            let mut timex = vec![0; size_of::<libc::timex>()];
            timex[..size_of::<u32>()].copy_from_slice(&modes.to_ne_bytes());
            let address = process.put(&timex);
            let asked = process.call(libc::SYS_adjtimex, &[address]);
            assert_eq!(asked.is_ok(), may, "{word}, modes {modes}: {asked:?}");
            assert!(
                may || asked == Err(libc::EPERM),
                "{word}, modes {modes}: {asked:?}"
            );
            let asked = process.call(libc::SYS_clock_adjtime, &[0, address]);
            assert_eq!(asked, Err(libc::EPERM), "{word}, modes {modes}");
        }
    }
}

/// Landlock refuses files. The recorder has none, because it reads all of /proc.
fn files_are_out_of_reach(confined: &Confined) {
    let token = confined.scratch.text("data/token");
    let memory = format!("/proc/{}/mem", confined.served.pid());
    let (read, write) = (libc::O_RDONLY, libc::O_RDWR);
    for (word, path, flags) in [
        ("hub", "/etc/shadow", read),
        ("hub", &memory, read),
        ("hub", &token, write),
        ("keeper", "/etc/shadow", read),
        ("keeper", &memory, read),
        ("keeper", &token, read),
        ("postgres", "/etc/shadow", read),
        ("postgres", &memory, read),
        ("postgres", &token, read),
        ("poll", "/etc/shadow", read),
        ("poll", &memory, read),
        ("poll", &token, read),
        ("scrape", "/etc/shadow", read),
        ("scrape", &memory, read),
        ("scrape", &token, read),
        ("scrape", &token, write),
        ("forward", "/etc/shadow", read),
        ("forward", &memory, read),
        ("forward", &token, read),
        ("forward", &token, write),
        ("upstream", "/etc/shadow", read),
        ("upstream", &memory, read),
        ("upstream", &token, read),
        ("upstream", &token, write),
        ("backup-every", "/etc/shadow", read),
        ("backup-every", &memory, read),
        ("backup-every", &token, read),
        ("backup-every", &token, write),
    ] {
        let mut process = confined.stop(word).expect("a process");
        let answer = open(&mut process, path, flags);
        let has_landlock = confined
            .served
            .said
            .iter()
            .any(|line| line.contains("landlock v"));
        assert!(
            answer == Err(libc::EACCES) || !has_landlock,
            "{word} opens {path}: {answer:?}"
        );
    }
}

/// The hub has the administrator's user here, yet the keeper refuses it as an administrator. The hub cannot listen.
fn the_hub_reaches_the_keeper_alone(confined: &Confined) {
    let name = format!("kymo-confined-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).expect("an address");
    let _listening = UnixListener::bind_addr(&address).expect("a socket");
    let admin = confined.scratch.text("data/keeper-admin.sock");
    let mut administrator = UnixStream::connect(&admin).expect("a connection");
    let mut hub = confined.stop("hub").expect("a hub");
    let socket = hub.call(libc::SYS_socket, &[UNIX, STREAM, 0]);
    let socket = socket.expect("a socket for the keeper");
    let mut by_name = |call, name: &[u8]| {
        let bytes = unix_address(name);
        let place = hub.put(&bytes);
        hub.call(call, &[socket, place, bytes.len() as u64])
    };
    assert_eq!(by_name(libc::SYS_bind, b"\0x"), Err(libc::EPERM));
    let is_scoped = confined.served.said.iter().any(|line| {
        let version = line.split_once("landlock v").map(|(_, rest)| rest);
        version.is_some_and(|rest| matches!(rest[..1].parse(), Ok(6..=9)))
    });
    let connected = by_name(libc::SYS_connect, format!("\0{name}").as_bytes());
    assert!(connected == Err(libc::EPERM) || !is_scoped, "{connected:?}");
    assert_eq!(by_name(libc::SYS_connect, &path_bytes(&admin)), Ok(0));
    let place = hub.put(&[0; 16]);
    let wait = libc::MSG_DONTWAIT as u64;
    let heard = || match hub.call(libc::SYS_recvfrom, &[socket, place, 1, wait]) {
        Err(libc::EAGAIN) => None,
        heard => Some(heard),
    };
    let heard = eventually(heard).expect("the keeper closes the hub's connection");
    assert!(matches!(heard, Ok(0) | Err(libc::ECONNRESET)), "{heard:?}");
    hub.call(libc::SYS_close, &[socket]).expect("closed");
    administrator
        .set_read_timeout(Some(Duration::from_millis(1)))
        .expect("a timeout");
    let kept = administrator.read(&mut [0]).map_err(|error| error.kind());
    assert_eq!(
        kept,
        Err(ErrorKind::WouldBlock),
        "the administrator's stays"
    );
}
