//! `kymo programs`: shows publishers and their activity on the terminal, from a running `kymo serve`, or at a moment, from a
//! recording.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Error, Result};
use clap::Args;
use kymo_keeper_client::Keeper;
use kymo_query::activity;
use kymo_query::open::Recordings;
use kymo_recording::folder::safe_host;
use kymo_sys::clock::{Clock as _, RealClock};
use kymo_sys::machine;
use kymo_sys::talk;
use kymo_view::programs;
use kymo_view::time::Bound;
use kymo_wire::keeper::Programs;

use super::serve::{KEEPER_SOCKET, data_folder, running_folder};
use crate::output;
use crate::times;

/// Exit code when nothing was found.
const NOTHING: u8 = 1;
/// Time between two refreshes of a terminal.
const EVERY: Duration = Duration::from_secs(1);
/// Escape codes: to the first line, erase the rest of a line, erase the rest of the screen.
const HOME: &str = "\x1b[H";
const REST_OF_LINE: &str = "\x1b[K\n";
const REST_OF_SCREEN: &str = "\x1b[J";
const SECOND_NS: i64 = 1_000_000_000;

/// Options of `kymo programs`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ProgramsOptions {
    /// Programs of these names alone
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Print once, and end; so it is where no terminal is written to
    #[arg(long)]
    once: bool,
    /// Print JSON, once
    #[arg(long)]
    json: bool,
    /// What was in flight at this time, as it was recorded
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    at: Option<String>,
    /// The recording that says so; default: what kymo serve records
    #[arg(long, value_name = "PATH", requires = "at")]
    open: Option<PathBuf>,
    /// Folder of the kymo serve that is asked
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(options: &ProgramsOptions) -> Result<ExitCode> {
    if let Some(at) = &options.at {
        return show_recorded(options, at);
    }
    let keeper = Keeper::at(running_folder(options.data.as_deref())?.join(KEEPER_SOCKET));
    let lines = machine::terminal_lines().map(usize::from);
    if let (Some(lines), false) = (lines, options.once || options.json) {
        return watch(&keeper, options, lines);
    }
    let programs = ask(&keeper, options)?;
    let now_ns = RealClock.now().real_ns;
    let text = match options.json {
        true => format!("{}\n", kymo_serve::programs_json(&programs, now_ns)),
        false => programs::text(&programs, now_ns),
    };
    output::put(&text)?;
    if programs.publishers.is_empty() {
        talk::say("kymo: no program publishes anything");
        return Ok(ExitCode::from(NOTHING));
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the programs that a recording has at a moment.
fn show_recorded(options: &ProgramsOptions, at: &str) -> Result<ExitCode> {
    let (path, recordings) = match &options.open {
        Some(path) => {
            let found = Recordings::find(std::slice::from_ref(path));
            (path.clone(), found.map_err(Error::msg)?)
        }
        None => {
            let host = safe_host(&machine::host());
            let path = data_folder(options.data.as_deref())?.join(host);
            (path.clone(), Recordings::ring(&path))
        }
    };
    let at_ns = moment(at, recordings.only_recording().unwrap_or(&path))?;
    let recorded = activity::at(&recordings, at_ns).map_err(Error::msg)?;
    let Some(mut recorded) = recorded else {
        talk::say("kymo: nothing was recorded of programs then");
        return Ok(ExitCode::from(NOTHING));
    };
    keep_named(&mut recorded.programs, &options.names);
    let now_ns = i64::try_from(recorded.at_ns).unwrap_or(0);
    output::put(&match options.json {
        true => format!("{}\n", kymo_serve::recorded_programs_json(&recorded)),
        false => programs::text(&recorded.programs, now_ns),
    })?;
    Ok(ExitCode::from(u8::from(
        recorded.programs.publishers.is_empty(),
    )))
}

/// The moment of a time, in the zone of the recording. Without a day, the last one before the end of the recording.
fn moment(at: &str, path: &Path) -> Result<i64> {
    let now_ns = RealClock.now().real_ns;
    let bound = Bound::parse("--at", at, now_ns).map_err(anyhow::Error::msg)?;
    let (context, _) = times::beginning(path)?;
    let mut zone = times::zone_of(&context);
    let moment = times::last_moment(bound, &mut zone, times::last_ns(path)?);
    // The end of the second: the output is for the whole second.
    let moment = moment.with_context(|| format!("cannot use --at {at}: there is no such time"))?;
    Ok(moment + SECOND_NS - 1)
}

fn ask(keeper: &Keeper, options: &ProgramsOptions) -> Result<Programs> {
    let mut programs = keeper.programs(true).map_err(Error::msg)?;
    keep_named(&mut programs, &options.names);
    Ok(programs)
}

fn keep_named(programs: &mut Programs, names: &[String]) {
    let is_wanted =
        |name: &[u8]| names.is_empty() || names.iter().any(|each| each.as_bytes() == name);
    programs
        .publishers
        .retain(|publisher| is_wanted(&publisher.name));
}

/// Refreshes the terminal until a signal ends the process, or the terminal is gone.
fn watch(keeper: &Keeper, options: &ProgramsOptions, lines: usize) -> Result<ExitCode> {
    let mut out = io::stdout();
    write!(out, "{HOME}{REST_OF_SCREEN}")?;
    loop {
        let text = programs::text(&ask(keeper, options)?, RealClock.now().real_ns);
        let room = machine::terminal_lines().map_or(lines, usize::from);
        let mut screen = String::from(HOME);
        for line in text.lines().take(room.saturating_sub(1).max(1)) {
            screen.push_str(line);
            screen.push_str(REST_OF_LINE);
        }
        screen.push_str(REST_OF_SCREEN);
        if out
            .write_all(screen.as_bytes())
            .and_then(|()| out.flush())
            .is_err()
        {
            return Ok(ExitCode::SUCCESS);
        }
        std::thread::sleep(EVERY);
    }
}
