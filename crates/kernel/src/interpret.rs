//! The only place where a text gets meaning: a template is looked at once, and from
//! then on a field is the n-th value. Live and played back alike.
//!
//! An [`Interpreter`] fills the [`Reading`] of one subsystem from the tracks of its
//! sources. It subtracts nothing: that is `query::delta`.

use std::collections::HashMap;
use std::sync::Arc;

use kymo_base::context::Context;
use kymo_base::field::{Field, Rule};
use kymo_base::reading::{MISSING, Reading, Row};
use kymo_base::template::{Template, derive};
use kymo_base::track::{Instance, State, Track, Tracks, Why};
use kymo_base::words::Words;

use crate::source::{self, Scope};
use crate::subsystem::Subsystem;

/// Where the fields of a subsystem are in the values of one template.
#[derive(Clone, Default, Debug)]
pub struct Layout {
    /// Whole-machine numbers.
    pub globals: Vec<Cell>,
    /// The rows of the text, in its order.
    pub rows: Vec<RowLayout>,
}

/// One row of a text.
#[derive(Clone, Default, Debug)]
pub struct RowLayout {
    /// The instance's name; empty: the name of the source's instance (a pid).
    pub name: Vec<u8>,
    /// Slots whose values together are the row's key.
    pub key: Vec<usize>,
    /// Whether it counts in the sum.
    pub counted: bool,
    /// Its numbers.
    pub cells: Vec<Cell>,
    /// Its texts: index of the label and slot of the word.
    pub labels: Vec<(usize, usize)>,
}

/// A field and where its value is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cell {
    /// Index in `Subsystem::globals` or `Subsystem::fields`.
    pub field: usize,
    /// Where the value comes from.
    pub from: From,
}

/// Where a value comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum From {
    /// The value of this slot.
    Slot(usize),
    /// Two decimals: this slot, a point, the next slot.
    Hundredths(usize),
    /// Literal in the template (a negative number, as two's complement, say).
    Fixed(u64),
}

impl From {
    #[inline]
    fn value(self, values: &[u64]) -> u64 {
        let at = |slot: usize| values.get(slot).copied().unwrap_or(MISSING);
        match self {
            From::Slot(slot) => at(slot),
            From::Hundredths(slot) => at(slot).saturating_mul(100).saturating_add(at(slot + 1)),
            From::Fixed(value) => value,
        }
    }
}

/// Turns the tracks of one subsystem's sources into readings.
pub struct Interpreter {
    subsystem: &'static Subsystem,
    layouts: Layouts,
    /// Rows by name while rows of several sources are put together.
    by_name: HashMap<Vec<u8>, usize>,
}

/// Layouts by template. A template is kept with its layout, so that its address stays its own.
struct Layouts {
    known: HashMap<(u8, usize), (Arc<Template>, Arc<Layout>)>,
    context_stamp: u64,
    /// The last one asked for: nearly always the next one too.
    last: Option<(u8, Arc<Template>, Arc<Layout>)>,
}

/// More templates than this are a surprise; the layouts are then made anew.
const LAYOUTS_MAX: usize = 4096;

impl Interpreter {
    /// An interpreter of one subsystem.
    pub fn new(subsystem: &'static Subsystem) -> Interpreter {
        Interpreter {
            subsystem,
            layouts: Layouts {
                known: HashMap::new(),
                context_stamp: 0,
                last: None,
            },
            by_name: HashMap::new(),
        }
    }

    /// Fills `out` from the present sample. `false`: none of the sources was read in it, and `out`
    /// is untouched. Counters of sources that were not read are [`MISSING`]; gauges and
    /// texts are the last ones known.
    pub fn read(&mut self, tracks: &Tracks, context: &Context, out: &mut Reading) -> bool {
        let kinds = self.subsystem.sources;
        if !self.is_fresh(tracks) {
            return false;
        }
        self.layouts.forget_if_new(context);
        out.globals.clear();
        out.globals.resize(self.subsystem.globals.len(), MISSING);
        let mut rows = Rows {
            out: &mut out.rows,
            len: 0,
        };
        for scope in [Scope::Machine, Scope::Process, Scope::Thread] {
            let mut first = true;
            for &kind in kinds {
                if source::of(kind).is_none_or(|source| source.scope != scope) {
                    continue;
                }
                let track = tracks.get(kind);
                match (scope, first) {
                    (Scope::Machine, _) => {
                        self.machine(kind, track, context, &mut out.globals, &mut rows)
                    }
                    (_, true) => self.leading(kind, track, context, &mut rows),
                    (_, false) => self.joined(kind, track, context, &mut rows),
                }
                first = false;
            }
        }
        let len = rows.len;
        out.rows.truncate(len);
        true
    }

