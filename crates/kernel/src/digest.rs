//! Digests: short texts with decimal numbers, made of kernel files that are hexadecimal, or a folder for each instance. A digest is recorded in the place of the files.

use kymo_base::scan;
use kymo_sys::kernel_file::Root;

/// Interfaces of a digest at most.
const INTERFACES_MAX: usize = 256;
/// Text of a number that the kernel does not have.
const UNKNOWN: &[u8] = b"-";

/// Digests by their files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Digest {
    /// /proc/net/softnet_stat, a line for each CPU: its number, then packets processed, dropped, squeezed, received by
    /// steering, and limited by flow.
    Softnet,
    /// /sys/class/net, a line for each interface: its name, its carrier, its MTU, and 1 if it is up.
    Interfaces,
}

impl Digest {
    /// Replaces `out` by the digest of the file or folder at this path under the root. An errno: nothing can be read.
    pub(crate) fn read(self, root: &Root, path: &str, out: &mut Vec<u8>) -> Result<(), u16> {
        out.clear();
        match self {
            Digest::Interfaces => interfaces(root, path, out),
            Digest::Softnet => softnet(&text(root, path)?, out),
        }
        const ENOENT: u16 = 2;
        match out.is_empty() {
            true => Err(ENOENT),
            false => Ok(()),
        }
    }
}

fn text(root: &Root, path: &str) -> Result<Vec<u8>, u16> {
    let mut text = Vec::new();
    let read = root.read(path, &mut text);
    read.map_err(|errno| u16::try_from(errno.raw_os_error()).unwrap_or(0))?;
    Ok(text)
}

/// Words of a line of softnet_stat: processed, dropped, squeezed, received by steering, and flow limits.
const SOFTNET: [usize; 5] = [0, 1, 2, 9, 10];
/// The word with the number of the CPU, since 5.10.
const SOFTNET_CPU: usize = 12;

fn softnet(text: &[u8], out: &mut Vec<u8>) {
    for (number, line) in scan::lines(text).enumerate() {
        let words: Vec<&[u8]> = scan::words(line).collect();
        let word = |at: usize| words.get(at).and_then(|word| hexadecimal(word));
        let cpu = word(SOFTNET_CPU).or_else(|| u64::try_from(number).ok());
        put_line(out, decimal(cpu).as_bytes(), SOFTNET.map(word));
    }
}

fn hexadecimal(word: &[u8]) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok()
}

fn interfaces(root: &Root, path: &str, out: &mut Vec<u8>) {
    let mut names: Vec<String> = Vec::new();
    if let Ok(folder) = root.folder(path) {
        // After an error the list has the names read before it.
        let _ = folder.list(|name| names.push(name.to_string_lossy().into_owned()));
    }
    names.sort_unstable();
    names.retain(|name| !name.starts_with('.') && !name.contains(char::is_whitespace));
    for name in names.iter().take(INTERFACES_MAX) {
        let mut text = Vec::new();
        let mut file = |file: &str| {
            text.clear();
            // A file that cannot be read is empty, such as the carrier of an interface that is down.
            let _ = root.read(&format!("{path}/{name}/{file}"), &mut text);
            text.trim_ascii().to_vec()
        };
        let state = file("operstate");
        let is_up = (!state.is_empty()).then(|| u64::from(state == b"up"));
        let mut number = |name: &str| scan::number(&file(name));
        let numbers = [number("carrier"), number("mtu"), is_up];
        // The folder may have files, too: bonding_masters.
        if numbers.iter().any(Option::is_some) {
            put_line(out, name.as_bytes(), numbers);
        }
    }
}

fn put_line<const N: usize>(out: &mut Vec<u8>, name: &[u8], numbers: [Option<u64>; N]) {
    out.extend_from_slice(name);
    for number in numbers {
        out.push(b' ');
        match number {
            Some(_) => out.extend_from_slice(decimal(number).as_bytes()),
            None => out.extend_from_slice(UNKNOWN),
        }
    }
    out.push(b'\n');
}

fn decimal(number: Option<u64>) -> String {
    number.map_or_else(String::new, |number| number.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::MadeRoot;

    fn of(digest: Digest, made: &MadeRoot, path: &str) -> Result<String, u16> {
        let mut out = b"old".to_vec();
        digest.read(&made.root, path, &mut out)?;
        Ok(String::from_utf8(out).expect("text"))
    }

    #[test]
    fn softnet_is_hexadecimal() {
        let made = MadeRoot::new();
        let zeros = "00000000 ".repeat(6);
        made.write(
            "new",
            &format!(
                "0102f826 0000000a 00000001 {zeros}00000007 00000008 00000000 00000000 0 0\n\
                 010b3ca0 00000000 00000002 {zeros}00000000 00000000 00000000 00000003 0 0\n"
            ),
        );
        let expected = "0 16971814 10 1 7 8\n3 17513632 0 2 0 0\n";
        assert_eq!(of(Digest::Softnet, &made, "new").as_deref(), Ok(expected));
        made.write("old", "00000001 00000002 00000003\nx 00000001 00000002\n");
        let expected = "0 1 2 3 - -\n1 - 1 2 - -\n";
        assert_eq!(of(Digest::Softnet, &made, "old").as_deref(), Ok(expected));
        assert_eq!(of(Digest::Softnet, &made, "none"), Err(2));
    }

    #[test]
    fn interfaces_have_a_line_each() {
        let made = MadeRoot::new();
        for (path, text) in [
            ("net/eth0/carrier", "1\n"),
            ("net/eth0/mtu", "1500\n"),
            ("net/eth0/operstate", "up\n"),
            ("net/lo/operstate", "unknown\n"),
            ("net/lo/mtu", "65536\n"),
            ("net/bonding_masters", "bond0\n"),
        ] {
            made.write(path, text);
        }
        let expected = "eth0 1 1500 1\nlo - 65536 0\n";
        assert_eq!(
            of(Digest::Interfaces, &made, "net").as_deref(),
            Ok(expected)
        );
        assert_eq!(of(Digest::Interfaces, &made, "none"), Err(2));
    }
}
