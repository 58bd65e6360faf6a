//! A real server of S3 (SeaweedFS) for a test, and a proxy in front of it that fails as networks and servers do.

use std::collections::VecDeque;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::machine::not_fetched;
use crate::served::eventually;
use crate::{Running, Scratch, free_port};

/// The bucket that there is.
pub const BUCKET: &str = "kept";
const KEY: &str = "kymo";
const SECRET: &str = "as-secret-as-a-test-needs";

/// A server. It ends with this value.
pub struct S3Server {
    server: Running,
    /// Sockets that it makes in /tmp, whatever TMPDIR says, and leaves there.
    sockets: Vec<String>,
    /// Port for requests of S3.
    pub port: u16,
    /// Port at which all objects can be written without keys.
    filer: u16,
    /// File with the keys.
    pub keys: PathBuf,
}

impl Drop for S3Server {
    fn drop(&mut self) {
        let _ended = self.server.0.kill();
        let _status = self.server.0.wait();
        for socket in &self.sockets {
            let _missing = fs::remove_file(socket);
        }
    }
}

impl S3Server {
    /// Starts a server with an empty bucket; `None`: its program is not there, which is counted.
    pub fn start(scratch: &Scratch) -> Option<S3Server> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let program = root.join("target/peers/seaweedfs-4.48/weed");
        if !program.is_file() {
            not_fetched("SeaweedFS (tests/fetch-seaweedfs)");
            return None;
        }
        let folder = scratch.path("seaweedfs");
        fs::create_dir_all(&folder).expect("a folder");
        let keys = scratch.path("s3-keys");
        write_keys(&keys, SECRET);
        let config = scratch.path("seaweedfs.json");
        let identity = format!(
            r#"{{"identities":[{{"name":"kymo","credentials":[{{"accessKey":"{KEY}","secretKey":"{SECRET}"}}],"actions":["Admin","Read","Write","List","Tagging"]}}]}}"#
        );
        fs::write(&config, identity).expect("a configuration");
        let [port, filer, master, master_inner, volume] = [(); 5].map(|()| free_port());
        let of_master = format!("127.0.0.1:{master}.{master_inner}");
        let mut sockets = Vec::new();
        let mut words = vec![
            "server".to_string(),
            "-s3".into(),
            "-ip=127.0.0.1".into(),
            "-ip.bind=127.0.0.1".into(),
            format!("-dir={}", folder.display()),
            format!("-s3.config={}", config.display()),
            "-s3.port.iceberg=0".into(),
            "-s3.port.lance=0".into(),
            "-master.telemetry=false".into(),
            "-master.volumeSizeLimitMB=256".into(),
            "-volume.max=20".into(),
        ];
        for (of, port) in [
            ("s3", port),
            ("filer", filer),
            ("master", master),
            ("volume", volume),
        ] {
            words.push(format!("-{of}.port={port}"));
            let inner = match of {
                "master" => master_inner,
                _ => free_port(),
            };
            words.push(format!("-{of}.port.grpc={inner}"));
            sockets.push(format!("/tmp/seaweedfs-{of}-{port}.sock"));
            sockets.push(format!("/tmp/seaweedfs-{of}-grpc-{inner}.sock"));
        }
        let log = fs::File::create(scratch.path("seaweedfs.log")).expect("a log");
        let server = Command::new(&program)
            .args(&words)
            .current_dir(&folder)
            .env("HOME", &folder)
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a log"))
            .stderr(log)
            .spawn();
        let server = Running(server.expect("weed starts"));
        let is_made = || {
            TcpStream::connect(("127.0.0.1", port)).ok()?;
            make_bucket(&program, &of_master, &folder)
        };
        eventually(is_made).unwrap_or_else(|| {
            let log = fs::read_to_string(scratch.path("seaweedfs.log"));
            panic!("no bucket: {}", log.unwrap_or_default())
        });
        Some(S3Server {
            server,
            sockets,
            port,
            filer,
            keys,
        })
    }

    /// Replaces an object by other bytes, without S3.
    pub fn replace(&self, name: &str, bytes: &[u8]) {
        let path = format!("/buckets/{BUCKET}/{name}");
        let mut stream = TcpStream::connect(("127.0.0.1", self.filer)).expect("a filer");
        let head = format!(
            "PUT {path} HTTP/1.1\r\nHost: filer\r\nConnection: close\r\nContent-Type: application/octet-stream\r\nContent-Length: {}\r\n\r\n",
            bytes.len()
        );
        stream
            .write_all(&[head.as_bytes(), bytes].concat())
            .expect("a request");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 20"), "{answer}");
    }
}

/// Writes a file with keys that its owner alone can read.
pub fn write_keys(path: &Path, secret: &str) {
    let text = format!("[default]\naws_access_key_id = {KEY}\naws_secret_access_key = {secret}\n");
    fs::write(path, text).expect("keys");
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("a mode");
}

fn make_bucket(program: &Path, master: &str, folder: &Path) -> Option<()> {
    let mut shell = Command::new(program)
        .arg("shell")
        .arg(format!("-master={master}"))
        .env("HOME", folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("weed starts");
    let words = format!("s3.bucket.create -name {BUCKET}\ns3.bucket.list\nexit\n");
    let mut stdin = shell.stdin.take().expect("its stdin");
    let _gone = stdin.write_all(words.as_bytes());
    drop(stdin);
    let output = shell.wait_with_output().expect("an end");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let is_there = text
        .lines()
        .any(|line| line.trim_start().starts_with(BUCKET));
    is_there.then_some(())
}

/// A failure of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum S3Fault {
    /// The server asks to be left alone.
    SlowDown,
    /// The answer has an ETag of other bytes.
    WrongEtag,
    /// Half of the answer's body comes.
    CutShort,
}

