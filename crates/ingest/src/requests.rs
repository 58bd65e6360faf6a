//! The listener for requests of the hub and of commands about stored series, by the keeper's protocol, and for
//! administrators that remove series. Each connection has its own thread, so no answer delays the intake of values.

mod backup;
mod file_series;
#[cfg(feature = "testing")]
pub(crate) mod fuzz;
mod import;
mod points;
mod range;
mod receivers;
mod role;
mod tail;

pub use points::SharedReader;
pub use receivers::Receivers;
use role::Author;
pub use role::Role;
use tail::Tail;

use std::fmt::Display;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use kymo_base::label_set::Labels;
use kymo_base::labels::Matcher;
use kymo_base::name::DisplayName;
use kymo_rrd::header::DsDef;
use kymo_store::{FileError, Fresh, KnownSeries, Opened, SeriesName, Store, TimeRange};
use kymo_sys::clock::{Clock as _, RealClock};
use kymo_sys::machine;
use kymo_wire::keeper::{
    Answer, Erased, HEAD, KeeperRequest, QUESTION_MAX, SeriesInfo, body_bytes,
};

use crate::collectd::{EventKeeper, Senders};
use crate::common::LineAccounts;
use crate::common::seats::{Seat, SeatedService, Seats, serve_seated};
use crate::labelled_series;
use crate::listener::{Listener, StopSignal};
use crate::log::{Log, Severity};
use crate::programs::Programs;
use crate::pushed::Pushes;

/// Most files that one SELECT opens because the store does not know them.
const HEADERS_MAX: usize = 2000;
/// Most series of a frame.
const FRAME_SERIES: usize = 1024;
/// Series that are removed before the client gets their outcomes.
const REMOVED_TOGETHER: usize = 64;
/// Longest pause of a client within a request, or while an answer is written.
const STALL: Duration = Duration::from_secs(10);
/// Longest sleep. Its length matters for nothing else.
const NAP: Duration = Duration::from_secs(3600);

/// The listener.
pub struct RequestListener {
    /// Socket of the clients.
    pub socket: OwnedFd,
    /// Role of the socket, and sources of its answers.
    pub answers: Answers,
}

/// Role of a socket, and sources of its answers.
pub struct Answers {
    /// Role of the socket's clients.
    pub role: Role,
    /// Accounts of senders and hosts.
    pub senders: Senders,
    /// Kept notifications.
    pub events: EventKeeper,
    /// Programs that publish.
    pub programs: Programs,
    /// Counts of the listeners for lines.
    pub lines: LineAccounts,
    /// Intake of requests that senders push over HTTP.
    pub pushes: Pushes,
    /// Counts of receivers.
    pub receivers: Receivers,
    /// Reads the store by labels.
    pub reader: SharedReader,
    /// Messages for the administrator.
    pub log: Log,
}

/// The client of a connection.
struct Client<'a> {
    /// The client as a writer; `None`: the client may not write.
    author: Option<Author>,
    may_tail: bool,
    may_pin: bool,
    tail: Tail,
    seat: &'a Seat,
}

/// Removes series of these names, or some of their values. Returns an outcome for each name.
type Remove<'a> = dyn Fn(&[Vec<u8>]) -> Vec<Result<(), FileError>> + 'a;

impl Listener for RequestListener {
    fn name(&self) -> &'static str {
        "requests"
    }

    fn run(self: Box<Self>, store: &Store, stop: &StopSignal) -> io::Result<()> {
        let service = AnswerService {
            answers: &self.answers,
            store,
            stop,
        };
        serve_seated(&service, &self.socket, stop, &self.answers.log)
    }
}

/// Answers from a store.
struct AnswerService<'a> {
    answers: &'a Answers,
    store: &'a Store,
    stop: &'a StopSignal,
}

impl SeatedService for AnswerService<'_> {
    fn admits(&self, client: &OwnedFd) -> bool {
        self.answers.role.admits(client)
    }

    fn answer(&self, stream: UnixStream, seat: &Seat) {
        self.answers
            .answer_seated(stream, self.store, self.stop, seat);
    }

    fn end(&self) {
        self.store.end_waiting_tails();
    }
}

impl Answers {
    /// Answers from a store that no listener fills, such as one that a command has opened.
    pub fn of_store(role: Role, log: Log) -> Answers {
        Answers {
            role,
            senders: Senders::default(),
            events: EventKeeper::default(),
            programs: Programs::default(),
            lines: LineAccounts::default(),
            pushes: Pushes::default(),
            receivers: Receivers::default(),
            reader: SharedReader::default(),
            log,
        }
    }

