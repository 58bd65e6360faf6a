//! Series as an asker may see them: a reader that leaves out those that tell of people.

use std::sync::LazyLock;

use kymo_base::column::Value;
use kymo_base::label_set;
use kymo_kernel::subsystem::{self, Subsystem};
use kymo_query::sheet::id;
use kymo_series::names::{self, METRIC};
use kymo_series::{
    Budget, Labels, Matcher, Metadata, Op, ReadError, Reader, RowSink, RowsAs, SampleSink,
    SeriesId, TimeRange,
};

use crate::access::Scopes;
use crate::guarded::PERSONAL;

/// Matchers that every series without people fits.
static WITHOUT_PEOPLE: LazyLock<Vec<Matcher>> = LazyLock::new(|| {
    let labels = PERSONAL.iter().filter_map(|label| {
        let label = std::str::from_utf8(label).ok()?;
        Matcher::new(label, Op::Equal, "").ok()
    });
    let hidden = hidden_metrics().join("|");
    let names = Matcher::new(METRIC, Op::NotMatches, &hidden);
    labels.chain(names).collect()
});

/// Metrics of control groups, and of columns that are private: their labels need not say so.
fn hidden_metrics() -> Vec<String> {
    let mut hidden = Vec::new();
    for subsystem in subsystem::ALL {
        let columns = subsystem.columns.iter().chain(subsystem.detail);
        let numbers = columns.filter(|column| matches!(column.value, Value::Number(_)));
        let private = numbers.filter(|column| column.private);
        hidden.extend(private.map(|column| names::field_metric(&id(subsystem, column, None))));
        if subsystem.is_private() {
            hidden.extend(exposed(subsystem).map(str::to_string));
        }
    }
    hidden.sort();
    hidden.dedup();
    hidden
}

fn exposed(subsystem: &Subsystem) -> impl Iterator<Item = &'static str> + use<> {
    let each = subsystem.exposed.each.iter();
    let of_each = each.flat_map(|each| each.families);
    let families = subsystem.exposed.machine.iter().chain(of_each);
    families.map(|family| family.name)
}

/// Names of metrics that a reader describes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Described {
    /// All possible names, from tables.
    Always,
    /// Names of series that there are.
    OfSeries,
}

/// A reader for an asker with these scopes.
pub(crate) struct Visible<R> {
    reader: R,
    scopes: Scopes,
    described: Described,
    /// Lists of labels say nothing of earlier times, because finding them would take long.
    listed_from_ms: i64,
}

impl<R: Reader> Visible<R> {
    /// The series of a reader that the asker may see.
    pub(crate) fn new(reader: R, scopes: Scopes, described: Described) -> Visible<R> {
        Visible {
            reader,
            scopes,
            described,
            listed_from_ms: i64::MIN,
        }
    }

    /// Earlier series are not looked for.
    pub(crate) fn listed_from(self, listed_from_ms: i64) -> Visible<R> {
        Visible {
            listed_from_ms,
            ..self
        }
    }

    fn matchers(&self, given: &[Matcher]) -> Vec<Matcher> {
        let hidden = match self.scopes.tells_of_people() {
            true => &[],
            false => &WITHOUT_PEOPLE[..],
        };
        given.iter().chain(hidden).cloned().collect()
    }

    fn listed(&self, range: TimeRange) -> TimeRange {
        TimeRange {
            from_ms: range.from_ms.max(self.listed_from_ms.min(range.thru_ms)),
            ..range
        }
    }

    fn shows(&self, id: SeriesId) -> bool {
        let tells = |labels: Labels| {
            label_set::each(labels.text()).any(|(label, _)| PERSONAL.contains(&label))
        };
        self.scopes.tells_of_people() || !self.reader.labels(id).is_some_and(tells)
    }
}

