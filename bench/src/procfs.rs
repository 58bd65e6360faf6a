//! Reads of /proc about other processes: CPU in ns, peak memory, bytes read.
//! The bench's own process is not read.

use crate::fault::{Cannot, Fault, Result};
use std::fs;

/// Unit of CPU time in `stat`: USER_HZ, which is 100
/// in the kernel's interface on every present machine.
pub(crate) const TICKS_A_SECOND: f64 = 100.0;

/// Nanoseconds on CPU of all living threads. Exact while they sleep: the kernel
/// accounts a running thread at its ticks and switches.
pub(crate) fn cpu_ns(pid: u32) -> Result<u64> {
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
pub(crate) fn peak_bytes(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    Some(field(&text, "VmHWM:")? * 1024)
}

/// Bytes returned by the process's `read` calls; readable until it is reaped.
pub(crate) fn read_bytes(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
    field(&text, "rchar:")
}

/// RssAnon + RssShmem, in bytes.
pub(crate) fn private_bytes(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    Some((field(&text, "RssAnon:")? + field(&text, "RssShmem:")?) * 1024)
}

/// RssAnon, in bytes.
pub(crate) fn anonymous_bytes(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    Some(field(&text, "RssAnon:")? * 1024)
}

/// Bytes that a process fetched from devices, without cached ones.
pub(crate) fn device_read_bytes(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
    field(&text, "read_bytes:")
}

/// Bytes that a process and the children it waited for caused to be written.
pub(crate) fn written_bytes(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
    field(&text, "write_bytes:")
}

/// Waiting and dropped datagrams of a UDP port of IPv4.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct UdpQueue {
    /// By the kernel's count, with its overhead.
    pub waiting_bytes: u64,
    /// Number of dropped datagrams.
    pub dropped: u64,
}

/// The queue of the socket at that port; `None`: there is none.
pub(crate) fn udp_queue(port: u16) -> Result<Option<UdpQueue>> {
    let text = fs::read_to_string("/proc/net/udp").cannot("read /proc/net/udp")?;
    Ok(text.lines().find_map(|line| queue_of(line, port)))
}

/// Parses `N: ADDRESS:PORT REMOTE STATE TX:RX ... DROPS`, in hexadecimal except for the last word.
fn queue_of(line: &str, port: u16) -> Option<UdpQueue> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (_, own) = words.get(1)?.split_once(':')?;
    if u16::from_str_radix(own, 16) != Ok(port) {
        return None;
    }
    let (_, waiting) = words.get(4)?.split_once(':')?;
    Some(UdpQueue {
        waiting_bytes: u64::from_str_radix(waiting, 16).ok()?,
        dropped: words.last()?.parse().ok()?,
    })
}

/// The words of a command line.
pub(crate) fn words(pid: u32) -> Vec<String> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = line.split(|&byte| byte == 0);
    words
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect()
}

/// A process, by its `stat`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Process {
    pub pid: u32,
    pub parent: u32,
    pub group: u32,
    /// User and system time, with that of the children it waited for.
    pub ticks: u64,
    /// Time of the children it waited for.
    pub ended_ticks: u64,
}

/// A process and all below it.
pub(crate) fn descendants(root: u32) -> Result<Vec<Process>> {
    let names = fs::read_dir("/proc").cannot("list /proc")?;
    let all: Vec<Process> = names
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(|pid: u32| process(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?))
        .collect();
    let mut found: Vec<Process> = all.iter().filter(|p| p.pid == root).copied().collect();
    let mut next = 0;
    while let Some(parent) = found.get(next).map(|process| process.pid) {
        found.extend(all.iter().filter(|process| process.parent == parent));
        next += 1;
    }
    Ok(found)
}

/// Parses a `stat`. The name may contain any bytes, so fields are counted after its last bracket.
fn process(stat: &str) -> Option<Process> {
    let rest: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let number = |index: usize| rest.get(index)?.parse::<u64>().ok();
    Some(Process {
        pid: first_number(stat)? as u32,
        parent: number(1)? as u32,
        group: number(2)? as u32,
        ticks: number(11)? + number(12)? + number(13)? + number(14)?,
        ended_ticks: number(13)? + number(14)?,
    })
}

/// Number of processes on the machine.
pub(crate) fn process_count() -> Result<usize> {
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
    fn a_process_by_its_stat() {
        let stat = "77 (a) b) S 5 70 70 0 -1 4194304 1 2 3 4 10 20 30 40 20 0 1 0 99 0 0";
        let want = Process {
            pid: 77,
            parent: 5,
            group: 70,
            ticks: 100,
            ended_ticks: 70,
        };
        assert_eq!(process(stat), Some(want));
        assert_eq!(process("77 (cut"), None);
    }

    #[test]
    fn the_queue_of_a_port() {
        let line = " 2077: 0100007F:64E2 00000000:0000 07 00000000:00000A80 00:00000000 00000000     0        0 30 2 0000 17";
        let want = UdpQueue {
            waiting_bytes: 0xa80,
            dropped: 17,
        };
        assert_eq!(queue_of(line, 0x64e2), Some(want));
        assert_eq!(queue_of(line, 0x64e3), None);
    }

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let text = "VmPeak:\t 9 kB\nVmHWM:\t    1234 kB\nrchar: 77\n";
        assert_eq!(field(text, "VmHWM:"), Some(1234));
        assert_eq!(field(text, "rchar:"), Some(77));
        assert_eq!(field(text, "VmRSS:"), None);
    }
}
