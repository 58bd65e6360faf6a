//! Identity of a publisher: a process, in a boot, with an epoch of its own.

use std::ffi::{CStr, CString};
use std::time::SystemTime;

use rustix::fs::{CWD, Mode, OFlags, openat, stat};
use rustix::io::{Errno, read};
use rustix::rand::{GetRandomFlags, getrandom};

/// Maker of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The process.
    pub pid: u32,
    /// Start of the process, in clock ticks from boot; 0: unknown.
    pub start: u64,
    /// The boot.
    pub boot: [u8; 16],
    /// Random bits; the name of the file as well.
    pub epoch: [u8; 16],
    /// Nanoseconds since 1970-01-01 UTC.
    pub created_ns: u64,
}

impl Origin {
    /// This process, now.
    pub(super) fn own() -> Result<Origin, Errno> {
        let mut epoch = [0; 16];
        if getrandom(&mut epoch, GetRandomFlags::empty())? != epoch.len() {
            return Err(Errno::IO);
        }
        // Not rustix's clock, which looks for the vdso itself: valgrind hides that, and ends the program.
        let now = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        Ok(Origin {
            pid: own_pid(),
            start: own_start(),
            boot: own_boot(),
            epoch,
            created_ns: u64::try_from(now.as_nanos()).unwrap_or(u64::MAX),
        })
    }
}

pub(super) fn own_pid() -> u32 {
    rustix::process::getpid().as_raw_pid().cast_unsigned()
}

pub(super) fn own_start() -> u64 {
    start(c"/proc/self/stat")
}

/// The start of another process in this one's namespace; 0 if it cannot be known.
pub(super) fn start_of(pid: u32) -> u64 {
    CString::new(format!("/proc/{pid}/stat")).map_or(0, |path| start(&path))
}

/// The namespace in which this process has its pid.
pub(super) fn own_pids() -> Option<u64> {
    stat("/proc/self/ns/pid").ok().map(|found| found.st_ino)
}

/// Field 22 of a process's stat; 0 if it cannot be read.
fn start(path: &CStr) -> u64 {
    let mut room = [0; 1024];
    let text = read_small(path, &mut room);
    // Behind the program's name, which may contain anything, is field 3.
    let end = text.iter().rposition(|byte| *byte == b')');
    let fields = text.get(end.map_or(0, |end| end + 2)..).unwrap_or_default();
    let field = fields
        .split(|byte| *byte == b' ')
        .nth(22 - 3)
        .unwrap_or_default();
    std::str::from_utf8(field)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(0)
}

fn own_boot() -> [u8; 16] {
    let mut room = [0; 64];
    let text = read_small(c"/proc/sys/kernel/random/boot_id", &mut room);
    let mut boot = [0u8; 16];
    let digits = text
        .iter()
        .filter_map(|byte| char::from(*byte).to_digit(16));
    for (number, digit) in digits.take(32).enumerate() {
        boot[number / 2] = boot[number / 2] << 4 | digit.to_le_bytes()[0];
    }
    boot
}

fn read_small<'a>(path: &CStr, room: &'a mut [u8]) -> &'a [u8] {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let length = openat(CWD, path, flags, Mode::empty()).and_then(|file| read(file, &mut *room));
    &room[..length.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_known() {
        let (one, two) = (
            Origin::own().expect("an origin"),
            Origin::own().expect("an origin"),
        );
        assert_eq!(one.pid, std::process::id());
        let stat = std::fs::read_to_string("/proc/self/stat").expect("stat");
        let fields: Vec<&str> = stat
            .rsplit(") ")
            .next()
            .expect("fields")
            .split(' ')
            .collect();
        assert_eq!(one.start.to_string(), fields[19]);
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("boot");
        let digits: String = one.boot.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(digits, boot.trim().replace('-', ""));
        assert_ne!(one.epoch, two.epoch);
        assert!(one.created_ns > 1_700_000_000_000_000_000);
    }
}
