//! Facts about the machine that its numbers need, read from /proc, /sys and
//! /etc under the root when a recording starts and when a device appears.

use std::collections::{BTreeMap, BTreeSet};

use kymo_base::context::Context;
use kymo_base::scan;
use kymo_sys::kernel_file::Root;
use kymo_sys::machine;

use crate::subsystem::net;

/// Limit of the number of users whose names are kept.
const USERS_MAX: usize = 4096;

/// Reads all facts; leaves out unreadable ones.
pub fn gather(root: &Root) -> Context {
    let mut context = Context::default();
    let (kernel, arch) = machine::kernel();
    let host = text(root, "proc/sys/kernel/hostname").unwrap_or_else(machine::host);
    context.set("host", host.split('.').next().unwrap_or_default());
    context.set(
        "boot_id",
        &text(root, "proc/sys/kernel/random/boot_id").unwrap_or_default(),
    );
    context.set(
        "kernel",
        &text(root, "proc/sys/kernel/osrelease").unwrap_or(kernel),
    );
    context.set("arch", &arch);
    context.set("hz", &machine::clock_ticks().to_string());
    context.set("page_size", &machine::page_size().to_string());
    context.set("net_path", &net_path(root));
    context.set("kymo", env!("CARGO_PKG_VERSION"));
    time_zone(root, &mut context);
    cpus_and_memory(root, &mut context);
    users(root, &mut context);
    disks(root, &mut context);
    networks(root, &mut context);
    context
}

/// The folder with the network statistics of the machine. With another root, that is not kymo's own network namespace.
pub fn net_path(root: &Root) -> String {
    let own = root.path() == std::path::Path::new("/");
    let of_init = !own && root.file("proc/1/net/dev").is_ok();
    if of_init {
        "proc/1/net"
    } else if own {
        "proc/net"
    } else {
        "proc/self/net"
    }
    .to_string()
}

fn text(root: &Root, path: &str) -> Option<String> {
    let mut bytes = Vec::new();
    root.read(path, &mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes).trim().to_string();
    (!text.is_empty()).then_some(text)
}

fn time_zone(root: &Root, context: &mut Context) {
    if let Some(zone) = zone(root) {
        context.set("tz", &zone);
    }
}

/// The time zone of this machine and process, as a name of the database or as a rule of POSIX; `None`: UTC.
pub fn zone(root: &Root) -> Option<String> {
    zone_of(root, std::env::var("TZ").ok().as_deref())
}

/// The zone in `TZ`, in every form that date(1) accepts. An invalid value is returned as it is, so that a view can name it.
fn zone_of(root: &Root, variable: Option<&str>) -> Option<String> {
    match variable.map(|variable| variable.strip_prefix(':').unwrap_or(variable)) {
        None => {
            let local = "etc/localtime";
            let is_there = root.link(local).is_ok() || root.file(local).is_ok();
            is_there.then(|| zone_of_file(root, &format!("/{local}")))
        }
        Some("") => None,
        Some(path) if path.starts_with('/') => Some(zone_of_file(root, path)),
        Some(zone) => Some(zone.to_string()),
    }
}

/// The zone of a file: its name in the database, by its path or its link; else the rule at its end; else its path.
fn zone_of_file(root: &Root, path: &str) -> String {
    let relative = path.trim_start_matches('/');
    let link = root
        .link(relative)
        .ok()
        .and_then(|target| String::from_utf8(target).ok());
    if let Some(zone) = named(relative).or_else(|| named(link.as_deref()?)) {
        return zone;
    }
    let mut bytes = Vec::new();
    if root.read(relative, &mut bytes).is_err() {
        return path.to_string();
    }
    // The file is a copy or a bind mount, so /etc/timezone may name the zone.
    if let Some(zone) = text(root, "etc/timezone") {
        let mut named = Vec::new();
        let path = format!("usr/share/zoneinfo/{zone}");
        if root.read(&path, &mut named).is_ok() && named == bytes {
            return zone;
        }
    }
    rule_of(&bytes).unwrap_or_else(|| path.to_string())
}

/// The zone in a path, such as `Europe/Berlin` in `/usr/share/zoneinfo/Europe/Berlin`, also below `posix/`.
fn named(path: &str) -> Option<String> {
    let (_, zone) = path.split_once("zoneinfo/")?;
    Some(zone.strip_prefix("posix/").unwrap_or(zone).to_string())
}

