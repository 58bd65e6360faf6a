//! A text is a template (all that is not a number) and integers. This file derives templates from texts, matches texts against
//! them and renders texts again; a matched text renders to exactly the same bytes. The meaning of a number is the business of
//! `kernel::interpret`.

use crate::limits;
use crate::scan;
use crate::varint;
use crate::words::Words;

/// Where a word slot ends.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Until {
    /// Before the next such byte, or at the end of the text.
    Byte(u8),
    /// Before the last `)` of the text (comm may itself hold parentheses).
    LastParen,
    /// At the end of the text.
    End,
}

/// How a slot is written in the text.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Class {
    /// A number as it is.
    Free,
    /// A number filled with blanks on the left to this width.
    Right(u8),
    /// A number filled with zeros on the left to this width.
    Zero(u8),
    /// An interned word.
    Word(Until),
}

/// A place for a value, after the literal bytes that lead to it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Slot {
    /// End, in the template's literal bytes, of the literal before this slot.
    pub literal_end: u32,
    /// How the value is written.
    pub class: Class,
}

impl Slot {
    fn end(&self) -> usize {
        self.literal_end as usize
    }
}

/// How the lines of a kind of source are cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Grammar {
    /// Numbers by the general rule.
    Plain,
    /// As `Plain`, but word number n (from 0) of every line is a name, even if it is all digits.
    Named(u8),
    /// As `Named(0)`, but from the first word on that is no number a line is literal: what describes the counts before it.
    Counts,
    /// /proc/PID/stat: `pid (comm) state numbers`.
    Stat,
    /// /proc/PID/status: `Key:\tvalue`; a value is plain numbers or one word.
    Keyed,
    /// The whole text is one word.
    Word,
}

/// All of a text that is not a value.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Template {
    literals: Vec<u8>,
    slots: Vec<Slot>,
}

/// A piece of a template, for those who look for meaning in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Piece<'a> {
    /// Bytes between blanks that are the same in every text.
    Text(&'a [u8]),
    /// The n-th value.
    Slot(usize),
}

impl Template {
    /// Number of values.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// True if the text has no values at all.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Bytes of memory it takes.
    pub fn bytes(&self) -> usize {
        self.literals.len() + self.slots.len() * size_of::<Slot>()
    }

    /// True if some values are words.
    pub fn has_words(&self) -> bool {
        self.slots
            .iter()
            .any(|slot| matches!(slot.class, Class::Word(_)))
    }

    /// The slots in the order of the text.
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// The literal bytes before slot `i`; for `i == len()`, those after the last slot.
    #[inline]
    pub fn literal(&self, i: usize) -> &[u8] {
        let start = if i == 0 { 0 } else { self.slots[i - 1].end() };
        let end = self.slots.get(i).map_or(self.literals.len(), Slot::end);
        &self.literals[start..end]
    }

