//! What is known of a device's interfaces: which number the one of that name, description, type, address has. Learned by walking
//! a column, checked with each value, and kept in MRTG's cache file (`mrtg.ok`).

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;

/// How an interface is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Column {
    /// ifName.
    Name,
    /// ifDescr.
    Descr,
    /// ifType.
    Type,
    /// ipAdEntIfIndex: the address is part of the OID, the number is the value.
    Ip,
    /// ifPhysAddress.
    Eth,
}

impl Column {
    /// All of them.
    pub const ALL: [Column; 5] = [
        Column::Name,
        Column::Descr,
        Column::Type,
        Column::Ip,
        Column::Eth,
    ];

    /// Its OID.
    pub fn oid(self) -> &'static [u32] {
        match self {
            Column::Name => &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 1],
            Column::Descr => &[1, 3, 6, 1, 2, 1, 2, 2, 1, 2],
            Column::Type => &[1, 3, 6, 1, 2, 1, 2, 2, 1, 3],
            Column::Ip => &[1, 3, 6, 1, 2, 1, 4, 20, 1, 2],
            Column::Eth => &[1, 3, 6, 1, 2, 1, 2, 2, 1, 6],
        }
    }

    /// As MRTG's file has it.
    pub fn word(self) -> &'static str {
        match self {
            Column::Name => "Name",
            Column::Descr => "Descr",
            Column::Type => "Type",
            Column::Ip => "Ip",
            Column::Eth => "Eth",
        }
    }
}

/// Where a key leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// To the interface of this number.
    Index(u32),
    /// To several: none of them is meant.
    Duplicate,
}

/// Keys are compared as MRTG compares them: without blanks and control bytes at the end, each other one of them a blank.
pub(super) fn clean(text: &[u8]) -> Vec<u8> {
    let end = text.iter().rposition(|&byte| byte > b' ');
    let kept = &text[..end.map_or(0, |end| end + 1)];
    kept.iter().map(|&byte| byte.max(b' ')).collect()
}

/// Whether a text is this key, without making the clean one of it.
pub(super) fn is_key(text: &[u8], key: &[u8]) -> bool {
    let end = text.iter().rposition(|&byte| byte > b' ');
    let kept = &text[..end.map_or(0, |end| end + 1)];
    kept.len() == key.len() && kept.iter().zip(key).all(|(&a, &b)| a.max(b' ') == b)
}

/// A hardware address as MRTG writes it: `00-1b-21-aa`.
pub(super) fn eth_text(bytes: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(bytes.len() * 3);
    for (n, byte) in bytes.iter().enumerate() {
        let dash = if n == 0 { "" } else { "-" };
        // Writing to memory does not fail.
        let _ = write!(text, "{dash}{byte:02x}");
    }
    text
}

/// The interfaces of one device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interfaces(BTreeMap<Column, BTreeMap<Vec<u8>, Found>>);

impl Interfaces {
    /// Where a clean key leads.
    pub fn find(&self, column: Column, key: &[u8]) -> Option<Found> {
        self.0.get(&column)?.get(key).copied()
    }

    /// Forgets one that turned out to be another.
    pub fn forget(&mut self, column: Column, key: &[u8]) {
        if let Some(keys) = self.0.get_mut(&column) {
            keys.remove(key);
        }
    }

    /// Begins a column again; its rows follow.
    pub fn begin(&mut self, column: Column) {
        self.0.insert(column, BTreeMap::new());
    }

    /// A row of it.
    pub fn add(&mut self, column: Column, key: Vec<u8>, index: u32) {
        let keys = self.0.entry(column).or_default();
        let known = keys.entry(key).or_insert(Found::Index(index));
        if *known != Found::Index(index) {
            *known = Found::Duplicate;
        }
    }
}

/// The cache of all devices, by MRTG's key of a device: `community@host_port_version`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cache(pub BTreeMap<Vec<u8>, Interfaces>);

