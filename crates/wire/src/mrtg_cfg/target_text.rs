//! Finds the readings in the text of a `Target[]`: commands first, then pairs of OIDs, then interfaces. Matches are those of
//! MRTG's three patterns: the leftmost place, and there the first alternative of a backtracking matcher.

use super::lines::is_space;
use super::perl::is_word;

/// A match and its range.
#[derive(Debug, PartialEq)]
pub(super) struct Found<'t> {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) what: TargetMatch<'t>,
}

/// A match by kind.
#[derive(Debug, PartialEq)]
pub(super) enum TargetMatch<'t> {
    /// The text between backticks.
    Command(&'t [u8]),
    /// `OID[ref]&OID[ref]:community@host`
    Pair([Spec<'t>; 2], Device<'t>),
    /// `[-]ref:community@host`
    Interface(Turned, Ref<'t>, Device<'t>),
    /// A pair in which a key ends with a backslash. It is not a pair, but may contain an interface.
    Neither,
}

/// Sign before the interface: a `-` swaps in and out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Turned {
    No,
    Yes,
}

/// One half of a pair.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spec<'t> {
    pub(super) oid: &'t [u8],
    pub(super) of: Option<Ref<'t>>,
}

/// Reference to an interface.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Ref<'t> {
    Number(&'t [u8]),
    Ip(&'t [u8]),
    Descr(&'t [u8]),
    Name(&'t [u8]),
    Eth(&'t [u8]),
    Type(&'t [u8]),
}

/// The device of a reading.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Device<'t> {
    /// The community with its backslashes.
    pub(super) community: &'t [u8],
    /// The host, with its brackets if it has them.
    pub(super) host: &'t [u8],
    /// The options, each preceded by a colon.
    pub(super) options: &'t [u8],
    pub(super) conversion: Option<&'t [u8]>,
}

/// The next command at or behind `from`.
pub(super) fn command(text: &[u8], from: usize) -> Option<Found<'_>> {
    let mut start = from;
    loop {
        start += memchr::memchr(b'`', &text[start..])?;
        let mut end = start + 1;
        // If no other backtick follows, the last escaped one ends the command.
        let mut escaped = None;
        while let Some(&byte) = text.get(end).filter(|byte| **byte != b'`') {
            let is_escape = byte == b'\\' && text.get(end + 1) == Some(&b'`');
            if is_escape {
                escaped = Some(end + 1);
            }
            end += 1 + usize::from(is_escape);
        }
        let end = match end < text.len() {
            true => Some(end),
            false => escaped,
        };
        if let Some(end) = end.filter(|end| *end > start + 1) {
            return Some(Found {
                start,
                end: end + 1,
                what: TargetMatch::Command(&text[start + 1..end]),
            });
        }
        start += 1;
    }
}

/// The next pair at or behind `from`.
pub(super) fn pair(text: &[u8], from: usize) -> Option<Found<'_>> {
    memchr::memchr(b'&', &text[from..])?;
    (from..text.len()).find_map(|start| pair_at(text, start))
}

fn pair_at(text: &[u8], start: usize) -> Option<Found<'_>> {
    let mut found = None;
    spec(text, start, b'&', &mut |first, at| {
        spec(text, at, b':', &mut |second, at| {
            let Some((device, end)) = device(text, at) else {
                return false;
            };
            let specs = [first, second];
            let is_cut = |spec: &Spec| match spec.of {
                Some(Ref::Descr(key) | Ref::Name(key)) => key.ends_with(b"\\"),
                _ => false,
            };
            let what = match specs.iter().any(is_cut) {
                true => TargetMatch::Neither,
                false => TargetMatch::Pair(specs, device),
            };
            found = Some(Found { start, end, what });
            true
        })
    });
    found
}

/// The next interface at or behind `from`.
pub(super) fn interface(text: &[u8], from: usize) -> Option<Found<'_>> {
    memchr::memchr(b'@', &text[from..])?;
    (from..text.len()).find_map(|start| interface_at(text, start))
}

