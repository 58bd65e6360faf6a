//! One turn of the event loop: all requests that are ready, one lock, one write of the journal.

use crate::error::Refusal;
use crate::store::Stats;
use std::io;

/// A place in the journal; what lies before it is in the kernel, and durable after `Store::durable`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position(pub u64);

/// What SUSPEND and RESUME found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switched {
    /// `%s suspended`, `%s resumed`.
    Now,
    /// `%s already suspended`, `%s not suspended`.
    Already,
    /// The file is not known: `%s - No such file or directory`.
    Unknown,
}

/// All requests of a turn. Dropped without [`Turn::commit`], it has done nothing.
pub struct Turn<'a>(pub(crate) std::marker::PhantomData<&'a ()>);

impl Turn<'_> {
    /// Takes values for a file as UPDATE does: each stamp must be a number followed by `:` and newer than
    /// the last; the rest is not looked at. Values before a refused one stay taken.
    pub fn update<'v>(
        &mut self,
        _name: &[u8],
        _values: impl IntoIterator<Item = &'v [u8]>,
    ) -> Result<usize, Refusal> {
        Err(Refusal::Untouched)
    }

    /// FORGET: drops what is known of a file, its pending values too (as rrdcached does). `false`: not known.
    pub fn forget(&mut self, _name: &[u8]) -> bool {
        false
    }

    /// SUSPEND: values are kept and not written until RESUME.
    pub fn suspend(&mut self, _name: &[u8]) -> Switched {
        Switched::Unknown
    }

    /// RESUME.
    pub fn resume(&mut self, _name: &[u8]) -> Switched {
        Switched::Unknown
    }

    /// SUSPENDALL; how many were not suspended before.
    pub fn suspend_all(&mut self) -> usize {
        0
    }

    /// RESUMEALL; how many were suspended before.
    pub fn resume_all(&mut self) -> usize {
        0
    }

    /// PENDING: the values not yet handed to the file, as they were sent. `None`: the file is not known.
    pub fn pending(&self, _name: &[u8], _each: &mut dyn FnMut(&[u8])) -> Option<usize> {
        None
    }

    /// QUEUE: the files that are due and how many values they have.
    pub fn queue(&self, _each: &mut dyn FnMut(usize, &[u8])) {}

    /// Numbers for STATS.
    pub fn stats(&self) -> Stats {
        Stats::default()
    }

    /// Newest stamp of a known file (of its values, pending or written), for LAST.
    pub fn last_stamp(&self, _name: &[u8]) -> Option<f64> {
        None
    }

    /// FLUSHALL: everything that is not suspended becomes due.
    pub fn flush_all(&mut self) {}

    /// Writes the turn into the journal, with one write. On an error nothing of the turn has happened:
    /// answer `cannot write journal: ...` to its updates and forgets.
    pub fn commit(self) -> io::Result<Position> {
        Ok(Position(0))
    }
}
