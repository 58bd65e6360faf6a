//! System calls that each process of kymo may make, by seccomp: a list of those it needs. Every other call fails and
//! does not end the process: with EPERM if kymo knows the call, with ENOSYS if not, so that a newer libc falls back
//! to an older call.

use std::collections::BTreeMap;
use std::error::Error;

use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Length, SeccompCmpOp as Is, SeccompCondition,
    SeccompFilter, SeccompRule,
};

/// A process, named by its task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Process {
    /// Reads the kernel's files and writes recordings.
    Recorder,
    /// Serves sockets that it inherited.
    Keeper,
    /// Answers on a socket that it inherited, and asks the keeper.
    Hub,
    /// Asks database servers and the keeper by unix sockets.
    Postgres,
    /// Asks devices, resolves names, and passes values on.
    Poller,
    /// Asks targets by TCP, resolves names, and passes samples on.
    Scraper,
    /// Sends values to receivers by TCP, resolves names, and asks the keeper.
    Forwarder,
    /// Asks an engine by TCP for clients on a socket that it inherited, and resolves names.
    Upstream,
    /// Reads the data folder, writes backups into a folder or sends them by TCP, and asks the keeper.
    Backup,
    /// Starts other programs.
    Starter,
}

/// Sockets that a process may make.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NewSockets {
    None,
    /// Streams to unix sockets.
    ToUnix,
    /// Sockets of the network, but no raw ones.
    Network,
}

type Rules = BTreeMap<c_long, Vec<SeccompRule>>;
type Result<T> = std::result::Result<T, Box<dyn Error>>;
/// Index of an argument, a comparison, and a value.
type Condition = (u8, Is, u64);

/// Calls for threads, memory, time, waiting, and open files.
const ALWAYS: &[c_long] = &[
    libc::SYS_brk,
    libc::SYS_clock_getres,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_close,
    libc::SYS_close_range,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_eventfd2,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_fadvise64,
    libc::SYS_flock,
    libc::SYS_fstat,
    libc::SYS_fstatfs,
    libc::SYS_futex,
    libc::SYS_futex_waitv,
    libc::SYS_get_robust_list,
    libc::SYS_getcpu,
    libc::SYS_getcwd,
    libc::SYS_getdents64,
    libc::SYS_getegid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getgroups,
    libc::SYS_getitimer,
    libc::SYS_getpgid,
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_getpriority,
    libc::SYS_getrandom,
    libc::SYS_getresgid,
    libc::SYS_getresuid,
    libc::SYS_getrusage,
    libc::SYS_getsid,
    libc::SYS_gettid,
    libc::SYS_gettimeofday,
    libc::SYS_getuid,
    libc::SYS_inotify_add_watch,
    libc::SYS_inotify_init1,
    libc::SYS_inotify_rm_watch,
    libc::SYS_lseek,
    libc::SYS_madvise,
    libc::SYS_membarrier,
    libc::SYS_mincore,
    libc::SYS_mremap,
    libc::SYS_msync,
    libc::SYS_munmap,
    libc::SYS_nanosleep,
    libc::SYS_newfstatat,
    libc::SYS_openat,
    libc::SYS_openat2,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_pipe2,
    libc::SYS_ppoll,
    libc::SYS_pread64,
    libc::SYS_preadv,
    libc::SYS_preadv2,
    libc::SYS_pselect6,
    libc::SYS_read,
    libc::SYS_readahead,
    libc::SYS_readlinkat,
    libc::SYS_readv,
    libc::SYS_restart_syscall,
    libc::SYS_rseq,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigpending,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigsuspend,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_getparam,
    libc::SYS_sched_getscheduler,
    libc::SYS_sched_yield,
    libc::SYS_set_robust_list,
    libc::SYS_set_tid_address,
    libc::SYS_sigaltstack,
    libc::SYS_signalfd4,
    libc::SYS_statfs,
    libc::SYS_statx,
    libc::SYS_sysinfo,
    libc::SYS_timerfd_create,
    libc::SYS_timerfd_gettime,
    libc::SYS_timerfd_settime,
    libc::SYS_times,
    libc::SYS_umask,
    libc::SYS_uname,
    libc::SYS_write,
    libc::SYS_writev,
];

