//! Entry points for fuzzing.

use std::collections::BTreeMap;

use hyper::StatusCode;
use kymo_scrape::{Credentials, TlsTexts};
use kymo_series::Labels;

use super::api::{self, Description, LabelTexts};
use super::client::{Client, Engine};
use super::known::KnownSeries;
use super::order::UpstreamTarget;
use super::questions::{Allowance, Questions, SharedState};

/// An answer of an engine, read as that of each endpoint.
pub fn fuzz_engine(input: &[u8]) {
    let warnings = [
        api::read::<Vec<LabelTexts>>(input).map(|answer| answer.warnings),
        api::read::<Vec<String>>(input).map(|answer| answer.warnings),
        api::read::<BTreeMap<String, Vec<Description>>>(input).map(|answer| answer.warnings),
    ];
    let refusal = api::refusal(StatusCode::BAD_REQUEST, input);
    let texts = warnings
        .into_iter()
        .flat_map(|of| of.unwrap_or_else(|why| vec![why]));
    for text in texts.chain([refusal]) {
        assert!(!text.contains('\u{1b}'), "a control byte of the engine");
    }
    samples(input);
}

/// Samples of an answer: of the series that was asked for, within the range and the allowance.
fn samples(input: &[u8]) {
    const RANGE_MS: (i64, i64) = (0, 1 << 41);
    const SAMPLES_MAX: u64 = 100;
    let target = UpstreamTarget {
        url: "http://127.0.0.1:9".into(),
        timeout_ms: 1,
        drop_labels: Vec::new(),
        credentials: Credentials::None,
        tls: TlsTexts::default(),
    };
    let Ok(engine) = Engine::new(&target) else {
        unreachable!("BUG: a URL is refused");
    };
    let mut questions = Questions::new(Client::new(engine), SharedState::new(vec!["site".into()]));
    let Ok(labels) = Labels::new([("__name__", b"up".as_slice())]) else {
        unreachable!("BUG: labels are refused");
    };
    let id = KnownSeries::id(&labels);
    let mut samples = BTreeMap::from([(id, Vec::new())]);
    let mut left = Allowance {
        samples: SAMPLES_MAX,
        requests: 1,
    };
    let taken = questions.take_samples(input, RANGE_MS, &mut samples, &mut left);
    assert_eq!(samples.len(), 1, "a series that was not asked for");
    if taken.is_ok() {
        let count = samples.values().map(Vec::len).sum::<usize>();
        assert!(u64::try_from(count).is_ok_and(|count| count + left.samples == SAMPLES_MAX));
    }
}
