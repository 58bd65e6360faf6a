//! One configuration while it is polled: poller, runner, thresholds, cache of interfaces, and messages.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use kymo_poll::batch::{About, Uptime};
use kymo_poll::engine::{self, Cache, Empty, Happening, Pace, Stamps};
use kymo_poll::graphite::Graphite;
use kymo_poll::pages::{PageFolders, TargetPage};
use kymo_poll::poller::{Keeping, Poller, PollerSettings, Turn, device_names};
use kymo_poll::runner::{Commands, Runner, RunnerMessage};
use kymo_poll::sink::{
    Cached, Files, Home, Keeper, Logs, Series, Sink, TargetClone, clone_folders,
};
use kymo_poll::threshold::{Action, Measured, ThresholdMail, Thresholds};
use kymo_poll::watch::Watch;
use kymo_poll::{description, news};
use kymo_rrd::zone::own_zone;
use kymo_sys::clock::{Clock, RealClock};
use kymo_sys::disk::RealDisk;
use kymo_sys::machine;
use kymo_wire::mrtg_cfg::{Config, ConfigText, Globals, LogFormat, decoded};
use kymo_wire::targets::{Reason, TargetsHead};

use super::bell::Bell;
use super::check::Debugging;
use super::folders::{WrittenFolders, draws_pages};
use super::rarely::Rarely;
use super::{Draws, PollLog, Settings, reading};

/// Least time for which a new configuration waits for a moment in which nothing is under way; a longer interval is waited for.
const RELOAD_PATIENCE: Duration = Duration::from_secs(10);
/// Interval between two checks whether the configuration has changed.
const WATCH: Duration = Duration::from_secs(10);
/// Most lines about refused values in a row.
const REFUSALS: usize = 10;
/// Words of MRTG for the uptime and the name that a command does not print.
const NO_LINE: &[u8] = b"unknown";
/// Most targets that a line names.
const TARGETS_LISTED: usize = 50;

/// A configuration that is polled.
pub(super) struct Part {
    file: PathBuf,
    /// Name of the configuration's series and descriptions.
    name: String,
    cache_file: PathBuf,
    poller: Poller,
    runner: Option<Runner>,
    /// Fingerprint of the configuration's commands: the runner must have read the same ones.
    fingerprint: u64,
    agrees: bool,
    thresholds: Thresholds,
    mail: Option<ThresholdMail>,
    homes: Vec<Home>,
    names: Vec<String>,
    watch: Watch,
    folders: WrittenFolders,
    looked: Instant,
    descriptions: Option<PathBuf>,
    reasons: WrittenReasons,
    /// Folder of all files that the command line says instead of LogDir and the others.
    own_log_dir: Option<PathBuf>,
    draws: Draws,
    rarely: Rarely,
    log: Arc<PollLog>,
    left_out: usize,
}

