//! The kind of a series of points, by the type of its metric and by its name.

use kymo_series::{Kind, names};
use kymo_store::PointsKind;
use kymo_wire::remote_write::MetricType;

/// Ends of the names of a family's parts.
const PARTS: [&str; 3] = ["_bucket", "_sum", "_count"];

/// The family of a metric that is a part of one.
pub(super) fn family_of(metric: &str) -> Option<&str> {
    PARTS.iter().find_map(|end| metric.strip_suffix(end))
}

/// The kind of a series whose metric has this type. The parts of a histogram count; so do those of a summary, apart
/// from its quantiles.
pub(super) fn points_kind(metric_type: MetricType, metric: &str) -> PointsKind {
    let is_part = family_of(metric).is_some();
    match metric_type {
        MetricType::Counter => PointsKind::Counter,
        MetricType::Histogram if is_part => PointsKind::Histogram,
        MetricType::Summary if is_part => PointsKind::Counter,
        MetricType::Gauge
        | MetricType::GaugeHistogram
        | MetricType::Histogram
        | MetricType::Summary
        | MetricType::Info
        | MetricType::StateSet => PointsKind::Gauge,
        MetricType::Unknown => match names::kind_of(metric) {
            Kind::Counter => PointsKind::Counter,
            Kind::Gauge => PointsKind::Gauge,
            Kind::Untyped => PointsKind::Untyped,
            Kind::Histogram => PointsKind::Histogram,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_decides_and_without_one_the_name() {
        for (metric_type, metric, kind) in [
            (MetricType::Counter, "requests", PointsKind::Counter),
            (MetricType::Gauge, "requests_total", PointsKind::Gauge),
            (MetricType::Histogram, "wait_bucket", PointsKind::Histogram),
            (MetricType::Histogram, "wait", PointsKind::Gauge),
            (MetricType::Summary, "wait_count", PointsKind::Counter),
            (MetricType::Summary, "wait", PointsKind::Gauge),
            (MetricType::Unknown, "requests_total", PointsKind::Counter),
            (MetricType::Unknown, "wait_sum", PointsKind::Histogram),
            (MetricType::Unknown, "up", PointsKind::Untyped),
        ] {
            let found = points_kind(metric_type, metric);
            assert_eq!(found, kind, "{metric_type:?} {metric}");
        }
    }
}
