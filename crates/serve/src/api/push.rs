//! Requests of senders: Prometheus' remote write, and metrics of OpenTelemetry over HTTP. The hub reads the body and
//! hands it to the keeper, which understands it and stores its samples. The answer comes when they are in the journal.

use std::io::Read as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use kymo_keeper_client::Keeper;
use kymo_wire::keeper::{PUSH_MAX, Push, PushFormat, PushResult};
use kymo_wire::otlp::response::{self, MEDIA_TYPE};
use kymo_wire::remote_write::WriteVersion;
use kymo_wire::remote_write::http::{Unsupported, Written};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_stream::StreamExt as _;

use super::{Hub, RequestHead};
use crate::access::Scopes;
use crate::answer::Refusal;
use crate::connections::Doing;
use crate::refusal::set_type;
use crate::turns::{Lane, PUSH_TURNS_MAX};

/// The path to which OpenTelemetry's exporters send if they are given an address alone.
pub(super) const OTLP_PATH: &str = "/v1/metrics";
/// Ends of the paths below those of Prometheus' API.
const PATHS: [&str; 2] = ["/api/v1/write", "/api/v1/otlp/v1/metrics"];
/// Most bytes of a body that are read although it is too long.
const DRAINED_MAX: usize = 64 << 20;
/// KiB of all bodies in memory.
const ROOM_KB: u32 = 24 << 10;
/// Longest wait for room.
const ROOM_WAIT: Duration = Duration::from_secs(5);
/// Longest wait for a piece of the keeper's answer.
const PATIENCE: Duration = Duration::from_secs(15);
/// Seconds after which a sender may try again.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("5");

/// The keeper as it takes requests, and room for their bodies.
pub(super) struct Pushes {
    keeper: Keeper,
    room: Arc<Semaphore>,
}

impl Pushes {
    /// Requests for the keeper with this socket.
    pub(super) fn new(socket: PathBuf) -> Pushes {
        Pushes {
            keeper: Keeper::shared(socket, PUSH_TURNS_MAX, PATIENCE),
            room: Arc::new(Semaphore::new(usize::try_from(ROOM_KB).unwrap_or(0))),
        }
    }

    /// Waits for room for a body. Without a length in the headers it may be as long as any.
    async fn room(&self, headers: &HeaderMap) -> Result<OwnedSemaphorePermit, Refusal> {
        let length = headers.get(header::CONTENT_LENGTH);
        let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
        let length: usize = length.unwrap_or(PUSH_MAX);
        // A longer body is not kept.
        let length = if length > PUSH_MAX { 0 } else { length };
        let kb = u32::try_from(length >> 10)
            .unwrap_or(ROOM_KB)
            .saturating_add(1);
        let room = self.room.clone().acquire_many_owned(kb.min(ROOM_KB));
        let room = tokio::time::timeout(ROOM_WAIT, room).await;
        let busy = || Refusal::unavailable("cannot take samples now: too many requests at once");
        room.ok().and_then(Result::ok).ok_or_else(busy)
    }
}

/// True for paths to which senders push.
pub(super) fn is_path(path: &str) -> bool {
    let path = path.strip_prefix("/prometheus").unwrap_or(path);
    path == OTLP_PATH || PATHS.contains(&path)
}

/// Refuses senders without the scope for writing.
pub(super) fn admit(scopes: Scopes) -> Result<(), Refusal> {
    match (scopes.may_write(), scopes.has_token()) {
        (true, _) => Ok(()),
        (false, true) => Err(Refusal::new(
            StatusCode::FORBIDDEN,
            "cannot take samples: this token may not write; use that of the file write-token in the data folder",
        )),
        (false, false) => Err(Refusal::new(
            StatusCode::UNAUTHORIZED,
            "cannot take samples: the request has no token; one for senders is in the file write-token in the data folder",
        )),
    }
}

