//! From a text to tokens. A word inside braces is always a label; between brackets stand durations alone.

use crate::error::Fault;
use crate::number;
use crate::operators::BinaryOp;
use crate::span::Span;
use crate::token::{Keyword, Token, TokenKind};

/// The tokens of a text. The last one is `End` or `Bad`; then there is a fault.
pub(crate) struct Lexed {
    pub tokens: Vec<Token>,
    pub fault: Option<Fault>,
}

/// Parts a text.
pub(crate) fn lex(text: &str) -> Lexed {
    let mut lexer = Lexer {
        text,
        at: 0,
        parens: 0,
        place: LexerState::Outside,
    };
    // Most tokens of real expressions have more than three bytes.
    let mut tokens = Vec::with_capacity(text.len() / 3 + 2);
    loop {
        lexer.skip_blanks();
        let start = lexer.at;
        match lexer.token() {
            Ok(kind) => {
                let span = Span {
                    start,
                    end: lexer.at,
                };
                tokens.push(Token { kind, span });
                if kind == TokenKind::End {
                    return Lexed {
                        tokens,
                        fault: None,
                    };
                }
            }
            Err(message) => {
                let span = Span {
                    start,
                    end: text.len(),
                };
                let kind = TokenKind::Bad;
                tokens.push(Token { kind, span });
                let fault = Some(Fault { span, message });
                return Lexed { tokens, fault };
            }
        }
    }
}

/// Between what the lexer is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LexerState {
    Outside,
    Braces,
    /// Before the first number or word.
    Brackets,
    /// Behind it.
    BracketsWithin(Colon),
}

/// If the colon between range and step has been.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Colon {
    ToCome,
    Seen,
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    /// Parentheses that are open.
    parens: usize,
    place: LexerState,
}

