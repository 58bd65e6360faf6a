//! Finds processes that have not run since their last read, by the scheduler's account. A
//! system call returns the account and needs no open file; if the pids are those of another
//! pid namespace, the account is a file, whose read costs a sixth of `stat` and `io`.

use kymo_base::scan;
use kymo_sys::kernel_file::Root;

/// The scheduler's counts for a process: time on a CPU; with the file as source also time waited for one, and turns; else 0 and 1.
pub(crate) type Account = [u64; 3];

/// Account of a task for which the scheduler keeps none.
const NO_ACCOUNT: Account = [0; 3];
const OWN_ACCOUNT: &str = "proc/thread-self/schedstat";
const VMSTAT: &str = "proc/vmstat";
/// Greatest age of a row. Other processes seldom change a sleeping one: its memory, its parent or its priority.
const AGE_NS: u64 = 60_000_000_000;
/// Each time that a row proves unchanged, its greatest age doubles, up to this.
const AGE_NS_MAX: u64 = 480_000_000_000;
/// Number of moments over which the rereads of rows are spread.
const SPREAD: u64 = 32;

/// State of the check for accounts: the kernel keeps them if the account of this thread grows.
#[derive(Default)]
pub(crate) enum Accounts {
    /// Not read yet.
    #[default]
    Unseen,
    /// This thread's account at the previous scan.
    Seen(Account),
    /// The accounts grow.
    Kept(AccountSource),
    /// The accounts are missing, or do not grow.
    Missing,
}

/// Source of the account of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AccountSource {
    /// The clock of its CPU time, which counts all its threads.
    Clock,
    /// `schedstat`, which counts the first thread alone.
    File,
}

impl AccountSource {
    fn of(root: &Root) -> AccountSource {
        match root.has_own_pids() {
            true => AccountSource::Clock,
            false => AccountSource::File,
        }
    }

    /// The account of this thread, or of its process.
    fn own(self, root: &Root) -> Option<Account> {
        if self == AccountSource::Clock {
            return clock_account(root, std::process::id());
        }
        let mut text = Vec::with_capacity(64);
        root.read(OWN_ACCOUNT, &mut text).ok()?;
        file_account(&text)
    }
}

/// The account of a process by its clock. It is never [`NO_ACCOUNT`]: many threads of the kernel have never run.
pub(crate) fn clock_account(root: &Root, pid: u32) -> Option<Account> {
    root.process_cpu_ns(pid).map(|ns| [ns, 0, 1])
}

/// The account of a process by the text of its `schedstat`.
pub(crate) fn file_account(text: &[u8]) -> Option<Account> {
    let text = std::str::from_utf8(text).ok()?;
    let mut numbers = text.split_ascii_whitespace().map(str::parse);
    let mut next = || numbers.next()?.ok();
    Some([next()?, next()?, next()?])
}

impl Accounts {
    /// Decides if the kernel keeps accounts, by this thread's account; returns their source if it does.
    pub(crate) fn are_kept(&mut self, root: &Root) -> Option<AccountSource> {
        let from = AccountSource::of(root);
        *self = match self {
            Accounts::Kept(from) => return Some(*from),
            Accounts::Missing => return None,
            Accounts::Unseen => from.own(root).map_or(Accounts::Missing, Accounts::Seen),
            Accounts::Seen(before) => match from.own(root) {
                Some(now) if now != NO_ACCOUNT && now != *before => Accounts::Kept(from),
                _ => Accounts::Missing,
            },
        };
        self.source()
    }

    /// Source of accounts, if the kernel is known to keep them.
    pub(crate) fn source(&self) -> Option<AccountSource> {
        match self {
            Accounts::Kept(from) => Some(*from),
            Accounts::Unseen | Accounts::Seen(_) | Accounts::Missing => None,
        }
    }

    /// True if the kernel keeps no accounts.
    pub(crate) fn are_missing(&self) -> bool {
        matches!(self, Accounts::Missing)
    }
}

/// Number of pages that the kernel has reclaimed from all processes.
#[derive(Default)]
pub(crate) struct Reclaim {
    pages: Option<u64>,
    text: Vec<u8>,
}

impl Reclaim {
    /// Returns true if the kernel may have reclaimed pages since the last call.
    pub(crate) fn goes_on(&mut self, root: &Root) -> bool {
        let pages = match root.read(VMSTAT, &mut self.text) {
            Ok(()) => pages_taken(&self.text),
            Err(_) => None,
        };
        let before = std::mem::replace(&mut self.pages, pages);
        pages.is_none() || pages != before
    }
}

/// The sum of `pgsteal_...` of a text of vmstat.
fn pages_taken(text: &[u8]) -> Option<u64> {
    let lines = text.split(|&b| b == b'\n');
    let lines = lines.filter_map(|line| line.strip_prefix(b"pgsteal_"));
    lines
        .filter_map(|line| scan::number(line.rsplit(|&b| b == b' ').next()?))
        .reduce(u64::wrapping_add)
}

/// Last account and age of one process's row.
#[derive(Default)]
pub(crate) struct Rest {
    /// The process's account before the last read of its files; all 0 if unknown.
    account: Account,
    /// Time of the last read of the files.
    read_at_ns: u64,
    /// The last two reads of the files gave the same texts, and the process does not run.
    is_still: bool,
    /// Last time at which `is_still` was false.
    ran_at_ns: u64,
    /// Greatest age of the row while the kernel reclaims no memory.
    age_max_ns: u64,
}

