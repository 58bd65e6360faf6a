//! Whatever a tail says comes out at the receiver: each sample once, in the order of its series, in either version.

use std::collections::BTreeMap;

use kymo_base::label_set::Labels;
use kymo_keeper_client::TailSink as _;
use kymo_wire::keeper::{DefinedColumn, DefinedSeries, NumberedSample, PointKind};
use kymo_wire::remote_write::{WriteItem, WriteLimits, WriteReader, decompress};
use proptest::prelude::*;

use super::*;
use crate::batch::ALL_TIMES;
use crate::picker::Picker;

/// Samples by labels.
type Found = BTreeMap<String, Vec<(i64, u64)>>;

fn define(batch: &mut Batch, number: u32, name: &str) {
    let labels = format!("{{__name__=\"m\",a=\"{name}\"}}");
    batch.defined(DefinedSeries {
        series: number,
        kind: Some(PointKind::Gauge),
        columns: vec![DefinedColumn {
            labels: Labels::parse(labels.as_bytes()).ok(),
            ..DefinedColumn::default()
        }],
        ..DefinedSeries::default()
    });
}

fn sample(series: u32, t_ms: i64, v: f64) -> NumberedSample {
    NumberedSample {
        series,
        column: 0,
        t_ms,
        v,
    }
}

/// All requests of a batch, read as a receiver does; their number, and their bytes.
fn received(batch: &Batch, version: WriteVersion) -> (Found, usize, usize) {
    let mut messages = Messages::new(version);
    let (mut found, mut requests, mut bytes) = (Found::new(), 0, 0);
    let mut at = 0;
    while at < batch.groups.len() {
        let part = messages.make(batch, at..batch.groups.len(), &ALL_TIMES);
        assert!(part.end > at, "a request has a group");
        let mut plain = Vec::new();
        decompress(messages.packed(), 64 << 20, &mut plain).unwrap();
        let mut reader = WriteReader::new(version, &plain, WriteLimits::default()).unwrap();
        let mut samples = 0;
        while let Some(item) = reader.read().unwrap() {
            let WriteItem::Series(series) = item else {
                panic!("{item:?}");
            };
            let labels = series.labels.iter();
            let labels: Vec<String> = labels
                .map(|of| format!("{}={}", of.name, of.value))
                .collect();
            let out = found.entry(labels.join(",")).or_default();
            for sample in series.samples {
                out.push((sample.t_ms, sample.value.to_bits()));
                samples += 1;
            }
        }
        assert_eq!(samples, part.samples);
        (at, requests) = (part.end, requests + 1);
        bytes += messages.packed().len();
    }
    (found, requests, bytes)
}

/// A number as a counter has it: whole, with steps that cannot be foreseen.
fn counter(series: u32, at: i64) -> f64 {
    let mixed = u64::from(series).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    let step = (at.cast_unsigned().wrapping_mul(0x2545_f491_4f6c_dd1d)) >> 54;
    f64::from(u32::try_from(mixed + step).unwrap_or(0))
}

#[test]
fn a_sample_takes_few_bytes() {
    for (samples, most) in [(1, 15.5), (6, 10.0), (30, 10.0)] {
        let mut batch = Batch::new(Picker::default());
        for series in 0..1000 {
            define(&mut batch, series, &format!("series-{series}"));
        }
        for at in 0..samples {
            let all: Vec<NumberedSample> = (0..1000)
                .map(|series| sample(series, 1_700_000_000_000 + at * 15_000, counter(series, at)))
                .collect();
            batch.samples(&all);
        }
        batch.group();
        let (_, _, bytes) = received(&batch, WriteVersion::V2);
        let count = u32::try_from(1000 * samples).unwrap();
        let each = f64::from(u32::try_from(bytes).unwrap()) / f64::from(count);
        assert!(
            each <= most,
            "{samples} samples a series: {each} bytes each"
        );
    }
}

#[test]
fn a_long_series_has_several_requests() {
    let mut batch = Batch::new(Picker::default());
    define(&mut batch, 1, "x");
    let all: Vec<NumberedSample> = (0..25_000).map(|at| sample(1, at, 1.0)).collect();
    batch.samples(&all);
    batch.group();
    let (found, requests, _) = received(&batch, WriteVersion::V2);
    assert_eq!((found.len(), requests), (1, 3));
    assert_eq!(found.values().next().map(Vec::len), Some(25_000));
    batch.begin();
    batch.group();
    assert!(batch.groups.is_empty());
}

proptest! {
    #[test]
    fn all_samples_arrive(
        given in prop::collection::vec((0..20_u32, 0..50_i64, any::<f64>()), 0..500),
        redefined in prop::collection::vec((0..20_u32, 0..500_usize), 0..10),
    ) {
        for version in [WriteVersion::V1, WriteVersion::V2] {
            let mut batch = Batch::new(Picker::default());
            let mut expected = Found::new();
            for number in 0..18 {
                define(&mut batch, number, &number.to_string());
            }
            for (at, &(series, t_ms, value)) in given.iter().enumerate() {
                for &(number, _) in redefined.iter().filter(|of| of.1 == at && of.0 < 18) {
                    define(&mut batch, number, &number.to_string());
                }
                batch.samples(&[sample(series, t_ms, value)]);
                if series < 18 {
                    let of = expected.entry(format!("__name__=m,a={series}")).or_default();
                    of.push((t_ms, value.to_bits()));
                }
            }
            batch.group();
            let (mut found, _, _) = received(&batch, version);
            // A series that was defined again has two runs of samples.
            if redefined.is_empty() {
                expected.values_mut().for_each(|all| all.sort_by_key(|of| of.0));
            } else {
                expected.values_mut().for_each(|all| all.sort_unstable());
                found.values_mut().for_each(|all| all.sort_unstable());
            }
            prop_assert_eq!(found, expected);
        }
    }
}
