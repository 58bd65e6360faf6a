//! Queries on the server's views, which select the columns that its version has.

use std::collections::HashSet;

use Kind::{Counter, Gauge};

/// Kinds of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Grows until it is reset.
    Counter,
    /// Goes up and down.
    Gauge,
}

/// Columns of pg_stat_database, which has a row for each database.
pub(super) const DATABASE: &[(&str, Kind)] = &[
    ("numbackends", Gauge),
    ("xact_commit", Counter),
    ("xact_rollback", Counter),
    ("blks_read", Counter),
    ("blks_hit", Counter),
    ("tup_returned", Counter),
    ("tup_fetched", Counter),
    ("tup_inserted", Counter),
    ("tup_updated", Counter),
    ("tup_deleted", Counter),
    ("conflicts", Counter),
    ("temp_files", Counter),
    ("temp_bytes", Counter),
    ("deadlocks", Counter),
    ("checksum_failures", Counter),
    ("blk_read_time", Counter),
    ("blk_write_time", Counter),
    ("session_time", Counter),
    ("active_time", Counter),
    ("idle_in_transaction_time", Counter),
    ("sessions", Counter),
    ("sessions_abandoned", Counter),
    ("sessions_fatal", Counter),
    ("sessions_killed", Counter),
];

/// Columns about the whole server: view, column, and kymo's name of the number. Version 17 has moved and renamed some.
pub(super) const SERVER: &[(&str, &str, &str)] = &[
    ("pg_stat_bgwriter", "checkpoints_timed", "checkpoints_timed"),
    ("pg_stat_bgwriter", "checkpoints_req", "checkpoints_req"),
    (
        "pg_stat_bgwriter",
        "checkpoint_write_time",
        "checkpoint_write_time",
    ),
    (
        "pg_stat_bgwriter",
        "checkpoint_sync_time",
        "checkpoint_sync_time",
    ),
    (
        "pg_stat_bgwriter",
        "buffers_checkpoint",
        "buffers_checkpoint",
    ),
    ("pg_stat_bgwriter", "buffers_clean", "buffers_clean"),
    ("pg_stat_bgwriter", "maxwritten_clean", "maxwritten_clean"),
    ("pg_stat_bgwriter", "buffers_backend", "buffers_backend"),
    ("pg_stat_bgwriter", "buffers_alloc", "buffers_alloc"),
    ("pg_stat_checkpointer", "num_timed", "checkpoints_timed"),
    ("pg_stat_checkpointer", "num_requested", "checkpoints_req"),
    (
        "pg_stat_checkpointer",
        "write_time",
        "checkpoint_write_time",
    ),
    ("pg_stat_checkpointer", "sync_time", "checkpoint_sync_time"),
    (
        "pg_stat_checkpointer",
        "buffers_written",
        "buffers_checkpoint",
    ),
];

/// The query for the columns of the views: view and column in each row.
pub(super) const LEARN: &str = "SELECT c.relname::text, a.attname::text \
     FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid \
     WHERE c.relnamespace = 'pg_catalog'::regnamespace AND a.attnum > 0 \
     AND c.relname IN ('pg_stat_database', 'pg_stat_bgwriter', 'pg_stat_checkpointer')";

/// Existing columns, with their views.
#[derive(Default)]
pub(super) struct Columns(pub(super) HashSet<(String, String)>);

impl Columns {
    fn has(&self, view: &str, column: &str) -> bool {
        self.0.contains(&(view.into(), column.into()))
    }

    /// Columns of pg_stat_database that exist.
    pub(super) fn of_databases(&self) -> Vec<(&'static str, Kind)> {
        let there = DATABASE
            .iter()
            .filter(|(column, _)| self.has("pg_stat_database", column));
        there.copied().collect()
    }

    /// The query for numbers by database: its name, then the columns of [`Columns::of_databases`].
    pub(super) fn databases_sql(&self) -> String {
        let columns: Vec<String> = self
            .of_databases()
            .iter()
            .map(|(column, _)| format!("{column}::float8"))
            .collect();
        format!(
            "SELECT pg_catalog.textsend(coalesce(datname::text, '')), {} FROM pg_catalog.pg_stat_database",
            columns.join(", ")
        )
    }

    /// kymo's names of the numbers in a view of one row, and the query for them; `None`: this version has none of them.
    pub(super) fn of_view(&self, view: &str) -> Option<(Vec<&'static str>, String)> {
        let there: Vec<_> = SERVER
            .iter()
            .filter(|(of, column, _)| *of == view && self.has(view, column))
            .collect();
        let columns: Vec<String> = there
            .iter()
            .map(|(_, column, _)| format!("{column}::float8"))
            .collect();
        let sql = format!("SELECT {} FROM pg_catalog.{view}", columns.join(", "));
        let names = there.iter().map(|(_, _, name)| *name).collect();
        (!there.is_empty()).then_some((names, sql))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(all: &[(&str, &str)]) -> Columns {
        let pairs = all
            .iter()
            .map(|(view, name)| (view.to_string(), name.to_string()));
        Columns(pairs.collect())
    }

    #[test]
    fn a_version_is_asked_for_what_it_has() {
        let fifteen = columns(&[
            ("pg_stat_database", "xact_commit"),
            ("pg_stat_database", "sessions"),
            ("pg_stat_bgwriter", "checkpoints_timed"),
            ("pg_stat_bgwriter", "buffers_clean"),
        ]);
        assert_eq!(
            fifteen.databases_sql(),
            "SELECT pg_catalog.textsend(coalesce(datname::text, '')), xact_commit::float8, sessions::float8 \
             FROM pg_catalog.pg_stat_database"
        );
        let (names, sql) = fifteen.of_view("pg_stat_bgwriter").unwrap();
        assert_eq!(names, ["checkpoints_timed", "buffers_clean"]);
        assert!(sql.ends_with("buffers_clean::float8 FROM pg_catalog.pg_stat_bgwriter"));
        assert!(fifteen.of_view("pg_stat_checkpointer").is_none());
        let seventeen = columns(&[
            ("pg_stat_bgwriter", "buffers_clean"),
            ("pg_stat_checkpointer", "num_timed"),
        ]);
        let (names, sql) = seventeen.of_view("pg_stat_checkpointer").unwrap();
        assert_eq!(names, ["checkpoints_timed"]);
        assert!(sql.starts_with("SELECT num_timed::float8 FROM"));
    }
}
