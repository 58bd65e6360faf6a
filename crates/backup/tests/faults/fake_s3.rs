//! A server that speaks as much of S3 as backups need, in memory. It believes every signature, counts requests of a bucket, and
//! refuses all from a chosen one on, as if the client's machine were off.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::thread;

use kymo_backup::{Keys, S3Place};

/// The parts of a request.
struct Ask {
    method: String,
    path: String,
    query: String,
    range: Option<(usize, usize)>,
    body: Vec<u8>,
}

/// Objects and faults of a bucket.
#[derive(Clone, Default)]
struct State {
    objects: BTreeMap<String, Vec<u8>>,
    requests: u64,
    /// The first request that is refused.
    off_at: Option<u64>,
    /// True: it is done, and refused only then.
    does_last: bool,
    is_full: bool,
}

type States = Arc<Mutex<HashMap<String, State>>>;

/// The server of all tests of this program.
struct Server {
    address: SocketAddr,
    states: States,
}

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let states = States::default();
        let shared = states.clone();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let states = shared.clone();
                thread::spawn(move || serve(stream, &states));
            }
        });
        Server { address, states }
    })
}

/// A bucket.
pub(crate) struct FakeBucket(String);

impl FakeBucket {
    pub(crate) fn new() -> FakeBucket {
        FakeBucket::of(State::default())
    }

    fn of(state: State) -> FakeBucket {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let name = format!("b{}", MADE.fetch_add(1, Ordering::Relaxed));
        lock().insert(name.clone(), state);
        FakeBucket(name)
    }

    /// A copy without faults.
    pub(crate) fn fork(&self) -> FakeBucket {
        let mut state = self.with(|state| state.clone());
        state.off_at = None;
        state.is_full = false;
        FakeBucket::of(state)
    }

    pub(crate) fn place(&self) -> S3Place {
        let keys = "aws_access_key_id = a\naws_secret_access_key = b\n";
        S3Place {
            endpoint: format!("http://{}", server().address),
            region: "us-east-1".into(),
            keys: Keys::parse(keys).unwrap(),
            ..S3Place::parse(&format!("s3://{}/backup", self.0)).unwrap()
        }
    }

    fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(lock().get_mut(&self.0).unwrap())
    }

    pub(crate) fn requests(&self) -> u64 {
        self.with(|state| state.requests)
    }

    /// Refuses the requests from this one on.
    pub(crate) fn off_at(&self, request: u64) {
        self.with(|state| {
            state.off_at = Some(request);
            state.does_last = request.is_multiple_of(2);
        });
    }

    pub(crate) fn on(&self) {
        self.with(|state| state.off_at = None);
    }

    pub(crate) fn set_full(&self, is_full: bool) {
        self.with(|state| state.is_full = is_full);
    }

    pub(crate) fn objects(&self) -> Vec<(String, u64)> {
        self.with(|state| {
            let objects = state.objects.iter();
            let named = objects.filter_map(|(key, bytes)| {
                let name = key.strip_prefix("backup/")?;
                Some((name.to_string(), bytes.len() as u64))
            });
            named.collect()
        })
    }

    pub(crate) fn bytes(&self, name: &str) -> Vec<u8> {
        self.with(|state| state.objects[&format!("backup/{name}")].clone())
    }

    pub(crate) fn set_bytes(&self, name: &str, bytes: Option<Vec<u8>>) {
        let key = format!("backup/{name}");
        self.with(|state| match bytes {
            Some(bytes) => state.objects.insert(key, bytes),
            None => state.objects.remove(&key),
        });
    }

    pub(crate) fn shown(&self, name: &str) -> String {
        format!("s3://{}/backup/{name}", self.0)
    }
}

fn lock() -> MutexGuard<'static, HashMap<String, State>> {
    server().states.lock().unwrap()
}

