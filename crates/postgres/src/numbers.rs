//! Numbers of a server that become series: pg_stat_database for each database and in total, connections by state, waits by
//! type, the oldest transaction, ungranted locks, the WAL position, checkpoints.

use std::collections::BTreeMap;

use kymo_base::pattern;
use tokio_postgres::Row;

use super::ask::{Ask, Asker, Failed};
use super::columns::{Columns, Kind};

/// Most databases with series of their own.
const DATABASES_MAX: usize = 256;
/// States of connections. Each has a value in every answer, so that a state that no connection is in has 0.
const STATES: [&str; 4] = [
    "active",
    "idle",
    "idle in transaction",
    "idle in transaction (aborted)",
];
/// State of a session in a function call, which counts as active.
const FAST_PATH: &str = "fastpath function call";
/// Types of waits by their names in the server.
const WAITS: [&str; 8] = [
    "BufferPin",
    "Client",
    "Extension",
    "IO",
    "IPC",
    "Lock",
    "LWLock",
    "Timeout",
];
/// State of a session that the role may not see.
const UNKNOWN: &str = "unknown";

/// Sessions by state and type of wait, with their oldest transactions. kymo's own session counts as idle.
const SESSIONS: &str = "SELECT coalesce(CASE WHEN pid = pg_catalog.pg_backend_pid() THEN 'idle' ELSE state END, ''), \
     coalesce(wait_event_type, ''), backend_type = 'client backend', count(*)::float8, \
     max(CASE WHEN pid <> pg_catalog.pg_backend_pid() THEN extract(epoch FROM pg_catalog.clock_timestamp() - xact_start) END)::float8, \
     max(CASE WHEN pid <> pg_catalog.pg_backend_pid() THEN age(backend_xmin) END)::float8 \
     FROM pg_catalog.pg_stat_activity GROUP BY 1, 2, 3";
const LOCKS: &str = "SELECT count(*)::float8 FROM pg_catalog.pg_locks WHERE NOT granted";
const WAL: &str = "SELECT pg_catalog.current_setting('max_connections')::float8, pg_catalog.pg_wal_lsn_diff(\
     CASE WHEN pg_catalog.pg_is_in_recovery() THEN pg_catalog.pg_last_wal_replay_lsn() \
     ELSE pg_catalog.pg_current_wal_lsn() END, '0/0')::float8";

/// A number of a server.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Number {
    /// Name of the number.
    pub field: &'static str,
    /// Kind of the number.
    pub kind: Kind,
    /// Label and value of its object, such as a database; `None`: it is of the whole server.
    pub of: Option<(&'static str, Vec<u8>)>,
    /// The current value.
    pub value: f64,
}

impl Number {
    fn of_server(field: &'static str, kind: Kind, value: f64) -> Number {
        Number {
            field,
            kind,
            of: None,
            value,
        }
    }
}

