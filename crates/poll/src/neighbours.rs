//! LLDP neighbours of devices: which port of a device leads to which port of which other one, by LLDP-MIB (IEEE 802.1AB). A device
//! is asked once, walk by walk, with the parameters of its session, and not by the engine: nothing is polled here.

mod interfaces;
mod names;
mod traffic;

use std::collections::BTreeMap;
use std::time::Duration;

use kymo_wire::mrtg_cfg::Session;
use kymo_wire::snmp::{ObjectValue, Oid};

use crate::asked_agent::{AskedAgent, ROWS_MAX};
pub(crate) use interfaces::PortInterfaces;
use interfaces::{IF_TABLE, IF_X_TABLE};
pub(crate) use names::text_of;
use names::{chassis_name, port_name};

/// lldpRemTable's and lldpLocPortTable's entries.
const REMOTE: [u32; 10] = [1, 0, 8802, 1, 1, 2, 1, 4, 1, 1];
const LOCAL: [u32; 10] = [1, 0, 8802, 1, 1, 2, 1, 3, 7, 1];
/// PortInterfaces of a device that are looked at for the names of its ports.
const INTERFACES_MAX: usize = 10_000;
/// sysName.0.
const SYSTEM_NAME: [u32; 9] = [1, 3, 6, 1, 2, 1, 1, 5, 0];

/// A device, and its neighbours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Neighbourhood {
    /// The device's own name (sysName), escaped; may be empty.
    pub system: String,
    /// Neighbours of the device, by port.
    pub neighbours: Vec<Neighbour>,
}

/// A neighbour of a device. Texts are escaped, and may be empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Neighbour {
    /// Port of the device: the name of the interface, or what LLDP calls it where it is none.
    pub port: String,
    /// Name of the neighbour.
    pub system: String,
    /// Id of the neighbour's chassis: a hardware address, an address or a text.
    pub chassis: String,
    /// Port of the neighbour.
    pub remote_port: String,
    /// Description of that port.
    pub remote_descr: String,
    /// ifIndex of that interface.
    pub interface: Option<u32>,
    /// Bits a second into the device's port and out of it, if they were measured.
    pub traffic: Option<[u64; 2]>,
}

/// A row of a table by its columns.
pub(crate) type Row = BTreeMap<u32, Value>;
/// A copied value: bytes or a number.
pub(crate) type Value = Result<Vec<u8>, i64>;

/// Asks a device; with `measured`, traffic of its ports in this time. The error is a line without the device's name.
pub fn ask(session: &Session, measured: Option<Duration>) -> Result<Neighbourhood, String> {
    let mut agent = AskedAgent::connect(session)?;
    let remote = table(&mut agent, &REMOTE, 4..=9)?;
    let local = match remote.is_empty() {
        true => BTreeMap::new(),
        false => table(&mut agent, &LOCAL, 2..=4)?,
    };
    let interfaces = match local.is_empty() {
        true => PortInterfaces::default(),
        false => interfaces(&mut agent),
    };
    let system = agent.get(&oid(&SYSTEM_NAME, &[]), text_in)?;
    let mut neighbours: Vec<Neighbour> = remote
        .iter()
        .map(|(index, row)| neighbour(index, row, &local, &interfaces))
        .collect();
    neighbours.sort();
    if let Some(time) = measured {
        traffic::measure(&mut agent, &mut neighbours, time)?;
    }
    Ok(Neighbourhood {
        system: system.map_or(String::new(), |name| text_of(&name)),
        neighbours,
    })
}

/// The neighbour of a row. Its index is a time, the number of the local port, and a number.
pub(crate) fn neighbour(
    index: &[u32],
    row: &Row,
    local: &BTreeMap<Vec<u32>, Row>,
    interfaces: &PortInterfaces,
) -> Neighbour {
    let text = |column| bytes_in(row, column);
    let number = index.get(1).copied().unwrap_or_default();
    let port = local.get(&vec![number]);
    let interface = port.and_then(|port| interfaces.of_port(port));
    let name = interface.and_then(|index| interfaces.name(index));
    Neighbour {
        port: name.map_or_else(|| local_port(number, port), String::from),
        interface,
        system: text_of(text(9)),
        chassis: chassis_name(kind(row, 4), text(5)),
        remote_port: port_name(kind(row, 6), text(7)),
        remote_descr: text_of(text(8)),
        traffic: None,
    }
}

fn text_in(value: ObjectValue) -> Option<Vec<u8>> {
    match value {
        ObjectValue::OctetString(text) => Some(text.to_vec()),
        _ => None,
    }
}

