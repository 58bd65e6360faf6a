//! A running command: reads its output up to a limit, keeps its deadline, and parses its numbers.

use std::io::ErrorKind;
use std::process::ExitStatus;

use kymo_sys::program::Program;

use super::frame::{Answer, LINE_BYTES};

/// Longest output that is read, bytes; only four lines count.
const OUTPUT_BYTES: usize = 64 << 10;
const LINES: usize = 4;
/// A number with more digits than this is not accepted: MRTG is exact with 40 digits.
const DIGITS_MAX: usize = 100;

/// A running program and its output so far.
pub(super) struct Job {
    pub program: Program,
    /// Time of CLOCK_MONOTONIC at which it is killed.
    pub deadline_ns: u64,
    printed: Vec<u8>,
}

impl Job {
    pub(super) fn new(program: Program, deadline_ns: u64) -> Job {
        Job {
            program,
            deadline_ns,
            printed: Vec::new(),
        }
    }

    /// Reads the available output. Closes the pipe after the lines that count, as MRTG does.
    pub(super) fn read(&mut self) {
        let mut piece = [0; 4096];
        while self.program.output().is_some() {
            match self.program.read(&mut piece) {
                Ok(0) => self.program.close_output(),
                Ok(length) => {
                    self.printed.extend(&piece[..length]);
                    let lines = self.printed.iter().filter(|&&byte| byte == b'\n').count();
                    if lines >= LINES || self.printed.len() > OUTPUT_BYTES {
                        self.program.close_output();
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => self.program.close_output(),
            }
        }
    }

    /// The parsed output, and the problem with it in words.
    pub(super) fn answer(&self, ended: ExitStatus) -> (Answer, Option<String>) {
        let (answer, mut wrong) = read_lines(&self.printed);
        if let Some(wrong) = &mut wrong
            && !ended.success()
        {
            wrong.push_str(&format!(" ({ended})"));
        }
        (answer, wrong)
    }
}

/// Parses the four lines.
fn read_lines(text: &[u8]) -> (Answer, Option<String>) {
    let mut lines = text.split_inclusive(|&byte| byte == b'\n').map(|line| {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        &line[..line.len().min(LINE_BYTES)]
    });
    let mut wrong = None;
    let mut value = |which, line: Option<&[u8]>| {
        let problem = match line {
            Some(b"UNKNOWN") => return None,
            Some(line) => match number(line) {
                Some(number) => return Some(number),
                None => format!("no number in its {which} line"),
            },
            None if text.is_empty() => "it prints nothing".into(),
            None => format!("its {which} line is missing"),
        };
        wrong.get_or_insert(problem);
        None
    };
    let values = [value("first", lines.next()), value("second", lines.next())];
    let words = |line: &[u8]| line.trim_ascii_start().to_vec();
    let answer = Answer {
        values,
        uptime: lines.next().map(words),
        name: lines.next().map(words),
    };
    (answer, wrong)
}

/// The first number in a line by MRTG's rule: a sign, digits, and one more character with digits behind it. Perl's
/// Math::BigFloat decides on the result: `1e5`, `1_000` and `0x10` are numbers, `12,5` is none.
fn number(line: &[u8]) -> Option<Vec<u8>> {
    let first = line.iter().position(u8::is_ascii_digit)?;
    let negative = first > 0 && line[first - 1] == b'-';
    let (whole, rest) = digits(&line[first..]);
    let (fraction, _) = digits(rest.get(1..).unwrap_or_default());
    if whole.len().max(fraction.len()) > DIGITS_MAX {
        return None;
    }
    let mut number = without_zeros(whole).to_vec();
    if !fraction.is_empty() {
        match (rest[0], whole) {
            (b'.', _) => {
                number.push(b'.');
                number.extend(fraction);
            }
            (b'_', _) => number = without_zeros(&[whole, fraction].concat()).to_vec(),
            (b'e' | b'E', b"0") => {}
            (b'e' | b'E', _) => number.extend(zeros(fraction)?),
            (b'x' | b'X', b"0") => number = radix(fraction, 16)?,
            (b'b' | b'B', b"0") => number = radix(fraction, 2)?,
            _ => return None,
        }
    }
    if negative {
        number.insert(0, b'-');
    }
    Some(number)
}

fn digits(text: &[u8]) -> (&[u8], &[u8]) {
    text.split_at(text.iter().take_while(|byte| byte.is_ascii_digit()).count())
}

fn without_zeros(digits: &[u8]) -> &[u8] {
    let zeros = digits.iter().take_while(|&&digit| digit == b'0').count();
    &digits[zeros.min(digits.len() - 1)..]
}

/// Zeros for an exponent; no double has more than 308.
fn zeros(exponent: &[u8]) -> Option<Vec<u8>> {
    let count: usize = std::str::from_utf8(exponent).ok()?.parse().ok()?;
    (count <= 308).then(|| vec![b'0'; count])
}

fn radix(digits: &[u8], radix: u32) -> Option<Vec<u8>> {
    let number = u128::from_str_radix(std::str::from_utf8(digits).ok()?, radix).ok()?;
    Some(number.to_string().into_bytes())
}

/// Fuzzes the parser with any bytes as a command's output: its values are decimal numbers.
#[cfg(any(test, feature = "testing"))]
pub(super) fn fuzz_output(input: &[u8]) {
    let (answer, wrong) = read_lines(input);
    assert!(wrong.is_none_or(|wrong| !wrong.is_empty()));
    for value in answer.values.iter().flatten() {
        let digits = value.strip_prefix(b"-").unwrap_or(value);
        let mut parts = digits.split(|&byte| byte == b'.');
        let sound = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
        assert!(parts.clone().count() <= 2 && parts.all(sound), "{value:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines, and the values that MRTG 2.17.10 stores for them in a gauge.
    const NUMBERS: &[(&str, &str)] = &[
        ("12 34", "U"),
        ("12,5", "U"),
        ("1e5", "100000"),
        ("0x10", "16"),
        ("+5", "5"),
        ("-5", "-5"),
        ("5.75", "5.75"),
        ("abc 7 def", "7"),
        ("1.", "1"),
        (".5", "5"),
        ("10.5.3", "10.5"),
        ("UNKNOWN ", "U"),
        ("", "U"),
        ("-", "U"),
        ("--4", "-4"),
        ("1_000", "1000"),
        ("007", "7"),
        ("99999999999999999999999", "99999999999999999999999"),
        ("12\t34", "U"),
        ("12\r", "12"),
        ("1e400", "U"),
        ("3e-2", "3"),
        ("0b11", "3"),
        ("5 ", "5"),
        ("1-2", "U"),
        ("12e", "12"),
        ("12.5e3", "12.5"),
        ("5kB", "5"),
        ("0", "0"),
        ("000", "0"),
        ("0e5", "0"),
    ];

    #[test]
    fn numbers_are_found_as_mrtg_finds_them() {
        for (line, expected) in NUMBERS {
            fuzz_output(line.as_bytes());
            let found = number(line.as_bytes()).unwrap_or(b"U".to_vec());
            assert_eq!(String::from_utf8(found).unwrap(), *expected, "{line:?}");
        }
    }

    #[test]
    fn four_lines_are_read() {
        let text =
            |text: Option<Vec<u8>>| text.map_or("-".into(), |t| String::from_utf8(t).unwrap());
        for (printed, expected, problem) in [
            ("1\n2\n 3 days \nbox\nmore\n", "1 2 3 days  box", None),
            ("1\n2", "1 2 - -", None),
            ("UNKNOWN\nUNKNOWN\n", "- - - -", None),
            ("1\n", "1 - - -", Some("its second line is missing")),
            ("", "- - - -", Some("it prints nothing")),
            ("x\n2\n", "- 2 - -", Some("no number in its first line")),
            (
                "UNKNOWN\nUNKNOWN \n",
                "- - - -",
                Some("no number in its second line"),
            ),
        ] {
            fuzz_output(printed.as_bytes());
            let (answer, wrong) = read_lines(printed.as_bytes());
            let [first, second] = answer.values;
            let all = [first, second, answer.uptime, answer.name]
                .map(text)
                .join(" ");
            assert_eq!(
                (all.as_str(), wrong.as_deref()),
                (expected, problem),
                "{printed:?}"
            );
        }
    }
}
