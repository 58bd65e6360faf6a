//! Writes values as a client of DogStatsD does. Only tests, fuzz targets and the bench send; the program listens.

use std::io::Write;

use super::{Sample, SampleValue};

/// Appends `sample` as a line with its `\n`. A name, a member or a tag that contains a separator is not read back unchanged.
pub fn put_sample(out: &mut Vec<u8>, sample: &Sample) {
    out.extend_from_slice(sample.name);
    out.push(b':');
    match sample.value {
        SampleValue::Text(member) => out.extend_from_slice(member),
        SampleValue::Number(number) => {
            let plus = sample.signed && number.is_sign_positive();
            let sign = if plus { "+" } else { "" };
            put(out, format_args!("{sign}{number}"));
        }
    }
    put(out, format_args!("|{}", sample.kind.word()));
    if sample.rate != 1.0 {
        put(out, format_args!("|@{}", sample.rate));
    }
    if let Some(seconds) = sample.timestamp {
        put(out, format_args!("|T{seconds}"));
    }
    for (at, (key, value)) in sample.tags.iter().enumerate() {
        out.extend_from_slice(if at == 0 { b"|#" } else { b"," });
        out.extend_from_slice(key);
        if !value.is_empty() {
            out.push(b':');
            out.extend_from_slice(value);
        }
    }
    out.push(b'\n');
}

fn put(out: &mut Vec<u8>, text: std::fmt::Arguments) {
    // Writes to memory do not fail.
    let _ = out.write_fmt(text);
}
