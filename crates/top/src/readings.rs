//! The readings of a machine at a moment: of each subsystem the last one, with rates since the one before.

use kymo_base::column::{Cells, Value};
use kymo_base::context::Context;
use kymo_base::name::DisplayName;
use kymo_base::reading::{Reading, Row};
use kymo_kernel::interpret::Interpreter;
use kymo_kernel::source;
use kymo_kernel::subsystem::process::PROCESS;
use kymo_kernel::subsystem::{Subsystem, Summary};
use kymo_query::delta::{Delta, Numbers};
use kymo_query::source::{Moment, Source};
use kymo_recording::reader::Kinds;

/// Most bytes of a raw text that are kept.
const TEXT_MAX: usize = 64 << 10;

/// The last reading of one subsystem.
pub struct Part {
    /// The subsystem.
    pub subsystem: &'static Subsystem,
    /// When it was read last.
    pub at: Option<Moment>,
    /// Where the rates begin; `None`: they have no past.
    pub from: Option<Moment>,
    interpreter: Interpreter,
    delta: Delta,
    reading: Reading,
}

impl Part {
    fn new(subsystem: &'static Subsystem) -> Part {
        Part {
            subsystem,
            at: None,
            from: None,
            interpreter: Interpreter::new(subsystem),
            delta: Delta::new(subsystem),
            reading: Reading::default(),
        }
    }

    fn restart(&mut self) {
        self.delta.restart();
        self.from = None;
    }

    fn advance(&mut self, source: &dyn Source, moment: &Moment) -> bool {
        let (tracks, context) = (source.tracks(), source.context());
        if !self.interpreter.read(tracks, context, &mut self.reading) {
            return false;
        }
        let rates = self.delta.advance(&self.reading, moment, context);
        self.from = self.at.filter(|_| !rates.baseline);
        self.at = Some(*moment);
        true
    }

    /// Seconds that the rates are over; 0 without a past.
    pub fn elapsed(&self) -> f64 {
        self.from.map_or(0.0, |_| self.delta.rates().elapsed)
    }

    /// Number of instances.
    pub fn len(&self) -> usize {
        self.delta.rates().rows().len()
    }

    /// True if there is no instance.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The instance at a position.
    pub fn row(&self, at: usize) -> &Row {
        &self.reading.rows[self.delta.rates().rows()[at].row]
    }

    /// The numbers of the instance at a position.
    pub fn cells<'a>(&'a self, at: usize, context: &'a Context) -> Cells<'a> {
        let rates = self.delta.rates();
        let numbers = &rates.rows()[at].numbers;
        rates.cells(numbers, Some(self.row(at)), context, rates.elapsed)
    }

    /// Other numbers as cells of this interval.
    pub fn cells_of<'a>(
        &'a self,
        numbers: &'a Numbers,
        row: &'a Row,
        context: &'a Context,
    ) -> Cells<'a> {
        let rates = self.delta.rates();
        rates.cells(numbers, Some(row), context, rates.elapsed)
    }

    fn whole<'a>(&'a self, context: &'a Context) -> Cells<'a> {
        let rates = self.delta.rates();
        let numbers = match self.subsystem.summary {
            Summary::Globals => &rates.globals,
            Summary::Rows | Summary::None => &rates.sum,
        };
        rates.cells(numbers, None, context, rates.elapsed)
    }
}

/// Readings of a machine.
pub struct Readings {
    parts: Vec<Part>,
    /// Facts of the machine.
    pub context: Context,
    /// The last sample.
    pub at: Option<Moment>,
    /// Name of the process whose raw texts are kept.
    watched: Option<Vec<u8>>,
    texts: Vec<(String, String)>,
}

/// Samples that are looked at on the way to a moment.
#[derive(Clone, Copy)]
pub struct Route {
    /// Samples before this are not needed for rates.
    pub from_ns: i64,
    /// Readings at or after this are the ones that are looked for.
    pub to_ns: i64,
}

impl Route {
    /// Each sample replaces the one before.
    pub const ALWAYS: Route = Route {
        from_ns: i64::MIN,
        to_ns: i64::MAX,
    };
}

