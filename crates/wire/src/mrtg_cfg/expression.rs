//! Expressions of targets: one reading, or arithmetic with several.

use std::borrow::Cow;

/// The expression for a target's numbers. [`Config::evaluate`](super::Config::evaluate) computes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expression {
    /// A single reading: its index in [`Config::readings`](super::Config::readings).
    Reading(u32),
    /// A sum of different readings. Most targets are this or a single reading.
    Sum(Operands),
    /// Any other arithmetic: its root node, and the readings that it needs.
    Formula(NodeNumber, Operands),
}

/// A range of the operands that all formulas of a configuration share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operands {
    pub(super) start: u32,
    pub(super) len: u32,
}

/// Index of a formula's root node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeNumber(pub(super) u32);

/// Selects one of a target's two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The first.
    In,
    /// The second.
    Out,
}

/// Treatment of decimals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// Keeps decimals, as MRTG does for gauges in `.rrd` files.
    Keep,
    /// Rounds to an integer.
    Round,
}

/// The formulas of all expressions of a configuration.
#[derive(Debug, Default)]
pub(super) struct Formulas {
    pub(super) nodes: Vec<Node>,
    /// Readings of sums, and nodes of chains and calls.
    pub(super) operands: Vec<u32>,
    pub(super) constants: Vec<f64>,
}

/// A node of a formula.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Node {
    Reading(u32),
    Constant(u32),
    Negative(u32),
    Power(u32, u32),
    /// Operations from left to right: a node, then pairs of [`Operator`] and node; long sums need no deep tree.
    Chain(Operands),
    Call(Function, Operands),
    Compare(Comparison, u32, u32),
    /// A condition and two branches; only the chosen branch is evaluated.
    Choose(u32, u32, u32),
}

/// An operator in a [`Node::Chain`], stored as a number among its operands.
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

    /// The readings of an expression, each once.
    pub(super) fn readings_of(&self, expression: Expression) -> Cow<'_, [u32]> {
        match expression {
            Expression::Reading(number) => Cow::Owned(vec![number]),
            Expression::Sum(range) | Expression::Formula(_, range) => {
                Cow::Borrowed(self.operands(range))
            }
        }
    }
}