    /// The lines of the template, each as its words and slots. Blanks and tabs part words and are dropped;
    /// `0.55` gives slot, `.`, slot.
    pub fn lines(&self) -> Vec<Vec<Piece<'_>>> {
        let mut lines = vec![Vec::new()];
        for i in 0..=self.len() {
            for (n, part) in self.literal(i).split(|&b| b == b'\n').enumerate() {
                if n > 0 {
                    lines.push(Vec::new());
                }
                if let Some(line) = lines.last_mut() {
                    line.extend(scan::words(part).map(Piece::Text));
                }
            }
            if let (Some(line), true) = (lines.last_mut(), i < self.len()) {
                line.push(Piece::Slot(i));
            }
        }
        lines.retain(|line| !line.is_empty());
        lines
    }

    /// Appends the text that `values` make; `false` when there are too few, a word is unknown
    /// or the text would exceed [`limits::TEXT_MAX`].
    pub fn render(&self, values: &[u64], words: &Words, out: &mut Vec<u8>) -> bool {
        if values.len() < self.len() {
            return false;
        }
        let limit = out.len() + limits::TEXT_MAX;
        for (i, slot) in self.slots.iter().enumerate() {
            out.extend_from_slice(self.literal(i));
            match slot.class {
                Class::Free => scan::put_number(out, values[i], 0, b' '),
                Class::Right(width) => scan::put_number(out, values[i], width.into(), b' '),
                Class::Zero(width) => scan::put_number(out, values[i], width.into(), b'0'),
                Class::Word(_) => match words.get(values[i]) {
                    Some(word) => out.extend_from_slice(word),
                    None => return false,
                },
            }
            if out.len() > limit {
                return false;
            }
        }
        out.extend_from_slice(self.literal(self.len()));
        true
    }

    /// Compares `text` with the text that `values` make.
    pub(crate) fn makes(
        &self,
        text: &[u8],
        mut values: impl Iterator<Item = u64>,
        words: &Words,
    ) -> bool {
        let (mut rest, mut literals) = (text, &self.literals[..]);
        let mut last = 0;
        for slot in &self.slots {
            let (literal, later) = literals.split_at(slot.end() - last);
            (literals, last) = (later, slot.end());
            let after = match literal {
                &[byte] => rest
                    .split_first()
                    .filter(|&(&first, _)| first == byte)
                    .map(|(_, after)| after),
                _ => rest.strip_prefix(literal),
            };
            let after = after.zip(values.next());
            match after.and_then(|(rest, value)| slot.class.skip(rest, value, words)) {
                Some(after) => rest = after,
                None => return false,
            }
        }
        rest == literals
    }

    /// Matches `text` whole: fills `values` and `ends` (where each value ends in the text),
    /// or says `false` and leaves them in any state.
    pub fn matches(
        &self,
        text: &[u8],
        words: &mut Words,
        values: &mut Vec<u64>,
        ends: &mut Vec<u32>,
    ) -> bool {
        values.clear();
        ends.clear();
        let mut at = 0;
        for (i, slot) in self.slots.iter().enumerate() {
            let literal = self.literal(i);
            if !text[at..].starts_with(literal) {
                return false;
            }
            let Some((value, end)) = slot.class.parse(text, at + literal.len(), words) else {
                return false;
            };
            values.push(value);
            ends.push(end as u32);
            at = end;
        }
        &text[at..] == self.literal(self.len())
    }

    /// Appends the template as bytes; docs/formats/recording.md, "Section payloads".
    pub fn write(&self, out: &mut Vec<u8>) {
        varint::put_bytes(out, &self.literals);
        varint::put_count(out, self.slots.len());
        let mut last = 0;
        for slot in &self.slots {
            varint::put(out, u64::from(slot.literal_end - last));
            last = slot.literal_end;
            slot.class.write(out);
        }
    }

    /// As [`Template::write`], but slots in a row that are alike are counted: of a table with a column for each CPU, a few bytes a line.
    pub fn write_runs(&self, out: &mut Vec<u8>) {
        varint::put_bytes(out, &self.literals);
        let mut last = 0;
        let lengths = self.slots.iter().map(|slot| {
            let length = slot.literal_end - last;
            last = slot.literal_end;
            (length, slot.class)
        });
        let mut run: Option<(u64, (u32, Class))> = None;
        for slot in lengths {
            match &mut run {
                Some((count, alike)) if *alike == slot => *count += 1,
                _ => {
                    put_run(out, run);
                    run = Some((1, slot));
                }
            }
        }
        put_run(out, run);
    }

    /// Reads what [`Template::write_runs`] wrote, up to the end; `None` when it is damaged, or has more slots than `slots_max`.
    pub fn read_runs(mut input: &[u8], slots_max: usize) -> Option<Template> {
        let literals = varint::take_bytes(&mut input, limits::TEXT_MAX)?.to_vec();
        let (mut slots, mut end) = (Vec::new(), 0usize);
        while !input.is_empty() {
            let count = usize::try_from(varint::take(&mut input)?).ok()?;
            let length = usize::try_from(varint::take(&mut input)?).ok()?;
            let class = Class::read(&mut input)?;
            if count > slots_max - slots.len() {
                return None;
            }
            slots.reserve(count);
            for _ in 0..count {
                end = end
                    .checked_add(length)
                    .filter(|&end| end <= literals.len())?;
                slots.push(Slot {
                    literal_end: u32::try_from(end).ok()?,
                    class,
                });
            }
        }
        Some(Template { literals, slots })
    }

    /// Reads what [`Template::write`] wrote; `None` when it is damaged.
    pub fn read(input: &mut &[u8]) -> Option<Template> {
        let literals = varint::take_bytes(input, limits::TEXT_MAX)?.to_vec();
        let count = usize::try_from(varint::take(input)?).ok()?;
        if count > input.len() {
            return None;
        }
        let mut slots = Vec::with_capacity(count);
        let mut end = 0u64;
        for _ in 0..count {
            end = end.checked_add(varint::take(input)?)?;
            if end > literals.len() as u64 {
                return None;
            }
            slots.push(Slot {
                literal_end: end as u32,
                class: Class::read(input)?,
            });
        }
        Some(Template { literals, slots })
    }
}

