//! The rights of a child process: its user, its capabilities, and the files that it inherits. All of it is set
//! between fork and exec, so that the started program never had more.

use std::ffi::{CStr, CString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::fs::{Gid, Uid};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{
    Resource, Rlimit, Signal, getppid, getrlimit, set_parent_process_death_signal, setrlimit,
    setsid,
};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, capability_is_in_bounding_set,
    clear_ambient_capability_set, configure_capability_in_ambient_set,
    remove_capability_from_bounding_set, set_capabilities, set_keep_capabilities, set_no_new_privs,
    set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};

/// A user of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Name.
    pub name: String,
    /// User number.
    pub uid: u32,
    /// Number of its own group.
    pub gid: u32,
}

impl Account {
    /// The user of that name; `None`: there is none.
    #[allow(unsafe_code)]
    pub fn named(name: &str) -> Option<Account> {
        let wanted = CString::new(name).ok()?;
        // SAFETY: the buffer lives as long as what points into it.
        let look = |entry: *mut libc::passwd, buffer: &mut [libc::c_char], found| unsafe {
            libc::getpwnam_r(
                wanted.as_ptr(),
                entry,
                buffer.as_mut_ptr(),
                buffer.len(),
                found,
            )
        };
        account(look)
    }

    /// The user of that number; `None`: it has no name.
    #[allow(unsafe_code)]
    pub fn numbered(uid: u32) -> Option<Account> {
        // SAFETY: the buffer lives as long as what points into it.
        let look = |entry: *mut libc::passwd, buffer: &mut [libc::c_char], found| unsafe {
            libc::getpwuid_r(uid, entry, buffer.as_mut_ptr(), buffer.len(), found)
        };
        account(look)
    }

    /// Whom this process runs as.
    pub fn own() -> Account {
        let (uid, gid) = (
            rustix::process::geteuid().as_raw(),
            rustix::process::getegid().as_raw(),
        );
        Account::numbered(uid).unwrap_or(Account {
            name: uid.to_string(),
            uid,
            gid,
        })
    }
}

/// Asks the user database, which may be more than a file.
#[allow(unsafe_code)]
fn account(
    look: impl Fn(*mut libc::passwd, &mut [libc::c_char], *mut *mut libc::passwd) -> libc::c_int,
) -> Option<Account> {
    let mut buffer = vec![0; 16 << 10];
    let mut entry = MaybeUninit::<libc::passwd>::zeroed();
    let mut found = std::ptr::null_mut();
    if look(entry.as_mut_ptr(), &mut buffer, &mut found) != 0 || found.is_null() {
        return None;
    }
    // SAFETY: `found` says that the entry was filled in; its name points into the buffer.
    let (entry, name) = unsafe {
        let entry = entry.assume_init();
        (entry, CStr::from_ptr(entry.pw_name))
    };
    Some(Account {
        name: name.to_string_lossy().into_owned(),
        uid: entry.pw_uid,
        gid: entry.pw_gid,
    })
}

/// The group this process runs as.
pub fn own_group() -> u32 {
    rustix::process::getegid().as_raw()
}

/// A group's number by its name.
#[allow(unsafe_code)]
pub fn group_named(name: &str) -> Option<u32> {
    let wanted = CString::new(name).ok()?;
    // SAFETY: the buffer lives as long as what points into it.
    let look = |entry: *mut libc::group, buffer: &mut [libc::c_char], found| unsafe {
        libc::getgrnam_r(
            wanted.as_ptr(),
            entry,
            buffer.as_mut_ptr(),
            buffer.len(),
            found,
        )
    };
    group(look)
}

/// The number, if a group has it.
#[allow(unsafe_code)]
pub fn group_numbered(gid: u32) -> Option<u32> {
    // SAFETY: the buffer lives as long as what points into it.
    let look = |entry: *mut libc::group, buffer: &mut [libc::c_char], found| unsafe {
        libc::getgrgid_r(gid, entry, buffer.as_mut_ptr(), buffer.len(), found)
    };
    group(look)
}

