//! What the store is told when it is opened.

use kymo_base::label_set::LabelLimits;
use std::path::PathBuf;
use std::time::Duration;

/// When .rrd files are made, and brought up to date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Files {
    /// There are none.
    Never,
    /// When somebody asks for one, as FLUSH does. A client's CREATE makes one at once.
    Asked,
    /// When one is so far behind, or somebody asks. New series have one at once.
    After(Duration),
}

impl Files {
    /// How far behind one may be that is not asked for.
    pub(crate) fn may_lag(self) -> Duration {
        match self {
            Files::Never => Duration::ZERO,
            Files::Asked => Duration::MAX,
            Files::After(age) => age,
        }
    }
}

/// How long a store keeps the samples of series of points and the rows that they become, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PointsRetention {
    /// Samples as they were received.
    pub samples_s: u32,
    /// Rows of five minutes.
    pub rows_5m_s: u32,
    /// Rows of an hour.
    pub rows_1h_s: u32,
}

impl PointsRetention {
    /// The shortest and the longest time that a store takes: an hour, and as many rows of five minutes as a tier has at most.
    pub const LIMITS_S: [u32; 2] = [3600, 3640 * 86_400];
}

impl Default for PointsRetention {
    /// Samples for 15 days, rows of five minutes for 60 days and of an hour for two years.
    fn default() -> PointsRetention {
        PointsRetention {
            samples_s: 15 * 86_400,
            rows_5m_s: 60 * 86_400,
            rows_1h_s: 730 * 86_400,
        }
    }
}

/// Where things are and how often they are done.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The store's own folder (journal, lock); made when missing.
    pub folder: PathBuf,
    /// `-b`: names that are not absolute lie here. Absolute, without links.
    pub base: PathBuf,
    /// Who keeps other daemons from `base`, as they are told: an address; `None`: nobody does.
    pub owner: Option<String>,
    /// `-B`: nothing outside of `base` is opened, whatever a name says or a link points to.
    pub beneath: bool,
    /// `-j`: `rrd.journal.*` files of a stock daemon lie here and are replayed once.
    pub stock_journals: Option<PathBuf>,
    /// `-w`: values count as written when the oldest of them is this old: PENDING no longer tells them.
    pub write_after: Duration,
    /// `--files`.
    pub files: Files,
    /// `-z`: at most so much is added to that, by chance, so that not all files are due at once.
    pub jitter: Duration,
    /// `-f`: how often files nobody updates any more are looked at.
    pub sweep_every: Duration,
    /// How long a FLUSH waits for somebody else's lock.
    pub lock_wait: Duration,
    /// Bytes of one journal file.
    pub journal_file_bytes: u64,
    /// How often the journal is synced.
    pub sync_every: Duration,
    /// The .rrd files are made durable, and old journal files free, at least this often.
    pub checkpoint_every: Duration,
    /// A chunk is saved when its series have so many values each that are in no block.
    pub chunk_values: u64,
    /// Or when the oldest of them is so old.
    pub save_after: Duration,
    /// Or when the journal has so many files; then the chunk with the oldest is saved.
    pub journal_files: usize,
    /// A segment of blocks that is longer is followed by another.
    pub segment_bytes: u64,
    /// Blocks take at most so many bytes, as far as dropping points helps.
    pub store_bytes: u64,
    /// How long series of points are kept; `None`: as their definitions say.
    pub points: Option<PointsRetention>,
    /// Most that the label set of a new series may have.
    pub labels: LabelLimits,
    /// Most bytes of journal files that only tails need.
    pub tail_bytes: u64,
    /// Those that have ended so long ago go.
    pub tail_age: Duration,
    /// More series are told of in the log, and more new ones in a minute.
    pub max_series: u64,
    /// See `max_series`.
    pub max_new: u64,
}

impl Settings {
    /// What rrdcached does by default, in this folder and below this base.
    pub fn new(folder: impl Into<PathBuf>, base: impl Into<PathBuf>) -> Settings {
        Settings {
            folder: folder.into(),
            base: base.into(),
            owner: None,
            beneath: false,
            stock_journals: None,
            write_after: Duration::from_secs(300),
            files: Files::After(Duration::from_secs(7 * 86_400)),
            jitter: Duration::ZERO,
            sweep_every: Duration::from_secs(3600),
            lock_wait: Duration::from_secs(10),
            journal_file_bytes: 16 << 20,
            sync_every: Duration::from_secs(1),
            checkpoint_every: Duration::from_secs(3600),
            chunk_values: 64,
            save_after: Duration::from_secs(6 * 3600),
            segment_bytes: 64 << 20,
            store_bytes: 10 << 30,
            points: None,
            labels: LabelLimits::default(),
            tail_bytes: 1 << 30,
            tail_age: Duration::from_secs(6 * 3600),
            max_series: 200_000,
            max_new: 10_000,
            journal_files: 16,
        }
    }
}
