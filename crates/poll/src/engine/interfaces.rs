//! Known interfaces of a device: the ifIndex by name, description, type, or address. Walks of a column find them, each poll
//! checks them, and MRTG's cache file (`mrtg.ok`) keeps them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;

use super::walk::Walked;

/// Columns that name interfaces.
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
    /// All columns.
    pub const ALL: [Column; 5] = [
        Column::Name,
        Column::Descr,
        Column::Type,
        Column::Ip,
        Column::Eth,
    ];

    /// The OID of the column.
    pub fn oid(self) -> &'static [u32] {
        match self {
            Column::Name => &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 1],
            Column::Descr => &[1, 3, 6, 1, 2, 1, 2, 2, 1, 2],
            Column::Type => &[1, 3, 6, 1, 2, 1, 2, 2, 1, 3],
            Column::Ip => &[1, 3, 6, 1, 2, 1, 4, 20, 1, 2],
            Column::Eth => &[1, 3, 6, 1, 2, 1, 2, 2, 1, 6],
        }
    }

    /// The column's word in MRTG's cache file.
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

/// Result of the lookup of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The ifIndex.
    Index(u32),
    /// Several interfaces have the key, so it names none.
    Duplicate,
}

/// Cleans a key as MRTG does for comparisons: cuts blanks and control bytes at the end, and replaces others by blanks.
pub(super) fn clean(text: &[u8]) -> Vec<u8> {
    let end = text.iter().rposition(|&byte| byte > b' ');
    let kept = &text[..end.map_or(0, |end| end + 1)];
    kept.iter().map(|&byte| byte.max(b' ')).collect()
}

/// True if the clean form of a text is this key; allocates nothing.
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

/// Limits of a device on the size of requests; `None`: the usual size works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Largest number of names of a GET.
    pub names: Option<u16>,
    /// Largest number of rows of a GETBULK; 0: use GETNEXT.
    pub rows: Option<u16>,
    /// Time of the last try of larger requests, seconds since 1970.
    pub tried_s: Option<u32>,
}

/// Word and keys of lines with limits in MRTG's cache file. MRTG keeps such lines as they are.
const LIMIT: &str = "Limit";
const LIMIT_NAMES: &[u8] = b"names";
const LIMIT_ROWS: &[u8] = b"rows";
const LIMIT_TRIED: &[u8] = b"tried";

/// The interfaces and limits of one device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interfaces {
    columns: BTreeMap<Column, BTreeMap<Vec<u8>, Found>>,
    /// Limits on the size of requests.
    pub limits: Limits,
}

impl Interfaces {
    /// Adds those of another session with the same key.
    pub fn add(&mut self, other: &Interfaces) {
        for (column, keys) in &other.columns {
            let known = self.columns.entry(*column).or_default();
            known.extend(keys.iter().map(|(key, found)| (key.clone(), *found)));
        }
        if other.limits != Limits::default() {
            self.limits = other.limits;
        }
    }

    /// Looks up a clean key.
    pub fn find(&self, column: Column, key: &[u8]) -> Option<Found> {
        self.columns.get(&column)?.get(key).copied()
    }

    /// Removes a key whose index turned out to be wrong.
    pub fn forget(&mut self, column: Column, key: &[u8]) {
        if let Some(keys) = self.columns.get_mut(&column) {
            keys.remove(key);
        }
    }

    /// Replaces the rows of a column. After a walk without an end, keys that are not among the rows stay.
    pub fn learn(&mut self, column: Column, rows: Vec<(Vec<u8>, u32)>, how: Walked) {
        let mut new: BTreeMap<Vec<u8>, Found> = BTreeMap::new();
        for (key, index) in rows {
            let known = new.entry(key).or_insert(Found::Index(index));
            if *known != Found::Index(index) {
                *known = Found::Duplicate;
            }
        }
        let keys = self.columns.entry(column).or_default();
        if how == Walked::Whole {
            keys.clear();
        }
        keys.extend(new);
    }
}

impl Limits {
    fn read(&mut self, key: &[u8], number: &[u8]) {
        let number = std::str::from_utf8(number).ok();
        let number: Option<u32> = number.and_then(|number| number.parse().ok());
        let small = number.and_then(|number| u16::try_from(number).ok());
        match key {
            LIMIT_NAMES => self.names = small.filter(|&names| names > 0),
            LIMIT_ROWS => self.rows = small,
            LIMIT_TRIED => self.tried_s = number,
            _ => {}
        }
    }

