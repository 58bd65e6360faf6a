//! Holt-Winters prediction with its seasons, deviations and failures. Such archives have one point in a row.
//!
//! Five kinds of archives refer to each other by index. The order of two archives in the file decides whether one
//! reads the current or the last coefficient of the other. This and its exceptions are copied from rrdtool.

mod smooth;

pub(crate) use smooth::smooth_all;

use crate::UNKNOWN;
use crate::cf::Cf;
use crate::error::Error;
use crate::header::{Header, RraDef, Univals};
use crate::kind::cf_of;
use crate::preparation::{PRIMARY, SECONDARY};
use crate::rows::Rows;

/// Words of `cdp_prep_t`. COEFFICIENT is the intercept of a prediction, or the coefficient or deviation of a season.
const COEFFICIENT: usize = 2;
const LAST_COEFFICIENT: usize = 3;
const SLOPE: usize = 4;
const LAST_SLOPE: usize = 5;
const NULLS: usize = 6;
const LAST_NULLS: usize = 7;
/// Word of the first source in a seasonal archive that counts the cycles of the burn-in.
const BURN_IN: usize = 6;
const BURN_IN_CYCLES: u64 = 3;
/// Words of `rra_def_t`.
const ALPHA: usize = 1;
const BETA: usize = 2;
const GAMMA: usize = 1;
const DEPENDENT: usize = 3;
const SMOOTH_INDEX: usize = 4;
const DELTA_POS: usize = 1;
const DELTA_NEG: usize = 2;
const WINDOW: usize = 4;
const THRESHOLD: usize = 5;
/// Longest history of violations, bytes: the size of the words that hold it.
const HISTORY_MAX: usize = 80;

/// Combination of season and base line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Model {
    Additive,
    Multiplicative,
}

/// A cell, and the word of its observation, which the result replaces.
#[derive(Clone, Copy)]
struct Cell {
    archive: usize,
    source: usize,
    slot: usize,
}

/// Rows of a seasonal archive that were read ahead.
#[derive(Default)]
pub(crate) struct Seasons {
    next: Vec<f64>,
    last: Vec<f64>,
    /// True after the end of a season: smooth when all arguments are done.
    pub(crate) smooth: bool,
}

/// Position of a seasonal archive in the file and in its cycle.
#[derive(Clone, Copy)]
pub(crate) struct SeasonPosition {
    /// First cell of the archive.
    pub(crate) base: u64,
    /// Number of cells of a row.
    pub(crate) width: usize,
    pub(crate) row_cnt: u64,
    pub(crate) current: u64,
}

impl Seasons {
    /// Removes the state of another file.
    pub(crate) fn clear(&mut self) {
        self.next.clear();
        self.last.clear();
        self.smooth = false;
    }

    /// Reads the rows behind those that are skipped when several points are closed at once. Called before a seasonal
    /// archive is consolidated.
    pub(crate) fn pass(
        &mut self,
        rows: &mut impl Rows,
        place: SeasonPosition,
        elapsed: u64,
    ) -> Result<(), Error> {
        look_up(rows, place, elapsed, &mut self.last)?;
        look_up(rows, place, elapsed.wrapping_add(1), &mut self.next)
    }

    /// Notes whether a season has ended. `words` are those of the first source, which count the burn-in.
    pub(crate) fn note_end(
        &mut self,
        words: &mut Univals,
        rra: &RraDef,
        place: SeasonPosition,
        elapsed: u64,
    ) {
        self.smooth |= is_season_over(&mut words[BURN_IN], rra.par[SMOOTH_INDEX], place, elapsed);
    }
}

/// Reads the row `ahead` rows after the current one.
fn look_up(
    rows: &mut impl Rows,
    place: SeasonPosition,
    ahead: u64,
    out: &mut Vec<f64>,
) -> Result<(), Error> {
    let row = place.current.wrapping_add(ahead) % place.row_cnt;
    out.resize(place.width, UNKNOWN);
    rows.read(place.base + row * place.width as u64, out)
}

fn is_season_over(cycles: &mut u64, smooth_row: u64, place: SeasonPosition, elapsed: u64) -> bool {
    let reached = place.current.wrapping_add(elapsed);
    if *cycles <= BURN_IN_CYCLES {
        let over = reached >= place.row_cnt;
        *cycles += u64::from(over);
        return over;
    }
    if smooth_row > place.current {
        return reached >= smooth_row;
    }
    reached >= place.row_cnt && reached >= place.row_cnt.wrapping_add(smooth_row)
}

