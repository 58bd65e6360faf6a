//! A PostgreSQL server for a test, with the library of `postgres/`;
//! for tests of root it runs as another user, since it refuses root.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use kymo_shm::{Access, Reader};

use crate::{Running, Scratch, is_root};

/// Debian's unprivileged user.
const USER: u32 = 65534;
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(50);

/// The files of a server, made by initdb, and removed at drop. The superuser is `postgres`.
pub struct Place {
    /// The folder in which the server publishes.
    memory: Memory,
    scratch: Scratch,
}

/// A running server with a database `postgres`; it ends at drop.
pub struct Cluster {
    server: Running,
    place: Place,
}

/// A folder in memory.
struct Memory(PathBuf);

impl Drop for Memory {
    fn drop(&mut self) {
        // A leftover is in memory until the machine's next start.
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Output of `pg_config`, or of the program that `PG_CONFIG` names.
pub fn pg_config(option: &str) -> String {
    let program = std::env::var_os("PG_CONFIG").unwrap_or_else(|| "pg_config".into());
    let output = Command::new(&program).arg(option).output();
    let output = output.unwrap_or_else(|why| panic!("cannot run {program:?}: {why}"));
    let value = String::from_utf8_lossy(&output.stdout);
    value.trim().to_string()
}

/// The folder of PostgreSQL's programs.
pub fn programs() -> PathBuf {
    PathBuf::from(pg_config("--bindir"))
}

/// Builds the library below `target`, with further words for make's command line; returns its path without `.so`.
pub fn library(name: &str, words: &[&str]) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let root = root.canonicalize().expect("the project's folder");
    // A folder for each version: `PostgreSQL 15.2 (Debian ...)`.
    let version = pg_config("--version");
    let version = version.split(' ').nth(1).unwrap_or_default();
    let folder = root.join("target").join(format!("{name}-{version}"));
    fs::create_dir_all(&folder).expect("a folder");
    let lock = File::create(folder.join("lock")).expect("a file");
    lock.lock().expect("a lock");
    let output = Command::new("make")
        .arg("-f")
        .arg(root.join("postgres/Makefile"))
        .args(words)
        .current_dir(&folder)
        .output();
    let output = output.unwrap_or_else(|why| panic!("cannot run make: {why}"));
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "make: {message}");
    assert!(!message.contains("warning"), "{message}");
    folder.join("kymo")
}

/// A command that runs as the server's user.
fn unprivileged(program: &Path) -> Command {
    let mut command = Command::new(program);
    if is_root() {
        command.uid(USER).gid(USER);
    }
    command
}

fn owned(path: &Path) {
    if is_root() {
        chown(path, Some(USER), Some(USER)).unwrap_or_else(|why| panic!("cannot chown: {why}"));
    }
}

/// Output of a command, which must succeed.
fn output_of(command: &mut Command) -> Output {
    let output = command.output();
    let output = output.unwrap_or_else(|why| panic!("cannot run {command:?}: {why}"));
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {message}");
    output
}

impl Default for Place {
    fn default() -> Place {
        Place::new()
    }
}

impl Place {
    /// Makes the files.
    pub fn new() -> Place {
        let scratch = Scratch::new("postgres");
        let data = scratch.path("data");
        let memory = Path::new("/dev/shm").join(scratch.path("").file_name().expect("a name"));
        fs::create_dir(&memory).expect("a folder in memory");
        let memory = Memory(memory);
        fs::create_dir(&data).expect("a folder");
        for folder in [&memory.0, &data, &scratch.path("")] {
            fs::set_permissions(folder, fs::Permissions::from_mode(0o700)).expect("its mode");
            owned(folder);
        }
        // All users with a role may reach the socket.
        let passed = fs::Permissions::from_mode(0o711);
        fs::set_permissions(scratch.path(""), passed).expect("its mode");
        let place = Place { memory, scratch };
        let mut initdb = place.command(&programs().join("initdb"));
        initdb.args(["-A", "trust", "-U", "postgres", "--no-sync"]);
        output_of(initdb.args(["-E", "UTF8", "--locale=C", "-D"]).arg(&data));
        let include = File::options()
            .append(true)
            .open(data.join("postgresql.conf"));
        let written = include.and_then(|mut file| file.write_all(b"include 'lines.conf'\n"));
        written.expect("a configuration");
        place
    }

    /// The folder of the server's sockets and other files.
    pub fn folder(&self) -> String {
        self.scratch.text("")
    }

    /// The server's files.
    pub fn data(&self) -> PathBuf {
        self.scratch.path("data")
    }

    /// Sets lines of the server's configuration, for the next start.
    pub fn configure(&self, settings: &str) {
        let text = format!(
            "listen_addresses = ''\nunix_socket_directories = '{}'\nfsync = off\nautovacuum = off\n{settings}\n",
            self.folder()
        );
        fs::write(self.data().join("lines.conf"), text).expect("a configuration");
    }

    fn serve(&self, environment: &[(&str, &str)]) -> Running {
        let log = File::create(self.scratch.path("log")).expect("a file");
        let mut server = self.command(&programs().join("postgres"));
        server.arg("-D").arg(self.data());
        server.envs(environment.iter().copied());
        server.stdin(Stdio::null()).stderr(log);
        Running(server.spawn().expect("a server"))
    }

    /// Gives a folder and its contents to the server's user.
    pub fn give(&self, folder: &Path) {
        owned(folder);
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => self.give(&entry.path()),
                _ => owned(&entry.path()),
            }
        }
    }

    /// A program that runs as the server's user and publishes in a folder of this place.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = unprivileged(program);
        command.env("KYMO_DIR", &self.memory.0).current_dir("/");
        command
    }
}

