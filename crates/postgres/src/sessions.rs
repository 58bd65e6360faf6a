//! Current sessions of a server for the keeper. Literals are removed here: no command's text leaves this process with one.

use std::time::{SystemTime, UNIX_EPOCH};

use kymo_base::statement::without_literals;
use kymo_wire::keeper::{Blockers, ServerSession};
use tokio_postgres::Row;

/// Longest text, bytes.
const TEXT_MAX: usize = 4096;
/// Limit of all sessions together, bytes: they are one question to the keeper.
const ROOM: usize = 900 << 10;
/// Most sessions and prepared transactions of one answer.
const SESSIONS_MAX: usize = 4096;
/// Most processes, and most prepared transactions, that a session waits for.
pub(super) const BLOCKERS_MAX: usize = 64;
/// Longest character, bytes: PostgreSQL truncates a text before a character that does not fit.
const CHARACTER_MAX: i64 = 4;
const IDLE: u8 = 1;
const ACTIVE: u8 = 2;

/// Backend types of a client's session, and of a session that sends the WAL.
const CLIENT: &str = "client backend";
const WALSENDER: &str = "walsender";
/// Type of the wait of a process that is idle in its main loop.
const AT_REST: &str = "Activity";

/// The query for sessions and all other processes that a session waits for. Processes that block others come first, then active
/// ones. It asks only for 64 sessions that wait for a lock whom they wait for, as each such request locks the server's table of
/// locks for a moment. Texts are bytes, as in a cluster with several encodings they have no common one.
pub(super) const SESSIONS: &str = "WITH a AS MATERIALIZED (SELECT s.*, \
     CASE WHEN s.wait_event_type = 'Lock' AND row_number() OVER (PARTITION BY s.wait_event_type ORDER BY s.query_start) <= 64 \
     THEN pg_catalog.pg_blocking_pids(s.pid) END AS blockers FROM pg_catalog.pg_stat_activity s), \
     b AS MATERIALIZED (SELECT pg_catalog.unnest(blockers) AS pid FROM a) \
     SELECT a.pid, a.leader_pid, a.backend_start, a.state, a.query_start, a.state_change, \
     a.wait_event_type, a.wait_event, a.blockers, \
     pg_catalog.textsend(a.application_name), pg_catalog.textsend(a.datname::text), pg_catalog.textsend(a.usename::text), \
     pg_catalog.substr(pg_catalog.textsend(a.query), 1, 65536), pg_catalog.octet_length(a.query)::int8, \
     a.pid = pg_catalog.pg_backend_pid(), a.backend_type \
     FROM a WHERE a.state IS NOT NULL OR a.pid IN (SELECT b.pid FROM b) \
     ORDER BY a.pid NOT IN (SELECT b.pid FROM b), a.state IS DISTINCT FROM 'active', a.query_start LIMIT 4096";

/// All sessions. `text_bytes` is the server's limit for the text of a command.
pub(super) fn sessions(rows: &[Row], text_bytes: i64) -> Vec<ServerSession> {
    rows.iter().map(|row| session(row, text_bytes)).collect()
}

/// True if a session waits for a prepared transaction, which the server shows as process 0.
pub(super) fn wait_for_prepared(rows: &[Row]) -> bool {
    rows.iter().any(|row| blockers(row).contains(&0))
}

/// The sessions that fit, those that block others first, and the number of sessions left out.
pub(super) fn fitting(mut all: Vec<ServerSession>) -> (Vec<ServerSession>, u32) {
    let mut blockers = Blockers::default();
    for session in &all {
        blockers.add(&session.blocked_by, &session.blocked_by_xids);
    }
    all.sort_by_key(|session| !blockers.have(session.pid, session.xid));
    let (mut room, mut left_out) = (ROOM, 0);
    let mut sessions = Vec::with_capacity(all.len());
    for session in all {
        let bytes = session.bytes();
        if bytes > room || sessions.len() == SESSIONS_MAX {
            left_out += 1;
            continue;
        }
        room -= bytes;
        sessions.push(session);
    }
    (sessions, left_out)
}

/// True if a session is active.
pub(super) fn is_active(session: &ServerSession) -> bool {
    session.state == ACTIVE
}

fn session(row: &Row, text_bytes: i64) -> ServerSession {
    let own: bool = row.try_get(14).unwrap_or_default();
    let (backend, waits_for) = (text_at(row, 15), text_at(row, 6));
    // The command of a walsender lasts as long as its connection.
    let rests = own || backend == WALSENDER || waits_for == AT_REST;
    let state: Option<&str> = row.try_get(3).unwrap_or_default();
    let state = if rests { IDLE } else { state_byte(state) };
    let names = ["application", "database", "user"];
    let labels = names
        .iter()
        .enumerate()
        .map(|(at, name)| (name.as_bytes().to_vec(), bytes(row, 9 + at).to_vec()));
    let kind = (b"backend".to_vec(), backend.as_bytes().to_vec());
    let labels = labels.chain((!matches!(backend, CLIENT | "")).then_some(kind));
    let (text, is_cut) = match own {
        true => (Vec::new(), false),
        false => shown(
            bytes(row, 12),
            row.try_get(13).unwrap_or_default(),
            text_bytes,
        ),
    };
    let wait = match state {
        ACTIVE => wait(waits_for, text_at(row, 7)),
        _ => Vec::new(),
    };
    ServerSession {
        pid: pid(row.try_get(0).unwrap_or_default()),
        xid: 0,
        leader: pid(row.try_get(1).unwrap_or_default()),
        started_ns: ns(row.try_get(2).unwrap_or_default()),
        state,
        command_ns: match own {
            true => 0,
            false => ns(row.try_get(4).unwrap_or_default()),
        },
        since_ns: ns(row.try_get(5).unwrap_or_default()),
        wait,
        blocked_by: pids(&blockers(row)),
        blocked_by_xids: Vec::new(),
        labels: labels.collect(),
        text,
        is_cut,
    }
}

