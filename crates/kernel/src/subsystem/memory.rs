//! `m`: memory, swap and paging, from /proc/meminfo and /proc/vmstat.

use kymo_base::column::{Cells, Column};
use kymo_base::context::Context;
use kymo_base::field::{Field, Rule, Unit};
use kymo_base::template::{Piece, Template};

use super::exposed::{self, Exposed};
use super::{
    Lines, Plot, PlotColumn, Shape, Subsystem, Summary, Text, Unused, at, field, number, plot,
    rest, value,
};
use crate::layout::{Cell, Layout};
use crate::source::kind;

const TOTAL: usize = at(GLOBALS, "MemTotal");
const FREE: usize = at(GLOBALS, "MemFree");
const AVAILABLE: usize = at(GLOBALS, "MemAvailable");
const BUFFERS: usize = at(GLOBALS, "Buffers");
const CACHED: usize = at(GLOBALS, "Cached");
const ACTIVE: usize = at(GLOBALS, "Active");
const INACTIVE: usize = at(GLOBALS, "Inactive");
const LOCKED: usize = at(GLOBALS, "Mlocked");
const SWAP_TOTAL: usize = at(GLOBALS, "SwapTotal");
const SWAP_FREE: usize = at(GLOBALS, "SwapFree");
const DIRTY: usize = at(GLOBALS, "Dirty");
const WRITEBACK: usize = at(GLOBALS, "Writeback");
const ANON: usize = at(GLOBALS, "AnonPages");
const MAPPED: usize = at(GLOBALS, "Mapped");
const SHMEM: usize = at(GLOBALS, "Shmem");
const SLAB: usize = at(GLOBALS, "Slab");
const SRECLAIMABLE: usize = at(GLOBALS, "SReclaimable");
const SUNRECLAIM: usize = at(GLOBALS, "SUnreclaim");
const KERNEL_STACK: usize = at(GLOBALS, "KernelStack");
const PAGE_TABLES: usize = at(GLOBALS, "PageTables");
const COMMITTED: usize = at(GLOBALS, "Committed_AS");
const COMMIT_LIMIT: usize = at(GLOBALS, "CommitLimit");
const ANON_HUGE: usize = at(GLOBALS, "AnonHugePages");
const HUGE_TOTAL: usize = at(GLOBALS, "HugePages_Total");
const HUGE_FREE: usize = at(GLOBALS, "HugePages_Free");
const HUGE_RSVD: usize = at(GLOBALS, "HugePages_Rsvd");
const PGPGIN: usize = at(GLOBALS, "pgpgin");
const PGPGOUT: usize = at(GLOBALS, "pgpgout");
const PSWPIN: usize = at(GLOBALS, "pswpin");
const PSWPOUT: usize = at(GLOBALS, "pswpout");
const PGFAULT: usize = at(GLOBALS, "pgfault");
const PGMAJFAULT: usize = at(GLOBALS, "pgmajfault");
const OOM_KILL: usize = at(GLOBALS, "oom_kill");
const SWAP_CACHED: usize = at(GLOBALS, "SwapCached");
const ACTIVE_ANON: usize = at(GLOBALS, "Active(anon)");
const INACTIVE_ANON: usize = at(GLOBALS, "Inactive(anon)");
const ACTIVE_FILE: usize = at(GLOBALS, "Active(file)");
const INACTIVE_FILE: usize = at(GLOBALS, "Inactive(file)");
const UNEVICTABLE: usize = at(GLOBALS, "Unevictable");
const ZSWAP: usize = at(GLOBALS, "Zswap");
const ZSWAPPED: usize = at(GLOBALS, "Zswapped");
const KRECLAIMABLE: usize = at(GLOBALS, "KReclaimable");
const SEC_PAGE_TABLES: usize = at(GLOBALS, "SecPageTables");
const NFS_UNSTABLE: usize = at(GLOBALS, "NFS_Unstable");
const BOUNCE: usize = at(GLOBALS, "Bounce");
const WRITEBACK_TMP: usize = at(GLOBALS, "WritebackTmp");
const VMALLOC_TOTAL: usize = at(GLOBALS, "VmallocTotal");
const VMALLOC_USED: usize = at(GLOBALS, "VmallocUsed");
const VMALLOC_CHUNK: usize = at(GLOBALS, "VmallocChunk");
const PERCPU: usize = at(GLOBALS, "Percpu");
const HARDWARE_CORRUPTED: usize = at(GLOBALS, "HardwareCorrupted");
const SHMEM_HUGE: usize = at(GLOBALS, "ShmemHugePages");
const SHMEM_PMD: usize = at(GLOBALS, "ShmemPmdMapped");
const FILE_HUGE: usize = at(GLOBALS, "FileHugePages");
const FILE_PMD: usize = at(GLOBALS, "FilePmdMapped");
const CMA_TOTAL: usize = at(GLOBALS, "CmaTotal");
const CMA_FREE: usize = at(GLOBALS, "CmaFree");
const UNACCEPTED: usize = at(GLOBALS, "Unaccepted");
const BALLOON: usize = at(GLOBALS, "Balloon");
const HUGE_SIZE: usize = at(GLOBALS, "Hugepagesize");
const HUGETLB: usize = at(GLOBALS, "Hugetlb");
const DIRECT_4K: usize = at(GLOBALS, "DirectMap4k");
const DIRECT_4M: usize = at(GLOBALS, "DirectMap4M");
const DIRECT_2M: usize = at(GLOBALS, "DirectMap2M");
const DIRECT_1G: usize = at(GLOBALS, "DirectMap1G");
const HUGE_SURP: usize = at(GLOBALS, "HugePages_Surp");

