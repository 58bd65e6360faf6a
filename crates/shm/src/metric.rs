//! The description of a metric, as it is in the file's table.

use kymo_base::limits::{SHM_METRIC_LABELS_MAX, SHM_METRIC_TEXT_MAX};

use crate::histogram::Buckets;
use crate::layout::{METRIC_FIXED, array_at, u16_at, u32_at};

/// How the cell of a gauge is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GaugeType {
    /// Whole numbers from 0.
    Unsigned,
    /// Whole numbers.
    Signed,
    /// Doubles.
    Double,
}

/// Kind of a metric's cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// One cell that only grows.
    Counter,
    /// One cell that goes up and down.
    Gauge(GaugeType),
    /// [`Buckets::cells`] cells.
    Histogram(Buckets),
}

impl MetricKind {
    /// Cells of a slot.
    pub fn cells(self) -> usize {
        match self {
            MetricKind::Counter | MetricKind::Gauge(_) => 1,
            MetricKind::Histogram(buckets) => buckets.cells(),
        }
    }

    /// Kind, type, and the three numbers of a histogram.
    fn bytes(self) -> [u8; 5] {
        match self {
            MetricKind::Counter => [1, 0, 0, 0, 0],
            MetricKind::Gauge(GaugeType::Unsigned) => [2, 0, 0, 0, 0],
            MetricKind::Gauge(GaugeType::Signed) => [2, 1, 0, 0, 0],
            MetricKind::Gauge(GaugeType::Double) => [2, 2, 0, 0, 0],
            MetricKind::Histogram(buckets) => {
                let [bits, low, high] = buckets.parameters();
                [3, 0, bits, low, high]
            }
        }
    }

    fn of(bytes: [u8; 5]) -> Option<MetricKind> {
        match bytes {
            [1, 0, ..] => Some(MetricKind::Counter),
            [2, 0, ..] => Some(MetricKind::Gauge(GaugeType::Unsigned)),
            [2, 1, ..] => Some(MetricKind::Gauge(GaugeType::Signed)),
            [2, 2, ..] => Some(MetricKind::Gauge(GaugeType::Double)),
            [3, 0, bits, low, high] => Buckets::new(bits, low, high).map(MetricKind::Histogram),
            _ => None,
        }
    }
}

/// Keys and values.
pub type LabelPairs = Vec<(Vec<u8>, Vec<u8>)>;

/// Name and labels of a metric. Texts are bytes, because a publisher may write anything.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    /// Name of the series, without the publisher's name: `commands_total`.
    pub name: Vec<u8>,
    /// `seconds`, `bytes`, or nothing.
    pub unit: Vec<u8>,
    /// One sentence.
    pub help: Vec<u8>,
    /// Keys and values.
    pub labels: LabelPairs,
    /// Factor from a cell to the unit.
    pub scale: f64,
}

impl Description {
    /// Without labels, a unit, or another scale than 1.
    pub fn new(name: &str, help: &str) -> Description {
        Description {
            name: name.into(),
            unit: Vec::new(),
            help: help.into(),
            labels: Vec::new(),
            scale: 1.0,
        }
    }

    /// With a unit, and what cells are multiplied with to be in it.
    #[must_use]
    pub fn unit(mut self, unit: &str, scale: f64) -> Description {
        (self.unit, self.scale) = (unit.into(), scale);
        self
    }

    /// With one more label.
    #[must_use]
    pub fn label(mut self, key: &str, value: &str) -> Description {
        self.labels.push((key.into(), value.into()));
        self
    }
}

/// A metric of a publisher: its cells are those of each slot.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// Name and labels.
    pub description: Description,
    /// Kind of the cells.
    pub kind: MetricKind,
    /// The first one of them.
    pub first_cell: usize,
}

