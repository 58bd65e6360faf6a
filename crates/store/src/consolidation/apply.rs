//! Updates one series from one state to the next and captures its new rows.

use crate::consolidation::row_sink::Captured;
use crate::consolidation::schema::{Schema, SeriesState};
use crate::hole;
use kymo_rrd::update::{Now, Scratch, Update, begin_hole, update_all};
use kymo_rrd::{Error, Header};

/// Memory that is reused from series to series.
#[derive(Default)]
pub(crate) struct Applier {
    scratch: Scratch,
    pub(crate) captured: Captured,
    series: Option<SeriesState>,
    /// Index and error of each refused value.
    pub(crate) refused: Vec<(usize, Error)>,
}

impl Applier {
    /// Applies values to a state; [`Applier::header`], [`Applier::captured`] and [`Applier::pack`] then return the
    /// result. An error concerns the definition or the state, and leaves no result.
    pub(crate) fn apply(
        &mut self,
        schema: &Schema,
        state: &[u64],
        name: &[u8],
        values: &[&[u8]],
        now: Now,
    ) -> Result<(), Error> {
        let damaged = || Error::new("has a damaged state");
        let mut series = match self.series.take() {
            Some(series) if schema.fits(&series) => series,
            _ => schema.unpack(state).ok_or_else(damaged)?,
        };
        schema.unpack_into(state, &mut series).ok_or_else(damaged)?;
        let done = self.go_on(schema, &mut series, name, values, now);
        self.series = Some(series);
        done
    }

    /// Applies values to a series; [`Applier::captured`] has the new rows.
    pub(crate) fn go_on(
        &mut self,
        schema: &Schema,
        series: &mut SeriesState,
        name: &[u8],
        values: &[&[u8]],
        now: Now,
    ) -> Result<(), Error> {
        let how = Update {
            file_name: name,
            template: None,
            skip_past: true,
            now,
            at_time: &|_| Err("an at-style time has no stamp".to_string()),
        };
        self.refused.clear();
        self.captured
            .begin(schema, std::mem::take(&mut series.seasons));
        let mut parts = values.split(|text| hole::is_one(text));
        let first = parts.next().unwrap_or_default();
        let mut done = self.some(series, &how, (0, first));
        let mut at = first.len();
        for part in parts {
            begin_hole(&mut series.header);
            done = done.and_then(|()| self.some(series, &how, (at + 1, part)));
            at += 1 + part.len();
        }
        series.seasons = self.captured.end();
        done
    }

    /// Applies values without holes, of which the first has the index `from`.
    fn some(
        &mut self,
        series: &mut SeriesState,
        how: &Update<'_>,
        (from, values): (usize, &[&[u8]]),
    ) -> Result<(), Error> {
        if values.is_empty() {
            return Ok(());
        }
        let (rows, refused) = (&mut self.captured, self.refused.len());
        let (header, all) = (&mut series.header, &mut self.refused);
        let done = update_all(&mut self.scratch, header, rows, how, values, all);
        self.refused[refused..]
            .iter_mut()
            .for_each(|(at, _)| *at += from);
        done
    }

    /// The header after the values.
    pub(crate) fn header(&self) -> Option<&Header> {
        self.series.as_ref().map(|series| &series.header)
    }

    /// Header and seasons after the values.
    pub(crate) fn take_series(&mut self) -> Option<SeriesState> {
        self.series.take()
    }

    /// The state after the values.
    pub(crate) fn pack(&self, schema: &Schema, out: &mut Vec<u64>) {
        if let Some(series) = &self.series {
            schema.pack(series, out);
        }
    }
}