/// Reads a zone's file by name from this machine's database.
pub fn zone_file(name: &str) -> Option<Vec<u8>> {
    let is_plain = |part: &str| !part.is_empty() && !part.starts_with('.');
    let mut bytes = Vec::new();
    let root = Root::open(std::path::Path::new("/"))
        .ok()
        .filter(|_| name.split('/').all(is_plain))?;
    let path = format!("usr/share/zoneinfo/{name}");
    root.read(&path, &mut bytes).ok().map(|()| bytes)
}

/// The rule at the end of a file of the database, between two newlines (RFC 9636, 3.3).
fn rule_of(file: &[u8]) -> Option<String> {
    let end = file.strip_prefix(b"TZif")?.strip_suffix(b"\n")?;
    let begin = end.iter().rposition(|&b| b == b'\n')?;
    let rule = String::from_utf8(end[begin + 1..].to_vec()).ok()?;
    (!rule.is_empty()).then_some(rule)
}

fn cpus_and_memory(root: &Root, context: &mut Context) {
    let mut bytes = Vec::new();
    if root.read("proc/stat", &mut bytes).is_ok() {
        let cpus = scan::lines(&bytes)
            .filter(|l| l.starts_with(b"cpu") && l.get(3).is_some_and(u8::is_ascii_digit));
        context.set("cpus", &cpus.count().to_string());
    }
    if root.read("proc/meminfo", &mut bytes).is_ok() {
        for line in scan::lines(&bytes) {
            let mut words = scan::words(line);
            let key = match words.next() {
                Some(b"MemTotal:") => "mem_kb",
                Some(b"SwapTotal:") => "swap_kb",
                _ => continue,
            };
            context.set(
                key,
                &String::from_utf8_lossy(words.next().unwrap_or_default()),
            );
        }
    }
}

fn users(root: &Root, context: &mut Context) {
    let mut bytes = Vec::new();
    if root.read("etc/passwd", &mut bytes).is_err() {
        return;
    }
    for line in String::from_utf8_lossy(&bytes).lines().take(USERS_MAX) {
        let mut parts = line.split(':');
        if let (Some(name), Some(uid)) = (parts.next(), parts.nth(1))
            && uid.parse::<u32>().is_ok()
        {
            context.set(&format!("uid.{uid}"), name);
        }
    }
}

/// Names in a folder, sorted.
fn names(root: &Root, path: &str) -> Vec<String> {
    let mut names = Vec::new();
    if let Ok(folder) = root.folder(path) {
        // After an error the list has the names read before it.
        let _ = folder.list(|name| names.push(name.to_string_lossy().into_owned()));
    }
    names.retain(|name| name != "." && name != "..");
    names.sort_unstable();
    names
}

/// Returns true if a disk is memory: major number 1, or compressed (only zram has `mm_stat`).
fn is_ram(root: &Root, folder: &str) -> bool {
    let ramdisk = text(root, &format!("{folder}/dev")).is_some_and(|dev| dev.starts_with("1:"));
    ramdisk || root.file(&format!("{folder}/mm_stat")).is_ok()
}

/// Devices that lie on others without saying so in sysfs: DRBD and volumes of ZFS.
const LAYERED: [&str; 2] = ["drbd", "zd"];

/// Returns true if a name is `start` followed by a number.
fn is_numbered(name: &str, start: &str) -> bool {
    let number = name.strip_prefix(start).unwrap_or_default();
    !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
}

/// Replaces `!` by `/`: a folder's name has no `/`, so sysfs spells `cciss/c0d0` as `cciss!c0d0`.
fn spelled(name: &str) -> String {
    name.replace('!', "/")
}

/// Adds the relations of disks, by sysfs: `whole`, `part:DISK`, `on:DISK,DISK`, `loop`, `ram`, `hidden`.
fn disks(root: &Root, context: &mut Context) {
    for disk in names(root, "sys/block") {
        let folder = format!("sys/block/{disk}");
        let below = names(root, &format!("{folder}/slaves"));
        let relation = if text(root, &format!("{folder}/hidden")).as_deref() == Some("1") {
            "hidden".to_string()
        } else if !below.is_empty() {
            format!("on:{}", spelled(&below.join(",")))
        } else if text(root, &format!("{folder}/dev")).is_some_and(|dev| dev.starts_with("7:")) {
            "loop".to_string()
        } else if is_ram(root, &folder) {
            "ram".to_string()
        } else if LAYERED.iter().any(|start| is_numbered(&disk, start)) {
            "on:?".to_string()
        } else {
            "whole".to_string()
        };
        context.set(&format!("disk.{}", spelled(&disk)), &relation);
        for part in names(root, &folder) {
            if part.starts_with(&disk) && root.file(&format!("{folder}/{part}/partition")).is_ok() {
                let (part, disk) = (spelled(&part), spelled(&disk));
                context.set(&format!("disk.{part}"), &format!("part:{disk}"));
            }
        }
    }
}

