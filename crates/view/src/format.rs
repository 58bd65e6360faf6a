//! What a format is: something that shows intervals, and remarks between them.

use std::io;

use kymo_query::source::Moment;

use crate::feed::Interval;
use crate::options::Options;
use crate::sink::Sink;
use crate::time::Local;

/// What is worth a remark between intervals.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Remark<'a> {
    /// So many ticks were missed; rates go on.
    Missed(u32),
    /// Samples are missing; rates begin again.
    Gap(&'a str),
    /// Something happened.
    Event(&'a str),
}

/// A remark and when it is made.
pub(crate) struct Note<'a> {
    /// What.
    pub remark: Remark<'a>,
    /// When.
    pub moment: Moment,
    /// The same in local time.
    pub local: Local,
    /// The machine.
    pub host: &'a str,
}

/// A format.
pub(crate) trait Show {
    /// Shows an interval.
    fn interval(
        &mut self,
        interval: &Interval,
        options: &Options,
        sink: &mut dyn Sink,
    ) -> io::Result<()>;
    /// Shows a remark.
    fn note(&mut self, note: &Note, options: &Options, sink: &mut dyn Sink) -> io::Result<()>;
    /// Shows what is shown behind all intervals.
    fn end(&mut self, _: &Options, _: &mut dyn Sink) -> io::Result<()> {
        Ok(())
    }
}

/// Appends the milliseconds-or-whole seconds since 1970.
pub(crate) fn put_epoch(out: &mut Vec<u8>, real_ns: i64, milliseconds: bool) {
    let ms = real_ns.div_euclid(1_000_000);
    if ms < 0 {
        out.push(b'-');
    }
    let ms = ms.unsigned_abs();
    kymo_base::scan::put_number(out, ms / 1000, 0, b' ');
    if milliseconds {
        out.push(b'.');
        kymo_base::scan::put_number(out, ms % 1000, 3, b'0');
    }
}
