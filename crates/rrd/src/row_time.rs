//! Converts between rows and times, for create with sources and for tune.
//!
//! As in rrdtool, the arithmetic here has 32 bits.

use crate::cf::Cf;
use crate::header::{Header, RraDef};

/// An archive of a file, and the index of its first cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Archive<'a> {
    pub header: &'a Header,
    pub cells: &'a [f64],
    pub index: usize,
    pub first_cell: usize,
}

impl<'a> Archive<'a> {
    /// All archives of a file.
    pub(crate) fn all(header: &'a Header, cells: &'a [f64]) -> impl Iterator<Item = Archive<'a>> {
        let mut first_cell = 0;
        header.rra.iter().enumerate().map(move |(index, rra)| {
            let archive = Archive {
                header,
                cells,
                index,
                first_cell,
            };
            first_cell += rra.row_cnt as usize * header.ds.len();
            archive
        })
    }

    pub(crate) fn rra(&self) -> &'a RraDef {
        &self.header.rra[self.index]
    }

    pub(crate) fn cf(&self) -> Option<Cf> {
        Cf::of(self.rra().cf())
    }

    pub(crate) fn cur_row(&self) -> i32 {
        self.header.cur_row[self.index] as i32
    }

    /// A cell; `None`: it is outside of the file.
    pub(crate) fn cell(&self, row: i32, ds: usize) -> Option<f64> {
        let row = usize::try_from(row).ok()?;
        self.cells
            .get(self.first_cell + row * self.header.ds.len() + ds)
            .copied()
    }

    /// Seconds of a row.
    pub(crate) fn timeslot(&self) -> i32 {
        timeslot(self.rra(), self.header.pdp_step)
    }

    /// The row that covers a time.
    pub(crate) fn row_for_time(&self, time: i64) -> Option<i32> {
        row_for_time(self.header, self.rra(), self.cur_row(), time)
    }
}

pub(crate) fn timeslot(rra: &RraDef, step: u64) -> i32 {
    rra.pdp_cnt.wrapping_mul(step) as i32
}

/// The last second of a row.
pub(crate) fn end_time_for_row(header: &Header, rra: &RraDef, cur_row: i32, row: i32) -> i64 {
    let timeslot = timeslot(rra, header.pdp_step);
    let past = positive_mod(cur_row.wrapping_sub(row), rra.row_cnt as i32);
    let newest = header.last_up - header.last_up.checked_rem(timeslot.into()).unwrap_or(0);
    newest.wrapping_sub(past.wrapping_mul(timeslot).into())
}

/// The row that covers a time; `None`: no row does.
pub(crate) fn row_for_time(header: &Header, rra: &RraDef, cur_row: i32, time: i64) -> Option<i32> {
    let (timeslot, row_cnt) = (timeslot(rra, header.pdp_step), rra.row_cnt as i32);
    if timeslot <= 0 || row_cnt <= 0 {
        return None;
    }
    let slot = i64::from(timeslot);
    let over = time % slot;
    let time = if over > 0 {
        time.wrapping_add(slot - over)
    } else {
        time
    };
    let oldest = (header.last_up as i32).wrapping_sub(row_cnt.wrapping_mul(timeslot));
    if time > header.last_up || time <= oldest.into() {
        return None;
    }
    let past = (header.last_up.wrapping_sub(time) / slot) as i32;
    (past < row_cnt).then(|| positive_mod(cur_row.wrapping_sub(past), row_cnt))
}

pub(crate) fn positive_mod(a: i32, b: i32) -> i32 {
    let rest = a.checked_rem(b).unwrap_or(0);
    if rest < 0 { rest.wrapping_add(b) } else { rest }
}
