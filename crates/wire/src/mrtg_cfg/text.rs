//! Texts of a configuration, as places in its files.

use std::borrow::Cow;
use std::fmt;

/// A place of a text in a [`Config`](super::Config), in twelve bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Text {
    start: u32,
    /// Length in bytes. The highest bit marks a text of several lines or with tabs, which is
    /// joined at each access.
    len: u32,
    /// Number of the file, or [`MADE`].
    file: u32,
}

/// Marks texts that no file contains, because they are put together.
const MADE: u32 = u32::MAX;
const JOINED: u32 = 1 << 31;

/// A text of a configuration, a command or a device as people read it: UTF-8, or else Latin-1.
pub fn decoded(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => bytes.iter().copied().map(char::from).collect(),
    }
}

/// The files of a configuration, and texts that no file contains.
#[derive(Default)]
pub(super) struct Texts {
    files: Vec<Vec<u8>>,
    made: Vec<u8>,
}

impl fmt::Debug for Texts {
    /// Hides the files, which contain communities.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} files", self.files.len())
    }
}

impl Text {
    pub(super) const EMPTY: Text = Text {
        start: 0,
        len: 0,
        file: MADE,
    };

    pub(super) fn in_file(file: u32, start: usize, len: usize) -> Text {
        Text {
            start: narrow(start),
            len: narrow(len),
            file,
        }
    }

    /// True if the text must be joined at each access.
    pub(super) fn is_joined(self) -> bool {
        self.len & JOINED != 0
    }

    /// Returns the text with a mark to join it at each access, which replaces tabs by blanks.
    pub(super) fn to_be_joined(self) -> Text {
        Text {
            len: self.len | JOINED,
            ..self
        }
    }

    /// The text extended to `end`; further lines in it are continuations or comments.
    pub(super) fn with_lines_until(self, end: usize) -> Text {
        Text {
            len: (narrow(end) - self.start) | JOINED,
            ..self
        }
    }

    pub(super) fn is_in_file(self, file: u32) -> bool {
        self.file == file
    }
}

/// Converts an offset or an index, which the limits of `base::limits` keep within 32 bits.
pub(super) fn narrow(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

pub(super) fn wide(number: u32) -> usize {
    number as usize
}

impl Texts {
    pub(super) fn add_file(&mut self, bytes: Vec<u8>) -> u32 {
        self.files.push(bytes);
        narrow(self.files.len() - 1)
    }

    pub(super) fn file(&self, file: u32) -> &[u8] {
        &self.files[wide(file)]
    }

    /// Stores a text that no file contains.
    pub(super) fn make(&mut self, bytes: &[u8]) -> Text {
        let start = self.made.len();
        self.made.extend_from_slice(bytes);
        Text::in_file(MADE, start, bytes.len())
    }

    /// Appends `more` to a text. The text stored last grows in place; any other one is copied.
    pub(super) fn append(&mut self, text: Text, more: &[&[u8]]) -> Text {
        let is_last = text.file == MADE && wide(text.start) + wide(text.len) == self.made.len();
        let text = match is_last {
            true => text,
            false => {
                let copy = self.get(text).into_owned();
                self.make(&copy)
            }
        };
        for more in more {
            self.made.extend_from_slice(more);
        }
        let len = narrow(self.made.len()) - text.start;
        Text { len, ..text }
    }

    pub(super) fn get(&self, text: Text) -> Cow<'_, [u8]> {
        let bytes = match text.file {
            MADE => &self.made,
            file => &self.files[wide(file)],
        };
        let (start, len) = (wide(text.start), wide(text.len & !JOINED));
        let bytes = &bytes[start..start + len];
        match text.len & JOINED {
            0 => Cow::Borrowed(bytes),
            _ => Cow::Owned(super::lines::joined(bytes)),
        }
    }

    pub(super) fn shrink(&mut self) {
        self.made.shrink_to_fit();
    }

    pub(super) fn made_bytes(&self) -> usize {
        self.made.len()
    }

    pub(super) fn size_bytes(&self) -> usize {
        self.files.iter().map(Vec::len).sum::<usize>() + self.made.len()
    }
}
