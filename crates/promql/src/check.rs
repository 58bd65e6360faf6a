//! Types: each operand, argument and parameter has the one that its place asks for.

use kymo_series::names;

use crate::ast::{
    Aggregation, BinaryExpr, Call, Expr, Span, Subquery, UnaryExpr, ValueType, VectorSelector,
};
use crate::error::Fault;
use crate::functions::Variadic;
use crate::operators::{AggregateOp, Cardinality};

/// Checks a tree, and settles how the series of vectors meet.
pub(crate) fn check(text: &str, expr: &mut Expr) -> Result<(), Fault> {
    match expr {
        Expr::Number(_) | Expr::String(_) => Ok(()),
        Expr::Vector(selector) => check_selector(selector),
        Expr::Matrix(matrix) => check_selector(&matrix.selector),
        Expr::Paren(paren) => check(text, &mut paren.expr),
        Expr::Subquery(subquery) => check_subquery(text, subquery),
        Expr::Unary(unary) => check_unary(text, unary),
        Expr::Aggregation(aggregation) => check_aggregation(text, aggregation),
        Expr::Call(call) => check_call(text, call),
        Expr::Binary(binary) => check_binary(text, binary),
    }
}

/// Checks that a selector does not pick every series.
pub(crate) fn check_selector(selector: &VectorSelector) -> Result<(), Fault> {
    if let Some(name) = &selector.name {
        let inside = selector.matchers.iter().rev().skip(1);
        let twice = { inside }.find(|matcher| matcher.label() == names::METRIC);
        return match twice {
            Some(matcher) => {
                let value = matcher.value();
                let message = format!("metric name must not be set twice: {name:?} or {value:?}");
                Err(Fault::at(selector.span, message))
            }
            None => Ok(()),
        };
    }
    if selector
        .matchers
        .iter()
        .all(|matcher| matcher.matches_empty())
    {
        let message = "vector selector must contain at least one non-empty matcher";
        return Err(Fault::at(selector.span, message));
    }
    Ok(())
}

fn check_subquery(text: &str, subquery: &mut Subquery) -> Result<(), Fault> {
    check(text, &mut subquery.expr)?;
    match subquery.expr.value_type() {
        ValueType::Vector => Ok(()),
        other => {
            let other = other.text();
            let message =
                format!("subquery is only allowed on instant vector, got {other} instead");
            Err(Fault::at(subquery.span, message))
        }
    }
}

fn check_unary(text: &str, unary: &mut UnaryExpr) -> Result<(), Fault> {
    check(text, &mut unary.expr)?;
    match unary.expr.value_type() {
        ValueType::Scalar | ValueType::Vector => Ok(()),
        other => {
            let message = format!(
                "unary expression only allowed on expressions of type scalar or instant vector, got {:?}",
                other.documented()
            );
            Err(Fault::at(unary.span, message))
        }
    }
}

fn check_aggregation(text: &str, aggregation: &mut Aggregation) -> Result<(), Fault> {
    check(text, &mut aggregation.expr)?;
    expect(
        &aggregation.expr,
        ValueType::Vector,
        "aggregation expression",
    )?;
    let wanted = match aggregation.op {
        AggregateOp::CountValues => ValueType::String,
        _ => ValueType::Scalar,
    };
    if let Some(parameter) = &mut aggregation.parameter {
        check(text, parameter)?;
        expect(parameter, wanted, "aggregation parameter")?;
    }
    Ok(())
}

fn expect(expr: &Expr, wanted: ValueType, place: &str) -> Result<(), Fault> {
    let found = expr.value_type();
    if found == wanted {
        return Ok(());
    }
    let (wanted, found) = (wanted.documented(), found.documented());
    let message = format!("expected type {wanted} in {place}, got {found}");
    Err(Fault::at(expr.span(), message))
}

