//! A reading of the tail for receivers that name series as files: values of whole series in the journal's order, each with all
//! of its columns.

use std::collections::HashMap;

use kymo_base::label_set;
use kymo_keeper_client::TailSink;
use kymo_wire::collectd::{Value, ValueKind};
use kymo_wire::keeper::{DefinedSeries, MissedPart, NumberedSample};

use super::picker::Picker;

/// Series that are gone, beyond as many as are in use, before their memory is given back.
const GONE_MAX: usize = 4096;

/// A series with the name of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileSeries {
    /// Path below the base, with `.rrd`.
    pub(crate) name: Box<[u8]>,
    /// Seconds of a primary data point.
    pub(crate) step_s: u32,
    /// Kinds of the columns; `None`: one that only rrdtool has.
    pub(crate) kinds: Box<[Option<ValueKind>]>,
}

/// A value of a series: its cells begin at `from`.
#[derive(Clone, Copy, Debug)]
struct FileValue {
    place: usize,
    t_ms: i64,
    from: usize,
}

/// Values of a reading.
pub(crate) struct FileValues {
    picker: Picker,
    /// True for series that the receiver could take.
    is_taken: fn(&FileSeries) -> bool,
    places: HashMap<u32, usize>,
    series: Vec<FileSeries>,
    values: Vec<FileValue>,
    cells: Vec<f64>,
}

impl FileValues {
    /// Values of the series that are picked, and that the receiver could take.
    pub(crate) fn new(picker: Picker, is_taken: fn(&FileSeries) -> bool) -> FileValues {
        FileValues {
            picker,
            is_taken,
            places: HashMap::new(),
            series: Vec::new(),
            values: Vec::new(),
            cells: Vec::new(),
        }
    }

    /// Begins the next reading. All values of the last one are forgotten.
    pub(crate) fn begin(&mut self) {
        self.values.clear();
        self.cells.clear();
        if self.series.len() > 2 * self.places.len() + GONE_MAX {
            let series = std::mem::take(&mut self.series);
            self.places.values_mut().for_each(|place| {
                let kept = series.get(*place).cloned();
                *place = self.series.len();
                self.series.extend(kept);
            });
        }
    }

    /// Number of series that go out.
    pub(crate) fn series(&self) -> usize {
        self.places.len()
    }

    /// Series, time in milliseconds and cells of each value. A value without all of its cells is left out.
    pub(crate) fn each(&self) -> impl Iterator<Item = (&FileSeries, i64, &[f64])> {
        let ends = self.values.iter().skip(1).map(|next| next.from);
        let ends = ends.chain([self.cells.len()]);
        self.values.iter().zip(ends).filter_map(|(value, end)| {
            let series = self.series.get(value.place)?;
            let cells = self.cells.get(value.from..end)?;
            (cells.len() == series.kinds.len()).then_some((series, value.t_ms, cells))
        })
    }

    fn of_definition(&self, defined: &DefinedSeries) -> Option<FileSeries> {
        let mut labels = defined.columns.iter().filter_map(|of| of.labels.as_ref());
        let is_file = defined.kind.is_none() && !label_set::is_set(&defined.name);
        if !is_file || !labels.any(|labels| self.picker.picks(labels)) {
            return None;
        }
        let kind_of = |word: &[u8]| {
            let mut kinds = ValueKind::ALL.into_iter();
            kinds.find(|kind| kind.word().as_bytes() == word)
        };
        let series = FileSeries {
            name: defined.name.as_slice().into(),
            step_s: defined.step_s,
            kinds: defined.columns.iter().map(|of| kind_of(&of.kind)).collect(),
        };
        (self.is_taken)(&series).then_some(series)
    }
}

impl TailSink for FileValues {
    fn restarted(&mut self) {
        self.places.clear();
        self.series.clear();
        self.begin();
    }

    fn defined(&mut self, defined: DefinedSeries) {
        self.places.remove(&defined.series);
        if let Some(series) = self.of_definition(&defined) {
            self.places.insert(defined.series, self.series.len());
            self.series.push(series);
        }
    }

    fn gone(&mut self, series: u32) {
        self.places.remove(&series);
    }

    fn missed(&mut self, _missed: MissedPart) {}

    fn samples(&mut self, samples: &[NumberedSample]) {
        for sample in samples {
            let Some(&place) = self.places.get(&sample.series) else {
                continue;
            };
            let goes_on = |last: &FileValue| {
                let column = self.cells.len() - last.from;
                last.place == place
                    && last.t_ms == sample.t_ms
                    && sample.column > 0
                    && usize::from(sample.column) == column
            };
            if !self.values.last().is_some_and(goes_on) {
                // A value without its first column cannot go out: it gets no cell more than this one.
                self.values.push(FileValue {
                    place,
                    t_ms: sample.t_ms,
                    from: self.cells.len(),
                });
            }
            self.cells.push(sample.v);
        }
    }
}

