//! Requests of series by labels: which there are, their samples, names and values of labels.

use std::io::{self, BufReader, Write as _};

use kymo_wire::keeper::{
    Answer, Find, FoundSeries, KeeperRequest, LabelsOf, SamplesOf, SamplesPiece,
};

use super::connections::{Exchange, Permit};
use super::{Keeper, elsewhere, is_timeout, read_answer};

/// Bytes that are read at once.
const BUFFER: usize = 64 << 10;
/// Parts of one answer that may be missing.
const MISSING_MAX: usize = 64;

/// Items of an answer, and why others are missing, for people.
#[derive(Debug)]
pub struct Partial<T> {
    /// The items that there are.
    pub items: Vec<T>,
    /// A reason for each missing part.
    pub missing: Vec<String>,
}

impl Keeper {
    /// Series that all matchers pick and that have something in a range or later.
    pub fn find(&self, find: &Find) -> Result<Partial<FoundSeries>, String> {
        self.ask(&KeeperRequest::Find(find.clone()), |stream| {
            all(stream, |answer| match answer {
                Answer::Found(found, more) => Some((found, more)),
                _ => None,
            })
        })?
    }

    /// Names of labels, or values of one.
    pub fn label_texts(&self, of: &LabelsOf) -> Result<Partial<String>, String> {
        self.ask(&KeeperRequest::Labels(of.clone()), |stream| {
            all(stream, |answer| match answer {
                Answer::Labels(texts, more) => Some((texts, more)),
                _ => None,
            })
        })?
    }

    /// Samples of series, piece by piece.
    pub fn samples(&self, of: &SamplesOf) -> Result<Partial<SamplesPiece>, String> {
        self.ask(&KeeperRequest::Samples(of.clone()), read_samples)?
    }

    /// Requests samples that are read later, so that the keeper reads them meanwhile. `None`: all connections are in use, or the
    /// keeper is silent.
    pub fn samples_ahead(&self, of: &SamplesOf) -> Option<SamplesAhead> {
        let is_silent = self
            .silence
            .as_ref()
            .and_then(|silence| silence.lasts())
            .is_some();
        if is_silent {
            return None;
        }
        let place = self.connections.spare_place()?;
        let stream = place.old()?;
        let mut exchange = Exchange {
            stream,
            patience: self.patience,
        };
        exchange
            .write_all(&KeeperRequest::Samples(of.clone()).frame())
            .ok()?;
        Some(SamplesAhead {
            keeper: self.clone(),
            place,
            exchange,
        })
    }
}

/// A request whose answer is still to be read. The connection of one that is dropped is closed.
pub struct SamplesAhead {
    keeper: Keeper,
    place: Permit,
    exchange: Exchange,
}

impl SamplesAhead {
    /// The answer. `None`: the connection was that of a keeper which has ended, and the request has to be sent again.
    pub fn read(mut self) -> Option<Result<Partial<SamplesPiece>, String>> {
        match read_samples(&mut self.exchange) {
            Ok(answer) => {
                self.place.keep(self.exchange.stream);
                Some(answer)
            }
            // A keeper that hangs would hang on a new connection as well.
            Err(error) if is_timeout(&error) => Some(Err(self.keeper.unanswered(&error))),
            Err(_) => None,
        }
    }
}

fn read_samples(stream: &mut Exchange) -> io::Result<Result<Partial<SamplesPiece>, String>> {
    all(stream, |answer| match answer {
        Answer::Samples(piece, more) => Some((vec![piece], more)),
        _ => None,
    })
}

/// Pieces of an answer, up to the last one.
fn all<T>(
    stream: &mut Exchange,
    piece: impl Fn(Answer) -> Option<(Vec<T>, bool)>,
) -> io::Result<Result<Partial<T>, String>> {
    let mut all = Partial {
        items: Vec::new(),
        missing: Vec::new(),
    };
    // Nothing follows an answer before the next request.
    let mut stream = BufReader::with_capacity(BUFFER, stream);
    loop {
        match read_answer(&mut stream)? {
            Answer::Refused(why) => return Ok(Err(why)),
            Answer::Missing(why) if all.missing.len() < MISSING_MAX => all.missing.push(why),
            Answer::Missing(_) => return Err(elsewhere()),
            answer => {
                let (part, more) = piece(answer).ok_or_else(elsewhere)?;
                all.items.extend(part);
                if !more {
                    return Ok(Ok(all));
                }
            }
        }
    }
}
