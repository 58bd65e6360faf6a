//! The command of a watch: started once for each begin and end, with all that it is to know in its environment. It never has an
//! argument or a text of a shell from outside.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use kymo_base::name::DisplayName;
use kymo_promql::LabelSet;
use kymo_series::names::METRIC;
use kymo_sys::program::{Output, Program};
use kymo_sys::talk;

use super::held::SeriesTurn;
use crate::commands::{query, series};

/// Commands that run at one time.
pub(super) const RUNNING_MAX: usize = 8;
/// Begins and ends that wait for their commands.
const WAITING_MAX: usize = 1000;
/// A command that runs for longer is killed, with all that it started.
const TIME_MAX: Duration = Duration::from_secs(60);
/// Time that commands have when the watch ends.
const GRACE: Duration = Duration::from_secs(2);
/// Pause between two looks at commands where nothing else is to be done.
const PAUSE: Duration = Duration::from_millis(10);
/// Label values in the environment are cut to this length: the kernel starts no program whose variables are too long.
const VALUE_MAX: usize = 16 << 10;

/// A command, those of it that run, and what waits for one.
pub(super) struct Hook {
    words: Vec<OsString>,
    expr: String,
    running: Vec<RunningCommand>,
    waiting: VecDeque<SeriesTurn>,
    /// True: a change was left out, as too many waited.
    is_full: bool,
}

/// A command that runs, since when, and the series that it is about.
struct RunningCommand {
    program: Program,
    begun: Instant,
    labels: LabelSet,
}

impl Hook {
    pub(super) fn new(words: &[OsString], expr: &str) -> Hook {
        Hook {
            words: words.to_vec(),
            expr: expr.into(),
            running: Vec::new(),
            waiting: VecDeque::new(),
            is_full: false,
        }
    }

    /// Starts the command of a change as soon as there is room; this does not wait for it.
    pub(super) fn put(&mut self, change: SeriesTurn) {
        if self.waiting.len() >= WAITING_MAX {
            if !std::mem::replace(&mut self.is_full, true) {
                talk::say(format_args!(
                    "kymo: {WAITING_MAX} begins and ends wait for commands: more are left out"
                ));
            }
            return;
        }
        self.is_full = false;
        self.waiting.push_back(change);
        self.tend();
    }

    /// Sees which commands have ended, kills those that take too long, and starts others.
    pub(super) fn tend(&mut self) {
        let now = Instant::now();
        self.running.retain_mut(|running| {
            if let Some(status) = running.program.ended() {
                if !status.success() {
                    talk::say(format_args!("kymo: the command has failed: {status}"));
                }
                return false;
            }
            if now.duration_since(running.begun) > TIME_MAX {
                let seconds = TIME_MAX.as_secs();
                talk::say(format_args!(
                    "kymo: the command ran for {seconds} s and is killed"
                ));
                running.program.kill();
                // The next look sees the end.
                running.begun = now;
            }
            true
        });
        while self.running.len() < RUNNING_MAX
            && let Some(change) = self.next_waiting()
        {
            self.start(change, now);
        }
    }

    /// The first change that waits for a place alone: a series' begin and end come one after the other.
    fn next_waiting(&mut self) -> Option<SeriesTurn> {
        let runs = |change: &SeriesTurn| {
            let mut running = self.running.iter();
            running.any(|running| running.labels == change.labels)
        };
        let place = self.waiting.iter().position(|change| !runs(change))?;
        self.waiting.remove(place)
    }

    /// Waits until no change waits, and at most `running_max` commands run; `false`: it was stopped before.
    pub(super) fn catch_up(&mut self, running_max: usize, is_stopped: &dyn Fn() -> bool) -> bool {
        while !self.waiting.is_empty() || self.running.len() > running_max {
            if is_stopped() {
                return false;
            }
            thread::sleep(PAUSE);
            self.tend();
        }
        true
    }

    /// Gives the commands that run a little time, and kills the others.
    pub(super) fn end(&mut self) {
        self.waiting.clear();
        let begun = Instant::now();
        self.catch_up(0, &|| begun.elapsed() > GRACE);
        self.running
            .iter()
            .for_each(|running| running.program.kill());
    }

