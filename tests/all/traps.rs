//! SNMP traps and informs of net-snmp's `snmptrap`, which become events of their devices in the answers of `kymo serve`.

use std::fs;
use std::net::UdpSocket;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use kymo_tests::served::{Served, eventually, get, kill};
use kymo_tests::snmpd::Snmpd;
use kymo_tests::{Scratch, free_port, machine};
use kymo_wire::snmp::{MessageHead, ObjectValue, Oid, PduKind, Version, put_message, put_varbind};
use serde_json::Value;

/// A secret that no answer and no line may have.
const COMMUNITY: &str = "s3cr3t";
const IF_DESCR: &str = "1.3.6.1.2.1.2.2.1.2.2";
const HOSTILE: &str = "<img src=x onerror=alert(1)>\u{1b}[2J";

/// A `kymo serve` that takes traps.
struct TrapHub {
    served: Served,
    address: String,
    port: u16,
    access: PathBuf,
    _scratch: Scratch,
}

impl TrapHub {
    fn start(name: &str, access: &str) -> TrapHub {
        TrapHub::start_with(Scratch::new(name), access, "core-1", "")
    }

    /// Starts it with the name of 127.0.0.1 and more keys.
    fn start_with(scratch: Scratch, access: &str, device: &str, more: &str) -> TrapHub {
        let file = scratch.path("traps.auth");
        fs::write(&file, access).expect("a file");
        let port = free_port();
        let config = format!(
            "user = \"\"\n[listen]\npage = \"127.0.0.1:0\"\ncollectd = []\ntraps = [\"127.0.0.1:{port}\"]\n\
             [traps]\nauth_file = {file:?}\nallow = [\"127.0.0.1\"]\nhosts = {{ \"127.0.0.1\" = \"{device}\" }}\n{more}"
        );
        let mut served = Served::configured(&scratch, &scratch.path("data"), &config);
        let address = served.address();
        served.has_said(&format!("SNMP traps on 127.0.0.1:{port}"));
        let hub = TrapHub {
            served,
            address,
            port,
            access: file,
            _scratch: scratch,
        };
        eventually(|| hub.line()).expect("a listener");
        hub
    }

    /// Runs snmptrap with these words and objects behind its address; true if it ends well.
    fn sends(&self, words: &[&str], objects: &[&str]) -> bool {
        self.sends_to(self.port, words, objects)
    }

    fn sends_to(&self, port: u16, words: &[&str], objects: &[&str]) -> bool {
        let place = format!("udp:127.0.0.1:{port}");
        let mut command = Command::new("snmptrap");
        command.args(["-m", "", "-M", "/nonexistent", "-t", "2"]);
        command.args(words).arg(place).args(objects);
        command
            .env("SNMP_PERSISTENT_DIR", self._scratch.text("snmptrap"))
            .env("SNMPCONFPATH", self._scratch.text("none"));
        let command = command.stdin(Stdio::null()).stderr(Stdio::null());
        command.status().expect("snmptrap runs").success()
    }

    /// Kind and text of each event of a device, oldest first.
    fn events(&self, device: &str) -> Vec<(String, String)> {
        let answer = get(&self.address, "/kymo/v1/events?from=-3600", "");
        let marks = answer["marks"].as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
        let of_device = marks.iter().filter(|mark| mark["device"] == device);
        of_device
            .map(|mark| (text(&mark["kind"]), text(&mark["text"])))
            .collect()
    }

    /// The counts of the listener.
    fn line(&self) -> Option<Value> {
        let answer = get(&self.address, "/kymo/v1/hosts", "");
        let lines = answer["lines"].as_array()?;
        lines
            .iter()
            .find(|line| line["protocol"] == "traps")
            .cloned()
    }

    /// How many datagrams were refused for a reason that has this text.
    fn refused(&self, why: &str) -> u64 {
        let line = self.line().unwrap_or_default();
        let reasons = line["refused"].as_array().cloned().unwrap_or_default();
        let is_one = |reason: &&Value| {
            reason["why"]
                .as_str()
                .is_some_and(|text| text.contains(why))
        };
        let count = |reason: &Value| reason["count"].as_u64();
        reasons.iter().filter(is_one).filter_map(count).sum()
    }

    /// Waits until these are the events of a device.
    fn has_events(&self, device: &str, events: &[(&str, &str)]) {
        let want: Vec<(String, String)> = events
            .iter()
            .map(|(kind, text)| (kind.to_string(), format!("{device}: {text}")))
            .collect();
        let found = || (self.events(device) == want).then_some(());
        if eventually(found).is_none() {
            panic!("{:#?}\nin place of {want:#?}", self.events(device));
        }
    }
}

