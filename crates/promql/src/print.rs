//! The canonical text of an expression, which reads back as the same tree: Prometheus' own.

use std::fmt::{self, Write};

use kymo_base::label_set;
use kymo_series::{Matcher, Op, names};

use crate::ast::{
    Aggregation, At, BinaryExpr, Edges, Expr, Grouping, MatrixSelector, NumberLiteral, Subquery,
    VectorMatching, VectorSelector,
};
use crate::duration::{Duration, DurationExpr, DurationOp};
use crate::number::{ms_of_seconds, put_duration};
use crate::number_text::plain;
use crate::operators::{BinaryOp, Cardinality};
use crate::string::put_quoted;

impl fmt::Display for Expr {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        put(&mut text, self);
        out.write_str(&text)
    }
}

/// Appends an expression on one line.
pub(crate) fn put(out: &mut String, expr: &Expr) {
    match expr {
        Expr::Number(number) => put_number(out, number),
        Expr::String(string) => put_quoted(out, &string.value),
        Expr::Vector(selector) => put_vector(out, selector),
        Expr::Matrix(matrix) => put_matrix(out, matrix),
        Expr::Subquery(subquery) => {
            put(out, &subquery.expr);
            put_subquery_range(out, subquery);
        }
        Expr::Unary(unary) => {
            out.push_str(unary.op.text());
            put(out, &unary.expr);
        }
        Expr::Binary(binary) => {
            put_left(out, binary);
            out.push(' ');
            put_operator(out, binary);
            out.push(' ');
            put(out, &binary.right);
        }
        Expr::Aggregation(aggregation) => {
            put_aggregation_word(out, aggregation);
            out.push('(');
            if let Some(parameter) = &aggregation.parameter {
                put(out, parameter);
                out.push_str(", ");
            }
            put(out, &aggregation.expr);
            out.push(')');
        }
        Expr::Call(call) => {
            out.push_str(call.function.name);
            out.push('(');
            for (at, arg) in call.args.iter().enumerate() {
                put_comma(out, at);
                put(out, arg);
            }
            out.push(')');
        }
        Expr::Paren(paren) => {
            out.push('(');
            put(out, &paren.expr);
            out.push(')');
        }
    }
}

/// Appends the left side of an operator. The base of a power has no sign, as `+Inf ^ x` reads as `+(Inf ^ x)`.
pub(crate) fn put_left(out: &mut String, binary: &BinaryExpr) {
    match &binary.left {
        Expr::Number(number) if binary.op == BinaryOp::Power && number.value == f64::INFINITY => {
            out.push_str("Inf");
        }
        left => put(out, left),
    }
}

fn put_comma(out: &mut String, at: usize) {
    if at > 0 {
        out.push_str(", ");
    }
}

fn put_number(out: &mut String, number: &NumberLiteral) {
    match ms_of_seconds(number.value) {
        Some(ms) if number.is_duration => put_duration(out, ms),
        _ => out.push_str(&plain(number.value)),
    }
}

/// Appends an operator with its modifiers.
pub(crate) fn put_operator(out: &mut String, binary: &BinaryExpr) {
    out.push_str(binary.op.text());
    if binary.is_bool {
        out.push_str(" bool");
    }
    if let Some(matching) = &binary.matching {
        put_matching(out, matching);
    }
}

fn put_matching(out: &mut String, matching: &VectorMatching) {
    let group = match matching.cardinality {
        Cardinality::OneToOne | Cardinality::ManyToMany => None,
        Cardinality::ManyToOne => Some(" group_left ("),
        Cardinality::OneToMany => Some(" group_right ("),
    };
    if matching.is_on || !matching.labels.is_empty() || group.is_some() {
        out.push_str(if matching.is_on {
            " on ("
        } else {
            " ignoring ("
        });
        put_labels(out, &matching.labels);
        out.push(')');
    }
    if let Some(group) = group {
        out.push_str(group);
        put_labels(out, &matching.include);
        out.push(')');
    }
}

/// Appends the word of an aggregation with its labels.
pub(crate) fn put_aggregation_word(out: &mut String, aggregation: &Aggregation) {
    out.push_str(aggregation.op.text());
    let (word, labels) = match &aggregation.grouping {
        Grouping::By(labels) if labels.is_empty() => return,
        Grouping::By(labels) => (" by (", labels),
        Grouping::Without(labels) => (" without (", labels),
    };
    out.push_str(word);
    put_labels(out, labels);
    out.push_str(") ");
}

