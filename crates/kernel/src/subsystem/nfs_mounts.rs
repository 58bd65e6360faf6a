//! `V`: operations, bytes and times of each NFS mount, from /proc/self/mountstats, with the meanings of nfsiostat(8) and
//! mountstats(8). A row is a mount; in `F` it is a version.

use kymo_base::column::{Cells, Column};
use kymo_base::context::Context;
use kymo_base::field::{Field, Rule, Unit};
use kymo_base::template::{Piece, Template};

use super::exposed::{self, Each, Exposed, Family, MetricLabel, Parts};
use super::{
    Lines, Plot, PlotColumn, Shape, Subsystem, Summary, Text, Unused, at, field, number, plot,
    ratio, text, value,
};
use crate::layout::{Cell, From, Label, Layout, RowLayout, Word};
use crate::source::kind;

// Labels of a row.
const TYPE: usize = 0;
const SERVER: usize = 1;
const ADDRESS: usize = 2;
const PROTOCOL: usize = 3;

const fn counter(name: &'static str, unit: Unit, help: &'static str) -> Field {
    field(name, Rule::Counter64, unit, help)
}

/// Fields of the numbers of an operation, in the kernel's order.
macro_rules! of_operations {
    ($what:literal: $($name:literal)*) => {{
        const UNITS: [Unit; NUMBERS] = [
            Unit::Count,
            Unit::Count,
            Unit::Count,
            Unit::Bytes,
            Unit::Bytes,
            Unit::Milliseconds,
            Unit::Milliseconds,
            Unit::Milliseconds,
            Unit::Count,
        ];
        const HELPS: [&str; NUMBERS] = [
            concat!($what, ": done"),
            concat!($what, ": sent, those sent again included"),
            concat!($what, ": not answered in time"),
            concat!($what, ": bytes sent"),
            concat!($what, ": bytes received"),
            concat!($what, ": waited to be sent"),
            concat!($what, ": from sending to the answer"),
            concat!($what, ": from asking to the end"),
            concat!($what, ": failed"),
        ];
        const NAMES: [&str; NUMBERS] = [$($name),*];
        let mut fields = [const { counter("", Unit::Count, "") }; NUMBERS];
        let mut n = 0;
        while n < NUMBERS {
            fields[n] = counter(NAMES[n], UNITS[n], HELPS[n]);
            n += 1;
        }
        fields
    }};
}

/// Number of numbers of an operation.
const NUMBERS: usize = 9;

/// Fields of all operations together, of READ, of WRITE, and of the others.
const OPERATIONS: [[Field; NUMBERS]; 4] = [
    of_operations!("All operations": "ops" "sent" "timeouts" "bytes_sent" "bytes_received" "queue" "rtt" "exe" "errors"),
    of_operations!("READ": "read_ops" "read_sent" "read_timeouts" "read_bytes_sent" "read_bytes_received" "read_queue" "read_rtt" "read_exe" "read_errors"),
    of_operations!("WRITE": "write_ops" "write_sent" "write_timeouts" "write_bytes_sent" "write_bytes_received" "write_queue" "write_rtt" "write_exe" "write_errors"),
    of_operations!("Others": "other_ops" "other_sent" "other_timeouts" "other_bytes_sent" "other_bytes_received" "other_queue" "other_rtt" "other_exe" "other_errors"),
];

/// Fields of the mount, in the kernel's order.
const OF_MOUNT: [Field; 9] = [
    counter("age", Unit::Seconds, "Since it was mounted"),
    counter("normal_read", Unit::Bytes, "Read by programs"),
    counter("normal_write", Unit::Bytes, "Written by programs"),
    counter("direct_read", Unit::Bytes, "Read by programs with O_DIRECT"),
    counter(
        "direct_write",
        Unit::Bytes,
        "Written by programs with O_DIRECT",
    ),
    counter("server_read", Unit::Bytes, "Read from the server"),
    counter("server_write", Unit::Bytes, "Written to the server"),
    counter(
        "read_pages",
        Unit::Count,
        "Pages read, for mapped files too",
    ),
    counter(
        "write_pages",
        Unit::Count,
        "Pages written, for mapped files too",
    ),
];

const FIELDS: &[Field] = &{
    let count = OPERATIONS.len() * NUMBERS;
    let mut fields = [OF_MOUNT[0]; OPERATIONS.len() * NUMBERS + OF_MOUNT.len()];
    let mut n = 0;
    while n < fields.len() {
        fields[n] = match n < count {
            true => OPERATIONS[n / NUMBERS][n % NUMBERS],
            false => OF_MOUNT[n - count],
        };
        n += 1;
    }
    fields
};

