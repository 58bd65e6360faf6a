//! The subsystems: one file each, one line in [`ALL`] each. A subsystem's table declares its fields and columns, from which
//! recording, output formats, help and docs are made.

use kymo_base::column::Column;
use kymo_base::context::Context;
use kymo_base::field::{Field, Rule, Unit};
use kymo_base::reading::Row;
use kymo_base::template::{Piece, Template};

use crate::layout::{Cell, From, Layout, RowLayout};
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

/// Content of a subsystem's summary, which the lower-case letter selects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Summary {
    /// The whole-machine numbers.
    Globals,
    /// The sum over the rows that count in it.
    Rows,
    /// No summary; the subsystem has only detail.
    None,
}

/// Outputs that show instances that have done nothing since boot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unused {
    /// All outputs.
    Shown,
    /// All but terminals, where they would hide the active instances.
    NotOnTerminals,
    /// Neither terminals nor plot files, as collectl leaves out loop devices.
    Hidden,
}

/// The table of one subsystem.
pub struct Subsystem {
    /// collectl's letter, lower case for the summary; upper case selects the detail.
    pub letter: char,
    /// Name in CSV, JSON and docs.
    pub name: &'static str,
    /// One line that describes it.
    pub help: &'static str,
    /// Kinds of its sources.
    pub sources: &'static [u8],
    /// Values that the sources of another subsystem add to its instances.
    pub beside: Option<Beside>,
    /// True if the counters of each CPU follow an instance's fields: those of CPU n at `fields.len() + n`.
    pub spread: bool,
    /// Numbers of the whole machine.
    pub globals: &'static [Field],
    /// Numbers of each instance.
    pub fields: &'static [Field],
    /// Texts of each instance.
    pub labels: &'static [&'static str],
    /// Finds the fields in a template of one of its sources.
    pub layout: fn(kind: u8, template: &Template, context: &Context) -> Layout,
    /// Reports whether a source may fill a global. `None`: any source may. Only for sources that are all read at each sample, so that
    /// each of them gives the same samples.
    pub fills: Option<fn(kind: u8, global: usize) -> bool>,
    /// Content of the summary.
    pub summary: Summary,
    /// Rules for values of the sum that are not sums.
    pub sum: Option<Sum>,
    /// Limit of the rates of an instance, if it is known.
    pub ceiling: Option<Ceiling>,
    /// Decides by their numbers which instances count in the sum, if names and relations are not enough.
    pub count: Option<fn(&mut [Row])>,
    /// True if a service records it by default, because it costs little.
    pub in_service: bool,
    /// Columns of the summary.
    pub columns: &'static [Column],
    /// Columns of the detail, which has a row for each instance.
    pub detail: &'static [Column],
    /// The field with the birth time of an instance, in clock ticks since boot. Its counters were 0 then, so that a new
    /// instance has a difference in its first sample.
    pub born: Option<usize>,
    /// Outputs that show instances that have done nothing since boot.
    pub unused: Unused,
    /// Layout of the columns on a terminal.
    pub text: Text,
    /// Layout of the columns in collectl's plot format.
    pub plot: Plot,
    /// Metrics for Prometheus.
    pub exposed: Exposed,
}

/// Rules for values of the sum that are not sums.
pub struct Sum {
    /// Indices of counters whose sum has no meaning, such as waiting time; the sum has their maximum instead.
    pub peaks: &'static [usize],
    /// Returns true if an instance with these values takes part in the maximum.
    pub among: fn(&[f64]) -> bool,
    /// The instance whose numbers are used if no row that counts has them.
    pub otherwise: &'static [u8],
}

/// Limit of the rates of an instance.
pub struct Ceiling {
    /// Indices of the limited counters.
    pub fields: &'static [usize],
    /// A rate a second that each instance can reach; lower rates are not checked.
    pub least: f64,
    /// The highest plausible rate a second of an instance.
    pub most: fn(name: &[u8], context: &Context) -> Most,
    /// The message about a rate above the limit.
    pub remark: fn(name: &[u8], rate: f64, context: &Context) -> String,
}

/// A highest rate.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Most {
    /// The instance's own limit.
    Known(f64),
    /// The usual limit of such instances; a rate that stays above it is accepted.
    Guessed(f64),
}

/// Values of a subsystem's instances that are shown if another subsystem is selected too.
pub struct Beside {
    /// The letter of the other subsystem.
    pub letter: char,
    /// Kinds of sources that are read for these values.
    pub sources: &'static [u8],
    /// Text after the last head of the detail.
    pub head: &'static str,
    /// Text after its row.
    pub row: &'static str,
}