/// Calls that newer architectures no longer have.
#[cfg(target_arch = "x86_64")]
const ALWAYS_OLD: &[c_long] = &[
    libc::SYS_access,
    libc::SYS_arch_prctl,
    libc::SYS_dup2,
    libc::SYS_epoll_create,
    libc::SYS_epoll_wait,
    libc::SYS_eventfd,
    libc::SYS_getdents,
    libc::SYS_getpgrp,
    libc::SYS_getrlimit,
    libc::SYS_lstat,
    libc::SYS_open,
    libc::SYS_pipe,
    libc::SYS_poll,
    libc::SYS_readlink,
    libc::SYS_select,
    libc::SYS_stat,
    libc::SYS_time,
];
#[cfg(not(target_arch = "x86_64"))]
const ALWAYS_OLD: &[c_long] = &[];

/// Calls that make, write and remove files and folders.
const WRITES: &[c_long] = &[
    libc::SYS_copy_file_range,
    libc::SYS_fallocate,
    libc::SYS_fchdir,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_fdatasync,
    libc::SYS_fsync,
    libc::SYS_ftruncate,
    libc::SYS_linkat,
    libc::SYS_memfd_create,
    libc::SYS_mkdirat,
    libc::SYS_pwrite64,
    libc::SYS_pwritev,
    libc::SYS_pwritev2,
    libc::SYS_renameat2,
    libc::SYS_sendfile,
    libc::SYS_syncfs,
    libc::SYS_unlinkat,
    libc::SYS_utimensat,
];
#[cfg(target_arch = "x86_64")]
const WRITES_OLD: &[c_long] = &[
    libc::SYS_chmod,
    libc::SYS_creat,
    libc::SYS_link,
    libc::SYS_mkdir,
    libc::SYS_rename,
    libc::SYS_renameat,
    libc::SYS_rmdir,
    libc::SYS_sync_file_range,
    libc::SYS_unlink,
];
/// renameat and sync_file_range, which the crate libc does not name for other architectures.
#[cfg(not(target_arch = "x86_64"))]
const WRITES_OLD: &[c_long] = &[38, 84];

/// Calls that keep the recorder on time, and adjtimex, which says how the clock is kept. A filter cannot see if that
/// call would change the clock, and need not: a change takes CAP_SYS_TIME, which no process here has.
const RECORDS: &[c_long] = &[
    libc::SYS_adjtimex,
    libc::SYS_capget,
    libc::SYS_mlock,
    libc::SYS_mlock2,
    libc::SYS_mlockall,
    libc::SYS_munlock,
    libc::SYS_munlockall,
    libc::SYS_sched_getattr,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setscheduler,
    libc::SYS_setpriority,
];

/// Calls on existing sockets.
const TALKS: &[c_long] = &[
    libc::SYS_getpeername,
    libc::SYS_getsockname,
    libc::SYS_getsockopt,
    libc::SYS_recvfrom,
    libc::SYS_recvmmsg,
    libc::SYS_recvmsg,
    libc::SYS_sendmmsg,
    libc::SYS_sendmsg,
    libc::SYS_sendto,
    libc::SYS_setsockopt,
    libc::SYS_shutdown,
];
const ACCEPTS: &[c_long] = &[libc::SYS_accept, libc::SYS_accept4];
/// Calls by which the poller waits for its runner of commands.
const WAITS: &[c_long] = &[libc::SYS_wait4, libc::SYS_waitid];

/// Calls that are refused to every process, even to one that starts other programs: they give power over other processes or
/// over the kernel, or make calls past this list.
const NEVER: &[c_long] = &[
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_bpf,
    libc::SYS_clock_adjtime,
    libc::SYS_clock_settime,
    libc::SYS_delete_module,
    libc::SYS_fanotify_init,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_init_module,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_kcmp,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_move_pages,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_personality,
    libc::SYS_pidfd_getfd,
    libc::SYS_pivot_root,
    libc::SYS_process_madvise,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    libc::SYS_quotactl,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_setdomainname,
    libc::SYS_sethostname,
    libc::SYS_setns,
    libc::SYS_settimeofday,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_syslog,
    libc::SYS_umount2,
    libc::SYS_unshare,
    libc::SYS_userfaultfd,
    libc::SYS_vhangup,
];