const OPS: usize = at(FIELDS, "ops");
const READ: usize = at(FIELDS, "read_ops");
const WRITE: usize = at(FIELDS, "write_ops");
const OTHERS: usize = at(FIELDS, "other_ops");
const AGE: usize = at(FIELDS, "age");
const NORMAL_READ: usize = at(FIELDS, "normal_read");
/// Number of fields with bytes and pages.
const BYTES: usize = FIELDS.len() - NORMAL_READ;
// Positions among the fields of an operation.
const SENT: usize = 1;
const TIMEOUTS: usize = 2;
const BYTES_SENT: usize = 3;
const BYTES_RECEIVED: usize = 4;
const QUEUE: usize = 5;
const RTT: usize = 6;
const EXE: usize = 7;
const ERRORS: usize = 8;

fn rate<const FIRST: usize, const PART: usize>(cells: &Cells) -> f64 {
    cells.rate(FIRST + PART)
}

/// Average milliseconds of an operation.
fn mean<const FIRST: usize, const PART: usize>(cells: &Cells) -> f64 {
    ratio(cells.delta[FIRST + PART], cells.delta[FIRST])
}

/// Kilobytes a second, sent and received.
fn kb<const FIRST: usize>(cells: &Cells) -> f64 {
    (cells.rate(FIRST + BYTES_SENT) + cells.rate(FIRST + BYTES_RECEIVED)) / 1024.0
}

fn again<const FIRST: usize>(cells: &Cells) -> f64 {
    cells.rate(FIRST + SENT) - cells.rate(FIRST)
}

const fn events(name: &'static str, help: &'static str, value: fn(&Cells) -> f64) -> Column {
    number(name, Unit::PerSecond, help, value)
}

const fn traffic(name: &'static str, help: &'static str, value: fn(&Cells) -> f64) -> Column {
    number(name, Unit::KilobytesPerSecond, help, value)
}

const fn lasts(name: &'static str, help: &'static str, value: fn(&Cells) -> f64) -> Column {
    number(name, Unit::Milliseconds, help, value)
}

const DETAIL: &[Column] = &[
    text(
        "mount",
        "Where it is mounted, a blank as `\\040`",
        |c, out| out.extend_from_slice(c.name),
    ),
    text("type", "nfs or nfs4", |c, out| {
        out.extend_from_slice(&c.labels[TYPE])
    }),
    text("server", "Server and path", |c, out| {
        out.extend_from_slice(&c.labels[SERVER])
    }),
    text("address", "The server's address", |c, out| {
        out.extend_from_slice(&c.labels[ADDRESS])
    }),
    text("protocol", "tcp, udp or rdma", |c, out| {
        out.extend_from_slice(&c.labels[PROTOCOL])
    }),
    number("age", Unit::Seconds, "Since it was mounted", |c| c.now[AGE]),
    events("ops", "Operations", rate::<OPS, 0>),
    traffic("kb", "Sent and received", kb::<OPS>),
    events("retransmits", "Operations sent again", again::<OPS>),
    events(
        "timeouts",
        "Operations not answered in time",
        rate::<OPS, TIMEOUTS>,
    ),
    events("errors", "Operations that failed", rate::<OPS, ERRORS>),
    lasts("queue_ms", "Mean time until it is sent", mean::<OPS, QUEUE>),
    lasts(
        "rtt_ms",
        "Mean time from sending to the answer",
        mean::<OPS, RTT>,
    ),
    lasts(
        "exe_ms",
        "Mean time from asking to the end",
        mean::<OPS, EXE>,
    ),
    events("reads", "READs", rate::<READ, 0>),
    traffic("read_kb", "Sent and received for READs", kb::<READ>),
    events("read_retransmits", "READs sent again", again::<READ>),
    events("read_errors", "READs that failed", rate::<READ, ERRORS>),
    lasts(
        "read_rtt_ms",
        "READs: mean time from sending to the answer",
        mean::<READ, RTT>,
    ),
    lasts(
        "read_exe_ms",
        "READs: mean time from asking to the end",
        mean::<READ, EXE>,
    ),
    events("writes", "WRITEs", rate::<WRITE, 0>),
    traffic("write_kb", "Sent and received for WRITEs", kb::<WRITE>),
    events("write_retransmits", "WRITEs sent again", again::<WRITE>),
    events("write_errors", "WRITEs that failed", rate::<WRITE, ERRORS>),
    lasts(
        "write_rtt_ms",
        "WRITEs: mean time from sending to the answer",
        mean::<WRITE, RTT>,
    ),
    lasts(
        "write_exe_ms",
        "WRITEs: mean time from asking to the end",
        mean::<WRITE, EXE>,
    ),
    traffic(
        "program_read_kb",
        "Read by programs, from memory too",
        |c| (c.rate(NORMAL_READ) + c.rate(NORMAL_READ + 2)) / 1024.0,
    ),
    traffic("program_write_kb", "Written by programs", |c| {
        (c.rate(NORMAL_READ + 1) + c.rate(NORMAL_READ + 3)) / 1024.0
    }),
];

