//! Fields of a command's line. collectd has two grammars: PUTNOTIF reads its options from the line, and lets quotes begin a
//! value only; all other commands split the whole line first, and let quotes stand anywhere.

use super::CommandRefusal;

/// A text that is not `key=value`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MalformedOption;

/// True for the bytes that C's isspace has.
pub(super) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// Splits a line at blanks. Within quotes blanks are bytes of a field, and a `\` stands before a quote or a `\`. A closing
/// quote ends its field, an opening one does not.
pub(super) fn split(line: &[u8]) -> Result<Vec<Vec<u8>>, CommandRefusal> {
    let mut fields = Vec::new();
    let (mut field, mut is_quoted): (Option<Vec<u8>>, bool) = (None, false);
    let mut bytes = line.iter();
    while let Some(&byte) = bytes.next() {
        match byte {
            b'"' => {
                if is_quoted {
                    fields.push(field.take().unwrap_or_default());
                }
                is_quoted = !is_quoted;
            }
            byte if is_quoted => {
                let byte = match byte {
                    b'\\' => *bytes.next().ok_or("Backslash at end of string.")?,
                    byte => byte,
                };
                field.get_or_insert_default().push(byte);
            }
            byte if is_blank(byte) => fields.extend(field.take()),
            byte => field.get_or_insert_default().push(byte),
        }
    }
    if is_quoted {
        return Err("Unterminated quoted string.".into());
    }
    fields.extend(field);
    Ok(fields)
}

/// Key and value of a field `key=value`; `None`: it is another field.
pub(super) fn option(field: &[u8]) -> Option<(&[u8], &[u8])> {
    let is_of_key = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':');
    let end = field.iter().position(|byte| !is_of_key(byte))?;
    let (key, rest) = field.split_at(end);
    let value = rest.strip_prefix(b"=")?;
    (!key.is_empty()).then_some((key, value))
}

/// The line behind its first word and the blanks around that.
pub(super) fn behind_word(line: &[u8]) -> &[u8] {
    let line = without_blanks(line);
    let end = line.iter().position(|byte| is_blank(*byte));
    without_blanks(&line[end.unwrap_or(line.len())..])
}

fn without_blanks(text: &[u8]) -> &[u8] {
    let end = text.iter().position(|byte| !is_blank(*byte));
    &text[end.unwrap_or(text.len())..]
}

/// Takes an option `key=value` or `key="value"` from the beginning of `rest`, with the blanks behind it.
pub(super) fn next_option<'a>(rest: &mut &'a [u8]) -> Result<(&'a [u8], Vec<u8>), MalformedOption> {
    let (key, text) = option(rest).ok_or(MalformedOption)?;
    let mut value = Vec::new();
    let mut bytes = text.iter();
    match bytes.next() {
        Some(b'"') => loop {
            match bytes.next().ok_or(MalformedOption)? {
                b'"' => break,
                b'\\' => value.push(*bytes.next().ok_or(MalformedOption)?),
                byte => value.push(*byte),
            }
        },
        Some(&first) if !is_blank(first) => {
            let end = text.iter().position(|byte| is_blank(*byte));
            let (word, behind) = text.split_at(end.unwrap_or(text.len()));
            value.extend_from_slice(word);
            bytes = behind.iter();
        }
        _ => return Err(MalformedOption),
    }
    let behind = bytes.as_slice();
    if behind.first().is_some_and(|byte| !is_blank(*byte)) {
        return Err(MalformedOption);
    }
    *rest = without_blanks(behind);
    Ok((key, value))
}
