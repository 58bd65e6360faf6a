//! `kymo top`: the screen of `kymo_top`, on a terminal or printed once: this machine live with the recording that `kymo serve` keeps
//! of it, or recordings.

mod happening;
mod hosts;
mod live;
mod look;
mod one_machine;
mod stored;
mod terminal;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Error, Result, bail};
use clap::Args;
use kymo_kernel::subsystem::process::PROCESS;
use kymo_query::archive::{Archive, RecordingSource};
use kymo_sys::clock::{Clock as _, RealClock};
use kymo_sys::machine;
use kymo_sys::talk;
use kymo_top::app::App;
use kymo_top::draw::{draw, text};
use kymo_top::key::Key;
use kymo_top::past::Past;
use kymo_top::screen::Go;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;

use super::data;
use super::serve::files_folder;
use crate::output;
use crate::times::days;
use hosts::HostsOptions;
use live::Live;
use one_machine::Machine;
use stored::StoredArchive;

/// Size of a screen that is printed, unless the environment has another.
const SIZE: (u16, u16) = (80, 24);
/// Largest size of a screen that is printed.
const SIZE_MAX: u16 = 1000;
/// Time between two reports of the part of the files that was read.
const REPORTED_EACH: Duration = Duration::from_secs(1);
/// Longest wait for the rates of a screen that is printed.
const PATIENCE: Duration = Duration::from_secs(5);

/// Options of `kymo top`.
#[derive(Args, Clone, Debug)]
pub(crate) struct TopOptions {
    /// Recordings: folders, files of kymo export, or collectl's raw files; or other machines, as ssh knows them: HOST: or USER@HOST:,
    /// each a row; default: this machine, with the past that kymo serve records
    #[arg(value_name = "PATH|HOST:")]
    paths: Vec<PathBuf>,
    /// Begin at this time: 14:30, 20261121:14:30, -1h
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    at: Option<String>,
    /// Press these keys first: letters and digits, as on the screen
    #[arg(long, value_name = "KEYS", allow_hyphen_values = true)]
    keys: Option<String>,
    /// Print the screen as text, and end; so it is where no terminal is written to. COLUMNS and LINES are its size
    #[arg(long)]
    once: bool,
    /// Folder of the kymo serve whose recording is the past
    #[arg(long, value_name = "DIR", conflicts_with = "paths")]
    data: Option<PathBuf>,
    /// Sort hosts by this column: host, cpu, load, pressure, memory, swap, disk, net, clock, age
    #[arg(long, value_name = "COLUMN")]
    sort: Option<String>,
}

/// Runs the command.
pub(crate) fn run(options: &TopOptions) -> Result<ExitCode> {
    if let Some(of_hosts) = of_hosts(options)? {
        return hosts::run(&of_hosts);
    }
    let past = past(options);
    let now_ns = RealClock.now().real_ns;
    let live = match options.paths.is_empty() {
        true => Some(Live::start(false)?),
        false => None,
    };
    let (past, why) = match past {
        Ok(past) => (Some(past), String::new()),
        Err(error) if live.is_none() => return Err(error),
        Err(error) => (None, format!("no past: {error:#}")),
    };
    let shared = live.as_ref().map(Live::readings);
    let mut app = App::new(shared, past, look::palette(), now_ns);
    app.without_past(why);
    app.waits_for = live::waits_for;
    if live.is_none() {
        app.go(Go::Live).map_err(Error::msg)?;
    }
    let once = options.once || machine::terminal_lines().is_none();
    if let (Some(live), true) = (&live, once) {
        live.wait_for_rates(Instant::now() + PATIENCE);
        app.tick();
    }
    if let Some(at) = &options.at {
        app.jump(at).map_err(Error::msg)?;
    }
    let (width, height) = look::size(SIZE, SIZE_MAX);
    if once {
        // Keys that move look at the picture before.
        let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
        draw(&mut app, &mut buffer);
        answer(&mut app);
        press(&mut app, options.keys.as_deref());
        answer(&mut app);
        buffer.reset();
        draw(&mut app, &mut buffer);
        output::put(&text(&buffer))?;
        return Ok(ExitCode::SUCCESS);
    }
    press(&mut app, options.keys.as_deref());
    terminal::run(|sender| Ok(Box::new(Machine::new(app, live, 0, sender)?)))
}

/// The options for hosts, if the command names any.
fn of_hosts(options: &TopOptions) -> Result<Option<HostsOptions>> {
    let mut hosts = Vec::new();
    for word in options.paths.iter().filter_map(|path| path.to_str()) {
        if hosts::is_host(word)? {
            hosts.push(word.to_string());
        }
    }
    if hosts.is_empty() {
        if options.sort.is_some() {
            bail!(
                "cannot use --sort without hosts: processes are sorted by keys, such as --keys m"
            );
        }
        return Ok(None);
    }
    if hosts.len() < options.paths.len() {
        bail!("cannot show recordings and hosts at once");
    }
    if options.keys.is_some() {
        bail!("cannot use --keys with hosts");
    }
    Ok(Some(HostsOptions {
        hosts,
        once: options.once,
        at: options.at.clone(),
        sort: options.sort.clone().unwrap_or_else(|| "cpu".into()),
    }))
}

/// The recording that the command names, or that of a `kymo serve`.
fn past(options: &TopOptions) -> Result<Past> {
    let archive = match options.paths.is_empty() {
        true => {
            let folder = files_folder(options.data.as_deref())?;
            let found = folder.metadata();
            found.with_context(|| format!("cannot open {}", folder.display()))?;
            data::archive(&folder)
        }
        false => Archive::new(
            kept(RecordingSource::Files(days::named(&options.paths)?))?,
            None,
        ),
    };
    Past::open(Arc::new(StoredArchive(archive)), &PROCESS).map_err(Error::msg)
}

/// The recording with samples of collectl's files in memory. A reading of more than a moment reports the part that was read.
fn kept(what: RecordingSource) -> Result<RecordingSource> {
    let (mut next, mut is_reported) = (Instant::now() + REPORTED_EACH, false);
    let kept = what.keep(&mut |read, all| {
        if machine::stderr_is_terminal() && Instant::now() >= next {
            next = Instant::now() + REPORTED_EACH;
            is_reported = true;
            let percent = read.saturating_mul(100) / all.max(1);
            talk::put(format!("\rkymo: reading the files: {percent} %").as_bytes());
        }
    });
    if is_reported {
        talk::put(b"\r\x1b[K");
    }
    kept.map_err(Error::msg)
}

fn press(app: &mut App, keys: Option<&str>) {
    for key in keys.unwrap_or_default().chars() {
        app.press(match key {
            '\n' => Key::Enter,
            key => Key::Char(key),
        });
    }
}

/// Answers all questions here and now.
fn answer(app: &mut App) {
    let Some(archive) = app.archive() else { return };
    for question in app.questions() {
        app.answered(question, question.answer(&*archive));
    }
}
