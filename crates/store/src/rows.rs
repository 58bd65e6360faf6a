//! Rows that an update writes, gathered so that cells that touch go to the file with one write.

use kymo_rrd::{Error, Rows};
use kymo_sys::disk::DiskFile;
use std::io;

/// Cells that touch each other.
#[derive(Default)]
struct Run {
    first: u64,
    /// The next run begins here: no cell of this one may.
    limit: u64,
    cells: Vec<f64>,
}

impl Run {
    fn end(&self) -> u64 {
        self.first + self.cells.len() as u64
    }
}

/// Memory for one file after the other.
#[derive(Default)]
pub(crate) struct Gathered {
    runs: Vec<Run>,
    used: usize,
    /// The run that was written to last: the next archive's is mostly the one behind it.
    last: usize,
    out: Vec<u8>,
}

/// The rows of an open file, seen through what is gathered.
pub(crate) struct GatheredRows<'a> {
    pub(crate) gathered: &'a mut Gathered,
    pub(crate) file: &'a dyn DiskFile,
    /// Where the first cell lies.
    pub(crate) offset: u64,
    /// How many there are.
    pub(crate) cells: u64,
}

impl Gathered {
    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.used = 0;
        self.last = 0;
    }

    fn runs(&self) -> &[Run] {
        &self.runs[..self.used]
    }

    pub(crate) fn write(&mut self, first: u64, cells: &[f64]) {
        for step in 1..=self.used {
            let at = (self.last + step) % self.used;
            let run = &mut self.runs[at];
            if run.end() == first && first + cells.len() as u64 <= run.limit {
                run.cells.extend_from_slice(cells);
                self.last = at;
                return;
            }
        }
        for (cell, &value) in (first..).zip(cells) {
            self.write_cell(cell, value);
        }
    }

    fn write_cell(&mut self, cell: u64, value: f64) {
        let runs = &mut self.runs[..self.used];
        for (at, run) in runs.iter_mut().enumerate() {
            if run.first <= cell && cell < run.end() {
                run.cells[(cell - run.first) as usize] = value;
                return;
            }
            if run.end() == cell && cell < run.limit {
                run.cells.push(value);
                self.last = at;
                return;
            }
        }
        let mut limit = u64::MAX;
        for run in runs {
            if run.first > cell {
                limit = limit.min(run.first);
            } else {
                run.limit = run.limit.min(cell);
            }
        }
        if self.used == self.runs.len() {
            self.runs.push(Run::default());
        }
        let run = &mut self.runs[self.used];
        run.first = cell;
        run.limit = limit;
        run.cells.clear();
        run.cells.push(value);
        self.last = self.used;
        self.used += 1;
    }

    /// Writes everything into `file`, whose rows begin at `offset`.
    pub(crate) fn flush(&mut self, file: &dyn DiskFile, offset: u64) -> io::Result<()> {
        let used = self.used;
        self.runs[..used].sort_unstable_by_key(|run| run.first);
        let mut at = 0;
        while at < used {
            self.out.clear();
            let first = self.runs[at].first;
            let mut end = first;
            while at < used && self.runs[at].first == end {
                let cells = &self.runs[at].cells;
                self.out
                    .extend(cells.iter().flat_map(|cell| cell.to_le_bytes()));
                end += cells.len() as u64;
                at += 1;
            }
            file.write_at(&self.out, offset + 8 * first)?;
        }
        Ok(())
    }
}

impl Rows for GatheredRows<'_> {
    fn read(&mut self, first: u64, cells: &mut [f64]) -> Result<(), Error> {
        read_cells(self.file, self.offset, first, cells)?;
        for run in self.gathered.runs() {
            let from = first.max(run.first);
            let to = (first + cells.len() as u64).min(run.end());
            for cell in from..to {
                cells[(cell - first) as usize] = run.cells[(cell - run.first) as usize];
            }
        }
        Ok(())
    }

    fn write(&mut self, first: u64, cells: &[f64]) -> Result<(), Error> {
        let end = first.checked_add(cells.len() as u64);
        if end.is_none_or(|end| end > self.cells) {
            return Err(Error::new("a row lies outside the file"));
        }
        self.gathered.write(first, cells);
        Ok(())
    }
}

/// Reads cells where they lie.
pub(crate) fn read_cells(
    file: &dyn DiskFile,
    offset: u64,
    first: u64,
    cells: &mut [f64],
) -> Result<(), Error> {
    let mut bytes = vec![0; 8 * cells.len()];
    match file.read_at(&mut bytes, offset + 8 * first) {
        Ok(count) if count == bytes.len() => {}
        Ok(_) => return Err(Error::new("a row lies outside the file")),
        Err(cause) => return Err(Error::new(format!("cannot read rows: {cause}"))),
    }
    for (cell, bytes) in cells.iter_mut().zip(bytes.chunks_exact(8)) {
        *cell = f64::from_le_bytes(std::array::from_fn(|i| bytes[i]));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use kymo_sys::disk::{Disk, OpenMode};
    use kymo_sys::sim_disk::SimDisk;
    use proptest::prelude::*;
    use std::path::Path;

    fn file(cells: u64) -> (SimDisk, Box<dyn DiskFile>) {
        let disk = SimDisk::new(1);
        let file = disk.open(Path::new("/f"), OpenMode::Create).unwrap();
        file.write_at(&vec![0; 8 * cells as usize], 0).unwrap();
        (disk, file)
    }

    proptest! {
        #[test]
        fn gathered_rows_are_rows(writes in proptest::collection::vec((0u64..40, 1usize..6), 0..60)) {
            let (_disk, file) = file(48);
            let mut expected = vec![0.0; 48];
            let mut gathered = Gathered::default();
            for round in 0..2 {
                gathered.clear();
                for (i, &(first, len)) in writes.iter().enumerate() {
                    let cells: Vec<f64> = (0..len).map(|at| (round * 1000 + i * 10 + at) as f64).collect();
                    let mut rows = GatheredRows { gathered: &mut gathered, file: &*file, offset: 0, cells: 48 };
                    rows.write(first, &cells).unwrap();
                    Rows::write(&mut expected, first, &cells).unwrap();
                    let mut seen = vec![0.0; 48];
                    rows.read(0, &mut seen).unwrap();
                    prop_assert_eq!(&seen, &expected);
                }
                gathered.flush(&*file, 0).unwrap();
                let mut seen = vec![0.0; 48];
                read_cells(&*file, 0, 0, &mut seen).unwrap();
                prop_assert_eq!(&seen, &expected);
            }
        }
    }

    #[test]
    fn rows_that_touch_are_one_write() {
        let (disk, file) = file(100);
        let mut gathered = Gathered::default();
        let mut rows = GatheredRows {
            gathered: &mut gathered,
            file: &*file,
            offset: 0,
            cells: 100,
        };
        for row in 0..30 {
            rows.write(row, &[1.0]).unwrap();
            if row % 6 == 0 {
                rows.write(50 + row / 6, &[2.0]).unwrap();
            }
        }
        assert!(rows.write(100, &[1.0]).is_err());
        assert!(rows.write(u64::MAX, &[1.0]).is_err());
        let before = disk.counts().writes;
        gathered.flush(&*file, 0).unwrap();
        assert_eq!(disk.counts().writes - before, 2);
    }
}
