//! A text from its first line to its last.

use memchr::memchr;

use super::cursor::{Blanks, Cursor};
use super::fault::{BadExposition, ExpositionFault};
use super::format::ExpositionFormat;
use super::metadata::{self, Comment};
use super::model::{ExposedLabel, ExposedLine, LINE_MAX};
use super::sample;

/// Reads a text line by line.
#[derive(Debug)]
pub struct ExpositionReader<'a> {
    format: ExpositionFormat,
    rest: &'a [u8],
    line: usize,
    has_ended: bool,
    labels: Vec<ExposedLabel<'a>>,
    exemplars: u64,
}

impl<'a> ExpositionReader<'a> {
    /// Takes a whole answer; the caller limits how long it may be.
    pub fn new(format: ExpositionFormat, text: &'a [u8]) -> ExpositionReader<'a> {
        ExpositionReader {
            format,
            rest: text,
            line: 0,
            has_ended: false,
            labels: Vec::new(),
            exemplars: 0,
        }
    }

    /// Exemplars so far, which are passed over.
    pub fn exemplars(&self) -> u64 {
        self.exemplars
    }

    /// The next line that says something; `None` at the end, and behind a fault. Comments and, in 0.0.4, empty lines
    /// are passed over.
    pub fn read(&mut self) -> Result<Option<ExposedLine<'_, 'a>>, ExpositionFault> {
        match self.find() {
            Ok(None) => Ok(None),
            Ok(Some(LineKind::Metadata(line))) => Ok(Some(line)),
            Ok(Some(LineKind::Sample(sample))) => {
                Ok(Some(ExposedLine::Sample(sample.with(&self.labels))))
            }
            Err(why) => {
                self.has_ended = true;
                let line = self.line;
                Err(ExpositionFault { line, why })
            }
        }
    }

    fn find(&mut self) -> Result<Option<LineKind<'a>>, BadExposition> {
        while !self.has_ended {
            let Some(text) = self.take_line()? else {
                break;
            };
            let blanks = match self.format {
                ExpositionFormat::Prometheus => Blanks::Free,
                ExpositionFormat::OpenMetrics => Blanks::Single,
            };
            let mut line = Cursor { rest: text, blanks };
            line.pass_blanks();
            if line.eat("#") {
                match metadata::read(line)? {
                    Comment::Free => {}
                    Comment::Eof => self.end()?,
                    Comment::Metadata(line) => return Ok(Some(LineKind::Metadata(line))),
                }
            } else if !line.rest.is_empty() || blanks == Blanks::Single {
                let sample = sample::read(line, &mut self.labels)?;
                self.exemplars += u64::from(sample.has_exemplar);
                return Ok(Some(LineKind::Sample(sample)));
            }
        }
        Ok(None)
    }

    /// Takes a line without its end. The last one of 0.0.4 need not have one; in OpenMetrics only `# EOF` need not.
    fn take_line(&mut self) -> Result<Option<&'a str>, BadExposition> {
        let is_open = self.format == ExpositionFormat::OpenMetrics;
        if self.rest.is_empty() {
            self.has_ended = true;
            return if is_open {
                Err(BadExposition::NoEof)
            } else {
                Ok(None)
            };
        }
        self.line += 1;
        let head = self.rest.get(..LINE_MAX + 1).unwrap_or(self.rest);
        let (line, behind) = match memchr(b'\n', head) {
            Some(end) => (self.rest.get(..end), self.rest.get(end + 1..)),
            None if head.len() > LINE_MAX => return Err(BadExposition::LineLength),
            None if is_open && head != b"# EOF" => return Err(BadExposition::NoEof),
            None => (Some(head), None),
        };
        self.rest = behind.unwrap_or_default();
        let line = std::str::from_utf8(line.unwrap_or_default());
        line.map(Some).map_err(|_| BadExposition::NotUtf8)
    }

    fn end(&mut self) -> Result<(), BadExposition> {
        self.has_ended = true;
        match self.rest.is_empty() {
            true => Ok(()),
            false => Err(BadExposition::BehindEof),
        }
    }
}

enum LineKind<'a> {
    Sample(sample::Plain<'a>),
    Metadata(ExposedLine<'a, 'a>),
}
