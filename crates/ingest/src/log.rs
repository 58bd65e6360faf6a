//! Messages for the administrator.

use std::sync::Arc;

/// Severity of a message, as syslog numbers
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Severity {
    Critical = 2,
    Error = 3,
    Warning = 4,
    Notice = 5,
    Info = 6,
    Debug = 7,
}

/// Receiver of messages for the administrator.
pub type Log = Arc<dyn Fn(Severity, &str) + Send + Sync>;
