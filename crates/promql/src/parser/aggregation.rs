//! `sum by (job) (x)`, `topk(5, x) without (instance)`

use super::{Node, Parser, above};
use crate::ast::{Aggregation, Expr, Grouping};
use crate::error::Fault;
use crate::functions::Function;
use crate::token::{Keyword, TokenKind};

impl Parser<'_> {
    /// True if the next token, which is the word of an aggregation, is not a metric's name.
    pub(super) fn is_aggregation(&self) -> bool {
        matches!(
            self.peek_at(1).kind,
            TokenKind::LeftParen | TokenKind::Keyword(Keyword::By | Keyword::Without)
        )
    }

    pub(super) fn aggregation(&mut self) -> Result<Node, Fault> {
        let token = self.next();
        let TokenKind::Aggregate(op) = token.kind else {
            let name = self.word(token).to_ascii_lowercase();
            let why = Function::refusal(&name).unwrap_or(name);
            return Err(Fault::at(token.span, why));
        };
        self.aggregations += 1;
        let before = self.grouping()?;
        if self.peek().kind != TokenKind::LeftParen {
            return Err(self.unexpected("", ""));
        }
        let (arguments, mut end) = self.arguments()?;
        self.aggregations -= 1;
        let grouping = match before {
            Some(grouping) => grouping,
            None => match self.grouping()? {
                Some(grouping) => {
                    end = self.last_span();
                    grouping
                }
                None => Grouping::By(Vec::new()),
            },
        };
        let span = token.span.to(end);
        let count = arguments.len();
        let levels = arguments.iter().map(|node| node.levels).max().unwrap_or(0);
        let mut arguments = arguments.into_iter().map(|node| node.expr);
        let wanted = if op.has_parameter() { 2 } else { 1 };
        let parameter = if count == 2 && wanted == 2 {
            arguments.next()
        } else {
            None
        };
        match arguments.next() {
            Some(expr) if count == wanted => above(
                Expr::Aggregation(Box::new(Aggregation {
                    op,
                    expr,
                    parameter,
                    grouping,
                    span,
                })),
                levels,
            ),
            Some(_) => Err(Fault::at(
                span,
                format!(
                    "wrong number of arguments for aggregate expression provided, expected {wanted}, got {count}"
                ),
            )),
            None => Err(Fault::at(
                span,
                "no arguments for aggregate expression provided",
            )),
        }
    }

    fn grouping(&mut self) -> Result<Option<Grouping>, Fault> {
        let grouping = match self.peek().kind {
            TokenKind::Keyword(Keyword::By) => Grouping::By,
            TokenKind::Keyword(Keyword::Without) => Grouping::Without,
            _ => return Ok(None),
        };
        self.next();
        Ok(Some(grouping(self.labels()?)))
    }
}
