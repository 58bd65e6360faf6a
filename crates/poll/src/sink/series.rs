//! What a target's series consists of: MRTG's data sources and archives, where its .rrd file lies, and what it is called in a store.

use std::path::PathBuf;
use std::sync::Arc;

/// Seconds that a target's values are kept as they were sent, where a store keeps them: 93 days, for the 95th percentile of a month.
pub const POINTS_KEPT_S: u32 = 93 * 86_400;
/// MRTG's least heartbeat.
const HEARTBEAT_LEAST_S: u32 = 600;
/// Columns, as MRTG names its data sources.
pub const COLUMNS: [&str; 2] = ["ds0", "ds1"];

/// What the values of a target are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Counts upwards, and wraps.
    #[default]
    Counter,
    /// Is what it is.
    Gauge,
    /// Counts, and begins at 0 again when it is read.
    Absolute,
    /// Counts upwards or downwards.
    Derive,
}

impl Kind {
    /// As rrdtool writes it.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Counter => "COUNTER",
            Kind::Gauge => "GAUGE",
            Kind::Absolute => "ABSOLUTE",
            Kind::Derive => "DERIVE",
        }
    }
}

/// What kind of history is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Spans {
    /// `LogFormat: rrdtool`: archives as MRTG creates them.
    #[default]
    Rrd,
    /// Without: the spans of MRTG's own .log files.
    Log,
}

/// What says which archives a series has; targets that agree share one list ([`Archives`]).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    /// Seconds of `Interval`.
    pub interval_s: u32,
    /// What kind of history.
    pub spans: Spans,
    /// `RRDRowCount`, `RRDRowCount30m`, `RRDRowCount2h`, `RRDRowCount1d`; `None`: MRTG's own.
    pub rows: [Option<u32>; 4],
    /// `RRDHWRRAs`: words behind the others.
    pub seasonal: Vec<Vec<u8>>,
}

/// `RRA:` words of a series.
pub type Archives = Arc<[Vec<u8>]>;

/// The series of a target.
#[derive(Clone, Debug)]
pub struct Series {
    /// MRTG's path of its .rrd file: `LogDir[/Directory]/TARGET.rrd`.
    pub path: PathBuf,
    /// How many bytes of that are LogDir and the slash behind it: what is cut where names are relative.
    pub folder_bytes: usize,
    /// Its name in a store: below the base, with `.rrd`.
    pub name: Vec<u8>,
    /// Seconds of a primary data point.
    pub step_s: u32,
    /// Seconds without a value after which nothing is known.
    pub heartbeat_s: u32,
    /// What both values are.
    pub kind: Kind,
    /// No rate above these is believed; `None`: any is.
    pub max: [Option<u64>; 2],
    /// What is kept, `RRA:` words.
    pub archives: Archives,
    /// Seconds that values are kept as they were sent, where a store keeps them.
    pub points_kept_s: u32,
}

impl Series {
    /// The heartbeat that MRTG gives series of this interval.
    pub fn heartbeat_s(interval_s: u32) -> u32 {
        interval_s.saturating_mul(2).max(HEARTBEAT_LEAST_S)
    }
}
