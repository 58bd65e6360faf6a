//! Turns samples into intervals: readings and rates of each chosen subsystem.

use std::collections::HashSet;

use kymo_base::column::{Cells, Value};
use kymo_base::context::Context;
use kymo_base::reading::Reading;
use kymo_kernel::choice;
use kymo_kernel::interpret::Interpreter;
use kymo_kernel::subsystem::{Summary, process};
use kymo_query::delta::{Delta, Numbers, RateRow};
use kymo_query::source::{Moment, Source};

use crate::options::{Choice, Options};
use crate::time::{Local, PlayedZone};

/// A chosen subsystem.
pub(crate) struct Part {
    /// Selection of the summary, the instances, or both.
    pub choice: Choice,
    /// True if this interval has its numbers.
    pub fresh: bool,
    /// True if any sample had its numbers.
    pub was_read: bool,
    interpreter: Interpreter,
    reading: Reading,
    delta: Delta,
    missing: Numbers,
    /// With `--procopts p`: names of the instances in the first reading.
    first: Option<HashSet<Vec<u8>>>,
}

/// The chosen subsystems.
pub(crate) struct Feed {
    parts: Vec<Part>,
    zone: PlayedZone,
    /// True once a remark has named an unknown time zone.
    has_named_zone: bool,
    /// True once a remark has named the restriction of recorded processes.
    has_named_choice: bool,
}

/// One interval, as input of a format.
pub(crate) struct Interval<'a> {
    /// Time of its end.
    pub moment: Moment,
    /// Local time of its end.
    pub local: Local,
    /// The chosen subsystems.
    pub parts: &'a [Part],
    /// Facts of the recorded machine.
    pub context: &'a Context,
}

impl Feed {
    /// A feed for the subsystems that the options choose.
    pub(crate) fn new(options: &Options) -> Feed {
        let parts = options
            .choices
            .iter()
            .map(|&choice| Part::new(choice))
            .collect();
        Feed {
            parts,
            zone: PlayedZone::default(),
            has_named_zone: false,
            has_named_choice: false,
        }
    }

    /// Reads a sample. Returns true if the interval that it ends has anything to show.
    pub(crate) fn take(&mut self, source: &dyn Source, moment: &Moment, options: &Options) -> bool {
        let mut any = false;
        for part in &mut self.parts {
            part.take(source, moment, options);
            any |= part.fresh;
        }
        any
    }

    /// Makes the next sample a baseline, because samples are missing before it.
    pub(crate) fn restart(&mut self) {
        self.parts.iter_mut().for_each(|part| part.delta.restart());
    }

    /// Remarks about the last sample.
    pub(crate) fn remarks(&mut self, context: &Context) -> Vec<String> {
        let fresh = self.parts.iter().filter(|part| part.fresh);
        let remarks = fresh.flat_map(|part| part.delta.rates().remarks.iter());
        let mut remarks: Vec<String> = remarks.cloned().collect();
        if !self.has_named_zone {
            let remark = self.zone.of(context).remark();
            self.has_named_zone = remark.is_some();
            remarks.extend(remark);
        }
        let shows_processes = self.parts.iter().any(Part::is_of_processes);
        if !self.has_named_choice && shows_processes {
            let not_recorded = choice::not_recorded(context);
            self.has_named_choice = not_recorded.is_some();
            remarks.extend(not_recorded.map(|what| format!("not recorded: {what}")));
        }
        remarks
    }

    /// The local time of a moment on the recorded machine.
    pub(crate) fn local(&mut self, context: &Context, real_ns: i64) -> Local {
        self.zone.of(context).local(real_ns)
    }

    /// The parts, for an [`Interval`].
    pub(crate) fn parts(&self) -> &[Part] {
        &self.parts
    }
}

impl Part {
    fn is_of_processes(&self) -> bool {
        self.choice.subsystem.is_of_processes()
    }

    fn new(choice: Choice) -> Part {
        let width = choice
            .subsystem
            .globals
            .len()
            .max(choice.subsystem.fields.len());
        let nothing = vec![f64::NAN; width];
        Part {
            choice,
            fresh: false,
            was_read: false,
            interpreter: Interpreter::new(choice.subsystem),
            reading: Reading::default(),
            delta: Delta::new(choice.subsystem),
            missing: Numbers {
                now: nothing.clone(),
                delta: nothing,
            },
            first: None,
        }
    }

