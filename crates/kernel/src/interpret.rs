//! The only place where texts get meaning, both live and in playback: each template is interpreted once, and from then
//! on a field is the n-th value.
//!
//! An [`Interpreter`] fills the [`Reading`] of one subsystem from the tracks of its sources. It computes no
//! differences: `query::delta` does.

use std::collections::HashMap;
use std::sync::Arc;

use kymo_base::context::Context;
use kymo_base::field::{Field, Rule};
use kymo_base::limits;
use kymo_base::reading::{MISSING, Reading, Row};
use kymo_base::template::{Template, derive};
use kymo_base::track::{Instance, State, Track, Tracks, Why};
use kymo_base::words::Words;

use crate::layout::{Cell, From, Label, Layout, RowLayout, Word};
use crate::source::{self, Scope, Source};
use crate::subsystem::Subsystem;

/// Converts the tracks of one subsystem's sources to readings.
pub struct Interpreter {
    subsystem: &'static Subsystem,
    layouts: Layouts,
    /// Rows by name, while rows of several sources are joined.
    by_name: HashMap<Vec<u8>, usize>,
}

/// Layouts by template. Each template is kept with its layout, so that its address stays unique.
struct Layouts {
    subsystem: &'static Subsystem,
    known: HashMap<(u8, usize), (Arc<Template>, Layout)>,
    /// Memory of the templates, in bytes.
    bytes: usize,
    context_stamp: u64,
}

/// Unusual number of templates, at which all layouts are discarded.
const LAYOUTS_MAX: usize = 4096;

impl Interpreter {
    /// Returns an interpreter of one subsystem.
    pub fn new(subsystem: &'static Subsystem) -> Interpreter {
        Interpreter {
            subsystem,
            layouts: Layouts {
                subsystem,
                known: HashMap::new(),
                bytes: 0,
                context_stamp: 0,
            },
            by_name: HashMap::new(),
        }
    }

