//! Evaluates a target's expression. Readings are numbers of any size; operations between constants use Perl's own
//! numbers, because MRTG makes a Math::BigFloat of each reading that is not `0`, but not of constants.

use super::decimal::Decimal;
use super::expression::{
    Comparison, Direction, Expression, Formulas, Function, Node, NodeNumber, Operands, Operator,
    Rounding,
};
use super::text::wide;
use kymo_base::printf::{put_general, put_signed};
use std::cmp::Ordering;

/// Longest number that MRTG accepts, in bytes.
const LENGTH_MAX: usize = 190;

/// Returns the value of a reading as decimal text.
pub(super) type ValueOf<'f, 'v> = &'f dyn Fn(u32, Direction) -> Option<&'v [u8]>;

/// Appends the value of an expression as text. `false`: it is unknown, and nothing is appended.
pub(super) fn evaluate(
    formulas: &Formulas,
    expression: Expression,
    direction: Direction,
    rounding: Rounding,
    value_of: ValueOf<'_, '_>,
    out: &mut Vec<u8>,
) -> bool {
    let number = match expression {
        Expression::Reading(reading) => {
            let Some(text) = value_of(reading, direction) else {
                return false;
            };
            if is_plain(text) {
                out.extend_from_slice(text);
                return true;
            }
            Number::of_reading(text)
        }
        Expression::Sum(range) => {
            let readings = formulas.operands(range);
            match quick_sum(readings, direction, value_of) {
                Some(sum) => {
                    put_wide(out, sum);
                    return true;
                }
                None => slow_sum(readings, direction, value_of),
            }
        }
        Expression::Formula(NodeNumber(node), _) => {
            let computing = Computing {
                formulas,
                direction,
                value_of,
            };
            computing.node(node)
        }
    };
    number.is_some_and(|number| number.put(rounding, out))
}

/// True for digits that can be copied as they are, like nearly all values.
fn is_plain(text: &[u8]) -> bool {
    let has_zeros = text.len() > 1 && text[0] == b'0';
    super::perl::is_digits(text) && !has_zeros && text.len() <= LENGTH_MAX
}

/// The sum of integers; `None` if a value is not an integer or too large.
fn quick_sum(readings: &[u32], direction: Direction, value_of: ValueOf<'_, '_>) -> Option<i128> {
    readings.iter().try_fold(0i128, |sum, reading| {
        let text = value_of(*reading, direction)?;
        sum.checked_add(whole(text)?)
    })
}

