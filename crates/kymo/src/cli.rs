//! From the words of a command line to a command: clap reads them, [`crate::options::refuse`] rewords clap's
//! errors.

pub(crate) mod collectl;
#[cfg(feature = "serve")]
mod completions;
mod examples;
mod explain;
pub(crate) mod help;
#[cfg(feature = "serve")]
mod pages;
pub(crate) mod stand_in;
pub(crate) mod styles;
mod topics;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::StyledStr;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::cli::explain::Questions;
#[cfg(feature = "serve")]
use crate::commands::{
    backup, config, discover, export, feed, forward, graph, hub, import, keeper, poll, postgres,
    programs, query, restore, scrape, series, serve, status, top, upstream, verify, watch, why,
};
use crate::commands::{cost, doctor, dump, live, play, record};
use crate::options::refuse;
use crate::options::{ChosenProcesses, RecordOptions, ViewOptions};
use crate::output;
use crate::output::broadcast::Audience;
use crate::process::daemon::{self, DaemonStart};

/// kymo records a Linux machine, and shows which process it was.
#[derive(Parser)]
#[command(
    name = "kymo",
    version,
    infer_long_args = true,
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    classic: Classic,
}

/// Parts of commands that are processes of their own.
#[cfg(feature = "serve")]
#[derive(Subcommand)]
enum PartCommand {
    /// The part of serve that answers; started by it
    #[command(hide = true)]
    Hub,
    /// The part of serve that keeps what others send; started by it
    #[command(hide = true)]
    Keeper,
    /// The part of serve that asks PostgreSQL servers; started by it
    #[command(hide = true)]
    Postgres,
    /// The part of serve that scrapes targets; started by it
    #[command(hide = true)]
    Scrape,
    /// The part of serve that forwards values; started by it
    #[command(hide = true)]
    Forward,
    /// The part of serve that asks another engine for series; started by it
    #[command(hide = true)]
    Upstream,
    /// The part of serve that backs up; started by it
    #[command(hide = true)]
    BackupEvery,
    /// The part of poll that runs a configuration's commands; started by it
    #[command(hide = true)]
    PollRunner {
        /// Give commands the time of a single run
        #[arg(long)]
        once: bool,
        /// The configuration
        file: OsString,
    },
    /// The part of top that runs on each of several machines; started by it
    #[command(hide = true)]
    Feed(feed::FeedOptions),
}

#[derive(Subcommand)]
enum Command {
    /// Record this machine
    Record(RecordCommand),
    /// Show a recording, or a file of collectl
    Play(play::PlayOptions),
    /// Record this machine and show it to browsers and programs
    #[cfg(feature = "serve")]
    Serve(serve::ServeOptions),
    /// Print the configuration of serve with each key explained
    #[cfg(feature = "serve")]
    Config,
    #[cfg(feature = "serve")]
    #[command(flatten)]
    Part(PartCommand),
    /// Find devices that answer SNMP, and write their tables
    #[cfg(feature = "serve")]
    Discover(discover::DiscoverOptions),
    /// Draw graphs into an SVG or PNG file
    #[cfg(feature = "serve")]
    Graph(graph::GraphOptions),
    /// Show the work that programs on this machine publish
    #[cfg(feature = "serve")]
    Programs(programs::ProgramsOptions),
    /// Show a machine, or several, now and at any time back
    #[cfg(feature = "serve")]
    Top(top::TopOptions),
    /// Find the trouble at a time, and its processes
    #[cfg(feature = "serve")]
    Why(why::WhyOptions),
    /// Evaluate an expression of PromQL
    #[cfg(feature = "serve")]
    Query(query::QueryOptions),
    /// Say, or run a command, when an expression begins and ends
    #[cfg(feature = "serve")]
    Watch(watch::WatchOptions),
    /// List, print and remove series that others sent
    #[cfg(feature = "serve")]
    Series(series::SeriesOptions),
    /// Print recorded texts as the kernel gave them
    Dump(dump::DumpOptions),
    /// Write a recording, or a part, into one file
    #[cfg(feature = "serve")]
    Export(export::ExportOptions),
    /// Move what others have kept into the store of serve
    #[cfg(feature = "serve")]
    Import(import::ImportOptions),
    /// Copy the data of serve into a folder of backups, or to S3
    #[cfg(feature = "serve")]
    Backup(backup::BackupOptions),
    /// Make a data folder again from a backup
    #[cfg(feature = "serve")]
    Restore(restore::RestoreOptions),
    /// Measure the cost of reading each source
    Doctor(doctor::DoctorOptions),
    /// Measure the cost of recording
    Cost(RecordOptions),
    /// Check a store, or a recording, for damage
    #[cfg(feature = "serve")]
    Verify(verify::VerifyOptions),
    /// Show contents, size and delays of a store
    #[cfg(feature = "serve")]
    Status(status::StatusOptions),
    /// Show a topic, or the help of a command
    Help {
        /// A topic, or the words of a command
        #[arg(value_name = "TOPIC|COMMAND")]
        words: Vec<String>,
    },
    /// Print completions for bash, zsh or fish
    #[cfg(feature = "serve")]
    Completions(completions::CompletionsOptions),
    /// Write manual pages into a folder
    #[cfg(feature = "serve")]
    Man(pages::ManOptions),
}