fn local_port(number: u32, row: Option<&Row>) -> String {
    let text = |column| row.map_or(&[][..], |row| bytes_in(row, column));
    let id = port_name(row.and_then(|row| kind(row, 2)), text(3));
    let descr = text_of(text(4));
    // A number or a hardware address says less than a description.
    let says_little = id.is_empty() || id.bytes().all(|byte| byte.is_ascii_digit() || byte == b':');
    match (says_little, descr.is_empty()) {
        (false, _) => id,
        (true, false) => descr,
        (true, true) if id.is_empty() => number.to_string(),
        (true, true) => id,
    }
}

/// The interfaces of a device; a column that breaks off names fewer of them.
fn interfaces(agent: &mut AskedAgent) -> PortInterfaces {
    let mut rows = BTreeMap::new();
    let (table, more) = (IF_TABLE, IF_X_TABLE);
    let columns = table.1.map(|column| (&table.0[..], column));
    for (entry, column) in columns
        .into_iter()
        .chain(more.1.map(|column| (&more.0[..], column)))
    {
        let _fewer_names = read_column(agent, (entry, column), INTERFACES_MAX, &mut rows);
    }
    PortInterfaces::of(&rows)
}

/// The bytes of a column; none if it is missing or a number.
fn bytes_in(row: &Row, column: u32) -> &[u8] {
    match row.get(&column) {
        Some(Ok(bytes)) => bytes,
        Some(Err(_)) | None => &[],
    }
}

/// The subtype of an id.
fn kind(row: &Row, column: u32) -> Option<i64> {
    match row.get(&column) {
        Some(Err(number)) => Some(*number),
        Some(Ok(_)) | None => None,
    }
}

fn oid(begin: &[u32], rest: &[u32]) -> Oid {
    match Oid::of_arcs(&[begin, rest].concat()) {
        Some(oid) => oid,
        None => unreachable!("BUG: no identifier"),
    }
}

/// Columns of a table, row by row.
fn table(
    agent: &mut AskedAgent,
    entry: &[u32],
    columns: std::ops::RangeInclusive<u32>,
) -> Result<BTreeMap<Vec<u32>, Row>, String> {
    let mut rows = BTreeMap::new();
    for column in columns {
        read_column(agent, (entry, column), ROWS_MAX, &mut rows)?;
    }
    Ok(rows)
}

fn read_column(
    agent: &mut AskedAgent,
    (entry, column): (&[u32], u32),
    rows_max: usize,
    rows: &mut BTreeMap<Vec<u32>, Row>,
) -> Result<(), String> {
    agent.walk(oid(entry, &[column]), rows_max, |place, value| {
        let value = match value {
            ObjectValue::OctetString(bytes) => Ok(bytes.to_vec()),
            ObjectValue::Integer(number) => Err(number),
            _ => return,
        };
        rows.entry(place).or_default().insert(column, value);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_a_neighbour_and_a_port_has_its_best_name() {
        let text = |text: &str| Value::Ok(text.as_bytes().to_vec());
        let row: Row = [
            (4, Err(4)),
            (5, Ok(vec![0, 0x1b, 0x2c, 3, 4, 5])),
            (6, Err(5)),
            (7, text("Gi0/1")),
            (8, text("uplink")),
            (9, text("core-2\u{1b}[2J")),
        ]
        .into();
        for (local, port) in [
            (None, "7"),
            (Some(vec![(2, Err(5)), (3, text("xe-0/0/1"))]), "xe-0/0/1"),
            (
                Some(vec![(2, Err(7)), (3, text("512")), (4, text("port 7"))]),
                "port 7",
            ),
            (Some(vec![(2, Err(7)), (3, text("512"))]), "512"),
            (
                Some(vec![(2, Err(3)), (3, Ok(vec![2; 6])), (4, text("eth7"))]),
                "eth7",
            ),
        ] {
            let local = local.map(|row| (vec![7], row.into_iter().collect::<Row>()));
            let local = local.into_iter().collect();
            let expected = Neighbour {
                port: port.into(),
                interface: None,
                system: "core-2\\x1b[2J".into(),
                chassis: "00:1b:2c:03:04:05".into(),
                remote_port: "Gi0/1".into(),
                remote_descr: "uplink".into(),
                traffic: None,
            };
            let interfaces = PortInterfaces::default();
            assert_eq!(neighbour(&[5, 7, 1], &row, &local, &interfaces), expected);
        }
        let nothing = (Row::new(), BTreeMap::new(), PortInterfaces::default());
        assert_eq!(neighbour(&[], &nothing.0, &nothing.1, &nothing.2).port, "0");
    }
}
