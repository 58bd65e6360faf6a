//! The one error of the bench: `cannot <verb> <object>: <cause>`.

use std::fmt::{self, Display};

/// A sentence for the person who ran the bench.
#[derive(Debug)]
pub(crate) struct Fault(String);

pub(crate) type Result<T> = std::result::Result<T, Fault>;

impl Fault {
    pub(crate) fn new(sentence: impl Into<String>) -> Self {
        Fault(sentence.into())
    }

    pub(crate) fn because(what: impl Display, cause: impl Display) -> Self {
        Fault(format!("cannot {what}: {cause}"))
    }
}

impl Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Turns any error into a [`Fault`] by naming what could not be done.
pub(crate) trait Cannot<T> {
    fn cannot(self, what: impl Display) -> Result<T>;
}

impl<T, E: Display> Cannot<T> for std::result::Result<T, E> {
    fn cannot(self, what: impl Display) -> Result<T> {
        self.map_err(|cause| Fault::because(what, cause))
    }
}
