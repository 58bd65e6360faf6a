//! `kymo rrd -`: reads a command a line, and answers each with `OK` and the resources used so far, or
//! with `ERROR`.

use std::io::{self, BufRead as _, Write as _};
use std::time::Instant;

use super::message::Message;
use super::session::Session;
use super::usage::Mode;
use super::{handle, place};

/// Reads commands to the end of the input; `dir`: folder to begin in.
pub(super) fn run(session: &mut Session, dir: &[u8]) -> u8 {
    let started = Instant::now();
    session.mode = Mode::Piped;
    if let Err((message, code)) = place::begin(dir) {
        message.print_error();
        return code;
    }
    let mut line = Vec::new();
    loop {
        line.clear();
        match next_line(session, &mut line) {
            Ok(true) => {}
            _ => return 0,
        }
        let Some(words) = count_words(&line).then(|| split(&line)) else {
            Message::from("not enough arguments").print(&mut session.out);
            continue;
        };
        let Some(words) = words else {
            Message::from("creating arguments").print(&mut session.out);
            continue;
        };
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        if words == [b"quit"] {
            return 0;
        }
        match answer(session, &words) {
            Ok(()) => say_ok(session, started),
            Err(message) => message.print(&mut session.out),
        }
    }
}

/// Reads the next line with its end. Answers are flushed only when no more commands are buffered.
fn next_line(session: &mut Session, line: &mut Vec<u8>) -> io::Result<bool> {
    if !session.input.buffer().contains(&b'\n') {
        session.out.flush()?;
    }
    Ok(session.input.read_until(b'\n', line)? > 0)
}

fn answer(session: &mut Session, words: &[&[u8]]) -> Result<(), Message> {
    match place::find(words.first().copied().unwrap_or_default()) {
        Some(command) => command(session, &words[1..]),
        None => handle(session, words),
    }
}

fn say_ok(session: &mut Session, started: Instant) {
    let used = kymo_sys::machine::usage();
    let hundredths = |micros: u64| micros as f64 / 1_000_000.0;
    // If the reader is gone, a flush notices it.
    let _ = writeln!(
        session.out,
        "OK u:{:.2} s:{:.2} r:{:.2}",
        hundredths(used.user_us),
        hundredths(used.system_us),
        started.elapsed().as_secs_f64()
    );
}

/// True if a line has a byte other than a blank. An empty line has its end, and so asks for help.
fn count_words(line: &[u8]) -> bool {
    line.iter().any(|&byte| byte != b' ')
}

/// Words of a line: blanks separate them, and quotes of either kind protect blanks and quotes of the
/// other kind. `None`: a quote is left open.
fn split(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let line = trimmed(line);
    let (mut words, mut quote, mut inside) = (Vec::<Vec<u8>>::new(), None, false);
    for &byte in line {
        match byte {
            b' ' if quote.is_none() => inside = false,
            b'"' | b'\'' if quote == Some(byte) => quote = None,
            b'"' | b'\'' if quote.is_none() => {
                quote = Some(byte);
                if !inside {
                    words.push(Vec::new());
                }
                inside = true;
            }
            _ => {
                if !inside {
                    words.push(Vec::new());
                }
                inside = true;
                if let Some(word) = words.last_mut() {
                    word.push(byte);
                }
            }
        }
    }
    quote.is_none().then_some(words)
}

/// The line without blanks and control characters at both ends. rrdtool also removes letters beyond
/// ASCII.
fn trimmed(line: &[u8]) -> &[u8] {
    let kept = |byte: &u8| *byte > b' ';
    let first = line.iter().position(kept).unwrap_or(line.len());
    let behind = line.iter().rposition(kept).map_or(first, |last| last + 1);
    &line[first..behind]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_keep_blanks() {
        let cases: &[(&str, Option<&[&str]>)] = &[
            ("update a.rrd N:1\n", Some(&["update", "a.rrd", "N:1"])),
            ("  a   b \r\n", Some(&["a", "b"])),
            (
                "a 'b c' \"d 'e\" 'f\"'\n",
                Some(&["a", "b c", "d 'e", "f\""]),
            ),
            ("a'b c'd ''\n", Some(&["ab cd", ""])),
            ("a\\ b\n", Some(&["a\\", "b"])),
            ("a\tb\n", Some(&["a\tb"])),
            ("last é\n", Some(&["last", "é"])),
            ("a 'b\n", None),
            ("\n", Some(&[])),
        ];
        for (line, expected) in cases {
            let words = split(line.as_bytes());
            let words: Option<Vec<_>> = words.map(|words| {
                words
                    .into_iter()
                    .map(|w| String::from_utf8(w).unwrap())
                    .collect()
            });
            assert_eq!(
                words.as_deref(),
                expected
                    .map(|w| w.iter().map(ToString::to_string).collect::<Vec<_>>())
                    .as_deref(),
                "{line}"
            );
        }
    }
}
