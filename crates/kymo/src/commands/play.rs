//! `kymo play`: shows recordings and collectl's raw files, and says on stderr which parts it leaves
//! out, and why.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use kymo_base::context::Context;
use kymo_base::name::DisplayName;
use kymo_base::track::Tracks;
use kymo_kernel::subsystem;
use kymo_query::open::Recordings;
use kymo_query::source::{Source, Step};
use kymo_recording::reader::{Kinds, TimeRange};
use kymo_sys::talk;
use kymo_view::options::choices;
use kymo_view::time::Zone;
use kymo_view::{Options, Shown};

use super::texts;
use crate::options;
use crate::options::ViewOptions;
use crate::options::adjusted::Adjusted;
use crate::output::Pace;
use crate::output::show;
use crate::times::{self, days};

/// Exit code when there is nothing to show.
const NOTHING: u8 = 1;
/// Damaged places that are reported one by one.
const REPORTED_MAX: u64 = 10;

/// Options of `kymo play`.
#[derive(Args, Clone, Debug)]
pub(crate) struct PlayOptions {
    /// Recordings: folders, or collectl's raw files
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Subsystems; default: those recorded, which `+x-y` changes
    #[arg(short = 's', long, value_name = "LETTERS", allow_hyphen_values = true)]
    pub subsys: Option<String>,
    /// Write plot files into this folder
    #[arg(short = 'f', long = "filename", value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// End after N intervals
    #[arg(short = 'c', long, value_name = "N", allow_hyphen_values = true)]
    pub count: Option<String>,
    #[command(flatten)]
    pub view: ViewOptions,
}

/// Runs the command.
pub(crate) fn run(play: &PlayOptions) -> Result<ExitCode> {
    let usage = anyhow::Error::msg;
    let count = options::count(play.count.as_deref()).map_err(usage)?;
    let files = Recordings::find(&days::named(&play.paths)?).map_err(usage)?;
    if play.view.texts.is_asked() {
        return recorded_texts(play, &files);
    }
    let moved = play.view.shape.offsettime.is_some();
    let ranges = match files.only_recording().filter(|_| !moved) {
        Some(path) => times::ranges(play.view.from.as_deref(), play.view.thru.as_deref(), path)?,
        None => vec![TimeRange::ALL],
    };
    let edge = |at: Option<&TimeRange>| at.copied().unwrap_or(TimeRange::ALL);
    let range = TimeRange {
        from_ns: edge(ranges.first()).from_ns,
        thru_ns: edge(ranges.last()).thru_ns,
    };
    let letters = match (&play.subsys, play.view.ranked()) {
        (None, Some(letter)) => letter.to_string(),
        (given, _) => {
            let changes = given
                .as_ref()
                .is_none_or(|given| given.starts_with(['+', '-']));
            let recorded = match changes {
                true => fitting(&files.letters(range).map_err(usage)?, play),
                false => String::new(),
            };
            options::letters(given.as_deref(), &recorded).map_err(usage)?
        }
    };
    if letters.is_empty() {
        return Ok(ExitCode::from(NOTHING));
    }
    let letters = show::letters(letters, &play.view);
    let dir = play.dir.as_deref();
    let view = show::options(&letters, &play.view, dir, count, Pace::Played).map_err(usage)?;
    let source = files.open_each(ranges, kinds(&view)).map_err(usage)?;
    let source = Adjusted::new(source, &play.view.shape)?;
    let mut played = Played::new(Box::new(source));
    let shown = show::run(&mut played, &view, &play.view, (dir, None), Pace::Played)?;
    played.finish();
    Ok(if shown.intervals > 0 {
        // Without -s all recorded letters are played, and a machine need not have all of them.
        if !shown.absent.is_empty() && play.subsys.is_some() {
            say(&format!(
                "there is no {} in what was played",
                names(&shown.absent)
            ));
        }
        ExitCode::SUCCESS
    } else {
        say(&format!(
            "nothing to show: {}",
            why_nothing(&shown, letters.len(), &played, &play.view)
        ));
        ExitCode::from(NOTHING)
    })
}

/// Answers a question about recorded texts.
fn recorded_texts(play: &PlayOptions, files: &Recordings) -> Result<ExitCode> {
    let usage = anyhow::Error::msg;
    let secs = play.view.shape.offsettime.unwrap_or(0);
    let times = texts::Between {
        from: play.view.from.as_deref(),
        thru: play.view.thru.as_deref(),
        offset_ns: secs.saturating_mul(1_000_000_000),
    };
    texts::check(&play.view.texts, times, play.subsys.is_some())?;
    let letters = files.letters(TimeRange::ALL).map_err(usage)?;
    let view = show::options(&letters, &play.view, None, None, Pace::Played).map_err(usage)?;
    texts::run(files, &play.view.texts, &view, times)
}

/// Kinds of source that the chosen subsystems need.
fn kinds(view: &Options) -> Kinds {
    view.choices
        .iter()
        .flat_map(|choice| choice.subsystem.sources.iter().copied())
        .collect()
}

fn say(line: &str) {
    talk::say(format_args!("kymo: {}", DisplayName(line.as_bytes())));
}

