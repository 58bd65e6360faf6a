//! Perl's `glob`, with which MRTG finds the files of an `Include` with a `*`: words, quotes, braces, classes, `?` and `*` in each part of
//! a path. `~` is no folder here.

use super::files::Files;
use super::lines::{is_space, trim_end, trim_start};
use kymo_base::limits::{MRTG_CFG_FILES_MAX, MRTG_PATTERN_BYTES_MAX};

/// A byte of a pattern; `true`: a backslash made it an ordinary one.
type Sign = (u8, bool);

/// An element of a pattern without braces.
#[derive(PartialEq)]
enum Token {
    Byte(u8),
    /// `?`
    One,
    /// `*`
    All,
    /// `[a-z]`, or, with `true`, `[!a-z]`.
    Class(bool, Vec<(u8, u8)>),
}

/// The paths that fit the patterns of a text, in Perl's order. A pattern with braces but without `*`, `?` or a class is a path, also if
/// there is no file.
pub(super) fn glob(text: &[u8], files: &mut dyn Files) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    if text.len() > MRTG_PATTERN_BYTES_MAX {
        return found;
    }
    let words = words(text);
    let mut patterns: Vec<Vec<Sign>> = words.iter().rev().map(|word| signs(word)).collect();
    // A few braces make endless patterns.
    for _ in 0..MRTG_CFG_FILES_MAX {
        let Some(pattern) = patterns.pop() else {
            break;
        };
        match alternatives(&pattern) {
            Ok(all) => patterns.extend(all.into_iter().rev()),
            Err(pattern) => found.extend(paths(pattern, files)),
        }
    }
    found
}

/// The paths that fit a pattern without quotes and braces.
pub fn matching(pattern: &[u8], files: &mut dyn Files) -> Vec<Vec<u8>> {
    paths(&signs(pattern), files)
}

/// Words between blanks, without their quotes. As in Perl, a text with an open quote is one word.
fn words(text: &[u8]) -> Vec<Vec<u8>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<Vec<u8>>, None);
    let mut bytes = text.iter().copied();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => {
                let next = bytes.next();
                let is_quote = match quote {
                    Some(_) => next == quote,
                    None => matches!(next, Some(b'\'' | b'"')),
                };
                let kept = [(!is_quote).then_some(byte), next];
                word.get_or_insert_default()
                    .extend(kept.into_iter().flatten());
            }
            _ if quote == Some(byte) => quote = None,
            b'\'' | b'"' if quote.is_none() => {
                quote = Some(byte);
                word.get_or_insert_default();
            }
            _ if quote.is_none() && is_space(byte) => words.extend(word.take()),
            _ => word.get_or_insert_default().push(byte),
        }
    }
    if quote.is_some() {
        return vec![trim_end(trim_start(text)).to_vec()];
    }
    words.extend(word);
    words
}

fn signs(word: &[u8]) -> Vec<Sign> {
    let mut bytes = word.iter().copied();
    let mut signs = Vec::with_capacity(word.len());
    while let Some(byte) = bytes.next() {
        signs.push(match byte {
            b'\\' => (bytes.next().unwrap_or(byte), true),
            _ => (byte, false),
        });
    }
    signs
}

/// A pattern for each part of its first `{a,b}`. `Err`: the pattern without braces; one with an open brace ends there, as in Perl.
fn alternatives(pattern: &[Sign]) -> Result<Vec<Vec<Sign>>, &[Sign]> {
    let open = pattern.iter().position(|sign| *sign == (b'{', false));
    let is_pair = pattern == [(b'{', false), (b'}', false)];
    let open = open.filter(|_| !is_pair).ok_or(pattern)?;
    let (mut at, mut depth, mut cuts) = (open + 1, 0, vec![open]);
    let mut has_close = true;
    loop {
        match pattern.get(at).ok_or(&pattern[..open])? {
            (b'[', false) if has_close => {
                let close = |sign: &Sign| *sign == (b']', false);
                let len = pattern[at + 1..].iter().position(close);
                has_close = len.is_some();
                at += len.map_or(0, |len| len + 1);
            }
            (b'{', false) => depth += 1,
            (b'}', false) if depth == 0 => break,
            (b'}', false) => depth -= 1,
            (b',', false) if depth == 0 => cuts.push(at),
            _ => {}
        }
        at += 1;
    }
    cuts.push(at);
    let one = |cut: &[usize]| {
        let part = &pattern[cut[0] + 1..cut[1]];
        [&pattern[..open], part, &pattern[at + 1..]].concat()
    };
    Ok(cuts.windows(2).map(one).collect())
}

