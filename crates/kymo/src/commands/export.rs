//! `kymo export`: a recording, or a part of it, in one file, which `play`, `serve --open` and the page read. The file
//! begins with the key sample before the requested time, at most a minute of samples earlier, because rates need a past.

use std::fmt::Display;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, ensure};
use clap::Args;
use kymo_base::context::Context;
use kymo_base::errno::strerror;
use kymo_recording::Error;
use kymo_recording::cursor::{Cursor, Item};
use kymo_recording::exported;
use kymo_recording::folder::{self, BlockName};
use kymo_recording::reader::{Kinds, Recording, TimeRange};
use kymo_recording::record::{self, Head};
use kymo_recording::writer::{Destination, Options, Writer};
use kymo_sys::clock::RealClock;
use kymo_sys::disk::{Disk as _, RealDisk};
use kymo_sys::talk;

use crate::times;

/// Exit code when there is nothing to write.
const NOTHING: u8 = 1;
/// Bytes of a batch for the writer, approximately.
const BATCH: usize = 256 << 10;
const DECADE: Duration = Duration::from_secs(315_360_000);

/// Options of `kymo export`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ExportOptions {
    /// A recording
    #[arg(value_name = "PATH")]
    pub from_path: PathBuf,
    /// The file to write; it must not be there
    #[arg(value_name = "FILE.kymo")]
    pub file: PathBuf,
    /// Begin at this time: 14:30, 20261121:14:30, 2026-11-21T14:30, -1h, now
    #[arg(long, value_name = "TIME[-THRU]", allow_hyphen_values = true)]
    pub from: Option<String>,
    /// End after this time
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub thru: Option<String>,
}

