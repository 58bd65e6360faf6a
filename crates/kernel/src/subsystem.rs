//! The subsystems: one file each, one line in [`ALL`] each. A subsystem's table is where its
//! fields and columns are declared; recording, every output format, help and docs are made of it.

use kymo_base::column::Column;
use kymo_base::context::Context;
use kymo_base::field::{Field, Rule, Unit};
use kymo_base::reading::Row;
use kymo_base::template::{Piece, Template};

use crate::layout::{Cell, From, Layout};
use crate::source::{self, Pace};

use self::exposed::Exposed;

pub mod buddy;
pub mod cgroups;
pub mod cpu;
pub mod disk;
pub mod exposed;
pub mod fabric;
pub mod filesystems;
pub mod inodes;
pub mod interrupts;
pub mod memory;
pub mod net;
pub mod nfs;
pub mod nfs_mounts;
pub mod numa;
pub mod own;
pub mod pressure;
pub mod process;
pub mod sensors;
pub mod slab;
pub mod sockets;
pub mod tcp;

/// What the lower-case letter of a subsystem shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Summary {
    /// The whole-machine numbers.
    Globals,
    /// The sum over the rows that count.
    Rows,
    /// Nothing: there is only detail.
    None,
}

/// Where instances that have done nothing since boot are shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unused {
    /// Everywhere.
    Shown,
    /// On a terminal they are left out, so that one sees the others.
    NotOnTerminals,
    /// In plot files as well, as collectl leaves out loop devices.
    Hidden,
}

/// One subsystem.
pub struct Subsystem {
    /// collectl's letter, lower case; upper case asks for detail.
    pub letter: char,
    /// Its name in CSV, JSON and docs.
    pub name: &'static str,
    /// One line on what it shows.
    pub help: &'static str,
    /// Kinds of source it reads.
    pub sources: &'static [u8],
    /// What another subsystem's sources say of its instances.
    pub beside: Option<Beside>,
    /// Whether counters of each CPU stand behind an instance's fields: those of CPU n at `fields.len() + n`.
    pub spread: bool,
    /// Whole-machine numbers.
    pub globals: &'static [Field],
    /// Numbers of each instance.
    pub fields: &'static [Field],
    /// Texts of each instance.
    pub labels: &'static [&'static str],
    /// Finds the fields in a template of one of its sources.
    pub layout: fn(kind: u8, template: &Template, context: &Context) -> Layout,
    /// What the lower-case letter sums up.
    pub summary: Summary,
    /// What of the sum over the rows is no sum.
    pub sum: Option<Sum>,
    /// What its instances can count at the most, where that is known.
    pub ceiling: Option<Ceiling>,
    /// Decides by their numbers which instances count in the sum, where names and relations do not tell.
    pub count: Option<fn(&mut [Row])>,
    /// Whether a service records it unless its configuration says otherwise: it costs little.
    pub in_service: bool,
    /// What the lower-case letter shows.
    pub columns: &'static [Column],
    /// What the upper-case letter shows, a row an instance.
    pub detail: &'static [Column],
    /// The field that says when an instance was born, in clock ticks since boot: its counters
    /// were 0 then, so that a newborn has a difference in its first sample.
    pub born: Option<usize>,
    /// Where instances that have done nothing since boot are shown.
    pub unused: Unused,
    /// How columns stand on a terminal.
    pub text: Text,
    /// How columns stand in collectl's plot format.
    pub plot: Plot,
    /// What Prometheus gets.
    pub exposed: Exposed,
}

/// What of the sum over the rows is no sum.
pub struct Sum {
    /// Indices of counters of which a sum says nothing, such as the time in which somebody waited: there it is the greatest.
    pub peaks: &'static [usize],
    /// Whether an instance with these values is one of those that peaks are looked for in.
    pub among: fn(&[f64]) -> bool,
    /// The instance whose numbers stand in for those that no row that counts has.
    pub otherwise: &'static [u8],
}

/// What an instance can count at the most.
pub struct Ceiling {
    /// Indices of the counters that it is of.
    pub fields: &'static [usize],
    /// A rate a second that each instance can have: below it nothing is looked up.
    pub least: f64,
    /// The greatest rate a second that is believed of an instance.
    pub most: fn(name: &[u8], context: &Context) -> Most,
    /// What is said of a rate above it.
    pub remark: fn(name: &[u8], rate: f64, context: &Context) -> String,
}

