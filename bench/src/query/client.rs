//! Requests of HTTP on one connection that stays open.

use crate::fault::{Cannot, Fault, Result};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Uid;
use rustix::thread::set_thread_uid;

const PATIENCE: Duration = Duration::from_secs(120);

pub(super) struct Client {
    reader: BufReader<TcpStream>,
    authority: String,
    token: Option<String>,
}

/// An answer, and the time from the request's first byte to the answer's last.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
    pub(super) wall: Duration,
}

impl Client {
    /// Connects to a port of this machine; as this user if given, which only root can. kymo shares its limits among users of
    /// its machine.
    pub(super) fn connect(user: Option<u32>, port: u16, token: Option<String>) -> Result<Client> {
        let what = format!("connect to port {port}");
        let connect = || {
            if let Some(user) = user {
                set_thread_uid(Uid::from_raw(user))?;
            }
            TcpStream::connect((Ipv4Addr::LOCALHOST, port))
        };
        // The user is the thread's own.
        let stream = thread::scope(|scope| scope.spawn(connect).join());
        let stream = stream
            .map_err(|_| Fault::new(what.clone()))?
            .cannot(&what)?;
        stream.set_read_timeout(Some(PATIENCE)).cannot(&what)?;
        stream.set_nodelay(true).cannot(&what)?;
        Ok(Client {
            reader: BufReader::new(stream),
            authority: format!("127.0.0.1:{port}"),
            token,
        })
    }

    /// Sends a request of remote write 1.0; any answer but success is a fault.
    pub(super) fn write(&mut self, block: &[u8]) -> Result<()> {
        let head = "Content-Type: application/x-protobuf\r\nContent-Encoding: snappy\r\n\
                    X-Prometheus-Remote-Write-Version: 0.1.0\r\n";
        let answer = self.ask("POST", "/api/v1/write", head, block)?;
        match answer.status {
            200 | 204 => Ok(()),
            _ => Err(answer.fault("send samples")),
        }
    }

    /// Sends a GET; any answer but success is a fault.
    pub(super) fn get(&mut self, path: &str) -> Result<Answer> {
        let answer = self.ask("GET", path, "", &[])?;
        match answer.status {
            200 => Ok(answer),
            _ => Err(answer.fault(&format!("ask for {path}"))),
        }
    }

    fn ask(&mut self, method: &str, path: &str, headers: &str, body: &[u8]) -> Result<Answer> {
        let what = format!("ask for {path}");
        let token = self.token.as_ref();
        let token = token.map(|token| format!("Authorization: Bearer {token}\r\n"));
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\n{headers}{}Content-Length: {}\r\n\r\n",
            self.authority,
            token.unwrap_or_default(),
            body.len()
        );
        let begun = Instant::now();
        let stream = self.reader.get_mut();
        stream
            .write_all(&[head.as_bytes(), body].concat())
            .cannot(&what)?;
        let (status, body) = self.answer(&what)?;
        let wall = begun.elapsed();
        Ok(Answer { status, body, wall })
    }

    fn line(&mut self, what: &str) -> Result<String> {
        let mut line = String::new();
        self.reader.read_line(&mut line).cannot(what)?;
        Ok(line.trim_end().to_string())
    }

    fn answer(&mut self, what: &str) -> Result<(u16, Vec<u8>)> {
        let first = self.line(what)?;
        let status = first.split(' ').nth(1).and_then(|word| word.parse().ok());
        let status = status.ok_or_else(|| Fault::new(format!("cannot {what}: no HTTP")))?;
        let (mut length, mut is_chunked) = (0, false);
        loop {
            let line = self.line(what)?.to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(text) = line.strip_prefix("content-length:") {
                length = text.trim().parse().cannot(what)?;
            }
            is_chunked |= line == "transfer-encoding: chunked";
        }
        let mut body = Vec::new();
        if !is_chunked {
            self.take(length, &mut body, what)?;
            return Ok((status, body));
        }
        loop {
            let length = self.line(what)?;
            let length = u64::from_str_radix(&length, 16).cannot(what)?;
            self.take(length, &mut body, what)?;
            self.line(what)?;
            if length == 0 {
                return Ok((status, body));
            }
        }
    }

    fn take(&mut self, length: u64, body: &mut Vec<u8>, what: &str) -> Result<()> {
        let taken = self.reader.by_ref().take(length).read_to_end(body);
        match taken.cannot(what)? as u64 == length {
            true => Ok(()),
            false => Err(Fault::new(format!("cannot {what}: the answer is cut"))),
        }
    }
}

impl Answer {
    fn fault(&self, what: &str) -> Fault {
        let body = String::from_utf8_lossy(&self.body);
        Fault::because(what, format!("{} {}", self.status, body.trim()))
    }

    /// Occurrences of a text in the body.
    pub(super) fn count(&self, text: &str) -> usize {
        let body = String::from_utf8_lossy(&self.body);
        body.matches(text).count()
    }
}
