//! The standard graphs of pictures and of the page: fields that are drawn together, labels of their curves, and colours.
//! `crates/serve/assets/standard.js` is generated from this table.

use std::fmt::Write as _;

use crate::svg::Shape;

/// A standard graph.
pub(crate) struct Standard {
    /// Letter for `kymo graph`; `None`: only the page has this graph.
    pub(crate) letter: Option<char>,
    /// Panel of the page; empty: only pictures have this graph.
    panel: &'static str,
    pub(crate) title: &'static str,
    pub(crate) top: Topmost,
    pub(crate) layers: &'static [Layer],
    /// Layers that only the page draws, before the others: unlike pictures, it has a scale per unit.
    beside: &'static [Layer],
    pub(crate) when: When,
}

/// End of a standard graph's axis.
pub(crate) enum Topmost {
    At(f64),
    Least(f64),
    /// The largest value of this field.
    Of(&'static str),
}

/// Condition for drawing a standard graph.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    Always,
    /// Only if it is not always 0.
    Something,
}

/// A field in a graph.
pub(crate) struct Layer {
    pub(crate) field: &'static str,
    pub(crate) label: &'static str,
    pub(crate) hue: usize,
    pub(crate) shape: Shape,
}

const fn line(field: &'static str, label: &'static str, hue: usize, shape: Shape) -> Layer {
    Layer {
        field,
        label,
        hue,
        shape,
    }
}

use Shape::{Filled, Line, Peak, Stacked};

