//! The objects of a device in the order of their names: existence,
//! order and values. Names are compared in their encoded form.

use std::cmp::Ordering;

use kymo_wire::snmp::{ObjectValue, Version, compare_oids, put_varbind};

use crate::traffic::{Direction, PACKET_BYTES};
use crate::view::View;

/// A column of a table, or a scalar object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    System(u8),
    IfNumber,
    If(u8),
    IpAddress(u8),
    IfX(u8),
    TableLastChange,
}

const SYSTEM_MAX: u8 = 7;
const IF_MAX: u8 = 22;
const IP_ADDRESS_MAX: u8 = 5;
const IF_X_MAX: u8 = 19;
/// mib-2.
const ROOT: [u8; 5] = [43, 6, 1, 2, 1];
/// Encoded name. The longest one is ROOT, a column, and an index of 5 bytes.
type Name = Vec<u8>;

/// The kind of index of a column's rows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rows {
    Once,
    Index,
    Address,
}

impl Column {
    const FIRST: Column = Column::System(1);

    fn next(self) -> Option<Column> {
        Some(match self {
            Column::System(SYSTEM_MAX) => Column::IfNumber,
            Column::System(column) => Column::System(column + 1),
            Column::IfNumber => Column::If(1),
            Column::If(IF_MAX) => Column::IpAddress(1),
            Column::If(column) => Column::If(column + 1),
            Column::IpAddress(IP_ADDRESS_MAX) => Column::IfX(1),
            Column::IpAddress(column) => Column::IpAddress(column + 1),
            Column::IfX(IF_X_MAX) => Column::TableLastChange,
            Column::IfX(column) => Column::IfX(column + 1),
            Column::TableLastChange => return None,
        })
    }

    /// The column of a name, and the rest of the name.
    fn of_name(name: &[u8]) -> Option<(Column, &[u8])> {
        let below = name.strip_prefix(&ROOT)?;
        Some(match *below {
            [1, column @ 1..=SYSTEM_MAX, ref row @ ..] => (Column::System(column), row),
            [2, 1, ref row @ ..] => (Column::IfNumber, row),
            [2, 2, 1, column @ 1..=IF_MAX, ref row @ ..] => (Column::If(column), row),
            [4, 20, 1, column @ 1..=IP_ADDRESS_MAX, ref row @ ..] => {
                (Column::IpAddress(column), row)
            }
            [31, 1, 1, 1, column @ 1..=IF_X_MAX, ref row @ ..] => (Column::IfX(column), row),
            [31, 1, 5, ref row @ ..] => (Column::TableLastChange, row),
            _ => return None,
        })
    }

    fn put_name(self, name: &mut Name) {
        name.clear();
        name.extend(ROOT);
        match self {
            Column::System(column) => name.extend([1, column]),
            Column::IfNumber => name.extend([2, 1]),
            Column::If(column) => name.extend([2, 2, 1, column]),
            Column::IpAddress(column) => name.extend([4, 20, 1, column]),
            Column::IfX(column) => name.extend([31, 1, 1, 1, column]),
            Column::TableLastChange => name.extend([31, 1, 5]),
        }
    }

    fn rows(self) -> Rows {
        match self {
            Column::System(_) | Column::IfNumber | Column::TableLastChange => Rows::Once,
            Column::If(_) | Column::IfX(_) => Rows::Index,
            Column::IpAddress(_) => Rows::Address,
        }
    }

    /// False for a Counter64 in v1, which does not have such objects.
    fn is_for(self, version: Version) -> bool {
        version == Version::V2c || !matches!(self, Column::IfX(6..=13))
    }
}

/// An object: a column and its place there, from 0.
#[derive(Clone, Copy)]
pub(crate) struct Object {
    column: Column,
    place: u32,
}

/// Result of a GET.
pub(crate) enum Found {
    Object(Object),
    NoObject,
    NoInstance,
}

/// The object with this name.
pub(crate) fn find(name: &[u8], view: &View) -> Found {
    let Some((column, row)) = Column::of_name(name) else {
        return Found::NoObject;
    };
    let missing = view.behaviour.missing.iter().any(|oid| **oid == *name);
    if missing || !column.is_for(view.version) {
        return Found::NoInstance;
    }
    match place_of_row(column, row, view) {
        Some(place) => Found::Object(Object { column, place }),
        None => Found::NoInstance,
    }
}

fn place_of_row(column: Column, row: &[u8], view: &View) -> Option<u32> {
    match column.rows() {
        Rows::Once => (row == [0]).then_some(0),
        Rows::Index => {
            let index = only(arcs_of(row))?;
            let place = index.checked_sub(view.behaviour.first_index)?;
            view.interface_at(place).map(|_| place)
        }
        Rows::Address => {
            let place = view.interface_of_ip(arcs_of(row))?;
            view.has(place).then_some(place)
        }
    }
}