    fn start(&mut self, change: SeriesTurn, now: Instant) {
        let Some((program, arguments)) = self.words.split_first() else {
            return;
        };
        let mut command = Command::new(program);
        command.args(arguments);
        for (name, value) in environment(&change, &self.expr) {
            command.env(name, value);
        }
        match Program::start(&mut command, Output::Shared) {
            Ok(program) => self.running.push(RunningCommand {
                program,
                begun: now,
                labels: change.labels,
            }),
            Err(error) => talk::say(format_args!(
                "kymo: cannot run {}: {error}",
                DisplayName(program.as_encoded_bytes())
            )),
        }
    }
}

/// Names and values of the environment of a change.
fn environment(change: &SeriesTurn, expr: &str) -> Vec<(String, String)> {
    let zone = kymo_rrd::zone::own_zone();
    let of_labels = change.labels.iter().filter(|(name, _)| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        *name != METRIC && name.chars().all(is_plain)
    });
    let of_labels = of_labels.map(|(name, value)| (format!("LABEL_{name}"), value.to_string()));
    let own = [
        ("STATE", change.turn.name().into()),
        ("EXPR", expr.into()),
        ("VALUE", query::number(change.v)),
        ("TIME", series::sample_time(change.t_ms, &zone)),
        ("TIME_MS", change.t_ms.to_string()),
        ("NAME", change.labels.metric().to_string()),
        ("LABELS", query::promql(&change.labels)),
    ];
    let own = own.map(|(name, value)| (name.to_string(), value));
    own.into_iter()
        .chain(of_labels)
        .map(|(name, value)| (format!("KYMO_WATCH_{name}"), passable(&value)))
        .collect()
}

/// A value that an environment may have: no byte of zero, and not too long.
fn passable(value: &str) -> String {
    let mut value = value.replace('\0', "\u{fffd}");
    let end = (0..=VALUE_MAX.min(value.len())).rev();
    let end = end.into_iter().find(|&end| value.is_char_boundary(end));
    value.truncate(end.unwrap_or(0));
    value
}

#[cfg(test)]
mod tests {
    use super::super::held::Turn;
    use super::*;

    fn change(labels: &[(&str, &str)]) -> SeriesTurn {
        SeriesTurn {
            turn: Turn::Begins,
            t_ms: 1500,
            labels: LabelSet::new(labels),
            v: 0.5,
        }
    }

    #[test]
    fn hostile_labels_are_values_alone() {
        let long = "\u{e9}".repeat(VALUE_MAX);
        let change = change(&[
            ("__name__", "up"),
            ("a", "$(rm -rf /)\n\0"),
            ("b=PATH", "x"),
            ("c", &long),
        ]);
        let environment = environment(&change, "up\0 > 0");
        let value = |name: &str| {
            let mut found = environment.iter().filter(|(known, _)| known == name);
            found.next().map(|(_, value)| value.as_str())
        };
        assert_eq!(value("KYMO_WATCH_STATE"), Some("begins"));
        assert_eq!(value("KYMO_WATCH_VALUE"), Some("0.5"));
        assert_eq!(value("KYMO_WATCH_EXPR"), Some("up\u{fffd} > 0"));
        assert_eq!(value("KYMO_WATCH_NAME"), Some("up"));
        assert_eq!(value("KYMO_WATCH_LABEL_a"), Some("$(rm -rf /)\n\u{fffd}"));
        assert_eq!(value("KYMO_WATCH_LABEL_b=PATH"), None);
        for (name, value) in &environment {
            assert!(!name.contains(['=', '\0']) && !value.contains('\0'));
            assert!(value.len() <= VALUE_MAX, "{name}");
        }
    }

    /// A command that does not end keeps its place alone, and no start waits for it.
    #[test]
    fn commands_that_hang_delay_nobody() {
        let words = ["/bin/sleep".into(), "1000".into()];
        let mut hook = Hook::new(&words, "up");
        let numbers = 0..RUNNING_MAX + 3;
        let names: Vec<String> = numbers.map(|number| number.to_string()).collect();
        for name in &names {
            hook.put(change(&[("a", name)]));
        }
        assert_eq!((hook.running.len(), hook.waiting.len()), (RUNNING_MAX, 3));
        // The end of a series waits for the command of its begin.
        hook.running[0].program.kill();
        hook.waiting.push_front(change(&[("a", "1")]));
        while hook.waiting.len() == 4 {
            hook.tend();
        }
        assert_eq!(hook.waiting.front(), Some(&change(&[("a", "1")])));
        assert_eq!((hook.running.len(), hook.waiting.len()), (RUNNING_MAX, 3));
        hook.waiting.clear();
        hook.running
            .iter()
            .for_each(|running| running.program.kill());
        assert!(hook.catch_up(0, &|| false));
    }
}
