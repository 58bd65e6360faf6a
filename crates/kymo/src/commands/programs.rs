//! `kymo programs`: shows publishers and their activity on the terminal, from a running `kymo serve`, or at a moment, from a
//! recording.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Error, Result};
use clap::Args;
use kymo_keeper_client::Keeper;
use kymo_query::activity;
use kymo_query::open::Recordings;
use kymo_recording::folder::safe_host;
use kymo_sys::clock::{Clock as _, RealClock};
use kymo_sys::machine::{self, Signals};
use kymo_sys::talk;
use kymo_view::programs;
use kymo_view::time::Bound;
use kymo_wire::keeper::Programs;

use super::serve::{KEEPER_SOCKET, data_folder, running_folder};
use crate::output::{self, redraw::redraw};
use crate::times;

/// Exit code when nothing was found.
const NOTHING: u8 = 1;
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
    if machine::terminal_lines().is_some() && !options.once && !options.json {
        let text = || {
            Ok(programs::text(
                &ask(&keeper, options)?,
                RealClock.now().real_ns,
            ))
        };
        return redraw(&Signals::block(), text);
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
