//! Digests: short texts with decimal numbers, made of kernel files that are hexadecimal, have a line for each socket,
//! or are a folder for each instance, and of answers of the kernel that are no file. A digest is recorded in the place
//! of the files.

mod arrays;
mod interfaces;
mod machine;
mod sockets;

#[cfg(test)]
pub(crate) use sockets::TCP_STATES;

use kymo_base::scan;
use kymo_sys::kernel_file::Root;

/// Text of a number that the kernel does not have.
const UNKNOWN: &[u8] = b"-";

/// Digests by their files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Digest {
    /// /proc/net/softnet_stat, a line for each CPU: its number, then packets processed, dropped, squeezed, received by
    /// steering, and limited by flow.
    Softnet,
    /// /sys/class/net, a line for each interface: its name, carrier, MTU, 1 if it is up, packets that nothing took, and
    /// of a bond its slaves and those of them that are up.
    Interfaces,
    /// /proc/net/arp, a line for each interface with neighbours: its name, and their number.
    Neighbours,
    /// /proc/net/tcp and tcp6: a line for each state with its number of sockets, and the bytes in their queues.
    TcpStates,
    /// /proc/net/udp and udp6: a line for each with the bytes in the queues of its sockets, to be sent and to be read.
    UdpQueues,
    /// /proc/mdstat, a line for each array: its name, disks that it needs, active, failed, spare and missing ones.
    Arrays,
    /// adjtimex without a change: how the kernel's clock is kept.
    Clock,
    /// The process that records: its size, files and limits.
    Recorder,
}

impl Digest {
    /// Replaces `out` by the digest of the file or folder at this path under the root. An errno: nothing can be read.
    pub(crate) fn read(self, root: &Root, path: &str, out: &mut Vec<u8>) -> Result<(), u16> {
        out.clear();
        match self {
            Digest::Interfaces => interfaces::interfaces(root, path, out),
            Digest::Softnet => softnet(&text(root, path)?, out),
            Digest::Neighbours => interfaces::neighbours(root, path, out)?,
            Digest::TcpStates => sockets::tcp(root, path, out)?,
            Digest::UdpQueues => sockets::udp(root, path, out)?,
            Digest::Arrays => arrays::arrays(&text(root, path)?, out),
            // Below a root that is a folder of files there is no machine to ask.
            Digest::Clock | Digest::Recorder if !root.keeps_files() => {}
            Digest::Clock => machine::clock(out)?,
            Digest::Recorder => machine::recorder(out),
        }
        match (out.is_empty(), self) {
            (false, _) => Ok(()),
            // A table without entries is no failure.
            (true, Digest::Neighbours | Digest::Arrays) => {
                out.push(b'\n');
                Ok(())
            }
            (true, _) => Err(ENOENT),
        }
    }
}

/// No such file.
const ENOENT: u16 = 2;

fn errno_of(errno: kymo_sys::kernel_file::Errno) -> u16 {
    u16::try_from(errno.raw_os_error()).unwrap_or(0)
}

fn text(root: &Root, path: &str) -> Result<Vec<u8>, u16> {
    let mut text = Vec::new();
    root.read(path, &mut text).map_err(errno_of)?;
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
pub(crate) mod tests {
    use super::*;
    use crate::tests::MadeRoot;

    pub(super) fn of(digest: Digest, made: &MadeRoot, path: &str) -> Result<String, u16> {
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
    fn a_folder_of_files_has_no_clock() {
        let made = MadeRoot::new();
        for digest in [Digest::Clock, Digest::Recorder] {
            assert_eq!(of(digest, &made, ""), Err(ENOENT), "{digest:?}");
            let root = Root::open(std::path::Path::new("/")).expect("a root");
            let mut out = Vec::new();
            assert_eq!(digest.read(&root, "", &mut out), Ok(()), "{digest:?}");
        }
    }

    proptest::proptest! {
        /// Any file is survived, and makes a digest of bounded length.
        #[test]
        fn any_file_is_survived(
            bytes: Vec<u8>,
            text in "((md[0-9]|TCP:|UDP6:|[0-9]{1,2}:)?[ 0-9A-F:/\\[\\]()_Ua-z-]{0,40}\n){0,8}",
        ) {
            let made = MadeRoot::new();
            for text in [&bytes[..], text.as_bytes()] {
                for file in ["tcp", "udp", "arp", "mdstat", "softnet_stat", "sockstat"] {
                    made.write_bytes(&format!("net/{file}"), text);
                }
                for (digest, file) in [
                    (Digest::TcpStates, "tcp"),
                    (Digest::UdpQueues, "udp"),
                    (Digest::Neighbours, "arp"),
                    (Digest::Arrays, "mdstat"),
                    (Digest::Softnet, "softnet_stat"),
                ] {
                    let mut out = Vec::new();
                    let read = digest.read(&made.root, &format!("net/{file}"), &mut out);
                    proptest::prop_assert!(read == Ok(()) || read == Err(ENOENT), "{digest:?}");
                    proptest::prop_assert!(out.len() <= 1000 + 20 * text.len(), "{digest:?}");
                }
            }
        }
    }
}