impl Lexer<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Takes a text if it comes next.
    fn take(&mut self, wanted: &str) -> bool {
        let is_next = self.rest().starts_with(wanted);
        if is_next {
            self.at += wanted.len();
        }
        is_next
    }

    /// Takes characters as long as they are of a kind.
    fn take_while(&mut self, is_wanted: fn(char) -> bool) -> &str {
        let start = self.at;
        let rest = self.rest();
        self.at += rest.find(|c| !is_wanted(c)).unwrap_or(rest.len());
        self.text.get(start..self.at).unwrap_or_default()
    }

    fn skip_blanks(&mut self) {
        loop {
            self.take_while(|c| matches!(c, ' ' | '\t' | '\n' | '\r'));
            if !self.take("#") {
                return;
            }
            self.take_while(|c| !matches!(c, '\n' | '\r'));
        }
    }

    fn token(&mut self) -> Result<TokenKind, String> {
        match (self.peek(), self.place) {
            (None, _) => self.end(),
            (Some(c @ ('"' | '\'' | '`')), place) if place != LexerState::Brackets => {
                self.string(c)
            }
            (Some(c), LexerState::Outside) => self.outside(c),
            (Some(c), LexerState::Braces) => self.in_braces(c),
            (Some(c), LexerState::Brackets) => self.in_brackets(c),
            (Some(c), LexerState::BracketsWithin(colon)) => self.further_in_brackets(c, colon),
        }
    }

    fn end(&self) -> Result<TokenKind, String> {
        match self.place {
            LexerState::Braces => Err("unexpected end of input inside braces".into()),
            LexerState::Brackets => Err("unexpected end of input in duration expression".into()),
            LexerState::Outside | LexerState::BracketsWithin(_) if self.parens > 0 => {
                Err("unclosed left parenthesis".into())
            }
            LexerState::BracketsWithin(_) => Err("unclosed left bracket".into()),
            LexerState::Outside => Ok(TokenKind::End),
        }
    }

    fn outside(&mut self, c: char) -> Result<TokenKind, String> {
        if let Some(kind) = self.sign() {
            return Ok(kind);
        }
        match c {
            '0'..='9' => return self.number(),
            '.' if self
                .rest()
                .as_bytes()
                .get(1)
                .is_some_and(u8::is_ascii_digit) =>
            {
                return self.number();
            }
            ':' | '_' | 'a'..='z' | 'A'..='Z' => return Ok(self.word()),
            '(' | ')' => return self.parenthesis(),
            _ => {}
        }
        let first = self.at;
        self.at += c.len_utf8();
        match c {
            ',' => Ok(TokenKind::Comma),
            '@' => Ok(TokenKind::At),
            '=' if self.peek() == Some('~') => Err("unexpected character after '=': '~'".into()),
            '=' => Ok(TokenKind::Assign),
            '!' => match self.peek() {
                Some(next) => Err(format!("unexpected character after '!': {next:?}")),
                None => Err("unexpected end of input after '!'".into()),
            },
            '{' => {
                self.place = LexerState::Braces;
                Ok(TokenKind::LeftBrace)
            }
            '[' => {
                self.place = LexerState::Brackets;
                Ok(TokenKind::LeftBracket)
            }
            ']' => Err("unexpected right bracket ']'".into()),
            _ => {
                self.at = first;
                Err(format!("unexpected character: {c:?}"))
            }
        }
    }

    /// A sign between two expressions, or `</` or `>/`.
    fn sign(&mut self) -> Option<TokenKind> {
        let bytes = self.rest().as_bytes();
        let (op, length) = match (bytes.first()?, bytes.get(1)) {
            (b'=', Some(b'=')) => (BinaryOp::Equal, 2),
            (b'!', Some(b'=')) => (BinaryOp::NotEqual, 2),
            (b'<' | b'>', Some(b'/')) => {
                self.at += 2;
                return Some(TokenKind::Trim);
            }
            (b'<', Some(b'=')) => (BinaryOp::LessOrEqual, 2),
            (b'>', Some(b'=')) => (BinaryOp::GreaterOrEqual, 2),
            (b'<', _) => (BinaryOp::Less, 1),
            (b'>', _) => (BinaryOp::Greater, 1),
            (&byte, _) => (arithmetic(byte)?, 1),
        };
        self.at += length;
        Some(TokenKind::Op(op))
    }

    fn parenthesis(&mut self) -> Result<TokenKind, String> {
        if self.take("(") {
            self.parens += 1;
            return Ok(TokenKind::LeftParen);
        }
        self.at += 1;
        self.parens = (self.parens.checked_sub(1)).ok_or("unexpected right parenthesis ')'")?;
        Ok(TokenKind::RightParen)
    }

    fn word(&mut self) -> TokenKind {
        let word = self.take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | ':'));
        let has_colon = word.contains(':');
        match TokenKind::of_word(word) {
            Some(TokenKind::Keyword(Keyword::Fill)) if !self.is_before_parenthesis() => {
                TokenKind::Identifier
            }
            Some(kind) => kind,
            None if has_colon => TokenKind::MetricIdentifier,
            None => TokenKind::Identifier,
        }
    }

    fn is_before_parenthesis(&self) -> bool {
        let next = self.rest().trim_start_matches([' ', '\t', '\n', '\r']);
        next.starts_with('(')
    }

    fn number(&mut self) -> Result<TokenKind, String> {
        let (kind, length) = number::extent(self.rest());
        let start = self.at;
        self.at += length;
        kind.ok_or_else(|| {
            let word = self.text.get(start..self.at).unwrap_or_default();
            format!("bad number or duration syntax: {word:?}")
        })
    }

    fn in_braces(&mut self, c: char) -> Result<TokenKind, String> {
        if matches!(c, '_' | 'a'..='z' | 'A'..='Z') {
            self.take_while(|c| c.is_ascii_alphanumeric() || c == '_');
            return Ok(TokenKind::Identifier);
        }
        for (sign, kind) in [
            ("=~", TokenKind::Regex),
            ("=", TokenKind::Assign),
            ("!~", TokenKind::NotRegex),
            ("!=", TokenKind::Op(BinaryOp::NotEqual)),
            (",", TokenKind::Comma),
        ] {
            if self.take(sign) {
                return Ok(kind);
            }
        }
        match c {
            '}' => {
                self.at += 1;
                self.place = LexerState::Outside;
                Ok(TokenKind::RightBrace)
            }
            '{' => Err("unexpected left brace '{'".into()),
            '!' => Err(match self.rest().chars().nth(1) {
                Some(next) => format!("unexpected character after '!' inside braces: {next:?}"),
                None => "unexpected end of input inside braces".into(),
            }),
            _ => Err(format!("unexpected character inside braces: {c:?}")),
        }
    }

    fn in_brackets(&mut self, c: char) -> Result<TokenKind, String> {
        let unexpected = || format!("unexpected character in duration expression: {c:?}");
        let kind = match c {
            '0'..='9' | '.' => {
                self.place = LexerState::BracketsWithin(Colon::ToCome);
                return self.number();
            }
            '(' | ')' => return self.parenthesis(),
            'a'..='z' | 'A'..='Z' => {
                self.place = LexerState::BracketsWithin(Colon::ToCome);
                return self.duration_word().ok_or_else(unexpected);
            }
            ':' => return Err("unexpected colon before duration in duration expression".into()),
            ',' => TokenKind::Comma,
            ']' => {
                self.place = LexerState::Outside;
                TokenKind::RightBracket
            }
            _ => {
                let byte = u8::try_from(c).map_err(|_| unexpected())?;
                TokenKind::Op(arithmetic(byte).ok_or_else(unexpected)?)
            }
        };
        self.at += 1;
        Ok(kind)
    }

    fn further_in_brackets(&mut self, c: char, colon: Colon) -> Result<TokenKind, String> {
        let kind = match c {
            ':' if colon == Colon::Seen => return Err("unexpected colon ':'".into()),
            ':' => {
                self.place = LexerState::BracketsWithin(Colon::Seen);
                TokenKind::Colon
            }
            ']' => {
                self.place = LexerState::Outside;
                TokenKind::RightBracket
            }
            '[' => return Err("unexpected left bracket '['".into()),
            '_' | 'a'..='z' | 'A'..='Z' => {
                let kind = self.duration_word();
                return kind.ok_or_else(|| format!("unexpected character: {c:?}, expected ':'"));
            }
            _ => return self.outside(c),
        };
        self.at += 1;
        Ok(kind)
    }

    fn duration_word(&mut self) -> Option<TokenKind> {
        let word = self.take_while(|c| c.is_ascii_alphabetic() || c == '_');
        TokenKind::of_duration_word(word)
    }

    /// Finds the end of a text in quotes. Escapes are read later.
    fn string(&mut self, quote: char) -> Result<TokenKind, String> {
        let mut chars = self.rest().char_indices().skip(1);
        while let Some((at, c)) = chars.next() {
            if c == quote {
                self.at += at + 1;
                return Ok(TokenKind::String);
            }
            match (c, quote) {
                ('\\', '"' | '\'') => {
                    chars.next();
                }
                ('\n', '"' | '\'') => return Err("unterminated quoted string".into()),
                _ => {}
            }
        }
        Err(match quote {
            '`' => "unterminated raw string".into(),
            _ => "unterminated quoted string".into(),
        })
    }
}

fn arithmetic(byte: u8) -> Option<BinaryOp> {
    match byte {
        b'+' => Some(BinaryOp::Add),
        b'-' => Some(BinaryOp::Subtract),
        b'*' => Some(BinaryOp::Multiply),
        b'/' => Some(BinaryOp::Divide),
        b'%' => Some(BinaryOp::Modulo),
        b'^' => Some(BinaryOp::Power),
        _ => None,
    }
}