fn blockers(row: &Row) -> Vec<i32> {
    row.try_get(8).ok().flatten().unwrap_or_default()
}

pub(super) fn bytes(row: &Row, at: usize) -> &[u8] {
    row.try_get(at).ok().flatten().unwrap_or_default()
}

fn text_at(row: &Row, at: usize) -> &str {
    row.try_get(at).ok().flatten().unwrap_or_default()
}

/// Process ids; prepared transactions, which have id 0, are omitted.
fn pids(all: &[i32]) -> Vec<u32> {
    let mut pids: Vec<u32> = all
        .iter()
        .map(|&one| pid(Some(one)))
        .filter(|&pid| pid > 0)
        .collect();
    pids.sort_unstable();
    pids.dedup();
    pids.truncate(BLOCKERS_MAX);
    pids
}

pub(super) fn pid(pid: Option<i32>) -> u32 {
    pid.and_then(|pid| u32::try_from(pid).ok()).unwrap_or(0)
}

pub(super) fn ns(time: Option<SystemTime>) -> u64 {
    let since = time.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    since
        .and_then(|since| u64::try_from(since.as_nanos()).ok())
        .unwrap_or(0)
}

fn state_byte(state: Option<&str>) -> u8 {
    match state {
        Some("active" | "fastpath function call") => ACTIVE,
        Some("idle") => IDLE,
        Some("idle in transaction") => 3,
        Some("idle in transaction (aborted)") => 4,
        _ => 0,
    }
}

/// A wait as `Lock:relation`.
fn wait(kind: &str, event: &str) -> Vec<u8> {
    match kind {
        "" => Vec::new(),
        kind => format!("{kind}:{event}").into_bytes(),
    }
}

/// A command without its literals, and true if its text was truncated.
fn shown(query: &[u8], whole_bytes: i64, text_bytes: i64) -> (Vec<u8>, bool) {
    let mut text = without_literals(query);
    let is_cut = whole_bytes >= text_bytes - CHARACTER_MAX
        || usize::try_from(whole_bytes).is_ok_and(|bytes| bytes > query.len())
        || text.len() > TEXT_MAX;
    text.truncate(TEXT_MAX);
    (text, is_cut)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_go_and_cut_texts_are_marked() {
        let long = format!("SELECT {}", "a, ".repeat(2000));
        for (query, whole, room, text, is_cut) in [
            ("SELECT 'x'", 10, 1024, "SELECT ?", false),
            ("SELECT 'x'", 10, 12, "SELECT ?", true),
            ("SELECT 'x", 20_000, 65_536, "SELECT ?", true),
            ("", 0, 1024, "", false),
        ] {
            let found = shown(query.as_bytes(), whole, room);
            assert_eq!(found, (text.as_bytes().to_vec(), is_cut), "{query}");
        }
        let (text, is_cut) = shown(long.as_bytes(), 6007, 65_536);
        assert!(text.len() == TEXT_MAX && is_cut);
    }

    #[test]
    fn who_holds_others_up_has_the_room_first() {
        let of = |pid, text: usize| ServerSession {
            pid,
            text: vec![b'x'; text],
            ..ServerSession::default()
        };
        let mut waiting = of(1, 0);
        (waiting.blocked_by, waiting.blocked_by_xids) = (vec![9], vec![731]);
        let mut all = vec![waiting];
        all.extend((2..4200).map(|pid| of(pid, 0)));
        let prepared = ServerSession {
            xid: 731,
            ..of(0, 0)
        };
        all.extend([prepared, of(9, ROOM / 2)]);
        let (sessions, left_out) = fitting(all);
        let pids: Vec<u32> = sessions.iter().map(|session| session.pid).collect();
        assert!(pids.starts_with(&[9, 0, 9, 1, 2]), "{:?}", &pids[..9]);
        assert_eq!(sessions.len() + left_out as usize, 4201);
        assert!(sessions.len() <= SESSIONS_MAX);
    }

    #[test]
    fn words_of_the_server() {
        assert_eq!(wait("Lock", "relation"), b"Lock:relation");
        assert_eq!(wait("", ""), b"");
        for (state, byte) in [
            (Some("active"), 2),
            (Some("idle"), 1),
            (Some("idle in transaction"), 3),
            (Some("idle in transaction (aborted)"), 4),
            (Some("disabled"), 0),
            (None, 0),
        ] {
            assert_eq!(state_byte(state), byte);
        }
        assert_eq!(pids(&[7, 0, 7, 3, -1]), [3, 7]);
    }
}
