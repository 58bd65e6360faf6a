//! Writes .rrd files where MRTG has them. Each file is current when a write returns.
//!
//! For each value a file is opened, locked as librrd does it, read up to its rows, updated and closed. Nothing of it stays in
//! memory, so other programs may write it at any time. Values for a file that is locked wait for the next write.

mod blank;
mod pen;
#[cfg(test)]
mod tests;
mod waiting;

use super::{Counts, Report, Series, index, leftovers, owner};
use crate::batch::{About, Batch, seconds};
use crate::pages::{Period, TargetPage};
use kymo_base::name::DisplayName;
use kymo_sys::disk::{Disk, DiskFile, RecordLock};
use kymo_sys::tree::{Access, Reach, Tree};
use pen::{Pen, Watcher};
use std::fmt::Display;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use waiting::Waiting;

/// A sink that writes .rrd files.
pub struct Files {
    disk: Arc<dyn Disk>,
    tree: Box<dyn Tree>,
    /// Locked files that mark this process as the writer of a configuration.
    owned: Vec<Box<dyn DiskFile>>,
    targets: Vec<Target>,
    /// Pages by target; empty: none are written.
    pages: Vec<TargetPage>,
    waiting: Waiting,
    pen: Box<Pen>,
    /// Source of numbers for the first row of new files.
    random: u64,
    counts: Counts,
}

/// A series and the state of its file.
struct Target {
    series: Series,
    is_watched: bool,
    /// True once the file has the series' kind and maxima.
    is_tuned: bool,
}

/// Result of a write of values.
enum Outcome {
    Kept,
    /// Another process has locked the file.
    Locked,
    Refused(String),
}

impl Files {
    /// A sink without series. `random` is any number: new files derive their first row from it.
    pub fn new(disk: Arc<dyn Disk>, random: u64) -> io::Result<Files> {
        let tree = disk.tree(Path::new("/"), Reach::Anywhere)?;
        Ok(Files {
            disk,
            tree,
            owned: Vec::new(),
            targets: Vec::new(),
            pages: Vec::new(),
            waiting: Waiting::default(),
            pen: Box::default(),
            random,
            counts: Counts::default(),
        })
    }

    /// Takes the lock on writing for this configuration into this folder, as long as `self` exists. False if another kymo has it.
    pub fn claim(&mut self, log_dir: &Path, config: &Path) -> io::Result<bool> {
        let claimed = owner::claim(&*self.disk, log_dir, config)?;
        let is_ours = claimed.is_some();
        self.owned.extend(claimed);
        Ok(is_ours)
    }

    /// Has the pages of all targets written, in the order of the targets. Those that a killed process left unfinished go.
    pub(crate) fn set_pages(&mut self, pages: Vec<TargetPage>) {
        self.pages = pages;
        leftovers::sweep(&*self.tree, self.pages.iter().flat_map(TargetPage::files));
    }

    pub(super) fn begin(&mut self, series: Vec<Series>, watched: &[u32]) {
        let before = std::mem::take(&mut self.targets);
        self.targets = series.into_iter().map(Target::new).collect();
        for &target in watched {
            if let Some(target) = self.targets.get_mut(index(target)) {
                target.is_watched = true;
            }
        }
        let path_before = |at| Some(&before.get(index(at))?.series.path);
        let paths = self.targets.iter().map(|target| &target.series.path);
        self.waiting.follow(path_before, paths);
    }

    pub(super) fn write(&mut self, batch: &Batch, report: &mut Report) {
        for target in self.waiting.targets() {
            let values = self.waiting.take(target);
            let arguments: Vec<&[u8]> = values.iter().map(|value| &value[..]).collect();
            match self.update(target, &arguments, None, report) {
                Outcome::Locked => self.waiting.put_back(target, values),
                outcome => self.note(target, arguments.len(), outcome, report),
            }
        }
        for update in batch.iter() {
            let outcome = match self.waiting.has(update.target) {
                true => Outcome::Locked,
                false => self.update(update.target, &[update.argument], update.about, report),
            };
            match outcome {
                Outcome::Locked => self.wait(update.target, update.argument, report),
                outcome => self.note(update.target, 1, outcome, report),
            }
        }
    }

    pub(super) fn counts(&self) -> Counts {
        Counts {
            waiting: self.waiting.len(),
            ..self.counts
        }
    }

    fn wait(&mut self, target: u32, argument: &[u8], report: &mut Report) {
        self.counts.delayed += 1;
        if !self.waiting.push(target, argument) {
            self.counts.dropped += 1;
            let series = self.targets.get(index(target)).map(|target| &target.series);
            report.refuse(
                target,
                cannot("update", series, &"it is locked for too long"),
            );
        }
    }

