//! A connection to a daemon: rrdcached or kymo, over a unix socket or TCP. It is kept from command to
//! command. [`super::request`] has the requests.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::ToSocketAddrs as _;
use std::os::unix::ffi::OsStringExt;

use kymo_base::errno::strerror;
use kymo_sys::stream::Stream;
use kymo_wire::rrdcached::reply::status_of;

use super::message::Message;
use super::path::path;

/// Most bytes of a request that a stock daemon accepts.
const REQUEST_MAX: usize = 4096;
/// Port of a daemon whose address has none.
const PORT: &str = "42217";

/// The daemon's client.
pub(super) struct Client {
    connection: Option<Connection>,
    /// `RRDCACHED_ADDRESS`, unless it is empty.
    from_environment: Option<Vec<u8>>,
    /// `RRDCACHED_STRIPPATH`.
    strip: Option<Vec<u8>>,
}

struct Connection {
    address: Vec<u8>,
    stream: BufReader<Stream>,
}

/// An answer of the daemon with a status of 0 or more; below 0 the request failed.
pub(super) struct Reply {
    /// Text after the status.
    pub message: Vec<u8>,
    /// Lines, as many as the status, without their ends.
    pub lines: Vec<Vec<u8>>,
}

/// Reason why a request has no answer.
pub(super) enum Refusal {
    /// The request has too many bytes.
    TooLong,
    /// The daemon or the connection failed; the text says why.
    Failed(Message),
}

impl From<Message> for Refusal {
    fn from(message: Message) -> Refusal {
        Refusal::Failed(message)
    }
}

impl Client {
    /// A client without a connection yet.
    pub(super) fn from_environment() -> Client {
        let variable = |name| std::env::var_os(name).map(OsStringExt::into_vec);
        let address: Option<Vec<u8>> = variable("RRDCACHED_ADDRESS");
        Client {
            connection: None,
            from_environment: address.filter(|address| !address.is_empty()),
            strip: variable("RRDCACHED_STRIPPATH"),
        }
    }

    /// Connects to this daemon, or else to the environment's. Without either, nothing changes.
    pub(super) fn connect(&mut self, daemon: Option<&[u8]>) -> Result<(), Message> {
        let address = daemon.map(<[u8]>::to_vec).or(self.from_environment.clone());
        let Some(address) = address.filter(|address| !address.is_empty()) else {
            return Ok(());
        };
        if self.connected_to() == Some(&address) {
            return Ok(());
        }
        self.connection = None;
        let stream = stream_to(&address)
            .map_err(|text| Message(format!("Unable to connect to rrdcached: {text}").into()))?;
        self.connection = Some(Connection {
            address,
            stream: BufReader::with_capacity(64 << 10, stream),
        });
        Ok(())
    }

    /// True if a command for this daemon (`None`: for no named one) uses the current connection.
    pub(super) fn is_connected(&self, daemon: Option<&[u8]>) -> bool {
        match (self.connected_to(), daemon) {
            (None, _) => false,
            (Some(_), None) => self.from_environment.is_some(),
            (Some(address), Some(daemon)) => address == daemon,
        }
    }

    /// True if there is a connection to any daemon.
    pub(super) fn is_any_connected(&self) -> bool {
        self.connection.is_some()
    }

    /// Ends the connection.
    pub(super) fn disconnect(&mut self) {
        self.connection = None;
    }

    fn connected_to(&self) -> Option<&Vec<u8>> {
        self.connection
            .as_ref()
            .map(|connection| &connection.address)
    }

    /// Sends words as one line and reads the answer.
    pub(super) fn request(&mut self, words: &[&[u8]]) -> Result<Reply, Refusal> {
        let line = line_of(words)?;
        let Some(connection) = &mut self.connection else {
            return Err(Message::from("request: not connected").into());
        };
        let sent = connection.send(&line);
        if sent.is_err() {
            self.connection = None;
            let text = "request: socket error (-1) while talking to rrdcached";
            return Err(Message::from(text).into());
        }
        match connection.read_reply() {
            Ok(reply) => reply.map_err(Refusal::Failed),
            Err(_) => {
                self.connection = None;
                let text = "request: internal error while talking to rrdcached";
                Err(Message::from(text).into())
            }
        }
    }

    /// Name of a file for the daemon. Over a unix socket, so on the same machine, it is the whole path;
    /// over TCP it is the path below the daemon's base.
    pub(super) fn path(&self, name: &[u8]) -> Result<Vec<u8>, Message> {
        let local = self
            .connected_to()
            .is_some_and(|address| address.starts_with(b"/") || address.starts_with(b"unix:"));
        if local {
            return whole_path(name);
        }
        if !name.starts_with(b"/") {
            return Ok(name.to_vec());
        }
        let strip = self.strip.as_deref();
        let stripped = strip.and_then(|strip| name.strip_prefix(strip));
        let stripped = stripped.ok_or_else(|| {
            Message::from("absolute path names not allowed when talking to a remote daemon")
        })?;
        let slashes = stripped.iter().take_while(|&&byte| byte == b'/').count();
        Ok(stripped[slashes..].to_vec())
    }
}

/// Real path of a file; for a new file, the real path of its folder and its name.
fn whole_path(name: &[u8]) -> Result<Vec<u8>, Message> {
    let real = |name: &[u8]| {
        Some(
            std::fs::canonicalize(path(name))
                .ok()?
                .into_os_string()
                .into_vec(),
        )
    };
    if let Some(found) = real(name) {
        return Ok(found);
    }
    let (dir, file) = match name.iter().rposition(|&byte| byte == b'/') {
        Some(0) => return Ok(name.to_vec()),
        Some(at) => (&name[..at], &name[at + 1..]),
        None => (&b"."[..], name),
    };
    match std::fs::canonicalize(path(dir)) {
        Ok(dir) => Ok([&dir.into_os_string().into_vec(), file].join(&b'/')),
        Err(error) => {
            let why = strerror(&error);
            Err(Message::of(&[b"realpath(", name, b"): ", why.as_bytes()]))
        }
    }
}

