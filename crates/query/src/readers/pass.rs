//! One reading of a recording from its begin to its end: chosen metrics and fields, sample by sample.

use kymo_base::context::Context;
use kymo_base::reading::Reading;
use kymo_kernel::exposition::{Floor, MetricGroup};
use kymo_kernel::interpret::Interpreter;
use kymo_kernel::subsystem::exposed::Scale;
use kymo_kernel::subsystem::{self, Subsystem};
use kymo_recording::reader::Kinds;

use crate::marks::Marker;
use crate::sheet::{Line, Pick, Sheet};
use crate::source::{Moment, Source, Step};

/// Lines of fields at most.
const LINES_MAX: usize = 1 << 16;

/// Takes a recording's values.
pub(super) trait PassSink {
    /// The metrics of a subsystem, by its index in `subsystem::ALL`. `false`: the pass may end.
    fn metrics(
        &mut self,
        t_ms: i64,
        subsystem: usize,
        groups: &[MetricGroup],
        context: &Context,
    ) -> bool;

    /// A known value of a field's line.
    fn field(&mut self, t_ms: i64, line: (usize, &Line), value: f64, context: &Context) -> bool;
}

/// Subsystems whose metrics, and fields whose values, are read.
#[derive(Default)]
pub(super) struct Pass {
    metrics: Vec<MetricReading>,
    picks: Vec<Pick>,
}

/// The metrics of a subsystem that a pass reads.
pub(super) struct WantedMetrics {
    /// Index of the subsystem.
    pub(super) subsystem: usize,
    /// Families of the whole machine, by their places.
    pub(super) machine: Vec<usize>,
    /// True: families of instances, too.
    pub(super) instances: bool,
}

impl WantedMetrics {
    /// Kinds of sources that the metrics need; no metric is made of [`Subsystem::beside`].
    fn kinds(&self, subsystem: &Subsystem) -> Vec<u8> {
        let families = self.machine.iter();
        let families = families.filter_map(|&place| subsystem.exposed.machine.get(place));
        let mut globals = Vec::new();
        for family in families {
            // A family of another scale needs more than its fields.
            if !matches!(family.scale, Scale::Base | Scale::Times(_) | Scale::Over(_)) {
                return subsystem.sources.to_vec();
            }
            globals.extend(family.fields());
        }
        match self.instances {
            true => subsystem.sources.to_vec(),
            false => subsystem.sources_of_globals(&globals),
        }
    }
}

struct MetricReading {
    index: usize,
    subsystem: &'static Subsystem,
    kinds: Vec<u8>,
    /// True: no metrics of instances are read.
    is_of_machine: bool,
    interpreter: Interpreter,
    reading: Reading,
    floor: Floor,
}

impl Pass {
    /// A pass over these metrics and fields.
    pub(super) fn new(metrics: impl IntoIterator<Item = WantedMetrics>, picks: Vec<Pick>) -> Pass {
        let reading = |wanted: WantedMetrics| {
            let subsystem = *subsystem::ALL.get(wanted.subsystem)?;
            Some(MetricReading {
                index: wanted.subsystem,
                subsystem,
                kinds: wanted.kinds(subsystem),
                is_of_machine: !wanted.instances,
                interpreter: Interpreter::new(subsystem),
                reading: Reading::default(),
                floor: Floor::default(),
            })
        };
        Pass {
            metrics: metrics.into_iter().filter_map(reading).collect(),
            picks,
        }
    }

    /// True if the pass would read nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.metrics.is_empty() && self.picks.is_empty()
    }

    /// Kinds of source that the pass needs.
    pub(super) fn kinds(&self) -> Kinds {
        let metrics = self.metrics.iter().flat_map(|part| part.kinds.clone());
        let fields = self
            .picks
            .iter()
            .flat_map(|pick| pick.subsystem.understood());
        metrics.chain(fields).collect()
    }

    /// Reads a source to its end, or until the sink has enough.
    pub(super) fn run(
        mut self,
        source: &mut dyn Source,
        sink: &mut dyn PassSink,
    ) -> Result<(), String> {
        let mut sheet = Sheet::new(&self.picks, LINES_MAX);
        let (mut marker, mut cells) = (Marker::default(), Vec::new());
        while let Some(step) = source.next()? {
            if marker.step(&step, source.context(), &mut |_| {}) {
                sheet.restart();
            }
            let Step::Sample(moment) = step else { continue };
            let t_ms = milliseconds(&moment);
            if !self.metrics(source, &moment, t_ms, sink) {
                return Ok(());
            }
            cells.clear();
            sheet.advance(source, &moment, &mut |cell| cells.push(cell));
            let known = cells.iter().filter(|cell| !cell.value.is_nan());
            for cell in known.filter(|_| !moment.warmup) {
                let line = &sheet.lines()[cell.line];
                if !sink.field(t_ms, (cell.line, line), cell.value, source.context()) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn metrics(
        &mut self,
        source: &dyn Source,
        moment: &Moment,
        t_ms: i64,
        sink: &mut dyn PassSink,
    ) -> bool {
        let (tracks, context) = (source.tracks(), source.context());
        self.metrics.iter_mut().all(|part| {
            if !part.interpreter.read(tracks, context, &mut part.reading) {
                return true;
            }
            let groups = match part.is_of_machine {
                true => Vec::from_iter(MetricGroup::of_machine(part.subsystem, &part.reading)),
                false => part.floor.groups(part.subsystem, &part.reading, context),
            };
            moment.warmup || sink.metrics(t_ms, part.index, &groups, context)
        })
    }
}

fn milliseconds(moment: &Moment) -> i64 {
    moment.real_ns.div_euclid(1_000_000)
}
