//! The keeper's protocol, docs/formats/keeper.md: what the hub and the command line ask about stored series. Each frame is
//! `length u32 | version u8 | kind u8 | body`, little-endian; questions are answered in their order.

mod accounts;
mod activity;
mod body;
mod events;
mod file_series;
mod frame;
mod lines;
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
pub use lines::LineAccount;
pub use points::{
    Find, FoundSeries, IDS_MAX, LabelMatcher, LabelsOf, MatchOp, SamplesOf, SamplesPiece,
};
pub use programs::{
    ActiveSlot, Blockers, Latency, Life, Limited, Metric, MetricKind, PREPARED, Programs, Publisher,
};
pub use remove::Erased;
pub use tail::{
    DefinedColumn, DefinedSeries, MissedPart, NumberedSample, PointKind, TAIL_WAIT_MAX_MS,
    TailAccount, TailAfter, TailEvent, TailPiece, TailPlace,
};
pub use write::{LabelledSeries, LabelledValues};

use body::{Put, Take};
use events::{put_events, put_notified, take_events, take_notified};
use frame::frames;
use kymo_base::label_set::is_name;
use kymo_base::labels::Matcher;

/// Series of one RANGE or REMOVE at most.
pub const NAMES_MAX: usize = 4096;
/// Matchers of one SELECT at most.
const MATCHERS_MAX: usize = 64;
/// Columns of a series that are believed.
const COLUMNS_MAX: usize = 4096;

frames! {
    /// What is asked.
    Question {
        /// Which series there are: answered with one or more [`Answer::Series`].
        1 = Select(matchers: Vec<Matcher>; put_matchers, take_matchers),
        /// Their rows: answered with one [`Answer::Rows`] or [`Answer::Refused`] for each name, in order.
        2 = Range(range: Range; Range::put, Range::take),
        /// Who sends: answered with one [`Answer::Accounts`].
        3 = Accounts,
        /// What senders wanted to be heard: answered with one [`Answer::Events`].
        4 = Events(range: EventRange; EventRange::put, EventRange::take),
        /// Series named by label sets begin, unless they are there: answered with one [`Answer::Done`] or [`Answer::Refused`] for
        /// each, in order.
        5 = Define(series: Vec<LabelledSeries>; write::put_definitions, write::definitions),
        /// Their values: answered likewise.
        6 = Write(series: Vec<LabelledValues>; write::put_values, write::values),
        /// Removes series with their values and files: answered with one [`Answer::Done`] or [`Answer::Refused`] for each name, in
        /// order.
        7 = Remove(names: Vec<Vec<u8>>; remove::put, remove::take),
        /// Series named as files are begin, or get other definitions: answered with one [`Answer::Taken`].
        8 = Create(series: Vec<FileSeries>; file_series::put_definitions, file_series::definitions),
        /// Their values: answered likewise.
        9 = Update(values: FileValues; FileValues::put, FileValues::take),
        /// What happened to devices that are polled: answered with one [`Answer::Done`]. At most [`NOTIFIED_MAX`].
        10 = Notify(events: Vec<Event>; put_notified, take_notified),
        /// Who publishes, and what it does now: answered with one [`Answer::Programs`].
        11 = Programs {
            /// With texts of commands.
            texts: bool; put_flag, Take::flag
        },
        /// What the sessions of a server do: answered with one [`Answer::Watched`].
        12 = Activity(activity: ServerActivity; ServerActivity::put, ServerActivity::take),
        /// Whether somebody looks at what programs do: answered likewise.
        13 = Watched,
        /// Removes the values of a range of time: answered as [`Question::Remove`].
        14 = Erase(erased: Erased; Erased::put, Erased::take),
        /// Which series have some labels: answered with one or more [`Answer::Found`].
        15 = Find(find: Find; Find::put, Find::take),
        /// Their samples: answered with one or more [`Answer::Samples`].
        16 = Samples(samples: SamplesOf; SamplesOf::put, SamplesOf::take),
        /// Names of labels, or values of one: answered with one or more [`Answer::Labels`].
        17 = Labels(labels: LabelsOf; LabelsOf::put, LabelsOf::take),
        /// All records of the journal behind a position: answered with one or more [`Answer::Tailed`].
        18 = Tail(after: TailAfter; TailAfter::put, TailAfter::take),
        /// Ends a registered tail: answered with one [`Answer::Done`].
        19 = EndTail(name: String; tail::put_name, tail::take_name),
        /// Which tails are registered: answered with one [`Answer::Tails`].
        20 = Tails,
        /// Counts of the listeners for lines: answered with one [`Answer::Lines`].
        21 = Lines,
    }
}

