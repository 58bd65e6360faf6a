//! Converts the RPN of a COMPUTE data source from text to the 80 bytes in the header, and back.
//!
//! A node is four bytes: the operator, a byte of padding, and a 16-bit value, which is a constant or the index of a
//! data source. The last node is [`END`].

use crate::error::Error;
use crate::header::{DsDef, Univals};
use crate::number::{Parsed, strtodbl};

/// Most nodes of a program, including its end.
pub const NODES_MAX: usize = 20;
/// Operator: a constant.
pub const NUMBER: u8 = 0;
/// Operator: a data source's value.
pub const VARIABLE: u8 = 1;
/// Operator: the end of the program.
pub const END: u8 = 32;
/// Operator: a data source's previous value.
pub const PREV_OTHER: u8 = 36;

/// The error for whatever is wrong with a program.
const FAILED: &str = "failed to parse computed data source";
/// Longest number, bytes.
const NUMBER_LEN: usize = 40;
/// Longest name, bytes.
const NAME_LEN: usize = 255;

/// A node of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// The operator.
    pub op: u8,
    /// The constant, or the index of the data source.
    pub value: i16,
}

/// Operators without a value, by number. Forbidden ones must not be in a COMPUTE data source.
const WORDS: &[(u8, &str, Use)] = &[
    (2, "INF", Use::Free),
    (3, "PREV", Use::Forbidden),
    (4, "NEGINF", Use::Free),
    (5, "UNKN", Use::Free),
    (6, "NOW", Use::Free),
    (7, "TIME", Use::Forbidden),
    (8, "+", Use::Free),
    (9, "%", Use::Free),
    (10, "-", Use::Free),
    (11, "*", Use::Free),
    (12, "/", Use::Free),
    (13, "SIN", Use::Free),
    (14, "DUP", Use::Free),
    (15, "EXC", Use::Free),
    (16, "POP", Use::Free),
    (17, "COS", Use::Free),
    (18, "LOG", Use::Free),
    (19, "EXP", Use::Free),
    (20, "LT", Use::Free),
    (21, "LE", Use::Free),
    (22, "GT", Use::Free),
    (23, "GE", Use::Free),
    (24, "EQ", Use::Free),
    (25, "IF", Use::Free),
    (26, "MIN", Use::Free),
    (27, "MAX", Use::Free),
    (28, "LIMIT", Use::Free),
    (29, "FLOOR", Use::Free),
    (30, "CEIL", Use::Free),
    (31, "UN", Use::Free),
    (33, "LTIME", Use::Forbidden),
    (34, "NE", Use::Free),
    (35, "ISINF", Use::Free),
    (37, "COUNT", Use::Forbidden),
    (38, "ATAN", Use::Free),
    (39, "SQRT", Use::Free),
    (40, "SORT", Use::Free),
    (41, "REV", Use::Free),
    (42, "TREND", Use::Forbidden),
    (43, "TRENDNAN", Use::Forbidden),
    (44, "ATAN2", Use::Free),
    (45, "RAD2DEG", Use::Free),
    (46, "DEG2RAD", Use::Free),
    (47, "PREDICT", Use::Forbidden),
    (48, "PREDICTSIGMA", Use::Forbidden),
    (49, "AVG", Use::Free),
    (50, "ABS", Use::Free),
    (51, "ADDNAN", Use::Free),
    (52, "MINNAN", Use::Free),
    (53, "MAXNAN", Use::Free),
    (54, "MEDIAN", Use::Free),
    (55, "PREDICTPERC", Use::Forbidden),
    (56, "DEPTH", Use::Free),
    (57, "COPY", Use::Free),
    (58, "ROLL", Use::Free),
    (59, "INDEX", Use::Free),
    (60, "STEPWIDTH", Use::Forbidden),
    (61, "NEWDAY", Use::Forbidden),
    (62, "NEWWEEK", Use::Forbidden),
    (63, "NEWMONTH", Use::Forbidden),
    (64, "NEWYEAR", Use::Forbidden),
    (65, "SMIN", Use::Free),
    (66, "SMAX", Use::Free),
    (67, "STDEV", Use::Free),
    (68, "PERCENT", Use::Free),
    (69, "POW", Use::Free),
    // Since 1.8.
    (70, "ROUND", Use::Free),
];

#[derive(Clone, Copy, PartialEq)]
enum Use {
    Free,
    Forbidden,
}

/// Compiles a program. `known` has the data sources before this one.
pub fn compile(text: &[u8], known: &[DsDef]) -> Result<Univals, Error> {
    let tokens = parse(text, known).ok_or_else(|| Error::new(FAILED))?;
    if tokens.iter().any(is_forbidden) {
        return Err(Error::new(
            "operators TIME LTIME STEPWIDTH PREV NEW* COUNT TREND TRENDNAN PREDICT PREDICTSIGMA PREDICTPERC \
             are not supported with DS COMPUTE",
        ));
    }
    if tokens.len() >= NODES_MAX {
        return Err(Error::new(format!(
            "Maximum {} RPN nodes permitted. Got {} RPN nodes at present.",
            NODES_MAX - 1,
            tokens.len()
        )));
    }
    let mut bytes = [0; 80];
    for (i, token) in tokens.iter().chain([&Token::Op(END)]).enumerate() {
        let node = node(token)?;
        bytes[4 * i] = node.op;
        bytes[4 * i + 2..4 * i + 4].copy_from_slice(&node.value.to_le_bytes());
    }
    Ok(std::array::from_fn(|i| {
        u64::from_le_bytes(std::array::from_fn(|j| bytes[8 * i + j]))
    }))
}

