//! An expression as `/api/v1/parse_query` answers it: objects with a `type` each, without places in the text.

use kymo_series::Matcher;

use crate::ast::{
    Aggregation, At, BinaryExpr, Call, Edges, Expr, Grouping, MatrixSelector, NumberLiteral,
    Subquery, VectorMatching, VectorSelector,
};
use crate::duration::{Duration, DurationExpr};
use crate::number_text::plain;

/// A value of JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tree {
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// A number.
    Number(i64),
    /// A text.
    Text(String),
    /// `[...]`
    List(Vec<Tree>),
    /// `{...}`, sorted by names.
    Object(Vec<(&'static str, Tree)>),
}

impl Tree {
    /// The tree of an expression.
    pub fn of(expr: &Expr) -> Tree {
        match expr {
            Expr::Number(number) => object([
                ("type", text("numberLiteral")),
                ("val", text(&plain(number.value))),
            ]),
            Expr::String(string) => object([
                ("type", text("stringLiteral")),
                ("val", text(&string.value)),
            ]),
            Expr::Vector(selector) => {
                let mut fields = selector_fields(selector);
                fields.push(("type", text("vectorSelector")));
                sorted(fields)
            }
            Expr::Matrix(matrix) => of_matrix(matrix),
            Expr::Subquery(subquery) => of_subquery(subquery),
            Expr::Unary(unary) => object([
                ("expr", Tree::of(&unary.expr)),
                ("op", text(unary.op.text())),
                ("type", text("unaryExpr")),
            ]),
            Expr::Binary(binary) => of_binary(binary),
            Expr::Aggregation(aggregation) => of_aggregation(aggregation),
            Expr::Call(call) => of_call(call),
            Expr::Paren(paren) => {
                object([("expr", Tree::of(&paren.expr)), ("type", text("parenExpr"))])
            }
        }
    }
}

fn text(value: &str) -> Tree {
    Tree::Text(value.into())
}

fn texts<'a>(values: impl IntoIterator<Item = &'a str>) -> Tree {
    Tree::List(values.into_iter().map(text).collect())
}

fn names(values: &[String]) -> Tree {
    texts(values.iter().map(String::as_str))
}

