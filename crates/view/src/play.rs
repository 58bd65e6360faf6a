//! The loop for playing recordings and for live views: reads steps from a source and passes
//! intervals to a format.

use std::fmt;
use std::io;

use kymo_base::errno::strerror;
use kymo_query::source::{Moment, STARTS, Source, Step};

use crate::feed::{Feed, Interval};
use crate::format::{Note, Remark, Show};
use crate::options::{Format, Options};
use crate::sink::{Sink, To};
use crate::time::SpanPosition;
use crate::{brief, csv, export, json, plot, verbose};

/// Why a view ended early.
#[derive(Debug)]
pub enum Stopped {
    /// The source failed, with a message.
    Source(String),
    /// The output failed; a closed pipe is such a failure.
    Output(io::Error),
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stopped::Source(error) => f.write_str(error),
            Stopped::Output(error) => write!(f, "cannot write output: {}", strerror(error)),
        }
    }
}

impl std::error::Error for Stopped {}

impl From<io::Error> for Stopped {
    fn from(error: io::Error) -> Stopped {
        Stopped::Output(error)
    }
}

/// Counts of a finished view.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Shown {
    /// Intervals shown.
    pub intervals: u64,
    /// Samples read, within the span or not.
    pub samples: u64,
    /// Samples within the span.
    pub within: u64,
    /// Intervals that a switch left out, for example those without errors.
    pub left_out: u64,
    /// Letters of chosen subsystems without any data, and the subsystems' names.
    pub absent: Vec<(char, &'static str)>,
}

/// Shows the steps of `source` that are within the options' span and count.
pub fn play(
    source: &mut dyn Source,
    options: &Options,
    sink: &mut dyn Sink,
) -> Result<Shown, Stopped> {
    let mut show: Box<dyn Show> = match options.format {
        Format::Brief => Box::new(brief::Brief::new(options)),
        Format::Verbose => Box::new(verbose::Verbose::new(options)),
        Format::Plot => Box::new(plot::Plot::new(options, plot::Target::Line)),
        Format::PlotFiles => Box::new(plot::Plot::new(options, plot::Target::Files)),
        Format::Csv => Box::new(csv::Csv::new(options)),
        Format::Json => Box::new(json::Json::new(options)),
        Format::Lines => match &options.export {
            Some(export) => Box::new(export::lines::Lines::new(export)),
            None => Box::new(brief::Brief::new(options)),
        },
        Format::Tree => match options.tree {
            Some(tree) => Box::new(export::proctree::ProcTree::new(tree, options)),
            None => Box::new(verbose::Verbose::new(options)),
        },
        Format::Vmstat => Box::new(export::vmstat::Vmstat::new(options)),
    };
    let mut heads = Heads(sink);
    let sink: &mut dyn Sink = match options.heads_only {
        true => &mut heads,
        false => heads.0,
    };
    let mut player = Player {
        options,
        feeds: Vec::new(),
        shown: Shown::default(),
        last: Moment::default(),
    };
    while let Some(step) = source.next().map_err(Stopped::Source)? {
        if !player.step(source, step, show.as_mut(), sink)? {
            break;
        }
    }
    show.end(options, sink)?;
    sink.interval()?;
    Ok(player.end())
}

/// Passes on headers only.
struct Heads<'a>(&'a mut dyn Sink);

impl Sink for Heads<'_> {
    fn write(&mut self, to: To, bytes: &[u8]) -> io::Result<()> {
        match to {
            To::Head => self.0.write(to, bytes),
            To::Stream | To::File { .. } => Ok(()),
        }
    }

    fn interval(&mut self) -> io::Result<()> {
        self.0.interval()
    }
}

struct Player<'a> {
    options: &'a Options,
    /// A feed per stream of the source.
    feeds: Vec<Feed>,
    shown: Shown,
    last: Moment,
}

