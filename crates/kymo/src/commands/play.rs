//! `kymo play`: recordings and collectl's raw files through the views.

use std::process::ExitCode;

use anyhow::Result;
use kymo_kernel::subsystem::{self, Summary};
use kymo_query::open::Recordings;
use kymo_query::source::{Source, Step};
use kymo_recording::reader::{Kinds, TimeRange};
use kymo_view::Options;

use crate::cli::PlayOptions;
use crate::output::Pace;
use crate::{options, show, times};

/// Exit code when nothing lies in the span asked for.
const NOTHING: u8 = 1;

/// Runs the command.
pub fn run(play: &PlayOptions) -> Result<ExitCode> {
    let usage = anyhow::Error::msg;
    let count = options::count(play.count.as_deref()).map_err(usage)?;
    let files = Recordings::find(&play.paths).map_err(usage)?;
    let range = match files.only_recording() {
        Some(path) => times::range(play.view.from.as_deref(), play.view.thru.as_deref(), path)?,
        None => TimeRange::ALL,
    };
    let letters = match (&play.subsys, &play.view.top) {
        (Some(_), _) => options::letters(play.subsys.as_deref(), "cdn").map_err(usage)?,
        (None, Some(_)) => "Z".to_string(),
        (None, None) => recorded_letters(&mut *files.open(range, Kinds::ALL).map_err(usage)?)?,
    };
    let letters = show::letters(letters, &play.view);
    let dir = play.dir.as_deref();
    let view = show::options(&letters, &play.view, dir, count, Pace::Played).map_err(usage)?;
    let mut source = files.open(range, kinds(&view)).map_err(usage)?;
    let shown = show::run(&mut *source, &view, &play.view, dir, Pace::Played)?;
    Ok(if shown > 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(NOTHING)
    })
}

/// Kinds of source that the chosen subsystems need.
fn kinds(view: &Options) -> Kinds {
    view.choices
        .iter()
        .flat_map(|choice| choice.subsystem.sources.iter().copied())
        .collect()
}

/// The summaries that the first samples have sources for; of a recording of processes alone, these.
fn recorded_letters(source: &mut dyn Source) -> Result<String> {
    const SAMPLES: usize = 3;
    let mut samples = 0;
    while samples < SAMPLES {
        match source.next().map_err(anyhow::Error::msg)? {
            None => break,
            Some(Step::Sample(_)) => samples += 1,
            Some(_) => {}
        }
    }
    let has = |kind: &u8| source.tracks().get(*kind).instances().next().is_some();
    let recorded = subsystem::ALL
        .iter()
        .filter(|subsystem| subsystem.sources.iter().any(has));
    let letters: String = recorded
        .clone()
        .filter(|s| s.summary != Summary::None)
        .map(|s| s.letter)
        .collect();
    Ok(match letters.is_empty() {
        true if recorded.count() > 0 => "Z".into(),
        true => "cdn".into(),
        false => letters,
    })
}
