//! `SendToGraphite`: a thread sends a copy of all stored values to a carbon server, a line for each; polling never waits for
//! it. Names and values are those of MRTG: raw counters below `m2g`.

use std::io::{self, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use kymo_wire::mrtg_cfg::{Config, Keyword, LogFormat, Target};

use crate::batch::Batch;

/// Approximate size of a piece of lines that the thread gets.
const PIECE_BYTES: usize = 64 << 10;
/// Pieces that wait for a slow server, 16 MiB in all; further ones are lost.
const PIECES_MAX: usize = 256;
/// Timeout for a connection, and for a write.
const PATIENCE: Duration = Duration::from_secs(5);

/// The sending thread's handle.
#[derive(Debug)]
pub struct Graphite {
    /// Names of each target's values, in and out.
    names: Vec<[Vec<u8>; 2]>,
    pieces: SyncSender<Vec<u8>>,
}

impl Graphite {
    /// Starts the thread if the configuration wants it; `say` gets its errors.
    pub fn start(
        config: &Config,
        say: impl Fn(&str) + Send + 'static,
    ) -> io::Result<Option<Graphite>> {
        let globals = config.globals();
        let Some((host, port)) = &globals.send_to_graphite else {
            return Ok(None);
        };
        if globals.log_format != LogFormat::Rrdtool {
            return Ok(None);
        }
        let (pieces, queue) = sync_channel(PIECES_MAX);
        let server = (host.to_string(), *port);
        std::thread::Builder::new()
            .name("graphite".into())
            .spawn(move || send_all(&server, &queue, &say))?;
        Ok(Some(Graphite {
            names: config.targets().map(names).collect(),
            pieces,
        }))
    }

    /// Sends all values of a batch without waiting. Returns the number of values lost because the server is slow or away.
    pub fn send(&self, batch: &Batch) -> usize {
        let (mut piece, mut lines, mut lost) = (Vec::new(), 0, 0);
        let mut hand_over = |piece: &mut Vec<u8>, lines: &mut usize| {
            let full = std::mem::take(piece);
            match self.pieces.try_send(full) {
                Ok(()) => {}
                Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => lost += *lines,
            }
            *lines = 0;
        };
        for update in batch.iter() {
            if let Some(names) = usize::try_from(update.target)
                .ok()
                .and_then(|at| self.names.get(at))
            {
                lines += put_lines(&mut piece, names, update.argument);
            }
            if piece.len() >= PIECE_BYTES {
                hand_over(&mut piece, &mut lines);
            }
        }
        if !piece.is_empty() {
            hand_over(&mut piece, &mut lines);
        }
        lost
    }
}

fn names(target: Target<'_>) -> [Vec<u8>; 2] {
    let legend = |keyword, otherwise: &[u8]| {
        let legend = target.value(keyword).filter(|text| !text.is_empty());
        legend.map_or(otherwise.to_vec(), |text| text.into_owned())
    };
    let name = target.name();
    let name: Vec<u8> = name.iter().copied().filter(|&byte| byte != b',').collect();
    let whole = |end: Vec<u8>| {
        [b"m2g", name.as_slice(), end.as_slice()]
            .map(part)
            .join(&b'.')
    };
    [
        whole(legend(Keyword::LegendI, b"in")),
        whole(legend(Keyword::LegendO, b"out")),
    ]
}

/// Replaces underscores by dots, and blanks by underscores. MRTG keeps blanks, which end the name.
fn part(text: &[u8]) -> Vec<u8> {
    let change = |&byte: &u8| match byte {
        b'_' => b'.',
        byte if byte.is_ascii_graphic() || byte >= 0x80 => byte,
        _ => b'_',
    };
    text.iter().map(change).collect()
}

/// Appends a line for each known value of `SECONDS[.MICROSECONDS]:IN:OUT`; returns their number.
fn put_lines(out: &mut Vec<u8>, names: &[Vec<u8>; 2], argument: &[u8]) -> usize {
    let mut parts = argument.split(|&byte| byte == b':');
    let stamp = parts.next().unwrap_or_default();
    let seconds = stamp.split(|&byte| byte == b'.').next().unwrap_or_default();
    let known = names.iter().zip(parts).filter(|(_, value)| *value != b"U");
    let mut count = 0;
    for (name, value) in known {
        for (part, end) in [(name.as_slice(), b' '), (value, b' '), (seconds, b'\n')] {
            out.extend_from_slice(part);
            out.push(end);
        }
        count += 1;
    }
    count
}

/// The thread, which ends when the [`Graphite`] is dropped.
fn send_all(server: &(String, u16), queue: &Receiver<Vec<u8>>, say: &dyn Fn(&str)) {
    let mut stream = None;
    let mut is_well = true;
    for piece in queue {
        let sent = send_piece(&mut stream, server, &piece);
        if let Err(error) = &sent {
            stream = None;
            if is_well {
                let (host, port) = server;
                say(&format!(
                    "cannot send to graphite at {host},{port}: {error}"
                ));
            }
        }
        is_well = sent.is_ok();
    }
}

/// Sends a piece. Connects again, once, if the server has closed the connection.
fn send_piece(
    stream: &mut Option<TcpStream>,
    server: &(String, u16),
    piece: &[u8],
) -> io::Result<()> {
    if let Some(open) = stream
        && !is_closed(open)
        && open.write_all(piece).is_ok()
    {
        return Ok(());
    }
    let new = stream.insert(connect(server)?);
    new.write_all(piece)
}

/// True if the server has closed the connection. Carbon never sends anything, so readable means closed.
fn is_closed(stream: &TcpStream) -> bool {
    let peeked = stream
        .set_nonblocking(true)
        .and_then(|()| stream.peek(&mut [0]));
    let restored = stream.set_nonblocking(false);
    let waits = matches!(&peeked, Err(error) if error.kind() == io::ErrorKind::WouldBlock);
    !waits || restored.is_err()
}

fn connect(server: &(String, u16)) -> io::Result<TcpStream> {
    let mut failed = io::Error::other("no such host");
    for address in server.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => {
                stream.set_write_timeout(Some(PATIENCE))?;
                return Ok(stream);
            }
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::net::TcpListener;

    fn batch(arguments: &[&str]) -> Batch {
        let mut batch = Batch::default();
        for (target, argument) in arguments.iter().enumerate() {
            batch.push(target, |out| out.extend(argument.as_bytes()));
        }
        batch
    }

    #[test]
    fn values_are_lines_and_what_is_unknown_is_none() {
        let names =
            |name: &str| [b"in", &b"out"[..]].map(|end| [name.as_bytes(), b".", end].concat());
        for (argument, expected) in [
            (
                "1700000000.25:18446744073709551615:-3.5",
                "a.in 18446744073709551615 1700000000\na.out -3.5 1700000000\n",
            ),
            ("17:U:2", "a.out 2 17\n"),
            ("17:U:U", ""),
        ] {
            let mut out = Vec::new();
            let count = put_lines(&mut out, &names("a"), argument.as_bytes());
            assert_eq!(String::from_utf8(out).unwrap(), expected);
            assert_eq!(count, expected.lines().count());
        }
        assert_eq!(part(b"a_b c&x"), b"a.b_c&x");
    }

    #[test]
    fn a_server_that_goes_is_found_again_and_one_that_is_away_holds_up_nothing() {
        let listener = TcpListener::bind("127.0.15.1:0").unwrap();
        let server = (
            "127.0.15.1".to_string(),
            listener.local_addr().unwrap().port(),
        );
        let (pieces, queue) = sync_channel(2);
        let (notices, lines) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            send_all(&server, &queue, &|line| {
                notices.send(line.to_string()).unwrap()
            });
        });
        let graphite = Graphite {
            names: vec![[b"a.in".to_vec(), b"a.out".to_vec()]],
            pieces,
        };
        for round in ["1", "2"] {
            assert_eq!(graphite.send(&batch(&[&format!("{round}:5:U")])), 0);
            let (stream, _) = listener.accept().unwrap();
            let mut line = String::new();
            BufReader::new(stream).read_line(&mut line).unwrap();
            assert_eq!(line, format!("a.in 5 {round}\n"));
        }
        drop(listener);
        // Pieces that do not fit the queue are lost, and `send` never waits.
        let line = loop {
            graphite.send(&batch(&["3:5:6"]));
            match lines.try_recv() {
                Ok(line) => break line,
                Err(_) => std::thread::yield_now(),
            }
        };
        assert!(
            line.starts_with("cannot send to graphite at 127.0.15.1,"),
            "{line}"
        );
        drop(graphite);
        thread.join().unwrap();
    }

    #[test]
    fn what_a_queue_cannot_take_is_counted() {
        let (pieces, queue) = sync_channel(1);
        let graphite = Graphite {
            names: vec![[b"a.in".to_vec(), b"a.out".to_vec()]],
            pieces,
        };
        let sent = ["1:2:3", "1:2:U", "1:U:U"].map(|text| graphite.send(&batch(&[text])));
        assert_eq!(sent, [0, 1, 0]);
        assert_eq!(queue.recv().unwrap(), b"a.in 2 1\na.out 3 1\n");
    }
}
