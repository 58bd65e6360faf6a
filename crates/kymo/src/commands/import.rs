//! `kymo import`: moves what others have kept into the store of a `kymo serve`, while it runs or not. It reads the source
//! itself, and hands series over to the keeper, which joins them to its own. What the store has already is passed over, so a run
//! that ended early goes on with the next one.

mod collectd;
mod dump;
mod mrtg;
mod other_store;
mod remote_read;
mod taker;

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::mem;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use clap::{ArgGroup, Args};
use kymo_base::label_set::Labels;
use kymo_base::name::DisplayName;
use kymo_sys::talk;
use kymo_wire::keeper::{Import, Imported, ImportedPoints, ImportedSeries, ROW_CELLS};
use rustix::fs::{FlockOperation, fcntl_lock};

use super::serve::{files_folder, is_url};
use crate::output;
use crate::output::progress::{Progress, WorkPace};
use taker::Taker;

/// Exit code where something was left out.
const INCOMPLETE: u8 = 1;
/// Most bytes of a file: it has to fit into an IMPORT.
const FILE_MAX: u64 = (32 << 20) - (1 << 16);
/// Time for which a lock of another program is waited for, and pause between two attempts.
const LOCK_WAIT: Duration = Duration::from_secs(10);
const LOCK_PAUSE: Duration = Duration::from_millis(5);
/// Bytes of files that are handed over together.
const BATCH_BYTES: usize = 8 << 20;
/// Series that are handed over together.
const BATCH_SERIES: usize = 1024;
/// Samples of a series that are handed over together.
const PIECE_SAMPLES: usize = 1 << 16;
/// Bytes of a sample in a request, and of what a series has besides.
const SAMPLE_BYTES: usize = 16;
const SERIES_BYTES: usize = 64;

/// Options of `kymo import`.
#[derive(Args, Clone, Debug)]
#[command(group(ArgGroup::new("source").required(true).args(["collectd", "mrtg", "prometheus", "store"])))]
pub(crate) struct ImportOptions {
    /// Import the .rrd files of collectd's rrdtool plugin from its DataDir
    #[arg(long, value_name = "DIR")]
    pub collectd: Option<PathBuf>,
    /// Types that the files are checked against; default: those of collectd 5.12
    #[arg(long, value_name = "FILE", conflicts_with_all = ["mrtg", "prometheus", "store"])]
    pub types_db: Option<PathBuf>,
    /// Import what MRTG has kept: all targets of configurations, from their .rrd files or MRTG's own .log files, or .log files alone
    #[arg(long, value_name = "CFG|FILE.log", num_args = 1..)]
    pub mrtg: Vec<PathBuf>,
    /// Import samples of Prometheus: by remote read from the URL of a server, or a file (or - for stdin) with the text of promtool tsdb
    /// dump
    #[arg(long, value_name = "URL|DUMP")]
    pub prometheus: Option<PathBuf>,
    /// With a URL, begin at this time: 20261121, 2026-11-21T14:30, -3d; or as rrdtool reads it; default: -15d
    #[arg(
        long,
        value_name = "TIME",
        conflicts_with_all = ["collectd", "mrtg", "store"],
        allow_hyphen_values = true
    )]
    pub from: Option<String>,
    /// With a URL, end at this time, not now
    #[arg(
        long,
        value_name = "TIME",
        conflicts_with_all = ["collectd", "mrtg", "store"],
        allow_hyphen_values = true
    )]
    pub thru: Option<String>,
    /// With a URL, a file with the token that the server wants
    #[arg(long, value_name = "FILE", conflicts_with_all = ["collectd", "mrtg", "store"])]
    pub token_file: Option<PathBuf>,
    /// With a URL of https, a file with the certificates of authorities that sign the server's
    #[arg(long, value_name = "FILE", conflicts_with_all = ["collectd", "mrtg", "store"])]
    pub tls_ca: Option<PathBuf>,
    /// Import the store of another kymo, whose serve may run: its data folder
    #[arg(long, value_name = "DIR")]
    pub store: Option<PathBuf>,
    /// Data folder of kymo serve; default: that of the kymo serve that runs
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Only say what would come
    #[arg(long)]
    pub dry_run: bool,
}

/// Series to import.
enum ImportSource {
    Collectd(collectd::DataDir),
    Dump(dump::Dump),
    Mrtg(mrtg::MrtgHistory),
    Store(other_store::OtherStore),
    RemoteRead(Box<remote_read::RemoteRead>),
}