frames! {
    /// What is answered.
    Answer {
        /// Series, and whether another frame with more follows.
        0x81 = Series(series: Vec<SeriesInfo>, more: bool; put_series, take_series),
        /// Rows of one series.
        0x82 = Rows(rows: Rows; Rows::put, Rows::take),
        /// What is known of who sends.
        0x83 = Accounts(accounts: Accounts; Accounts::put, Accounts::take),
        /// Events, by their time.
        0x84 = Events(events: Vec<Event>; put_events, take_events),
        /// It is done.
        0x85 = Done,
        /// What became of many series.
        0x86 = Taken(taken: Taken; Taken::put, Taken::take),
        /// Who publishes.
        0x87 = Programs(programs: Programs; Programs::put, Programs::take),
        /// Whether somebody looks.
        0x88 = Watched(is_watched: bool; put_flag, Take::flag),
        /// Series, and whether another frame with more follows.
        0x89 = Found(found: Vec<FoundSeries>, more: bool; points::put_found, points::take_found),
        /// Samples of one series, and whether another frame with more follows. The last one may have none.
        0x8a = Samples(piece: SamplesPiece, more: bool; SamplesPiece::put, SamplesPiece::take),
        /// Names or values, and whether another frame with more follows.
        0x8b = Labels(texts: Vec<String>, more: bool; points::put_texts, points::take_texts),
        /// Records of the journal, and whether another frame with more follows.
        0x8c = Tailed(piece: TailPiece, more: bool; TailPiece::put, TailPiece::take),
        /// Registered tails, by name.
        0x8d = Tails(tails: Vec<TailAccount>; tail::put_accounts, tail::take_accounts),
        /// Counts of the listeners for lines.
        0x8e = Lines(accounts: Vec<LineAccount>; lines::put_lines, lines::take_lines),
        /// Why not, or why there are none, for people.
        0xff = Refused(why: String; put_words, take_words),
    }
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

fn put_matchers(matchers: &[Matcher], out: &mut Vec<u8>) {
    out.u16(matchers.len());
    for matcher in matchers {
        out.text(matcher.label.as_bytes());
        out.u8(matcher.negated.into());
        out.text(&matcher.pattern);
    }
}

fn take_matchers(body: &mut Take) -> Option<Vec<Matcher>> {
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

impl Range {
    fn put(&self, out: &mut Vec<u8>) {
        out.i64(self.from);
        out.i64(self.thru);
        out.u32(self.rows_max);
        out.u16(self.names.len());
        self.names.iter().for_each(|name| out.text(name));
    }

    fn take(body: &mut Take) -> Option<Range> {
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
}

fn put_flag(flag: &bool, out: &mut Vec<u8>) {
    out.u8((*flag).into());
}

fn put_words(words: &str, out: &mut Vec<u8>) {
    out.text(words.as_bytes());
}

fn take_words(body: &mut Take) -> Option<String> {
    let words = body.text()?;
    Some(String::from_utf8_lossy(words).into_owned())
}

fn put_series(all: &[SeriesInfo], more: &bool, out: &mut Vec<u8>) {
    put_flag(more, out);
    out.length(all.len());
    for series in all {
        out.text(&series.name);
        out.f64(series.last);
        out.u32(series.step);
        out.u16(series.columns.len());
        for (name, kind) in &series.columns {
            out.text(name);
            out.text(kind);
        }
    }
}

fn take_series(body: &mut Take) -> Option<(Vec<SeriesInfo>, bool)> {
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
    Some((series.collect::<Option<_>>()?, more))
}

impl Rows {
    fn put(&self, out: &mut Vec<u8>) {
        out.i64(self.start);
        out.u32(self.step);
        out.u8((!self.min.is_empty()).into());
        out.u16(self.columns.len());
        self.columns.iter().for_each(|name| out.text(name));
        out.length(self.mean.len());
        for cells in [&self.mean, &self.min, &self.max] {
            out.cells(cells);
        }
    }

    fn take(body: &mut Take) -> Option<Rows> {
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
}

#[cfg(test)]
mod tests;
