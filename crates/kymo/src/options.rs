//! Switches of the plain commands and of collectl's style, and their values. Every wrong value is one line: `cannot use -X VALUE:
//! <cause>`.

pub(crate) mod adjusted;
pub(crate) mod intervals;
pub(crate) mod own_intervals;
pub(crate) mod refuse;
pub(crate) mod shape;
pub(crate) mod texts;

use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::{ArgAction, Args};
use kymo_kernel::subsystem;
use kymo_sys::machine;
use kymo_view::processes::Top;
use kymo_view::processes::{Columns, Filter};

use crate::options::intervals::{Intervals, Scans};
use crate::options::own_intervals::OwnIntervals;
use crate::options::shape::Shape;
use crate::options::texts::Texts;
use crate::process::daemon::Daemon;

/// Most bytes that are read of a file of `--procfilt`.
const PROCFILT_MAX: u64 = 1 << 20;

/// Options of a view, for live samples and for playback.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ViewOptions {
    /// One line of labelled columns for each subsystem instead of one for all
    #[arg(long)]
    pub verbose: bool,
    /// collectl's plot format; with -f into files
    #[arg(short = 'P', long, conflicts_with = "verbose")]
    pub plot: bool,
    /// Comma-separated values, one table a subsystem
    #[arg(long, conflicts_with_all = ["plot", "verbose"])]
    pub csv: bool,
    /// One JSON object a line
    #[arg(long, conflicts_with_all = ["plot", "verbose", "csv"])]
    pub json: bool,
    /// How to stamp and round: T time, d or D date and time, m milliseconds, U seconds since
    /// 1970, n counts instead of rates, 1 or 2 decimals; of plot files z not compressed,
    /// a append to those there are, c write them again, u with the time in their names; i what files begin with;
    /// g or G fractions of numbers from G on; x disks that are exceptions alone, see -l
    #[arg(
        short = 'o',
        long = "options",
        value_name = "dDTmUn12aczuigGx",
        action = ArgAction::Append,
        allow_hyphen_values = true
    )]
    pub stamp: Vec<String>,
    /// Same as -oU
    #[arg(long)]
    pub utc: bool,
    /// Separator of plot and CSV columns: a character, or its number
    #[arg(long, value_name = "C", allow_hyphen_values = true)]
    pub sep: Option<String>,
    /// Repeat the header every N lines; 0: once, -1: never
    #[arg(
        long = "hr",
        alias = "headerrepeat",
        value_name = "N",
        allow_hyphen_values = true
    )]
    pub header_repeat: Option<i64>,
    /// The first N processes by vsz rss syst usrt time rkb wkb iokb majf minf flt pid cpu thread ..., or slab caches by numobj actobj
    /// objsize numslab objslab totsize totchg totpct name; v: below one another, not in place
    #[arg(long, value_name = "SORT[,N[,v]]", num_args = 0..=1, default_missing_value = "")]
    pub top: Option<String>,
    /// Processes to show: c comm, C comm's beginning, f command line, p pid, P parent, u uid,
    /// U user; `+` with their threads; or a file of such, one a line
    #[arg(
        long,
        value_name = "TYPE[+]MATCH[,...]|FILE",
        allow_hyphen_values = true
    )]
    pub procfilt: Option<String>,
    /// Processes: i I/O columns, m memory, x context switches, s S start time, R priority as a number, t threads, uN width of users,
    /// wN arguments, r no folders, k without shells, c with children, f faults since birth, p no new ones, I no I/O read, z of --top no zeros
    #[arg(long, value_name = "imxsSRtuNwNrkcfpIz")]
    pub procopts: Option<String>,
    /// Begin at this time: 14:30, 20261121:14:30, 2026-11-21T14:30, -1h, now
    #[arg(long, value_name = "TIME[-THRU]", allow_hyphen_values = true)]
    pub from: Option<String>,
    /// End after this time
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub thru: Option<String>,
    #[command(flatten)]
    pub shape: Box<Shape>,
    #[command(flatten)]
    pub texts: Box<Texts>,
}

