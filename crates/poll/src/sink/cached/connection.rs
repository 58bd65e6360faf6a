//! The connection to an rrdcached. Commands are lines; an answer is a status line and the number of lines that it states.

use crate::sink::give_up_if_silent;
use kymo_sys::clock::Clock;
use kymo_sys::stream::Stream;
use kymo_wire::mrtg_cfg::ConfigText;
use kymo_wire::rrdcached::reply::status_of;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::ToSocketAddrs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Timeout for an answer; MRTG waits for ever.
const PATIENCE: Duration = Duration::from_secs(60);
/// Timeout for a connection.
const CONNECTING: Duration = Duration::from_secs(5);
/// Least time between two attempts to connect.
const PAUSE_NS: u64 = 1_000_000_000;
/// Port for an address without one.
const PORT: &str = "42217";
/// Longest accepted line in bytes, and most lines of an answer.
const LINE_MAX: u64 = 8192;
const LINES_MAX: usize = 1 << 20;

pub(super) struct LineConnection {
    address: Vec<u8>,
    clock: Arc<dyn Clock>,
    stream: Option<BufReader<Stream>>,
    /// Time before which the connection is not tried again.
    not_before_ns: Option<u64>,
    connected: u64,
    is_told: bool,
}

/// An answer of the daemon: its status, the text behind the status, and its lines.
pub(super) struct Reply {
    pub(super) status: i64,
    pub(super) text: Vec<u8>,
    pub(super) lines: Vec<Vec<u8>>,
}

impl LineConnection {
    pub(super) fn to(address: Vec<u8>, clock: Arc<dyn Clock>) -> LineConnection {
        LineConnection {
            address,
            clock,
            stream: None,
            not_before_ns: None,
            connected: 0,
            is_told: false,
        }
    }

    /// True if the daemon sees the same files. As in MRTG, `unix:` decides.
    pub(super) fn is_local(&self) -> bool {
        self.address.starts_with(b"unix:")
    }

    /// Number of reconnections.
    pub(super) fn reconnected(&self) -> u64 {
        self.connected.saturating_sub(1)
    }

    /// The message about a failure; `None`: it was logged already and has not ended since.
    pub(super) fn failed(&mut self, error: &io::Error) -> Option<String> {
        // Without a line end the next line of the configuration, with its community, would become part of the address.
        let is_address = |byte: &u8| *byte != b'@' && !byte.is_ascii_whitespace();
        let shown = match self.address.iter().all(is_address) {
            true => &self.address[..],
            false => ConfigText::DOTS.as_bytes(),
        };
        let address = kymo_base::name::DisplayName(shown);
        let text =
            format!("cannot ask rrdcached at {address}: {error}; values wait until it is back");
        (!std::mem::replace(&mut self.is_told, true)).then_some(text)
    }

    /// Sends a whole BATCH. Returns errors with the number of their line, from 1. Sets `may_be_heard` if the batch went out
    /// without an answer.
    pub(super) fn batch(
        &mut self,
        text: &[u8],
        may_be_heard: &mut bool,
    ) -> io::Result<Vec<(usize, Vec<u8>)>> {
        let exchange = |stream: &mut BufReader<Stream>| {
            stream.get_mut().write_all(text)?;
            let begun = read_reply(stream)?;
            if begun.status != 0 {
                return Err(refusal(&begun.text));
            }
            let done = read_reply(stream)?;
            let lines = done.lines.iter().filter_map(|line| numbered(line));
            Ok(lines.collect())
        };
        self.exchange(exchange, may_be_heard)
    }

    /// Sends one line and reads its answer.
    pub(super) fn ask(&mut self, line: &[u8]) -> io::Result<Reply> {
        let exchange = |stream: &mut BufReader<Stream>| {
            stream.get_mut().write_all(line)?;
            read_reply(stream)
        };
        self.exchange(exchange, &mut false)
    }

    /// Repeats the exchange on a new connection if it fails on the old one, whose daemon may have ended.
    fn exchange<T>(
        &mut self,
        exchange: impl Fn(&mut BufReader<Stream>) -> io::Result<T>,
        may_be_heard: &mut bool,
    ) -> io::Result<T> {
        if let Some(mut stream) = self.stream.take() {
            match exchange(&mut stream) {
                Ok(answer) => {
                    self.stream = Some(stream);
                    return Ok(answer);
                }
                Err(error) => {
                    *may_be_heard = true;
                    give_up_if_silent(error)?;
                }
            }
        }
        let mut stream = BufReader::new(self.connect()?);
        let answer = exchange(&mut stream).inspect_err(|_| *may_be_heard = true)?;
        self.stream = Some(stream);
        self.is_told = false;
        Ok(answer)
    }

    fn connect(&mut self) -> io::Result<Stream> {
        let now_ns = self.clock.mono_ns();
        if self.not_before_ns.is_some_and(|moment| now_ns < moment) {
            return Err(io::ErrorKind::NotConnected.into());
        }
        self.not_before_ns = Some(now_ns + PAUSE_NS);
        let address = self.address.strip_prefix(b"unix:").unwrap_or(&self.address);
        let address = std::str::from_utf8(address).map_err(|_| io::ErrorKind::InvalidInput)?;
        let stream = match self.is_local() || address.starts_with('/') {
            true => Stream::to_unix(Path::new(address))?,
            false => connect_tcp(address)?,
        };
        stream.set_patience(PATIENCE)?;
        self.not_before_ns = None;
        self.connected += 1;
        Ok(stream)
    }
}

fn connect_tcp(address: &str) -> io::Result<Stream> {
    let (host, port) = parts(address);
    let port: u16 = port.parse().map_err(|_| io::ErrorKind::InvalidInput)?;
    Stream::to_tcp((host, port).to_socket_addrs()?, Some(CONNECTING))
}

/// Splits `host`, `host:port`, `[address]:port`, or an IPv6 address into host and port.
pub(super) fn parts(address: &str) -> (&str, &str) {
    if let Some((host, rest)) = address
        .strip_prefix('[')
        .and_then(|rest| rest.split_once(']'))
    {
        return (host, rest.strip_prefix(':').unwrap_or(PORT));
    }
    match address.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') => (host, port),
        _ => (address, PORT),
    }
}

fn read_reply(stream: &mut BufReader<Stream>) -> io::Result<Reply> {
    let first = read_line(stream)?;
    let (status, text) = status_of(&first).ok_or_else(|| refusal(&first))?;
    let count = usize::try_from(status).unwrap_or(0);
    if count > LINES_MAX {
        return Err(refusal(&first));
    }
    let lines = (0..count).map(|_| read_line(stream));
    Ok(Reply {
        status,
        text: text.to_vec(),
        lines: lines.collect::<io::Result<_>>()?,
    })
}

fn read_line(stream: &mut BufReader<Stream>) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    stream.take(LINE_MAX).read_until(b'\n', &mut line)?;
    match line.pop() {
        Some(b'\n') => Ok(line),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

fn numbered(line: &[u8]) -> Option<(usize, Vec<u8>)> {
    let (number, text) = status_of(line)?;
    Some((usize::try_from(number).ok()?, text.to_vec()))
}

fn refusal(text: &[u8]) -> io::Error {
    io::Error::other(format!("it says {}", kymo_base::name::DisplayName(text)))
}
