//! TLS to targets: authorities, and a certificate that targets are shown.

use std::sync::Arc;

use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::job::TlsTexts;

/// Fails if certificates or the key cannot be used.
pub fn check(tls: &TlsTexts) -> Result<(), String> {
    client_config(tls).map(|_| ())
}

fn certificates(what: &str, text: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    let read = read.map_err(|error| format!("cannot use {what}: {error}"))?;
    match read.is_empty() {
        true => Err(format!("cannot use {what}: it holds no certificate")),
        false => Ok(read),
    }
}

/// Settings of connections.
pub fn client_config(tls: &TlsTexts) -> Result<Arc<ClientConfig>, String> {
    let mut roots = RootCertStore::empty();
    // A system's bundle may hold certificates that this library does not know.
    let all = certificates("tls_ca", &tls.authorities)?;
    let (known, _) = roots.add_parsable_certificates(all);
    if known == 0 {
        return Err("cannot use tls_ca: it holds no certificate of an authority".into());
    }
    let cannot = |error| format!("cannot use TLS: {error}");
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(cannot)?
        .with_root_certificates(roots);
    if tls.cert.is_empty() {
        return Ok(Arc::new(config.with_no_client_auth()));
    }
    let cert = certificates("tls_cert", &tls.cert)?;
    let key = PrivateKeyDer::from_pem_slice(tls.key.text().as_bytes())
        .map_err(|error| format!("cannot use tls_key: {error}"))?;
    let config = config.with_client_auth_cert(cert, key);
    let config = config.map_err(|error| format!("cannot use tls_cert and tls_key: {error}"))?;
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Secret;

    #[test]
    fn texts_that_are_no_certificates_are_refused() {
        let begin = "-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n";
        for (authorities, why) in [
            ("", "cannot use tls_ca: it holds no certificate"),
            ("-----BEGIN CERTIFICATE-----\n", "cannot use tls_ca: "),
            (
                begin,
                "cannot use tls_ca: it holds no certificate of an authority",
            ),
        ] {
            let tls = TlsTexts {
                authorities: authorities.into(),
                cert: begin.into(),
                key: Secret::of_file("secret"),
                ..TlsTexts::default()
            };
            let error = check(&tls).expect_err(why);
            assert!(error.starts_with(why), "{error}");
            assert!(!format!("{tls:?}").contains("secret"));
        }
    }
}
