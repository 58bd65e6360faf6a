//! Counts of receivers of `[[forward]]`, as the process that forwards gave them last.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kymo_sys::clock::{Clock as _, RealClock};
use kymo_wire::keeper::{Answer, ReceiverAccount};

/// Age of counts from which on no receiver is up: the process that forwards gives them every ten seconds.
const SILENCE: Duration = Duration::from_secs(30);

/// Counts of all receivers, shared by the sockets for requests.
#[derive(Clone, Debug, Default)]
pub struct Receivers(Arc<Mutex<Report>>);

/// The counts, and when they came.
#[derive(Debug, Default)]
struct Report {
    receivers: Vec<ReceiverAccount>,
    came_ns: u64,
}

impl Receivers {
    /// Replaces all counts.
    pub(super) fn take(&self, receivers: &[ReceiverAccount], now_ns: u64) {
        *self.report() = Report {
            receivers: receivers.to_vec(),
            came_ns: now_ns,
        };
    }

    /// The answer to RECEIVERS. While the process that forwards is silent, nothing goes out: no receiver is up.
    pub(super) fn answer(&self) -> Answer {
        self.answer_at(RealClock.mono_ns())
    }

    fn answer_at(&self, now_ns: u64) -> Answer {
        let report = self.report();
        let mut receivers = report.receivers.clone();
        let age = Duration::from_nanos(now_ns.saturating_sub(report.came_ns));
        for receiver in &mut receivers {
            receiver.is_up &= age < SILENCE;
        }
        Answer::Receivers(receivers)
    }

    fn report(&self) -> MutexGuard<'_, Report> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_receiver_is_up_while_the_process_that_forwards_is_silent() {
        const SECOND: u64 = 1_000_000_000;
        let receivers = Receivers::default();
        let [up, down] = [true, false].map(|is_up| ReceiverAccount {
            sent: 7,
            is_up,
            ..ReceiverAccount::default()
        });
        receivers.take(&[up.clone(), down.clone()], 100 * SECOND);
        let both = Answer::Receivers(vec![up, down.clone()]);
        assert_eq!(receivers.answer_at(129 * SECOND), both);
        let none = Answer::Receivers(vec![down.clone(), down]);
        assert_eq!(receivers.answer_at(130 * SECOND), none);
    }
}