/// A greatest rate.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Most {
    /// By what the instance is.
    Known(f64),
    /// By what such instances usually are: what stays above it is believed.
    Guessed(f64),
}

/// What is shown of a subsystem's instances where another one is chosen too.
pub struct Beside {
    /// The other's letter.
    pub letter: char,
    /// Kinds of source that are read for the other's sake.
    pub sources: &'static [u8],
    /// What stands behind the last head of the detail.
    pub head: &'static str,
    /// What stands behind its row.
    pub row: &'static str,
}

/// Most CPUs that have counters of their own.
pub const SPREAD_MAX: usize = 8192;
/// How a counter of each CPU moves.
pub const SPREAD_RULE: Rule = Rule::Counter32;

impl Subsystem {
    /// All kinds that it understands: its own, and those read for another's sake.
    pub fn understood(&self) -> impl Iterator<Item = u8> + Clone + use<> {
        let beside = self
            .beside
            .as_ref()
            .map_or(&[][..], |beside| beside.sources);
        self.sources.iter().chain(beside).copied()
    }

    /// Whether its instances are processes or threads: they are scanned at an interval of their own.
    pub fn is_of_processes(&self) -> bool {
        let mut sources = self.sources.iter().filter_map(|&kind| source::of(kind));
        sources.any(|source| source.scope.is_of_tasks())
    }

    /// Whether all that it reads is read at the interval of process scans.
    pub fn is_scanned(&self) -> bool {
        let mut sources = self.sources.iter().filter_map(|&kind| source::of(kind));
        sources.all(|source| source.pace == Pace::EachScan)
    }

    /// Whether the names of its instances tell of people, and so does all that is said of one.
    pub fn is_private(&self) -> bool {
        !self.detail.is_empty() && self.detail.iter().all(|column| column.private)
    }

    /// Its letters: for the summary, if it has one, and for the detail.
    pub fn letters(&self) -> impl Iterator<Item = char> {
        let summary = (self.summary != Summary::None).then_some(self.letter);
        let detail = (!self.detail.is_empty()).then_some(self.letter.to_ascii_uppercase());
        summary.into_iter().chain(detail)
    }
}

/// How columns stand on a terminal: which, and how wide.
///
/// `rows` are lines with places `{COLUMN:WIDTHFORM}`; forms: `d` a whole number, cut off; `.2` two
/// decimals; `c` a count shortened with K, M, G (thousands); `k` KiB shortened (by 1024), `b` bytes
/// shown as KiB so, `u` as `c` but by 1024; `t` seconds as time; `s` a text. A number after the form is
/// the width it shortens to. A negative width aligns left. `{spread:...}` is the counter of each CPU, one after the other,
/// each with a blank behind it where the form ends in `_`; in heads `{cpus:7}` are the CPUs' names so wide, `{cpus:brief}`
/// and `{cpus:-}` those of collectl's brief line and the dashes around its title. `{page}` is the size of a page in KiB.
/// `{name:...}` is the instance's name, `{branch:...}` the last part of a path, behind blanks for those before it, and
/// `{number:...}` the instance's number.
pub struct Text {
    /// For one line an interval: a banner, the names, the row.
    pub brief: Lines,
    /// The summary on its own.
    pub verbose: Lines,
    /// The instances.
    pub detail: Lines,
}

/// Lines of a terminal format. Empty: not shown in it.
pub struct Lines {
    /// What it is, without `# `; `{rate}` is `/sec` or `/int`.
    pub title: &'static str,
    /// Lines over the columns; the last one names them.
    pub heads: &'static [&'static str],
    /// A row.
    pub row: &'static str,
}

impl Lines {
    /// Nothing.
    pub const NONE: Lines = Lines {
        title: "",
        heads: &[],
        row: "",
    };
}

/// How columns stand in collectl's plot format.
pub struct Plot {
    /// What stands in brackets before each name.
    pub tag: &'static str,
    /// Place among the summaries of one line, which is not that of brief.
    pub order: u8,
    /// Suffix of the file of details.
    pub file: &'static str,
    /// The summary's names, in order, and the columns they show.
    pub summary: &'static [Place],
    /// The same for each instance.
    pub detail: &'static [Place],
    /// Whether a line holds all instances, or one.
    pub shape: Shape,
}

