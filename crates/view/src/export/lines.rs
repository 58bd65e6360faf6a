//! `--export lexpr` and `--export graphite`: one line per value. lexpr writes `NAME VALUE` behind `sample.time SECONDS`,
//! graphite `HOST.NAME VALUE SECONDS`.

use std::io;

use crate::export::fold::Folded;
use crate::export::{ganglia, names};
use crate::feed::{Interval, Part};
use crate::format::{Note, Show, put_epoch};
use crate::options::Options;
use crate::options::export::{Dialect, Export};
use crate::sink::{Sink, To};

/// State of the format.
pub(crate) struct Lines {
    export: Export,
    folded: Folded,
    out: Vec<u8>,
}

impl Lines {
    /// A format that has written nothing yet.
    pub(crate) fn new(export: &Export) -> Lines {
        Lines {
            export: export.clone(),
            folded: Folded::default(),
            out: Vec::new(),
        }
    }
}

impl Show for Lines {
    fn interval(
        &mut self,
        interval: &Interval,
        options: &Options,
        sink: &mut dyn Sink,
    ) -> io::Result<()> {
        let Lines {
            export,
            folded,
            out,
        } = self;
        out.clear();
        let interval_secs = nominal_secs(interval);
        let due = folded.begin(export, interval_secs);
        let due = due.map_err(|why| io::Error::new(io::ErrorKind::InvalidInput, why))?;
        if due && export.dialect == Dialect::Lexpr {
            out.extend_from_slice(b"sample.time ");
            put_epoch(out, interval.moment.real_ns, true);
            out.push(b'\n');
        }
        let host = interval.context.get("host").unwrap_or("unknown");
        let mut sent = Ok(());
        names::each(export.dialect, interval, options, |exported| {
            let Some(value) = folded.take(export, exported, due) else {
                return;
            };
            if let Dialect::Gexpr(_) = export.dialect {
                let packets = ganglia::packets(host, exported, value, export, interval_secs);
                for packet in packets {
                    let done = sink.write(To::Stream, &packet);
                    if sent.is_ok() {
                        sent = done;
                    }
                }
                return;
            }
            if export.dialect == Dialect::Graphite {
                let parts = [&export.before, host, &export.behind, "."];
                parts
                    .iter()
                    .for_each(|part| out.extend_from_slice(part.as_bytes()));
            }
            out.extend_from_slice(exported.name.as_bytes());
            out.push(b' ');
            names::put(out, value, exported.decimals.max(export.decimals));
            if export.dialect == Dialect::Graphite {
                out.push(b' ');
                put_epoch(out, interval.moment.real_ns, false);
            }
            out.push(b'\n');
        });
        sent?;
        match out.is_empty() {
            true => Ok(()),
            false => sink.write(To::Stream, out),
        }
    }

    fn note(&mut self, _: &Note, _: &Options, _: &mut dyn Sink) -> io::Result<()> {
        // These lines have no place for remarks; gaps show in the times.
        Ok(())
    }
}

/// The configured interval in seconds, or this interval's length if the configuration is unknown.
fn nominal_secs(interval: &Interval) -> f64 {
    let configured = interval.context.get("interval").unwrap_or_default();
    let configured = configured
        .split(':')
        .next()
        .unwrap_or_default()
        .parse::<f64>();
    let taken = || {
        interval
            .parts
            .iter()
            .map(Part::elapsed)
            .fold(0.0, f64::max)
            .round()
    };
    configured
        .ok()
        .filter(|secs| *secs > 0.0)
        .unwrap_or_else(taken)
}
