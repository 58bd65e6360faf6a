//! The client's side: parses an answer from the bytes received so far.

use super::fields::take_line;

/// Most lines that a status may announce: more than any answer has, far less than memory.
pub const LINES_MAX: u64 = 1 << 26;

/// A complete answer, borrowed from the received bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply<'a> {
    /// Number of lines that follow; negative for an error.
    pub status: i64,
    /// The rest of the first line.
    pub message: &'a [u8],
    /// The lines that follow, without their ends.
    pub lines: Vec<&'a [u8]>,
    /// Size of the whole answer in bytes.
    pub size_bytes: usize,
}

/// Result of [`read`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Came<'a> {
    /// The answer is incomplete.
    Part,
    /// A complete answer.
    Whole(Reply<'a>),
    /// The bytes are not an answer of this protocol.
    Foreign,
}

/// Reads the first answer of `input`.
pub fn read(input: &[u8]) -> Came<'_> {
    let Some((first, mut size_bytes)) = take_line(input) else {
        return Came::Part;
    };
    let Some((status, message)) = status_of(first) else {
        return Came::Foreign;
    };
    let mut lines = Vec::new();
    for _ in 0..status.max(0) {
        let Some((line, size)) = take_line(&input[size_bytes..]) else {
            return Came::Part;
        };
        lines.push(line);
        size_bytes += size;
    }
    Came::Whole(Reply {
        status,
        message,
        lines,
        size_bytes,
    })
}

/// Parses the first line of an answer: the number of lines that follow, or negative for an error, and a message.
/// `None`: the line is not a status line, or announces more than [`LINES_MAX`] lines.
pub fn status_of(line: &[u8]) -> Option<(i64, &[u8])> {
    let blank = memchr::memchr(b' ', line).unwrap_or(line.len());
    let status: i64 = std::str::from_utf8(&line[..blank]).ok()?.parse().ok()?;
    let message = line.get(blank + 1..).unwrap_or_default();
    (status <= LINES_MAX as i64).then_some((status, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_once_they_are_whole() {
        let text = b"2 RRDs\na.rrd\nb c.rrd\n0 PONG\n-1 Unknown command: FOO\n";
        let Came::Whole(reply) = read(text) else {
            panic!("no answer");
        };
        assert_eq!((reply.status, reply.message), (2, &b"RRDs"[..]));
        assert_eq!(reply.lines, [&b"a.rrd"[..], b"b c.rrd"]);
        for cut in 0..reply.size_bytes {
            assert_eq!(read(&text[..cut]), Came::Part, "{cut}");
        }
        let Came::Whole(second) = read(&text[reply.size_bytes..]) else {
            panic!("no second answer");
        };
        assert_eq!((second.status, second.message), (0, &b"PONG"[..]));
        let Came::Whole(third) = read(&text[reply.size_bytes + second.size_bytes..]) else {
            panic!("no third answer");
        };
        assert_eq!((third.status, third.lines.len()), (-1, 0));
    }

    #[test]
    fn what_is_no_answer_is_said_to_be_none() {
        for text in [
            "\n",
            "x y\n",
            "99999999999999999999 x\n",
            "999999999999 x\n",
            "<?xml\n",
        ] {
            assert_eq!(read(text.as_bytes()), Came::Foreign, "{text}");
        }
        assert_eq!(
            read(b"0\n"),
            Came::Whole(Reply {
                status: 0,
                message: b"",
                lines: vec![],
                size_bytes: 2
            })
        );
    }
}
