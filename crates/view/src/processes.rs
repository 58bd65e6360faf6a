//! Filters and orders of processes: `--procfilt`, `--procstate`, `--top` (also for slab caches).

use kymo_base::column::{Cells, Value};
use kymo_base::context::Context;
use kymo_kernel::choice::{Candidate, Facts};
use kymo_kernel::subsystem::process::{
    self, CMDLINE, COMM, CONTAINER, PROCESS, STATE, container_facts,
};
use kymo_kernel::subsystem::slab::{SLAB, TOP_COLUMNS};
use regex_lite::Regex;

pub use crate::procopts::Columns;

/// `--top`: the first few processes or slab caches in an order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Top {
    sort: &'static Sort,
    /// Number of processes or slab caches.
    pub count: usize,
    /// True to print intervals below one another, not in place.
    pub vertical: bool,
}

/// An order of processes or slab caches.
#[derive(PartialEq, Eq, Debug)]
struct Sort {
    name: &'static str,
    /// Columns whose sum is the sort key.
    columns: &'static [&'static str],
    order: Order,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Order {
    Most,
    Least,
    /// The largest first, whatever its sign.
    Largest,
    /// By name.
    Name,
}

const fn most(name: &'static str, columns: &'static [&'static str]) -> Sort {
    Sort {
        name,
        columns,
        order: Order::Most,
    }
}

const fn least(name: &'static str, columns: &'static [&'static str]) -> Sort {
    Sort {
        name,
        columns,
        order: Order::Least,
    }
}

const fn slabs(name: &'static str, columns: &'static [&'static str], order: Order) -> Sort {
    Sort {
        name,
        columns,
        order,
    }
}

/// Orders of slab caches, with collectl's names.
static SLAB_SORTS: &[Sort] = &[
    slabs("numobj", &["objects"], Order::Most),
    slabs("actobj", &["objects_in_use"], Order::Most),
    slabs("objsize", &["object_size"], Order::Most),
    slabs("numslab", &["slabs_in_use"], Order::Most),
    slabs("objslab", &["slab_objects"], Order::Most),
    slabs("totsize", &["slabs_bytes"], Order::Most),
    slabs("totchg", &["change_bytes"], Order::Largest),
    slabs("totpct", &["change_percent"], Order::Largest),
    slabs("name", &[], Order::Name),
];

/// Orders of processes, with collectl's names. The first one is the default.
static SORTS: &[Sort] = &[
    most("time", &["syst", "usrt"]),
    most("vsz", &["vsz"]),
    most("rss", &["rss"]),
    most("syst", &["syst"]),
    most("usrt", &["usrt"]),
    most("accum", &["accum"]),
    most("rkb", &["rkb"]),
    most("wkb", &["wkb"]),
    most("iokb", &["rkb", "wkb"]),
    most("rkbc", &["rkbc"]),
    most("wkbc", &["wkbc"]),
    most("iokbc", &["rkbc", "wkbc"]),
    most("ioall", &["rkb", "wkb", "rkbc", "wkbc"]),
    most("rsys", &["rsys"]),
    most("wsys", &["wsys"]),
    most("iosys", &["rsys", "wsys"]),
    most("iocncl", &["cncl"]),
    most("majf", &["majf"]),
    most("minf", &["minf"]),
    most("flt", &["majf", "minf"]),
    most("vctx", &["vctx"]),
    most("nctx", &["nctx"]),
    most("thread", &["threads"]),
    least("cpu", &["cpu"]),
    least("pid", &["pid"]),
];

impl Default for Top {
    fn default() -> Top {
        Top {
            sort: &SORTS[0],
            count: usize::MAX,
            vertical: false,
        }
    }
}

impl Top {
    /// Parses `[sort][,n]`. Without `n`, `default_count` holds.
    pub fn parse(text: &str, default_count: usize) -> Result<Top, String> {
        let wrong = |cause: &str| format!("cannot use --top {}: {cause}", text.escape_debug());
        let (text, vertical) = text
            .strip_suffix(",v")
            .map_or((text, false), |text| (text, true));
        let (name, count) = match text.split_once(',') {
            Some((name, "")) => (name, None),
            Some((name, count)) => (name, Some(count)),
            None if text.starts_with(|c: char| c.is_ascii_digit()) => ("", Some(text)),
            None => (text, None),
        };
        let sort = match name {
            "" => SORTS.first(),
            _ => SORTS
                .iter()
                .chain(SLAB_SORTS)
                .find(|sort| sort.name == name),
        };
        let names = || [Top::orders(), Top::slab_orders()].concat().join(" ");
        let count = match count {
            None => default_count,
            Some(count) => count
                .parse()
                .ok()
                .filter(|&n| n > 0)
                .ok_or_else(|| wrong("not a number of processes"))?,
        };
        Ok(Top {
            sort: sort.ok_or_else(|| wrong(&format!("no such order; there are {}", names())))?,
            count,
            vertical,
        })
    }

    /// Names of all orders of processes.
    pub fn orders() -> Vec<&'static str> {
        SORTS.iter().map(|sort| sort.name).collect()
    }

    /// Names of all orders of slab caches.
    pub fn slab_orders() -> Vec<&'static str> {
        SLAB_SORTS.iter().map(|sort| sort.name).collect()
    }

    /// Letter of the subsystem whose instances the order is for.
    pub fn letter(&self) -> char {
        match SLAB_SORTS.contains(self.sort) {
            true => SLAB.letter,
            false => PROCESS.letter,
        }
    }

    /// True if the order is by name.
    pub(crate) fn is_by_name(&self) -> bool {
        self.sort.order == Order::Name
    }

    /// All orders of processes, without a limit on their number.
    pub(crate) fn fields() -> impl Iterator<Item = Top> {
        SORTS.iter().map(|sort| Top {
            sort,
            count: usize::MAX,
            vertical: false,
        })
    }

    /// True if values of several processes can be summed.
    pub(crate) fn adds_up(&self) -> bool {
        self.sort.order == Order::Most
    }

    /// True if the value is in KiB per second.
    pub(crate) fn is_of_kilobytes(&self) -> bool {
        self.sort.name.contains("kb") || self.sort.name == "ioall"
    }

    /// Name of the order.
    pub fn name(&self) -> &'static str {
        self.sort.name
    }

    /// The sort key; the largest comes first.
    pub(crate) fn value(&self, cells: &Cells) -> f64 {
        self.key()(cells)
    }

    /// The sort key of many: its columns are looked up once.
    pub fn key(&self) -> impl Fn(&Cells) -> f64 + use<> {
        let all = match self.letter() == SLAB.letter {
            true => TOP_COLUMNS,
            false => PROCESS.detail,
        };
        let columns = all
            .iter()
            .filter(|column| self.sort.columns.contains(&column.name));
        let numbers: Vec<fn(&Cells) -> f64> = columns
            .filter_map(|column| match column.value {
                Value::Number(value) => Some(value),
                Value::Text(_) => None,
            })
            .collect();
        let order = self.sort.order;
        move |cells| {
            let values = numbers.iter().map(|value| value(cells));
            let sum: f64 = values.filter(|value| !value.is_nan()).sum();
            match order {
                Order::Most => sum,
                Order::Least => -sum,
                Order::Largest => sum.abs(),
                Order::Name => 0.0,
            }
        }
    }
}

