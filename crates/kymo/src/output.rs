//! Where views write: stdout, and folders of plot files.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use kymo_recording::folder::safe_host;
use kymo_view::sink::{Sink, To};

/// Whether someone watches while it is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pace {
    /// A recording is played: as fast as it goes.
    Played,
    /// Each interval is to be seen when it is over.
    Live,
}

/// Stdout, and below a folder plot files.
pub struct Output {
    stdout: BufWriter<io::Stdout>,
    files: Option<Files>,
    pace: Pace,
}

struct Files {
    dir: PathBuf,
    gzip: bool,
    open: BTreeMap<(String, u32, String), Box<dyn Write>>,
}

impl Output {
    /// To stdout, and plot files into `dir`.
    pub fn new(pace: Pace, dir: Option<&Path>, gzip: bool) -> io::Result<Output> {
        if let Some(dir) = dir {
            fs::create_dir_all(dir).map_err(|error| {
                said(
                    &error,
                    format!("cannot make folder {}: {error}", dir.display()),
                )
            })?;
        }
        let files = dir.map(|dir| Files {
            dir: dir.to_path_buf(),
            gzip,
            open: BTreeMap::new(),
        });
        Ok(Output {
            stdout: BufWriter::with_capacity(64 << 10, io::stdout()),
            files,
            pace,
        })
    }

    /// Ends all files properly.
    pub fn finish(mut self) -> io::Result<()> {
        self.stdout.flush()?;
        match &mut self.files {
            Some(files) => files.open.values_mut().try_for_each(|file| file.flush()),
            None => Ok(()),
        }
    }
}

/// The same kind of error in our words.
fn said(error: &io::Error, text: String) -> io::Error {
    io::Error::new(error.kind(), text)
}

impl Sink for Output {
    fn write(&mut self, to: To, bytes: &[u8]) -> io::Result<()> {
        match (to, &mut self.files) {
            (To::Stream, _) => self.stdout.write_all(bytes),
            (To::File { host, day, suffix }, Some(files)) => {
                files.get(host, day, suffix, self.pace)?.write_all(bytes)
            }
            (To::File { .. }, None) => Ok(()),
        }
    }

    fn interval(&mut self) -> io::Result<()> {
        if self.pace == Pace::Played {
            return Ok(());
        }
        self.stdout.flush()?;
        match &mut self.files {
            Some(files) => files.open.values_mut().try_for_each(|file| file.flush()),
            None => Ok(()),
        }
    }
}

impl Files {
    /// The file of one day; those of other days are done with.
    fn get(
        &mut self,
        host: &str,
        day: u32,
        suffix: &str,
        pace: Pace,
    ) -> io::Result<&mut Box<dyn Write>> {
        self.open
            .retain(|(_, open_day, open_suffix), _| *open_day == day || open_suffix != suffix);
        let key = (host.to_string(), day, suffix.to_string());
        let Files { dir, gzip, open } = self;
        match open.entry(key) {
            std::collections::btree_map::Entry::Occupied(entry) => Ok(entry.into_mut()),
            std::collections::btree_map::Entry::Vacant(entry) => {
                let gz = if *gzip { ".gz" } else { "" };
                let path = dir.join(format!("{}-{day}.{suffix}{gz}", safe_host(host)));
                let file = open_file(&path, pace).map_err(|error| {
                    said(&error, format!("cannot write {}: {error}", path.display()))
                })?;
                let file: Box<dyn Write> = match *gzip {
                    true => Box::new(GzEncoder::new(BufWriter::new(file), Compression::default())),
                    false => Box::new(BufWriter::new(file)),
                };
                Ok(entry.insert(file))
            }
        }
    }
}

/// Live goes on where an earlier run ended; what is played never mixes with what is there.
fn open_file(path: &Path, pace: Pace) -> io::Result<File> {
    match pace {
        Pace::Live => OpenOptions::new().append(true).create(true).open(path),
        Pace::Played => OpenOptions::new().write(true).create_new(true).open(path),
    }
}
