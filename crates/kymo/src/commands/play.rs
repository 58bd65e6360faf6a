//! `kymo play`: recordings and collectl's raw files through the views.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use kymo_base::context::Context;
use kymo_base::track::Tracks;
use kymo_kernel::subsystem::{self, Summary};
use kymo_query::collectl::Collectl;
use kymo_query::recorded::Recorded;
use kymo_query::source::{Source, Step};
use kymo_recording::collectl::{File, is_collectl_name};
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
    let files = find(&play.paths)?;
    let range = match &files[..] {
        [Found::Recording(path)] => {
            times::range(play.view.from.as_deref(), play.view.thru.as_deref(), path)?
        }
        _ => TimeRange::ALL,
    };
    let letters = match (&play.subsys, &play.view.top) {
        (Some(_), _) => options::letters(play.subsys.as_deref(), "cdn").map_err(usage)?,
        (None, Some(_)) => "Z".to_string(),
        (None, None) => recorded_letters(&mut *open(&files, range, Kinds::ALL)?)?,
    };
    let letters = show::letters(letters, &play.view);
    let dir = play.dir.as_deref();
    let view = show::options(&letters, &play.view, dir, count, Pace::Played).map_err(usage)?;
    let mut source = open(&files, range, kinds(&view))?;
    let shown = show::run(&mut *source, &view, &play.view, dir, Pace::Played)?;
    Ok(if shown > 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(NOTHING)
    })
}

/// What a path turned out to be.
enum Found {
    Recording(PathBuf),
    Collectl(PathBuf),
}

/// Looks at each path: collectl's files go by their names or are in a folder, all else is a recording.
fn find(paths: &[PathBuf]) -> Result<Vec<Found>> {
    let mut found = Vec::new();
    for path in paths {
        let about = path
            .metadata()
            .with_context(|| format!("cannot play {}", path.display()))?;
        if about.is_file() {
            found.push(match is_collectl(path) {
                true => Found::Collectl(path.clone()),
                false => Found::Recording(path.clone()),
            });
            continue;
        }
        let mut raw: Vec<PathBuf> = std::fs::read_dir(path)
            .with_context(|| format!("cannot play {}", path.display()))?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| is_collectl(path) && path.is_file())
            .collect();
        raw.sort();
        match raw.is_empty() {
            true => found.push(Found::Recording(path.clone())),
            false => found.extend(raw.into_iter().map(Found::Collectl)),
        }
    }
    Ok(found)
}

fn is_collectl(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|name| is_collectl_name(&name.to_string_lossy()))
}

/// Opens all that was found as one source.
fn open(found: &[Found], range: TimeRange, kinds: Kinds) -> Result<Box<dyn Source>> {
    let mut sources: VecDeque<Box<dyn Source>> = VecDeque::new();
    let mut files = Vec::new();
    for found in found {
        match found {
            Found::Collectl(path) => files.push(open_raw(path)?),
            Found::Recording(path) => {
                sources.push_back(Box::new(
                    Recorded::open(path, range, kinds).map_err(anyhow::Error::msg)?,
                ));
            }
        }
    }
    if !files.is_empty() {
        sources.push_front(Box::new(Collectl::new(files, users())));
    }
    Ok(match (sources.len(), sources.pop_front()) {
        (1, Some(only)) => only,
        (_, first) => Box::new(Chain {
            now: first.context("cannot play nothing")?,
            next: sources,
        }),
    })
}

fn open_raw(path: &Path) -> Result<File> {
    let bytes =
        std::fs::File::open(path).with_context(|| format!("cannot play {}", path.display()))?;
    let name = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    Ok(File {
        name,
        bytes: Box::new(bytes),
    })
}

/// Users of this machine: raw files have numbers only, and collectl takes the names from here too.
fn users() -> Vec<(String, String)> {
    let passwd = std::fs::read("/etc/passwd").unwrap_or_default();
    let passwd = String::from_utf8_lossy(&passwd);
    let user = |line: &str| {
        let mut parts = line.split(':');
        let name = parts.next()?;
        Some((parts.nth(1)?.to_string(), name.to_string()))
    };
    passwd.lines().filter_map(user).collect()
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

/// Sources one after the other.
struct Chain {
    now: Box<dyn Source>,
    next: VecDeque<Box<dyn Source>>,
}

impl Source for Chain {
    fn next(&mut self) -> Result<Option<Step>, String> {
        match self.now.next()? {
            Some(step) => Ok(Some(step)),
            None => match self.next.pop_front() {
                Some(source) => {
                    self.now = source;
                    Ok(Some(Step::Gap("another recording begins".into())))
                }
                None => Ok(None),
            },
        }
    }

    fn tracks(&self) -> &Tracks {
        self.now.tracks()
    }

    fn context(&self) -> &Context {
        self.now.context()
    }
}
