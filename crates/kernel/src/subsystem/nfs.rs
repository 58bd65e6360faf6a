//! `f` and `F`: NFS requests of this machine as a client and as a server, from /proc/net/rpc/nfs and nfsd: versions 2, 3
//! and 4 with 4.1 and 4.2.

use std::borrow::Cow;

use kymo_base::column::{Cells, Column};
use kymo_base::context::Context;
use kymo_base::field::{Field, Rule, Unit};
use kymo_base::template::{Piece, Template};

use super::exposed::{self, Each, Exposed, Parts};
use super::{
    Lines, Plot, PlotColumn, Shape, Subsystem, Summary, Text, Unused, at, field, number, plot,
    rate, text,
};
use crate::layout::{Cell, From, Layout, RowLayout};
use crate::source::kind;

const fn counter(name: &'static str, help: &'static str) -> Field {
    field(name, Rule::Counter64, Unit::Count, help)
}

const fn octets(name: &'static str, help: &'static str) -> Field {
    field(name, Rule::Counter64, Unit::Bytes, help)
}

const fn gauge(name: &'static str, help: &'static str) -> Field {
    field(name, Rule::Gauge, Unit::Count, help)
}

/// Names begin with `s_` for the server and with `c_` for the client.
const GLOBALS: &[Field] = &[
    counter("s_reads", "READs served, of all versions"),
    counter("s_writes", "WRITEs served, of all versions"),
    counter(
        "s_meta",
        "LOOKUPs, ACCESSes, GETATTRs, SETATTRs, READDIRs served",
    ),
    counter("s_commits", "COMMITs served"),
    counter("s_udp", "Requests received over UDP"),
    counter("s_tcp", "Requests received over TCP"),
    counter("s_connections", "TCP connections accepted"),
    counter("s_calls", "Requests received"),
    counter("s_bad_auth", "Requests refused for their credentials"),
    counter("s_bad_client", "Requests refused for their client"),
    counter("s_bad_format", "Requests that were no requests"),
    octets("s_read_bytes", "Bytes read for clients"),
    octets("s_written_bytes", "Bytes written for clients"),
    counter(
        "s_cache_hits",
        "Requests answered again from the reply cache",
    ),
    counter(
        "s_cache_misses",
        "Requests that the reply cache had to learn",
    ),
    counter("s_not_cached", "Requests that need no reply cache"),
    gauge("s_threads", "Threads of the server"),
    counter("c_reads", "READs sent, of all versions"),
    counter("c_writes", "WRITEs sent, of all versions"),
    counter(
        "c_meta",
        "LOOKUPs, ACCESSes, GETATTRs, SETATTRs, READDIRs sent",
    ),
    counter("c_commits", "COMMITs sent"),
    counter("c_calls", "Requests sent"),
    counter("c_retransmits", "Requests sent again"),
    counter("c_auth_refreshes", "Credentials asked for again"),
];

/// Fields of each operation, and columns of the operations before the `+`.
macro_rules! operations {
    ($($name:literal $help:literal;)* + $($more:literal)*) => {
        const FIELDS: &[Field] = &[$(counter($name, $help)),* $(, counter($more, "One of `other`"))*];
        /// Number of operations with a column.
        const SHOWN: usize = [$($name),*].len();
        const DETAIL: &[Column] = &[
            text("version", "Version, `c` of the client or `s` of the server", |c, out| {
                out.extend_from_slice(c.name)
            }),
            text("type", "Clt or Svr and the version", put_type),
            $(number($name, Unit::PerSecond, $help, rate::<{ at(FIELDS, $name) }>)),*
        ];
    };
}

