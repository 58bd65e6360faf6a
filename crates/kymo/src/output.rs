//! Outputs of views: stdout, and folders of plot files.

pub(crate) mod broadcast;
pub(crate) mod carbon;
pub(crate) mod gmond;
#[cfg(feature = "serve")]
pub(crate) mod progress;
#[cfg(feature = "serve")]
pub(crate) mod redraw;
pub(crate) mod show;
pub(crate) mod snapshot;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use kymo_recording::folder::safe_host;
use kymo_view::sink::{self, Sink, To};

use crate::output::broadcast::Broadcast;

/// Writes a text to stdout. It is no error if the reader is gone.
pub(crate) fn put(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    let put = stdout.write_all(text.as_bytes());
    match put.and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

/// Pace of the output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pace {
    /// A recording is played, as fast as possible.
    Played,
    /// Each interval is flushed as soon as it is over.
    Live,
}

/// Treatment of an existing plot file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Existing {
    /// The file stays as it is: an error.
    Stays,
    /// The output is appended.
    Grows,
    /// The file is replaced.
    Goes,
}

impl Existing {
    /// Reads the letters of `-o`. By default live output continues the file of an earlier run, and playback never mixes with
    /// existing files.
    pub(crate) fn of(letters: &str, pace: Pace) -> Result<Existing, String> {
        match (letters.contains('a'), letters.contains('c'), pace) {
            (true, true, _) => Err("cannot use -o a: not together with -o c".into()),
            (true, _, _) | (_, false, Pace::Live) => Ok(Existing::Grows),
            (_, true, _) => Ok(Existing::Goes),
            (_, _, Pace::Played) => Ok(Existing::Stays),
        }
    }
}

/// Stdout, plot files in a folder, and clients.
pub(crate) struct Output {
    stdout: BufWriter<io::Stdout>,
    files: Option<Files>,
    clients: Option<Broadcast>,
    pace: Pace,
}

/// Folder of plot files, and the prefix of their names.
#[derive(Clone, Default, Debug)]
pub(crate) struct PlotPlace {
    dir: PathBuf,
    prefix: String,
}

impl PlotPlace {
    /// Reads `-f`: a folder, which may be new. Under collectl's name, if there is no such folder and no `/` at the end, it
    /// is the prefix of names.
    pub(crate) fn of(path: &Path, as_collectl: bool) -> PlotPlace {
        let name = path.file_name().map(|name| name.to_string_lossy());
        let ends_as_folder = path.as_os_str().as_encoded_bytes().ends_with(b"/");
        match name {
            Some(name) if as_collectl && !ends_as_folder && !path.is_dir() => PlotPlace {
                dir: path.parent().unwrap_or(Path::new("")).into(),
                prefix: format!("{name}-"),
            },
            _ => PlotPlace {
                dir: path.into(),
                prefix: String::new(),
            },
        }
    }
}

struct Files {
    place: PlotPlace,
    gzip: bool,
    existing: Existing,
    /// Files of this run: if the day of one comes again, it is continued.
    made: BTreeSet<PathBuf>,
    open: BTreeMap<(String, String, String), PlotFile>,
}

struct PlotFile {
    path: PathBuf,
    out: Box<dyn Write>,
}

impl PlotFile {
    /// `done`, with the name of the file in its error.
    fn named(&self, done: io::Result<()>) -> io::Result<()> {
        done.map_err(|error| cannot_write(&self.path, &error))
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let done = self.out.write_all(bytes);
        self.named(done)
    }

    fn flush(&mut self) -> io::Result<()> {
        let done = self.out.flush();
        self.named(done)
    }
}

