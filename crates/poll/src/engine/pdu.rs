//! One PDU: how it is encoded, and what its values are for.

use kymo_wire::snmp::RequestMessage;

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
