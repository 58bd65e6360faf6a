//! The keeper's protocol, docs/formats/keeper.md: what the hub and the command line ask about stored series. Each frame is
//! `length u32 | version u8 | kind u8 | body`, little-endian; questions are answered in their order.

mod accounts;
mod activity;
mod body;
mod events;
mod file_series;
mod frame;
mod points;
mod programs;
mod remove;
mod tail;
mod write;

pub use accounts::{Accounts, Count, Counts, HostAccount, OddType, SenderAccount, SocketAccount};
pub use activity::{ServerActivity, ServerSession};
pub use events::{Event, EventRange, NOTIFIED_MAX, POLL};
pub use file_series::{Arguments, Fault, FileSeries, FileValues, Refused, Taken};
pub use frame::{ANSWER_MAX, HEAD, QUESTION_MAX, VERSION, body_bytes};
pub use points::{
    Find, FoundSeries, IDS_MAX, LabelMatcher, LabelsOf, MatchOp, SamplesOf, SamplesPiece,
};
pub use programs::{
    ActiveSlot, Blockers, Latency, Life, Limited, Metric, MetricKind, PREPARED, Programs, Publisher,
};
pub use remove::Erased;
pub use tail::{TailFrom, TailOf, TailPiece, TailSample, TailSeries, TailSeriesKind};
pub use write::{LabelledSeries, LabelledValues};

use body::{Put, Take};
use events::{put_events, put_notified, take_events, take_notified};
use frame::framed;
use kymo_base::label_set::is_name;
use kymo_base::labels::Matcher;

/// Series of one RANGE or REMOVE at most.
pub const NAMES_MAX: usize = 4096;
/// Matchers of one SELECT at most.
const MATCHERS_MAX: usize = 64;
/// Columns of a series that are believed.
const COLUMNS_MAX: usize = 4096;

const SELECT: u8 = 1;
const RANGE: u8 = 2;
const ASK_ACCOUNTS: u8 = 3;
const ASK_EVENTS: u8 = 4;
const DEFINE: u8 = 5;
const WRITE: u8 = 6;
const REMOVE: u8 = 7;
const CREATE: u8 = 8;
const UPDATE: u8 = 9;
const NOTIFY: u8 = 10;
const ASK_PROGRAMS: u8 = 11;
const ACTIVITY: u8 = 12;
const ASK_WATCHED: u8 = 13;
const ERASE: u8 = 14;
const FIND: u8 = 15;
const ASK_SAMPLES: u8 = 16;
const ASK_LABELS: u8 = 17;
const ASK_TAIL: u8 = 18;
const END_TAIL: u8 = 19;
const SERIES: u8 = 0x81;
const ROWS: u8 = 0x82;
const ACCOUNTS: u8 = 0x83;
const EVENTS: u8 = 0x84;
const DONE: u8 = 0x85;
const TAKEN: u8 = 0x86;
const PROGRAMS: u8 = 0x87;
const WATCHED: u8 = 0x88;
const FOUND: u8 = 0x89;
const SAMPLES: u8 = 0x8a;
const LABELS: u8 = 0x8b;
const TAIL: u8 = 0x8c;
const REFUSED: u8 = 0xff;

/// What is asked.
#[derive(Clone, Debug, PartialEq)]
pub enum Question {
    /// Which series there are: answered with one or more [`Answer::Series`].
    Select(Vec<Matcher>),
    /// Their rows: answered with one [`Answer::Rows`] or [`Answer::Refused`] for each name, in order.
    Range(Range),
    /// Who sends: answered with one [`Answer::Accounts`].
    Accounts,
    /// What senders wanted to be heard: answered with one [`Answer::Events`].
    Events(EventRange),
    /// Series named by label sets begin, unless they are there: answered with one [`Answer::Done`] or [`Answer::Refused`] for each,
    /// in order.
    Define(Vec<LabelledSeries>),
    /// Their values: answered likewise.
    Write(Vec<LabelledValues>),
    /// Removes series with their values and files: answered with one [`Answer::Done`] or [`Answer::Refused`] for each name, in order.
    Remove(Vec<Vec<u8>>),
    /// Removes the values of a range of time: answered likewise.
    Erase(Erased),
    /// Series named as files are begin, or get other definitions: answered with one [`Answer::Taken`].
    Create(Vec<FileSeries>),
    /// Their values: answered likewise.
    Update(FileValues),
    /// What happened to devices that are polled: answered with one [`Answer::Done`]. At most [`NOTIFIED_MAX`].
    Notify(Vec<Event>),
    /// Who publishes, and what it does now: answered with one [`Answer::Programs`].
    Programs {
        /// With texts of commands.
        texts: bool,
    },
    /// What the sessions of a server do: answered with one [`Answer::Watched`].
    Activity(ServerActivity),
    /// Whether somebody looks at what programs do: answered likewise.
    Watched,
    /// Which series have some labels: answered with one or more [`Answer::Found`].
    Find(Find),
    /// Their samples: answered with one or more [`Answer::Samples`].
    Samples(SamplesOf),
    /// Names of labels, or values of one: answered with one or more [`Answer::Labels`].
    Labels(LabelsOf),
    /// All that comes, in the journal's order: answered with one or more [`Answer::Tail`].
    Tail(TailOf),
    /// Forgets a tail: answered with one [`Answer::Done`] or [`Answer::Refused`].
    EndTail(String),
}

