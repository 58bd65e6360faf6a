//! The report of a sink about a batch. It is reused, with its memory, from batch to batch.

/// Results of a batch that are worth a message.
#[derive(Debug, Default)]
pub struct Report {
    /// Values that were refused, with the reasons.
    pub refused: Vec<Refusal>,
    /// Points of watched targets that were completed.
    pub rates: Vec<Rate>,
    /// Problems that concern no single target, such as a keeper that is away.
    pub troubles: Vec<String>,
}

/// A value that was refused, or is not shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The target of the value.
    pub target: u32,
    /// The reason in words: `cannot update FILE: ...`.
    pub cause: String,
}

/// A primary data point that an update completed, to be compared with thresholds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// The target of the point.
    pub target: u32,
    /// End of the point, seconds since 1970.
    pub time_s: i64,
    /// In and out, per second; NaN: unknown.
    pub rates: [f64; 2],
    /// By direction 1 if the archive FAILURES found the rate aberrant, else 0; NaN: there is
    /// no such archive.
    pub failures: [f64; 2],
}

/// Counters of a sink since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Values that were stored.
    pub kept: u64,
    /// Values that were refused, and are lost.
    pub refused: u64,
    /// Values that had to wait. Another process had locked the file, or the keeper was away.
    pub delayed: u64,
    /// Values that are waiting now.
    pub waiting: u64,
    /// Waiting values that were dropped, because the limit was reached.
    pub dropped: u64,
    /// Series that were created.
    pub created: u64,
    /// Series whose definition was changed.
    pub tuned: u64,
    /// Reconnections.
    pub reconnected: u64,
}

impl Report {
    /// Empties the report but keeps its memory.
    pub fn clear(&mut self) {
        self.refused.clear();
        self.rates.clear();
        self.troubles.clear();
    }

    /// Reports a value that was refused.
    pub(super) fn refuse(&mut self, target: u32, cause: impl Into<String>) {
        let cause = cause.into();
        self.refused.push(Refusal { target, cause });
    }
}
