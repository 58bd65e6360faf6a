//! `kymo man FOLDER`: a manual page of kymo and of each of its commands, made from their declarations and examples.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::builder::Resettable;
use clap::{Args, Command};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use crate::cli::examples::{self, Guide};
use crate::cli::{COLLECTL, stand_in, topics};

/// Options of `kymo man`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ManOptions {
    /// The folder; it is made if need be, and pages that are there are replaced
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

/// Ways to start kymo.
const ROOT_USAGE: &str = "kymo [SWITCHES]\nkymo [SWITCHES] FILE...\nkymo COMMAND [OPTIONS]";

/// Options of `kymo collectl`.
const OF_COLLECTL: &str = "\
The switches of kymo(1) without a command, those that collectl has under other
letters, and the settings of /etc/collectl.conf.
";

/// Topics that are sections of kymo's own page, without their switches, which the page has anyway.
const SECTIONS: &[&str] = &[
    "subsystems",
    "filters",
    "formats",
    "time",
    "configuration",
    "exit",
];

/// Writes all pages.
pub(super) fn run(options: &ManOptions) -> anyhow::Result<()> {
    let folder = &options.folder;
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for (name, page) in all()? {
        let path = folder.join(name);
        write(&path, &page).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

fn write(path: &Path, page: &[u8]) -> std::io::Result<()> {
    fs::write(path, page)
}

/// Names of files with their pages.
fn all() -> anyhow::Result<Vec<(String, Vec<u8>)>> {
    let mut root = shown(super::declared());
    root.build();
    let mut pages = Vec::new();
    add(&root, "", &mut pages)?;
    Ok(pages)
}

/// Adds the page of a command, and those of its own commands.
fn add(command: &Command, words: &str, pages: &mut Vec<(String, Vec<u8>)>) -> anyhow::Result<()> {
    let name = format!("kymo {words}").trim_end().replace(' ', "-");
    pages.push((format!("{name}.1"), page(command, words, &name)?));
    for below in command.get_subcommands() {
        let words = format!("{words} {}", below.get_name());
        add(below, words.trim_start(), pages)?;
    }
    Ok(())
}

fn page(command: &Command, words: &str, name: &str) -> anyhow::Result<Vec<u8>> {
    let version = concat!("kymo ", env!("CARGO_PKG_VERSION"));
    let command = with_usage(command.clone(), words).display_name(name.to_string());
    let man = Man::new(command.clone())
        .title(name.to_uppercase())
        .source(version)
        .manual("kymo");
    let mut page = b".\\\" Made by kymo man.\n".to_vec();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    if let Some(guide) = examples::of(words) {
        put_examples(guide, &mut page)?;
    }
    match stand_in::ALL.iter().find(|program| program.word == words) {
        Some(program) => put_text("OPTIONS", &(program.help)(), &mut page)?,
        None if words == COLLECTL.0 => put_text("OPTIONS", OF_COLLECTL, &mut page)?,
        None => man.render_options_section(&mut page)?,
    }
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    if words.is_empty() {
        for topic in SECTIONS.iter().filter_map(|word| topics::of(word)) {
            put_text(&topic.title.to_uppercase(), &topic.prose(), &mut page)?;
        }
    }
    Ok(page)
}

/// A command with its short usage in the place of all its options. A program that kymo stands in for declares no options.
fn with_usage(mut command: Command, words: &str) -> Command {
    let usage = command.render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").trim().to_string();
    let has_own_options = words == COLLECTL.0 || is_stand_in(words);
    let usage = match words {
        "" => ROOT_USAGE.into(),
        words if has_own_options => format!("kymo {words} [OPTIONS]"),
        _ => usage,
    };
    let about = command.get_about().map(ToString::to_string);
    let about = about.unwrap_or_default();
    // A page says the name before the description.
    let about = about.trim_start_matches("kymo ").to_string();
    command.override_usage(usage).about(about)
}

fn is_stand_in(words: &str) -> bool {
    stand_in::ALL.iter().any(|program| program.word == words)
}

fn put_examples(guide: &Guide, page: &mut Vec<u8>) -> std::io::Result<()> {
    let mut roff = Roff::new();
    roff.control("SH", ["EXAMPLES"]);
    for (purpose, line) in guide.examples {
        roff.control("TP", []);
        roff.text([bold(*line)]);
        roff.text([roman(*purpose)]);
    }
    roff.control("PP", []);
    roff.text([roman(format!("More: {}", guide.more))]);
    roff.to_writer(page)
}

/// A section whose lines stay as they are.
fn put_text(title: &str, text: &str, page: &mut Vec<u8>) -> std::io::Result<()> {
    let mut roff = Roff::new();
    roff.control("SH", [title]);
    roff.control("nf", []);
    for line in text.trim_end().lines() {
        roff.text([roman(line)]);
    }
    roff.control("fi", []);
    roff.to_writer(page)
}

/// A command line without hidden commands and switches, as documents have it.
pub(super) fn shown(command: Command) -> Command {
    let name = command.get_name().to_string();
    let mut shown = Command::new(name)
        .disable_help_subcommand(true)
        .subcommand_help_heading("COMMANDS");
    if let Some(about) = command.get_about() {
        shown = shown.about(about.clone());
    }
    if let Some(version) = command.get_version() {
        shown = shown.version(version.to_string());
    }
    let arguments = command
        .get_arguments()
        .filter(|switch| !switch.is_hide_set());
    shown = shown.args(
        arguments
            .cloned()
            .map(|switch| switch.help_heading(Resettable::Reset)),
    );
    let commands = command
        .get_subcommands()
        .filter(|below| !below.is_hide_set());
    shown.subcommands(commands.cloned().map(self::shown))
}