/// A name in a plot header, the column it shows and with how many decimals.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// collectl's name. `{rate}` in it is `/sec` or `/int`; with `{name}` it is whole, its tag included, and that is
    /// the instance's name behind its first `_`.
    pub head: &'static str,
    /// Column of the subsystem; empty: always 0.
    pub column: &'static str,
    /// How it is written.
    pub form: Form,
}

/// How a plot value is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// With the decimals asked for.
    Asked,
    /// With two decimals.
    Two,
    /// Cut off to a whole number.
    Whole,
    /// Seconds as hours, minutes and seconds.
    Clock,
    /// A text.
    Text,
}

/// What a line of a plot file of details holds.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// All instances, one after the other.
    Wide,
    /// The same, by name, each with the columns that it has.
    Own(fn(&[u8], &Place) -> bool),
    /// One instance.
    Long,
}

impl Shape {
    /// Whether each instance has a line.
    pub fn is_long(self) -> bool {
        matches!(self, Shape::Long)
    }
}

/// Every subsystem there is, in the order of collectl's brief columns.
pub const ALL: &[&Subsystem] = &[
    &cpu::CPU,
    &interrupts::INTERRUPTS,
    &memory::MEMORY,
    &numa::NUMA,
    &buddy::BUDDY,
    &disk::DISK,
    &net::NET,
    &tcp::TCP,
    &sockets::SOCKETS,
    &inodes::INODES_AND_FILES,
    &fabric::FABRIC,
    &nfs::NFS,
    &sensors::SENSORS,
    &filesystems::FILESYSTEMS,
    &cgroups::CGROUPS,
    &nfs_mounts::NFS_MOUNTS,
    &slab::SLAB,
    &pressure::PRESSURE,
    &own::OWN,
    &process::PROCESS,
];

/// What collectl has letters for, in the order of its manual.
const COLLECTL: &[(char, &str)] = &[
    ('l', "Lustre"),
    ('L', "Lustre"),
    ('y', "slabs"),
    ('Y', "slabs"),
];

/// What one of collectl's letters stands for, if there is no subsystem for it.
pub fn only_collectls(letter: char) -> Option<&'static str> {
    let (_, name) = COLLECTL.iter().find(|(known, _)| *known == letter)?;
    (!is_letter(letter)).then_some(name)
}

/// Whether there is something to record and to show by this letter.
pub fn is_letter(letter: char) -> bool {
    of(letter).is_some()
}

/// All letters there are: `c C m d D`.
pub fn all_letters() -> String {
    let mut spelled = String::new();
    for letter in ALL.iter().flat_map(|subsystem| subsystem.letters()) {
        spelled.extend([letter, ' ']);
    }
    spelled.truncate(spelled.trim_end().len());
    spelled
}

/// Each subsystem's letter and name, for help: `c cpu, m memory, Z process`.
pub fn letters_and_names() -> String {
    let named = |subsystem: &&Subsystem| {
        let letter = subsystem.letters().next()?;
        Some(format!("{letter} {}", subsystem.name))
    };
    let named: Vec<String> = ALL.iter().filter_map(named).collect();
    named.join(", ")
}

/// One letter for each subsystem that a service records.
pub fn service_letters() -> String {
    let usual = ALL.iter().filter(|subsystem| subsystem.in_service);
    usual.filter_map(|one| one.letters().next()).collect()
}

/// Whether one of the letters asks for it.
pub fn is_asked(subsystem: &Subsystem, letters: &str) -> bool {
    subsystem.letters().any(|letter| letters.contains(letter))
}

/// Whether one of the letters asks for processes.
pub fn asks_for_processes(letters: &str) -> bool {
    letters
        .chars()
        .any(|letter| of(letter).is_some_and(Subsystem::is_of_processes))
}

/// The subsystem that shows something by this letter: `m` and `M` are of two.
pub fn of(letter: char) -> Option<&'static Subsystem> {
    let mut all = ALL.iter().copied();
    all.find(|subsystem| subsystem.letters().any(|known| known == letter))
}

/// A place that shows a column with the decimals asked for.
pub(crate) const fn plot(head: &'static str, column: &'static str) -> Place {
    place(head, column, Form::Asked)
}

/// A place written in a given form.
pub(crate) const fn place(head: &'static str, column: &'static str, form: Form) -> Place {
    Place { head, column, form }
}

