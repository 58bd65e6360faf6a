//! Devices that answer as a table says, well or badly.

use kymo_sys::clock::Stamp;
use kymo_wire::mrtg_cfg::Secret;
use kymo_wire::snmp::{
    Message, MessageHead, ObjectValue, Oid, PduKind, Version, compare_oids, put_message,
    put_varbind,
};

use super::*;

/// Objects of an agent in their order.
struct Agent {
    objects: Vec<(Oid, ObjectValue<'static>)>,
    has_bulk: bool,
    /// Most varbinds of an answer.
    varbinds_max: usize,
    requests: usize,
}

impl Agent {
    fn new(objects: &[(&str, ObjectValue<'static>)]) -> Agent {
        let objects = objects.iter();
        let objects = objects.map(|(name, value)| (Oid::parse(name).unwrap(), *value));
        let mut objects: Vec<_> = objects.collect();
        objects.sort_by(|(left, _), (right, _)| compare_oids(left, right));
        Agent {
            objects,
            has_bulk: true,
            varbinds_max: 100,
            requests: 0,
        }
    }

    fn next(&self, name: &[u8]) -> Option<&(Oid, ObjectValue<'static>)> {
        let mut objects = self.objects.iter();
        objects.find(|(own, _)| compare_oids(own, name).is_gt())
    }

    fn answer(&mut self, packet: &[u8]) -> Vec<u8> {
        self.requests += 1;
        let request = Message::decode(packet).unwrap();
        let rounds = match request.head.kind {
            PduKind::GetBulk => usize::try_from(request.head.index).unwrap(),
            _ => 1,
        };
        let mut head = MessageHead {
            kind: PduKind::Response,
            status: 0,
            index: 0,
            ..request.head
        };
        if request.head.kind == PduKind::GetBulk && !self.has_bulk {
            head.status = 5;
        }
        let names = request
            .varbinds
            .map(|varbind| Oid::of_bytes(varbind.unwrap().0));
        let mut names: Vec<Oid> = names.collect();
        let (mut varbinds, mut count) = (Vec::new(), 0);
        for _ in 0..rounds {
            for (at, name) in names.iter_mut().enumerate() {
                let found = self.next(name).map(|(name, value)| (name.clone(), *value));
                if found.is_none() && head.version == Version::V1 {
                    (head.status, head.index) = (2, i32::try_from(at + 1).unwrap());
                }
                let (next, value) = found.unwrap_or((name.clone(), ObjectValue::EndOfMibView));
                if count < self.varbinds_max {
                    put_varbind(&mut varbinds, &next, value);
                    count += 1;
                }
                *name = next;
            }
        }
        let mut out = Vec::new();
        put_message(&mut out, &head, &varbinds);
        out
    }
}

fn random(bytes: &mut [u8]) {
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::try_from(at * 7 % 251).unwrap();
    }
}

fn profile(text: &str) -> Profile {
    Profile {
        name: "p".into(),
        ..toml::from_str(text).unwrap()
    }
}

fn asker(access: DeviceAccess, profiles: Vec<Profile>) -> DeviceAsker {
    let setup = DeviceSetup {
        access,
        profiles,
        interfaces: InterfaceFilter::default(),
        random,
    };
    DeviceAsker::new(&setup).unwrap()
}

/// Polls once; the text without the metrics about the poll.
fn poll(asker: &mut DeviceAsker, answer: impl FnMut(&[u8]) -> Vec<u8>) -> String {
    poll_at(asker, 0, answer)
}

/// Polls once, some seconds after the start.
fn poll_at(
    asker: &mut DeviceAsker,
    after_s: u64,
    mut answer: impl FnMut(&[u8]) -> Vec<u8>,
) -> String {
    let now = Stamp {
        mono_ns: after_s * 1_000_000_000,
        ..Stamp::default()
    };
    asker.begin();
    for _ in 0..5000 {
        let Some(packet) = asker.packet(now).map(<[u8]>::to_vec) else {
            let text = String::from_utf8(asker.finish()).unwrap();
            let own = text.split_once("# TYPE snmp_scrape_").unwrap().0;
            return own.to_string();
        };
        let reply = answer(&packet);
        asker.take(&reply, now);
    }
    panic!("the poll does not end");
}

fn community() -> Secret {
    Secret::new(b"public")
}

const TABLE: &str = r#"
[[table]]
gauge = { up = "1.3.6.1.2.1.1.3" }
text = { sysName = "1.3.6.1.2.1.1.5" }
[[table]]
index = ["i"]
labels = { name = "1.3.6.1.4.1.9.2" }
gauge = { a = "1.3.6.1.4.1.9.3" }
counter = { b = "1.3.6.1.4.1.9.4" }
info = { kind = "1.3.6.1.4.1.9.5" }
scale = { a = 0.5 }
words = { kind = { 1 = "one" } }
"#;

fn good() -> Agent {
    Agent::new(&[
        ("1.3.6.1.2.1.1.3.0", ObjectValue::TimeTicks(77)),
        (
            "1.3.6.1.2.1.1.5.0",
            ObjectValue::OctetString(b"a \"b\"\n\\c"),
        ),
        ("1.3.6.1.4.1.9.2.1", ObjectValue::OctetString(b"x")),
        ("1.3.6.1.4.1.9.2.2", ObjectValue::OctetString(b"y\xff")),
        ("1.3.6.1.4.1.9.3.1", ObjectValue::Integer(-4)),
        ("1.3.6.1.4.1.9.3.2", ObjectValue::OctetString(b"3 C")),
        ("1.3.6.1.4.1.9.4.1", ObjectValue::Counter64(5)),
        ("1.3.6.1.4.1.9.4.2", ObjectValue::OctetString(b"no number")),
        ("1.3.6.1.4.1.9.4.3", ObjectValue::Counter32(9)),
        ("1.3.6.1.4.1.9.5.1", ObjectValue::Integer(1)),
        ("1.3.6.1.4.1.9.5.2", ObjectValue::Integer(2)),
        ("1.3.6.1.4.1.9.9.2", ObjectValue::Integer(2)),
    ])
}

const GOOD: &str = "\
# TYPE up gauge
up{} 77
# TYPE sysName gauge
sysName{sysName=\"a \\\"b\\\"\\n\\\\c\",} 1
# TYPE a gauge
a{i=\"1\",name=\"x\",} -2
a{i=\"2\",name=\"y\u{fffd}\",} 1.5
# TYPE b counter
b{i=\"1\",name=\"x\",} 5
b{i=\"3\",} 9
# TYPE kind_info gauge
kind_info{i=\"1\",name=\"x\",kind=\"one\",} 1
kind_info{i=\"2\",name=\"y\u{fffd}\",kind=\"2\",} 1
";

#[test]
fn tables_become_metrics_in_each_version_and_however_short_answers_are() {
    for (access, has_bulk, varbinds_max) in [
        (DeviceAccess::V2c(community()), true, 100),
        (DeviceAccess::V2c(community()), true, 3),
        (DeviceAccess::V2c(community()), true, 1),
        (DeviceAccess::V2c(community()), false, 100),
        (DeviceAccess::V1(community()), false, 100),
    ] {
        let mut agent = good();
        (agent.has_bulk, agent.varbinds_max) = (has_bulk, varbinds_max);
        let mut asker = asker(access, vec![profile(TABLE)]);
        for _ in 0..2 {
            let text = poll(&mut asker, |packet| agent.answer(packet));
            assert_eq!(text, GOOD, "{has_bulk} {varbinds_max}");
        }
    }
}

#[test]
fn a_table_is_asked_for_by_few_packets() {
    let mut agent = good();
    let mut asker = asker(DeviceAccess::V2c(community()), vec![profile(TABLE)]);
    poll(&mut asker, |packet| agent.answer(packet));
    assert!(agent.requests <= 3, "{}", agent.requests);
}

/// Answers that no agent should give; the poll ends after each, and says which columns were cut off.
#[test]
fn hostile_agents_end_the_poll() {
    type Spoil = fn(&mut Agent, &[u8]) -> Vec<u8>;
    type BoxedSpoil = Box<dyn Fn(&mut Agent, &[u8]) -> Vec<u8>>;
    let same: Spoil = |_, packet| {
        let request = Message::decode(packet).unwrap();
        let head = MessageHead {
            kind: PduKind::Response,
            status: 0,
            index: 0,
            ..request.head
        };
        let mut varbinds = Vec::new();
        for varbind in request.varbinds {
            put_varbind(&mut varbinds, varbind.unwrap().0, ObjectValue::Integer(1));
        }
        let mut out = Vec::new();
        put_message(&mut out, &head, &varbinds);
        out
    };
    let status = |packet: &[u8], status: i32, index: i32| {
        let request = Message::decode(packet).unwrap();
        let head = MessageHead {
            kind: PduKind::Response,
            status,
            index,
            ..request.head
        };
        let mut out = Vec::new();
        put_message(&mut out, &head, &[]);
        out
    };
    let spoils: [(&str, BoxedSpoil); 8] = [
        ("same", Box::new(same)),
        ("empty", Box::new(move |_, packet| status(packet, 0, 0))),
        ("tooBig", Box::new(move |_, packet| status(packet, 1, 0))),
        (
            "noSuchName",
            Box::new(move |_, packet| status(packet, 2, 0)),
        ),
        (
            "noSuchName far",
            Box::new(move |_, packet| status(packet, 2, 1000)),
        ),
        ("genErr", Box::new(move |_, packet| status(packet, 5, 0))),
        (
            "genErr at 1",
            Box::new(move |_, packet| status(packet, 5, 1)),
        ),
        (
            "negative",
            Box::new(move |_, packet| status(packet, -1, -1)),
        ),
    ];
    for (name, spoil) in spoils {
        let mut agent = good();
        let mut asker = asker(DeviceAccess::V2c(community()), vec![profile(TABLE)]);
        let text = poll(&mut asker, |packet| spoil(&mut agent, packet));
        assert_eq!(text, "", "{name}");
        let text = poll(&mut asker, |packet| agent.answer(packet));
        assert_eq!(text, GOOD, "after {name}");
    }
}

#[test]
fn a_table_without_an_end_is_cut_off() {
    let mut asker = asker(DeviceAccess::V2c(community()), vec![profile(TABLE)]);
    let mut row = 0;
    let text = poll(&mut asker, |packet| {
        let request = Message::decode(packet).unwrap();
        let head = MessageHead {
            kind: PduKind::Response,
            status: 0,
            index: 0,
            ..request.head
        };
        let names = request
            .varbinds
            .map(|varbind| Oid::of_bytes(varbind.unwrap().0));
        let names: Vec<Oid> = names.collect();
        let mut varbinds = Vec::new();
        for _ in 0..1000 {
            row += 1;
            for name in &names {
                put_varbind(
                    &mut varbinds,
                    &name.with(&[row]),
                    ObjectValue::OctetString(&[b'x'; 200]),
                );
            }
        }
        let mut out = Vec::new();
        put_message(&mut out, &head, &varbinds);
        out
    });
    assert!(text.len() < 11 << 20, "{}", text.len());
}

#[test]
fn strays_change_nothing() {
    let mut asker = asker(DeviceAccess::V2c(community()), vec![profile(TABLE)]);
    let now = Stamp::default();
    assert_eq!(asker.take(b"", now), AnswerTaken::Stray, "before a poll");
    asker.begin();
    let packet = asker.packet(now).unwrap().to_vec();
    let again = asker.packet(now).unwrap().to_vec();
    assert_ne!(packet, again, "each attempt has an id of its own");
    let mut agent = good();
    let reply = agent.answer(&packet);
    for end in 0..reply.len() {
        assert_eq!(asker.take(&reply[..end], now), AnswerTaken::Stray, "{end}");
    }
    let at = reply.windows(6).position(|part| part == b"public").unwrap();
    let mut other = reply.clone();
    other[at] = b'q';
    assert_eq!(
        asker.take(&other, now),
        AnswerTaken::Stray,
        "another community"
    );
    assert_eq!(asker.take(&packet, now), AnswerTaken::Stray, "a request");
    assert_eq!(
        asker.take(&reply, now),
        AnswerTaken::Next,
        "the answer to the first attempt"
    );
    assert_eq!(asker.take(&reply, now), AnswerTaken::Stray, "twice");
    assert_eq!(
        asker.silence(2.0),
        "not complete within 2 s, while asking for p"
    );
}

#[test]
fn profiles_that_are_built_in_are_right() {
    for (name, text) in BUILT_IN {
        let profile: Profile = toml::from_str(text).unwrap_or_else(|why| panic!("{name}: {why}"));
        assert_eq!(check_profile(&profile), Ok(()), "{name}");
    }
}

#[test]
fn texts_times_bits_and_states_become_numbers() {
    const OWN: &str = r#"
[[table]]
index = ["i"]
extract = { rpm = { value = "1.3.6.1.4.1.9.2", regex = [["fan ([0-9.]+) rpm", "$1"], ["off|fan (x)", "0$1"], ["fan [a-z]", "5"]] } }
time = { since = "1.3.6.1.4.1.9.3" }
bits = { alarm = "1.3.6.1.4.1.9.4" }
states = { mode = "1.3.6.1.4.1.9.5" }
[table.words]
alarm = { 0 = "low", 9 = "high" }
mode = { 1 = "on", 2 = "off" }
"#;
    let mut agent = Agent::new(&[
        (
            "1.3.6.1.4.1.9.2.1",
            ObjectValue::OctetString(b"fan 1200.5 rpm\n"),
        ),
        ("1.3.6.1.4.1.9.2.2", ObjectValue::OctetString(b"off")),
        ("1.3.6.1.4.1.9.2.3", ObjectValue::OctetString(b"fan x")),
        (
            "1.3.6.1.4.1.9.2.4",
            ObjectValue::OctetString(b"a fan 7 rpm"),
        ),
        (
            "1.3.6.1.4.1.9.3.1",
            ObjectValue::OctetString(&[7, 0xb2, 1, 2, 0, 0, 1, 0]),
        ),
        ("1.3.6.1.4.1.9.3.2", ObjectValue::OctetString(b"yesterday")),
        ("1.3.6.1.4.1.9.4.1", ObjectValue::OctetString(&[0x80, 0x40])),
        ("1.3.6.1.4.1.9.4.2", ObjectValue::Integer(1)),
        ("1.3.6.1.4.1.9.5.1", ObjectValue::Integer(2)),
        ("1.3.6.1.4.1.9.5.2", ObjectValue::Integer(7)),
    ]);
    let mut asker = asker(DeviceAccess::V2c(community()), vec![profile(OWN)]);
    let text = poll(&mut asker, |packet| agent.answer(packet));
    let expected = "\
# TYPE since gauge
since{i=\"1\",} 86401
# TYPE alarm gauge
alarm{i=\"1\",alarm=\"low\",} 1
alarm{i=\"1\",alarm=\"high\",} 1
# TYPE mode gauge
mode{i=\"1\",mode=\"on\",} 0
mode{i=\"1\",mode=\"off\",} 1
mode{i=\"2\",mode=\"on\",} 0
mode{i=\"2\",mode=\"off\",} 0
mode{i=\"2\",mode=\"7\",} 1
# TYPE rpm gauge
rpm{i=\"1\",} 1200.5
rpm{i=\"2\",} 0
rpm{i=\"3\",} 5
";
    assert_eq!(text, expected);
}

#[test]
fn neighbours_are_asked_for_once_an_hour() {
    let lldp = |rest: &str| format!("1.0.8802.1.1.2.1.{rest}");
    let mut objects = vec![(
        "1.3.6.1.2.1.1.5.0".to_string(),
        ObjectValue::OctetString(b"core \"1\""),
    )];
    let interface = (
        "1.3.6.1.2.1.31.1.1.1.1.3".to_string(),
        ObjectValue::OctetString(b"GigabitEthernet0/7"),
    );
    objects.push(interface);
    for (rest, value) in [
        ("3.7.1.2.7", ObjectValue::Integer(7)),
        ("3.7.1.3.7", ObjectValue::OctetString(b"512")),
        ("3.7.1.4.7", ObjectValue::OctetString(b"Gi0/7")),
        ("4.1.1.4.5.7.1", ObjectValue::Integer(4)),
        (
            "4.1.1.5.5.7.1",
            ObjectValue::OctetString(&[0, 0x1b, 9, 3, 4, 5]),
        ),
        ("4.1.1.6.5.7.1", ObjectValue::Integer(5)),
        ("4.1.1.7.5.7.1", ObjectValue::OctetString(b"Te1/1")),
        ("4.1.1.8.5.7.1", ObjectValue::OctetString(b"<b>\x1b[2J\n")),
        ("4.1.1.9.5.7.1", ObjectValue::OctetString(b"core-2\0")),
        // A neighbour that is there twice, under two times, of a port that is nowhere else.
        ("4.1.1.7.6.9.1", ObjectValue::OctetString(b"x")),
        ("4.1.1.7.8.9.1", ObjectValue::OctetString(b"x")),
    ] {
        objects.push((lldp(rest), value));
    }
    let objects: Vec<(&str, ObjectValue<'static>)> = objects
        .iter()
        .map(|(name, value)| (name.as_str(), *value))
        .collect();
    let mut agent = Agent::new(&objects);
    let profiles = vec![profile(TABLE), built_in("neighbours")];
    let mut asker = asker(DeviceAccess::V2c(community()), profiles);
    let found = "# TYPE lldpRemSysName gauge\n\
         lldpRemSysName{ifName=\"9\",lldpRemChassisId=\"\",lldpRemPortDesc=\"\",lldpRemPortId=\"x\",lldpRemSysName=\"\",sysName=\"core \\\"1\\\"\",} 1\n\
         lldpRemSysName{ifName=\"GigabitEthernet0/7\",lldpRemChassisId=\"00:1b:09:03:04:05\",lldpRemPortDesc=\"<b>\\\\x1b[2J\",lldpRemPortId=\"Te1/1\",lldpRemSysName=\"core-2\",sysName=\"core \\\"1\\\"\",} 1\n";
    let mut requests = Vec::new();
    for after_s in [0, 60, 3599, 3600, 3660] {
        agent.requests = 0;
        let text = poll_at(&mut asker, after_s, |packet| agent.answer(packet));
        assert!(text.ends_with(found), "{after_s}: {text}");
        requests.push(agent.requests);
    }
    let [first, kept, ..] = requests[..] else {
        unreachable!("five polls");
    };
    assert!(first > kept, "{requests:?}");
    assert_eq!(requests, [first, kept, kept, first, kept]);
    // An agent that forgets its neighbours has none from the next hour on.
    agent.objects.truncate(1);
    let text = poll_at(&mut asker, 7200, |packet| agent.answer(packet));
    assert!(!text.contains("lldpRem"), "{text}");
}

#[test]
fn wrong_profiles_are_refused() {
    for (text, why) in [
        ("table = []", "it has no [[table]]"),
        ("[[table]]", "a table has no metric"),
        (
            "[[table]]\ngauge = { a = \"1.x\" }",
            "a: \"1.x\" is not an OID",
        ),
        (
            "[[table]]\ngauge = { \"a b\" = \"1.3\" }",
            "\"a b\" is not a name of letters, digits and _",
        ),
        (
            "[[table]]\nlabels = { __a = \"1.3\" }\ngauge = { a = \"1.3\" }",
            "\"__a\" is not a name of letters, digits and _",
        ),
        (
            "[[table]]\nindex = [\"a:b\"]\ngauge = { a = \"1.3\" }",
            "index \"a:b\": \"b\" is none of integer, string, rest, ip and mac",
        ),
        (
            "[[table]]\ninterfaces = true\ngauge = { a = \"1.3\" }",
            "a table of interfaces has one index, such as [\"ifIndex\"]",
        ),
        (
            "[[table]]\ncounter = { a = \"1.3\" }\nscale = { a = 2 }",
            "scale: a is no gauge of the table",
        ),
        ("[[table]]\nbits = { a = \"1.3\" }", "a has no words"),
        (
            "[[table]]\nextract = { a = { value = \"1.3\", regex = [[\"(\", \"1\"]] } }",
            "\"(\" is not a regular expression",
        ),
        (
            "[[table]]\ngauge = { a = \"1.3\" }\nwords = { a = { x = \"y\" } }",
            "words of a: \"x\" is not a number",
        ),
    ] {
        assert_eq!(
            check_profile(&profile(text)),
            Err(why.to_string()),
            "{text}"
        );
    }
}

/// The built-in profile of this name.
fn built_in(name: &str) -> Profile {
    let found = BUILT_IN.iter().find(|(own, _)| *own == name);
    profile(found.unwrap().1)
}

#[test]
fn processors_are_those_of_the_devices_that_have_a_load() {
    let mut agent = Agent::new(&[
        (
            "1.3.6.1.2.1.25.3.2.1.3.1",
            ObjectValue::OctetString(b"CPU 0"),
        ),
        (
            "1.3.6.1.2.1.25.3.2.1.3.7",
            ObjectValue::OctetString(b"network interface lo"),
        ),
        ("1.3.6.1.2.1.25.3.3.1.2.1", ObjectValue::Integer(12)),
    ]);
    let mut asker = asker(DeviceAccess::V2c(community()), vec![built_in("cpu")]);
    let text = poll(&mut asker, |packet| agent.answer(packet));
    let load = "hrProcessorLoad{hrDeviceIndex=\"1\",hrDeviceDescr=\"CPU 0\",} 12\n";
    assert_eq!(text, format!("# TYPE hrProcessorLoad gauge\n{load}"));
}

#[test]
fn a_ups_says_volts() {
    let mut agent = Agent::new(&[
        ("1.3.6.1.2.1.33.1.2.1.0", ObjectValue::Integer(2)),
        ("1.3.6.1.2.1.33.1.2.5.0", ObjectValue::Integer(541)),
        ("1.3.6.1.2.1.33.1.4.4.1.5.1", ObjectValue::Integer(37)),
    ]);
    let mut asker = asker(DeviceAccess::V1(community()), vec![built_in("ups")]);
    let text = poll(&mut asker, |packet| agent.answer(packet));
    for line in [
        "upsBatteryStatus{} 2\n",
        "upsBatteryVoltage{} 54.1\n",
        "upsOutputPercentLoad{upsOutputLineIndex=\"1\",} 37\n",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[test]
fn sensors_are_scaled() {
    let of = |column: u32, row: u32| format!("1.3.6.1.2.1.99.1.1.1.{column}.{row}");
    let mut objects = Vec::new();
    for (row, scale, precision, value) in [
        (1, 9, 0, 23),
        (2, 8, 1, 12_345),
        (3, 10, 0, 2),
        (4, 9, 1, -55),
    ] {
        for (column, number) in [(1, 8), (2, scale), (3, precision), (4, value)] {
            objects.push((of(column, row), ObjectValue::Integer(number)));
        }
    }
    let objects: Vec<_> = objects
        .iter()
        .map(|(name, value)| (name.as_str(), *value))
        .collect();
    let mut agent = Agent::new(&objects);
    let mut asker = asker(DeviceAccess::V2c(community()), vec![built_in("sensors")]);
    let text = poll(&mut asker, |packet| agent.answer(packet));
    let scaled = text
        .split_once("# TYPE entPhySensorScaledValue gauge\n")
        .unwrap()
        .1;
    let values: Vec<&str> = scaled
        .lines()
        .map(|line| line.split_once("} ").unwrap().1)
        .collect();
    assert_eq!(values, ["23", "1.2345", "2000", "-5.5"]);
    assert!(scaled.contains("entPhySensorType=\"celsius\""), "{scaled}");
}

/// Any bytes, as a device's answers: `kymo_fuzz` runs the same function for longer.
#[test]
fn answers_may_have_any_bytes() {
    let mut state = 1u32;
    for _ in 0..300 {
        let bytes = std::iter::repeat_with(|| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.to_be_bytes()[0]
        });
        let input: Vec<u8> = bytes.take(2000).collect();
        fuzz_devices(&input);
    }
}
