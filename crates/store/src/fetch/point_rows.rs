//! Rows finer than the archives of a series, computed from its points by the same arithmetic, and not stored.

use crate::consolidation::archive::Archive;
use crate::consolidation::schema::Schema;
use crate::engine::Inner;
use crate::error::{FetchError, FileError};
use crate::hole;
use crate::layout::POINTS_KEPT_S;
use crate::read::raw_points::sent;
use crate::read::series_cache::FetchRequest;
use kymo_rrd::create::{self, Create};
use kymo_rrd::fetch::Fetched;
use kymo_rrd::update::{Now, Scratch, Update, begin_hole, update_all};
use kymo_rrd::{Header, Rrd};

/// Archive of such rows, which are averages of a step.
const ARCHIVE: &[u8] = b"AVERAGE";
/// Number of additional rows before the wanted ones, so that the first wanted row is complete.
const ROWS_BEFORE: i64 = 2;

/// Condition for using points.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// The archives that reach back as far have coarser rows than wanted.
    WhereFiner,
    /// For series with a longer retention of points than others: the step of the points is nearer to the wanted one. An
    /// archive that is nearly as fine is read in a fraction of the time.
    WhereNearer,
}

impl Use {
    /// Returns true if points are to be used for rows of a series with values up to `newest`.
    fn fits(self, schema: &Schema, wanted: &FetchRequest, newest: f64) -> bool {
        let reaches = |archive: &&Archive| {
            let step = archive.step.max(1) as f64;
            let length = step * archive.row_cnt as f64;
            newest - newest % step - length <= wanted.start as f64
        };
        let steps = |archives: &mut dyn Iterator<Item = &Archive>| {
            archives.map(|archive| archive.step).min()
        };
        let archives = || schema.archives.iter();
        let finest = steps(&mut archives().filter(reaches)).or_else(|| steps(&mut archives()));
        let step = schema.template.pdp_step;
        let Some(finest) = finest.filter(|&finest| step < finest) else {
            return false;
        };
        match self {
            Use::WhereFiner => wanted.step < finest,
            Use::WhereNearer => {
                schema.points_kept_s > POINTS_KEPT_S
                    && wanted.step.abs_diff(step) < wanted.step.abs_diff(finest)
            }
        }
    }
}

impl Inner {
    /// Rows of one step each. `None` means that the archives are to be read, because points do not fit, do not reach far
    /// enough back, or would be too many.
    pub(crate) fn rows_of_points(
        &self,
        id: u32,
        wanted: &FetchRequest,
        points: Use,
    ) -> Result<Option<Fetched>, FetchError> {
        let (snapshot, slot, chunk) = {
            let state = self.lock();
            let series = state.series.get(id).ok_or(FileError::NoSuchFile)?;
            let until = series.values.last;
            let chunk = state.chunks.get(series.chunk);
            if !chunk.is_some_and(|chunk| points.fits(&chunk.schema, wanted, until)) {
                return Ok(None);
            }
            let snapshot = self.snapshot(&state, series, until);
            (snapshot, series.slot, series.chunk)
        };
        let snapshot = snapshot.ok_or(FileError::NoSuchFile)?;
        let schema = snapshot.schema();
        let step = i64::try_from(schema.template.pdp_step);
        let Some(step) = step.ok().filter(|&step| step > 0) else {
            return Ok(None);
        };
        let width = u64::try_from(schema.width).unwrap_or(u64::MAX);
        let span = wanted.end.saturating_sub(wanted.start);
        let count = u64::try_from(span / step + 2 + ROWS_BEFORE).unwrap_or(0);
        if count.saturating_mul(width) > wanted.cells_max {
            return Ok(None);
        }
        let first = wanted.start.div_euclid(step).saturating_sub(ROWS_BEFORE) * step;
        let kept = (schema.points_kept_s, self.segments.points_from());
        let sent = sent(&self.segments.blocks(chunk), kept, slot, first as f64);
        let sent = sent.map_err(FileError::Io)?;
        if sent.from > wanted.start as f64 {
            return Ok(None);
        }
        let (texts, pending) = (sent.texts, snapshot.texts());
        let texts: Vec<&[u8]> = texts.iter().chain(pending.iter()).collect();
        let rrd = rows(&schema.template, first, count, &texts, self.rrd_now())?;
        let (header, mut cells) = (rrd.header, rrd.cells);
        let (start, end) = (wanted.start, wanted.end);
        let fetched = kymo_rrd::fetch::fetch(&header, &mut cells, ARCHIVE, start, end, 1);
        Ok(Some(fetched?))
    }
}

/// Start of the first row with a known cell; the end of all rows if there is none.
pub(crate) fn known_from(fetched: &Fetched) -> i64 {
    let mut rows = fetched.rows.chunks(fetched.names.len().max(1));
    let is_known = |row: &[f64]| row.iter().any(|cell| !cell.is_nan());
    let at = rows.position(is_known);
    let at = at.and_then(|at| fetched.step.checked_mul(u64::try_from(at).ok()?));
    at.map_or(fetched.end, |behind| {
        fetched.start.saturating_add_unsigned(behind)
    })
}

/// A file with one archive that has a row for each step, after these values.
fn rows(
    template: &Header,
    first: i64,
    count: u64,
    texts: &[&[u8]],
    now: Now,
) -> Result<Rrd, kymo_rrd::Error> {
    let mut plain = template.clone();
    plain.rra.clear();
    let archive = format!("RRA:AVERAGE:0.5:1:{count}");
    let request = Create {
        start: Some(first),
        definitions: &[archive.as_bytes()],
        ..Create::default()
    };
    let mut rrd = create::create(&request, first, &mut 1, Some(&plain), &[])?;
    let how = Update {
        file_name: b"",
        template: None,
        skip_past: true,
        now,
        at_time: &|_| Err("an at-style time has no stamp".to_string()),
    };
    let (mut scratch, mut refused) = (Scratch::default(), Vec::new());
    for (at, part) in texts.split(|text| hole::is_one(text)).enumerate() {
        if at > 0 {
            begin_hole(&mut rrd.header);
        }
        let Rrd { header, cells } = &mut rrd;
        update_all(&mut scratch, header, cells, &how, part, &mut refused)?;
    }
    Ok(rrd)
}
