//! Ancestry of the process at the other end of a unix socket. A daemon's own processes may have the same user as its
//! administrator, so the user alone does not tell them apart.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::net::sockopt;

/// Since Linux 6.5; the crate libc has no name for it.
const SO_PEERPIDFD: libc::c_int = 77;
/// Parents of parents at most.
const DEPTH: usize = 64;

/// True if the process that made the connection is `ancestor` or a descendant of it. `None`: unknown, because the
/// process has gone or is in another container.
pub fn descends_from(connection: impl AsFd, ancestor: u32) -> Option<bool> {
    let connection = connection.as_fd();
    let handle = peer_handle(connection).ok();
    let peer = match &handle {
        Some(handle) => pid_of(handle)?,
        None => {
            let peer = sockopt::socket_peercred(connection).ok()?.pid;
            u32::try_from(peer.as_raw_nonzero().get()).ok()?
        }
    };
    let found = is_below(peer, ancestor)?;
    // The number was still its own.
    match &handle {
        Some(handle) => pid_of(handle).map(|_| found),
        None => Some(found),
    }
}

fn is_below(mut pid: u32, ancestor: u32) -> Option<bool> {
    for _ in 0..DEPTH {
        match pid {
            _ if pid == ancestor => return Some(true),
            0 | 1 => return Some(false),
            _ => pid = parent(pid)?,
        }
    }
    None
}

fn parent(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // A process name may hold anything, even parentheses.
    let mut behind_name = stat.rsplit_once(") ")?.1.split(' ');
    behind_name.nth(1)?.parse().ok()
}

#[allow(unsafe_code)]
fn peer_handle(connection: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let mut fd: libc::c_int = -1;
    let mut length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the kernel writes a number of this length at most.
    let status = unsafe {
        libc::getsockopt(
            connection.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_PEERPIDFD,
            (&raw mut fd).cast(),
            &mut length,
        )
    };
    if status != 0 || fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel made this descriptor for this process, in the call above.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The pid of a process that exists.
fn pid_of(handle: &OwnedFd) -> Option<u32> {
    let path = format!("/proc/self/fdinfo/{}", handle.as_raw_fd());
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pid:"))?;
    line.trim().parse().ok().filter(|&pid| pid > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::process::{Command, Stdio};

    #[test]
    fn children_and_theirs_are_told_from_others() {
        let own = std::process::id();
        let (ours, _theirs) = UnixStream::pair().unwrap();
        assert_eq!(descends_from(&ours, own), Some(true));
        assert_eq!(descends_from(&ours, 4_000_000_000), Some(false));
        let path = std::env::temp_dir().join(format!("kymo-ancestry-{own}"));
        let listener = UnixListener::bind(&path).unwrap();
        let script = format!(
            // A shell gives /dev/null to a command in the background; perl would read its end at once.
            "exec 3<&0; perl -MSocket -e 'socket(S,AF_UNIX,SOCK_STREAM,0);connect(S,pack_sockaddr_un(\"{}\"));<STDIN>' <&3 & wait",
            path.display()
        );
        let mut shell = Command::new("sh")
            .args(["-c", &script])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let (connection, _) = listener.accept().unwrap();
        for (ancestor, expected) in [(own, true), (shell.id(), true), (4_000_000_000, false)] {
            assert_eq!(descends_from(&connection, ancestor), Some(expected));
        }
        drop(shell.stdin.take());
        shell.wait().unwrap();
        if peer_handle(connection.as_fd()).is_ok() {
            assert_eq!(descends_from(&connection, own), None, "it has gone");
        }
        std::fs::remove_file(path).unwrap();
    }
}
