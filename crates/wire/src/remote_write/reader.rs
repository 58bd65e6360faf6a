//! A message from its first field to its last.

use super::decoded::Decoded;
use super::model::{
    FamilyMetadata, WriteCounts, WriteItem, WriteLimits, WriteSeries, WriteVersion,
};
use super::refusal::BadWrite;
use super::series::{read_metadata_v1, read_v1, read_v2};
use crate::protobuf::{MessageFields, Wire};

/// Reads a message series by series, in time and memory that its size and the limits bound.
#[derive(Debug)]
pub struct WriteReader<'a> {
    version: WriteVersion,
    fields: MessageFields<'a>,
    symbols: Vec<Option<&'a str>>,
    series: Decoded<'a>,
    counts: WriteCounts,
}

impl<'a> WriteReader<'a> {
    /// Takes the bytes that [`super::decompress`] gave. The symbols of a message of 2.0 are looked for first, for they
    /// need not stand in front of the series that use them.
    pub fn new(
        version: WriteVersion,
        message: &'a [u8],
        limits: WriteLimits,
    ) -> Result<WriteReader<'a>, BadWrite> {
        Ok(WriteReader {
            version,
            fields: MessageFields::of(message),
            symbols: match version {
                WriteVersion::V1 => Vec::new(),
                WriteVersion::V2 => symbols(message, limits.symbols)?,
            },
            series: Decoded::new(limits),
            counts: WriteCounts::default(),
        })
    }

    /// How much has been read.
    pub fn counts(&self) -> WriteCounts {
        self.counts
    }

    /// The next series or metadata; `None` at the end, and behind an error.
    pub fn read(&mut self) -> Result<Option<WriteItem<'_, 'a>>, BadWrite> {
        let found = self.find();
        if found.is_err() {
            self.fields = MessageFields::of(&[]);
        }
        match found? {
            WriteStep::End => Ok(None),
            WriteStep::Metadata(metadata) => Ok(Some(WriteItem::Metadata(metadata))),
            WriteStep::Series => Ok(Some(self.judge())),
        }
    }

    fn find(&mut self) -> Result<WriteStep<'a>, BadWrite> {
        for field in self.fields.by_ref() {
            match (self.version, field?) {
                (WriteVersion::V1, (1, Wire::Bytes(series))) => {
                    self.series.clear();
                    read_v1(series, &mut self.series)?;
                    return Ok(WriteStep::Series);
                }
                (WriteVersion::V1, (3, Wire::Bytes(metadata))) => {
                    if let Some(metadata) = read_metadata_v1(metadata)? {
                        self.counts.metadata += 1;
                        return Ok(WriteStep::Metadata(metadata));
                    }
                }
                (WriteVersion::V2, (5, Wire::Bytes(series))) => {
                    self.series.clear();
                    read_v2(series, &self.symbols, &mut self.series)?;
                    return Ok(WriteStep::Series);
                }
                _ => {}
            }
        }
        Ok(WriteStep::End)
    }

    fn judge(&mut self) -> WriteItem<'_, 'a> {
        let series = &mut self.series;
        series.finish();
        let samples = u64::try_from(series.samples.len()).unwrap_or(u64::MAX);
        let counts = &mut self.counts;
        counts.histograms += series.histograms;
        counts.exemplars += series.exemplars;
        counts.unsorted += u64::from(series.unsorted);
        let (labels, metadata) = (&series.labels[..], series.metadata);
        if let Some(why) = series.bad {
            counts.refused_series += 1;
            counts.refused_samples += samples;
            let samples = series.samples.len();
            return WriteItem::Refused {
                labels,
                why,
                samples,
            };
        }
        counts.series += 1;
        counts.samples += samples;
        counts.metadata += u64::from(metadata.is_some());
        WriteItem::Series(WriteSeries {
            labels,
            samples: &series.samples,
            metadata,
        })
    }
}

enum WriteStep<'a> {
    Series,
    Metadata(FamilyMetadata<'a>),
    End,
}

/// The texts of a message of 2.0. One that is not UTF-8 spoils only the series that use it.
fn symbols(message: &[u8], limit: usize) -> Result<Vec<Option<&str>>, BadWrite> {
    let mut symbols = Vec::new();
    for field in MessageFields::of(message) {
        if let (4, Wire::Bytes(text)) = field? {
            if symbols.len() >= limit {
                return Err(BadWrite::Symbols);
            }
            symbols.push(std::str::from_utf8(text).ok());
        }
    }
    Ok(symbols)
}
