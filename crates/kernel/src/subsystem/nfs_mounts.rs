//! `V`: what each NFS mount asks its server: operations, bytes, and how long they take, from /proc/self/mountstats, with
//! the meanings of nfsiostat(8) and mountstats(8). The rows are mounts, those of `F` are versions.

use kymo_base::column::{Cells, Column};
use kymo_base::context::Context;
use kymo_base::field::{Field, Rule, Unit};
use kymo_base::template::{Piece, Template};

use super::exposed::Exposed;
use super::{
    Lines, Place, Plot, Shape, Subsystem, Summary, Text, Unused, at, field, number, plot, ratio,
    text, value,
};
use crate::layout::{Cell, From, Label, Layout, RowLayout, Word};
use crate::source::kind;

// Labels of a row.
const TYPE: usize = 0;
const SERVER: usize = 1;

const fn counter(name: &'static str, unit: Unit, help: &'static str) -> Field {
    field(name, Rule::Counter64, unit, help)
}

/// The numbers of an operation, in the kernel's order.
macro_rules! of_operations {
    ($what:literal: $($name:literal)*) => {{
        const UNITS: [Unit; 9] = [
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
        const HELPS: [&str; 9] = [
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
        const NAMES: [&str; 9] = [$($name),*];
        let mut fields = [const { counter("", Unit::Count, "") }; 9];
        let mut n = 0;
        while n < 9 {
            fields[n] = counter(NAMES[n], UNITS[n], HELPS[n]);
            n += 1;
        }
        fields
    }};
}

const FIELDS: &[Field] = &{
    let [a, b, c, d, e, f, g, h, i] = of_operations!("All operations": "ops" "sent" "timeouts" "bytes_sent" "bytes_received" "queue" "rtt" "exe" "errors");
    let [j, k, l, m, n, o, p, q, r] = of_operations!("READ": "read_ops" "read_sent" "read_timeouts" "read_bytes_sent" "read_bytes_received" "read_queue" "read_rtt" "read_exe" "read_errors");
    let [s, t, u, v, w, x, y, z, zz] = of_operations!("WRITE": "write_ops" "write_sent" "write_timeouts" "write_bytes_sent" "write_bytes_received" "write_queue" "write_rtt" "write_exe" "write_errors");
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
        m,
        n,
        o,
        p,
        q,
        r,
        s,
        t,
        u,
        v,
        w,
        x,
        y,
        z,
        zz,
        field("age", Rule::Gauge, Unit::Seconds, "Since it was mounted"),
        counter("normal_read", Unit::Bytes, "Read by programs"),
        counter("normal_write", Unit::Bytes, "Written by programs"),
        counter("direct_read", Unit::Bytes, "Read by programs with O_DIRECT"),
        counter(
            "direct_write",
            Unit::Bytes,
            "Written by programs with O_DIRECT",
        ),
    ]
};

const OPS: usize = at(FIELDS, "ops");
const READ: usize = at(FIELDS, "read_ops");
const WRITE: usize = at(FIELDS, "write_ops");
const AGE: usize = at(FIELDS, "age");
const NORMAL_READ: usize = at(FIELDS, "normal_read");
// Of an operation, from the first of its fields on.
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

/// Milliseconds that an operation took in the mean.
fn mean<const FIRST: usize, const PART: usize>(cells: &Cells) -> f64 {
    ratio(cells.delta[FIRST + PART], cells.delta[FIRST])
}

/// Sent and received.
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

const PLOT_DETAIL: &[Place] = &[
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
    labels: &["type", "server"],
    layout,
    summary: Summary::None,
    sum: None,
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
    exposed: Exposed::NONE,
};

/// `type nfs4 SERVER:PATH`, `age 77`, `bytes 1 2 ...`, `READ 1 2 3 4 5 6 7 8 9`.
fn layout(_: u8, template: &Template, _: &Context) -> Layout {
    let mut row = RowLayout {
        counted: true,
        ..RowLayout::default()
    };
    for line in template.lines() {
        match &line[..] {
            [Piece::Text(b"type"), Piece::Text(kind), server @ ..] => {
                let words = server.iter().filter_map(|piece| match piece {
                    Piece::Text(text) => Some(*text),
                    Piece::Slot(_) => None,
                });
                let server = words.collect::<Vec<_>>().join(&b' ');
                for (label, text) in [(TYPE, kind.to_vec()), (SERVER, server)] {
                    let word = Word::Fixed(text);
                    row.labels.push(Label { label, word });
                }
            }
            [Piece::Text(b"age"), said, ..] => put(&mut row, AGE, std::slice::from_ref(said)),
            [Piece::Text(b"bytes"), said @ ..] => {
                put(&mut row, NORMAL_READ, &said[..said.len().min(4)])
            }
            [Piece::Text(b"events"), ..] => {}
            [Piece::Text(name), said @ ..] => {
                let said = &said[..said.len().min(9)];
                match *name {
                    b"READ" => put(&mut row, READ, said),
                    b"WRITE" => put(&mut row, WRITE, said),
                    _ => {}
                }
                add(&mut row, OPS, said);
            }
            _ => {}
        }
    }
    Layout {
        rows: vec![row],
        ..Layout::default()
    }
}

/// Numbers of consecutive fields.
fn put(row: &mut RowLayout, first: usize, said: &[Piece]) {
    for (field, piece) in (first..).zip(said) {
        row.cells
            .extend(value(piece).map(|from| Cell { field, from }));
    }
}

/// The same, added to what other lines have.
fn add(row: &mut RowLayout, first: usize, said: &[Piece]) {
    for (field, piece) in (first..).zip(said) {
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
        let text = "type nfs4 10.0.0.1:/export\nage 77\nevents 1 2\nbytes 11 12 13 14 15 16 17 18\nNULL 1 1 0 44 24 0 0 0 0\nREAD 5 6 1 700 800 3 10 20 2\nGETATTR 1 1 0 1 1 1 1 1\n";
        let reading = read(
            &NFS_MOUNTS,
            &[(kind::MOUNTSTATS, text)],
            &Context::default(),
        );
        let row = &reading.rows[0];
        assert_eq!(row.labels, [b"nfs4".to_vec(), b"10.0.0.1:/export".to_vec()]);
        assert_eq!(row.values[OPS..OPS + 9], [7, 8, 1, 745, 825, 4, 11, 21, 2]);
        assert_eq!(
            row.values[READ..READ + 9],
            [5, 6, 1, 700, 800, 3, 10, 20, 2]
        );
        assert_eq!(row.values[WRITE..WRITE + 9], [MISSING; 9]);
        assert_eq!(row.values[AGE..], [77, 11, 12, 13, 14]);
    }
}
