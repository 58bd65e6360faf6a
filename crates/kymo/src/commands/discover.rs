//! `kymo discover`: looks for devices that answer SNMP, and writes the tables `[[device]]` for them. Where a kymo.toml has
//! tables already, it lists the changes since, and makes them in the file only if it is asked to.

mod answer;
mod changes;
mod edit;
mod mrtg;
mod oid_pick;
mod perl;
mod places;
mod table;

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use kymo_base::name::DisplayName;
use kymo_poll::devices::{InterfaceFilter, InterfaceState, Profile, ProfileTable};
use kymo_scrape::{DeviceAsked, DeviceJob, ask_devices};
use kymo_sys::talk;

use super::serve::devices::{Profiles, device_job, profiles};
use crate::config::{self, DeviceTable, SnmpVersion};
use crate::output;
use crate::output::progress::Progress;
use changes::Change;
use mrtg::{CfgDevice, CfgOptions};
use perl::PerlRules;
use places::DevicePlaces;
use table::Found;

/// Devices that are asked for everything at a time.
const AT_ONCE: usize = 32;
/// Addresses of a network that are tried at a time.
const TRIED_AT_ONCE: usize = 256;
/// Milliseconds in which an address of a network has to answer, by two packets, and a device that is named, by three.
const TRIED_MS: u64 = 2500;
const NAMED_MS: u64 = 6000;
/// Milliseconds in which a device has to say everything.
const ASKED_MS: u64 = 60_000;
/// Exit code if a device that was named does not answer.
const SILENT: u8 = 1;

/// Profile of the addresses of interfaces, which an mrtg.cfg has.
const ADDRESSES: &str = "addresses";

fn addresses() -> Profile {
    let table = ProfileTable {
        index: vec!["ipAdEntAddr:ip".into()],
        gauge: [("ipAdEntIfIndex".into(), "1.3.6.1.2.1.4.20.1.2".into())].into(),
        ..ProfileTable::default()
    };
    Profile {
        name: ADDRESSES.into(),
        table: vec![table],
        ..Profile::default()
    }
}

