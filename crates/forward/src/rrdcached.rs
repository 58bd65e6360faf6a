//! A receiver that speaks rrdcached's protocol: values go as BATCHes of UPDATEs under the names that they have here, and a file that
//! is missing there is made as it is here.

mod connection;
mod definition;
mod lines;

use std::collections::HashSet;
use std::time::Duration;

use kymo_base::name::DisplayName;
use kymo_keeper_client::TailSink;

use super::delay::Delay;
use super::file_values::{FileSeries, FileValues};
use super::ledger::Ledger;
use super::order::RrdcachedWay;
use super::picker::Picker;
use super::receiver::Receiver;
use connection::LineConnection;
#[cfg(feature = "testing")]
pub(crate) use connection::fuzz as fuzz_replies;
use definition::Definition;
use lines::{put_create, put_info, put_update};

/// Most values of a BATCH.
const TOGETHER: usize = 4096;
/// Longest wait for an answer of the own keeper.
const PATIENCE: Duration = Duration::from_secs(5);
/// Part of the daemon's message about a missing file.
const MISSING: &[u8] = b"No such file";
/// Part of the daemon's message about a value that the file has already.
const PAST: &[u8] = b"illegal attempt to update";
/// Part of the daemon's message about a file that another client has made in the meantime.
const EXISTS: &[u8] = b"exists";

/// The receiver, and the values for it.
pub(crate) struct RrdcachedReceiver {
    values: FileValues,
    daemon: Daemon,
}

/// A value: its series, time in milliseconds, and cells.
type Row<'a> = (&'a FileSeries, i64, &'a [f64]);

impl RrdcachedReceiver {
    /// A receiver of series that one of the selectors matches.
    pub(crate) fn new(
        way: RrdcachedWay,
        selectors: &[String],
    ) -> Result<RrdcachedReceiver, String> {
        let timeout = Duration::from_millis(way.timeout_ms);
        Ok(RrdcachedReceiver {
            values: FileValues::new(Picker::of_selectors(selectors)?, has_plain_name),
            daemon: Daemon {
                connection: LineConnection::to(way.address, timeout),
                own: way.own.map(|own| LineConnection::to(own, PATIENCE)),
                may_have: false,
                text: Vec::new(),
            },
        })
    }
}

impl Receiver for RrdcachedReceiver {
    fn begin(&mut self) {
        self.values.begin();
    }

    fn sink(&mut self) -> &mut dyn TailSink {
        &mut self.values
    }

    fn series(&self) -> usize {
        self.values.series()
    }

    fn deliver(&mut self, ledger: &mut Ledger) {
        let mut values = self.values.each();
        loop {
            let rows: Vec<Row<'_>> = values.by_ref().take(TOGETHER).collect();
            if rows.is_empty() {
                return;
            }
            self.daemon.keep(&rows, ledger);
        }
    }
}

/// True for series whose names are no trouble in a line.
fn has_plain_name(series: &FileSeries) -> bool {
    !series.name.iter().any(u8::is_ascii_control)
}

/// The daemon, and where kymo speaks its protocol.
struct Daemon {
    connection: LineConnection,
    /// The own keeper's side of the same protocol, which knows the definitions of series.
    own: Option<LineConnection>,
    /// True if a BATCH got no answer, so that the daemon may have its values.
    may_have: bool,
    text: Vec<u8>,
}

