//! The feed of another machine as a source: records that `kymo feed` sends, decoded as a recording would be. The stream comes from a
//! program such as ssh; who gives it sees to deadlines.

use std::io::{ErrorKind, Read, Write};
use std::sync::Arc;

use kymo_base::context::Context;
use kymo_base::field::Unit;
use kymo_base::track::Tracks;
use kymo_recording::reader::{Kinds, TimeRange};
use kymo_recording::record::{self, Head, RecordType};
use kymo_sys::clock::Clock;
use kymo_wire::feed::{
    FeedExtent, FeedMessage, FeedRange, FeedRequest, FeedSeries, Frames, Hello, preface,
};

use crate::archive::Extent;
use crate::live::Decoder;
use crate::marks::{Kind, Mark, Origin};
use crate::series::{Grid, Point, Series};
use crate::sheet::Line;
use crate::source::{Source, Step};

/// Bytes that are read at once.
const PIECE: usize = 64 << 10;
/// Most bytes of samples that wait for their turn while another answer is awaited.
const WAITING_MAX: usize = 32 << 20;
/// Longest text of an event that is sent.
const MARK_MAX: usize = 200;
/// Latest time that a host may have: there is room for a length of time beyond it.
const LATEST_NS: i64 = i64::MAX / 2;
/// Time between two measurements of the clock.
const CLOCK_EACH_NS: u64 = 10_000_000_000;

/// The clock of another machine beside this one's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockOffset {
    /// Nanoseconds by which it is ahead.
    pub ahead_ns: i64,
    /// Possible error: half of the way there and back.
    pub doubt_ns: i64,
}

/// A feed that is read.
pub struct Feed {
    input: Box<dyn Read + Send>,
    output: Box<dyn Write + Send>,
    clock: Arc<dyn Clock>,
    frames: Frames,
    piece: Vec<u8>,
    hello: Hello,
    /// The last request.
    id: u32,
    /// The request for samples that is answered, and its begin: samples before it are for the rates of the first one.
    read_id: u32,
    from_ns: i64,
    records: Vec<u8>,
    at: usize,
    seq: u64,
    decoder: Decoder,
    context: Context,
    /// Number and monotonic time of the last question for the clock, while it has no answer.
    asked: Option<(u32, u64)>,
    asked_ns: u64,
    offset: Option<ClockOffset>,
    is_woken: bool,
    is_broken: bool,
}

/// Result of a frame.
enum Came {
    Records,
    End,
    Answer(Vec<u8>),
    Other,
}

impl Feed {
    /// Begins a feed. Frames have at most `frame_max` bytes. Waits for the host's hello, and asks for its clock.
    pub fn open(
        input: Box<dyn Read + Send>,
        output: Box<dyn Write + Send>,
        clock: Arc<dyn Clock>,
        frame_max: usize,
    ) -> Result<Feed, String> {
        let mut feed = Feed {
            input,
            output,
            clock,
            frames: Frames::new(frame_max),
            piece: vec![0; PIECE],
            hello: Hello::default(),
            id: 0,
            read_id: 0,
            from_ns: 0,
            records: Vec::new(),
            at: 0,
            seq: 0,
            decoder: Decoder::default(),
            context: Context::default(),
            asked: None,
            asked_ns: 0,
            offset: None,
            is_woken: false,
            is_broken: false,
        };
        feed.put(&preface())?;
        let frame = feed.frame()?;
        match FeedMessage::parse(&frame).map_err(|error| error.to_string())? {
            FeedMessage::Hello(hello) => feed.hello = hello,
            FeedMessage::Refused { why, .. } => return Err(why),
            FeedMessage::Clock { .. }
            | FeedMessage::Records { .. }
            | FeedMessage::End { .. }
            | FeedMessage::Answer { .. } => {
                return Err("it does not say which machine it is".into());
            }
        }
        feed.ask_clock()?;
        Ok(feed)
    }

    /// Facts of the host.
    pub fn hello(&self) -> &Hello {
        &self.hello
    }

    /// The host's clock, once it was measured.
    pub fn offset(&self) -> Option<ClockOffset> {
        self.offset
    }

    /// True if the last step failed since the input would not be waited for any longer: its reads said `WouldBlock`.
    pub fn take_woken(&mut self) -> bool {
        std::mem::take(&mut self.is_woken)
    }

