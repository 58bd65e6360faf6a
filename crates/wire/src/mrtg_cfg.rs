//! Reads an mrtg.cfg as MRTG 2.17 does, quirks included, and finds out which objects of which devices its targets need.
//!
//! [`read`] makes a [`Config`] from a file and its includes, which [`Files`] opens. Texts are not copied: a [`Text`] is a
//! place in a file ([`Config::text`]), so that a file of 30,000 targets costs little more than its bytes. A configuration that
//! MRTG refuses is refused; a target that needs Perl is left out, and the others work. `docs/mrtg.md` lists the differences.

mod abouts;
mod assemble;
mod checks;
mod config;
mod decimal;
mod dump;
mod evaluate;
mod expression;
mod files;
mod formula;
mod glob;
mod global;
mod global_values;
mod globals;
mod keyring;
mod keyword;
mod lines;
mod looks;
#[cfg(any(test, feature = "testing"))]
mod memory_files;
mod mib;
mod numbered;
mod oid_names;
mod oids;
mod options;
mod perl;
mod reader;
mod reading;
mod readings;
mod secret;
mod session;
mod snmp_options;
mod target;
mod target_parser;
mod target_text;
#[cfg(test)]
mod tests;
mod text;
mod trace;
mod user;

pub use assemble::{read, read_traced};
pub use config::{Config, LeftOut, PAGE_KEYWORDS, Problem, Problems, Target};
pub use expression::{Direction, Expression, Rounding};
pub use files::Files;
pub use glob::matching;
pub use globals::{Globals, LogFormat};
pub use keyring::Keyring;
pub use keyword::Keyword;
#[cfg(any(test, feature = "testing"))]
pub use memory_files::MemoryFiles;
pub use options::{Choice, Options};
pub use reading::{
    Index, Magic, ObjectRequest, OidRange, Reading, ReferenceKind, SnmpReading, Source,
};
pub use secret::{ConfigText, Secret};
pub use session::{Access, Host, Session};
pub use target::SourceKind;
pub use text::{Text, decoded};
pub use trace::{Secrets, Trace};
pub use user::{KeySource, User};
