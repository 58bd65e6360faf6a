//! Hides instances of details: `-ox` and `-l` show only slow or busy disks, other switches hide idle instances.

/// Instances to leave out of details.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Hidden {
    /// `z` of `--cpuopts`: CPUs that were idle throughout.
    pub(crate) idle_cpus: bool,
    /// `z` of `--dskopts`: disks without I/O.
    pub(crate) idle_disks: bool,
    /// `s` of `--slabopts`: caches without objects.
    pub(crate) empty_slabs: bool,
    /// `S` of `--slabopts`: caches without changes.
    pub(crate) still_slabs: bool,
}

/// Limits from which on a disk is an exception.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Limits {
    service_ms: f64,
    per_second: f64,
    both: bool,
}

/// collectl's limits.
impl Default for Limits {
    fn default() -> Limits {
        Limits {
            service_ms: 30.0,
            per_second: 10.0,
            both: false,
        }
    }
}

impl Limits {
    /// Parses `SVC:N-IOS:N-OR|AND`, or a part of it. Limits of Lustre are accepted and ignored.
    pub(crate) fn parse(text: &str) -> Result<Limits, String> {
        let wrong = |cause: &str| format!("cannot use -l {}: {cause}", text.escape_debug());
        let mut limits = Limits::default();
        for part in text.split('-') {
            let (name, value) = part.split_once(':').unwrap_or((part, ""));
            let number = || {
                let number = value.parse::<f64>().ok();
                number
                    .filter(|number| (0.0..1e12).contains(number))
                    .ok_or_else(|| wrong("not a number"))
            };
            match name {
                "SVC" => limits.service_ms = number()?,
                "IOS" => limits.per_second = number()?,
                "LusKBS" | "LusReints" => {
                    number()?;
                }
                "OR" => limits.both = false,
                "AND" => limits.both = true,
                _ => return Err(wrong("it takes SVC:MS-IOS:N, and OR or AND")),
            }
        }
        Ok(limits)
    }

    /// True if a disk with this service time, and reads or writes per second, is an exception.
    pub(crate) fn pass(self, service_ms: f64, per_second: f64) -> bool {
        let (slow, busy) = (service_ms >= self.service_ms, per_second >= self.per_second);
        match self.both {
            true => slow && busy,
            false => slow || busy,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits() {
        for (text, service_ms, per_second, expect) in [
            ("OR", 31.0, 1.0, true),
            ("OR", 1.0, 11.0, true),
            ("AND", 31.0, 1.0, false),
            ("AND", 31.0, 11.0, true),
            ("SVC:5-IOS:100", 6.0, 1.0, true),
            ("SVC:5-IOS:100-AND", 6.0, 99.0, false),
            ("LusKBS:5-SVC:50", 49.0, 9.0, false),
        ] {
            let limits = Limits::parse(text).expect(text);
            assert_eq!(limits.pass(service_ms, per_second), expect, "{text}");
        }
        for text in ["", "SVC", "SVC:x", "FOO:1", "IOS:-1"] {
            assert!(Limits::parse(text).is_err(), "{text}");
        }
    }
}
