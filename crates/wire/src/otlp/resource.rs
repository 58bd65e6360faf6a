//! The resource that values are of: which program, and what else is known of it.

use super::attribute;
use super::labels::LabelBuffer;
use super::limits::OtlpLimits;
use super::refusal::{BadDataPoint, Unread};
use crate::protobuf::{MessageFields, Wire};

const NAME: &str = "service.name";
const NAMESPACE: &str = "service.namespace";
const INSTANCE: &str = "service.instance.id";

/// Attributes that become `job` and `instance`.
const IDENTIFYING: &[&str] = &[NAME, NAMESPACE, INSTANCE];

/// A program by its labels.
#[derive(Clone, Debug, Default)]
pub(super) struct Resource {
    /// `NAMESPACE/NAME`, or the name alone; empty: no name.
    pub(super) job: String,
    /// Empty: not known.
    pub(super) instance: String,
    /// Why its labels cannot be used, and so none of its points can.
    pub(super) bad: Option<BadDataPoint>,
}

impl Resource {
    /// The resource in a message of resource metrics, wherever in it the resource stands.
    pub(super) fn of(resource_metrics: &[u8], limits: &OtlpLimits) -> Result<Resource, Unread> {
        let (mut name, mut namespace) = (None, None);
        let mut resource = Resource::default();
        for message in attributes(resource_metrics) {
            let (key, value) = attribute::read(message?)?;
            let mut text = String::new();
            if !IDENTIFYING.contains(&key) {
                continue;
            }
            attribute::put_value(&mut text, value)?;
            if text.len() > limits.attribute_bytes {
                return Err(BadDataPoint::AttributeBytes.into());
            }
            match key {
                NAME => name = Some(text),
                NAMESPACE => namespace = Some(text),
                _ => resource.instance = text,
            }
        }
        resource.job = match (namespace, name) {
            (Some(namespace), Some(name)) => format!("{namespace}/{name}"),
            (None, Some(name)) => name,
            (_, None) => String::new(),
        };
        Ok(resource)
    }

    /// Labels that each of its series has.
    pub(super) fn labels(&self) -> [(&'static str, &str); 2] {
        [("job", &self.job), ("instance", &self.instance)]
    }

    /// True if series can be said to be of it.
    pub(super) fn is_known(&self) -> bool {
        !self.job.is_empty() || !self.instance.is_empty()
    }

    /// Makes labels of the attributes that do not identify it; `false`: there are none.
    pub(super) fn describe(
        &self,
        resource_metrics: &[u8],
        labels: &mut LabelBuffer,
        limits: &OtlpLimits,
    ) -> Result<bool, Unread> {
        labels.clear();
        for message in attributes(resource_metrics) {
            labels.push_attribute(message?, IDENTIFYING, limits)?;
        }
        let is_described = !labels.is_empty();
        labels.finish(&self.labels())?;
        Ok(is_described)
    }
}

/// Attributes of the resource, which is field 1 of its metrics.
fn attributes(resource_metrics: &[u8]) -> impl Iterator<Item = Result<&[u8], Unread>> {
    messages(resource_metrics, 1).flat_map(|resource| {
        let (resource, bad) = match resource {
            Ok(resource) => (resource, None),
            Err(bad) => (&b""[..], Some(Err(bad))),
        };
        messages(resource, 1).chain(bad)
    })
}

/// Messages that are a field of that number.
pub(super) fn messages(message: &[u8], number: u64) -> impl Iterator<Item = Result<&[u8], Unread>> {
    MessageFields::of(message).filter_map(move |field| match field {
        Ok((found, Wire::Bytes(inner))) if found == number => Some(Ok(inner)),
        Ok(_) => None,
        Err(bad) => Some(Err(bad.into())),
    })
}
