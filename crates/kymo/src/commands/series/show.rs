//! `kymo series show`: rows of stored series, and of fields of this machine.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Error, Result, bail};
use clap::Args;
use kymo_query::archive::LINES_MAX;
use kymo_query::fields::FieldAnswer;
use kymo_query::series::Point;
use kymo_query::sheet::Pick;
use kymo_rrd::zone::own_zone;
use kymo_sys::talk;
use kymo_wire::keeper::{Range, Rows};

use super::{NOTHING, Times, WhichStore, folder, range, reader, seconds, shown, stamp};
use crate::commands::data;

const SECOND_NS: i64 = 1_000_000_000;

#[derive(Args, Clone, Debug)]
pub(super) struct Show {
    /// Names, as ls prints them; or fields of this machine, such as cpu.user and disk.read_kb:sda, which are read from the
    /// recording and, from before it, out of the store
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    #[command(flatten)]
    times: Times,
    /// Rows of each at most
    #[arg(long, value_name = "N", default_value_t = 1000)]
    rows: u32,
    #[command(flatten)]
    place: WhichStore,
}

pub(super) fn run(show: &Show) -> Result<ExitCode> {
    let times = range(&show.times)?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut code = ExitCode::SUCCESS;
    for (at, (name, answer)) in show.names.iter().zip(answers(show, times)?).enumerate() {
        if at > 0 {
            writeln!(out)?;
        }
        match answer {
            Ok(rows) => print(&mut out, name, &rows)?,
            Err(why) => {
                talk::say(format_args!("kymo: {}", shown(why.as_bytes())));
                code = ExitCode::from(NOTHING);
            }
        }
    }
    out.flush()?;
    Ok(code)
}

/// Rows of all names, in the order of the names.
fn answers(show: &Show, (from, thru): (i64, i64)) -> Result<Vec<Result<Rows, String>>> {
    let pick = |name: &String| Pick::parse(name).ok();
    let stored: Vec<&String> = show
        .names
        .iter()
        .filter(|name| pick(name).is_none())
        .collect();
    let stored = match stored.is_empty() {
        true => Vec::new(),
        false => reader(&show.place)?
            .range(&Range {
                names: stored.iter().map(|name| name.as_bytes().to_vec()).collect(),
                from,
                thru,
                rows_max: show.rows,
            })
            .map_err(Error::msg)?,
    };
    let picks: Vec<Pick> = show.names.iter().filter_map(pick).collect();
    let fields = match picks.is_empty() {
        true => Vec::new(),
        false => field_rows(&place(show)?, &picks, (from, thru), show.rows)?,
    };
    let (mut stored, mut fields) = (stored.into_iter(), fields.into_iter());
    let answers = show.names.iter().filter_map(|name| match pick(name) {
        Some(_) => fields.next().map(Ok),
        None => stored.next(),
    });
    Ok(answers.collect())
}

fn place(show: &Show) -> Result<std::path::PathBuf> {
    match &show.place.open {
        Some(dir) => Ok(dir.clone()),
        None => folder(&show.place.served),
    }
}

/// Rows of fields. Each field has its instances as columns.
fn field_rows(
    dir: &Path,
    picks: &[Pick],
    (from, thru): (i64, i64),
    rows_max: u32,
) -> Result<Vec<Rows>> {
    let fields = data::fields(dir)?;
    let points = usize::try_from(rows_max).unwrap_or(usize::MAX);
    let nanoseconds = |seconds: i64| seconds.saturating_mul(SECOND_NS);
    let answer = fields
        .series(picks, nanoseconds(from), nanoseconds(thru), points)
        .map_err(Error::msg)?;
    if let Some(problem) = &answer.problem {
        talk::say(format_args!("kymo: {problem}"));
    }
    if answer.series.full {
        bail!(
            "cannot show all instances: there are more than {LINES_MAX} lines of {points} rows; ask for fewer rows"
        );
    }
    Ok((0..picks.len())
        .map(|pick| rows_of(&answer, pick))
        .collect())
}

fn rows_of(answer: &FieldAnswer, pick: usize) -> Rows {
    let (series, grid) = (&answer.series, answer.series.grid);
    let lines = series.lines.iter().zip(&series.points);
    let lines: Vec<_> = lines.filter(|(line, _)| line.pick == pick).collect();
    let cells = |value: fn(&Point) -> f64| {
        let rows =
            (0..grid.count).flat_map(|n| lines.iter().map(move |(_, points)| value(&points[n])));
        rows.collect()
    };
    Rows {
        start: grid.from_ns.div_euclid(SECOND_NS),
        step: u32::try_from(grid.step_ns / SECOND_NS).unwrap_or(u32::MAX),
        columns: lines.iter().map(|(line, _)| column(&line.id)).collect(),
        mean: cells(Point::mean),
        min: cells(|point| point.min),
        max: cells(|point| point.max),
    }
}

/// Name of an instance; `value` for the whole machine.
fn column(id: &str) -> Vec<u8> {
    let instance = id.split_once(':').map_or("value", |(_, instance)| instance);
    instance.as_bytes().to_vec()
}

/// Prints a table: the end of each row, and its cells; `-` is unknown.
fn print(out: &mut dyn Write, name: &str, rows: &Rows) -> io::Result<()> {
    let width = rows.columns.len().max(1);
    writeln!(
        out,
        "# {}, {} a row",
        shown(name.as_bytes()),
        seconds(f64::from(rows.step))
    )?;
    write!(out, "{:<25}", "# time")?;
    for column in &rows.columns {
        write!(out, " {:>14}", shown(column))?;
    }
    writeln!(out)?;
    let zone = own_zone();
    for (at, cells) in rows.mean.chunks_exact(width).enumerate() {
        let end = rows
            .start
            .saturating_add(i64::from(rows.step).saturating_mul(at as i64 + 1));
        let time = stamp(end, &zone);
        write!(out, "{time:<25}")?;
        for cell in cells {
            match cell.is_nan() {
                true => write!(out, " {:>14}", "-")?,
                false => write!(out, " {cell:>14.6}")?,
            }
        }
        writeln!(out)?;
    }
    Ok(())
}
