//! `kymo series tail`: prints values as a running `kymo serve` receives them.

use std::collections::HashMap;
use std::io::{self, Write};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use anyhow::{Error, Result};
use clap::{Args, ValueEnum};
use jiff::tz::TimeZone;
use kymo_base::label_set::{self, Labels};
use kymo_keeper_client::{Tail, TailSink};
use kymo_rrd::zone::own_zone;
use kymo_series::{Matcher, Selector, names};
use kymo_sys::talk;
use kymo_wire::keeper::{DefinedColumn, DefinedSeries, MissedPart, NumberedSample, TailPlace};

use super::samples::{moment, promql, value};
use super::{DataFolder, keeper_socket};

/// Longest wait of a request.
const WAIT: Duration = Duration::from_secs(30);
/// Pause before a keeper that did not answer is asked again.
const PAUSE: Duration = Duration::from_secs(1);

#[derive(Args, Clone, Debug)]
pub(super) struct TailOptions {
    /// As PromQL has it: node_load1, or {__name__=~"node_.+",job="node"}; without one, all series
    #[arg(value_name = "SELECTOR")]
    selector: Option<String>,
    /// Begin with what the store still has in its journal, or with what comes
    #[arg(long, value_enum, value_name = "WHERE", default_value = "now")]
    from: Begin,
    /// An object a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: DataFolder,
}

/// Where the tail begins.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Begin {
    /// With the oldest value in the journal
    Oldest,
    /// With the next one
    Now,
}

/// Prints values as they come.
struct Printed<'a> {
    out: &'a mut dyn Write,
    matchers: Vec<Matcher>,
    /// Labels of the picked columns, by series.
    shown: HashMap<u32, Vec<Option<String>>>,
    json: bool,
    zone: TimeZone,
    done: io::Result<()>,
}

pub(super) fn run(options: &TailOptions) -> Result<ExitCode> {
    let matchers = match &options.selector {
        Some(text) => {
            Selector::parse(text)
                .map_err(|error| Error::msg(error.0))?
                .0
        }
        None => Vec::new(),
    };
    let from = match options.from {
        Begin::Oldest => TailPlace::Oldest,
        Begin::Now => TailPlace::Now,
    };
    let mut tail = Tail::open(keeper_socket(&options.place)?, None, from);
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut printed = Printed {
        out: &mut out,
        matchers,
        shown: HashMap::new(),
        json: options.json,
        zone: own_zone(),
        done: Ok(()),
    };
    let mut is_answered = true;
    // A signal ends the loop, or a reader of the output that is gone.
    loop {
        match tail.next(WAIT, &mut printed) {
            Ok(()) => is_answered = true,
            Err(why) if tail.position().is_none() => return Err(Error::msg(why)),
            Err(why) => {
                if std::mem::replace(&mut is_answered, false) {
                    talk::say(format_args!("kymo: {why}; it is asked again"));
                }
                thread::sleep(PAUSE);
            }
        }
        std::mem::replace(&mut printed.done, Ok(()))?;
        printed.out.flush()?;
    }
}

impl Printed<'_> {
    /// Labels of a column, if the matchers pick them.
    fn picked(&self, series: &DefinedSeries, column: &DefinedColumn) -> Option<String> {
        let labels = column.labels.as_ref()?;
        let all = |labels: &Labels| {
            let value =
                |matcher: &Matcher| label_set::value(labels.text(), matcher.label()).into_owned();
            self.matchers
                .iter()
                .all(|matcher| matcher.matches(&value(matcher)))
        };
        let names_one =
            |matcher: &Matcher| matcher.label() == names::METRIC && matcher.only().is_some();
        // collectd's name of a file is found only by a matcher that names it.
        let alias = || {
            let of = names::collectd_of_path(&series.name)?;
            let counts = matches!(
                &*column.kind,
                b"COUNTER" | b"DERIVE" | b"DCOUNTER" | b"DDERIVE"
            );
            names::collectd(&of, &column.name, counts).ok()
        };
        let by_alias = || {
            let is_file = !label_set::is_set(&series.name);
            let asks = is_file && self.matchers.iter().any(names_one);
            asks && alias().is_some_and(|alias| all(&alias))
        };
        (all(labels) || by_alias()).then(|| promql(labels.text()))
    }

    fn print(&mut self, sample: &NumberedSample) -> io::Result<()> {
        let columns = self.shown.get(&sample.series);
        let labels = columns.and_then(|columns| columns.get(usize::from(sample.column)));
        let Some(Some(labels)) = labels else {
            return Ok(());
        };
        let shown = value(sample.v);
        if self.json {
            let line =
                serde_json::json!({"series": labels, "time_ms": sample.t_ms, "value": shown});
            return writeln!(self.out, "{line}");
        }
        writeln!(
            self.out,
            "{labels} {} {shown}",
            moment(sample.t_ms, &self.zone)
        )
    }
}

impl TailSink for Printed<'_> {
    fn restarted(&mut self) {
        self.shown.clear();
    }

    fn defined(&mut self, series: DefinedSeries) {
        let columns = series.columns.iter();
        let columns: Vec<_> = columns.map(|column| self.picked(&series, column)).collect();
        match columns.iter().any(Option::is_some) {
            true => self.shown.insert(series.series, columns),
            false => self.shown.remove(&series.series),
        };
    }

    fn gone(&mut self, series: u32) {
        self.shown.remove(&series);
    }

    fn missed(&mut self, missed: MissedPart) {
        let values = missed
            .values
            .map_or("values".into(), |values| format!("{values} values"));
        talk::say(format_args!(
            "kymo: {values} are gone: the journal has them no more"
        ));
    }

    fn samples(&mut self, samples: &[NumberedSample]) {
        for sample in samples {
            if self.done.is_ok() {
                self.done = self.print(sample);
            }
        }
    }
}
