//! A check of all backups of a folder: each manifest is read, and each content that one needs is compared with its hash, once.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::error::{Error, Result};
use crate::manifest::Piece;
use crate::target::Target;

/// Numbers of a check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Backups that can be read.
    pub backups: u64,
    /// Contents that they need.
    pub contents: u64,
    /// Bytes of these contents.
    pub bytes: u64,
    /// Findings.
    pub damaged: u64,
}

/// A damaged file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The file.
    pub path: PathBuf,
    /// The damage, and whom it concerns.
    pub what: String,
}

/// Backups that need a content, and a file in the newest of them.
struct Need<'a> {
    backups: u64,
    file: &'a str,
}

/// Checks all backups. `found` hears of damage, `each` of the bytes done and of all.
pub fn check(
    target: &Target,
    found: &mut dyn FnMut(Finding),
    each: &mut dyn FnMut(u64, u64),
) -> Result<Checked> {
    let (mut checked, mut manifests) = (Checked::default(), Vec::new());
    for time_ms in target.times_ms()? {
        match target.manifest(time_ms) {
            Ok(manifest) => manifests.push(manifest),
            Err(Error::Damaged { path, what }) => {
                checked.damaged += 1;
                found(Finding { path, what });
            }
            Err(error) => return Err(error),
        }
    }
    let mut needs: BTreeMap<Piece, Need<'_>> = BTreeMap::new();
    for manifest in &manifests {
        let mut own = BTreeMap::new();
        for file in &manifest.files {
            own.extend(file.pieces.iter().map(|piece| (*piece, file.path.as_str())));
        }
        for (piece, file) in own {
            let backups = needs.get(&piece).map_or(0, |need| need.backups) + 1;
            needs.insert(piece, Need { backups, file });
        }
    }
    checked.backups = u64::try_from(manifests.len()).unwrap_or(u64::MAX);
    checked.contents = u64::try_from(needs.len()).unwrap_or(u64::MAX);
    let all = needs.keys().map(|piece| piece.bytes).sum();
    for (piece, need) in &needs {
        let got = target.get(*piece, &mut |bytes| {
            checked.bytes += u64::try_from(bytes.len()).unwrap_or(u64::MAX);
            each(checked.bytes, all);
            Ok(())
        })?;
        if let Err(what) = got {
            checked.damaged += 1;
            let Need { backups, file } = need;
            let backups = match backups {
                1 => "1 backup needs it".to_string(),
                many => format!("{many} backups need it"),
            };
            found(Finding {
                path: target.path_of(piece.hash),
                what: format!("{what}; it is part of {file}, {backups}"),
            });
        }
    }
    Ok(checked)
}