#[allow(unsafe_code)]
fn group(
    look: impl Fn(*mut libc::group, &mut [libc::c_char], *mut *mut libc::group) -> libc::c_int,
) -> Option<u32> {
    // A group's entry lists all its members.
    let mut buffer = vec![0; 1 << 20];
    let mut entry = MaybeUninit::<libc::group>::zeroed();
    let mut found = std::ptr::null_mut();
    if look(entry.as_mut_ptr(), &mut buffer, &mut found) != 0 || found.is_null() {
        return None;
    }
    // SAFETY: `found` says that the entry was filled in.
    Some(unsafe { entry.assume_init() }.gr_gid)
}

/// Becomes another user or group for good, as a daemon does before it starts its first thread. Whoever was root
/// and no longer is keeps none of root's groups, only the user's own.
pub fn become_for_good(account: &Account, gid: u32) -> io::Result<()> {
    let root = rustix::process::geteuid().is_root();
    let (uid, group) = (Uid::from_raw(account.uid), Gid::from_raw(gid));
    if root && account.uid != 0 {
        set_thread_groups(&groups_of(account, gid))?;
    }
    if rustix::process::getegid() != group {
        set_thread_res_gid(group, group, group)?;
    }
    if rustix::process::geteuid() != uid {
        set_thread_res_uid(uid, uid, uid)?;
    }
    Ok(())
}

/// Does something as that user, then is root again: for a daemon that has to be root for a while, and has a single
/// thread. Whoever is not root does it as who he is.
pub fn as_user<T>(account: &Account, gid: u32, act: impl FnOnce() -> T) -> io::Result<T> {
    let (own_uid, own_gid) = (rustix::process::geteuid(), rustix::process::getegid());
    if !own_uid.is_root() {
        return Ok(act());
    }
    let own_groups = rustix::process::getgroups()?;
    if account.uid != 0 {
        set_thread_groups(&groups_of(account, gid))?;
    }
    set_thread_res_gid(None, Gid::from_raw(gid), None)?;
    set_thread_res_uid(None, Uid::from_raw(account.uid), None)?;
    let done = act();
    set_thread_res_uid(None, own_uid, None)?;
    set_thread_res_gid(None, own_gid, None)?;
    set_thread_groups(&own_groups)?;
    Ok(done)
}

/// Numbers of the groups that a user is in.
pub fn groups(account: &Account) -> Vec<u32> {
    let all = groups_of(account, account.gid);
    all.into_iter().map(Gid::as_raw).collect()
}

/// The groups of a user, and `gid`.
#[allow(unsafe_code)]
fn groups_of(account: &Account, gid: u32) -> Vec<Gid> {
    let only = vec![Gid::from_raw(gid)];
    let Ok(name) = CString::new(account.name.as_str()) else {
        return only;
    };
    let mut groups = vec![0; 1 << 12];
    let mut count = groups.len() as libc::c_int;
    // SAFETY: the list has room for `count` numbers, and the name ends in NUL.
    let status = unsafe { libc::getgrouplist(name.as_ptr(), gid, groups.as_mut_ptr(), &mut count) };
    match status < 0 {
        true => only,
        false => groups
            .iter()
            .take(count as usize)
            .map(|&group| Gid::from_raw(group))
            .collect(),
    }
}

/// Which of the two a process is after [`fork`].
#[derive(Debug)]
pub enum Side {
    /// The one that was there before; the number is the child's.
    Parent(u32),
    /// The new one.
    Child,
}

/// Makes a second process of this one, which must have a single thread.
#[allow(unsafe_code)]
pub fn fork() -> io::Result<Side> {
    let threads = std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
    if threads != 1 {
        return Err(io::Error::other(format!("there are {threads} threads")));
    }
    // SAFETY: with one thread only, nothing can be half done in the child: no other thread holds a lock.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Side::Child),
        child => Ok(Side::Parent(child as u32)),
    }
}

