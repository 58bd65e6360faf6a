//! `DS:` and `RRA:` specifications, and durations with suffixes: the texts that create and tune read.

/// Reads a count or a duration: a plain number counts, with a suffix `s m h d w M y` it is seconds and must be a
/// multiple of `divisor`. The error is rrdtool's cause, without what it was read for.
pub fn duration(token: &[u8], divisor: u64) -> Result<u64, &'static str> {
    let digits = token
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    if digits == 0 {
        return Err("value must be (suffixed) positive number");
    }
    if divisor == 0 {
        return Err("INTERNAL ERROR: Zero divisor");
    }
    // strtoul stops at the largest number.
    let value = token[..digits].iter().try_fold(0u64, |value, digit| {
        value.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
    });
    let value = value.unwrap_or(u64::MAX);
    let (unit, divisor) = match token.get(digits) {
        None | Some(0) => (1, 1),
        Some(b's') => (1, divisor),
        Some(b'm') => (60, divisor),
        Some(b'h') => (60 * 60, divisor),
        Some(b'd') => (24 * 60 * 60, divisor),
        Some(b'w') => (7 * 24 * 60 * 60, divisor),
        Some(b'M') => (31 * 24 * 60 * 60, divisor),
        Some(b'y') => (366 * 24 * 60 * 60, divisor),
        Some(_) => return Err("value has trailing garbage"),
    };
    let value = value.wrapping_mul(unit);
    if value == 0 {
        return Err("value must be positive");
    }
    if value % divisor != 0 {
        return Err("value would truncate when scaled");
    }
    Ok(value / divisor)
}