const fn kb(name: &'static str, help: &'static str) -> Field {
    field(name, Rule::Gauge, Unit::Kilobytes, help)
}

const fn pages(name: &'static str, help: &'static str) -> Field {
    field(name, Rule::Gauge, Unit::Count, help)
}

const fn event(name: &'static str, unit: Unit, help: &'static str) -> Field {
    field(name, Rule::Counter64, unit, help)
}

/// Fields by the kernel's names. Names from vmstat begin with a lower-case
/// letter, names from meminfo do not, so the order of the fields is free.
const GLOBALS: &[Field] = &[
    kb("MemTotal", "Memory the kernel manages"),
    kb("MemFree", "Not used at all"),
    kb("MemAvailable", "What programs can get without swapping"),
    kb("Buffers", "Cache of block devices"),
    kb("Cached", "Page cache, shared memory included"),
    kb("Active", "Used lately"),
    kb("Inactive", "Not used lately"),
    kb("Mlocked", "Locked"),
    kb("SwapTotal", "Swap space"),
    kb("SwapFree", "Swap space not used"),
    kb("Dirty", "To be written"),
    kb("Writeback", "Being written"),
    kb("AnonPages", "Anonymous memory mapped"),
    kb("Mapped", "Files mapped"),
    kb("Shmem", "Shared memory and tmpfs"),
    kb("Slab", "Kernel objects"),
    kb("SReclaimable", "Kernel objects that can be freed"),
    kb("SUnreclaim", "Kernel objects that cannot be freed"),
    kb("KernelStack", "Kernel stacks"),
    kb("PageTables", "Page tables"),
    kb("Committed_AS", "Promised to programs"),
    kb(
        "CommitLimit",
        "Most that is promised where overcommit is off",
    ),
    kb("AnonHugePages", "Anonymous memory in huge pages"),
    pages("HugePages_Total", "Huge pages set aside"),
    pages("HugePages_Free", "Huge pages not in use"),
    pages("HugePages_Rsvd", "Huge pages promised"),
    event("pgpgin", Unit::Kilobytes, "Read from disks"),
    event("pgpgout", Unit::Kilobytes, "Written to disks"),
    event("pswpin", Unit::Pages, "Pages swapped in"),
    event("pswpout", Unit::Pages, "Pages swapped out"),
    event("pgfault", Unit::Count, "Page faults"),
    event("pgmajfault", Unit::Count, "Page faults that read"),
    event(
        "oom_kill",
        Unit::Count,
        "Processes killed for want of memory",
    ),
    kb("SwapCached", "In swap and in memory"),
    kb("Active(anon)", "Anonymous memory used lately"),
    kb("Inactive(anon)", "Anonymous memory not used lately"),
    kb("Active(file)", "Page cache used lately"),
    kb("Inactive(file)", "Page cache not used lately"),
    kb("Unevictable", "Cannot be taken back"),
    kb("Zswap", "Memory that holds compressed swap"),
    kb(
        "Zswapped",
        "Anonymous memory that is held in compressed swap",
    ),
    kb("KReclaimable", "Kernel memory that can be freed"),
    kb("SecPageTables", "Page tables of guests and devices"),
    kb(
        "NFS_Unstable",
        "0 since Linux 5.8; before: sent to an NFS server, but not stable there",
    ),
    kb("Bounce", "Bounce buffers of block devices"),
    kb("WritebackTmp", "Buffers of FUSE for writing back"),
    kb("VmallocTotal", "Address space of vmalloc"),
    kb("VmallocUsed", "Used of the address space of vmalloc"),
    kb(
        "VmallocChunk",
        "0 since Linux 4.4; before: the largest free piece of that address space",
    ),
    kb("Percpu", "Per-CPU memory"),
    kb("HardwareCorrupted", "Found to be broken"),
    kb("ShmemHugePages", "Shared memory in huge pages"),
    kb("ShmemPmdMapped", "Shared memory mapped as huge pages"),
    kb("FileHugePages", "Page cache in huge pages"),
    kb("FilePmdMapped", "Page cache mapped as huge pages"),
    kb("CmaTotal", "Set aside for contiguous memory"),
    kb(
        "CmaFree",
        "Not used of what is set aside for contiguous memory",
    ),
    kb("Unaccepted", "Not yet accepted by a confidential guest"),
    kb("Balloon", "Given back to the hypervisor"),
    kb("Hugepagesize", "Size of a huge page"),
    kb("Hugetlb", "In huge pages of all sizes that are set aside"),
    kb("DirectMap4k", "Mapped by the kernel in pages of 4 KiB"),
    kb("DirectMap4M", "Mapped by the kernel in pages of 4 MiB"),
    kb("DirectMap2M", "Mapped by the kernel in pages of 2 MiB"),
    kb("DirectMap1G", "Mapped by the kernel in pages of 1 GiB"),
    pages("HugePages_Surp", "Huge pages beyond those set aside"),
];