fn whole(text: &[u8]) -> Option<i128> {
    let (is_negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || digits.len() > 30 {
        return None;
    }
    let number = digits.iter().try_fold(0i128, |number, byte| {
        let digit = byte.checked_sub(b'0').filter(|digit| *digit < 10)?;
        Some(number * 10 + i128::from(digit))
    })?;
    Some(match is_negative {
        true => -number,
        false => number,
    })
}

fn slow_sum(readings: &[u32], direction: Direction, value_of: ValueOf<'_, '_>) -> Option<Number> {
    let mut numbers = readings
        .iter()
        .map(|reading| Number::of_reading(value_of(*reading, direction)?));
    let first = numbers.next()??;
    numbers.try_fold(first, |sum, number| sum.with(Operator::Add, number?))
}

fn put_wide(out: &mut Vec<u8>, number: i128) {
    match i64::try_from(number) {
        Ok(number) => put_signed(out, number),
        Err(_) => out.extend_from_slice(number.to_string().as_bytes()),
    }
}

/// A number while evaluating.
enum Number {
    /// Perl's own integer.
    Whole(i64),
    /// Perl's own floating point number.
    Double(f64),
    /// A reading, or a result that a reading is part of.
    Big(Decimal),
}

struct Computing<'c, 'v> {
    formulas: &'c Formulas,
    direction: Direction,
    value_of: ValueOf<'c, 'v>,
}

impl Computing<'_, '_> {
    fn node(&self, node: u32) -> Option<Number> {
        match self.formulas.nodes[wide(node)] {
            Node::Reading(reading) => Number::of_reading((self.value_of)(reading, self.direction)?),
            Node::Constant(number) => {
                Some(Number::of_double(self.formulas.constants[wide(number)]))
            }
            Node::Negative(operand) => self.node(operand)?.negated(),
            Node::Power(base, exponent) => self.node(base)?.raised(self.node(exponent)?),
            Node::Chain(range) => self.chain(range),
            Node::Call(function, range) => self.call(function, range),
            Node::Compare(comparison, left, right) => {
                let order = self.node(left)?.compare(&self.node(right)?)?;
                let holds = match comparison {
                    Comparison::Less => order == Ordering::Less,
                    Comparison::LessOrEqual => order != Ordering::Greater,
                    Comparison::Greater => order == Ordering::Greater,
                    Comparison::GreaterOrEqual => order != Ordering::Less,
                    Comparison::Equal => order == Ordering::Equal,
                    Comparison::NotEqual => order != Ordering::Equal,
                };
                Some(Number::Whole(holds.into()))
            }
            Node::Choose(condition, yes, no) => match self.node(condition)?.is_true() {
                true => self.node(yes),
                false => self.node(no),
            },
        }
    }

    fn chain(&self, range: Operands) -> Option<Number> {
        let (first, rest) = self.formulas.operands(range).split_first()?;
        let first = self.node(*first)?;
        rest.chunks_exact(2).try_fold(first, |number, pair| {
            number.with(Operator::of(pair[0]), self.node(pair[1])?)
        })
    }

    fn call(&self, function: Function, range: Operands) -> Option<Number> {
        let mut numbers = self.formulas.operands(range).iter();
        let first = self.node(*numbers.next()?)?;
        let wanted = match function {
            Function::Int => return first.truncated(),
            Function::Abs => return first.absolute(),
            Function::Max => Ordering::Greater,
            Function::Min => Ordering::Less,
        };
        numbers.try_fold(first, |best, number| {
            let number = self.node(*number)?;
            match number.compare(&best)? == wanted {
                true => Some(number),
                false => Some(best),
            }
        })
    }
}

impl Number {
    /// Converts a reading. MRTG makes no Math::BigFloat of `0`.
    fn of_reading(text: &[u8]) -> Option<Number> {
        match text {
            b"0" => Some(Number::Whole(0)),
            _ => Decimal::parse(text).map(Number::Big),
        }
    }

    fn of_double(number: f64) -> Number {
        // Below this, integers are exact both as doubles and as `i64`.
        match number.fract() == 0.0 && number.abs() < 9e15 {
            true => Number::Whole(number as i64),
            false => Number::Double(number),
        }
    }

    fn to_double(&self) -> Option<f64> {
        match self {
            Number::Whole(number) => Some(*number as f64),
            Number::Double(number) => Some(*number),
            Number::Big(_) => None,
        }
    }

    fn to_decimal(&self) -> Option<Decimal> {
        match self {
            Number::Whole(number) => Some(Decimal::from_integer(*number)),
            Number::Double(number) => Decimal::from_double(*number),
            Number::Big(number) => Some(number.clone()),
        }
    }

    fn with(self, operator: Operator, other: Number) -> Option<Number> {
        if let (Number::Whole(left), Number::Whole(right)) = (&self, &other) {
            let exact = match operator {
                Operator::Add => left.checked_add(*right),
                Operator::Subtract => left.checked_sub(*right),
                Operator::Multiply => left.checked_mul(*right),
                Operator::Divide if *right != 0 && left % right == 0 => Some(left / right),
                Operator::Divide => None,
            };
            if exact.is_some() {
                return exact.map(Number::Whole);
            }
        }
        if let (Some(left), Some(right)) = (self.to_double(), other.to_double()) {
            return Some(Number::Double(match operator {
                Operator::Add => left + right,
                Operator::Subtract => left - right,
                Operator::Multiply => left * right,
                Operator::Divide if right == 0.0 => return None,
                Operator::Divide => left / right,
            }));
        }
        let (left, right) = (self.to_decimal()?, other.to_decimal()?);
        let number = match operator {
            Operator::Add => left.plus(&right),
            Operator::Subtract => left.plus(&right.negated()),
            Operator::Multiply => left.times(&right),
            Operator::Divide => left.divided_by(&right),
        };
        number.map(Number::Big)
    }

    fn raised(self, exponent: Number) -> Option<Number> {
        if let (Some(base), Some(exponent)) = (self.to_double(), exponent.to_double()) {
            return Some(Number::of_double(base.powf(exponent)));
        }
        let whole = exponent.to_decimal()?.to_integer();
        // A root of a reading has only a double's digits here, not 40 as in MRTG.
        match whole {
            Some(whole) => self.to_decimal()?.to_the(whole).map(Number::Big),
            None => {
                let double = |number: &Number| {
                    let mut text = Vec::new();
                    number.to_decimal()?.put(&mut text);
                    std::str::from_utf8(&text).ok()?.parse::<f64>().ok()
                };
                let power = double(&self)?.powf(double(&exponent)?);
                Decimal::from_double(power).map(Number::Big)
            }
        }
    }

    fn negated(self) -> Option<Number> {
        match self {
            Number::Whole(number) => number.checked_neg().map(Number::Whole),
            Number::Double(number) => Some(Number::Double(-number)),
            Number::Big(number) => Some(Number::Big(number.negated())),
        }
    }

    fn truncated(self) -> Option<Number> {
        match self {
            Number::Double(number) => Some(Number::of_double(number.trunc())),
            Number::Big(number) => number.truncated().map(Number::Big),
            whole => Some(whole),
        }
    }

    fn absolute(self) -> Option<Number> {
        let is_negative = match &self {
            Number::Whole(number) => *number < 0,
            Number::Double(number) => *number < 0.0,
            Number::Big(number) => number.is_negative(),
        };
        match is_negative {
            true => self.negated(),
            false => Some(self),
        }
    }

    fn compare(&self, other: &Number) -> Option<Ordering> {
        match (self.to_double(), other.to_double()) {
            (Some(left), Some(right)) => left.partial_cmp(&right),
            _ => self.to_decimal()?.compare(&other.to_decimal()?),
        }
    }

    fn is_true(&self) -> bool {
        match self {
            Number::Whole(number) => *number != 0,
            Number::Double(number) => *number != 0.0,
            Number::Big(number) => !number.is_zero(),
        }
    }

    fn put(&self, rounding: Rounding, out: &mut Vec<u8>) -> bool {
        let start = out.len();
        let is_put = match (self, rounding) {
            (Number::Whole(number), _) => {
                put_signed(out, *number);
                true
            }
            (Number::Double(number), Rounding::Round) if number.is_finite() => {
                let rounded = format!("{:.0}", number.round_ties_even());
                let text = match rounded.as_str() {
                    "-0" => "0",
                    text => text,
                };
                out.extend_from_slice(text.as_bytes());
                true
            }
            (Number::Double(number), Rounding::Keep) if number.is_finite() => {
                put_general(out, *number, 15);
                true
            }
            _ => self.put_decimal(rounding, out),
        };
        if !is_put || out.len() - start > LENGTH_MAX {
            out.truncate(start);
            return false;
        }
        true
    }

    /// Appends a number. MRTG checks the length before rounding.
    fn put_decimal(&self, rounding: Rounding, out: &mut Vec<u8>) -> bool {
        let Some(number) = self.to_decimal() else {
            return false;
        };
        let start = out.len();
        number.put(out);
        if rounding == Rounding::Round && out.len() - start <= LENGTH_MAX {
            out.truncate(start);
            match number.rounded() {
                Some(number) => number.put(out),
                None => return false,
            }
        }
        true
    }
}