const PLOT_DETAIL: &[PlotColumn] = &[
    plot("Ops", "ops"),
    plot("KB", "kb"),
    plot("Retrans", "retransmits"),
    plot("RttMs", "rtt_ms"),
    plot("ExeMs", "exe_ms"),
    plot("Reads", "reads"),
    plot("ReadKB", "read_kb"),
    plot("ReadRttMs", "read_rtt_ms"),
    plot("Writes", "writes"),
    plot("WriteKB", "write_kb"),
    plot("WriteRttMs", "write_rtt_ms"),
];

/// A metric of operations, for READ, WRITE and all others together; node_exporter has it for each of some sixty operations.
const fn of_each(name: &'static str, part: usize, help: &'static str) -> Family {
    exposed::counter(name, READ + part)
        .meant(help)
        .of_each(Parts::Apart {
            label: "operation",
            values: &["READ", "WRITE", "others"],
            by: NUMBERS,
        })
}

/// node_exporter's names and labels, which lack the mount point. If an export is mounted twice from one address, for which
/// the kernel usually keeps only one set of numbers, the first mount counts.
const EXPOSED: Exposed = Exposed::each(&[Each {
    labels: &[
        MetricLabel::text::<SERVER>("export"),
        MetricLabel::text::<ADDRESS>("mountaddr"),
        MetricLabel::text::<PROTOCOL>("protocol"),
    ],
    shows: |_| true,
    families: &[
        exposed::counter("node_mountstats_nfs_age_seconds_total", AGE),
        exposed::counter("node_mountstats_nfs_read_bytes_total", NORMAL_READ),
        exposed::counter("node_mountstats_nfs_write_bytes_total", NORMAL_READ + 1),
        exposed::counter(
            "node_mountstats_nfs_direct_read_bytes_total",
            NORMAL_READ + 2,
        ),
        exposed::counter(
            "node_mountstats_nfs_direct_write_bytes_total",
            NORMAL_READ + 3,
        ),
        exposed::counter(
            "node_mountstats_nfs_total_read_bytes_total",
            NORMAL_READ + 4,
        ),
        exposed::counter(
            "node_mountstats_nfs_total_write_bytes_total",
            NORMAL_READ + 5,
        ),
        exposed::counter("node_mountstats_nfs_read_pages_total", NORMAL_READ + 6),
        exposed::counter("node_mountstats_nfs_write_pages_total", NORMAL_READ + 7),
        of_each(
            "node_mountstats_nfs_operations_requests_total",
            0,
            "Operations done",
        ),
        of_each(
            "node_mountstats_nfs_operations_transmissions_total",
            SENT,
            "Operations sent, those sent again included",
        ),
        of_each(
            "node_mountstats_nfs_operations_major_timeouts_total",
            TIMEOUTS,
            "Operations not answered in time",
        ),
        of_each(
            "node_mountstats_nfs_operations_sent_bytes_total",
            BYTES_SENT,
            "Bytes sent for operations",
        ),
        of_each(
            "node_mountstats_nfs_operations_received_bytes_total",
            BYTES_RECEIVED,
            "Bytes received for operations",
        ),
        of_each(
            "node_mountstats_nfs_operations_queue_time_seconds_total",
            QUEUE,
            "Time operations waited to be sent",
        ),
        of_each(
            "node_mountstats_nfs_operations_response_time_seconds_total",
            RTT,
            "Time from sending operations to the answer",
        ),
        of_each(
            "node_mountstats_nfs_operations_request_time_seconds_total",
            EXE,
            "Time from asking for operations to the end",
        ),
        of_each(
            "node_mountstats_nfs_operations_errors_total",
            ERRORS,
            "Operations that failed",
        ),
    ],
}]);

/// NFS mounts.
pub static NFS_MOUNTS: Subsystem = Subsystem {
    letter: 'v',
    name: "nfs_mounts",
    help: "Operations, bytes and times of each NFS mount",
    sources: &[kind::MOUNTSTATS],
    beside: None,
    spread: false,
    globals: &[],
    fields: FIELDS,
    labels: &["type", "server", "address", "protocol"],
    layout,
    fills: None,
    summary: Summary::None,
    sum: None,
    ceiling: None,
    count: None,
    in_service: false,
    columns: &[],
    detail: DETAIL,
    born: None,
    unused: Unused::Shown,
    text: Text {
        brief: Lines::NONE,
        verbose: Lines::NONE,
        detail: Lines {
            title: "NFS MOUNTS ({rate})",
            heads: &[
                "<--------all operations---------><-----------READ----------><----------WRITE---------->",
                "   Ops     KB  Retr RttMs ExeMs     Ops     KB RttMs ExeMs     Ops     KB RttMs ExeMs Mounted on",
            ],
            row: "{ops:6c} {kb:6u} {retransmits:5c} {rtt_ms:5.1} {exe_ms:5.1}  {reads:6c} {read_kb:6u} {read_rtt_ms:5.1} {read_exe_ms:5.1}  {writes:6c} {write_kb:6u} {write_rtt_ms:5.1} {write_exe_ms:5.1} {mount:s}",
        },
    },
    plot: Plot {
        tag: "NFSM",
        order: 18,
        file: "nfsm",
        summary: &[],
        detail: PLOT_DETAIL,
        shape: Shape::Wide,
    },
    exposed: EXPOSED,
};

