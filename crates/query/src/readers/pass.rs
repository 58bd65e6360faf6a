//! One reading of a recording from its begin to its end: chosen metrics and fields, sample by sample.

use kymo_base::context::Context;
use kymo_base::reading::Reading;
use kymo_kernel::exposition::{Floor, MetricGroup};
use kymo_kernel::interpret::Interpreter;
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

struct MetricReading {
    index: usize,
    subsystem: &'static Subsystem,
    interpreter: Interpreter,
    reading: Reading,
    floor: Floor,
}

impl Pass {
    /// A pass over the metrics of these subsystems, and these fields.
    pub(super) fn new(subsystems: impl IntoIterator<Item = usize>, picks: Vec<Pick>) -> Pass {
        let of = |index: usize| {
            let subsystem = *subsystem::ALL.get(index)?;
            Some(MetricReading {
                index,
                subsystem,
                interpreter: Interpreter::new(subsystem),
                reading: Reading::default(),
                floor: Floor::default(),
            })
        };
        Pass {
            metrics: subsystems.into_iter().filter_map(of).collect(),
            picks,
        }
    }

    /// True if the pass would read nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.metrics.is_empty() && self.picks.is_empty()
    }

    /// Kinds of source that the pass needs.
    pub(super) fn kinds(&self) -> Kinds {
        let metrics = self.metrics.iter().map(|part| part.subsystem);
        let fields = self.picks.iter().map(|pick| pick.subsystem);
        metrics
            .chain(fields)
            .flat_map(Subsystem::understood)
            .collect()
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
            let groups = part.floor.groups(part.subsystem, &part.reading, context);
            moment.warmup || sink.metrics(t_ms, part.index, &groups, context)
        })
    }
}

fn milliseconds(moment: &Moment) -> i64 {
    moment.real_ns.div_euclid(1_000_000)
}
