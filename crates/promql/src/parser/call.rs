//! `rate(x[5m])`

use super::{Node, Parser, above};
use crate::ast::{Call, Expr, Span};
use crate::error::Fault;
use crate::functions::Function;
use crate::operators::BinaryOp;
use crate::token::{Keyword, TokenKind};

impl Parser<'_> {
    /// True if the next token is the name of a function that is called.
    pub(super) fn is_call(&self) -> bool {
        let is_name = match self.peek().kind {
            TokenKind::Identifier => true,
            TokenKind::Keyword(word) => matches!(
                word,
                Keyword::Start
                    | Keyword::End
                    | Keyword::Step
                    | Keyword::Range
                    | Keyword::MaxOf
                    | Keyword::MinOf
            ),
            _ => false,
        };
        is_name && self.peek_at(1).kind == TokenKind::LeftParen
    }

    pub(super) fn call(&mut self) -> Result<Node, Fault> {
        let token = self.next();
        let name = self.word(token);
        let Some(function) = Function::named(name) else {
            let why = Function::refusal(name)
                .unwrap_or_else(|| format!("unknown function with name {name:?}"));
            return Err(Fault::at(token.span, why));
        };
        let (arguments, end) = self.arguments()?;
        let levels = arguments.iter().map(|node| node.levels).max().unwrap_or(0);
        let call = Call {
            function,
            args: arguments.into_iter().map(|node| node.expr).collect(),
            span: token.span.to(end),
        };
        above(Expr::Call(call), levels)
    }

    /// Expressions in parentheses, and where the parenthesis closes.
    pub(super) fn arguments(&mut self) -> Result<(Vec<Node>, Span), Fault> {
        self.next();
        let mut arguments = Vec::new();
        if let Some(end) = self.take(TokenKind::RightParen) {
            return Ok((arguments, end.span));
        }
        loop {
            arguments.push(self.expression(0)?);
            if let Some(end) = self.take(TokenKind::RightParen) {
                return Ok((arguments, end.span));
            }
            let Some(comma) = self.take(TokenKind::Comma) else {
                return Err(self.unexpected("", ""));
            };
            if !self.may_begin_operand() {
                let message = "trailing commas not allowed in function call args";
                return Err(Fault::at(comma.span, message));
            }
        }
    }

    /// True if the next token may begin an operand, or is none at all.
    fn may_begin_operand(&self) -> bool {
        match self.peek().kind {
            TokenKind::Op(BinaryOp::Add | BinaryOp::Subtract)
            | TokenKind::Number
            | TokenKind::Duration
            | TokenKind::String
            | TokenKind::LeftParen
            | TokenKind::LeftBrace
            | TokenKind::Bad => true,
            kind => kind.is_metric_name(),
        }
    }

    /// Where the last token that was taken stands.
    pub(super) fn last_span(&self) -> Span {
        let last = (self.at.checked_sub(1)).and_then(|at| self.tokens.get(at));
        last.map_or(Span::default(), |token| token.span)
    }
}
