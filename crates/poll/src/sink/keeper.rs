//! Sends values to the keeper of `kymo serve` by its protocol (docs/formats/keeper.md), usually in one request for each cycle.
//!
//! While the keeper is away values wait in memory, up to a limit; afterwards it gets them in their order. Series that the
//! keeper reports as unknown are defined.

mod connection;
mod devices;
mod events;

pub use connection::KeeperConnection;
pub use devices::DeviceReading;

use super::backlog::{Backlog, all};
use super::rates::{BEGINS_BEFORE_S, Rates};
use super::{Counts, Report, Series, index};
use crate::batch::{Batch, Update, seconds};
use devices::Devices;
use events::Events;
use kymo_wire::keeper::{Answer, Fault, FileSeries, FileValues, KeeperRequest, Taken};
use std::collections::HashSet;
use std::io;

/// Most series in one definition.
const DEFINED_TOGETHER: usize = 250;

/// A sink that sends values to the keeper.
pub struct Keeper {
    connection: KeeperConnection,
    series: Vec<Series>,
    /// By series: true once the keeper was asked to define it.
    is_defined: Vec<bool>,
    backlog: Backlog,
    rates: Box<Rates>,
    devices: Devices,
    events: Events,
    request: Together,
    /// Targets whose series the keeper refused to define, until the next write.
    refused: HashSet<u32>,
    /// True if the last request got no answer, so that the keeper may have its values.
    may_be_heard: bool,
    counts: Counts,
}

/// The values of one request.
#[derive(Default)]
struct Together {
    values: FileValues,
    /// The target of each value.
    targets: Vec<u32>,
}

impl Keeper {
    /// A sink for the keeper at the other end of the connection.
    pub fn on(connection: KeeperConnection) -> Keeper {
        Keeper {
            connection,
            series: Vec::new(),
            is_defined: Vec::new(),
            backlog: Backlog::default(),
            rates: Box::default(),
            devices: Devices::default(),
            events: Events::default(),
            request: Together::default(),
            refused: HashSet::new(),
            may_be_heard: false,
            counts: Counts::default(),
        }
    }

    pub(super) fn begin(&mut self, series: Vec<Series>, watched: &[u32]) {
        self.backlog.follow(&self.series, &series);
        self.rates.begin(&series, watched);
        self.is_defined = vec![false; series.len()];
        self.series = series;
    }

    pub(super) fn write(&mut self, batch: &Batch, report: &mut Report) {
        for update in batch.iter() {
            let rate = self.rates.add(update.target, update.argument);
            report.rates.extend(rate);
        }
        if batch.is_empty() && self.backlog.len() == 0 {
            return;
        }
        let backlog = std::mem::take(&mut self.backlog);
        let mut done = 0;
        let sent = self.send(all(&backlog, batch), &mut done, report);
        self.backlog = backlog;
        match sent {
            Ok(()) => self.backlog = Backlog::default(),
            Err(error) => {
                report
                    .troubles
                    .extend(self.connection.lock().failed(&error));
                self.may_be_heard = true;
                let waited = self.backlog.len();
                self.backlog.drop_first(done.min(waited));
                self.wait(batch.iter().skip(done.saturating_sub(waited)));
            }
        }
    }

    pub(super) fn counts(&self) -> Counts {
        Counts {
            waiting: self.backlog.len() as u64,
            reconnected: self.connection.lock().reconnected(),
            ..self.counts
        }
    }

