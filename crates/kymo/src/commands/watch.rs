//! `kymo watch`: says when an expression of PromQL begins to hold and when it ends, or runs a command then: live, or over all that
//! was recorded.

mod held;
mod hook;
mod own_scans;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Error, Result, bail};
use clap::Args;
use jiff::tz::TimeZone;
use kymo_promql::{Expr, LabelSet, Value, ValueType, parse};
use kymo_query::open::Recordings;
use kymo_query::readers::RecordedReader;
use kymo_query::source::Step;
use kymo_recording::reader::{self as recording, Kinds};
use kymo_rrd::zone::own_zone;
use kymo_series::Reader;
use kymo_sys::clock::{Clock as _, RealClock};
use kymo_sys::machine::{Signal, Signals};
use kymo_sys::talk;

use self::held::{Held, SeriesTurn};
use self::hook::Hook;
use self::own_scans::OwnScans;
use super::query::{self, Moments};
use super::series::{self, Times, WhichStore};
use crate::options;
use crate::times::{self, days};

/// Exit code when nothing has begun.
const NOTHING: u8 = 1;
/// Time after each beat at which its sample is there.
const AFTER_BEAT_MS: i64 = 250;
/// Longest time between two looks at commands.
const LOOK_MS: i64 = 1000;
/// Most moments of recorded samples that are evaluated at once.
const STEPS_MAX: i64 = 86_400;
/// With fewer moments at once an expression is too much.
const STEPS_LEAST: i64 = 60;
const MS_NS: i64 = 1_000_000;
/// The word before how long a series has to be there.
const FOR: &str = "for";

/// Options of `kymo watch`.
#[derive(Args, Clone, Debug)]
#[command(override_usage = "kymo watch [OPTIONS] <EXPR> [for DURATION] [PATH]... [-- COMMAND...]")]
pub(crate) struct WatchOptions {
    /// As PromQL has it: node_memory_MemAvailable_bytes < 1e8
    #[arg(value_name = "EXPR")]
    expr: String,
    /// `for 30s`: begin when a series was there for so long. Recordings, or collectl's raw files: all of their samples are looked at,
    /// at once; without, this machine is watched until a signal ends it
    #[arg(value_name = "for DURATION | PATH")]
    words: Vec<OsString>,
    /// Runs at each begin and end, without a shell, with KYMO_WATCH_STATE, _VALUE, _TIME, _LABELS and so on in its environment; without,
    /// they are printed
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
    /// Time between two evaluations
    #[arg(long, value_name = "DURATION", default_value = "1s")]
    every: String,
    /// Look at recorded samples from this time on. With the end: 14:30-15:00
    #[arg(long, value_name = "TIME[-THRU]", allow_hyphen_values = true)]
    from: Option<String>,
    /// Up to this time, not now
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    thru: Option<String>,
    /// An object a line
    #[arg(long, conflicts_with = "command")]
    json: bool,
    #[command(flatten)]
    place: WhichStore,
}

/// An expression, and what its series have done.
struct WatchedExpr<'a> {
    text: &'a str,
    expr: Expr,
    every_ms: i64,
    held: Held,
    teller: Teller,
    signals: &'a Signals,
}

/// Where begins and ends go.
struct Teller {
    hook: Option<Hook>,
    json: bool,
    zone: TimeZone,
    has_begun: bool,
}

/// Place of the samples.
enum WatchedPlace {
    /// This machine, now and from now on.
    Live,
    Recorded(Recordings),
    /// A folder, in a range of seconds.
    Stored((i64, i64)),
}

/// Runs the command.
pub(crate) fn run(options: &WatchOptions) -> Result<ExitCode> {
    let text = &options.expr;
    let expr = parse(text).map_err(|error| Error::msg(format!("cannot use {text:?}: {error}")))?;
    if expr.value_type() != ValueType::Vector {
        let found = expr.value_type().documented();
        bail!(
            "cannot watch {text:?}: it is of the type {found}, and series have to come and go: up > 0"
        );
    }
    let (hold_ms, paths) = words(&options.words)?;
    let every_ms = duration_ms("--every", &options.every)?;
    if every_ms == 0 {
        bail!(
            "cannot use --every {}: it has to be at least 1ms",
            options.every
        );
    }
    let place = place(options, &paths)?;
    let signals = Signals::block();
    let hook = (!options.command.is_empty()).then(|| Hook::new(&options.command, text));
    let mut watched = WatchedExpr {
        text,
        expr,
        every_ms,
        held: Held::new(hold_ms),
        teller: Teller {
            hook,
            json: options.json,
            zone: own_zone(),
            has_begun: false,
        },
        signals: &signals,
    };
    let done = match place {
        WatchedPlace::Live => live(&mut watched, options),
        WatchedPlace::Recorded(recordings) => recorded(&mut watched, options, &recordings),
        WatchedPlace::Stored(range) => stored(&mut watched, options, range),
    };
    if let Some(hook) = &mut watched.teller.hook {
        hook.end();
    }
    match done {
        // A reader of the output that is gone is no error.
        Err(error) if is_closed_pipe(&error) => {}
        done => done?,
    }
    Ok(match watched.teller.has_begun {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(NOTHING),
    })
}