fn put_run(out: &mut Vec<u8>, run: Option<(u64, (u32, Class))>) {
    if let Some((count, (length, class))) = run {
        varint::put(out, count);
        varint::put(out, length.into());
        class.write(out);
    }
}

impl Class {
    /// The value written at `start` and where it ends; `None` when it is not written as this class would.
    #[inline]
    pub fn parse(self, text: &[u8], start: usize, words: &mut Words) -> Option<(u64, usize)> {
        if let Class::Word(until) = self {
            let end = until.find(text, start)?;
            return Some((u64::from(words.intern(&text[start..end])), end));
        }
        let blanks = match self {
            Class::Right(_) => text[start..].iter().take_while(|&&b| b == b' ').count(),
            _ => 0,
        };
        let digits = &text[start + blanks..];
        let len = scan::digit_run(digits);
        let zero_led = len > 1 && digits[0] == b'0';
        let written_so = match self {
            Class::Free => !zero_led,
            Class::Right(width) => !zero_led && blanks == usize::from(width).saturating_sub(len),
            Class::Zero(width) => {
                len == usize::from(width) || (len > usize::from(width) && !zero_led)
            }
            Class::Word(_) => false,
        };
        if !written_so {
            return None;
        }
        // Zeros that fill may be more than a u64 has digits.
        let skip = if zero_led {
            digits[..len]
                .iter()
                .take_while(|&&b| b == b'0')
                .count()
                .min(len - 1)
        } else {
            0
        };
        let value = scan::number(&digits[skip..len])?;
        Some((value, start + blanks + len))
    }

    /// Rest of `text` after `value`, if `text` begins with `value` as this class writes numbers.
    #[inline]
    fn skip<'a>(self, text: &'a [u8], value: u64, words: &Words) -> Option<&'a [u8]> {
        let fill = match self {
            Class::Word(_) => return text.strip_prefix(words.get(value)?),
            Class::Free if value < 10 => {
                let (&digit, after) = text.split_first()?;
                return (u64::from(digit) == u64::from(b'0') + value).then_some(after);
            }
            Class::Free => return skip_number(text, value),
            Class::Right(_) => b' ',
            Class::Zero(_) => b'0',
        };
        let fills = self.width(value, words) - scan::digits(value);
        let (filled, digits) = text.split_at_checked(fills)?;
        let is_filled = filled.iter().all(|&byte| byte == fill);
        skip_number(digits, value).filter(|_| is_filled)
    }

    /// Bytes that `value` takes when written.
    #[inline]
    pub fn width(self, value: u64, words: &Words) -> usize {
        match self {
            Class::Free => scan::digits(value),
            Class::Right(width) | Class::Zero(width) => scan::digits(value).max(width.into()),
            Class::Word(_) => words.get(value).map_or(0, <[u8]>::len),
        }
    }

    fn write(self, out: &mut Vec<u8>) {
        match self {
            Class::Free => out.push(0),
            Class::Right(width) => out.extend([1, width]),
            Class::Zero(width) => out.extend([2, width]),
            Class::Word(Until::Byte(byte)) => out.extend([3, byte]),
            Class::Word(Until::LastParen) => out.push(4),
            Class::Word(Until::End) => out.push(5),
        }
    }

    fn read(input: &mut &[u8]) -> Option<Class> {
        let (&code, rest) = input.split_first()?;
        *input = rest;
        let mut byte = || {
            let (&byte, rest) = input.split_first()?;
            *input = rest;
            Some(byte)
        };
        let narrow = |width: u8| (usize::from(width) <= limits::NUMBER_WIDTH_MAX).then_some(width);
        Some(match code {
            0 => Class::Free,
            1 => Class::Right(narrow(byte()?)?),
            2 => Class::Zero(narrow(byte()?)?),
            3 => Class::Word(Until::Byte(byte()?)),
            4 => Class::Word(Until::LastParen),
            5 => Class::Word(Until::End),
            _ => return None,
        })
    }
}

