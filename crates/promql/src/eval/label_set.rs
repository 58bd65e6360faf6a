//! Label sets of results. They are made and compared while an expression runs, may be empty, and are cheap to copy.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use kymo_base::label_set;
use kymo_base::varint::{put_bytes, take_bytes};
use kymo_series::Labels;
use kymo_series::names::METRIC;

/// Bytes of a set at most: nested calls of `label_join` double a value each.
const SET_MAX: usize = 64 << 10;

/// A sorted set of labels, none of which is empty.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct LabelSet {
    /// Names and values in turn, each behind its length.
    bytes: Arc<[u8]>,
}

/// A set would have more than 64 KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SetTooLong;

impl LabelSet {
    /// The set without labels.
    pub fn empty() -> LabelSet {
        LabelSet { bytes: [].into() }
    }

    /// The set of these labels. Of a name that comes twice the first one counts; empty values are left out.
    pub fn new(labels: &[(&str, &str)]) -> LabelSet {
        let mut labels: Vec<(&str, &str)> = labels.to_vec();
        labels.sort_by_key(|(name, _)| *name);
        labels.dedup_by_key(|(name, _)| *name);
        let mut bytes = Vec::new();
        for (name, value) in labels {
            put(&mut bytes, name, value);
        }
        LabelSet {
            bytes: bytes.into(),
        }
    }

    /// The labels of a series.
    pub(crate) fn of(labels: &Labels) -> LabelSet {
        let mut bytes = Vec::with_capacity(labels.text().len());
        for (name, value) in label_set::each(labels.text()) {
            put_bytes(&mut bytes, name);
            put_bytes(&mut bytes, &value);
        }
        LabelSet {
            bytes: bytes.into(),
        }
    }

    /// Names and values, sorted by names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pairs().map(|(name, value)| (text(name), text(value)))
    }

    /// Names and values, not looked at.
    fn pairs(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut left = &*self.bytes;
        let mut take = move || take_bytes(&mut left, usize::MAX);
        std::iter::from_fn(move || Some((take()?, take()?)))
    }

    /// The value of a label; empty: it has none.
    pub fn get(&self, name: &str) -> &str {
        let mut pairs = self.pairs();
        let found = pairs.find(|(found, _)| *found == name.as_bytes());
        found.map_or("", |(_, value)| text(value))
    }

    /// The metric's name; empty: it has none.
    pub fn metric(&self) -> &str {
        self.get(METRIC)
    }

    /// True if there is no label.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Bytes in memory.
    pub(crate) fn size_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The labels of which `keeps` is true.
    pub(crate) fn filtered(&self, keeps: impl Fn(&str) -> bool) -> LabelSet {
        if self.pairs().all(|(name, _)| keeps(text(name))) {
            return self.clone();
        }
        let mut bytes = Vec::with_capacity(self.bytes.len());
        for (name, value) in self.pairs().filter(|(name, _)| keeps(text(name))) {
            put_bytes(&mut bytes, name);
            put_bytes(&mut bytes, value);
        }
        LabelSet {
            bytes: bytes.into(),
        }
    }

    /// All but the metric's name, type and unit, which no longer hold for a computed value.
    pub(crate) fn without_metric(&self) -> LabelSet {
        self.filtered(|name| !is_of_metric(name))
    }

    /// The set with another value for a label; empty: without that label.
    pub(crate) fn with(&self, name: &str, value: &str) -> Result<LabelSet, SetTooLong> {
        if self.bytes.len().saturating_add(value.len()) > SET_MAX {
            return Err(SetTooLong);
        }
        let mut bytes = Vec::with_capacity(self.bytes.len() + name.len() + value.len() + 4);
        let mut is_put = false;
        for (each, old) in self.iter() {
            if !is_put && name <= each {
                put(&mut bytes, name, value);
                is_put = true;
            }
            if each != name {
                put(&mut bytes, each, old);
            }
        }
        if !is_put {
            put(&mut bytes, name, value);
        }
        Ok(LabelSet {
            bytes: bytes.into(),
        })
    }
}

/// True for the labels that describe the metric: `__name__`, `__type__` and `__unit__`.
pub(crate) fn is_of_metric(name: &str) -> bool {
    matches!(name, METRIC | "__type__" | "__unit__")
}

fn put(bytes: &mut Vec<u8>, name: &str, value: &str) {
    if !value.is_empty() {
        put_bytes(bytes, name.as_bytes());
        put_bytes(bytes, value.as_bytes());
    }
}

/// Texts were UTF-8 when they were put, unless a reader has said otherwise.
fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}

impl Ord for LabelSet {
    /// Prometheus' order: label by label, each by its name and then its value.
    fn cmp(&self, other: &LabelSet) -> Ordering {
        self.pairs().cmp(other.pairs())
    }
}

impl PartialOrd for LabelSet {
    fn partial_cmp(&self, other: &LabelSet) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for LabelSet {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("{")?;
        for (at, (name, value)) in self.iter().enumerate() {
            let comma = if at > 0 { ", " } else { "" };
            write!(out, "{comma}{name}={value:?}")?;
        }
        out.write_str("}")
    }
}

impl fmt::Debug for LabelSet {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_found_changed_and_removed() {
        let set = LabelSet::new(&[("job", "node"), ("__name__", "up"), ("empty", "")]);
        assert_eq!(set.to_string(), r#"{__name__="up", job="node"}"#);
        assert_eq!(
            (set.metric(), set.get("job"), set.get("jo")),
            ("up", "node", "")
        );
        for (name, value, shown) in [
            ("a", "1", r#"{__name__="up", a="1", job="node"}"#),
            ("job", "x", r#"{__name__="up", job="x"}"#),
            ("z", "1", r#"{__name__="up", job="node", z="1"}"#),
            ("job", "", r#"{__name__="up"}"#),
            ("none", "", r#"{__name__="up", job="node"}"#),
        ] {
            assert_eq!(set.with(name, value).unwrap().to_string(), shown);
        }
        assert_eq!(set.without_metric().to_string(), r#"{job="node"}"#);
        assert!(set.filtered(|_| false).is_empty());
        assert_eq!(set.with("a", &"x".repeat(SET_MAX)), Err(SetTooLong));
    }

    #[test]
    fn sets_are_ordered_as_prometheus_orders_them() {
        let sets = [
            &[][..],
            &[("a", "1")],
            &[("a", "1"), ("b", "1")],
            &[("a", "1"), ("c", "0")],
            &[("a", "2")],
            &[("b", "0")],
        ];
        let sets: Vec<LabelSet> = sets.into_iter().map(LabelSet::new).collect();
        assert!(sets.is_sorted_by(|one, next| one < next));
    }

    #[test]
    fn a_kept_set_is_read() {
        let labels = Labels::new([("a", &b"x\"y"[..]), ("__name__", b"up")]).unwrap();
        let set = LabelSet::of(&labels);
        assert_eq!(set, LabelSet::new(&[("a", "x\"y"), ("__name__", "up")]));
    }
}
