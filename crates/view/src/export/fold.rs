//! `i=`, `min`, `max`, `avg`, `tot` and `co` of exports: combine several intervals into one value, and drop unchanged values.

use std::collections::HashMap;

use crate::export::names::Exported;
use crate::options::export::{Dialect, Export, Fold};

/// State of each value, and the position within the current group of intervals.
#[derive(Default)]
pub(crate) struct Folded {
    values: HashMap<String, Known>,
    count: u32,
    every: u32,
    interval_secs: f64,
}

struct Known {
    folded: Option<f64>,
    samples: u32,
    last: Option<f64>,
    left: u32,
}

impl Folded {
    /// Begins an interval with its nominal length. Returns true if the interval completes a group, so that values are due.
    pub(crate) fn begin(&mut self, export: &Export, interval_secs: f64) -> Result<bool, String> {
        self.interval_secs = interval_secs;
        self.every = match export.every_secs {
            None => 1,
            Some(secs) => {
                let ratio = f64::from(secs) / interval_secs;
                let whole = (1..=1_000_000).find(|n| (f64::from(*n) - ratio).abs() < 1e-6);
                whole.ok_or_else(|| {
                    format!("cannot use --export with i={secs}: no multiple of the interval, {interval_secs} s")
                })?
            }
        };
        self.count += 1;
        let due = self.count >= self.every;
        if due {
            self.count = 0;
        }
        Ok(due)
    }

    /// Adds a value; returns the value to write, if any.
    pub(crate) fn take(&mut self, export: &Export, value: &Exported, due: bool) -> Option<f64> {
        if export.fold == Fold::Last && !export.changed_only {
            return due.then_some(value.value);
        }
        let now = match export.dialect {
            Dialect::Lexpr => value.value,
            _ if value.decimals > 0 => value.value,
            _ => value.value.trunc(),
        };
        let is_lexpr = export.dialect == Dialect::Lexpr;
        // For totals, collectl's lexpr sums the counts behind rates, and averages states.
        let averages = export.fold == Fold::Average
            || export.fold == Fold::Total && is_lexpr && !value.is_rate;
        let added = match export.fold {
            Fold::Total if is_lexpr && value.is_rate => now * self.interval_secs,
            _ => now,
        };
        let known = self.values.entry(value.name.to_string()).or_insert(Known {
            folded: None,
            samples: 0,
            last: None,
            left: export.ttl,
        });
        known.samples += 1;
        let before = known.folded;
        known.folded = Some(match (export.fold, before) {
            (Fold::Last, _) | (_, None) => added,
            (Fold::Min, Some(before)) => before.min(added),
            (Fold::Max, Some(before)) => before.max(added),
            (Fold::Average | Fold::Total, Some(before)) => before + added,
        });
        if !due {
            return None;
        }
        let folded = known.folded.take()?;
        let samples = f64::from(std::mem::take(&mut known.samples));
        let result = if averages { folded / samples } else { folded };
        if export.changed_only && known.last == Some(result) && known.left > 1 {
            known.left -= 1;
            return None;
        }
        (known.last, known.left) = (Some(result), export.ttl);
        Some(result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(words: &[&str], name: &str, is_rate: bool, values: &[f64]) -> Vec<Option<f64>> {
        let export = Export::parse(name, words).expect("sound");
        let mut folded = Folded::default();
        let each = values.iter().map(|&value| {
            let due = folded.begin(&export, 2.0).expect("a multiple");
            let value = Exported {
                name: "n",
                value,
                decimals: 0,
                units: "",
                group: "",
                is_rate,
            };
            folded.take(&export, &value, due)
        });
        each.collect()
    }

    #[test]
    fn several_become_one() {
        const N: Option<f64> = None;
        let values = [4.0, 1.0, 7.0, 8.0, 2.0, 2.0];
        for (words, name, is_rate, expect) in [
            (
                &["i=6", "min"] as &[&str],
                "lexpr",
                true,
                [N, N, Some(1.0), N, N, Some(2.0)],
            ),
            (
                &["i=6", "max"],
                "graphite",
                true,
                [N, N, Some(7.0), N, N, Some(8.0)],
            ),
            (
                &["i=6", "avg"],
                "gexpr",
                true,
                [N, N, Some(4.0), N, N, Some(4.0)],
            ),
            (
                &["i=6", "tot"],
                "gexpr",
                true,
                [N, N, Some(12.0), N, N, Some(12.0)],
            ),
            (
                &["i=6", "tot"],
                "lexpr",
                true,
                [N, N, Some(24.0), N, N, Some(24.0)],
            ),
            (
                &["i=6", "tot"],
                "lexpr",
                false,
                [N, N, Some(4.0), N, N, Some(4.0)],
            ),
            (&["i=6"], "lexpr", true, [N, N, Some(7.0), N, N, Some(2.0)]),
            (
                &["co"],
                "lexpr",
                true,
                [Some(4.0), Some(1.0), Some(7.0), Some(8.0), Some(2.0), N],
            ),
        ] {
            assert_eq!(
                shown(words, name, is_rate, &values),
                expect,
                "{name} {words:?}"
            );
        }
        let still = shown(&["co", "ttl=3"], "graphite", false, &[5.0; 7]);
        let sent: Vec<bool> = still.iter().map(Option::is_some).collect();
        assert_eq!(sent, [true, false, false, true, false, false, true]);
    }

    #[test]
    fn what_is_refused() {
        for words in [
            &["avg"] as &[&str],
            &["i=0", "avg"],
            &["i=4", "min", "max"],
            &["x"],
            &["co=1"],
        ] {
            assert!(Export::parse("lexpr", words).is_err(), "{words:?}");
        }
        let export = Export::parse("lexpr", &["i=3"]).expect("sound");
        assert!(Folded::default().begin(&export, 2.0).is_err());
    }
}
