//! Configurations that `kymo serve` cannot poll: when one of them is mended, polling begins again with it.

use std::path::PathBuf;

use kymo_poll::watch::Watch;

use super::check::Debugging;
use super::{PollLog, reading};

/// Configurations that cannot be polled yet, each watched until somebody mends it.
#[derive(Default)]
pub(super) struct Awaited(Vec<AwaitedFile>);

struct AwaitedFile {
    file: PathBuf,
    watch: Watch,
    /// True if a file that the configuration includes may have to be mended.
    is_unread: bool,
}

impl Awaited {
    /// Waits until an unreadable configuration becomes readable.
    pub(super) fn unread(&mut self, file: PathBuf) {
        self.add(file, true);
    }

    /// Waits until a readable configuration that cannot be polled has changed.
    pub(super) fn refused(&mut self, file: PathBuf) {
        self.add(file, false);
    }

    fn add(&mut self, file: PathBuf, is_unread: bool) {
        self.0.push(AwaitedFile {
            watch: Watch::of([file.clone()]),
            file,
            is_unread,
        });
    }

    /// True if any configuration is waited for.
    pub(super) fn is_any(&self) -> bool {
        !self.0.is_empty()
    }

    /// Finds a configuration that may have been mended.
    pub(super) fn mended(&mut self) -> Option<PathBuf> {
        self.0.iter_mut().find_map(|of| {
            let is_looked_at = of.watch.changed() || of.is_unread;
            (is_looked_at && is_readable(of)).then(|| of.file.clone())
        })
    }
}

fn is_readable(of: &AwaitedFile) -> bool {
    let debugging = Debugging::new(&[], false);
    reading::read_all(
        std::slice::from_ref(&of.file),
        &debugging,
        &PollLog::silent(),
    )
    .is_ok()
}
