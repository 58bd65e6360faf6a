//! `c` and `C`: CPU time and load, from /proc/stat and /proc/loadavg, and packets by CPU, from /proc/net/softnet_stat. Shares refer to the sum of the first eight times;
//! guest time is part of user and nice.

use kymo_base::column::{Cells, Column};
use kymo_base::context::Context;
use kymo_base::field::{Field, Rule, Unit};
use kymo_base::template::{Piece, Template};

use super::exposed::{self, Each, Exposed};
use super::{
    Beside, Form, Lines, Plot, PlotColumn, Shape, Subsystem, Summary, Text, Unused, at, field,
    interrupts, named_rows, number, numbers, place, plot, text, value,
};
use crate::layout::{Cell, From, Layout, RowLayout};
use crate::source::kind;

// Indices of the times, the same in globals and in rows; the first eight add up to the whole.
const USER: usize = at(GLOBALS, "user");
const NICE: usize = at(GLOBALS, "nice");
const SYS: usize = at(GLOBALS, "system");
const IDLE: usize = at(GLOBALS, "idle");
const WAIT: usize = at(GLOBALS, "iowait");
const IRQ: usize = at(GLOBALS, "irq");
const SOFT: usize = at(GLOBALS, "softirq");
const STEAL: usize = at(GLOBALS, "steal");
const GUEST: usize = at(GLOBALS, "guest");
const GUEST_NICE: usize = at(GLOBALS, "guest_nice");
const TIMES: usize = 10;
const INTR: usize = at(GLOBALS, "intr");
const CTXT: usize = at(GLOBALS, "ctxt");
const PROCESSES: usize = at(GLOBALS, "processes");
const RUNNING: usize = at(GLOBALS, "procs_running");
const BLOCKED: usize = at(GLOBALS, "procs_blocked");
const LOAD1: usize = at(GLOBALS, "load1");
const LOAD5: usize = at(GLOBALS, "load5");
const LOAD15: usize = at(GLOBALS, "load15");
const RUNNABLE: usize = at(GLOBALS, "runnable");
const TASKS: usize = at(GLOBALS, "tasks");
const CPUS: usize = at(GLOBALS, "cpus");
const BTIME: usize = at(GLOBALS, "btime");

const fn time(name: &'static str, rule: Rule, help: &'static str) -> Field {
    field(name, rule, Unit::Ticks, help)
}

const TIME_FIELDS: [Field; TIMES] = [
    time("user", Rule::Counter64, "In user mode; guests included"),
    time(
        "nice",
        Rule::Counter64,
        "In user mode at low priority; niced guests included",
    ),
    time("system", Rule::Counter64, "In the kernel"),
    time("idle", Rule::CounterMayStepBack, "Idle"),
    time(
        "iowait",
        Rule::CounterMayStepBack,
        "Idle while a task waits for I/O",
    ),
    time("irq", Rule::Counter64, "Serving interrupts"),
    time("softirq", Rule::Counter64, "Serving softirqs"),
    time(
        "steal",
        // Some Xen kernels decrease it.
        Rule::CounterMayStepBack,
        "Taken by the hypervisor",
    ),
    time("guest", Rule::Counter64, "Running a guest"),
    time("guest_nice", Rule::Counter64, "Running a niced guest"),
];

const fn global(name: &'static str, rule: Rule, unit: Unit, help: &'static str) -> Field {
    field(name, rule, unit, help)
}

