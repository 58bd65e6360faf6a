//! Distributes the names of a device's readings over PDUs. A PDU is encoded once and sent in each cycle. The names of one
//! reading share a PDU, so that its numbers are of one moment.

use kymo_wire::mrtg_cfg::{Config, Index, Magic, Session, Source};
use kymo_wire::snmp::{Ask, Oid, varbind_bytes};

use super::device::{Device, Reference};
use super::interfaces::Column;
use super::narrow;
use super::pdu::{NAME, Pdu, UPTIME, Use};
use super::sides::Sides;

/// Largest number of names of a PDU.
pub(crate) const NAMES_MAX: usize = 48;
/// Estimated largest size of a reply in bytes: it has to fit into one packet.
const REPLY_BYTES_MAX: usize = 1400;
/// Estimated size of a value in bytes: a Counter64.
const VALUE_BYTES: usize = 9;
/// PDUs with fewer names than this do not include sysUpTime.
const UPTIME_FROM: usize = 6;
/// ifTableLastChange.0
const CHANGE: [u32; 10] = [1, 3, 6, 1, 2, 1, 31, 1, 5, 0];
/// ifNumber.0
const NUMBER: [u32; 9] = [1, 3, 6, 1, 2, 1, 2, 1, 0];

/// Names about a device itself that are asked for beside its readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// `NoMib2`, or `SingleRequest` without pages.
    Nothing,
    /// sysUpTime, for restarts.
    Uptime,
    /// sysName as well, for pages.
    UptimeAndName,
}

/// State while the PDUs of a device are planned.
pub(crate) struct Planner<'a> {
    pub config: &'a Config,
    pub device: &'a Device,
    pub sides: &'a Sides,
    /// True to include sysUpTime, and sysName.
    pub uptime: bool,
    pub name: bool,
    pub names_max: usize,
    pdus: Vec<Pdu>,
    names: Vec<Oid>,
    uses: Vec<(u8, Use)>,
    bytes: usize,
}

impl<'a> Planner<'a> {
    /// PDUs for the open sides of these readings that a GET can serve and whose ifIndex is known.
    pub(crate) fn plan(
        config: &'a Config,
        device: &'a Device,
        sides: &'a Sides,
        settings: (bool, Asked),
        names_max: usize,
        readings: impl Iterator<Item = usize>,
    ) -> Vec<Pdu> {
        let (single, asked) = settings;
        let has_room = !single && !device.is_uptime_alone && names_max >= UPTIME_FROM;
        let mut planner = Planner {
            config,
            device,
            sides,
            uptime: asked != Asked::Nothing && has_room,
            name: asked == Asked::UptimeAndName && has_room && !device.is_nameless,
            names_max: if single { 1 } else { names_max },
            pdus: Vec::new(),
            names: Vec::new(),
            uses: Vec::new(),
            bytes: 0,
        };
        let mut alone = Vec::new();
        for reading in readings {
            match !single && device.alone.contains(&reading) {
                true => alone.push(reading),
                false => planner.add_reading(reading),
            }
        }
        planner.close();
        for reading in alone {
            let wanted = planner.wanted(reading);
            planner.put_alone(wanted);
        }
        if planner.pdus.is_empty() && device.watches_table() && planner.names_max >= UPTIME_FROM {
            planner.open();
            planner.close();
        }
        planner.pdus
    }

    /// True if sysUpTime and sysName share PDUs with names of readings.
    pub(crate) fn shares_about(device: &Device) -> bool {
        !device.is_uptime_alone && device.names_max >= UPTIME_FROM
    }

    /// PDUs for sysUpTime alone and sysName alone.
    pub(crate) fn about_alone(session: &Session, device: &Device, asked: Asked) -> Vec<Pdu> {
        let names: &[([u32; 9], Use)] = match asked {
            Asked::Nothing => &[],
            Asked::UptimeAndName if !device.is_nameless => {
                &[(UPTIME, Use::Uptime), (NAME, Use::Name)]
            }
            Asked::Uptime | Asked::UptimeAndName => &[(UPTIME, Use::Uptime)],
        };
        let pdu = |(arcs, what): &([u32; 9], Use)| {
            let name = Oid::of_arcs(arcs)?;
            Some(Pdu {
                request: device.security.prepare(session, Ask::Get, &[name]),
                uses: vec![(0, *what)],
                names: 1,
            })
        };
        names.iter().filter_map(pdu).collect()
    }

