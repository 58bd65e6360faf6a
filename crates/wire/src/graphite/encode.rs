//! Writes points as a client of carbon does. Only tests, fuzz targets and the bench send; the program listens.

use std::io::Write;

use super::Point;

/// Appends `point` as a line with its `\n`. A path or a tag that contains a separator is not read back unchanged.
pub fn put_point(out: &mut Vec<u8>, point: &Point) {
    out.extend_from_slice(point.path);
    for (key, value) in point.tags.iter() {
        out.push(b';');
        out.extend_from_slice(key);
        out.push(b'=');
        out.extend_from_slice(value);
    }
    let time = point.time.unwrap_or(-1.0);
    // Writes to memory do not fail.
    let _ = writeln!(out, " {} {time}", point.value);
}
