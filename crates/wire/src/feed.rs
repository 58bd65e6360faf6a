//! The feed that one machine gives another over a pipe, such as ssh's: docs/formats/feed.md. Samples in it are records as a recorder
//! makes them; here they are bytes.

use std::fmt;

/// The first eight bytes of either side.
pub const MAGIC: &[u8; 8] = b"KYMOFEED";
/// The version of the feed.
pub const VERSION: u32 = 1;
/// Length of [`preface`].
pub const PREFACE_LEN: usize = 12;
/// Longest frame, in bytes; a reader may take less.
pub const FRAME_MAX: usize = 8 << 20;
/// Longest frame of a request.
pub const REQUEST_MAX: usize = 1024;
/// Longest name and longest reason, in bytes.
pub const TEXT_MAX: usize = 1024;
/// Most points of an answer's lines together.
pub const POINTS_MAX: usize = 1 << 17;
/// The end of a range that goes on with the samples to come.
pub const GOES_ON: i64 = i64::MAX;

/// Most events of an answer.
const MARKS_MAX: usize = 1000;

const LENGTH_LEN: usize = 4;

/// A question of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FeedRequest {
    /// The time of the host.
    Clock {
        /// Returned in the answer.
        id: u32,
    },
    /// Samples.
    Read(FeedRange),
    /// How far the recording reaches: an [`FeedExtent`].
    Extent {
        /// Returned in the answer.
        id: u32,
    },
    /// Fields over a range: a [`FeedSeries`].
    Series {
        /// Returned in the answer.
        id: u32,
        /// Start, nanoseconds since 1970.
        from_ns: i64,
        /// End.
        thru_ns: i64,
        /// Most points of a line.
        points: u32,
        /// Ids of the fields, with a blank between two.
        fields: String,
    },
    /// The unusual values of a range: text.
    Why {
        /// Returned in the answer.
        id: u32,
        /// Start, nanoseconds since 1970.
        from_ns: i64,
        /// End.
        thru_ns: i64,
    },
    /// The programs at a moment: text.
    Programs {
        /// Returned in the answer.
        id: u32,
        /// Nanoseconds since 1970.
        at_ns: i64,
    },
}

/// The samples that are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedRange {
    /// Returned in each answer.
    pub id: u32,
    /// Start, nanoseconds since 1970.
    pub from_ns: i64,
    /// End; [`GOES_ON`]: none.
    pub thru_ns: i64,
    /// The kinds of source, a bit each, the lowest of the first byte first.
    pub kinds: [u8; 32],
}

/// A part of a host's side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FeedMessage<'a> {
    /// Comes first, unasked.
    Hello(Hello),
    /// The time of the host.
    Clock {
        /// Id of the request.
        id: u32,
        /// Nanoseconds since 1970.
        now_ns: i64,
    },
    /// Whole records, one behind the other.
    Records {
        /// Id of the request.
        id: u32,
        /// Records without checksums and sequence numbers.
        bytes: &'a [u8],
    },
    /// All samples of a range have been sent.
    End {
        /// Id of the request.
        id: u32,
    },
    /// A request has no answer, or no more of it.
    Refused {
        /// Id of the request.
        id: u32,
        /// For people.
        why: String,
    },
    /// The answer to a request for anything but samples.
    Answer {
        /// Id of the request.
        id: u32,
        /// In the form of the request.
        bytes: &'a [u8],
    },
}

/// How far a recording reaches. Times are nanoseconds since 1970, and 0 where they are not known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeedExtent {
    /// Times of the first and the last sample, then nanoseconds from sample to sample, and from scan to scan of the processes.
    pub times_ns: [i64; 4],
    /// Facts of the machine.
    pub facts: String,
}

/// Fields over a range, in points of equal length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FeedSeries {
    /// Begin of the first point, nanoseconds since 1970.
    pub from_ns: i64,
    /// Length of a point.
    pub step_ns: i64,
    /// The lines: a field's id, and of each point the greatest value and the mean, NaN where nothing is known.
    pub lines: Vec<(String, Vec<[f64; 2]>)>,
    /// Events: begin, end, kind and text.
    pub marks: Vec<(i64, i64, u8, String)>,
}

