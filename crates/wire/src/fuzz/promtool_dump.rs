//! Lines of `promtool tsdb dump`: any bytes as lines; labels that were read are those of a line that Go would write.

use crate::promtool_dump::{dumped_labels, dumped_sample};

/// Any bytes as such a text.
pub fn fuzz_promtool_dump(input: &[u8]) {
    for line in input.split(|&byte| byte == b'\n') {
        let Ok(sample) = dumped_sample(line) else {
            continue;
        };
        assert!(sample.labels.len() < line.len(), "a line without a value");
        let Ok(labels) = dumped_labels(sample.labels) else {
            continue;
        };
        let mut again = b"{".to_vec();
        for (at, (name, value)) in labels.iter().enumerate() {
            if at > 0 {
                again.extend_from_slice(b", ");
            }
            quote(name, &mut again);
            again.push(b'=');
            quote(value, &mut again);
        }
        again.extend_from_slice(b"} 1 2");
        let sample = dumped_sample(&again).unwrap_or_else(|bad| unreachable!("BUG: {bad}"));
        assert_eq!(dumped_labels(sample.labels), Ok(labels), "labels changed");
    }
}

fn quote(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for byte in text {
        out.extend_from_slice(format!("\\x{byte:02x}").as_bytes());
    }
    out.push(b'"');
}
