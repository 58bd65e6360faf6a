//! Connections, with limits of number, time and size, so that none of them can harm the others.

use std::convert::Infallible;
use std::io;
use std::net::TcpListener;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{Request, Response};
use axum::response::IntoResponse as _;
use hyper::body::{Body as _, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use kymo_sys::tcp_owner::TcpOwners;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tower_service::Service as _;

use crate::answer::Endless;
use crate::api::{self, Hub};
use crate::asker::Origin;
use crate::connections::{ASK_TIME, Connection, Connections, Doing};
use crate::turns;
use crate::{Settings, Tls};

/// Most bytes of a request's head.
const HEAD_BYTES: usize = 16 << 10;
/// Most headers of a request.
const HEADERS_MAX: usize = 64;
/// Reader threads: one for each turn, and one for the follower of the recording.
const READERS: usize = turns::THREADS + 1;
/// Stack size of those threads: only touched pages use memory.
const STACK_BYTES: usize = 1 << 20;

/// Serves until a signal ends the process. Calls `ready` once, when the first request could be answered.
pub fn run(
    listener: TcpListener,
    mut settings: Settings,
    ready: impl FnOnce(),
) -> Result<(), String> {
    let owners = settings.owners.take();
    let tls = settings.tls.as_ref().map(Tls::acceptor).transpose()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .max_blocking_threads(READERS)
        .thread_stack_size(STACK_BYTES)
        .thread_keep_alive(Duration::from_secs(3600))
        .build()
        .map_err(|error| format!("cannot serve: {error}"))?;
    runtime.block_on(async {
        let cannot = |error| format!("cannot listen: {error}");
        listener.set_nonblocking(true).map_err(cannot)?;
        let listener = tokio::net::TcpListener::from_std(listener).map_err(cannot)?;
        let hub = Arc::new(Hub::new(settings));
        hub.check()?;
        hub.clone().start();
        ready();
        accept(listener, tls, owners, hub).await;
        Ok(())
    })
}

async fn accept(
    listener: tokio::net::TcpListener,
    tls: Option<TlsAcceptor>,
    owners: Option<Arc<TcpOwners>>,
    hub: Arc<Hub>,
) {
    let connections = Arc::new(Connections::default());
    let router = api::router(hub.clone());
    loop {
        let Ok((stream, from)) = listener.accept().await else {
            // There may be no file descriptors left: another connection has to end first.
            connections.make_room();
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let origin = Origin::of(from, stream.local_addr().ok(), owners.as_deref());
        let (connection, full) = connections.enter(origin);
        let seat = Seat {
            connection,
            connections: connections.clone(),
        };
        let (hub, router, tls) = (hub.clone(), router.clone(), tls.clone());
        tokio::spawn(async move {
            let _ = stream.set_nodelay(true);
            tokio::select! {
                () = seat.connection.ends() => {}
                () = serve_stream(stream, tls, hub, router, &seat) => {}
            }
            seat.connections.leave(&seat.connection);
        });
        if full {
            // New and ending connections run before the next one is accepted.
            tokio::task::yield_now().await;
        }
    }
}

/// A connection, and the list of all.
#[derive(Clone)]
struct Seat {
    connection: Arc<Connection>,
    connections: Arc<Connections>,
}

/// Serves a connection. Without a TLS handshake in time it ends without an answer.
async fn serve_stream(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    hub: Arc<Hub>,
    router: axum::Router,
    seat: &Seat,
) {
    let Some(tls) = tls else {
        return serve(stream, hub, router, seat).await;
    };
    if let Ok(Ok(stream)) = tokio::time::timeout(ASK_TIME, tls.accept(stream)).await {
        seat.connection.does(Doing::Asks);
        serve(stream, hub, router, seat).await;
    }
}

async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    hub: Arc<Hub>,
    router: axum::Router,
    seat: &Seat,
) {
    let answer = service_fn(|request: Request<Incoming>| {
        let (hub, router, seat) = (hub.clone(), router.clone(), seat.clone());
        async move {
            seat.connection.does(match request.body().is_end_stream() {
                true => Doing::IsAnswered,
                false => Doing::Asks,
            });
            let mut response = answer(request, &hub, router, &seat.connection).await;
            match response.extensions().get::<Endless>() {
                Some(Endless) => seat.connections.follows(&seat.connection),
                None => seat.connection.does(Doing::IsAnswered),
            }
            let body = Body::new(Sending {
                body: std::mem::take(response.body_mut()),
                connection: seat.connection,
            });
            *response.body_mut() = body;
            Ok::<_, Infallible>(api::finish(response))
        }
    });
    let stream = Watched {
        stream,
        connection: seat.connection.clone(),
    };
    // An error of a connection concerns its client only.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(ASK_TIME)
        .max_buf_size(HEAD_BYTES)
        .max_headers(HEADERS_MAX)
        .serve_connection(TokioIo::new(stream), answer)
        .await;
}

async fn answer(
    request: Request<Incoming>,
    hub: &Hub,
    mut router: axum::Router,
    connection: &Arc<Connection>,
) -> Response<Body> {
    match hub.admit(request.map(Body::new), connection) {
        Ok(request) => {
            let Ok(response) = router.call(request).await;
            response
        }
        Err(denied) => {
            tokio::time::sleep(denied.wait).await;
            denied.refusal.into_response()
        }
    }
}

/// Body of an answer; after its end the connection is idle.
struct Sending {
    body: Body,
    connection: Arc<Connection>,
}

impl hyper::body::Body for Sending {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        self.connection.does(Doing::Rests);
    }
}

/// A stream that notes the time since which the client does not read.
struct Watched<S> {
    stream: S,
    connection: Arc<Connection>,
}

impl<S> Watched<S> {
    fn note<T>(&self, written: Poll<T>) -> Poll<T> {
        self.connection.took(written.is_ready());
        written
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.note(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.note(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
