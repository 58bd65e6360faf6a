//! Tokens, and how messages name them.

use crate::operators::{AggregateOp, BinaryOp};
use crate::span::Span;

/// A word or sign of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub kind: TokenKind,
    pub span: Span,
}

/// Kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// The end of the text.
    End,
    /// Text that is no token; the lexer has the reason.
    Bad,
    Comma,
    LeftParen,
    RightParen,
    LeftBrace,
    RightBrace,
    LeftBracket,
    RightBracket,
    Colon,
    At,
    /// `=`
    Assign,
    /// `=~`
    Regex,
    /// `!~`
    NotRegex,
    /// A sign, or a word such as `and`.
    Op(BinaryOp),
    /// `</` or `>/`
    Trim,
    Aggregate(AggregateOp),
    /// `limitk` or `limit_ratio`
    ExperimentalAggregate,
    Keyword(Keyword),
    Number,
    Duration,
    String,
    Identifier,
    /// An identifier with a colon.
    MetricIdentifier,
}

/// A word with a meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keyword {
    Anchored,
    Bool,
    By,
    End,
    Fill,
    GroupLeft,
    GroupRight,
    Ignoring,
    MaxOf,
    MinOf,
    Offset,
    On,
    Range,
    Smoothed,
    Start,
    Step,
    Without,
}

/// Words that are no names everywhere, in lower case.
const WORDS: [(&str, TokenKind); 39] = [
    ("and", TokenKind::Op(BinaryOp::And)),
    ("or", TokenKind::Op(BinaryOp::Or)),
    ("unless", TokenKind::Op(BinaryOp::Unless)),
    ("atan2", TokenKind::Op(BinaryOp::Atan2)),
    ("sum", TokenKind::Aggregate(AggregateOp::Sum)),
    ("avg", TokenKind::Aggregate(AggregateOp::Avg)),
    ("count", TokenKind::Aggregate(AggregateOp::Count)),
    ("min", TokenKind::Aggregate(AggregateOp::Min)),
    ("max", TokenKind::Aggregate(AggregateOp::Max)),
    ("group", TokenKind::Aggregate(AggregateOp::Group)),
    ("stddev", TokenKind::Aggregate(AggregateOp::Stddev)),
    ("stdvar", TokenKind::Aggregate(AggregateOp::Stdvar)),
    ("topk", TokenKind::Aggregate(AggregateOp::TopK)),
    ("bottomk", TokenKind::Aggregate(AggregateOp::BottomK)),
    (
        "count_values",
        TokenKind::Aggregate(AggregateOp::CountValues),
    ),
    ("quantile", TokenKind::Aggregate(AggregateOp::Quantile)),
    ("limitk", TokenKind::ExperimentalAggregate),
    ("limit_ratio", TokenKind::ExperimentalAggregate),
    ("offset", TokenKind::Keyword(Keyword::Offset)),
    ("smoothed", TokenKind::Keyword(Keyword::Smoothed)),
    ("anchored", TokenKind::Keyword(Keyword::Anchored)),
    ("by", TokenKind::Keyword(Keyword::By)),
    ("without", TokenKind::Keyword(Keyword::Without)),
    ("on", TokenKind::Keyword(Keyword::On)),
    ("ignoring", TokenKind::Keyword(Keyword::Ignoring)),
    ("group_left", TokenKind::Keyword(Keyword::GroupLeft)),
    ("group_right", TokenKind::Keyword(Keyword::GroupRight)),
    ("fill", TokenKind::Keyword(Keyword::Fill)),
    ("fill_left", TokenKind::Keyword(Keyword::Fill)),
    ("fill_right", TokenKind::Keyword(Keyword::Fill)),
    ("bool", TokenKind::Keyword(Keyword::Bool)),
    ("start", TokenKind::Keyword(Keyword::Start)),
    ("end", TokenKind::Keyword(Keyword::End)),
    ("step", TokenKind::Keyword(Keyword::Step)),
    ("range", TokenKind::Keyword(Keyword::Range)),
    ("max_of", TokenKind::Keyword(Keyword::MaxOf)),
    ("min_of", TokenKind::Keyword(Keyword::MinOf)),
    ("inf", TokenKind::Number),
    ("nan", TokenKind::Number),
];

