//! Robust score of a value against the values before it, and the exceptions: onsets, jobs of cron, falls.

use super::gather::Value;
use super::signals::Way;

const SECOND_NS: i64 = 1_000_000_000;
const HOUR_NS: i64 = 3_600 * SECOND_NS;
/// How far a job that comes each hour may be early or late.
const EARLY_NS: i64 = 150 * SECOND_NS;
/// Scales the median of distances to what the standard deviation would be.
const NORMAL: f64 = 1.4826;
/// Least score that is news.
pub(super) const SCORE_MIN: f64 = 3.0;
/// Fewest values from which the usual one is computed.
const VALUES_MIN: usize = 5;
/// Percent of the values before that an unusual one has to exceed.
const USUAL_PERCENT: usize = 98;
/// Values of a span among which one burst of traffic is nothing.
const BURSTS_MIN: usize = 4;
/// Share of the usual minimum that is left of fallen traffic.
const FALLEN: f64 = 0.35;
/// Share of the distance from the usual value at which something has begun, or is the same again.
const HALF: f64 = 0.5;

/// A value that is unusual.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Verdict {
    /// The value.
    pub value: f64,
    /// The usual one.
    pub usual: f64,
    /// Distance in usual distances.
    pub score: f64,
    /// Since when, if it began before the span.
    pub since_ns: Option<i64>,
}

/// Values to be judged.
pub(super) struct Question<'a> {
    /// The values before the span and in it, in the order of time.
    pub values: &'a [Value],
    /// The span.
    pub span: (i64, i64),
    /// Least usual distance.
    pub floor: f64,
    /// The way that is unusual.
    pub way: Way,
    /// True for an amount that only adds up, such as memory: the older half of the values is usual.
    pub is_stock: bool,
}