    fn wait<'a>(&mut self, updates: impl Iterator<Item = Update<'a>>) {
        for update in updates {
            self.counts.delayed += 1;
            self.counts.dropped += self.backlog.push(update.target, update.argument);
        }
    }

    /// Sends values in as many requests as they need. `done` counts the values that are finished, even after an error.
    fn send<'a>(
        &mut self,
        updates: impl Iterator<Item = Update<'a>>,
        done: &mut usize,
        report: &mut Report,
    ) -> io::Result<()> {
        self.refused.clear();
        let mut updates = updates.peekable();
        while updates.peek().is_some() {
            let (mut count, mut new) = (0, Vec::new());
            self.request.clear();
            while let Some(update) = updates.peek() {
                let at = index(update.target);
                match self.series.get(at) {
                    Some(series) if !self.request.push(series, update) => {
                        if !self.request.targets.is_empty() {
                            break;
                        }
                        self.refuse(update.target, "cannot keep a value: it is too long", report);
                    }
                    Some(_) if !self.is_defined[at] => {
                        new.push((update.target, seconds(update.argument)));
                        self.is_defined[at] = true;
                    }
                    Some(_) => {}
                    None => {
                        let cause = "cannot keep a value: there is no such target";
                        self.refuse(update.target, cause, report);
                    }
                }
                count += 1;
                updates.next();
            }
            self.hand_over(&new, report)?;
            *done += count;
        }
        Ok(())
    }

    /// Defines the new series and sends the collected values. Series that the keeper does not know are defined, and their
    /// values are sent again.
    fn hand_over(&mut self, new: &[(u32, i64)], report: &mut Report) -> io::Result<()> {
        self.define(new, report)?;
        let missing = self.update(report)?;
        if missing.is_empty() {
            return Ok(());
        }
        let again = std::mem::take(&mut self.request);
        let arguments = again
            .values
            .iter()
            .filter_map(|(_, mut arguments)| arguments.next());
        let mut new = Vec::new();
        for (place, (&target, argument)) in again.targets.iter().zip(arguments).enumerate() {
            if missing.contains(&place) && !self.gives_up(target) {
                new.push((target, seconds(argument)));
                let update = Update {
                    target,
                    argument,
                    about: None,
                };
                // These values are a part of those that fitted before.
                self.request.push(&self.series[index(target)], &update);
            }
        }
        self.define(&new, report)?;
        for place in self.update(report)? {
            let target = self.request.targets[place];
            if !self.gives_up(target) {
                let cause = "cannot keep a value: the keeper does not know its series";
                self.refuse(target, cause, report);
            }
        }
        Ok(())
    }

    /// True if the keeper refused to define the series of a value, which is lost; the report has the reason.
    fn gives_up(&mut self, target: u32) -> bool {
        let is_refused = self.refused.contains(&target);
        self.counts.refused += u64::from(is_refused);
        is_refused
    }

    /// Sends the collected values; returns the places of those whose series are missing.
    fn update(&mut self, report: &mut Report) -> io::Result<HashSet<usize>> {
        let mut missing = HashSet::new();
        if self.request.targets.is_empty() {
            return Ok(missing);
        }
        let request = KeeperRequest::Update(std::mem::take(&mut self.request.values));
        let taken = self.ask(&request);
        if let KeeperRequest::Update(values) = request {
            self.request.values = values;
        }
        let taken = taken?;
        self.counts.kept += self.request.targets.len() as u64;
        let mut refusals = HashSet::new();
        for refused in taken.refused {
            let place = refused.place as usize;
            let target = self.request.targets.get(place);
            // Counts one refusal of each value at most.
            let Some(&target) = target.filter(|_| refusals.insert(place)) else {
                continue;
            };
            if refused.fault == Fault::Past && self.may_be_heard {
                continue;
            }
            self.counts.kept -= 1;
            match refused.fault {
                Fault::Missing => {
                    missing.insert(place);
                }
                Fault::Past | Fault::Other => self.refuse(target, &refused.why, report),
            }
        }
        self.may_be_heard = false;
        Ok(missing)
    }

    fn refuse(&mut self, target: u32, cause: &str, report: &mut Report) {
        self.counts.refused += 1;
        report.refuse(target, cause);
    }

    /// Defines series or changes their definitions; `new` has targets and the seconds of their first values.
    fn define(&mut self, new: &[(u32, i64)], report: &mut Report) -> io::Result<()> {
        for part in new.chunks(DEFINED_TOGETHER) {
            let series = part.iter().map(|&(target, first_s)| {
                let series = &self.series[index(target)];
                definition(series, first_s)
            });
            let request = KeeperRequest::Create(series.collect());
            let taken = self.ask(&request).inspect_err(|_| {
                let targets = new.iter().map(|(target, _)| index(*target));
                targets.for_each(|at| self.is_defined[at] = false);
            })?;
            self.counts.created += u64::from(taken.began);
            self.counts.tuned += u64::from(taken.changed);
            for refused in taken.refused {
                if let Some(&(target, _)) = part.get(refused.place as usize) {
                    self.refused.insert(target);
                    report.refuse(target, refused.why);
                }
            }
        }
        Ok(())
    }

    fn ask(&mut self, request: &KeeperRequest) -> io::Result<Taken> {
        let answers = self
            .connection
            .lock()
            .ask(request, 1, &mut self.may_be_heard)?;
        match answers.into_iter().next() {
            Some(Answer::Taken(taken)) => Ok(taken),
            Some(Answer::Refused(why)) => Err(io::Error::other(why)),
            _ => Err(io::Error::other("its answer is about something else")),
        }
    }
}