/// Leaves the terminal and the session of whoever started this process.
pub fn leave_session() {
    // The child of a fork leads no group, so it cannot be refused.
    let _ = setsid();
}

/// Has stdin, stdout and stderr be /dev/null.
pub fn close_standard_files() -> io::Result<()> {
    let mut options = std::fs::File::options();
    replace_standard_files(&options.read(true).write(true).open("/dev/null")?)
}

/// Has stdin, stdout and stderr be this file.
pub fn replace_standard_files(file: &std::fs::File) -> io::Result<()> {
    rustix::stdio::dup2_stdin(file)?;
    rustix::stdio::dup2_stdout(file)?;
    rustix::stdio::dup2_stderr(file)?;
    Ok(())
}

/// Has stderr be this file.
pub fn replace_standard_error(file: &std::fs::File) -> io::Result<()> {
    rustix::stdio::dup2_stderr(file)?;
    Ok(())
}

/// The sockets that the service manager handed over (`sd_listen_fds`). To be called once.
#[allow(unsafe_code)]
pub fn inherited_sockets() -> Vec<OwnedFd> {
    let number = |name| std::env::var(name).ok()?.parse::<u32>().ok();
    if number("LISTEN_PID") != Some(std::process::id()) {
        return Vec::new();
    }
    let count = number("LISTEN_FDS").unwrap_or(0).min(1 << 10) as RawFd;
    // SAFETY: who started this process says that these are open and ours alone; `fcntl` finds out.
    let open = |fd: &RawFd| unsafe { libc::fcntl(*fd, libc::F_GETFD) } >= 0;
    // SAFETY: as above; nothing else of this process knows the numbers.
    let own = |fd| unsafe { OwnedFd::from_raw_fd(fd) };
    (3..3 + count).filter(open).map(own).collect()
}

/// True if a process of this number exists, whichever user it belongs to. A process that has ended and was not
/// waited for does not count.
pub fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    if stat
        .rsplit(") ")
        .next()
        .is_some_and(|state| state.starts_with('Z'))
    {
        return false;
    }
    let pid = i32::try_from(pid)
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    // As `kill(pid, 0) == 0`: a process that may not be signalled is somebody else's.
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok())
}

/// Groups of a child at most.
const GROUPS_MAX: usize = 64;

/// Which capabilities a child keeps of those that there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keep {
    /// None.
    Nothing,
    /// CAP_DAC_READ_SEARCH and CAP_SYS_PTRACE: reading what the kernel says of others' processes.
    Reading,
}

/// Memory limit of a child. A child that asks for more ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Memory {
    /// The parent's limit.
    Unlimited,
    /// Bytes of private writable memory: RLIMIT_DATA. Mapped files do not count.
    Own(u64),
    /// Bytes of everything that is mapped: RLIMIT_AS.
    Mapped(u64),
}

/// Privileges and limits of a child.
#[derive(Clone, Debug)]
pub struct Role {
    /// As whom it runs; `None`: as its parent.
    pub account: Option<Account>,
    /// Groups that it is in besides its own.
    pub groups: Vec<u32>,
    /// Capabilities that the child keeps.
    pub keep: Keep,
    /// True: the child gets SIGTERM when its parent ends, however the parent ends.
    pub ends_with_parent: bool,
    /// Memory limit of the child.
    pub memory: Memory,
    /// Files of the parent that it is handed, under the same numbers.
    pub inherits: Vec<RawFd>,
}

/// Has `command` take on `role`.
#[allow(unsafe_code)]
pub fn confine(command: &mut Command, role: Role) {
    let parent = std::process::id();
    // SAFETY: between fork and exec, `enter` makes plain system calls: no allocation, no lock.
    unsafe {
        command.pre_exec(move || enter(&role, parent));
    }
}

