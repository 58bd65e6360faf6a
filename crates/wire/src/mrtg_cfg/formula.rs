//! Parses the arithmetic of a `Target[]`, in which each reading has been replaced by a marker: the subset of Perl that
//! configurations use. Anything else is refused.

use super::expression::{
    Comparison, Expression, Formulas, Function, Node, NodeNumber, Operands, Operator,
};
use super::lines::trim_start;
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
    let parsed = parser.choice().and_then(|node| match parser.rest {
        [] => Ok(node),
        _ => Err(parser.refusal()),
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

struct Parser<'t, 'f> {
    /// The rest of the text, without leading blanks.
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

    /// A decimal number in Perl's notation. A leading zero, which means octal or hexadecimal there, is refused.
    fn constant(&mut self) -> Parsed {
        let rest = self.rest;
        let digits = |from: usize| {
            let is_part = |byte: &&u8| byte.is_ascii_digit();
            rest[from.min(rest.len())..]
                .iter()
                .take_while(is_part)
                .count()
        };
        let whole = digits(0);
        let mut len = whole;
        if rest.get(len) == Some(&b'.') {
            len += 1 + digits(len + 1);
        }
        if let Some(b'e' | b'E') = rest.get(len) {
            let sign = usize::from(matches!(rest.get(len + 1), Some(b'-' | b'+')));
            match digits(len + 1 + sign) {
                0 => return Err(self.refusal()),
                exponent => len += 1 + sign + exponent,
            }
        }
        let is_octal = whole > 1 && rest[0] == b'0';
        let goes_on = rest
            .get(len)
            .is_some_and(|byte| is_word(*byte) || *byte == b'.');
        let text = std::str::from_utf8(&rest[..len]).unwrap_or_default();
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() && !is_octal && !goes_on => {
                self.rest = trim_start(&rest[len..]);
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
