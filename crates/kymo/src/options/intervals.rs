//! `-i I[:I2[:I3]]`: the interval of samples, and the number of samples between two scans of processes.

use kymo_kernel::subsystem::{self, Subsystem};

/// The three intervals of collectl, the second and third as multiples of the first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Intervals {
    /// Nanoseconds between samples; 0: no pause.
    pub first_ns: u64,
    /// Processes are read at every n-th sample.
    pub second: u32,
    /// The third group (environment) at every n-th sample.
    pub third: u32,
}

/// Default interval of scans of processes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Scans {
    /// The default of the second interval, a minute.
    AtTheirOwn,
    /// Each sample, for `--top`: its user wants to see processes at each interval.
    EachSample,
}

impl Intervals {
    /// The value for `-i`: `10:60:120`.
    pub(crate) fn text(&self) -> String {
        let first = self.first_ns as f64 / 1e9;
        let nth = |n: u32| match self.first_ns {
            0 => f64::from(n),
            _ => first * f64::from(n),
        };
        format!("{first}:{}:{}", nth(self.second), nth(self.third))
    }

    /// Reads the value of `-i`. The defaults are collectl's: 1:60:120, or 10:60:120 if `is_slow`; `-i0:N:M`
    /// counts samples, 6 and 30 by default. If only processes are shown, their interval is the second one.
    pub(crate) fn parse(
        given: Option<&str>,
        letters: &str,
        is_slow: bool,
        scans: Scans,
    ) -> Result<Intervals, String> {
        let text = given.unwrap_or_default();
        let wrong = |cause: &str| format!("cannot use -i {text}: {cause}");
        let mut parts = text.split(':');
        let mut next = || match parts.next() {
            None | Some("") => Ok(None),
            Some(part) => match part.parse::<f64>() {
                Ok(secs) if (0.0..=1e9).contains(&secs) => Ok(Some((secs * 1e9).round() as u64)),
                _ => Err(wrong("not a number of seconds")),
            },
        };
        let (first, second, third) = (next()?, next()?, next()?);
        if parts.next().is_some() {
            return Err(wrong("more than three intervals"));
        }
        let second = match scans {
            Scans::EachSample if second.is_none() && first == Some(0) => Some(SECOND),
            Scans::EachSample => second.or(first).or(Some(default_first(is_slow))),
            Scans::AtTheirOwn => second,
        };
        if first == Some(0) {
            return benchmark(second, third).ok_or_else(|| wrong("not a number of samples"));
        }
        timed(first, second, third, letters, is_slow).map_err(wrong)
    }
}

/// Intervals of `-i0`: the second and third count samples.
fn benchmark(second: Option<u64>, third: Option<u64>) -> Option<Intervals> {
    let ratio = |ns: Option<u64>, default: u64| {
        let ns = ns.unwrap_or(default * SECOND);
        (ns >= SECOND && ns.is_multiple_of(SECOND)).then(|| u32::try_from(ns / SECOND).ok())?
    };
    Some(Intervals {
        first_ns: 0,
        second: ratio(second, 6)?,
        third: ratio(third, 30)?,
    })
}

const SECOND: u64 = 1_000_000_000;

fn default_first(is_slow: bool) -> u64 {
    if is_slow { 10 * SECOND } else { SECOND }
}

