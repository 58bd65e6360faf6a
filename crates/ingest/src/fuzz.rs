//! Entry points for fuzzing.

/// Any bytes as a record of programs that have ended.
pub fn fuzz_programs(input: &[u8]) {
    crate::programs::retired::fuzz(input);
}

/// Any bytes as a file of notifications: what can be read of them is written again as the same bytes.
pub fn fuzz_notifications(input: &[u8]) {
    crate::collectd::event_files::fuzz(input);
}

/// Takes any bytes as those of a client of the keeper, and does all that the keeper does with them.
pub fn fuzz_questions(input: &[u8]) {
    crate::questions::fuzz::fuzz(input);
}