/// Free swap; unknown if it exceeds the total. Without swap, lxcfs gives a number slightly below 2^64.
fn swap_free(cells: &Cells) -> f64 {
    let (free, total) = (cells.now[SWAP_FREE], cells.now[SWAP_TOTAL]);
    match (0.0..=total).contains(&free) {
        true => free,
        false if total == 0.0 => 0.0,
        false => f64::NAN,
    }
}

const fn size(name: &'static str, help: &'static str, value: fn(&Cells) -> f64) -> Column {
    number(name, Unit::Kilobytes, help, value)
}

const COLUMNS: &[Column] = &[
    size("total", "Memory the kernel manages", |c| c.now[TOTAL]),
    size("used", "total - free", |c| rest(c.now[TOTAL], c.now[FREE])),
    size("free", "Not used at all", |c| c.now[FREE]),
    size("available", "What programs can get without swapping", |c| {
        c.now[AVAILABLE]
    }),
    size("shared", "Shared memory and tmpfs", |c| c.now[SHMEM]),
    size("buffers", "Cache of block devices", |c| c.now[BUFFERS]),
    size("cached", "Page cache, shared memory included", |c| {
        c.now[CACHED]
    }),
    size("slab", "Kernel objects", |c| c.now[SLAB]),
    size("mapped", "Files mapped", |c| c.now[MAPPED]),
    size("anon", "Anonymous memory mapped", |c| c.now[ANON]),
    size("map", "mapped + anon", |c| c.now[MAPPED] + c.now[ANON]),
    size("anon_huge", "Anonymous memory in huge pages", |c| {
        c.now[ANON_HUGE]
    }),
    size("committed", "Promised to programs", |c| c.now[COMMITTED]),
    size(
        "commit_limit",
        "Most that is promised where overcommit is off",
        |c| c.now[COMMIT_LIMIT],
    ),
    size("locked", "Locked", |c| c.now[LOCKED]),
    size("active", "Used lately, files and anonymous", |c| {
        c.now[ACTIVE]
    }),
    size("inactive", "Not used lately, files and anonymous", |c| {
        c.now[INACTIVE]
    }),
    size("dirty", "To be written", |c| c.now[DIRTY]),
    size("writeback", "Being written", |c| c.now[WRITEBACK]),
    size("reclaimable", "Kernel objects that can be freed", |c| {
        c.now[SRECLAIMABLE]
    }),
    size(
        "unreclaimable",
        "Kernel objects that cannot be freed",
        |c| c.now[SUNRECLAIM],
    ),
    size("kernel_stack", "Kernel stacks", |c| c.now[KERNEL_STACK]),
    size("page_tables", "Page tables", |c| c.now[PAGE_TABLES]),
    number("huge_total", Unit::Count, "Huge pages set aside", |c| {
        c.now[HUGE_TOTAL]
    }),
    number("huge_free", Unit::Count, "Huge pages not in use", |c| {
        c.now[HUGE_FREE]
    }),
    number("huge_reserved", Unit::Count, "Huge pages promised", |c| {
        c.now[HUGE_RSVD]
    }),
    size("swap_total", "Swap space", |c| c.now[SWAP_TOTAL]),
    size("swap_used", "swap_total - swap_free", |c| {
        c.now[SWAP_TOTAL] - swap_free(c)
    }),
    size("swap_free", "Swap space not used", swap_free),
    number("swap_in", Unit::BytesPerSecond, "Swapped in", |c| {
        c.rate(PSWPIN) * c.context.page_size()
    }),
    number("swap_out", Unit::BytesPerSecond, "Swapped out", |c| {
        c.rate(PSWPOUT) * c.context.page_size()
    }),
    number(
        "page_in",
        Unit::KilobytesPerSecond,
        "Read from disks",
        |c| c.rate(PGPGIN),
    ),
    number(
        "page_out",
        Unit::KilobytesPerSecond,
        "Written to disks",
        |c| c.rate(PGPGOUT),
    ),
    number("faults", Unit::PerSecond, "Page faults", |c| {
        c.rate(PGFAULT)
    }),
    number(
        "major_faults",
        Unit::PerSecond,
        "Page faults that read",
        |c| c.rate(PGMAJFAULT),
    ),
    number(
        "oom_kills",
        Unit::PerSecond,
        "Processes killed for want of memory",
        |c| c.rate(OOM_KILL),
    ),
];