fn object<const COUNT: usize>(fields: [(&'static str, Tree); COUNT]) -> Tree {
    sorted(fields.into())
}

fn sorted(mut fields: Vec<(&'static str, Tree)>) -> Tree {
    fields.sort_unstable_by_key(|(name, _)| *name);
    Tree::Object(fields)
}

fn selector_fields(selector: &VectorSelector) -> Vec<(&'static str, Tree)> {
    let mut fields = shift_fields(&selector.offset, selector.at);
    let name = selector.name.as_deref().unwrap_or_default();
    fields.extend([
        ("anchored", Tree::Bool(selector.edges == Edges::Anchored)),
        (
            "matchers",
            Tree::List(selector.matchers.iter().map(of_matcher).collect()),
        ),
        ("name", text(name)),
        ("smoothed", Tree::Bool(selector.edges == Edges::Smoothed)),
    ]);
    fields
}

fn of_matcher(matcher: &Matcher) -> Tree {
    object([
        ("name", text(matcher.label())),
        ("type", text(matcher.op().text())),
        ("value", text(matcher.value())),
    ])
}

fn shift_fields(offset: &Duration, at: Option<At>) -> Vec<(&'static str, Tree)> {
    let (timestamp, edge) = match at {
        None => (Tree::Null, Tree::Null),
        Some(At::Time(ms)) => (Tree::Number(ms), Tree::Null),
        Some(At::Start) => (Tree::Null, text("start")),
        Some(At::End) => (Tree::Null, text("end")),
    };
    let (fixed, computed) = of_duration(Some(offset));
    vec![
        ("offset", fixed),
        ("offsetExpr", computed),
        ("startOrEnd", edge),
        ("timestamp", timestamp),
    ]
}

fn of_matrix(matrix: &MatrixSelector) -> Tree {
    let mut fields = selector_fields(&matrix.selector);
    let (fixed, computed) = of_duration(Some(&matrix.range));
    fields.extend([
        ("range", fixed),
        ("rangeExpr", computed),
        ("type", text("matrixSelector")),
    ]);
    sorted(fields)
}

fn of_subquery(subquery: &Subquery) -> Tree {
    let mut fields = shift_fields(&subquery.offset, subquery.at);
    let (range, range_expr) = of_duration(Some(&subquery.range));
    let (step, step_expr) = of_duration(subquery.step.as_ref());
    fields.extend([
        ("expr", Tree::of(&subquery.expr)),
        ("range", range),
        ("rangeExpr", range_expr),
        ("step", step),
        ("stepExpr", step_expr),
        ("type", text("subquery")),
    ]);
    sorted(fields)
}

fn of_binary(binary: &BinaryExpr) -> Tree {
    object([
        ("bool", Tree::Bool(binary.is_bool)),
        ("lhs", Tree::of(&binary.left)),
        (
            "matching",
            binary.matching.as_ref().map_or(Tree::Null, of_matching),
        ),
        ("op", text(binary.op.text())),
        ("rhs", Tree::of(&binary.right)),
        ("type", text("binaryExpr")),
    ])
}

fn of_matching(matching: &VectorMatching) -> Tree {
    object([
        ("card", text(matching.cardinality.text())),
        (
            "fillValues",
            object([("lhs", Tree::Null), ("rhs", Tree::Null)]),
        ),
        ("include", names(&matching.include)),
        ("labels", names(&matching.labels)),
        ("on", Tree::Bool(matching.is_on)),
    ])
}

fn of_aggregation(aggregation: &Aggregation) -> Tree {
    let (labels, is_without) = match &aggregation.grouping {
        Grouping::By(labels) => (labels, false),
        Grouping::Without(labels) => (labels, true),
    };
    object([
        ("expr", Tree::of(&aggregation.expr)),
        ("grouping", names(labels)),
        ("op", text(aggregation.op.text())),
        (
            "param",
            aggregation.parameter.as_ref().map_or(Tree::Null, Tree::of),
        ),
        ("type", text("aggregation")),
        ("without", Tree::Bool(is_without)),
    ])
}

fn of_call(call: &Call) -> Tree {
    let function = call.function;
    object([
        ("args", Tree::List(call.args.iter().map(Tree::of).collect())),
        (
            "func",
            object([
                (
                    "argTypes",
                    texts(function.args.iter().map(|each| each.text())),
                ),
                ("name", text(function.name)),
                ("returnType", text(function.returns.text())),
                (
                    "variadic",
                    Tree::Number(i64::from(function.variadic.number())),
                ),
            ]),
        ),
        ("type", text("call")),
    ])
}

/// Milliseconds of a duration, 0 of one that is computed or missing; and the arithmetic.
fn of_duration(duration: Option<&Duration>) -> (Tree, Tree) {
    match duration {
        None => (Tree::Number(0), Tree::Null),
        Some(Duration::Fixed(ms)) => (Tree::Number(*ms), Tree::Null),
        Some(Duration::Computed(expr)) => (Tree::Number(0), of_duration_expr(expr)),
    }
}

fn of_duration_expr(expr: &DurationExpr) -> Tree {
    match expr {
        DurationExpr::Number(number) => of_number(number),
        // In Prometheus, parentheses are a property of their content; a number's are those of a sign.
        DurationExpr::Paren(inner, _) => match &**inner {
            DurationExpr::Number(number) => operation("+", Tree::Null, of_number(number), true),
            inner => of_operation(inner, true),
        },
        inner => of_operation(inner, false),
    }
}

fn of_operation(expr: &DurationExpr, is_wrapped: bool) -> Tree {
    match expr {
        DurationExpr::Number(number) => of_number(number),
        DurationExpr::Step(_) => operation("step", Tree::Null, Tree::Null, is_wrapped),
        DurationExpr::Range(_) => operation("range", Tree::Null, Tree::Null, is_wrapped),
        DurationExpr::Negative(inner, _) => {
            operation("-", Tree::Null, of_duration_expr(inner), is_wrapped)
        }
        DurationExpr::Binary(op, sides, _) => operation(
            op.text(),
            of_duration_expr(&sides.0),
            of_duration_expr(&sides.1),
            is_wrapped,
        ),
        DurationExpr::Paren(inner, _) => of_operation(inner, true),
    }
}

fn operation(op: &str, left: Tree, right: Tree, is_wrapped: bool) -> Tree {
    object([
        ("lhs", left),
        ("op", text(op)),
        ("rhs", right),
        ("type", text("durationExpr")),
        ("wrapped", Tree::Bool(is_wrapped)),
    ])
}

fn of_number(number: &NumberLiteral) -> Tree {
    object([
        ("duration", Tree::Bool(number.is_duration)),
        ("type", text("numberLiteral")),
        ("val", text(&plain(number.value))),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    /// A tree in few words.
    fn shown(tree: &Tree) -> String {
        match tree {
            Tree::Null => "null".into(),
            Tree::Bool(value) => value.to_string(),
            Tree::Number(number) => number.to_string(),
            Tree::Text(text) => format!("{text:?}"),
            Tree::List(list) => {
                let parts: Vec<String> = list.iter().map(shown).collect();
                format!("[{}]", parts.join(" "))
            }
            Tree::Object(fields) => {
                let parts = fields.iter();
                let parts = parts.map(|(name, value)| format!("{name}:{}", shown(value)));
                format!("{{{}}}", parts.collect::<Vec<_>>().join(" "))
            }
        }
    }

    #[test]
    fn trees_have_the_fields_of_prometheus() {
        let plain = r#"anchored:false matchers:[{name:"__name__" type:"=" value:"x"}] name:"x" offset:0 offsetExpr:null"#;
        let rest = r#"smoothed:false startOrEnd:null timestamp:null type:"vectorSelector""#;
        let x = format!("{{{plain} {rest}}}");
        for (text, wanted) in [
            ("1m", r#"{type:"numberLiteral" val:"60"}"#.into()),
            ("'a'", r#"{type:"stringLiteral" val:"a"}"#.into()),
            ("x", x.clone()),
            (
                "-(x)",
                format!(r#"{{expr:{{expr:{x} type:"parenExpr"}} op:"-" type:"unaryExpr"}}"#),
            ),
            (
                "sum by (a) (x)",
                format!(
                    r#"{{expr:{x} grouping:["a"] op:"sum" param:null type:"aggregation" without:false}}"#
                ),
            ),
            (
                "x or on (a) x",
                format!(
                    r#"{{bool:false lhs:{x} matching:{{card:"many-to-many" fillValues:{{lhs:null rhs:null}} include:[] labels:["a"] on:true}} op:"or" rhs:{x} type:"binaryExpr"}}"#
                ),
            ),
            (
                "abs(x)",
                format!(
                    r#"{{args:[{x}] func:{{argTypes:["vector"] name:"abs" returnType:"vector" variadic:0}} type:"call"}}"#
                ),
            ),
            (
                "x[5m:-(1) + step()]",
                format!(
                    r#"{{expr:{x} offset:0 offsetExpr:null range:300000 rangeExpr:null startOrEnd:null step:0 stepExpr:{{lhs:{{lhs:null op:"-" rhs:{{lhs:null op:"+" rhs:{{duration:false type:"numberLiteral" val:"1"}} type:"durationExpr" wrapped:true}} type:"durationExpr" wrapped:false}} op:"+" rhs:{{lhs:null op:"step" rhs:null type:"durationExpr" wrapped:false}} type:"durationExpr" wrapped:false}} timestamp:null type:"subquery"}}"#
                ),
            ),
            (
                "x[1m] smoothed @ 1.5",
                format!(
                    r#"{{{plain} range:60000 rangeExpr:null smoothed:true startOrEnd:null timestamp:1500 type:"matrixSelector"}}"#
                ),
            ),
        ] {
            assert_eq!(shown(&Tree::of(&parse(text).unwrap())), wanted, "{text}");
        }
    }
}