impl Player<'_> {
    /// Handles one step; `false`: the view is complete.
    fn step(
        &mut self,
        source: &dyn Source,
        step: Step,
        show: &mut dyn Show,
        sink: &mut dyn Sink,
    ) -> io::Result<bool> {
        while self.feeds.len() <= source.stream() {
            self.feeds.push(Feed::new(self.options));
        }
        match step {
            Step::Sample(moment) => return self.sample(source, moment, show, sink),
            Step::Event(moment, text) => {
                self.note(source, moment, Remark::Event(&text), show, sink)?
            }
            Step::Gap(why) | Step::Damage(why) => {
                self.feeds[source.stream()].restart();
                if !why.is_empty() {
                    self.note(source, self.last, Remark::Gap(&why), show, sink)?;
                }
            }
        }
        Ok(true)
    }

    fn sample(
        &mut self,
        source: &dyn Source,
        moment: Moment,
        show: &mut dyn Show,
        sink: &mut dyn Sink,
    ) -> io::Result<bool> {
        let feed = &mut self.feeds[source.stream()];
        let local = feed.local(source.context(), moment.real_ns);
        let place = if moment.warmup {
            SpanPosition::Before
        } else {
            self.options.span.place(moment.real_ns, local)
        };
        if place == SpanPosition::After {
            return Ok(false);
        }
        let any = feed.take(source, &moment, self.options);
        self.last = moment;
        self.shown.samples += u64::from(!moment.warmup);
        self.shown.within += u64::from(place == SpanPosition::Within);
        if !any || place == SpanPosition::Before {
            return Ok(true);
        }
        if self.is_left_out(source) {
            self.shown.left_out += 1;
            return Ok(true);
        }
        if moment.missed > 0 {
            self.note(source, moment, Remark::Missed(moment.missed), show, sink)?;
        }
        for remark in self.feeds[source.stream()].remarks(source.context()) {
            self.note(source, moment, Remark::Event(&remark), show, sink)?;
        }
        let interval = Interval {
            moment,
            local,
            parts: self.feeds[source.stream()].parts(),
            context: source.context(),
        };
        show.interval(&interval, self.options, sink)?;
        sink.interval()?;
        self.shown.intervals += 1;
        let shown = self.shown.intervals;
        let more = self.options.count.is_none_or(|count| shown < count);
        Ok(more && !self.options.heads_only)
    }

    /// True for an interval without interface errors, which `--netopts E` leaves out.
    fn is_left_out(&self, source: &dyn Source) -> bool {
        let parts = self.feeds[source.stream()].parts();
        let net = parts
            .iter()
            .find(|part| part.choice.subsystem.letter == 'n');
        let errors = net.map(|net| net.summed("trouble", source.context(), self.options));
        self.options.errors_only && errors.is_some_and(|errors| errors.is_nan() || errors == 0.0)
    }

    /// Finishes the counts with the chosen subsystems that had no data.
    fn end(self) -> Shown {
        let absent = |at: usize| self.feeds.iter().all(|feed| !feed.parts()[at].was_read);
        let choices = self.options.choices.iter().enumerate();
        let letters = choices
            .filter(|&(at, _)| absent(at))
            .flat_map(|(_, choice)| {
                let (letter, name) = (choice.subsystem.letter, choice.subsystem.name);
                [
                    choice.summary.then_some((letter, name)),
                    choice.detail.then_some((letter.to_ascii_uppercase(), name)),
                ]
            });
        Shown {
            absent: letters.flatten().collect(),
            ..self.shown
        }
    }

    fn note(
        &mut self,
        source: &dyn Source,
        moment: Moment,
        remark: Remark,
        show: &mut dyn Show,
        sink: &mut dyn Sink,
    ) -> io::Result<()> {
        let feed = &mut self.feeds[source.stream()];
        let local = feed.local(source.context(), moment.real_ns);
        // Before the first interval there is nothing that a gap could interrupt, and the
        // recorder's start is the expected beginning.
        let at_beginning = match remark {
            Remark::Event(text) => text == STARTS,
            _ => true,
        };
        if self.shown.intervals == 0 && at_beginning
            || self.options.span.place(moment.real_ns, local) != SpanPosition::Within
        {
            return Ok(());
        }
        let host = source.context().get("host").unwrap_or_default();
        show.note(
            &Note {
                remark,
                moment,
                local,
                host,
            },
            self.options,
            sink,
        )
    }
}