impl Readings {
    /// Readings of subsystems, none of which has been read yet.
    pub fn new(subsystems: &[&'static Subsystem]) -> Readings {
        Readings {
            parts: subsystems.iter().map(|one| Part::new(one)).collect(),
            context: Context::default(),
            at: None,
            watched: None,
            texts: Vec::new(),
        }
    }

    /// Kinds of source that are needed.
    pub fn kinds(&self) -> Kinds {
        let parts = self.parts.iter();
        parts.flat_map(|part| part.subsystem.understood()).collect()
    }

    /// Begins rates again, as behind a gap.
    pub fn restart(&mut self) {
        self.parts.iter_mut().for_each(Part::restart);
    }

    /// Takes in the present sample of a source.
    pub fn advance(&mut self, source: &dyn Source, moment: &Moment, route: Route) {
        self.at = Some(*moment);
        if moment.real_ns < route.from_ns {
            return;
        }
        if self.context.stamp() != source.context().stamp() {
            self.context = source.context().clone();
        }
        let mut scanned = false;
        for part in &mut self.parts {
            if part.at.is_none_or(|at| at.real_ns < route.to_ns) {
                let is_read = part.advance(source, moment);
                scanned |= is_read && part.subsystem.is_of_processes();
            }
        }
        if scanned {
            self.look(source);
        }
    }

    /// True if each part that is read at all has been read at or after a moment.
    pub fn are_from(&self, real_ns: i64, table: &Subsystem) -> bool {
        self.parts.iter().all(|part| match part.at {
            Some(at) => at.real_ns >= real_ns,
            None => part.subsystem.name != table.name,
        })
    }

    /// The last reading of a subsystem.
    pub fn part(&self, subsystem: &Subsystem) -> Option<&Part> {
        let mut parts = self.parts.iter();
        parts.find(|part| part.subsystem.name == subsystem.name && part.at.is_some())
    }

    /// A column of the whole machine by its id, `cpu.user`; NaN: not known.
    pub fn number(&self, id: &str) -> f64 {
        let Some((name, column)) = id.split_once('.') else {
            return f64::NAN;
        };
        let part = self.parts.iter().find(|part| part.subsystem.name == name);
        let Some(part) = part.filter(|part| part.at.is_some()) else {
            return f64::NAN;
        };
        let mut columns = part.subsystem.columns.iter();
        match columns.find(|known| known.name == column) {
            Some(known) => match known.value {
                Value::Number(value) => value(&part.whole(&self.context)),
                Value::Text(_) => f64::NAN,
            },
            None => f64::NAN,
        }
    }

    /// Keeps the raw texts of a process from the next sample on.
    pub fn watch(&mut self, process: Option<&[u8]>) {
        if self.watched.as_deref() != process {
            self.watched = process.map(<[u8]>::to_vec);
            self.texts.clear();
        }
    }

    /// Raw texts of the process that is watched, each with its path.
    pub fn texts(&self) -> &[(String, String)] {
        &self.texts
    }

    fn look(&mut self, source: &dyn Source) {
        let Some(name) = &self.watched else { return };
        self.texts.clear();
        for &kind in PROCESS.sources {
            let track = source.tracks().get(kind);
            let mut instances = track.instances();
            let one = instances.find(|(_, one)| one.name == *name);
            let (Some((_, one)), Some(known)) = (one, source::of(kind)) else {
                continue;
            };
            let mut text = Vec::new();
            if track.render(one, &mut text) && !text.is_empty() {
                text.truncate(TEXT_MAX);
                let path = known.path_of(&DisplayName(name).text());
                self.texts.push((path, safe_lines(&text)));
            }
        }
    }
}

/// A text from outside whose lines are safe to show; NUL, which ends the words of command lines, is a blank.
fn safe_lines(text: &[u8]) -> String {
    let lines = text.split(|&byte| byte == b'\n').map(|line| {
        let line: Vec<u8> = line
            .iter()
            .map(|&byte| match byte {
                0 | b'\t' => b' ',
                byte => byte,
            })
            .collect();
        DisplayName(&line).text().into_owned()
    });
    lines.collect::<Vec<_>>().join("\n").trim_end().to_string()
}
