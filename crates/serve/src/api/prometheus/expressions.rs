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
