//! A connection to a target: by TCP or TLS, with HTTP/1.1 on it.

use std::error::Error;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use kymo_base::errno::{strerror, without_numbers};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

use super::url::{Scheme, ScrapeUrl};

/// Bytes of the head of an answer.
const HEAD_MAX: usize = 64 << 10;
/// Addresses of a host that are tried.
const ADDRESSES_MAX: usize = 4;
/// Names that are resolved at a time: each takes a thread, for as long as the name service takes.
const RESOLVED_AT_ONCE: usize = 32;
/// Error of a connection that landlock refuses, and of one that a firewall or systemd refuses.
const EACCES: i32 = 13;
const EPERM: i32 = 1;

/// Limits that all targets share.
#[derive(Clone)]
pub struct Shared {
    resolving: Arc<Semaphore>,
}

impl Default for Shared {
    /// Nothing is in use.
    fn default() -> Shared {
        Shared {
            resolving: Arc::new(Semaphore::new(RESOLVED_AT_ONCE)),
        }
    }
}

/// Settings of TLS, and the name that a certificate has.
#[derive(Clone)]
pub struct TlsClient {
    /// Settings.
    pub config: Arc<ClientConfig>,
    /// Name in certificates; empty: the host.
    pub server_name: String,
}

/// An open connection.
pub struct Connection {
    sender: SendRequest<Full<Bytes>>,
    task: JoinHandle<()>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Connection {
    /// Connects within a time.
    pub async fn open(
        url: &ScrapeUrl,
        tls: Option<&TlsClient>,
        shared: &Shared,
        within: Duration,
    ) -> Result<Connection, String> {
        let addresses = resolve(url.host(), url.port(), shared).await?;
        let stream = connect(&addresses, within).await?;
        // A request is one small packet.
        let _slower = stream.set_nodelay(true);
        match (url.scheme(), tls) {
            (Scheme::Http, _) => Connection::over(stream).await,
            (Scheme::Https, Some(tls)) => {
                let name = match tls.server_name.as_str() {
                    "" => url.host(),
                    name => name,
                };
                let name = ServerName::try_from(name.to_string())
                    .map_err(|_| format!("cannot use TLS: {name:?} is not a name of a server"))?;
                let stream = TlsConnector::from(tls.config.clone()).connect(name, stream);
                let stream = stream.await;
                let stream = stream.map_err(|error| {
                    let cause = strerror(&error);
                    format!("cannot use TLS: {cause}")
                })?;
                Connection::over(stream).await
            }
            (Scheme::Https, None) => Err("cannot use TLS: the job has no tls_ca".into()),
        }
    }

    async fn over<S>(stream: S) -> Result<Connection, String>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let mut builder = Builder::new();
        builder.max_buf_size(HEAD_MAX);
        let handshake = builder.handshake(TokioIo::new(stream)).await;
        let (sender, connection) = handshake.map_err(|error| words(&error))?;
        let task = tokio::spawn(async move {
            // The request that waits for its answer gets the error.
            let _error = connection.await;
        });
        Ok(Connection { sender, task })
    }

    /// Sends a request; the head of the answer.
    pub async fn ask(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, String> {
        self.sender.ready().await.map_err(|error| words(&error))?;
        let answer = self.sender.send_request(request).await;
        answer.map_err(|error| words(&error))
    }

    /// True if the other end has not closed it, as far as is known.
    pub fn is_open(&self) -> bool {
        !self.sender.is_closed()
    }
}

/// Addresses of a host.
pub(crate) async fn resolve(
    host: &str,
    port: u16,
    shared: &Shared,
) -> Result<Vec<SocketAddr>, String> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let host = host.to_string();
    let permit = shared.resolving.clone().acquire_owned().await;
    let look_up = tokio::task::spawn_blocking(move || {
        // The thread outlives a target that waits no longer.
        let _permit = permit;
        let found = (host.as_str(), port).to_socket_addrs();
        found.map(|found| found.take(ADDRESSES_MAX).collect::<Vec<_>>())
    });
    let found = match look_up.await {
        Ok(Ok(found)) => found,
        Ok(Err(error)) => return Err(format!("cannot resolve its name: {}", strerror(&error))),
        Err(_) => return Err("cannot resolve its name: the look-up failed".into()),
    };
    match found.is_empty() {
        true => Err("cannot resolve its name: it has no address".into()),
        false => Ok(found),
    }
}

/// Tries one address after the other; each but the last one has a part of the time.
async fn connect(addresses: &[SocketAddr], within: Duration) -> Result<TcpStream, String> {
    let mut last = "it has no address".to_string();
    for (at, address) in addresses.iter().enumerate() {
        let part = match at + 1 == addresses.len() {
            true => within,
            false => within / 4,
        };
        match timeout(part, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => last = connect_cause(&error),
            Err(_) => last = "no answer".into(),
        }
    }
    Err(format!("cannot connect: {last}"))
}

fn connect_cause(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(EACCES) => "this process may connect to ports of configured targets only".into(),
        Some(EPERM) => "a packet filter of this machine refuses it".into(),
        Some(_) | None => strerror(error),
    }
}

/// An error of hyper with its cause.
pub fn words(error: &hyper::Error) -> String {
    let cause = error.source().map(|cause| format!(": {cause}"));
    let text = format!("{error}{}", cause.unwrap_or_default());
    format!("cannot read the answer: {}", without_numbers(text))
}
