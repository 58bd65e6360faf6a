//! Lists the instances of sources other than processes by the names in folders.

use kymo_sys::kernel_file::Root;

use crate::source::{Scope, is_instance};

/// The present instances of a scope, in the order of their names and numbers.
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

/// The device of a folder of /sys/class: the last two parts of the device's
/// path (`platform/coretemp.0`). `None` if the folder has no device.
pub(crate) fn device_of(root: &Root, folder: &str) -> Option<String> {
    let target = root.link(folder).ok()?;
    let target = String::from_utf8_lossy(&target).into_owned();
    let mut parts: Vec<&str> = target.split('/').collect();
    parts.pop();
    let class = folder.rsplit('/').nth(1)?;
    // A folder named as the class lies between, unless the device has a class of its own.
    if parts.last() == Some(&class) {
        parts.pop();
    }
    match parts[..] {
        [.., "devices", "virtual"] => None,
        [.., kind, name] if !matches!(kind, "" | "..") => Some(format!("{kind}/{name}")),
        _ => None,
    }
}

/// The ports of all devices, whatever their names.
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

/// The names in a folder that begin with `prefix`, without the prefix.
pub(crate) fn named(root: &Root, folder: &str, prefix: &str) -> Vec<String> {
    let mut found = Vec::new();
    if let Ok(folder) = root.folder(folder) {
        // After an error the list has the names read before it.
        let _ = folder.list(|name| {
            let name = name.to_string_lossy();
            found.extend(name.strip_prefix(prefix).map(str::to_string));
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::MadeRoot;

    #[test]
    fn instances_are_in_the_order_of_their_numbers() {
        let made = MadeRoot::new();
        for path in [
            "sys/devices/system/node/node0/meminfo",
            "sys/devices/system/node/node10/meminfo",
            "sys/devices/system/node/node2/meminfo",
            "sys/devices/system/node/nodes/meminfo",
            "sys/devices/system/node/online",
            "sys/class/hwmon/hwmon1/name",
            "sys/class/thermal/thermal_zone0/type",
            "sys/class/thermal/cooling_device0/type",
            "sys/class/powercap/intel-rapl:0/name",
            "sys/devices/system/cpu/cpufreq/policy4/scaling_cur_freq",
            "sys/class/infiniband/mlx5_0/ports/1/state",
            "sys/class/infiniband/mlx5_0/ports/2/state",
            "sys/class/infiniband/mlx5_0/ports/x/state",
            "sys/class/infiniband/hfi1_0/ports/1/state",
        ] {
            made.write(path, "");
        }
        for (scope, expect) in [
            (Scope::Node, &["0", "2", "10"][..]),
            (Scope::Chip, &["1"]),
            (Scope::ThermalZone, &["0"]),
            (Scope::PowerZone, &["intel-rapl:0"]),
            (Scope::FrequencyPolicy, &["4"]),
            (
                Scope::FabricPort,
                &["hfi1_0/ports/1", "mlx5_0/ports/1", "mlx5_0/ports/2"],
            ),
            (Scope::Machine, &[]),
            (Scope::Process, &[]),
        ] {
            assert_eq!(instances(&made.root, scope), expect, "{scope:?}");
        }
        assert_eq!(instances(&MadeRoot::new().root, Scope::Node), [""; 0]);
    }

    #[test]
    fn a_folder_of_a_class_names_its_device() {
        let made = MadeRoot::new();
        for (chip, target, expect) in [
            (
                "hwmon0",
                "../../devices/platform/coretemp.0/hwmon/hwmon0",
                Some("platform/coretemp.0"),
            ),
            (
                "hwmon1",
                "../../devices/pci0000:00/0000:01:00.0/hwmon1",
                Some("pci0000:00/0000:01:00.0"),
            ),
            ("hwmon2", "../../devices/virtual/hwmon/hwmon2", None),
            ("hwmon3", "hwmon", None),
        ] {
            let folder = format!("sys/class/hwmon/{chip}");
            made.link(&folder, target);
            let found = device_of(&made.root, &folder);
            assert_eq!(found.as_deref(), expect, "{chip}");
        }
        assert_eq!(device_of(&made.root, "sys/class/hwmon/hwmon9"), None);
    }
}
