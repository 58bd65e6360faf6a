//! Sockets to listen on: made here, or handed over by the service manager.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, ipproto, sockopt};

use crate::sure_folder::SocketName;

/// Connections that may wait to be taken, as far as the kernel lets them (net.core.somaxconn). Where there is no room, the
/// kernel lets a client try again after one second, and after three: many connections of one client kept others waiting so.
const BACKLOG: i32 = 4096;
/// Neither hands itself on to children nor makes anybody wait.
const FLAGS: SocketFlags = SocketFlags::CLOEXEC.union(SocketFlags::NONBLOCK);

/// The other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Peer {
    /// A process of this user, here.
    User(u32),
    /// A machine; an IPv4 address by way of IPv6 is an IPv4 address.
    Address(IpAddr),
}

/// The other end of a connection; `None`: the other end has gone.
pub fn peer(connection: impl AsFd) -> Option<Peer> {
    let connection = connection.as_fd();
    let address = rustix::net::getpeername(connection).ok()?;
    match address?.try_into() {
        Ok(address) => Some(Peer::Address(SocketAddr::ip(&address).to_canonical())),
        Err(_) => {
            let user = sockopt::socket_peercred(connection).ok()?;
            Some(Peer::User(user.uid.as_raw()))
        }
    }
}

/// Makes a unix socket, also in place of a dead one, on which no process listens any more; any other file of this name stays,
/// and is an error. The socket does not listen yet: see [`listen`].
pub fn bind_unix(path: &Path) -> io::Result<OwnedFd> {
    let address = SocketAddrUnix::new(path)?;
    let socket = unix_socket()?;
    match rustix::net::bind(&socket, &address) {
        Err(Errno::ADDRINUSE) => {
            remove_dead(path, &address)?;
            rustix::net::bind(&socket, &address)?;
        }
        bound => bound?,
    }
    Ok(socket)
}

/// As [`bind_unix`]; only its owner may use it. Changes the umask for a moment, so it is for a process with one thread.
pub fn bind_unix_for_owner(path: &Path) -> io::Result<OwnedFd> {
    bind_unix_without(path, 0o177)
}

/// As [`bind_unix`]; only its owner and its group may use it, which is this process's or the one given. Changes the umask for
/// a moment, so it is for a process with one thread.
pub fn bind_unix_for_group(path: &Path, gid: Option<u32>) -> io::Result<OwnedFd> {
    let socket = bind_unix_without(path, 0o117)?;
    if let Some(gid) = gid {
        SocketName::open(path)?.give_to_group(gid)?;
    }
    Ok(socket)
}

/// Without these permission bits from the first moment.
fn bind_unix_without(path: &Path, bits: u32) -> io::Result<OwnedFd> {
    let before = rustix::process::umask(Mode::from_raw_mode(bits));
    let made = bind_unix(path);
    rustix::process::umask(before);
    made
}

fn unix_socket() -> io::Result<OwnedFd> {
    let made = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, FLAGS, None);
    Ok(made?)
}

/// Removes a socket that refuses connections.
fn remove_dead(path: &Path, address: &SocketAddrUnix) -> io::Result<()> {
    if !std::fs::symlink_metadata(path)?.file_type().is_socket() {
        return Err(io::Error::other("something is there that is no socket"));
    }
    match rustix::net::connect(&unix_socket()?, address) {
        Err(Errno::CONNREFUSED) => std::fs::remove_file(path),
        // AGAIN: more wait than may.
        Ok(()) | Err(Errno::AGAIN) => Err(io::Error::other("somebody listens there")),
        Err(errno) => Err(errno.into()),
    }
}

/// Gives a unix socket's name to a group, which may then use it.
pub fn share_with_group(path: &Path, gid: u32) -> io::Result<()> {
    let name = SocketName::open(path)?;
    name.give_to_group(gid)?;
    name.set_mode(0o760)
}

/// Sets the mode of a unix socket's name.
pub fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    SocketName::open(path)?.set_mode(mode)
}

/// Connects to a unix socket, or fails where that would have to wait. The connection does not wait either.
pub fn connect_at_once(path: &Path) -> io::Result<UnixStream> {
    let socket = unix_socket()?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket.into())
}

/// Connects to a unix socket. Where more connections wait there than may, this waits as well, for `patience` at most; then
/// the error is `WouldBlock`.
pub fn connect_within(path: &Path, patience: Duration) -> io::Result<UnixStream> {
    let flags = SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, Some(patience))?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket.into())
}

/// Lets clients come.
pub fn listen(socket: &impl AsFd) -> io::Result<()> {
    Ok(rustix::net::listen(socket, BACKLOG)?)
}

/// The addresses of a host; of the empty one: any, of either family.
pub fn addresses(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    if host.is_empty() {
        let any: [IpAddr; 2] = [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()];
        return Ok(any.map(|any| SocketAddr::new(any, port)).to_vec());
    }
    let mut all: Vec<SocketAddr> = Vec::new();
    for address in (host, port).to_socket_addrs()? {
        if !all.contains(&address) {
            all.push(address);
        }
    }
    Ok(all)
}