/// Rows of series.
#[derive(Clone, Debug, PartialEq)]
pub struct Range {
    /// Names of series, as SELECT tells them.
    pub names: Vec<Vec<u8>>,
    /// From this moment on, seconds since 1970.
    pub from: i64,
    /// Up to this one.
    pub thru: i64,
    /// No more rows than these.
    pub rows_max: u32,
}

/// What is answered.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Series, and whether another frame with more follows.
    Series(Vec<SeriesInfo>, bool),
    /// Rows of one series.
    Rows(Rows),
    /// What is known of who sends.
    Accounts(Accounts),
    /// Events, by their time.
    Events(Vec<Event>),
    /// It is done.
    Done,
    /// What became of many series.
    Taken(Taken),
    /// Who publishes.
    Programs(Programs),
    /// Whether somebody looks.
    Watched(bool),
    /// Series, and whether another frame with more follows.
    Found(Vec<FoundSeries>, bool),
    /// Samples of one series, and whether another frame with more follows. The last one may have none.
    Samples(SamplesPiece, bool),
    /// Names or values, and whether another frame with more follows.
    Labels(Vec<String>, bool),
    /// A part of what a tail reads, and whether another frame with more follows.
    Tail(TailPiece, bool),
    /// Why not, or why there are none, for people.
    Refused(String),
}

/// A series.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SeriesInfo {
    /// Below the base, with `.rrd`; or a label set.
    pub name: Vec<u8>,
    /// Stamp of its newest value, seconds since 1970; 0: not known.
    pub last: f64,
    /// Seconds of a primary data point; 0: not known.
    pub step: u32,
    /// Name and kind of its columns; none: a file that the store does not know.
    pub columns: Vec<(Vec<u8>, Vec<u8>)>,
}

/// Rows of equal length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    /// Where the first row begins, seconds since 1970.
    pub start: i64,
    /// Seconds of a row.
    pub step: u32,
    /// Names of its columns.
    pub columns: Vec<Vec<u8>>,
    /// Row after row, a cell for each column; NaN: unknown.
    pub mean: Vec<f64>,
    /// Least values; empty: those of `mean`.
    pub min: Vec<f64>,
    /// Largest values; empty: those of `mean`.
    pub max: Vec<f64>,
}

impl Question {
    /// As a frame.
    pub fn frame(&self) -> Vec<u8> {
        match self {
            Question::Select(matchers) => framed(SELECT, |out| {
                out.u16(matchers.len());
                for matcher in matchers {
                    out.text(matcher.label.as_bytes());
                    out.u8(matcher.negated.into());
                    out.text(&matcher.pattern);
                }
            }),
            Question::Range(range) => framed(RANGE, |out| {
                out.i64(range.from);
                out.i64(range.thru);
                out.u32(range.rows_max);
                out.u16(range.names.len());
                range.names.iter().for_each(|name| out.text(name));
            }),
            Question::Accounts => framed(ASK_ACCOUNTS, |_| {}),
            Question::Events(range) => framed(ASK_EVENTS, |out| range.put(out)),
            Question::Define(series) => framed(DEFINE, |out| write::put_definitions(out, series)),
            Question::Write(series) => framed(WRITE, |out| write::put_values(out, series)),
            Question::Remove(names) => framed(REMOVE, |out| remove::put(out, names)),
            Question::Erase(erased) => framed(ERASE, |out| erased.put(out)),
            Question::Create(series) => {
                framed(CREATE, |out| file_series::put_definitions(out, series))
            }
            Question::Update(values) => framed(UPDATE, |out| values.put(out)),
            Question::Notify(events) => framed(NOTIFY, |out| put_notified(out, events)),
            Question::Programs { texts } => framed(ASK_PROGRAMS, |out| out.u8((*texts).into())),
            Question::Activity(activity) => framed(ACTIVITY, |out| activity.put(out)),
            Question::Watched => framed(ASK_WATCHED, |_| {}),
            Question::Find(find) => framed(FIND, |out| find.put(out)),
            Question::Samples(samples) => framed(ASK_SAMPLES, |out| samples.put(out)),
            Question::Labels(labels) => framed(ASK_LABELS, |out| labels.put(out)),
            Question::Tail(tail) => framed(ASK_TAIL, |out| tail.put(out)),
            Question::EndTail(name) => framed(END_TAIL, |out| out.text(name.as_bytes())),
        }
    }

