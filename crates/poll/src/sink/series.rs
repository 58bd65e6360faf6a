//! What a target's series consists of: MRTG's data sources and archives, where its .rrd file lies, and what it is called in a store.

mod configured;

pub use configured::Home;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Seconds that a target's values are kept as they were sent, where a store keeps them: 93 days, for the 95th percentile of a month.
pub const POINTS_KEPT_S: u32 = 93 * 86_400;
/// MRTG's least heartbeat.
const HEARTBEAT_LEAST_S: u32 = 600;
/// Rows of an archive that MRTG creates, and those of its .log: seconds of a row, and how many.
const ROWS: u32 = 800;
const LOGGED: [(u32, u32); 4] = [(300, 600), (1800, 600), (7200, 600), (86_400, 732)];
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

/// What says which archives a series has.
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

/// Lists of archives, one for all series of the same layout.
#[derive(Debug, Default)]
pub struct Layouts(HashMap<Layout, Archives>);

impl Layouts {
    /// The archives of this layout.
    pub fn archives(&mut self, layout: Layout) -> Archives {
        let made = self.0.entry(layout);
        let made = made.or_insert_with_key(|layout| layout.archives().into());
        Arc::clone(made)
    }
}

/// What MRTG puts as seconds into `--step`: the interval goes through minutes and a double on its way.
pub fn step_s(interval_s: u32) -> u32 {
    (minutes(interval_s) * 60.0) as u32
}

/// The heartbeat that MRTG gives series of this interval.
pub fn heartbeat_s(interval_s: u32) -> u32 {
    step_s(interval_s).saturating_mul(2).max(HEARTBEAT_LEAST_S)
}

/// As MRTG keeps it.
fn minutes(interval_s: u32) -> f64 {
    f64::from(interval_s / 60) + f64::from(interval_s % 60) / 60.0
}

impl Layout {
    fn archives(&self) -> Vec<Vec<u8>> {
        let spans = match self.spans {
            Spans::Rrd => self.as_created(),
            Spans::Log => self.as_logged(),
        };
        let words = ["AVERAGE", "MAX"].into_iter().flat_map(|function| {
            let word =
                move |(points, rows)| format!("RRA:{function}:0.5:{points}:{rows}").into_bytes();
            spans.clone().into_iter().map(word)
        });
        words.chain(self.seasonal.iter().cloned()).collect()
    }

    /// Points of a row, and rows.
    fn as_created(&self) -> Vec<(u32, u32)> {
        let interval = minutes(self.interval_s);
        let whole = |minutes: f64| (minutes / interval) as u32;
        let rows = |at: usize| self.rows[at].filter(|&rows| rows > 0);
        let mut spans = vec![(1, rows(0).unwrap_or(whole(4000.0)))];
        if interval < 30.0 {
            spans.push((whole(30.0), rows(1).unwrap_or(ROWS)));
        }
        spans.push((whole(120.0), rows(2).unwrap_or(ROWS)));
        spans.push((whole(1440.0), rows(3).unwrap_or(ROWS)));
        spans
    }

    /// Likewise, where rows of five minutes are finer than the interval: as long as they would be.
    fn as_logged(&self) -> Vec<(u32, u32)> {
        let step = step_s(self.interval_s).max(1);
        let span = |&(seconds, rows): &(u32, u32)| {
            let points = (seconds / step).max(1);
            (points, (seconds * rows).div_ceil(points * step))
        };
        LOGGED.iter().map(span).collect()
    }
}

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
    /// Seconds: a file that was changed longer ago is not updated any more.
    pub max_age_s: Option<u64>,
}

impl Series {
    /// `DS:` words.
    pub fn sources(&self) -> [Vec<u8>; 2] {
        let (kind, heartbeat) = (self.kind.word(), self.heartbeat_s);
        [0, 1].map(|at| {
            let (name, max) = (COLUMNS[at], self.max_word(at));
            format!("DS:{name}:{kind}:{heartbeat}:0:{max}").into_bytes()
        })
    }