impl Metric {
    /// Appends the record of the table. `None`, and nothing is appended, if a text or the number of labels is beyond its limit.
    pub(crate) fn append(&self, out: &mut Vec<u8>) -> Option<()> {
        let description = &self.description;
        let length = |text: &[u8]| {
            u16::try_from(text.len())
                .ok()
                .filter(|_| text.len() <= SHM_METRIC_TEXT_MAX)
        };
        let (name, unit) = (length(&description.name)?, length(&description.unit)?);
        let (help, first_cell) = (
            length(&description.help)?,
            u32::try_from(self.first_cell).ok()?,
        );
        let count = u16::try_from(description.labels.len()).ok()?;
        if name == 0 || description.labels.len() > SHM_METRIC_LABELS_MAX {
            return None;
        }
        let mut labels = Vec::new();
        for (key, value) in &description.labels {
            labels.extend_from_slice(&length(key)?.to_le_bytes());
            labels.extend_from_slice(&length(value)?.to_le_bytes());
            labels.extend_from_slice(key);
            labels.extend_from_slice(value);
        }
        let texts =
            description.name.len() + description.unit.len() + description.help.len() + labels.len();
        let whole = (METRIC_FIXED + texts).next_multiple_of(8);
        let end = out.len() + whole;
        out.extend_from_slice(&u32::try_from(whole).ok()?.to_le_bytes());
        out.extend_from_slice(&u32::try_from(METRIC_FIXED).ok()?.to_le_bytes());
        out.extend_from_slice(&first_cell.to_le_bytes());
        out.extend_from_slice(&u32::try_from(self.kind.cells()).ok()?.to_le_bytes());
        out.extend_from_slice(&description.scale.to_le_bytes());
        out.extend_from_slice(&self.kind.bytes());
        out.push(0);
        for number in [count, name, unit, help, u16::try_from(labels.len()).ok()?] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        for text in [
            &description.name,
            &description.unit,
            &description.help,
            &labels,
        ] {
            out.extend_from_slice(text);
        }
        out.resize(end, 0);
        Some(())
    }

    /// Reads the record that `bytes` begin with, of a file whose slots have `cells` cells. The metric, `None` if it is of no known
    /// kind, and what follows. An error if the record makes no sense: then what follows cannot be read either.
    pub(crate) fn parse(bytes: &[u8], cells: usize) -> Result<(Option<Metric>, &[u8]), BadMetric> {
        let length = usize::try_from(u32_at(bytes, 0)).map_err(|_| BadMetric)?;
        let fixed = usize::try_from(u32_at(bytes, 4)).map_err(|_| BadMetric)?;
        if length % 8 != 0 || length > bytes.len() || fixed < METRIC_FIXED || fixed > length {
            return Err(BadMetric);
        }
        let (record, rest) = bytes.split_at(length);
        let Some(kind) = MetricKind::of(array_at(record, 24)) else {
            return Ok((None, rest));
        };
        let first_cell = usize::try_from(u32_at(record, 8)).map_err(|_| BadMetric)?;
        let end = first_cell.checked_add(kind.cells()).ok_or(BadMetric)?;
        if u32_at(record, 12) != u32::try_from(kind.cells()).map_err(|_| BadMetric)? || end > cells
        {
            return Err(BadMetric);
        }
        let mut texts = &record[fixed..];
        let mut next = |at: usize| take(&mut texts, u16_at(record, at));
        let (name, unit, help, labels) = (next(32)?, next(34)?, next(36)?, next(38)?);
        if name.is_empty()
            || [name, unit, help]
                .iter()
                .any(|text| text.len() > SHM_METRIC_TEXT_MAX)
        {
            return Err(BadMetric);
        }
        let scale = f64::from_le_bytes(array_at(record, 16));
        let description = Description {
            name: name.to_vec(),
            unit: unit.to_vec(),
            help: help.to_vec(),
            labels: parse_labels(labels, usize::from(u16_at(record, 30)))?,
            scale: if scale.is_finite() { scale } else { 1.0 },
        };
        Ok((
            Some(Metric {
                description,
                kind,
                first_cell,
            }),
            rest,
        ))
    }
}

/// A description that makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BadMetric;

fn take<'a>(bytes: &mut &'a [u8], length: u16) -> Result<&'a [u8], BadMetric> {
    let (taken, rest) = bytes
        .split_at_checked(usize::from(length))
        .ok_or(BadMetric)?;
    *bytes = rest;
    Ok(taken)
}

