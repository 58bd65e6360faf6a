//! Measures the time to read an mrtg.cfg, and the memory that the result keeps. Without a file: cfgmaker's output for 31,640
//! interfaces. `cargo run --release -p kymo-wire --example mrtg_cfg_speed -- [mrtg.cfg]`

#![allow(clippy::print_stderr, reason = "a person reads it")]
#![allow(clippy::unwrap_used)]

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use kymo_wire::mrtg_cfg::{Config, Files, read};

/// Reads the files of the disk.
struct Disk;

fn path(bytes: &[u8]) -> &Path {
    Path::new(std::ffi::OsStr::from_bytes(bytes))
}

impl Files for Disk {
    fn read(&mut self, name: &[u8]) -> Result<Vec<u8>, String> {
        std::fs::read(path(name)).map_err(|error| error.to_string())
    }

    fn is_readable(&mut self, name: &[u8]) -> bool {
        self.exists(name)
    }

    fn names(&mut self, _: &[u8]) -> Vec<Vec<u8>> {
        Vec::new()
    }

    fn is_dir(&mut self, name: &[u8]) -> bool {
        path(name).is_dir()
    }

    fn exists(&mut self, name: &[u8]) -> bool {
        path(name).exists()
    }
}

/// A configuration as cfgmaker 2.17 writes it, comments included.
fn written(devices: usize, interfaces: usize) -> Vec<u8> {
    let mut out = String::from(
        "# Created by\n# /usr/bin/cfgmaker public@10.0.0.1\n\nWorkDir: /tmp\nLogFormat: rrdtool\nEnableIPv6: no\n",
    );
    for device in 0..devices {
        let host = format!("10.{}.{}.1", device / 250, device % 250);
        out += &format!("\n######\n# System: core{device}\n# Contact: noc@example.org\n######\n");
        for interface in 1..=interfaces {
            let name = format!("TenGigabitEthernet{}/{}", interface / 48, interface % 48);
            let target = format!("{host}_{}", name.replace('/', "_"));
            out += &format!(
                "\n### Interface {interface} >> Descr: '{name}' | Name: '{name}' | Ip: '' | Eth: '00-00-5e-00-53-01' ###\n\n\
                Target[{target}]: #{name}:public@{host}:::::2\n\
                SetEnv[{target}]: MRTG_INT_IP=\"\" MRTG_INT_DESCR=\"{name}\"\n\
                MaxBytes[{target}]: 1250000000\n\
                Title[{target}]: Traffic Analysis for {name} -- core{device}\n\
                PageTop[{target}]: <h1>Traffic Analysis for {name} -- core{device}</h1>\n\
                \t\t<div id=\"sysdetails\">\n\t\t\t<table>\n"
            );
            for (label, value) in [
                ("System:", format!("core{device} in rack 12, room 4")),
                ("Maintainer:", "noc@example.org".to_string()),
                ("Description:", format!("{name}  to edge{interface} port 3")),
                ("ifType:", "ethernetCsmacd (6)".to_string()),
                ("ifName:", name.clone()),
                ("Max Speed:", "1250.0 MBytes/s".to_string()),
            ] {
                out += &format!(
                    "\t\t\t\t<tr>\n\t\t\t\t\t<td>{label}</td>\n\t\t\t\t\t<td>{value}</td>\n\t\t\t\t</tr>\n"
                );
            }
            out += "\t\t\t</table>\n\t\t</div>\n\n";
        }
    }
    out.into_bytes()
}

fn cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse().unwrap()
}

fn anonymous_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon:"));
    let number = line.unwrap().split_whitespace().nth(1);
    number.unwrap().parse().unwrap()
}

fn main() {
    let made = PathBuf::from(format!("/tmp/mrtg_cfg_speed.{}.cfg", std::process::id()));
    let name = std::env::args_os().nth(1).map(PathBuf::from);
    if name.is_none() {
        // Measures in a second process, so that the memory of the generator does not count.
        std::fs::write(&made, written(320, 99)).unwrap();
        let own = std::env::current_exe().unwrap();
        let status = std::process::Command::new(own).arg(&made).status();
        std::fs::remove_file(&made).unwrap();
        assert!(status.unwrap().success());
        return;
    }
    let name = name.unwrap();
    let size = std::fs::metadata(&name).unwrap().len();
    let read_it = || -> Config {
        read(name.as_os_str().as_bytes(), &mut Disk).unwrap_or_else(|problems| {
            panic!("{}", problems.0[0]);
        })
    };
    let (before, began) = (anonymous_kb(), cpu_ns());
    let config = read_it();
    let (first, after) = (cpu_ns() - began, anonymous_kb());
    eprintln!(
        "{} targets, {} readings, {} devices, {:.1} MB; first time {:.1} ms, {:.1} MB of memory",
        config.targets().len(),
        config.readings().len(),
        config.sessions().len(),
        size as f64 / 1e6,
        first as f64 / 1e6,
        (after - before) as f64 / 1e3,
    );
    drop(config);
    let mut best = u64::MAX;
    for _ in 0..10 {
        let began = cpu_ns();
        let config = read_it();
        best = best.min(cpu_ns() - began);
        drop(config);
    }
    eprintln!("best of ten: {:.1} ms", best as f64 / 1e6);
}
