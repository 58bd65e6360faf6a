//! Budgets for new series. Each user who signs, each trusted network and each user of the unix socket has a budget of its own. Each other sender
//! group has one, and all these groups have one together; a group must wait when its use reaches the rest of the
//! budget of all.
//!
//! A budget is full at the start and fills again with time. It counts series that begin; a series in the store costs
//! nothing.

use std::collections::HashMap;

use crate::common::refill::{Refill, SeriesAllowance};
use crate::sender_group::SenderGroup;

/// Budget of a user who signs, of a trusted network, or of a user of the unix socket: series at once, then series a minute.
const TRUSTED: Refill = Refill {
    at_once: 50_000.0,
    a_second: 10_000.0 / 60.0,
};
/// Series at once of another sender group; then a day.
const GROUP: Refill = Refill {
    at_once: 25_000.0,
    a_second: 25_000.0 / 86_400.0,
};
/// The budget of all other sender groups together.
const GROUPS: Refill = Refill {
    at_once: 100_000.0,
    a_second: 100_000.0 / 86_400.0,
};
/// Groups with a budget in memory.
const GROUPS_MAX: usize = 4096;

/// A sender whose new names count at once, and which has a budget of its own for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Trusted {
    /// The network at this place of `trusted`.
    Network(usize),
    /// A user of this machine, by the unix socket.
    User(u32),
}

/// The owner of a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Payer<'a> {
    /// A user of the authentication file.
    User(&'a [u8]),
    /// A trusted network, or a user of this machine.
    Trusted(Trusted),
    /// A sender without a signature and outside of trusted networks.
    Group(SenderGroup),
}

/// All budgets.
#[derive(Debug, Default)]
pub(super) struct SeriesBudgets {
    users: HashMap<Box<[u8]>, SeriesAllowance>,
    trusted: HashMap<Trusted, SeriesAllowance>,
    groups: HashMap<SenderGroup, SeriesAllowance>,
    all_groups: Option<SeriesAllowance>,
}

impl SeriesBudgets {
    /// Pays for one more series. False: the budget has none left.
    pub(super) fn takes(&mut self, payer: Payer, now_s: f64) -> bool {
        match payer {
            Payer::User(user) => {
                if !self.users.contains_key(user) {
                    self.users.insert(user.into(), TRUSTED.full(now_s));
                }
                let left = self.users.get_mut(user);
                left.is_some_and(|left| TRUSTED.take(left, now_s))
            }
            Payer::Trusted(trusted) => {
                let left = self.trusted.entry(trusted);
                TRUSTED.take(left.or_insert_with(|| TRUSTED.full(now_s)), now_s)
            }
            Payer::Group(group) => self.takes_unknown(group, now_s),
        }
    }

    fn takes_unknown(&mut self, group: SenderGroup, now_s: f64) -> bool {
        if self.groups.len() >= GROUPS_MAX && !self.groups.contains_key(&group) {
            self.forget_one(now_s);
        }
        let all = self.all_groups.get_or_insert_with(|| GROUPS.full(now_s));
        let own = self.groups.entry(group);
        let own = own.or_insert_with(|| GROUP.full(now_s));
        GROUP.fill(own, now_s);
        GROUPS.fill(all, now_s);
        let used = GROUP.at_once - own.count;
        let may = used < all.count && own.count >= 1.0;
        if may {
            own.count -= 1.0;
            all.count -= 1.0;
        }
        may
    }

    /// Forgets the group that has used least: it gains little by that, and the budget of all groups gains nothing.
    fn forget_one(&mut self, now_s: f64) {
        let filled = self.groups.iter_mut().map(|(group, left)| {
            GROUP.fill(left, now_s);
            (*group, left.count)
        });
        let fullest = filled.max_by(|one, other| one.1.total_cmp(&other.1));
        if let Some((group, _)) = fullest {
            self.groups.remove(&group);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    fn group(number: u32) -> Payer<'static> {
        let address = IpAddr::from((0x0a00_0000 + number).to_be_bytes());
        Payer::Group(SenderGroup::of(address))
    }

    /// Number of series that a payer may begin, up to `most`.
    fn takes(budgets: &mut SeriesBudgets, payer: Payer, most: usize, now_s: f64) -> usize {
        (0..most)
            .take_while(|_| budgets.takes(payer, now_s))
            .count()
    }

    #[test]
    fn budgets_are_apart_and_fill_again() {
        let mut budgets = SeriesBudgets::default();
        let payers = [
            Payer::User(b"web"),
            Payer::User(b"db"),
            Payer::Trusted(Trusted::Network(0)),
            group(1),
            group(2),
        ];
        for (payer, at_once) in payers
            .into_iter()
            .zip([50_000, 50_000, 50_000, 25_000, 25_000])
        {
            assert_eq!(
                takes(&mut budgets, payer, 100_000, 0.0),
                at_once,
                "{payer:?}"
            );
        }
        for (payer, later) in payers.into_iter().zip([10_000, 10_000, 10_000, 17, 17]) {
            assert_eq!(
                takes(&mut budgets, payer, 100_000, 60.0),
                later,
                "{payer:?}"
            );
            // A clock that goes back gives nothing.
            assert_eq!(takes(&mut budgets, payer, 100_000, 0.0), 0, "{payer:?}");
        }
    }

    /// Each group spends all that it gets, one after the other. The budget of all groups keeps as much as the
    /// greediest group has spent.
    #[test]
    fn greedy_groups_leave_something_for_the_next() {
        let mut budgets = SeriesBudgets::default();
        let got: Vec<usize> = (1..=6)
            .map(|number| takes(&mut budgets, group(number), 100_000, 0.0))
            .collect();
        assert_eq!(got, [25_000, 25_000, 25_000, 12_500, 6_250, 3_125]);
        assert_eq!(takes(&mut budgets, group(7), 500, 0.0), 500);
        // Forged addresses spend their part of the budget of all groups, and no more.
        let mut budgets = SeriesBudgets::default();
        for number in 0..10_000 {
            takes(&mut budgets, group(number), 7, 0.0);
        }
        let all = budgets.all_groups.unwrap().count;
        assert_eq!((budgets.groups.len(), all), (GROUPS_MAX, 30_000.0));
        assert_eq!(takes(&mut budgets, group(10_001), 500, 0.0), 500);
        assert_eq!(
            takes(
                &mut budgets,
                Payer::Trusted(Trusted::Network(0)),
                20_500,
                0.0
            ),
            20_500
        );
    }
}
