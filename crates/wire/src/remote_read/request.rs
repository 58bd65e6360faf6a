//! A request: queries, and the forms of answers that the client takes.

use std::fmt;

use kymo_base::varint;

use crate::protobuf::{BadProtobuf, MessageFields, Wire, put_bytes, put_message, put_number};

/// Queries of a request at most. Prometheus sends one.
const QUERIES_MAX: usize = 64;
/// Matchers of a query at most.
const MATCHERS_MAX: usize = 64;
/// Forms of answers that a request names at most.
const FORMS_MAX: usize = 64;

/// Forms of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResponseForm {
    /// All samples in one message.
    Samples,
    /// Chunks in frames.
    Chunks,
}

impl ResponseForm {
    /// All forms, in the order of their numbers.
    pub const ALL: [ResponseForm; 2] = [ResponseForm::Samples, ResponseForm::Chunks];
}

/// Kinds of matchers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MatcherKind {
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `=~`
    Matches,
    /// `!~`
    NotMatches,
}

impl MatcherKind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [MatcherKind; 4] = [
        MatcherKind::Equal,
        MatcherKind::NotEqual,
        MatcherKind::Matches,
        MatcherKind::NotMatches,
    ];
}

/// A matcher. A regular expression may be none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReadMatcher<'a> {
    /// Kind of the matcher.
    pub kind: MatcherKind,
    /// Name of the label.
    pub name: &'a str,
    /// Value, or regular expression.
    pub value: &'a str,
}

/// A query: series and a range of times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadQuery<'a> {
    /// First time, milliseconds since 1970.
    pub from_ms: i64,
    /// Last time, milliseconds since 1970.
    pub thru_ms: i64,
    /// All of them match the series.
    pub matchers: Vec<ReadMatcher<'a>>,
    /// Function that the client calls with the samples; empty: it does not say.
    pub function: &'a str,
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadRequest<'a> {
    /// Queries, each of which gets a result.
    pub queries: Vec<ReadQuery<'a>>,
    /// Form of the answer: the first one of those that the client takes and kymo knows.
    pub form: ResponseForm,
}

/// Why a request is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BadRead {
    /// The bytes are no such message.
    Malformed,
    /// A matcher has a kind that does not exist.
    Kind(u64),
    /// The client takes other forms alone.
    Form,
    /// There are more queries, matchers or forms than a limit.
    TooMany,
}

impl fmt::Display for BadRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadRead::Malformed => f.write_str("the body is no message prometheus.ReadRequest"),
            BadRead::Kind(number) => write!(f, "there is no kind of matcher with number {number}"),
            BadRead::Form => f.write_str(
                "server does not support any of the requested response types; supported: [SAMPLES STREAMED_XOR_CHUNKS]",
            ),
            BadRead::TooMany => write!(
                f,
                "there are more than {QUERIES_MAX} queries, {MATCHERS_MAX} matchers of a query or {FORMS_MAX} response types"
            ),
        }
    }
}

impl From<BadProtobuf> for BadRead {
    fn from(_: BadProtobuf) -> BadRead {
        BadRead::Malformed
    }
}