operations! {
    "read" "READ";
    "write" "WRITE";
    "commit" "COMMIT";
    "lookup" "LOOKUP";
    "access" "ACCESS";
    "getattr" "GETATTR";
    "setattr" "SETATTR";
    "readdir" "READDIR";
    "create" "CREATE";
    "remove" "REMOVE";
    "rename" "RENAME";
    "link" "LINK";
    "readlink" "READLINK";
    "null" "NULL";
    "symlink" "SYMLINK";
    "mkdir" "MKDIR";
    "rmdir" "RMDIR";
    "fsstat" "FSSTAT";
    "fsinfo" "FSINFO";
    "pathconf" "PATHCONF";
    "mknod" "MKNOD";
    "readdirplus" "READDIRPLUS";
    "open" "OPEN";
    "close" "CLOSE";
    "lock" "LOCK";
    "unlock" "UNLOCK";
    "delegreturn" "DELEGRETURN";
    "sequence" "SEQUENCE";
    "layoutget" "LAYOUTGET";
    "layoutcommit" "LAYOUTCOMMIT";
    "seek" "SEEK";
    "allocate" "ALLOCATE";
    "deallocate" "DEALLOCATE";
    "copy" "COPY";
    "clone" "CLONE";
    "read_plus" "READ_PLUS";
    "getxattr" "GETXATTR";
    "setxattr" "SETXATTR";
    "other" "Operations without a column";
    +
    "root" "wrcache" "openconfirm" "opennoattr" "opendowngrade" "renew" "setclientid" "setclientidconfirm" "lockt" "lookuproot" "statfs" "servercaps" "getacl" "setacl" "fslocations" "releaselockowner" "secinfo" "fsidpresent" "exchangeid" "createsession" "destroysession" "getleasetime" "reclaimcomplete" "getdeviceinfo" "layoutreturn" "secinfononame" "teststateid" "freestateid" "getdevicelist" "bindconntosession" "destroyclientid" "layoutstats" "offloadcancel" "lookupp" "layouterror" "copynotify" "listxattrs" "removexattr" "delegpurge" "getfh" "nverify" "openattr" "putfh" "putpubfh" "putrootfh" "restorefh" "savefh" "verify" "backchannelctl" "getdirdelegation" "setssv" "wantdelegation" "ioadvise" "offloadstatus" "writesame"
}

/// Type of a version: `Clt3` for `3cd`.
fn put_type(cells: &Cells, out: &mut Vec<u8>) {
    if let [version, side, ..] = cells.name {
        out.extend_from_slice(if *side == b'c' { b"Clt" } else { b"Svr" });
        out.push(*version);
    }
}

const fn events(name: &'static str, help: &'static str, value: fn(&Cells) -> f64) -> Column {
    number(name, Unit::PerSecond, help, value)
}

const fn f(name: &str) -> usize {
    at(GLOBALS, name)
}

/// Server and client together; a machine may be only one of them.
fn both(cells: &Cells, server: usize, client: usize) -> f64 {
    super::known_rates(cells, &[server, client])
}

const COLUMNS: &[Column] = &[
    events("reads", "READs, served and sent", |c| {
        both(c, f("s_reads"), f("c_reads"))
    }),
    events("writes", "WRITEs, served and sent", |c| {
        both(c, f("s_writes"), f("c_writes"))
    }),
    events("meta", "server_meta + client_meta", |c| {
        both(c, f("s_meta"), f("c_meta"))
    }),
    events("commits", "COMMITs, served and sent", |c| {
        both(c, f("s_commits"), f("c_commits"))
    }),
    events("server_reads", "READs served", rate::<{ f("s_reads") }>),
    events("server_writes", "WRITEs served", rate::<{ f("s_writes") }>),
    events(
        "server_meta",
        "LOOKUPs, ACCESSes, GETATTRs, SETATTRs, READDIRs served",
        rate::<{ f("s_meta") }>,
    ),
    events(
        "server_commits",
        "COMMITs served",
        rate::<{ f("s_commits") }>,
    ),
    events("server_udp", "Requests over UDP", rate::<{ f("s_udp") }>),
    events("server_tcp", "Requests over TCP", rate::<{ f("s_tcp") }>),
    events(
        "server_connections",
        "TCP connections accepted",
        rate::<{ f("s_connections") }>,
    ),
    events(
        "server_bad_auth",
        "Requests refused for their credentials",
        rate::<{ f("s_bad_auth") }>,
    ),
    events(
        "server_bad_client",
        "Requests refused for their client",
        rate::<{ f("s_bad_client") }>,
    ),
    number(
        "server_read_kb",
        Unit::KilobytesPerSecond,
        "Read for clients",
        |c| c.rate(f("s_read_bytes")) / 1024.0,
    ),
    number(
        "server_write_kb",
        Unit::KilobytesPerSecond,
        "Written for clients",
        |c| c.rate(f("s_written_bytes")) / 1024.0,
    ),
    events(
        "server_cache_hits",
        "Requests answered again from the reply cache",
        rate::<{ f("s_cache_hits") }>,
    ),
    number(
        "server_threads",
        Unit::Count,
        "Threads of the server",
        |c| c.now[f("s_threads")],
    ),
    events("client_reads", "READs sent", rate::<{ f("c_reads") }>),
    events("client_writes", "WRITEs sent", rate::<{ f("c_writes") }>),
    events(
        "client_meta",
        "LOOKUPs, ACCESSes, GETATTRs, SETATTRs, READDIRs sent",
        rate::<{ f("c_meta") }>,
    ),
    events("client_commits", "COMMITs sent", rate::<{ f("c_commits") }>),
    events(
        "client_retransmits",
        "Requests sent again",
        rate::<{ f("c_retransmits") }>,
    ),
    events(
        "client_auth_refreshes",
        "Credentials asked for again",
        rate::<{ f("c_auth_refreshes") }>,
    ),
];