impl ImportSource {
    fn of(options: &ImportOptions, data: &Path) -> Result<ImportSource> {
        if let Some(dir) = &options.collectd {
            let types = options.types_db.as_deref();
            return collectd::DataDir::find(dir, types).map(ImportSource::Collectd);
        }
        if let Some(dir) = &options.store {
            return other_store::OtherStore::open(dir, data).map(ImportSource::Store);
        }
        if !options.mrtg.is_empty() {
            return mrtg::MrtgHistory::find(&options.mrtg, data).map(ImportSource::Mrtg);
        }
        let Some(place) = &options.prometheus else {
            bail!("cannot import: nothing says what to import; see kymo import --help");
        };
        let url = place.to_str().filter(|text| is_url(text));
        match url {
            Some(url) => remote_read::RemoteRead::new(options, url)
                .map(|read| ImportSource::RemoteRead(Box::new(read))),
            None => dump::Dump::open(options, place).map(ImportSource::Dump),
        }
    }

    fn hand_over(self, importer: &mut Importer<'_>) -> Result<()> {
        match self {
            ImportSource::Collectd(dir) => dir.hand_over(importer),
            ImportSource::Dump(dump) => dump.hand_over(importer),
            ImportSource::Mrtg(history) => history.hand_over(importer),
            ImportSource::Store(store) => store.hand_over(importer),
            ImportSource::RemoteRead(read) => read.hand_over(importer),
        }
    }
}

/// Runs the command.
pub(crate) fn run(options: &ImportOptions) -> Result<ExitCode> {
    let data = files_folder(options.data.as_deref())?;
    let source = ImportSource::of(options, &data)?;
    let taker = Taker::of(&data)?;
    let mut importer = Importer::new(&taker, options);
    source.hand_over(&mut importer)?;
    importer.hand_over()?;
    let counts = importer.end();
    taker.end()?;
    output::put(&format!("{}\n", counts.words(options.dry_run)))?;
    Ok(ExitCode::from(match counts.left_out {
        0 => 0,
        _ => INCOMPLETE,
    }))
}

/// Outcome of a series, of all its pieces together.
#[derive(Clone, Copy, Debug, Default)]
struct SeriesOutcome {
    is_new: bool,
    added: u64,
    differing: u64,
}

/// Numbers of series by outcome.
#[derive(Clone, Copy, Debug, Default)]
struct ImportCounts {
    new: u64,
    extended: u64,
    known: u64,
    left_out: u64,
    /// Rows and samples that the store did not have.
    added: u64,
}

impl ImportCounts {
    fn words(self, is_dry: bool) -> String {
        let ImportCounts {
            new,
            extended,
            known,
            left_out,
            added,
        } = self;
        let done = match is_dry {
            true => "would import",
            false => "imported",
        };
        format!(
            "{done} {added} rows and samples; series: {new} new, {extended} extended, {known} complete before, {left_out} left out"
        )
    }
}

/// An import under way.
struct Importer<'a> {
    taker: &'a Taker,
    batch: Import,
    batch_bytes: usize,
    /// Outcomes by the names of series.
    outcomes: HashMap<Vec<u8>, SeriesOutcome>,
    /// Names of series that were left out.
    left_out: HashSet<Vec<u8>>,
    progress: Progress,
}

