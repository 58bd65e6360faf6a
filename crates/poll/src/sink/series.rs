//! The series of a target: MRTG's data sources and archives, the path of its .rrd file, and its name in a store.

mod configured;

pub use configured::{Home, rrd_path};

use crate::mrtg_log::{Conversion, LogRule, RateKind};
use kymo_rrd::create::{Create, create};
use kymo_rrd::take_rows;
use kymo_rrd::{Error, Rrd};
use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

/// Seconds for which a store keeps single values: 93 days, for the 95th percentile of a month.
pub const POINTS_KEPT_S: u32 = 93 * 86_400;
/// Smallest heartbeat in MRTG, seconds.
const HEARTBEAT_LEAST_S: u32 = 600;
/// Rows of an archive that MRTG creates; then those of its .log: seconds of a row, and number of rows.
const ROWS: u32 = 800;
const LOGGED: [(u32, u32); 4] = [(300, 600), (1800, 600), (7200, 600), (86_400, 732)];
/// Names of the columns, which MRTG gives its data sources.
pub const COLUMNS: [&str; 2] = ["ds0", "ds1"];

/// Kind of a target's values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A counter that counts upwards and wraps.
    #[default]
    Counter,
    /// A value as it is.
    Gauge,
    /// A counter that each read resets to 0.
    Absolute,
    /// A counter that goes up or down.
    Derive,
}

impl Kind {
    /// The kind as rrdtool writes it.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Counter => "COUNTER",
            Kind::Gauge => "GAUGE",
            Kind::Absolute => "ABSOLUTE",
            Kind::Derive => "DERIVE",
        }
    }
}

/// Formats of history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Spans {
    /// `LogFormat: rrdtool`: the archives that MRTG creates.
    #[default]
    Rrd,
    /// Any other format: the spans of MRTG's own .log files.
    Log,
}

/// Settings that determine the archives of a series.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    /// Seconds of `Interval`.
    pub interval_s: u32,
    /// Format of the history.
    pub spans: Spans,
    /// `RRDRowCount`, `RRDRowCount30m`, `RRDRowCount2h`, `RRDRowCount1d`; `None`: MRTG's default.
    pub rows: [Option<u32>; 4],
    /// `RRDHWRRAs`: `RRA:` words that follow the others.
    pub seasonal: Vec<Vec<u8>>,
}

/// `RRA:` words of a series.
pub type Archives = Arc<[Vec<u8>]>;

/// Archives by layout; series of the same layout share them.
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

/// Seconds that MRTG passes to `--step`. It converts the interval to minutes as a double and back.
pub fn step_s(interval_s: u32) -> u32 {
    (minutes(interval_s) * 60.0) as u32
}

/// The heartbeat that MRTG gives series of this interval, seconds.
pub fn heartbeat_s(interval_s: u32) -> u32 {
    step_s(interval_s).saturating_mul(2).max(HEARTBEAT_LEAST_S)
}

/// Minutes of an interval as MRTG stores them.
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

    /// Points of a row and number of rows of each archive that MRTG creates.
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

    /// Points of a row and number of rows of each archive of a .log. If a row is shorter than the interval, an archive has fewer
    /// rows but covers the same time.
    fn as_logged(&self) -> Vec<(u32, u32)> {
        let step = step_s(self.interval_s).max(1);
        let span = |&(seconds, rows): &(u32, u32)| {
            let points = (seconds / step).max(1);
            (points, (seconds * rows).div_ceil(points * step))
        };
        LOGGED.iter().map(span).collect()
    }
}

/// The series of a target and its file.
#[derive(Clone, Debug)]
pub struct Series {
    /// Path of its .rrd file in MRTG: `LogDir[/Directory]/TARGET.rrd`.
    pub path: PathBuf,
    /// Length of LogDir and the slash behind it in `path`, which relative names omit.
    pub folder_bytes: usize,
    /// Name in a store: the path below the base, with `.rrd`.
    pub name: Vec<u8>,
    /// Seconds of a primary data point.
    pub step_s: u32,
    /// Seconds without a value after which the rate is unknown.
    pub heartbeat_s: u32,
    /// Kind of both values.
    pub kind: Kind,
    /// Largest rates; higher ones are unknown. `None`: no limit.
    pub max: [Option<u64>; 2],
    /// Archives as `RRA:` words.
    pub archives: Archives,
    /// Seconds for which a store keeps single values.
    pub points_kept_s: u32,
    /// How values become rates in MRTG's own log.
    pub log: LogRule,
    /// `MaxAge`, seconds: a file that was last changed before that is not updated.
    pub max_age_s: Option<u64>,
}

impl Series {
    /// Data sources as `DS:` words.
    pub fn sources(&self) -> [Vec<u8>; 2] {
        let (kind, heartbeat) = (self.kind.word(), self.heartbeat_s);
        [0, 1].map(|at| {
            let (name, max) = (COLUMNS[at], self.max_word(at));
            format!("DS:{name}:{kind}:{heartbeat}:0:{max}").into_bytes()
        })
    }

    /// The file with the whole history of the series' .log, as MRTG converts it. `random` is any number, from which the first row of
    /// each archive follows. `Err`: the text is no log.
    pub fn convert_log(&self, text: &[u8], random: &mut u64) -> Result<Rrd, String> {
        let conversion = Conversion {
            kind: match self.kind {
                Kind::Gauge => "GAUGE",
                Kind::Absolute => "ABSOLUTE",
                // A .log has no DERIVE.
                Kind::Counter | Kind::Derive => "COUNTER",
            },
            heartbeat_s: self.step_s.saturating_mul(2),
            max: self
                .max
                .map(|max| max.map_or("NaN".into(), |max| max.to_string())),
            divisors: match self.log.kind {
                RateKind::PerHour => vec![3600],
                RateKind::PerMinute => vec![60],
                RateKind::Counter | RateKind::Absolute | RateKind::Gauge => Vec::new(),
            },
        };
        conversion.convert(text, random)
    }

    /// A file with the definitions of the series and the history of its .log. A poller that goes on with the series in a store
    /// finds the archives that it would make itself, which are not those of [`Series::convert_log`].
    pub fn with_history(&self, log: &[u8], random: &mut u64) -> Result<Rrd, String> {
        let converted = self.convert_log(log, random)?;
        let now_s = converted.header.last_up;
        let made = self.create(None, now_s, random, &[&converted]);
        let mut made = made.map_err(|error| error.text)?;
        take_rows(&mut made, &converted);
        Ok(made)
    }

    /// A file with the definitions of the series and the rows of others. `start_s`, seconds since 1970: before its first value;
    /// `None`: the last update of the others.
    pub(super) fn create(
        &self,
        start_s: Option<i64>,
        now_s: i64,
        random: &mut u64,
        others: &[&Rrd],
    ) -> Result<Rrd, Error> {
        let sources = self.sources();
        let words = sources.iter().chain(self.archives.iter());
        let words: Vec<&[u8]> = words.map(|word| &word[..]).collect();
        let request = Create {
            file_name: self.path.as_os_str().as_bytes(),
            step: u64::from(self.step_s),
            start: start_s,
            definitions: &words,
        };
        create(&request, now_s, random, None, others)
    }

    /// The maximum of a column in rrdtool's notation.
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
        // Arguments of RRDs::create in MRTG 2.17.10.
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