/// Takes a request by remote write.
pub(super) async fn remote_write(
    State(hub): State<Arc<Hub>>,
    head: RequestHead,
    request: Request,
) -> Response {
    let text = |name| {
        let value = head.headers.get(name);
        value.map(|value: &HeaderValue| value.to_str().unwrap_or("?"))
    };
    let version =
        WriteVersion::of_headers(text(header::CONTENT_TYPE), text(header::CONTENT_ENCODING));
    let format = match version {
        Ok(WriteVersion::V1) => PushFormat::RemoteWriteV1,
        Ok(WriteVersion::V2) => PushFormat::RemoteWriteV2,
        Err(why) => return refused_write(&unsupported(why), Written::default()),
    };
    let pushed = push(hub, &head, request, format, Coding::Identity).await;
    match pushed {
        Ok(pushed) => {
            let written = Written {
                samples: pushed.samples,
                ..Written::default()
            };
            match pushed.status {
                204 => with_counts(StatusCode::NO_CONTENT.into_response(), written),
                _ => refused_write(&refusal(&pushed), written),
            }
        }
        Err(refusal) => refused_write(&refusal, Written::default()),
    }
}

/// Takes metrics of OpenTelemetry.
pub(super) async fn otlp(
    State(hub): State<Arc<Hub>>,
    head: RequestHead,
    request: Request,
) -> Response {
    let pushed = match otlp_coding(&head.headers) {
        Ok(coding) => push(hub, &head, request, PushFormat::Otlp, coding).await,
        Err(refusal) => Err(refusal),
    };
    let mut body = Vec::new();
    let status = match pushed {
        Ok(pushed) if pushed.status == 200 => {
            if !pushed.why.is_empty() {
                let why = format!("not taken: {}", pushed.why);
                response::put_refused(&mut body, pushed.refused, &why);
            }
            StatusCode::OK
        }
        Ok(pushed) => {
            let refusal = refusal(&pushed);
            response::put_status(&mut body, &refusal.text);
            refusal.status
        }
        Err(refusal) => {
            response::put_status(&mut body, &refusal.text);
            refusal.status
        }
    };
    let mut response = (status, body).into_response();
    set_type(&mut response, MEDIA_TYPE);
    asks_again(response)
}

/// Compression of a body that the hub takes off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coding {
    Identity,
    Gzip,
}

fn otlp_coding(headers: &HeaderMap) -> Result<Coding, Refusal> {
    let text = |name| {
        let value = headers.get(name);
        value.map_or("", |value: &HeaderValue| value.to_str().unwrap_or("?"))
    };
    let unsupported = |text| Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, text);
    if !response::is_protobuf(text(header::CONTENT_TYPE)) {
        let text = "cannot read the body: content type is not application/x-protobuf";
        return Err(unsupported(text));
    }
    let coding = text(header::CONTENT_ENCODING).trim();
    match () {
        () if coding.is_empty() || coding.eq_ignore_ascii_case("identity") => Ok(Coding::Identity),
        () if coding.eq_ignore_ascii_case("gzip") => Ok(Coding::Gzip),
        () => Err(unsupported(
            "cannot read the body: content encoding is neither gzip nor identity",
        )),
    }
}

/// Hands a request to the keeper.
async fn push(
    hub: Arc<Hub>,
    head: &RequestHead,
    request: Request,
    format: PushFormat,
    coding: Coding,
) -> Result<PushResult, Refusal> {
    let none = || Refusal::missing("cannot take samples: this kymo has no store");
    let pushes = hub.pushes.as_ref().ok_or_else(none)?;
    let connection = &head.visitor.connection;
    // A sender that waits for room is not slow.
    connection.does(Doing::IsAnswered);
    let room = pushes.room(&head.headers).await?;
    connection.does(Doing::Asks);
    let body = read(request.into_body()).await?;
    connection.does(Doing::IsAnswered);
    let asker = head.visitor.asker;
    let sender = asker.origin.words();
    let question = move |hub: &Hub| {
        let _room = room;
        let body = match coding {
            Coding::Identity => body,
            Coding::Gzip => unpacked(&body)?,
        };
        let push = Push {
            format,
            sender,
            body,
        };
        let pushes = hub.pushes.as_ref().ok_or_else(none)?;
        pushes.keeper.push(push).map_err(Refusal::unavailable)
    };
    hub.clone().ask(Lane::Push, asker, question).await
}

