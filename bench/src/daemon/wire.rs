//! The bench's client of the rrdcached protocol: the same for both daemons, and cheap.

use crate::fault::{Cannot, Fault, Result};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) struct Wire {
    stream: UnixStream,
    reader: BufReader<UnixStream>,
    line: String,
}

impl Wire {
    pub(crate) fn connect(socket: &Path) -> Result<Wire> {
        Wire::over(UnixStream::connect(socket).cannot("connect to the daemon")?)
    }

    fn over(stream: UnixStream) -> Result<Wire> {
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

    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.stream.write_all(bytes).cannot("write to the daemon")
    }

    /// The first line of a reply; a daemon's error is an error here.
    pub(crate) fn reply(&mut self) -> Result<&str> {
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

    /// Sends a request with a reply of one line.
    pub(crate) fn ask(&mut self, line: &str) -> Result<()> {
        self.send(format!("{line}\n").as_bytes())?;
        self.reply().map(drop)
    }

    /// Sends a request; returns the lines after the first one of its reply.
    pub(crate) fn lines(&mut self, line: &str) -> Result<String> {
        self.send(format!("{line}\n").as_bytes())?;
        self.read_lines()
    }

    fn read_lines(&mut self) -> Result<String> {
        let count = self.count()?;
        let mut text = String::new();
        for _ in 0..count {
            let read = self.reader.read_line(&mut text);
            read.cannot("read from the daemon")?;
        }
        Ok(text)
    }

    /// A reply's first word: the count of its further lines.
    fn count(&mut self) -> Result<u64> {
        let count = self.reply()?.split(' ').next();
        let count = count.and_then(|word| word.parse().ok());
        count.ok_or_else(|| Fault::because("count the lines of", self.line.trim()))
    }

    /// Number of rows in the answer to an earlier FETCH, read to its end.
    pub(crate) fn text_rows(&mut self) -> Result<u64> {
        let text = self.read_lines()?;
        let rows = text.lines().skip_while(|line| !line.starts_with("DSName"));
        Ok(rows.skip(1).count() as u64)
    }

    /// Number of rows in the answer to an earlier FETCHBIN of one source, read to its end. Stock's count of lines is
    /// wrong: it counts line feeds among the numbers.
    pub(crate) fn binary_rows(&mut self) -> Result<u64> {
        self.reply()?;
        while !self.line.starts_with("DSName") {
            self.reply()?;
        }
        // `DSName-value: BinaryData 1200 8 LITTLE`
        let mut words = self.line.trim().rsplit(' ').skip(1);
        let mut number = || words.next().and_then(|word| word.parse().ok());
        let (Some(bytes), Some(rows)) = (number(), number()) else {
            return Err(Fault::because("count the rows of", self.line.trim()));
        };
        let mut cells = vec![0; (bytes * rows + 1) as usize];
        let read = self.reader.read_exact(&mut cells);
        read.cannot("read from the daemon")?;
        Ok(rows)
    }

    /// Sends each line after the answer to the one before; an error if one is refused.
    pub(crate) fn one_by_one(&mut self, lines: &[u8]) -> Result<()> {
        for line in lines.split_inclusive(|&byte| byte == b'\n') {
            self.send(line)?;
            self.reply()?;
        }
        Ok(())
    }

    /// Sends all lines together, few enough that the socket can hold their replies; an error if one is refused.
    pub(crate) fn at_once(&mut self, lines: &[u8]) -> Result<()> {
        self.send(lines)?;
        for _ in lines.split_inclusive(|&byte| byte == b'\n') {
            self.reply()?;
        }
        Ok(())
    }

    /// Sends lines as one BATCH; an error if one is refused.
    pub(crate) fn batch(&mut self, lines: &[u8]) -> Result<()> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_counted_and_read_to_their_end() {
        let text = "8 Success\nStep: 10\nDSCount: 1\nDSName: value\n1: 2e+00\n2: -nan\n3: 0e+00\n4: 1e+00\n5: 1e+00\n";
        // Line feeds occur among the numbers, and are counted.
        let binary = "28 Success\nStep: 10\nDSCount: 1\nDSName-value: BinaryData 3 8 LITTLE\n";
        let cells = "\n".repeat(24) + "\n";
        for (reply, want) in [(text.to_string(), 5), (format!("{binary}{cells}"), 3)] {
            let (here, mut there) = UnixStream::pair().unwrap();
            there
                .write_all(format!("{reply}0 PONG\n").as_bytes())
                .unwrap();
            let mut wire = Wire::over(here).unwrap();
            let rows = match reply.contains("BinaryData") {
                true => wire.binary_rows(),
                false => wire.text_rows(),
            };
            assert_eq!(rows.unwrap(), want);
            assert_eq!(wire.reply().unwrap(), "0 PONG\n");
        }
    }
}
