//! How a target's numbers come about: one reading, or arithmetic with several.

use std::borrow::Cow;

/// What a target's number is computed from. [`Config::evaluate`](super::Config::evaluate) does it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expression {
    /// A reading alone: its number in [`Config::readings`](super::Config::readings).
    Reading(u32),
    /// A sum of different readings, the usual thing beside a reading alone.
    Sum(Operands),
    /// Anything else: where it begins, and the readings that it needs.
    Formula(NodeNumber, Operands),
}

/// A place among the operands that a configuration's formulas have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operands {
    pub(super) start: u32,
    pub(super) len: u32,
}

/// Where a formula begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeNumber(pub(super) u32);

/// Which of a target's two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The first.
    In,
    /// The second.
    Out,
}

/// What becomes of decimals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// MRTG keeps them of gauges in `.rrd` files.
    Keep,
    /// Whole numbers.
    Round,
}

/// Everything that a configuration's expressions have.
#[derive(Debug, Default)]
pub(super) struct Formulas {
    pub(super) nodes: Vec<Node>,
    /// Readings of sums, and nodes of chains and calls.
    pub(super) operands: Vec<u32>,
    pub(super) constants: Vec<f64>,
}

/// A part of a formula.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Node {
    Reading(u32),
    Constant(u32),
    Negative(u32),
    Power(u32, u32),
    /// From left to right: a node, then one of [`Operator`] and a node, and so on. Long sums are no deep trees.
    Chain(Operands),
    Call(Function, Operands),
    Compare(Comparison, u32, u32),
    /// The one of two that a condition chooses; the other is not computed.
    Choose(u32, u32, u32),
}

/// What a [`Node::Chain`] does; as a number among its operands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
}

impl Operator {
    const ALL: [Operator; 4] = [
        Operator::Add,
        Operator::Subtract,
        Operator::Multiply,
        Operator::Divide,
    ];

    pub(super) fn number(self) -> u32 {
        self as u32
    }

    pub(super) fn of(number: u32) -> Operator {
        Operator::ALL[super::text::wide(number)]
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Function {
    Int,
    Abs,
    Max,
    Min,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Comparison {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
}

impl Formulas {
    pub(super) fn operands(&self, range: Operands) -> &[u32] {
        let start = super::text::wide(range.start);
        &self.operands[start..start + super::text::wide(range.len)]
    }

    /// Each reading of an expression, once.
    pub(super) fn readings_of(&self, expression: Expression) -> Cow<'_, [u32]> {
        match expression {
            Expression::Reading(number) => Cow::Owned(vec![number]),
            Expression::Sum(range) | Expression::Formula(_, range) => {
                Cow::Borrowed(self.operands(range))
            }
        }
    }
}