fn check_call(text: &str, call: &mut Call) -> Result<(), Fault> {
    let function = call.function;
    let (types, count) = (function.args.len(), call.args.len());
    let least = match function.variadic {
        Variadic::No => types,
        Variadic::Optional | Variadic::Any => types.saturating_sub(1),
    };
    let wrong = match function.variadic {
        Variadic::No if count != types => Some(format!("expected {types}")),
        Variadic::Optional | Variadic::Any if count < least => {
            Some(format!("expected at least {least}"))
        }
        Variadic::Optional if count > types => Some(format!("expected at most {types}")),
        Variadic::No | Variadic::Optional | Variadic::Any => None,
    };
    if let Some(wrong) = wrong {
        let message = format!(
            "{wrong} argument(s) in call to {:?}, got {count}",
            function.name
        );
        return Err(Fault::at(call.span, message));
    }
    let wanted = function.args.iter().chain(std::iter::repeat_n(
        function.args.last().unwrap_or(&ValueType::Scalar),
        count,
    ));
    let place = format!("call to function {:?}", function.name);
    for (arg, wanted) in call.args.iter_mut().zip(wanted) {
        check(text, arg)?;
        expect(arg, *wanted, &place)?;
    }
    Ok(())
}

fn check_binary(text: &str, binary: &mut BinaryExpr) -> Result<(), Fault> {
    check(text, &mut binary.left)?;
    check(text, &mut binary.right)?;
    let (left, right) = (binary.left.value_type(), binary.right.value_type());
    let are_scalars = left == ValueType::Scalar && right == ValueType::Scalar;
    let op = binary.op;
    if binary.is_bool && !op.is_comparison() {
        let message = "bool modifier can only be used on comparison operators";
        return Err(Fault::at(operator_span(text, binary), message));
    }
    if op.is_comparison() && !binary.is_bool && are_scalars {
        let message = "comparisons between scalars must use BOOL modifier";
        return Err(Fault::at(operator_span(text, binary), message));
    }
    check_labels(text, binary)?;
    for side in [&binary.left, &binary.right] {
        match side.value_type() {
            ValueType::Scalar | ValueType::Vector => {}
            ValueType::Matrix | ValueType::String => {
                let message = "binary expression must contain only scalar and instant vector types";
                return Err(Fault::at(side.span(), message));
            }
        }
    }
    check_matching(
        binary,
        left == ValueType::Vector && right == ValueType::Vector,
    )
}

/// No label is both compared and taken over.
fn check_labels(text: &str, binary: &BinaryExpr) -> Result<(), Fault> {
    let Some(matching) = binary.matching.as_ref().filter(|matching| matching.is_on) else {
        return Ok(());
    };
    let twice = (matching.labels.iter()).find(|label| matching.include.contains(label));
    match twice {
        Some(label) => {
            let message = format!("label {label:?} must not occur in ON and GROUP clause at once");
            Err(Fault::at(operator_span(text, binary), message))
        }
        None => Ok(()),
    }
}

fn check_matching(binary: &mut BinaryExpr, are_vectors: bool) -> Result<(), Fault> {
    let (op, span) = (binary.op, binary.span);
    if !are_vectors {
        if let Some(matching) = binary.matching.take()
            && !matching.labels.is_empty()
        {
            let message = "vector matching only allowed between instant vectors";
            return Err(Fault::at(span, message));
        }
        if op.is_set() {
            let message = format!(
                "set operator {:?} not allowed in binary scalar expression",
                op.text()
            );
            return Err(Fault::at(span, message));
        }
        return Ok(());
    }
    if let Some(matching) = &mut binary.matching
        && op.is_set()
    {
        if matching.cardinality != Cardinality::OneToOne {
            let message = format!("no grouping allowed for {:?} operation", op.text());
            return Err(Fault::at(span, message));
        }
        matching.cardinality = Cardinality::ManyToMany;
    }
    Ok(())
}

/// Where the operator and its modifiers stand.
fn operator_span(text: &str, binary: &BinaryExpr) -> Span {
    let (start, end) = (binary.left.span().end, binary.right.span().start);
    let between = text.get(start..end).unwrap_or_default();
    let trimmed = between.trim_start();
    let start = start + between.len() - trimmed.len();
    Span {
        start,
        end: start + trimmed.trim_end().len(),
    }
}
