//! Types of metric families, as Prometheus, OpenMetrics and remote write name and number them.

/// How a family's values are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum MetricType {
    /// Not said; `untyped` in Prometheus' text format.
    #[default]
    Unknown,
    /// Grows, and begins again at 0.
    Counter,
    /// Moves both ways.
    Gauge,
    /// Buckets, a sum and a count, all of them counters.
    Histogram,
    /// Buckets, a sum and a count that move both ways.
    GaugeHistogram,
    /// Quantiles, a sum and a count.
    Summary,
    /// Always 1; its labels say something.
    Info,
    /// A state out of several, 1 if it holds.
    StateSet,
}

impl MetricType {
    /// All of them, in the order of their numbers in remote write.
    pub const ALL: [MetricType; 8] = [
        MetricType::Unknown,
        MetricType::Counter,
        MetricType::Gauge,
        MetricType::Histogram,
        MetricType::GaugeHistogram,
        MetricType::Summary,
        MetricType::Info,
        MetricType::StateSet,
    ];

    /// OpenMetrics' word.
    pub fn word(self) -> &'static str {
        match self {
            MetricType::Unknown => "unknown",
            MetricType::Counter => "counter",
            MetricType::Gauge => "gauge",
            MetricType::Histogram => "histogram",
            MetricType::GaugeHistogram => "gaugehistogram",
            MetricType::Summary => "summary",
            MetricType::Info => "info",
            MetricType::StateSet => "stateset",
        }
    }

    /// The type that a word of OpenMetrics means.
    pub fn of_word(word: &str) -> Option<MetricType> {
        MetricType::ALL
            .into_iter()
            .find(|known| known.word() == word)
    }

    /// The number in remote write.
    pub(crate) fn number(self) -> u64 {
        match self {
            MetricType::Unknown => 0,
            MetricType::Counter => 1,
            MetricType::Gauge => 2,
            MetricType::Histogram => 3,
            MetricType::GaugeHistogram => 4,
            MetricType::Summary => 5,
            MetricType::Info => 6,
            MetricType::StateSet => 7,
        }
    }

    /// The type of a number in remote write; one that a later version may add is not known here.
    pub(crate) fn of_number(number: u64) -> MetricType {
        let mut all = MetricType::ALL.into_iter();
        all.find(|known| known.number() == number)
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_numbers_come_back() {
        for (number, of) in MetricType::ALL.into_iter().enumerate() {
            assert_eq!(of.number(), number as u64);
            assert_eq!(MetricType::of_number(of.number()), of);
            assert_eq!(MetricType::of_word(of.word()), Some(of));
        }
        assert_eq!(MetricType::of_number(8), MetricType::Unknown);
        assert_eq!(MetricType::of_word("untyped"), None);
    }
}
