//! `/kymo/v1/series`: fields over a range.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use kymo_query::archive::POINTS_MAX;
use kymo_query::fields::FieldAnswer;
use kymo_query::series::{Point, Series};
use kymo_query::sheet::Pick;
use kymo_query::stored::{MARK, StoredField};

use super::{Hub, Params, RequestHead, events};
use crate::access::Scopes;
use crate::answer::{Answer, Refusal};
use crate::guarded::Picks;
use crate::number;
use crate::stored::grid;
use crate::turns::Lane;

/// Most points of a line.
const LINE_POINTS_MAX: usize = 11_000;
/// Most fields of a question.
const FIELDS_MAX: usize = 512;

pub(super) async fn answer(State(hub): State<Arc<Hub>>, head: RequestHead) -> Answer {
    let params = Params::of(&head.uri);
    let (stored, own): (Vec<String>, Vec<String>) = params
        .fields()
        .into_iter()
        .partition(|id| id.starts_with(MARK));
    let picks = match (own.is_empty(), stored.is_empty()) {
        (true, false) => Picks::NONE,
        _ => picks(&own, head.scopes)?,
    };
    let stored = stored_fields(&stored)?;
    let (from_ns, thru_ns) = params.range()?;
    let points = params.count("points", 600, LINE_POINTS_MAX)?;
    // Beside fields of this machine, stored fields are an addition: without the keeper the answer omits them.
    let is_stored_alone = picks.is_empty();
    let lane = match is_stored_alone {
        true => Lane::Keeper,
        false => lane(&picks, from_ns, thru_ns),
    };
    let scopes = head.scopes;
    let rows = move |hub: &Hub| {
        let mut answer = match picks.is_empty() {
            true => FieldAnswer {
                series: Series::new(grid(from_ns, thru_ns, points), 0),
                resolution_ns: 0,
                problem: None,
            },
            false => hub.series(&picks, from_ns, thru_ns, points)?,
        };
        if is_stored_alone {
            let finest_ns = hub.add_stored(&stored, scopes, &mut answer.series)?;
            answer.resolution_ns = finest_ns.unwrap_or(answer.resolution_ns);
        } else if !stored.is_empty() {
            hub.add_stored_if_answered(&stored, scopes, &mut answer)?;
        }
        Ok(body(&answer))
    };
    hub.answer_json(lane, &head, rows).await
}

/// The lane of a question for these fields.
pub(super) fn lane(picks: &[Pick], from_ns: i64, thru_ns: i64) -> Lane {
    let is_short = thru_ns.saturating_sub(from_ns) <= SHORT_NS
        && picks.len() <= SHORT_FIELDS_MAX
        && !picks.iter().any(|pick| pick.subsystem.is_of_processes());
    match is_short {
        true => Lane::Short,
        false => Lane::Long,
    }
}

/// A question with a shorter range and fewer fields is short. Guesses: some ten milliseconds.
const SHORT_NS: i64 = 900_000_000_000;
const SHORT_FIELDS_MAX: usize = 64;

/// Fields of these ids, if the asker may see them.
pub(super) fn picks(ids: &[String], scopes: Scopes) -> Result<Picks, Refusal> {
    if ids.is_empty() || ids.len() > FIELDS_MAX {
        return Err(Refusal::bad(format!(
            "cannot answer: fields has to name 1 to {FIELDS_MAX} fields"
        )));
    }
    let picks = ids
        .iter()
        .map(|id| Pick::parse(id).map_err(Refusal::missing));
    Picks::new(picks.collect::<Result<_, _>>()?, scopes)
}

/// Fields of the store with these ids.
fn stored_fields(ids: &[String]) -> Result<Vec<StoredField>, Refusal> {
    if ids.len() > FIELDS_MAX {
        return Err(Refusal::bad(format!(
            "cannot answer: fields has to name 1 to {FIELDS_MAX} fields"
        )));
    }
    let fields = ids.iter().map(|id| StoredField::parse(id));
    fields.collect::<Result<_, _>>().map_err(Refusal::missing)
}

