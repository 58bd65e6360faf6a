//! The series of a configuration's targets.

use super::{Kind, Layout, Layouts, POINTS_KEPT_S, Series, Spans, heartbeat_s, step_s};
use crate::mrtg_log::{LogRule, RateKind, Unknown};
use kymo_wire::mrtg_cfg::{Choice, Config, Globals, Keyword, LogFormat, SourceKind, Target};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Place of a configuration's series.
#[derive(Clone, Debug)]
pub struct Home {
    /// `LogDir`, or the folder used instead.
    pub log_dir: PathBuf,
    /// Prefix of names in a store.
    pub prefix: Vec<u8>,
}

impl Home {
    /// The place of a configuration's series in a store with files below `base`. If LogDir is below `base`, names are relative to
    /// it, so that the store's files are those of MRTG; otherwise they begin with `mrtg/` and the name of the configuration.
    pub fn new(log_dir: &Path, config: &[u8], base: Option<&Path>) -> Home {
        let below = base.and_then(|base| log_dir.strip_prefix(base).ok());
        let mut prefix = match below {
            Some(below) => below.as_os_str().as_bytes().to_vec(),
            None => [b"mrtg/", config].concat(),
        };
        if !prefix.is_empty() {
            prefix.push(b'/');
        }
        Home {
            log_dir: log_dir.into(),
            prefix,
        }
    }
}

impl Series {
    /// The series of all targets, in their order.
    pub fn of_all(config: &Config, home: &Home) -> Vec<Series> {
        let mut layouts = Layouts::default();
        let targets = config.targets();
        let series = targets.map(|target| Series::of(config.globals(), target, home, &mut layouts));
        series.collect()
    }

    /// The series of a target.
    pub fn of(globals: &Globals, target: Target, home: &Home, layouts: &mut Layouts) -> Series {
        let max = match target.abs_max() {
            Some(max) => [max; 2],
            None => target.max_bytes(),
        };
        let below = below_log_dir(target);
        let (path, folder_bytes) = joined(&home.log_dir, &below);
        Series {
            path,
            folder_bytes,
            name: [&home.prefix[..], &below].concat(),
            step_s: step_s(globals.interval_s),
            heartbeat_s: heartbeat_s(globals.interval_s),
            kind: match target.source_kind() {
                SourceKind::Counter => Kind::Counter,
                SourceKind::Gauge => Kind::Gauge,
                SourceKind::Absolute => Kind::Absolute,
                SourceKind::Derive => Kind::Derive,
            },
            max: max.map(|max| (max > 0).then_some(max)),
            archives: layouts.archives(layout(globals, target)),
            points_kept_s: POINTS_KEPT_S,
            log: log_rule(target),
            max_age_s: globals.max_age_s,
        }
    }
}

/// The .rrd file of a target.
pub fn rrd_path(target: Target, log_dir: &Path) -> PathBuf {
    joined(log_dir, &below_log_dir(target)).0
}

/// Path of a target's .rrd file below `LogDir`.
fn below_log_dir(target: Target) -> Vec<u8> {
    let mut below = folder(target);
    below.extend_from_slice(&target.name());
    below.extend_from_slice(b".rrd");
    below
}

/// A path below a folder, and how many of its bytes are the folder's with its slash.
fn joined(folder: &Path, below: &[u8]) -> (PathBuf, usize) {
    let mut path = folder.as_os_str().as_bytes().to_vec();
    if !path.ends_with(b"/") {
        path.push(b'/');
    }
    let folder_bytes = path.len();
    path.extend_from_slice(below);
    (PathBuf::from(OsString::from_vec(path)), folder_bytes)
}

fn log_rule(target: Target) -> LogRule {
    let has = |choice| target.options().has(choice);
    let [one, two] = target.max_bytes();
    let bound = target.abs_max().unwrap_or(one.max(two));
    LogRule {
        kind: match target.source_kind() {
            SourceKind::Gauge => RateKind::Gauge,
            SourceKind::Absolute => RateKind::Absolute,
            // MRTG refuses DERIVE for its own logs, so it takes no part here.
            SourceKind::Derive => RateKind::Counter,
            SourceKind::Counter if has(Choice::Perhour) => RateKind::PerHour,
            SourceKind::Counter if has(Choice::Perminute) => RateKind::PerMinute,
            SourceKind::Counter => RateKind::Counter,
        },
        bound: i64::try_from(bound).unwrap_or(i64::MAX),
        unknown: match has(Choice::Unknaszero) {
            true => Unknown::Zero,
            false => Unknown::Repeat,
        },
    }
}

/// `Directory` with a slash at the end.
fn folder(target: Target) -> Vec<u8> {
    let folder = target.value(Keyword::Directory);
    let mut folder = folder.map_or(Vec::new(), |folder| folder.into_owned());
    if !folder.is_empty() && !folder.ends_with(b"/") {
        folder.push(b'/');
    }
    folder
}

fn layout(globals: &Globals, target: Target) -> Layout {
    let number = |keyword| {
        let text = target.value(keyword)?;
        std::str::from_utf8(&text).ok()?.trim().parse().ok()
    };
    let seasonal = target.value(Keyword::RrdHwRras).unwrap_or_default();
    let words = seasonal.split(u8::is_ascii_whitespace);
    Layout {
        interval_s: globals.interval_s,
        spans: match globals.log_format {
            LogFormat::Rrdtool => Spans::Rrd,
            LogFormat::Rateup => Spans::Log,
        },
        rows: [
            number(Keyword::RrdRowCount),
            number(Keyword::RrdRowCount30m),
            number(Keyword::RrdRowCount2h),
            number(Keyword::RrdRowCount1d),
        ],
        seasonal: words
            .filter(|word| !word.is_empty())
            .map(<[u8]>::to_vec)
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_a_store() {
        for (log_dir, base, prefix) in [
            ("/var/www/mrtg", None, "mrtg/core/"),
            ("/var/www/mrtg", Some("/var/lib/rrd"), "mrtg/core/"),
            ("/var/lib/rrd/x/y", Some("/var/lib/rrd"), "x/y/"),
            ("/var/lib/rrd/", Some("/var/lib/rrd"), ""),
        ] {
            let home = Home::new(Path::new(log_dir), b"core", base.map(Path::new));
            assert_eq!(home.prefix, prefix.as_bytes(), "{log_dir} {base:?}");
        }
    }
}
