//! `kymo feed --stdio`: gives another machine the recording of this one, over standard input and output, such as ssh's. It only reads.
//! The format: docs/formats/feed.md.

mod records;

use std::io::{self, Read, Write};
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Error, Result, bail};
use clap::Args;
use kymo_query::archive::{Archive, ROLLUPS_FOLDER, own};
use kymo_query::feed;
use kymo_recording::reader::{Kinds, Recording, TimeRange};
use kymo_sys::clock::{Clock as _, RealClock};
use kymo_sys::disk::RealDisk;
use kymo_sys::machine::{self, wait_readable};
use kymo_top::retrieve::Retrieve;
use kymo_wire::feed::{
    FeedExtent, FeedMessage, FeedRange, FeedRequest, Frames, GOES_ON, Hello, POINTS_MAX,
    REQUEST_MAX, preface,
};

use self::records::{Come, RecordedRecords};
use super::data;
use super::serve::data_folder;
use crate::process::sandbox::{self, Process};
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
/// Most bytes of an answer without records.
const ANSWER_FRAME: usize = 4 << 20;
/// Latest time of a range.
const LATEST_NS: i64 = i64::MAX / 2;
/// Most points of a line.
const LINE_MAX: usize = 4096;
/// Most bytes of records in answer to one request for a range that ends.
const ANSWER_MAX: usize = 64 << 20;

/// Folder that is listed where no other one needs to be.
const LISTED: &str = "/proc";
/// Files that scans read beside /proc: devices, names of users, the time zone.
const SCANNED: [&str; 3] = ["/sys", "/etc/passwd", "/etc/timezone"];
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
    Recording(Recording, Box<Archive>),
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
    let (place, list, read) = place(options)?;
    // A kernel without Landlock goes on: a line on stderr would stand in the host's row.
    let _files = sandbox::enter_and_list(&list, &read, &[], &[]);
    let _calls = Process::Recorder.confine();
    let mut host = Host {
        place,
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

/// Where samples come from, the folder that is listed, and the files that are read.
fn place(options: &FeedOptions) -> Result<(HostPlace, PathBuf, Vec<PathBuf>)> {
    let open = |path: PathBuf| Recording::open(Arc::new(RealDisk), &path);
    let recorded = |recording, dir: &PathBuf| {
        let archive = Box::new(data::archive(dir));
        HostPlace::Recording(recording, archive)
    };
    if let Some(dir) = &options.data {
        let recording = match dir.is_dir() {
            true => open(own(dir)).or_else(|_| open(dir.clone())),
            // A recording in one file.
            false => open(dir.clone()),
        };
        let place = recorded(recording?, dir);
        return Ok((place, LISTED.into(), vec![dir.clone()]));
    }
    let is_fresh = |recording: &Recording| records::extent(recording).is_ok_and(is_fresh);
    if let Ok(dir) = data_folder(None)
        && let Ok(recording) = open(own(&dir))
        && is_fresh(&recording)
    {
        let mut read = recording.folders()?;
        read.push(dir.join(ROLLUPS_FOLDER));
        return Ok((recorded(recording, &dir), dir, read));
    }
    let scanned = SCANNED.map(PathBuf::from).to_vec();
    Ok((HostPlace::Unrecorded, LISTED.into(), scanned))
}

/// A range within the times that there are.
fn between(from_ns: i64, thru_ns: i64) -> TimeRange {
    let from_ns = from_ns.clamp(0, LATEST_NS);
    TimeRange {
        from_ns,
        thru_ns: thru_ns.clamp(from_ns, LATEST_NS),
    }
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
            HostPlace::Recording(recording, _) => records::extent(recording)?,
            HostPlace::Unrecorded => (0, 0),
        };
        let recorded = match &self.place {
            HostPlace::Recording(recording, _) => recording.host().map(String::from),
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
            let request = FeedRequest::parse(frame)?;
            let (id, done) = match request {
                FeedRequest::Clock { id } => {
                    let now_ns = RealClock.now().real_ns;
                    (id, self.say(&FeedMessage::Clock { id, now_ns }))
                }
                FeedRequest::Read(read) => (read.id, self.read(read)),
                FeedRequest::Extent { id }
                | FeedRequest::Series { id, .. }
                | FeedRequest::Why { id, .. }
                | FeedRequest::Programs { id, .. } => {
                    let answer = self.answer(&request);
                    let say = |bytes: Vec<u8>| self.say(&FeedMessage::Answer { id, bytes: &bytes });
                    (id, answer.and_then(say))
                }
            };
            if let Err(error) = done {
                // A reader that is gone ends this as well.
                let why = format!("{error:#}");
                self.say(&FeedMessage::Refused { id, why })?;
            }
        }
        Ok(())
    }

    /// The answer to a request for anything but samples.
    fn answer(&self, request: &FeedRequest) -> Result<Vec<u8>> {
        let HostPlace::Recording(_, archive) = &self.place else {
            bail!("nothing is recorded there");
        };
        let mut out = Vec::new();
        match request {
            FeedRequest::Clock { .. } | FeedRequest::Read(_) => {}
            FeedRequest::Extent { .. } => {
                archive.forget_extent();
                let extent = archive.extent().map_err(Error::msg)?;
                let answer = FeedExtent {
                    times_ns: [
                        extent.from_ns,
                        extent.thru_ns,
                        extent.interval_ns,
                        extent.scan_interval_ns,
                    ],
                    facts: extent.context.text(),
                };
                answer.put(&mut out);
            }
            FeedRequest::Series {
                from_ns,
                thru_ns,
                points,
                fields,
                ..
            } => {
                let fields: Vec<&str> = fields.split_whitespace().collect();
                let points = usize::try_from(*points).unwrap_or(usize::MAX);
                let range = between(*from_ns, *thru_ns);
                let series = Retrieve::series(&**archive, &fields, range, points.min(LINE_MAX));
                let series = series.map_err(Error::msg)?;
                if series.points.iter().map(Vec::len).sum::<usize>() > POINTS_MAX {
                    bail!("cannot send so much: ask for less");
                }
                feed::sent(series).put(&mut out);
            }
            FeedRequest::Why {
                from_ns, thru_ns, ..
            } => {
                let range = between(*from_ns, *thru_ns);
                out = archive.why(range).map_err(Error::msg)?.into_bytes();
            }
            FeedRequest::Programs { at_ns, .. } => {
                let at_ns = (*at_ns).clamp(0, LATEST_NS);
                let programs = Retrieve::programs(&**archive, at_ns);
                out = programs.map_err(Error::msg)?.into_bytes();
            }
        }
        if out.len() > ANSWER_FRAME {
            bail!("cannot send so much: ask for less");
        }
        Ok(out)
    }

    fn read(&mut self, read: FeedRange) -> Result<()> {
        let goes_on = read.thru_ns == GOES_ON;
        if let Follow::Scans(_, scans) = std::mem::replace(&mut self.follow, Follow::Nothing) {
            scans.end();
        }
        let bit = |kind: u8| read.kinds[usize::from(kind >> 3)] & 1 << (kind & 7) != 0;
        let kinds: Kinds = (0..=u8::MAX).filter(|&kind| bit(kind)).collect();
        let HostPlace::Recording(recording, _) = &self.place else {
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
