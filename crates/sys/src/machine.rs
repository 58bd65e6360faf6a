//! Requests of the process to its machine: limits, signals, locked memory, its own cost.

use std::fs::File;
use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

use kymo_base::name::DisplayName;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::Pid;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::clock::nanoseconds;

/// CPU time and context switches of this process so far.
#[derive(Clone, Copy, Default, Debug)]
pub struct Usage {
    /// CPU time in user mode, microseconds.
    pub user_us: u64,
    /// CPU time in the kernel, microseconds.
    pub system_us: u64,
    /// Times it gave up the CPU, and times it was taken from it.
    pub switches: (u64, u64),
}

/// The cost of this process until now.
#[allow(unsafe_code)]
pub fn usage() -> Usage {
    let mut raw = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: getrusage fills the struct it is given, which is valid when all zeros too.
    let raw = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, raw.as_mut_ptr());
        raw.assume_init()
    };
    let micros = |t: libc::timeval| t.tv_sec as u64 * 1_000_000 + t.tv_usec as u64;
    Usage {
        user_us: micros(raw.ru_utime),
        system_us: micros(raw.ru_stime),
        switches: (raw.ru_nvcsw as u64, raw.ru_nivcsw as u64),
    }
}

/// Largest resident set of this program, in KiB; not `ru_maxrss`, which counts what had started it.
pub fn peak_kb() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line?.split_whitespace().next()?.parse().ok()
}

/// CPU time of all threads of this process, in nanoseconds.
pub fn process_cpu_ns() -> u64 {
    nanoseconds(libc::CLOCK_PROCESS_CPUTIME_ID).max(0) as u64
}

/// Raises the soft limit of open files to the hard one and returns it.
pub fn raise_open_files() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let hard = limit.maximum.unwrap_or(1 << 20);
    if limit.current != limit.maximum {
        // A refusal leaves the soft limit, which is then all there is.
        if setrlimit(
            Resource::Nofile,
            Rlimit {
                current: limit.maximum,
                maximum: limit.maximum,
            },
        )
        .is_err()
        {
            return limit.current.unwrap_or(hard);
        }
    }
    hard
}

/// Lets all threads share one heap: a heap a thread costs memory, and a system call for each
/// page it grows.
#[allow(unsafe_code)]
pub fn share_heap() {
    #[cfg(target_env = "gnu")]
    // SAFETY: mallopt takes no pointers and is called before any other thread is started.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

/// Keeps errors from listing the functions that lead to them, as RUST_BACKTRACE asks for: no message shows these lists, and
/// the program of the packages, which has no tables for unwinding, would end at the first error. A panic still has its list.
#[allow(unsafe_code)]
pub fn list_no_functions_for_errors() {
    // SAFETY: both texts end with a zero, and this is called before any other thread is started.
    unsafe { libc::setenv(c"RUST_LIB_BACKTRACE".as_ptr(), c"0".as_ptr(), 1) };
}

/// Gives back the pages of the program and its libraries that were read so far: those that only the start
/// needed are not locked then, and the others are mapped again as they are used. Nothing is read again from the disk.
#[allow(unsafe_code)]
pub fn forget_start() {
    // SAFETY: the callback is called with valid infos for as long as this call lasts, and takes nothing else.
    unsafe { libc::dl_iterate_phdr(Some(forget_object), std::ptr::null_mut()) };
}

#[allow(unsafe_code)]
extern "C" fn forget_object(
    info: *mut libc::dl_phdr_info,
    _: libc::size_t,
    _: *mut libc::c_void,
) -> libc::c_int {
    // SAFETY: dl_iterate_phdr gives a valid info with this number of program headers.
    let (base, headers) = unsafe {
        let info = &*info;
        let count = usize::from(info.dlpi_phnum);
        let headers = std::slice::from_raw_parts(info.dlpi_phdr, count);
        (info.dlpi_addr as usize, headers)
    };
    let page = page_size() as usize;
    let loaded = headers
        .iter()
        .filter(|header| header.p_type == libc::PT_LOAD);
    for header in loaded.filter(|header| header.p_flags & libc::PF_W == 0) {
        let start = base.wrapping_add(header.p_vaddr as usize);
        let end = (start + header.p_memsz as usize).next_multiple_of(page);
        let start = start / page * page;
        // SAFETY: a segment that is never written, neither by us nor by the loader: its pages are the file's.
        unsafe { libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_DONTNEED) };
    }
    0
}

