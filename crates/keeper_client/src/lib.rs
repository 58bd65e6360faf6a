//! A client of the keeper's protocol (docs/formats/keeper.md): requests with their answers, by connections that threads share,
//! and the [`Tail`] of all that the keeper takes.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod connections;
mod labelled;
mod silence;
mod tail;

pub use labelled::{Partial, SamplesAhead};
#[cfg(feature = "testing")]
pub use tail::fuzz_over;
pub use tail::{Tail, TailSink};

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kymo_base::errno::strerror;
use kymo_base::labels::{LABELS, Matcher};
use kymo_sys::clock::{Clock as _, RealClock};
use kymo_wire::keeper::{
    ANSWER_MAX, Accounts, Answer, Erased, Event, EventRange, HEAD, Import, Imported, KeeperRequest,
    LabelledSeries, LabelledValues, LineAccount, MetricFamily, NAMES_MAX, PinnedPart, Programs,
    Push, PushAccount, PushResult, Range, ReceiverAccount, Rows, ScrapedTarget, SeriesInfo,
    ServerActivity, TailAccount, body_bytes,
};

use connections::{Connections, Exchange, Patience, Permit};
use silence::Silence;

/// Longest wait for a piece of an answer. A keeper that starts again opens its store first.
const PATIENCE: Duration = Duration::from_secs(15);
const REMOVING: Duration = Duration::from_secs(1800);
/// Series of an answer: many more than a keeper has room for.
const SERIES_MAX: usize = 4 << 20;

/// The keeper, as who asks it knows it. Its clones ask by the same connections.
#[derive(Clone)]
pub struct Keeper {
    connections: Arc<Connections>,
    /// Shared by all threads of a process that ask; `None`: each request finds out for itself.
    silence: Option<Arc<Silence>>,
    patience: Patience,
    /// Time that messages name.
    time_allowed: Duration,
    /// Name of the process that answers, in messages.
    name: &'static str,
}

impl Keeper {
    /// The keeper that answers on this socket: one request at a time, others wait.
    pub fn at(path: PathBuf) -> Keeper {
        Keeper::new(Connections::new(path, 1), PATIENCE)
    }

    /// The keeper that answers on this socket, waited for as long as removing takes: of files that others have locked.
    pub fn of_administrator(path: PathBuf) -> Keeper {
        Keeper::new(Connections::new(path, 1), REMOVING)
    }

    /// A keeper that answers at the other end of this connection, for `path`: in this process, which opened the store.
    pub fn over(stream: UnixStream, path: PathBuf) -> Keeper {
        let connections = Connections::new(path, 1);
        let keeper = Keeper::new(connections, REMOVING);
        if let Some(place) = keeper.connections.place(keeper.patience) {
            place.keep(stream);
        }
        keeper
    }

    /// The keeper that answers on this socket, for many threads. At most `most` requests wait for it at a time, each at
    /// most `patience` for a piece of its answer. After one that had no answer the next ones fail at once, until the keeper
    /// answers again.
    pub fn shared(path: PathBuf, most: usize, patience: Duration) -> Keeper {
        let silence = Silence::new(&path);
        Keeper {
            silence: Some(silence),
            ..Keeper::new(Connections::new(path, most), patience)
        }
    }

    /// Asks this keeper by other connections: requests of the two do not wait for each other.
    pub fn apart(&self, most: usize) -> Keeper {
        let path = self.connections.path().to_path_buf();
        Keeper {
            connections: Arc::new(Connections::new(path, most)),
            ..self.clone()
        }
    }

    /// Asks this keeper by these connections, but all requests together end within `time` from now.
    pub fn within(&self, time: Duration) -> Keeper {
        let time_ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Keeper {
            patience: Patience {
                piece: time.min(self.patience.piece),
                until_ns: Some(RealClock.mono_ns().saturating_add(time_ns)),
            },
            time_allowed: time,
            ..self.clone()
        }
    }