/// For each device, by number, the devices below it, so that a control group's I/O is counted once. The map also has the disks
/// without any below, so that a device missing from it is known to be new.
pub(crate) fn layers(root: &Root) -> BTreeMap<u64, Layer> {
    let disks = names(root, "sys/block");
    let number = |disk: &str| device(text(root, &format!("sys/block/{disk}/dev"))?.as_bytes());
    let mut layers = BTreeMap::new();
    for disk in &disks {
        let Some(own) = number(disk) else { continue };
        let mut below = BTreeSet::new();
        let mut ways = slaves(root, disk, &disks);
        while let Some(way) = ways.pop() {
            if number(&way).is_some_and(|number| below.insert(number)) {
                ways.extend(slaves(root, &way, &disks));
            }
        }
        let folder = format!("sys/block/{disk}");
        let is_loop = own >> 32 == LOOP_MAJOR;
        let layer = match (is_loop || is_ram(root, &folder), below.is_empty()) {
            (true, _) => Layer::Never,
            (false, true) => Layer::Lowest,
            (false, false) => Layer::On(below.into_iter().collect()),
        };
        layers.insert(own, layer);
    }
    layers
}

const LOOP_MAJOR: u64 = 7;

/// Position of a disk in the stack of devices.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Layer {
    /// Backed by a file or by memory: its I/O is that of no disk, or of another disk.
    Never,
    /// No disk is below it.
    Lowest,
    /// The numbers of the disks below it.
    On(Vec<u64>),
}

/// The disks directly below a disk; a partition is replaced by its disk.
fn slaves(root: &Root, disk: &str, disks: &[String]) -> Vec<String> {
    let below = names(root, &format!("sys/block/{disk}/slaves"));
    let whole = |name: String| {
        if disks.binary_search(&name).is_ok() {
            return name;
        }
        let is_part = |disk: &&String| {
            name.starts_with(disk.as_str())
                && root
                    .file(&format!("sys/block/{disk}/{name}/partition"))
                    .is_ok()
        };
        disks.iter().find(is_part).cloned().unwrap_or(name)
    };
    below.into_iter().map(whole).collect()
}

/// Parses a device number such as `8:16`; major and minor form one number.
pub(crate) fn device(text: &[u8]) -> Option<u64> {
    let colon = text.iter().position(|&b| b == b':')?;
    let (major, minor) = (
        scan::number(&text[..colon])?,
        scan::number(&text[colon + 1..])?,
    );
    (major < 1 << 32 && minor < 1 << 32).then_some(major << 32 | minor)
}

/// Rank of an interface. Where no interface is hardware, as in a container, the interfaces of the best rank count.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    Hardware,
    /// An interface whose name is one that hardware has.
    Named,
    /// An interface that is part of no other and has none of this machine below it.
    Outer,
    /// As `Outer`, but of another type than Ethernet.
    OuterOther,
    /// An interface whose traffic passes through others.
    Inner,
}

/// Adds the hardware interfaces, or the outermost ones if there are none,
/// and their speeds. The kernel's speed −1 is unknown and left out.
fn networks(root: &Root, context: &mut Context) {
    let mut all: Vec<(String, Standing)> = Vec::new();
    for name in names(root, "sys/class/net") {
        let folder = format!("sys/class/net/{name}");
        if let Some(speed) =
            text(root, &format!("{folder}/speed")).filter(|speed| speed.parse::<u32>().is_ok())
        {
            context.set(&format!("speed.{name}"), &speed);
        }
        let standing = standing(root, &name, &folder);
        all.push((name, standing));
    }
    let nearest = all.iter().map(|(_, standing)| *standing).min();
    for (name, standing) in all {
        let fact = match standing {
            Standing::Hardware => "physical",
            Standing::Inner => "virtual",
            _ if Some(standing) == nearest => "outer",
            _ => "virtual",
        };
        context.set(&format!("net.{name}"), fact);
    }
}