/// Options of sampling and recording.
#[derive(Args, Clone, Debug)]
pub(crate) struct RecordOptions {
    /// The subsystems' letters.
    #[arg(short = 's', long, value_name = "LETTERS", allow_hyphen_values = true, help = letters_help())]
    pub subsys: Option<String>,
    /// Seconds between samples; then of processes; default 1:60:120, with -f 10:60:120;
    /// 0: no pause, the others then count samples
    #[arg(
        short = 'i',
        long,
        value_name = "I[:I2[:I3]]",
        allow_hyphen_values = true
    )]
    pub interval: Option<String>,
    /// End after N intervals (N + 1 samples)
    #[arg(short = 'c', long, value_name = "N", allow_hyphen_values = true)]
    pub count: Option<String>,
    /// Folder of recordings, or with -P of plot files
    #[arg(short = 'f', long = "filename", value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Most bytes of all recordings in the folder: 100M, 1G
    #[arg(long, value_name = "SIZE")]
    pub cap: Option<String>,
    /// Delete what is older: 7d, 12h
    #[arg(long, value_name = "DURATION")]
    pub keep: Option<String>,
    /// End after this long: 30s, 5m, 2h, 1d, 1w
    #[arg(short = 'R', long, value_name = "DURATION", conflicts_with = "count")]
    pub runtime: Option<String>,
    /// At most this long from a sample to the disk; 0: each sample
    #[arg(long, value_name = "DURATION", default_value = "5s")]
    pub sync: String,
    /// With -P -f: also record
    #[arg(long)]
    pub rawtoo: bool,
    /// Also show live what is recorded
    #[arg(long)]
    pub show: bool,
    /// Record threads too
    #[arg(long)]
    pub threads: bool,
    /// Print what the run cost
    #[arg(long)]
    pub cost: bool,
    /// Read the kernel's files below this folder
    #[arg(long, value_name = "DIR", default_value = "/")]
    pub root: PathBuf,
    /// Write the number of each recorded sample to this file descriptor
    #[arg(long, value_name = "N", hide = true)]
    pub ack_fd: Option<i32>,
    /// Record what programs do, as this pipe says it
    #[arg(long, value_name = "N", hide = true)]
    pub activity_fd: Option<i32>,
    /// Give up, and say, what a recorder of kymo serve does not need
    #[cfg(feature = "serve")]
    #[arg(long, hide = true)]
    pub confined: bool,
    /// Seal a tail at so many bytes
    #[arg(long, value_name = "SIZE", hide = true)]
    pub seal_bytes: Option<String>,
    /// When to read /proc/PID/status
    #[arg(long, value_name = "always|never|auto", default_value = "auto",
          value_parser = ["always", "never", "auto"], hide_possible_values = true)]
    pub status: String,
    /// Go on reading slow files at each sample
    #[arg(long)]
    pub no_backoff: bool,
    /// A read that takes longer is an event
    #[arg(long, value_name = "MS", default_value = "10")]
    pub slow_ms: String,
    /// Begin at a multiple of the processes' interval, if these are read, not only of the first
    #[arg(long)]
    pub align: bool,
    /// Milliseconds after each beat at which samples are taken, beside what else wakes up then; 10, or 0 with --align and
    /// below -i .1
    #[arg(long, value_name = "MS")]
    pub phase: Option<u64>,
    #[command(flatten)]
    pub own_intervals: OwnIntervals,
    #[command(flatten)]
    pub daemon: Box<Daemon>,
    #[command(flatten)]
    pub familiar: Familiar,
    /// Started under collectl's name.
    #[arg(skip)]
    pub as_collectl: bool,
    /// What to leave out: `args` keeps the first word of command lines
    #[arg(long, value_name = "args", value_parser = ["args"], hide_possible_values = true)]
    pub redact: Option<String>,
    /// Processes to record.
    #[arg(skip)]
    pub chosen: ChosenProcesses,
}

