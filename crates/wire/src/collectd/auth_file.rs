//! collectd's AuthFile: lines of `user: password`.

use super::bad_line::{BadLine, is_space, numbered_lines};
use super::users::Users;

/// Longest line, in bytes.
const LINE_MAX: usize = 4095;

/// Reads a file's bytes: the users, and the lines that name none. As in collectd, blanks before the name and before the
/// password are skipped, blanks behind the password belong to it, and only a leading `#` begins a comment.
pub fn read_auth_file(text: &[u8]) -> (Users, Vec<BadLine>) {
    let (mut users, mut bad) = (Users::default(), Vec::new());
    for (line, text) in numbered_lines(text) {
        if let Err(why) = read_line(text, &mut users) {
            bad.push(BadLine { line, why });
        }
    }
    (users, bad)
}

fn read_line(line: &[u8], users: &mut Users) -> Result<(), &'static str> {
    let line = without_blanks(line);
    if line.is_empty() || line[0] == b'#' {
        return Ok(());
    }
    if line.len() > LINE_MAX {
        return Err("more than 4095 bytes");
    }
    if line.contains(&0) {
        return Err("a NUL");
    }
    let colon = line.iter().position(|&byte| byte == b':');
    let (name, password) = line.split_at(colon.ok_or("no colon between user and password")?);
    let password = without_blanks(&password[1..]);
    if password.is_empty() {
        return Err("no password");
    }
    users.add(name, password)
}

fn without_blanks(text: &[u8]) -> &[u8] {
    let blanks = text.iter().take_while(|&&byte| is_space(byte)).count();
    &text[blanks..]
}

#[cfg(test)]
mod tests {
    use super::super::users::Keys;
    use super::*;

    fn has(users: &Users, name: &str, password: &str) -> bool {
        let mac = Keys::new(password.as_bytes()).sign(b"m");
        let keys = users.keys(name.as_bytes());
        keys.is_some_and(|keys| keys.verify(b"m", &mac))
    }

    #[test]
    fn lines_are_read_as_collectd_does() {
        let table = [
            ("user0: foo", Some(("user0", "foo"))),
            ("user0:foo", Some(("user0", "foo"))),
            ("  \t user0:\t foo\r", Some(("user0", "foo"))),
            ("user0: foo ", Some(("user0", "foo "))),
            ("user0 : foo", Some(("user0 ", "foo"))),
            ("user0: f:o o #x", Some(("user0", "f:o o #x"))),
            ("#user0: foo", None),
            ("  # user0: foo", None),
            ("", None),
            (" \t", None),
        ];
        for (line, expected) in table {
            let (users, bad) = read_auth_file(line.as_bytes());
            assert!(bad.is_empty(), "{line:?}: {bad:?}");
            assert_eq!(users.len(), usize::from(expected.is_some()), "{line:?}");
            if let Some((name, password)) = expected {
                assert!(has(&users, name, password), "{line:?}");
            }
        }
    }

    #[test]
    fn a_bad_line_costs_itself_only() {
        let text = format!(
            "a: 1\nb\nb:\nb: \t\n: x\na: 2\n{}: y\nb: {}\nb\0: z\nc: 3",
            "u".repeat(65),
            "p".repeat(4093)
        );
        let (users, bad) = read_auth_file(text.as_bytes());
        let lines: Vec<usize> = bad.iter().map(|bad| bad.line).collect();
        assert_eq!(lines, [2, 3, 4, 5, 6, 7, 8, 9]);
        assert!(has(&users, "a", "1") && has(&users, "c", "3") && users.len() == 2);
        assert_eq!(
            bad[0].to_string(),
            "line 2: no colon between user and password"
        );
    }
}