/// Interprets a text: `type nfs4 SERVER:PATH`, `addr 10.0.0.1`,
/// `proto tcp`, `age 77`, `bytes 1 2 ...`, `READ 1 2 3 4 5 6 7 8 9`.
fn layout(_: u8, template: &Template, _: &Context) -> Layout {
    let mut row = RowLayout {
        counted: true,
        ..RowLayout::default()
    };
    for line in template.lines() {
        match &line[..] {
            [Piece::Text(b"type"), Piece::Text(kind), server @ ..] => {
                row.labels
                    .extend([label(TYPE, kind.to_vec()), label(SERVER, words(server))]);
            }
            [Piece::Text(b"addr"), pieces @ ..] => row.labels.push(label(ADDRESS, words(pieces))),
            [Piece::Text(b"proto"), pieces @ ..] => row.labels.push(label(PROTOCOL, words(pieces))),
            [Piece::Text(b"age"), piece, ..] => put(&mut row, AGE, std::slice::from_ref(piece)),
            [Piece::Text(b"bytes"), pieces @ ..] => {
                put(&mut row, NORMAL_READ, &pieces[..pieces.len().min(BYTES)])
            }
            [Piece::Text(b"events"), ..] => {}
            [Piece::Text(name), pieces @ ..] => {
                let pieces = &pieces[..pieces.len().min(NUMBERS)];
                match *name {
                    b"READ" => put(&mut row, READ, pieces),
                    b"WRITE" => put(&mut row, WRITE, pieces),
                    _ => add(&mut row, OTHERS, pieces),
                }
                add(&mut row, OPS, pieces);
            }
            _ => {}
        }
    }
    Layout {
        rows: vec![row],
        ..Layout::default()
    }
}

fn label(label: usize, text: Vec<u8>) -> Label {
    let word = Word::Fixed(text);
    Label { label, word }
}

/// The words that are not numbers, joined by blanks.
fn words(pieces: &[Piece]) -> Vec<u8> {
    let words = pieces.iter().filter_map(|piece| match piece {
        Piece::Text(text) => Some(*text),
        Piece::Slot(_) => None,
    });
    words.collect::<Vec<_>>().join(&b' ')
}

/// Adds the numbers of consecutive fields.
fn put(row: &mut RowLayout, first: usize, pieces: &[Piece]) {
    for (field, piece) in (first..).zip(pieces) {
        row.cells
            .extend(value(piece).map(|from| Cell { field, from }));
    }
}

/// Adds numbers to those that other lines have for the same fields.
fn add(row: &mut RowLayout, first: usize, pieces: &[Piece]) {
    for (field, piece) in (first..).zip(pieces) {
        if let Piece::Slot(slot) = piece {
            let from = From::Added(*slot);
            row.cells.push(Cell { field, from });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::read;
    use super::*;
    use kymo_base::reading::MISSING;

    #[test]
    fn all_operations_and_two_of_them() {
        let text = "type nfs4 10.0.0.1:/export\naddr 10.0.0.1\nproto tcp\nage 77\nevents 1 2\nbytes 11 12 13 14 15 16 17 18\nNULL 1 1 0 44 24 0 0 0 0\nREAD 5 6 1 700 800 3 10 20 2\nGETATTR 1 1 0 1 1 1 1 1\n";
        let reading = read(
            &NFS_MOUNTS,
            &[(kind::MOUNTSTATS, text)],
            &Context::default(),
        );
        let row = &reading.rows[0];
        assert_eq!(
            row.labels,
            [&b"nfs4"[..], b"10.0.0.1:/export", b"10.0.0.1", b"tcp"]
        );
        assert_eq!(row.values[OPS..OPS + 9], [7, 8, 1, 745, 825, 4, 11, 21, 2]);
        assert_eq!(
            row.values[READ..READ + 9],
            [5, 6, 1, 700, 800, 3, 10, 20, 2]
        );
        assert_eq!(row.values[WRITE..WRITE + 9], [MISSING; 9]);
        assert_eq!(row.values[OTHERS..AGE], [2, 2, 0, 45, 25, 1, 1, 1, 0]);
        assert_eq!(row.values[AGE..], [77, 11, 12, 13, 14, 15, 16, 17, 18]);
    }
}
