//! Expressions as trees. Each node knows the bytes of the text that it was read from.

use kymo_base::label_set;
use kymo_series::Matcher;

use crate::duration::Duration;
use crate::functions::Function;
pub use crate::number::NumberLiteral;
use crate::operators::{AggregateOp, BinaryOp, Cardinality, UnaryOp};
pub use crate::span::Span;
pub use crate::value_type::ValueType;

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// `1.5`, `Inf`, `5m`
    Number(NumberLiteral),
    /// `"text"`
    String(StringLiteral),
    /// `up{job="node"}`
    Vector(VectorSelector),
    /// `up[5m]`
    Matrix(MatrixSelector),
    /// `rate(x[1m])[1h:1m]`
    Subquery(Box<Subquery>),
    /// `-x`
    Unary(Box<UnaryExpr>),
    /// `x + y`
    Binary(Box<BinaryExpr>),
    /// `sum by (job) (x)`
    Aggregation(Box<Aggregation>),
    /// `rate(x[5m])`
    Call(Call),
    /// `(x)`
    Paren(Box<ParenExpr>),
}

impl Expr {
    /// Type of its value.
    pub fn value_type(&self) -> ValueType {
        match self {
            Expr::Number(_) => ValueType::Scalar,
            Expr::String(_) => ValueType::String,
            Expr::Vector(_) | Expr::Aggregation(_) => ValueType::Vector,
            Expr::Matrix(_) | Expr::Subquery(_) => ValueType::Matrix,
            Expr::Unary(unary) => unary.expr.value_type(),
            Expr::Paren(paren) => paren.expr.value_type(),
            Expr::Call(call) => call.function.returns,
            Expr::Binary(binary) => binary.value_type,
        }
    }

    /// The bytes in the text.
    pub fn span(&self) -> Span {
        match self {
            Expr::Number(number) => number.span,
            Expr::String(string) => string.span,
            Expr::Vector(selector) => selector.span,
            Expr::Matrix(matrix) => matrix.span,
            Expr::Subquery(subquery) => subquery.span,
            Expr::Unary(unary) => unary.span,
            Expr::Binary(binary) => binary.span,
            Expr::Aggregation(aggregation) => aggregation.span,
            Expr::Call(call) => call.span,
            Expr::Paren(paren) => paren.span,
        }
    }

    /// The expression without the parentheses around it.
    pub fn unwrapped(&self) -> &Expr {
        let mut inner = self;
        while let Expr::Paren(paren) = inner {
            inner = &paren.expr;
        }
        inner
    }
}

/// A text.
#[derive(Clone, Debug, PartialEq)]
pub struct StringLiteral {
    /// Without quotes and escapes.
    pub value: String,
    /// Where it stands.
    pub span: Span,
}

/// The time for which a selector is evaluated, in place of the query's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// `@ 1.5`, as milliseconds since 1970.
    Time(i64),
    /// `@ start()`: the start of the query.
    Start,
    /// `@ end()`: the end of the query.
    End,
}

/// How a selector treats samples around the edges of its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edges {
    /// Only samples within count.
    Plain,
    /// `anchored`: the last sample before the range counts too.
    Anchored,
    /// `smoothed`: values at the edges are interpolated.
    Smoothed,
}

/// Picks series.
#[derive(Clone, Debug, PartialEq)]
pub struct VectorSelector {
    /// The metric's name where it stands before the braces.
    pub name: Option<String>,
    /// All of them, in their order; one for `name` is the last.
    pub matchers: Vec<Matcher>,
    /// `offset`; `Duration::ZERO`: none.
    pub offset: Duration,
    /// `@`
    pub at: Option<At>,
    /// `anchored`, `smoothed`
    pub edges: Edges,
    /// Where it stands.
    pub span: Span,
}

impl VectorSelector {
    /// The matchers that a reader understands: those of labels that kept series may have. `None`: one of the others
    /// asks for a value, and picks nothing.
    pub fn kept_matchers(&self) -> Option<Vec<Matcher>> {
        let (kept, others): (Vec<&Matcher>, Vec<&Matcher>) = (self.matchers.iter())
            .partition(|matcher| label_set::is_name(matcher.label().as_bytes()));
        let picks = others.into_iter().all(Matcher::matches_empty);
        picks.then(|| kept.into_iter().cloned().collect())
    }
}

/// Picks series with the samples of a range.
#[derive(Clone, Debug, PartialEq)]
pub struct MatrixSelector {
    /// Has the offset, `@` and edges.
    pub selector: VectorSelector,
    /// Length of the range, above 0.
    pub range: Duration,
    /// Where it stands.
    pub span: Span,
}

/// An expression evaluated at each step of a range.
#[derive(Clone, Debug, PartialEq)]
pub struct Subquery {
    /// An instant vector.
    pub expr: Expr,
    /// Length of the range, above 0.
    pub range: Duration,
    /// Above 0; `None`: the default of the server.
    pub step: Option<Duration>,
    /// `offset`; `Duration::ZERO`: none.
    pub offset: Duration,
    /// `@`
    pub at: Option<At>,
    /// Where it stands.
    pub span: Span,
}

/// An expression with a sign.
#[derive(Clone, Debug, PartialEq)]
pub struct UnaryExpr {
    /// The sign.
    pub op: UnaryOp,
    /// A scalar or an instant vector.
    pub expr: Expr,
    /// Where it stands.
    pub span: Span,
}

/// Two expressions with an operator.
#[derive(Clone, Debug, PartialEq)]
pub struct BinaryExpr {
    /// The operator.
    pub op: BinaryOp,
    /// A scalar or an instant vector.
    pub left: Expr,
    /// A scalar or an instant vector.
    pub right: Expr,
    /// `bool`: a comparison gives 0 or 1 and does not filter.
    pub is_bool: bool,
    /// How series meet; only where both are vectors.
    pub matching: Option<VectorMatching>,
    /// Scalar if both are scalars, else vector.
    pub value_type: ValueType,
    /// Where it stands.
    pub span: Span,
}

/// Which series of two vectors meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VectorMatching {
    /// How many of each side.
    pub cardinality: Cardinality,
    /// `on`: `labels` are compared. Else all but those and the name are.
    pub is_on: bool,
    /// Labels of `on` or `ignoring`.
    pub labels: Vec<String>,
    /// Labels that `group_left` or `group_right` takes over from the side of the one.
    pub include: Vec<String>,
}

/// Labels by which an aggregation groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Grouping {
    /// `by`, or neither.
    By(Vec<String>),
    /// `without`
    Without(Vec<String>),
}

/// Series of a vector put together.
#[derive(Clone, Debug, PartialEq)]
pub struct Aggregation {
    /// The operator.
    pub op: AggregateOp,
    /// An instant vector.
    pub expr: Expr,
    /// A scalar for `topk`, `bottomk` and `quantile`, a string for `count_values`; others have none.
    pub parameter: Option<Expr>,
    /// By which labels.
    pub grouping: Grouping,
    /// Where it stands.
    pub span: Span,
}

/// A call of a function. Number and types of the arguments are those of the function.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The function.
    pub function: &'static Function,
    /// Arguments in their order.
    pub args: Vec<Expr>,
    /// Where it stands.
    pub span: Span,
}

/// An expression in parentheses.
#[derive(Clone, Debug, PartialEq)]
pub struct ParenExpr {
    /// The expression between them.
    pub expr: Expr,
    /// Where it stands, with the parentheses.
    pub span: Span,
}
