//! Time zones of POSIX texts, as glibc completes them.

/// Rule of daylight saving time of zones such as `CET-1CEST`, which have none.
pub const USUAL_RULE: &str = ",M3.2.0,M11.1.0";
