//! SNMP against the peers: Debian's snmpd, `snmpbulkwalk` on the same tables, MRTG's Perl library, and stock cfgmaker with
//! the agents of the farm.

use std::collections::HashSet;
use std::net::{SocketAddr, UdpSocket};
use std::process::Command;
use std::time::Duration;

use kymo_agentfarm::{Farm, Settings, traffic};
use kymo_tests::snmpd::Snmpd;
use kymo_tests::{Scratch, machine};
use kymo_wire::snmp::{
    Ask, ErrorStatus, IdWidth, Message, ObjectValue, Oid, RequestMessage, Version, put_varbind,
};

fn oid(text: &str) -> Oid {
    Oid::parse(text).unwrap_or_else(|| panic!("{text} is no OID"))
}

/// Names and values of a reply.
type Varbinds = Vec<(Oid, Said)>;

/// A value that outlives its packet.
#[derive(Clone, Debug, PartialEq)]
enum Said {
    Number(i128),
    Ticks(u64),
    Text(Vec<u8>),
    Oid(Oid),
    Address([u8; 4]),
    Exception,
    Other,
}

impl Said {
    fn of(value: ObjectValue) -> Said {
        match value {
            ObjectValue::TimeTicks(ticks) => Said::Ticks(ticks),
            ObjectValue::OctetString(text) => Said::Text(text.to_vec()),
            ObjectValue::Oid(content) => Said::Oid(Oid::of_bytes(content)),
            ObjectValue::IpAddress(parts) => Said::Address(parts),
            value if value.is_exception() => Said::Exception,
            value => value.number().map_or(Said::Other, Said::Number),
        }
    }
}

/// Sends requests to an agent, one at a time.
struct Client {
    socket: UdpSocket,
    next_id: u32,
    /// MRTG's default, unless a test sets another number.
    attempts: usize,
}

impl Client {
    fn of(agent: SocketAddr) -> Client {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        socket.connect(agent).expect("a peer");
        let limit = Some(Duration::from_secs(2));
        socket.set_read_timeout(limit).expect("a time limit");
        Client {
            socket,
            next_id: 77,
            attempts: 5,
        }
    }

    /// Error status, error index and varbinds of the answer; `None`: no answer.
    fn ask(
        &mut self,
        ask: Ask,
        version: Version,
        names: &[Oid],
    ) -> Option<(ErrorStatus, i32, Varbinds)> {
        let mut request = RequestMessage::new(ask, version, b"public", names, IdWidth::Bits31);
        let mut buffer = vec![0; 1 << 16];
        for _ in 0..self.attempts {
            self.next_id += 1;
            let id = request.set_id(self.next_id);
            self.socket.send(request.bytes()).expect("a way out");
            let Ok(size) = self.socket.recv(&mut buffer) else {
                continue;
            };
            let reply = Message::decode_response(&buffer[..size]).expect("a response");
            assert_eq!((reply.head.id, reply.head.version), (id, version));
            assert_eq!(reply.head.community, b"public");
            let varbinds = reply.varbinds.map(|varbind| {
                let (name, value) = varbind.expect("a varbind");
                (Oid::of_bytes(name), Said::of(value))
            });
            return Some((reply.error_status(), reply.head.index, varbinds.collect()));
        }
        None
    }

    fn get(&mut self, names: &[Oid]) -> Varbinds {
        let (status, _, varbinds) = self.ask(Ask::Get, Version::V2c, names).expect("an answer");
        assert_eq!(status, ErrorStatus::NO_ERROR);
        varbinds
    }

    /// All varbinds below `root`.
    fn walk(&mut self, ask: Ask, version: Version, root: &Oid) -> Varbinds {
        let (mut from, mut all) = (root.clone(), Vec::new());
        loop {
            let names = [from.clone()];
            let (status, _, varbinds) = self.ask(ask, version, &names).expect("an answer");
            if status == ErrorStatus::NO_SUCH_NAME {
                return all;
            }
            for (name, said) in varbinds {
                if said == Said::Exception || !name.starts_with(root) {
                    return all;
                }
                from = name.clone();
                all.push((name, said));
            }
        }
    }
}

const BULK: Ask = Ask::GetBulk {
    non_repeaters: 0,
    max_repetitions: 12,
};