/// Calls that are refused by name to processes that start no programs, unless a list above has them.
const REFUSED: &[c_long] = &[
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_adjtimex,
    libc::SYS_bind,
    libc::SYS_capset,
    libc::SYS_chroot,
    libc::SYS_connect,
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_listen,
    libc::SYS_mknodat,
    libc::SYS_msgget,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_send_signal,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_semget,
    libc::SYS_setgid,
    libc::SYS_setgroups,
    libc::SYS_setpgid,
    libc::SYS_setresgid,
    libc::SYS_setresuid,
    libc::SYS_setsid,
    libc::SYS_setuid,
    libc::SYS_setxattr,
    libc::SYS_shmat,
    libc::SYS_shmget,
    libc::SYS_socket,
    libc::SYS_socketpair,
    libc::SYS_symlinkat,
];
#[cfg(target_arch = "x86_64")]
const REFUSED_OLD: &[c_long] = &[libc::SYS_fork, libc::SYS_vfork];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_OLD: &[c_long] = &[];

/// Permitted operations of `fcntl`; none sends signals.
const FCNTL: &[i32] = &[
    libc::F_DUPFD,
    libc::F_DUPFD_CLOEXEC,
    libc::F_GETFD,
    libc::F_SETFD,
    libc::F_GETFL,
    libc::F_SETFL,
    libc::F_GETLK,
    libc::F_SETLK,
    libc::F_SETLKW,
    libc::F_OFD_GETLK,
    libc::F_OFD_SETLK,
    libc::F_OFD_SETLKW,
    libc::F_GETPIPE_SZ,
    libc::F_SETPIPE_SZ,
    libc::F_ADD_SEALS,
    libc::F_GET_SEALS,
];
/// Permitted operations of `ioctl`; none types into a terminal: FIOCLEX, FIONBIO, FIONCLEX, FIONREAD, TCGETS, TIOCGWINSZ;
/// and SIOCGIFINDEX for addresses with a scope.
const IOCTL: [u64; 7] = [0x5451, 0x5421, 0x5450, 0x541b, 0x5401, 0x5413, 0x8933];
/// Operation of `prctl` by which libc names memory for /proc/PID/maps.
const PR_SET_VMA: i32 = 0x5356_4d41;
/// Permitted operations of `prctl`.
const PRCTL: &[i32] = &[
    libc::PR_CAPBSET_READ,
    libc::PR_GET_DUMPABLE,
    libc::PR_GET_NAME,
    libc::PR_GET_SECCOMP,
    libc::PR_GET_TIMERSLACK,
    libc::PR_SET_NAME,
    libc::PR_SET_TIMERSLACK,
    PR_SET_VMA,
];
/// Bits of a socket's kind, without the flags beside it.
const SOCKET_KIND: u64 = 0xf;

impl Process {
    /// Confines this thread and all threads that it starts later. Returns the state in words.
    pub(crate) fn confine(self) -> String {
        match program(self).and_then(|program| Ok(seccompiler::apply_filter(&program)?)) {
            Ok(()) => format!("seccomp ({})", self.words()),
            Err(error) => format!("no seccomp ({error})"),
        }
    }