/// Locks touched pages in memory, and pages touched from now on. Best effort: refused without privilege.
#[allow(unsafe_code)]
pub fn lock_memory() -> bool {
    // SAFETY: mlockall takes no pointers.
    unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_ONFAULT) == 0 }
}

/// Clock ticks a second in /proc (USER_HZ).
pub fn clock_ticks() -> u64 {
    configured(libc::_SC_CLK_TCK)
}

/// Bytes of a memory page.
pub fn page_size() -> u64 {
    configured(libc::_SC_PAGESIZE)
}

/// Bytes of memory that the kernel manages.
pub fn memory_bytes() -> u64 {
    configured(libc::_SC_PHYS_PAGES).saturating_mul(page_size())
}

/// Not by rustix, which looks for the vDSO: valgrind hides that, and ends the program.
#[allow(unsafe_code)]
fn configured(name: libc::c_int) -> u64 {
    // SAFETY: any number may be asked for.
    let value = unsafe { libc::sysconf(name) };
    u64::try_from(value).unwrap_or_default().max(1)
}

/// The number of the user root.
pub const ROOT: u32 = 0;

/// The number of the user this process runs as.
pub fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The process that started this one.
pub fn parent() -> u32 {
    std::os::unix::process::parent_id()
}

/// True if this process runs as root.
pub fn is_root() -> bool {
    user() == ROOT
}

/// SIGTERM, SIGINT, SIGHUP and SIGUSR1 taken out of the ordinary way, to be waited for.
pub struct Signals {
    set: libc::sigset_t,
    hang_up: HangUp,
}

/// A signal that [`Signals::wait`] saw.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signal {
    /// SIGTERM, SIGINT, or SIGHUP of a terminal that was closed: flush and end.
    Stop,
    /// SIGUSR1: flush and go on.
    Flush,
    /// SIGHUP where there is no terminal that could be gone: flush, read again what may have changed, and go on.
    HangUp,
    /// Another thread called [`wake`].
    Wake,
    /// A child ended.
    Child,
}

/// Meaning of SIGHUP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum HangUp {
    /// The terminal is gone: end.
    Ends,
    /// There is no terminal that could be closed; a daemon writes out waiting data, and reads its configuration
    /// again.
    Flushes,
    /// nohup(1) or [`ignore_hang_up`]: nothing.
    Ignored,
}

impl HangUp {
    #[allow(unsafe_code)]
    fn of_this_process() -> HangUp {
        let mut now = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: only asks; all zeros are a valid sigaction should the kernel refuse to answer.
        let now = unsafe {
            libc::sigaction(libc::SIGHUP, std::ptr::null(), now.as_mut_ptr());
            now.assume_init()
        };
        // A blocked signal would come although it is ignored.
        if now.sa_sigaction == libc::SIG_IGN {
            return HangUp::Ignored;
        }
        match File::open("/dev/tty") {
            Ok(_) => HangUp::Ends,
            Err(_) => HangUp::Flushes,
        }
    }
}

/// From now on SIGHUP means nothing, here and in children.
#[allow(unsafe_code)]
pub fn ignore_hang_up() {
    // SAFETY: SIG_IGN is no handler that could run.
    unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) };
}

/// For a process that has nothing to flush: the signals that make others do so must not end it.
#[allow(unsafe_code)]
pub fn ignore_flush() {
    // SAFETY: SIG_IGN is no handler that could run.
    unsafe { libc::signal(libc::SIGUSR1, libc::SIG_IGN) };
    ignore_hang_up();
}

