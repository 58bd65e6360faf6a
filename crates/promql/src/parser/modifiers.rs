//! Ranges and modifiers behind an operand: `[5m]`, `[1h:1m]`, `offset 5m`, `@ 1.5`, `anchored`.

use super::{Node, Parser, above};
use crate::ast::{At, Edges, Expr, MatrixSelector, Span, Subquery, VectorSelector};
use crate::duration::Duration;
use crate::error::Fault;
use crate::number;
use crate::number_text::plain;
use crate::operators::BinaryOp;
use crate::token::{Keyword, TokenKind};

impl Parser<'_> {
    pub(super) fn with_modifiers(&mut self, mut node: Node) -> Result<Node, Fault> {
        loop {
            let token = self.peek();
            node = match token.kind {
                TokenKind::LeftBracket => self.range(node)?,
                TokenKind::Keyword(Keyword::Offset) => self.offset(node)?,
                TokenKind::At => self.at_time(node)?,
                TokenKind::Keyword(Keyword::Anchored) => self.edges(node, Edges::Anchored)?,
                TokenKind::Keyword(Keyword::Smoothed) => self.edges(node, Edges::Smoothed)?,
                _ => return Ok(node),
            };
        }
    }

    /// A range, or a subquery.
    fn range(&mut self, node: Node) -> Result<Node, Fault> {
        let left = self.next();
        let range = self.length("subquery or range selector")?;
        if let Some(right) = self.take(TokenKind::RightBracket) {
            let selector = ranged(node, left.span.to(right.span))?;
            let span = selector.span.to(right.span);
            return above(
                Expr::Matrix(MatrixSelector {
                    selector,
                    range,
                    span,
                }),
                1,
            );
        }
        if self.take(TokenKind::Colon).is_none() {
            return Err(self.unexpected("subquery or range", "\":\" or \"]\""));
        }
        let step = match self.peek().kind {
            TokenKind::RightBracket => None,
            _ => Some(self.length("subquery selector")?),
        };
        let Some(right) = self.take(TokenKind::RightBracket) else {
            return Err(self.unexpected("subquery selector", "\"]\""));
        };
        let subquery = Subquery {
            span: node.expr.span().to(right.span),
            expr: node.expr,
            range,
            step,
            offset: Duration::ZERO,
            at: None,
        };
        above(Expr::Subquery(Box::new(subquery)), node.levels)
    }

    fn offset(&mut self, mut node: Node) -> Result<Node, Fault> {
        self.next();
        let offset = self.offset_duration()?;
        let end = self.last_span();
        let Some(shift) = Shift::of(&mut node.expr) else {
            return Err(unshiftable(node.expr.span(), "offset"));
        };
        if *shift.offset != Duration::ZERO {
            return Err(Fault::at(
                *shift.span,
                "offset may not be set multiple times",
            ));
        }
        *shift.offset = offset;
        shift.span.end = end.end;
        Ok(node)
    }

    fn at_time(&mut self, mut node: Node) -> Result<Node, Fault> {
        self.next();
        let at = match self.peek().kind {
            TokenKind::Keyword(Keyword::Start) => self.at_edge(At::Start)?,
            TokenKind::Keyword(Keyword::End) => self.at_edge(At::End)?,
            _ => self.timestamp(node.expr.span())?,
        };
        let end = self.last_span();
        let Some(shift) = Shift::of(&mut node.expr) else {
            return Err(unshiftable(node.expr.span(), "@"));
        };
        if shift.at.is_some() {
            let message = "@ <timestamp> may not be set multiple times";
            return Err(Fault::at(*shift.span, message));
        }
        *shift.at = Some(at);
        shift.span.end = end.end;
        Ok(node)
    }

    /// `start()` or `end()`
    fn at_edge(&mut self, at: At) -> Result<At, Fault> {
        self.next();
        for kind in [TokenKind::LeftParen, TokenKind::RightParen] {
            if self.take(kind).is_none() {
                return Err(self.unexpected("@", "timestamp"));
            }
        }
        Ok(at)
    }

    fn timestamp(&mut self, span: Span) -> Result<At, Fault> {
        let sign = match self.peek().kind {
            TokenKind::Op(BinaryOp::Subtract) => -1.0,
            _ => 1.0,
        };
        if let TokenKind::Op(BinaryOp::Add | BinaryOp::Subtract) = self.peek().kind {
            self.next();
        }
        let (TokenKind::Number | TokenKind::Duration) = self.peek().kind else {
            return Err(self.unexpected("@", "timestamp"));
        };
        let seconds = sign * self.number_literal()?.value;
        let ms = (seconds * 1000.0).round();
        // A time that has no milliseconds in 64 bits is out of bounds too.
        if ms.is_nan() || ms.abs() >= 9.2e18 {
            let shown = plain(seconds);
            let message = format!("timestamp out of bounds for @ modifier: {shown}");
            return Err(Fault::at(span, message));
        }
        Ok(At::Time(number::whole(ms)))
    }

    fn edges(&mut self, mut node: Node, edges: Edges) -> Result<Node, Fault> {
        self.next();
        let word = match edges {
            Edges::Smoothed => "smoothed",
            Edges::Plain | Edges::Anchored => "anchored",
        };
        let span = node.expr.span();
        let selector: &mut VectorSelector = match &mut node.expr {
            Expr::Vector(selector) => selector,
            Expr::Matrix(matrix) => &mut matrix.selector,
            Expr::Subquery(_) => {
                let message = format!("{word} modifier is not supported for subqueries");
                return Err(Fault::at(span, message));
            }
            _ => return Err(Fault::at(span, format!("{word} modifier not implemented"))),
        };
        if selector.edges != Edges::Plain && selector.edges != edges {
            let message = "anchored and smoothed modifiers cannot be used together";
            return Err(Fault::at(span, message));
        }
        // As in Prometheus, the word is no part of the selector's bytes.
        selector.edges = edges;
        Ok(node)
    }
}

