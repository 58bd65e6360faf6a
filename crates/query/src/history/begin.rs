//! Where the history of this machine begins.

use std::sync::Mutex;
use std::time::Duration;

use kymo_sys::clock::{Clock as _, RealClock};
use kymo_sys::machine;
use kymo_wire::keeper::Range;

use super::{SECOND_NS, name};
use crate::stored::SharedKeeper;

/// Reach of the longest rows: two years.
const KEPT_S: i64 = 17_520 * 3600;
/// A history that is shorter has no row of an hour yet.
const LATELY_S: i64 = 2 * 3600;
/// How long a begin holds, and how long it holds that there is none.
const FRESH: Duration = Duration::from_secs(600);
const NONE_FRESH: Duration = Duration::from_secs(10);

/// The begin of the stored history, as it was found last.
#[derive(Default)]
pub struct Begin {
    /// With the monotonic nanoseconds when it was found.
    known: Mutex<Option<(u64, Option<i64>)>>,
}

impl Begin {
    /// In nanoseconds since 1970; `None`: nothing is stored, or the keeper cannot be asked.
    pub fn ns(&self, stored: &SharedKeeper, now_ns: i64) -> Option<i64> {
        let mono_ns = RealClock.mono_ns();
        let holds_ns = |begin: Option<i64>| begin.map_or(NONE_FRESH, |_| FRESH).as_nanos();
        let known = *self.known.lock().ok()?;
        if let Some((at_ns, begin)) = known
            && u128::from(mono_ns.saturating_sub(at_ns)) < holds_ns(begin)
        {
            return begin;
        }
        let begin = begin_s(&stored.for_addition(), now_ns.div_euclid(SECOND_NS))
            .map(|begin| begin.saturating_mul(SECOND_NS));
        *self.known.lock().ok()? = Some((mono_ns, begin));
        begin
    }
}

/// The first known row of the longest ones, then the first of the finer rows in it.
fn begin_s(stored: &SharedKeeper, now: i64) -> Option<i64> {
    let labels = name(&machine::host(), "cpu.total", None)?;
    let first = |(from, thru): (i64, i64)| {
        let range = Range {
            names: vec![labels.text().to_vec()],
            from,
            thru,
            rows_max: 1000,
        };
        let rows = stored.keeper().range(&range).ok()?.pop()?.ok()?;
        let known = rows.mean.iter().position(|mean| !mean.is_nan())?;
        let step = i64::from(rows.step);
        let begin = rows.start + step * i64::try_from(known).ok()?;
        Some((begin, begin + step))
    };
    let found = first((now - KEPT_S, now)).or_else(|| first((now - LATELY_S, now)))?;
    Some(first(found).unwrap_or(found).0)
}
