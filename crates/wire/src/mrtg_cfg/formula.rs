//! Parses the arithmetic of a `Target[]`, in which each reading has been replaced by a marker: the subset of Perl that
//! configurations use. Anything else is refused.

use super::expression::{
    Comparison, Expression, Formulas, Function, Node, NodeNumber, Operands, Operator,
};
use super::lines;
use super::perl::is_word;
use super::text::{narrow, wide};
use kymo_base::limits::MRTG_EXPRESSION_DEPTH_MAX;

/// MRTG replaces a reading by its number between these two texts.
pub(super) const BEFORE: &[u8] = b" $target->[";
pub(super) const BEHIND: &[u8] = b"]{$mode} ";

/// Parses a whole text.
pub(super) fn parse(
    text: &[u8],
    readings: usize,
    formulas: &mut Formulas,
) -> Result<Expression, String> {
    let (nodes, operands) = (formulas.nodes.len(), formulas.operands.len());
    let mut parser = Parser {
        rest: trim_start(text),
        readings,
        formulas,
        depth: 0,
    };
    while parser.take(b";") {}
    let parsed = parser.choice().and_then(|node| {
        while parser.take(b";") {}
        match parser.rest {
            [] => Ok(node),
            _ => Err(parser.refusal()),
        }
    });
    let expression = parsed.map(|node| simplest(node, formulas, (nodes, operands)));
    if !matches!(expression, Ok(Expression::Formula(..))) {
        formulas.nodes.truncate(nodes);
    }
    expression
}

/// Reduces a formula to a single reading or a sum of readings if it is one. Earlier formulas have `before` nodes and operands.
fn simplest(node: u32, formulas: &mut Formulas, before: (usize, usize)) -> Expression {
    if let Node::Reading(number) = formulas.nodes[wide(node)] {
        return Expression::Reading(number);
    }
    let of_nodes = formulas.nodes[before.0..].iter();
    let mut readings: Vec<u32> = of_nodes
        .filter_map(|node| match node {
            Node::Reading(number) => Some(*number),
            _ => None,
        })
        .collect();
    let count = readings.len();
    let is_sum = is_sum(node, formulas);
    readings.sort_unstable();
    readings.dedup();
    let is_sum = is_sum && readings.len() == count;
    if is_sum {
        formulas.operands.truncate(before.1);
    }
    let (start, len) = (narrow(formulas.operands.len()), narrow(readings.len()));
    formulas.operands.extend(readings);
    let range = Operands { start, len };
    match is_sum {
        true => Expression::Sum(range),
        false => Expression::Formula(NodeNumber(node), range),
    }
}

fn is_sum(node: u32, formulas: &Formulas) -> bool {
    let Node::Chain(range) = formulas.nodes[wide(node)] else {
        return false;
    };
    let is_reading = |node: u32| matches!(formulas.nodes[wide(node)], Node::Reading(_));
    let mut parts = formulas.operands(range).iter().enumerate();
    parts.all(|(at, part)| match at % 2 {
        0 => is_reading(*part),
        _ => *part == Operator::Add.number(),
    })
}

/// Removes leading blanks and comments, which end with their line.
fn trim_start(mut text: &[u8]) -> &[u8] {
    loop {
        text = lines::trim_start(text);
        if text.first() != Some(&b'#') {
            return text;
        }
        let end = memchr::memchr(b'\n', text);
        text = &text[end.unwrap_or(text.len())..];
    }
}

struct Parser<'t, 'f> {
    /// The rest of the text, without leading blanks and comments.
    rest: &'t [u8],
    readings: usize,
    formulas: &'f mut Formulas,
    depth: usize,
}

type Parsed = Result<u32, String>;

impl Parser<'_, '_> {
    fn refusal(&self) -> String {
        // The message shows only one character, because the text may contain a community.
        let rest = self.rest.first().map_or("its end".to_string(), |byte| {
            format!("{:?}", char::from(*byte))
        });
        format!("its expression is Perl that is not run here: {rest} is not understood")
    }

