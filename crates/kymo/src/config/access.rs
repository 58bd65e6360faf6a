//! Credentials and certificates of connections that kymo opens: the same keys in `[[scrape]]`, `[[forward]]` and `[query]`.

use std::path::PathBuf;

use super::{File, quoted};

/// Keys of a table, borrowed from it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AccessKeys<'a> {
    /// User of basic authentication.
    pub user: &'a Option<String>,
    /// File with the user's password.
    pub password_file: &'a Option<PathBuf>,
    /// File with a bearer token.
    pub token_file: &'a Option<PathBuf>,
    /// Certificates of authorities, PEM; `None`: the system's.
    pub tls_ca: &'a Option<PathBuf>,
    /// Certificate that the other side is shown, PEM.
    pub tls_cert: &'a Option<PathBuf>,
    /// Key of this certificate, PEM.
    pub tls_key: &'a Option<PathBuf>,
    /// Name in certificates of the other side; `None`: the host of the URL.
    pub tls_server_name: &'a Option<String>,
}

/// The table that keys stand in, for their help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AccessTo {
    /// `[[scrape]]`
    Targets,
    /// `[[forward]]` by remote write
    Receiver,
    /// `[[forward]]` by collectd's protocol, whose packets are signed or encrypted for a user
    CollectdReceiver,
    /// `[query]`
    Upstream,
}

impl AccessTo {
    fn has_key(self, key: &str) -> bool {
        match self {
            AccessTo::Targets | AccessTo::Receiver | AccessTo::Upstream => true,
            AccessTo::CollectdReceiver => matches!(key, "user" | "password_file"),
        }
    }
}

impl AccessKeys<'_> {
    /// Checks keys that go together. The error says which.
    pub(super) fn check(&self) -> Result<(), &'static str> {
        if self.user.is_some() != self.password_file.is_some() {
            return Err("user and password_file go together");
        }
        if self.tls_cert.is_some() != self.tls_key.is_some() {
            return Err("tls_cert and tls_key go together");
        }
        Ok(())
    }

    /// Writes the keys that the table has; none has a default.
    pub(super) fn text(&self, file: &mut File, to: AccessTo) {
        let path = |path: &Option<PathBuf>| {
            let path = path.as_ref()?;
            Some(quoted(&path.to_string_lossy()))
        };
        let text = |text: &Option<String>| text.as_deref().map(quoted);
        let (word, others, of_others) = match to {
            AccessTo::Targets => ("scrape", "targets are", "targets"),
            AccessTo::Receiver | AccessTo::CollectdReceiver => {
                ("forward", "the receiver is", "the receiver")
            }
            AccessTo::Upstream => ("upstream", "the upstream is", "the upstream"),
        };
        let example = |of: &str| quoted(&format!("/etc/kymo/{word}-{of}"));
        let keys: [(&str, String, Option<String>, String); 7] = [
            (
                "user",
                match to {
                    AccessTo::CollectdReceiver => "User of signed or encrypted packets, with password_file.",
                    AccessTo::Targets | AccessTo::Receiver | AccessTo::Upstream => {
                        "User of basic authentication, with password_file."
                    }
                }
                .into(),
                text(self.user),
                quoted("kymo"),
            ),
            (
                "password_file",
                "File with the password. It and the files below are read at start and at SIGHUP, by the user that starts kymo.".into(),
                path(self.password_file),
                example("password"),
            ),
            (
                "token_file",
                "File with a bearer token, instead of a user.".into(),
                path(self.token_file),
                example("token"),
            ),
            (
                "tls_ca",
                "Certificates of authorities for https, PEM. Without it: those of the system.".into(),
                path(self.tls_ca),
                example("ca.pem"),
            ),
            (
                "tls_cert",
                format!("Certificate that {others} shown, PEM; with tls_key."),
                path(self.tls_cert),
                example("cert.pem"),
            ),
            (
                "tls_key",
                "Its private key, PEM.".into(),
                path(self.tls_key),
                example("key.pem"),
            ),
            (
                "tls_server_name",
                format!("Name in the certificates of {of_others}, if it is not the host of the URL."),
                text(self.tls_server_name),
                quoted("node.example"),
            ),
        ];
        for (name, help, value, example) in keys {
            if to.has_key(name) {
                file.key(name, &help, value.ok_or(&example));
            }
        }
    }
}
