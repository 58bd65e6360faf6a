//! `/metrics`: the newest sample for Prometheus.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;

use super::Hub;
use crate::answer::{Answer, Refusal};

pub async fn answer(State(hub): State<Arc<Hub>>, headers: HeaderMap) -> Answer {
    let _ = (hub, headers);
    Err(Refusal::missing("cannot answer: not yet"))
}