/// Makes a write beyond the file size limit (`ulimit -f`, which a log meets first) fail with an error instead of a
/// signal that kills. `privilege::unblock_signals` gives started programs the signal's default back.
#[allow(unsafe_code)]
pub fn outlive_file_limit() {
    // SAFETY: SIG_IGN is no handler that could run.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

/// Everything else on this machine goes first.
pub fn be_nice() -> io::Result<()> {
    rustix::process::setpriority_process(None, 19)?;
    Ok(())
}

fn meaning(signal: libc::c_int, hang_up: HangUp) -> Option<Signal> {
    match signal {
        libc::SIGTERM | libc::SIGINT => Some(Signal::Stop),
        libc::SIGUSR1 => Some(Signal::Flush),
        libc::SIGHUP if hang_up == HangUp::Ends => Some(Signal::Stop),
        libc::SIGHUP if hang_up == HangUp::Flushes => Some(Signal::HangUp),
        libc::SIGUSR2 => Some(Signal::Wake),
        libc::SIGCHLD => Some(Signal::Child),
        _ => None,
    }
}

impl Signals {
    /// Blocks the signals in this thread and all threads it starts from now on.
    #[allow(unsafe_code)]
    pub fn block() -> Signals {
        let hang_up = HangUp::of_this_process();
        let mut set = MaybeUninit::<libc::sigset_t>::zeroed();
        // SAFETY: sigemptyset initialises the set; the others change it or the thread's own mask.
        let set = unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            let mut set = set.assume_init();
            for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGUSR1, libc::SIGUSR2] {
                libc::sigaddset(&mut set, signal);
            }
            if hang_up != HangUp::Ignored {
                libc::sigaddset(&mut set, libc::SIGHUP);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
            set
        };
        Signals { set, hang_up }
    }

    /// Waits for a signal, at most so long.
    pub fn wait(&self, at_most: Duration) -> Option<Signal> {
        self.wait_and_name(at_most).map(|(signal, _)| signal)
    }

    /// Waits for a signal, at most so long, and says which one it was and whose.
    #[allow(unsafe_code)]
    pub fn wait_and_name(&self, at_most: Duration) -> Option<(Signal, Sent)> {
        let time = libc::timespec {
            tv_sec: at_most.as_secs().min(1 << 40) as libc::time_t,
            tv_nsec: at_most.subsec_nanos().into(),
        };
        let mut sent = MaybeUninit::<libc::siginfo_t>::zeroed();
        // SAFETY: all pointers are to live values; of a signal the kernel fills in who sent it, and zeros are sound.
        let (number, sent) = unsafe {
            let number = libc::sigtimedwait(&self.set, sent.as_mut_ptr(), &time);
            (number, sent.assume_init())
        };
        let signal = meaning(number, self.hang_up)?;
        Some((signal, Sent::of(number, &sent)))
    }
}

/// A signal and who sent it: `SIGTERM from process 77 (systemd) of user 0`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sent(String);

impl Sent {
    #[allow(unsafe_code)]
    fn of(number: libc::c_int, sent: &libc::siginfo_t) -> Sent {
        let name = match number {
            libc::SIGTERM => "SIGTERM",
            libc::SIGINT => "SIGINT",
            libc::SIGHUP => "SIGHUP",
            _ => "a signal",
        };
        if sent.si_code > 0 {
            return Sent(format!("{name} from the kernel"));
        }
        // SAFETY: signals that processes send have both.
        let (pid, uid) = unsafe { (sent.si_pid(), sent.si_uid()) };
        if pid == 0 {
            return Sent(format!("{name} from outside of this pid namespace"));
        }
        let comm = std::fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
        // The sender may have ended.
        let comm = match comm.trim_ascii_end() {
            b"" => String::new(),
            comm => format!(" ({})", DisplayName(comm)),
        };
        Sent(format!("{name} from process {pid}{comm} of user {uid}"))
    }
}

