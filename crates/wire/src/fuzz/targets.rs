//! Files of targets: writing a target and reading it again must give the same target.

use crate::targets::{DescribedTarget, TargetsHead};

/// Reads any bytes as a file of targets.
pub fn fuzz_targets(input: &[u8]) {
    for line in input.split(|&byte| byte == b'\n') {
        let _ = TargetsHead::parse(line);
        if let Ok(target) = DescribedTarget::parse(line) {
            let again = target.line();
            let again = DescribedTarget::parse(again.trim_end_matches('\n').as_bytes());
            let again = again.unwrap_or_else(|why| panic!("a target cannot be read again: {why}"));
            assert_eq!((again.name, again.page_top), (target.name, target.page_top));
        }
    }
}
