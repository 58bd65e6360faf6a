//! Numbers for STATS, and the findings of a start.

/// Numbers for STATS; the daemon adds those of its requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Due files.
    pub queue_length: u64,
    /// Writes of files.
    pub updates_written: u64,
    /// Values written to files.
    pub data_sets_written: u64,
    /// Known files.
    pub files: u64,
    /// Bytes written to the journal.
    pub journal_bytes: u64,
    /// Journal files begun after the first.
    pub journal_rotate: u64,
    /// Acknowledged values that the file's definition refused; they are reported in the log.
    pub values_refused: u64,
    /// Writes put off because another process held the file's lock.
    pub locks_met: u64,
    /// Journal files given up after a failed write or sync.
    pub journals_given_up: u64,
}

/// Findings of a start, for the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Values recovered into memory.
    pub values: u64,
    /// Files with recovered values.
    pub files: u64,
    /// Files that were written again because a write may have been cut short.
    pub redone: u64,
    /// Messages for the log: damage, and journals of a stock daemon that were refused.
    pub notices: Vec<String>,
}