fn interface_at(text: &[u8], start: usize) -> Option<Found<'_>> {
    let (turned, at) = match text[start] {
        b'-' => (Turned::Yes, start + 1),
        _ => (Turned::No, start),
    };
    let mut found = None;
    let mut then = |of, at| {
        found = device(text, at).map(|(device, end)| Found {
            start,
            end,
            what: TargetMatch::Interface(turned, of, device),
        });
        found.is_some()
    };
    let digits = digits_at(text, at);
    match digits > 0 {
        true if text.get(at + digits) == Some(&b':') => {
            then(Ref::Number(&text[at..at + digits]), at + digits + 1);
        }
        true => {}
        false => {
            marked_ref(text, at, b':', &mut then);
        }
    }
    found
}

/// An `OID` and an optional reference, followed by `mark`. Calls `then` with each way to match, in the order of a backtracking
/// matcher, until `then` returns true.
fn spec<'t>(
    text: &'t [u8],
    start: usize,
    mark: u8,
    then: &mut dyn FnMut(Spec<'t>, usize) -> bool,
) -> bool {
    let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
    let end = start + text[start..].iter().take_while(is_part).count();
    let is_marked = match text.get(end) {
        Some(byte) if *byte == mark => true,
        Some(b'/' | b'\\' | b'#' | b'!' | b'%') => false,
        _ => return false,
    };
    let whole = &text[start..end];
    let Some(trailing) = trailing_numbers(whole) else {
        return false;
    };
    if !is_marked {
        return marked_ref(text, end, mark, &mut |of, at| {
            let (oid, of) = (whole, Some(of));
            then(Spec { oid, of }, at)
        });
    }
    let dot = memchr::memrchr(b'.', whole);
    let spec = match dot.filter(|_| trailing > 0) {
        Some(dot) => Spec {
            oid: &whole[..dot],
            of: Some(Ref::Number(&whole[dot + 1..])),
        },
        None => Spec {
            oid: whole,
            of: None,
        },
    };
    then(spec, end + 1)
}

/// Number of `.number` parts behind the name in `(?:\.\d+)*?\.?[-a-zA-Z0-9]*(?:\.\d+)*?`, if this matches the whole text. The
/// name is the first part that only numbers follow; it may be a number or empty.
fn trailing_numbers(text: &[u8]) -> Option<usize> {
    let parts = || text.split(|byte| *byte == b'.');
    let first = usize::from(text.starts_with(b"."));
    let is_number = |part: &&[u8]| super::perl::is_digits(part);
    let behind = parts().rev().take_while(is_number).count();
    let count = parts().count();
    let name = (count - behind.min(count)).max(first + 1) - 1;
    let before = parts().take(name).skip(first);
    (name == first || first == 1 && before.clone().all(|part| is_number(&part)))
        .then_some(count - 1 - name)
}

