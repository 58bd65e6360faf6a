//! Answers: bodies with their type, compressed and tagged, and errors as JSON.

use std::hash::Hasher as _;
use std::io::Write as _;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

/// Shorter bodies are not worth compressing.
const COMPRESSED_FROM: usize = 1024;

/// Why there is no answer.
#[derive(Debug)]
pub struct Refusal {
    /// The status.
    pub status: StatusCode,
    /// A line: `cannot ...: ...`.
    pub text: String,
}

impl Refusal {
    /// A refusal with a status and a line.
    pub fn new(status: StatusCode, text: impl Into<String>) -> Refusal {
        Refusal {
            status,
            text: text.into(),
        }
    }

    /// 400: a parameter makes no sense.
    pub fn bad(text: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::BAD_REQUEST, text)
    }

    /// 404: nothing there.
    pub fn missing(text: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::NOT_FOUND, text)
    }

    /// 503: the recording cannot be read.
    pub fn unavailable(text: impl Into<String>) -> Refusal {
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

/// What a handler gives.
pub type Answer = Result<Response, Refusal>;

/// A body of JSON, compressed and tagged as the asker likes it.
pub fn json(asked: &HeaderMap, body: String) -> Response {
    tagged(asked, "application/json", body.into_bytes())
}

/// A body with a tag made of its bytes: an asker who has it already gets 304.
pub fn tagged(asked: &HeaderMap, media_type: &'static str, body: Vec<u8>) -> Response {
    let tag = tag_of(&body);
    if has_tag(asked, &tag) {
        return not_modified(&tag);
    }
    let mut response = compressed(asked, body);
    set_type(&mut response, media_type);
    set_tag(&mut response, &tag);
    response
}

/// 304 for who has the body of this tag.
pub fn not_modified(tag: &str) -> Response {
    let mut response = StatusCode::NOT_MODIFIED.into_response();
    set_tag(&mut response, tag);
    response
}

/// Whether the asker has the body of this tag.
pub fn has_tag(asked: &HeaderMap, tag: &str) -> bool {
    let known = asked.get(header::IF_NONE_MATCH);
    known
        .and_then(|known| known.to_str().ok())
        .is_some_and(|known| known.split(',').any(|one| one.trim() == tag))
}

/// Whether the asker takes gzip.
pub fn takes_gzip(asked: &HeaderMap) -> bool {
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
pub fn tag_of(body: &[u8]) -> String {
    let mut hasher = std::hash::DefaultHasher::new();
    hasher.write(body);
    format!("\"{:016x}{:x}\"", hasher.finish(), body.len())
}

/// `body`, compressed.
pub fn gzip(body: &[u8], level: u32) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(level));
    // A Vec takes everything.
    let _ = encoder.write_all(body);
    encoder.finish().unwrap_or_default()
}

fn compressed(asked: &HeaderMap, body: Vec<u8>) -> Response {
    let vary = HeaderValue::from_static("Accept-Encoding, Authorization");
    let mut response = if body.len() >= COMPRESSED_FROM && takes_gzip(asked) {
        let mut response = Body::from(gzip(&body, 1)).into_response();
        mark_gzip(&mut response);
        response
    } else {
        Body::from(body).into_response()
    };
    response.headers_mut().insert(header::VARY, vary);
    response
}

/// Says that the body is compressed.
pub fn mark_gzip(response: &mut Response) {
    let gzip = HeaderValue::from_static("gzip");
    response
        .headers_mut()
        .insert(header::CONTENT_ENCODING, gzip);
}

/// Sets the type of a body.
pub fn set_type(response: &mut Response, media_type: &'static str) {
    let value = HeaderValue::from_static(media_type);
    response.headers_mut().insert(header::CONTENT_TYPE, value);
}

/// Sets the tag of a body, which is to be asked for again each time.
pub fn set_tag(response: &mut Response, tag: &str) {
    let headers = response.headers_mut();
    if let Ok(tag) = HeaderValue::from_str(tag) {
        headers.insert(header::ETAG, tag);
    }
    headers.insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static("private, no-cache"),
    );
}