const PLOT: &[PlotColumn] = &[
    plot("Tot", "total"),
    plot("Used", "used"),
    plot("Free", "free"),
    plot("Shared", "shared"),
    plot("Buf", "buffers"),
    plot("Cached", "cached"),
    plot("Slab", "slab"),
    plot("Map", "mapped"),
    plot("Anon", "anon"),
    plot("AnonH", "anon_huge"),
    plot("Commit", "committed"),
    plot("Locked", "locked"),
    plot("SwapTot", "swap_total"),
    plot("SwapUsed", "swap_used"),
    plot("SwapFree", "swap_free"),
    plot("SwapIn", "swap_in"),
    plot("SwapOut", "swap_out"),
    plot("Dirty", "dirty"),
    plot("Clean", ""),
    plot("Laundry", ""),
    plot("Inactive", "inactive"),
    plot("PageIn", "page_in"),
    plot("PageOut", "page_out"),
    plot("PageFaults", "faults"),
    plot("PageMajFaults", "major_faults"),
    plot("HugeTotal", "huge_total"),
    plot("HugeFree", "huge_free"),
    plot("HugeRsvd", "huge_reserved"),
    plot("SUnreclaim", "unreclaimable"),
];

/// Metrics from vmstat are those that node_exporter's filter passes: paging, swapping, faults, kills.
const EXPOSED: Exposed = Exposed::machine(&[
    exposed::gauge("node_memory_MemTotal_bytes", TOTAL),
    exposed::gauge("node_memory_MemFree_bytes", FREE),
    exposed::gauge("node_memory_MemAvailable_bytes", AVAILABLE),
    exposed::gauge("node_memory_Buffers_bytes", BUFFERS),
    exposed::gauge("node_memory_Cached_bytes", CACHED),
    exposed::gauge("node_memory_Active_bytes", ACTIVE),
    exposed::gauge("node_memory_Inactive_bytes", INACTIVE),
    exposed::gauge("node_memory_Mlocked_bytes", LOCKED),
    exposed::gauge("node_memory_SwapTotal_bytes", SWAP_TOTAL),
    exposed::gauge("node_memory_SwapFree_bytes", SWAP_FREE),
    exposed::gauge("node_memory_Dirty_bytes", DIRTY),
    exposed::gauge("node_memory_Writeback_bytes", WRITEBACK),
    exposed::gauge("node_memory_AnonPages_bytes", ANON),
    exposed::gauge("node_memory_Mapped_bytes", MAPPED),
    exposed::gauge("node_memory_Shmem_bytes", SHMEM),
    exposed::gauge("node_memory_Slab_bytes", SLAB),
    exposed::gauge("node_memory_SReclaimable_bytes", SRECLAIMABLE),
    exposed::gauge("node_memory_SUnreclaim_bytes", SUNRECLAIM),
    exposed::gauge("node_memory_KernelStack_bytes", KERNEL_STACK),
    exposed::gauge("node_memory_PageTables_bytes", PAGE_TABLES),
    exposed::gauge("node_memory_Committed_AS_bytes", COMMITTED),
    exposed::gauge("node_memory_CommitLimit_bytes", COMMIT_LIMIT),
    exposed::gauge("node_memory_AnonHugePages_bytes", ANON_HUGE),
    exposed::gauge("node_memory_HugePages_Total", HUGE_TOTAL),
    exposed::gauge("node_memory_HugePages_Free", HUGE_FREE),
    exposed::gauge("node_memory_HugePages_Rsvd", HUGE_RSVD),
    exposed::gauge("node_memory_SwapCached_bytes", SWAP_CACHED),
    exposed::gauge("node_memory_Active_anon_bytes", ACTIVE_ANON),
    exposed::gauge("node_memory_Inactive_anon_bytes", INACTIVE_ANON),
    exposed::gauge("node_memory_Active_file_bytes", ACTIVE_FILE),
    exposed::gauge("node_memory_Inactive_file_bytes", INACTIVE_FILE),
    exposed::gauge("node_memory_Unevictable_bytes", UNEVICTABLE),
    exposed::gauge("node_memory_Zswap_bytes", ZSWAP),
    exposed::gauge("node_memory_Zswapped_bytes", ZSWAPPED),
    exposed::gauge("node_memory_KReclaimable_bytes", KRECLAIMABLE),
    exposed::gauge("node_memory_SecPageTables_bytes", SEC_PAGE_TABLES),
    exposed::gauge("node_memory_NFS_Unstable_bytes", NFS_UNSTABLE),
    exposed::gauge("node_memory_Bounce_bytes", BOUNCE),
    exposed::gauge("node_memory_WritebackTmp_bytes", WRITEBACK_TMP),
    exposed::gauge("node_memory_VmallocTotal_bytes", VMALLOC_TOTAL),
    exposed::gauge("node_memory_VmallocUsed_bytes", VMALLOC_USED),
    exposed::gauge("node_memory_VmallocChunk_bytes", VMALLOC_CHUNK),
    exposed::gauge("node_memory_Percpu_bytes", PERCPU),
    exposed::gauge("node_memory_HardwareCorrupted_bytes", HARDWARE_CORRUPTED),
    exposed::gauge("node_memory_ShmemHugePages_bytes", SHMEM_HUGE),
    exposed::gauge("node_memory_ShmemPmdMapped_bytes", SHMEM_PMD),
    exposed::gauge("node_memory_FileHugePages_bytes", FILE_HUGE),
    exposed::gauge("node_memory_FilePmdMapped_bytes", FILE_PMD),
    exposed::gauge("node_memory_CmaTotal_bytes", CMA_TOTAL),
    exposed::gauge("node_memory_CmaFree_bytes", CMA_FREE),
    exposed::gauge("node_memory_Unaccepted_bytes", UNACCEPTED),
    exposed::gauge("node_memory_Balloon_bytes", BALLOON),
    exposed::gauge("node_memory_Hugepagesize_bytes", HUGE_SIZE),
    exposed::gauge("node_memory_Hugetlb_bytes", HUGETLB),
    exposed::gauge("node_memory_DirectMap4k_bytes", DIRECT_4K),
    exposed::gauge("node_memory_DirectMap4M_bytes", DIRECT_4M),
    exposed::gauge("node_memory_DirectMap2M_bytes", DIRECT_2M),
    exposed::gauge("node_memory_DirectMap1G_bytes", DIRECT_1G),
    exposed::gauge("node_memory_HugePages_Surp", HUGE_SURP),
    exposed::untyped("node_vmstat_pgpgin", PGPGIN),
    exposed::untyped("node_vmstat_pgpgout", PGPGOUT),
    exposed::untyped("node_vmstat_pswpin", PSWPIN),
    exposed::untyped("node_vmstat_pswpout", PSWPOUT),
    exposed::untyped("node_vmstat_pgfault", PGFAULT),
    exposed::untyped("node_vmstat_pgmajfault", PGMAJFAULT),
    exposed::untyped("node_vmstat_oom_kill", OOM_KILL),
]);

