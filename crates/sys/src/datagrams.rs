//! UDP sockets, many datagrams by one system call, and how many the kernel dropped because they were not taken in time.

mod send;

pub use send::Outbox;

use std::io;
use std::mem::{MaybeUninit, size_of, zeroed};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, netdevice, sockopt};

/// No datagram is longer.
pub const DATAGRAM_MAX: usize = 1 << 16;
/// Distance of the buffers of two datagrams: their first bytes do not fall into the same lines of a cache.
const STRIDE: usize = DATAGRAM_MAX + 4096 + 64;
/// Room for a control message of 32 bits, one of an address and one of a time, aligned as the kernel wants it.
const CONTROL_WORDS: usize = 12;

/// A UDP socket, and the bytes that its queue holds.
#[derive(Debug)]
pub struct UdpSocket {
    /// Never waiting.
    pub socket: OwnedFd,
    /// As the kernel counts them, with its own headers.
    pub queue_bytes: usize,
}

/// Makes a UDP socket with a queue of `queue_bytes`, as far as this process may: beyond `net.core.rmem_max` it takes
/// CAP_NET_ADMIN.
pub fn bind_udp(address: SocketAddr, queue_bytes: usize) -> io::Result<UdpSocket> {
    bind_udp_on(address, queue_bytes, |_| Ok(()))
}

/// Makes a UDP socket that hears a multicast group. Other sockets of this machine may hear the same group and port. `interface`:
/// name of the only network interface whose datagrams count; `None`: the kernel's routes pick one.
pub fn bind_udp_group(
    group: SocketAddr,
    interface: Option<&str>,
    queue_bytes: usize,
) -> io::Result<UdpSocket> {
    bind_udp_on(group, queue_bytes, |socket| {
        sockopt::set_socket_reuseaddr(socket, true)?;
        let index = match interface {
            Some(name) => netdevice::name_to_index(socket, name)?,
            None => 0,
        };
        // Otherwise a socket hears what others of this machine have joined, by any interface.
        let off: libc::c_int = 0;
        let off = off.to_ne_bytes();
        match group.ip() {
            IpAddr::V4(group) => {
                set_option(socket, libc::IPPROTO_IP, libc::IP_MULTICAST_ALL, &off)?;
                let any = Ipv4Addr::UNSPECIFIED;
                sockopt::set_ip_add_membership_with_ifindex(socket, &group, &any, index)?;
            }
            IpAddr::V6(group) => {
                set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_MULTICAST_ALL, &off)?;
                sockopt::set_ipv6_add_membership(socket, &group, index)?;
            }
        }
        Ok(())
    })
}

fn bind_udp_on(
    address: SocketAddr,
    queue_bytes: usize,
    prepare: impl FnOnce(&OwnedFd) -> io::Result<()>,
) -> io::Result<UdpSocket> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(family, SocketType::DGRAM, flags, Some(ipproto::UDP))?;
    if address.is_ipv6() {
        sockopt::set_ipv6_v6only(&socket, true)?;
    }
    if sockopt::set_socket_recv_buffer_size_force(&socket, queue_bytes).is_err() {
        sockopt::set_socket_recv_buffer_size(&socket, queue_bytes)?;
    }
    count_dropped(&socket)?;
    prepare(&socket)?;
    rustix::net::bind(&socket, &address)?;
    let queue_bytes = sockopt::socket_recv_buffer_size(&socket)?;
    Ok(UdpSocket {
        socket,
        queue_bytes,
    })
}

/// Makes a UDP socket that hears a port at each address of the loopback interface, 127.0.0.0/8, and nothing from outside:
/// [`Datagram::local`] says which of them was sent to, [`Outbox::push_from`] from which is answered. Port 0: any that is free.
pub fn bind_udp_loopback(port: u16, queue_bytes: usize) -> io::Result<UdpSocket> {
    bind_udp_on(
        SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)),
        queue_bytes,
        |socket| {
            set_option(socket, libc::SOL_SOCKET, libc::SO_BINDTODEVICE, b"lo")?;
            let on: libc::c_int = 1;
            set_option(
                socket,
                libc::IPPROTO_IP,
                libc::IP_PKTINFO,
                &on.to_ne_bytes(),
            )
        },
    )
}

