//! Messages of a process to people: lines on stderr. A line that cannot be written is dropped and counted, so that a
//! full disk under the log, or a reader that has ended, ends no process. A daemon does not wait for its log.
//!
//! `eprintln!` panics when stderr takes nothing, so clippy refuses it everywhere, together with `std::io::stderr`.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::fmt::Display;
use std::io::IoSlice;
use std::os::fd::BorrowedFd;
use std::panic::PanicHookInfo;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use kymo_base::errno::without_numbers;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::FileType;
use rustix::io::{Errno, ReadWriteFlags};

/// A daemon's line has no more bytes: a pipe takes these at once or none of them.
const LINE_MAX: usize = 4096;
/// Longest text of a panic that is said.
const PANIC_MAX: usize = 300;

static WAITS: AtomicBool = AtomicBool::new(true);
/// Dropped lines that have not been reported yet.
static UNSAID: AtomicU64 = AtomicU64::new(0);

/// Writes the time in front of each line of a log.
static STAMP: OnceLock<fn() -> String> = OnceLock::new();

/// Puts a stamp in front of all later lines.
pub fn stamp_lines(stamp: fn() -> String) {
    // A second call would be by the same daemon, with the same stamp.
    let _ = STAMP.set(stamp);
}

/// True if lines have stamps: they go into a log of their own.
pub fn stamps_lines() -> bool {
    STAMP.get().is_some()
}

/// Says a line, by a single write: several processes share a log, and their lines must not mix. People read it: the system's
/// numbers of errors are left out.
pub fn say(text: impl Display) {
    let stamp = STAMP.get().map(|stamp| stamp()).unwrap_or_default();
    put(without_numbers(format!("{stamp}{text}\n")).as_bytes());
}

/// Writes bytes to stderr as they are: a prompt, or text with a line end.
pub fn put(bytes: &[u8]) {
    let stderr = rustix::stdio::stderr();
    let unsaid = UNSAID.swap(0, Ordering::Relaxed);
    let mut lost = 0;
    if unsaid > 0 {
        let line = format!("kymo: {unsaid} lines before this one are lost: the log took none\n");
        lost += unsaid * u64::from(write(stderr, line.as_bytes()).is_err());
    }
    lost += u64::from(write(stderr, bytes).is_err());
    UNSAID.fetch_add(lost, Ordering::Relaxed);
}

/// Makes all later lines of this process drop instead of wait, so that a daemon goes on when its log's reader stops.
pub fn never_wait() {
    WAITS.store(false, Ordering::Relaxed);
}

/// A panic says where it was, and ends without waiting for the log.
pub fn say_panics() {
    std::panic::set_hook(Box::new(|panic| {
        never_wait();
        say(panic_line(panic));
        let trace = Backtrace::capture();
        if trace.status() == BacktraceStatus::Captured {
            trace.to_string().lines().for_each(say);
        }
    }));
}

fn panic_line(panic: &PanicHookInfo<'_>) -> String {
    let thread = std::thread::current();
    let text = panic.payload_as_str().unwrap_or_default();
    let place = panic.location().map(ToString::to_string);
    format!(
        "kymo: BUG: panicked at {} in {}: {}",
        place.unwrap_or_default(),
        thread.name().unwrap_or("a thread"),
        without_quotations(text)
    )
}

/// Cuts a text at its first quotation, which may have a secret of a configuration: messages of std's slices and
/// parsers end there.
fn without_quotations(text: &str) -> &str {
    let line = text.split(['`', '"', '\'', '\n']).next();
    let line = line.unwrap_or_default();
    &line[..line.floor_char_boundary(PANIC_MAX)]
}

fn write(to: BorrowedFd<'_>, bytes: &[u8]) -> Result<(), Errno> {
    match WAITS.load(Ordering::Relaxed) {
        true => write_all(to, bytes),
        false => write_now(to, &shortened(bytes)),
    }
}

