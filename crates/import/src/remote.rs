//! A server of remote read, asked for one range of time after the other.

use std::time::Duration;

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HOST, HeaderValue, USER_AGENT};
use hyper::{Request, Response, StatusCode};
use kymo_base::name::DisplayName;
use kymo_scrape::{
    Connection, Credentials, Scheme, ScrapeUrl, Shared, TlsClient, TlsTexts, client_config, words,
};
use kymo_wire::remote_read::{
    BadFrame, FRAME_BYTES, FRAMES_TYPE, MatcherKind, ReadMatcher, ReadQuery, ResponseForm,
    SAMPLES_ENCODING, SAMPLES_TYPE, put_request, read_chunk, take_frame,
};
use kymo_wire::remote_write::compress;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

/// Most bytes of a frame: those that `take_frame` takes, and its head.
const FRAME_MAX: usize = 16 * FRAME_BYTES + 16;
/// Most samples of a frame. A chunk of Prometheus has 120, in some 160 bytes.
const SAMPLES_MAX: usize = 1 << 24;
/// Bytes of an error's text that a message shows.
const SHOWN_MAX: usize = 200;
/// Longest wait for the head of an answer and for each of its pieces.
const PATIENCE: Duration = Duration::from_secs(120);
const AGENT: &str = concat!("kymo/", env!("CARGO_PKG_VERSION"));

/// A server, and how it is asked.
#[derive(Clone, Debug)]
pub struct RemoteServer {
    /// URL of the server, or of its remote read.
    pub url: String,
    /// Credentials that the server is shown.
    pub credentials: Credentials,
    /// Certificates.
    pub tls: TlsTexts,
}

/// Takes the samples of a series: its labels by name, and times in milliseconds with values.
pub type Sink<'a> = dyn FnMut(&[(&str, &str)], &[(i64, f64)]) -> Result<(), String> + 'a;

/// A client of remote read.
pub struct RemoteReader {
    url: ScrapeUrl,
    host: HeaderValue,
    authorization: Option<HeaderValue>,
    tls: Option<TlsClient>,
    runtime: Runtime,
}

/// Path of remote read, where the URL has none.
const READ_PATH: &str = "/api/v1/read";

impl RemoteReader {
    /// A client of a server.
    pub fn new(server: &RemoteServer) -> Result<RemoteReader, String> {
        let url = match server.url.trim_end_matches('/') {
            url if url.ends_with("/read") => ScrapeUrl::of_server(url)?,
            url => ScrapeUrl::of_server(&format!("{url}{READ_PATH}"))?,
        };
        let tls = match url.scheme() {
            Scheme::Http => None,
            Scheme::Https => Some(TlsClient {
                config: client_config(&server.tls)?,
                server_name: server.tls.server_name.clone(),
            }),
        };
        let host = HeaderValue::from_str(&url.instance()).map_err(|error| error.to_string())?;
        let runtime = Builder::new_current_thread().enable_all().build();
        Ok(RemoteReader {
            url,
            host,
            authorization: server.credentials.authorization()?,
            tls,
            runtime: runtime.map_err(|error| format!("cannot begin a runtime: {error}"))?,
        })
    }

    /// Reads all samples of a range, both ends included, in milliseconds since 1970. The samples of a series come one frame after
    /// the other.
    pub fn read(&self, range_ms: (i64, i64), sink: &mut Sink<'_>) -> Result<(), String> {
        let cannot = |why: String| format!("cannot read {}: {why}", self.url);
        let answer = self.runtime.block_on(self.exchange(range_ms, sink));
        answer.map_err(cannot)
    }

    async fn exchange(&self, range_ms: (i64, i64), sink: &mut Sink<'_>) -> Result<(), String> {
        let shared = Shared::default();
        let opened = Connection::open(&self.url, self.tls.as_ref(), &shared, PATIENCE);
        let mut connection = opened.await?;
        let asked = timeout(PATIENCE, connection.ask(self.request(range_ms)?)).await;
        let answer = asked.map_err(|_| no_answer())??;
        if answer.status() != StatusCode::OK {
            return Err(refusal(answer).await);
        }
        let form = answer.headers().get(CONTENT_TYPE);
        if form.is_none_or(|form| form.as_bytes() != FRAMES_TYPE.as_bytes()) {
            return Err(
                "it does not answer with chunks, which Prometheus has done since 2.13".into(),
            );
        }
        take_frames(answer.into_body(), sink).await
    }

