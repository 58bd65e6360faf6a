//! collectl's switches for parts and formats of subsystems. They mean the same live and in playback.

use std::path::PathBuf;

use clap::Args;
use kymo_view::{Export, Options};

/// Filters and options of subsystems, and of formats.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "What of a subsystem is shown")]
pub(crate) struct Shape {
    /// CPUs: numbers and ranges, `^` in front for all others
    #[arg(long, value_name = "[^]N[-M],...", allow_hyphen_values = true)]
    pub cpufilt: Option<String>,
    /// Disks whose names match, `^` in front for all others
    #[arg(long, value_name = "[^]REGEX,...", allow_hyphen_values = true)]
    pub dskfilt: Option<String>,
    /// Interfaces whose names match, in the sum as well; `^` in front for all others
    #[arg(long, value_name = "[^]REGEX,...", allow_hyphen_values = true)]
    pub netfilt: Option<String>,
    /// Interrupts that match, `^` in front for all others
    #[arg(long, value_name = "[^]REGEX,...", allow_hyphen_values = true)]
    pub intfilt: Option<String>,
    /// Slab caches whose names begin so
    #[arg(long, value_name = "NAME,...", allow_hyphen_values = true)]
    pub slabfilt: Option<String>,
    /// Protocols: i IP, t TCP, u UDP, c ICMP, I and T more counters of IP and TCP
    #[arg(long, value_name = "itucIT")]
    pub tcpfilt: Option<String>,
    /// Other names for disks
    #[arg(long, value_name = "REGEX:TEXT,...", allow_hyphen_values = true)]
    pub dskremap: Option<String>,
    /// z: no CPUs that only idle
    #[arg(long, value_name = "z")]
    pub cpuopts: Option<String>,
    /// f: fractions, i: sizes of I/Os, z: no disks that do nothing
    #[arg(long, value_name = "fioz")]
    pub dskopts: Option<String>,
    /// e: errors, E: only intervals with errors, i: sizes of packets, wN: width of names
    #[arg(long, value_name = "eEiowN")]
    pub netopts: Option<String>,
    /// R: changes; P, V: physical or virtual memory alone
    #[arg(long, value_name = "RPV")]
    pub memopts: Option<String>,
    /// s: no empty slab caches, S: only those that changed
    #[arg(long, value_name = "sS")]
    pub slabopts: Option<String>,
    /// i: sizes of I/Os
    #[arg(long, value_name = "i")]
    pub xopts: Option<String>,
    /// States of processes
    #[arg(long, value_name = "DRSTWZI")]
    pub procstate: Option<String>,
    /// Sizes of I/Os and packets in brief format
    #[arg(long)]
    pub iosize: bool,
    /// Numbers in full, not shortened to K, M, G
    #[arg(short = 'w', long)]
    pub wide: bool,
    /// Verbose, and the line above several tables names their letters
    #[arg(long)]
    pub full: bool,
    /// The cursor goes to the top before each interval
    #[arg(long)]
    pub home: bool,
    /// From when on -ox shows a disk: SVC ms of service, IOS reads or writes a second
    #[arg(short = 'l', long, value_name = "SVC:N-IOS:N-OR|AND")]
    pub limits: Option<String>,
    /// As vmstat shows it
    #[arg(long, conflicts_with_all = ["plot", "verbose", "csv", "json"])]
    pub vmstat: bool,
    /// A line a value: lexpr[,f=N][,f=FILE]; to a carbon daemon graphite,HOST[:PORT][,b=BEFORE][,p=BEHIND][,f=N]; to Ganglia
    /// gexpr,HOST:PORT[,g|G]; vmstat; processes below their parents: proctree[,FIELD][,aAdNkTzZN]. Of several intervals i=SECONDS,min|max|avg|tot; co: what changed, or ttl=N times did not
    #[arg(long, value_name = "NAME[,OPTIONS]", conflicts_with_all = ["plot", "verbose", "csv", "json", "vmstat"])]
    pub export: Option<String>,
    /// Totals of what is played; with --statopts i behind its intervals
    #[arg(long)]
    pub stats: bool,
    /// a: averages too, i: intervals too, s: also where a recording ends that the next does not continue
    #[arg(long, value_name = "ais", requires = "stats")]
    pub statopts: Option<String>,
    /// Seconds to add to the times of what is played
    #[arg(long, value_name = "SECONDS", allow_hyphen_values = true)]
    pub offsettime: Option<i64>,
    /// Names of users, in place of /etc/passwd
    #[arg(long, value_name = "FILE")]
    pub passwd: Option<PathBuf>,
    /// Mbit/s of links whose speed is not known; 0: any: collectl.conf's DefNetSpeed
    #[arg(long, value_name = "MBIT", hide = true)]
    pub defnetspeed: Option<u32>,
    /// Folder of the recording that is made at the same time.
    #[arg(skip)]
    pub recorded_in: Option<PathBuf>,
    /// True under collectl's name: `-f` may be the prefix of names.
    #[arg(skip)]
    pub as_collectl: bool,
}