const GLOBALS: &[Field] = &{
    let [a, b, c, d, e, f, g, h, i, j] = TIME_FIELDS;
    [
        a,
        b,
        c,
        d,
        e,
        f,
        g,
        h,
        i,
        j,
        // A sum of 32-bit counters, each of which wraps on its own.
        global(
            "intr",
            Rule::CounterMayStepBack,
            Unit::Count,
            "Interrupts served",
        ),
        global("ctxt", Rule::Counter64, Unit::Count, "Context switches"),
        global("processes", Rule::Counter64, Unit::Count, "Tasks created"),
        global(
            "procs_running",
            Rule::Gauge,
            Unit::Count,
            "Runnable tasks, the reader included",
        ),
        global(
            "procs_blocked",
            Rule::Gauge,
            Unit::Count,
            "Tasks blocked on I/O",
        ),
        global(
            "load1",
            Rule::Gauge,
            Unit::Hundredths,
            "Load average over 1 minute",
        ),
        global(
            "load5",
            Rule::Gauge,
            Unit::Hundredths,
            "Load average over 5 minutes",
        ),
        global(
            "load15",
            Rule::Gauge,
            Unit::Hundredths,
            "Load average over 15 minutes",
        ),
        global(
            "runnable",
            Rule::Gauge,
            Unit::Count,
            "Runnable tasks as loadavg counts, the reader included",
        ),
        global(
            "tasks",
            Rule::Gauge,
            Unit::Count,
            "Tasks there are, threads included",
        ),
        global("cpus", Rule::Gauge, Unit::Count, "CPUs online"),
        global(
            "btime",
            Rule::Gauge,
            Unit::Seconds,
            "When the machine booted, since 1970",
        ),
    ]
};

const INTERRUPTS: usize = at(FIELDS, "interrupts");
const SOFTNET: usize = at(FIELDS, "softnet_processed");
const SOFTNET_FIELDS: usize = 5;

const FIELDS: &[Field] = &{
    let [a, b, c, d, e, f, g, h, i, j] = TIME_FIELDS;
    let served = "Interrupts it served, of all kinds; read where interrupts (j) are";
    // When a device is removed, its counts leave the sum.
    let interrupts = global("interrupts", Rule::CounterMayStepBack, Unit::Count, served);
    const fn softnet(name: &'static str, help: &'static str) -> Field {
        field(name, Rule::Counter32, Unit::Count, help)
    }
    [
        a,
        b,
        c,
        d,
        e,
        f,
        g,
        h,
        i,
        j,
        interrupts,
        softnet("softnet_processed", "Packets it took from the network"),
        softnet(
            "softnet_dropped",
            "Packets dropped because its queue was full",
        ),
        softnet("softnet_squeezed", "Times it had no time left for packets"),
        softnet("softnet_steered", "Times another CPU gave it packets"),
        softnet(
            "softnet_flow_limits",
            "Times the limit of a flow was reached",
        ),
    ]
};

/// Sum over times. Times that an old kernel lacks are left out; a time
/// without a known difference, as after a reset, makes the sum unknown.
fn sum(cells: &Cells, times: &[usize], value: impl Fn(usize) -> f64) -> f64 {
    let there = times.iter().filter(|&&time| !cells.now[time].is_nan());
    let sum = there
        .map(|&time| value(time))
        .reduce(|sum, value| sum + value);
    sum.unwrap_or(f64::NAN)
}

/// The times that together are the whole.
const WHOLE: [usize; 8] = [USER, NICE, SYS, IDLE, WAIT, IRQ, SOFT, STEAL];

/// Number of CPUs that the times cover; NaN if it is unknown.
fn cpus(cells: &Cells) -> f64 {
    match cells.now.get(CPUS) {
        // Only a row lacks this field; it is one CPU.
        None => 1.0,
        Some(cpus) if !cpus.is_nan() => *cpus,
        Some(_) => {
            let cpus = cells.context.number("cpus");
            cpus.map_or(f64::NAN, |cpus| cpus as f64)
        }
    }
}

/// Lowest number of ticks a second of any kernel.
const TICKS_A_SECOND_MIN: f64 = 100.0;

/// Time of a CPU that the kernel may count late, in seconds.
const LATE_SECONDS: f64 = 0.25;

/// The whole that shares refer to.
struct Basis {
    whole: f64,
    /// A time above this is invalid.
    most: f64,
}

