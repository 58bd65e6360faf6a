//! Context of one run of the bench: programs, folders, sizes of rows. Holds the
//! temporary directory and the guard for the run's life.

use crate::args::Args;
use crate::fault::{Cannot, Fault, Result};
use crate::guard::Guard;
use std::cell::{Cell, OnceCell};
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Full rows, or the same work in a few seconds as a check that it works.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Size {
    Full,
    Quick,
}

pub(crate) struct Bench {
    pub size: Size,
    pub rounds: usize,
    pub minutes: Option<u32>,
    /// Numbers of series for the drum's rows, in the place of their own.
    series: Option<usize>,
    steps: Option<u64>,
    records: Option<u64>,
    pub kymo: Option<PathBuf>,
    /// An earlier build, measured beside the others in rows of taken values.
    pub before: Option<PathBuf>,
    /// The recorder-only build, for the memory row.
    pub kymo_small: Option<PathBuf>,
    pub collectl: Option<PathBuf>,
    pub sadc: Option<PathBuf>,
    pub ring1: Option<PathBuf>,
    pub ring30: Option<PathBuf>,
    /// A ring to serve instead of a generated one; it is written to.
    pub ring: Option<PathBuf>,
    /// The folder in which playwright-core is installed.
    pub web: PathBuf,
    /// The bench's own program, for the floor and the loads.
    pub own: PathBuf,
    pub guard: Rc<Guard>,
    dir: PathBuf,
    /// The generated ring of the serving rows.
    pub made_ring: OnceCell<PathBuf>,
    made: Cell<u32>,
}

impl Bench {
    pub(crate) fn new(args: &mut Args) -> Result<Bench> {
        let size = if args.flag("--quick") {
            Size::Quick
        } else {
            Size::Full
        };
        let rounds = if size == Size::Quick { 2 } else { 5 };
        let parent = args.value("--dir")?.unwrap_or_else(std::env::temp_dir);
        let guard = Rc::new(Guard::start()?);
        Ok(Bench {
            size,
            rounds: args.value("--rounds")?.unwrap_or(rounds).max(1),
            minutes: args.value("--minutes")?,
            series: args.value("--series")?,
            steps: args.value("--steps")?,
            records: args.value("--records")?,
            kymo: program(args, "--kymo")?,
            before: program(args, "--before")?,
            kymo_small: program(args, "--kymo-small")?,
            collectl: on_path("collectl"),
            sadc: sadc(),
            ring1: args.value("--ring1")?,
            ring30: args.value("--ring30")?,
            ring: args.value("--ring")?,
            web: args.value("--web")?.unwrap_or_else(|| "web-tests".into()),
            own: std::env::current_exe().cannot("find the bench's own program")?,
            dir: work_dir(&parent, &guard)?,
            guard,
            made_ring: OnceCell::new(),
            made: Cell::new(0),
        })
    }

    /// The count of a full row or of a quick one.
    pub(crate) fn pick<T>(&self, full: T, quick: T) -> T {
        match self.size {
            Size::Full => full,
            Size::Quick => quick,
        }
    }

    /// Series of a row, unless the command line sets their number.
    pub(crate) fn series(&self, full: usize, quick: usize) -> usize {
        self.series.unwrap_or(self.pick(full, quick)).max(1)
    }

    /// Steps of a row, unless the command line sets their number.
    pub(crate) fn steps(&self, full: u64, quick: u64) -> u64 {
        self.steps.unwrap_or(self.pick(full, quick)).max(1)
    }

    /// Unsaved records of a row, unless the command line sets their number.
    pub(crate) fn records(&self, full: u64, quick: u64) -> u64 {
        self.records.unwrap_or(self.pick(full, quick)).max(1)
    }

    /// Numbers that the command line changes: `, series 2050, steps 300`.
    pub(crate) fn changes(&self) -> String {
        let series = self.series.map(|count| count as u64);
        let minutes = self.minutes.map(u64::from);
        let all = [
            ("series", series),
            ("steps", self.steps),
            ("records", self.records),
            ("minutes", minutes),
        ];
        let given = all
            .iter()
            .filter_map(|(name, count)| Some((name, (*count)?)));
        given
            .map(|(name, count)| format!(", {name} {count}"))
            .collect()
    }

    /// A new path below the run's directory.
    pub(crate) fn new_path(&self, what: &str) -> PathBuf {
        self.made.set(self.made.get() + 1);
        self.dir.join(format!("{:04}-{what}", self.made.get()))
    }

    /// A new directory below the run's directory.
    pub(crate) fn new_dir(&self, what: &str) -> Result<PathBuf> {
        let path = self.new_path(what);
        fs::create_dir(&path).cannot(format_args!("create {}", path.display()))?;
        Ok(path)
    }
}

/// Makes the run's directory. The guard removes it, however the bench ends.
fn work_dir(parent: &Path, guard: &Guard) -> Result<PathBuf> {
    let dir = parent.join(format!("kymo-bench-{}", std::process::id()));
    fs::create_dir(&dir).cannot(format_args!("create {}", dir.display()))?;
    let dir = dir.canonicalize().cannot("find the new directory")?;
    guard.directory(&dir)?;
    Ok(dir)
}

/// The program named by `switch`, made absolute.
fn program(args: &mut Args, switch: &str) -> Result<Option<PathBuf>> {
    let Some(path) = args.value::<PathBuf>(switch)? else {
        return Ok(None);
    };
    let absolute = path
        .canonicalize()
        .cannot(format_args!("find {}", path.display()))?;
    match absolute.is_file() {
        true => Ok(Some(absolute)),
        false => Err(Fault::new(format!("{} is not a file", path.display()))),
    }
}

/// Path of a program, found in PATH or in the further folders of root's PATH.
pub(crate) fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let roots = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path)
        .chain(roots)
        .map(|dir| dir.join(name))
        .find(|candidate| candidate.is_file())
}

/// Path of sadc, which distributions keep off the PATH.
fn sadc() -> Option<PathBuf> {
    let homes = ["/usr/lib/sysstat", "/usr/lib64/sa", "/usr/lib/sa"];
    homes
        .iter()
        .map(|home| Path::new(home).join("sadc"))
        .find(|candidate| candidate.is_file())
}