/// The nodes of a program, without its end.
pub fn nodes(par: &Univals) -> impl Iterator<Item = Node> {
    let node = |i: usize| {
        let [op, _, low, high] = ((par[i / 2] >> (32 * (i % 2))) as u32).to_le_bytes();
        Node {
            op,
            value: i16::from_le_bytes([low, high]),
        }
    };
    (0..NODES_MAX).map(node).take_while(|node| node.op != END)
}

/// Appends a program's text. Operators unknown to rrdtool become empty words.
pub fn print(par: &Univals, ds: &[DsDef], out: &mut Vec<u8>) {
    for (i, node) in nodes(par).enumerate() {
        if i > 0 {
            out.push(b',');
        }
        match node.op {
            NUMBER => out.extend_from_slice(node.value.to_string().as_bytes()),
            VARIABLE => {
                let ds = usize::try_from(node.value).ok().and_then(|i| ds.get(i));
                out.extend_from_slice(ds.map_or(b"", DsDef::name));
            }
            op => {
                let word = WORDS.iter().find(|word| word.0 == op);
                out.extend_from_slice(word.map_or("", |word| word.1).as_bytes());
            }
        }
    }
}

enum Token {
    Number(f64),
    Source(u8, usize),
    Op(u8),
}

fn is_forbidden(token: &Token) -> bool {
    let Token::Op(op) = token else { return false };
    WORDS
        .iter()
        .any(|word| word.0 == *op && word.2 == Use::Forbidden)
}

fn node(token: &Token) -> Result<Node, Error> {
    let (op, value) = match *token {
        Token::Number(number) => {
            if number.floor() != number || i16::try_from(number as i64).is_err() {
                return Err(Error::new(format!(
                    "constants must be integers in the interval ({}, {})",
                    i16::MIN,
                    i16::MAX
                )));
            }
            (NUMBER, number as i16)
        }
        Token::Source(op, index) => (op, index as i16),
        Token::Op(op) => (op, 0),
    };
    Ok(Node { op, value })
}

fn parse(text: &[u8], known: &[DsDef]) -> Option<Vec<Token>> {
    let (mut tokens, mut rest) = (Vec::new(), text);
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let (token, len) = token(rest, known)?;
        tokens.push(token);
        rest = &rest[len..];
        match rest {
            [] => {}
            [b',', tail @ ..] => rest = tail,
            _ => return None,
        }
    }
    Some(tokens)
}

/// The first token and its length. As in rrdtool, a number needs a comma behind it.
fn token(rest: &[u8], known: &[DsDef]) -> Option<(Token, usize)> {
    let len = run(rest, NUMBER_LEN, |byte| b"0123456789.e+-".contains(&byte));
    if rest.get(len) == Some(&b',')
        && let Parsed::All(number) = strtodbl(&rest[..len])
    {
        return Some((Token::Number(number), len));
    }
    let end = rest.iter().position(|&byte| byte == b',');
    let word = &rest[..end.unwrap_or(rest.len())];
    if let Some(found) = WORDS.iter().find(|found| found.1.as_bytes() == word) {
        return Some((Token::Op(found.0), word.len()));
    }
    if let Some(name) = word.strip_prefix(b"PREV(") {
        let len = run(name, NAME_LEN, is_name);
        // As in rrdtool, any byte may stand at the place of the closing bracket.
        let source = source(&name[..len], known).filter(|_| len > 0 && name.len() == len + 1)?;
        return Some((Token::Source(PREV_OTHER, source), word.len()));
    }
    let whole = run(word, NAME_LEN, is_name) == word.len();
    let source = source(word, known).filter(|_| whole)?;
    Some((Token::Source(VARIABLE, source), word.len()))
}

fn source(name: &[u8], known: &[DsDef]) -> Option<usize> {
    known.iter().position(|ds| ds.name() == name)
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

fn run(text: &[u8], max: usize, is: impl Fn(u8) -> bool) -> usize {
    text.iter().take(max).take_while(|&&byte| is(byte)).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::field;

    #[test]
    fn programs_come_back_as_text() {
        let source = |name: &[u8]| DsDef {
            ds_nam: field(name),
            dst: field(b"GAUGE"),
            par: [0; 10],
        };
        let known = [source(b"a"), source(b"b-1")];
        let nineteen = ["a"; 19].join(",");
        let twenty = ["a"; 20].join(",");
        let cases = [
            ("a", Some("a")),
            ("a,b-1,+", Some("a,b-1,+")),
            ("a,-5,*,", Some("a,-5,*")),
            ("a,1e2,*", Some("a,100,*")),
            ("a,PREV(b-1),-", Some("a,,-")),
            ("a,8", None),
            ("", None),
            ("c", None),
            (",a", None),
            ("a,1.5,*", None),
            ("a,32768,*", None),
            ("a,inf,*", None),
            ("a,TIME,+", None),
            (&nineteen, Some(&nineteen)),
            (&twenty, None),
        ];
        for (text, expected) in cases {
            let printed = compile(text.as_bytes(), &known).map(|par| {
                let mut out = Vec::new();
                print(&par, &known, &mut out);
                out
            });
            assert_eq!(
                printed.ok().as_deref(),
                expected.map(str::as_bytes),
                "{text}"
            );
        }
    }
}
