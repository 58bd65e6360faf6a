//! Imports whole files into the segments: definitions, state and all rows.

use crate::consolidation::row_sink::{NewRows, Part};
use crate::consolidation::rows::Column;
use crate::consolidation::schema;
use crate::consolidation::schema::Schema;
use crate::error::FileError;
use crate::layout::STRIPE;
use crate::memtable::buffer::Pending;
use crate::rrd_file::adopt::{Beginning, Cause, Whole};
use crate::rrd_file::reconcile::Held;
use crate::segment::block::FRAME_MAX;
use crate::segment::builder::Builder;
use crate::segment::points::PointsWriter;
use crate::segment::set::SegmentSet;

use crate::engine::Inner;
use crate::rrd_file::create::seasons_of;
use kymo_rrd::{Rrd, UNKNOWN};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

mod trees;

pub use trees::WholeFile;

/// Limits of the rows of one series that are added at once: bytes and parts.
const PIECE_BYTES: usize = FRAME_MAX / 4;
const PARTS_MAX: usize = 100_000;
/// Bytes of a frame of rows at which another block is begun; more than a piece and less than the limit of frames.
const COLUMN_BYTES: usize = FRAME_MAX / 2;
/// Bytes of a block's rows at which another block is begun.
const BLOCK_BYTES: usize = 2 * FRAME_MAX;

/// Members of each chunk, with its schema.
type Chunks<'a> = BTreeMap<u32, (&'a Schema, Vec<Member<'a>>)>;

/// Slot, rows and, if known, points of a series.
type Member<'a> = (u8, &'a Rrd, Option<&'a Pending>);

/// Schema, chunk and slot reserved for a series.
type ReservedPlace = (Arc<Schema>, (u32, u8));

impl Inner {
    /// Begins a series of this path with the content of a file.
    pub(crate) fn import(&self, path: &[u8], rrd: Rrd, cause: Cause) -> Result<u32, FileError> {
        let beginning = Beginning::of(cause);
        let path = path.into();
        let whole = Whole {
            path,
            rrd,
            beginning,
            points: Pending::default(),
        };
        let imported = self.import_all(vec![whole])?.pop();
        imported.unwrap_or(Err(FileError::NoSuchFile))
    }

    /// Begins series without files. Their rows are synced before the journal has them, so at any moment there is either the
    /// previous series or the complete new one. After an error none of them begins.
    pub(crate) fn import_all(
        &self,
        new: Vec<Whole>,
    ) -> Result<Vec<Result<u32, FileError>>, FileError> {
        let places = self.reserve_places(&new)?;
        let mut chunks: Chunks = BTreeMap::new();
        for (whole, (schema, (chunk, slot))) in new.iter().zip(&places) {
            let (_, rows) = chunks.entry(*chunk).or_insert((schema, Vec::new()));
            rows.push((*slot, &whole.rrd, Some(&whole.points)));
        }
        // Prevents that readers see a series without its rows.
        let held: Vec<Held<'_>> = chunks.keys().map(|&chunk| self.hold(chunk)).collect();
        let mut all = chunks.iter();
        let done = self.sync_to(u64::MAX).and_then(|()| {
            all.try_for_each(|(&chunk, (schema, rows))| self.append_rows(chunk, schema, rows))
        });
        if let Err(error) = done.and_then(|()| self.segments.sync()) {
            let mut state = self.lock();
            for (_, (chunk, slot)) in places {
                state.chunks.unplace(chunk, slot);
            }
            return Err(FileError::Io(error));
        }
        let begin = |(whole, (_, place)): (Whole, (_, (u32, u8)))| {
            let beginning = Beginning {
                place: Some(place),
                ..whole.beginning
            };
            let (header, seasons) = (&whole.rrd.header, seasons_of(&whole.rrd));
            let begun = self.adopt_as(&whole.path, header, seasons, beginning);
            if begun.is_err() {
                self.lock().chunks.unplace(place.0, place.1);
            }
            begun
        };
        let begun = new.into_iter().zip(places).map(begin).collect();
        drop(held);
        Ok(begun)
    }

