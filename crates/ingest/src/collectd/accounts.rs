//! What came, and what became of it: for each socket, and for each sender. Senders can be forged, so that there are only so
//! many accounts, and one for the rest.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::net::IpAddr;

use kymo_wire::collectd::Bad;

/// Senders with accounts of their own.
pub(super) const SENDERS_MAX: usize = 4096;

/// Numbers since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Datagrams.
    pub datagrams: u64,
    /// Values that were stored.
    pub values: u64,
    /// Datagrams the kernel dropped because they were not taken in time; whose they were is not known.
    pub lost: u64,
    /// Damaged or forged datagrams, the rest of which was not used.
    pub bad: u64,
    /// Datagrams of senders that are of no network which may send.
    pub foreign: u64,
    /// Values without a time, a name and the like.
    pub unfit: u64,
    /// Values whose stamp is not newer than the one before.
    pub late: u64,
    /// Values too far in the future.
    pub future: u64,
    /// Values of other number or kinds than those that made the series.
    pub mismatched: u64,
    /// Datagrams that were there before.
    pub replayed: u64,
    /// Values of series that may not be made.
    pub refused: u64,
    /// Values of series whose values another one sends.
    pub held: u64,
    /// Values of hosts that their user may not send for.
    pub others: u64,
    /// Values that could not be written.
    pub unwritten: u64,
    /// Series that were made.
    pub new: u64,
    /// Notifications.
    pub notifications: u64,
}

impl Counts {
    /// Those that an administrator wants to hear of, with words.
    fn troubles(&self) -> [(u64, &'static str); 12] {
        [
            (self.lost, "datagrams dropped by the kernel"),
            (self.bad, "damaged or forged datagrams"),
            (self.foreign, "datagrams of networks that may not send"),
            (self.replayed, "datagrams sent twice"),
            (self.unfit, "values without time or name"),
            (self.mismatched, "values of another type than their series"),
            (self.late, "values not newer than the last"),
            (self.future, "values from the future"),
            (self.refused, "values of series that may not be made"),
            (self.held, "values of series that another sender writes"),
            (
                self.others,
                "values of hosts that their user may not send for",
            ),
            (self.unwritten, "values that could not be written"),
        ]
    }
}

/// One socket's.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    /// Of all senders.
    pub all: Counts,
    senders: HashMap<IpAddr, Counts>,
    /// Of senders beyond [`SENDERS_MAX`].
    rest: Counts,
    /// What was reported.
    reported: Counts,
    /// Why the last datagram was bad, the last series was not made, the last values were not written.
    pub last_bad: Option<Bad>,
    pub last_refusal: Option<String>,
    pub last_failure: Option<String>,
}

impl Accounts {
    /// A sender's account.
    pub(super) fn of(&mut self, sender: IpAddr) -> &mut Counts {
        if self.senders.len() < SENDERS_MAX || self.senders.contains_key(&sender) {
            self.senders.entry(sender).or_default()
        } else {
            &mut self.rest
        }
    }

    /// Counts in a sender's account and in that of all.
    pub(super) fn count(&mut self, sender: IpAddr, count: impl Fn(&mut Counts)) {
        count(&mut self.all);
        count(self.of(sender));
    }

    /// Whether there is something to tell of.
    pub(super) fn has_trouble(&self) -> bool {
        let troubles = self
            .all
            .troubles()
            .into_iter()
            .zip(self.reported.troubles());
        troubles
            .into_iter()
            .any(|((now, _), (reported, _))| now > reported)
    }

    /// What happened since it was reported last, in a line.
    pub(super) fn take_news(&mut self) -> Option<String> {
        let mut line = String::new();
        for ((now, words), (reported, _)) in self
            .all
            .troubles()
            .into_iter()
            .zip(self.reported.troubles())
        {
            if now > reported {
                let comma = if line.is_empty() { "" } else { ", " };
                // Writing to a string cannot fail.
                let _ = write!(line, "{comma}{} {words}", now - reported);
            }
        }
        let bad = self.last_bad.take().map(|bad| bad.to_string());
        let reasons = [bad, self.last_refusal.take(), self.last_failure.take()];
        for reason in reasons.into_iter().flatten() {
            let _ = write!(line, "; last: {reason}");
        }
        self.reported = self.all.clone();
        (!line.is_empty()).then_some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forged_senders_share_an_account() {
        let mut accounts = Accounts::default();
        let sender = |n: u32| IpAddr::from((0x0a00_0000 + n).to_be_bytes());
        for n in 0..10_000 {
            accounts.count(sender(n), |counts| counts.values += 1);
        }
        assert_eq!(accounts.all.values, 10_000);
        assert_eq!(accounts.senders.len(), SENDERS_MAX);
        assert_eq!(accounts.rest.values, 10_000 - SENDERS_MAX as u64);
        accounts.count(sender(0), |counts| counts.values += 1);
        assert_eq!(accounts.of(sender(0)).values, 2);
    }

    #[test]
    fn only_news_are_told() {
        let mut accounts = Accounts::default();
        assert_eq!(accounts.take_news(), None);
        accounts.all.lost = 3;
        accounts.all.bad = 1;
        accounts.last_bad = Some(Bad::Cut);
        accounts.all.values = 7;
        assert!(accounts.has_trouble());
        let line = accounts.take_news().unwrap();
        assert!(
            line.starts_with("3 datagrams dropped by the kernel, 1 damaged"),
            "{line}"
        );
        assert!(!accounts.has_trouble() && accounts.take_news().is_none());
    }
}
