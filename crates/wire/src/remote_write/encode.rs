//! The sender's side: a message of either version, series by series.

use std::collections::HashMap;

use kymo_base::varint;

use super::model::{FamilyMetadata, SeriesMetadata, WriteLabel, WriteSample, WriteVersion};
use crate::protobuf::{put_bytes, put_double, put_message, put_number};

/// The message that is being made. Memory is kept for the next one.
#[derive(Clone, Debug)]
pub struct WriteEncoder {
    version: WriteVersion,
    series: Vec<u8>,
    symbols: Symbols,
}

/// Texts of a message of 2.0, and their numbers. The first one is empty.
#[derive(Clone, Debug, Default)]
struct Symbols {
    fields: Vec<u8>,
    numbers: HashMap<Box<str>, u64>,
}

impl Symbols {
    fn number(&mut self, text: &str) -> u64 {
        if text.is_empty() {
            return 0;
        }
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        let count = u64::try_from(self.numbers.len()).unwrap_or(u64::MAX);
        let number = count.saturating_add(1);
        put_bytes(&mut self.fields, 4, text.as_bytes());
        self.numbers.insert(text.into(), number);
        number
    }
}

impl WriteEncoder {
    /// An empty message.
    pub fn new(version: WriteVersion) -> WriteEncoder {
        WriteEncoder {
            version,
            series: Vec::new(),
            symbols: Symbols::default(),
        }
    }

    /// Adds a series. Labels are to be sorted by names, samples by times; metadata and created timestamps are sent by
    /// 2.0 only.
    pub fn push(
        &mut self,
        labels: &[WriteLabel],
        samples: &[WriteSample],
        metadata: Option<&SeriesMetadata>,
    ) {
        match self.version {
            WriteVersion::V1 => {
                put_message(&mut self.series, 1, |out| put_v1(out, labels, samples))
            }
            WriteVersion::V2 => {
                let symbols = &mut self.symbols;
                put_message(&mut self.series, 5, |out| {
                    put_v2(out, symbols, labels, samples, metadata);
                });
            }
        }
    }

    /// Adds metadata of a family. Only 1.0 has those; for 2.0 nothing is added.
    pub fn push_family(&mut self, family: &FamilyMetadata) {
        match self.version {
            WriteVersion::V1 => put_message(&mut self.series, 3, |out| put_family(out, family)),
            WriteVersion::V2 => {}
        }
    }

    /// Bytes of the message so far, before Snappy.
    pub fn size_bytes(&self) -> usize {
        self.symbols.fields.len() + self.series.len()
    }

    /// Replaces `out` with the message, and begins the next one.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        out.clear();
        if self.version == WriteVersion::V2 {
            put_bytes(out, 4, b"");
        }
        out.extend_from_slice(&self.symbols.fields);
        out.extend_from_slice(&self.series);
        self.series.clear();
        self.symbols.fields.clear();
        self.symbols.numbers.clear();
    }
}

fn put_v1(out: &mut Vec<u8>, labels: &[WriteLabel], samples: &[WriteSample]) {
    for label in labels {
        put_message(out, 1, |out| {
            put_bytes(out, 1, label.name.as_bytes());
            put_bytes(out, 2, label.value.as_bytes());
        });
    }
    for sample in samples {
        put_sample(out, sample, None);
    }
}

fn put_v2(
    out: &mut Vec<u8>,
    symbols: &mut Symbols,
    labels: &[WriteLabel],
    samples: &[WriteSample],
    metadata: Option<&SeriesMetadata>,
) {
    put_message(out, 1, |out| {
        for label in labels {
            varint::put(out, symbols.number(label.name));
            varint::put(out, symbols.number(label.value));
        }
    });
    for sample in samples {
        put_sample(out, sample, sample.created_ms);
    }
    if let Some(metadata) = metadata {
        let numbers = [
            (1, metadata.metric_type.number()),
            (3, symbols.number(metadata.help)),
            (4, symbols.number(metadata.unit)),
        ];
        put_message(out, 5, |out| {
            for (field, number) in numbers {
                put_unless_0(out, field, number);
            }
        });
    }
}

fn put_sample(out: &mut Vec<u8>, sample: &WriteSample, created_ms: Option<i64>) {
    put_message(out, 2, |out| {
        // -0 is not the value that is left out.
        if sample.value.to_bits() != 0 {
            put_double(out, 1, sample.value);
        }
        put_unless_0(out, 2, sample.t_ms.cast_unsigned());
        put_unless_0(out, 3, created_ms.unwrap_or(0).cast_unsigned());
    });
}

fn put_family(out: &mut Vec<u8>, family: &FamilyMetadata) {
    let metadata = &family.metadata;
    put_unless_0(out, 1, metadata.metric_type.number());
    for (field, text) in [(2, family.family), (4, metadata.help), (5, metadata.unit)] {
        if !text.is_empty() {
            put_bytes(out, field, text.as_bytes());
        }
    }
}

fn put_unless_0(out: &mut Vec<u8>, field: u64, number: u64) {
    if number != 0 {
        put_number(out, field, number);
    }
}
