//! Since when each series of an expression's results is there, and which of its begins and ends are to be said.

use std::collections::BTreeMap;

use kymo_promql::LabelSet;

/// A series begins at most once in this time.
pub(super) const REST_MS: i64 = 60_000;

/// Something that is to be said of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// The series has been there for as long as asked.
    Begins,
    /// The series is no longer there.
    Ends,
}

impl Turn {
    pub(super) fn name(self) -> &'static str {
        match self {
            Turn::Begins => "begins",
            Turn::Ends => "ends",
        }
    }
}

/// A begin or an end.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SeriesTurn {
    pub(super) turn: Turn,
    pub(super) t_ms: i64,
    pub(super) labels: LabelSet,
    /// The last value.
    pub(super) v: f64,
}

/// The series of the last result, and those that have begun a short time ago.
pub(super) struct Held {
    hold_ms: i64,
    series: BTreeMap<LabelSet, Series>,
}

struct Series {
    /// `None`: it is not there.
    since_ms: Option<i64>,
    /// True between its begin and its end.
    has_begun: bool,
    /// No begin before this time.
    rests_until_ms: i64,
    v: f64,
    seen_ms: i64,
}

impl Held {
    /// No series yet; one begins when it was there for `hold_ms`.
    pub(super) fn new(hold_ms: i64) -> Held {
        Held {
            hold_ms,
            series: BTreeMap::new(),
        }
    }

    /// Takes in the result of a moment, later than those before, and calls `say` with what changes.
    pub(super) fn step<'a>(
        &mut self,
        t_ms: i64,
        result: impl IntoIterator<Item = (&'a LabelSet, f64)>,
        mut say: impl FnMut(SeriesTurn),
    ) {
        for (labels, v) in result {
            // Labels are shared, so that a copy is cheap.
            let series = self.series.entry(labels.clone()).or_insert(Series {
                since_ms: None,
                has_begun: false,
                rests_until_ms: i64::MIN,
                v,
                seen_ms: t_ms,
            });
            let since_ms = *series.since_ms.get_or_insert(t_ms);
            (series.v, series.seen_ms) = (v, t_ms);
            let holds = t_ms.saturating_sub(since_ms) >= self.hold_ms;
            if !series.has_begun && holds && t_ms >= series.rests_until_ms {
                series.has_begun = true;
                series.rests_until_ms = t_ms.saturating_add(REST_MS);
                say(series.change(Turn::Begins, t_ms, labels));
            }
        }
        self.series.retain(|labels, series| {
            if series.seen_ms == t_ms {
                return true;
            }
            series.since_ms = None;
            if std::mem::replace(&mut series.has_begun, false) {
                say(series.change(Turn::Ends, t_ms, labels));
            }
            t_ms < series.rests_until_ms
        });
    }
}

impl Series {
    fn change(&self, turn: Turn, t_ms: i64, labels: &LabelSet) -> SeriesTurn {
        SeriesTurn {
            turn,
            t_ms,
            labels: labels.clone(),
            v: self.v,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Begins and ends of the only series, which is there in these seconds.
    fn turns(hold_s: i64, seconds: i64, is_there: impl Fn(i64) -> bool) -> Vec<(i64, Turn)> {
        let (mut held, mut turns) = (Held::new(hold_s * 1000), Vec::new());
        let labels = LabelSet::new(&[("a", "b")]);
        for second in 0..seconds {
            let result = is_there(second).then_some((&labels, 1.0));
            held.step(second * 1000, result, |change| {
                turns.push((change.t_ms / 1000, change.turn));
            });
        }
        turns
    }

    #[test]
    fn a_series_begins_when_it_held_and_ends_when_it_is_gone() {
        use Turn::{Begins, Ends};
        let there = |second: i64| (10..20).contains(&second);
        assert_eq!(turns(0, 40, there), [(10, Begins), (20, Ends)]);
        assert_eq!(turns(5, 40, there), [(15, Begins), (20, Ends)]);
        assert_eq!(turns(9, 40, there), [(19, Begins), (20, Ends)]);
        assert_eq!(turns(10, 40, there), []);
        assert_eq!(turns(5, 40, |second| second % 5 != 0), []);
    }

    /// A series that comes and goes each second begins once a minute, and each begin has its end.
    #[test]
    fn one_that_flaps_begins_once_a_minute() {
        use Turn::{Begins, Ends};
        let expect = [
            (0, Begins),
            (1, Ends),
            (60, Begins),
            (61, Ends),
            (120, Begins),
            (121, Ends),
        ];
        assert_eq!(turns(0, 150, |second| second % 2 == 0), expect);
        // One that stays begins as soon as the minute is over.
        let stays = [(0, Begins), (1, Ends), (60, Begins)];
        assert_eq!(turns(0, 150, |second| second != 1), stays);
    }

    #[test]
    fn series_that_are_gone_take_no_memory() {
        let mut held = Held::new(0);
        for second in 0..1000 {
            let labels = LabelSet::new(&[("a", &second.to_string())]);
            held.step(second * 1000, [(&labels, 1.0)], |_| {});
        }
        assert_eq!(held.series.len(), 60);
    }
}
