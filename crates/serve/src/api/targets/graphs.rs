//! `/kymo/v1/targets/graphs`: the graphs of one target with their numbers.

use std::sync::Arc;

use axum::extract::State;
use kymo_query::targets::{
    DescribedTarget, Direction, PERCENT, Percentile, Period, TargetGraph, TargetUnit, colours,
    direction_name, legends,
};
use kymo_sys::clock::{Clock as _, RealClock};
use kymo_wire::keeper::Rows;
use serde_json::{Value as Json, json};

use super::shown;
use crate::answer::{Answer, Refusal};
use crate::api::{Hub, Params, RequestHead, events};
use crate::number;
use crate::turns::Lane;

pub(in crate::api) async fn answer(State(hub): State<Arc<Hub>>, head: RequestHead) -> Answer {
    let params = Params::of(&head.uri);
    let id = params.text("id").unwrap_or_default().to_string();
    let graphs = move |hub: &Hub| {
        let targets = hub.targets()?;
        let missing = || Refusal::missing(format!("cannot find target {}", shown(&id)));
        let (listed, at, target) = targets.described(&id).ok_or_else(missing)?;
        let now = RealClock.now().real_ns.div_euclid(1_000_000_000);
        // A series without rows has graphs without lines: the page explains the gap.
        let mut problem = None;
        let mut rows = |range| {
            targets.rows(&range).unwrap_or_else(|why| {
                problem = Some(why);
                Rows::default()
            })
        };
        let periods = Period::ALL
            .into_iter()
            .filter(|period| period.is_shown(&target));
        let graphs: Vec<TargetGraph> = periods
            .map(|period| {
                let rows = rows(period.question(&target, now));
                TargetGraph::new(period, &target, &rows, now)
            })
            .collect();
        let from = graphs.iter().map(|graph| graph.range.0).min();
        let range = (from.unwrap_or(now), now + 1);
        // If the keeper does not answer, the failed rows say so.
        let marks = targets.marks(&target.device, range).unwrap_or_default();
        let percentile = Percentile::new(&rows(Percentile::question(&target, now)));
        let mut body = described(&id, &target, &TargetUnit::of(&target));
        body["interval"] = listed.interval_s(&listed.targets[at]).into();
        body["now"] = now.into();
        let why = targets.reasons();
        let why = why.why(&id).map(shown);
        body["problem"] = problem.or(why).into();
        body["marks"] = events::list(&marks);
        body["percentile"] = self::percentile(&percentile);
        Ok(with_graphs(&body, &target, &graphs))
    };
    hub.answer_json(Lane::Keeper, &head, graphs).await
}

fn described(id: &str, target: &DescribedTarget, unit: &TargetUnit) -> Json {
    let direction = |direction: Direction| {
        let name = direction_name(target, direction);
        json!({
            "name": name.map(shown),
            "drawn": direction.is_shown(target),
        })
    };
    json!({
        "id": id,
        "name": shown(&target.name),
        "device": shown(&target.device),
        "series": target.series,
        "title": shown(&target.title),
        "page_top": target.page_top.lines().map(shown).collect::<Vec<_>>(),
        "directions": Direction::ALL.map(direction),
        "legends": legends(target).map(|legend| shown(&legend)),
        "colours": colours(target),
        "max_bytes": target.max_bytes,
        "options": target.options,
        "unit": self::unit(unit),
        "size": [target.x_size.unwrap_or(400), target.y_size.unwrap_or(100)],
    })
}

/// Unit for writing numbers.
pub(super) fn unit(unit: &TargetUnit) -> Json {
    json!({
        "scale": unit.scale,
        "factor": unit.factor,
        "tics": unit.tics_factor,
        "kilo": unit.kilo,
        "prefixes": unit.prefixes,
        "name": shown(&unit.name),
        "axis": shown(&unit.axis),
        "whole": unit.whole,
    })
}

fn percentile(percentile: &Percentile) -> Json {
    json!({
        "percent": PERCENT,
        "rates": percentile.rates,
        "values": percentile.values,
        "from": percentile.from,
        "step": percentile.step,
    })
}

/// The answer with its graphs. Their rows are written as briefly as those of other
/// series.
fn with_graphs(body: &Json, target: &DescribedTarget, graphs: &[TargetGraph]) -> String {
    let mut out = body.to_string();
    out.truncate(out.len() - 1);
    out.push_str(",\"graphs\":[");
    for (n, graph) in graphs.iter().enumerate() {
        if n > 0 {
            out.push(',');
        }
        let head = json!({
            "period": graph.period.name(),
            "from": graph.range.0,
            "thru": graph.range.1,
            "first": graph.start + i64::from(graph.step),
            "step": graph.step,
            "count": graph.lines[0].averages.len(),
            "top": graph.top(target),
            "unscaled": graph.period.is_unscaled(target),
            "peaks": graph.period.has_peaks(target),
        });
        let head = head.to_string();
        out.push_str(&head[..head.len() - 1]);
        out.push_str(",\"lines\":[");
        for (n, line) in graph.lines.iter().enumerate() {
            out.push_str(if n > 0 { ",{" } else { "{" });
            list(&mut out, "avg", &line.averages);
            out.push(',');
            list(&mut out, "peak", &line.peaks);
            for (name, value) in [
                ("max", line.max),
                ("average", line.average),
                ("current", line.current),
                ("average_peak", line.average_peak),
            ] {
                out.push_str(&format!(",\"{name}\":"));
                number::push(&mut out, value);
            }
            out.push('}');
        }
        out.push_str("]}");
    }
    out.push_str("]}");
    out
}

fn list(out: &mut String, name: &str, values: &[f64]) {
    out.push_str(&format!("\"{name}\":["));
    for (n, &value) in values.iter().enumerate() {
        if n > 0 {
            out.push(',');
        }
        number::push(out, value);
    }
    out.push(']');
}
