//! Descriptions of metrics, as their senders gave them, and their file, docs/formats/families.md. The last description
//! of a metric counts. Losing one costs help texts and no sample, so nothing waits for the disk.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use kymo_sys::disk::Disk;
use kymo_sys::kept_file::{Contents, KeptFile, Kind, Old, Records, Sync};
use kymo_wire::keeper::MetricFamily;
use kymo_wire::remote_write::{MetricType, SeriesMetadata};

use super::kinds::family_of;
use crate::log::{Log, Severity};

/// The file's name.
pub(crate) const NAME: &str = "families";
pub(crate) const FILE: Kind = Kind {
    magic: *b"KYMOFAMI",
    version: 1,
    bytes_max: 64 << 20,
    // There is no older version.
    old: Old {
        magic: *b"KYMOFM0",
        newest: 0,
        has_generation: false,
    },
};
/// Metrics that are described at most; further ones are not.
const FAMILIES_MAX: usize = 20_000;
/// Longest texts, in bytes: names, units, and sentences, which are cut there.
const METRIC_MAX: usize = 256;
const UNIT_MAX: usize = 64;
const HELP_MAX: usize = 1024;
/// Bytes of obsolete records that the file may have in addition to its first size, before it is written again.
const SLACK: usize = 1 << 20;

/// A description.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Described {
    metric_type: MetricType,
    unit: Box<str>,
    help: Box<str>,
}

/// All descriptions.
#[derive(Default)]
pub(super) struct Families {
    families: HashMap<Box<str>, Described>,
    /// Names whose descriptions are not in the file yet.
    unsaved: Vec<Box<str>>,
    /// `None`: descriptions are in memory alone.
    kept: Option<KeptFile>,
}

impl Families {
    /// Reads the file; returns a message if there is one.
    pub(super) fn open(disk: Arc<dyn Disk>, folder: &Path) -> (Families, Option<String>) {
        let path = folder.join(NAME);
        let (mut kept, contents) = match KeptFile::open(disk, path.clone(), FILE) {
            Ok(opened) => opened,
            Err(error) => {
                let path = path.display();
                let why = format!("cannot read {path}: {error}; descriptions are not kept");
                return (Families::default(), Some(why));
            }
        };
        let families = read(&mut kept, &contents);
        let notice = kept.notice(&contents);
        let families = Families {
            families,
            unsaved: Vec::new(),
            kept: Some(kept).filter(|kept| !kept.is_newer()),
        };
        (families, notice)
    }

    /// Keeps a description that is new.
    pub(super) fn note(&mut self, metric: &str, metadata: &SeriesMetadata) {
        let is_empty = metadata.metric_type == MetricType::Unknown
            && metadata.help.is_empty()
            && metadata.unit.is_empty();
        if is_empty || metric.is_empty() || metric.len() > METRIC_MAX {
            return;
        }
        let (unit, help) = (cut(metadata.unit, UNIT_MAX), cut(metadata.help, HELP_MAX));
        let known = self.families.get(metric);
        let is_known = known.is_some_and(|known| {
            known.metric_type == metadata.metric_type
                && *known.unit == *unit
                && *known.help == *help
        });
        if is_known || known.is_none() && self.families.len() >= FAMILIES_MAX {
            return;
        }
        let described = Described {
            metric_type: metadata.metric_type,
            unit: unit.into(),
            help: help.into(),
        };
        self.families.insert(metric.into(), described);
        self.unsaved.push(metric.into());
    }

    /// The type of a metric, or of the family that it is a part of.
    pub(super) fn type_of(&self, metric: &str) -> MetricType {
        let known = self.families.get(metric);
        let known = known.or_else(|| self.families.get(family_of(metric)?));
        known.map_or(MetricType::Unknown, |known| known.metric_type)
    }

    fn iter(&self) -> impl Iterator<Item = (&str, &Described)> {
        let families = self.families.iter();
        families.map(|(metric, known)| (&**metric, known))
    }

    /// The descriptions of one metric, or of all by their names.
    pub(super) fn list(&self, metric: &str) -> Vec<MetricFamily> {
        let family = |(metric, known): (&str, &Described)| MetricFamily {
            metric: metric.into(),
            kind: known.metric_type.word().into(),
            unit: known.unit.to_string(),
            help: known.help.to_string(),
        };
        if !metric.is_empty() {
            let known = self.families.get(metric).map(|known| (metric, known));
            return known.map(family).into_iter().collect();
        }
        let mut all: Vec<MetricFamily> = self.iter().map(family).collect();
        all.sort_unstable();
        all
    }

    /// Writes new descriptions to the file. A failure is logged, and the file is not written any more.
    pub(super) fn save(&mut self, log: &Log) {
        if self.unsaved.is_empty() {
            return;
        }
        let unsaved = std::mem::take(&mut self.unsaved);
        let Some(kept) = &mut self.kept else {
            return;
        };
        let families = &self.families;
        let is_due = kept
            .size()
            .is_none_or(|(end, begun)| end > begun.saturating_mul(2).saturating_add(SLACK));
        let written = if is_due {
            let mut fill = |records: &mut Records| {
                families
                    .iter()
                    .for_each(|(metric, known)| put(records, metric, known));
            };
            kept.replace(kept.generation() + 1, &mut fill, Sync::Later)
        } else {
            let mut records = kept.records();
            for metric in &unsaved {
                if let Some(known) = families.get(metric) {
                    put(&mut records, metric, known);
                }
            }
            kept.append(&records, Sync::Later)
        };
        if let Err(error) = written {
            self.kept = None;
            let text = format!("cannot keep descriptions of metrics: {error}");
            log(Severity::Warning, &text);
        }
    }
}

