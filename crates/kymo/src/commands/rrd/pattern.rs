//! File names that fit a shell pattern: `*`, `?` and `[...]` within a part of a path.

use std::fs;
use std::os::unix::ffi::OsStringExt as _;

use super::path::path;

/// All names that fit the pattern, sorted.
pub(super) fn expand(pattern: &[u8]) -> Vec<Vec<u8>> {
    let (mut found, mut parts) = (
        vec![Vec::new()],
        pattern.split(|&byte| byte == b'/').peekable(),
    );
    while let Some(part) = parts.next() {
        let is_last = parts.peek().is_none();
        let end: &[u8] = if is_last { b"" } else { b"/" };
        if part.iter().any(|byte| matches!(byte, b'*' | b'?' | b'[')) {
            let inside = found
                .iter()
                .flat_map(|dir| fitting(dir, part, is_last, end));
            found = inside.collect();
        } else {
            for name in &mut found {
                name.extend_from_slice(part);
                name.extend_from_slice(end);
            }
            found.retain(|name| name.is_empty() || fs::symlink_metadata(path(name)).is_ok());
        }
    }
    found
}

fn fitting(dir: &[u8], part: &[u8], is_last: bool, end: &[u8]) -> Vec<Vec<u8>> {
    let here: &[u8] = if dir.is_empty() { b"." } else { dir };
    let entries = fs::read_dir(path(here)).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().into_vec());
    let mut names: Vec<Vec<u8>> = names
        .filter(|name| (name[0] != b'.' || part[0] == b'.') && fits(part, name))
        .map(|name| [dir, &name].concat())
        .filter(|name| is_last || path(name).is_dir())
        .map(|name| [&name, end].concat())
        .collect();
    names.sort();
    names
}

/// True if a name fits a pattern.
fn fits(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern, name) {
        ([], []) => true,
        ([b'*', rest @ ..], _) => (0..=name.len()).any(|skip| fits(rest, &name[skip..])),
        ([b'?', rest @ ..], [_, name @ ..]) => fits(rest, name),
        ([b'[', ..], [byte, tail @ ..]) => match class(pattern, *byte) {
            Some((within, rest)) => within && fits(rest, tail),
            None => *byte == b'[' && fits(&pattern[1..], tail),
        },
        ([b'\\', escaped, rest @ ..], [byte, name @ ..]) => escaped == byte && fits(rest, name),
        ([same, rest @ ..], [byte, name @ ..]) => same == byte && fits(rest, name),
        _ => false,
    }
}

/// True if `byte` belongs to `[abc]`, `[a-z]` or `[!a]`, and the rest of the pattern; `None`: the
/// bracket is never closed.
fn class(pattern: &[u8], byte: u8) -> Option<(bool, &[u8])> {
    let mut rest = pattern.get(1..)?;
    let inverted = matches!(rest, [b'!' | b'^', ..]);
    if inverted {
        rest = &rest[1..];
    }
    let (mut within, mut first) = (false, true);
    loop {
        match rest {
            [b']', after @ ..] if !first => return Some((within != inverted, after)),
            [low, b'-', high, after @ ..] if *high != b']' => {
                within |= (*low..=*high).contains(&byte);
                rest = after;
            }
            [one, after @ ..] => {
                within |= *one == byte;
                rest = after;
            }
            [] => return None,
        }
        first = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_as_in_a_shell() {
        for (pattern, name, expected) in [
            ("*.rrd", "a.rrd", true),
            ("*.rrd", "a.rrd2", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("[]]", "]", true),
            ("[a", "[a", true),
            ("\\*", "*", true),
            ("**", "", true),
            ("", "", true),
        ] {
            assert_eq!(
                fits(pattern.as_bytes(), name.as_bytes()),
                expected,
                "{pattern} {name}"
            );
        }
    }
}
