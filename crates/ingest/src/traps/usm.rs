//! SNMPv3: who sent a message, and whether it is new (RFC 3414, 3.2). Of a trap the sender is the authority: its engine's id, boots
//! and time come with the trap. Keys are made for each engine at first sight, and only what a user's key proves is remembered. Of an
//! inform this side is the authority: it tells its engine's id, boots and time to whoever asks.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use kymo_wire::mrtg_cfg::{Keyring, User};
use kymo_wire::snmp::usm::{
    BOOTS_MAX, ScopedPdu, UsmHead, UsmKeys, UsmMessage, UsmReport, WINDOW_S, put_usm_message,
};
use kymo_wire::snmp::{
    MessageHead, ObjectValue, PduKind, SnmpNotification, Version, put_pdu, put_varbind,
};
use kymo_wire::trap_access::TrapAccess;

use super::engines::{Engines, ID_BYTES, Stale};

/// Most pairs of user and engine whose keys are kept.
const KEYS_MAX: usize = 4096;

/// Reasons, for the log and for the page.
const NO_USER: &str = "a message of a user that auth_file does not have";
const OTHER_LEVEL: &str = "a message of a user that is not signed or encrypted as auth_file has it";
const FORGED: &str = "a message with a wrong signature";
const GARBLED: &str = "a message that cannot be decrypted or read";
const LATE: &str = "a signed message of another time";
pub(super) const AGAIN: &str = "a signed message that came before";
const NO_ROOM: &str = "a trap of one more engine than 1,024";
const OTHER_ENGINE: &str = "a message for another engine";
const OTHER_KIND: &str = "a PDU of another kind";

/// A message without its envelope.
pub(super) struct OpenedMessage<'p> {
    pub(super) notification: SnmpNotification<'p>,
    /// The user, if the message is signed.
    pub(super) signed_by: Option<Box<[u8]>>,
    /// The response to an inform, and true if the message came before.
    pub(super) response: Option<(Vec<u8>, bool)>,
}

/// The result of opening a message.
pub(super) enum Outcome<'p> {
    Notification(OpenedMessage<'p>),
    /// A reason to count, and a report for the sender, if there are any.
    Refused(Option<&'static str>, Option<Vec<u8>>),
}

impl Outcome<'_> {
    fn refused(why: &'static str) -> Self {
        Outcome::Refused(Some(why), None)
    }
}

/// Name of a user and id of an engine.
type KeyPlace = (Box<[u8]>, Box<[u8]>);

/// Keys of a user for an engine, and of reports, which are not encrypted.
struct KeyPair {
    keys: UsmKeys,
    report: UsmKeys,
}

/// The state of SNMPv3.
pub(super) struct Usm {
    engines: Engines,
    access: Arc<TrapAccess>,
    keyring: Keyring,
    /// Keys of users for engines, by names and ids, as far as they have proven something.
    keys: HashMap<KeyPlace, Arc<KeyPair>>,
    hasher: RandomState,
    /// Messages with a salt since the start.
    salts: u32,
}

impl Usm {
    pub(super) fn new(engines: Engines) -> Usm {
        Usm {
            engines,
            access: Arc::default(),
            keyring: Keyring::default(),
            keys: HashMap::new(),
            hasher: RandomState::new(),
            salts: 0,
        }
    }

    pub(super) fn engines(&mut self) -> &mut Engines {
        &mut self.engines
    }