#[test]
fn traps_of_snmptrap_are_events_of_their_devices() {
    if machine::must_skip(&["snmptrap"]) {
        return;
    }
    let mut hub = TrapHub::start("traps", &format!("community {COMMUNITY}\n"));
    let v1 = ["-v1", "-c", COMMUNITY];
    let v2c = ["-v2c", "-c", COMMUNITY];
    let enterprise = "1.3.6.1.4.1.8072.3.2.10";
    // linkDown by a proxy, coldStart of the sender itself, and a trap of an enterprise.
    let index = ["1.3.6.1.2.1.2.2.1.1.2", "i", "2"];
    assert!(hub.sends(
        &v1,
        &[&[enterprise, "192.0.2.9", "2", "0", "7"][..], &index].concat()
    ));
    assert!(hub.sends(&v1, &[enterprise, "127.0.0.1", "0", "0", "7"]));
    hub.has_events(
        "192.0.2.9",
        &[(
            "failure",
            "linkDown of interface 2: ifIndex.2 = 2, sent by 127.0.0.1",
        )],
    );
    let cold = ("warning", "coldStart");
    hub.has_events("core-1", &[cold]);
    let descr = [IF_DESCR, "s", HOSTILE];
    assert!(hub.sends(
        &v2c,
        &[&["7", "1.3.6.1.6.3.1.1.5.4"][..], &index, &descr].concat()
    ));
    let hostile = HOSTILE.bytes().map(|byte| format!("{byte:02x}"));
    let hostile: String = hostile.collect();
    let up = format!("linkUp of interface 2: ifIndex.2 = 2, ifDescr.2 = 0x{hostile}");
    hub.has_events("core-1", &[cold, ("okay", &up)]);
    // Only what auth_file has may come, and an inform of another community has no answer.
    let inform = ["-Ci", "-v2c", "-r", "0", "-c"];
    let told = ["7", "1.3.6.1.4.1.9.0.1", "1.3.6.1.4.1.9.2.0", "s", "down"];
    assert!(!hub.sends(&[&inform[..], &["public"]].concat(), &told));
    assert!(hub.sends(&[&inform[..], &[COMMUNITY]].concat(), &told));
    let text = "1.3.6.1.4.1.9.0.1: 1.3.6.1.4.1.9.2.0 = \"down\"";
    let all = [cold, ("okay", &*up), ("warning", text)];
    // An inform that has an answer outlives the keeper.
    let keeper = hub.served.child("keeper").expect("a keeper");
    kill("-KILL", keeper);
    hub.served.next_child("keeper", keeper);
    hub.has_events("core-1", &all);
    // A secret that has changed counts from SIGHUP on.
    fs::write(&hub.access, "community public\n").expect("a file");
    hub.served.guardian.signal("-HUP");
    hub.served
        .has_said("read the auth_file of traps again: 1 communities, 0 users");
    assert!(hub.sends(&["-v2c", "-c", COMMUNITY], &told));
    let refused = || (hub.refused("a community that auth_file does not have") > 0).then_some(());
    eventually(refused).expect("a count");
    assert!(hub.sends(&[&inform[..], &["public"]].concat(), &told));
    hub.has_events("core-1", &[&all[..], &[("warning", text)]].concat());
    let said = hub.served.said.join("\n");
    assert!(
        said.contains("traps: ") && !said.contains(COMMUNITY),
        "{said}"
    );
}

/// A trap of v2c with a number in it.
fn trap(kind: PduKind, number: i32) -> Vec<u8> {
    let oid = |text: &str| Oid::parse(text).expect("an OID");
    let (mut varbinds, mut packet) = (Vec::new(), Vec::new());
    let name = oid("1.3.6.1.4.1.9.0.1");
    put_varbind(
        &mut varbinds,
        &oid("1.3.6.1.6.3.1.1.4.1.0"),
        ObjectValue::Oid(&name),
    );
    put_varbind(&mut varbinds, &name, ObjectValue::Integer(number.into()));
    let head = MessageHead {
        version: Version::V2c,
        community: b"public",
        kind,
        id: number,
        status: 0,
        index: 0,
    };
    put_message(&mut packet, &head, &varbinds);
    packet
}

