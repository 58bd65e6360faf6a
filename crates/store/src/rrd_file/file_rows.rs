//! Reads the rows of a series that only its file has, and writes rows to files in place.

use crate::consolidation::schema::Schema;
use crate::engine::Inner;
use crate::error::FileError;
use crate::names;
use crate::read::rows::{FileRows, read_cells};
use crate::read::snapshot::Snapshot;
use crate::read::view::{Base, View, row_of};
use crate::rrd_file::header::open_error;
use crate::settings::Files;
use kymo_rrd::Header;
use kymo_sys::disk::DiskFile;
use kymo_sys::tree::Access;

/// Buffers of writing, reused from file to file.
#[derive(Default)]
pub(crate) struct RowWriter {
    cells: Vec<f64>,
    out: Vec<u8>,
}

impl Inner {
    /// The file with a series' older rows.
    pub(crate) fn base_of(&self, snapshot: &Snapshot) -> Result<Option<Base>, FileError> {
        let Some(last_up) = snapshot.base else {
            return Ok(None);
        };
        let file = self.tree.open(names::path(&snapshot.path), Access::Read);
        let file = match file.map_err(open_error) {
            // Rows that only this file had are unknown now.
            Err(FileError::NoSuchFile) if self.settings.files == Files::OnDemand => {
                return Ok(None);
            }
            file => file?,
        };
        if file.metadata().map_err(FileError::Io)?.size_bytes == 0 {
            return Ok(None);
        }
        let offset = snapshot.header_bytes();
        Ok(Some(Base {
            rows: Box::new(FileRows { file, offset }),
            last_up,
        }))
    }
}

impl RowWriter {
    /// Writes the rows since `from`, the seasonal cells, and the header's changing part.
    ///
    /// Rows that are damaged in the segments keep the file's
    /// content, which `kept`, its present header, describes.
    pub(crate) fn write(
        &mut self,
        view: &mut View,
        file: &dyn DiskFile,
        from: f64,
        kept: Option<&Header>,
    ) -> Result<(), FileError> {
        let header = view.state.header.clone();
        let schema = view.schema.clone();
        let offset = header.size_bytes();
        let mut season = 0;
        for (archive, about) in schema.archives.iter().enumerate() {
            if about.seasonal {
                self.put_cells(&view.state.seasons[season], file, offset + 8 * about.base)?;
                season += 1;
                continue;
            }
            let newest = schema.newest(archive, header.last_up);
            let first = match from.is_finite() {
                true => schema.newest(archive, from as i64) + 1,
                false => 0,
            };
            let mut at = first.max((newest + 1).saturating_sub(about.row_cnt));
            while at <= newest {
                let row = row_of(at, newest, header.cur_row[archive], about.row_cnt);
                let run = (newest + 1 - at).min(about.row_cnt - row);
                let mut cells = std::mem::take(&mut self.cells);
                cells.resize(run as usize * schema.width, 0.0);
                let damaged = view.damaged;
                let mut read = view.numbered(archive, at, &mut cells);
                if let Some(kept) = kept.filter(|_| read.is_ok() && view.damaged > damaged) {
                    view.damaged = damaged;
                    read = read_kept(&schema, (archive, at), kept, file, &mut cells)
                        .and_then(|()| view.overlay(archive, at, &mut cells));
                }
                let done = read
                    .map_err(|error| FileError::Rrd(error.text))
                    .and_then(|()| {
                        self.put_cells(
                            &cells,
                            file,
                            offset + 8 * (about.base + row * schema.width as u64),
                        )
                    });
                self.cells = cells;
                done?;
                at += run;
            }
        }
        self.out.clear();
        header.encode_live(&mut self.out);
        file.write_at(&self.out, header.live_offset())
            .map_err(FileError::Io)
    }

    fn put_cells(
        &mut self,
        cells: &[f64],
        file: &dyn DiskFile,
        offset: u64,
    ) -> Result<(), FileError> {
        self.out.clear();
        self.out
            .extend(cells.iter().flat_map(|cell| cell.to_le_bytes()));
        file.write_at(&self.out, offset).map_err(FileError::Io)
    }
}

/// Reads those of the rows `number..` of an archive that the file has; leaves the other cells unchanged.
fn read_kept(
    schema: &Schema,
    (archive, number): (usize, u64),
    kept: &Header,
    file: &dyn DiskFile,
    cells: &mut [f64],
) -> Result<(), kymo_rrd::Error> {
    let (about, newest) = (
        &schema.archives[archive],
        schema.newest(archive, kept.last_up),
    );
    let oldest = (newest + 1).saturating_sub(about.row_cnt);
    for (at, cells) in (number..).zip(cells.chunks_mut(schema.width.max(1))) {
        if (oldest..=newest).contains(&at) {
            let row = row_of(at, newest, kept.cur_row[archive], about.row_cnt);
            let first = about.base + row * schema.width as u64;
            read_cells(file, kept.size_bytes(), first, cells)?;
        }
    }
    Ok(())
}