const PLOT: &[PlotColumn] = &[
    plot("ReadsS", "server_reads"),
    plot("WritesS", "server_writes"),
    plot("MetaS", "server_meta"),
    plot("CommitS", "server_commits"),
    plot("Udp", "server_udp"),
    plot("Tcp", "server_tcp"),
    plot("TcpConn", "server_connections"),
    plot("BadAuth", "server_bad_auth"),
    plot("BadClient", "server_bad_client"),
    plot("ReadsC", "client_reads"),
    plot("WritesC", "client_writes"),
    plot("MetaC", "client_meta"),
    plot("CommitC", "client_commits"),
    plot("Retrans", "client_retransmits"),
    plot("AuthRef", "client_auth_refreshes"),
];

const PLOT_DETAIL: &[PlotColumn] = &[
    plot("Read", "read"),
    plot("Write", "write"),
    plot("Commit", "commit"),
    plot("Lookup", "lookup"),
    plot("Access", "access"),
    plot("Getattr", "getattr"),
    plot("Setattr", "setattr"),
    plot("Readdir", "readdir"),
    plot("Create", "create"),
    plot("Remove", "remove"),
    plot("Rename", "rename"),
    plot("Link", "link"),
    plot("ReadLink", "readlink"),
    plot("Null", "null"),
    plot("Symlink", "symlink"),
    plot("Mkdir", "mkdir"),
    plot("Rmdir", "rmdir"),
    plot("Fsstat", "fsstat"),
    plot("Fsinfo", "fsinfo"),
    plot("Pathconf", "pathconf"),
    plot("Mknod", "mknod"),
    plot("Readdirplus", "readdirplus"),
];

/// node_exporter's metrics of the client and the server as a whole.
const EXPOSED: Exposed = Exposed {
    machine: &[
        exposed::counter("node_nfs_rpcs_total", f("c_calls")),
        exposed::counter("node_nfs_rpc_retransmissions_total", f("c_retransmits")),
        exposed::counter(
            "node_nfs_rpc_authentication_refreshes_total",
            f("c_auth_refreshes"),
        ),
        exposed::counter("node_nfsd_disk_bytes_read_total", f("s_read_bytes")),
        exposed::counter("node_nfsd_disk_bytes_written_total", f("s_written_bytes")),
        exposed::counter("node_nfsd_server_rpcs_total", f("s_calls")),
        exposed::counter("node_nfsd_connections_total", f("s_connections")),
        exposed::counter("node_nfsd_reply_cache_hits_total", f("s_cache_hits")),
        exposed::counter("node_nfsd_reply_cache_misses_total", f("s_cache_misses")),
        exposed::counter("node_nfsd_reply_cache_nocache_total", f("s_not_cached")),
        exposed::gauge("node_nfsd_server_threads", f("s_threads")),
    ],
    each: &[
        Each {
            labels: PROTO,
            shows: |row| row.name.get(1) == Some(&b'c'),
            families: &[exposed::counter("node_nfs_requests_total", 0)
                .meant("Operations that the client asked for")
                .of_each(METHODS)],
        },
        Each {
            labels: PROTO,
            shows: |row| row.name.get(1) == Some(&b's'),
            families: &[exposed::counter("node_nfsd_requests_total", 0)
                .meant("Operations that the server was asked for")
                .of_each(METHODS)],
        },
    ],
};

const PROTO: &[exposed::MetricLabel] = &[exposed::MetricLabel {
    name: "proto",
    may_lack: false,
    put: |row, out| out.extend(row.name.first()),
}];

const METHODS: Parts = Parts::ByInstance {
    label: "method",
    count: FIELDS.len(),
    value: |row, at| method(&row.name, FIELDS.get(at)?.name),
};

