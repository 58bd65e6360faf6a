//! Cases of Prometheus' test files that have another result here, and why.

/// Prometheus runs its files with the feature `promql-delayed-name-removal`, which is off unless it is turned on.
const LATE: &str = "the metric's name is dropped at the end";
const NOTED: &str = "the metric's name is in a warning, as it is dropped at the end";

/// Place and reason.
pub(crate) const EXCEPTIONS: &[(&str, &str)] = &[
    ("histograms.test:1218", NOTED),
    ("histograms.test:1228", NOTED),
    ("histograms.test:1239", NOTED),
    ("histograms.test:1249", NOTED),
    ("histograms.test:1260", NOTED),
    ("histograms.test:1273", NOTED),
    ("histograms.test:1284", NOTED),
    ("native_histograms.test:2045", NOTED),
    ("native_histograms.test:2048", NOTED),
    ("name_label_dropping.test:59", LATE),
    ("name_label_dropping.test:64", LATE),
    ("name_label_dropping.test:69", LATE),
    ("name_label_dropping.test:74", LATE),
    ("name_label_dropping.test:89", LATE),
    ("name_label_dropping.test:115", LATE),
    ("name_label_dropping.test:119", LATE),
    ("name_label_dropping.test:123", LATE),
];