impl std::fmt::Display for Sent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// [`Signals`] and the ends of children as a file, for who waits for other files as well.
pub struct SignalFile {
    file: File,
    hang_up: HangUp,
}

impl SignalFile {
    /// Blocks the signals in this thread and all threads it starts from now on.
    #[allow(unsafe_code)]
    pub fn block() -> io::Result<SignalFile> {
        let Signals { mut set, hang_up } = Signals::block();
        // SAFETY: the set is initialised; a non-negative answer is a new file that has no other owner.
        let file = unsafe {
            libc::sigaddset(&mut set, libc::SIGCHLD);
            libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
            match libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) {
                -1 => return Err(io::Error::last_os_error()),
                fd => OwnedFd::from_raw_fd(fd),
            }
        };
        let file = file.into();
        Ok(SignalFile { file, hang_up })
    }

    /// The next signal, without waiting.
    pub fn take(&self) -> Option<Signal> {
        let mut info = [0; size_of::<libc::signalfd_siginfo>()];
        let length = (&self.file).read(&mut info).ok()?;
        // The number is the first field of signalfd_siginfo.
        let number = u32::from_ne_bytes(info.get(..length.min(4))?.try_into().ok()?);
        meaning(number as libc::c_int, self.hang_up)
    }
}

impl AsFd for SignalFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Requests to a daemon by signals.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DaemonSignal {
    /// SIGTERM or SIGINT: end as configured.
    End,
    /// SIGUSR1: write everything, then end.
    FlushAndEnd,
    /// SIGUSR2: end without writing.
    EndAtOnce,
    /// SIGHUP: read the configuration again.
    HangUp,
}

/// The signals of a daemon, as a file.
pub struct DaemonSignals(File);

impl DaemonSignals {
    /// Blocks the signals in this thread and all threads it starts from now on. SIGHUP ends nothing.
    #[allow(unsafe_code)]
    pub fn block() -> io::Result<DaemonSignals> {
        let mut set = MaybeUninit::<libc::sigset_t>::zeroed();
        // SAFETY: sigemptyset initialises the set; a non-negative answer of signalfd is a new file that has no other
        // owner.
        let file = unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            let mut set = set.assume_init();
            for signal in [
                libc::SIGTERM,
                libc::SIGINT,
                libc::SIGHUP,
                libc::SIGUSR1,
                libc::SIGUSR2,
            ] {
                libc::sigaddset(&mut set, signal);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
            match libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) {
                -1 => return Err(io::Error::last_os_error()),
                fd => OwnedFd::from_raw_fd(fd),
            }
        };
        Ok(DaemonSignals(file.into()))
    }

    /// The next signal, without waiting, and its name.
    pub fn take(&self) -> Option<(DaemonSignal, &'static str)> {
        let mut info = [0; size_of::<libc::signalfd_siginfo>()];
        let length = (&self.0).read(&mut info).ok()?;
        // The number is the first field of signalfd_siginfo.
        let number = u32::from_ne_bytes(info.get(..length.min(4))?.try_into().ok()?) as i32;
        Some(match number {
            libc::SIGTERM => (DaemonSignal::End, "TERM"),
            libc::SIGINT => (DaemonSignal::End, "INT"),
            libc::SIGUSR1 => (DaemonSignal::FlushAndEnd, "USR1"),
            libc::SIGUSR2 => (DaemonSignal::EndAtOnce, "USR2"),
            _ => (DaemonSignal::HangUp, "HUP"),
        })
    }
}

