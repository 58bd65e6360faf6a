//! One PDU: how it is encoded, and what its values are for.

use kymo_wire::mrtg_cfg::Session;
use kymo_wire::snmp::{Ask, IdWidth, Oid, RequestMessage, Version};

/// sysUpTime.0
pub(crate) const UPTIME: [u32; 9] = [1, 3, 6, 1, 2, 1, 1, 3, 0];

/// What the value of a name is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// To see that the device was started again.
    Uptime,
    /// To see that interfaces came or went: ifTableLastChange or ifNumber.
    Table(u8),
    /// It is to be the key of this reference of the device.
    Check(usize),
    /// It is this number of a reading.
    Value {
        /// Of the configuration.
        reading: usize,
        /// In or out.
        side: u8,
    },
}

/// One PDU.
pub(crate) struct Pdu {
    /// As it is sent.
    pub request: RequestMessage,
    /// What for, with the place of the name; checks come before values.
    pub uses: Vec<(u8, Use)>,
    /// How many names it has.
    pub names: u8,
}

impl Pdu {
    /// True if the PDU asks for sysUpTime.
    pub(crate) fn asks_for_uptime(&self) -> bool {
        self.uses.iter().any(|(_, what)| *what == Use::Uptime)
    }

    /// The readings it has numbers of, each once.
    pub(crate) fn readings(&self) -> Vec<usize> {
        let mut readings: Vec<usize> = Vec::new();
        for (_, what) in &self.uses {
            if let Use::Value { reading, .. } = what
                && !readings.contains(reading)
            {
                readings.push(*reading);
            }
        }
        readings
    }
}

/// A request of a session.
pub(crate) fn request(session: &Session, ask: Ask, names: &[Oid]) -> RequestMessage {
    let community = session.community.reveal();
    RequestMessage::new(ask, version(session), community, names, width(session))
}

/// Which version a session speaks.
pub(crate) fn version(session: &Session) -> Version {
    match session.version {
        kymo_wire::mrtg_cfg::Version::V1 => Version::V1,
        kymo_wire::mrtg_cfg::Version::V2c => Version::V2c,
    }
}

/// How long ids of a session are.
pub(crate) fn width(session: &Session) -> IdWidth {
    match session.use_16bit_ids {
        true => IdWidth::Bits15,
        false => IdWidth::Bits31,
    }
}

/// Whether walks may ask for several rows at a time.
pub(crate) fn has_bulk(session: &Session) -> bool {
    version(session) == Version::V2c && session.use_getbulk
}