/// The new process' part. Whatever it answers but Ok keeps the program from being started.
fn enter(role: &Role, parent: u32) -> io::Result<()> {
    keep_files_back();
    unblock_signals();
    // Ctrl-C is for the guardian, which ends its children in order; and no child can type into its terminal.
    setsid()?;
    for &fd in &role.inherits {
        inherit(fd)?;
    }
    let had = capabilities(None)?.permitted;
    let keep = match role.keep {
        Keep::Nothing => CapabilitySet::empty(),
        Keep::Reading => CapabilitySet::DAC_READ_SEARCH | CapabilitySet::SYS_PTRACE,
    } & had;
    limit_memory(role.memory)?;
    lower_bounds(keep);
    if let Some(account) = &role.account {
        become_user(account, &role.groups)?;
    }
    keep_only(keep)?;
    // Even if the bounds could not be lowered, programs that are started from now on gain no rights.
    set_no_new_privs(true)?;
    if role.ends_with_parent {
        // After the change of user, which would take it back.
        set_parent_process_death_signal(Some(Signal::TERM))?;
        let alive = getppid().is_some_and(|pid| pid.as_raw_nonzero().get() as u32 == parent);
        if !alive {
            return Err(io::ErrorKind::NotFound.into());
        }
    }
    Ok(())
}

/// Sets the soft memory limit of this process, so that a process can lift it before it starts programs of others.
pub fn limit_memory(memory: Memory) -> io::Result<()> {
    let (resource, bytes) = match memory {
        Memory::Unlimited => return Ok(()),
        Memory::Own(bytes) => (Resource::Data, bytes),
        Memory::Mapped(bytes) => (Resource::As, bytes),
    };
    let now = getrlimit(resource);
    let bytes = now.current.unwrap_or(u64::MAX).min(bytes);
    let limit = Rlimit {
        current: Some(bytes),
        maximum: now.maximum,
    };
    Ok(setrlimit(resource, limit)?)
}

/// Lifts the memory limit of [`confine`]. For the runner, which starts programs of others.
pub fn lift_memory_limit() {
    let maximum = getrlimit(Resource::Data).maximum;
    let limit = Rlimit {
        current: maximum,
        maximum,
    };
    // Up to the hard limit anybody may.
    let _ = setrlimit(Resource::Data, limit);
}

/// Marks all inherited files but the standard ones, so that this process does not hand them on. Best effort: Linux
/// 5.11.
#[allow(unsafe_code)]
pub fn keep_files_back() {
    let after_stderr: libc::c_uint = 3;
    // SAFETY: closes nothing now; the files of this process are marked to be closed by exec.
    unsafe {
        libc::syscall(
            libc::SYS_close_range,
            after_stderr,
            libc::c_uint::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        );
    }
}

/// Gives the child the default signals, which the parent has changed for itself.
#[allow(unsafe_code)]
pub(crate) fn unblock_signals() {
    let mut none = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: sigemptyset initialises the set before it is used; SIG_DFL is no handler that could run.
    unsafe {
        libc::sigemptyset(none.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut());
        libc::signal(libc::SIGXFSZ, libc::SIG_DFL);
    }
}

#[allow(unsafe_code)]
fn inherit(fd: RawFd) -> io::Result<()> {
    // SAFETY: the parent holds the file open while it starts the child.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    Ok(fcntl_setfd(fd, FdFlags::empty())?)
}

/// Each capability that there may be.
fn each_capability() -> impl Iterator<Item = CapabilitySet> {
    (0..u64::BITS).map(|bit| CapabilitySet::from_bits_retain(1 << bit))
}

fn lower_bounds(keep: CapabilitySet) {
    for capability in each_capability().filter(|&capability| !keep.contains(capability)) {
        // An error says that the kernel knows no more of them.
        let Ok(there) = capability_is_in_bounding_set(capability) else {
            return;
        };
        if there {
            // Refused without CAP_SETPCAP: then `no_new_privs` does it alone.
            let _ = remove_capability_from_bounding_set(capability);
        }
    }
}

