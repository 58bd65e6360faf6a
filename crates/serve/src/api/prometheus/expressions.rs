//! `/api/v1/format_query` and `/api/v1/parse_query`: expressions, laid out and as a tree.

use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use kymo_promql::{Expr, Tree, parse, pretty};

use super::failure::Failure;
use super::json::{Json, Remarks, success};
use super::{ANSWER_MAX, FormRequest};
use crate::refusal::set_type;

pub(super) async fn format(asking: FormRequest) -> Result<Response, Failure> {
    let expr = expression(&asking)?;
    written(|json| json.text(&pretty(&expr)))
}

pub(super) async fn parsed(asking: FormRequest) -> Result<Response, Failure> {
    let expr = expression(&asking)?;
    written(|json| json.tree(&Tree::of(&expr)))
}

fn expression(asking: &FormRequest) -> Result<Expr, Failure> {
    let expr = parse(asking.form.text("query"));
    expr.map_err(|error| Failure::parameter("query", error))
}

fn written(write: impl FnOnce(&mut Json)) -> Result<Response, Failure> {
    let body = success(&Remarks::default(), ANSWER_MAX, write)?;
    let mut response = (StatusCode::OK, body).into_response();
    set_type(&mut response, "application/json");
    Ok(response)
}

#[cfg(test)]
mod tests {
    use kymo_promql::{Function, parse};

    /// The page completes what the parser knows.
    #[test]
    fn words_of_the_page_are_those_of_the_parser() {
        let words = include_str!("../../../assets/promql-words.js");
        let names = |table: &str| {
            let rest = words.split(&format!("export const {table} = {{\n")).nth(1);
            let lines = rest.unwrap().split("\n};").next().unwrap().lines();
            let names = lines.map(|line| line.trim().split(':').next().unwrap().to_string());
            names.collect::<Vec<String>>()
        };
        let functions = Function::all().iter().map(|function| function.name);
        assert_eq!(names("FUNCTIONS"), functions.collect::<Vec<&str>>());
        assert_eq!(names("AGGREGATIONS").len(), 12);
        for name in names("AGGREGATIONS") {
            let forms = ["(a)", "(1, a)", "(\"l\", a)"].map(|form| format!("{name}{form}"));
            assert!(forms.iter().any(|form| parse(form).is_ok()), "{name}");
        }
    }
}
