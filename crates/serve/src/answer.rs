//! Answers: bodies with their type, compressed and tagged, and errors as JSON.

use std::hash::Hasher as _;
use std::io::Write as _;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

pub(crate) use crate::refusal::Refusal;
use crate::refusal::set_type;
use crate::room::{LARGE, Room};
use crate::visitor::Visitor;

/// Shorter bodies are not worth compressing.
const COMPRESSED_FROM: usize = 1024;
/// Marks a response with an endless body.
#[derive(Clone)]
pub(crate) struct Endless;

/// The result of a handler.
pub(crate) type Answer = Result<Response, Refusal>;

/// Wishes of an asker for its answer.
pub(crate) struct Wishes {
    /// Tags of the bodies that the asker has.
    tags: Option<HeaderValue>,
    gzip: bool,
}

impl Wishes {
    /// Reads the wishes of a request.
    pub(crate) fn of(headers: &HeaderMap) -> Wishes {
        Wishes {
            tags: headers.get(header::IF_NONE_MATCH).cloned(),
            gzip: takes_gzip(headers),
        }
    }
}

/// An answer's body in its final bytes. Making a large body takes long, so reader threads make it.
pub(crate) struct Made {
    media_type: &'static str,
    /// `None`: the asker does not revalidate this body.
    tag: Option<String>,
    /// `None`: the asker has the body.
    bytes: Option<Vec<u8>>,
    is_gzip: bool,
}

impl Made {
    /// Makes a body with a tag of its bytes, compressed if the asker accepts that. An asker that has this tag gets
    /// 304.
    pub(crate) fn tagged(wishes: &Wishes, media_type: &'static str, body: Vec<u8>) -> Made {
        let tag = tag_of(&body);
        let has_it = wishes
            .tags
            .as_ref()
            .is_some_and(|tags| is_among(&tag, tags));
        let is_gzip = !has_it && wishes.gzip && body.len() >= COMPRESSED_FROM;
        Made {
            media_type,
            tag: Some(tag),
            bytes: match (has_it, is_gzip) {
                (true, _) => None,
                (false, true) => Some(gzip(&body, 1)),
                (false, false) => Some(body),
            },
            is_gzip,
        }
    }

    /// Makes a body without tag and compression.
    pub(crate) fn plain(media_type: &'static str, body: Vec<u8>) -> Made {
        Made {
            media_type,
            tag: None,
            bytes: Some(body),
            is_gzip: false,
        }
    }

    /// The response to this visitor. A large body needs room; without room the answer is a refusal.
    pub(crate) fn response(self, room: &Arc<Room>, visitor: &Visitor) -> Answer {
        let body = match self.bytes {
            Some(bytes) if bytes.len() >= LARGE => {
                let none =
                    || Refusal::unavailable("cannot answer now: too many answers wait to be taken");
                let unsent = room.take(visitor, bytes).ok_or_else(none)?;
                Some(Body::from(Bytes::from_owner(unsent)))
            }
            bytes => bytes.map(Body::from),
        };
        Ok(Made {
            bytes: None,
            ..self
        }
        .with(body))
    }

    /// A response of any size. For the program's own texts.
    pub(crate) fn unbounded(mut self) -> Response {
        let body = self.bytes.take().map(Body::from);
        self.with(body)
    }

    fn with(self, body: Option<Body>) -> Response {
        let tag = self.tag.unwrap_or_default();
        let Some(body) = body else {
            return not_modified(&tag);
        };
        let mut response = body.into_response();
        set_type(&mut response, self.media_type);
        if !tag.is_empty() {
            set_tag(&mut response, &tag);
            let vary = HeaderValue::from_static("Accept-Encoding, Authorization");
            response.headers_mut().insert(header::VARY, vary);
        }
        if self.is_gzip {
            mark_gzip(&mut response);
        }
        response
    }
}

/// 304, for an asker that has the body of this tag.
pub(crate) fn not_modified(tag: &str) -> Response {
    let mut response = StatusCode::NOT_MODIFIED.into_response();
    set_tag(&mut response, tag);
    response
}

/// True if the asker has the body of this tag.
pub(crate) fn has_tag(headers: &HeaderMap, tag: &str) -> bool {
    let known = headers.get(header::IF_NONE_MATCH);
    known.is_some_and(|known| is_among(tag, known))
}

fn is_among(tag: &str, tags: &HeaderValue) -> bool {
    let tags = tags.to_str().unwrap_or_default();
    tags.split(',').any(|one| one.trim() == tag)
}

/// True if the asker accepts gzip.
pub(crate) fn takes_gzip(headers: &HeaderMap) -> bool {
    let taken = headers.get(header::ACCEPT_ENCODING);
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

/// Tag of these bytes.
pub(crate) fn tag_of(body: &[u8]) -> String {
    let mut hasher = std::hash::DefaultHasher::new();
    hasher.write(body);
    format!("\"{:016x}{:x}\"", hasher.finish(), body.len())
}

/// Compresses `body`.
pub(crate) fn gzip(body: &[u8], level: u32) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(level));
    // Writing to a Vec cannot fail.
    let _ = encoder.write_all(body);
    encoder.finish().unwrap_or_default()
}

/// Marks the body as compressed.
pub(crate) fn mark_gzip(response: &mut Response) {
    let gzip = HeaderValue::from_static("gzip");
    response
        .headers_mut()
        .insert(header::CONTENT_ENCODING, gzip);
}

/// Sets the tag of a body, which the browser has to revalidate each time.
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
