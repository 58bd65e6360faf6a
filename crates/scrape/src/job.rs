//! A job: targets that are scraped alike.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::header::HeaderValue;
use serde::{Deserialize, Serialize};

use super::relabel::RelabelRule;
use super::secret::Secret;

/// Most samples of a scrape that a job may allow.
pub const SAMPLES_MAX: u64 = 1_000_000;

/// A job, as the guardian hands it over: without a file to read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScrapeJob {
    /// Name, which is the label `job`.
    pub name: String,
    /// URLs of the targets.
    pub urls: Vec<String>,
    /// Milliseconds from one scrape to the next.
    pub interval_ms: u64,
    /// Milliseconds that a scrape may take.
    pub timeout_ms: u64,
    /// Labels of all series, besides `job` and `instance`.
    pub labels: BTreeMap<String, String>,
    /// Rules that change labels of samples, or drop them.
    pub relabel: Vec<RelabelRule>,
    /// True: labels of samples win over those of the target.
    pub honor_labels: bool,
    /// True: samples keep their own times.
    pub honor_timestamps: bool,
    /// Most samples of a scrape; one with more fails.
    pub samples: u64,
    /// Credentials that targets are shown.
    pub credentials: Credentials,
    /// Certificates.
    pub tls: TlsTexts,
}

/// Credentials that targets are shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Credentials {
    /// None.
    #[default]
    None,
    /// `Authorization: Basic`.
    Basic {
        /// The user.
        user: String,
        /// The password.
        password: Secret,
    },
    /// `Authorization: Bearer`.
    Bearer {
        /// The token.
        token: Secret,
    },
}

impl Credentials {
    /// Value of the header `Authorization`; `None`: requests have none.
    pub fn authorization(&self) -> Result<Option<HeaderValue>, String> {
        let text = match self {
            Credentials::None => return Ok(None),
            Credentials::Basic { user, password } => {
                let pair = format!("{user}:{}", password.text());
                format!("Basic {}", STANDARD.encode(pair))
            }
            Credentials::Bearer { token } => format!("Bearer {}", token.text()),
        };
        let value = HeaderValue::from_str(&text);
        let mut value = value.map_err(|_| "the token has bytes that no header may have")?;
        value.set_sensitive(true);
        Ok(Some(value))
    }
}

/// Certificates and a key, PEM.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsTexts {
    /// Certificates of authorities that targets' certificates are signed by.
    pub authorities: String,
    /// Certificate that targets are shown; empty: none.
    pub cert: String,
    /// Key of this certificate.
    pub key: Secret,
    /// Name that targets' certificates have; empty: the host in the URL.
    pub server_name: String,
}
