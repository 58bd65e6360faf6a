//! Names of PostgreSQL's metrics: those of postgres_exporter if it has the same
//! number.

use kymo_base::label_set::{LabelError, Labels};

use super::{JOB_POSTGRES, Set, metric_name};

/// Factor from milliseconds to seconds.
const MS: f64 = 0.001;

/// Columns, their metrics, and the factors to the metrics' units. Sorted by column.
const METRICS: &[(&str, &str, f64)] = &[
    (
        "active_time",
        "pg_stat_database_active_time_seconds_total",
        MS,
    ),
    ("blk_read_time", "pg_stat_database_blk_read_time", 1.0),
    ("blk_write_time", "pg_stat_database_blk_write_time", 1.0),
    ("blks_hit", "pg_stat_database_blks_hit", 1.0),
    ("blks_read", "pg_stat_database_blks_read", 1.0),
    ("buffers_alloc", "pg_stat_bgwriter_buffers_alloc_total", 1.0),
    (
        "buffers_backend",
        "pg_stat_bgwriter_buffers_backend_total",
        1.0,
    ),
    (
        "buffers_checkpoint",
        "pg_stat_bgwriter_buffers_checkpoint_total",
        1.0,
    ),
    ("buffers_clean", "pg_stat_bgwriter_buffers_clean_total", 1.0),
    (
        "checkpoint_sync_time",
        "pg_stat_bgwriter_checkpoint_sync_time_total",
        1.0,
    ),
    (
        "checkpoint_write_time",
        "pg_stat_bgwriter_checkpoint_write_time_total",
        1.0,
    ),
    (
        "checkpoints_req",
        "pg_stat_bgwriter_checkpoints_req_total",
        1.0,
    ),
    (
        "checkpoints_timed",
        "pg_stat_bgwriter_checkpoints_timed_total",
        1.0,
    ),
    ("checksum_failures", "kymo_pg_checksum_failures_total", 1.0),
    ("conflicts", "pg_stat_database_conflicts", 1.0),
    ("connections", "pg_stat_activity_count", 1.0),
    ("deadlocks", "pg_stat_database_deadlocks", 1.0),
    (
        "idle_in_transaction_time",
        "kymo_pg_idle_in_transaction_seconds_total",
        MS,
    ),
    ("max_connections", "pg_settings_max_connections", 1.0),
    (
        "maxwritten_clean",
        "pg_stat_bgwriter_maxwritten_clean_total",
        1.0,
    ),
    ("numbackends", "pg_stat_database_numbackends", 1.0),
    ("session_time", "kymo_pg_session_seconds_total", MS),
    ("sessions", "kymo_pg_sessions_total", 1.0),
    (
        "sessions_abandoned",
        "kymo_pg_sessions_abandoned_total",
        1.0,
    ),
    ("sessions_fatal", "kymo_pg_sessions_fatal_total", 1.0),
    ("sessions_killed", "kymo_pg_sessions_killed_total", 1.0),
    ("temp_bytes", "pg_stat_database_temp_bytes", 1.0),
    ("temp_files", "pg_stat_database_temp_files", 1.0),
    ("tup_deleted", "pg_stat_database_tup_deleted", 1.0),
    ("tup_fetched", "pg_stat_database_tup_fetched", 1.0),
    ("tup_inserted", "pg_stat_database_tup_inserted", 1.0),
    ("tup_returned", "pg_stat_database_tup_returned", 1.0),
    ("tup_updated", "pg_stat_database_tup_updated", 1.0),
    ("wal_bytes", "kymo_pg_wal_bytes_total", 1.0),
    ("xact_commit", "pg_stat_database_xact_commit", 1.0),
    ("xact_rollback", "pg_stat_database_xact_rollback", 1.0),
];

/// A number of a server, by its column. `of` names the label and value of its
/// object, such as a database.
pub fn postgres(
    server: &[u8],
    field: &str,
    of: Option<(&str, &[u8])>,
) -> Result<Labels, LabelError> {
    let metric = match known(field) {
        Some((_, metric, _)) => (*metric).to_string(),
        None => format!("kymo_pg_{}", metric_name(field.as_bytes())),
    };
    let mut set = Set::of(&metric);
    set.put("job", JOB_POSTGRES);
    set.put("server", server);
    if let Some((label, value)) = of {
        // postgres_exporter uses this word.
        let label = if label == "database" {
            "datname"
        } else {
            label
        };
        set.put_free(label, value);
    }
    set.labels()
}

/// The factor from a column's numbers to the metric's unit.
pub fn postgres_scale(field: &str) -> f64 {
    known(field).map_or(1.0, |(_, _, scale)| *scale)
}

fn known(field: &str) -> Option<&'static (&'static str, &'static str, f64)> {
    let at = METRICS.binary_search_by_key(&field, |(field, _, _)| field);
    at.ok().map(|at| &METRICS[at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted() {
        assert!(METRICS.is_sorted_by_key(|(field, _, _)| field));
    }
}
