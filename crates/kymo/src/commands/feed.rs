//! `kymo feed --stdio`: gives another machine the recording of this one, over standard input and output, such as ssh's. It only reads.
//! The format: docs/formats/feed.md.

mod records;

use std::io::{self, Read, Write};
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::Args;
use kymo_query::archive::own;
use kymo_recording::reader::{Kinds, Recording, TimeRange};
use kymo_sys::clock::{Clock as _, RealClock};
use kymo_sys::disk::RealDisk;
use kymo_sys::machine::{self, wait_readable};
use kymo_wire::feed::{
    FeedMessage, FeedRange, FeedRequest, Frames, GOES_ON, Hello, REQUEST_MAX, preface,
};

use self::records::{Come, RecordedRecords};
use super::serve::data_folder;
use crate::recorder::scans::LiveScans;

/// Time after a beat at which its sample can be read.
const AFTER_BEAT_MS: i64 = 150;
/// Time between two looks for samples.
const BEAT_MS: i64 = 1000;
/// Longest wait for requests where nothing else is to be done.
const LONG: Duration = Duration::from_secs(3600);
/// Without a sample for this long the time is said: the other side sees that this one lives.
const QUIET_MAX: Duration = Duration::from_secs(5);
/// Bytes of records in a frame, about.
const FRAME: usize = 128 << 10;
/// Most bytes of records in answer to one request for a range that ends.
const ANSWER_MAX: usize = 64 << 20;

/// Bytes that are read at once: with less, the buffer of standard input would keep some that a wait for more does not see.
const PIECE: usize = 64 << 10;

/// Options of `kymo feed`.
#[derive(Args, Clone, Debug)]
pub(crate) struct FeedOptions {
    /// Over standard input and output
    #[arg(long, required = true)]
    stdio: bool,
    /// Recording, a folder or a file, or folder of a kymo serve; default: that of the kymo serve that runs here, else scans of its own
    #[arg(long, value_name = "PATH")]
    data: Option<PathBuf>,
}

/// Where samples come from.
enum HostPlace {
    Recording(Recording),
    /// No recorder writes here.
    Unrecorded,
}

/// A request that goes on.
enum Follow {
    Nothing,
    Recorded(u32, Box<RecordedRecords>),
    Scans(u32, LiveScans),
}

struct Host {
    place: HostPlace,
    follow: Follow,
    out: io::Stdout,
    frames: Vec<u8>,
    /// When something was said last.
    said: Instant,
}

/// Runs the command.
pub(crate) fn run(options: &FeedOptions) -> Result<ExitCode> {
    let mut host = Host {
        place: place(options)?,
        follow: Follow::Nothing,
        out: io::stdout(),
        frames: preface().to_vec(),
        said: Instant::now(),
    };
    let hello = host.hello()?;
    host.say(&FeedMessage::Hello(hello))?;
    let (mut requests, mut piece) = (Frames::new(REQUEST_MAX), vec![0; PIECE]);
    let input = io::stdin();
    loop {
        let wait = match host.follow {
            Follow::Nothing => LONG,
            Follow::Recorded(..) | Follow::Scans(..) => until_beat(),
        };
        if wait_readable(&[input.as_fd()], wait) == [true] {
            let count = input.lock().read(&mut piece)?;
            if count == 0 {
                return Ok(ExitCode::SUCCESS);
            }
            requests.push(&piece[..count]);
            if let Err(error) = host.answer_all(&mut requests) {
                // The other side is to know why; it may be gone.
                let why = format!("{error:#}");
                let _ = host.say(&FeedMessage::Refused { id: 0, why });
                return Err(error);
            }
        } else {
            host.go_on()?;
        }
    }
}

fn place(options: &FeedOptions) -> Result<HostPlace> {
    let open = |path: PathBuf| Recording::open(Arc::new(RealDisk), &path);
    if let Some(dir) = &options.data {
        let recording = match dir.is_dir() {
            true => open(own(dir)).or_else(|_| open(dir.clone())),
            // A recording in one file.
            false => open(dir.clone()),
        };
        return Ok(HostPlace::Recording(recording?));
    }
    let served = data_folder(None).ok().and_then(|dir| open(own(&dir)).ok());
    let is_fresh = |recording: &Recording| records::extent(recording).is_ok_and(is_fresh);
    Ok(match served.filter(is_fresh) {
        Some(recording) => HostPlace::Recording(recording),
        None => HostPlace::Unrecorded,
    })
}

/// True if the last sample is of this minute or the one before: somebody records now.
fn is_fresh((_, last_ns): (i64, i64)) -> bool {
    const MINUTES_NS: i64 = 120_000_000_000;
    RealClock.now().real_ns.saturating_sub(last_ns) < MINUTES_NS
}

/// Time until the sample of the next second can be read.
fn until_beat() -> Duration {
    let now_ms = RealClock.now().real_ns.div_euclid(1_000_000);
    let passed_ms = (now_ms - AFTER_BEAT_MS).rem_euclid(BEAT_MS);
    Duration::from_millis((BEAT_MS - passed_ms).unsigned_abs())
}