impl Rest {
    /// True if a look at the account is worth its cost: a process that always runs is read anyway.
    /// `reclaims`: the kernel reclaims memory, also of sleeping processes.
    pub(crate) fn is_likely(&self, generation: u64, age_ns: u64, reclaims: bool) -> bool {
        let age_max_ns = if reclaims { AGE_NS } else { self.age_max_ns };
        // Reduces the age by up to a half, by a different part for each task.
        let age_max_ns = age_max_ns - age_max_ns / (2 * SPREAD) * (generation % SPREAD);
        self.is_still && age_ns.saturating_sub(self.read_at_ns) < age_max_ns
    }

    /// Stores the new account; returns true if the process has not run since its files were read.
    pub(crate) fn goes_on(&mut self, account: Account) -> bool {
        let goes_on = account != NO_ACCOUNT && account == self.account;
        self.account = account;
        goes_on
    }

    /// Returns true if the last two reads of the files gave the same texts and the process does not run.
    pub(crate) fn is_still(&self) -> bool {
        self.is_still
    }

    /// Notes a read of the process's files.
    pub(crate) fn was_read(&mut self, age_ns: u64, is_still: bool) {
        self.read_at_ns = age_ns;
        self.age_max_ns = match self.is_still && is_still {
            true => (2 * self.age_max_ns).clamp(AGE_NS, AGE_NS_MAX),
            false => AGE_NS,
        };
        if !is_still {
            self.account = NO_ACCOUNT;
            self.ran_at_ns = age_ns;
        }
        self.is_still = is_still;
    }

    /// Time since the last read of the process's files.
    #[cfg(test)]
    pub(crate) fn age_ns(&self, now_ns: u64) -> u64 {
        now_ns.saturating_sub(self.read_at_ns)
    }

    /// Returns true if the process may have run after `age_ns`.
    pub(crate) fn has_run_since(&self, age_ns: u64) -> bool {
        age_ns <= self.ran_at_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    #[test]
    fn a_row_that_stays_the_same_may_be_older_and_older() {
        let mut rest = Rest::default();
        let mut read_at_s = 0;
        for age_s in [60, 120, 240, 480, 480] {
            rest.was_read(read_at_s * SECOND_NS, true);
            let is_likely =
                |after_s, reclaims| rest.is_likely(0, (read_at_s + after_s) * SECOND_NS, reclaims);
            assert!(is_likely(age_s - 1, false), "{age_s}");
            assert!(!is_likely(age_s, false), "{age_s}");
            assert!(is_likely(59, true) && !is_likely(60, true), "{age_s}");
            let latest = (read_at_s + age_s / 2 - 1) * SECOND_NS;
            assert!((0..100).all(|generation| rest.is_likely(generation, latest, false)));
            read_at_s += age_s;
        }
        rest.was_read(read_at_s * SECOND_NS, false);
        rest.was_read(read_at_s * SECOND_NS, true);
        assert!(
            !rest.is_likely(0, (read_at_s + 60) * SECOND_NS, false),
            "it was another one"
        );
    }

    #[test]
    fn pages_taken_are_the_sum_of_all_who_take_them() {
        let text =
            b"pgscan_direct 9\npgsteal_kswapd 5\npgsteal_direct 7\npgsteal_x\npgstealing 1\n";
        assert_eq!(pages_taken(text), Some(12));
        assert_eq!(pages_taken(b"nr_free_pages 5\n"), None);
    }

    #[test]
    fn rest_is_two_equal_accounts_of_a_still_process() {
        let mut rest = Rest::default();
        assert!(!rest.is_likely(0, 0, false));
        rest.was_read(0, true);
        assert!(rest.is_likely(0, 1, false));
        assert!(!rest.goes_on([10, 2, 3]), "the first account");
        rest.was_read(1, true);
        assert!(rest.goes_on([10, 2, 3]));
        assert!(!rest.goes_on([10, 2, 4]));
        rest.was_read(2, false);
        assert!(!rest.is_likely(0, 3, false));
        rest.was_read(4, true);
        assert!(!rest.goes_on([10, 2, 4]), "of before it ran");
        assert!(!rest.goes_on(NO_ACCOUNT));
        assert!(!rest.goes_on(NO_ACCOUNT));
    }

    #[test]
    fn an_account_is_three_numbers() {
        for (text, account) in [
            (&b"10 2 3\n"[..], Some([10, 2, 3])),
            (b"0 0 0\n", Some(NO_ACCOUNT)),
            (b"", None),
            (b"\n", None),
            (b"10 2\n", None),
            (b"10 2 x\n", None),
            (b"\xff", None),
        ] {
            assert_eq!(file_account(text), account, "{text:?}");
        }
    }

    #[test]
    fn no_row_of_a_process_is_older_than_a_minute_at_first_and_not_all_are_read_at_once() {
        let mut rest = Rest::default();
        rest.was_read(0, true);
        let reads: Vec<usize> = (0..60)
            .map(|second| {
                let all = 0..3000;
                all.filter(|&generation| {
                    !rest.is_likely(generation, (second + 1) * SECOND_NS, false)
                        && rest.is_likely(generation, second * SECOND_NS, false)
                })
                .count()
            })
            .collect();
        assert_eq!(reads.iter().sum::<usize>(), 3000);
        assert!(reads.iter().all(|&count| count <= 200), "{reads:?}");
    }
}
