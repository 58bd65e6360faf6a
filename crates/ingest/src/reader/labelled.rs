//! Labels of a store's series.

use kymo_base::label_set;
use kymo_series::{Kind, Labels, names};
use kymo_store::KnownSeries;

use super::kind_of;

/// Labels of a column of a series; `None`: there is no such column, or its labels exceed the limits of a
/// label set.
pub(crate) fn labels_of(series: &KnownSeries, column: u16) -> Option<Labels> {
    let (source, _) = series.columns.columns.get(usize::from(column))?;
    if !label_set::is_set(&series.name) {
        return names::rrd(&series.name, source).ok();
    }
    let own = Labels::parse(&series.name).ok()?;
    match label_set::value(own.text(), names::METRIC).is_empty() {
        false => Some(own),
        true => of_earlier_build(&own, source),
    }
}

/// collectd's name of a column of a file; `None`: the path is not one of collectd's.
pub(super) fn alias_of(series: &KnownSeries, column: u16) -> Option<Labels> {
    if label_set::is_set(&series.name) {
        return None;
    }
    let (source, kind) = series.columns.columns.get(usize::from(column))?;
    let of = names::collectd_of_path(&series.name)?;
    names::collectd(&of, source, counts(kind)).ok()
}

/// Kind of a series. Rows of archives are rates, so a series of archives is a gauge.
pub(super) fn metric_kind(series: &KnownSeries) -> Kind {
    series.points.map_or(Kind::Gauge, |(_, kind)| kind_of(kind))
}

/// The factor from stored values to the unit that the series' name says.
pub(crate) fn scale_of(series: &KnownSeries) -> f64 {
    let value = |label| label_set::value(&series.name, label);
    let is_old = label_set::is_set(&series.name) && value(names::METRIC).is_empty();
    match is_old && *value("job") == *names::JOB_POSTGRES {
        true => names::postgres_scale(&String::from_utf8_lossy(&value("field"))),
        false => 1.0,
    }
}

/// True if values of this kind of rrdtool's are counters.
pub(super) fn counts(kind: &[u8]) -> bool {
    matches!(kind, b"COUNTER" | b"DERIVE" | b"DCOUNTER" | b"DDERIVE")
}

/// Labels of a set without `__name__`: its metric is in the label `field`, or else it is the column's name.
fn of_earlier_build(own: &Labels, column: &[u8]) -> Option<Labels> {
    let value = |label| label_set::value(own.text(), label);
    let (job, field) = (value("job"), value("field"));
    let field = String::from_utf8_lossy(&field).into_owned();
    let own_labels = [
        "job",
        "field",
        "host",
        "instance",
        "server",
        "publisher",
        "user",
    ];
    let free = label_set::each(own.text())
        .filter(|(name, _)| !own_labels.iter().any(|known| known.as_bytes() == *name));
    let free: Vec<(Vec<u8>, Vec<u8>)> = free
        .map(|(name, value)| (name.to_vec(), value.into_owned()))
        .collect();
    let free: Vec<(&[u8], &[u8])> = free
        .iter()
        .map(|(name, value)| (&name[..], &value[..]))
        .collect();
    let named = match &*job {
        b"kymo" => names::field(&value("host"), &field, &value("instance")),
        b"postgres" => {
            let of = free.first().map(|(name, value)| (*name, *value));
            let of = of.and_then(|(name, value)| Some((std::str::from_utf8(name).ok()?, value)));
            names::postgres(&value("server"), &field, of)
        }
        b"programs" => names::program(field.as_bytes(), &value("publisher"), &value("user"), &free),
        job if field.is_empty() => {
            let metric = [b"kymo_", job, b"_", column].concat();
            names::plain(&metric, job, &free)
        }
        job => names::plain(field.as_bytes(), job, &free),
    };
    named.ok()
}
