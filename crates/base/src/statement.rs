//! Texts of commands without what people put into them: of SQL the words and names stay, and literals and comments go; of other
//! commands the first word stays.
//!
//! SQL is read as PostgreSQL reads it. Where two servers could read a text differently, all that follows goes.

/// Replaces a literal.
const GONE: u8 = b'?';
/// Replaces a rest that may be a literal.
const REST_GONE: &[u8] = b"? ...";

/// SQL without its literals and comments: strings, numbers and texts between `$$` become `?`, a run of blanks becomes one. A text
/// may end anywhere: a literal that was cut off counts as one.
pub fn without_literals(sql: &[u8]) -> Vec<u8> {
    let mut scrubber = Scrubber {
        out: Vec::with_capacity(sql.len()),
        rest: sql,
        blank_end: 0,
    };
    while !scrubber.rest.is_empty() {
        scrubber.step();
    }
    if scrubber.blank_end == scrubber.out.len() {
        scrubber.out.pop();
    }
    scrubber.out
}

/// A command up to its first blank.
pub fn first_word(text: &[u8]) -> &[u8] {
    let end = text.iter().position(u8::is_ascii_whitespace);
    &text[..end.unwrap_or(text.len())]
}

struct Scrubber<'a> {
    out: Vec<u8>,
    rest: &'a [u8],
    /// Where `out` ended when a blank was put there: one in a name that was cut off is the name's.
    blank_end: usize,
}

/// How a string goes on behind a backslash.
#[derive(Clone, Copy, PartialEq)]
enum Backslash {
    /// A setting of the server decides whether a backslash is an ordinary character.
    Unknown,
    /// A backslash takes the next character's meaning away.
    Escapes,
}

impl Scrubber<'_> {
    fn step(&mut self) {
        let next = self.rest.get(1).copied();
        match self.rest[0] {
            byte if is_blank(byte) => {
                self.skip(1);
                self.blank();
            }
            b'-' if next == Some(b'-') => {
                let end = self.rest.iter().position(|&byte| is_line_end(byte));
                self.skip(end.unwrap_or(self.rest.len()));
                self.blank();
            }
            b'/' if next == Some(b'*') => {
                self.skip(comment(self.rest));
                self.blank();
            }
            b'\'' => self.string(Backslash::Unknown),
            b'"' => self.quoted_name(),
            b'$' => self.dollar(),
            b'.' if next.is_some_and(|next| next.is_ascii_digit()) => self.number(),
            byte if byte.is_ascii_digit() => self.number(),
            byte if begins_word(byte) => self.word(),
            _ => self.keep(1),
        }
    }

    fn skip(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
    }

    fn keep(&mut self, bytes: usize) {
        let (kept, rest) = self.rest.split_at(bytes.min(self.rest.len()));
        self.out.extend_from_slice(kept);
        self.rest = rest;
    }

    fn blank(&mut self) {
        if !matches!(self.out.last(), None | Some(b' ')) {
            self.out.push(b' ');
            self.blank_end = self.out.len();
        }
    }

    /// From its quote on.
    fn string(&mut self, backslash: Backslash) {
        let mut at = 1;
        loop {
            match (self.rest.get(at), self.rest.get(at + 1)) {
                (None, _) => break,
                (Some(b'\''), Some(b'\'')) => at += 2,
                (Some(b'\''), _) => {
                    at += 1;
                    break;
                }
                (Some(b'\\'), next) if backslash == Backslash::Unknown && next == Some(&b'\'') => {
                    self.out.extend_from_slice(REST_GONE);
                    self.rest = &[];
                    return;
                }
                (Some(b'\\'), _) if backslash == Backslash::Escapes => at += 2,
                (Some(_), _) => at += 1,
            }
        }
        self.skip(at);
        self.out.push(GONE);
    }

    /// Keeps a quoted name with its text.
    fn quoted_name(&mut self) {
        let end = self.rest.iter().skip(1).position(|&byte| byte == b'"');
        self.keep(end.map_or(self.rest.len(), |end| end + 2));
    }

    /// `$1` stays; `$$...$$` and `$tag$...$tag$` are strings.
    fn dollar(&mut self) {
        let behind = &self.rest[1..];
        let digits = behind.iter().take_while(|byte| byte.is_ascii_digit());
        let digits = digits.count();
        if digits > 0 {
            return self.keep(1 + digits);
        }
        let tag = behind.iter().take_while(|&&byte| is_of_tag(byte)).count();
        if behind.get(tag) != Some(&b'$') {
            return self.keep(1);
        }
        let (mark, text) = self.rest.split_at(tag + 2);
        let end = text.windows(mark.len()).position(|part| part == mark);
        let end = end.map_or(text.len(), |end| end + mark.len());
        self.rest = &text[end..];
        self.out.push(GONE);
    }

    /// With all letters that follow: `0x1F`, `1e-3`, `1_000`.
    fn number(&mut self) {
        let mut at = 1;
        while let Some(&byte) = self.rest.get(at) {
            let is_sign = matches!(byte, b'+' | b'-')
                && matches!(self.rest[at - 1], b'e' | b'E')
                && self.rest.get(at + 1).is_some_and(u8::is_ascii_digit);
            if !(byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_') || is_sign) {
                break;
            }
            at += 1;
        }
        self.skip(at);
        self.out.push(GONE);
    }

    /// Keywords and names stay; the letters before a string belong to it.
    fn word(&mut self) {
        let length = self.rest.iter().take_while(|&&byte| is_of_word(byte));
        let length = length.count();
        let (word, behind) = self.rest.split_at(length);
        match (word, behind) {
            (b"e" | b"E", [b'\'', ..]) => {
                self.rest = behind;
                self.string(Backslash::Escapes);
            }
            (b"b" | b"B" | b"x" | b"X" | b"n" | b"N", [b'\'', ..]) => {
                self.rest = behind;
                self.string(Backslash::Unknown);
            }
            (b"u" | b"U", [b'&', b'\'', ..]) => {
                self.rest = &behind[1..];
                self.string(Backslash::Unknown);
            }
            _ => self.keep(length),
        }
    }
}