/// Options of `kymo discover`.
#[derive(Args, Clone, Debug)]
pub(crate) struct DiscoverOptions {
    /// Addresses or names, networks such as 10.0.0.0/24, files with a list of them, or a kymo.toml, whose devices are looked at again
    #[arg(value_name = "ADDRESS|NETWORK|FILE", required = true)]
    pub places: Vec<String>,
    /// Compare with the tables of this kymo.toml, and list interfaces that are new, gone, renamed or faster
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Change the kymo.toml as listed
    #[arg(long)]
    pub apply: bool,
    /// Write the tables into a new file instead of stdout
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["config", "apply"])]
    pub output: Option<PathBuf>,
    /// Write an mrtg.cfg as cfgmaker does, with communities and passwords in it
    #[arg(long, conflicts_with_all = ["config", "apply"])]
    pub mrtg: bool,
    /// With --mrtg, a line for its begin, such as 'WorkDir: /var/www/mrtg'
    #[arg(long, value_name = "LINE", requires = "mrtg")]
    pub global: Vec<String>,
    /// With --mrtg, refer to interfaces by the first of these that is unique: name, descr, ip, eth, nr
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "name,nr", value_parser = ["name", "descr", "ip", "eth", "nr"])]
    pub ifref: Vec<String>,
    /// With --mrtg, describe interfaces by the first of these that there is: alias, descr, name, ip, eth, nr
    #[arg(long, value_name = "LIST", value_delimiter = ',', requires = "mrtg", value_parser = ["alias", "descr", "name", "ip", "eth", "nr"])]
    pub ifdesc: Vec<String>,
    /// With --mrtg, an expression of Perl that chooses interfaces, with cfgmaker's variables, such as '$default && $if_type != 23'
    #[arg(long, value_name = "EXPR", requires = "mrtg")]
    pub if_filter: Option<String>,
    /// With --mrtg, a template of cfgmaker's for interfaces, which is Perl
    #[arg(long, value_name = "FILE", requires = "mrtg")]
    pub if_template: Option<PathBuf>,
    /// With --mrtg, a template of cfgmaker's for devices
    #[arg(long, value_name = "FILE", requires = "mrtg")]
    pub host_template: Option<PathBuf>,
    /// Version of SNMP: 1, 2c or 3
    #[arg(long, value_name = "VERSION", default_value = "2c", value_parser = ["1", "2c", "3"])]
    pub snmp: String,
    /// File with the community; default: public
    #[arg(long, value_name = "FILE")]
    pub community_file: Option<PathBuf>,
    /// User of version 3
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// Protocol of authentication
    #[arg(long, value_name = "NAME", default_value = "sha256")]
    pub auth: String,
    /// File with the password of authentication
    #[arg(long, value_name = "FILE")]
    pub auth_file: Option<PathBuf>,
    /// Protocol of privacy
    #[arg(long, value_name = "NAME", default_value = "aes")]
    pub privacy: String,
    /// File with the password of privacy
    #[arg(long, value_name = "FILE")]
    pub privacy_file: Option<PathBuf>,
    /// Take interfaces that are down, too
    #[arg(long, alias = "no-down")]
    pub down: bool,
    /// Take loopback interfaces, too
    #[arg(long)]
    pub loopback: bool,
    /// Folder with own profiles
    #[arg(long, value_name = "DIR")]
    pub profiles: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(options: &DiscoverOptions) -> Result<ExitCode> {
    let places = DevicePlaces::read(&options.places)?;
    let path = match (&options.config, places.configs.as_slice()) {
        (Some(path), _) => Some(path.clone()),
        (None, [path]) => Some(path.clone()),
        (None, []) => None,
        (None, [..]) => bail!("cannot look at several files of kymo.toml at once"),
    };
    if options.apply && path.is_none() {
        bail!("cannot use --apply without a kymo.toml: give one, or --config FILE");
    }
    let file = path.as_deref().map(edit::ConfigText::read).transpose()?;
    let known = file.as_ref().map_or(&[][..], |file| &file.config.device);
    let folder = file
        .as_ref()
        .and_then(|file| file.config.poll.profiles.clone());
    let mut profiles = profiles(options.profiles.clone().or(folder).as_deref())?;
    if options.mrtg {
        profiles.insert(ADDRESSES.into(), addresses());
    }
    let looks_again = path.is_some_and(|path| places.configs.contains(&path));
    let again = known
        .iter()
        .filter(|table| looks_again || places.names(&table.address));
    let again: Vec<DeviceTable> = again.cloned().collect();
    let is_known = |address: &String| known.iter().any(|table| table.address == *address);
    let fresh = new_tables(options, &places, &profiles, is_known)?;
    let (fresh, silent_fresh) = ask(fresh, &profiles)?;
    let (again, silent_again) = ask(again, &profiles)?;
    for (address, why) in silent_fresh.iter().chain(&silent_again) {
        talk::say(format_args!("kymo: cannot ask {address}: {why}"));
    }
    match file {
        None => write_new(options, &fresh, &profiles)?,
        Some(file) => compare(options, file, &fresh, &again, &silent_again)?,
    }
    let is_whole = silent_fresh.is_empty() && silent_again.is_empty();
    Ok(ExitCode::from(if is_whole { 0 } else { SILENT }))
}

/// Devices that did not answer, each with the reason.
type Silent = Vec<(String, String)>;

