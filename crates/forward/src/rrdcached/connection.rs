//! The connection to a daemon of rrdcached's protocol. An answer is a status line, and the lines that it counts.

use std::io::{self, BufRead, BufReader, Read as _, Write as _};
use std::net::ToSocketAddrs as _;
use std::time::Duration;

use kymo_base::errno::strerror;
use kymo_base::name::DisplayName;
use kymo_sys::stream::Stream;
use kymo_wire::rrdcached::reply::status_of;

use crate::address::RrdcachedAddress;

/// Longest accepted line, bytes.
const LINE_MAX: u64 = 8192;
/// Most lines of the answer to a single command.
const LINES_MAX: usize = 1 << 16;

/// A connection that opens when something is to be sent.
pub(super) struct LineConnection {
    address: RrdcachedAddress,
    timeout: Duration,
    stream: Option<BufReader<Stream>>,
}

/// An answer.
pub(super) struct Reply {
    /// Negative: the daemon refuses.
    pub(super) status: i64,
    /// The text behind the status.
    pub(super) text: Vec<u8>,
    /// The lines that the status counts.
    pub(super) lines: Vec<Vec<u8>>,
}

impl LineConnection {
    /// A connection that is not open.
    pub(super) fn to(address: RrdcachedAddress, timeout: Duration) -> LineConnection {
        LineConnection {
            address,
            timeout,
            stream: None,
        }
    }

    /// Sends a whole BATCH of this number of commands. Returns errors with the number of their command, from 1. Sets `may_have` if
    /// the BATCH got no answer.
    pub(super) fn batch(
        &mut self,
        text: &[u8],
        commands: usize,
        may_have: &mut bool,
    ) -> Result<Vec<(usize, Vec<u8>)>, String> {
        let exchange = |stream: &mut BufReader<Stream>| {
            stream.get_mut().write_all(text)?;
            let begun = read_reply(stream, 0)?;
            if begun.status != 0 {
                return Err(foreign(&begun.text));
            }
            let ended = read_reply(stream, commands)?;
            Ok(ended
                .lines
                .iter()
                .filter_map(|line| numbered(line))
                .collect())
        };
        self.exchange(exchange, may_have)
    }

    /// Sends a command.
    pub(super) fn ask(&mut self, line: &[u8]) -> Result<Reply, String> {
        let exchange = |stream: &mut BufReader<Stream>| {
            stream.get_mut().write_all(line)?;
            read_reply(stream, LINES_MAX)
        };
        self.exchange(exchange, &mut false)
    }

    /// Repeats the exchange on a new connection if it fails on the old one, whose daemon may have ended.
    fn exchange<T>(
        &mut self,
        exchange: impl Fn(&mut BufReader<Stream>) -> io::Result<T>,
        may_have: &mut bool,
    ) -> Result<T, String> {
        if let Some(mut stream) = self.stream.take() {
            match exchange(&mut stream) {
                Ok(answer) => {
                    self.stream = Some(stream);
                    return Ok(answer);
                }
                Err(_) => *may_have = true,
            }
        }
        let mut stream = self
            .connect()
            .map(BufReader::new)
            .map_err(|error| format!("cannot connect to {}: {}", self.address, strerror(&error)))?;
        let answer = exchange(&mut stream).map_err(|error| {
            *may_have = true;
            match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                    format!("no answer within {} s", self.timeout.as_secs_f64())
                }
                io::ErrorKind::UnexpectedEof => "it ended the connection".into(),
                _ => strerror(&error),
            }
        })?;
        self.stream = Some(stream);
        Ok(answer)
    }

    fn connect(&self) -> io::Result<Stream> {
        let stream = match &self.address {
            RrdcachedAddress::Unix(path) => Stream::to_unix(path)?,
            RrdcachedAddress::Tcp(at) => {
                let addresses = (at.host.as_str(), at.port).to_socket_addrs()?;
                Stream::to_tcp(addresses, Some(self.timeout))?
            }
        };
        stream.set_patience(self.timeout)?;
        Ok(stream)
    }
}

/// Reads an answer of at most this number of lines.
fn read_reply(stream: &mut impl BufRead, lines_max: usize) -> io::Result<Reply> {
    let first = read_line(stream)?;
    let (status, text) = status_of(&first).ok_or_else(|| foreign(&first))?;
    let count = usize::try_from(status).unwrap_or(0);
    if count > lines_max {
        return Err(foreign(&first));
    }
    let text = text.to_vec();
    let lines = (0..count).map(|_| read_line(stream));
    let lines = lines.collect::<io::Result<_>>()?;
    Ok(Reply {
        status,
        text,
        lines,
    })
}

fn read_line(stream: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    stream.take(LINE_MAX).read_until(b'\n', &mut line)?;
    match line.pop() {
        Some(b'\n') => Ok(line),
        Some(_) => Err(foreign(&line)),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

fn numbered(line: &[u8]) -> Option<(usize, Vec<u8>)> {
    let (number, text) = status_of(line)?;
    Some((usize::try_from(number).ok()?, text.to_vec()))
}

fn foreign(text: &[u8]) -> io::Error {
    let shown = text.get(..200).unwrap_or(text);
    io::Error::other(format!("it says {}", DisplayName(shown)))
}

/// Replies of a daemon to one command after the other, to a BATCH and to an INFO.
#[cfg(feature = "testing")]
pub(crate) fn fuzz(input: &[u8]) {
    let mut rest = input;
    while let Ok(reply) = read_reply(&mut rest, LINES_MAX) {
        assert!(reply.lines.len() <= LINES_MAX, "a limit");
        let _numbers: Vec<_> = reply.lines.iter().map(|line| numbered(line)).collect();
        let definition = super::definition::Definition::of_info(&reply.lines);
        let words = definition.into_iter().flat_map(|of| of.words);
        for word in words {
            assert!(!word.contains('\n'), "a line more");
        }
    }
}
