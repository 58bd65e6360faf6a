//! Definitions of .rrd files as collectd's rrdtool plugin makes them: its defaults, and its options StepSize, HeartBeat,
//! RRARows, RRATimespan, XFF and RRASingle.

use kymo_base::printf::put_fixed;

use super::cdtime::Cdtime;
use super::types_db::DataSource;

/// Options of the rrdtool plugin.
#[derive(Clone, Debug, PartialEq)]
pub struct RrdSettings {
    /// StepSize, seconds; 0: the interval of the values.
    pub step_s: u32,
    /// HeartBeat, seconds; 0: twice the step if StepSize is set, or else twice the interval of the values.
    pub heartbeat_s: u32,
    /// RRARows: approximate rows per archive.
    pub rows: u32,
    /// RRATimespan, seconds; empty: an hour, a day, a week, 31 days, 366 days.
    pub timespans_s: Vec<u32>,
    /// XFF, from 0 up to 1.
    pub xff: f64,
    /// RRASingle.
    pub archives: Archives,
}

/// Archives of each timespan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Archives {
    /// Average, minimum and maximum.
    #[default]
    Three,
    /// The average alone, for `RRASingle true`.
    Average,
}

/// A consolidation function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Cf {
    Average,
    Min,
    Max,
}

impl Cf {
    /// The function as rrdtool spells it.
    pub fn word(self) -> &'static str {
        match self {
            Cf::Average => "AVERAGE",
            Cf::Min => "MIN",
            Cf::Max => "MAX",
        }
    }
}

/// Arguments of `rrdtool create`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RrdDefinition {
    /// Seconds from one row of the finest archive to the next.
    pub step_s: u64,
    /// Words `DS:...`, then words `RRA:...`. The file begins one second before the first value (`--start`).
    pub words: Vec<String>,
}

const TIMESPANS_S: [u32; 5] = [3_600, 86_400, 604_800, 2_678_400, 31_622_400];

impl Default for RrdSettings {
    fn default() -> RrdSettings {
        RrdSettings {
            step_s: 0,
            heartbeat_s: 0,
            rows: 1200,
            timespans_s: Vec::new(),
            xff: 0.1,
            archives: Archives::Three,
        }
    }
}

impl RrdSettings {
    /// Step of a file for values at this interval, in seconds. `None`: the interval is less than half a second, and
    /// collectd makes no file.
    pub fn step_s(&self, interval: Cdtime) -> Option<u64> {
        let step_s = match self.step_s {
            0 => interval.seconds(),
            step_s => u64::from(step_s),
        };
        (step_s > 0).then_some(step_s)
    }

    /// Seconds without a value after which the data is unknown.
    pub fn heartbeat_s(&self, interval: Cdtime) -> u64 {
        match (self.heartbeat_s, self.step_s) {
            (0, 0) => Cdtime(interval.0.saturating_mul(2)).seconds(),
            (0, step_s) => 2 * u64::from(step_s),
            (heartbeat_s, _) => u64::from(heartbeat_s),
        }
    }

    /// Pairs of steps per row and number of rows, one pair per timespan, the shortest timespan first.
    pub fn rows(&self, step_s: u64) -> Vec<(u64, u64)> {
        let mut timespans = match self.timespans_s.is_empty() {
            true => TIMESPANS_S.to_vec(),
            false => self.timespans_s.clone(),
        };
        timespans.sort_unstable();
        let (rows, step_s) = (u64::from(self.rows.max(1)), step_s.max(1));
        let of_span = |(at, span): (usize, &u32)| {
            let mut span = u64::from(*span);
            if span / step_s < rows {
                span = rows.saturating_mul(step_s);
            }
            let steps = match at {
                0 => 1,
                _ => (span / rows.saturating_mul(step_s)).max(1),
            };
            (steps, span.div_ceil(steps.saturating_mul(step_s)))
        };
        timespans.iter().enumerate().map(of_span).collect()
    }

    /// The whole definition; `None` as for [`RrdSettings::step_s`].
    pub fn define(&self, interval: Cdtime, sources: &[DataSource]) -> Option<RrdDefinition> {
        let step_s = self.step_s(interval)?;
        let heartbeat_s = self.heartbeat_s(interval);
        let functions: &[Cf] = match self.archives {
            Archives::Three => &[Cf::Average, Cf::Min, Cf::Max],
            Archives::Average => &[Cf::Average],
        };
        let mut words: Vec<String> = sources
            .iter()
            .map(|source| source_word(source, heartbeat_s))
            .collect();
        for (steps, rows) in self.rows(step_s) {
            let archive = |cf: &Cf| format!("RRA:{}:{:.10}:{steps}:{rows}", cf.word(), self.xff);
            words.extend(functions.iter().map(archive));
        }
        Some(RrdDefinition { step_s, words })
    }
}

fn source_word(source: &DataSource, heartbeat_s: u64) -> String {
    let (min, max) = (limit(source.min), limit(source.max));
    format!(
        "DS:{}:{}:{heartbeat_s}:{min}:{max}",
        source.name,
        source.kind.word()
    )
}