/// `--procstate`: letters of process states.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct States(Vec<u8>);

impl States {
    /// Parses letters such as `DRSTWZ`; I is for idle threads of newer kernels.
    pub(crate) fn parse(letters: &str) -> Result<States, String> {
        let known = |letter: char| "DIRSTWXZ".contains(letter);
        match letters.is_empty() || !letters.chars().all(known) {
            true => Err(format!(
                "cannot use --procstate {}: it takes D I R S T W X Z",
                letters.escape_debug()
            )),
            false => Ok(States(letters.bytes().collect())),
        }
    }

    pub(crate) fn pass(&self, cells: &Cells) -> bool {
        let state = cells.labels[STATE].first();
        state.is_some_and(|state| self.0.contains(state))
    }
}

/// `--procfilt`: accepts processes that pass any of its tests.
#[derive(Default)]
pub struct Filter {
    /// The tests; an empty list accepts all processes.
    pub(crate) tests: Vec<Test>,
}

/// A test of a process filter.
pub(crate) struct Test {
    what: Criterion,
    /// `+`: includes the threads of matching processes.
    pub(crate) threads: bool,
}

enum Criterion {
    /// `c`: the name matches.
    Comm(Regex),
    /// `C`: the name begins with this.
    CommStart(Vec<u8>),
    /// `f`: the command line matches.
    Command(Regex),
    /// `g`: the path of its control group matches, or a fact of its container: runtime, name, image, pod or namespace.
    Group(Regex),
    /// `p`: the process id.
    Pid(u64),
    /// `P`: the id of the parent.
    Parent(u64),
    /// `u`: a user id, or a range of them.
    Uids(u64, u64),
    /// `U`: a user's name.
    User(Vec<u8>),
}

