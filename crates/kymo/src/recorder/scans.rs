//! Scans of this machine without a recording: of chosen kinds of source alone, for who asks about now.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Result, bail};
use kymo_base::context::Context;
use kymo_kernel::subsystem;
use kymo_recording::queue::Taken;
use kymo_recording::reader::Kinds;

use super::session::{MachineFacts, Session, Setup};
use crate::options::RecordOptions;

/// A sampler that reads once a second.
pub(crate) struct LiveScans {
    session: Session,
    facts: MachineFacts,
    key_wanted: Arc<AtomicBool>,
    batch: Vec<u8>,
}

impl LiveScans {
    /// Begins to scan. Returns the facts of the machine as well. `None`: this machine has none of these kinds.
    pub(crate) fn start(kinds: Kinds) -> Result<Option<(LiveScans, Context)>> {
        let letters = letters(kinds);
        if letters.is_empty() {
            return Ok(None);
        }
        let options = RecordOptions::of_words(["-s", &letters, "-i", "1:1"])?;
        let setup = Setup::new(&options, None)?;
        let key_wanted = Arc::default();
        let session = Session::start(&setup, Arc::clone(&key_wanted))?;
        let scans = LiveScans {
            session,
            facts: setup.facts,
            key_wanted,
            batch: Vec::new(),
        };
        Ok(Some((scans, setup.context)))
    }

    /// The records that have come, waiting for them at most so long.
    pub(crate) fn take(&mut self, at_most: Duration) -> Result<&[u8]> {
        match self.session.queue.take(&mut self.batch, at_most) {
            Taken::Records | Taken::Nothing => Ok(&self.batch),
            Taken::Closed => bail!("cannot go on: the sampler has ended"),
        }
    }

    /// The facts of the machine, if they have changed.
    pub(crate) fn new_facts(&self) -> Option<Context> {
        let changed = &self.session.control.devices_changed;
        let is_new = changed.swap(false, Ordering::Relaxed);
        is_new.then(|| self.facts.gather())
    }

    /// Asks for a sample that needs none before it.
    pub(crate) fn want_key(&self) {
        self.key_wanted.store(true, Ordering::Relaxed);
    }

    /// Ends the sampler.
    pub(crate) fn end(self) {
        (self.session.stopper())();
        self.session.join();
    }
}

/// Letters of the subsystems that have these kinds.
pub(crate) fn letters(kinds: Kinds) -> String {
    let own = subsystem::ALL.iter().filter(|subsystem| {
        let mut sources = subsystem.sources.iter();
        sources.any(|&kind| kinds.contains(kind))
    });
    own.filter_map(|subsystem| subsystem.letters().next())
        .collect()
}
