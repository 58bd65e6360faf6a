//! `/api/v1/labels`, `/api/v1/label/NAME/values` and `/api/v1/series`: series that there are, and their labels.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use kymo_base::label_set;
use kymo_query::readers::Union;
use kymo_series::{Budget, Labels, Matcher, ReadError, Reader, TimeRange};

use super::failure::{ErrorType, Failure};
use super::form::Form;
use super::json::{Remarks, success};
use super::{ANSWER_MAX, FormRequest, Hub, PATIENCE, Terms, answer};

/// Series of an answer at most.
const SERIES_MAX: u64 = 1_000_000;
/// How long before its end a list looks into the recording if it has no start.
const LISTED_MS: i64 = 3_600_000;

/// A question for series or labels.
struct ListQuery {
    sets: Vec<Vec<Matcher>>,
    range: TimeRange,
    /// First moment of the recording that is looked at.
    recorded_from_ms: i64,
    limit: Option<usize>,
}

/// A label and its value.
pub(super) type Pair = (String, String);

pub(super) async fn names(
    State(hub): State<Arc<Hub>>,
    asking: FormRequest,
) -> Result<Response, Failure> {
    let query = ListQuery::of(&asking.form)?;
    let listed = move |hub: &Hub, terms: &Terms| {
        query.texts(hub, terms, |reader, set, range| {
            reader.label_names(set, range)
        })
    };
    answer(hub, &asking.head, PATIENCE, listed).await
}

pub(super) async fn values(
    State(hub): State<Arc<Hub>>,
    Path(name): Path<String>,
    asking: FormRequest,
) -> Result<Response, Failure> {
    let name = unescaped(&name).unwrap_or(name);
    if name.is_empty() {
        let text = format!("invalid label name: {name:?}");
        return Err(Failure::new(ErrorType::BadData, text));
    }
    let mut query = ListQuery::of(&asking.form)?;
    if !label_set::is_name(name.as_bytes()) {
        // No kept series has such a label.
        query.sets.clear();
    }
    let listed = move |hub: &Hub, terms: &Terms| {
        query.texts(hub, terms, |reader, set, range| {
            reader.label_values(&name, set, range)
        })
    };
    answer(hub, &asking.head, PATIENCE, listed).await
}

pub(super) async fn series(
    State(hub): State<Arc<Hub>>,
    asking: FormRequest,
) -> Result<Response, Failure> {
    if asking.form.matchers()?.is_none() {
        let text = "no match[] parameter provided";
        return Err(Failure::new(ErrorType::BadData, text));
    }
    let query = ListQuery::of(&asking.form)?;
    let listed = move |hub: &Hub, terms: &Terms| query.series(hub, terms);
    answer(hub, &asking.head, PATIENCE, listed).await
}

impl ListQuery {
    fn of(form: &Form) -> Result<ListQuery, Failure> {
        let (limit, range) = (form.limit()?, form.range()?);
        let recorded_from_ms = match form.text("start") {
            "" => range.thru_ms.min(form.now_ms()).saturating_sub(LISTED_MS),
            _ => range.from_ms,
        };
        Ok(ListQuery {
            sets: form.matchers()?.unwrap_or_else(|| vec![Vec::new()]),
            range,
            recorded_from_ms,
            limit,
        })
    }

