//! Traps and informs of SNMPv3 from honest and from hostile senders: forged and repeated messages change nothing and are counted.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use kymo_sys::datagrams::{Datagram, Outbox};
use kymo_sys::sim_disk::SimDisk;
use kymo_wire::mrtg_cfg::{Keyring, User};
use kymo_wire::snmp::usm::{UsmHead, UsmKeys, UsmMessage, put_usm_message};
use kymo_wire::snmp::{MessageHead, ObjectValue, Oid, PduKind, Version, put_pdu, put_varbind};
use kymo_wire::trap_access::TrapAccess;

use super::engines::Engines;
use super::intake::TrapIntake;
use super::usm::Usm;
use super::{EventKeeper, InForce, Log, TrapSettings};

const ADA: &str = "username => 'ada', authprotocol => 'sha256', authpassword => 'signing one', privprotocol => 'aes', privpassword => 'private one'";
const PLAIN: &str = "username => 'plain'";
const ENGINE: &[u8] = b"\x80\0\0\x09\x05one";
const SENDER: &str = "192.0.2.7:1000";

/// A listener's intake on a disk that outlives it.
struct Hub {
    intake: TrapIntake,
    events: EventKeeper,
    log: Log,
}

impl Hub {
    fn start(disk: &Arc<SimDisk>) -> Hub {
        let (access, bad) = TrapAccess::read(format!("user {ADA}\nuser {PLAIN}\n").as_bytes());
        assert_eq!(bad, []);
        let in_force = InForce::default();
        in_force.set(access);
        let log: Log = Arc::new(|_, line| unreachable!("{line}"));
        let engines = Engines::open(disk.clone(), Path::new("/store"), &log);
        let events = EventKeeper::default();
        let settings = TrapSettings {
            access: Some(in_force),
            allow: Vec::new(),
            hosts: Default::default(),
        };
        Hub {
            intake: TrapIntake::new(settings, events.clone(), Usm::new(engines)),
            events,
            log,
        }
    }

    /// The reasons that a datagram is counted for; none: it is taken.
    fn take_from(&mut self, sender: &str, packet: &[u8]) -> (String, Outbox) {
        let (mut outbox, mut bytes) = (Outbox::default(), packet.to_vec());
        let datagram = Datagram {
            bytes: &mut bytes,
            sender: sender.parse::<SocketAddr>().unwrap(),
            local: None,
            came_ns: None,
            truncated: false,
        };
        self.intake.take(&datagram, 0, &mut outbox);
        let why = self.intake.troubles.take().unwrap_or_default();
        (why, outbox)
    }

    fn take(&mut self, packet: &[u8]) -> String {
        self.take_from(SENDER, packet).0
    }

    fn save(&mut self) {
        self.intake.usm.engines().save(&self.log);
        self.events.save(0, &self.log);
    }
}

fn user(options: &str) -> User {
    User::of_options(options.as_bytes()).unwrap()
}

fn keys(options: &str, engine: &[u8]) -> Option<UsmKeys> {
    Keyring::default().keys(&user(options), engine)
}

/// A message with a trap or an inform of coldStart, and a number.
fn message(
    options: &str,
    engine: &[u8],
    (boots, time_s): (u32, u32),
    kind: PduKind,
    number: i32,
) -> Vec<u8> {
    let oid = |text: &str| Oid::parse(text).unwrap();
    let (mut varbinds, mut pdu, mut packet) = (Vec::new(), Vec::new(), Vec::new());
    let name = oid("1.3.6.1.6.3.1.1.5.1");
    let names = oid("1.3.6.1.6.3.1.1.4.1.0");
    put_varbind(&mut varbinds, &names, ObjectValue::Oid(&name));
    put_varbind(&mut varbinds, &name, ObjectValue::Integer(number.into()));
    let head = MessageHead {
        version: Version::V2c,
        community: b"",
        kind,
        id: number,
        status: 0,
        index: 0,
    };
    put_pdu(&mut pdu, &head, &varbinds);
    let head = UsmHead {
        id: number,
        engine,
        boots,
        time_s,
        user: &user(options).name,
        context_engine: engine,
        context_name: b"",
    };
    let keys = keys(options, engine);
    put_usm_message(&mut packet, &head, keys.as_ref(), 5, &pdu);
    packet
}

fn trap(moment: (u32, u32), number: i32) -> Vec<u8> {
    message(ADA, ENGINE, moment, PduKind::Trap, number)
}