/// A field.
pub(crate) const fn field(name: &'static str, rule: Rule, unit: Unit, help: &'static str) -> Field {
    Field {
        name,
        rule,
        unit,
        help,
    }
}

/// The index of the field of this name: the compiler finds it, or refuses a name that no field has.
pub(crate) const fn at(fields: &[Field], name: &str) -> usize {
    let mut index = 0;
    while !is_same(fields[index].name.as_bytes(), name.as_bytes()) {
        index += 1;
    }
    index
}

const fn is_same(a: &[u8], b: &[u8]) -> bool {
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}

/// A column that is a number.
pub(crate) const fn number(
    name: &'static str,
    unit: Unit,
    help: &'static str,
    value: fn(&kymo_base::column::Cells) -> f64,
) -> Column {
    Column {
        name,
        unit,
        help,
        value: kymo_base::column::Value::Number(value),
        private: false,
    }
}

/// A column that is a text.
pub(crate) const fn text(
    name: &'static str,
    help: &'static str,
    value: fn(&kymo_base::column::Cells, &mut Vec<u8>),
) -> Column {
    Column {
        name,
        unit: Unit::None,
        help,
        value: kymo_base::column::Value::Text(value),
        private: false,
    }
}

/// What a column of a gauge shows: the value of field `N`.
pub(crate) fn now<const N: usize>(cells: &kymo_base::column::Cells) -> f64 {
    cells.now[N]
}

/// What a column of a counter shows: field `N` a second.
pub(crate) fn rate<const N: usize>(cells: &kymo_base::column::Cells) -> f64 {
    cells.rate(N)
}

/// The sum of what is counted on each CPU, a second; `first` is the field of CPU 0.
pub(crate) fn spread_rates(cells: &kymo_base::column::Cells, first: usize) -> f64 {
    let counts = cells.delta.get(first..).unwrap_or_default();
    let known = counts.iter().copied().filter(|delta| !delta.is_nan());
    let sum = known.reduce(|sum, delta| sum + delta);
    sum.unwrap_or(f64::NAN) / cells.secs
}

/// The sum of fields a second. Those the kernel does not have are no part of it.
pub(crate) fn known_rates(cells: &kymo_base::column::Cells, fields: &[usize]) -> f64 {
    let known = fields.iter().filter(|&&field| !cells.now[field].is_nan());
    let sum = known
        .map(|&field| cells.rate(field))
        .reduce(|sum, rate| sum + rate);
    sum.unwrap_or(f64::NAN)
}

/// `whole - part`; NaN where the part is more than the whole, as containers' and network file systems may say.
pub(crate) fn rest(whole: f64, part: f64) -> f64 {
    match part <= whole {
        true => whole - part,
        false => f64::NAN,
    }
}

/// `a / b`, 0 where `b` is 0.
pub(crate) fn ratio(a: f64, b: f64) -> f64 {
    if b == 0.0 { 0.0 } else { a / b }
}

/// Cells of consecutive fields from `first` on, of the pieces that are numbers.
pub(crate) fn numbers(pieces: &[Piece], first: usize, count: usize) -> Vec<Cell> {
    let cells = pieces.iter().take(count).enumerate();
    cells
        .filter_map(|(n, piece)| {
            Some(Cell {
                field: first + n,
                from: value(piece)?,
            })
        })
        .collect()
}

/// Where the number of a piece is.
pub(crate) fn value(piece: &Piece) -> Option<From> {
    match piece {
        Piece::Slot(slot) => Some(From::Slot(*slot)),
        Piece::Text(text) => std::str::from_utf8(text)
            .ok()?
            .parse::<i64>()
            .ok()
            .map(|number| From::Fixed(number as u64)),
    }
}

#[cfg(test)]
mod column_values;

#[cfg(test)]
pub(crate) mod testing {
    //! A subsystem's reading of texts, for the tables of its tests.

    use kymo_base::context::Context;
    use kymo_base::reading::Reading;
    use kymo_base::track::Tracks;

    use super::Subsystem;
    use crate::interpret::Interpreter;
    use crate::source;

