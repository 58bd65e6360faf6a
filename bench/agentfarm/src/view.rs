//! A device as one request sees it: its interfaces by index, and their counters at that moment.

use kymo_wire::snmp::Version;

use crate::behaviour::Behaviour;
use crate::traffic::{Direction, counted, rate};

/// A device's number and its interfaces.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Device {
    /// Number of the device, from 0.
    pub(crate) number: u32,
    pub(crate) interfaces: u32,
    /// Number of interfaces of all earlier devices.
    pub(crate) interfaces_before: u32,
}

/// A device at a moment.
pub(crate) struct View<'a> {
    pub(crate) device: Device,
    pub(crate) behaviour: &'a Behaviour,
    pub(crate) version: Version,
    pub(crate) at_ns: u64,
}

impl View<'_> {
    /// The interface whose ifIndex is at this place of the order,
    /// from 0. `None`: it has vanished, or does not exist.
    pub(crate) fn interface_at(&self, place: u32) -> Option<u32> {
        let count = self.device.interfaces;
        if place >= count {
            return None;
        }
        let interface = (place + count - self.behaviour.moved % count) % count;
        self.has(interface).then_some(interface)
    }

    /// Place of an interface's ifIndex in the order.
    pub(crate) fn place_of(&self, interface: u32) -> u32 {
        let count = self.device.interfaces;
        (interface + self.behaviour.moved % count) % count
    }

    pub(crate) fn index_of(&self, interface: u32) -> u32 {
        self.index_at(self.place_of(interface))
    }

    pub(crate) fn index_at(&self, place: u32) -> u32 {
        self.behaviour.first_index.wrapping_add(place)
    }

    pub(crate) fn has(&self, interface: u32) -> bool {
        let left = self
            .device
            .interfaces
            .saturating_sub(self.behaviour.vanished);
        interface < left
    }

    /// Number of interfaces.
    pub(crate) fn interfaces(&self) -> u32 {
        self.device
            .interfaces
            .saturating_sub(self.behaviour.vanished)
    }

    /// Bytes of an interface's counter.
    pub(crate) fn octets(&self, interface: u32, direction: Direction) -> u64 {
        let rate = rate(self.device.number, interface, direction);
        let time_ns = self.at_ns.saturating_sub(self.behaviour.counting_since_ns);
        counted(rate, time_ns).wrapping_add(self.behaviour.counted_before)
    }

    /// The address of an interface: 10.0.0.1 and following ones over the whole farm.
    pub(crate) fn ip_of(&self, interface: u32) -> [u8; 4] {
        let number = self.device.interfaces_before + interface + 1;
        (10 << 24 | number).to_be_bytes()
    }

    /// The interface with this address.
    pub(crate) fn interface_of_ip(&self, parts: impl Iterator<Item = u32>) -> Option<u32> {
        let (mut number, mut count) = (0u32, 0);
        for part in parts.take(5) {
            number = number << 8 | u32::from(u8::try_from(part).ok()?);
            count += 1;
        }
        let before = (10 << 24) + self.device.interfaces_before + 1;
        let interface = number.checked_sub(before)?;
        (count == 4 && interface < self.device.interfaces).then_some(interface)
    }
}
