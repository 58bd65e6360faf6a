//! From a text to an expression: operators by their precedence, each operand with the ranges and modifiers behind it.
//!
//! Prometheus' grammar is one of yacc. This parser resolves ambiguities as the generated one does.

mod aggregation;
mod call;
mod durations;
mod matching;
mod modifiers;
mod selector;

use crate::ast::{
    BinaryExpr, Expr, NumberLiteral, ParenExpr, Span, StringLiteral, UnaryExpr, ValueType,
    VectorSelector,
};
use crate::check;
use crate::error::{Fault, ParseError};
use crate::lexer::{Lexed, lex};
use crate::number;
use crate::operators::{BinaryOp, UnaryOp};
use crate::string;
use crate::token::{Token, TokenKind};
use selector::Regexes;

/// Bytes of a text at most.
pub const TEXT_MAX: usize = 256 << 10;
/// Levels of a tree at most. Whoever walks one may recurse.
pub const LEVELS_MAX: usize = 256;
/// Parentheses, calls and operands within each other at most: the parser takes up to 3 KB of stack for each.
const NESTED_MAX: usize = 128;

/// Reads an expression and checks its types.
pub fn parse(text: &str) -> Result<Expr, ParseError> {
    let mut expr = read(text, Parser::whole).map_err(|fault| ParseError::of(text, fault))?;
    check::check(text, &mut expr).map_err(|fault| ParseError::of(text, fault))?;
    Ok(expr)
}

/// Reads a selector alone, as `match[]` has it.
pub fn parse_selector(text: &str) -> Result<VectorSelector, ParseError> {
    let selector = read(text, Parser::whole_selector).and_then(|selector| {
        check::check_selector(&selector)?;
        Ok(selector)
    });
    selector.map_err(|fault| ParseError::of(text, fault))
}

fn read<'a, T>(text: &'a str, whole: fn(&mut Parser<'a>) -> Result<T, Fault>) -> Result<T, Fault> {
    if text.len() > TEXT_MAX {
        let message = format!("the expression has more than {TEXT_MAX} bytes");
        return Err(Fault::at(Span::default(), message));
    }
    let Lexed { tokens, fault } = lex(text);
    let mut parser = Parser {
        text,
        tokens,
        at: 0,
        fault,
        levels: 0,
        aggregations: 0,
        regexes: Regexes::default(),
        duration_start: 0,
    };
    whole(&mut parser)
}

/// A part of the tree, and how many levels it has.
struct Node {
    expr: Expr,
    levels: usize,
}

struct Parser<'a> {
    text: &'a str,
    /// The last one is `End` or `Bad`.
    tokens: Vec<Token>,
    /// Place of the next token.
    at: usize,
    /// Why the last token is `Bad`.
    fault: Option<Fault>,
    /// Levels that are open.
    levels: usize,
    /// Aggregations whose arguments are being read.
    aggregations: usize,
    /// Regular expressions that were compiled.
    regexes: Regexes,
    /// Place of the first token of the last duration.
    duration_start: usize,
}

/// How strongly a sign binds: as `*` does.
const SIGN_PRECEDENCE: u8 = 5;

/// How strongly an operator binds.
fn precedence(op: BinaryOp) -> u8 {
    match op {
        BinaryOp::Or => 1,
        BinaryOp::And | BinaryOp::Unless => 2,
        BinaryOp::Equal
        | BinaryOp::NotEqual
        | BinaryOp::Less
        | BinaryOp::LessOrEqual
        | BinaryOp::Greater
        | BinaryOp::GreaterOrEqual => 3,
        BinaryOp::Add | BinaryOp::Subtract => 4,
        BinaryOp::Multiply | BinaryOp::Divide | BinaryOp::Modulo | BinaryOp::Atan2 => {
            SIGN_PRECEDENCE
        }
        BinaryOp::Power => 6,
    }
}

