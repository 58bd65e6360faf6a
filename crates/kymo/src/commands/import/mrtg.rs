//! The history that MRTG has kept: the targets of configurations with their .rrd files or its own .log files, and .log files
//! alone. Series have the names and definitions that a poller of `kymo serve` gives them, so it goes on with them.

use std::fs::{self, File};
use std::io::{ErrorKind, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, ensure};
use kymo_poll::mrtg_log::{LogRule, RateKind, Unknown};
use kymo_poll::sink::{Home, Kind, Layout, Layouts, POINTS_KEPT_S, Series, Spans, heartbeat_s};
use kymo_rrd::Header;
use kymo_sys::machine;
use kymo_wire::keeper::ImportedSeries;
use kymo_wire::mrtg_cfg::{self, Config, LogFormat};

use super::{Importer, count, read_locked};
use crate::commands::data::place;
use crate::commands::poll::{CfgFiles, names_of};
use crate::output::progress::WorkPace;

/// Most bytes of a .log; rateup writes a tenth of it.
const LOG_MAX: u64 = 1 << 20;
/// Seconds between two values, where no configuration says it.
const INTERVAL_S: u32 = 300;

/// Targets of MRTG.
pub(super) struct MrtgHistory {
    targets: Vec<HistoryOfTarget>,
    /// Names of targets that cannot be imported, with the reasons.
    refused: Vec<(Vec<u8>, String)>,
    /// State of the generator that chooses the first row of each archive.
    random: u64,
}

/// A target and the format of its history.
struct HistoryOfTarget {
    series: Series,
    format: LogFormat,
}

impl MrtgHistory {
    /// Reads configurations; a file whose name ends in `.log` is itself the history of a target. `data`: the folder that is
    /// imported into.
    pub(super) fn find(files: &[PathBuf], data: &Path) -> Result<MrtgHistory> {
        let mut random = [0; 8];
        machine::random(&mut random).context("cannot read random numbers")?;
        let mut source = MrtgHistory {
            targets: Vec::new(),
            refused: Vec::new(),
            random: u64::from_ne_bytes(random),
        };
        let is_log = |file: &PathBuf| file.extension().is_some_and(|end| end == "log");
        let (logs, configs): (Vec<PathBuf>, Vec<PathBuf>) = files.iter().cloned().partition(is_log);
        let base = place(data).ok().map(|(_, base)| base);
        let configs: Vec<PathBuf> = configs
            .iter()
            .map(|file| std::path::absolute(file).unwrap_or_else(|_| file.clone()))
            .collect();
        for (file, name) in configs.iter().zip(names_of(&configs)) {
            let config = read_config(file)?;
            let home = Home::new(&config.globals().log_dir, name.as_bytes(), base.as_deref());
            source.add_targets(&config, &home);
        }
        for file in logs {
            ensure!(
                file.is_file(),
                "cannot import {}: there is no such file",
                file.display()
            );
            source.targets.push(HistoryOfTarget {
                series: series_of_log(&file),
                format: LogFormat::Rateup,
            });
        }
        Ok(source)
    }

    fn add_targets(&mut self, config: &Config, home: &Home) {
        for left_out in config.left_out() {
            self.refused
                .push((left_out.target.clone(), left_out.why.to_string()));
        }
        let format = config.globals().log_format;
        let all = Series::of_all(config, home).into_iter();
        self.targets
            .extend(all.map(|series| HistoryOfTarget { series, format }));
    }

    /// Hands over all targets.
    pub(super) fn hand_over(mut self, importer: &mut Importer<'_>) -> Result<()> {
        for (name, why) in &self.refused {
            importer.leave_out(name, why);
        }
        let (pace, all) = (WorkPace::new(), count(self.targets.len()));
        for (at, target) in self.targets.iter().enumerate() {
            importer.show(&pace, "targets", (count(at), Some(all)));
            let name = target.series.name.clone();
            match target.read(&mut self.random) {
                Ok(file) => importer.add(ImportedSeries { name, file })?,
                Err(why) => importer.leave_out(&name, &why),
            }
        }
        Ok(())
    }
}

impl HistoryOfTarget {
    /// The bytes of an .rrd file with the history, or why there is none.
    fn read(&self, random: &mut u64) -> Result<Vec<u8>, String> {
        let Series { path, .. } = &self.series;
        // An empty one is the placeholder of a series of kymo.
        let has_rrd = fs::metadata(path).is_ok_and(|stat| stat.len() > 0);
        if self.format == LogFormat::Rrdtool && has_rrd {
            let bytes = read_locked(path)?;
            Header::parse(&bytes).map_err(|error| error.text)?;
            return Ok(bytes);
        }
        let log = path.with_extension("log");
        let text = read_log(&log).map_err(|error| match error.kind() {
            ErrorKind::NotFound if self.format == LogFormat::Rrdtool => {
                format!("there is neither {} nor {}", path.display(), log.display())
            }
            ErrorKind::NotFound => format!("there is no {}", log.display()),
            _ => format!("cannot read {}: {error}", log.display()),
        })?;
        let made = self.series.with_history(&text, random);
        made.map(|rrd| rrd.to_bytes())
            .map_err(|why| format!("{} cannot be converted: {why}", log.display()))
    }
}

fn read_config(file: &Path) -> Result<Config> {
    let read = mrtg_cfg::read(file.as_os_str().as_bytes(), &mut CfgFiles);
    read.map_err(|problems| {
        let lines: Vec<String> = problems.0.iter().map(ToString::to_string).collect();
        anyhow!("cannot import {}: {}", file.display(), lines.join("; "))
    })
}

/// The series of a .log without a configuration: MRTG's defaults, and no limit of rates.
fn series_of_log(file: &Path) -> Series {
    let stem = file.file_stem().unwrap_or_default().as_bytes();
    let layout = Layout {
        interval_s: INTERVAL_S,
        spans: Spans::Log,
        rows: [None; 4],
        seasonal: Vec::new(),
    };
    Series {
        path: file.with_extension("rrd"),
        folder_bytes: 0,
        name: [b"mrtg/", stem, b".rrd"].concat(),
        step_s: INTERVAL_S,
        heartbeat_s: heartbeat_s(INTERVAL_S),
        kind: Kind::Counter,
        max: [None; 2],
        archives: Layouts::default().archives(layout),
        points_kept_s: POINTS_KEPT_S,
        log: LogRule {
            kind: RateKind::Counter,
            bound: i64::MAX,
            unknown: Unknown::Repeat,
        },
        max_age_s: None,
    }
}

fn read_log(path: &Path) -> std::io::Result<Vec<u8>> {
    let stat = fs::metadata(path)?;
    if !stat.is_file() || stat.len() > LOG_MAX {
        let why = "it is no regular file, or larger than 1 MiB";
        return Err(std::io::Error::other(why));
    }
    let mut text = Vec::new();
    File::open(path)?.take(LOG_MAX).read_to_end(&mut text)?;
    Ok(text)
}
