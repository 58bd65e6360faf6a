//! Sends requests to the engine by HTTP/1.1. An answer has a limit in bytes and in time; after one that did not come, the next
//! requests fail at once for a while, so that an engine that is away costs a question its time once.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderName, HeaderValue, USER_AGENT};
use hyper::{Request, Response, StatusCode};
use kymo_scrape::{Connection, Scheme, ScrapeUrl, Shared, TlsClient, client_config, words};
use kymo_sys::clock::{Clock as _, RealClock};
use tokio::time::timeout;

use super::api;
use super::order::UpstreamTarget;

/// Bytes of an answer.
const ANSWER_MAX: usize = 32 << 20;
/// Time for which no question waits for an engine that did not answer.
const PAUSE: Duration = Duration::from_secs(5);
const AGENT: &str = concat!("kymo/", env!("CARGO_PKG_VERSION"));
/// Has another kymo answer with its own series, and ask no upstream.
const HERE_ALONE: HeaderName = HeaderName::from_static("x-kymo-upstream");
const FORM: &str = "application/x-www-form-urlencoded";

/// Reasons why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The answer has more bytes than are read.
    TooLong,
    /// Another reason, for people.
    Other(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::TooLong => write!(
                f,
                "its answer has more than {ANSWER_MAX} bytes; ask for less"
            ),
            Failure::Other(why) => f.write_str(why),
        }
    }
}

/// A path below `/api/v1`, and how its parameters are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// Parameters are the form of a POST.
    Posted(&'static str),
    /// Parameters are in the URL.
    Got(String),
}

/// The engine, as all clients share it.
#[derive(Clone)]
pub(crate) struct Engine {
    url: ScrapeUrl,
    /// Path in front of the API's.
    prefix: String,
    /// Parameters of each request, from the URL of the configuration.
    parameters: String,
    host: HeaderValue,
    authorization: Option<HeaderValue>,
    tls: Option<TlsClient>,
    shared: Shared,
    timeout: Duration,
    /// Monotonic nanoseconds until which no question waits for it.
    silent_until_ns: Arc<AtomicU64>,
}

impl Engine {
    /// The engine of an order.
    pub(crate) fn new(target: &UpstreamTarget) -> Result<Engine, String> {
        let url = ScrapeUrl::of_server(&target.url)?;
        let (prefix, parameters) = url.path().split_once('?').unwrap_or((url.path(), ""));
        let tls = match url.scheme() {
            Scheme::Http => None,
            Scheme::Https => Some(TlsClient {
                config: client_config(&target.tls)?,
                server_name: target.tls.server_name.clone(),
            }),
        };
        Ok(Engine {
            prefix: prefix.trim_end_matches('/').to_string(),
            parameters: parameters.to_string(),
            host: HeaderValue::from_str(&url.instance()).map_err(|error| error.to_string())?,
            authorization: target.credentials.authorization()?,
            tls,
            shared: Shared::default(),
            timeout: Duration::from_millis(target.timeout_ms),
            silent_until_ns: Arc::default(),
            url,
        })
    }

    fn is_silent(&self) -> bool {
        RealClock.mono_ns() < self.silent_until_ns.load(Ordering::Relaxed)
    }

    fn falls_silent(&self) {
        let pause_ns = u64::try_from(PAUSE.as_nanos()).unwrap_or(u64::MAX);
        let until_ns = RealClock.mono_ns().saturating_add(pause_ns);
        self.silent_until_ns.store(until_ns, Ordering::Relaxed);
    }
}

/// One client's way to the engine: its connection is kept for the next request.
pub(crate) struct Client {
    engine: Engine,
    kept: Option<Connection>,
}

impl Client {
    /// A client without a connection.
    pub(crate) fn new(engine: Engine) -> Client {
        Client { engine, kept: None }
    }

    /// The bytes of an answer.
    pub(crate) async fn ask(
        &mut self,
        endpoint: &Endpoint,
        form: &str,
    ) -> Result<Vec<u8>, Failure> {
        let within = self.engine.timeout;
        if self.engine.is_silent() {
            let why = format!(
                "it had no answer within {} s a moment ago",
                within.as_secs_f64()
            );
            return Err(Failure::Other(why));
        }
        match timeout(within, self.exchange(endpoint, form)).await {
            Ok(answer) => answer,
            Err(_) => {
                self.engine.falls_silent();
                let why = format!("no answer within {} s", within.as_secs_f64());
                Err(Failure::Other(why))
            }
        }
    }

    async fn exchange(&mut self, endpoint: &Endpoint, form: &str) -> Result<Vec<u8>, Failure> {
        let request = || self.engine.request(endpoint, form).map_err(Failure::Other);
        if let Some(mut kept) = self.kept.take().filter(Connection::is_open)
            && let Ok(answer) = kept.ask(request()?).await
        {
            return self.read(kept, answer).await;
        }
        let engine = &self.engine;
        let tls = engine.tls.as_ref();
        let opened = Connection::open(&engine.url, tls, &engine.shared, engine.timeout);
        let mut connection = opened.await.map_err(Failure::Other)?;
        let answer = connection.ask(request()?).await.map_err(Failure::Other)?;
        self.read(connection, answer).await
    }

    /// Reads an answer. The connection is kept if the answer has ended.
    async fn read(
        &mut self,
        connection: Connection,
        answer: Response<Incoming>,
    ) -> Result<Vec<u8>, Failure> {
        let status = answer.status();
        let mut body = answer.into_body();
        let mut bytes = Vec::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| Failure::Other(words(&error)))?;
            bytes.extend_from_slice(frame.data_ref().map_or(&[], |data| data));
            if bytes.len() > ANSWER_MAX {
                return Err(Failure::TooLong);
            }
        }
        self.kept = Some(connection);
        match status {
            StatusCode::OK => Ok(bytes),
            _ => Err(Failure::Other(api::refusal(status, &bytes))),
        }
    }
}

impl Engine {
    fn request(&self, endpoint: &Endpoint, form: &str) -> Result<Request<Full<Bytes>>, String> {
        let (path, body, in_url) = match endpoint {
            Endpoint::Posted(path) => (*path, form, ""),
            Endpoint::Got(path) => (path.as_str(), "", form),
        };
        let parameters = [self.parameters.as_str(), in_url];
        let parameters = parameters.into_iter().filter(|text| !text.is_empty());
        let parameters = parameters.collect::<Vec<_>>().join("&");
        let separator = if parameters.is_empty() { "" } else { "?" };
        let uri = format!("{}/api/v1/{path}{separator}{parameters}", self.prefix);
        let request = match endpoint {
            Endpoint::Posted(_) => Request::post(uri),
            Endpoint::Got(_) => Request::get(uri),
        };
        let request = request.body(Full::new(Bytes::copy_from_slice(body.as_bytes())));
        let mut request = request.map_err(|error| format!("cannot ask {}: {error}", self.url))?;
        let headers = request.headers_mut();
        headers.insert(HOST, self.host.clone());
        headers.insert(HERE_ALONE, HeaderValue::from_static("1"));
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(FORM));
        if let Some(value) = &self.authorization {
            headers.insert(AUTHORIZATION, value.clone());
        }
        Ok(request)
    }
}
