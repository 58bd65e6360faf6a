//! The answers, one file each, and their shared parts: the asker, parameters, threads that read.

mod about;
mod boards;
mod events;
mod fields;
#[cfg(feature = "testing")]
pub(crate) mod fuzz;
mod graph;
mod groups;
mod hosts;
mod live;
mod metrics;
mod movers;
mod processes;
pub(crate) mod programs;
pub(crate) mod prometheus;
mod push;
mod series;
mod session;
mod stored;
mod table;
mod targets;
mod texts;
mod why;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, FromRequestParts, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use axum::response::IntoResponse as _;
use axum::routing::{get, post};
use kymo_kernel::exposition::Floor;
use kymo_sys::clock::{Clock as _, RealClock};

use crate::access::{self, Access, Denied, Scopes};
use crate::answer::{Answer, Made, Refusal, Wishes};
use crate::asker::{self, Asker};
use crate::boards::{BOARD_MAX, Boards};
use crate::connections::Connection;
use crate::cost::Meter;
use crate::now::Now;
use crate::room::Room;
use crate::stored::Stored;
use crate::tally::Counter;
use crate::targets::Targets;
use crate::turns::{Lane, Lanes, SERIES_TURNS_MAX};
use crate::visitor::Visitor;
use crate::{Settings, UPSTREAM, assets, number};
use kymo_keeper_client::Keeper;
use kymo_query::archive::{Archive, Rollups};
use kymo_query::fields::Fields;
use kymo_query::history::Feeder;
use kymo_query::sheet::Pick;
use kymo_view::standard;

/// Longest wait of a question for its turn.
const WAIT: Duration = Duration::from_secs(10);
/// Most bytes of a request's body.
const BODY_BYTES: usize = 16 << 10;
/// Time that an answer takes from one process to another.
const MOMENT: Duration = Duration::from_millis(500);
/// Longest time until an answer begins.
const ANSWER_TIME: Duration = Duration::from_secs(40);

/// Fields whose means the feeder keeps: those of the standard graphs.
fn kept_fields() -> Vec<Pick> {
    let picks = standard::fields().into_iter().map(Pick::parse);
    picks.filter_map(Result::ok).collect()
}

/// Sources of all answers.
pub(crate) struct Hub {
    archive: Arc<Archive>,
    stored: Option<Stored>,
    /// The process that asks another engine, for questions of Prometheus' clients.
    upstream: Option<Keeper>,
    external_labels: BTreeMap<String, String>,
    targets: Option<Arc<Targets>>,
    boards: Option<Boards>,
    /// The keeper as it takes requests of senders, and room for their bodies.
    pushes: Option<push::Pushes>,
    feeder: Option<Feeder>,
    fields: Fields,
    now: Arc<Now>,
    access: Access,
    meter: Meter,
    counter: Counter,
    /// Counters as they were shown last, so that none goes back.
    floor: Mutex<Floor>,
    lanes: Lanes,
    room: Arc<Room>,
    prefix: String,
    assets: Option<PathBuf>,
    address: Option<IpAddr>,
}

impl Hub {
    /// A hub with these settings.
    pub(crate) fn new(settings: Settings) -> Hub {
        let stored = settings.keeper.map(Stored::new);
        let targets = settings.what.ring().zip(stored.as_ref());
        let targets = targets.map(|(data, stored)| Targets::new(data, stored.keeper().keeper()));
        // A store that gets no history of this machine may have that of another machine.
        let is_fed = settings.keeper_writes.is_some();
        let history = stored.as_ref().filter(|_| is_fed);
        let history = history.map(|stored| stored.keeper().clone());
        let archive = Arc::new(Archive::new(
            settings.what,
            settings.rollups.map(Rollups::new),
        ));
        Hub {
            now: Arc::new(Now::new(archive.clone())),
            fields: Fields::new(archive.clone(), history),
            pushes: settings.keeper_writes.clone().map(push::Pushes::new),
            feeder: settings
                .keeper_writes
                .map(|socket| Feeder::new(&socket, archive.clone(), kept_fields())),
            upstream: settings.upstream.map(|place| {
                // The process itself waits no longer; a moment more is for one that hangs.
                let patience = Duration::from_millis(place.answer_ms) + MOMENT;
                Keeper::shared(place.socket, SERIES_TURNS_MAX, patience).named(UPSTREAM)
            }),
            external_labels: settings.external_labels,
            archive,
            stored,
            targets: targets.map(Arc::new),
            boards: settings.boards.map(Boards::new),
            access: Access::new(
                &settings.hosts,
                settings.loopback,
                settings.trust_proxy,
                (settings.token, settings.write_token),
                settings.code,
            ),
            meter: Meter::default(),
            counter: Counter::default(),
            floor: Mutex::default(),
            lanes: Lanes::default(),
            room: Arc::default(),
            prefix: settings.prefix,
            assets: settings.assets,
            address: settings.address,
        }
    }

