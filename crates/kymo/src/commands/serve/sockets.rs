//! Sockets of the keeper's listeners. The guardian makes and holds them: clients wait in them while the keeper is started again.

use std::fmt::Display;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::Path;

use anyhow::{Context as _, Result, anyhow, bail};
use kymo_base::errno::strerror;
use kymo_ingest::line_listeners::LineSettings;
use kymo_sys::datagrams::{UdpSocket, bind_udp, bind_udp_group};
use kymo_sys::own_name::OwnName;
use kymo_sys::{listen, privilege};
use rustix::fs::{MemfdFlags, memfd_create};

use crate::commands::keeper::LineOrder;
use crate::config::{Config, LineAddresses, ListenAddress, Security};

/// The port of collectd's network plugin.
const COLLECTD_PORT: u16 = 25826;
const LOOPBACK: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::LOCALHOST),
    IpAddr::V6(Ipv6Addr::LOCALHOST),
];
/// Most bytes that wait in a socket during a restart of the keeper, which needs seconds. The kernel counts more than the bytes of
/// a datagram.
const QUEUE_BYTES: usize = 64 << 20;

/// Most bytes of traps that wait, likewise.
const TRAP_QUEUE_BYTES: usize = 4 << 20;

/// Listening sockets, and their addresses.
pub(super) struct Sockets {
    /// Sockets for rrdcached's protocol.
    pub rrdcached: Vec<OwnedFd>,
    /// Addresses of these sockets, in words.
    pub shown: Vec<String>,
    /// Socket for requests of the hub and of commands, by the keeper's protocol.
    pub requests: Option<OwnedFd>,
    /// Socket for processes of kymo that write.
    pub writes: Option<OwnedFd>,
    /// The administrator's socket, for requests and for removing series.
    pub admin: Option<OwnedFd>,
    /// Sockets for collectd's datagrams, and their addresses.
    pub collectd: Vec<(UdpSocket, SocketAddr)>,
    /// Socket for commands of collectd's unixsock plugin, and its path.
    pub unixsock: Option<(OwnedFd, String)>,
    /// Sockets for SNMP traps, and their addresses.
    pub traps: Vec<(UdpSocket, SocketAddr)>,
    /// Sockets of the listeners for lines, in the order of their declarations.
    pub lines: Vec<LinePlaces>,
    /// Losses of the sockets for datagrams that keepers have reported.
    pub reported: OwnedFd,
    /// Names in the file system, which are removed at the end.
    pub names: Vec<OwnName>,
    /// Messages about optional sockets that failed.
    pub notices: Vec<String>,
}

/// Sockets of a protocol of lines.
#[derive(Default)]
pub(super) struct LinePlaces {
    /// Sockets for datagrams, and their addresses.
    pub datagrams: Vec<(UdpSocket, SocketAddr)>,
    /// Sockets for connections, at the same addresses.
    pub streams: Vec<OwnedFd>,
}

/// Name of the socket for requests, in the data folder.
pub(crate) const KEEPER_SOCKET: &str = "keeper.sock";
/// Name of the socket for processes that write.
pub(super) const WRITES: &str = "keeper-write.sock";
/// Socket for rrdcached's protocol, where none is configured.
pub(super) const RRDCACHED: &str = "rrdcached.sock";
/// Name of the administrator's socket.
pub(crate) const ADMIN: &str = "keeper-admin.sock";

