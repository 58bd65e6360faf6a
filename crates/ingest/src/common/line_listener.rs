//! The declaration of a listener for a protocol of lines: its key, its settings with their help, and its start. The configuration,
//! the sockets, the keeper and the names that it may write all come from it.

use super::LineSockets;
use crate::listener::Listener;
use crate::log::Log;

/// A listener as it is declared.
pub struct LineListener {
    /// Key of its addresses in `[listen]`, name of the table with its settings, and `job` of its series.
    pub name: &'static str,
    /// Name of the protocol, for people.
    pub title: &'static str,
    /// Address that the configuration shows as an example.
    pub example: &'static str,
    /// Lines that it takes, for the comment of the key.
    pub takes: &'static str,
    /// Settings of its table.
    pub settings: &'static [NumberSetting],
    /// Makes the listener.
    pub start: fn(&LineSettings, LineSockets, Log) -> Box<dyn Listener>,
}

/// A setting that is a number.
pub struct NumberSetting {
    /// The key.
    pub name: &'static str,
    /// The comment of the key.
    pub help: &'static str,
    /// The unit, for messages: `seconds`.
    pub unit: &'static str,
    /// The value without the key.
    pub default: u32,
    /// The smallest and the largest value.
    pub range: (u32, u32),
}

/// Values of a listener's settings, in the order of its declaration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineSettings(Vec<u32>);

impl LineListener {
    /// Default settings of the listener.
    pub fn defaults(&self) -> LineSettings {
        LineSettings(
            self.settings
                .iter()
                .map(|setting| setting.default)
                .collect(),
        )
    }
}

impl NumberSetting {
    /// Refuses a value out of range; the reason.
    pub fn check(&self, value: u32) -> Result<u32, String> {
        let (least, most) = self.range;
        match (least..=most).contains(&value) {
            true => Ok(value),
            false => Err(format!(
                "not a number of {} from {least} to {most}",
                self.unit
            )),
        }
    }
}

impl LineSettings {
    /// Settings of these values; `None`: they are not as many as the listener has.
    pub fn of(listener: &LineListener, values: Vec<u32>) -> Option<LineSettings> {
        (values.len() == listener.settings.len()).then_some(LineSettings(values))
    }

    /// The values, in the order of the declaration.
    pub fn values(&self) -> &[u32] {
        &self.0
    }

    /// The value of the setting at a place.
    pub fn value(&self, at: usize) -> u32 {
        self.0.get(at).copied().unwrap_or_default()
    }

    /// Changes the value of the setting at a place.
    pub fn set(&mut self, at: usize, value: u32) {
        if let Some(place) = self.0.get_mut(at) {
            *place = value;
        }
    }
}
