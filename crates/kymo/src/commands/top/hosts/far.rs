//! A host that is shown alone: its recording, asked over a feed, and its samples as they come, over another one. Each question has a
//! limit of time; a feed that broke is begun again with the next question.

use std::io::PipeWriter;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Result;
use kymo_base::context::Context;
use kymo_base::track::Tracks;
use kymo_query::archive::Extent;
use kymo_query::feed::Feed;
use kymo_query::series::Series;
use kymo_query::source::{Source, Step};
use kymo_recording::reader::{Kinds, TimeRange};
use kymo_top::retrieve::Retrieve;

use super::super::live::{Sampled, SharedLive};
use super::call::{Call, Stop, lock};
use crate::recorder::session::spawn;

/// Time for an answer.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// Longest frame.
const FRAME_MAX: usize = 8 << 20;
/// Pause before a host is tried again.
const PAUSE: Duration = Duration::from_secs(5);

/// The recording of a host.
pub(super) struct FarArchive(Arc<Line>);

/// The feed of the recording, for one question at a time.
struct Line {
    host: String,
    stop: Arc<Stop>,
    state: Mutex<LineState>,
    free: Condvar,
}

/// The feed, if there is one, and its use.
#[derive(Default)]
struct LineState {
    call: Option<Call>,
    is_busy: bool,
}

impl Line {
    /// The feed, once it is free.
    fn take(&self) -> Result<Call, String> {
        let mut state = lock(&self.state);
        while state.is_busy {
            state = self
                .free
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        state.is_busy = true;
        let known = state.call.take();
        drop(state);
        let call = match known {
            Some(call) => Ok(call),
            None => Call::dial(&self.host, &self.stop, FRAME_MAX),
        };
        match call {
            Ok(call) => {
                call.within(Some(ANSWER_MAX));
                Ok(call)
            }
            Err(why) => {
                self.give_back(None);
                Err(why)
            }
        }
    }

    /// Ends the use of the feed; one that broke is let go.
    fn give_back(&self, call: Option<Call>) {
        let mut call = call.filter(|call| !call.feed.is_broken());
        if let Some(call) = &mut call {
            call.feed.let_go();
        }
        *lock(&self.state) = LineState {
            call,
            is_busy: false,
        };
        self.free.notify_one();
    }

    /// The answer to a question.
    fn ask<T>(&self, ask: impl FnOnce(&mut Feed) -> Result<T, String>) -> Result<T, String> {
        let mut call = self.take()?;
        let answer = match ask(&mut call.feed) {
            Err(why) if call.feed.is_broken() => Err(call.fault(&why)),
            answer => answer,
        };
        self.give_back(Some(call));
        answer
    }
}

impl FarArchive {
    pub(super) fn new(host: &str, stop: &Arc<Stop>) -> FarArchive {
        FarArchive(Arc::new(Line {
            host: host.into(),
            stop: stop.clone(),
            state: Mutex::default(),
            free: Condvar::new(),
        }))
    }

    /// Nanoseconds by which the host's clock is ahead; an error where the host cannot be reached.
    pub(super) fn ahead_ns(&self) -> Result<i64, String> {
        self.0.ask(|feed| {
            let extent = feed.extent();
            match feed.is_broken() {
                true => extent.map(|_| 0),
                // Also where nothing is recorded the clock was asked before.
                false => Ok(feed.offset().map_or(0, |offset| offset.ahead_ns)),
            }
        })
    }
}

impl Retrieve for FarArchive {
    fn extent(&self) -> Result<Arc<Extent>, String> {
        self.0.ask(Feed::extent).map(Arc::new)
    }

    fn again(&self) -> Result<Option<Arc<dyn Retrieve>>, String> {
        Ok(None)
    }

    fn open(&self, range: TimeRange, kinds: Kinds) -> Result<Box<dyn Source>, String> {
        let mut call = self.0.take()?;
        match call.feed.read(range, kinds) {
            Ok(()) => Ok(Box::new(FarSource {
                call: Some(call),
                line: self.0.clone(),
            })),
            Err(why) => {
                self.0.give_back(Some(call));
                Err(why)
            }
        }
    }

    fn series(&self, fields: &[&str], range: TimeRange, points: usize) -> Result<Series, String> {
        self.0.ask(|feed| feed.series(fields, range, points))
    }

    fn why(&self, range: TimeRange) -> Result<String, String> {
        self.0.ask(|feed| feed.why(range))
    }

    fn programs(&self, at_ns: i64) -> Result<String, String> {
        self.0.ask(|feed| feed.programs(at_ns))
    }
}

/// Samples of a range, which has the feed until it is let go.
struct FarSource {
    call: Option<Call>,
    line: Arc<Line>,
}

impl FarSource {
    fn call(&self) -> &Call {
        match &self.call {
            Some(call) => call,
            None => unreachable!("BUG: only the end takes the feed"),
        }
    }
}

impl Drop for FarSource {
    fn drop(&mut self) {
        self.line.give_back(self.call.take());
    }
}

impl Source for FarSource {
    fn next(&mut self) -> Result<Option<Step>, String> {
        match &mut self.call {
            Some(call) => call.feed.next(),
            None => Ok(None),
        }
    }

    fn tracks(&self) -> &Tracks {
        self.call().feed.tracks()
    }

    fn context(&self) -> &Context {
        self.call().feed.context()
    }
}

/// Samples of a host as they come.
pub(super) struct FarSamples {
    stop: PipeWriter,
    thread: JoinHandle<()>,
}

impl FarSamples {
    pub(super) fn start(host: &str, shared: &SharedLive) -> Result<FarSamples> {
        let (reader, stop) = std::io::pipe()?;
        let (host, shared) = (host.to_string(), shared.clone());
        let thread = spawn("samples", move || {
            let stop = Arc::new(Stop(reader));
            while !stop.wait(Duration::ZERO) {
                // The host's row of the table says why it ended.
                let _why = follow(&host, &stop, &shared);
                stop.wait(PAUSE);
            }
        })?;
        Ok(FarSamples { stop, thread })
    }
}

fn follow(host: &str, stop: &Arc<Stop>, shared: &SharedLive) -> Result<(), String> {
    let mut call = Call::dial(host, stop, FRAME_MAX)?;
    call.follow(shared.kinds())?;
    shared.follow(&mut call.feed)
}

impl Sampled for FarSamples {
    /// A host sends the threads that it records.
    fn with_threads(self: Box<Self>, _: &SharedLive, _: bool) -> Result<Box<dyn Sampled>> {
        Ok(self)
    }

    fn end(self: Box<Self>) {
        // The thread sees that.
        drop(self.stop);
        let _panicked = self.thread.join();
    }
}