impl Part {
    /// Prepares the `number`-th configuration of the settings.
    pub(super) fn prepare(
        number: usize,
        mut config: Config,
        runner: Option<Runner>,
        settings: &Settings,
    ) -> Result<Part, String> {
        let (file, cache_file) = (&settings.files[number], &settings.places.caches[number]);
        let log = settings.log.clone();
        let clock: Arc<dyn Clock> = Arc::new(RealClock);
        let name = &settings.places.names[number];
        let (sinks, homes) = sinks(&config, number, settings, &clock)?;
        forget_undrawn(&mut config, settings.draws);
        let thresholds = Thresholds::of(&config, file);
        say_undone(&config, settings);
        let poller_settings = PollerSettings {
            pace: match settings.burst || !settings.forever {
                true => Pace::Burst,
                false => Pace::Spread,
            },
            stamps: match settings.integer_stamps {
                true => Stamps::Whole,
                false => Stamps::Exact,
            },
            polls_once: !settings.forever,
            asks_names: draws_pages(&config, settings.draws),
        };
        let cache = read_cache(cache_file, &config);
        let names = device_names(&config);
        let draws = settings.draws;
        let own_log_dir = settings.log_dir.clone();
        let pages = pages(&config, draws, own_log_dir.as_deref());
        let clones = clones(&config, own_log_dir.as_deref());
        let keeping = keeping(&config, &homes, (pages, clones), &thresholds, &names, &log)?;
        let descriptions = settings.descriptions.clone();
        describe(&config, name, descriptions.as_deref(), &homes, &names, &log);
        let mail = mail(&config, &log);
        config.forget_pages();
        let fingerprint = Commands::of(&config).fingerprint();
        Ok(Part {
            watch: watch(&config),
            folders: WrittenFolders::of(&config, own_log_dir.as_deref(), draws),
            looked: Instant::now(),
            descriptions,
            reasons: WrittenReasons::default(),
            own_log_dir,
            draws,
            left_out: config.left_out().len(),
            poller: Poller::start(
                Arc::new(config),
                poller_settings,
                &cache,
                sinks,
                keeping,
                clock,
            )
            .map_err(|error| format!("cannot poll {}: {error}", file.display()))?,
            file: file.clone(),
            name: name.clone(),
            cache_file: cache_file.clone(),
            runner,
            fingerprint,
            agrees: false,
            thresholds,
            mail,
            homes,
            names,
            rarely: Rarely::new(),
            log,
        })
    }

    /// Polls, once or until the bell asks to end. Returns the numbers of polled targets, and of those without a
    /// value.
    pub(super) fn run(
        &mut self,
        bell: &Bell,
        woken: BorrowedFd<'_>,
        forever: bool,
        programs: Duration,
    ) -> Result<(usize, usize), String> {
        let mut reads = bell.reads.load(Ordering::Acquire);
        let mut wanted_since: Option<Instant> = None;
        self.poller.await_names();
        loop {
            self.turn(woken)?;
            if bell.ends.load(Ordering::Acquire) {
                return Ok((0, 0));
            }
            if !forever {
                if self.poller.is_round_over() {
                    break;
                }
                continue;
            }
            let bell_reads = bell.reads.load(Ordering::Acquire);
            let is_asked = std::mem::replace(&mut reads, bell_reads) != bell_reads;
            if is_asked | self.has_changed() {
                wanted_since.get_or_insert_with(Instant::now);
            }
            if wanted_since.is_some_and(|since| self.may_reload(since)) {
                wanted_since = None;
                self.reload()?;
            }
        }
        if let Some(runner) = self.runner.take() {
            runner.finish(programs, &mut |line| {
                self.log.say(&String::from_utf8_lossy(line));
            });
        }
        if let Some(mail) = self.mail.take() {
            mail.finish();
        }
        let (targets, unknown) = self.poller.targets_done();
        Ok((targets + self.left_out, unknown + self.left_out))
    }

    /// True if the configuration may be read again: nothing is under way, or somebody has waited for that long enough. Values that
    /// are under way then are missing.
    fn may_reload(&self, since: Instant) -> bool {
        let interval = Duration::from_secs(self.poller.config().globals().interval_s.into());
        let is_late = since.elapsed() >= interval.max(RELOAD_PATIENCE);
        self.poller.is_idle() || is_late && self.poller.has_room()
    }

    fn turn(&mut self, woken: BorrowedFd<'_>) -> Result<(), String> {
        let turn = {
            let mut files = vec![woken];
            files.extend(self.runner.as_ref().map(AsFd::as_fd));
            self.poller.turn(&files, WATCH)
        };
        let turn = turn.map_err(|error| format!("cannot poll: {error}"))?;
        if turn.is_called {
            drain(woken);
        }
        for &reading in &turn.commands {
            match &mut self.runner {
                Some(runner) => runner.ask(reading),
                None => self.poller.command_done(reading, [None, None], None),
            }
        }
        self.hear_runner()?;
        self.report(&turn);
        self.write_reasons();
        if let Some(cache) = &turn.cache {
            self.write_cache(cache);
        }
        Ok(())
    }

