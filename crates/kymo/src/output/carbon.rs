//! `--export graphite`: lines of values to a carbon daemon by TCP. Without a connection a new one is tried with each interval.
//! Lost values are counted, and reported at most once a minute. Sampling has a thread of its own and never waits for this.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use kymo_sys::talk;
use kymo_view::sink::{Sink, To};

/// carbon's port.
const PORT: u16 = 2003;
/// Longest time for a connection or a write.
const PATIENCE: Duration = Duration::from_secs(5);
const QUIET: Duration = Duration::from_secs(60);

/// A connection to a carbon daemon.
pub(crate) struct Carbon {
    address: String,
    stream: Option<TcpStream>,
    lost: u64,
    reported: Option<Instant>,
}

impl Carbon {
    /// A connection to `HOST[:PORT]`, not made yet.
    pub(crate) fn new(address: &str) -> Result<Carbon, String> {
        let with_port = match address.rsplit_once(':') {
            Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => {
                address.to_string()
            }
            _ if address.is_empty() || address.contains(['=', ' ']) => {
                return Err(format!(
                    "cannot use --export graphite,{}: it takes graphite,HOST[:PORT]",
                    address.escape_debug()
                ));
            }
            _ => format!("{address}:{PORT}"),
        };
        Ok(Carbon {
            address: with_port,
            stream: None,
            lost: 0,
            reported: None,
        })
    }

    fn connected(&mut self) -> io::Result<&mut TcpStream> {
        if self.stream.is_none() {
            self.stream = Some(connect(&self.address)?);
        }
        self.stream
            .as_mut()
            .ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    fn say(&mut self, error: &io::Error) {
        self.lost += 1;
        if self
            .reported
            .is_some_and(|reported| reported.elapsed() < QUIET)
        {
            return;
        }
        self.reported = Some(Instant::now());
        talk::say(format_args!(
            "kymo: cannot send to {}: {error}; {} intervals are lost so far",
            self.address, self.lost
        ));
    }
}

fn connect(address: &str) -> io::Result<TcpStream> {
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    let addresses: Vec<SocketAddr> = address.to_socket_addrs()?.collect();
    for address in addresses {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => {
                stream.set_write_timeout(Some(PATIENCE))?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

impl Sink for Carbon {
    fn write(&mut self, _: To, bytes: &[u8]) -> io::Result<()> {
        let sent = self.connected().and_then(|stream| stream.write_all(bytes));
        if let Err(error) = sent {
            // Half a line may have been sent, so the next line begins on a new connection.
            self.stream = None;
            self.say(&error);
        }
        Ok(())
    }

    fn interval(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for (text, expect) in [
            ("carbon", Some("carbon:2003")),
            ("carbon:2004", Some("carbon:2004")),
            ("[::1]:2003", Some("[::1]:2003")),
            ("", None),
            ("f=2", None),
        ] {
            let carbon = Carbon::new(text).ok().map(|carbon| carbon.address);
            assert_eq!(carbon.as_deref(), expect, "{text}");
        }
    }
}
