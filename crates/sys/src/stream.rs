//! A stream to another process: over a unix socket, or over TCP to the first of several addresses that takes it.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// The stream.
#[derive(Debug)]
pub enum Stream {
    /// On this machine.
    Unix(UnixStream),
    /// Anywhere. Written bytes are sent at once, because requests and answers follow each other.
    Tcp(TcpStream),
}

impl Stream {
    /// To a unix socket.
    pub fn to_unix(socket: &Path) -> io::Result<Stream> {
        UnixStream::connect(socket).map(Stream::Unix)
    }

    /// To the first of these addresses that can be had, each tried for as long as this; `None`: as long as the kernel tries. The error
    /// is that of the last one.
    pub fn to_tcp(
        addresses: impl Iterator<Item = SocketAddr>,
        at_most: Option<Duration>,
    ) -> io::Result<Stream> {
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for address in addresses {
            let connected = match at_most {
                Some(limit) => TcpStream::connect_timeout(&address, limit),
                None => TcpStream::connect(address),
            };
            match connected {
                Ok(stream) => {
                    // Without it an answer comes later, and that is all.
                    let _ = stream.set_nodelay(true);
                    return Ok(Stream::Tcp(stream));
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// How long a read and a write may take from now on.
    pub fn set_patience(&self, limit: Duration) -> io::Result<()> {
        match self {
            Stream::Unix(stream) => stream
                .set_read_timeout(Some(limit))
                .and_then(|()| stream.set_write_timeout(Some(limit))),
            Stream::Tcp(stream) => stream
                .set_read_timeout(Some(limit))
                .and_then(|()| stream.set_write_timeout(Some(limit))),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.read(buffer),
            Stream::Tcp(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.write(bytes),
            Stream::Tcp(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// No process listens at the first address.
    #[test]
    fn the_first_address_that_answers_is_taken() {
        let [gone, there] = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let addresses = [&gone, &there].map(|of| of.local_addr().unwrap());
        drop(gone);
        for at_most in [None, Some(Duration::from_secs(5))] {
            let mut stream = Stream::to_tcp(addresses.into_iter(), at_most).unwrap();
            stream.set_patience(Duration::from_millis(20)).unwrap();
            let (mut other, _) = there.accept().unwrap();
            let mut bytes = [0; 4];
            let error = stream.read(&mut bytes).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::WouldBlock, "{error}");
            stream.write_all(b"PING").unwrap();
            other.read_exact(&mut bytes).unwrap();
            assert_eq!(&bytes, b"PING");
            let refused = Stream::to_tcp(addresses.into_iter().take(1), at_most).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        }
        let nowhere = Stream::to_tcp(std::iter::empty(), None).unwrap_err();
        assert_eq!(nowhere.kind(), io::ErrorKind::NotFound);
    }
}
