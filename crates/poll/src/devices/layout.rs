//! A table of a profile, ready to be polled: each column once, and metrics and labels by the numbers of their columns.

use std::collections::BTreeMap;

use kymo_base::label_set::is_name;
use kymo_wire::snmp::Oid;
use regex::Regex;

use super::interface_filter::whole;
use super::profile::{Profile, ProfileTable};

/// Columns of a table.
const COLUMNS_MAX: usize = 200;

/// Columns by which interfaces are known and chosen.
const INTERFACE_COLUMNS: [&str; 8] = [
    "1.3.6.1.2.1.31.1.1.1.1",
    "1.3.6.1.2.1.31.1.1.1.18",
    "1.3.6.1.2.1.2.2.1.2",
    "1.3.6.1.2.1.2.2.1.3",
    "1.3.6.1.2.1.2.2.1.7",
    "1.3.6.1.2.1.2.2.1.8",
    "1.3.6.1.2.1.31.1.1.1.15",
    "1.3.6.1.2.1.2.2.1.5",
];

/// Checks all names and OIDs of a profile. The error says which one is wrong.
pub fn check_profile(profile: &Profile) -> Result<(), String> {
    if profile.table.is_empty() {
        return Err("it has no [[table]]".into());
    }
    let mut tables = profile.table.iter();
    tables.try_for_each(|table| TableLayout::new(table).map(drop))
}

/// A table.
#[derive(Debug)]
pub(super) struct TableLayout {
    /// The columns.
    pub(super) columns: Vec<Oid>,
    /// Parts of the index; none: each object is there once.
    pub(super) index: Vec<IndexPart>,
    /// Labels with their columns.
    pub(super) labels: Vec<(String, usize)>,
    /// The metrics.
    pub(super) metrics: Vec<TableMetric>,
    /// Words of numbers, by the name of a label or of a metric.
    pub(super) words: BTreeMap<String, BTreeMap<String, String>>,
    /// The columns by which interfaces are chosen, if the rows are interfaces.
    pub(super) interfaces: Option<InterfaceColumns>,
}

/// Numbers of the columns by which interfaces are known and chosen.
#[derive(Clone, Copy, Debug)]
pub(super) struct InterfaceColumns {
    pub(super) name: usize,
    pub(super) alias: usize,
    pub(super) descr: usize,
    pub(super) kind: usize,
    pub(super) admin: usize,
    pub(super) oper: usize,
    pub(super) high_speed: usize,
    pub(super) speed: usize,
}

/// A part of an index.
#[derive(Debug)]
pub(super) struct IndexPart {
    /// The label that has it.
    pub(super) label: String,
    /// How it is written.
    pub(super) kind: IndexKind,
}

/// Ways to write a part of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IndexKind {
    /// A number.
    Integer,
    /// A length, and this many bytes of a text.
    Text,
    /// Bytes of a text up to the end.
    Rest,
    /// Four numbers of an address.
    Address,
    /// Six bytes of a hardware address.
    Mac,
}

/// A metric of a table.
#[derive(Debug)]
pub(super) struct TableMetric {
    /// Name, without `_info`.
    pub(super) name: String,
    /// Number of the column.
    pub(super) column: usize,
    /// Meaning of the value.
    pub(super) kind: MetricKind,
}

/// The meaning of a column's values.
#[derive(Debug)]
pub(super) enum MetricKind {
    /// A gauge with its factor.
    Gauge(f64),
    Counter,
    Text,
    Mac,
    Info,
    Time,
    Bits,
    States,
    /// A gauge: expressions for a text, and the numbers that they make.
    Extract(Vec<(Regex, String)>),
    /// A gauge, and the columns with its scale and its decimal places.
    Scaled {
        scale: usize,
        precision: usize,
    },
}

/// The columns while a layout is made.
#[derive(Default)]
struct Columns(Vec<Oid>);

impl Columns {
    /// Number of the column with this OID.
    fn number(&mut self, name: &str, text: &str) -> Result<usize, String> {
        let oid = Oid::parse(text).ok_or_else(|| format!("{name}: {text:?} is not an OID"))?;
        if let Some(at) = self.0.iter().position(|known| *known == oid) {
            return Ok(at);
        }
        self.0.push(oid);
        Ok(self.0.len() - 1)
    }
}

