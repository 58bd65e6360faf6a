//! The keeper's protocol, docs/formats/keeper.md, by which the hub and the command line ask for stored series. Each frame is
//! `length u32 | version u8 | kind u8 | body`, little-endian; requests are answered in their order.

mod accounts;
mod activity;
mod body;
mod events;
mod file_series;
mod frame;
mod import;
mod lines;
mod pin;
mod points;
mod programs;
mod push;
mod receivers;
mod remove;
mod scraped;
mod tail;
mod write;

pub use accounts::{Accounts, Count, Counts, HostAccount, OddType, SenderAccount, SocketAccount};
pub use activity::{ServerActivity, ServerSession};
pub use events::{Event, EventRange, NOTIFIED_MAX, POLL, TRAP};
pub use file_series::{Arguments, Fault, FileSeries, FileValues, Refused, Taken};
pub use frame::{ANSWER_MAX, HEAD, QUESTION_MAX, VERSION, body_bytes};
pub use import::{
    IMPORT_MAX, Import, Imported, ImportedPoints, ImportedRow, ImportedSeries, ROW_CELLS,
};
pub use lines::LineAccount;
pub use pin::{PinnedKind, PinnedPart};
pub use points::{
    Find, FoundSeries, IDS_MAX, LabelMatcher, LabelsOf, MatchOp, SamplesOf, SamplesPiece,
};
pub use programs::{
    ActiveSlot, Blockers, Latency, Life, Limited, Metric, MetricKind, PREPARED, Programs, Publisher,
};
pub use push::{MetricFamily, PUSH_MAX, Push, PushAccount, PushFormat, PushResult};
pub use receivers::{RECEIVER_METRICS, RECEIVERS_MAX, ReceiverAccount, ReceiverMetric};
pub use remove::Erased;
pub use scraped::{SCRAPED_MAX, ScrapedTarget};
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

/// Most series of one RANGE or REMOVE.
pub const NAMES_MAX: usize = 4096;
/// Most matchers of one SELECT.
const MATCHERS_MAX: usize = 64;
/// Most columns of a series in an answer.
const COLUMNS_MAX: usize = 4096;

frames! {
    /// A request to the keeper.
    KeeperRequest {
        /// The series that matchers pick: answered with one or more [`Answer::Series`].
        1 = Select(matchers: Vec<Matcher>; put_matchers, take_matchers),
        /// Rows of series: answered with one [`Answer::Rows`] or [`Answer::Refused`] for each name, in order.
        2 = Range(range: Range; Range::put, Range::take),
        /// The senders of collectd's protocol: answered with one [`Answer::Accounts`].
        3 = Accounts,
        /// Notifications of senders and events of devices: answered with one [`Answer::Events`].
        4 = Events(range: EventRange; EventRange::put, EventRange::take),
        /// Creates series named by label sets, unless they exist: answered with one [`Answer::Done`] or [`Answer::Refused`] for
        /// each, in order.
        5 = Define(series: Vec<LabelledSeries>; write::put_definitions, write::definitions),
        /// Values of series named by label sets: answered as [`KeeperRequest::Define`].
        6 = Write(series: Vec<LabelledValues>; write::put_values, write::values),
        /// Removes series with their values and files: answered with one [`Answer::Done`] or [`Answer::Refused`] for each name,
        /// in order.
        7 = Remove(names: Vec<Vec<u8>>; remove::put, remove::take),
        /// Creates series that are named as files, or changes their definitions: answered with one [`Answer::Taken`].
        8 = Create(series: Vec<FileSeries>; file_series::put_definitions, file_series::definitions),
        /// Values of series that are named as files: answered with one [`Answer::Taken`].
        9 = Update(values: FileValues; FileValues::put, FileValues::take),
        /// Events of polled devices, at most [`NOTIFIED_MAX`]: answered with one [`Answer::Done`].
        10 = Notify(events: Vec<Event>; put_notified, take_notified),
        /// Publishers of activity, and their present activity: answered with one [`Answer::Programs`].
        11 = Programs {
            /// True: with texts of commands.
            texts: bool; put_flag, Take::flag
        },
        /// The activity of the sessions of a server, from its observer: answered with one [`Answer::Watched`].
        12 = Activity(activity: ServerActivity; ServerActivity::put, ServerActivity::take),
        /// Asks whether a viewer watches the activity of programs: answered with one [`Answer::Watched`].
        13 = Watched,
        /// Removes the values of a range of time: answered as [`KeeperRequest::Remove`].
        14 = Erase(erased: Erased; Erased::put, Erased::take),
        /// The series that Prometheus' matchers pick: answered with one or more [`Answer::Found`].
        15 = Find(find: Find; Find::put, Find::take),
        /// Samples of series: answered with one or more [`Answer::Samples`].
        16 = Samples(samples: SamplesOf; SamplesOf::put, SamplesOf::take),
        /// Names of labels, or values of one: answered with one or more [`Answer::Labels`].
        17 = Labels(labels: LabelsOf; LabelsOf::put, LabelsOf::take),
        /// All records of the journal behind a position: answered with one or more [`Answer::Tailed`].
        18 = Tail(after: TailAfter; TailAfter::put, TailAfter::take),
        /// Ends a registered tail: answered with one [`Answer::Done`].
        19 = EndTail(name: String; tail::put_name, tail::take_name),
        /// The registered tails: answered with one [`Answer::Tails`].
        20 = Tails,
        /// Counts of the listeners for lines: answered with one [`Answer::Lines`].
        21 = Lines,
        /// A request that a sender pushed over HTTP: answered with one [`Answer::Pushed`] once its samples are journalled.
        22 = Push(push: Push; Push::put, Push::take),
        /// Counts of senders that push: answered with one [`Answer::Pushers`].
        23 = Pushers,
        /// Metadata of metrics, as senders described them: answered with one [`Answer::Families`].
        24 = Families {
            /// The metric; empty: all.
            metric: String; push::put_metric, push::take_metric
        },
        /// All targets that are scraped, from the process that scrapes them: answered with one [`Answer::Done`].
        25 = Scraped(targets: Vec<ScrapedTarget>; scraped::put, scraped::take),
        /// The targets that are scraped: answered with one [`Answer::Targets`].
        26 = Targets,
        /// Keeps the store's files as they are for a backup, for an hour at most: answered with one or more
        /// [`Answer::Pinned`].
        27 = Pin,
        /// Ends a pin: answered with one [`Answer::Done`].
        28 = Unpin(pin: u64; pin::put_pin, pin::take_pin),
        /// Joins series from elsewhere to those of the store: answered with one [`Answer::Imported`].
        29 = Import(import: Import; Import::put, Import::take),
        /// Counts of all receivers, from the process that forwards: answered with one [`Answer::Done`].
        30 = Forwarded(receivers: Vec<ReceiverAccount>; receivers::put, receivers::take),
        /// Counts of receivers: answered with one [`Answer::Receivers`].
        31 = Receivers,
    }
}

