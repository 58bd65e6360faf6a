//! `kymo top HOST: HOST: ...`: several machines as rows of a table, each through a program such as ssh that runs `kymo feed` there.

mod address;
mod call;
mod far;
mod link;
mod opened;
mod screen;

use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use kymo_sys::clock::{Clock as _, RealClock};
use kymo_sys::machine::{self, Signal, Signals};
use kymo_top::fleet::Fleet;
use kymo_top::hosts::{self, COLUMNS, HostColumn, HostRow, LinkState, Wanted};

use self::call::{Stop, lock};
use self::link::{Link, News};
use self::screen::HostsScreen;
use super::super::series;
use super::look;
use super::terminal;
use crate::output;
use crate::times::days;

/// Exit code when a host has no row.
const MISSING: u8 = 1;
/// Most hosts.
const HOSTS_MAX: usize = 1000;
/// Time that all hosts together have with `--once`.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time between two looks for rows with `--once`.
const LOOK: Duration = Duration::from_millis(50);

/// Options of `kymo top` for hosts.
#[derive(Clone, Debug)]
pub(crate) struct HostsOptions {
    /// HOST: or USER@HOST:, as ssh knows them.
    pub(crate) hosts: Vec<String>,
    /// True to print the table once; so it is where no terminal is written to.
    pub(crate) once: bool,
    /// Time of the table that is printed once.
    pub(crate) at: Option<String>,
    /// Column by which the rows are sorted.
    pub(crate) sort: String,
}

/// True for a word that names a host. The error is about its name.
pub(crate) fn is_host(word: &str) -> Result<bool> {
    Ok(address::host(word)?.is_some())
}

/// Runs the command.
pub(crate) fn run(options: &HostsOptions) -> Result<ExitCode> {
    let by = HostColumn::of(&options.sort).with_context(|| {
        let known: Vec<&str> = COLUMNS.iter().map(|(_, word, ..)| *word).collect();
        format!(
            "cannot use --sort {:?}: it takes {}",
            options.sort,
            known.join(", ")
        )
    })?;
    let mut names: Vec<&str> = Vec::new();
    for word in &options.hosts {
        let Some(host) = address::host(word)? else {
            bail!("cannot use {word:?}: it is no host; a host ends with a colon");
        };
        if !names.contains(&host) {
            names.push(host);
        }
    }
    if names.len() > HOSTS_MAX {
        bail!("cannot follow {} hosts: at most {HOSTS_MAX}", names.len());
    }
    let at_ns = options.at.as_deref().map(moment).transpose()?;
    machine::raise_open_files();
    let (reader, writer) = io::pipe().context("cannot make a pipe")?;
    let (stop, news) = (Arc::new(Stop(reader)), Arc::new(News::default()));
    let wanted = Wanted {
        at_ns,
        ..Wanted::default()
    };
    let links: Result<Vec<Link>, io::Error> = names
        .iter()
        .map(|name| Link::new(name, &stop, &news, wanted))
        .collect();
    let links = links.context("cannot make a pipe")?;
    let is_once = options.once || machine::terminal_lines().is_none();
    // Before the threads, which inherit it.
    let signals = is_once.then(Signals::block);
    let mut threads = Vec::new();
    for link in &links {
        let link = link.clone();
        let thread = thread::Builder::new().name("host".into());
        let thread = thread.spawn(move || link.follow());
        threads.push(thread.context("cannot start a thread")?);
    }
    let shown = match signals {
        Some(signals) => once(&links, by, at_ns, &signals),
        None => {
            let now_ns = RealClock.now().real_ns;
            let fleet = Fleet::new(look::palette(), days::zone()?, now_ns, at_ns, by);
            terminal::run(|sender| Ok(Box::new(HostsScreen::new(fleet, links, news, sender))))
        }
    };
    // All threads see that.
    drop(writer);
    for thread in threads {
        let _panicked = thread.join();
    }
    shown
}

/// The end of a second.
fn moment(text: &str) -> Result<i64> {
    let second = series::moment("--at", text)?;
    Ok(second
        .saturating_mul(1_000_000_000)
        .saturating_add(999_999_999))
}

fn rows(links: &[Link], by: HostColumn, now_ns: i64) -> Vec<HostRow> {
    let mut rows: Vec<HostRow> = links.iter().map(|link| lock(&link.row).clone()).collect();
    hosts::sort(&mut rows, by, now_ns);
    rows
}

/// Prints the table as soon as each host has a row or a fault; one that hangs is not waited for.
fn once(links: &[Link], by: HostColumn, at_ns: Option<i64>, signals: &Signals) -> Result<ExitCode> {
    let begun = Instant::now();
    let now_ns = || at_ns.unwrap_or_else(|| RealClock.now().real_ns);
    // The first row of a host that is followed has no rates yet.
    let is_waited_for = |row: &HostRow| match row.state {
        LinkState::Connecting => true,
        LinkState::Up => row.values[0].is_nan() || row.at_ns != at_ns,
        LinkState::Unrecorded | LinkState::Down(_) => false,
    };
    while begun.elapsed() < PATIENCE && rows(links, by, now_ns()).iter().any(is_waited_for) {
        if signals.wait(LOOK) == Some(Signal::Stop) {
            break;
        }
    }
    let rows = rows(links, by, now_ns());
    output::put(&hosts::text(&rows, now_ns()))?;
    let all = rows.iter().all(|row| row.state == LinkState::Up);
    Ok(if all {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(MISSING)
    })
}