impl Host {
    fn hello(&self) -> Result<Hello> {
        let (first_ns, last_ns) = match &self.place {
            HostPlace::Recording(recording) => records::extent(recording)?,
            HostPlace::Unrecorded => (0, 0),
        };
        let recorded = match &self.place {
            HostPlace::Recording(recording) => recording.host().map(String::from),
            HostPlace::Unrecorded => None,
        };
        Ok(Hello {
            host: recorded.unwrap_or_else(machine::host),
            program: format!("kymo {}", env!("CARGO_PKG_VERSION")),
            now_ns: RealClock.now().real_ns,
            first_ns,
            last_ns,
        })
    }

    fn say(&mut self, message: &FeedMessage) -> Result<()> {
        message.put(&mut self.frames);
        self.flush()
    }

    fn flush(&mut self) -> Result<()> {
        self.out.write_all(&self.frames)?;
        self.out.flush()?;
        self.frames.clear();
        self.said = Instant::now();
        Ok(())
    }

    fn answer_all(&mut self, requests: &mut Frames) -> Result<()> {
        while let Some(frame) = requests.take()? {
            match FeedRequest::parse(frame)? {
                FeedRequest::Clock { id } => {
                    let now_ns = RealClock.now().real_ns;
                    self.say(&FeedMessage::Clock { id, now_ns })?;
                }
                FeedRequest::Read(read) => {
                    if let Err(error) = self.read(read) {
                        // A reader that is gone ends this as well.
                        let why = format!("{error:#}");
                        self.say(&FeedMessage::Refused { id: read.id, why })?;
                    }
                }
            }
        }
        Ok(())
    }

    fn read(&mut self, read: FeedRange) -> Result<()> {
        let goes_on = read.thru_ns == GOES_ON;
        if goes_on
            && let Follow::Scans(_, scans) = std::mem::replace(&mut self.follow, Follow::Nothing)
        {
            scans.end();
        }
        let bit = |kind: u8| read.kinds[usize::from(kind >> 3)] & 1 << (kind & 7) != 0;
        let kinds: Kinds = (0..=u8::MAX).filter(|&kind| bit(kind)).collect();
        let HostPlace::Recording(recording) = &self.place else {
            return self.scan(read.id, goes_on, kinds);
        };
        let range = TimeRange {
            from_ns: read.from_ns,
            thru_ns: read.thru_ns,
        };
        let mut records = RecordedRecords::new(recording, range, kinds);
        let most = if goes_on { usize::MAX } else { ANSWER_MAX };
        self.send(read.id, &mut records, most)?;
        match goes_on {
            true => self.follow = Follow::Recorded(read.id, Box::new(records)),
            false => self.say(&FeedMessage::End { id: read.id })?,
        }
        Ok(())
    }

    /// LiveScans this machine; there is nothing of the time before.
    fn scan(&mut self, id: u32, goes_on: bool, kinds: Kinds) -> Result<()> {
        if !goes_on {
            return self.say(&FeedMessage::End { id });
        }
        let Some((scans, context)) = LiveScans::start(kinds)? else {
            bail!("cannot scan: this machine has no such sources");
        };
        let bytes = records::context(&context);
        self.say(&FeedMessage::Records { id, bytes: &bytes })?;
        self.follow = Follow::Scans(id, scans);
        Ok(())
    }

    /// Sends the records since the last call.
    fn send(&mut self, id: u32, records: &mut RecordedRecords, most: usize) -> Result<()> {
        let (mut batch, mut sent) = (Vec::new(), 0);
        loop {
            let come = records.take(&mut batch)?;
            if batch.len() > FRAME || (come == Come::All && !batch.is_empty()) {
                sent += batch.len();
                if sent > most {
                    bail!(
                        "cannot send more than {} MiB: ask for less",
                        ANSWER_MAX >> 20
                    );
                }
                self.say(&FeedMessage::Records { id, bytes: &batch })?;
                batch.clear();
            }
            if come == Come::All {
                return Ok(());
            }
        }
    }

    /// Sends the samples that have come.
    fn go_on(&mut self) -> Result<()> {
        match std::mem::replace(&mut self.follow, Follow::Nothing) {
            Follow::Nothing => {}
            Follow::Recorded(id, mut records) => {
                self.send(id, &mut records, usize::MAX)?;
                self.follow = Follow::Recorded(id, records);
            }
            Follow::Scans(id, mut scans) => {
                let mut batch = scans
                    .new_facts()
                    .as_ref()
                    .map(records::context)
                    .unwrap_or_default();
                batch.extend_from_slice(scans.take(Duration::ZERO)?);
                if !batch.is_empty() {
                    self.say(&FeedMessage::Records { id, bytes: &batch })?;
                }
                self.follow = Follow::Scans(id, scans);
            }
        }
        match self.said.elapsed() > QUIET_MAX {
            true => self.say(&FeedMessage::Clock {
                id: 0,
                now_ns: RealClock.now().real_ns,
            }),
            false => Ok(()),
        }
    }
}