/// Options of `kymo record`: the processes to record, but not how to show them.
#[derive(Args)]
struct RecordCommand {
    #[command(flatten)]
    options: RecordOptions,
    #[command(flatten)]
    chosen: ChosenProcesses,
}

/// collectl's style: `-p`, or files alone, play; `-f` records; otherwise this machine is shown live.
#[derive(Args)]
struct Classic {
    /// Play these files or folders
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Play these files or folders
    #[arg(short = 'p', long = "playback", value_name = "PATH", num_args = 1..)]
    playback: Vec<PathBuf>,
    #[command(flatten)]
    record: RecordOptions,
    #[command(flatten)]
    view: ViewOptions,
    #[command(flatten)]
    audience: Audience,
    #[command(flatten)]
    questions: Questions,
}

/// Reason for running nothing.
pub(crate) enum Stop {
    /// Help or version was asked for: the text.
    Say(StyledStr),
    /// A line about the error.
    Refuse(String),
}

/// The word for collectl's command line, and its line of the help.
const COLLECTL: (&str, &str) = (
    "collectl",
    "Run as collectl: switches, settings, exit codes",
);

/// Reads the command line.
pub(crate) fn parse(words: Vec<OsString>) -> Result<Arguments, Stop> {
    read(words, help::dressed(declared()))
}

/// All commands, with the programs that kymo stands in for: these are shown in the help, and `main` has run them before clap is
/// reached.
fn declared() -> clap::Command {
    let shown = stand_in::ALL.iter();
    let shown = shown.map(|program| (program.word, program.about));
    let words = std::iter::once(COLLECTL).chain(shown);
    Arguments::command()
        .subcommands(words.map(|(word, about)| clap::Command::new(word).about(about)))
}

/// Reads collectl's command line: the last one of repeated switches counts, and there are no commands.
pub(crate) fn parse_as_collectl(words: Vec<OsString>) -> Result<Arguments, Stop> {
    let command = declared()
        .args_override_self(true)
        .term_width(0)
        .name("collectl")
        .bin_name("collectl")
        .override_usage("collectl [switches]")
        .help_template("kymo under the name collectl\n\n{usage-heading} {usage}\n\n{options}\n");
    let is_command = |word: &&OsString| {
        let word = word.to_str().unwrap_or_default();
        let is_program = stand_in::ALL.iter().any(|program| program.word == word);
        is_program || Arguments::command().find_subcommand(word).is_some()
    };
    let refused = |word: &OsString| {
        let word = word.to_string_lossy();
        Stop::Refuse(format!(
            "cannot run {word}: collectl has no commands; kymo {word} is one"
        ))
    };
    if let Some(word) = words.get(1).filter(is_command) {
        return Err(refused(word));
    }
    let mut arguments = read(words.clone(), command)?;
    if arguments.command.is_some() {
        let word = words.iter().skip(1).find(is_command);
        return Err(refused(word.unwrap_or(&OsString::new())));
    }
    arguments.classic.record.as_collectl = true;
    arguments.classic.view.shape.as_collectl = true;
    Ok(arguments)
}

