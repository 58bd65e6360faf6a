//! System calls made inside another process by ptrace, to test its confinement from inside. On x86-64 only,
//! where the instruction before the one to which a sleeping thread returns is known.

use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::fs::FileExt;

/// Distance below the stack pointer of the stopped thread, beyond the bytes that leaf functions use there.
const ROOM: u64 = 8192;
/// The instruction `syscall`.
const SYSCALL: [u8; 2] = [0x0f, 0x05];

/// A process whose first thread is stopped in a system call. Dropping this lets the process go on.
pub struct Stopped {
    pid: libc::pid_t,
    memory: File,
    before: libc::user_regs_struct,
    /// Address of the next bytes to be put.
    room: u64,
}

impl Stopped {
    /// Stops a process; `Err` also if its first thread is busy, so that the caller can try again.
    pub fn stop(pid: u32) -> io::Result<Stopped> {
        let path = format!("/proc/{pid}/mem");
        let memory = File::options().read(true).write(true).open(path)?;
        let pid = pid as libc::pid_t;
        trace(libc::PTRACE_ATTACH, pid, std::ptr::null_mut())?;
        wait(pid)?;
        let mut before = MaybeUninit::<libc::user_regs_struct>::zeroed();
        trace(libc::PTRACE_GETREGS, pid, before.as_mut_ptr().cast())?;
        // SAFETY: the kernel has filled it in, and it may be all zeros.
        #[allow(unsafe_code)]
        let before = unsafe { before.assume_init() };
        let room = (before.rsp - ROOM) & !15;
        let stopped = Stopped {
            pid,
            memory,
            before,
            room,
        };
        let mut instruction = [0; 2];
        stopped
            .memory
            .read_exact_at(&mut instruction, before.rip - 2)?;
        match instruction == SYSCALL {
            true => Ok(stopped),
            false => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    /// Writes bytes into the process's memory; returns their address.
    pub fn put(&mut self, bytes: &[u8]) -> u64 {
        self.room = (self.room - bytes.len() as u64) & !15;
        let written = self.memory.write_all_at(bytes, self.room);
        written.expect("its memory can be written");
        self.room
    }

    /// Makes a system call in the process. `Err`: its errno.
    pub fn call(&mut self, number: i64, arguments: &[u64]) -> Result<u64, i32> {
        let argument = |n: usize| arguments.get(n).copied().unwrap_or(0);
        let mut registers = libc::user_regs_struct {
            rip: self.before.rip - 2,
            rax: number as u64,
            // The kernel must not restart a call when the thread goes on.
            orig_rax: u64::MAX,
            rdi: argument(0),
            rsi: argument(1),
            rdx: argument(2),
            r10: argument(3),
            r8: argument(4),
            r9: argument(5),
            ..self.before
        };
        let place = (&raw mut registers).cast();
        trace(libc::PTRACE_SETREGS, self.pid, place).expect("its registers");
        trace(libc::PTRACE_SINGLESTEP, self.pid, std::ptr::null_mut()).expect("a step");
        assert_eq!(wait(self.pid).expect("its stop"), libc::SIGTRAP);
        trace(libc::PTRACE_GETREGS, self.pid, place).expect("its registers");
        match registers.rax as i64 {
            error @ -4095..0 => Err(-error as i32),
            answer => Ok(answer as u64),
        }
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        // Both fail if the process has ended.
        let _ = trace(
            libc::PTRACE_SETREGS,
            self.pid,
            (&raw mut self.before).cast(),
        );
        let _ = trace(libc::PTRACE_DETACH, self.pid, std::ptr::null_mut());
    }
}

#[allow(unsafe_code)]
fn trace(request: u32, pid: libc::pid_t, place: *mut libc::c_void) -> io::Result<()> {
    let none = std::ptr::null_mut::<libc::c_void>();
    // SAFETY: `place` is null, or room for what the request reads or writes there.
    match unsafe { libc::ptrace(request, pid, none, place) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Waits until the process stops; returns the signal.
#[allow(unsafe_code)]
fn wait(pid: libc::pid_t) -> io::Result<i32> {
    let mut status = 0;
    // SAFETY: the kernel writes a number there.
    match unsafe { libc::waitpid(pid, &mut status, libc::__WALL) } {
        -1 => Err(io::Error::last_os_error()),
        _ if libc::WIFSTOPPED(status) => Ok(libc::WSTOPSIG(status)),
        _ => Err(io::Error::other("it has ended")),
    }
}
