//! Which interface of IF-MIB an own port of LLDP is. Vendors name ports as they name interfaces, or shorter, by an alias, a hardware
//! address or a number.

use std::collections::BTreeMap;

use super::names::{port_name, text_of};
use super::{Row, bytes_in, kind};

/// Columns of IF-MIB, by their last numbers.
pub(super) const IF_DESCR: u32 = 2;
const IF_PHYS_ADDRESS: u32 = 6;
const IF_NAME: u32 = 1;
const IF_ALIAS: u32 = 18;
/// ifEntry's and ifXEntry's columns.
pub(super) const IF_TABLE: ([u32; 9], [u32; 2]) =
    ([1, 3, 6, 1, 2, 1, 2, 2, 1], [IF_DESCR, IF_PHYS_ADDRESS]);
pub(super) const IF_X_TABLE: ([u32; 10], [u32; 2]) =
    ([1, 3, 6, 1, 2, 1, 31, 1, 1, 1], [IF_NAME, IF_ALIAS]);

/// LldpPortIdSubtype: interfaceAlias, macAddress, local.
const BY_ALIAS: i64 = 1;
const BY_ADDRESS: i64 = 3;
const BY_NUMBER: i64 = 7;

/// PortInterfaces by a text; `None` where several have it.
type Unique = BTreeMap<String, Option<u32>>;

/// The interfaces of a device.
#[derive(Default)]
pub(crate) struct PortInterfaces {
    /// ifName of each ifIndex, or ifDescr where it is empty.
    names: BTreeMap<u32, String>,
    by_name: Unique,
    by_descr: Unique,
    by_alias: Unique,
    by_address: Unique,
}

impl PortInterfaces {
    /// From rows of IF-MIB by the last number of each column's OID.
    pub(crate) fn of(rows: &BTreeMap<Vec<u32>, Row>) -> PortInterfaces {
        let mut found = PortInterfaces::default();
        for (place, row) in rows {
            let &[index] = &place[..] else {
                continue;
            };
            let (name, descr) = (
                text_of(bytes_in(row, IF_NAME)),
                text_of(bytes_in(row, IF_DESCR)),
            );
            let shown = if name.is_empty() { &descr } else { &name };
            found.names.insert(index, shown.clone());
            let address = bytes_in(row, IF_PHYS_ADDRESS);
            for (by, text) in [
                (&mut found.by_name, name),
                (&mut found.by_descr, descr),
                (&mut found.by_alias, text_of(bytes_in(row, IF_ALIAS))),
                (&mut found.by_address, port_name(Some(BY_ADDRESS), address)),
            ] {
                if !text.is_empty() {
                    by.entry(text)
                        .and_modify(|only| *only = None)
                        .or_insert(Some(index));
                }
            }
        }
        found
    }

    /// The name of an interface, if it has one.
    pub(super) fn name(&self, index: u32) -> Option<&str> {
        let name = self.names.get(&index)?;
        (!name.is_empty()).then_some(name)
    }

    /// The interface of a row of lldpLocPortTable.
    pub(super) fn of_port(&self, row: &Row) -> Option<u32> {
        let subtype = kind(row, 2);
        let (id, descr) = (
            port_name(subtype, bytes_in(row, 3)),
            text_of(bytes_in(row, 4)),
        );
        let named = |text: &str| only(&self.by_name, text).or_else(|| only(&self.by_descr, text));
        let by_subtype = || match subtype {
            Some(BY_ALIAS) => only(&self.by_alias, &id),
            Some(BY_ADDRESS) => only(&self.by_address, &id),
            _ => None,
        };
        let by_number = || {
            let number = id.parse().ok().filter(|_| subtype == Some(BY_NUMBER))?;
            self.names.contains_key(&number).then_some(number)
        };
        named(&id)
            .or_else(by_subtype)
            .or_else(|| named(&descr))
            .or_else(|| self.abbreviated(&id))
            .or_else(|| self.abbreviated(&descr))
            .or_else(|| only(&self.by_alias, &descr))
            .or_else(by_number)
    }