/// node_exporter's name of an operation for this version and side.
fn method(name: &[u8], field: &str) -> Option<&'static str> {
    let names = match name {
        [b'2', ..] => V2,
        [b'3', ..] => V3,
        [b'4', b'c', ..] => V4_CLIENT,
        [b'4', ..] => V4_SERVER,
        _ => return None,
    };
    let mut known = names.split(' ').map(method_and_field);
    known
        .find(|(_, known)| known == field)
        .map(|(name, _)| name)
}

/// Name and field of a word of the lists below.
fn method_and_field(word: &'static str) -> (&'static str, Cow<'static, str>) {
    match word.split_once('=') {
        Some((method, field)) => (method, field.into()),
        None => (word, word.to_ascii_lowercase().into()),
    }
}

/// NFS.
pub static NFS: Subsystem = Subsystem {
    letter: 'f',
    name: "nfs",
    help: "NFS requests of the client and of the server, by version",
    sources: &[kind::NFS, kind::NFSD],
    beside: None,
    spread: false,
    globals: GLOBALS,
    fields: FIELDS,
    labels: &[],
    layout,
    fills: None,
    summary: Summary::Globals,
    sum: None,
    ceiling: None,
    count: None,
    in_service: false,
    columns: COLUMNS,
    detail: DETAIL,
    born: None,
    unused: Unused::NotOnTerminals,
    text: Text {
        brief: Lines {
            title: "<------NFS Totals------>",
            heads: &[" Reads Writes Meta Comm "],
            row: "{reads:6c} {writes:6c} {meta:4c} {commits:4c} ",
        },
        verbose: Lines {
            title: "NFS SUMMARY ({rate}) ",
            heads: &[
                "<---------------------------server---------------------------><----------------client---------------->",
                " Reads Writes Meta Comm  UDP   TCP  TCPConn  BadAuth  BadClnt  Reads Writes Meta Comm Retrans  Authref",
            ],
            row: " {server_reads:6c} {server_writes:6c} {server_meta:4c} {server_commits:4c} {server_udp:4c}  {server_tcp:4c}     {server_connections:4c}     {server_bad_auth:4c}     {server_bad_client:4c} {client_reads:6c} {client_writes:6c} {client_meta:4c} {client_commits:4c}    {client_retransmits:4c}     {client_auth_refreshes:4c}",
        },
        detail: Lines {
            title: "NFS SERVER/CLIENT DETAILS ({rate})",
            heads: &[
                "Type Read Writ Comm Look Accs Gttr Sttr Rdir Cre8 Rmov Rnam Link Rlnk Null Syml Mkdr Rmdr Fsta Finf Path Mknd Rdr+",
            ],
            row: " {type:s} {read:4c} {write:4c} {commit:4c} {lookup:4c} {access:4c} {getattr:4c} {setattr:4c} {readdir:4c} {create:4c} {remove:4c} {rename:4c} {link:4c} {readlink:4c} {null:4c} {symlink:4c} {mkdir:4c} {rmdir:4c} {fsstat:4c} {fsinfo:4c} {pathconf:4c} {mknod:4c} {readdirplus:4c}",
        },
    },
    plot: Plot {
        tag: "NFS",
        order: 7,
        file: "nfs",
        summary: PLOT,
        detail: PLOT_DETAIL,
        shape: Shape::Own(|name, place| method(name, place.column).is_some()),
    },
    exposed: EXPOSED,
};

// The operations of each line, in order, by node_exporter's names. A `=` is followed by the field, unless that is the name
// in lower case. Operations without a field count as `other`.
const V2: &str = "Null GetAttr SetAttr Root Lookup ReadLink Read WrCache Write Create Remove Rename Link SymLink MkDir RmDir ReadDir FsStat";
const V3: &str = "Null GetAttr SetAttr Lookup Access ReadLink Read Write Create MkDir SymLink MkNod Remove RmDir Rename Link ReadDir ReadDirPlus FsStat FsInfo PathConf Commit";
const V4_CLIENT: &str = "Null Read Write Commit Open OpenConfirm OpenNoattr OpenDowngrade Close Setattr FsInfo Renew SetClientID SetClientIDConfirm Lock Lockt Locku=unlock Access Getattr Lookup LookupRoot Remove Rename Link Symlink Create Pathconf StatFs ReadLink ReadDir ServerCaps DelegReturn GetACL SetACL FsLocations ReleaseLockowner Secinfo FsidPresent ExchangeID CreateSession DestroySession Sequence GetLeaseTime ReclaimComplete LayoutGet GetDeviceInfo LayoutCommit LayoutReturn SecinfoNoName TestStateID FreeStateID GetDeviceList BindConnToSession DestroyClientID Seek Allocate DeAllocate LayoutStats Clone Copy OffloadCancel Lookupp LayoutError CopyNotify GetXattr SetXattr ListXattrs RemoveXattr ReadPlus=read_plus";
const V4_SERVER: &str = "op0 op1 op2 Access Close Commit Create DelegPurge DelegReturn GetAttr GetFH Link Lock Lockt Locku=unlock Lookup LookupRoot=lookupp Nverify Open OpenAttr OpenConfirm OpenDgrd=opendowngrade PutFH PutPubFH PutRootFH Read ReadDir ReadLink Remove Rename Renew RestoreFH SaveFH SecInfo SetAttr SetClientID SetClientIDConfirm Verify Write RelLockOwner=releaselockowner BackchannelCtl BindConnToSession ExchangeID CreateSession DestroySession FreeStateID GetDirDelegation GetDeviceInfo GetDeviceList LayoutCommit LayoutGet LayoutReturn SecinfoNoName Sequence SetSSV TestStateID WantDelegation DestroyClientID ReclaimComplete Allocate Copy CopyNotify DeAllocate IOAdvise LayoutError LayoutStats OffloadCancel OffloadStatus ReadPlus=read_plus Seek WriteSame Clone GetXattr SetXattr ListXattrs RemoveXattr";