/// Limit of the number of CPUs with counters of their own.
pub const SPREAD_MAX: usize = 8192;
/// Rule of the counters of each CPU.
pub const SPREAD_RULE: Rule = Rule::Counter32;

impl Subsystem {
    /// All kinds of sources whose values it uses: its own, and those of [`Subsystem::beside`].
    pub fn understood(&self) -> impl Iterator<Item = u8> + Clone + use<> {
        let beside = self
            .beside
            .as_ref()
            .map_or(&[][..], |beside| beside.sources);
        self.sources.iter().chain(beside).copied()
    }

    /// The kinds of sources that give these globals; all kinds if that is not known.
    pub fn sources_of_globals(&self, globals: &[usize]) -> Vec<u8> {
        let fills = |kind: u8| match self.fills {
            Some(fills) => globals.iter().any(|&global| fills(kind, global)),
            None => true,
        };
        let kinds = self.sources.iter().copied();
        let kinds: Vec<u8> = kinds.filter(|&kind| fills(kind)).collect();
        match kinds.is_empty() {
            true => self.sources.to_vec(),
            false => kinds,
        }
    }

    /// Returns true if its instances are processes or threads, which are scanned at an interval of their own.
    pub fn is_of_processes(&self) -> bool {
        let mut sources = self.sources.iter().filter_map(|&kind| source::of(kind));
        sources.any(|source| source.scope.is_of_tasks())
    }

    /// Returns true if all its sources are read at the interval of process scans.
    pub fn is_scanned(&self) -> bool {
        let mut sources = self.sources.iter().filter_map(|&kind| source::of(kind));
        sources.all(|source| source.pace != Pace::EachSample)
    }

    /// Returns true if the names of its instances, and so all their values, are about persons.
    pub fn is_private(&self) -> bool {
        !self.detail.is_empty() && self.detail.iter().all(|column| column.private)
    }

    /// The letters of the summary, if it has one, and of the detail.
    pub fn letters(&self) -> impl Iterator<Item = char> {
        let summary = (self.summary != Summary::None).then_some(self.letter);
        let detail = (!self.detail.is_empty()).then_some(self.letter.to_ascii_uppercase());
        summary.into_iter().chain(detail)
    }
}

/// Layout of columns on a terminal: which columns, and their widths.
///
/// `rows` are lines with places `{COLUMN:WIDTHFORM}`. The forms are:
/// - `d`: a whole number, truncated;
/// - `.2`: two decimals;
/// - `c`: a count shortened with K, M, G (thousands);
/// - `u`: as `c`, but by 1024;
/// - `k`: KiB, shortened by 1024;
/// - `b`: bytes, shown as KiB;
/// - `t`: seconds as time;
/// - `s`: a text.
///
/// A number after the form is the width to which it shortens. A negative width aligns left. `{spread:...}` is the counter of
/// each CPU, one after the other, followed by a blank each if the form ends in `_`. In heads, `{cpus:7}` are the names of
/// the CPUs in this width; `{cpus:brief}` and `{cpus:-}` are the names in collectl's brief line and the dashes around its
/// title. `{page}` is the size of a page in KiB. `{name:...}` is the instance's name, `{branch:...}` the last part of a
/// path, indented by the number of parts before it, and `{number:...}` the instance's number.
pub struct Text {
    /// One line for each interval: a banner, the names, the row.
    pub brief: Lines,
    /// The summary alone.
    pub verbose: Lines,
    /// The instances.
    pub detail: Lines,
}

/// Lines of a terminal format; empty if it does not show the subsystem.
pub struct Lines {
    /// The title, without `# `; `{rate}` is `/sec` or `/int`.
    pub title: &'static str,
    /// Lines above the columns; the last one has their names.
    pub heads: &'static [&'static str],
    /// A row.
    pub row: &'static str,
}

impl Lines {
    /// No lines.
    pub const NONE: Lines = Lines {
        title: "",
        heads: &[],
        row: "",
    };
}

/// Layout of columns in collectl's plot format.
pub struct Plot {
    /// The text in brackets before each name.
    pub tag: &'static str,
    /// Position of the summary in a line, which differs from the brief format.
    pub order: u8,
    /// Suffix of the file of details.
    pub file: &'static str,
    /// Names of the summary and their columns, in order.
    pub summary: &'static [PlotColumn],
    /// Names of each instance and their columns, in order.
    pub detail: &'static [PlotColumn],
    /// Arrangement of the instances in lines.
    pub shape: Shape,
}