/// Processes to record, and the recorded parts of them.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ChosenProcesses {
    /// Processes to record: c comm, C comm's beginning, f command line, g control group or container, p pid, P parent, u uid, U user; `+` with
    /// their threads; or a file of such, one a line
    #[arg(
        long,
        value_name = "TYPE[+]MATCH[,...]|FILE",
        allow_hyphen_values = true
    )]
    pub procfilt: Option<String>,
    /// What of processes is recorded: p no new ones, I no I/O, t threads, too
    #[arg(long, value_name = "pIt")]
    pub procopts: Option<String>,
}

impl ChosenProcesses {
    /// Reads `--procfilt` and `--procopts`.
    pub(crate) fn of(view: &ViewOptions) -> ChosenProcesses {
        ChosenProcesses {
            procfilt: view.procfilt.clone(),
            procopts: view.procopts.clone(),
        }
    }

    /// Replaces `--procfilt` by the contents of the file that it names.
    pub(crate) fn read_file(&mut self) -> Result<(), String> {
        read_filter(&mut self.procfilt)
    }

    /// True if `--procopts` has this letter.
    pub(crate) fn has(&self, letter: char) -> bool {
        let letters = self.procopts.as_deref().unwrap_or_default();
        letters.contains(letter)
    }

    /// The filter, if there is one.
    pub(crate) fn filter(&self) -> Result<Option<Filter>, String> {
        if let Some(letters) = &self.procopts {
            Columns::parse(letters)?;
        }
        self.procfilt.as_deref().map(Filter::parse).transpose()
    }
}

/// Switches of collectl that change little or nothing here, accepted so that scripts keep working.
#[derive(Args, Clone, Debug)]
pub(crate) struct Familiar {
    /// Do not say what is waited for
    #[arg(long)]
    pub quiet: bool,
    /// Go on when the terminal is closed
    #[arg(long)]
    pub nohup: bool,
    /// Let all other programs go first
    #[arg(short = 'N', long)]
    pub nice: bool,
    /// Without effect: each interval is written when it is over (see --sync)
    #[arg(short = 'F', long, value_name = "SECONDS")]
    pub flush: Option<u64>,
    /// Recorded, and written into what plot files begin with
    #[arg(long, value_name = "TEXT")]
    pub comment: Option<String>,
    /// All summaries but slabs
    #[arg(long, conflicts_with = "subsys")]
    pub all: bool,
    /// All there is, but for the summary of slabs
    #[arg(long = "ALL", conflicts_with_all = ["subsys", "all"])]
    pub all_details: bool,
}

impl ViewOptions {
    /// True if processes or slab caches are shown by default, without letters.
    pub(crate) fn is_of_processes(&self) -> bool {
        self.ranked().is_some()
    }

    /// Letter of the default view without letters: processes, or the slab caches of `--top`.
    pub(crate) fn ranked(&self) -> Option<&'static str> {
        let top = self.top.as_deref().map(|text| Top::parse(text, 1));
        match top {
            Some(Ok(top)) if top.letter() == 'y' => Some("Y"),
            None if self.shape.tree().is_none() => None,
            _ => Some("Z"),
        }
    }

    /// All letters of `-o`.
    pub(crate) fn stamp_letters(&self) -> String {
        self.stamp.concat()
    }

    /// Replaces `--procfilt` by the contents of the file that it names.
    pub(crate) fn read_files(&mut self) -> Result<(), String> {
        read_filter(&mut self.procfilt)
    }
}