    /// Answers a client until it leaves or the keeper ends. A client that breaks the protocol gets the reason, and its
    /// connection is closed.
    pub fn answer_all(&self, stream: UnixStream, store: &Store, stop: &StopSignal) {
        if let Some(seat) = Seats::default().take(&stream) {
            self.answer_seated(stream, store, stop, &seat);
        }
    }

    fn answer_seated(&self, mut stream: UnixStream, store: &Store, stop: &StopSignal, seat: &Seat) {
        let limits = [
            stream.set_nonblocking(false),
            stream.set_read_timeout(Some(STALL)),
            stream.set_write_timeout(Some(STALL)),
        ];
        if limits.iter().any(Result::is_err) {
            return;
        }
        let mut client = Client {
            author: self.role.author(&stream),
            may_tail: self.role.may_tail(&stream),
            may_pin: self.role.may_pin(&stream),
            tail: Tail::default(),
            seat,
        };
        loop {
            let ready = machine::wait_readable(&[stop.as_fd(), stream.as_fd()], NAP);
            if ready.first() == Some(&true) {
                return;
            }
            if ready.get(1) != Some(&true) {
                continue;
            }
            let _busy = seat.busy();
            // The client closed the connection or stalled.
            let Ok(frame) = read_frame(&mut stream, self.role.request_max()) else {
                return;
            };
            let done = match frame.and_then(|frame| KeeperRequest::read(&frame)) {
                Ok(request) => self.answer(&request, &mut client, store, &mut stream),
                Err(why) => {
                    let refused = Answer::Refused(format!("cannot answer: the request {why}"));
                    let _ = stream.write_all(&refused.frame());
                    return drain(&mut stream);
                }
            };
            if done.is_err() {
                return;
            }
        }
    }

    fn answer(
        &self,
        request: &KeeperRequest,
        client: &mut Client<'_>,
        store: &Store,
        stream: &mut UnixStream,
    ) -> io::Result<()> {
        match request {
            KeeperRequest::Select(matchers) => self.select(matchers, store, stream),
            KeeperRequest::Range(range) => {
                range::answer(store, range, |frame| stream.write_all(frame))
            }
            KeeperRequest::Find(find) => self.reader.find(store, find, stream),
            KeeperRequest::Samples(of) => self.reader.samples(store, of, stream),
            KeeperRequest::Labels(of) => self.reader.labels(store, of, stream),
            KeeperRequest::Tail(_) | KeeperRequest::EndTail(_) if !client.may_tail => {
                refuse(tail::NOT_FOR_YOU, stream)
            }
            KeeperRequest::Tail(after) => client.tail.answer(store, after, client.seat, stream),
            KeeperRequest::EndTail(name) => tail::end(store, name, stream),
            KeeperRequest::Tails => tail::list(store, stream),
            KeeperRequest::Pin => backup::pin(store, client.may_pin, stream),
            KeeperRequest::Unpin(pin) => backup::unpin(store, client.may_pin, *pin, stream),
            KeeperRequest::Import(import) => import::answer(store, self, import, stream),
            KeeperRequest::Accounts => {
                let accounts = self.senders.accounts(RealClock.mono_ns());
                stream.write_all(&Answer::Accounts(accounts).frame())
            }
            KeeperRequest::Lines => stream.write_all(&Answer::Lines(self.lines.all()).frame()),
            KeeperRequest::Pushers => stream.write_all(&self.pushes.answer_pushers().frame()),
            KeeperRequest::Families { metric } => {
                stream.write_all(&self.pushes.answer_families(metric).frame())
            }
            KeeperRequest::Targets => stream.write_all(&self.pushes.answer_targets().frame()),
            KeeperRequest::Receivers => stream.write_all(&self.receivers.answer().frame()),
            KeeperRequest::Programs { texts } => {
                stream.write_all(&Answer::Programs(self.programs.answer(*texts)).frame())
            }
            KeeperRequest::Events(range) => {
                let events = self.events.range(range);
                stream.write_all(&Answer::Events(events).frame())
            }
            KeeperRequest::Define(_)
            | KeeperRequest::Write(_)
            | KeeperRequest::Create(_)
            | KeeperRequest::Update(_)
            | KeeperRequest::Notify(_)
            | KeeperRequest::Activity(_)
            | KeeperRequest::Scraped(_)
            | KeeperRequest::Forwarded(_)
            | KeeperRequest::Push(_) => match &client.author {
                Some(author) => self.change(request, author, store, stream),
                None => refuse(
                    "cannot write: this socket only answers what is stored",
                    stream,
                ),
            },
            KeeperRequest::Watched => stream.write_all(&self.watched(store).frame()),
            KeeperRequest::Remove(names) | KeeperRequest::Erase(Erased { names, .. })
                if !self.role.may_remove() =>
            {
                refuse_removal(names, stream)
            }
            KeeperRequest::Remove(names) => {
                let done = "removed {} series: an administrator asked for it";
                self.remove(names, done, &|names| store.remove(names), stream)
            }
            KeeperRequest::Erase(erased) => self.erase(erased, store, stream),
        }
    }

