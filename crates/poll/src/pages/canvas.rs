//! A picture of few colours. Lines have the pixels of libgd, which MRTG draws with, so that both programs' graphs are the same.

use super::font;
use flate2::{Compress, Compression, FlushCompress, Status};
use std::cell::RefCell;
use std::io;

/// Most pixels of a side. A graph of usual size has 500 × 135.
pub(super) const SIDE_MAX: i64 = 8192;
/// Coordinates beyond this are drawn there, far outside of each picture.
const FAR: i64 = 20_000;
/// PNG's filter by which a row has the differences to the one above.
const UP: u8 = 2;
/// Level of deflate: the quickest one whose files are no larger than libgd's.
const LEVEL: Compression = Compression::new(3);

/// A picture and its palette.
pub(super) struct Canvas {
    width: i64,
    height: i64,
    palette: Vec<[u8; 3]>,
    /// A colour for each pixel, row by row.
    pixels: Vec<u8>,
    dots: Dots,
}

/// A colour of the palette.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Colour(u8);

/// Looks of a line.
#[derive(Clone, Copy)]
pub(super) enum Stroke {
    /// One pixel.
    Thin(Colour),
    /// Two pixels, the line's and the one above.
    Thick(Colour),
    /// Each third pixel, in the colour of [`Canvas::dot`]. A line goes on where the last one ended.
    Dotted,
}

#[derive(Default)]
struct Dots {
    colour: Colour,
    /// Pixels since the last dot.
    at: u8,
}

/// Looks of the background.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Backdrop {
    Opaque,
    Clear,
}

/// Pixels from the left and from the top.
pub(super) type Point = (i64, i64);

impl Canvas {
    /// A picture in one colour, which the palette begins with. `None`: a side is longer than [`SIDE_MAX`].
    pub(super) fn new(width: i64, height: i64, background: [u8; 3]) -> Option<Canvas> {
        let is_drawable = |side| (1..=SIDE_MAX).contains(&side);
        let pixels = usize::try_from(width.checked_mul(height)?).ok()?;
        if !is_drawable(width) || !is_drawable(height) {
            return None;
        }
        Some(Canvas {
            width,
            height,
            palette: vec![background],
            pixels: vec![0; pixels],
            dots: Dots::default(),
        })
    }

    /// Adds a colour to the palette, of which there are 16 at most.
    pub(super) fn colour(&mut self, rgb: [u8; 3]) -> Colour {
        assert!(self.palette.len() < 16, "BUG: a pixel has four bits");
        self.palette.push(rgb);
        Colour(u8::try_from(self.palette.len() - 1).unwrap_or(0))
    }

    /// Begins dotted lines of a colour.
    pub(super) fn dot(&mut self, colour: Colour) {
        self.dots = Dots { colour, at: 0 };
    }

    /// Draws a line with both of its ends.
    pub(super) fn line(&mut self, from: Point, to: Point, stroke: Stroke) {
        let near = |(x, y): Point| (x.clamp(-FAR, FAR), y.clamp(-FAR, FAR));
        let ((x1, y1), (x2, y2)) = (near(from), near(to));
        let (right, bottom) = (self.width - 1, self.height - 1);
        if x1 == x2 {
            let rows = y1.min(y2).max(0)..=y1.max(y2).min(bottom);
            if (0..=right).contains(&x1) {
                rows.for_each(|y| self.touch(x1, y, stroke));
            }
        } else if y1 == y2 {
            let columns = x1.min(x2).max(0)..=x1.max(x2).min(right);
            if (0..=bottom).contains(&y1) {
                columns.for_each(|x| self.touch(x, y1, stroke));
            }
        } else if (y2 - y1).abs() <= (x2 - x1).abs() {
            slope((x1, y1), (x2, y2), |x, y| self.touch(x, y, stroke));
        } else {
            slope((y1, x1), (y2, x2), |y, x| self.touch(x, y, stroke));
        }
    }

    /// Draws the outline of a rectangle with these opposite corners.
    pub(super) fn rectangle(&mut self, (x1, y1): Point, (x2, y2): Point, colour: Colour) {
        let stroke = Stroke::Thin(colour);
        self.line((x1, y1), (x2, y1), stroke);
        self.line((x1, y2), (x2, y2), stroke);
        self.line((x1, y1), (x1, y2), stroke);
        self.line((x2, y1), (x2, y2), stroke);
    }

    /// Writes a text from its upper left corner to the right.
    pub(super) fn text(&mut self, (x, y): Point, text: &str, colour: Colour) {
        for (place, character) in (0..).zip(text.chars()) {
            let left = x + place * font::WIDTH;
            each_dot(character, |column, row| {
                self.put(left + column, y + row, colour);
            });
        }
    }

