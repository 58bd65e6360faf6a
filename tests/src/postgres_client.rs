//! A client of PostgreSQL that sends given messages of the simple and of the extended protocol, and returns the end of each.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(120);
const VERSION: u32 = 3 << 16;
/// Rows that the client sends for `COPY ... FROM stdin`.
const COPIED: &[u8] = b"1\n2\n3\n";

/// End of a command, or of a part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// Completed, with the tag, such as `SELECT 1`.
    Complete(String),
    /// Suspended after the requested number of rows.
    Suspended,
    /// Failed, with an SQLSTATE and a text.
    Error(String, String),
}

/// The answer to a command, or to a part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Number of rows received.
    pub rows: u64,
    /// The message after the rows.
    pub end: End,
}

/// A connection to the database `postgres` as its superuser.
pub struct Client {
    stream: UnixStream,
    unsent: Vec<u8>,
}

impl Client {
    /// Logs in by the socket in the folder, with options such as `-c kymo.enabled=off`.
    pub fn connect(folder: &str, options: &str) -> Client {
        let path = Path::new(folder).join(".s.PGSQL.5432");
        let stream = UnixStream::connect(&path);
        let stream = stream.unwrap_or_else(|why| panic!("cannot connect to {path:?}: {why}"));
        stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
        let words = ["user", "postgres", "database", "postgres", "options"];
        let mut body = VERSION.to_be_bytes().to_vec();
        for word in words.iter().copied().chain([options]) {
            body.extend(word.as_bytes());
            body.push(0);
        }
        body.push(0);
        let mut client = Client {
            stream,
            unsent: length(body.len()),
        };
        client.unsent.extend(body);
        let answers = client.finish();
        assert!(answers.is_empty(), "cannot log in: {answers:?}");
        client
    }

    fn add(&mut self, kind: u8, body: &[u8]) {
        self.unsent.push(kind);
        self.unsent.extend(length(body.len()));
        self.unsent.extend(body);
    }

    /// Sends a message with one or more commands; returns the answer to each.
    pub fn query(&mut self, text: &str) -> Vec<Answer> {
        self.add(b'Q', &strings(&[text]));
        self.finish()
    }

    /// Parses a statement under a name, for the next `sync`.
    pub fn parse(&mut self, name: &str, text: &str) {
        let body = [strings(&[name, text]), vec![0, 0]].concat();
        self.add(b'P', &body);
    }

    /// Binds a statement without parameters to a portal.
    pub fn bind(&mut self, portal: &str, statement: &str) {
        let body = [strings(&[portal, statement]), vec![0; 6]].concat();
        self.add(b'B', &body);
    }

    /// Executes a portal, up to `rows` rows; 0: all.
    pub fn execute(&mut self, portal: &str, rows: u32) {
        let body = [strings(&[portal]), rows.to_be_bytes().to_vec()].concat();
        self.add(b'E', &body);
    }

    /// Closes a statement.
    pub fn close(&mut self, statement: &str) {
        let body = [b"S".to_vec(), strings(&[statement])].concat();
        self.add(b'C', &body);
    }

    /// Sends all added messages and a Sync; returns the answer to each command.
    pub fn sync(&mut self) -> Vec<Answer> {
        self.add(b'S', b"");
        self.finish()
    }

    /// Sends all added messages, and reads until the server waits.
    fn finish(&mut self) -> Vec<Answer> {
        let mut answers = Vec::new();
        let mut rows = 0;
        loop {
            self.stream.write_all(&self.unsent).expect("it is sent");
            self.unsent.clear();
            let (kind, body) = self.message();
            let end = match kind {
                b'Z' => return answers,
                b'D' => {
                    rows += 1;
                    continue;
                }
                b'G' => {
                    self.add(b'd', COPIED);
                    self.add(b'c', b"");
                    continue;
                }
                b'C' => End::Complete(text(&body)),
                b's' => End::Suspended,
                b'E' => End::Error(field(&body, b'C'), field(&body, b'M')),
                _ => continue,
            };
            answers.push(Answer { rows, end });
            rows = 0;
        }
    }

    fn message(&mut self) -> (u8, Vec<u8>) {
        let mut head = [0; 5];
        let read = self.stream.read_exact(&mut head);
        read.unwrap_or_else(|why| panic!("cannot read from the server: {why}"));
        let [kind, length @ ..] = head;
        let bytes = usize::try_from(u32::from_be_bytes(length)).expect("a length") - 4;
        let mut body = vec![0; bytes];
        self.stream.read_exact(&mut body).expect("a message");
        (kind, body)
    }
}

/// A message's length in four bytes, which count themselves.
fn length(body: usize) -> Vec<u8> {
    let all = u32::try_from(body + 4).expect("a short message");
    all.to_be_bytes().to_vec()
}

fn strings(words: &[&str]) -> Vec<u8> {
    words
        .iter()
        .flat_map(|word| [word.as_bytes(), b"\0"].concat())
        .collect()
}

fn text(bytes: &[u8]) -> String {
    let end = bytes
        .iter()
        .position(|&byte| byte == 0)
        .unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// A field of an error.
fn field(body: &[u8], kind: u8) -> String {
    let mut fields = body.split(|&byte| byte == 0);
    let found = fields.find_map(|field| field.strip_prefix(&[kind]));
    found.map(text).unwrap_or_default()
}