impl Question<'_> {
    /// The verdict; `None`: nothing unusual, or too little is known. A peak is unusual, or the mean of all of the span is.
    pub(super) fn verdict(&self) -> Option<Verdict> {
        // No value is further from the usual one than from any other.
        let values = self.values.iter().map(|value| value.value);
        let least = values.clone().fold(f64::INFINITY, f64::min);
        let most = values.fold(f64::NEG_INFINITY, f64::max);
        if most - least < SCORE_MIN * self.floor {
            return None;
        }
        let (before, within) = self.split();
        if within.is_empty() {
            return None;
        }
        let ways: &[Way] = match self.way {
            Way::Both => &[Way::Up, Way::Down],
            Way::Up => &[Way::Up],
            Way::Down => &[Way::Down],
        };
        let peaks = ways.iter().filter_map(|&way| {
            let mut values: Vec<f64> = within.iter().map(|value| value.value).collect();
            values.sort_unstable_by(|a, b| b.total_cmp(a));
            let peak = match (way, self.way) {
                // Traffic comes in bursts: one of them is nothing, and it has fallen when all of it has.
                (Way::Up, Way::Both) if values.len() >= BURSTS_MIN => values.get(1).copied(),
                (Way::Up, _) | (Way::Down, Way::Both) => values.first().copied(),
                (Way::Down | Way::Both, _) => values.last().copied(),
            };
            self.judged(way, peak?, &before)
        });
        let mean = || {
            let before: Vec<Value> = before.rchunks(within.len()).rev().map(mean).collect();
            self.judged(ways[0], mean(&within).value, &before)
        };
        peaks
            .max_by(|a, b| a.score.total_cmp(&b.score))
            .or_else(|| (within.len() > 1).then(mean).flatten())
    }

    /// The verdict of one value.
    fn judged(&self, way: Way, value: f64, before: &[Value]) -> Option<Verdict> {
        let (from_ns, _) = self.span;
        if before.len() < VALUES_MIN {
            return None;
        }
        let sign = sign(way);
        let rough = Usual::of(before, self.is_stock);
        let half = HALF * sign * (value - rough.median);
        let is_alike = |other: f64| sign * (other - rough.median) >= half;
        let onset = onset(before, &is_alike);
        let (rest, since_ns) = match onset >= VALUES_MIN.max(before.len() / 3) {
            true => (
                &before[..onset],
                before.get(onset).map(|first| first.from_ns),
            ),
            false => (before, None),
        };
        let usual = Usual::of(rest, self.is_stock);
        let distance = sign * (value - usual.median);
        let most = sign * quantile(rest.iter().map(|value| sign * value.value), USUAL_PERCENT);
        let is_fall = way == Way::Down && self.way == Way::Both;
        let (scale, is_beyond) = match is_fall {
            // Traffic that varies much cannot fall by many distances.
            true => (self.floor, value <= FALLEN * most),
            false => {
                let scale = (NORMAL * usual.deviation).max(self.floor);
                // Bursts reach as far again now and then.
                let burst = sign * (most - usual.median);
                let least = self.floor.min(distance / 4.0).max(burst);
                (scale, sign * (value - most) >= least)
            }
        };
        let score = distance / scale;
        let came_an_hour_ago = || {
            let then = |ns: i64| ns - (from_ns - HOUR_NS);
            let then = rest.iter().filter(|old| {
                then(old.thru_ns) >= -EARLY_NS && then(old.from_ns) <= self.length() + EARLY_NS
            });
            let alike: Vec<bool> = then.map(|old| is_alike(old.value)).collect();
            match is_fall {
                true => !alike.is_empty() && !alike.contains(&false),
                false => alike.contains(&true),
            }
        };
        (score >= SCORE_MIN && is_beyond && !came_an_hour_ago()).then_some(Verdict {
            value,
            usual: usual.median,
            score,
            since_ns: since_ns.filter(|since_ns| *since_ns < from_ns),
        })
    }

    fn length(&self) -> i64 {
        self.span.1 - self.span.0
    }

    /// Values before the span and in it. The short ones at its edges are left out where there are others.
    fn split(&self) -> (Vec<Value>, Vec<Value>) {
        let (from_ns, thru_ns) = self.span;
        let length = |value: &Value| value.thru_ns - value.from_ns;
        let longest = self.values.iter().map(length).max().unwrap_or(0);
        let is_long = |value: &&Value| length(value) * 3 >= longest.min(10 * SECOND_NS);
        let middle = |value: &Value| value.from_ns + length(value) / 2;
        let long = || self.values.iter().filter(is_long).copied();
        let before = long().filter(|value| middle(value) < from_ns);
        let within = long().filter(|value| (from_ns..=thru_ns).contains(&middle(value)));
        (before.collect(), within.collect())
    }
}

fn sign(way: Way) -> f64 {
    match way {
        Way::Up | Way::Both => 1.0,
        Way::Down => -1.0,
    }
}

/// The mean of successive values of about the same length.
fn mean(values: &[Value]) -> Value {
    let count = u32::try_from(values.len()).unwrap_or(1).max(1);
    let sum: f64 = values.iter().map(|value| value.value).sum();
    Value {
        from_ns: values.first().map_or(0, |first| first.from_ns),
        thru_ns: values.last().map_or(0, |last| last.thru_ns),
        value: sum / f64::from(count),
    }
}

/// Where the values begin that are like the one in the span, up to its begin. One in between may be unlike.
fn onset(before: &[Value], is_alike: &dyn Fn(f64) -> bool) -> usize {
    let (mut onset, mut unlike) = (before.len(), 0);
    for (n, value) in before.iter().enumerate().rev() {
        match is_alike(value.value) {
            true => (onset, unlike) = (n, 0),
            false => unlike += 1,
        }
        if unlike > 1 {
            break;
        }
    }
    onset
}

/// Median and median distance from it.
struct Usual {
    median: f64,
    deviation: f64,
}

impl Usual {
    fn of(values: &[Value], is_stock: bool) -> Usual {
        let values = match is_stock {
            true => &values[..values.len().div_ceil(2)],
            false => values,
        };
        let median = quantile(values.iter().map(|value| value.value), 50);
        let distances = values.iter().map(|value| (value.value - median).abs());
        Usual {
            median,
            deviation: quantile(distances, 50),
        }
    }
}