/// The queries for a server of some version.
pub(super) struct Numbers {
    patterns: Vec<String>,
    by_database: Vec<(&'static str, Kind)>,
    databases: Ask,
    sessions: Ask,
    locks: Ask,
    wal: Ask,
    views: Vec<(Vec<&'static str>, Ask)>,
}

/// Results of the queries.
#[derive(Default)]
pub(super) struct QueryResults {
    pub numbers: Vec<Number>,
    /// For each query its error; `None`: the query was answered.
    pub refused: Vec<(&'static str, Option<String>)>,
}

impl Numbers {
    /// The queries for existing columns, and for databases that match these patterns.
    pub(super) fn new(columns: &Columns, patterns: Vec<String>) -> Numbers {
        let views = ["pg_stat_bgwriter", "pg_stat_checkpointer"].map(|view| {
            let (names, sql) = columns.of_view(view)?;
            Some((names, Ask::new(view, sql)))
        });
        Numbers {
            patterns,
            by_database: columns.of_databases(),
            databases: Ask::new("pg_stat_database", columns.databases_sql()),
            sessions: Ask::new("pg_stat_activity", SESSIONS),
            locks: Ask::new("pg_locks", LOCKS),
            wal: Ask::new("the position of the WAL", WAL),
            views: views.into_iter().flatten().collect(),
        }
    }

    /// Runs all queries. If the server refuses one, the others still count.
    pub(super) async fn ask(&mut self, asker: &Asker) -> Result<QueryResults, String> {
        let mut results = QueryResults::default();
        if let Some(rows) = results.rows(asker, &mut self.databases).await? {
            let rows: Vec<(Vec<u8>, Vec<Option<f64>>)> = rows
                .iter()
                .map(|row| {
                    (
                        text(row, 0),
                        (1..row.len()).map(|at| number(row, at)).collect(),
                    )
                })
                .collect();
            let numbers = by_database(&self.by_database, &self.patterns, &rows);
            results.numbers.extend(numbers);
        }
        if let Some(rows) = results.rows(asker, &mut self.sessions).await? {
            let groups: Vec<Group> = rows.iter().map(Group::of).collect();
            results.numbers.extend(of_sessions(&groups));
        }
        if let Some(rows) = results.rows(asker, &mut self.locks).await? {
            results.one(&rows, &[("locks_waiting", Kind::Gauge)]);
        }
        if let Some(rows) = results.rows(asker, &mut self.wal).await? {
            let fields = [
                ("max_connections", Kind::Gauge),
                ("wal_bytes", Kind::Counter),
            ];
            results.one(&rows, &fields);
        }
        for (names, ask) in &mut self.views {
            if let Some(rows) = results.rows(asker, ask).await? {
                let fields: Vec<_> = names.iter().map(|name| (*name, Kind::Counter)).collect();
                results.one(&rows, &fields);
            }
        }
        Ok(results)
    }
}

impl QueryResults {
    async fn rows(&mut self, asker: &Asker, ask: &mut Ask) -> Result<Option<Vec<Row>>, String> {
        let (rows, why) = match asker.rows(ask).await {
            Ok(rows) => (Some(rows), None),
            Err(Failed::Refused(why)) => (None, Some(why)),
            Err(Failed::Gone(why)) => return Err(why),
        };
        self.refused.push((ask.what, why));
        Ok(rows)
    }

    /// Adds the numbers of an answer with one row.
    fn one(&mut self, rows: &[Row], fields: &[(&'static str, Kind)]) {
        for (at, &(field, kind)) in fields.iter().enumerate() {
            let value = rows.first().and_then(|row| number(row, at));
            let value = value.map(|value| Number::of_server(field, kind, value));
            self.numbers.extend(value);
        }
    }
}

fn number(row: &Row, at: usize) -> Option<f64> {
    row.try_get(at).ok().flatten()
}

fn text(row: &Row, at: usize) -> Vec<u8> {
    row.try_get(at).unwrap_or_default()
}

/// Numbers of each database that matches a pattern, and totals of all rows, including the one without a database.
fn by_database(
    fields: &[(&'static str, Kind)],
    patterns: &[String],
    rows: &[(Vec<u8>, Vec<Option<f64>>)],
) -> Vec<Number> {
    let is_wanted = |name: &[u8]| {
        let fits = |pattern: &String| pattern::fits(pattern.as_bytes(), name);
        !name.is_empty() && patterns.iter().any(fits)
    };
    let mut numbers = Vec::new();
    for (at, &(field, kind)) in fields.iter().enumerate() {
        let values = rows
            .iter()
            .filter_map(|(_, values)| values.get(at).copied().flatten());
        let of_all = values.fold(None, |sum: Option<f64>, value| {
            Some(sum.unwrap_or(0.0) + value)
        });
        numbers.extend(of_all.map(|value| Number::of_server(field, kind, value)));
    }
    let wanted = rows.iter().filter(|(name, _)| is_wanted(name));
    for (name, values) in wanted.take(DATABASES_MAX) {
        for (&(field, kind), value) in fields.iter().zip(values) {
            let of = Some(("database", name.clone()));
            numbers.extend(value.map(|value| Number {
                field,
                kind,
                of,
                value,
            }));
        }
    }
    numbers
}

/// Sessions with the same state and type of wait.
#[derive(Clone, Debug, Default)]
struct Group {
    state: String,
    wait: String,
    is_client: bool,
    count: f64,
    oldest_s: Option<f64>,
    xmin_age: Option<f64>,
}

impl Group {
    fn of(row: &Row) -> Group {
        Group {
            state: match row.try_get(0).unwrap_or_default() {
                FAST_PATH => STATES[0].into(),
                state => state.into(),
            },
            wait: row.try_get(1).unwrap_or_default(),
            is_client: row.try_get(2).unwrap_or_default(),
            count: number(row, 3).unwrap_or(0.0),
            oldest_s: number(row, 4),
            xmin_age: number(row, 5),
        }
    }
}

fn of_sessions(groups: &[Group]) -> Vec<Number> {
    let mut states: BTreeMap<&str, f64> = STATES.iter().map(|state| (*state, 0.0)).collect();
    let mut waits: BTreeMap<&str, f64> = WAITS.iter().map(|wait| (*wait, 0.0)).collect();
    for group in groups.iter().filter(|group| group.is_client) {
        let known = STATES.iter().find(|state| **state == group.state);
        *states.entry(known.copied().unwrap_or(UNKNOWN)).or_default() += group.count;
        let wait = WAITS.iter().find(|wait| **wait == group.wait);
        if let Some(wait) = wait.filter(|_| group.state == STATES[0]) {
            *waits.entry(wait).or_default() += group.count;
        }
    }
    let each = |field, label, counts: BTreeMap<&str, f64>| {
        let counts = counts.into_iter();
        counts
            .map(|(name, value)| Number {
                field,
                kind: Kind::Gauge,
                of: Some((label, name.as_bytes().to_vec())),
                value,
            })
            .collect::<Vec<_>>()
    };
    let most = |of: fn(&Group) -> Option<f64>| groups.iter().filter_map(of).fold(0.0, f64::max);
    let mut numbers = each("connections", "state", states);
    numbers.extend(each("waiting", "type", waits));
    numbers.push(Number::of_server(
        "oldest_transaction_seconds",
        Kind::Gauge,
        most(|group| group.oldest_s),
    ));
    numbers.push(Number::of_server(
        "oldest_xmin_transactions",
        Kind::Gauge,
        most(|group| group.xmin_age),
    ));
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(numbers: &[Number], field: &str, of: &str) -> Option<f64> {
        let is = |number: &&Number| {
            let value = number.of.as_ref().map_or(&b""[..], |(_, value)| value);
            number.field == field && value == of.as_bytes()
        };
        numbers.iter().find(is).map(|number| number.value)
    }

    #[test]
    fn databases_are_picked_and_all_are_added_up() {
        let fields = [("xact_commit", Kind::Counter), ("sessions", Kind::Counter)];
        let rows = [
            (b"".to_vec(), vec![Some(1.0), None]),
            (b"shop".to_vec(), vec![Some(10.0), Some(2.0)]),
            (b"other".to_vec(), vec![Some(100.0), Some(3.0)]),
        ];
        let numbers = by_database(&fields, &["sh*".into()], &rows);
        for (field, of, value) in [
            ("xact_commit", "", Some(111.0)),
            ("xact_commit", "shop", Some(10.0)),
            ("xact_commit", "other", None),
            ("sessions", "", Some(5.0)),
        ] {
            assert_eq!(found(&numbers, field, of), value, "{field} {of}");
        }
    }

    #[test]
    fn each_state_has_a_number_and_only_who_works_waits() {
        let group = |state: &str, wait: &str, is_client, count| Group {
            state: state.into(),
            wait: wait.into(),
            is_client,
            count,
            oldest_s: is_client.then_some(count),
            xmin_age: None,
        };
        let numbers = of_sessions(&[
            group("active", "Lock", true, 3.0),
            group("active", "", true, 1.0),
            group("idle", "Client", true, 7.0),
            group("", "", true, 2.0),
            group("active", "IO", false, 5.0),
        ]);
        for (field, of, value) in [
            ("connections", "active", Some(4.0)),
            ("connections", "idle", Some(7.0)),
            ("connections", "idle in transaction", Some(0.0)),
            ("connections", "unknown", Some(2.0)),
            ("waiting", "Lock", Some(3.0)),
            ("waiting", "Client", Some(0.0)),
            ("waiting", "IO", Some(0.0)),
            ("oldest_transaction_seconds", "", Some(7.0)),
        ] {
            assert_eq!(found(&numbers, field, of), value, "{field} {of}");
        }
    }
}
