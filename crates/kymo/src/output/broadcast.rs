//! `-A`: what is shown live also goes to clients. A thread of its own has the sockets, none of which it waits for: the view hands
//! over what each interval shows, and a client that does not read it is dropped and counted.

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

/// What stands behind each interval of an export on a socket, as collectl has it.
const END_OF_EXPORT: &[u8] = b">>><<<\n";

/// What goes to clients.
pub(crate) struct Broadcast {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    /// The socket's name, to be taken away at the end.
    name: Option<OwnName>,
    /// What is written before each line: the host's name, for one client that hears several hosts.
    prefix: Vec<u8>,
    /// Whether there is one client alone, without which nothing is to be done.
    is_client: bool,
    /// Whether the terminal shows it as well.
    echo: bool,
    is_open: bool,
    marks_ends: bool,
    begins_with_head: bool,
    head: Arc<[u8]>,
    batch: Vec<u8>,
}

/// How it is sent.
pub(crate) struct Manner {
    /// The host's name.
    pub(crate) host: String,
    /// Whether the terminal shows it as well.
    pub(crate) echo: bool,
    /// Whether a mark stands behind each interval.
    pub(crate) marks_ends: bool,
    /// Nothing is said of where clients are served.
    pub(crate) quiet: bool,
}

impl Broadcast {
    /// Begins to serve. While it makes a socket, no other thread may make files.
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

    /// Whether others than this user may see it.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Whether the terminal shows it as well.
    pub(crate) fn echoes(&self) -> bool {
        self.echo
    }

    /// Takes bytes of the interval that is being shown.
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

    /// Takes what stands over the columns: whoever comes later sees it first.
    pub(crate) fn put_head(&mut self, bytes: &[u8]) {
        self.begins_with_head |= self.batch.is_empty();
        self.head = bytes.into();
        self.put(bytes);
    }

    /// An interval is complete: clients get it. Fails where the one client has gone.
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
            // Somebody else's folder may not let go of it; then it is replaced by whoever listens there next.
            let _ = name.remove();
        }
        self.shared.end();
        if let Some(thread) = self.thread.take() {
            // It ends by itself, and has said what was wrong.
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