impl Basis {
    /// The sum of the times, as in collectl. If one of them is unknown, has jumped, or stands still without reason, the
    /// others would look like the whole; the basis is the elapsed time then.
    fn of(cells: &Cells) -> Basis {
        let sum_of_all = sum(cells, &WHOLE, |time| cells.delta[time]);
        // Ticks are counted late, so the sum may reach twice the elapsed time plus a second.
        let can_be = (2.0 * cells.elapsed + 1.0) * cpus(cells);
        if cells.delta[IDLE] > 0.0 && sum_of_all <= can_be * TICKS_A_SECOND_MIN {
            return Basis {
                whole: sum_of_all,
                most: f64::INFINITY,
            };
        }
        let hz = cells.context.hz();
        let passed = cells.elapsed * cpus(cells) * hz;
        let most = match passed.is_nan() {
            true => f64::INFINITY,
            false => can_be * hz,
        };
        let known = WHOLE.map(|time| cells.delta[time]);
        let known = known.into_iter().filter(|&ticks| ticks <= most);
        let known: f64 = known.sum();
        let is_whole = sum_of_all <= most && (cells.delta[IDLE] > 0.0 || known >= passed / 2.0);
        let whole = match is_whole || passed.is_nan() {
            true => sum_of_all,
            // More than all CPUs had: all times have jumped, as a container's do when its set of CPUs changes.
            false if known > passed + LATE_SECONDS * cpus(cells) * hz => f64::NAN,
            false => known.max(passed),
        };
        Basis { whole, most }
    }

    /// Share of a time, in percent.
    fn share(&self, cells: &Cells, time: usize) -> f64 {
        let ticks = cells.delta[time];
        let whole = if self.whole == 0.0 { 1.0 } else { self.whole };
        match ticks > self.most {
            true => f64::NAN,
            false => 100.0 * ticks / whole,
        }
    }

    /// Share of several times; if one of them is unknown, 100 % less the share of the others.
    fn share_of(&self, cells: &Cells, times: &[usize]) -> f64 {
        let known = sum(cells, times, |time| self.share(cells, time));
        if !known.is_nan() {
            return known;
        }
        let others = WHOLE.into_iter().filter(|time| !times.contains(time));
        let others: Vec<usize> = others.collect();
        (100.0 - sum(cells, &others, |time| self.share(cells, time))).clamp(0.0, 100.0)
    }
}

fn share(cells: &Cells, time: usize) -> f64 {
    Basis::of(cells).share(cells, time)
}

/// Share of all times but idle and iowait.
fn busy(cells: &Cells) -> f64 {
    Basis::of(cells).share_of(cells, &[USER, NICE, SYS, IRQ, SOFT, STEAL])
}

fn in_kernel(cells: &Cells) -> f64 {
    Basis::of(cells).share_of(cells, &[SYS, IRQ, SOFT, STEAL])
}

/// Runnable tasks without the reading one.
fn others(count: f64) -> f64 {
    if count.is_nan() {
        count
    } else {
        (count - 1.0).max(0.0)
    }
}

const fn percent(name: &'static str, help: &'static str, value: fn(&Cells) -> f64) -> Column {
    number(name, Unit::Percent, help, value)
}

const SHARES: [Column; 12] = [
    percent("user", "User mode, guests included", |c| share(c, USER)),
    percent("nice", "User mode at low priority", |c| share(c, NICE)),
    percent("sys", "Kernel", |c| share(c, SYS)),
    percent("wait", "Idle while a task waits for I/O", |c| {
        share(c, WAIT)
    }),
    percent("irq", "Interrupts", |c| share(c, IRQ)),
    percent("soft", "Softirqs", |c| share(c, SOFT)),
    percent("steal", "Taken by the hypervisor", |c| share(c, STEAL)),
    percent("idle", "Idle", |c| share(c, IDLE)),
    percent("total", "All but idle and wait", busy),
    percent("guest", "Running guests, part of user", |c| share(c, GUEST)),
    percent("guest_nice", "Running niced guests, part of nice", |c| {
        share(c, GUEST_NICE)
    }),
    percent("kernel", "sys + irq + soft + steal", in_kernel),
];

