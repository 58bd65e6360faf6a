//! The feed of another machine as a source: records that `kymo feed` sends, decoded as a recording would be. The stream comes from a
//! program such as ssh; who gives it sees to deadlines.

use std::io::{Read, Write};
use std::sync::Arc;

use kymo_base::context::Context;
use kymo_base::track::Tracks;
use kymo_recording::reader::{Kinds, TimeRange};
use kymo_recording::record::{self, Head, RecordType};
use kymo_sys::clock::Clock;
use kymo_wire::feed::{FeedMessage, FeedRange, FeedRequest, Frames, Hello, preface};

use crate::live::Decoder;
use crate::source::{Source, Step};

/// Bytes that are read at once.
const PIECE: usize = 64 << 10;
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
    /// The request that is answered, and its begin: samples before it are for the rates of the first one.
    id: u32,
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
}

/// Result of a frame.
enum Came {
    Records,
    End,
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
            from_ns: 0,
            records: Vec::new(),
            at: 0,
            seq: 0,
            decoder: Decoder::default(),
            context: Context::default(),
            asked: None,
            asked_ns: 0,
            offset: None,
        };
        feed.put(&preface())?;
        let frame = feed.frame()?;
        match FeedMessage::parse(&frame).map_err(|error| error.to_string())? {
            FeedMessage::Hello(hello) => feed.hello = hello,
            FeedMessage::Refused { why, .. } => return Err(why),
            FeedMessage::Clock { .. } | FeedMessage::Records { .. } | FeedMessage::End { .. } => {
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

    /// Asks for samples, in place of those that were asked for before.
    pub fn read(&mut self, range: TimeRange, kinds: Kinds) -> Result<(), String> {
        (self.id, self.from_ns) = (self.id + 1, range.from_ns);
        self.records.clear();
        self.at = 0;
        self.decoder = Decoder::default();
        let mut bits = [0; 32];
        for kind in (0..=u8::MAX).filter(|&kind| kinds.contains(kind)) {
            bits[usize::from(kind >> 3)] |= 1 << (kind & 7);
        }
        self.ask(FeedRequest::Read(FeedRange {
            id: self.id,
            from_ns: range.from_ns,
            thru_ns: range.thru_ns,
            kinds: bits,
        }))
    }

    fn ask(&mut self, request: FeedRequest) -> Result<(), String> {
        let mut frame = Vec::new();
        request.put(&mut frame);
        self.put(&frame)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), String> {
        let written = self.output.write_all(bytes);
        let written = written.and_then(|()| self.output.flush());
        written.map_err(|_| "it has ended".into())
    }

    fn ask_clock(&mut self) -> Result<(), String> {
        let now_ns = self.clock.mono_ns();
        let id = self.asked.map_or(1, |(id, _)| id.wrapping_add(1));
        self.asked = Some((id, now_ns));
        self.asked_ns = now_ns;
        self.ask(FeedRequest::Clock { id })
    }

    /// The next frame. The copy is what a frame costs; those of samples are few and small.
    fn frame(&mut self) -> Result<Vec<u8>, String> {
        loop {
            if let Some(frame) = self.frames.take().map_err(|error| error.to_string())? {
                return Ok(frame.to_vec());
            }
            match self.input.read(&mut self.piece) {
                Ok(0) => return Err("it has ended".into()),
                Ok(count) => self.frames.push(&self.piece[..count]),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    fn receive(&mut self) -> Result<Came, String> {
        let frame = self.frame()?;
        match FeedMessage::parse(&frame).map_err(|error| error.to_string())? {
            FeedMessage::Records { id, bytes } if id == self.id => {
                self.records.clear();
                self.records.extend_from_slice(bytes);
                self.at = 0;
                Ok(Came::Records)
            }
            FeedMessage::End { id } if id == self.id => Ok(Came::End),
            FeedMessage::Refused { id, why } if id == self.id => Err(why),
            FeedMessage::Clock { id, now_ns } => {
                self.measure(id, now_ns);
                Ok(Came::Other)
            }
            // Answers to requests that others have replaced.
            FeedMessage::Records { .. } | FeedMessage::End { .. } | FeedMessage::Refused { .. } => {
                Ok(Came::Other)
            }
            FeedMessage::Hello(_) => Err("it says twice which machine it is".into()),
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
            let record = record::parse_unsealed(&self.records[self.at..])
                .map_err(|why| format!("it sends a sample that cannot be read: {why}"))?;
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
                Came::Records | Came::Other => {}
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

/// Reads any bytes as the records of a host.
#[cfg(feature = "testing")]
pub fn fuzz_feed_source(input: &[u8]) {
    use kymo_sys::clock::RealClock;
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
