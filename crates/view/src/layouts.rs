//! Rows that a switch changes on a terminal: I/O sizes, errors, fractions, changes of memory. The default
//! rows are in the subsystems' tables.

use kymo_kernel::subsystem::{Lines, Subsystem};

/// Selects one of a subsystem's layouts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Table {
    /// One line per interval.
    Brief,
    /// The summary alone.
    Verbose,
    /// The instances.
    Detail,
}

/// Title, heads and row of a format.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct Layout {
    pub(crate) title: String,
    pub(crate) heads: Vec<String>,
    pub(crate) row: String,
}

impl From<&Lines> for Layout {
    fn from(lines: &Lines) -> Layout {
        Layout {
            title: lines.title.into(),
            heads: lines.heads.iter().map(|head| head.to_string()).collect(),
            row: lines.row.into(),
        }
    }
}

/// Layouts that replace the subsystems' own.
#[derive(Default)]
pub(crate) struct Layouts(Vec<(char, Table, Layout)>);

impl Layouts {
    /// Replaces the layout of a subsystem's table by `lines`.
    pub(crate) fn replace(&mut self, letter: char, section: Table, lines: impl Into<Layout>) {
        self.0
            .retain(|(of, part, _)| (*of, *part) != (letter, section));
        self.0.push((letter, section, lines.into()));
    }

    /// The layout in effect for a subsystem's table.
    pub(crate) fn of(&self, subsystem: &Subsystem, section: Table) -> Layout {
        let replaced = self
            .0
            .iter()
            .find(|(letter, part, _)| (*letter, *part) == (subsystem.letter, section));
        match replaced {
            Some((_, _, layout)) => layout.clone(),
            None => own(subsystem, section),
        }
    }
}

/// The layout in the subsystem's own table.
pub(crate) fn own(subsystem: &Subsystem, section: Table) -> Layout {
    match section {
        Table::Brief => (&subsystem.text.brief).into(),
        Table::Verbose => (&subsystem.text.verbose).into(),
        Table::Detail => (&subsystem.text.detail).into(),
    }
}

/// `-sd` with I/O sizes.
pub(crate) const DISK_SIZES: Lines = Lines {
    title: "<---------------Disks---------------->",
    heads: &["KBRead  Reads Size KBWrit Writes Size "],
    row: "{read_kb:6u} {reads:6c} {read_size:4c} {write_kb:6u} {writes:6c} {write_size:4c} ",
};

/// `-sD` with fractions.
pub(crate) const DISK_FRACTIONS: Lines = Lines {
    title: "DISK STATISTICS ({rate})",
    heads: &[
        "          <------------reads--------------><-------------writes------------><---------averages---------->   Pct",
        "Name        KBytes Merged  IOs Size   Wait   KBytes Merged  IOs Size   Wait   RWSize   QLen   Wait SvcTim   Util",
    ],
    row: "{name:-11s} {read_kb:7.1} {read_merges:6d} {reads:4c} {read_size:4u} {read_wait:6.1}  {write_kb:7.1} {write_merges:6d} {writes:4c} {write_size:4u} {write_wait:6.1} {size:7.1} {queue:7.1} {wait:6.1} {service:6.1} {util:6.2}",
};

/// `-sn` with packet sizes.
pub(crate) const NET_SIZES: Lines = Lines {
    title: "<---------------Network--------------->",
    heads: &["  KBIn  PktIn Size  KBOut  PktOut Size "],
    row: "{rx_kb:6u} {rx_packets:6c} {rx_size:4u} {tx_kb:6u}  {tx_packets:6c} {tx_size:4u} ",
};

/// `-sn --verbose` for errors.
pub(crate) const NET_ERRORS: Lines = Lines {
    title: "NETWORK ERRORS SUMMARY ({rate})",
    heads: &["  ErrIn  DropIn  FifoIn FrameIn    ErrOut DropOut FifoOut CollOut CarrOut"],
    row: " {rx_errs:7d} {rx_drop:7d} {rx_fifo:7d} {rx_frame:7d}   {tx_errs:7d} {tx_drop:7d} {tx_fifo:7d} {tx_colls:7d} {tx_carrier:7d}",
};

/// `-sN` for errors.
pub(crate) const NET_ERRORS_EACH: Lines = Lines {
    title: "NETWORK ERRORS STATISTICS ({rate})",
    heads: &[
        "Num    Name   ErrIn  DropIn  FifoIn FrameIn    ErrOut DropOut FifoOut CollOut CarrOut",
    ],
    row: " {number:3d}  {name:6s} {rx_errs:7d} {rx_drop:7d} {rx_fifo:7d} {rx_frame:7d}   {tx_errs:7d} {tx_drop:7d} {tx_fifo:7d} {tx_colls:7d} {tx_carrier:7d}",
};

/// `-sm` with changes instead of sizes.
pub(crate) const MEMORY_CHANGES: Lines = Lines {
    title: "<--------------Memory-------------->",
    heads: &[" Free  Buff  Cach  Inac  Slab   Map "],
    row: "{free:5k4} {buffers:5k4} {cached:5k4} {inactive:5k4} {slab:5k4} {map:5k4} ",
};

/// `-sm --verbose` with changes instead of sizes.
pub(crate) const MEMORY_CHANGES_ALL: Lines = Lines {
    title: "MEMORY SUMMARY changes/int",
    heads: &[
        "<---------------------------------------Physical Memory-----------------------------------------------><------------Swap-------------><-------Paging------>",
        "   Total     Used     Free     Buff   Cached     Slab   Mapped     Anon   AnonH  Commit  Locked   Inact Total   Used   Free   In  Out Fault MajFt   In  Out",
    ],
    row: "  {total:7k} {used:8k} {free:8k} {buffers:8k} {cached:8k} {slab:8k} {mapped:8k} {anon:8k} {anon_huge:7k} {committed:7k} {locked:7k} {inactive:7k} {swap_total:5k} {swap_used:6k} {swap_free:6k} {swap_in:4b} {swap_out:4b} {faults:5c} {major_faults:5c} {page_in:4c} {page_out:4c}",
};

/// `-sm --verbose` for physical memory only.
pub(crate) const MEMORY_PHYSICAL: Lines = Lines {
    title: "MEMORY SUMMARY",
    heads: &[
        "<------------------------------------Physical Memory------------------------------------------>",
        "   Total    Used    Free    Buff  Cached    Slab  Mapped    Anon   AnonH  Commit  Locked Inact",
    ],
    row: "  {total:7k} {used:7k} {free:7k} {buffers:7k} {cached:7k} {slab:7k} {mapped:7k} {anon:7k} {anon_huge:7k} {committed:7k} {locked:7k} {inactive:5k}",
};

/// `-sm --verbose` for virtual memory only.
pub(crate) const MEMORY_VIRTUAL: Lines = Lines {
    title: "MEMORY SUMMARY",
    heads: &[
        "<-----------Swap------------><-------Paging------>",
        " Total  Used  Free   In  Out Fault MajFt   In  Out",
    ],
    row: "  {swap_total:5k} {swap_used:5k} {swap_free:5k} {swap_in:4b} {swap_out:4b} {faults:5c} {major_faults:5c} {page_in:4c} {page_out:4c}",
};