    /// Writes a text from its lower left corner upwards.
    pub(super) fn text_up(&mut self, (x, y): Point, text: &str, colour: Colour) {
        for (place, character) in (0..).zip(text.chars()) {
            let bottom = y - place * font::WIDTH;
            each_dot(character, |column, row| {
                self.put(x + row, bottom - column, colour);
            });
        }
    }

    fn touch(&mut self, x: i64, y: i64, stroke: Stroke) {
        match stroke {
            Stroke::Thin(colour) => self.put(x, y, colour),
            Stroke::Thick(colour) => {
                self.put(x, y - 1, colour);
                self.put(x, y, colour);
            }
            Stroke::Dotted => {
                if self.dots.at == 0 {
                    self.put(x, y, self.dots.colour);
                }
                self.dots.at = (self.dots.at + 1) % 3;
            }
        }
    }

    fn put(&mut self, x: i64, y: i64, colour: Colour) {
        if (0..self.width).contains(&x)
            && let Ok(place) = usize::try_from(y * self.width + x)
            && let Some(pixel) = self.pixels.get_mut(place)
        {
            *pixel = colour.0;
        }
    }

    /// The picture as a PNG, with four bits for a pixel.
    pub(super) fn png(&self, backdrop: Backdrop) -> io::Result<Vec<u8>> {
        let mut out = Vec::with_capacity(8 << 10);
        let side = |pixels| u32::try_from(pixels).unwrap_or(0);
        let (width, height) = (side(self.width), side(self.height));
        let mut encoder = png::Encoder::new(&mut out, width, height);
        encoder.set_color(png::ColorType::Indexed);
        encoder.set_depth(png::BitDepth::Four);
        encoder.set_palette(self.palette.concat());
        if backdrop == Backdrop::Clear {
            encoder.set_trns(&[0][..]);
        }
        let mut writer = encoder.write_header()?;
        writer.write_chunk(png::chunk::IDAT, &packed(&self.differences())?)?;
        writer.finish()?;
        Ok(out)
    }

    /// The rows of the PNG: a byte that names the filter, and the difference of each byte to the row above.
    fn differences(&self) -> Vec<u8> {
        let row = usize::try_from(self.width).unwrap_or(1);
        let bytes = row.div_ceil(2);
        let mut out = Vec::with_capacity(self.pixels.len());
        let mut above = vec![0; bytes];
        for row in self.pixels.chunks(row) {
            out.push(UP);
            for (pair, above) in row.chunks(2).zip(&mut above) {
                let byte = pair[0] << 4 | pair.get(1).copied().unwrap_or(0);
                out.push(byte.wrapping_sub(*above));
                *above = byte;
            }
        }
        out
    }
}

/// A zlib stream of these bytes.
fn packed(bytes: &[u8]) -> io::Result<Vec<u8>> {
    thread_local! {
        /// One for all graphs of a thread: the 300 kB of a new one cost more than a graph.
        static DEFLATE: RefCell<Compress> = RefCell::new(Compress::new(LEVEL, true));
    }
    DEFLATE.with_borrow_mut(|deflate| {
        deflate.reset();
        let mut out = Vec::with_capacity(bytes.len() + bytes.len() / 64 + 1024);
        match deflate.compress_vec(bytes, &mut out, FlushCompress::Finish)? {
            Status::StreamEnd => Ok(out),
            Status::Ok | Status::BufError => Err(io::ErrorKind::OutOfMemory.into()),
        }
    })
}

/// Passes columns and rows of a character's dark pixels.
fn each_dot(character: char, mut dot: impl FnMut(i64, i64)) {
    for (row, bits) in (0..font::HEIGHT).zip(font::rows(character)) {
        for column in (0..font::WIDTH).filter(|column| bits & 0x80 >> column != 0) {
            dot(column, row);
        }
    }
}

/// Passes the pixels of a line along its longer direction: Bresenham's, always in the direction of growing `along`, as libgd has it.
fn slope(from: Point, to: Point, mut pixel: impl FnMut(i64, i64)) {
    let ((mut along, mut across), (end, last)) = match from.0 > to.0 {
        true => (to, from),
        false => (from, to),
    };
    let (long, short) = (end - along, (last - across).abs());
    let step = (last - across).signum();
    let mut error = 2 * short - long;
    pixel(along, across);
    while along < end {
        along += 1;
        if error < 0 {
            error += 2 * short;
        } else {
            across += step;
            error += 2 * (short - long);
        }
        pixel(along, across);
    }
}