/// Writes all bytes; waits for a slow reader.
fn write_all(to: BorrowedFd<'_>, bytes: &[u8]) -> Result<(), Errno> {
    let mut rest = bytes;
    while !rest.is_empty() {
        match rustix::io::write(to, rest) {
            Ok(written) => rest = &rest[written..],
            Err(Errno::INTR) => {}
            // Another program that has the terminal does not wait for it.
            Err(Errno::AGAIN) => drop(poll(&mut [PollFd::new(&to, PollFlags::OUT)], None)),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// At once, or not at all.
fn write_now(to: BorrowedFd<'_>, line: &[u8]) -> Result<(), Errno> {
    let mut polled = [PollFd::new(&to, PollFlags::OUT)];
    poll(&mut polled, Some(&Timespec::default()))?;
    if !polled[0].revents().contains(PollFlags::OUT) {
        return Err(Errno::AGAIN);
    }
    // Between poll and write another process may have filled a pipe: there the kernel is asked not to wait.
    let is_pipe = rustix::fs::fstat(to).is_ok_and(|about| is_pipe(about.st_mode));
    let done = match is_pipe {
        true => write_pipe(to, line),
        false => rustix::io::retry_on_intr(|| rustix::io::write(to, line)),
    };
    // A disk that takes a part of a line is as good as full.
    done.map(drop)
}

fn is_pipe(mode: u32) -> bool {
    FileType::from_raw_mode(mode) == FileType::Fifo
}

/// Kernels before 6.4, and filters of system calls, may not know the way that never waits.
fn write_pipe(to: BorrowedFd<'_>, line: &[u8]) -> Result<usize, Errno> {
    const NO_OFFSET: u64 = u64::MAX;
    let written =
        rustix::io::pwritev2(to, &[IoSlice::new(line)], NO_OFFSET, ReadWriteFlags::NOWAIT);
    match written {
        Ok(_) | Err(Errno::AGAIN | Errno::PIPE) => written,
        Err(_) => rustix::io::retry_on_intr(|| rustix::io::write(to, line)),
    }
}

/// A line that a pipe takes whole.
fn shortened(line: &[u8]) -> std::borrow::Cow<'_, [u8]> {
    const END: &[u8] = b" ...\n";
    match line.len() > LINE_MAX {
        true => [&line[..LINE_MAX - END.len()], END].concat().into(),
        false => line.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Read;
    use std::os::fd::AsFd;

    #[test]
    fn a_full_pipe_is_not_waited_for() {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let line = [b'x'; 100];
        let mut taken = 0;
        while write_now(writer.as_fd(), &line).is_ok() {
            taken += 1;
        }
        assert!(taken >= 40, "{taken} lines fit a pipe");
        let mut page = [0; 65536];
        let read = reader.read(&mut page).unwrap();
        assert!(read % line.len() == 0, "whole lines: {read}");
        assert_eq!(write_now(writer.as_fd(), &line), Ok(()), "it goes on");
        drop(reader);
        assert_eq!(write_now(writer.as_fd(), &line), Err(Errno::PIPE));
        let full = File::options().write(true).open("/dev/full").unwrap();
        assert_eq!(write_now(full.as_fd(), &line), Err(Errno::NOSPC));
        assert_eq!(write_all(full.as_fd(), &line), Err(Errno::NOSPC));
    }

    #[test]
    fn two_writers_of_a_full_pipe_wait_for_none() {
        let (_reader, writer) = std::io::pipe().unwrap();
        let writer = writer.as_fd();
        // Each thread uses room that another thread may have seen as well: a write that waited would never return.
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(move || {
                    (0..2000)
                        .filter(|_| write_now(writer, &[b'x'; 4096]).is_ok())
                        .count()
                });
            }
        });
    }

    #[test]
    fn long_lines_fit_a_pipe() {
        for (length, end) in [
            (4095, "x\n"),
            (4096, "x\n"),
            (4097, " ...\n"),
            (1 << 20, " ...\n"),
        ] {
            let line = format!("{}\n", "x".repeat(length - 1));
            let short = shortened(line.as_bytes());
            assert!(
                short.len() <= LINE_MAX && short.ends_with(end.as_bytes()),
                "{length}"
            );
        }
    }

    #[test]
    fn a_panic_quotes_nothing() {
        for (text, expected) in [
            ("BUG: head older than tail", "BUG: head older than tail"),
            (
                "index out of bounds: the len is 3 but the index is 5",
                "index out of bounds: the len is 3 but the index is 5",
            ),
            (
                "byte index 5 is not a char boundary; it is inside 'é' (bytes 4..6) of `Target[é]: 2:s3cret@host`",
                "byte index 5 is not a char boundary; it is inside ",
            ),
            (
                "called `Result::unwrap()` on an `Err` value: \"s3cret\"",
                "called ",
            ),
            ("not a number: \"s3cret\"", "not a number: "),
            ("first\nsecond", "first"),
        ] {
            assert_eq!(without_quotations(text), expected);
        }
    }
}
