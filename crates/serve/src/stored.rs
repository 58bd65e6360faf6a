//! Series of the store, as the hub has them from the keeper: what there is, and their rows as lines beside those of the
//! recording.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kymo_query::marks::Mark;
use kymo_query::series::{Grid, Series};
use kymo_query::stored::{Answered, Keeper, StoredField, find};
use kymo_sys::clock::{Clock as _, RealClock};
use kymo_wire::keeper::{Accounts, Programs, Range, Rows, SeriesInfo};

/// How long a list of all series holds.
const FRESH: Duration = Duration::from_secs(10);

/// All series.
pub(crate) type Listed = Arc<Vec<SeriesInfo>>;

/// The store as the hub sees it.
pub(crate) struct Stored {
    keeper: Keeper,
    listed: Mutex<Option<(u64, Listed)>>,
}

impl Stored {
    /// That of the keeper which answers on this socket.
    pub(crate) fn new(socket: PathBuf) -> Stored {
        Stored {
            keeper: Keeper::at(socket),
            listed: Mutex::new(None),
        }
    }

    /// All series, by name.
    pub(crate) fn list(&self) -> Result<Listed, String> {
        let mut listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        let now_ns = RealClock.mono_ns();
        if let Some((at_ns, list)) = &*listed
            && now_ns - at_ns < FRESH.as_nanos() as u64
        {
            return Ok(list.clone());
        }
        let list = Arc::new(self.keeper.select(&[])?);
        *listed = Some((RealClock.mono_ns(), list.clone()));
        Ok(list)
    }

    /// Rows of some series, or why one has none.
    pub(crate) fn range(&self, range: &Range) -> Result<Vec<Result<Rows, String>>, String> {
        self.keeper.range(range)
    }

    /// A list that has these series, however old: what a series consists of does not change.
    fn list_with(&self, names: &[Vec<u8>]) -> Result<Listed, String> {
        let kept = {
            let listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
            listed.as_ref().map(|(_, list)| list.clone())
        };
        let has_all = |list: &Listed| names.iter().all(|name| find(list, name).is_some());
        match kept.filter(has_all) {
            Some(list) => Ok(list),
            None => self.list(),
        }
    }

    /// Who sends.
    pub(crate) fn accounts(&self) -> Result<Accounts, String> {
        self.keeper.accounts()
    }

    /// Who publishes; texts of commands only if they are asked for.
    pub(crate) fn programs(&self, texts: bool) -> Result<Programs, String> {
        self.keeper.programs(texts)
    }

    /// What senders wanted to be heard, by its time; no hosts: all.
    pub(crate) fn marks(
        &self,
        range: (i64, i64),
        hosts: Vec<Vec<u8>>,
    ) -> Result<Vec<Mark>, String> {
        self.keeper.marks(range, hosts)
    }

    /// Adds the lines of these fields, and what their hosts wanted to be heard; with the seconds of the finest row that was read.
    pub(crate) fn add(
        &self,
        fields: &[StoredField],
        series: &mut Series,
    ) -> Result<Option<u32>, String> {
        let answered = Answered::ask(&self.keeper, fields, series)?;
        let names: Vec<Vec<u8>> = fields.iter().map(|field| field.name.clone()).collect();
        let listed = self.list_with(&names)?;
        answered.add_marks(&self.keeper, series)?;
        Ok(answered.add(fields, &listed, 0, series))
    }
}

/// A grid for stored series alone.
pub(crate) fn grid(from_ns: i64, thru_ns: i64, points: usize) -> Grid {
    Grid::new(from_ns, thru_ns, points, 1_000_000_000)
}