    /// Whether the sample has read anything that makes a reading: any source of the machine, but of processes
    /// their leading one; the others only say more of the same rows, and may come at other times.
    fn is_fresh(&self, tracks: &Tracks) -> bool {
        let kinds = || {
            self.subsystem
                .sources
                .iter()
                .filter_map(|&kind| source::of(kind))
        };
        let leading = |scope| kinds().find(|source| source.scope == scope);
        let machine = kinds().filter(|source| source.scope == Scope::Machine);
        machine
            .chain(leading(Scope::Process))
            .chain(leading(Scope::Thread))
            .any(|source| is_read(tracks.get(source.kind)))
    }

    /// A source of the whole machine: globals, and a row for each of its lines.
    fn machine(
        &mut self,
        kind: u8,
        track: &Track,
        context: &Context,
        globals: &mut [u64],
        rows: &mut Rows,
    ) {
        let subsystem = self.subsystem;
        let Some(instance) = track.single() else {
            return;
        };
        self.layouts.with(
            subsystem,
            kind,
            track,
            instance,
            context,
            |layout, values, words| {
                let stale = is_stale(track, instance);
                put(globals, &layout.globals, values, subsystem.globals, stale);
                for row in &layout.rows {
                    let place = rows.next(subsystem);
                    place.begin(&row.name, row, values);
                    place.fill(row, values, words, subsystem, stale);
                }
            },
        );
    }

    /// The first source of processes: a row for each instance.
    fn leading(&mut self, kind: u8, track: &Track, context: &Context, rows: &mut Rows) {
        let subsystem = self.subsystem;
        self.by_name.clear();
        for (_, instance) in track.instances() {
            self.layouts.with(
                subsystem,
                kind,
                track,
                instance,
                context,
                |layout, values, words| {
                    if let Some(row) = layout.rows.first() {
                        let place = rows.next(subsystem);
                        place.begin(&instance.name, row, values);
                        place.fill(row, values, words, subsystem, is_stale(track, instance));
                    }
                },
            );
        }
    }

    /// Another source of the same processes: more cells of the same rows.
    fn joined(&mut self, kind: u8, track: &Track, context: &Context, rows: &mut Rows) {
        let subsystem = self.subsystem;
        let mut cursor = 0;
        for (_, instance) in track.instances() {
            // Sources of one scope list their instances in the same order, so the row is
            // nearly always the next one.
            let Some(at) = rows.find(&instance.name, cursor, &mut self.by_name) else {
                continue;
            };
            cursor = at + 1;
            let place = &mut rows.out[at];
            self.layouts.with(
                subsystem,
                kind,
                track,
                instance,
                context,
                |layout, values, words| {
                    if let Some(row) = layout.rows.first() {
                        place.fill(row, values, words, subsystem, is_stale(track, instance));
                    }
                },
            );
        }
    }
}

/// Whether the source was read in the last sample, as far as its numbers go.
fn is_read(track: &Track) -> bool {
    track.sampled
        && track
            .instances()
            .any(|(_, instance)| !is_stale(track, instance))
}

/// Whether the instance's counters are older than the sample.
fn is_stale(track: &Track, instance: &Instance) -> bool {
    !track.sampled || matches!(instance.state, State::Unread(Why::NotDue | Why::Slow))
}

/// Rows being filled in place of those of the last reading, to use their memory again.
struct Rows<'a> {
    out: &'a mut Vec<Row>,
    len: usize,
}

