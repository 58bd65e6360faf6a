//! Connections: plain, and by TLS with a certificate of the test.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, Error, SignatureScheme, StreamOwned,
};

use super::client::{Answer, LONG};
use kymo_tests::Scratch;

/// How clients connect.
#[derive(Clone)]
pub(super) enum Door {
    Plain,
    Tls(Arc<ClientConfig>),
}

/// A connection, and its socket, by which a test sees whether it is still open.
pub(super) struct Line {
    pub stream: Box<dyn ReadWrite>,
    pub socket: TcpStream,
}

pub(super) trait ReadWrite: Read + Write + Send {}

impl<T: Read + Write + Send> ReadWrite for T {}

impl Door {
    /// A client that connects by TLS.
    pub(super) fn tls() -> Door {
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Anyone))
            .with_no_client_auth();
        Door::Tls(Arc::new(config))
    }

    /// Connects and sends.
    pub(super) fn send(&self, address: &str, request: &str) -> Option<Line> {
        let plain = TcpStream::connect(address).ok()?;
        plain.set_read_timeout(Some(LONG)).ok()?;
        plain.set_write_timeout(Some(LONG)).ok()?;
        let socket = plain.try_clone().ok()?;
        let mut stream: Box<dyn ReadWrite> = match self {
            Door::Plain => Box::new(plain),
            Door::Tls(config) => {
                let name = ServerName::try_from("localhost").ok()?;
                let client = ClientConnection::new(config.clone(), name).ok()?;
                Box::new(StreamOwned::new(client, plain))
            }
        };
        stream.write_all(request.as_bytes()).ok()?;
        stream.flush().ok()?;
        Some(Line { stream, socket })
    }

    /// The answer to a GET on its own connection. `None`: there was no whole answer.
    pub(super) fn get(&self, address: &str, target: &str) -> Option<Answer> {
        let start = Instant::now();
        let request =
            format!("GET {target} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        let mut line = self.send(address, &request)?;
        let mut bytes = Vec::new();
        line.stream.read_to_end(&mut bytes).ok()?;
        Answer::parse(&bytes, start.elapsed())
    }
}

/// A configuration with a certificate. `None`: openssl is missing.
pub(super) fn tls_config(scratch: &Scratch) -> Option<String> {
    let (cert, key) = (scratch.text("cert.pem"), scratch.text("key.pem"));
    let request = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost";
    let made = Command::new("openssl")
        .args(request.split(' '))
        .args(["-keyout", &key, "-out", &cert])
        .stderr(Stdio::null())
        .status();
    made.ok().filter(|status| status.success())?;
    let config = scratch.text("kymo.toml");
    let text = format!("tls_cert = \"{cert}\"\ntls_key = \"{key}\"\n");
    std::fs::write(&config, text).expect("a file");
    Some(config)
}

/// Accepts any certificate.
#[derive(Debug)]
struct Anyone;

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        ring::default_provider()
            .signature_verification_algorithms
            .supported_schemes()
    }
}