/// Facts of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hello {
    /// Name of the machine.
    pub host: String,
    /// Name and version of the program.
    pub program: String,
    /// Time of the host, nanoseconds since 1970.
    pub now_ns: i64,
    /// Time of the first sample that can be read; 0: there is none yet.
    pub first_ns: i64,
    /// Time of the last one.
    pub last_ns: i64,
}

/// Why a stream cannot be read on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FeedError {
    /// The stream does not begin as a feed does.
    NoFeed,
    /// A feed of this version.
    Version(u32),
    /// A frame has this length.
    TooLong(usize),
    /// A frame is none that a writer makes.
    Damaged,
}

impl fmt::Display for FeedError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FeedError::NoFeed => out.write_str("it sends no feed of kymo"),
            FeedError::Version(version) => write!(
                out,
                "its feed is of version {version}, and {VERSION} is the only one known"
            ),
            FeedError::TooLong(length) => write!(out, "it sends a frame of {length} bytes"),
            FeedError::Damaged => out.write_str("it sends a frame that is none"),
        }
    }
}

impl std::error::Error for FeedError {}

/// The bytes that either side begins with.
pub fn preface() -> [u8; PREFACE_LEN] {
    let mut preface = [0; PREFACE_LEN];
    preface[..8].copy_from_slice(MAGIC);
    preface[8..].copy_from_slice(&VERSION.to_le_bytes());
    preface
}

/// Cuts a stream into frames.
pub struct Frames {
    bytes: Vec<u8>,
    /// Bytes that have been taken.
    taken: usize,
    max: usize,
    has_begun: bool,
}

impl Frames {
    /// The begin of a stream with frames of at most `max` bytes.
    pub fn new(max: usize) -> Frames {
        Frames {
            bytes: Vec::new(),
            taken: 0,
            max,
            has_begun: false,
        }
    }

    /// Adds bytes of the stream. Only these are kept, without a margin.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.taken);
        self.taken = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole frame, its type first; `None`: more bytes are needed.
    pub fn take(&mut self) -> Result<Option<&[u8]>, FeedError> {
        if !self.has_begun && !self.begin()? {
            return Ok(None);
        }
        let rest = self.bytes.get(self.taken..).unwrap_or_default();
        let Some((length, rest)) = rest.split_first_chunk::<LENGTH_LEN>() else {
            return Ok(None);
        };
        let length = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
        if length == 0 || length > self.max {
            return Err(FeedError::TooLong(length));
        }
        let Some(frame) = rest.get(..length) else {
            return Ok(None);
        };
        self.taken += LENGTH_LEN + length;
        Ok(Some(frame))
    }

    /// Takes the preface; `false`: it is not whole.
    fn begin(&mut self) -> Result<bool, FeedError> {
        let known = self.bytes.len().min(MAGIC.len());
        if self.bytes[..known] != MAGIC[..known] {
            return Err(FeedError::NoFeed);
        }
        let Some((_, [a, b, c, d])) = self.bytes.get(..PREFACE_LEN).map(|all| {
            let (magic, version) = all.split_at(MAGIC.len());
            (magic, [version[0], version[1], version[2], version[3]])
        }) else {
            return Ok(false);
        };
        match u32::from_le_bytes([a, b, c, d]) {
            VERSION => {
                (self.taken, self.has_begun) = (PREFACE_LEN, true);
                Ok(true)
            }
            other => Err(FeedError::Version(other)),
        }
    }
}

/// Appends a frame. The caller keeps to the limit.
fn put_frame(out: &mut Vec<u8>, tag: u8, parts: &[&[u8]]) {
    let length = 1 + parts.iter().map(|part| part.len()).sum::<usize>();
    let length = u32::try_from(length).unwrap_or(u32::MAX);
    out.extend_from_slice(&length.to_le_bytes());
    out.push(tag);
    parts.iter().for_each(|part| out.extend_from_slice(part));
}

