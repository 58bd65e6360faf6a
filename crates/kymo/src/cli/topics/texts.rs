//! Texts of topics: tables by which switches are read, and plain prose.

use kymo_kernel::subsystem;
use kymo_view::processes::Top;

/// A line for each letter of `-s`.
pub(in crate::cli) fn letters() -> String {
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

/// Orders of `--top`.
pub(in crate::cli) fn orders() -> String {
    format!(
        "--top ORDER[,N[,v]]: the first N processes, time by default; v: below one another, not in place\n\n  {}\n\nThe first N slab caches\n\n  {}\n",
        Top::orders().join("\n  "),
        Top::slab_orders().join("\n  ")
    )
}

/// Letters of `-o`.
pub(in crate::cli) const OPTIONS: &str = "\
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

/// Options and filters by subsystem.
pub(in crate::cli) const SUBSYSTEM_OPTIONS: &str = "\
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
  --procfilt            c NAME, C beginning of a name, f command line, g control group, p PID, P parent,
                        u UID or range, U user, + with threads
  --procstate DIRSTWXZ  in these states

Slabs
  --slabopts s, S       no empty caches; only those that changed
  --slabfilt NAME,..    caches whose names begin so
";

/// Defaults by switch.
pub(in crate::cli) const DEFAULTS: &str = "\
Default values by switch:
              Interactive   Recording, daemon
  -c          until ended   until ended
  -i          1:60:120      10:60:120
  -s          cdn           cdn
  -l          SVC:30-IOS:10-OR
  --sync      -             5s
";

/// Meaning of filters.
pub(super) const FILTERS: &str = "\
A filter is a list with commas; ^ in front chooses all others. Names of disks, interfaces and interrupts are
regular expressions that have to match a part of the name.

Processes: a letter, a + for their threads, and a text

  cNAME      the name is NAME             CBEGIN     the name begins so
  fREGEX     the command line matches     gREGEX     the control group matches
  pPID       this process                 PPID       children of this process
  uUID       a user's number, or a range  UUSER      a user by name

A file in place of the list has one filter on each line; lines that begin with # are left out.
";

/// Formats of output.
pub(super) const FORMATS: &str = "\
Without a switch a line has all small letters of an interval, side by side. Capital letters have tables.

  --verbose  a labelled line, or a table, for each subsystem
  -P         collectl's plot format, for colplot and spreadsheets; with -f into files
  --csv      comma-separated values of one subsystem
  --json     an object on each line, with the names of docs/metrics.md
  --export   collectl's exports: lexpr, graphite, gexpr, vmstat, proctree
";

/// Forms of times and durations.
pub(super) const TIMES: &str = "\
Times of --from, --thru, --at and --time, in every command:

  14:30, 14:30:05             of each day that is shown; of the only day, if there is one
  20261121:14:30, 20261121    a day with a time, a whole day
  2026-11-21T14:30            the same; with a zone behind it if need be: Z, +01:00
  -1h, -5min, -1h30m, -2w1d   before now
  now
  1795300040                  seconds since 1970
  14:30-15:00, -2h--1h        of --from: the beginning and the end

Times are in the zone of the machine that recorded. kymo series also reads rrdtool's times.

Durations: 100ms, 30s or 30, 5m, 2h, 7d, 1w.

-i has up to three intervals: of samples, of processes and slabs, of sensors. 1:5 reads the processes at each
fifth sample.
";

/// Recording, and playing what was recorded.
pub(super) const RECORDING: &str = "\
A recording is a folder, a ring: with --cap the oldest data makes room for new data, with --keep it goes by age.
A sample is on the disk after --sync at the latest, whatever happens to the machine. A recording has the kernel's
own texts, so that any view can be chosen when it is played.

  kymo record -s cdnmZ -i 1:5 -f rec --cap 1G     record
  kymo play rec --top time,3 --from -2min         play
  kymo export --from -1h rec hour.kymo            a part of it in one file
  kymo verify rec                                 read it all
";

/// Life in the background.
pub(super) const BACKGROUND: &str = "\
-D goes on in the background. The terminal is free when the first sample is taken; an error up to then is said
there, and the exit code is 2. As a service, dist/kymo.service is the other way.
";

/// Clients of the live view.
pub(super) const CLIENTS: &str = "\
-A sends the lines that the terminal shows to clients, too: of a unix socket, by TCP, or to one server that is
connected to. A client that does not read is dropped.

  kymo -scdn -A                     kymo-live.sock in $XDG_RUNTIME_DIR, root's in /run
  kymo -scdn -A ./live.sock         a unix socket of this name
  kymo -scdn -A server              TCP on this machine, port 2655
";

/// Recorded texts.
pub(super) const TEXTS: &str = "\
A recording has the kernel's texts. These switches show them, or the headers that files and columns have; kymo dump
prints each text as it was read.
";

/// Files and variables that kymo reads.
pub(super) const CONFIGURATION: &str = "\
Files

  /etc/kymo/kymo.toml     kymo serve; kymo config prints one with each key, its default and its meaning
  /etc/collectl.conf      under the name collectl; under kymo's name with -C FILE
  /etc/mrtg/mrtg.cfg      kymo poll, unless other files are given

Switches win over files. kymo serve --check prints the settings in force, and names a wrong line.

Variables

  KYMO_DIR                folder in which programs publish
  NO_COLOR                no colours, if it is not empty
  RRDCACHED_ADDRESS       the daemon that kymo rrd and kymo poll ask
  TZ                      the zone of a recording that is made
  XDG_RUNTIME_DIR         folder of the socket of -A
  XDG_STATE_HOME          kymo/ below it is the folder of kymo serve for an ordinary user
";

/// Exit codes.
pub(super) const EXIT: &str = "\
Codes

  0   done
  1   there is nothing to show; kymo doctor found a slow source, kymo verify damage
  2   the command line is wrong, or something cannot be done; a line says which:
      kymo: cannot VERB OBJECT: CAUSE

Under the names collectl, mrtg, rrdtool and rrdcached kymo has the exit codes of these programs.
";