/// Resets an archive after more than two points at once: its predictions and their inputs become unknown.
pub(crate) fn reset(
    words: &mut Univals,
    cf: Cf,
    rra: &RraDef,
    elapsed: u64,
    seasons: &Seasons,
    source: usize,
) {
    let season = |row: &[f64]| row.get(source).copied().unwrap_or(UNKNOWN).to_bits();
    match cf {
        Cf::Seasonal | Cf::DevSeasonal => {
            words[LAST_COEFFICIENT] = season(&seasons.last);
            words[COEFFICIENT] = season(&seasons.next);
        }
        Cf::Failures => {
            words[PRIMARY] = 0f64.to_bits();
            words[SECONDARY] = 0f64.to_bits();
            let len = (rra.par[WINDOW] as u16 as usize).min(HISTORY_MAX);
            let mut history = bytes_of(words);
            history[..len].fill(0);
            *words = words_of(&history);
        }
        _ => {
            if cf != Cf::DevPredict {
                words[NULLS] = words[NULLS].wrapping_add(elapsed);
                words[LAST_NULLS] = words[LAST_NULLS].wrapping_add(elapsed).wrapping_sub(1);
            }
            words[PRIMARY] = UNKNOWN.to_bits();
            words[SECONDARY] = UNKNOWN.to_bits();
        }
    }
}

/// Learns from one or two points, one after the other.
pub(crate) fn observe(
    header: &mut Header,
    rows: &mut impl Rows,
    cfs: &[Cf],
    points: &[f64],
    seasons: &mut Seasons,
    elapsed: u64,
) -> Result<(), Error> {
    let slots: &[usize] = match elapsed {
        1 => &[PRIMARY],
        2 => &[PRIMARY, SECONDARY],
        _ => &[],
    };
    for &slot in slots {
        for (archive, &cf) in cfs.iter().enumerate() {
            if cf.is_plain() || header.rra[archive].pdp_cnt != 1 {
                continue;
            }
            if cf.is_seasonal() {
                let ahead = elapsed + if slot == PRIMARY { 1 } else { 2 };
                look_up(rows, place(header, archive), ahead, &mut seasons.next)?;
            }
            for (source, &point) in points.iter().enumerate() {
                let cell = Cell {
                    archive,
                    source,
                    slot,
                };
                set(header, cell, slot, point);
                // As in rrdtool, an archive with a wrong dependency keeps the point.
                let _ = observe_cell(header, cell, cf, &seasons.next);
            }
        }
    }
    Ok(())
}

fn place(header: &Header, archive: usize) -> SeasonPosition {
    SeasonPosition {
        base: header.cell(archive, 0),
        width: header.ds.len(),
        row_cnt: header.rra[archive].row_cnt,
        current: header.cur_row[archive],
    }
}

/// Learns in one cell; `None`: the archive depends on one that does not exist or is not of Holt-Winters.
fn observe_cell(header: &mut Header, cell: Cell, cf: Cf, next: &[f64]) -> Option<()> {
    let next = next.get(cell.source).copied().unwrap_or(UNKNOWN);
    match cf {
        Cf::HwPredict => predict(header, cell, Model::Additive),
        Cf::MhwPredict => predict(header, cell, Model::Multiplicative),
        Cf::DevPredict => predict_deviation(header, cell),
        Cf::Seasonal => {
            let model = model(header, dependent(header, cell.archive)?)?;
            learn_season(header, cell, model, next)
        }
        Cf::DevSeasonal => {
            let model = model(header, dependent(header, cell.archive)?)?;
            learn_deviation(header, cell, model, next)
        }
        Cf::Failures => {
            let deviations = dependent(header, cell.archive)?;
            let model = model(header, dependent(header, deviations)?)?;
            judge(header, cell, model)
        }
        Cf::Average | Cf::Min | Cf::Max | Cf::Last => None,
    }
}

fn predict(header: &mut Header, cell: Cell, model: Model) -> Option<()> {
    let leans_on = dependent(header, cell.archive)?;
    let mut words = *words(header, cell);
    words[LAST_COEFFICIENT] = words[COEFFICIENT];
    words[LAST_SLOPE] = words[SLOPE];
    words[LAST_NULLS] = words[NULLS];
    let season = current(header, cell, leans_on, cell.archive);
    let observed = f64::from_bits(words[cell.slot]);
    let line = Line::current(&words);
    let mut prediction = UNKNOWN;
    if line.is_unknown() || season.is_nan() {
        if line.intercept.is_nan() && !observed.is_nan() {
            words[COEFFICIENT] = observed.to_bits();
            words[LAST_COEFFICIENT] = observed.to_bits();
            words[SLOPE] = 0f64.to_bits();
            words[LAST_SLOPE] = 0f64.to_bits();
            words[NULLS] = 1;
            words[LAST_NULLS] = 1;
        }
    } else {
        prediction = line.predict(model, season);
        if observed.is_nan() {
            words[NULLS] = words[NULLS].wrapping_add(1);
        } else {
            let par = header.rra[cell.archive].par;
            let intercept = line.learn(model, f64::from_bits(par[ALPHA]), observed, season);
            words[COEFFICIENT] = intercept.to_bits();
            let beta = f64::from_bits(par[BETA]);
            let slope = beta * (intercept - line.intercept) + (1.0 - beta) * line.slope;
            words[SLOPE] = slope.to_bits();
            words[NULLS] = 1;
        }
    }
    words[cell.slot] = prediction.to_bits();
    *words_mut(header, cell) = words;
    Some(())
}