impl<R: Reader> Reader for Visible<R> {
    fn select(
        &self,
        matchers: &[Matcher],
        range: TimeRange,
        budget: &mut Budget,
    ) -> Result<Vec<SeriesId>, ReadError> {
        let matchers = self.matchers(matchers);
        let mut ids = self.reader.select(&matchers, self.listed(range), budget)?;
        ids.retain(|&id| self.shows(id));
        Ok(ids)
    }

    fn labels(&self, id: SeriesId) -> Option<Labels> {
        self.reader.labels(id)
    }

    fn samples(
        &self,
        ids: &[SeriesId],
        range: TimeRange,
        rows: RowsAs,
        budget: &mut Budget,
        sink: &mut dyn SampleSink,
    ) -> Result<(), ReadError> {
        self.reader.samples(ids, range, rows, budget, sink)
    }

    fn rows(
        &self,
        ids: &[SeriesId],
        range: TimeRange,
        step_s: u32,
        budget: &mut Budget,
        sink: &mut dyn RowSink,
    ) -> Result<(), ReadError> {
        self.reader.rows(ids, range, step_s, budget, sink)
    }

    fn label_names(
        &self,
        matchers: &[Matcher],
        range: TimeRange,
    ) -> Result<Vec<String>, ReadError> {
        let matchers = self.matchers(matchers);
        self.reader.label_names(&matchers, self.listed(range))
    }

    fn label_values(
        &self,
        label: &str,
        matchers: &[Matcher],
        range: TimeRange,
    ) -> Result<Vec<String>, ReadError> {
        let matchers = self.matchers(matchers);
        let range = self.listed(range);
        self.reader.label_values(label, &matchers, range)
    }

    fn metadata(&self, metric: Option<&str>) -> Result<Vec<Metadata>, ReadError> {
        let mut all = self.reader.metadata(metric)?;
        if self.scopes.tells_of_people() {
            return Ok(all);
        }
        let fits = |of: &Metadata| {
            let of_name = WITHOUT_PEOPLE.iter().filter(|m| m.label() == METRIC);
            of_name.into_iter().all(|m| m.matches(of.metric.as_bytes()))
        };
        all.retain(fits);
        if self.described == Described::OfSeries {
            let names = self.label_values(METRIC, &[], TimeRange::ALL)?;
            let is_there = |metric: String| names.binary_search(&metric).is_ok();
            // A histogram has no series of its own name, only its parts have.
            let ends = ["", "_bucket", "_sum", "_count"];
            all.retain(|of| {
                ends.iter()
                    .any(|end| is_there(format!("{}{end}", of.metric)))
            });
        }
        Ok(all)
    }

