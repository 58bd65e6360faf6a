//! The daemon's sockets: those of the service manager, or those of `-l`. A socket that cannot be made is
//! reported and skipped, as in stock.

use kymo_base::errno::strerror;
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use kymo_base::name::DisplayName;
use kymo_ingest::rrdcached::ListeningSocket;
use kymo_sys::own_name::OwnName;
use kymo_sys::sure_folder::SureFolder;
use kymo_sys::{listen, privilege};

use super::options::{Address, Options};

/// Port of `-L`, and of addresses without a port.
const PORT: u16 = 42217;

/// Opens the sockets of `-l`.
pub(super) fn open(options: &Options, complain: &mut dyn FnMut(&str)) -> Vec<ListeningSocket> {
    let mut listeners = Vec::new();
    for address in &options.addresses {
        let text = address.text.as_slice();
        match text.strip_prefix(b"unix:") {
            Some(path) => unix(path, address, &mut listeners, complain),
            None if text.starts_with(b"/") => unix(text, address, &mut listeners, complain),
            None => network(address, &mut listeners, complain),
        }
    }
    listeners
}

/// Sockets that the service manager hands to this process. Must be called before a fork.
pub(super) fn inherited(options: &Options, complain: &mut dyn FnMut(&str)) -> Vec<ListeningSocket> {
    let mut listeners = Vec::new();
    for socket in privilege::inherited_sockets() {
        match listen::adopt(&socket) {
            Ok(()) => listeners.push(ListeningSocket {
                socket,
                permissions: options.last_permissions,
                name: None,
            }),
            Err(error) => complain(&format!(
                "open_listen_sockets_systemd: problem getting fd: {}",
                strerror(&error)
            )),
        }
    }
    listeners
}

fn unix(
    path: &[u8],
    address: &Address,
    listeners: &mut Vec<ListeningSocket>,
    complain: &mut dyn FnMut(&str),
) {
    let path = Path::new(OsStr::from_bytes(path));
    if let Err((what, error)) = make_folder(path) {
        let what = DisplayName(what.as_os_str().as_bytes());
        complain(&format!(
            "Failed to create socket directory '{what}': {}",
            strerror(&error)
        ));
        return;
    }
    let shown = DisplayName(path.as_os_str().as_bytes());
    let socket = match listen::bind_unix(path) {
        Ok(socket) => socket,
        Err(error) => {
            let cause = strerror(&error);
            return complain(&format!("rrdcached: bind({shown}) failed: {cause}."));
        }
    };
    share(path, address, complain);
    match listen::listen(&socket) {
        Ok(()) => listeners.push(ListeningSocket {
            socket,
            permissions: address.permissions,
            // The socket exists; if its name cannot be noted, it stays at the end.
            name: OwnName::of(path).ok(),
        }),
        Err(error) => {
            let cause = strerror(&error);
            complain(&format!("rrdcached: listen({shown}) failed: {cause}."));
            // The socket was made a moment ago.
            let _ = std::fs::remove_file(path);
        }
    }
}

fn make_folder(path: &Path) -> Result<(), (&Path, io::Error)> {
    let folder = path.parent().unwrap_or(Path::new(""));
    if folder.as_os_str().is_empty() {
        return Ok(());
    }
    let made = SureFolder::make(folder, 0o777, &[]);
    made.map(drop).map_err(|error| (folder, error))
}

/// Sets group and mode of a socket, as `-s` and `-m` say.
fn share(path: &Path, address: &Address, complain: &mut dyn FnMut(&str)) {
    if let Some(gid) = address.group
        && let Err(error) = listen::share_with_group(path, gid)
    {
        complain(&format!(
            "rrdcached: failed to set socket group permissions ({})",
            strerror(&error)
        ));
    }
    if let Some(mode) = address.mode
        && let Err(error) = listen::set_mode(path, mode)
    {
        complain(&format!(
            "rrdcached: failed to set socket file permissions ({mode:o}): {}",
            strerror(&error)
        ));
    }
}

fn network(
    address: &Address,
    listeners: &mut Vec<ListeningSocket>,
    complain: &mut dyn FnMut(&str),
) {
    let text = String::from_utf8_lossy(&address.text).into_owned();
    let (host, port) = match host_and_port(&text) {
        Ok(found) => found,
        Err(line) => return complain(&line),
    };
    let found = listen::addresses(&host, port);
    let found = match found {
        Ok(found) => found,
        Err(error) => {
            let cause = strerror(&error);
            let cause = cause.rsplit(": ").next().unwrap_or_default();
            return complain(&format!("rrdcached: getaddrinfo({host}) failed: {cause}"));
        }
    };
    let bound: Vec<io::Result<OwnedFd>> = found.into_iter().map(listen::bind_tcp).collect();
    let any = bound.iter().any(Result::is_ok);
    for socket in bound {
        match socket {
            Ok(socket) => listeners.push(ListeningSocket {
                socket,
                permissions: address.permissions,
                name: None,
            }),
            // A host may have addresses of a family that this machine lacks.
            Err(error) if any && listen::is_missing_family(&error) => {}
            Err(error) => {
                let cause = strerror(&error);
                complain(&format!("rrdcached: bind({text}) failed: {cause}."));
            }
        }
    }
}

/// Reads `host`, `host:port`, `:port`, `[v6]`, `[v6]:port`; the error is in stock's words.
fn host_and_port(text: &str) -> Result<(String, u16), String> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest
                .split_once(']')
                .ok_or_else(|| format!("rrdcached: Malformed address: {text}"))?;
            match (rest, rest.strip_prefix(':')) {
                ("", _) => (host, None),
                (_, Some(port)) => (host, Some(port)),
                _ => return Err(format!("rrdcached: Garbage after address: {rest}")),
            }
        }
        None => match text.rsplit_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let number = port.map_or(Some(PORT), |port| port.parse().ok());
    let number = number.ok_or_else(|| {
        format!("rrdcached: getaddrinfo({host}) failed: Servname not supported for ai_socktype")
    })?;
    Ok((host.to_string(), number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_hosts_and_ports() {
        for (text, host, port) in [
            ("", "", 42217),
            ("localhost", "localhost", 42217),
            ("localhost:1", "localhost", 1),
            (":7", "", 7),
            ("[::1]", "::1", 42217),
            ("[::1]:9", "::1", 9),
            ("[]:9", "", 9),
        ] {
            assert_eq!(host_and_port(text), Ok((host.to_string(), port)), "{text}");
        }
        for (text, line) in [
            ("[::1", "rrdcached: Malformed address: [::1"),
            ("[::1]x", "rrdcached: Garbage after address: x"),
            (
                "a:b",
                "rrdcached: getaddrinfo(a) failed: Servname not supported for ai_socktype",
            ),
        ] {
            assert_eq!(host_and_port(text), Err(line.to_string()));
        }
    }
}