impl AsFd for DaemonSignals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Waits until one of the files can be read, at most so long.
/// Says which can.
pub fn wait_readable(files: &[BorrowedFd<'_>], at_most: Duration) -> Vec<bool> {
    let mut polled: Vec<_> = files
        .iter()
        .map(|file| PollFd::new(file, PollFlags::IN))
        .collect();
    let time = Timespec {
        tv_sec: at_most.as_secs().min(1 << 30) as i64,
        tv_nsec: at_most.subsec_nanos().into(),
    };
    // Interrupted or refused: then none can.
    let _ = rustix::event::poll(&mut polled, Some(&time));
    polled
        .iter()
        .map(|file| !file.revents().is_empty())
        .collect()
}

/// For `OpenOptions::custom_flags`: a symbolic link is not followed, and a pipe is not waited for.
pub const PLAIN_FILE: i32 = libc::O_NOFOLLOW | libc::O_NONBLOCK;

/// Sends SIGTERM to a process.
pub fn ask_to_end(pid: u32) {
    send(pid, rustix::process::Signal::TERM);
}

/// Sends SIGUSR1 to a process, one that takes it for [`Signal::Flush`].
pub fn ask_to_flush(pid: u32) {
    send(pid, rustix::process::Signal::USR1);
}

/// Sends SIGHUP to a process, one that takes it for [`DaemonSignal::HangUp`].
pub fn hang_up(pid: u32) {
    send(pid, rustix::process::Signal::HUP);
}

fn send(pid: u32, signal: rustix::process::Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    if let Some(pid) = pid {
        // The process may have ended by itself.
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// Fills `bytes` from the kernel's random numbers.
pub fn random(bytes: &mut [u8]) -> io::Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        let flags = rustix::rand::GetRandomFlags::empty();
        done += rustix::rand::getrandom(&mut bytes[done..], flags)?;
    }
    Ok(())
}

/// Calls this process `kymo`, where the kernel named it after the link it was started by.
pub fn name_process() {
    if rustix::thread::name().is_ok_and(|name| name.as_bytes() == b"exe") {
        // A name is for people only.
        let _ = rustix::thread::set_name(c"kymo");
    }
}

/// Calls this process by a name of its own; the kernel keeps 15 bytes of it.
pub fn name_process_as(name: &str) {
    if let Ok(name) = std::ffi::CString::new(name) {
        // A name is for people only.
        let _ = rustix::thread::set_name(&name);
    }
}

/// Sets the umask: permissions that new files do not have. 0o027 keeps others out.
pub fn set_umask(mask: u32) {
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(mask));
}

/// Ends the [`Signals::wait`] of whichever thread is in it.
#[allow(unsafe_code)]
pub fn wake() {
    // SAFETY: sends a signal that `Signals::block` has blocked to this process itself.
    unsafe {
        libc::kill(libc::getpid(), libc::SIGUSR2);
    }
}

/// Asks for short slices of the CPU for this thread: it needs little, but at once. Since Linux 6.12
/// such a thread goes first when it wakes up; best effort, and no privilege.
#[allow(unsafe_code)]
pub fn ask_short_slices() -> bool {
    /// `struct sched_attr` of its first version (linux/sched/types.h).
    #[repr(C)]
    struct SchedAttr {
        size: u32,
        policy: u32,
        flags: u64,
        nice: i32,
        priority: u32,
        runtime_ns: u64,
        deadline_ns: u64,
        period_ns: u64,
    }
    // SCHED_OTHER, the shortest slice the kernel takes, and the niceness there is.
    // SAFETY: getpriority takes no pointers.
    let nice = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
    let attr = SchedAttr {
        size: size_of::<SchedAttr>() as u32,
        policy: 0,
        flags: 0,
        nice,
        priority: 0,
        runtime_ns: 100_000,
        deadline_ns: 0,
        period_ns: 0,
    };
    // SAFETY: the kernel reads `size` bytes of a live struct of that size; 0 is the calling thread.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attr, 0) == 0 }
}

/// Size of the file system that `path` is on, in bytes.
pub fn file_system_bytes(path: impl AsRef<std::path::Path>) -> Option<u64> {
    let stat = rustix::fs::statvfs(path.as_ref()).ok()?;
    stat.f_blocks.checked_mul(stat.f_frsize)
}

