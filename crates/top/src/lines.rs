//! The lines of a table: instances that pass the filter, in order, as a tree with totals or added up by a common property.

use std::cmp::Ordering;
use std::collections::HashMap;

use kymo_base::column::{Cells, Value};
use kymo_base::context::Context;
use kymo_base::name::DisplayName;
use kymo_kernel::subsystem::process::{self, STATE};
use kymo_query::delta::Numbers;
use kymo_view::forest::{self, Placed};
use kymo_view::sums;

use crate::readings::Part;
use crate::tables::{Content, Order, Table};

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
#[derive(Clone, Copy, Debug)]
pub struct Line {
    /// Position of the instance in the reading; of several, of the first.
    at: usize,
    /// Position of the sums in place of its own numbers.
    sum: Option<usize>,
    /// Levels below its root.
    pub level: usize,
    /// Value of the order.
    pub value: f64,
}

/// Several instances in one line.
struct Group {
    /// Name, safe to show.
    label: String,
    /// The number of instances.
    members: usize,
    /// Their number in the place of a pid.
    name: Vec<u8>,
}

/// The lines of a table, of one reading. A line is small, as there are many and few are shown.
#[derive(Default)]
pub struct Lines {
    /// The lines in their order.
    pub all: Vec<Line>,
    sums: Vec<Numbers>,
    /// Groups, by the positions of their sums; empty where lines are single instances.
    groups: Vec<Group>,
}

