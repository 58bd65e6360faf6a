//! Chunks in frames, which are sent while the next ones are read.

use std::io;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse as _, Response};
use kymo_wire::remote_read::{FRAMES_TYPE, SeriesChunks, put_frames};
use tokio::sync::mpsc::{self, Sender};
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::ReceiverStream;

use super::super::failure::{ErrorType, Failure};
use super::super::{ANSWER_MAX, Hub, PATIENCE, RequestHead, Terms};
use super::SeriesQuery;
use super::batches::{Batches, EncodedSeries};
use crate::refusal::set_type;
use crate::turns::Lane;

/// Bytes that are sent at once, about.
const PIECE_BYTES: usize = 64 << 10;
/// Pieces that wait for the client.
const PIECES_MAX: usize = 4;

/// Frames, or why there are no more.
type Piece = Result<Vec<u8>, Failure>;

/// Answers query by query.
pub(super) async fn answer(
    hub: Arc<Hub>,
    head: RequestHead,
    queries: Vec<SeriesQuery>,
) -> Result<Response, Failure> {
    let (sender, mut receiver) = mpsc::channel(PIECES_MAX);
    let (terms, gone) = Terms::new(&head, PATIENCE);
    tokio::spawn(send(hub, head, terms, queries, sender));
    // The status is sent before the first piece.
    let first = receiver.recv().await.unwrap_or(Ok(Vec::new()))?;
    let rest = ReceiverStream::new(receiver);
    let pieces = tokio_stream::once(Ok(first)).chain(rest);
    let pieces = pieces.map(move |piece: Piece| {
        let _gone = &gone;
        // The client sees that the answer is cut off.
        piece
            .map(Bytes::from)
            .map_err(|why| io::Error::other(why.text))
    });
    let mut response = Body::from_stream(pieces).into_response();
    set_type(&mut response, FRAMES_TYPE);
    Ok(response)
}

/// Sends pieces, at last why the answer ends early.
async fn send(
    hub: Arc<Hub>,
    head: RequestHead,
    terms: Terms,
    queries: Vec<SeriesQuery>,
    sender: Sender<Piece>,
) {
    let pieces = sender.clone();
    let question = move |hub: &Hub| Ok(write(hub, &terms, &queries, &pieces));
    let asker = head.visitor.asker;
    let written = hub
        .ask_within(PATIENCE, Lane::Series, asker, question)
        .await;
    let written = written.map_err(Failure::from).and_then(|written| written);
    if let Err(failure) = written {
        // The client may have gone.
        let _ = sender.send(Err(failure)).await;
    }
}

fn write(
    hub: &Hub,
    terms: &Terms,
    queries: &[SeriesQuery],
    sender: &Sender<Piece>,
) -> Result<(), Failure> {
    let send = |piece: &mut Vec<u8>| {
        let gone = |_| Failure::new(ErrorType::Canceled, "the client has gone");
        sender
            .blocking_send(Ok(std::mem::take(piece)))
            .map_err(gone)
    };
    let begin = || EncodedSeries::Chunks(SeriesChunks::default());
    let mut batches = Batches::new(hub, terms, ANSWER_MAX, begin)?;
    let mut piece = Vec::new();
    for (number, query) in (0_u64..).zip(queries) {
        batches.each_series(query, |labels, series| {
            if let EncodedSeries::Chunks(mut chunks) = series {
                chunks.finish();
                put_frames(&mut piece, number, labels, &chunks);
            }
            match piece.len() >= PIECE_BYTES {
                true => send(&mut piece),
                false => Ok(()),
            }
        })?;
    }
    match piece.is_empty() {
        true => Ok(()),
        false => send(&mut piece),
    }
}
