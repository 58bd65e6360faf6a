//! Orders items from the roots down by the parent of each, without recursion. Recorded data may be arbitrary: an item without a
//! known parent is a root, and a cycle begins at its first item.

use std::collections::HashMap;

/// An item in the order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Placed {
    /// Index of the item.
    pub item: usize,
    /// Levels below its root.
    pub level: usize,
    /// Position of the parent in the order.
    pub parent: Option<usize>,
}

/// The order of all items: each behind its parent, and its descendants directly behind it; children keep the items' order. `ids`
/// and `parents` have the same length; an item without an id has no children.
pub fn order(ids: &[Option<u64>], parents: &[Option<u64>]) -> Vec<Placed> {
    let numbered = ids.iter().enumerate();
    let by_id: HashMap<u64, usize> = numbered
        .filter_map(|(item, id)| Some(((*id)?, item)))
        .collect();
    let parent_of = |item: usize| by_id.get(&parents[item]?).copied().filter(|&at| at != item);
    let mut children = vec![Vec::new(); ids.len()];
    for item in 0..ids.len() {
        if let Some(parent) = parent_of(item) {
            children[parent].push(item);
        }
    }
    let mut placed = vec![false; ids.len()];
    let mut order = Vec::with_capacity(ids.len());
    let roots = (0..ids.len()).filter(|&item| parent_of(item).is_none());
    // Behind the roots follow items in cycles, which no root reaches.
    for item in roots.chain(0..ids.len()) {
        let mut next = vec![Placed {
            item,
            level: 0,
            parent: None,
        }];
        while let Some(one) = next.pop() {
            if std::mem::replace(&mut placed[one.item], true) {
                continue;
            }
            let at = order.len();
            order.push(one);
            next.extend(children[one.item].iter().rev().map(|&item| Placed {
                item,
                level: one.level + 1,
                parent: Some(at),
            }));
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ids and parents; the expected order, with a dot per level before each item.
    #[test]
    fn orders() {
        for (items, expect) in [
            ("", ""),
            ("1<0 2<0 3<1 4<3 5<1", "1 .3 ..4 .5 2"),
            ("7<9 8<7", "7 .8"),
            ("-<1 1<0 -<1", "1 .- .-"),
            ("5<5 6<5", "5 .6"),
            ("1<0 2<3 3<2 4<2", "1 2 .3 .4"),
            ("1<0 1<0 2<1", "1 1 .2"),
            ("1<- 2<1", "1 .2"),
        ] {
            let of = |item: &str| -> (Option<u64>, Option<u64>) {
                let (id, parent) = item.split_once('<').expect("a pair");
                (id.parse().ok(), parent.parse().ok())
            };
            let (ids, parents): (Vec<_>, Vec<_>) = items.split_whitespace().map(of).unzip();
            let shown: Vec<String> = order(&ids, &parents)
                .iter()
                .map(|one| {
                    let id = ids[one.item].map_or("-".to_string(), |id| id.to_string());
                    format!("{}{id}", ".".repeat(one.level))
                })
                .collect();
            assert_eq!(shown.join(" "), expect, "{items}");
        }
    }

    #[test]
    fn a_chain_of_any_length() {
        let ids: Vec<Option<u64>> = (1..=200_000).map(Some).collect();
        let parents: Vec<Option<u64>> = (0..200_000).map(Some).collect();
        let order = order(&ids, &parents);
        assert_eq!(order.len(), 200_000);
        assert_eq!(order[199_999].level, 199_999);
        assert_eq!(order[199_999].parent, Some(199_998));
    }
}
