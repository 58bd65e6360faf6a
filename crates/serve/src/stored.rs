//! Series of the store, as the hub has them from the keeper: what there is, and their rows as lines beside those of the
//! recording.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kymo_query::marks::Mark;
use kymo_query::series::{Grid, Series};
use kymo_query::stored::{Answered, Keeper, StoredField, find};
use kymo_sys::clock::{Clock as _, RealClock};
use kymo_wire::keeper::{Accounts, Programs, Range, Rows, SeriesInfo};

use crate::access::Scopes;
use crate::answer::Refusal;
use crate::guarded::{self, Guarded};

/// A keeper that does not answer the smallest question within this hangs.
const PROBED: Duration = Duration::from_secs(1);
/// Pause after which the hub asks a hanging keeper again for additions to answers.
const LEFT_ALONE: Duration = Duration::from_secs(10);
/// How long a list of all series holds.
const FRESH: Duration = Duration::from_secs(10);

/// All series.
pub(crate) type Listed = Arc<Vec<SeriesInfo>>;

/// The store as the hub sees it.
pub(crate) struct Stored {
    keeper: Keeper,
    /// A connection on which nothing waits.
    probe: Keeper,
    /// When the keeper did not answer.
    silent_ns: Mutex<Option<u64>>,
    listed: Mutex<Option<(u64, Listed)>>,
}

impl Stored {
    /// That of the keeper which answers on this socket.
    pub(crate) fn new(socket: PathBuf) -> Stored {
        Stored {
            probe: Keeper::with_patience(socket.clone(), PROBED),
            silent_ns: Mutex::new(None),
            keeper: Keeper::at(socket),
            listed: Mutex::new(None),
        }
    }

    /// All series, by name.
    pub(crate) fn list(&self) -> Result<Guarded<Listed>, String> {
        self.all().map(Guarded::new)
    }

    /// All series, also private ones. This machine's history needs them; answers must not use them.
    pub(crate) fn all(&self) -> Result<Listed, String> {
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

    /// Asks the keeper for an addition to an answer about this machine. Skips the question while the keeper hangs, so
    /// that only stored series are missing.
    pub(crate) fn if_awake<T>(&self, ask: impl FnOnce() -> Result<T, String>) -> Option<T> {
        if !self.is_awake() {
            return None;
        }
        let answer = ask().ok();
        if answer.is_none() {
            *self.silent() = Some(RealClock.mono_ns());
        }
        answer
    }

    fn silent(&self) -> MutexGuard<'_, Option<u64>> {
        self.silent_ns
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Others wait for the answer to the same probe.
    fn is_awake(&self) -> bool {
        let mut silent = self.silent();
        let left_alone = LEFT_ALONE.as_nanos() as u64;
        let now_ns = RealClock.mono_ns();
        if silent.is_some_and(|at_ns| now_ns.saturating_sub(at_ns) < left_alone) {
            return false;
        }
        let is_awake = self.probe.is_watched().is_ok();
        *silent = (!is_awake).then(|| RealClock.mono_ns());
        is_awake
    }

    /// Notifications of these hosts (none named: of all hosts) by time. Empty while the keeper hangs.
    pub(crate) fn marks_if_awake(&self, range: (i64, i64), hosts: Vec<Vec<u8>>) -> Vec<Mark> {
        let marks = self.if_awake(|| self.keeper.marks(range, hosts));
        marks.unwrap_or_default()
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
