//! Answers: bodies with their type, compressed and tagged, and errors as JSON.

use std::hash::Hasher as _;
use std::io::Write as _;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use tokio::sync::{Semaphore, SemaphorePermit};

/// KiB of large answers that are on their way at a time: who asks for them and does not take them could
/// otherwise fill the memory.
const UNSENT_KB: usize = 32 << 10;
/// Larger ones count.
const LARGE: usize = 64 << 10;
static UNSENT: Semaphore = Semaphore::const_new(UNSENT_KB);

/// Shorter bodies are not worth compressing.
const COMPRESSED_FROM: usize = 1024;

/// Why there is no answer.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// The status.
    pub status: StatusCode,
    /// A line: `cannot ...: ...`.
    pub text: String,
}

impl Refusal {
    /// A refusal with a status and a line.
    pub(crate) fn new(status: StatusCode, text: impl Into<String>) -> Refusal {
        Refusal {
            status,
            text: text.into(),
        }
    }

    /// 400: a parameter makes no sense.
    pub(crate) fn bad(text: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::BAD_REQUEST, text)
    }

    /// 404: nothing there.
    pub(crate) fn missing(text: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::NOT_FOUND, text)
    }

    /// 503: the recording cannot be read.
    pub(crate) fn unavailable(text: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::SERVICE_UNAVAILABLE, text)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let body = serde_json::json!({ "error": self.text }).to_string();
        let mut response = (self.status, body).into_response();
        set_type(&mut response, "application/json");
        if self.status == StatusCode::UNAUTHORIZED {
            let bearer = HeaderValue::from_static("Bearer");
            response
                .headers_mut()
                .insert(header::WWW_AUTHENTICATE, bearer);
        }
        response
    }
}

/// Marks a response whose body has no end.
#[derive(Clone)]
pub(crate) struct Endless;

/// What a handler gives.
pub(crate) type Answer = Result<Response, Refusal>;

/// A body of JSON, compressed and tagged as the asker likes it.
pub(crate) fn json(asked: &HeaderMap, body: String) -> Response {
    tagged(asked, "application/json", body.into_bytes())
}

/// A body with a tag made of its bytes: an asker who has it already gets 304.
pub(crate) fn tagged(asked: &HeaderMap, media_type: &'static str, body: Vec<u8>) -> Response {
    let tag = tag_of(&body);
    if has_tag(asked, &tag) {
        return not_modified(&tag);
    }
    let mut response = compressed(asked, body);
    if !response.status().is_success() {
        return response;
    }
    set_type(&mut response, media_type);
    set_tag(&mut response, &tag);
    response
}

/// 304 for who has the body of this tag.
pub(crate) fn not_modified(tag: &str) -> Response {
    let mut response = StatusCode::NOT_MODIFIED.into_response();
    set_tag(&mut response, tag);
    response
}

/// Whether the asker has the body of this tag.
pub(crate) fn has_tag(asked: &HeaderMap, tag: &str) -> bool {
    let known = asked.get(header::IF_NONE_MATCH);
    known
        .and_then(|known| known.to_str().ok())
        .is_some_and(|known| known.split(',').any(|one| one.trim() == tag))
}

/// Whether the asker takes gzip.
pub(crate) fn takes_gzip(asked: &HeaderMap) -> bool {
    let taken = asked.get(header::ACCEPT_ENCODING);
    taken
        .and_then(|taken| taken.to_str().ok())
        .is_some_and(|taken| {
            taken.split(',').any(|one| {
                let mut words = one.split(';').map(str::trim);
                let refused = words.clone().any(|word| word == "q=0" || word == "q=0.0");
                words.next() == Some("gzip") && !refused
            })
        })
}

/// A tag of these bytes.
pub(crate) fn tag_of(body: &[u8]) -> String {
    let mut hasher = std::hash::DefaultHasher::new();
    hasher.write(body);
    format!("\"{:016x}{:x}\"", hasher.finish(), body.len())
}

/// `body`, compressed.
pub(crate) fn gzip(body: &[u8], level: u32) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(level));
    // A Vec takes everything.
    let _ = encoder.write_all(body);
    encoder.finish().unwrap_or_default()
}

/// An answer on its way; its room is free when the last of it is gone.
struct Unsent {
    bytes: Vec<u8>,
    _room: SemaphorePermit<'static>,
}

impl AsRef<[u8]> for Unsent {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

fn response_of(bytes: Vec<u8>) -> Response {
    if bytes.len() < LARGE {
        return Body::from(bytes).into_response();
    }
    // One that is larger than all the room takes all of it.
    let kb = (bytes.len() >> 10).min(UNSENT_KB);
    match UNSENT.try_acquire_many(kb as u32) {
        Ok(_room) => Body::from(Bytes::from_owner(Unsent { bytes, _room })).into_response(),
        Err(_) => Refusal::unavailable("cannot answer now: too many answers wait to be taken")
            .into_response(),
    }
}

fn compressed(asked: &HeaderMap, body: Vec<u8>) -> Response {
    let vary = HeaderValue::from_static("Accept-Encoding, Authorization");
    let mut response = if body.len() >= COMPRESSED_FROM && takes_gzip(asked) {
        let mut response = response_of(gzip(&body, 1));
        if response.status().is_success() {
            mark_gzip(&mut response);
        }
        response
    } else {
        response_of(body)
    };
    response.headers_mut().insert(header::VARY, vary);
    response
}

/// Says that the body is compressed.
pub(crate) fn mark_gzip(response: &mut Response) {
    let gzip = HeaderValue::from_static("gzip");
    response
        .headers_mut()
        .insert(header::CONTENT_ENCODING, gzip);
}

/// Sets the type of a body.
pub(crate) fn set_type(response: &mut Response, media_type: &'static str) {
    let value = HeaderValue::from_static(media_type);
    response.headers_mut().insert(header::CONTENT_TYPE, value);
}

/// Sets the tag of a body, which is to be asked for again each time.
pub(crate) fn set_tag(response: &mut Response, tag: &str) {
    let headers = response.headers_mut();
    if let Ok(tag) = HeaderValue::from_str(tag) {
        headers.insert(header::ETAG, tag);
    }
    headers.insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static("private, no-cache"),
    );
}