impl Parser<'_> {
    fn whole(&mut self) -> Result<Expr, Fault> {
        if self.peek().kind == TokenKind::End {
            return Err(Fault::at(Span::default(), "no expression found in input"));
        }
        let node = self.expression(0)?;
        match self.peek().kind {
            TokenKind::End => Ok(node.expr),
            _ => Err(self.unexpected("", "")),
        }
    }

    fn whole_selector(&mut self) -> Result<VectorSelector, Fault> {
        let selector = self.selector()?;
        match self.peek().kind {
            TokenKind::End => Ok(selector),
            _ => Err(self.unexpected("", "")),
        }
    }

    fn peek(&self) -> Token {
        self.peek_at(0)
    }

    /// The token some places further.
    fn peek_at(&self, further: usize) -> Token {
        let token = self.tokens.get(self.at + further).or(self.tokens.last());
        token.copied().unwrap_or(Token {
            kind: TokenKind::End,
            span: Span::default(),
        })
    }

    fn next(&mut self) -> Token {
        let token = self.peek();
        self.at += 1;
        token
    }

    /// Takes a token if it comes next.
    fn take(&mut self, kind: TokenKind) -> Option<Token> {
        (self.peek().kind == kind).then(|| self.next())
    }

    fn word(&self, token: Token) -> &str {
        let Span { start, end } = token.span;
        self.text.get(start..end).unwrap_or_default()
    }

    /// The fault of a next token that does not fit; empty: nothing to say of where and what fits.
    fn unexpected(&mut self, place: &str, expected: &str) -> Fault {
        let token = self.peek();
        let place = match place {
            "" if self.aggregations > 0 => "aggregation",
            place => place,
        };
        if token.kind == TokenKind::Bad
            && let Some(fault) = self.fault.take()
        {
            return fault;
        }
        let mut message = format!("unexpected {}", token.described(self.text));
        if !place.is_empty() {
            message.push_str(&format!(" in {place}"));
        }
        if !expected.is_empty() {
            message.push_str(&format!(", expected {expected}"));
        }
        Fault::at(token.span, message)
    }

    /// Counts a level that opens.
    fn open_level(&mut self) -> Result<(), Fault> {
        self.levels += 1;
        match self.levels > NESTED_MAX {
            true => Err(too_deep(self.peek().span, NESTED_MAX)),
            false => Ok(()),
        }
    }

    /// Operands and the operators between them that bind at least so strongly.
    fn expression(&mut self, least: u8) -> Result<Node, Fault> {
        self.open_level()?;
        let mut left = self.operand()?;
        while let TokenKind::Op(op) = self.peek().kind {
            if precedence(op) < least {
                break;
            }
            self.next();
            left = self.behind_operator(left, op)?;
        }
        if self.peek().kind == TokenKind::Trim {
            let message = "operators </ and >/ trim native histograms, which are not kept here";
            return Err(Fault::at(self.peek().span, message));
        }
        self.levels -= 1;
        Ok(left)
    }

    fn behind_operator(&mut self, left: Node, op: BinaryOp) -> Result<Node, Fault> {
        let modifiers = self.modifiers_of_operator()?;
        let right = self.expression(match op {
            BinaryOp::Power => precedence(op),
            _ => precedence(op) + 1,
        })?;
        let is_scalar = |node: &Node| node.expr.value_type() == ValueType::Scalar;
        let value_type = match is_scalar(&left) && is_scalar(&right) {
            true => ValueType::Scalar,
            false => ValueType::Vector,
        };
        let levels = left.levels.max(right.levels);
        let span = left.expr.span().to(right.expr.span());
        let binary = BinaryExpr {
            op,
            left: left.expr,
            right: right.expr,
            is_bool: modifiers.is_bool,
            matching: Some(modifiers.matching),
            value_type,
            span,
        };
        above(Expr::Binary(Box::new(binary)), levels)
    }

    /// A sign with the operand that it binds, or an operand alone.
    fn operand(&mut self) -> Result<Node, Fault> {
        let token = self.peek();
        let op = match token.kind {
            TokenKind::Op(BinaryOp::Add) => UnaryOp::Plus,
            TokenKind::Op(BinaryOp::Subtract) => UnaryOp::Minus,
            _ => {
                let node = self.primary()?;
                return self.with_modifiers(node);
            }
        };
        self.next();
        let inner = self.expression(SIGN_PRECEDENCE + 1)?;
        let span = token.span.to(inner.expr.span());
        if let Expr::Number(number) = inner.expr {
            let value = match op {
                UnaryOp::Plus => number.value,
                UnaryOp::Minus => -number.value,
            };
            let number = NumberLiteral {
                value,
                span,
                ..number
            };
            return Ok(leaf(Expr::Number(number)));
        }
        let expr = inner.expr;
        above(
            Expr::Unary(Box::new(UnaryExpr { op, expr, span })),
            inner.levels,
        )
    }

    fn primary(&mut self) -> Result<Node, Fault> {
        let token = self.peek();
        match token.kind {
            TokenKind::Number | TokenKind::Duration => {
                Ok(leaf(Expr::Number(self.number_literal()?)))
            }
            TokenKind::String => {
                self.next();
                let value = self.unquoted(token)?;
                let span = token.span;
                Ok(leaf(Expr::String(StringLiteral { value, span })))
            }
            TokenKind::LeftParen => self.parenthesized(),
            TokenKind::LeftBrace => Ok(leaf(Expr::Vector(self.selector()?))),
            TokenKind::Aggregate(_) | TokenKind::ExperimentalAggregate if self.is_aggregation() => {
                self.aggregation()
            }
            TokenKind::Identifier | TokenKind::Keyword(_) if self.is_call() => self.call(),
            kind if kind.is_metric_name() => Ok(leaf(Expr::Vector(self.selector()?))),
            _ => Err(self.unexpected("", "")),
        }
    }

    fn parenthesized(&mut self) -> Result<Node, Fault> {
        let left = self.next();
        let inner = self.expression(0)?;
        let Some(right) = self.take(TokenKind::RightParen) else {
            return Err(self.unexpected("", ""));
        };
        let expr = inner.expr;
        let span = left.span.to(right.span);
        above(
            Expr::Paren(Box::new(ParenExpr { expr, span })),
            inner.levels,
        )
    }

    /// A number or duration, without a sign.
    fn number_literal(&mut self) -> Result<NumberLiteral, Fault> {
        let token = self.next();
        let word = self.word(token);
        let is_duration = token.kind == TokenKind::Duration;
        let value = match is_duration {
            true => number::duration_ms(word).map(number::seconds_of),
            false => number::number(word),
        };
        Ok(NumberLiteral {
            value: value.map_err(|message| Fault::at(token.span, message))?,
            is_duration,
            span: token.span,
        })
    }

    /// The text of a string.
    fn unquoted(&self, token: Token) -> Result<String, Fault> {
        string::unquoted(self.word(token)).map_err(|message| Fault::at(token.span, message))
    }
}

fn leaf(expr: Expr) -> Node {
    Node { expr, levels: 1 }
}

/// A node above others with a number of levels.
fn above(expr: Expr, levels: usize) -> Result<Node, Fault> {
    let levels = levels + 1;
    match levels > LEVELS_MAX {
        true => Err(too_deep(expr.span(), LEVELS_MAX)),
        false => Ok(Node { expr, levels }),
    }
}

fn too_deep(span: Span, most: usize) -> Fault {
    Fault::at(span, format!("the expression has more than {most} levels"))
}

#[cfg(test)]
mod tests;
