//! mrtg.cfg: what MRTG 2.17 reads from it, with its quirks, and what of it is to be asked of which device.
//!
//! [`read`] makes a [`Config`] of a file and its includes, which come through [`Files`]. Texts are not copied: a [`Text`] is a
//! place in a file ([`Config::text`]), so that a file of 30,000 targets costs little more than its bytes. What MRTG refuses is
//! refused; a target that needs Perl is left out, the others work. `docs/mrtg.md` has the differences.

mod config;
mod expression;
mod files;
mod globals;
mod keyword;
mod lines;
mod options;
mod reading;
mod secret;
mod session;
mod target;
mod text;

pub use config::{Config, LeftOut, Problem, Problems, Target, read};
pub use expression::{Direction, Expression, Rounding};
pub use files::Files;
pub use globals::{Globals, LogFormat};
pub use keyword::Keyword;
pub use options::{Choice, Options};
pub use reading::{Asked, Index, Magic, OidRange, Reading, ReferenceKind, SnmpReading, Source};
pub use secret::Secret;
pub use session::{Host, Session, Version};
pub use target::SourceKind;
pub use text::Text;
