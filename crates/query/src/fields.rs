//! Fields of this machine over a range of time: from the recording, and from before the recording out of the store.

use std::sync::Arc;

use crate::archive::{Archive, LINES_MAX};
use crate::history::{self, Begin};
use crate::series::{Grid, Series};
use crate::sheet::Pick;
use crate::stored::SharedKeeper;

/// Answers questions for fields of this machine.
pub struct Fields {
    /// The recording.
    pub archive: Arc<Archive>,
    history: Option<History>,
}

struct History {
    keeper: SharedKeeper,
    begin: Begin,
}

/// Fields over a range.
pub struct FieldAnswer {
    /// The fields' lines and points, sorted.
    pub series: Series,
    /// Length of one value of the recording.
    pub resolution_ns: i64,
    /// Missing parts, for people.
    pub problem: Option<String>,
}

impl Fields {
    /// Fields of a recording, with the history that a keeper has of the same machine.
    pub fn new(archive: Arc<Archive>, keeper: Option<SharedKeeper>) -> Fields {
        let history = keeper.map(|keeper| History {
            keeper,
            begin: Begin::default(),
        });
        Fields { archive, history }
    }

    /// True if there is a store to read from.
    pub fn has_history(&self) -> bool {
        self.history.is_some()
    }

    /// Reads fields over a range. If the keeper does not answer, or the recording cannot be read, the answer has the values of
    /// the other, and names the missing part.
    pub fn series(
        &self,
        picks: &[Pick],
        from_ns: i64,
        thru_ns: i64,
        points: usize,
    ) -> Result<FieldAnswer, String> {
        let recorded = self.archive.series(picks, from_ns, thru_ns, points);
        let Some(history) = &self.history else {
            let (series, resolution_ns) = recorded?;
            return Ok(FieldAnswer::sorted(series, resolution_ns, None));
        };
        let extent = self.archive.extent().unwrap_or_default();
        let keeper = history.keeper.for_addition();
        let host = extent.context.get("host").map(str::to_string);
        let host = host.map_or_else(|| Ok(history::host_of(&keeper.all()?)), Ok);
        let (mut series, resolution_ns, begins_ns, mut problem) = match recorded {
            Ok((series, resolution_ns)) => (series, resolution_ns, extent.from_ns, None),
            Err(why) => {
                let grid = Grid::new(from_ns, thru_ns, points, 1_000_000_000);
                let problem = format!("values of the recording are missing: {why}");
                (
                    Series::new(grid, LINES_MAX),
                    grid.step_ns,
                    i64::MAX,
                    Some(problem),
                )
            }
        };
        let added = host
            .and_then(|host: String| history::add(&keeper, picks, &host, begins_ns, &mut series));
        if let Err(why) = added {
            if let Some(recorded) = problem {
                return Err(recorded);
            }
            problem = Some(format!(
                "values from before the recording are missing: {why}"
            ));
        }
        Ok(FieldAnswer::sorted(series, resolution_ns, problem))
    }

    /// Where the fields begin, in nanoseconds since 1970; 0: there are none.
    pub fn begins_ns(&self, now_ns: i64) -> i64 {
        let recorded_ns = self.archive.extent().unwrap_or_default().from_ns;
        let history = self.history.as_ref();
        let begins_ns = history.and_then(|history| history.begin.ns(&history.keeper, now_ns));
        match begins_ns {
            Some(begins_ns) if recorded_ns > 0 => begins_ns.min(recorded_ns),
            Some(begins_ns) => begins_ns,
            None => recorded_ns,
        }
    }
}

impl FieldAnswer {
    fn sorted(mut series: Series, resolution_ns: i64, problem: Option<String>) -> FieldAnswer {
        series.sort();
        FieldAnswer {
            series,
            resolution_ns,
            problem,
        }
    }
}