/// A text that is cut to its limit, behind its length.
fn put_text(out: &mut Vec<u8>, text: &str) {
    let text = &text[..text.floor_char_boundary(TEXT_MAX)];
    let length = u16::try_from(text.len()).unwrap_or(0);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

/// Takes a part of a known length off the front.
fn take<const N: usize>(from: &mut &[u8]) -> Result<[u8; N], FeedError> {
    let (part, rest) = from.split_first_chunk::<N>().ok_or(FeedError::Damaged)?;
    *from = rest;
    Ok(*part)
}

fn take_text(from: &mut &[u8]) -> Result<String, FeedError> {
    let length = usize::from(u16::from_le_bytes(take(from)?));
    let (text, rest) = from.split_at_checked(length).ok_or(FeedError::Damaged)?;
    if length > TEXT_MAX {
        return Err(FeedError::Damaged);
    }
    *from = rest;
    Ok(String::from_utf8_lossy(text).into_owned())
}

fn end<T>(rest: &[u8], value: T) -> Result<T, FeedError> {
    match rest.is_empty() {
        true => Ok(value),
        false => Err(FeedError::Damaged),
    }
}

impl FeedRequest {
    /// Appends the frame.
    pub fn put(&self, out: &mut Vec<u8>) {
        match self {
            FeedRequest::Clock { id } => put_frame(out, 1, &[&id.to_le_bytes()]),
            FeedRequest::Read(read) => {
                let [from, thru] = [read.from_ns, read.thru_ns].map(i64::to_le_bytes);
                put_frame(out, 2, &[&read.id.to_le_bytes(), &from, &thru, &read.kinds]);
            }
            FeedRequest::Extent { id } => put_frame(out, 3, &[&id.to_le_bytes()]),
            FeedRequest::Series {
                id,
                from_ns,
                thru_ns,
                points,
                fields,
            } => {
                let mut text = Vec::new();
                put_text(&mut text, fields);
                let [from, thru] = [from_ns, thru_ns].map(|ns| ns.to_le_bytes());
                let [id, points] = [id, points].map(|number| number.to_le_bytes());
                put_frame(out, 4, &[&id, &from, &thru, &points, &text]);
            }
            FeedRequest::Why {
                id,
                from_ns,
                thru_ns,
            } => {
                let [from, thru] = [from_ns, thru_ns].map(|ns| ns.to_le_bytes());
                put_frame(out, 5, &[&id.to_le_bytes(), &from, &thru]);
            }
            FeedRequest::Programs { id, at_ns } => {
                put_frame(out, 6, &[&id.to_le_bytes(), &at_ns.to_le_bytes()]);
            }
        }
    }

    /// Reads a frame.
    pub fn parse(frame: &[u8]) -> Result<FeedRequest, FeedError> {
        let (&tag, mut rest) = frame.split_first().ok_or(FeedError::Damaged)?;
        let rest = &mut rest;
        let id = u32::from_le_bytes(take(rest)?);
        let request = match tag {
            1 => FeedRequest::Clock { id },
            2 => FeedRequest::Read(FeedRange {
                id,
                from_ns: i64::from_le_bytes(take(rest)?),
                thru_ns: i64::from_le_bytes(take(rest)?),
                kinds: take(rest)?,
            }),
            3 => FeedRequest::Extent { id },
            4 => FeedRequest::Series {
                id,
                from_ns: i64::from_le_bytes(take(rest)?),
                thru_ns: i64::from_le_bytes(take(rest)?),
                points: u32::from_le_bytes(take(rest)?),
                fields: take_text(rest)?,
            },
            5 => FeedRequest::Why {
                id,
                from_ns: i64::from_le_bytes(take(rest)?),
                thru_ns: i64::from_le_bytes(take(rest)?),
            },
            6 => FeedRequest::Programs {
                id,
                at_ns: i64::from_le_bytes(take(rest)?),
            },
            _ => return Err(FeedError::Damaged),
        };
        end(rest, request)
    }
}

impl FeedMessage<'_> {
    /// Appends the frame.
    pub fn put(&self, out: &mut Vec<u8>) {
        match self {
            FeedMessage::Hello(hello) => {
                let mut body = Vec::new();
                for time in [hello.now_ns, hello.first_ns, hello.last_ns] {
                    body.extend_from_slice(&time.to_le_bytes());
                }
                put_text(&mut body, &hello.host);
                put_text(&mut body, &hello.program);
                put_frame(out, 1, &[&body]);
            }
            FeedMessage::Clock { id, now_ns } => {
                put_frame(out, 2, &[&id.to_le_bytes(), &now_ns.to_le_bytes()]);
            }
            FeedMessage::Records { id, bytes } => put_frame(out, 3, &[&id.to_le_bytes(), bytes]),
            FeedMessage::End { id } => put_frame(out, 4, &[&id.to_le_bytes()]),
            FeedMessage::Refused { id, why } => {
                let mut body = id.to_le_bytes().to_vec();
                put_text(&mut body, why);
                put_frame(out, 5, &[&body]);
            }
            FeedMessage::Answer { id, bytes } => put_frame(out, 6, &[&id.to_le_bytes(), bytes]),
        }
    }
}