    fn hear_runner(&mut self) -> Result<(), String> {
        while let Some(event) = self.runner.as_mut().and_then(Runner::take) {
            match event {
                RunnerMessage::Loaded { fingerprint } => {
                    self.agrees = fingerprint == self.fingerprint;
                    if !self.agrees {
                        let line =
                            "cannot run commands: the configuration was changed while it was read";
                        self.log.say(line);
                    }
                }
                RunnerMessage::Answer { number, answer } => {
                    let [first, second] = &answer.values;
                    let values = [first.as_deref(), second.as_deref()];
                    // If the runner has read another state of the configuration, the number belongs to another
                    // command.
                    let values = values.map(|value| value.filter(|_| self.agrees));
                    let words = |line: &Option<Vec<u8>>| -> Arc<[u8]> {
                        line.as_deref().unwrap_or(NO_LINE).into()
                    };
                    let about = self.agrees.then(|| About {
                        uptime: Uptime::Words(words(&answer.uptime)),
                        name: Some(words(&answer.name)),
                    });
                    self.poller.command_done(number, values, about);
                }
                RunnerMessage::Line(line) => self.log.say(&String::from_utf8_lossy(&line)),
                RunnerMessage::Gone => {
                    return Err("cannot go on: the runner of commands has ended".into());
                }
            }
        }
        Ok(())
    }

    /// Logs messages, and checks thresholds against rates.
    fn report(&mut self, turn: &Turn) {
        for line in &turn.complaints {
            self.log.say(line);
        }
        for happening in sayable(&turn.happenings, &self.names) {
            let line = line_of(happening, &self.names, self.poller.config());
            self.log.say(&line);
        }
        let mut refused = 0;
        for report in &turn.reports {
            for line in &report.troubles {
                self.log.say(line);
            }
            for refusal in &report.refused {
                refused += 1;
                if refused <= REFUSALS {
                    self.rarely.say(refusal.cause.clone(), &self.log);
                }
            }
            for rate in &report.rates {
                let known = |values: [f64; 2]| values.map(|of| (!of.is_nan()).then_some(of));
                let measured = Measured {
                    rates: known(rate.rates),
                    failures: known(rate.failures),
                };
                let (log, mail) = (&self.log, &self.mail);
                let mut runner = self.runner.as_mut().filter(|_| self.agrees);
                let mut act = |action: Action, rate| {
                    runner.iter_mut().for_each(|runner| runner.act(action));
                    let mailed = mail
                        .as_ref()
                        .map_or(Ok(()), |mail| mail.send(&action, rate));
                    if let Err(line) = mailed {
                        log.say(&line);
                    }
                };
                let mut say = |line: String| log.say(&line);
                self.thresholds
                    .check(rate.target, measured, &mut act, &mut say);
            }
        }
        if refused > REFUSALS {
            let line = format!("and {} values more were refused", refused - REFUSALS);
            self.rarely.say(line, &self.log);
        }
    }

    /// Writes the reasons of missing values for the page, but not at each change.
    fn write_reasons(&mut self) {
        let Some(folder) = &self.descriptions else {
            return;
        };
        let changes = self.poller.reasons_changed();
        if !self.reasons.is_due(changes) {
            return;
        }
        let mut by_reason: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (target, session, why) in self.poller.reasons() {
            let device = self.names.get(session).map_or("?", String::as_str);
            let name = self.poller.config().target(target).name();
            let targets = by_reason.entry(format!("{device} {}", news::reason(why)));
            let name = decoded(&name);
            targets.or_default().push(name);
        }
        let reasons = by_reason.into_iter();
        let reasons: Vec<Reason> = reasons
            .map(|(why, targets)| Reason { why, targets })
            .collect();
        if let Err(error) = description::write_reasons(&RealDisk, folder, &self.name, &reasons) {
            let line = format!("cannot write into {}: {error}", folder.display());
            self.rarely.say(line, &self.log);
        }
    }