/// The arcs at the end of a name. Arcs beyond 32 bits are `u32::MAX`.
fn arcs_of(mut row: &[u8]) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let size = 1 + row.iter().position(|&byte| byte < 0x80)?;
        let (groups, rest) = row.split_at(size);
        row = rest;
        let arc = groups.iter().fold(0u64, |arc, &byte| {
            arc.min(1 << 40) << 7 | u64::from(byte & 0x7f)
        });
        Some(u32::try_from(arc).unwrap_or(u32::MAX))
    })
}

fn only(mut arcs: impl Iterator<Item = u32>) -> Option<u32> {
    let first = arcs.next()?;
    arcs.next().is_none().then_some(first)
}

/// The first object after a name that this version has.
pub(crate) fn find_next(name: &[u8], view: &View) -> Option<Object> {
    let mut column = Some(Column::FIRST);
    let mut prefix = Name::new();
    while let Some(here) = column {
        here.put_name(&mut prefix);
        let start = match name.strip_prefix(&prefix[..]) {
            Some(row) => Some(place_behind(here, row, view)),
            None => (compare_oids(name, &prefix) == Ordering::Less).then_some(0),
        };
        let object = start.and_then(|place| {
            from(
                Object {
                    column: here,
                    place,
                },
                view,
            )
        });
        // An object in the column of the name or in a later one is found at once; earlier columns are skipped.
        if object.is_some() {
            return object;
        }
        column = here.next();
    }
    None
}

/// The place of the first row after this one, which need not exist.
fn place_behind(column: Column, row: &[u8], view: &View) -> u32 {
    if row.is_empty() {
        return 0;
    }
    match column.rows() {
        Rows::Once => 1,
        Rows::Index => match arcs_of(row).next() {
            // The next index: names below a row of this index come after it.
            Some(index) => index
                .saturating_add(1)
                .saturating_sub(view.behaviour.first_index),
            None => 0,
        },
        Rows::Address => {
            let name: Vec<u32> = arcs_of(row).collect();
            let behind =
                |interface: &u32| view.ip_of(*interface).map(u32::from).as_slice() > &name[..];
            (0..view.device.interfaces).find(behind).unwrap_or(u32::MAX)
        }
    }
}

/// The object itself or, if it does not exist, the next one of its column.
fn from(object: Object, view: &View) -> Option<Object> {
    if !object.column.is_for(view.version) {
        return None;
    }
    let end = match object.column.rows() {
        Rows::Once => 1,
        Rows::Index | Rows::Address => view.device.interfaces,
    };
    (object.place..end)
        .map(|place| Object { place, ..object })
        .find(|object| object.is_there(view))
}

impl Object {
    fn is_there(self, view: &View) -> bool {
        let known = match self.column.rows() {
            Rows::Once => true,
            Rows::Index => view.interface_at(self.place).is_some(),
            Rows::Address => view.has(self.place),
        };
        if !known || view.behaviour.missing.is_empty() {
            return known;
        }
        let mut name = Name::new();
        self.put_name(view, &mut name);
        !view.behaviour.missing.iter().any(|oid| **oid == *name)
    }

    /// The next object.
    pub(crate) fn next(self, view: &View) -> Option<Object> {
        let behind = Object {
            place: self.place + 1,
            ..self
        };
        let mut found = from(behind, view);
        let mut column = self.column;
        while found.is_none() {
            column = column.next()?;
            found = from(Object { column, place: 0 }, view);
        }
        found
    }

    /// Writes the object's whole name.
    pub(crate) fn put_name(self, view: &View, name: &mut Name) {
        self.column.put_name(name);
        match self.column.rows() {
            Rows::Once => name.push(0),
            Rows::Index => put_arc(name, view.index_at(self.place)),
            Rows::Address => {
                for part in view.ip_of(self.place) {
                    put_arc(name, part.into());
                }
            }
        }
    }

    /// Appends the object under this name.
    pub(crate) fn put(self, name: &[u8], view: &View, out: &mut Vec<u8>) {
        let interface = view.interface_at(self.place).unwrap_or(0);
        let mut put = |value: ObjectValue| put_varbind(out, name, value);
        match self.column {
            Column::System(column) => put_system(column, view, &mut put),
            Column::IfNumber => put(ObjectValue::Integer(view.interfaces().into())),
            Column::If(column) => put_if(column, interface, view, &mut put),
            Column::IpAddress(column) => put_ip_address(column, self.place, view, &mut put),
            Column::IfX(column) => put_if_x(column, interface, view, &mut put),
            Column::TableLastChange => {
                put(ObjectValue::TimeTicks(view.behaviour.table_changed.into()));
            }
        }
    }
}

fn put_arc(out: &mut Vec<u8>, arc: u32) {
    for shift in [28, 21, 14, 7] {
        if arc >> shift > 0 {
            out.push((arc >> shift) as u8 | 0x80);
        }
    }
    out.push(arc as u8 & 0x7f);
}

