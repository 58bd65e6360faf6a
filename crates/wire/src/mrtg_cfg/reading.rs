//! What is read in a cycle: two numbers from a device or a command. Targets of one text share a reading.

use super::text::Text;

/// One distinct text in `Target[]` lines, read once a cycle.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// The exact text. It has a community in it.
    pub text: Text,
    /// How it is read.
    pub source: Source,
}

impl Reading {
    /// Each place where it has a text.
    pub(super) fn for_each_text(&mut self, change: &mut dyn FnMut(&mut Text)) {
        change(&mut self.text);
        match &mut self.source {
            Source::Command(command) => change(command),
            Source::Snmp(snmp) => {
                for asked in &mut snmp.asked {
                    if let Index::Reference(_, key) = &mut asked.index {
                        change(key);
                    }
                }
            }
        }
    }
}

/// How a reading is made.
#[derive(Clone, Copy, Debug)]
pub enum Source {
    /// By SNMP.
    Snmp(SnmpReading),
    /// By a command line for `/bin/sh`, whose first two lines are numbers.
    Command(Text),
}

/// Two numbers of one device.
#[derive(Clone, Copy, Debug)]
pub struct SnmpReading {
    /// Which of [`Config::sessions`](super::Config::sessions).
    pub session: u32,
    /// In and out.
    pub asked: [Asked; 2],
}

/// One number.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// Whether it is simply got, or how else.
    pub magic: Magic,
    /// [`Config::oid`](super::Config::oid): what is before [`Asked::index`], or all of it.
    pub oid: OidRange,
    /// What stands behind the OID.
    pub index: Index,
    /// `IndexPOS`: not at the end does the interface's index come, but before this sub-identifier of `oid`.
    pub index_position: Option<u8>,
}

/// What is appended to an OID.
#[derive(Clone, Copy, Debug)]
pub enum Index {
    /// Nothing: it is complete.
    None,
    /// This number.
    Number(u32),
    /// The ifIndex of the interface that has this key, and the reply is to prove it.
    Reference(ReferenceKind, Text),
}

/// What a key of an interface is.
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

/// How a value is got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Magic {
    /// GET.
    Get,
    /// GET, and whether the value is 1 (`ifAdminHack`, `ifOperHack`).
    IsOne,
    /// A walk, and its value at this place, from zero (`WaLKn`).
    Walk(u16),
    /// A walk, and how many values there were (`CnTWaLK`).
    CountWalk,
    /// GETNEXT (`GeTNEXT`).
    GetNext,
    /// Nothing is asked: 0.
    PseudoZero,
    /// Nothing is asked: 1.
    PseudoOne,
}

/// A place among the sub-identifiers of a configuration's OIDs, which are kept once each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OidRange {
    pub(super) start: u32,
    pub(super) len: u8,
}
