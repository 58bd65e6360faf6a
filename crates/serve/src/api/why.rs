//! `/kymo/v1/why`: unusual values at a moment or in a range, and the processes behind them.

use std::sync::Arc;

use axum::extract::State;
use kymo_query::why::{When, Why, add_stored, why};

use super::{Hub, Params, RequestHead};
use crate::answer::{Answer, Refusal};
use crate::guarded::{Guarded, TellsOfPeople};
use crate::turns::Lane;

/// Longest range that is asked about.
const RANGE_MAX_NS: i64 = 6 * 3_600_000_000_000;
/// In place of the folder of the recording, whose path may tell of people.
const UNTOLD: &str = "DIR";

impl TellsOfPeople for Why {
    fn without_people(self) -> Why {
        Why::without_people(self)
    }
}

pub(super) async fn answer(State(hub): State<Arc<Hub>>, head: RequestHead) -> Answer {
    let params = Params::of(&head.uri);
    let when = when(&params)?;
    let scopes = head.scopes;
    let found = move |hub: &Hub| {
        let what = &hub.archive.what;
        let recordings = what.recordings().map_err(Refusal::unavailable)?;
        let mut found = why(&recordings, when).map_err(Refusal::unavailable)?;
        if let Some(stored) = &hub.stored {
            add_stored(&mut found, &stored.reader_for_addition(scopes));
        }
        let found = Guarded::new(found).seen_by(scopes);
        let place = match scopes.tells_of_people() {
            true => what.name(),
            false => UNTOLD.into(),
        };
        Ok(kymo_view::why::json(&found, &place))
    };
    hub.answer_json(Lane::Long, &head, found).await
}

/// The span that is asked about.
fn when(params: &Params) -> Result<When, Refusal> {
    if params.text("from").is_some() || params.text("thru").is_some() {
        let (from_ns, thru_ns) = params.range()?;
        return match thru_ns - from_ns > RANGE_MAX_NS {
            true => Err(Refusal::bad(
                "cannot use from: more than 6 hours before thru",
            )),
            false => Ok(When::Between(from_ns, thru_ns)),
        };
    }
    match params.text("at") {
        None => Ok(When::WorstMinuteBefore(params.time("at", "now")?)),
        Some("now") => {
            let now_ns = params.time("at", "now")?;
            Ok(When::Between(now_ns - 60_000_000_000, now_ns))
        }
        Some(_) => Ok(When::around(params.time("at", "now")?)),
    }
}
