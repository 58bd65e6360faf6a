//! What a configuration says once for all targets.

use std::path::PathBuf;

/// The global keywords, checked and with their defaults.
#[derive(Clone, Debug, PartialEq)]
pub struct Globals {
    /// Seconds from one cycle to the next; 300 unless said.
    pub interval_s: u32,
    /// The same in minutes, from which MRTG makes rows and steps.
    pub interval_minutes: f64,
    /// What MRTG would write.
    pub log_format: LogFormat,
    /// Where `.rrd` files are; from `WorkDir`, where that is said.
    pub log_dir: PathBuf,
    /// Where pages are.
    pub html_dir: PathBuf,
    /// Where graphs are.
    pub image_dir: PathBuf,
    /// `RunAsDaemon: yes`
    pub run_as_daemon: bool,
    /// `NoDetach: yes`
    pub no_detach: bool,
    /// `EnableIPv6: yes`
    pub enable_ipv6: bool,
    /// `EnableSnmpV3: yes`. Targets of v3 are left out.
    pub enable_snmp_v3: bool,
    /// `SingleRequest`, whatever its value: one OID a packet.
    pub single_request: bool,
    /// `NoMib2`, whatever its value: neither sysUpTime nor sysName are asked.
    pub no_mib2: bool,
    /// `unix:/path` or `host:port`.
    pub rrdcached: Option<Box<str>>,
    /// Seconds: an `.rrd` that is older is not updated any more.
    pub max_age_s: Option<u64>,
    /// Where `Thresh...` keeps which bounds are broken; ends with a slash.
    pub thresh_dir: Option<PathBuf>,
    /// A part of the bound; 0.1 if there is a [`Globals::thresh_dir`] and nothing is said.
    pub thresh_hyst: Option<f64>,
    /// The same for `HWThresh...`.
    pub hw_thresh_hyst: Option<f64>,
    /// `ThreshMailServer` and `ThreshMailSender`: both or none.
    pub thresh_mail: Option<(Box<str>, Box<str>)>,
    /// Host and port.
    pub send_to_graphite: Option<(Box<str>, u16)>,
    /// A folder before the others of `PATH` for commands.
    pub path_add: Option<PathBuf>,
    /// Keywords whose value has no effect here, as they were written; for one line that says so.
    pub without_effect: Vec<&'static str>,
}

/// `LogFormat`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// Nothing is said, or `rateup`.
    Rateup,
    /// `.rrd` files.
    Rrdtool,
}