/// Replaces a filter by the lines of the file that it names, without empty ones and those that begin with `#`.
fn read_filter(filter: &mut Option<String>) -> Result<(), String> {
    let file = filter.as_deref().map(Path::new);
    let Some(path) = file.filter(|path| path.is_file()) else {
        return Ok(());
    };
    let mut text = String::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(PROCFILT_MAX).read_to_string(&mut text))
        .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let lines = text.lines().map(str::trim);
    let tests: Vec<&str> = lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect();
    if tests.is_empty() {
        return Err(format!(
            "cannot use --procfilt {}: the file names no processes",
            path.display()
        ));
    }
    *filter = Some(tests.join(","));
    Ok(())
}

impl RecordOptions {
    /// The options that these words of a command line are.
    #[cfg(feature = "serve")]
    pub(crate) fn of_words<'a>(words: impl IntoIterator<Item = &'a str>) -> anyhow::Result<Self> {
        let command =
            RecordOptions::augment_args(clap::Command::new("record").no_binary_name(true));
        let matches = command.try_get_matches_from(words)?;
        Ok(<RecordOptions as clap::FromArgMatches>::from_arg_matches(
            &matches,
        )?)
    }

    /// Applies `--nohup` and `-N`, before any thread is started.
    pub(crate) fn settle(&self) -> Result<(), String> {
        if self.familiar.nohup {
            machine::ignore_hang_up();
        }
        if self.familiar.nice {
            machine::be_nice().map_err(|error| format!("cannot use --nice: {error}"))?;
        }
        Ok(())
    }

    /// The letters to sample: `-s`, or changes to `default`.
    pub(crate) fn letters(&self, default: &str) -> Result<String, String> {
        if self.familiar.all || self.familiar.all_details {
            return Ok(self.all_letters());
        }
        let default = match self.daemon.daemon {
            true => daemon_letters(),
            false => default.to_string(),
        };
        letters(self.subsys.as_deref(), &default)
    }

    fn all_letters(&self) -> String {
        let is_recorded = |letter: &char| {
            *letter != 'y' && (letter.is_ascii_lowercase() || self.familiar.all_details)
        };
        let letters = subsystem::ALL.iter().flat_map(|one| one.letters());
        letters.filter(is_recorded).collect()
    }

    /// Nanoseconds from a beat to its sample.
    pub(crate) fn phase_ns(&self, interval_ns: u64) -> Result<u64, String> {
        match self.phase {
            Some(ms) if ms * 1_000_000 < interval_ns => Ok(ms * 1_000_000),
            Some(ms) => Err(format!(
                "cannot use --phase {ms}: it is not shorter than the interval"
            )),
            None if self.align || self.as_collectl || interval_ns < PHASE_FROM_NS => Ok(0),
            None => Ok(PHASE_NS),
        }
    }

    /// The intervals, with defaults filled in. collectl's daemon has 10 s, a recorder of kymo as well.
    pub(crate) fn intervals(&self, letters: &str, scans: Scans) -> Result<Intervals, String> {
        let is_slow = match self.as_collectl {
            true => self.daemon.daemon,
            false => self.dir.is_some(),
        };
        Intervals::parse(self.interval.as_deref(), letters, is_slow, scans)
    }

    /// Number of intervals after which the run ends.
    pub(crate) fn count(&self) -> Result<Option<u64>, String> {
        count(self.count.as_deref())
    }

    /// Nanoseconds after which to end.
    pub(crate) fn runtime_ns(&self) -> Result<Option<u64>, String> {
        self.runtime
            .as_deref()
            .map(|t| duration_ns("-R", t))
            .transpose()
    }

    /// Retention of recordings in nanoseconds.
    pub(crate) fn keep_ns(&self) -> Result<Option<u64>, String> {
        let days = self.daemon.keep_days()?;
        match (&self.keep, days) {
            (Some(_), Some(_)) => Err("cannot use -r: not together with --keep".into()),
            (Some(keep), None) => duration_ns("--keep", keep).map(Some),
            (None, days) => Ok(days.map(|days| days.saturating_mul(86_400_000_000_000))),
        }
    }

    /// Most nanoseconds from a sample to the disk.
    pub(crate) fn sync_ns(&self) -> Result<u64, String> {
        duration_ns("--sync", &self.sync)
    }

    /// Nanoseconds after which a read is slow.
    pub(crate) fn slow_ns(&self) -> Result<u64, String> {
        let ms: Option<f64> = self.slow_ms.parse().ok();
        ms.filter(|ms| *ms > 0.0 && *ms < 1e9)
            .map(|ms| (ms * 1e6) as u64)
            .ok_or_else(|| {
                format!(
                    "cannot use --slow-ms {}: not a number of milliseconds",
                    self.slow_ms
                )
            })
    }

    /// Most bytes of the recordings.
    pub(crate) fn cap_bytes(&self) -> Result<Option<u64>, String> {
        self.cap.as_deref().map(size_bytes).transpose()
    }

    /// Size at which a tail is sealed, and which it has at first.
    pub(crate) fn seal_bytes(&self) -> Result<Option<u64>, String> {
        self.seal_bytes.as_deref().map(size_bytes).transpose()
    }
}