/// Memory.
pub static MEMORY: Subsystem = Subsystem {
    letter: 'm',
    name: "memory",
    help: "Memory, swap, paging",
    sources: &[kind::MEMINFO, kind::VMSTAT],
    beside: None,
    spread: false,
    globals: GLOBALS,
    fields: &[],
    labels: &[],
    layout,
    fills: Some(fills),
    summary: Summary::Globals,
    sum: None,
    ceiling: None,
    count: None,
    in_service: true,
    columns: COLUMNS,
    detail: &[],
    born: None,
    unused: Unused::Shown,
    text: Text {
        brief: Lines {
            title: "<-----------Memory----------->",
            heads: &["Free Buff Cach Inac Slab  Map "],
            row: "{free:4k} {buffers:4k} {cached:4k} {inactive:4k} {slab:4k} {map:4k} ",
        },
        verbose: Lines {
            title: "MEMORY SUMMARY",
            heads: &[
                "<------------------------------------Physical Memory------------------------------------------><-----------Swap------------><-------Paging------>",
                "   Total    Used    Free    Buff  Cached    Slab  Mapped    Anon   AnonH  Commit  Locked Inact Total  Used  Free   In  Out Fault MajFt   In  Out",
            ],
            row: "  {total:7k} {used:7k} {free:7k} {buffers:7k} {cached:7k} {slab:7k} {mapped:7k} {anon:7k} {anon_huge:7k} {committed:7k} {locked:7k} {inactive:5k} {swap_total:5k} {swap_used:5k} {swap_free:5k} {swap_in:4b} {swap_out:4b} {faults:5c} {major_faults:5c} {page_in:4c} {page_out:4c}",
        },
        detail: Lines::NONE,
    },
    plot: Plot {
        tag: "MEM",
        order: 2,
        file: "",
        summary: PLOT,
        detail: &[],
        shape: Shape::Wide,
    },
    exposed: EXPOSED,
};

