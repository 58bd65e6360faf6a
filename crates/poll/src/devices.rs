//! Devices that are polled without an mrtg.cfg: tables of a device become metrics with labels, under the names that
//! snmp_exporter gives them.
//!
//! A [`Profile`] is data: the tables, their columns and the metrics' names, those built in as those of a user. A
//! [`DeviceAsker`] polls one device by profiles: it makes packets, takes answers, and at the end has the text of a scrape.
//! Sockets, clocks and the keeping of the text are the caller's.

mod asker;
mod cell;
#[cfg(any(test, feature = "testing"))]
mod fuzz;
mod interface_filter;
mod layout;
mod lldp;
mod profile;
mod scrape_text;
mod table_walk;
#[cfg(test)]
mod tests;

pub use asker::{AnswerTaken, DeviceAccess, DeviceAsker, DeviceSetup};
#[cfg(any(test, feature = "testing"))]
pub use fuzz::fuzz_devices;
pub use interface_filter::{FoundInterface, InterfaceFilter, InterfaceState, Patterns};
pub use layout::check_profile;
pub use profile::{BUILT_IN, ExtractedText, Profile, ProfileTable, ScaledColumns};
