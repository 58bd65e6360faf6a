//! LIST: files below the base, without links that lead out of it. It follows stock step by step,
//! including patterns, whose answers are of little use in stock, too.

use kymo_base::errno::strerror;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use kymo_wire::rrdcached::{Answers, Fields, Verb, list_words};

use crate::rrdcached::Shared;

/// `PATH_MAX`: longer names are skipped.
const PATH_MAX: usize = 4096;

fn path(name: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(name))
}

/// Answers LIST.
pub(super) fn list(shared: &Shared, fields: Fields, answers: &mut Answers) {
    let Some(base) = shared.names.base() else {
        return answers.error(&[b"No base directory defined"]);
    };
    let Some((recursive, name)) = list_words(fields) else {
        return answers.usage(Verb::List);
    };
    let slash: &[u8] = if name.starts_with(b"/") { b"" } else { b"/" };
    let whole = [base, slash, name].concat();
    if !shared.names.allowed(&whole) {
        return answers.error(&[b"Cannot read: ", &whole]);
    }
    let real_base = link_target(base).unwrap_or_else(|_| base.to_vec());
    let found = match shared.store.list(&whole, recursive) {
        Ok(found) => found,
        Err(error) => {
            let cause = strerror(&error);
            return answers.error(&[b"List ", &whole, b": ", cause.as_bytes()]);
        }
    };
    let mut lines = Vec::new();
    for item in &found {
        match belongs(shared, &whole, item, &real_base) {
            Ok(false) => {}
            Ok(true) => {
                lines.extend_from_slice(item);
                lines.push(b'\n');
            }
            Err((verb, absolute, error)) => {
                let cause = strerror(&error);
                return answers.error(&[verb, b" ", &absolute, b": ", cause.as_bytes()]);
            }
        }
    }
    answers.ok_with(&lines, &[b"RRDs"]);
}

/// A failed step, its file, and the cause.
type Trouble = (&'static [u8], Vec<u8>, io::Error);

/// True if an item is listed: it is no link that leads out of the base.
fn belongs(shared: &Shared, whole: &[u8], item: &[u8], base: &[u8]) -> Result<bool, Trouble> {
    if item.len() + whole.len() + 1 >= PATH_MAX {
        return Ok(false);
    }
    // True if the request names one file.
    let single = memchr::memmem::find(whole, b".rrd").is_some_and(|at| at + 4 == whole.len());
    let absolute = match single {
        true => whole.to_vec(),
        false => [whole, b"/", item].concat(),
    };
    // Compared by parts: slashes may be double.
    let hidden = shared.settings.hidden.as_deref() == Some(path(&absolute));
    if hidden || !shared.names.allowed(&absolute) {
        return Ok(false);
    }
    let kind = match std::fs::symlink_metadata(path(&absolute)) {
        Ok(kind) => kind.file_type(),
        Err(_) if shared.store.leads_to_no_file(&absolute) => return Ok(true),
        Err(error) => return Err((b"stat", absolute, error)),
    };
    let target = match kind.is_symlink() {
        false => absolute,
        true => match link_target(&absolute) {
            Ok(target) => target,
            Err(error) => return Err((b"readlink", absolute, error)),
        },
    };
    Ok(target.starts_with(base))
}

fn link_target(name: &[u8]) -> io::Result<Vec<u8>> {
    let target = std::fs::read_link(path(name))?;
    Ok(target.as_os_str().as_bytes().to_vec())
}
