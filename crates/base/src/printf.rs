//! Doubles as C's printf writes them: what rrdtool and its daemon print.

use std::io::Write;

/// printf's `%0.{digits}e`: `1.0000000000e+00`, `-nan`, `nan`, `-inf`, `inf`.
pub fn put_exp(out: &mut Vec<u8>, value: f64, digits: usize) {
    if !value.is_finite() {
        return put_special(out, value);
    }
    let from = out.len();
    put(out, format_args!("{value:.digits$e}"));
    let exponent = out[from..].iter().rposition(|&byte| byte == b'e');
    let Some(at) = exponent.map(|at| from + at + 1) else {
        unreachable!("BUG: an exponential form has an e")
    };
    if out[at] != b'-' {
        out.insert(at, b'+');
    }
    if out.len() == at + 2 {
        out.insert(at + 1, b'0');
    }
}

/// printf's `%.{digits}f`.
pub fn put_fixed(out: &mut Vec<u8>, value: f64, digits: usize) {
    if value.is_finite() {
        put(out, format_args!("{value:.digits$}"));
    } else {
        put_special(out, value);
    }
}

fn put_special(out: &mut Vec<u8>, value: f64) {
    if value.is_sign_negative() {
        out.push(b'-');
    }
    out.extend_from_slice(if value.is_nan() { b"nan" } else { b"inf" });
}

fn put(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    let Ok(()) = out.write_fmt(text) else {
        unreachable!("BUG: a Vec takes all")
    };
}