    /// Names another process than the keeper that answers by its protocol.
    pub fn named(self, name: &'static str) -> Keeper {
        Keeper { name, ..self }
    }

    /// Name of the process that answers, in messages.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Longest wait for a piece of an answer.
    pub fn patience(&self) -> Duration {
        self.patience.piece
    }

    fn new(connections: Connections, patience: Duration) -> Keeper {
        Keeper {
            connections: Arc::new(connections),
            silence: None,
            patience: Patience {
                piece: patience,
                until_ns: None,
            },
            time_allowed: patience,
            name: "the keeper",
        }
    }

    /// Series that all matchers pick, by name.
    pub fn select(&self, matchers: &[Matcher]) -> Result<Vec<SeriesInfo>, String> {
        let request = KeeperRequest::Select(matchers.to_vec());
        let mut found = self.ask(&request, |stream| {
            let mut found = Vec::new();
            loop {
                match read_answer(stream)? {
                    Answer::Series(series, more) => {
                        found.extend(series);
                        if found.len() > SERIES_MAX {
                            return Err(strange("has more series than there can be"));
                        }
                        if !more {
                            return Ok(Ok(found));
                        }
                    }
                    Answer::Refused(why) => return Ok(Err(why)),
                    _ => return Err(elsewhere()),
                }
            }
        })??;
        found.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }

    /// Matchers of these texts. One with a label that no series has is an error, unless it is a part of names.
    pub fn matchers(&self, texts: &[String]) -> Result<Vec<Matcher>, String> {
        let matcher = |text: &String| {
            let matcher = Matcher::parse(text)?;
            let is_there = |matcher| Ok::<_, String>(!self.select(&[matcher])?.is_empty());
            if matcher.is_of_files() || is_there(Matcher::having(&matcher.label))? {
                return Ok(matcher);
            }
            match is_there(Matcher::of_name(text))? {
                true => Ok(Matcher::of_name(text)),
                false => Err(format!(
                    "cannot use {text:?}: no series has the label {}; those of files are {}",
                    matcher.label,
                    LABELS.join(", ")
                )),
            }
        };
        texts.iter().map(matcher).collect()
    }

    /// Rows of some series, or why one has none.
    pub fn range(&self, range: &Range) -> Result<Vec<Result<Rows, String>>, String> {
        let count = range.names.len();
        self.ask(&KeeperRequest::Range(range.clone()), |stream| {
            let answers = (0..count).map(|_| match read_answer(stream)? {
                Answer::Rows(rows) => Ok(Ok(rows)),
                Answer::Refused(why) => Ok(Err(why)),
                _ => Err(elsewhere()),
            });
            answers.collect()
        })
    }

    /// Has series begin that are named by label sets; for each why not.
    pub fn define(&self, series: Vec<LabelledSeries>) -> Result<Vec<Result<(), String>>, String> {
        let count = series.len();
        self.ask(&KeeperRequest::Define(series), |stream| {
            read_done(stream, count)
        })
    }

    /// Hands over values of such series; for each why they were not taken.
    pub fn write(&self, series: Vec<LabelledValues>) -> Result<Vec<Result<(), String>>, String> {
        let count = series.len();
        self.ask(&KeeperRequest::Write(series), |stream| {
            read_done(stream, count)
        })
    }

    /// Asks for senders.
    pub fn accounts(&self) -> Result<Accounts, String> {
        self.ask(&KeeperRequest::Accounts, |stream| {
            match read_answer(stream)? {
                Answer::Accounts(accounts) => Ok(Ok(accounts)),
                Answer::Refused(why) => Ok(Err(why)),
                _ => Err(elsewhere()),
            }
        })?
    }

    /// Asks for the counts of the listeners for lines.
    pub fn lines(&self) -> Result<Vec<LineAccount>, String> {
        self.ask(&KeeperRequest::Lines, |stream| match read_answer(stream)? {
            Answer::Lines(accounts) => Ok(Ok(accounts)),
            Answer::Refused(why) => Ok(Err(why)),
            _ => Err(elsewhere()),
        })?
    }