impl Shape {
    /// True for vmstat's format.
    pub(crate) fn is_vmstat(&self) -> bool {
        self.vmstat || self.export.as_deref() == Some("vmstat")
    }

    /// The words after `proctree`, if processes are shown as a tree.
    pub(crate) fn tree(&self) -> Option<Vec<&str>> {
        let mut words = self.export.as_deref()?.split(',');
        (words.next() == Some("proctree")).then(|| words.collect())
    }

    /// True if each value has a line of its own.
    pub(crate) fn is_lines(&self) -> bool {
        self.export.is_some() && !self.is_vmstat() && self.tree().is_none()
    }

    /// True if the export goes to an address of its own.
    pub(crate) fn sends(&self) -> bool {
        let export = self.export.as_deref().unwrap_or_default();
        let name = export.split(',').next().unwrap_or_default();
        ["graphite", "gexpr"].contains(&name)
    }

    /// The file for lexpr's values: `f=FILE`, or `L` in the folder of the recording.
    pub(crate) fn snapshot(&self) -> Option<PathBuf> {
        let words = self.export.as_deref()?.strip_prefix("lexpr")?;
        let mut names = words
            .split(',')
            .filter_map(|word| word.strip_prefix("f="))
            // A number is a number of decimals.
            .filter(|name| name.parse::<usize>().is_err());
        let beside = || self.recorded_in.as_ref().map(|dir| dir.join("L"));
        names.next().map(PathBuf::from).or_else(beside)
    }

    /// The export in lines, and its address.
    pub(crate) fn lines(&self) -> Result<Option<(Export, Option<&str>)>, String> {
        let Some(text) = self.export.as_deref().filter(|_| self.is_lines()) else {
            return Ok(None);
        };
        let mut words = text.split(',');
        let name = words.next().unwrap_or_default();
        let address = match name {
            "graphite" | "gexpr" => Some(words.next().unwrap_or_default()),
            _ => None,
        };
        let words: Vec<&str> = words.collect();
        Ok(Some((Export::parse(name, &words)?, address)))
    }

    /// Applies these switches to the options of a view.
    pub(crate) fn apply(&self, options: &mut Options) -> Result<(), String> {
        for (switch, filter) in [
            ("--cpufilt", &self.cpufilt),
            ("--dskfilt", &self.dskfilt),
            ("--netfilt", &self.netfilt),
            ("--intfilt", &self.intfilt),
            ("--slabfilt", &self.slabfilt),
        ] {
            if let Some(text) = filter {
                options.set_filter(switch, text)?;
            }
        }
        if self.iosize {
            options.set_sizes();
        }
        let given = |letters: &Option<String>| letters.clone().unwrap_or_default();
        options.set_cpu(&given(&self.cpuopts))?;
        options.set_disk(&given(&self.dskopts))?;
        options.set_net(&given(&self.netopts))?;
        options.set_memory(&given(&self.memopts))?;
        options.set_slabs(&given(&self.slabopts))?;
        if let Some(letters) = self.xopts.as_ref().filter(|letters| *letters != "i") {
            return Err(format!("cannot use --xopts {letters}: it takes i"));
        }
        if let Some(letters) = &self.tcpfilt {
            options.set_protocols(letters)?;
        }
        if let Some(names) = &self.dskremap {
            options.set_disk_names(names)?;
        }
        if let Some(letters) = &self.procstate {
            options.set_states(letters)?;
        }
        if let Some(limits) = &self.limits {
            options.set_limits(limits)?;
        }
        if self.wide {
            options.set_wide();
        }
        (options.full, options.home) = (self.full, self.home);
        options.export = self.lines()?.map(|(export, _)| export);
        if let Some(words) = self.tree() {
            options.set_tree(&words)?;
        }
        self.totals(options)
    }

    fn totals(&self, options: &mut Options) -> Result<(), String> {
        if !self.stats {
            return Ok(());
        }
        if options.live {
            return Err("cannot use --stats: it is for what is played; see -p".into());
        }
        options.set_totals(self.statopts.as_deref().unwrap_or_default())
    }
}