    /// Fails if the recordings cannot be shown.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.archive.what.check()
    }

    /// Starts the background tasks.
    pub(crate) fn start(self: Arc<Hub>) {
        if self.archive.what.ring().is_some() {
            tokio::spawn(self.now.clone().follow());
            let archive = self.archive.clone();
            std::thread::spawn(move || archive.keep_rollups());
            if self.feeder.is_some() {
                std::thread::spawn(move || self.feeder.iter().for_each(Feeder::run));
            }
        }
    }

    /// Admits a request: checks host and origin, removes the prefix, and adds the asker and its scopes.
    pub(crate) fn admit(
        &self,
        mut request: Request<Body>,
        connection: &Arc<Connection>,
    ) -> Result<Request<Body>, Denied> {
        self.access.check_target(request.uri())?;
        self.access.check_origin(request.headers())?;
        self.take_prefix(request.uri_mut())?;
        let headers = request.headers();
        let origin = asker::of_request(connection.origin, headers, self.access.proxies());
        let scopes = self.access.scopes(headers, origin)?;
        let asker = Asker {
            origin,
            has_token: scopes.has_token(),
        };
        connection.is_of(asker);
        let path = request.uri().path();
        let is_push = push::is_path(path);
        if is_push {
            push::admit(scopes)?;
        }
        let open = is_push || path == "/kymo/v1/session" || !is_answer(path);
        if !scopes.may_read_numbers() && !open {
            let text = "cannot answer: the request has no valid token";
            return Err(Refusal::new(StatusCode::UNAUTHORIZED, text).into());
        }
        request.extensions_mut().insert(Visitor {
            asker,
            scopes,
            connection: connection.clone(),
        });
        Ok(request)
    }

    /// Removes the prefix. A proxy may have removed it already, so paths without it are valid, too.
    fn take_prefix(&self, uri: &mut Uri) -> Result<(), Refusal> {
        let rest = uri.path_and_query().and_then(|whole| {
            let rest = whole.as_str().strip_prefix(&self.prefix)?;
            (rest.starts_with('/') && !self.prefix.is_empty()).then(|| rest.to_string())
        });
        if let Some(rest) = rest {
            let no = |_| Refusal::bad("cannot understand the path");
            *uri = rest.parse().map_err(no)?;
        }
        Ok(())
    }

    /// Answers `question` on a reader thread when the asker's turn comes. The hub refuses a question that would wait
    /// for longer than [`WAIT`].
    async fn ask<T: Send + 'static>(
        self: Arc<Hub>,
        lane: Lane,
        asker: Asker,
        question: impl FnOnce(&Hub) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        self.ask_within(WAIT, lane, asker, question).await
    }

    /// Answers as [`Hub::ask`] does, with another longest wait.
    async fn ask_within<T: Send + 'static>(
        self: Arc<Hub>,
        wait: Duration,
        lane: Lane,
        asker: Asker,
        question: impl FnOnce(&Hub) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let busy = || Refusal::unavailable("cannot answer now: too many questions at once");
        let turn = tokio::time::timeout(wait, self.lanes.of(lane).wait(asker)).await;
        let turn = turn.ok().flatten().ok_or_else(busy)?;
        let answer = tokio::task::spawn_blocking(move || {
            let answer = question(&self);
            drop(turn);
            answer
        });
        answer
            .await
            .map_err(|_| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "cannot answer: a bug"))?
    }

    /// Answers a question with a body, which a reader thread makes, compresses and tags.
    async fn answer(
        self: Arc<Hub>,
        lane: Lane,
        head: &RequestHead,
        media_type: &'static str,
        question: impl FnOnce(&Hub) -> Result<Vec<u8>, Refusal> + Send + 'static,
    ) -> Answer {
        let (room, wishes) = (self.room.clone(), Wishes::of(&head.headers));
        let made = move |hub: &Hub| Ok(Made::tagged(&wishes, media_type, question(hub)?));
        let made = self.ask(lane, head.visitor.asker, made).await?;
        made.response(&room, &head.visitor)
    }

    /// Answers with a body of JSON.
    async fn answer_json(
        self: Arc<Hub>,
        lane: Lane,
        head: &RequestHead,
        question: impl FnOnce(&Hub) -> Result<String, Refusal> + Send + 'static,
    ) -> Answer {
        let question = |hub: &Hub| Ok(question(hub)?.into_bytes());
        self.answer(lane, head, "application/json", question).await
    }
}

