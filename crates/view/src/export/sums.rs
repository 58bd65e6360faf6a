//! Sums over processes: of a tree, of all that a user or a program runs.

use kymo_base::column::Cells;
use kymo_kernel::subsystem::process::{self, SUMMED};
use kymo_query::delta::Numbers;

use super::forest::Placed;

/// The numbers of a process in a form that can be summed.
pub fn addable(cells: &Cells) -> Numbers {
    let mut now = cells.now.to_vec();
    process::settle_memory(cells, &mut now);
    Numbers {
        now,
        delta: cells.delta.to_vec(),
    }
}

/// The cells of a process with `numbers` in place of its own.
pub fn sum<'a>(numbers: &'a Numbers, cells: &Cells<'a>) -> Cells<'a> {
    Cells {
        now: &numbers.now,
        delta: &numbers.delta,
        ..*cells
    }
}

/// Adds the numbers of its descendants to each item. `numbers` are in the tree's order, with descendants behind ancestors.
pub fn add_up(numbers: &mut [Numbers], order: &[Placed], is_added: impl Fn(&Placed) -> bool) {
    for (at, one) in order.iter().enumerate().rev() {
        let Some(parent) = one.parent.filter(|_| is_added(one)) else {
            continue;
        };
        let (before, behind) = numbers.split_at_mut(at);
        add_numbers(&mut before[parent], &behind[0]);
    }
}

/// Adds the numbers of one process to those of another.
pub fn add_numbers(above: &mut Numbers, below: &Numbers) {
    for &field in SUMMED {
        add(&mut above.now[field], below.now[field]);
        add(&mut above.delta[field], below.delta[field]);
    }
}

/// Adds a number. Missing numbers are skipped; the sum is missing only if all of them are.
fn add(sum: &mut f64, more: f64) {
    match (sum.is_nan(), more.is_nan()) {
        (_, true) => {}
        (true, false) => *sum = more,
        (false, false) => *sum += more,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_counts_nothing() {
        for (sum, more, expect) in [
            (1.0, 2.0, 3.0),
            (1.0, f64::NAN, 1.0),
            (f64::NAN, 2.0, 2.0),
            (f64::NAN, f64::NAN, f64::NAN),
        ] {
            let mut got = sum;
            add(&mut got, more);
            assert_eq!(got.to_string(), expect.to_string());
        }
    }
}
