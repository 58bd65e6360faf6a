//! The rows of the recorder's cost table, one in each
//! file, in the table's order; and the run of any table.

mod bytes;
mod chosen;
mod cold;
mod crowds;
mod day;
mod herd;
mod instructions;
mod large;
pub(crate) mod lateness;
mod letters;
mod long;
mod memory;
mod play;
mod processes;
mod seal;
mod seek;
mod spaced;
mod start;
mod writes;

pub(crate) use bytes::files_below;

use crate::args::Args;
use crate::bench::{Bench, Size};
use crate::fault::{Fault, Result};
use crate::report::{self, Keep, Line, Outcome, Verdict};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// One row: its texts as in the table, and the run.
pub(crate) struct Row {
    pub name: &'static str,
    pub work: &'static str,
    pub bar: &'static str,
    pub aim: &'static str,
    pub run: fn(&Bench) -> Result<Outcome>,
}

const ROWS: [&Row; 19] = [
    &day::ROW,
    &spaced::ROW,
    &cold::ROW,
    &processes::ROW,
    &crowds::ROW,
    &chosen::ROW,
    &letters::ROW,
    &large::ROW,
    &long::ROW,
    &instructions::ROW,
    &seal::ROW,
    &bytes::ROW,
    &writes::ROW,
    &memory::ROW,
    &start::ROW,
    &lateness::ROW,
    &herd::ROW,
    &play::ROW,
    &seek::ROW,
];

/// A table of results: its rows, and its part of RESULTS.md.
pub(crate) struct Table {
    pub part: &'static str,
    pub rows: &'static [&'static Row],
}

/// The table of recording's costs.
pub(crate) const RECORDING: Table = Table {
    part: "What recording costs",
    rows: &ROWS,
};

impl Table {
    /// The names, for `kymo-bench rows`.
    pub(crate) fn list(&self) -> String {
        let line = |row: &&Row| format!("{:<10} {}\n", row.name, row.work);
        self.rows.iter().map(line).collect()
    }

    /// `kymo-bench record` and `kymo-bench serve`: a row that cannot run is a line of the table too;
    /// a missed bar is reported, not an error.
    pub(crate) fn run(&self, mut args: Args) -> Result<ExitCode> {
        let only: Option<String> = args.value("--only")?;
        let results: Option<PathBuf> = args.value("--results")?;
        let rows = self.choose(only.as_deref())?;
        let bench = Bench::new(&mut args)?;
        args.done()?;
        let title = title(&bench);
        crate::say(&report::head(&title)?)?;
        let mut lines = Vec::new();
        for row in rows {
            let line = run(&bench, row);
            crate::say(&line.to_string())?;
            lines.push(line);
        }
        let table = report::table(&title, &lines)?;
        self.keep(&bench, results, &table, only.is_some())?;
        let failed = lines.iter().any(|line| line.verdict() == Verdict::Failed);
        Ok(ExitCode::from(u8::from(failed)))
    }

    fn choose(&self, only: Option<&str>) -> Result<Vec<&'static Row>> {
        let Some(names) = only else {
            return Ok(self.rows.to_vec());
        };
        let find = |name: &str| {
            let row = self.rows.iter().copied().find(|row| row.name == name);
            row.ok_or_else(|| Fault::new(format!("no such row: {name} (see kymo-bench rows)")))
        };
        names.split(',').map(find).collect()
    }

    /// Writes the table to a file. A quick run is written only with `--results`.
    fn keep(&self, bench: &Bench, results: Option<PathBuf>, table: &str, some: bool) -> Result<()> {
        let usual = Path::new("bench");
        let path = match results {
            Some(path) => path,
            None if bench.size == Size::Full && usual.is_dir() => usual.join("RESULTS.md"),
            None => return Ok(()),
        };
        let keep = if some { Keep::Earlier } else { Keep::Nothing };
        report::write(&path, self.part, table, keep)
    }
}

fn title(bench: &Bench) -> String {
    let size = match bench.size {
        Size::Full => "full",
        Size::Quick => "quick (counts too small to quote)",
    };
    format!("{size}{}", bench.changes())
}

fn run(bench: &Bench, row: &'static Row) -> Line {
    eprintln!("kymo-bench: {} ...", row.name);
    Line {
        name: row.name,
        work: row.work,
        bar: row.bar,
        aim: row.aim,
        result: (row.run)(bench),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_chosen_by_name() {
        let names = |only| -> Vec<&str> {
            let rows = RECORDING.choose(only).unwrap();
            rows.iter().map(|row| row.name).collect()
        };
        assert_eq!(names(None).len(), ROWS.len());
        assert_eq!(names(Some("start,day")), ["start", "day"]);
        assert!(RECORDING.choose(Some("day,none")).is_err());
    }
}