    fn take(&mut self, mark: &[u8]) -> bool {
        match self.rest.strip_prefix(mark) {
            Some(rest) => {
                self.rest = trim_start(rest);
                true
            }
            None => false,
        }
    }

    fn must(&mut self, mark: &[u8]) -> Result<(), String> {
        match self.take(mark) {
            true => Ok(()),
            false => Err(self.refusal()),
        }
    }

    fn node(&mut self, node: Node) -> u32 {
        self.formulas.nodes.push(node);
        narrow(self.formulas.nodes.len() - 1)
    }

    fn range(&mut self, operands: &[u32]) -> Operands {
        let start = narrow(self.formulas.operands.len());
        self.formulas.operands.extend_from_slice(operands);
        let len = narrow(operands.len());
        Operands { start, len }
    }

    /// `a ? b : c`
    fn choice(&mut self) -> Parsed {
        self.depth += 1;
        if self.depth > MRTG_EXPRESSION_DEPTH_MAX {
            return Err("its expression is nested too deeply".into());
        }
        let condition = self.comparison()?;
        let node = match self.take(b"?") {
            true => {
                let yes = self.choice()?;
                self.must(b":")?;
                let no = self.choice()?;
                self.node(Node::Choose(condition, yes, no))
            }
            false => condition,
        };
        self.depth -= 1;
        Ok(node)
    }

    fn comparison(&mut self) -> Parsed {
        let left = self.sum()?;
        let marks = [
            (&b"<="[..], Comparison::LessOrEqual),
            (b">=", Comparison::GreaterOrEqual),
            (b"==", Comparison::Equal),
            (b"!=", Comparison::NotEqual),
            (b"<", Comparison::Less),
            (b">", Comparison::Greater),
        ];
        for (mark, comparison) in marks {
            let is_longer = self.rest.starts_with(b"<=>") || self.rest.starts_with(b"<<");
            if !is_longer && self.take(mark) {
                let right = self.sum()?;
                return Ok(self.node(Node::Compare(comparison, left, right)));
            }
        }
        Ok(left)
    }

    fn sum(&mut self) -> Parsed {
        let marks = [(&b"+"[..], Operator::Add), (b"-", Operator::Subtract)];
        self.chain(marks, Parser::product)
    }

    fn product(&mut self) -> Parsed {
        let marks = [(&b"*"[..], Operator::Multiply), (b"/", Operator::Divide)];
        self.chain(marks, Parser::signed)
    }

    fn chain(&mut self, marks: [(&[u8], Operator); 2], part: fn(&mut Self) -> Parsed) -> Parsed {
        let first = part(self)?;
        let mut operands = Vec::new();
        loop {
            // A doubled sign is another operator, such as `//`, `++` or `--`.
            let is_doubled = self.rest.len() > 1 && self.rest[0] == self.rest[1];
            let mut marks = marks.into_iter().filter(|_| !is_doubled);
            let Some((_, operator)) = marks.find(|(mark, _)| self.take(mark)) else {
                break;
            };
            if operands.is_empty() {
                operands.push(first);
            }
            operands.extend([operator.number(), part(self)?]);
        }
        if operands.is_empty() {
            return Ok(first);
        }
        let range = self.range(&operands);
        Ok(self.node(Node::Chain(range)))
    }

    /// `-x`, which binds weaker than `**`.
    fn signed(&mut self) -> Parsed {
        let is_doubled = self.rest.starts_with(b"--") || self.rest.starts_with(b"++");
        if is_doubled {
            return Err(self.refusal());
        }
        if self.take(b"+") {
            return self.nested(Parser::signed);
        }
        if self.take(b"-") {
            let operand = self.nested(Parser::signed)?;
            return Ok(self.node(Node::Negative(operand)));
        }
        let base = self.operand()?;
        match self.take(b"**") {
            true => {
                // `**` is right-associative: 2 ** 3 ** 2 is 2 ** 9.
                let exponent = self.nested(Parser::signed)?;
                Ok(self.node(Node::Power(base, exponent)))
            }
            false => Ok(base),
        }
    }

