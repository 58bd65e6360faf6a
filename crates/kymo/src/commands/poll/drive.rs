//! The poller itself.

use super::{Outcome, Settings};

/// Polls what the settings say: once, or until it is asked to end. Tells [`Settings::ready`] when it has begun.
pub(super) fn drive(settings: Settings) -> Result<Outcome, String> {
    let count = settings.configs.iter().map(|config| config.targets().len());
    Err(format!(
        "cannot poll {} targets: the part that asks devices is missing from this program",
        count.sum::<usize>()
    ))
}