/// Has the kernel say with each datagram how many were dropped before it.
fn count_dropped(socket: &OwnedFd) -> io::Result<()> {
    let on: libc::c_int = 1;
    set_option(
        socket,
        libc::SOL_SOCKET,
        libc::SO_RXQ_OVFL,
        &on.to_ne_bytes(),
    )
}

impl UdpSocket {
    /// Has the kernel say with each datagram when it came: [`Datagram::came_ns`].
    pub fn stamp_datagrams(&self) -> io::Result<()> {
        let on: libc::c_int = 1;
        let on = on.to_ne_bytes();
        set_option(&self.socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &on)
    }
}

#[allow(unsafe_code)]
fn set_option(socket: &OwnedFd, level: i32, name: i32, value: &[u8]) -> io::Result<()> {
    // SAFETY: the value is read, as many bytes as are said, during the call.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            value.as_ptr().cast(),
            value.len() as libc::socklen_t,
        )
    };
    match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Room for datagrams, to be filled again and again.
pub struct Datagrams {
    /// One after the other, each `DATAGRAM_MAX` and a gap. Pages that nothing was written to take no memory.
    bytes: Vec<u8>,
    names: Vec<libc::sockaddr_storage>,
    controls: Vec<[u64; CONTROL_WORDS]>,
    filled: Vec<Filled>,
    dropped: Option<u32>,
}

/// One that came.
#[derive(Clone, Copy)]
struct Filled {
    length: usize,
    truncated: bool,
    local: Option<Ipv4Addr>,
    came_ns: Option<i64>,
}

/// One datagram.
#[derive(Debug)]
pub struct Datagram<'a> {
    /// Content of the datagram. The reader may change it in place, as decryption does.
    pub bytes: &'a mut [u8],
    /// Address that the datagram gives as its sender's.
    pub sender: SocketAddr,
    /// The address it was sent to, where the socket hears several ([`bind_udp_loopback`]).
    pub local: Option<Ipv4Addr>,
    /// When it came, nanoseconds since 1970, where the socket says so ([`UdpSocket::stamp_datagrams`]).
    pub came_ns: Option<i64>,
    /// True: the end of the datagram is missing.
    pub truncated: bool,
}

impl Datagrams {
    /// Room for `count` of them.
    pub fn new(count: usize) -> Datagrams {
        Datagrams {
            bytes: vec![0; count * STRIDE],
            names: vec![blank_name(); count],
            controls: vec![[0; CONTROL_WORDS]; count],
            filled: Vec::with_capacity(count),
            dropped: None,
        }
    }

