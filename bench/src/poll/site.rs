//! A farm of agents, and configurations for it in the form of stock cfgmaker.

use crate::bench::{Bench, on_path};
use crate::fault::{Cannot, Fault, Result};
use kymo_agentfarm::{Farm, Settings};
use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Address of the first device.
const FIRST: Ipv4Addr = Ipv4Addr::new(127, 0, 1, 1);
/// Placeholder for a contender's folder.
const FOLDER: &str = "/FOLDER";
/// Most devices for cfgmaker itself; beyond that it is too slow, so one device's targets are written again for the others.
const ASKED_MAX: u32 = 64;

pub(crate) struct Site {
    pub farm: Farm,
    /// Targets in cfgmaker's form, and the text before them.
    targets: String,
}

/// Global settings of a configuration.
#[derive(Clone, Copy)]
pub(crate) struct Globals {
    /// Seconds; 300 is the default and not written.
    pub interval_s: u64,
    pub is_daemon: bool,
}

/// The version of SNMP that devices are asked in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spoken {
    V2c,
    /// As a user, with SHA-256 and AES-128.
    V3,
}

impl Site {
    pub(crate) fn new(bench: &Bench, devices: u32, interfaces: u32) -> Result<Site> {
        let settings = Settings {
            first: FIRST,
            port: 0,
            devices,
            interfaces,
            community: b"public".to_vec(),
        };
        let farm = Farm::start(settings).cannot("start the farm")?;
        let targets = match devices <= ASKED_MAX {
            true => written_by_cfgmaker(bench, &farm, 0..devices)?,
            false => written_again(bench, &farm)?,
        };
        let site = Site { farm, targets };
        match site.count() == interfaces as usize {
            true => Ok(site),
            false => Err(Fault::new(format!(
                "cfgmaker wrote {} targets",
                site.count()
            ))),
        }
    }

    /// Number of targets.
    pub(crate) fn count(&self) -> usize {
        let lines = self.targets.lines();
        lines.filter(|line| line.starts_with("Target[")).count()
    }

    /// Writes a configuration with its own folder of files, and with more targets after cfgmaker's.
    pub(crate) fn configure(
        &self,
        bench: &Bench,
        globals: Globals,
        more: &str,
    ) -> Result<Configuration> {
        let folder = bench.new_dir("rrd")?;
        let file = bench.new_path("mrtg.cfg");
        let seconds = globals.interval_s;
        let daemon = match globals.is_daemon {
            true => "RunAsDaemon: yes\nNoDetach: yes\n",
            false => "",
        };
        let head = format!("Interval: {}:{:02}\n{daemon}", seconds / 60, seconds % 60);
        let targets = self.targets.replace(FOLDER, &folder.to_string_lossy());
        fs::write(&file, head + &targets + more).cannot("write a configuration")?;
        Ok(Configuration { file, folder })
    }

    /// As [`Site::configure`], with this version.
    pub(crate) fn configure_version(
        &self,
        bench: &Bench,
        globals: Globals,
        spoken: Spoken,
    ) -> Result<Configuration> {
        let configuration = self.configure(bench, globals, "")?;
        if spoken == Spoken::V3 {
            let text = fs::read_to_string(&configuration.file).cannot("read a configuration")?;
            let options = kymo_agentfarm::users::SNMP_OPTIONS;
            let text = text.replace("::::2", "::::3");
            let text = format!("EnableSnmpV3: yes\nSnmpOptions: {options}\n{text}");
            fs::write(&configuration.file, text).cannot("write a configuration")?;
        }
        Ok(configuration)
    }

    /// cfgmaker's name of an interface's file; both numbers from 0.
    pub(super) fn file_name(&self, device: u32, interface: u32) -> String {
        format!("{}_gi0_{}.rrd", self.farm.address(device), interface + 1)
    }

    /// A device in the spelling of configurations.
    pub(super) fn agent(&self, device: u32) -> String {
        agent(&self.farm, device)
    }
}

/// A configuration, and the folder of its files.
pub(crate) struct Configuration {
    pub file: PathBuf,
    pub folder: PathBuf,
}

fn agent(farm: &Farm, device: u32) -> String {
    format!(
        "public@{}:{}::::2",
        farm.address(device),
        farm.settings().port
    )
}

fn written_by_cfgmaker(
    bench: &Bench,
    farm: &Farm,
    devices: std::ops::Range<u32>,
) -> Result<String> {
    let cfgmaker = on_path("cfgmaker").ok_or_else(|| Fault::new("cfgmaker is not installed"))?;
    let file = bench.new_path("cfgmaker");
    let ended = Command::new(cfgmaker)
        .args(["--noreversedns", "--global", &format!("WorkDir: {FOLDER}")])
        .args(["--global", "LogFormat: rrdtool"])
        .args(["--global", "Options[_]: growright,bits"])
        .arg("--output")
        .arg(&file)
        .args(devices.map(|device| agent(farm, device)))
        .env("LANG", "C")
        .output();
    let ended = ended.cannot("run cfgmaker")?;
    let complaint = || Fault::new(String::from_utf8_lossy(&ended.stderr).into_owned());
    let text = fs::read_to_string(&file).map_err(|_| complaint())?;
    Ok(text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .fold(String::new(), |text, line| text + line + "\n"))
}

/// cfgmaker's text for the first device and the last one, which may have one interface less, with other addresses.
fn written_again(bench: &Bench, farm: &Farm) -> Result<String> {
    let last = farm.settings().devices - 1;
    let first = written_by_cfgmaker(bench, farm, 0..1)?;
    let at = first.find("Target[").unwrap_or(0);
    let (head, fuller) = first.split_at(at);
    let lesser = written_by_cfgmaker(bench, farm, last..last + 1)?;
    let (_, lesser) = lesser.split_at(lesser.find("Target[").unwrap_or(0));
    let mut text = String::from(head);
    for device in 0..=last {
        let (block, of) = match farm.interfaces(device) == farm.interfaces(0) {
            true => (fuller, 0),
            false => (lesser, last),
        };
        let address = |device| farm.address(device).to_string();
        text.push_str(&block.replace(&address(of), &address(device)));
    }
    Ok(text)
}

/// Number of .rrd files in a folder.
pub(super) fn rrd_files(folder: &Path) -> Result<usize> {
    let names = fs::read_dir(folder).cannot(format_args!("list {}", folder.display()))?;
    let names = names.flatten().map(|entry| entry.file_name());
    Ok(names
        .filter(|name| name.to_string_lossy().ends_with(".rrd"))
        .count())
}