fn read(words: Vec<OsString>, command: clap::Command) -> Result<Arguments, Stop> {
    let see = help::of_line(&words, &command);
    let stop = |error: clap::Error| match error.use_stderr() {
        false => Stop::Say(error.render()),
        true => Stop::Refuse(refuse::line(&error, &see)),
    };
    let matches = command.try_get_matches_from(words).map_err(stop)?;
    let mut arguments = Arguments::from_arg_matches(&matches).map_err(stop)?;
    if let Some(answer) = arguments.classic.questions.answer() {
        return Err(Stop::Say(answer));
    }
    if arguments.command.is_none() {
        arguments.classic.check(&matches).map_err(Stop::Refuse)?;
    }
    let view = match &mut arguments.command {
        Some(Command::Play(play)) => &mut play.view,
        _ => &mut arguments.classic.view,
    };
    view.read_files().map_err(Stop::Refuse)?;
    Ok(arguments)
}

/// Switches of the recorder that have a meaning for playback, too.
const ALSO_PLAYED: &[&str] = &[
    "subsys", "count", "dir", "quiet", "nohup", "nice", "comment", "umask", "messages", "config",
    "pname",
];
/// Switches of the recorder that have no meaning if nothing is recorded.
const ONLY_RECORDED: &[&str] = &[
    "cap",
    "keep",
    "sync",
    "rawtoo",
    "show",
    "ack_fd",
    "seal_bytes",
];

impl Classic {
    /// Refuses words that make no sense: a file that does not exist, a switch without effect.
    fn check(&self, matches: &ArgMatches) -> Result<(), String> {
        if let Some(word) = self.files.first().filter(|path| !path.exists()) {
            return Err(no_such(&word.to_string_lossy()));
        }
        if self.audience.address.is_some() {
            self.audience_fits()?;
        }
        if !self.plays() {
            self.texts_fit()?;
        }
        let given = |name: &&str| matches.value_source(name) == Some(ValueSource::CommandLine);
        let switches = RecordOptions::augment_args(clap::Command::new("record"));
        let mut names = switches
            .get_arguments()
            .map(|switch| switch.get_id().as_str());
        let (senseless, why) = match (self.plays(), self.records()) {
            (true, _) => (
                names.find(|name| !ALSO_PLAYED.contains(name) && given(name)),
                "it has no effect on what is played",
            ),
            (_, true) => (None, ""),
            _ => (
                names.find(|name| ONLY_RECORDED.contains(name) && given(name)),
                "nothing is recorded; see -f DIR",
            ),
        };
        match senseless.and_then(|name| switches.get_arguments().find(|s| s.get_id() == name)) {
            Some(switch) => Err(format!("cannot use {}: {why}", refuse::name(switch))),
            None => Ok(()),
        }
    }

