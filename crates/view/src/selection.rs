//! Selects the instances of a part to show, and orders them.

use std::collections::HashSet;

use kymo_base::column::{Cells, Value};
use kymo_base::context::Context;
use kymo_kernel::subsystem::Unused;
use kymo_kernel::subsystem::process::{self, PROCESS};
use kymo_kernel::subsystem::slab::SLAB;
use kymo_query::delta::RateRow;

use crate::feed::Part;
use crate::options::Options;
use crate::processes::Top;

/// Writes the indices of the rows to show into `chosen`, in order. Processes must pass the filter, and are
/// ordered by pid; other instances keep their order.
pub(crate) fn select(part: &Part, context: &Context, options: &Options, chosen: &mut Vec<usize>) {
    chosen.clear();
    chosen.extend(0..part.rows().len());
    chosen.retain(|&at| !is_hidden(part, &part.rows()[at], context, options));
    if part.choice.subsystem.letter != PROCESS.letter {
        return;
    }
    if let Some(states) = &options.states {
        let in_state = |at: usize| states.pass(&part.cells(&part.rows()[at], context, options));
        chosen.retain(|&at| in_state(at));
    }
    let with_threads = passing(part, context, options, chosen);
    chosen.retain(|&at| {
        let name = part.name(&part.rows()[at]);
        let shown = options.process.threads || with_threads.contains(&process::pid_of(name));
        !process::is_thread(name) || shown
    });
    let id = |at: usize| {
        let name = part.name(&part.rows()[at]);
        (
            process::pid_of(name),
            process::id_of(name),
            process::is_thread(name),
        )
    };
    chosen.sort_by_cached_key(|&at| {
        let (pid, id, is_thread) = id(at);
        (pid, is_thread, id)
    });
}

/// True if an instance has done nothing since boot, and its subsystem hides such ones, as loop devices.
pub(crate) fn is_unused(part: &Part, row: &RateRow) -> bool {
    let idle = |&now: &f64| now.is_nan() || now == 0.0;
    part.choice.subsystem.unused != Unused::Shown && row.numbers.now.iter().all(idle)
}

/// True if a switch hides the instance: it is idle, empty, unchanged, or not an exception.
fn is_hidden(part: &Part, row: &RateRow, context: &Context, options: &Options) -> bool {
    let (letter, hidden) = (part.choice.subsystem.letter, options.hidden);
    let hides = match letter {
        'c' => hidden.idle_cpus,
        'd' => hidden.idle_disks || options.limits.is_some(),
        'y' => hidden.empty_slabs || hidden.still_slabs,
        _ => false,
    };
    if !hides {
        return false;
    }
    let cells = part.cells(row, context, options);
    let is_zero = |name: &str| number(part, &cells, name) == 0.0;
    let does_nothing = || {
        let columns = part.choice.subsystem.detail.iter();
        columns
            .filter(|column| !["idle", "cpu", "in_flight"].contains(&column.name))
            .all(|column| match column.value {
                Value::Number(value) => value(&cells) == 0.0,
                Value::Text(_) => true,
            })
    };
    match letter {
        'c' => does_nothing(),
        'd' => {
            let exception = options.limits.is_none_or(|limits| {
                limits.pass(
                    number(part, &cells, "service"),
                    number(part, &cells, "reads").max(number(part, &cells, "writes")),
                )
            });
            !exception || hidden.idle_disks && does_nothing()
        }
        _ => {
            hidden.empty_slabs && is_zero("objects")
                || hidden.still_slabs && row.numbers.delta.iter().all(|&delta| delta == 0.0)
        }
    }
}

/// A number of an instance, by its column; NaN if there is none.
fn number(part: &Part, cells: &Cells, column: &str) -> f64 {
    let columns = part.choice.subsystem.detail.iter();
    let found = columns
        .filter(|known| known.name == column)
        .find_map(|known| match known.value {
            Value::Number(value) => Some(value(cells)),
            Value::Text(_) => None,
        });
    found.unwrap_or(f64::NAN)
}

/// Keeps instances that pass the filter. Returns the ids of processes whose threads are to be shown.
fn passing(
    part: &Part,
    context: &Context,
    options: &Options,
    chosen: &mut Vec<usize>,
) -> HashSet<u64> {
    let filter = &options.filter;
    let (mut passed, mut with_threads) = (HashSet::new(), HashSet::new());
    if filter.is_open() {
        return with_threads;
    }
    for &at in chosen.iter() {
        let row = &part.rows()[at];
        let cells = part.cells(row, context, options);
        let pid = process::pid_of(cells.name);
        if process::is_thread(cells.name) {
            continue;
        }
        for test in filter.tests.iter().filter(|test| test.passes(&cells)) {
            passed.insert(pid);
            if test.threads {
                with_threads.insert(pid);
            }
        }
    }
    chosen.retain(|&at| passed.contains(&process::pid_of(part.name(&part.rows()[at]))));
    with_threads
}

/// Orders `chosen` by `top` and keeps the first ones.
pub(crate) fn rank(
    part: &Part,
    context: &Context,
    options: &Options,
    top: Top,
    chosen: &mut Vec<usize>,
) {
    let mut ranked: Vec<(f64, usize)> = chosen
        .iter()
        .map(|&at| {
            (
                top.value(&part.cells(&part.rows()[at], context, options)),
                at,
            )
        })
        .collect();
    if options.process.nonzero {
        ranked.retain(|&(value, _)| value != 0.0);
    }
    // As in collectl, caches without slabs are left out.
    let is_empty = |at: usize| {
        let cells = part.cells(&part.rows()[at], context, options);
        number(part, &cells, "slabs") == 0.0
    };
    if part.choice.subsystem.letter == SLAB.letter {
        ranked.retain(|&(_, at)| !is_empty(at));
    }
    if top.is_by_name() {
        ranked.sort_by_key(|&(_, at)| part.name(&part.rows()[at]));
    }
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
    chosen.clear();
    chosen.extend(ranked.into_iter().take(top.count).map(|(_, at)| at));
}
