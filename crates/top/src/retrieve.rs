//! A recording as the screen asks it, wherever it is: in files here, or on another machine.

use std::sync::Arc;

use kymo_query::archive::{Archive, Extent, RecordingSource};
use kymo_query::series::Series;
use kymo_query::sheet::Pick;
use kymo_query::source::Source;
use kymo_query::why::{When, why};
use kymo_recording::reader::{Kinds, TimeRange};
use kymo_view::programs;

/// A recording that is asked.
pub trait Retrieve: Send + Sync {
    /// How far it reaches.
    fn extent(&self) -> Result<Arc<Extent>, String>;
    /// Learns with the next question how far it reaches now; the recording to ask instead, if its files were read again.
    fn again(&self) -> Result<Option<Arc<dyn Retrieve>>, String>;
    /// Samples.
    fn open(&self, range: TimeRange, kinds: Kinds) -> Result<Box<dyn Source>, String>;
    /// Fields over a range, and its events; no length of a point is asked for, but how many there are at most.
    fn series(&self, fields: &[&str], range: TimeRange, points: usize) -> Result<Series, String>;
    /// The unusual values of a range, as text.
    fn why(&self, range: TimeRange) -> Result<String, String>;
    /// The programs at a moment, as text; empty: nothing is known of any.
    fn programs(&self, at_ns: i64) -> Result<String, String>;
}

impl Retrieve for Archive {
    fn extent(&self) -> Result<Arc<Extent>, String> {
        Archive::extent(self)
    }

    fn again(&self) -> Result<Option<Arc<dyn Retrieve>>, String> {
        self.forget_extent();
        match &self.what {
            RecordingSource::Kept(kept) if kept.is_old() => {
                let what = RecordingSource::Files(kept.paths.clone()).keep(&mut |_, _| {})?;
                Ok(Some(Arc::new(Archive::new(what, None))))
            }
            RecordingSource::Kept(_) | RecordingSource::Ring(_) | RecordingSource::Files(_) => {
                Ok(None)
            }
        }
    }

    fn open(&self, range: TimeRange, kinds: Kinds) -> Result<Box<dyn Source>, String> {
        self.what.open(range, kinds)
    }

    fn series(&self, fields: &[&str], range: TimeRange, points: usize) -> Result<Series, String> {
        let picks: Result<Vec<Pick>, String> = fields.iter().map(|id| Pick::parse(id)).collect();
        let (mut series, _) = Archive::series(self, &picks?, range.from_ns, range.thru_ns, points)?;
        series.sort();
        Ok(series)
    }

    fn why(&self, range: TimeRange) -> Result<String, String> {
        let recordings = self.what.recordings()?;
        let found = why(&recordings, When::Between(range.from_ns, range.thru_ns))?;
        Ok(kymo_view::why::text(&found, &self.what.name()))
    }

    fn programs(&self, at_ns: i64) -> Result<String, String> {
        let recorded = Archive::programs(self, at_ns)?;
        Ok(recorded.map_or_else(String::new, |recorded| {
            let looked_ns = i64::try_from(recorded.at_ns).unwrap_or(at_ns);
            programs::text(&recorded.programs, looked_ns)
        }))
    }
}