    fn take(&mut self, source: &dyn Source, moment: &Moment, options: &Options) {
        let context = source.context();
        let read = self
            .interpreter
            .read(source.tracks(), context, &mut self.reading);
        self.was_read |= read;
        if read {
            self.narrow(options, context);
        }
        self.fresh = read && !self.delta.advance(&self.reading, moment, context).baseline;
    }

    /// Removes hidden instances and private facts from the reading.
    fn narrow(&mut self, options: &Options, context: &Context) {
        let subsystem = self.choice.subsystem;
        options
            .filters
            .narrow(subsystem, &mut self.reading, context);
        if options.hides_private && subsystem.is_of_processes() {
            self.reading
                .rows
                .iter_mut()
                .for_each(process::forget_private);
        }
        if options.process.fixed && subsystem.is_of_processes() {
            let rows = &mut self.reading.rows;
            let first = self
                .first
                .get_or_insert_with(|| rows.iter().map(|row| row.name.clone()).collect());
            rows.retain(|row| first.contains(&row.name));
        }
    }

    /// The numbers of the summary; all missing if this interval has none.
    pub(crate) fn numbers(&self) -> &Numbers {
        let rates = self.delta.rates();
        match (self.fresh, self.choice.subsystem.summary) {
            (false, _) | (_, Summary::None) => &self.missing,
            (_, Summary::Globals) => &rates.globals,
            (_, Summary::Rows) => &rates.sum,
        }
    }

    /// Length of the interval in seconds.
    pub(crate) fn elapsed(&self) -> f64 {
        self.delta.rates().elapsed
    }

    /// The cells of the summary.
    pub(crate) fn summary<'a>(&'a self, context: &'a Context, options: &Options) -> Cells<'a> {
        let (numbers, secs) = (self.numbers(), options.secs(self.elapsed()));
        let rates = self.delta.rates();
        let peak = rates.peak.filter(|_| self.fresh);
        let peak = peak.and_then(|row| self.reading.rows.get(row));
        let cells = rates.cells(numbers, peak, context, secs);
        match options.changes && self.choice.subsystem.letter == 'm' {
            true => Cells {
                now: &numbers.delta,
                ..cells
            },
            false => cells,
        }
    }

    /// A number of the summary by its column; NaN if there is none.
    pub(crate) fn summed(&self, column: &str, context: &Context, options: &Options) -> f64 {
        let columns = self.choice.subsystem.columns.iter();
        let found = columns
            .filter(|known| known.name == column)
            .find_map(|known| match known.value {
                Value::Number(value) => Some(value(&self.summary(context, options))),
                Value::Text(_) => None,
            });
        found.unwrap_or(f64::NAN)
    }

    /// For each CPU, whether its counters are there.
    pub(crate) fn online(&self) -> Vec<bool> {
        let subsystem = self.choice.subsystem;
        let sum = &self.delta.rates().sum.now;
        let first = match subsystem.spread {
            true => subsystem.fields.len(),
            false => sum.len(),
        };
        let known = sum.get(first..).unwrap_or_default();
        known.iter().map(|count| !count.is_nan()).collect()
    }

    /// The instances; none if this interval has no numbers.
    pub(crate) fn rows(&self) -> &[RateRow] {
        if self.fresh {
            self.delta.rates().rows()
        } else {
            &[]
        }
    }

    /// The name of an instance.
    pub(crate) fn name(&self, row: &RateRow) -> &[u8] {
        &self.reading.rows[row.row].name
    }

    /// The cells of an instance.
    pub(crate) fn cells<'a>(
        &'a self,
        row: &'a RateRow,
        context: &'a Context,
        options: &Options,
    ) -> Cells<'a> {
        let rates = self.delta.rates();
        rates.cells(
            &row.numbers,
            Some(&self.reading.rows[row.row]),
            context,
            options.secs(rates.elapsed),
        )
    }

    /// Cells of an instance without any numbers.
    pub(crate) fn missing<'a>(&'a self, name: &'a [u8], context: &'a Context) -> Cells<'a> {
        Cells {
            name,
            ..self.delta.rates().cells(&self.missing, None, context, 1.0)
        }
    }
}