/// The standard graphs; those of a letter are in drawing order.
#[rustfmt::skip]
pub(crate) const STANDARD: &[Standard] = &[
    Standard { letter: Some('c'), panel: "cpu", title: "CPU", top: Topmost::At(100.0), when: When::Always, beside: &[], layers: &[
        line("cpu.user", "user", 1, Stacked), line("cpu.nice", "nice", 2, Stacked), line("cpu.sys", "system", 3, Stacked),
        line("cpu.irq", "irq", 4, Stacked), line("cpu.soft", "softirq", 5, Stacked), line("cpu.steal", "steal", 6, Stacked),
        line("cpu.wait", "wait", 8, Stacked), line("cpu.total", "total, peaks", 0, Peak)] },
    Standard { letter: Some('c'), panel: "load", title: "Load", top: Topmost::Least(1.0), when: When::Always, beside: &[
        line("cpu.running", "runnable", 6, Line), line("cpu.blocked", "blocked", 3, Line)], layers: &[
        line("cpu.load1", "1 min", 1, Line), line("cpu.load5", "5 min", 2, Line), line("cpu.load15", "15 min", 4, Line)] },
    Standard { letter: Some('C'), panel: "", title: "Each CPU", top: Topmost::At(100.0), when: When::Always, beside: &[], layers: &[
        line("cpu.total:*", "", 1, Line)] },
    Standard { letter: Some('p'), panel: "pressure", title: "Pressure: time lost waiting", top: Topmost::Least(5.0), when: When::Always, beside: &[], layers: &[
        line("pressure.cpu_some", "CPU", 1, Line), line("pressure.io_some", "I/O", 3, Line), line("pressure.io_full", "I/O, all", 4, Line),
        line("pressure.memory_some", "memory", 2, Line), line("pressure.memory_full", "memory, all", 5, Line),
        line("pressure.irq_full", "irq", 6, Line)] },
    Standard { letter: Some('P'), panel: "", title: "Pressure: some tasks waited", top: Topmost::Least(5.0), when: When::Always, beside: &[], layers: &[
        line("pressure.some:*", "", 1, Line)] },
    Standard { letter: Some('P'), panel: "", title: "Pressure: all tasks waited", top: Topmost::Least(5.0), when: When::Always, beside: &[], layers: &[
        line("pressure.full:*", "", 1, Line)] },
    Standard { letter: Some('m'), panel: "memory", title: "Memory", top: Topmost::Of("memory.total"), when: When::Always, beside: &[], layers: &[
        line("memory.anon", "programs", 1, Stacked), line("memory.slab", "slab", 4, Stacked),
        line("memory.buffers", "buffers", 3, Stacked), line("memory.cached", "cached", 2, Stacked)] },
    Standard { letter: Some('m'), panel: "", title: "Swapping", top: Topmost::Least(1024.0), when: When::Something, beside: &[], layers: &[
        line("memory.swap_in", "swapped in", 2, Line), line("memory.swap_out", "swapped out", 3, Line)] },
    Standard { letter: Some('d'), panel: "disk", title: "Disks", top: Topmost::Least(1.0), when: When::Always, beside: &[], layers: &[
        line("disk.read_kb", "read", 1, Filled), line("disk.write_kb", "written", 3, Filled)] },
    Standard { letter: Some('d'), panel: "", title: "Disk requests", top: Topmost::Least(1.0), when: When::Always, beside: &[], layers: &[
        line("disk.reads", "reads", 1, Line), line("disk.writes", "writes", 3, Line)] },
    Standard { letter: Some('D'), panel: "", title: "Each disk: read", top: Topmost::Least(1.0), when: When::Always, beside: &[], layers: &[
        line("disk.read_kb:*", "", 1, Line)] },
    Standard { letter: Some('D'), panel: "", title: "Each disk: written", top: Topmost::Least(1.0), when: When::Always, beside: &[], layers: &[
        line("disk.write_kb:*", "", 1, Line)] },
    Standard { letter: Some('D'), panel: "", title: "Each disk: busy", top: Topmost::At(100.0), when: When::Always, beside: &[], layers: &[
        line("disk.util:*", "", 1, Line)] },
    Standard { letter: Some('n'), panel: "net", title: "Network", top: Topmost::Least(1.0), when: When::Always, beside: &[], layers: &[
        line("net.rx_kb", "received", 1, Filled), line("net.tx_kb", "sent", 3, Filled)] },
    Standard { letter: Some('n'), panel: "", title: "Packets", top: Topmost::Least(1.0), when: When::Always, beside: &[], layers: &[
        line("net.rx_packets", "received", 1, Line), line("net.tx_packets", "sent", 3, Line)] },
    Standard { letter: Some('N'), panel: "", title: "Each interface: received", top: Topmost::Least(1.0), when: When::Always, beside: &[], layers: &[
        line("net.rx_kb:*", "", 1, Line)] },
    Standard { letter: Some('N'), panel: "", title: "Each interface: sent", top: Topmost::Least(1.0), when: When::Always, beside: &[], layers: &[
        line("net.tx_kb:*", "", 1, Line)] },
    Standard { letter: Some('t'), panel: "tcp", title: "TCP", top: Topmost::Least(1.0), when: When::Always, beside: &[], layers: &[
        line("tcp.tcp_in", "segments in", 1, Line), line("tcp.tcp_out", "out", 3, Line), line("tcp.tcp_retransmitted", "sent again", 2, Line),
        line("tcp.tcp_active_opens", "connections begun", 4, Line), line("tcp.tcp_passive_opens", "accepted", 5, Line)] },
    Standard { letter: Some('t'), panel: "protocols", title: "Errors of IP, TCP, UDP, ICMP", top: Topmost::Least(1.0), when: When::Something, beside: &[], layers: &[
        line("tcp.ip_errors", "IP", 1, Line), line("tcp.tcp_errors", "TCP", 2, Line), line("tcp.udp_errors", "UDP", 3, Line),
        line("tcp.icmp_errors", "ICMP", 4, Line), line("tcp.ip6_errors", "IPv6", 5, Line)] },
    Standard { letter: Some('s'), panel: "sockets", title: "Sockets", top: Topmost::Least(1.0), when: When::Always, beside: &[], layers: &[
        line("sockets.tcp", "TCP", 1, Line), line("sockets.time_wait", "TIME-WAIT", 3, Line), line("sockets.orphans", "orphans", 2, Line),
        line("sockets.udp", "UDP", 4, Line), line("sockets.tcp6", "TCP, IPv6", 5, Line), line("sockets.udp6", "UDP, IPv6", 6, Line)] },
    Standard { letter: Some('i'), panel: "files", title: "Open files", top: Topmost::Least(1.0), when: When::Always, beside: &[], layers: &[
        line("inodes.files", "open files", 1, Line)] },
    Standard { letter: Some('i'), panel: "", title: "Inodes and directory entries", top: Topmost::Least(1.0), when: When::Always, beside: &[], layers: &[
        line("inodes.inodes", "inodes", 1, Line), line("inodes.dentries", "directory entries", 3, Line)] },
    Standard { letter: None, panel: "kernel", title: "Kernel", top: Topmost::Least(1.0), when: When::Always, beside: &[], layers: &[
        line("cpu.ctxsw", "context switches", 1, Line), line("cpu.intr", "interrupts", 3, Line), line("cpu.forks", "forks", 2, Line),
        line("memory.major_faults", "major faults", 4, Line)] },
];