    /// Reserves places for their rows in the journal.
    fn reserve_places(&self, new: &[Whole]) -> Result<Vec<ReservedPlace>, FileError> {
        let mut state = self.lock();
        let damaged = || FileError::Rrd("has a damaged header".into());
        let schema = |whole: &Whole| {
            state
                .chunks
                .schema(&schema::front(&whole.rrd.header))
                .ok_or_else(damaged)
        };
        let schemas: Result<Vec<Arc<Schema>>, FileError> = new.iter().map(schema).collect();
        let schemas = schemas?;
        state.prepare(&*self.clock).map_err(FileError::Journal)?;
        let now_ns = self.clock.mono_ns();
        let mut places = Vec::new();
        for schema in schemas {
            let place = state.put_place(&schema, now_ns);
            places.push((schema, place));
        }
        if let Err(error) = state.journal.commit() {
            for (_, (chunk, slot)) in places {
                state.chunks.unplace(chunk, slot);
            }
            return Err(FileError::Journal(error));
        }
        Ok(places)
    }

    /// Appends blocks with only the rows of series of a chunk, given in
    /// the order of their slots. The blocks are on the disk after a sync.
    fn append_rows(&self, chunk: u32, schema: &Schema, new: &[Member<'_>]) -> io::Result<()> {
        let mut blocks = BlockBuilder::begin(&self.segments, chunk, schema)?;
        for &(slot, rrd, points) in new {
            blocks.stripe(slot / STRIPE as u8)?;
            if let Some(points) = points {
                blocks.points(slot, points);
            }
            blocks.stamp = blocks.stamp.max(rrd.header.last_up.max(0) as u64);
            for archive in 0..schema.archives.len() {
                let rows = rows_of(schema, archive, rrd);
                let newest = schema.newest(archive, rrd.header.last_up);
                for (newest, piece) in pieces(&rows, newest, schema.width) {
                    blocks.push((slot, archive), newest, &piece)?;
                }
            }
        }
        blocks.end_block()
    }
}

/// Builds blocks of rows, with frames within the limit.
struct BlockBuilder<'a> {
    segments: &'a SegmentSet,
    schema: &'a Schema,
    builder: Builder,
    chunk: u32,
    /// The current stripe, its columns, and the bytes of each.
    stripe: u8,
    columns: Vec<Column>,
    column_bytes: Vec<usize>,
    /// Points of the stripe.
    entries: PointsWriter,
    points: Vec<u8>,
    /// Bytes of the previous stripes.
    block_bytes: usize,
    stamp: u64,
}

impl<'a> BlockBuilder<'a> {
    fn begin(
        segments: &'a SegmentSet,
        chunk: u32,
        schema: &'a Schema,
    ) -> io::Result<BlockBuilder<'a>> {
        let archives = schema.archives.len();
        let mut builder = Builder::new(archives)?;
        builder.begin(chunk, segments.position(chunk), archives);
        let mut columns = Vec::new();
        columns.resize_with(archives, Column::default);
        Ok(BlockBuilder {
            segments,
            schema,
            builder,
            chunk,
            stripe: 0,
            columns,
            column_bytes: vec![0; archives],
            entries: PointsWriter::default(),
            points: Vec::new(),
            block_bytes: 0,
            stamp: 0,
        })
    }

    /// Begins the rows of series of this stripe.
    fn stripe(&mut self, stripe: u8) -> io::Result<()> {
        if stripe != self.stripe {
            self.end_part()?;
            self.stripe = stripe;
        }
        Ok(())
    }

    fn push(
        &mut self,
        (slot, archive): (u8, usize),
        newest: u64,
        rows: &NewRows,
    ) -> io::Result<()> {
        let bytes = 8 * rows.cells.len() + 10 * (rows.parts.len() + 3);
        if self.column_bytes[archive] + bytes > COLUMN_BYTES {
            self.end_block()?;
        }
        self.columns[archive].push(member(slot), newest, rows);
        self.column_bytes[archive] += bytes;
        Ok(())
    }

    /// Adds the points of a series, unless they are too many for a frame, as if they had expired.
    fn points(&mut self, slot: u8, points: &Pending) {
        let before = self.points.len();
        self.entries.put(&mut self.points, member(slot), points);
        if self.points.len() > COLUMN_BYTES {
            self.points.truncate(before);
        }
    }

    fn end_part(&mut self) -> io::Result<()> {
        self.builder.part(self.stripe);
        if !self.points.is_empty() {
            self.builder.points(&self.points)?;
            self.points.clear();
        }
        for (archive, column) in self.columns.iter_mut().enumerate() {
            self.builder.rows(archive, column, column.newest)?;
            column.clear();
        }
        self.builder.drop_empty_part();
        self.builder.stamp = self.stamp;
        self.block_bytes += self.column_bytes.iter().sum::<usize>();
        self.column_bytes.fill(0);
        match self.block_bytes > BLOCK_BYTES {
            true => self.append(),
            false => Ok(()),
        }
    }

    fn end_block(&mut self) -> io::Result<()> {
        self.end_part()?;
        self.append()
    }

    fn append(&mut self) -> io::Result<()> {
        if !self.builder.is_empty() {
            self.segments.append(&mut self.builder)?;
        }
        let position = self.segments.position(self.chunk);
        let archives = self.schema.archives.len();
        self.builder.begin(self.chunk, position, archives);
        self.block_bytes = 0;
        Ok(())
    }
}

