//! Entry points for fuzzing.

/// Reads any bytes as the file of ended programs.
pub fn fuzz_programs(input: &[u8]) {
    crate::programs::retired::fuzz(input);
}

/// Reads any bytes as a file of notifications: the readable part is written again as the same bytes.
pub fn fuzz_notifications(input: &[u8]) {
    crate::collectd::event_files::fuzz(input);
}

/// Reads any bytes as those of a client of the keeper, and does all that the keeper does with them.
pub fn fuzz_requests(input: &[u8]) {
    crate::requests::fuzz::fuzz(input);
}

/// Reads any bytes as a trap of SNMP, and makes an event of it.
pub fn fuzz_traps(input: &[u8]) {
    crate::traps::event::fuzz(input);
}
