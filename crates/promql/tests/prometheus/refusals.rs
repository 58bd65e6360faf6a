//! Parts of PromQL that kymo refuses by name.

/// Parts of messages about features that Prometheus keeps behind a flag.
const EXPERIMENTAL: [&str; 2] = [
    "is not enabled: it is experimental",
    "binop fill modifiers are experimental",
];
/// Parts of messages about features that Prometheus has.
const NATIVE: [&str; 3] = [
    "native histograms, which are not kept here",
    "trim native histograms",
    "is not UTF-8",
];

/// True for a message that refuses something by its name.
pub(crate) fn is_refusal(message: &str) -> bool {
    is_native_refusal(message) || EXPERIMENTAL.iter().any(|part| message.contains(part))
}

/// True for one of something that Prometheus has without a flag.
pub(crate) fn is_native_refusal(message: &str) -> bool {
    NATIVE.iter().any(|part| message.contains(part))
}
