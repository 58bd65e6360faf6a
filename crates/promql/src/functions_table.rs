//! The table of functions: names, types of arguments, how many there may be, type of the result.

use crate::functions::{Function, FunctionId, Variadic};
use crate::value_type::ValueType::{self, Matrix, Scalar, String, Vector};

impl Function {
    /// Every one, sorted by name.
    pub fn all() -> &'static [Function] {
        FUNCTIONS
    }

    /// The function of a name.
    pub fn named(name: &str) -> Option<&'static Function> {
        let at = FUNCTIONS
            .binary_search_by(|function| function.name.cmp(name))
            .ok()?;
        FUNCTIONS.get(at)
    }

    /// Why Prometheus has a function or aggregation of this name and kymo has not.
    pub(crate) fn refusal(name: &str) -> Option<std::string::String> {
        if EXPERIMENTAL.contains(&name) {
            return Some(format!(
                "function {name:?} is not enabled: it is experimental"
            ));
        }
        NATIVE_HISTOGRAM
            .contains(&name)
            .then(|| format!("function {name:?} is of native histograms, which are not kept here"))
    }
}

const fn function(
    id: FunctionId,
    name: &'static str,
    args: &'static [ValueType],
    returns: ValueType,
) -> Function {
    Function {
        id,
        name,
        args,
        variadic: Variadic::No,
        returns,
    }
}

const fn variadic(
    id: FunctionId,
    name: &'static str,
    args: &'static [ValueType],
    variadic: Variadic,
    returns: ValueType,
) -> Function {
    Function {
        id,
        name,
        args,
        variadic,
        returns,
    }
}

