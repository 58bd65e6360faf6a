//! Owners of slots that ended without giving the slot back: their counts stay, their activity is removed.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use kymo_shm::{Access, Description, GaugeType, Kind, Publisher, Reader, Schema, Scratch, Value};
use rustix::process::{Pid, Signal};

use crate::c::compile;
use crate::folder::Folder;

const BOTH: [Access; 2] = [Access::Read, Access::MapOwn];

/// A master that reads what to do next, a line each.
struct Master {
    child: Child,
    orders: ChildStdin,
    says: BufReader<ChildStdout>,
}

impl Master {
    fn start(command: &mut Command) -> Master {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a master");
        let orders = child.stdin.take().expect("its input");
        let says = BufReader::new(child.stdout.take().expect("its output"));
        Master {
            child,
            orders,
            says,
        }
    }

    /// The next line of the master that is a number or `none`.
    fn next_answer(&mut self) -> String {
        let mut line = String::new();
        while self.says.read_line(&mut line).expect("a line") > 0 {
            let answer = line.trim();
            if answer == "none" || answer.parse::<u32>().is_ok() {
                return answer.into();
            }
            assert!(!answer.starts_with("cannot"), "{answer}");
            line.clear();
        }
        panic!("the master has ended");
    }

    fn go_on(&mut self) -> String {
        self.orders.write_all(b"\n").expect("an order");
        self.next_answer()
    }
}

impl Drop for Master {
    fn drop(&mut self) {
        let _ended = (self.child.kill(), self.child.wait());
    }
}

/// Slots at work, requests that are open, requests that were counted.
fn seen(reader: &mut Reader) -> (usize, f64, u64) {
    let mut scratch = Scratch::default();
    reader.scan(&mut scratch).expect("a scan");
    reader.sample(&mut scratch).expect("a sample");
    let at_work = |slot: &&kymo_shm::Activity| slot.owner.is_some() && !slot.has_ended;
    let count = reader.activities().iter().filter(at_work).count();
    let values: Vec<Value> = reader
        .metrics()
        .iter()
        .map(|metric| reader.value(metric))
        .collect();
    match values[..] {
        [Value::Counter(counted), Value::Gauge(open)] => (count, open, counted),
        _ => panic!("{values:?}"),
    }
}

fn in_c(programs: &Folder, files: &Folder, mode: &str, rounds: u32) -> Master {
    let mut command = Command::new(compile("tests/all/programs/owners.c", programs.path(), &[]));
    Master::start(command.arg(mode).arg(files.path()).arg(rounds.to_string()))
}

fn in_rust(files: &Folder, mode: &str, rounds: u32) -> Master {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", "owners::master", "--ignored", "--nocapture"]);
    let words = [
        ("MODE", mode.to_string()),
        ("FOLDER", files.path().display().to_string()),
        ("ROUNDS", rounds.to_string()),
    ];
    Master::start(command.envs(words))
}

/// Eight workers that were killed at work and replaced stood there as 48 at work, and as 168 open requests after 160 kills.
#[test]
fn what_a_killed_worker_did_ends_with_it() {
    for mode in ["plain", "released", "nobody", "closed"] {
        if mode == "nobody" && !rustix::process::geteuid().is_root() {
            kymo_sys::skipped::skipped("only root can give up rights");
            continue;
        }
        for language in ["c", "rust"] {
            let name = format!("owners-{mode}-{language}");
            let (programs, files) = (Folder::new(&format!("{name}-program")), Folder::new(&name));
            let mut master = match language {
                "c" => in_c(&programs, &files, mode, 5),
                _ => in_rust(&files, mode, 5),
            };
            let released = master.next_answer();
            let expect = if mode == "released" { "40" } else { "0" };
            assert_eq!(released, expect, "{name}");
            let mut readers = BOTH.map(|access| files.open(access));
            for reader in &mut readers {
                assert_eq!(seen(reader), (8, 8.0, 48), "{name}");
            }
            master.go_on();
            for reader in &mut readers {
                assert_eq!(seen(reader), (0, 0.0, 48), "{name}: all are dead");
            }
            let released = master.go_on();
            let expect = if mode == "released" { "8" } else { "0" };
            assert_eq!(released, expect, "{name}");
            for reader in &mut readers {
                assert_eq!(seen(reader), (0, 0.0, 48), "{name}: counts stay");
            }
            if mode == "released" {
                let owners = readers[0].activities().iter();
                assert_eq!(owners.filter(|slot| slot.owner.is_some()).count(), 0);
            }
        }
    }
}

