//! A map of devices and of the lines between them, as SVG: devices in a circle in the order of the list, each line with its ports and
//! what goes through it. The same list makes the same map.

use std::f64::consts::TAU;
use std::fmt::Write as _;

use crate::svg::put_escaped;

/// A line between two devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapLine {
    /// Places of the devices in the list.
    pub ends: [usize; 2],
    /// Texts at the ends, such as ports.
    pub ports: [String; 2],
    /// Text in the middle; may be empty.
    pub label: String,
}

/// Size of a device's box, and the least distance of two of them on the circle.
const BOX: [f64; 2] = [150.0, 30.0];
const DISTANCE: f64 = 190.0;
const MARGIN: f64 = 20.0;
/// Longest text in a box or at a line, in characters.
const TEXT_MAX: usize = 22;
/// Distance of a port's text from its device, as a part of the line.
const PORT_AT: f64 = 0.27;

/// Draws the map.
pub fn network_map(devices: &[String], lines: &[MapLine]) -> String {
    let count = devices.len().max(1) as f64;
    let radius = (count * DISTANCE / TAU).max(140.0);
    let middle = radius + BOX[0] / 2.0 + MARGIN;
    let place = |at: usize| {
        let angle = TAU * (at as f64 / count - 0.25);
        [middle + radius * angle.cos(), middle + radius * angle.sin()]
    };
    let size = 2.0 * middle;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{size:.0}\" height=\"{size:.0}\" viewBox=\"0 0 {size:.0} {size:.0}\" font-family=\"sans-serif\" font-size=\"11\" text-anchor=\"middle\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
    );
    let mut between: Vec<[usize; 2]> = Vec::new();
    for line in lines {
        let [from, to] = line.ends.map(place);
        // Lines between the same devices lie side by side.
        let mut ends = line.ends;
        ends.sort_unstable();
        let before = between.iter().filter(|known| **known == ends).count();
        between.push(ends);
        let shift = before as f64 * 14.0;
        let at = |part: f64| {
            [
                from[0] + (to[0] - from[0]) * part,
                from[1] + (to[1] - from[1]) * part + shift,
            ]
        };
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"#678\" stroke-width=\"1.5\"/>",
            at(0.0)[0],
            at(0.0)[1],
            at(1.0)[0],
            at(1.0)[1]
        );
        put_text(&mut out, at(PORT_AT), "#345", &line.ports[0]);
        put_text(&mut out, at(1.0 - PORT_AT), "#345", &line.ports[1]);
        put_text(&mut out, at(0.5), "#063", &line.label);
    }
    for (at, device) in devices.iter().enumerate() {
        let [x, y] = place(at);
        let [width, height] = BOX;
        let _ = writeln!(
            out,
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{width}\" height=\"{height}\" rx=\"4\" fill=\"#eef3f8\" stroke=\"#234\"/>",
            x - width / 2.0,
            y - height / 2.0
        );
        put_text(&mut out, [x, y + 4.0], "#000", device);
    }
    out.push_str("</svg>\n");
    out
}

/// A text on a white edge, so that lines do not cross it out.
fn put_text(out: &mut String, [x, y]: [f64; 2], colour: &str, text: &str) {
    if text.is_empty() {
        return;
    }
    let _ = write!(
        out,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" fill=\"{colour}\" stroke=\"#fff\" stroke-width=\"3\" paint-order=\"stroke\">"
    );
    let short: String = text.chars().take(TEXT_MAX).collect();
    put_escaped(out, &short);
    if text.chars().count() > TEXT_MAX {
        out.push('…');
    }
    out.push_str("</text>\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_is_the_same_each_time_and_names_are_escaped() {
        let devices =
            ["core-1", "<script>", "a name that is longer than its box"].map(String::from);
        let line = |ends| MapLine {
            ends,
            ports: ["Gi0/1".into(), "\"x\"".into()],
            label: "8k / 1k".into(),
        };
        let lines = [line([0, 1]), line([1, 0]), line([0, 2])];
        let map = network_map(&devices, &lines);
        assert_eq!(map, network_map(&devices, &lines));
        assert!(map.contains("&lt;script&gt;") && !map.contains("<script>"));
        assert!(map.contains("a name that is longer …") && map.contains("&quot;x&quot;"));
        assert_eq!(map.matches("<line").count(), 3);
        assert_eq!(map.matches("rx=\"4\"").count(), 3);
        assert!(network_map(&[], &[]).ends_with("</svg>\n"));
    }
}