/// Gives up the right to change the clock, for this thread and all that it starts: whoever asks the kernel about the
/// clock can then change nothing by the same call.
pub fn give_up_the_clock() -> io::Result<()> {
    let clock = CapabilitySet::SYS_TIME;
    if let Ok(true) = capability_is_in_bounding_set(clock) {
        // Refused without CAP_SETPCAP: then there is nothing to take from.
        let _ = remove_capability_from_bounding_set(clock);
    }
    let had = capabilities(None)?;
    let sets = CapabilitySets {
        effective: had.effective - clock,
        permitted: had.permitted - clock,
        inheritable: had.inheritable - clock,
    };
    Ok(set_capabilities(None, sets)?)
}

fn become_user(account: &Account, groups: &[u32]) -> io::Result<()> {
    let (uid, gid) = (Uid::from_raw(account.uid), Gid::from_raw(account.gid));
    set_keep_capabilities(true)?;
    // No memory is asked for between fork and exec.
    let mut all = [gid; GROUPS_MAX];
    let count = groups.len().min(GROUPS_MAX - 1);
    for (place, &group) in all[1..].iter_mut().zip(groups) {
        *place = Gid::from_raw(group);
    }
    set_thread_groups(&all[..=count])?;
    set_thread_res_gid(gid, gid, gid)?;
    set_thread_res_uid(uid, uid, uid)?;
    Ok(())
}

/// Ambient, so that they outlive the start of an ordinary program.
fn keep_only(keep: CapabilitySet) -> io::Result<()> {
    clear_ambient_capability_set()?;
    let sets = CapabilitySets {
        effective: keep,
        permitted: keep,
        inheritable: keep,
    };
    set_capabilities(None, sets)?;
    for capability in each_capability().filter(|&capability| keep.contains(capability)) {
        configure_capability_in_ambient_set(capability, true)?;
    }
    Ok(())
}

/// A file that the parent handed over, by the number that the parent names; from now on it is not handed on.
#[allow(unsafe_code)]
pub fn inherited(fd: RawFd) -> io::Result<OwnedFd> {
    // 0 to 2 are the standard streams, which others use.
    if fd <= 2 {
        return Err(rustix::io::Errno::BADF.into());
    }
    // SAFETY: if the number is not open, fcntl answers EBADF, and nothing is made of it.
    fcntl_setfd(unsafe { BorrowedFd::borrow_raw(fd) }, FdFlags::CLOEXEC)?;
    // SAFETY: the file is open, and this program did not make it: it was open at the start.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Privileges of a process, by its status file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct State {
    /// Effective user.
    pub uid: u32,
    /// All capabilities it has or could take up.
    pub capabilities: u64,
    /// True: no program that the process starts can have more.
    pub no_new_privs: bool,
}

impl State {
    /// Privileges of the process with this number.
    pub fn of(pid: u32) -> Option<State> {
        State::parse(&std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?)
    }

    /// True if CAP_SYS_PTRACE is among the capabilities.
    pub fn may_trace(&self) -> bool {
        CapabilitySet::from_bits_retain(self.capabilities).contains(CapabilitySet::SYS_PTRACE)
    }

    fn parse(status: &str) -> Option<State> {
        let field = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name))?;
            Some(line[name.len()..].split_whitespace())
        };
        let set = |name| u64::from_str_radix(field(name)?.next()?, 16).ok();
        Some(State {
            uid: field("Uid:")?.nth(1)?.parse().ok()?,
            capabilities: set("CapPrm:")? | set("CapEff:")? | set("CapInh:")?,
            no_new_privs: field("NoNewPrivs:")?.next()? == "1",
        })
    }

    /// `user kymo, no capabilities, no_new_privs`.
    pub fn words(&self) -> String {
        let user = Account::numbered(self.uid).map_or(self.uid.to_string(), |user| user.name);
        let privs = if self.no_new_privs {
            ", no_new_privs"
        } else {
            ""
        };
        format!(
            "user {user}, {}{privs}",
            capability_words(self.capabilities)
        )
    }
}