/// Joins words to a line, with blanks and backslashes escaped.
fn line_of(words: &[&[u8]]) -> Result<Vec<u8>, Refusal> {
    let mut line = Vec::new();
    for word in words {
        for &byte in *word {
            match byte {
                b'\n' | 0 => {
                    let text = "request: a line break cannot be sent to rrdcached";
                    return Err(Message::from(text).into());
                }
                b' ' | b'\\' => line.push(b'\\'),
                _ => {}
            }
            line.push(byte);
        }
        line.push(b' ');
    }
    if line.len() > REQUEST_MAX {
        return Err(Refusal::TooLong);
    }
    if let Some(last) = line.last_mut() {
        *last = b'\n';
    }
    Ok(line)
}

impl Connection {
    /// Sends a request. If the daemon has closed the connection, sends again on a new one.
    fn send(&mut self, line: &[u8]) -> io::Result<()> {
        if self.stream.get_mut().write_all(line).is_ok() {
            return Ok(());
        }
        let stream = stream_to(&self.address).map_err(io::Error::other)?;
        self.stream = BufReader::with_capacity(64 << 10, stream);
        self.stream.get_mut().write_all(line)
    }

    /// Reads an answer. The inner error is one that the daemon sent.
    fn read_reply(&mut self) -> io::Result<Result<Reply, Message>> {
        let line = self.read_line()?;
        let (status, message) = status_of(&line).ok_or(io::ErrorKind::InvalidData)?;
        if status < 0 {
            let text = Message::of(&[b"rrdcached@", &self.address, b": ", message]);
            return Ok(Err(text));
        }
        let mut reply = Reply {
            message: message.to_vec(),
            lines: Vec::new(),
        };
        for _ in 0..status {
            reply.lines.push(self.read_line()?);
        }
        Ok(Ok(reply))
    }

    fn read_line(&mut self) -> io::Result<Vec<u8>> {
        let mut line = Vec::new();
        if self.stream.read_until(b'\n', &mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        while let Some(b'\n' | b'\r') = line.last() {
            line.pop();
        }
        Ok(line)
    }
}

/// Connects to an address. The error is the cause in rrdtool's words.
fn stream_to(address: &[u8]) -> Result<Stream, String> {
    let socket = address.strip_prefix(b"unix:");
    if let Some(socket) = socket.or(Some(address).filter(|it| it.starts_with(b"/"))) {
        return Stream::to_unix(path(socket)).map_err(|error| strerror(&error));
    }
    let text = String::from_utf8_lossy(address);
    let (host, port) = host_and_port(&text)?;
    let failed = |words: &str, number: i32| {
        format!("failed to resolve address '{host}' (port {port}): {words} ({number})")
    };
    let number: u16 = port
        .parse()
        .map_err(|_| failed("Servname not supported for ai_socktype", -8))?;
    let found = (host, number).to_socket_addrs().map_err(|error| {
        let text = strerror(&error);
        let words = text.rsplit(": ").next().unwrap_or_default();
        let number = if words.starts_with("Temporary") {
            -3
        } else {
            -2
        };
        failed(words, number)
    })?;
    Stream::to_tcp(found, None).map_err(|error| strerror(&error))
}

/// Reads `host`, `host:port`, `[v6]` or `[v6]:port`.
fn host_and_port(address: &str) -> Result<(&str, &str), String> {
    if let Some(inside) = address.strip_prefix('[') {
        let malformed = || format!("malformed address: {address}");
        let (host, rest) = inside.split_once(']').ok_or_else(malformed)?;
        return match (rest.strip_prefix(':'), rest) {
            (Some(port), _) => Ok((host, port)),
            (None, "") => Ok((host, PORT)),
            (None, garbage) => Err(format!("garbage after address: {garbage}")),
        };
    }
    Ok(address.rsplit_once(':').unwrap_or((address, PORT)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_apart() {
        for (address, expected) in [
            ("h", Ok(("h", "42217"))),
            ("h:1", Ok(("h", "1"))),
            ("[::1]", Ok(("::1", "42217"))),
            ("[::1]:1", Ok(("::1", "1"))),
            ("[::1]1", Err("garbage after address: 1".into())),
            ("[::1", Err("malformed address: [::1".into())),
            ("::1", Ok((":", "1"))),
        ] {
            assert_eq!(host_and_port(address), expected, "{address}");
        }
    }

    #[test]
    fn a_request_is_one_line_that_fits() {
        let line = |words: &[&[u8]]| match line_of(words) {
            Ok(line) => String::from_utf8(line).unwrap(),
            Err(Refusal::TooLong) => "too long".into(),
            Err(Refusal::Failed(message)) => String::from_utf8(message.0).unwrap(),
        };
        assert_eq!(
            line(&[b"update", b"a b\\c", b"1:2"]),
            "update a\\ b\\\\c 1:2\n"
        );
        let longest = vec![b'x'; REQUEST_MAX - 6];
        assert_eq!(line(&[b"last", &longest]).len(), REQUEST_MAX);
        assert_eq!(line(&[b"lasts", &longest]), "too long");
        let broken = "request: a line break cannot be sent to rrdcached";
        assert_eq!(line(&[b"last", b"a\nquit"]), broken);
    }
}
