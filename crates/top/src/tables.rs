//! The tables: their columns at any width, and their orders. Rows are in the grammar of `kymo_kernel::subsystem::Text`.

use kymo_base::column::{Cells, Column, Value};
use kymo_kernel::subsystem::Subsystem;
use kymo_kernel::subsystem::cgroups::CGROUPS;
use kymo_kernel::subsystem::cpu::CPU;
use kymo_kernel::subsystem::disk::DISK;
use kymo_kernel::subsystem::net::NET;
use kymo_kernel::subsystem::process::PROCESS;
use kymo_view::processes::Top;

/// Columns of a table.
#[derive(Debug)]
pub struct Set {
    /// Key that chooses them; a blank: there are no others.
    pub key: char,
    /// Name of the set.
    pub name: &'static str,
    /// Least width of a screen for them.
    pub least_width: u16,
    /// Names of the columns; the last one has the rest of the line.
    pub head: &'static str,
    /// Values, without the last column.
    pub row: &'static str,
}

/// A table.
pub struct Table {
    /// Key that shows it.
    pub key: char,
    /// Name.
    pub name: &'static str,
    /// Name where there is little room.
    pub short: &'static str,
    /// Subsystem of its instances.
    pub subsystem: &'static Subsystem,
    /// Sets of columns; of several with one key the last one that fits is shown.
    pub sets: &'static [Set],
    /// Columns that it can be ordered by; empty: the orders of `--top`.
    pub orders: &'static [&'static str],
    /// Column of the last, open place of each line.
    pub last: &'static str,
    /// Kind of its lines.
    pub content: Content,
}

/// Kind of a table's lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Content {
    /// Instances of the subsystem.
    Instances,
    /// Processes in state D.
    Waiting,
    /// Publishing programs, as text.
    Programs,
}

const fn set(
    key: char,
    name: &'static str,
    least_width: u16,
    head: &'static str,
    row: &'static str,
) -> Set {
    Set {
        key,
        name,
        least_width,
        head,
        row,
    }
}

const PROCESS_SETS: &[Set] = &[
    set(
        'g',
        "general",
        0,
        "    PID  User     S  Pct   RSS  RKB  WKB Command",
        "{pid:7d}{thread:-1s} {user:-8s8} {state:1s} {pct:4d} {rss:5k4} {rkb:4k4} {wkb:4k4} ",
    ),
    set(
        'g',
        "general",
        120,
        "    PID  User     PR    PPID THRD S   VSZ   RSS CP  SysT  UsrT  Pct  AccuTime  RKB  WKB MajF MinF Command",
        "{pid:7d}{thread:-1s} {user:-8s8} {priority:2s} {ppid:7d} {threads:4d} {state:1s} {vsz:5k4} {rss:5k4} {cpu:2d} {syst:5.2} {usrt:5.2} {pct:4d} {accum:9t} {rkb:4k4} {wkb:4k4} {majf:4c} {minf:4c} ",
    ),
    set(
        'm',
        "memory",
        0,
        "    PID  User     S   VSZ   RSS  Data  Swap MajF MinF Command",
        "{pid:7d}{thread:-1s} {user:-8s8} {state:1s} {vsz:5k4} {rss:5k4} {data:5k4} {swap:5k4} {majf:4c} {minf:4c} ",
    ),
    set(
        'm',
        "memory",
        120,
        "    PID  User     S VmSize  VmLck  VmRSS VmData  VmStk  VmExe  VmLib  VmSwp MajF MinF Command",
        "{pid:7d}{thread:-1s} {user:-8s8} {state:1s} {vsz:6k} {locked:6k} {rss:6k} {data:6k} {stack:6k} {text:6k} {lib:6k} {swap:6k} {majf:4c} {minf:4c} ",
    ),
    set(
        'd',
        "I/O",
        0,
        "    PID  User     S   RKB   WKB  RKBC  WKBC RSys WSys Command",
        "{pid:7d}{thread:-1s} {user:-8s8} {state:1s} {rkb:5k4} {wkb:5k4} {rkbc:5k4} {wkbc:5k4} {rsys:4u} {wsys:4u} ",
    ),
    set(
        'd',
        "I/O",
        120,
        "    PID  User        PPID S  SysT  UsrT  Pct  AccuTime   RKB   WKB  RKBC  WKBC  RSys  WSys  Cncl Command",
        "{pid:7d}{thread:-1s} {user:-8s8} {ppid:7d} {state:1s} {syst:5.2} {usrt:5.2} {pct:4d} {accum:9t} {rkb:5k4} {wkb:5k4} {rkbc:5k4} {wkbc:5k4} {rsys:5u} {wsys:5u} {cncl:5k4} ",
    ),
    set(
        'v',
        "various",
        0,
        "    PID  User     PR    PPID THRD S CP VCtx NCtx  AccuTime Command",
        "{pid:7d}{thread:-1s} {user:-8s8} {priority:2s} {ppid:7d} {threads:4d} {state:1s} {cpu:2d} {vctx:4u} {nctx:4u} {accum:9t} ",
    ),
];