/// The head of a request, and its asker.
pub(crate) struct RequestHead {
    visitor: Visitor,
    scopes: Scopes,
    uri: Uri,
    headers: HeaderMap,
}

impl<S: Sync> FromRequestParts<S> for RequestHead {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<RequestHead, Refusal> {
        let visitor = parts.extensions.get::<Visitor>().cloned();
        let visitor = visitor.ok_or_else(|| Refusal::unavailable("cannot answer: a bug"))?;
        Ok(RequestHead {
            scopes: visitor.scopes,
            visitor,
            uri: parts.uri.clone(),
            headers: parts.headers.clone(),
        })
    }
}

/// All paths of the hub.
pub(crate) fn router(hub: Arc<Hub>) -> Router {
    Router::new()
        .route("/kymo/v1/status", get(about::status))
        .route("/kymo/v1/cost", get(about::cost))
        .route("/kymo/v1/fields", get(fields::answer))
        .route("/kymo/v1/series", get(series::answer))
        .route("/kymo/v1/graph.svg", get(graph::answer))
        .route("/kymo/v1/live", get(live::answer))
        .route("/kymo/v1/events", get(events::answer))
        .route("/kymo/v1/processes", get(processes::answer))
        .route("/kymo/v1/movers", get(movers::answer))
        .route("/kymo/v1/why", get(why::answer))
        .route("/kymo/v1/groups", get(groups::answer))
        .route("/kymo/v1/stored", get(stored::answer))
        .route("/kymo/v1/hosts", get(hosts::answer))
        .route("/kymo/v1/programs", get(programs::answer))
        .route("/kymo/v1/targets", get(targets::list))
        .route("/kymo/v1/targets/devices", get(targets::devices))
        .route("/kymo/v1/targets/graphs", get(targets::graphs))
        .route("/kymo/v1/sources", get(texts::sources))
        .route("/kymo/v1/text", get(texts::text))
        .route("/kymo/v1/session", post(session::begin))
        .route("/kymo/v1/boards", get(boards::list))
        .merge(board_router())
        .route("/metrics", get(metrics::answer))
        .nest("/api/v1", prometheus::router())
        .nest("/prometheus/api/v1", prometheus::router())
        .route("/federate", get(prometheus::federate::answer))
        .route("/prometheus/federate", get(prometheus::federate::answer))
        .merge(health_router())
        .route(push::OTLP_PATH, post(push::otlp))
        .fallback(page)
        .method_not_allowed_fallback(async || other_method())
        .layer(DefaultBodyLimit::max(BODY_BYTES))
        .layer(axum::middleware::from_fn(in_time))
        .with_state(hub)
}

/// Paths by which a client learns if the hub answers; Prometheus has the same.
fn health_router() -> Router<Arc<Hub>> {
    use prometheus::server::{healthy, ready};
    ["", "/prometheus"]
        .iter()
        .fold(Router::new(), |router, prefix| {
            router
                .route(&format!("{prefix}/-/healthy"), get(healthy))
                .route(&format!("{prefix}/-/ready"), get(ready))
        })
}

/// The paths of boards, whose bodies may be longer than others.
fn board_router() -> Router<Arc<Hub>> {
    let methods = get(boards::read).put(boards::keep).delete(boards::remove);
    let router = Router::new().route("/kymo/v1/boards/{name}", methods);
    router.layer(DefaultBodyLimit::max(BOARD_MAX))
}

/// Refuses an answer that does not begin in time.
async fn in_time(
    request: axum::extract::Request,
    next: axum::middleware::Next,
) -> axum::response::Response {
    match tokio::time::timeout(ANSWER_TIME, next.run(request)).await {
        Ok(response) => response,
        Err(_) => Refusal::unavailable("cannot answer: it took too long").into_response(),
    }
}

