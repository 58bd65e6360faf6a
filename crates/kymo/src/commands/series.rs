//! `kymo series`: the series of a running `kymo serve`, on the terminal.

mod json;
mod samples;
mod show;
mod tail;

pub(super) use samples::{moment as sample_time, union};

use std::io::{self, IsTerminal as _, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Error, Result, bail};
use clap::{Args, Subcommand};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use kymo_base::name::DisplayName;
use kymo_keeper_client::Keeper;
use kymo_query::stored;
use kymo_rrd::at_time;
use kymo_rrd::calendar::Calendar;
use kymo_rrd::zone::own_zone;
use kymo_sys::clock::{Clock as _, RealClock};
use kymo_sys::{machine, talk};
use kymo_view::time::{Bound, Span, Zone};
use kymo_wire::keeper::{EventRange, SeriesInfo};

use super::data;
use super::serve::{ADMIN_SOCKET, KEEPER_SOCKET, running_folder};
use crate::times::days;

/// Exit code when nothing was found.
const NOTHING: u8 = 1;

/// Options of `kymo series`.
#[derive(Args, Clone, Debug)]
pub(crate) struct SeriesOptions {
    #[command(subcommand)]
    command: SeriesCommand,
}

#[derive(Subcommand, Clone, Debug)]
enum SeriesCommand {
    /// List stored series
    Ls(List),
    /// Print rows of stored series
    Show(show::Show),
    /// Print samples as they were received, of series that a selector of PromQL picks
    Samples(samples::Samples),
    /// Print values as they come in, until it is ended
    Tail(tail::TailOptions),
    /// Print what the senders of series wanted to be heard
    Events(Events),
    /// Remove stored series, with their values and .rrd files; or the values of a range of time
    Rm(Remove),
}

#[derive(Args, Clone, Debug)]
struct DataFolder {
    /// Folder of the kymo serve that is asked
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

#[derive(Args, Clone, Debug)]
pub(super) struct WhichStore {
    #[command(flatten)]
    served: DataFolder,
    /// Read the store in this folder instead, whoever writes it: nothing is changed there
    #[arg(long, value_name = "DIR", conflicts_with = "data")]
    open: Option<PathBuf>,
}

impl WhichStore {
    /// The store of a served folder, or of an opened one.
    pub(super) fn new(data: Option<PathBuf>, open: Option<PathBuf>) -> WhichStore {
        WhichStore {
            served: DataFolder { data },
            open,
        }
    }

    /// True if a folder is named.
    pub(super) fn is_named(&self) -> bool {
        self.served.data.is_some() || self.open.is_some()
    }
}

#[derive(Args, Clone, Debug)]
struct List {
    /// LABEL=PATTERN or LABEL!=PATTERN, with * and ?, or a text of the name; all have to fit. Labels: name, host, plugin,
    /// plugin_instance, type, type_instance, file
    #[arg(value_name = "MATCHER")]
    matchers: Vec<String>,
    /// An object a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: WhichStore,
}

#[derive(Args, Clone, Debug)]
struct Remove {
    /// Which of them, as ls takes it
    #[arg(required = true, value_name = "MATCHER")]
    matchers: Vec<String>,
    /// Only values from this time on, as show takes it: rows that overlap the range become unknown, in .rrd files too
    #[arg(
        long,
        value_name = "TIME",
        requires = "thru",
        allow_hyphen_values = true
    )]
    from: Option<String>,
    /// Up to this time
    #[arg(
        long,
        value_name = "TIME",
        requires = "from",
        allow_hyphen_values = true
    )]
    thru: Option<String>,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    place: DataFolder,
}

#[derive(Args, Clone, Debug)]
pub(super) struct Times {
    /// Begin at this time: 14:30, 20261121:14:30, 2026-11-21T14:30, -1h, now; or as rrdtool reads it. With the end: 14:30-15:00
    #[arg(
        long,
        value_name = "TIME[-THRU]",
        default_value = "-1h",
        allow_hyphen_values = true
    )]
    pub(super) from: String,
    /// End at this time, not now
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(super) thru: Option<String>,
}

#[derive(Args, Clone, Debug)]
struct Events {
    /// Hosts whose events these are; without, of all
    #[arg(value_name = "HOST")]
    hosts: Vec<String>,
    #[command(flatten)]
    times: Times,
    /// An object a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: DataFolder,
}

