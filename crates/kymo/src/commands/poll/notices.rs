//! Notices about a configuration before it is polled. A run from cron gives none: its lines would be a mail in each cycle.

use kymo_poll::engine;
use kymo_poll::sink::{Home, Series};
use kymo_wire::mrtg_cfg::{Config, LogFormat};

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
    let series = Series::of_all(config, &Home::new(log_dir, b"", None));
    let has_log =
        |series: &&Series| series.path.with_extension("log").exists() && !series.path.exists();
    let count = series.iter().filter(has_log).count();
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