impl Until {
    fn find(self, text: &[u8], start: usize) -> Option<usize> {
        let rest = text.get(start..)?;
        let len = match self {
            Until::Byte(stop) => rest.iter().position(|&b| b == stop).unwrap_or(rest.len()),
            Until::LastParen => rest.iter().rposition(|&b| b == b')')?,
            Until::End => rest.len(),
        };
        (len <= limits::WORD_BYTES_MAX).then_some(start + len)
    }
}

/// Rest of `text` after `value`, if `text` begins with the digits of `value` and no digit comes next.
#[inline]
fn skip_number(text: &[u8], value: u64) -> Option<&[u8]> {
    let (mut number, mut len) = (0u64, 0);
    while let Some(digit) = text.get(len).map(|byte| byte.wrapping_sub(b'0'))
        && digit < 10
    {
        number = number.wrapping_mul(10).wrapping_add(digit.into());
        len += 1;
    }
    let is_written_so = number == value && len == scan::digits(value);
    is_written_so.then(|| &text[len..])
}

/// Cuts `text` by `grammar` into a new template and its values. Never fails: bytes that are not clearly a number are literal.
pub fn derive(
    text: &[u8],
    grammar: Grammar,
    words: &mut Words,
    values: &mut Vec<u64>,
    ends: &mut Vec<u32>,
) -> Template {
    values.clear();
    ends.clear();
    let mut cut = Cut {
        text,
        template: Template::default(),
        words,
        values,
        ends,
        at: 0,
    };
    match grammar {
        Grammar::Plain => cut.lines(None),
        Grammar::Named(column) => cut.lines(Some(column)),
        Grammar::Counts => cut.counts(),
        Grammar::Stat => cut.stat(),
        Grammar::Keyed => cut.keyed(),
        Grammar::Word => cut.word(0, Until::End),
    }
    cut.literal_to(text.len());
    cut.template
}

/// A derivation under way: `at` is how far the text has been taken into the template.
struct Cut<'a> {
    text: &'a [u8],
    template: Template,
    words: &'a mut Words,
    values: &'a mut Vec<u64>,
    ends: &'a mut Vec<u32>,
    at: usize,
}

