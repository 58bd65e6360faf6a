//! `/api/v1/processes`: the process table at a moment.

use std::cmp::Ordering;
use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use kymo_base::column::{Cells, Column, Value};
use kymo_base::name::DisplayName;
use kymo_base::reading::{MISSING, Row};
use kymo_kernel::subsystem::process::{PROCESS, STARTTIME};
use kymo_query::processes::Table;
use serde_json::json;

use super::{Asker, Hub, Params};
use crate::access::Scopes;
use crate::answer::{self, Answer, Refusal};
use crate::number::{self, seconds};

const ROWS_MAX: usize = 10_000;
/// Longest span of rates, in seconds.
const OVER_MAX: usize = 3600;

pub(super) async fn answer(
    State(hub): State<Arc<Hub>>,
    Extension(scopes): Asker,
    uri: Uri,
    headers: HeaderMap,
) -> Answer {
    let params = Params::of(&uri);
    let at_ns = params.time("at", "now")?;
    let over_ns = match params.text("over") {
        None => None,
        Some(_) => Some(params.count("over", 1, OVER_MAX)? as i64 * 1_000_000_000),
    };
    let asked = Asked::new(&params, scopes)?;
    let body = hub
        .ask(move |hub| {
            let recordings = hub
                .archive
                .what
                .recordings()
                .map_err(Refusal::unavailable)?;
            let table = Table::read(&recordings, at_ns, over_ns).map_err(Refusal::unavailable)?;
            let table = table.ok_or_else(|| {
                Refusal::missing("cannot show processes: none were recorded then")
            })?;
            Ok(asked.body(&table))
        })
        .await?;
    Ok(answer::json(&headers, body))
}

/// A cell of the table.
enum Cell {
    Number(f64),
    Text(String),
}

/// What is wanted of the table.
struct Asked {
    columns: Vec<&'static Column>,
    scopes: Scopes,
    sort: Option<(usize, bool)>,
    filter: Option<String>,
    limit: usize,
}

impl Asked {
    fn new(params: &Params, scopes: Scopes) -> Result<Asked, Refusal> {
        let columns: Vec<&Column> = PROCESS
            .detail
            .iter()
            .filter(|column| scopes.texts || !column.private)
            .collect();
        let sort = params.text("sort").map(|sort| {
            let (name, turned) = match sort.strip_prefix('-') {
                Some(name) => (name, true),
                None => (sort, false),
            };
            let column = columns.iter().position(|column| column.name == name);
            let column = column
                .ok_or_else(|| Refusal::bad(format!("cannot sort by {name:?}: no such column")))?;
            Ok((column, turned))
        });
        let filter = params.text("filter").filter(|filter| !filter.is_empty());
        Ok(Asked {
            sort: sort.transpose()?,
            columns,
            scopes,
            filter: filter.map(str::to_lowercase),
            limit: params.count("limit", ROWS_MAX, ROWS_MAX)?,
        })
    }

    fn body(&self, table: &Table) -> String {
        let mut rows: Vec<(Vec<Cell>, &Row)> = table
            .rows()
            .map(|(cells, row)| (self.row(&cells), row))
            .filter(|(row, _)| self.keeps(row))
            .collect();
        if let Some((column, turned)) = self.sort {
            rows.sort_by(|(a, _), (b, _)| {
                let order = compare(&a[column], &b[column]);
                if turned { order.reverse() } else { order }
            });
        }
        let mut columns: Vec<_> = self
            .columns
            .iter()
            .map(|c| json!({ "name": c.name, "unit": c.unit.symbol(), "help": c.help }))
            .collect();
        columns.push(
            json!({ "name": "key", "unit": "", "help": "Tells two processes of one pid apart" }),
        );
        columns.push(
            json!({ "name": "start", "unit": "s", "help": "When it was started, since 1970" }),
        );
        let from_ns = table.from.map(|from| from.real_ns);
        let mut out = json!({
            "at": seconds(table.at.real_ns),
            "from": from_ns.map(seconds),
            "elapsed": table.elapsed(),
            "total": table.rows().count(),
            "last": table.next_ns.is_none(),
            "previous": table.previous_ns.map(seconds),
            "next": table.next_ns.map(seconds),
            "columns": columns,
        })
        .to_string();
        out.pop();
        out.push_str(",\"rows\":[");
        for (n, (cells, row)) in rows.iter().take(self.limit).enumerate() {
            out.push_str(if n == 0 { "[" } else { ",[" });
            for cell in cells {
                push(&mut out, cell);
                out.push(',');
            }
            let start = row.values[STARTTIME];
            let key = serde_json::Value::from(row.key.to_string());
            out.push_str(&format!("{key},"));
            match start {
                MISSING => out.push_str("null"),
                ticks => number::push_time(&mut out, table.started_ns(ticks)),
            }
            out.push(']');
        }
        out.push_str("]}");
        out
    }

    fn row(&self, cells: &Cells) -> Vec<Cell> {
        let cell = |column: &&Column| match column.value {
            Value::Number(value) => Cell::Number(value(cells)),
            Value::Text(value) => {
                let mut text = Vec::new();
                value(cells, &mut text);
                Cell::Text(DisplayName(&text).text().into_owned())
            }
        };
        self.columns.iter().map(cell).collect()
    }

    /// Whether a row has the text that is looked for: in its texts, or as its pid.
    fn keeps(&self, row: &[Cell]) -> bool {
        let Some(filter) = &self.filter else {
            return true;
        };
        let searched: &[&str] = match self.scopes.texts {
            true => &["comm", "command", "user", "cgroup"],
            false => &["comm"],
        };
        let pid = filter.parse::<f64>().ok();
        self.columns
            .iter()
            .zip(row)
            .any(|(column, cell)| match cell {
                Cell::Number(value) => column.name == "pid" && pid == Some(*value),
                Cell::Text(text) => {
                    searched.contains(&column.name) && text.to_lowercase().contains(filter)
                }
            })
    }
}

fn push(out: &mut String, cell: &Cell) {
    match cell {
        Cell::Number(value) => number::push(out, *value),
        Cell::Text(text) => out.push_str(&serde_json::Value::from(text.as_str()).to_string()),
    }
}

/// Numbers largest first, those not known last; texts in their order.
fn compare(a: &Cell, b: &Cell) -> Ordering {
    match (a, b) {
        (Cell::Number(a), Cell::Number(b)) => match (a.is_nan(), b.is_nan()) {
            (false, false) => b.total_cmp(a),
            (a_missing, b_missing) => a_missing.cmp(&b_missing),
        },
        (Cell::Text(a), Cell::Text(b)) => a.cmp(b),
        _ => Ordering::Equal,
    }
}