impl Cluster {
    /// Starts a server with the library and these lines of configuration.
    pub fn start(settings: &str) -> Cluster {
        Cluster::start_with(&library("postgres", &[]).to_string_lossy(), settings)
    }

    /// Starts a server that loads another library first.
    pub fn start_beside(other: &str, settings: &str) -> Cluster {
        let library = library("postgres", &[]);
        Cluster::start_with(&format!("{other}, {}", library.display()), settings)
    }

    fn start_with(libraries: &str, settings: &str) -> Cluster {
        let load = format!("shared_preload_libraries = '{libraries}'\n{settings}");
        Cluster::serve(Place::new(), &load, &[])
    }

    /// Starts a server without the library, with these lines of configuration and further variables of its environment.
    pub fn serve(place: Place, settings: &str, environment: &[(&str, &str)]) -> Cluster {
        place.configure(settings);
        let server = place.serve(environment);
        let cluster = Cluster { server, place };
        cluster.wait();
        cluster
    }

    /// Stops the server and all its processes at once; a kill would leave them.
    pub fn stop(&mut self) {
        self.server.signal("-QUIT");
        let until = Instant::now() + PATIENCE;
        while matches!(self.server.0.try_wait(), Ok(None)) && Instant::now() < until {
            std::thread::sleep(PAUSE);
        }
    }

    /// Starts a stopped server with its last configuration.
    pub fn start_again(&mut self) {
        self.server = self.place.serve(&[]);
        self.wait();
    }

    /// Waits until the server answers.
    pub fn wait(&self) {
        let until = Instant::now() + PATIENCE;
        loop {
            let mut ready = Command::new(programs().join("pg_isready"));
            let status = ready.args(["-q", "-h", &self.sockets()]).status();
            if status.is_ok_and(|status| status.success()) {
                return;
            }
            assert!(Instant::now() < until, "no server: {}", self.log());
            std::thread::sleep(PAUSE);
        }
    }

    /// The folder of the server's socket.
    pub fn sockets(&self) -> String {
        self.place.folder()
    }

    /// The server's log.
    pub fn log(&self) -> String {
        fs::read_to_string(self.place.scratch.path("log")).unwrap_or_default()
    }

    /// The pid of the server's first process.
    pub fn pid(&self) -> u32 {
        self.server.0.id()
    }

    fn psql_command(&self, role: &str) -> Command {
        let mut command = Command::new(programs().join("psql"));
        command.args(["-X", "-q", "-A", "-t", "-U", role, "-d", "postgres"]);
        command.args(["-h", &self.sockets()]).stdin(Stdio::null());
        command
    }

    /// Runs a script by psql, one message for each statement, whatever fails in it; returns psql's output.
    pub fn psql(&self, script: &str) -> String {
        let path = self.place.scratch.path("script.sql");
        fs::write(&path, script).expect("a file");
        let output = output_of(self.psql_command("postgres").arg("-f").arg(&path));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// A psql that executes statements as they are sent.
    pub fn session(&self) -> Session {
        self.session_as("postgres")
    }

    /// A psql of another role.
    pub fn session_as(&self, role: &str) -> Session {
        let mut command = self.psql_command(role);
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        Session(Running(
            command.stderr(Stdio::null()).spawn().expect("psql"),
        ))
    }

    /// pgbench with a script: each client executes it `times` times,
    /// and logs each execution that the server confirmed. It may fail.
    pub fn pgbench(&self, mode: &str, script: &str, clients: usize, times: usize) -> Child {
        let path = self.place.scratch.path("script.pgbench");
        fs::write(&path, script).expect("a file");
        let logs = self.place.scratch.path("logged");
        // Logs of the previous run.
        let _ = fs::remove_dir_all(&logs);
        fs::create_dir(&logs).expect("a folder");
        let mut command = Command::new(programs().join("pgbench"));
        command.args(["-n", "-U", "postgres", "-h", &self.sockets(), "-M", mode]);
        // One thread for each client: a client that waits while it prepares a statement does not delay the others.
        let clients = clients.to_string();
        command.args(["-c", &clients, "-j", &clients, "-t", &times.to_string()]);
        command
            .arg("-l")
            .arg(format!("--log-prefix={}/log", logs.display()));
        command.arg("-f").arg(&path).arg("postgres");
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("pgbench")
    }

    /// Number of confirmed executions of the last pgbench, which must have ended.
    pub fn logged(&self) -> u64 {
        let files = fs::read_dir(self.place.scratch.path("logged")).expect("a folder");
        let texts = files
            .flatten()
            .map(|file| fs::read_to_string(file.path()).expect("a log"));
        texts.map(|text| text.lines().count() as u64).sum()
    }

    /// Names of the files that the server publishes.
    pub fn published(&self) -> Vec<OsString> {
        let entries = fs::read_dir(&self.place.memory.0).expect("a folder");
        entries.flatten().map(|entry| entry.file_name()).collect()
    }

    /// A reader of the server's published metrics.
    pub fn reader(&self) -> Reader {
        let names = self.published();
        assert_eq!(names.len(), 1, "{names:?}: {}", self.log());
        let folder = File::open(&self.place.memory.0).expect("a folder");
        Reader::open(&folder, &names[0], Access::Read).expect("a publisher")
    }
}

/// A running psql.
pub struct Session(Running);

impl Session {
    /// Sends lines to psql.
    pub fn send(&mut self, lines: &str) {
        let input = self.0.0.stdin.as_mut().expect("its input");
        let sent = writeln!(input, "{lines}").and_then(|()| input.flush());
        sent.expect("psql takes it");
    }
}
