//! Facts and counts of the network interfaces from /sys/class/net, and the neighbours of each in /proc/net/arp.

use kymo_base::scan;
use kymo_sys::kernel_file::Root;

use super::{errno_of, put_line, text};

/// Interfaces of a digest at most.
const INTERFACES_MAX: usize = 256;
/// Slaves of a bond at most.
const SLAVES_MAX: usize = 64;
/// Bytes of the table of neighbours at most; the kernel keeps 1,024 of them by default, of 80 bytes each.
const NEIGHBOURS_BYTES: usize = 1 << 20;

/// A line for each interface: carrier, MTU, 1 if it is up, packets that nothing takes, and of a bond its slaves and
/// those that are up.
pub(super) fn interfaces(root: &Root, path: &str, out: &mut Vec<u8>) {
    let mut names: Vec<String> = Vec::new();
    if let Ok(folder) = root.folder(path) {
        // After an error the list has the names read before it.
        let _ = folder.list(|name| names.push(name.to_string_lossy().into_owned()));
    }
    names.sort_unstable();
    names.retain(|name| !name.starts_with('.') && !name.contains(char::is_whitespace));
    // This file is there where the module of bonds is.
    let bonds = match names.iter().any(|name| name == "bonding_masters") {
        true => text(root, &format!("{path}/bonding_masters")).unwrap_or_default(),
        false => Vec::new(),
    };
    for name in names.iter().take(INTERFACES_MAX) {
        let folder = format!("{path}/{name}");
        let state = value(root, &folder, "operstate");
        let is_up = (!state.is_empty()).then(|| u64::from(state == b"up"));
        let number = |file: &str| scan::number(&value(root, &folder, file));
        let known = [number("carrier"), number("mtu"), is_up];
        // The folder may have files, too: bonding_masters.
        if known.iter().all(Option::is_none) {
            continue;
        }
        let is_bond = bonds
            .split(u8::is_ascii_whitespace)
            .any(|bond| bond == name.as_bytes());
        let slaves = is_bond.then(|| slaves(root, &folder));
        let [carrier, mtu, up] = known;
        let unhandled = number("statistics/rx_nohandler");
        let numbers = [
            carrier,
            mtu,
            up,
            unhandled,
            slaves.map(|(all, _)| all),
            slaves.map(|(_, up)| up),
        ];
        put_line(out, name.as_bytes(), numbers);
    }
}

/// The text of a file without the blanks around it. A file that cannot be read is empty, such as the carrier of an
/// interface that is down.
fn value(root: &Root, folder: &str, file: &str) -> Vec<u8> {
    let text = text(root, &format!("{folder}/{file}"));
    text.unwrap_or_default().trim_ascii().to_vec()
}

/// Slaves of a bond, and those whose link is up.
fn slaves(root: &Root, bond: &str) -> (u64, u64) {
    let names = value(root, bond, "bonding/slaves");
    let (mut all, mut up) = (0, 0);
    for name in scan::words(&names).take(SLAVES_MAX) {
        all += 1;
        let slave = format!("lower_{}", String::from_utf8_lossy(name));
        let state = value(root, bond, &format!("{slave}/bonding_slave/mii_status"));
        up += u64::from(state == b"up");
    }
    (all, up)
}

/// A line for each interface with neighbours: their number.
pub(super) fn neighbours(root: &Root, path: &str, out: &mut Vec<u8>) -> Result<(), u16> {
    let mut table = Vec::new();
    let read = root.read_at_most(path, &mut table, NEIGHBOURS_BYTES);
    read.map_err(errno_of)?;
    let mut devices: Vec<&[u8]> = scan::lines(&table)
        .skip(1)
        .filter_map(|line| scan::words(line).nth(5))
        .collect();
    devices.sort_unstable();
    for same in devices.chunk_by(|a, b| a == b).take(INTERFACES_MAX) {
        let name = same.first().copied().unwrap_or_default();
        put_line(out, name, [u64::try_from(same.len()).ok()]);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::tests::of;
    use crate::digest::Digest;
    use crate::tests::MadeRoot;

    #[test]
    fn interfaces_have_a_line_each() {
        let made = MadeRoot::new();
        for (path, text) in [
            ("net/eth0/carrier", "1\n"),
            ("net/eth0/mtu", "1500\n"),
            ("net/eth0/operstate", "up\n"),
            ("net/eth0/statistics/rx_nohandler", "7\n"),
            ("net/lo/operstate", "unknown\n"),
            ("net/lo/mtu", "65536\n"),
            ("net/bond0/mtu", "1500\n"),
            ("net/bond0/bonding/slaves", "eth0 eth1 eth2\n"),
            ("net/bond0/lower_eth0/bonding_slave/mii_status", "up\n"),
            ("net/bond0/lower_eth1/bonding_slave/mii_status", "down\n"),
            ("net/bond1/mtu", "1500\n"),
            ("net/bonding_masters", "bond0 bond1\n"),
        ] {
            made.write(path, text);
        }
        let expected =
            "bond0 - 1500 - - 3 1\nbond1 - 1500 - - 0 0\neth0 1 1500 1 7 - -\nlo - 65536 0 - - -\n";
        let found = of(Digest::Interfaces, &made, "net");
        assert_eq!(found.as_deref(), Ok(expected));
        assert_eq!(of(Digest::Interfaces, &made, "none"), Err(2));
    }

    #[test]
    fn neighbours_are_counted_by_interface() {
        let made = MadeRoot::new();
        let head =
            "IP address       HW type     Flags       HW address            Mask     Device\n";
        let line = |device: &str| format!("192.0.2.1 0x1 0x2 02:fc:00:00:00:05 * {device}\n");
        let lines = ["eth0", "br0", "eth0"].map(line).concat();
        made.write("net/arp", &format!("{head}{lines}short 1\n"));
        let found = || of(Digest::Neighbours, &made, "net/arp");
        assert_eq!(found().as_deref(), Ok("br0 1\neth0 2\n"));
        made.write("net/arp", head);
        assert_eq!(found().as_deref(), Ok("\n"));
        made.write("net/arp", &line("eth0").repeat(30_000));
        assert_eq!(found(), Err(27));
    }
}
