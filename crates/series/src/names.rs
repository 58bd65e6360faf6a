//! Names of the series of all sources. No other module makes names from the words of a source.
//!
//! Names and labels are those that common dashboards use: node_exporter's for this machine (in the tables of the subsystems,
//! `kymo_kernel::subsystem::exposed`; their rules are here), and those of collectd's write_prometheus, of snmp_exporter and of
//! postgres_exporter. Texts of sources may be hostile: bytes that are not UTF-8 become `\xNN`, and characters that a name may not
//! contain become `_`.

use std::borrow::Cow;

use kymo_base::label_set::{self, LabelError, Labels};
use kymo_base::name::DisplayName;

use crate::sample::{Kind, Unit};

mod postgres;

pub use postgres::{postgres, postgres_scale};

/// The label with the metric's name.
pub const METRIC: &str = "__name__";
/// `job` of metrics about kymo, and about this machine beyond node_exporter.
pub const JOB_KYMO: &[u8] = b"kymo";
/// `job` of metrics that node_exporter has, too.
pub const JOB_NODE: &[u8] = b"node";
/// `job` of metrics that programs publish.
pub const JOB_PROGRAMS: &[u8] = b"programs";
/// `job` of polled devices.
pub const JOB_POLL: &[u8] = b"poll";
/// `job` of database servers.
pub const JOB_POSTGRES: &[u8] = b"postgres";
/// `job` of statsd's series.
pub const JOB_STATSD: &[u8] = b"statsd";
/// `job` of Graphite's series.
pub const JOB_GRAPHITE: &[u8] = b"graphite";

/// Labels that identify a source. The source itself may not set them.
const RESERVED: [&str; 4] = [METRIC, "job", "publisher", "user"];

/// Name of a collectd value, in five parts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Collectd<'a> {
    /// The host of the value.
    pub host: &'a [u8],
    /// The plugin that read it.
    pub plugin: &'a [u8],
    /// Instance of the plugin; may be empty.
    pub plugin_instance: &'a [u8],
    /// Name of the type in types.db.
    pub type_name: &'a [u8],
    /// Instance of the type; may be empty.
    pub type_instance: &'a [u8],
}

/// A target of an mrtg.cfg.
#[derive(Clone, Copy, Debug, Default)]
pub struct Target<'a> {
    /// Name of the target in MRTG.
    pub name: &'a [u8],
    /// The device that is polled; empty for a command.
    pub device: &'a [u8],
    /// `Title`.
    pub title: &'a [u8],
    /// Number and name of the interface; `None`: the target is no interface.
    pub interface: Option<(&'a [u8], &'a [u8])>,
}

/// One of a target's two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The first.
    In,
    /// The second.
    Out,
}

/// A value of this machine, by the metric's name and labels in the tables of the kernel.
pub fn machine<'a>(
    host: &'a [u8],
    metric: &'a str,
    labels: impl IntoIterator<Item = (&'a str, &'a [u8])>,
) -> Result<Labels, LabelError> {
    let mut set = Set::of(metric);
    set.put("job", job_of_machine(metric));
    set.put("instance", host);
    for (name, value) in labels {
        set.put_free(name, value);
    }
    set.labels()
}

/// `job` of a metric about this machine.
pub fn job_of_machine(metric: &str) -> &'static [u8] {
    match metric.starts_with("kymo_") {
        true => JOB_KYMO,
        false => JOB_NODE,
    }
}

/// A field of this machine (`cpu.user`) or of one of its instances; an empty `instance` means the whole machine.
pub fn field(host: &[u8], field: &str, instance: &[u8]) -> Result<Labels, LabelError> {
    let of = (!instance.is_empty()).then_some(("of", instance));
    machine(host, &field_metric(field), of)
}

/// The metric of a field of this machine.
pub fn field_metric(field: &str) -> String {
    format!("kymo_{}", metric_name(field.as_bytes()))
}

/// A collectd value, named as by the plugin write_prometheus. `data_source` is its name in types.db; `counts` is true for the
/// types COUNTER and DERIVE.
pub fn collectd(of: &Collectd, data_source: &[u8], counts: bool) -> Result<Labels, LabelError> {
    let mut metric = String::from("collectd");
    let mut part = |text: &[u8]| {
        metric.push('_');
        put_word(&mut metric, text, false);
    };
    if of.plugin != of.type_name {
        part(of.plugin);
    }
    part(of.type_name);
    if data_source != b"value" {
        part(data_source);
    }
    if counts {
        metric.push_str("_total");
    }
    let plugin = label_name(of.plugin);
    let mut set = Set::of(&metric);
    set.put("instance", of.host);
    match of.plugin_instance.is_empty() {
        true => set.put_free(&plugin, of.type_instance),
        false => {
            set.put_free(&plugin, of.plugin_instance);
            set.put_free("type", of.type_instance);
        }
    }
    set.labels()
}

