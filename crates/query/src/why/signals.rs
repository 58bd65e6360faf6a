//! The fields that are looked at: their cause, the floor of their distances, and the way that is bad.

use crate::sheet::Pick;

use super::finding::Cause;

/// Direction that is unusual.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Only more than usual.
    Up,
    /// Only less than usual.
    Down,
    /// Either.
    Both,
}

/// Least usual distance, so that little is never news.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Floor {
    /// In the unit of the field.
    Of(f64),
    /// A share of the machine's memory.
    OfMemory(f64),
    /// Percent of all CPUs, where the field is in percent of one; at least a fixed number.
    OfCpus(f64, f64),
    /// Any of it is news, as a kill is.
    Any,
}

/// A field that is looked at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Signal {
    /// Id of the field, with `:*` for all instances.
    pub id: &'static str,
    /// The resource it is about.
    pub cause: Cause,
    /// Least usual distance.
    pub floor: Floor,
    /// The way that is unusual.
    pub way: Way,
    /// Weight of its score: 1 is that of the resource's own measure.
    pub weight: f64,
}

const fn up(id: &'static str, cause: Cause, floor: f64, weight: f64) -> Signal {
    Signal {
        id,
        cause,
        floor: Floor::Of(floor),
        way: Way::Up,
        weight,
    }
}

impl Signal {
    const fn both(mut self) -> Signal {
        self.way = Way::Both;
        self
    }

    const fn down(mut self) -> Signal {
        self.way = Way::Down;
        self
    }

    const fn floor(mut self, floor: Floor) -> Signal {
        self.floor = floor;
        self
    }

    /// The field, if this build has it.
    pub(super) fn pick(&self) -> Option<Pick> {
        Pick::parse(self.id).ok()
    }
}

/// All of them. Floors are guesses at what a person would call nothing; scores begin at three floors.
pub(super) const SIGNALS: &[Signal] = &[
    up("cpu.user_and_nice", Cause::Cpu, 12.0, 1.0),
    up("cpu.sys", Cause::Cpu, 8.0, 0.95),
    up("cpu.soft", Cause::Cpu, 6.0, 0.8),
    up("cpu.irq", Cause::Interrupt, 6.0, 0.8),
    up("pressure.cpu_some", Cause::Cpu, 12.0, 0.9),
    up("cpu.running", Cause::Cpu, 4.0, 0.6),
    up("cpu.forks", Cause::Cpu, 60.0, 0.8),
    up("cpu.ctxsw", Cause::Cpu, 15_000.0, 0.5),
    up("cpu.tasks", Cause::Cpu, 150.0, 0.6),
    up("cpu.steal", Cause::Steal, 5.0, 1.1),
    up("cpu.intr", Cause::Interrupt, 15_000.0, 0.4),
    up("cpu.wait", Cause::Disk, 12.0, 0.7),
    up("cpu.blocked", Cause::Disk, 2.0, 0.6),
    up("pressure.io_some", Cause::Disk, 12.0, 0.9),
    up("disk.util:*", Cause::Disk, 15.0, 1.0),
    up("disk.read_kb:*", Cause::Disk, 8_000.0, 0.7),
    up("disk.write_kb:*", Cause::Disk, 8_000.0, 0.7),
    up("memory.available", Cause::Memory, 0.0, 1.0)
        .floor(Floor::OfMemory(0.03))
        .down(),
    up("memory.swap_used", Cause::Memory, 0.0, 0.8).floor(Floor::OfMemory(0.03)),
    up("memory.swap_in", Cause::Memory, 400_000.0, 1.1),
    up("memory.swap_out", Cause::Memory, 400_000.0, 1.1),
    up("memory.major_faults", Cause::Memory, 300.0, 0.6),
    up("pressure.memory_some", Cause::Memory, 4.0, 1.1),
    up("memory.oom_kills", Cause::OomKill, 0.0, 1.0).floor(Floor::Any),
    up("net.rx_kb:*", Cause::Network, 1_500.0, 0.9).both(),
    up("net.tx_kb:*", Cause::Network, 1_500.0, 0.9).both(),
    up("net.rx_packets:*", Cause::Network, 4_000.0, 0.7).both(),
    up("net.tx_packets:*", Cause::Network, 4_000.0, 0.7).both(),
    up("net.rx_errs:*", Cause::Network, 3.0, 0.9),
    up("net.tx_errs:*", Cause::Network, 3.0, 0.9),
    up("net.rx_drop:*", Cause::Network, 5.0, 0.8),
    up("net.tx_drop:*", Cause::Network, 5.0, 0.8),
    up("tcp.tcp_retransmitted", Cause::Network, 15.0, 0.9),
    up("tcp.tcp_resets", Cause::Network, 50.0, 0.6),
    up("sockets.tcp_allocated", Cause::Network, 500.0, 0.5),
    up("sockets.time_wait", Cause::Network, 2_000.0, 0.4),
    up("infiniband.errors:*", Cause::Network, 5.0, 0.8),
    up("filesystems.used_percent:*", Cause::FileSystem, 2.0, 0.9),
    up("filesystems.files_percent:*", Cause::FileSystem, 2.0, 0.8),
    up("filesystems.read_only:*", Cause::FileSystem, 0.25, 1.1),
    up("inodes.files", Cause::FileSystem, 3_000.0, 0.6),
    up("nfs_mounts.exe_ms:*", Cause::FileSystem, 100.0, 1.0),
    up("nfs_mounts.timeouts:*", Cause::FileSystem, 0.1, 1.0),
    up("nfs_mounts.retransmits:*", Cause::FileSystem, 1.0, 1.0),
    up("numa.misses:*", Cause::Numa, 5_000.0, 0.6),
    up("sensors.celsius:*", Cause::Sensor, 8.0, 0.5),
    up("cgroups.cpu:*", Cause::Cpu, 0.0, 0.55).floor(Floor::OfCpus(10.0, 15.0)),
    up("cgroups.throttled:*", Cause::Cpu, 15.0, 0.9),
    up("cgroups.cpu_some:*", Cause::Cpu, 15.0, 0.5),
    up("cgroups.memory_kb:*", Cause::Memory, 0.0, 0.6).floor(Floor::OfMemory(0.03)),
    up("cgroups.memory_some:*", Cause::Memory, 5.0, 1.0),
    up("cgroups.max:*", Cause::Memory, 5.0, 0.9),
    up("cgroups.swap_kb:*", Cause::Memory, 0.0, 0.6).floor(Floor::OfMemory(0.03)),
    up("cgroups.oom_kills:*", Cause::OomKill, 0.0, 1.0).floor(Floor::Any),
    up("cgroups.io_some:*", Cause::Disk, 15.0, 0.5),
    up("cgroups.read_kb:*", Cause::Disk, 8_000.0, 0.5),
    up("cgroups.write_kb:*", Cause::Disk, 8_000.0, 0.5),
    up("cgroups.pids:*", Cause::Cpu, 150.0, 0.5),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_exists_and_is_there_once() {
        let mut ids: Vec<&str> = SIGNALS.iter().map(|signal| signal.id).collect();
        let missing: Vec<_> = SIGNALS
            .iter()
            .filter(|signal| signal.pick().is_none())
            .map(|signal| signal.id)
            .collect();
        assert_eq!(missing, [""; 0]);
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), SIGNALS.len());
    }
}
