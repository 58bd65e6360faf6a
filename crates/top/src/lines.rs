//! The lines of a table: instances that pass the filter, in order, as a tree with totals or added up by a common property.

use std::cmp::Ordering;
use std::collections::HashMap;

use kymo_base::column::{Cells, Value};
use kymo_base::context::Context;
use kymo_base::name::DisplayName;
use kymo_base::reading::Row;
use kymo_kernel::subsystem::process::{self, STATE};
use kymo_query::delta::Numbers;
use kymo_view::forest::{self, Placed};
use kymo_view::sums;

use crate::readings::Part;
use crate::tables::{Order, Table};

/// Columns whose texts a filter searches.
const SEARCHED: [&str; 11] = [
    "comm",
    "command",
    "user",
    "cgroup",
    "container",
    "group",
    "name",
    "image",
    "pod",
    "disk",
    "interface",
];

/// Arrangement of processes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Shape {
    /// One line each.
    #[default]
    Flat,
    /// Below their parents, with the totals of their descendants.
    Tree,
    /// Added up by the text of a column.
    By(&'static str),
}

/// Tells an instance from others, also of other moments.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Identity {
    /// Name.
    pub name: Vec<u8>,
    /// Key: a start time of a process.
    pub key: u64,
}

/// A line of a table.
#[derive(Clone, Debug)]
pub struct Line {
    /// Instance, or several of them.
    pub identity: Identity,
    /// Position of the instance in the reading; of several, of the first.
    pub at: usize,
    /// Sums in place of its own numbers.
    pub numbers: Option<Numbers>,
    /// Levels below its root.
    pub level: usize,
    /// Name of several instances, safe to show.
    pub label: Option<String>,
    /// The row that stands for several.
    row: Option<Row>,
    /// Value of the order.
    pub value: f64,
}

impl Line {
    /// Numbers of the line.
    pub fn cells<'a>(&'a self, part: &'a Part, context: &'a Context) -> Cells<'a> {
        match (&self.numbers, &self.row) {
            (Some(numbers), Some(row)) => part.cells_of(numbers, row, context),
            (Some(numbers), None) => part.cells_of(numbers, part.row(self.at), context),
            (None, _) => part.cells(self.at, context),
        }
    }
}

/// Choice and order of lines.
pub struct Choice<'a> {
    /// Table.
    pub table: &'static Table,
    /// Order.
    pub order: Order,
    /// Text that has to be in one of the texts; a number is a pid.
    pub filter: &'a str,
    /// Arrangement.
    pub shape: Shape,
    /// True if threads have lines.
    pub threads: bool,
}

/// The lines of a reading.
pub fn lines(part: &Part, context: &Context, choice: &Choice) -> Vec<Line> {
    let is_of_processes = part.subsystem.is_of_processes();
    let filter = choice.filter.to_lowercase();
    let chosen = (0..part.len()).filter(|&at| {
        let cells = part.cells(at, context);
        let is_kept = !is_of_processes
            || (choice.threads || !process::is_thread(cells.name))
                && (!choice.table.waiting || cells.labels[STATE].first() == Some(&b'D'));
        is_kept && (filter.is_empty() || passes(choice.table, &cells, &filter))
    });
    let chosen: Vec<usize> = chosen.collect();
    let value = choice.table.value(choice.order);
    let mut lines: Vec<Line> = match choice.shape {
        Shape::By(column) if is_of_processes => grouped(part, context, &chosen, choice, column),
        Shape::Tree if is_of_processes => {
            return tree(part, context, &chosen, choice);
        }
        Shape::Flat | Shape::Tree | Shape::By(_) => {
            let line = |at: usize| plain(part, at, value(&part.cells(at, context)));
            chosen.into_iter().map(line).collect()
        }
    };
    lines.sort_by(|a, b| compare((a.value, a.at), (b.value, b.at), choice.order));
    lines
}

fn plain(part: &Part, at: usize, value: f64) -> Line {
    let row = part.row(at);
    Line {
        identity: Identity {
            name: row.name.clone(),
            key: row.key,
        },
        at,
        numbers: None,
        level: 0,
        label: None,
        row: None,
        value,
    }
}

/// The greatest first, unknown ones last, equal ones as the kernel has them.
fn compare(a: (f64, usize), b: (f64, usize), order: Order) -> Ordering {
    let values = match (a.0.is_nan(), b.0.is_nan()) {
        (false, false) if order.turned => a.0.total_cmp(&b.0),
        (false, false) => b.0.total_cmp(&a.0),
        (a_missing, b_missing) => a_missing.cmp(&b_missing),
    };
    values.then(a.1.cmp(&b.1))
}

fn passes(table: &Table, cells: &Cells, filter: &str) -> bool {
    if filter
        .parse::<u64>()
        .is_ok_and(|pid| process::id_of(cells.name) == pid)
    {
        return true;
    }
    let columns = table.subsystem.detail.iter();
    columns
        .filter(|column| SEARCHED.contains(&column.name))
        .any(|column| text(column.value, cells).to_lowercase().contains(filter))
}

