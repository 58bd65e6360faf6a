//! Which processes have not run since they were read: what says so, the scheduler's account, costs a sixth of `stat` and `io`.

use kymo_sys::kernel_file::Root;

/// The account of a task that the scheduler keeps none of.
const NO_ACCOUNT: &[u8] = b"0 0 0";
const OWN_ACCOUNT: &str = "proc/thread-self/schedstat";
/// No row is older.
const AGE_NS_MAX: u64 = 60_000_000_000;
const SECOND_NS: u64 = 1_000_000_000;
/// Rows are read again this many seconds apart, at most: not all at once.
const SPREAD: u64 = 30;

/// Whether the kernel's accounts can be believed: that of this thread has to grow.
#[derive(Default)]
pub(crate) enum Accounts {
    /// Not looked at yet.
    #[default]
    Unseen,
    /// This thread's, at the scan before.
    Seen(Vec<u8>),
    /// They grow.
    Kept,
    /// They do not, or are not there.
    Missing,
}

impl Accounts {
    /// Looks at this thread's account, if it is not decided yet. Whether accounts are kept.
    pub(crate) fn are_kept(&mut self, root: &Root) -> bool {
        let own = || {
            let mut text = Vec::with_capacity(64);
            let is_read = root.read(OWN_ACCOUNT, &mut text).is_ok();
            is_read.then_some(text)
        };
        match self {
            Accounts::Kept => return true,
            Accounts::Missing => return false,
            Accounts::Unseen => {
                *self = own().map_or(Accounts::Missing, Accounts::Seen);
            }
            Accounts::Seen(before) => {
                let grows = own().is_some_and(|now| is_account(&now) && now != *before);
                *self = if grows {
                    Accounts::Kept
                } else {
                    Accounts::Missing
                };
            }
        }
        matches!(self, Accounts::Kept)
    }
}

fn is_account(text: &[u8]) -> bool {
    let text = text.trim_ascii_end();
    !text.is_empty() && text != NO_ACCOUNT
}

/// What is known of one process.
#[derive(Default)]
pub(crate) struct Rest {
    /// Its account before its files were read last; empty: not known.
    account: Vec<u8>,
    /// When they were.
    read_at_ns: u64,
    /// They said the same as the time before, and that it has one thread and does not run.
    is_still: bool,
    /// When that was not so last.
    ran_at_ns: u64,
}

impl Rest {
    /// Whether it is worth looking at its account: who runs always is read anyway.
    pub(crate) fn is_likely(&self, generation: u64, age_ns: u64) -> bool {
        let age_max_ns = AGE_NS_MAX - generation % SPREAD * SECOND_NS;
        self.is_still && age_ns.saturating_sub(self.read_at_ns) < age_max_ns
    }

    /// Takes its account; whether it has not run since its files were read.
    pub(crate) fn goes_on(&mut self, account: &[u8]) -> bool {
        let goes_on = is_account(account) && account == self.account;
        if !goes_on {
            self.account.clear();
            self.account.extend_from_slice(account);
        }
        goes_on
    }

    /// Its files were read.
    pub(crate) fn was_read(&mut self, age_ns: u64, is_still: bool) {
        self.read_at_ns = age_ns;
        if !is_still {
            self.account.clear();
            self.ran_at_ns = age_ns;
        }
        self.is_still = is_still;
    }

    /// Whether it may have run after that.
    pub(crate) fn has_run_since(&self, age_ns: u64) -> bool {
        age_ns <= self.ran_at_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rest_is_two_equal_accounts_of_a_still_process() {
        let mut rest = Rest::default();
        assert!(!rest.is_likely(0, 0));
        rest.was_read(0, true);
        assert!(rest.is_likely(0, 1));
        assert!(!rest.goes_on(b"10 2 3\n"), "the first account");
        rest.was_read(1, true);
        assert!(rest.goes_on(b"10 2 3\n"));
        assert!(!rest.goes_on(b"10 2 4\n"));
        rest.was_read(2, false);
        assert!(!rest.is_likely(0, 3));
        rest.was_read(4, true);
        assert!(!rest.goes_on(b"10 2 4\n"), "of before it ran");
        for nothing in [&b"0 0 0\n"[..], b"", b"\n"] {
            assert!(!rest.goes_on(nothing));
            assert!(!rest.goes_on(nothing));
        }
    }

    #[test]
    fn no_row_is_older_than_a_minute_and_not_all_are_read_at_once() {
        let mut rest = Rest::default();
        rest.was_read(0, true);
        let reads: Vec<usize> = (0..60)
            .map(|second| {
                let all = 0..3000;
                all.filter(|&generation| {
                    !rest.is_likely(generation, (second + 1) * SECOND_NS)
                        && rest.is_likely(generation, second * SECOND_NS)
                })
                .count()
            })
            .collect();
        assert_eq!(reads.iter().sum::<usize>(), 3000);
        assert!(reads.iter().all(|&count| count <= 100), "{reads:?}");
    }
}
