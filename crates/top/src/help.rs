//! The keys: one table for the help on the screen and for the documents.

/// Columns of a usual terminal.
const WIDTH: usize = 80;

/// Keys and their meaning, in parts.
pub const KEYS: &[(&str, &[(&str, &str)])] = &[
    (
        "Time",
        &[
            ("Left Right", "one sample back, forward"),
            ("Shift-Left Shift-Right [ ]", "a minute back, forward"),
            ("Ctrl-Left Ctrl-Right { }", "an hour back, forward"),
            (
                "b",
                "go to a time: 03:12, 20261121:14:30, -10m before the end",
            ),
            ("n N", "the next event, the one before"),
            ("x", "the worst moment of the range by the slider's meter"),
            (
                "s",
                "the meter: CPU, memory, swap, pressure, disks, network",
            ),
            ("+ -", "a shorter, a longer range: 1m 5m 15m 1h 6h 24h 7d"),
            ("B", "the first sample"),
            ("L", "live again; in a recording, its end"),
            ("=", "compare others with this moment; again: do not"),
            ("w", "why: what is unusual now, and which process it is"),
            ("Space z", "stand still, go on"),
        ],
    ),
    (
        "Tables",
        &[
            (
                "1 2 3 4 5 6 7 Tab",
                "processes, control groups, disks, interfaces, CPUs, processes in state D, programs",
            ),
            (
                "g m d v",
                "columns of processes: general, memory, I/O, various",
            ),
            ("t F5", "tree, with the totals of descendants"),
            (
                "u p G",
                "processes added up by user, by program, by control group",
            ),
            ("H y", "threads"),
            ("c", "command lines or the kernel's names"),
        ],
    ),
    (
        "Order",
        &[
            ("P C", "by CPU time"),
            ("M", "by memory"),
            ("T", "by CPU time since birth"),
            ("D", "by disk I/O"),
            ("< > F6", "the order before, the next order"),
            ("I R", "turn the order round"),
        ],
    ),
    (
        "Lines",
        &[
            ("Up Down PgUp PgDn Home End", "select"),
            ("/ \\ F3 F4", "filter as you type; Esc clears it"),
            ("Enter", "the process in detail; Esc back"),
        ],
    ),
    (
        "Other",
        &[
            ("? h F1", "this help"),
            ("Ctrl-L", "draw everything"),
            ("Ctrl-Z", "suspend"),
            ("q F10", "quit"),
            (
                "Mouse",
                "click: a line, an order, a moment of the slider; the wheel scrolls",
            ),
        ],
    ),
];

/// Keys of the table of hosts, and their meaning.
pub const HOST_KEYS: &[(&str, &[(&str, &str)])] = &[
    (
        "Time",
        &[
            ("Left Right", "a second back, forward"),
            ("Shift-Left Shift-Right [ ]", "a minute back, forward"),
            ("Ctrl-Left Ctrl-Right { }", "an hour back, forward"),
            ("b", "go to a time: 03:12, -10m, 20261121:14:30"),
            (
                "n N",
                "the next event of the day on any host, the one before",
            ),
            (
                "x",
                "the worst moment of the range, by the slider's meter on any host",
            ),
            (
                "s",
                "the slider's meter: CPU, memory, swap, pressure, disks, network",
            ),
            ("+ -", "a shorter, a longer range: 1m 5m 15m 1h 6h 24h 7d"),
            ("B", "the first sample of all hosts"),
            ("L", "live again"),
            (
                "=",
                "hold this moment, and compare others with it; again: let it go",
            ),
            ("Space z", "stand still, go on"),
        ],
    ),
    (
        "Hosts",
        &[
            ("Up Down PgUp PgDn Home End", "select"),
            ("Enter", "the host alone, at this moment; Esc or q back"),
            ("/ \\ F3 F4", "filter as you type; Esc clears it"),
            ("P C", "by CPU"),
            ("M", "by memory"),
            ("D", "by disk I/O"),
            ("< > F6", "the order before, the next order"),
            ("I R", "turn the order round"),
        ],
    ),
    (
        "Other",
        &[
            ("? h F1", "this help"),
            ("Ctrl-L", "draw everything"),
            ("Ctrl-Z", "suspend"),
            ("q F10", "quit"),
            (
                "Mouse",
                "click: a host, an order, a moment of the slider; the wheel scrolls",
            ),
        ],
    ),
];

/// Keys as lines of text, none of more than 80 columns.
pub fn lines(parts: &[(&str, &[(&str, &str)])]) -> Vec<String> {
    let mut lines = Vec::new();
    for (part, keys) in parts {
        lines.push((*part).to_string());
        for (keys, meaning) in *keys {
            let mut line = format!("  {keys:<26}");
            for word in meaning.split(' ') {
                if line.len() + 1 + word.len() > WIDTH {
                    lines.push(std::mem::replace(&mut line, " ".repeat(28)));
                }
                line = line + " " + word;
            }
            lines.push(line);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    #[test]
    fn lines_fit_the_least_wide_terminal() {
        let parts = [super::KEYS, super::HOST_KEYS];
        for line in parts.into_iter().flat_map(super::lines) {
            assert!(line.len() <= super::WIDTH, "{line}");
        }
    }
}