/// Tables for addresses that have none: those that were named, and those of networks that answer.
fn new_tables(
    options: &DiscoverOptions,
    places: &DevicePlaces,
    profiles: &Profiles,
    is_known: impl Fn(&String) -> bool,
) -> Result<Vec<DeviceTable>> {
    let table = |address: &String| DeviceTable {
        address: address.clone(),
        version: match options.snmp.as_str() {
            "1" => SnmpVersion::V1,
            "3" => SnmpVersion::V3,
            _ => SnmpVersion::V2c,
        },
        community_file: absolute(&options.community_file),
        user: options.user.clone().unwrap_or_default(),
        auth: options.auth.clone(),
        auth_file: absolute(&options.auth_file),
        privacy: options.privacy.clone(),
        privacy_file: absolute(&options.privacy_file),
        interfaces: match options.down {
            true => InterfaceState::All,
            false => InterfaceState::Up,
        },
        not_types: match options.loopback {
            true => Vec::new(),
            false => InterfaceFilter::default().types.not,
        },
        ..DeviceTable::default()
    };
    let unknown = |address: &&String| !is_known(address);
    let mut tables: Vec<DeviceTable> = places.hosts.iter().filter(unknown).map(table).collect();
    config::check_devices(&tables).map_err(anyhow::Error::msg)?;
    let tried = places.of_networks.iter().filter(unknown).map(table);
    let tried = answering(tried.collect(), profiles, (TRIED_MS, "addresses"))?;
    tables.extend(tried.0);
    Ok(tables)
}

/// The path as a table has it, which is read in another folder.
fn absolute(path: &Option<PathBuf>) -> Option<PathBuf> {
    let path = path.as_ref()?;
    Some(std::path::absolute(path).unwrap_or_else(|_| path.clone()))
}

/// Devices that answer within a time, and the others.
fn answering(
    tables: Vec<DeviceTable>,
    profiles: &Profiles,
    (within_ms, things): (u64, &str),
) -> Result<(Vec<DeviceTable>, Silent)> {
    let system = ["system".to_string()];
    let jobs = jobs(&tables, profiles, &system, within_ms)?;
    let mut silent: BTreeMap<usize, String> = BTreeMap::new();
    asked(&jobs, TRIED_AT_ONCE, things, |done| {
        if let Err(why) = done.text {
            silent.insert(done.number, DisplayName(why.as_bytes()).to_string());
        }
    })?;
    let (mut answered, mut others) = (Vec::new(), Silent::new());
    for (number, table) in tables.into_iter().enumerate() {
        match silent.remove(&number) {
            None => answered.push(table),
            Some(why) => others.push((table.address, why)),
        }
    }
    Ok((answered, others))
}

/// Devices, to be asked by these profiles for all interfaces.
fn jobs(
    tables: &[DeviceTable],
    profiles: &Profiles,
    by: &[String],
    within_ms: u64,
) -> Result<Vec<DeviceJob>> {
    let jobs = tables.iter().map(|table| {
        let table = DeviceTable {
            profiles: by.to_vec(),
            ..table.clone()
        };
        let job = device_job(&table, profiles)?;
        Ok(DeviceJob {
            timeout_ms: within_ms,
            interfaces: InterfaceFilter::everything(),
            ..job
        })
    });
    jobs.collect()
}

/// Asks devices for everything, if they answer.
fn ask(tables: Vec<DeviceTable>, profiles: &Profiles) -> Result<(Vec<Found>, Silent)> {
    let (tables, mut silent) = answering(tables, profiles, (NAMED_MS, "devices"))?;
    let all: Vec<String> = profiles.keys().cloned().collect();
    let jobs = jobs(&tables, profiles, &all, ASKED_MS)?;
    let mut found: BTreeMap<usize, Result<Found>> = BTreeMap::new();
    asked(&jobs, AT_ONCE, "devices", |done| {
        let table = &tables[done.number];
        match &done.text {
            Ok(text) => {
                let device = Found::new(table, text, done.client.asker());
                found.insert(done.number, device);
            }
            Err(why) => {
                let why = DisplayName(why.as_bytes()).to_string();
                silent.push((table.address.clone(), why));
            }
        }
    })?;
    Ok((found.into_values().collect::<Result<_>>()?, silent))
}

/// Asks, with the progress on a terminal.
fn asked(
    jobs: &[DeviceJob],
    at_once: usize,
    things: &str,
    mut each: impl FnMut(DeviceAsked),
) -> Result<()> {
    let (mut progress, mut done, mut found) = (Progress::new(), 0, 0);
    let asked = ask_devices(jobs, at_once, |device| {
        done += 1;
        found += usize::from(device.text.is_ok());
        progress.show(|| format!("asked {done} of {} {things}, {found} answered", jobs.len()));
        each(device);
    });
    progress.clear();
    asked.map_err(anyhow::Error::msg)
}