const COLUMNS: &[Column] = &{
    let [a, b, c, d, e, f, g, h, i, j, k, l] = SHARES;
    [
        a,
        b,
        c,
        d,
        e,
        f,
        g,
        h,
        i,
        j,
        k,
        l,
        number("intr", Unit::PerSecond, "Interrupts", |c| c.rate(INTR)),
        number("ctxsw", Unit::PerSecond, "Context switches", |c| {
            c.rate(CTXT)
        }),
        number("forks", Unit::PerSecond, "Tasks created", |c| {
            c.rate(PROCESSES)
        }),
        number(
            "tasks",
            Unit::Count,
            "Tasks there are, threads included",
            |c| c.now[TASKS],
        ),
        number(
            "runnable",
            Unit::Count,
            "Runnable tasks as loadavg counts, without the reader",
            |c| others(c.now[RUNNABLE]),
        ),
        number("load1", Unit::None, "Load average over 1 minute", |c| {
            c.now[LOAD1] / 100.0
        }),
        number("load5", Unit::None, "Load average over 5 minutes", |c| {
            c.now[LOAD5] / 100.0
        }),
        number("load15", Unit::None, "Load average over 15 minutes", |c| {
            c.now[LOAD15] / 100.0
        }),
        number(
            "running",
            Unit::Count,
            "Runnable tasks, without the reader",
            |c| others(c.now[RUNNING]),
        ),
        number("blocked", Unit::Count, "Tasks blocked on I/O", |c| {
            c.now[BLOCKED]
        }),
        number("cpus", Unit::Count, "CPUs online", |c| c.now[CPUS]),
        percent("user_and_nice", "user + nice", |c| {
            share(c, USER) + share(c, NICE)
        }),
    ]
};

const DETAIL: &[Column] = &{
    let [a, b, c, d, e, f, g, h, i, j, k, l] = SHARES;
    [
        text("cpu", "Number of the CPU", |c, out| {
            out.extend_from_slice(c.name)
        }),
        a,
        b,
        c,
        d,
        e,
        f,
        g,
        h,
        i,
        j,
        k,
        l,
        number(
            "intr",
            Unit::PerSecond,
            "Interrupts, where interrupts (j) are read",
            |c| c.rate(INTERRUPTS),
        ),
    ]
};

const PLOT: &[PlotColumn] = &[
    plot("User%", "user"),
    plot("Nice%", "nice"),
    plot("Sys%", "sys"),
    plot("Wait%", "wait"),
    plot("Irq%", "irq"),
    plot("Soft%", "soft"),
    plot("Steal%", "steal"),
    plot("Idle%", "idle"),
    plot("Totl%", "total"),
    plot("Guest%", "guest"),
    plot("GuestN%", "guest_nice"),
    plot("Intrpt{rate}", "intr"),
    plot("Ctx{rate}", "ctxsw"),
    plot("Proc{rate}", "forks"),
    plot("ProcQue", "tasks"),
    plot("ProcRun", "runnable"),
    place("L-Avg1", "load1", Form::Two),
    place("L-Avg5", "load5", Form::Two),
    place("L-Avg15", "load15", Form::Two),
    place("RunTot", "running", Form::Whole),
    place("BlkTot", "blocked", Form::Whole),
];

const PLOT_DETAIL: &[PlotColumn] = &[
    plot("User%", "user"),
    plot("Nice%", "nice"),
    plot("Sys%", "sys"),
    plot("Wait%", "wait"),
    plot("Irq%", "irq"),
    plot("Soft%", "soft"),
    plot("Steal%", "steal"),
    plot("Idle%", "idle"),
    plot("Totl%", "total"),
    plot("Guest%", "guest"),
    plot("GuestN%", "guest_nice"),
    plot("Intrpt", "intr"),
];

