//! Hosts among the words of a command line: `HOST:` and `USER@HOST:`. All else is a path.

use anyhow::{Result, bail};

/// Most bytes of a host's name with a user's.
const NAME_MAX: usize = 320;

/// The host that a word names; `None`: it is a path. A name that ssh could take for a switch, and bytes that a terminal could take for
/// commands, are refused.
pub(super) fn host(word: &str) -> Result<Option<&str>> {
    let Some(name) = word.strip_suffix(':').filter(|name| !name.contains('/')) else {
        return Ok(None);
    };
    let host = name.rsplit_once('@').map_or(name, |(_, host)| host);
    let is_bad = |c: char| c.is_control() || c.is_whitespace();
    let why = match name {
        _ if name.len() > NAME_MAX => "it is too long",
        _ if host.is_empty() => "it has no name",
        _ if name.starts_with('-') || host.starts_with('-') => "it begins with a -",
        _ if name.chars().any(is_bad) => "it has blanks or control characters",
        _ => return Ok(Some(name)),
    };
    bail!("cannot use host {word:?}: {why}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_colon_makes_a_host() {
        for (word, expect) in [
            ("web1:", Ok(Some("web1"))),
            ("me@web1:", Ok(Some("me@web1"))),
            ("a@b@web1:", Ok(Some("a@b@web1"))),
            ("2001:db8::1:", Ok(Some("2001:db8::1"))),
            ("web1", Ok(None)),
            ("./web1:", Ok(None)),
            ("dir/web1:", Ok(None)),
            ("-", Ok(None)),
            (":", Err(())),
            ("me@:", Err(())),
            ("-oProxyCommand=x:", Err(())),
            ("me@-x:", Err(())),
            ("web\u{1b}1:", Err(())),
            ("web 1:", Err(())),
            ("web\n:", Err(())),
            (&format!("{}:", "a".repeat(1000)), Err(())),
        ] {
            assert_eq!(host(word).map_err(|_| ()), expect, "{word:?}");
        }
    }
}
