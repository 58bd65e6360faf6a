//! `[poll]`: the pollers of `kymo serve`, a process for each mrtg.cfg. They write through the keeper, and say in `DATA/poll` what the
//! page has to know of their targets.

use std::ffi::OsString;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use kymo_sys::machine;
use kymo_sys::privilege::{self, Account, Keep, Role};
use kymo_wire::targets::FOLDER;

use super::sockets;
use crate::commands::poll;
use crate::config::{Config, FilesWritten};
use crate::guardian::Poller;

/// The folder is the poller's; what is made there is of the hub's group, which reads it.
const MODE: u32 = 0o2750;

/// As whom to poll; `None`: as whoever started this.
pub(super) fn user(config: &Config, hub: Option<&Account>) -> Result<Option<Account>> {
    account("poll", &config.poll.user, hub)
}

/// The user of that name; without a name, the hub's.
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

/// One for each configuration that is there now.
pub(super) fn pollers(config: &Config, dir: &Path, hub: Option<&Account>) -> Result<Vec<Poller>> {
    let files = poll::configurations(&config.poll.mrtg);
    if config.poll.mrtg.is_empty() {
        return Ok(Vec::new());
    }
    if files.is_empty() {
        bail!(
            "cannot poll: there is no file {}",
            config.poll.mrtg.join(", ")
        );
    }
    let account = user(config, hub)?;
    let folder = make_folder(dir, account.as_ref(), hub)?;
    let poller = |file: PathBuf| Poller {
        words: words(config, dir, &folder, &file),
        role: role(account.clone(), hub),
        file,
    };
    Ok(files.into_iter().map(poller).collect())
}

/// The hub's group opens the keeper's socket.
pub(super) fn role(account: Option<Account>, hub: Option<&Account>) -> Role {
    let mut groups = account.as_ref().map_or(Vec::new(), privilege::groups);
    groups.extend(hub.map(|hub| hub.gid));
    Role {
        account,
        groups,
        keep: Keep::Nothing,
        ends_with_parent: true,
        inherits: Vec::new(),
    }
}

fn make_folder(dir: &Path, account: Option<&Account>, hub: Option<&Account>) -> Result<PathBuf> {
    let folder = dir.join(FOLDER);
    let cannot = || format!("cannot make {}", folder.display());
    let mut builder = std::fs::DirBuilder::new();
    let builder = builder.recursive(true).mode(MODE);
    builder.create(&folder).with_context(cannot)?;
    if let Some(account) = account {
        let group = hub.map_or(account.gid, |hub| hub.gid);
        std::os::unix::fs::chown(&folder, Some(account.uid), Some(group)).with_context(cannot)?;
    }
    let mode = std::fs::Permissions::from_mode(MODE);
    std::fs::set_permissions(&folder, mode).with_context(cannot)?;
    Ok(folder)
}

/// The command line, without a secret.
fn words(config: &Config, dir: &Path, folder: &Path, file: &Path) -> Vec<OsString> {
    let stem = file.file_stem().unwrap_or_default();
    let own = |ending: &str| {
        let mut name = stem.to_owned();
        name.push(ending);
        folder.join(name).into_os_string()
    };
    let mut words: Vec<OsString> = vec!["--foreground".into()];
    let places = [
        ("--keeper", dir.join(sockets::WRITES).into_os_string()),
        ("--base", super::base(config, dir).into_os_string()),
        ("--descriptions", folder.as_os_str().to_owned()),
        ("--lock-file", own(".lock")),
        ("--confcache-file", own(".ok")),
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
    words.push(file.as_os_str().to_owned());
    words
}
