//! Translates regular expressions of Prometheus (RE2, in Go) for the `regex` crate.
//!
//! The two dialects are similar, but give some texts different meanings: in RE2 `\d` is ASCII, `[a&&b]` is a class of
//! three characters, `{` may be a literal, and `\<` is `<`. Expressions that RE2 refuses are refused here, too.

use std::fmt::Write as _;
use std::iter::Peekable;
use std::str::Chars;

/// The largest number in `{n,m}`.
const REPEAT_MAX: u32 = 1000;

/// Translates an expression. The result is anchored at both ends, and `.` matches any character.
pub(crate) fn anchored(text: &str) -> Result<String, String> {
    let mut translator = Translator {
        input: text.chars().peekable(),
        out: String::with_capacity(text.len() + 16),
        depth: 0,
        last: Last::Nothing,
        names: Vec::new(),
    };
    translator.out.push_str("^(?s:");
    while let Some(c) = translator.input.next() {
        translator.step(c)?;
    }
    if translator.depth != 0 {
        return Err("missing closing )".into());
    }
    translator.out.push_str(")$");
    Ok(translator.out)
}

/// Kind of the part before the next character.
#[derive(Clone, Copy, PartialEq)]
enum Last {
    /// Not repeatable.
    Nothing,
    Atom,
    /// A repetition that `?` may make lazy.
    Repetition,
    /// A lazy repetition.
    LazyRepetition,
}

struct Translator<'a> {
    input: Peekable<Chars<'a>>,
    out: String,
    depth: usize,
    last: Last,
    /// Names of groups.
    names: Vec<String>,
}