fn standing(root: &Root, name: &str, folder: &str) -> Standing {
    const TUNNELS: [&str; 6] = ["768", "769", "776", "778", "823", "772"];
    const INSIDE: [&str; 5] = ["dummy", "ifb", "virbr", "docker", "gretap"];
    let has = |path: &str| !names(root, &format!("{folder}/{path}")).is_empty();
    let number = |path: &str| text(root, &format!("{folder}/{path}"));
    if has("device") {
        // A port of a switch lies on the interface of its processor, and a virtual function belongs to a driving interface; the
        // other interface counts the same bytes.
        let (own, below) = (number("ifindex"), number("iflink"));
        let lies_on_another = own.is_some() && below.is_some() && own != below;
        return match lies_on_another || has("master/device") {
            true => Standing::Inner,
            false => Standing::Hardware,
        };
    }
    let files = names(root, folder);
    let is_on_another = files.iter().any(|file| file.starts_with("lower_"));
    let kind = number("type").unwrap_or_default();
    if name == "lo" || is_on_another || has("bridge") || TUNNELS.contains(&kind.as_str()) {
        return Standing::Inner;
    }
    let is_part = files.iter().any(|file| file == "master");
    match (net::counts_by_name(name.as_bytes()), is_part) {
        (true, _) => Standing::Named,
        _ if is_part || INSIDE.iter().any(|start| name.starts_with(start)) => Standing::Inner,
        _ if kind == "1" => Standing::Outer,
        _ => Standing::OuterOther,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::tests::MadeRoot;

    #[test]
    fn numbers_of_devices() {
        for (text, number) in [
            ("8:16", Some((8 << 32) + 16)),
            ("7:7", Some((7 << 32) + 7)),
            ("0:0", Some(0)),
            ("4294967295:4294967295", Some(u64::MAX)),
            ("4294967296:0", None),
            ("0:4294967296", None),
            ("8", None),
            (":16", None),
            ("8:", None),
        ] {
            assert_eq!(device(text.as_bytes()), number, "{text}");
        }
    }

    #[test]
    fn files_of_zones_are_below_the_database() {
        let utc = zone_file("UTC").expect("each machine has it");
        assert!(utc.starts_with(b"TZif"));
        for name in [
            "Nowhere/At_all",
            "../../../etc/passwd",
            "/etc/passwd",
            "./UTC",
            "",
            "Etc//UTC",
        ] {
            assert_eq!(zone_file(name), None, "{name}");
        }
    }

    /// Zones by `TZ` and by a made-up /etc: a link, copies of a zone
    /// with and without its name, a file elsewhere, and invalid text.
    #[test]
    fn zones_as_date_finds_them() {
        const BERLIN: &str = "TZif2...\0\nCET-1CEST,M3.5.0,M10.5.0/3\n";
        const RULE: Option<&str> = Some("CET-1CEST,M3.5.0,M10.5.0/3");
        const NAME: Option<&str> = Some("Europe/Berlin");
        let made = MadeRoot::new();
        made.write("usr/share/zoneinfo/Europe/Berlin", BERLIN);
        made.write("etc/zone", BERLIN);
        made.write("etc/old", "TZif\0...");
        let root = &made.root;
        assert_eq!(zone_of(root, None), None);
        for target in [
            "../usr/share/zoneinfo/Europe/Berlin",
            "/usr/share/zoneinfo/posix/Europe/Berlin",
        ] {
            made.link("etc/localtime", target);
            let found = zone_of(root, None);
            assert_eq!(found.as_deref(), NAME, "{target}");
            made.remove("etc/localtime");
        }
        made.write("etc/localtime", BERLIN);
        assert_eq!(zone_of(root, None).as_deref(), RULE);
        for (timezone, expect) in [("Europe/Berlin\n", NAME), ("Asia/Tokyo\n", RULE)] {
            made.write("etc/timezone", timezone);
            assert_eq!(zone_of(root, None).as_deref(), expect, "{timezone}");
        }
        for (variable, expect) in [
            ("", None),
            (":", None),
            ("Asia/Tokyo", Some("Asia/Tokyo")),
            (":Asia/Tokyo", Some("Asia/Tokyo")),
            ("CET-1CEST", Some("CET-1CEST")),
            ("/usr/share/zoneinfo/Europe/Berlin", NAME),
            (":/etc/zone", RULE),
            ("/etc/old", Some("/etc/old")),
            ("/no/such", Some("/no/such")),
        ] {
            assert_eq!(
                zone_of(root, Some(variable)).as_deref(),
                expect,
                "{variable}"
            );
        }
    }

    #[test]
    fn a_file_of_the_database_ends_with_its_rule() {
        for (file, expect) in [
            (
                &b"TZif2...\0\nCET-1CEST,M3.5.0,M10.5.0/3\n"[..],
                Some("CET-1CEST,M3.5.0,M10.5.0/3"),
            ),
            (b"TZif2...\0\n\n", None),
            (b"TZif\0...", None),
            (b"CET-1\nCET-1\n", None),
            (b"", None),
        ] {
            assert_eq!(rule_of(file).as_deref(), expect, "{file:?}");
        }
    }
}