    fn words(self) -> &'static str {
        match self {
            Process::Recorder | Process::Keeper => "no new sockets, no programs",
            Process::Hub | Process::Postgres => {
                "no new sockets but connections to unix sockets, no programs"
            }
            Process::Poller
            | Process::Scraper
            | Process::Forwarder
            | Process::Upstream
            | Process::Backup => "no listening, no programs",
            Process::Starter => "no power over other processes",
        }
    }

    fn lists(self) -> &'static [&'static [c_long]] {
        match self {
            Process::Recorder => &[WRITES, WRITES_OLD, RECORDS],
            Process::Keeper | Process::Hub => &[WRITES, WRITES_OLD, TALKS, ACCEPTS],
            Process::Postgres | Process::Scraper | Process::Forwarder => &[TALKS],
            Process::Upstream => &[TALKS, ACCEPTS],
            Process::Poller => &[WRITES, WRITES_OLD, TALKS, WAITS],
            Process::Backup => &[WRITES, WRITES_OLD, TALKS],
            Process::Starter => &[],
        }
    }

    fn sockets(self) -> NewSockets {
        match self {
            Process::Recorder | Process::Keeper | Process::Starter => NewSockets::None,
            Process::Hub | Process::Postgres => NewSockets::ToUnix,
            Process::Poller
            | Process::Scraper
            | Process::Forwarder
            | Process::Upstream
            | Process::Backup => NewSockets::Network,
        }
    }
}

/// Makes the BPF program that the kernel runs before each call.
fn program(process: Process) -> Result<BpfProgram> {
    let (rules, by_default) = match process {
        Process::Starter => (refusals(NEVER)?, ALLOWED),
        _ => (allowed(process)?, UNKNOWN),
    };
    let architecture = std::env::consts::ARCH.try_into()?;
    let refused = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let filter = SeccompFilter::new(rules, refused, SeccompAction::Allow, architecture)?;
    let mut program: BpfProgram = filter.try_into()?;
    // The crate ends a process that makes a call of another architecture, and gives calls without a rule the same
    // answer as calls that break one. Both answers are replaced here.
    for instruction in &mut program {
        if instruction.code == RETURN && instruction.k == libc::SECCOMP_RET_KILL_PROCESS {
            instruction.k = libc::SECCOMP_RET_ERRNO | libc::EPERM.unsigned_abs();
        }
    }
    if let Some(last) = program.last_mut() {
        last.k = by_default;
    }
    Ok(program)
}

/// Code of BPF_RET with a constant.
const RETURN: u16 = 0x06;
const ALLOWED: u32 = libc::SECCOMP_RET_ALLOW;
const UNKNOWN: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs();

fn allowed(process: Process) -> Result<Rules> {
    let mut rules = refusals(NEVER)?;
    rules.extend(refusals(REFUSED)?);
    rules.extend(refusals(REFUSED_OLD)?);
    let lists = [ALWAYS, ALWAYS_OLD].into_iter();
    for &call in lists.chain(process.lists().iter().copied()).flatten() {
        rules.insert(call, Vec::new());
    }
    rules.extend(narrowed(process)?);
    match process.sockets() {
        NewSockets::None => {}
        NewSockets::ToUnix => {
            rules.insert(libc::SYS_connect, Vec::new());
            rules.insert(
                libc::SYS_socket,
                vec![socket(libc::AF_UNIX, libc::SOCK_STREAM)?],
            );
        }
        NewSockets::Network => {
            rules.insert(libc::SYS_connect, Vec::new());
            rules.insert(libc::SYS_bind, Vec::new());
            rules.insert(libc::SYS_socket, network_sockets()?);
        }
    }
    Ok(rules)
}