/// Operations that collectl groups as meta.
const META: &[&str] = &[
    "lookup",
    "access",
    "setattr",
    "getattr",
    "readdir",
    "readdirplus",
];

fn layout(kind: u8, template: &Template, _: &Context) -> Layout {
    let is_server = kind == kind::NFSD;
    let mut layout = Layout::default();
    for line in template.lines() {
        let Some((Piece::Text(word), numbers)) = line.split_first() else {
            continue;
        };
        let slots: Vec<usize> = numbers
            .iter()
            .map_while(|piece| match piece {
                Piece::Slot(slot) => Some(*slot),
                Piece::Text(_) => None,
            })
            .collect();
        let operations = match (*word, is_server) {
            (b"proc2", _) => (V2, "2"),
            (b"proc3", _) => (V3, "3"),
            (b"proc4", false) => (V4_CLIENT, "4"),
            (b"proc4ops", true) => (V4_SERVER, "4"),
            _ => {
                one_line(word, &slots, is_server, &mut layout);
                continue;
            }
        };
        // The first number is the number of operations.
        put_operations(
            operations,
            slots.get(1..).unwrap_or_default(),
            is_server,
            &mut layout,
        );
    }
    layout
}

/// Numbers of a line, and their fields.
type Places = &'static [(usize, &'static str)];

/// Fields of the lines that are not about operations: true for the server, the first word, and the numbers.
const LINES: &[(bool, &[u8], Places)] = &[
    (
        true,
        b"rc",
        &[
            (0, "s_cache_hits"),
            (1, "s_cache_misses"),
            (2, "s_not_cached"),
        ],
    ),
    (true, b"io", &[(0, "s_read_bytes"), (1, "s_written_bytes")]),
    (true, b"th", &[(0, "s_threads")]),
    (
        true,
        b"net",
        &[(1, "s_udp"), (2, "s_tcp"), (3, "s_connections")],
    ),
    (
        true,
        b"rpc",
        &[
            (0, "s_calls"),
            (2, "s_bad_format"),
            (3, "s_bad_auth"),
            (4, "s_bad_client"),
        ],
    ),
    (
        false,
        b"rpc",
        &[
            (0, "c_calls"),
            (1, "c_retransmits"),
            (2, "c_auth_refreshes"),
        ],
    ),
];

fn one_line(word: &[u8], slots: &[usize], is_server: bool, layout: &mut Layout) {
    let known = LINES
        .iter()
        .find(|(server, name, _)| *server == is_server && *name == word);
    for (at, name) in known.map_or(&[][..], |(_, _, fields)| fields) {
        let field = GLOBALS.iter().position(|field| field.name == *name);
        if let (Some(field), Some(&slot)) = (field, slots.get(*at)) {
            let from = From::Slot(slot);
            layout.globals.push(Cell { field, from });
        }
    }
}

