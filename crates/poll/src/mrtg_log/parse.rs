//! From the text of a log to rows, as C's scanf reads it.

use super::{Damage, Log, Row, VALUE_MAX};

/// Most bytes of a line that rateup reads at once; the rest counts as the next line.
const LINE_MAX: usize = 255;
/// Most digits of a number that a double holds exactly, whatever they are.
const EXACT_DIGITS: usize = 15;
/// Times before this one, in seconds since 1970, count as this one.
const TIME_MIN: i64 = -(1 << 40);

impl Log {
    /// Reads [`Log::text`]. After an error the log may be read again from another text, or begun.
    pub fn parse(&mut self) -> Result<(), Damage> {
        let text = std::mem::take(&mut self.text);
        let parsed = self.parse_text(&text);
        self.text = text;
        if parsed.is_err() {
            self.rows.iter_mut().for_each(|row| row.line = (0, 0));
        }
        parsed
    }

    fn parse_text(&mut self, text: &[u8]) -> Result<(), Damage> {
        let mut scan = Scan { text, at: 0 };
        let mut done = match self.parse_first(&mut scan) {
            Some(()) => Ok(()),
            None => Err(Damage::FirstLine),
        };
        let mut newest_s = self.last_s;
        let mut numbers = [0; 5];
        let mut rows = 0;
        while scan.at < text.len() {
            let row = match scan.plain_row(&mut numbers) {
                Some(row) => row,
                None => scan.any_row(&mut numbers),
            };
            self.put_row(rows, row);
            if row.time_s > newest_s {
                done = Err(Damage::Order);
                break;
            }
            newest_s = row.time_s;
            rows += 1;
        }
        self.valid = rows;
        done
    }

    /// Time and counters.
    fn parse_first(&mut self, scan: &mut Scan) -> Option<()> {
        self.last_s = scan.number()?.max(TIME_MIN);
        for last in &mut self.last {
            let word = scan.word()?;
            last.clear();
            last.extend_from_slice(until_nul(word));
        }
        scan.skip_blanks();
        Some(())
    }
}

/// A place in a text.
struct Scan<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Scan<'a> {
    /// The next row if it is written as rateup writes it. Its numbers go into `numbers`.
    fn plain_row(&mut self, numbers: &mut [i64; 5]) -> Option<Row> {
        let begin = self.at;
        let mut at = begin;
        let mut read = [0; 5];
        for (place, number) in read.iter_mut().enumerate() {
            let first = at;
            while let Some(digit) = self.text.get(at).filter(|byte| byte.is_ascii_digit()) {
                *number = *number * 10 + i64::from(digit - b'0');
                at += 1;
                if at - first > EXACT_DIGITS {
                    return None;
                }
            }
            let is_short = at == first || at - first > 1 && self.text[first] == b'0';
            let end = if place == 4 { b'\n' } else { b' ' };
            if is_short || self.text.get(at) != Some(&end) {
                return None;
            }
            at += 1;
        }
        if read[3] < read[1] || read[4] < read[2] {
            return None;
        }
        *numbers = read;
        self.at = at;
        Some(row(numbers, (begin, at)))
    }

    /// The next row, however it is written: missing numbers are those of the row before.
    fn any_row(&mut self, numbers: &mut [i64; 5]) -> Row {
        let rest = &self.text[self.at..];
        let line = &rest[..rest.len().min(LINE_MAX)];
        let line = match line.iter().position(|&byte| byte == b'\n') {
            Some(end) => &line[..=end],
            None => line,
        };
        self.at += line.len();
        let mut scan = Scan {
            text: until_nul(line),
            at: 0,
        };
        let mut count = 0;
        for number in numbers.iter_mut() {
            let Some(read) = scan.number() else { break };
            *number = read;
            count += 1;
        }
        if count < 5 {
            (numbers[3], numbers[4]) = (numbers[1], numbers[2]);
        }
        row(numbers, (0, 0))
    }

    fn skip_blanks(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.iter().take_while(|byte| is_blank(**byte)).count();
    }

    fn word(&mut self) -> Option<&'a [u8]> {
        self.skip_blanks();
        let rest = &self.text[self.at..];
        let length = rest.iter().take(VALUE_MAX);
        let length = length.take_while(|byte| !is_blank(**byte)).count();
        self.at += length;
        (length > 0).then(|| &rest[..length])
    }

    /// A whole number; the largest or the least one if it is beyond.
    fn number(&mut self) -> Option<i64> {
        self.skip_blanks();
        let sign = self.text.get(self.at).copied();
        let is_signed = matches!(sign, Some(b'-' | b'+'));
        let begin = self.at + usize::from(is_signed);
        let digits = self.text.get(begin..)?.iter();
        let digits = digits.take_while(|byte| byte.is_ascii_digit());
        let mut magnitude: i64 = 0;
        let mut end = begin;
        for digit in digits {
            let digit = i64::from(digit - b'0');
            magnitude = match sign {
                Some(b'-') => magnitude.saturating_mul(10).saturating_sub(digit),
                _ => magnitude.saturating_mul(10).saturating_add(digit),
            };
            end += 1;
        }
        if end == begin {
            return None;
        }
        self.at = end;
        Some(magnitude)
    }
}

fn row(numbers: &[i64; 5], line: (usize, usize)) -> Row {
    let [time_s, one, two, max_one, max_two] = *numbers;
    let rates = [one as f64, two as f64];
    let maxima = [max_one as f64, max_two as f64];
    Row {
        time_s: time_s.max(TIME_MIN),
        rates,
        maxima: [rates[0].max(maxima[0]), rates[1].max(maxima[1])],
        line,
    }
}

/// White space in C.
fn is_blank(byte: u8) -> bool {
    byte == b' ' || (b'\t'..=b'\r').contains(&byte)
}

fn until_nul(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|&byte| byte == 0);
    &bytes[..end.unwrap_or(bytes.len())]
}
