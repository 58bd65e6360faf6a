//! Lines of a configuration: their kinds, and values that span several lines.

/// A line by kind.
#[derive(Debug, PartialEq)]
pub(super) enum Line<'a> {
    /// A comment, or only blanks.
    Nothing,
    /// A line that begins with a blank.
    Continuation(&'a [u8]),
    /// `Keyword[name]: value`; the number is the value's offset in the line.
    Target(&'a [u8], &'a [u8], usize),
    /// `Keyword: value`; the number is the value's offset in the line.
    Global(&'a [u8], usize),
    /// A line of no other kind.
    Nonsense,
}

/// True for the bytes that Perl's `\s` matches.
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

/// Removes leading blanks.
pub(super) fn trim_start(bytes: &[u8]) -> &[u8] {
    let blanks = bytes.iter().take_while(|byte| is_space(**byte)).count();
    &bytes[blanks..]
}

/// Removes blanks at the end.
pub(super) fn trim_end(bytes: &[u8]) -> &[u8] {
    let last = bytes.iter().rposition(|byte| !is_space(*byte));
    &bytes[..last.map_or(0, |last| last + 1)]
}

/// Removes a line's end as MRTG does: one `\r`, then blanks.
pub(super) fn without_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let last = line.iter().rposition(|byte| !matches!(byte, b' ' | b'\t'));
    &line[..last.map_or(0, |last| last + 1)]
}

/// The kind of a line [`without_end`].
pub(super) fn classify(line: &[u8]) -> Line<'_> {
    let Some(&first) = line.first() else {
        return Line::Nothing;
    };
    if is_space(first) {
        let blanks = line.iter().take_while(|b| matches!(b, b' ' | b'\t'));
        let rest = &line[blanks.count()..];
        return match rest.first() {
            None | Some(b'#') => Line::Nothing,
            _ => match trim_end(trim_start(rest)) {
                [] => Line::Nonsense,
                text => Line::Continuation(text),
            },
        };
    }
    if first == b'#' {
        return Line::Nothing;
    }
    of_target(line)
        .or_else(|| of_all(line))
        .unwrap_or(Line::Nonsense)
}

/// The path of an `include:` line. Unlike all other kinds, MRTG recognizes this one before it trims the line.
pub(super) fn included(line: &[u8]) -> Option<&[u8]> {
    let word = line.get(..8)?;
    if !word.eq_ignore_ascii_case(b"include:") {
        return None;
    }
    let path = trim_end(trim_start(&line[8..]));
    (!path.is_empty()).then_some(path)
}

fn blanks_at(line: &[u8], at: usize) -> usize {
    at + line[at..]
        .iter()
        .take_while(|byte| is_space(**byte))
        .count()
}

/// `^([A-Za-z0-9*]+)\[(\S+)\]\s*:\s*(.*\S?)\s*$`: the name ends at the last bracket that a colon follows and that stands before
/// the first blank, not at the first bracket.
fn of_target(line: &[u8]) -> Option<Line<'_>> {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'*';
    let word = line.iter().take_while(|byte| is_word(byte)).count();
    if word == 0 || line.get(word) != Some(&b'[') {
        return None;
    }
    let name = word + 1;
    let run = line[name..].iter().take_while(|byte| !is_space(**byte));
    let end = name + run.count();
    let closes = |at: usize| line[at] == b']' && line.get(blanks_at(line, at + 1)) == Some(&b':');
    let close = (name + 1..end).rev().find(|at| closes(*at))?;
    let colon = blanks_at(line, close + 1);
    let value = blanks_at(line, colon + 1);
    Some(Line::Target(&line[..word], &line[name..close], value))
}

/// `^(\S+):\s*(.*\S)\s*$`
fn of_all(line: &[u8]) -> Option<Line<'_>> {
    let run = line
        .iter()
        .position(|byte| is_space(*byte))
        .unwrap_or(line.len());
    let has_value = |at: usize| line[at + 1..].iter().any(|byte| !is_space(*byte));
    let colon = (1..run)
        .rev()
        .find(|at| line[*at] == b':' && has_value(*at))?;
    Some(Line::Global(&line[..colon], blanks_at(line, colon + 1)))
}

/// A value as MRTG joins it: tabs become blanks, continuation lines follow after a blank, comments in between are dropped.
pub(super) fn joined(bytes: &[u8]) -> Vec<u8> {
    let mut lines = bytes.split(|byte| *byte == b'\n');
    let mut out = lines
        .next()
        .map_or(Vec::new(), |line| without_end(line).to_vec());
    for line in lines {
        if let Line::Continuation(text) = classify(without_end(line)) {
            out.push(b' ');
            out.extend_from_slice(text);
        }
    }
    untab(&mut out);
    out
}

/// Replaces tabs by blanks.
pub(super) fn untab(bytes: &mut [u8]) {
    for byte in bytes.iter_mut().filter(|byte| **byte == b'\t') {
        *byte = b' ';
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_of_a_kind() {
        let target = |word, name, value| Line::Target(word, name, value);
        for (line, expected) in [
            (&b""[..], Line::Nothing),
            (b"  # x", Line::Nothing),
            (b"\t#", Line::Nothing),
            (b"#", Line::Nothing),
            (b" x y", Line::Continuation(b"x y")),
            (b"\tx", Line::Continuation(b"x")),
            (b"\x0c", Line::Nonsense),
            (b"Target[a]: x", target(b"Target", b"a", 11)),
            (b"Target[a] \t :x", target(b"Target", b"a", 13)),
            (b"Target[a]:", target(b"Target", b"a", 10)),
            (b"Target[a]b]:1", target(b"Target", b"a]b", 12)),
            // The last bracket before a blank ends the name.
            (
                b"Target[a]:1:c@[::1]:161",
                target(b"Target", b"a]:1:c@[::1", 20),
            ),
            (b"Target[a]: 1:c@[::1]:161", target(b"Target", b"a", 11)),
            (b"14all*x[_]: 1", target(b"14all*x", b"_", 12)),
            (b"Target[]:x", Line::Global(b"Target[]", 9)),
            (b"Target[a b]: x", Line::Nonsense),
            (b"r.cgi*Icon[x]: y", Line::Global(b"r.cgi*Icon[x]", 15)),
            (b"WorkDir: /tmp", Line::Global(b"WorkDir", 9)),
            (b"WorkDir:/tmp/x:y", Line::Global(b"WorkDir:/tmp/x", 15)),
            (b"WorkDir:/tmp/x:", Line::Global(b"WorkDir", 8)),
            (b"WorkDir:", Line::Nonsense),
            (b"WorkDir : x", Line::Nonsense),
            (b":x", Line::Nonsense),
            (b"x", Line::Nonsense),
        ] {
            assert_eq!(classify(line), expected, "{}", line.escape_ascii());
        }
    }

    #[test]
    fn an_include_has_a_path() {
        assert_eq!(included(b"InClude: \ta b \r"), Some(&b"a b"[..]));
        assert_eq!(included(b"include:x"), Some(&b"x"[..]));
        for line in [
            &b"include: "[..],
            b" include: x",
            b"include",
            b"includes: x",
        ] {
            assert_eq!(included(line), None);
        }
    }

    #[test]
    fn values_of_several_lines_are_joined() {
        let text = b"x\ty \r\n   and \r\n # comment\n\n\t\tz\t";
        assert_eq!(joined(text), b"x y and z");
        assert_eq!(joined(b""), b"");
    }
}