    /// True once the stream cannot be read on; else an error was the host's answer.
    pub fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Asks for samples, in place of those that were asked for before.
    pub fn read(&mut self, range: TimeRange, kinds: Kinds) -> Result<(), String> {
        (self.id, self.from_ns) = (self.id + 1, range.from_ns);
        self.read_id = self.id;
        self.records.clear();
        self.at = 0;
        self.decoder = Decoder::default();
        let mut bits = [0; 32];
        for kind in (0..=u8::MAX).filter(|&kind| kinds.contains(kind)) {
            bits[usize::from(kind >> 3)] |= 1 << (kind & 7);
        }
        self.ask(&FeedRequest::Read(FeedRange {
            id: self.id,
            from_ns: range.from_ns,
            thru_ns: range.thru_ns,
            kinds: bits,
        }))
    }

    /// Wants no more of the samples that were asked for.
    pub fn let_go(&mut self) {
        (self.read_id, self.at) = (0, 0);
        self.records.clear();
    }

    /// Asks how far the recording reaches.
    pub fn extent(&mut self) -> Result<Extent, String> {
        let bytes = self.answer(|id| FeedRequest::Extent { id })?;
        let parsed = FeedExtent::parse(&bytes).map_err(|error| error.to_string());
        let FeedExtent { times_ns, facts } = self.noting(parsed)?;
        let [from_ns, thru_ns, interval_ns, scan_interval_ns] =
            times_ns.map(|ns| ns.clamp(0, LATEST_NS));
        Ok(Extent {
            from_ns,
            thru_ns,
            interval_ns,
            scan_interval_ns,
            context: Context::parse(facts.as_bytes()),
        })
    }

    /// Asks for fields over a range. The lines have greatest values and means alone.
    pub fn series(
        &mut self,
        fields: &[&str],
        range: TimeRange,
        points: usize,
    ) -> Result<Series, String> {
        let bytes = self.answer(|id| FeedRequest::Series {
            id,
            from_ns: range.from_ns,
            thru_ns: range.thru_ns,
            points: u32::try_from(points).unwrap_or(u32::MAX),
            fields: fields.join(" "),
        })?;
        let parsed = FeedSeries::parse(&bytes).map_err(|error| error.to_string());
        self.noting(parsed.and_then(received))
    }

