//! Rows that are finer than the archives of a series: made of its points, by the same arithmetic, and kept nowhere.

use crate::engine::Inner;
use crate::error::{FetchError, FileError};
use crate::hole;
use crate::read::raw_points::sent;
use crate::read::series_cache::Wanted;
use kymo_rrd::create::{self, Create};
use kymo_rrd::fetch::Fetched;
use kymo_rrd::update::{Now, Scratch, Update, begin_hole, update_all};
use kymo_rrd::{Header, Rrd};

/// What such rows are: of means of a step.
const ARCHIVE: &[u8] = b"AVERAGE";
/// Rows before those that are wanted, so that the first of them is whole.
const ROWS_BEFORE: i64 = 2;

impl Inner {
    /// Rows of a step of the series; `None`: archives have rows that are as fine as is wanted, or points do not reach
    /// that far, or would be too many.
    pub(crate) fn rows_of_points(
        &self,
        id: u32,
        wanted: &Wanted,
    ) -> Result<Option<Fetched>, FetchError> {
        let (snapshot, slot, chunk) = {
            let state = self.lock();
            let series = state.series.get(id).ok_or(FileError::NoSuchFile)?;
            let until = series.values.last;
            let snapshot = self.snapshot(&state, series, until);
            (snapshot, series.slot, series.chunk)
        };
        let snapshot = snapshot.ok_or(FileError::NoSuchFile)?;
        let schema = snapshot.schema();
        let finest = schema.archives.iter().map(|archive| archive.step).min();
        let step = schema.template.pdp_step;
        if finest.is_none_or(|finest| wanted.step >= finest || step >= finest) {
            return Ok(None);
        }
        let Some(step) = i64::try_from(step).ok().filter(|&step| step > 0) else {
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

/// A file of one archive, with a row for each step, after these values.
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
