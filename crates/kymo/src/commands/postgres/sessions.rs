//! What the sessions of a server do now, for the keeper. Literals of their commands end here: no text leaves this process with one.

use std::time::{SystemTime, UNIX_EPOCH};

use kymo_base::statement::without_literals;
use kymo_wire::keeper::ServerSession;
use tokio_postgres::Row;

/// Bytes of a text.
const TEXT_MAX: usize = 4096;
/// Bytes of all sessions together: they are one question to the keeper.
const ROOM: usize = 900 << 10;
/// Processes that one waits for.
const BLOCKERS_MAX: usize = 64;
/// PostgreSQL cuts a text that has no room before the character that would not fit.
const CHARACTER_MAX: i64 = 4;
const IDLE: u8 = 1;
const ACTIVE: u8 = 2;

/// Who works first. Whom a session waits for is asked of 64 that wait for a lock: each takes the server's table of locks for a moment.
/// Texts are bytes: of databases with several encodings not all are characters of one.
pub(super) const SESSIONS: &str = "SELECT a.pid, a.leader_pid, a.backend_start, a.state, a.query_start, a.state_change, \
     a.wait_event_type, a.wait_event, \
     CASE WHEN a.wait_event_type = 'Lock' AND row_number() OVER (PARTITION BY a.wait_event_type ORDER BY a.query_start) <= 64 \
     THEN pg_catalog.pg_blocking_pids(a.pid) END, \
     pg_catalog.textsend(a.application_name), pg_catalog.textsend(a.datname::text), pg_catalog.textsend(a.usename::text), \
     pg_catalog.substr(pg_catalog.textsend(a.query), 1, 65536), pg_catalog.octet_length(a.query)::int8, \
     a.pid = pg_catalog.pg_backend_pid() \
     FROM pg_catalog.pg_stat_activity a WHERE a.state IS NOT NULL \
     ORDER BY a.state <> 'active', a.query_start LIMIT 4096";

/// All sessions that there is room for, and how many are left out; `text_bytes`: what the server keeps of a text.
pub(super) fn sessions(rows: &[Row], text_bytes: i64) -> (Vec<ServerSession>, u32) {
    let mut sessions = Vec::with_capacity(rows.len());
    let (mut room, mut left_out) = (ROOM, 0);
    for row in rows {
        let session = session(row, text_bytes);
        let bytes = session.bytes();
        if bytes > room {
            left_out += 1;
            continue;
        }
        room -= bytes;
        sessions.push(session);
    }
    (sessions, left_out)
}

/// Whether one works.
pub(super) fn is_active(session: &ServerSession) -> bool {
    session.state == ACTIVE
}

fn session(row: &Row, text_bytes: i64) -> ServerSession {
    let own: bool = row.try_get(14).unwrap_or_default();
    let state: Option<&str> = row.try_get(3).unwrap_or_default();
    let state = if own { IDLE } else { state_byte(state) };
    let names = ["application", "database", "user"];
    let labels = names
        .iter()
        .enumerate()
        .map(|(at, name)| (name.as_bytes().to_vec(), bytes(row, 9 + at).to_vec()));
    let (text, is_cut) = match own {
        true => (Vec::new(), false),
        false => shown(
            bytes(row, 12),
            row.try_get(13).unwrap_or_default(),
            text_bytes,
        ),
    };
    let wait = match state {
        ACTIVE => wait(text_at(row, 6), text_at(row, 7)),
        _ => Vec::new(),
    };
    let blockers: Option<Vec<i32>> = row.try_get(8).unwrap_or_default();
    ServerSession {
        pid: pid(row.try_get(0).unwrap_or_default()),
        leader: pid(row.try_get(1).unwrap_or_default()),
        started_ns: ns(row.try_get(2).unwrap_or_default()),
        state,
        command_ns: match own {
            true => 0,
            false => ns(row.try_get(4).unwrap_or_default()),
        },
        since_ns: ns(row.try_get(5).unwrap_or_default()),
        wait,
        blocked_by: pids(&blockers.unwrap_or_default()),
        labels: labels.collect(),
        text,
        is_cut,
    }
}

fn bytes(row: &Row, at: usize) -> &[u8] {
    row.try_get(at).ok().flatten().unwrap_or_default()
}

fn text_at(row: &Row, at: usize) -> &str {
    row.try_get(at).ok().flatten().unwrap_or_default()
}

/// Processes with numbers: a prepared transaction that waits for its end has none.
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

fn pid(pid: Option<i32>) -> u32 {
    pid.and_then(|pid| u32::try_from(pid).ok()).unwrap_or(0)
}

fn ns(time: Option<SystemTime>) -> u64 {
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

/// `Lock:relation`.
fn wait(kind: &str, event: &str) -> Vec<u8> {
    match kind {
        "" => Vec::new(),
        kind => format!("{kind}:{event}").into_bytes(),
    }
}

/// A command without its literals, and whether more of it was there.
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