    /// Reads what follows a frame's length; why not, for people.
    pub fn read(frame: &[u8]) -> Result<Question, &'static str> {
        let (kind, mut body) = Take::begin(frame)?;
        let question = match kind {
            SELECT => Question::Select(matchers(&mut body).ok_or("is cut short")?),
            RANGE => Question::Range(range(&mut body).ok_or("is cut short")?),
            ASK_ACCOUNTS => Question::Accounts,
            ASK_EVENTS => Question::Events(EventRange::take(&mut body).ok_or("is cut short")?),
            DEFINE => Question::Define(write::definitions(&mut body).ok_or("is cut short")?),
            WRITE => Question::Write(write::values(&mut body).ok_or("is cut short")?),
            REMOVE => Question::Remove(remove::take(&mut body).ok_or("is cut short")?),
            ERASE => Question::Erase(Erased::take(&mut body).ok_or("is cut short")?),
            CREATE => Question::Create(file_series::definitions(&mut body).ok_or("is cut short")?),
            UPDATE => Question::Update(FileValues::take(&mut body).ok_or("is cut short")?),
            NOTIFY => Question::Notify(take_notified(&mut body).ok_or("is cut short")?),
            ASK_PROGRAMS => Question::Programs {
                texts: body.flag().ok_or("is cut short")?,
            },
            ACTIVITY => Question::Activity(ServerActivity::take(&mut body).ok_or("is cut short")?),
            ASK_WATCHED => Question::Watched,
            FIND => Question::Find(Find::take(&mut body).ok_or("is cut short")?),
            ASK_SAMPLES => Question::Samples(SamplesOf::take(&mut body).ok_or("is cut short")?),
            ASK_LABELS => Question::Labels(LabelsOf::take(&mut body).ok_or("is cut short")?),
            ASK_TAIL => Question::Tail(TailOf::take(&mut body).ok_or("is cut short")?),
            END_TAIL => Question::EndTail(points::text(&mut body).ok_or("is cut short")?),
            _ => return Err("is of an unknown kind"),
        };
        body.end().map(|()| question)
    }
}

fn matchers(body: &mut Take) -> Option<Vec<Matcher>> {
    let count = body.count(MATCHERS_MAX)?;
    let matchers = (0..count).map(|_| {
        let label = body.text().filter(|label| is_name(label))?;
        Some(Matcher {
            label: String::from_utf8(label.to_vec()).ok()?,
            negated: body.flag()?,
            pattern: body.text()?.to_vec(),
        })
    });
    matchers.collect()
}

fn range(body: &mut Take) -> Option<Range> {
    let (from, thru) = (body.i64()?, body.i64()?);
    let rows_max = body.u32()?;
    let count = body.count(NAMES_MAX)?;
    let names = (0..count).map(|_| body.text().map(<[u8]>::to_vec));
    Some(Range {
        names: names.collect::<Option<_>>()?,
        from,
        thru,
        rows_max,
    })
}