/// All fields of the standard graphs, each once.
pub fn fields() -> Vec<&'static str> {
    let layers = STANDARD.iter().flat_map(|standard| {
        let most = match standard.top {
            Topmost::Of(field) => Some(field),
            Topmost::At(_) | Topmost::Least(_) => None,
        };
        let layers = standard.beside.iter().chain(standard.layers);
        layers.map(|layer| layer.field).chain(most)
    });
    let mut fields: Vec<&str> = layers.collect();
    fields.sort_unstable();
    fields.dedup();
    fields
}

/// The table as JavaScript for the page.
pub fn standard_js() -> String {
    let mut out = String::from(
        "// Made of crates/view/src/standard.rs. A test there says when this is stale: run it with UPDATE_GOLDEN=1.\n\
         export const STANDARD = {\n",
    );
    for standard in STANDARD
        .iter()
        .filter(|standard| !standard.panel.is_empty())
    {
        // Writes to a String do not fail.
        let _ = panel(&mut out, standard);
    }
    out.push_str("};\n");
    out
}

fn panel(out: &mut String, standard: &Standard) -> std::fmt::Result {
    writeln!(out, "  {}: {{", standard.panel)?;
    match standard.top {
        Topmost::At(top) => writeln!(out, "    most: {top},")?,
        Topmost::Least(least) => writeln!(out, "    least: {least},")?,
        Topmost::Of(field) => writeln!(out, "    mostOf: '{field}',")?,
    }
    let has = |shape| standard.layers.iter().any(|layer| layer.shape == shape);
    for (shape, word) in [(Stacked, "stacked"), (Filled, "filled")] {
        if has(shape) {
            writeln!(out, "    {word}: true,")?;
        }
    }
    let all = standard.beside.iter().chain(standard.layers);
    let (peaks, layers): (Vec<_>, Vec<_>) = all.partition(|layer| layer.shape == Peak);
    for peak in peaks {
        writeln!(out, "    peak: '{}',", peak.field)?;
    }
    let layer = |layer: &&Layer| {
        let Layer {
            field, label, hue, ..
        } = layer;
        format!("{{ id: '{field}', label: '{label}', colour: {hue} }}")
    };
    match &layers[..] {
        // A single layer fits into its line, where prettier puts it.
        [one] => writeln!(out, "    layers: [{}],", layer(one))?,
        more => {
            writeln!(out, "    layers: [")?;
            for each in more {
                writeln!(out, "      {},", layer(each))?;
            }
            writeln!(out, "    ],")?;
        }
    }
    writeln!(out, "  }},")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_this_table() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../serve/assets/standard.js");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(path, standard_js()).expect("standard.js");
        }
        let present = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            present == standard_js(),
            "standard.js is stale: run with UPDATE_GOLDEN=1"
        );
    }
}
