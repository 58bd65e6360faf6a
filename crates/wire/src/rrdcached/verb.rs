//! The commands of the protocol: their contexts and their texts in HELP. Names, order and texts are those
//! of rrdcached 1.7.2, with TUNE and DUMP of 1.8 and 1.9 in their place, because clients parse them.

/// A command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Verb {
    Update,
    Wrote,
    Tune,
    Dump,
    Flush,
    FlushAll,
    Pending,
    Forget,
    Queue,
    Stats,
    Help,
    Ping,
    Batch,
    EndBatch,
    Fetch,
    FetchBin,
    Info,
    First,
    Last,
    Create,
    List,
    Suspend,
    Resume,
    SuspendAll,
    ResumeAll,
    Quit,
}

/// Context in which a command arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// Outside of BATCH.
    Client,
    /// Between BATCH and its dot.
    Batch,
}

/// An entry of the table of commands.
pub(super) struct Entry {
    pub verb: Verb,
    pub name: &'static str,
    pub client: bool,
    pub batch: bool,
    /// Syntax for usage errors and HELP, with its line end. `None`: HELP does not list the command.
    pub syntax: Option<&'static str>,
    pub help: Option<&'static str>,
}

const fn entry(
    verb: Verb,
    name: &'static str,
    context: (bool, bool),
    syntax: Option<&'static str>,
    help: Option<&'static str>,
) -> Entry {
    Entry {
        verb,
        name,
        client: context.0,
        batch: context.1,
        syntax,
        help,
    }
}

/// Contexts: outside of BATCH only, inside only, anywhere, and none (commands of rrdcached's own journal).
const CLIENT: (bool, bool) = (true, false);
const BATCH: (bool, bool) = (false, true);
const BOTH: (bool, bool) = (true, true);
const NOWHERE: (bool, bool) = (false, false);