/// Opens the sockets; `reader`: group of the hub, if it runs as another user. A configured socket that fails is an error, a
/// default one is reported.
pub(super) fn open(config: &Config, dir: &Path, reader: Option<u32>) -> Result<Sockets> {
    let mut sockets = Sockets::none()?;
    let group = config.listen.group.as_deref();
    let group = group
        .map(|name| {
            privilege::group_named(name)
                .with_context(|| format!("cannot use the group {name}: there is none of that name"))
        })
        .transpose()?;
    match &config.listen.rrdcached {
        Some(places) => {
            for place in places {
                check(place, config)?;
                sockets.add(place, group)?;
            }
        }
        None => {
            let place = ListenAddress::Path(dir.join(RRDCACHED));
            if let Err(error) = sockets.add(&place, group) {
                sockets.notices.push(format!("{error:#}"));
            }
        }
    }
    let groups = config.listen.collectd.iter().flatten();
    let has_group = groups.filter(|address| address.ip().is_multicast()).count() > 0;
    let interface = config.collectd.interface.as_deref();
    if interface.is_some() && !has_group {
        bail!(
            "cannot use [collectd] interface: no address of [listen] collectd is that of a multicast group"
        );
    }
    match &config.listen.collectd {
        Some(addresses) => {
            for &address in addresses {
                check_datagrams(address, config)?;
                sockets.add_datagrams(address, interface)?;
            }
        }
        None => {
            for address in LOOPBACK {
                let address = SocketAddr::new(address, COLLECTD_PORT);
                if let Err(error) = sockets.add_datagrams(address, None) {
                    sockets.notices.push(format!("{error:#}"));
                }
            }
        }
    }
    if let Some(path) = &config.listen.unixsock {
        let shown = path.display().to_string();
        let socket = sockets.bind_unix(path, group);
        let socket = socket.map_err(|error| cannot(&shown, &error))?;
        sockets.unixsock = Some((socket, shown));
    }
    for &address in config.listen.traps.iter().flatten() {
        check_traps(address, config)?;
        let socket = bind_udp(address, TRAP_QUEUE_BYTES);
        let socket = socket.map_err(|error| cannot(&address, &error))?;
        sockets.traps.push((socket, address));
    }
    for addresses in &config.listen.lines {
        sockets.lines.push(LinePlaces::open(addresses, config)?);
    }
    sockets.requests = sockets.for_own(&dir.join(KEEPER_SOCKET), reader);
    sockets.writes = sockets.for_own(&dir.join(WRITES), reader);
    if let Err(error) = sockets.add_admin(&dir.join(ADMIN)) {
        sockets.notices.push(format!("{error:#}"));
    }
    Ok(sockets)
}

/// Refuses unprotected addresses: datagrams can have forged senders.
fn check_datagrams(address: SocketAddr, config: &Config) -> Result<()> {
    if address.ip().is_loopback() || config.insecure {
        return Ok(());
    }
    if config.collectd.security == Security::None {
        bail!(
            "cannot listen on {address}: anybody could send; give [collectd] security = \"sign\" and auth_file, or insecure = true"
        );
    }
    if config.collectd.allow.is_empty() {
        bail!(
            "cannot listen on {address}: give [collectd] allow, the networks of the senders, or insecure = true"
        );
    }
    Ok(())
}

/// Refuses unprotected addresses for traps.
fn check_traps(address: SocketAddr, config: &Config) -> Result<()> {
    let keys = &config.traps;
    let is_guarded = keys.auth_file.is_some() && !keys.allow.is_empty();
    if !address.ip().is_loopback() && !config.insecure && !is_guarded {
        bail!(
            "cannot listen on {address}: anybody could send; give [traps] auth_file and allow, the networks of the devices, or insecure = true"
        );
    }
    Ok(())
}

/// Refuses unprotected addresses: rrdcached's protocol has no passwords.
fn check(place: &ListenAddress, config: &Config) -> Result<()> {
    match place {
        ListenAddress::Address(address) if !address.ip().is_loopback() && !config.insecure => {
            bail!(
                "cannot listen on {address}: anybody could write there; give insecure = true if that is what you want"
            )
        }
        _ => Ok(()),
    }
}

fn cannot(place: &dyn Display, error: &io::Error) -> anyhow::Error {
    anyhow!("cannot listen on {place}: {}", strerror(error))
}

impl LinePlaces {
    /// Opens both sockets of each address. Lines say nothing of their senders.
    fn open(addresses: &LineAddresses, config: &Config) -> Result<LinePlaces> {
        let mut places = LinePlaces::default();
        for &address in addresses.iter().flatten() {
            if !address.ip().is_loopback() && !config.insecure {
                bail!(
                    "cannot listen on {address}: anybody could send; give insecure = true if that is what you want"
                );
            }
            let socket = bind_udp(address, QUEUE_BYTES);
            let socket = socket.map_err(|error| cannot(&address, &error))?;
            places.datagrams.push((socket, address));
            let socket = listen::bind_tcp(address);
            let socket = socket.map_err(|error| cannot(&address, &error))?;
            places.streams.push(socket);
        }
        Ok(places)
    }