/// Writes new devices: as tables, or as an mrtg.cfg.
fn write_new(options: &DiscoverOptions, found: &[Found], profiles: &Profiles) -> Result<()> {
    let text = match options.mrtg {
        true => mrtg_text(options, found, profiles)?,
        false => found.iter().map(|device| device.text() + "\n").collect(),
    };
    match &options.output {
        None => Ok(output::put(&text)?),
        Some(path) => {
            let cannot = || format!("cannot write {}", path.display());
            let mut file = OpenOptions::new();
            // An mrtg.cfg has communities in it.
            file.write(true).create_new(true).mode(0o640);
            let mut file = file.open(path).with_context(cannot)?;
            file.write_all(text.as_bytes()).with_context(cannot)
        }
    }
}

fn mrtg_text(options: &DiscoverOptions, found: &[Found], profiles: &Profiles) -> Result<String> {
    let jobs = found
        .iter()
        .map(|device| device_job(&device.table, profiles));
    let jobs: Vec<DeviceJob> = jobs.collect::<Result<_>>()?;
    let devices = found.iter().zip(&jobs).map(|(device, job)| CfgDevice {
        address: &device.table.address,
        credentials: &job.credentials,
        interfaces: &device.interfaces,
        answer: &device.answer,
    });
    let devices: Vec<CfgDevice<'_>> = devices.collect();
    let rules = PerlRules::read(
        options.if_filter.as_deref(),
        options.host_template.as_deref(),
        options.if_template.as_deref(),
    )?;
    let words = profiles.values().flat_map(|profile| &profile.table);
    let words = words
        .filter_map(|table| table.words.get("ifType"))
        .flatten();
    let types = words.map(|(number, word)| (word.clone(), number.clone()));
    mrtg::text(
        &devices,
        &CfgOptions {
            refs: &options.ifref,
            descriptions: &options.ifdesc,
            global: &options.global,
            down: options.down,
            loopback: options.loopback,
            rules: &rules,
            types: &types.collect(),
        },
    )
}

/// Lists changes, and makes them if that is asked for.
fn compare(
    options: &DiscoverOptions,
    file: edit::ConfigText,
    fresh: &[Found],
    again: &[Found],
    silent: &Silent,
) -> Result<()> {
    let mut lines = String::new();
    let mut changed: Vec<(usize, Vec<Change>)> = Vec::new();
    for device in fresh {
        lines += &format!(
            "{}: new device, {}\n",
            device.shown_address(),
            device.summary()
        );
    }
    for device in again {
        let tables = file.config.device.iter();
        let mut numbers = tables
            .enumerate()
            .filter(|(_, table)| **table == device.table);
        let Some((number, table)) = numbers.next() else {
            continue;
        };
        let changes = changes::between(&table.interface, &device.all, &device.chosen);
        for change in &changes {
            lines += &format!("{}: {change}\n", device.shown_address());
        }
        changed.push((number, changes));
    }
    for (address, _) in silent {
        lines += &format!("{address}: no answer; its table stays as it is\n");
    }
    output::put(&lines)?;
    let has_changes = !fresh.is_empty() || changed.iter().any(|(_, changes)| !changes.is_empty());
    if !has_changes {
        talk::say(format_args!("kymo: nothing has changed"));
    } else if !options.apply {
        let path = file.path.display();
        talk::say(format_args!(
            "kymo: {path} is as it was; --apply takes these changes"
        ));
    } else {
        let path = file.path.clone();
        file.apply(&changed, fresh)?;
        talk::say(format_args!(
            "kymo: {} has these changes; restart kymo serve",
            path.display()
        ));
    }
    Ok(())
}

/// A configuration for tests of parts.
#[cfg(test)]
fn parsed(text: &str) -> config::Config {
    config::parse(text, "x").unwrap()
}
