//! `--export gexpr`: Ganglia's packets for a metric in XDR, one with its description and one with its value. As in collectl, each
//! metric has type double and slope both.

use crate::export::names::Exported;
use crate::options::export::Export;

/// Kinds of packets: the description of a metric, and its value as text.
const META: u32 = 0x80;
const STRING: u32 = 0x85;
/// Slope `both`: the value may rise and fall.
const SLOPE: u32 = 3;

/// The two packets for a value.
pub(crate) fn packets(
    host: &str,
    exported: &Exported,
    value: f64,
    export: &Export,
    interval_secs: f64,
) -> [Vec<u8>; 2] {
    let secs = export.every_secs.map_or(interval_secs, f64::from);
    let alive_secs = f64::from(export.ttl) * secs;
    let (mut meta, mut data) = (Vec::new(), Vec::new());
    for (packet, id) in [(&mut meta, META), (&mut data, STRING)] {
        put_number(packet, id);
        put_text(packet, host);
        put_text(packet, exported.name);
        // The spoof flag: the packets do not speak for another host.
        put_number(packet, 0);
    }
    put_text(&mut meta, "double");
    put_text(&mut meta, exported.name);
    put_text(&mut meta, exported.units);
    put_number(&mut meta, SLOPE);
    put_number(&mut meta, seconds(2.0 * alive_secs));
    put_number(&mut meta, seconds(4.0 * alive_secs));
    put_number(&mut meta, 1);
    put_text(&mut meta, "GROUP");
    put_text(&mut meta, exported.group);
    put_text(&mut data, "%s");
    // As in collectl, only averages keep their fractions.
    let is_whole = export.fold != crate::options::export::Fold::Average;
    let value = if is_whole { value.trunc() } else { value };
    put_text(&mut data, &format!("{}", value + 0.0));
    [meta, data]
}

fn seconds(secs: f64) -> u32 {
    let text = format!("{:.0}", secs.trunc());
    text.parse().unwrap_or(u32::MAX)
}

fn put_number(packet: &mut Vec<u8>, number: u32) {
    packet.extend_from_slice(&number.to_be_bytes());
}

/// Appends a text with its length before it, padded to a multiple of four bytes.
fn put_text(packet: &mut Vec<u8>, text: &str) {
    put_number(packet, u32::try_from(text.len()).unwrap_or(0));
    packet.extend_from_slice(text.as_bytes());
    packet.resize(packet.len().next_multiple_of(4), 0);
}