    fn nested(&mut self, part: fn(&mut Self) -> Parsed) -> Parsed {
        self.depth += 1;
        if self.depth > MRTG_EXPRESSION_DEPTH_MAX {
            return Err("its expression is nested too deeply".into());
        }
        let node = part(self)?;
        self.depth -= 1;
        Ok(node)
    }

    fn operand(&mut self) -> Parsed {
        match self.rest.first() {
            Some(b'(') => {
                self.must(b"(")?;
                let node = self.choice()?;
                self.must(b")")?;
                Ok(node)
            }
            Some(b'$') => self.reading(),
            Some(byte) if byte.is_ascii_digit() || *byte == b'.' => self.constant(),
            _ => self.call(),
        }
    }

    fn reading(&mut self) -> Parsed {
        let digits = self.rest.strip_prefix(trim_start(BEFORE));
        let digits = digits.ok_or_else(|| self.refusal())?;
        let len = digits
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        let (number, rest) = digits.split_at(len);
        let number = std::str::from_utf8(number).unwrap_or_default();
        let rest = rest.strip_prefix(BEHIND.trim_ascii_end());
        match (number.parse::<u32>(), rest) {
            (Ok(number), Some(rest)) if wide(number) < self.readings => {
                self.rest = trim_start(rest);
                Ok(self.node(Node::Reading(number)))
            }
            _ => Err(self.refusal()),
        }
    }

    /// A number in Perl's notation: `1_000.5e3`, `0x1f`, `0b11`, `017`.
    fn constant(&mut self) -> Parsed {
        let (number, len) = match self.rest {
            [b'0', b'x' | b'X', rest @ ..] => (of_radix(rest, 16), 2 + run(rest, 16)),
            [b'0', b'b' | b'B', rest @ ..] => (of_radix(rest, 2), 2 + run(rest, 2)),
            [b'0', b'o' | b'O', rest @ ..] => (of_radix(rest, 8), 2 + run(rest, 8)),
            [b'0', b'0'..=b'9' | b'_', ..] => {
                let rest = &self.rest[1..];
                (of_radix(rest, 8), 1 + run(rest, 8))
            }
            rest => of_decimals(rest),
        };
        let goes_on = |byte: &u8| is_word(*byte) || *byte == b'.';
        match number {
            Some(number) if !self.rest.get(len).is_some_and(goes_on) => {
                self.rest = trim_start(&self.rest[len..]);
                self.formulas.constants.push(number);
                let number = narrow(self.formulas.constants.len() - 1);
                Ok(self.node(Node::Constant(number)))
            }
            _ => Err(self.refusal()),
        }
    }

    fn call(&mut self) -> Parsed {
        let len = self.rest.iter().take_while(|byte| is_word(**byte)).count();
        let function = match &self.rest[..len] {
            b"int" => Function::Int,
            b"abs" => Function::Abs,
            b"max" => Function::Max,
            b"min" => Function::Min,
            _ => return Err(self.refusal()),
        };
        self.rest = trim_start(&self.rest[len..]);
        self.must(b"(")?;
        let mut operands = vec![self.choice()?];
        while self.take(b",") {
            operands.push(self.choice()?);
        }
        self.must(b")")?;
        if matches!(function, Function::Int | Function::Abs) && operands.len() > 1 {
            return Err(self.refusal());
        }
        let range = self.range(&operands);
        Ok(self.node(Node::Call(function, range)))
    }
}

/// Length of a run of digits, between which single `_` may stand.
fn run(text: &[u8], radix: u32) -> usize {
    let is_digit = |at: usize| {
        let byte = text.get(at).copied().map(char::from);
        byte.is_some_and(|byte| byte.is_digit(radix))
    };
    let is_part = |at: &usize| {
        is_digit(*at)
            || *at > 0 && text.get(*at) == Some(&b'_') && is_digit(at - 1) && is_digit(at + 1)
    };
    (0..).take_while(is_part).count()
}