fn put_system(column: u8, view: &View, put: &mut dyn FnMut(ObjectValue)) {
    let number = view.device.number;
    match column {
        1 => put(ObjectValue::OctetString(
            b"kymo agentfarm, a device that is not there",
        )),
        // enterprises.8072.3.2.10, net-snmp on Linux.
        2 => put(ObjectValue::Oid(&[43, 6, 1, 4, 1, 0xbf, 8, 3, 2, 10])),
        3 => put(ObjectValue::TimeTicks(
            view.behaviour.uptime(view.at_ns).into(),
        )),
        4 => put(ObjectValue::OctetString(b"nobody")),
        5 => put(ObjectValue::OctetString(format!("dev{number}").as_bytes())),
        6 => put(ObjectValue::OctetString(format!("row {number}").as_bytes())),
        _ => put(ObjectValue::Integer(2)),
    }
}

/// Speed of an interface: a gigabit a second.
const SPEED_BITS: u64 = 1_000_000_000;

fn put_if(column: u8, interface: u32, view: &View, put: &mut dyn FnMut(ObjectValue)) {
    let count = |octets: u64| ObjectValue::Counter32(octets & u64::from(u32::MAX));
    let octets = |direction| view.octets(interface, direction);
    let (inward, outward) = (Direction::In, Direction::Out);
    put(match column {
        1 => ObjectValue::Integer(view.index_of(interface).into()),
        2 => {
            return put(ObjectValue::OctetString(
                format!("GigabitEthernet0/{}", interface + 1).as_bytes(),
            ));
        }
        3 => ObjectValue::Integer(6),
        4 => ObjectValue::Integer(1500),
        5 => ObjectValue::Gauge32(SPEED_BITS),
        6 => return put(ObjectValue::OctetString(&mac(view, interface))),
        7 | 8 => ObjectValue::Integer(1),
        9 => ObjectValue::TimeTicks(0),
        10 => count(octets(inward)),
        11 => count(octets(inward) / PACKET_BYTES),
        12 => count(octets(inward) / (PACKET_BYTES * 100)),
        13 => count(octets(inward) / (PACKET_BYTES * 10_000)),
        14 => count(octets(inward) / (PACKET_BYTES * 100_000)),
        16 => count(octets(outward)),
        17 => count(octets(outward) / PACKET_BYTES),
        18 => count(octets(outward) / (PACKET_BYTES * 100)),
        19 => count(octets(outward) / (PACKET_BYTES * 10_000)),
        20 => count(octets(outward) / (PACKET_BYTES * 100_000)),
        22 => ObjectValue::Oid(&[0]),
        _ => ObjectValue::Gauge32(0),
    });
}

fn mac(view: &View, interface: u32) -> [u8; 6] {
    let [.., d1, d0] = view.device.number.to_be_bytes();
    let [.., i2, i1, i0] = interface.to_be_bytes();
    [2, d1, d0, i2, i1, i0]
}

fn put_ip_address(column: u8, interface: u32, view: &View, put: &mut dyn FnMut(ObjectValue)) {
    put(match column {
        1 => ObjectValue::IpAddress(view.ip_of(interface)),
        2 => ObjectValue::Integer(view.index_of(interface).into()),
        3 => ObjectValue::IpAddress([255, 255, 255, 252]),
        4 => ObjectValue::Integer(1),
        _ => ObjectValue::Integer(65_535),
    });
}

fn put_if_x(column: u8, interface: u32, view: &View, put: &mut dyn FnMut(ObjectValue)) {
    let short = |count: u64| ObjectValue::Counter32(count & u64::from(u32::MAX));
    let octets = |direction| view.octets(interface, direction);
    let (inward, outward) = (Direction::In, Direction::Out);
    put(match column {
        1 => {
            return put(ObjectValue::OctetString(
                format!("Gi0/{}", interface + 1).as_bytes(),
            ));
        }
        2 => short(octets(inward) / (PACKET_BYTES * 100)),
        3 => short(octets(inward) / (PACKET_BYTES * 200)),
        4 => short(octets(outward) / (PACKET_BYTES * 100)),
        5 => short(octets(outward) / (PACKET_BYTES * 200)),
        6 => ObjectValue::Counter64(octets(inward)),
        7 => ObjectValue::Counter64(octets(inward) / PACKET_BYTES),
        8 => ObjectValue::Counter64(octets(inward) / (PACKET_BYTES * 100)),
        9 => ObjectValue::Counter64(octets(inward) / (PACKET_BYTES * 200)),
        10 => ObjectValue::Counter64(octets(outward)),
        11 => ObjectValue::Counter64(octets(outward) / PACKET_BYTES),
        12 => ObjectValue::Counter64(octets(outward) / (PACKET_BYTES * 100)),
        13 => ObjectValue::Counter64(octets(outward) / (PACKET_BYTES * 200)),
        15 => ObjectValue::Gauge32(SPEED_BITS / 1_000_000),
        18 => {
            let alias = format!("port {} of dev{}", interface + 1, view.device.number);
            return put(ObjectValue::OctetString(alias.as_bytes()));
        }
        19 => ObjectValue::TimeTicks(0),
        14 | 16 | 17 => ObjectValue::Integer(1),
        _ => ObjectValue::Integer(2),
    });
}
