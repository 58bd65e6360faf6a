//! Requests to a server of S3, by one connection. A request is tried again, after pauses that double, where the server or the
//! network fails; then the server has it once or several times, which is the same for S3.

use std::io;
use std::thread;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{HOST, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use hyper::{Method, Request, Response, StatusCode};
use kymo_base::name::DisplayName;
use kymo_scrape::{
    Connection, Scheme, ScrapeUrl, Shared, TlsClient, TlsTexts, client_config, words,
};
use kymo_sys::machine;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

/// Attempts of a request, and the pause before the second one.
const TRIES: u32 = 8;
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// Time to connect, and time of a request besides its bytes.
const CONNECTING: Duration = Duration::from_secs(10);
const ANSWERING: Duration = Duration::from_secs(30);
/// Bytes in a second of a server that is slow and not dead.
const SLOWEST: u64 = 16 << 10;
/// Most bytes of an answer: a page of a listing.
pub(super) const ANSWER_MAX: usize = 8 << 20;
/// Most characters of a word and of a message of the server that are shown.
const SHOWN_MAX: usize = 200;
/// Threads that look up names.
const THREADS_MAX: usize = 2;
const AGENT: &str = concat!("kymo/", env!("CARGO_PKG_VERSION"));
/// Codes of answers 4xx that come of the network or of the server's load.
const PASSING: [&str; 4] = ["RequestTimeout", "BadDigest", "SlowDown", "IncompleteBody"];

/// A request.
pub(super) struct Ask<'a> {
    pub(super) method: Method,
    /// Makes the URL with a signature of this moment.
    pub(super) sign: &'a dyn Fn() -> String,
    pub(super) headers: Vec<(HeaderName, String)>,
    pub(super) body: Bytes,
    /// Most bytes of the answer.
    pub(super) limit: usize,
}

impl<'a> Ask<'a> {
    /// A request without a body.
    pub(super) fn new(method: Method, sign: &'a dyn Fn() -> String) -> Ask<'a> {
        Ask {
            method,
            sign,
            headers: Vec::new(),
            body: Bytes::new(),
            limit: ANSWER_MAX,
        }
    }

    /// Time for the request: as a slow server needs.
    fn within(&self) -> Duration {
        let bytes = u64::try_from(self.body.len().max(self.limit)).unwrap_or(u64::MAX);
        ANSWERING + Duration::from_secs(bytes / SLOWEST)
    }
}

/// An answer of the server.
pub(super) struct ServerAnswer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl ServerAnswer {
    /// An error unless the server has done it.
    pub(super) fn ok(&self) -> io::Result<()> {
        match self.status.is_success() {
            true => Ok(()),
            false => Err(io::Error::other(self.refusal())),
        }
    }

    /// True if the bucket is there and the object is not.
    pub(super) fn is_missing(&self) -> bool {
        self.status == StatusCode::NOT_FOUND && self.element("Code") != Some("NoSuchBucket")
    }

    /// True if the same request may succeed later.
    fn is_passing(&self) -> bool {
        let code = self.element("Code").unwrap_or_default();
        self.status.is_server_error()
            || matches!(self.status.as_u16(), 408 | 429)
            || self.status.is_client_error() && PASSING.contains(&code)
    }

    /// The refusal in words: the status, and what the server says.
    fn refusal(&self) -> String {
        let mut text = format!("it answers {}", self.status);
        for word in ["Code", "Message"].iter().filter_map(|of| self.element(of)) {
            let word = word.get(..SHOWN_MAX).unwrap_or(word);
            text.push_str(": ");
            text.push_str(&DisplayName(word.as_bytes()).to_string());
        }
        text
    }

    /// Text of the first element of this name in a short answer.
    fn element(&self, name: &str) -> Option<&str> {
        let text = std::str::from_utf8(&self.body).ok()?;
        let (_, rest) = text.split_once(&format!("<{name}>"))?;
        let (element, _) = rest.split_once(&format!("</{name}>"))?;
        Some(element)
    }
}

/// A client of one server.
pub(super) struct Client {
    url: ScrapeUrl,
    host: HeaderValue,
    tls: Option<TlsClient>,
    shared: Shared,
    runtime: Runtime,
    /// Connection of the last request.
    kept: Option<Connection>,
}

impl Client {
    /// A client of the server with this URL.
    pub(super) fn new(server: &str, tls: &TlsTexts) -> io::Result<Client> {
        let (scheme, rest) = server.split_once("://").unwrap_or_default();
        let host = rest.split('/').next().unwrap_or_default();
        let url = ScrapeUrl::of_server(&format!("{scheme}://{host}/"));
        let url = url.map_err(io::Error::other)?;
        let runtime = Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(THREADS_MAX)
            .build()?;
        Ok(Client {
            tls: match url.scheme() {
                Scheme::Http => None,
                Scheme::Https => Some(TlsClient {
                    config: client_config(tls).map_err(io::Error::other)?,
                    server_name: String::new(),
                }),
            },
            url,
            host: HeaderValue::from_str(host).map_err(io::Error::other)?,
            shared: Shared::default(),
            runtime,
            kept: None,
        })
    }

