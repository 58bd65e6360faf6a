//! Raw metrics of this machine on their way to the store, under node_exporter's names, a sample each ten seconds.

use std::collections::HashMap;

use kymo_base::context::Context;
use kymo_base::label_set::Labels;
use kymo_base::reading::Reading;
use kymo_base::track::Tracks;
use kymo_kernel::exposition::{ExposedInstance, Floor, MetricGroup, SamplePart, seconds};
use kymo_kernel::interpret::Interpreter;
use kymo_kernel::subsystem::exposed::Kind;
use kymo_kernel::subsystem::{self, Subsystem};
use kymo_recording::reader::Kinds;
use kymo_wire::keeper::{LabelledSeries, LabelledValues};

use super::{COLUMN, HEARTBEAT_S, STEP_NS, STEP_S};
use crate::metric_labels::labels_of;
use crate::source::{Moment, Source, Step};

/// Subsystems whose metrics are kept, as far as they are recorded: those that node_exporter has by default. Interrupts of each CPU,
/// slabs, free lists and control groups are too many series for too few questions; processes tell of people.
pub const KEPT: &[&str] = &[
    "cpu",
    "disk",
    "net",
    "memory",
    "pressure",
    "sockets",
    "tcp",
    "inodes",
    "filesystems",
    "sensors",
    "numa",
    "nfs",
    "infiniband",
];
/// Metric series of this machine at most.
const SERIES_MAX: usize = 4096;

/// The metrics of a source, sampled while another reader reads the source.
pub(super) struct MetricTap<'a> {
    source: &'a mut dyn Source,
    metrics: &'a mut Metrics,
}

impl MetricTap<'_> {
    pub(super) fn new<'a>(source: &'a mut dyn Source, metrics: &'a mut Metrics) -> MetricTap<'a> {
        MetricTap { source, metrics }
    }
}

impl Source for MetricTap<'_> {
    fn next(&mut self) -> Result<Option<Step>, String> {
        let step = self.source.next()?;
        if let Some(Step::Sample(moment)) = &step
            && !moment.warmup
        {
            let (tracks, context) = (self.source.tracks(), self.source.context());
            self.metrics.sample(moment, tracks, context);
        }
        Ok(step)
    }

    fn tracks(&self) -> &Tracks {
        self.source.tracks()
    }

    fn context(&self) -> &Context {
        self.source.context()
    }

    fn stream(&self) -> usize {
        self.source.stream()
    }
}

/// Series of this machine's metrics, with samples that are not stored yet.
pub(super) struct Metrics {
    /// The newest sample that is stored, nanoseconds since 1970.
    last_ns: i64,
    parts: Vec<SubsystemMetrics>,
    table: SeriesTable,
}

struct SeriesTable {
    host: Vec<u8>,
    series: Vec<MetricSeries>,
    places: HashMap<Labels, usize>,
}

struct SubsystemMetrics {
    subsystem: &'static Subsystem,
    interpreter: Interpreter,
    reading: Reading,
    floor: Floor,
    /// The next sample is the first one from here on.
    due_ns: i64,
    /// By group, the series of each instance.
    instances: Vec<HashMap<Vec<u8>, InstanceSeries>>,
}

/// Series of an instance in the order of its samples; `None`: there is no room for one, or its labels are no set.
type InstanceSeries = Vec<(usize, SamplePart, Option<usize>)>;

struct MetricSeries {
    labels: Labels,
    kind: Kind,
    is_defined: bool,
    stamps_ms: Vec<i64>,
    cells: Vec<f64>,
}

impl Metrics {
    /// Metrics of a machine, from behind `last_ns` on.
    pub(super) fn new(host: &str, last_ns: i64) -> Metrics {
        let kept = subsystem::ALL.iter();
        let kept = kept.filter(|subsystem| KEPT.contains(&subsystem.name));
        let parts = kept.map(|&subsystem| SubsystemMetrics {
            subsystem,
            interpreter: Interpreter::new(subsystem),
            reading: Reading::default(),
            floor: Floor::default(),
            due_ns: last_ns.saturating_add(1),
            instances: Vec::new(),
        });
        Metrics {
            last_ns,
            parts: parts.collect(),
            table: SeriesTable {
                host: host.into(),
                series: Vec::new(),
                places: HashMap::new(),
            },
        }
    }

    /// Kinds of source that the metrics are in.
    pub(super) fn kinds(&self) -> Kinds {
        let subsystems = self.parts.iter().map(|part| part.subsystem);
        subsystems.flat_map(Subsystem::understood).collect()
    }

    /// Takes the metrics whose time has come.
    fn sample(&mut self, moment: &Moment, tracks: &Tracks, context: &Context) {
        let Metrics {
            last_ns,
            parts,
            table,
        } = self;
        if moment.real_ns <= *last_ns {
            return;
        }
        let t_ms = moment.real_ns.div_euclid(1_000_000);
        for part in parts {
            // A clock that was set back is waited for: a series has no sample before its last one.
            if moment.real_ns < part.due_ns
                || !part.interpreter.read(tracks, context, &mut part.reading)
            {
                continue;
            }
            part.due_ns = (moment.real_ns.div_euclid(STEP_NS) + 1).saturating_mul(STEP_NS);
            let groups = part.floor.groups(part.subsystem, &part.reading, context);
            part.instances.resize_with(groups.len(), HashMap::new);
            for (group, known) in groups.iter().zip(&mut part.instances) {
                for instance in &group.instances {
                    take(table, (group, instance), known, context, t_ms);
                }
                let is_there = |name: &Vec<u8>| {
                    let mut instances = group.instances.iter();
                    instances.any(|instance| instance.row.name == *name)
                };
                if known.len() > group.instances.len() {
                    known.retain(|name, _| is_there(name));
                }
            }
        }
    }