/// Runs the command.
pub(crate) fn run(options: &SeriesOptions) -> Result<ExitCode> {
    let done = match &options.command {
        SeriesCommand::Ls(list) => run_list(list),
        SeriesCommand::Show(show) => show::run(show),
        SeriesCommand::Samples(samples) => samples::run(samples),
        SeriesCommand::Tail(options) => tail::run(options),
        SeriesCommand::Events(events) => run_events(events),
        SeriesCommand::Rm(remove) => run_remove(remove),
    };
    // A reader that closes the output early is no error.
    match done {
        Err(error) if is_broken_pipe(&error) => Ok(ExitCode::SUCCESS),
        done => done,
    }
}

fn is_broken_pipe(error: &Error) -> bool {
    let cause = error.downcast_ref::<io::Error>();
    cause.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// The keeper that answers questions about the store.
fn reader(place: &WhichStore) -> Result<Keeper> {
    match &place.open {
        Some(dir) => data::keeper_of(dir),
        None => keeper(&place.served),
    }
}

/// The folder of the kymo serve that is asked.
pub(super) fn served(place: &WhichStore) -> Result<PathBuf> {
    folder(&place.served)
}

fn folder(place: &DataFolder) -> Result<PathBuf> {
    running_folder(place.data.as_deref())
}

fn keeper(place: &DataFolder) -> Result<Keeper> {
    keeper_socket(place).map(Keeper::at)
}

fn keeper_socket(place: &DataFolder) -> Result<PathBuf> {
    let socket = folder(place)?.join(KEEPER_SOCKET);
    if !socket.exists() {
        let shown = socket.display();
        bail!(
            "cannot ask the keeper at {shown}: no kymo serve runs with this folder; --data DIR names another one, and \
             --open DIR reads a store without asking anybody"
        );
    }
    Ok(socket)
}

/// Series that all matchers pick. If there are none, prints a line on stderr.
fn select(keeper: &Keeper, texts: &[String]) -> Result<Vec<SeriesInfo>> {
    let matchers = keeper.matchers(texts).map_err(Error::msg)?;
    let found = keeper.select(&matchers).map_err(Error::msg)?;
    if found.is_empty() {
        talk::say("kymo: no series fits");
    }
    Ok(found)
}

fn run_list(list: &List) -> Result<ExitCode> {
    let found = select(&reader(&list.place)?, &list.matchers)?;
    if found.is_empty() {
        return Ok(ExitCode::from(NOTHING));
    }
    let mut out = io::BufWriter::new(io::stdout().lock());
    if list.json {
        for info in &found {
            writeln!(out, "{}", json::series(info))?;
        }
        out.flush()?;
        return Ok(ExitCode::SUCCESS);
    }
    let longest = found.iter().map(|info| shown(&info.name).chars().count());
    let width = longest.max().unwrap_or(0).max(4);
    let now = RealClock.now().real_ns as f64 / 1e9;
    writeln!(
        out,
        "{:<width$}  {:>8}  {:>10}  COLUMNS",
        "NAME", "STEP", "LAST"
    )?;
    for info in &found {
        let SeriesInfo {
            name, last, step, ..
        } = info;
        let (step, last) = (seconds(f64::from(*step)), age(*last, now));
        writeln!(
            out,
            "{:<width$}  {step:>8}  {last:>10}  {}",
            shown(name),
            columns(info)
        )?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn run_remove(remove: &Remove) -> Result<ExitCode> {
    let times = remove.from.clone().zip(remove.thru.clone());
    let range = times.map(|(from, thru)| {
        range(&Times {
            from,
            thru: Some(thru),
        })
    });
    let range = range.transpose()?;
    let socket = folder(&remove.place)?.join(ADMIN_SOCKET);
    let keeper = Keeper::of_administrator(socket);
    let found = select(&keeper, &remove.matchers)?;
    if found.is_empty() {
        return Ok(ExitCode::from(NOTHING));
    }
    let mut out = io::BufWriter::new(io::stdout().lock());
    for info in &found {
        writeln!(out, "{}", shown(&info.name))?;
    }
    out.flush()?;
    if !remove.yes && !is_wanted(found.len(), range)? {
        return Ok(ExitCode::from(NOTHING));
    }
    let names: Vec<Vec<u8>> = found.into_iter().map(|info| info.name).collect();
    let outcomes = match range {
        None => keeper.remove(&names),
        Some(range) => keeper.erase(&names, range),
    };
    let outcomes = outcomes.map_err(Error::msg)?;
    let (mut gone, mut code) = (0, ExitCode::SUCCESS);
    for outcome in outcomes {
        match outcome {
            Ok(()) => gone += 1,
            Err(why) => {
                talk::say(format_args!("kymo: {}", shown(why.as_bytes())));
                code = ExitCode::from(NOTHING);
            }
        }
    }
    match range {
        None => talk::say(format_args!("kymo: removed {gone} series")),
        Some((from, thru)) => talk::say(format_args!(
            "kymo: removed the values of {gone} series {}",
            words(from, thru)
        )),
    }
    Ok(code)
}

/// Asks for a confirmation on a terminal; elsewhere it fails and points to `--yes`.
fn is_wanted(count: usize, range: Option<(i64, i64)>) -> Result<bool> {
    if !(io::stdin().is_terminal() && machine::stderr_is_terminal()) {
        bail!("cannot ask whether to remove {count} series: there is no terminal; use --yes");
    }
    let question = match range {
        None => format!("Remove these {count} series and all their values? [y/N] "),
        Some((from, thru)) => format!(
            "Remove the values of these {count} series {}? [y/N] ",
            words(from, thru)
        ),
    };
    talk::put(question.as_bytes());
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

fn words(from: i64, thru: i64) -> String {
    let zone = own_zone();
    format!("from {} to {}", stamp(from, &zone), stamp(thru, &zone))
}

fn shown(name: &[u8]) -> String {
    DisplayName(name).to_string()
}

fn columns(info: &SeriesInfo) -> String {
    let column = |(name, kind): &(Vec<u8>, Vec<u8>)| format!("{}:{}", shown(name), shown(kind));
    info.columns
        .iter()
        .map(column)
        .collect::<Vec<_>>()
        .join(" ")
}

/// Age of a time; `-`: unknown.
fn age(last: f64, now: f64) -> String {
    match last > 0.0 {
        true => format!("{} ago", seconds((now - last).max(0.0))),
        false => "-".into(),
    }
}

/// A duration as text: `10 s`, `5 min`, `3 h`, `2 d`.
fn seconds(seconds: f64) -> String {
    let units = [(86_400.0, "d"), (3600.0, "h"), (60.0, "min")];
    // At least two of a unit: 90 s is more precise than 1 min.
    let found = units.iter().find(|(length, _)| seconds >= 2.0 * length);
    match found {
        Some((length, unit)) => format!("{:.0} {unit}", (seconds / length).floor()),
        None if seconds > 0.0 => format!("{:.0} s", seconds.floor()),
        None => "-".into(),
    }
}

/// Prints a line for each event: time, severity, names, and message.
fn run_events(events: &Events) -> Result<ExitCode> {
    let (from, thru) = range(&events.times)?;
    let hosts = events.hosts.iter().map(|host| host.clone().into_bytes());
    let found = keeper(&events.place)?.events(&EventRange {
        from,
        thru: thru.saturating_add(1),
        events_max: u32::MAX,
        hosts: hosts.collect(),
    });
    let found = found.map_err(Error::msg)?;
    if found.is_empty() {
        talk::say("kymo: there are no such events");
        return Ok(ExitCode::from(NOTHING));
    }
    let (mut out, zone) = (io::BufWriter::new(io::stdout().lock()), own_zone());
    for event in &found {
        if events.json {
            writeln!(out, "{}", json::event(event))?;
            continue;
        }
        let time = stamp(event.time_ns.div_euclid(1_000_000_000), &zone);
        let mark = stored::mark(event);
        writeln!(out, "{time:<25} {:<7} {}", mark.kind.name(), mark.text)?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// A second in ISO 8601.
fn stamp(second: i64, zone: &TimeZone) -> String {
    let time = Timestamp::from_second(second).map(|time| time.to_zoned(zone.clone()));
    time.map_or_else(
        |_| second.to_string(),
        |time| time.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
    )
}

/// The moment of a bound. Without a day it is of today, as in rrdtool.
fn of_today(mut bound: Bound, now_ns: i64, zone: &mut Zone) -> Option<i64> {
    if let Some(wall) = bound.of_every_day() {
        wall.day = Some(zone.local(now_ns).day);
    }
    bound.moment(zone)
}

/// A time in seconds since 1970, in the syntax of all commands, or else in rrdtool's.
pub(super) fn moment(switch: &str, text: &str) -> Result<i64> {
    let now_ns = RealClock.now().real_ns;
    let now = now_ns.div_euclid(1_000_000_000);
    let bound = Span::parse(Some(text), None, now_ns)
        .unwrap_or_default()
        .from;
    let own = bound.and_then(|bound| of_today(bound, now_ns, &mut days::zone().ok()?));
    if let Some(ns) = own {
        return Ok(ns.div_euclid(1_000_000_000));
    }
    let mut calendar = Calendar::system();
    let wrong = |why: String| Error::msg(format!("cannot use {switch} {text:?}: {why}"));
    let time = at_time::parse(text.as_bytes(), now, &mut calendar);
    let time = time.map_err(|error| wrong(error.text))?;
    let range = at_time::range(&time, &time, &mut calendar);
    let (second, _) = range.map_err(|error| wrong(error.text))?;
    Ok(second)
}

/// `--from` and `--thru` in seconds since 1970, in the syntax of all commands, or else in rrdtool's.
pub(super) fn range(times: &Times) -> Result<(i64, i64)> {
    let now_ns = RealClock.now().real_ns;
    let now = now_ns.div_euclid(1_000_000_000);
    let mut zone = days::zone()?;
    let mut calendar = Calendar::system();
    let mut time = |switch: &str, text: &str, bound: Option<Bound>| {
        let own = bound.and_then(|bound| of_today(bound, now_ns, &mut zone));
        let seconds = own.map(|ns| ns.div_euclid(1_000_000_000).to_string());
        let text = seconds.as_deref().unwrap_or(text);
        let time = at_time::parse(text.as_bytes(), now, &mut calendar);
        time.map_err(|error| Error::msg(format!("cannot use {switch} {text:?}: {}", error.text)))
    };
    let span = |from, thru| Span::parse(from, thru, now_ns).unwrap_or_default();
    let both = span(Some(times.from.as_str()), None);
    if both.thru.is_some() && times.thru.is_some() {
        return Err(Error::msg("cannot use --thru: --from has both times"));
    }
    let end = times.thru.as_deref().unwrap_or("now");
    let from = time("--from", &times.from, both.from)?;
    let thru = both.thru.or_else(|| span(None, Some(end)).thru);
    let thru = time("--thru", end, thru)?;
    let range = at_time::range(&from, &thru, &mut calendar);
    let (from, thru) = range.map_err(|error| Error::msg(error.text))?;
    if from >= thru {
        return Err(Error::msg("cannot use --from: it is not before --thru"));
    }
    Ok((from, thru))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `--from` may also have the end, as in all commands.
    #[test]
    fn one_switch_takes_both_times() {
        let between = |from: &str, thru: Option<&str>| {
            let times = Times {
                from: from.into(),
                thru: thru.map(String::from),
            };
            range(&times).map_err(|error| error.to_string())
        };
        for (both, from, thru) in [
            (
                "20261121:10:00-20261121:11:30",
                "20261121:10:00",
                "20261121:11:30",
            ),
            (
                "2026-11-21T10:00Z-2026-11-21T11:30Z",
                "1795255200",
                "1795260600",
            ),
        ] {
            let seconds = |(from, thru): (i64, i64)| (from, thru / 10);
            let expect = between(from, Some(thru)).map(seconds);
            assert_eq!(between(both, None).map(seconds), expect, "{both}");
            assert!(expect.is_ok(), "{both}: {expect:?}");
            let refused = between(both, Some("now")).unwrap_err();
            assert_eq!(refused, "cannot use --thru: --from has both times");
        }
        // Times in rrdtool's syntax keep their meaning.
        assert!(between("end-1h", Some("now")).is_ok());
    }

    #[test]
    fn lengths_of_time() {
        for (length, text) in [
            (0.0, "-"),
            (10.0, "10 s"),
            (90.0, "90 s"),
            (300.0, "5 min"),
            (1e6, "11 d"),
        ] {
            assert_eq!(seconds(length), text);
        }
        assert_eq!(age(0.0, 5.0), "-");
        assert_eq!(age(5.0, 8.5), "3 s ago");
    }
}
