//! A recording beside a store: the unusual values of a range are those of both.

use std::sync::Arc;

use kymo_query::archive::{Archive, Extent};
use kymo_query::series::Series;
use kymo_query::source::Source;
use kymo_query::why::When;
use kymo_recording::reader::{Kinds, TimeRange};
use kymo_top::retrieve::Retrieve;

use super::super::why;

/// A recording, whose folder may have a store.
pub(super) struct StoredArchive(pub(super) Archive);

impl Retrieve for StoredArchive {
    fn extent(&self) -> Result<Arc<Extent>, String> {
        self.0.extent()
    }

    fn again(&self) -> Result<Option<Arc<dyn Retrieve>>, String> {
        // Files that were read into memory have no store.
        self.0.again()
    }

    fn open(&self, range: TimeRange, kinds: Kinds) -> Result<Box<dyn Source>, String> {
        Retrieve::open(&self.0, range, kinds)
    }

    fn series(&self, fields: &[&str], range: TimeRange, points: usize) -> Result<Series, String> {
        Retrieve::series(&self.0, fields, range, points)
    }

    fn why(&self, range: TimeRange) -> Result<String, String> {
        let what = &self.0.what;
        let found = why::answer(what, When::Between(range.from_ns, range.thru_ns))?;
        Ok(kymo_view::why::text(&found, &what.name()))
    }

    fn programs(&self, at_ns: i64) -> Result<String, String> {
        Retrieve::programs(&self.0, at_ns)
    }
}
