//! Opens the recordings and the raw files of collectl at a path as one source. As with collectl, a path may be
//! several paths or patterns with commas between them. `-` is a raw file on standard input.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use kymo_base::context::Context;
use kymo_base::track::Tracks;
use kymo_kernel::facts;
use kymo_kernel::subsystem::{self, Summary};
use kymo_recording::Error;
use kymo_recording::collectl::{self, File, is_collectl_name};
use kymo_recording::reader::{Kinds, Recording, TimeRange};
use kymo_sys::disk::{Disk as _, RealDisk};
use kymo_sys::kernel_file::Root;
use kymo_sys::known_folders::KnownFolders;
use kymo_sys::spooled::Spooled;

use crate::collectl::Collectl;
use crate::merged::Merged;
use crate::recorded::Recorded;
use crate::source::{Source, Step};

/// Recordings that were found, in the order they are played.
#[derive(Clone, Debug)]
pub struct Recordings {
    found: Vec<Found>,
    until: Option<Instant>,
    /// A copy of standard input, which is read more than once by its path.
    #[expect(dead_code, reason = "the path is there as long as the file is open")]
    spooled: Option<Arc<Spooled>>,
}

/// Maker of a recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MadeBy {
    /// kymo.
    Kymo,
    /// collectl: a raw file.
    Collectl,
}

/// Content of a path.
#[derive(Clone, PartialEq, Debug)]
enum Found {
    Recording(PathBuf),
    Collectl(PathBuf),
}

impl Recordings {
    /// The recording at `path`, whatever is there now.
    pub fn ring(path: &Path) -> Recordings {
        Recordings::of(vec![Found::Recording(path.into())])
    }

    /// Looks at each path: collectl's files go by their names or are in a folder, beside recordings or
    /// not; all else is a recording.
    pub fn find(paths: &[PathBuf]) -> Result<Recordings, String> {
        let (mut found, mut spooled) = (Vec::new(), None);
        for path in paths {
            if path.as_os_str() == "-" {
                if spooled.is_none() {
                    let input = Spooled::standard_input()
                        .map_err(|error| format!("cannot copy standard input: {error}"))?;
                    found.push(Found::Collectl(input.path()));
                    spooled = Some(Arc::new(input));
                }
                continue;
            }
            for path in expand(path)? {
                for one in look(&path)? {
                    if !found.contains(&one) {
                        found.push(one);
                    }
                }
            }
        }
        Ok(Recordings {
            spooled,
            ..Recordings::of(found)
        })
    }

    fn of(found: Vec<Found>) -> Recordings {
        Recordings {
            found,
            until: None,
            spooled: None,
        }
    }

    /// Makes reads of the recordings fail after this moment.
    pub fn until(self, moment: Instant) -> Recordings {
        Recordings {
            until: Some(moment),
            ..self
        }
    }

    /// The path, if there is only one recording, and it is our own.
    pub fn only_recording(&self) -> Option<&Path> {
        match &self.found[..] {
            [Found::Recording(path)] => Some(path),
            _ => None,
        }
    }

    /// The paths of collectl's files and of our own recordings, in the order they are played.
    pub fn paths(&self) -> impl Iterator<Item = (MadeBy, &Path)> {
        self.found.iter().map(|found| match found {
            Found::Recording(path) => (MadeBy::Kymo, path.as_path()),
            Found::Collectl(path) => (MadeBy::Collectl, path.as_path()),
        })
    }

    /// The letters of the recorded subsystems, collectl's own included, as far as the recordings name them.
    pub fn letters(&self, range: TimeRange) -> Result<String, String> {
        let mut letters = String::new();
        for found in &self.found {
            let more = match found {
                Found::Collectl(path) => raw_letters(path)?,
                Found::Recording(path) => own_letters(path, range)?,
            };
            let new = more.chars().filter(|&letter| !letters.contains(letter));
            letters.extend(new.collect::<Vec<_>>());
        }
        Ok(letters)
    }

