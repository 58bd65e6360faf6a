//! Writes MRTG's own logs, `TARGET.log`, where MRTG has them and as its program rateup writes them.
//!
//! For each value a log is read, computed and put in place by a rename; the state before is `TARGET.old`. Nothing of a log stays
//! in memory, so MRTG may take over at any time.

mod clone;
#[cfg(test)]
mod tests;

pub use clone::{TargetClone, clone_folders};

use super::{Counts, Rate, Report, Series, index, leftovers, owner};
use crate::batch::{Batch, Update, seconds};
use crate::mrtg_log::{Damage, Kept, Log, LogRule, LogUpdate, UNKNOWN};
use crate::pages::{Period, TargetPage};
use kymo_base::name::DisplayName;
use kymo_sys::disk::{Disk, DiskFile, NameKind};
use kymo_sys::tree::{Access, Reach, Tree};
use std::fmt::Display;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Longest name of a target, which rateup takes.
const NAME_MAX: usize = 120;
/// Largest file that is read, bytes. The longest that rateup writes has 250,000.
pub(super) const FILE_MAX: u64 = 1 << 20;
/// Added to a negative value, as MRTG does: it takes a counter for one of 31 bits that was read with a sign.
const SIGN_MENDED: i128 = 1 << 31;

/// A sink that writes logs.
pub struct Logs {
    disk: Arc<dyn Disk>,
    tree: Box<dyn Tree>,
    /// Locked files that mark this process as the writer of a configuration.
    owned: Vec<Box<dyn DiskFile>>,
    targets: Vec<LogTarget>,
    /// Pages by target; empty: none are written.
    pages: Vec<TargetPage>,
    /// Copies by target, likewise.
    clones: Vec<Option<TargetClone>>,
    log: Log,
    /// The next state of a log.
    next: Vec<u8>,
    counts: Counts,
}

/// A target and its files.
struct LogTarget {
    path: PathBuf,
    old: PathBuf,
    rule: LogRule,
    max_age_s: Option<u64>,
    is_watched: bool,
}