fn is_closed_pipe(error: &Error) -> bool {
    let error = error.downcast_ref::<io::Error>();
    error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// How long a series has to be there, and paths.
fn words(words: &[OsString]) -> Result<(i64, Vec<PathBuf>)> {
    let (hold_ms, paths) = match words {
        [first, rest @ ..] if first == FOR => {
            let (hold, paths) = rest
                .split_first()
                .context("cannot use for: its DURATION is missing")?;
            (duration_ms(FOR, &hold.to_string_lossy())?, paths)
        }
        paths => (0, paths),
    };
    Ok((hold_ms, paths.iter().map(PathBuf::from).collect()))
}

fn duration_ms(name: &str, text: &str) -> Result<i64> {
    let ns = options::duration_ns(name, text).map_err(Error::msg)?;
    let ms = i64::try_from(ns / 1_000_000);
    ms.map_err(|_| Error::msg(format!("cannot use {name} {text}: it is too long")))
}

fn place(options: &WatchOptions, paths: &[PathBuf]) -> Result<WatchedPlace> {
    if !paths.is_empty() {
        if options.place.is_named() {
            bail!("cannot use --data and --open: not together with a PATH");
        }
        let found = Recordings::find(&days::named(paths)?).map_err(Error::msg)?;
        return Ok(WatchedPlace::Recorded(found));
    }
    match range(options)? {
        Some(range) => Ok(WatchedPlace::Stored(range)),
        None => Ok(WatchedPlace::Live),
    }
}

/// `--from` and `--thru`, in seconds.
fn range(options: &WatchOptions) -> Result<Option<(i64, i64)>> {
    match (&options.from, &options.thru) {
        (None, None) => Ok(None),
        (None, Some(_)) => bail!("cannot use --thru: it needs --from or a PATH"),
        (Some(from), thru) => series::range(&Times {
            from: from.clone(),
            thru: thru.clone(),
        })
        .map(Some),
    }
}

/// Watches this machine until a signal comes.
fn live(watched: &mut WatchedExpr, options: &WatchOptions) -> Result<()> {
    let mut place = options.place.clone();
    let mut scans = None;
    if !place.is_named() {
        match series::served(&place) {
            // From now on the same serve.
            Ok(folder) => place = WhichStore::new(Some(folder), None),
            Err(_) => scans = Some(OwnScans::start(watched.text, &watched.expr)?),
        }
    }
    let done = watch_live(watched, &place, &mut scans);
    if let Some(scans) = scans {
        scans.end();
    }
    done
}

fn watch_live(
    watched: &mut WatchedExpr,
    place: &WhichStore,
    scans: &mut Option<OwnScans>,
) -> Result<()> {
    let (mut is_first, mut said) = (true, String::new());
    while watched.wait_for_beat() {
        let now_ms = now_ms();
        let reader: Result<Box<dyn Reader>> = match &mut *scans {
            Some(scans) => {
                scans.take()?;
                Ok(Box::new(scans.reader()))
            }
            None => series::union(place).map(|union| Box::new(union) as Box<dyn Reader>),
        };
        let evaluated = reader.and_then(|reader| watched.evaluate_at(now_ms, &*reader));
        match evaluated {
            Ok(()) => said.clear(),
            Err(error) if is_first || is_closed_pipe(&error) => return Err(error),
            // Unknown now: nothing has begun or ended.
            Err(error) => {
                let why = format!("{error:#}");
                if why != said {
                    talk::say(format_args!("kymo: {why}; it is tried again"));
                    said = why;
                }
            }
        }
        is_first = false;
    }
    Ok(())
}

/// Looks at all samples of recordings.
fn recorded(
    watched: &mut WatchedExpr,
    options: &WatchOptions,
    recordings: &Recordings,
) -> Result<()> {
    let range = match recordings.only_recording() {
        Some(path) => times::range(options.from.as_deref(), options.thru.as_deref(), path)?,
        None => match range(options)? {
            Some((from, thru)) => recording::TimeRange {
                from_ns: from.saturating_mul(1_000_000_000),
                thru_ns: thru.saturating_mul(1_000_000_000),
            },
            None => recording::TimeRange::ALL,
        },
    };
    let Some((from_ns, thru_ns)) = extent(recordings, range)? else {
        talk::say("kymo: nothing was recorded then");
        return Ok(());
    };
    let reader =
        || -> Result<Box<dyn Reader>> { Ok(Box::new(RecordedReader::new(recordings.clone()))) };
    watched.all(
        from_ns.div_euclid(MS_NS),
        thru_ns.div_euclid(MS_NS),
        &reader,
    )
}

/// Times of the first and the last sample in a range.
fn extent(recordings: &Recordings, range: recording::TimeRange) -> Result<Option<(i64, i64)>> {
    let source = recordings.open_merged(range, Kinds::NONE);
    let mut source = source.map_err(Error::msg)?;
    let mut extent: Option<(i64, i64)> = None;
    while let Some(step) = source.next().map_err(Error::msg)? {
        if let Step::Sample(moment) = step
            && (range.from_ns..=range.thru_ns).contains(&moment.real_ns)
        {
            let (first, last) = extent.unwrap_or((moment.real_ns, moment.real_ns));
            extent = Some((first.min(moment.real_ns), last.max(moment.real_ns)));
        }
    }
    Ok(extent)
}

/// Looks at all that a folder has of a range.
fn stored(
    watched: &mut WatchedExpr,
    options: &WatchOptions,
    (from, thru): (i64, i64),
) -> Result<()> {
    let reader = || -> Result<Box<dyn Reader>> { Ok(Box::new(series::union(&options.place)?)) };
    let ms = |seconds: i64| seconds.saturating_mul(1000);
    watched.all(ms(from), ms(thru), &reader)
}

fn now_ms() -> i64 {
    RealClock.now().real_ns.div_euclid(MS_NS)
}

impl WatchedExpr<'_> {
    /// Waits until the sample of the next beat is there, and tends commands; `false`: a signal asks to end.
    fn wait_for_beat(&mut self) -> bool {
        let now = now_ms();
        let after = AFTER_BEAT_MS.min(self.every_ms / 4);
        let beat = (now - after).div_euclid(self.every_ms).saturating_add(1);
        let beat_ms = beat.saturating_mul(self.every_ms).saturating_add(after);
        let mut left_ms = beat_ms.saturating_sub(now);
        // Counted down, so that a clock that is set back delays nothing.
        while left_ms > 0 {
            let part_ms = left_ms.min(LOOK_MS);
            let part = Duration::from_millis(part_ms.unsigned_abs());
            let begun = RealClock.mono_ns();
            if self.signals.wait(part) == Some(Signal::Stop) {
                return false;
            }
            let passed_ns = RealClock.mono_ns().saturating_sub(begun);
            left_ms -= i64::try_from(passed_ns / 1_000_000)
                .unwrap_or(part_ms)
                .max(1);
            if let Some(hook) = &mut self.teller.hook {
                hook.tend();
            }
        }
        true
    }

    /// Takes in the value of a moment.
    fn evaluate_at(&mut self, t_ms: i64, reader: &dyn Reader) -> Result<()> {
        let answer = query::evaluate(self.text, &self.expr, Moments::At(t_ms), reader)?;
        if let Some(missing) = reader.missing().first() {
            bail!("cannot evaluate {:?}: {missing}", self.text);
        }
        let Value::Vector(series) = &answer.value else {
            return Ok(());
        };
        let result = series.iter().map(|(labels, v)| (labels, *v));
        self.step(t_ms, result)
    }

    fn step<'s>(
        &mut self,
        t_ms: i64,
        result: impl Iterator<Item = (&'s LabelSet, f64)>,
    ) -> Result<()> {
        let mut changes = Vec::new();
        self.held.step(t_ms, result, |change| changes.push(change));
        for change in changes {
            self.teller.say(change)?;
        }
        Ok(())
    }

    /// Takes in the values of all moments of a range, part by part.
    fn all(
        &mut self,
        from_ms: i64,
        thru_ms: i64,
        reader: &dyn Fn() -> Result<Box<dyn Reader>>,
    ) -> Result<()> {
        let (mut at_ms, mut steps) = (from_ms, STEPS_MAX);
        while at_ms <= thru_ms && self.signals.wait(Duration::ZERO) != Some(Signal::Stop) {
            let last_ms = at_ms.saturating_add(self.every_ms.saturating_mul(steps - 1));
            let moments = Moments::Range {
                from_ms: at_ms,
                thru_ms: last_ms.min(thru_ms),
                step_ms: self.every_ms,
            };
            let answer = match query::evaluate(self.text, &self.expr, moments, &*reader()?) {
                Ok(answer) => answer,
                // Fewer moments at once may be what fits.
                Err(_) if steps / 2 >= STEPS_LEAST => {
                    steps /= 2;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let Value::Matrix(tracks) = &answer.value else {
                return Ok(());
            };
            let mut left: Vec<_> = tracks
                .iter()
                .map(|track| (&track.labels, &track.samples[..]))
                .collect();
            while at_ms <= last_ms.min(thru_ms) {
                let mut result = Vec::new();
                for (labels, samples) in &mut left {
                    if let [first, rest @ ..] = samples
                        && first.t_ms == at_ms
                    {
                        result.push((*labels, first.v));
                        *samples = rest;
                    }
                }
                self.step(at_ms, result.into_iter())?;
                if !self.catch_up(hook::RUNNING_MAX) {
                    return Ok(());
                }
                at_ms = at_ms.saturating_add(self.every_ms);
            }
        }
        self.catch_up(0);
        Ok(())
    }

    /// Waits for commands, so that none is left out; `false`: a signal asks to end.
    fn catch_up(&mut self, running_max: usize) -> bool {
        let signals = self.signals;
        let is_stopped = || signals.wait(Duration::ZERO) == Some(Signal::Stop);
        match &mut self.teller.hook {
            Some(hook) => hook.catch_up(running_max, &is_stopped),
            None => true,
        }
    }
}

impl Teller {
    fn say(&mut self, change: SeriesTurn) -> Result<()> {
        self.has_begun |= change.turn == held::Turn::Begins;
        match &mut self.hook {
            Some(hook) => hook.put(change),
            None => {
                let mut out = io::stdout().lock();
                writeln!(out, "{}", self.line(&change))?;
                out.flush()?;
            }
        }
        Ok(())
    }

    fn line(&self, change: &SeriesTurn) -> String {
        let labels = query::promql(&change.labels);
        let (turn, v) = (change.turn.name(), query::number(change.v));
        if self.json {
            let line = serde_json::json!({
                "state": turn, "time_ms": change.t_ms, "value": v, "labels": labels,
            });
            return line.to_string();
        }
        let time = series::sample_time(change.t_ms, &self.zone);
        format!("{time} {turn:<6} {v} {labels}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_a_duration_and_paths() {
        let of = |text: &str| {
            let all: Vec<OsString> = text.split_whitespace().map(OsString::from).collect();
            words(&all).map_err(|error| error.to_string())
        };
        let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
        assert_eq!(of(""), Ok((0, paths(&[]))));
        assert_eq!(of("a b"), Ok((0, paths(&["a", "b"]))));
        assert_eq!(of("for 5m"), Ok((300_000, paths(&[]))));
        assert_eq!(of("for 5m for"), Ok((300_000, paths(&["for"]))));
        assert!(of("for").is_err() && of("for x").is_err() && of("for 99999999999w").is_err());
    }

    #[test]
    fn labels_are_escaped() {
        let teller = |json| Teller {
            hook: None,
            json,
            zone: TimeZone::UTC,
            has_begun: false,
        };
        let change = SeriesTurn {
            turn: held::Turn::Ends,
            t_ms: 1500,
            labels: LabelSet::new(&[("__name__", "up"), ("a", "\u{1b}[2J\n")]),
            v: 0.5,
        };
        assert_eq!(
            teller(false).line(&change),
            "1970-01-01T00:00:01.500+00:00 ends   0.5 up{a=\"\\u{1b}[2J\\n\"}"
        );
        let json: serde_json::Value = serde_json::from_str(&teller(true).line(&change)).unwrap();
        assert_eq!(json["labels"], "up{a=\"\\u{1b}[2J\\n\"}");
    }
}
