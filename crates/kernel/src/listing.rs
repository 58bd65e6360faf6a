//! What there are several of, processes aside: the names of a source's instances, as folders list them.

use kymo_sys::kernel_file::Root;

use crate::source::{Scope, is_instance};

/// The instances of a scope that there are now, in the order of their names.
pub fn instances(root: &Root, scope: Scope) -> Vec<String> {
    let mut found = match scope {
        Scope::Node => named(root, "sys/devices/system/node", "node"),
        Scope::Chip => named(root, "sys/class/hwmon", "hwmon"),
        Scope::ThermalZone => named(root, "sys/class/thermal", "thermal_zone"),
        Scope::PowerZone => named(root, "sys/class/powercap", ""),
        Scope::FrequencyPolicy => named(root, "sys/devices/system/cpu/cpufreq", "policy"),
        Scope::FabricPort => ports(root),
        Scope::Machine
        | Scope::Mount
        | Scope::Cgroup
        | Scope::Process
        | Scope::Thread
        | Scope::Program => Vec::new(),
    };
    found.retain(|name| is_instance(scope, name));
    found.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
    found
}

/// The device that a folder of /sys/class belongs to: the last two folders of where it is (`platform/coretemp.0`). None
/// where there is no device.
pub(crate) fn device_of(root: &Root, folder: &str) -> Option<String> {
    let target = root.link(folder).ok()?;
    let target = String::from_utf8_lossy(&target).into_owned();
    let mut parts: Vec<&str> = target.split('/').collect();
    parts.pop();
    let class = folder.rsplit('/').nth(1)?;
    // A folder of the class lies between, unless the device has a class of its own.
    if parts.last() == Some(&class) {
        parts.pop();
    }
    match parts[..] {
        [.., "devices", "virtual"] => None,
        [.., kind, name] if !matches!(kind, "" | "..") => Some(format!("{kind}/{name}")),
        _ => None,
    }
}

/// The ports of all devices, whatever their names are.
fn ports(root: &Root) -> Vec<String> {
    const DEVICES: &str = "sys/class/infiniband";
    let devices = named(root, DEVICES, "");
    let of_device = |device: &String| -> Vec<String> {
        let ports = named(root, &format!("{DEVICES}/{device}/ports"), "");
        ports
            .iter()
            .map(|port| format!("{device}/ports/{port}"))
            .collect()
    };
    devices.iter().flat_map(of_device).collect()
}

/// What stands behind `prefix` in the names of a folder.
pub(crate) fn named(root: &Root, folder: &str, prefix: &str) -> Vec<String> {
    let mut found = Vec::new();
    if let Ok(folder) = root.folder(folder) {
        // A folder that cannot be listed to its end gives what it gave.
        let _ = folder.list(|name| {
            let name = name.to_string_lossy();
            found.extend(name.strip_prefix(prefix).map(str::to_string));
        });
    }
    found
}
