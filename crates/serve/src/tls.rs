//! TLS for a hub that listens beyond loopback: a certificate chain and its key, as PEM texts. The hub
//! gets the texts and opens no file for them.

use std::fmt;
use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Certificate and key of the server.
#[derive(Clone)]
pub struct Tls {
    /// Certificates in PEM: the server's, and those between it and the authority's.
    pub cert: String,
    /// Private key of the server's certificate, PEM.
    pub key: String,
}

impl fmt::Debug for Tls {
    /// Shows no key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

impl Tls {
    /// Fails if certificate and key do not fit together.
    pub fn check(&self) -> Result<(), String> {
        self.acceptor().map(|_| ())
    }

    pub(crate) fn acceptor(&self) -> Result<TlsAcceptor, String> {
        let cannot = |what: &str, cause: String| format!("cannot use {what}: {cause}");
        let certificates = CertificateDer::pem_slice_iter(self.cert.as_bytes())
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| cannot("tls_cert", error.to_string()))?;
        if certificates.is_empty() {
            return Err(cannot("tls_cert", "it holds no certificate".into()));
        }
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes())
            .map_err(|error| cannot("tls_key", error.to_string()))?;
        // TLS 1.2 and 1.3; older versions are not built in.
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|config| {
                config
                    .with_no_client_auth()
                    .with_single_cert(certificates, key)
            })
            .map_err(|error| cannot("tls_cert and tls_key", error.to_string()))?;
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_pem_is_refused() {
        let begin = "-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n";
        for (cert, key, start) in [
            ("", "", "cannot use tls_cert: it holds no certificate"),
            ("-----BEGIN CERTIFICATE-----\n", "", "cannot use tls_cert: "),
            (begin, "", "cannot use tls_key: "),
        ] {
            let tls = Tls {
                cert: cert.into(),
                key: key.into(),
            };
            let error = tls.check().expect_err("no PEM");
            assert!(error.starts_with(start), "{error}");
            assert!(!format!("{tls:?}").contains("BEGIN"));
        }
    }
}
