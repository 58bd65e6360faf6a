//! Messages and texts of Prometheus, its tools and protobuf's own library are read, and the other way round. A peer
//! that is not installed is skipped, with a line that says so.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod converter;
mod peer;
mod protoc;
mod python;
mod receiver;
mod sender;
mod text;

use std::io::Write;
use std::process::{Command, Output, Stdio};

use kymo_wire::remote_write::{WriteCounts, WriteItem, WriteLimits, WriteReader, WriteVersion};

/// A message of remote write as lines, a series or a family each.
fn written(version: WriteVersion, message: &[u8]) -> (Vec<String>, WriteCounts) {
    let mut lines = Vec::new();
    let mut reader = WriteReader::new(version, message, WriteLimits::default()).unwrap();
    while let Some(item) = reader.read().unwrap() {
        lines.push(match item {
            WriteItem::Refused { why, .. } => format!("refused: {why}"),
            WriteItem::Metadata(family) => {
                let of = &family.metadata;
                let word = of.metric_type.word();
                format!("{}: {word} {:?} {:?}", family.family, of.help, of.unit)
            }
            WriteItem::Series(series) => {
                let labels = series.labels.iter();
                let labels: Vec<_> = labels.map(|l| format!("{}={}", l.name, l.value)).collect();
                let mut line = labels.join(",");
                for sample in series.samples {
                    let value = match sample.value.to_bits() {
                        0x7ff0_0000_0000_0002 => "stale".to_owned(),
                        _ => format!("{:?}", sample.value),
                    };
                    let created = sample.created_ms.map_or(String::new(), |t| format!("<{t}"));
                    line += &format!(" {value}@{}{created}", sample.t_ms);
                }
                if let Some(of) = series.metadata {
                    line += &format!(" {} {:?} {:?}", of.metric_type.word(), of.help, of.unit);
                }
                line
            }
        });
    }
    (lines, reader.counts())
}

/// Bytes of pairs of digits.
fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let pairs = digits
        .chunks(2)
        .map(|pair| std::str::from_utf8(pair).unwrap());
    pairs
        .map(|pair| u8::from_str_radix(pair, 16).unwrap())
        .collect()
}

/// Runs a command with that input; `None`: there is no such command.
fn output_of(command: &mut Command, input: &[u8]) -> Option<Output> {
    let command = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().ok()?;
    let mut stdin = child.stdin.take().unwrap();
    // A command that has seen enough closes its end.
    let _ = stdin.write_all(input);
    drop(stdin);
    Some(child.wait_with_output().unwrap())
}
