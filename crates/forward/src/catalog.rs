//! The series that go to a receiver. A column of a series has a place, by which samples are grouped.

use std::collections::HashMap;

use kymo_wire::keeper::{DefinedColumn, DefinedSeries, PointKind};
use kymo_wire::remote_write::MetricType;

use super::picker::Picker;
use super::texts::Texts;

/// Places of series that are gone, beyond as many as are in use, before the catalog is made smaller.
const GONE_MAX: usize = 4096;

/// A column that goes out.
#[derive(Debug)]
pub(crate) struct Column {
    /// Numbers of texts: name, value, name ..., sorted by names. Empty: the column stays here.
    pub(crate) labels: Box<[u32]>,
    /// Type for the receiver.
    pub(crate) metric_type: MetricType,
    /// True if NaN means that there is no value, and not one that a sender sent.
    nan_is_none: bool,
}

/// Places of the columns of a series.
#[derive(Clone, Copy, Debug)]
struct Places {
    first: u32,
    count: u16,
}

/// The series that a tail defined.
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    texts: Texts,
    series: HashMap<u32, Places>,
    columns: Vec<Column>,
    /// Columns of series that are gone, or defined again.
    gone: usize,
}

impl Catalog {
    /// Forgets all series.
    pub(crate) fn clear(&mut self) {
        *self = Catalog::default();
    }

    /// Defines a series, in place of the one with its number. Its columns stay here if none of them is picked.
    pub(crate) fn define(&mut self, series: &DefinedSeries, picker: &Picker) {
        self.remove(series.series);
        let columns = series.columns.iter();
        let columns: Vec<Column> = columns
            .map(|column| self.column(series, column, picker))
            .collect();
        let is_picked = columns.iter().any(|column| !column.labels.is_empty());
        let first = u32::try_from(self.columns.len());
        let count = u16::try_from(columns.len());
        if let (true, Ok(first), Ok(count)) = (is_picked, first, count) {
            self.columns.extend(columns);
            self.series.insert(series.series, Places { first, count });
        }
    }

    fn column(&mut self, series: &DefinedSeries, of: &DefinedColumn, picker: &Picker) -> Column {
        let picked = of.labels.as_ref().and_then(|labels| picker.pick(labels));
        let picked = picked.unwrap_or_default();
        let texts = picked.iter().flat_map(|(name, value)| [name, value]);
        let labels: Option<Box<[u32]>> = texts.map(|text| self.texts.number(text)).collect();
        Column {
            labels: labels.unwrap_or_default(),
            metric_type: metric_type(series.kind, &of.kind),
            nan_is_none: series.kind.is_none(),
        }
    }

    /// Forgets a series.
    pub(crate) fn remove(&mut self, series: u32) {
        if let Some(places) = self.series.remove(&series) {
            self.gone += usize::from(places.count);
        }
    }

    /// The place of a column; `None`: this value does not go out.
    pub(crate) fn place(&self, series: u32, column: u16, value: f64) -> Option<u32> {
        let places = self.series.get(&series).filter(|of| column < of.count)?;
        let place = places.first.checked_add(column.into())?;
        let column = self.column_at(place)?;
        let is_none = column.nan_is_none && value.is_nan();
        (!is_none && !column.labels.is_empty()).then_some(place)
    }

    /// The column of a place.
    pub(crate) fn column_at(&self, place: u32) -> Option<&Column> {
        self.columns.get(usize::try_from(place).ok()?)
    }

    /// Places.
    pub(crate) fn len(&self) -> usize {
        self.columns.len()
    }

    /// The texts of labels.
    pub(crate) fn texts(&self) -> &Texts {
        &self.texts
    }

    /// Gives back the memory of series that are gone, once they are the larger part. Places change.
    pub(crate) fn tidy(&mut self) {
        if self.gone <= GONE_MAX + self.columns.len() / 2 {
            return;
        }
        let old = std::mem::take(self);
        let mut columns: Vec<Option<Column>> = old.columns.into_iter().map(Some).collect();
        for (series, places) in old.series {
            let Ok(first) = u32::try_from(self.columns.len()) else {
                return;
            };
            for place in 0..places.count {
                let at = usize::try_from(places.first).ok();
                let at = at.and_then(|at| at.checked_add(place.into()));
                let column = at.and_then(|at| columns.get_mut(at)?.take());
                let column = column.map(|column| self.renumbered(column, &old.texts));
                self.columns.extend(column);
            }
            let count = places.count;
            self.series.insert(series, Places { first, count });
        }
    }