/// All commands, in HELP's order. A verb's number is its index.
pub(super) const TABLE: &[Entry] = &[
    entry(
        Verb::Update,
        "UPDATE",
        BOTH,
        Some("UPDATE <filename> <values> [<values> ...]\n"),
        Some(concat!(
            "Adds the given file to the internal cache if it is not yet known and\n",
            "appends the given value(s) to the entry. See the rrdcached(1) manpage\n",
            "for details.\n",
            "\n",
            "Each <values> has the following form:\n",
            "  <values> = <time>:<value>[:<value>[...]]\n",
            "See the rrdupdate(1) manpage for details.\n",
        )),
    ),
    entry(Verb::Wrote, "WROTE", NOWHERE, None, None),
    entry(
        Verb::Tune,
        "TUNE",
        CLIENT,
        Some("TUNE <filename> [options]\n"),
        Some("Tunes the given file, takes the parameters as defined in rrdtool.\n"),
    ),
    entry(
        Verb::Dump,
        "DUMP",
        CLIENT,
        Some("DUMP <filename> [-h none|xsd|dtd]\n"),
        Some("Dumps the specified RRD to XML.\n"),
    ),
    entry(
        Verb::Flush,
        "FLUSH",
        BOTH,
        Some("FLUSH <filename>\n"),
        Some(concat!(
            "Adds the given filename to the head of the update queue and returns\n",
            "after it has been dequeued.\n",
        )),
    ),
    entry(
        Verb::FlushAll,
        "FLUSHALL",
        CLIENT,
        Some("FLUSHALL\n"),
        Some("Triggers writing of all pending updates.  Returns immediately.\n"),
    ),
    entry(
        Verb::Pending,
        "PENDING",
        CLIENT,
        Some("PENDING <filename>\n"),
        Some(concat!(
            "Shows any 'pending' updates for a file, in order.\n",
            "The updates shown have not yet been written to the underlying RRD file.\n",
        )),
    ),
    entry(
        Verb::Forget,
        "FORGET",
        BOTH,
        Some("FORGET <filename>\n"),
        Some(concat!(
            "Removes the file completely from the cache.\n",
            "Any pending updates for the file will be lost.\n",
        )),
    ),
    entry(
        Verb::Queue,
        "QUEUE",
        CLIENT,
        Some("QUEUE\n"),
        Some(concat!(
            "Shows all files in the output queue.\n",
            "The output is zero or more lines in the following format:\n",
            "(where <num_vals> is the number of values to be written)\n",
            "\n",
            "<num_vals> <filename>\n",
        )),
    ),
    entry(
        Verb::Stats,
        "STATS",
        CLIENT,
        Some("STATS\n"),
        Some(concat!(
            "Returns some performance counters, see the rrdcached(1) manpage for\n",
            "a description of the values.\n",
        )),
    ),
    entry(Verb::Help, "HELP", CLIENT, Some("HELP [<command>]\n"), None),
    entry(
        Verb::Ping,
        "PING",
        CLIENT,
        Some("PING\n"),
        Some("PING given, PONG returned\n"),
    ),
    entry(
        Verb::Batch,
        "BATCH",
        CLIENT,
        Some("BATCH\n"),
        Some(concat!(
            "The 'BATCH' command permits the client to initiate a bulk load\n",
            "   of commands to rrdcached.\n",
            "\n",
            "Usage:\n",
            "\n",
            "    client: BATCH\n",
            "    server: 0 Go ahead.  End with dot '.' on its own line.\n",
            "    client: command #1\n",
            "    client: command #2\n",
            "    client: ... and so on\n",
            "    client: .\n",
            "    server: 2 errors\n",
            "    server: 7 message for command #7\n",
            "    server: 9 message for command #9\n",
            "\n",
            "For more information, consult the rrdcached(1) documentation.\n",
        )),
    ),
    entry(Verb::EndBatch, ".", BATCH, None, None),
    entry(
        Verb::Fetch,
        "FETCH",
        CLIENT,
        Some("FETCH <file> <CF> [<start> [<end>] [<column>...]]\n"),
        Some("The 'FETCH' can be used by the client to retrieve values from an RRD file.\n"),
    ),
    entry(
        Verb::FetchBin,
        "FETCHBIN",
        CLIENT,
        Some("FETCHBIN <file> <CF> [<start> [<end>] [<column>...]]\n"),
        Some("The 'FETCHBIN' can be used by the client to retrieve values from an RRD file.\n"),
    ),
    entry(
        Verb::Info,
        "INFO",
        CLIENT,
        Some("INFO <filename>\n"),
        Some(concat!(
            "The INFO command retrieves information about a specified RRD file.\n",
            "This is returned in standard rrdinfo format, a sequence of lines\n",
            "with the format <keyname> = <value>\n",
            "Note that this is the data as of the last update of the RRD file itself,\n",
            "not the last time data was received via rrdcached, so there may be pending\n",
            "updates in the queue.  If this bothers you, then first run a FLUSH.\n",
        )),
    ),
    entry(
        Verb::First,
        "FIRST",
        CLIENT,
        Some("FIRST <filename> <rra index>\n"),
        Some(concat!(
            "The FIRST command retrieves the first data time for a specified RRA in\n",
            "an RRD file.\n",
        )),
    ),
    entry(
        Verb::Last,
        "LAST",
        CLIENT,
        Some("LAST <filename>\n"),
        Some(concat!(
            "The LAST command retrieves the last update time for a specified RRD file.\n",
            "Note that this is the time of the last update of the RRD file itself, not\n",
            "the last time data was received via rrdcached, so there may be pending\n",
            "updates in the queue.  If this bothers you, then first run a FLUSH.\n",
        )),
    ),
    entry(
        Verb::Create,
        "CREATE",
        BOTH,
        Some("CREATE <filename> [-b start] [-s step] [-O] <DS definitions> <RRA definitions>\n"),
        Some(concat!(
            "The CREATE command will create an RRD file, overwriting any existing file\n",
            "unless the -O option is given or rrdcached was started with the -O option.\n",
            "The start parameter needs to be in seconds since 1/1/70 (AT-style syntax is\n",
            "not acceptable) and the step is in seconds (default is 300).\n",
            "The DS and RRA definitions are as for the 'rrdtool create' command.\n",
        )),
    ),
    entry(
        Verb::List,
        "LIST",
        CLIENT,
        Some("LIST [RECURSIVE] /[<path>]\n"),
        Some(concat!(
            "This command lists the RRD files in the storage base directory (/).\n",
            "Note that this is the list of RRD files on storage as of the last update.\n",
            "There may be pending updates in the queue, so a FLUSH may have to be run\n",
            "beforehand.\n",
            "When invoked with 'LIST RECURSIVE /<path>' it will behave similarly to\n",
            "'ls -R' but limited to rrd files (listing all the rrd bases in the subtree\n",
            " of <path>, skipping empty directories).\n",
        )),
    ),
    entry(
        Verb::Suspend,
        "SUSPEND",
        BOTH,
        Some("SUSPEND <filename>\n"),
        Some(concat!(
            "The SUSPEND command will suspend writing to an RRD file. While a file is\n",
            "suspended, all metrics for it are cached in memory until RESUME is called\n",
            "for that file or RESUMEALL is called.\n",
        )),
    ),
    entry(
        Verb::Resume,
        "RESUME",
        BOTH,
        Some("RESUME <filename>\n"),
        Some(concat!(
            "The RESUME command will resume writing to an RRD file previously suspended\n",
            "by SUSPEND or SUSPENDALL.\n",
        )),
    ),
    entry(
        Verb::SuspendAll,
        "SUSPENDALL",
        BOTH,
        Some("SUSPENDALL\n"),
        Some(concat!(
            "The SUSPENDALL command will suspend writing to all RRD files. While a file\n",
            "is suspended, all metrics for it are cached in memory until RESUME is called\n",
            "for that file or RESUMEALL is called.\n",
        )),
    ),
    entry(
        Verb::ResumeAll,
        "RESUMEALL",
        BOTH,
        Some("RESUMEALL\n"),
        Some("The RESUMEALL command will resume writing to all RRD files previously suspended.\n"),
    ),
    entry(
        Verb::Quit,
        "QUIT",
        BOTH,
        Some("QUIT\n"),
        Some("Disconnect from rrdcached.\n"),
    ),
];