#[test]
fn a_trap_counts_once_and_only_if_it_is_the_users_and_of_now() {
    let disk = Arc::new(SimDisk::new(1));
    kymo_sys::disk::Disk::create_dir_all(&*disk, Path::new("/store")).unwrap();
    let mut hub = Hub::start(&disk);
    let first = trap((7, 1000), 1);
    // No cut or forged message makes the engine known.
    for end in 0..first.len() {
        assert_ne!(hub.take(&first[..end]), "", "{end} bytes");
    }
    for at in 0..first.len() {
        let mut forged = first.clone();
        forged[at] ^= 1;
        assert_ne!(hub.take(&forged), "", "a changed byte {at}");
    }
    assert_eq!(hub.intake.taken, 0);
    assert_eq!(hub.take(&first), "");
    let signed = ADA.split(", privprotocol").next().unwrap();
    let other = ADA.replace("signing one", "signing two");
    let private = ADA.replace("private one", "private two");
    for (packet, why) in [
        (first.clone(), "that came before"),
        (trap((7, 849), 2), "of another time"),
        (trap((6, 1000), 3), "of another time"),
        (trap((i32::MAX as u32, 1000), 4), "of another time"),
        (
            message(&other, ENGINE, (7, 1001), PduKind::Trap, 5),
            "wrong signature",
        ),
        (
            message(signed, ENGINE, (7, 1001), PduKind::Trap, 6),
            "not signed or encrypted",
        ),
        (
            message(&private, ENGINE, (7, 1001), PduKind::Trap, 7),
            "cannot be decrypted",
        ),
        (
            message("username => 'ada'", ENGINE, (7, 1001), PduKind::Trap, 8),
            "not signed",
        ),
        (
            message("username => 'eve'", ENGINE, (7, 1001), PduKind::Trap, 9),
            "of a user that",
        ),
    ] {
        assert!(hub.take(&packet).contains(why), "{why}");
    }
    assert_eq!(hub.intake.taken, 1);
    for packet in [
        trap((7, 1001), 10),
        trap((7, 900), 11),
        trap((8, 1), 12),
        message(PLAIN, b"", (0, 0), PduKind::Trap, 13),
    ] {
        assert_eq!(hub.take(&packet), "");
    }
    assert_eq!(hub.intake.taken, 5);
    hub.save();
    // Earlier messages are refused after a restart, also from another address.
    let mut hub = Hub::start(&disk);
    for packet in [
        first,
        trap((7, 5000), 14),
        trap((8, 1), 12),
        trap((8, 0), 15),
    ] {
        assert_ne!(hub.take_from("192.0.2.8:1", &packet).0, "");
    }
    assert_eq!(hub.intake.taken, 0);
    assert_eq!(hub.take(&trap((8, 2), 16)), "");
    assert_eq!(hub.take(&trap((9, 0), 17)), "");
}

#[test]
fn an_inform_is_answered_once_its_event_is_saved() {
    let disk = Arc::new(SimDisk::new(1));
    kymo_sys::disk::Disk::create_dir_all(&*disk, Path::new("/store")).unwrap();
    let mut hub = Hub::start(&disk);
    // Whoever asks gets id, boots and time.
    let (why, asked) = hub.take_from(SENDER, &message(PLAIN, b"", (0, 0), PduKind::Inform, 1));
    assert_eq!((&*why, asked.len()), ("", 1));
    let own = hub.intake.usm.engines().own.id.clone();
    assert_eq!((own.len(), hub.intake.usm.engines().own.boots), (13, 1));
    let inform = |moment, number| message(ADA, &own, moment, PduKind::Inform, number);
    let (why, report) = hub.take_from(SENDER, &inform((0, 0), 2));
    assert_eq!((&*why, report.len()), ("", 1));
    let whole = inform((1, 0), 3);
    let (why, early) = hub.take_from(SENDER, &whole);
    assert_eq!((&*why, early.len(), hub.intake.taken), ("", 0, 1));
    hub.save();
    let events = hub.events.clone();
    let answers = hub.intake.informs.take(|event| events.is_saved(event));
    assert_eq!(answers.len(), 1);
    let response = UsmMessage::decode(&answers[0].response).unwrap();
    let keys = keys(ADA, &own).unwrap();
    assert!(response.is_proven_by(&keys) && response.is_encrypted() && !response.is_reportable);
    // A sender that repeats its inform gets the response again; another address does not.
    let (why, again) = hub.take_from(SENDER, &whole);
    assert_eq!((&*why, again.len()), ("", 1));
    let (why, again) = hub.take_from("192.0.2.8:1000", &whole);
    assert!(why.contains("came before") && again.is_empty(), "{why}");
    for (packet, why) in [
        (inform((1, 151), 4), "of another time"),
        (inform((2, 0), 5), "of another time"),
        (
            message(ADA, &own, (1, 0), PduKind::Get, 6),
            "cannot be decrypted or read",
        ),
    ] {
        let (said, report) = hub.take_from(SENDER, &packet);
        assert!(said.contains(why) && report.len() == 1, "{said}");
    }
    assert_eq!(hub.intake.taken, 1);
    // The engine is the same after a restart, and has started once more.
    let mut hub = Hub::start(&disk);
    let (id, boots) = {
        let own = &hub.intake.usm.engines().own;
        (own.id.clone(), own.boots)
    };
    assert_eq!((&id, boots), (&own, 2));
    assert!(hub.take(&whole).contains("of another time"));
}
