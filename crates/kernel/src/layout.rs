//! Where the numbers of a subsystem are in a text: found once for each template, used for every sample.

use kymo_base::reading::MISSING;

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
    /// A better name than that of the source's instance, where a number names the instance.
    pub instance: Option<Vec<u8>>,
    /// Slots whose values together are the row's key.
    pub key: Vec<usize>,
    /// True if the row counts in the sum.
    pub counted: bool,
    /// Numbers of the row.
    pub cells: Vec<Cell>,
    /// Texts of the row.
    pub labels: Vec<Label>,
}

/// A label and where its text is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Label {
    /// Index in `Subsystem::labels`.
    pub label: usize,
    /// Where the text comes from.
    pub word: Word,
}

impl Label {
    /// A label whose text is the word of a slot.
    pub fn of_slot(label: usize, slot: usize) -> Label {
        let word = Word::Slot(slot);
        Label { label, word }
    }
}

/// Where a text comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Word {
    /// The word whose number is the value of this slot.
    Slot(usize),
    /// Literal in the template (the chip and the device of an interrupt, say).
    Fixed(Vec<u8>),
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
    /// The value of this slot, added to what other slots gave for the same field.
    Added(usize),
    /// Two decimals: this slot, a point, the next slot.
    Hundredths(usize),
    /// The numbers of two slots, multiplied.
    Product(usize, usize),
    /// 1 where this slot is not 0.
    Any(usize),
    /// This slot times the second number by the third: another unit.
    Scaled(usize, u64, u64),
    /// Literal in the template (a negative number, as two's complement, say).
    Fixed(u64),
}

impl From {
    /// The number among those of a text.
    #[inline]
    pub fn value(self, values: &[u64]) -> u64 {
        let at = |slot: usize| values.get(slot).copied().unwrap_or(MISSING);
        match self {
            From::Slot(slot) | From::Added(slot) => at(slot),
            From::Hundredths(slot) => at(slot).saturating_mul(100).saturating_add(at(slot + 1)),
            From::Product(a, b) => match (at(a), at(b)) {
                (MISSING, _) | (_, MISSING) => MISSING,
                (a, b) => a.saturating_mul(b),
            },
            From::Any(slot) => match at(slot) {
                MISSING => MISSING,
                number => u64::from(number > 0),
            },
            From::Scaled(slot, times, by) => match at(slot) {
                MISSING => MISSING,
                number => number.saturating_mul(times) / by.max(1),
            },
            From::Fixed(value) => value,
        }
    }
}
