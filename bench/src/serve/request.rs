//! One HTTP request on its own connection, in a browser's form, and the duration of the answer.

use crate::fault::{Cannot, Fault, Result};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

pub(super) struct Answer {
    pub status: u16,
    pub body: Vec<u8>,
    /// From the request's first byte to the answer's last.
    pub wall: Duration,
}

/// Plain or compressed answers.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Form {
    Plain,
    Gzip,
}

/// Sends a GET to the server at `port` of this machine.
pub(super) fn get(port: u16, path: &str, form: Form) -> Result<Answer> {
    let what = format!("ask for {path}");
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).cannot(&what)?;
    stream.set_read_timeout(Some(PATIENCE)).cannot(&what)?;
    stream.set_nodelay(true).cannot(&what)?;
    let gzip = match form {
        Form::Gzip => "Accept-Encoding: gzip\r\n",
        Form::Plain => "",
    };
    let question =
        format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{gzip}Connection: close\r\n\r\n");
    let start = Instant::now();
    stream.write_all(question.as_bytes()).cannot(&what)?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).cannot(&what)?;
    let wall = start.elapsed();
    let (status, body) =
        parse(&bytes).ok_or_else(|| Fault::new(format!("cannot {what}: no HTTP")))?;
    Ok(Answer { status, body, wall })
}

/// As [`get`]; any status except 200 is a fault.
pub(super) fn get_ok(port: u16, path: &str, form: Form) -> Result<Answer> {
    let answer = get(port, path, form)?;
    match answer.status {
        200 => Ok(answer),
        status => {
            let body = String::from_utf8_lossy(&answer.body).into_owned();
            Err(Fault::because(
                format_args!("ask for {path}"),
                format!("{status} {body}"),
            ))
        }
    }
}

fn parse(bytes: &[u8]) -> Option<(u16, Vec<u8>)> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&bytes[..end]).ok()?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some((status, bytes[end + 4..].to_vec()))
}

/// The number after `"name":` in a JSON text.
pub(crate) fn number(json: &[u8], name: &str) -> Option<f64> {
    let text = std::str::from_utf8(json).ok()?;
    let (_, rest) = text.split_once(&format!("\"{name}\":"))?;
    let end = rest.find([',', '}', ']']).unwrap_or(rest.len());
    rest[..end].trim().parse().ok()
}

/// A port that is free now.
pub(crate) fn free_port() -> Result<u16> {
    let probe = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).cannot("find a free port")?;
    Ok(probe.local_addr().cannot("find a free port")?.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_taken_apart() {
        let bytes = b"HTTP/1.1 404 Not Found\r\na: b\r\n\r\n{\"x\":1}";
        assert_eq!(parse(bytes), Some((404, b"{\"x\":1}".to_vec())));
        assert_eq!(parse(b"junk"), None);
    }

    #[test]
    fn numbers_are_found_by_name() {
        let json = br#"{"from":17.5,"thru": 18,"x":{"y":null}}"#;
        for (name, want) in [
            ("from", Some(17.5)),
            ("thru", Some(18.0)),
            ("y", None),
            ("z", None),
        ] {
            assert_eq!(number(json, name), want, "{name}");
        }
    }
}