    /// True if the configuration has changed. The files are looked at only now and then.
    fn has_changed(&mut self) -> bool {
        if self.looked.elapsed() < WATCH {
            return false;
        }
        self.looked = Instant::now();
        self.watch.changed() | self.folders.have_changed() || self.runner.is_some() && !self.agrees
    }

    /// Reads the configuration again. If that fails, the old state stays.
    fn reload(&mut self) -> Result<(), String> {
        let debugging = Debugging::new(&[], false);
        let read = reading::read_all(std::slice::from_ref(&self.file), &debugging, &self.log);
        let Some(mut config) = read.ok().and_then(|mut configs| configs.pop()) else {
            self.log.say("the configuration stays as it was");
            return Ok(());
        };
        forget_undrawn(&mut config, self.draws);
        self.watch = watch(&config);
        if self.is_elsewhere(&config) {
            return self.start_again();
        }
        let (thresholds, names) = (Thresholds::of(&config, &self.file), device_names(&config));
        let pages = pages(&config, self.draws, self.own_log_dir.as_deref());
        let clones = clones(&config, self.own_log_dir.as_deref());
        let keeping = keeping(
            &config,
            &self.homes,
            (pages, clones),
            &thresholds,
            &names,
            &self.log,
        );
        let keeping = match keeping {
            Ok(keeping) => keeping,
            Err(line) => {
                self.log.say(&line);
                return Ok(());
            }
        };
        (self.thresholds, self.names) = (thresholds, names);
        self.left_out = config.left_out().len();
        let descriptions = self.descriptions.as_deref();
        let (homes, names) = (&self.homes, &self.names);
        describe(&config, &self.name, descriptions, homes, names, &self.log);
        self.mail = mail(&config, &self.log);
        config.forget_pages();
        self.poller.reload(Arc::new(config), keeping);
        self.reasons = WrittenReasons::default();
        self.load_commands();
        self.log
            .say(&format!("{} was read again", self.file.display()));
        Ok(())
    }

    /// True if the new configuration needs folders or servers that the sandbox does not allow.
    fn is_elsewhere(&self, config: &Config) -> bool {
        let (old, new) = (self.poller.config().globals(), config.globals());
        let places = |globals: &Globals| {
            (
                globals.log_format == LogFormat::Rrdtool,
                globals.thresh_dir.clone(),
                rrdcached(globals),
                globals.send_to_graphite.clone(),
                globals.thresh_mail.clone(),
            )
        };
        let folders = |globals: &Globals| {
            let PageFolders { html, images } = PageFolders::of(globals, None);
            [globals.log_dir.clone(), html, images]
        };
        let is_moved = folders(old) != folders(new) && self.own_log_dir.is_none();
        let written = WrittenFolders::of(config, self.own_log_dir.as_deref(), self.draws);
        let is_moved = is_moved || !self.folders.have(&written);
        let clones = |config: &Config| clone_folders(config, &config.globals().log_dir);
        let is_cloned = clones(self.poller.config()) != clones(config);
        is_moved || is_cloned || places(old) != places(new)
    }

    /// Ends a poller of `kymo serve`, which starts it again; a poller of its own keeps the old configuration.
    fn start_again(&self) -> Result<(), String> {
        let file = self.file.display();
        if self.descriptions.is_some() {
            return Err(format!(
                "cannot go on: {file} has other folders or servers; polling begins again with them"
            ));
        }
        self.log.say(&format!(
            "cannot poll as {file} says now: its folders or servers are others than when polling began; start kymo poll again. \
             The configuration stays as it was"
        ));
        Ok(())
    }

    /// Lets the runner read the configuration again, too.
    fn load_commands(&mut self) {
        let commands = Commands::of(self.poller.config());
        self.fingerprint = commands.fingerprint();
        match &mut self.runner {
            Some(runner) => runner.load(),
            None if commands.is_empty() => {}
            None => self.log.say(&format!(
                "cannot run the commands of {}: it had none when polling began; start it again",
                self.file.display()
            )),
        }
    }