/// A column of an .rrd file, by its path below the base.
pub fn rrd(path: &[u8], data_source: &[u8]) -> Result<Labels, LabelError> {
    let mut set = Set::of("rrd");
    set.put("path", path.strip_suffix(b".rrd").unwrap_or(path));
    set.put("ds", data_source);
    set.labels()
}

/// The parts of a path that collectd could have written: `HOST/PLUGIN[-INSTANCE]/TYPE[-INSTANCE].rrd`.
pub fn collectd_of_path(path: &[u8]) -> Option<Collectd<'_>> {
    let path = path.strip_suffix(b".rrd").unwrap_or(path);
    let mut parts = path.split(|&byte| byte == b'/');
    let (host, plugin, type_name) = (parts.next()?, parts.next()?, parts.next()?);
    let (plugin, plugin_instance) = cut(plugin, b'-');
    let (type_name, type_instance) = cut(type_name, b'-');
    let is_whole =
        parts.next().is_none() && !host.is_empty() && !plugin.is_empty() && !type_name.is_empty();
    is_whole.then_some(Collectd {
        host,
        plugin,
        plugin_instance,
        type_name,
        type_instance,
    })
}

/// A value of a polled target.
pub fn target(of: &Target, direction: Direction, counts: bool) -> Result<Labels, LabelError> {
    let metric = match (direction, counts) {
        (Direction::In, true) => "mrtg_in_total",
        (Direction::In, false) => "mrtg_in",
        (Direction::Out, true) => "mrtg_out_total",
        (Direction::Out, false) => "mrtg_out",
    };
    of_target(of, metric)
}

/// The name that snmp_exporter uses for a counter of an interface's octets; `None`: the target is no interface.
pub fn target_alias(of: &Target, direction: Direction) -> Option<Result<Labels, LabelError>> {
    of.interface?;
    let metric = match direction {
        Direction::In => "ifHCInOctets",
        Direction::Out => "ifHCOutOctets",
    };
    Some(of_target(of, metric))
}

fn of_target(of: &Target, metric: &str) -> Result<Labels, LabelError> {
    let mut set = Set::of(metric);
    set.put("job", JOB_POLL);
    set.put("target", of.name);
    set.put("device", of.device);
    set.put("title", of.title);
    let (index, name) = of.interface.unwrap_or_default();
    set.put("ifIndex", index);
    set.put("ifName", name);
    set.labels()
}

/// A metric that a program publishes. A name of one word gets a prefix, as other programs may use it, too.
pub fn program(
    name: &[u8],
    publisher: &[u8],
    user: &[u8],
    labels: &[(&[u8], &[u8])],
) -> Result<Labels, LabelError> {
    let mut metric = String::new();
    if !name.contains(&b'_') {
        metric.push_str("kymo_program_");
    }
    put_word(&mut metric, name, true);
    let mut set = Set::of(&metric);
    set.put("job", JOB_PROGRAMS);
    set.put("publisher", publisher);
    set.put("user", user);
    set.put_all(labels);
    set.labels()
}

/// A statsd metric, with the suffix of its name (`_total`, `_bucket` ...), the bound of a bucket and the tags of DogStatsD.
pub fn statsd(
    name: &[u8],
    end: &str,
    bound: Option<&str>,
    tags: &[(&[u8], &[u8])],
) -> Result<Labels, LabelError> {
    let mut metric = metric_name(name);
    if end != "_total" || !metric.ends_with(end) {
        metric.push_str(end);
    }
    let mut set = Set::of(&metric);
    set.put("job", JOB_STATSD);
    set.put("le", bound.unwrap_or_default().as_bytes());
    set.put_all(tags);
    set.labels()
}

/// A Graphite metric: its path, and its tags.
pub fn graphite(path: &[u8], tags: &[(&[u8], &[u8])]) -> Result<Labels, LabelError> {
    let mut set = Set::of(&metric_name(path));
    set.put("job", JOB_GRAPHITE);
    set.put("path", path);
    set.put_all(tags);
    set.labels()
}

