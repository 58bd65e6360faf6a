//! What others did to a file since we left it: nothing, what `rrdtool tune` does, or anything else.
//!
//! The base of the comparison is the header as we left it: its definitions are the series', and of the rest two checksums
//! are kept, one over what only updates change, one over what tune changes, too.

use crate::consolidation::schema::{Schema, SeriesState};
use crate::wal::live::Live;
use kymo_rrd::cf::Cf;
use kymo_rrd::tune::Tune;
use kymo_rrd::{Error, Header, Rows, UNKNOWN};

/// What tune writes in the place of a reading whose source has another type now.
pub(crate) const NO_READING: &[u8] = b"UNKN\0";
/// Of a FAILURES archive: words of its definition that say how long its window is.
const WINDOW: [usize; 2] = [4, 5];

/// What was changed in a file whose rows are what we left.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Edits {
    /// Sources whose last reading counts no longer.
    readings: Vec<usize>,
    /// Sources of which Holt-Winters archives are to forget what they learnt.
    resets: Vec<usize>,
    /// The window of the FAILURES archive.
    window: bool,
    /// Definitions.
    definitions: bool,
}

/// How a file is, beside how we left it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Difference {
    /// As it was.
    Same,
    /// Tuned.
    Tuned(Edits),
    /// Updated, restored, replaced.
    Other,
}

/// Compares a file with how we left it. `torn`: a write of ours was cut short, so that only its definitions tell anything:
/// the rest may be newer than what we left, or older.
pub(crate) fn look(
    schema: &Schema,
    left: Option<Live>,
    theirs: &SeriesState,
    torn: bool,
) -> Difference {
    let header = &theirs.header;
    let Some(left) = left.filter(|_| is_alike(schema.definitions(), header)) else {
        return Difference::Other;
    };
    let live = Live::of(header, &theirs.seasons);
    if !torn && live.updated != left.updated {
        return Difference::Other;
    }
    let (ours, learnt) = (schema.definitions(), !torn && live.tuned != left.tuned);
    let mut edits = Edits {
        definitions: Schema::of(header).is_none_or(|theirs| theirs.front != schema.front),
        ..Edits::default()
    };
    for (at, (ours, their)) in ours.ds.iter().zip(&header.ds).enumerate() {
        let is_gone = header.pdp_prep[at].last_ds.starts_with(NO_READING);
        if ours.dst != their.dst || learnt && is_gone {
            edits.readings.push(at);
        }
        if learnt && has_learnt_nothing(theirs, at) {
            edits.resets.push(at);
        }
    }
    let is_window = |at: usize| {
        WINDOW
            .iter()
            .any(|&word| ours.rra[at].par[word] != header.rra[at].par[word])
    };
    let mut failures =
        (0..ours.rra.len()).filter(|&at| Cf::of(ours.rra[at].cf()) == Some(Cf::Failures));
    edits.window = failures.any(is_window);
    match edits == Edits::default() {
        true => Difference::Same,
        false => Difference::Tuned(edits),
    }
}

/// Whether the changing parts and the rows of both have the same places and meanings.
fn is_alike(ours: &Header, theirs: &Header) -> bool {
    let has_usec = |header: &Header| header.version >= 3;
    let rows = |header: &Header| -> Vec<_> {
        let each = header.rra.iter();
        each.map(|rra| (rra.cf_nam, rra.row_cnt, rra.pdp_cnt))
            .collect()
    };
    has_usec(ours) == has_usec(theirs)
        && ours.ds.len() == theirs.ds.len()
        && ours.pdp_step == theirs.pdp_step
        && rows(ours) == rows(theirs)
}

/// Whether the Holt-Winters archives know nothing of a source.
fn has_learnt_nothing(series: &SeriesState, ds: usize) -> bool {
    let (header, unknown) = (&series.header, UNKNOWN.to_bits());
    let width = header.ds.len();
    let (mut any, mut season) = (false, 0);
    for (at, rra) in header.rra.iter().enumerate() {
        let words = &header.cdp_prep[at * width + ds].scratch;
        let nothing = match Cf::of(rra.cf()) {
            Some(Cf::HwPredict | Cf::MhwPredict) => {
                any = true;
                words[2..6] == [unknown; 4] && words[6..8] == [1; 2]
            }
            Some(Cf::Seasonal | Cf::DevSeasonal) => {
                let mut cells = series.seasons[season].iter().skip(ds).step_by(width);
                season += 1;
                words[2..4] == [unknown; 2] && cells.all(|cell| cell.is_nan())
            }
            _ => true,
        };
        if !nothing {
            return false;
        }
    }
    any
}

impl Edits {
    /// Makes the changes in a series that is further than the file they were made in.
    pub(crate) fn apply(&self, series: &mut SeriesState, theirs: &Header) -> Result<(), Error> {
        let SeriesState { header, seasons } = series;
        header.version = theirs.version;
        header.head_pad = theirs.head_pad;
        header.head_par = theirs.head_par;
        header.ds.clone_from(&theirs.ds);
        header.rra.clone_from(&theirs.rra);
        for &ds in &self.readings {
            header.pdp_prep[ds].last_ds[..NO_READING.len()].copy_from_slice(NO_READING);
        }
        let names: Vec<Vec<u8>> = self
            .resets
            .iter()
            .map(|&ds| header.ds[ds].name().to_vec())
            .collect();
        let failures = header
            .rra
            .iter()
            .find(|rra| Cf::of(rra.cf()) == Some(Cf::Failures));
        let window = failures
            .filter(|_| self.window)
            .map(|rra| rra.par[WINDOW[0]].to_string());
        let mut options: Vec<(u8, &[u8])> = names.iter().map(|name| (b'b', &name[..])).collect();
        options.extend(window.iter().map(|window| (b'w', window.as_bytes())));
        let tune = Tune {
            file_name: b"",
            daemon: None,
            options,
            bad: None,
            operations: Vec::new(),
        };
        let mut rows = Seasons::of(header, seasons);
        tune.apply(header, &mut rows)
    }
}

/// The archives that are state, written where they would lie in a file.
struct Seasons<'a> {
    /// First cell of each.
    first: Vec<u64>,
    cells: &'a mut [Vec<f64>],
}

impl<'a> Seasons<'a> {
    fn of(header: &Header, cells: &'a mut [Vec<f64>]) -> Seasons<'a> {
        let archives = header.rra.iter().enumerate();
        let seasonal = archives.filter(|(_, rra)| rra.is_seasonal());
        Seasons {
            first: seasonal.map(|(at, _)| header.cell(at, 0)).collect(),
            cells,
        }
    }
}

impl Rows for Seasons<'_> {
    fn read(&mut self, _first: u64, _cells: &mut [f64]) -> Result<(), Error> {
        Err(Error::new("a row is only written"))
    }

    fn write(&mut self, first: u64, cells: &[f64]) -> Result<(), Error> {
        for (begin, season) in self.first.iter().zip(self.cells.iter_mut()) {
            let from = first.checked_sub(*begin).map(|from| from as usize);
            let place = from.and_then(|from| season.get_mut(from..from + cells.len()));
            if let Some(place) = place {
                place.copy_from_slice(cells);
                return Ok(());
            }
        }
        Err(Error::new("a row lies outside the file"))
    }
}