/// As in node_exporter, guest time is included in user and nice.
const EXPOSED: Exposed = Exposed {
    machine: &[
        exposed::counter("node_intr_total", INTR),
        exposed::counter("node_context_switches_total", CTXT),
        exposed::counter("node_forks_total", PROCESSES),
        exposed::gauge("node_procs_running", RUNNING),
        exposed::gauge("node_procs_blocked", BLOCKED),
        exposed::gauge("node_load1", LOAD1),
        exposed::gauge("node_load5", LOAD5),
        exposed::gauge("node_load15", LOAD15),
        exposed::gauge("node_boot_time_seconds", BTIME),
        exposed::moment(
            "node_time_seconds",
            "Time of this machine at the sample, since 1970",
        ),
    ],
    each: &[Each {
        labels: &[exposed::MetricLabel::name("cpu")],
        shows: |_| true,
        families: &[
            exposed::counters(
                "node_cpu_seconds_total",
                "Time of each CPU by what it did",
                USER,
                "mode",
                &[
                    "user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal",
                ],
            ),
            exposed::counters(
                "node_cpu_guest_seconds_total",
                "Time of each CPU in guests, part of user and nice",
                GUEST,
                "mode",
                &["user", "nice"],
            ),
            exposed::counter("node_softnet_processed_total", SOFTNET),
            exposed::counter("node_softnet_dropped_total", SOFTNET + 1),
            exposed::counter("node_softnet_times_squeezed_total", SOFTNET + 2),
            exposed::counter("node_softnet_received_rps_total", SOFTNET + 3),
            exposed::counter("node_softnet_flow_limit_count_total", SOFTNET + 4),
        ],
    }],
};

/// The CPUs.
pub static CPU: Subsystem = Subsystem {
    letter: 'c',
    name: "cpu",
    help: "CPU time, interrupts, context switches, load",
    sources: &[kind::STAT, kind::LOADAVG, kind::SOFTNET],
    beside: Some(Beside {
        letter: 'j',
        sources: &[kind::INTERRUPTS],
        head: " Intrpt",
        row: " {intr:6d}",
    }),
    spread: false,
    globals: GLOBALS,
    fields: FIELDS,
    labels: &[],
    layout,
    fills: Some(fills),
    summary: Summary::Globals,
    sum: None,
    ceiling: None,
    count: None,
    in_service: true,
    columns: COLUMNS,
    detail: DETAIL,
    born: None,
    unused: Unused::Shown,
    text: Text {
        brief: Lines {
            title: "<--------CPU-------->",
            heads: &["cpu sys inter  ctxsw "],
            row: "{total:3d} {kernel:3d} {intr:5c} {ctxsw:6c} ",
        },
        verbose: Lines {
            title: "CPU SUMMARY (INTR, CTXSW & PROC {rate})",
            heads: &[
                " User  Nice   Sys  Wait   IRQ  Soft Steal Guest NiceG  Idle  CPUs  Intr  Ctxsw  Proc  RunQ   Run   Avg1  Avg5 Avg15 RunT BlkT",
            ],
            row: "  {user:4d}  {nice:4d}  {sys:4d}  {wait:4d}  {irq:4d}  {soft:4d}  {steal:4d}  {guest:4d}  {guest_nice:4d}  {idle:4d}  {cpus:4d}  {intr:4c}   {ctxsw:4c}  {forks:4d}  {tasks:4d}  {runnable:4d}  {load1:5.2} {load5:5.2} {load15:5.2} {running:4d} {blocked:4d}",
        },
        detail: Lines {
            title: "SINGLE CPU STATISTICS",
            heads: &["   Cpu  User Nice  Sys Wait IRQ  Soft Steal Guest NiceG Idle"],
            row: "   {cpu:4s}   {user:3d}  {nice:3d}  {sys:3d}  {wait:3d}  {irq:3d}  {soft:3d}   {steal:3d}   {guest:3d}   {guest_nice:3d}  {idle:3d}",
        },
    },
    plot: Plot {
        tag: "CPU",
        order: 1,
        file: "cpu",
        summary: PLOT,
        detail: PLOT_DETAIL,
        shape: Shape::Wide,
    },
    exposed: EXPOSED,
};