    /// Receives as many waiting datagrams as there is room for, in place of those received before, and returns their count; 0
    /// is no error.
    #[allow(unsafe_code)]
    pub fn receive(&mut self, socket: &impl AsFd) -> io::Result<usize> {
        self.filled.clear();
        self.dropped = None;
        let room = self.bytes.chunks_exact_mut(STRIDE);
        let mut pieces: Vec<libc::iovec> = room
            .map(|room| libc::iovec {
                iov_base: room.as_mut_ptr().cast(),
                iov_len: DATAGRAM_MAX,
            })
            .collect();
        let parts = pieces
            .iter_mut()
            .zip(&mut self.names)
            .zip(&mut self.controls);
        let mut heads: Vec<libc::mmsghdr> = parts
            .map(|((piece, name), control)| head(piece, name, control))
            .collect();
        // SAFETY: each head points to a name, a piece and a control buffer with the lengths it says; all of them outlive
        // the call, and none is used otherwise meanwhile.
        let count = unsafe {
            libc::recvmmsg(
                socket.as_fd().as_raw_fd(),
                heads.as_mut_ptr(),
                heads.len() as libc::c_uint,
                libc::MSG_DONTWAIT as _,
                std::ptr::null_mut(),
            )
        };
        let Ok(count) = usize::try_from(count) else {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(0),
                _ => Err(error),
            };
        };
        for head in &heads[..count] {
            // SAFETY: recvmmsg filled in the control buffer of this head, up to the length in the head.
            let beside = unsafe { control_data(&head.msg_hdr) };
            self.filled.push(Filled {
                length: (head.msg_len as usize).min(DATAGRAM_MAX),
                truncated: head.msg_hdr.msg_flags & libc::MSG_TRUNC != 0,
                local: beside.local,
                came_ns: beside.came_ns,
            });
            self.dropped = beside.dropped.or(self.dropped);
        }
        Ok(count)
    }

    /// Datagrams that the last [`Datagrams::receive`] took.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = Datagram<'_>> {
        let rooms = self.bytes.chunks_exact_mut(STRIDE).zip(&self.names);
        let filled = self.filled.iter().zip(rooms);
        filled.map(|(filled, (room, name))| Datagram {
            bytes: &mut room[..filled.length],
            sender: sender(name),
            local: filled.local,
            came_ns: filled.came_ns,
            truncated: filled.truncated,
        })
    }

    /// How many the kernel had dropped when the newest of those that the last [`Datagrams::receive`] took came: since their
    /// socket was made, modulo 2^32. `None`: none, or nothing was taken.
    pub fn dropped(&self) -> Option<u32> {
        self.dropped
    }
}

#[allow(unsafe_code)]
fn blank_name() -> libc::sockaddr_storage {
    // SAFETY: numbers and bytes, for which zero is a value.
    unsafe { zeroed() }
}

#[allow(unsafe_code)]
fn head(
    piece: &mut libc::iovec,
    name: &mut libc::sockaddr_storage,
    control: &mut [u64; CONTROL_WORDS],
) -> libc::mmsghdr {
    // SAFETY: as above; a null pointer is one that points to nothing.
    let mut head: libc::mmsghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    head.msg_hdr.msg_name = (&raw mut *name).cast();
    head.msg_hdr.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
    head.msg_hdr.msg_iov = piece;
    head.msg_hdr.msg_iovlen = 1;
    head.msg_hdr.msg_control = control.as_mut_ptr().cast();
    head.msg_hdr.msg_controllen = size_of::<[u64; CONTROL_WORDS]>() as _;
    head
}

/// Control messages of the kernel beside a datagram.
#[derive(Default)]
struct Beside {
    /// SO_RXQ_OVFL, once something was dropped.
    dropped: Option<u32>,
    /// IP_PKTINFO, where that is asked for.
    local: Option<Ipv4Addr>,
    /// SCM_TIMESTAMPNS, where that is asked for.
    came_ns: Option<i64>,
}

/// # Safety
/// The control buffer of `head` is what the kernel filled in, and `msg_controllen` is its length.
#[allow(unsafe_code)]
unsafe fn control_data(head: &libc::msghdr) -> Beside {
    let mut beside = Beside::default();
    // SAFETY: the caller's promise; the macros stay within `msg_controllen`.
    unsafe {
        let mut message = libc::CMSG_FIRSTHDR(head);
        while !message.is_null() {
            let content = libc::CMSG_DATA(message);
            match ((*message).cmsg_level, (*message).cmsg_type) {
                (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => {
                    beside.dropped = Some(content.cast::<u32>().read_unaligned());
                }
                (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                    let packet = content.cast::<libc::in_pktinfo>().read_unaligned();
                    beside.local = Some(Ipv4Addr::from(packet.ipi_addr.s_addr.to_ne_bytes()));
                }
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                    let time = content.cast::<libc::timespec>().read_unaligned();
                    beside.came_ns = Some(time.tv_sec * 1_000_000_000 + time.tv_nsec);
                }
                _ => {}
            }
            message = libc::CMSG_NXTHDR(head, message);
        }
    }
    beside
}