    fn put(self, host: &[u8], out: &mut Vec<u8>) {
        for (key, number) in [
            (LIMIT_NAMES, self.names.map(u32::from)),
            (LIMIT_ROWS, self.rows.map(u32::from)),
            (LIMIT_TRIED, self.tried_s),
        ] {
            if let Some(number) = number {
                for part in [host, b"\t", LIMIT.as_bytes(), b"\t", key] {
                    out.extend(part);
                }
                // Writing to memory does not fail.
                let _ = writeln!(out, "\t{number}");
            }
        }
    }
}

/// The cache of all devices, by MRTG's key of a device ([`Session::cache_key`](kymo_wire::mrtg_cfg::Session::cache_key)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cache(pub BTreeMap<Vec<u8>, Interfaces>);

impl Cache {
    /// Reads MRTG's file of lines `HOST \t METHOD \t KEY \t NUMBER`. Skips other lines, as MRTG does, and hosts that are not in
    /// `wanted`.
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
            if !wanted.contains(host) {
                continue;
            }
            if method == LIMIT.as_bytes() {
                let interfaces = cache.0.entry(host.to_vec()).or_default();
                interfaces.limits.read(key, index);
                continue;
            }
            let mut columns = Column::ALL.into_iter();
            let Some(column) = columns.find(|column| column.word().as_bytes() == method) else {
                continue;
            };
            let index = std::str::from_utf8(index).ok();
            let Some(found) = index.and_then(|index| match index {
                "Dup" => Some(Found::Duplicate),
                _ => index.parse().ok().map(Found::Index),
            }) else {
                continue;
            };
            let interfaces = cache.0.entry(host.to_vec()).or_default();
            let keys = interfaces.columns.entry(column).or_default();
            keys.insert(clean(key), found);
        }
        cache
    }

    /// The file's text in MRTG's format, sorted.
    pub fn text(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for (host, interfaces) in &self.0 {
            interfaces.limits.put(host, &mut out);
            let mut columns: Vec<_> = interfaces.columns.iter().collect();
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
        let rows = [(&b"a"[..], 1), (b"b", 2), (b"a", 3), (b"b", 2)];
        let rows = rows.map(|(key, index)| (key.to_vec(), index)).to_vec();
        interfaces.learn(Column::Name, rows, Walked::Whole);
        assert_eq!(interfaces.find(Column::Name, b"a"), Some(Found::Duplicate));
        assert_eq!(interfaces.find(Column::Name, b"b"), Some(Found::Index(2)));
        assert_eq!(interfaces.find(Column::Descr, b"b"), None);
        // A walk that breaks off changes no other interface.
        interfaces.learn(Column::Name, vec![(b"a".to_vec(), 4)], Walked::Looped);
        assert_eq!(interfaces.find(Column::Name, b"a"), Some(Found::Index(4)));
        assert_eq!(interfaces.find(Column::Name, b"b"), Some(Found::Index(2)));
        interfaces.forget(Column::Name, b"b");
        assert_eq!(interfaces.find(Column::Name, b"b"), None);
        interfaces.learn(Column::Name, Vec::new(), Walked::Whole);
        assert_eq!(interfaces.find(Column::Name, b"a"), None);
    }

    #[test]
    fn sessions_of_one_key_share_it() {
        let mut all = Interfaces::default();
        for (column, key) in [
            (Column::Name, b"a"),
            (Column::Name, b"b"),
            (Column::Type, b"6"),
        ] {
            let mut one = Interfaces::default();
            one.learn(column, vec![(key.to_vec(), 1)], Walked::Whole);
            all.add(&one);
            assert_eq!(all.find(column, key), Some(Found::Index(1)));
        }
        assert_eq!(all.find(Column::Name, b"a"), Some(Found::Index(1)));
        let limits = Limits {
            names: Some(9),
            ..Limits::default()
        };
        all.add(&Interfaces {
            limits,
            ..Interfaces::default()
        });
        all.add(&Interfaces::default());
        assert_eq!(all.limits, limits);
    }

    #[test]
    fn mrtgs_file_is_read_and_written() {
        let text = b"public@h_161_2\tLimit\tnames\t12\npublic@h_161_2\tLimit\trows\t0\npublic@h_161_2\tLimit\ttried\t1800000000\npublic@h_161_2\tDescr\teth 0\t1\npublic@h_161_2\tDescr\tlo\tDup\npublic@h_161_2\tName\teth0\t7\n";
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