fn fills(kind: u8, global: usize) -> bool {
    let is_of_loadavg = (LOAD1..=TASKS).contains(&global);
    match kind {
        kind::STAT => !is_of_loadavg,
        kind::LOADAVG => is_of_loadavg,
        _ => false,
    }
}

fn layout(kind: u8, template: &Template, _: &Context) -> Layout {
    match kind {
        kind::STAT => stat(template),
        kind::INTERRUPTS => interrupts(template),
        kind::SOFTNET => named_rows(template, SOFTNET, SOFTNET_FIELDS),
        _ => loadavg(template),
    }
}

fn stat(template: &Template) -> Layout {
    let mut layout = Layout::default();
    for line in template.lines() {
        let Some((Piece::Text(key), rest)) = line.split_first() else {
            continue;
        };
        let one = |field: usize| {
            rest.first().and_then(|piece| {
                Some(Cell {
                    field,
                    from: value(piece)?,
                })
            })
        };
        match *key {
            b"cpu" => layout.globals.extend(numbers(rest, USER, TIMES)),
            b"intr" => layout.globals.extend(one(INTR)),
            b"btime" => layout.globals.extend(one(BTIME)),
            b"ctxt" => layout.globals.extend(one(CTXT)),
            b"processes" => layout.globals.extend(one(PROCESSES)),
            b"procs_running" => layout.globals.extend(one(RUNNING)),
            b"procs_blocked" => layout.globals.extend(one(BLOCKED)),
            _ => layout
                .rows
                .extend(key.strip_prefix(b"cpu").map(|name| RowLayout {
                    name: name.to_vec(),
                    counted: true,
                    cells: numbers(rest, USER, TIMES),
                    ..RowLayout::default()
                })),
        }
    }
    let cpus = layout.rows.len() as u64;
    if cpus > 0 {
        layout.globals.push(Cell {
            field: CPUS,
            from: From::Fixed(cpus),
        });
    }
    layout
}

/// The sum of each CPU's column.
fn interrupts(template: &Template) -> Layout {
    let table = interrupts::layout(kind::INTERRUPTS, template);
    let mut rows: Vec<RowLayout> = Vec::new();
    for cell in table.rows.iter().flat_map(|row| &row.cells) {
        let (cpu, From::Slot(slot)) = (cell.field, cell.from) else {
            continue;
        };
        while rows.len() <= cpu {
            let name = rows.len().to_string().into_bytes();
            rows.push(RowLayout {
                name,
                ..RowLayout::default()
            });
        }
        rows[cpu].cells.push(Cell {
            field: INTERRUPTS,
            from: From::Added(slot),
        });
    }
    Layout {
        rows,
        ..Layout::default()
    }
}