impl Cut<'_> {
    fn literal_to(&mut self, end: usize) {
        self.template
            .literals
            .extend_from_slice(&self.text[self.at..end]);
        self.at = end;
    }

    fn slot(&mut self, start: usize, class: Class) -> bool {
        let Some((value, end)) = class.parse(self.text, start, self.words) else {
            return false;
        };
        self.literal_to(start);
        self.template.slots.push(Slot {
            literal_end: self.template.literals.len() as u32,
            class,
        });
        self.values.push(value);
        self.ends.push(end as u32);
        self.at = end;
        true
    }

    fn word(&mut self, start: usize, until: Until) {
        self.slot(start, Class::Word(until));
    }

    fn lines(&mut self, name_column: Option<u8>) {
        let mut start = 0;
        while start < self.text.len() {
            let end = line_end(self.text, start);
            self.line(start, end, name_column);
            start = end + 1;
        }
    }

    fn counts(&mut self) {
        let mut start = 0;
        while start < self.text.len() {
            let end = line_end(self.text, start);
            let line = &self.text[start..end];
            let is_blank = |b: &u8| b" \t:".contains(b);
            let name = line.iter().take_while(|b| is_blank(b)).count();
            let name = name + line[name..].iter().take_while(|b| !is_blank(b)).count();
            let is_count = |b: &u8| is_blank(b) || b.is_ascii_digit();
            let mut counts = name + line[name..].iter().take_while(|b| is_count(b)).count();
            if counts < line.len() {
                // The word that stopped it may begin with digits: `9-edge`.
                let digits = line[..counts]
                    .iter()
                    .rev()
                    .take_while(|b| b.is_ascii_digit());
                counts -= digits.count();
            }
            self.line(start + name, start + counts, None);
            start = end + 1;
        }
    }

    /// Cuts text[start..end] at blank, tab, `=`, `:` and looks at each token.
    fn line(&mut self, start: usize, end: usize, name_column: Option<u8>) {
        let mut at = start;
        let mut column = 0;
        while at < end {
            let len = self.text[at..end]
                .iter()
                .take_while(|b| !b" \t=:".contains(b))
                .count();
            if len > 0 {
                if name_column != Some(column) {
                    self.token(at, at + len);
                }
                column = column.saturating_add(1);
            }
            at += len.max(1);
        }
    }

    /// A token with a letter, `_` or `-` is literal whole; in others, runs of digits are numbers.
    fn token(&mut self, start: usize, end: usize) {
        let token = &self.text[start..end];
        if !token
            .iter()
            .all(|b| b.is_ascii_digit() || b".,(/)%".contains(b))
        {
            return;
        }
        let mut at = start;
        while at < end {
            let len = scan::digit_run(&self.text[at..end]);
            if len > 0 {
                self.run(start, at, len);
            }
            at += len.max(1);
        }
    }

    /// A run of digits becomes a slot, of the class that its writing shows.
    fn run(&mut self, token_start: usize, start: usize, len: usize) {
        let text = self.text;
        let follows_point =
            start >= token_start + 2 && text[start - 1] == b'.' && text[start - 2].is_ascii_digit();
        let zero_led = len > 1 && text[start] == b'0';
        if (follows_point || zero_led) && len <= limits::NUMBER_WIDTH_MAX {
            self.slot(start, Class::Zero(len as u8));
            return;
        }
        let blanks = text[self.at..start]
            .iter()
            .rev()
            .take_while(|&&b| b == b' ')
            .count();
        if start == token_start && blanks >= 2 && blanks + len <= limits::NUMBER_WIDTH_MAX {
            self.slot(start - blanks, Class::Right((blanks + len) as u8));
        } else {
            self.slot(start, Class::Free);
        }
    }

    /// `1234 (comm) S 1 ...`: comm and state are words, the rest numbers.
    fn stat(&mut self) {
        let open = self.text.iter().position(|&b| b == b'(');
        let close = self.text.iter().rposition(|&b| b == b')');
        let (Some(open), Some(close)) = (open, close) else {
            return self.lines(None);
        };
        if close < open || !self.text[close..].starts_with(b") ") {
            return self.lines(None);
        }
        self.line(0, open, None);
        self.word(open + 1, Until::LastParen);
        self.word(close + 2, Until::Byte(b' '));
        let rest = self.at;
        let end = line_end(self.text, rest);
        self.line(rest, end, None);
    }

    fn keyed(&mut self) {
        let mut start = 0;
        while start < self.text.len() {
            let end = line_end(self.text, start);
            let line = &self.text[start..end];
            if let Some(colon) = line.iter().position(|&b| b == b':') {
                let blanks = scan_blanks(&line[colon + 1..]);
                let value = start + colon + 1 + blanks;
                if is_counted(&line[..colon]) {
                    self.line(start + colon + 1, end, None);
                } else {
                    self.word(value, Until::Byte(b'\n'));
                }
            }
            start = end + 1;
        }
    }
}

/// Keys of /proc/PID/status whose values are a fixed count of plain numbers; the others
/// (names, masks, lists) are words.
fn is_counted(key: &[u8]) -> bool {
    const PREFIXES: [&[u8]; 14] = [
        b"Vm",
        b"Rss",
        b"Huge",
        b"Tgid",
        b"Ngid",
        b"Pid",
        b"PPid",
        b"Tracer",
        b"Uid",
        b"Gid",
        b"FDSize",
        b"Threads",
        b"voluntary",
        b"nonvoluntary",
    ];
    PREFIXES.iter().any(|prefix| key.starts_with(prefix))
}

fn scan_blanks(text: &[u8]) -> usize {
    text.iter()
        .take_while(|&&b| b == b' ' || b == b'\t')
        .count()
}

