//! Functions of the language.

use crate::value_type::ValueType;

/// How the number of arguments may differ from the list of their types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variadic {
    /// All arguments are needed.
    No,
    /// The last one may be missing.
    Optional,
    /// The last one may come any number of times, or be missing.
    Any,
}

impl Variadic {
    /// As the HTTP API has it.
    pub fn number(self) -> i32 {
        match self {
            Variadic::No => 0,
            Variadic::Optional => 1,
            Variadic::Any => -1,
        }
    }
}

/// A function.
#[derive(Debug, PartialEq, Eq)]
pub struct Function {
    /// Which one, for a match.
    pub id: FunctionId,
    /// As it is written.
    pub name: &'static str,
    /// Types of the arguments.
    pub args: &'static [ValueType],
    /// How many there may be.
    pub variadic: Variadic,
    /// Type of the result.
    pub returns: ValueType,
}

/// Which function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FunctionId {
    /// `abs`
    Abs,
    /// `absent`
    Absent,
    /// `absent_over_time`
    AbsentOverTime,
    /// `acos`
    Acos,
    /// `acosh`
    Acosh,
    /// `asin`
    Asin,
    /// `asinh`
    Asinh,
    /// `atan`
    Atan,
    /// `atanh`
    Atanh,
    /// `avg_over_time`
    AvgOverTime,
    /// `ceil`
    Ceil,
    /// `changes`
    Changes,
    /// `clamp`
    Clamp,
    /// `clamp_max`
    ClampMax,
    /// `clamp_min`
    ClampMin,
    /// `cos`
    Cos,
    /// `cosh`
    Cosh,
    /// `count_over_time`
    CountOverTime,
    /// `day_of_month`
    DayOfMonth,
    /// `day_of_week`
    DayOfWeek,
    /// `day_of_year`
    DayOfYear,
    /// `days_in_month`
    DaysInMonth,
    /// `deg`
    Deg,
    /// `delta`
    Delta,
    /// `deriv`
    Deriv,
    /// `exp`
    Exp,
    /// `first_over_time`
    FirstOverTime,
    /// `floor`
    Floor,
    /// `histogram_fraction`
    HistogramFraction,
    /// `histogram_quantile`
    HistogramQuantile,
    /// `hour`
    Hour,
    /// `idelta`
    Idelta,
    /// `increase`
    Increase,
    /// `irate`
    Irate,
    /// `label_join`
    LabelJoin,
    /// `label_replace`
    LabelReplace,
    /// `last_over_time`
    LastOverTime,
    /// `ln`
    Ln,
    /// `log10`
    Log10,
    /// `log2`
    Log2,
    /// `max_over_time`
    MaxOverTime,
    /// `min_over_time`
    MinOverTime,
    /// `minute`
    Minute,
    /// `month`
    Month,
    /// `pi`
    Pi,
    /// `predict_linear`
    PredictLinear,
    /// `present_over_time`
    PresentOverTime,
    /// `quantile_over_time`
    QuantileOverTime,
    /// `rad`
    Rad,
    /// `rate`
    Rate,
    /// `resets`
    Resets,
    /// `round`
    Round,
    /// `scalar`
    Scalar,
    /// `sgn`
    Sgn,
    /// `sin`
    Sin,
    /// `sinh`
    Sinh,
    /// `sort`
    Sort,
    /// `sort_desc`
    SortDesc,
    /// `sqrt`
    Sqrt,
    /// `stddev_over_time`
    StddevOverTime,
    /// `stdvar_over_time`
    StdvarOverTime,
    /// `sum_over_time`
    SumOverTime,
    /// `tan`
    Tan,
    /// `tanh`
    Tanh,
    /// `time`
    Time,
    /// `timestamp`
    Timestamp,
    /// `vector`
    Vector,
    /// `year`
    Year,
}
