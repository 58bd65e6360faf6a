//! Why targets have no value, as the poller says it.

use std::collections::HashMap;
use std::path::Path;

use kymo_query::targets::files::{self, TARGETS_MAX, TargetsFile};
use kymo_sys::disk::Disk;

/// By a target's id.
#[derive(Default)]
pub(crate) struct Reasons {
    files: Vec<TargetsFile>,
    of: HashMap<String, String>,
}

impl Reasons {
    /// The files as they are now; `None`: as they were.
    pub(super) fn again(&self, disk: &dyn Disk, folder: &Path) -> Option<Reasons> {
        let files = files::list_reasons(disk, folder);
        if files == self.files {
            return None;
        }
        let mut of = HashMap::new();
        for file in &files {
            // A file that cannot be read says nothing.
            let _ = file.read_reasons(disk, folder, &mut |why, target| {
                if of.len() < TARGETS_MAX {
                    of.insert(format!("{}/{target}", file.stem), why.to_string());
                }
            });
        }
        Some(Reasons { files, of })
    }

    /// Reason why a target has no value. `None`: the target has a value, or none is expected yet.
    pub(crate) fn why(&self, id: &str) -> Option<&str> {
        self.of.get(id).map(String::as_str)
    }
}
