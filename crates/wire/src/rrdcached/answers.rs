//! Answers to a client: a status line, and the lines that it counts. A BATCH collects only errors, each with the number
//! of its command, and sends them at the dot. Texts equal rrdcached's byte for byte.

use super::verb::{TABLE, Verb};

/// Longest status line, with its line end; librrd's client reads lines into a buffer one byte larger.
pub const STATUS_MAX: usize = 4095;

/// The answers of one connection, in order, and its open BATCH.
#[derive(Debug, Default)]
pub struct Answers {
    /// Bytes to send.
    pub out: Vec<u8>,
    batch: Option<Batch>,
}

#[derive(Clone, Debug, Default)]
struct Batch {
    /// Number of the current command, from 1.
    command: u32,
    errors: Vec<u8>,
    error_count: u64,
}

/// A position among the answers, for [`Answers::back_to`].
#[derive(Clone, Debug)]
pub struct Mark {
    out_len: usize,
    batch: Option<Batch>,
}

impl Answers {
    /// The current position. The caller may not remove bytes from `out` before it goes back.
    pub fn mark(&self) -> Mark {
        Mark {
            out_len: self.out.len(),
            batch: self.batch.clone(),
        }
    }

    /// Removes all answers since `mark`.
    pub fn back_to(&mut self, mark: Mark) {
        self.out.truncate(mark.out_len);
        self.batch = mark.batch;
    }

    /// True if a BATCH is open.
    pub fn in_batch(&self) -> bool {
        self.batch.is_some()
    }

    /// Bytes held back until the BATCH ends.
    pub fn batch_size(&self) -> usize {
        self.batch.as_ref().map_or(0, |batch| batch.errors.len())
    }

    /// Bytes of all pending answers: in `out`, and held back until the BATCH ends.
    pub fn size(&self) -> usize {
        self.out.len() + self.batch_size()
    }

    /// Counts a command: the caller has read a line.
    pub fn begin_command(&mut self) {
        if let Some(batch) = &mut self.batch {
            batch.command = batch.command.saturating_add(1);
        }
    }

    /// Uncounts the last command: the caller will read its line again.
    pub fn withdraw_command(&mut self) {
        if let Some(batch) = &mut self.batch {
            batch.command = batch.command.saturating_sub(1);
        }
    }

    /// Answers BATCH and opens it.
    pub fn batch(&mut self) {
        self.ok(&[b"Go ahead.  End with dot '.' on its own line."]);
        self.batch = Some(Batch::default());
    }

    /// Answers the dot that ends a BATCH.
    pub fn end_batch(&mut self) {
        let batch = self.batch.take().unwrap_or_default();
        self.status(batch.error_count, &[b"errors"]);
        self.out.extend_from_slice(&batch.errors);
    }

    /// Answers with success and no further lines.
    pub fn ok(&mut self, message: &[&[u8]]) {
        self.ok_with(b"", message);
    }

    /// Answers with success and `lines`, each with its line feed. Inside BATCH nothing is sent.
    pub fn ok_with(&mut self, lines: &[u8], message: &[&[u8]]) {
        if self.batch.is_none() {
            let count = memchr::memchr_iter(b'\n', lines).count() as u64;
            self.status(count, message);
            self.out.extend_from_slice(lines);
        }
    }

    /// Answers with success and `count` lines; the caller appends their bytes, which may contain more line feeds, to
    /// the returned buffer. Not for use inside BATCH.
    pub fn ok_counted(&mut self, count: usize, message: &[&[u8]]) -> &mut Vec<u8> {
        self.status(count as u64, message);
        &mut self.out
    }

    /// Answers with an error.
    pub fn error(&mut self, message: &[&[u8]]) {
        match &mut self.batch {
            None => put_status(&mut self.out, b"-1", message),
            Some(batch) => {
                batch.error_count += 1;
                let number = batch.command.to_string();
                put_status(&mut batch.errors, number.as_bytes(), message);
            }
        }
    }

    fn status(&mut self, count: u64, message: &[&[u8]]) {
        put_status(&mut self.out, count.to_string().as_bytes(), message);
    }

    /// Answers an UPDATE of `count` values. This is the most frequent answer.
    pub fn enqueued(&mut self, count: usize) {
        match (&self.batch, count) {
            (Some(_), _) => {}
            (None, 1) => {
                let line = b"0 errors, enqueued 1 value(s).\n";
                self.out.extend_from_slice(line);
            }
            (None, _) => {
                let count = count.to_string();
                self.ok(&[b"errors, enqueued ", count.as_bytes(), b" value(s)."]);
            }
        }
    }

    /// Answers a command that was used wrongly.
    pub fn usage(&mut self, verb: Verb) {
        let syntax = verb.entry().syntax.unwrap_or("Syntax error.\n");
        self.error(&[b"Usage: ", syntax.trim_end_matches('\n').as_bytes()]);
    }