    /// Refuses switches for recorded texts if nothing is played.
    fn texts_fit(&self) -> Result<(), String> {
        let texts = &self.view.texts;
        let shows = texts.showheader || texts.showcolheaders;
        let wrong = [
            (
                "--grep",
                texts.grep.is_some(),
                "it is for what is played; see -p",
            ),
            (
                "--extract",
                texts.extract.is_some(),
                "it is for what is played; see -p",
            ),
            (
                "-f",
                shows && self.record.dir.is_some(),
                "not with --showheader and --showcolheaders",
            ),
            (
                "-i",
                texts.showcolheaders && self.record.interval.is_some(),
                "not with --showcolheaders",
            ),
            (
                "-c",
                texts.showcolheaders && self.record.count.is_some(),
                "not with --showcolheaders",
            ),
            (
                "-A",
                shows && self.audience.address.is_some(),
                "not with --showheader and --showcolheaders",
            ),
        ];
        match wrong.iter().find(|(_, given, _)| *given) {
            Some((switch, _, why)) => Err(format!("cannot use {switch}: {why}")),
            None => Ok(()),
        }
    }

    /// Refuses `-A` where it has no use.
    fn audience_fits(&self) -> Result<(), String> {
        let sends = self.view.shape.sends();
        let why = match (self.plays(), self.records(), self.record.dir.is_some()) {
            (true, ..) => "it is for what is shown live",
            (_, true, _) => {
                "the recorder has no clients; a second kymo shows live, kymo serve serves what is recorded"
            }
            (.., true) => "what goes into plot files is not shown",
            _ if sends => "this export is sent to an address of its own",
            _ if self.view.shape.snapshot().is_some() => "this export goes into a file",
            _ => return Ok(()),
        };
        Err(format!("cannot use -A: {why}"))
    }

    fn plays(&self) -> bool {
        !self.playback.is_empty() || !self.files.is_empty()
    }

    /// True if recordings are written. With -P the folder is for plot files, unless `--rawtoo` asks for
    /// recordings as well.
    fn records(&self) -> bool {
        self.record.dir.is_some() && (!self.view.plot || self.record.rawtoo)
    }
}

/// Error for a word that is neither a command nor a file.
fn no_such(word: &str) -> String {
    let word = word.escape_debug();
    match Arguments::command().find_subcommand(word.to_string()) {
        Some(_) => format!("cannot use switches before {word}: put them behind it"),
        None => format!("cannot run {word}: no such command or file; see kymo --help"),
    }
}

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    match arguments.command {
        Some(Command::Record(RecordCommand {
            mut options,
            chosen,
        })) => {
            let view = ViewOptions::default();
            options.chosen = chosen;
            options.chosen.read_file().map_err(anyhow::Error::msg)?;
            options.settle().map_err(anyhow::Error::msg)?;
            in_place(&options.clone(), false, || {
                record::run(&options, options.show.then_some(&view))
            })
        }
        Some(Command::Play(options)) => play::run(&options),
        #[cfg(feature = "serve")]
        Some(Command::Serve(options)) => serve::run(&options),
        #[cfg(feature = "serve")]
        Some(Command::Config) => config::run(),
        #[cfg(feature = "serve")]
        Some(Command::Part(part)) => run_part(part),
        #[cfg(feature = "serve")]
        Some(Command::Discover(options)) => discover::run(&options),
        #[cfg(feature = "serve")]
        Some(Command::Graph(options)) => graph::run(&options),
        #[cfg(feature = "serve")]
        Some(Command::Programs(options)) => programs::run(&options),
        #[cfg(feature = "serve")]
        Some(Command::Why(options)) => why::run(&options),
        #[cfg(feature = "serve")]
        Some(Command::Query(options)) => query::run(&options),
        #[cfg(feature = "serve")]
        Some(Command::Watch(options)) => watch::run(&options),
        #[cfg(feature = "serve")]
        Some(Command::Top(options)) => top::run(&options),
        #[cfg(feature = "serve")]
        Some(Command::Series(options)) => series::run(&options),
        Some(Command::Dump(options)) => dump::run(&options),
        #[cfg(feature = "serve")]
        Some(Command::Export(options)) => export::run(&options),
        #[cfg(feature = "serve")]
        Some(Command::Import(options)) => import::run(&options),
        #[cfg(feature = "serve")]
        Some(Command::Backup(options)) => backup::run(&options),
        #[cfg(feature = "serve")]
        Some(Command::Restore(options)) => restore::run(&options),
        Some(Command::Doctor(options)) => doctor::run(&options),
        Some(Command::Cost(options)) => cost::run(&options),
        #[cfg(feature = "serve")]
        Some(Command::Verify(options)) => verify::run(&options),
        #[cfg(feature = "serve")]
        Some(Command::Status(options)) => status::run(&options),
        Some(Command::Help { words }) => show(&help::page(&words).map_err(anyhow::Error::msg)?),
        #[cfg(feature = "serve")]
        Some(Command::Completions(options)) => show(&completions::script(&options).into()),
        #[cfg(feature = "serve")]
        Some(Command::Man(options)) => pages::run(&options).map(|()| ExitCode::SUCCESS),
        None => classic(arguments.classic),
    }
}