/// True for paths of answers, which are not files of the page: kymo's own paths, and those of Prometheus' clients.
fn is_answer(path: &str) -> bool {
    let parts = ["/kymo/", "/api/", "/prometheus/", "/-/"];
    let texts = ["/metrics", "/federate"];
    parts.iter().any(|part| path.starts_with(part)) || texts.contains(&path)
}

fn other_method() -> Refusal {
    let text = "cannot do this: another method is needed";
    Refusal::new(StatusCode::METHOD_NOT_ALLOWED, text)
}

/// A file of the page. An unknown endpoint is missing by each method: a client would try another one for nothing.
async fn page(State(hub): State<Arc<Hub>>, method: Method, uri: Uri, headers: HeaderMap) -> Answer {
    if is_answer(uri.path()) {
        return Err(Refusal::missing("cannot find this: unknown endpoint"));
    }
    if !matches!(method, Method::GET | Method::HEAD) {
        return Err(other_method());
    }
    assets::answer(&headers, uri.path(), hub.assets.as_ref())
}

/// Adds the headers of every answer.
pub(crate) fn finish(mut response: Response<Body>) -> Response<Body> {
    access::harden(response.headers_mut());
    response
}

/// Most seconds of a time from 1970 or from now, so that sums of times do not overflow.
const SECONDS_MAX: f64 = 4e9;

/// Parameters of a question.
pub(crate) struct Params {
    given: Vec<(String, String)>,
    /// Time of the question, in nanoseconds since 1970.
    now_ns: i64,
}

impl Params {
    /// Reads the query of a URL.
    pub(crate) fn of(uri: &Uri) -> Params {
        let query = uri.query().unwrap_or_default();
        Params {
            given: form_urlencoded::parse(query.as_bytes())
                .into_owned()
                .collect(),
            now_ns: RealClock.now().real_ns,
        }
    }

    /// Text of a parameter.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        let found = self.given.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// All texts of a parameter that may be given several times.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let given = self.given.iter().filter(move |(known, _)| known == name);
        given.map(|(_, value)| value.as_str())
    }

    /// Ids of fields: comma-separated, in one parameter or in several; a comma within a name is `%2C`.
    pub(crate) fn fields(&self) -> Vec<String> {
        let given = self.given.iter().filter(|(name, _)| name == "fields");
        given
            .flat_map(|(_, value)| value.split(','))
            .filter(|id| !id.is_empty())
            .map(|id| id.replace("%2C", ",").replace("%25", "%"))
            .collect()
    }

    /// A count between 1 and `most`.
    pub(crate) fn count(&self, name: &str, default: usize, most: usize) -> Result<usize, Refusal> {
        let Some(text) = self.text(name) else {
            return Ok(default);
        };
        let count = text.parse().ok().filter(|n| (1..=most).contains(n));
        count.ok_or_else(|| {
            Refusal::bad(format!(
                "cannot use {name} {text:?}: a number from 1 to {most}"
            ))
        })
    }

    /// A time in nanoseconds since 1970, never before 1970: seconds, possibly with a fraction, or a text that needs no zone
    /// (`-90`, `-1h`, `now`).
    pub(crate) fn time(&self, name: &str, default: &str) -> Result<i64, Refusal> {
        let text = self.text(name).unwrap_or(default);
        let seconds: Option<f64> = text.parse().ok().filter(|s: &f64| s.abs() < SECONDS_MAX);
        match seconds {
            Some(seconds) if text.starts_with('-') => {
                Ok((self.now_ns + number::nanoseconds(seconds)).max(0))
            }
            Some(seconds) => Ok(number::nanoseconds(seconds)),
            None => match kymo_view::time::moment(text, self.now_ns) {
                Some(moment_ns) => Ok(moment_ns.max(0)),
                None => Err(Refusal::bad(format!(
                    "cannot use {name} {text:?}: a time is in seconds since 1970, or now, or -1h"
                ))),
            },
        }
    }

    /// A range of time, which is not empty.
    pub(crate) fn range(&self) -> Result<(i64, i64), Refusal> {
        let (from, thru) = (self.time("from", "-3600")?, self.time("thru", "now")?);
        match from < thru {
            true => Ok((from, thru)),
            false => Err(Refusal::bad("cannot use from: it is not before thru")),
        }
    }
}
