//! Values of the global keywords.

use std::path::PathBuf;

/// The global keywords, checked and with their defaults.
#[derive(Clone, Debug, PartialEq)]
pub struct Globals {
    /// Seconds between two cycles; 300 by default.
    pub interval_s: u32,
    /// The interval in minutes; MRTG derives rows and steps from it.
    pub interval_minutes: f64,
    /// Format in which MRTG would write.
    pub log_format: LogFormat,
    /// Folder of the `.rrd` files, from `WorkDir` if that is set.
    pub log_dir: PathBuf,
    /// Folder of the pages.
    pub html_dir: PathBuf,
    /// Folder of the graphs.
    pub image_dir: PathBuf,
    /// `RunAsDaemon: yes`
    pub run_as_daemon: bool,
    /// `NoDetach: yes`
    pub no_detach: bool,
    /// `EnableIPv6: yes`
    pub enable_ipv6: bool,
    /// `EnableSnmpV3: yes`. Without it targets of version 3 speak version 1.
    pub enable_snmp_v3: bool,
    /// `SingleRequest`, with any value: one OID per packet.
    pub single_request: bool,
    /// `NoMib2`, with any value: sysUpTime and sysName are not requested.
    pub no_mib2: bool,
    /// `unix:/path` or `host:port`.
    pub rrdcached: Option<Box<str>>,
    /// Age in seconds from which an `.rrd` is no longer updated.
    pub max_age_s: Option<u64>,
    /// Folder in which `Thresh...` stores the exceeded thresholds; ends with a slash.
    pub thresh_dir: Option<PathBuf>,
    /// Hysteresis as a fraction of the threshold; 0.1 by default if there is a
    /// [`Globals::thresh_dir`].
    pub thresh_hyst: Option<f64>,
    /// Hysteresis for `HWThresh...`, with the same default.
    pub hw_thresh_hyst: Option<f64>,
    /// `ThreshMailServer` and `ThreshMailSender`; MRTG requires both or neither.
    pub thresh_mail: Option<(Box<str>, Box<str>)>,
    /// Host and port.
    pub send_to_graphite: Option<(Box<str>, u16)>,
    /// `Refresh`, seconds after which a browser reads a page again.
    pub refresh_s: Option<u64>,
    /// `IconDir`, the folder of MRTG's own pictures, as pages name it.
    pub icon_dir: Option<Box<str>>,
    /// `Language` of pages.
    pub language: Option<Box<str>>,
    /// `WriteExpires: yes`: each page and graph has a file `.meta` with the time until which it is new.
    pub writes_expires: bool,
    /// A folder to put first into `PATH` for commands.
    pub path_add: Option<PathBuf>,
    /// Names of keywords whose value has no effect here, for a message.
    pub without_effect: Vec<&'static str>,
}

/// `LogFormat`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// The default, or `rateup`.
    Rateup,
    /// `.rrd` files.
    Rrdtool,
}