impl Filter {
    /// Parses `TYPE[+]MATCH[+][,...]`; collectl has the plus before the match.
    pub fn parse(text: &str) -> Result<Filter, String> {
        let tests = text.split(',').map(|test| {
            Test::parse(test.trim())
                .map_err(|cause| format!("cannot use --procfilt {}: {cause}", test.escape_debug()))
        });
        Ok(Filter {
            tests: tests.collect::<Result<_, _>>()?,
        })
    }

    /// True if a test includes threads.
    pub fn wants_threads(&self) -> bool {
        self.tests.iter().any(|test| test.threads)
    }

    /// True if a test looks at private facts: command lines, control groups and users.
    pub fn asks_for_private(&self) -> bool {
        let mut tests = self.tests.iter();
        tests.any(|test| match test.what {
            Criterion::Command(_)
            | Criterion::Group(_)
            | Criterion::Uids(..)
            | Criterion::User(_) => true,
            Criterion::Comm(_)
            | Criterion::CommStart(_)
            | Criterion::Pid(_)
            | Criterion::Parent(_) => false,
        })
    }

    /// The facts of a process that the tests need.
    pub fn facts(&self) -> Facts {
        let mut facts = Facts::default();
        for test in &self.tests {
            match test.what {
                Criterion::Comm(_) | Criterion::CommStart(_) => facts.name = true,
                Criterion::Parent(_) => facts.parent = true,
                Criterion::Command(_) => facts.command = true,
                Criterion::Group(_) => facts.groups = true,
                Criterion::Uids(..) | Criterion::User(_) => facts.user = true,
                Criterion::Pid(_) => {}
            }
        }
        facts
    }

    /// True if a process passes. The recorder uses this to select processes.
    pub fn chooses(&self, candidate: &Candidate, context: &Context) -> bool {
        let mut values = vec![f64::NAN; PROCESS.fields.len()];
        let fields = PROCESS.fields.iter().zip(&mut values);
        for (field, value) in fields {
            match field.name {
                "ppid" => *value = candidate.parent as f64,
                "Uid" => *value = candidate.uid.map_or(f64::NAN, |uid| uid as f64),
                _ => {}
            }
        }
        let [comm, command, groups, container] = [
            &candidate.comm,
            &candidate.command,
            &candidate.groups,
            &candidate.container,
        ]
        .map(Clone::clone);
        let pid = candidate.pid.to_string();
        let cells = Cells {
            now: &values,
            delta: &values,
            secs: 1.0,
            elapsed: 1.0,
            name: pid.as_bytes(),
            labels: &[comm, Vec::new(), command, groups, container],
            context,
        };
        self.tests.iter().any(|test| test.passes(&cells))
    }

