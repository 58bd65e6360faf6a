//! Counts of each socket and of each sender. Senders can be forged, so the number of accounts has a limit, and one account
//! counts for all senders beyond it.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::net::IpAddr;

use kymo_wire::collectd::{Bad, Cdtime};
use kymo_wire::keeper::{Count, Counts, SenderAccount};

use super::hosts::{SECOND_NS, behind, seconds};
use super::recent::Least;
use crate::sender_group::SenderGroup;

/// Senders with accounts of their own.
pub(super) const SENDERS_MAX: usize = 4096;
/// Most accounts of one group: a local user has more addresses than that.
const GROUP_SENDERS_MAX: u16 = 64;

/// Counts that the log reports, with their words.
const TROUBLES: [(Count, &str); 12] = [
    (Count::Bad, "damaged or forged datagrams"),
    (Count::Foreign, "datagrams of networks that may not send"),
    (Count::Replayed, "datagrams sent twice"),
    (Count::Unfit, "values without time or name"),
    (
        Count::Mismatched,
        "values of another type than their series",
    ),
    (Count::Late, "values not newer than the last"),
    (Count::Future, "values from the future"),
    (Count::Refused, "values of series that may not be made"),
    (Count::Once, "values of new names that were not repeated"),
    (Count::Held, "values of series that another sender writes"),
    (
        Count::Others,
        "values of hosts that their user may not send for",
    ),
    (Count::Unwritten, "values that could not be written"),
];

/// A sender's account.
#[derive(Clone, Debug, Default)]
pub(super) struct Sender {
    address: Option<IpAddr>,
    counts: Counts,
    /// Counts of the last report.
    reported: Counts,
    /// When its last datagram came, by a clock that does not go back.
    seen_ns: u64,
    offset: Least,
    /// The newest time of this round.
    newest: Cdtime,
    is_touched: bool,
}

impl Sender {
    /// The sender's account at this time.
    pub(super) fn account(&self, now_ns: u64) -> SenderAccount {
        SenderAccount {
            address: self.address,
            age_s: seconds(now_ns.saturating_sub(self.seen_ns)),
            offset_s: self.offset.get(),
            counts: self.counts,
        }
    }
}

/// Accounts of one socket.
#[derive(Debug)]
pub(super) struct Accounts {
    /// Counts of all senders together.
    pub all: Counts,
    /// Datagrams that the kernel dropped because they were not received in time. Their senders are unknown.
    pub lost: u64,
    /// The first account is for all senders beyond [`SENDERS_MAX`].
    senders: Vec<Sender>,
    numbers: HashMap<IpAddr, u16>,
    /// Number of accounts of each group.
    groups: HashMap<SenderGroup, u16>,
    /// Senders of the datagrams of this round.
    touched: Vec<u16>,
    /// Lost datagrams and counts of the last report.
    reported: (u64, Counts),
    /// Why the last datagram was bad. `last_refusal`: why a series was not made; `last_failure`: why values were not
    /// written.
    pub last_bad: Option<Bad>,
    /// Series and sender of the last values of other kinds.
    pub last_mismatch: Option<String>,
    pub last_refusal: Option<String>,
    pub last_failure: Option<String>,
}

impl Default for Accounts {
    fn default() -> Accounts {
        Accounts {
            all: Counts::default(),
            lost: 0,
            senders: vec![Sender::default()],
            numbers: HashMap::new(),
            groups: HashMap::new(),
            touched: Vec::new(),
            reported: Default::default(),
            last_bad: None,
            last_mismatch: None,
            last_refusal: None,
            last_failure: None,
        }
    }
}

impl Accounts {
    /// Number of the account of a sender whose datagram came.
    pub(super) fn number(&mut self, address: IpAddr) -> u16 {
        let number = match self.numbers.get(&address) {
            Some(number) => *number,
            None if self.numbers.len() >= SENDERS_MAX => 0,
            None if self.has_many(address) => 0,
            None => self.begin(address),
        };
        if let Some(sender) = self.senders.get_mut(usize::from(number))
            && !sender.is_touched
        {
            sender.is_touched = true;
            self.touched.push(number);
        }
        number
    }