    /// Opens a message. `plain` takes a decrypted text.
    pub(super) fn open<'p>(
        &mut self,
        access: &Arc<TrapAccess>,
        (message, packet): (&UsmMessage<'p>, &[u8]),
        plain: &'p mut Vec<u8>,
        now_ns: u64,
    ) -> Outcome<'p> {
        if !Arc::ptr_eq(&self.access, access) {
            self.access = Arc::clone(access);
            self.keyring = Keyring::default();
            self.keys.clear();
        }
        let hash = self.hasher.hash_one(packet);
        if *message.engine == *self.engines.own.id {
            return self.open_for_own(message, hash, plain, now_ns);
        }
        match message.is_reportable {
            true => self.report(message, UsmReport::UnknownEngine, None, now_ns, None),
            false => self.open_trap(message, hash, plain, now_ns),
        }
    }

    /// The keys of a user for an engine; `None`: its messages are not signed.
    fn keys_of(&mut self, user: &User, engine: &[u8]) -> Option<Arc<KeyPair>> {
        let place = (user.name.clone(), engine.into());
        if let Some(known) = self.keys.get(&place) {
            return Some(Arc::clone(known));
        }
        let without = User {
            privacy: None,
            ..user.clone()
        };
        let (keys, report) = (
            self.keyring.keys(user, engine)?,
            self.keyring.keys(&without, engine)?,
        );
        Some(Arc::new(KeyPair { keys, report }))
    }

    fn note_keys(&mut self, user: &User, engine: &[u8], keys: &Arc<KeyPair>) {
        if self.keys.len() >= KEYS_MAX {
            self.keys.clear();
        }
        let place = (user.name.clone(), engine.into());
        self.keys.entry(place).or_insert_with(|| Arc::clone(keys));
    }

    /// Opens a trap, of which the sender's engine is the authority.
    fn open_trap<'p>(
        &mut self,
        message: &UsmMessage<'p>,
        hash: u64,
        plain: &'p mut Vec<u8>,
        now_ns: u64,
    ) -> Outcome<'p> {
        let Some(user) = self.access.user(message.user).cloned() else {
            return Outcome::refused(NO_USER);
        };
        if !has_level(&user, message) {
            return Outcome::refused(OTHER_LEVEL);
        }
        if message.is_signed && !ID_BYTES.contains(&message.engine.len()) {
            return Outcome::refused(OTHER_ENGINE);
        }
        let keys = self.keys_of(&user, message.engine);
        if let Some(keys) = &keys {
            if !message.is_proven_by(&keys.keys) {
                return Outcome::refused(FORGED);
            }
            match self.engines.take(message, hash, now_ns) {
                Ok(()) => self.note_keys(&user, message.engine, keys),
                Err(Stale::Late) => return Outcome::refused(LATE),
                Err(Stale::Again) => return Outcome::refused(AGAIN),
                Err(Stale::NoRoom) => return Outcome::refused(NO_ROOM),
            }
        }
        let keys = keys.as_deref().map(|pair| &pair.keys);
        let Some((_, notification)) = notification(message, keys, plain) else {
            return Outcome::refused(GARBLED);
        };
        // A sender of informs asks for this engine's id first.
        if notification.is_inform {
            return Outcome::refused(OTHER_KIND);
        }
        Outcome::Notification(OpenedMessage {
            notification,
            signed_by: user.auth.is_some().then(|| user.name.clone()),
            response: None,
        })
    }

    /// Opens a message to this engine, which is the authority.
    fn open_for_own<'p>(
        &mut self,
        message: &UsmMessage<'p>,
        hash: u64,
        plain: &'p mut Vec<u8>,
        now_ns: u64,
    ) -> Outcome<'p> {
        let refuse = |usm: &mut Usm, why, reason, keys: Option<&UsmKeys>| {
            usm.report(message, reason, keys, now_ns, Some(why))
        };
        let Some(user) = self.access.user(message.user).cloned() else {
            return refuse(self, NO_USER, UsmReport::UnknownUser, None);
        };
        if !has_level(&user, message) {
            return refuse(self, OTHER_LEVEL, UsmReport::UnsupportedLevel, None);
        }
        let engine = self.engines.own.id.clone();
        let pair = self.keys_of(&user, &engine);
        let moment = (message.boots, message.time_s);
        let mut came_before = false;
        if let Some(pair) = &pair {
            if !message.is_proven_by(&pair.keys) {
                return refuse(self, FORGED, UsmReport::WrongDigest, None);
            }
            self.note_keys(&user, &engine, pair);
            let own = &self.engines.own;
            let is_now = message.boots == own.boots
                && own.boots < BOOTS_MAX
                && own.time_s(now_ns).abs_diff(message.time_s) <= WINDOW_S;
            if !is_now {
                let reason = UsmReport::NotInTimeWindow;
                // A sender that does not know the time yet begins with zeros.
                let why = (moment != (0, 0)).then_some(LATE);
                return self.report(message, reason, Some(&pair.report), now_ns, why);
            }
            came_before = !self.engines.own.is_new(moment, hash);
        }
        let keys = pair.as_deref().map(|pair| &pair.keys);
        let Some((scoped, notification)) = notification(message, keys, plain) else {
            return refuse(self, GARBLED, UsmReport::DecryptionError, None);
        };
        if !notification.is_inform {
            return Outcome::refused(OTHER_KIND);
        }
        let mut pdu = Vec::new();
        let head = pdu_head(PduKind::Response, scoped.id);
        put_pdu(&mut pdu, &head, notification.varbinds.bytes());
        let context = (scoped.context_engine, scoped.context_name);
        let response = self.sealed(message, context, keys, &pdu, now_ns);
        Outcome::Notification(OpenedMessage {
            notification,
            signed_by: user.auth.is_some().then(|| user.name.clone()),
            response: Some((response, came_before)),
        })
    }

    /// Refuses a message with a report, if its sender wants one.
    fn report<'p>(
        &mut self,
        message: &UsmMessage,
        reason: UsmReport,
        keys: Option<&UsmKeys>,
        now_ns: u64,
        why: Option<&'static str>,
    ) -> Outcome<'p> {
        if !message.is_reportable {
            return Outcome::Refused(why, None);
        }
        let (mut varbinds, mut pdu) = (Vec::new(), Vec::new());
        put_varbind(&mut varbinds, &reason.name(), ObjectValue::Counter32(1));
        put_pdu(&mut pdu, &pdu_head(PduKind::Report, message.id), &varbinds);
        let engine = self.engines.own.id.clone();
        let report = self.sealed(message, (&engine, b""), keys, &pdu, now_ns);
        Outcome::Refused(why, Some(report))
    }

    /// A message of this engine that answers another one.
    fn sealed(
        &mut self,
        message: &UsmMessage,
        (context_engine, context_name): (&[u8], &[u8]),
        keys: Option<&UsmKeys>,
        pdu: &[u8],
        now_ns: u64,
    ) -> Vec<u8> {
        let own = &self.engines.own;
        let head = UsmHead {
            id: message.id,
            engine: &own.id,
            boots: own.boots,
            time_s: own.time_s(now_ns),
            user: message.user,
            context_engine,
            context_name,
        };
        self.salts = self.salts.wrapping_add(1);
        // Boots are never the same again.
        let salt = u64::from(own.boots) << 32 | u64::from(self.salts);
        let mut out = Vec::new();
        put_usm_message(&mut out, &head, keys, salt, pdu);
        out
    }
}

/// True if a message is signed and encrypted as those of the user are to be.
fn has_level(user: &User, message: &UsmMessage) -> bool {
    user.auth.is_some() == message.is_signed && user.privacy.is_some() == message.is_encrypted()
}

fn notification<'p>(
    message: &UsmMessage<'p>,
    keys: Option<&UsmKeys>,
    plain: &'p mut Vec<u8>,
) -> Option<(ScopedPdu<'p>, SnmpNotification<'p>)> {
    let scoped = ScopedPdu::decode(message.scoped(keys, plain)?).ok()?;
    let notification = SnmpNotification::of_pdu(scoped.kind, scoped.id, &scoped.response).ok()?;
    Some((scoped, notification))
}

fn pdu_head(kind: PduKind, id: i32) -> MessageHead<'static> {
    MessageHead {
        version: Version::V2c,
        community: b"",
        kind,
        id,
        status: 0,
        index: 0,
    }
}