/// A name in a plot header, its column and its form.
#[derive(Clone, Copy, Debug)]
pub struct PlotColumn {
    /// collectl's name. `{rate}` is `/sec` or `/int`. A head with `{name}` is complete, including its tag, and `{name}` is
    /// the part of the instance's name after the first `_`.
    pub head: &'static str,
    /// Column of the subsystem; empty for the constant 0.
    pub column: &'static str,
    /// Form of the value.
    pub form: Form,
}

/// Form of a plot value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// With the requested number of decimals.
    ChosenDecimals,
    /// With two decimals.
    Two,
    /// Truncated to a whole number.
    Whole,
    /// Seconds as hours, minutes and seconds.
    Clock,
    /// A text.
    Text,
}

/// Arrangement of instances in a plot file of details.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// All instances in one line.
    Wide,
    /// All instances in one line, by name, each with the columns that the function accepts.
    Own(fn(&[u8], &PlotColumn) -> bool),
    /// One line for each instance.
    Long,
}

impl Shape {
    /// Returns true if each instance has its own line.
    pub fn is_long(self) -> bool {
        matches!(self, Shape::Long)
    }
}

/// All subsystems, in the order of collectl's brief columns.
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

/// collectl's letters with their names, in the order of its manual.
const COLLECTL: &[(char, &str)] = &[
    ('l', "Lustre"),
    ('L', "Lustre"),
    ('y', "slabs"),
    ('Y', "slabs"),
];

/// The name of a collectl letter without a subsystem here.
pub fn only_collectls(letter: char) -> Option<&'static str> {
    let (_, name) = COLLECTL.iter().find(|(known, _)| *known == letter)?;
    (!is_letter(letter)).then_some(name)
}

/// Returns true if a subsystem has this letter.
pub fn is_letter(letter: char) -> bool {
    of(letter).is_some()
}

/// All letters, as `c C m d D`.
pub fn all_letters() -> String {
    let mut spelled = String::new();
    for letter in ALL.iter().flat_map(|subsystem| subsystem.letters()) {
        spelled.extend([letter, ' ']);
    }
    spelled.truncate(spelled.trim_end().len());
    spelled
}

/// Letter and name of each subsystem, for help: `c cpu, m memory, Z process`.
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

/// Returns true if one of the letters selects the subsystem.
pub fn is_asked(subsystem: &Subsystem, letters: &str) -> bool {
    subsystem.letters().any(|letter| letters.contains(letter))
}

/// Returns true if one of the letters selects processes.
pub fn asks_for_processes(letters: &str) -> bool {
    letters
        .chars()
        .any(|letter| of(letter).is_some_and(Subsystem::is_of_processes))
}

/// The subsystem that has this letter; `m` and `M` belong to different ones.
pub fn of(letter: char) -> Option<&'static Subsystem> {
    let mut all = ALL.iter().copied();
    all.find(|subsystem| subsystem.letters().any(|known| known == letter))
}

/// A plot value with the requested number of decimals.
pub(crate) const fn plot(head: &'static str, column: &'static str) -> PlotColumn {
    place(head, column, Form::ChosenDecimals)
}

