//! SNMPv3 with the user-based security model: messages, keys and ciphers. RFC 3412, 3414, 3826, 7860; the longer keys of AES are of
//! draft-blumenthal-aes-usm-04 and draft-reeder-snmpv3-usm-3desede-00.
//!
//! Time, salts and ids are parameters. Keys are erased when they are dropped.

mod cipher;
mod clock;
mod keys;
mod message;
mod protocols;
mod report;
#[cfg(test)]
mod tests;

pub use clock::{BOOTS_MAX, EngineClock, WINDOW_S};
pub use keys::{Key, UsmKeys};
pub use message::{ScopedPdu, UsmHead, UsmMessage, put_usm_message, usm_message_bytes};
pub use protocols::{AuthProtocol, PrivProtocol};
pub use report::UsmReport;