#[cfg(feature = "serve")]
fn run_part(part: PartCommand) -> anyhow::Result<ExitCode> {
    match part {
        PartCommand::Hub => hub::run(),
        PartCommand::Keeper => keeper::run(),
        PartCommand::Postgres => postgres::run(),
        PartCommand::Scrape => scrape::run(),
        PartCommand::Forward => forward::run(),
        PartCommand::Upstream => upstream::run(),
        PartCommand::BackupEvery => backup::run_repeated(),
        PartCommand::PollRunner { once, file } => poll::run_runner(&file, once),
        PartCommand::Feed(options) => feed::run(&options),
    }
}

fn show(text: &StyledStr) -> anyhow::Result<ExitCode> {
    output::put(&styles::for_stdout(text))?;
    Ok(ExitCode::SUCCESS)
}

fn classic(classic: Classic) -> anyhow::Result<ExitCode> {
    let (plays, records) = (classic.plays(), classic.records());
    let Classic {
        files,
        playback,
        record,
        view,
        audience,
        questions: _,
    } = classic;
    record.settle().map_err(anyhow::Error::msg)?;
    let serves = audience.address.is_some();
    in_place(&record.clone(), serves, || {
        run_classic(
            (plays, records),
            (files, playback),
            record,
            (view, audience),
        )
    })
}

/// Runs the command here, or with `-D` in the background.
fn in_place(
    record: &RecordOptions,
    serves: bool,
    run: impl FnOnce() -> anyhow::Result<ExitCode>,
) -> anyhow::Result<ExitCode> {
    let name = match record.as_collectl {
        true => "collectl",
        false => "kymo",
    };
    let begun = record.daemon.begin(name, record.dir.as_deref(), serves);
    if let DaemonStart::There(code) = begun.map_err(anyhow::Error::msg)? {
        return Ok(code);
    }
    let done = run();
    daemon::ended();
    done
}