/// A worker in a container has a pid that outside is no process's, or another one's.
#[test]
fn an_owner_in_another_namespace_lives() {
    if !rustix::process::geteuid().is_root() {
        kymo_sys::skipped::skipped("only root makes namespaces of pids");
        return;
    }
    for language in ["c", "rust"] {
        let name = format!("owners-namespace-{language}");
        let (programs, files) = (Folder::new(&format!("{name}-program")), Folder::new(&name));
        let mut master = match language {
            "c" => in_c(&programs, &files, "namespace", 0),
            _ => in_rust(&files, "namespace", 0),
        };
        assert_eq!(master.next_answer(), "0", "{name}: its slot stays its own");
        let mut reader = files.open(Access::Read);
        assert_eq!(seen(&mut reader), (1, 1.0, 1), "{name}");
        master.go_on();
        assert_eq!(seen(&mut reader), (0, 0.0, 1), "{name}");
    }
}

/// The program of `owners.c` in Rust.
#[test]
#[ignore = "the others start it"]
fn master() {
    let word = |name: &str| std::env::var(name).expect("a word");
    let (mode, rounds) = (word("MODE"), word("ROUNDS"));
    std::env::set_current_dir(word("FOLDER")).expect("the folder");
    let mut schema = Schema::new("owners", 24).folder(Path::new("."));
    let requests = schema.counter(Description::new("requests_total", ""));
    let open = schema.gauge(Description::new("open_requests", ""), GaugeType::Signed);
    let publisher = Publisher::create(&schema).expect("a publisher");
    let count = match mode.as_str() {
        "namespace" => {
            enter_namespace();
            1
        }
        _ => 8,
    };
    let work = || {
        give_up(&mode);
        let mut slot = publisher.take();
        slot.add(requests, 1);
        slot.set(open, 1.0);
        slot.begin(Kind::Plain, b"GET /slow", 0, 0);
        (slot.is_enabled(), slot)
    };
    let mut workers: Vec<u32> = (0..count).map(|_| start(work)).collect();
    let mut released = 0;
    for _ in 0..rounds.parse().expect("a number") {
        for worker in &mut workers {
            end(*worker);
            if mode == "released" {
                released += publisher.release_ended(Some(*worker));
            }
            *worker = start(work);
        }
    }
    if mode == "namespace" {
        released += publisher.release_ended(Some(1)) + publisher.release_ended(None);
        released += usize::from(publisher.take_at(0).is_enabled());
    }
    say_and_wait(&released.to_string());
    workers.into_iter().for_each(end);
    say_and_wait("none");
    if mode == "released" {
        released = publisher.release_ended(None);
    }
    say_and_wait(&released.to_string());
    std::process::exit(0);
}

fn say_and_wait(what: &str) {
    writeln!(std::io::stdout(), "\n{what}").expect("standard output");
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).expect("an order");
}

#[allow(unsafe_code)]
fn enter_namespace() {
    // SAFETY: a system call that changes where children are.
    assert_eq!(unsafe { libc::unshare(libc::CLONE_NEWPID) }, 0);
}

#[allow(unsafe_code)]
fn give_up(mode: &str) {
    // SAFETY: a worker that has only its necessary files open, and that only waits from now on.
    unsafe {
        match mode {
            "nobody" => assert!(libc::setgid(65_534) == 0 && libc::setuid(65_534) == 0),
            "closed" => {
                // Keeps the pipe by which the worker reports that it is ready.
                (3..1000).for_each(|number| {
                    libc::close(number);
                });
                assert_eq!(libc::chdir(c"/".as_ptr()), 0);
            }
            _ => {}
        }
    }
}

/// Forks a worker and waits until it is at work.
#[allow(unsafe_code)]
fn start<T>(work: impl Fn() -> (bool, T)) -> u32 {
    let mut ends = [0; 2];
    // SAFETY: two numbers; the child touches nothing that another thread of its parent may have held, and only waits at its end.
    unsafe {
        assert_eq!(libc::pipe(ends.as_mut_ptr()), 0);
        // Out of the way of who closes all files.
        let ready = libc::fcntl(ends[1], libc::F_DUPFD, 1000);
        libc::close(ends[1]);
        let child = libc::fork();
        if child == 0 {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            let (is_at_work, _slot) = work();
            if is_at_work {
                libc::write(ready, b"r".as_ptr().cast(), 1);
            }
            loop {
                libc::pause();
            }
        }
        libc::close(ready);
        let mut byte = 0_u8;
        let read = libc::read(ends[0], (&raw mut byte).cast(), 1);
        libc::close(ends[0]);
        assert_eq!((read, byte), (1, b'r'), "a worker has no slot");
        u32::try_from(child).expect("a child")
    }
}

fn end(worker: u32) {
    let pid = Pid::from_raw(worker.cast_signed());
    let pid = pid.expect("a process");
    rustix::process::kill_process(pid, Signal::KILL).expect("killed");
    let ended = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty());
    ended.expect("its end");
}