    /// Fills `out` from the current sample. Returns `false`, and leaves `out` as it is, if the sample read none of the
    /// sources. Counters of sources that were not read are [`MISSING`]; gauges and texts keep their last values.
    pub fn read(&mut self, tracks: &Tracks, context: &Context, out: &mut Reading) -> bool {
        let kinds = self.subsystem.understood();
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
        for &scope in Scope::ALL {
            let mut first = true;
            for kind in kinds.clone() {
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
            if scope == Scope::Cgroup && !first {
                rows.in_order_of_a_tree();
            }
        }
        let len = rows.len;
        out.rows.truncate(len);
        if let Some(count) = self.subsystem.count {
            count(&mut out.rows);
        }
        true
    }

    /// Returns true if the sample has read a source that makes a reading. That is any source of the whole machine; of
    /// a scope with many instances (such as processes) it is the first source, since the others only add to its rows
    /// and may be read at other times.
    fn is_fresh(&self, tracks: &Tracks) -> bool {
        let kinds = || {
            self.subsystem
                .sources
                .iter()
                .filter_map(|&kind| source::of(kind))
        };
        let is_read = |source: &Source| is_read(tracks.get(source.kind));
        Scope::ALL.iter().any(|&scope| {
            let mut sources = kinds().filter(|source| source.scope == scope);
            match scope {
                Scope::Machine => sources.any(is_read),
                _ => sources.next().is_some_and(is_read),
            }
        })
    }

    /// Interprets a source of the whole machine: globals, and a row for each of its lines.
    fn machine(
        &mut self,
        kind: u8,
        track: &Track,
        context: &Context,
        globals: &mut [u64],
        rows: &mut Rows,
    ) {
        let (subsystem, by_name) = (self.subsystem, &mut self.by_name);
        let Some(instance) = track.single() else {
            return;
        };
        let adds = source::of(kind).is_some_and(Source::adds_to_rows);
        let is_beside = adds || !subsystem.sources.contains(&kind);
        by_name.clear();
        self.layouts.cut(kind, track, instance, context, |text| {
            text.put(globals, &text.layout.globals, subsystem.globals);
            for (cursor, layout) in text.layout.rows.iter().enumerate() {
                if is_beside {
                    if let Some(at) = rows.find(&layout.name, cursor, by_name) {
                        text.fill(&mut rows.out[at], layout, subsystem);
                    }
                    continue;
                }
                let row = rows.next(subsystem);
                text.begin(row, &layout.name, layout);
                text.fill(row, layout, subsystem);
            }
        });
    }

    /// Interprets the first source of a scope: a row for each instance.
    fn leading(&mut self, kind: u8, track: &Track, context: &Context, rows: &mut Rows) {
        let subsystem = self.subsystem;
        self.by_name.clear();
        for (_, instance) in track.instances() {
            self.layouts.cut(kind, track, instance, context, |text| {
                for layout in &text.layout.rows {
                    let row = rows.next(subsystem);
                    let name = layout.instance.as_ref().unwrap_or(&instance.name);
                    text.begin(row, name, layout);
                    if !layout.name.is_empty() {
                        row.name.push(b'/');
                        row.name.extend_from_slice(&layout.name);
                    }
                    text.fill(row, layout, subsystem);
                }
            });
        }
    }

    /// Interprets another source of the same instances: further cells of the same rows.
    fn joined(&mut self, kind: u8, track: &Track, context: &Context, rows: &mut Rows) {
        let subsystem = self.subsystem;
        let mut cursor = 0;
        for (_, instance) in track.instances() {
            // The sources of a scope list their instances in the same order, so the row is nearly always the next one.
            let Some(at) = rows.find(&instance.name, cursor, &mut self.by_name) else {
                continue;
            };
            cursor = at + 1;
            self.layouts.cut(kind, track, instance, context, |text| {
                if let Some(layout) = text.layout.rows.first() {
                    text.fill(&mut rows.out[at], layout, subsystem);
                }
            });
        }
    }
}

/// Returns true if the last sample has new numbers of the source.
pub fn is_read(track: &Track) -> bool {
    track.sampled
        && track
            .instances()
            .any(|(_, instance)| !is_stale(track, instance))
}

/// Returns true if the instance's counters are older than the sample.
fn is_stale(track: &Track, instance: &Instance) -> bool {
    !track.sampled || matches!(instance.state, State::Unread(Why::NotDue | Why::Slow))
}

/// Rows that are filled in place of the last reading's rows, to reuse their memory.
struct Rows<'a> {
    out: &'a mut Vec<Row>,
    len: usize,
}

impl Rows<'_> {
    /// Sorts paths so that each directly follows its parent, together with all paths below it.
    fn in_order_of_a_tree(&mut self) {
        let lowest = |&b: &u8| if b == b'/' { 0 } else { b };
        let order = |a: &Row, b: &Row| {
            let (a, b) = (a.name.iter().map(lowest), b.name.iter().map(lowest));
            a.cmp(b)
        };
        let rows = &mut self.out[..self.len];
        if !rows.is_sorted_by(|a, b| order(a, b).is_le()) {
            rows.sort_by(order);
        }
    }

    fn next(&mut self, subsystem: &Subsystem) -> &mut Row {
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

    /// Index of the row `name`: the one at `cursor` or shortly after, else from a table that is built at first need.
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

/// A text divided by its template.
struct Cut<'a> {
    layout: &'a Layout,
    values: &'a [u64],
    words: &'a Words,
    /// Set if the counters are older than the sample.
    stale: bool,
}