impl Hub {
    /// Adds the lines of stored series. Returns the length of the finest row in nanoseconds.
    fn add_stored(
        &self,
        fields: &[StoredField],
        scopes: Scopes,
        series: &mut Series,
    ) -> Result<Option<i64>, Refusal> {
        let Some(stored) = &self.stored else {
            return Err(Refusal::missing(
                "cannot find stored series: there is no store",
            ));
        };
        if (series.lines.len() + fields.len()) * series.grid.count > POINTS_MAX {
            return Err(too_much());
        }
        let finest = stored.add(fields, scopes, series)?;
        Ok(finest.map(|step| i64::from(step) * 1_000_000_000))
    }

    /// Adds the lines of stored series to an answer about this machine, or says why they are missing.
    fn add_stored_if_answered(
        &self,
        fields: &[StoredField],
        scopes: Scopes,
        answer: &mut FieldAnswer,
    ) -> Result<(), Refusal> {
        let Some(stored) = &self.stored else {
            return self
                .add_stored(fields, scopes, &mut answer.series)
                .map(drop);
        };
        stored.check(fields, scopes)?;
        let lines = answer.series.lines.len() + fields.len();
        if lines * answer.series.grid.count > POINTS_MAX {
            return Err(too_much());
        }
        let keeper = stored.keeper().for_addition();
        if let Err(why) = keeper.add(fields, &mut answer.series) {
            let problem = format!("values of stored series are missing: {why}");
            answer.problem.get_or_insert(problem);
        }
        Ok(())
    }

    /// Reads fields over a range.
    pub(crate) fn series(
        &self,
        picks: &Picks,
        from_ns: i64,
        thru_ns: i64,
        points: usize,
    ) -> Result<FieldAnswer, Refusal> {
        let answer = self.fields.series(picks, from_ns, thru_ns, points);
        let answer = answer.map_err(Refusal::unavailable)?;
        match answer.series.full {
            true => Err(too_much()),
            false => Ok(answer),
        }
    }
}

fn too_much() -> Refusal {
    Refusal::new(
        StatusCode::UNPROCESSABLE_ENTITY,
        "cannot answer: that is too much at once; ask for fewer fields or points",
    )
}

fn body(answer: &FieldAnswer) -> String {
    let (series, grid) = (&answer.series, answer.series.grid);
    let mut out = String::with_capacity(256 + series.lines.len() * grid.count * 6);
    out.push_str("{\"first\":");
    number::push_time(&mut out, grid.from_ns + grid.step_ns);
    out.push_str(",\"step\":");
    number::push_time(&mut out, grid.step_ns);
    out.push_str(&format!(",\"count\":{},\"resolution\":", grid.count));
    number::push_time(&mut out, answer.resolution_ns);
    out.push_str(",\"series\":[");
    for (n, (line, points)) in series.lines.iter().zip(&series.points).enumerate() {
        if n > 0 {
            out.push(',');
        }
        let (id, help) = (text(&line.id), text(line.help));
        let unit = text(line.unit.symbol());
        out.push_str(&format!("{{\"id\":{id},\"unit\":{unit},\"help\":{help}"));
        list(&mut out, "avg", points, Point::mean);
        if points.iter().any(|point| point.min < point.max) {
            list(&mut out, "min", points, |point| point.min);
            list(&mut out, "max", points, |point| point.max);
        }
        out.push('}');
    }
    out.push_str("],\"marks\":");
    out.push_str(&events::list(&series.marks).to_string());
    if let Some(problem) = &answer.problem {
        out.push_str(&format!(",\"problem\":{}", text(problem)));
    }
    out.push('}');
    out
}

fn text(text: &str) -> serde_json::Value {
    text.into()
}

fn list(out: &mut String, name: &str, points: &[Point], value: impl Fn(&Point) -> f64) {
    out.push_str(&format!(",\"{name}\":["));
    for (n, point) in points.iter().enumerate() {
        if n > 0 {
            out.push(',');
        }
        number::push(out, value(point));
    }
    out.push(']');
}
