//! From switches to a view: its contents, format and destination.

use std::path::Path;

use anyhow::Result;
use kymo_kernel::subsystem;
use kymo_query::source::Source;
use kymo_sys::machine;
use kymo_view::options::Format;
use kymo_view::processes::{Columns, Filter, Top};
use kymo_view::{Options, Shown, Stopped, VMSTAT_LETTERS, play};

use crate::options::ViewOptions;
use crate::output::broadcast::Broadcast;
use crate::output::carbon::Carbon;
use crate::output::gmond::Gmond;
use crate::output::snapshot::Snapshot;
use crate::output::{Existing, Output, Pace, PlotPlace};
use crate::times;

/// Processes of `--top` if no terminal limits them.
const TOP_DEFAULT: usize = 10;
/// Lines of a terminal that `--top` needs for its heads.
const TOP_HEADS: usize = 5;

/// Letters to show: the chosen ones, and that of processes or slab caches if `--top` needs it.
pub(crate) fn letters(chosen: String, view: &ViewOptions) -> String {
    if view.shape.is_vmstat() {
        return VMSTAT_LETTERS.into();
    }
    match view.ranked().filter(|_| view.shape.tree().is_none()) {
        Some("Z") if !subsystem::asks_for_processes(&chosen) => chosen + "Z",
        Some("Y") if !chosen.contains('Y') => chosen + "Y",
        _ => chosen,
    }
}

/// The part of the recorded `letters` to show meanwhile: by default one line an interval with the
/// summaries; with another format all.
pub(crate) fn beside_recording(letters: &str, view: &ViewOptions) -> String {
    let other = view.verbose
        || view.shape.full
        || view.plot
        || view.csv
        || view.json
        || view.is_of_processes()
        || view.shape.is_lines();
    let summaries: String = letters.chars().filter(char::is_ascii_lowercase).collect();
    match other || summaries.is_empty() {
        true => letters.to_string(),
        false => summaries,
    }
}

/// Options of the view by the switches.
pub(crate) fn options(
    letters: &str,
    view: &ViewOptions,
    dir: Option<&Path>,
    count: Option<u64>,
    pace: Pace,
) -> Result<Options, String> {
    let mut options = Options::new(letters)?;
    let terminal = machine::terminal_lines().map(usize::from);
    let letters = view.stamp_letters();
    options.set_stamp(&letters)?;
    check(&letters, view, dir, pace)?;
    if view.utc {
        options.set_stamp("U")?;
    }
    if let Some(separator) = &view.sep {
        options.set_separator(separator)?;
    }
    if let Some(filter) = &view.procfilt {
        options.filter = Filter::parse(filter)?;
    }
    if let Some(columns) = &view.procopts {
        options.process = Columns::parse(columns)?;
    }
    if let Some(top) = &view.top {
        let room = terminal
            .filter(|_| pace == Pace::Live)
            .map(|lines| lines.saturating_sub(TOP_HEADS).max(1));
        options.top = Some(Top::parse(top, room.unwrap_or(TOP_DEFAULT))?);
    }
    options.live = pace == Pace::Live;
    options.set_format(format(view, dir)?)?;
    view.shape.apply(&mut options)?;
    let format = options.format;
    options.set_format(format)?;
    options.heads_only = view.texts.showcolheaders;
    options.command_line = command_line();
    options.letters = letters;
    let in_place = !options.top.is_some_and(|top| top.vertical);
    options.watched = terminal.is_some() && pace == Pace::Live && in_place;
    options.count = count;
    options.span = times::span(view.from.as_deref(), view.thru.as_deref())?;
    match view.header_repeat {
        Some(n) if n < -1 => {
            return Err(format!(
                "cannot use --hr {n}: it takes -1, 0 or a number of lines"
            ));
        }
        Some(-1) => options.header = false,
        Some(n) => options.header_every = u64::try_from(n).ok().filter(|&n| n > 0),
        // So a header is always visible.
        None if view.plot || view.csv => {}
        None => options.header_every = terminal.map(|lines| lines.saturating_sub(2).max(1) as u64),
    }
    Ok(options)
}