    /// True if the group of an address has all its accounts.
    fn has_many(&self, address: IpAddr) -> bool {
        let count = self.groups.get(&SenderGroup::of(address));
        count.is_some_and(|count| *count >= GROUP_SENDERS_MAX)
    }

    fn begin(&mut self, address: IpAddr) -> u16 {
        *self.groups.entry(SenderGroup::of(address)).or_default() += 1;
        let number = u16::try_from(self.senders.len()).unwrap_or(0);
        self.numbers.insert(address, number);
        self.senders.push(Sender {
            address: Some(address),
            ..Sender::default()
        });
        number
    }

    /// A sender's account.
    pub(super) fn get(&self, sender: u16) -> Option<&Sender> {
        self.senders.get(usize::from(sender))
    }

    /// Counts in a sender's account and in that of all.
    pub(super) fn count(&mut self, sender: u16, count: Count, more: u64) {
        self.all += (count, more);
        if let Some(sender) = self.senders.get_mut(usize::from(sender)) {
            sender.counts += (count, more);
        }
    }

    /// Notes the time of a value by its sender's clock.
    pub(super) fn note_time(&mut self, sender: u16, time: Cdtime) {
        if let Some(sender) = self.senders.get_mut(usize::from(sender)) {
            sender.newest = sender.newest.max(time);
        }
    }

    /// Ends a round: gives each changed account to `publish`.
    pub(super) fn end_round(
        &mut self,
        real_ns: u64,
        mono_ns: u64,
        mut publish: impl FnMut(u16, &Sender),
    ) {
        for number in self.touched.drain(..) {
            let Some(sender) = self.senders.get_mut(usize::from(number)) else {
                continue;
            };
            sender.seen_ns = mono_ns;
            if sender.newest > Cdtime::ZERO {
                let offset = behind(real_ns, sender.newest);
                sender.offset.note(mono_ns / SECOND_NS, offset);
            }
            (sender.newest, sender.is_touched) = (Cdtime::ZERO, false);
            publish(number, sender);
        }
    }