fn parse_labels(mut bytes: &[u8], count: usize) -> Result<LabelPairs, BadMetric> {
    if count > SHM_METRIC_LABELS_MAX {
        return Err(BadMetric);
    }
    let mut labels = Vec::with_capacity(count);
    for _ in 0..count {
        let lengths = take(&mut bytes, 4)?;
        let key = take(&mut bytes, u16_at(lengths, 0))?;
        let value = take(&mut bytes, u16_at(lengths, 2))?;
        if key.len() > SHM_METRIC_TEXT_MAX || value.len() > SHM_METRIC_TEXT_MAX {
            return Err(BadMetric);
        }
        labels.push((key.to_vec(), value.to_vec()));
    }
    Ok(labels)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metrics() -> Vec<Metric> {
        let kinds = [
            MetricKind::Counter,
            MetricKind::Gauge(GaugeType::Unsigned),
            MetricKind::Gauge(GaugeType::Signed),
            MetricKind::Gauge(GaugeType::Double),
            MetricKind::Histogram(Buckets::new(2, 10, 36).expect("buckets")),
        ];
        let described = Description::new("commands_total", "Commands.")
            .label("kind", "select")
            .label("", "");
        let texts = [described.unit("seconds", 1e-9), Description::new("x", "")];
        let pairs = kinds
            .iter()
            .flat_map(|kind| texts.iter().map(move |text| (kind, text)));
        pairs
            .enumerate()
            .map(|(number, (kind, text))| Metric {
                description: text.clone(),
                kind: *kind,
                first_cell: number,
            })
            .collect()
    }

    #[test]
    fn what_was_written_is_read() {
        let (mut table, written) = (Vec::new(), metrics());
        for metric in &written {
            metric.append(&mut table).expect("within the limits");
        }
        let (mut rest, mut read) = (&table[..], Vec::new());
        while !rest.is_empty() {
            let (metric, behind) = Metric::parse(rest, 1000).expect("a description");
            read.push(metric.expect("a known kind"));
            rest = behind;
        }
        assert_eq!(read, written);
    }

    #[test]
    fn one_that_is_cut_off_is_bad() {
        let mut record = Vec::new();
        metrics()[0].append(&mut record).expect("within the limits");
        for length in 0..record.len() {
            assert_eq!(
                Metric::parse(&record[..length], 1000),
                Err(BadMetric),
                "{length}"
            );
        }
    }

    #[test]
    fn one_that_lies_is_bad_or_passed_over() {
        let mut record = Vec::new();
        metrics()[0].append(&mut record).expect("within the limits");
        assert_eq!(
            Metric::parse(&record, 0),
            Err(BadMetric),
            "a cell beyond the last"
        );
        for (at, value) in [
            (0, 7),
            (4, 39),
            (4, 255),
            (12, 2),
            (32, 0),
            (32, 255),
            (30, 17),
            (30, 3),
            (40 + 14 + 7 + 9, 255),
        ] {
            let mut lie = record.clone();
            lie[at] = value;
            assert_eq!(Metric::parse(&lie, 1000), Err(BadMetric), "{value} at {at}");
        }
        for (at, value) in [(24, 0), (24, 4), (25, 1)] {
            let mut lie = record.clone();
            lie[at] = value;
            assert_eq!(
                Metric::parse(&lie, 1000),
                Ok((None, &[][..])),
                "{value} at {at}"
            );
        }
        record[16..24].copy_from_slice(&f64::NAN.to_le_bytes());
        let (metric, _) = Metric::parse(&record, 1000).expect("a description");
        assert_eq!(metric.expect("a counter").description.scale, 1.0);
    }

    #[test]
    fn limits() {
        let long = "x".repeat(SHM_METRIC_TEXT_MAX + 1);
        let refused = |description: Description| {
            let metric = Metric {
                description,
                kind: MetricKind::Counter,
                first_cell: 0,
            };
            metric.append(&mut Vec::new()).is_none()
        };
        assert!(!refused(
            Description::new(&long[1..], &long[1..])
                .unit(&long[1..], 1.0)
                .label(&long[1..], &long[1..])
        ));
        assert!(refused(Description::new("", "")));
        assert!(refused(Description::new(&long, "")));
        assert!(refused(Description::new("x", &long)));
        assert!(refused(Description::new("x", "").unit(&long, 1.0)));
        assert!(refused(Description::new("x", "").label(&long, "")));
        assert!(refused(Description::new("x", "").label("", &long)));
        let many =
            |count| (0..count).fold(Description::new("x", ""), |text, _| text.label("k", "v"));
        assert!(!refused(many(SHM_METRIC_LABELS_MAX)));
        assert!(refused(many(SHM_METRIC_LABELS_MAX + 1)));
    }
}