impl TableLayout {
    /// The layout of a table. The error names its fault.
    pub(super) fn new(table: &ProfileTable) -> Result<TableLayout, String> {
        let mut columns = Columns::default();
        let interfaces = match table.interfaces {
            true => Some(interface_columns(&mut columns)?),
            false => None,
        };
        let mut labels = Vec::new();
        for (name, oid) in &table.labels {
            labels.push((label(name)?, columns.number(name, oid)?));
        }
        let metrics = metrics(table, &mut columns)?;
        let index: Vec<IndexPart> = table
            .index
            .iter()
            .map(|text| index_part(text))
            .collect::<Result<_, _>>()?;
        if table.interfaces && index.len() != 1 {
            return Err("a table of interfaces has one index, such as [\"ifIndex\"]".into());
        }
        let mut scaled = table.scale.keys();
        if let Some(name) = scaled.find(|name| !table.gauge.contains_key(*name)) {
            return Err(format!("scale: {name} is no gauge of the table"));
        }
        let mut named = table.bits.keys().chain(table.states.keys());
        if let Some(name) = named.find(|name| !table.words.contains_key(*name)) {
            return Err(format!("{name} has no words"));
        }
        for (name, words) in &table.words {
            if let Some(number) = words.keys().find(|key| key.parse::<i64>().is_err()) {
                return Err(format!("words of {name}: {number:?} is not a number"));
            }
        }
        if columns.0.len() > COLUMNS_MAX {
            return Err(format!("it has more than {COLUMNS_MAX} columns"));
        }
        Ok(TableLayout {
            columns: columns.0,
            index,
            labels,
            metrics,
            words: table.words.clone(),
            interfaces,
        })
    }

    /// The word of a number, or the text itself.
    pub(super) fn word(&self, name: &str, text: String) -> String {
        let words = self.words.get(name);
        words
            .and_then(|words| words.get(&text).cloned())
            .unwrap_or(text)
    }
}

fn interface_columns(columns: &mut Columns) -> Result<InterfaceColumns, String> {
    let mut numbers = [0; INTERFACE_COLUMNS.len()];
    for (number, oid) in numbers.iter_mut().zip(INTERFACE_COLUMNS) {
        *number = columns.number("interfaces", oid)?;
    }
    let [name, alias, descr, kind, admin, oper, high_speed, speed] = numbers;
    Ok(InterfaceColumns {
        name,
        alias,
        descr,
        kind,
        admin,
        oper,
        high_speed,
        speed,
    })
}

/// Makes the kind of a metric with a factor.
type KindOfFactor = fn(f64) -> MetricKind;

fn metrics(table: &ProfileTable, columns: &mut Columns) -> Result<Vec<TableMetric>, String> {
    let mut metrics = Vec::new();
    let factor = |name: &str| table.scale.get(name).copied().unwrap_or(1.0);
    let kinds: [(_, KindOfFactor); 8] = [
        (&table.gauge, MetricKind::Gauge),
        (&table.counter, |_| MetricKind::Counter),
        (&table.text, |_| MetricKind::Text),
        (&table.mac, |_| MetricKind::Mac),
        (&table.info, |_| MetricKind::Info),
        (&table.time, |_| MetricKind::Time),
        (&table.bits, |_| MetricKind::Bits),
        (&table.states, |_| MetricKind::States),
    ];
    for (names, kind) in kinds {
        for (name, oid) in names {
            metrics.push(TableMetric {
                name: label(name)?,
                column: columns.number(name, oid)?,
                kind: kind(factor(name)),
            });
        }
    }
    for (name, by) in &table.scaled {
        metrics.push(TableMetric {
            name: label(name)?,
            column: columns.number(name, &by.value)?,
            kind: MetricKind::Scaled {
                scale: columns.number(name, &by.scale)?,
                precision: columns.number(name, &by.precision)?,
            },
        });
    }
    for (name, by) in &table.extract {
        let regex = by.regex.iter();
        let regex = regex.map(|(text, number)| Ok((whole(text)?, number.clone())));
        metrics.push(TableMetric {
            name: label(name)?,
            column: columns.number(name, &by.value)?,
            kind: MetricKind::Extract(regex.collect::<Result<_, String>>()?),
        });
    }
    match metrics.is_empty() {
        true => Err("a table has no metric".into()),
        false => Ok(metrics),
    }
}