/// Columns of processes that are added up: by user, by program, by control group. The pid is their number.
pub const GROUPED: Set = set(
    ' ',
    "grouped",
    0,
    "  Procs  Pct   VSZ   RSS  RKB  WKB MajF MinF ",
    "{pid:7d} {pct:4d} {vsz:5k4} {rss:5k4} {rkb:4k4} {wkb:4k4} {majf:4c} {minf:4c} ",
);

const NO_SETS: [&str; 0] = [];

/// All tables, in the order of their keys.
pub static TABLES: &[Table] = &[
    Table {
        key: '1',
        name: "Processes",
        short: "Procs",
        subsystem: &PROCESS,
        sets: PROCESS_SETS,
        orders: &NO_SETS,
        last: "command",
        content: Content::Instances,
    },
    Table {
        key: '2',
        name: "Groups",
        short: "Grps",
        subsystem: &CGROUPS,
        sets: &[
            set(
                ' ',
                "groups",
                0,
                "  Cpu%   Mem  Read Write Pids Wait:Cpu%   Mem%    IO% Group",
                "{cpu:6.1} {memory_kb:5k4} {read_kb:5k4} {write_kb:5k4} {pids:4c} {cpu_some:9.1} {memory_some:6.1} {io_some:6.1} ",
            ),
            set(
                ' ',
                "groups",
                120,
                "  Cpu%  User%   Sys% Thrtl%   Mem  Anon  File   Max  Swap  Read Write Pids Wait:Cpu%   Mem% MemFul    IO% IOFull Group",
                "{cpu:6.1} {cpu_user:6.1} {cpu_system:6.1} {throttled:6.1} {memory_kb:5k4} {anon_kb:5k4} {file_kb:5k4} {memory_max_kb:5k4} {swap_kb:5k4} {read_kb:5k4} {write_kb:5k4} {pids:4c} {cpu_some:9.1} {memory_some:6.1} {memory_full:6.1} {io_some:6.1} {io_full:6.1} ",
            ),
        ],
        orders: &[
            "cpu",
            "memory_kb",
            "read_kb",
            "write_kb",
            "pids",
            "cpu_some",
            "memory_some",
            "io_some",
        ],
        last: "group",
        content: Content::Instances,
    },
    Table {
        key: '3',
        name: "Disks",
        short: "Disk",
        subsystem: &DISK,
        sets: &[
            set(
                ' ',
                "disks",
                0,
                " Reads  RKB  Wait Writes  WKB  Wait Size Queue  Util% Disk",
                "{reads:6c} {read_kb:4k4} {read_wait:5.1} {writes:6c} {write_kb:4k4} {write_wait:5.1} {size:4d} {queue:5.1} {util:6.1} ",
            ),
            set(
                ' ',
                "disks",
                120,
                " Reads  RMrg    RKB RSize  Wait Writes  WMrg    WKB WSize  Wait  Disc DiscKB Flush  Wait InFl Size Queue  Wait  Util% Disk",
                "{reads:6c} {read_merges:5c} {read_kb:6k4} {read_size:5d} {read_wait:5.1} {writes:6c} {write_merges:5c} {write_kb:6k4} {write_size:5d} {write_wait:5.1} {discards:5c} {discard_kb:6k4} {flushes:5c} {flush_wait:5.1} {in_flight:4d} {size:4d} {queue:5.1} {wait:5.1} {util:6.1} ",
            ),
        ],
        orders: &[
            "util",
            "read_kb",
            "write_kb",
            "reads",
            "writes",
            "read_wait",
            "write_wait",
            "queue",
        ],
        last: "disk",
        content: Content::Instances,
    },
    Table {
        key: '4',
        name: "Interfaces",
        short: "Net",
        subsystem: &NET,
        sets: &[set(
            ' ',
            "interfaces",
            0,
            "   KBIn PktIn SizIn  ErrIn   KBOut PktOut SizOut ErrOut  Mbit/s Interface",
            "{rx_kb:7k4} {rx_packets:5c} {rx_size:5d} {rx_trouble:6d} {tx_kb:7k4} {tx_packets:6c} {tx_size:6d} {tx_trouble:6d} {speed:7d} ",
        )],
        orders: &[
            "rx_kb",
            "tx_kb",
            "rx_packets",
            "tx_packets",
            "rx_trouble",
            "tx_trouble",
        ],
        last: "interface",
        content: Content::Instances,
    },
    Table {
        key: '5',
        name: "CPUs",
        short: "CPUs",
        subsystem: &CPU,
        sets: &[set(
            ' ',
            "cpus",
            0,
            " Total   User   Nice    Sys   Wait    Irq   Soft  Steal  Guest   Idle CPU",
            "{total:6.1} {user:6.1} {nice:6.1} {sys:6.1} {wait:6.1} {irq:6.1} {soft:6.1} {steal:6.1} {guest:6.1} {idle:6.1} ",
        )],
        orders: &["cpu", "total", "user", "sys", "wait", "soft", "steal"],
        last: "cpu",
        content: Content::Instances,
    },
    Table {
        key: '6',
        name: "Waiting",
        short: "Wait",
        subsystem: &PROCESS,
        sets: &[set(
            ' ',
            "waiting",
            0,
            "    PID  User     S  Pct   RSS  RKB  WKB Waits for            Command",
            "{pid:7d}{thread:-1s} {user:-8s8} {state:1s} {pct:4d} {rss:5k4} {rkb:4k4} {wkb:4k4} ",
        )],
        orders: &NO_SETS,
        last: "command",
        content: Content::Waiting,
    },
    Table {
        key: '7',
        name: "Programs",
        short: "Prog",
        subsystem: &PROCESS,
        sets: &[],
        orders: &NO_SETS,
        last: "command",
        content: Content::Programs,
    },
];