    /// Hands over a request of a sender; its samples are in the journal when this returns.
    pub fn push(&self, push: Push) -> Result<PushResult, String> {
        self.ask(&KeeperRequest::Push(push), |stream| {
            match read_answer(stream)? {
                Answer::Pushed(pushed) => Ok(Ok(pushed)),
                Answer::Refused(why) => Ok(Err(why)),
                _ => Err(elsewhere()),
            }
        })?
    }

    /// Asks for the counts of senders that push over HTTP.
    pub fn pushers(&self) -> Result<Vec<PushAccount>, String> {
        self.ask(&KeeperRequest::Pushers, |stream| {
            match read_answer(stream)? {
                Answer::Pushers(accounts) => Ok(Ok(accounts)),
                Answer::Refused(why) => Ok(Err(why)),
                _ => Err(elsewhere()),
            }
        })?
    }

    /// Hands over all targets that are scraped, with their state.
    pub fn scraped(&self, targets: Vec<ScrapedTarget>) -> Result<(), String> {
        self.ask(
            &KeeperRequest::Scraped(targets),
            |stream| match read_answer(stream)? {
                Answer::Done => Ok(Ok(())),
                Answer::Refused(why) => Ok(Err(why)),
                _ => Err(elsewhere()),
            },
        )?
    }

    /// Hands over the counts of all receivers.
    pub fn forwarded(&self, receivers: Vec<ReceiverAccount>) -> Result<(), String> {
        let request = KeeperRequest::Forwarded(receivers);
        self.ask(&request, |stream| match read_answer(stream)? {
            Answer::Done => Ok(Ok(())),
            Answer::Refused(why) => Ok(Err(why)),
            _ => Err(elsewhere()),
        })?
    }

    /// Asks for the counts of receivers.
    pub fn receivers(&self) -> Result<Vec<ReceiverAccount>, String> {
        self.ask(&KeeperRequest::Receivers, |stream| {
            match read_answer(stream)? {
                Answer::Receivers(receivers) => Ok(Ok(receivers)),
                Answer::Refused(why) => Ok(Err(why)),
                _ => Err(elsewhere()),
            }
        })?
    }

    /// Asks for the targets that are scraped.
    pub fn targets(&self) -> Result<Vec<ScrapedTarget>, String> {
        self.ask(&KeeperRequest::Targets, |stream| {
            match read_answer(stream)? {
                Answer::Targets(targets) => Ok(Ok(targets)),
                Answer::Refused(why) => Ok(Err(why)),
                _ => Err(elsewhere()),
            }
        })?
    }

    /// Asks for the descriptions of one metric, or of all, as senders gave them.
    pub fn families(&self, metric: Option<&str>) -> Result<Vec<MetricFamily>, String> {
        let metric = metric.unwrap_or_default().to_string();
        self.ask(
            &KeeperRequest::Families { metric },
            |stream| match read_answer(stream)? {
                Answer::Families(families) => Ok(Ok(families)),
                Answer::Refused(why) => Ok(Err(why)),
                _ => Err(elsewhere()),
            },
        )?
    }

    /// Asks for publishers and their state; texts of commands only with `texts`.
    pub fn programs(&self, texts: bool) -> Result<Programs, String> {
        self.ask(
            &KeeperRequest::Programs { texts },
            |stream| match read_answer(stream)? {
                Answer::Programs(programs) => Ok(Ok(programs)),
                Answer::Refused(why) => Ok(Err(why)),
                _ => Err(elsewhere()),
            },
        )?
    }

    /// Hands over what the sessions of a database server do; whether somebody looks.
    pub fn activity(&self, activity: ServerActivity) -> Result<bool, String> {
        self.ask_watched(&KeeperRequest::Activity(activity))
    }

    /// True if somebody looks at programs.
    pub fn is_watched(&self) -> Result<bool, String> {
        self.ask_watched(&KeeperRequest::Watched)
    }