    fn note(&mut self, target: u32, values: usize, outcome: Outcome, report: &mut Report) {
        match outcome {
            Outcome::Refused(cause) => {
                self.counts.refused += values as u64;
                report.refuse(target, cause);
            }
            Outcome::Kept | Outcome::Locked => self.counts.kept += values as u64,
        }
    }

    /// Writes values of one target, oldest first.
    fn update(
        &mut self,
        at: u32,
        arguments: &[&[u8]],
        about: Option<&About>,
        report: &mut Report,
    ) -> Outcome {
        let first_s = arguments.first().map_or(0, |first| seconds(first));
        let file = match self.take_up(at, first_s, report) {
            Ok(file) => file,
            Err(outcome) => return outcome,
        };
        let Some(target) = self.targets.get(index(at)) else {
            return Outcome::Kept;
        };
        let watcher = match target.is_watched {
            true => Watcher::Of(at, &mut report.rates),
            false => Watcher::None,
        };
        if let Err(error) = self.pen.update(&*file, arguments, watcher) {
            return Outcome::Refused(cannot("update", Some(&target.series), &error));
        }
        if let (Some(page), Some(last)) = (self.pages.get(index(at)), arguments.last()) {
            let now_s = seconds(last);
            let (pen, series) = (&mut self.pen, &target.series);
            let mut steps = |period: Period, count| {
                let steps = pen.steps(&*file, now_s, period.step_s(), count);
                steps.map_err(|error| cannot("read", Some(series), &error))
            };
            // The value is kept whatever becomes of its page.
            let written = page.write(&*self.tree, &mut steps, now_s, about);
            written.unwrap_or_else(|cause| report.refuse(at, cause));
        }
        Outcome::Kept
    }

    /// Makes the file of a series if it is missing, or tunes it. Another program writes the value, whose second is `first_s`.
    pub(super) fn prepare(
        &mut self,
        at: u32,
        first_s: i64,
        report: &mut Report,
    ) -> Result<(), String> {
        let file = match self.take_up(at, first_s, report) {
            Ok(file) => file,
            Err(Outcome::Refused(cause)) => return Err(cause),
            Err(Outcome::Kept | Outcome::Locked) => return Ok(()),
        };
        let series = self.targets.get(index(at)).map(|target| &target.series);
        let written = self.pen.write_tuned(&*file);
        written.map_err(|error| cannot("tune", series, &error))
    }

    /// Opens, locks and reads the file of a target, and gives it the kind and maxima of its series. Makes a missing file.
    fn take_up(
        &mut self,
        at: u32,
        first_s: i64,
        report: &mut Report,
    ) -> Result<Box<dyn DiskFile>, Outcome> {
        let Some(target) = self.targets.get_mut(index(at)) else {
            return Err(Outcome::Refused(cannot(
                "update",
                None,
                &"there is no such target",
            )));
        };
        let series = &target.series;
        let refused =
            |verb, cause: &dyn Display| Outcome::Refused(cannot(verb, Some(series), cause));
        let mut opened = open(&*self.tree, &series.path);
        if is_missing(&opened) {
            let made = blank::create_file(&*self.tree, series, first_s, &mut self.random);
            made.map_err(|error| refused("create", &error))?;
            self.counts.created += 1;
            target.is_tuned = true;
            opened = open(&*self.tree, &series.path);
        }
        let file = opened.map_err(|error| refused("open", &error))?;
        let file = file.ok_or(Outcome::Locked)?;
        let read = self.pen.read(&*file, series.max_age_s, first_s);
        read.map_err(|error| refused("read", &error))?;
        if !std::mem::replace(&mut target.is_tuned, true) {
            match self.pen.tune(series) {
                Ok(is_changed) => self.counts.tuned += u64::from(is_changed),
                // As in MRTG, the file is updated all the same.
                Err(error) => report.refuse(at, cannot("tune", Some(series), &error)),
            }
        }
        Ok(file)
    }
}

impl Target {
    fn new(series: Series) -> Target {
        Target {
            series,
            is_watched: false,
            is_tuned: false,
        }
    }
}

/// Opens and locks a file; `None`: another process has the lock.
fn open(tree: &dyn Tree, path: &Path) -> io::Result<Option<Box<dyn DiskFile>>> {
    let file = tree.open(path, Access::Update)?;
    let is_ours = file.try_record_lock(RecordLock::Exclusive)?;
    Ok(is_ours.then_some(file))
}

fn is_missing<T>(opened: &io::Result<T>) -> bool {
    let error = opened.as_ref().err();
    error.is_some_and(|error| error.kind() == io::ErrorKind::NotFound)
}

fn cannot(verb: &str, series: Option<&Series>, cause: &dyn Display) -> String {
    let path = series.map(|series| series.path.as_os_str().as_bytes());
    let path = DisplayName(path.unwrap_or(b"a file"));
    format!("cannot {verb} {path}: {cause}")
}
