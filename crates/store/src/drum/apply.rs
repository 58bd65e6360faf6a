//! Updates of one group, from its state to its next, the new rows caught on the way.

use super::captured::Captured;
use super::shape::{Group, Shape};
use crate::hole;
use kymo_rrd::update::{Now, Scratch, Update, begin_hole, update_all};
use kymo_rrd::{Error, Header};

/// Memory for one group after the other.
#[derive(Default)]
pub(crate) struct Applier {
    scratch: Scratch,
    pub(crate) captured: Captured,
    group: Option<Group>,
    /// Values that were refused: which, and why.
    pub(crate) refused: Vec<(usize, Error)>,
}

impl Applier {
    /// Applies values to a state. Afterwards [`Applier::header`], [`Applier::captured`] and [`Applier::pack`] tell what
    /// became of it. An error is one of the definition or the state, and nothing has happened.
    pub(crate) fn apply(
        &mut self,
        shape: &Shape,
        state: &[u64],
        name: &[u8],
        values: &[&[u8]],
        now: Now,
    ) -> Result<(), Error> {
        let damaged = || Error::new("has a damaged state");
        let mut group = match self.group.take() {
            Some(group) if shape.fits(&group) => group,
            _ => shape.unpack(state).ok_or_else(damaged)?,
        };
        shape.unpack_into(state, &mut group).ok_or_else(damaged)?;
        let done = self.go_on(shape, &mut group, name, values, now);
        self.group = Some(group);
        done
    }

    /// Applies values to a group; [`Applier::captured`] tells what rows they made.
    pub(crate) fn go_on(
        &mut self,
        shape: &Shape,
        group: &mut Group,
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
            .begin(shape, std::mem::take(&mut group.seasons));
        let mut parts = values.split(|text| hole::is_one(text));
        let first = parts.next().unwrap_or_default();
        let mut done = self.some(group, &how, (0, first));
        let mut at = first.len();
        for part in parts {
            begin_hole(&mut group.header);
            done = done.and_then(|()| self.some(group, &how, (at + 1, part)));
            at += 1 + part.len();
        }
        group.seasons = self.captured.end();
        done
    }

    /// Applies values among which is no hole, the first of which is number `from`.
    fn some(
        &mut self,
        group: &mut Group,
        how: &Update<'_>,
        (from, values): (usize, &[&[u8]]),
    ) -> Result<(), Error> {
        if values.is_empty() {
            return Ok(());
        }
        let (rows, refused) = (&mut self.captured, self.refused.len());
        let (header, all) = (&mut group.header, &mut self.refused);
        let done = update_all(&mut self.scratch, header, rows, how, values, all);
        self.refused[refused..]
            .iter_mut()
            .for_each(|(at, _)| *at += from);
        done
    }

    /// The header after the values.
    pub(crate) fn header(&self) -> Option<&Header> {
        self.group.as_ref().map(|group| &group.header)
    }

    /// Header and seasons after the values.
    pub(crate) fn take_group(&mut self) -> Option<Group> {
        self.group.take()
    }

    /// The state after the values.
    pub(crate) fn pack(&self, shape: &Shape, out: &mut Vec<u64>) {
        if let Some(group) = &self.group {
            shape.pack(group, out);
        }
    }
}