    /// Writes the interfaces' numbers for the next start. Without them that start costs a few packets more.
    fn write_cache(&mut self, cache: &Cache) {
        use std::io::Write;
        use std::os::unix::fs::OpenOptionsExt;
        let beside = self.cache_file.with_extension("ok.new");
        let mut options = std::fs::OpenOptions::new();
        let options = options.write(true).create(true).truncate(true).mode(0o600);
        let written = options
            .open(&beside)
            .and_then(|mut file| file.write_all(&cache.text()))
            .and_then(|()| std::fs::rename(&beside, &self.cache_file));
        if let Err(error) = written {
            let line = format!("cannot write {}: {error}", self.cache_file.display());
            self.rarely.say(line, &self.log);
        }
    }
}

/// State of the reasons that were written for the page.
#[derive(Default)]
struct WrittenReasons(Option<(u64, Instant)>);

impl WrittenReasons {
    /// Shortest time between two writes of the reasons.
    const AGAIN: Duration = Duration::from_secs(2);

    /// True if the reasons have to be written now; `changes`: number of changes so far.
    fn is_due(&mut self, changes: u64) -> bool {
        let is_known = |&(known, at): &(u64, Instant)| {
            known == changes || at.elapsed() < WrittenReasons::AGAIN
        };
        if self.0.as_ref().is_some_and(is_known) {
            return false;
        }
        self.0 = Some((changes, Instant::now()));
        true
    }
}

/// Writes descriptions of targets for the page of kymo serve.
fn describe(
    config: &Config,
    name: &str,
    folder: Option<&Path>,
    homes: &[Home],
    names: &[String],
    log: &PollLog,
) {
    let (Some(folder), Some(home)) = (folder, homes.first()) else {
        return;
    };
    let count = u32::try_from(config.targets().len()).unwrap_or(u32::MAX);
    let head = TargetsHead::new(name.to_string(), config.globals().interval_s, count);
    let series = Series::of_all(config, home);
    let mut described = config
        .targets()
        .zip(&series)
        .map(|(target, series)| description::described(config, target, names, &series.name));
    let written = description::write(&RealDisk, folder, name, &head, &mut described);
    if let Err(error) = written {
        let line = format!("cannot write into {}: {error}", folder.display());
        log.say(&line);
    }
}

/// Watches the configuration's files for changes.
fn watch(config: &Config) -> Watch {
    use std::os::unix::ffi::OsStrExt;
    let paths = config.file_paths().iter();
    Watch::of(paths.map(|path| PathBuf::from(std::ffi::OsStr::from_bytes(path))))
}

/// Rules for keeping values of a configuration, for the sinks of these homes.
fn keeping(
    config: &Config,
    homes: &[Home],
    (pages, clones): (Vec<TargetPage>, Vec<Option<TargetClone>>),
    thresholds: &Thresholds,
    names: &[String],
    log: &Arc<PollLog>,
) -> Result<Keeping, String> {
    let log = log.clone();
    let graphite = Graphite::start(config, move |line| log.say(line));
    Ok(Keeping {
        series: homes
            .iter()
            .map(|home| Series::of_all(config, home))
            .collect(),
        pages,
        clones,
        watched: thresholds.watched(),
        graphite: graphite.map_err(|error| format!("cannot send to graphite: {error}"))?,
        interval_s: config.globals().interval_s,
        devices: names.to_vec(),
    })
}

/// The sender of mails of thresholds, if the configuration has one.
fn mail(config: &Config, log: &Arc<PollLog>) -> Option<ThresholdMail> {
    let thread_log = log.clone();
    let started = ThresholdMail::start(config, &machine::host(), move |line| thread_log.say(line));
    started.unwrap_or_else(|error| {
        log.say(&format!("cannot send mail of thresholds: {error}"));
        None
    })
}

