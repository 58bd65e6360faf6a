//! Marks: what happened, beside the numbers: gaps, slow reads, clock steps, reboots, what hosts that send wanted to be heard,
//! and what happened to devices that are polled.

use kymo_base::context::Context;
use kymo_recording::beat;

use crate::source::{Moment, Step};

/// Something that happened, over a span or at a moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mark {
    /// Begin, in nanoseconds since 1970.
    pub from_ns: i64,
    /// End; the same as the begin for a moment.
    pub until_ns: i64,
    /// Kind of the mark.
    pub kind: Kind,
    /// A line on it.
    pub text: String,
    /// Subject of the mark.
    pub origin: Origin,
}

/// Subject of a mark.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Origin {
    /// This machine's.
    Machine,
    /// A host that sends.
    Host(String),
    /// A polled device.
    Device(String),
}

/// Kinds of mark.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Nothing is known of the span.
    Gap,
    /// Samples were not taken in time.
    Missed,
    /// A file of the kernel was slow to read.
    Slow,
    /// The wall clock was set.
    Clock,
    /// The machine slept.
    Suspend,
    /// The machine was started.
    Boot,
    /// A recorder was started.
    Start,
    /// Anything else.
    Note,
    /// A message of a sending host, or the state of a device: something is wrong.
    Failure,
    /// Something may become wrong.
    Warning,
    /// The host or device is well again.
    Okay,
}

impl Kind {
    /// All kinds, in the order of their codes.
    pub const ALL: [Kind; 11] = [
        Kind::Gap,
        Kind::Missed,
        Kind::Slow,
        Kind::Clock,
        Kind::Suspend,
        Kind::Boot,
        Kind::Start,
        Kind::Note,
        Kind::Failure,
        Kind::Warning,
        Kind::Okay,
    ];

    /// Name in answers.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Gap => "gap",
            Kind::Missed => "missed",
            Kind::Slow => "slow",
            Kind::Clock => "clock",
            Kind::Suspend => "suspend",
            Kind::Boot => "boot",
            Kind::Start => "start",
            Kind::Note => "note",
            Kind::Failure => "failure",
            Kind::Warning => "warning",
            Kind::Okay => "okay",
        }
    }
}

/// Makes marks of a source's steps.
#[derive(Default)]
pub struct Marker {
    last: Option<Moment>,
    boot_id: String,
    context_stamp: u64,
    /// The gap that the next sample ends.
    open: Option<Mark>,
}

impl Marker {
    /// Calls `each` with the marks of a step. `true`: rates begin again with the next sample.
    pub fn step(&mut self, step: &Step, context: &Context, each: &mut dyn FnMut(Mark)) -> bool {
        match step {
            Step::Sample(moment) => self.sample(moment, context, each),
            Step::Event(moment, text) => {
                let kind = kind_of(text);
                each(at(moment.real_ns, kind, text.clone()));
                let starts = kind == Kind::Start && self.last.is_some();
                if starts {
                    self.begin_gap(moment.real_ns, "the recorder was not running".into());
                }
                starts
            }
            Step::Gap(why) | Step::Damage(why) => {
                self.begin_gap(i64::MIN, why.clone());
                true
            }
        }
    }

    fn begin_gap(&mut self, now_ns: i64, text: String) {
        let from_ns = self.last.map_or(now_ns, |last| last.real_ns);
        self.open.get_or_insert(Mark {
            from_ns,
            until_ns: from_ns,
            kind: Kind::Gap,
            text,
            origin: Origin::Machine,
        });
    }

    /// `true`: the sample is of another boot than the last.
    fn sample(&mut self, moment: &Moment, context: &Context, each: &mut dyn FnMut(Mark)) -> bool {
        if let Some(gap) = self.open.take().filter(|_| self.last.is_some()) {
            each(Mark {
                until_ns: moment.real_ns.max(gap.from_ns),
                ..gap
            });
        }
        let boot = self.changes_boot(context) && self.last.is_some();
        if boot {
            each(at(
                moment.real_ns,
                Kind::Boot,
                "the machine was started".into(),
            ));
        }
        if moment.missed > 0 && !moment.warmup {
            let from_ns = self.last.map_or(moment.real_ns, |last| last.real_ns);
            each(Mark {
                from_ns: from_ns.min(moment.real_ns),
                until_ns: moment.real_ns,
                kind: Kind::Missed,
                text: format!("{} samples were not taken in time", moment.missed),
                origin: Origin::Machine,
            });
        }
        self.last = Some(*moment);
        boot
    }

