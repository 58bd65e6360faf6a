//! Interface of the formats, which show intervals and remarks in between.

use std::io;

use kymo_query::source::Moment;

use crate::feed::Interval;
use crate::options::Options;
use crate::sink::Sink;
use crate::time::Local;

/// A remark between two intervals.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Remark<'a> {
    /// Number of missed ticks; rates continue.
    Missed(u32),
    /// Samples are missing; rates begin again.
    Gap(&'a str),
    /// An event, in words.
    Event(&'a str),
}

/// A remark with its time.
pub(crate) struct Note<'a> {
    /// The remark.
    pub remark: Remark<'a>,
    /// Time of the remark.
    pub moment: Moment,
    /// Local time of the remark.
    pub local: Local,
    /// Name of the recorded machine.
    pub host: &'a str,
}

/// An output format.
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
    /// Writes the part that follows the last interval.
    fn end(&mut self, _: &Options, _: &mut dyn Sink) -> io::Result<()> {
        Ok(())
    }
}

/// Appends seconds since 1970, with milliseconds if they are wanted.
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