/// A limit as `%f`; `U` for none.
fn limit(limit: Option<f64>) -> String {
    let Some(limit) = limit else {
        return "U".to_string();
    };
    let mut text = Vec::new();
    put_fixed(&mut text, limit, 6);
    String::from_utf8_lossy(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::super::types_db::TypesDb;
    use super::*;

    fn words(settings: &RrdSettings, interval: Cdtime, type_name: &str) -> String {
        let types = TypesDb::embedded();
        let sources = types.sources(type_name.as_bytes()).unwrap();
        let definition = settings.define(interval, sources).unwrap();
        format!("-s {} {}", definition.step_s, definition.words.join(" "))
    }

    /// Expects the output of `rrdtool info` for a file that collectd 5.12 made. (rrdtool reads only 18 characters of a
    /// limit; so that of `timestamp` is a hundredth there.)
    #[test]
    fn defaults_are_collectds() {
        let settings = RrdSettings::default();
        let ten = Cdtime::from_seconds(10);
        assert_eq!(
            settings.rows(10),
            [(1, 1200), (7, 1235), (50, 1210), (223, 1202), (2635, 1201)]
        );
        let made = words(&settings, ten, "if_octets");
        assert!(made.starts_with(
            "-s 10 DS:rx:DERIVE:20:0.000000:U DS:tx:DERIVE:20:0.000000:U \
             RRA:AVERAGE:0.1000000000:1:1200 RRA:MIN:0.1000000000:1:1200 RRA:MAX:0.1000000000:1:1200 \
             RRA:AVERAGE:0.1000000000:7:1235 "
        ));
        assert!(made.ends_with(" RRA:MAX:0.1000000000:2635:1201"));
        assert_eq!(made.split(' ').count(), 2 + 2 + 15);
        assert!(words(&settings, ten, "smart_temperature").contains(":20:-300.000000:300.000000 "));
        assert!(
            words(&settings, ten, "timestamp")
                .contains(":20:0.000000:18446744073709551616.000000 ")
        );
    }

    /// Made by collectd as well, except RRASingle, which the installed collectd lacks.
    #[test]
    fn options_are_collectds() {
        let settings = RrdSettings {
            step_s: 60,
            rows: 100,
            timespans_s: vec![86_400, 6_000],
            xff: 0.5,
            archives: Archives::Average,
            ..RrdSettings::default()
        };
        assert_eq!(
            words(&settings, Cdtime::from_seconds(10), "load"),
            "-s 60 DS:shortterm:GAUGE:120:0.000000:5000.000000 DS:midterm:GAUGE:120:0.000000:5000.000000 \
             DS:longterm:GAUGE:120:0.000000:5000.000000 \
             RRA:AVERAGE:0.5000000000:1:100 RRA:AVERAGE:0.5000000000:14:103"
        );
        let settings = RrdSettings {
            heartbeat_s: 35,
            ..settings
        };
        assert!(words(&settings, Cdtime::from_seconds(10), "load").contains(":GAUGE:35:"));
    }

    /// Step, heartbeat and rows of files that collectd 5.12 made of values at these intervals (in units of 2^-30 s), as
    /// `rrdtool info` showed them.
    #[test]
    fn any_interval_is_collectds() {
        const SECOND: u64 = 1 << 30;
        let settings = RrdSettings::default();
        for (units, step_s, heartbeat_s, rows) in [
            (
                SECOND / 2,
                1,
                1,
                "1:3600 72:1200 504:1200 2232:1200 26352:1200",
            ),
            (SECOND, 1, 2, "1:3600 72:1200 504:1200 2232:1200 26352:1200"),
            (
                SECOND * 5 / 4,
                1,
                3,
                "1:3600 72:1200 504:1200 2232:1200 26352:1200",
            ),
            (
                SECOND * 3 / 2,
                2,
                3,
                "1:1800 36:1200 252:1200 1116:1200 13176:1200",
            ),
            (
                SECOND * 5 / 2,
                3,
                5,
                "1:1200 24:1200 168:1200 744:1200 8784:1200",
            ),
            (
                7 * SECOND,
                7,
                14,
                "1:1200 10:1235 72:1200 318:1204 3764:1201",
            ),
            (
                60 * SECOND,
                60,
                120,
                "1:1200 1:1440 8:1260 37:1207 439:1201",
            ),
            (
                300 * SECOND,
                300,
                600,
                "1:1200 1:1200 1:2016 7:1276 87:1212",
            ),
            (
                3600 * SECOND,
                3600,
                7200,
                "1:1200 1:1200 1:1200 1:1200 7:1255",
            ),
            (
                86_400 * SECOND,
                86_400,
                172_800,
                "1:1200 1:1200 1:1200 1:1200 1:1200",
            ),
        ] {
            let interval = Cdtime(units);
            assert_eq!(settings.step_s(interval), Some(step_s), "{units}");
            assert_eq!(settings.heartbeat_s(interval), heartbeat_s, "{units}");
            let made = settings.rows(step_s).into_iter();
            let made: Vec<String> = made
                .map(|(steps, rows)| format!("{steps}:{rows}"))
                .collect();
            assert_eq!(made.join(" "), rows, "{units}");
        }
        // collectd makes no file for values each 0.4 s.
        assert_eq!(settings.step_s(Cdtime(SECOND * 2 / 5)), None);
        let longest = Cdtime(u64::MAX);
        assert_eq!(
            (settings.step_s(longest), settings.heartbeat_s(longest)),
            (Some((1 << 34) - 1), (1 << 34) - 1)
        );
    }

    #[test]
    fn any_step_has_rows() {
        for step_s in [0, 1, 3, 7, 60, 300, 86_400, 1 << 34, u64::MAX] {
            for rows in [0, 1, 1200, u32::MAX] {
                let settings = RrdSettings {
                    rows,
                    ..RrdSettings::default()
                };
                let made = settings.rows(step_s);
                assert_eq!(made.len(), 5);
                assert!(
                    made.iter().all(|&(steps, rows)| steps >= 1 && rows >= 1),
                    "{step_s} {rows}"
                );
            }
        }
    }
}