impl Translator<'_> {
    fn step(&mut self, c: char) -> Result<(), String> {
        match c {
            '\\' => self.escape()?,
            '[' => self.class()?,
            '(' => return self.open(),
            ')' => {
                self.depth = self.depth.checked_sub(1).ok_or("unexpected )")?;
                self.out.push(')');
            }
            '|' => {
                self.out.push('|');
                self.last = Last::Nothing;
                return Ok(());
            }
            '*' | '+' | '?' => return self.repeat(&c.to_string(), c == '?'),
            '{' => match self.counts() {
                Some(counts) => return self.repeat(&counts?, false),
                None => self.literal('{'),
            },
            '.' | '^' | '$' => self.out.push(c),
            _ => self.literal(c),
        }
        self.last = Last::Atom;
        Ok(())
    }

    fn literal(&mut self, c: char) {
        match c.is_alphanumeric() {
            true => self.out.push(c),
            // Writing to a String cannot fail.
            false => {
                let _ = write!(self.out, "\\x{{{:x}}}", u32::from(c));
            }
        }
    }

    fn repeat(&mut self, operator: &str, may_be_lazy: bool) -> Result<(), String> {
        self.last = match (self.last, may_be_lazy) {
            (Last::Atom, _) => Last::Repetition,
            (Last::Repetition, true) => Last::LazyRepetition,
            (Last::Nothing, _) => {
                return Err(format!(
                    "missing argument to repetition operator: `{operator}`"
                ));
            }
            (Last::Repetition | Last::LazyRepetition, _) => {
                return Err(format!("invalid nested repetition operator: `{operator}`"));
            }
        };
        self.out.push_str(operator);
        Ok(())
    }

    /// Parses the rest of `{n}`, `{n,}` or `{n,m}`; `None`: the brace is a literal.
    fn counts(&mut self) -> Option<Result<String, String>> {
        let mut ahead = self.input.clone();
        let mut inside = String::new();
        loop {
            match ahead.next()? {
                '}' => break,
                c @ ('0'..='9' | ',') if inside.len() < 12 => inside.push(c),
                _ => return None,
            }
        }
        let (low, high) = match inside.split_once(',') {
            Some((low, high)) => (low, high),
            None => (&*inside, &*inside),
        };
        // A number does not begin with a zero.
        let number = |text: &str| match text.len() > 1 && text.starts_with('0') {
            true => None,
            false => text.parse::<u32>().ok(),
        };
        let least = number(low)?;
        let most = match high {
            "" => least,
            _ => number(high)?,
        };
        self.input = ahead;
        Some(match least.max(most) > REPEAT_MAX || least > most {
            true => Err(format!("invalid repeat count: `{{{inside}}}`")),
            false => Ok(format!("{{{inside}}}")),
        })
    }

    /// Translates a group behind its `(`.
    fn open(&mut self) -> Result<(), String> {
        self.depth += 1;
        self.last = Last::Nothing;
        self.out.push('(');
        if self.input.peek() != Some(&'?') {
            return Ok(());
        }
        self.input.next();
        self.out.push('?');
        if self.input.peek() == Some(&'P') {
            self.input.next();
        }
        if self.input.peek() == Some(&'<') {
            return self.group_name();
        }
        let mut negated = false;
        let mut flags = 0;
        loop {
            let c = self.input.next().ok_or("missing closing )")?;
            match c {
                'i' | 'm' | 's' | 'U' => flags += 1,
                '-' if !negated => {
                    negated = true;
                    flags = 0;
                }
                ':' | ')' if negated && flags == 0 => return Err("missing flag behind -".into()),
                ':' => {}
                ')' => {
                    self.depth -= 1;
                    // `(?)` has no effect in RE2, and the crate refuses it.
                    if flags == 0 {
                        self.out.truncate(self.out.len() - 2);
                        return Ok(());
                    }
                }
                _ => return Err(format!("invalid or unsupported Perl syntax: `(?{c}`")),
            }
            self.out.push(c);
            if matches!(c, ':' | ')') {
                return Ok(());
            }
        }
    }

    /// Translates `<name>` of a group.
    fn group_name(&mut self) -> Result<(), String> {
        let name: String = self.input.by_ref().take_while(|&c| c != '>').collect();
        let name = name.strip_prefix('<').unwrap_or_default();
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || !name.chars().all(is_word) {
            return Err(format!("invalid named capture: `(?P<{name}>`"));
        }
        let is_number = name.starts_with(|c: char| c.is_ascii_digit());
        match is_number || self.names.iter().any(|known| known == name) {
            // The crate has no such names, and none twice. The group keeps its number.
            true => self.out.truncate(self.out.len() - 1),
            false => {
                // Writing to a String cannot fail.
                let _ = write!(self.out, "P<{name}>");
                self.names.push(name.into());
            }
        }
        Ok(())
    }

    /// Translates an escape behind its `\`, outside of a class.
    fn escape(&mut self) -> Result<(), String> {
        let c = *self.input.peek().ok_or("trailing backslash at the end")?;
        let same = match c {
            'd' => "[0-9]",
            'D' => "[^0-9]",
            's' => "[\\t\\n\\f\\r ]",
            'S' => "[^\\t\\n\\f\\r ]",
            'w' => "[0-9A-Za-z_]",
            'W' => "[^0-9A-Za-z_]",
            'b' => "(?-u:\\b)",
            'B' => "(?-u:\\B)",
            'A' => "\\A",
            'z' => "\\z",
            'p' | 'P' => return self.property(),
            'Q' => return self.quoted(),
            _ => {
                let c = self.escaped()?;
                self.literal(c);
                return Ok(());
            }
        };
        self.input.next();
        self.out.push_str(same);
        Ok(())
    }

    /// Translates `\Q...\E` to literals.
    fn quoted(&mut self) -> Result<(), String> {
        self.input.next();
        while let Some(c) = self.input.next() {
            if c == '\\' && self.input.next_if_eq(&'E').is_some() {
                return Ok(());
            }
            self.literal(c);
        }
        // Without `\E`, the `)$` that Prometheus appends would be a literal.
        Err("missing \\E".into())
    }

    /// Translates `\pN`, `\p{Greek}`, `\p{^Greek}`, and the same with `P`.
    fn property(&mut self) -> Result<(), String> {
        let mut negated = self.input.next() == Some('P');
        let invalid = || "invalid character class range: `\\p`".to_string();
        let mut name = String::new();
        match self.input.next().ok_or_else(invalid)? {
            '{' => loop {
                match self.input.next().ok_or_else(invalid)? {
                    '}' => break,
                    '^' if name.is_empty() => negated = !negated,
                    c => name.push(c),
                }
            },
            c => name.push(c),
        }
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return Err(format!("invalid character class range: `\\p{{{name}}}`"));
        }
        let letter = if negated { 'P' } else { 'p' };
        // Writing to a String cannot fail.
        let _ = write!(self.out, "\\{letter}{{{name}}}");
        Ok(())
    }

    /// The character of an escape, parsed behind its `\`.
    fn escaped(&mut self) -> Result<char, String> {
        let c = self.input.next().ok_or("trailing backslash at the end")?;
        Ok(match c {
            'a' => '\u{7}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            '0'..='7' => return self.octal(c),
            'x' => return self.hexadecimal(),
            _ if c.is_ascii() && !c.is_ascii_alphanumeric() => c,
            _ => return Err(format!("invalid escape sequence: `\\{c}`")),
        })
    }

    fn octal(&mut self, first: char) -> Result<char, String> {
        let is_octal = |c: &char| matches!(c, '0'..='7');
        if first != '0' && !self.input.peek().is_some_and(is_octal) {
            return Err(format!("invalid escape sequence: `\\{first}`"));
        }
        let mut value = first.to_digit(8).unwrap_or_default();
        for _ in 0..2 {
            match self.input.next_if(|c| is_octal(c)) {
                Some(c) => value = value * 8 + c.to_digit(8).unwrap_or_default(),
                None => break,
            }
        }
        char::from_u32(value).ok_or_else(|| "invalid escape sequence".into())
    }

    fn hexadecimal(&mut self) -> Result<char, String> {
        let invalid = || "invalid escape sequence: `\\x`".to_string();
        let mut digits = String::new();
        match self.input.next().ok_or_else(invalid)? {
            '{' => loop {
                match self.input.next().ok_or_else(invalid)? {
                    '}' => break,
                    c => digits.push(c),
                }
            },
            c => {
                digits.push(c);
                digits.push(self.input.next().ok_or_else(invalid)?);
            }
        }
        if digits.is_empty() || digits.len() > 8 || !digits.chars().all(|c| c.is_ascii_hexdigit()) {
            return Err(invalid());
        }
        let value = u32::from_str_radix(&digits, 16).map_err(|_| invalid())?;
        char::from_u32(value).ok_or_else(invalid)
    }

    /// Translates a class behind its `[`.
    fn class(&mut self) -> Result<(), String> {
        self.out.push('[');
        if self.input.next_if_eq(&'^').is_some() {
            self.out.push('^');
        }
        let mut is_first = true;
        loop {
            let c = *self.input.peek().ok_or("missing closing ]")?;
            if c == ']' && !is_first {
                self.input.next();
                self.out.push(']');
                return Ok(());
            }
            is_first = false;
            self.class_item(c)?;
        }
    }

    fn class_item(&mut self, c: char) -> Result<(), String> {
        if c == '[' && self.named_class()? {
            return Ok(());
        }
        if c == '\\' {
            let mut ahead = self.input.clone();
            ahead.next();
            let same = match ahead.next() {
                Some('d') => "0-9",
                Some('D') => "[^0-9]",
                Some('s') => "\\t\\n\\f\\r\\x20",
                Some('S') => "[^\\t\\n\\f\\r\\x20]",
                Some('w') => "0-9A-Za-z_",
                Some('W') => "[^0-9A-Za-z_]",
                Some('p' | 'P') => {
                    self.input.next();
                    return self.property();
                }
                _ => "",
            };
            if !same.is_empty() {
                self.input = ahead;
                self.out.push_str(same);
                return Ok(());
            }
        }
        let low = self.class_character()?;
        let mut high = low;
        let mut ahead = self.input.clone();
        if ahead.next() == Some('-') && ahead.peek().is_some_and(|&c| c != ']') {
            self.input.next();
            high = self.class_character()?;
            if high < low {
                return Err(format!("invalid character class range: `{low}-{high}`"));
            }
        }
        // Writing to a String cannot fail.
        let _ = match low == high {
            true => write!(self.out, "\\x{{{:x}}}", u32::from(low)),
            false => write!(
                self.out,
                "\\x{{{:x}}}-\\x{{{:x}}}",
                u32::from(low),
                u32::from(high)
            ),
        };
        Ok(())
    }

    fn class_character(&mut self) -> Result<char, String> {
        match self.input.next().ok_or("missing closing ]")? {
            '\\' => self.escaped(),
            c => Ok(c),
        }
    }

    /// Translates `[:alpha:]` or `[:^alpha:]`; false if there is none.
    fn named_class(&mut self) -> Result<bool, String> {
        const NAMES: [&str; 14] = [
            "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print",
            "punct", "space", "upper", "word", "xdigit",
        ];
        let rest: String = self.input.clone().collect();
        let Some(end) = rest.strip_prefix("[:").and_then(|rest| rest.find(":]")) else {
            return Ok(false);
        };
        let inside = &rest[2..2 + end];
        let name = inside.strip_prefix('^').unwrap_or(inside);
        if !NAMES.contains(&name) {
            return Err(format!("invalid character class range: `[:{inside}:]`"));
        }
        self.out.push_str(&rest[..end + 4]);
        let length = rest[..end + 4].chars().count();
        self.input.by_ref().take(length).for_each(drop);
        Ok(true)
    }
}