/// At whole seconds other programs wake up, too: on average 1.83 tasks are runnable at .000, and 0.4 to 0.7 from 5 ms later on
/// (one idle machine of 2 CPUs, 2026-11-22).
const PHASE_NS: u64 = 10_000_000;
/// Shorter intervals have no phase.
const PHASE_FROM_NS: u64 = 100_000_000;

/// Default letters of collectl's daemon, as far as kymo has them.
fn daemon_letters() -> String {
    let letters = "bcdfijmnstx".chars();
    letters
        .filter(|&letter| subsystem::is_letter(letter))
        .collect()
}

/// Help for the letters of `-s`.
fn letters_help() -> String {
    let letters = subsystem::letters_and_names();
    format!("Subsystems: {letters}; upper case for detail; `+x-y` changes the default")
}

/// Reads the number of intervals of `-c`.
pub(crate) fn count(text: Option<&str>) -> Result<Option<u64>, String> {
    let Some(text) = text else {
        return Ok(None);
    };
    match text.parse() {
        Ok(n) if n > 0 => Ok(Some(n)),
        _ => Err(format!(
            "cannot use -c {}: not a number of intervals",
            text.escape_debug()
        )),
    }
}

/// `given`, or `default` changed by `given` when it begins with `+` or `-`.
pub(crate) fn letters(given: Option<&str>, default: &str) -> Result<String, String> {
    let Some(given) = given else {
        return Ok(default.to_string());
    };
    let mut chosen = if given.starts_with(['+', '-']) {
        default.to_string()
    } else {
        String::new()
    };
    let mut remove = false;
    for letter in given.chars() {
        match letter {
            '+' => remove = false,
            '-' => remove = true,
            _ => {
                check_letter(letter)?;
                chosen.retain(|c| c != letter);
                if !remove {
                    chosen.push(letter);
                }
            }
        }
    }
    if chosen.is_empty() {
        return Err(format!("cannot use -s {given}: no subsystem is left"));
    }
    Ok(chosen)
}

fn check_letter(letter: char) -> Result<(), String> {
    if subsystem::is_letter(letter) {
        return Ok(());
    }
    Err(match subsystem::only_collectls(letter) {
        Some(name) => format!(
            "cannot use -s {letter}: {name} is not read; a program can publish its numbers, see docs/programs.md"
        ),
        None => format!(
            "cannot use -s {}: no such subsystem; there are {}",
            letter.escape_debug(),
            subsystem::all_letters()
        ),
    })
}

