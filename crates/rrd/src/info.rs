//! What `rrdtool info` and the daemon's INFO say of a file.

use crate::header::Header;

/// A value; the discriminants are the type numbers of the daemon's INFO.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// 0: a double.
    Val(f64),
    /// 1: a count.
    Cnt(u64),
    /// 2: a text.
    Str(Vec<u8>),
    /// 3: an integer.
    Int(i32),
    /// 4: bytes.
    Blob(Vec<u8>),
}

/// A line: its key and its value.
pub type Entry = (Vec<u8>, Value);

/// All lines, in rrdtool's order. `file_name` as the asker spelt it.
pub fn info(_header: &Header, _file_name: &[u8]) -> Vec<Entry> {
    Vec::new()
}

/// The lines as `rrdtool info` (and `updatev`) print them: `key = value`.
pub fn print(_entries: &[Entry], _out: &mut Vec<u8>) {}

/// The lines as the daemon's INFO sends them: `key type value`.
pub fn print_for_daemon(_entries: &[Entry], _out: &mut Vec<u8>) {}