    /// Asks until there is an answer that the caller accepts. The error says why the last attempt failed.
    pub(super) fn ask(
        &mut self,
        ask: &Ask<'_>,
        accept: &dyn Fn(&ServerAnswer) -> Result<(), String>,
    ) -> io::Result<ServerAnswer> {
        let mut tries = 0;
        loop {
            let why = match self.exchange(ask) {
                Ok(answer) if answer.is_passing() => answer.refusal(),
                Ok(answer) => match accept(&answer) {
                    Ok(()) => return Ok(answer),
                    Err(why) => why,
                },
                Err(why) => why,
            };
            self.kept = None;
            tries += 1;
            if tries >= TRIES {
                return Err(io::Error::other(why));
            }
            thread::sleep(pause(tries, random()));
        }
    }

    fn exchange(&mut self, ask: &Ask<'_>) -> Result<ServerAnswer, String> {
        let request = self.request(ask)?;
        let Client {
            url,
            tls,
            shared,
            runtime,
            kept,
            ..
        } = self;
        let within = ask.within();
        let exchange = async {
            let open = kept.take().filter(Connection::is_open);
            let mut connection = match open {
                Some(open) => open,
                None => Connection::open(url, tls.as_ref(), shared, CONNECTING).await?,
            };
            let answer = connection.ask(request).await?;
            let answer = read(answer, ask.limit).await?;
            *kept = Some(connection);
            Ok(answer)
        };
        // A timer belongs to the runtime.
        let asked = runtime.block_on(async { timeout(within, exchange).await });
        asked.unwrap_or_else(|_| Err(format!("no answer within {} s", within.as_secs())))
    }

    fn request(&self, ask: &Ask<'_>) -> Result<Request<Full<Bytes>>, String> {
        let signed = (ask.sign)();
        let behind = signed.split_once("://").map_or("", |(_, rest)| rest);
        let path = behind.find('/').and_then(|at| behind.get(at..));
        let request = Request::builder()
            .method(ask.method.clone())
            .uri(path.unwrap_or("/"))
            .header(HOST, &self.host)
            .header(USER_AGENT, AGENT);
        let headers = ask.headers.iter();
        let request = headers.fold(request, |request, (name, value)| {
            request.header(name, value)
        });
        let request = request.body(Full::new(ask.body.clone()));
        request.map_err(|_| "its URL cannot be used".into())
    }
}

/// Reads an answer to its end.
async fn read(answer: Response<Incoming>, limit: usize) -> Result<ServerAnswer, String> {
    let (head, mut body) = answer.into_parts();
    let mut all = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| words(&error))?;
        all.extend_from_slice(frame.data_ref().map_or(&[], |bytes| bytes));
        if all.len() > limit {
            return Err("its answer is too long".into());
        }
    }
    Ok(ServerAnswer {
        status: head.status,
        headers: head.headers,
        body: all.into(),
    })
}

/// The pause behind a number of attempts: from the half of its time to all of it, by a random number.
fn pause(tries: u32, random: u32) -> Duration {
    let whole = FIRST_PAUSE.saturating_mul(1 << tries.saturating_sub(1).min(16));
    let part = f64::from(random) / f64::from(u32::MAX);
    whole.mul_f64(0.5 + part / 2.0)
}

/// A random number; without one pauses are long.
fn random() -> u32 {
    let mut bytes = [0xff; 4];
    let _all_alike = machine::random(&mut bytes);
    u32::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, body: &'static str) -> ServerAnswer {
        ServerAnswer {
            status: StatusCode::from_u16(status).unwrap(),
            headers: HeaderMap::new(),
            body: Bytes::from_static(body.as_bytes()),
        }
    }

    #[test]
    fn answers_are_judged_and_shown() {
        for (status, body, is_passing, refusal) in [
            (
                503,
                "<Error><Code>SlowDown</Code></Error>",
                true,
                "it answers 503 Service Unavailable: SlowDown",
            ),
            (500, "", true, "it answers 500 Internal Server Error"),
            (
                400,
                "<Code>RequestTimeout</Code>",
                true,
                "it answers 400 Bad Request: RequestTimeout",
            ),
            (400, "<Code>x", false, "it answers 400 Bad Request"),
            (
                403,
                "<Code>AccessDenied</Code><Message>a\u{1b}[2J</Message>",
                false,
                "it answers 403 Forbidden: AccessDenied: a\\x1b[2J",
            ),
            (
                507,
                "<Message>full</Message>",
                true,
                "it answers 507 Insufficient Storage: full",
            ),
        ] {
            let answer = answer(status, body);
            assert_eq!(answer.is_passing(), is_passing, "{status} {body}");
            assert_eq!(answer.refusal(), refusal);
        }
        assert!(answer(404, "<Code>NoSuchKey</Code>").is_missing());
        assert!(!answer(404, "<Code>NoSuchBucket</Code>").is_missing());
    }

    #[test]
    fn pauses_double() {
        let whole: Vec<u128> = (1..=4)
            .map(|tries| pause(tries, u32::MAX).as_millis())
            .collect();
        assert_eq!(whole, [250, 500, 1000, 2000]);
        assert_eq!(pause(1, 0).as_millis(), 125);
    }
}
