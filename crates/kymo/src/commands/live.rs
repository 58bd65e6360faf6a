//! Live view on the terminal: the sampler's records go straight to a view.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::Result;
use kymo_base::context::Context;
use kymo_base::track::Tracks;
use kymo_query::live::{Live, Refresh};
use kymo_query::source::{Moment, Source, Step};
use kymo_recording::queue::Queue;
use kymo_sys::clock::{Clock as _, RealClock};
use kymo_sys::machine::Signals;
use kymo_sys::talk;
use kymo_view::processes::Filter;

use super::play::names;
use crate::options::{RecordOptions, ViewOptions};
use crate::output;
use crate::output::Pace;
use crate::output::broadcast::{Audience, Broadcast, Manner};
use crate::output::show;
use crate::process::notices::{Notices, SLOW};
use crate::recorder::session::{self, Session, Setup, spawn, wait_for_end};

/// Runs the command.
pub(crate) fn run(
    options: &RecordOptions,
    view: &ViewOptions,
    audience: &Audience,
) -> Result<ExitCode> {
    let signals = Signals::block();
    let setup = Setup::new(options, Some(view))?;
    check(&setup.letters, view, plot_dir(options, view))?;
    if view.texts.showheader {
        return header(&setup, view);
    }
    // Now, while there is one thread.
    let clients = clients(options, view, audience, &setup)?;
    let session = Session::start(&setup, Arc::default())?;
    let stop = session.stopper();
    spawn("signals", move || {
        // An interval is printed as soon as it ends, so there is nothing to flush.
        wait_for_end(&signals, &stop, &|| ())
    })?;
    session::say_waiting(&setup, options.familiar.quiet);
    let (control, facts) = (session.control.clone(), setup.facts.clone());
    let refresh = move || {
        let changed = control.devices_changed.swap(false, Ordering::Relaxed);
        changed.then(|| facts.gather())
    };
    let dir = plot_dir(options, view);
    let shown = show(
        &setup,
        (&setup.letters, view),
        (dir, clients),
        (session.queue.clone(), Box::new(refresh)),
        Some(Notices::default()),
    );
    (session.stopper())();
    session.join();
    shown.map(|()| ExitCode::SUCCESS)
}

/// `--showheader`: prints the head of a plot file of this machine.
fn header(setup: &Setup, view: &ViewOptions) -> Result<ExitCode> {
    let options = show::options(&setup.letters, view, None, None, Pace::Live);
    let now = RealClock.now();
    let moment = Moment {
        real_ns: now.real_ns,
        boot_ns: now.boot_ns,
        ..Moment::default()
    };
    let options = options.map_err(anyhow::Error::msg)?;
    let text = kymo_view::header(&setup.context, moment, &options);
    output::put(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Clients that get the output, too.
fn clients(
    options: &RecordOptions,
    view: &ViewOptions,
    audience: &Audience,
    setup: &Setup,
) -> Result<Option<Broadcast>> {
    let usage = anyhow::Error::msg;
    let Some(place) = audience.place(options.as_collectl).map_err(usage)? else {
        return Ok(None);
    };
    let filter = view.procfilt.as_deref().map(Filter::parse).transpose();
    let asks = filter
        .map_err(usage)?
        .is_some_and(|filter| filter.asks_for_private());
    if place.is_open() && asks {
        anyhow::bail!(
            "cannot use --procfilt: command lines, control groups and users are for clients of a unix socket alone; it takes c C p P with this -A"
        );
    }
    if place.is_open() && setup.letters.contains(['g', 'G']) {
        anyhow::bail!(
            "cannot use -s {}: control groups are named after users; they are for clients of a unix socket alone",
            setup.letters
        );
    }
    if options.daemon.daemon && !place.is_server() {
        anyhow::bail!("cannot use -D: not with an -A that connects");
    }
    let manner = Manner {
        host: setup.context.get("host").unwrap_or("localhost").into(),
        echo: !options.as_collectl,
        marks_ends: view.shape.is_lines(),
        quiet: options.familiar.quiet,
    };
    Broadcast::begin(&place, manner).map(Some)
}

/// The folder of plot files.
pub(crate) fn plot_dir<'a>(options: &'a RecordOptions, view: &ViewOptions) -> Option<&'a Path> {
    options.dir.as_deref().filter(|_| view.plot)
}

/// Refuses wrong switches before anything begins.
pub(crate) fn check(letters: &str, view: &ViewOptions, dir: Option<&Path>) -> Result<()> {
    let options = show::options(letters, view, dir, None, Pace::Live);
    options.map(|_| ()).map_err(anyhow::Error::msg)
}

/// Shows `letters` of the samples from `queue`, until it is closed or the count is reached. `notices`: reports slow
/// files, if no writer does.
pub(crate) fn show(
    setup: &Setup,
    (letters, view): (&str, &ViewOptions),
    (dir, clients): (Option<&Path>, Option<Broadcast>),
    (queue, refresh): (Arc<Queue>, Refresh),
    notices: Option<Notices>,
) -> Result<()> {
    let options = show::options(letters, view, dir, setup.schedule.count, Pace::Live);
    let mut options = options.map_err(anyhow::Error::msg)?;
    options.hides_private = clients.as_ref().is_some_and(Broadcast::is_open);
    let live = Live::new(queue, setup.context.clone(), refresh);
    let mut live = Undisturbed { live, notices };
    let shown = show::run(&mut live, &options, view, (dir, clients), Pace::Live)?;
    if shown.samples > 0 && shown.absent.len() == letters.len() {
        let names = names(&shown.absent);
        talk::say(format_args!("kymo: there is no {names} on this machine"));
    }
    Ok(())
}

/// Shows samples on stdout, and reports slow files on stderr, never between rows.
struct Undisturbed {
    live: Live,
    notices: Option<Notices>,
}

impl Source for Undisturbed {
    fn next(&mut self) -> Result<Option<Step>, String> {
        loop {
            match self.live.next()? {
                Some(Step::Event(_, text)) if text.starts_with(SLOW) => {
                    if let Some(notices) = &mut self.notices {
                        notices.say(&text);
                    }
                }
                step => return Ok(step),
            }
        }
    }

    fn tracks(&self) -> &Tracks {
        self.live.tracks()
    }

    fn context(&self) -> &Context {
        self.live.context()
    }
}
