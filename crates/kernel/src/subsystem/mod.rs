//! The subsystems: one file each, one line in [`ALL`] each. A subsystem's table is where its
//! fields and columns are declared; recording, every output format, help and docs are made of it.

use kymo_base::column::Column;
use kymo_base::context::Context;
use kymo_base::field::Field;
use kymo_base::template::Template;

use crate::interpret::Layout;

/// What the lower-case letter of a subsystem shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Summary {
    /// The whole-machine numbers.
    Globals,
    /// The sum over the rows that count.
    Rows,
}

/// One subsystem.
pub struct Subsystem {
    /// collectl's letter, lower case; upper case asks for detail.
    pub letter: char,
    /// Its name in CSV, JSON and docs.
    pub name: &'static str,
    /// One line on what it shows.
    pub help: &'static str,
    /// Kinds of source it reads.
    pub sources: &'static [u8],
    /// Whole-machine numbers.
    pub globals: &'static [Field],
    /// Numbers of each instance.
    pub fields: &'static [Field],
    /// Texts of each instance.
    pub labels: &'static [&'static str],
    /// Finds the fields in a template of one of its sources.
    pub layout: fn(kind: u8, template: &Template, context: &Context) -> Layout,
    /// What the lower-case letter sums up.
    pub summary: Summary,
    /// What the lower-case letter shows.
    pub columns: &'static [Column],
    /// What the upper-case letter shows, a row an instance.
    pub detail: &'static [Column],
}

/// Every subsystem there is.
pub const ALL: &[&Subsystem] = &[];