frames! {
    /// An answer of the keeper.
    Answer {
        /// Series, and whether another frame with more follows.
        0x81 = Series(series: Vec<SeriesInfo>, more: bool; put_series, take_series),
        /// Rows of one series.
        0x82 = Rows(rows: Rows; Rows::put, Rows::take),
        /// Accounts of the senders and of the hosts of their values.
        0x83 = Accounts(accounts: Accounts; Accounts::put, Accounts::take),
        /// Events, by their time.
        0x84 = Events(events: Vec<Event>; put_events, take_events),
        /// The request succeeded.
        0x85 = Done,
        /// Results of the series of a CREATE or UPDATE.
        0x86 = Taken(taken: Taken; Taken::put, Taken::take),
        /// The publishers and their activity.
        0x87 = Programs(programs: Programs; Programs::put, Programs::take),
        /// True if a viewer watches the activity of programs.
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
        /// Result of a pushed request.
        0x8f = Pushed(pushed: PushResult; PushResult::put, PushResult::take),
        /// Counts of senders that push.
        0x90 = Pushers(accounts: Vec<PushAccount>; push::put_accounts, push::take_accounts),
        /// Metadata, by the names of metrics.
        0x91 = Families(families: Vec<MetricFamily>; push::put_families, push::take_families),
        /// The targets that are scraped.
        0x92 = Targets(targets: Vec<ScrapedTarget>; scraped::put, scraped::take),
        /// Number of a pin, files of it, and whether another frame with more follows.
        0x93 = Pinned(pin: u64, parts: Vec<PinnedPart>, more: bool; pin::put, pin::take),
        /// A part of the answer that follows is missing, and why, for people.
        0x94 = Missing(why: String; put_words, take_words),
        /// Outcomes of the series of an IMPORT.
        0x95 = Imported(outcomes: Vec<Imported>; import::put_outcomes, import::take_outcomes),
        /// Counts of receivers.
        0x96 = Receivers(receivers: Vec<ReceiverAccount>; receivers::put, receivers::take),
        /// Why not, or why there are none, for people.
        0xff = Refused(why: String; put_words, take_words),
    }
}

/// Names and range of a RANGE request.
#[derive(Clone, Debug, PartialEq)]
pub struct Range {
    /// Names of series, as in [`Answer::Series`].
    pub names: Vec<Vec<u8>>,
    /// First moment, seconds since 1970.
    pub from: i64,
    /// Last moment, seconds since 1970; later than `from`.
    pub thru: i64,
    /// Most rows of an answer.
    pub rows_max: u32,
}

/// A series.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SeriesInfo {
    /// Path below the base, with `.rrd`, or a label set.
    pub name: Vec<u8>,
    /// Stamp of the newest value, seconds since 1970; 0: not known.
    pub last: f64,
    /// Seconds of a primary data point; 0: not known.
    pub step: u32,
    /// Name and kind of each column; none: a file that the store does not know.
    pub columns: Vec<(Vec<u8>, Vec<u8>)>,
}

/// Rows of equal length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    /// Begin of the first row, seconds since 1970.
    pub start: i64,
    /// Seconds of a row.
    pub step: u32,
    /// Names of the columns.
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
            out.cells(cells.iter().copied());
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
