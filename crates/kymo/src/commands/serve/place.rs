//! User of the children if root starts them: the user that owns the folder. A folder that is made here
//! is given to the user `kymo`, so no existing file changes its owner.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use kymo_sys::machine::{self, ROOT};
use kymo_sys::privilege::Account;
use kymo_sys::sure_folder::SureFolder;

const MAY_READ: u32 = 0o4;
const MAY_SEARCH: u32 = 0o1;
/// Permission bits for writing, of group and others.
const OTHERS_MAY_WRITE: u32 = 0o022;

/// Makes the folder. Returns the user that the children become; `None`: they stay this user.
pub(super) fn prepare(dir: &Path, user: &str) -> Result<Option<Account>> {
    let folder = SureFolder::make(dir, 0o750, &[]);
    let folder = folder.with_context(|| format!("cannot make {}", dir.display()))?;
    let stat = folder.metadata()?;
    refuse_shared(dir, &stat)?;
    let way = folder.trust(&[stat.uid()]);
    way.with_context(|| format!("cannot use {}", dir.display()))?;
    if !machine::is_root() {
        return Ok(None);
    }
    if stat.uid() != ROOT {
        let owner = Account::numbered(stat.uid()).unwrap_or(Account {
            name: stat.uid().to_string(),
            uid: stat.uid(),
            gid: stat.gid(),
        });
        return Ok(Some(owner));
    }
    let is_empty = folder.is_empty()?;
    let Some(account) = Account::named(user).filter(|account| is_empty && can_reach(dir, account))
    else {
        return Ok(None);
    };
    let given = folder.give(account.uid, account.gid);
    given.with_context(|| format!("cannot give {} to {user}", dir.display()))?;
    Ok(Some(account))
}

/// Checks that a folder may keep a token.
pub(super) fn sure(dir: &Path) -> Result<()> {
    let cannot = || format!("cannot open {}", dir.display());
    let folder = SureFolder::open(dir).with_context(cannot)?;
    let stat = folder.metadata()?;
    refuse_shared(dir, &stat)?;
    folder.trust(&[stat.uid()]).with_context(cannot)
}

/// Refuses a folder in which others could put a token, or a recording.
fn refuse_shared(dir: &Path, stat: &Metadata) -> Result<()> {
    let mode = stat.mode() & 0o7777;
    if mode & OTHERS_MAY_WRITE != 0 {
        bail!(
            "cannot use {}: others than its owner may write there (mode {mode:04o}); chmod go-w it, or name a folder of its own",
            dir.display()
        );
    }
    Ok(())
}

/// The user with the least rights that can read all of these files: `user`, root without capabilities
/// (`None`), or else the owner of the first one.
pub(super) fn who_can_read(files: &[PathBuf], user: &str) -> Option<Account> {
    if !machine::is_root() {
        return None;
    }
    let reads_all = |account: &Account| files.iter().all(|file| can_read(file, account));
    if let Some(account) = Account::named(user).filter(reads_all) {
        return Some(account);
    }
    let owner = files.first().and_then(|file| file.metadata().ok());
    let owner = owner.and_then(|stat| Account::numbered(stat.uid()));
    let root = Account::numbered(ROOT);
    owner.filter(|owner| !root.as_ref().is_some_and(reads_all) && reads_all(owner))
}

fn can_read(path: &Path, account: &Account) -> bool {
    let wanted = match path.is_dir() {
        true => MAY_READ | MAY_SEARCH,
        false => MAY_READ,
    };
    can_reach(path, account) && fs::metadata(path).is_ok_and(|stat| grants(&stat, account, wanted))
}

/// True if the user may pass all folders above.
fn can_reach(path: &Path, account: &Account) -> bool {
    path.ancestors()
        .skip(1)
        .all(|folder| fs::metadata(folder).is_ok_and(|stat| grants(&stat, account, MAY_SEARCH)))
}

/// True if the permission bits grant the access to a user without capabilities.
fn grants(stat: &Metadata, account: &Account, wanted: u32) -> bool {
    let shift = match () {
        () if stat.uid() == account.uid => 6,
        () if stat.gid() == account.gid => 3,
        () => 0,
    };
    stat.mode() >> shift & wanted == wanted
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_folder_that_others_may_write_to_is_refused() {
        let dir = std::env::temp_dir().join(format!("kymo-serve-shared-{}", std::process::id()));
        for (mode, sound) in [
            (0o750, true),
            (0o755, true),
            (0o770, false),
            (0o702, false),
            (0o1777, false),
        ] {
            fs::create_dir_all(&dir).expect("a folder");
            fs::set_permissions(&dir, fs::Permissions::from_mode(mode)).expect("chmod");
            match prepare(&dir, "nobody by this name") {
                Ok(account) => assert!(sound && account.is_none(), "{mode:o}"),
                Err(error) => {
                    let said = format!("may write there (mode {mode:04o}); chmod go-w it");
                    assert!(!sound && error.to_string().contains(&said), "{error}");
                }
            }
        }
        fs::remove_dir(&dir).expect("remove");
    }

    #[test]
    fn permission_bits_are_read_as_the_kernel_does() {
        let path = std::env::temp_dir().join(format!("kymo-serve-place-{}", std::process::id()));
        fs::write(&path, "").expect("a file");
        let stat = fs::metadata(&path).expect("the file");
        let who = |uid, gid| Account {
            name: String::new(),
            uid,
            gid,
        };
        let (own, group, other) = (
            who(stat.uid(), stat.gid()),
            who(stat.uid() + 1, stat.gid()),
            who(stat.uid() + 1, stat.gid() + 1),
        );
        for (mode, reads) in [
            (0o400, [true, false, false]),
            (0o040, [false, true, false]),
            (0o004, [false, false, true]),
            (0o644, [true, true, true]),
        ] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("chmod");
            let stat = fs::metadata(&path).expect("the file");
            let granted = [&own, &group, &other].map(|who| grants(&stat, who, MAY_READ));
            assert_eq!(granted, reads, "{mode:o}");
        }
        fs::remove_file(&path).expect("remove");
    }
}