fn line_end(text: &[u8], start: usize) -> usize {
    text[start..]
        .iter()
        .position(|&b| b == b'\n')
        .map_or(text.len(), |n| start + n)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cut(text: &[u8], grammar: Grammar) -> (Template, Vec<u64>, Words) {
        let (mut words, mut values, mut ends) = (Words::default(), Vec::new(), Vec::new());
        let template = derive(text, grammar, &mut words, &mut values, &mut ends);
        (template, values, words)
    }

    const GRAMMARS: [Grammar; 6] = [
        Grammar::Plain,
        Grammar::Named(0),
        Grammar::Counts,
        Grammar::Stat,
        Grammar::Keyed,
        Grammar::Word,
    ];

    /// Texts much like the kernel's: numbers, blanks, separators and some letters.
    fn kernel_like() -> impl Strategy<Value = Vec<u8>> {
        let token = prop_oneof![
            4 => "[0-9]{1,22}", 2 => "[ ]{1,6}", 1 => "[a-z_-]{1,3}[0-9]{0,2}", 1 => "[.,/%():=\t]", 1 => "\n",
            1 => "0[0-9]{1,3}", 1 => "[0-9]{1,3}\\.[0-9]{2}"
        ];
        proptest::collection::vec(token, 0..40).prop_map(|tokens| tokens.concat().into_bytes())
    }

    proptest! {
        #[test]
        fn every_text_renders_as_it_was(text in prop_oneof![kernel_like(), any::<Vec<u8>>()]) {
            for grammar in GRAMMARS {
                let (template, values, mut words) = cut(&text, grammar);
                let mut out = Vec::new();
                prop_assert!(template.render(&values, &words, &mut out));
                prop_assert_eq!(&out, &text);
                let (mut again, mut ends) = (Vec::new(), Vec::new());
                if template.matches(&text, &mut words, &mut again, &mut ends) {
                    prop_assert_eq!(&again, &values);
                }
                let mut bytes = Vec::new();
                template.write(&mut bytes);
                prop_assert_eq!(Template::read(&mut &bytes[..]), Some(template.clone()));
                bytes.clear();
                template.write_runs(&mut bytes);
                let slots = template.len();
                prop_assert_eq!(Template::read_runs(&bytes, slots), Some(template));
                prop_assert!(slots == 0 || Template::read_runs(&bytes, slots - 1).is_none());
            }
        }

        #[test]
        fn what_matches_renders_the_same(a in kernel_like(), b in kernel_like()) {
            for grammar in GRAMMARS {
                let (template, _, mut words) = cut(&a, grammar);
                let (mut values, mut ends) = (Vec::new(), Vec::new());
                if template.matches(&b, &mut words, &mut values, &mut ends) {
                    let mut out = Vec::new();
                    prop_assert!(template.render(&values, &words, &mut out));
                    prop_assert_eq!(&out, &b);
                }
                values.resize(template.len(), 7);
                let mut out = Vec::new();
                let is_made = template.render(&values, &words, &mut out) && out == b;
                prop_assert_eq!(template.makes(&b, values.iter().copied(), &words), is_made);
                prop_assert!(!is_made || !template.makes(&[&b[..], b"x"].concat(), values.iter().copied(), &words));
            }
        }
    }

    #[test]
    fn numbers_are_cut_as_the_design_says() {
        for (text, grammar, values) in [
            (&b"cpu0 1 2\n"[..], Grammar::Plain, &[1u64, 2][..]),
            (b"loop5 7", Grammar::Plain, &[7]),
            (b"  8       0 sda 12", Grammar::Plain, &[8, 0, 12]),
            (
                b"0.05 0.55 1/234 9",
                Grammar::Plain,
                &[0, 5, 0, 55, 1, 234, 9],
            ),
            (b"nice -5 3", Grammar::Plain, &[3]),
            (b"99999999999999999999999 1", Grammar::Plain, &[1]),
            (b"eth0:123 4", Grammar::Named(0), &[123, 4]),
            (b"  123: 4", Grammar::Named(0), &[4]),
            (
                b"  9:   7  0  IO-APIC 00:01.0 3-edge 5\nRES: 12 13\n",
                Grammar::Counts,
                &[7, 0, 12, 13],
            ),
            (b" CPU0  CPU1\n 10: 1 2 3-edge", Grammar::Counts, &[1, 2]),
        ] {
            assert_eq!(
                cut(text, grammar).1,
                values,
                "{}",
                String::from_utf8_lossy(text)
            );
        }
    }

    #[test]
    fn a_command_with_parentheses_is_one_word() {
        let (template, values, words) = cut(b"12 (a) (b) S) R 1 -1 3\n", Grammar::Stat);
        assert_eq!(words.get(values[1]), Some(&b"a) (b) S"[..]));
        assert_eq!(words.get(values[2]), Some(&b"R"[..]));
        assert_eq!((template.len(), values[3], values[4]), (5, 1, 3));
    }

    #[test]
    fn lines_show_words_and_slots() {
        let (template, ..) = cut(b"MemTotal:   12 kB\nload 0.55\n", Grammar::Plain);
        use Piece::{Slot, Text};
        let expected = vec![
            vec![Text(b"MemTotal:"), Slot(0), Text(b"kB")],
            vec![Text(b"load"), Slot(1), Text(b"."), Slot(2)],
        ];
        assert_eq!(template.lines(), expected);
    }
}
