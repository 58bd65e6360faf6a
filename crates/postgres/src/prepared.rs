//! Prepared transactions, which hold their locks without a session until a client commits them. pg_blocking_pids shows each of
//! them as process 0, so the table of locks has to tell which one a session waits for.

use std::collections::HashMap;

use kymo_wire::keeper::{PREPARED, ServerSession};
use tokio_postgres::Row;

use super::sessions::{bytes, ns, pid};

/// The query for prepared transactions, the oldest first.
pub(super) const TRANSACTIONS: &str = "SELECT transaction::text::int8, prepared, pg_catalog.textsend(gid), \
     pg_catalog.textsend(database::text), pg_catalog.textsend(owner::text) \
     FROM pg_catalog.pg_prepared_xacts ORDER BY prepared LIMIT 1024";

/// The query for ungranted locks and the locks of prepared transactions on the same objects: process, transaction, and both
/// modes. A prepared transaction is identified by its lock on its own number, which it has beside those on its subtransactions.
pub(super) const LOCKS: &str = "WITH l AS MATERIALIZED (SELECT * FROM pg_catalog.pg_locks) \
     SELECT w.pid, x.transactionid::text::int8, w.mode, h.mode \
     FROM l w JOIN l h ON w.locktype = h.locktype \
     AND (w.database, w.relation, w.page, w.tuple, w.virtualxid, w.transactionid, w.classid, w.objid, w.objsubid) \
     IS NOT DISTINCT FROM (h.database, h.relation, h.page, h.tuple, h.virtualxid, h.transactionid, h.classid, h.objid, h.objsubid) \
     JOIN l x ON x.virtualtransaction = h.virtualtransaction AND x.pid IS NULL AND x.granted AND x.locktype = 'transactionid' \
     AND x.transactionid IN (SELECT p.transaction FROM pg_catalog.pg_prepared_xacts p) \
     WHERE NOT w.granted AND w.pid IS NOT NULL AND h.granted AND h.pid IS NULL LIMIT 65536";

/// Modes of locks, each with the modes that it conflicts with, as indices of this table (PostgreSQL, 13.3.1).
const MODES: [(&str, &[usize]); 8] = [
    ("AccessShareLock", &[7]),
    ("RowShareLock", &[6, 7]),
    ("RowExclusiveLock", &[4, 5, 6, 7]),
    ("ShareUpdateExclusiveLock", &[3, 4, 5, 6, 7]),
    ("ShareLock", &[2, 3, 5, 6, 7]),
    ("ShareRowExclusiveLock", &[2, 3, 4, 5, 6, 7]),
    ("ExclusiveLock", &[1, 2, 3, 4, 5, 6, 7]),
    ("AccessExclusiveLock", &[0, 1, 2, 3, 4, 5, 6, 7]),
];

/// Prepared transactions as sessions without a process.
pub(super) fn transactions(rows: &[Row]) -> Vec<ServerSession> {
    let transaction = |row: &Row| {
        let names = ["gid", "database", "user"];
        let labels = (2..).zip(names);
        let labels = labels.map(|(at, name)| (name.as_bytes().to_vec(), bytes(row, at).to_vec()));
        let prepared_ns = ns(row.try_get(1).unwrap_or_default());
        ServerSession {
            xid: xid(row, 0),
            started_ns: prepared_ns,
            state: PREPARED,
            since_ns: prepared_ns,
            labels: labels.collect(),
            ..ServerSession::default()
        }
    };
    rows.iter().map(transaction).collect()
}

/// The prepared transactions that each waiting process depends on.
pub(super) fn blockers(rows: &[Row]) -> HashMap<u32, Vec<u32>> {
    let mut blockers: HashMap<u32, Vec<u32>> = HashMap::new();
    for row in rows {
        let [wanted, held]: [&str; 2] = [2, 3].map(|at| row.try_get(at).unwrap_or_default());
        if conflict(wanted, held) {
            let waiting = pid(row.try_get(0).unwrap_or_default());
            blockers.entry(waiting).or_default().push(xid(row, 1));
        }
    }
    for xids in blockers.values_mut() {
        xids.sort_unstable();
        xids.dedup();
        xids.truncate(super::sessions::BLOCKERS_MAX);
    }
    blockers
}

fn xid(row: &Row, at: usize) -> u32 {
    let xid: Option<i64> = row.try_get(at).unwrap_or_default();
    xid.and_then(|xid| u32::try_from(xid).ok()).unwrap_or(0)
}

/// True if two modes conflict. An unknown mode conflicts with all.
fn conflict(wanted: &str, held: &str) -> bool {
    let number = |mode| MODES.iter().position(|(name, _)| *name == mode);
    match (number(wanted), number(held)) {
        (Some(wanted), Some(held)) => MODES[wanted].1.contains(&held),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_conflict_both_ways_or_not_at_all() {
        for (wanted, _) in MODES {
            for (held, _) in MODES {
                assert_eq!(
                    conflict(wanted, held),
                    conflict(held, wanted),
                    "{wanted} {held}"
                );
            }
        }
        assert!(!conflict("RowExclusiveLock", "RowShareLock"));
        assert!(!conflict("AccessShareLock", "ExclusiveLock"));
        assert!(conflict("ShareLock", "RowExclusiveLock"));
        assert!(!conflict("ShareLock", "ShareLock"));
        assert!(conflict("AccessShareLock", "AccessExclusiveLock"));
    }
}
