//! `/api/v1/`: Prometheus' API, over all series that kymo has.
//!
//! `form` reads parameters, `query` evaluates expressions, `labels` lists what there is, `descriptions` says what metrics and
//! the server are, `server` its limits and its health, `federate` has the newest samples, `remote_read` all samples of a time,
//! `scraped` the targets; `json` and `failure` write answers.

mod descriptions;
mod expressions;
mod failure;
pub(super) mod federate;
mod form;
mod json;
mod labels;
mod query;
mod remote_read;
mod scraped;
pub(super) mod server;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, FromRequest, Request};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use kymo_promql::TEXT_MAX;
use kymo_query::readers::{RecordedReader, Union};
use kymo_query::stored::KeeperReader;
use kymo_series::Reader;
use kymo_sys::clock::{Clock as _, RealClock};

use self::failure::{ErrorType, Failure};
use self::form::Form;
use super::{Hub, RequestHead, push};
use crate::access::Scopes;
use crate::answer::{Made, Wishes};
use crate::connections::Doing;
use crate::turns::Lane;
use crate::visible::{Described, Visible};

pub use self::form::step_ms;
pub use self::json::json_of_answer;

/// Header of the questions of another kymo: two that are each other's upstream would ask for ever.
const HERE_ALONE: &str = "x-kymo-upstream";
/// Longest time of a question, with its wait for a turn.
const PATIENCE: Duration = Duration::from_secs(30);
/// Most bytes of an answer: all that the hub holds of answers that are being sent.
const ANSWER_MAX: usize = 32 << 20;
/// Most bytes of a form: the longest expression, each byte of which may be written with three.
const FORM_MAX: usize = 4 * TEXT_MAX;

/// The paths below `/api/v1`.
pub(super) fn router() -> Router<Arc<Hub>> {
    Router::new()
        .route("/query", get(query::instant).post(query::instant))
        .route("/query_range", get(query::range).post(query::range))
        .route(
            "/query_exemplars",
            get(descriptions::no_list).post(descriptions::no_list),
        )
        .route(
            "/format_query",
            get(expressions::format).post(expressions::format),
        )
        .route(
            "/parse_query",
            get(expressions::parsed).post(expressions::parsed),
        )
        .route("/labels", get(labels::names).post(labels::names))
        .route("/label/{name}/values", get(labels::values))
        .route("/series", get(labels::series).post(labels::series))
        .route("/metadata", get(descriptions::metadata))
        .route("/status/buildinfo", get(descriptions::build))
        .route("/status/config", get(server::config))
        .route("/status/flags", get(server::flags))
        .route("/status/runtimeinfo", get(server::runtime))
        .route("/rules", get(descriptions::no_rules))
        .route("/alerts", get(descriptions::no_alerts))
        .route("/alertmanagers", get(descriptions::no_alertmanagers))
        .route("/targets", get(scraped::targets))
        .route("/targets/metadata", get(descriptions::no_list))
        .route("/read", post(remote_read::answer))
        .layer(DefaultBodyLimit::max(FORM_MAX))
        .route("/write", post(push::remote_write))
        .route("/otlp/v1/metrics", post(push::otlp))
}

/// A request with its parameters.
pub(super) struct FormRequest {
    head: RequestHead,
    form: Form,
}

impl<S: Sync> FromRequest<S> for FormRequest {
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<FormRequest, Response> {
        use axum::extract::FromRequestParts as _;
        let (mut parts, body) = request.into_parts();
        let head = RequestHead::from_request_parts(&mut parts, state).await;
        let head = head.map_err(|refusal| Failure::from(refusal).into_response())?;
        let body = Bytes::from_request(Request::from_parts(parts, body), &()).await;
        let body = body.map_err(|error: BytesRejection| {
            let text = format!("error parsing form values: {}", error.body_text());
            Failure::new(ErrorType::BadData, text).into_response()
        })?;
        // A client has less time for a form than the answer may take.
        head.visitor.connection.does(Doing::IsAnswered);
        let form = Form::of(&head.uri, &head.headers, &body);
        Ok(FormRequest { head, form })
    }
}

