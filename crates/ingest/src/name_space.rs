//! The names that each input may write. Values come by several inputs. An input with a purpose has names that are
//! closed to all others, because a foreign writer could silence or imitate it.
//!
//! The poller alone writes files below `mrtg/`, and a label set belongs to the process in its `job`. Any sender may
//! write all other files, as may the poller, whose LogDir may lie anywhere; between them `Writer`'s ranks decide.

use kymo_base::label_set::Labels;
use kymo_base::labels;
use kymo_series::names;
use kymo_store::SeriesName;

use crate::line_listeners;

/// The folder of the poller's files.
const POLLER_FOLDER: &[u8] = b"mrtg";

/// An input of the keeper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// Datagrams.
    Collectd,
    /// rrdcached's protocol.
    Rrdcached,
    /// This machine's history, from the hub.
    Hub,
    /// Values of polled devices.
    Poller,
    /// Values of database servers.
    Postgres,
    /// Values of programs that publish. The keeper collects them itself.
    Programs,
    /// Lines of a protocol, whose series have this `job`.
    Lines(&'static str),
}

impl Input {
    /// Every input.
    pub fn all() -> impl Iterator<Item = Input> {
        const WITHOUT_LINES: [Input; 6] = [
            Input::Collectd,
            Input::Rrdcached,
            Input::Hub,
            Input::Poller,
            Input::Postgres,
            Input::Programs,
        ];
        let lines = line_listeners::ALL.iter();
        let lines = lines.map(|listener| Input::Lines(listener.name));
        WITHOUT_LINES.into_iter().chain(lines)
    }

    /// True if the input may write a series of this name. A file's name lies below the base.
    pub fn may_write(self, name: SeriesName) -> bool {
        match name {
            SeriesName::File(name) => self.may_write_file(name),
            SeriesName::Labels(labels) => {
                let job = labels::value(labels.text(), "job");
                match Input::all().find(|input| input.owns(&job)) {
                    Some(owner) => self == owner,
                    None => self.writes_label_sets(),
                }
            }
        }
    }

    fn may_write_file(self, name: &[u8]) -> bool {
        match self {
            Input::Poller => true,
            Input::Collectd | Input::Rrdcached => !is_pollers(name),
            Input::Hub | Input::Postgres | Input::Programs | Input::Lines(_) => false,
        }
    }

    fn writes_label_sets(self) -> bool {
        match self {
            Input::Hub | Input::Poller | Input::Postgres | Input::Programs => true,
            Input::Collectd | Input::Rrdcached | Input::Lines(_) => false,
        }
    }

    /// True if label sets with this `job` are the input's alone.
    fn owns(self, job: &[u8]) -> bool {
        match self {
            Input::Collectd | Input::Rrdcached => false,
            Input::Hub => [names::JOB_KYMO, names::JOB_NODE].contains(&job),
            Input::Poller => job == names::JOB_POLL,
            Input::Postgres => job == names::JOB_POSTGRES,
            Input::Programs => job == names::JOB_PROGRAMS,
            Input::Lines(own) => job == own.as_bytes(),
        }
    }
}

/// True if a sender that pushes over HTTP may write a series of this name. A `job` of one of the other inputs is common
/// elsewhere, too: `node` is what Prometheus' own guide calls node_exporter. So it is taken of another `instance` than this
/// machine, whose name is `own_host`.
pub(crate) fn may_push(labels: &Labels, own_host: &[u8]) -> bool {
    let job = labels::value(labels.text(), "job");
    if !Input::all().any(|input| input.owns(&job)) {
        return true;
    }
    let instance = labels::value(labels.text(), "instance");
    !instance.is_empty() && *instance != *own_host
}

/// True if a name lies below the poller's folder. A name with `..` counts as one.
fn is_pollers(name: &[u8]) -> bool {
    let mut parts = name.split(|&byte| byte == b'/');
    let first = parts.clone().find(|part| !part.is_empty() && *part != b".");
    first == Some(POLLER_FOLDER) || parts.any(|part| part == b"..")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each input with each kind of name.
    #[test]
    fn names_of_one_input_are_closed_to_all_others() {
        use Input::{Collectd, Hub, Lines, Poller, Postgres, Programs, Rrdcached};
        let files: [(&str, &[Input]); 10] = [
            ("mrtg/core/r1.rrd", &[Poller]),
            ("./mrtg/core/r1.rrd", &[Poller]),
            ("//mrtg//core/r1.rrd", &[Poller]),
            ("mrtg", &[Poller]),
            ("web/../mrtg/core/r1.rrd", &[Poller]),
            ("web/cpu-0/cpu-idle.rrd", &[Collectd, Rrdcached, Poller]),
            ("mrtg2/cpu-0/cpu-idle.rrd", &[Collectd, Rrdcached, Poller]),
            ("web/mrtg/load.rrd", &[Collectd, Rrdcached, Poller]),
            ("", &[Collectd, Rrdcached, Poller]),
            ("{job=\"poll\"}", &[Collectd, Rrdcached, Poller]),
        ];
        for (name, writers) in files {
            for input in Input::all() {
                let may = input.may_write(SeriesName::File(name.as_bytes()));
                assert_eq!(may, writers.contains(&input), "{input:?} {name}");
            }
        }
        let sets: [(&str, &[Input]); 7] = [
            ("kymo", &[Hub]),
            ("poll", &[Poller]),
            ("postgres", &[Postgres]),
            ("programs", &[Programs]),
            ("statsd", &[Lines("statsd")]),
            ("graphite", &[Lines("graphite")]),
            ("another", &[Hub, Poller, Postgres, Programs]),
        ];
        for (job, writers) in sets {
            let labels = Labels::new([("host", &b"web"[..]), ("job", job.as_bytes())]).unwrap();
            for input in Input::all() {
                let may = input.may_write(SeriesName::Labels(&labels));
                assert_eq!(may, writers.contains(&input), "{input:?} {job}");
            }
        }
    }

    #[test]
    fn who_pushes_writes_no_name_of_this_machine() {
        for (job, instance, may) in [
            ("node", "web:9100", true),
            ("node", "here", false),
            ("node", "", false),
            ("kymo", "here", false),
            ("postgres", "db:9187", true),
            ("postgres", "", false),
            ("statsd", "", false),
            ("app", "here", true),
            ("", "", true),
        ] {
            let labels = [("__name__", "up"), ("job", job), ("instance", instance)];
            let labels = labels.map(|(name, value)| (name, value.as_bytes()));
            let labels = Labels::new(labels).unwrap();
            assert_eq!(may_push(&labels, b"here"), may, "{job} {instance}");
        }
    }
}
