//! Sends values to an rrdcached (`RRDCached:` in the configuration), as one BATCH of UPDATEs in each cycle.
//!
//! As in MRTG, kymo makes and tunes the files of a daemon at `unix:` and names them by their paths; other daemons make files
//! themselves, below their own folder. While the daemon is away values wait in memory.

mod connection;
mod remote;
#[cfg(test)]
mod tests;

use super::backlog::{Backlog, all};
use super::rates::Rates;
use super::{Counts, Files, Report, Series, index};
use crate::batch::{Batch, Update, seconds};
use connection::LineConnection;
use kymo_base::name::DisplayName;
use kymo_sys::clock::Clock;
use std::collections::HashSet;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

/// Most values of one BATCH.
const TOGETHER: usize = 4096;
/// Part of the daemon's message about a missing file.
const MISSING: &[u8] = b"No such file";
/// Part of the daemon's message about a value that the file has already.
const PAST: &[u8] = b"illegal attempt to update";

/// A sink that sends values to an rrdcached.
pub struct Cached {
    connection: LineConnection,
    /// Makes files for a local daemon.
    files: Files,
    series: Vec<Series>,
    /// By series: true once its file is known to exist.
    is_ready: Vec<bool>,
    backlog: Backlog,
    rates: Box<Rates>,
    /// True if the last batch got no answer, so that the daemon may have its values.
    may_be_heard: bool,
    text: Vec<u8>,
    counts: Counts,
}

impl Cached {
    /// A sink for the daemon at `unix:/path` or `host:port`, which is not connected yet. `files` makes files for it.
    pub fn at(address: Vec<u8>, files: Files, clock: Arc<dyn Clock>) -> Cached {
        Cached {
            connection: LineConnection::to(address, clock),
            files,
            series: Vec::new(),
            is_ready: Vec::new(),
            backlog: Backlog::default(),
            rates: Box::default(),
            may_be_heard: false,
            text: Vec::new(),
            counts: Counts::default(),
        }
    }

    pub(super) fn begin(&mut self, series: Vec<Series>, watched: &[u32]) {
        self.backlog.follow(&self.series, &series);
        self.rates.begin(&series, watched);
        self.is_ready = vec![false; series.len()];
        self.files.begin(series.clone(), &[]);
        self.series = series;
    }

    pub(super) fn write(&mut self, batch: &Batch, report: &mut Report) {
        for update in batch.iter() {
            let rate = self.rates.add(update.target, update.argument);
            report.rates.extend(rate);
        }
        let backlog = std::mem::take(&mut self.backlog);
        let mut done = 0;
        let updates: Vec<Update> = all(&backlog, batch).collect();
        let sent = updates.chunks(TOGETHER).try_for_each(|updates| {
            self.send(updates, report)?;
            done += updates.len();
            Ok(())
        });
        if let Err(error) = sent {
            report.troubles.extend(self.connection.failed(&error));
            for update in &updates[done..] {
                self.counts.delayed += 1;
                self.counts.dropped += self.backlog.push(update.target, update.argument);
            }
        }
    }

    pub(super) fn counts(&self) -> Counts {
        let made = self.files.counts();
        Counts {
            created: self.counts.created + made.created,
            tuned: made.tuned,
            waiting: self.backlog.len() as u64,
            reconnected: self.connection.reconnected(),
            ..self.counts
        }
    }

    /// Sends one BATCH. Missing files are made, and their values are sent again.
    fn send(&mut self, updates: &[Update], report: &mut Report) -> io::Result<()> {
        let mut ready = Vec::with_capacity(updates.len());
        for update in updates {
            if self.prepare(update, report)? {
                ready.push(*update);
            }
        }
        let missing = self.ask(&ready, report)?;
        let mut again = Vec::new();
        for update in missing {
            self.is_ready[index(update.target)] = false;
            if self.prepare(&update, report)? {
                again.push(update);
            }
        }
        for update in self.ask(&again, report)? {
            self.refuse(update.target, &"there is no such file", report);
        }
        Ok(())
    }

    /// Makes the file of a series if needed. False if there is none; then the report has the reason.
    fn prepare(&mut self, update: &Update, report: &mut Report) -> io::Result<bool> {
        let at = index(update.target);
        match self.is_ready.get(at) {
            Some(true) => return Ok(true),
            Some(false) => {}
            None => {
                self.refuse(update.target, &"there is no such target", report);
                return Ok(false);
            }
        }
        let first_s = seconds(update.argument);
        let made = match self.connection.is_local() {
            true => self.files.prepare(update.target, first_s, report),
            false => self.prepare_remote(update.target, first_s, report)?,
        };
        self.is_ready[at] = made.is_ok();
        if let Err(cause) = &made {
            self.counts.refused += 1;
            report.refuse(update.target, cause.clone());
        }
        Ok(made.is_ok())
    }

    /// Sends values; returns those whose files are missing.
    fn ask<'a>(
        &mut self,
        updates: &[Update<'a>],
        report: &mut Report,
    ) -> io::Result<Vec<Update<'a>>> {
        if updates.is_empty() {
            return Ok(Vec::new());
        }
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        text.extend_from_slice(b"BATCH\n");
        for update in updates {
            text.extend_from_slice(b"UPDATE ");
            let series = &self.series[index(update.target)];
            put_escaped(&mut text, name(series, self.connection.is_local()));
            text.push(b' ');
            text.extend_from_slice(update.argument);
            text.push(b'\n');
        }
        text.extend_from_slice(b".\n");
        let errors = self.connection.batch(&text, &mut self.may_be_heard);
        self.text = text;
        let errors = errors?;
        self.counts.kept += updates.len() as u64;
        let mut missing = Vec::new();
        let mut seen = HashSet::new();
        for (line, cause) in errors {
            // A daemon that repeats a line has refused one value.
            let update = line.checked_sub(1).and_then(|at| updates.get(at));
            let Some(update) = update.filter(|_| seen.insert(line)) else {
                continue;
            };
            let says = |what: &[u8]| cause.windows(what.len()).any(|part| part == what);
            if says(PAST) && self.may_be_heard {
                continue;
            }
            self.counts.kept -= 1;
            match says(MISSING) {
                true => missing.push(*update),
                false => self.refuse(update.target, &DisplayName(&cause), report),
            }
        }
        self.may_be_heard = false;
        Ok(missing)
    }

    fn refuse(&mut self, target: u32, cause: &dyn std::fmt::Display, report: &mut Report) {
        self.counts.refused += 1;
        let series = self.series.get(index(target));
        let name = series.map_or(&b"a file"[..], |series| {
            name(series, self.connection.is_local())
        });
        report.refuse(
            target,
            format!("cannot update {}: {cause}", DisplayName(name)),
        );
    }
}

/// MRTG's name of a file: its path for a local daemon, otherwise the path below LogDir.
fn name(series: &Series, is_local: bool) -> &[u8] {
    let path = series.path.as_os_str().as_bytes();
    match is_local {
        true => path,
        false => path.get(series.folder_bytes..).unwrap_or(path),
    }
}

/// Appends a word of a line, with a `\` before each blank and each `\`.
fn put_escaped(out: &mut Vec<u8>, word: &[u8]) {
    for &byte in word {
        if matches!(byte, b' ' | b'\\') {
            out.push(b'\\');
        }
        out.push(byte);
    }
}