/// Both files are lines of a name and a number; meminfo's names end in a colon.
fn fills(kind: u8, global: usize) -> bool {
    let is_of_vmstat = kind == kind::VMSTAT;
    let is_lower = |field: &Field| field.name.starts_with(|c: char| c.is_ascii_lowercase());
    GLOBALS
        .get(global)
        .is_some_and(|field| is_lower(field) == is_of_vmstat)
}

fn layout(kind: u8, template: &Template, _: &Context) -> Layout {
    let mut globals = Vec::new();
    for line in template.lines() {
        let [Piece::Text(name), number, ..] = &line[..] else {
            continue;
        };
        let name = name.strip_suffix(b":").unwrap_or(name);
        let known =
            (0..GLOBALS.len()).find(|&n| fills(kind, n) && GLOBALS[n].name.as_bytes() == name);
        if let (Some(field), Some(from)) = (known, value(number)) {
            globals.push(Cell { field, from });
        }
    }
    Layout {
        globals,
        ..Layout::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::read;
    use super::*;
    use kymo_base::reading::MISSING;

    /// A field is read at any position of the table, from the file to which its name belongs.
    #[test]
    fn each_field_is_read_from_its_file() {
        let (mut meminfo, mut vmstat) = (String::new(), String::new());
        for (n, field) in GLOBALS.iter().enumerate() {
            match field.name.starts_with(|c: char| c.is_ascii_lowercase()) {
                true => vmstat.push_str(&format!("{} {}\n", field.name, n + 1)),
                false => meminfo.push_str(&format!("{}: {} kB\n", field.name, n + 1)),
            }
        }
        let texts = [(kind::MEMINFO, &*meminfo), (kind::VMSTAT, &*vmstat)];
        let reading = read(&MEMORY, &texts, &Context::default());
        let expected: Vec<u64> = (1..).take(GLOBALS.len()).collect();
        assert_eq!(reading.globals, expected);
        // No field is read from the wrong file.
        let swapped = [(kind::MEMINFO, &*vmstat), (kind::VMSTAT, &*meminfo)];
        let reading = read(&MEMORY, &swapped, &Context::default());
        assert!(reading.globals.iter().all(|&number| number == MISSING));
    }

    #[test]
    fn names_are_whole_names() {
        let meminfo = "MemTotal:       24684084 kB\nMemFree:        24392296 kB\nInactive:          92000 kB\nInactive(anon):       1 kB\nInactive(file):       2 kB\nShmem:              8872 kB\nShmemHugePages:        0 kB\nHugePages_Total:       3\nDirectMap4k:       30720 kB\nDirectMap1G:    25165824 kB\n";
        let vmstat = "nr_free_pages 5\npgpgin 100\npgpgout 200\npswpin 1\npgfault 300\npgmajfault 4\nnr_shmem 7\n";
        let reading = read(
            &MEMORY,
            &[(kind::MEMINFO, meminfo), (kind::VMSTAT, vmstat)],
            &Context::default(),
        );
        for (field, expect) in [
            (TOTAL, 24_684_084),
            (FREE, 24_392_296),
            (INACTIVE, 92_000),
            (SHMEM, 8872),
            (HUGE_TOTAL, 3),
            (AVAILABLE, MISSING),
            (PGPGIN, 100),
            (PGPGOUT, 200),
            (PSWPIN, 1),
            (PSWPOUT, MISSING),
            (PGFAULT, 300),
            (PGMAJFAULT, 4),
            (INACTIVE_ANON, 1),
            (INACTIVE_FILE, 2),
            (SHMEM_HUGE, 0),
            (DIRECT_4K, 30_720),
            (DIRECT_1G, 25_165_824),
            (SWAP_CACHED, MISSING),
        ] {
            assert_eq!(reading.globals[field], expect, "{}", GLOBALS[field].name);
        }
    }
}
