//! Devices that `RouterUptime` and `RouterName` name for the pages of a target: how long a device has been up, and its name. They become
//! readings of texts, behind all readings of numbers, which only pages need.

use super::assemble::Assembling;
use super::config::{self, Kept};
use super::keyword::Keyword;
use super::reading::{Index, Magic, ObjectRequest, OidRange, Reading, SnmpReading, Source};
use super::secret::ConfigText;
use super::target_text::Device;
use super::text::{Text, narrow, wide};
use std::collections::HashMap;

/// The community without one in the configuration, as in MRTG.
const COMMUNITY: &[u8] = b"public";

/// An object of a session.
type Asked = (u32, OidRange);

/// OID and device of a value, both of which may be empty: `OID`, `community@host`, `OID:community@host`. What stands before the first
/// colon is an OID unless it has an `@`.
fn parts(text: &[u8]) -> (&[u8], &[u8]) {
    let end = memchr::memchr(b':', text).unwrap_or(text.len());
    match memchr::memchr(b'@', &text[..end]) {
        Some(_) => (b"", text),
        None => (&text[..end], text.get(end + 1..).unwrap_or_default()),
    }
}

/// The device of `community@host:options`.
fn device(text: &[u8]) -> Device<'_> {
    let (community, host) = match memchr::memrchr(b'@', text) {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (COMMUNITY, text),
    };
    let end = match host.first() {
        Some(b'[') => memchr::memchr(b']', host).map(|at| at + 1),
        _ => memchr::memchr(b':', host),
    };
    let (host, options) = host.split_at(end.unwrap_or(host.len()));
    Device {
        community,
        host,
        options,
        conversion: None,
    }
}

impl Assembling<'_> {
    /// Adds the readings of texts of all targets.
    pub(super) fn add_abouts(&mut self) {
        self.numbers = (self.readings.all.len(), self.readings.sessions.len());
        let mut known: HashMap<(u32, [Option<OidRange>; 2]), u32> = HashMap::new();
        for target in std::mem::take(&mut self.naming) {
            for (session, oids) in self.abouts_of(&self.kept[wide(target)].clone()) {
                let all = &mut self.readings.all;
                let reading = *known.entry((session, oids)).or_insert_with(|| {
                    all.push(reading(session, oids));
                    narrow(all.len() - 1)
                });
                self.abouts.push((target, reading));
            }
        }
    }

    /// Questions for the page of a target: how long the device has been up, and its name.
    fn abouts_of(&mut self, kept: &Kept) -> Vec<(u32, [Option<OidRange>; 2])> {
        let own = match *self.formulas.readings_of(kept.expression) {
            [reading] => match self.readings.all[wide(reading)].source {
                Source::Snmp(source) => Some(source.session),
                Source::Command(_) => None,
            },
            _ => None,
        };
        let uptime = self.about(kept, Keyword::RouterUptime, own);
        let of_name = own.or(uptime.map(|(session, _)| session));
        let name = self.about(kept, Keyword::RouterName, of_name);
        let (_, files) = self.reader.texts_and_files();
        let usual = self.readings.oids.resolve(b"sysName", files).ok();
        match (uptime, name) {
            (Some((one, up)), Some((other, name))) if one == other => {
                vec![(one, [Some(up), Some(name)])]
            }
            (Some((session, up)), None) => {
                vec![(session, [Some(up), usual.map(|name| name.oid)])]
            }
            (up, name) => {
                let up = up.map(|(session, up)| (session, [Some(up), None]));
                let name = name.map(|(session, name)| (session, [None, Some(name)]));
                up.into_iter().chain(name).collect()
            }
        }
    }

    /// The object of a keyword. One that cannot be asked for is a warning.
    fn about(&mut self, kept: &Kept, keyword: Keyword, own: Option<u32>) -> Option<Asked> {
        let text = config::value(&self.reader.values, kept.first_value, keyword)?;
        let asked = self.asked(kept, keyword, text, own);
        asked
            .map_err(|why| {
                let name = self.reader.texts.get(kept.name);
                let (word, name) = (keyword.word(), ConfigText(&name));
                let warning = format!("{word}[{name}] has no effect: {why}");
                self.reader.warnings.push(warning);
            })
            .ok()
    }

    fn asked(
        &mut self,
        kept: &Kept,
        keyword: Keyword,
        text: Text,
        own: Option<u32>,
    ) -> Result<Asked, String> {
        let text = self.reader.texts.get(text).into_owned();
        let (oid, place) = parts(&text);
        let oid = match (oid, keyword) {
            (b"", Keyword::RouterUptime) => b"sysUpTime",
            (b"", _) => return Err("it has no OID".into()),
            (oid, _) => oid,
        };
        let (_, files) = self.reader.texts_and_files();
        let resolved = self.readings.oids.resolve(oid, files)?;
        if resolved.magic != Magic::Get || resolved.index_position.is_some() {
            return Err("only an OID that is asked for as it is can be used".into());
        }
        if place.is_empty() {
            let none = "it names no device, and its target has a command or several devices";
            return Ok((own.ok_or(none)?, resolved.oid));
        }
        let device = device(place);
        if device.host.is_empty() {
            return Err("it names no device".into());
        }
        let first = kept.first_value;
        let values = &self.reader.values;
        let chosen = [Keyword::NoHc, Keyword::Ipv4Only, Keyword::SnmpOptions];
        let chosen = chosen.map(|keyword| config::value(values, first, keyword));
        self.choose(chosen);
        let session = self.readings.session(&device, &self.chosen.manner())?;
        Ok((session, resolved.oid))
    }
}

fn reading(session: u32, oids: [Option<OidRange>; 2]) -> Reading {
    let objects = oids.map(|oid| ObjectRequest {
        magic: oid.map_or(Magic::PseudoZero, |_| Magic::Get),
        oid: oid.unwrap_or(OidRange { start: 0, len: 0 }),
        index: Index::None,
        index_position: None,
    });
    Reading {
        text: Text::EMPTY,
        source: Source::Snmp(SnmpReading {
            session,
            objects,
            is_interface: false,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_an_oid_or_a_device() {
        let none: [&[u8]; 3] = [b"", b"", b""];
        for (text, oid, expected) in [
            ("", "", none),
            ("sysName", "sysName", none),
            ("public@r", "", [b"public", b"r", b""]),
            ("p@r:161:::::", "", [b"p", b"r", b":161:::::"]),
            ("1.3.6:p@q@r:16", "1.3.6", [b"p@q", b"r", b":16"]),
            ("up:p@[::1]:16", "up", [b"p", b"[::1]", b":16"]),
            ("p@[::1]", "", [b"p", b"[::1]", b""]),
            ("sysName:r", "sysName", [b"public", b"r", b""]),
            (":p@r", "", [b"p", b"r", b""]),
        ] {
            let (found, place) = parts(text.as_bytes());
            assert_eq!(found, oid.as_bytes(), "{text}");
            let device = device(place);
            match place {
                b"" => assert_eq!(expected, none, "{text}"),
                _ => assert_eq!(
                    [device.community, device.host, device.options],
                    expected,
                    "{text}"
                ),
            }
        }
    }
}