    fn ask_watched(&self, request: &KeeperRequest) -> Result<bool, String> {
        self.ask(request, |stream| match read_answer(stream)? {
            Answer::Watched(is_watched) => Ok(Ok(is_watched)),
            Answer::Refused(why) => Ok(Err(why)),
            _ => Err(elsewhere()),
        })?
    }

    /// Asks for notifications of senders, by their time.
    pub fn events(&self, range: &EventRange) -> Result<Vec<Event>, String> {
        let request = KeeperRequest::Events(range.clone());
        self.ask(&request, |stream| match read_answer(stream)? {
            Answer::Events(events) => Ok(Ok(events)),
            Answer::Refused(why) => Ok(Err(why)),
            _ => Err(elsewhere()),
        })?
    }

    /// Has series removed, if this socket is the administrator's: for each whether it went, or why not.
    pub fn remove(&self, names: &[Vec<u8>]) -> Result<Vec<Result<(), String>>, String> {
        let mut outcomes = Vec::new();
        for names in names.chunks(NAMES_MAX) {
            let request = KeeperRequest::Remove(names.to_vec());
            outcomes.extend(self.ask(&request, |stream| read_done(stream, names.len()))?);
        }
        Ok(outcomes)
    }

    /// Has values of a range of time removed from series, likewise.
    pub fn erase(
        &self,
        names: &[Vec<u8>],
        (from, thru): (i64, i64),
    ) -> Result<Vec<Result<(), String>>, String> {
        let mut outcomes = Vec::new();
        for names in names.chunks(NAMES_MAX) {
            let names = names.to_vec();
            let count = names.len();
            let request = KeeperRequest::Erase(Erased { names, from, thru });
            outcomes.extend(self.ask(&request, |stream| read_done(stream, count))?);
        }
        Ok(outcomes)
    }

    /// Has series join those of the store, if this socket is the administrator's; the outcome of each, in order,
    /// those with archives first.
    pub fn import(&self, import: Import) -> Result<Vec<Imported>, String> {
        let count = import.series.len() + import.points.len();
        self.ask(&KeeperRequest::Import(import), |stream| {
            read_imported(stream, count)
        })?
    }

    /// Ends a registered tail: nothing is kept for it any more.
    pub fn end_tail(&self, name: &str) -> Result<(), String> {
        let request = KeeperRequest::EndTail(name.into());
        self.ask(&request, |stream| match read_answer(stream)? {
            Answer::Done => Ok(Ok(())),
            Answer::Refused(why) => Ok(Err(why)),
            _ => Err(elsewhere()),
        })?
    }

    /// Asks for registered tails, by name.
    pub fn tails(&self) -> Result<Vec<TailAccount>, String> {
        self.ask(&KeeperRequest::Tails, |stream| match read_answer(stream)? {
            Answer::Tails(tails) => Ok(Ok(tails)),
            Answer::Refused(why) => Ok(Err(why)),
            _ => Err(elsewhere()),
        })?
    }

    /// Has the keeper keep the store's files as they are, for an hour at most. Returns the pin's number and the files.
    pub fn pin(&self) -> Result<(u64, Vec<PinnedPart>), String> {
        self.ask(&KeeperRequest::Pin, |stream| {
            let mut parts = Vec::new();
            loop {
                match read_answer(stream)? {
                    Answer::Pinned(pin, some, more) => {
                        parts.extend(some);
                        if parts.len() > SERIES_MAX {
                            return Err(strange("has more files than there can be"));
                        }
                        if !more {
                            return Ok(Ok((pin, parts)));
                        }
                    }
                    Answer::Refused(why) => return Ok(Err(why)),
                    _ => return Err(elsewhere()),
                }
            }
        })?
    }