fn put(records: &mut Records, metric: &str, known: &Described) {
    records.put(|body| {
        for text in [metric, known.metric_type.word(), &known.unit, &known.help] {
            let length = u16::try_from(text.len()).unwrap_or(0);
            body.extend(length.to_le_bytes());
            body.extend_from_slice(
                text.get(..usize::from(length))
                    .unwrap_or_default()
                    .as_bytes(),
            );
        }
    });
}

/// Reads all records; the last one of a metric counts.
fn read(kept: &mut KeptFile, contents: &Contents) -> HashMap<Box<str>, Described> {
    let mut families = HashMap::new();
    let mut is_whole = true;
    for body in contents.bodies() {
        match parse(body) {
            Some((metric, described)) if families.len() < FAMILIES_MAX => {
                families.insert(metric, described);
            }
            Some(_) => {}
            None => is_whole = false,
        }
    }
    if !is_whole {
        kept.distrust(contents);
    }
    families
}

/// True if a record can be read.
pub(crate) fn is_record(_version: u32, body: &[u8]) -> bool {
    parse(body).is_some()
}

fn parse(body: &[u8]) -> Option<(Box<str>, Described)> {
    let mut rest = body;
    let mut text = || {
        let (length, behind) = rest.split_first_chunk()?;
        let (text, behind) = behind.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
        rest = behind;
        std::str::from_utf8(text).ok()
    };
    let (metric, kind, unit, help) = (text()?, text()?, text()?, text()?);
    let described = Described {
        metric_type: MetricType::of_word(kind)?,
        unit: unit.into(),
        help: help.into(),
    };
    rest.is_empty().then(|| (metric.into(), described))
}

/// The beginning of a text, of whole characters.
fn cut(text: &str, most: usize) -> &str {
    text.get(..text.floor_char_boundary(most))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kymo_sys::sim_disk::SimDisk;

    fn metadata<'a>(metric_type: MetricType, unit: &'a str, help: &'a str) -> SeriesMetadata<'a> {
        SeriesMetadata {
            metric_type,
            help,
            unit,
        }
    }

    #[test]
    fn descriptions_come_back_after_a_start() {
        let disk = Arc::new(SimDisk::new(1));
        let folder = Path::new("/store");
        disk.create_dir_all(folder).unwrap();
        let log: Log = Arc::new(|_, line| panic!("{line}"));
        let (mut families, notice) = Families::open(disk.clone(), folder);
        assert_eq!(notice, None);
        let long = "ä".repeat(HELP_MAX);
        families.note("a_total", &metadata(MetricType::Counter, "", "All a."));
        families.note("b", &metadata(MetricType::Histogram, "seconds", &long));
        families.save(&log);
        families.note("a_total", &metadata(MetricType::Counter, "", "All of a."));
        families.note("c", &metadata(MetricType::Unknown, "", ""));
        families.save(&log);
        let known = families.list("");
        assert_eq!(known.len(), 2);
        assert_eq!(families.list("a_total"), known[..1]);
        assert_eq!(known[0].help, "All of a.");
        assert_eq!(known[1].help.len(), HELP_MAX);
        assert_eq!(families.type_of("b_bucket"), MetricType::Histogram);
        let (again, notice) = Families::open(disk.clone(), folder);
        assert_eq!((again.list(""), notice), (known, None));
        assert!(again.list("c").is_empty());
    }

    #[test]
    fn the_last_record_of_a_metric_counts() {
        let fixture = include_bytes!("../../../../tests/fixtures/families-1");
        let disk = Arc::new(SimDisk::new(1));
        let folder = Path::new("/store");
        disk.create_dir_all(folder).unwrap();
        disk.set_bytes(&folder.join(NAME), fixture.to_vec());
        let (families, notice) = Families::open(disk, folder);
        assert_eq!(notice, None);
        let shown = families.list("").into_iter();
        let shown = shown.map(|of| [of.metric, of.kind, of.unit, of.help]);
        let expected = [
            ["a", "gauge", "seconds", "Help."],
            ["b", "counter", "", "All b."],
        ];
        assert!(shown.eq(expected.map(|of| of.map(String::from))));
    }

    #[test]
    fn a_record_that_is_cut_is_none() {
        let described = Described {
            metric_type: MetricType::Gauge,
            unit: "seconds".into(),
            help: "Help.".into(),
        };
        let body = b"\x01\0a\x05\0gauge\x07\0seconds\x05\0Help.";
        assert_eq!(parse(body), Some(("a".into(), described)));
        for end in 0..body.len() {
            assert_eq!(parse(&body[..end]), None);
        }
        assert_eq!(parse(&[&body[..], b"x"].concat()), None);
    }
}
