//! `up{job="node", "utf-8 name"=~"x.*"}`, `{"a metric", job="node"}`

use kymo_series::{Matcher, Op};

use super::Parser;
use crate::ast::{Edges, VectorSelector};
use crate::duration::Duration;
use crate::error::Fault;
use crate::operators::BinaryOp;
use crate::token::{Token, TokenKind};

/// Regular expressions of a text at most. A thousand small ones took 8 MB and 0.3 s (2026-11-27, two shared cores).
const REGEXES_MAX: usize = 1000;
/// Large ones at most. Each may take the 4 MB that a matcher may have; 64 of the largest took 105 MB and 0.9 s.
const LARGE_REGEXES_MAX: usize = 64;

/// Counts of regular expressions in a text.
#[derive(Default)]
pub(super) struct Regexes {
    all: usize,
    large: usize,
}

impl Regexes {
    fn add(&mut self, regex: &str) -> Result<(), String> {
        // Counts and classes make much of few bytes.
        let is_large = ["{", "\\p", "\\P", "(?", "[[:"]
            .iter()
            .any(|part| regex.contains(part));
        self.all += 1;
        self.large += usize::from(is_large);
        if self.all > REGEXES_MAX {
            return Err(format!(
                "the expression has more than {REGEXES_MAX} regular expressions"
            ));
        }
        if self.large > LARGE_REGEXES_MAX {
            return Err(format!(
                "the expression has more than {LARGE_REGEXES_MAX} regular expressions with counts or classes"
            ));
        }
        Ok(())
    }
}

/// Where a message says that a token does not fit.
const PLACE: &str = "label matching";

impl Parser<'_> {
    pub(super) fn selector(&mut self) -> Result<VectorSelector, Fault> {
        let first = self.peek();
        let mut span = first.span;
        let mut name = None;
        if first.kind.is_metric_name() {
            self.next();
            name = Some(self.word(first).to_string());
        } else if first.kind != TokenKind::LeftBrace {
            return Err(self.unexpected("", ""));
        }
        let mut matchers = Vec::new();
        if self.take(TokenKind::LeftBrace).is_some() {
            self.matchers(&mut matchers)?;
            span = span.to(self.last_span());
        }
        matchers.extend(name.as_deref().map(Matcher::of_metric));
        Ok(VectorSelector {
            name,
            matchers,
            offset: Duration::ZERO,
            at: None,
            edges: Edges::Plain,
            span,
        })
    }

    /// Matchers up to the brace that closes.
    fn matchers(&mut self, matchers: &mut Vec<Matcher>) -> Result<(), Fault> {
        while self.take(TokenKind::RightBrace).is_none() {
            matchers.push(self.matcher()?);
            let is_last = self.peek().kind == TokenKind::RightBrace;
            if self.take(TokenKind::Comma).is_none() && !is_last {
                return Err(self.unexpected(PLACE, "\",\" or \"}\""));
            }
        }
        Ok(())
    }

    fn matcher(&mut self) -> Result<Matcher, Fault> {
        let token = self.peek();
        let label = match token.kind {
            TokenKind::Identifier => self.word(token).to_string(),
            TokenKind::String => self.unquoted(token)?,
            _ => return Err(self.unexpected(PLACE, "identifier or \"}\"")),
        };
        self.next();
        let Some(op) = operator(self.peek()) else {
            return match token.kind {
                TokenKind::String => Ok(Matcher::of_metric(&label)),
                _ => Err(self.unexpected(PLACE, "label matching operator")),
            };
        };
        self.next();
        let Some(value) = self.take(TokenKind::String) else {
            return Err(self.unexpected(PLACE, "string"));
        };
        let text = self.unquoted(value)?;
        if let Op::Matches | Op::NotMatches = op {
            let added = self.regexes.add(&text);
            added.map_err(|message| Fault::at(value.span, message))?;
        }
        Matcher::of_any_label(&label, op, &text)
            .map_err(|error| Fault::at(token.span.to(value.span), error.to_string()))
    }
}

fn operator(token: Token) -> Option<Op> {
    match token.kind {
        TokenKind::Assign => Some(Op::Equal),
        TokenKind::Op(BinaryOp::NotEqual) => Some(Op::NotEqual),
        TokenKind::Regex => Some(Op::Matches),
        TokenKind::NotRegex => Some(Op::NotMatches),
        _ => None,
    }
}