fn timed(
    first: Option<u64>,
    second: Option<u64>,
    third: Option<u64>,
    letters: &str,
    is_slow: bool,
) -> Result<Intervals, &'static str> {
    let is_scanned = |letter: char| subsystem::of(letter).is_some_and(Subsystem::is_scanned);
    let only_processes = letters.chars().all(is_scanned);
    let explicit = first.is_some();
    let first = match first {
        // For processes alone there is one interval, the second one, whatever the first is.
        _ if only_processes && second.is_some() => second.unwrap_or(SECOND),
        Some(ns) => ns,
        None if second.is_some() && letters.contains(is_scanned) && !is_slow => SECOND,
        None => default_first(is_slow),
    };
    if first < 1_000_000 {
        return Err("shorter than a millisecond");
    }
    // A default that is no multiple of the first interval is rounded up to one.
    let fit = |given: Option<u64>, default: u64| {
        given.unwrap_or(if only_processes && explicit {
            first
        } else {
            default.next_multiple_of(first)
        })
    };
    let multiple = |ns: u64, short: &'static str, odd: &'static str| {
        if ns < first {
            Err(short)
        } else if !ns.is_multiple_of(first) {
            Err(odd)
        } else {
            u32::try_from(ns / first).map_err(|_| short)
        }
    };
    Ok(Intervals {
        first_ns: first,
        second: multiple(
            fit(second, 60 * SECOND),
            "the second interval is shorter than the first",
            "the second interval is not a multiple of the first",
        )?,
        third: multiple(
            fit(third, 120 * SECOND),
            "the third interval is shorter than the first",
            "the third interval is not a multiple of the first",
        )?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `--top -scd` once showed no process for a minute.
    #[test]
    fn top_reads_processes_at_each_sample() {
        for (given, letters, files, first_ns, second) in [
            (None, "cdZ", false, SECOND, 1),
            (None, "Z", false, SECOND, 1),
            (None, "cdZ", true, 10 * SECOND, 1),
            (Some(".5"), "cdZ", false, SECOND / 2, 1),
            (Some("7"), "Z", false, 7 * SECOND, 1),
            (Some("2:6"), "cdZ", false, 2 * SECOND, 3),
            (Some("0"), "cdZ", false, 0, 1),
            (Some("0:5"), "cdZ", false, 0, 5),
        ] {
            let got = Intervals::parse(given, letters, files, Scans::EachSample);
            let got = got.map(|intervals| (intervals.first_ns, intervals.second));
            assert_eq!(got, Ok((first_ns, second)), "-i {given:?} -s {letters}");
        }
    }

    #[test]
    fn collectls_rules() {
        for (given, letters, files, expect) in [
            (None, "cdn", false, Ok((1.0, 60, 120))),
            (None, "cdn", true, Ok((10.0, 6, 12))),
            (Some("1"), "cdn", false, Ok((1.0, 60, 120))),
            (Some(".1"), "cdn", false, Ok((0.1, 600, 1200))),
            (Some(".1:.1"), "cdnZ", false, Ok((0.1, 1, 1200))),
            (Some("5:10:20"), "cdnZ", false, Ok((5.0, 2, 4))),
            (Some("7"), "cdn", false, Ok((7.0, 9, 18))),
            (Some(":10"), "cZ", false, Ok((1.0, 10, 120))),
            (Some(":10"), "Z", false, Ok((10.0, 1, 12))),
            (Some("2"), "Z", false, Ok((2.0, 1, 1))),
            (Some("0"), "cdnm", true, Ok((0.0, 6, 30))),
            (Some("0:1"), "Z", false, Ok((0.0, 1, 30))),
            (
                Some("10:5"),
                "cZ",
                false,
                Err("the second interval is shorter than the first"),
            ),
            (
                Some("10:25"),
                "cZ",
                false,
                Err("the second interval is not a multiple of the first"),
            ),
            (Some("x"), "c", false, Err("not a number of seconds")),
            (Some("-1"), "c", false, Err("not a number of seconds")),
            (
                Some("1:2:3:4"),
                "c",
                false,
                Err("more than three intervals"),
            ),
            (Some("0:.5"), "c", false, Err("not a number of samples")),
            (Some("nan"), "c", false, Err("not a number of seconds")),
        ] {
            let got = Intervals::parse(given, letters, files, Scans::AtTheirOwn);
            let expect = match expect {
                Ok((secs, second, third)) => Ok(Intervals {
                    first_ns: (f64::round(secs * 1e9)) as u64,
                    second,
                    third,
                }),
                Err(cause) => Err(format!(
                    "cannot use -i {}: {cause}",
                    given.unwrap_or_default()
                )),
            };
            assert_eq!(got, expect, "-i {given:?} -s {letters}");
        }
    }
}
