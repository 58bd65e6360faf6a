//! What a sink says about a batch. Memory is used again from batch to batch.

/// What became of a batch, as far as it is worth telling.
#[derive(Debug, Default)]
pub struct Report {
    /// Values that were not kept, and why.
    pub refused: Vec<Refusal>,
    /// Points that were completed of targets that are watched.
    pub rates: Vec<Rate>,
    /// What concerns no single target, once: a keeper that is away.
    pub troubles: Vec<String>,
}

/// A value that was not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Whose.
    pub target: u32,
    /// For people: `cannot update FILE: ...`.
    pub cause: String,
}

/// A primary data point that an update completed: what thresholds are compared with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Of which target.
    pub target: u32,
    /// When the point ends, seconds since 1970.
    pub time_s: i64,
    /// In and out, a second; NaN: unknown.
    pub rates: [f64; 2],
    /// Whether an archive FAILURES found them to be aberrant; NaN: there is none.
    pub failures: [f64; 2],
}

/// What a sink has done since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Values that are kept.
    pub kept: u64,
    /// Values that were refused for good.
    pub refused: u64,
    /// Values that had to wait, because somebody had the file locked or the keeper was away.
    pub delayed: u64,
    /// Values that wait now.
    pub waiting: u64,
    /// Values that waited and were given up, because there were too many.
    pub dropped: u64,
    /// Series that began.
    pub created: u64,
    /// Series whose definition was changed.
    pub tuned: u64,
    /// Connections that were made again.
    pub reconnected: u64,
}

impl Report {
    /// Nothing; memory is kept.
    pub fn clear(&mut self) {
        self.refused.clear();
        self.rates.clear();
        self.troubles.clear();
    }

    /// Notes a value that was not kept.
    pub(super) fn refuse(&mut self, target: u32, cause: impl Into<String>) {
        let cause = cause.into();
        self.refused.push(Refusal { target, cause });
    }
}