    /// Opens all of it as one source, one recording after the other, of which only `kinds` are needed, and
    /// only those within `range`: collectl's files give everything nonetheless.
    pub fn open(&self, range: TimeRange, kinds: Kinds) -> Result<Box<dyn Source>, String> {
        let mut sources = VecDeque::from(self.sources(range, kinds)?);
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

    /// Opens the recordings merged by time, for callers that keep the samples of different recordings apart.
    pub fn open_merged(&self, range: TimeRange, kinds: Kinds) -> Result<Box<dyn Source>, String> {
        let mut sources = self.sources(range, kinds)?;
        match sources.len() {
            0 => Err("cannot open nothing".into()),
            1 => Ok(sources.remove(0)),
            _ => Ok(Box::new(Merged::new(sources))),
        }
    }

    /// Opens what [`Recordings::open_merged`] does for several ranges, one after the other.
    pub fn open_each(
        &self,
        ranges: Vec<TimeRange>,
        kinds: Kinds,
    ) -> Result<Box<dyn Source>, String> {
        let mut left = VecDeque::from(ranges);
        let first = left.pop_front().unwrap_or(TimeRange::ALL);
        let now = self.open_merged(first, kinds)?;
        Ok(match left.is_empty() {
            true => now,
            false => Box::new(InRanges {
                recordings: self.clone(),
                kinds,
                left,
                now,
            }),
        })
    }

    /// collectl's files, whose bytes go through `through`; `None` where there is anything else.
    pub(crate) fn collectl(
        &self,
        through: &dyn Fn(Box<dyn Read>) -> Box<dyn Read>,
    ) -> Result<Option<Collectl>, String> {
        let mut files = Vec::new();
        for (made_by, path) in self.paths() {
            if made_by == MadeBy::Kymo {
                return Ok(None);
            }
            let file = open_raw(path)?;
            files.push(File {
                bytes: through(file.bytes),
                ..file
            });
        }
        Ok(Some(Collectl::new(files, users(), own_zone())))
    }

    /// Machine of each recording; collectl's files together are one.
    fn sources(&self, range: TimeRange, kinds: Kinds) -> Result<Vec<Box<dyn Source>>, String> {
        let mut sources: Vec<Box<dyn Source>> = Vec::new();
        let mut files = Vec::new();
        for found in &self.found {
            match found {
                Found::Collectl(path) => files.push(open_raw(path)?),
                Found::Recording(path) => {
                    sources.push(Box::new(Recorded::open(path, range, kinds)?));
                }
            }
        }
        if !files.is_empty() {
            sources.insert(0, Box::new(Collectl::new(files, users(), own_zone())));
        }
        Ok(sources)
    }
}

/// The paths that `path` stands for: `path` itself where it exists, else the parts between commas, each a
/// pattern or a path.
fn expand(path: &Path) -> Result<Vec<PathBuf>, String> {
    let Some(text) = path.to_str().filter(|_| path.symlink_metadata().is_err()) else {
        return Ok(vec![path.into()]);
    };
    let mut paths = Vec::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let is_pattern =
            part.contains(['*', '?', '[']) && Path::new(part).symlink_metadata().is_err();
        match is_pattern {
            true => paths.extend(matching(part)?),
            false => paths.push(part.into()),
        }
    }
    Ok(paths)
}

/// Everything that matches a pattern and can be played, in the order of names.
fn matching(pattern: &str) -> Result<Vec<PathBuf>, String> {
    let cannot = |cause: &str| format!("cannot play {}: {cause}", pattern.escape_debug());
    let matches = glob::glob(pattern).map_err(|error| cannot(error.msg))?;
    let mut paths: Vec<PathBuf> = Vec::new();
    for path in matches.filter_map(Result::ok) {
        let plays = match path.is_dir() {
            true => !raw_files(&path)?.is_empty() || is_recording(&path)?,
            false => is_collectl(&path) || is_recording(&path)?,
        };
        if plays {
            paths.push(path);
        }
    }
    match paths.is_empty() {
        true => Err(cannot("no recording and no raw file of collectl matches")),
        false => Ok(paths),
    }
}

/// Opens one path.
fn look(path: &Path) -> Result<Vec<Found>, String> {
    let cannot = |error| format!("cannot open {}: {error}", path.display());
    if path.metadata().map_err(cannot)?.is_file() {
        return Ok(vec![match is_collectl(path) {
            true => Found::Collectl(path.into()),
            false => Found::Recording(path.into()),
        }]);
    }
    let mut found: Vec<Found> = raw_files(path)?.into_iter().map(Found::Collectl).collect();
    // Where there is nothing at all, opening it says so.
    if found.is_empty() || is_recording(path)? {
        found.push(Found::Recording(path.into()));
    }
    Ok(found)
}

