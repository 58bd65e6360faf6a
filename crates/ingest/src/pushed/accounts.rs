//! Counts of senders since the keeper's start.

use std::collections::HashMap;

use kymo_wire::keeper::PushAccount;

use super::round::PushRound;

/// Senders with counts of their own; all others have one account together.
const SENDERS_MAX: usize = 1024;

/// The counts of a sender by one protocol.
#[derive(Debug, Default)]
struct Sent {
    seen_ns: u64,
    requests: u64,
    samples: u64,
    series: u64,
    refused: Vec<(&'static str, u64)>,
}

/// The counts of all senders.
#[derive(Debug, Default)]
pub(super) struct PushAccounts {
    senders: HashMap<(&'static str, Box<str>), Sent>,
}

impl PushAccounts {
    /// Adds the counts of a request.
    pub(super) fn note(&mut self, protocol: &'static str, round: &PushRound) {
        let mut key = (protocol, round.sender.into());
        if self.senders.len() >= SENDERS_MAX && !self.senders.contains_key(&key) {
            key.1 = "".into();
        }
        let sent = self.senders.entry(key).or_default();
        sent.seen_ns = round.now.mono_ns;
        sent.requests += 1;
        sent.samples += round.stored;
        sent.series += round.begun;
        for &(why, count) in &round.refused {
            match sent.refused.iter_mut().find(|(known, _)| *known == why) {
                Some((_, all)) => *all += count,
                None => sent.refused.push((why, count)),
            }
        }
    }

    /// All accounts, by protocol and sender.
    pub(super) fn all(&self, now_ns: u64) -> Vec<PushAccount> {
        let accounts = self.senders.iter().map(|((protocol, sender), sent)| {
            let age = std::time::Duration::from_nanos(now_ns.saturating_sub(sent.seen_ns));
            let refused = sent.refused.iter();
            PushAccount {
                protocol: (*protocol).into(),
                sender: (**sender).into(),
                age_s: age.as_secs_f64(),
                requests: sent.requests,
                samples: sent.samples,
                series: sent.series,
                refused: refused.map(|&(why, count)| (why.into(), count)).collect(),
            }
        });
        let mut accounts: Vec<PushAccount> = accounts.collect();
        accounts.sort_by(|one, other| {
            (&one.protocol, &one.sender).cmp(&(&other.protocol, &other.sender))
        });
        accounts
    }
}
