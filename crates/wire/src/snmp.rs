//! SNMP for a poller: requests are encoded once and sent repeatedly with a new id, replies are parsed in
//! place. RFC 1157, 3416, 3417; values become the same text as in MRTG; more kinds than there are numbers (`reading.rs`).
//! Traps and informs are in `notification.rs`.
//!
//! A reply is parsed in the order of its bytes, each length is checked against the enclosing element, and nothing is
//! allocated. The messages around the PDUs of version 3 are in `usm`.

mod ber;
mod malformed;
mod message;
mod notification;
mod object_value;
mod oid;
mod reading;
mod request;
pub mod usm;

pub use malformed::Malformed;
pub use message::{
    ErrorStatus, Message, MessageHead, PduKind, Response, Varbinds, Version, put_message, put_pdu,
    put_varbind,
};
pub use notification::{NotificationMessage, SnmpNotification};
pub use object_value::ObjectValue;
pub use oid::{Oid, arcs, compare_oids, put_oid_text};
pub use request::{Ask, IdWidth, RequestMessage, message_bytes, varbind_bytes};

#[cfg(test)]
mod tests;
