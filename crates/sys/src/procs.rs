//! Other processes of this machine, by what /proc says of them: kymo's own, for its own cost.

use std::fs;

/// CPU time and memory of a process.
#[derive(Clone, Copy, Default, Debug)]
pub struct Used {
    /// CPU time since its start, in seconds.
    pub cpu_seconds: f64,
    /// Memory that is its alone or shared as such: RssAnon and RssShmem.
    pub memory_bytes: u64,
}

/// CPU time and memory of process `pid`; `None`: there is no such process.
pub fn usage_of(pid: u32) -> Option<Used> {
    let stat = stat_of(pid)?;
    let ticks = stat.get(11)? + stat.get(12)?;
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let kb = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key));
        line.and_then(|rest| rest.trim_end_matches("kB").trim().parse::<u64>().ok())
            .unwrap_or(0)
    };
    Some(Used {
        cpu_seconds: ticks as f64 / crate::machine::clock_ticks() as f64,
        memory_bytes: (kb("RssAnon:") + kb("RssShmem:")) << 10,
    })
}

/// Seconds since process `pid` was started.
pub fn age_of(pid: u32) -> Option<f64> {
    let start_ticks = *stat_of(pid)?.get(19)?;
    let uptime = fs::read_to_string("/proc/uptime").ok()?;
    let uptime: f64 = uptime.split(' ').next()?.parse().ok()?;
    Some(uptime - start_ticks as f64 / crate::machine::clock_ticks() as f64)
}

/// The kernel's name for process `pid`.
pub fn name_of(pid: u32) -> Option<String> {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some(name.trim_end().to_string())
}

/// The state of each thread of process `pid`, as proc(5) has them; none if it is not there.
pub fn thread_states(pid: u32) -> Vec<u8> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    let stats = threads.filter_map(|thread| fs::read(thread.ok()?.path().join("stat")).ok());
    stats.filter_map(|stat| state_in(&stat)).collect()
}

/// The letter behind the name, which may have any bytes.
fn state_in(stat: &[u8]) -> Option<u8> {
    let end = stat.iter().rposition(|&byte| byte == b')')?;
    stat.get(end + 2).copied()
}

/// The process that started this one, unless that has ended.
pub fn parent() -> Option<u32> {
    let parent = rustix::process::getppid()?.as_raw_nonzero().get() as u32;
    (parent > 1).then_some(parent)
}

/// The numbers after the state: field n of proc(5) is at n - 3; a field that is no number is
/// 0.
fn stat_of(pid: u32) -> Option<Vec<u64>> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    let words = rest.split_whitespace();
    Some(words.map(|word| word.parse().unwrap_or(0)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_this_process() {
        let own = std::process::id();
        let used = usage_of(own).expect("it is there");
        assert!(used.memory_bytes > 10_000, "{used:?}");
        assert!(age_of(own).is_some_and(|age| (0.0..3600.0).contains(&age)));
        assert!(usage_of(u32::MAX).is_none());
    }

    #[test]
    fn a_thread_has_a_state() {
        assert_eq!(state_in(b"7 (a) D b) S 1 7"), Some(b'S'));
        assert_eq!(state_in(b"7 (a"), None);
        assert_eq!(state_in(b"7 (a)"), None);
        let own = thread_states(std::process::id());
        assert!(own.contains(&b'R'), "{own:?}");
        assert!(thread_states(u32::MAX).is_empty());
    }
}
