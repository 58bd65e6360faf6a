//! `kymo why`: unusual values at a moment, and the processes behind them.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Error, Result};
use clap::Args;
use kymo_keeper_client::Keeper;
use kymo_query::archive::{Archive, Extent, RecordingSource};
use kymo_query::stored::KeeperReader;
use kymo_query::why::{When, Why, add_stored, why};
use kymo_sys::clock::{Clock as _, RealClock};
use kymo_sys::machine;
use kymo_view::time::{Bound, Span, Zone};

use super::data;
use super::serve::data_folder;
use crate::output;
use crate::times::{self, days, words};

/// Exit code when nothing was recorded at that time.
const NOTHING: u8 = 1;
const SECOND_NS: i64 = 1_000_000_000;
const MINUTE_NS: i64 = 60 * SECOND_NS;

/// Options of `kymo why`.
#[derive(Args, Clone, Debug)]
pub(crate) struct WhyOptions {
    /// The time: 03:12, `yesterday 3pm`, -10m, a range 03:10-03:20; without, the worst minute of the last hour
    #[arg(value_name = "TIME", allow_hyphen_values = true)]
    time: Option<String>,
    /// Recordings: folders, files of kymo export, or collectl's raw files; default: what kymo serve records
    #[arg(value_name = "PATH")]
    paths: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A question: its span, and the recordings it is about.
struct Asked {
    what: RecordingSource,
    /// The paths, as a shell wants them.
    place: String,
    span: Option<Span>,
}

/// Runs the command.
pub(crate) fn run(options: &WhyOptions) -> Result<ExitCode> {
    let now_ns = RealClock.now().real_ns;
    let given = options.time.iter().chain(&options.paths);
    let given: Vec<String> = given.cloned().collect();
    let asked = Asked::read(&given, now_ns)?;
    let extent = Archive::new(asked.what.clone(), None).extent();
    let extent = extent.map_err(Error::msg)?;
    let zone = times::zone_of(&extent.context);
    let when = match asked.span {
        Some(span) => when(span, &extent, zone)?,
        None => When::WorstMinuteBefore(extent.thru_ns),
    };
    let answer = answer(&asked.what, when).map_err(Error::msg)?;
    output::put(&match options.json {
        true => kymo_view::why::json(&answer, &asked.place) + "\n",
        false => shown(kymo_view::why::text(&answer, &asked.place)),
    })?;
    Ok(match (answer.samples.0, answer.findings.is_empty()) {
        (0, true) => ExitCode::from(NOTHING),
        _ => ExitCode::SUCCESS,
    })
}

impl Asked {
    /// Reads the words of the command line: a time of one word or two, and paths.
    fn read(given: &[String], now_ns: i64) -> Result<Asked> {
        let mut zone = days::zone()?;
        let mut parsed = |count: usize| {
            let text = given.get(..count)?.join(" ");
            let text = words::plain(&text, &mut zone, now_ns);
            Span::parse(Some(&text), None, now_ns).ok()
        };
        let (count, span) = [2, 1]
            .into_iter()
            .find_map(|count| Some((count, Some(parsed(count)?))))
            .unwrap_or((0, None));
        let paths: Vec<PathBuf> = given[count..].iter().map(PathBuf::from).collect();
        if let (Some(first), None) = (paths.first(), span)
            && !first.exists()
            && first.as_os_str() != "-"
        {
            let text = first.display();
            return Err(Error::msg(format!(
                "cannot use {text}: neither a time such as 03:12, 'yesterday 3pm', -10m or 03:10-03:20, nor a recording"
            )));
        }
        let what = match paths.is_empty() {
            true => RecordingSource::Ring(data_folder(None)?),
            false => RecordingSource::Files(days::named(&paths)?),
        };
        let paths = what.paths().iter();
        let place: Vec<String> = paths
            .map(|path| quoted(&path.display().to_string()))
            .collect();
        let place = place.join(" ");
        Ok(Asked { what, place, span })
    }
}

/// The unusual values by a recording, and by the store in its folder if there is one.
pub(crate) fn answer(what: &RecordingSource, when: When) -> Result<Why, String> {
    let mut answer = why(&what.recordings()?, when)?;
    match keeper(what) {
        Ok(Some(keeper)) => add_stored(&mut answer, &KeeperReader::new(keeper)),
        Ok(None) => {}
        Err(error) => answer.problem = format!("{error:#}"),
    }
    Ok(answer)
}

/// The keeper of the folder that is asked. `None`: there is no store in it.
fn keeper(what: &RecordingSource) -> Result<Option<Keeper>> {
    let dir = match what {
        RecordingSource::Ring(dir) => Some(dir),
        RecordingSource::Files(paths) => match &paths[..] {
            [dir] if dir.is_dir() => Some(dir),
            _ => None,
        },
        RecordingSource::Kept(_) => None,
    };
    dir.map_or(Ok(None), |dir| data::keeper(dir))
}

/// A text as it is shown: broken for a terminal.
fn shown(text: String) -> String {
    match machine::terminal_size() {
        Some((columns, _)) if columns > 0 => kymo_view::why::broken(&text, columns.into()),
        _ => text,
    }
}

/// A word of a shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@,=".contains(c);
    match word.chars().all(is_plain) {
        true => word.into(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// The span that is asked about: a whole minute of the clock, the minute around a moment, or a range.
fn when(span: Span, extent: &Extent, mut zone: Zone) -> Result<When> {
    let no_such = "cannot use the time: there is none such in the recording";
    let Some(mut from) = span.from else {
        return Ok(When::WorstMinuteBefore(extent.thru_ns));
    };
    let from_ns = times::last_moment(from, &mut zone, extent.thru_ns).context(no_such)?;
    if let Some(mut thru) = span.thru {
        let day = zone.local(from_ns).day;
        if let Some(wall) = thru.of_every_day() {
            wall.day = Some(day);
        }
        let thru_ns = thru.moment(&zone).context(no_such)?;
        // A range over midnight.
        let thru_ns = match thru_ns < from_ns {
            true => thru_ns + 24 * 60 * MINUTE_NS,
            false => thru_ns,
        };
        return Ok(When::Between(from_ns, thru_ns));
    }
    let is_minute = from
        .of_every_day()
        .is_some_and(|wall| wall.second % 60 == 0)
        || matches!(from, Bound::Wall(wall) if wall.second % 60 == 0);
    Ok(match is_minute {
        true => When::Between(from_ns, from_ns + MINUTE_NS),
        false
            if from_ns + MINUTE_NS / 2 > extent.thru_ns
                && from_ns <= extent.thru_ns + MINUTE_NS =>
        {
            When::Between(extent.thru_ns - MINUTE_NS, extent.thru_ns)
        }
        false => When::around(from_ns),
    })
}