    /// Series that have samples and are not defined yet; they count as defined from now on.
    pub(super) fn undefined(&mut self) -> Vec<LabelledSeries> {
        let new = self.table.series.iter_mut();
        let new = new.filter(|series| !series.is_defined && !series.cells.is_empty());
        let new = new.map(|series| {
            series.is_defined = true;
            let kind: &[u8] = match series.kind {
                Kind::Counter => b"DDERIVE",
                Kind::Gauge | Kind::Untyped => b"GAUGE",
            };
            LabelledSeries {
                labels: series.labels.clone(),
                step: STEP_S,
                heartbeat: HEARTBEAT_S,
                start: series
                    .stamps_ms
                    .first()
                    .map_or(0, |t_ms| t_ms / 1000 - i64::from(STEP_S)),
                columns: vec![(COLUMN.to_vec(), kind.to_vec())],
            }
        });
        new.collect()
    }

    /// Takes all samples.
    pub(super) fn values(&mut self) -> Vec<LabelledValues> {
        let filled = self
            .table
            .series
            .iter_mut()
            .filter(|series| !series.cells.is_empty());
        let values = filled.map(|series| LabelledValues {
            labels: series.labels.clone(),
            stamps_ms: std::mem::take(&mut series.stamps_ms),
            cells: std::mem::take(&mut series.cells),
        });
        values.collect()
    }
}

/// Takes the samples of an instance. One that has done nothing yet, so that all its values are 0, has no series.
fn take(
    table: &mut SeriesTable,
    (group, instance): (&MetricGroup, &ExposedInstance),
    known: &mut HashMap<Vec<u8>, InstanceSeries>,
    context: &Context,
    t_ms: i64,
) {
    let mut samples: Vec<(usize, SamplePart, f64)> = Vec::new();
    for (number, family) in group.families.iter().enumerate() {
        let at = (context, seconds(t_ms));
        instance.samples(family, group.fields, at, &mut |part, value| {
            samples.push((number, part, value));
        });
    }
    let is_known = known.contains_key(&instance.row.name);
    if !is_known && samples.iter().all(|(_, _, value)| *value == 0.0) {
        return;
    }
    let own = known.entry(instance.row.name.clone()).or_default();
    let mut cursor = 0;
    for (number, part, value) in samples {
        let is_it = |(family, known, _): &(usize, SamplePart, Option<usize>)| {
            (*family, *known) == (number, part)
        };
        let found = match own.get(cursor).is_some_and(is_it) {
            true => Some(cursor),
            false => own.iter().position(is_it),
        };
        let at = found.unwrap_or_else(|| {
            own.push((number, part, table.place(group, instance, number, part)));
            own.len() - 1
        });
        cursor = at + 1;
        if let Some(series) = own[at].2.and_then(|place| table.series.get_mut(place)) {
            series.push(t_ms, value);
        }
    }
}

impl SeriesTable {
    /// The place of a sample's series, which is made when there is room. Two names that are spelled alike are one series.
    fn place(
        &mut self,
        group: &MetricGroup,
        instance: &ExposedInstance,
        family: usize,
        part: SamplePart,
    ) -> Option<usize> {
        let family = group.families.get(family)?;
        let labels = labels_of(&self.host, group, instance, family, part)?;
        if let Some(&place) = self.places.get(&labels) {
            return Some(place);
        }
        if self.series.len() >= SERIES_MAX {
            return None;
        }
        self.places.insert(labels.clone(), self.series.len());
        self.series.push(MetricSeries {
            labels,
            kind: family.kind,
            is_defined: false,
            stamps_ms: Vec::new(),
            cells: Vec::new(),
        });
        Some(self.series.len() - 1)
    }
}

impl MetricSeries {
    /// Adds a sample, unless it is not behind the last one.
    fn push(&mut self, t_ms: i64, value: f64) {
        if self.stamps_ms.last().is_none_or(|last_ms| *last_ms < t_ms) {
            self.stamps_ms.push(t_ms);
            self.cells.push(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_subsystems_are_there() {
        let names: Vec<&str> = subsystem::ALL
            .iter()
            .map(|subsystem| subsystem.name)
            .collect();
        for kept in KEPT {
            assert!(names.contains(kept), "{kept}");
        }
        let document = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/serve.md");
        let document = std::fs::read_to_string(document).expect("docs/serve.md");
        for kept in KEPT {
            assert!(document.contains(&format!("`{kept}`")), "{kept}");
        }
        for subsystem in subsystem::ALL.iter().filter(|it| it.is_of_processes()) {
            assert!(!KEPT.contains(&subsystem.name), "{}", subsystem.name);
        }
    }
}
