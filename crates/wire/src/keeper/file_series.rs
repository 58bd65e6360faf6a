//! Series that are named as .rrd files, and their values as rrdtool takes them: requests on the socket for writing.

use super::body::{Put, Take};
use super::frame::QUESTION_MAX;

/// Most series of one request.
const SERIES_MAX: usize = 4096;
/// Most words of a definition.
const WORDS_MAX: usize = 256;
/// Most values of a series in one request.
const VALUES_MAX: usize = 4096;
/// Bytes of a request before its series.
const FRONT: usize = 16;

/// Definition of a series with a file.
#[derive(Clone, Debug, PartialEq)]
pub struct FileSeries {
    /// Path below the base, with `.rrd`.
    pub name: Vec<u8>,
    /// Seconds of a primary data point.
    pub step: u32,
    /// The first value is later than this, in seconds since 1970; before it nothing is known.
    pub start: i64,
    /// How long raw values are kept, in seconds.
    pub points_kept_s: u32,
    /// `DS:` and `RRA:` words, as `rrdtool create` takes them.
    pub words: Vec<Vec<u8>>,
}

/// Values of series with files, as arguments of `rrdtool update`: series after series, in the frame's own bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FileValues {
    count: usize,
    bytes: Vec<u8>,
}

/// Result of definitions or values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Number of series that began.
    pub began: u32,
    /// Number of series whose definitions changed.
    pub changed: u32,
    /// Series that were refused, wholly or in part, with the reasons.
    pub refused: Vec<Refused>,
}

/// A series that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Place of the series in the request.
    pub place: u32,
    /// Kind of the refusal.
    pub fault: Fault,
    /// The reason, for people.
    pub why: String,
}

/// Kinds of refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Any other reason, which a client cannot mend.
    Other,
    /// There is no such series: defining it helps.
    Missing,
    /// The series has a value that is as new. If the client may have sent these values before, it can ignore the refusal.
    Past,
}

impl Fault {
    const ALL: [Fault; 3] = [Fault::Other, Fault::Missing, Fault::Past];

    fn of(code: u8) -> Option<Fault> {
        let all = Self::ALL.into_iter();
        all.zip(0..)
            .find_map(|(fault, at)| (at == code).then_some(fault))
    }

    fn code(self) -> u8 {
        match self {
            Fault::Other => 0,
            Fault::Missing => 1,
            Fault::Past => 2,
        }
    }
}

impl FileValues {
    /// Removes all series; the memory is kept.
    pub fn clear(&mut self) {
        self.count = 0;
        self.bytes.clear();
    }

    /// Number of series.
    pub fn len(&self) -> usize {
        self.count
    }

    /// True if there are no series.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds a series; `false`: the request is full, and nothing was added.
    pub fn push(&mut self, name: &[u8], arguments: &[&[u8]]) -> bool {
        let bytes: usize = arguments.iter().map(|argument| argument.len() + 2).sum();
        let needed = self.bytes.len() + name.len() + 4 + bytes + FRONT;
        if self.count == SERIES_MAX || needed > QUESTION_MAX || arguments.len() > VALUES_MAX {
            return false;
        }
        self.count += 1;
        self.bytes.text(name);
        self.bytes.u16(arguments.len());
        arguments.iter().for_each(|text| self.bytes.text(text));
        true
    }

    /// Names with their arguments, in the order of the request.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], Arguments<'_>)> {
        let mut rest = Take::of(&self.bytes);
        std::iter::from_fn(move || next(&mut rest))
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        out.u16(self.count);
        out.extend_from_slice(&self.bytes);
    }

    pub(super) fn take(body: &mut Take) -> Option<FileValues> {
        let count = body.count(SERIES_MAX)?;
        let whole = body.rest();
        for _ in 0..count {
            next(body)?;
        }
        let bytes = &whole[..whole.len() - body.rest().len()];
        Some(FileValues {
            count,
            bytes: bytes.to_vec(),
        })
    }
}

/// Arguments of a series.
#[derive(Clone)]
pub struct Arguments<'a> {
    left: usize,
    rest: Take<'a>,
}

impl<'a> Iterator for Arguments<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        self.left = self.left.checked_sub(1)?;
        self.rest.text()
    }
}

/// Reads a series; `None`: there is no more, or it is cut short.
fn next<'a>(rest: &mut Take<'a>) -> Option<(&'a [u8], Arguments<'a>)> {
    let name = rest.text()?;
    let left = rest.count(VALUES_MAX)?;
    let arguments = Arguments {
        left,
        rest: rest.clone(),
    };
    for _ in 0..left {
        rest.text()?;
    }
    Some((name, arguments))
}

pub(super) fn put_definitions(series: &[FileSeries], out: &mut Vec<u8>) {
    out.u16(series.len());
    for series in series {
        out.text(&series.name);
        out.u32(series.step);
        out.i64(series.start);
        out.u32(series.points_kept_s);
        out.u16(series.words.len());
        series.words.iter().for_each(|word| out.text(word));
    }
}

pub(super) fn definitions(body: &mut Take) -> Option<Vec<FileSeries>> {
    let count = body.count(SERIES_MAX)?;
    let series = (0..count).map(|_| {
        let (name, step) = (body.text()?.to_vec(), body.u32()?);
        let (start, points_kept_s) = (body.i64()?, body.u32()?);
        let words = body.count(WORDS_MAX)?;
        let words = (0..words).map(|_| body.text().map(<[u8]>::to_vec));
        Some(FileSeries {
            name,
            step,
            start,
            points_kept_s,
            words: words.collect::<Option<_>>()?,
        })
    });
    series.collect()
}

impl Taken {
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        out.u32(self.began);
        out.u32(self.changed);
        out.length(self.refused.len());
        for refused in &self.refused {
            out.u32(refused.place);
            out.u8(refused.fault.code());
            out.text(refused.why.as_bytes());
        }
    }

    pub(super) fn take(body: &mut Take) -> Option<Taken> {
        let (began, changed, count) = (body.u32()?, body.u32()?, body.u32()?);
        let refused = (0..count).map(|_| {
            Some(Refused {
                place: body.u32()?,
                fault: Fault::of(body.u8()?)?,
                why: String::from_utf8_lossy(body.text()?).into_owned(),
            })
        });
        Some(Taken {
            began,
            changed,
            refused: refused.collect::<Option<_>>()?,
        })
    }
}
