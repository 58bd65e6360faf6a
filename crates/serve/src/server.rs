//! Connections: how many, how long, how large. What one of them does cannot hurt the others.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::http::{Request, Response};
use axum::response::IntoResponse as _;
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;
use tower_service::Service as _;

use crate::api::{self, Hub, READING_MAX};
use crate::{Settings, Tls};

/// Connections at a time. When there are more, the oldest that is not being answered goes.
const CONNECTIONS_MAX: usize = 512;
/// A request's head has to come within.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// Who takes nothing of an answer for so long gets no more of it.
const STALL_TIME: Duration = Duration::from_secs(10);
/// Bytes of a request's head.
const HEAD_BYTES: usize = 16 << 10;
/// Headers of a request.
const HEADERS_MAX: usize = 64;
/// Threads that read the recording: for questions, and one that follows it.
const READERS: usize = READING_MAX + 1;
/// Stacks of those threads, in bytes: touched pages count.
const STACK_BYTES: usize = 1 << 20;

/// Serves until the process is ended by a signal. `ready` is called once, when the first request could be answered.
pub fn run(listener: TcpListener, settings: Settings, ready: impl FnOnce()) -> Result<(), String> {
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
        accept(listener, tls, hub).await;
        Ok(())
    })
}

async fn accept(listener: tokio::net::TcpListener, tls: Option<TlsAcceptor>, hub: Arc<Hub>) {
    let connections = Arc::new(Connections::default());
    let router = api::router(hub.clone());
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Out of files, say: those who are here have to go first.
            connections.make_room();
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let place = connections.enter();
        let (hub, router, connections) = (hub.clone(), router.clone(), connections.clone());
        let tls = tls.clone();
        tokio::spawn(async move {
            let _ = stream.set_nodelay(true);
            match tls {
                None => serve(stream, hub, router, &place).await,
                Some(tls) => serve_encrypted(stream, &tls, hub, router, &place).await,
            }
            connections.leave(&place);
        });
    }
}

/// Who does not come to terms in time, or has to make room meanwhile, goes without an answer.
async fn serve_encrypted(
    stream: TcpStream,
    tls: &TlsAcceptor,
    hub: Arc<Hub>,
    router: axum::Router,
    place: &Arc<Place>,
) {
    let agreed = tokio::select! {
        agreed = tokio::time::timeout(HEAD_TIME, tls.accept(stream)) => agreed,
        () = place.leave.notified() => return,
    };
    if let Ok(Ok(stream)) = agreed {
        serve(stream, hub, router, place).await;
    }
}

async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    hub: Arc<Hub>,
    router: axum::Router,
    place: &Arc<Place>,
) {
    let answer = service_fn(|request: Request<Incoming>| {
        let (hub, mut router, place) = (hub.clone(), router.clone(), place.clone());
        async move {
            place.busy.store(true, Ordering::Relaxed);
            let mut response: Response<Body> = match hub.admit(request.map(Body::new)) {
                Ok(request) => {
                    let Ok(response) = router.call(request).await;
                    response
                }
                Err(refusal) => refusal.into_response(),
            };
            let body = Body::new(Sending {
                body: std::mem::take(response.body_mut()),
                place,
            });
            *response.body_mut() = body;
            Ok::<_, Infallible>(api::finish(response))
        }
    });
    let stream = Watched {
        stream,
        place: place.clone(),
    };
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(HEAD_BYTES)
        .max_headers(HEADERS_MAX)
        .serve_connection(TokioIo::new(stream), answer);
    tokio::select! {
        // What went wrong in a connection is the other side's affair.
        _ = connection => {}
        () = place.leave.notified() => {}
        () = place.stalls() => {}
    }
}

/// Those who are connected, oldest first.
#[derive(Default)]
struct Connections(Mutex<VecDeque<Arc<Place>>>);

/// One connection.
#[derive(Default)]
struct Place {
    /// A request is being answered, or its answer is on the way.
    busy: AtomicBool,
    /// Since when the other side takes nothing of what is there for it.
    stalled: Mutex<Option<Instant>>,
    leave: Notify,
}

impl Place {
    /// Ends when the other side has taken nothing for too long.
    async fn stalls(&self) {
        loop {
            tokio::time::sleep(STALL_TIME / 2).await;
            let stalled = self.stalled.lock().ok().and_then(|since| *since);
            if stalled.is_some_and(|since| since.elapsed() > STALL_TIME) {
                return;
            }
        }
    }

    /// Whether nothing is on the way to the other side.
    fn is_idle(&self) -> bool {
        let stalled = self.stalled.lock().is_ok_and(|since| since.is_some());
        !stalled && !self.busy.load(Ordering::Relaxed)
    }
}

/// An answer's body; with its end the connection is idle.
struct Sending {
    body: Body,
    place: Arc<Place>,
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
        self.place.busy.store(false, Ordering::Relaxed);
    }
}

/// A stream that notes since when the other side takes nothing.
struct Watched<S> {
    stream: S,
    place: Arc<Place>,
}

impl<S> Watched<S> {
    fn note<T>(&self, written: Poll<T>) -> Poll<T> {
        if let Ok(mut since) = self.place.stalled.lock() {
            match written {
                Poll::Pending => drop(since.get_or_insert_with(Instant::now)),
                Poll::Ready(_) => *since = None,
            }
        }
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

impl Connections {
    fn enter(&self) -> Arc<Place> {
        let place = Arc::new(Place::default());
        let full = match self.0.lock() {
            Ok(mut places) => {
                places.push_back(place.clone());
                places.len() > CONNECTIONS_MAX
            }
            Err(_) => false,
        };
        if full {
            self.make_room();
        }
        place
    }

    /// Sends away the oldest that is not being answered, or else the oldest.
    fn make_room(&self) {
        if let Ok(mut places) = self.0.lock() {
            let idle = places.iter().position(|place| place.is_idle());
            if let Some(place) = places.remove(idle.unwrap_or(0)) {
                place.leave.notify_one();
            }
        }
    }

    fn leave(&self, place: &Arc<Place>) {
        if let Ok(mut places) = self.0.lock() {
            places.retain(|known| !Arc::ptr_eq(known, place));
        }
    }
}