impl Importer<'_> {
    fn new<'a>(taker: &'a Taker, options: &ImportOptions) -> Importer<'a> {
        Importer {
            taker,
            batch: Import {
                changes: !options.dry_run,
                of_kymo: options.store.is_some(),
                ..Import::default()
            },
            batch_bytes: 0,
            outcomes: HashMap::new(),
            left_out: HashSet::new(),
            progress: Progress::new(),
        }
    }

    /// Adds a series with archives.
    fn add(&mut self, series: ImportedSeries) -> Result<()> {
        self.make_room(SERIES_BYTES + series.name.len() + series.file.len())?;
        self.batch.series.push(series);
        Ok(())
    }

    /// Adds samples of a series.
    fn add_points(&mut self, points: ImportedPoints) -> Result<()> {
        let samples = points.stamps_ms.len() * SAMPLE_BYTES;
        let rows = points.rows.len() * (12 + 8 * ROW_CELLS);
        self.make_room(SERIES_BYTES + points.labels.text().len() + samples + rows)?;
        self.batch.points.push(points);
        Ok(())
    }

    /// Hands the batch over if it has no room for more bytes.
    fn make_room(&mut self, bytes: usize) -> Result<()> {
        let count = self.batch.series.len() + self.batch.points.len();
        if self.batch_bytes + bytes > BATCH_BYTES || count == BATCH_SERIES {
            self.hand_over()?;
        }
        self.batch_bytes += bytes;
        Ok(())
    }

    /// Hands over the batch.
    fn hand_over(&mut self) -> Result<()> {
        let next = Import {
            changes: self.batch.changes,
            of_kymo: self.batch.of_kymo,
            ..Import::default()
        };
        let import = mem::replace(&mut self.batch, next);
        self.batch_bytes = 0;
        if import.series.is_empty() && import.points.is_empty() {
            return Ok(());
        }
        let series = import.series.iter().map(|series| series.name.clone());
        let points = import.points.iter();
        let points = points.map(|points| points.labels.text().to_vec());
        let names: Vec<Vec<u8>> = series.chain(points).collect();
        let outcomes = self.taker.keeper().import(import);
        let outcomes = outcomes.map_err(anyhow::Error::msg)?;
        for (name, outcome) in names.into_iter().zip(outcomes) {
            self.note(name, &outcome);
        }
        Ok(())
    }

    fn note(&mut self, name: Vec<u8>, imported: &Imported) {
        if !imported.why.is_empty() {
            return self.leave_out(&name, &imported.why);
        }
        let outcome = self.outcomes.entry(name).or_default();
        outcome.is_new |= imported.is_new;
        outcome.added += imported.added;
        outcome.differing += imported.differing;
    }

    /// Ends the import: names what differs, and counts.
    fn end(mut self) -> ImportCounts {
        let mut counts = ImportCounts {
            left_out: count(self.left_out.len()),
            ..ImportCounts::default()
        };
        let mut differing = Vec::new();
        for (name, outcome) in &self.outcomes {
            counts.added += outcome.added;
            if outcome.differing > 0 {
                differing.push((name.clone(), outcome.differing));
            }
            match outcome {
                SeriesOutcome { is_new: true, .. } => counts.new += 1,
                SeriesOutcome { added: 0, .. } => counts.known += 1,
                SeriesOutcome { .. } => counts.extended += 1,
            }
        }
        differing.sort_unstable();
        for (name, count) in differing {
            let name = DisplayName(&name);
            self.say(format_args!(
                "conflict in {name}: {count} rows or samples differ; those of the store stay"
            ));
        }
        self.progress.clear();
        counts
    }

    /// Leaves a series out, with the reason.
    fn leave_out(&mut self, name: &[u8], why: &str) {
        if self.left_out.insert(name.to_vec()) {
            self.say(format_args!("cannot import {}: {why}", DisplayName(name)));
        }
    }

    fn say(&mut self, line: std::fmt::Arguments<'_>) {
        self.progress.clear();
        talk::say(format_args!("kymo: {line}"));
    }

    /// Shows how much of the work is done; `things`: the plural of a piece of it.
    fn show(&mut self, pace: &WorkPace, things: &str, (done, all): (u64, Option<u64>)) {
        self.progress.show(|| pace.words(things, done, all));
    }
}

/// Samples of a series that are gathered until they are a piece.
struct Gathered {
    points: ImportedPoints,
}

impl Gathered {
    fn new(labels: Labels) -> Gathered {
        Gathered {
            points: ImportedPoints {
                labels,
                kind: None,
                stamps_ms: Vec::new(),
                values: Vec::new(),
                rows: Vec::new(),
            },
        }
    }

    /// Adds a sample; one that is not later than the one before is passed over.
    fn push(&mut self, importer: &mut Importer<'_>, t_ms: i64, value: f64) -> Result<()> {
        if self
            .points
            .stamps_ms
            .last()
            .is_some_and(|last| t_ms <= *last)
        {
            return Ok(());
        }
        if self.points.stamps_ms.len() == PIECE_SAMPLES {
            self.hand_over(importer)?;
        }
        self.points.stamps_ms.push(t_ms);
        self.points.values.push(value);
        Ok(())
    }

    /// Hands over the samples; the next ones go on behind them.
    fn hand_over(&mut self, importer: &mut Importer<'_>) -> Result<()> {
        let next = Gathered::new(self.points.labels.clone()).points;
        let points = mem::replace(&mut self.points, next);
        match points.stamps_ms.is_empty() {
            true => Ok(()),
            false => importer.add_points(points),
        }
    }
}

/// A count as a request has it.
fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

/// Refuses a source that is no folder.
fn ensure_folder(dir: &Path) -> Result<()> {
    ensure!(
        dir.is_dir(),
        "cannot import {}: it is no folder",
        dir.display()
    );
    Ok(())
}

/// The bytes of a file under rrdtool's lock, so that it does not change meanwhile.
fn read_locked(path: &Path) -> Result<Vec<u8>, String> {
    let words = |error: std::io::Error| error.to_string();
    let file = File::open(path).map_err(words)?;
    let begun = Instant::now();
    while let Err(error) = fcntl_lock(&file, FlockOperation::NonBlockingLockShared) {
        let error = std::io::Error::from(error);
        let is_held = matches!(
            error.kind(),
            ErrorKind::WouldBlock | ErrorKind::PermissionDenied
        );
        if !is_held {
            return Err(words(error));
        }
        if begun.elapsed() > LOCK_WAIT {
            return Err("another program has a lock on it".into());
        }
        thread::sleep(LOCK_PAUSE);
    }
    let stat = file.metadata().map_err(words)?;
    if stat.len() > FILE_MAX {
        return Err(format!("it has more than {FILE_MAX} bytes"));
    }
    let mut bytes = Vec::new();
    file.take(FILE_MAX).read_to_end(&mut bytes).map_err(words)?;
    Ok(bytes)
}