/// Runs the command.
pub(crate) fn run(options: &ExportOptions) -> Result<ExitCode> {
    let file = &options.file;
    ensure!(
        fs::symlink_metadata(file).is_err(),
        "cannot write {}: it is there already",
        file.display()
    );
    let range = times::range(
        options.from.as_deref(),
        options.thru.as_deref(),
        &options.from_path,
    )?;
    let scratch = Beside::new(file)?;
    let recorded = copy(&options.from_path, range, &scratch)?;
    if recorded == 0 {
        talk::say("kymo: nothing to export: nothing was recorded then");
        return Ok(ExitCode::from(NOTHING));
    }
    join(&scratch.folder, &scratch.unfinished)
        .and_then(|()| Ok(fs::rename(&scratch.unfinished, file)?))
        .with_context(|| format!("cannot write {}", file.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// A folder and a file beside the file to write; both are removed in the end. Messages name the file to write, as a
/// person knows no other.
struct Beside {
    file: PathBuf,
    folder: PathBuf,
    unfinished: PathBuf,
}

impl Beside {
    fn new(file: &Path) -> Result<Beside> {
        let name = file
            .file_name()
            .context("cannot write a file without a name")?;
        let with = |end: &str| {
            let mut name = name.to_os_string();
            name.push(format!(".{}.{end}", std::process::id()));
            file.with_file_name(name)
        };
        let beside = Beside {
            file: file.into(),
            folder: with("blocks"),
            unfinished: with("tmp"),
        };
        match fs::create_dir(&beside.folder) {
            Ok(()) => Ok(beside),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
                let folder = file.parent().unwrap_or(file).display();
                Err(beside.cannot(format_args!("there is no folder {folder}; make it first")))
            }
            Err(cause) => Err(beside.cannot(strerror(&cause))),
        }
    }

    fn cannot(&self, cause: impl Display) -> anyhow::Error {
        anyhow!("cannot write {}: {cause}", self.file.display())
    }

    /// Error of the writer of the blocks.
    fn cannot_record(&self, error: Error) -> anyhow::Error {
        match error {
            Error::Io { cause, .. } => self.cannot(strerror(&cause)),
            other => self.cannot(other),
        }
    }

    fn append(&self, writer: &mut Writer, batch: &mut Vec<u8>) -> Result<()> {
        if batch.is_empty() {
            return Ok(());
        }
        let appended = writer.append(batch);
        let appended = appended.map_err(|error| self.cannot_record(error))?;
        batch.clear();
        if appended.dropped == 0 {
            return Ok(());
        }
        // `cannot write BLOCK: CAUSE`
        let notice = writer.take_notices().pop().unwrap_or_default();
        let cause = notice
            .rsplit_once(": ")
            .map_or(&*notice, |(_, cause)| cause);
        Err(self.cannot(cause))
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // If this fails, the names show the file and this process.
        let _ = fs::remove_dir_all(&self.folder);
        let _ = fs::remove_file(&self.unfinished);
    }
}

/// Records the samples of the range again, beside the file. Returns their number.
fn copy(path: &Path, range: TimeRange, beside: &Beside) -> Result<u64> {
    let disk = Arc::new(RealDisk);
    let recording = Recording::open(disk, path)?;
    let mut cursor = Cursor::new(&recording, range, Kinds::ALL);
    let (mut writer, mut facts) = (None::<Writer>, String::new());
    let (mut batch, mut samples) = (Vec::new(), 0);
    while let Some(item) = cursor.next()? {
        match item {
            Item::Context { text, .. } if text == facts => {}
            Item::Context { text, .. } => {
                facts = text.to_string();
                let context_set = match &mut writer {
                    None => open(&beside.folder, &facts).map(|opened| writer = Some(opened)),
                    Some(writer) => {
                        beside.append(writer, &mut batch)?;
                        writer.set_context(&facts).map(drop)
                    }
                };
                context_set.map_err(|error| beside.cannot_record(error))?;
            }
            Item::Sample { head, sections, .. } => {
                push(&mut batch, &head, &sections);
                samples += 1;
            }
            Item::Event { head, text } => record::push_event(&mut batch, head.stamp, text),
            Item::Gap(gap) => talk::say(format_args!("kymo: not exported: {}", gap.message)),
        }
        if let Some(writer) = writer.as_mut().filter(|_| batch.len() > BATCH) {
            beside.append(writer, &mut batch)?;
        }
    }
    let Some(mut writer) = writer else {
        return Ok(0);
    };
    beside.append(&mut writer, &mut batch)?;
    let closed = writer.close();
    closed.map_err(|error| beside.cannot_record(error))?;
    Ok(samples)
}

fn push(batch: &mut Vec<u8>, head: &Head, sections: &[record::Section]) {
    let mut open = record::begin(batch, head);
    for section in sections {
        open.section(section.kind, section.cost, |out| {
            out.extend_from_slice(section.bytes);
        });
    }
    open.end();
}

/// A writer without limits of age and size.
fn open(dir: &Path, facts: &str) -> Result<Writer, Error> {
    let context = Context::parse(facts.as_bytes());
    let fact = |key: &str, otherwise: &str| context.get(key).unwrap_or(otherwise).to_string();
    let place = Destination {
        dir: dir.into(),
        host: fact("host", "localhost"),
        boot_id: fact("boot_id", "00000000"),
        context: facts.into(),
    };
    let options = Options {
        cap_bytes: u64::MAX >> 2,
        sync_interval: DECADE,
        seal_after: DECADE,
        ..Options::default()
    };
    Writer::open(Arc::new(RealDisk), Arc::new(RealClock), place, options)
}

/// Joins all blocks of the folder in one file.
fn join(dir: &Path, file: &Path) -> Result<()> {
    let mut blocks: Vec<(BlockName, PathBuf)> = Vec::new();
    for folder in folder::boot_folders(&RealDisk, dir)? {
        let names = folder::blocks(&RealDisk, &folder)?;
        blocks.extend(names.iter().map(|name| (*name, folder.join(name.format()))));
    }
    blocks.sort();
    let mut listed = Vec::new();
    for (name, path) in &blocks {
        listed.push((*name, RealDisk.metadata(path)?.size_bytes));
    }
    let mut out = BufWriter::new(File::create_new(file)?);
    let written = exported::write(&listed, &mut out, |name, out| {
        let path = blocks.iter().find(|(known, _)| *known == name);
        let (_, path) = path.ok_or(io::ErrorKind::NotFound)?;
        io::copy(&mut File::open(path)?, out).map(|_| ())
    });
    written.and_then(|()| out.flush())?;
    Ok(out.get_ref().sync_all()?)
}