    fn session(&self) -> &'a Session {
        &self.config.sessions()[self.device.session]
    }

    /// The names that a reading needs, checks first: a value counts only after its check.
    fn wanted(&self, reading: usize) -> Vec<(Oid, Use)> {
        let mut wanted: Vec<(Oid, Use)> = Vec::new();
        for side in 0..2u8 {
            if !self.sides.is_open(reading, side) {
                continue;
            }
            if let Some((check, name)) = self.names_of(reading, side) {
                wanted.extend(check.filter(|check| !wanted.contains(check)));
                wanted.push((name, Use::Value { reading, side }));
            }
        }
        wanted.sort_by_key(|(_, what)| matches!(what, Use::Value { .. }));
        wanted
    }

    /// Puts names into PDUs that share no other names, as few as possible.
    fn put_alone(&mut self, wanted: Vec<(Oid, Use)>) {
        self.close();
        for (name, what) in wanted {
            self.put(name, what);
            if self.names.len() >= self.names_max {
                self.close();
            }
        }
        self.close();
    }

    fn add_reading(&mut self, reading: usize) {
        let wanted = self.wanted(reading);
        if wanted.len() > self.names_max {
            return self.put_alone(wanted);
        }
        let new = wanted.iter().filter(|(name, _)| !self.names.contains(name));
        let (mut count, mut bytes) = (0, 0);
        for (name, _) in new {
            count += 1;
            bytes += varbind_bytes(name.len(), VALUE_BYTES);
        }
        let security = &self.device.security;
        let is_full = self.names.len() + count > self.names_max
            || security.packet_bytes(self.session(), self.bytes + bytes) > REPLY_BYTES_MAX;
        if is_full && !self.names.is_empty() {
            self.close();
        }
        if self.names.is_empty() && !wanted.is_empty() {
            self.open();
        }
        for (name, what) in wanted {
            self.put(name, what);
        }
    }

    /// The name of a side, and the name that checks its index; `None`: a GET cannot serve it.
    #[allow(clippy::type_complexity)]
    fn names_of(&self, reading: usize, side: u8) -> Option<(Option<(Oid, Use)>, Oid)> {
        let Source::Snmp(source) = self.config.readings()[reading].source else {
            return None;
        };
        let object = source.objects[usize::from(side)];
        let is_got = matches!(object.magic, Magic::Get | Magic::IsOne);
        if !is_got {
            return None;
        }
        let mut arcs = self.config.oid(object.oid).to_vec();
        if self.device.narrow.contains(&(reading, side))
            && let Some(narrow) = narrow::column(&arcs)
        {
            arcs = narrow.to_vec();
        }
        let check = match object.index {
            Index::None => None,
            Index::Number(index) => {
                place_index(&mut arcs, index, object.index_position);
                None
            }
            Index::Reference(..) => {
                let number = self.sides.reference(reading, side)?;
                let reference = &self.device.references[number];
                let index = reference.index?;
                place_index(&mut arcs, index, object.index_position);
                Some((check_name(reference, index)?, Use::Check(number)))
            }
        };
        Some((check, Oid::of_arcs(&arcs)?))
    }

    /// Adds names about the device itself to an empty PDU.
    fn open(&mut self) {
        if self.uptime {
            self.put_arcs(&UPTIME, Use::Uptime);
        }
        if self.name {
            self.put_arcs(&NAME, Use::Name);
        }
        let has_room = self.names_max >= UPTIME_FROM;
        if self.pdus.is_empty() && self.device.watches_table() && has_room {
            for (which, name) in [(0, &CHANGE[..]), (1, &NUMBER[..])] {
                if self.device.has_table[usize::from(which)] {
                    self.put_arcs(name, Use::Table(which));
                }
            }
        }
    }

    fn put_arcs(&mut self, arcs: &[u32], what: Use) {
        if let Some(name) = Oid::of_arcs(arcs) {
            self.put(name, what);
        }
    }

    fn put(&mut self, name: Oid, what: Use) {
        let known = self.names.iter().position(|known| *known == name);
        let place = known.unwrap_or_else(|| {
            self.bytes += varbind_bytes(name.len(), VALUE_BYTES);
            self.names.push(name);
            self.names.len() - 1
        });
        let what = (place as u8, what);
        if !self.uses.contains(&what) {
            self.uses.push(what);
        }
    }

    fn close(&mut self) {
        if self.names.is_empty() {
            return;
        }
        let session = self.session();
        self.uses
            .sort_by_key(|(_, what)| matches!(what, Use::Value { .. }));
        self.pdus.push(Pdu {
            request: self.device.security.prepare(session, Ask::Get, &self.names),
            uses: std::mem::take(&mut self.uses),
            names: self.names.len() as u8,
        });
        self.names.clear();
        self.bytes = 0;
    }
}

fn place_index(arcs: &mut Vec<u32>, index: u32, position: Option<u8>) {
    match position.map(usize::from) {
        Some(position) if position <= arcs.len() => arcs.insert(position, index),
        _ => arcs.push(index),
    }
}

/// The name whose value has to be the key of the reference.
fn check_name(reference: &Reference, index: u32) -> Option<Oid> {
    let mut arcs = reference.column.oid().to_vec();
    match reference.column {
        Column::Ip => {
            let address = std::str::from_utf8(&reference.key).ok()?;
            for part in address.split('.') {
                arcs.push(part.parse().ok()?);
            }
        }
        _ => arcs.push(index),
    }
    Oid::of_arcs(&arcs)
}
