//! Questions of series by labels: which there are, their samples, names and values of labels.

use std::io;

use kymo_wire::keeper::{Answer, Find, FoundSeries, LabelsOf, Question, SamplesOf, SamplesPiece};

use super::connections::Exchange;
use super::{Keeper, elsewhere, read_answer};

impl Keeper {
    /// Series that all matchers pick and that have something in a range or later.
    pub fn find(&self, find: &Find) -> Result<Vec<FoundSeries>, String> {
        self.ask(&Question::Find(find.clone()), |stream| {
            all(stream, |answer| match answer {
                Answer::Found(found, more) => Some((found, more)),
                _ => None,
            })
        })?
    }

    /// Names of labels, or values of one.
    pub fn label_texts(&self, of: &LabelsOf) -> Result<Vec<String>, String> {
        self.ask(&Question::Labels(of.clone()), |stream| {
            all(stream, |answer| match answer {
                Answer::Labels(texts, more) => Some((texts, more)),
                _ => None,
            })
        })?
    }

    /// Samples of series, piece by piece.
    pub fn samples(&self, of: &SamplesOf) -> Result<Vec<SamplesPiece>, String> {
        self.ask(&Question::Samples(of.clone()), |stream| {
            all(stream, |answer| match answer {
                Answer::Samples(piece, more) => Some((vec![piece], more)),
                _ => None,
            })
        })?
    }
}

/// Pieces of an answer, up to the last one.
fn all<T>(
    stream: &mut Exchange,
    piece: impl Fn(Answer) -> Option<(Vec<T>, bool)>,
) -> io::Result<Result<Vec<T>, String>> {
    let mut all = Vec::new();
    loop {
        match read_answer(stream)? {
            Answer::Refused(why) => return Ok(Err(why)),
            answer => {
                let (part, more) = piece(answer).ok_or_else(elsewhere)?;
                all.extend(part);
                if !more {
                    return Ok(Ok(all));
                }
            }
        }
    }
}
