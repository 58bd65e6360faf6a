//! The bench's client of the rrdcached protocol: the same for both daemons, and cheap.

use crate::fault::{Cannot, Fault, Result};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(120);

pub struct Wire {
    stream: UnixStream,
    reader: BufReader<UnixStream>,
    line: String,
}

impl Wire {
    pub fn connect(socket: &Path) -> Result<Wire> {
        let stream = UnixStream::connect(socket).cannot("connect to the daemon")?;
        stream
            .set_read_timeout(Some(PATIENCE))
            .cannot("set a limit")?;
        let reader = stream.try_clone().cannot("read from the daemon")?;
        Ok(Wire {
            stream,
            reader: BufReader::new(reader),
            line: String::new(),
        })
    }

    pub fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.stream.write_all(bytes).cannot("write to the daemon")
    }

    /// The first line of a reply; an error of the daemon's is one here.
    pub fn reply(&mut self) -> Result<&str> {
        self.line.clear();
        let read = self.reader.read_line(&mut self.line);
        if read.cannot("read from the daemon")? == 0 {
            return Err(Fault::new("the daemon has closed"));
        }
        match self.line.starts_with('-') {
            true => Err(Fault::because("have it", self.line.trim())),
            false => Ok(&self.line),
        }
    }

    /// A request with a reply of one line.
    pub fn ask(&mut self, line: &str) -> Result<()> {
        self.send(format!("{line}\n").as_bytes())?;
        self.reply().map(drop)
    }

    /// A request and the lines that follow its reply's first.
    pub fn lines(&mut self, line: &str) -> Result<String> {
        self.send(format!("{line}\n").as_bytes())?;
        let first = self.reply()?;
        let count = first
            .split(' ')
            .next()
            .and_then(|word| word.parse::<usize>().ok());
        let mut text = String::new();
        for _ in 0..count.unwrap_or(0) {
            let read = self.reader.read_line(&mut text);
            read.cannot("read from the daemon")?;
        }
        Ok(text)
    }

    /// Sends lines as one BATCH; none may be refused.
    pub fn batch(&mut self, lines: &[u8]) -> Result<()> {
        self.send(b"BATCH\n")?;
        self.send(lines)?;
        self.send(b".\n")?;
        self.reply()?;
        match self.reply()?.starts_with("0 errors") {
            true => Ok(()),
            false => Err(Fault::because("have a batch", self.line.trim())),
        }
    }
}
