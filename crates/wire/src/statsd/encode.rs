//! Writes a value as a client of DogStatsD does. Tests, fuzz targets and the bench send with it; the program only listens.

use std::io::Write;

use super::{Sample, SampleValue};

/// Appends `sample` as a line, its `\n` included. A name, a member or a tag with a byte that ends it is not read back as it was.
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
    // Writing to memory cannot fail.
    let _ = out.write_fmt(text);
}
