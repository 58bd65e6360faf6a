//! Size of an answer about programs before it is made. Users share the answer's room by their
//! sizes.

use std::collections::BTreeMap;

use kymo_shm::{Activity, Description};
use kymo_wire::keeper::{self, ActiveSlot};

use super::retired::Retired;

/// Bytes of a publisher without metrics and slots, and of a slot and a metric without their texts.
pub(super) const PUBLISHER_BYTES: usize = 200;
const SLOT_BYTES: usize = 64;
const METRIC_BYTES: usize = 100;
/// Most slots of a publisher in an answer.
pub(super) const SLOTS_MAX: usize = 1024;
/// Most bytes of a text in an answer.
pub(super) const TEXT_MAX: usize = 4096;

/// Most bytes of slots in an answer.
pub(super) fn slots_bytes<'a>(
    texts: bool,
    slots: impl Iterator<Item = (usize, &'a Activity, u64)>,
) -> usize {
    let text = |activity: &Activity| {
        let command = activity.command.as_ref().map(|command| &command.text);
        let labels = activity
            .identity
            .iter()
            .flat_map(|identity| &identity.labels);
        // Names of labels have 31 bytes at most.
        let labels: usize = labels.map(|label| label.text.len() + 36).sum();
        labels + command.map_or(0, |text| text.len().min(TEXT_MAX))
    };
    let bytes = slots.take(SLOTS_MAX).map(|(_, activity, _)| match texts {
        true => SLOT_BYTES + text(activity),
        false => SLOT_BYTES,
    });
    PUBLISHER_BYTES + bytes.sum::<usize>()
}

/// Most bytes of a metric in an answer.
pub(super) fn description_bytes(description: &Description) -> usize {
    let Description {
        name, unit, help, ..
    } = description;
    METRIC_BYTES + name.len() + unit.len() + help.len() + labels_bytes(&description.labels)
}

/// Adds the most bytes of the totals of ended programs.
pub(super) fn add_retired_bytes(wanted: &mut BTreeMap<u32, usize>, retired: &Retired) {
    for (labels, total) in retired.totals() {
        // Each metric may be the first of its publisher.
        let bytes = PUBLISHER_BYTES + METRIC_BYTES + 2 * labels.text().len();
        *wanted.entry(total.uid).or_default() += bytes;
    }
}

pub(super) fn slot_bytes(slot: &ActiveSlot) -> usize {
    let waits = slot.wait.len() + 4 * slot.blocked_by.len();
    SLOT_BYTES + slot.text.len() + waits + labels_bytes(&slot.labels)
}

pub(super) fn metric_bytes(metric: &keeper::Metric) -> usize {
    let texts = metric.name.len() + metric.unit.len() + metric.help.len();
    METRIC_BYTES + texts + labels_bytes(&metric.labels)
}

pub(super) fn labels_bytes(labels: &[(Vec<u8>, Vec<u8>)]) -> usize {
    let bytes = labels
        .iter()
        .map(|(name, value)| name.len() + value.len() + 4);
    bytes.sum()
}
