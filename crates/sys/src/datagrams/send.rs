//! Many datagrams sent by one system call, each to an address of its own.

use std::io;
use std::mem::{MaybeUninit, size_of};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};

use super::blank_name;

/// Size of an address as a control message: 16 bytes of head, 12 of content, up to a whole word.
const CONTROL_WORDS: usize = 4;

/// Datagrams to be sent together; memory is used again.
#[derive(Default)]
pub struct Outbox {
    bytes: Vec<u8>,
    parts: Vec<Part>,
    names: Vec<libc::sockaddr_storage>,
    controls: Vec<[u64; CONTROL_WORDS]>,
    pieces: Vec<libc::iovec>,
    heads: Vec<libc::mmsghdr>,
}

/// Where a datagram begins and ends, whom it is for, and from which address it goes unless the kernel is to choose.
struct Part {
    from: usize,
    to: usize,
    address: SocketAddr,
    local: Option<Ipv4Addr>,
}

// SAFETY: the pointers in `pieces` and `heads` are used during a call of `send` alone, which fills them in first.
#[allow(unsafe_code)]
unsafe impl Send for Outbox {}

impl Outbox {
    /// Adds one; `put` appends its bytes to the buffer.
    pub fn push(&mut self, address: SocketAddr, put: impl FnOnce(&mut Vec<u8>)) {
        self.add(None, address, put);
    }

    /// Adds one that is sent from `local`, an address of this machine that the socket hears
    /// ([`super::bind_udp_loopback`]).
    pub fn push_from(
        &mut self,
        local: Ipv4Addr,
        address: SocketAddr,
        put: impl FnOnce(&mut Vec<u8>),
    ) {
        self.add(Some(local), address, put);
    }

    fn add(
        &mut self,
        local: Option<Ipv4Addr>,
        address: SocketAddr,
        put: impl FnOnce(&mut Vec<u8>),
    ) {
        let from = self.bytes.len();
        put(&mut self.bytes);
        self.parts.push(Part {
            from,
            to: self.bytes.len(),
            address,
            local,
        });
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.parts.len()
    }

    /// True if there is no datagram.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Sends all, in their order, and is empty then. One that the kernel refuses (no route, a full queue) is as good as lost on
    /// its way: how many were, and why the last of them.
    pub fn send(&mut self, socket: &impl AsFd) -> (usize, Option<io::Error>) {
        let (mut done, mut refused, mut why) = (0, 0, None);
        self.address();
        while done < self.heads.len() {
            match self.send_from(done, socket) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    (done, refused, why) = (done + 1, refused + 1, Some(error));
                }
            }
        }
        self.heads.clear();
        self.pieces.clear();
        self.parts.clear();
        self.bytes.clear();
        (refused, why)
    }

    /// Messages for the kernel.
    #[allow(unsafe_code)]
    fn address(&mut self) {
        self.names.resize_with(self.parts.len(), blank_name);
        self.controls.resize(self.parts.len(), [0; CONTROL_WORDS]);
        self.pieces.clear();
        for part in &self.parts {
            self.pieces.push(libc::iovec {
                iov_base: self.bytes[part.from..part.to].as_mut_ptr().cast(),
                iov_len: part.to - part.from,
            });
        }
        self.heads.clear();
        let rooms = self.names.iter_mut().zip(&mut self.controls);
        let parts = self.parts.iter().zip(rooms);
        for ((part, (name, control)), piece) in parts.zip(&mut self.pieces) {
            // SAFETY: numbers, and null pointers that point to nothing.
            let mut head: libc::mmsghdr = unsafe { MaybeUninit::zeroed().assume_init() };
            head.msg_hdr.msg_namelen = put_address(name, part.address);
            if let Some(local) = part.local {
                put_local(control, local);
                head.msg_hdr.msg_controllen = size_of::<[u64; CONTROL_WORDS]>() as _;
                head.msg_hdr.msg_control = control.as_mut_ptr().cast();
            }
            head.msg_hdr.msg_name = (&raw mut *name).cast();
            head.msg_hdr.msg_iov = piece;
            head.msg_hdr.msg_iovlen = 1;
            self.heads.push(head);
        }
    }

    #[allow(unsafe_code)]
    fn send_from(&mut self, from: usize, socket: &impl AsFd) -> io::Result<usize> {
        let heads = &mut self.heads[from..];
        // SAFETY: each head points to a name and a piece with the lengths it says, made by `address` of buffers that have not
        // changed since.
        let count = unsafe {
            libc::sendmmsg(
                socket.as_fd().as_raw_fd(),
                heads.as_mut_ptr(),
                heads.len() as libc::c_uint,
                libc::MSG_DONTWAIT as _,
            )
        };
        usize::try_from(count).map_err(|_| io::Error::last_os_error())
    }
}

