//! Sockets of TCP by state, and what waits in the queues of TCP and UDP, of files with a line for each socket.
//!
//! A read costs about a microsecond a socket, and some milliseconds for the kernel's table of them, which is as large
//! as the machine's memory asks for. So it is thrifty ([`crate::source::Pace`]), and has a limit: where /proc/net/sockstat counts more sockets than
//! [`SOCKETS_MAX`], the files are not opened, and of a file that is longer all the same no more than [`TEXT_MAX`] is
//! read.

use kymo_base::scan;
use kymo_sys::kernel_file::Root;

use super::{errno_of, hexadecimal, put_line, text};

/// Sockets of a protocol at most: a read of this number costs less than two milliseconds.
const SOCKETS_MAX: u64 = 1000;
/// Bytes of a file at most; a line has 150 bytes, of IPv6 180.
const TEXT_MAX: usize = 512 << 10;
/// EFBIG: there are more sockets than a read may cost.
const TOO_MANY: u16 = 27;

/// States of TCP sockets, from the kernel's number 1 on.
pub(crate) const TCP_STATES: [&str; 11] = [
    "established",
    "syn_sent",
    "syn_recv",
    "fin_wait1",
    "fin_wait2",
    "time_wait",
    "close",
    "close_wait",
    "last_ack",
    "listen",
    "closing",
];

/// Lines `tcp_STATE NUMBER` of the file at `path` and of that of IPv6 beside it, then the bytes in all queues.
pub(super) fn tcp(root: &Root, path: &str, out: &mut Vec<u8>) -> Result<(), u16> {
    let mut sockets = Sockets::default();
    sockets.add(&few(root, path, TCP)?);
    // A kernel without IPv6 has no such file.
    let _ = few_more(root, path).map(|text| sockets.add(&text));
    let queues = [
        ("rx_queued_bytes", sockets.received),
        ("tx_queued_bytes", sockets.to_send),
    ];
    let states = TCP_STATES.into_iter().zip(sockets.states);
    for (name, number) in states.chain(queues) {
        put_line(out, format!("tcp_{name}").as_bytes(), [Some(number)]);
    }
    Ok(())
}

/// Lines `UDP SENT RECEIVED` and `UDP6 SENT RECEIVED`, bytes that wait to be sent and to be read.
pub(super) fn udp(root: &Root, path: &str, out: &mut Vec<u8>) -> Result<(), u16> {
    let mut put = |name: &[u8], text: &[u8]| {
        let mut sockets = Sockets::default();
        sockets.add(text);
        put_line(out, name, [Some(sockets.to_send), Some(sockets.received)]);
    };
    put(b"UDP", &few(root, path, UDP)?);
    let _ = few_more(root, path).map(|text| put(b"UDP6", &text));
    Ok(())
}

/// Words of sockstat and sockstat6 whose numbers add up to the sockets of a protocol: the line, and the word in it.
type Counts = [(&'static [u8], &'static [u8]); 3];

const TCP: Counts = [(b"TCP:", b"inuse"), (b"TCP:", b"tw"), (b"TCP6:", b"inuse")];
const UDP: Counts = [
    (b"UDP:", b"inuse"),
    (b"UDP6:", b"inuse"),
    (b"UDPLITE:", b"none"),
];

/// The text of the file, where there are few sockets.
fn few(root: &Root, path: &str, counts: Counts) -> Result<Vec<u8>, u16> {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let number = |file: &str| {
        let text = text(root, &format!("{folder}/{file}")).unwrap_or_default();
        sockets_of(&text, counts)
    };
    if number("sockstat").saturating_add(number("sockstat6")) > SOCKETS_MAX {
        return Err(TOO_MANY);
    }
    limited(root, path)
}

/// The text of the file of IPv6 beside that of IPv4.
fn few_more(root: &Root, path: &str) -> Result<Vec<u8>, u16> {
    limited(root, &format!("{path}6"))
}

fn limited(root: &Root, path: &str) -> Result<Vec<u8>, u16> {
    let mut text = Vec::new();
    let read = root.read_at_most(path, &mut text, TEXT_MAX);
    read.map_err(errno_of)?;
    Ok(text)
}

fn sockets_of(sockstat: &[u8], counts: Counts) -> u64 {
    let mut sum = 0u64;
    for line in scan::lines(sockstat) {
        let words: Vec<&[u8]> = scan::words(line).collect();
        for pair in words.windows(2) {
            let [word, number] = pair else { continue };
            let is_counted = counts.iter().any(|(name, counted)| {
                words.first().is_some_and(|first| first == name) && word == counted
            });
            if is_counted {
                sum = sum.saturating_add(scan::number(number).unwrap_or(0));
            }
        }
    }
    sum
}

