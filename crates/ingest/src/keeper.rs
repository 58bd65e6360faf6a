//! The keeper owns the store: opens it, runs its threads while listeners use it, and ends it in order.

use std::io;
use std::sync::Arc;

use kymo_store::{Claim, Settings, Store};
use kymo_sys::clock::RealClock;
use kymo_sys::disk::RealDisk;

use crate::log::{Log, Severity};

/// A store that is open.
pub struct Keeper {
    store: Store,
    log: Log,
}

impl Keeper {
    /// Opens the store; the log gets what was found.
    pub fn open(settings: Settings, claim: Claim, log: Log) -> Result<Keeper, kymo_store::Error> {
        let opened = Store::open_claimed(settings, claim, Arc::new(RealDisk), Arc::new(RealClock));
        let (store, replayed) = opened?;
        for notice in &replayed.notices {
            log(Severity::Notice, notice);
        }
        let found = format!(
            "replayed {} values of {} files, {} files written again",
            replayed.values, replayed.files, replayed.redone
        );
        log(Severity::Info, &found);
        Ok(Keeper { store, log })
    }

    /// Runs the store's threads while `listen` serves clients, then ends the store. `listen` says whether all values are to be
    /// written into .rrd files first; so does the answer. An error says what failed.
    pub fn run(
        self,
        writers: usize,
        listen: impl FnOnce(Store) -> io::Result<bool>,
    ) -> Result<bool, String> {
        let log = self.log.clone();
        let threads = self.store.start(
            writers,
            Arc::new(move |line: &str| log(Severity::Error, line)),
        );
        let ended = listen(self.store.clone());
        threads.stop();
        let flush = ended.map_err(|error| format!("cannot serve: {error}"))?;
        let done = self.store.shutdown(flush);
        for line in self.store.take_notices() {
            (self.log)(Severity::Error, &line);
        }
        done.map_err(|error| format!("cannot end in order: {error}"))?;
        Ok(flush)
    }
}
