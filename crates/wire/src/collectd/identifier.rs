//! Names of series: `host/plugin[-plugin_instance]/type[-type_instance]`. A packet spells a name as five texts, a folder as
//! the path of the .rrd file that collectd would write.

use std::borrow::Cow;

use memchr::{memchr, memrchr};

/// The five texts of a name, as bytes: a sender's texts need not be UTF-8, nor are they safe to show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Identifier<'a> {
    /// Host that the values describe; another host may have sent them.
    pub host: &'a [u8],
    /// Plugin that read the values.
    pub plugin: &'a [u8],
    /// Instance of the plugin, such as a device; may be empty.
    pub plugin_instance: &'a [u8],
    /// Type, a name in types.db.
    pub type_name: &'a [u8],
    /// Instance of the type; may be empty.
    pub type_instance: &'a [u8],
}

/// Why a name has no path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathRefusal {
    /// Host, plugin or type is empty.
    Nameless,
    /// A component is `.` or `..`.
    Dots,
    /// A component has a NUL, a line feed or another control character.
    Control,
    /// A component exceeds the 255 bytes of a file's name.
    TooLong,
}

impl PathRefusal {
    /// The reason as text for a message.
    pub fn why(self) -> &'static str {
        match self {
            PathRefusal::Nameless => "host, plugin or type is empty",
            PathRefusal::Dots => "a component is . or ..",
            PathRefusal::Control => "a control character",
            PathRefusal::TooLong => "a component has more than 255 bytes",
        }
    }
}

/// Longest component of a path on Linux, in bytes.
const COMPONENT_MAX: usize = 255;
const SUFFIX: &[u8] = b".rrd";

/// A field without slashes, as collectd makes it before it looks up the series: a lone slash becomes `root`, a slash at the
/// beginning is removed, other slashes become underlines.
pub fn escape(field: &[u8]) -> Cow<'_, [u8]> {
    if memchr(b'/', field).is_none() {
        return Cow::Borrowed(field);
    }
    if field == b"/" {
        return Cow::Borrowed(b"root");
    }
    let rest = field.strip_prefix(b"/").unwrap_or(field);
    Cow::Owned(
        rest.iter()
            .map(|&byte| if byte == b'/' { b'_' } else { byte })
            .collect(),
    )
}