fn tokens(mut signs: &[Sign]) -> Vec<Token> {
    let mut tokens = Vec::with_capacity(signs.len());
    let mut has_close = true;
    while let Some((&sign, rest)) = signs.split_first() {
        let opens = has_close && sign == (b'[', false);
        let class = opens.then(|| class(rest)).flatten();
        has_close &= class.is_some() || !opens;
        let (token, rest) = match (sign, class) {
            (_, Some(found)) => found,
            ((b'?', false), _) => (Token::One, rest),
            ((b'*', false), _) => (Token::All, rest),
            ((byte, _), _) => (Token::Byte(byte), rest),
        };
        tokens.push(token);
        signs = rest;
    }
    tokens
}

/// A class behind its `[`, and the text behind it. `None`: it has no end.
fn class(signs: &[Sign]) -> Option<(Token, &[Sign])> {
    let is_not = signs.first() == Some(&(b'!', false));
    let signs = &signs[usize::from(is_not)..];
    // The first sign is part of the class, also if it is a bracket.
    let close = |sign: &Sign| *sign == (b']', false);
    let end = 1 + signs.get(1..)?.iter().position(close)?;
    let (mut ranges, mut at) = (Vec::new(), 0);
    while at < end {
        let first = signs[at].0;
        let is_range = at + 2 < end && signs[at + 1] == (b'-', false);
        let step = if is_range { 2 } else { 0 };
        ranges.push((first, signs[at + step].0));
        at += step + 1;
    }
    Some((Token::Class(is_not, ranges), &signs[end + 1..]))
}

/// The paths that fit a pattern without braces, sorted; the pattern itself, if it is a path.
fn paths(signs: &[Sign], files: &mut dyn Files) -> Vec<Vec<u8>> {
    let tokens = tokens(signs);
    let mut paths = vec![Vec::new()];
    let (mut is_path, mut is_listed) = (true, true);
    for part in tokens.split_inclusive(|token| *token == Token::Byte(b'/')) {
        let (name, slash) = match part {
            [name @ .., Token::Byte(b'/')] => (name, &b"/"[..]),
            name => (name, &b""[..]),
        };
        let plain: Option<Vec<u8>> = name.iter().map(Token::byte).collect();
        is_listed = plain.is_none() && slash.is_empty();
        match plain {
            Some(plain) => paths
                .iter_mut()
                .for_each(|path| path.extend([&plain, slash].concat())),
            None => {
                is_path = false;
                paths = listed(&paths, name, slash, files);
            }
        }
    }
    if is_path {
        return paths;
    }
    if !is_listed {
        paths.retain(|path| files.exists(path));
    }
    // Perl compares signed bytes, and a name's end is 0.
    paths.sort_by_cached_key(|path| {
        let lower = path.iter().chain(&[0]).map(u8::to_ascii_lowercase);
        (
            lower.map(|byte| byte ^ 0x80).collect::<Vec<u8>>(),
            path.clone(),
        )
    });
    paths
}

/// The names in folders that fit, with their folders before and a slash behind.
fn listed(
    folders: &[Vec<u8>],
    name: &[Token],
    slash: &[u8],
    files: &mut dyn Files,
) -> Vec<Vec<u8>> {
    let is_hidden = |found: &[u8]| found[..1] == *b"." && name[0] != Token::Byte(b'.');
    let mut paths = Vec::new();
    for folder in folders {
        let mut names = match folder.is_empty() {
            true => files.names(b"."),
            false => files.names(folder),
        };
        names.retain(|found| !found.is_empty() && !is_hidden(found) && fits(found, name));
        paths.extend(
            names
                .iter()
                .map(|found| [folder, &found[..], slash].concat()),
        );
        // A configuration of more files is refused.
        paths.truncate(MRTG_CFG_FILES_MAX + 1);
    }
    paths
}

impl Token {
    fn byte(&self) -> Option<u8> {
        match self {
            Token::Byte(byte) => Some(*byte),
            _ => None,
        }
    }

    fn takes(&self, byte: u8) -> bool {
        match self {
            Token::Byte(only) => *only == byte,
            Token::One | Token::All => true,
            Token::Class(is_not, ranges) => {
                let is_in = |range: &(u8, u8)| (range.0..=range.1).contains(&byte);
                ranges.iter().any(is_in) != *is_not
            }
        }
    }
}

