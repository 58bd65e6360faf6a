//! `-A`: clients get the live view, too. A thread has their sockets and waits for none of them: the view passes on the output of
//! each interval, and a client that does not read it is dropped and counted.

mod address;
mod hub;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::JoinHandle;

use anyhow::Context as _;
use kymo_sys::listen;
use kymo_sys::own_name::OwnName;
use kymo_sys::talk;

pub(crate) use address::{Audience, Endpoint};
use hub::{Batch, Hub, Shared};

/// Mark after each interval of an export on a socket, as in collectl.
const END_OF_EXPORT: &[u8] = b">>><<<\n";

/// Sends the output to clients.
pub(crate) struct Broadcast {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    /// Name of the socket, which is removed at the end.
    name: Option<OwnName>,
    /// Text before each line: the host's name, for one client that gets lines of several hosts.
    prefix: Vec<u8>,
    /// True if there is a single client, without which there is no work.
    is_client: bool,
    /// True if the terminal shows the output, too.
    echo: bool,
    is_open: bool,
    marks_ends: bool,
    begins_with_head: bool,
    head: Arc<[u8]>,
    batch: Vec<u8>,
}

/// Options of sending.
pub(crate) struct Manner {
    /// The host's name.
    pub(crate) host: String,
    /// True if the terminal shows the output, too.
    pub(crate) echo: bool,
    /// True if a mark follows each interval.
    pub(crate) marks_ends: bool,
    /// True if the addresses for clients are not printed.
    pub(crate) quiet: bool,
}

impl Broadcast {
    /// Begins to serve. While this makes a socket, no other thread may make files.
    pub(crate) fn begin(place: &Endpoint, manner: Manner) -> anyhow::Result<Broadcast> {
        let (mut listeners, mut clients) = (Vec::new(), Vec::new());
        let (mut name, mut where_from) = (None, Vec::new());
        match place {
            Endpoint::Unix(path) => {
                let cannot = || format!("cannot listen at {}", path.display());
                let socket = listen::bind_unix_for_owner(path).with_context(cannot)?;
                listen::listen(&socket).with_context(cannot)?;
                name = OwnName::of(path).ok();
                where_from.push(path.display().to_string());
                listeners.push(socket);
            }
            Endpoint::Tcp(addresses) => listeners = bind_all(addresses, &mut where_from)?,
            Endpoint::Peer(peer) => clients.push(peer.connect()?),
        }
        if !manner.quiet && !where_from.is_empty() {
            talk::say(format_args!(
                "kymo: clients are served at {}",
                where_from.join(" and ")
            ));
        }
        let is_client = !clients.is_empty();
        let shared = Arc::new(Shared::new().context("cannot serve clients")?);
        let hub = Hub::new(shared.clone(), listeners, clients);
        let thread = std::thread::Builder::new().name("clients".into());
        let thread = thread
            .spawn(move || hub.run())
            .context("cannot start the clients thread")?;
        Ok(Broadcast {
            shared,
            thread: Some(thread),
            name,
            prefix: match is_client {
                true => format!("{} ", manner.host).into_bytes(),
                false => Vec::new(),
            },
            is_client,
            echo: manner.echo,
            is_open: place.is_open(),
            marks_ends: manner.marks_ends,
            begins_with_head: false,
            head: Arc::default(),
            batch: Vec::new(),
        })
    }

    /// True if other users may see the output.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open
    }

    /// True if the terminal shows the output, too.
    pub(crate) fn echoes(&self) -> bool {
        self.echo
    }

    /// Adds bytes to the current interval.
    pub(crate) fn put(&mut self, bytes: &[u8]) {
        if self.prefix.is_empty() {
            return self.batch.extend_from_slice(bytes);
        }
        for line in bytes.split_inclusive(|&byte| byte == b'\n') {
            let begins = self.batch.last().is_none_or(|&byte| byte == b'\n');
            if begins {
                self.batch.extend_from_slice(&self.prefix);
            }
            self.batch.extend_from_slice(line);
        }
    }

    /// Adds the head of the columns, which later clients get first.
    pub(crate) fn put_head(&mut self, bytes: &[u8]) {
        self.begins_with_head |= self.batch.is_empty();
        self.head = bytes.into();
        self.put(bytes);
    }

    /// Sends a complete interval to clients. Fails if the only client is gone.
    pub(crate) fn interval(&mut self) -> io::Result<()> {
        if self.batch.is_empty() {
            return Ok(());
        }
        if self.marks_ends {
            self.batch.extend_from_slice(END_OF_EXPORT);
        }
        let head = match self.begins_with_head {
            true => Arc::default(),
            false => self.head.clone(),
        };
        self.begins_with_head = false;
        let bytes = std::mem::take(&mut self.batch).into();
        let clients = self.shared.send(Batch { head, bytes });
        match self.is_client && clients == 0 {
            true => Err(io::ErrorKind::BrokenPipe.into()),
            false => Ok(()),
        }
    }
}

impl Drop for Broadcast {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            // Another user's folder may forbid this; then the next program that listens there replaces the socket.
            let _ = name.remove();
        }
        self.shared.end();
        if let Some(thread) = self.thread.take() {
            // The thread ends by itself, and has reported errors.
            let _ = thread.join();
        }
    }
}

fn bind_all(
    addresses: &[std::net::SocketAddr],
    named: &mut Vec<String>,
) -> anyhow::Result<Vec<OwnedFd>> {
    let (mut sockets, mut last) = (Vec::new(), None);
    for &address in addresses {
        let cannot = || format!("cannot listen at {address}");
        match listen::bind_tcp(address) {
            Ok(socket) => {
                let bound = listen::bound_to(&socket).with_context(cannot)?;
                named.push(bound.to_string());
                sockets.push(socket);
            }
            Err(error) if listen::is_missing_family(&error) => last = Some((address, error)),
            Err(error) => return Err(error).with_context(cannot),
        }
    }
    match last {
        Some((address, error)) if sockets.is_empty() => {
            Err(error).with_context(|| format!("cannot listen at {address}"))
        }
        _ => Ok(sockets),
    }
}