#[test]
fn a_flood_is_counted_and_said_and_bad_packets_change_nothing() {
    let mut hub = TrapHub::start("traps-flood", "community public\n");
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    socket.connect(("127.0.0.1", hub.port)).expect("a peer");
    let whole = trap(PduKind::Trap, 0);
    for end in 1..whole.len() {
        socket.send(&whole[..end]).expect("sent");
    }
    // An inform that is sent three times is one event, and is answered each time.
    let inform = trap(PduKind::Inform, 9);
    let mut buffer = [0; 1500];
    for _ in 0..3 {
        socket.send(&inform).expect("sent");
        let size = socket.recv(&mut buffer).expect("a response");
        let mut response = inform.clone();
        let kind = response.iter().position(|byte| *byte == 0xa6);
        response[kind.expect("a PDU")] = 0xa2;
        assert_eq!(&buffer[..size], response);
    }
    let text = "1.3.6.1.4.1.9.0.1: 1.3.6.1.4.1.9.0.1 = 9";
    hub.has_events("core-1", &[("warning", text)]);
    let cut = u64::try_from(whole.len() - 1).expect("a count");
    let counted = || (hub.refused("") >= cut).then_some(());
    eventually(counted).expect("counts of what is cut");
    // A sender above its rate is said, and the newest traps stay.
    for number in 0..6000 {
        socket.send(&trap(PduKind::Trap, number)).expect("sent");
        if number % 200 == 0 {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }
    hub.served.has_said("came too fast");
    // The note of the first trap may come before it is an event.
    let kept = || Some(hub.events("core-1").len()).filter(|kept| *kept >= 2);
    let kept = eventually(kept).expect("events of the flood");
    assert!(kept <= 2048, "{kept} events");
    // Another network than that of `allow`.
    let foreign = UdpSocket::bind("127.0.0.2:0").expect("a socket");
    foreign
        .send_to(&whole, ("127.0.0.1", hub.port))
        .expect("sent");
    eventually(|| (hub.refused("another network") == 1).then_some(())).expect("a count");
}

/// A user of SNMPv3: its line for kymo, and its words for snmptrap.
fn user(name: &str, protocols: Option<(&str, &str)>) -> (String, Vec<String>) {
    let mut words = vec!["-v3".to_string(), "-u".into(), name.into()];
    let Some((auth, privacy)) = protocols else {
        words.extend(["-l".into(), "noAuthNoPriv".into()]);
        return (format!("user username => '{name}'"), words);
    };
    let line = format!(
        "user username => '{name}', authprotocol => '{auth}', authpassword => '{COMMUNITY}-signing', privprotocol => '{privacy}', privpassword => '{COMMUNITY}-private'"
    );
    let (signing, private) = (
        format!("{COMMUNITY}-signing"),
        format!("{COMMUNITY}-private"),
    );
    words.extend(
        [
            "-l", "authPriv", "-a", auth, "-A", &signing, "-x", privacy, "-X", &private,
        ]
        .map(String::from),
    );
    (line, words)
}

const ENGINE: [&str; 2] = ["-e", "0x8000000001020304"];
const COLD_START: [&str; 2] = ["7", "1.3.6.1.6.3.1.1.5.1"];

#[test]
fn users_of_snmpv3_send_traps_and_informs() {
    if machine::must_skip(&["snmptrap"]) {
        return;
    }
    let users = [
        user("plain", None),
        user("ada", Some(("SHA", "AES"))),
        user("bob", Some(("SHA-256", "AES"))),
        user("cy", Some(("MD5", "DES"))),
        user("dan", Some(("SHA-512", "AES-256"))),
    ];
    let lines: Vec<&str> = users.iter().map(|(line, _)| &**line).collect();
    let mut hub = TrapHub::start("traps-users", &lines.join("\n"));
    let mut events = 0;
    for restarts in 0..2 {
        for (at, (_, words)) in users.iter().enumerate() {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            // Each start of the sender's engine has a number of its own.
            let moment = format!("{},{}", 10 * (restarts + 1) + at, 100);
            assert!(hub.sends(
                &[&words[..], &ENGINE, &["-Z", &moment]].concat(),
                &COLD_START
            ));
            events += 1;
            hub.has_events("core-1", &vec![("warning", "coldStart"); events]);
            let inform = ["-Ci", "-r", "1", "-t", "5"];
            assert!(
                hub.sends(&[&words[..], &inform].concat(), &COLD_START),
                "{words:?}"
            );
            events += 1;
            hub.has_events("core-1", &vec![("warning", "coldStart"); events]);
        }
        assert_eq!(hub.refused(""), 0, "{:?}", hub.line());
        let keeper = hub.served.child("keeper").expect("a keeper");
        kill("-TERM", keeper);
        hub.served.next_child("keeper", keeper);
        eventually(|| hub.line()).expect("a listener");
    }
    let wrong = user("ada", Some(("SHA", "AES"))).1;
    let wrong: Vec<String> = wrong
        .iter()
        .map(|word| word.replace("-signing", "-other"))
        .collect();
    let wrong: Vec<&str> = wrong.iter().map(String::as_str).collect();
    let inform = ["-Ci", "-r", "0", "-t", "1"];
    assert!(!hub.sends(&[&wrong[..], &inform].concat(), &COLD_START));
    let forged = || (hub.refused("wrong signature") > 0).then_some(());
    eventually(forged).expect("a count");
    hub.has_events("core-1", &vec![("warning", "coldStart"); events]);
    hub.served.has_said("a message with a wrong signature");
    let said = hub.served.said.join("\n");
    assert!(!said.contains(COMMUNITY), "{said}");
}

#[test]
fn a_hostile_sender_of_snmpv3_changes_nothing() {
    if machine::must_skip(&["snmptrap"]) {
        return;
    }
    let (line, words) = user("ada", Some(("SHA-256", "AES")));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let hub = TrapHub::start("traps-hostile", &line);
    // A relay between snmptrap and kymo keeps copies.
    let between = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let port = between.local_addr().expect("an address").port();
    let sent = |moment: &str| {
        assert!(hub.sends_to(
            port,
            &[&words[..], &ENGINE, &["-Z", moment]].concat(),
            &COLD_START
        ));
        let mut buffer = [0; 2000];
        let size = between.recv(&mut buffer).expect("a trap");
        buffer[..size].to_vec()
    };
    let pass = |packet: &[u8]| {
        between
            .send_to(packet, ("127.0.0.1", hub.port))
            .expect("sent");
    };
    let (old, whole) = (sent("4,9000"), sent("5,300"));
    pass(&whole);
    let one = [("warning", "coldStart")];
    hub.has_events("core-1", &one);
    let mut bad = 0;
    for _ in 0..3 {
        pass(&whole);
        pass(&old);
        pass(&sent("5,100"));
        bad += 3;
    }
    for at in 0..whole.len() {
        let mut forged = whole.clone();
        forged[at] ^= 0x40;
        pass(&forged);
        pass(&whole[..at]);
        bad += 2;
    }
    let is_counted = || (hub.refused("") >= bad - 1).then_some(());
    eventually(is_counted).unwrap_or_else(|| panic!("{bad} bad ones, {:?}", hub.line()));
    assert_eq!(
        (hub.refused("came before"), hub.refused("of another time")),
        (3, 6)
    );
    hub.has_events("core-1", &one);
    let keeper = hub.served.child("keeper").expect("a keeper");
    kill("-TERM", keeper);
    hub.served.next_child("keeper", keeper);
    eventually(|| hub.line()).expect("a listener");
    pass(&whole);
    pass(&old);
    eventually(|| (hub.refused("") == 2).then_some(())).expect("counts of a new keeper");
    pass(&sent("5,301"));
    hub.has_events("core-1", &[one[0], one[0]]);
}

#[test]
fn a_trap_is_on_the_graphs_of_its_devices_targets() {
    if machine::must_skip(&["snmptrap", "snmpd"]) {
        return;
    }
    let agent = Snmpd::start("127.0.12.41", "");
    let (device, scratch) = (agent.address.to_string(), Scratch::new("traps-graphs"));
    let text = format!(
        "WorkDir: {}\nLogFormat: rrdtool\nTarget[up]: ifInOctets.1&ifOutOctets.1:public@{device}\n\
         MaxBytes[up]: 125000000\nTitle[up]: t\n",
        scratch.text("")
    );
    let config = scratch.path("net.cfg");
    fs::write(&config, text).expect("a file");
    let more = format!("[poll]\nmrtg = [{config:?}]\n");
    let hub = TrapHub::start_with(scratch, "community public\n", &device, &more);
    assert!(hub.sends(&["-v2c", "-c", "public"], &COLD_START));
    let on_graph = || {
        let answer = get(&hub.address, "/kymo/v1/targets/graphs?id=net/up", "");
        let marks = answer["marks"].as_array()?;
        let text = format!("{device}: coldStart");
        marks.iter().any(|mark| mark["text"] == *text).then_some(())
    };
    eventually(on_graph).expect("a mark");
}