/// The member number of a slot in its stripe.
fn member(slot: u8) -> u8 {
    slot % STRIPE as u8
}

/// Splits rows into pieces that fit into a frame; each has the number of its newest row.
fn pieces(rows: &NewRows, newest: u64, width: usize) -> Vec<(u64, NewRows)> {
    let most = (PIECE_BYTES / (8 * width.max(1))).max(1) as u64;
    let mut pieces = Vec::new();
    let mut number = (newest + 1).saturating_sub(rows.len());
    let (mut piece, mut stored, mut cells) = (NewRows::default(), 0, &rows.cells[..]);
    for &part in &rows.parts {
        let mut left = part;
        while left.rows() > 0 {
            if stored == most || piece.parts.len() == PARTS_MAX {
                pieces.push((number.saturating_sub(1), std::mem::take(&mut piece)));
                stored = 0;
            }
            let (now, rest) = match left {
                Part::Rows(count) => {
                    let now = count.min(most - stored);
                    (Part::Rows(now), Part::Rows(count - now))
                }
                Part::Run(_) => (left, Part::Rows(0)),
            };
            let (front, behind) = cells.split_at(now.stored() as usize * width);
            piece.parts.push(now);
            piece.cells.extend_from_slice(front);
            (cells, left) = (behind, rest);
            stored += now.stored();
            number += now.rows();
        }
    }
    pieces.push((newest, piece));
    pieces
}

/// The rows of an archive in the order of time; empty if none is known.
fn rows_of(schema: &Schema, archive: usize, rrd: &Rrd) -> NewRows {
    let mut rows = NewRows::default();
    let about = &schema.archives[archive];
    if about.seasonal {
        return rows;
    }
    let newest = schema.newest(archive, rrd.header.last_up);
    let current = rrd.header.cur_row[archive];
    // Rows from before 1970 do not exist.
    let count = about.row_cnt.min(newest + 1);
    let mut run: Option<(&[f64], u64)> = None;
    for back in (0..count).rev() {
        let row = (current + about.row_cnt - back % about.row_cnt) % about.row_cnt;
        let first = (about.base + row * schema.width as u64) as usize;
        let cells = &rrd.cells[first..first + schema.width];
        let same = |other: &[f64]| {
            other
                .iter()
                .zip(cells)
                .all(|(a, b)| a.to_bits() == b.to_bits())
        };
        run = match run {
            Some((other, count)) if same(other) => Some((other, count + 1)),
            before => {
                if let Some((cells, count)) = before {
                    push(&mut rows, cells, count);
                }
                Some((cells, 1))
            }
        };
    }
    if let Some((cells, count)) = run {
        push(&mut rows, cells, count);
    }
    rows
}

/// Adds equal rows. A short run is stored as rows, which need no more space. Unknown rows at the start are left out.
fn push(rows: &mut NewRows, cells: &[f64], count: u64) {
    let is_unknown = |cell: &f64| cell.to_bits() == UNKNOWN.to_bits();
    match count {
        _ if rows.parts.is_empty() && cells.iter().all(is_unknown) => {}
        0..4 => (0..count).for_each(|_| rows.push(cells)),
        _ => rows.push_run(cells, count),
    }
}
