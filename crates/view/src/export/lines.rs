//! `--export lexpr` and `--export graphite`: a line a value. lexpr has `NAME VALUE` behind `sample.time SECONDS`, graphite
//! `HOST.NAME VALUE SECONDS`.

use std::io;

use crate::export::asked::{Dialect, Export};
use crate::export::names;
use crate::feed::Interval;
use crate::format::{Note, Show, put_epoch};
use crate::options::Options;
use crate::sink::{Sink, To};

/// The format's state.
pub(crate) struct Lines {
    export: Export,
    out: Vec<u8>,
}

impl Lines {
    /// Nothing has been shown.
    pub(crate) fn new(export: &Export) -> Lines {
        Lines {
            export: export.clone(),
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
        let Lines { export, out } = self;
        out.clear();
        if export.dialect == Dialect::Lexpr {
            out.extend_from_slice(b"sample.time ");
            put_epoch(out, interval.moment.real_ns, true);
            out.push(b'\n');
        }
        let host = interval.context.get("host").unwrap_or("unknown");
        names::each(
            export.dialect,
            interval,
            options,
            |name, value, decimals| {
                if export.dialect == Dialect::Graphite {
                    let parts = [&export.before, host, &export.behind, "."];
                    parts
                        .iter()
                        .for_each(|part| out.extend_from_slice(part.as_bytes()));
                }
                out.extend_from_slice(name.as_bytes());
                out.push(b' ');
                names::put(out, value, decimals.max(export.decimals));
                if export.dialect == Dialect::Graphite {
                    out.push(b' ');
                    put_epoch(out, interval.moment.real_ns, false);
                }
                out.push(b'\n');
            },
        );
        sink.write(To::Stream, out)
    }

    fn note(&mut self, _: &Note, _: &Options, _: &mut dyn Sink) -> io::Result<()> {
        // These lines have no place for remarks; the times tell.
        Ok(())
    }
}
