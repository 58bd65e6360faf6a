//! What /proc says about a child: CPU in ns, peak memory, bytes read.
//! Reads of other processes only; the bench's own clockwork stays out.

use crate::fault::{Cannot, Fault, Result};
use std::fs;

/// Nanoseconds on CPU of all living threads. Exact while they sleep: the kernel
/// accounts a running thread at its ticks and switches.
pub fn cpu_ns(pid: u32) -> Result<u64> {
    let dir = format!("/proc/{pid}/task");
    let mut sum_ns = 0;
    for thread in fs::read_dir(&dir).cannot(format_args!("list {dir}"))? {
        let path = thread.cannot(format_args!("list {dir}"))?.path();
        let path = path.join("schedstat");
        let text = fs::read_to_string(&path).cannot(format_args!("read {}", path.display()))?;
        sum_ns += first_number(&text).unwrap_or(0);
    }
    Ok(sum_ns)
}

/// Peak resident memory in bytes; `None` once the process is past its exit.
pub fn peak_bytes(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    Some(field(&text, "VmHWM:")? * 1024)
}

/// Bytes returned by the process's `read` calls; readable until it is reaped.
pub fn read_bytes(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
    field(&text, "rchar:")
}

/// Processes there are now.
pub fn process_count() -> Result<usize> {
    let names = fs::read_dir("/proc").cannot("list /proc")?;
    let is_pid = |name: &str| name.bytes().all(|b| b.is_ascii_digit());
    let count = names
        .flatten()
        .filter(|entry| entry.file_name().to_str().is_some_and(is_pid))
        .count();
    match count {
        0 => Err(Fault::new("/proc lists no process")),
        n => Ok(n),
    }
}

fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    first_number(&line[name.len()..])
}

fn first_number(text: &str) -> Option<u64> {
    text.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let text = "VmPeak:\t 9 kB\nVmHWM:\t    1234 kB\nrchar: 77\n";
        assert_eq!(field(text, "VmHWM:"), Some(1234));
        assert_eq!(field(text, "rchar:"), Some(77));
        assert_eq!(field(text, "VmRSS:"), None);
    }
}
