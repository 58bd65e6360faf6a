//! The store as askers may see it: series with people in their names are hidden from askers without the scope for texts.

use std::path::PathBuf;

use kymo_keeper_client::Keeper;
use kymo_query::series::{Grid, Series};
use kymo_query::stored::{KeeperReader, Listed, SharedKeeper, StoredField};
use kymo_wire::keeper::{Programs, PushAccount};

use crate::access::Scopes;
use crate::answer::Refusal;
use crate::guarded::{self, Guarded};
use crate::turns::{KEEPER_TURNS_MAX, SERIES_TURNS_MAX};
use crate::visible::{Described, Visible};

/// The store as the hub sees it.
pub(crate) struct Stored {
    keeper: SharedKeeper,
    /// Connections for questions of Prometheus' clients.
    of_series: Keeper,
}

impl Stored {
    /// The store of the keeper with this socket.
    pub(crate) fn new(socket: PathBuf) -> Stored {
        let keeper = SharedKeeper::new(socket, KEEPER_TURNS_MAX);
        Stored {
            of_series: keeper.keeper().apart(SERIES_TURNS_MAX),
            keeper,
        }
    }

    /// The keeper itself, for questions whose answers tell of no people.
    pub(crate) fn keeper(&self) -> &SharedKeeper {
        &self.keeper
    }

    /// The keeper as a reader for an asker.
    pub(crate) fn reader(&self, scopes: Scopes) -> Visible<KeeperReader> {
        let reader = KeeperReader::new(self.of_series.clone());
        Visible::new(reader, scopes, Described::OfSeries)
    }

    /// The keeper as a reader for an addition to an asker's answer about this machine.
    pub(crate) fn reader_for_addition(&self, scopes: Scopes) -> Visible<KeeperReader> {
        let keeper = self.keeper.for_addition();
        let reader = KeeperReader::new(keeper.keeper().clone());
        Visible::new(reader, scopes, Described::OfSeries)
    }

    /// All series, by name.
    pub(crate) fn list(&self) -> Result<Guarded<Listed>, String> {
        self.keeper.all().map(Guarded::new)
    }

    /// Publishers. Without the scope, the keeper does not even send texts of commands.
    pub(crate) fn programs(&self, scopes: Scopes) -> Result<Programs, String> {
        let programs = self.keeper.keeper().programs(scopes.tells_of_people())?;
        Ok(Guarded::new(programs).seen_by(scopes))
    }

    /// Accounts of senders that push over HTTP. Without the scope, users of this machine have no numbers.
    pub(crate) fn pushers(&self, scopes: Scopes) -> Result<Vec<PushAccount>, Refusal> {
        let pushers = self.keeper.keeper().pushers();
        let mut pushers = pushers.map_err(Refusal::unavailable)?;
        if !scopes.tells_of_people() {
            for account in &mut pushers {
                if account.sender.starts_with("user ") {
                    account.sender = "a user of this machine".into();
                }
            }
        }
        Ok(pushers)
    }

    /// Refuses series with people in their names to askers that may not see them.
    pub(crate) fn check(&self, fields: &[StoredField], scopes: Scopes) -> Result<(), Refusal> {
        let mut names = fields.iter().map(|field| &field.name);
        names.try_for_each(|name| guarded::check_name(name, scopes))
    }

    /// Adds the lines of these fields, and notifications of their hosts. Returns the seconds of the finest row.
    pub(crate) fn add(
        &self,
        fields: &[StoredField],
        scopes: Scopes,
        series: &mut Series,
    ) -> Result<Option<u32>, Refusal> {
        self.check(fields, scopes)?;
        self.keeper
            .add(fields, series)
            .map_err(Refusal::unavailable)
    }
}

/// Grid for an answer of stored series only.
pub(crate) fn grid(from_ns: i64, thru_ns: i64, points: usize) -> Grid {
    Grid::new(from_ns, thru_ns, points, 1_000_000_000)
}