impl Lines {
    /// Numbers of a line.
    pub fn cells<'a>(&'a self, line: &Line, part: &'a Part, context: &'a Context) -> Cells<'a> {
        let Some(numbers) = line.sum.and_then(|sum| self.sums.get(sum)) else {
            return part.cells(line.at, context);
        };
        let cells = part.cells_of(numbers, part.row(line.at), context);
        Cells {
            name: self.group(line).map_or(cells.name, |group| &group.name),
            ..cells
        }
    }

    /// Name of a line of several instances, safe to show.
    pub fn label(&self, line: &Line) -> Option<&str> {
        self.group(line).map(|group| group.label.as_str())
    }

    /// The instance, or several of them.
    pub fn identity(&self, line: &Line, part: &Part) -> Identity {
        let (name, key) = self.name(line, part);
        Identity {
            name: name.to_vec(),
            key,
        }
    }

    /// Position of an instance.
    pub fn position(&self, one: &Identity, part: &Part) -> Option<usize> {
        let mut lines = self.all.iter();
        lines.position(|line| self.name(line, part) == (one.name.as_slice(), one.key))
    }

    fn name<'a>(&'a self, line: &Line, part: &'a Part) -> (&'a [u8], u64) {
        match self.group(line) {
            Some(group) => (group.label.as_bytes(), 0),
            None => {
                let row = part.row(line.at);
                (&row.name, row.key)
            }
        }
    }

    fn group(&self, line: &Line) -> Option<&Group> {
        self.groups.get(line.sum?)
    }

    fn set_values(&mut self, part: &Part, context: &Context, choice: &Choice) {
        let value = choice.table.value(choice.order);
        let mut all = std::mem::take(&mut self.all);
        for line in &mut all {
            line.value = value(&self.cells(line, part, context));
        }
        self.all = all;
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
pub fn lines(part: &Part, context: &Context, choice: &Choice) -> Lines {
    let is_of_processes = part.subsystem.is_of_processes();
    let filter = choice.filter.to_lowercase();
    let chosen = (0..part.len()).filter(|&at| {
        let cells = part.cells(at, context);
        let is_kept = !is_of_processes
            || (choice.threads || !process::is_thread(cells.name))
                && (choice.table.content != Content::Waiting
                    || cells.labels[STATE].first() == Some(&b'D'));
        is_kept && (filter.is_empty() || passes(choice.table, &cells, &filter))
    });
    let mut lines = match choice.shape {
        Shape::By(column) if is_of_processes => grouped(part, context, chosen, choice, column),
        Shape::Tree if is_of_processes => {
            return tree(part, context, &chosen.collect::<Vec<_>>(), choice);
        }
        Shape::Flat | Shape::Tree | Shape::By(_) => Lines {
            all: chosen.map(plain).collect(),
            ..Lines::default()
        },
    };
    lines.set_values(part, context, choice);
    let order = |a: &Line, b: &Line| compare((a.value, a.at), (b.value, b.at), choice.order);
    lines.all.sort_unstable_by(order);
    lines
}

fn plain(at: usize) -> Line {
    Line {
        at,
        sum: None,
        level: 0,
        value: 0.0,
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
    chosen: impl Iterator<Item = usize>,
    choice: &Choice,
    column: &str,
) -> Lines {
    let mut lines = Lines::default();
    let Some(Value::Text(put)) = choice.table.column(column).map(|column| column.value) else {
        return lines;
    };
    let mut places: HashMap<Vec<u8>, usize> = HashMap::new();
    let mut label = Vec::new();
    for at in chosen {
        let cells = part.cells(at, context);
        // A process includes its threads already.
        if process::is_thread(cells.name) {
            continue;
        }
        label.clear();
        put(&cells, &mut label);
        let numbers = sums::addable(&cells);
        if let Some(&place) = places.get(&label) {
            sums::add_numbers(&mut lines.sums[place], &numbers);
            lines.groups[place].members += 1;
            continue;
        }
        let place = lines.sums.len();
        places.insert(label.clone(), place);
        lines.all.push(Line {
            sum: Some(place),
            ..plain(at)
        });
        lines.sums.push(numbers);
        lines.groups.push(Group {
            label: DisplayName(&label).text().into_owned(),
            members: 1,
            name: Vec::new(),
        });
    }
    for group in &mut lines.groups {
        group.name = group.members.to_string().into_bytes();
    }
    lines
}

/// Processes below their parents, each with the totals of its descendants; siblings in order.
fn tree(part: &Part, context: &Context, chosen: &[usize], choice: &Choice) -> Lines {
    let of = |at: &usize| {
        let cells = part.cells(*at, context);
        let id = (!process::is_thread(cells.name)).then(|| number(process::pid_of(cells.name)));
        (id, process::parent_of(&cells).map(f64::to_bits))
    };
    let (ids, parents): (Vec<_>, Vec<_>) = chosen.iter().map(of).unzip();
    let order = forest::order(&ids, &parents);
    let mut sums: Vec<Numbers> = order
        .iter()
        .map(|one| sums::addable(&part.cells(chosen[one.item], context)))
        .collect();
    let is_added = |one: &Placed| ids[one.item].is_some();
    sums::add_up(&mut sums, &order, is_added);
    let line = |(sum, one): (usize, &Placed)| Line {
        sum: Some(sum),
        level: one.level,
        ..plain(chosen[one.item])
    };
    let mut lines = Lines {
        all: order.iter().enumerate().map(line).collect(),
        sums,
        groups: Vec::new(),
    };
    lines.set_values(part, context, choice);
    lines.all = siblings_in_order(&lines.all, &order, choice.order);
    lines
}

/// The bits of a pid as a number of a column.
fn number(id: u64) -> u64 {
    u32::try_from(id).map_or(u64::MAX, |id| f64::from(id).to_bits())
}

/// Puts siblings into the order of their totals; `placed` has each line behind its parent.
fn siblings_in_order(lines: &[Line], placed: &[Placed], order: Order) -> Vec<Line> {
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
    let sort = |list: &mut Vec<usize>| list.sort_unstable_by(|a, b| compare(key(b), key(a), order));
    children.iter_mut().for_each(sort);
    sort(&mut roots);
    let mut stack = roots;
    let mut sequence = Vec::with_capacity(lines.len());
    while let Some(at) = stack.pop() {
        sequence.push(lines[at]);
        stack.append(&mut children[at]);
    }
    sequence
}
