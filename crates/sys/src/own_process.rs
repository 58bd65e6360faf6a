//! Size, files and limits of this process, without a long text: its open files are counted by the kernel.

use std::sync::OnceLock;

use rustix::process::{Resource, getrlimit};

use crate::clock::{Clock as _, RealClock};
use crate::machine::{clock_ticks, usage};

/// Limit that stands for "as much as there is".
pub const UNLIMITED: u64 = i64::MAX.cast_unsigned();

/// This process now.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OwnProcess {
    /// CPU time of all its threads, microseconds.
    pub cpu_us: u64,
    /// Address space, pages.
    pub virtual_pages: Option<u64>,
    /// Memory in RAM, pages.
    pub resident_pages: Option<u64>,
    /// Largest address space, bytes; [`UNLIMITED`] without a limit.
    pub virtual_bytes_max: u64,
    /// Open files; `None` on a kernel before 6.2, which does not count them.
    pub open_files: Option<u64>,
    /// Most files it may open; [`UNLIMITED`] without a limit.
    pub open_files_max: u64,
    /// When it started, milliseconds since 1970.
    pub started_ms: Option<u64>,
}

/// Asks the kernel about this process.
pub fn own_process() -> OwnProcess {
    static STARTED: OnceLock<Option<u64>> = OnceLock::new();
    let used = usage();
    let memory = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let mut pages = memory
        .split_ascii_whitespace()
        .map(|word| word.parse().ok());
    let limit = |resource| getrlimit(resource).current.unwrap_or(UNLIMITED);
    OwnProcess {
        cpu_us: used.user_us.saturating_add(used.system_us),
        virtual_pages: pages.next().flatten(),
        resident_pages: pages.next().flatten(),
        virtual_bytes_max: limit(Resource::As),
        open_files: open_files(),
        open_files_max: limit(Resource::Nofile),
        started_ms: *STARTED.get_or_init(started_ms),
    }
}

/// The size of the folder of open files is their number, since Linux 6.2; before it is 0.
fn open_files() -> Option<u64> {
    let folder = std::fs::metadata("/proc/self/fd").ok()?;
    Some(folder.len()).filter(|files| *files > 0)
}

fn started_ms() -> Option<u64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let now = RealClock.now();
    let age_ms = i64::try_from(now.boot_ns).ok()? / 1_000_000 - started_after_ms(&stat)?;
    u64::try_from(now.real_ns / 1_000_000 - age_ms).ok()
}

/// Milliseconds from the boot to the start, from the text of /proc/PID/stat: word 22, where the name may have blanks.
fn started_after_ms(stat: &str) -> Option<i64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let ticks: i64 = after_name.split_ascii_whitespace().nth(19)?.parse().ok()?;
    let ticks_a_second = i64::try_from(clock_ticks()).ok()?;
    ticks.checked_mul(1000)?.checked_div(ticks_a_second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_is_behind_a_name_with_blanks() {
        let stat =
            "77 (a) b) R 1 77 1 0 -1 4194304 500 0 3 0 21 22 0 0 20 0 4 0 4321 9000000 300\n";
        assert_eq!(started_after_ms(stat), Some(43_210));
        for text in [
            "",
            "77 (a",
            "77 (a) R 1 2",
            "7 (a) S 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 x",
        ] {
            assert_eq!(started_after_ms(text), None, "{text}");
        }
    }

    #[test]
    fn this_process_has_a_size_and_files() {
        let own = own_process();
        assert!(own.virtual_pages > own.resident_pages, "{own:?}");
        assert!(own.resident_pages > Some(100), "{own:?}");
        assert!(own.open_files_max >= own.open_files.unwrap_or(3), "{own:?}");
        assert!(own.open_files.is_none_or(|files| files >= 3), "{own:?}");
        let now_ms = u64::try_from(RealClock.now().real_ns / 1_000_000).expect("after 1970");
        assert!(own.started_ms.is_some_and(|ms| ms <= now_ms), "{own:?}");
        assert_eq!(own_process().started_ms, own.started_ms);
    }
}