impl Cache {
    /// Reads MRTG's file: `HOST \t METHOD \t KEY \t NUMBER`. Lines of any other form mean nothing, as there. Of hosts that are not
    /// `wanted` nothing is kept.
    pub fn read(text: &[u8], wanted: &BTreeSet<Vec<u8>>) -> Cache {
        let mut cache = Cache::default();
        for line in text.split(|&byte| byte == b'\n') {
            let mut parts = line.split(|&byte| byte == b'\t');
            let (Some(host), Some(method), Some(key), Some(index), None) = (
                parts.next(),
                parts.next(),
                parts.next(),
                parts.next(),
                parts.next(),
            ) else {
                continue;
            };
            let mut columns = Column::ALL.into_iter();
            let Some(column) = columns.find(|column| column.word().as_bytes() == method) else {
                continue;
            };
            if !wanted.contains(host) {
                continue;
            }
            let index = std::str::from_utf8(index).ok();
            let Some(found) = index.and_then(|index| match index {
                "Dup" => Some(Found::Duplicate),
                _ => index.parse().ok().map(Found::Index),
            }) else {
                continue;
            };
            let interfaces = cache.0.entry(host.to_vec()).or_default();
            let keys = interfaces.0.entry(column).or_default();
            keys.insert(clean(key), found);
        }
        cache
    }

    /// As MRTG writes it, sorted.
    pub fn text(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for (host, interfaces) in &self.0 {
            let mut columns: Vec<_> = interfaces.0.iter().collect();
            columns.sort_by_key(|(column, _)| column.word());
            for (column, keys) in columns {
                for (key, found) in keys {
                    out.extend(host);
                    out.push(b'\t');
                    out.extend(column.word().as_bytes());
                    out.push(b'\t');
                    out.extend(key);
                    // Writing to memory does not fail.
                    let _ = match found {
                        Found::Index(index) => writeln!(out, "\t{index}"),
                        Found::Duplicate => writeln!(out, "\tDup"),
                    };
                }
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_compared_without_what_is_at_their_end() {
        for (text, key) in [
            (&b"eth0"[..], &b"eth0"[..]),
            (b"eth0 \0\n", b"eth0"),
            (b"a\tb\0c", b"a b c"),
            (b"  ", b""),
            (b"", b""),
        ] {
            assert_eq!(clean(text), key);
            assert!(is_key(text, key));
        }
        assert!(!is_key(b"eth0", b"eth"));
        assert!(!is_key(b"eth0", b"eth1"));
        assert_eq!(eth_text(&[0, 0x1b, 0xff]), b"00-1b-ff");
    }

    #[test]
    fn two_interfaces_of_one_name_are_none() {
        let mut interfaces = Interfaces::default();
        interfaces.begin(Column::Name);
        for (key, index) in [(&b"a"[..], 1), (b"b", 2), (b"a", 3), (b"b", 2)] {
            interfaces.add(Column::Name, key.to_vec(), index);
        }
        assert_eq!(interfaces.find(Column::Name, b"a"), Some(Found::Duplicate));
        assert_eq!(interfaces.find(Column::Name, b"b"), Some(Found::Index(2)));
        assert_eq!(interfaces.find(Column::Descr, b"b"), None);
        interfaces.forget(Column::Name, b"b");
        assert_eq!(interfaces.find(Column::Name, b"b"), None);
    }

    #[test]
    fn mrtgs_file_is_read_and_written() {
        let text = b"public@h_161_2\tDescr\teth 0\t1\npublic@h_161_2\tDescr\tlo\tDup\npublic@h_161_2\tName\teth0\t7\n";
        let wanted = BTreeSet::from([b"public@h_161_2".to_vec()]);
        let cache = Cache::read(text, &wanted);
        assert_eq!(cache.text(), text);
        let interfaces = &cache.0[&b"public@h_161_2"[..]];
        assert_eq!(
            interfaces.find(Column::Descr, b"lo"),
            Some(Found::Duplicate)
        );
        let strange = b"x\npublic@h_161_2\tWhat\tk\t1\npublic@h_161_2\tName\tk\tx\nother\tName\tk\t1\na\tb\tc\td\te\n\xff\t\t\t\n";
        assert_eq!(Cache::read(strange, &wanted), Cache::default());
    }
}
