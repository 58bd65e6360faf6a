//! Samples of a scrape as messages for the keeper, which have the format of remote write 1.0. A scrape with many
//! samples has several, so that none is too long.

use kymo_wire::remote_write::{
    FamilyMetadata, WriteEncoder, WriteLabel, WriteSample, WriteVersion, compress,
};

use super::series::PlainLabels;

/// Bytes of a message before it is packed, from which on the next one begins.
const PART_BYTES: usize = 1 << 20;

/// The messages of a scrape.
pub(crate) struct Message {
    encoder: WriteEncoder,
    plain: Vec<u8>,
    parts: Vec<Vec<u8>>,
}

impl Message {
    /// No samples.
    pub(crate) fn new() -> Message {
        Message {
            encoder: WriteEncoder::new(WriteVersion::V1),
            plain: Vec::new(),
            parts: Vec::new(),
        }
    }

    /// Adds a description of a metric.
    pub(crate) fn family(&mut self, family: &FamilyMetadata) {
        self.encoder.push_family(family);
        self.cut(PART_BYTES);
    }

    /// Adds a sample.
    pub(crate) fn sample(&mut self, labels: &PlainLabels, t_ms: i64, value: f64) {
        let labels = labels.iter();
        let labels = labels.map(|(name, value)| WriteLabel { name, value });
        let labels: Vec<WriteLabel> = labels.collect();
        let sample = WriteSample {
            t_ms,
            value,
            created_ms: None,
        };
        self.encoder.push(&labels, &[sample], None);
        self.cut(PART_BYTES);
    }

    /// Ends a message of at least this size.
    fn cut(&mut self, at_bytes: usize) {
        if self.encoder.size_bytes() < at_bytes {
            return;
        }
        self.encoder.finish(&mut self.plain);
        let mut part = Vec::new();
        // Only a message of 4 GiB fails.
        if compress(&self.plain, &mut part).is_ok() {
            self.parts.push(part);
        }
    }

    /// All messages.
    pub(crate) fn finish(mut self) -> Vec<Vec<u8>> {
        self.cut(1);
        self.parts
    }
}
