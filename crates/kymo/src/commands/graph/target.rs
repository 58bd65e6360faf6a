//! Graphs of one of the poller's targets, as on its page: the description is in the poller's files, a running `kymo serve` has
//! the rows.

use std::path::Path;

use kymo_base::name::DisplayName;
use kymo_keeper_client::Keeper;
use kymo_query::marks::Mark;
use kymo_query::stored;
use kymo_query::targets::{DescribedTarget, Percentile, Period, TargetGraph, files};
use kymo_sys::disk::RealDisk;
use kymo_view::svg::{self, Style, TargetPicture};
use kymo_view::time::Zone;
use kymo_wire::keeper::{Range, Rows};
use kymo_wire::targets::FOLDER;

use super::super::serve::KEEPER_SOCKET;

/// A target and its rows.
pub(super) struct Shown {
    target: DescribedTarget,
    graphs: Vec<TargetGraph>,
    percentile: Percentile,
    marks: Vec<Mark>,
}

/// Reads a target, `NAME` or `CONFIGURATION/NAME`, and its rows up to now. Without periods: all that the target has.
pub(super) fn read(data: &Path, name: &str, periods: &[String], now: i64) -> Result<Shown, String> {
    let periods = periods.iter().map(|name| {
        let period = Period::parse(name);
        period.ok_or_else(|| format!("cannot draw period {name:?}: it is day, week, month or year"))
    });
    let mut periods: Vec<Period> = periods.collect::<Result<_, _>>()?;
    let target = find(&data.join(FOLDER), name)?;
    if periods.is_empty() {
        let all = Period::ALL.into_iter();
        periods = all.filter(|period| period.is_shown(&target)).collect();
    }
    let keeper = Keeper::at(data.join(KEEPER_SOCKET));
    let mut graphs = Vec::new();
    for period in periods {
        let rows = rows(&keeper, &period.question(&target, now))?;
        graphs.push(TargetGraph::new(period, &target, &rows, now));
    }
    let percentile = Percentile::new(&rows(&keeper, &Percentile::question(&target, now))?);
    let from = graphs.iter().map(|graph| graph.range.0).min();
    let marks = stored::device_marks(&keeper, &target.device, (from.unwrap_or(now), now + 1))?;
    Ok(Shown {
        target,
        graphs,
        percentile,
        marks,
    })
}

/// The one target with this name.
fn find(folder: &Path, wanted: &str) -> Result<DescribedTarget, String> {
    let (stem, name) = match wanted.rsplit_once('/') {
        Some((stem, name)) => (Some(stem), name),
        None => (None, wanted),
    };
    // MRTG's names are in lower case, in whatever case a user writes them.
    let name = name.to_lowercase();
    let mut found = Vec::new();
    for file in files::list(&RealDisk, folder) {
        if stem.is_none_or(|stem| stem == file.stem) {
            file.read(&RealDisk, folder, &mut |_, target| {
                if target.name == name {
                    found.push((format!("{}/{}", file.stem, target.name), target));
                }
            })?;
        }
    }
    let shown = DisplayName(wanted.as_bytes());
    match found.len() {
        0 => Err(format!(
            "cannot find target {shown} in {}",
            folder.display()
        )),
        1 => Ok(found.remove(0).1),
        _ => {
            let ids: Vec<String> = found.into_iter().map(|(id, _)| id).collect();
            let ids = ids.join(", ");
            Err(format!(
                "cannot choose target {shown}: there are {}",
                DisplayName(ids.as_bytes())
            ))
        }
    }
}

fn rows(keeper: &Keeper, range: &Range) -> Result<Rows, String> {
    let answer = keeper.range(range)?.pop();
    answer.unwrap_or_else(|| Err("cannot read a target: the keeper says nothing".into()))
}

impl Shown {
    /// True if none of its values is known.
    pub(super) fn is_empty(&self) -> bool {
        let lines = self.graphs.iter().flat_map(|graph| &graph.lines);
        !lines
            .flat_map(|line| &line.averages)
            .any(|rate| !rate.is_nan())
    }

    /// Draws the picture.
    pub(super) fn svg(&self, zone: &mut Zone, style: &Style) -> String {
        let picture = TargetPicture {
            target: &self.target,
            graphs: &self.graphs,
            percentile: &self.percentile,
            marks: &self.marks,
        };
        let mut out = String::new();
        svg::draw_target(&picture, zone, style, &mut out);
        out
    }
}