impl Cut<'_> {
    /// Begins a row: sets its name, its key and if it counts in the sum.
    fn begin(&self, row: &mut Row, name: &[u8], layout: &RowLayout) {
        row.name.clear();
        row.name.extend_from_slice(name);
        row.counted = layout.counted;
        row.key = layout.key.iter().fold(0, |key, &slot| {
            key.rotate_left(32) ^ self.values.get(slot).copied().unwrap_or(MISSING)
        });
    }

    /// Fills a row with the text's numbers and words.
    fn fill(&self, row: &mut Row, layout: &RowLayout, subsystem: &Subsystem) {
        if subsystem.spread {
            let last = layout.cells.iter().map(|cell| cell.field).max();
            let width = last.map_or(0, |last| last + 1).max(row.values.len());
            row.values.resize(width, MISSING);
        }
        self.put(&mut row.values, &layout.cells, subsystem.fields);
        for Label { label, word } in &layout.labels {
            let word = match word {
                Word::Slot(slot) => self.values.get(*slot).map(|&id| self.words.get(id)),
                Word::Fixed(text) => Some(Some(&text[..])),
            };
            if let (Some(text), Some(word)) = (row.labels.get_mut(*label), word) {
                text.clear();
                text.extend_from_slice(word.unwrap_or_default());
            }
        }
    }

    #[inline]
    fn put(&self, out: &mut [u64], cells: &[Cell], fields: &[Field]) {
        for cell in cells {
            let is_gauge = |field: &Field| field.rule == Rule::Gauge;
            if self.stale && !fields.get(cell.field).is_some_and(is_gauge) {
                continue;
            }
            let Some(place) = out.get_mut(cell.field) else {
                continue;
            };
            let value = cell.from.value(self.values);
            *place = match cell.from {
                From::Added(_) if *place != MISSING => place.saturating_add(value),
                _ => value,
            };
        }
    }
}

impl Layouts {
    /// Discards the layouts after a change of the facts, which decide
    /// which rows count in the sum, or when they have become too many.
    fn forget_if_new(&mut self, context: &Context) {
        let full = self.known.len() > LAYOUTS_MAX || self.bytes > limits::LAYOUTS_BYTES;
        if self.context_stamp != context.stamp() || full {
            (self.known, self.bytes) = (HashMap::new(), 0);
            self.context_stamp = context.stamp();
        }
    }

    /// Calls `then` with the text of the instance, if there is one.
    fn cut(
        &mut self,
        kind: u8,
        track: &Track,
        instance: &Instance,
        context: &Context,
        then: impl FnOnce(&Cut),
    ) {
        let stale = is_stale(track, instance);
        match &instance.template {
            _ if matches!(instance.state, State::Failed(_)) => {}
            Some(template) => then(&Cut {
                layout: self.of(kind, template, context),
                values: &instance.values,
                words: track.words(),
                stale,
            }),
            None if instance.bytes.is_empty() => {}
            None => self.cut_bytes(kind, &instance.bytes, context, stale, then),
        }
    }

    /// Divides a text that is kept as bytes in the same way, without keeping its layout.
    fn cut_bytes(
        &self,
        kind: u8,
        bytes: &[u8],
        context: &Context,
        stale: bool,
        then: impl FnOnce(&Cut),
    ) {
        let Some(source) = source::of(kind) else {
            return;
        };
        let (mut words, mut values, mut ends) = (Words::default(), Vec::new(), Vec::new());
        let template = derive(bytes, source.grammar, &mut words, &mut values, &mut ends);
        then(&Cut {
            layout: &(self.subsystem.layout)(kind, &template, context),
            values: &values,
            words: &words,
            stale,
        });
    }

    /// The layout of a template, built at first use.
    fn of(&mut self, kind: u8, template: &Arc<Template>, context: &Context) -> &Layout {
        let key = (kind, Arc::as_ptr(template) as usize);
        let make = self.subsystem.layout;
        let known = self.known.entry(key).or_insert_with(|| {
            self.bytes += template.bytes();
            (template.clone(), make(kind, template, context))
        });
        &known.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subsystem::process::PROCESS;

    /// An interrupt's chip and device are literals of the template; a process's name is a word.
    #[test]
    fn labels_are_words_or_literals() {
        let mut words = Words::default();
        let id = u64::from(words.intern(b"nginx"));
        let fixed = |label, text: &[u8]| Label {
            label,
            word: Word::Fixed(text.to_vec()),
        };
        let layout = RowLayout {
            labels: vec![
                Label::of_slot(0, 0),
                fixed(1, b"IO-APIC"),
                Label::of_slot(2, 9),
            ],
            ..RowLayout::default()
        };
        let cut = Cut {
            layout: &Layout::default(),
            values: &[id],
            words: &words,
            stale: false,
        };
        let mut row = Row {
            labels: vec![b"old".to_vec(); 3],
            ..Row::default()
        };
        cut.fill(&mut row, &layout, &PROCESS);
        assert_eq!(row.labels, [&b"nginx"[..], b"IO-APIC", b"old"]);
    }
}
