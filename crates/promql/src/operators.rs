//! Operators of binary expressions, signs and aggregations.

/// An operator between two expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinaryOp {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`, as C's fmod.
    Modulo,
    /// `^`
    Power,
    /// `atan2`
    Atan2,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `and`
    And,
    /// `or`
    Or,
    /// `unless`
    Unless,
}

impl BinaryOp {
    /// As it is written.
    pub fn text(self) -> &'static str {
        match self {
            BinaryOp::Add => "+",
            BinaryOp::Subtract => "-",
            BinaryOp::Multiply => "*",
            BinaryOp::Divide => "/",
            BinaryOp::Modulo => "%",
            BinaryOp::Power => "^",
            BinaryOp::Atan2 => "atan2",
            BinaryOp::Equal => "==",
            BinaryOp::NotEqual => "!=",
            BinaryOp::Less => "<",
            BinaryOp::LessOrEqual => "<=",
            BinaryOp::Greater => ">",
            BinaryOp::GreaterOrEqual => ">=",
            BinaryOp::And => "and",
            BinaryOp::Or => "or",
            BinaryOp::Unless => "unless",
        }
    }

    /// True for `==`, `!=`, `<`, `<=`, `>` and `>=`.
    pub fn is_comparison(self) -> bool {
        match self {
            BinaryOp::Equal
            | BinaryOp::NotEqual
            | BinaryOp::Less
            | BinaryOp::LessOrEqual
            | BinaryOp::Greater
            | BinaryOp::GreaterOrEqual => true,
            BinaryOp::Add
            | BinaryOp::Subtract
            | BinaryOp::Multiply
            | BinaryOp::Divide
            | BinaryOp::Modulo
            | BinaryOp::Power
            | BinaryOp::Atan2
            | BinaryOp::And
            | BinaryOp::Or
            | BinaryOp::Unless => false,
        }
    }

    /// True for `and`, `or` and `unless`.
    pub fn is_set(self) -> bool {
        matches!(self, BinaryOp::And | BinaryOp::Or | BinaryOp::Unless)
    }
}

/// A sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryOp {
    /// `+`
    Plus,
    /// `-`
    Minus,
}

impl UnaryOp {
    /// As it is written.
    pub fn text(self) -> &'static str {
        match self {
            UnaryOp::Plus => "+",
            UnaryOp::Minus => "-",
        }
    }
}

/// Series of the left and of the right that may meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cardinality {
    /// One of each.
    OneToOne,
    /// `group_left`
    ManyToOne,
    /// `group_right`
    OneToMany,
    /// All series with equal labels, for `and`, `or`, `unless`.
    ManyToMany,
}

impl Cardinality {
    /// As the HTTP API has it.
    pub fn text(self) -> &'static str {
        match self {
            Cardinality::OneToOne => "one-to-one",
            Cardinality::ManyToOne => "many-to-one",
            Cardinality::OneToMany => "one-to-many",
            Cardinality::ManyToMany => "many-to-many",
        }
    }
}

/// An operator over the series of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AggregateOp {
    /// `avg`
    Avg,
    /// `bottomk`
    BottomK,
    /// `count`
    Count,
    /// `count_values`
    CountValues,
    /// `group`
    Group,
    /// `max`
    Max,
    /// `min`
    Min,
    /// `quantile`
    Quantile,
    /// `stddev`
    Stddev,
    /// `stdvar`
    Stdvar,
    /// `sum`
    Sum,
    /// `topk`
    TopK,
}

impl AggregateOp {
    /// As it is written.
    pub fn text(self) -> &'static str {
        match self {
            AggregateOp::Avg => "avg",
            AggregateOp::BottomK => "bottomk",
            AggregateOp::Count => "count",
            AggregateOp::CountValues => "count_values",
            AggregateOp::Group => "group",
            AggregateOp::Max => "max",
            AggregateOp::Min => "min",
            AggregateOp::Quantile => "quantile",
            AggregateOp::Stddev => "stddev",
            AggregateOp::Stdvar => "stdvar",
            AggregateOp::Sum => "sum",
            AggregateOp::TopK => "topk",
        }
    }

    /// True if it takes a parameter before its vector.
    pub fn has_parameter(self) -> bool {
        match self {
            AggregateOp::BottomK
            | AggregateOp::CountValues
            | AggregateOp::Quantile
            | AggregateOp::TopK => true,
            AggregateOp::Avg
            | AggregateOp::Count
            | AggregateOp::Group
            | AggregateOp::Max
            | AggregateOp::Min
            | AggregateOp::Stddev
            | AggregateOp::Stdvar
            | AggregateOp::Sum => false,
        }
    }
}