fn put_operations(
    (names, version): (&'static str, &str),
    slots: &[usize],
    is_server: bool,
    layout: &mut Layout,
) {
    let side = if is_server { "s" } else { "c" };
    let mut cells = Vec::new();
    let of_name = |name: &str| FIELDS.iter().position(|field| field.name == name);
    let names = names.split(' ').map(method_and_field);
    let names = names
        .map(|(_, field)| field)
        .chain(std::iter::repeat("other".into()));
    for (&slot, name) in slots.iter().zip(names) {
        let from = From::Added(slot);
        let field = of_name(&name);
        cells.extend(field.map(|field| Cell { field, from }));
        if field.is_none_or(|field| field >= SHOWN) {
            let other = const { at(FIELDS, "other") };
            cells.push(Cell { field: other, from });
        }
        let total = match &name[..] {
            "read" => "reads",
            "write" => "writes",
            "commit" => "commits",
            name if META.contains(&name) => "meta",
            _ => continue,
        };
        let is_total = |field: &Field| {
            let name = field
                .name
                .strip_prefix(side)
                .and_then(|name| name.strip_prefix('_'));
            name == Some(total)
        };
        let field = GLOBALS.iter().position(is_total);
        layout
            .globals
            .extend(field.map(|field| Cell { field, from }));
    }
    layout.rows.push(RowLayout {
        name: format!("{version}{side}d").into_bytes(),
        counted: true,
        cells,
        ..RowLayout::default()
    });
}

#[cfg(test)]
mod tests {
    use super::super::testing::read;
    use super::*;
    use kymo_base::reading::MISSING;

    /// Each operation has a field, except the first three of a server, which are unused.
    #[test]
    fn each_operation_has_a_field() {
        for names in [V2, V3, V4_CLIENT, V4_SERVER] {
            let mut seen = Vec::new();
            for (method, name) in names.split(' ').map(method_and_field) {
                let is_known = FIELDS.iter().any(|field| field.name == name);
                assert_eq!(is_known, !["op0", "op1", "op2"].contains(&method), "{name}");
                assert!(!seen.contains(&name), "{name} twice");
                seen.push(name);
            }
        }
        for (row, field, expect) in [
            (&b"2cd"[..], "fsstat", Some("FsStat")),
            (b"3sd", "readdirplus", Some("ReadDirPlus")),
            (b"3sd", "open", None),
            (b"4cd", "unlock", Some("Locku")),
            (b"4sd", "opendowngrade", Some("OpenDgrd")),
            (b"9cd", "read", None),
            (b"", "read", None),
        ] {
            assert_eq!(method(row, field), expect, "{row:?} {field}");
        }
    }

    #[test]
    fn client_and_server() {
        let client = "net 0 0 0 0\nrpc 1218785755 374636 1218815394\nproc2 18 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18\nproc3 22 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22\nproc4 4 10 20 30 40\n";
        let server = "rc 1 2 3\nfh 0 0 0 0 0\nio 5000 6000\nth 8 0 0.000 1.000\nra 32 0\nnet 9 1 8 2\nrpc 9 6 3 2 1\nproc4 2 0 100\nproc4ops 41 0 0 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38\n";
        let reading = read(
            &NFS,
            &[(kind::NFS, client), (kind::NFSD, server)],
            &Context::default(),
        );
        for (field, expect) in [
            ("c_calls", 1_218_785_755),
            ("c_retransmits", 374_636),
            ("c_reads", 7 + 7 + 20),
            ("c_writes", 9 + 8 + 30),
            ("c_commits", 22 + 40),
            ("c_meta", (5 + 2 + 3 + 17) + (4 + 5 + 2 + 3 + 17 + 18)),
            ("s_threads", 8),
            ("s_tcp", 8),
            ("s_connections", 2),
            ("s_bad_format", 3),
            ("s_bad_auth", 2),
            ("s_bad_client", 1),
            ("s_written_bytes", 6000),
            ("s_reads", 23),
            ("s_writes", 36),
            ("s_meta", 13 + 1 + 7 + 24 + 32),
        ] {
            assert_eq!(reading.globals[f(field)], expect, "{field}");
        }
        let value = |row: usize, field: &str| reading.rows[row].values[at(FIELDS, field)];
        let names: Vec<_> = reading.rows.iter().map(|row| &row.name[..]).collect();
        assert_eq!(names, [&b"2cd"[..], b"3cd", b"4cd", b"4sd"]);
        assert_eq!(
            (value(0, "fsstat"), value(0, "other"), value(0, "commit")),
            (18, 4 + 8, MISSING)
        );
        assert_eq!((value(1, "readdirplus"), value(1, "commit")), (18, 22));
        assert_eq!((value(2, "read"), value(2, "access")), (20, MISSING));
        assert_eq!(
            (value(3, "access"), value(3, "open"), value(3, "write")),
            (1, 16, 36)
        );
    }
}