fn predict_deviation(header: &mut Header, cell: Cell) -> Option<()> {
    let deviations = dependent(header, cell.archive)?;
    let deviation = current(header, cell, deviations, cell.archive);
    set(header, cell, cell.slot, deviation);
    Some(())
}

fn learn_season(header: &mut Header, cell: Cell, model: Model, next: f64) -> Option<()> {
    let predictions = dependent(header, cell.archive)?;
    let hw = *words(
        header,
        Cell {
            archive: predictions,
            ..cell
        },
    );
    let season = get(header, cell, COEFFICIENT);
    set(header, cell, LAST_COEFFICIENT, season);
    set(header, cell, COEFFICIENT, next);
    let observed = get(header, cell, cell.slot);
    let gamma = f64::from_bits(header.rra[cell.archive].par[GAMMA]);
    let learned = if observed.is_nan() {
        season
    } else if predictions < cell.archive {
        let last = Line::last(&hw);
        if last.is_unknown() {
            UNKNOWN
        } else if season.is_nan() {
            model.first_season(observed, last.intercept)
        } else {
            model.season(gamma, observed, Line::current(&hw).intercept, season)
        }
    } else {
        // The prediction's archive comes later in the file, so its new intercept is computed here.
        let line = Line::current(&hw);
        if line.is_unknown() {
            model.identity()
        } else if season.is_nan() {
            model.first_season(observed, line.intercept)
        } else {
            let alpha = f64::from_bits(header.rra[predictions].par[ALPHA]);
            let intercept = line.learn(model, alpha, observed, season);
            model.season(gamma, observed, intercept, season)
        }
    };
    set(header, cell, cell.slot, learned);
    Some(())
}

fn learn_deviation(header: &mut Header, cell: Cell, model: Model, next: f64) -> Option<()> {
    let predictions = dependent(header, cell.archive)?;
    let hw = *words(
        header,
        Cell {
            archive: predictions,
            ..cell
        },
    );
    let seasons = dependent(header, predictions)?;
    let last = get(header, cell, COEFFICIENT);
    set(header, cell, LAST_COEFFICIENT, last);
    set(header, cell, COEFFICIENT, next);
    let season = current(header, cell, seasons, cell.archive);
    let line = if predictions < cell.archive {
        Line::last(&hw)
    } else {
        Line::current(&hw)
    };
    let observed = get(header, cell, cell.slot);
    let learned = if line.is_unknown() || season.is_nan() {
        UNKNOWN
    } else if observed.is_nan() {
        last
    } else {
        let off = (line.predict(model, season) - observed).abs();
        let gamma = f64::from_bits(header.rra[cell.archive].par[GAMMA]);
        if last.is_nan() {
            off
        } else {
            gamma * off + (1.0 - gamma) * last
        }
    };
    set(header, cell, cell.slot, learned);
    Some(())
}

/// Decides on a failure: the violations within the window reach the threshold.
fn judge(header: &mut Header, cell: Cell, model: Model) -> Option<()> {
    let deviations = dependent(header, cell.archive)?;
    let predictions = dependent(header, deviations)?;
    let seasons = dependent(header, predictions)?;
    // As in rrdtool, this compares with the index of the seasons, not of the deviations.
    let pick = |header: &Header, archive| {
        let is_before = cell.archive < seasons;
        let word = if is_before {
            COEFFICIENT
        } else {
            LAST_COEFFICIENT
        };
        get(header, Cell { archive, ..cell }, word)
    };
    let deviation = pick(header, deviations);
    let mut violates = false;
    if !deviation.is_nan() {
        let season = pick(header, seasons);
        let hw = words(
            header,
            Cell {
                archive: predictions,
                ..cell
            },
        );
        let line = if cell.archive < predictions {
            Line::current(hw)
        } else {
            Line::last(hw)
        };
        let prediction = line.predict(model, season);
        let observed = get(header, cell, cell.slot);
        let [up, down] =
            [DELTA_POS, DELTA_NEG].map(|i| f64::from_bits(header.rra[cell.archive].par[i]));
        violates = observed.is_nan()
            || observed > prediction + up * deviation
            || observed < prediction - down * deviation;
    }
    let par = header.rra[cell.archive].par;
    let count = remember(words_mut(header, cell), par[WINDOW], violates);
    let failed = u64::from(count) >= par[THRESHOLD];
    set(header, cell, cell.slot, f64::from(u8::from(failed)));
    Some(())
}