    /// The answer to WATCHED. The hub asks this to learn if the keeper answers other requests. Those wait for the store,
    /// so this one does, too.
    fn watched(&self, store: &Store) -> Answer {
        let is_watched = self.programs.is_watched();
        let _none = store.known(u32::MAX);
        Answer::Watched(is_watched)
    }

    /// Removes values of a range of time.
    fn erase(&self, erased: &Erased, store: &Store, stream: &mut UnixStream) -> io::Result<()> {
        let (from, thru) = (erased.from, erased.thru);
        let done = format!(
            "removed the values from {from} to {thru} of {{}} series: an administrator asked for it"
        );
        let erase = |names: &[Vec<u8>]| store.erase(names, TimeRange { from, thru });
        self.remove(&erased.names, &done, &erase, stream)
    }

    /// Defines series, or adds values to the store.
    fn change(
        &self,
        request: &KeeperRequest,
        author: &Author,
        store: &Store,
        stream: &mut UnixStream,
    ) -> io::Result<()> {
        let may_write = &|name: SeriesName<'_>| author.may_write(name);
        let answer = match request {
            KeeperRequest::Define(series) => {
                let labels = series.iter().map(|series| &series.labels);
                let defined = labelled_series::define(store, may_write, series);
                return answer_done("define", labels, defined, stream);
            }
            KeeperRequest::Write(series) => {
                let labels = series.iter().map(|series| &series.labels);
                let written = labelled_series::write(store, may_write, series);
                return answer_done("write", labels, written, stream);
            }
            KeeperRequest::Create(series) => {
                Answer::Taken(file_series::create(store, author, series))
            }
            KeeperRequest::Update(values) => {
                Answer::Taken(file_series::update(store, author, values))
            }
            KeeperRequest::Notify(events) => {
                self.events.keep(events.clone(), &self.log);
                Answer::Done
            }
            KeeperRequest::Activity(activity) => {
                Answer::Watched(self.programs.take_activity(activity.clone()))
            }
            KeeperRequest::Push(_) | KeeperRequest::Scraped(_) | KeeperRequest::Forwarded(_)
                if !author.may_push() =>
            {
                Answer::Refused("cannot write: only the hub hands over requests".into())
            }
            KeeperRequest::Push(push) => Answer::Pushed(self.pushes.take(store, push, &self.log)),
            KeeperRequest::Scraped(targets) => {
                self.pushes.note_targets(targets);
                Answer::Done
            }
            KeeperRequest::Forwarded(receivers) => {
                self.receivers.take(receivers, RealClock.mono_ns());
                Answer::Done
            }
            KeeperRequest::Select(_)
            | KeeperRequest::Range(_)
            | KeeperRequest::Accounts
            | KeeperRequest::Lines
            | KeeperRequest::Pushers
            | KeeperRequest::Families { .. }
            | KeeperRequest::Targets
            | KeeperRequest::Receivers
            | KeeperRequest::Programs { .. }
            | KeeperRequest::Events(_)
            | KeeperRequest::Watched
            | KeeperRequest::Find(_)
            | KeeperRequest::Samples(_)
            | KeeperRequest::Labels(_)
            | KeeperRequest::Tail(_)
            | KeeperRequest::EndTail(_)
            | KeeperRequest::Tails
            | KeeperRequest::Pin
            | KeeperRequest::Unpin(_)
            | KeeperRequest::Import(_)
            | KeeperRequest::Erase(_)
            | KeeperRequest::Remove(_) => return Ok(()),
        };
        stream.write_all(&answer.frame())
    }

    /// Removes series, or some of their values, and sends the outcomes in parts. `said`: line for the log, with `{}` for
    /// the number.
    fn remove(
        &self,
        names: &[Vec<u8>],
        said: &str,
        remove: &Remove<'_>,
        stream: &mut UnixStream,
    ) -> io::Result<()> {
        for names in names.chunks(REMOVED_TOGETHER) {
            let outcomes = remove(names);
            let gone = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
            if gone > 0 {
                let text = said.replace("{}", &gone.to_string());
                (self.log)(Severity::Notice, &text);
            }
            for (name, outcome) in names.iter().zip(outcomes) {
                let answer = match outcome {
                    Ok(()) => Answer::Done,
                    Err(error) => Answer::Refused(cannot_remove(name, &error)),
                };
                stream.write_all(&answer.frame())?;
            }
        }
        Ok(())
    }