/// An order of a table's lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Order {
    /// Position among the orders of the table.
    pub at: usize,
    /// True: the least first.
    pub turned: bool,
}

impl Table {
    /// Names of its orders.
    pub fn order_names(&self) -> Vec<&'static str> {
        match self.orders {
            [] => Top::orders(),
            orders => orders.to_vec(),
        }
    }

    /// The value that an order goes by; the greatest comes first.
    pub fn value(&self, order: Order) -> Box<dyn Fn(&Cells) -> f64> {
        let name = self
            .order_names()
            .get(order.at)
            .copied()
            .unwrap_or_default();
        if self.orders.is_empty() {
            let top = Top::parse(name, usize::MAX).unwrap_or_default();
            return Box::new(top.key());
        }
        let is_up = name == "cpu" && self.subsystem.name == CPU.name;
        match self.column(name).map(|column| column.value) {
            Some(Value::Number(value)) if is_up => Box::new(move |cells| -value(cells)),
            Some(Value::Number(value)) => Box::new(value),
            Some(Value::Text(_)) | None => Box::new(|_| 0.0),
        }
    }

    /// A column of its instances.
    pub fn column(&self, name: &str) -> Option<&'static Column> {
        self.subsystem
            .detail
            .iter()
            .find(|column| column.name == name)
    }

    /// The columns of a key that fit a width.
    pub fn set(&self, key: char, width: u16) -> &'static Set {
        let fits = |set: &&Set| set.least_width <= width && (set.key == key || set.key == ' ');
        self.sets.iter().rev().find(fits).unwrap_or(&self.sets[0])
    }
}