/// The median of values; NaN of nothing.
#[cfg(feature = "store")]
pub(super) fn median(values: &[Value]) -> f64 {
    quantile(values.iter().map(|value| value.value), 50)
}

/// A quantile in percent; NaN of nothing.
fn quantile(values: impl Iterator<Item = f64>, percent: usize) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    let at = values.len().saturating_sub(1) * percent;
    values.get(at.div_ceil(100)).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values each 10 s up to the end of the span, which is the last minute.
    fn judged(
        before: &[f64],
        within: &[f64],
        floor: f64,
        way: Way,
    ) -> Option<(f64, f64, Option<i64>)> {
        let all = before.iter().chain(within).zip(1..);
        let values: Vec<Value> = all
            .map(|(&value, n): (&f64, i64)| Value {
                from_ns: (n - 1) * 10 * SECOND_NS,
                thru_ns: n * 10 * SECOND_NS,
                value,
            })
            .collect();
        let from_ns = i64::try_from(before.len()).unwrap() * 10 * SECOND_NS;
        let question = Question {
            values: &values,
            span: (from_ns, from_ns + 60 * SECOND_NS),
            floor,
            way,
            is_stock: false,
        };
        let verdict = question.verdict()?;
        let since = verdict
            .since_ns
            .map(|since_ns| (from_ns - since_ns) / SECOND_NS);
        Some((verdict.usual, verdict.score, since))
    }

    #[test]
    fn scores_begin_at_three_floors() {
        let flat = [1.0; 360];
        assert_eq!(judged(&flat, &[3.9; 6], 1.0, Way::Up), None);
        assert_eq!(judged(&[10.0; 360], &[4.0; 6], 1.0, Way::Both), None);
        assert_eq!(
            judged(&flat, &[5.0; 6], 1.0, Way::Up),
            Some((1.0, 4.0, None))
        );
        assert_eq!(judged(&flat, &[-5.0; 6], 1.0, Way::Up), None);
        assert_eq!(
            judged(&flat, &[-5.0; 6], 1.0, Way::Both),
            Some((1.0, 6.0, None))
        );
        assert_eq!(judged(&flat[..4], &[5.0; 6], 1.0, Way::Up), None);
        // One value of the six is enough up, two of traffic, and all are needed down.
        let spike = [1.0, 1.0, 5.0, 1.0, 1.0, 1.0];
        assert!(judged(&flat, &spike, 1.0, Way::Up).is_some());
        assert!(judged(&flat, &spike, 1.0, Way::Both).is_none());
        assert!(judged(&[9.0; 360], &[9.0, 0.0, 0.0, 0.0, 0.0, 0.0], 1.0, Way::Both).is_none());
    }

    #[test]
    fn what_came_often_is_usual_and_what_came_once_is_not() {
        let mut often = [1.0; 360];
        often.iter_mut().step_by(30).for_each(|value| *value = 50.0);
        let spike = [1.0, 1.0, 50.0, 1.0, 1.0, 1.0];
        assert_eq!(judged(&often, &spike, 1.0, Way::Up), None);
        // A spike that stays is unusual all the same.
        assert!(judged(&often, &[50.0; 6], 1.0, Way::Up).is_some());
        let mut once = [1.0; 360];
        once[100..104].fill(50.0);
        assert_eq!(
            judged(&once, &[50.0; 6], 1.0, Way::Up),
            Some((1.0, 49.0, None))
        );
        // A spike in the same minute of the hour before.
        once[1..4].fill(50.0);
        assert_eq!(judged(&once, &[50.0; 6], 1.0, Way::Up), None);
    }

    #[test]
    fn what_goes_on_is_not_its_own_measure() {
        let mut long = [1.0; 360];
        long[240..].fill(50.0);
        assert_eq!(
            judged(&long, &[50.0; 6], 1.0, Way::Up),
            Some((1.0, 49.0, Some(1200)))
        );
    }
}