/// Reads `30s`, `5m`, `2h`, `1d`, `1w`, `100ms`; a bare number is seconds.
pub(crate) fn duration_ns(switch: &str, text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "ms" => 1e6,
        "" | "s" => 1e9,
        "m" => 60e9,
        "h" => 3600e9,
        "d" => 86_400e9,
        "w" => 604_800e9,
        _ => f64::NAN,
    };
    let ns = digits.parse::<f64>().unwrap_or(f64::NAN) * unit;
    if (0.0..1e19).contains(&ns) {
        return Ok(ns as u64);
    }
    Err(format!(
        "cannot use {switch} {text}: not a duration such as 30s, 5m, 2h, 7d"
    ))
}

/// `1 GiB`, `512 MiB`.
pub(crate) fn size_words(bytes: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB"), (0, "bytes")];
    let (shift, unit) = units
        .into_iter()
        .find(|(shift, _)| bytes >> shift > 0)
        .unwrap_or((0, "bytes"));
    let tenths = bytes.saturating_mul(10) >> shift;
    match tenths % 10 {
        0 => format!("{} {unit}", tenths / 10),
        tenth => format!("{}.{tenth} {unit}", tenths / 10),
    }
}

/// Reads `100M`, `1G`, `512k`; a bare number is bytes.
pub(crate) fn size_bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" | "B" => Some(0),
        "K" | "KB" | "KIB" => Some(10),
        "M" | "MB" | "MIB" => Some(20),
        "G" | "GB" | "GIB" => Some(30),
        "T" | "TB" | "TIB" => Some(40),
        _ => None,
    };
    let bytes = shift.and_then(|shift| {
        Some(digits.parse::<f64>().ok()? * f64::from(1u32 << (shift / 2)).powi(2))
    });
    match bytes {
        Some(bytes) if (1.0..1e18).contains(&bytes) => Ok(bytes as u64),
        _ => Err(format!(
            "cannot use --cap {text}: not a size such as 100M or 1G"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_in_words() {
        for (bytes, words) in [
            (1 << 30, "1 GiB"),
            (100 << 20, "100 MiB"),
            (3 << 29, "1.5 GiB"),
            (1000, "1000 bytes"),
            (0, "0 bytes"),
        ] {
            assert_eq!(size_words(bytes), words);
        }
    }

    #[test]
    fn letters_and_their_changes() {
        let unknown = format!(
            "cannot use -s q: no such subsystem; there are {}",
            subsystem::all_letters()
        );
        for (given, expect) in [
            (None, Ok("cdn")),
            (Some("cdnm"), Ok("cdnm")),
            (Some("+mZ"), Ok("cdnmZ")),
            (Some("-d"), Ok("cn")),
            (Some("+m-cd"), Ok("nm")),
            (
                Some("-cdn"),
                Err("cannot use -s -cdn: no subsystem is left"),
            ),
            (
                Some("cl"),
                Err(
                    "cannot use -s l: Lustre is not read; a program can publish its numbers, see docs/programs.md",
                ),
            ),
            (Some("q"), Err(unknown.as_str())),
        ] {
            let expect = expect.map(str::to_string).map_err(str::to_string);
            assert_eq!(letters(given, "cdn"), expect, "{given:?}");
        }
    }

    #[test]
    fn durations_and_sizes() {
        for (text, ns) in [
            ("30s", Some(30_000_000_000)),
            ("5", Some(5_000_000_000)),
            ("1.5m", Some(90_000_000_000)),
            ("7d", Some(604_800_000_000_000)),
            ("100ms", Some(100_000_000)),
            ("x", None),
            ("-1s", None),
            ("3y", None),
            ("", None),
        ] {
            assert_eq!(duration_ns("-R", text).ok(), ns, "{text}");
        }
        for (text, bytes) in [
            ("100M", Some(100 << 20)),
            ("1g", Some(1 << 30)),
            ("512k", Some(512 << 10)),
            ("5000", Some(5000)),
            ("0", None),
            ("1X", None),
            ("", None),
            ("1T", Some(1 << 40)),
        ] {
            assert_eq!(size_bytes(text).ok(), bytes, "{text}");
        }
    }
}