fn put_labels(out: &mut String, labels: &[String]) {
    for (at, label) in labels.iter().enumerate() {
        put_comma(out, at);
        put_label(out, label);
    }
}

fn put_label(out: &mut String, label: &str) {
    match is_plain(label) {
        true => out.push_str(label),
        false => put_quoted(out, label),
    }
}

/// True for labels that need no quotes.
fn is_plain(label: &str) -> bool {
    label_set::is_name(label.as_bytes())
}

fn put_vector(out: &mut String, selector: &VectorSelector) {
    put_matchers(out, selector);
    put_at(out, selector.at);
    put_edges(out, selector.edges);
    put_offset(out, &selector.offset);
}

fn put_matrix(out: &mut String, matrix: &MatrixSelector) {
    let selector = &matrix.selector;
    put_matchers(out, selector);
    out.push('[');
    put_length(out, &matrix.range);
    out.push(']');
    put_edges(out, selector.edges);
    put_at(out, selector.at);
    put_offset(out, &selector.offset);
}

/// Appends the range of a subquery with what stands behind it.
pub(crate) fn put_subquery_range(out: &mut String, subquery: &Subquery) {
    out.push('[');
    put_length(out, &subquery.range);
    out.push(':');
    if let Some(step) = &subquery.step {
        put_length(out, step);
    }
    out.push(']');
    put_at(out, subquery.at);
    put_offset(out, &subquery.offset);
}

fn put_matchers(out: &mut String, selector: &VectorSelector) {
    let name = selector.name.as_deref();
    out.push_str(name.unwrap_or_default());
    let is_name = |matcher: &&Matcher| {
        matcher.label() == names::METRIC
            && matcher.op() == Op::Equal
            && name == Some(matcher.value())
    };
    let inside = selector.matchers.iter().filter(|matcher| !is_name(matcher));
    let mut texts: Vec<String> = inside.map(matcher_text).collect();
    if texts.is_empty() {
        return;
    }
    texts.sort_unstable();
    out.push('{');
    out.push_str(&texts.join(","));
    out.push('}');
}

fn matcher_text(matcher: &Matcher) -> String {
    let mut text = String::new();
    put_label(&mut text, matcher.label());
    text.push_str(matcher.op().text());
    put_quoted(&mut text, matcher.value());
    text
}

fn put_at(out: &mut String, at: Option<At>) {
    match at {
        None => {}
        Some(At::Start) => out.push_str(" @ start()"),
        Some(At::End) => out.push_str(" @ end()"),
        Some(At::Time(ms)) => {
            let sign = if ms < 0 { "-" } else { "" };
            let (seconds, part) = (ms.unsigned_abs() / 1000, ms.unsigned_abs() % 1000);
            // Writing to a String never fails.
            let _ = write!(out, " @ {sign}{seconds}.{part:03}");
        }
    }
}

fn put_edges(out: &mut String, edges: Edges) {
    out.push_str(match edges {
        Edges::Plain => "",
        Edges::Anchored => " anchored",
        Edges::Smoothed => " smoothed",
    });
}

fn put_offset(out: &mut String, offset: &Duration) {
    if *offset != Duration::ZERO {
        out.push_str(" offset ");
        put_length(out, offset);
    }
}

fn put_length(out: &mut String, duration: &Duration) {
    match duration {
        Duration::Fixed(ms) => put_duration(out, *ms),
        Duration::Computed(expr) => put_duration_expr(out, expr),
    }
}

fn put_duration_expr(out: &mut String, expr: &DurationExpr) {
    match expr {
        DurationExpr::Number(number) => put_number(out, number),
        DurationExpr::Step(_) => out.push_str("step()"),
        DurationExpr::Range(_) => out.push_str("range()"),
        DurationExpr::Negative(inner, _) => {
            out.push('-');
            put_duration_expr(out, inner);
        }
        DurationExpr::Paren(inner, _) => {
            out.push('(');
            put_duration_expr(out, inner);
            out.push(')');
        }
        DurationExpr::Binary(op @ (DurationOp::Min | DurationOp::Max), sides, _) => {
            out.push_str(op.text());
            out.push('(');
            put_duration_expr(out, &sides.0);
            out.push_str(", ");
            put_duration_expr(out, &sides.1);
            out.push(')');
        }
        DurationExpr::Binary(op, sides, _) => {
            put_duration_expr(out, &sides.0);
            out.push(' ');
            out.push_str(op.text());
            out.push(' ');
            put_duration_expr(out, &sides.1);
        }
    }
}
