//! Units of systemd: the name of the unit without its escapes, with the name of the user in the place of a uid, and the user
//! of a session.

use kymo_sys::kernel_file::Root;

use super::files::Users;
use super::identity::GroupIdentity;

/// Longest file of a session.
const SESSION_FILE_MAX: usize = 64 << 10;

/// The identity of a unit.
pub(super) fn identity(root: &Root, users: &mut Users, unit: &str) -> Option<GroupIdentity> {
    let name = user_unit(root, users, unit)
        .or_else(|| session(root, unit))
        .unwrap_or_else(|| unescaped(unit));
    Some(GroupIdentity {
        runtime: "systemd",
        name,
        ..GroupIdentity::default()
    })
}

/// `user-alice.slice` for `user-1000.slice`, and `user@alice.service` for `user@1000.service`.
fn user_unit(root: &Root, users: &mut Users, unit: &str) -> Option<String> {
    let (head, rest) = unit
        .strip_prefix("user-")
        .map(|rest| ("user-", rest))
        .or_else(|| Some(("user@", unit.strip_prefix("user@")?)))?;
    let (uid, kind) = rest.split_once('.')?;
    let name = users.name(root, uid.parse().ok()?)?;
    Some(format!("{head}{name}.{kind}"))
}

/// `session-3.scope (alice)`, by the file of logind.
fn session(root: &Root, unit: &str) -> Option<String> {
    let number = unit.strip_prefix("session-")?.strip_suffix(".scope")?;
    if !number.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return None;
    }
    let mut text = Vec::new();
    let file = root
        .folder("run/systemd/sessions")
        .ok()?
        .file(number)
        .ok()?;
    file.read_on(&mut text, SESSION_FILE_MAX).ok()?;
    let text = String::from_utf8(text).ok()?;
    let user = text.lines().find_map(|line| line.strip_prefix("USER="))?;
    Some(format!("{unit} ({user})"))
}

/// Decodes the escapes of systemd, such as `\x2d` for a hyphen.
fn unescaped(unit: &str) -> String {
    let mut out = Vec::new();
    let mut rest = unit.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let digits = tail.strip_prefix(b"x").and_then(|digits| digits.get(..2));
        let code = digits.filter(|_| first == b'\\').and_then(|digits| {
            let digits = std::str::from_utf8(digits).ok()?;
            u8::from_str_radix(digits, 16).ok()
        });
        match code {
            Some(byte) => {
                out.push(byte);
                rest = tail.get(3..).unwrap_or_default();
            }
            None => {
                out.push(first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::MadeRoot;

    #[test]
    fn units_are_named_for_people() {
        let made = MadeRoot::new();
        made.write("etc/passwd", "alice:x:1000:7::/home/alice:/bin/sh\n");
        made.write("run/systemd/sessions/3", "UID=1000\nUSER=alice\nACTIVE=1\n");
        let mut users = Users::default();
        for (unit, expect) in [
            ("nginx.service", "nginx.service"),
            ("user-1000.slice", "user-alice.slice"),
            ("user@1000.service", "user@alice.service"),
            ("user@77.service", "user@77.service"),
            ("session-3.scope", "session-3.scope (alice)"),
            ("session-4.scope", "session-4.scope"),
            ("session-..scope", "session-..scope"),
            (r"machine-qemu\x2d1\x2dvm.scope", "machine-qemu-1-vm.scope"),
            (r"odd\x2.service\", r"odd\x2.service\"),
        ] {
            let found = identity(&made.root, &mut users, unit).map(|found| found.name);
            assert_eq!(found.as_deref(), Some(expect), "{unit}");
        }
    }
}