/// A metric of a source without rules of its own.
pub fn plain(name: &[u8], job: &[u8], labels: &[(&[u8], &[u8])]) -> Result<Labels, LabelError> {
    let mut set = Set::of(&metric_name(name));
    set.put("job", job);
    set.put_all(labels);
    set.labels()
}

/// The metric in a set of labels.
pub fn metric_of(labels: &Labels) -> String {
    String::from_utf8_lossy(&label_set::value(labels.text(), METRIC)).into_owned()
}

/// The kind of a metric, judged by its name.
pub fn kind_of(metric: &str) -> Kind {
    let is = |end: &str| metric.ends_with(end);
    match () {
        () if is("_bucket") || is("_sum") || is("_count") => Kind::Histogram,
        () if is("_total") => Kind::Counter,
        () => Kind::Untyped,
    }
}

/// The unit of a metric, judged by its name.
pub fn unit_of(metric: &str) -> Unit {
    Unit::of_name(metric)
}

/// True if a text is a valid metric name: letters, digits, `_` and `:`, with no digit first.
pub fn is_metric(name: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphabetic() || matches!(c, '_' | ':');
    name.starts_with(is_letter) && name.chars().all(|c| is_letter(c) || c.is_ascii_digit())
}

/// Makes a metric name of any text: characters that it may not contain become `_`.
pub fn metric_name(text: &[u8]) -> String {
    let mut name = String::with_capacity(text.len());
    put_word(&mut name, text, true);
    match name.is_empty() {
        true => "_".into(),
        false => name,
    }
}

/// Makes a label name of any text, likewise.
pub fn label_name(text: &[u8]) -> String {
    metric_name(text).replace(':', "_")
}

/// Makes a text of any bytes: bytes that are not UTF-8, and characters that are unsafe on a terminal, become `\xNN`.
pub fn utf8(bytes: &[u8]) -> Cow<'_, str> {
    DisplayName(bytes).text()
}

/// Appends a text, with `_` for each character that a name may not contain. `is_first` is true if it begins the name.
fn put_word(name: &mut String, text: &[u8], is_first: bool) {
    for c in String::from_utf8_lossy(text).chars() {
        let is_leading_digit = is_first && name.is_empty() && c.is_ascii_digit();
        if is_leading_digit {
            name.push('_');
        }
        match c.is_ascii_alphanumeric() || matches!(c, '_' | ':') {
            true => name.push(c),
            false => name.push('_'),
        }
    }
}

/// Splits a text at the first `byte`, which is in neither part; without one the second part is empty.
fn cut(text: &[u8], byte: u8) -> (&[u8], &[u8]) {
    match text.iter().position(|&each| each == byte) {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, b""),
    }
}

/// Labels of a series under construction.
struct Set<'a> {
    labels: Vec<(Cow<'a, str>, Cow<'a, [u8]>)>,
}

impl<'a> Set<'a> {
    fn of(metric: &str) -> Set<'a> {
        Set {
            labels: vec![(METRIC.into(), Cow::Owned(metric.as_bytes().to_vec()))],
        }
    }

    /// Adds a label, unless its value is empty.
    fn put(&mut self, name: &'a str, value: &'a [u8]) {
        let value = match utf8(value) {
            Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
            Cow::Owned(text) => Cow::Owned(text.into_bytes()),
        };
        self.labels.push((name.into(), value));
    }

    /// Adds a label that the source named. If the set has it already, or it identifies a source, it becomes `exported_NAME`, as
    /// in Prometheus.
    fn put_free(&mut self, name: &str, value: &'a [u8]) {
        if value.is_empty() {
            return;
        }
        let mut name = name.to_string();
        while self.labels.iter().any(|(known, _)| **known == *name) || RESERVED.contains(&&*name) {
            name.insert_str(0, "exported_");
        }
        let value = utf8(value).into_owned().into_bytes();
        self.labels.push((name.into(), value.into()));
    }

    fn put_all(&mut self, labels: &[(&[u8], &'a [u8])]) {
        for (name, value) in labels {
            self.put_free(&label_name(name), value);
        }
    }

    fn labels(&self) -> Result<Labels, LabelError> {
        let labels = self.labels.iter();
        Labels::new(labels.map(|(name, value)| (&**name, &**value)))
    }
}

#[cfg(test)]
mod tests;
