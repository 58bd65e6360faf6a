//! A client of the keeper: one request, one answer.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use kymo_wire::keeper::{ANSWER_MAX, Answer, HEAD, KeeperRequest, body_bytes};

/// Sends a request on an open connection.
pub fn answer_of(stream: &mut UnixStream, request: &KeeperRequest) -> Answer {
    stream.write_all(&request.frame()).expect("a request");
    let mut head = [0; HEAD];
    stream.read_exact(&mut head).expect("an answer's head");
    let mut body = vec![0; body_bytes(head, ANSWER_MAX).expect("a length")];
    stream.read_exact(&mut body).expect("an answer's body");
    Answer::read(&body).expect("an answer")
}

/// Sends a request on a new connection.
pub fn ask_at(socket: &Path, request: &KeeperRequest) -> Answer {
    let mut stream = UnixStream::connect(socket).expect("a keeper");
    answer_of(&mut stream, request)
}