impl<'a> FeedMessage<'a> {
    /// Reads a frame.
    pub fn parse(frame: &'a [u8]) -> Result<FeedMessage<'a>, FeedError> {
        let (&tag, mut rest) = frame.split_first().ok_or(FeedError::Damaged)?;
        let rest = &mut rest;
        if tag == 1 {
            let [now_ns, first_ns, last_ns] = [take(rest)?, take(rest)?, take(rest)?];
            let [now_ns, first_ns, last_ns] = [now_ns, first_ns, last_ns].map(i64::from_le_bytes);
            let hello = Hello {
                now_ns,
                first_ns,
                last_ns,
                host: take_text(rest)?,
                program: take_text(rest)?,
            };
            return end(rest, FeedMessage::Hello(hello));
        }
        let id = u32::from_le_bytes(take(rest)?);
        let message = match tag {
            2 => FeedMessage::Clock {
                id,
                now_ns: i64::from_le_bytes(take(rest)?),
            },
            3 => FeedMessage::Records {
                id,
                bytes: std::mem::take(rest),
            },
            4 => FeedMessage::End { id },
            5 => FeedMessage::Refused {
                id,
                why: take_text(rest)?,
            },
            6 => FeedMessage::Answer {
                id,
                bytes: std::mem::take(rest),
            },
            _ => return Err(FeedError::Damaged),
        };
        end(rest, message)
    }
}

impl FeedExtent {
    /// Appends the answer.
    pub fn put(&self, out: &mut Vec<u8>) {
        let times = self.times_ns.iter();
        times.for_each(|ns| out.extend_from_slice(&ns.to_le_bytes()));
        out.extend_from_slice(self.facts.as_bytes());
    }

    /// Reads an answer.
    pub fn parse(mut bytes: &[u8]) -> Result<FeedExtent, FeedError> {
        let mut times_ns = [0; 4];
        for ns in &mut times_ns {
            *ns = i64::from_le_bytes(take(&mut bytes)?);
        }
        let facts = String::from_utf8_lossy(bytes).into_owned();
        Ok(FeedExtent { times_ns, facts })
    }
}

impl FeedSeries {
    /// Appends the answer, with as many events as its limit permits.
    pub fn put(&self, out: &mut Vec<u8>) {
        let count = |count: usize| u32::try_from(count).unwrap_or(0).to_le_bytes();
        let points = self.lines.first().map_or(0, |(_, points)| points.len());
        out.extend_from_slice(&self.from_ns.to_le_bytes());
        out.extend_from_slice(&self.step_ns.to_le_bytes());
        out.extend_from_slice(&count(points));
        out.extend_from_slice(&count(self.lines.len()));
        for (id, points) in &self.lines {
            put_text(out, id);
            let values = points.iter().flatten();
            values.for_each(|value| out.extend_from_slice(&value.to_le_bytes()));
        }
        for (from_ns, until_ns, kind, text) in self.marks.iter().take(MARKS_MAX) {
            out.extend_from_slice(&from_ns.to_le_bytes());
            out.extend_from_slice(&until_ns.to_le_bytes());
            out.push(*kind);
            put_text(out, text);
        }
    }

