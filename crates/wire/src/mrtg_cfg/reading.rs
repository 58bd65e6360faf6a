//! Readings: pairs of numbers that each cycle reads from a device or a command. Equal texts share one.

use super::text::Text;

/// A distinct text of `Target[]` lines; each cycle reads it once.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// The exact text, which contains a community.
    pub text: Text,
    /// Source of the numbers.
    pub source: Source,
}

impl Reading {
    /// Calls `change` for each text of the reading.
    pub(super) fn for_each_text(&mut self, change: &mut dyn FnMut(&mut Text)) {
        change(&mut self.text);
        match &mut self.source {
            Source::Command(command) => change(command),
            Source::Snmp(snmp) => {
                for object in &mut snmp.objects {
                    if let Index::Reference(_, key) = &mut object.index {
                        change(key);
                    }
                }
            }
        }
    }
}

/// Source of a reading.
#[derive(Clone, Copy, Debug)]
pub enum Source {
    /// By SNMP.
    Snmp(SnmpReading),
    /// A command line for `/bin/sh`, which prints the numbers on its first two lines.
    Command(Text),
}

/// Two numbers from one device.
#[derive(Clone, Copy, Debug)]
pub struct SnmpReading {
    /// Index in [`Config::sessions`](super::Config::sessions).
    pub session: u32,
    /// The objects for in and out.
    pub objects: [ObjectRequest; 2],
    /// True if the text names an interface, and MRTG chooses its counters; false if it names objects.
    pub is_interface: bool,
}

/// The object for one number.
#[derive(Clone, Copy, Debug)]
pub struct ObjectRequest {
    /// Operation that reads the object.
    pub magic: Magic,
    /// The part of the OID before [`ObjectRequest::index`]: a range for [`Config::oid`](super::Config::oid).
    pub oid: OidRange,
    /// The last part of the OID.
    pub index: Index,
    /// Place for the index of `IndexPOS`: before this sub-identifier of `oid`, not at the end.
    pub index_position: Option<u8>,
}

/// Index of an OID.
#[derive(Clone, Copy, Debug)]
pub enum Index {
    /// No index: the OID is complete.
    None,
    /// A number.
    Number(u32),
    /// The ifIndex of the interface with this key. The poller checks the key in the reply.
    Reference(ReferenceKind, Text),
}

/// Kinds of interface keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReferenceKind {
    /// ifDescr, `\`
    Descr,
    /// ifName, `#`
    Name,
    /// An address in ipAdEntIfIndex, `/`: text with dots.
    Ip,
    /// ifPhysAddress, `!`: text, lower case, two digits a byte, dashes.
    Eth,
    /// ifType, `%`: decimal text.
    Type,
}

/// Operations that read a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Magic {
    /// GET.
    Get,
    /// GET; the number is 1 if the value is 1, or else 0 (`ifAdminHack`, `ifOperHack`).
    IsOne,
    /// A walk; the number is its value at this position, from 0 on (`WaLKn`).
    Walk(u16),
    /// A walk; the number is the count of its values (`CnTWaLK`).
    CountWalk,
    /// GETNEXT (`GeTNEXT`).
    GetNext,
    /// 0, without a request.
    PseudoZero,
    /// 1, without a request.
    PseudoOne,
}

/// A range of the sub-identifiers of all OIDs of a configuration. Equal OIDs share a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OidRange {
    pub(super) start: u32,
    pub(super) len: u8,
}
