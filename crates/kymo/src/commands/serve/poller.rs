//! `[poll]`: the poller of `kymo serve`, one process for all configurations. It writes through the keeper, and describes the
//! targets for the page in `DATA/poll`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use kymo_base::limits;
use kymo_sys::machine;
use kymo_sys::privilege::{self, Account, Keep, Memory, Role};
use kymo_sys::sure_folder::SureFolder;
use kymo_wire::targets::FOLDER;

use super::sockets;
use crate::commands::poll;
use crate::commands::serve::guardian::Poller;
use crate::config::{Config, FilesWritten};

/// The folder belongs to the poller; files in it get the hub's group, which reads them.
const MODE: u32 = 0o2750;

/// User to poll as; `None`: the user of this process.
pub(super) fn user(config: &Config, hub: Option<&Account>) -> Result<Option<Account>> {
    account("poll", &config.poll.user, hub)
}

/// The user with this name; without a name, the hub's.
pub(super) fn account(verb: &str, name: &str, hub: Option<&Account>) -> Result<Option<Account>> {
    if name.is_empty() {
        return Ok(hub.cloned());
    }
    if !machine::is_root() {
        bail!("cannot {verb} as {name}: only root may become another user");
    }
    let account = Account::named(name);
    account
        .map(Some)
        .with_context(|| format!("cannot {verb} as {name}: there is no such user"))
}

/// Plans the poller of all configurations; empty if no configuration is set.
pub(super) fn pollers(config: &Config, dir: &Path, hub: Option<&Account>) -> Result<Vec<Poller>> {
    let files = poll::configurations(&config.poll.mrtg);
    if config.poll.mrtg.is_empty() {
        return Ok(Vec::new());
    }
    let Some(first) = files.first() else {
        bail!(
            "cannot poll: there is no file {}",
            config.poll.mrtg.join(", ")
        );
    };
    let account = user(config, hub)?;
    let folder = make_folder(dir, account.as_ref(), hub)?;
    let name = match files.len() {
        1 => format!("poller of {}", first.display()),
        count => format!("poller of {} and {} more", first.display(), count - 1),
    };
    Ok(vec![Poller {
        name,
        words: words(config, dir, &folder, &files),
        role: role(account, hub, Memory::Own(limits::POLLER_MEMORY_MAX)),
    }])
}

/// Role of a process that needs the hub's group for the keeper's socket.
pub(super) fn role(account: Option<Account>, hub: Option<&Account>, memory: Memory) -> Role {
    let mut groups = account.as_ref().map_or(Vec::new(), privilege::groups);
    groups.extend(hub.map(|hub| hub.gid));
    Role {
        account,
        groups,
        keep: Keep::Nothing,
        memory,
        ends_with_parent: true,
        inherits: Vec::new(),
    }
}

fn make_folder(dir: &Path, account: Option<&Account>, hub: Option<&Account>) -> Result<PathBuf> {
    let path = dir.join(FOLDER);
    let cannot = || format!("cannot make {}", path.display());
    let users: Vec<u32> = account.iter().chain(&hub).map(|user| user.uid).collect();
    let folder = SureFolder::make(&path, MODE, &users).with_context(cannot)?;
    folder.trust(&users).with_context(cannot)?;
    if let Some(account) = account {
        let group = hub.map_or(account.gid, |hub| hub.gid);
        folder.give(account.uid, group).with_context(cannot)?;
    }
    folder.set_mode(MODE).with_context(cannot)?;
    Ok(path)
}

/// Words of the command line, without a secret.
fn words(config: &Config, dir: &Path, folder: &Path, files: &[PathBuf]) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec!["--foreground".into()];
    let places = [
        ("--keeper", dir.join(sockets::WRITES).into_os_string()),
        ("--base", super::base(config, dir).into_os_string()),
        ("--descriptions", folder.as_os_str().to_owned()),
    ];
    for (switch, value) in places {
        words.extend([switch.into(), value]);
    }
    if config.poll.files == FilesWritten::Ask {
        words.extend(["--files".into(), "ask".into()]);
    }
    if let Some(log_dir) = &config.poll.log_dir {
        words.extend(["--log-dir".into(), log_dir.as_os_str().to_owned()]);
    }
    for (switch, is_on) in [
        ("--burst", config.poll.burst),
        ("--integer-stamps", config.poll.integer_stamps),
    ] {
        words.extend(is_on.then(|| switch.into()));
    }
    words.push("--".into());
    words.extend(files.iter().map(|file| file.as_os_str().to_owned()));
    words
}
