//! What a path holds, opened as one source: recordings and collectl's raw files.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::Instant;

use kymo_base::context::Context;
use kymo_base::track::Tracks;
use kymo_recording::collectl::{File, is_collectl_name};
use kymo_recording::reader::{Kinds, TimeRange};

use crate::collectl::Collectl;
use crate::recorded::Recorded;
use crate::source::{Source, Step};

/// Recordings that were found, in the order they are played.
#[derive(Clone, Debug)]
pub struct Recordings {
    found: Vec<Found>,
    until: Option<Instant>,
}

/// What a path turned out to be.
#[derive(Clone, Debug)]
enum Found {
    Recording(PathBuf),
    Collectl(PathBuf),
}

impl Recordings {
    /// The recording at `path`, whatever is there now.
    pub fn ring(path: &Path) -> Recordings {
        Recordings::of(vec![Found::Recording(path.into())])
    }

    /// Looks at each path: collectl's files go by their names or are in a folder, all else is a recording.
    pub fn find(paths: &[PathBuf]) -> Result<Recordings, String> {
        let mut found = Vec::new();
        for path in paths {
            let cannot = |error| format!("cannot open {}: {error}", path.display());
            if path.metadata().map_err(cannot)?.is_file() {
                found.push(match is_collectl(path) {
                    true => Found::Collectl(path.clone()),
                    false => Found::Recording(path.clone()),
                });
                continue;
            }
            let mut raw: Vec<PathBuf> = std::fs::read_dir(path)
                .map_err(cannot)?
                .filter_map(|entry| Some(entry.ok()?.path()))
                .filter(|path| is_collectl(path) && path.is_file())
                .collect();
            raw.sort();
            match raw.is_empty() {
                true => found.push(Found::Recording(path.clone())),
                false => found.extend(raw.into_iter().map(Found::Collectl)),
            }
        }
        Ok(Recordings::of(found))
    }

    fn of(found: Vec<Found>) -> Recordings {
        Recordings { found, until: None }
    }

    /// The same, of which reading ends with an error after this moment.
    pub fn until(self, moment: Instant) -> Recordings {
        Recordings {
            until: Some(moment),
            ..self
        }
    }

    /// The path, when all there is is one recording of our own.
    pub fn only_recording(&self) -> Option<&Path> {
        match &self.found[..] {
            [Found::Recording(path)] => Some(path),
            _ => None,
        }
    }

    /// Opens all of it as one source, of which only `kinds` are needed, and only those within `range`:
    /// collectl's files give everything nonetheless.
    pub fn open(&self, range: TimeRange, kinds: Kinds) -> Result<Box<dyn Source>, String> {
        let mut sources: VecDeque<Box<dyn Source>> = VecDeque::new();
        let mut files = Vec::new();
        for found in &self.found {
            match found {
                Found::Collectl(path) => files.push(open_raw(path)?),
                Found::Recording(path) => {
                    sources.push_back(Box::new(Recorded::open(path, range, kinds)?));
                }
            }
        }
        if !files.is_empty() {
            sources.push_front(Box::new(Collectl::new(files, users())));
        }
        let first = sources.pop_front().ok_or("cannot open nothing")?;
        let whole: Box<dyn Source> = match sources.is_empty() {
            true => first,
            false => Box::new(Chain {
                now: first,
                next: sources,
            }),
        };
        Ok(match self.until {
            None => whole,
            Some(until) => Box::new(Bounded {
                source: whole,
                until,
            }),
        })
    }
}

/// A source that gives up when reading takes too long.
struct Bounded {
    source: Box<dyn Source>,
    until: Instant,
}

impl Source for Bounded {
    fn next(&mut self) -> Result<Option<Step>, String> {
        // Each step, since one may wait long for a slow disk: 30 ns beside microseconds of decoding (a guess).
        if Instant::now() > self.until {
            return Err("cannot answer: reading takes too long; ask for less".into());
        }
        self.source.next()
    }

    fn tracks(&self) -> &Tracks {
        self.source.tracks()
    }

    fn context(&self) -> &Context {
        self.source.context()
    }
}

fn is_collectl(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|name| is_collectl_name(&name.to_string_lossy()))
}

fn open_raw(path: &Path) -> Result<File, String> {
    let bytes = std::fs::File::open(path)
        .map_err(|error| format!("cannot open {}: {error}", path.display()))?;
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