impl Daemon {
    /// Sends values. Missing files are made, and their values go again.
    fn keep(&mut self, rows: &[Row<'_>], ledger: &mut Ledger) {
        let missing = self.update(rows, ledger);
        let (mut made, mut seen) = (HashSet::new(), HashSet::new());
        for row in &missing {
            let (series, t_ms, _) = *row;
            if !seen.insert(&series.name) {
                continue;
            }
            match self.create(series, t_ms, ledger) {
                Ok(()) => {
                    made.insert(&series.name);
                }
                Err(why) => {
                    let of_it = missing.iter().filter(|row| row.0.name == series.name);
                    ledger.refused(samples(of_it), &why);
                }
            }
        }
        let again: Vec<Row<'_>> = missing
            .iter()
            .filter(|row| made.contains(&row.0.name))
            .copied()
            .collect();
        let missing = self.update(&again, ledger);
        if !missing.is_empty() {
            ledger.refused(samples(missing.iter()), "the file is missing again");
        }
    }

    /// Sends one BATCH until it is answered. Returns the values whose files are missing.
    fn update<'a>(&mut self, rows: &[Row<'a>], ledger: &mut Ledger) -> Vec<Row<'a>> {
        if rows.is_empty() {
            return Vec::new();
        }
        self.text.clear();
        self.text.extend_from_slice(b"BATCH\n");
        for (series, t_ms, cells) in rows {
            put_update(&mut self.text, series, *t_ms, cells);
        }
        self.text.extend_from_slice(b".\n");
        let mut delay = Delay::default();
        let errors = loop {
            ledger.request();
            match self
                .connection
                .batch(&self.text, rows.len(), &mut self.may_have)
            {
                Ok(errors) => break errors,
                Err(why) => ledger.failed(&why, &mut delay, None),
            }
        };
        let (mut missing, mut seen) = (Vec::new(), HashSet::new());
        let mut refused: Vec<(Row<'a>, Vec<u8>)> = Vec::new();
        for (line, cause) in errors {
            // A daemon that repeats a line has refused one value.
            let row = line.checked_sub(1).and_then(|at| rows.get(at));
            let Some(row) = row.filter(|_| seen.insert(line)) else {
                continue;
            };
            let has = |part: &[u8]| cause.windows(part.len()).any(|window| window == part);
            if has(MISSING) {
                missing.push(*row);
            } else if !(has(PAST) && self.may_have) {
                refused.push((*row, cause));
            }
        }
        self.may_have = false;
        let not_kept = missing.iter().chain(refused.iter().map(|(row, _)| row));
        ledger.sent(samples(rows.iter()) - samples(not_kept), self.text.len());
        if let Some((_, cause)) = refused.first() {
            let count = samples(refused.iter().map(|(row, _)| row));
            ledger.refused(count, &format!("it says {}", DisplayName(cause)));
        }
        missing
    }

    /// The definition of a series here. The error says why there is none for CREATE.
    fn definition(&mut self, series: &FileSeries) -> Result<Definition, String> {
        let none = "[listen] rrdcached is empty, so that nothing says how it is made";
        let own = self.own.as_mut().ok_or(none)?;
        self.text.clear();
        put_info(&mut self.text, &series.name);
        let reply = own.ask(&self.text)?;
        if reply.status < 0 {
            return Err(DisplayName(&reply.text).to_string());
        }
        let definition = Definition::of_info(&reply.lines);
        definition.ok_or_else(|| "CREATE has no words for COMPUTE and predictions".into())
    }

    /// Makes the file of a series as the keeper has it, just before its first value.
    fn create(&mut self, series: &FileSeries, t_ms: i64, ledger: &Ledger) -> Result<(), String> {
        let name = DisplayName(&series.name);
        let definition = self.definition(series);
        let definition = definition.map_err(|why| format!("cannot create {name}: {why}"))?;
        self.text.clear();
        put_create(&mut self.text, &series.name, &definition, t_ms);
        let mut delay = Delay::default();
        let reply = loop {
            match self.connection.ask(&self.text) {
                Ok(reply) => break reply,
                Err(why) => ledger.failed(&why, &mut delay, None),
            }
        };
        let exists = reply.text.windows(EXISTS.len()).any(|part| part == EXISTS);
        match reply.status < 0 && !exists {
            true => Err(format!(
                "cannot create {name}: {}",
                DisplayName(&reply.text)
            )),
            false => Ok(()),
        }
    }
}

/// Samples of values.
fn samples<'a>(rows: impl Iterator<Item = &'a Row<'a>>) -> u64 {
    rows.map(|row| u64::try_from(row.2.len()).unwrap_or(0))
        .sum()
}