/// Bytes of a comment; one within another ends by itself.
fn comment(text: &[u8]) -> usize {
    let (mut at, mut depth) = (0, 0_usize);
    while at < text.len() {
        match (text[at], text.get(at + 1)) {
            (b'/', Some(b'*')) => (at, depth) = (at + 2, depth + 1),
            (b'*', Some(b'/')) => (at, depth) = (at + 2, depth - 1),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

fn is_blank(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0b
}

fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

fn begins_word(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

fn is_of_word(byte: u8) -> bool {
    begins_word(byte) || byte.is_ascii_digit() || byte == b'$'
}

fn is_of_tag(byte: u8) -> bool {
    is_of_word(byte) && byte != b'$'
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn scrubbed(sql: &str) -> String {
        String::from_utf8(without_literals(sql.as_bytes())).expect("UTF-8")
    }

    #[test]
    fn literals_go_and_names_stay() {
        for (sql, left) in [
            ("SELECT 1", "SELECT ?"),
            (
                "select * from t1 where a='x''y' and b = 2.5e-3;",
                "select * from t1 where a=? and b = ?;",
            ),
            (r"SELECT E'a\'b', e'\\', 'c'", "SELECT ?, ?, ?"),
            (r"SELECT 'C:\dir', 1", "SELECT ?, ?"),
            (r"SELECT 'a\', secret, 'b'", "SELECT ? ..."),
            ("SELECT B'01', X'ff', U&'\\0441', N'n'", "SELECT ?, ?, ?, ?"),
            (
                "SELECT $$a'b$$, $x$ $$ $y$ $x$, $1, $2",
                "SELECT ?, ?, $1, $2",
            ),
            ("SELECT a$1$ FROM b$$c", "SELECT a$1$ FROM b$$c"),
            (
                "SELECT 0x1F, 1_000, .5, 1., t.c1",
                "SELECT ?, ?, ?, ?, t.c1",
            ),
            (
                "SELECT a -- 'secret\n FROM t /* a /* b */ c */ , u",
                "SELECT a FROM t , u",
            ),
            ("SELECT \"a'b\", 'c'", "SELECT \"a'b\", ?"),
            ("  SELECT\t\n  a  ", "SELECT a"),
            ("SELECT \u{e4}1, \u{e4}'x'", "SELECT \u{e4}1, \u{e4}?"),
            (
                "INSERT INTO t VALUES (-1, 'cut of",
                "INSERT INTO t VALUES (-?, ?",
            ),
            ("SELECT $tag$ cut off $ta", "SELECT ?"),
            ("SELECT 1 /* cut 'off", "SELECT ?"),
            ("SELECT E'a\\", "SELECT ?"),
            ("SELECT \"cut off  ", "SELECT \"cut off  "),
            ("SELECT a  -- b", "SELECT a"),
            ("-", "-"),
            ("", ""),
        ] {
            assert_eq!(scrubbed(sql), left, "{sql}");
        }
    }

    #[test]
    fn other_commands_are_their_first_word() {
        for (text, left) in [
            ("GET key", "GET"),
            ("SET\tkey", "SET"),
            ("PING", "PING"),
            ("", ""),
        ] {
            assert_eq!(first_word(text.as_bytes()), left.as_bytes());
        }
    }

    fn has_no_literals_left(text: &[u8]) {
        let once = without_literals(text);
        assert_eq!(without_literals(&once), once, "a literal was left");
    }

    proptest! {
        #[test]
        fn a_secret_is_in_no_text_however_it_is_cut(
            parts in proptest::collection::vec(
                "[a-z]{1,4} |'SEKRET'|'a''SEKRET'|E'\\\\'SEKRET'|\\$\\$SEKRET\\$\\$|\\$q\\$'SEKRET\\$q\\$|/\\*'SEKRET\\*/|--SEKRET'\n|'\\\\'|77 |\"n\"|[(),;=+]",
                1..12,
            ),
            cut in 0_usize..200,
        ) {
            let sql = parts.join(" ").into_bytes();
            let left = without_literals(&sql[..cut.min(sql.len())]);
            prop_assert!(!left.windows(3).any(|part| part == b"SEK"), "{}", left.escape_ascii());
            prop_assert!(!left.contains(&b'7'));
        }

        #[test]
        fn what_is_left_has_no_literals(text: Vec<u8>) {
            has_no_literals_left(&text);
        }

        #[test]
        fn nor_has_what_looks_like_sql(text in "[a1e$'\"\\\\/*. \n-]{0,40}") {
            has_no_literals_left(text.as_bytes());
        }
    }
}
