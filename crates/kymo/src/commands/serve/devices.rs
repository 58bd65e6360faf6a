//! `[[device]]`: devices with what their files say, communities, passwords and profiles, so that the process that polls
//! them reads no file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use kymo_poll::devices::{BUILT_IN, Profile, check_profile};
use kymo_scrape::{DeviceCredentials, DeviceJob, Secret, UserPassword};

use super::access;
use crate::config::{Config, DeviceTable, SnmpVersion};

/// Community of devices whose table names none.
const COMMUNITY: &str = "public";
/// Ending of a profile's file.
const ENDING: &str = "toml";

/// Profiles by their names.
pub(crate) type Profiles = BTreeMap<String, Profile>;

/// All devices of the configuration.
pub(super) fn jobs(config: &Config) -> Result<Vec<DeviceJob>> {
    if config.device.is_empty() {
        return Ok(Vec::new());
    }
    let profiles = profiles(config.poll.profiles.as_deref())?;
    let jobs = config.device.iter();
    jobs.map(|table| device_job(table, &profiles)).collect()
}

/// Checks that all profiles are there, without a look at communities and passwords.
pub(super) fn check(config: &Config) -> Result<()> {
    if config.device.is_empty() {
        return Ok(());
    }
    let profiles = profiles(config.poll.profiles.as_deref())?;
    let mut devices = config.device.iter();
    devices.try_for_each(|table| chosen(table, &profiles).map(drop))
}

/// The profiles of a table.
fn chosen(table: &DeviceTable, profiles: &Profiles) -> Result<Vec<Profile>> {
    let profile = |name: &String| match profiles.get(name) {
        Some(profile) => Ok(profile.clone()),
        None => {
            let known: Vec<&str> = profiles.keys().map(String::as_str).collect();
            let (address, known) = (&table.address, known.join(", "));
            bail!("cannot poll {address}: there is no profile {name:?}, but {known}")
        }
    };
    table.profiles.iter().map(profile).collect()
}

/// A device of a table.
pub(crate) fn device_job(table: &DeviceTable, profiles: &Profiles) -> Result<DeviceJob> {
    let words = anyhow::Error::msg::<String>;
    Ok(DeviceJob {
        address: table.address.clone(),
        interval_ms: table.interval_ms().map_err(words)?,
        timeout_ms: table.timeout_ms().map_err(words)?,
        labels: table.all_labels(),
        relabel: table.relabel.clone(),
        credentials: credentials(table)
            .with_context(|| format!("cannot poll {}", table.address))?,
        profiles: chosen(table, profiles)?,
        interfaces: table.filter(),
    })
}

fn credentials(table: &DeviceTable) -> Result<DeviceCredentials> {
    let secret = |path: &PathBuf| -> Result<Secret> { Ok(Secret::of_file(&access::read(path)?)) };
    let community = || match &table.community_file {
        Some(path) => secret(path),
        None => Ok(Secret::of_file(COMMUNITY)),
    };
    let password = |protocol: &str, path: &Option<PathBuf>| -> Result<Option<UserPassword>> {
        let Some(path) = path else {
            return Ok(None);
        };
        Ok(Some(UserPassword {
            protocol: protocol.into(),
            password: secret(path)?,
        }))
    };
    Ok(match table.version {
        SnmpVersion::V1 => DeviceCredentials::V1 {
            community: community()?,
        },
        SnmpVersion::V2c => DeviceCredentials::V2c {
            community: community()?,
        },
        SnmpVersion::V3 => DeviceCredentials::V3 {
            user: table.user.clone(),
            auth: password(&table.auth, &table.auth_file)?,
            privacy: password(&table.privacy, &table.privacy_file)?,
            context: table.context.clone(),
        },
    })
}

/// The profiles that are built in, and those of a folder, which win.
pub(crate) fn profiles(folder: Option<&Path>) -> Result<Profiles> {
    let mut profiles = Profiles::new();
    for (name, text) in BUILT_IN {
        add(&mut profiles, name, text).with_context(|| format!("cannot use the profile {name}"))?;
    }
    let Some(folder) = folder else {
        return Ok(profiles);
    };
    let cannot = || format!("cannot read {}", folder.display());
    for entry in folder.read_dir().with_context(cannot)? {
        let path = entry.with_context(cannot)?.path();
        let is_profile = path.extension().is_some_and(|ending| ending == ENDING);
        let Some(name) = path.file_stem().filter(|_| is_profile) else {
            continue;
        };
        let text = access::read(&path)?;
        let added = add(&mut profiles, &name.to_string_lossy(), &text);
        added.with_context(|| format!("cannot use {}", path.display()))?;
    }
    Ok(profiles)
}

fn add(profiles: &mut Profiles, name: &str, text: &str) -> Result<()> {
    let mut profile: Profile = toml::from_str(text).map_err(|error| {
        let message = error.message().lines().collect::<Vec<_>>().join("; ");
        let before = error.span().and_then(|span| text.get(..span.start));
        let line = before.map_or(1, |before| 1 + before.matches('\n').count());
        anyhow::Error::msg(format!("line {line}: {message}"))
    })?;
    check_profile(&profile).map_err(anyhow::Error::msg)?;
    profile.name = name.into();
    profiles.insert(name.into(), profile);
    Ok(())
}
