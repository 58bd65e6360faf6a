//! Sends requests to a receiver by HTTP/1.1 and keeps the connection for the next one.

use std::time::Duration;

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HOST, HeaderName, HeaderValue, RETRY_AFTER,
    USER_AGENT,
};
use hyper::{Request, Response};
use kymo_base::name::DisplayName;
use kymo_scrape::{Connection, Scheme, ScrapeUrl, Shared, TlsClient, client_config, words};
use kymo_sys::clock::{Clock as _, RealClock};
use kymo_wire::remote_write::WriteVersion;
use kymo_wire::remote_write::http::{self, VERSION_HEADER, Written};
use tokio::time::timeout;

use super::answer::ReceiverAnswer;
use super::delay::retry_after;
use super::order::RemoteWriteWay;

/// Bytes of an answer that are read, and those that a message shows.
const TEXT_MAX: usize = 16 << 10;
const SHOWN_MAX: usize = 200;
const AGENT: &str = concat!("kymo/", env!("CARGO_PKG_VERSION"));

/// A receiver as a client of HTTP knows it.
pub(crate) struct Sender {
    url: ScrapeUrl,
    host: HeaderValue,
    authorization: Option<HeaderValue>,
    tls: Option<TlsClient>,
    shared: Shared,
    timeout: Duration,
    /// Connection of the last request.
    kept: Option<Connection>,
}

impl Sender {
    /// A receiver of requests.
    pub(crate) fn new(way: &RemoteWriteWay) -> Result<Sender, String> {
        let url = ScrapeUrl::of_server(&way.url)?;
        let tls = match url.scheme() {
            Scheme::Http => None,
            Scheme::Https => Some(TlsClient {
                config: client_config(&way.tls)?,
                server_name: way.tls.server_name.clone(),
            }),
        };
        let host = HeaderValue::from_str(&url.instance()).map_err(|error| error.to_string())?;
        Ok(Sender {
            url,
            host,
            authorization: way.credentials.authorization()?,
            tls,
            shared: Shared::default(),
            timeout: Duration::from_millis(way.timeout_ms),
            kept: None,
        })
    }

    /// Sends a request. The error says why there is no answer.
    pub(crate) async fn post(
        &mut self,
        version: WriteVersion,
        body: &[u8],
    ) -> Result<ReceiverAnswer, String> {
        let body = Bytes::copy_from_slice(body);
        let within = self.timeout;
        let sent = timeout(within, self.exchange(version, body)).await;
        sent.unwrap_or_else(|_| Err(format!("no answer within {} s", within.as_secs_f64())))
    }

    async fn exchange(
        &mut self,
        version: WriteVersion,
        body: Bytes,
    ) -> Result<ReceiverAnswer, String> {
        if let Some(mut kept) = self.kept.take().filter(Connection::is_open)
            && let Ok(answer) = kept.ask(self.request(version, body.clone())?).await
        {
            return self.read(kept, answer).await;
        }
        let opened = Connection::open(&self.url, self.tls.as_ref(), &self.shared, self.timeout);
        let mut connection = opened.await?;
        let answer = connection.ask(self.request(version, body)?).await?;
        self.read(connection, answer).await
    }

    fn request(&self, version: WriteVersion, body: Bytes) -> Result<Request<Full<Bytes>>, String> {
        let cannot = |error: String| format!("cannot ask {}: {error}", self.url);
        let request = Request::post(self.url.path()).body(Full::new(body));
        let mut request = request.map_err(|error| cannot(error.to_string()))?;
        let version_header = HeaderName::from_bytes(VERSION_HEADER.as_bytes());
        let version_header = version_header.map_err(|error| cannot(error.to_string()))?;
        let headers = request.headers_mut();
        headers.insert(HOST, self.host.clone());
        for (name, value) in [
            (USER_AGENT, AGENT),
            (CONTENT_TYPE, version.content_type()),
            (CONTENT_ENCODING, http::CONTENT_ENCODING),
            (version_header, version.version_header()),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        if let Some(value) = &self.authorization {
            headers.insert(AUTHORIZATION, value.clone());
        }
        Ok(request)
    }

    /// Reads an answer. The connection is kept if the answer has ended.
    async fn read(
        &mut self,
        connection: Connection,
        answer: Response<Incoming>,
    ) -> Result<ReceiverAnswer, String> {
        let status = answer.status();
        let [(samples, _), ..] = Written::default().headers();
        let number = |text: &HeaderValue| text.to_str().ok()?.trim().parse().ok();
        let written = answer.headers().get(samples).and_then(number);
        let after = answer.headers().get(RETRY_AFTER);
        let now_s = RealClock.now().real_ns.div_euclid(1_000_000_000);
        let after = after.and_then(|text| retry_after(text.to_str().ok()?, now_s));
        let mut body = answer.into_body();
        let mut text = Vec::new();
        let mut has_ended = true;
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| words(&error))?;
            text.extend_from_slice(frame.data_ref().map_or(&[], |bytes| bytes));
            if text.len() > TEXT_MAX {
                has_ended = false;
                break;
            }
        }
        if has_ended {
            self.kept = Some(connection);
        }
        let shown = text.get(..SHOWN_MAX).unwrap_or(&text).trim_ascii();
        let why = match shown.is_empty() {
            true => format!("it answers {status}"),
            false => format!("it answers {status}: {}", DisplayName(shown)),
        };
        Ok(ReceiverAnswer {
            status: status.as_u16(),
            written,
            retry_after: after,
            why,
        })
    }
}
