//! `/kymo/v1/graph.svg`: the graphs that `kymo graph` draws.

use std::ops::RangeInclusive;
use std::sync::Arc;

use axum::extract::State;
use kymo_view::graphs::{DEFAULT_LETTERS, Plan};
use kymo_view::svg::{Style, Theme};

use super::{Hub, Params, RequestHead, series};
use crate::answer::{Answer, Refusal};
use crate::guarded::Picks;

pub(super) async fn answer(State(hub): State<Arc<Hub>>, head: RequestHead) -> Answer {
    let params = Params::of(&head.uri);
    let words = match params.fields() {
        words if words.is_empty() => vec![DEFAULT_LETTERS.to_string()],
        words => words,
    };
    let plan = Plan::new(words.iter().map(String::as_str)).map_err(Refusal::missing)?;
    let picks = Picks::new(plan.picks().to_vec(), head.scopes)?;
    let (from_ns, thru_ns) = params.range()?;
    let style = style(&params)?;
    let lane = series::lane(&picks, from_ns, thru_ns);
    let graph = move |hub: &Hub| {
        let points = params.count("points", style.points(), 11_000)?;
        let series = hub.series(&picks, from_ns, thru_ns, points)?.series;
        let extent = hub.archive.extent().map_err(Refusal::unavailable)?;
        let svg = plan.svg(&series, &extent.context, &style);
        Ok(svg.into_bytes())
    };
    hub.answer(lane, &head, "image/svg+xml", graph).await
}

fn style(params: &Params) -> Result<Style, Refusal> {
    let default = Style::default();
    let pixels = |name, default: u32, bounds: RangeInclusive<u32>| {
        let pixels = params.count(name, default as usize, *bounds.end() as usize)?;
        Ok((pixels as u32).max(*bounds.start()))
    };
    let theme = params.text("theme").unwrap_or("light");
    Ok(Style {
        width: pixels("width", default.width, Style::WIDTHS)?,
        height: pixels("height", default.height, Style::HEIGHTS)?,
        theme: Theme::parse(theme).ok_or_else(|| {
            Refusal::bad(format!("cannot use theme {theme:?}: it is light or dark"))
        })?,
    })
}