    /// Asks for the unusual values of a range.
    pub fn why(&mut self, range: TimeRange) -> Result<String, String> {
        let bytes = self.answer(|id| FeedRequest::Why {
            id,
            from_ns: range.from_ns,
            thru_ns: range.thru_ns,
        })?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Asks for the programs at a moment.
    pub fn programs(&mut self, at_ns: i64) -> Result<String, String> {
        let bytes = self.answer(|id| FeedRequest::Programs { id, at_ns })?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The answer to a request. Samples that come meanwhile wait for their turn.
    fn answer(&mut self, request: impl FnOnce(u32) -> FeedRequest) -> Result<Vec<u8>, String> {
        self.id += 1;
        self.ask(&request(self.id))?;
        let mut was_woken = false;
        let answer = loop {
            match self.receive() {
                Ok(Came::Answer(bytes)) => break Ok(bytes),
                Ok(Came::Records | Came::End | Came::Other) => {}
                Err(_) if self.take_woken() => was_woken = true,
                Err(why) => break Err(why),
            }
        };
        self.is_woken = was_woken;
        answer
    }

    fn ask(&mut self, request: &FeedRequest) -> Result<(), String> {
        let mut frame = Vec::new();
        request.put(&mut frame);
        self.put(&frame)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), String> {
        let written = self.output.write_all(bytes);
        let written = written.and_then(|()| self.output.flush());
        self.noting(written.map_err(|_| "it has ended".into()))
    }

    /// Takes notice of an error after which the stream cannot be read on.
    fn noting<T>(&mut self, done: Result<T, String>) -> Result<T, String> {
        self.is_broken |= done.is_err();
        done
    }

    fn ask_clock(&mut self) -> Result<(), String> {
        let now_ns = self.clock.mono_ns();
        let id = self.asked.map_or(1, |(id, _)| id.wrapping_add(1));
        self.asked = Some((id, now_ns));
        self.asked_ns = now_ns;
        self.ask(&FeedRequest::Clock { id })
    }

    /// The next frame. The copy is what a frame costs; those of samples are few and small.
    fn frame(&mut self) -> Result<Vec<u8>, String> {
        loop {
            let taken = self.frames.take().map(|frame| frame.map(<[u8]>::to_vec));
            if let Some(frame) = self.noting(taken.map_err(|error| error.to_string()))? {
                return Ok(frame);
            }
            match self.input.read(&mut self.piece) {
                Ok(0) => return self.noting(Err("it has ended".into())),
                Ok(count) => self.frames.push(&self.piece[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.is_woken = true;
                    return Err(error.to_string());
                }
                Err(error) => return self.noting(Err(error.to_string())),
            }
        }
    }

    fn receive(&mut self) -> Result<Came, String> {
        let frame = self.frame()?;
        let parsed = FeedMessage::parse(&frame).map_err(|error| error.to_string());
        match self.noting(parsed)? {
            FeedMessage::Records { id, bytes } if id == self.read_id => {
                self.records.drain(..self.at);
                self.at = 0;
                if self.records.len() + bytes.len() > WAITING_MAX {
                    return self.noting(Err("it sends samples in place of an answer".into()));
                }
                self.records.extend_from_slice(bytes);
                Ok(Came::Records)
            }
            FeedMessage::End { id } if id == self.read_id => Ok(Came::End),
            FeedMessage::Answer { id, bytes } if id == self.id => Ok(Came::Answer(bytes.to_vec())),
            FeedMessage::Refused { id: 0, why } => self.noting(Err(why)),
            FeedMessage::Refused { id, why } if id == self.id || id == self.read_id => Err(why),
            FeedMessage::Clock { id, now_ns } => {
                self.measure(id, now_ns);
                Ok(Came::Other)
            }
            // Answers to requests that others have replaced.
            FeedMessage::Records { .. }
            | FeedMessage::End { .. }
            | FeedMessage::Answer { .. }
            | FeedMessage::Refused { .. } => Ok(Came::Other),
            FeedMessage::Hello(_) => self.noting(Err("it says twice which machine it is".into())),
        }
    }

    fn measure(&mut self, id: u32, there_ns: i64) {
        let Some((_, begun_ns)) = self.asked.filter(|(asked, _)| *asked == id) else {
            return;
        };
        let now = self.clock.now();
        let way_ns = i64::try_from(now.mono_ns.saturating_sub(begun_ns)).unwrap_or(i64::MAX);
        let middle_ns = now.real_ns.saturating_sub(way_ns / 2);
        self.offset = Some(ClockOffset {
            ahead_ns: there_ns.saturating_sub(middle_ns),
            doubt_ns: way_ns / 2,
        });
    }

    /// The step of the next record, if there is one that makes a step.
    fn step(&mut self) -> Result<Option<Step>, String> {
        while self.at < self.records.len() {
            let record = record::parse_unsealed(&self.records[self.at..]).map_err(|why| {
                self.is_broken = true;
                format!("it sends a sample that cannot be read: {why}")
            })?;
            self.at += record.length;
            self.seq += 1;
            if record.head.record_type == RecordType::Context {
                self.context = Context::parse(record.text().as_bytes());
                continue;
            }
            let head = Head {
                seq: self.seq,
                ..record.head
            };
            if !(0..=LATEST_NS).contains(&head.stamp.real_ns) {
                return self.noting(Err("it sends a sample of no time".into()));
            }
            let is_early = head.stamp.real_ns < self.from_ns;
            let step = match head.record_type {
                RecordType::Sample => {
                    let sections = record.sections();
                    let sections = sections.map(|section| (section.kind, section.bytes));
                    self.decoder.sample(head, sections, is_early)
                }
                RecordType::Event | RecordType::Context => self.decoder.step(head, &record),
            };
            if step.is_some() {
                return Ok(step);
            }
        }
        Ok(None)
    }
}

impl Source for Feed {
    fn next(&mut self) -> Result<Option<Step>, String> {
        if let Some(step) = self.decoder.pending() {
            return Ok(Some(step));
        }
        loop {
            if let Some(step) = self.step()? {
                return Ok(Some(step));
            }
            if self.clock.mono_ns().saturating_sub(self.asked_ns) > CLOCK_EACH_NS {
                self.ask_clock()?;
            }
            match self.receive()? {
                Came::End => return Ok(None),
                Came::Records | Came::Answer(_) | Came::Other => {}
            }
        }
    }

    fn tracks(&self) -> &Tracks {
        &self.decoder.tracks
    }

    fn context(&self) -> &Context {
        &self.context
    }
}

/// The answer that says what a series has.
pub fn sent(mut series: Series) -> FeedSeries {
    series.sort();
    let value = |point: &Point| match point.seconds > 0.0 {
        true => [point.max, point.mean()],
        false => [f64::NAN; 2],
    };
    let lines = series.lines.into_iter().zip(&series.points);
    let marks = series.marks.into_iter().map(|mark| {
        let kind = Kind::ALL.iter().position(|kind| *kind == mark.kind);
        let kind = kind.and_then(|at| u8::try_from(at).ok());
        let mut text = mark.text;
        text.truncate(text.floor_char_boundary(MARK_MAX));
        (mark.from_ns, mark.until_ns, kind.unwrap_or(u8::MAX), text)
    });
    FeedSeries {
        from_ns: series.grid.from_ns,
        step_ns: series.grid.step_ns,
        lines: lines
            .map(|(line, points)| (line.id, points.iter().map(value).collect()))
            .collect(),
        marks: marks.collect(),
    }
}

/// The series of an answer. A host's values may be any.
fn received(sent: FeedSeries) -> Result<Series, String> {
    let count = sent.lines.first().map_or(0, |(_, points)| points.len());
    let grid = Grid {
        from_ns: sent.from_ns,
        step_ns: sent.step_ns,
        count,
    };
    let length_ns = i64::try_from(count).ok();
    let length_ns = length_ns.and_then(|count| count.checked_mul(sent.step_ns));
    let is_time = |ns: i64| (0..=LATEST_NS).contains(&ns);
    if !is_time(sent.from_ns) || sent.step_ns <= 0 || !length_ns.is_some_and(is_time) {
        return Err("it sends points of no time".into());
    }
    let mut series = Series::new(grid, sent.lines.len());
    for (pick, (id, points)) in sent.lines.into_iter().enumerate() {
        let point = |[max, mean]: &[f64; 2]| match max.is_nan() || mean.is_nan() {
            true => Point::NONE,
            false => Point {
                min: mean.min(*max),
                max: mean.max(*max),
                sum: *mean,
                seconds: 1.0,
            },
        };
        series.points.push(points.iter().map(point).collect());
        series.lines.push(Line {
            id,
            unit: Unit::Count,
            help: "",
            pick,
        });
    }
    let mark = |(from_ns, until_ns, kind, text): (i64, i64, u8, String)| Mark {
        from_ns,
        until_ns,
        kind: Kind::ALL
            .get(usize::from(kind))
            .copied()
            .unwrap_or(Kind::Note),
        text,
        origin: Origin::Machine,
    };
    series.marks = sent.marks.into_iter().map(mark).collect();
    Ok(series)
}

/// Reads any bytes as the records of a host.
#[cfg(feature = "testing")]
pub fn fuzz_feed_source(input: &[u8]) {
    use kymo_sys::clock::RealClock;
    if let Ok(sent) = FeedSeries::parse(input) {
        let _refused = received(sent);
    }
    let mut stream = preface().to_vec();
    FeedMessage::Hello(Hello::default()).put(&mut stream);
    // The second part begins wherever a record may end.
    let middle = usize::from(input.first().copied().unwrap_or(0)).min(input.len());
    for bytes in [&input[..middle], &input[middle..]] {
        FeedMessage::Records { id: 1, bytes }.put(&mut stream);
    }
    let input = Box::new(std::io::Cursor::new(stream));
    let feed = Feed::open(
        input,
        Box::new(std::io::sink()),
        Arc::new(RealClock),
        1 << 20,
    );
    let Ok(mut feed) = feed else { return };
    let asked = feed.read(TimeRange::ALL, Kinds::ALL);
    assert!(asked.is_ok(), "BUG: a sink takes everything");
    while let Ok(Some(_)) = feed.next() {}
}