/// Calls that are permitted with some arguments only.
fn narrowed(process: Process) -> Result<Rules> {
    let own = u64::from(std::process::id());
    let thread = number(libc::CLONE_THREAD);
    let spaces = libc::CLONE_NEWNS | libc::CLONE_NEWCGROUP | libc::CLONE_NEWUTS;
    let spaces = spaces | libc::CLONE_NEWIPC | libc::CLONE_NEWUSER | libc::CLONE_NEWPID;
    let spaces = number(spaces | libc::CLONE_NEWNET);
    let executable = number(libc::PROT_EXEC);
    let mut rules = Rules::from([
        // A thread. A filter cannot see the flags of clone3, so that call fails as if the kernel lacked it.
        (
            libc::SYS_clone,
            vec![when(&[(0, Is::MaskedEq(thread | spaces), thread)])?],
        ),
        (
            libc::SYS_fcntl,
            one_of(1, FCNTL.iter().copied().map(number))?,
        ),
        (libc::SYS_ioctl, one_of(1, IOCTL)?),
        (
            libc::SYS_prctl,
            one_of(0, PRCTL.iter().copied().map(number))?,
        ),
        // A process may read its own limits: with new limits the last argument but one would be their address.
        (libc::SYS_prlimit64, vec![reading_own_limits()?]),
        (libc::SYS_tgkill, one_of(0, [own])?),
        // Signal 0 asks if a process exists; a process may also end itself.
        (
            libc::SYS_kill,
            vec![when(&[(1, Is::Eq, 0)])?, when(&[(0, Is::Eq, own)])?],
        ),
    ]);
    // The resolver loads libraries when it looks up a host.
    for call in [libc::SYS_mmap, libc::SYS_mprotect] {
        let rule = match process {
            Process::Poller | Process::Scraper | Process::Forwarder | Process::Upstream => {
                Vec::new()
            }
            _ => vec![when(&[(2, Is::MaskedEq(executable), 0)])?],
        };
        rules.insert(call, rule);
    }
    Ok(rules)
}

fn reading_own_limits() -> Result<SeccompRule> {
    let own = SeccompCondition::new(0, Length::Dword, Is::Eq, 0)?;
    let none = SeccompCondition::new(2, Length::Qword, Is::Eq, 0)?;
    Ok(SeccompRule::new(vec![own, none])?)
}

/// Rules that refuse these calls with EPERM.
fn refusals(calls: &[c_long]) -> Result<Rules> {
    let never = [(0, Is::Eq, 0), (0, Is::Eq, 1)];
    let rules = calls.iter().map(|&call| Ok((call, vec![when(&never)?])));
    rules.collect()
}

fn network_sockets() -> Result<Vec<SeccompRule>> {
    let mut rules = Vec::new();
    for family in [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6] {
        for kind in [libc::SOCK_STREAM, libc::SOCK_DGRAM] {
            rules.push(socket(family, kind)?);
        }
    }
    // libc lists this machine's addresses by this socket.
    let (family, protocol) = (number(libc::AF_NETLINK), number(libc::NETLINK_ROUTE));
    rules.push(when(&[(0, Is::Eq, family), (2, Is::Eq, protocol)])?);
    Ok(rules)
}

fn socket(family: i32, kind: i32) -> Result<SeccompRule> {
    when(&[
        (0, Is::Eq, number(family)),
        (1, Is::MaskedEq(SOCKET_KIND), number(kind)),
    ])
}

fn one_of(place: u8, values: impl IntoIterator<Item = u64>) -> Result<Vec<SeccompRule>> {
    let rules = values
        .into_iter()
        .map(|value| when(&[(place, Is::Eq, value)]));
    rules.collect()
}

/// A number of libc as seccomp needs it; none of those used here is negative.
fn number(number: i32) -> u64 {
    number.unsigned_abs().into()
}

/// A rule that holds if all conditions hold.
fn when(conditions: &[Condition]) -> Result<SeccompRule> {
    let conditions = conditions
        .iter()
        .cloned()
        .map(|(place, is, value)| SeccompCondition::new(place, Length::Dword, is, value));
    let conditions = conditions.collect::<std::result::Result<Vec<_>, _>>()?;
    Ok(SeccompRule::new(conditions)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_filter_ends_a_process() {
        for process in [
            Process::Recorder,
            Process::Keeper,
            Process::Hub,
            Process::Postgres,
            Process::Poller,
            Process::Scraper,
            Process::Forwarder,
            Process::Starter,
        ] {
            let program = program(process).expect("a filter");
            let answers = program.iter().filter(|one| one.code == RETURN);
            let actions: std::collections::BTreeSet<u32> = answers
                .map(|one| one.k & libc::SECCOMP_RET_ACTION_FULL)
                .collect();
            let errno_or_allowed = [libc::SECCOMP_RET_ERRNO, libc::SECCOMP_RET_ALLOW];
            assert_eq!(actions, errno_or_allowed.into(), "{process:?}");
        }
    }
}
