//! What a run of the recorder cost: CPU, memory, bytes, and the price of each source.

use std::fmt::Write as _;
use std::io::Write as _;
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
pub struct RunCost {
    /// By kind of source: samples, nanoseconds, section bytes, worst nanoseconds.
    kinds: Vec<(u8, u64, u64, u64, u64)>,
    samples: u64,
}

impl RunCost {
    /// Adds the samples of a batch of records.
    pub fn add(&mut self, batch: &[u8]) {
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
            .kinds
            .iter()
            .position(|sum| sum.0 == kind)
            .unwrap_or_else(|| {
                self.kinds.push((kind, 0, 0, 0, 0));
                self.kinds.len() - 1
            });
        let sum = &mut self.kinds[at];
        (sum.1, sum.2, sum.3, sum.4) = (sum.1 + 1, sum.2 + ns, sum.3 + bytes as u64, sum.4.max(ns));
    }
}

/// Prints the table of `--cost` to stdout.
pub fn print(
    run: &RunCost,
    control: &Control,
    counters: &Counters,
    dropped: u64,
    elapsed: Duration,
) -> std::io::Result<()> {
    let mut out = String::new();
    let usage = machine::usage();
    let samples = run.samples.max(1);
    let cpu_us = usage.user_us + usage.system_us;
    // A kept file in /proc costs its page of buffer and about a KiB for the rest.
    let kernel_mb = control.kept_files.load(Relaxed) as f64 * 5.0 / 1024.0;
    let missed = control.missed.load(Relaxed);
    let _ = writeln!(
        out,
        "samples          {} in {:.1} s, {missed} ticks missed, {dropped} dropped",
        run.samples,
        elapsed.as_secs_f64()
    );
    let _ = writeln!(
        out,
        "CPU              {:.3} s ({:.3} user, {:.3} system), {:.1} us a sample",
        cpu_us as f64 / 1e6,
        usage.user_us as f64 / 1e6,
        usage.system_us as f64 / 1e6,
        cpu_us as f64 / samples as f64
    );
    let _ = writeln!(
        out,
        "memory           {:.1} MB (VmHWM), about {:.1} MB of the kernel's for kept files",
        usage.resident_max_kb as f64 / 1024.0,
        kernel_mb
    );
    let _ = writeln!(
        out,
        "bytes            {} of records ({:.0} a sample), {} written in all, {} syncs, {} seals",
        counters.record_bytes,
        counters.record_bytes as f64 / samples as f64,
        counters.bytes_written,
        counters.syncs,
        counters.seals
    );
    let _ = writeln!(
        out,
        "{:<22}{:>10}{:>12}{:>12}{:>14}{:>9}",
        "# source", "sections", "ns a read", "worst ns", "bytes a read", "read"
    );
    for &(kind, sections, ns, bytes, worst) in &run.kinds {
        let Some(source) = source::of(kind) else {
            continue;
        };
        let scope = if source.scope == Scope::Machine {
            String::new()
        } else {
            "PID".to_string()
        };
        let reads = if source.reads == Reads::Whole {
            "whole"
        } else {
            "records"
        };
        let _ = writeln!(
            out,
            "{:<22}{sections:>10}{:>12}{worst:>12}{:>14.1}{reads:>9}",
            source.path_of(&scope),
            ns / sections.max(1),
            bytes as f64 / sections.max(1) as f64
        );
    }
    std::io::stdout().write_all(out.as_bytes())
}
