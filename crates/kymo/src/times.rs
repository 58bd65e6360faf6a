//! `--from` and `--thru` as a range of wall time, in the time zone of the recorded machine.

pub(crate) mod days;
#[cfg(feature = "serve")]
pub(crate) mod words;

use std::path::Path;
use std::sync::{Arc, Once};

use anyhow::Result;
use kymo_base::context::Context;
use kymo_query::recorded::Recorded;
use kymo_query::source::{Moment, Source as _, Step};
use kymo_recording::reader::{Kinds, Recording, TimeRange};
use kymo_sys::clock::{Clock as _, RealClock};
use kymo_sys::disk::RealDisk;
use kymo_sys::talk;
#[cfg(feature = "serve")]
use kymo_view::time::Bound;
use kymo_view::time::{Span, Zone};

/// The span of two switches. A duration is relative to now.
pub(crate) fn span(from: Option<&str>, thru: Option<&str>) -> Result<Span, String> {
    Span::parse(from, thru, RealClock.now().real_ns)
}

/// Time zone of a machine; prints a message once if UTC is used instead.
pub(crate) fn zone_of(context: &Context) -> Zone {
    static SAID: Once = Once::new();
    let zone = Zone::of(context);
    if let Some(remark) = zone.remark() {
        SAID.call_once(|| talk::say(format_args!("kymo: {remark}")));
    }
    zone
}

/// The moment of a time; one without a day is the last such one up to the end of the recording. `None`: there is none.
#[cfg(feature = "serve")]
pub(crate) fn last_moment(mut bound: Bound, zone: &mut Zone, last_ns: i64) -> Option<i64> {
    const DAY_NS: i64 = 86_400_000_000_000;
    match bound.of_every_day().map(|wall| wall.second) {
        None => bound.moment(zone),
        Some(second) => {
            let days = [last_ns, last_ns - DAY_NS].map(|ns| zone.local(ns).day);
            let moments = days.map(|day| zone.moment(day, second));
            moments.into_iter().flatten().find(|ns| *ns <= last_ns)
        }
    }
}

/// Ranges between two times, each of which may be missing. Times without a day hold for every day: a range of each. The view
/// checks each sample.
pub(crate) fn ranges(
    from: Option<&str>,
    thru: Option<&str>,
    path: &Path,
) -> Result<Vec<TimeRange>> {
    let span = span(from, thru).map_err(anyhow::Error::msg)?;
    if span == Span::default() {
        return Ok(vec![TimeRange::ALL]);
    }
    let (context, first) = beginning(path)?;
    let mut zone = zone_of(&context);
    let days = span.of_each_day(&mut zone, first.real_ns, last_ns(path)?);
    let days = days.unwrap_or_else(|| vec![span.moments(&zone)]);
    let range = |(from_ns, thru_ns)| TimeRange { from_ns, thru_ns };
    Ok(days.into_iter().map(range).collect())
}

/// One range that has all of [`ranges`]: of a recording of one day the times of that day, of several days all of it.
pub(crate) fn range(from: Option<&str>, thru: Option<&str>, path: &Path) -> Result<TimeRange> {
    let mut span = span(from, thru).map_err(anyhow::Error::msg)?;
    if span == Span::default() {
        return Ok(TimeRange::ALL);
    }
    let (context, first) = beginning(path)?;
    let first_ns = first.real_ns;
    let mut zone = zone_of(&context);
    let first_day = zone.local(first_ns).day;
    if first_day == zone.local(last_ns(path)?).day {
        for bound in [&mut span.from, &mut span.thru].into_iter().flatten() {
            if let Some(wall) = bound.of_every_day() {
                wall.day = Some(first_day);
            }
        }
    }
    let (from_ns, thru_ns) = span.moments(&zone);
    Ok(TimeRange { from_ns, thru_ns })
}

/// Facts of a recording's first sample, and its time.
pub(crate) fn beginning(path: &Path) -> Result<(Context, Moment)> {
    let mut recorded =
        Recorded::open(path, TimeRange::ALL, Kinds::NONE).map_err(anyhow::Error::msg)?;
    let mut first = Moment::default();
    while let Some(step) = recorded.next().map_err(anyhow::Error::msg)? {
        if let Step::Sample(moment) | Step::Event(moment, _) = step {
            first = moment;
            if recorded.context().get("host").is_some() {
                break;
            }
        }
    }
    Ok((recorded.context().clone(), first))
}

/// A time after all samples: now, or for a single block the end in its name.
pub(crate) fn last_ns(path: &Path) -> Result<i64> {
    let now_ns = RealClock.now().real_ns;
    if !path.is_file() {
        return Ok(now_ns);
    }
    let recording = Recording::open(Arc::new(RealDisk), path)?;
    let blocks = recording.blocks(&recording.folders()?)?;
    let ends = blocks
        .iter()
        .filter_map(|block| i64::try_from(block.name.wall_max_s).ok());
    Ok(ends
        .max()
        .map_or(now_ns, |end_s| end_s.saturating_mul(1_000_000_000)))
}