/// The machine's name, up to its first dot.
pub fn host() -> String {
    let name = rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned();
    name.split('.').next().unwrap_or_default().to_string()
}

/// The address from which this machine would send to the network; `None` without a route. No packet is sent.
pub fn address() -> Option<IpAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    // An address for documentation: only a default route leads there.
    socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).ok()?;
    let address = socket.local_addr().ok()?.ip();
    let is_known = !address.is_loopback() && !address.is_unspecified();
    is_known.then_some(address)
}

/// Kernel release and machine type.
pub fn kernel() -> (String, String) {
    let names = rustix::system::uname();
    (
        names.release().to_string_lossy().into_owned(),
        names.machine().to_string_lossy().into_owned(),
    )
}

/// Writes all of `bytes` to an open file descriptor inherited by number.
#[allow(unsafe_code)]
pub fn write_fd(fd: i32, bytes: &[u8]) -> io::Result<()> {
    if fd < 0 {
        return Err(rustix::io::Errno::BADF.into());
    }
    // SAFETY: the number came from the command line; if it is not open, write answers EBADF.
    let fd = unsafe { std::os::fd::BorrowedFd::borrow_raw(fd) };
    let mut rest = bytes;
    while !rest.is_empty() {
        rest = &rest[rustix::io::retry_on_intr(|| rustix::io::write(fd, rest))?..];
    }
    Ok(())
}

/// Lines of the terminal that stdout is; `None`: it is none.
pub fn terminal_lines() -> Option<u16> {
    terminal_size().map(|(_, lines)| lines)
}

/// Columns and lines of the terminal that stdout is; `None`: it is none.
pub fn terminal_size() -> Option<(u16, u16)> {
    let stdout = io::stdout();
    let size = rustix::termios::tcgetwinsize(&stdout).ok()?;
    rustix::termios::isatty(&stdout).then_some((size.ws_col, size.ws_row))
}

