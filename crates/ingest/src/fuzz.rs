//! Entry points for fuzzing.

/// Any bytes as a record of programs that have ended.
pub fn fuzz_programs(input: &[u8]) {
    crate::programs::retired::fuzz(input);
}

/// Any bytes as a file of notifications: what can be read of them is written again as the same bytes.
pub fn fuzz_notifications(input: &[u8]) {
    crate::collectd::event_files::fuzz(input);
}
