//! A strict client of the rrdcached protocol: it frames replies as the protocol defines them (reference:
//! rrdcached(1)) and keeps every byte of them.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use kymo_wire::rrdcached::reply::status_of;

/// Time after which a daemon counts as dead.
const PATIENCE: Duration = Duration::from_secs(30);

/// A reply, or the end of the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// All bytes of the reply.
    Bytes(Vec<u8>),
    /// The daemon closed the connection; the bytes before the end.
    Closed(Vec<u8>),
}

impl Reply {
    /// The reply as text for people.
    pub fn show(&self) -> String {
        let (what, bytes) = match self {
            Reply::Bytes(bytes) => ("", bytes),
            Reply::Closed(bytes) => ("(closed) ", bytes),
        };
        format!("{what}{}", String::from_utf8_lossy(bytes).trim_end())
    }
}

/// One connection.
pub struct Client {
    reader: BufReader<Box<dyn Read + Send>>,
    writer: Box<dyn Write + Send>,
}

impl Client {
    /// Connects to a unix socket.
    pub fn unix(path: &Path) -> io::Result<Client> {
        let stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Client {
            reader: BufReader::new(Box::new(stream.try_clone()?)),
            writer: Box::new(stream),
        })
    }

    /// Connects to a port of this machine.
    pub fn tcp(port: u16) -> io::Result<Client> {
        let stream = TcpStream::connect(("localhost", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Client {
            reader: BufReader::new(Box::new(stream.try_clone()?)),
            writer: Box::new(stream),
        })
    }

    /// Sends bytes as they are.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.writer.write_all(bytes)?;
        self.writer.flush()
    }

    /// Sends a request and reads its reply.
    pub fn ask(&mut self, line: &[u8]) -> io::Result<Reply> {
        // A daemon may reply and then close the connection while the request is still being sent.
        let sent = self.send(&[line, b"\n"].concat());
        match self.reply(is_binary(line)) {
            Err(why) => Err(sent.err().unwrap_or(why)),
            reply => reply,
        }
    }

    /// The reply as text without the last newline. Panics if the daemon does not answer.
    pub fn text(&mut self, line: &str) -> String {
        let reply = self.ask(line.as_bytes());
        let reply = reply.unwrap_or_else(|why| panic!("cannot ask `{line}`: {why}"));
        reply.show()
    }

    /// The next reply; `binary` if it is for a FETCHBIN.
    pub fn reply(&mut self, binary: bool) -> io::Result<Reply> {
        let mut bytes = Vec::new();
        let lines = match self.line(&mut bytes)? {
            Some(first) => status(&first),
            None => return Ok(Reply::Closed(bytes)),
        };
        for _ in 0..lines.max(0) {
            let Some(line) = self.line(&mut bytes)? else {
                return Ok(Reply::Closed(bytes));
            };
            if let Some(len) = binary.then(|| binary_len(&line)).flatten() {
                let at = bytes.len();
                // The values, and the newline after them.
                bytes.resize(at + len + 1, 0);
                self.reader.read_exact(&mut bytes[at..])?;
            }
        }
        Ok(Reply::Bytes(bytes))
    }

    /// Reads until the daemon closes.
    pub fn rest(&mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        match self.reader.read_to_end(&mut bytes) {
            // The daemon closed the connection with unread bytes of ours.
            Err(why) if why.kind() == io::ErrorKind::ConnectionReset => Ok(bytes),
            Err(why) => Err(why),
            Ok(_) => Ok(bytes),
        }
    }

    /// Appends a line, newline included; `None` if the daemon has closed the connection.
    fn line(&mut self, into: &mut Vec<u8>) -> io::Result<Option<Vec<u8>>> {
        let at = into.len();
        match self.reader.read_until(b'\n', into) {
            Err(why) if why.kind() == io::ErrorKind::ConnectionReset => return Ok(None),
            Err(why) => return Err(why),
            Ok(_) => {}
        }
        Ok(into.ends_with(b"\n").then(|| into[at..].to_vec()))
    }
}

/// The number at the start of a reply, which is the count of lines that follow.
fn status(line: &[u8]) -> i64 {
    let (status, _) = status_of(line.trim_ascii_end())
        .unwrap_or_else(|| panic!("a reply without a number: {}", line.escape_ascii()));
    status
}

/// True if the answer to a request has raw bytes.
pub fn is_binary(line: &[u8]) -> bool {
    line.get(..9)
        .is_some_and(|word| word.eq_ignore_ascii_case(b"fetchbin "))
}

/// Bytes of values after a line `DSName-x: BinaryData ROWS SIZE LITTLE`.
fn binary_len(line: &[u8]) -> Option<usize> {
    let text = String::from_utf8_lossy(line);
    let (_, rest) = text.split_once(": BinaryData ")?;
    let mut words = rest.split_whitespace();
    let (rows, size): (usize, usize) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    Some(rows * size)
}