/// collectl's files in a folder.
fn raw_files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    static KNOWN: KnownFolders<OsString> = KnownFolders::new();
    let names = KNOWN.names(RealDisk.folder_stamp(folder), || {
        let entries = std::fs::read_dir(folder)?;
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let paths = paths.filter(|path| is_collectl(path) && path.is_file());
        let mut names: Vec<_> = paths
            .filter_map(|path| Some(path.file_name()?.to_owned()))
            .collect();
        names.sort();
        Ok::<_, io::Error>(names)
    });
    let names = names.map_err(|error| format!("cannot open {}: {error}", folder.display()))?;
    Ok(names.iter().map(|name| folder.join(name)).collect())
}

/// True if there is a recording of kymo; its faults become notices.
fn is_recording(path: &Path) -> Result<bool, String> {
    match Recording::open(Arc::new(RealDisk), path) {
        Ok(_) => Ok(true),
        Err(Error::NotFound { .. }) => Ok(false),
        Err(error) => Err(error.to_string()),
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

/// Opens one of collectl's files.
pub fn open_raw(path: &Path) -> Result<File, String> {
    let bytes = std::fs::File::open(path)
        .map_err(|error| format!("cannot open {}: {error}", path.display()))?;
    let name = match Spooled::is_path(path) {
        true => "standard input".into(),
        false => path.file_name().unwrap_or_default().to_string_lossy(),
    };
    let name = name.into_owned();
    Ok(File {
        name,
        bytes: Box::new(bytes),
    })
}

/// The recorded letters by the header of one of collectl's files. A file that cannot be played fails when its
/// turn comes.
fn raw_letters(path: &Path) -> Result<String, String> {
    let context = collectl::header(open_raw(path)?).unwrap_or_default();
    Ok(context.get("letters").unwrap_or_default().into())
}

/// The recorded letters by the facts of a recording. Where the facts have none, the first samples give them.
fn own_letters(path: &Path, range: TimeRange) -> Result<String, String> {
    let mut recorded = Recorded::open(path, range, Kinds::NONE)?;
    let (mut letters, mut stamp) = (String::new(), 0);
    while recorded.next()?.is_some() {
        let context = recorded.context();
        if std::mem::replace(&mut stamp, context.stamp()) != context.stamp() {
            letters += context.get("letters").unwrap_or_default();
        }
    }
    match letters.is_empty() {
        true => letters_of_sources(&mut Recorded::open(path, range, Kinds::ALL)?),
        false => Ok(letters),
    }
}

/// The summaries that the first samples have sources for, and processes.
fn letters_of_sources(source: &mut dyn Source) -> Result<String, String> {
    const SAMPLES: usize = 3;
    let mut samples = 0;
    while samples < SAMPLES
        && let Some(step) = source.next()?
    {
        samples += usize::from(matches!(step, Step::Sample(_)));
    }
    let has = |kind: &u8| source.tracks().get(*kind).instances().next().is_some();
    let recorded = subsystem::ALL
        .iter()
        .filter(|subsystem| subsystem.sources.iter().any(has));
    Ok(recorded
        .map(|subsystem| match subsystem.summary {
            Summary::None => subsystem.letter.to_ascii_uppercase(),
            _ => subsystem.letter,
        })
        .collect())
}

/// The zone of this machine.
fn own_zone() -> Option<String> {
    let root = Root::open(Path::new("/")).ok()?;
    facts::zone(&root)
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

/// Recordings in several ranges, each of which is opened when it is its turn.
struct InRanges {
    recordings: Recordings,
    kinds: Kinds,
    left: VecDeque<TimeRange>,
    now: Box<dyn Source>,
}

impl Source for InRanges {
    fn next(&mut self) -> Result<Option<Step>, String> {
        if let Some(step) = self.now.next()? {
            return Ok(Some(step));
        }
        let Some(range) = self.left.pop_front() else {
            return Ok(None);
        };
        self.now = self.recordings.open_merged(range, self.kinds)?;
        Ok(Some(Step::Gap(String::new())))
    }

    fn tracks(&self) -> &Tracks {
        self.now.tracks()
    }

    fn context(&self) -> &Context {
        self.now.context()
    }

    fn stream(&self) -> usize {
        self.now.stream()
    }
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