/// True if stderr is a terminal.
pub fn stderr_is_terminal() -> bool {
    rustix::termios::isatty(rustix::stdio::stderr())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_one_that_others_reach() {
        let is_own = |address: IpAddr| UdpSocket::bind((address, 0)).is_ok();
        let address = address();
        assert!(address.is_none_or(|address| !address.is_loopback() && is_own(address)));
    }

    /// Pages of files that are mapped, in KiB.
    fn mapped_kb() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").expect("our status");
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("RssFile:"));
        let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        number.expect("a number")
    }

    #[test]
    fn what_the_start_needed_is_given_back() {
        // Other tests read pages meanwhile.
        let gives_back = |_| {
            let before_kb = mapped_kb();
            forget_start();
            mapped_kb() < before_kb
        };
        assert!((0..10).any(gives_back));
    }

    #[test]
    fn signals_mean_what_their_documents_say() {
        use HangUp::{Ends, Flushes, Ignored};
        for (number, hang_up, expect) in [
            (libc::SIGTERM, Ignored, Some(Signal::Stop)),
            (libc::SIGINT, Ignored, Some(Signal::Stop)),
            (libc::SIGUSR1, Ignored, Some(Signal::Flush)),
            (libc::SIGUSR2, Ignored, Some(Signal::Wake)),
            (libc::SIGCHLD, Ignored, Some(Signal::Child)),
            (libc::SIGHUP, Ends, Some(Signal::Stop)),
            (libc::SIGHUP, Flushes, Some(Signal::HangUp)),
            (libc::SIGHUP, Ignored, None),
            (libc::SIGWINCH, Ends, None),
            (-1, Ends, None),
        ] {
            assert_eq!(meaning(number, hang_up), expect, "{number} {hang_up:?}");
        }
    }

    #[test]
    fn senders_of_signals_have_names() {
        let sent = |number, code, pid: libc::pid_t| {
            // SAFETY: all zeros are a valid siginfo_t.
            #[allow(unsafe_code)]
            let mut info: libc::siginfo_t = unsafe { MaybeUninit::zeroed().assume_init() };
            info.si_code = code;
            // The pid stands behind three numbers, and four bytes that align it.
            // SAFETY: siginfo_t has 128 bytes.
            #[allow(unsafe_code)]
            unsafe {
                (&raw mut info).cast::<libc::pid_t>().add(4).write(pid);
            }
            Sent::of(number, &info).to_string()
        };
        assert_eq!(sent(libc::SIGTERM, 1, 7), "SIGTERM from the kernel");
        let outside = "SIGINT from outside of this pid namespace";
        assert_eq!(sent(libc::SIGINT, 0, 0), outside);
        let own = std::process::id();
        let comm = std::fs::read_to_string(format!("/proc/{own}/comm")).expect("our name");
        let expect = format!("SIGHUP from process {own} ({}) of user 0", comm.trim_end());
        assert_eq!(sent(libc::SIGHUP, 0, own as libc::pid_t), expect);
        let gone = "a signal from process 2147483647 of user 0";
        assert_eq!(sent(libc::SIGWINCH, 0, libc::pid_t::MAX), gone);
    }

    /// Counters of this process grow while it works.
    #[test]
    fn work_costs() {
        let (before, before_ns) = (usage(), process_cpu_ns());
        let cost_us = |usage: Usage| usage.user_us + usage.system_us;
        while process_cpu_ns() < before_ns + 50_000_000 {
            std::hint::black_box(0);
        }
        // The kernel brings the two clocks together at each tick.
        assert!(cost_us(usage()) >= cost_us(before) + 20_000);
        let peak_kb = peak_kb().expect("a peak");
        let page_kb = page_size() / 1024;
        assert!(
            (page_kb..memory_bytes() / 1024).contains(&peak_kb),
            "{peak_kb}"
        );
        assert_eq!(clock_ticks(), 100, "USER_HZ of all architectures but alpha");
    }

    #[test]
    fn a_file_that_can_be_read_ends_the_wait() {
        let (quiet, _keeps_open) = rustix::pipe::pipe().expect("a pipe");
        let (ready, writer) = rustix::pipe::pipe().expect("a pipe");
        write_fd(std::os::fd::AsRawFd::as_raw_fd(&writer), b"all of it").expect("written");
        let long = Duration::from_secs(3600);
        let found = wait_readable(&[quiet.as_fd(), ready.as_fd()], long);
        assert_eq!(found, [false, true]);
        let mut text = [0; 20];
        assert_eq!(rustix::io::read(&ready, &mut text), Ok(9));
        assert_eq!(&text[..9], b"all of it");
        let short = Duration::from_millis(1);
        assert_eq!(wait_readable(&[quiet.as_fd()], short), [false]);
        assert!(write_fd(-1, b"x").is_err() && write_fd(-7, b"x").is_err());
    }

    #[test]
    fn random_bytes_fill_all_and_differ() {
        let (mut one, mut two) = ([0; 1000], [0; 1000]);
        random(&mut one).expect("random");
        random(&mut two).expect("random");
        assert_ne!(one, two);
        assert!(one[900..].iter().any(|&byte| byte != 0));
    }

    #[test]
    fn this_machine_has_a_name_and_room() {
        let name = std::fs::read_to_string("/proc/sys/kernel/hostname").expect("a name");
        assert_eq!(Some(&host()[..]), name.trim_end().split('.').next());
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("a release");
        assert_eq!(kernel().0, release.trim_end());
        assert!(
            kernel().1.starts_with(std::env::consts::ARCH),
            "{kernel:?}",
            kernel = kernel()
        );
        assert!(file_system_bytes("/").is_some_and(|bytes| bytes > 1 << 20));
        assert_eq!(file_system_bytes("/no/such"), None);
    }
}