/// A column's text, safe to show; empty for a number.
pub fn text(value: Value, cells: &Cells) -> String {
    let mut out = Vec::new();
    match value {
        Value::Text(value) => value(cells, &mut out),
        Value::Number(_) => {}
    }
    DisplayName(&out).text().into_owned()
}

/// Processes added up by the text of a column.
fn grouped(
    part: &Part,
    context: &Context,
    chosen: &[usize],
    choice: &Choice,
    column: &str,
) -> Vec<Line> {
    let Some(column) = choice.table.column(column) else {
        return Vec::new();
    };
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut groups: Vec<(Line, u32)> = Vec::new();
    for &at in chosen {
        let cells = part.cells(at, context);
        // A process includes its threads already.
        if process::is_thread(cells.name) {
            continue;
        }
        let label = text(column.value, &cells);
        let place = *places.entry(label.clone()).or_insert(groups.len());
        let numbers = sums::addable(&cells);
        if place < groups.len() {
            let (group, members) = &mut groups[place];
            if let Some(sum) = &mut group.numbers {
                sums::add_numbers(sum, &numbers);
            }
            *members += 1;
            continue;
        }
        let mut line = plain(part, at, 0.0);
        line.identity = Identity {
            name: label.clone().into_bytes(),
            key: 0,
        };
        (line.numbers, line.label) = (Some(numbers), Some(label));
        groups.push((line, 1));
    }
    let value = choice.table.value(choice.order);
    let finish = |(mut line, members): (Line, u32)| {
        // The name of a process is its pid; here it is their number.
        line.row = Some(Row {
            name: members.to_string().into_bytes(),
            ..part.row(line.at).clone()
        });
        line.value = value(&line.cells(part, context));
        line
    };
    groups.into_iter().map(finish).collect()
}

/// Processes below their parents, each with the totals of its descendants; siblings in order.
fn tree(part: &Part, context: &Context, chosen: &[usize], choice: &Choice) -> Vec<Line> {
    let of = |at: &usize| {
        let cells = part.cells(*at, context);
        let id = (!process::is_thread(cells.name)).then(|| process::pid_of(cells.name));
        let parent = process::parent_of(&cells);
        (id, parent.map(f64::to_bits))
    };
    let (ids, parents): (Vec<_>, Vec<_>) = chosen.iter().map(of).unzip();
    // Parents are numbers of columns, ids those of names.
    let bits: HashMap<u64, u64> = ids.iter().flatten().map(|&id| (number(id), id)).collect();
    let parents: Vec<Option<u64>> = parents
        .iter()
        .map(|parent| parent.and_then(|parent| bits.get(&parent).copied()))
        .collect();
    let order = forest::order(&ids, &parents);
    let mut numbers: Vec<Numbers> = order
        .iter()
        .map(|one| sums::addable(&part.cells(chosen[one.item], context)))
        .collect();
    let is_added = |one: &Placed| ids[one.item].is_some();
    sums::add_up(&mut numbers, &order, is_added);
    let value = choice.table.value(choice.order);
    let lines = order.iter().zip(numbers).map(|(one, numbers)| {
        let mut line = plain(part, chosen[one.item], 0.0);
        (line.level, line.numbers) = (one.level, Some(numbers));
        line.value = value(&line.cells(part, context));
        line
    });
    let lines: Vec<Line> = lines.collect();
    siblings_in_order(lines, &order, choice.order)
}

/// The bits of a pid as a number of a column.
fn number(id: u64) -> u64 {
    u32::try_from(id).map_or(u64::MAX, |id| f64::from(id).to_bits())
}

/// Puts siblings into the order of their totals; `placed` has each line behind its parent.
fn siblings_in_order(lines: Vec<Line>, placed: &[Placed], order: Order) -> Vec<Line> {
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); lines.len()];
    let mut roots = Vec::new();
    for (at, one) in placed.iter().enumerate() {
        match one.parent {
            Some(parent) => children[parent].push(at),
            None => roots.push(at),
        }
    }
    let key = |at: &usize| (lines[*at].value, lines[*at].at);
    // The stack's last one comes first.
    let sort = |list: &mut Vec<usize>| list.sort_by(|a, b| compare(key(b), key(a), order));
    children.iter_mut().for_each(sort);
    sort(&mut roots);
    let mut stack = roots;
    let mut sequence = Vec::with_capacity(lines.len());
    while let Some(at) = stack.pop() {
        sequence.push(at);
        stack.append(&mut children[at]);
    }
    let mut lines: Vec<Option<Line>> = lines.into_iter().map(Some).collect();
    let taken = sequence.into_iter().filter_map(|at| lines[at].take());
    taken.collect()
}
