//! What a start found, and numbers for STATS.

/// Numbers for STATS; the daemon adds those of the requests it saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Files that are due.
    pub queue_length: u64,
    /// Writes of files.
    pub updates_written: u64,
    /// Values in them.
    pub data_sets_written: u64,
    /// Files known.
    pub files: u64,
    /// Bytes written to the journal.
    pub journal_bytes: u64,
    /// Journal files begun after the first.
    pub journal_rotate: u64,
    /// Values that were acknowledged but that the file's definition does not take; said in the log.
    pub values_refused: u64,
    /// Writes put off because somebody else held the file's lock.
    pub locks_met: u64,
    /// Journal files given up after a failed write or sync.
    pub journals_given_up: u64,
}

/// What was found at start, for the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Values taken back into memory.
    pub values: u64,
    /// Files they belong to.
    pub files: u64,
    /// Files that were written again because a write may have been cut short.
    pub redone: u64,
    /// Lines for the log: damage, refused journals of a stock daemon and why.
    pub notices: Vec<String>,
}
