//! Writes the outlines of the bundled font's glyphs as paths of SVG, for pictures that are drawn without a text engine.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

use skrifa::instance::{LocationRef, Size};
use skrifa::outline::{DrawSettings, OutlinePen};
use skrifa::{FontRef, GlyphId, MetadataProvider as _};

const FONT: &str = "assets/kymo-graph.ttf";

/// Writes relative steps, in units of the font.
#[derive(Default)]
struct Steps {
    path: String,
    at: (i32, i32),
}

impl Steps {
    fn step(&mut self, command: char, points: &[(f32, f32)]) {
        self.path.push(command);
        for (n, &(x, y)) in points.iter().enumerate() {
            let (dx, dy) = (x as i32 - self.at.0, y as i32 - self.at.1);
            let before = if n > 0 && dx >= 0 { " " } else { "" };
            let between = if dy >= 0 { " " } else { "" };
            let _ = write!(self.path, "{before}{dx}{between}{dy}");
        }
        if let Some(&(x, y)) = points.last() {
            self.at = (x as i32, y as i32);
        }
    }
}

impl OutlinePen for Steps {
    fn move_to(&mut self, x: f32, y: f32) {
        // Relative to the last point, also behind a closed line.
        self.path.push('M');
        let _ = write!(self.path, "{} {}", x as i32, y as i32);
        self.at = (x as i32, y as i32);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.step('l', &[(x, y)]);
    }

    fn quad_to(&mut self, cx: f32, cy: f32, x: f32, y: f32) {
        self.step('q', &[(cx, cy), (x, y)]);
    }

    fn curve_to(&mut self, cx0: f32, cy0: f32, cx1: f32, cy1: f32, x: f32, y: f32) {
        self.step('c', &[(cx0, cy0), (cx1, cy1), (x, y)]);
    }

    fn close(&mut self) {
        self.path.push('z');
    }
}

fn main() {
    println!("cargo::rerun-if-changed={FONT}");
    println!("cargo::rerun-if-changed=build.rs");
    let bytes = fs::read(FONT).expect("the font");
    let font = FontRef::new(&bytes).expect("a font");
    let (metrics, outlines) = (
        font.glyph_metrics(Size::unscaled(), LocationRef::default()),
        font.outline_glyphs(),
    );
    // A character, the advance of its glyph and the outline, a line each.
    let mut lines = String::new();
    let mut glyphs: Vec<(u32, GlyphId)> = font.charmap().mappings().collect();
    glyphs.sort_unstable();
    for (character, glyph) in glyphs {
        let mut steps = Steps::default();
        if let Some(outline) = outlines.get(glyph) {
            let settings = DrawSettings::unhinted(Size::unscaled(), LocationRef::default());
            outline.draw(settings, &mut steps).expect("an outline");
        }
        let advance = metrics.advance_width(glyph).expect("an advance");
        let _ = writeln!(lines, "{character} {advance} {}", steps.path);
    }
    let folder = env::var_os("OUT_DIR").expect("cargo runs this");
    fs::write(Path::new(&folder).join("outlines.txt"), lines).expect("a file");
}
