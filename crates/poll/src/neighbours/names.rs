//! Texts of LLDP: ids of chassis and ports by their subtypes, made safe to show.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};

use kymo_base::name::DisplayName;

/// Longest text that is shown, bytes; LLDP has 255.
const TEXT_MAX: usize = 255;

/// A text without the NULs and blanks at its end.
pub(crate) fn text_of(bytes: &[u8]) -> String {
    let bytes = bytes.get(..TEXT_MAX).unwrap_or(bytes);
    let end = bytes.iter().rposition(|byte| !b"\0 \r\n".contains(byte));
    DisplayName(&bytes[..end.map_or(0, |last| last + 1)]).to_string()
}

/// The name of a chassis (LldpChassisIdSubtype).
pub(super) fn chassis_name(kind: Option<i64>, id: &[u8]) -> String {
    match kind {
        Some(4) => hardware_address(id),
        Some(5) => network_address(id),
        _ => plain(id),
    }
}

/// The name of a port (LldpPortIdSubtype).
pub(super) fn port_name(kind: Option<i64>, id: &[u8]) -> String {
    match kind {
        Some(3) => hardware_address(id),
        Some(4) => network_address(id),
        _ => plain(id),
    }
}

/// A text, or the digits of bytes that are none.
fn plain(id: &[u8]) -> String {
    match std::str::from_utf8(id) {
        Ok(text) if !text.trim_end_matches('\0').contains(char::is_control) => text_of(id),
        _ => hardware_address(id),
    }
}

fn hardware_address(id: &[u8]) -> String {
    let mut text = String::new();
    for (at, byte) in id.iter().take(TEXT_MAX / 3).enumerate() {
        let mark = if at > 0 { ":" } else { "" };
        // Writing to a string cannot fail.
        let _ = write!(text, "{mark}{byte:02x}");
    }
    text
}

/// An address behind the number of its family.
fn network_address(id: &[u8]) -> String {
    match id {
        [1, rest @ ..] if rest.len() == 4 => {
            let parts: [u8; 4] = rest.try_into().unwrap_or_default();
            Ipv4Addr::from(parts).to_string()
        }
        [2, rest @ ..] if rest.len() == 16 => {
            let parts: [u8; 16] = rest.try_into().unwrap_or_default();
            Ipv6Addr::from(parts).to_string()
        }
        _ => hardware_address(id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_shown_by_their_subtypes() {
        for (name, shown) in [
            (
                chassis_name(Some(4), &[0, 1, 2, 3, 4, 255]),
                "00:01:02:03:04:ff",
            ),
            (chassis_name(Some(5), &[1, 192, 0, 2, 7]), "192.0.2.7"),
            (
                chassis_name(Some(5), &[2; 17]),
                "202:202:202:202:202:202:202:202",
            ),
            (chassis_name(Some(5), &[9, 1]), "09:01"),
            (chassis_name(Some(7), b"rack 5\0"), "rack 5"),
            (chassis_name(None, b"\xff\x00"), "ff:00"),
            (port_name(Some(5), b"Gi0/1  "), "Gi0/1"),
            (port_name(Some(3), b""), ""),
            (port_name(Some(7), b"<b>\x1b[2J"), "3c:62:3e:1b:5b:32:4a"),
            (text_of(b"a\x1bb\r\n"), "a\\x1bb"),
        ] {
            assert_eq!(name, shown);
        }
        assert!(text_of(&[b'x'; 5000]).len() <= TEXT_MAX);
        assert!(plain(&[0xff; 5000]).len() <= TEXT_MAX);
    }
}
