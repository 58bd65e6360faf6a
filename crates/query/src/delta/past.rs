//! The past of one row: the last value of each field, and the old value of each counter that fell.
//!
//! A counter that falls and then stands where it was before was never reset: a driver gave zeros for a moment, or a
//! text was read half. Its growth meanwhile is spread over the time it was away. A counter that comes back near to its
//! old value, but below it, is not believed in that reading.

use kymo_base::field::{Field, Rule};
use kymo_base::reading::{MISSING, Row};
use kymo_kernel::subsystem::SPREAD_RULE;

use super::{Numbers, Span, added, tells_reset};

/// Readings in which a counter that fell may rest where it fell to, until that is believed (a guess).
const REST_MAX: u32 = 5;

/// Past of a row, or of the globals.
#[derive(Default)]
pub(super) struct Past {
    pub(super) name: Vec<u8>,
    pub(super) key: u64,
    /// The last value of each field, and when it was read.
    pub(super) values: Vec<u64>,
    times: Vec<u64>,
    /// The time of all values, where they are of one reading: `times` is older then.
    read_ns: Option<u64>,
    /// The reading it was last in.
    pub(super) turn: u64,
    /// Counters that fell: most rows have none.
    fallen: Vec<Fallen>,
    /// True: the last reading was a reset.
    pub(super) is_reset: bool,
    /// True: the last reading was beyond the ceiling.
    pub(super) is_beyond: bool,
}

/// A counter that fell.
struct Fallen {
    field: usize,
    /// Value before the fall, and the time of its reading.
    before: u64,
    before_ns: u64,
    /// Readings since.
    readings: u32,
}

/// How a counter that fell goes on. Of several the greatest is that of the row.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Then {
    /// The counter stands where it fell to.
    Rests,
    /// The counter is where it was before the fall, or has grown from there.
    Returns,
    /// The counter is below its old value, but nearer to it than to where it fell to.
    ComesNear,
    /// The counter grows from where it fell to.
    GoesOn,
}

impl Fallen {
    fn then(&self, last: u64, now: u64) -> Then {
        let fell = self.before.saturating_sub(last);
        if now == MISSING || now <= last {
            Then::Rests
        } else if now >= self.before {
            match now - self.before < fell {
                true => Then::Returns,
                false => Then::GoesOn,
            }
        } else if self.before - now < now - last {
            Then::ComesNear
        } else {
            Then::GoesOn
        }
    }
}

/// The rules of the fields; what stands behind the fields is counted by CPU.
fn rule(fields: &[Field], at: usize) -> Rule {
    fields.get(at).map_or(SPREAD_RULE, |field| field.rule)
}

/// A raw value as a number.
fn shown(fields: &[Field], at: usize, raw: u64) -> f64 {
    match fields.get(at) {
        Some(field) => field.value(raw),
        None => raw as f64,
    }
}

impl Past {
    /// A row of this name without a past.
    pub(super) fn of(name: &[u8]) -> Past {
        Past {
            name: name.to_vec(),
            ..Past::default()
        }
    }

    pub(super) fn forget(&mut self, row: &Row) {
        self.key = row.key;
        self.values.clear();
        self.times.clear();
        self.read_ns = None;
        self.fallen.clear();
    }

    /// The counters of a newborn were 0.
    pub(super) fn begin_at_zero(&mut self, fields: &[Field], time_ns: u64) {
        let value = |field: &Field| {
            if field.rule == Rule::Gauge {
                MISSING
            } else {
                0
            }
        };
        self.values.extend(fields.iter().map(value));
        self.times.resize(fields.len(), time_ns);
    }

    /// Writes the difference of each value to its past, then makes it the past.
    pub(super) fn advance(
        &mut self,
        values: &[u64],
        fields: &[Field],
        span: Span,
        out: &mut Numbers,
    ) {
        self.is_reset = false;
        let is_whole = self.read_ns == Some(span.last_ns) && self.values.len() == values.len();
        if is_whole && self.grow(values, fields, out) {
            self.values.copy_from_slice(values);
            self.read_ns = Some(span.now_ns);
            return;
        }
        if let Some(read_ns) = self.read_ns {
            self.times.fill(read_ns);
        }
        self.advance_each(values, fields, span, out);
        let mut pairs = self.values.iter().zip(values);
        let is_whole = self.fallen.is_empty() && pairs.all(|(last, now)| last == now);
        self.read_ns = is_whole.then_some(span.now_ns);
    }

    /// Writes the differences of a reading in which no counter fell and no value is new or missing; false, with an `out` that does
    /// not count, for any other. Nearly all readings are of this kind.
    fn grow(&self, values: &[u64], fields: &[Field], out: &mut Numbers) -> bool {
        out.now.clear();
        out.delta.clear();
        for (at, (&now, &last)) in values.iter().zip(&self.values).enumerate() {
            let rule = rule(fields, at);
            if now == MISSING || last == MISSING {
                if now != last {
                    return false;
                }
                out.now.push(f64::NAN);
                out.delta.push(f64::NAN);
                continue;
            }
            if now < last && rule != Rule::Gauge {
                return false;
            }
            out.now.push(shown(fields, at, now));
            out.delta.push(match rule {
                Rule::Gauge => now.cast_signed() as f64 - last.cast_signed() as f64,
                Rule::Counter64 | Rule::Counter32 | Rule::CounterMayStepBack => (now - last) as f64,
            });
        }
        true
    }

