//! Answers clients on the guardian's socket, a task each.

use std::io;
use std::os::unix::net;
use std::sync::Arc;
use std::time::Duration;

use kymo_wire::keeper::{Answer, HEAD, KeeperRequest, QUESTION_MAX, body_bytes};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use super::client::{Client, Engine};
use super::order::UpstreamTarget;
use super::questions::{Questions, SharedState};

/// Clients at a time. Others are closed.
const CLIENTS_MAX: usize = 16;
/// Longest pause of a client within a request, or while an answer is written.
const STALL: Duration = Duration::from_secs(10);
/// Pause after a connection that could not be accepted.
const PAUSE: Duration = Duration::from_millis(100);

/// Answers until the process ends.
pub fn serve(listener: net::UnixListener, target: &UpstreamTarget) -> Result<(), String> {
    let engine = Engine::new(target)?;
    let shared = SharedState::new(target.drop_labels.clone());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build();
    let runtime = runtime.map_err(|error| format!("cannot ask the upstream: {error}"))?;
    runtime.block_on(async {
        let cannot = |error| format!("cannot answer on its socket: {error}");
        listener.set_nonblocking(true).map_err(cannot)?;
        let listener = UnixListener::from_std(listener).map_err(cannot)?;
        let seats = Arc::new(Semaphore::new(CLIENTS_MAX));
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                sleep(PAUSE).await;
                continue;
            };
            let Ok(seat) = seats.clone().try_acquire_owned() else {
                continue;
            };
            let questions = Questions::new(Client::new(engine.clone()), shared.clone());
            tokio::spawn(async move {
                // A client that goes away, or breaks the protocol, ends its connection.
                let _ended = answer(stream, questions).await;
                drop(seat);
            });
        }
    })
}

async fn answer(mut stream: UnixStream, mut questions: Questions) -> io::Result<()> {
    loop {
        let mut head = [0; HEAD];
        stream.read_exact(&mut head).await?;
        let bytes = body_bytes(head, QUESTION_MAX).map_err(io::Error::other)?;
        let mut frame = vec![0; bytes];
        timeout(STALL, stream.read_exact(&mut frame)).await??;
        let request = KeeperRequest::read(&frame);
        let answers = match &request {
            Ok(request) => questions.answer(request).await,
            Err(why) => vec![Answer::Refused(format!("cannot answer: the request {why}"))],
        };
        for answer in answers {
            timeout(STALL, stream.write_all(&answer.frame())).await??;
        }
        request.map_err(io::Error::other)?;
    }
}