/// Pages of a configuration, if they are drawn.
fn pages(config: &Config, draws: Draws, log_dir: Option<&Path>) -> Vec<TargetPage> {
    if !draws_pages(config, draws) {
        return Vec::new();
    }
    let folders = PageFolders::of(config.globals(), log_dir);
    TargetPage::of_all(config, &folders, &own_zone())
}

/// Forgets questions that only pages need, if none are drawn.
fn forget_undrawn(config: &mut Config, draws: Draws) {
    if !draws_pages(config, draws) {
        config.forget_abouts();
    }
}

/// Copies of targets' files, of a configuration with logs of MRTG's own.
fn clones(config: &Config, log_dir: Option<&Path>) -> Vec<Option<TargetClone>> {
    let globals = config.globals();
    match globals.log_format {
        LogFormat::Rateup => TargetClone::of_all(config, log_dir.unwrap_or(&globals.log_dir)),
        LogFormat::Rrdtool => Vec::new(),
    }
}

/// Reads all bytes of the pipe that woke the thread.
fn drain(woken: BorrowedFd<'_>) {
    while machine::wait_readable(&[woken], Duration::ZERO) == [true] {
        match rustix::io::read(woken, &mut [0; 64]) {
            Ok(count) if count > 0 => {}
            _ => return,
        }
    }
}

/// Interfaces' numbers as the last run wrote them.
fn read_cache(file: &Path, config: &Config) -> Cache {
    let keys = config.sessions().iter();
    let wanted: BTreeSet<Vec<u8>> = keys.map(|session| session.cache_key()).collect();
    let text = std::fs::read(file).unwrap_or_default();
    Cache::read(&text, &wanted)
}

/// Sinks for the values of a configuration. The first one's rates are compared with thresholds: those of MRTG's own logs, which
/// are rounded, or else of rrdtool's arithmetic.
fn sinks(
    config: &Config,
    number: usize,
    settings: &Settings,
    clock: &Arc<dyn Clock>,
) -> Result<(Vec<Sink>, Vec<Home>), String> {
    let globals = config.globals();
    let log_dir = settings.log_dir.as_ref().unwrap_or(&globals.log_dir);
    let file = &settings.files[number];
    let named = settings.places.names[number].as_bytes();
    let home = Home::new(log_dir, named, settings.base.as_deref());
    let mut sinks = Vec::new();
    if globals.log_format == LogFormat::Rateup {
        sinks.push(Sink::Logs(logs(log_dir, file)?));
    }
    if let Some(connection) = &settings.keeper {
        sinks.push(Sink::Keeper(Keeper::on(connection.clone())));
    }
    let writes_files = globals.log_format == LogFormat::Rrdtool && !settings.on_demand;
    if writes_files {
        let files = files(log_dir, file)?;
        sinks.push(match rrdcached(globals) {
            Some(address) => Sink::Cached(Cached::at(address.into(), files, clock.clone())),
            None => Sink::Files(files),
        });
    }
    let homes = vec![home; sinks.len()];
    Ok((sinks, homes))
}

/// Says which thresholds are not checked and which pages are not drawn.
pub(super) fn say_undone(config: &Config, settings: &Settings) {
    let globals = config.globals();
    let is_rrd = globals.log_format == LogFormat::Rrdtool;
    let writes_files = is_rrd && !settings.on_demand && rrdcached(globals).is_none();
    if is_rrd && !writes_files && settings.draws == Draws::AllPages {
        settings
            .log
            .say("--pages needs .rrd files that kymo writes itself; no pages are drawn");
    }
    let is_predicted = writes_files && settings.keeper.is_none();
    if !is_predicted && let Some(line) = Thresholds::unpredicted(config) {
        settings.log.say(&line);
    }
}

/// The rrdcached for values: the configuration's, or else that of the environment, as in MRTG.
pub(super) fn rrdcached(globals: &Globals) -> Option<String> {
    let configured = globals.rrdcached.as_deref().map(str::to_string);
    let address = configured.or_else(|| std::env::var("RRDCACHED_ADDRESS").ok());
    address.filter(|address| !address.is_empty())
}

