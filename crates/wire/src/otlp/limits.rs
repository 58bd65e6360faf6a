//! Limits of points.

/// Most that one point may have. Each bounds the memory that a reader holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtlpLimits {
    /// Attributes of a point, or of a resource.
    pub attributes: usize,
    /// Bytes of their keys and values.
    pub attribute_bytes: usize,
    /// Buckets of a histogram, quantiles of a summary; each is a sample.
    pub buckets: usize,
}

impl Default for OtlpLimits {
    /// OpenTelemetry's own default is 128 attributes.
    fn default() -> OtlpLimits {
        OtlpLimits {
            attributes: 128,
            attribute_bytes: 16_384,
            buckets: 1024,
        }
    }
}