    fn request(&self, (from_ms, thru_ms): (i64, i64)) -> Result<Request<Full<Bytes>>, String> {
        // A matcher that all series match: Prometheus refuses a query without one.
        let query = ReadQuery {
            from_ms,
            thru_ms,
            matchers: vec![ReadMatcher {
                kind: MatcherKind::Matches,
                name: "__name__",
                value: ".+",
            }],
            function: "",
        };
        let (mut message, mut block) = (Vec::new(), Vec::new());
        put_request(&mut message, &[query], &[ResponseForm::Chunks]);
        compress(&message, &mut block).map_err(|bad| bad.to_string())?;
        let request = Request::post(self.url.path()).body(Full::new(Bytes::from(block)));
        let mut request = request.map_err(|error| error.to_string())?;
        let headers = request.headers_mut();
        headers.insert(HOST, self.host.clone());
        for (name, value) in [
            (USER_AGENT, AGENT),
            (CONTENT_TYPE, SAMPLES_TYPE),
            (CONTENT_ENCODING, SAMPLES_ENCODING),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        headers.insert(
            "x-prometheus-remote-read-version",
            HeaderValue::from_static("0.1.0"),
        );
        if let Some(value) = &self.authorization {
            headers.insert(AUTHORIZATION, value.clone());
        }
        Ok(request)
    }
}

fn no_answer() -> String {
    format!("no answer within {} s", PATIENCE.as_secs())
}

/// Takes the frames of an answer.
async fn take_frames(mut body: Incoming, sink: &mut Sink<'_>) -> Result<(), String> {
    let (mut bytes, mut samples) = (Vec::new(), Vec::new());
    loop {
        let frame = timeout(PATIENCE, body.frame()).await;
        let Some(frame) = frame.map_err(|_| no_answer())? else {
            break;
        };
        let frame = frame.map_err(|error| words(&error))?;
        bytes.extend_from_slice(frame.data_ref().map_or(&[], |bytes| bytes));
        let mut rest = bytes.as_slice();
        while take_series(&mut rest, &mut samples, sink)? {}
        let used = bytes.len() - rest.len();
        bytes.drain(..used);
    }
    match bytes.is_empty() {
        true => Ok(()),
        false => Err("its answer ends within a frame".into()),
    }
}

/// Takes a frame. False: it is not there as a whole yet.
fn take_series(
    rest: &mut &[u8],
    samples: &mut Vec<(i64, f64)>,
    sink: &mut Sink<'_>,
) -> Result<bool, String> {
    let series = match take_frame(rest) {
        Ok(series) => series,
        Err(BadFrame::Length) if rest.len() <= FRAME_MAX => return Ok(false),
        Err(BadFrame::Length) => return Err("a frame of its answer is too long".into()),
        Err(BadFrame::Checksum) => return Err("a frame of its answer is damaged".into()),
        Err(BadFrame::Malformed) => return Err("a frame of its answer is none".into()),
    };
    samples.clear();
    for chunk in series.chunks {
        let read = read_chunk(chunk, samples);
        read.map_err(|_| "a chunk of its answer is none".to_string())?;
        if samples.len() > SAMPLES_MAX {
            return Err("a frame of its answer has too many samples".into());
        }
    }
    sink(&series.labels, samples)?;
    Ok(true)
}

/// The reason for which a server refuses.
async fn refusal(answer: Response<Incoming>) -> String {
    let status = answer.status();
    let mut body = answer.into_body();
    let mut text = Vec::new();
    while let Ok(Some(Ok(frame))) = timeout(PATIENCE, body.frame()).await {
        text.extend_from_slice(frame.data_ref().map_or(&[], |bytes| bytes));
        if text.len() > SHOWN_MAX {
            break;
        }
    }
    let shown = text.get(..SHOWN_MAX).unwrap_or(&text).trim_ascii();
    match shown.is_empty() {
        true => format!("it answers {status}"),
        false => format!("it answers {status}: {}", DisplayName(shown)),
    }
}
