//! The tail of a keeper: a stream of all values that the keeper accepts, for a program that forwards them.
//!
//! One connection asks for the events behind the last position, which acknowledges all events before it. After an error the tail
//! begins again at the acknowledged position, so that values may come twice and none is left out.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use kymo_base::errno::strerror;
use kymo_sys::listen;
use kymo_wire::keeper::{
    Answer, DefinedSeries, KeeperRequest, MissedPart, NumberedSample, TailAfter, TailEvent,
    TailPlace,
};

use super::connections::{Exchange, Patience};
use super::{PATIENCE, elsewhere, read_answer};
use std::io::Write as _;

/// Bytes of the journal that one answer has, about.
const BYTES_MAX: u32 = 4 << 20;

/// Receives the events of a tail. Numbers of series hold until the next [`TailSink::restarted`].
pub trait TailSink {
    /// The tail begins, or begins again on another connection: no series is defined, and values may come that came before.
    fn restarted(&mut self);
    /// Defines the series that a number stands for from now on.
    fn defined(&mut self, series: DefinedSeries);
    /// The series does not exist any more.
    fn gone(&mut self, series: u32);
    /// A part of the values is lost.
    fn missed(&mut self, missed: MissedPart);
    /// Samples in their order.
    fn samples(&mut self, samples: &[NumberedSample]);
}

/// A tail of a keeper.
pub struct Tail {
    socket: PathBuf,
    name: String,
    from: TailPlace,
    stream: Option<UnixStream>,
}

impl Tail {
    /// The tail of the keeper that answers on this socket. With a name it is registered: it begins at `from` where it is new, and
    /// else where it has acknowledged. Nothing is asked yet.
    pub fn open(socket: PathBuf, name: Option<&str>, from: TailPlace) -> Tail {
        Tail {
            socket,
            name: name.unwrap_or_default().into(),
            from,
            stream: None,
        }
    }

    /// Waits at most `wait` for the next events, and hands them to the sink. The next call acknowledges them: until then the sink
    /// must have taken care of them. After an error the next call begins again.
    pub fn next(&mut self, wait: Duration, sink: &mut dyn TailSink) -> Result<(), String> {
        self.ask(BYTES_MAX, wait, sink)
    }

    /// Does what [`Tail::next`] does, with about this number of bytes of the journal at most.
    pub fn next_within(
        &mut self,
        bytes_max: u32,
        wait: Duration,
        sink: &mut dyn TailSink,
    ) -> Result<(), String> {
        self.ask(bytes_max, wait, sink)
    }

    /// Acknowledges all events that came, without waiting for more.
    pub fn acknowledge(&mut self, sink: &mut dyn TailSink) -> Result<(), String> {
        match self.from {
            TailPlace::Position(_) => self.ask(0, Duration::ZERO, sink),
            TailPlace::Now | TailPlace::Oldest => Ok(()),
        }
    }

    /// The position before which all came; `None`: nothing was asked yet.
    pub fn position(&self) -> Option<u64> {
        match self.from {
            TailPlace::Position(position) => Some(position),
            TailPlace::Now | TailPlace::Oldest => None,
        }
    }

    fn ask(
        &mut self,
        bytes_max: u32,
        wait: Duration,
        sink: &mut dyn TailSink,
    ) -> Result<(), String> {
        let after = TailAfter {
            name: self.name.clone(),
            from: self.from,
            bytes_max,
            wait_ms: u32::try_from(wait.as_millis()).unwrap_or(u32::MAX),
        };
        let patience = Patience {
            piece: PATIENCE.saturating_add(wait),
            until_ns: None,
        };
        let asked = self.exchange(patience, &KeeperRequest::Tail(after), sink);
        let said = |error: &io::Error| {
            let socket = self.socket.display();
            format!("cannot tail the keeper at {socket}: {}", strerror(error))
        };
        match asked {
            Ok((stream, Ok(position))) => {
                self.from = TailPlace::Position(position);
                self.stream = Some(stream);
                Ok(())
            }
            Ok((_, Err(why))) => Err(why),
            Err(error) => Err(said(&error)),
        }
    }

    /// One request, on the connection of the last one if it was answered there.
    fn exchange(
        &mut self,
        patience: Patience,
        request: &KeeperRequest,
        sink: &mut dyn TailSink,
    ) -> io::Result<(UnixStream, Result<u64, String>)> {
        let stream = match self.stream.take() {
            Some(stream) => stream,
            None => {
                let stream = listen::connect_within(&self.socket, patience.piece)?;
                sink.restarted();
                stream
            }
        };
        let mut exchange = Exchange { stream, patience };
        exchange.write_all(&request.frame())?;
        loop {
            match read_answer(&mut exchange)? {
                Answer::Tailed(piece, more) => {
                    piece
                        .events
                        .into_iter()
                        .for_each(|event| hand_over(event, sink));
                    if !more {
                        return Ok((exchange.stream, Ok(piece.position)));
                    }
                }
                Answer::Refused(why) => return Ok((exchange.stream, Err(why))),
                _ => return Err(elsewhere()),
            }
        }
    }
}

fn hand_over(event: TailEvent, sink: &mut dyn TailSink) {
    match event {
        TailEvent::Defined(series) => sink.defined(series),
        TailEvent::Gone(series) => sink.gone(series),
        TailEvent::Missed(missed) => sink.missed(missed),
        TailEvent::Samples(samples) => sink.samples(&samples),
    }
}

/// Reads what a hostile keeper answers on this connection.
#[cfg(feature = "testing")]
pub fn fuzz_over(stream: UnixStream) {
    struct Count(u64);

    impl TailSink for Count {
        fn restarted(&mut self) {}

        fn defined(&mut self, _series: DefinedSeries) {}

        fn gone(&mut self, _series: u32) {}

        fn missed(&mut self, _missed: MissedPart) {}

        fn samples(&mut self, samples: &[NumberedSample]) {
            self.0 += u64::try_from(samples.len()).unwrap_or(0);
        }
    }

    let mut tail = Tail::open("/nowhere".into(), None, TailPlace::Oldest);
    tail.stream = Some(stream);
    let mut count = Count(0);
    while tail.next(Duration::ZERO, &mut count).is_ok() {}
}
