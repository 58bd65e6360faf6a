//! Sends numbers to the keeper, each as a series named by its labels. A counter that falls was reset, and has an unknown value
//! there. While the server does not answer, all values are unknown.

use std::collections::HashMap;
use std::path::PathBuf;

use kymo_base::label_set::Labels;
use kymo_keeper_client::Keeper;
use kymo_wire::keeper::{LabelledSeries, LabelledValues};

use super::columns::Kind;
use super::numbers::Number;

/// Interval of values, seconds.
pub(super) const STEP_S: u32 = 10;
/// Seconds without a value after which a series is unknown.
const HEARTBEAT_S: u32 = 120;
const COLUMN: &[u8] = b"value";
const JOB: &[u8] = b"postgres";
/// Most series in one question to the keeper.
const TOGETHER: usize = 1000;

/// The series of a server.
pub(super) struct Series {
    pub(super) keeper: Keeper,
    server: String,
    known: HashMap<Labels, Known>,
    /// True if the next values come after a gap.
    is_after_gap: bool,
}

struct Known {
    is_defined: bool,
    last: f64,
}

/// A value of a series, and the kind of the series.
struct Value {
    labels: Labels,
    kind: Kind,
    value: f64,
}

impl Series {
    /// The series of a server, stored by the keeper at this socket.
    pub(super) fn new(keeper: PathBuf, server: &str) -> Series {
        Series {
            keeper: Keeper::at(keeper),
            server: server.into(),
            known: HashMap::new(),
            is_after_gap: true,
        }
    }

    /// Makes all series unknown up to their next values.
    pub(super) fn gap(&mut self) {
        self.is_after_gap = true;
    }

    /// Sends numbers; an error has the reason in words.
    pub(super) fn write(&mut self, numbers: &[Number], now_s: i64) -> Result<(), String> {
        let values: Vec<Value> = numbers
            .iter()
            .filter_map(|number| self.value(number))
            .collect();
        let mut first_s = now_s;
        if std::mem::take(&mut self.is_after_gap) {
            first_s -= 1;
        }
        for values in values.chunks(TOGETHER) {
            if let Err(why) = self.hand_over(values, first_s, now_s) {
                self.is_after_gap = true;
                return Err(why);
            }
        }
        Ok(())
    }

    fn value(&mut self, number: &Number) -> Option<Value> {
        let labels = labels(&self.server, number)?;
        let known = self.known.entry(labels.clone()).or_insert(Known {
            is_defined: false,
            last: f64::NAN,
        });
        let is_reset = number.kind == Kind::Counter && number.value < known.last;
        known.last = number.value;
        Some(Value {
            labels,
            kind: number.kind,
            value: if is_reset { f64::NAN } else { number.value },
        })
    }

    /// Defines new series and sends values. Series that the keeper has lost are defined again, and their values are sent again.
    fn hand_over(&mut self, values: &[Value], first_s: i64, now_s: i64) -> Result<(), String> {
        self.define(values, now_s)?;
        let all: Vec<&Value> = values.iter().collect();
        let missing = self.give(&all, first_s, now_s)?;
        if missing.is_empty() {
            return Ok(());
        }
        for value in &missing {
            if let Some(known) = self.known.get_mut(&value.labels) {
                known.is_defined = false;
            }
        }
        self.define(values, now_s)?;
        match self.give(&missing, first_s, now_s)?.first() {
            Some(value) => Err(format!("the keeper does not take {:?}", value.labels)),
            None => Ok(()),
        }
    }

    fn define(&mut self, values: &[Value], now_s: i64) -> Result<(), String> {
        let is_new = |value: &&Value| {
            let known = self.known.get(&value.labels);
            known.is_some_and(|known| !known.is_defined)
        };
        let new: Vec<&Value> = values.iter().filter(is_new).collect();
        if new.is_empty() {
            return Ok(());
        }
        let definitions = new.iter().map(|value| LabelledSeries {
            labels: value.labels.clone(),
            step: STEP_S,
            heartbeat: HEARTBEAT_S,
            start: now_s - 2 * i64::from(STEP_S),
            columns: vec![(COLUMN.to_vec(), kind(value.kind).to_vec())],
        });
        let outcomes = self.keeper.define(definitions.collect())?;
        for (value, outcome) in new.iter().zip(outcomes) {
            outcome?;
            if let Some(known) = self.known.get_mut(&value.labels) {
                known.is_defined = true;
            }
        }
        Ok(())
    }

    /// Sends values; returns those whose series the keeper does not know.
    fn give<'a>(
        &self,
        values: &[&'a Value],
        first_s: i64,
        now_s: i64,
    ) -> Result<Vec<&'a Value>, String> {
        let stamps: Vec<i64> = (first_s..=now_s).map(|s| s * 1000).collect();
        let rows = values.iter().map(|value| {
            let mut cells = vec![f64::NAN; stamps.len()];
            if let Some(last) = cells.last_mut() {
                *last = value.value;
            }
            LabelledValues {
                labels: value.labels.clone(),
                stamps_ms: stamps.clone(),
                cells,
            }
        });
        let outcomes = self.keeper.write(rows.collect())?;
        let refused = values.iter().zip(outcomes);
        Ok(refused
            .filter(|(_, outcome)| outcome.is_err())
            .map(|(value, _)| *value)
            .collect())
    }
}

/// The keeper's kind of a series. Counters are DDERIVE, as times have fractions of milliseconds.
fn kind(kind: Kind) -> &'static [u8] {
    match kind {
        Kind::Counter => b"DDERIVE",
        Kind::Gauge => b"GAUGE",
    }
}

fn labels(server: &str, number: &Number) -> Option<Labels> {
    let mut labels = vec![
        ("job", JOB),
        ("server", server.as_bytes()),
        ("field", number.field.as_bytes()),
    ];
    labels.extend(number.of.iter().map(|(label, value)| (*label, &value[..])));
    Labels::new(labels).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_went_back_is_unknown_once() {
        let mut series = Series::new(PathBuf::new(), "main");
        let mut number = Number {
            field: "xact_commit",
            kind: Kind::Counter,
            of: Some(("database", b"shop".to_vec())),
            value: 0.0,
        };
        for (value, given) in [(10.0, 10.0), (12.0, 12.0), (3.0, f64::NAN), (4.0, 4.0)] {
            number.value = value;
            let made = series.value(&number).unwrap();
            assert_eq!(made.value.to_string(), given.to_string(), "{value}");
            assert_eq!(
                String::from_utf8_lossy(made.labels.text()),
                r#"{database="shop",field="xact_commit",job="postgres",server="main"}"#
            );
        }
        number.kind = Kind::Gauge;
        number.value = 1.0;
        assert_eq!(series.value(&number).unwrap().value, 1.0);
    }
}