impl<'a> Identifier<'a> {
    /// Parses `host/plugin[-plugin_instance]/type[-type_instance]`; an instance begins behind the first `-`. A type instance
    /// may contain slashes. `None`: the text has fewer than two slashes, or host, plugin or type is empty.
    pub fn parse(text: &'a [u8]) -> Option<Identifier<'a>> {
        let (host, rest) = cut(text, b'/')?;
        let (plugin, type_name) = cut(rest, b'/')?;
        let (plugin, plugin_instance) = cut(plugin, b'-').unwrap_or((plugin, b""));
        let (type_name, type_instance) = cut(type_name, b'-').unwrap_or((type_name, b""));
        let whole = !(host.is_empty() || plugin.is_empty() || type_name.is_empty());
        whole.then_some(Identifier {
            host,
            plugin,
            plugin_instance,
            type_name,
            type_instance,
        })
    }

    /// Parses a path that [`Identifier::put_rrd_path`] could have made. `None` for any other path.
    pub fn of_rrd_path(path: &'a [u8]) -> Option<Identifier<'a>> {
        let identifier = Identifier::parse(path.strip_suffix(SUFFIX)?)?;
        let mut again = Vec::with_capacity(path.len());
        let same = identifier.put_rrd_path(&mut again).is_ok() && again == path;
        same.then_some(identifier)
    }

    /// Appends collectd's name of the series, or nothing if the name is refused. Identifiers that differ only in slashes, or
    /// in the dash before an instance, can have the same name, and are then one series.
    pub fn put_name(&self, out: &mut Vec<u8>) -> Result<(), PathRefusal> {
        self.put(out, b"")
    }

    /// Appends the path of the series' .rrd file below the base folder, or nothing if the name is refused. `.` and `..` are
    /// refused, so that the path stays below the base folder.
    pub fn put_rrd_path(&self, out: &mut Vec<u8>) -> Result<(), PathRefusal> {
        self.put(out, SUFFIX)
    }

    fn put(&self, out: &mut Vec<u8>, suffix: &[u8]) -> Result<(), PathRefusal> {
        if self.host.is_empty() || self.plugin.is_empty() || self.type_name.is_empty() {
            return Err(PathRefusal::Nameless);
        }
        let from = out.len();
        out.extend_from_slice(&escape(self.host));
        out.push(b'/');
        put_with_instance(out, self.plugin, self.plugin_instance);
        out.push(b'/');
        put_with_instance(out, self.type_name, self.type_instance);
        out.extend_from_slice(suffix);
        let checked = check(&out[from..]);
        if checked.is_err() {
            out.truncate(from);
        }
        checked
    }
}

/// The bytes before and behind the first `byte`; `None` if there is none.
fn cut(text: &[u8], byte: u8) -> Option<(&[u8], &[u8])> {
    let at = memchr(byte, text)?;
    Some((&text[..at], &text[at + 1..]))
}

fn put_with_instance(out: &mut Vec<u8>, name: &[u8], instance: &[u8]) {
    out.extend_from_slice(&escape(name));
    if !instance.is_empty() {
        out.push(b'-');
        out.extend_from_slice(&escape(instance));
    }
}

/// Checks a path of three components; its fields have no slashes left.
fn check(path: &[u8]) -> Result<(), PathRefusal> {
    if path.iter().any(u8::is_ascii_control) {
        return Err(PathRefusal::Control);
    }
    for component in path.split(|&byte| byte == b'/') {
        match component {
            b"" => return Err(PathRefusal::Nameless),
            b"." | b".." => return Err(PathRefusal::Dots),
            long if long.len() > COMPONENT_MAX => return Err(PathRefusal::TooLong),
            _ => {}
        }
    }
    // The type itself may not be `.` or `..` either; in a path the suffix hides that.
    let last = memrchr(b'/', path).map_or(path, |at| &path[at + 1..]);
    match last.strip_suffix(SUFFIX) {
        Some(b"." | b"..") => Err(PathRefusal::Dots),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn identifier(fields: [&str; 5]) -> Identifier<'_> {
        let [host, plugin, plugin_instance, type_name, type_instance] = fields.map(str::as_bytes);
        Identifier {
            host,
            plugin,
            plugin_instance,
            type_name,
            type_instance,
        }
    }

    #[test]
    fn slashes_go_as_in_collectd() {
        for (field, expected) in [
            ("", ""),
            ("a", "a"),
            ("/", "root"),
            ("//", "_"),
            ("/var", "var"),
            ("/var/log", "var_log"),
            ("a/b/", "a_b_"),
            ("a-b", "a-b"),
        ] {
            assert_eq!(*escape(field.as_bytes()), *expected.as_bytes(), "{field}");
        }
    }

    #[test]
    fn paths_are_collectds() {
        use PathRefusal::*;
        let long = "x".repeat(127);
        let table: &[([&str; 5], Result<&str, PathRefusal>)] = &[
            (["h1", "load", "", "load", ""], Ok("h1/load/load.rrd")),
            (
                ["h1", "cpu", "0", "cpu", "user"],
                Ok("h1/cpu-0/cpu-user.rrd"),
            ),
            (
                ["h/1", "df", "/", "df_complex", "/var/free"],
                Ok("h_1/df-root/df_complex-var_free.rrd"),
            ),
            (["h", "p", "-", "t", "--"], Ok("h/p--/t---.rrd")),
            (["h", "p", ".", "t", ".."], Ok("h/p-./t-...rrd")),
            (["...", "p", "", "t", ""], Ok(".../p/t.rrd")),
            (["h b", "p,\u{e4}", "", "t", ""], Ok("h b/p,\u{e4}/t.rrd")),
            (["", "p", "", "t", ""], Err(Nameless)),
            (["h", "", "i", "t", ""], Err(Nameless)),
            (["h", "p", "", "", "i"], Err(Nameless)),
            (["..", "p", "", "t", ""], Err(Dots)),
            (["/..", "p", "", "t", ""], Err(Dots)),
            ([".", "p", "", "t", ""], Err(Dots)),
            (["h", "..", "", "t", ""], Err(Dots)),
            (["h", "/.", "", "t", ""], Err(Dots)),
            (["h", "p", "", "..", ""], Err(Dots)),
            (["h", "p", "", ".", ""], Err(Dots)),
            (["h\n", "p", "", "t", ""], Err(Control)),
            (["h", "p\0", "", "t", ""], Err(Control)),
            (["h", "p", "\x1b[0m", "t", ""], Err(Control)),
            (["h", "p", "", "t", "\x7f"], Err(Control)),
            (["h", "p", "", &long, &long], Err(TooLong)),
        ];
        for (fields, expected) in table {
            let mut out = b"base/".to_vec();
            let made = identifier(*fields).put_rrd_path(&mut out);
            assert_eq!(made, expected.map(|_| ()), "{fields:?}");
            let path = expected.unwrap_or_default();
            assert_eq!(String::from_utf8_lossy(&out), format!("base/{path}"));
        }
        // A component of 255 bytes, and one of 256.
        for (size, expected) in [(123, Ok(())), (124, Err(TooLong))] {
            let longest = identifier(["h", "p", "", &long, &long[..size]]);
            assert_eq!(longest.put_rrd_path(&mut Vec::new()), expected, "{size}");
        }
    }

    #[test]
    fn texts_are_cut_at_the_first_dash() {
        let table: &[(&str, Option<[&str; 5]>)] = &[
            ("h/load/load", Some(["h", "load", "", "load", ""])),
            (
                "h/cpu-0-1/cpu-user-x",
                Some(["h", "cpu", "0-1", "cpu", "user-x"]),
            ),
            ("a-b/c-/d-", Some(["a-b", "c", "", "d", ""])),
            ("h/p/t-a/b", Some(["h", "p", "", "t", "a/b"])),
            ("h/p", None),
            ("load", None),
            ("", None),
            ("//", None),
            ("h//t", None),
            ("h/-p/t", None),
            ("h/p/-t", None),
            ("/p/t", None),
        ];
        for (text, expected) in table {
            assert_eq!(
                Identifier::parse(text.as_bytes()),
                expected.map(identifier),
                "{text}"
            );
        }
    }

    #[test]
    fn only_paths_that_we_make_are_names() {
        let table: &[(&str, Option<[&str; 5]>)] = &[
            ("h/load/load.rrd", Some(["h", "load", "", "load", ""])),
            (
                "h/cpu-0/cpu-user.rrd",
                Some(["h", "cpu", "0", "cpu", "user"]),
            ),
            ("h/p-a-b/t.rrd", Some(["h", "p", "a-b", "t", ""])),
            ("h/load/load", None),
            ("h/p-/t.rrd", None),
            ("h/p/t-.rrd", None),
            ("h/p/t/x.rrd", None),
            ("h/p/t-a/x.rrd", None),
            ("../p/t.rrd", None),
            ("/p/t.rrd", None),
            ("h/p/.rrd", None),
            ("h/p/..rrd", None),
        ];
        for (path, expected) in table {
            assert_eq!(
                Identifier::of_rrd_path(path.as_bytes()),
                expected.map(identifier),
                "{path}"
            );
        }
    }

    proptest! {
        #[test]
        fn no_name_leaves_the_base(
            fields in prop::array::uniform5(prop::collection::vec(prop::sample::select(b"./-a\0\n".to_vec()), 0..5)),
        ) {
            let identifier = Identifier {
                host: &fields[0],
                plugin: &fields[1],
                plugin_instance: &fields[2],
                type_name: &fields[3],
                type_instance: &fields[4],
            };
            let mut path = Vec::new();
            if identifier.put_rrd_path(&mut path).is_ok() {
                let components: Vec<&[u8]> = path.split(|&byte| byte == b'/').collect();
                prop_assert_eq!(components.len(), 3);
                let harmless = components.iter().all(|component| !matches!(*component, b"" | b"." | b".."));
                prop_assert!(harmless && !path.iter().any(u8::is_ascii_control));
            }
        }

        #[test]
        fn a_path_comes_back(path in "[a./-]{1,3}/[a./-]{1,3}/[a./-]{1,3}\\.rrd") {
            if let Some(identifier) = Identifier::of_rrd_path(path.as_bytes()) {
                let mut again = Vec::new();
                prop_assert_eq!(identifier.put_rrd_path(&mut again), Ok(()));
                prop_assert_eq!(again, path.into_bytes());
            }
        }
    }
}