/// Contents of a file.
enum Content {
    /// The log was read.
    Rows,
    Missing,
    /// No log, for this reason.
    Damaged(&'static str),
}

impl Logs {
    /// A sink without targets.
    pub fn new(disk: Arc<dyn Disk>) -> io::Result<Logs> {
        let tree = disk.tree(Path::new("/"), Reach::Anywhere)?;
        Ok(Logs {
            disk,
            tree,
            owned: Vec::new(),
            targets: Vec::new(),
            pages: Vec::new(),
            clones: Vec::new(),
            log: Log::default(),
            next: Vec::new(),
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

    /// Has the pages and the copies of all targets written, in the order of the targets. Files that a killed process left unfinished go.
    pub(crate) fn set_pages(&mut self, pages: Vec<TargetPage>, clones: Vec<Option<TargetClone>>) {
        (self.pages, self.clones) = (pages, clones);
        let logs = self.targets.iter().map(|target| &*target.path);
        let pages = self.pages.iter().flat_map(TargetPage::files);
        leftovers::sweep(&*self.tree, logs.chain(pages));
    }

    pub(super) fn begin(&mut self, series: Vec<Series>, watched: &[u32]) {
        let targets = series.into_iter().map(|series| LogTarget {
            path: series.path.with_extension("log"),
            old: series.path.with_extension("old"),
            rule: series.log,
            max_age_s: series.max_age_s,
            is_watched: false,
        });
        self.targets = targets.collect();
        for &target in watched {
            if let Some(target) = self.targets.get_mut(index(target)) {
                target.is_watched = true;
            }
        }
    }

    pub(super) fn write(&mut self, batch: &Batch, report: &mut Report) {
        for update in batch.iter() {
            match self.update(update, report) {
                Ok(()) => self.counts.kept += 1,
                Err(cause) => {
                    self.counts.refused += 1;
                    report.refuse(update.target, cause);
                }
            }
        }
    }

    pub(super) fn counts(&self) -> Counts {
        self.counts
    }

    fn update(&mut self, given: Update<'_>, report: &mut Report) -> Result<(), String> {
        let Update {
            target: at,
            argument,
            about,
        } = given;
        let Some(target) = self.targets.get(index(at)) else {
            return Err("cannot update a log: there is no such target".into());
        };
        let cannot = |cause: &dyn Display| cannot("update", &target.path, cause);
        let name_bytes = target.path.file_stem().map_or(0, |stem| stem.len());
        if name_bytes > NAME_MAX {
            return Err(cannot(&"the target's name has more than 120 bytes"));
        }
        let now_s = seconds(argument);
        self.log.clear();
        let is_new = read_either(&*self.tree, &mut self.log, target, now_s, report)?;
        let values = values(argument);
        let update = LogUpdate {
            now_s,
            values: [&values[0], &values[1]],
            rule: target.rule,
            kept: match self.pages.is_empty() {
                true => Kept::Newest,
                false => Kept::All,
            },
        };
        self.next.clear();
        let updated = self.log.update(&update, &mut self.next).map_err(|warp| {
            cannot(&format_args!(
                "its last value is of {}, which is later than {now_s}",
                warp.last_s
            ))
        });
        if updated.is_ok() {
            let rolled = roll(&*self.tree, target, &self.next);
            rolled.map_err(|error| cannot(&error))?;
            self.counts.created += u64::from(is_new);
        }
        // The value is kept whatever becomes of its page. A log of later values has one, too.
        if let Some(page) = self.pages.get(index(at)) {
            let log = &self.log;
            let mut steps =
                |period: Period, count| Ok(log.spans(now_s, period.step_s()).take(count).collect());
            let written = page.write(&*self.tree, &mut steps, now_s, about);
            written.unwrap_or_else(|cause| report.refuse(at, cause));
        }
        if let Some(Some(clone)) = self.clones.get(index(at)) {
            let written = clone.write(&*self.tree);
            written.unwrap_or_else(|cause| report.refuse(at, cause));
        }
        if target.is_watched && updated.is_ok() {
            report.rates.push(Rate {
                target: at,
                time_s: now_s,
                rates: self.log.newest_rates(now_s),
                failures: [f64::NAN; 2],
            });
        }
        updated
    }
}

/// Puts the next state of a log in place, in a folder that may be missing.
fn roll(tree: &dyn Tree, target: &LogTarget, next: &[u8]) -> io::Result<()> {
    let roll = || tree.roll(&target.path, &target.old, next);
    match (roll(), target.path.parent()) {
        (Err(error), Some(folder)) if error.kind() == io::ErrorKind::NotFound => {
            tree.make_folders(folder).and_then(|()| roll())
        }
        (rolled, _) => rolled,
    }
}

/// Reads a log or the state before it, as rateup does; without both it begins a new one. True for a new one.
fn read_either(
    tree: &dyn Tree,
    log: &mut Log,
    target: &LogTarget,
    now_s: i64,
    report: &mut Report,
) -> Result<bool, String> {
    let first = read(tree, log, &target.path, target.max_age_s, now_s)?;
    let why = match first {
        Content::Rows => return Ok(false),
        Content::Missing => "there is none",
        Content::Damaged(why) => why,
    };
    let is_there = !matches!(first, Content::Missing);
    match read(tree, log, &target.old, None, now_s)? {
        Content::Rows => {
            let cause = format_args!("{why}; the state before it, .old, is used");
            report.troubles.push(cannot("read", &target.path, &cause));
            return Ok(false);
        }
        // rateup ends here, too: a log that is out of order may be worth a look.
        Content::Damaged(NOT_IN_ORDER) => {
            let cause = format_args!("{why}, and in its .old {NOT_IN_ORDER}");
            return Err(cannot("update", &target.path, &cause));
        }
        Content::Missing | Content::Damaged(_) => {}
    }
    if is_there {
        let cause = format_args!("{why}, and there is no .old of use; a new one begins");
        report.troubles.push(cannot("read", &target.path, &cause));
    }
    log.begin(now_s);
    Ok(true)
}

const NOT_IN_ORDER: &str = "a row is newer than the one before";

fn read(
    tree: &dyn Tree,
    log: &mut Log,
    path: &Path,
    max_age_s: Option<u64>,
    now_s: i64,
) -> Result<Content, String> {
    let cannot = |cause: &dyn Display| cannot("read", path, cause);
    let file = match tree.open(path, Access::Read) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Content::Missing),
        // A new log would take the place of one that may only be locked away.
        opened => opened.map_err(|error| cannot(&error))?,
    };
    let stat = file.metadata().map_err(|error| cannot(&error))?;
    if stat.kind != NameKind::File {
        return Err(cannot(&"it is no file"));
    }
    if stat.size_bytes > FILE_MAX {
        return Err(cannot(&"it is larger than 1 MiB"));
    }
    let age_s = now_s.saturating_sub(stat.mtime_ns.div_euclid(1_000_000_000));
    if let Some(max) = max_age_s.filter(|&max| age_s > 0 && age_s.unsigned_abs() > max) {
        return Err(cannot(&format_args!("it is older than MaxAge ({max} s)")));
    }
    log.text
        .resize(usize::try_from(stat.size_bytes).unwrap_or(0), 0);
    let read = file.read_at(&mut log.text, 0);
    let read = read.map_err(|error| cannot(&error))?;
    log.text.truncate(read);
    Ok(match log.parse() {
        Ok(()) => Content::Rows,
        Err(Damage::FirstLine) => Content::Damaged("its first line is no time and two values"),
        Err(Damage::Order) => Content::Damaged(NOT_IN_ORDER),
    })
}

/// Both values of an argument in rateup's notation.
fn values(argument: &[u8]) -> [Vec<u8>; 2] {
    let mut parts = argument.split(|&byte| byte == b':').skip(1);
    [parts.next(), parts.next()].map(|part| match part {
        None | Some(b"U") => UNKNOWN.to_vec(),
        Some(value) => without_sign(value),
    })
}

fn without_sign(value: &[u8]) -> Vec<u8> {
    let negative = std::str::from_utf8(value).ok();
    let negative = negative.filter(|text| text.starts_with('-'));
    let mended = negative.and_then(|text| text.parse::<i128>().ok()?.checked_add(SIGN_MENDED));
    mended.map_or_else(|| value.to_vec(), |number| number.to_string().into_bytes())
}

fn cannot(verb: &str, path: &Path, cause: &dyn Display) -> String {
    let path = DisplayName(path.as_os_str().as_bytes());
    format!("cannot {verb} {path}: {cause}")
}
