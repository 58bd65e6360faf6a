//! What the system says of an error.

use std::io;

/// The words of `strerror`, without the number that Rust puts behind them.
pub fn strerror(error: &io::Error) -> String {
    let mut text = error.to_string();
    if let Some(at) = text.rfind(" (os error ") {
        text.truncate(at);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_has_no_number() {
        assert_eq!(
            strerror(&io::Error::from_raw_os_error(2)),
            "No such file or directory"
        );
        assert_eq!(strerror(&io::Error::other("late")), "late");
    }
}
