//! The definitions that the series of a chunk share, and the state of a series as words.
//!
//! A header is a front, which is the same for all series of a schema, and a live part, which consists of 64-bit words. The cells
//! of archives that updates change in place (SEASONAL, DEVSEASONAL) are also state and follow as words. So is the row at which
//! these are smoothed, because it depends on the file's name and would otherwise be the only difference between files.

use crate::consolidation::archive::Archive;
use crate::consolidation::points_schema::{self, PointsSchema};
use crate::layout::POINTS_KEPT_S;
use crate::settings::PointsRetention;
use kymo_rrd::Header;
use kymo_rrd::header::RraDef;
use kymo_rrd::update::begin_hole;

/// A word of `stat_head_t` that rrdtool does not use; it has the retention of points in seconds, with a mark in its upper half.
const POINTS_AT: usize = 9;
const POINTS_MARK: u64 = 0x6b79_6d6f << 32;
/// Longest retention that is accepted: ten years.
const POINTS_KEPT_MAX_S: u64 = 10 * 366 * 86_400;

/// Length of `stat_head_t` and of a definition, in bytes.
const HEAD: usize = 128;
const DEFINITION: usize = 120;
/// Parameter of seasonal archives with the row at which they are smoothed, and its offset in a definition.
const SMOOTH_AT: usize = 4;
const SMOOTH_OFFSET: usize = 40 + 8 * SMOOTH_AT;

/// The definition of the series of a chunk.
#[derive(Debug, PartialEq)]
pub(crate) struct Schema {
    /// The header's bytes before `live_head_t`, with 0 for the rows at which seasonal archives are smoothed.
    pub(crate) front: Vec<u8>,
    /// The header with zeros in its live part.
    pub(crate) template: Header,
    pub(crate) archives: Vec<Archive>,
    /// Number of cells of a row.
    pub(crate) width: usize,
    /// Number of words of a series' state.
    pub(crate) words: usize,
    /// Retention of values as they were sent, in seconds.
    pub(crate) points_kept_s: u64,
    /// Definition of series of points; their archives are tiers, and the template only has their step.
    pub(crate) points: Option<PointsSchema>,
    live_words: usize,
}

/// A series between two updates: its header, and the cells of its seasonal archives.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SeriesState {
    pub(crate) header: Header,
    /// The cells of each seasonal archive, in order.
    pub(crate) seasons: Vec<Vec<f64>>,
}

impl Schema {
    /// The schema of a header.
    pub(crate) fn of(header: &Header) -> Option<Schema> {
        Schema::parse(&front(header))
    }

    /// Parses a front; `None` if it is invalid.
    pub(crate) fn parse(front: &[u8]) -> Option<Schema> {
        match front.starts_with(points_schema::MAGIC) {
            true => Schema::of_points(PointsSchema::parse(front)?),
            false => Schema::of_archives(front),
        }
    }

    /// The schema of series of points.
    pub(crate) fn of_points(points: PointsSchema) -> Option<Schema> {
        Some(Schema {
            front: points.front(),
            template: points.template()?,
            archives: points.archives(),
            width: points_schema::ROW_CELLS,
            words: points_schema::WORDS,
            live_words: points_schema::WORDS,
            points_kept_s: points.kept_s.into(),
            points: Some(points),
        })
    }

    /// Returns the schema with a store's retention for series of points, in place of that in their definitions.
    pub(crate) fn kept(self, retention: PointsRetention) -> Schema {
        let Some(points) = self.points else {
            return self;
        };
        let points = points.kept(retention);
        Schema {
            archives: points.archives(),
            points_kept_s: points.kept_s.into(),
            points: Some(points),
            ..self
        }
    }

    /// Returns true for series of points with more than one tier.
    pub(crate) fn has_tiers(&self) -> bool {
        self.points.is_some() && self.archives.len() > 1
    }

    fn of_archives(front: &[u8]) -> Option<Schema> {
        let count = |at: usize| {
            let bytes = front.get(at..at + 8)?;
            let count = u64::from_le_bytes(std::array::from_fn(|i| bytes[i]));
            usize::try_from(count).ok()
        };
        let (ds, rra) = (count(24)?, count(32)?);
        let definitions = ds.checked_add(rra)?.checked_mul(DEFINITION)?;
        if front.len() != HEAD.checked_add(definitions)? {
            return None;
        }
        let live = ds.checked_mul(rra)?.checked_mul(80)? + 16 + 112 * ds + 8 * rra;
        if live > 1 << 28 {
            return None;
        }
        let mut bytes = front.to_vec();
        bytes.resize(front.len() + live, 0);
        let template = Header::parse(&bytes).ok()?;
        let mut archives = Vec::new();
        let mut words = (template.size_bytes() - template.live_offset()) as usize / 8;
        let live_words = words;
        for (at, def) in template.rra.iter().enumerate() {
            let seasonal = def.is_seasonal();
            if seasonal {
                let cells = (def.row_cnt as usize).checked_mul(ds)?;
                words = words.checked_add(cells)?.checked_add(1)?;
            }
            archives.push(Archive {
                row_cnt: def.row_cnt,
                step: def.pdp_cnt * template.pdp_step,
                base: template.cell(at, 0),
                seasonal,
            });
        }
        // The states of a stripe must fit into one frame.
        if state_bytes(words) > crate::layout::STATE_MAX {
            return None;
        }
        Some(Schema {
            front: front.to_vec(),
            width: template.ds.len(),
            points_kept_s: points_kept_s(&template),
            template,
            archives,
            words,
            points: None,
            live_words,
        })
    }