/// Writes the address to send from as a control message, which takes all of its room.
#[allow(unsafe_code)]
fn put_local(control: &mut [u64; CONTROL_WORDS], local: Ipv4Addr) {
    let address = libc::in_addr {
        s_addr: u32::from_ne_bytes(local.octets()),
    };
    let content = libc::in_pktinfo {
        ipi_ifindex: 0,
        ipi_spec_dst: address,
        ipi_addr: address,
    };
    let size = size_of::<libc::in_pktinfo>() as libc::c_uint;
    let message: *mut libc::cmsghdr = control.as_mut_ptr().cast();
    // SAFETY: the room is aligned for a head, and has place for one and this content.
    unsafe {
        (*message).cmsg_level = libc::IPPROTO_IP;
        (*message).cmsg_type = libc::IP_PKTINFO;
        (*message).cmsg_len = libc::CMSG_LEN(size) as _;
        libc::CMSG_DATA(message)
            .cast::<libc::in_pktinfo>()
            .write_unaligned(content);
    }
}

/// Writes an address as the kernel wants it; its length.
#[allow(unsafe_code)]
fn put_address(name: &mut libc::sockaddr_storage, address: SocketAddr) -> libc::socklen_t {
    let place: *mut libc::sockaddr_storage = name;
    match address {
        SocketAddr::V4(v4) => {
            let raw = libc::sockaddr_in {
                sin_family: libc::AF_INET as libc::sa_family_t,
                sin_port: v4.port().to_be(),
                sin_addr: libc::in_addr {
                    s_addr: u32::from_ne_bytes(v4.ip().octets()),
                },
                sin_zero: [0; 8],
            };
            // SAFETY: the storage has room and alignment for each kind of address.
            unsafe { place.cast::<libc::sockaddr_in>().write(raw) };
            size_of::<libc::sockaddr_in>() as libc::socklen_t
        }
        SocketAddr::V6(v6) => {
            let raw = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as libc::sa_family_t,
                sin6_port: v6.port().to_be(),
                sin6_flowinfo: v6.flowinfo(),
                sin6_addr: libc::in6_addr {
                    s6_addr: v6.ip().octets(),
                },
                sin6_scope_id: v6.scope_id(),
            };
            // SAFETY: as above.
            unsafe { place.cast::<libc::sockaddr_in6>().write(raw) };
            size_of::<libc::sockaddr_in6>() as libc::socklen_t
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datagrams::bind_udp;
    use std::net::UdpSocket;

    #[test]
    fn each_goes_to_its_address() {
        let sender = bind_udp("127.0.0.1:0".parse().unwrap(), 1 << 16).unwrap();
        let receivers: Vec<UdpSocket> = (0..3)
            .map(|_| UdpSocket::bind("127.0.0.1:0").unwrap())
            .collect();
        let mut outbox = Outbox::default();
        for round in 0..2u8 {
            for (n, receiver) in receivers.iter().enumerate() {
                outbox.push(receiver.local_addr().unwrap(), |out| {
                    out.extend([round, n as u8])
                });
            }
            // This is too long for any datagram; the others get theirs.
            outbox.push("127.0.0.1:9".parse().unwrap(), |out| out.resize(70_000, 0));
            outbox.push(receivers[0].local_addr().unwrap(), |out| out.push(9));
            assert_eq!(outbox.len(), 5);
            let (refused, why) = outbox.send(&sender.socket);
            assert_eq!((refused, why.is_some()), (1, true));
            assert!(outbox.is_empty());
            let mut buffer = [0; 16];
            for (n, receiver) in receivers.iter().enumerate() {
                let (length, _) = receiver.recv_from(&mut buffer).unwrap();
                assert_eq!(buffer[..length], [round, n as u8]);
            }
            assert_eq!(receivers[0].recv(&mut buffer).unwrap(), 1);
        }
    }

    #[test]
    fn one_socket_answers_for_many_addresses() {
        let farm = crate::datagrams::bind_udp_loopback(0, 1 << 20).unwrap();
        let name: SocketAddr = rustix::net::getsockname(&farm.socket)
            .unwrap()
            .try_into()
            .unwrap();
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        let devices = [[127, 0, 12, 1], [127, 0, 12, 255]].map(Ipv4Addr::from);
        for device in devices {
            client.send_to(b"who?", (device, name.port())).unwrap();
        }
        let mut datagrams = crate::datagrams::Datagrams::new(4);
        assert_eq!(datagrams.receive(&farm.socket).unwrap(), 2);
        let mut outbox = Outbox::default();
        for (datagram, device) in datagrams.iter_mut().zip(devices) {
            assert_eq!(datagram.local, Some(device));
            outbox.push_from(device, datagram.sender, |out| out.extend(device.octets()));
        }
        assert_eq!(outbox.send(&farm.socket).0, 0);
        for device in devices {
            let mut buffer = [0; 16];
            let (size, from) = client.recv_from(&mut buffer).unwrap();
            assert_eq!(from, SocketAddr::from((device, name.port())));
            assert_eq!(buffer[..size], device.octets());
        }
    }

    #[test]
    fn addresses_of_version_6() {
        let Ok(receiver) = UdpSocket::bind("[::1]:0") else {
            return;
        };
        let sender = bind_udp("[::1]:0".parse().unwrap(), 1 << 16).unwrap();
        let mut outbox = Outbox::default();
        outbox.push(receiver.local_addr().unwrap(), |out| out.push(6));
        assert_eq!(outbox.send(&sender.socket).0, 0);
        let mut buffer = [0; 16];
        assert_eq!(receiver.recv(&mut buffer).unwrap(), 1);
    }
}
