//! Values of the global keywords, with the checks that MRTG makes at the end.

use super::checks::interval;
use super::config::Problem;
use super::global::Global;
use super::globals::{Globals, LogFormat};
use super::perl::{is_true, number, whole};
use super::reader::{ConfigLocation, Reader};
use super::text::decoded;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Keywords that are accepted and have no effect here.
const WITHOUT_EFFECT: [Global; 3] = [Global::ConversionCode, Global::Forks, Global::LibAdd];

/// The values of all global keywords. `None`: a required one is missing, see `problems`.
pub(super) fn globals(reader: &mut Reader, problems: &mut Vec<Problem>) -> Option<Globals> {
    let value = |keyword: Global| {
        let (text, _) = reader.globals[keyword.number()]?;
        Some(reader.texts.get(text).into_owned())
    };
    let text = |keyword: Global| value(keyword).map(|text| decoded(&text).into_boxed_str());
    let decimal = |keyword: Global| value(keyword).map(|text| number(&text));
    let says_y = |keyword: Global| {
        value(keyword).is_some_and(|text| text.iter().any(|byte| b"yY".contains(byte)))
    };
    let says_yes =
        |keyword: Global| value(keyword).is_some_and(|text| text.eq_ignore_ascii_case(b"yes"));
    let mut wrong = |keyword: Option<Global>, what: String| {
        let whole = ConfigLocation { file: 0, line: 0 };
        let place = keyword.and_then(|keyword| reader.globals[keyword.number()]);
        problems.push(reader.problem(place.map_or(whole, |(_, place)| place), what));
    };
    let [log_dir, html_dir, image_dir] = folders(&value, &mut wrong)?;
    let rrdtool = value(Global::LogFormat).is_some_and(|text| text == b"rrdtool");
    let minutes = value(Global::Interval).and_then(|text| interval(&text));
    let minutes = minutes.map_or(5.0, |(minutes, seconds)| minutes + seconds / 60.0);
    if !rrdtool && minutes < 5.0 {
        let what = "Interval: must be 5 minutes or more unless LogFormat is rrdtool";
        wrong(Some(Global::Interval), what.into());
    }
    let [server, sender] = [Global::ThreshMailServer, Global::ThreshMailSender].map(&text);
    if server.is_some() != sender.is_some() {
        let what = "ThreshMailServer and ThreshMailSender need each other";
        wrong(None, what.into());
    }
    let send_to_graphite = text(Global::SendToGraphite).map(|text| graphite(&text));
    if let Some(None) = send_to_graphite {
        let what = "SendToGraphite: must be host,port with a port from 1 to 65535";
        wrong(Some(Global::SendToGraphite), what.into());
    }
    let path = |keyword: Global| value(keyword).map(|text| folder(&text));
    let thresh_dir = path(Global::ThreshDir);
    let thresh_hyst = decimal(Global::ThreshHyst).filter(|hyst| *hyst != 0.0);
    let is_said = |keyword: &Global| reader.globals[keyword.number()].is_some();
    let without_effect = WITHOUT_EFFECT.into_iter().filter(is_said);
    Some(Globals {
        interval_s: whole_seconds(minutes),
        interval_minutes: minutes,
        log_format: log_format(rrdtool),
        log_dir,
        html_dir,
        image_dir,
        run_as_daemon: says_y(Global::RunAsDaemon),
        no_detach: says_y(Global::NoDetach),
        enable_ipv6: says_yes(Global::EnableIpv6),
        enable_snmp_v3: says_yes(Global::EnableSnmpV3),
        single_request: is_said(&Global::SingleRequest),
        no_mib2: is_said(&Global::NoMib2),
        rrdcached: text(Global::RrdCached).filter(|text| is_true(text.as_bytes())),
        max_age_s: decimal(Global::MaxAge).map(whole),
        refresh_s: decimal(Global::Refresh).map(whole),
        thresh_hyst: thresh_hyst.or(thresh_dir.as_ref().map(|_| 0.1)),
        thresh_dir,
        hw_thresh_hyst: decimal(Global::HwThreshHyst),
        thresh_mail: server.zip(sender),
        send_to_graphite: send_to_graphite.flatten(),
        icon_dir: text(Global::IconDir),
        language: text(Global::Language),
        writes_expires: value(Global::WriteExpires).is_some_and(|text| begins_with_y(&text)),
        path_add: path(Global::PathAdd),
        without_effect: without_effect.map(Global::word).collect(),
    })
}

/// The folders of logs, pages and images: `WorkDir` for all, or one each.
fn folders(
    value: &dyn Fn(Global) -> Option<Vec<u8>>,
    wrong: &mut dyn FnMut(Option<Global>, String),
) -> Option<[PathBuf; 3]> {
    if let Some(text) = value(Global::WorkDir) {
        return Some([folder(&text), folder(&text), folder(&text)]);
    }
    let each = [Global::LogDir, Global::HtmlDir, Global::ImageDir];
    let found = each.map(|keyword| value(keyword).map(|text| folder(&text)));
    if let [Some(log), Some(html), Some(image)] = found {
        return Some([log, html, image]);
    }
    if found.iter().all(Option::is_none) {
        wrong(None, "WorkDir is not said".into());
        return None;
    }
    for (keyword, found) in each.into_iter().zip(&found) {
        if found.is_none() {
            wrong(None, format!("{} is not said", keyword.word()));
        }
    }
    None
}

/// The folder with single slashes between components, and one at the end.
pub(super) fn folder(text: &[u8]) -> PathBuf {
    let mut path = text.to_vec();
    path.push(b'/');
    path.dedup_by(|next, before| *next == b'/' && *before == b'/');
    PathBuf::from(OsStr::from_bytes(&path))
}

fn log_format(is_rrdtool: bool) -> LogFormat {
    match is_rrdtool {
        true => LogFormat::Rrdtool,
        false => LogFormat::Rateup,
    }
}

fn begins_with_y(text: &[u8]) -> bool {
    text.first().is_some_and(|byte| b"yY".contains(byte))
}

fn graphite(text: &str) -> Option<(Box<str>, u16)> {
    // As in MRTG, text behind a second comma is ignored.
    let mut parts = text.split(',');
    let (host, port) = (parts.next()?, parts.next()?);
    let port = port.parse().ok().filter(|port| *port > 0)?;
    (!host.is_empty()).then(|| (host.into(), port))
}

/// MRTG computes in minutes and truncates the result to seconds.
fn whole_seconds(minutes: f64) -> u32 {
    u32::try_from(whole(minutes * 60.0)).unwrap_or(u32::MAX)
}
