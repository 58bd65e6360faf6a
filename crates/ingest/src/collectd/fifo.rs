//! Queues of places in a table. Each place has a link in a list beside the table, so a member leaves the middle of a
//! queue without a search, and a queue needs no memory of its own.

/// No place.
const NONE: u32 = u32::MAX;

/// The neighbours of a member.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    older: u32,
    newer: u32,
}

/// Members in the order in which they came.
#[derive(Debug)]
pub(super) struct Fifo {
    oldest: u32,
    newest: u32,
}

impl Default for Fifo {
    fn default() -> Fifo {
        Fifo {
            oldest: NONE,
            newest: NONE,
        }
    }
}

impl Fifo {
    /// The member that came first.
    pub(super) fn oldest(&self) -> Option<u32> {
        (self.oldest != NONE).then_some(self.oldest)
    }

    /// Adds a member that is in no other queue with these links.
    pub(super) fn push(&mut self, id: u32, links: &mut Vec<Link>) {
        let link = Link {
            older: self.newest,
            newer: NONE,
        };
        if links.len() <= at(id) {
            links.resize(at(id) + 1, link);
        }
        links[at(id)] = link;
        match links.get_mut(at(self.newest)) {
            Some(before) => before.newer = id,
            None => self.oldest = id,
        }
        self.newest = id;
    }

    /// Takes a member of this queue out.
    pub(super) fn remove(&mut self, id: u32, links: &mut [Link]) {
        let Some(&Link { older, newer }) = links.get(at(id)) else {
            return;
        };
        match links.get_mut(at(older)) {
            Some(older) => older.newer = newer,
            None => self.oldest = newer,
        }
        match links.get_mut(at(newer)) {
            Some(newer) => newer.older = older,
            None => self.newest = older,
        }
    }
}

/// Index of a place in its table.
pub(super) fn at(id: u32) -> usize {
    id as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds the members of an odd and of an even queue in turn, takes some out, and empties both.
    #[test]
    fn members_leave_from_anywhere_and_in_order() {
        for gone in [&[][..], &[1], &[1, 2, 3], &[8, 7, 4], &[5, 4, 3, 6]] {
            let (mut queues, mut links) = (<[Fifo; 2]>::default(), Vec::new());
            (1..=8).for_each(|id| queues[at(id) % 2].push(id, &mut links));
            for &id in gone {
                queues[at(id) % 2].remove(id, &mut links);
            }
            queues[1].push(9, &mut links);
            for (parity, queue) in (0..).zip(&mut queues) {
                let mut left = Vec::new();
                while let Some(id) = queue.oldest() {
                    queue.remove(id, &mut links);
                    left.push(id);
                }
                let stays = |id: &u32| id % 2 == parity && !gone.contains(id);
                let wanted: Vec<u32> = (1..=9).filter(stays).collect();
                assert_eq!(left, wanted, "without {gone:?}");
            }
        }
    }
}
