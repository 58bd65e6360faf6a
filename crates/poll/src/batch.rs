//! The values of a cycle on their way from the engine to the sinks.

use std::sync::Arc;

/// Values of targets, each as an argument of `rrdtool update`.
#[derive(Debug, Default)]
pub struct Batch {
    text: Vec<u8>,
    ends: Vec<(u32, usize)>,
    /// Places of values whose device has said something about itself, in their order.
    abouts: Vec<(usize, About)>,
}

/// A device by its own words, for pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// How long the device has been up.
    pub uptime: Uptime,
    /// sysName, or the name that a command prints: untrusted bytes.
    pub name: Option<Arc<[u8]>>,
}

/// How long a device has been up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Uptime {
    /// sysUpTime, hundredths of a second.
    Ticks(u32),
    /// The words of a command: untrusted bytes.
    Words(Arc<[u8]>),
}

impl About {
    /// A device without a text.
    pub(crate) fn nothing() -> About {
        About {
            uptime: Uptime::Words([].into()),
            name: None,
        }
    }
}

/// A value of one target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Update<'a> {
    /// The target's place in the configuration.
    pub target: u32,
    /// `SECONDS[.MICROSECONDS]:IN:OUT`, each of the two a decimal number or `U`.
    pub argument: &'a [u8],
    /// The device of the value; `None`: there are several, or it says nothing.
    pub about: Option<&'a About>,
}

impl Batch {
    /// Removes all values but keeps the memory.
    pub fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
        self.abouts.clear();
    }

    /// Adds a value; `put` appends its argument to the buffer.
    pub fn push(&mut self, target: usize, put: impl FnOnce(&mut Vec<u8>)) {
        put(&mut self.text);
        self.ends.push((target as u32, self.text.len()));
    }

    /// Says of which device the last value is.
    pub fn set_about(&mut self, about: About) {
        if let Some(place) = self.ends.len().checked_sub(1) {
            self.abouts.push((place, about));
        }
    }

    /// The values in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = Update<'_>> {
        let mut from = 0;
        let mut abouts = self.abouts.iter().peekable();
        self.ends
            .iter()
            .enumerate()
            .map(move |(place, &(target, end))| {
                let begin = std::mem::replace(&mut from, end);
                let about = abouts.next_if(|about| about.0 == place);
                Update {
                    target,
                    argument: &self.text[begin..end],
                    about: about.map(|about| &about.1),
                }
            })
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True if the batch has no value.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
}

/// The whole seconds that an argument begins with.
pub(crate) fn seconds(argument: &[u8]) -> i64 {
    let digits = argument.iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(0, |seconds: i64, digit| {
        let more = seconds.saturating_mul(10);
        more.saturating_add(i64::from(digit - b'0'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_argument_begins_with_seconds() {
        for (argument, expected) in [
            (&b"1700000000:1:2"[..], 1_700_000_000),
            (b"1700000000.250000:U:U", 1_700_000_000),
            (b"", 0),
            (b"N:1:2", 0),
            (b"99999999999999999999:1", i64::MAX),
        ] {
            assert_eq!(seconds(argument), expected);
        }
    }

    #[test]
    fn arguments_come_back_in_their_order() {
        let mut batch = Batch::default();
        batch.push(3, |text| text.extend(b"1:2:3"));
        batch.push(1, |text| text.extend(b"1:U:U"));
        let about = About {
            uptime: Uptime::Ticks(7),
            name: None,
        };
        batch.set_about(about.clone());
        batch.push(2, |text| text.extend(b"1:4:5"));
        let all: Vec<_> = batch
            .iter()
            .map(|u| (u.target, u.argument, u.about.cloned()))
            .collect();
        assert_eq!(
            all,
            [
                (3, &b"1:2:3"[..], None),
                (1, b"1:U:U", Some(about)),
                (2, b"1:4:5", None)
            ]
        );
        batch.clear();
        assert!(batch.is_empty() && batch.iter().next().is_none());
    }
}
