//! Asks a target for its metrics by HTTP/1.1. A connection is kept for the next scrape, redirects are followed, and an
//! answer has limits in bytes.

use std::time::Duration;

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HOST, HeaderMap,
    HeaderName, HeaderValue, LOCATION, USER_AGENT,
};
use hyper::{Request, Response, StatusCode};
use kymo_base::name::DisplayName;
use kymo_wire::exposition_text::{self, ExpositionFormat};
use tokio::time::timeout;

use super::connection::{Connection, Shared, TlsClient, words};
use super::job::Credentials;
use super::unpack::Unpacker;
use super::url::ScrapeUrl;

/// Redirects that are followed.
const REDIRECTS_MAX: usize = 10;
/// Bytes of a text of the target in a message.
const SHOWN_MAX: usize = 100;
const AGENT: &str = concat!("kymo/", env!("CARGO_PKG_VERSION"));
const TIMEOUT_HEADER: HeaderName = HeaderName::from_static("x-prometheus-scrape-timeout-seconds");

/// An answer.
pub(crate) struct Fetched {
    /// Format of the text.
    pub(crate) format: ExpositionFormat,
    /// The text, unpacked.
    pub(crate) text: Vec<u8>,
}

/// A target as a client of HTTP knows it.
pub(crate) struct Fetcher {
    url: ScrapeUrl,
    /// Headers of each request, without credentials.
    headers: HeaderMap,
    authorization: Option<HeaderValue>,
    tls: Option<TlsClient>,
    shared: Shared,
    timeout: Duration,
    /// Connection of the last scrape.
    kept: Option<Connection>,
    /// Present step, for the message of a scrape that takes too long.
    step: &'static str,
}

impl Fetcher {
    /// A target that is asked within a time.
    pub(crate) fn new(
        url: ScrapeUrl,
        credentials: &Credentials,
        tls: Option<TlsClient>,
        shared: Shared,
        timeout: Duration,
    ) -> Result<Fetcher, String> {
        let value = |text: &str| HeaderValue::from_str(text).map_err(|error| error.to_string());
        let headers = [
            (ACCEPT, value(exposition_text::ACCEPT)?),
            (ACCEPT_ENCODING, value("gzip")?),
            (USER_AGENT, value(AGENT)?),
            (TIMEOUT_HEADER, value(&timeout.as_secs_f64().to_string())?),
        ];
        Ok(Fetcher {
            url,
            headers: headers.into_iter().collect(),
            authorization: credentials.authorization()?,
            tls,
            shared,
            timeout,
            kept: None,
            step: "",
        })
    }

    /// Asks the target.
    pub(crate) async fn fetch(&mut self) -> Result<Fetched, String> {
        let within = self.timeout;
        let fetched = timeout(within, self.follow()).await;
        fetched.unwrap_or_else(|_| {
            let seconds = within.as_secs_f64();
            let step = self.step;
            Err(format!("no answer within {seconds} s, {step}"))
        })
    }

    /// Follows redirects to an answer with metrics.
    async fn follow(&mut self) -> Result<Fetched, String> {
        let mut url = self.url.clone();
        for _ in 0..=REDIRECTS_MAX {
            let (connection, answer) = self.ask(&url).await?;
            let status = answer.status();
            if let Some(location) = redirect(&answer) {
                let next = url.redirected(&location);
                url = next.map_err(|why| {
                    let location = shown(location.as_bytes());
                    format!("cannot follow a redirect to {location}: {why}")
                })?;
                continue;
            }
            if status != StatusCode::OK {
                return Err(format!("the target answers {status}"));
            }
            self.step = "while reading the answer";
            let fetched = read(answer).await?;
            if url.has_server_of(&self.url) {
                self.kept = Some(connection);
            }
            return Ok(fetched);
        }
        Err(format!("more than {REDIRECTS_MAX} redirects"))
    }

    /// Sends a request: by the kept connection if its server has not closed it meanwhile, or by a new one.
    async fn ask(&mut self, url: &ScrapeUrl) -> Result<(Connection, Response<Incoming>), String> {
        let is_own = url.has_server_of(&self.url);
        self.step = "while waiting for the answer";
        if let Some(mut kept) = self.kept.take().filter(|kept| is_own && kept.is_open())
            && let Ok(answer) = kept.ask(self.request(url, is_own)?).await
        {
            return Ok((kept, answer));
        }
        self.step = "while connecting";
        let opened = Connection::open(url, self.tls.as_ref(), &self.shared, self.timeout);
        let mut connection = opened.await?;
        self.step = "while waiting for the answer";
        let answer = connection.ask(self.request(url, is_own)?).await?;
        Ok((connection, answer))
    }

    /// A request; a server to which the target redirects sees no credentials.
    fn request(&self, url: &ScrapeUrl, is_own: bool) -> Result<Request<Full<Bytes>>, String> {
        let cannot = |error: String| format!("cannot ask for {url}: {error}");
        let request = Request::get(url.path()).body(Full::default());
        let mut request = request.map_err(|error| cannot(error.to_string()))?;
        let host = HeaderValue::from_str(&url.instance());
        let host = host.map_err(|error| cannot(error.to_string()))?;
        let headers = request.headers_mut();
        headers.extend(self.headers.clone());
        headers.insert(HOST, host);
        if let Some(value) = self.authorization.as_ref().filter(|_| is_own) {
            headers.insert(AUTHORIZATION, value.clone());
        }
        Ok(request)
    }
}

/// Address of a redirect, if the answer is one.
fn redirect(answer: &Response<Incoming>) -> Option<String> {
    match answer.status().as_u16() {
        301 | 302 | 303 | 307 | 308 => header(answer, LOCATION).map(str::to_string),
        _ => None,
    }
}

fn header(answer: &Response<Incoming>, name: HeaderName) -> Option<&str> {
    let value = answer.headers().get(name)?;
    Some(value.to_str().unwrap_or("?"))
}

/// Reads the body of an answer.
async fn read(answer: Response<Incoming>) -> Result<Fetched, String> {
    let format = match header(&answer, CONTENT_TYPE).filter(|text| !text.is_empty()) {
        // Some programs say nothing, as Prometheus' first version did.
        None => ExpositionFormat::Prometheus,
        Some(text) => ExpositionFormat::of_content_type(text).ok_or_else(|| {
            let text = shown(text.as_bytes());
            format!("the answer is not metrics but {text}")
        })?,
    };
    let mut unpacker = Unpacker::new(header(&answer, CONTENT_ENCODING))?;
    let mut body = answer.into_body();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| words(&error))?;
        if let Some(bytes) = frame.data_ref() {
            unpacker.push(bytes)?;
        }
    }
    let text = unpacker.finish()?;
    Ok(Fetched { format, text })
}

/// The begin of a text of the target.
fn shown(text: &[u8]) -> String {
    let begin = text.get(..SHOWN_MAX).unwrap_or(text);
    DisplayName(begin).to_string()
}
