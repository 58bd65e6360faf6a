//! Follows a keeper: all that it takes, in the order in which it took it.

use std::collections::HashMap;
use std::io::{self, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use kymo_base::errno::strerror;
use kymo_series::{Kind, Labels, Sample};
use kymo_wire::keeper::{Answer, Question, TailFrom, TailOf, TailPiece, TailSeriesKind};

use super::connections::{Exchange, Patience};
use super::{elsewhere, read_answer};

/// Longest wait for a piece beyond the time that the keeper may wait itself.
const PATIENCE: Duration = Duration::from_secs(15);

/// Follows a keeper.
pub struct Tail {
    socket: PathBuf,
    name: String,
    from: TailFrom,
    stream: Option<UnixStream>,
    /// Series whose labels this connection has.
    series: HashMap<u64, (Labels, Kind)>,
}

/// Takes what a tail reads.
pub trait TailOut {
    /// A sample of a series.
    fn sample(&mut self, labels: &Labels, kind: Kind, sample: Sample);
}

/// Outcome of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TailAnswer {
    /// Everything before it was given; to be [confirmed](Tail::confirm).
    pub position: u64,
    /// Values that the tail has missed since the keeper knows it.
    pub missed: u64,
    /// Bytes of the journal that were gone or damaged.
    pub lost_bytes: u64,
}

impl Tail {
    /// Follows the keeper at this socket. With a name the keeper remembers how far the tail has got; then it is its write socket.
    pub fn new(socket: PathBuf, name: &str, from: TailFrom) -> Tail {
        Tail {
            socket,
            name: name.into(),
            from,
            stream: None,
            series: HashMap::new(),
        }
    }

    /// Says that everything before a position is dealt with: the next question tells the keeper.
    pub fn confirm(&mut self, position: u64) {
        self.from = TailFrom::At(position);
    }

    /// Gives what came, or waits for it. After an error the next question goes on from the position that was confirmed last.
    pub fn read(
        &mut self,
        wait: Duration,
        samples_max: u32,
        out: &mut dyn TailOut,
    ) -> Result<TailAnswer, String> {
        let asked = self.ask(wait, samples_max, out);
        let path = self.socket.display();
        let answer = match asked {
            Ok(answer) => answer,
            Err(error) => {
                self.stream = None;
                let why = strerror(&error);
                return Err(format!("cannot follow the keeper at {path}: {why}"));
            }
        };
        answer.map(|last| TailAnswer {
            position: last.position,
            missed: last.missed,
            lost_bytes: last.lost_bytes,
        })
    }

    fn ask(
        &mut self,
        wait: Duration,
        samples_max: u32,
        out: &mut dyn TailOut,
    ) -> io::Result<Result<TailPiece, String>> {
        let stream = match self.stream.take() {
            Some(stream) => stream,
            None => {
                self.series.clear();
                UnixStream::connect(&self.socket)?
            }
        };
        let patience = Patience {
            piece: PATIENCE + wait,
            until_ns: None,
        };
        let mut exchange = Exchange { stream, patience };
        let question = Question::Tail(TailOf {
            name: self.name.clone(),
            from: self.from,
            wait_ms: u32::try_from(wait.as_millis()).unwrap_or(u32::MAX),
            samples_max,
        });
        exchange.write_all(&question.frame())?;
        let answer = loop {
            match read_answer(&mut exchange)? {
                Answer::Refused(why) => break Err(why),
                Answer::Tail(piece, more) => {
                    self.take(&piece, out);
                    if !more {
                        break Ok(piece);
                    }
                }
                _ => return Err(elsewhere()),
            }
        };
        self.stream = Some(exchange.stream);
        Ok(answer)
    }

    fn take(&mut self, piece: &TailPiece, out: &mut dyn TailOut) {
        for series in &piece.series {
            let kind = match series.kind {
                TailSeriesKind::Untyped => Kind::Untyped,
                TailSeriesKind::Gauge => Kind::Gauge,
                TailSeriesKind::Counter => Kind::Counter,
                TailSeriesKind::Histogram => Kind::Histogram,
            };
            self.series.insert(series.id, (series.labels.clone(), kind));
        }
        for sample in &piece.samples {
            if let Some((labels, kind)) = self.series.get(&sample.id) {
                let (t_ms, v) = (sample.t_ms, sample.v);
                out.sample(labels, *kind, Sample { t_ms, v });
            }
        }
    }
}