    /// Texts that a reader has for each set of matchers, as a sorted list.
    fn texts(
        &self,
        hub: &Hub,
        terms: &Terms,
        ask: impl Fn(&Union<'_>, &[Matcher], TimeRange) -> Result<Vec<String>, ReadError>,
    ) -> Result<String, Failure> {
        let reader = terms.reader(hub, self.recorded_from_ms)?;
        let (mut texts, mut remarks) = (BTreeSet::new(), Remarks::default());
        for set in &self.sets {
            terms.check()?;
            match ask(&reader, set, self.range) {
                Ok(found) => texts.extend(found),
                Err(error) => remarks.warn([silence(error)?]),
            }
        }
        self.listed(texts, &reader, remarks, |json, text| json.text(&text))
    }

    fn series(&self, hub: &Hub, terms: &Terms) -> Result<String, Failure> {
        let reader = terms.reader(hub, self.recorded_from_ms)?;
        let (mut all, mut remarks) = (BTreeSet::new(), Remarks::default());
        let mut budget = Budget {
            series: SERIES_MAX,
            samples: 0,
        };
        for set in &self.sets {
            terms.check()?;
            match reader.select(set, self.range, &mut budget) {
                Ok(ids) => {
                    let labels = ids.into_iter().filter_map(|id| reader.labels(id));
                    all.extend(labels.map(|labels| pairs(&labels)));
                }
                Err(error) => remarks.warn([silence(error)?]),
            }
        }
        self.listed(all, &reader, remarks, |json, set: Vec<Pair>| {
            json.object(set.iter().map(|(name, value)| (&**name, &**value)));
        })
    }

    fn listed<T>(
        &self,
        items: BTreeSet<T>,
        reader: &Union<'_>,
        mut remarks: Remarks,
        write: impl Fn(&mut super::json::Json, T),
    ) -> Result<String, Failure> {
        let most = self.limit.unwrap_or(usize::MAX);
        remarks.warn(reader.missing());
        if items.len() > most {
            remarks.warn(["results truncated due to limit".to_string()]);
        }
        let items = items.into_iter().take(most);
        success(&remarks, ANSWER_MAX, |json| json.list(items, write))
    }
}

impl Terms {
    /// Fails if the time is over or the client has gone.
    pub(super) fn check(&self) -> Result<(), Failure> {
        use std::sync::atomic::Ordering;
        let failure = |kind, text| Err(Failure::new(kind, text));
        match (self.canceled.load(Ordering::Relaxed), self.is_late()) {
            (true, _) => failure(ErrorType::Canceled, "the client has gone"),
            (false, true) => failure(ErrorType::Timeout, "the question took too long"),
            (false, false) => Ok(()),
        }
    }
}

/// Why a part is missing; an error if the question is to blame.
pub(super) fn silence(error: ReadError) -> Result<String, Failure> {
    match error {
        ReadError::Silent { .. } => Ok(error.to_string()),
        ReadError::TooMuch { .. } | ReadError::Failed(_) => Err(error.into()),
    }
}

/// Labels of a series, sorted.
pub(super) fn pairs(labels: &Labels) -> Vec<Pair> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let each = label_set::each(labels.text());
    each.map(|(name, value)| (text(name), text(&value)))
        .collect()
}

/// A label's name from its form for paths: `U__` and words in which `__` is `_`, and `_HEX_` another character. `None`: it
/// has another form.
fn unescaped(name: &str) -> Option<String> {
    let mut left = name.strip_prefix("U__")?;
    let mut plain = String::new();
    while let Some((before, rest)) = left.split_once('_') {
        plain.push_str(before);
        left = match rest.strip_prefix('_') {
            Some(rest) => {
                plain.push('_');
                rest
            }
            None => {
                let (code, rest) = rest.split_once('_')?;
                plain.push(char::from_u32(u32::from_str_radix(code, 16).ok()?)?);
                rest
            }
        };
    }
    plain.push_str(left);
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_paths() {
        for (name, expect) in [
            ("U__a__b", Some("a_b")),
            ("U__http_2e_status", Some("http.status")),
            ("U__", Some("")),
            ("U__a_zz_", None),
            ("U__a_110000_", None),
            ("U__a_2e", None),
            ("job", None),
        ] {
            assert_eq!(unescaped(name).as_deref(), expect, "{name}");
        }
    }

    #[test]
    fn silence_costs_a_part_and_too_much_all() {
        let source = "the keeper".to_string();
        assert!(silence(ReadError::Silent { source }).is_ok());
        let failure = silence(ReadError::TooMuch { things: "series" }).unwrap_err();
        assert_eq!(failure.kind, ErrorType::Execution);
    }
}