/// Refuses switches that have a meaning only elsewhere.
fn check(letters: &str, view: &ViewOptions, dir: Option<&Path>, pace: Pace) -> Result<(), String> {
    if let Some(only_files) = letters.chars().find(|c| "acu".contains(*c))
        && dir.is_none()
    {
        return Err(format!(
            "cannot use -o {only_files}: it is for plot files; see -P -f DIR"
        ));
    }
    if letters.contains('i') && (!view.plot || dir.is_some() || pace == Pace::Played) {
        return Err(
            "cannot use -o i: it is for -P live on a terminal; files always begin so".into(),
        );
    }
    let bounds = [("--from", &view.from), ("--thru", &view.thru)];
    if let Some((switch, _)) = bounds.iter().find(|(_, time)| time.is_some())
        && pace == Pace::Live
    {
        return Err(format!(
            "cannot use {switch}: it is for what is played; see -p"
        ));
    }
    if view.shape.home && pace == Pace::Played {
        return Err("cannot use --home: it has no effect on what is played".into());
    }
    if view.texts.showcolheaders && (view.json || view.shape.lines()?.is_some() || dir.is_some()) {
        return Err(
            "cannot use --showcolheaders: it is for what has columns, on the terminal".into(),
        );
    }
    if view.texts.showheader && dir.is_some() {
        return Err("cannot use --showheader: not together with -f".into());
    }
    let process = view.procopts.as_deref().unwrap_or_default();
    if process.contains('z') && !view.is_of_processes() {
        return Err("cannot use --procopts z: it is for --top and --export proctree".into());
    }
    Existing::of(letters, pace).map(|_| ())
}

/// Words of the command line.
fn command_line() -> String {
    let words = std::env::args_os().skip(1);
    let words: Vec<String> = words
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    words.join(" ")
}

fn format(view: &ViewOptions, dir: Option<&Path>) -> Result<Format, String> {
    if dir.is_some() && !view.plot {
        return Err("cannot use -f here: only plot files (-P) are written".into());
    }
    Ok(match view {
        ViewOptions { plot: true, .. } if dir.is_some() => Format::PlotFiles,
        ViewOptions { plot: true, .. } => Format::Plot,
        ViewOptions { csv: true, .. } => Format::Csv,
        ViewOptions { json: true, .. } => Format::Json,
        _ if view.shape.is_vmstat() => Format::Vmstat,
        _ if view.shape.tree().is_some() => Format::Tree,
        _ if view.shape.is_lines() => Format::Lines,
        _ if view.verbose || view.shape.full => Format::Verbose,
        _ => Format::Brief,
    })
}

/// Shows all samples of `source`.
pub(crate) fn run(
    source: &mut dyn Source,
    options: &Options,
    view: &ViewOptions,
    (dir, clients): (Option<&Path>, Option<Broadcast>),
    pace: Pace,
) -> Result<Shown> {
    if let Some(path) = view.shape.snapshot() {
        return Ok(play(source, options, &mut Snapshot::new(path))?);
    }
    if let Some((_, Some(address))) = view.shape.lines().map_err(anyhow::Error::msg)? {
        if view
            .shape
            .export
            .as_ref()
            .is_some_and(|text| text.starts_with("gexpr"))
        {
            let mut gmond = Gmond::new(address).map_err(anyhow::Error::msg)?;
            return Ok(play(source, options, &mut gmond)?);
        }
        let mut carbon = Carbon::new(address).map_err(anyhow::Error::msg)?;
        return Ok(play(source, options, &mut carbon)?);
    }
    let letters = view.stamp_letters();
    let existing = Existing::of(&letters, pace).map_err(anyhow::Error::msg)?;
    let place = dir.map(|dir| PlotPlace::of(dir, view.shape.as_collectl));
    let mut output = Output::new(pace, (place, clients), !letters.contains('z'), existing)?;
    let shown = match play(source, options, &mut output) {
        Ok(shown) => shown,
        Err(Stopped::Source(error)) => {
            // The output up to the error is flushed.
            output.finish()?;
            anyhow::bail!(error);
        }
        Err(Stopped::Output(error)) => return Err(error.into()),
    };
    output.finish()?;
    Ok(shown)
}