fn serve(stream: TcpStream, states: &States) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    while let Some(ask) = read(&mut reader) {
        let (status, headers, body) = answer(&ask, states);
        let head = format!(
            "HTTP/1.1 {status} x\r\nContent-Length: {}\r\n{headers}\r\n",
            body.len()
        );
        if stream
            .write_all(&[head.as_bytes(), &body].concat())
            .is_err()
        {
            return;
        }
    }
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<Ask> {
    let mut line = String::new();
    reader
        .read_line(&mut line)
        .ok()
        .filter(|count| *count > 0)?;
    let mut words = line.split(' ');
    let (method, target) = (words.next()?.to_string(), words.next()?.to_string());
    let (mut length, mut range) = (0, None);
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let header = header.trim().to_ascii_lowercase();
        match header.split_once(": ") {
            None => break,
            Some(("content-length", value)) => length = value.parse().ok()?,
            Some(("range", value)) => {
                let (first, last) = value.strip_prefix("bytes=")?.split_once('-')?;
                range = Some((first.parse().ok()?, last.parse().ok()?));
            }
            Some(_) => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    Some(Ask {
        method,
        path: path.into(),
        query: query.into(),
        range,
        body,
    })
}

/// Status, further headers, and body.
type Reply = (u16, String, Vec<u8>);

fn refused(status: u16, code: &str) -> Reply {
    let body = format!("<Error><Code>{code}</Code><Message>no</Message></Error>");
    (status, String::new(), body.into_bytes())
}

fn answer(ask: &Ask, states: &States) -> Reply {
    let mut states = states.lock().unwrap();
    let (bucket, key) = ask.path[1..].split_once('/').unwrap();
    let Some(state) = states.get_mut(bucket) else {
        return refused(404, "NoSuchBucket");
    };
    state.requests += 1;
    let is_off = state.off_at.is_some_and(|at| state.requests >= at);
    let is_last = state.off_at == Some(state.requests);
    if is_off && !(is_last && state.does_last) {
        return refused(403, "AccessDenied");
    }
    let reply = done(ask, key, state);
    match is_off {
        true => refused(403, "AccessDenied"),
        false => reply,
    }
}

fn done(ask: &Ask, key: &str, state: &mut State) -> Reply {
    match (ask.method.as_str(), key) {
        ("GET", "") => (200, String::new(), list(&ask.query, state).into_bytes()),
        ("PUT", _) if state.is_full => refused(403, "QuotaExceeded"),
        ("PUT", _) => {
            state.objects.insert(key.into(), ask.body.clone());
            (200, String::new(), Vec::new())
        }
        ("DELETE", _) => {
            state.objects.remove(key);
            (204, String::new(), Vec::new())
        }
        ("GET", _) => match (state.objects.get(key), ask.range) {
            (None, _) => refused(404, "NoSuchKey"),
            (Some(bytes), Some((first, _))) if first >= bytes.len() => {
                let range = format!("Content-Range: bytes */{}\r\n", bytes.len());
                (416, range, Vec::new())
            }
            (Some(bytes), Some((first, last))) => {
                let last = last.min(bytes.len() - 1);
                let range = format!("Content-Range: bytes {first}-{last}/{}\r\n", bytes.len());
                (206, range, bytes[first..=last].to_vec())
            }
            (Some(bytes), None) => (200, String::new(), bytes.clone()),
        },
        _ => refused(405, "MethodNotAllowed"),
    }
}

/// A page of three objects, so that there are several.
fn list(query: &str, state: &State) -> String {
    let value = |name: &str| {
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let found = pairs.find(|(found, _)| *found == name);
        found.map(|(_, value)| value.replace("%2F", "/"))
    };
    let prefix = value("prefix").unwrap_or_default();
    let from = value("continuation-token").unwrap_or_default();
    let below = state.objects.iter();
    let mut below = below.filter(|(key, _)| key.starts_with(&prefix) && **key > from);
    let page: Vec<_> = below.by_ref().take(3).collect();
    let contents: String = page
        .iter()
        .map(|(key, bytes)| {
            let size = bytes.len();
            format!("<Contents><Key>{key}</Key><Size>{size}</Size></Contents>")
        })
        .collect();
    let more = match (below.next(), page.last()) {
        (Some(_), Some((last, _))) => {
            format!(
                "<IsTruncated>true</IsTruncated><NextContinuationToken>{last}</NextContinuationToken>"
            )
        }
        _ => "<IsTruncated>false</IsTruncated>".into(),
    };
    format!(
        "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">{contents}{more}</ListBucketResult>"
    )
}
