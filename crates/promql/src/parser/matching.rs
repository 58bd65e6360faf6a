//! Modifiers of a binary operator: `bool`, `on (a, b)`, `group_left (c)`; and lists of labels.

use super::Parser;
use crate::ast::VectorMatching;
use crate::error::Fault;
use crate::operators::Cardinality;
use crate::token::{Keyword, TokenKind};

/// Modifiers of one operator.
pub(super) struct OperatorModifiers {
    pub is_bool: bool,
    pub matching: VectorMatching,
}

impl Parser<'_> {
    pub(super) fn modifiers_of_operator(&mut self) -> Result<OperatorModifiers, Fault> {
        let is_bool = self.take(TokenKind::Keyword(Keyword::Bool)).is_some();
        let mut matching = VectorMatching {
            cardinality: Cardinality::OneToOne,
            is_on: false,
            labels: Vec::new(),
            include: Vec::new(),
        };
        if let TokenKind::Keyword(word @ (Keyword::On | Keyword::Ignoring)) = self.peek().kind {
            self.next();
            matching.is_on = word == Keyword::On;
            matching.labels = self.labels()?;
            self.group(&mut matching)?;
        }
        if self.peek().kind == TokenKind::Keyword(Keyword::Fill) {
            let message = "binop fill modifiers are experimental and not enabled";
            return Err(Fault::at(self.peek().span, message));
        }
        Ok(OperatorModifiers { is_bool, matching })
    }

    fn group(&mut self, matching: &mut VectorMatching) -> Result<(), Fault> {
        matching.cardinality = match self.peek().kind {
            TokenKind::Keyword(Keyword::GroupLeft) => Cardinality::ManyToOne,
            TokenKind::Keyword(Keyword::GroupRight) => Cardinality::OneToMany,
            _ => return Ok(()),
        };
        self.next();
        if self.peek().kind == TokenKind::LeftParen {
            matching.include = self.labels()?;
        }
        Ok(())
    }

    /// Labels in parentheses.
    pub(super) fn labels(&mut self) -> Result<Vec<String>, Fault> {
        const PLACE: &str = "grouping opts";
        if self.take(TokenKind::LeftParen).is_none() {
            return Err(self.unexpected(PLACE, "\"(\""));
        }
        let mut labels = Vec::new();
        while self.take(TokenKind::RightParen).is_none() {
            labels.push(self.label(PLACE)?);
            let is_last = self.peek().kind == TokenKind::RightParen;
            if self.take(TokenKind::Comma).is_none() && !is_last {
                return Err(self.unexpected(PLACE, "\",\" or \")\""));
            }
        }
        Ok(labels)
    }

    fn label(&mut self, place: &str) -> Result<String, Fault> {
        let token = self.peek();
        if token.kind.is_label_name() {
            self.next();
            return Ok(self.word(token).to_string());
        }
        if token.kind != TokenKind::String {
            return Err(self.unexpected(place, "label"));
        }
        self.next();
        match self.unquoted(token)? {
            label if label.is_empty() => {
                let message = format!("invalid label name for grouping: {label:?}");
                Err(Fault::at(token.span, message))
            }
            label => Ok(label),
        }
    }
}
