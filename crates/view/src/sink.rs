//! Where bytes go. Views know of a terminal and of plot files, not of how they are written.

use std::io;

/// What bytes are for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum To<'a> {
    /// The one stream of everything.
    Stream,
    /// The same stream: what stands over the columns, which whoever reads along from later on has to see first.
    Head,
    /// A plot file, `HOST-DAY.SUFFIX`, or `HOST-DAY-HHMMSS.SUFFIX`; it begins with what is written to it first.
    File {
        /// The recorded machine's name.
        host: &'a str,
        /// The day as yyyymmdd.
        day: u32,
        /// Second of the day, where it is part of the name.
        second: Option<u32>,
        /// `tab`, `cpu`, `dsk`, ...
        suffix: &'a str,
    },
}

/// What of a file's name says when: `20261121`, `20261121-215607`.
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

/// Takes bytes.
pub trait Sink {
    /// Takes the next bytes of a stream or file.
    fn write(&mut self, to: To, bytes: &[u8]) -> io::Result<()>;
    /// An interval is complete: one who watches may see it.
    fn interval(&mut self) -> io::Result<()>;
}

/// All bytes of all files, for tests.
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
