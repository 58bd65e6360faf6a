//! Types of values.

/// Type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueType {
    /// A number a step.
    Scalar,
    /// Series with a sample a step: an instant vector.
    Vector,
    /// Series with the samples of a range a step: a range vector.
    Matrix,
    /// A text.
    String,
}

impl ValueType {
    /// As the HTTP API has it.
    pub fn text(self) -> &'static str {
        match self {
            ValueType::Scalar => "scalar",
            ValueType::Vector => "vector",
            ValueType::Matrix => "matrix",
            ValueType::String => "string",
        }
    }

    /// As people call it.
    pub fn documented(self) -> &'static str {
        match self {
            ValueType::Scalar => "scalar",
            ValueType::Vector => "instant vector",
            ValueType::Matrix => "range vector",
            ValueType::String => "string",
        }
    }
}
