//! The channel by which programs publish their state and counts: a file in memory for each program. `docs/formats/shm.md` has its layout.
//!
//! [`Publisher`] and [`Slot`] write it, as `include/kymo.h` does for programs in C: a few stores and no system call an update.
//! [`Reader`] reads any of them, and takes each byte for a lie until it is checked. What numbers mean, and where totals of ended
//! programs go, is the keeper's affair.

mod head;
mod header;
mod histogram;
mod layout;
mod life;
mod mapping;
mod metric;
mod reader;
mod version;
mod writer;

pub use head::{Kind, Owner, StampClock, State};
pub use header::{FormatError, Header};
pub use histogram::{Buckets, HistogramTotal};
pub use metric::{Description, GaugeType, LabelPairs, Metric, MetricKind};
pub use reader::{
    Access, Activity, Command, Identity, Label, Liveness, OpenError, ReadError, Reader, Sampled,
    Scratch, Value, epoch_of, file_name,
};
pub use writer::{Cells, Counter, CreateError, Gauge, Histogram, Origin, Publisher, Schema, Slot};

#[cfg(any(test, feature = "testing"))]
pub mod fuzz;
