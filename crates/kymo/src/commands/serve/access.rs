//! Passwords, tokens and certificates of `[[scrape]]`, `[[forward]]`, `[query]` and `kymo import`, and communities of `[[device]]`. The guardian reads the files of tables,
//! and hands the contents to processes that may read none.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use kymo_scrape::{Credentials, Secret, TlsTexts, check_tls};

use crate::config::AccessKeys;

/// Most bytes of a file of passwords or certificates.
const FILE_MAX: u64 = 4 << 20;
/// Places of the authorities' certificates of Debian, Fedora, SUSE and Alpine.
const AUTHORITIES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// Credentials, with the contents of their files.
pub(crate) fn credentials(access: AccessKeys<'_>) -> Result<Credentials> {
    let secret = |path: &PathBuf| -> Result<Secret> { Ok(Secret::of_file(&read(path)?)) };
    match (access.user, access.password_file, access.token_file) {
        (Some(_), _, Some(_)) => {
            bail!("it has a user and a token_file: the other side is shown one")
        }
        (Some(user), Some(file), None) => Ok(Credentials::Basic {
            user: user.clone(),
            password: secret(file)?,
        }),
        (_, _, Some(file)) => Ok(Credentials::Bearer {
            token: secret(file)?,
        }),
        (_, _, None) => Ok(Credentials::None),
    }
}

/// Certificates, with the contents of their files; none where TLS is not needed.
pub(crate) fn tls(access: AccessKeys<'_>, needs_tls: bool) -> Result<TlsTexts> {
    if !needs_tls {
        return Ok(TlsTexts::default());
    }
    let authorities = authorities(access.tls_ca.as_deref())?;
    let optional = |path: &Option<PathBuf>| path.as_deref().map_or(Ok(String::new()), read);
    let tls = TlsTexts {
        authorities,
        cert: optional(access.tls_cert)?,
        key: Secret::of_file(&optional(access.tls_key)?),
        server_name: access.tls_server_name.clone().unwrap_or_default(),
    };
    check_tls(&tls).map_err(anyhow::Error::msg)?;
    Ok(tls)
}

/// Certificates of authorities: those of the file, or the system's.
pub(crate) fn authorities(tls_ca: Option<&Path>) -> Result<String> {
    if let Some(path) = tls_ca {
        return read(path);
    }
    let mut places = AUTHORITIES.iter().map(Path::new);
    match places.find(|place| place.exists()) {
        Some(place) => read(place),
        None => bail!("there are no certificates of authorities on this system; name some: tls_ca"),
    }
}

/// The text of a file.
pub(super) fn read(path: impl AsRef<Path>) -> Result<String> {
    let path = path.as_ref();
    let cannot = || format!("cannot read {}", path.display());
    let mut text = String::new();
    let mut file = File::open(path).with_context(cannot)?.take(FILE_MAX);
    file.read_to_string(&mut text).with_context(cannot)?;
    Ok(text)
}
