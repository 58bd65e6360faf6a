//! Positions of a subsystem's numbers in a text: found once for each template, used for every sample.

use kymo_base::reading::MISSING;

/// Positions of a subsystem's fields in the values of one template.
#[derive(Clone, Default, Debug)]
pub struct Layout {
    /// Numbers of the whole machine.
    pub globals: Vec<Cell>,
    /// The rows, in the order of the text.
    pub rows: Vec<RowLayout>,
}

/// One row of a text.
#[derive(Clone, Default, Debug)]
pub struct RowLayout {
    /// The instance's name; empty for the name of the source's instance (such as a pid).
    pub name: Vec<u8>,
    /// Name that replaces the name of the source's instance if that is only a number.
    pub instance: Option<Vec<u8>>,
    /// Slots whose values form the row's key.
    pub key: Vec<usize>,
    /// True if the row counts in the sum.
    pub counted: bool,
    /// Numbers of the row.
    pub cells: Vec<Cell>,
    /// Texts of the row.
    pub labels: Vec<Label>,
}

/// A label and the source of its text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Label {
    /// Index in `Subsystem::labels`.
    pub label: usize,
    /// Source of the text.
    pub word: Word,
}

impl Label {
    /// A label whose text is the word of a slot.
    pub fn of_slot(label: usize, slot: usize) -> Label {
        let word = Word::Slot(slot);
        Label { label, word }
    }
}

/// Source of a text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Word {
    /// The word whose number is the value of this slot.
    Slot(usize),
    /// A literal of the template (such as the chip and the device of an interrupt).
    Fixed(Vec<u8>),
}

/// A field and the source of its value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cell {
    /// Index in `Subsystem::globals` or `Subsystem::fields`.
    pub field: usize,
    /// Source of the value.
    pub from: From,
}

/// Source of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum From {
    /// The value of this slot.
    Slot(usize),
    /// The value of this slot, added to the other slots of the same field.
    Added(usize),
    /// A number with two decimals: this slot, a point, the next slot.
    Hundredths(usize),
    /// The product of two slots.
    Product(usize, usize),
    /// 1 if this slot is not 0.
    Any(usize),
    /// This slot times the second number divided by the third, to convert units.
    Scaled(usize, u64, u64),
    /// A literal of the template (such as a negative number, as two's complement).
    Fixed(u64),
}

impl From {
    /// The value of the field in a text with these values.
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