fn fits(name: &[u8], tokens: &[Token]) -> bool {
    let (mut at, mut token, mut star) = (0, 0, None);
    loop {
        match tokens.get(token) {
            Some(Token::All) => {
                token += 1;
                star = Some((token, at));
                continue;
            }
            Some(wanted) if name.get(at).is_some_and(|byte| wanted.takes(*byte)) => {
                (at, token) = (at + 1, token + 1);
                continue;
            }
            None if at == name.len() => return true,
            _ => {}
        }
        // The last star takes one byte more.
        match star {
            Some((behind, from)) if from < name.len() => {
                (at, token, star) = (from + 1, behind, Some((behind, from + 1)));
            }
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::memory_files::MemoryFiles;
    use super::*;

    /// The right values are those of perl 5.36.
    #[test]
    fn patterns_find_what_perl_finds() {
        let mut files = MemoryFiles::default();
        for name in [
            "a.cfg",
            "b.cfg",
            ".a.cfg.swp",
            "1.cfg",
            "Bc.cfg",
            "x1/a.cfg",
            "a b.cfg",
            "é.cfg",
            "z.cfg",
            "[.cfg",
        ] {
            files.add(&format!("t/{name}"), b"");
        }
        for (pattern, expected) in [
            (
                "t/*",
                "t/é.cfg|t/1.cfg|t/[.cfg|t/a b.cfg|t/a.cfg|t/b.cfg|t/Bc.cfg|t/x1|t/z.cfg",
            ),
            ("t/.a*", "t/.a.cfg.swp"),
            ("t/[0-9]*.cfg", "t/1.cfg"),
            ("t/{a,b}*", "t/a b.cfg|t/a.cfg|t/b.cfg"),
            ("t/{b,a}*", "t/b.cfg|t/a b.cfg|t/a.cfg"),
            ("t/?c*", "t/Bc.cfg"),
            ("\"t/a*.cfg\"", "t/a b.cfg|t/a.cfg"),
            ("t/a*.cfg t/b*.cfg", "t/a b.cfg|t/a.cfg|t/b.cfg"),
            ("t/*/a.cfg", "t/x1/a.cfg"),
            ("*/a.cfg", "t/a.cfg"),
            ("t/[!ab.1z]*", "t/é.cfg|t/[.cfg|t/Bc.cfg|t/x1"),
            ("t/[^a]*", "t/a b.cfg|t/a.cfg"),
            ("t/[]a]*", "t/a b.cfg|t/a.cfg"),
            ("t/[a\\-z]*", "t/a b.cfg|t/a.cfg|t/z.cfg"),
            ("t/[b-a]*", ""),
            ("t/[*", "t/[.cfg"),
            ("t/[a-*", ""),
            ("t/[][.]c[*", ""),
            ("t/[!]*[.]cfg", ""),
            ("t/a\\ b*", "t/a b.cfg"),
            ("'t/a *' x\\'*", "t/a b.cfg"),
            ("t/*\"", ""),
            ("t/\\*", "t/*"),
            ("{nob,t/a*}", "nob|t/a b.cfg|t/a.cfg"),
            ("{t/q*,nob}", "nob"),
            ("t/q* nob", "nob"),
            ("t/{[,],b}*", "t/b.cfg"),
            ("t/{a,{b,z}}*.cfg", "t/a b.cfg|t/a.cfg|t/b.cfg|t/z.cfg"),
            ("t/{}x*", "t/x1"),
            ("{}", "{}"),
            ("t/{a,*", "t/"),
            ("t/a}*", ""),
            ("t//x*", "t//x1"),
            ("", ""),
            ("\\", "\\"),
        ] {
            let found = glob(pattern.as_bytes(), &mut files);
            let found: Vec<_> = found
                .iter()
                .map(|path| String::from_utf8_lossy(path))
                .collect();
            assert_eq!(found.join("|"), expected, "{pattern}");
        }
    }

    #[test]
    fn a_pattern_has_an_end() {
        let mut files = MemoryFiles::default();
        files.add(&"a".repeat(200), b"");
        for pattern in [
            "{a,b}".repeat(500) + "*",
            "*a".repeat(2000) + "b",
            "{".repeat(4000),
            "[".repeat(4000),
            "{,[}".repeat(1000),
            "a".repeat(5000),
        ] {
            assert!(glob(pattern.as_bytes(), &mut files).len() <= MRTG_CFG_FILES_MAX);
        }
    }
}