impl Output {
    /// Output to stdout and to clients, and of plot files to the folder of `place`.
    pub(crate) fn new(
        pace: Pace,
        (place, clients): (Option<PlotPlace>, Option<Broadcast>),
        gzip: bool,
        existing: Existing,
    ) -> io::Result<Output> {
        if let Some(PlotPlace { dir, .. }) = &place {
            fs::create_dir_all(dir).map_err(|error| {
                with_text(
                    &error,
                    format!("cannot make folder {}: {error}", dir.display()),
                )
            })?;
        }
        let files = place.map(|place| Files {
            place,
            gzip,
            existing,
            made: BTreeSet::new(),
            open: BTreeMap::new(),
        });
        Ok(Output {
            stdout: BufWriter::with_capacity(64 << 10, io::stdout()),
            files,
            clients,
            pace,
        })
    }

    fn stream(&mut self, to: To, bytes: &[u8]) -> io::Result<()> {
        match &mut self.clients {
            Some(clients) if to == To::Head => clients.put_head(bytes),
            Some(clients) => clients.put(bytes),
            None => {}
        }
        match self.clients.as_ref().is_none_or(Broadcast::echoes) {
            true => self.stdout.write_all(bytes),
            false => Ok(()),
        }
    }

    /// Flushes all files.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.stdout.flush()?;
        match &mut self.files {
            Some(files) => files.open.values_mut().try_for_each(PlotFile::flush),
            None => Ok(()),
        }
    }
}

fn cannot_write(path: &Path, error: &io::Error) -> io::Error {
    let cause = match error.kind() {
        io::ErrorKind::AlreadyExists => {
            "it is there already; -oa appends to it, -oc begins it again".to_string()
        }
        _ => error.to_string(),
    };
    with_text(error, format!("cannot write {}: {cause}", path.display()))
}

/// An error of the same kind with another text.
fn with_text(error: &io::Error, text: String) -> io::Error {
    io::Error::new(error.kind(), text)
}

impl Sink for Output {
    fn write(&mut self, to: To, bytes: &[u8]) -> io::Result<()> {
        match (to, &mut self.files) {
            (To::Stream | To::Head, _) => self.stream(to, bytes),
            (
                To::File {
                    host,
                    day,
                    second,
                    suffix,
                },
                Some(files),
            ) => files
                .get(host, &sink::when(day, second), suffix)?
                .write(bytes),
            (To::File { .. }, None) => Ok(()),
        }
    }

    fn interval(&mut self) -> io::Result<()> {
        if self.pace == Pace::Played {
            return Ok(());
        }
        if let Some(clients) = &mut self.clients {
            clients.interval()?;
        }
        self.stdout.flush()?;
        match &mut self.files {
            Some(files) => files.open.values_mut().try_for_each(PlotFile::flush),
            None => Ok(()),
        }
    }
}

impl Files {
    /// The file of a day. Files of other days are closed.
    fn get(&mut self, host: &str, when: &str, suffix: &str) -> io::Result<&mut PlotFile> {
        self.open
            .retain(|(_, open, open_suffix), _| open == when || open_suffix != suffix);
        let key = (host.to_string(), when.to_string(), suffix.to_string());
        match self.open.entry(key) {
            Entry::Occupied(entry) => Ok(entry.into_mut()),
            Entry::Vacant(entry) => {
                let gz = if self.gzip { ".gz" } else { "" };
                let PlotPlace { dir, prefix } = &self.place;
                let host = safe_host(host);
                let path = dir.join(format!("{prefix}{host}-{when}.{suffix}{gz}"));
                let existing = match self.made.insert(path.clone()) {
                    true => self.existing,
                    false => Existing::Grows,
                };
                let file =
                    open_file(&path, existing).map_err(|error| cannot_write(&path, &error))?;
                let file = BufWriter::new(file);
                let out: Box<dyn Write> = match self.gzip {
                    true => Box::new(GzEncoder::new(file, Compression::default())),
                    false => Box::new(file),
                };
                Ok(entry.insert(PlotFile { path, out }))
            }
        }
    }
}

fn open_file(path: &Path, existing: Existing) -> io::Result<File> {
    let mut how = OpenOptions::new();
    match existing {
        Existing::Stays => how.write(true).create_new(true),
        Existing::Grows => how.append(true).create(true),
        Existing::Goes => how.write(true).create(true).truncate(true),
    };
    how.open(path)
}
