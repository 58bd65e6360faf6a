//! Tests of SNMPv3: simulated devices with every combination of protocols, with restarts, and with hostile packets before each
//! answer.

use std::sync::Arc;

use kymo_sys::clock::Clock as _;
use kymo_wire::snmp::usm::{
    AuthProtocol, Key, PrivProtocol, ScopedPdu, UsmHead, UsmKeys, UsmMessage, put_usm_message,
};
use kymo_wire::snmp::{
    Message, MessageHead, ObjectValue, Oid, PduKind, Version, put_message, put_pdu, put_varbind,
};

use super::network::{Agent, S, Simulation, target};
use crate::engine::{Empty, Pace};
use kymo_wire::snmp::usm::UsmReport;

/// Packets made for a request, before its answer `truth` comes.
type Forge = fn(agent: &mut UsmAgent, request: &UsmMessage<'_>, time_s: u32, truth: &[u8]);

/// The engine of a simulated device.
#[derive(Clone, Debug)]
pub(super) struct UsmAgent {
    id: Vec<u8>,
    user: &'static [u8],
    keys: Option<Arc<UsmKeys>>,
    boots: u32,
    /// Simulated time of its start.
    started_ns: u64,
    /// Boots and time are 0 in the answer to a question for its id.
    hides_time: bool,
    /// Number of the report that answers a question for its id.
    report_of_id: u32,
    /// Has another id whenever it is asked.
    is_new_always: bool,
    forge: Option<Forge>,
    forged: Vec<Vec<u8>>,
    /// An earlier answer.
    old: Vec<u8>,
    /// Number of questions for its id, and of other reports that it sent.
    questions: usize,
    reports: usize,
    packets: usize,
}

impl UsmAgent {
    fn new(auth: Option<AuthProtocol>, privacy: Option<PrivProtocol>) -> UsmAgent {
        let id = b"\x80\0\0\0\x04kymo".to_vec();
        let keys = keys(auth, privacy, &id);
        UsmAgent {
            id,
            user: b"u",
            keys: keys.map(Arc::new),
            boots: 7,
            started_ns: 500 * S,
            hides_time: false,
            report_of_id: 4,
            is_new_always: false,
            forge: None,
            forged: Vec::new(),
            old: Vec::new(),
            questions: 0,
            reports: 0,
            packets: 0,
        }
    }

    pub(super) fn take_forged(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.forged)
    }

    /// A message of this engine.
    fn message(&self, id: i32, moment: (u32, u32), keys: Option<&UsmKeys>, pdu: &[u8]) -> Vec<u8> {
        let head = UsmHead {
            id,
            engine: &self.id,
            boots: moment.0,
            time_s: moment.1,
            user: self.user,
            context_engine: &self.id,
            context_name: b"",
        };
        let mut out = Vec::new();
        put_usm_message(&mut out, &head, keys, 5, pdu);
        out
    }

    fn report(&self, id: i32, moment: (u32, u32), keys: Option<&UsmKeys>, number: u32) -> Vec<u8> {
        let name = Oid::of_arcs(&[1, 3, 6, 1, 6, 3, 15, 1, 1, number, 0]).unwrap();
        let mut varbinds = Vec::new();
        put_varbind(&mut varbinds, &name, ObjectValue::Counter32(1));
        self.message(id, moment, keys, &pdu(PduKind::Report, id, &varbinds))
    }

    /// The answer to a packet; `inner` answers one of version 2c.
    pub(super) fn answer(
        &mut self,
        packet: &[u8],
        now_ns: u64,
        inner: impl FnOnce(&[u8]) -> Option<Vec<u8>>,
    ) -> Option<Vec<u8>> {
        let request = UsmMessage::decode(packet).unwrap();
        self.packets += 1;
        let time_s = u32::try_from((now_ns - self.started_ns) / S).unwrap();
        let moment = (self.boots, time_s);
        let is_known = *request.engine == *self.id;
        if !is_known || self.is_new_always {
            self.questions += 1;
            if self.is_new_always {
                self.id = format!("\u{7f}....{}", self.questions).into_bytes();
            }
            let moment = if self.hides_time { (0, 0) } else { moment };
            return Some(self.report(request.id, moment, None, self.report_of_id));
        }
        let keys = self.keys.clone();
        let keys = keys.as_deref();
        let refusal = if *request.user != *self.user {
            Some((3, None))
        } else if request.is_signed != keys.is_some() {
            Some((1, None))
        } else if keys.is_some_and(|keys| !request.is_proven_by(keys)) {
            Some((5, None))
        } else if keys.is_some()
            && (request.boots != self.boots || request.time_s.abs_diff(time_s) > 150)
        {
            Some((2, keys))
        } else {
            None
        };
        if let Some((number, keys)) = refusal {
            self.reports += 1;
            return Some(self.report(request.id, moment, keys, number));
        }
        let mut plain = Vec::new();
        let scoped = ScopedPdu::decode(request.scoped(keys, &mut plain)?).unwrap();
        let mut old = Vec::new();
        put_message(&mut old, &head(&scoped), &varbinds(&scoped));
        let reply = inner(&old)?;
        let reply = Message::decode(&reply).unwrap();
        let mut again = Vec::new();
        for (name, value) in reply.varbinds.flatten() {
            put_varbind(&mut again, name, value);
        }
        let mut bytes = Vec::new();
        put_pdu(&mut bytes, &reply.head, &again);
        let truth = self.message(request.id, moment, keys, &bytes);
        if let Some(forge) = self.forge {
            forge(self, &request, time_s, &truth);
        }
        self.old.clone_from(&truth);
        Some(truth)
    }
}