#[derive(Default)]
struct Faults {
    /// Failures of the next requests of a method.
    next: VecDeque<(&'static str, S3Fault)>,
    /// Failure of all requests of a method behind these.
    always: Option<(&'static str, S3Fault)>,
    bytes_per_second: Option<u64>,
    requests: u64,
    /// Requests that still pass before the next one is held; `None`: all pass.
    left: Option<u64>,
    held: u64,
}

/// A proxy.
pub struct S3Proxy {
    address: SocketAddr,
    faults: Arc<Mutex<Faults>>,
}

impl S3Proxy {
    /// A proxy in front of a server.
    pub fn before(server: &S3Server) -> S3Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        let faults = Arc::new(Mutex::new(Faults::default()));
        let (shared, port) = (faults.clone(), server.port);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let faults = shared.clone();
                // A client that is gone ends its thread.
                thread::spawn(move || pass(stream, port, &faults));
            }
        });
        S3Proxy { address, faults }
    }

    /// The proxy's URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn faults(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the next requests of a method fail.
    pub fn fail_next(&self, method: &'static str, fault: S3Fault, count: usize) {
        let faults = std::iter::repeat_n((method, fault), count);
        self.faults().next.extend(faults);
    }

    /// Lets all requests of a method fail, or none.
    pub fn fail_always(&self, fault: Option<(&'static str, S3Fault)>) {
        self.faults().always = fault;
    }

    /// Lets no more bytes pass in a second, each way.
    pub fn slow(&self, bytes_per_second: Option<u64>) {
        self.faults().bytes_per_second = bytes_per_second;
    }

    /// Failures that were asked for and have not happened.
    pub fn waiting(&self) -> usize {
        self.faults().next.len()
    }

    /// Lets so many requests pass. Each later one is held with half of its body sent, and is never answered.
    /// `None`: all pass, and held ones are cut off.
    pub fn hold_after(&self, requests: Option<u64>) {
        let mut faults = self.faults();
        (faults.left, faults.held) = (requests, 0);
    }

    /// Requests that are held.
    pub fn held(&self) -> u64 {
        self.faults().held
    }

    /// Requests so far.
    pub fn requests(&self) -> u64 {
        self.faults().requests
    }
}

/// Passes one request of a connection on, with its answer.
fn pass(mut client: TcpStream, port: u16, faults: &Mutex<Faults>) -> Option<()> {
    let lock = || faults.lock().unwrap_or_else(PoisonError::into_inner);
    let slow = lock().bytes_per_second;
    let mut reader = BufReader::new(client.try_clone().ok()?);
    let (mut head, length) = read_head(&mut reader)?;
    let mut body = vec![0; length];
    for part in body.chunks_mut(PART) {
        reader.read_exact(part).ok()?;
        pause(slow, part.len());
    }
    let method = head.split(' ').next().unwrap_or_default().to_string();
    if is_held(&mut lock()) {
        let mut server = TcpStream::connect(("127.0.0.1", port)).ok()?;
        let half = &body[..body.len() / 2];
        server.write_all(&[head.as_bytes(), half].concat()).ok()?;
        while lock().left.is_some() {
            thread::sleep(Duration::from_millis(1));
        }
        return None;
    }
    let fault = {
        let mut faults = lock();
        faults.requests += 1;
        let is_next = faults.next.front().is_some_and(|(of, _)| *of == method);
        let next = is_next.then(|| faults.next.pop_front()).flatten();
        let fault = next.or(faults.always.filter(|(of, _)| *of == method));
        fault.map(|(_, fault)| fault)
    };
    if fault == Some(S3Fault::SlowDown) {
        let body = "<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>";
        let length = body.len();
        let answer = format!(
            "HTTP/1.1 503 Slow Down\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        return client.write_all(answer.as_bytes()).ok();
    }
    head.insert_str(head.len() - 2, "Connection: close\r\n");
    let mut server = TcpStream::connect(("127.0.0.1", port)).ok()?;
    server.write_all(&[head.as_bytes(), &body].concat()).ok()?;
    let mut server = BufReader::new(server);
    let (mut head, _) = read_head(&mut server)?;
    let mut body = Vec::new();
    server.read_to_end(&mut body).ok()?;
    if fault == Some(S3Fault::WrongEtag) {
        let lines = head.split_inclusive("\r\n").map(|line| {
            match line.to_ascii_lowercase().starts_with("etag:") {
                true => format!("ETag: \"{}\"\r\n", "a".repeat(32)),
                false => line.to_string(),
            }
        });
        head = lines.collect();
    }
    if fault == Some(S3Fault::CutShort) {
        body.truncate(body.len() / 2);
    }
    client.write_all(head.as_bytes()).ok()?;
    for part in body.chunks(PART) {
        client.write_all(part).ok()?;
        pause(slow, part.len());
    }
    Some(())
}

/// Counts a request and returns whether it is to be held.
fn is_held(faults: &mut Faults) -> bool {
    match &mut faults.left {
        Some(0) => {
            faults.held += 1;
            true
        }
        Some(left) => {
            *left -= 1;
            false
        }
        None => false,
    }
}

/// Bytes after which a slow proxy rests.
const PART: usize = 4 << 10;

fn pause(bytes_per_second: Option<u64>, bytes: usize) {
    if let Some(most) = bytes_per_second {
        thread::sleep(Duration::from_secs_f64(bytes as f64 / most as f64));
    }
}

/// Reads a head with the empty line behind it, and the length of the body.
fn read_head(reader: &mut impl BufRead) -> Option<(String, usize)> {
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader
            .read_line(&mut line)
            .ok()
            .filter(|count| *count > 0)?;
        head.push_str(&line);
        let line = line.to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if line == "\r\n" {
            return Some((head, length));
        }
    }
}
