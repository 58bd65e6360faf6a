//! `/api/v1/query` and `/api/v1/query_range`: expressions at a moment, and over a range.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use kymo_promql::{Answer, Engine, EvalError, Expr, Limits, Value, Watch, parse};
use kymo_query::readers::Union;
use kymo_series::Reader as _;

use super::failure::{ErrorType, Failure};
use super::form::{Form, whole};
use super::json::{Remarks, success};
use super::{ANSWER_MAX, FormRequest, Hub, PATIENCE, Terms, answer};

/// Most points of a series.
const POINTS_MAX: i64 = 11_000;
/// Most values in memory at a time; 8 bytes each.
const VALUES_MAX: usize = 10_000_000;

/// When an expression is evaluated, in milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moments {
    At(i64),
    Range {
        from_ms: i64,
        thru_ms: i64,
        step_ms: i64,
    },
}

/// An expression to be evaluated.
struct Evaluation {
    text: String,
    expr: Expr,
    moments: Moments,
    limits: Limits,
    limit: Option<usize>,
}

pub(super) async fn instant(
    State(hub): State<Arc<Hub>>,
    asking: FormRequest,
) -> Result<Response, Failure> {
    let moments = Moments::At(asking.form.time_or("time", asking.form.now_ms())?);
    evaluate(hub, asking, moments).await
}

pub(super) async fn range(
    State(hub): State<Arc<Hub>>,
    asking: FormRequest,
) -> Result<Response, Failure> {
    let moments = moments(&asking.form)?;
    evaluate(hub, asking, moments).await
}

async fn evaluate(
    hub: Arc<Hub>,
    asking: FormRequest,
    moments: Moments,
) -> Result<Response, Failure> {
    let timeout = asking.form.timeout(PATIENCE)?;
    let question = Evaluation::of(&asking.form, moments)?;
    let evaluated = move |hub: &Hub, terms: &Terms| question.answer(hub, terms);
    answer(hub, &asking.head, timeout, evaluated).await
}

/// The moments of a range.
fn moments(form: &Form) -> Result<Moments, Failure> {
    let (from_ms, thru_ms) = (form.time("start")?, form.time("end")?);
    if thru_ms < from_ms {
        let why = "end timestamp must not be before start time";
        return Err(Failure::parameter("end", why));
    }
    let step_ms = whole(form.duration_ms("step")?);
    if step_ms <= 0 {
        let why = "zero or negative query resolution step widths are not accepted. Try a positive integer";
        return Err(Failure::parameter("step", why));
    }
    let points = thru_ms
        .checked_sub(from_ms)
        .map(|length_ms| length_ms / step_ms);
    if points.is_none_or(|points| points > POINTS_MAX) {
        let text = "exceeded maximum resolution of 11,000 points per timeseries. \
                    Try decreasing the query resolution (?step=XX)";
        return Err(Failure::new(ErrorType::BadData, text));
    }
    Ok(Moments::Range {
        from_ms,
        thru_ms,
        step_ms,
    })
}

impl Evaluation {
    fn of(form: &Form, moments: Moments) -> Result<Evaluation, Failure> {
        let limit = form.limit()?;
        let mut limits = Limits {
            values: VALUES_MAX,
            ..Limits::default()
        };
        if let Some(lookback_ms) = form.lookback_ms()? {
            limits.lookback_ms = lookback_ms;
        }
        let text = form.text("query").to_string();
        let expr = parse(&text).map_err(|error| Failure::parameter("query", error))?;
        Ok(Evaluation {
            text,
            expr,
            moments,
            limits,
            limit,
        })
    }

    fn answer(&self, hub: &Hub, terms: &Terms) -> Result<String, Failure> {
        let reader = terms.reader(hub, i64::MIN)?;
        let mut answer = self.evaluated(&reader, terms)?;
        let mut remarks = Remarks::of(&answer, &self.text);
        remarks.warn(reader.missing());
        if self
            .limit
            .is_some_and(|limit| truncate(&mut answer.value, limit))
        {
            remarks.warn(["results truncated due to limit".to_string()]);
        }
        let t_ms = match self.moments {
            Moments::At(t_ms) => t_ms,
            Moments::Range { thru_ms, .. } => thru_ms,
        };
        success(&remarks, ANSWER_MAX, |json| json.value(&answer.value, t_ms))
    }

    fn evaluated(&self, reader: &Union<'_>, terms: &Terms) -> Result<Answer, Failure> {
        let engine = Engine::new(self.limits);
        let is_late = || terms.is_late();
        let watch = Watch {
            canceled: &terms.canceled,
            is_late: &is_late,
        };
        let answer = match self.moments {
            Moments::At(t_ms) => engine.instant(&self.expr, t_ms, reader, watch),
            Moments::Range {
                from_ms,
                thru_ms,
                step_ms,
            } => engine.range(&self.expr, from_ms, thru_ms, step_ms, reader, watch),
        };
        // A recording that is read for too long fails.
        answer.map_err(|error| match (error, terms.is_late()) {
            (EvalError::Unavailable(_), true) => EvalError::Timeout.into(),
            (error, _) => error.into(),
        })
    }
}

/// Leaves `limit` series; true if there were more.
fn truncate(value: &mut Value, limit: usize) -> bool {
    let count = match value {
        Value::Scalar(_) | Value::Text(_) => return false,
        Value::Vector(series) => {
            let count = series.len();
            series.truncate(limit);
            count
        }
        Value::Matrix(tracks) => {
            let count = tracks.len();
            tracks.truncate(limit);
            count
        }
    };
    count > limit
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderMap, Uri};
    use kymo_promql::LabelSet;

    use super::*;

    fn moments_of(query: &str) -> Result<Moments, Failure> {
        let uri = Uri::try_from(format!("/x?{query}")).unwrap();
        moments(&Form::of(&uri, &HeaderMap::new(), b""))
    }

    #[test]
    fn a_range_has_11000_points_at_most() {
        let known = Moments::Range {
            from_ms: 1000,
            thru_ms: 2500,
            step_ms: 500,
        };
        assert_eq!(moments_of("start=1&end=2.5&step=0.5"), Ok(known));
        assert!(moments_of("start=0&end=11000&step=1").is_ok());
        for (query, part) in [
            ("start=0&end=11001&step=1", "exceeded maximum resolution"),
            ("start=2&end=1&step=1", "\"end\": end timestamp"),
            ("start=1&end=2&step=0", "\"step\": zero or negative"),
            ("start=1&end=2&step=-1s", "\"step\": cannot parse"),
            ("start=1&end=2&step=0.0001", "zero or negative"),
            ("start=1&end=2", "\"step\": cannot parse"),
            ("start=x&end=2&step=1", "\"start\": cannot parse"),
            ("end=2&step=1", "\"start\": cannot parse"),
            (
                "start=-292273086-05-16T16:47:06Z&end=292277025-08-18T07:12:54.999999999Z&step=1y",
                "exceeded maximum",
            ),
        ] {
            let failure = moments_of(query).unwrap_err();
            assert_eq!(failure.kind, ErrorType::BadData);
            assert!(failure.text.contains(part), "{query}: {}", failure.text);
        }
    }

    #[test]
    fn a_limit_is_of_series() {
        let series = |count| Value::Vector(vec![(LabelSet::empty(), 1.0); count]);
        for (count, is_cut) in [(1, false), (2, false), (3, true)] {
            let mut value = series(count);
            assert_eq!(truncate(&mut value, 2), is_cut);
            assert_eq!(value, series(count.min(2)));
        }
        assert!(!truncate(&mut Value::Scalar(1.0), 1));
    }
}
