//! Cost of a run of the recorder: CPU, memory, bytes, and the price of each source.

use std::fmt::Write as _;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use kymo_base::cost;
use kymo_kernel::source::{self, Reads, Scope};
use kymo_recording::beat::Control;
use kymo_recording::record::{self, RecordType};
use kymo_recording::writer::Counters;
use kymo_sys::machine;

/// Sums over the records of a run.
#[derive(Default)]
pub(crate) struct RunCost {
    sources: Vec<SourceCost>,
    samples: u64,
}

/// Sums over the sections of one kind of source.
#[derive(Default)]
struct SourceCost {
    kind: u8,
    sections: u64,
    ns: u64,
    worst_ns: u64,
    bytes: u64,
}

impl RunCost {
    /// Adds the samples of a batch of records.
    pub(crate) fn add(&mut self, batch: &[u8]) {
        let mut rest = batch;
        while let Some(raw) = record::peek(rest) {
            if raw.head.record_type == RecordType::Sample
                && let Ok(record) = record::parse_unsealed(rest)
            {
                self.samples += 1;
                for section in record.sections() {
                    self.section(
                        section.kind,
                        cost::decode(section.cost),
                        section.bytes.len(),
                    );
                }
            }
            rest = &rest[raw.length.min(rest.len())..];
        }
    }

    fn section(&mut self, kind: u8, ns: u64, bytes: usize) {
        let at = self
            .sources
            .iter()
            .position(|sum| sum.kind == kind)
            .unwrap_or_else(|| {
                self.sources.push(SourceCost {
                    kind,
                    ..SourceCost::default()
                });
                self.sources.len() - 1
            });
        let sum = &mut self.sources[at];
        sum.sections += 1;
        sum.ns += ns;
        sum.worst_ns = sum.worst_ns.max(ns);
        sum.bytes += bytes as u64;
    }
}

/// Prints the table of `--cost` to stdout.
pub(crate) fn print(
    run: &RunCost,
    control: &Control,
    counters: &Counters,
    dropped: u64,
    elapsed: Duration,
) -> std::io::Result<()> {
    let mut out = String::new();
    let (samples, missed) = (run.samples, control.missed.load(Relaxed));
    let seconds = elapsed.as_secs_f64();
    let _ = writeln!(
        out,
        "samples          {samples} in {seconds:.1} s, {missed} ticks missed, {dropped} dropped"
    );
    whole(samples.max(1) as f64, control, counters, &mut out);
    let _ = writeln!(
        out,
        "{:<22}{:>10}{:>12}{:>12}{:>14}{:>9}",
        "# source", "sections", "ns a read", "worst ns", "bytes a read", "read"
    );
    for sum in &run.sources {
        sum.line(&mut out);
    }
    crate::output::put(&out)
}

/// Adds the lines about the whole process.
fn whole(samples: f64, control: &Control, counters: &Counters, out: &mut String) {
    let usage = machine::usage();
    let [user, system] = [usage.user_us, usage.system_us].map(|us| us as f64 / 1e6);
    let each_us = (user + system) * 1e6 / samples;
    let _ = writeln!(
        out,
        "CPU              {:.3} s ({user:.3} user, {system:.3} system), {each_us:.1} us a sample",
        user + system
    );
    let resident_mb = machine::peak_kb().unwrap_or(0) as f64 / 1024.0;
    // A kept file in /proc needs a page for its buffer and about a KiB for the rest.
    let kernel_mb = control.kept_files.load(Relaxed) as f64 * 5.0 / 1024.0;
    let _ = writeln!(
        out,
        "memory           {resident_mb:.1} MB (VmHWM), about {kernel_mb:.1} MB of the kernel's for kept files"
    );
    let Counters {
        record_bytes,
        bytes_written,
        syncs,
        seals,
        ..
    } = counters;
    let each = *record_bytes as f64 / samples;
    let _ = writeln!(
        out,
        "bytes            {record_bytes} of records ({each:.0} a sample), {bytes_written} written in all, {syncs} syncs, {seals} seals"
    );
}

impl SourceCost {
    fn line(&self, out: &mut String) {
        let Some(source) = source::of(self.kind) else {
            return;
        };
        let path = source.path_of(match source.scope {
            Scope::Machine => "",
            Scope::Process | Scope::Thread => "PID",
            _ => "*",
        });
        let reads = match source.reads {
            Reads::Whole => "whole",
            Reads::Records => "records",
            Reads::Bundle(_) => "files",
            Reads::Digest(_) => "digest",
        };
        let sections = self.sections.max(1);
        let _ = writeln!(
            out,
            "{path:<22}{:>10}{:>12}{:>12}{:>14.1}{reads:>9}",
            self.sections,
            self.ns / sections,
            self.worst_ns,
            self.bytes as f64 / sections as f64
        );
    }
}
