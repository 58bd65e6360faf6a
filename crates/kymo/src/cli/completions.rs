//! `kymo completions SHELL`: scripts by which bash, zsh and fish complete kymo's command line, made from its declarations.

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, Command, ValueEnum};
use clap_complete::Shell as Script;

use crate::cli::{pages, topics};

/// Options of `kymo completions`.
#[derive(Args, Clone, Debug)]
pub(crate) struct CompletionsOptions {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// A shell that completes.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Shell {
    /// Completes collectl, too, where it is kymo
    Bash,
    /// As a function of $fpath
    Zsh,
    /// As a file of its completions
    Fish,
}

/// In bash collectl is completed as well, where it is kymo under another name.
const IF_COLLECTL: &str = "if [ \"$(readlink -f \"$(type -P collectl)\")\" = \"$(readlink -f \"$(type -P kymo)\")\" ]; then\n";

/// The script for a shell.
pub(super) fn script(options: &CompletionsOptions) -> String {
    let script = match options.shell {
        Shell::Bash => Script::Bash,
        Shell::Zsh => Script::Zsh,
        Shell::Fish => Script::Fish,
    };
    let mut text = generated(script, completed(), "kymo");
    if let Shell::Bash = options.shell {
        let switches = topics::switches()
            .version(env!("CARGO_PKG_VERSION"))
            .disable_help_flag(false)
            .disable_version_flag(false);
        text += &format!(
            "\n{IF_COLLECTL}{}fi\n",
            generated(script, switches.name("collectl"), "collectl")
        );
    }
    text
}

fn generated(script: Script, mut command: Command, name: &str) -> String {
    let mut bytes = Vec::new();
    clap_complete::generate(script, &mut command, name, &mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The command line whose `help` has its topics and commands as values.
fn completed() -> Command {
    let command = pages::shown(super::declared());
    let commands = command.get_subcommands().map(|command| command.get_name());
    let topics = topics::ALL.iter().map(|topic| topic.word);
    let words: Vec<PossibleValue> = topics
        .chain(commands)
        .map(|word| PossibleValue::new(word.to_string()))
        .collect();
    command.mut_subcommand("help", |help| {
        help.mut_arg("words", |word| {
            word.value_parser(PossibleValuesParser::new(words))
        })
    })
}
