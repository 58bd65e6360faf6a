//! Fuzzes the texts and paths that runtimes and users write.

use super::group_path::GroupPath;
use super::{cri, docker, podman};

/// Reads `input` as each kind of file and as a path. A text of an identity has no control characters but the ends of lines.
pub fn group_identities(input: &[u8]) {
    for identity in [docker::parse(input), cri::parse(input)]
        .into_iter()
        .flatten()
    {
        let mut text = Vec::new();
        identity.put_text(&mut text);
        let text = String::from_utf8(text).unwrap_or_else(|_| unreachable!("BUG: a text is UTF-8"));
        let is_clean = |letter: char| letter == '\n' || letter == '\t' || !letter.is_control();
        assert!(text.chars().all(is_clean), "{text:?}");
        assert!(text.lines().count() <= 5, "{text:?}");
    }
    podman::count(input);
    let _ = (GroupPath::of_group(input), GroupPath::around(input));
}
