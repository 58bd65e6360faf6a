//! Answers to questions about kymo itself, in collectl's words: `--showsubsys`, `--showoptions`, `--helpall` and the like. They
//! come from the tables by which switches are read.

use clap::{Args, CommandFactory};
use kymo_kernel::subsystem;
use kymo_view::processes::Top;

/// Questions about kymo.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "About kymo")]
pub(crate) struct Questions {
    /// Print the version
    #[arg(short = 'v')]
    version_too: bool,
    /// Print this
    #[arg(short = 'x', long, alias = "helpext")]
    helpextend: bool,
    /// Print this, and what --show... print
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
    pub(crate) fn answer<C: CommandFactory>(&self) -> Option<String> {
        let help = || C::command().render_long_help().to_string();
        let answers: [(bool, &dyn Fn() -> String); 9] = [
            (self.version_too, &version),
            (self.helpextend, &help),
            (self.helpall, &|| {
                [
                    help(),
                    subsystems(),
                    OPTIONS.into(),
                    SUBSYSTEM_OPTIONS.into(),
                    orders(),
                ]
                .join("\n")
            }),
            (self.showsubsys, &subsystems),
            (self.showoptions, &|| OPTIONS.into()),
            (self.showsubopts, &|| SUBSYSTEM_OPTIONS.into()),
            (self.showtopopts, &orders),
            (self.showdefs, &|| DEFAULTS.into()),
            (self.whatsnew, &|| {
                format!("{}The history of the source says what is new.\n", version())
            }),
        ];
        let asked = answers.iter().find(|(asked, _)| *asked)?;
        Some((asked.1)())
    }
}

fn version() -> String {
    format!("kymo {}\n", env!("CARGO_PKG_VERSION"))
}

/// A line for each letter.
fn subsystems() -> String {
    let mut text = String::from(
        "Letters of -s, any of them together; `-s+m-d` changes the default, which is cdn\n\n",
    );
    for subsystem in subsystem::ALL {
        for letter in subsystem.letters() {
            let what = match letter.is_ascii_uppercase() {
                true => "each",
                false => "sum",
            };
            let (name, help) = (subsystem.name, subsystem.help);
            text += &format!("  {letter} - {name}, {what}: {help}\n");
        }
    }
    text
}

fn orders() -> String {
    format!(
        "--top ORDER[,N[,v]]: the first N processes, time by default; v: below one another, not in place\n\n  {}\n\nThe first N slab caches\n\n  {}\n",
        Top::orders().join("\n  "),
        Top::slab_orders().join("\n  ")
    )
}

const OPTIONS: &str = "\
Letters of -o, any of them together

  d - month/day and time before each line
  D - yyyymmdd and time
  T - time
  U - seconds since 1970
  m - milliseconds, too
  g - fractions of numbers from G on, in place of the point: 1g28
  G - the same where there is room: 1.3G
  n - counts of the interval, not by second
  1, 2 - decimals of plot values
  x - of disks only exceptions, see -l

Plot files

  z - not compressed
  a - append to those that are there
  c - write them again
  u - the time in their names
  i - live on a terminal: begin as files do
";

const SUBSYSTEM_OPTIONS: &str = "\
CPU
  --cpuopts z           no CPUs that only idle
  --cpufilt [^]N[-M],.. these CPUs, also in the sum; ^ all others

Disk
  --dskopts f           fractions
  --dskopts i           sizes of I/Os in brief format
  --dskopts o           taken; disks that have done nothing have no columns anyway
  --dskopts z           no disks that do nothing
  --dskfilt [^]REGEX,.. these disks, also in the sum; ^ all others
  --dskremap A:B,..     other names

Interrupts
  --intfilt [^]REGEX,.. these interrupts

Memory
  --memopts R           changes
  --memopts P, V        physical or virtual memory alone

Network
  --netopts e           errors
  --netopts E           only intervals with errors
  --netopts i           sizes of packets in brief format
  --netopts wN          width of names
  --netfilt [^]REGEX,.. these interfaces, also in the sum; ^ all others

Processes
  --procopts c          CPU time with that of children that ended
  --procopts f          page faults since birth
  --procopts i, m, x    columns of I/O, of memory, of context switches
  --procopts I          do not read their I/O
  --procopts k          what a shell runs in place of the shell
  --procopts p          no processes that were born later
  --procopts r          programs without folders
  --procopts R          priorities as numbers
  --procopts s, S       when they were started, S with the day
  --procopts t          threads, too
  --procopts uN         width of the user's name, 12 without N
  --procopts wN         arguments, N characters of them
  --procopts z          of --top, none whose value is 0
  --procfilt            c NAME, C beginning of a name, f command line, g control group, p PID, P parent, u UID or range, U user, + with threads
  --procstate DIRSTWXZ  in these states

Slabs
  --slabopts s, S       no empty caches; only those that changed
  --slabfilt NAME,..    caches whose names begin so
";

const DEFAULTS: &str = "\
Default values by switch:
              Interactive   Recording, daemon
  -c          until ended   until ended
  -i          1:60:120      10:60:120
  -s          cdn           cdn
  -l          SVC:30-IOS:10-OR
  --sync      -             5s
";