    fn advance_each(&mut self, values: &[u64], fields: &[Field], span: Span, out: &mut Numbers) {
        self.values.resize(values.len(), MISSING);
        self.times.resize(values.len(), span.now_ns);
        if !self.fallen.is_empty() {
            self.settle(values, fields);
        }
        let mut pairs = self.values.iter().zip(values).enumerate();
        self.is_reset = pairs.any(|(at, (&last, &now))| tells_reset(rule(fields, at), last, now));
        out.now.clear();
        out.delta.clear();
        for (at, &now) in values.iter().enumerate() {
            if now == MISSING {
                out.now.push(f64::NAN);
                out.delta.push(f64::NAN);
                continue;
            }
            out.now.push(shown(fields, at, now));
            out.delta
                .push(self.difference(at, now, rule(fields, at), span));
            self.values[at] = now;
            self.times[at] = span.now_ns;
        }
    }

    /// Difference of a value in the interval; NaN: unknown.
    fn difference(&mut self, at: usize, now: u64, rule: Rule, span: Span) -> f64 {
        let last = self.values[at];
        let has_fallen = self.fallen.iter().any(|fallen| fallen.field == at);
        // A field that steps back by itself has added nothing while it rests.
        if last == MISSING || has_fallen && rule != Rule::CounterMayStepBack {
            return f64::NAN;
        }
        let Some(mut delta) = added(rule, last, now, self.is_reset) else {
            if now < last && !has_fallen {
                self.fallen.push(Fallen {
                    field: at,
                    before: last,
                    before_ns: self.times[at],
                    readings: 0,
                });
            }
            return f64::NAN;
        };
        if self.times[at] != span.last_ns {
            // The last reading did not have the value: this is the share of this interval.
            delta *= span.secs() / (span.now_ns - self.times[at]) as f64 * 1e9;
        }
        delta
    }

    /// Decides what became of the counters that fell. A reset sets back all counters of a row that do not step back
    /// by themselves, so these return together or not at all.
    fn settle(&mut self, values: &[u64], fields: &[Field]) {
        let mut fallen = std::mem::take(&mut self.fallen);
        fallen.retain(|one| one.field < values.len());
        let own: Vec<Then> = fallen
            .iter()
            .map(|one| one.then(self.values[one.field], values[one.field]))
            .collect();
        let is_alone = |one: &Fallen| rule(fields, one.field) == Rule::CounterMayStepBack;
        let steady = fallen.iter().zip(&own).filter(|(one, _)| !is_alone(one));
        let together = steady.map(|(_, &then)| then).max();
        for (mut one, own) in fallen.into_iter().zip(own) {
            let then = match own {
                Then::Rests => own,
                _ if is_alone(&one) => own,
                _ => together.unwrap_or(own),
            };
            match then {
                Then::Rests if one.readings < REST_MAX => {
                    one.readings += 1;
                    self.fallen.push(one);
                }
                Then::Returns => {
                    self.values[one.field] = one.before;
                    self.times[one.field] = one.before_ns;
                }
                Then::ComesNear => self.values[one.field] = MISSING,
                Then::Rests | Then::GoesOn => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kymo_base::field::Unit;

    const fn field(rule: Rule, unit: Unit) -> Field {
        Field {
            name: "",
            rule,
            unit,
            help: "",
        }
    }

    const FIELDS: [Field; 5] = [
        field(Rule::Counter64, Unit::Count),
        field(Rule::Counter32, Unit::Count),
        field(Rule::CounterMayStepBack, Unit::Ticks),
        field(Rule::Gauge, Unit::Kilobytes),
        field(Rule::Gauge, Unit::Celsius),
    ];

    /// A past that takes each reading field by field.
    fn advance_slowly(past: &mut Past, values: &[u64], span: Span, out: &mut Numbers) {
        if let Some(read_ns) = past.read_ns.take() {
            past.times.fill(read_ns);
        }
        past.advance_each(values, &FIELDS, span, out);
    }

    proptest::proptest! {
        /// The short way for usual readings gives what the long one does. The sixth value is of a CPU.
        #[test]
        fn usual_readings_have_the_same_differences(
            readings in proptest::collection::vec(
                (proptest::collection::vec(proptest::option::weighted(0.9, 0_u64..40), 6), 0_u64..3),
                1..30,
            ),
        ) {
            let bits = |numbers: &[f64]| numbers.iter().map(|n| n.to_bits()).collect::<Vec<_>>();
            let (mut quick, mut slow) = (Past::default(), Past::default());
            let (mut a, mut b) = (Numbers::default(), Numbers::default());
            let mut grown = [0; 6];
            for (n, (values, kind)) in (1..).zip(readings) {
                // Two of three readings only grow.
                for (sum, value) in grown.iter_mut().zip(&values) {
                    *sum = if kind == 0 { value.unwrap_or(0) } else { *sum + value.unwrap_or(0) };
                }
                let known = grown.iter().zip(&values);
                let values: Vec<u64> = known
                    .map(|(&sum, value)| value.map_or(MISSING, |_| sum))
                    .collect();
                let span = Span { now_ns: n * 1_000, last_ns: (n - 1) * 1_000 };
                quick.advance(&values, &FIELDS, span, &mut a);
                advance_slowly(&mut slow, &values, span, &mut b);
                assert_eq!(bits(&a.now), bits(&b.now));
                assert_eq!(bits(&a.delta), bits(&b.delta));
                assert_eq!((quick.is_reset, &quick.values), (slow.is_reset, &slow.values));
            }
        }
    }
}