    /// Appends a series' state.
    pub(crate) fn pack(&self, series: &SeriesState, out: &mut Vec<u64>) {
        let header = &series.header;
        out.push(header.last_up as u64);
        if header.version >= 3 {
            out.push(header.last_up_usec as u64);
        }
        for pdp in &header.pdp_prep {
            let mut text = [0; 32];
            text[..30].copy_from_slice(&pdp.last_ds);
            text[30..].copy_from_slice(&pdp.pad);
            out.extend(
                text.as_chunks()
                    .0
                    .iter()
                    .map(|word| u64::from_le_bytes(*word)),
            );
            out.extend_from_slice(&pdp.scratch);
        }
        for cdp in &header.cdp_prep {
            out.extend_from_slice(&cdp.scratch);
        }
        out.extend_from_slice(&header.cur_row);
        let seasonal = header.rra.iter().filter(|def| def.is_seasonal());
        for (def, season) in seasonal.zip(&series.seasons) {
            out.push(def.par[SMOOTH_AT]);
            out.extend(season.iter().map(|cell| cell.to_bits()));
        }
    }

    /// Decodes a state packed by [`Schema::pack`]; `None` if the words do not fit the schema.
    pub(crate) fn unpack(&self, words: &[u64]) -> Option<SeriesState> {
        let mut series = SeriesState {
            header: self.template.clone(),
            seasons: Vec::new(),
        };
        self.unpack_into(words, &mut series)?;
        Some(series)
    }

    /// Decodes a state into a series that may have been used for another one of this schema.
    pub(crate) fn unpack_into(&self, words: &[u64], series: &mut SeriesState) -> Option<()> {
        if words.len() != self.words {
            return None;
        }
        let header = &mut series.header;
        if self.points.is_some() {
            header.last_up = self.stamp(words);
            return Some(());
        }
        let (live, mut seasons) = words.split_at(self.live_words);
        let mut live = live.iter().copied();
        header.last_up = live.next()? as i64;
        header.last_up_usec = match header.version {
            3.. => live.next()? as i64,
            _ => 0,
        };
        for pdp in &mut header.pdp_prep {
            let mut text = [0; 32];
            for bytes in text.as_chunks_mut::<8>().0 {
                *bytes = live.next()?.to_le_bytes();
            }
            pdp.last_ds.copy_from_slice(&text[..30]);
            pdp.pad.copy_from_slice(&text[30..]);
            for word in &mut pdp.scratch {
                *word = live.next()?;
            }
        }
        for word in header.cdp_prep.iter_mut().flat_map(|cdp| &mut cdp.scratch) {
            *word = live.next()?;
        }
        for (row, archive) in header.cur_row.iter_mut().zip(&self.archives) {
            *row = live.next().filter(|&row| row < archive.row_cnt)?;
        }
        series.seasons.clear();
        let archives = self.archives.iter().zip(&mut header.rra);
        for (archive, def) in archives.filter(|(archive, _)| archive.seasonal) {
            let count = archive.row_cnt as usize * self.width;
            let (&smooth, behind) = seasons.split_first()?;
            let (cells, rest) = behind.split_at_checked(count)?;
            def.par[SMOOTH_AT] = smooth;
            series
                .seasons
                .push(cells.iter().map(|&bits| f64::from_bits(bits)).collect());
            seasons = rest;
        }
        Some(())
    }

    /// Begins a hole after this state, since later values are lost.
    pub(crate) fn begin_hole(&self, words: &mut Vec<u64>) {
        let Some(mut series) = self.unpack(words) else {
            return;
        };
        begin_hole(&mut series.header);
        words.clear();
        self.pack(&series, words);
    }

    /// Upper bound of the bytes of a stripe's states in a frame.
    pub(crate) fn state_bytes_max(&self) -> usize {
        state_bytes(self.words)
    }

    /// A header with these definitions, whose live part is zero.
    pub(crate) fn definitions(&self) -> &Header {
        &self.template
    }