    /// Numbers for the keeper.
    pub(super) fn order(&self, settings: &LineSettings) -> LineOrder {
        let datagrams = self.datagrams.iter();
        LineOrder {
            settings: settings.values().to_vec(),
            datagrams: datagrams
                .map(|(socket, address)| (socket.socket.as_raw_fd(), address.to_string()))
                .collect(),
            streams: self
                .streams
                .iter()
                .map(|socket| socket.as_raw_fd())
                .collect(),
        }
    }

    /// Addresses in words; `None`: there are none.
    pub(super) fn shown(&self, protocol: &str) -> Option<String> {
        let addresses: Vec<_> = self
            .datagrams
            .iter()
            .map(|(_, address)| address.to_string())
            .collect();
        let places = addresses.join(", ");
        (!places.is_empty()).then(|| format!("{protocol}'s lines on {places} (UDP and TCP)"))
    }

    /// All sockets.
    pub(super) fn files(self) -> impl Iterator<Item = OwnedFd> {
        let datagrams = self.datagrams.into_iter().map(|(socket, _)| socket.socket);
        datagrams.chain(self.streams)
    }
}

impl Sockets {
    fn none() -> Result<Sockets> {
        let reported = memfd_create("reported", MemfdFlags::CLOEXEC);
        let reported = reported.map_err(io::Error::from);
        Ok(Sockets {
            requests: None,
            writes: None,
            admin: None,
            rrdcached: Vec::new(),
            shown: Vec::new(),
            collectd: Vec::new(),
            unixsock: None,
            traps: Vec::new(),
            lines: Vec::new(),
            reported: reported.context("cannot make a file in memory")?,
            names: Vec::new(),
            notices: Vec::new(),
        })
    }

    /// Adds a socket for collectd's datagrams; `interface`: that of a multicast group.
    fn add_datagrams(&mut self, address: SocketAddr, interface: Option<&str>) -> Result<()> {
        let socket = match address.ip().is_multicast() {
            true => bind_udp_group(address, interface, QUEUE_BYTES),
            false => bind_udp(address, QUEUE_BYTES),
        };
        let socket = socket.map_err(|error| cannot(&address, &error))?;
        self.collectd.push((socket, address));
        Ok(())
    }

    /// A socket for kymo's own processes; a failure is reported.
    fn for_own(&mut self, path: &Path, reader: Option<u32>) -> Option<OwnedFd> {
        let socket = self.bind_unix(path, reader);
        let socket = socket.map_err(|error| cannot(&path.display(), &error));
        let failed = |error| self.notices.push(format!("{error:#}"));
        socket.map_err(failed).ok()
    }

    fn add_admin(&mut self, path: &Path) -> Result<()> {
        let bound = listen::bind_unix_for_owner(path);
        let socket = bound.and_then(|socket| self.begin(path, socket));
        self.admin = Some(socket.map_err(|error| cannot(&path.display(), &error))?);
        Ok(())
    }

    fn bind_unix(&mut self, path: &Path, group: Option<u32>) -> io::Result<OwnedFd> {
        let socket = listen::bind_unix_for_group(path, group)?;
        self.begin(path, socket)
    }

    fn begin(&mut self, path: &Path, socket: OwnedFd) -> io::Result<OwnedFd> {
        self.names.push(OwnName::of(path)?);
        listen::listen(&socket)?;
        Ok(socket)
    }

    fn add(&mut self, place: &ListenAddress, group: Option<u32>) -> Result<()> {
        let made = match place {
            ListenAddress::Path(path) => self.bind_unix(path, group),
            ListenAddress::Address(address) => listen::bind_tcp(*address),
        };
        let socket = made.map_err(|error| cannot(place, &error))?;
        self.rrdcached.push(socket);
        self.shown.push(place.to_string());
        Ok(())
    }
}
