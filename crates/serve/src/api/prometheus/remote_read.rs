//! `/api/v1/read`: remote read, samples of series for who evaluates expressions over them.

mod batches;
mod frames;
mod samples;

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::response::Response;
use kymo_base::label_set;
use kymo_series::{Matcher, Op, RowValue, RowsAs, TimeRange};
use kymo_wire::remote_read::{MatcherKind, ReadMatcher, ReadQuery, ReadRequest, ResponseForm};
use kymo_wire::remote_write::{BadSnappy, decompress};

use super::failure::{ErrorType, Failure, PlainFailure};
use super::{Hub, RequestHead};
use crate::connections::Doing;

/// Most bytes of a request without Snappy.
const REQUEST_MAX: usize = 4 << 20;

/// A query, which readers understand.
struct SeriesQuery {
    /// `None`: a label that no series has is asked for, so that nothing is picked.
    matchers: Option<Vec<Matcher>>,
    range: TimeRange,
    rows: RowsAs,
}

/// Answers in the form that the client prefers.
pub(super) async fn answer(
    State(hub): State<Arc<Hub>>,
    head: RequestHead,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, PlainFailure> {
    let bad =
        |why: String| Failure::new(ErrorType::BadData, format!("cannot read the body: {why}"));
    let body = body.map_err(|error| bad(error.body_text()))?;
    head.visitor.connection.does(Doing::IsAnswered);
    let mut message = Vec::new();
    let unpacked = decompress(&body, REQUEST_MAX, &mut message);
    unpacked.map_err(|why: BadSnappy| bad(why.to_string()))?;
    let request = ReadRequest::of(&message).map_err(|why| bad(why.to_string()))?;
    let queries = request.queries.iter().map(SeriesQuery::of);
    let queries = queries.collect::<Result<Vec<SeriesQuery>, Failure>>()?;
    let answer = match request.form {
        ResponseForm::Samples => samples::answer(hub, &head, queries).await,
        ResponseForm::Chunks => frames::answer(hub, head, queries).await,
    };
    Ok(answer?)
}

impl SeriesQuery {
    fn of(query: &ReadQuery) -> Result<SeriesQuery, Failure> {
        let (mut matchers, mut picks) = (Vec::new(), true);
        for sent in &query.matchers {
            match label_set::is_name(sent.name.as_bytes()) {
                true => matchers.push(matcher(sent, sent.name)?),
                // Kept series have no such label, so its value is empty.
                false => picks &= matcher(sent, ANY_LABEL)?.matches_empty(),
            }
        }
        Ok(SeriesQuery {
            matchers: picks.then_some(matchers),
            range: TimeRange {
                from_ms: query.from_ms,
                thru_ms: query.thru_ms,
            },
            rows: RowsAs::values(row_value(query.function)),
        })
    }
}

/// A name in the place of one that no label may have.
const ANY_LABEL: &str = "label";

fn matcher(sent: &ReadMatcher, name: &str) -> Result<Matcher, Failure> {
    let op = match sent.kind {
        MatcherKind::Equal => Op::Equal,
        MatcherKind::NotEqual => Op::NotEqual,
        MatcherKind::Matches => Op::Matches,
        MatcherKind::NotMatches => Op::NotMatches,
    };
    let matcher = Matcher::new(name, op, sent.value);
    matcher.map_err(|error| Failure::new(ErrorType::BadData, error.to_string()))
}

/// The value of rows that a function of PromQL needs.
fn row_value(function: &str) -> RowValue {
    match function {
        "rate" | "increase" | "irate" | "resets" => RowValue::Growth,
        "min_over_time" => RowValue::Min,
        "max_over_time" => RowValue::Max,
        "avg_over_time" | "sum_over_time" | "quantile_over_time" | "stddev_over_time"
        | "stdvar_over_time" | "mad_over_time" => RowValue::Mean,
        _ => RowValue::Last,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query<'a>(matchers: &[(MatcherKind, &'a str, &'a str)]) -> ReadQuery<'a> {
        let matcher = |&(kind, name, value): &(MatcherKind, &'a str, &'a str)| ReadMatcher {
            kind,
            name,
            value,
        };
        ReadQuery {
            matchers: matchers.iter().map(matcher).collect(),
            function: "rate",
            ..ReadQuery::default()
        }
    }

    #[test]
    fn matchers_are_those_of_selectors() {
        use MatcherKind::{Equal, Matches, NotEqual};
        for (matchers, count) in [
            (
                &[(Equal, "__name__", "up"), (Matches, "job", "n.+")][..],
                Some(2),
            ),
            (&[], Some(0)),
            (&[(Equal, "a.b", "c")], None),
            (&[(NotEqual, "a.b", "c"), (Equal, "job", "node")], Some(1)),
        ] {
            let query = SeriesQuery::of(&query(matchers)).unwrap();
            assert_eq!(query.matchers.map(|matchers| matchers.len()), count);
            assert_eq!(query.rows.value, RowValue::Growth);
        }
        let wrong = SeriesQuery::of(&query(&[(Matches, "job", "(")]));
        assert_eq!(wrong.err().map(|of| of.kind), Some(ErrorType::BadData));
    }
}
