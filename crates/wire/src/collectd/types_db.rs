//! types.db: the data sources of each type, with their kinds and limits.

mod known;

use std::collections::BTreeMap;

use super::bad_line::{BadLine, numbered_lines};
use super::value::{VALUES_MAX, ValueKind};
use kymo_base::printf::put_unsigned;

/// Longest line, in bytes.
const LINE_MAX: usize = 4095;
/// Longest name of a type, in bytes.
const TYPE_MAX: usize = 127;
/// Longest name of a source, in bytes; rrdtool's limit.
const SOURCE_MAX: usize = 19;

/// One data source of a type.
#[derive(Clone, Debug, PartialEq)]
pub struct DataSource {
    /// Name: 1 to 19 letters, digits, `_` and `-`.
    pub name: Box<str>,
    /// The kind of its values.
    pub kind: ValueKind,
    /// Least value, or least rate if the kind is a count; `None`: no limit (`U`).
    pub min: Option<f64>,
    /// Greatest value or rate; `None`: no limit.
    pub max: Option<f64>,
}

/// Types by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TypesDb {
    types: BTreeMap<Box<[u8]>, Box<[DataSource]>>,
}

/// Comparison of values with the sources of their type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fit<'a> {
    /// Number and kinds agree.
    Same(&'a [DataSource]),
    /// The numbers differ; collectd drops such values.
    OtherCount(&'a [DataSource]),
    /// The numbers agree, the kinds differ. collectd decodes with the kinds of its own types.db, and stores nonsense.
    OtherKinds(&'a [DataSource]),
    /// The type is unknown; collectd drops the values. Names are those of [`put_source_name`], kinds those of the packet.
    Unknown,
}

impl TypesDb {
    /// The types of collectd 5.12.
    pub fn embedded() -> TypesDb {
        let mut types = TypesDb::default();
        let singles = known::SINGLE.iter().flat_map(|(source, names)| {
            names
                .split(' ')
                .map(move |name| format!("{name} value:{source}"))
        });
        for line in singles.chain(known::OTHERS.iter().map(|line| line.to_string())) {
            let Ok(()) = types.add_line(line.as_bytes()) else {
                unreachable!("BUG: {line}")
            };
        }
        types
    }

    /// Adds the types of a file's bytes, replaces types of the same name, and returns the bad lines.
    pub fn add(&mut self, text: &[u8]) -> Vec<BadLine> {
        let lines = numbered_lines(text);
        let added =
            lines.map(|(line, text)| self.add_line(text).map_err(|why| BadLine { line, why }));
        added.filter_map(Result::err).collect()
    }

    /// Adds a line `name source:KIND:min:max[,] ...`. As in collectd, only a leading `#` begins a comment; a name may stand
    /// alone.
    fn add_line(&mut self, line: &[u8]) -> Result<(), &'static str> {
        if line.len() > LINE_MAX {
            return Err("more than 4095 bytes");
        }
        let mut words = line
            .split(|byte| matches!(byte, b' ' | b'\t' | b'\r'))
            .filter(|word| !word.is_empty());
        let Some(name) = words.next().filter(|name| !name.starts_with(b"#")) else {
            return Ok(());
        };
        let sources = words.map(source).collect::<Result<Box<[_]>, _>>()?;
        if sources.is_empty() {
            return Ok(());
        }
        if name.len() > TYPE_MAX || name.iter().any(u8::is_ascii_control) {
            return Err("the type's name has more than 127 bytes or control characters");
        }
        if sources.len() > VALUES_MAX {
            return Err("more than 63 sources");
        }
        let mut names = sources.iter().enumerate();
        if names.any(|(at, source)| {
            sources[..at]
                .iter()
                .any(|before| before.name == source.name)
        }) {
            return Err("two sources of one name");
        }
        self.types.insert(name.into(), sources);
        Ok(())
    }

    /// Number of types.
    pub fn len(&self) -> usize {
        self.types.len()
    }

    /// True if there is no type.
    pub fn is_empty(&self) -> bool {
        self.types.is_empty()
    }

    /// The sources of a type.
    pub fn sources(&self, type_name: &[u8]) -> Option<&[DataSource]> {
        self.types.get(type_name).map(|sources| &**sources)
    }

    /// All types and their sources, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[DataSource])> {
        self.types
            .iter()
            .map(|(name, sources)| (&**name, &**sources))
    }

    /// Compares values of these kinds with the sources of the type.
    pub fn fit(
        &self,
        type_name: &[u8],
        kinds: impl ExactSizeIterator<Item = ValueKind>,
    ) -> Fit<'_> {
        let Some(sources) = self.sources(type_name) else {
            return Fit::Unknown;
        };
        if kinds.len() != sources.len() {
            return Fit::OtherCount(sources);
        }
        match sources.iter().map(|source| source.kind).eq(kinds) {
            true => Fit::Same(sources),
            false => Fit::OtherKinds(sources),
        }
    }
}

