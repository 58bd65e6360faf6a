//! Shares of a limited room: a user that wants little gets all of it; users that want more have equal parts of the
//! rest. So no user takes the room of others by wanting much.

use std::collections::HashMap;
use std::hash::Hash;

/// The part of `room` that each user gets. The remainder of equal parts goes to the first users that want more.
pub(crate) fn shares(wanted: &[usize], mut room: usize) -> Vec<usize> {
    let mut rising = wanted.to_vec();
    rising.sort_unstable();
    let (mut level, mut over) = (usize::MAX, 0);
    for (at, &least) in rising.iter().enumerate() {
        let left = rising.len() - at;
        if least > room / left {
            (level, over) = (room / left, room % left);
            break;
        }
        room -= least;
    }
    let share = |&wanted: &usize| {
        if wanted <= level {
            return wanted;
        }
        let more = usize::from(over > 0);
        over -= more;
        level + more
    };
    wanted.iter().map(share).collect()
}

/// A group of items, and the parts of it.
struct GroupShare<'a, S> {
    wanted: usize,
    places: HashMap<&'a S, usize>,
    parts: Vec<usize>,
}

/// Marks the items that stay in `room` places: groups share the places, the parts of a group share its places, and each part
/// keeps its last items. `most`: limit of a group. Items are oldest first.
pub(crate) fn last_shares<'a, T, G: Hash + Eq + 'a, S: Hash + Eq + 'a>(
    items: &'a [T],
    room: usize,
    who: impl Fn(&'a T) -> (&'a G, &'a S),
    most: impl Fn(&'a G) -> usize,
) -> Vec<bool> {
    let (mut places, mut groups) = (HashMap::new(), Vec::<GroupShare<S>>::new());
    let mut found = Vec::with_capacity(items.len());
    for item in items.iter().rev() {
        let (group, part) = who(item);
        let at = *places.entry(group).or_insert_with(|| {
            groups.push(GroupShare {
                wanted: most(group),
                places: HashMap::new(),
                parts: Vec::new(),
            });
            groups.len() - 1
        });
        let GroupShare { places, parts, .. } = &mut groups[at];
        let part = *places.entry(part).or_insert_with(|| {
            parts.push(0);
            parts.len() - 1
        });
        parts[part] += 1;
        found.push((at, part));
    }
    let wanted = groups
        .iter()
        .map(|group| group.wanted.min(group.parts.iter().sum()));
    let wanted: Vec<usize> = wanted.collect();
    for (group, share) in groups.iter_mut().zip(shares(&wanted, room)) {
        group.parts = shares(&group.parts, share);
    }
    let stay = found.into_iter().map(|(group, part)| {
        let left = &mut groups[group].parts[part];
        let stays = *left > 0;
        *left -= usize::from(stays);
        stays
    });
    let mut stay: Vec<bool> = stay.collect();
    stay.reverse();
    stay
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_wish_is_met_whole() {
        for (wanted, room, want) in [
            (&[][..], 5, &[][..]),
            (&[1, 2, 3], 6, &[1, 2, 3]),
            (&[1, 2, 3], 100, &[1, 2, 3]),
            (&[1, 2, 3], 0, &[0, 0, 0]),
            (&[100, 2, 100], 12, &[5, 2, 5]),
            (&[100, 2, 100], 13, &[6, 2, 5]),
            (&[1, 1, 1, 1], 2, &[1, 1, 0, 0]),
            (
                &[usize::MAX, usize::MAX],
                usize::MAX,
                &[usize::MAX / 2 + 1, usize::MAX / 2],
            ),
        ] {
            assert_eq!(shares(wanted, room), want, "{wanted:?} of {room}");
        }
    }

    #[test]
    fn the_last_items_of_each_part_stay() {
        // An item: group and part.
        let stay = |items: &str, room, most| {
            let items: Vec<(char, char)> = items
                .split(' ')
                .map(|item| (item.as_bytes()[0].into(), item.as_bytes()[1].into()))
                .collect();
            let stay = last_shares(&items, room, |(a, b)| (a, b), |_| most);
            let marks = stay.iter().map(|stays| if *stays { '+' } else { '-' });
            marks.collect::<String>()
        };
        for (items, room, most, want) in [
            ("a1 a1 a1 b1 a1 a1", 3, 9, "---+++"),
            ("b1 a1 a2 a3 a4 a5", 3, 9, "+---++"),
            ("a1 a2 a2 a2 a2 b1", 4, 9, "+--+++"),
            ("a1 b1 c1 d1", 2, 9, "--++"),
            ("a1 a1 a1 b1", 9, 2, "-+++"),
            ("a1 a2 a2 a2 b1", 9, 2, "+--++"),
        ] {
            assert_eq!(stay(items, room, most), want, "{items} in {room}");
        }
    }
}
