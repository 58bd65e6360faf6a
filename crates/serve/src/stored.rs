//! Series of the store, as the hub has them from the keeper: what there is, and their rows as lines beside those of the
//! recording.

use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kymo_query::marks::Mark;
use kymo_query::series::{Grid, Series};
use kymo_query::stored::{Answered, Keeper, StoredField, find};
use kymo_sys::clock::{Clock as _, RealClock};
use kymo_wire::keeper::{Accounts, Programs, Range, Rows, SeriesInfo};

use crate::access::Scopes;
use crate::answer::Refusal;
use crate::guarded::{self, Guarded};
use crate::turns::KEEPER_TURNS_MAX;

/// Longest wait of a question about stored series for a piece of its answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time of an addition to an answer about this machine.
const ADDITION: Duration = Duration::from_secs(2);
/// Connections for additions.
const ADDITIONS_MAX: usize = 2;
/// How long a list of all series holds.
const FRESH: Duration = Duration::from_secs(10);

/// All series.
pub(crate) type Listed = Arc<Vec<SeriesInfo>>;

/// The store as the hub sees it.
pub(crate) struct Stored {
    keeper: Keeper,
    additions: Keeper,
    list: Arc<List>,
}

/// The list of all series. One thread at a time asks for it, without a lock that others would wait for.
#[derive(Default)]
struct List {
    state: Mutex<ListState>,
    /// The thread that asked has an answer, or none.
    ended: Condvar,
}

#[derive(Default)]
struct ListState {
    /// The newest list, and when the keeper answered with it.
    known: Option<(u64, Listed)>,
    is_asking: bool,
}

/// While a thread asks for the list. However that ends, others may ask then.
struct ListAsking<'a>(&'a List);

impl Drop for ListAsking<'_> {
    fn drop(&mut self) {
        self.0.state().is_asking = false;
        self.0.ended.notify_all();
    }
}

impl List {
    fn state(&self) -> MutexGuard<'_, ListState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The newest list, however old.
    fn newest(&self) -> Option<Listed> {
        self.state().known.as_ref().map(|(_, list)| list.clone())
    }

    /// A list that is fresh, asked for by `ask` unless another thread is asking; that one gets `patience`.
    fn fresh(
        &self,
        patience: Duration,
        ask: impl FnOnce() -> Result<Vec<SeriesInfo>, String>,
    ) -> Result<Listed, String> {
        let is_fresh = |at_ns: u64| RealClock.mono_ns().saturating_sub(at_ns) < nanoseconds(FRESH);
        let is_awaited = |state: &mut ListState| {
            state.is_asking && !state.known.as_ref().is_some_and(|(at, _)| is_fresh(*at))
        };
        let waited = self
            .ended
            .wait_timeout_while(self.state(), patience, is_awaited);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        if let Some((at_ns, list)) = &state.known
            && is_fresh(*at_ns)
        {
            return Ok(list.clone());
        }
        if state.is_asking {
            return Err("cannot list stored series: another question waits for the keeper".into());
        }
        state.is_asking = true;
        drop(state);
        let _asking = ListAsking(self);
        let list = Arc::new(ask()?);
        self.state().known = Some((RealClock.mono_ns(), list.clone()));
        Ok(list)
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl Stored {
    /// The store of the keeper that answers on this socket.
    pub(crate) fn new(socket: PathBuf) -> Stored {
        let keeper = Keeper::shared(socket, KEEPER_TURNS_MAX, PATIENCE);
        Stored {
            additions: keeper.apart(ADDITIONS_MAX),
            keeper,
            list: Arc::default(),
        }
    }

    /// The keeper, asked by as many threads as have turns for it.
    pub(crate) fn keeper(&self) -> &Keeper {
        &self.keeper
    }

    /// Asks this store for an addition to an answer about this machine, which goes without it after [`ADDITION`].
    pub(crate) fn for_addition(&self) -> Stored {
        Stored {
            keeper: self.additions.within(ADDITION),
            additions: self.additions.clone(),
            list: self.list.clone(),
        }
    }

    /// All series, by name.
    pub(crate) fn list(&self) -> Result<Guarded<Listed>, String> {
        self.all().map(Guarded::new)
    }

    /// All series, also private ones. This machine's history needs them; answers must not use them.
    pub(crate) fn all(&self) -> Result<Listed, String> {
        let ask = || self.keeper.select(&[]);
        self.list.fresh(self.keeper.patience(), ask)
    }

    /// Rows of some series, or why one has none.
    pub(crate) fn range(&self, range: &Range) -> Result<Vec<Result<Rows, String>>, String> {
        self.keeper.range(range)
    }

    /// A list that has these series, however old: the columns of a series do not change.
    fn list_with(&self, names: &[Vec<u8>]) -> Result<Listed, String> {
        let has_all = |list: &Listed| names.iter().all(|name| find(list, name).is_some());
        match self.list.newest().filter(has_all) {
            Some(list) => Ok(list),
            None => self.all(),
        }
    }

    /// Who sends.
    pub(crate) fn accounts(&self) -> Result<Accounts, String> {
        self.keeper.accounts()
    }

    /// Publishers. Without the scope the keeper does not even send texts of commands.
    pub(crate) fn programs(&self, scopes: Scopes) -> Result<Programs, String> {
        let programs = self.keeper.programs(scopes.tells_of_people())?;
        Ok(Guarded::new(programs).seen_by(scopes))
    }

    /// Notifications of these hosts (none named: of all hosts) by time.
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
        scopes: Scopes,
        series: &mut Series,
    ) -> Result<Option<u32>, Refusal> {
        let mut names = fields.iter().map(|field| &field.name);
        names.try_for_each(|name| guarded::check_name(name, scopes))?;
        self.add_all(fields, series).map_err(Refusal::unavailable)
    }

    fn add_all(&self, fields: &[StoredField], series: &mut Series) -> Result<Option<u32>, String> {
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
