//! Reasons why targets have no value, from the poller's files.

use std::collections::HashMap;
use std::path::Path;

use kymo_query::targets::files::{self, TARGETS_MAX, TargetsFile};
use kymo_sys::disk::Disk;

/// Reasons by id of the target.
#[derive(Default)]
pub(crate) struct Reasons {
    files: Vec<TargetsFile>,
    of: HashMap<String, String>,
}

impl Reasons {
    /// Reads the files again; `None`: they have not changed.
    pub(super) fn again(&self, disk: &dyn Disk, folder: &Path) -> Option<Reasons> {
        let files = files::list_reasons(disk, folder);
        if files == self.files {
            return None;
        }
        let mut of = HashMap::new();
        for file in &files {
            // An unreadable file adds no reason.
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
