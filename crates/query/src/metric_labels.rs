//! Labels of this machine's metrics.

use kymo_kernel::exposition::{ExposedInstance, MetricGroup, SamplePart};
use kymo_kernel::subsystem::exposed::Family;
use kymo_series::{Labels, names};

/// The labels of a sample of an instance. `None`: they are more, or longer, than a set may have.
pub(crate) fn labels_of(
    host: &[u8],
    group: &MetricGroup,
    instance: &ExposedInstance,
    family: &Family,
    part: SamplePart,
) -> Option<Labels> {
    let values = group.labels.iter().map(|label| {
        let mut value = Vec::new();
        (label.put)(&instance.row, &mut value);
        value
    });
    let values: Vec<Vec<u8>> = values.collect();
    let part = part.text();
    let own = group.labels.iter().map(|label| label.name);
    let own = own.zip(values.iter().map(Vec::as_slice));
    let labels = own.chain([(family.parts.label(), part.as_bytes())]);
    let labels = labels.filter(|(name, _)| !name.is_empty());
    names::machine(host, family.name, labels).ok()
}
