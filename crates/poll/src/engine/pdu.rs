//! One PDU: its encoding and the uses of its values.

use kymo_wire::snmp::RequestMessage;

/// sysUpTime.0
pub(crate) const UPTIME: [u32; 9] = [1, 3, 6, 1, 2, 1, 1, 3, 0];
/// sysName.0
pub(crate) const NAME: [u32; 9] = [1, 3, 6, 1, 2, 1, 1, 5, 0];

/// Uses of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// Detects a restart of the device.
    Uptime,
    /// The name of the device on pages.
    Name,
    /// Detects changes of interfaces by ifTableLastChange (0) or ifNumber
    /// (1).
    Table(u8),
    /// Has to equal the key of this reference of the device.
    Check(usize),
    /// A number of a reading.
    Value {
        /// Index into the configuration's readings.
        reading: usize,
        /// 0: in, 1: out.
        side: u8,
    },
}

/// One PDU.
pub(crate) struct Pdu {
    /// The encoded request.
    pub request: RequestMessage,
    /// Places of names and uses of their values. Checks come first.
    pub uses: Vec<(u8, Use)>,
    /// Number of names.
    pub names: u8,
}

impl Pdu {
    /// True if the PDU asks for sysUpTime.
    pub(crate) fn asks_for_uptime(&self) -> bool {
        self.uses.iter().any(|(_, what)| *what == Use::Uptime)
    }

    /// The readings that the PDU has values for, each once.
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
