//! What is known of each reading by its number: whose it is, which interfaces its two numbers are of, and which of the two
//! have no outcome in this cycle yet.

use std::collections::HashMap;

use kymo_wire::mrtg_cfg::{Config, Index, Magic, ReferenceKind, Source};

use super::device::{Device, Reference};
use super::interfaces::{Column, clean};

/// Not a device's, or without an interface.
const NONE: usize = usize::MAX;

/// By reading.
pub(crate) struct Sides {
    devices: Vec<usize>,
    references: Vec<[usize; 2]>,
    open: Vec<u8>,
    /// Sides that are asked for at all.
    asked: Vec<u8>,
}

impl Sides {
    /// Of a configuration; its devices are made, one for each session.
    pub(crate) fn new(config: &Config) -> (Sides, Vec<Device>) {
        let count = config.readings().len();
        let mut sides = Sides {
            devices: vec![NONE; count],
            references: vec![[NONE; 2]; count],
            open: vec![0; count],
            asked: vec![0; count],
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
            for (side, asked) in source.asked.iter().enumerate() {
                if !matches!(asked.magic, Magic::PseudoZero | Magic::PseudoOne) {
                    sides.asked[reading] |= 1 << side;
                }
                if let Index::Reference(kind, key) = asked.index {
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

    /// Whose a reading is; `None`: a command's.
    pub(crate) fn device(&self, reading: usize) -> Option<usize> {
        Some(self.devices[reading]).filter(|&device| device != NONE)
    }

    /// Which of its device's references this side is of.
    pub(crate) fn reference(&self, reading: usize, side: u8) -> Option<usize> {
        let number = self.references[reading][usize::from(side)];
        Some(number).filter(|&number| number != NONE)
    }

    /// A cycle begins: all that is asked for has no outcome yet.
    pub(crate) fn begin(&mut self, reading: usize) {
        self.open[reading] = self.asked[reading];
    }

    /// Whether this side has no outcome yet.
    pub(crate) fn is_open(&self, reading: usize, side: u8) -> bool {
        self.open[reading] & (1 << side) != 0
    }

    /// Whether one of its sides has no outcome yet.
    pub(crate) fn is_any_open(&self, reading: usize) -> bool {
        self.open[reading] != 0
    }

    /// This side has its outcome; whether that was the last one of the reading.
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