impl Answer {
    /// As a frame.
    pub fn frame(&self) -> Vec<u8> {
        match self {
            Answer::Series(series, more) => framed(SERIES, |out| {
                out.u8((*more).into());
                out.length(series.len());
                series.iter().for_each(|series| put_series(out, series));
            }),
            Answer::Rows(rows) => framed(ROWS, |out| {
                out.i64(rows.start);
                out.u32(rows.step);
                out.u8((!rows.min.is_empty()).into());
                out.u16(rows.columns.len());
                rows.columns.iter().for_each(|name| out.text(name));
                out.length(rows.mean.len());
                for cells in [&rows.mean, &rows.min, &rows.max] {
                    out.cells(cells);
                }
            }),
            Answer::Accounts(accounts) => framed(ACCOUNTS, |out| accounts.put(out)),
            Answer::Events(events) => framed(EVENTS, |out| put_events(out, events)),
            Answer::Done => framed(DONE, |_| {}),
            Answer::Taken(taken) => framed(TAKEN, |out| taken.put(out)),
            Answer::Programs(programs) => framed(PROGRAMS, |out| programs.put(out)),
            Answer::Watched(is_watched) => framed(WATCHED, |out| out.u8((*is_watched).into())),
            Answer::Found(found, more) => framed(FOUND, |out| points::put_found(out, found, *more)),
            Answer::Samples(piece, more) => framed(SAMPLES, |out| piece.put(out, *more)),
            Answer::Labels(texts, more) => {
                framed(LABELS, |out| points::put_texts(out, texts, *more))
            }
            Answer::Tail(piece, more) => framed(TAIL, |out| piece.put(out, *more)),
            Answer::Refused(why) => framed(REFUSED, |out| out.text(why.as_bytes())),
        }
    }

    /// Reads what follows a frame's length.
    pub fn read(frame: &[u8]) -> Result<Answer, &'static str> {
        let (kind, mut body) = Take::begin(frame)?;
        let answer = match kind {
            SERIES => series(&mut body),
            ROWS => rows(&mut body).map(Answer::Rows),
            ACCOUNTS => Accounts::take(&mut body).map(Answer::Accounts),
            EVENTS => take_events(&mut body).map(Answer::Events),
            DONE => Some(Answer::Done),
            TAKEN => Taken::take(&mut body).map(Answer::Taken),
            PROGRAMS => Programs::take(&mut body).map(Answer::Programs),
            WATCHED => body.flag().map(Answer::Watched),
            FOUND => points::take_found(&mut body).map(|(found, more)| Answer::Found(found, more)),
            SAMPLES => {
                SamplesPiece::take(&mut body).map(|(piece, more)| Answer::Samples(piece, more))
            }
            LABELS => {
                points::take_texts(&mut body).map(|(texts, more)| Answer::Labels(texts, more))
            }
            TAIL => TailPiece::take(&mut body).map(|(piece, more)| Answer::Tail(piece, more)),
            REFUSED => {
                let why = body
                    .text()
                    .map(|why| String::from_utf8_lossy(why).into_owned());
                why.map(Answer::Refused)
            }
            _ => return Err("is of an unknown kind"),
        };
        let answer = answer.ok_or("is cut short")?;
        body.end().map(|()| answer)
    }
}

fn put_series(out: &mut Vec<u8>, series: &SeriesInfo) {
    out.text(&series.name);
    out.f64(series.last);
    out.u32(series.step);
    out.u16(series.columns.len());
    for (name, kind) in &series.columns {
        out.text(name);
        out.text(kind);
    }
}

fn series(body: &mut Take) -> Option<Answer> {
    let more = body.flag()?;
    let count = body.u32()?;
    let series = (0..count).map(|_| {
        let (name, last, step) = (body.text()?.to_vec(), body.f64()?, body.u32()?);
        let columns = body.count(COLUMNS_MAX)?;
        let columns = (0..columns).map(|_| Some((body.text()?.to_vec(), body.text()?.to_vec())));
        Some(SeriesInfo {
            name,
            last,
            step,
            columns: columns.collect::<Option<_>>()?,
        })
    });
    Some(Answer::Series(series.collect::<Option<_>>()?, more))
}

fn rows(body: &mut Take) -> Option<Rows> {
    let (start, step, spread) = (body.i64()?, body.u32()?, body.flag()?);
    let columns = body.count(COLUMNS_MAX)?;
    let columns = (0..columns).map(|_| body.text().map(<[u8]>::to_vec));
    let columns: Vec<Vec<u8>> = columns.collect::<Option<_>>()?;
    let cells = body.u32()? as usize;
    let is_whole = match columns.len() {
        0 => cells == 0,
        width => cells.is_multiple_of(width),
    };
    if !is_whole {
        return None;
    }
    let mean = body.cells(cells)?;
    let (min, max) = match spread {
        true => (body.cells(cells)?, body.cells(cells)?),
        false => Default::default(),
    };
    Some(Rows {
        start,
        step,
        columns,
        mean,
        min,
        max,
    })
}

#[cfg(test)]
mod tests;
