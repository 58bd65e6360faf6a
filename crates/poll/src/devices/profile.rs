//! A profile: which columns of a device are polled, and the metrics that they become. Profiles are texts in TOML.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Profiles that are built in: the name, and the text.
pub const BUILT_IN: [(&str, &str); 8] = [
    ("system", include_str!("profiles/system.toml")),
    ("interfaces", include_str!("profiles/interfaces.toml")),
    ("cpu", include_str!("profiles/cpu.toml")),
    ("memory", include_str!("profiles/memory.toml")),
    ("storage", include_str!("profiles/storage.toml")),
    ("sensors", include_str!("profiles/sensors.toml")),
    ("ups", include_str!("profiles/ups.toml")),
    ("neighbours", include_str!("profiles/neighbours.toml")),
];

/// A profile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Name; in a file of its own, that of the file.
    #[serde(default)]
    pub name: String,
    /// True if it is asked once an hour; each poll has the last values.
    #[serde(default)]
    pub hourly: bool,
    /// True if the tables are those of the built-in profile `neighbours`, which become one metric.
    #[serde(default)]
    pub lldp: bool,
    /// The tables, in the order in which they are polled.
    pub table: Vec<ProfileTable>,
}

/// A table of a device, or objects that it has once. Maps are from a name to an OID.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProfileTable {
    /// Labels of the parts of a row's index, such as `ifIndex` or `user:string`; empty: each object is there once.
    pub index: Vec<String>,
    /// True if rows are interfaces, which the filter of a device chooses.
    pub interfaces: bool,
    /// Labels whose values are in columns.
    pub labels: BTreeMap<String, String>,
    /// Gauges.
    pub gauge: BTreeMap<String, String>,
    /// Counters.
    pub counter: BTreeMap<String, String>,
    /// Texts: the metric is 1, and has a label of its own name.
    pub text: BTreeMap<String, String>,
    /// Hardware addresses, as texts.
    pub mac: BTreeMap<String, String>,
    /// Words: `NAME_info` is 1, and has a label NAME.
    pub info: BTreeMap<String, String>,
    /// Moments (DateAndTime of SNMPv2-TC), in seconds since 1970.
    pub time: BTreeMap<String, String>,
    /// Bits that `words` name: a metric for each, 1 or 0, with a label of its own name.
    pub bits: BTreeMap<String, String>,
    /// States that `words` name, likewise.
    pub states: BTreeMap<String, String>,
    /// Gauges that regular expressions take out of texts.
    pub extract: BTreeMap<String, ExtractedText>,
    /// Gauges that other columns scale.
    pub scaled: BTreeMap<String, ScaledColumns>,
    /// Factors of gauges.
    pub scale: BTreeMap<String, f64>,
    /// Words of numbers, by the name of a label or of an `info`.
    pub words: BTreeMap<String, BTreeMap<String, String>>,
}

/// Columns of a value that is scaled as ENTITY-SENSOR-MIB says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScaledColumns {
    /// OID of the value.
    pub value: String,
    /// OID of the scale: EntitySensorDataScale.
    pub scale: String,
    /// OID of the number of decimal places.
    pub precision: String,
}

/// A text, and the numbers in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExtractedText {
    /// OID of the text.
    pub value: String,
    /// Expressions, each of which has to match the whole text, and the numbers that they make, such as `$1`. The first one that
    /// makes a number counts.
    pub regex: Vec<(String, String)>,
}
