//! The instances of a subsystem at a moment as rows: the parameters, and the answer.

use std::cmp::Ordering;

use kymo_base::column::{Cells, Column, Value};
use kymo_base::name::DisplayName;
use kymo_base::reading::Row;
use kymo_kernel::choice;
use kymo_kernel::subsystem::Subsystem;
use kymo_query::table::Table;
use serde_json::json;

use super::{Hub, Params};
use crate::access::Scopes;
use crate::answer::Refusal;
use crate::number::{self, seconds};
use crate::turns::Lane;

const ROWS_MAX: usize = 10_000;
/// Longest span of rates, in seconds.
const OVER_MAX: usize = 3600;

/// Rates up to now over at most this span need no long reading.
const SHORT_NS: i64 = 60_000_000_000;

/// A cell of the table.
enum Cell {
    Number(f64),
    Text(String),
}

/// A column that the subsystem does not have, from other values of a row.
pub(super) struct More {
    pub(super) name: &'static str,
    pub(super) unit: &'static str,
    pub(super) help: &'static str,
    /// Appends the value as JSON.
    pub(super) put: fn(&Table, &Row, &mut String),
}

/// Parameters of a question.
pub(super) struct TableQuery {
    subsystem: &'static Subsystem,
    more: &'static [More],
    lane: Lane,
    at_ns: i64,
    over_ns: Option<i64>,
    columns: Vec<&'static Column>,
    /// Indices of the columns whose texts are searched.
    searched: Vec<usize>,
    sort: Option<(usize, bool)>,
    filter: Option<String>,
    limit: usize,
}

impl TableQuery {
    /// Reads the parameters; `searched` are names of columns.
    pub(super) fn new(
        params: &Params,
        scopes: Scopes,
        subsystem: &'static Subsystem,
        searched: &[&str],
        more: &'static [More],
    ) -> Result<TableQuery, Refusal> {
        let at_ns = params.time("at", "now")?;
        let over_ns = match params.text("over") {
            None => None,
            Some(_) => Some(params.count("over", 1, OVER_MAX)? as i64 * 1_000_000_000),
        };
        let columns: Vec<&Column> = subsystem
            .detail
            .iter()
            .filter(|column| scopes.shows(column))
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
        let is_searched = |&at: &usize| searched.contains(&columns[at].name);
        Ok(TableQuery {
            lane: match (params.text("at"), over_ns) {
                (None | Some("now"), None | Some(0..=SHORT_NS)) => Lane::Short,
                _ => Lane::Long,
            },
            subsystem,
            more,
            at_ns,
            over_ns,
            sort: sort.transpose()?,
            searched: (0..columns.len()).filter(is_searched).collect(),
            columns,
            filter: filter.map(str::to_lowercase),
            limit: params.count("limit", ROWS_MAX, ROWS_MAX)?,
        })
    }

    /// The lane of this question.
    pub(super) fn lane(&self) -> Lane {
        self.lane
    }

    /// Reads the answer. `none`: message if nothing was recorded near the moment.
    pub(super) fn read(&self, hub: &Hub, none: &str) -> Result<String, Refusal> {
        let what = &hub.archive.what;
        let recordings = what.recordings().map_err(Refusal::unavailable)?;
        let table = Table::read(&recordings, self.subsystem, self.at_ns, self.over_ns);
        let table = table.map_err(Refusal::unavailable)?;
        Ok(self.body(&table.ok_or_else(|| Refusal::missing(none))?))
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
        let mut out = self.head(table);
        out.pop();
        out.push_str(",\"rows\":[");
        for (n, (cells, row)) in rows.iter().take(self.limit).enumerate() {
            out.push_str(if n == 0 { "[" } else { ",[" });
            for (n, cell) in cells.iter().enumerate() {
                out.push_str(if n == 0 { "" } else { "," });
                push(&mut out, cell);
            }
            for more in self.more {
                out.push(',');
                (more.put)(table, row, &mut out);
            }
            out.push(']');
        }
        out.push_str("]}");
        out
    }

    /// The answer without its rows.
    fn head(&self, table: &Table) -> String {
        let column = |name, unit, help| json!({ "name": name, "unit": unit, "help": help });
        let columns = self
            .columns
            .iter()
            .map(|c| column(c.name, c.unit.symbol(), c.help))
            .chain(self.more.iter().map(|m| column(m.name, m.unit, m.help)));
        let from_ns = table.from.map(|from| from.real_ns);
        let mut head = json!({
            "at": seconds(table.at.real_ns),
            "from": from_ns.map(seconds),
            "elapsed": table.elapsed(),
            "total": table.rows().count(),
            "last": table.next_ns.is_none(),
            "previous": table.previous_ns.map(seconds),
            "next": table.next_ns.map(seconds),
            "columns": columns.collect::<Vec<_>>(),
        });
        let not_recorded = choice::not_recorded(&table.context);
        if let Some(what) = not_recorded.filter(|_| self.subsystem.is_of_processes()) {
            head["not_recorded"] = what.into();
        }
        head.to_string()
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

    /// True if a row matches the filter: one of its texts contains the filter, or its pid equals it.
    fn keeps(&self, row: &[Cell]) -> bool {
        let Some(filter) = &self.filter else {
            return true;
        };
        let pid = filter.parse::<f64>().ok();
        let cells = self.columns.iter().zip(row).enumerate();
        cells.into_iter().any(|(at, (column, cell))| match cell {
            Cell::Number(value) => column.name == "pid" && pid == Some(*value),
            Cell::Text(text) => self.searched.contains(&at) && text.to_lowercase().contains(filter),
        })
    }
}

fn push(out: &mut String, cell: &Cell) {
    match cell {
        Cell::Number(value) => number::push(out, *value),
        Cell::Text(text) => out.push_str(&serde_json::Value::from(text.as_str()).to_string()),
    }
}

/// Order of cells: largest numbers first, unknown ones last, texts alphabetically.
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