/// `memory (m), disk (D)`
pub(super) fn names(letters: &[(char, &str)]) -> String {
    let name = |(letter, name): &(char, &str)| format!("{name} ({letter})");
    letters.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// The recorded letters that can be shown; the others are reported.
fn fitting(recorded: &str, play: &PlayOptions) -> String {
    let can_show = |letter: &char| choices(&letter.to_string()).is_ok();
    let (known, others): (String, String) = recorded.chars().partition(can_show);
    let only_collectls: Vec<(char, &str)> = others
        .chars()
        .filter_map(|letter| Some((letter, subsystem::only_collectls(letter)?)))
        .collect();
    if !only_collectls.is_empty() {
        let names = names(&only_collectls);
        say(&format!(
            "not shown: {names}: recorded, but kymo does not show this"
        ));
    }
    match known.is_empty() {
        true if only_collectls.is_empty() => "cdn".into(),
        true => known,
        false => fit_format(known, play),
    }
}

/// True if a letter's instances have lines of their own in plot format.
fn is_long(letter: char) -> bool {
    letter.is_ascii_uppercase() && subsystem::of(letter).is_some_and(|of| of.plot.shape.is_long())
}

/// The letters that fit the format; the others are reported.
fn fit_format(letters: String, play: &PlayOptions) -> String {
    let (long, wide): (String, String) = letters.chars().partition(|&letter| is_long(letter));
    if play.view.plot && play.dir.is_none() && !long.is_empty() && letters.len() > 1 {
        let (shown, rest) = match wide.is_empty() {
            true => long.split_at(1),
            false => (&wide[..], &long[..]),
        };
        say(&format!(
            "not shown: -s {rest}: -P shows each of these alone, and all in files, with -f DIR"
        ));
        return shown.to_string();
    }
    let (summaries, details): (String, String) =
        letters.chars().partition(char::is_ascii_lowercase);
    if play.view.shape.stats && !summaries.is_empty() && !details.is_empty() {
        say(&format!(
            "not shown: -s {details}: --stats is for the brief format"
        ));
        return summaries;
    }
    let tables = details.len() + usize::from(!summaries.is_empty());
    if !play.view.csv || tables <= 1 {
        return letters;
    }
    let shown = match summaries.is_empty() {
        true => details.chars().take(1).collect(),
        false => summaries,
    };
    let rest: String = details
        .chars()
        .filter(|&letter| !shown.contains(letter))
        .collect();
    say(&format!(
        "not shown: -s {rest}: --csv is one table at a time"
    ));
    shown
}

/// Reason for which there was no interval to show.
fn why_nothing(shown: &Shown, filters: usize, played: &Played, view: &ViewOptions) -> String {
    let bound = |switch: &str, time: &Option<String>| Some(format!(" {switch} {}", time.as_ref()?));
    let span: String = [bound("--from", &view.from), bound("--thru", &view.thru)]
        .into_iter()
        .flatten()
        .collect();
    match (shown.samples, shown.within) {
        (0, _) if span.is_empty() => "nothing was recorded".into(),
        (0, _) => format!("nothing was recorded{span}"),
        (_, 0) => format!("nothing was recorded{span}, but {}", played.extent()),
        _ if filters > 0 && shown.absent.len() == filters => {
            format!("there is no {} in what was played", names(&shown.absent))
        }
        _ if shown.left_out > 0 => "no interval has errors of interfaces".into(),
        _ => "rates need two samples one after the other".into(),
    }
}

/// A source that reports its damage while it is read, in any format.
struct Played {
    source: Box<dyn Source>,
    damages: u64,
    /// Times of the first and the last sample, in nanoseconds since 1970.
    extent_ns: Option<(i64, i64)>,
}

impl Played {
    fn new(source: Box<dyn Source>) -> Played {
        Played {
            source,
            damages: 0,
            extent_ns: None,
        }
    }

    fn finish(&self) {
        let more = self.damages.saturating_sub(REPORTED_MAX);
        if more > 0 {
            say(&format!("and {more} more places of damage"));
        }
    }

    /// `from 20261121 21:56:08 to 20261121 21:56:18`
    fn extent(&self) -> String {
        let mut zone = Zone::of(self.source.context());
        let (first_ns, last_ns) = self.extent_ns.unwrap_or_default();
        let mut out = b"from ".to_vec();
        for (ns, then) in [(first_ns, &b" to "[..]), (last_ns, b"")] {
            let local = zone.local(ns);
            local.put_day(&mut out);
            out.push(b' ');
            local.put_time(&mut out);
            out.extend_from_slice(then);
        }
        String::from_utf8_lossy(&out).into_owned()
    }
}

impl Source for Played {
    fn next(&mut self) -> Result<Option<Step>, String> {
        let step = self.source.next()?;
        match &step {
            Some(Step::Damage(why)) => {
                self.damages += 1;
                if self.damages <= REPORTED_MAX {
                    say(why);
                }
            }
            Some(Step::Sample(moment)) if !moment.warmup => {
                let (first_ns, last_ns) =
                    self.extent_ns.unwrap_or((moment.real_ns, moment.real_ns));
                let extent = (first_ns.min(moment.real_ns), last_ns.max(moment.real_ns));
                self.extent_ns = Some(extent);
            }
            _ => {}
        }
        Ok(step)
    }

    fn tracks(&self) -> &Tracks {
        self.source.tracks()
    }

    fn context(&self) -> &Context {
        self.source.context()
    }

    fn stream(&self) -> usize {
        self.source.stream()
    }
}