/// Parses a text such as `0.55 0.25 0.10 1/106 15822`.
fn loadavg(template: &Template) -> Layout {
    let lines = template.lines();
    let Some(line) = lines.first() else {
        return Layout::default();
    };
    let mut globals = Vec::new();
    for (n, load) in line.chunks(3).take(3).enumerate() {
        if let [Piece::Slot(slot), Piece::Text(b"."), Piece::Slot(_)] = load {
            globals.push(Cell {
                field: LOAD1 + n,
                from: From::Hundredths(*slot),
            });
        }
    }
    if let Some(
        [
            Piece::Slot(runnable),
            Piece::Text(b"/"),
            Piece::Slot(tasks),
            ..,
        ],
    ) = line.get(9..)
    {
        globals.push(Cell {
            field: RUNNABLE,
            from: From::Slot(*runnable),
        });
        globals.push(Cell {
            field: TASKS,
            from: From::Slot(*tasks),
        });
    }
    Layout {
        globals,
        ..Layout::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::read;
    use super::*;
    use kymo_base::reading::MISSING;

    #[test]
    fn kernels_old_and_new() {
        const M: u64 = MISSING;
        for (text, globals, rows) in [
            // 2.6.9, with one CPU: no steal.
            (
                "cpu  1 2 3 4 5 6 7\ncpu0 1 2 3 4 5 6 7\nintr 9 8 7\nctxt 10\n",
                [1, 2, 3, 4, 5, 6, 7, M, M, M, 9, 10, M, M, M],
                1,
            ),
            // 2.6.24 has guest, 2.6.33 guest_nice.
            (
                "cpu  1 2 3 4 5 6 7 8 9\ncpu0 1 2 3 4 5 6 7 8 9\nintr 9\nctxt 10\nbtime 5\nprocesses 11\nprocs_running 2\nprocs_blocked 1\n",
                [1, 2, 3, 4, 5, 6, 7, 8, 9, M, 9, 10, 11, 2, 1],
                1,
            ),
            // 6.18, with CPU 1 offline.
            (
                "cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\ncpu2 1 2 3 4 5 6 7 8 9 10\nintr 9 0 0\nctxt 10\nbtime 5\nprocesses 11\nprocs_running 2\nprocs_blocked 0\nsoftirq 5 1 2\n",
                [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 9, 10, 11, 2, 0],
                2,
            ),
            // A future kernel with one more time.
            (
                "cpu  1 2 3 4 5 6 7 8 9 10 11\nnew 5\n",
                [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, M, M, M, M, M],
                0,
            ),
            ("", [M; 15], 0),
        ] {
            let reading = read(&CPU, &[(kind::STAT, text)], &Context::default());
            assert_eq!(reading.globals[..LOAD1], globals, "{text}");
            assert_eq!(reading.rows.len(), rows, "{text}");
        }
    }

    #[test]
    fn packets_of_each_cpu() {
        const M: u64 = MISSING;
        let stat = "cpu  1 2 3 4\ncpu0 1 2 3 4\ncpu3 1 2 3 4\n";
        let softnet = "0 16971814 10 1 7 8\n2 1 1 1 1 1\n3 17513632 0 2 - -\n";
        let texts = [(kind::STAT, stat), (kind::SOFTNET, softnet)];
        let reading = read(&CPU, &texts, &Context::default());
        let rows = reading.rows.iter().map(|row| &row.values[SOFTNET..]);
        assert_eq!(
            rows.collect::<Vec<_>>(),
            [&[16_971_814, 10, 1, 7, 8], &[17_513_632, 0, 2, M, M]]
        );
    }

    #[test]
    fn load() {
        let reading = read(
            &CPU,
            &[(kind::LOADAVG, "0.05 10.20 3.00 2/345 6789\n")],
            &Context::default(),
        );
        assert_eq!(reading.globals[LOAD1..CPUS], [5, 1020, 300, 2, 345]);
    }

    /// In each line: the differences of the times, and the expected user, idle, total and kernel.
    #[test]
    fn shares_of_what_is_known() {
        const NAN: f64 = f64::NAN;
        let mut now = vec![NAN; GLOBALS.len()];
        for (there, delta, expect) in [
            (
                8,
                [10.0, 0.0, 5.0, 80.0, 5.0, 0.0, 0.0, 0.0],
                [10.0, 80.0, 15.0, 5.0],
            ),
            // A kernel without steal, and a sample that read nothing.
            (
                7,
                [10.0, 0.0, 5.0, 80.0, 5.0, 0.0, 0.0, NAN],
                [10.0, 80.0, 15.0, 5.0],
            ),
            (0, [NAN; 8], [NAN; 4]),
            // A reset: the times that did not decrease are not the whole.
            (8, [NAN, 0.0, NAN, NAN, NAN, 0.0, 0.0, 0.0], [NAN; 4]),
            // No time has passed.
            (8, [0.0; 8], [0.0; 4]),
        ] {
            now[..there].fill(1.0);
            now[there..].fill(NAN);
            let cells = Cells {
                now: &now,
                delta: &[&delta[..], &[NAN; 2]].concat(),
                secs: 1.0,
                elapsed: 1.0,
                name: b"",
                labels: &[],
                context: &Context::default(),
            };
            let got = ["user", "idle", "total", "kernel"].map(|name| of_column(&cells, name));
            assert_eq!(format!("{got:?}"), format!("{expect:?}"), "{delta:?}");
        }
    }

    fn of_column(cells: &Cells, name: &str) -> f64 {
        let column = COLUMNS.iter().find(|column| column.name == name);
        match column.map(|column| column.value) {
            Some(kymo_base::column::Value::Number(value)) => value(cells),
            _ => panic!("no {name}"),
        }
    }

    /// Two CPUs over 8 s, 1,600 ticks: the differences of the times, and the expected
    /// user, idle, steal, total and kernel. The known times must never look like the
    /// whole: idle restarts after a suspend, steal decreases or jumps, idle jumps.
    #[test]
    fn shares_where_a_time_is_not_known() {
        const NAN: f64 = f64::NAN;
        const FAR: f64 = 1.8e19;
        let mut now = vec![1.0; GLOBALS.len()];
        now[CPUS] = 2.0;
        for (delta, expect) in [
            (
                [80.0, 0.0, 160.0, NAN, NAN, 0.0, 0.0, 0.0],
                [5.0, NAN, 0.0, 15.0, 10.0],
            ),
            (
                [80.0, 0.0, 160.0, 1360.0, 0.0, 0.0, 0.0, NAN],
                [5.0, 85.0, NAN, 15.0, 10.0],
            ),
            (
                [80.0, 0.0, 160.0, 1360.0, 0.0, 0.0, 0.0, FAR],
                [5.0, 85.0, NAN, 15.0, 10.0],
            ),
            (
                [80.0, 0.0, 160.0, FAR, 0.0, 0.0, 0.0, 0.0],
                [5.0, NAN, 0.0, 15.0, 10.0],
            ),
            // A decrease small enough to count as 0.
            (
                [8.0, 0.0, 8.0, 0.0, 0.0, 0.0, 0.0, 0.0],
                [0.5, 0.0, 0.0, 1.0, 0.5],
            ),
            // All times jump.
            ([1300.0, 0.0, 1300.0, 9000.0, 0.0, 0.0, 0.0, 0.0], [NAN; 5]),
            // Slightly more than the elapsed time, together with an idle that jumped.
            (
                [1600.0, 0.0, 40.0, FAR, 0.0, 0.0, 0.0, 0.0],
                [1600.0 / 16.4, NAN, 0.0, 100.0, 40.0 / 16.4],
            ),
            // A busy machine, without idle time.
            (
                [1500.0, 0.0, 60.0, 0.0, 0.0, 0.0, 0.0, 0.0],
                [1500.0 / 15.6, 0.0, 0.0, 100.0, 60.0 / 15.6],
            ),
            ([NAN; 8], [NAN; 5]),
        ] {
            let cells = Cells {
                now: &now,
                delta: &[&delta[..], &[NAN; 2]].concat(),
                secs: 8.0,
                elapsed: 8.0,
                name: b"",
                labels: &[],
                context: &Context::default(),
            };
            let columns = ["user", "idle", "steal", "total", "kernel"];
            let got = columns.map(|name| of_column(&cells, name));
            let is_same = |(got, expect): (&f64, &f64)| {
                got.is_nan() && expect.is_nan() || (got - expect).abs() < 1e-9
            };
            assert!(
                got.iter().zip(&expect).all(is_same),
                "{delta:?}: {got:?} for {expect:?}"
            );
        }
    }
}
