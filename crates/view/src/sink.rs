//! Destinations of output. Views distinguish a stream from plot files; the sink knows how to write them.

use std::io;

/// Destination of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum To<'a> {
    /// The output stream.
    Stream,
    /// The stream as well, but for headers. A sink must repeat the latest header to readers that join later.
    Head,
    /// A plot file, `HOST-DAY.SUFFIX`, or `HOST-DAY-HHMMSS.SUFFIX`. A view writes its header first.
    File {
        /// Name of the recorded machine.
        host: &'a str,
        /// The day as yyyymmdd.
        day: u32,
        /// Second of the day, if it is part of the name.
        second: Option<u32>,
        /// `tab`, `cpu`, `dsk`, ...
        suffix: &'a str,
    },
}

/// The time in a file's name: `20261121`, `20261121-215607`.
pub fn when(day: u32, second: Option<u32>) -> String {
    match second {
        None => day.to_string(),
        Some(second) => format!(
            "{day}-{:02}{:02}{:02}",
            second / 3600,
            second / 60 % 60,
            second % 60
        ),
    }
}

/// Receives output.
pub trait Sink {
    /// Writes the next bytes of a stream or file.
    fn write(&mut self, to: To, bytes: &[u8]) -> io::Result<()>;
    /// Ends an interval; buffered output may be flushed.
    fn interval(&mut self) -> io::Result<()>;
}

/// Collects all output in memory, for tests.
#[derive(Default, Debug)]
pub struct Memory {
    /// The stream.
    pub stream: Vec<u8>,
    /// Files by name.
    pub files: std::collections::BTreeMap<String, Vec<u8>>,
}

impl Sink for Memory {
    fn write(&mut self, to: To, bytes: &[u8]) -> io::Result<()> {
        match to {
            To::Stream | To::Head => self.stream.extend_from_slice(bytes),
            To::File {
                host,
                day,
                second,
                suffix,
            } => {
                let file = self
                    .files
                    .entry(format!("{host}-{}.{suffix}", when(day, second)))
                    .or_default();
                file.extend_from_slice(bytes);
            }
        }
        Ok(())
    }

    fn interval(&mut self) -> io::Result<()> {
        Ok(())
    }
}
