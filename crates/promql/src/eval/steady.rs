//! Expressions that have one value for all steps, such as `up @ 0`: they are evaluated once.

use crate::ast::Expr;
use crate::functions::FunctionId;

/// True if the value is the same at every step.
pub(crate) fn is_steady(expr: &Expr) -> bool {
    match expr {
        Expr::Number(_) | Expr::String(_) => true,
        Expr::Vector(selector) => selector.at.is_some(),
        Expr::Matrix(matrix) => matrix.selector.at.is_some(),
        Expr::Subquery(subquery) => subquery.at.is_some(),
        Expr::Unary(unary) => is_steady(&unary.expr),
        Expr::Paren(paren) => is_steady(&paren.expr),
        Expr::Binary(binary) => is_steady(&binary.left) && is_steady(&binary.right),
        Expr::Aggregation(aggregation) => {
            is_steady(&aggregation.expr) && aggregation.parameter.iter().all(is_steady)
        }
        Expr::Call(call) => {
            let is_steady_moment = call.function.id == FunctionId::Timestamp
                && (call.args.iter()).all(|arg| matches!(arg.unwrapped(), Expr::Vector(_)));
            (is_steady_moment || !uses_the_step(call.function.id))
                && call.args.iter().all(is_steady)
        }
    }
}

/// True for functions of the moment of a step.
fn uses_the_step(id: FunctionId) -> bool {
    matches!(
        id,
        FunctionId::DaysInMonth
            | FunctionId::DayOfMonth
            | FunctionId::DayOfWeek
            | FunctionId::DayOfYear
            | FunctionId::Hour
            | FunctionId::Minute
            | FunctionId::Month
            | FunctionId::Year
            | FunctionId::PredictLinear
            | FunctionId::Time
            | FunctionId::Timestamp
    )
}