    /// Ends a pin; an error if it has ended before.
    pub fn unpin(&self, pin: u64) -> Result<(), String> {
        self.ask(&KeeperRequest::Unpin(pin), |stream| {
            match read_answer(stream)? {
                Answer::Done => Ok(Ok(())),
                Answer::Refused(why) => Ok(Err(why)),
                _ => Err(elsewhere()),
            }
        })?
    }

    /// Asks, unless the keeper is known to be silent.
    fn ask<T>(
        &self,
        request: &KeeperRequest,
        read: impl Fn(&mut Exchange) -> io::Result<T>,
    ) -> Result<T, String> {
        let silence = self.silence.as_ref();
        if let Some(lasts) = silence.and_then(|silence| silence.lasts()) {
            return Err(self.cannot(&format!(
                "{} has not answered for {} s",
                self.name,
                lasts.as_secs()
            )));
        }
        let Some(place) = self.connections.place(self.patience) else {
            return Err(self.cannot(&format!(
                "{} did not answer other requests in {} s",
                self.name,
                self.time_allowed.as_secs_f64()
            )));
        };
        let answer = self.ask_at(&place, request, read);
        answer.map_err(|error| self.unanswered(&error))
    }

    /// Says why a request has no answer, and begins a silence if the keeper took too long.
    fn unanswered(&self, error: &io::Error) -> String {
        if !is_timeout(error) {
            return self.cannot(&strerror(error));
        }
        if let Some(silence) = self.silence.as_ref() {
            silence.begin(self.time_allowed);
        }
        self.cannot(&format!(
            "{} did not answer in {} s",
            self.name,
            self.time_allowed.as_secs_f64()
        ))
    }

    /// Asks on a new connection where the old one is of a keeper that has ended.
    fn ask_at<T>(
        &self,
        place: &Permit,
        request: &KeeperRequest,
        read: impl Fn(&mut Exchange) -> io::Result<T>,
    ) -> io::Result<T> {
        let frame = request.frame();
        let ask = |stream: UnixStream| {
            let patience = self.patience;
            let mut exchange = Exchange { stream, patience };
            exchange.write_all(&frame)?;
            let answer = read(&mut exchange)?;
            place.keep(exchange.stream);
            Ok(answer)
        };
        if let Some(stream) = place.old() {
            match ask(stream) {
                Ok(answer) => return Ok(answer),
                // A keeper that hangs would hang on a new connection as well.
                Err(error) if is_timeout(&error) => return Err(error),
                Err(_) => {}
            }
        }
        ask(place.connect(self.patience)?)
    }

    fn cannot(&self, why: &str) -> String {
        let (name, path) = (self.name, self.connections.path().display());
        format!("cannot ask {name} at {path}: {why}")
    }
}

fn is_timeout(error: &io::Error) -> bool {
    use io::ErrorKind::{TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut)
}

fn read_answer(stream: &mut impl Read) -> io::Result<Answer> {
    let mut head = [0; HEAD];
    stream.read_exact(&mut head)?;
    let mut frame = vec![0; body_bytes(head, ANSWER_MAX).map_err(strange)?];
    stream.read_exact(&mut frame)?;
    Answer::read(&frame).map_err(strange)
}

fn read_done(stream: &mut Exchange, count: usize) -> io::Result<Vec<Result<(), String>>> {
    let answers = (0..count).map(|_| match read_answer(stream)? {
        Answer::Done => Ok(Ok(())),
        Answer::Refused(why) => Ok(Err(why)),
        _ => Err(elsewhere()),
    });
    answers.collect()
}

fn read_imported(stream: &mut Exchange, count: usize) -> io::Result<Result<Vec<Imported>, String>> {
    match read_answer(stream)? {
        Answer::Imported(outcomes) if outcomes.len() == count => Ok(Ok(outcomes)),
        Answer::Refused(why) => Ok(Err(why)),
        _ => Err(elsewhere()),
    }
}

fn elsewhere() -> io::Error {
    strange("is about something else")
}

fn strange(why: &str) -> io::Error {
    io::Error::other(format!("its answer {why}"))
}