/// Makes a TCP socket and listens. One of IPv6 leaves IPv4 to others.
pub fn bind_tcp(address: SocketAddr) -> io::Result<OwnedFd> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let socket = rustix::net::socket_with(family, SocketType::STREAM, FLAGS, Some(ipproto::TCP))?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    sockopt::set_tcp_nodelay(&socket, true)?;
    if address.is_ipv6() {
        sockopt::set_ipv6_v6only(&socket, true)?;
    }
    rustix::net::bind(&socket, &address)?;
    listen(&socket)?;
    Ok(socket)
}

/// The address that a TCP socket was given.
pub fn bound_to(socket: &impl AsFd) -> io::Result<SocketAddr> {
    let address = rustix::net::getsockname(socket)?;
    Ok(address.try_into()?)
}

/// True if this machine has no such kind of address.
pub fn is_missing_family(error: &io::Error) -> bool {
    let missing = [Errno::AFNOSUPPORT, Errno::ADDRNOTAVAIL].map(Errno::raw_os_error);
    error
        .raw_os_error()
        .is_some_and(|code| missing.contains(&code))
}

/// A client that waits to be taken; `None`: none does.
pub fn accept(socket: &impl AsFd) -> io::Result<Option<OwnedFd>> {
    match rustix::net::accept_with(socket, FLAGS) {
        Ok(client) => Ok(Some(client)),
        Err(Errno::AGAIN) => Ok(None),
        // Whoever it was has gone again.
        Err(Errno::INTR | Errno::CONNABORTED | Errno::PROTO) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

/// Sends small answers at once; not for unix sockets, which always do.
pub fn send_at_once(socket: &impl AsFd) {
    // Refused by sockets of other kinds.
    let _ = sockopt::set_tcp_nodelay(socket, true);
}

/// Makes a socket that came from elsewhere like those made here.
pub fn adopt(socket: &impl AsFd) -> io::Result<()> {
    // Asks for its name, as a sign that it is one.
    rustix::net::getsockname(socket)?;
    rustix::io::fcntl_setfd(socket, rustix::io::FdFlags::CLOEXEC)?;
    let flags = rustix::fs::fcntl_getfl(socket)? | rustix::fs::OFlags::NONBLOCK;
    rustix::fs::fcntl_setfl(socket, flags)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn hosts_have_addresses() {
        let any = addresses("", 1).unwrap();
        assert_eq!(any.len(), 2);
        assert_eq!(
            addresses("127.0.0.1", 2).unwrap(),
            ["127.0.0.1:2".parse().unwrap()]
        );
        assert_eq!(addresses("::1", 3).unwrap(), ["[::1]:3".parse().unwrap()]);
        assert!(addresses("no such host", 1).is_err());
    }

    #[test]
    fn a_full_queue_is_waited_for_as_long_as_was_said() {
        let name = format!("kymo-listen-full-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let socket = bind_unix(&path).unwrap();
        rustix::net::listen(&socket, 1).unwrap();
        let patience = Duration::from_millis(50);
        let mut waiting = Vec::new();
        let full = loop {
            match connect_within(&path, patience) {
                Ok(stream) => waiting.push(stream),
                Err(error) => break error,
            }
        };
        assert_eq!(full.kind(), io::ErrorKind::WouldBlock);
        assert!(!waiting.is_empty());
        std::fs::remove_file(&path).unwrap();
        let gone = connect_within(&path, patience).unwrap_err();
        assert_eq!(gone.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn only_a_dead_socket_is_replaced() {
        let folder = std::env::temp_dir().join(format!("kymo-listen-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let path = folder.join("s");
        let cause = || bind_unix(&path).unwrap_err().to_string();
        std::fs::write(&path, "text").unwrap();
        assert_eq!(cause(), "something is there that is no socket");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "text");
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("nowhere", &path).unwrap();
        assert_eq!(cause(), "something is there that is no socket");
        std::fs::remove_file(&path).unwrap();
        let running = bind_unix(&path).unwrap();
        listen(&running).unwrap();
        assert_eq!(cause(), "somebody listens there");
        assert!(accept(&running).unwrap().is_some());
        // `drop` alone does not do: a child that another test is starting has the descriptor, too.
        rustix::net::shutdown(&running, rustix::net::Shutdown::Both).unwrap();
        drop(running);
        let next = bind_unix_for_group(&path, None).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o660);
        listen(&next).unwrap();
        assert!(std::os::unix::net::UnixStream::connect(&path).is_ok());
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_client_is_taken_and_nobody_is_waited_for() {
        let socket = bind_tcp("127.0.0.1:0".parse().unwrap()).unwrap();
        assert!(accept(&socket).unwrap().is_none());
        let address = rustix::net::getsockname(&socket).unwrap();
        let address: SocketAddr = address.try_into().unwrap();
        let client = std::net::TcpStream::connect(address).unwrap();
        assert!(accept(&socket).unwrap().is_some());
        drop(client);
    }
}
