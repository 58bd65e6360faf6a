//! Settings of a store.

use kymo_base::label_set::LabelLimits;
use std::path::PathBuf;
use std::time::Duration;

/// Policy for creating and updating .rrd files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Files {
    /// The store has no .rrd files.
    Never,
    /// Files are created and updated on request, such as FLUSH; a client's CREATE creates one at once.
    OnDemand,
    /// Files are updated after this time, or on request; new series have a file at once.
    After(Duration),
}

impl Files {
    /// Longest time for which a file may be behind without a request.
    pub(crate) fn may_lag(self) -> Duration {
        match self {
            Files::Never => Duration::ZERO,
            Files::OnDemand => Duration::MAX,
            Files::After(age) => age,
        }
    }
}

/// Retention of series of points: of samples, and of the rows made of them, in seconds.
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
    /// The shortest and the longest retention: an hour, and the largest number of rows of five minutes in a tier.
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

/// Paths, limits and intervals of a store.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The store's own folder (journal, lock), created if missing.
    pub folder: PathBuf,
    /// `-b`: the folder for names that are not absolute; an absolute path without links.
    pub base: PathBuf,
    /// Address that is shown to other daemons that try to use `base`; `None` allows them to use it.
    pub owner: Option<String>,
    /// `-B`: opens no file outside of `base`, whatever its name or links.
    pub beneath: bool,
    /// `-j`: folder with `rrd.journal.*` files of a stock daemon, which are replayed once.
    pub stock_journals: Option<PathBuf>,
    /// `-w`: age of the oldest pending value at which values are published, so that PENDING no longer lists them.
    pub write_after: Duration,
    /// `--files`.
    pub files: Files,
    /// `-z`: largest random addition to that time, so that not all files are due at once.
    pub jitter: Duration,
    /// `-f`: interval of the check of files that receive no values any more.
    pub sweep_every: Duration,
    /// Longest time that a FLUSH waits for another process's lock.
    pub lock_wait: Duration,
    /// Size of a journal file, in bytes.
    pub journal_file_bytes: u64,
    /// Interval of the journal's syncs.
    pub sync_every: Duration,
    /// Longest interval between checkpoints, which sync the .rrd files and release old journal files.
    pub checkpoint_every: Duration,
    /// Average number of values of its series, in no block yet, at which a chunk is saved.
    pub chunk_values: u64,
    /// Age of the oldest of these values at which a chunk is saved.
    pub save_after: Duration,
    /// Number of journal files above which the chunk with the oldest values is saved.
    pub journal_files: usize,
    /// Length from which on a segment is followed by another, in bytes.
    pub segment_bytes: u64,
    /// True if blocks have samples and rows. Blocks without them have names and states alone: tails carry the values to another
    /// store, and only values in no block yet can be read here.
    pub keeps_values: bool,
    /// Size limit of all blocks, in bytes, as far as dropping points can keep it.
    pub store_bytes: u64,
    /// Retention of series of points; `None` for that of their definitions.
    pub points: Option<PointsRetention>,
    /// Limits of the label set of a new series.
    pub labels: LabelLimits,
    /// Limit of the bytes of journal files that only tails need.
    pub tail_bytes: u64,
    /// Time after the end of such a file at which the store drops it.
    pub tail_age: Duration,
    /// Times of single registered tails, by name, in place of `tail_age`.
    pub tail_ages: Vec<(String, Duration)>,
    /// Number of series, above which the log has a warning.
    pub max_series: u64,
    /// Number of new series in a minute, above which the log has a warning.
    pub max_new: u64,
}

impl Settings {
    /// rrdcached's defaults, for this folder and base.
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
            keeps_values: true,
            store_bytes: 10 << 30,
            points: None,
            labels: LabelLimits::default(),
            tail_bytes: 1 << 30,
            tail_age: Duration::from_secs(6 * 3600),
            tail_ages: Vec::new(),
            max_series: 200_000,
            max_new: 10_000,
            journal_files: 16,
        }
    }
}