/// Sets the flag of a question when its client has gone, or the question has an answer.
struct Gone(Arc<AtomicBool>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Terms of a question: the asker's scopes, its deadline, and the flag of a client that has gone.
struct Terms {
    scopes: Scopes,
    /// True: another kymo asks, as whose upstream this one answers with its own series.
    asks_here_alone: bool,
    /// In nanoseconds of the monotonic clock.
    deadline_ns: u64,
    canceled: Arc<AtomicBool>,
}

impl Terms {
    /// Terms of a question that begins now. They are over when the second value goes.
    fn new(head: &RequestHead, timeout: Duration) -> (Terms, Gone) {
        let timeout_ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        let gone = Gone(Arc::default());
        let terms = Terms {
            scopes: head.scopes,
            asks_here_alone: head.headers.contains_key(HERE_ALONE),
            deadline_ns: RealClock.mono_ns().saturating_add(timeout_ns),
            canceled: gone.0.clone(),
        };
        (terms, gone)
    }

    fn is_late(&self) -> bool {
        self.left() == Duration::ZERO
    }

    fn left(&self) -> Duration {
        Duration::from_nanos(self.deadline_ns.saturating_sub(RealClock.mono_ns()))
    }

    /// A reader of all series that the asker may see, those of the upstream too. Lists of the recording's labels begin at
    /// `listed_from_ms`.
    fn reader(&self, hub: &Hub, listed_from_ms: i64) -> Result<Union<'static>, Failure> {
        let mut readers = self.own_readers(hub, listed_from_ms)?;
        if let Some(upstream) = hub.upstream.as_ref().filter(|_| !self.asks_here_alone) {
            let reader = KeeperReader::new(upstream.clone());
            readers.push(Box::new(Visible::new(
                reader,
                self.scopes,
                Described::OfSeries,
            )));
        }
        Ok(Union::new(readers))
    }

    /// A reader of all series that kymo has itself, for other engines: the upstream may be one of them.
    fn own_reader(&self, hub: &Hub) -> Result<Union<'static>, Failure> {
        Ok(Union::new(self.own_readers(hub, i64::MIN)?))
    }

    fn own_readers(&self, hub: &Hub, listed_from_ms: i64) -> Result<Vec<Box<dyn Reader>>, Failure> {
        let recordings = hub.archive.what.recordings_within(self.left());
        let recordings = recordings.map_err(|why| Failure::new(ErrorType::Unavailable, why))?;
        let recorded = RecordedReader::new(recordings);
        let recorded = Visible::new(recorded, self.scopes, Described::Always);
        let recorded = recorded.listed_from(listed_from_ms);
        let mut readers: Vec<Box<dyn Reader>> = vec![Box::new(recorded)];
        if let Some(stored) = &hub.stored {
            readers.push(Box::new(stored.reader(self.scopes)));
        }
        Ok(readers)
    }
}

/// Answers a question on a reader thread. A question whose client goes away ends.
async fn answer(
    hub: Arc<Hub>,
    head: &RequestHead,
    timeout: Duration,
    question: impl FnOnce(&Hub, &Terms) -> Result<String, Failure> + Send + 'static,
) -> Result<Response, Failure> {
    let wishes = Wishes::of(&head.headers);
    let made = move |hub: &Hub, terms: &Terms| {
        let body = question(hub, terms)?.into_bytes();
        Ok(Made::tagged(&wishes, "application/json", body))
    };
    answer_with(hub, head, timeout, made).await
}

/// Answers as [`answer`] does, with any body.
async fn answer_with(
    hub: Arc<Hub>,
    head: &RequestHead,
    timeout: Duration,
    question: impl FnOnce(&Hub, &Terms) -> Result<Made, Failure> + Send + 'static,
) -> Result<Response, Failure> {
    let (terms, _gone) = Terms::new(head, timeout);
    let room = hub.room.clone();
    let made = move |hub: &Hub| Ok(question(hub, &terms));
    let asker = head.visitor.asker;
    let made = hub.ask_within(timeout, Lane::Series, asker, made).await??;
    Ok(made.response(&room, &head.visitor)?)
}

/// Reads bytes as a form, and as values of its parameters. Values that are accepted must be sound.
#[cfg(feature = "testing")]
pub(super) fn fuzz_form(input: &[u8]) {
    use axum::http::{HeaderMap, HeaderValue, Uri, header};
    let mut headers = HeaderMap::new();
    let form_type = HeaderValue::from_static("application/x-www-form-urlencoded");
    headers.insert(header::CONTENT_TYPE, form_type);
    let names = ["time=", "&step=", "&timeout=", "&limit=", "&match[]="];
    let values = input.split(|&byte| byte == b'\n');
    let known: Vec<&[u8]> = names
        .iter()
        .zip(values)
        .flat_map(|(name, value)| [name.as_bytes(), value])
        .collect();
    for body in [input, &known.concat()] {
        let form = Form::of(&Uri::from_static("/"), &headers, body);
        let step_ms = form::step_ms(form.text("step"));
        assert!(step_ms.is_none_or(|step_ms| step_ms > 0), "no step");
        let timeout = form.timeout(PATIENCE);
        assert!(
            timeout.is_ok_and(|timeout| timeout <= PATIENCE) || !form.text("timeout").is_empty()
        );
        assert!(form.limit() != Ok(Some(0)), "a limit without an answer");
        let sets = form.matchers().ok().flatten().unwrap_or_default();
        let matches_all = |set: &Vec<kymo_series::Matcher>| set.iter().all(|m| m.matches_empty());
        assert!(!sets.iter().any(matches_all), "a set that picks all");
        let _times = (form.time("time"), form.range());
    }
}

/// A fixed answer.
fn fixed(data: &str) -> Response {
    let body = format!("{{\"status\":\"success\",\"data\":{data}}}");
    Made::plain("application/json", body.into_bytes()).unbounded()
}