    /// True if all processes pass.
    pub(crate) fn is_open(&self) -> bool {
        self.tests.is_empty()
    }
}

impl Test {
    fn parse(text: &str) -> Result<Test, String> {
        let (text, threads) = text
            .strip_suffix('+')
            .map_or((text, false), |text| (text, true));
        let mut rest = text.chars();
        let kind = rest.next().ok_or("empty")?;
        let text = rest.as_str().trim_start();
        let (text, threads) = text
            .strip_prefix('+')
            .map_or((text, threads), |text| (text.trim_start(), true));
        let number = |text: &str| {
            text.parse::<u64>()
                .map_err(|_| format!("{} is not a number", text.escape_debug()))
        };
        let regex = || {
            Regex::new(text)
                .map_err(|error| format!("not a regular expression: {error}").replace('\n', " "))
        };
        if text.is_empty() {
            return Err("nothing to match".into());
        }
        let what = match kind {
            'c' => Criterion::Comm(regex()?),
            'C' => Criterion::CommStart(text.into()),
            'f' => Criterion::Command(regex()?),
            'g' => Criterion::Group(regex()?),
            'p' => Criterion::Pid(number(text)?),
            'P' => Criterion::Parent(number(text)?),
            'u' => {
                let (low, high) = text.split_once('-').unwrap_or((text, text));
                Criterion::Uids(number(low)?, number(high)?)
            }
            'U' => Criterion::User(text.into()),
            _ => return Err("it begins with one of c C f g p P u U".into()),
        };
        Ok(Test { what, threads })
    }

    /// True if a process passes.
    pub(crate) fn passes(&self, cells: &Cells) -> bool {
        let number = |name: &str| column(cells, name).0;
        let matches = |regex: &Regex, text: &[u8]| regex.is_match(&String::from_utf8_lossy(text));
        match &self.what {
            Criterion::Comm(regex) => matches(regex, &cells.labels[COMM]),
            Criterion::CommStart(start) => cells.labels[COMM].starts_with(start),
            Criterion::Command(regex) => {
                !cells.labels[CMDLINE].is_empty() && matches(regex, &column(cells, "command").1)
            }
            Criterion::Group(regex) => {
                let container = cells.labels.get(CONTAINER);
                let mut facts = container.into_iter().flat_map(|text| container_facts(text));
                matches(regex, &column(cells, "cgroup").1) || facts.any(|fact| matches(regex, fact))
            }
            Criterion::Pid(pid) => process::pid_of(cells.name) == *pid,
            Criterion::Parent(pid) => number("ppid") == *pid as f64,
            Criterion::Uids(low, high) => (*low as f64..=*high as f64).contains(&number("uid")),
            Criterion::User(name) => column(cells, "user").1 == *name,
        }
    }
}

