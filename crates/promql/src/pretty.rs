//! An expression over several lines, where one would be long: what `/api/v1/format_query` answers.

use crate::ast::{Aggregation, BinaryExpr, Call, Expr};
use crate::print::{put, put_aggregation_word, put_left, put_operator, put_subquery_range};

/// Bytes of a line that is not broken.
const LINE_MAX: usize = 100;

/// The text of an expression, with lines that are broken and indented as Prometheus does.
pub fn pretty(expr: &Expr) -> String {
    let mut out = String::new();
    put_pretty(&mut out, expr, 0);
    out
}

fn put_pretty(out: &mut String, expr: &Expr, level: usize) {
    let mut line = String::new();
    put(&mut line, expr);
    let is_long = line.len() > LINE_MAX;
    match expr {
        Expr::Aggregation(aggregation) if is_long => put_aggregation(out, aggregation, level),
        Expr::Binary(binary) if is_long => put_binary(out, binary, level),
        Expr::Call(call) if is_long => put_call(out, call, level),
        Expr::Paren(paren) if is_long => {
            indent(out, level);
            out.push_str("(\n");
            put_pretty(out, &paren.expr, level + 1);
            close(out, level);
        }
        Expr::Subquery(subquery) if is_long => {
            put_pretty(out, &subquery.expr, level);
            put_subquery_range(out, subquery);
        }
        // A short subquery is never indented.
        Expr::Subquery(_) => out.push_str(&line),
        Expr::Unary(unary) => {
            let mut inner = String::new();
            put_pretty(&mut inner, &unary.expr, level);
            indent(out, level);
            out.push_str(unary.op.text());
            out.push_str(inner.trim());
        }
        Expr::Number(_)
        | Expr::String(_)
        | Expr::Vector(_)
        | Expr::Matrix(_)
        | Expr::Aggregation(_)
        | Expr::Binary(_)
        | Expr::Call(_)
        | Expr::Paren(_) => {
            indent(out, level);
            out.push_str(&line);
        }
    }
}

fn put_aggregation(out: &mut String, aggregation: &Aggregation, level: usize) {
    indent(out, level);
    put_aggregation_word(out, aggregation);
    out.push_str("(\n");
    if let Some(parameter) = &aggregation.parameter {
        put_pretty(out, parameter, level + 1);
        out.push_str(",\n");
    }
    put_pretty(out, &aggregation.expr, level + 1);
    close(out, level);
}

fn put_binary(out: &mut String, binary: &BinaryExpr, level: usize) {
    match &binary.left {
        Expr::Number(_) => {
            indent(out, level + 1);
            put_left(out, binary);
        }
        left => put_pretty(out, left, level + 1),
    }
    out.push('\n');
    indent(out, level);
    put_operator(out, binary);
    out.push('\n');
    put_pretty(out, &binary.right, level + 1);
}

fn put_call(out: &mut String, call: &Call, level: usize) {
    indent(out, level);
    out.push_str(call.function.name);
    out.push_str("(\n");
    for (at, arg) in call.args.iter().enumerate() {
        if at > 0 {
            out.push_str(",\n");
        }
        put_pretty(out, arg, level + 1);
    }
    close(out, level);
}

fn close(out: &mut String, level: usize) {
    out.push('\n');
    indent(out, level);
    out.push(')');
}

fn indent(out: &mut String, level: usize) {
    for _ in 0..level {
        out.push_str("  ");
    }
}

#[cfg(test)]
mod tests {
    use super::pretty;
    use crate::parse;

    #[test]
    fn the_base_of_a_power_has_no_sign() {
        let long = "a_metric_with_a_long_name".repeat(4);
        for (text, wanted) in [
            ("Inf ^ time()", "Inf ^ time()".to_string()),
            ("2 ^ Inf ^ time()", "2 ^ Inf ^ time()".into()),
            ("Inf * time()", "+Inf * time()".into()),
            (&format!("Inf ^ {long}"), format!("  Inf\n^\n  {long}")),
        ] {
            let expr = parse(text).unwrap();
            assert_eq!(pretty(&expr), wanted);
            crate::fuzz::check_texts(&expr);
        }
    }

    #[test]
    fn long_expressions_are_broken() {
        let long = "a_metric_with_a_long_name_a_metric_with_a_long_name_a_metric_with_a_long_name";
        let text = format!(
            "-(sum by (a) (rate({long}[5m])) / on (b) topk(3, {long} + {long}))[5m:] offset 1m"
        );
        // Types do not matter to the printer, but to the parser.
        let text = format!("sum_over_time({})", &text[1..]);
        let wanted = format!(
            "sum_over_time(
  (
      sum by (a) (rate({long}[5m]))
    / on (b)
      topk(
        3,
          {long}
        +
          {long}
      )
  )[5m:] offset 1m
)"
        );
        assert_eq!(pretty(&parse(&text).unwrap()), wanted);
        assert_eq!(pretty(&parse("sum( up )").unwrap()), "sum(up)");
    }
}
