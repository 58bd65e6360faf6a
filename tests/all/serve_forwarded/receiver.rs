//! A receiver of remote write that notes each request, and answers as a test wants.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use kymo_wire::remote_write::{WriteItem, WriteLimits, WriteReader, WriteVersion, decompress};

/// How requests are answered.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Answering {
    /// With 204, in both versions.
    Taking,
    /// 415 for 2.0.
    OnlyFirst,
    /// 204 without a word on samples for 2.0, of which nothing is read: what old receivers do.
    Ignorant,
    /// This status with these headers and this text.
    Status(u16, &'static str, &'static str),
    /// The next request is taken, and its answer is lost. From then on as [`Answering::Taking`].
    Lost,
    /// Never, but the request is taken.
    Unanswered,
    /// 400 for a request with a sample that was taken, of which nothing is taken: what Prometheus 2 does.
    New,
    /// Never.
    Silent,
}

/// A request that was read.
#[derive(Clone, Debug)]
pub(super) struct Taken {
    pub(super) version: WriteVersion,
    pub(super) authorization: String,
    /// Labels as `name=value,...`, times and values.
    pub(super) samples: Vec<(String, i64, f64)>,
}

#[derive(Debug)]
struct State {
    answering: Answering,
    /// Requests that were answered with 204, and those that were not.
    taken: Vec<Taken>,
    refused: Vec<Taken>,
}

/// A receiver on a port of its own, until the test ends.
#[derive(Clone)]
pub(super) struct Receiver {
    pub(super) address: String,
    state: Arc<Mutex<State>>,
}

impl Receiver {
    pub(super) fn start(answering: Answering) -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let receiver = Receiver {
            address: listener.local_addr().expect("an address").to_string(),
            state: Arc::new(Mutex::new(State {
                answering,
                taken: Vec::new(),
                refused: Vec::new(),
            })),
        };
        let own = receiver.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let own = own.clone();
                thread::spawn(move || own.serve(stream));
            }
        });
        receiver
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/api/v1/write", self.address)
    }

    pub(super) fn answers(&self, answering: Answering) {
        self.state.lock().expect("the state").answering = answering;
    }

    pub(super) fn taken(&self) -> Vec<Taken> {
        self.state.lock().expect("the state").taken.clone()
    }

    pub(super) fn refused(&self) -> Vec<Taken> {
        self.state.lock().expect("the state").refused.clone()
    }

    /// All samples with this text in their labels: how often each came, by labels, time and bits, in no order.
    pub(super) fn samples(&self, of: &str) -> BTreeMap<(String, i64, u64), usize> {
        let mut all = BTreeMap::new();
        for (labels, t_ms, value) in self.taken().into_iter().flat_map(|of| of.samples) {
            if labels.contains(of) {
                *all.entry((labels, t_ms, value.to_bits())).or_default() += 1;
            }
        }
        all
    }

    /// Serves a connection until it ends.
    fn serve(&self, stream: TcpStream) -> Option<()> {
        let mut reader = BufReader::new(stream.try_clone().ok()?);
        let mut stream = stream;
        loop {
            let (mut length, mut content_type, mut authorization) =
                (0, String::new(), String::new());
            let mut lines = 0;
            loop {
                let mut line = String::new();
                if reader.read_line(&mut line).ok()? == 0 {
                    return None;
                }
                lines += 1;
                let line = line.trim();
                if line.is_empty() {
                    break;
                }
                let (name, value) = line.split_once(": ").unwrap_or((line, ""));
                match name.to_ascii_lowercase().as_str() {
                    "content-length" => length = value.parse().ok()?,
                    "content-type" => content_type = value.into(),
                    "authorization" => authorization = value.into(),
                    _ => {}
                }
            }
            assert!(lines > 1, "a head");
            let mut body = vec![0; length];
            reader.read_exact(&mut body).ok()?;
            let version = WriteVersion::of_headers(Some(&content_type), Some("snappy"));
            let taken = Taken {
                authorization,
                ..read(version.expect("a version"), &body)
            };
            let answer = self.answer(taken)?;
            stream.write_all(answer.as_bytes()).ok()?;
        }
    }

    /// Notes a request; its answer. `None`: there is none.
    fn answer(&self, request: Taken) -> Option<String> {
        let mut state = self.state.lock().expect("the state");
        let is_second = request.version == WriteVersion::V2;
        let (status, headers, text) = match state.answering.clone() {
            Answering::Silent => {
                drop(state);
                thread::park();
                return None;
            }
            Answering::Unanswered => {
                state.taken.push(request);
                drop(state);
                thread::park();
                return None;
            }
            Answering::New if has_known(&state.taken, &request) => {
                (400, String::new(), "out of order sample")
            }
            Answering::Lost => {
                state.answering = Answering::Taking;
                state.taken.push(request);
                return None;
            }
            Answering::OnlyFirst if is_second => (415, String::new(), "not this one"),
            Answering::Ignorant if is_second => (204, String::new(), ""),
            Answering::Status(status, headers, text) => (status, headers.to_string(), text),
            Answering::Taking | Answering::OnlyFirst | Answering::Ignorant | Answering::New => {
                let count = request.samples.len();
                let name = "X-Prometheus-Remote-Write-Samples-Written";
                let headers = match is_second {
                    true => format!("{name}: {count}\r\n"),
                    false => String::new(),
                };
                state.taken.push(request);
                return Some(format!("HTTP/1.1 204 No Content\r\n{headers}\r\n"));
            }
        };
        state.refused.push(request);
        let length = match status {
            204 => String::new(),
            _ => format!("Content-Length: {}\r\n", text.len()),
        };
        Some(format!(
            "HTTP/1.1 {status} Said\r\n{headers}{length}\r\n{text}"
        ))
    }
}

fn read(version: WriteVersion, body: &[u8]) -> Taken {
    let mut plain = Vec::new();
    decompress(body, 64 << 20, &mut plain).expect("Snappy");
    let mut reader = WriteReader::new(version, &plain, WriteLimits::default()).expect("a message");
    let mut samples = Vec::new();
    while let Some(item) = reader.read().expect("a message") {
        let WriteItem::Series(series) = item else {
            panic!("no series: {item:?}");
        };
        let labels = series.labels.iter();
        let labels: Vec<String> = labels
            .map(|of| format!("{}={}", of.name, of.value))
            .collect();
        let labels = labels.join(",");
        let all = series.samples.iter();
        samples.extend(all.map(|sample| (labels.clone(), sample.t_ms, sample.value)));
    }
    Taken {
        version,
        authorization: String::new(),
        samples,
    }
}

/// True if a request has a sample that one of the others has.
fn has_known(taken: &[Taken], request: &Taken) -> bool {
    let mut known = taken.iter().flat_map(|of| &of.samples);
    known.any(|known| request.samples.contains(known))
}