/// Every function, sorted by name.
static FUNCTIONS: &[Function] = &[
    function(FunctionId::Abs, "abs", &[Vector], Vector),
    function(FunctionId::Absent, "absent", &[Vector], Vector),
    function(
        FunctionId::AbsentOverTime,
        "absent_over_time",
        &[Matrix],
        Vector,
    ),
    function(FunctionId::Acos, "acos", &[Vector], Vector),
    function(FunctionId::Acosh, "acosh", &[Vector], Vector),
    function(FunctionId::Asin, "asin", &[Vector], Vector),
    function(FunctionId::Asinh, "asinh", &[Vector], Vector),
    function(FunctionId::Atan, "atan", &[Vector], Vector),
    function(FunctionId::Atanh, "atanh", &[Vector], Vector),
    function(FunctionId::AvgOverTime, "avg_over_time", &[Matrix], Vector),
    function(FunctionId::Ceil, "ceil", &[Vector], Vector),
    function(FunctionId::Changes, "changes", &[Matrix], Vector),
    function(
        FunctionId::Clamp,
        "clamp",
        &[Vector, Scalar, Scalar],
        Vector,
    ),
    function(FunctionId::ClampMax, "clamp_max", &[Vector, Scalar], Vector),
    function(FunctionId::ClampMin, "clamp_min", &[Vector, Scalar], Vector),
    function(FunctionId::Cos, "cos", &[Vector], Vector),
    function(FunctionId::Cosh, "cosh", &[Vector], Vector),
    function(
        FunctionId::CountOverTime,
        "count_over_time",
        &[Matrix],
        Vector,
    ),
    variadic(
        FunctionId::DayOfMonth,
        "day_of_month",
        &[Vector],
        Variadic::Optional,
        Vector,
    ),
    variadic(
        FunctionId::DayOfWeek,
        "day_of_week",
        &[Vector],
        Variadic::Optional,
        Vector,
    ),
    variadic(
        FunctionId::DayOfYear,
        "day_of_year",
        &[Vector],
        Variadic::Optional,
        Vector,
    ),
    variadic(
        FunctionId::DaysInMonth,
        "days_in_month",
        &[Vector],
        Variadic::Optional,
        Vector,
    ),
    function(FunctionId::Deg, "deg", &[Vector], Vector),
    function(FunctionId::Delta, "delta", &[Matrix], Vector),
    function(FunctionId::Deriv, "deriv", &[Matrix], Vector),
    function(FunctionId::Exp, "exp", &[Vector], Vector),
    function(
        FunctionId::FirstOverTime,
        "first_over_time",
        &[Matrix],
        Vector,
    ),
    function(FunctionId::Floor, "floor", &[Vector], Vector),
    function(
        FunctionId::HistogramFraction,
        "histogram_fraction",
        &[Scalar, Scalar, Vector],
        Vector,
    ),
    function(
        FunctionId::HistogramQuantile,
        "histogram_quantile",
        &[Scalar, Vector],
        Vector,
    ),
    variadic(
        FunctionId::Hour,
        "hour",
        &[Vector],
        Variadic::Optional,
        Vector,
    ),
    function(FunctionId::Idelta, "idelta", &[Matrix], Vector),
    function(FunctionId::Increase, "increase", &[Matrix], Vector),
    function(FunctionId::Irate, "irate", &[Matrix], Vector),
    variadic(
        FunctionId::LabelJoin,
        "label_join",
        &[Vector, String, String, String],
        Variadic::Any,
        Vector,
    ),
    function(
        FunctionId::LabelReplace,
        "label_replace",
        &[Vector, String, String, String, String],
        Vector,
    ),
    function(
        FunctionId::LastOverTime,
        "last_over_time",
        &[Matrix],
        Vector,
    ),
    function(FunctionId::Ln, "ln", &[Vector], Vector),
    function(FunctionId::Log10, "log10", &[Vector], Vector),
    function(FunctionId::Log2, "log2", &[Vector], Vector),
    function(FunctionId::MaxOverTime, "max_over_time", &[Matrix], Vector),
    function(FunctionId::MinOverTime, "min_over_time", &[Matrix], Vector),
    variadic(
        FunctionId::Minute,
        "minute",
        &[Vector],
        Variadic::Optional,
        Vector,
    ),
    variadic(
        FunctionId::Month,
        "month",
        &[Vector],
        Variadic::Optional,
        Vector,
    ),
    function(FunctionId::Pi, "pi", &[], Scalar),
    function(
        FunctionId::PredictLinear,
        "predict_linear",
        &[Matrix, Scalar],
        Vector,
    ),
    function(
        FunctionId::PresentOverTime,
        "present_over_time",
        &[Matrix],
        Vector,
    ),
    function(
        FunctionId::QuantileOverTime,
        "quantile_over_time",
        &[Scalar, Matrix],
        Vector,
    ),
    function(FunctionId::Rad, "rad", &[Vector], Vector),
    function(FunctionId::Rate, "rate", &[Matrix], Vector),
    function(FunctionId::Resets, "resets", &[Matrix], Vector),
    variadic(
        FunctionId::Round,
        "round",
        &[Vector, Scalar],
        Variadic::Optional,
        Vector,
    ),
    function(FunctionId::Scalar, "scalar", &[Vector], Scalar),
    function(FunctionId::Sgn, "sgn", &[Vector], Vector),
    function(FunctionId::Sin, "sin", &[Vector], Vector),
    function(FunctionId::Sinh, "sinh", &[Vector], Vector),
    function(FunctionId::Sort, "sort", &[Vector], Vector),
    function(FunctionId::SortDesc, "sort_desc", &[Vector], Vector),
    function(FunctionId::Sqrt, "sqrt", &[Vector], Vector),
    function(
        FunctionId::StddevOverTime,
        "stddev_over_time",
        &[Matrix],
        Vector,
    ),
    function(
        FunctionId::StdvarOverTime,
        "stdvar_over_time",
        &[Matrix],
        Vector,
    ),
    function(FunctionId::SumOverTime, "sum_over_time", &[Matrix], Vector),
    function(FunctionId::Tan, "tan", &[Vector], Vector),
    function(FunctionId::Tanh, "tanh", &[Vector], Vector),
    function(FunctionId::Time, "time", &[], Scalar),
    function(FunctionId::Timestamp, "timestamp", &[Vector], Vector),
    function(FunctionId::Vector, "vector", &[Scalar], Vector),
    variadic(
        FunctionId::Year,
        "year",
        &[Vector],
        Variadic::Optional,
        Vector,
    ),
];

/// Names of experimental functions and aggregations, sorted.
const EXPERIMENTAL: &[&str] = &[
    "double_exponential_smoothing",
    "end",
    "histogram_quantiles",
    "info",
    "integral",
    "limit_ratio",
    "limitk",
    "mad_over_time",
    "max_of",
    "min_of",
    "range",
    "sort_by_label",
    "sort_by_label_desc",
    "start",
    "start_timestamp",
    "step",
    "ts_of_first_over_time",
    "ts_of_last_over_time",
    "ts_of_max_over_time",
    "ts_of_min_over_time",
];

/// Names of functions that only native histograms have values for, sorted.
const NATIVE_HISTOGRAM: &[&str] = &[
    "histogram_avg",
    "histogram_count",
    "histogram_stddev",
    "histogram_stdvar",
    "histogram_sum",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_and_found() {
        assert!(FUNCTIONS.is_sorted_by(|before, after| before.name < after.name));
        for function in Function::all() {
            assert_eq!(Function::named(function.name), Some(function));
            assert!(Function::refusal(function.name).is_none());
        }
        assert!(Function::named("rates").is_none());
        assert!(EXPERIMENTAL.is_sorted() && NATIVE_HISTOGRAM.is_sorted());
    }
}