impl<'a> ReadRequest<'a> {
    /// Reads a message, off which Snappy is taken already.
    pub fn of(message: &'a [u8]) -> Result<ReadRequest<'a>, BadRead> {
        let (mut queries, mut forms) = (Vec::new(), Vec::new());
        for field in MessageFields::of(message) {
            match field? {
                (1, Wire::Bytes(query)) => queries.push(ReadQuery::of(query)?),
                (2, Wire::Varint(form)) => forms.push(form),
                (2, Wire::Bytes(packed)) => {
                    let mut rest = packed;
                    while !rest.is_empty() && forms.len() <= FORMS_MAX {
                        forms.push(varint::take(&mut rest).ok_or(BadRead::Malformed)?);
                    }
                }
                _ => {}
            }
            if queries.len() > QUERIES_MAX || forms.len() > FORMS_MAX {
                return Err(BadRead::TooMany);
            }
        }
        let known = forms
            .iter()
            .find_map(|&form| numbered(&ResponseForm::ALL, form));
        let form = match forms.is_empty() {
            true => ResponseForm::Samples,
            false => known.ok_or(BadRead::Form)?,
        };
        Ok(ReadRequest { queries, form })
    }
}

impl<'a> ReadQuery<'a> {
    fn of(message: &'a [u8]) -> Result<ReadQuery<'a>, BadRead> {
        let mut query = ReadQuery::default();
        for field in MessageFields::of(message) {
            match field? {
                (1, Wire::Varint(from_ms)) => query.from_ms = from_ms.cast_signed(),
                (2, Wire::Varint(thru_ms)) => query.thru_ms = thru_ms.cast_signed(),
                (3, Wire::Bytes(matcher)) => query.matchers.push(ReadMatcher::of(matcher)?),
                (4, Wire::Bytes(hints)) => query.function = function(hints)?,
                _ => {}
            }
            if query.matchers.len() > MATCHERS_MAX {
                return Err(BadRead::TooMany);
            }
        }
        Ok(query)
    }
}

impl<'a> ReadMatcher<'a> {
    fn of(message: &'a [u8]) -> Result<ReadMatcher<'a>, BadRead> {
        let (mut kind, mut name, mut value) = (0, "", "");
        for field in MessageFields::of(message) {
            match field? {
                (1, Wire::Varint(number)) => kind = number,
                (2, Wire::Bytes(bytes)) => name = text(bytes)?,
                (3, Wire::Bytes(bytes)) => value = text(bytes)?,
                _ => {}
            }
        }
        let kind = numbered(&MatcherKind::ALL, kind).ok_or(BadRead::Kind(kind))?;
        Ok(ReadMatcher { kind, name, value })
    }
}

fn numbered<T: Copy>(all: &[T], number: u64) -> Option<T> {
    all.get(usize::try_from(number).ok()?).copied()
}

fn function(hints: &[u8]) -> Result<&str, BadRead> {
    let mut function = "";
    for field in MessageFields::of(hints) {
        if let (2, Wire::Bytes(bytes)) = field? {
            function = text(bytes)?;
        }
    }
    Ok(function)
}

pub(super) fn text(bytes: &[u8]) -> Result<&str, BadRead> {
    std::str::from_utf8(bytes).map_err(|_| BadRead::Malformed)
}

/// Appends a request, before Snappy, that takes these forms of answers.
pub fn put_request(out: &mut Vec<u8>, queries: &[ReadQuery], forms: &[ResponseForm]) {
    for query in queries {
        put_message(out, 1, |out| put_query(out, query));
    }
    if !forms.is_empty() {
        put_message(out, 2, |out| {
            for form in forms {
                let at = ResponseForm::ALL.iter().position(|known| known == form);
                varint::put_count(out, at.unwrap_or(0));
            }
        });
    }
}

fn put_query(out: &mut Vec<u8>, query: &ReadQuery) {
    for (number, t_ms) in [(1, query.from_ms), (2, query.thru_ms)] {
        if t_ms != 0 {
            put_number(out, number, t_ms.cast_unsigned());
        }
    }
    for matcher in &query.matchers {
        put_message(out, 3, |out| {
            let at = MatcherKind::ALL
                .iter()
                .position(|kind| *kind == matcher.kind);
            let number = at.and_then(|at| u64::try_from(at).ok()).unwrap_or(0);
            if number != 0 {
                put_number(out, 1, number);
            }
            put_bytes(out, 2, matcher.name.as_bytes());
            put_bytes(out, 3, matcher.value.as_bytes());
        });
    }
    if !query.function.is_empty() {
        put_message(out, 4, |out| put_bytes(out, 2, query.function.as_bytes()));
    }
}
