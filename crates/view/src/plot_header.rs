//! The comment at the top of a plot file: collectl's lines with collectl's keys, because scripts and colplot
//! search it for `NumCPUs:`, `Interval:` and `Date:`. A value that the recording lacks is empty.

use kymo_base::context::Context;
use kymo_base::name::DisplayName;
use kymo_query::source::Moment;

use crate::feed::Interval;
use crate::options::Options;
use crate::time::{Local, Zone};

/// Version of collectl with the same header.
const AS_COLLECTL: &str = "V4.3.1";
const SECOND_NS: i64 = 1_000_000_000;

/// The whole comment for a file that begins with `interval`.
pub(crate) fn text(interval: &Interval, options: &Options) -> String {
    header(interval.context, interval.moment, options)
}

/// The comment for data from `moment` on; `--showheader` prints it for a recording or for this machine.
pub fn header(context: &Context, moment: Moment, options: &Options) -> String {
    let rule = "#".repeat(80);
    let mut out = String::new();
    if !options.live {
        let half = "#".repeat(35);
        let fact = |key| shown(context, key);
        out = format!(
            "{half} RECORDED {half}\n# Collectl:   {}  Subsys: {}\n",
            fact("recorded_by"),
            fact("letters")
        );
    }
    for line in [
        rule.clone(),
        format!(
            "# Collectl:   {AS_COLLECTL}  HiRes: 1  Options: {}  kymo: {}",
            DisplayName(options.command_line.as_bytes()).text(),
            env!("CARGO_PKG_VERSION")
        ),
    ] {
        out.push_str(&line);
        out.push('\n');
    }
    out.push_str(&machine(context, moment, options));
    if context.get("comment").is_some() {
        out.push_str(&format!("# Comment:    {}\n", shown(context, "comment")));
    }
    out.push_str(&rule);
    out.push('\n');
    out
}

/// A fact, made safe to show.
fn shown(context: &Context, key: &str) -> String {
    let fact = context.get(key).unwrap_or_default();
    DisplayName(fact.as_bytes()).text().into_owned()
}

fn machine(context: &Context, moment: Moment, options: &Options) -> String {
    let fact = |key| shown(context, key);
    let mut zone = Zone::of(context);
    let booted_ns = booted_ns(moment);
    let (disks, nets) = (disks(context), nets(context));
    let (east, east_sign) = match zone.offset_secs(moment.real_ns) {
        secs if secs < 0 => (-secs, '-'),
        secs => (secs, '+'),
    };
    [
        format!("# Host:       {}  DaemonOpts: ", fact("host")),
        format!(
            "# Booted:     {}.{:02} [{}]",
            booted_ns / SECOND_NS,
            booted_ns % SECOND_NS / 10_000_000,
            day_and_time(zone.local(booted_ns), '-', ":")
        ),
        format!(
            "# Date:       {}  Secs: {} TZ: {east_sign}{:02}{:02}",
            day_and_time(zone.local(moment.real_ns), '-', ""),
            moment.real_ns.div_euclid(SECOND_NS),
            east / 3600,
            east / 60 % 60
        ),
        format!(
            "# SubSys:     {} Options: {} Interval: {} NumCPUs: {}  NumBud: 0 Flags: ",
            options.chosen(),
            options.letters,
            fact("interval"),
            fact("cpus")
        ),
        format!(
            "# HZ:         {}  Arch: {} PageSize: {}",
            fact("hz"),
            fact("arch"),
            fact("page_size")
        ),
        format!(
            "# Kernel:     {}  Memory: {} kB  Swap: {} kB",
            fact("kernel"),
            fact("mem_kb"),
            fact("swap_kb")
        ),
        format!(
            "# NumDisks:   {} DiskNames: {}",
            disks.len(),
            disks.join(" ")
        ),
        format!("# NumNets:    {} NetNames: {}", nets.len(), nets.join(" ")),
    ]
    .map(|line| line + "\n")
    .concat()
}

/// Time of the machine's boot, as the difference of two clocks.
fn booted_ns(moment: Moment) -> i64 {
    let up_ns = i64::try_from(moment.boot_ns).unwrap_or(0);
    moment.real_ns.saturating_sub(up_ns).max(0)
}

/// `20261121-215607`, with the given separators.
fn day_and_time(local: Local, between: char, colon: &str) -> String {
    let mut time = Vec::new();
    local.put_time(&mut time);
    let time = String::from_utf8_lossy(&time).replace(':', colon);
    format!("{:08}{between}{time}", local.day)
}

/// Names of whole disks.
fn disks(context: &Context) -> Vec<String> {
    if let Some(names) = context.get("disk_names") {
        return names.split(' ').map(safe).collect();
    }
    let known = context.with_prefix("disk.");
    let whole = known.filter(|(_, relation)| *relation == "whole");
    whole.map(|(name, _)| safe(name)).collect()
}

/// Interfaces with their speeds; `??` for an unknown speed.
fn nets(context: &Context) -> Vec<String> {
    if let Some(names) = context.get("net_names") {
        return names.split(' ').map(safe).collect();
    }
    let known = context.with_prefix("net.");
    known
        .map(|(name, _)| {
            let speed = context.get(&format!("speed.{name}")).unwrap_or("??");
            format!("{}:{}", safe(name), safe(speed))
        })
        .collect()
}

fn safe(name: &str) -> String {
    DisplayName(name.as_bytes()).text().into_owned()
}
