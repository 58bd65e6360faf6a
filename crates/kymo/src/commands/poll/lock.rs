//! One process at a time polls a configuration: MRTG's lock, a file with the holder's number and a second name, so that MRTG
//! and kymo keep out of each other's way.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use kymo_sys::machine;
use kymo_sys::own_name::OwnName;

/// Age at which a lock may be removed, also by MRTG: a process that holds one for long calls [`Lock::stay`].
const OLD: Duration = Duration::from_secs(30 * 60);

/// A lock that is held.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
    /// Both names, which are removed at the end.
    names: [OwnName; 2],
}

impl Lock {
    /// Takes the lock; `Err`: a line with the holder.
    pub(super) fn take(path: &Path) -> Result<Lock, String> {
        if let Some(holder) = holder(path)
            && !Path::new("/proc").join(&holder).is_dir()
        {
            // The lock was left over. Another process may have removed it already.
            let _ = fs::remove_file(path);
        }
        let mut own = path.as_os_str().to_owned();
        own.push(format!("_{}", std::process::id()));
        let own = PathBuf::from(own);
        let cannot = |error: io::Error| format!("cannot make {}: {error}", own.display());
        let file = make(&own).map_err(cannot)?;
        let linked = link(&own, path);
        if linked.is_err() {
            // The file has no lock's name, so nothing is locked.
            let _ = fs::remove_file(&own);
        }
        linked?;
        let name = |path: &Path| {
            OwnName::of(path).map_err(|error| format!("cannot see {}: {error}", path.display()))
        };
        Ok(Lock {
            file,
            names: [name(&own)?, name(path)?],
        })
    }

    /// Makes this process, a child of the one that took the lock, its holder.
    pub(super) fn inherit(&self) -> io::Result<()> {
        let number = std::process::id().to_string();
        self.file.set_len(0)?;
        self.file.write_all_at(number.as_bytes(), 0)
    }

    /// Keeps the lock from getting old. Call this more often than each half hour.
    pub(crate) fn stay(&self) -> io::Result<()> {
        self.file.set_modified(SystemTime::now())
    }

    /// Leaves the lock to another process.
    pub(super) fn leave(self) {
        std::mem::forget(self);
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        for name in &self.names {
            // Another user's folder may forbid this; then the next poller sees that the holder has ended.
            let _ = name.remove();
        }
    }
}

/// Number of the process that holds the lock.
fn holder(path: &Path) -> Option<std::ffi::OsString> {
    let mut text = Vec::new();
    let file = options().read(true).open(path).ok()?;
    file.take(64).read_to_end(&mut text).ok()?;
    let line = text.split(|&byte| byte == b'\n').next()?;
    let is_number = !line.is_empty() && line.iter().all(u8::is_ascii_digit);
    is_number.then(|| std::ffi::OsStr::from_bytes(line).to_owned())
}

/// Options for opening: never through a link, which somebody else may have put there.
fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.custom_flags(machine::PLAIN_FILE);
    options
}

fn make(path: &Path) -> io::Result<File> {
    // A file of this name is left over, because the number in it is this process's.
    let _ = fs::remove_file(path);
    let mut file = options()
        .write(true)
        .create_new(true)
        .mode(0o644)
        .open(path)?;
    write!(file, "{}", std::process::id())?;
    Ok(file)
}

/// Makes the lock's name, only if there is no such name.
fn link(own: &Path, path: &Path) -> Result<(), String> {
    let shown = path.display();
    let Err(error) = fs::hard_link(own, path) else {
        return Ok(());
    };
    let Ok(found) = fs::symlink_metadata(path) else {
        return Err(format!("cannot make {shown}: {error}"));
    };
    let age = found.modified().ok().and_then(|time| time.elapsed().ok());
    let age = age.unwrap_or_default();
    if found.nlink() >= 2 && age <= OLD {
        let holder = holder(path).unwrap_or_default();
        return Err(format!(
            "cannot take {shown}: process {} has had it for {} s; if it does not poll this configuration, remove it",
            holder.display(),
            age.as_secs()
        ));
    }
    fs::remove_file(path)
        .and_then(|()| fs::hard_link(own, path))
        .map_err(|error| format!("cannot take {shown}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_taken_once_and_left_over_ones_are_taken_over() {
        let folder = std::env::temp_dir().join(format!("kymo-lock-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("m.cfg_l");
        let names = || {
            let mut names: Vec<_> = fs::read_dir(&folder)
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            names.join(" ")
        };
        let own = std::process::id();
        let lock = Lock::take(&path).unwrap();
        assert_eq!(names(), format!("m.cfg_l m.cfg_l_{own}"));
        assert_eq!(fs::read_to_string(&path).unwrap(), own.to_string());
        assert_eq!(fs::metadata(&path).unwrap().nlink(), 2);
        lock.stay().unwrap();
        lock.inherit().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), own.to_string());
        drop(lock);
        assert_eq!(names(), "");
        let held = |text: &str, links: usize, age_s: u64| {
            fs::write(folder.join("other"), text).unwrap();
            let file = File::options()
                .write(true)
                .open(folder.join("other"))
                .unwrap();
            let then = SystemTime::now() - Duration::from_secs(age_s);
            file.set_modified(then).unwrap();
            fs::hard_link(folder.join("other"), &path).unwrap();
            if links == 1 {
                fs::remove_file(folder.join("other")).unwrap();
            }
            let taken = Lock::take(&path);
            let failure = taken.as_ref().err().cloned();
            drop(taken);
            for name in ["other", "m.cfg_l"] {
                let _ = fs::remove_file(folder.join(name));
            }
            assert_eq!(names(), "", "{text}");
            failure
        };
        for (text, links, age_s, taken) in [
            ("1", 2, 10, false),
            ("1", 1, 10, true),
            ("1", 2, 1801, true),
            ("2147483646", 2, 10, true),
            ("", 2, 10, false),
            ("", 1, 10, true),
        ] {
            let failure = held(text, links, age_s);
            assert_eq!(
                failure.is_none(),
                taken,
                "{text} {links} {age_s}: {failure:?}"
            );
            if let Some(failure) = failure {
                assert!(
                    failure.contains(&format!("process {text} has had it for 1")),
                    "{failure}"
                );
            }
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