#[allow(unsafe_code)]
fn sender(name: &libc::sockaddr_storage) -> SocketAddr {
    let name: *const libc::sockaddr_storage = name;
    // SAFETY: the family says which of the addresses was filled in; the storage has room and alignment for each.
    unsafe {
        match libc::c_int::from((*name).ss_family) {
            libc::AF_INET6 => {
                let v6 = &*name.cast::<libc::sockaddr_in6>();
                let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr);
                SocketAddr::new(IpAddr::V6(ip), u16::from_be(v6.sin6_port))
            }
            libc::AF_INET => {
                let v4 = &*name.cast::<libc::sockaddr_in>();
                let ip = Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr));
                SocketAddr::new(IpAddr::V4(ip), u16::from_be(v4.sin_port))
            }
            _ => SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(queue_bytes: usize) -> (UdpSocket, std::net::UdpSocket) {
        let bound = bind_udp("127.0.0.1:0".parse().unwrap(), queue_bytes).unwrap();
        let address = rustix::net::getsockname(&bound.socket).unwrap();
        let address: SocketAddr = address.try_into().unwrap();
        let client = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        client.connect(address).unwrap();
        (bound, client)
    }

    #[test]
    fn many_are_taken_at_once_with_their_senders() {
        let (bound, client) = pair(1 << 20);
        let mut datagrams = Datagrams::new(4);
        assert_eq!(datagrams.receive(&bound.socket).unwrap(), 0);
        for n in 0..6u8 {
            client.send(&vec![n; usize::from(n) * 1000]).unwrap();
        }
        let mut lengths = Vec::new();
        for expected in [4, 2, 0] {
            assert_eq!(datagrams.receive(&bound.socket).unwrap(), expected);
            for datagram in datagrams.iter_mut() {
                assert_eq!(datagram.sender, client.local_addr().unwrap());
                assert!(!datagram.truncated);
                lengths.push(datagram.bytes.len());
            }
        }
        assert_eq!(lengths, [0, 1000, 2000, 3000, 4000, 5000]);
    }

    #[test]
    fn datagrams_have_the_time_when_they_came() {
        use crate::clock::{Clock as _, RealClock};
        let (bound, client) = pair(1 << 20);
        let mut datagrams = Datagrams::new(4);
        client.send(&[0; 10]).unwrap();
        datagrams.receive(&bound.socket).unwrap();
        assert!(datagrams.iter_mut().all(|one| one.came_ns.is_none()));
        bound.stamp_datagrams().unwrap();
        // The kernel turns stamps on a moment later, and until then it stamps a datagram when it is received.
        let is_stamped = (0..1000).any(|_| {
            let before_ns = RealClock.now().real_ns;
            client.send(&[0; 10]).unwrap();
            let after_ns = RealClock.now().real_ns;
            std::thread::sleep(std::time::Duration::from_millis(5));
            datagrams.receive(&bound.socket).unwrap();
            let came_ns = datagrams.iter_mut().find_map(|one| one.came_ns);
            (before_ns..=after_ns).contains(&came_ns.unwrap())
        });
        assert!(is_stamped);
    }

    #[test]
    fn what_the_kernel_drops_is_counted() {
        let (bound, client) = pair(1);
        let mut datagrams = Datagrams::new(64);
        let sent = 500;
        for _ in 0..sent {
            client.send(&[0; 1000]).unwrap();
        }
        let mut taken = 0;
        loop {
            match datagrams.receive(&bound.socket).unwrap() {
                0 => break,
                count => taken += count,
            }
        }
        assert!(taken < sent, "the queue is too long for this test");
        // The kernel reports the loss with the next datagram.
        client.send(&[0; 1000]).unwrap();
        assert_eq!(datagrams.receive(&bound.socket).unwrap(), 1);
        let dropped = u32::try_from(sent - taken).unwrap();
        assert_eq!(datagrams.dropped(), Some(dropped));
        // Another socket has a count of its own: what the first one had lost was the second one's loss, too.
        let (other, client) = pair(1 << 20);
        client.send(&[0; 1000]).unwrap();
        assert_eq!(datagrams.receive(&other.socket).unwrap(), 1);
        assert_eq!(datagrams.dropped(), None);
    }
}
