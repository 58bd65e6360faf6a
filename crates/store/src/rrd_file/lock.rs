//! Waits for a file until no thread writes it and no other process locks it.

use crate::engine::Inner;
use crate::error::FileError;
use crate::rrd_file::header::open_locked;
use kymo_sys::disk::{DiskFile, RecordLock};
use std::time::Duration;

/// Pause between two attempts to take a lock that another process holds.
pub(crate) const LOCK_PAUSE: Duration = Duration::from_millis(5);

/// A file that is reserved for one thread until this is dropped.
pub(crate) struct Reserved<'a> {
    inner: &'a Inner,
    pub(crate) id: u32,
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        let mut state = self.inner.lock();
        if let Some(series) = state.series.get_mut(self.id) {
            series.file.release();
        }
        self.inner.changed.notify_all();
    }
}

impl Inner {
    pub(crate) fn lock_deadline(&self) -> u64 {
        self.clock.mono_ns() + self.settings.lock_wait.as_nanos() as u64
    }

    /// Opens and locks a file; waits for the lock as long as FLUSH does.
    pub(crate) fn locked(
        &self,
        path: &[u8],
        lock: RecordLock,
    ) -> Result<Box<dyn DiskFile>, FileError> {
        let deadline = self.lock_deadline();
        loop {
            if let Some(file) = open_locked(&*self.tree, path, lock)? {
                return Ok(file);
            }
            if self.clock.mono_ns() >= deadline {
                return Err(FileError::Locked);
            }
            std::thread::sleep(LOCK_PAUSE);
        }
    }

    /// Reserves a file, after waiting for the thread that
    /// writes it; `None` if the series is not known any more.
    pub(crate) fn reserve(&self, id: u32) -> Result<Option<Reserved<'_>>, FileError> {
        let deadline = self.lock_deadline();
        let mut state = self.lock();
        loop {
            let Some(series) = state.series.get_mut(id) else {
                return Ok(None);
            };
            if series.file.reserve() {
                return Ok(Some(Reserved { inner: self, id }));
            }
            if self.clock.mono_ns() >= deadline {
                return Err(FileError::Locked);
            }
            state = self.wait(state);
        }
    }
}