    /// What `subsystem` reads in texts of the given kinds.
    pub(crate) fn read(
        subsystem: &'static Subsystem,
        texts: &[(u8, &str)],
        context: &Context,
    ) -> Reading {
        let mut tracks = Tracks::default();
        for &(kind, text) in texts {
            let grammar = source::of(kind).expect("a known kind").grammar;
            tracks
                .get_mut(kind)
                .put_text(0, b"", text.as_bytes(), grammar);
        }
        let mut reading = Reading::default();
        assert!(Interpreter::new(subsystem).read(&tracks, context, &mut reading));
        reading
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_that_are_only_collectls() {
        assert_eq!(only_collectls('l'), Some("Lustre"));
        assert_eq!(only_collectls('L'), Some("Lustre"));
        for letter in ['y', 'Y', 'c', 'q', '1'] {
            assert_eq!(only_collectls(letter), None, "{letter}");
        }
    }

    fn places(row: &str) -> Vec<&str> {
        row.split('{')
            .skip(1)
            .filter_map(|rest| rest.split([':', '}']).next())
            .collect()
    }

    /// Every place names a column, every name is used once, and every letter is its own.
    #[test]
    fn tables_agree() {
        for subsystem in ALL {
            let has = |columns: &[Column], name: &str| columns.iter().any(|c| c.name == name);
            let Text {
                brief,
                verbose,
                detail,
            } = &subsystem.text;
            for name in [brief.row, verbose.row].into_iter().flat_map(places) {
                assert!(
                    name == "spread" && subsystem.spread || has(subsystem.columns, name),
                    "{}: no column {name}",
                    subsystem.name
                );
            }
            let beside = subsystem.beside.as_ref().map_or("", |beside| beside.row);
            for name in [detail.row, beside].into_iter().flat_map(places) {
                assert!(
                    name == "spread" && subsystem.spread
                        || ["name", "branch", "number"].contains(&name)
                        || has(subsystem.detail, name),
                    "{}: no detail {name}",
                    subsystem.name
                );
            }
            for (places, columns) in [
                (subsystem.plot.summary, subsystem.columns),
                (subsystem.plot.detail, subsystem.detail),
            ] {
                for place in places {
                    let known = place.column.is_empty()
                        || place.column == "name"
                        || has(columns, place.column);
                    assert!(
                        known,
                        "{}: no column {} for {}",
                        subsystem.name, place.column, place.head
                    );
                }
            }
            for columns in [subsystem.columns, subsystem.detail] {
                for (n, column) in columns.iter().enumerate() {
                    assert!(
                        !has(&columns[n + 1..], column.name),
                        "{} twice",
                        column.name
                    );
                }
            }
        }
    }

    #[test]
    fn letters_come_from_the_table() {
        assert!(is_letter('c') && is_letter('C') && is_letter('Z'));
        assert!(!is_letter('z') && is_letter('M') && !is_letter('q'));
        assert!(all_letters().starts_with("c C j J m M b B d D n N"));
        assert!(letters_and_names().starts_with("c cpu, j interrupts, m memory, M numa, "));
        assert!(letters_and_names().ends_with(", Z process"));
        assert!(asks_for_processes("cZ") && !asks_for_processes("cdnm"));
        assert_eq!(only_collectls('l'), Some("Lustre"));
        assert_eq!(only_collectls('c'), None);
    }

    proptest::proptest! {
        /// Whatever a text is, reading it does no harm.
        #[test]
        fn any_text_is_survived(
            bytes: Vec<u8>,
            text in "((cpu|intr|ctxt|MemTotal:|Ip:|Ip: [A-Z]|TCP: mem|Ip6In|pgfault|some|full|eth0:|[0-9]{1,2} \\([a-z )(]{0,4}\\) S|VmRSS:|rchar:|avg10=)?[ 0-9./:=()a-z-]{0,24}\n){0,8}",
        ) {
            for subsystem in ALL {
                for &kind in subsystem.sources {
                    for text in [&bytes[..], text.as_bytes()] {
                        let mut tracks = kymo_base::track::Tracks::default();
                        let grammar = crate::source::of(kind).expect("a known kind").grammar;
                        tracks.get_mut(kind).put_text(0, b"1", text, grammar);
                        let mut reading = kymo_base::reading::Reading::default();
                        crate::interpret::Interpreter::new(subsystem).read(&tracks, &Context::default(), &mut reading);
                        for row in &reading.rows {
                            let is_wide = subsystem.spread && row.values.len() > subsystem.fields.len();
                            assert!(is_wide || row.values.len() == subsystem.fields.len());
                            assert_eq!(row.labels.len(), subsystem.labels.len());
                        }
                    }
                }
            }
        }
    }
}
