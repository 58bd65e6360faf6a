//! A daemon's costs from some moment on: CPU, time, and writes of its device.

use super::side::Side;
use crate::fault::Result;
use std::time::Instant;

/// A moment in a daemon's life, with everything before it on its disk.
pub(crate) struct Mark {
    cpu_seconds: f64,
    bytes: u64,
    writes: u64,
    at: Instant,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    pub cpu_seconds: f64,
    /// Until the daemon was done; without the last sync.
    pub wall_seconds: f64,
    pub bytes: f64,
    pub writes: f64,
}

impl Mark {
    pub(crate) fn now(side: &Side) -> Result<Mark> {
        side.disk.sync()?;
        Ok(Mark {
            cpu_seconds: side.cpu_seconds()?,
            bytes: side.disk.written_bytes()?,
            writes: side.disk.writes()?,
            at: Instant::now(),
        })
    }

    /// The cost so far of a daemon that goes on.
    pub(crate) fn so_far(&self, side: &Side) -> Result<Cost> {
        let wall_seconds = self.at.elapsed().as_secs_f64();
        self.cost(side, wall_seconds, side.cpu_seconds()?)
    }

    /// Ends the daemon; its shutdown is part of the cost.
    pub(crate) fn to_the_end(&self, side: &mut Side) -> Result<Cost> {
        let cpu_seconds = side.stop()?;
        self.cost(side, self.at.elapsed().as_secs_f64(), cpu_seconds)
    }

    fn cost(&self, side: &Side, wall_seconds: f64, cpu_seconds: f64) -> Result<Cost> {
        side.disk.sync()?;
        Ok(Cost {
            cpu_seconds: cpu_seconds - self.cpu_seconds,
            wall_seconds,
            bytes: (side.disk.written_bytes()? - self.bytes) as f64,
            writes: (side.disk.writes()? - self.writes) as f64,
        })
    }
}
