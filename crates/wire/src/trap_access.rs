//! The file of those who may send traps: a line `community SECRET` for each community of SNMPv1 and v2c, a line `user OPTIONS` for
//! each user of SNMPv3, whose options are those of MRTG's `SnmpOptions`. Empty lines and those after `#` do not count.

use std::sync::Arc;

use crate::mrtg_cfg::{Secret, User};

/// Most lines of a file that count.
const LINES_MAX: usize = 4096;

/// Communities and users that may send.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrapAccess {
    communities: Vec<Secret>,
    users: Vec<Arc<User>>,
}

/// A line that cannot be used. The reason has nothing of its text, which may be secret.
#[derive(Debug, PartialEq, Eq)]
pub struct BadAccess {
    /// Number of the line, from 1 on.
    pub line: usize,
    /// Why it cannot be used.
    pub why: String,
}

impl TrapAccess {
    /// Reads a file, and says which of its lines cannot be used.
    pub fn read(text: &[u8]) -> (TrapAccess, Vec<BadAccess>) {
        let (mut access, mut bad) = (TrapAccess::default(), Vec::new());
        for (at, line) in text.split(|&byte| byte == b'\n').enumerate() {
            let line = line.trim_ascii();
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            let done = match at < LINES_MAX {
                true => access.add(line),
                false => Err(format!("it is behind line {LINES_MAX}")),
            };
            if let Err(why) = done {
                let line = at + 1;
                bad.push(BadAccess { line, why });
                if at >= LINES_MAX {
                    break;
                }
            }
        }
        (access, bad)
    }

    fn add(&mut self, line: &[u8]) -> Result<(), String> {
        let end = line.iter().position(u8::is_ascii_whitespace);
        let (word, rest) = line.split_at(end.unwrap_or(line.len()));
        let rest = rest.trim_ascii();
        match word {
            b"community" if !rest.is_empty() => self.communities.push(Secret::new(rest)),
            b"user" => {
                let user = User::of_options(rest)?;
                if self.user(&user.name).is_some() {
                    return Err("the user has a line already".into());
                }
                self.users.push(Arc::new(user));
            }
            _ => return Err("it is neither `community SECRET` nor `user OPTIONS`".into()),
        }
        Ok(())
    }

    /// True if messages with this community may come.
    pub fn allows(&self, community: &[u8]) -> bool {
        let mut known = self.communities.iter();
        known.any(|known| known.reveal() == community)
    }

    /// The user of this name.
    pub fn user(&self, name: &[u8]) -> Option<&Arc<User>> {
        self.users.iter().find(|user| *user.name == *name)
    }

    /// Number of communities and of users.
    pub fn counts(&self) -> (usize, usize) {
        (self.communities.len(), self.users.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_communities_and_users() {
        let text = b"# who may send\n\ncommunity s3cr3t\n community  with blanks \r\n\
            user username => 'ada', authprotocol => 'sha256', authpassword => 's3cr3t-1'\n";
        let (access, bad) = TrapAccess::read(text);
        assert_eq!(bad, []);
        assert_eq!(access.counts(), (2, 1));
        assert!(access.allows(b"s3cr3t") && access.allows(b"with blanks"));
        assert!(!access.allows(b"s3cr3") && !access.allows(b""));
        assert!(access.user(b"ada").is_some_and(|user| user.auth.is_some()));
        assert!(access.user(b"eve").is_none());
        assert!(!format!("{access:?}").contains("s3cr3t"));
    }

    #[test]
    fn a_bad_line_is_named_without_its_text() {
        for (line, why) in [
            ("s3cr3t", "neither"),
            ("community", "neither"),
            ("users3cr3t", "neither"),
            ("user", "a username"),
            ("user username => s3cr3t => 's3cr3t'", "format"),
            ("user username => 'ada', s3cr3t => 's3cr3t'", "another key"),
            (
                "user username => 'ada', authprotocol => 's3cr3t'",
                "must be one of",
            ),
            ("user username => 'twice'", "already"),
        ] {
            let text = format!("user username => 'twice'\n{line}\n");
            let (access, bad) = TrapAccess::read(text.as_bytes());
            assert_eq!(access.counts(), (0, 1), "{line}");
            assert!(
                bad[0].line == 2 && bad[0].why.contains(why),
                "{line}: {bad:?}"
            );
            assert!(!bad[0].why.contains("s3cr3t"), "{bad:?}");
        }
        let long = "community x\n".repeat(5000);
        let (access, bad) = TrapAccess::read(long.as_bytes());
        assert_eq!((access.counts(), bad.len()), ((4096, 0), 1));
    }
}