impl Together {
    fn clear(&mut self) {
        self.values.clear();
        self.targets.clear();
    }

    /// Adds a value; false if it does not fit.
    fn push(&mut self, series: &Series, update: &Update) -> bool {
        let is_added = self.values.push(&series.name, &[update.argument]);
        if is_added {
            self.targets.push(update.target);
        }
        is_added
    }
}

fn definition(series: &Series, first_s: i64) -> FileSeries {
    let words = series.sources().into_iter();
    FileSeries {
        name: series.name.clone(),
        step: series.step_s,
        start: first_s.saturating_sub(BEGINS_BEFORE_S),
        points_kept_s: series.points_kept_s,
        words: words.chain(series.archives.iter().cloned()).collect(),
    }
}

/// Fuzzes the parser with any bytes as the keeper's answer: each value counts as either kept or refused.
#[cfg(any(test, feature = "testing"))]
pub fn fuzz_keeper(input: &[u8]) {
    use kymo_sys::clock::RealClock;
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixStream;
    use std::path::PathBuf;
    use std::sync::Arc;

    let (Ok((asks, mut answers)), Some((&first, rest))) = (UnixStream::pair(), input.split_first())
    else {
        return;
    };
    let sent = match first & 0x80 {
        0 => kymo_wire::fuzz::keeper_frames(rest),
        _ => rest.to_vec(),
    };
    let series = |n: u8| Series {
        path: PathBuf::from(format!("/logs/{n}.rrd")),
        folder_bytes: 6,
        name: format!("{n}.rrd").into_bytes(),
        step_s: 300,
        heartbeat_s: 600,
        kind: super::Kind::Gauge,
        max: [None; 2],
        archives: super::Archives::default(),
        points_kept_s: 0,
        log: Default::default(),
        max_age_s: None,
    };
    let mut batch = Batch::default();
    let values = first % 5;
    for target in 0..values {
        batch.push(usize::from(target), |text| text.extend(b"1700000000:1:2"));
    }
    let connection = KeeperConnection::to("/nowhere".into(), Arc::new(RealClock));
    let mut keeper = Keeper::on(connection);
    keeper.begin((0..4).map(series).collect(), &[]);
    keeper.connection.lock().use_stream(asks);
    let counts = std::thread::scope(|scope| {
        let hears = answers.try_clone();
        scope.spawn(move || {
            let _reset = hears.map(|mut hears| hears.read_to_end(&mut Vec::new()));
        });
        scope.spawn(move || {
            let _heard = answers.write_all(&sent);
            let _gone = answers.shutdown(std::net::Shutdown::Write);
        });
        keeper.write(&batch, &mut Report::default());
        let counts = keeper.counts();
        drop(keeper);
        counts
    });
    assert!(counts.kept <= u64::from(values) && counts.refused <= 2 * u64::from(values));
}

#[cfg(test)]
mod tests;