    /// Answers HELP, or HELP of a command; `note` is one more line behind the latter.
    pub fn help(&mut self, word: Option<&[u8]>, note: Option<&str>) {
        let entry = word.and_then(Verb::named).map(Verb::entry);
        let Some(syntax) = entry.and_then(|entry| entry.syntax) else {
            let lines: String = TABLE.iter().filter_map(|entry| entry.syntax).collect();
            return self.ok_with(lines.as_bytes(), &[b"Command overview"]);
        };
        let (name, help) = entry.map_or(("", None), |entry| (entry.name, entry.help));
        let mut lines = format!("Usage: {syntax}\n");
        if let Some(help) = help {
            lines.push_str(help);
            lines.push('\n');
        }
        if let Some(note) = note {
            lines.push_str(note);
            lines.push('\n');
        }
        self.ok_with(lines.as_bytes(), &[b"Help for ", name.as_bytes()]);
    }
}

/// Appends a line of at most [`STATUS_MAX`] bytes. A longer message is cut; the line end stays.
fn put_status(out: &mut Vec<u8>, number: &[u8], message: &[&[u8]]) {
    let begin = out.len();
    out.extend_from_slice(number);
    out.push(b' ');
    for part in message {
        out.extend_from_slice(part);
    }
    out.truncate(begin + STATUS_MAX - 1);
    // A line feed in `message` would be an uncounted line. Names contain none; only CREATE's hint has one, on purpose.
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(talk: impl FnOnce(&mut Answers)) -> String {
        let mut answers = Answers::default();
        talk(&mut answers);
        String::from_utf8(answers.out).expect("text")
    }

    #[test]
    fn plain_answers() {
        type Talk = fn(&mut Answers);
        let table: &[(Talk, &str)] = &[
            (|a| a.ok(&[b"PONG"]), "0 PONG\n"),
            (|a| a.ok_with(b"x\ny\n", &[b"RRDs"]), "2 RRDs\nx\ny\n"),
            (
                |a| a.error(&[b"Unknown command: ", b"FOO"]),
                "-1 Unknown command: FOO\n",
            ),
            (|a| a.enqueued(1), "0 errors, enqueued 1 value(s).\n"),
            (|a| a.enqueued(12), "0 errors, enqueued 12 value(s).\n"),
            (|a| a.usage(Verb::Flush), "-1 Usage: FLUSH <filename>\n"),
            (
                |a| a.help(Some(b"flush"), None),
                "5 Help for FLUSH\nUsage: FLUSH <filename>\n\n\
                 Adds the given filename to the head of the update queue and returns\n\
                 after it has been dequeued.\n\n",
            ),
            (
                |a| a.help(Some(b"HELP"), None),
                "2 Help for HELP\nUsage: HELP [<command>]\n\n",
            ),
        ];
        for (talk, expected) in table {
            assert_eq!(text_of(talk), *expected);
        }
        for word in [
            None,
            Some(&b"FOO"[..]),
            Some(b""),
            Some(b"WROTE"),
            Some(b"."),
        ] {
            let overview = text_of(|a| a.help(word, None));
            assert!(overview.starts_with("24 Command overview\nUPDATE <filename>"));
            assert_eq!(overview.matches('\n').count(), 25);
        }
    }

    #[test]
    fn a_batch_says_only_what_went_wrong() {
        let text = text_of(|a| {
            a.batch();
            for (i, good) in [true, false, true, false].into_iter().enumerate() {
                a.begin_command();
                if i == 2 {
                    a.withdraw_command();
                    a.begin_command();
                }
                match good {
                    true => a.ok_with(b"lines\n", &[b"fine"]),
                    false => a.error(&[b"bad"]),
                }
            }
            a.begin_command();
            a.enqueued(3);
            assert!(a.in_batch() && a.batch_size() == 12);
            a.end_batch();
            a.ok(&[b"PONG"]);
        });
        let begin = "0 Go ahead.  End with dot '.' on its own line.\n";
        assert_eq!(text, format!("{begin}2 errors\n2 bad\n4 bad\n0 PONG\n"));
    }

    #[test]
    fn what_was_said_can_be_taken_back() {
        let text = text_of(|a| {
            a.batch();
            a.begin_command();
            a.error(&[b"first"]);
            let mark = a.mark();
            a.begin_command();
            a.error(&[b"second"]);
            a.end_batch();
            a.ok(&[b"PONG"]);
            a.back_to(mark);
            a.begin_command();
            a.error(&[b"other"]);
            a.end_batch();
        });
        assert!(
            text.ends_with("own line.\n2 errors\n1 first\n2 other\n"),
            "{text}"
        );
    }

    #[test]
    fn a_status_line_fits_the_clients_buffer() {
        let long = [b'x'; 1 << 16];
        let text = text_of(|a| a.error(&[b"Unknown command: ", &long]));
        assert_eq!(text.len(), STATUS_MAX);
        assert!(text.ends_with("x\n"));
    }
}