impl Verb {
    /// The command with this name, in any case.
    pub fn named(word: &[u8]) -> Option<Verb> {
        // UPDATE is the most frequent command.
        if word.eq_ignore_ascii_case(b"UPDATE") {
            return Some(Verb::Update);
        }
        let entry = TABLE
            .iter()
            .find(|entry| word.eq_ignore_ascii_case(entry.name.as_bytes()))?;
        Some(entry.verb)
    }

    /// The command's entry in the table.
    pub(super) fn entry(self) -> &'static Entry {
        &TABLE[self as usize]
    }

    /// True if the command is allowed in the context.
    pub fn fits(self, context: Context) -> bool {
        match context {
            Context::Client => self.entry().client,
            Context::Batch => self.entry().batch,
        }
    }
}

/// The commands that a socket's clients may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permissions(u32);

impl Permissions {
    /// All commands.
    pub const ALL: Permissions = Permissions((1 << TABLE.len()) - 1);
    /// HELP and QUIT, which are always allowed.
    pub const NONE: Permissions = Permissions(0);

    /// Adds the command with this name; `false`: there is none.
    pub fn add(&mut self, word: &[u8]) -> bool {
        let verb = Verb::named(word);
        if let Some(verb) = verb {
            self.0 |= 1 << verb as u32;
        }
        verb.is_some()
    }

    /// True if the command is allowed. The dot is allowed together with BATCH.
    pub fn allow(self, verb: Verb) -> bool {
        match verb {
            Verb::Help | Verb::Quit => true,
            Verb::EndBatch => self.allow(Verb::Batch),
            _ => self.0 & (1 << verb as u32) != 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verb_is_its_own_place_and_goes_by_its_name() {
        for (place, entry) in TABLE.iter().enumerate() {
            assert_eq!(entry.verb as usize, place);
            assert_eq!(Verb::named(entry.name.as_bytes()), Some(entry.verb));
            let small = entry.name.to_ascii_lowercase();
            assert_eq!(Verb::named(small.as_bytes()), Some(entry.verb));
            for text in [entry.syntax, entry.help].into_iter().flatten() {
                assert!(text.ends_with('\n'));
            }
        }
        assert_eq!(Verb::named(b""), None);
        assert_eq!(Verb::named(b"UPDATES"), None);
    }

    #[test]
    fn the_overview_has_stocks_order() {
        let listed: Vec<&str> = TABLE
            .iter()
            .filter(|e| e.syntax.is_some())
            .map(|e| e.name)
            .collect();
        assert_eq!(
            listed.join(" "),
            "UPDATE TUNE DUMP FLUSH FLUSHALL PENDING FORGET QUEUE STATS HELP PING BATCH FETCH FETCHBIN INFO \
             FIRST LAST CREATE LIST SUSPEND RESUME SUSPENDALL RESUMEALL QUIT"
        );
    }

    #[test]
    fn permissions_are_a_list_of_commands() {
        let mut some = Permissions::NONE;
        assert!(some.add(b"flush") && some.add(b"BATCH") && !some.add(b"FLASH"));
        for (verb, allowed) in [
            (Verb::Flush, true),
            (Verb::FlushAll, false),
            (Verb::Update, false),
            (Verb::Help, true),
            (Verb::Quit, true),
            (Verb::EndBatch, true),
        ] {
            assert_eq!(some.allow(verb), allowed, "{verb:?}");
            assert!(Permissions::ALL.allow(verb));
        }
        assert!(!Permissions::NONE.allow(Verb::EndBatch));
    }
}