fn run_classic(
    (plays, records): (bool, bool),
    (files, playback): (Vec<PathBuf>, Vec<PathBuf>),
    mut record: RecordOptions,
    (mut view, audience): (ViewOptions, Audience),
) -> anyhow::Result<ExitCode> {
    if view.texts.showcolheaders && !plays {
        record.interval = Some("0:1:1".into());
    }
    if plays {
        return play::run(&play::PlayOptions {
            paths: playback.into_iter().chain(files).collect(),
            subsys: record.subsys,
            dir: record.dir,
            count: record.count,
            view,
        });
    }
    if records {
        view.shape.recorded_in = record.dir.clone();
        record.chosen = ChosenProcesses::of(&view);
        let is_sent = view.shape.sends() || view.shape.snapshot().is_some();
        let is_shown = record.show || view.plot || is_sent;
        return record::run(&record, is_shown.then_some(&view));
    }
    live::run(&record, &view, &audience)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(line: &str) -> Option<String> {
        match parse(line.split(' ').map(OsString::from).collect()) {
            Err(Stop::Refuse(text)) => Some(text),
            _ => None,
        }
    }

    #[test]
    fn the_tables_are_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn what_old_hands_type_is_taken() {
        for line in [
            "kymo -scdn -i1",
            "kymo -scdn --quiet --nohup -N -F 60 --comment test",
            "kymo -scdn --align -oT -o2",
            "kymo -D -f out -r00:00,7 -m -F60 -s+YZ --pname x --umask 027",
            "kymo --all --phase 5",
            "kymo --ALL -f out",
            "kymo /dev/null -scd",
            "kymo -scdnm -i0 -c8640 -f out",
            "kymo -p a.raw.gz b.raw.gz -scd -oT -P",
            "kymo -scdnmCDNZ -i.1:.1 -c300 -f out",
            "kymo -s+Z -P --sep 9",
            "kymo --top",
            "kymo --top cpu,5 -i2",
            "kymo --verb -sc",
            "kymo play a.raw.gz --json -scd",
            "kymo record -s cdnm -i 1:5 -f out --cap 100M --keep 7d",
            #[cfg(feature = "serve")]
            "kymo serve --config k.toml --data d --listen 127.0.0.1:0 --check",
            #[cfg(feature = "serve")]
            "kymo serve --open a b c.raw.gz --listen 127.0.0.1:0",
            #[cfg(feature = "serve")]
            "kymo config",
        ] {
            assert_eq!(refusal(line), None, "{line}");
        }
    }

    /// Examples in docs/collectl.md that are called the same or better are accepted.
    #[test]
    fn the_examples_of_the_document_are_read() {
        let document = include_str!("../../../docs/collectl.md");
        let mut read = 0;
        for row in document.lines().filter(|line| line.starts_with("| `")) {
            let cells: Vec<&str> = row.split(" | ").collect();
            let example = cells[2].trim_matches('`');
            if cells[1] != "no" && !cells[2].contains("-C FILE") {
                assert_eq!(refusal(&format!("kymo {example}")), None, "{row}");
                read += 1;
            }
        }
        assert!(read > 20);
    }

    #[test]
    fn refusals_are_one_clear_line() {
        for (line, text) in [
            (
                "kymo --tworaw",
                "cannot use --tworaw: a recording has a stream for each source: nothing has to be split",
            ),
            (
                "kymo --extract x",
                "cannot use --extract: it is for what is played; see -p",
            ),
            (
                "kymo --gibberish",
                "cannot use --gibberish: no such switch; see kymo help switches",
            ),
            (
                "kymo play",
                "cannot run kymo: <PATH>... is missing; see kymo play --help",
            ),
            (
                "kymo --json --csv",
                "cannot use --json: not together with --csv",
            ),
            (
                "kymo -R",
                "cannot use --runtime <DURATION>: its value is missing",
            ),
            (
                "kymo record --status x",
                "cannot use --status <always|never|auto> x: it takes always, never, auto",
            ),
            (
                "kymo blow",
                "cannot run blow: no such command or file; see kymo --help",
            ),
            (
                "kymo -- blow",
                "cannot run blow: no such command or file; see kymo --help",
            ),
            (
                "kymo -sc record -f x",
                "cannot use switches before record: put them behind it",
            ),
            ("kymo -sc -sd", "cannot use --subsys <LETTERS>: given twice"),
            (
                "kymo -p x -i 5",
                "cannot use -i: it has no effect on what is played",
            ),
            (
                "kymo -p x --root /",
                "cannot use --root: it has no effect on what is played",
            ),
            (
                "kymo -p x --rawtoo",
                "cannot use --rawtoo: it has no effect on what is played",
            ),
            (
                "kymo play x --cap 1G",
                "cannot use --cap: it is for recording, not for this command",
            ),
            (
                "kymo -sc --cap 1G",
                "cannot use --cap: nothing is recorded; see -f DIR",
            ),
        ] {
            assert_eq!(refusal(line).as_deref(), Some(text), "{line}");
        }
    }
}
