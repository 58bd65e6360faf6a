//! How a target's numbers come about: one reading, or arithmetic with several.

/// What a target's number is computed from. [`Config::evaluate`](super::Config::evaluate) does it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expression {
    /// A reading alone: its number in [`Config::readings`](super::Config::readings).
    Reading(u32),
    /// A sum of readings, the usual thing beside a reading alone.
    Sum(ReadingRange),
    /// Anything else.
    Program(ProgramRange),
}

/// A place among the readings that a configuration's sums have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadingRange {
    pub(super) start: u32,
    pub(super) len: u32,
}

/// A place among a configuration's programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramRange {
    pub(super) start: u32,
    pub(super) len: u32,
}

/// Which of a target's two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The first.
    In,
    /// The second.
    Out,
}

/// What becomes of decimals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// MRTG keeps them of gauges in `.rrd` files.
    Keep,
    /// Whole numbers.
    Round,
}