/// A value of a kind from a number. `None`: the kind has no such value: counts are known, and some of them not negative.
pub(crate) fn value_of(kind: ValueKind, number: f64) -> Option<Value> {
    let is_count = number.is_finite() && number >= 0.0;
    match kind {
        ValueKind::Gauge => Some(Value::Gauge(number)),
        ValueKind::Derive => number.is_finite().then_some(Value::Derive(number as i64)),
        ValueKind::Counter => is_count.then_some(Value::Counter(number as u64)),
        ValueKind::Absolute => is_count.then_some(Value::Absolute(number as u64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kymo_base::label_set::Labels;
    use kymo_wire::keeper::{DefinedColumn, PointKind};
    use std::collections::BTreeMap;

    fn defined(series: u32, name: &str, kinds: &[&str]) -> DefinedSeries {
        let path = name.trim_end_matches(".rrd");
        let column = |kind: &&str| DefinedColumn {
            name: b"value".to_vec(),
            kind: kind.as_bytes().to_vec(),
            labels: Labels::parse(format!("{{__name__=\"rrd\",path=\"{path}\"}}").as_bytes()).ok(),
        };
        DefinedSeries {
            series,
            name: name.into(),
            step_s: 10,
            columns: kinds.iter().map(column).collect(),
            ..DefinedSeries::default()
        }
    }

    fn sample(series: u32, column: u16, t_ms: i64, v: f64) -> NumberedSample {
        NumberedSample {
            series,
            column,
            t_ms,
            v,
        }
    }

    fn texts(values: &FileValues) -> Vec<String> {
        let text = |(series, t_ms, cells): (&FileSeries, i64, &[f64])| {
            format!("{} {t_ms} {cells:?}", String::from_utf8_lossy(&series.name))
        };
        values.each().map(text).collect()
    }

    #[test]
    fn values_have_all_cells_and_their_order() {
        let selectors = [r#"rrd{path!~"no.*"}"#.to_string()];
        let picker = Picker::new(&selectors, &BTreeMap::new(), &[]).unwrap();
        let mut values = FileValues::new(picker, |series| series.kinds.iter().all(Option::is_some));
        values.restarted();
        values.defined(defined(1, "a/b/c.rrd", &["DERIVE", "GAUGE"]));
        values.defined(defined(2, "a/b/d.rrd", &["GAUGE"]));
        values.defined(defined(3, "no/b/d.rrd", &["GAUGE"]));
        values.defined(defined(4, "a/b/e.rrd", &["DCOUNTER"]));
        let point = Some(PointKind::Gauge);
        values.defined(DefinedSeries {
            kind: point,
            ..defined(5, "a/b/f.rrd", &["GAUGE"])
        });
        values.defined(defined(6, "{a=\"b\"}", &["GAUGE"]));
        values.samples(&[
            sample(1, 0, 10, 1.0),
            sample(1, 1, 10, 2.0),
            sample(2, 0, 10, 3.0),
            sample(3, 0, 10, 3.0),
            sample(4, 0, 10, 3.0),
            sample(5, 0, 10, 3.0),
            sample(6, 0, 10, 3.0),
            sample(7, 0, 10, 3.0),
            sample(2, 0, 10, 4.0),
            // A cell is missing.
            sample(1, 0, 20, 5.0),
            sample(1, 1, 30, 6.0),
            sample(1, 0, 40, 7.0),
        ]);
        values.gone(2);
        values.defined(defined(2, "a/b/other.rrd", &["GAUGE"]));
        values.samples(&[sample(1, 1, 40, 8.0), sample(2, 0, 40, 9.0)]);
        let expected = [
            "a/b/c.rrd 10 [1.0, 2.0]",
            "a/b/d.rrd 10 [3.0]",
            "a/b/d.rrd 10 [4.0]",
            "a/b/c.rrd 40 [7.0, 8.0]",
            "a/b/other.rrd 40 [9.0]",
        ];
        assert_eq!(texts(&values), expected);
        values.begin();
        assert!(texts(&values).is_empty());
    }

    #[test]
    fn numbers_become_values() {
        use ValueKind::{Absolute, Counter, Derive, Gauge};
        for (kind, number, value) in [
            (Gauge, -0.5, Some(Value::Gauge(-0.5))),
            (Derive, -7.0, Some(Value::Derive(-7))),
            (Derive, f64::NAN, None),
            (
                Counter,
                9_007_199_254_740_993.0,
                Some(Value::Counter(1 << 53)),
            ),
            (Counter, -1.0, None),
            (Counter, f64::INFINITY, None),
            (Absolute, 3.0, Some(Value::Absolute(3))),
            (Absolute, f64::NAN, None),
        ] {
            assert_eq!(value_of(kind, number), value, "{kind:?} {number}");
        }
        let unknown = value_of(Gauge, f64::NAN);
        assert!(matches!(unknown, Some(Value::Gauge(number)) if number.is_nan()));
    }

    #[test]
    fn series_that_are_gone_give_their_memory_back() {
        let mut values = FileValues::new(Picker::default(), |_| true);
        for number in 0..20_000 {
            values.defined(defined(number, &format!("a/b/{number}.rrd"), &["GAUGE"]));
            if number % 100 != 0 {
                values.gone(number);
            }
            values.begin();
        }
        assert!(values.series.len() < 10_000, "{}", values.series.len());
        values.samples(&[sample(100, 0, 1, 1.0), sample(19_900, 0, 1, 2.0)]);
        assert_eq!(
            texts(&values),
            ["a/b/100.rrd 1 [1.0]", "a/b/19900.rrd 1 [2.0]"]
        );
    }
}
