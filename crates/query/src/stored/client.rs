//! A keeper that many threads ask: a list of its series that they share, and rows as lines beside those of the recording.

use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kymo_keeper_client::Keeper;
use kymo_sys::clock::{Clock as _, RealClock};
use kymo_wire::keeper::SeriesInfo;

use super::{Answered, StoredField, find};
use crate::series::Series;

/// Longest wait of a request about stored series for a piece of its answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time of an addition to an answer about this machine.
const ADDITION: Duration = Duration::from_secs(2);
/// Connections for additions.
const ADDITIONS_MAX: usize = 2;
/// How long a list of all series holds.
const FRESH: Duration = Duration::from_secs(10);

/// All series.
pub type Listed = Arc<Vec<SeriesInfo>>;

/// A keeper that many threads ask. Clones share its connections and its list.
#[derive(Clone)]
pub struct SharedKeeper {
    keeper: Keeper,
    /// Connections for additions; `None`: they wait like all other requests.
    additions: Option<Keeper>,
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
            return Err("cannot list stored series: another request waits for the keeper".into());
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

impl SharedKeeper {
    /// The keeper that answers on this socket, asked by at most `connections` threads at a time.
    pub fn new(socket: PathBuf, connections: usize) -> SharedKeeper {
        let keeper = Keeper::shared(socket, connections, PATIENCE);
        SharedKeeper {
            additions: Some(keeper.apart(ADDITIONS_MAX)),
            keeper,
            list: Arc::default(),
        }
    }

    /// A keeper that one thread asks.
    pub fn alone(keeper: Keeper) -> SharedKeeper {
        SharedKeeper {
            keeper,
            additions: None,
            list: Arc::default(),
        }
    }

    /// The keeper itself.
    pub fn keeper(&self) -> &Keeper {
        &self.keeper
    }

    /// This keeper for an addition to an answer about this machine, which goes without the addition after [`ADDITION`].
    pub fn for_addition(&self) -> SharedKeeper {
        let keeper = self.additions.as_ref();
        SharedKeeper {
            keeper: keeper.map_or(self.keeper.clone(), |keeper| keeper.within(ADDITION)),
            ..self.clone()
        }
    }

    /// All series, by name.
    pub fn all(&self) -> Result<Listed, String> {
        let ask = || self.keeper.select(&[]);
        self.list.fresh(self.keeper.patience(), ask)
    }

    /// A list that has these series, however old: the columns of a series do not change.
    fn list_with(&self, names: &[Vec<u8>]) -> Result<Listed, String> {
        let has_all = |list: &Listed| names.iter().all(|name| find(list, name).is_some());
        match self.list.newest().filter(has_all) {
            Some(list) => Ok(list),
            None => self.all(),
        }
    }

    /// Adds the lines of these fields, and the notifications of their hosts; with the seconds of the finest row that was read.
    pub fn add(&self, fields: &[StoredField], series: &mut Series) -> Result<Option<u32>, String> {
        let answered = Answered::ask(&self.keeper, fields, series)?;
        let names: Vec<Vec<u8>> = fields.iter().map(|field| field.name.clone()).collect();
        let listed = self.list_with(&names)?;
        answered.add_marks(&self.keeper, series)?;
        Ok(answered.add(fields, &listed, 0, series))
    }
}