fn capability_words(set: u64) -> String {
    const NAMED: [(CapabilitySet, &str); 2] = [
        (CapabilitySet::DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH"),
        (CapabilitySet::SYS_PTRACE, "CAP_SYS_PTRACE"),
    ];
    let set = CapabilitySet::from_bits_retain(set);
    let mut words: Vec<_> = NAMED
        .iter()
        .filter(|(capability, _)| set.contains(*capability))
        .map(|(_, name)| name.to_string())
        .collect();
    let others = NAMED
        .iter()
        .fold(set, |rest, (capability, _)| rest - *capability);
    if !others.is_empty() {
        words.push(format!("{} other capabilities", others.bits().count_ones()));
    }
    match words.is_empty() {
        true => "no capabilities".into(),
        false => words.join(" "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn root_is_known_and_nobody_else_made_up() {
        let root = Account::named("root").unwrap();
        assert_eq!((root.uid, root.gid), (0, 0));
        assert_eq!(Account::numbered(0), Some(root));
        for name in ["", "no such user", "a\0b"] {
            assert_eq!(Account::named(name), None, "{name:?}");
        }
        assert_eq!(Account::numbered(4_294_967_000), None);
    }

    #[test]
    fn states_in_words() {
        for (capabilities, no_new_privs, words) in [
            (0, true, "user root, no capabilities, no_new_privs"),
            (0, false, "user root, no capabilities"),
            (
                0x8_0004,
                true,
                "user root, CAP_DAC_READ_SEARCH CAP_SYS_PTRACE, no_new_privs",
            ),
            (
                7,
                false,
                "user root, CAP_DAC_READ_SEARCH 2 other capabilities",
            ),
        ] {
            let status = format!(
                "Name:\tx\nUid:\t1\t0\t0\t0\nCapInh:\t0\nCapPrm:\t{capabilities:016x}\nCapEff:\t0\nNoNewPrivs:\t{}\n",
                u8::from(no_new_privs)
            );
            assert_eq!(State::parse(&status).unwrap().words(), words);
        }
        assert_eq!(State::parse("Name:\tx\n"), None);
    }

    #[test]
    fn a_child_has_what_it_is_given_and_nothing_else() {
        let (mine, theirs) = std::io::pipe().unwrap();
        let mut command = Command::new("cat");
        command.args([
            "/proc/self/status",
            "/proc/self/limits",
            &format!("/proc/self/fdinfo/{}", theirs.as_raw_fd()),
        ]);
        let role = Role {
            account: None,
            groups: Vec::new(),
            keep: Keep::Nothing,
            ends_with_parent: true,
            memory: Memory::Own(1 << 30),
            inherits: vec![theirs.as_raw_fd()],
        };
        confine(&mut command, role);
        let output = command.output().unwrap();
        drop((mine, theirs));
        assert!(output.status.success(), "the pipe is there");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut limits = text
            .lines()
            .filter(|line| line.starts_with("Max data size"));
        assert!(limits.any(|line| line.contains(" 1073741824 ")), "{text}");
        let state = State::parse(&text).unwrap();
        assert_eq!((state.capabilities, state.no_new_privs), (0, true));
        assert_eq!(state.uid, Account::own().uid);
    }

    #[test]
    fn a_number_of_no_handed_over_file_is_refused() {
        for fd in [-1, 0, 2, RawFd::MAX] {
            let error = inherited(fd).expect_err("no file");
            assert_eq!(error.raw_os_error(), Some(libc::EBADF), "{fd}");
        }
    }
}