fn without_underscores(text: &[u8]) -> String {
    let digits = text.iter().filter(|byte| **byte != b'_');
    digits.map(|byte| char::from(*byte)).collect()
}

/// `None`: there is no digit, or Perl warns of a number of more than 32 bits.
fn of_radix(text: &[u8], radix: u32) -> Option<f64> {
    let digits = without_underscores(&text[..run(text, radix)]);
    u32::from_str_radix(&digits, radix).ok().map(f64::from)
}

/// A decimal number and its length.
fn of_decimals(text: &[u8]) -> (Option<f64>, usize) {
    let digits = |from: usize| run(text.get(from..).unwrap_or_default(), 10);
    let mut len = digits(0);
    if text.get(len) == Some(&b'.') {
        len += 1 + digits(len + 1);
    }
    if let Some(b'e' | b'E') = text.get(len) {
        let sign = usize::from(matches!(text.get(len + 1), Some(b'-' | b'+')));
        match digits(len + 1 + sign) {
            0 => return (None, len),
            exponent => len += 1 + sign + exponent,
        }
    }
    let number = without_underscores(&text[..len]).parse::<f64>().ok();
    (number.filter(|number| number.is_finite()), len)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The right values are those of perl 5.36 with warnings, each of which makes MRTG store no value.
    #[test]
    fn numbers_are_perls() {
        for (text, expected) in [
            ("1_000", Some(1000.0)),
            ("1_000.5", Some(1000.5)),
            ("1.5_0", Some(1.5)),
            ("1e1_0", Some(1e10)),
            ("010", Some(8.0)),
            ("0x10", Some(16.0)),
            ("0xFF_ff", Some(65535.0)),
            ("0b11", Some(3.0)),
            ("0o17", Some(15.0)),
            ("0", Some(0.0)),
            ("00", Some(0.0)),
            ("0.5", Some(0.5)),
            (".5", Some(0.5)),
            ("5.", Some(5.0)),
            ("0e1", Some(0.0)),
            ("0xffffffff", Some(4294967295.0)),
            ("0x1ffffffff", None),
            ("1__0", None),
            ("1_", None),
            ("1_.5", None),
            ("1._5", None),
            ("1e_1", None),
            ("1_e5", None),
            ("0x_ff", None),
            ("0x1_", None),
            ("0_10", None),
            ("07_", None),
            ("08", None),
            ("0b12", None),
            ("0xfg", None),
            ("0x", None),
            ("0b", None),
            // Perl joins the texts of two numbers.
            ("010.5", None),
            ("01.5", None),
            ("1.2.3", None),
            ("1e", None),
            (".", None),
        ] {
            let mut formulas = Formulas::default();
            let found = parse(text.as_bytes(), 0, &mut formulas).is_ok();
            let number = formulas.constants.first().copied().filter(|_| found);
            assert_eq!(number, expected, "{text}");
        }
    }

    #[test]
    fn comments_and_semicolons_end_an_expression() {
        let reading = " $target->[0]{$mode} ";
        for (text, expected) in [
            ("r # Uplink", true),
            ("r#a;b", true),
            ("r;", true),
            ("r ; ;# x", true),
            ("; r", true),
            ("# c\n r", true),
            ("( r # c\n )", true),
            ("r ? 1 : 2;", true),
            ("( r # c )", false),
            ("r ; 5", false),
            ("r 5", false),
            ("# r", false),
            (";", false),
        ] {
            let text = text.replacen('r', reading, 1);
            let parsed = parse(text.as_bytes(), 1, &mut Formulas::default());
            assert_eq!(parsed.is_ok(), expected, "{text}");
        }
        let mut formulas = Formulas::default();
        let text = format!("{reading} # c\n * 8 # bits");
        assert!(parse(text.as_bytes(), 1, &mut formulas).is_ok());
        assert_eq!(formulas.constants, [8.0]);
    }
}