/// Appends a name for the source at `index` of `count`, for an unknown type: `value` for a single source, else `value0` etc.
pub fn put_source_name(out: &mut Vec<u8>, index: usize, count: usize) {
    out.extend_from_slice(b"value");
    if count > 1 {
        put_unsigned(out, index as u64, 0);
    }
}

/// Parses `name:KIND:min:max`, with or without a comma behind it.
fn source(word: &[u8]) -> Result<DataSource, &'static str> {
    let word = word.strip_suffix(b",").unwrap_or(word);
    let word = std::str::from_utf8(word).map_err(|_| "bytes that are not UTF-8")?;
    // C's strtok treats adjacent colons as one.
    let mut fields = word.split(':').filter(|field| !field.is_empty());
    let (Some(name), Some(kind), Some(min), Some(max), None) = (
        fields.next(),
        fields.next(),
        fields.next(),
        fields.next(),
        fields.next(),
    ) else {
        return Err("a source is name:KIND:min:max");
    };
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if name.len() > SOURCE_MAX || !name.bytes().all(plain) {
        return Err("a source's name is 1 to 19 letters, digits, _ and -");
    }
    let kind = ValueKind::ALL
        .into_iter()
        .find(|known| known.word().eq_ignore_ascii_case(kind))
        .ok_or("a source is COUNTER, GAUGE, DERIVE or ABSOLUTE")?;
    Ok(DataSource {
        name: name.into(),
        kind,
        min: limit(min)?,
        max: limit(max)?,
    })
}

