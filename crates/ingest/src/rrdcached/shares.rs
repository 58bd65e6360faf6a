//! Clients share connections and memory; a client is a user of this machine, or another network. When either runs
//! out, the client with most loses first, so that no client can keep others out.

use std::collections::HashMap;

use kymo_sys::listen::Peer;

/// Connections that are closed together, so that not every new one needs a search.
const GO_TOGETHER: usize = 64;

/// Below this number no client keeps others out: something else has used up the file descriptors.
const MANY: usize = 4 * GO_TOGETHER;

/// A connection: its place, its client, and its bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    pub(super) place: usize,
    pub(super) peer: Option<Peer>,
    pub(super) bytes: usize,
}

/// Connections to close for others: of the client with more than half of all, those with the fewest bytes, which
/// are idle. Empty if no client has that many: then new connections wait.
pub(super) fn make_place(mut shares: Vec<Share>) -> Vec<usize> {
    let counts = sums(&shares, |_| 1);
    let most = counts.into_iter().max_by_key(|&(_, count)| count);
    let half = shares.len().max(MANY) / 2;
    let Some((most, _)) = most.filter(|&(_, count)| count > half) else {
        return Vec::new();
    };
    shares.retain(|share| share.peer == most);
    shares.sort_by_key(|share| share.bytes);
    let go = shares.iter().take(GO_TOGETHER);
    go.map(|share| share.place).collect()
}

/// Connections in the order in which they are closed when all hold too much: the client that holds most comes
/// first, with its largest connection first.
pub(super) fn make_memory(mut shares: Vec<Share>) -> Vec<usize> {
    let held = sums(&shares, |share| share.bytes);
    let of = |share: &Share| held.get(&share.peer).copied().unwrap_or(0);
    shares.sort_by_key(|share| std::cmp::Reverse((of(share), share.bytes)));
    shares.iter().map(|share| share.place).collect()
}

fn sums(shares: &[Share], of: impl Fn(&Share) -> usize) -> HashMap<Option<Peer>, usize> {
    let mut sums = HashMap::new();
    for share in shares {
        *sums.entry(share.peer).or_insert(0) += of(share);
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(all: &[(char, usize)]) -> Vec<Share> {
        let share = |(place, &(user, bytes)): (usize, &(char, usize))| Share {
            place,
            peer: Some(Peer::User(user as u32)),
            bytes,
        };
        all.iter().enumerate().map(share).collect()
    }

    /// One client with 16,384 connections kept all others out.
    #[test]
    fn a_client_with_more_than_half_makes_place() {
        let half = 1000;
        let mut all = vec![('b', 0); half - 1];
        all.extend(vec![('a', 9); half]);
        all.push(('a', 1));
        let gone = make_place(shares(&all));
        assert_eq!((gone.len(), gone[0]), (GO_TOGETHER, 2 * half - 1));
        assert!(gone.iter().all(|&place| place >= half - 1));
        all.pop();
        all.push(('c', 0));
        assert!(
            make_place(shares(&all)).is_empty(),
            "nobody has more than half"
        );
        let few = vec![('a', 0); MANY / 2];
        assert!(
            make_place(shares(&few)).is_empty(),
            "so few keep nobody out"
        );
    }

    /// Many small connections of one client had the large one of another client closed.
    #[test]
    fn the_client_that_holds_most_loses_memory_first() {
        let all = [('b', 50), ('a', 20), ('a', 30), ('c', 1), ('a', 10)];
        assert_eq!(make_memory(shares(&all)), [2, 1, 4, 0, 3]);
    }
}
