//! Answers of Prometheus' HTTP API.

use std::collections::BTreeMap;

use hyper::StatusCode;
use kymo_base::name::DisplayName;
use kymo_series::{Labels, Sample};
use serde::Deserialize;

/// Bytes of a text of the engine in a message, and its texts that are passed on.
const SHOWN_MAX: usize = 300;
const WARNINGS_MAX: usize = 10;

/// The data of an answer, and what the engine says is missing.
#[derive(Debug, PartialEq)]
pub(crate) struct ApiAnswer<T> {
    pub(crate) data: T,
    pub(crate) warnings: Vec<String>,
}

#[derive(Deserialize)]
struct Envelope<T> {
    data: Option<T>,
    #[serde(default)]
    error: String,
    #[serde(default)]
    warnings: Vec<String>,
}

/// Labels as an engine writes them.
pub(crate) type LabelTexts = BTreeMap<String, String>;

/// Samples of an expression that is a selector with a range.
#[derive(Deserialize)]
pub(crate) struct Matrix<'a> {
    #[serde(borrow)]
    pub(crate) result: Vec<Track<'a>>,
}

/// Samples of a series.
#[derive(Deserialize)]
pub(crate) struct Track<'a> {
    pub(crate) metric: LabelTexts,
    /// Seconds since 1970, and a number as text.
    #[serde(borrow)]
    values: Vec<(f64, &'a str)>,
}

/// A description of a metric.
#[derive(Deserialize)]
pub(crate) struct Description {
    #[serde(default, rename = "type")]
    pub(crate) kind: String,
    #[serde(default)]
    pub(crate) help: String,
    #[serde(default)]
    pub(crate) unit: String,
}

impl Track<'_> {
    /// The samples, without those that make no sense.
    pub(crate) fn samples(&self) -> impl Iterator<Item = Sample> {
        self.values.iter().filter_map(|(seconds, text)| {
            // A number beyond all times becomes the last one.
            let t_ms = (seconds * 1000.0).round() as i64;
            Some(Sample {
                t_ms,
                v: text.parse().ok()?,
            })
        })
    }
}

/// Reads an answer.
pub(crate) fn read<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<ApiAnswer<T>, String> {
    let read: Result<Envelope<T>, _> = serde_json::from_slice(body);
    let envelope =
        read.map_err(|error| format!("its answer is not that of Prometheus' API: {error}"))?;
    let Some(data) = envelope.data else {
        return Err(format!("it answers: {}", shown(&envelope.error)));
    };
    let warnings = envelope.warnings.iter().take(WARNINGS_MAX);
    Ok(ApiAnswer {
        data,
        warnings: warnings.map(|text| shown(text)).collect(),
    })
}

/// Why an answer has another status, for people.
pub(crate) fn refusal(status: StatusCode, body: &[u8]) -> String {
    let read: Result<Envelope<serde_json::Value>, _> = serde_json::from_slice(body);
    match read.map(|envelope| envelope.error) {
        Ok(error) if !error.is_empty() => format!("it answers {status}: {}", shown(&error)),
        Ok(_) | Err(_) => format!("it answers {status}"),
    }
}

fn shown(text: &str) -> String {
    let bytes = text.as_bytes();
    DisplayName(bytes.get(..SHOWN_MAX).unwrap_or(bytes)).to_string()
}

/// Labels of a series, without some of them. `None`: kymo keeps no such labels.
pub(crate) fn labels(of: &LabelTexts, dropped: &[String]) -> Option<Labels> {
    let kept = of.iter().filter(|(name, _)| !dropped.contains(name));
    Labels::new(kept.map(|(name, value)| (name.as_str(), value.as_bytes()))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_with_their_warnings() {
        let body = br#"{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"__name__":"up","site":"a"},
            "values":[[1435781451.781,"1"],[1435781452,"+Inf"],[1435781453,"NaN"],[1435781454,"x"]]}]},"warnings":["one \u001b store is away"]}"#;
        let answer: ApiAnswer<Matrix> = read(body).unwrap();
        assert_eq!(answer.warnings, ["one \\x1b store is away"]);
        let track = &answer.data.result[0];
        let samples: Vec<(i64, String)> = track
            .samples()
            .map(|of| (of.t_ms, of.v.to_string()))
            .collect();
        let expected = [
            (1_435_781_451_781, "1"),
            (1_435_781_452_000, "inf"),
            (1_435_781_453_000, "NaN"),
        ];
        assert_eq!(samples, expected.map(|(t_ms, v)| (t_ms, v.to_string())));
        let kept = labels(&track.metric, &["site".into()]).unwrap();
        assert_eq!(kept.text(), br#"{__name__="up"}"#);
    }

    #[test]
    fn other_answers_are_errors() {
        for (body, why) in [
            ("", "its answer is not that of Prometheus' API: EOF"),
            ("[1]", "its answer is not that of Prometheus' API: "),
            (r#"{"status":"error","error":"no"}"#, "it answers: no"),
            (
                r#"{"data":{"result":[{"metric":{},"values":[[1,2]]}]}}"#,
                "its answer is not that",
            ),
        ] {
            let error = read::<Matrix>(body.as_bytes()).err().unwrap();
            assert!(error.starts_with(why), "{error}");
        }
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        assert_eq!(
            refusal(status, b"<html>"),
            "it answers 422 Unprocessable Entity"
        );
        let body = br#"{"status":"error","errorType":"execution","error":"too many"}"#;
        assert_eq!(
            refusal(status, body),
            "it answers 422 Unprocessable Entity: too many"
        );
    }

    /// Each cut of an answer is an error, and no panic.
    #[test]
    fn a_cut_answer_is_an_error() {
        let body =
            br#"{"status":"success","data":{"result":[{"metric":{"a":"b"},"values":[[1,"2"]]}]}}"#;
        for end in 0..body.len() {
            assert!(read::<Matrix>(&body[..end]).is_err(), "{end}");
        }
        assert!(read::<Matrix>(body).is_ok());
    }
}