fn limit(text: &str) -> Result<Option<f64>, &'static str> {
    if text.eq_ignore_ascii_case("U") {
        return Ok(None);
    }
    let number = text.parse().ok().filter(|number: &f64| number.is_finite());
    number.map(Some).ok_or("a limit is a number or U")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spelled(sources: &[DataSource]) -> String {
        let limit = |limit: Option<f64>| limit.map_or("U".to_string(), |limit| limit.to_string());
        let words = sources.iter().map(|source| {
            let (min, max) = (limit(source.min), limit(source.max));
            format!("{}:{}:{min}:{max}", source.name, source.kind.word())
        });
        words.collect::<Vec<_>>().join(" ")
    }

    fn of_line(line: &str) -> Result<Option<String>, &'static str> {
        let mut types = TypesDb::default();
        types.add_line(line.as_bytes())?;
        Ok(types.iter().next().map(|(name, sources)| {
            format!("{} {}", String::from_utf8_lossy(name), spelled(sources))
        }))
    }

    #[test]
    fn lines_are_types() {
        for (line, expected) in [
            (
                "load a:GAUGE:0:5000, b:GAUGE:0:5000",
                Some("load a:GAUGE:0:5000 b:GAUGE:0:5000"),
            ),
            (
                "ib\trx:DERIVE:0:U tx:DERIVE:U:4294967295\r",
                Some("ib rx:DERIVE:0:U tx:DERIVE:U:4294967295"),
            ),
            ("  x  value:counter:u:-1.5", Some("x value:COUNTER:U:-1.5")),
            ("x value::Absolute:0:1e3,", Some("x value:ABSOLUTE:0:1000")),
            ("x#y v:GAUGE:0:1", Some("x#y v:GAUGE:0:1")),
            ("# x v:GAUGE:0:1", None),
            (" #x v:GAUGE:0:1", None),
            ("x", None),
            ("", None),
            (" \t", None),
        ] {
            assert_eq!(of_line(line), Ok(expected.map(str::to_string)), "{line:?}");
        }
    }

    #[test]
    fn a_bad_line_costs_itself_only() {
        let sources = |count| {
            (0..count)
                .map(|at| format!(" s{at}:GAUGE:0:1"))
                .collect::<String>()
        };
        let lines = [
            "good v:GAUGE:0:1".to_string(),
            "x v:GAUGE:0".to_string(),
            "x v:GAUGE:0:1:2".to_string(),
            "x v:GAUGES:0:1".to_string(),
            "x v:GAUGE:zero:1".to_string(),
            "x v:GAUGE:0:inf".to_string(),
            "x v:GAUGE:0:nan".to_string(),
            "x v.:GAUGE:0:1".to_string(),
            "x aaaaaaaaaabbbbbbbbbb:GAUGE:0:1".to_string(),
            "x v:GAUGE:0:1 # comment".to_string(),
            "x v:GAUGE:0:1 v:GAUGE:0:1".to_string(),
            format!("{} v:GAUGE:0:1", "x".repeat(128)),
            format!("x{}", sources(64)),
            format!("x v:GAUGE:0:1{}", " ".repeat(4090)),
            format!("most{}", sources(63)),
            "last v:GAUGE:0:1".to_string(),
        ];
        let mut types = TypesDb::default();
        let bad = types.add(lines.join("\n").as_bytes());
        let numbers: Vec<usize> = bad.iter().map(|bad| bad.line).collect();
        assert_eq!(numbers, (2..=14).collect::<Vec<_>>());
        let names: Vec<&[u8]> = types.iter().map(|(name, _)| name).collect();
        assert_eq!(names, [&b"good"[..], b"last", b"most"]);
        assert_eq!(types.sources(b"most").map(<[_]>::len), Some(63));
        assert_eq!(types.add(b"\xff\xfe\nx v\xff:GAUGE:0:1\n").len(), 1);
    }

    #[test]
    fn a_later_line_counts() {
        let mut types = TypesDb::embedded();
        assert_eq!(types.sources(b"load").map(<[_]>::len), Some(3));
        assert_eq!(types.add(b"load value:GAUGE:0:U\n"), []);
        assert_eq!(types.sources(b"load").map(<[_]>::len), Some(1));
    }

    #[test]
    fn kinds_are_compared() {
        use ValueKind::*;
        let types = TypesDb::embedded();
        let fit = |name: &str, kinds: &[ValueKind]| match types
            .fit(name.as_bytes(), kinds.iter().copied())
        {
            Fit::Same(_) => "same",
            Fit::OtherCount(_) => "count",
            Fit::OtherKinds(_) => "kinds",
            Fit::Unknown => "unknown",
        };
        assert_eq!(fit("load", &[Gauge; 3]), "same");
        assert_eq!(fit("load", &[Gauge; 2]), "count");
        assert_eq!(fit("load", &[Gauge, Gauge, Derive]), "kinds");
        assert_eq!(
            fit("mysql_threads", &[Gauge, Gauge, Gauge, Counter]),
            "same"
        );
        assert_eq!(fit("nothing", &[Gauge]), "unknown");
    }

    #[test]
    fn what_is_embedded_is_all_there_is() {
        let types = TypesDb::embedded();
        let of_kind = |kind| {
            let sources = types.iter().flat_map(|(_, sources)| sources);
            sources.filter(|source| source.kind == kind).count()
        };
        let of_count = |count| {
            types
                .iter()
                .filter(|(_, sources)| sources.len() == count)
                .count()
        };
        // Counted in Debian's collectd-core 5.12.0-14.
        assert_eq!([1, 2, 3, 4, 5].map(of_count), [325, 35, 1, 4, 1]);
        assert_eq!(ValueKind::ALL.map(of_kind), [13, 229, 176, 1]);
        assert_eq!(types.len(), 366);
        assert_eq!(
            spelled(types.sources(b"df").unwrap()),
            "used:GAUGE:0:1125899906842623 free:GAUGE:0:1125899906842623"
        );
        assert_eq!(
            spelled(types.sources(b"percent").unwrap()),
            "value:GAUGE:0:100.1"
        );
    }

    /// Where collectd is installed, the file that it brings agrees.
    #[test]
    fn what_is_embedded_is_what_is_installed() {
        let Ok(text) = std::fs::read("/usr/share/collectd/types.db") else {
            return;
        };
        let mut types = TypesDb::default();
        assert_eq!(types.add(&text), []);
        assert!(
            types == TypesDb::embedded(),
            "collectd's types.db has changed"
        );
    }

    #[test]
    fn sources_without_a_type_have_names() {
        let name = |index, count| {
            let mut out = Vec::new();
            put_source_name(&mut out, index, count);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(
            [name(0, 1), name(0, 2), name(11, 12)],
            ["value", "value0", "value11"]
        );
    }
}