    /// Words for something that was not taken since these counts; values that are not newer than the last, and repeated
    /// notifications, are passed over.
    pub(super) fn refused_since(&self, before: &Counts) -> Option<&'static str> {
        let passed_over = [Count::Late, Count::Replayed];
        let mut refused = TROUBLES
            .iter()
            .filter(|(count, _)| !passed_over.contains(count) && self.all[*count] > before[*count]);
        refused.next().map(|(_, words)| *words)
    }

    /// Troubles since the last report: number, words and, for the sender with most of them, the count.
    fn news(&self) -> impl Iterator<Item = (u64, &'static str, Option<Count>)> {
        let (lost, reported) = self.reported;
        let lost = (self.lost - lost, "datagrams dropped by the kernel", None);
        let others = TROUBLES.map(|(count, words)| {
            let more = self.all[count] - reported[count];
            (more, words, Some(count))
        });
        let all = std::iter::once(lost).chain(others);
        all.filter(|(more, ..)| *more > 0)
    }

    /// The sender with most of these since the last report, and the number.
    fn foremost(&self, count: Count) -> Option<(IpAddr, u64)> {
        let senders = self.senders.iter().filter_map(|sender| {
            let more = sender.counts[count] - sender.reported[count];
            Some((sender.address?, more)).filter(|_| more > 0)
        });
        senders.max_by_key(|(_, more)| *more)
    }

    /// True if there is something to report.
    pub(super) fn has_trouble(&self) -> bool {
        self.news().next().is_some()
    }

    /// Reports what happened since the last report, in a line; `None`: nothing happened.
    pub(super) fn take_news(&mut self) -> Option<String> {
        let mut line = String::new();
        for (more, words, count) in self.news() {
            let comma = if line.is_empty() { "" } else { ", " };
            // Writing to a string cannot fail.
            let _ = write!(line, "{comma}{more} {words}");
            if let Some((address, more)) = count.and_then(|count| self.foremost(count)) {
                let _ = write!(line, " ({more} of {address})");
            }
        }
        let bad = self.last_bad.take().map(|bad| bad.to_string());
        let (mismatch, refusal) = (self.last_mismatch.take(), self.last_refusal.take());
        let reasons = [bad, mismatch, refusal, self.last_failure.take()];
        for reason in reasons.into_iter().flatten() {
            let _ = write!(line, "; last: {reason}");
        }
        self.reported = (self.lost, self.all);
        self.senders
            .iter_mut()
            .for_each(|sender| sender.reported = sender.counts);
        (!line.is_empty()).then_some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forged_senders_share_an_account() {
        let mut accounts = Accounts::default();
        let address = |n: u32| IpAddr::from((0x0a00_0000 + n).to_be_bytes());
        for n in 0..10_000 {
            let sender = accounts.number(address(n));
            accounts.count(sender, Count::Values, 1);
        }
        assert_eq!(accounts.all[Count::Values], 10_000);
        assert_eq!(accounts.senders.len(), SENDERS_MAX + 1);
        let rest = &accounts.senders[0];
        assert_eq!(rest.counts[Count::Values], 10_000 - SENDERS_MAX as u64);
        let first = accounts.number(address(0));
        accounts.count(first, Count::Values, 1);
        let mut known = HashMap::new();
        accounts.end_round(0, 0, |number, sender| {
            known.insert(number, sender.account(0));
        });
        assert_eq!(known.len(), SENDERS_MAX + 1);
        assert_eq!(known[&first].address, Some(address(0)));
        assert_eq!(known[&first].counts[Count::Values], 2);
    }

    /// A local user can send from any number of addresses.
    #[test]
    fn a_group_of_senders_leaves_accounts_to_others() {
        let mut accounts = Accounts::default();
        for n in 0..10_000u32 {
            accounts.number(IpAddr::from((0x7f00_0000 + n).to_be_bytes()));
        }
        let other = IpAddr::from([192, 0, 2, 1]);
        assert_eq!(accounts.number(other), GROUP_SENDERS_MAX + 1);
    }

    #[test]
    fn the_report_names_who_has_most() {
        let mut accounts = Accounts::default();
        let [one, other] = [1, 2].map(|n| accounts.number(IpAddr::from([10, 0, 0, n])));
        for (counts, expected) in [
            ([3, 5], "8 values from the future (5 of 10.0.0.2)"),
            ([4, 2], "6 values from the future (4 of 10.0.0.1)"),
        ] {
            accounts.count(one, Count::Future, counts[0]);
            accounts.count(other, Count::Future, counts[1]);
            assert_eq!(accounts.take_news().as_deref(), Some(expected));
        }
    }

    #[test]
    fn a_round_says_who_sent_and_what_their_clocks_said() {
        let mut accounts = Accounts::default();
        let mut known = HashMap::new();
        let mut end_round = |accounts: &mut Accounts, real_s: u64, mono_s: u64| {
            accounts.end_round(real_s * SECOND_NS, mono_s * SECOND_NS, |number, sender| {
                known.insert(number, sender.clone());
            });
        };
        let (one, other) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let one = accounts.number(one);
        accounts.note_time(one, Cdtime::from_seconds(70));
        accounts.note_time(one, Cdtime::from_seconds(60));
        end_round(&mut accounts, 100, 5);
        let other = accounts.number(other);
        accounts.count(other, Count::Bad, 1);
        end_round(&mut accounts, 200, 105);
        assert_eq!(known.len(), 2);
        let one = known[&one].account(106 * SECOND_NS);
        assert_eq!((one.age_s, one.offset_s), (101.0, 30.0));
        let other = known[&other].account(106 * SECOND_NS);
        assert_eq!((other.age_s, other.counts[Count::Bad]), (1.0, 1));
        assert!(other.offset_s.is_nan());
    }

    #[test]
    fn only_news_are_told() {
        let mut accounts = Accounts::default();
        assert_eq!(accounts.take_news(), None);
        accounts.lost = 3;
        accounts.all += (Count::Bad, 1);
        accounts.last_bad = Some(Bad::Cut);
        accounts.all += (Count::Values, 7);
        assert!(accounts.has_trouble());
        let line = accounts.take_news().unwrap();
        assert!(
            line.starts_with("3 datagrams dropped by the kernel, 1 damaged"),
            "{line}"
        );
        assert!(!accounts.has_trouble() && accounts.take_news().is_none());
    }
}
