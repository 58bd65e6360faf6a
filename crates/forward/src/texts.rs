//! Names and values of labels, each kept once.

use std::collections::HashMap;
use std::sync::Arc;

/// Texts with numbers. Series share most of theirs, so that a number a text is all that a series takes.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    all: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, u32>,
}

impl Texts {
    /// The number of a text; `None`: there are too many texts.
    pub(crate) fn number(&mut self, text: &str) -> Option<u32> {
        if let Some(&number) = self.numbers.get(text) {
            return Some(number);
        }
        let number = u32::try_from(self.all.len()).ok()?;
        let text: Arc<str> = text.into();
        self.all.push(text.clone());
        self.numbers.insert(text, number);
        Some(number)
    }

    /// The text of a number.
    pub(crate) fn text(&self, number: u32) -> &str {
        let at = usize::try_from(number).unwrap_or(usize::MAX);
        self.all.get(at).map_or("", |text| text)
    }
}
