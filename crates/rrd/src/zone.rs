//! Time zones by name, as the C library reads `TZ`: a name of the database, a path into it, or a POSIX text.

use jiff::tz::TimeZone;
use kymo_base::zone::USUAL_RULE;

/// The zone of a name; `None`: it names none.
pub fn zone(name: &str) -> Option<TimeZone> {
    let name = name.strip_prefix(':').unwrap_or(name);
    let of_path = name.split_once("zoneinfo/").map_or(name, |(_, zone)| zone);
    TimeZone::get(of_path)
        .or_else(|_| TimeZone::posix(name))
        .or_else(|_| TimeZone::posix(&format!("{name}{USUAL_RULE}")))
        .ok()
}

/// The machine's zone, or that of `TZ`; UTC if that names none.
pub fn own_zone() -> TimeZone {
    let own = TimeZone::try_system().ok();
    own.or_else(|| zone(&own_name()?)).unwrap_or(TimeZone::UTC)
}

/// The text of `TZ` if it names no zone, so that times are in UTC.
pub fn unknown_own() -> Option<String> {
    let is_unknown = |name: &String| TimeZone::try_system().is_err() && zone(name).is_none();
    own_name().filter(is_unknown)
}

fn own_name() -> Option<String> {
    Some(std::env::var_os("TZ")?.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;

    #[test]
    fn names_are_those_of_the_c_library() {
        let winter: Timestamp = "2026-03-07T12:00:00Z".parse().unwrap();
        let summer: Timestamp = "2026-03-09T12:00:00Z".parse().unwrap();
        for (name, expected) in [
            ("CET-1CEST", Some([3600, 7200])),
            (":CET-1CEST", Some([3600, 7200])),
            ("CET-1CEST,M3.5.0,M10.5.0/3", Some([3600, 3600])),
            ("MEZ-1", Some([3600, 3600])),
            ("<+03>-3", Some([10_800, 10_800])),
            ("Europe/Berlin", Some([3600, 3600])),
            (":Europe/Berlin", Some([3600, 3600])),
            (
                "/usr/share/zoneinfo/America/New_York",
                Some([-18_000, -14_400]),
            ),
            ("EST5EDT", Some([-18_000, -14_400])),
            ("Foo/Bar", None),
            ("CET-1CEST,nonsense", None),
            ("", None),
        ] {
            let offsets =
                zone(name).map(|zone| [winter, summer].map(|time| zone.to_offset(time).seconds()));
            assert_eq!(offsets, expected, "{name}");
        }
    }
}
