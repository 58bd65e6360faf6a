//! The current time for rrdtool's arithmetic.

use std::time::{SystemTime, UNIX_EPOCH};

use kymo_rrd::update::Now;

/// The current time.
pub(super) fn now() -> Now {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let since = since.unwrap_or_default();
    Now {
        sec: since.as_secs() as i64,
        usec: since.subsec_micros().into(),
    }
}