/// Debian's snmpd with a sysDescr of 250 bytes.
fn snmpd() -> Snmpd {
    let descr = "x".repeat(250);
    Snmpd::start("127.0.12.9", &format!("sysName sw1\nsysDescr {descr}\n"))
}

/// Names and values below `root` from `snmpbulkwalk`: names begin with a dot, values have no kind.
fn bulk_walked(agent: SocketAddr, root: &str) -> Vec<(String, String)> {
    let output = Command::new("snmpbulkwalk")
        .args([
            "-v2c",
            "-c",
            "public",
            "-m",
            "",
            "-OnQetU",
            &agent.to_string(),
            root,
        ])
        .output();
    let output = output.unwrap_or_else(|why| panic!("cannot run snmpbulkwalk: {why}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines = text
        .lines()
        .filter(|line| !line.contains("No more variables"));
    let lines = lines.filter_map(|line| line.split_once(" = "));
    lines
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

#[test]
fn tables_of_snmpd_are_those_that_snmpbulkwalk_sees() {
    if machine::must_skip(&["snmpd", "snmpbulkwalk"]) {
        return;
    }
    let agent = snmpd();
    let mut client = Client::of(agent.address);
    let (mut numbers, mut others) = (0, 0);
    for root in [
        "1.3.6.1.2.1.2.2",
        "1.3.6.1.2.1.31.1.1",
        "1.3.6.1.2.1.4.20",
        "1.3.6.1.2.1.1",
    ] {
        let theirs = bulk_walked(agent.address, root);
        let ours = client.walk(BULK, Version::V2c, &oid(root));
        assert_eq!(
            client.walk(Ask::GetNext, Version::V2c, &oid(root)).len(),
            ours.len()
        );
        let names = |said: &str| said.trim_start_matches('.').to_owned();
        let expected: Vec<String> = theirs.iter().map(|(name, _)| names(name)).collect();
        let found: Vec<String> = ours.iter().map(|(name, _)| name.to_string()).collect();
        assert!(
            found == expected,
            "{root}: {} and {} names",
            found.len(),
            expected.len()
        );
        assert!(!found.is_empty(), "{root}");
        for ((name, said), (_, text)) in ours.iter().zip(&theirs) {
            match said {
                // Counters have grown since.
                Said::Number(number) => {
                    let before: i128 = text.parse().unwrap_or_else(|_| panic!("{name}: {text}"));
                    assert!(
                        (before..before + 100_000_000).contains(number),
                        "{name}: {number}"
                    );
                    numbers += 1;
                }
                Said::Ticks(ticks) => {
                    let before: u64 = text.parse().unwrap_or_else(|_| panic!("{name}: {text}"));
                    assert!((before..before + 6000).contains(ticks), "{name}: {ticks}");
                }
                Said::Oid(said) => assert_eq!(&format!(".{said}"), text, "{name}"),
                Said::Address([a, b, c, d]) => assert_eq!(&format!("{a}.{b}.{c}.{d}"), text),
                Said::Text(said) if said.iter().all(|byte| (32..127).contains(byte)) => {
                    assert_eq!(
                        String::from_utf8_lossy(said),
                        text.trim_matches('"'),
                        "{name}"
                    );
                    others += 1;
                }
                Said::Text(_) => {}
                Said::Exception | Said::Other => panic!("{name}: {said:?}"),
            }
        }
    }
    assert!(
        numbers > 20 && others > 3,
        "{numbers} numbers, {others} texts"
    );
}

#[test]
fn many_objects_of_snmpd_come_in_one_reply() {
    if machine::must_skip(&["snmpd"]) {
        return;
    }
    let agent = snmpd();
    let mut client = Client::of(agent.address);
    let column = |column: u32| oid("1.3.6.1.2.1.31.1.1.1").with(&[column, 1]);
    let names: Vec<Oid> = (0..48)
        .map(|n| column(if n % 2 == 0 { 6 } else { 10 }))
        .collect();
    let said = client.get(&names);
    assert_eq!(said.len(), 48);
    for (asked, (name, said)) in names.iter().zip(&said) {
        assert_eq!(asked, name);
        assert!(matches!(said, Said::Number(_)), "{said:?}");
    }
    // In v2c a missing object costs only its own value.
    let mixed = [
        column(6),
        oid("1.3.6.1.2.1.99.1.0"),
        column(6).with(&[7]),
        column(10),
    ];
    let said: Vec<Said> = client
        .get(&mixed)
        .into_iter()
        .map(|(_, said)| said)
        .collect();
    assert!(matches!(
        said[..],
        [
            Said::Number(_),
            Said::Exception,
            Said::Exception,
            Said::Number(_)
        ]
    ));
    // In v1 it costs the whole reply, and the index names it. v1 also has no 64-bit counters.
    let octets = |row: u32| oid("1.3.6.1.2.1.2.2.1.10").with(&[row]);
    for (names, index) in [
        (vec![octets(1), octets(1), octets(4_000_000), octets(1)], 3),
        (vec![octets(1), column(6)], 2),
    ] {
        let (status, at, varbinds) = client
            .ask(Ask::Get, Version::V1, &names)
            .expect("an answer");
        assert_eq!((status, at), (ErrorStatus::NO_SUCH_NAME, index));
        assert_eq!(varbinds.len(), names.len());
    }
}

/// snmpd 5.9.3 never answers tooBig: if no datagram can hold the reply (300 times 250 bytes), it stays silent, as if the
/// request was lost. A poller has to find out which one it is.
#[test]
fn a_reply_that_no_datagram_holds_is_silence_from_snmpd() {
    if machine::must_skip(&["snmpd"]) {
        return;
    }
    let agent = snmpd();
    let mut client = Client::of(agent.address);
    let mut names = vec![oid("1.3.6.1.2.1.1.1.0"); 300];
    client.attempts = 1;
    assert_eq!(client.ask(Ask::Get, Version::V2c, &names), None);
    names.truncate(100);
    client.attempts = 5;
    assert_eq!(client.get(&names).len(), 100);
}

#[test]
fn a_reply_that_the_farm_may_not_send_is_too_big() {
    if machine::must_skip(&["snmpget"]) {
        return;
    }
    let farm = farm();
    farm.change(0, |behaviour, _| behaviour.reply_bytes_max = 484);
    let agent = agent_of(&farm, 0);
    let mut client = Client::of(agent);
    let column = oid("1.3.6.1.2.1.31.1.1.1.6");
    let names: Vec<Oid> = (1..=20).map(|index| column.with(&[index])).collect();
    for (version, left) in [(Version::V1, 20), (Version::V2c, 0)] {
        let octets = oid("1.3.6.1.2.1.2.2.1.2");
        let names: Vec<Oid> = (1..=20).map(|index| octets.with(&[index])).collect();
        let (status, index, varbinds) = client.ask(Ask::Get, version, &names).expect("an answer");
        assert_eq!(
            (status, index, varbinds.len()),
            (ErrorStatus::TOO_BIG, 0, left)
        );
    }
    assert_eq!(client.get(&names[..16]).len(), 16);
    // The answer to GETBULK has as many varbinds as fit.
    let bulk = Ask::GetBulk {
        non_repeaters: 0,
        max_repetitions: 20,
    };
    let descr = [oid("1.3.6.1.2.1.2.2.1.2")];
    let (status, _, fitting) = client.ask(bulk, Version::V2c, &descr).expect("an answer");
    assert_eq!(status, ErrorStatus::NO_ERROR);
    assert!((8..16).contains(&fitting.len()), "{}", fitting.len());
    let texts: Vec<String> = names.iter().map(Oid::to_string).collect();
    let output = Command::new("snmpget")
        .args(["-v2c", "-c", "public", "-m", "", &agent.to_string()])
        .args(texts)
        .output();
    let output = output.unwrap_or_else(|why| panic!("cannot run snmpget: {why}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("(tooBig)"), "{said}");
}

/// The text of a value equals that of MRTG's own library for the same bytes.
#[test]
fn values_are_the_text_of_the_library_of_mrtg() {
    if machine::must_skip(&["perl", "mrtg"]) {
        return;
    }
    let (day, name) = (8_640_000, oid("1.3.6.1.4.1.8072.3.2.10"));
    let mut elements: Vec<Vec<u8>> = Vec::new();
    for value in [
        ObjectValue::Integer(-1),
        ObjectValue::Integer(-129),
        ObjectValue::Integer(2_147_483_647),
        ObjectValue::Counter32(4_294_967_295),
        ObjectValue::Counter64(18_446_744_073_709_551_615),
        ObjectValue::Counter64(4_294_967_296),
        ObjectValue::Gauge32(0),
        ObjectValue::UInteger32(77),
        ObjectValue::TimeTicks(0),
        ObjectValue::TimeTicks(day - 1),
        ObjectValue::TimeTicks(day),
        ObjectValue::TimeTicks(2 * day - 1),
        ObjectValue::TimeTicks(2 * day),
        ObjectValue::TimeTicks(4_294_967_295),
        ObjectValue::OctetString(b" 12\n"),
        ObjectValue::OctetString(b""),
        ObjectValue::Oid(&name),
        ObjectValue::IpAddress([10, 0, 255, 1]),
        ObjectValue::Opaque(&[0x9f, 0x78, 4, 0, 0, 0, 0]),
        ObjectValue::Null,
        ObjectValue::NoSuchObject,
        ObjectValue::NoSuchInstance,
        ObjectValue::EndOfMibView,
    ] {
        elements.push(element(value));
    }
    // Counters as some agents encode them: with the first bit set, and with more bytes than needed.
    elements.push(vec![0x41, 4, 0xff, 0xff, 0xff, 0xf0]);
    elements.push(vec![0x46, 8, 0xff, 0, 0, 0, 0, 0, 0, 0]);
    elements.push(vec![0x41, 5, 0, 0xff, 0xff, 0xff, 0xff]);
    elements.push(vec![
        0x46, 9, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    ]);
    elements.push(vec![
        0x02, 8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe,
    ]);
    elements.push(vec![0x45, 1, 7]);
    let hex = elements
        .iter()
        .map(|bytes| bytes.iter().map(|byte| format!("{byte:02x}")).collect());
    let hex: Vec<String> = hex.collect();
    let script = "use BER; for (@ARGV) { my $t = BER::pretty_print(pack 'H*', $_); \
                  print defined $t ? unpack('H*', $t) : 'undef', qq(\\n) }";
    let output = Command::new("perl")
        .args(["-e", script])
        .args(&hex)
        .output();
    let output = output.unwrap_or_else(|why| panic!("cannot run perl: {why}"));
    let theirs = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(
        theirs.lines().count(),
        hex.len(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    for (bytes, theirs) in elements.iter().zip(theirs.lines()) {
        assert_eq!(text_of(bytes), theirs, "{bytes:02x?}");
    }
}

/// A value's BER element, without the name.
fn element(value: ObjectValue) -> Vec<u8> {
    let mut varbind = Vec::new();
    put_varbind(&mut varbind, &[43], value);
    varbind[5..].to_vec()
}

/// The text of an element in hex, or `undef`.
fn text_of(element: &[u8]) -> String {
    let varbind = [&[6, 1, 43], element].concat();
    let wrap = |tag: u8, content: &[u8]| {
        let size = u8::try_from(content.len()).expect("a short one");
        [&[tag, size], content].concat()
    };
    let list = wrap(0x30, &wrap(0x30, &varbind));
    let pdu = wrap(0xa2, &[&[2, 1, 1, 2, 1, 0, 2, 1, 0][..], &list].concat());
    let packet = wrap(0x30, &[&[2, 1, 1, 4, 0][..], &pdu].concat());
    let reply = Message::decode_response(&packet).expect("a response");
    let (_, value) = reply
        .varbinds
        .last()
        .expect("a varbind")
        .expect("a good one");
    let mut text = Vec::new();
    match value.put_text(&mut text) {
        true => text.iter().map(|byte| format!("{byte:02x}")).collect(),
        false => "undef".into(),
    }
}

fn farm() -> Farm {
    let settings = Settings {
        first: [127, 0, 12, 20].into(),
        port: 0,
        devices: 2,
        interfaces: 41,
        community: b"public".to_vec(),
    };
    Farm::start(settings).unwrap_or_else(|why| panic!("cannot start a farm: {why}"))
}

fn agent_of(farm: &Farm, device: u32) -> SocketAddr {
    (farm.address(device), farm.settings().port).into()
}

/// The farm against net-snmp's tools: others understand its replies.
#[test]
fn tables_of_the_farm_are_those_that_snmpbulkwalk_sees() {
    if machine::must_skip(&["snmpbulkwalk"]) {
        return;
    }
    let farm = farm();
    farm.change(1, |behaviour, now_ns| {
        behaviour.first_index = 436_207_616;
        behaviour.renumber(3, now_ns);
        behaviour.vanish(2, now_ns);
    });
    for (device, interfaces) in [(0, 21), (1, 18)] {
        let agent = agent_of(&farm, device);
        let mut client = Client::of(agent);
        let root = oid("1.3.6.1.2.1");
        let ours = client.walk(BULK, Version::V2c, &root);
        let one_by_one = client.walk(Ask::GetNext, Version::V2c, &root);
        let names = |all: &Varbinds| {
            all.iter()
                .map(|(name, _)| name.to_string())
                .collect::<Vec<_>>()
        };
        assert!(names(&ours) == names(&one_by_one));
        let theirs = bulk_walked(agent, "1.3.6.1.2.1");
        let theirs: Vec<String> = theirs
            .iter()
            .map(|(name, _)| name[1..].to_owned())
            .collect();
        assert!(
            names(&ours) == theirs,
            "{} and {} names",
            ours.len(),
            theirs.len()
        );
        assert_eq!(ours.len(), 7 + 1 + (22 + 5 + 19) * interfaces + 1);
        // GET finds each object by its name, too.
        for names in ours.chunks(20) {
            let names: Vec<Oid> = names.iter().map(|(name, _)| name.clone()).collect();
            let said = client.get(&names);
            assert!(said.iter().all(|(_, said)| *said != Said::Exception));
        }
        // v1 has all objects but the 64-bit counters.
        let in_v1 = client.walk(Ask::GetNext, Version::V1, &root);
        assert_eq!(in_v1.len(), ours.len() - 8 * interfaces);
    }
}

#[test]
fn the_farm_counts_what_it_says_that_it_counts() {
    let farm = farm();
    let mut client = Client::of(agent_of(&farm, 1));
    let x_table = oid("1.3.6.1.2.1.31.1.1.1");
    let now_ns = || {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        u64::try_from(since.expect("after 1970").as_nanos()).expect("before 2554")
    };
    let names: Vec<Oid> = (1..=20).map(|index| x_table.with(&[10, index])).collect();
    let before = now_ns();
    let said = client.get(&names);
    let after = now_ns();
    for (interface, (_, said)) in (0..).zip(said) {
        let value = |at| i128::from(traffic::value_at(1, interface, traffic::Direction::Out, at));
        let Said::Number(number) = said else {
            panic!("{said:?}");
        };
        assert!((value(before)..=value(after)).contains(&number), "{number}");
    }
    assert_eq!(farm.counts_of(1).varbinds, 20);
    assert_eq!(farm.counts_of(0).varbinds, 0);
}

/// Stock cfgmaker finds each interface of the farm.
#[test]
fn cfgmaker_writes_a_target_for_each_interface_of_the_farm() {
    if machine::must_skip(&["cfgmaker"]) {
        return;
    }
    let (farm, scratch) = (farm(), Scratch::new("cfgmaker"));
    let agents = (0..2).map(|device| format!("public@{}::::2", agent_of(&farm, device)));
    let output = Command::new("cfgmaker")
        .args(["--noreversedns", "--global", "LogFormat: rrdtool"])
        .args(["--global", &format!("WorkDir: {}", scratch.text("rrd"))])
        .args(["--output", &scratch.text("mrtg.cfg")])
        .args(agents)
        .env("LANG", "C")
        .output();
    let output = output.unwrap_or_else(|why| panic!("cannot run cfgmaker: {why}"));
    let said = String::from_utf8_lossy(&output.stderr);
    let written = std::fs::read_to_string(scratch.path("mrtg.cfg")).expect("a configuration");
    let targets = written.lines().filter(|line| line.starts_with("Target["));
    let distinct: HashSet<&str> = targets.collect();
    assert_eq!(distinct.len(), 41, "{said}");
}
