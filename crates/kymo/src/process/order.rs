//! Orders that the guardian gives to the processes that it starts, on their standard input.

use std::io::Read as _;

use anyhow::{Context as _, Result};
use serde::de::DeserializeOwned;

/// Reads the order of this process.
pub(crate) fn read<Order: DeserializeOwned>(process: &str) -> Result<Order> {
    let mut text = Vec::new();
    std::io::stdin()
        .read_to_end(&mut text)
        .with_context(|| format!("cannot read the order of {process}"))?;
    serde_json::from_slice(&text)
        .with_context(|| format!("cannot run {process}: it is started by kymo serve"))
}
