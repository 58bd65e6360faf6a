//! State of programs that publish, at a moment of the recording.

use kymo_base::track::Track;
use kymo_kernel::source::kind;
use kymo_recording::reader::{Kinds, TimeRange};
pub use kymo_wire::activity::Recorded;
use kymo_wire::activity::read;

use crate::open::Recordings;
use crate::source::Step;

const SECOND_NS: i64 = 1_000_000_000;

/// How far to look back for a sample: as far as the usual interval, then further.
const REACHES_NS: [i64; 3] = [12 * SECOND_NS, 150 * SECOND_NS, 7200 * SECOND_NS];
/// A sample says nothing of a moment that is later by more than this, and by more than this number of intervals.
const LATER_NS: i64 = 15 * SECOND_NS;
const LATER_INTERVALS: i64 = 3;

/// As of the last sample at or before `at_ns`. `None`: nothing was recorded of it then.
pub fn at(recordings: &Recordings, at_ns: i64) -> Result<Option<Recorded>, String> {
    for reach_ns in REACHES_NS {
        let range = TimeRange {
            from_ns: at_ns.saturating_sub(reach_ns),
            thru_ns: at_ns,
        };
        let mut source = recordings.open(range, Kinds::from_iter([kind::ACTIVITY]))?;
        // The last two samples.
        let mut samples_ns: [Option<i64>; 2] = [None; 2];
        let mut found = None;
        while let Some(step) = source.next()? {
            match step {
                Step::Sample(moment) if moment.real_ns > at_ns => break,
                Step::Sample(moment) => {
                    samples_ns = [samples_ns[1], Some(moment.real_ns)];
                    let track = source.tracks().get(kind::ACTIVITY);
                    // A key without programs ends the known state.
                    let is_known = track.instances().next().is_some();
                    if track.sampled || found.is_none() || !is_known {
                        found = recorded(track);
                    }
                }
                Step::Damage(_) => found = None,
                Step::Gap(_) | Step::Event(..) => {}
            }
        }
        let [before_ns, Some(last_ns)] = samples_ns else {
            continue;
        };
        let interval_ns = before_ns.map_or(0, |before_ns| last_ns - before_ns);
        let later_ns = LATER_NS.max(interval_ns.saturating_mul(LATER_INTERVALS));
        return Ok(found.filter(|_| at_ns - last_ns <= later_ns));
    }
    Ok(None)
}

fn recorded(track: &Track) -> Option<Recorded> {
    let texts = track.instances().map(|(_, instance)| {
        let mut text = Vec::new();
        track.render(instance, &mut text);
        (&instance.name[..], text)
    });
    let texts: Vec<(&[u8], Vec<u8>)> = texts.collect();
    read(texts.iter().map(|(name, text)| (*name, &text[..])))
}