    /// A column of another catalog, with numbers of own texts.
    fn renumbered(&mut self, column: Column, texts: &Texts) -> Column {
        let labels = column.labels.iter();
        let labels = labels.map(|&number| self.texts.number(texts.text(number)));
        let labels: Option<Box<[u32]>> = labels.collect();
        Column {
            labels: labels.unwrap_or_default(),
            ..column
        }
    }
}

fn metric_type(series: Option<PointKind>, column: &[u8]) -> MetricType {
    match (series, column) {
        (Some(PointKind::Counter), _) | (None, b"COUNTER" | b"DERIVE" | b"DCOUNTER") => {
            MetricType::Counter
        }
        (Some(PointKind::Gauge), _) | (None, b"GAUGE") => MetricType::Gauge,
        (Some(PointKind::Histogram), _) => MetricType::Histogram,
        (Some(PointKind::Untyped), _) | (None, _) => MetricType::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kymo_base::label_set::Labels;

    fn series(number: u32, kind: Option<PointKind>, labels: &[&str]) -> DefinedSeries {
        let column = |text: &&str| DefinedColumn {
            name: b"value".to_vec(),
            kind: b"DERIVE".to_vec(),
            labels: Labels::parse(text.as_bytes()).ok(),
        };
        DefinedSeries {
            series: number,
            kind,
            columns: labels.iter().map(column).collect(),
            ..DefinedSeries::default()
        }
    }

    fn said(catalog: &Catalog, place: Option<u32>) -> String {
        let Some(column) = place.and_then(|place| catalog.column_at(place)) else {
            return "-".into();
        };
        let texts = column
            .labels
            .iter()
            .map(|&number| catalog.texts().text(number));
        let texts: Vec<&str> = texts.collect();
        format!("{} {:?}", texts.join(","), column.metric_type)
    }

    #[test]
    fn columns_have_places() {
        let mut catalog = Catalog::default();
        let none = std::collections::BTreeMap::new();
        let picker = Picker::new(&[r#"m{a!="2"}"#.into()], &none, &[]).unwrap();
        let [one, two] = [r#"{__name__="m",a="1"}"#, r#"{__name__="m",a="2"}"#];
        catalog.define(&series(7, None, &[two, one, "no labels"]), &picker);
        catalog.define(&series(8, None, &[two]), &picker);
        catalog.define(&series(9, Some(PointKind::Gauge), &[one]), &picker);
        for (number, column, value, expected) in [
            (7, 0, 1.0, "-"),
            (7, 1, 1.0, "__name__,m,a,1 Counter"),
            (7, 1, f64::NAN, "-"),
            (7, 2, 1.0, "-"),
            (7, 3, 1.0, "-"),
            (8, 0, 1.0, "-"),
            (9, 0, f64::NAN, "__name__,m,a,1 Gauge"),
            (10, 0, 1.0, "-"),
        ] {
            let place = catalog.place(number, column, value);
            assert_eq!(said(&catalog, place), expected, "{number} {column} {value}");
        }
        catalog.remove(9);
        assert_eq!(catalog.place(9, 0, 1.0), None);
    }

    /// Series that come and go take no memory for ever, and those that stay keep their labels.
    #[test]
    fn series_that_are_gone_give_their_memory_back() {
        let mut catalog = Catalog::default();
        let picker = Picker::default();
        for number in 0..20_000_u32 {
            let labels = format!("{{__name__=\"m\",a=\"{number}\"}}");
            catalog.define(
                &series(number, Some(PointKind::Counter), &[&labels]),
                &picker,
            );
            if number % 100 != 0 {
                catalog.remove(number);
            }
            catalog.tidy();
        }
        assert!(catalog.len() < 10_000, "{}", catalog.len());
        for number in (0..20_000_u32).step_by(100) {
            let place = catalog.place(number, 0, 1.0);
            assert_eq!(
                said(&catalog, place),
                format!("__name__,m,a,{number} Counter")
            );
        }
        catalog.clear();
        assert_eq!(catalog.len(), 0);
    }
}