/// A name of a label or a metric; the texts of both have to be labels' names, because texts become labels.
fn label(name: &str) -> Result<String, String> {
    match is_name(name.as_bytes()) && !name.starts_with("__") {
        true => Ok(name.into()),
        false => Err(format!("{name:?} is not a name of letters, digits and _")),
    }
}

fn index_part(text: &str) -> Result<IndexPart, String> {
    let (name, kind) = text.split_once(':').unwrap_or((text, "integer"));
    let kind = match kind {
        "integer" => IndexKind::Integer,
        "string" => IndexKind::Text,
        "rest" => IndexKind::Rest,
        "ip" => IndexKind::Address,
        "mac" => IndexKind::Mac,
        _ => {
            return Err(format!(
                "index {text:?}: {kind:?} is none of integer, string, rest, ip and mac"
            ));
        }
    };
    Ok(IndexPart {
        label: label(name)?,
        kind,
    })
}

/// The texts of an index' parts; `None`: the arcs are no such index.
pub(super) fn index_texts(parts: &[IndexPart], arcs: &[u32]) -> Option<Vec<String>> {
    if parts.is_empty() {
        return (arcs == [0]).then(Vec::new);
    }
    let (mut rest, mut texts) = (arcs, Vec::new());
    for part in parts {
        let (size, skipped) = match part.kind {
            IndexKind::Integer => (1, 0),
            IndexKind::Address => (4, 0),
            IndexKind::Mac => (6, 0),
            IndexKind::Rest => (rest.len(), 0),
            IndexKind::Text => (usize::try_from(*rest.first()?).ok()?, 1),
        };
        let (own, behind) = rest.get(skipped..)?.split_at_checked(size)?;
        rest = behind;
        texts.push(match part.kind {
            IndexKind::Integer | IndexKind::Address => {
                let numbers: Vec<String> = own.iter().map(u32::to_string).collect();
                numbers.join(".")
            }
            IndexKind::Mac => {
                let pairs: Vec<String> = own.iter().map(|arc| format!("{arc:02X}")).collect();
                pairs.join(":")
            }
            IndexKind::Rest | IndexKind::Text => {
                let bytes = own.iter().map(|arc| u8::try_from(*arc).ok());
                let bytes: Vec<u8> = bytes.collect::<Option<_>>()?;
                String::from_utf8_lossy(&bytes).into_owned()
            }
        });
    }
    rest.is_empty().then_some(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_an_index_are_labels() {
        for (parts, arcs, texts) in [
            (&["a"][..], &[7][..], Some(&["7"][..])),
            (&["a"], &[7, 8], None),
            (&["a"], &[], None),
            (&["a", "b"], &[7, 8], Some(&["7", "8"])),
            (&["a:ip"], &[10, 0, 0, 1], Some(&["10.0.0.1"])),
            (&["a:ip"], &[10, 0, 0], None),
            (
                &["a:mac", "b"],
                &[0, 1, 2, 3, 4, 255, 9],
                Some(&["00:01:02:03:04:FF", "9"]),
            ),
            (&["a:string", "b"], &[2, 104, 105, 3], Some(&["hi", "3"])),
            (&["a:string"], &[3, 104, 105], None),
            (&["a:string"], &[4_000_000_000, 104], None),
            (&["a:rest"], &[104, 105], Some(&["hi"])),
            (&["a:rest"], &[104, 300], None),
            (&[], &[0], Some(&[])),
            (&[], &[1], None),
        ] {
            let parts: Vec<IndexPart> =
                parts.iter().map(|text| index_part(text).unwrap()).collect();
            let found = index_texts(&parts, arcs);
            assert_eq!(
                found.as_deref(),
                texts
                    .map(|texts| texts.iter().map(ToString::to_string).collect::<Vec<_>>())
                    .as_deref(),
                "{arcs:?}"
            );
        }
    }
}
