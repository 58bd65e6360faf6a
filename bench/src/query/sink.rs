//! A receiver of remote write 1.0 that answers 503 until its doors open, and counts the samples of later requests.

use crate::fault::{Cannot, Fault, Result};
use kymo_wire::remote_write::{WriteItem, WriteLimits, WriteReader, WriteVersion, decompress};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(120);
const AGAIN: Duration = Duration::from_millis(5);
/// Longest body, plain.
const PLAIN_MAX: usize = 64 << 20;

/// Requests that were taken.
#[derive(Default)]
struct Taken {
    is_open: AtomicBool,
    samples: AtomicU64,
    bytes: AtomicU64,
}

/// Counts of requests that were taken.
pub(super) struct Received {
    pub(super) samples: u64,
    /// Bytes of the bodies.
    pub(super) bytes: u64,
}

pub(super) struct Sink {
    port: u16,
    taken: Arc<Taken>,
}

impl Sink {
    pub(super) fn start() -> Result<Sink> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).cannot("listen")?;
        let port = listener.local_addr().cannot("listen")?.port();
        let taken = Arc::<Taken>::default();
        let shared = taken.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = shared.clone();
                // The sender closes the connection.
                thread::spawn(move || serve(stream, &shared));
            }
        });
        Ok(Sink { port, taken })
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/api/v1/write", self.port)
    }

    /// Takes requests from now on, until this number of samples is there.
    pub(super) fn take(&self, samples: u64) -> Result<Received> {
        self.taken.is_open.store(true, Ordering::Relaxed);
        let until = Instant::now() + PATIENCE;
        loop {
            let received = Received {
                samples: self.taken.samples.load(Ordering::Relaxed),
                bytes: self.taken.bytes.load(Ordering::Relaxed),
            };
            if received.samples >= samples {
                return Ok(received);
            }
            if Instant::now() > until {
                let why = format!("{} of {samples} samples came", received.samples);
                return Err(Fault::because("receive samples", why));
            }
            thread::sleep(AGAIN);
        }
    }
}

fn serve(stream: TcpStream, taken: &Taken) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let mut length = 0;
        let mut line = String::new();
        loop {
            line.clear();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            if line.trim().is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().map_err(io::Error::other)?;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let answer = match taken.is_open.load(Ordering::Relaxed) {
            true => {
                let samples = samples_of(&body).map_err(io::Error::other)?;
                taken.bytes.fetch_add(length as u64, Ordering::Relaxed);
                taken.samples.fetch_add(samples, Ordering::Relaxed);
                "204 No Content"
            }
            false => "503 Service Unavailable",
        };
        let head = format!("HTTP/1.1 {answer}\r\nContent-Length: 0\r\n\r\n");
        reader.get_mut().write_all(head.as_bytes())?;
    }
}

/// Samples of a message, but stale markers.
fn samples_of(body: &[u8]) -> std::result::Result<u64, &'static str> {
    let mut plain = Vec::new();
    decompress(body, PLAIN_MAX, &mut plain).map_err(|why| why.why())?;
    let reader = WriteReader::new(WriteVersion::V1, &plain, WriteLimits::default());
    let mut reader = reader.map_err(|why| why.why())?;
    let mut samples = 0;
    while let Some(item) = reader.read().map_err(|why| why.why())? {
        if let WriteItem::Series(series) = item {
            samples += series.samples.len() as u64;
        }
    }
    Ok(samples)
}