fn head(scoped: &ScopedPdu<'_>) -> MessageHead<'static> {
    MessageHead {
        version: Version::V2c,
        community: b"",
        kind: scoped.kind,
        id: scoped.id,
        status: scoped.response.status.0,
        index: scoped.response.index,
    }
}

fn varbinds(scoped: &ScopedPdu<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in scoped.response.varbinds.flatten() {
        put_varbind(&mut out, name, value);
    }
    out
}

fn pdu(kind: PduKind, id: i32, varbinds: &[u8]) -> Vec<u8> {
    let head = MessageHead {
        version: Version::V2c,
        community: b"",
        kind,
        id,
        status: 0,
        index: 0,
    };
    let mut out = Vec::new();
    put_pdu(&mut out, &head, varbinds);
    out
}

fn keys(auth: Option<AuthProtocol>, privacy: Option<PrivProtocol>, id: &[u8]) -> Option<UsmKeys> {
    let auth = auth?;
    let localized = |password: &[u8]| {
        Key::of_password(auth, password)
            .unwrap()
            .localized(auth, id)
    };
    let private = privacy.map(|privacy| {
        let key = localized(b"private one");
        (privacy, key.extended(auth, privacy, id))
    });
    let private = private.as_ref().map(|(protocol, key)| (*protocol, key));
    UsmKeys::new((auth, &localized(b"signing one")), private)
}

const AUTH: [(AuthProtocol, &str); 6] = [
    (AuthProtocol::Md5, "md5"),
    (AuthProtocol::Sha1, "sha"),
    (AuthProtocol::Sha224, "sha224"),
    (AuthProtocol::Sha256, "sha256"),
    (AuthProtocol::Sha384, "sha384"),
    (AuthProtocol::Sha512, "sha512"),
];

const PRIVACY: [(PrivProtocol, &str); 6] = [
    (PrivProtocol::Des, "des"),
    (PrivProtocol::Aes128, "aes"),
    (PrivProtocol::Aes192, "aes192"),
    (PrivProtocol::Aes256, "aes256"),
    (PrivProtocol::Aes192Reeder, "aes192c"),
    (PrivProtocol::Aes256Reeder, "aes256c"),
];

/// A target of version 3 as the user `u`.
fn text(options: &str) -> String {
    let options = format!("username => 'u', {options}");
    let target = target("a", "1:x@127.0.0.1:::::3");
    format!("EnableSnmpV3: yes\nSnmpOptions: {options}\n{target}")
}

const SIGNED: &str = "authprotocol => 'sha256', authpassword => 'signing one', \
    privprotocol => 'aes', privpassword => 'private one'";

fn signed() -> UsmAgent {
    UsmAgent::new(Some(AuthProtocol::Sha256), Some(PrivProtocol::Aes128))
}

fn simulation(usm: UsmAgent, options: &str) -> Simulation {
    let mut agent = Agent::new(1);
    agent.usm = Some(usm);
    Simulation::new(&text(options), vec![agent], Pace::Burst)
}

fn usm(simulation: &mut Simulation) -> &mut UsmAgent {
    simulation.agent(1).usm.as_mut().unwrap()
}

/// Asserts that each cycle of the time gave a value of the device's counter.
fn assert_polls(simulation: &mut Simulation, cycles: usize, why: &str) {
    simulation.values.clear();
    simulation.run(300 * S * cycles as u64);
    let values = simulation.take(0);
    let is_true = |value: &&String| !value.contains('U') && **value != FORGED;
    let known = values.iter().filter(is_true);
    assert_eq!(
        (known.count(), values.len()),
        (cycles, cycles),
        "{why}: {values:?}"
    );
}

#[test]
fn every_combination_of_protocols_is_spoken() {
    let mut combinations = vec![(None, None, String::new())];
    for (auth, name) in AUTH {
        let options = format!("authprotocol => '{name}', authpassword => 'signing one'");
        combinations.push((Some(auth), None, options.clone()));
        for (privacy, name) in PRIVACY {
            let options =
                format!("{options}, privprotocol => '{name}', privpassword => 'private one'");
            combinations.push((Some(auth), Some(privacy), options));
        }
    }
    for (auth, privacy, options) in combinations {
        let mut simulation = simulation(UsmAgent::new(auth, privacy), &options);
        assert_polls(&mut simulation, 2, &options);
        let usm = usm(&mut simulation);
        // The time of the first answer is right, and kept.
        assert_eq!((usm.questions, usm.reports), (1, 0), "{options}");
    }
}

/// The keys of both passwords for this engine, which Python's hashlib made.
#[test]
fn localized_keys_are_used_as_they_are() {
    let options = "authprotocol => 'sha256', privprotocol => 'aes', \
        authkey => '0x7064afda804aad131ec23c7c6bfc9b53b18234e9bf8d11da99a5985a64fe1009', \
        privkey => 'a68fa9774c45715f51f1af0cb29a75d4'";
    assert_polls(&mut simulation(signed(), options), 2, "keys");
}

#[test]
fn a_device_that_hides_its_time_is_asked_for_it_once() {
    let mut agent = signed();
    agent.hides_time = true;
    let mut simulation = simulation(agent, SIGNED);
    assert_polls(&mut simulation, 5, "hidden time");
    let usm = usm(&mut simulation);
    assert_eq!((usm.questions, usm.reports), (1, 1));
}

#[test]
fn an_id_may_come_with_another_report() {
    let mut agent = signed();
    agent.report_of_id = 3;
    let mut simulation = simulation(agent, SIGNED);
    assert_polls(&mut simulation, 3, "no such user");
    assert_eq!(usm(&mut simulation).questions, 1);
}

/// A device that was started again, one that lost its count of starts, one whose clock jumped, and one that was replaced.
#[test]
fn a_change_of_the_engine_costs_one_report() {
    type Change = fn(&mut UsmAgent, u64);
    let changes: [(&str, Change, usize, usize); 4] = [
        (
            "started",
            |usm, now_ns| (usm.boots, usm.started_ns) = (8, now_ns),
            1,
            1,
        ),
        (
            "forgot",
            |usm, now_ns| (usm.boots, usm.started_ns) = (1, now_ns),
            1,
            1,
        ),
        (
            "jumped",
            |usm, now_ns| usm.started_ns = now_ns - 50 * S,
            1,
            1,
        ),
        (
            "replaced",
            |usm, _| {
                usm.id = b"\x80\0\0\0\x04other".to_vec();
                let (auth, privacy) = (AuthProtocol::Sha256, PrivProtocol::Aes128);
                usm.keys = keys(Some(auth), Some(privacy), &usm.id).map(Arc::new);
            },
            3,
            0,
        ),
    ];
    for (why, change, questions, reports) in changes {
        let mut simulation = simulation(signed(), SIGNED);
        assert_polls(&mut simulation, 2, why);
        let now_ns = simulation.clock.now().mono_ns;
        change(usm(&mut simulation), now_ns);
        assert_polls(&mut simulation, 3, why);
        let usm = usm(&mut simulation);
        assert_eq!((usm.questions, usm.reports), (questions, reports), "{why}");
    }
}

/// This machine's clock may be set, and the time it was suspended counts.
#[test]
fn a_step_of_the_clock_changes_nothing() {
    let mut simulation = simulation(signed(), SIGNED);
    assert_polls(&mut simulation, 2, "before");
    simulation.clock.step_wall_ns(-86_400_000_000_000);
    // The device goes on while this machine sleeps.
    simulation.clock.suspend_ns(400 * S);
    usm(&mut simulation).started_ns -= 400 * S;
    assert_polls(&mut simulation, 2, "after");
    let usm = usm(&mut simulation);
    assert_eq!((usm.questions, usm.reports), (1, 0));
}

/// The values of [`forged_response`].
const FORGED: &str = "1099511627776:1099511627776";

fn forged_response(request: &UsmMessage<'_>, agent: &UsmAgent) -> Vec<u8> {
    let id = request.id;
    let mut varbinds = Vec::new();
    let mut plain = Vec::new();
    let scoped = request.scoped(agent.keys.as_deref(), &mut plain).unwrap();
    for (name, _) in ScopedPdu::decode(scoped)
        .unwrap()
        .response
        .varbinds
        .flatten()
    {
        put_varbind(&mut varbinds, name, ObjectValue::Counter64(1 << 40));
    }
    pdu(PduKind::Response, id, &varbinds)
}

/// Forged messages before each true answer change no value, and cost one question at most.
#[test]
fn a_hostile_engine_changes_nothing() {
    let forges: [(&str, Forge); 11] = [
        ("an earlier answer", |agent, _, _, _| {
            agent.forged.push(agent.old.clone())
        }),
        ("fewer boots", |agent, request, time_s, _| {
            let pdu = forged_response(request, agent);
            let keys = agent.keys.clone();
            // The first answer sets boots and time.
            if !agent.old.is_empty() {
                agent
                    .forged
                    .push(agent.message(request.id, (6, time_s), keys.as_deref(), &pdu));
            }
        }),
        ("an old time", |agent, request, time_s, _| {
            let pdu = forged_response(request, agent);
            let keys = agent.keys.clone();
            // Both sides cut off parts of seconds.
            let moment = (agent.boots, time_s - 153);
            if !agent.old.is_empty() {
                agent
                    .forged
                    .push(agent.message(request.id, moment, keys.as_deref(), &pdu));
            }
        }),
        ("the last boots", |agent, request, time_s, _| {
            let pdu = forged_response(request, agent);
            let keys = agent.keys.clone();
            let moment = (i32::MAX as u32, time_s);
            agent
                .forged
                .push(agent.message(request.id, moment, keys.as_deref(), &pdu));
        }),
        ("no signature", |agent, request, time_s, _| {
            let pdu = forged_response(request, agent);
            let moment = (agent.boots, time_s);
            agent
                .forged
                .push(agent.message(request.id, moment, None, &pdu));
        }),
        ("no encryption", |agent, request, time_s, _| {
            let pdu = forged_response(request, agent);
            let keys = keys(Some(AuthProtocol::Sha256), None, &agent.id);
            let moment = (agent.boots, time_s);
            agent
                .forged
                .push(agent.message(request.id, moment, keys.as_ref(), &pdu));
        }),
        ("another id inside", |agent, request, time_s, _| {
            let pdu = pdu(PduKind::Response, request.id ^ 1, &[]);
            let keys = agent.keys.clone();
            let moment = (agent.boots, time_s);
            agent
                .forged
                .push(agent.message(request.id, moment, keys.as_deref(), &pdu));
        }),
        ("cut and changed", |agent, _, _, truth| {
            for size in 0..truth.len() {
                agent.forged.push(truth[..size].to_vec());
                let mut changed = truth.to_vec();
                changed[size] ^= 0x10;
                agent.forged.push(changed);
            }
        }),
        ("a report of no such user", |agent, request, time_s, _| {
            let moment = (agent.boots, time_s);
            agent.forged.push(agent.report(request.id, moment, None, 3));
        }),
        ("an unsigned report of the time", |agent, request, _, _| {
            agent
                .forged
                .push(agent.report(request.id, (99, 99), None, 2));
        }),
        ("reports of another engine", |agent, request, time_s, _| {
            let mut other = agent.clone();
            other.id = b"\x80\0\0\0\x04evil".to_vec();
            // One for each cycle, as the true answer to the request is lost by it.
            if agent.packets.is_multiple_of(3) {
                agent
                    .forged
                    .push(other.report(request.id, (1, time_s), None, 4));
            }
        }),
    ];
    for (why, forge) in forges {
        let mut agent = signed();
        agent.forge = Some(forge);
        let mut simulation = simulation(agent, SIGNED);
        assert_polls(&mut simulation, 6, why);
        assert!(simulation.happenings.is_empty(), "{why}");
        assert!(simulation.reasons.is_empty(), "{why}");
        let usm = usm(&mut simulation);
        assert!(usm.questions <= 6, "{why}: {}", usm.questions);
        assert_eq!(usm.reports, 0, "{why}");
    }
}

/// A device names the reason of a refusal, which is no silence.
#[test]
fn a_refused_user_is_said_with_its_reason() {
    let wrong = SIGNED.replace("signing", "another");
    for (options, report) in [
        (wrong.clone(), UsmReport::WrongDigest),
        (format!("{SIGNED}, username => 'w'"), UsmReport::UnknownUser),
        (String::new(), UsmReport::UnsupportedLevel),
    ] {
        let mut simulation = simulation(signed(), &options);
        simulation.run(900 * S);
        assert!(
            simulation.happenings.is_empty(),
            "{:?}",
            simulation.happenings
        );
        assert_eq!(simulation.reasons, [(Empty::Refusal(report), vec![0])]);
    }
    let mut simulation = simulation(signed(), &wrong);
    simulation.run(300 * S);
    simulation.reload(&text(SIGNED));
    simulation.run(300 * S);
    assert_polls(&mut simulation, 2, "after the right password");
}

#[test]
fn a_device_with_new_ids_without_end_is_left_alone() {
    let mut agent = signed();
    agent.is_new_always = true;
    let mut simulation = simulation(agent, SIGNED);
    simulation.run(900 * S);
    let packets = usm(&mut simulation).packets;
    assert!(packets < 60, "{packets}");
    assert_eq!(
        simulation.reasons,
        [(Empty::Refusal(UsmReport::UnknownEngine), vec![0])]
    );
    assert!(simulation.happenings.is_empty());
}

#[test]
fn a_reload_keeps_what_is_known_of_the_engine() {
    let mut simulation = simulation(signed(), SIGNED);
    assert_polls(&mut simulation, 2, "before");
    simulation.reload(&(text(SIGNED) + "# changed\n"));
    assert_polls(&mut simulation, 2, "after");
    assert_eq!(usm(&mut simulation).questions, 1);
}