/// The writer of .rrd files for a configuration; fails if another process has it.
fn files(log_dir: &Path, config: &Path) -> Result<Files, String> {
    let cannot = |error: std::io::Error| {
        format!("cannot write .rrd files in {}: {error}", log_dir.display())
    };
    let mut random = [0; 8];
    machine::random(&mut random).map_err(cannot)?;
    let random = u64::from_ne_bytes(random);
    let mut files = Files::new(Arc::new(RealDisk), random).map_err(cannot)?;
    let is_ours = files.claim(log_dir, config).map_err(cannot)?;
    only_writer(is_ours, log_dir, config).map(|()| files)
}

/// The writer of MRTG's own logs for a configuration; fails if another process has it.
fn logs(log_dir: &Path, config: &Path) -> Result<Logs, String> {
    let cannot = |error: std::io::Error| {
        format!("cannot write .log files in {}: {error}", log_dir.display())
    };
    let mut logs = Logs::new(Arc::new(RealDisk)).map_err(cannot)?;
    let is_ours = logs.claim(log_dir, config).map_err(cannot)?;
    only_writer(is_ours, log_dir, config).map(|()| logs)
}

fn only_writer(is_ours: bool, log_dir: &Path, config: &Path) -> Result<(), String> {
    match is_ours {
        true => Ok(()),
        false => Err(format!(
            "cannot write into {}: another kymo poll does so for {}",
            log_dir.display(),
            config.display()
        )),
    }
}

/// A line about an event of one of these devices.
fn line_of(happening: &Happening, names: &[String], config: &Config) -> String {
    let name = names.get(happening.session()).map_or("?", String::as_str);
    let line = format!("{name} {}", news::words(happening));
    let (before, targets) = match happening {
        Happening::Empty { targets, .. } => ("no value for ", targets),
        Happening::Narrow { targets, .. } | Happening::FirstNumber { targets, .. } => ("", targets),
        Happening::Silent { .. }
        | Happening::Back { .. }
        | Happening::Restarted { .. }
        | Happening::AgentRestarted { .. } => return line,
    };
    let line = format!("{line}: {before}{}", listed(targets, config));
    let is_fast = |&target: &usize| engine::outruns_32_bits(config, config.target(target));
    let is_narrow = matches!(happening, Happening::Narrow { .. });
    let fast: Vec<usize> = targets.iter().copied().filter(is_fast).collect();
    match is_narrow && !fast.is_empty() {
        true => format!(
            "{line}; of 1 Gbit/s or more, where values are lost: {}",
            listed(&fast, config)
        ),
        false => line,
    }
}

/// Names of targets, with their number if there are several.
pub(super) fn listed(targets: &[usize], config: &Config) -> String {
    let listed = targets.iter().take(TARGETS_LISTED);
    let listed = listed.map(|&target| ConfigText(&config.target(target).name()).to_string());
    let listed = listed.collect::<Vec<_>>().join(", ");
    let count = match targets.len() {
        1 => String::new(),
        count => format!("{count} targets: "),
    };
    match targets.len().saturating_sub(TARGETS_LISTED) {
        0 => format!("{count}{listed}"),
        more => format!("{count}{listed} and {more} more"),
    }
}

/// Events that get a line. The line with a silent device's targets replaces the line about the silence itself.
fn sayable<'a>(
    happenings: &'a [Happening],
    names: &'a [String],
) -> impl Iterator<Item = &'a Happening> {
    let name = |happening: &Happening| names.get(happening.session());
    let is_silence = |of: &&Happening| {
        matches!(
            of,
            Happening::Empty {
                why: Empty::NoAnswer | Empty::NoAnswerToUser,
                ..
            }
        )
    };
    let silent: HashSet<_> = happenings.iter().filter(is_silence).map(name).collect();
    happenings.iter().filter(move |of| match of {
        Happening::Silent { .. } => !silent.contains(&name(of)),
        _ => true,
    })
}
