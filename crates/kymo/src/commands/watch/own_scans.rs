//! Scans of this machine for a watch that has no recorder: only what the expression asks for, kept in memory for as long as the
//! expression looks back.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Error, Result, bail};
use kymo_base::context::Context;
use kymo_promql::Expr;
use kymo_query::readers::RecordedReader;
use kymo_query::recent::RecentSamples;
use kymo_recording::reader::{Kinds, TimeRange};
use kymo_series::Reader;
use kymo_sys::clock::{Clock as _, RealClock};

use crate::commands::query::{self, Moments};
use crate::recorder::scans::LiveScans;

/// Most bytes of samples in memory.
const BYTES_MAX: usize = 64 << 20;
/// Bytes after which the sampler is asked for a sample that needs none before it.
const KEY_EACH: usize = 256 << 10;
/// Time that is kept beyond what the expression looks back.
const SPARE_NS: i64 = 10_000_000_000;

/// A sampler, and its last samples.
pub(super) struct OwnScans {
    scans: LiveScans,
    recent: Rc<RefCell<RecentSamples>>,
}

/// Needs of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Needs {
    kinds: Kinds,
    back_ns: i64,
}

impl OwnScans {
    /// Begins to scan what the expression needs.
    pub(super) fn start(text: &str, expr: &Expr) -> Result<OwnScans> {
        let needs = needs(text, expr)?;
        let Some((scans, context)) = LiveScans::start(needs.kinds)? else {
            bail!(
                "cannot watch {text:?}: no kymo serve runs here, and without one only metrics of this machine are known"
            );
        };
        let keep_ns = needs.back_ns.saturating_add(SPARE_NS);
        let recent = RecentSamples::new(keep_ns, BYTES_MAX, context);
        Ok(OwnScans {
            scans,
            recent: Rc::new(RefCell::new(recent)),
        })
    }

    /// Takes in the samples that have come.
    pub(super) fn take(&mut self) -> Result<()> {
        let mut recent = self.recent.borrow_mut();
        recent
            .push(self.scans.take(Duration::ZERO)?)
            .map_err(Error::msg)?;
        if let Some(context) = self.scans.new_facts() {
            recent.set_context(context);
        }
        if recent.bytes_since_key() > KEY_EACH {
            self.scans.want_key();
        }
        Ok(())
    }

    /// A reader of the samples.
    pub(super) fn reader(&self) -> RecordedReader {
        let recent = self.recent.clone();
        RecordedReader::of(Box::new(move |range, kinds| {
            Ok(recent.borrow().open(range, kinds))
        }))
    }

    /// Ends the sampler.
    pub(super) fn end(self) {
        self.scans.end();
    }
}

/// Needs of an expression. It is evaluated over nothing, so that no second place has to know the parts of expressions.
fn needs(text: &str, expr: &Expr) -> Result<Needs> {
    let now_ns = RealClock.now().real_ns;
    let asked = Rc::new(RefCell::new(Needs {
        kinds: Kinds::NONE,
        back_ns: 0,
    }));
    let noted = asked.clone();
    let reader = RecordedReader::of(Box::new(move |range: TimeRange, kinds: Kinds| {
        let mut noted = noted.borrow_mut();
        let more = (0..=u8::MAX).filter(|&kind| kinds.contains(kind));
        more.for_each(|kind| noted.kinds.insert(kind));
        let back_ns = now_ns.saturating_sub(range.from_ns);
        noted.back_ns = noted.back_ns.max(back_ns);
        let nothing = RecentSamples::new(0, 0, Context::default());
        Ok(nothing.open(range, kinds))
    }));
    let now = Moments::At(now_ns.div_euclid(1_000_000));
    query::evaluate(text, expr, now, &reader as &dyn Reader)?;
    let needs = *asked.borrow();
    Ok(needs)
}

#[cfg(test)]
mod tests {
    use kymo_promql::parse;

    use super::*;
    use crate::recorder::scans::letters;

    /// Each selector counts, also one that decides nothing while there are no series.
    #[test]
    fn all_that_an_expression_reads_is_scanned() {
        for (text, all_of, back_s) in [
            ("node_load1 > 4", "c", 300),
            ("rate(node_cpu_seconds_total[10m])", "c", 600),
            (
                "node_load1 > 4 and on() node_memory_MemFree_bytes < 1",
                "cm",
                300,
            ),
            (
                "node_load1 unless on() node_memory_MemFree_bytes",
                "cm",
                300,
            ),
            ("node_load1 * on() node_memory_MemFree_bytes", "cm", 300),
            (
                "topk(1, node_load1) or sum(node_memory_MemFree_bytes)",
                "cm",
                300,
            ),
            ("max_over_time(node_load1[2m:1s] offset 1h) > 1", "c", 3720),
            ("absent(node_memory_MemFree_bytes)", "m", 300),
        ] {
            let needs = needs(text, &parse(text).unwrap()).unwrap();
            let letters = letters(needs.kinds).to_lowercase();
            for letter in all_of.chars() {
                assert!(letters.contains(letter), "{text}: {letters}");
            }
            assert!(needs.back_ns >= (back_s - 1) * 1_000_000_000, "{text}");
        }
        let none = "up{job=\"other\"}";
        let needs = needs(none, &parse(none).unwrap()).unwrap();
        assert_eq!(letters(needs.kinds), "");
    }
}