/// Sockets by state, and bytes that wait to be read and to be sent.
#[derive(Default)]
struct Sockets {
    states: [u64; TCP_STATES.len()],
    received: u64,
    to_send: u64,
}

impl Sockets {
    fn add(&mut self, text: &[u8]) {
        // The first line has names.
        for line in scan::lines(text).skip(1) {
            let mut words = scan::words(line).skip(3);
            let state = words.next().and_then(hexadecimal);
            let state = state.and_then(|number| usize::try_from(number).ok());
            let of_state = state.and_then(|number| self.states.get_mut(number.checked_sub(1)?));
            let Some(sockets) = of_state else { continue };
            *sockets += 1;
            let mut queues = words.next().unwrap_or_default().split(|&byte| byte == b':');
            let mut bytes = || queues.next().and_then(hexadecimal).unwrap_or(0);
            self.to_send = self.to_send.saturating_add(bytes());
            self.received = self.received.saturating_add(bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::of;
    use super::*;
    use crate::digest::Digest;
    use crate::tests::MadeRoot;

    const HEAD: &str =
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt\n";

    fn line(state: &str, queues: &str) -> String {
        format!("   0: 0100007F:0CEA 00000000:0000 {state} {queues} 00:00000000\n")
    }

    #[test]
    fn sockets_are_counted_by_state() {
        let made = MadeRoot::new();
        let four = [
            HEAD,
            &line("0A", "00000000:00000000"),
            &line("01", "00000010:00000002"),
            &line("0C", "00000001:00000001"),
            "x\n",
        ];
        made.write("net/tcp", &four.concat());
        let digest = |made| of(Digest::TcpStates, made, "net/tcp").expect("a digest");
        let text = digest(&made);
        for part in [
            "tcp_established 1\n",
            "tcp_listen 1\n",
            "tcp_closing 0\n",
            "tcp_tx_queued_bytes 16\n",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert_eq!(text.lines().count(), 13);
        made.write(
            "net/tcp6",
            &[HEAD, &line("01", "00000000:00000005")].concat(),
        );
        let text = digest(&made);
        for part in ["tcp_established 2\n", "tcp_rx_queued_bytes 7\n"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert_eq!(of(Digest::TcpStates, &made, "none"), Err(2));
    }

    #[test]
    fn queues_are_those_of_each_version() {
        let made = MadeRoot::new();
        let four = [
            HEAD,
            &line("07", "00000010:00000002"),
            &line("07", "00000001:00000001"),
        ];
        made.write("net/udp", &four.concat());
        let digest = |made| of(Digest::UdpQueues, made, "net/udp").expect("a digest");
        assert_eq!(digest(&made), "UDP 17 3\n");
        made.write("net/udp6", HEAD);
        assert_eq!(digest(&made), "UDP 17 3\nUDP6 0 0\n");
    }

    /// The files of many sockets are not read: here they are not even there.
    #[test]
    fn many_sockets_are_too_many() {
        for (sockstat, six, expect) in [
            ("TCP: inuse 1000 orphan 9 tw 0 alloc 9999 mem 9\n", "", 2),
            (
                "TCP: inuse 1001 orphan 0 tw 0 alloc 1 mem 1\n",
                "",
                TOO_MANY,
            ),
            (
                "TCP: inuse 1 orphan 0 tw 1000 alloc 1 mem 1\n",
                "",
                TOO_MANY,
            ),
            ("TCP: inuse 1\n", "TCP6: inuse 1000\n", TOO_MANY),
            ("TCP: inuse 99999999999999999999999 tw\nTCP:\n", "", 2),
        ] {
            let made = MadeRoot::new();
            made.write("net/sockstat", sockstat);
            made.write("net/sockstat6", six);
            assert_eq!(
                of(Digest::TcpStates, &made, "net/tcp"),
                Err(expect),
                "{sockstat}"
            );
            let udp = [sockstat, six].map(|text| text.replace("TCP", "UDP"));
            made.write("net/sockstat", &udp[0].replace("tw", "inuse"));
            made.write("net/sockstat6", &udp[1]);
            assert_eq!(
                of(Digest::UdpQueues, &made, "net/udp"),
                Err(expect),
                "{sockstat}"
            );
        }
    }

    #[test]
    fn a_long_file_is_not_read_to_its_end() {
        let made = MadeRoot::new();
        made.write("net/tcp", &line("01", "00000000:00000000").repeat(10_000));
        assert_eq!(of(Digest::TcpStates, &made, "net/tcp"), Err(TOO_MANY));
    }
}