    /// Answers SELECT: first series in memory, part by part, then files that the store does not know.
    fn select(
        &self,
        matchers: &[Matcher],
        store: &Store,
        stream: &mut UnixStream,
    ) -> io::Result<()> {
        let picked = |name: &[u8]| matchers.iter().all(|matcher| matcher.picks(name));
        // A folder that cannot be listed is empty.
        let mut files = store.files().unwrap_or_default();
        files.retain(|name| picked(name));
        let mut is_known = vec![false; files.len()];
        let mut from = Some(0);
        while let Some(first) = from {
            let known = store.known(first);
            from = known.next();
            for series in &known.series {
                if let Ok(at) = files.binary_search(&series.name) {
                    is_known[at] = true;
                }
            }
            let known = known
                .series
                .into_iter()
                .filter(|series| picked(&series.name));
            let series: Vec<SeriesInfo> = known.map(info).collect();
            if !series.is_empty() {
                stream.write_all(&Answer::Series(series, true).frame())?;
            }
        }
        let unknown = files.into_iter().zip(is_known).filter(|(_, known)| !known);
        let unknown = unknown.filter(|(name, _)| !store.has_placeholder(name));
        let unknown = unknown.enumerate().map(|(at, (name, _))| match at {
            0..HEADERS_MAX => unopened(store, name),
            _ => named(name),
        });
        let unknown: Vec<SeriesInfo> = unknown.collect();
        for part in unknown.chunks(FRAME_SERIES) {
            stream.write_all(&Answer::Series(part.to_vec(), true).frame())?;
        }
        stream.write_all(&Answer::Series(Vec::new(), false).frame())
    }
}

fn refuse(why: &str, stream: &mut UnixStream) -> io::Result<()> {
    stream.write_all(&Answer::Refused(why.into()).frame())
}

/// Sends the outcome of each series.
fn answer_done<'a>(
    verb: &str,
    labels: impl Iterator<Item = &'a Labels>,
    outcomes: Vec<Result<(), String>>,
    stream: &mut UnixStream,
) -> io::Result<()> {
    let mut out = Vec::new();
    for (labels, outcome) in labels.zip(outcomes) {
        let answer = match outcome {
            Ok(()) => Answer::Done,
            Err(why) => {
                let labels = DisplayName(labels.text());
                Answer::Refused(format!("cannot {verb} {labels}: {why}"))
            }
        };
        out.extend(answer.frame());
    }
    stream.write_all(&out)
}

/// Refuses a removal: an outcome for each name.
fn refuse_removal(names: &[Vec<u8>], stream: &mut UnixStream) -> io::Result<()> {
    names.iter().try_for_each(|name| {
        let why = cannot_remove(name, &"this socket only reads");
        stream.write_all(&Answer::Refused(why).frame())
    })
}

fn cannot_remove(name: &[u8], why: &dyn Display) -> String {
    format!("cannot remove {}: {why}", DisplayName(name))
}

/// Description of a file that the store has not opened yet.
fn unopened(store: &Store, name: Vec<u8>) -> SeriesInfo {
    // An unreadable file is listed as well; a request for its rows gets the reason.
    let Ok(Opened { header, .. }) = store.read(&name, Fresh::AsIs) else {
        return named(name);
    };
    let column = |ds: &DsDef| (ds.name().to_vec(), ds.dst().to_vec());
    SeriesInfo {
        name,
        last: header.last_up as f64,
        step: u32::try_from(header.pdp_step).unwrap_or(u32::MAX),
        columns: header.ds.iter().map(column).collect(),
    }
}

/// A description that has only a name.
fn named(name: Vec<u8>) -> SeriesInfo {
    SeriesInfo {
        name,
        ..SeriesInfo::default()
    }
}

/// Reads the rest of the client's bytes: the kernel would discard the answer if the socket were closed with unread bytes.
fn drain(stream: &mut UnixStream) {
    if stream.set_nonblocking(true).is_ok() {
        // The connection ends now, with or without an error.
        let _ = io::copy(&mut stream.take(QUESTION_MAX as u64), &mut io::sink());
    }
}

fn info(series: KnownSeries) -> SeriesInfo {
    SeriesInfo {
        name: series.name,
        last: series.last.unwrap_or(0.0),
        step: u32::try_from(series.columns.step).unwrap_or(u32::MAX),
        columns: series.columns.columns.clone(),
    }
}

/// Reads a frame without its length. The inner error: the length is wrong.
fn read_frame(stream: &mut UnixStream, most: usize) -> io::Result<Result<Vec<u8>, &'static str>> {
    let mut head = [0; HEAD];
    stream.read_exact(&mut head)?;
    let bytes = match body_bytes(head, most) {
        Ok(bytes) => bytes,
        Err(why) => return Ok(Err(why)),
    };
    let mut frame = vec![0; bytes];
    stream.read_exact(&mut frame)?;
    Ok(Ok(frame))
}