    fn missing(&self) -> Vec<String> {
        self.reader.missing()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Series with one label each.
    struct Listed(Vec<Labels>);

    impl Reader for Listed {
        fn select(
            &self,
            matchers: &[Matcher],
            _range: TimeRange,
            budget: &mut Budget,
        ) -> Result<Vec<SeriesId>, ReadError> {
            let picks = |labels: &Labels| {
                let value = |m: &Matcher| label_set::value(labels.text(), m.label()).into_owned();
                matchers.iter().all(|m| m.matches(&value(m)))
            };
            let picked = self.0.iter().enumerate().filter(|(_, of)| picks(of));
            let ids: Vec<SeriesId> = picked.map(|(place, _)| SeriesId::at(place)).collect();
            budget.take_series(ids.len())?;
            Ok(ids)
        }

        fn labels(&self, id: SeriesId) -> Option<Labels> {
            self.0.get(id.place()).cloned()
        }

        fn samples(
            &self,
            _ids: &[SeriesId],
            _range: TimeRange,
            _rows: RowsAs,
            _budget: &mut Budget,
            _sink: &mut dyn SampleSink,
        ) -> Result<(), ReadError> {
            Ok(())
        }

        fn rows(
            &self,
            _ids: &[SeriesId],
            _range: TimeRange,
            _step_s: u32,
            _budget: &mut Budget,
            _sink: &mut dyn RowSink,
        ) -> Result<(), ReadError> {
            Ok(())
        }

        fn label_names(
            &self,
            matchers: &[Matcher],
            range: TimeRange,
        ) -> Result<Vec<String>, ReadError> {
            let ids = self.select(matchers, range, &mut Budget::UNLIMITED.clone())?;
            let sets = ids.into_iter().filter_map(|id| self.labels(id));
            let mut names: Vec<String> = sets
                .flat_map(|of| {
                    let names = label_set::each(of.text());
                    let names = names.map(|(name, _)| String::from_utf8_lossy(name).into_owned());
                    names.collect::<Vec<_>>()
                })
                .collect();
            names.sort();
            names.dedup();
            Ok(names)
        }

        fn label_values(
            &self,
            label: &str,
            matchers: &[Matcher],
            range: TimeRange,
        ) -> Result<Vec<String>, ReadError> {
            let ids = self.select(matchers, range, &mut Budget::UNLIMITED.clone())?;
            let sets = ids.into_iter().filter_map(|id| self.labels(id));
            let values = sets.map(|of| {
                let value = label_set::value(of.text(), label);
                String::from_utf8_lossy(&value).into_owned()
            });
            let mut values: Vec<String> = values.filter(|value| !value.is_empty()).collect();
            values.sort();
            values.dedup();
            Ok(values)
        }

        fn metadata(&self, _metric: Option<&str>) -> Result<Vec<Metadata>, ReadError> {
            let all = self.label_values(METRIC, &[], TimeRange::ALL)?.into_iter();
            let all = all.map(|metric| Metadata::of_kind(metric, kymo_series::Kind::Gauge));
            Ok(all.collect())
        }
    }

    fn listed() -> Listed {
        let cgroup = hidden_metrics().pop().unwrap();
        let sets: [&[(&str, &str)]; 4] = [
            &[("__name__", "node_load1"), ("job", "node")],
            &[("__name__", "app_jobs_total"), ("user", "ada")],
            &[("__name__", "app_runs_total"), ("cmdline", "sleep 7")],
            &[("__name__", &cgroup), ("of", "user.slice")],
        ];
        let sets = sets.map(|set| set.iter().map(|(name, value)| (*name, value.as_bytes())));
        Listed(sets.map(|set| Labels::new(set).unwrap()).into())
    }

    #[test]
    fn people_are_neither_found_nor_counted() {
        let visible = |scopes| Visible::new(listed(), scopes, Described::OfSeries);
        for (scopes, count) in [(Scopes::ALL, 4), (Scopes::NONE, 1)] {
            let mut budget = Budget {
                series: count,
                samples: 0,
            };
            let visible = visible(scopes);
            let found = visible.select(&[], TimeRange::ALL, &mut budget).unwrap();
            assert_eq!(u64::try_from(found.len()), Ok(count));
            let described = visible.metadata(None).unwrap().len();
            assert_eq!(u64::try_from(described), Ok(count));
        }
        let hidden = visible(Scopes::NONE);
        let names = hidden.label_names(&[], TimeRange::ALL).unwrap();
        assert_eq!(names, ["__name__", "job"]);
        let users = hidden.label_values("user", &[], TimeRange::ALL).unwrap();
        assert_eq!(users, [""; 0]);
        for (op, value) in [(Op::Equal, "ada"), (Op::Matches, ".+"), (Op::NotEqual, "")] {
            let given = [Matcher::new("user", op, value).unwrap()];
            let mut budget = Budget::UNLIMITED;
            let found = hidden.select(&given, TimeRange::ALL, &mut budget).unwrap();
            assert_eq!(found, [], "{op:?}");
        }
    }

    #[test]
    fn control_groups_are_hidden_by_name() {
        let hidden = hidden_metrics();
        let has = |name: &str| hidden.iter().any(|hidden| hidden == name);
        assert!(!hidden.is_empty() && hidden.iter().all(|name| !name.contains('|')));
        assert!(!has("node_load1") && !has("kymo_cpu_user"));
    }
}
