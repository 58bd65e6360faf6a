//! collectd's binary protocol as its network plugin sends it over UDP, the commands of its unixsock plugin, and the files that
//! a hub needs for them: types.db, AuthFile, and the paths and definitions of .rrd files. `docs/formats/collectd.md` specifies
//! every byte.
//!
//! [`Datagram`] splits a datagram into sections that are plain, signed or encrypted; [`Parts`] splits a section into
//! values and notifications. Neither allocates.

mod auth_file;
mod bad_line;
mod cdtime;
mod commands;
mod encode;
#[cfg(test)]
mod hex;
mod identifier;
mod parts;
mod replay;
mod rrd_definition;
mod rrd_text;
mod security;
mod types_db;
mod users;
mod value;

pub use auth_file::read_auth_file;
pub use bad_line::BadLine;
pub use cdtime::Cdtime;
pub use commands::{
    COMMAND_MAX, Command, CommandRefusal, FlushOrder, ListedValues, PutNotif, PutVal,
};
pub use encode::{Encoder, PACKET_DEFAULT, Pushed, ValueList, encrypt, put_notification, sign};
pub use identifier::{Identifier, PathRefusal, escape};
pub use parts::{
    Bad, Changed, Dropped, Item, MESSAGE_MAX, NAME_MAX, Notification, Parts, Severity, Values,
};
pub use replay::{Admission, ReplayWindow};
pub use rrd_definition::{Archives, Cf, RrdDefinition, RrdSettings};
pub use rrd_text::{put_update, put_value};
pub use security::{Datagram, Proof, Protection, Section, SecurityLevel};
pub use types_db::{DataSource, Fit, TypesDb, put_source_name};
pub use users::{USER_MAX, Users};
pub use value::{RawValues, VALUES_MAX, Value, ValueKind};
