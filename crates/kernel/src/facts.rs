//! The facts of the machine that its numbers need to be understood, read from /proc, /sys
//! and /etc under the root when a recording starts and when a device appears.

use kymo_base::context::Context;
use kymo_base::scan;
use kymo_sys::kernel_file::Root;
use kymo_sys::machine;

/// Most users whose names are kept.
const USERS_MAX: usize = 4096;

/// Reads all facts. What cannot be read is left out.
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

/// The folder with the network statistics of the machine, not of kymo's own namespace when
/// another root is looked at.
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
    let link = root
        .link("etc/localtime")
        .ok()
        .and_then(|target| String::from_utf8(target).ok());
    let from_link = link
        .as_deref()
        .and_then(|path| path.split_once("zoneinfo/"))
        .map(|(_, zone)| zone.to_string());
    if let Some(zone) = std::env::var("TZ")
        .ok()
        .filter(|zone| !zone.is_empty())
        .or(from_link)
    {
        context.set("tz", zone.trim_start_matches(':'));
    }
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
        // A folder that cannot be listed to its end gives what it gave.
        let _ = folder.list(|name| names.push(name.to_string_lossy().into_owned()));
    }
    names.retain(|name| name != "." && name != "..");
    names.sort_unstable();
    names
}

/// Whether a disk is memory: major number 1, or compressed (only zram has `mm_stat`).
fn is_ram(root: &Root, folder: &str) -> bool {
    let ramdisk = text(root, &format!("{folder}/dev")).is_some_and(|dev| dev.starts_with("1:"));
    ramdisk || root.file(&format!("{folder}/mm_stat")).is_ok()
}

/// Who lies on whom, by sysfs: `whole`, `part:DISK`, `on:DISK,DISK`, `loop`, `ram`, `hidden`.
fn disks(root: &Root, context: &mut Context) {
    for disk in names(root, "sys/block") {
        let folder = format!("sys/block/{disk}");
        let below = names(root, &format!("{folder}/slaves"));
        let relation = if text(root, &format!("{folder}/hidden")).as_deref() == Some("1") {
            "hidden".to_string()
        } else if !below.is_empty() {
            format!("on:{}", below.join(","))
        } else if text(root, &format!("{folder}/dev")).is_some_and(|dev| dev.starts_with("7:")) {
            "loop".to_string()
        } else if is_ram(root, &folder) {
            "ram".to_string()
        } else {
            "whole".to_string()
        };
        context.set(&format!("disk.{disk}"), &relation);
        for part in names(root, &folder) {
            if part.starts_with(&disk) && root.file(&format!("{folder}/{part}/partition")).is_ok() {
                context.set(&format!("disk.{part}"), &format!("part:{disk}"));
            }
        }
    }
}

/// Which interfaces are hardware, and their speeds; the kernel's −1 is "unknown" and left out.
fn networks(root: &Root, context: &mut Context) {
    for name in names(root, "sys/class/net") {
        let folder = format!("sys/class/net/{name}");
        let hardware = !names(root, &format!("{folder}/device")).is_empty();
        context.set(
            &format!("net.{name}"),
            if hardware { "physical" } else { "virtual" },
        );
        if let Some(speed) =
            text(root, &format!("{folder}/speed")).filter(|speed| speed.parse::<u32>().is_ok())
        {
            context.set(&format!("speed.{name}"), &speed);
        }
    }
}