    /// The only interface with this name in a longer form: `Eth1/1` is `Ethernet1/1`.
    fn abbreviated(&self, text: &str) -> Option<u32> {
        let (letters, numbers) = split(text);
        if letters.is_empty() || numbers.is_empty() {
            return None;
        }
        let is_longer = |name: &str| {
            let (long, same) = split(name);
            let begin = long.get(..letters.len());
            same == numbers && begin.is_some_and(|begin| begin.eq_ignore_ascii_case(letters))
        };
        [&self.by_name, &self.by_descr].into_iter().find_map(|by| {
            let mut longer = by.iter().filter(|(name, _)| is_longer(name));
            let (_, index) = longer.next()?;
            index.filter(|_| longer.next().is_none())
        })
    }
}

fn only(by: &Unique, text: &str) -> Option<u32> {
    by.get(text).copied().flatten()
}

/// The letters at the begin of a name, and the rest from the first digit on.
fn split(name: &str) -> (&str, &str) {
    let at = name.find(|sign: char| sign.is_ascii_digit());
    let (letters, numbers) = name.split_at(at.unwrap_or(name.len()));
    (letters.trim_end(), numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row<const N: usize>(cells: [(u32, &str); N]) -> Row {
        let cells = cells.map(|(column, text)| (column, Ok(text.as_bytes().to_vec())));
        cells.into_iter().collect()
    }

    #[test]
    fn a_port_of_lldp_is_an_interface() {
        let rows = [
            (
                1,
                row([(1, "Ethernet1/1"), (2, "Ethernet1/1"), (18, "to core")]),
            ),
            (
                2,
                row([
                    (1, "Ethernet1/10"),
                    (2, "Ethernet1/10"),
                    (18, "spare"),
                    (6, "\u{2}\u{3}abcd"),
                ]),
            ),
            (
                3,
                row([(1, "mgmt0"), (2, "mgmt0"), (18, "spare"), (6, "same")]),
            ),
            (
                4,
                row([(1, ""), (2, "Slot: 0 Port: 4 Gigabit"), (6, "same")]),
            ),
            (513, row([(1, "ge-0/0/1"), (2, "ge-0/0/1")])),
            (7, row([(1, "513"), (2, "port 7")])),
            (8, row([(1, "ethernet 1/8"), (2, "x")])),
        ];
        let rows = rows.map(|(index, row)| (vec![index], row));
        let interfaces = PortInterfaces::of(&rows.into_iter().collect());
        for (subtype, id, descr, index) in [
            (5, "Ethernet1/1", "", Some(1)),
            (5, "Eth1/1", "", Some(1)),
            (5, "eth1/10", "", Some(2)),
            (5, "E1/1", "", Some(1)),
            (5, "1/1", "", None),
            (5, "Et1/8", "", Some(8)),
            (1, "to core", "", Some(1)),
            (1, "spare", "", None),
            (7, "12", "to core", Some(1)),
            (7, "12", "spare", None),
            (3, "\u{2}\u{3}abcd", "", Some(2)),
            (3, "same", "", None),
            (3, "same", "mgmt0", Some(3)),
            (7, "1", "Slot: 0 Port: 4 Gigabit", Some(4)),
            // A name counts before the number of an interface.
            (7, "513", "", Some(7)),
            (7, "8", "", Some(8)),
            (5, "8", "", None),
            (7, "99", "port 9", None),
            (7, "", "", None),
        ] {
            let mut port = row([(3, id), (4, descr)]);
            port.insert(2, Err(subtype));
            assert_eq!(interfaces.of_port(&port), index, "{subtype} {id} {descr}");
        }
        assert_eq!(interfaces.name(1), Some("Ethernet1/1"));
        assert_eq!(interfaces.name(4), Some("Slot: 0 Port: 4 Gigabit"));
        assert_eq!(interfaces.name(99), None);
    }
}
