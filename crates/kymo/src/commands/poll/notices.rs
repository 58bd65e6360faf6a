//! Notices about a configuration before it is polled. A run from cron gives none: its lines would be a mail in each cycle.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use kymo_poll::engine;
use kymo_poll::sink::rrd_path;
use kymo_wire::mrtg_cfg::{Config, LogFormat, Target};

use super::{Settings, part};

/// Says what `--check` and a daemon say beside mistakes.
pub(super) fn say_all(configs: &[Config], settings: &Settings) {
    for config in configs {
        say_conversion(config, settings);
        say_outrunning(config, settings);
    }
}

/// Says how many targets have their history in a .log, and what becomes of it.
fn say_conversion(config: &Config, settings: &Settings) {
    let globals = config.globals();
    if globals.log_format == LogFormat::Rateup {
        return;
    }
    let log_dir = settings.log_dir.as_ref().unwrap_or(&globals.log_dir);
    let count = unconverted(config, log_dir);
    let is_remote = part::rrdcached(globals).is_some_and(|address| !address.starts_with("unix:"));
    let fate = match settings.on_demand || is_remote {
        true => "stays there, as no .rrd files are written here",
        false => "goes into their .rrd files with the first values",
    };
    let targets = match count {
        0 => return,
        1 => "1 target".to_string(),
        count => format!("{count} targets"),
    };
    let line = format!("the history of {targets} is in .log files; it {fate}");
    settings.log.say(&line);
}

/// How many targets have a .log and no .rrd. Each folder is listed once, as a look for each of many thousand targets would take
/// longer than the configuration's reading.
fn unconverted(config: &Config, log_dir: &Path) -> usize {
    let mut logs: HashMap<PathBuf, HashSet<PathBuf>> = HashMap::new();
    let has_log = |target: &Target| {
        let rrd = rrd_path(*target, log_dir);
        let folder = rrd.parent().unwrap_or(log_dir);
        let logs = logs
            .entry(folder.into())
            .or_insert_with_key(|folder| logs_in(folder));
        !logs.is_empty() && logs.contains(&rrd.with_extension("log")) && !rrd.exists()
    };
    config.targets().filter(has_log).count()
}

/// The .log files of a folder; none if it cannot be listed.
fn logs_in(folder: &Path) -> HashSet<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    paths
        .filter(|path| path.extension().is_some_and(|end| end == "log"))
        .collect()
}

/// Names targets of 1 Gbit/s and more whose counters wrap several times in an interval.
fn say_outrunning(config: &Config, settings: &Settings) {
    let targets = engine::outrunning(config);
    if !targets.is_empty() {
        settings.log.say(&format!(
            "counters of 32 bits wrap within 35 s at 1 Gbit/s and lose values; name version 2 (HOST:::::2) and no noHC for {}",
            part::listed(&targets, config)
        ));
    }
}
