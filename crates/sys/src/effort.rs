//! How much the tests that work by chance do: `make test` is quick, `make soak` sets `KYMO_EFFORT`. The program itself
//! never asks.

/// Number of cases, rounds or seeds: `quick`, times `KYMO_EFFORT` where that is set.
pub fn effort(quick: u64) -> u64 {
    quick.saturating_mul(number("KYMO_EFFORT").unwrap_or(1).max(1))
}

/// The first seed: `SEED`, or else `otherwise`.
pub fn first_seed(otherwise: u64) -> u64 {
    number("SEED").unwrap_or(otherwise)
}

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    let number = text.parse().ok();
    Some(number.unwrap_or_else(|| panic!("{name} is no number: {text}")))
}