async fn read(body: Body) -> Result<Vec<u8>, Refusal> {
    let mut parts = body.into_data_stream();
    let (mut bytes, mut length) = (Vec::new(), 0);
    while let Some(part) = parts.next().await {
        let part = part.map_err(|_| Refusal::bad("cannot read the body: it was cut off"))?;
        length += part.len();
        if length > DRAINED_MAX {
            break;
        }
        // A sender that is cut off while it sends would not see the answer, and would send again.
        match length > PUSH_MAX {
            true => bytes = Vec::new(),
            false => bytes.extend_from_slice(&part),
        }
    }
    match length > PUSH_MAX {
        true => Err(too_long()),
        false => Ok(bytes),
    }
}

fn unpacked(body: &[u8]) -> Result<Vec<u8>, Refusal> {
    let most = u64::try_from(PUSH_MAX).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    let mut reader = flate2::read::MultiGzDecoder::new(body).take(most + 1);
    let read = reader.read_to_end(&mut bytes);
    read.map_err(|_| Refusal::bad("cannot read the body: it is not gzip"))?;
    match bytes.len() > PUSH_MAX {
        true => Err(too_long()),
        false => Ok(bytes),
    }
}

fn too_long() -> Refusal {
    let text = format!(
        "cannot read the body: it is longer than {} MiB; send smaller batches",
        PUSH_MAX >> 20
    );
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, text)
}

fn unsupported(why: Unsupported) -> Refusal {
    let text = format!("cannot read the body: {why}");
    Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, text)
}

/// The refusal of a request by the keeper.
fn refusal(pushed: &PushResult) -> Refusal {
    let status = StatusCode::from_u16(pushed.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let text = match pushed.why.starts_with("cannot ") {
        true => pushed.why.clone(),
        false => format!("cannot take all samples: {}", pushed.why),
    };
    Refusal::new(status, text)
}

fn refused_write(refusal: &Refusal, written: Written) -> Response {
    let refusal = Refusal::new(refusal.status, refusal.text.clone());
    asks_again(with_counts(refusal.into_response(), written))
}

fn with_counts(mut response: Response, written: Written) -> Response {
    for (name, count) in written.headers() {
        if let Ok(name) = header::HeaderName::from_bytes(name.as_bytes()) {
            response
                .headers_mut()
                .insert(name, HeaderValue::from(count));
        }
    }
    response
}

/// Says when a sender may try again, if that helps.
fn asks_again(mut response: Response) -> Response {
    if response.status() == StatusCode::SERVICE_UNAVAILABLE {
        response
            .headers_mut()
            .insert(header::RETRY_AFTER, RETRY_AFTER);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_senders() {
        for (path, expected) in [
            ("/api/v1/write", true),
            ("/prometheus/api/v1/write", true),
            ("/api/v1/otlp/v1/metrics", true),
            ("/v1/metrics", true),
            ("/api/v1/query", false),
            ("/api/v1/write/", false),
            ("/metrics", false),
        ] {
            assert_eq!(is_path(path), expected, "{path}");
        }
    }

    #[test]
    fn codings_of_otlp() {
        let refused = Err(415);
        for (media_type, coding, expected) in [
            ("application/x-protobuf", "", Ok(Coding::Identity)),
            ("application/x-protobuf", "identity", Ok(Coding::Identity)),
            ("Application/X-Protobuf; x=y", "GZIP", Ok(Coding::Gzip)),
            ("application/x-protobuf", "zstd", refused),
            ("application/json", "", refused),
            ("", "", refused),
        ] {
            let mut headers = HeaderMap::new();
            for (name, value) in [
                (header::CONTENT_TYPE, media_type),
                (header::CONTENT_ENCODING, coding),
            ] {
                headers.insert(name, value.parse().unwrap());
            }
            let found = otlp_coding(&headers).map_err(|refusal| refusal.status.as_u16());
            assert_eq!(found, expected, "{media_type} {coding}");
        }
    }

    #[test]
    fn a_body_that_unpacks_to_too_much_is_refused() {
        let packed = crate::answer::gzip(&vec![0; PUSH_MAX + 1], 6);
        let refusal = unpacked(&packed).unwrap_err();
        assert_eq!(refusal.status, StatusCode::PAYLOAD_TOO_LARGE);
        let packed = crate::answer::gzip(&vec![0; PUSH_MAX], 6);
        assert_eq!(unpacked(&packed).unwrap().len(), PUSH_MAX);
        let short = crate::answer::gzip(b"a message", 6);
        for end in 1..short.len() {
            assert!(unpacked(&short[..end]).is_err(), "{end}");
        }
    }
}
