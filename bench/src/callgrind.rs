//! Instructions of a program, by callgrind: stable where times are not.

use crate::fault::{Fault, Result};
use std::process::Output;

/// Words before a program's command line.
pub(crate) const COMMAND: [&str; 3] = [
    "valgrind",
    "--tool=callgrind",
    "--callgrind-out-file=/dev/null",
];

/// All instructions of a program that ran under [`COMMAND`].
pub(crate) fn collected(output: &Output) -> Result<f64> {
    let text = String::from_utf8_lossy(&output.stderr);
    let found = text.lines().find_map(|line| line.split_once("Collected :"));
    let number = found.and_then(|(_, number)| number.trim().parse().ok());
    number.ok_or_else(|| Fault::new("callgrind says nothing of what it collected"))
}