    /// Reads an answer.
    pub fn parse(mut bytes: &[u8]) -> Result<FeedSeries, FeedError> {
        let rest = &mut bytes;
        let mut series = FeedSeries {
            from_ns: i64::from_le_bytes(take(rest)?),
            step_ns: i64::from_le_bytes(take(rest)?),
            ..FeedSeries::default()
        };
        let [points, lines] = [take(rest)?, take(rest)?].map(u32::from_le_bytes);
        let all = usize::try_from(u64::from(points) * u64::from(lines)).unwrap_or(usize::MAX);
        if all > POINTS_MAX || usize::try_from(lines).unwrap_or(usize::MAX) > POINTS_MAX {
            return Err(FeedError::TooLong(all));
        }
        for _ in 0..lines {
            let id = take_text(rest)?;
            let mut values = Vec::new();
            for _ in 0..points {
                values.push([take(rest)?, take(rest)?].map(f64::from_le_bytes));
            }
            series.lines.push((id, values));
        }
        while !rest.is_empty() {
            if series.marks.len() == MARKS_MAX {
                return Err(FeedError::Damaged);
            }
            let times = [take(rest)?, take(rest)?].map(i64::from_le_bytes);
            let [kind] = take(rest)?;
            let text = take_text(rest)?;
            series.marks.push((times[0], times[1], kind, text));
        }
        Ok(series)
    }
}

/// Reads any bytes as either side's stream; each frame that is understood is written and read again.
#[cfg(feature = "testing")]
pub fn fuzz_feed(input: &[u8]) {
    let whole = [&preface(), input].concat();
    for stream in [input, &whole] {
        let mut frames = Frames::new(1 << 16);
        for part in stream.chunks(7) {
            frames.push(part);
            while let Ok(Some(frame)) = frames.take() {
                let mut again = Vec::new();
                if let Ok(request) = FeedRequest::parse(frame) {
                    request.put(&mut again);
                    assert_eq!(&again[LENGTH_LEN..], frame);
                }
                again.clear();
                if let Ok(message) = FeedMessage::parse(frame) {
                    message.put(&mut again);
                    let reread = FeedMessage::parse(&again[LENGTH_LEN..]);
                    // A text that is no UTF-8 is read as another one, which may be cut.
                    assert!(reread.is_ok());
                    if let FeedMessage::Answer { bytes, .. } = message {
                        fuzz_answer(bytes);
                    }
                }
            }
        }
    }
}

/// Reads any bytes as an answer; one that is understood is written and read again.
#[cfg(feature = "testing")]
fn fuzz_answer(bytes: &[u8]) {
    let mut again = Vec::new();
    if let Ok(series) = FeedSeries::parse(bytes) {
        series.put(&mut again);
        assert!(FeedSeries::parse(&again).is_ok());
    }
    again.clear();
    if let Ok(extent) = FeedExtent::parse(bytes) {
        extent.put(&mut again);
        assert_eq!(FeedExtent::parse(&again), Ok(extent));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests() -> Vec<FeedRequest> {
        vec![
            FeedRequest::Clock { id: 7 },
            FeedRequest::Read(FeedRange {
                id: 8,
                from_ns: -5,
                thru_ns: GOES_ON,
                kinds: [0xa5; 32],
            }),
            FeedRequest::Extent { id: 9 },
            FeedRequest::Series {
                id: 10,
                from_ns: 1,
                thru_ns: 2,
                points: 240,
                fields: "cpu.total net.rx_kb".into(),
            },
            FeedRequest::Why {
                id: 11,
                from_ns: 1,
                thru_ns: 2,
            },
            FeedRequest::Programs { id: 12, at_ns: 3 },
        ]
    }

    fn messages() -> Vec<FeedMessage<'static>> {
        vec![
            FeedMessage::Hello(Hello {
                host: "web1".into(),
                program: "kymo 0.1.0".into(),
                now_ns: 3,
                first_ns: 1,
                last_ns: 2,
            }),
            FeedMessage::Clock { id: 7, now_ns: 9 },
            FeedMessage::Records {
                id: 8,
                bytes: b"records",
            },
            FeedMessage::End { id: 8 },
            FeedMessage::Refused {
                id: 9,
                why: "no".into(),
            },
            FeedMessage::Answer {
                id: 10,
                bytes: b"answer",
            },
        ]
    }

    fn series() -> FeedSeries {
        FeedSeries {
            from_ns: -7,
            step_ns: 5,
            lines: vec![("cpu.total".into(), vec![[2.0, 1.0], [4.0, 3.0]])],
            marks: vec![(1, 2, 5, "boot".into())],
        }
    }

    /// An answer that is cut at any byte is refused, or has fewer events; one that says that it is large costs no memory.
    #[test]
    fn answers_have_their_length() {
        let mut whole = Vec::new();
        series().put(&mut whole);
        assert_eq!(FeedSeries::parse(&whole), Ok(series()));
        for end in 0..whole.len() {
            let cut = FeedSeries::parse(&whole[..end]);
            assert!(cut.is_err() || cut.is_ok_and(|cut| cut.marks.is_empty()));
        }
        whole[16..24].fill(0xff);
        assert!(FeedSeries::parse(&whole).is_err());
        whole[16..20].fill(0);
        assert!(FeedSeries::parse(&whole).is_err());
        let extent = FeedExtent {
            times_ns: [1, 2, 3, 4],
            facts: "host: web1".into(),
        };
        let mut bytes = Vec::new();
        extent.put(&mut bytes);
        assert_eq!(FeedExtent::parse(&bytes), Ok(extent));
        assert!(FeedExtent::parse(&bytes[..31]).is_err());
    }

    /// Both sides' streams, cut into pieces of each length, are the same frames.
    #[test]
    fn there_and_back_in_any_pieces() {
        let (mut asked, mut said) = (preface().to_vec(), preface().to_vec());
        requests()
            .iter()
            .for_each(|request| request.put(&mut asked));
        messages().iter().for_each(|message| message.put(&mut said));
        for size in 1..said.len() {
            let (mut frames, mut number) = (Frames::new(FRAME_MAX), 0);
            for piece in said.chunks(size) {
                frames.push(piece);
                while let Some(frame) = frames.take().unwrap() {
                    assert_eq!(FeedMessage::parse(frame).as_ref(), Ok(&messages()[number]));
                    number += 1;
                }
            }
            assert_eq!(number, messages().len());
        }
        let (mut frames, mut got) = (Frames::new(REQUEST_MAX), Vec::new());
        frames.push(&asked);
        while let Some(frame) = frames.take().unwrap() {
            got.push(FeedRequest::parse(frame).unwrap());
        }
        assert_eq!(got, requests());
    }

    /// A frame that is cut at any byte, or has one more, is refused.
    #[test]
    fn frames_have_their_length() {
        for message in messages() {
            let mut whole = Vec::new();
            message.put(&mut whole);
            let frame = &whole[LENGTH_LEN..];
            let is_open = matches!(
                message,
                FeedMessage::Records { .. } | FeedMessage::Answer { .. }
            );
            let is_cut = |end: usize| is_open && end >= 5;
            for end in 0..frame.len() {
                assert_eq!(
                    FeedMessage::parse(&frame[..end]).is_ok(),
                    is_cut(end),
                    "{message:?} {end}"
                );
            }
            let more = [frame, &[0]].concat();
            assert_eq!(
                FeedMessage::parse(&more).is_ok(),
                is_cut(more.len()),
                "{message:?}"
            );
        }
        for request in requests() {
            let mut whole = Vec::new();
            request.put(&mut whole);
            for end in 0..whole.len() - LENGTH_LEN {
                let cut = &whole[LENGTH_LEN..LENGTH_LEN + end];
                assert_eq!(FeedRequest::parse(cut), Err(FeedError::Damaged));
            }
        }
    }

    #[test]
    fn other_streams_are_refused_by_name() {
        let after = |bytes: &[u8]| {
            let mut frames = Frames::new(100);
            frames.push(bytes);
            frames.take().map(|frame| frame.map(<[u8]>::to_vec))
        };
        assert_eq!(after(b""), Ok(None));
        assert_eq!(after(b"KYMO"), Ok(None));
        assert_eq!(after(b"Last login:"), Err(FeedError::NoFeed));
        assert_eq!(after(b"K\n"), Err(FeedError::NoFeed));
        let mut other = preface();
        other[8] = 9;
        let error = after(&other).unwrap_err();
        assert_eq!(
            error.to_string(),
            "its feed is of version 9, and 1 is the only one known"
        );
        for (length, is_fine) in [
            (0_u32, false),
            (1, true),
            (100, true),
            (101, false),
            (u32::MAX, false),
        ] {
            let stream = [&preface()[..], &length.to_le_bytes()].concat();
            assert_eq!(after(&stream).is_ok(), is_fine, "{length}");
        }
        let long = FeedMessage::Refused {
            id: 0,
            why: "\u{e9}".repeat(TEXT_MAX),
        };
        let mut frame = Vec::new();
        long.put(&mut frame);
        assert!(frame.len() < TEXT_MAX + 16);
        assert!(FeedMessage::parse(&frame[LENGTH_LEN..]).is_ok());
    }
}