    fn changes_boot(&mut self, context: &Context) -> bool {
        if self.context_stamp == context.stamp() {
            return false;
        }
        self.context_stamp = context.stamp();
        let id = context.get("boot_id").unwrap_or_default();
        let changed = self.boot_id != id;
        self.boot_id = id.to_string();
        changed
    }
}

fn at(real_ns: i64, kind: Kind, text: String) -> Mark {
    Mark {
        from_ns: real_ns,
        until_ns: real_ns,
        kind,
        text,
        origin: Origin::Machine,
    }
}

/// The kind of an event, by the words that the recorder has for it.
fn kind_of(text: &str) -> Kind {
    [
        ("slow ", Kind::Slow),
        ("clock step", Kind::Clock),
        ("suspended", Kind::Suspend),
        (beat::STARTS, Kind::Start),
        ("missed", Kind::Missed),
    ]
    .iter()
    .find(|(words, _)| text.starts_with(words))
    .map(|&(_, kind)| kind)
    .filter(|&kind| kind != Kind::Slow || is_slow_again(text))
    .unwrap_or(Kind::Note)
}

/// `slow read: proc/stat took 15.2 ms, again 15.1 ms`. One that was quick when it was read again at once is not slow:
/// the recorder had to wait for a CPU.
fn is_slow_again(text: &str) -> bool {
    let ms = |before: &str| -> Option<f64> {
        let (_, rest) = text.split_once(before)?;
        rest.split(' ').next()?.parse().ok()
    };
    match (ms(" took "), ms(" again ")) {
        (Some(first), Some(again)) => again > first / 10.0,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_events() {
        for (text, kind) in [
            (
                "slow read: proc/stat took 15.2 ms, again 15.1 ms; read at 1 of 2 turns from now on",
                Kind::Slow,
            ),
            (
                "slow read: proc/7/stat took 15.2 ms, again 0.0 ms",
                Kind::Note,
            ),
            ("slow in words to come", Kind::Slow),
            ("clock step -43200.000 s", Kind::Clock),
            ("suspended 60.000 s", Kind::Suspend),
            ("recorder starts", Kind::Start),
            ("cannot write tail-A: disk full", Kind::Note),
        ] {
            assert_eq!(kind_of(text), kind, "{text}");
        }
    }

    fn sample(seconds: i64, missed: u32) -> Step {
        Step::Sample(at(seconds, missed))
    }

    fn at(seconds: i64, missed: u32) -> Moment {
        Moment {
            real_ns: seconds,
            missed,
            ..Moment::default()
        }
    }

    #[test]
    fn gaps_boots_and_missed_samples() {
        let mut marker = Marker::default();
        let mut boot = Context::default();
        boot.set("boot_id", "one");
        let mut marks = Vec::new();
        let mut restarts = Vec::new();
        let mut take = |step: &Step, context: &Context| {
            restarts.push(marker.step(step, context, &mut |mark| {
                marks.push((mark.kind.name(), mark.from_ns, mark.until_ns));
            }));
        };
        take(&Step::Event(at(1, 0), "recorder starts".into()), &boot);
        take(&sample(1, 0), &boot);
        take(&sample(2, 0), &boot);
        take(&sample(5, 2), &boot);
        take(&Step::Gap("damaged".into()), &boot);
        take(&sample(9, 0), &boot);
        take(&Step::Event(at(20, 0), "recorder starts".into()), &boot);
        take(&sample(20, 0), &boot);
        boot.set("boot_id", "two");
        take(&sample(30, 0), &boot);
        assert_eq!(
            marks,
            [
                ("start", 1, 1),
                ("missed", 2, 5),
                ("gap", 5, 9),
                ("start", 20, 20),
                ("gap", 9, 20),
                ("boot", 30, 30),
            ]
        );
        assert_eq!(
            restarts,
            [false, false, false, false, true, false, true, false, true]
        );
    }
}
