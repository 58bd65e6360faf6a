//! Names of programs' series. Publisher and user come from a file's header and owner, never from the labels of a metric, so
//! no publisher can name another one's series.

use kymo_base::label_set::{self, LabelLimits, Labels};
use kymo_shm::{Description, MetricKind};

use super::quantile;

/// Value of `job` in all these series.
const JOB: &[u8] = b"programs";
/// Labels that no metric may have.
const RESERVED: [&str; 6] = ["job", "host", "publisher", "user", "field", "quantile"];

/// True if no metric may have this label.
pub(super) fn is_reserved(name: &[u8]) -> bool {
    RESERVED.iter().any(|reserved| reserved.as_bytes() == name)
}

/// True for a series of programs.
pub(super) fn is_ours(name: &[u8]) -> bool {
    label_set::is_set(name) && *label_set::value(name, "job") == *JOB
}

/// Series of a total; `labels`: label set of its metric.
pub(super) fn of_total(labels: &Labels, kind: MetricKind) -> Vec<Labels> {
    if !matches!(kind, MetricKind::Histogram(_)) {
        return vec![labels.clone()];
    }
    let of = |label| label_set::value(labels.text(), label).into_owned();
    let own = label_set::each(labels.text()).filter(|(name, _)| !is_reserved(name));
    let own = own.map(|(name, value)| (name.to_vec(), value.into_owned()));
    let metric = Description {
        name: of("field"),
        labels: own.collect(),
        ..Description::new("", "")
    };
    let (publisher, user) = (of("publisher"), of("user"));
    let whose = MetricOwner {
        publisher: &publisher,
        user: &user,
    };
    series(whose, &metric, kind).unwrap_or_default()
}

/// Publisher and user of a metric.
#[derive(Clone, Copy, Debug)]
pub(super) struct MetricOwner<'a> {
    pub(super) publisher: &'a [u8],
    pub(super) user: &'a [u8],
}

/// Label set of a metric; `None`: the metric can have none.
pub(super) fn of_metric(whose: MetricOwner, metric: &Description) -> Option<Labels> {
    labelled(whose, &metric.name, None, &metric.labels)
}

/// Series of a metric. A histogram has one for its count and one for each quantile.
pub(super) fn series(
    whose: MetricOwner,
    metric: &Description,
    kind: MetricKind,
) -> Option<Vec<Labels>> {
    if !matches!(kind, MetricKind::Histogram(_)) {
        return Some(vec![of_metric(whose, metric)?]);
    }
    let count = [&metric.name[..], b"_count"].concat();
    let count = labelled(whose, &count, None, &metric.labels);
    let quantiles = quantile::LABELS
        .iter()
        .map(|quantile| labelled(whose, &metric.name, Some(quantile), &metric.labels));
    std::iter::once(count).chain(quantiles).collect()
}

fn labelled(
    whose: MetricOwner,
    name: &[u8],
    quantile: Option<&str>,
    labels: &[(Vec<u8>, Vec<u8>)],
) -> Option<Labels> {
    let mut all = vec![
        ("job", JOB),
        ("publisher", whose.publisher),
        ("user", whose.user),
        ("field", name),
        ("quantile", quantile.unwrap_or_default().as_bytes()),
    ];
    for (key, value) in labels {
        let key = std::str::from_utf8(key).ok()?;
        if is_reserved(key.as_bytes()) {
            return None;
        }
        all.push((key, value));
    }
    let labels = Labels::new(all).ok()?;
    LabelLimits::default().admit(&labels).ok()?;
    Some(labels)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kymo_shm::Buckets;

    const ADA: MetricOwner = MetricOwner {
        publisher: b"example",
        user: b"ada",
    };

    #[test]
    fn series_are_named_by_the_collector() {
        let metric = Description::new("commands_total", "").label("kind", "read");
        let series_of = |kind| {
            let all = series(ADA, &metric, kind).unwrap();
            let all = all
                .iter()
                .map(|labels| String::from_utf8_lossy(labels.text()).into_owned());
            all.collect::<Vec<_>>()
        };
        let rest = r#"job="programs",kind="read",publisher="example""#;
        assert_eq!(
            series_of(MetricKind::Counter),
            [format!(r#"{{field="commands_total",{rest},user="ada"}}"#)]
        );
        let histogram = series_of(MetricKind::Histogram(Buckets::new(2, 10, 36).unwrap()));
        assert_eq!(
            histogram[..2],
            [
                format!(r#"{{field="commands_total_count",{rest},user="ada"}}"#),
                format!(r#"{{field="commands_total",{rest},quantile="0.5",user="ada"}}"#),
            ]
        );
        assert_eq!(histogram.len(), 4);
        for kind in [
            MetricKind::Counter,
            MetricKind::Histogram(Buckets::new(2, 10, 36).unwrap()),
        ] {
            let total = of_metric(ADA, &metric).unwrap();
            assert_eq!(Some(of_total(&total, kind)), series(ADA, &metric, kind));
        }
    }

    #[test]
    fn no_metric_names_itself_otherwise() {
        for key in [
            "job",
            "host",
            "publisher",
            "user",
            "field",
            "quantile",
            "a-b",
            "",
            "\u{e4}",
        ] {
            let metric = Description::new("a", "").label(key, "x");
            assert_eq!(of_metric(ADA, &metric), None, "{key}");
        }
        let twice = Description::new("a", "").label("b", "x").label("b", "y");
        assert_eq!(of_metric(ADA, &twice), None);
        let long = Description::new(&"a".repeat(2048), "");
        assert_eq!(of_metric(ADA, &long), None);
    }
}