/// A reference other than a plain number, followed by `mark`.
fn marked_ref<'t>(
    text: &'t [u8],
    start: usize,
    mark: u8,
    then: &mut dyn FnMut(Ref<'t>, usize) -> bool,
) -> bool {
    let at = start + 1;
    let groups = |is_part: fn(&u8) -> bool, between: u8| -> Option<usize> {
        let run = |from: usize| text[from..].iter().take_while(|byte| is_part(byte)).count();
        let mut end = at + run(at);
        let mut count = 0;
        while text.get(end) == Some(&between) && run(end + 1) > 0 {
            end += 1 + run(end + 1);
            count += 1;
        }
        (count > 0 && text[at] != between).then_some(end)
    };
    let (end, of): (_, fn(&'t [u8]) -> Ref<'t>) = match text.get(start) {
        Some(b'/') => (groups(u8::is_ascii_digit, b'.'), Ref::Ip),
        Some(b'!') => (groups(u8::is_ascii_hexdigit, b'-'), Ref::Eth),
        Some(b'%') => {
            let digits = digits_at(text, at);
            ((digits > 0).then_some(at + digits), Ref::Type)
        }
        Some(b'\\') => return name(text, at, mark, &mut |key, at| then(Ref::Descr(key), at)),
        Some(b'#') => return name(text, at, mark, &mut |key, at| then(Ref::Name(key), at)),
        _ => return false,
    };
    match end.filter(|end| text.get(*end) == Some(&mark)) {
        Some(end) => then(of(&text[at..end]), end + 1),
        None => false,
    }
}

/// `(?:\\[\s:&@]|[^\s:&@])+` and a mark. Tries the longest match first, then, from right to left, those that end at the backslash
/// of an escaped mark.
fn name<'t>(
    text: &'t [u8],
    start: usize,
    mark: u8,
    then: &mut dyn FnMut(&'t [u8], usize) -> bool,
) -> bool {
    let is_end = |byte: u8| is_space(byte) || matches!(byte, b':' | b'&' | b'@');
    escaped_run(text, start, mark, &is_end, &is_end, then)
}

/// A run of bytes up to `is_end`, in which a backslash escapes `escapable` bytes, followed by `mark`.
fn escaped_run<'t>(
    text: &'t [u8],
    start: usize,
    mark: u8,
    escapable: &dyn Fn(u8) -> bool,
    is_end: &dyn Fn(u8) -> bool,
    then: &mut dyn FnMut(&'t [u8], usize) -> bool,
) -> bool {
    let mut end = start;
    let mut cuts = Vec::new();
    while let Some(&byte) = text.get(end) {
        match text.get(end + 1) {
            Some(&next) if byte == b'\\' && escapable(next) => {
                if next == mark {
                    cuts.push(end + 1);
                }
                end += 2;
            }
            _ if is_end(byte) => break,
            _ => end += 1,
        }
    }
    if text.get(end) == Some(&mark) && end > start && then(&text[start..end], end + 1) {
        return true;
    }
    cuts.iter()
        .rev()
        .any(|cut| then(&text[start..*cut], cut + 1))
}

/// `community@host[:options][|conversion]`, and the offset behind it.
fn device(text: &[u8], start: usize) -> Option<(Device<'_>, usize)> {
    let mut found = None;
    let escapable = |byte: u8| matches!(byte, b'@' | b' ');
    let is_end = |byte: u8| is_space(byte) || byte == b'@';
    escaped_run(
        text,
        start,
        b'@',
        &escapable,
        &is_end,
        &mut |community, at| {
            let Some(host) = host_len(&text[at..]) else {
                return false;
            };
            let options = at + host;
            let is_option =
                |byte: &&u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'!' | b':');
            let mut end = options;
            if text.get(options) == Some(&b':') {
                end += text[options..].iter().take_while(is_option).count();
            }
            let (options, mut conversion) = (&text[options..end], None);
            if let Some([b'|', first, ..]) = text.get(end..)
                && (first.is_ascii_alphabetic() || *first == b'_')
            {
                let rest = &text[end + 1..];
                let len = rest.iter().take_while(|byte| is_word(**byte)).count();
                conversion = Some(&rest[..len]);
                end += 1 + len;
            }
            let host = &text[at..at + host];
            let device = Device {
                community,
                host,
                options,
                conversion,
            };
            found = Some((device, end));
            true
        },
    );
    found
}

/// Length of an address in brackets, or of a name.
fn host_len(text: &[u8]) -> Option<usize> {
    if let Some(rest) = text.strip_prefix(b"[") {
        let inside = rest
            .iter()
            .take_while(|byte| byte.is_ascii_hexdigit() || **byte == b':');
        let inside = inside.count();
        return (rest.get(inside) == Some(&b']')).then_some(inside + 2);
    }
    let label = |from: usize| {
        let rest = text.get(from..).unwrap_or_default();
        let is_part = |byte: &&u8| is_word(**byte) || **byte == b'-';
        rest.iter().take_while(is_part).count()
    };
    let mut len = label(0);
    if len == 0 {
        return None;
    }
    while text.get(len) == Some(&b'.') && label(len + 1) > 0 {
        len += 1 + label(len + 1);
    }
    Some(len)
}

fn digits_at(text: &[u8], at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_before_numbers() {
        for (text, expected) in [
            ("", Some(0)),
            (".", Some(0)),
            ("5", Some(0)),
            (".5", Some(0)),
            ("1.2.3", Some(2)),
            (".1.2.3", Some(2)),
            ("name.1", Some(1)),
            (".1.3.name.5.6", Some(2)),
            (".1..2", Some(1)),
            ("1.name", None),
            ("1..2", None),
            (".a.b", None),
            ("..a", None),
            ("a.", None),
            (".1.", Some(0)),
        ] {
            assert_eq!(trailing_numbers(text.as_bytes()), expected, "{text:?}");
        }
    }
}