/// The order of `--top` that stands behind a word of a head.
pub fn order_of_head(word: &str) -> Option<&'static str> {
    const WORDS: &[(&str, &str)] = &[
        ("PID", "pid"),
        ("THRD", "thread"),
        ("VSZ", "vsz"),
        ("VmSize", "vsz"),
        ("RSS", "rss"),
        ("VmRSS", "rss"),
        ("CP", "cpu"),
        ("SysT", "syst"),
        ("UsrT", "usrt"),
        ("Pct", "time"),
        ("AccuTime", "accum"),
        ("RKB", "rkb"),
        ("WKB", "wkb"),
        ("RKBC", "rkbc"),
        ("WKBC", "wkbc"),
        ("RSys", "rsys"),
        ("WSys", "wsys"),
        ("Cncl", "iocncl"),
        ("MajF", "majf"),
        ("MinF", "minf"),
        ("VCtx", "vctx"),
        ("NCtx", "nctx"),
        ("Cpu%", "cpu"),
        ("Mem", "memory_kb"),
        ("Read", "read_kb"),
        ("Write", "write_kb"),
        ("Pids", "pids"),
        ("Reads", "reads"),
        ("Writes", "writes"),
        ("Queue", "queue"),
        ("Util%", "util"),
        ("KBIn", "rx_kb"),
        ("KBOut", "tx_kb"),
        ("PktIn", "rx_packets"),
        ("PktOut", "tx_packets"),
        ("ErrIn", "rx_trouble"),
        ("ErrOut", "tx_trouble"),
        ("Total", "total"),
        ("User", "user"),
        ("Sys", "sys"),
        ("Wait", "wait"),
        ("Soft", "soft"),
        ("Steal", "steal"),
        ("CPU", "cpu"),
    ];
    let known = WORDS.iter().find(|(head, _)| *head == word);
    known.map(|(_, order)| *order)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row with an unknown column would leave it out in silence.
    #[test]
    fn rows_have_known_columns_as_wide_as_their_heads() {
        for table in TABLES {
            let process = [&GROUPED];
            let grouped = process.iter().copied().filter(|_| table.key == '1');
            for set in table.sets.iter().chain(grouped) {
                let mut width = 0;
                for piece in set.row.split('{').skip(1) {
                    let (place, literal) = piece.split_once('}').unwrap();
                    let (name, form) = place.split_once(':').unwrap();
                    assert!(table.column(name).is_some(), "{}: {name}", table.name);
                    let form = form.trim_start_matches('-');
                    let digits: String = form.chars().take_while(char::is_ascii_digit).collect();
                    width += digits.parse::<usize>().unwrap() + literal.len();
                }
                let last = set.head.trim_end().rfind(' ').unwrap() + 1;
                let last = match (set.key, table.content) {
                    (' ', Content::Waiting) => set.head.find("Waits").unwrap(),
                    _ if set.name == "grouped" => set.head.len(),
                    _ => last,
                };
                assert_eq!(width, last, "{} {}", table.name, set.head);
                assert!(last < 80 || set.least_width >= 120, "{}", set.head);
            }
            for name in table.orders {
                assert!(table.column(name).is_some(), "{}: {name}", table.name);
            }
        }
    }
}
