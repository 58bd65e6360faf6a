//! Groups of a batch as requests, one after the other, in either version of remote write.

use std::ops::Range;

use kymo_wire::remote_write::{SeriesMetadata, WriteEncoder, WriteLabel, WriteVersion, compress};

use super::batch::{Batch, Times};

/// Samples of a request, about.
const SAMPLES_MAX: usize = 10_000;
/// Bytes of a request before it is packed, about: receivers have limits.
const BYTES_MAX: usize = 2 << 20;

/// Makes requests. Memory is kept for the next one.
pub(crate) struct Messages {
    version: WriteVersion,
    encoder: WriteEncoder,
    plain: Vec<u8>,
    packed: Vec<u8>,
}

/// The part of a batch that a request has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Part {
    /// The first group that the request does not have.
    pub(crate) end: usize,
    /// Samples of the request.
    pub(crate) samples: u64,
}

impl Messages {
    /// Requests of this version.
    pub(crate) fn new(version: WriteVersion) -> Messages {
        Messages {
            version,
            encoder: WriteEncoder::new(version),
            plain: Vec::new(),
            packed: Vec::new(),
        }
    }

    /// The version.
    pub(crate) fn version(&self) -> WriteVersion {
        self.version
    }

    /// The last request, packed.
    pub(crate) fn packed(&self) -> &[u8] {
        &self.packed
    }

    /// Makes a request of the first of these groups, as many as fit, with their samples of these times.
    pub(crate) fn make(&mut self, batch: &Batch, groups: Range<usize>, times: &Times) -> Part {
        let mut part = Part {
            end: groups.start,
            samples: 0,
        };
        let mut left = SAMPLES_MAX;
        let mut labels: Vec<WriteLabel<'_>> = Vec::new();
        for group in batch.groups.get(groups).unwrap_or_default() {
            let samples = batch.samples_of(group, times);
            let is_full = left < samples.len() || self.encoder.size_bytes() >= BYTES_MAX;
            if is_full && part.samples > 0 {
                break;
            }
            part.end += 1;
            if samples.is_empty() {
                continue;
            }
            let Some(column) = batch.catalog.column_at(group.place) else {
                continue;
            };
            labels.clear();
            let texts = batch.catalog.texts();
            labels.extend(column.labels.chunks_exact(2).map(|pair| {
                let text = |at: usize| pair.get(at).map_or("", |&number| texts.text(number));
                WriteLabel {
                    name: text(0),
                    value: text(1),
                }
            }));
            let metadata = SeriesMetadata {
                metric_type: column.metric_type,
                ..SeriesMetadata::default()
            };
            self.encoder.push(&labels, samples, Some(&metadata));
            left = left.saturating_sub(samples.len());
            part.samples += u64::try_from(samples.len()).unwrap_or(0);
        }
        self.encoder.finish(&mut self.plain);
        // Only a message of 4 GiB fails.
        if compress(&self.plain, &mut self.packed).is_err() {
            self.packed.clear();
        }
        part
    }
}

#[cfg(test)]
mod tests;
