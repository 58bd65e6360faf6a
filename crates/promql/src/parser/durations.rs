//! Durations: `5m`, `300`, `step() * 2`, `-(1h + 5m)`, `min_of(step(), 1m)`.

use super::{Parser, SIGN_PRECEDENCE, precedence};
use crate::ast::NumberLiteral;
use crate::duration::{Duration, DurationExpr, DurationOp};
use crate::error::Fault;
use crate::number;
use crate::operators::BinaryOp;
use crate::token::{Keyword, Token, TokenKind};

/// Tokens that a message says would fit.
const EXPECTED: &str = "number, duration, step(), or range()";
/// Tokens of a duration at most.
const TOKENS_MAX: usize = 256;

impl Parser<'_> {
    /// The length of a range or a step, above 0.
    pub(super) fn length(&mut self, place: &str) -> Result<Duration, Fault> {
        self.duration_start = self.at;
        let expr = self.duration(0, place)?;
        let DurationExpr::Number(number) = expr else {
            return Ok(Duration::Computed(Box::new(expr)));
        };
        match fixed(&number)? {
            ms if ms > 0 => Ok(Duration::Fixed(ms)),
            _ => Err(Fault::at(number.span, "duration must be greater than 0")),
        }
    }

    /// The duration of an offset. Arithmetic needs parentheses: `x offset 1m + 1` adds 1 to the value.
    pub(super) fn offset_duration(&mut self) -> Result<Duration, Fault> {
        const PLACE: &str = "offset";
        self.duration_start = self.at;
        let sign = self.sign();
        let further = usize::from(sign.is_some());
        let token = self.peek_at(further);
        let expr = match token.kind {
            TokenKind::Number | TokenKind::Duration | TokenKind::Keyword(_) => {
                if sign.is_some() {
                    self.next();
                }
                let inner = self.duration_operand(PLACE)?;
                signed(sign, inner)
            }
            TokenKind::LeftParen if sign.is_some() => {
                self.next();
                let inner = self.duration_operand(PLACE)?;
                signed(sign, inner)
            }
            _ => self.duration(0, PLACE)?,
        };
        match expr {
            DurationExpr::Number(number) => Ok(Duration::Fixed(fixed(&number)?)),
            computed => Ok(Duration::Computed(Box::new(computed))),
        }
    }

    /// A sign that comes next.
    fn sign(&self) -> Option<Token> {
        let token = self.peek();
        let is_sign = matches!(
            token.kind,
            TokenKind::Op(BinaryOp::Add | BinaryOp::Subtract)
        );
        is_sign.then_some(token)
    }

    /// Operands and the operators between them that bind at least so strongly.
    fn duration(&mut self, least: u8, place: &str) -> Result<DurationExpr, Fault> {
        if self.at - self.duration_start > TOKENS_MAX {
            let message = format!("the duration has more than {TOKENS_MAX} parts");
            return Err(Fault::at(self.peek().span, message));
        }
        let mut left = match self.sign() {
            Some(sign) => {
                self.next();
                let inner = self.duration(SIGN_PRECEDENCE + 1, place)?;
                signed(Some(sign), inner)
            }
            None => self.duration_operand(place)?,
        };
        while let Some((op, strength)) = operator(self.peek()) {
            if strength < least {
                break;
            }
            let token = self.next();
            let right = self.duration(strength + u8::from(op != DurationOp::Power), place)?;
            if let DurationExpr::Number(NumberLiteral { value: 0.0, .. }) = right {
                match op {
                    DurationOp::Divide => return Err(Fault::at(token.span, "division by zero")),
                    DurationOp::Modulo => return Err(Fault::at(token.span, "modulo by zero")),
                    _ => {}
                }
            }
            let span = left.span().to(right.span());
            left = DurationExpr::Binary(op, Box::new((left, right)), span);
        }
        Ok(left)
    }

    fn duration_operand(&mut self, place: &str) -> Result<DurationExpr, Fault> {
        let token = self.peek();
        match token.kind {
            TokenKind::Number | TokenKind::Duration => {
                let number = self.number_literal()?;
                fixed(&number)?;
                Ok(DurationExpr::Number(number))
            }
            TokenKind::LeftParen => {
                self.next();
                let inner = self.duration(0, place)?;
                self.close(place)?;
                let span = token.span.to(self.last_span());
                Ok(match inner {
                    // Parentheses within parentheses say nothing more.
                    DurationExpr::Paren(inner, _) => DurationExpr::Paren(inner, span),
                    inner => DurationExpr::Paren(Box::new(inner), span),
                })
            }
            TokenKind::Keyword(Keyword::Step | Keyword::Range) => {
                self.next();
                self.open(place)?;
                self.close(place)?;
                let span = token.span.to(self.last_span());
                Ok(match token.kind {
                    TokenKind::Keyword(Keyword::Step) => DurationExpr::Step(span),
                    _ => DurationExpr::Range(span),
                })
            }
            TokenKind::Keyword(Keyword::MinOf) => self.extreme(DurationOp::Min, place),
            TokenKind::Keyword(Keyword::MaxOf) => self.extreme(DurationOp::Max, place),
            _ => Err(self.unexpected(place, EXPECTED)),
        }
    }

    /// `min_of(x, y)` or `max_of(x, y)`
    fn extreme(&mut self, op: DurationOp, place: &str) -> Result<DurationExpr, Fault> {
        let token = self.next();
        self.open(place)?;
        let left = self.duration(0, place)?;
        if self.take(TokenKind::Comma).is_none() {
            return Err(self.unexpected(place, EXPECTED));
        }
        let right = self.duration(0, place)?;
        self.close(place)?;
        let span = token.span.to(self.last_span());
        Ok(DurationExpr::Binary(op, Box::new((left, right)), span))
    }

    fn open(&mut self, place: &str) -> Result<(), Fault> {
        match self.take(TokenKind::LeftParen) {
            Some(_) => Ok(()),
            None => Err(self.unexpected(place, EXPECTED)),
        }
    }

    fn close(&mut self, place: &str) -> Result<(), Fault> {
        match self.take(TokenKind::RightParen) {
            Some(_) => Ok(()),
            None => Err(self.unexpected(place, EXPECTED)),
        }
    }
}

/// An operand behind a sign. Of a number the sign is a part.
fn signed(sign: Option<Token>, inner: DurationExpr) -> DurationExpr {
    let Some(token) = sign else {
        return inner;
    };
    let is_minus = token.kind == TokenKind::Op(BinaryOp::Subtract);
    let span = token.span.to(inner.span());
    match inner {
        DurationExpr::Number(number) => DurationExpr::Number(NumberLiteral {
            value: if is_minus {
                -number.value
            } else {
                number.value
            },
            span,
            ..number
        }),
        inner if is_minus => DurationExpr::Negative(Box::new(inner), span),
        inner => inner,
    }
}

/// Milliseconds of a number of seconds.
fn fixed(number: &NumberLiteral) -> Result<i64, Fault> {
    number::ms_of_seconds(number.value)
        .ok_or_else(|| Fault::at(number.span, "duration out of range"))
}

fn operator(token: Token) -> Option<(DurationOp, u8)> {
    let TokenKind::Op(sign) = token.kind else {
        return None;
    };
    let op = match sign {
        BinaryOp::Add => DurationOp::Add,
        BinaryOp::Subtract => DurationOp::Subtract,
        BinaryOp::Multiply => DurationOp::Multiply,
        BinaryOp::Divide => DurationOp::Divide,
        BinaryOp::Modulo => DurationOp::Modulo,
        BinaryOp::Power => DurationOp::Power,
        _ => return None,
    };
    Some((op, precedence(sign)))
}
