//! All samples in one message, in a block of Snappy.

use std::sync::Arc;

use axum::http::{HeaderValue, header};
use axum::response::Response;
use kymo_wire::remote_read::{SAMPLES_ENCODING, SAMPLES_TYPE, put_result, put_series};
use kymo_wire::remote_write::compress;

use super::super::failure::{ErrorType, Failure};
use super::super::{ANSWER_MAX, Hub, PATIENCE, RequestHead, Terms, answer_with};
use super::SeriesQuery;
use super::batches::{Batches, EncodedSeries, too_large};
use crate::answer::Made;

/// Answers all queries at once.
pub(super) async fn answer(
    hub: Arc<Hub>,
    head: &RequestHead,
    queries: Vec<SeriesQuery>,
) -> Result<Response, Failure> {
    let made = move |hub: &Hub, terms: &Terms| {
        let (message, mut block) = (message(hub, terms, &queries)?, Vec::new());
        let packed = compress(&message, &mut block);
        packed.map_err(|why| Failure::new(ErrorType::Execution, why.why()))?;
        Ok(Made::plain(SAMPLES_TYPE, block))
    };
    let mut response = answer_with(hub, head, PATIENCE, made).await?;
    let encoding = HeaderValue::from_static(SAMPLES_ENCODING);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_ENCODING, encoding);
    Ok(response)
}

fn message(hub: &Hub, terms: &Terms, queries: &[SeriesQuery]) -> Result<Vec<u8>, Failure> {
    let begin = || EncodedSeries::Samples(Vec::new());
    let mut batches = Batches::new(hub, terms, ANSWER_MAX, begin)?;
    let mut message = Vec::new();
    for query in queries {
        let left = ANSWER_MAX.saturating_sub(message.len());
        let filled = put_result(&mut message, |out| {
            let from = out.len();
            batches.each_series(query, |labels, series| {
                if let EncodedSeries::Samples(samples) = series {
                    put_series(out, labels, &samples);
                }
                match out.len() - from > left {
                    true => Err(too_large()),
                    false => Ok(()),
                }
            })
        });
        filled.unwrap_or(Ok(()))?;
    }
    Ok(message)
}
