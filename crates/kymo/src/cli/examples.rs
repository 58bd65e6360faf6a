//! Examples of each command, shown first in its help and in its manual page.

use std::fmt::Write as _;

use clap::builder::{StyledStr, Styles};

/// Examples of a command, and where to read on.
pub(super) struct Guide {
    /// Words of the command behind `kymo`; empty: the switches without a command.
    pub command: &'static str,
    /// Purposes, each with its command line.
    pub examples: &'static [(&'static str, &'static str)],
    /// Topics and documents with more.
    pub more: &'static str,
}

/// Guides of all commands, in the order of `kymo --help`.
pub(super) const ALL: &[Guide] = &[
    Guide {
        command: "",
        examples: &[
            ("CPU, disks and network, each second", "kymo -scdn -i1"),
            (
                "The busiest processes, each two seconds",
                "kymo --top time,10 -i2",
            ),
            (
                "Record into a folder, and show it",
                "kymo -scdnm -i1 -f rec --show",
            ),
            ("Play a recording with times", "kymo rec -scdn -oT"),
        ],
        more: "kymo help subsystems, filters, formats, time",
    },
    Guide {
        command: "top",
        examples: &[
            ("This machine, now and back in time", "kymo top"),
            ("A recording at a moment", "kymo top rec --at 03:12"),
            (
                "Its processes as text, by memory",
                "kymo top rec --at 03:12 --once --keys m",
            ),
            (
                "Three machines by ssh, those that wait most first",
                "kymo top --sort pressure web1: web2: me@db1:",
            ),
        ],
        more: "kymo help time; docs/top.md; docs/hosts.md",
    },
    Guide {
        command: "play",
        examples: &[
            (
                "The busiest processes of the last two minutes",
                "kymo play rec --top time,3 --from -2min",
            ),
            (
                "CPU, disks and network of ten minutes, with times",
                "kymo play rec -s cdn -oT --from 14:30-14:40",
            ),
            (
                "A file of collectl's, for a program",
                "kymo play web1-20261121.raw.gz -s c --json",
            ),
        ],
        more: "kymo help subsystems, filters, formats, time; docs/output.md",
    },
    Guide {
        command: "graph",
        examples: &[
            (
                "CPU, disks and memory of the last five minutes",
                "kymo graph -s cdm --from -5min -o spike.png rec",
            ),
            (
                "One field, and a field of each disk",
                "kymo graph -s cpu.user,disk.util:* -o disks.svg rec",
            ),
            (
                "A target of the poller, of one day",
                "kymo graph --target router --period day -o router.png",
            ),
            (
                "An expression of PromQL, over six hours",
                "kymo graph 'rate(node_cpu_seconds_total[1m])' --from -6h -o cpu.png",
            ),
        ],
        more: "kymo help time; docs/output.md, docs/prometheus.md",
    },
    Guide {
        command: "programs",
        examples: &[
            ("The work in flight, again and again", "kymo programs"),
            (
                "One program's, once, for another program",
                "kymo programs postgres --json",
            ),
            (
                "The work in flight at that time",
                "kymo programs --at 14:30",
            ),
        ],
        more: "kymo help time; docs/programs.md",
    },
    Guide {
        command: "why",
        examples: &[
            (
                "The worst minute of the last hour, of what kymo serve records",
                "kymo why",
            ),
            ("A minute of a recording", "kymo why 03:12 rec"),
            ("A range, for a program", "kymo why 03:10-03:20 rec --json"),
        ],
        more: "kymo help time; docs/why.md",
    },
    Guide {
        command: "query",
        examples: &[
            (
                "The three busiest disks now",
                "kymo query 'topk(3, rate(node_disk_read_bytes_total[1m]))'",
            ),
            (
                "A value a minute of the last hour, for a sheet",
                "kymo query node_load1 --from -1h --step 1m --csv",
            ),
        ],
        more: "kymo help time; docs/prometheus.md",
    },
    Guide {
        command: "watch",
        examples: &[
            (
                "Until it is ended: a line when memory is short for half a minute",
                "kymo watch 'node_memory_MemAvailable_bytes < 1e8' for 30s",
            ),
            (
                "A command then",
                "kymo watch 'node_load1 > 8' for 1m -- ./say-it.sh",
            ),
            (
                "All times at which a recording has it",
                "kymo watch 'node_load1 > 8' rec --from 14:00-18:00",
            ),
        ],
        more: "docs/watch.md",
    },
    Guide {
        command: "series",
        examples: &[
            ("All series of a host", "kymo series ls host=web1"),
            (
                "Rows of one of them",
                "kymo series show web1/load/load.rrd --from -1h",
            ),
            ("Values as they come in", "kymo series tail node_load1"),
        ],
        more: "kymo series COMMAND --help; docs/serve.md",
    },
    Guide {
        command: "series ls",
        examples: &[
            (
                "All series of hosts whose names begin with web",
                "kymo series ls 'host=web*'",
            ),
            (
                "Those with df in their names, for a program",
                "kymo series ls df --json",
            ),
        ],
        more: "docs/serve.md",
    },
    Guide {
        command: "series show",
        examples: &[
            (
                "Rows of the last hour",
                "kymo series show web1/load/load.rrd",
            ),
            (
                "Fields of this machine, of a month",
                "kymo series show cpu.total disk.read_kb:sda --from -30d",
            ),
        ],
        more: "kymo help time; docs/serve.md",
    },
    Guide {
        command: "series samples",
        examples: &[(
            "Samples of ten minutes",
            "kymo series samples 'node_cpu_seconds_total{mode=\"idle\"}' --from -10min",
        )],
        more: "kymo help time; docs/prometheus.md",
    },
    Guide {
        command: "series tail",
        examples: &[
            ("All values as they come in", "kymo series tail"),
            (
                "One series, from the oldest value in the journal on",
                "kymo series tail node_load1 --from oldest",
            ),
        ],
        more: "docs/serve.md",
    },
    Guide {
        command: "series events",
        examples: &[(
            "Notifications of a host, of the last day",
            "kymo series events web1 --from -1d",
        )],
        more: "kymo help time; docs/serve.md",
    },
    Guide {
        command: "series rm",
        examples: &[
            (
                "A host that is gone, after a question",
                "kymo series rm host=web1",
            ),
            (
                "The values of an hour alone",
                "kymo series rm host=web1 --from 14:00 --thru 15:00",
            ),
        ],
        more: "kymo help time; docs/serve.md",
    },
    Guide {
        command: "record",
        examples: &[
            (
                "CPU, disks, network, memory each second, processes each five",
                "kymo record -s cdnmZ -i 1:5 -f rec",
            ),
            (
                "A ring of a gigabyte and of seven days at most",
                "kymo record -s cdnm -i 1 -f rec --cap 1G --keep 7d",
            ),
            (
                "In the background, as the user kymo",
                "kymo record -s cdnm -i 10 -f /var/lib/rec -D --runas kymo",
            ),
        ],
        more: "kymo help subsystems, filters, time, recording, background",
    },
    Guide {
        command: "cost",
        examples: &[("A day's samples of four subsystems", "kymo cost -s cdnm")],
        more: "kymo help subsystems; docs/operate/sizes.md",
    },
    Guide {
        command: "serve",
        examples: &[
            (
                "Record into a folder and show it on a page",
                "kymo serve --data ./kymo-data",
            ),
            ("Print the settings in force, and end", "kymo serve --check"),
            (
                "Look at a recording of another machine",
                "kymo serve --open spike.kymo --listen 127.0.0.1:4281",
            ),
        ],
        more: "kymo help configuration; docs/serve.md",
    },
    Guide {
        command: "config",
        examples: &[("Begin a configuration", "kymo config > /etc/kymo/kymo.toml")],
        more: "kymo help configuration; docs/reference/kymo-toml.md",
    },
    Guide {
        command: "poll",
        examples: &[
            ("Poll once, as from cron", "kymo poll /etc/mrtg/mrtg.cfg"),
            (
                "Poll for ever, as Debian starts MRTG",
                "kymo poll --daemon --fhs --user=mrtg",
            ),
            (
                "Find mistakes of a configuration",
                "kymo poll --check /etc/mrtg/mrtg.cfg",
            ),
        ],
        more: "docs/poll.md",
    },
    Guide {
        command: "rrdcached",
        examples: &[(
            "Keep files below a folder, with a journal",
            "kymo rrdcached -b DIR -B -j JOURNAL -l unix:/run/rrdcached.sock",
        )],
        more: "docs/rrdcached.md",
    },
    Guide {
        command: "export",
        examples: &[
            (
                "The last five minutes in one file",
                "kymo export --from -5min rec spike.kymo",
            ),
            ("All of a recording", "kymo export rec whole.kymo"),
        ],
        more: "kymo help time; docs/moving.md",
    },
    Guide {
        command: "dump",
        examples: &[
            (
                "The kernel's text of one file",
                "kymo dump rec --source proc/loadavg --from -2min",
            ),
            (
                "All texts of a minute, byte by byte",
                "kymo dump rec --from 14:30 --thru 14:31 --raw",
            ),
        ],
        more: "kymo help time; docs/formats/recording.md",
    },
    Guide {
        command: "rrd",
        examples: &[
            (
                "Rows of a file",
                "kymo rrd fetch load.rrd AVERAGE --start end-1h",
            ),
            (
                "Take a tree of files into a store",
                "kymo rrd import FOLDER --store DIR -b BASE",
            ),
        ],
        more: "docs/rrd.md",
    },
    Guide {
        command: "collectl",
        examples: &[(
            "A command line of collectl's, unchanged",
            "kymo collectl -scdn -oT",
        )],
        more: "docs/collectl.md",
    },
    Guide {
        command: "import",
        examples: &[
            (
                "What would come of collectd's files",
                "kymo import --collectd /var/lib/collectd/rrd --dry-run",
            ),
            (
                "All of it, with its rows",
                "kymo import --collectd /var/lib/collectd/rrd",
            ),
            (
                "The years that MRTG has kept",
                "kymo import --mrtg /etc/mrtg/mrtg.cfg",
            ),
        ],
        more: "docs/guides/moving-in.md",
    },
    Guide {
        command: "backup",
        examples: &[
            (
                "What has changed since the last backup",
                "kymo backup /backup/kymo",
            ),
            (
                "Of a folder, and old backups go",
                "kymo backup --data /var/lib/kymo --keep 24h,7d,8w /backup/kymo",
            ),
            (
                "To a bucket of Amazon's S3",
                "kymo backup --credentials s3-keys --region eu-west-1 s3://backups/web-1",
            ),
        ],
        more: "docs/operate/backup.md",
    },
    Guide {
        command: "discover",
        examples: &[
            (
                "The devices of a network, as tables for kymo.toml",
                "kymo discover --community-file community 192.0.2.0/24",
            ),
            (
                "What has changed since; then take it",
                "kymo discover --apply /etc/kymo/kymo.toml",
            ),
        ],
        more: "docs/guides/devices.md",
    },
    Guide {
        command: "restore",
        examples: &[
            (
                "The newest backup, into a new folder",
                "kymo restore /backup/kymo restored",
            ),
            (
                "As it was two hours ago",
                "kymo restore --at -2h /backup/kymo restored",
            ),
        ],
        more: "docs/operate/backup.md",
    },
    Guide {
        command: "doctor",
        examples: &[
            ("A table, and a warning for each slow source", "kymo doctor"),
            ("The same for a program", "kymo doctor --json"),
        ],
        more: "docs/operate/troubleshooting.md",
    },
    Guide {
        command: "status",
        examples: &[
            (
                "Contents and size of the folder of kymo serve",
                "kymo status /var/lib/kymo",
            ),
            ("The same for a program", "kymo status /var/lib/kymo --json"),
        ],
        more: "docs/operate/troubleshooting.md",
    },
    Guide {
        command: "verify",
        examples: &[
            (
                "Read all of a folder, and name what is damaged",
                "kymo verify /var/lib/kymo",
            ),
            (
                "Read all backups of a folder",
                "kymo verify --backup /backup/kymo",
            ),
        ],
        more: "docs/operate/troubleshooting.md",
    },
    Guide {
        command: "help",
        examples: &[
            ("The letters of -s", "kymo help subsystems"),
            ("Options of a command", "kymo help series tail"),
        ],
        more: "kymo --help",
    },
    Guide {
        command: "completions",
        examples: &[
            (
                "For bash, in this shell alone",
                "source <(kymo completions bash)",
            ),
            (
                "For fish, in each shell",
                "kymo completions fish > ~/.config/fish/completions/kymo.fish",
            ),
            (
                "For zsh, in a folder of $fpath",
                "kymo completions zsh > ~/.zfunc/_kymo",
            ),
        ],
        more: "docs/reference/commands.md",
    },
    Guide {
        command: "man",
        examples: &[(
            "All pages, for man(1)",
            "kymo man /usr/local/share/man/man1",
        )],
        more: "docs/reference/commands.md",
    },
];

/// The guide of a command.
pub(super) fn of(command: &str) -> Option<&'static Guide> {
    ALL.iter().find(|guide| guide.command == command)
}

impl Guide {
    /// The examples as they stand in a help text.
    pub(super) fn text(&self, styles: &Styles) -> StyledStr {
        let (header, literal) = (styles.get_header(), styles.get_literal());
        let mut text = format!("{header}Examples:{header:#}");
        for (purpose, line) in self.examples {
            let _ = write!(text, "\n  {purpose}:\n    {literal}{line}{literal:#}");
        }
        text.into()
    }

    /// Where to read on.
    pub(super) fn more_text(&self, styles: &Styles) -> StyledStr {
        let header = styles.get_header();
        format!("{header}More:{header:#} {}", self.more).into()
    }
}
