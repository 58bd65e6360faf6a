//! All listeners for protocols of lines. A new one is a row.

use crate::{graphite, statsd};

pub use crate::common::{LineListener, LineSettings, NumberSetting};

/// The declarations.
pub const ALL: &[LineListener] = &[graphite::DECLARATION, statsd::DECLARATION];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_are_whole() {
        for listener in ALL {
            for setting in listener.settings {
                assert_eq!(setting.check(setting.default), Ok(setting.default));
                let (least, most) = setting.range;
                assert!(setting.check(most).is_ok() && setting.check(most + 1).is_err());
                assert!(setting.check(least).is_ok());
            }
            let defaults = listener.defaults();
            assert_eq!(
                LineSettings::of(listener, defaults.values().to_vec()),
                Some(defaults)
            );
            assert_eq!(LineSettings::of(listener, vec![1; 99]), None);
            assert!(listener.example.parse::<std::net::SocketAddr>().is_ok());
        }
    }
}
