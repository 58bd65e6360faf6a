//! Where samples come from. A view cannot tell live from recorded from foreign.

use kymo_base::context::Context;
use kymo_base::track::Tracks;

/// The event that a recorder begins with.
pub use kymo_recording::beat::STARTS;

/// A moment on three clocks, in nanoseconds.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Moment {
    /// Sequence number; the order of samples is by this alone.
    pub seq: u64,
    /// CLOCK_REALTIME: what a wall clock showed.
    pub real_ns: i64,
    /// CLOCK_MONOTONIC: what rates divide by.
    pub mono_ns: u64,
    /// CLOCK_BOOTTIME: monotonic plus time asleep.
    pub boot_ns: u64,
    /// Ticks missed just before this sample.
    pub missed: u32,
    /// Read for the rates of the next sample only: not to be shown.
    pub warmup: bool,
}

/// The next step of a source.
#[derive(Debug)]
pub enum Step {
    /// A sample; `tracks` and `context` are as of it.
    Sample(Moment),
    /// Something that happened, as a line of text.
    Event(Moment, String),
    /// The next sample is a new baseline. The reason, in a line; empty: samples between were not asked for.
    Gap(String),
    /// A gap where recorded data is lost or cannot be read. The reason, in a line.
    Damage(String),
}

/// A source of samples: the running machine, a recording, another tool's file.
pub trait Source {
    /// Moves on by one step, waiting for it when live; `None` at the end.
    fn next(&mut self) -> Result<Option<Step>, String>;
    /// The present state of every instance of every kind.
    fn tracks(&self) -> &Tracks;
    /// Facts of the machine the samples are of.
    fn context(&self) -> &Context;
    /// Number of the recording of the last step, if several recordings are played side by side: only
    /// samples of the same recording are subtracted.
    fn stream(&self) -> usize {
        0
    }
}

impl Source for Box<dyn Source> {
    fn next(&mut self) -> Result<Option<Step>, String> {
        (**self).next()
    }

    fn tracks(&self) -> &Tracks {
        (**self).tracks()
    }

    fn context(&self) -> &Context {
        (**self).context()
    }

    fn stream(&self) -> usize {
        (**self).stream()
    }
}
