//! Answers to questions about kymo itself, in collectl's words: `--showsubsys`, `--showoptions`, `--helpall` and the like. They
//! come from the tables by which switches are read.

use clap::Args;
use clap::builder::StyledStr;

use crate::cli::topics::texts::{DEFAULTS, OPTIONS, SUBSYSTEM_OPTIONS, letters, orders};
use crate::cli::topics::{self, Topic};

/// Questions about kymo.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "About kymo")]
pub(crate) struct Questions {
    /// Print the version
    #[arg(short = 'v')]
    version_too: bool,
    /// Print all switches
    #[arg(short = 'x', long, alias = "helpext")]
    helpextend: bool,
    /// Print all switches, and the answers of --show...
    #[arg(short = 'X', long)]
    helpall: bool,
    /// Print the letters of -s
    #[arg(long)]
    showsubsys: bool,
    /// Print the letters of -o
    #[arg(long)]
    showoptions: bool,
    /// Print the options and filters of subsystems
    #[arg(long)]
    showsubopts: bool,
    /// Print the orders of --top
    #[arg(long)]
    showtopopts: bool,
    /// Print defaults
    #[arg(long)]
    showdefs: bool,
    /// Print what is new
    #[arg(long)]
    whatsnew: bool,
}

impl Questions {
    /// The answer, if there is a question.
    pub(super) fn answer(&self) -> Option<StyledStr> {
        let switches = || topics::of(topics::SWITCHES).map(Topic::page);
        let text = |text: String| Some(StyledStr::from(text));
        let answers: [(bool, &dyn Fn() -> Option<StyledStr>); 9] = [
            (self.version_too, &|| text(version())),
            (self.helpextend, &switches),
            (self.helpall, &|| {
                let mut all = switches()?;
                for more in [
                    letters(),
                    OPTIONS.into(),
                    SUBSYSTEM_OPTIONS.into(),
                    orders(),
                ] {
                    all.push_str(&format!("\n{more}"));
                }
                Some(all)
            }),
            (self.showsubsys, &|| text(letters())),
            (self.showoptions, &|| text(OPTIONS.into())),
            (self.showsubopts, &|| text(SUBSYSTEM_OPTIONS.into())),
            (self.showtopopts, &|| text(orders())),
            (self.showdefs, &|| text(DEFAULTS.into())),
            (self.whatsnew, &|| {
                text(format!(
                    "{}The history of the source says what is new.\n",
                    version()
                ))
            }),
        ];
        let answer = answers.iter().find(|(is_set, _)| *is_set)?;
        (answer.1)()
    }
}

fn version() -> String {
    format!("kymo {}\n", env!("CARGO_PKG_VERSION"))
}
