//! Intervals of costly sources, which `kymo serve` passes to its recorder: control groups and the space of file systems.

use clap::Args;

/// Fact of a recording that has these intervals: `cgroups=10 filesystems=60`, in seconds.
pub(crate) const OWN_INTERVALS: &str = "own_intervals";
const SECOND_NS: f64 = 1e9;
/// Longest interval, in seconds.
const LONGEST_S: f64 = 86_400.0;

/// Intervals of control groups and of file systems, and a limit of groups.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct OwnIntervals {
    /// Seconds between two reads of control groups; default: each sample
    #[arg(long, value_name = "SECONDS", hide = true)]
    pub group_interval: Option<f64>,
    /// Most control groups that are read
    #[arg(long, value_name = "N", hide = true)]
    pub groups: Option<usize>,
    /// Seconds between two looks at the space of file systems; default: each scan of processes
    #[arg(long, value_name = "SECONDS", hide = true)]
    pub filesystem_interval: Option<f64>,
}

/// Nanoseconds of an interval; 0 for none.
pub(crate) fn nanoseconds(seconds: f64) -> Result<u64, String> {
    match (0.0..=LONGEST_S).contains(&seconds) {
        // The range was checked, and a fraction of a nanosecond is dropped.
        true => Ok(std::time::Duration::from_secs_f64(seconds)
            .as_nanos()
            .try_into()
            .unwrap_or(0)),
        false => Err(format!("it takes 0 to {LONGEST_S} seconds")),
    }
}

impl OwnIntervals {
    /// Interval of control groups in nanoseconds; 0: each sample.
    pub(crate) fn group_ns(&self) -> Result<u64, String> {
        let cause = |cause| format!("cannot use --group-interval: {cause}");
        self.group_interval
            .map_or(Ok(0), nanoseconds)
            .map_err(cause)
    }

    /// Interval of the space of file systems in nanoseconds; 0: each scan of processes.
    pub(crate) fn space_ns(&self) -> Result<u64, String> {
        let cause = |cause| format!("cannot use --filesystem-interval: {cause}");
        self.filesystem_interval
            .map_or(Ok(0), nanoseconds)
            .map_err(cause)
    }

    /// The fact [`OWN_INTERVALS`]; `None` if no source has an interval of its own.
    pub(crate) fn fact(&self) -> Option<String> {
        let of = |name: &str, seconds: Option<f64>| {
            let seconds = seconds.filter(|&seconds| seconds * SECOND_NS >= 1.0)?;
            Some(format!("{name}={seconds}"))
        };
        let facts = [
            of("cgroups", self.group_interval),
            of("filesystems", self.filesystem_interval),
        ];
        let facts: Vec<String> = facts.into_iter().flatten().collect();
        (!facts.is_empty()).then(|| facts.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_have_a_range_and_a_fact() {
        for (groups, space, expect) in [
            (None, None, (Ok(0), Ok(0), None)),
            (
                Some(10.0),
                Some(60.5),
                (
                    Ok(10_000_000_000),
                    Ok(60_500_000_000),
                    Some("cgroups=10 filesystems=60.5"),
                ),
            ),
            (Some(0.0), None, (Ok(0), Ok(0), None)),
            (
                Some(-1.0),
                Some(f64::NAN),
                (Err(()), Err(()), Some("cgroups=-1")),
            ),
            (
                Some(1e9),
                None,
                (Err(()), Ok(0), Some("cgroups=1000000000")),
            ),
        ] {
            let own = OwnIntervals {
                group_interval: groups,
                groups: None,
                filesystem_interval: space,
            };
            let found = (
                own.group_ns().map_err(|_| ()),
                own.space_ns().map_err(|_| ()),
            );
            assert_eq!(
                (found.0, found.1),
                (expect.0, expect.1),
                "{groups:?} {space:?}"
            );
            if found.0.is_ok() && found.1.is_ok() {
                assert_eq!(own.fact().as_deref(), expect.2, "{groups:?} {space:?}");
            }
        }
    }
}