/// Puts a violation in front of the history, and counts the violations in it.
fn remember(words: &mut Univals, window: u64, violates: bool) -> u16 {
    let len = (window as u16 as usize).min(HISTORY_MAX);
    let mut history = bytes_of(words);
    let mut count = u16::from(violates);
    for i in (1..len).rev() {
        history[i] = history[i - 1];
        count = count.wrapping_add(i16::from(history[i] as i8) as u16);
    }
    history[0] = u8::from(violates);
    *words = words_of(&history);
    count
}

fn bytes_of(words: &Univals) -> [u8; HISTORY_MAX] {
    let mut bytes = [0; HISTORY_MAX];
    for (bytes, word) in bytes.chunks_exact_mut(8).zip(words) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

fn words_of(bytes: &[u8; HISTORY_MAX]) -> Univals {
    std::array::from_fn(|i| u64::from_le_bytes(std::array::from_fn(|j| bytes[8 * i + j])))
}

/// The base line: intercept, slope, and steps since the last learning.
struct Line {
    intercept: f64,
    slope: f64,
    nulls: u64,
}

impl Line {
    fn current(words: &Univals) -> Line {
        Line::of(words, [COEFFICIENT, SLOPE, NULLS])
    }

    fn last(words: &Univals) -> Line {
        Line::of(words, [LAST_COEFFICIENT, LAST_SLOPE, LAST_NULLS])
    }

    fn of(words: &Univals, [intercept, slope, nulls]: [usize; 3]) -> Line {
        Line {
            intercept: f64::from_bits(words[intercept]),
            slope: f64::from_bits(words[slope]),
            nulls: words[nulls],
        }
    }

    fn is_unknown(&self) -> bool {
        self.intercept.is_nan() || self.slope.is_nan()
    }

    /// The predicted value. rrdtool takes the number of steps as an int here.
    fn predict(&self, model: Model, season: f64) -> f64 {
        let base = self.intercept + self.slope * f64::from(self.nulls as i32);
        match model {
            Model::Additive => base + season,
            Model::Multiplicative => base * season,
        }
    }

    /// The next intercept after an observation.
    fn learn(&self, model: Model, alpha: f64, observed: f64, season: f64) -> f64 {
        let seasonless = match model {
            Model::Additive => observed - season,
            Model::Multiplicative if season <= 0.0 => return UNKNOWN,
            Model::Multiplicative => observed / season,
        };
        alpha * seasonless + (1.0 - alpha) * (self.intercept + self.slope * self.nulls as f64)
    }
}

impl Model {
    fn identity(self) -> f64 {
        match self {
            Model::Additive => 0.0,
            Model::Multiplicative => 1.0,
        }
    }

    fn first_season(self, observed: f64, intercept: f64) -> f64 {
        match self {
            Model::Additive => observed - intercept,
            Model::Multiplicative if intercept <= 0.0 => UNKNOWN,
            Model::Multiplicative => observed / intercept,
        }
    }

    fn season(self, gamma: f64, observed: f64, intercept: f64, season: f64) -> f64 {
        let seen = match self {
            Model::Additive => observed - intercept,
            Model::Multiplicative if intercept <= 0.0 => return UNKNOWN,
            Model::Multiplicative => observed / intercept,
        };
        gamma * seen + (1.0 - gamma) * season
    }
}

/// The model of a prediction's archive; `None`: the archive is no prediction.
fn model(header: &Header, archive: usize) -> Option<Model> {
    match cf_of(&header.rra[archive].cf_nam)? {
        Cf::HwPredict => Some(Model::Additive),
        Cf::MhwPredict => Some(Model::Multiplicative),
        _ => None,
    }
}

/// The archive that this one depends on.
fn dependent(header: &Header, archive: usize) -> Option<usize> {
    let index = usize::try_from(header.rra[archive].par[DEPENDENT]).ok()?;
    (index < header.rra.len()).then_some(index)
}

/// Another archive's coefficient for the step of `reader`: the last one if that archive has been advanced already.
fn current(header: &Header, cell: Cell, archive: usize, reader: usize) -> f64 {
    let word = if archive < reader {
        LAST_COEFFICIENT
    } else {
        COEFFICIENT
    };
    get(header, Cell { archive, ..cell }, word)
}

fn words(header: &Header, cell: Cell) -> &Univals {
    &header.cdp_prep[cell.archive * header.ds.len() + cell.source].scratch
}

fn words_mut(header: &mut Header, cell: Cell) -> &mut Univals {
    &mut header.cdp_prep[cell.archive * header.ds.len() + cell.source].scratch
}

fn get(header: &Header, cell: Cell, word: usize) -> f64 {
    f64::from_bits(words(header, cell)[word])
}

fn set(header: &mut Header, cell: Cell, word: usize, value: f64) {
    words_mut(header, cell)[word] = value.to_bits();
}
