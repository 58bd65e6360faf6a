//! State of readings by number: their devices, the interfaces of their two sides, and the sides without an outcome in this
//! cycle.

use std::collections::HashMap;

use kymo_wire::mrtg_cfg::{Config, Index, Magic, ReferenceKind, Source};

use super::device::{Device, Reference};
use super::interfaces::{Column, clean};

/// The reading is a command, or the side has no interface.
const NONE: usize = usize::MAX;

/// State of all readings.
pub(crate) struct Sides {
    devices: Vec<usize>,
    references: Vec<[usize; 2]>,
    open: Vec<u8>,
    /// Sides that the configuration asks for, as bits.
    configured: Vec<u8>,
    /// Sides that have had a counter of 64 bits, as bits.
    wide: Vec<u8>,
}

impl Sides {
    /// The readings of a configuration, and its devices, one for each session.
    pub(crate) fn new(config: &Config) -> (Sides, Vec<Device>) {
        let count = config.readings().len();
        let mut sides = Sides {
            devices: vec![NONE; count],
            references: vec![[NONE; 2]; count],
            open: vec![0; count],
            configured: vec![0; count],
            wide: vec![0; count],
        };
        let sessions = config.sessions().iter().enumerate();
        let mut devices: Vec<Device> = sessions.map(|(at, of)| Device::new(at, of)).collect();
        let mut known: HashMap<(usize, Column, Vec<u8>), usize> = HashMap::new();
        for (reading, of) in config.readings().iter().enumerate() {
            let Source::Snmp(source) = of.source else {
                continue;
            };
            let session = source.session as usize;
            let device = &mut devices[session];
            device.readings.push(reading);
            sides.devices[reading] = session;
            for (side, object) in source.objects.iter().enumerate() {
                if !matches!(object.magic, Magic::PseudoZero | Magic::PseudoOne) {
                    sides.configured[reading] |= 1 << side;
                }
                if let Index::Reference(kind, key) = object.index {
                    let column = column_of(kind);
                    let key = clean(&config.text(key));
                    let place = (session, column, key);
                    let number = known.get(&place).copied().unwrap_or_else(|| {
                        let number = device.references.len();
                        device.references.push(Reference::new(column, &place.2));
                        known.insert(place, number);
                        number
                    });
                    sides.references[reading][side] = number;
                }
            }
        }
        (sides, devices)
    }

    /// The device of a reading; `None`: it is a command.
    pub(crate) fn device(&self, reading: usize) -> Option<usize> {
        Some(self.devices[reading]).filter(|&device| device != NONE)
    }

    /// The reference of a side, an index into the device's references.
    pub(crate) fn reference(&self, reading: usize, side: u8) -> Option<usize> {
        let number = self.references[reading][usize::from(side)];
        Some(number).filter(|&number| number != NONE)
    }

    /// Begins a cycle: all asked sides are open.
    pub(crate) fn begin(&mut self, reading: usize) {
        self.open[reading] = self.configured[reading];
    }

    /// True if a side has no outcome yet.
    pub(crate) fn is_open(&self, reading: usize, side: u8) -> bool {
        self.open[reading] & (1 << side) != 0
    }

    /// True if at least one side has no outcome yet.
    pub(crate) fn is_any_open(&self, reading: usize) -> bool {
        self.open[reading] != 0
    }

    /// Notes that a side has a counter of 64 bits.
    pub(crate) fn note_wide(&mut self, reading: usize, side: u8) {
        self.wide[reading] |= 1 << side;
    }

    /// True if a side has had a counter of 64 bits.
    pub(crate) fn is_wide(&self, reading: usize, side: u8) -> bool {
        self.wide[reading] & (1 << side) != 0
    }

    /// Closes a side; true if none is open afterwards.
    pub(crate) fn close(&mut self, reading: usize, side: u8) -> bool {
        let open = &mut self.open[reading];
        *open &= !(1 << side);
        *open == 0
    }
}

fn column_of(kind: ReferenceKind) -> Column {
    match kind {
        ReferenceKind::Descr => Column::Descr,
        ReferenceKind::Name => Column::Name,
        ReferenceKind::Ip => Column::Ip,
        ReferenceKind::Eth => Column::Eth,
        ReferenceKind::Type => Column::Type,
    }
}