impl Rows<'_> {
    fn next(&mut self, subsystem: &Subsystem) -> &mut Place {
        if self.len == self.out.len() {
            self.out.push(Row::default());
        }
        self.len += 1;
        let row = &mut self.out[self.len - 1];
        row.values.clear();
        row.values.resize(subsystem.fields.len(), MISSING);
        row.labels.resize(subsystem.labels.len(), Vec::new());
        row.labels.iter_mut().for_each(Vec::clear);
        row
    }

    /// The row of `name`: the one at `cursor` or just behind, else by a table made when first needed.
    fn find(
        &self,
        name: &[u8],
        cursor: usize,
        by_name: &mut HashMap<Vec<u8>, usize>,
    ) -> Option<usize> {
        let rows = &self.out[..self.len];
        let near = (cursor..rows.len().min(cursor + 4)).find(|&at| rows[at].name == name);
        if near.is_some() {
            return near;
        }
        if by_name.len() != rows.len() {
            *by_name = rows
                .iter()
                .enumerate()
                .map(|(at, row)| (row.name.clone(), at))
                .collect();
        }
        by_name.get(name).copied()
    }
}

type Place = Row;

trait Fill {
    fn begin(&mut self, name: &[u8], row: &RowLayout, values: &[u64]);
    fn fill(
        &mut self,
        row: &RowLayout,
        values: &[u64],
        words: &Words,
        subsystem: &Subsystem,
        stale: bool,
    );
}

impl Fill for Row {
    fn begin(&mut self, name: &[u8], row: &RowLayout, values: &[u64]) {
        self.name.clear();
        self.name.extend_from_slice(name);
        self.counted = row.counted;
        self.key = row.key.iter().fold(0, |key, &slot| {
            key.rotate_left(32) ^ values.get(slot).copied().unwrap_or(MISSING)
        });
    }

    fn fill(
        &mut self,
        row: &RowLayout,
        values: &[u64],
        words: &Words,
        subsystem: &Subsystem,
        stale: bool,
    ) {
        put(
            &mut self.values,
            &row.cells,
            values,
            subsystem.fields,
            stale,
        );
        for &(label, slot) in &row.labels {
            if let (Some(text), Some(&id)) = (self.labels.get_mut(label), values.get(slot)) {
                text.clear();
                text.extend_from_slice(words.get(id).unwrap_or_default());
            }
        }
    }
}

#[inline]
fn put(out: &mut [u64], cells: &[Cell], values: &[u64], fields: &[Field], stale: bool) {
    for cell in cells {
        if stale
            && fields
                .get(cell.field)
                .is_none_or(|field| field.rule != Rule::Gauge)
        {
            continue;
        }
        if let Some(place) = out.get_mut(cell.field) {
            *place = cell.from.value(values);
        }
    }
}

impl Layouts {
    /// What counts in a sum depends on the facts: with new facts, new layouts.
    fn forget_if_new(&mut self, context: &Context) {
        if self.context_stamp != context.stamp() || self.known.len() > LAYOUTS_MAX {
            self.known.clear();
            self.last = None;
            self.context_stamp = context.stamp();
        }
    }

    /// Calls `then` with the layout of the instance's text, its values and words, if it has a text.
    fn with(
        &mut self,
        subsystem: &Subsystem,
        kind: u8,
        track: &Track,
        instance: &Instance,
        context: &Context,
        then: impl FnOnce(&Layout, &[u64], &Words),
    ) {
        if let State::Failed(_) = instance.state {
            return;
        }
        match &instance.template {
            Some(template) => {
                let layout = self.of(subsystem, kind, template, context);
                then(&layout, &instance.values, track.words());
            }
            None if instance.bytes.is_empty() => {}
            None => {
                // A text kept as bytes is cut here, in the same way, for this once.
                let Some(source) = source::of(kind) else {
                    return;
                };
                let (mut words, mut values, mut ends) = (Words::default(), Vec::new(), Vec::new());
                let template = derive(
                    &instance.bytes,
                    source.grammar,
                    &mut words,
                    &mut values,
                    &mut ends,
                );
                then(
                    &(subsystem.layout)(kind, &template, context),
                    &values,
                    &words,
                );
            }
        }
    }

    fn of(
        &mut self,
        subsystem: &Subsystem,
        kind: u8,
        template: &Arc<Template>,
        context: &Context,
    ) -> Arc<Layout> {
        if let Some((last_kind, last, layout)) = &self.last
            && *last_kind == kind
            && Arc::ptr_eq(last, template)
        {
            return layout.clone();
        }
        let address = Arc::as_ptr(template) as usize;
        let (_, layout) = self.known.entry((kind, address)).or_insert_with(|| {
            let layout = (subsystem.layout)(kind, template, context);
            (template.clone(), Arc::new(layout))
        });
        let layout = layout.clone();
        self.last = Some((kind, template.clone(), layout.clone()));
        layout
    }
}
