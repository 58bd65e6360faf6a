//! The values of a cycle on their way from the engine to the sinks.

/// Values of targets, each as an argument of `rrdtool update`.
#[derive(Debug, Default)]
pub struct Batch {
    text: Vec<u8>,
    ends: Vec<(u32, usize)>,
}

/// A value of one target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Update<'a> {
    /// The target's place in the configuration.
    pub target: u32,
    /// `SECONDS[.MICROSECONDS]:IN:OUT`, each of the two a decimal number or `U`.
    pub argument: &'a [u8],
}

impl Batch {
    /// Removes all values but keeps the memory.
    pub fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }

    /// Adds a value; `put` appends its argument to the buffer.
    pub fn push(&mut self, target: usize, put: impl FnOnce(&mut Vec<u8>)) {
        put(&mut self.text);
        self.ends.push((target as u32, self.text.len()));
    }

    /// The values in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = Update<'_>> {
        let mut from = 0;
        self.ends.iter().map(move |&(target, end)| {
            let begin = std::mem::replace(&mut from, end);
            Update {
                target,
                argument: &self.text[begin..end],
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
        let all: Vec<_> = batch.iter().map(|u| (u.target, u.argument)).collect();
        assert_eq!(all, [(3, &b"1:2:3"[..]), (1, b"1:U:U")]);
        batch.clear();
        assert!(batch.is_empty() && batch.iter().next().is_none());
    }
}
