//! Names as clients send them: how replies spell them, and which names `-B` refuses by their text alone. The
//! store checks links when it opens files.

use std::borrow::Cow;
use std::os::unix::ffi::OsStrExt;

use kymo_store::SeriesName;
use kymo_store::names::{is_beneath, join};

use super::{Settings, Writers};
use crate::name_space::Input;

/// Rules for names.
pub(super) struct Names {
    base: Option<Vec<u8>>,
    beneath: bool,
    /// True if other inputs have names of their own.
    closes_names: bool,
}

impl Names {
    pub(super) fn new(settings: &Settings) -> Names {
        let base = settings.base.as_ref();
        Names {
            base: base.map(|base| base.as_os_str().as_bytes().to_vec()),
            beneath: settings.beneath,
            closes_names: settings.writers != Writers::Anybody,
        }
    }

    /// The base folder, if there is one.
    pub(super) fn base(&self) -> Option<&[u8]> {
        self.base.as_deref()
    }

    /// A name as replies show it.
    pub(super) fn spelled<'a>(&self, name: &'a [u8]) -> Cow<'a, [u8]> {
        match &self.base {
            Some(base) => join(base, name),
            None => Cow::Borrowed(name),
        }
    }

    /// True if `-B` permits a name.
    pub(super) fn allowed(&self, name: &[u8]) -> bool {
        let base = self.base.as_deref().filter(|_| self.beneath);
        base.is_none_or(|base| is_beneath(base, name))
    }

    /// True if a name belongs to another input: clients may read it, and not change it.
    pub(super) fn is_foreign(&self, name: &[u8]) -> bool {
        let base = self.base.as_deref().unwrap_or_default();
        let below = name.strip_prefix(base).unwrap_or(name);
        self.closes_names && !Input::Rrdcached.may_write(SeriesName::File(below))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_spelled_and_judged_as_stock_does() {
        let mut settings = Settings {
            base: Some("/b/db".into()),
            beneath: true,
            ..Settings::default()
        };
        let names = Names::new(&settings);
        settings.beneath = false;
        let open = Names::new(&settings);
        for (name, spelled, allowed) in [
            ("a.rrd", "/b/db/a.rrd", true),
            ("./a.rrd", "/b/db/./a.rrd", true),
            ("/b/db/a.rrd", "/b/db/a.rrd", true),
            ("/b/db/", "/b/db/", true),
            ("/b/db", "/b/db", false),
            ("/b/dbx/a.rrd", "/b/dbx/a.rrd", false),
            ("/etc/a.rrd", "/etc/a.rrd", false),
            ("../a.rrd", "/b/db/../a.rrd", false),
            ("x/../a.rrd", "/b/db/x/../a.rrd", false),
            ("/b/db/../a.rrd", "/b/db/../a.rrd", false),
            ("..", "/b/db/..", true),
            ("", "/b/db/", true),
        ] {
            assert_eq!(names.spelled(name.as_bytes()), spelled.as_bytes());
            assert_eq!(names.allowed(name.as_bytes()), allowed, "{name}");
            assert!(open.allowed(name.as_bytes()));
        }
        // Names of other inputs are closed in every spelling.
        settings.beneath = true;
        assert!(!Names::new(&settings).is_foreign(b"mrtg/a.rrd"));
        settings.writers = Writers::Shared;
        let shared = Names::new(&settings);
        for (name, foreign) in [
            ("mrtg/a.rrd", true),
            (".//mrtg/a.rrd", true),
            ("/b/db/mrtg/a.rrd", true),
            ("/b/db/./mrtg/a.rrd", true),
            ("/b/db//mrtg", true),
            ("mrtg2/a.rrd", false),
            ("a/mrtg/a.rrd", false),
            ("/b/db/a/mrtg/a.rrd", false),
        ] {
            assert_eq!(shared.is_foreign(name.as_bytes()), foreign, "{name}");
        }
        let none = Names::new(&Settings::default());
        assert_eq!(none.spelled(b"a.rrd"), &b"a.rrd"[..]);
    }
}