/// A column of a process, as a number or as a text.
fn column(cells: &Cells, name: &str) -> (f64, Vec<u8>) {
    let mut text = Vec::new();
    let mut number = f64::NAN;
    if let Some(column) = PROCESS.detail.iter().find(|column| column.name == name) {
        match column.value {
            Value::Number(value) => number = value(cells),
            Value::Text(value) => value(cells, &mut text),
        }
    }
    (number, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders() {
        for (text, expect) in [
            ("", Ok(("time", 10))),
            ("cpu", Ok(("cpu", 10))),
            ("rss,5", Ok(("rss", 5))),
            (",7", Ok(("time", 7))),
            ("7", Ok(("time", 7))),
            ("totchg,3", Ok(("totchg", 3))),
            (
                "rss,0",
                Err("cannot use --top rss,0: not a number of processes"),
            ),
            (
                "rss,x",
                Err("cannot use --top rss,x: not a number of processes"),
            ),
        ] {
            let got = Top::parse(text, 10).map(|top| (top.name(), top.count));
            assert_eq!(got, expect.map_err(str::to_string), "{text}");
        }
        assert!(Top::parse("best", 10).is_err_and(|error| error.contains("no such order")));
    }

    #[test]
    fn every_order_has_its_columns() {
        let of_processes = SORTS.iter().map(|sort| (sort, PROCESS.detail));
        let of_slabs = SLAB_SORTS.iter().map(|sort| (sort, TOP_COLUMNS));
        for (sort, columns) in of_processes.chain(of_slabs) {
            for name in sort.columns {
                let known = columns
                    .iter()
                    .any(|column| column.name == *name && matches!(column.value, Value::Number(_)));
                assert!(known, "{name}");
            }
        }
    }

    #[test]
    fn a_process_is_chosen_for_a_recording_by_the_same_tests() {
        let mut context = Context::default();
        context.set("uid.1000", "ann");
        let candidate = Candidate {
            pid: 34,
            parent: 12,
            comm: b"cc1".to_vec(),
            uid: Some(1000),
            command: b"/usr/lib/cc1\0-quiet\0x.c\0".to_vec(),
            groups: b"0::/a.slice/b\n".to_vec(),
            container: Vec::new(),
        };
        for (text, expect) in [
            ("cc1", true),
            ("Cc1", false),
            ("f-quiet x", true),
            ("g^/a.slice", true),
            ("p34", true),
            ("p35", false),
            ("P12", true),
            ("P34", false),
            ("u1000", true),
            ("u0-999", false),
            ("Uann", true),
            ("Uan", false),
        ] {
            let filter = Filter::parse(text).expect(text);
            assert_eq!(filter.chooses(&candidate, &context), expect, "{text}");
            // Facts that no test needs are not read.
            let facts = filter.facts();
            let needs = [
                facts.name,
                facts.parent,
                facts.user,
                facts.command,
                facts.groups,
            ];
            let count = needs.iter().filter(|&&is_needed| is_needed).count();
            assert_eq!(count, usize::from(!text.starts_with('p')), "{text}");
        }
    }

    #[test]
    fn filters() {
        let labels = [
            b"cc1".to_vec(),
            b"R".to_vec(),
            b"/usr/lib/cc1\0-quiet\0x.c\0".to_vec(),
            b"0::/a.slice/b\n".to_vec(),
        ];
        let mut context = Context::default();
        context.set("uid.1000", "ann");
        let mut now = vec![f64::NAN; PROCESS.fields.len()];
        let field = |name: &str| {
            PROCESS
                .fields
                .iter()
                .position(|field| field.name == name)
                .expect("a field")
        };
        (now[field("ppid")], now[field("Uid")]) = (12.0, 1000.0);
        let cells = Cells {
            now: &now,
            delta: &now,
            secs: 1.0,
            elapsed: 1.0,
            name: b"34",
            labels: &labels,
            context: &context,
        };
        for (text, expect) in [
            ("cc1", true),
            ("c^c.1$", true),
            ("cgcc", false),
            ("C cc", true),
            ("Cc1", false),
            ("f-quiet x", true),
            ("fnope", false),
            ("g^/a.slice", true),
            ("gb$", true),
            ("g^b", false),
            ("p34", true),
            ("p35", false),
            ("P12", true),
            ("P34", false),
            ("u1000", true),
            ("u0-999", false),
            ("u 900-1100", true),
            ("Uann", true),
            ("Uan", false),
            ("cx,p34+", true),
        ] {
            let filter = Filter::parse(text).expect(text);
            assert_eq!(
                filter.tests.iter().any(|test| test.passes(&cells)),
                expect,
                "{text}"
            );
        }
        for text in ["", "c", "pxyz", "zfoo", "c(", "u1-x", "p1,,p2"] {
            assert!(
                Filter::parse(text).is_err_and(|error| error.starts_with("cannot use --procfilt")),
                "{text}"
            );
        }
    }
}