    /// The maximum of a column as rrdtool takes it.
    pub fn max_word(&self, column: usize) -> String {
        let max = self.max.get(column).copied().flatten();
        max.map_or("U".into(), |max| max.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(interval_s: u32, spans: Spans) -> Layout {
        Layout {
            interval_s,
            spans,
            rows: [None; 4],
            seasonal: Vec::new(),
        }
    }

    fn words(layout: &Layout) -> String {
        let words = layout.archives();
        let words = words.iter().map(|word| String::from_utf8_lossy(word));
        let words: Vec<String> = words
            .map(|word| word.replace("RRA:", "").replace(":0.5:", ":"))
            .collect();
        words.join(" ")
    }

    #[test]
    fn archives_are_mrtgs() {
        // What RRDs::create was called with by MRTG 2.17.10.
        let cases = [
            (
                300,
                "AVERAGE:1:800 AVERAGE:6:800 AVERAGE:24:800 AVERAGE:288:800 MAX:1:800 MAX:6:800 MAX:24:800 MAX:288:800",
            ),
            (
                60,
                "AVERAGE:1:4000 AVERAGE:30:800 AVERAGE:120:800 AVERAGE:1440:800 MAX:1:4000 MAX:30:800 MAX:120:800 MAX:1440:800",
            ),
            (
                10,
                "AVERAGE:1:24000 AVERAGE:180:800 AVERAGE:720:800 AVERAGE:8640:800 MAX:1:24000 MAX:180:800 MAX:720:800 MAX:8640:800",
            ),
            (
                1800,
                "AVERAGE:1:133 AVERAGE:4:800 AVERAGE:48:800 MAX:1:133 MAX:4:800 MAX:48:800",
            ),
            (
                420,
                "AVERAGE:1:571 AVERAGE:4:800 AVERAGE:17:800 AVERAGE:205:800 MAX:1:571 MAX:4:800 MAX:17:800 MAX:205:800",
            ),
        ];
        for (interval_s, expected) in cases {
            assert_eq!(words(&layout(interval_s, Spans::Rrd)), expected);
        }
        let counted = Layout {
            rows: [Some(5), None, Some(0), Some(7)],
            seasonal: vec![b"RRA:HWPREDICT:10:0.1:0.0035:5".to_vec()],
            ..layout(300, Spans::Rrd)
        };
        assert_eq!(
            words(&counted),
            "AVERAGE:1:5 AVERAGE:6:800 AVERAGE:24:800 AVERAGE:288:7 MAX:1:5 MAX:6:800 MAX:24:800 MAX:288:7 \
             HWPREDICT:10:0.1:0.0035:5"
        );
    }

    #[test]
    fn without_rrdtool_the_spans_are_those_of_a_log() {
        let cases = [
            (
                300,
                "AVERAGE:1:600 AVERAGE:6:600 AVERAGE:24:600 AVERAGE:288:732 MAX:1:600 MAX:6:600 MAX:24:600 MAX:288:732",
            ),
            (
                600,
                "AVERAGE:1:300 AVERAGE:3:600 AVERAGE:12:600 AVERAGE:144:732 MAX:1:300 MAX:3:600 MAX:12:600 MAX:144:732",
            ),
        ];
        for (interval_s, expected) in cases {
            assert_eq!(words(&layout(interval_s, Spans::Log)), expected);
        }
    }

    #[test]
    fn a_step_is_what_perl_makes_of_it() {
        for (interval_s, step, heartbeat) in [
            (1, 1, 600),
            (29, 29, 600),
            (300, 300, 600),
            (100, 99, 600),
            (301, 301, 602),
            (999, 998, 1996),
            (3600, 3600, 7200),
        ] {
            assert_eq!(
                (step_s(interval_s), heartbeat_s(interval_s)),
                (step, heartbeat)
            );
        }
    }
}
