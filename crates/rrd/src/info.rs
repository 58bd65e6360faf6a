//! The entries of `rrdtool info` and of the daemon's INFO.

use std::io::Write;

use crate::cf::Cf;
use crate::compute_text;
use crate::header::{DsDef, Header, PdpPrep, RraDef, Univals, until_nul};
use kymo_base::printf::put_exp;

/// A value of an entry. [`type_of`] gives the number of its type in the daemon's INFO.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// 0: a double.
    Val(f64),
    /// 1: a count.
    Cnt(u64),
    /// 2: a text.
    Str(Vec<u8>),
    /// 3: an integer.
    Int(i32),
    /// 4: bytes.
    Blob(Vec<u8>),
}

/// An entry: key and value.
pub type Entry = (Vec<u8>, Value);

/// All entries in rrdtool's order. `file_name` is the name in the request.
pub fn info(header: &Header, file_name: &[u8]) -> Vec<Entry> {
    let mut out = Vec::new();
    let mut put = |key: &str, value| out.push((key.as_bytes().to_vec(), value));
    put("filename", Value::Str(file_name.to_vec()));
    let version = format!("000{}", header.version);
    put("rrd_version", Value::Str(version.into_bytes()));
    put("step", Value::Cnt(header.pdp_step));
    put("last_update", Value::Cnt(header.last_up as u64));
    put("header_size", Value::Cnt(header.size_bytes()));
    for (i, (ds, pdp)) in header.ds.iter().zip(&header.pdp_prep).enumerate() {
        put_source(i, ds, pdp, &header.ds, &mut out);
    }
    for (i, rra) in header.rra.iter().enumerate() {
        put_archive(header, i, rra, &mut out);
        for j in 0..header.ds.len() {
            let scratch = &header.cdp_prep[i * header.ds.len() + j].scratch;
            put_preparation(rra, scratch, &format!("rra[{i}].cdp_prep[{j}]."), &mut out);
        }
    }
    out
}

fn put_source(i: usize, ds: &DsDef, pdp: &PdpPrep, all: &[DsDef], out: &mut Vec<Entry>) {
    let mut put = |name: &str, value| {
        let key = [b"ds[", ds.name(), b"].", name.as_bytes()].concat();
        out.push((key, value));
    };
    put("index", Value::Cnt(i as u64));
    put("type", Value::Str(ds.dst().to_vec()));
    if ds.dst() == b"COMPUTE" {
        let mut text = Vec::new();
        compute_text::print(&ds.par, all, &mut text);
        put("cdef", Value::Str(text));
    } else {
        put("minimal_heartbeat", Value::Cnt(ds.par[0]));
        put("min", val(ds.par[1]));
        put("max", val(ds.par[2]));
    }
    put("last_ds", Value::Str(until_nul(&pdp.last_ds).to_vec()));
    put("value", val(pdp.scratch[1]));
    put("unknown_sec", Value::Cnt(pdp.scratch[0]));
}

fn put_archive(header: &Header, i: usize, rra: &RraDef, out: &mut Vec<Entry>) {
    let mut put = |name: &str, value| out.push((format!("rra[{i}].{name}").into_bytes(), value));
    put("cf", Value::Str(rra.cf().to_vec()));
    put("rows", Value::Cnt(rra.row_cnt));
    put("cur_row", Value::Cnt(header.cur_row[i]));
    put("pdp_per_row", Value::Cnt(rra.pdp_cnt));
    match Cf::of(rra.cf()) {
        Some(Cf::HwPredict | Cf::MhwPredict) => {
            put("alpha", val(rra.par[1]));
            put("beta", val(rra.par[2]));
        }
        Some(Cf::Seasonal | Cf::DevSeasonal) => {
            put("gamma", val(rra.par[1]));
            if header.version >= 4 {
                put("smoothing_window", val(rra.par[2]));
            }
        }
        Some(Cf::Failures) => {
            put("delta_pos", val(rra.par[1]));
            put("delta_neg", val(rra.par[2]));
            put("failure_threshold", Value::Cnt(rra.par[5]));
            put("window_length", Value::Cnt(rra.par[4]));
        }
        Some(Cf::DevPredict) => {}
        _ => put("xff", val(rra.par[0])),
    }
}

fn put_preparation(rra: &RraDef, scratch: &Univals, prefix: &str, out: &mut Vec<Entry>) {
    let mut put = |name: &str, value| out.push((format!("{prefix}{name}").into_bytes(), value));
    match Cf::of(rra.cf()) {
        Some(Cf::HwPredict | Cf::MhwPredict) => {
            put("intercept", val(scratch[2]));
            put("slope", val(scratch[4]));
            put("NaN_count", Value::Cnt(scratch[6]));
        }
        Some(Cf::Seasonal) => put("seasonal", val(scratch[2])),
        Some(Cf::DevSeasonal) => put("deviation", val(scratch[2])),
        Some(Cf::DevPredict) => {}
        Some(Cf::Failures) => {
            let history = violations(rra, scratch).map(|v| if v == 1 { b'1' } else { b'0' });
            put("history", Value::Str(history.collect()));
        }
        _ => {
            put("value", val(scratch[0]));
            put("unknown_datapoints", Value::Cnt(scratch[1]));
        }
    }
}

/// The violations of a FAILURES archive, newest first: the bytes of its scratch words.
pub(crate) fn violations(rra: &RraDef, scratch: &Univals) -> impl Iterator<Item = u8> {
    let len = usize::try_from(rra.par[4]).unwrap_or(usize::MAX);
    let bytes = scratch.map(u64::to_le_bytes);
    bytes.into_iter().flatten().take(len)
}

fn val(bits: u64) -> Value {
    Value::Val(f64::from_bits(bits))
}

/// Appends entries like `rrdtool info` and `updatev`: `key = value`.
pub fn print(entries: &[Entry], out: &mut Vec<u8>) {
    for (key, value) in entries {
        out.extend_from_slice(key);
        out.extend_from_slice(b" = ");
        match value {
            Value::Str(text) => {
                out.push(b'"');
                out.extend_from_slice(text);
                out.push(b'"');
            }
            Value::Blob(bytes) => {
                put_number(out, format_args!("BLOB_SIZE:{}\n", bytes.len()));
                out.extend_from_slice(bytes);
                continue;
            }
            other => put_value(other, out),
        }
        out.push(b'\n');
    }
}

/// Appends entries like the daemon's INFO: `key type value`.
pub fn print_for_daemon(entries: &[Entry], out: &mut Vec<u8>) {
    for (key, value) in entries {
        out.extend_from_slice(key);
        put_number(out, format_args!(" {} ", type_of(value)));
        put_value(value, out);
        out.push(b'\n');
    }
}

/// The daemon's number for the type of a value.
pub fn type_of(value: &Value) -> u8 {
    match value {
        Value::Val(_) => 0,
        Value::Cnt(_) => 1,
        Value::Str(_) => 2,
        Value::Int(_) => 3,
        Value::Blob(_) => 4,
    }
}

fn put_value(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Val(value) if value.is_nan() => out.extend_from_slice(b"NaN"),
        Value::Val(value) => put_exp(out, *value, 10),
        Value::Cnt(count) => put_number(out, format_args!("{count}")),
        Value::Int(number) => put_number(out, format_args!("{number}")),
        Value::Str(text) => out.extend_from_slice(text),
        Value::Blob(bytes) => put_number(out, format_args!("{}", bytes.len())),
    }
}

fn put_number(out: &mut Vec<u8>, text: std::fmt::Arguments) {
    // Writing to a Vec does not fail.
    let _ = out.write_fmt(text);
}
