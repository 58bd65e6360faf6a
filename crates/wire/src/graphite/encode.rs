//! Writes a point as a client of carbon does. Tests, fuzz targets and the bench send with it; the program only listens.

use std::io::Write;

use super::Point;

/// Appends `point` as a line, its `\n` included. A path or a tag with a byte that ends it is not read back as it was.
pub fn put_point(out: &mut Vec<u8>, point: &Point) {
    out.extend_from_slice(point.path);
    for (key, value) in point.tags.iter() {
        out.push(b';');
        out.extend_from_slice(key);
        out.push(b'=');
        out.extend_from_slice(value);
    }
    let time = point.time.unwrap_or(-1.0);
    // Writing to memory cannot fail.
    let _ = writeln!(out, " {} {time}", point.value);
}