    /// Length of a file's header, in bytes.
    pub(crate) fn header_bytes(&self) -> u64 {
        self.template.size_bytes()
    }

    /// Returns true if the memory of this series can be reused for one of this schema.
    pub(crate) fn fits(&self, series: &SeriesState) -> bool {
        let (ours, theirs) = (&self.template, &series.header);
        let same = |(ours, theirs): (&RraDef, &RraDef)| {
            let mut theirs = *theirs;
            if ours.is_seasonal() {
                theirs.par[SMOOTH_AT] = ours.par[SMOOTH_AT];
            }
            *ours == theirs
        };
        (ours.version, ours.pdp_step, &ours.ds) == (theirs.version, theirs.pdp_step, &theirs.ds)
            && (ours.head_pad, ours.head_par) == (theirs.head_pad, theirs.head_par)
            && ours.rra.len() == theirs.rra.len()
            && ours.rra.iter().zip(&theirs.rra).all(same)
    }

    /// The stamp of a state in seconds, without decoding all of it.
    pub(crate) fn stamp(&self, words: &[u64]) -> i64 {
        let stamp = words.first().map_or(0, |&word| word.cast_signed());
        match self.points {
            Some(_) => stamp.div_euclid(1000),
            None => stamp,
        }
    }

    /// The stamp of a state with its microseconds.
    pub(crate) fn stamp_of(&self, words: &[u64]) -> f64 {
        if self.points.is_some() {
            return points_schema::last(words).map_or(f64::NEG_INFINITY, |last| last.seconds());
        }
        let usec = match self.template.version {
            3.. => words.get(1).map_or(0, |&word| word.cast_signed()),
            _ => 0,
        };
        self.stamp(words) as f64 + usec as f64 / 1e6
    }

    /// The archive and the row that begins at a cell; `None` if the cell begins no row.
    pub(crate) fn place(&self, cell: u64) -> Option<(usize, u64)> {
        let archive = self
            .archives
            .partition_point(|archive| archive.base <= cell)
            .checked_sub(1)?;
        let (about, width) = (&self.archives[archive], self.width as u64);
        let offset = cell - about.base;
        (offset.is_multiple_of(width) && offset / width < about.row_cnt)
            .then(|| (archive, offset / width))
    }

    /// Index of an archive among the seasonal ones; `None` if it is not seasonal.
    pub(crate) fn season(&self, archive: usize) -> Option<usize> {
        let before = &self.archives[..archive];
        let count = before.iter().filter(|archive| archive.seasonal).count();
        self.archives[archive].seasonal.then_some(count)
    }

    /// Number of the newest row of an archive after the last update at `last_up`; rows are counted from 1970.
    pub(crate) fn newest(&self, archive: usize, last_up: i64) -> u64 {
        last_up.max(0) as u64 / self.archives[archive].step
    }
}

/// Stores the retention of values as they were sent in a header, in seconds.
pub fn keep_points(header: &mut Header, seconds: u32) {
    header.head_par[POINTS_AT] = POINTS_MARK | u64::from(seconds);
}

/// The retention stored by [`keep_points`], or the default.
fn points_kept_s(header: &Header) -> u64 {
    let said = header.head_par[POINTS_AT] ^ POINTS_MARK;
    match said {
        0..=POINTS_KEPT_MAX_S => said,
        _ => POINTS_KEPT_S,
    }
}

/// The front of a header; see [`Schema::front`].
pub(crate) fn front(header: &Header) -> Vec<u8> {
    let mut front = Vec::new();
    header.encode(&mut front);
    front.truncate(header.live_offset() as usize);
    for (at, def) in header.rra.iter().enumerate() {
        let smooth = HEAD + (header.ds.len() + at) * DEFINITION + SMOOTH_OFFSET;
        if def.is_seasonal() {
            front[smooth..smooth + 8].fill(0);
        }
    }
    front
}

fn state_bytes(words: usize) -> usize {
    let cells = words.saturating_mul(8 * crate::layout::STRIPE);
    cells.saturating_add(words / 8 + 64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::consolidation::samples;

    #[test]
    fn a_state_comes_back() {
        for rrd in samples::rrds() {
            let schema = Schema::of(&rrd.header).unwrap();
            assert_eq!(Schema::parse(&schema.front).as_ref(), Some(&schema));
            let series = samples::series(&schema, &rrd);
            let mut words = Vec::new();
            schema.pack(&series, &mut words);
            assert_eq!(words.len(), schema.words);
            let mut again = Vec::new();
            schema.pack(&schema.unpack(&words).unwrap(), &mut again);
            assert_eq!(again, words);
            assert_eq!(schema.stamp(&words), rrd.header.last_up);
            assert_eq!(schema.unpack(&words[1..]), None);
        }
    }
}
