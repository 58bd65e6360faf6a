//! Finds the changes that other programs made to a file since the store left it: none, those of `rrdtool tune`, or others.
//!
//! The comparison needs the header as it was left. The definitions are those of the series; of the rest the store keeps
//! two checksums, one of what only updates change, one of what tune changes too.

use crate::consolidation::schema::{Schema, SeriesState};
use crate::wal::live::Live;
use kymo_rrd::cf::Cf;
use kymo_rrd::tune::Tune;
use kymo_rrd::{Error, Header, Rows, UNKNOWN};

/// Text that tune writes over the last reading of a source whose type it changes.
pub(crate) const NO_READING: &[u8] = b"UNKN\0";
/// Words of a FAILURES archive's definition that have the length of its window.
const WINDOW: [usize; 2] = [4, 5];

/// Changes made to a file whose rows are as the store left them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Edits {
    /// Sources whose last reading was reset.
    readings: Vec<usize>,
    /// Sources for which Holt-Winters archives were reset.
    resets: Vec<usize>,
    /// True if the window of the FAILURES archive was changed.
    window: bool,
    /// True if definitions were changed.
    definitions: bool,
}

/// Difference between a file and the state in which the store left it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Difference {
    /// No difference.
    Same,
    /// Changes made by tune.
    Tuned(Edits),
    /// Other changes: the file was updated, restored or replaced.
    Other,
}

/// Compares a file with the state in which the store left it. `torn` means that a write of the store was cut short, so
/// that only the definitions can be compared: the rest may be newer or older.
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

/// Returns true if the changing parts and the rows of both have the same layout.
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

/// Returns true if the Holt-Winters archives have learned nothing about a source.
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
    /// Applies the changes to a series, which may have newer values than the file.
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

/// The cells of seasonal archives, addressed as in a file.
struct Seasons<'a> {
    /// First cell of each archive.
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