impl TokenKind {
    /// The kind of a word, in whatever case.
    pub(crate) fn of_word(word: &str) -> Option<TokenKind> {
        let found = (WORDS.iter()).find(|(known, _)| known.eq_ignore_ascii_case(word));
        found.map(|(_, kind)| *kind)
    }

    /// The word of a duration, in whatever case.
    pub(crate) fn of_duration_word(word: &str) -> Option<TokenKind> {
        TokenKind::of_word(word).filter(|kind| match kind {
            TokenKind::Keyword(word) => word.is_of_durations(),
            _ => false,
        })
    }

    /// True if it may be the name of a metric.
    pub(crate) fn is_metric_name(self) -> bool {
        match self {
            TokenKind::Identifier
            | TokenKind::MetricIdentifier
            | TokenKind::Aggregate(_)
            | TokenKind::ExperimentalAggregate => true,
            TokenKind::Op(op) => op.is_set(),
            TokenKind::Keyword(word) => match word {
                Keyword::Bool
                | Keyword::GroupLeft
                | Keyword::GroupRight
                | Keyword::Ignoring
                | Keyword::On => false,
                Keyword::Anchored
                | Keyword::By
                | Keyword::End
                | Keyword::Fill
                | Keyword::MaxOf
                | Keyword::MinOf
                | Keyword::Offset
                | Keyword::Range
                | Keyword::Smoothed
                | Keyword::Start
                | Keyword::Step
                | Keyword::Without => true,
            },
            _ => false,
        }
    }

    /// True if it may be a label of a list such as that of `by`.
    pub(crate) fn is_label_name(self) -> bool {
        match self {
            TokenKind::Identifier
            | TokenKind::MetricIdentifier
            | TokenKind::Aggregate(_)
            | TokenKind::ExperimentalAggregate => true,
            TokenKind::Op(op) => op.is_set() || op == BinaryOp::Atan2,
            TokenKind::Keyword(word) => word != Keyword::Without,
            _ => false,
        }
    }
}

impl Keyword {
    fn is_of_durations(self) -> bool {
        matches!(
            self,
            Keyword::Step | Keyword::Range | Keyword::MaxOf | Keyword::MinOf
        )
    }
}

impl Token {
    /// For a message.
    pub(crate) fn described(self, text: &str) -> String {
        let word = text.get(self.span.start..self.span.end).unwrap_or_default();
        match self.kind {
            TokenKind::End => "end of input".into(),
            TokenKind::Identifier => format!("identifier {word:?}"),
            TokenKind::MetricIdentifier => format!("metric identifier {word:?}"),
            TokenKind::Op(_)
            | TokenKind::Trim
            | TokenKind::At
            | TokenKind::Regex
            | TokenKind::NotRegex => format!("<op:{word}>"),
            TokenKind::Aggregate(_) | TokenKind::ExperimentalAggregate => {
                format!("<aggr:{word}>")
            }
            TokenKind::Keyword(Keyword::Start | Keyword::End) => format!("{word:?}"),
            TokenKind::Keyword(keyword) if keyword.is_of_durations() => format!("{word:?}"),
            TokenKind::Keyword(_) => format!("<{word}>"),
            TokenKind::Number => format!("number {}", shortened(word)),
            TokenKind::Duration => format!("duration {}", shortened(word)),
            TokenKind::String => format!("string {}", shortened(word)),
            TokenKind::Bad
            | TokenKind::Comma
            | TokenKind::LeftParen
            | TokenKind::RightParen
            | TokenKind::LeftBrace
            | TokenKind::RightBrace
            | TokenKind::LeftBracket
            | TokenKind::RightBracket
            | TokenKind::Colon
            | TokenKind::Assign => format!("{word:?}"),
        }
    }
}

/// A quoted word, of which a message shows ten characters.
fn shortened(word: &str) -> String {
    match word.char_indices().nth(10) {
        Some((at, _)) => format!("{:?}...", word.get(..at).unwrap_or_default()),
        None => format!("{word:?}"),
    }
}
