//! Several recordings as one source: side by side, merged by time. Each step says of which it is.
//! Within a recording the order is its own, also where a clock was set back.

use kymo_base::context::Context;
use kymo_base::track::Tracks;

use crate::source::{Source, Step};

/// Recordings being played.
pub struct Merged {
    streams: Vec<Stream>,
    /// The one that the last step is of.
    now: usize,
}

/// One of them, a step ahead: its tracks are already as of the step that waits.
struct Stream {
    source: Box<dyn Source>,
    state: State,
    /// When its last sample or event was, in nanoseconds since 1970.
    at_ns: i64,
    /// True: a step of this stream was given.
    begun: bool,
}

/// How far a stream is.
enum State {
    /// The next step of the stream has to be read.
    Open,
    /// This step comes next.
    Waits(Step),
    Ended,
}

impl Merged {
    /// All of `sources`, of which there is at least one.
    pub fn new(sources: Vec<Box<dyn Source>>) -> Merged {
        let stream = |source| Stream {
            source,
            state: State::Open,
            at_ns: i64::MIN,
            begun: false,
        };
        Merged {
            streams: sources.into_iter().map(stream).collect(),
            now: 0,
        }
    }
}

impl Source for Merged {
    fn next(&mut self) -> Result<Option<Step>, String> {
        for stream in &mut self.streams {
            stream.look()?;
        }
        let waiting = self
            .streams
            .iter()
            .enumerate()
            .filter(|(_, stream)| stream.waits());
        let Some((first, _)) = waiting.min_by_key(|(_, stream)| stream.at_ns) else {
            return Ok(None);
        };
        let last = &self.streams[std::mem::replace(&mut self.now, first)];
        let alone = last.begun && !last.waits();
        let stream = &mut self.streams[first];
        if alone && !std::mem::replace(&mut stream.begun, true) {
            return Ok(Some(Step::Gap("another recording begins".into())));
        }
        stream.begun = true;
        Ok(stream.take())
    }

    fn tracks(&self) -> &Tracks {
        self.streams[self.now].source.tracks()
    }

    fn context(&self) -> &Context {
        self.streams[self.now].source.context()
    }

    fn stream(&self) -> usize {
        self.now
    }
}

impl Stream {
    /// Looks for the next step where none waits.
    fn look(&mut self) -> Result<(), String> {
        if !matches!(self.state, State::Open) {
            return Ok(());
        }
        self.state = match self.source.next()? {
            None => State::Ended,
            Some(step) => {
                if let Step::Sample(moment) | Step::Event(moment, _) = &step {
                    self.at_ns = moment.real_ns;
                }
                State::Waits(step)
            }
        };
        Ok(())
    }

    fn waits(&self) -> bool {
        matches!(self.state, State::Waits(_))
    }

    fn take(&mut self) -> Option<Step> {
        match std::mem::replace(&mut self.state, State::Open) {
            State::Waits(step) => Some(step),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Moment;

    /// A source of samples at these seconds; 0 is a gap.
    struct Script(Vec<i64>, Tracks, Context);

    impl Source for Script {
        fn next(&mut self) -> Result<Option<Step>, String> {
            if self.0.is_empty() {
                return Ok(None);
            }
            Ok(Some(match self.0.remove(0) {
                0 => Step::Gap("a gap".into()),
                secs => {
                    self.2.set("now", &secs.to_string());
                    Step::Sample(Moment {
                        real_ns: secs * 1_000_000_000,
                        ..Moment::default()
                    })
                }
            }))
        }

        fn tracks(&self) -> &Tracks {
            &self.1
        }

        fn context(&self) -> &Context {
            &self.2
        }
    }

    #[test]
    fn steps_come_by_time_each_of_its_own_recording() {
        for (scripts, expect) in [
            (vec![vec![1, 2], vec![3, 4]], "0:1 0:2 1:gap 1:3 1:4"),
            (vec![vec![3, 4], vec![1, 2]], "1:1 1:2 0:gap 0:3 0:4"),
            (vec![vec![1, 3, 5], vec![2, 4]], "0:1 1:2 0:3 1:4 0:5"),
            (vec![vec![1, 0, 5], vec![2, 4]], "0:1 0:gap 1:2 1:4 0:5"),
            // A clock that was set back.
            (vec![vec![5, 2, 6], vec![4, 7]], "1:4 0:5 0:2 0:6 1:7"),
            (vec![vec![], vec![1]], "1:1"),
            (vec![vec![1], vec![1], vec![2]], "0:1 1:gap 1:1 2:gap 2:2"),
        ] {
            let sources = scripts.iter().map(|script| {
                let script = Script(script.clone(), Tracks::default(), Context::default());
                Box::new(script) as Box<dyn Source>
            });
            let mut merged = Merged::new(sources.collect());
            let mut got = Vec::new();
            while let Some(step) = merged.next().unwrap() {
                let stream = merged.stream();
                got.push(match step {
                    // The facts are those of the step's own moment.
                    Step::Sample(_) => format!("{stream}:{}", merged.context().get("now").unwrap()),
                    _ => format!("{stream}:gap"),
                });
            }
            assert_eq!(got.join(" "), expect, "{scripts:?}");
        }
    }
}