/// A plot value in a given form.
pub(crate) const fn place(head: &'static str, column: &'static str, form: Form) -> PlotColumn {
    PlotColumn { head, column, form }
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

/// The index of the field with this name. As a constant, an unknown name is a compile error.
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

/// A column with a number.
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

/// A column with a text.
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

/// Value of a gauge's column: field `N`.
pub(crate) fn now<const N: usize>(cells: &kymo_base::column::Cells) -> f64 {
    cells.now[N]
}

/// Value of a counter's column: field `N` a second.
pub(crate) fn rate<const N: usize>(cells: &kymo_base::column::Cells) -> f64 {
    cells.rate(N)
}

/// The sum of the counters of all CPUs, a second; `first` is the field of CPU 0.
pub(crate) fn spread_rates(cells: &kymo_base::column::Cells, first: usize) -> f64 {
    let counts = cells.delta.get(first..).unwrap_or_default();
    let known = counts.iter().copied().filter(|delta| !delta.is_nan());
    let sum = known.reduce(|sum, delta| sum + delta);
    sum.unwrap_or(f64::NAN) / cells.secs
}

/// The sum of the rates of fields, without those that the kernel lacks.
pub(crate) fn known_rates(cells: &kymo_base::column::Cells, fields: &[usize]) -> f64 {
    let known = fields.iter().filter(|&&field| !cells.now[field].is_nan());
    let sum = known
        .map(|&field| cells.rate(field))
        .reduce(|sum, rate| sum + rate);
    sum.unwrap_or(f64::NAN)
}

/// `whole - part`; NaN if the part exceeds the whole, as in containers and network file systems.
pub(crate) fn rest(whole: f64, part: f64) -> f64 {
    match part <= whole {
        true => whole - part,
        false => f64::NAN,
    }
}

/// `a / b`, or 0 if `b` is 0.
pub(crate) fn ratio(a: f64, b: f64) -> f64 {
    if b == 0.0 { 0.0 } else { a / b }
}

/// Cells of consecutive fields from `first` on, for the pieces that are numbers.
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

/// Rows of a digest whose lines are the name of an instance and numbers, fields from `first` on.
pub(crate) fn named_rows(template: &Template, first: usize, count: usize) -> Layout {
    let row = |line: &Vec<Piece>| match line.split_first()? {
        (Piece::Text(name), rest) => Some(RowLayout {
            name: name.to_vec(),
            cells: numbers(rest, first, count),
            ..RowLayout::default()
        }),
        (Piece::Slot(_), _) => None,
    };
    Layout {
        rows: template.lines().iter().filter_map(row).collect(),
        ..Layout::default()
    }
}

/// The lines `NAME NUMBER` of a bundle, each of which is the field of its name.
pub(crate) fn bundled(template: &Template, fields: &[Field]) -> Layout {
    let cell = |line: &Vec<Piece>| {
        let [Piece::Text(name), number] = line[..] else {
            return None;
        };
        let field = fields
            .iter()
            .position(|field| field.name.as_bytes() == name);
        Some(Cell {
            field: field?,
            from: value(&number)?,
        })
    };
    Layout {
        globals: template.lines().iter().filter_map(cell).collect(),
        ..Layout::default()
    }
}

/// Source of the number in a piece.
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
mod expressions;

#[cfg(test)]
pub(crate) mod testing {
    //! Reads texts for the tables of a subsystem's tests.

    use kymo_base::context::Context;
    use kymo_base::reading::Reading;
    use kymo_base::track::Tracks;

    use super::Subsystem;
    use crate::interpret::Interpreter;
    use crate::source;

    /// The reading of `subsystem` for texts of the given kinds.
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
    use kymo_base::reading::MISSING;

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

    /// Every place names a column, every name is used once, and every letter is unique.
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

    /// The globals that a text gives are those that its source fills, and no metric needs a source beside.
    #[test]
    fn sources_fill_their_globals() {
        for subsystem in ALL.iter().filter(|subsystem| subsystem.fills.is_some()) {
            let mut filled = 0;
            for &kind in subsystem.sources {
                let source = crate::source::of(kind).expect("a known kind");
                let text = std::fs::read_to_string(format!("/{}", source.path)).expect("a text");
                let reading = testing::read(subsystem, &[(kind, &text)], &Context::default());
                let given = |&at: &usize| reading.globals[at] != MISSING;
                let given: Vec<usize> = (0..reading.globals.len()).filter(given).collect();
                filled += given.len();
                for at in given {
                    let field = subsystem.globals[at].name;
                    assert!(
                        subsystem.sources_of_globals(&[at]).contains(&kind),
                        "{field}"
                    );
                    assert_eq!(subsystem.sources_of_globals(&[at]).len(), 1, "{field}");
                }
            }
            assert!(filled > 10, "{}", subsystem.name);
        }
        let families = cpu::CPU.exposed.each.iter().flat_map(|each| each.families);
        let mut fields = families.flat_map(|family| family.fields());
        let mut of_cpu = cpu::CPU.fields.iter();
        let beside = of_cpu.position(|field| field.name == "interrupts");
        assert!(beside.is_some_and(|beside| fields.all(|field| field != beside)));
    }

    proptest::proptest! {
        /// Reading arbitrary texts is harmless.
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
                        if let Some(fills) = subsystem.fills {
                            let mut given = (0..reading.globals.len()).filter(|&at| reading.globals[at] != MISSING);
                            assert!(given.all(|at| fills(kind, at)));
                        }
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