/// The selector that a range is put to.
fn ranged(node: Node, brackets: Span) -> Result<VectorSelector, Fault> {
    let Expr::Vector(selector) = node.expr else {
        let message = "ranges only allowed for vector selectors";
        return Err(Fault::at(brackets, message));
    };
    let message = match () {
        () if selector.offset != Duration::ZERO => "no offset modifiers allowed before range",
        () if selector.at.is_some() => "no @ modifiers allowed before range",
        () => return Ok(selector),
    };
    Err(Fault::at(brackets, message))
}

fn unshiftable(span: Span, modifier: &str) -> Fault {
    let message = if modifier == "@" {
        "@ modifier must be preceded by an instant vector selector or range vector selector or a subquery"
    } else {
        "offset modifier must be preceded by an instant vector selector or range vector selector or a subquery"
    };
    Fault::at(span, message)
}

/// Fields that `offset` and `@` change.
struct Shift<'a> {
    offset: &'a mut Duration,
    at: &'a mut Option<At>,
    span: &'a mut Span,
}

impl Shift<'_> {
    fn of(expr: &mut Expr) -> Option<Shift<'_>> {
        match expr {
            Expr::Vector(selector) => Some(Shift {
                offset: &mut selector.offset,
                at: &mut selector.at,
                span: &mut selector.span,
            }),
            Expr::Matrix(matrix) => Some(Shift {
                offset: &mut matrix.selector.offset,
                at: &mut matrix.selector.at,
                span: &mut matrix.span,
            }),
            Expr::Subquery(subquery) => Some(Shift {
                offset: &mut subquery.offset,
                at: &mut subquery.at,
                span: &mut subquery.span,
            }),
            Expr::Number(_)
            | Expr::String(_)
            | Expr::Unary(_)
            | Expr::Binary(_)
            | Expr::Aggregation(_)
            | Expr::Call(_)
            | Expr::Paren(_) => None,
        }
    }
}
